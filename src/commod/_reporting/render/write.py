"""Write a report to a file; the suffix decides whether it is HTML, Markdown or JSON."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from commod._io.files import write_whole
from commod._record import Audit, TradeOff
from commod._reporting.render.markdown import render_markdown
from commod._reporting.render.page import render_html
from commod.exceptions import InputError, InputTypeError


def report(audit: Audit, path: str | os.PathLike[str], *, frontier: Any = None) -> Path:
    """Write an audit as one file that people can read, sign and keep.

    Parameters
    ----------
    audit : Audit
        The result of `commod.audit`.
    path : str or path
        The suffix decides the format. ``.html`` is one page that needs no network and no other
        file. ``.md`` is Markdown. ``.json`` is the audit itself, for `Audit.from_json`. An existing
        file is replaced; if anything fails, it stays as it was.
    frontier : Frontier or TradeOff, default=None
        The result of `commod.frontier`. The report shows its steps with their changes, segments
        and scorecards: in HTML along a slider, in Markdown as a table. JSON has the audit alone.
        If the segments of the frontier are not known yet, they are searched for first.

    Returns
    -------
    Path
        The path of the report.

    Examples
    --------
    >>> import commod
    >>> decisions = [0, 0, 1, 1] * 50, [0, 1, 1, 1] * 50
    >>> audit = commod.audit(*decisions, sensitive_features=["a", "b"] * 100)
    >>> folder = getfixture("tmp_path")
    >>> commod.report(audit, folder / "report.html").name
    'report.html'
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in (".html", ".md", ".json"):
        raise InputError(
            f"A report ends in .html, .md or .json; got {target.name!r}. Name it for example "
            f"{target.stem or 'report'}.html."
        )
    if not isinstance(audit, Audit):
        raise InputTypeError(
            f"report needs an Audit; got {type(audit).__name__}. Make one with "
            "commod.audit(y_before, y_after, sensitive_features=…) or Audit.from_json."
        )
    trade_off = _trade_off(frontier)
    if trade_off is not None and trade_off.constraints != audit.request.constraints:
        raise InputError(
            f"The frontier is for {trade_off.constraints}, but the audit is for "
            f"{audit.request.constraints}: pass a frontier of the same constraint."
        )
    if suffix == ".html":
        text = render_html(audit, trade_off)
    else:
        text = render_markdown(audit, trade_off) if suffix == ".md" else audit.to_json()
    # UTF-8 has no lone surrogates. Written as \udc80, JSON reads them back and others show them.
    return write_whole(target, text.encode("utf-8", "backslashreplace"))


def _trade_off(frontier: Any) -> TradeOff | None:
    if frontier is None or isinstance(frontier, TradeOff):
        return frontier
    method = getattr(frontier, "trade_off", None)
    trade_off = method() if callable(method) else None
    if not isinstance(trade_off, TradeOff):
        raise InputTypeError(
            "frontier must be what commod.frontier returns, or None; got "
            f"{type(frontier).__name__}."
        )
    return trade_off
