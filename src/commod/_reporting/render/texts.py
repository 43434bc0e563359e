"""Sentences of a report that HTML and Markdown share, and names cut to a readable length."""

from __future__ import annotations

from collections.abc import Iterable

from commod._record.audit import (
    Audit,
    ExpectedOnNewPeople,
    Fairness,
    FurtherConstraint,
    Group,
    Quality,
    Request,
    Shipped,
    StabilitySummary,
    Subgroups,
)
from commod._record.explanation import (
    AreaBetween,
    Estimate,
    GroupRoc,
    LargestGap,
    RocFigures,
    Segments,
    Step,
    TradeOff,
)
from commod._text import (
    NOT_KNOWN,
    at_bound,
    count,
    distinct,
    estimate,
    label_text,
    n_of,
    number,
    of_hundred,
    percent,
    plain,
    shorten,
    verb,
)
from commod._words.shared import blind_limit_text, degenerate_check

NO_PROOF = (
    "A target such as 0.8 is a choice that somebody made. Meeting it, or any other number in this "
    "report, is not a proof of compliance with any law or rule."
)
SEVERITY_MEANINGS = {
    "blocks signing": "If one of these checks fails, the update does not keep the request or "
    "contradicts itself: do not sign.",
    "needs a reason": "If one of these checks fails, whoever signs states in writing why that is "
    "acceptable.",
    "for information": "If one of these checks fails, read why. It is not an objection by itself.",
}
NAME_LIMIT, SENTENCE_LIMIT = 80, 600  # characters; longer texts are cut and listed in full
_ROWS_LIMIT = 60
_DIRECTIONS = {
    "any": "decisions may change in any direction",
    "gains_only": "nobody may lose the favourable outcome",
    "losses_only": "nobody may gain the favourable outcome",
}


class ShortNames:
    """Cut long names for one report, and keep their full texts under a number.

    Examples
    --------
    >>> names = ShortNames()
    >>> names("age"), names("a" * 100, 10), names("a" * 100, 10), names("b" * 100, 10)
    ('age', 'aaaaaaaaa… [1]', 'aaaaaaaaa… [1]', 'bbbbbbbbb… [2]')
    >>> len(names.long)
    2
    """

    def __init__(self) -> None:
        self.long: dict[str, int] = {}

    def __call__(self, text: object, limit: int = NAME_LIMIT) -> str:
        """Return the text to show; `long` keeps the full text if it was cut."""
        clean = plain(text)
        if len(clean) <= limit:
            return clean
        place = self.long.setdefault(clean, len(self.long) + 1)
        return f"{shorten(clean, limit)} [{place}]"

    def listed(self, budget: int = 1_000_000) -> tuple[list[tuple[int, str]], int]:
        """Return (number, full text) of cut texts, and how many exceed the budget of characters."""
        kept = []
        for text, place in self.long.items():
            budget -= len(text)
            if budget < 0:
                break
            kept.append((place, text))
        return kept, len(self.long) - len(kept)


# Rows and levels ----------------------------------------------------------------------------------


def evaluated_rows(audit: Audit) -> str:
    """Return the number and the name of the audited rows."""
    return f"{count(audit.n)} {shorten(audit.rows, _ROWS_LIMIT)}"


def measured(audit: Audit, n: int | None = None, level: float | None = None) -> str:
    """Return the level of the intervals of a table or chart, and the rows that they are of.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> measured(SimpleNamespace(level=0.95, n=2164, rows="held-out rows"))
    '95% intervals, measured on the 2,164 held-out rows.'
    """
    share = level_text(audit.level if level is None else level)
    part = "" if n in (None, audit.n) else f"{count(n)} of "
    return f"{share} intervals, measured on {part}the {evaluated_rows(audit)}."


def level_text(level: float) -> str:
    """Return a level in percent with four significant digits, or more if it would read 100%.

    Examples
    --------
    >>> level_text(0.95), level_text(0.998077), level_text(0.999999)
    ('95%', '99.81%', '99.9999%')
    """
    short = f"{100 * level:.4g}%"
    return f"{100 * level:.10g}%" if short == "100%" else short


