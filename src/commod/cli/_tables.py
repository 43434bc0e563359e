"""Tables that stay in their engine: open their files, check columns, leave out incomplete rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw

from commod._data.frames import as_number, counts_in, number_column
from commod._io.queries import translated_errors
from commod._io.tables import StoredTable, open_spark, open_tables
from commod._text import did_you_mean, list_names, n_of
from commod.cli._command import named_columns
from commod.cli._engines import engine_name, spark_master
from commod.cli._options import Options
from commod.cli._printing import Printer
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod import Patch

PREFIX = "_commod_check_"  # a table with the columns of `commod apply` can be checked too


def open_table(
    files: Sequence[str], options: Options, printer: Printer, **hints: Any
) -> StoredTable:
    """Return the table in the files, in Spark if --engine says so, and else in DuckDB.

    `hints` are further parameters of `open_tables`.
    """
    if engine_name(options.engine) == "spark":
        for name, value in (("--type", options.types), ("--csv", options.csv)):
            if value:
                raise InputError(
                    f"{name} does not go with --engine spark: Spark takes the types of the Parquet "
                    "files. Write the column in the type that you mean, or pass --engine duckdb."
                )
        with printer.spinner("starting Spark"):
            return open_spark(files, spark_master(options.engine))
    with printer.progress("reading") as progress:
        hints = {**options.text_format, **hints}
        return open_tables(files, types=options.column_types, progress=progress, **hints)


def score_of(patch: Patch, options: Options) -> str:
    """Return the column of scores: as stated, else the one that the update was fitted on."""
    return options.score or patch.content.base.score or "score"


def patch_column_kinds(patch: Patch, score: str, label: str | None = None) -> dict[str, str]:
    """Return the kind that a patch expects of each column, whatever the rows of a file look like.

    A batch in which all postcodes happen to be plain numbers still holds postcodes.
    """
    kinds = {score: "number"}
    for column in patch.content.ratio.columns:
        if column.reads in ("number", "bins"):
            kinds[column.name] = "number"
        elif column.reads == "category":
            types = {type(category.value) for category in column.categories}
            if types == {str}:
                kinds[column.name] = "text"
            elif types == {bool}:
                kinds[column.name] = "boolean"
    if label is not None:
        label_type = type(patch.content.labels.positive)
        kinds[label] = {str: "text", bool: "boolean"}.get(label_type, "number")
    return kinds


def few_scores(table: StoredTable, score: str, fitted_on: str | None) -> str:
    """Return why most rows would get no decision; empty if at least half of them have a score.

    `fitted_on` is the column of scores that the update was fitted on.
    """
    frame: Any = nw.from_native(table.relation)
    value = number_column("score", score, frame.collect_schema()[score])
    where = {
        "valid": (value >= 0) & (value <= 1),
        "percent": (value > 1) & (value <= 100),
        "known": ~value.is_null(),
        "below": value < 0,
    }
    with translated_errors():
        counted = frame.select(**{name: as_number(is_it).sum() for name, is_it in where.items()})
        valid, percent, known, below = counts_in(counted.collect())
    if 2 * valid >= table.n_rows:
        return ""
    n_missing, n_outside = table.n_rows - known, known - valid
    cause = "Its values are on another scale"
    if n_missing >= n_outside:
        cause = "Most of the others are missing: drop these rows"
    elif below:
        cause = "It may hold margins: make probabilities of them, 1 / (1 + exp(-margin))"
    elif percent == n_outside:
        cause = "It may hold percentages: divide them by 100"
    other = ""
    if fitted_on not in (None, score) and fitted_on in table.names:
        other = f" The update was fitted on {fitted_on!r}."
    return (
        f"Only {valid:,} of {table.n_rows:,} rows have a score between 0 and 1 in column "
        f"{score!r}, and all others would get no decision. So nothing was written. {cause}; or "
        f"name another column with --score.{other}"
    )


def check_columns(
    table: StoredTable, options: Options, more: Iterable[tuple[str, str]] = ()
) -> None:
    """Refuse a column that the table does not have; `more` are columns and what names them."""
    conditions = options.requirements.columns if options.constraint else ()
    within = [("--constraint: the column within", name) for name in conditions]
    for option, name in [*named_columns(options), *within, *more]:
        if name not in table.names:
            shown = f"{table.display_name} (columns: {list_names(table.names)})"
            suggestion = did_you_mean(name, table.names)
            raise InputError(f"{option} {name!r} is no column of {shown}.{suggestion}")


def complete_rows(table: StoredTable, options: Options, printer: Printer) -> StoredTable:
    """Return the rows whose group and label are known, and at least one of the decisions.

    Rows without any decision are left out with a note. Rows without a group or label are left out
    with --drop-missing only; otherwise they are an error. With --unknown-groups ignore, rows
    without a group stay.
    """
    frame: Any = nw.from_native(table.relation)
    decisions = [name for name in (options.before, options.after) if name is not None]
    if decisions:
        undecided = nw.all_horizontal(*(nw.col(d).is_null() for d in decisions), ignore_nulls=False)
        frame = leave_out(frame, undecided, "a decision before and after", printer)
    groups = [] if options.unknown_groups == "ignore" else options.sensitive
    for name in (*groups, *([options.label] if options.label else ())):
        is_missing = nw.col(name).is_null()
        if options.drop_missing:
            frame = leave_out(frame, is_missing, name, printer)
        elif n_missing := count_rows(frame, is_missing):
            keep = " To keep people of unknown groups, pass --unknown-groups ignore."
            raise InputError(
                f"Column {name!r} is missing in {n_missing:,} of {table.n_rows:,} rows, but labels "
                "and groups must be known. Fill it in, or drop such rows with --drop-missing."
                f"{keep if name in groups else ''}"
            )
    return table.with_relation(frame.to_native())


def with_decisions(patch: Patch, frame: Any, score: str) -> Any:
    """Return the frame with the base decision, and the decision and score after the patch.

    The names of the new columns begin with `PREFIX`.
    """
    labels = patch.content.labels
    edited: Any = nw.from_native(patch.apply(frame, score, prefix=PREFIX))
    after, changed = nw.col(PREFIX + "decision"), nw.col(PREFIX + "changed")
    is_positive = after == labels.positive
    other = nw.when(is_positive).then(nw.lit(labels.negative)).otherwise(nw.lit(labels.positive))
    before = nw.when(changed).then(other).otherwise(after)
    return edited.with_columns(before.alias(PREFIX + "before")).to_native()


def columns_of_decisions(score: str) -> dict[str, Any]:
    """Return the columns of `with_decisions` as parameters of `audit_frame`."""
    return {
        "before": PREFIX + "before",
        "after": PREFIX + "decision",
        "scores_before": score,
        "scores_after": PREFIX + "score",
    }


def leave_out(frame: Any, condition: Any, missing: str, printer: Printer) -> Any:
    """Return the rows for which a condition does not hold; print how many the others are."""
    n_rows = count_rows(frame, condition)
    if not n_rows:
        return frame
    was = "was" if n_rows == 1 else "were"
    printer.note(f"{n_of(n_rows, 'row')} without {missing} {was} left out.")
    return frame.filter(~condition)


def count_rows(frame: Any, condition: Any) -> int:
    """Return the number of rows for which a condition holds."""
    ones = nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0)).sum()
    return counts_in(frame.select(n=ones).collect())[0]
