"""Numbers, tables and pictures as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd

NOTHING = "–"


def number(value: Any, digits: int = 3) -> str:
    """Return a number with fixed digits, or a dash for a missing number.

    Examples
    --------
    >>> number(0.12345), number(-0.0001), number(float("nan"))
    ('0.123', '0.000', '–')
    """
    if pd.isna(value):
        return NOTHING
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not float(text) else text  # avoids "-0.000"


def spread(mean: Any, sd: Any, digits: int = 3) -> str:
    """Return mean ± standard deviation over splits; with one split, return the mean alone."""
    if pd.isna(mean) or pd.isna(sd):
        return number(mean, digits)
    return f"{number(mean, digits)} ± {number(sd, digits)}"


def table(header: Sequence[str], lines: Iterable[Sequence[Any]], *, numbers: bool = True) -> str:
    """Return a Markdown table; `numbers` aligns all columns but the first to the right."""
    rule = ["---", *["---:" if numbers else "---"] * (len(header) - 1)]
    rows = [[str(cell) for cell in line] for line in (header, rule, *lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def picture(name: str, alt_text: str, base: str) -> str:
    """Return a picture that links to its vector form."""
    return f"[![{alt_text}]({base}{name}.png)]({base}{name}.svg)"
