"""Colours of all pictures, and names as text that matplotlib draws literally."""

from __future__ import annotations

from typing import Any

from commod._text import shorten

BEFORE, AFTER, LOSS = "#9aa5b1", "#1f6f8b", "#c44536"


def bar_style(color: str, hatch: str, edge: str = "white") -> dict[str, Any]:
    """Return the style of bars that a hatch tells apart without colours."""
    return {"color": color, "hatch": hatch, "edgecolor": edge, "linewidth": 0}


LOSS_STYLE = bar_style(LOSS, "///")


def plain_text(name: object, most: int = 32) -> str:
    r"""Return a name on one line, shortened, that matplotlib does not read as a formula.

    Examples
    --------
    >>> print(plain_text("income in $ or $$"))
    income in \$ or \$\$
    >>> plain_text("a long name of a column", most=10)
    'a long na…'
    """
    return shorten(name, most).replace("$", r"\$")
