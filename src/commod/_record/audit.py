"""Records of an audit: the request, what was reached, who changed and what is not known."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from commod import _text
from commod._io.untrusted import read_object
from commod._record.checks import Check, State, by_importance, state_of, verdict_of, with_severities
from commod._record.costs import CountedUpdate, Losses
from commod._record.edits import EditRecord
from commod._record.explanation import Card, Estimate, Outscoring, RocFigures, Segments, Value
from commod._record.plain import ADDED_LATER, IF_SET, from_plain, plain_digest, to_plain
from commod.exceptions import InputError

REPORT_SCHEMA = "commod.report/2"
OLDER_REPORT = "commod.report/1"  # held the audit and what ships, but not the patch


@dataclass(frozen=True)
class Gap:
    """One figure of the update on the rows of the fit and on the audited rows.

    `difference` is `test` minus `fit`. None if a figure is undefined or not known.
    """

    name: str
    kind: Literal["number", "percent"]
    fit: float | None
    test: float | None
    difference: float | None


@dataclass(frozen=True)
class Shipped:
    """The patch that a report belongs to, as the report states it.

    - `patch_sha256`: of the patch file; `audit_digest`: of the audit, as the patch carries it.
    - `base_digest`: fingerprint of the base model. `scores_digest`: SHA-256 of its scores on the
      fit rows. None if not known.
    - `n_fit_rows`: rows that `fit` got. The figures of the fit are of `n_figure_rows` of them,
      which `fit_rows` names ("fit rows", or "held-out rows" with `confidence`). `n_test_rows`: rows
      of the audit.
    - `same_figures`: whether both have the same number of rows and the same figures. The audited
      rows are then most likely the fit rows, and the gap says nothing about new people.
    - `n_groups_left_out`, `n_people_left_out`: groups too small for the constraint of the fit.
    - `versions`: of Python and packages when the patch was made.
    - `promised`: whether the target is promised for new people; None if this was not asked for.
    - `positive_label`: the label whose rates are compared.
    - `score_is_for`: the label that a high score predicts; None if not known.
    - `constraints`, `target`: the first constraint and its bound; `further`: the other ones.
    - `by`: who saved the patch; None if not known.
    """

    patch_sha256: str
    audit_digest: str | None
    created: str
    method: str
    base_model: str
    base_digest: str | None
    score_column: str | None
    scores_digest: str | None
    threshold: float
    negative_label: Value
    positive_label: Value
    favorable_label: Value
    constraints: str
    target: float | None
    direction: str
    fit_rows: str
    n_fit_rows: int | None
    n_figure_rows: int
    n_test_rows: int
    same_figures: bool
    gaps: tuple[Gap, ...]
    n_groups_left_out: int | None
    n_people_left_out: int | None
    versions: dict[str, str] | None
    promised: bool | None = field(default=None, metadata=ADDED_LATER)
    score_is_for: Value | None = field(default=None, metadata=ADDED_LATER)
    further: tuple[FurtherConstraint, ...] = field(default=(), metadata=ADDED_LATER)
    by: str | None = field(default=None, metadata=ADDED_LATER)


@dataclass(frozen=True)
class FurtherConstraint:
    """A constraint that a request states beside its first one.

    `constraints` is its name, with its condition; `bound` is a floor or a ceiling, None if none
    is stated.

    Examples
    --------
    >>> FurtherConstraint("minimum_rate within 'department'", 0.3).bound
    0.3
    """

    constraints: str
    bound: float | None


@dataclass(frozen=True)
class StratumGroup:
    """One group of a stratum: its people and, for each measure, the value before and after.

    A value is None if it is undefined.
    """

    name: str
    n: int
    before: tuple[float | None, ...]
    after: tuple[float | None, ...]


@dataclass(frozen=True)
class Stratum:
    """People who have one value of the column, and the metric among them.

    `groups` are those that are large enough to be compared.
    """

    name: str
    n: int
    before: float | None
    after: float | None
    groups: tuple[StratumGroup, ...]


@dataclass(frozen=True)
class StratumTable:
    """The strata that a conditional constraint compares, least fair after the update first.

    - `column`, `over`, `min_rows`: the condition.
    - `measures`: what is compared, in the order of the values of each group.
    - `n_strata` values occur. `n_compared` of them are compared, with `n_people` people.
    - `n_left_out` are not compared: too few rows of too few groups. They have `n_people_left_out`
      people.
    - `n_hidden` are compared, but not listed: with their figures, those of fewer than five people
      could be computed.
    """

    column: str
    over: str
    min_rows: int
    measures: tuple[str, ...]
    n_strata: int
    n_compared: int
    n_people: int
    n_left_out: int
    n_people_left_out: int
    n_hidden: int
    listed: tuple[Stratum, ...]


SCHEMA = "commod.audit/2"
OLDER_SCHEMA = "commod.audit/1"  # had no severity of checks
MAX_BYTES = 64 * 2**20  # of JSON; most audits have a few hundred kilobytes
RENAMED = {  # fields that version 0.1 called otherwise
    "quality": {"n_mended": "n_errors_fixed", "n_broken": "n_errors_introduced"},
    "provenance": {"draws_lots": "is_randomised"},
}


@dataclass(frozen=True)
class Request:
    """What the user asked of the update; None for what was not asked.

    `constraints` is the name of the first constraint, with its condition, and `target` its bound: a
    floor on a P-rule or a lowest rate, a ceiling on a gap. `further` are the other constraints.
    `pos_label` is the label whose rates are compared, `other_label` the other one. `pos_name`,
    `favorable_name` and `other_name` are labels in words ("high risk", "low risk"). A high score
    predicts the label `score_is_for`.
    `max_margin` is the largest distance from the threshold at which a decision may change.
    `score_edit` is "changed_only" or "all": which scores the update edits. `points` is "integers"
    where points had to be whole numbers. `alternatives` are the update and others as the fit
    counted them; None if that is not known.

    Examples
    --------
    >>> Request(target=0.8, favorable_label=0).constraints
    'demographic_parity'
    """

    constraints: str = "demographic_parity"
    target: float | None = None
    direction: str = "any"
    max_changes: float | None = None
    max_accuracy_loss: float | None = None
    max_volume_change: float | None = None
    confidence: float | None = None
    pos_label: Value | None = None
    favorable_label: Value | None = None
    threshold: float | None = None
    pos_name: str | None = None
    favorable_name: str | None = None
    other_label: Value | None = field(default=None, metadata=ADDED_LATER)
    other_name: str | None = field(default=None, metadata=ADDED_LATER)
    score_is_for: Value | None = field(default=None, metadata=ADDED_LATER)
    max_margin: float | None = field(default=None, metadata=ADDED_LATER)
    score_edit: str | None = field(default=None, metadata=ADDED_LATER)
    further: tuple[FurtherConstraint, ...] = field(default=(), metadata=ADDED_LATER)
    points: str | None = field(default=None, metadata=ADDED_LATER)
    alternatives: tuple[CountedUpdate, ...] | None = field(default=None, metadata=IF_SET)


@dataclass(frozen=True)
class Fairness:
    """One fairness metric before and after the update.

    `n` people are compared: those in groups that are large enough. `asked` marks the metrics that
    the user asked for. `definition` says in words what the metric measures; it is empty in audits
    that earlier versions wrote.

    `bound` is the floor or the ceiling that the request states, and `is_kept` says whether the
    value after the update keeps it; None without a bound. `strata` has the figures by stratum where
    the metric is conditional on a column. `is_approximate` marks intervals from simulated samples.

    `outcome` is the label that is counted, in words ("label 1", "“approved”"). The P-rule of the
    other label, `other_outcome`, is in `other_before` and `other_after`; they are None for the
    other metrics. Audits of earlier versions have none of these.
    """

    n: int
    constraints: str
    metric: str
    higher_is_fairer: bool
    asked: bool
    before: Estimate
    after: Estimate
    definition: str = field(default="", metadata=ADDED_LATER)
    outcome: str = field(default="", metadata=ADDED_LATER)
    other_outcome: str = field(default="", metadata=ADDED_LATER)
    other_before: Estimate | None = field(default=None, metadata=ADDED_LATER)
    other_after: Estimate | None = field(default=None, metadata=ADDED_LATER)
    title: str = field(default="", metadata=ADDED_LATER)
    bound: float | None = field(default=None, metadata=ADDED_LATER)
    is_kept: bool | None = field(default=None, metadata=ADDED_LATER)
    strata: StratumTable | None = field(default=None, metadata=ADDED_LATER)
    is_approximate: bool = field(default=False, metadata=ADDED_LATER)

    @property
    def name(self) -> str:
        """Return the metric with the label that it counts, such as "P-rule of label 1"."""
        if self.title:
            return self.title
        return f"{self.metric} of {self.outcome}" if self.outcome else self.metric

    @property
    def other_name(self) -> str:
        """Return the same metric of the other label."""
        return f"{self.metric} of {self.other_outcome}"


@dataclass(frozen=True)
class UnknownGroups:
    """How fair decisions could be, whatever the groups of `n_unknown` people are.

    The requested metric rests on the `n_known` people of the compared groups. Over all assignments
    of the others to groups, it lies from `low` to `high`, before and after the update; None if
    that is not known. `is_exact`: both ends can occur; otherwise they are proven bounds.
    """

    n_known: int
    n_unknown: int
    low_before: float | None
    high_before: float | None
    low_after: float | None
    high_after: float | None
    is_exact: bool


@dataclass(frozen=True)
class ExpectedOnNewPeople:
    """What the fit expects of the update on a new sample of as many people as it was fitted on.

    `fairness` is the metric of the request. In 95 of 100 such samples it lies between `low` and
    `high`. `base_fairness` is that of the base model. `accuracy` is None without true labels. Only
    files of version 0.2 have a `spread`: the standard deviation of the fairness over five parts of
    the rows that it was measured on.
    """

    fairness: float
    change_rate: float
    accuracy: float | None
    spread: float | None = field(default=None, metadata=ADDED_LATER)
    low: float | None = field(default=None, metadata=ADDED_LATER)
    high: float | None = field(default=None, metadata=ADDED_LATER)
    base_fairness: float | None = field(default=None, metadata=ADDED_LATER)


@dataclass(frozen=True)
class Group:
    """One group before and after the update.

    `favorable` is the share with the favourable outcome, `selected` the share with `pos_label`.
    True and false positive rates are those of `pos_label`. Rates that need true labels are None
    without them. A group that is not compared and has fewer than five people shows its size only,
    and its people are in no other figure and no total of the audit.

    `impact` is the adverse impact ratio: the share with the favourable outcome, divided by that of
    the reference group. `score_gap` is the standardised mean difference: the mean score minus that
    of the reference group, divided by the standard deviation of the scores of all compared people.
    The reference is the compared group with the highest share before the update.
    """

    name: str
    n: int
    n_positive_labels: int | None
    compared: bool
    n_gains: int | None
    n_losses: int | None
    favorable_before: Estimate
    favorable_after: Estimate
    selected_before: Estimate
    selected_after: Estimate
    accuracy_before: Estimate | None
    accuracy_after: Estimate | None
    true_positive_before: Estimate | None
    true_positive_after: Estimate | None
    false_positive_before: Estimate | None
    false_positive_after: Estimate | None
    mean_score_before: float | None
    mean_score_after: float | None
    is_reference: bool = field(default=False, metadata=ADDED_LATER)
    impact_before: float | None = field(default=None, metadata=ADDED_LATER)
    impact_after: float | None = field(default=None, metadata=ADDED_LATER)
    score_gap_before: float | None = field(default=None, metadata=ADDED_LATER)
    score_gap_after: float | None = field(default=None, metadata=ADDED_LATER)


@dataclass(frozen=True)
class LeftOutGroup:
    """A group with fewer than `min_group_size` rows: nothing is reached or promised for it.

    `n` is the number of its rows among those that `fit` got. `rate_before` and `rate_after` are
    the shares of these rows with `pos_label`, from the base model and from the update. They are
    None for a group of fewer than five people, whose rate would reveal one person's decision. A
    saved update keeps `n` alone: `name` is empty and the rates are None.

    Examples
    --------
    >>> LeftOutGroup("widowed", 25, 0.0, 0.04).n
    25
    """

    name: str
    n: int
    rate_before: float | None
    rate_after: float | None


@dataclass(frozen=True)
class SmallGroup:
    """A group that is too small to compare: `n` people, where `needed` would be enough.

    The rates are those of `pos_label`. They are None for a group of fewer than five people, and in
    audits that earlier versions wrote.
    """

    name: str
    n: int
    needed: int
    rate_before: float | None = field(default=None, metadata=ADDED_LATER)
    rate_after: float | None = field(default=None, metadata=ADDED_LATER)


@dataclass(frozen=True)
class ChangeSummary:
    """How many decisions of `n` people change, and how many changes are gains and losses.

    `selected_before` and `selected_after` are the shares of these people with `pos_label`; None in
    audits of earlier versions.
    """

    n: int
    n_changes: int
    n_gains: int
    n_losses: int
    rate: Estimate
    selected_before: Estimate | None = field(default=None, metadata=IF_SET)
    selected_after: Estimate | None = field(default=None, metadata=IF_SET)


@dataclass(frozen=True)
class Limit:
    """The fewest changes that reach the same fairness, even with the sensitive features in hand.

    All counts are of the groups that are compared. A count is None if it is undefined or where
    no number of changes is enough.

    - `n_changes`: the changes that the update makes.
    - `n_fewest`: the fewest changes in the allowed `direction`; `times` is n_changes / n_fewest.
    - `n_gains_only`: the fewest changes where nobody may lose.
    - `n_target`, `n_target_gains_only`: the same two counts for the target.
    - `is_exact`: whether `n_fewest` and `n_target` are possible. Otherwise they are proven lower
      bounds: no method needs fewer changes, but the fewest may be more.
    - `n_constraints`: how many constraints are kept at once. "The same fairness" is then the value
      reached for the first one; the others keep their bounds, or the values reached.
    - `blind`: an estimate of the fewest changes for the same fairness without reading the group,
      with an interval of the audit's level. Its value is None if the estimated rule does not
      reach this fairness, and `high` where some samples of the people do not. `blind` is None
      where it was not requested.
    """

    direction: str
    n_changes: int
    n_fewest: int | None
    times: float | None
    n_gains_only: int | None
    n_target: int | None
    n_target_gains_only: int | None
    is_exact: bool = field(default=True, metadata=ADDED_LATER)
    n_constraints: int = field(default=1, metadata=ADDED_LATER)
    blind: Estimate | None = field(default=None, metadata=IF_SET)


@dataclass(frozen=True)
class Quality:
    """How often decisions are right, and how well scores rank people.

    `n_errors_fixed` wrong decisions became right; `n_errors_introduced` right ones became wrong.
    `p_value` is that of McNemar's exact test of equal accuracy. `auc_loss` is the area under the
    curve before minus the area after, both on the same people.
    """

    accuracy_before: Estimate
    accuracy_after: Estimate
    n_errors_fixed: int
    n_errors_introduced: int
    p_value: float
    auc_before: Estimate | None
    auc_after: Estimate | None
    auc_loss: Estimate | None


@dataclass(frozen=True)
class Agreement:
    """How close the edited scores are to the base model's."""

    mean_absolute_difference: float
    correlation: float | None
    rank_correlation: float | None
    share_identical: float


