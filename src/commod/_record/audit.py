"""The audit as a record: what was asked, what was reached, who changed, what is not known."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from commod import _text
from commod._record.explanation import Card, Estimate, Segments, Value
from commod._record.plain import from_plain, to_plain
from commod.exceptions import InputError

__all__ = [
    "SCHEMA",
    "Agreement",
    "Audit",
    "Calibration",
    "CalibrationBin",
    "Changes",
    "Check",
    "Fairness",
    "Group",
    "Limit",
    "Provenance",
    "Proxy",
    "Quality",
    "Request",
    "SmallGroup",
    "StabilitySummary",
    "Subgroup",
    "Subgroups",
]

SCHEMA = "commod.audit/1"


@dataclass(frozen=True)
class Request:
    """What was asked of the update; None where nothing was.

    `target` is a floor on the P-rule, or a ceiling on the disparity of the other constraints.
    `pos_name` and `favorable_name` are the two labels in words ("high risk", "low risk").

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


@dataclass(frozen=True)
class Fairness:
    """One fairness metric before and after; `asked` marks the one the update was asked for.

    `n` people are in the comparison: those of groups that are large enough.
    """

    n: int
    constraints: str
    metric: str
    higher_is_fairer: bool
    asked: bool
    before: Estimate
    after: Estimate


@dataclass(frozen=True)
class Group:
    """One group before and after; rates that need labels are None without them.

    `favorable` is the share with the favourable outcome; `selected` that with `pos_label`. True
    and false positive rates are of `pos_label`. Of a group of fewer than five people that is not
    compared the size alone is told.
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


@dataclass(frozen=True)
class SmallGroup:
    """A group with too few people to say anything; it is in no comparison."""

    name: str
    n: int
    needed: int


@dataclass(frozen=True)
class Changes:
    """How many of `n` people change, and in which direction of the favourable outcome."""

    n: int
    n_changes: int
    n_gains: int
    n_losses: int
    rate: Estimate


@dataclass(frozen=True)
class Limit:
    """The fewest changes that reach the same fairness with the sensitive attribute in hand.

    All of it is about the groups that are compared: `n_changes` were made there. `n_fewest` in the
    direction that was allowed, `n_gains_only` where nobody may lose; `times` is
    the changes made over `n_fewest`. None where undefined or out of reach. `n_target` and
    `n_target_gains_only` are the same for the target that was asked for.
    """

    direction: str
    n_changes: int
    n_fewest: int | None
    times: float | None
    n_gains_only: int | None
    n_target: int | None
    n_target_gains_only: int | None


@dataclass(frozen=True)
class Quality:
    """How right decisions and scores are; `p_value` is McNemar's exact test of equal accuracy.

    `n_errors_fixed` errors became right decisions, `n_errors_introduced` right decisions became
    errors. `auc_loss` is the area before minus the area after, both of the same people.
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
    """People with similar scores: their mean score beside the share with `pos_label`."""

    n: int
    mean_score: float
    observed: Estimate


@dataclass(frozen=True)
class Calibration:
    """Scores against what happened; `error` is the mean distance of the two, weighted by people."""

    before: tuple[CalibrationBin, ...]
    after: tuple[CalibrationBin, ...]
    error_before: float
    error_after: float


@dataclass(frozen=True)
class Proxy:
    """How well the update tells who belongs to a group: area under the curve, 0.5 is not at all.

    `update` is of −r, or of the change itself where r is not known (`by_ratio` says which);
    `base_score` of the base model's score, for comparison. Values below 0.5 tell it as well as
    values above: the group is the one that is *not* pushed.
    """

    group: str
    by_ratio: bool
    update: Estimate
    base_score: Estimate | None


@dataclass(frozen=True)
class Subgroup:
    """People of a group within a slice of the others' columns who fare worse than their peers.

    `rate` is the share of `what` among them, `others` among those named in `compared_with`;
    `gap` is rate − others.
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
    """Subgroups that remain badly served, worst first, of `n_tested` that were large enough.

    `n_worse` are; the worst of them are listed. `level` is that of each interval, raised so that
    all hold together at the audit's level; `n_too_small` were left out, having fewer than
    `min_size` people or as few to compare with.
    """

    n_tested: int
    n_worse: int
    n_too_small: int
    min_size: int
    level: float
    listed: tuple[Subgroup, ...]


@dataclass(frozen=True)
class StabilitySummary:
    """What refits on resamples say; see `commod.stability`.

    `n_refits` of `n_asked` succeeded; `failure` is the first error of those that did not.
    `agreement` is the mean share of the changed people two refits have in common (Jaccard index);
    `columns` maps a raw column to the share of refits whose scorecard uses it; `histogram` counts
    people by how often their decision changes, in ten equal steps of the share of refits: the first
    is 0 to below 10 %, the last 90 to 100 %. So its ends hold more than those who never and always
    change: `n_always` and `n_sometimes` are exact, and the rest of `n_rows` never changes.
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
class Check:
    """One question with a stable code, its answer and the numbers behind it."""

    code: str
    title: str
    state: Literal["passed", "failed", "not enough evidence"]
    sentence: str


