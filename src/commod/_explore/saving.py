"""Make what a user takes away from the page: the patch and the report that belongs to it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from commod._explore.draft import Draft
from commod._record import Audit
from commod._reporting.audit import audit as make_audit
from commod._reporting.render import report
from commod._text import n_of
from commod.patch import Patch

FIT_ROWS = "rows the update was fitted on"


def audit_of(draft: Draft) -> Audit:
    """Return the whole audit of the present update on the rows."""
    explanation, people, update = draft.explanation, draft.base.people, draft.update
    return make_audit(
        explanation.y_before,
        explanation.y_after,
        sensitive_features=people.sensitive_features,
        y_true=people.y,
        X=people.X,
        explanation=explanation,
        label_names=draft.base.label_names,
        rows=FIT_ROWS,
        min_group_size=update.fitted_param("min_group_size"),
        unknown_groups=update.fitted_param("unknown_groups", "error"),
    )


def signed(draft: Draft) -> tuple[Patch, Audit]:
    """Return the patch with the figures of its audit, and the audit; both made once."""
    known = vars(draft).get("_signed")
    if known is None:
        audit = audit_of(draft)
        made = draft.update.to_patch(audit=audit), audit
        # The report and the patch must state the same digests, also where both are asked for at
        # once: the first of two threads decides.
        known = vars(draft).setdefault("_signed", made)
    return known


def patch_bytes(draft: Draft) -> dict[str, Any]:
    """Return the patch file as text, and its SHA-256."""
    patch, _ = signed(draft)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "patch.json"
        patch.save(path)
        return _file(path, patch)


def report_bytes(draft: Draft) -> dict[str, Any]:
    """Return the report as the text of one HTML page."""
    patch, audit = signed(draft)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        report(audit, path, patch=patch)
        return _file(path, patch)


def _file(path: Path, patch: Patch) -> dict[str, Any]:
    edits = n_of(len(patch.history), "recorded edit")
    text = path.read_text("utf-8")
    return {"name": path.name, "text": text, "sha256": patch.sha256, "edits": edits}