@dataclass(frozen=True)
class CalibrationBin:
    """People with similar scores: their mean score, and the observed share of the score's label."""

    n: int
    mean_score: float
    observed: Estimate


@dataclass(frozen=True)
class Calibration:
    """Scores against true labels; an `error` is their mean distance, weighted by people.

    A `brier` score is the mean squared difference of score and true label. `calibrated` is the
    edited score as a calibrated probability; it is empty, and its figures are None, where that is
    not known. `gains` and `losses` are the people who change, with their mean calibrated
    probability. Audits of earlier versions have neither Brier scores nor calibrated probabilities.
    """

    before: tuple[CalibrationBin, ...]
    after: tuple[CalibrationBin, ...]
    error_before: float
    error_after: float
    brier_before: float | None = field(default=None, metadata=ADDED_LATER)
    brier_after: float | None = field(default=None, metadata=ADDED_LATER)
    calibrated: tuple[CalibrationBin, ...] = field(default=(), metadata=ADDED_LATER)
    error_calibrated: float | None = field(default=None, metadata=ADDED_LATER)
    brier_calibrated: float | None = field(default=None, metadata=ADDED_LATER)
    gains: CalibrationBin | None = field(default=None, metadata=ADDED_LATER)
    losses: CalibrationBin | None = field(default=None, metadata=ADDED_LATER)