def other_rows(audit: Audit) -> str:
    """Return the sentence that no figure is known for other rows."""
    return (
        "Whether the figures hold for other people. All of them were measured on the "
        f"{evaluated_rows(audit)}."
    )


# The request --------------------------------------------------------------------------------------


def favourable_outcome(request: Request) -> str:
    """Return the favourable outcome in words."""
    label = label_text(request.favorable_name, request.favorable_label)
    return f"the favourable outcome ({label})" if label else "the favourable outcome"


def counted_outcome(request: Request) -> str:
    """Return the outcome that rates count, in words."""
    return label_text(request.pos_name, request.pos_label) or "the counted outcome"


def score_label(request: Request) -> str:
    """Return the label that a high score predicts, in words."""
    names = {request.pos_label: request.pos_name, request.other_label: request.other_name}
    label = request.score_is_for
    return label_text(names.get(label), label) or counted_outcome(request)


def allowed_direction(request: Request) -> str:
    """Return in words how decisions may change."""
    return _DIRECTIONS.get(request.direction, plain(request.direction))


def asked_fairness(audit: Audit) -> Fairness | None:
    """Return the metric that the user asked for, else the first one; None if there is none."""
    return next((f for f in audit.fairness if f.asked), next(iter(audit.fairness), None))


def target_text(audit: Audit) -> str | None:
    """Return the target in words; None if there is none."""
    target, fairness = audit.request.target, asked_fairness(audit)
    if target is None:
        return None
    if fairness is None:
        return f"{target:g}"
    share = f" ({100 * target:.6g}%)" if fairness.higher_is_fairer else ""
    return at_bound(f"{target:g}{share}", fairness.higher_is_fairer)


def fairness_number(audit: Audit, value: float | None, digits: int = 2) -> str:
    """Return a value of the requested metric, with enough digits to differ from the target."""
    return bounded_number(value, audit.request.target, digits)


def bounded_number(value: float | None, bound: float | None, digits: int = 3) -> str:
    """Return a value of a metric, with enough digits to differ from its bound."""
    return NOT_KNOWN if value is None else distinct(value, bound, digits=digits)


def asked_expected_measured(audit: Audit) -> str:
    """Return one line with the target, what new people are expected to have, and these rows have.

    It is empty if the audit has no expectation.
    """
    fairness = asked_fairness(audit)
    if audit.expected is None or fairness is None or fairness.after.value is None:
        return ""
    expected, after = (
        fairness_number(audit, value, 3)
        for value in (audit.expected.fairness, fairness.after.value)
    )
    figures = [
        f"expected {expected} on new people{_expected_interval(audit.expected)}",
        f"measured {after} on {evaluated_rows(audit)}",
    ]
    if (target := audit.request.target) is not None:
        figures.insert(0, f"asked {at_bound(f'{target:g}', fairness.higher_is_fairer)}")
    worse = "below" if fairness.higher_is_fairer else "above"
    base = ""
    if audit.expected.base_fairness is not None:
        value = fairness_number(audit, audit.expected.base_fairness, 3)
        base = f" The base model is expected to have {value} on new people."
    return (
        f"{fairness.name}: {', '.join(figures)}.{base} About half of all samples lie {worse} an "
        "expectation."
    )


def _expected_interval(expected: ExpectedOnNewPeople) -> str:
    """Return in which interval the fairness of a new sample lies; empty if it is not known."""
    if expected.low is None or expected.high is None:
        return ""
    low, high = number(expected.low, 3), number(expected.high, 3)
    return f" (95% interval for as many people: {low} to {high})"


def expected_figures(audit: Audit) -> str:
    """Return the other figures that are expected on new people; empty without an expectation."""
    expected, fairness = audit.expected, asked_fairness(audit)
    if expected is None or fairness is None:
        return ""
    changed = percent(expected.change_rate)
    sentences = [f"On new people, {changed} of the decisions are expected to change."]
    if expected.accuracy is not None:
        accuracy = percent(expected.accuracy)
        sentences.append(f"The accuracy of all decisions is expected to be {accuracy}.")
    if expected.spread is not None:
        sentences.append(
            f"Over five parts of the fit rows, the standard deviation of the {fairness.metric} "
            f"is {number(expected.spread, 3)}."
        )
    return " ".join(sentences)


