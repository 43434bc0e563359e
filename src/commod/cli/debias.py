"""`commod debias`: find the fewest changes that meet a constraint; write a patch and a report."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import typer

from commod._text import codes_text, most_change_text
from commod.cli import _options as options
from commod.cli._command import with_options
from commod.cli._debias_job import (
    DebiasColumns,
    DebiasConstraint,
    DebiasOutput,
    Fitted,
    Job,
    Studies,
    make_studies,
    rows_text,
    title_of,
)
from commod.cli._engines import EngineOptions
from commod.cli._printing import Printer, changes_most, print_audit, target_holds

if TYPE_CHECKING:
    from commod import Audit, ControlledDebiaser, Patch
    from commod.cli._frame_rows import FrameRows
    from commod.cli._rows import LoadedRows, TableReader
    from commod.cli._tables import OpenTable

EXAMPLES = (
    "commod debias train.csv --label y --sensitive race --score-column f --at-least 0.8",
    "commod debias 'train/*.parquet' --label y --sensitive race --sensitive sex --model "
    "model.skops --constraint 'equalized odds <= 0.1' --report report.html",
    "commod debias train.csv --label y --sensitive sex --score-column f --direction "
    "gains_only --favorable 0 --test-size 0.3",
)

IN_ENGINE = "counts all rows where they are (see the page More than one machine)"


@with_options
def command(
    files: options.Files,
    columns: DebiasColumns,
    model: options.ModelOptions,
    constraint: DebiasConstraint,
    table: options.TableOptions,
    engine: EngineOptions,
    names: options.NameOptions,
    output: DebiasOutput,
    min_group_size: options.MinGroupSize = 30,
    test_size: options.TestSize = 0.0,
    seed: options.Seed = 0,
) -> None:
    """Find the fewest changes that make a scored table fairer, and write them as a patch.

    Exit code 0: the target is expected on new people, with --test-size it also holds on the
    held-out rows. 1: it is not, and the closest update was written, or more than half of all
    decisions change. 2: bad input.
    """
    from commod._io.tables import check_outputs
    from commod.cli import _rows

    printer = Printer(output)
    sizes = min_group_size, test_size, seed
    job = Job(columns, model, constraint, names, output, printer, *sizes)
    constraint.parameters()
    _rows.check_test_size(test_size)
    output.check_studies()
    engine.check(job.needs())
    endings = ((".json",), options.REPORTS, (".csv",))
    outputs = zip(output.files.values(), endings, strict=True)
    check_outputs(outputs, output.force, inputs=[*files, model.model])
    conditions = constraint.requirements.columns
    reader = _rows.TableReader(files, columns, model, table, printer, conditions)
    fitted = _read_and_fit(job, reader, engine)
    # before anything is printed: the reader of a pipe may be gone
    _write(fitted.patch, fitted.audit, output, fitted.studies)
    for problem in fitted.problems:
        printer.warn(problem)
    is_met = _print(fitted, job)
    printer.json(_summary(fitted, output, is_met))
    if not is_met:
        raise typer.Exit(1)


def _read_and_fit(job: Job, reader: TableReader, engine: EngineOptions) -> Fitted:
    """Return the update, fitted in memory or where the rows are."""
    from commod._io.tables import SourceTable

    with reader.open(engine) as table:
        choice = engine.choose(reader.size(table), job.needs())
        if text := choice.text(IN_ENGINE):
            job.printer.note(text)
        if not choice.in_memory:
            return _fit_in_engine(job, reader, table)
        assert isinstance(table, SourceTable)
        rows = reader.load(table)
    return _fit_in_memory(job, rows)


def _fit_in_memory(job: Job, rows: LoadedRows) -> Fitted:
    from commod.cli import _rows

    printer, output = job.printer, job.output
    rows = rows.with_group_names(job.names)
    _rows.check_group_not_determined(rows)
    label_names = job.names.labels(rows.labels)
    fit_rows, test_rows = rows.split(job.test_size, job.seed)
    task = f"looking for the fewest changes ({len(fit_rows):,} rows)"
    with printer.library_call(), printer.spinner(task):
        update = job.update(fit_rows).fit(
            fit_rows.X, fit_rows.y, sensitive_features=fit_rows.groups
        )
    patch, audit, studies = update.to_patch(), None, Studies(None, None)
    if job.wants_audit:
        held_out = test_rows if job.test_size else None
        studies = make_studies(update, fit_rows, held_out, output, printer, job.seed)
        audit = _audit(job, update, fit_rows, held_out, studies, label_names)
        patch = patch.with_audit(audit)
    problems = patch.verify(fit_rows.X, fit_rows.groups).problems
    return Fitted(update, patch, audit, studies, problems)


def _audit(
    job: Job,
    update: ControlledDebiaser,
    fit_rows: LoadedRows,
    held_out: LoadedRows | None,
    studies: Studies,
    label_names: dict[Any, str] | None,
) -> Audit:

    import commod

    rows = fit_rows if held_out is None else held_out
    with job.printer.library_call(), job.printer.spinner("auditing"):
        explanation = commod.explain(update, rows.X)
        return commod.audit(
            explanation.y_before,
            explanation.y_after,
            sensitive_features=rows.groups,
            y_true=rows.y,
            X=rows.X,
            explanation=explanation,
            stability=studies.stability,
            label_names=label_names,
            rows=rows_text(update, is_held_out=held_out is not None),
            title=title_of(rows.files),
            min_group_size=update.min_group_size,
            unknown_groups=update.unknown_groups,
            blind_limit=job.output.blind_limit,
        )


def _fit_in_engine(job: Job, reader: TableReader, table: OpenTable) -> Fitted:
    """Return the update that the options ask for, fitted in the engine of the table."""
    from commod.cli._frame_rows import read_in_engine
    from commod.cli._rows import check_group_not_determined

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
        return _fit_scored(job, rows, sample, label_names)


def _fit_scored(
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
            audit = _audit_in_engine(job, update, patch, test_rows, label_names)
        patch = patch.with_audit(audit)
    checked = verify_against(patch.content, sample.X, sample.groups, None, rows_are_sample=True)
    return Fitted(update, patch, audit, Studies(frontier, None), checked.problems)


def _audit_in_engine(
    job: Job,
    update: ControlledDebiaser,
    patch: Patch,
    rows: FrameRows,
    label_names: dict[object, str] | None,
) -> Audit:
    from commod import audit_frame
    from commod.cli._tables import PREFIX, with_decisions

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


def _write(patch: Patch, audit: Audit | None, output: DebiasOutput, studies: Studies) -> None:
    import commod
    from commod._io.files import written_together

    with written_together():
        if audit is not None and output.ledger is not None:
            audit.ledger.to_csv(output.ledger)
        if audit is not None and output.report is not None:
            commod.report(audit, output.report, frontier=studies.frontier, patch=patch)
        patch.save(output.out)  # last: a patch file means that the other files exist too


def _print(fitted: Fitted, job: Job) -> bool:
    """Print the result; return whether the target is met."""
    update, patch, audit = fitted.update, fitted.patch, fitted.audit
    printer, output = job.printer, job.output
    printer.sentence(update.status_, bold=True)
    if audit is not None:
        print_audit(printer, audit)
    elif update.confidence is None:
        printer.sentence("Measured on the fit rows. --test-size 0.3 would hold out some rows.")
    printer.sentence(f"Patch: {output.out} (SHA-256 {patch.sha256})")
    if audit is not None and output.ledger is not None:
        changes = f"{len(audit.ledger):,} changes"
        if len(audit.ledger) != audit.changes.n_changes:
            changes = "all changes, those in groups that no total counts among them"
        printer.sentence(f"Ledger of {changes}: {output.ledger}")
    if output.report is not None:
        printer.sentence(f"Report: {output.report}")
    if codes := update.possible_codes_:
        printer.note(codes_text(codes, f"pass --type {shlex.quote(f'{codes[0]}=text')}"))
    is_met = bool(update.reached_) and update.promised_ is not False
    is_met = is_met and not most_change_text(update.change_rate_)
    if audit is not None and job.test_size:
        is_met = is_met and target_holds(audit) is not False and not changes_most(audit)
    return is_met


def _summary(fitted: Fitted, output: DebiasOutput, is_met: bool) -> dict[str, Any]:
    from commod._record import to_plain
    from commod._reporting.explain.explanation import expected_of

    update, patch, audit = fitted.update, fitted.patch, fitted.audit
    return {
        "constraint_met": is_met,
        "status": update.status_,
        "groups_left_out": to_plain(update.groups_left_out_),
        "asked": to_plain(patch.content.asked),
        "reached": to_plain(patch.content.reached),
        "expected": to_plain(expected_of(update)),
        "columns": [column.name for column in patch.content.ratio.columns],
        "sha256": patch.sha256,
        "written": {name: str(path) for name, path in output.files.items() if path is not None},
        "audit": None if audit is None else audit.to_dict(),
    }