@dataclass(frozen=True)
class Proxy:
    """How well the update predicts who belongs to a group: an area under the curve.

    0.5 means not at all. Values below 0.5 predict the group as well as values above: the update
    then pushes the *other* people. `update` is the area for −r (for the evidence where the card has
    a rule), or for the change itself where r is not known; `by_ratio` says which. `base_score` is
    the area for the base model's score. `difference` is how much better the update predicts the
    group than the score does: both areas are turned to 0.5 or above first. It is None without
    scores, and in older audits.
    """

    group: str
    by_ratio: bool
    update: Estimate
    base_score: Estimate | None
    difference: Estimate | None = field(default=None, metadata=ADDED_LATER)


@dataclass(frozen=True)
class Subgroup:
    """People of one group, within a range of other columns, who fare worse than their peers.

    `rate` is the share of `what` among them after the update. `others` is that share among the
    people that `compared_with` names. `gap` is rate − others.
    """

    name: str
    what: str
    n: int
    rate: Estimate
    rate_before: float | None
    compared_with: str
    n_others: int
    others: float
    gap: Estimate


@dataclass(frozen=True)
class Subgroups:
    """Subgroups that fare worse than their peers, worst first.

    `n_tested` subgroups were large enough; `n_worse` of them fare worse, and the worst are listed.
    `n_too_small` were left out: they, or the people to compare them with, are fewer than
    `min_size`. `level` is the level of each interval. It is raised so that all intervals hold
    together at the audit's level.
    """

    n_tested: int
    n_worse: int
    n_too_small: int
    min_size: int
    level: float
    listed: tuple[Subgroup, ...]


