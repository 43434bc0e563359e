"""`commod compare`: fit several methods on one table and compare them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from commod.cli._command import with_options
from commod.cli._engines import check_engine
from commod.cli._options import Options
from commod.cli._printing import Printer
from commod.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd

    from commod import Comparison
    from commod.cli._rows import LoadedRows, TableReader

PICTURES = (".png", ".svg", ".pdf")
QUICK = ("ControlledDebiaser", "RejectOption", "MinimalFlip", "LPP", "RelaxedThresholdOptimizer")


@with_options(
    "commod compare train.csv --label y --sensitive race --score-column f",
    "commod compare train.csv --label y --sensitive race --score-column f --method "
    "ControlledDebiaser --method COMMOD --at-least 0.8 --picture methods.png",
)
def compare(options: Options) -> None:
    """Print how many decisions each method changes for the same fairness, and the exact limit.

    Methods need rows in memory. A large table is compared on a random sample of its rows.
    """
    from commod._io.tables import check_outputs
    from commod.cli._rows import TableReader, check_test_size

    printer = Printer(options)
    stated = options.requirements
    test_size = check_test_size(0.3 if options.test_size is None else options.test_size)
    _check_methods(options.methods)
    check_engine(options.engine, {})
    written = [(options.figures, (".csv",)), (options.picture, PICTURES)]
    check_outputs(written, options.force, inputs=[*options.files, options.model])
    rows = _read(TableReader(options, printer))
    fit_rows, test_rows = rows.split(test_size, options.seed)
    updates = _updates(rows, options)
    comparison = _compare(updates, fit_rows, test_rows if test_size else None, printer)
    needed = comparison.changes_needed(None if stated.bounds[0] is None else [stated.bounds[0]])
    _print(printer, needed, f"{len(test_rows):,} {'rows held out' if test_size else 'fit rows'}")
    if standing := [part.text for part in stated.parts[1:]]:
        printer.note(f"Only updates that also keep {' and '.join(standing)} are counted.")
    _write(comparison, options, printer)
    records = needed.reset_index().to_dict("records")
    printer.json(
        {
            "metric": needed.columns.name,
            "standing": standing,
            "changes_needed": [
                {str(k): None if v != v else v for k, v in row.items()} for row in records
            ],
            "failures": comparison.failures,
        }
    )


def _read(reader: TableReader) -> LoadedRows:
    """Return the rows of a table; a sample of a large one."""
    with reader.open() as table:
        choice = reader.choose(table, {})
        if choice.in_memory:
            return reader.load(table)
        with reader.printer.spinner("drawing rows"):
            in_engine = reader.leave_in_engine(table)
            rows = in_engine.sample(reader.options.seed)
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


def _updates(rows: LoadedRows, options: Options) -> dict[str, Any]:
    from commod.rivals import lineup

    known = lineup(
        rows.estimator,
        constraints=options.constraints_and_target()["constraints"],
        threshold=options.threshold,
        random_state=options.seed,
        **options.label_parameters(rows.labels),
    )
    for name in options.methods:
        if name in known.left_out:
            raise InputError(f"--method {name!r} does not fit: {known.left_out[name]}")
    updates = {name: known[name] for name in options.methods or [n for n in QUICK if n in known]}
    for update in updates.values():
        if "locked_features" in update.get_params():
            update.set_params(locked_features=rows.locked)
    return updates


def _compare(
    updates: dict[str, Any], fit_rows: LoadedRows, test_rows: LoadedRows | None, printer: Printer
) -> Comparison:
    import commod

    evaluated = {} if test_rows is None else test_rows.named("_eval")
    with printer.library_call():
        return commod.compare(
            updates, **fit_rows.named(), **evaluated, progress=printer.library_progress
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


def _write(comparison: Comparison, options: Options, printer: Printer) -> None:
    from commod._io.files import write_whole, written_together

    with written_together():
        if options.figures is not None:
            write_whole(options.figures, comparison.frame().to_csv(index=False).encode())
        if options.picture is not None:
            buffer = io.BytesIO()
            picture_format = options.picture.suffix.lstrip(".") or "png"
            comparison.plot().savefig(buffer, format=picture_format, dpi=150)
            write_whole(options.picture, buffer.getvalue())
    for name, path in (("Figures", options.figures), ("Picture", options.picture)):
        if path is not None:
            printer.sentence(f"{name}: {path}")
