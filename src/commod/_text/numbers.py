"""Write numbers for people. A number that is undefined is "not known", never 0 or NaN."""

from __future__ import annotations

import math
from typing import Protocol

NOT_KNOWN = "not known"


class WithInterval(Protocol):
    """A figure and the ends of its interval, such as `commod._record.Estimate`."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def count(value: float | None) -> str:
    """Return a count with commas between thousands; one decimal only where it is not whole.

    Examples
    --------
    >>> count(12345), count(3.0), count(2.25), count(None)
    ('12,345', '3', '2.2', 'not known')
    """
    if _unknown(value):
        return NOT_KNOWN
    is_whole = float(value).is_integer()  # type: ignore[arg-type]
    return f"{value:,.0f}" if is_whole else _minus(f"{value:,.1f}")


def number(value: float | None, digits: int = 2) -> str:
    """Return a number with `digits` digits behind the point.

    Examples
    --------
    >>> number(0.8049, 3), number(-1.5), number(float("nan"))
    ('0.805', '−1.50', 'not known')
    """
    return NOT_KNOWN if _unknown(value) else _minus(f"{value:,.{digits}f}")


def signed_number(value: float | None, digits: int = 2) -> str:
    """Return a difference with its sign and `digits` digits behind the point.

    Examples
    --------
    >>> signed_number(0.0312, 3), signed_number(-0.5), signed_number(0.0001), signed_number(None)
    ('+0.031', '−0.50', '0.00', 'not known')
    """
    return NOT_KNOWN if _unknown(value) else _signed(float(value), digits)  # type: ignore[arg-type]


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share between 0 and 1 in percent.

    Examples
    --------
    >>> percent(0.1234), percent(0.95, 0), percent(None)
    ('12.3%', '95%', 'not known')
    """
    return NOT_KNOWN if _unknown(value) else _minus(f"{value:,.{digits}%}")


def percentage_points(value: float | None, digits: int = 1) -> str:
    """Return the difference of two shares in percentage points, with its sign.

    Examples
    --------
    >>> percentage_points(-0.031), percentage_points(0.0004)
    ('−3.1 points', '0.0 points')
    """
    if _unknown(value):
        return NOT_KNOWN
    return f"{_signed(100 * float(value), digits)} points"  # type: ignore[arg-type]


def points(value: float | None) -> str:
    """Return the points of a scorecard term: a sign and three significant digits.

    A whole number has no decimals.

    Examples
    --------
    >>> points(0.61249), points(-0.00412), points(12.0), points(0.0)
    ('+0.612', '−0.00412', '+12', '0')
    >>> points(-3.2e-11)
    '−3.20e−11'
    """
    if _unknown(value):
        return NOT_KNOWN
    if not value:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    if digits > 9:
        return _minus(f"{value:+.2e}")
    return _signed(float(value), 0 if float(value).is_integer() else digits)


def of_hundred(value: float | None) -> str:
    """Return a share as people out of 100; one decimal only below 1 and above 99.

    Examples
    --------
    >>> of_hundred(0.423), of_hundred(0.004), of_hundred(0.0)
    ('42', '0.4', '0')
    """
    if _unknown(value):
        return NOT_KNOWN
    people = 100 * float(value)  # type: ignore[arg-type]
    is_near_end = 0 < people < 1 or 99 < people < 100
    return f"{people:.1f}" if is_near_end else f"{people:.0f}"


def estimate(figure: WithInterval | None, kind: str = "percent", digits: int | None = None) -> str:
    """Return a figure and its interval; `kind` is "percent", "points" or "number".

    Examples
    --------
    >>> from commod._record import Estimate
    >>> estimate(Estimate(0.423, 0.391, 0.456))
    '42.3% (39.1% to 45.6%)'
    >>> estimate(Estimate(0.8, 0.71, None), "number"), estimate(Estimate(None, None, None))
    ('0.80 (at least 0.71)', 'not known')
    """
    if figure is None or _unknown(figure.value):
        return NOT_KNOWN
    write = {"percent": percent, "points": percentage_points, "number": number}[kind]
    value, low, high = (
        NOT_KNOWN if part is None else write(part) if digits is None else write(part, digits)
        for part in (figure.value, figure.low, figure.high)
    )
    if figure.low is None and figure.high is None:
        return value
    if figure.high is None:
        return f"{value} (at least {low})"
    return f"{value} (at most {high})" if figure.low is None else f"{value} ({low} to {high})"


def _unknown(value: float | None) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _signed(value: float, digits: int) -> str:
    text = f"{value:+,.{digits}f}"
    return text[1:] if not text.strip("+-0.,") else _minus(text)


def _minus(text: str) -> str:
    return text.replace("-", "−") if text.strip("-0.,%") else text.replace("-", "")


# ---------------------------------------------------------------------------------------------
# Write how people whose decision changes score beside people whose decision stays

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
