"""The fixed words of a report: what measures mean, what was asked, on which rows a figure is."""

from __future__ import annotations

from commod._record import (
    Audit,
    Fairness,
    Group,
    Limit,
    Request,
    Segments,
    StabilitySummary,
    TradeOff,
)
from commod._text import (
    NOT_KNOWN,
    count,
    estimate,
    number,
    of_hundred,
    percent,
    plain,
    shorten,
)

__all__ = [
    "NO_PROOF",
    "Names",
    "asked_fairness",
    "beside",
    "counted",
    "described",
    "extremes",
    "goal",
    "meaning",
    "measured",
    "outcome",
    "reader",
    "requests",
    "tally",
]

NO_PROOF = (
    "A target such as 0.8 is a choice somebody made. Meeting it, or any other number in this "
    "report, is no proof of compliance with any law or rule."
)
NAME, SENTENCE = 80, 600  # characters shown before the rest moves to the list of long names
_MEANINGS = {
    "demographic_parity": "the lowest group's rate of {} divided by the highest's; 1 means equal",
    "equalized_odds": "how far the groups' true positive rates of {} lie apart plus how far their "
    "false positive rates do; 0 means equal",
    "true_positive_rate_parity": "how far the groups' true positive rates of {} lie apart; 0 means "
    "equal",
    "false_positive_rate_parity": "how far the groups' false positive rates of {} lie apart; 0 "
    "means equal",
}
_DIRECTIONS = {
    "any": "decisions may change in any direction",
    "gains_only": "nobody may lose the favourable outcome",
    "losses_only": "nobody may gain the favourable outcome",
}


class Names:
    """Names as they are shown: on one line, cut where too long, numbered so that none is lost.

    Examples
    --------
    >>> names = Names()
    >>> names("age"), names("a" * 100, 10), names("a" * 100, 10), names("b" * 100, 10)
    ('age', 'aaaaaaaaa… [1]', 'aaaaaaaaa… [1]', 'bbbbbbbbb… [2]')
    >>> len(names.long)
    2
    """

    def __init__(self) -> None:
        self.long: dict[str, int] = {}

    def __call__(self, text: object, limit: int = NAME) -> str:
        """Return the text to show; the whole of it is kept in `long` if it was cut."""
        clean = plain(text)
        if len(clean) <= limit:
            return clean
        place = self.long.setdefault(clean, len(self.long) + 1)
        return f"{clean[: limit - 1].rstrip()}… [{place}]"

    def listed(self, budget: int = 1_000_000) -> tuple[list[tuple[int, str]], int]:
        """Return (number, whole text) of what was cut, and how many no longer fit the budget."""
        kept = []
        for text, place in self.long.items():
            budget -= len(text)
            if budget < 0:
                break
            kept.append((place, text))
        return kept, len(self.long) - len(kept)


def measured(audit: Audit, n: int | None = None, level: float | None = None) -> str:
    """Return on which rows and at which level the intervals of a table or chart are.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> measured(SimpleNamespace(level=0.95, n=2164, rows="held-out rows"))
    '95% intervals, measured on the 2,164 held-out rows.'
    """
    share = level_words(audit.level if level is None else level)
    some = "" if n in (None, audit.n) else f"{count(n)} of "
    return f"{share} intervals, measured on {some}the {count(audit.n)} {shorten(audit.rows, 60)}."


def asked_fairness(audit: Audit) -> Fairness | None:
    """Return the measure the update was asked for, else the first that was taken."""
    return next((f for f in audit.fairness if f.asked), next(iter(audit.fairness), None))


def outcome(request: Request) -> str:
    """Return which outcome is the favourable one, in words."""
    label = _label(request.favorable_name, request.favorable_label)
    return f"the favourable outcome ({label})" if label else "the favourable outcome"


def counted(request: Request) -> str:
    """Return the outcome that rates count, in words."""
    return _label(request.pos_name, request.pos_label) or "the counted outcome"


def meaning(constraints: str, request: Request) -> str:
    """Return what a measure means, in words; an unknown one has none."""
    return _MEANINGS.get(constraints, "").format(counted(request))


