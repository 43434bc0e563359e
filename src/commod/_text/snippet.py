"""Write small HTML snippets for notebooks."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from typing import Any

from commod._text.names import LIMIT, shorten
from commod._text.numbers import NOT_KNOWN

# Colours are inherited from the notebook, so that the text is readable in light and dark themes.
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
.commod-snippet th{overflow-wrap:normal}
.commod-snippet .commod-number{text-align:right;white-space:nowrap}
.commod-snippet .commod-code{white-space:nowrap}
"""
_NUMBER = re.compile(r"[+−-]?[\d.,]+%?|not known")


Table = tuple[str, Sequence[str], Sequence[Sequence[Any]]]  # caption, header, rows


def snippet(title: str, sentences: Sequence[str], tables: Sequence[Table] = ()) -> str:
    """Return a small self-contained piece of HTML for a notebook; all texts are escaped.

    Parameters
    ----------
    title : str
    sentences : sequence of str
        One paragraph each.
    tables : sequence of (caption, header, rows)
        Cells are text or numbers; write numbers with the functions of `commod._text`.

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


def first_rows(
    caption: str, header: Sequence[str], rows: Sequence[Sequence[Any]], *, most: int, all_in: str
) -> Table:
    """Return a table of the first rows; its caption says how many there are and what has all.

    Examples
    --------
    >>> first_rows("Sums", ["a"], [[1], [2], [3]], most=2, all_in="frame()")
    ('Sums (first 2 of 3; frame() has all)', ['a'], [[1], [2]])
    >>> first_rows("Sums", ["a"], [[1]], most=2, all_in="frame()")
    ('Sums', ['a'], [[1]])
    """
    if len(rows) > most:
        caption += f" (first {most:,} of {len(rows):,}; {all_in} has all)"
    return caption, header, rows[:most]


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


def _bdi(text: Any, limit: int = LIMIT) -> str:
    short, full = shorten(text, limit), shorten(text, 1000)
    title = "" if short == full else f' title="{escape(full)}"'
    return f"<bdi{title}>{escape(short)}</bdi>"
