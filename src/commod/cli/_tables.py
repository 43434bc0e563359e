"""Tables that stay in DuckDB: open their files, check their columns, leave out incomplete rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw

from commod._io.tables import SourceTable, open_tables
from commod._text import did_you_mean, list_names, n_of
from commod.cli._options import NameOptions, PeopleOptions, TableOptions
from commod.cli._printing import Printer
from commod.exceptions import InputError

if TYPE_CHECKING:
    from commod import Patch


def open_table(
    files: Sequence[str], options: TableOptions, printer: Printer, **hints: Any
) -> SourceTable:
    """Return the table in the files; `hints` are further parameters of `open_tables`."""
    with printer.progress("reading") as progress:
        return open_tables(
            files,
            types=options.corrected_types(),
            delimiter=options.delimiter,
            encoding=options.encoding,
            progress=progress,
            **hints,
        )


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


def check_columns(table: SourceTable, columns: Iterable[tuple[str, str]]) -> None:
    """Refuse a column that the table does not have; `columns` come from `named_columns`."""
    for option, name in columns:
        if name not in table.names:
            shown = f"{table.display_name} (columns: {list_names(table.names)})"
            suggestion = did_you_mean(name, table.names)
            raise InputError(f"{option} {name!r} is no column of {shown}.{suggestion}")


def group_values(
    table: SourceTable, columns: Sequence[str], names: NameOptions
) -> dict[str, list[Any]]:
    """Return the values of each sensitive column; no values where the user names no group."""
    if not names.group_names:
        return {column: [] for column in columns}
    frame: Any = nw.from_native(table.relation)
    values = (frame.select(column).unique().collect()[column] for column in columns)
    return {c: v.drop_nulls().to_list() for c, v in zip(columns, values, strict=True)}


def complete_rows(
    table: SourceTable,
    people: PeopleOptions,
    printer: Printer,
    decisions: Sequence[str] = (),
    *,
    keep_unknown: bool = False,
) -> SourceTable:
    """Return the rows whose group and label are known, and at least one of whose `decisions` is.

    Rows without any decision are left out with a note. Rows without a group or label are left out
    with --drop-missing only; otherwise they are an error. With `keep_unknown`, rows without a group
    stay.
    """
    frame: Any = nw.from_native(table.relation)
    if decisions:
        undecided = nw.all_horizontal(*(nw.col(d).is_null() for d in decisions), ignore_nulls=False)
        frame = _leave_out(frame, undecided, "a decision before and after", printer)
    groups = [] if keep_unknown else people.sensitive
    for name in (*groups, *([people.label] if people.label else ())):
        is_missing = nw.col(name).is_null()
        if people.drop_missing:
            frame = _leave_out(frame, is_missing, name, printer)
        elif n_missing := _count(frame, is_missing):
            raise InputError(
                f"Column {name!r} is missing in {n_missing:,} of {table.n_rows:,} rows, but labels "
                "and groups must be known. Fill it in, or drop such rows with --drop-missing."
            )
    return table.with_relation(frame.to_native())


def note_unscored_rows(table: SourceTable, score: str, printer: Printer) -> None:
    """Print how many rows have no score: an audit leaves them out."""
    frame: Any = nw.from_native(table.relation)
    if score not in frame.collect_schema().names():  # the patch refuses it in its own words
        return
    n_rows = _count(frame, nw.col(score).is_null())
    if n_rows:
        printer.note(_left_out_text(n_rows, f"a score ({score})"))


def _leave_out(frame: Any, condition: Any, missing: str, printer: Printer) -> Any:
    n_rows = _count(frame, condition)
    if not n_rows:
        return frame
    printer.note(_left_out_text(n_rows, missing))
    return frame.filter(~condition)


def _left_out_text(n_rows: int, missing: str) -> str:
    was = "was" if n_rows == 1 else "were"
    return f"{n_of(n_rows, 'row')} without {missing} {was} left out."


def _count(frame: Any, condition: Any) -> int:
    ones = nw.when(condition).then(nw.lit(1)).otherwise(nw.lit(0)).sum()
    return int(frame.select(n=ones).collect()["n"][0] or 0)
