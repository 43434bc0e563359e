"""Sentences that the status of an update, audits, reports and commands share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from commod._text import MAX_LISTED_GROUPS, count, distinct, list_names, n_of, percent, shorten

if TYPE_CHECKING:
    from commod._record.checks import Check
    from commod._record.explanation import Estimate

CHANGED = {"gain": "people who gain", "loss": "people who lose"}
OTHERS = {
    "gain": "people who stay rejected",
    "loss": "people who keep the favourable outcome",
}
_HIGHER = "have {} base scores for the favourable label than"
_ONE = {"gain": "one who gains has the higher", "loss": "one who loses has the lower"}

MAX_CHANGED = 0.5  # an update that changes a larger share of all decisions is not a correction
MAX_ALIKE = 0.99  # decisions of which a larger share are alike no longer tell people apart
NEARLY_ALIKE = 0.95  # neither do these, where the update leaves at most
LEAST_LEFT = 0.25  # of the share of people with the rarer decision
EVIDENCE = (
    "The points are evidence about the groups that the constraint compares. Every method that must "
    "not read the group when it decides relies on such evidence."
)
POSITIVE_POINTS = (
    "positive points push towards the favourable decision, negative points away from it"
)
_LONGEST_GROUP = 40  # characters


def blind_limit_text(changes: Estimate, level: float) -> str:
    """Return the sentence on the blind limit; None stands for what is out of reach.

    Examples
    --------
    >>> from commod._record.explanation import Estimate
    >>> blind_limit_text(Estimate(128, 110, 147), 0.95)
    'A flexible model of the same columns that does not read the group needs about 128 changes
    (an estimate; 95% interval 110 to 147).'
    >>> blind_limit_text(Estimate(None, None, None), 0.95)
    'A flexible model of the same columns that does not read the group does not come so far
    (an estimate).'
    """
    model = "A flexible model of the same columns that does not read the group"
    if changes.value is None or changes.low is None:
        return f"{model} does not come so far (an estimate)."
    end = " or more" if changes.high is None else f" to {count(changes.high)}"
    interval = f"{level * 100:g}% interval {count(changes.low)}{end}"
    return f"{model} needs about {n_of(changes.value, 'change')} (an estimate; {interval})."


def ratio_target_text(metric: str, bound: float, before: float) -> str:
    """Return the hint that the bound of a gap looks like a ratio; empty if it does not.

    Examples
    --------
    >>> print(ratio_target_text("TPR gap of label 1", 0.95, 0.08))
    The target of the TPR gap of label 1 is at most 0.95, and the base model has 0.080 already. 0.95
    looks like a ratio: a gap is 0 where groups fare alike. Pass a small gap, such as 0.05, or a
    constraint that is a ratio.
    >>> ratio_target_text("TPR gap of label 1", 0.95, 0.6)
    ''
    """
    if not 0.5 <= bound <= 1 or not before <= bound / 2:
        return ""
    return (
        f"The target of the {metric} is at most {bound:g}, and the base model has {before:.3f} "
        f"already. {bound:g} looks like a ratio: a gap is 0 where groups fare alike. Pass a small "
        f"gap, such as 0.05, or a constraint that is a ratio."
    )


Rates = tuple[str, float | None, float | None]  # of a group, before and after


def rates_text(outcome: str, rates: Sequence[Rates]) -> str:
    """Return the rate of an outcome before and after, of all people and then by group.

    The first of the `rates` is that of all people. The text is empty without it.

    Examples
    --------
    >>> rates_text("label 1", [("", 0.3, 0.36), ("a", 0.4, 0.42), ("b", 0.2, 0.3)])
    'The rate of label 1 goes from 30.0% to 36.0% (a 40.0% → 42.0%, b 20.0% → 30.0%).'
    """
    if not rates:
        return ""
    (_, before, after), *groups = rates
    shares = [
        f"{shorten(name, _LONGEST_GROUP)} {percent(old)} → {percent(new)}"
        for name, old, new in groups
    ]
    by_group = f" ({list_names(shares, MAX_LISTED_GROUPS)})" if shares else ""
    return f"The rate of {outcome} goes from {percent(before)} to {percent(after)}{by_group}."


def most_change_text(change_rate: float) -> str:
    """Return the sentence that more than half of all decisions change; empty if they do not.

    Examples
    --------
    >>> most_change_text(0.675)
    'More than half of all decisions change (67.5%): this is another model, not an update ...'
    >>> most_change_text(0.5)
    ''
    """
    if not change_rate > MAX_CHANGED:
        return ""
    share = distinct(change_rate, MAX_CHANGED, digits=1, in_percent=True)
    return (
        f"More than half of all decisions change ({share}): this is another model, not an update "
        "of the base model, whatever its fairness is."
    )


def degenerate_check(checks: Sequence[Check]) -> Check | None:
    """Return the failed check by which changed decisions are no correction; None without one."""
    failed = {check.code: check for check in checks if check.state == "failed"}
    return failed.get("CM205", failed.get("CM206"))


def alike_text(alike: float) -> str:
    """Return the sentence that an update makes a share of all decisions alike.

    Examples
    --------
    >>> alike_text(0.984)
    'This is not a success: the update gives the same decision to 98.4% of all people. The ...'
    """
    share = distinct(alike, 1.0, digits=1, in_percent=True) if alike < 1 else "all"
    return (
        f"This is not a success: the update gives the same decision to {share} "
        f"{'of all ' if alike < 1 else ''}people. The groups then look equal, but the decisions "
        "no longer tell people apart."
    )


def no_interval_text(metrics: Sequence[str]) -> str:
    """Return that some metrics have no interval over the unknown groups, and why."""
    named = " and ".join(f"the {metric}" for metric in metrics)
    return (
        f"For {named}, no range over the unknown groups is given: only the first constraint has "
        "one, and only if it is a ratio or a difference of rates of all people."
    )


def small_group_text(
    name: str, n: int, unit: str, rate_before: float | None, rate_after: float | None
) -> str:
    """Return the name and the size of a small group, and its rates where they may be shown.

    Examples
    --------
    >>> small_group_text("widowed", 25, "row", 0.0, 0.04)
    'widowed (25 rows, rate 0.0% → 4.0%)'
    >>> small_group_text("other", 2, "person", None, None)
    'other (2 people, rate not shown)'
    """
    rates = "rate not shown"
    if rate_before is not None and rate_after is not None:
        rates = f"rate {percent(rate_before)} → {percent(rate_after)}"
    return f"{shorten(name, _LONGEST_GROUP)} ({n_of(n, unit)}, {rates})"


def codes_text(columns: Sequence[str], way_out: str = "") -> str:
    """Return a hint about columns of whole numbers that may be codes; empty without columns.

    Examples
    --------
    >>> codes_text(["grade"])
    "Points per unit treat whole numbers as amounts: grade. If they are codes of categories, ..."
    """
    if not columns:
        return ""
    way_out = way_out or "convert the column first, with astype('category') or astype(str)"
    return (
        f"Points per unit treat whole numbers as amounts: {list_names(columns)}. If they are codes "
        f"of categories, {way_out}."
    )


# ---------------------------------------------------------------------------------------------
# How changed people score


def outscoring_text(change: str, figure: Estimate, level: float = 0.95) -> str:
    """Return a sentence on the share of pairs of the same group; empty if it is undefined.

    Examples
    --------
    >>> from commod._record.explanation import Estimate
    >>> print(outscoring_text("gain", Estimate(0.28, 0.24, 0.32)))
    People who gain have lower base scores for the favourable label than people who stay rejected:
    in 28.0% of the pairs of the same group, the one who gains has the higher base score (24.0% to
    32.0%, 95% interval).
    """
    value = figure.value
    if value is None or value != value:
        return ""
    interval = ""
    if has_interval(figure):
        interval = f" ({percent(figure.low)} to {percent(figure.high)}, {100 * level:g}% interval)"
    return (
        f"{CHANGED[change].capitalize()} {_comparison(change, figure)} {OTHERS[change]}: in "
        f"{percent(value)} of the pairs of the same group, the {_ONE[change]} base score{interval}."
    )


def true_shares_text(change: str, changed: float | None, others: float | None) -> str:
    """Return the shares of both sides whose true label is favourable; empty if one is not known.

    Examples
    --------
    >>> print(true_shares_text("gain", 0.41, 0.75))
    The true label is favourable for 41.0% of people who gain and 75.0% of people who stay rejected.
    """
    if changed is None or others is None:
        return ""
    return (
        f"The true label is favourable for {percent(changed)} of {CHANGED[change]} and "
        f"{percent(others)} of {OTHERS[change]}."
    )


def has_interval(figure: Estimate) -> bool:
    """Return whether both ends of the interval are known."""
    return not any(end is None or end != end for end in (figure.low, figure.high))


def _comparison(change: str, figure: Estimate) -> str:
    """Return which side scores higher, where the interval says so."""
    higher, lower = _HIGHER.format("higher"), _HIGHER.format("lower")
    nearer, farther = (higher, lower) if change == "gain" else (lower, higher)
    if has_interval(figure) and figure.low > 0.5:  # type: ignore[operator]
        return nearer
    if has_interval(figure) and figure.high < 0.5:  # type: ignore[operator]
        return farther
    return _HIGHER.format("neither clearly higher nor clearly lower")
