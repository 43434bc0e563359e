"""Write a report to a file; the suffix decides whether it is HTML, Markdown or JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

from commod._io.files import write_whole
from commod._record import Audit, Shipped, TradeOff
from commod._reporting.render.embedding import report_data, sealed
from commod._reporting.render.page import render_html, render_markdown
from commod.exceptions import InputError, InputTypeError


def report(
    audit: Audit, path: str | os.PathLike[str], *, frontier: Any = None, patch: Any = None
) -> Path:
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
    patch : Patch, default=None
        The patch that ships: `update.to_patch(audit=audit)`, or `patch.with_audit(audit)`. The
        report says what ships: SHA-256 of the patch file, fingerprint of the base model, rows,
        versions, and the gap between the figures of the fit and of the audit. It holds these and
        the audit as JSON, too; a .json report has the audit under "audit". See
        `commod.verify_report`.

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
    shipped = _shipped(patch, audit)
    text = _rendered(suffix, audit, trade_off, shipped)
    # UTF-8 has no lone surrogates. Written as \udc80, JSON reads them back and others show them.
    data = text.encode("utf-8", "backslashreplace")
    return write_whole(target, data if shipped is None else sealed(data))


def _rendered(
    suffix: str, audit: Audit, trade_off: TradeOff | None, shipped: Shipped | None
) -> str:
    if suffix == ".html":
        return render_html(audit, trade_off, shipped)
    if suffix == ".md":
        return render_markdown(audit, trade_off, shipped)
    if shipped is None:
        return audit.to_json()
    data = report_data(audit, shipped)
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False)


def _shipped(patch: Any, audit: Audit) -> Shipped | None:
    """Return what a patch says about itself; a patch of another audit refuses."""
    if patch is None:
        return None
    method = getattr(patch, "shipped_with", None)
    if not callable(method):
        raise InputTypeError(
            "patch must be a Patch, such as update.to_patch(audit=audit), or None; got "
            f"{type(patch).__name__}."
        )
    return cast(Shipped, method(audit))


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