def other_ratio(audit: Audit) -> str:
    """Return the P-rule of the other label before and after; empty for other metrics."""
    fairness = asked_fairness(audit)
    if fairness is None or fairness.other_before is None or fairness.other_after is None:
        return ""
    before, after = (
        fairness_number(audit, figure.value)
        for figure in (fairness.other_before, fairness.other_after)
    )
    return f" {shorten(fairness.other_name)}: {before} before, {after} after."


def target_state(audit: Audit) -> tuple[str, str]:
    """Return whether the target is reached on these rows: the state of its check, and words."""
    state = next((check.state for check in audit.checks if check.code == "CM101"), "")
    fairness = asked_fairness(audit)
    if fairness is not None and fairness.is_kept is not None and fairness.after.value is not None:
        state = "passed" if fairness.is_kept else "failed"  # the check is about all constraints
    words = {"passed": "reached on these rows", "failed": "not reached on these rows"}
    if state == "passed" and (check := degenerate_check(audit.checks)) is not None:
        is_most = check.code == "CM205"
        how = "changing more than half of all" if is_most else "making nearly all"
        return "failed", f"met only by {how} decisions{'' if is_most else ' alike'}"
    return (state, words[state]) if state in words else ("", "")


def target_number(value: float | None) -> str:
    """Return the target of a step with at most three digits behind the point."""
    return "none" if value is None else f"{round(value, 3):g}"


def _score_pairs(request: Request) -> list[tuple[str, str]]:
    """Return what was asked about scores as (name, value); nothing if it is not known."""
    pairs = []
    if request.max_margin is not None:
        text = f"at most {request.max_margin:g} from the threshold"
        pairs.append(("Decisions that may change", text))
    edited = {"changed_only": "only where the decision changes", "all": "everywhere, by the ratio"}
    if request.score_edit is not None:
        pairs.append(("Scores that are edited", edited[request.score_edit]))
    if request.points is not None:
        pairs.append(("Points of the scorecard", "whole numbers from −10 to 10"))
    return pairs


def request_pairs(audit: Audit) -> list[tuple[str, str]]:
    """Return every part of the request as (name, value); parts that were not stated say so."""
    request = audit.request
    caps = {
        "changed decisions": request.max_changes,
        "loss of accuracy": request.max_accuracy_loss,
        "change of the overall rate": request.max_volume_change,
    }
    pairs = [
        ("Constraint", constraint_name(request.constraints)),
        ("Target", target_text(audit) or "none was stated"),
        *(("And at once", further_text(audit, one)) for one in request.further),
        ("Direction", allowed_direction(request)),
        *_score_pairs(request),
        *((f"Cap on {what}", percent(cap, 2)) for what, cap in caps.items() if cap is not None),
    ]
    uncapped = [what for what, cap in caps.items() if cap is None]
    if uncapped:
        pairs.append(("No cap on", ", ".join(uncapped)))
    promise = "none was asked for"
    if request.confidence is not None:
        promise = f"asked for with {level_text(request.confidence)} confidence"
    pairs.append(("Promise for new people", promise))
    for what, value, name in (
        ("Label that rates count", request.pos_label, request.pos_name),
        ("Favourable label", request.favorable_label, request.favorable_name),
        ("Label that a high score predicts", request.score_is_for, None),
        ("Threshold on the score", request.threshold, None),
    ):
        named = f" (“{plain(name)}”)" if name is not None and name != str(value) else ""
        pairs.append((what, NOT_KNOWN if value is None else plain(value) + named))
    return pairs


def setting(value: str) -> str:
    """Return a setting as text; None becomes "not set"."""
    return "not set" if value == "None" else value


# Results ------------------------------------------------------------------------------------------