@dataclass(frozen=True)
class StabilitySummary:
    """How the update varies over refits on resamples; see `commod.stability`.

    `n_refits` of `n_asked` refits succeeded; `failure` is the first error of the others.
    `agreement` is the mean share of changed people that two refits have in common (Jaccard index).
    `columns` maps a raw column to the share of refits whose scorecard uses it.

    `histogram` counts people by the share of refits in which their decision changes, in ten equal
    steps: the first is 0 to below 10 %, the last 90 to 100 %. `n_always` and `n_sometimes` are
    exact counts; the remaining people of `n_rows` never change.
    """

    n_refits: int
    n_asked: int
    failure: str | None
    n_rows: int
    agreement: float | None
    n_always: int
    n_sometimes: int
    columns: dict[str, float]
    histogram: tuple[int, ...]
    fairness_low: float | None
    fairness_high: float | None
    changes_low: float
    changes_high: float


@dataclass(frozen=True)
class Provenance:
    """Where the figures come from: versions, settings, digests (SHA-256).

    `reads_group`: whether the update reads each person's group, or a column that determines the
    group, to decide. `is_randomised`: whether it decides by random draws. None if not known.
    `ledger_lines` is None if the number would tell about people in groups of fewer than five.
    """

    created: str
    versions: dict[str, str]
    method: str | None
    settings: dict[str, str]
    reads_group: bool | None
    is_randomised: bool | None
    data_digest: str
    ledger_digest: str
    ledger_lines: int | None


