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
