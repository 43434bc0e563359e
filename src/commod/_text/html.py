"""Numbers and names as people read them, and a small HTML snippet for notebooks.

What comes from outside (names of groups, columns, categories) passes through `plain` and an escape
before it stands in a page; numbers that are undefined are said to be, never written as 0 or NaN.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from typing import Any, Protocol

__all__ = [
    "NOT_KNOWN",
    "count",
    "estimate",
    "number",
    "of_hundred",
    "percent",
    "percentage_points",
    "plain",
    "points",
    "shorten",
    "snippet",
]

NOT_KNOWN = "not known"


class Estimate(Protocol):
    """A figure and the ends of its interval, as `commod._record.Estimate` has them."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


# C0 and C1 controls, lone surrogates, and characters that turn the direction of what follows:
# invisible, or able to make a name read as another.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2060\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"
)
_LIMIT = 80


# numbers ------------------------------------------------------------------------------------------


def count(value: float | None) -> str:
    """Return a number of people: thousands apart, fractions only where there are some.

    Examples
    --------
    >>> count(12345), count(3.0), count(2.25), count(None)
    ('12,345', '3', '2.2', 'not known')
    """
    if _unknown(value):
        return NOT_KNOWN
    whole = float(value).is_integer()  # type: ignore[arg-type]
    return f"{value:,.0f}" if whole else _minus(f"{value:,.1f}")


def number(value: float | None, digits: int = 2) -> str:
    """Return a number with so many digits behind the point; undefined ones are said to be.

    Examples
    --------
    >>> number(0.8049, 3), number(-1.5), number(float("nan"))
    ('0.805', '−1.50', 'not known')
    """
    return NOT_KNOWN if _unknown(value) else _minus(f"{value:,.{digits}f}")


def percent(value: float | None, digits: int = 1) -> str:
    """Return a share of 1 in percent.

    Examples
    --------
    >>> percent(0.1234), percent(0.95, 0), percent(None)
    ('12.3%', '95%', 'not known')
    """
    return NOT_KNOWN if _unknown(value) else _minus(f"{value:,.{digits}%}")


def percentage_points(value: float | None, digits: int = 1) -> str:
    """Return a difference of two shares, with its sign.

    Examples
    --------
    >>> percentage_points(-0.031), percentage_points(0.0004)
    ('−3.1 points', '0.0 points')
    """
    if _unknown(value):
        return NOT_KNOWN
    return f"{_signed(100 * float(value), digits)} points"  # type: ignore[arg-type]


def points(value: float | None) -> str:
    """Return the points of a scorecard's line: a sign and three digits that count.

    Examples
    --------
    >>> points(0.61249), points(-0.00412), points(12.0), points(0.0)
    ('+0.612', '−0.00412', '+12.0', '0')
    """
    if _unknown(value):
        return NOT_KNOWN
    if not value:
        return "0"
    behind = max(0, min(9, 2 - math.floor(math.log10(abs(value)))))
    return _signed(float(value), behind)


def of_hundred(value: float | None) -> str:
    """Return how many of 100 people: whole people, except very close to nobody or everybody.

    Examples
    --------
    >>> of_hundred(0.423), of_hundred(0.004), of_hundred(0.0)
    ('42', '0.4', '0')
    """
    if _unknown(value):
        return NOT_KNOWN
    hundred = 100 * float(value)  # type: ignore[arg-type]
    near_an_end = 0 < hundred < 1 or 99 < hundred < 100
    return f"{hundred:.1f}" if near_an_end else f"{hundred:.0f}"


def estimate(figure: Estimate | None, kind: str = "percent", digits: int | None = None) -> str:
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


# names --------------------------------------------------------------------------------------------


def plain(text: Any) -> str:
    r"""Return text on one line in which nothing is invisible or turns the reading direction.

    Examples
    --------
    >>> plain("two\nlines"), plain("a\x00b"), plain("\u202egnp"), plain("  ")
    ('two lines', 'a⟨U+0000⟩b', '⟨U+202E⟩gnp', '(blank)')
    """
    one_line = " ".join(str(text).split())
    return _UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", one_line) or "(blank)"


def shorten(text: Any, limit: int = _LIMIT) -> str:
    """Return `plain` text of at most `limit` characters, an ellipsis where some were cut.

    Examples
    --------
    >>> shorten("a" * 100, 10)
    'aaaaaaaaa…'
    """
    clean = plain(text)
    return clean if len(clean) <= limit else clean[: limit - 1].rstrip() + "…"


# the snippet --------------------------------------------------------------------------------------

# The notebook's own colours are inherited, so that light and dark ones both can be read.
_STYLE = """
.commod-snippet{font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:inherit;
 max-width:60em;overflow-wrap:anywhere}
.commod-snippet .commod-title{font-weight:600;font-size:1.1em;margin:0 0 .3em}
.commod-snippet p{margin:.25em 0}
.commod-snippet table{border-collapse:collapse;margin:.7em 0;background:transparent;color:inherit;
 font-variant-numeric:tabular-nums}
.commod-snippet caption{caption-side:top;text-align:left;font-weight:600;padding:.2em 0;
 color:inherit}
.commod-snippet th,.commod-snippet td{padding:.2em .8em .2em 0;text-align:left;vertical-align:top;
 border:0;border-bottom:1px solid rgba(128,128,128,.4);background:transparent;color:inherit}
.commod-snippet .commod-number{text-align:right}
.commod-snippet .commod-code{white-space:nowrap}
"""
_NUMBER = re.compile(r"[+−-]?[\d.,]+%?|not known")


def snippet(
    title: str,
    sentences: Sequence[str],
    tables: Sequence[tuple[str, Sequence[str], Sequence[Sequence[Any]]]] = (),
) -> str:
    """Return a small self-contained piece of HTML for a notebook; every text in it is inert.

    Parameters
    ----------
    title : str
    sentences : sequence of str
        One paragraph each.
    tables : sequence of (caption, header, rows)
        Cells are text or numbers; write numbers with the functions of this module.

    Examples
    --------
    >>> html = snippet("<b>", ["Two & two."], [("Sums", ["a", "b"], [["<i>", 2]])])
    >>> "<b>" in html, "&lt;b&gt;" in html, "&lt;i&gt;" in html
    (False, True, True)
    """
    parts = [
        f"<style>{_STYLE}</style>",
        f'<div class="commod-title">{_bdi(title)}</div>',
        *(f"<p>{_bdi(sentence, 600)}</p>" for sentence in sentences),
        *(_table(*table) for table in tables),
    ]
    return f'<div class="commod-snippet">{"".join(parts)}</div>'


def _table(caption: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    head = "".join(f'<th scope="col">{_bdi(cell)}</th>' for cell in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f"<table><caption>{_bdi(caption, 200)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        value = NOT_KNOWN
    is_number = isinstance(value, int | float) or bool(_NUMBER.fullmatch(str(value)))
    kind = "commod-number" if is_number else "commod-code" if len(str(value)) <= 8 else ""
    return f"<td{f' class={kind}' if kind else ''}>{_bdi(value, 300)}</td>"


def _bdi(text: Any, limit: int = _LIMIT) -> str:
    short, whole = shorten(text, limit), shorten(text, 1000)
    title = "" if short == whole else f' title="{escape(whole)}"'
    return f"<bdi{title}>{escape(short)}</bdi>"