@dataclass(frozen=True, repr=False)
class Audit:
    """What an update does to whom; `commod.audit` makes it and `commod.report` writes it.

    All figures are of the `n` people that `rows` names. All intervals have the two-sided `level`
    unless they state their own. `answer` has the most important results as sentences. `notice` is
    set where most changes are losses, and says how many gains alone would reach the same fairness.
    `outscoring` has an entry for gains and one for losses, if there are any and base scores are
    known. `expected` is None if the fit has no expectation, or one of another request. `roc` has
    the areas under and between the ROC curves of the groups; it needs true labels and scores.
    `losses` is what errors cost, where the audit was told what a decision is worth.

    Examples
    --------
    >>> import commod
    >>> decisions = [0, 0, 1, 1] * 50, [0, 1, 1, 1] * 50
    >>> audit = commod.audit(*decisions, sensitive_features=["a", "b"] * 100)
    >>> audit.changes.n_changes, audit.changes.n_gains
    (50, 50)
    >>> type(audit).from_json(audit.to_json()) == audit
    True
    """

    schema: str
    title: str
    rows: str
    n: int
    level: float
    request: Request
    answer: tuple[str, ...]
    notice: str | None
    fairness: tuple[Fairness, ...]
    changes: ChangeSummary
    limit: Limit
    groups: tuple[Group, ...]
    small_groups: tuple[SmallGroup, ...]
    quality: Quality | None
    agreement: Agreement | None
    calibration: Calibration | None
    proxies: tuple[Proxy, ...]
    subgroups: Subgroups
    segments: Segments | None
    card: Card | None
    stability: StabilitySummary | None
    checks: tuple[Check, ...]
    not_known: tuple[str, ...]
    provenance: Provenance
    outscoring: tuple[Outscoring, ...] = field(default=(), metadata=ADDED_LATER)
    expected: ExpectedOnNewPeople | None = field(default=None, metadata=ADDED_LATER)
    roc: RocFigures | None = field(default=None, metadata=ADDED_LATER)
    unknown_groups: UnknownGroups | None = field(default=None, metadata=ADDED_LATER)
    edits: tuple[EditRecord, ...] = field(default=(), metadata=IF_SET)
    losses: Losses | None = field(default=None, metadata=IF_SET)
    ledger: Any = field(default=None, compare=False, metadata={"plain": False})

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain Python objects; of the ledger, only its digest."""
        return dict(to_plain(self))

    def to_json(self, indent: int | None = 2) -> str:
        """Return the audit as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the audit, which does not depend on the layout of its JSON.

        A patch carries it: see `Patch.with_audit`. The ledger has a digest of its own.
        """
        return plain_digest(self.to_dict())

    @property
    def verdict(self) -> str:
        """Return what the checks mean for a signature, most important first."""
        return " ".join(self.verdict_sentences)

    @property
    def verdict_sentences(self) -> tuple[str, ...]:
        """Return the sentences of `verdict`; the first says whether a check blocks signing."""
        return verdict_of(self.checks)

    @property
    def verdict_state(self) -> State:
        """Return the state of the checks that block signing: "failed" if one of them fails."""
        return state_of(self.checks)

    def __repr__(self) -> str:
        fairness = self.fairness[0]
        before, after = (
            _text.NOT_KNOWN
            if figure.value is None
            else _text.distinct(figure.value, self.request.target, digits=3)
            for figure in (fairness.before, fairness.after)
        )
        return (
            f"Audit of {self.n:,} {_text.shorten(self.rows, 60)}: "
            f"{_text.n_of(self.changes.n_changes, 'change')} "
            f"({_text.n_of(self.changes.n_gains, 'gain')}, "
            f"{_text.n_of(self.changes.n_losses, 'loss')}), {fairness.name} "
            f"{before} → {after}. {self.verdict}"
        )

    def _repr_html_(self) -> str:
        sentences = [*self.answer]
        if self.notice:
            sentences.insert(1, f"Most of the changes are losses. {self.notice}")
        rows = f"{self.n:,} {_text.shorten(self.rows, 60)}"
        level = f"{self.level * 100:g}% intervals"
        fairness = [
            (f.name, *(self._fairness_text(f, x) for x in (f.before, f.after)))
            for f in self.fairness
        ]
        groups = sorted(self.groups, key=lambda group: not group.compared)[:30]
        rates = [
            (g.name, *map(_text.estimate, (g.favorable_before, g.favorable_after))) for g in groups
        ]
        people = [(g.name, g.n, g.n_gains, g.n_losses) for g in groups]
        areas = [
            (g.name, *(_text.estimate(a, "number", 3) if a else _text.NOT_KNOWN for a in g.areas))
            for g in (() if self.roc is None else self.roc.groups)
        ]
        ranking = (f"Area under the ROC curve on the {rows}, {level}", ("group", "before", "after"))
        checks = [
            (
                f"Checks: {severity}",
                ("code", "answer", "question", "why"),
                [(c.code, c.state, c.title, c.sentence) for c in group],
            )
            for severity, group in by_importance(self.checks)
        ]
        return _text.snippet(
            self.title,
            [*sentences, self.verdict],
            [
                (f"Fairness on the {rows}, {level}", ("measure", "before", "after"), fairness),
                (
                    f"Favourable outcomes on the {rows}, {level}",
                    ("group", "before", "after"),
                    rates,
                ),
                (f"Changes by group, of the {rows}", ("group", "people", "gain", "lose"), people),
                *([(*ranking, areas)] if areas else []),
                *checks,
            ],
        )

    def _fairness_text(self, metric: Fairness, figure: Estimate) -> str:
        """Return a fairness metric and its interval, with digits to differ from the bound."""
        if figure.value is None:
            return _text.NOT_KNOWN
        bound = self.request.target if metric.bound is None else metric.bound
        shown = _text.distinct(figure.value, bound, digits=2)
        return _text.estimate(figure, "number", len(shown.partition(".")[2]))

    @classmethod
    def from_dict(cls, data: Any) -> Audit:
        """Return the audit that `to_dict` returned, or that a report holds, without its ledger."""
        schema = data.get("schema") if isinstance(data, dict) else None
        if schema in (REPORT_SCHEMA, OLDER_REPORT):  # a .json report of an audit and a patch
            data = data.get("audit")
            schema = data.get("schema") if isinstance(data, dict) else None
        if schema not in (SCHEMA, OLDER_SCHEMA):
            raise InputError(
                f"This is not an audit that this version of commod can read: schema {schema!r}, "
                f"expected {SCHEMA!r}. Read it with the version of commod that wrote it."
            )
        return from_plain(cls, data if schema == SCHEMA else _upgraded(data))

    @classmethod
    def from_json(cls, text: str) -> Audit:
        """Return the audit that `to_json` returned, without its ledger.

        The text is read as strictly as a patch: it is refused where a key occurs twice, where it
        nests too deeply, and above 64 MiB.
        """
        if not isinstance(text, str):
            raise InputError(f"An audit is read from text; got {type(text).__name__}.")
        try:
            # names may hold half a surrogate pair; JSON writes it as \ud800
            encoded = text.encode("utf-8", "backslashreplace")
            data = read_object(encoded, "an audit", MAX_BYTES, surrogates=True)
        except InputError as error:
            raise InputError(f"This text cannot be read as an audit. {error}") from error
        return cls.from_dict(data)


def _upgraded(data: dict[str, Any]) -> dict[str, Any]:
    """Return an audit of the older schema with the names and fields that audits have now."""
    upgraded = {**data, "schema": SCHEMA, "checks": with_severities(data.get("checks"))}
    for part, names in RENAMED.items():
        if isinstance(data.get(part), dict):
            upgraded[part] = {names.get(key, key): value for key, value in data[part].items()}
    return upgraded
