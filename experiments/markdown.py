"""Numbers, tables and pictures as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

NOTHING = "–"


def number(value: Any, digits: int = 3) -> str:
    """Return a number with fixed digits; a dash for a missing one.

    Examples
    --------
    >>> number(0.12345), number(-0.0001), number(float("nan"))
    ('0.123', '0.000', '–')
    """
    if pd.isna(value):
        return NOTHING
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not float(text) else text  # no minus before a zero


def spread(mean: Any, sd: Any, digits: int = 3) -> str:
    """Return mean ± standard deviation over splits; the mean alone where there is one split."""
    if pd.isna(mean) or pd.isna(sd):
        return number(mean, digits)
    return f"{number(mean, digits)} ± {number(sd, digits)}"


def table(header: Sequence[str], lines: Iterable[Sequence[Any]], *, numbers: bool = True) -> str:
    """Return a Markdown table; all columns but the first are right-aligned if they hold numbers."""
    rule = ["---", *["---:" if numbers else "---"] * (len(header) - 1)]
    rows = [[str(cell) for cell in line] for line in (header, rule, *lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def picture(name: str, says: str, base: str) -> str:
    """Return a picture with a link to its vector form; `says` is the alternative text."""
    return f"[![{says}]({base}{name}.png)]({base}{name}.svg)"