def goal(request: Request) -> str | None:
    """Return the target in words, None where nothing was asked."""
    if request.target is None:
        return None
    if request.constraints == "demographic_parity":
        return f"at least {request.target:g} ({100 * request.target:.6g}%)"
    return f"at most {request.target:g}"


def reached(audit: Audit) -> tuple[str, str]:
    """Return what the check of the target says of these rows, as its state and in words."""
    state = next((check.state for check in audit.checks if check.code == "CM101"), None)
    said = {"passed": "reached on these rows", "failed": "not reached on these rows"}
    return ("", "") if state not in said else (state, said[state])


def direction(request: Request) -> str:
    """Return which way decisions may change, in words."""
    return _DIRECTIONS.get(request.direction, request.direction)


def reader(audit: Audit) -> str:
    """Return whether the update reads the sensitive attribute when it decides."""
    said = {
        True: "The update reads each person's group, or a column that tells it, when it decides.",
        False: "The update does not see the sensitive attribute when it decides, but its columns "
        "may stand in for it.",
        None: "Whether the update sees the sensitive attribute when it decides is not known here; "
        "other columns may stand in for it.",
    }
    lots = " It decides by lot." if audit.provenance.draws_lots else ""
    return said[audit.provenance.reads_group] + lots


def beside(audit: Audit, trade_off: TradeOff) -> str:
    """Return how the audited update stands to the steps of the trade-off."""
    asked = asked_fairness(audit)
    same = asked is not None and trade_off.n_rows == audit.n
    if not same or asked is None or asked.before.value != trade_off.base_fairness:
        return "These are not the audited rows: the figures are not to be compared one by one."
    return (
        f"They were measured on the audited rows. The audited update itself has {asked.metric} "
        f"{number(asked.after.value, 3)} with {count(audit.changes.n_changes)} changes; it was "
        "fitted by itself, so that a step with the same target may differ from it."
    )


def setting(value: str) -> str:
    """Return a setting as it was given; Python's word for nothing is said in ours."""
    return "not set" if value == "None" else value


def target(value: float | None) -> str:
    """Return a target of a step, to three digits behind the point."""
    return "none" if value is None else f"{round(value, 3):g}"


def level_words(level: float) -> str:
    """Return a level in percent: as many digits as tell it from certainty, four at least.

    Examples
    --------
    >>> level_words(0.95), level_words(0.998077), level_words(0.999999)
    ('95%', '99.81%', '99.9999%')
    """
    short = f"{100 * level:.4g}%"
    return f"{100 * level:.10g}%" if short == "100%" else short


def requests(request: Request) -> list[tuple[str, str]]:
    """Return what was asked, one line each; what was not asked is said to be so."""
    caps = {
        "changed decisions": request.max_changes,
        "loss of accuracy": request.max_accuracy_loss,
        "change of the overall rate": request.max_volume_change,
    }
    lines = [
        ("Measure", request.constraints.replace("_", " ")),
        ("Target", goal(request) or "none was stated"),
        ("Direction", _DIRECTIONS.get(request.direction, plain(request.direction))),
        *(
            (f"At most this {what}", percent(cap, 2))
            for what, cap in caps.items()
            if cap is not None
        ),
    ]
    absent = [what for what, cap in caps.items() if cap is None]
    if absent:
        lines.append(("No ceiling on", ", ".join(absent)))
    promise = "none was asked for"
    if request.confidence is not None:
        promise = f"{level_words(request.confidence)} confidence"
    lines.append(("Promise for new people", promise))
    for what, value, name in (
        ("Label that rates count", request.pos_label, request.pos_name),
        ("Favourable label", request.favorable_label, request.favorable_name),
        ("Threshold on the score", request.threshold, None),
    ):
        called = f" (“{plain(name)}”)" if name is not None and name != str(value) else ""
        lines.append((what, NOT_KNOWN if value is None else plain(value) + called))
    return lines


def extremes(groups: tuple[Group, ...], when: str) -> list[tuple[str, float]]:
    """Return the compared groups with the lowest and highest favourable rate, before or after."""
    rates = [(g.name, getattr(g, f"favorable_{when}").value) for g in groups if g.compared]
    known = sorted((r for r in rates if r[1] is not None), key=lambda rate: rate[1])
    return [known[0], known[-1]] if len(known) > 1 else []


