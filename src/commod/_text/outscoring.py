"""Write how people whose decision changes score beside people whose decision stays."""

from __future__ import annotations

from commod._text.numbers import WithInterval, percent

CHANGED = {"gain": "those who gain", "loss": "those who lose"}
OTHERS = {
    "gain": "those who stay rejected",
    "loss": "those who keep the favourable outcome",
}
_ONE = {"gain": "one who gains has the higher", "loss": "one who loses has the lower"}


def outscoring_text(change: str, figure: WithInterval, level: float = 0.95) -> str:
    """Return a sentence on the share of pairs of the same group; empty where it is undefined.

    Examples
    --------
    >>> from commod._record import Estimate
    >>> print(outscoring_text("gain", Estimate(0.28, 0.24, 0.32)))
    Those who gain score lower than those who stay rejected: in 28.0% of the pairs of the same
    group, the one who gains has the higher base score (24.0% to 32.0%, 95% interval).
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
    >>> true_shares_text("gain", 0.41, 0.75)
    'The true label is favourable for 41.0% of those who gain and 75.0% of those who stay rejected.'
    """
    if changed is None or others is None:
        return ""
    return (
        f"The true label is favourable for {percent(changed)} of {CHANGED[change]} and "
        f"{percent(others)} of {OTHERS[change]}."
    )


def has_interval(figure: WithInterval) -> bool:
    """Return whether both ends of the interval are known."""
    return not any(end is None or end != end for end in (figure.low, figure.high))


def _comparison(change: str, figure: WithInterval) -> str:
    """Return which side scores higher, where the interval says so."""
    higher, lower = "score higher than", "score lower than"
    nearer, farther = (higher, lower) if change == "gain" else (lower, higher)
    if has_interval(figure) and figure.low > 0.5:  # type: ignore[operator]
        return nearer
    if has_interval(figure) and figure.high < 0.5:  # type: ignore[operator]
        return farther
    return "score neither clearly higher nor clearly lower than"
