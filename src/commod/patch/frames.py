"""Apply a patch to a dataframe of any engine through narwhals. A lazy frame stays lazy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
from narwhals.exceptions import DuplicateError

from commod._data.parameters import check_flag
from commod._text import did_you_mean, list_names, shown
from commod.exceptions import InputError, InputTypeError
from commod.patch import expressions as rule
from commod.patch.content import (
    BinColumn,
    CategoryColumn,
    ColumnOfScore,
    Content,
    NumberColumn,
)
from commod.patch.sources import OBJECT_TYPES, Frame, category_points_of

MAY_BE_EMPTY = (nw.Float32, nw.Float64, nw.String, nw.Boolean)  # types of columns without values
MAX_LISTED = 8  # columns in a message
ADDED_COLUMNS = ("score", "decision", "changed", "direction")
CALIBRATED, RATIO = "calibrated", "r"
ON_REQUEST = (CALIBRATED, RATIO)  # further columns


@dataclass(frozen=True)
class PatchCounts:
    """Numbers of rows and changes after a patch; rows without a score have no decision.

    Examples
    --------
    >>> counts = PatchCounts(n_rows=100, n_without_score=0, n_changed=5, n_gains=4, n_losses=1)
    >>> counts.n_changed == counts.n_gains + counts.n_losses
    True
    """

    n_rows: int
    n_without_score: int
    n_changed: int
    n_gains: int
    n_losses: int


# ---------------------------------------------------------------------------------------------
# Frames in and out


def from_frame(frame: Any) -> Frame:
    """Return a frame of any engine through narwhals."""
    try:
        native = nw.from_native(frame, pass_through=True)
    except DuplicateError as error:
        raise InputError(
            f"The frame has several columns with the same name ({error}). Rename them."
        ) from error
    if isinstance(native, nw.DataFrame | nw.LazyFrame):
        return native
    raise InputTypeError(
        f"A patch needs a pandas, polars, pyarrow, DuckDB or PySpark frame; got "
        f"{type(frame).__module__}.{type(frame).__name__}. Put the columns into a frame. The "
        "columns of an array are called x0, x1, ..."
    )


def check_calibrated(content: Content, calibrated: Any) -> bool:
    """Return whether calibrated probabilities are requested; refuse a patch without them."""
    check_flag(calibrated, "calibrated")
    if calibrated and content.calibration is None:
        raise InputError(
            "calibrated=True, but the patch has no calibration map: its update was fitted without "
            "true labels, or by an earlier version of commod. Fit the update with y, and make the "
            "patch again.",
            parameter="calibrated",
        )
    return bool(calibrated)


def added_columns(content: Content, prefix: str, calibrated: bool, columns: Any) -> list[str]:
    """Return which columns `apply_to` adds, without their prefix and in their order.

    `columns` are names with the prefix, or None. With `calibrated`, the probability is among them.
    """
    if columns is None:
        chosen = list(ADDED_COLUMNS)
    else:
        known = [prefix + name for name in (*ADDED_COLUMNS, *ON_REQUEST)]
        chosen = [_known_name(name, known)[len(prefix) :] for name in _listed(columns)]
        twice = next((name for i, name in enumerate(chosen) if name in chosen[:i]), None)
        if twice is not None:
            raise InputError(
                f"columns names {prefix + twice!r} twice; name each column once.",
                parameter="columns",
            )
    if check_calibrated(content, calibrated) and CALIBRATED not in chosen:
        chosen.append(CALIBRATED)
    if CALIBRATED in chosen:
        check_calibrated(content, True)
    return chosen


def _listed(columns: Any) -> list[Any]:
    listed = [columns] if isinstance(columns, str) else columns
    if not isinstance(listed, list | tuple) or not listed:
        raise InputError(
            f"columns={shown(columns)} must be a list of names of new columns, at least one; None "
            "adds the usual four.",
            parameter="columns",
        )
    return list(listed)


def _known_name(name: Any, known: Sequence[str]) -> str:
    if name in known:
        return str(name)
    raise InputError(
        f"columns: a patch adds no column {shown(name)} (it can add: {list_names(known)})."
        f"{did_you_mean(name, known)}",
        parameter="columns",
    )


def apply_to(content: Content, frame: Any, score: str, prefix: str, chosen: Sequence[str]) -> Any:
    """Return the frame with the columns that `added_columns` returned."""
    table = from_frame(_named_by_text(frame))
    schema = schema_of(table)
    check_columns(content, schema, score, is_eager=isinstance(table, nw.DataFrame))
    added = [prefix + name for name in chosen]
    _check_free(schema, added)
    applied = rule.Applied(table, schema, [*schema, *added])
    rule.read_score(applied, score, content.base.threshold)
    ratio = rule.ratio_of(applied, content, rule.total_of(applied, content.ratio))
    made = _made(applied, content, ratio, chosen)
    table = applied.table.with_columns(*(made[name].alias(prefix + name) for name in chosen))
    table = table.select(*schema, *added)
    if "decision" in chosen:
        table = rule.restore_label_type(table, prefix + "decision", content)
    native = table.to_native()
    if _has_other_names(frame):
        native.columns = [*frame.columns, *added]
    return native


def _made(
    applied: rule.Applied, content: Content, ratio: nw.Expr, chosen: Sequence[str]
) -> dict[str, nw.Expr]:
    """Return the chosen columns, and compute only what they need."""
    made = {RATIO: applied.if_scored(ratio)}
    if any(name != RATIO for name in chosen):
        changed, decided = rule.decisions_of(applied, content, ratio)
        made["changed"] = changed
        made["decision"] = rule.label(applied, content, decided)
        made["direction"] = rule.direction(applied, content, changed, decided)
        if "score" in chosen or CALIBRATED in chosen:
            made["score"] = rule.edited_of(applied, content, ratio, changed, decided)
    if CALIBRATED in chosen:
        made["score"] = applied.kept(made["score"], "edited")
        made[CALIBRATED] = rule.calibrated(applied, content, made["score"])
    return made


def _has_other_names(frame: Any) -> bool:
    """Return whether this is a pandas frame with column names other than text."""
    is_pandas = type(frame).__module__.partition(".")[0] == "pandas" and hasattr(frame, "columns")
    return is_pandas and not all(isinstance(name, str) for name in frame.columns)


def _named_by_text(frame: Any) -> Any:
    """Return a frame with text as column names; an update knows column 0 as "0"."""
    if not _has_other_names(frame):
        return frame
    return frame.set_axis([str(name) for name in frame.columns], axis=1)


def revert_from(frame: Any, prefix: str) -> Any:
    """Return the frame without the columns that `apply_to` added."""
    table = from_frame(frame)
    names = set(table.collect_schema())
    ours = [prefix + name for name in (*ADDED_COLUMNS, *ON_REQUEST)]
    present = [name for name in ours if name in names]
    if not present:
        raise InputError(
            f"The frame has no column {ours[0]!r}: no patch was applied with prefix={prefix!r}."
        )
    return table.drop(*present).to_native()


def count_changes(frame: Any, prefix: str) -> PatchCounts:
    """Return how many decisions changed, counted inside the engine."""
    table = from_frame(frame)
    names = set(table.collect_schema())
    if prefix + "direction" not in names:
        raise InputError(
            f"The frame has no column {prefix + 'direction'!r}: apply the patch first, with "
            f"prefix={prefix!r}, and name this column if you pass columns=."
        )
    direction = nw.col(prefix + "direction")
    counted = (
        table.lazy()
        .select(
            n_rows=nw.len(),
            n_known=direction.count(),
            n_gains=_number_of(direction == "gain"),
            n_losses=_number_of(direction == "loss"),
        )
        .collect()
    )
    n_rows, n_known, n_gains, n_losses = (int(value or 0) for value in counted.row(0))
    return PatchCounts(n_rows, n_rows - n_known, n_gains + n_losses, n_gains, n_losses)


def _number_of(condition: nw.Expr) -> nw.Expr:
    return nw.when(condition.fill_null(False)).then(nw.lit(1)).otherwise(nw.lit(0)).sum()


def schema_of(table: Frame) -> nw.Schema:
    """Return the types of the columns; `nw.Unknown` for columns in memory that are all missing.

    A column without any value may get any type: an empty column of a CSV becomes numbers in pandas.
    """
    schema = table.collect_schema()
    if isinstance(table, nw.DataFrame):
        for name in list(schema):
            if schema[name] in MAY_BE_EMPTY and _is_all_missing(table[name]):
                schema[name] = rule.ALL_MISSING()
    return schema


def _is_all_missing(series: nw.Series[Any]) -> bool:
    """Return whether no row has a value; one row is looked at before all are."""
    for part in (series.head(1), series):
        missing = part.is_null()
        if part.dtype.is_float():
            missing = missing | part.is_nan().fill_null(True)
        if not missing.all():
            return False
    return True


# ---------------------------------------------------------------------------------------------
# Checking the columns


def check_columns(content: Content, schema: nw.Schema, score: str, *, is_eager: bool) -> None:
    """Refuse a frame in which a column of the patch is missing or has another type."""
    if score not in schema:
        raise InputError(
            f"The frame has no column {score!r} with the base model's scores (columns: "
            f"{list_names(list(schema), MAX_LISTED)}). Name it: score=...",
            parameter="score",
        )
    is_read = is_eager and schema[score] == nw.Object  # read_columns checks these values
    if not (schema[score].is_numeric() or schema[score] == rule.ALL_MISSING or is_read):
        raise InputError(
            f"Column {score!r} has type {schema[score]}, but a score is a number between 0 and 1."
        )
    for column in content.ratio.columns:
        if not isinstance(column, ColumnOfScore):
            _check_column(column, schema, is_eager)


def _check_free(schema: nw.Schema, added: Sequence[str]) -> None:
    lowered = {name.lower() for name in schema}
    taken = [name for name in added if name.lower() in lowered]
    if taken:
        raise InputError(
            f"The frame has a column {taken[0]!r} already. Pass another prefix=, or drop the "
            "columns of an earlier patch with revert."
        )


def _check_column(
    column: NumberColumn | BinColumn | CategoryColumn, schema: nw.Schema, is_eager: bool
) -> None:
    if column.name not in schema:
        raise InputError(
            f"The patch reads column {column.name!r}, which the frame does not have (columns: "
            f"{list_names(list(schema), MAX_LISTED)}). The patch was made for other columns, or "
            "they were renamed."
        )
    dtype = schema[column.name]
    if dtype == rule.ALL_MISSING or (dtype in OBJECT_TYPES and is_eager):
        return  # read_columns checks Python objects
    if isinstance(column, CategoryColumn):
        is_unknown = not column.categories and not dtype.is_numeric()
        is_readable = bool(category_points_of(column, dtype)) or is_unknown
        known = [repr(category.value) for category in column.categories]
        expected = f"categories such as {list_names(known, 3)}"
    else:
        is_readable, expected = dtype.is_numeric(), "numbers"
    if not is_readable:
        raise InputError(
            f"The patch reads {expected} in column {column.name!r}, but this column has type "
            f"{dtype}. Convert it to the type that it had when the update was fitted."
        )
