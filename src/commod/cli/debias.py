"""`commod debias` and `commod explore`: fit an update; write it, or open a page to change it."""

from __future__ import annotations

import shlex
import tempfile
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from commod._words.shared import codes_text, degenerate_check
from commod.cli._command import with_options
from commod.cli._engines import BLIND_LIMIT, check_engine
from commod.cli._options import REPORTS, Options
from commod.cli._printing import Printer, print_audit, target_holds
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod import Audit, ControlledDebiaser, Frontier, Patch
    from commod._io.tables import StoredTable
    from commod.cli._rows import FrameRows, LoadedRows, TableReader

IN_ENGINE = "counts all rows where they are (see the page More than one machine)"


@dataclass
class Fitted:
    """A fitted update with what the command writes and prints about it."""

    update: ControlledDebiaser
    patch: Patch
    audit: Audit | None = None
    frontier: Frontier | None = None
    problems: Sequence[str] = field(default_factory=list)


@with_options(
    "commod debias train.csv --label y --sensitive race --score-column f --at-least 0.8",
    "commod debias 'train/*.parquet' --label y --sensitive race --sensitive sex --model "
    "model.skops --constraint 'equalized odds <= 0.1' --report report.html",
    "commod debias train.csv --label y --sensitive sex --score-column f --direction "
    "gains_only --favorable 0 --test-size 0.3",
)
def debias(options: Options) -> None:
    """Find the fewest changes that make a scored table fairer, and write them as a patch.

    Exit code 0: the target is expected on new people, with --test-size it also holds on the
    held-out rows. 1: it is not, and the closest update was written, or more than half of all
    decisions change. 2: bad input.
    """
    from commod._io.tables import check_outputs
    from commod.cli._rows import TableReader, check_test_size

    printer = Printer(options)
    options.constraints_and_target()
    check_test_size(options.test_size or 0.0)
    _check_studies(options)
    check_engine(options.engine, _needs(options))
    endings = ((".json",), REPORTS, (".csv",))
    outputs = zip(_files(options).values(), endings, strict=True)
    check_outputs(outputs, options.force, inputs=[*options.files, options.model])
    fitted = _read_and_fit(TableReader(options, printer))
    _write(fitted, options)  # before anything is printed: the reader of a pipe may be gone
    for problem in fitted.problems:
        printer.warn(problem)
    is_met = _print(fitted, options, printer)
    printer.json(_summary(fitted, options, is_met))
    if not is_met:
        raise typer.Exit(1)


@with_options(
    "commod explore train.csv --label y --sensitive race --score-column f --at-least 0.8",
    "commod explore train.csv --label y --sensitive sex --model model.skops --direction gains_only "
    "--no-browser",
)
def explore(options: Options) -> None:
    """Fit an update as debias does, and open a page to change it by hand.

    The page is served on this machine only, under an address with a random token. Rows stay here.
    Patch and report are saved from the page. Ctrl-C ends the command, with exit code 0.
    """
    from commod._explore.edits import PeopleOfFit
    from commod._explore.server import open_session, serve
    from commod.cli._rows import TableReader

    printer = Printer(options)
    options.constraints_and_target()
    reader = TableReader(options, printer)
    with reader.open() as table:
        rows = reader.load(table).with_group_names(options)
    people = PeopleOfFit(rows.X, rows.y, rows.groups)
    update = _fitted(options, printer, rows)
    session = open_session(update, people, options.named_labels(rows.labels))
    with serve(session, in_notebook=False, port=options.port) as page:
        for line in page.update.status_.splitlines():
            printer.sentence(line, bold=True)
        printer.sentence(f"Page: {page.url}")
        printer.sentence("Do not share the address. Press Ctrl-C to end.")
        printer.json({"url": page.url})
        with suppress(KeyboardInterrupt), in_browser(page.url, is_wanted=not options.no_browser):
            page.wait()


@contextmanager
def in_browser(url: str, *, is_wanted: bool) -> Iterator[None]:
    """Open the page in the browser, by a file that only this user can read.

    Other users of the machine see the arguments of programs, and the address has the token.
    """
    if not is_wanted:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="commod-") as folder:
        path = Path(folder) / "page.html"
        refresh = f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={escape(url)}">'
        path.write_text(refresh, "utf-8")
        webbrowser.open(path.as_uri())
        yield


# ---------------------------------------------------------------------------------------------
# What the options ask for


def _files(options: Options) -> dict[str, Path | None]:
    """Return the files to write by the name that the JSON object gives them."""
    return {"patch": options.out, "report": options.report, "ledger": options.ledger}


