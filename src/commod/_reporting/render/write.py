"""A report on disk: the suffix says which kind; it is there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from commod._io.files import write_whole
from commod._record import Audit, TradeOff
from commod._reporting.render.markdown import render_markdown
from commod._reporting.render.page import render_html
from commod.exceptions import InputError, InputTypeError

__all__ = ["report"]


def report(audit: Audit, path: str | os.PathLike[str], *, frontier: Any = None) -> Path:
    """Write what an audit found as one file that people can read, sign and keep.

    Parameters
    ----------
    audit : Audit
        What `commod.audit` returned.
    path : str or path
        The suffix decides: ``.html`` is one page that needs no network and no other file, ``.md``
        is Markdown, ``.json`` is the audit itself, for `Audit.from_json`. An existing file is
        replaced; if anything fails, it stays as it was.
    frontier : Frontier or TradeOff, default=None
        What `commod.frontier` returned: its steps are shown with their changes, segments and
        scorecards, in HTML along a slider, in Markdown as a table. JSON stays the audit alone.
        A frontier that has not been asked for its segments yet seeks them first.

    Returns
    -------
    Path
        Where the report is.

    Examples
    --------
    >>> from commod import audit, report
    >>> found = audit([0, 0, 1, 1] * 50, [0, 1, 1, 1] * 50, sensitive_features=["a", "b"] * 100)
    >>> folder = getfixture("tmp_path")
    >>> report(found, folder / "report.html").name
    'report.html'
    """
    place = Path(path)
    kind = place.suffix.lower()
    if kind not in (".html", ".md", ".json"):
        raise InputError(
            f"A report ends in .html, .md or .json; got {place.name!r}. Name it for example "
            f"{place.stem or 'report'}.html."
        )
    if not isinstance(audit, Audit):
        raise InputTypeError(
            f"report needs an Audit; got {type(audit).__name__}. Make one with "
            "commod.audit(y_before, y_after, sensitive_features=…) or Audit.from_json."
        )
    trade_off = _trade_off(frontier)
    if trade_off is not None and trade_off.constraints != audit.request.constraints:
        raise InputError(
            f"The frontier trades {trade_off.constraints} and the audit asked for "
            f"{audit.request.constraints}: pass a frontier of the same constraint."
        )
    if kind == ".html":
        text = render_html(audit, trade_off)
    else:
        text = render_markdown(audit, trade_off) if kind == ".md" else audit.to_json()
    # A lone surrogate cannot be encoded; written as \udc80 JSON reads it back, others show it.
    return write_whole(place, text.encode("utf-8", "backslashreplace"))


def _trade_off(frontier: Any) -> TradeOff | None:
    if frontier is None or isinstance(frontier, TradeOff):
        return frontier
    make = getattr(frontier, "trade_off", None)
    found = make() if callable(make) else None
    if not isinstance(found, TradeOff):
        raise InputTypeError(
            "frontier must be what commod.frontier returns, or None; got "
            f"{type(frontier).__name__}."
        )
    return found