def in_words(names: Names, groups: tuple[Group, ...]) -> list[str]:
    """Return the rates of the two groups that are furthest apart, before and after."""
    said = []
    for when in ("before", "after"):
        found = extremes(groups, when)
        if not found:
            return []
        low, high = ((names(name, 40), rate) for name, rate in found)
        said.append(
            f"{when.capitalize()}: of 100 people in group {low[0]}, {of_hundred(low[1])} get the "
            f"favourable outcome; in group {high[0]}, {of_hundred(high[1])}."
        )
    return said


def distance(limit: Limit) -> list[str]:
    """Return how far the changes are from the fewest possible, and what the target would take."""
    if limit.n_fewest is None:
        said = ["The fewest changes that reach this fairness are not known."]
    else:
        said = [
            f"{count(limit.n_fewest)} is the fewest that reach the same fairness on these rows, "
            "even if each person's group were used."
        ]
    if limit.n_target is not None:
        said.append(f"The target needs at least {count(limit.n_target)}.")
    return said


def described(segments: Segments) -> list[str]:
    """Return how many of the changes the rules describe, and how many none does."""
    said = []
    for word, n, described in (
        ("gains", segments.n_gains, segments.n_described_gains),
        ("losses", segments.n_losses, segments.n_described_losses),
    ):
        if n:
            said.append(
                f"{count(described)} of {count(n)} {word} satisfy at least one rule for {word}; "
                f"{count(n - described)} are not described by any."
            )
    return said or ["Nobody's decision changes, so there is nobody to describe."]


def tally(audit: Audit) -> list[tuple[str, int]]:
    """Return how many checks are in each state, failed ones first."""
    states = ("failed", "not enough evidence", "passed")
    return [(state, sum(check.state == state for check in audit.checks)) for state in states]


def step_sentence(trade_off: TradeOff, place: int) -> str:
    """Return one step of a trade-off in words."""
    step = trade_off.steps[place]
    accuracy = "" if step.accuracy is None else f", accuracy {percent(step.accuracy)}"
    return (
        f"Step {place + 1} of {len(trade_off.steps)}: {shorten(trade_off.metric)} "
        f"{number(step.fairness)}, {count(step.n_changes)} of {count(trade_off.n_rows)} decisions "
        f"change ({count(step.n_gains)} gains, {count(step.n_losses)} losses){accuracy}."
    )


def refits(found: StabilitySummary) -> str:
    """Return what refits on resamples say."""
    return (
        f"The update was refitted {count(found.n_refits)} times on resamples of its rows"
        f"{_failed(found)} and applied to {count(found.n_rows)} people. Two refits have "
        f"{percent(found.agreement)} of their changed people in common on average. "
        f"{count(found.n_always)} people change in every refit, {count(found.n_sometimes)} in some "
        "but not all. Over the refits the share "
        f"of changes lay between {percent(found.changes_low)} and {percent(found.changes_high)}"
        f"{_fairness_range(found)}."
    )


def _failed(found: StabilitySummary) -> str:
    n = found.n_asked - found.n_refits
    why = f", the first with: {shorten(found.failure, 200)}" if found.failure else ""
    return f" ({count(n)} of {count(found.n_asked)} refits were not made{why})" if n else ""


def _fairness_range(found: StabilitySummary) -> str:
    if found.fairness_low is None or found.fairness_high is None:
        return ""
    low, high = number(found.fairness_low, 3), number(found.fairness_high, 3)
    return f", the fairness that was asked for between {low} and {high}"


def elsewhere(audit: Audit) -> str:
    """Return on which rows everything was measured."""
    return (
        "Whether the figures hold elsewhere: all of them are of the "
        f"{count(audit.n)} {shorten(audit.rows, 60)}."
    )


def group_label(audit: Audit) -> str:
    """Return the text alternative of the chart of rates by group."""
    rates = [
        f"{shorten(g.name, 40)} {estimate(g.favorable_before)} before, "
        f"{estimate(g.favorable_after)} after"
        for g in audit.groups[:12]
    ]
    return "Share with the favourable outcome by group. " + "; ".join(rates) + "."


def _label(name: str | None, label: object) -> str:
    if name is not None and name != str(label):
        return f"“{shorten(name, 30)}”"
    return "" if label is None else f"label {shorten(label, 30)}"
