"""`commod compare`: fit several methods on one table and compare them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from commod.cli import _options as options
from commod.cli._command import option, with_options
from commod.cli._engines import EngineOptions
from commod.cli._printing import Printer
from commod.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd

    from commod import Comparison
    from commod.cli._rows import LoadedRows, TableReader

EXAMPLES = (
    "commod compare train.csv --label y --sensitive race --score-column f",
    "commod compare train.csv --label y --sensitive race --score-column f --method "
    "ControlledDebiaser --method COMMOD --at-least 0.8 --picture methods.png",
)

PICTURES = (".png", ".svg", ".pdf")
QUICK = ("ControlledDebiaser", "RejectOption", "MinimalFlip", "LPP", "RelaxedThresholdOptimizer")


@dataclass(frozen=True, kw_only=True)
class CompareOutput(options.FileOptions):
    """The files to write."""

    out: Path | None = option(None, help="File for the figures of every update (.csv).")
    picture: Path | None = option(None, help="File for a picture (.png, .svg or .pdf).")


@with_options
def command(
    files: options.Files,
    columns: options.ColumnOptions,
    model: options.ModelOptions,
    constraint: options.ConstraintOptions,
    table: options.TableOptions,
    engine: EngineOptions,
    output: CompareOutput,
    method: Annotated[
        list[str] | None,
        typer.Option(help="Name of a method. Can be repeated. \\[default: the quick methods]"),
    ] = None,
    test_size: options.TestSize = 0.3,
    seed: options.Seed = 0,
) -> None:
    """Print how many decisions each method changes for the same fairness, and the exact limit.

    Methods need rows in memory. A large table is compared on a random sample of its rows.
    """
    from commod._io.tables import check_outputs
    from commod.cli import _rows

    printer = Printer(output)
    stated = constraint.requirements
    constraints = constraint.constraints_and_target()["constraints"]
    _rows.check_test_size(test_size)
    _check_methods(method or [])
    engine.check()
    written = [(output.out, (".csv",)), (output.picture, PICTURES)]
    check_outputs(written, output.force, inputs=[*files, model.model])
    reader = _rows.TableReader(files, columns, model, table, printer, stated.columns)
    rows = _read(reader, engine, seed)
    fit_rows, test_rows = rows.split(test_size, seed)
    updates = _updates(
        rows,
        method,
        constraints=constraints,
        threshold=model.threshold,
        random_state=seed,
        **constraint.labels(rows.labels),
    )
    is_held_out = bool(test_size)
    comparison = _compare(updates, fit_rows, test_rows if is_held_out else None, printer)
    needed = comparison.changes_needed(None if stated.bounds[0] is None else [stated.bounds[0]])
    _print(printer, needed, f"{len(test_rows):,} {'rows held out' if is_held_out else 'fit rows'}")
    if standing := [part.text for part in stated.parts[1:]]:
        printer.note(f"Only updates that also keep {' and '.join(standing)} are counted.")
    _write(comparison, output, printer)
    printer.json(
        {
            "metric": needed.columns.name,
            "standing": [part.text for part in stated.parts[1:]],
            "changes_needed": _records(needed),
            "failures": comparison.failures,
        }
    )


def _read(reader: TableReader, engine: EngineOptions, seed: int) -> LoadedRows:
    """Return the rows of a table; a sample of a large one."""
    from commod._io.tables import SourceTable
    from commod.cli._frame_rows import read_in_engine

    with reader.open(engine) as table:
        choice = engine.choose(reader.size(table))
        if choice.in_memory:
            assert isinstance(table, SourceTable)
            return reader.load(table)
        with reader.printer.spinner("drawing rows"):
            in_engine = read_in_engine(reader, table, options.NameOptions())
            rows = in_engine.sample(seed)
    drawn = f"drew {len(rows):,} of {in_engine.n_rows:,} rows"
    reader.printer.note(
        choice.text(f"{drawn}, and all figures and the limit are those of these rows")
    )
    return rows


def _check_methods(names: list[str]) -> None:
    """Refuse unknown methods; call this before any row is read."""
    from commod.rivals import lineup

    methods = lineup(None)
    known = [*methods, *methods.left_out]
    for name in names:
        if name not in known:
            raise InputError(f"--method {name!r} is not known; choose from {', '.join(known)}.")


def _updates(rows: LoadedRows, names: list[str] | None, **parameters: Any) -> dict[str, Any]:
    from commod.rivals import lineup

    known = lineup(rows.estimator, **parameters)
    for name in names or ():
        if name in known.left_out:
            raise InputError(f"--method {name!r} does not fit: {known.left_out[name]}")
    updates = {name: known[name] for name in names or [n for n in QUICK if n in known]}
    for update in updates.values():
        if "locked_features" in update.get_params():
            update.set_params(locked_features=rows.locked)
    return updates


def _compare(
    updates: dict[str, Any], fit_rows: LoadedRows, test_rows: LoadedRows | None, printer: Printer
) -> Comparison:
    import commod

    evaluated: dict[str, Any] = {}
    if test_rows is not None:
        evaluated = {
            "X_eval": test_rows.X,
            "y_eval": test_rows.y,
            "sensitive_features_eval": test_rows.groups,
        }
    with printer.library_call():
        return commod.compare(
            updates,
            fit_rows.X,
            fit_rows.y,
            sensitive_features=fit_rows.groups,
            progress=printer.library_progress,
            **evaluated,
        )


def _print(printer: Printer, needed: pd.DataFrame, rows: str) -> None:
    headings = [str(needed.index.name or "method"), *map(str, needed.columns)]
    cells = [
        [str(name), *map(_share, values)]
        for name, values in zip(needed.index, needed.to_numpy(), strict=True)
    ]
    title = f"Share of decisions changed to reach each {needed.columns.name}, {rows}"
    printer.table(title, headings, cells)


def _share(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not reached" if value != value else f"{value:.2%}"


def _records(needed: pd.DataFrame) -> list[dict[str, Any]]:
    rows = needed.reset_index().to_dict("records")
    return [{str(k): None if v != v else v for k, v in row.items()} for row in rows]


def _write(comparison: Comparison, output: CompareOutput, printer: Printer) -> None:
    import io

    from commod._io.files import write_whole, written_together

    with written_together():
        if output.out is not None:
            write_whole(output.out, comparison.frame().to_csv(index=False).encode())
        if output.picture is not None:
            buffer = io.BytesIO()
            picture_format = output.picture.suffix.lstrip(".") or "png"
            comparison.plot().savefig(buffer, format=picture_format, dpi=150)
            write_whole(output.picture, buffer.getvalue())
    for name, path in (("Figures", output.out), ("Picture", output.picture)):
        if path is not None:
            printer.sentence(f"{name}: {path}")
