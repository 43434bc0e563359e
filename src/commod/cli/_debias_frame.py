"""Fit an update for `commod debias` where the rows are, and audit it there."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from commod.cli._debias_job import Fitted, Job, rows_text, title_of
from commod.cli._frame_rows import FrameRows, read_in_engine
from commod.cli._rows import LoadedRows, TableReader, check_group_not_determined
from commod.cli._studies import Studies
from commod.cli._tables import PREFIX, OpenTable, with_decisions

if TYPE_CHECKING:
    from commod import Audit, ControlledDebiaser, Patch


def fit_in_engine(job: Job, reader: TableReader, table: OpenTable) -> Fitted:
    """Return the update that the options ask for, fitted in the engine of the table."""
    printer = job.printer
    rows = read_in_engine(reader, table, job.names)
    label_names = job.names.labels(rows.labels)
    with printer.spinner("drawing rows"):
        sample = rows.sample(job.seed)
    where = f" in a sample of {len(sample):,} rows" if len(sample) < rows.n_rows else ""
    check_group_not_determined(sample, where)
    with ExitStack() as scores:
        with printer.library_call(), printer.spinner("scoring"):
            rows = scores.enter_context(rows.with_model_scores())
        return _fit(job, rows, sample, label_names)


def _fit(
    job: Job, rows: FrameRows, sample: LoadedRows, label_names: dict[object, str] | None
) -> Fitted:
    """Return the update of rows that have scores, and its audit."""
    from commod import frontier_frame
    from commod.patch.verification import verify_against

    printer = job.printer
    fit_rows, test_rows = rows.split(job.test_size, job.seed)
    task = f"looking for the fewest changes (about {fit_rows.n_rows:,} rows)"
    named: dict[str, Any] = {
        "sensitive_features": list(rows.sensitive),
        "y_true": rows.label,
        "features": list(rows.features),
        "key": rows.key,
    }
    with printer.library_call(), printer.spinner(task):
        update = job.update(fit_rows)
        update.fit_frame(fit_rows.fit_rows, **named)
    patch, audit, frontier = update.to_patch(), None, None
    if job.output.trade_off:
        with printer.library_call(), printer.spinner("fitting other targets"):
            frontier = frontier_frame(update, fit_rows.fit_rows, **named)
    if job.wants_audit:
        with printer.library_call(), printer.spinner("auditing"):
            audit = _audit(job, update, patch, test_rows, label_names)
        patch = patch.with_audit(audit)
    checked = verify_against(patch.content, sample.X, sample.groups, None, rows_are_sample=True)
    return Fitted(update, patch, audit, Studies(frontier, None), checked.problems)


def _audit(
    job: Job,
    update: ControlledDebiaser,
    patch: Patch,
    rows: FrameRows,
    label_names: dict[object, str] | None,
) -> Audit:
    from commod import audit_frame

    score = rows.score
    return audit_frame(
        with_decisions(patch, rows.frame, score),
        before=PREFIX + "before",
        after=PREFIX + "decision",
        sensitive_features=list(rows.sensitive),
        y_true=rows.label,
        scores_before=score,
        scores_after=PREFIX + "score",
        update=update,
        label_names=label_names,
        rows=rows_text(update, is_held_out=bool(job.test_size)),
        title=title_of(rows.files),
        min_group_size=job.min_group_size,
    )
