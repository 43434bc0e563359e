"""A patch and an audit of the same made-up update, without a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from patch_files import content_of, mixed_patch
from tests._reporting import audits

from commod import Patch
from commod._data.columns import iter_columns
from commod._record.edits import EditRecord, Round, SetPoints
from commod._reporting.explain.decisions import make_card
from commod.patch.content import PatchEdit, editable_parts, figures_of_edit, scorecard_of

ROWS = pd.DataFrame(
    {
        "income": [1.5, np.nan, 2.5, -1.0] * 3,
        "age": [20.0, 30.0, 41.0, np.nan] * 3,
        "job": ["clerk", "nurse", None, ""] * 3,
        "member": [True, False, True] * 4,
    }
)


def tied(content, **changes):
    """Return the patch of a content, tied to an audit of it; `changes` are fields of the audit."""
    asked = content.asked
    card = scorecard_of(content)
    rows = ROWS[[name for name in ROWS if name in {c.name for c in content.ratio.columns}]]
    terms = card.encoding.encode(list(iter_columns(rows, unread=[]))) if len(rows.columns) else None
    record = None
    if terms is not None:
        half = np.arange(len(ROWS)) % 2 == 0
        record = make_card(card, terms, half, ~half, content.ratio.max_margin)
    request = replace(
        audits.audit().request,
        constraints=asked.constraints,
        target=asked.target,
        direction=asked.direction,
        further=asked.further,
        points=asked.points,
        max_accuracy_loss=asked.max_accuracy_loss,
        pos_label=content.labels.compared,
        favorable_label=content.labels.favorable,
        threshold=content.base.threshold,
    )
    edits = tuple(edit.record for edit in content.history)
    audit = audits.audit(**{"request": request, "card": record, "edits": edits, **changes})
    return Patch(replace(content, audit=None)).with_audit(audit), audit


def edited(content):
    """Return a content with two edits by hand in its history."""
    history = []
    for when, by, edits in (
        ("2026-01-02T03:04:05+00:00", "Ann", (Round(0.5),)),
        ("2026-01-03T03:04:05+00:00", "Ben", (SetPoints("job = clerk", -2.0),)),
    ):
        figures = figures_of_edit(content.reached)
        record = EditRecord(when, by, f"{by} said so", edits, "keep", False, (), figures, figures)
        history.append(PatchEdit(record, editable_parts(content)))
    return replace(content, history=tuple(history))


__all__ = ["ROWS", "content_of", "edited", "mixed_patch", "tied"]