@dataclass(frozen=True)
class Provenance:
    """Where the figures come from: versions, seeds, digests (SHA-256).

    `reads_group` and `draws_lots` say whether the update reads each person's group, or a column
    that tells it exactly, to decide, and whether it decides by lot; None where it is not known.
    """

    created: str
    versions: dict[str, str]
    method: str | None
    settings: dict[str, str]
    reads_group: bool | None
    draws_lots: bool | None
    data_digest: str
    ledger_digest: str
    ledger_lines: int


@dataclass(frozen=True, repr=False)
class Audit:
    """What an update did to whom, measured; made by `commod.audit`, read by `commod.report`.

    All intervals have the two-sided `level` unless they say otherwise, and all figures are of the
    `n` people that `rows` names. `answer` says the most important of it in plain words; `notice`,
    where most of the changes are losses, what gains alone would take.

    Examples
    --------
    >>> from commod import audit
    >>> found = audit([0, 0, 1, 1] * 50, [0, 1, 1, 1] * 50, sensitive_features=["a", "b"] * 100)
    >>> found.changes.n_changes, found.changes.n_gains
    (50, 50)
    >>> type(found).from_json(found.to_json()) == found
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
    changes: Changes
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
    ledger: Any = field(default=None, compare=False, repr=False, metadata={"plain": False})

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain Python; the ledger stays out, its digest is in."""
        return dict(to_plain(self))

    def to_json(self, indent: int | None = 2) -> str:
        """Return the audit as JSON text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False, allow_nan=False)

    def __repr__(self) -> str:
        asked = self.fairness[0]
        before, after = (_text.number(f.value, 3) for f in (asked.before, asked.after))
        states = [check.state for check in self.checks]
        checks = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        return (
            f"Audit of {self.n:,} {_text.shorten(self.rows, 60)}: "
            f"{self.changes.n_changes:,} changes ({self.changes.n_gains:,} gains, "
            f"{self.changes.n_losses:,} losses), {asked.metric} "
            f"{before} → {after}, checks: {checks}"
        )

    def _repr_html_(self) -> str:
        sentences = [*self.answer]
        if self.notice:
            sentences.insert(1, f"Most of the changes are losses. {self.notice}")
        where = f"{self.n:,} {_text.shorten(self.rows, 60)}"
        level = f"{self.level * 100:g}% intervals"
        fairness = [(f.metric, f.before, f.after) for f in self.fairness]
        groups = sorted(self.groups, key=lambda group: not group.compared)[:30]
        rates = [(g.name, g.favorable_before, g.favorable_after) for g in groups]
        people = [(g.name, g.n, g.n_gains, g.n_losses) for g in groups]
        checks = [(c.code, c.state, c.title, c.sentence) for c in self.checks]
        return _text.snippet(
            self.title,
            sentences,
            [
                (
                    f"Fairness on the {where}, {level}",
                    *_before_after("measure", fairness, "number"),
                ),
                (f"Favourable outcomes on the {where}, {level}", *_before_after("group", rates)),
                (f"Changes by group, of the {where}", ("group", "people", "gain", "lose"), people),
                ("Checks", ("code", "answer", "question", "why"), checks),
            ],
        )

    @classmethod
    def from_dict(cls, data: Any) -> Audit:
        """Return the audit that `to_dict` wrote, without its ledger."""
        schema = data.get("schema") if isinstance(data, dict) else None
        if schema != SCHEMA:
            raise InputError(
                f"This is not an audit that this version reads: schema {schema!r}, expected "
                f"{SCHEMA!r}. Read it with the version of commod that wrote it."
            )
        return from_plain(cls, data)

    @classmethod
    def from_json(cls, text: str) -> Audit:
        """Return the audit that `to_json` wrote, without its ledger."""
        try:
            data = json.loads(text, parse_constant=_refuse_constant)
        except ValueError as error:
            raise InputError(f"This is not JSON text: {error}.") from error
        return cls.from_dict(data)


def _before_after(
    first: str, lines: list[tuple[str, Estimate, Estimate]], kind: str = "percent"
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the header and the rows of a table of figures before and after."""
    rows = [(name, *(_text.estimate(figure, kind) for figure in pair)) for name, *pair in lines]
    return (first, "before", "after"), rows


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")