def _check_studies(options: Options) -> None:
    """Refuse studies that no report would show; call this before any row is read."""
    report = options.report
    for name, is_asked in (("--trade-off", options.trade_off), ("--refits", options.refits)):
        if is_asked and report is None:
            raise InputError(f"{name} is shown in a report: pass --report report.html.")
    if options.refits == 1:
        raise InputError("--refits 1: two or more refits are needed to compare them.")
    if options.trade_off and report is not None and report.suffix.lower() == ".json":
        raise InputError(
            f"--trade-off is not part of a JSON report, and --report is {report.name}. "
            "Write an .html or .md report."
        )


def _needs(options: Options) -> dict[str, str]:
    """Return the options that need all rows in memory, each with a way out."""
    needs = {}
    if options.ledger:
        needs["--ledger"] = "Write all decisions with commod apply"
    if options.refits:
        needs["--refits"] = "Leave it out"
    if options.unknown_groups == "ignore":
        way_out = "Give missing groups a value of their own, or pass --drop-missing"
        needs["--unknown-groups ignore"] = way_out
    return needs | BLIND_LIMIT if options.blind_limit else needs


def _wants_audit(options: Options) -> bool:
    """Return whether an audit is printed or written."""
    asked = options.report, options.ledger, options.blind_limit, options.test_size
    return any(asked)


def _update(options: Options, rows: LoadedRows | FrameRows) -> ControlledDebiaser:
    """Return the update that the options ask for, not fitted.

    An option with the name of a parameter is passed on, if the user states it.
    """
    from commod import ControlledDebiaser

    update = ControlledDebiaser(
        rows.estimator,
        locked_features=rows.locked,
        **options.constraints_and_target(),
        **options.label_parameters(rows.labels),
    )
    told = {name: getattr(options, name, None) for name in update.get_params(deep=False)}
    stated = {name: value for name, value in told.items() if value is not None}
    if options.max_lines == 0:
        stated["max_lines"] = None  # no limit
    return update.set_params(**stated)


# ---------------------------------------------------------------------------------------------
# Fit and audit


def _read_and_fit(reader: TableReader) -> Fitted:
    """Return the update, fitted in memory or where the rows are."""
    with reader.open() as table:
        choice = reader.choose(table, _needs(reader.options))
        if text := choice.text(IN_ENGINE):
            reader.printer.note(text)
        if not choice.in_memory:
            return _fit_in_engine(reader, table)
        rows = reader.load(table)
    return _fit_in_memory(reader.options, reader.printer, rows)


def _fitted(options: Options, printer: Printer, rows: LoadedRows) -> ControlledDebiaser:
    task = f"looking for the fewest changes ({len(rows):,} rows)"
    with printer.library_call(), printer.spinner(task):
        update = _update(options, rows)
        return update.fit(rows.X, rows.y, sensitive_features=rows.groups)


def _fit_in_memory(options: Options, printer: Printer, rows: LoadedRows) -> Fitted:
    import commod

    rows = rows.with_group_names(options)
    label_names = options.named_labels(rows.labels)
    fit_rows, measured = rows.split(options.test_size or 0.0, options.seed)
    update = _fitted(options, printer, fit_rows)
    fitted = Fitted(update, update.to_patch())
    if _wants_audit(options):
        stability = _make_studies(fitted, fit_rows, options, printer, measured)
        with printer.library_call(), printer.spinner("auditing"):
            explanation = commod.explain(update, measured.X)
            fitted.audit = commod.audit(
                explanation.y_before,
                explanation.y_after,
                sensitive_features=measured.groups,
                y_true=measured.y,
                X=measured.X,
                explanation=explanation,
                stability=stability,
                label_names=label_names,
                unknown_groups=update.unknown_groups,
                blind_limit=options.blind_limit,
                **_wording(options, update, rows.files),
            )
        fitted.patch = fitted.patch.with_audit(fitted.audit)
    fitted.problems = fitted.patch.verify(fit_rows.X, fit_rows.groups).problems
    return fitted


def _make_studies(
    fitted: Fitted, fit_rows: LoadedRows, options: Options, printer: Printer, measured: LoadedRows
) -> Any:
    """Make the studies that are asked for: set the frontier, return the stability."""
    import commod

    rows: dict[str, Any] = fit_rows.named()
    if options.test_size:
        rows |= measured.named("_eval")
    if options.trade_off:
        with printer.library_call(), printer.spinner("fitting other targets"):
            frontier = commod.frontier(fitted.update, **rows, blind_limit=options.blind_limit)
            frontier.trade_off()
        fitted.frontier = frontier
    if not options.refits:
        return None
    with printer.library_call():
        return commod.stability(
            fitted.update,
            **rows,
            n_refits=options.refits,
            random_state=options.seed,
            progress=printer.library_progress,
        )