def sentence_case(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[:1].upper() + text[1:]


def group_use(audit: Audit) -> str:
    """Return whether the update reads the sensitive features when it decides."""
    sentence = {
        True: "The update reads each person's group, or a column that determines the group, when "
        "it decides.",
        False: "The update does not see the sensitive features when it decides, but its columns "
        "may be proxies for them.",
        None: "Whether the update sees the sensitive features when it decides is not known here. "
        "Other columns may be proxies for them.",
    }[audit.provenance.reads_group]
    return f"{sentence} It decides by random draws." if audit.provenance.is_randomised else sentence


def rates_in_words(names: ShortNames, groups: tuple[Group, ...]) -> list[str]:
    """Return the lowest and the highest favourable rate of the compared groups, in words."""
    sentences = []
    for when in ("before", "after"):
        rates = [(g.name, getattr(g, f"favorable_{when}").value) for g in groups if g.compared]
        known = sorted((rate for rate in rates if rate[1] is not None), key=lambda rate: rate[1])
        if len(known) < 2:
            return []
        (low, low_rate), (high, high_rate) = known[0], known[-1]
        sentences.append(
            f"{when.capitalize()}: of 100 people in group {names(low, 40)}, {of_hundred(low_rate)} "
            f"get the favourable outcome; in group {names(high, 40)}, {of_hundred(high_rate)}."
        )
    return sentences


def limit_sentences(audit: Audit) -> str:
    """Return the fewest changes for the same fairness, and for the target."""
    limit = audit.limit
    if limit.n_fewest is None:
        sentence = "The fewest changes that reach this fairness are not known."
    elif limit.n_fewest == 0:
        sentence = "The base model was as fair already: the same fairness needs 0 changes."
    else:
        sentence = (
            f"On these rows, every method needs at least {n_of(limit.n_fewest, 'change')} for the "
            "same fairness, even if it knows every person's group."
        )
        if limit.blind is not None:
            sentence += f" {blind_limit_text(limit.blind, audit.level)}"
    if limit.n_target is not None:
        asked = "The target needs" if limit.n_constraints == 1 else "All targets together need"
        sentence += f" {asked} at least {n_of(limit.n_target, 'change')}."
    if not limit.is_exact:
        sentence += " These are proven lower bounds: the fewest changes may be more."
    return sentence


def error_sentence(quality: Quality) -> str:
    """Return how many errors are fixed and introduced, with McNemar's exact test."""
    p = f"is {number(quality.p_value, 3)}" if quality.p_value >= 0.001 else "is below 0.001"
    return (
        f"The update fixes {n_of(quality.n_errors_fixed, 'error')} and introduces "
        f"{n_of(quality.n_errors_introduced, 'error')}. If it were as accurate as the base model, "
        f"the probability of a difference at least this large {p} (McNemar's exact test)."
    )


def described_changes(segments: Segments) -> list[str]:
    """Return how many changes the rules describe, and how many they do not."""
    sentences = [
        f"The rules for {nouns} describe {count(n_described)} of {count(n)} {nouns} and miss "
        f"{count(n - n_described)}."
        for nouns, n, n_described in (
            ("gains", segments.n_gains, segments.n_described_gains),
            ("losses", segments.n_losses, segments.n_described_losses),
        )
        if n
    ]
    return sentences or ["Nobody's decision changes, so there is nobody to describe."]


def subgroup_sentences(subgroups: Subgroups, level: float) -> str:
    """Return how many subgroups were tested, and what their intervals mean."""
    n_tested, n_worse, n_listed = subgroups.n_tested, subgroups.n_worse, len(subgroups.listed)
    text = (
        f"{n_of(n_tested, 'subgroup')} of at least {n_of(subgroups.min_size, 'person')} "
        f"{'was' if n_tested == 1 else 'were'} tested."
    )
    if subgroups.n_too_small:
        text += (
            f" Nothing is known about {n_of(subgroups.n_too_small, 'other subgroup')}: too few "
            "people are in them, or too few to compare them with."
        )
    if n_tested:
        listed = f"; the worst {count(n_listed)} are listed" if n_worse > n_listed else ""
        text += (
            f" {count(n_worse)} of those tested {verb(n_worse, 'fare')} clearly worse than the "
            f"people they are compared with{listed}. Each interval has a level of "
            f"{level_text(subgroups.level)}, so all of them hold together at {level_text(level)}."
        )
    return text


def stability_sentences(stability: StabilitySummary) -> str:
    """Return how much the update varies over refits on resamples."""
    n_failed = stability.n_asked - stability.n_refits
    failed = failure = fairness = ""
    if n_failed:
        if stability.failure:
            failure = f"; the first failed with: {shorten(stability.failure, 200)}"
        failed = f" ({count(n_failed)} of {count(stability.n_asked)} refits failed{failure})"
    if stability.fairness_low is not None and stability.fairness_high is not None:
        low, high = number(stability.fairness_low, 3), number(stability.fairness_high, 3)
        fairness = f", and the fairness metric between {low} and {high}"
    return (
        f"The update was refitted {count(stability.n_refits)} times on resamples of its rows"
        f"{failed}. Each refit was applied to {n_of(stability.n_rows, 'person')}. On average, two "
        f"refits have {percent(stability.agreement)} of their changed people in common. "
        f"{n_of(stability.n_always, 'person')} {verb(stability.n_always, 'change')} in every "
        f"refit, and {count(stability.n_sometimes)} in some but not all. Over the refits, the "
        f"share of changes lies between {percent(stability.changes_low)} and "
        f"{percent(stability.changes_high)}{fairness}."
    )


# ROC curves of groups -----------------------------------------------------------------------------

NO_CURVES = "Not known: ROC curves of groups need scores and labels."


def roc_sentences(audit: Audit) -> Iterable[str]:
    """Yield what the areas between the ROC curves mean, before and after; nothing without them."""
    roc = audit.roc
    if roc is None:
        return
    for when, largest in (("Before", roc.largest_before), ("After", roc.largest_after)):
        if largest is not None:
            yield _roc_sentence(audit, when, largest)


def _roc_sentence(audit: Audit, when: str, largest: LargestGap) -> str:
    gap = largest.gap
    level = level_text(audit.level)
    area, mean, high = (number(x, 3) for x in (gap.area.value, gap.chance, gap.chance_high))
    ends = f"{number(gap.area.low, 3)} to {number(gap.area.high, 3)}"
    verdict = "Chance alone may explain it" if gap.may_be_chance else "Chance does not explain it"
    return (
        f"{when} the update, the largest area between the ROC curves of two groups (ABROCA) is "
        f"{area} ({level} interval {ends}): “{shorten(largest.first, 40)}” and "
        f"“{shorten(largest.second, 40)}”. {verdict}: if the true curves were equal, it would be "
        f"{mean} on average, and above {high} in {rarely(audit)}."
    )


def rarely(audit: Audit) -> str:
    """Return the share of samples in which chance exceeds `chance_high`."""
    return f"{(1 - audit.level) / 2 * 100:g}% of samples"


def area_texts(roc: RocFigures) -> list[tuple[str, str, str, str, str]]:
    """Return the areas under and between the curves by group as short texts, for a terminal."""

    def written(figure: Estimate | None) -> str:
        return estimate(figure, "number", 3)

    def between(group: GroupRoc, gap: AreaBetween | None) -> str:
        if group.name == roc.reference:
            return "largest group"
        return written(None if gap is None else gap.area)

    return [
        (
            group.name,
            written(group.auc_before),
            written(group.auc_after),
            between(group, group.gap_before),
            between(group, group.gap_after),
        )
        for group in roc.groups
    ]


# The trade-off ------------------------------------------------------------------------------------


def trade_off_rows(audit: Audit, trade_off: TradeOff) -> str:
    """Return whether the steps of a trade-off can be compared with the audited update."""
    fairness = asked_fairness(audit)
    if (
        fairness is None
        or trade_off.n_rows != audit.n
        or fairness.before.value != trade_off.base_fairness
    ):
        return "These are not the audited rows: do not compare the figures with the audit's."
    return (
        f"These are the audited rows. The audited update itself has {fairness.name} "
        f"{number(fairness.after.value, 3)} with {n_of(audit.changes.n_changes, 'change')}. It was "
        "fitted separately, so a step with the same target may differ from it."
    )


def step_sentence(trade_off: TradeOff, place: int) -> str:
    """Return one step of a trade-off in words."""
    step = trade_off.steps[place]
    accuracy = "" if step.accuracy is None else f", accuracy {percent(step.accuracy)}"
    expected = ""
    if step.expected_fairness is not None:
        expected = f" Expected on as many new people as were fitted: {expected_text(step)}."
    return (
        f"Step {place + 1} of {len(trade_off.steps)}: {shorten(trade_off.metric)} "
        f"{number(step.fairness)}, {count(step.n_changes)} of {count(trade_off.n_rows)} decisions "
        f"change ({n_of(step.n_gains, 'gain')}, {n_of(step.n_losses, 'loss')}){accuracy}, on the "
        f"{shorten(trade_off.rows, 60)}.{expected}"
    )


def expected_text(step: Step) -> str:
    """Return the fairness and the changes that are expected of a step on new people."""
    if step.expected_fairness is None or step.expected_change_rate is None:
        return "not known"
    return f"{number(step.expected_fairness, 3)}, {percent(step.expected_change_rate)} change"


# What ships ---------------------------------------------------------------------------------------

NO_PATCH = (
    "This report belongs to no patch. It describes decisions, but it does not say which file makes "
    "them."
)
SHIPS = (
    "The decisions above are those of one patch file. Its SHA-256 is below, and the patch carries "
    "the digest of this audit. The command “commod verify” with both files checks that they still "
    "belong together."
)
PROMISES = {
    None: "none was asked for",
    True: "given: the held-out rows of the fit are enough evidence",
    False: "refused: the held-out rows of the fit are not enough evidence",
}
SIGNED_PATCH = "A signature is for the patch with this SHA-256:"


def shipped_sentence(audit: Audit, shipped: Shipped) -> str:
    """Return which patch the report belongs to, in one sentence."""
    promise = ""
    if shipped.promised is False:
        promise = (
            " The promise for new people was refused: the held-out rows of the fit are not enough "
            "evidence for the target."
        )
    return (
        f"a patch of {shorten(shipped.base_model)}, SHA-256 {shipped.patch_sha256}. Fitted on "
        f"{_rows_of_fit(shipped)}; measured here on the {evaluated_rows(audit)}."
        f"{promise}"
    )


def _rows_of_fit(shipped: Shipped) -> str:
    return (
        "an unknown number of rows"
        if shipped.n_fit_rows is None
        else n_of(shipped.n_fit_rows, "row")
    )


def shipped_pairs(shipped: Shipped) -> list[tuple[str, str, bool]]:
    """Return what the report states about the patch: name, value, and whether it is a digest."""
    base = shipped.base_digest or "none: the model was not known or cannot be fingerprinted"
    column = "" if shipped.score_column is None else f", column {plain(shipped.score_column)}"
    goal = "no target" if shipped.target is None else f"target {shipped.target:g}"
    versions = shipped.versions or {}
    saved = "" if shipped.by is None else f", saved by {plain(shipped.by)}"
    return [
        ("Patch file (SHA-256)", shipped.patch_sha256, True),
        ("Digest of this audit, in the patch (SHA-256)", shipped.audit_digest or NOT_KNOWN, True),
        ("Patch", f"made {shipped.created} by {shipped.method}{saved}", False),
        ("Base model", f"{shipped.base_model}{column}", False),
        ("Fingerprint of the base model (SHA-256)", base, shipped.base_digest is not None),
        ("Scores on the fit rows (SHA-256)", shipped.scores_digest or NOT_KNOWN, True),
        ("Threshold on the score", f"{shipped.threshold:.10g}", False),
        ("Labels", _labels(shipped), False),
        ("Request", f"{shipped.constraints}, {goal}, direction {shipped.direction}", False),
        *(
            ("Request, at once", f"{one.constraints}, {bound_text(one.bound)}", False)
            for one in shipped.further
        ),
        ("Promise for new people", PROMISES[shipped.promised], False),
        ("Rows of the fit", _rows_of_fit(shipped), False),
        ("Rows of this audit", n_of(shipped.n_test_rows, "row"), False),
        ("Groups too small for the constraint", _left_out(shipped), False),
        ("Versions", ", ".join(f"{k} {v}" for k, v in versions.items()) or NOT_KNOWN, False),
    ]


def _labels(shipped: Shipped) -> str:
    scored = ""
    if shipped.score_is_for is not None:
        scored = f"; a high score predicts {plain(shipped.score_is_for)}"
    return (
        f"rates count {plain(shipped.positive_label)}, the other label is "
        f"{plain(shipped.negative_label)}; {plain(shipped.favorable_label)} is favourable{scored}"
    )


def _left_out(shipped: Shipped) -> str:
    if shipped.n_groups_left_out is None:
        return NOT_KNOWN
    if not shipped.n_groups_left_out:
        return "none"
    people = n_of(shipped.n_people_left_out or 0, "person")
    return f"{n_of(shipped.n_groups_left_out, 'group')} with {people}; the fit left them out"


def gap_sentences(shipped: Shipped) -> list[str]:
    """Return what the gap between fit and test rows does and does not say."""
    sentences = []
    if shipped.same_figures:
        sentences.append(
            "Both have the same figures. The audited rows are probably the rows of the fit, so "
            "this gap says nothing about new people."
        )
    if shipped.fit_rows != "fit rows":
        sentences.append(
            f"The figures of the fit are of {n_of(shipped.n_figure_rows, 'row')} that were kept "
            f"apart from the search ({shorten(shipped.fit_rows)})."
        )
    return sentences


# Charts -------------------------------------------------------------------------------------------


def group_rates_label(audit: Audit) -> str:
    """Return the text alternative of the chart of rates by group."""
    rates = [
        f"{shorten(g.name, 40)} {estimate(g.favorable_before)} before, "
        f"{estimate(g.favorable_after)} after"
        for g in audit.groups[:12]
    ]
    return "Share with the favourable outcome by group. " + "; ".join(rates) + "."


# Stated constraints -------------------------------------------------------------------------------


def strata_sentences(metric: Fairness) -> list[str]:
    """Return which strata are compared, left out, or not listed, and why."""
    found = metric.strata
    if found is None:
        return []
    how = "in every stratum" if found.over == "every" else "on average over the strata"
    sentences = [
        f"{sentence_case(metric.name)} compares the groups {how}: "
        f"{n_of(found.n_compared, 'stratum')} of {count(found.n_strata)} "
        f"{verb(found.n_compared, 'be')} compared, with {n_of(found.n_people, 'person')}."
    ]
    if found.n_people_left_out:
        sentences.append(
            f"{n_of(found.n_people_left_out, 'person')} "
            f"{verb(found.n_people_left_out, 'be')} left out: their group has fewer than "
            f"{found.min_rows} rows that count in their stratum, or no other group is compared "
            "there. Nothing is known about their fairness."
        )
    if found.n_hidden:
        sentences.append(
            f"{n_of(found.n_hidden, 'stratum')} {verb(found.n_hidden, 'be')} compared but not "
            "listed. With their figures, those of fewer than five people could be computed."
        )
    return sentences


def further_sentences(audit: Audit) -> list[str]:
    """Return each further constraint: its metric before and after, its bound, if it is kept."""
    sentences = []
    for metric in [f for f in audit.fairness if f.asked][1:]:
        before, after = (
            NOT_KNOWN if value is None else distinct(value, metric.bound, digits=3)
            for value in (metric.before.value, metric.after.value)
        )
        sentence = f"{sentence_case(metric.name)}: {before} → {after}"
        if metric.bound is not None:
            kept = "✓ kept" if metric.is_kept else "✗ not kept"
            bound = at_bound(f"{metric.bound:g}", metric.higher_is_fairer)
            sentence += f". Bound: {bound}, {kept} on these rows"
        sentences.append(f"{sentence}.")
    return sentences


def constraint_name(name: str) -> str:
    """Return the name of a constraint in words; the name of its column stays as it is.

    Examples
    --------
    >>> constraint_name("minimum_rate within 'exposure_band'")
    "minimum rate within 'exposure_band'"
    """
    alone, within, condition = name.partition(" within ")
    return f"{alone.replace('_', ' ')}{within}{condition}"


def further_text(audit: Audit, one: FurtherConstraint) -> str:
    """Return a further constraint of the request with its bound."""
    metric = next((f for f in audit.fairness if f.constraints == one.constraints), None)
    bound = bound_text(one.bound)
    if one.bound is not None and metric is not None:
        bound = at_bound(f"{one.bound:g}", metric.higher_is_fairer)
    return f"{constraint_name(one.constraints)}, {bound}"


def bound_text(bound: float | None) -> str:
    """Return a bound in words."""
    return "no bound" if bound is None else f"bound {bound:g}"