def _fit_in_engine(reader: TableReader, table: StoredTable) -> Fitted:
    """Return the update that the options ask for, fitted in the engine of the table."""
    from commod import audit_frame, frontier_frame
    from commod.cli._tables import columns_of_decisions, with_decisions
    from commod.patch.verification import verify_against

    options, printer = reader.options, reader.printer
    rows = reader.leave_in_engine(table)
    label_names = options.named_labels(rows.labels)
    with printer.spinner("drawing rows"):
        sample = rows.sample(options.seed)
    with rows.with_model_scores(printer) as scored:
        fit_rows, measured = scored.split(options.test_size or 0.0, options.seed)
        task = f"looking for the fewest changes (about {fit_rows.n_rows:,} rows)"
        with printer.library_call(), printer.spinner(task):
            update = _update(options, fit_rows).fit_frame(fit_rows.fit_rows, **rows.named())
        fitted = Fitted(update, update.to_patch())
        if options.trade_off:
            with printer.library_call(), printer.spinner("fitting other targets"):
                fitted.frontier = frontier_frame(update, fit_rows.fit_rows, **rows.named())
        if _wants_audit(options):
            with printer.library_call(), printer.spinner("auditing"):
                fitted.audit = audit_frame(
                    with_decisions(fitted.patch, measured.frame, measured.score),
                    sensitive_features=options.sensitive,
                    y_true=options.label,
                    update=update,
                    label_names=label_names,
                    **columns_of_decisions(measured.score),
                    **_wording(options, update, rows.files),
                )
            fitted.patch = fitted.patch.with_audit(fitted.audit)
    content = fitted.patch.content
    checked = verify_against(content, sample.X, sample.groups, None, rows_are_sample=True)
    fitted.problems = checked.problems
    return fitted


def _wording(options: Options, update: ControlledDebiaser, files: Sequence[str]) -> dict[str, Any]:
    """Return parameters of an audit: what the report calls itself and the audited rows."""
    rows = "rows the update was fitted on"
    if options.test_size:
        rows = "rows held out"
    elif update.confidence is not None:
        rows = "rows given to the fit, half of them to test the promise"
    return {
        "rows": rows,
        "title": f"What the update changes in {', '.join(files[:3])}",
        "min_group_size": options.min_group_size,
    }


# ---------------------------------------------------------------------------------------------
# Write and print


def _write(fitted: Fitted, options: Options) -> None:
    import commod
    from commod._io.files import written_together

    audit = fitted.audit
    with written_together():
        if audit is not None and options.ledger is not None:
            audit.ledger.to_csv(options.ledger)
        if audit is not None and options.report is not None:
            commod.report(audit, options.report, frontier=fitted.frontier, patch=fitted.patch)
        fitted.patch.save(options.out)  # last: a patch file means that the other files exist too


def _print(fitted: Fitted, options: Options, printer: Printer) -> bool:
    """Print the result; return whether the target is met."""
    update, audit = fitted.update, fitted.audit
    for line in update.status_.splitlines():
        printer.sentence(line, bold=True)
    if audit is not None:
        print_audit(printer, audit)
    elif update.confidence is None:
        printer.sentence("Measured on the fit rows. --test-size 0.3 would hold out some rows.")
    printer.sentence(f"Patch: {options.out} (SHA-256 {fitted.patch.sha256})")
    if audit is not None and options.ledger is not None:
        changes = f"{len(audit.ledger):,} changes"
        if len(audit.ledger) != audit.changes.n_changes:
            changes = "all changes, those in groups that no total counts among them"
        printer.sentence(f"Ledger of {changes}: {options.ledger}")
    if options.report is not None:
        printer.sentence(f"Report: {options.report}")
    if codes := update.search_.possible_codes:
        printer.note(codes_text(codes, f"pass --type {shlex.quote(f'{codes[0]}=text')}"))
    is_met = bool(update.reached_) and update.promised_ is not False
    if audit is not None and options.test_size:
        is_met = (
            is_met and target_holds(audit) is not False and degenerate_check(audit.checks) is None
        )
    return is_met


def _summary(fitted: Fitted, options: Options, is_met: bool) -> dict[str, Any]:
    from commod._record.plain import to_plain
    from commod._reporting.explain.explanation import expected_of

    update, content, audit = fitted.update, fitted.patch.content, fitted.audit
    return {
        "constraint_met": is_met,
        "status": update.status_,
        "groups_left_out": to_plain(update.groups_left_out_),
        "asked": to_plain(content.asked),
        "reached": to_plain(content.reached),
        "expected": to_plain(expected_of(update)),
        "columns": [column.name for column in content.ratio.columns],
        "sha256": fitted.patch.sha256,
        "written": {name: str(path) for name, path in _files(options).items() if path is not None},
        "audit": None if audit is None else audit.to_dict(),
    }
