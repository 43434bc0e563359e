"""A patch on a dataframe of any engine, by narwhals expressions: lazily where the frame is lazy.

One decision rule in every engine, that of `commod.scorecard`. Engines disagree about NaN, so every
number is first compared with a range, which NaN, NULL and infinity are outside of in all of them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from scipy.special import logit

from commod._encoding import LARGEST, Encoding, same_kind
from commod._inputs import read_columns
from commod._record import Value
from commod.exceptions import InputError, InputTypeError
from commod.patch.content import (
    BinColumn,
    CategoryColumn,
    Column,
    Content,
    MarginColumn,
    NumberColumn,
    lines_of,
    terms_of,
)
from commod.scorecard import MAX_EXPONENT, SCORE_CLIP

__all__ = [
    "ADDED",
    "OBJECTS",
    "Counts",
    "apply_to",
    "check_columns",
    "count_changes",
    "from_frame",
    "keys_of",
    "revert_from",
    "schema_of",
]

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]

ADDED = ("score", "decision", "changed", "direction")
MOST_AT_ONCE = 20  # columns added in one expression: engines overflow on deep ones
MOST_BRANCHES = 24  # categories in a chain; longer ones overflow, and DuckDB joins a table for them
FINITE = sys.float_info.max
OBJECTS = (nw.Object, nw.Categorical)  # their values may be of any type


@dataclass(frozen=True)
class Counts:
    """What a patch did to the rows of a frame; `n_without_score` have no decision."""

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
        f"A patch is applied to a pandas, polars, pyarrow, DuckDB or PySpark frame; got "
        f"{type(frame).__module__}.{type(frame).__name__}. Put the columns into a frame; those of "
        "an array are called x0, x1, ..."
    )


def apply_to(content: Content, frame: Any, score: str, prefix: str) -> Any:
    """Return the frame with the edited score, the decision, whether it changed, the direction."""
    table = from_frame(frame)
    schema = schema_of(table)
    check_columns(content, schema, score, is_eager=isinstance(table, nw.DataFrame))
    _check_free(schema, prefix)
    work = _Work(list(schema))
    table = table.with_columns(_in_range(_number(score, schema), 0.0, 1.0).alias(work.score))
    table = table.with_columns(_margin(nw.col(work.score), content).alias(work.margin))
    table = _with_ratio(table, schema, content, work)
    table = table.with_columns(
        _gated(content, nw.col(work.score), nw.col(work.ratio)).alias(work.ratio)
    )
    table = table.with_columns(_changed(content, work).alias(prefix + "changed"))
    table = table.with_columns(_decided(content, work, prefix).alias(work.decided))
    table = table.with_columns(
        _edited(content, work).alias(prefix + "score"),
        _label(content, work).alias(prefix + "decision"),
        _direction(content, work, prefix).alias(prefix + "direction"),
    )
    names = [*schema, *(prefix + name for name in ADDED)]
    return _tidy(table.select(*names), prefix + "decision", content).to_native()


def revert_from(frame: Any, prefix: str) -> Any:
    """Return the frame without the columns that `apply_to` added."""
    table = from_frame(frame)
    names = set(table.collect_schema())
    ours = [prefix + name for name in ADDED]
    lost = [name for name in ours if name not in names]
    if lost:
        raise InputError(
            f"The frame has no column {lost[0]!r}, so no patch was applied with prefix={prefix!r}."
        )
    return table.drop(*ours).to_native()


def count_changes(frame: Any, prefix: str) -> Counts:
    """Return how many decisions changed, counted inside the engine."""
    table = from_frame(frame)
    names = set(table.collect_schema())
    if prefix + "direction" not in names:
        raise InputError(
            f"The frame has no column {prefix + 'direction'!r}: apply the patch first, with "
            f"prefix={prefix!r}."
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
    return Counts(n_rows, n_rows - n_known, n_gains + n_losses, n_gains, n_losses)


def _number_of(condition: nw.Expr) -> nw.Expr:
    return nw.when(condition.fill_null(False)).then(nw.lit(1)).otherwise(nw.lit(0)).sum()


def schema_of(table: Frame) -> nw.Schema:
    """Return the types of the columns, `nw.Unknown` for Python objects that are all missing.

    Narwhals takes those for text.
    """
    schema = table.collect_schema()
    if isinstance(table, nw.DataFrame) and table.implementation.is_pandas_like():
        kinds = table.to_native().dtypes
        for name, kind in zip(list(schema), kinds, strict=True):
            is_unclear = kind == np.dtype(object) and schema[name] == nw.String
            if is_unclear and table[name].is_null().all():
                schema[name] = nw.Unknown()
    return schema


class _Work:
    """Names of columns that are only there while a patch is applied."""

    def __init__(self, taken: Sequence[str]) -> None:
        self.score, self.margin, self.ratio, self.decided = (
            _free_name(f"_commod_{name}", taken) for name in ("score", "margin", "ratio", "decided")
        )


def _free_name(name: str, taken: Sequence[str]) -> str:
    lowered = {other.lower() for other in taken}  # some engines do not tell "A" from "a"
    while name.lower() in lowered:
        name += "_"
    return name


# ---------------------------------------------------------------------------------------------
# Checking the columns


def check_columns(content: Content, schema: nw.Schema, score: str, *, is_eager: bool) -> None:
    """Refuse a frame without the columns that a patch reads, or with others of their names."""
    if score not in schema:
        raise InputError(
            f"The frame has no column {score!r} with the base model's scores (columns: "
            f"{_some(list(schema))}). Name it: score=..."
        )
    if not (schema[score].is_numeric() or _is_empty_type(schema[score])):
        raise InputError(
            f"Column {score!r} is of type {schema[score]}, but scores are numbers between 0 and 1."
        )
    for column in content.ratio.columns:
        if not isinstance(column, MarginColumn):
            _check_column(column, schema, is_eager)


def _check_free(schema: nw.Schema, prefix: str) -> None:
    lowered = {name.lower() for name in schema}
    taken = [prefix + name for name in ADDED if (prefix + name).lower() in lowered]
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
            f"{_some(list(schema))}). It was made for other columns, or they were renamed."
        )
    dtype = schema[column.name]
    if _is_empty_type(dtype) or (dtype in OBJECTS and is_eager):
        return  # Python objects are read one by one, and checked then
    if isinstance(column, CategoryColumn):
        is_like_it = bool(keys_of(column, dtype)) or not column.categories
        wanted = "categories such as " + _some([repr(c.value) for c in column.categories], 3)
    else:
        is_like_it, wanted = dtype.is_numeric(), "numbers"
    if not is_like_it:
        raise InputError(
            f"The patch reads {wanted} in column {column.name!r}, but it is of type {dtype} here. "
            "Convert it to the type it had when the update was fitted."
        )


def _is_empty_type(dtype: Any) -> bool:
    """Return whether this is the type of a column without any value."""
    return bool(dtype == nw.Unknown)


def keys_of(column: CategoryColumn, dtype: Any) -> list[tuple[Value, float]]:
    """Return the categories that a column of this type can hold, with their points."""
    if dtype == nw.Boolean:
        kinds: tuple[type, ...] = (bool,)
    elif dtype.is_numeric():
        kinds = (int, float)
    elif dtype in (nw.String, nw.Categorical, nw.Enum):
        kinds = (str,)
    else:
        return []
    return [(c.value, c.points) for c in column.categories if type(c.value) in kinds]


def _some(names: Sequence[str], most: int = 8) -> str:
    rest = f", and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + rest


# ---------------------------------------------------------------------------------------------
# r


def _with_ratio(table: Frame, schema: nw.Schema, content: Content, work: _Work) -> Frame:
    """Add r column by column in the order of the file, a few at a time."""
    table = table.with_columns(nw.lit(content.ratio.intercept, nw.Float64).alias(work.ratio))
    columns = content.ratio.columns
    for start in range(0, len(columns), MOST_AT_ONCE):
        total = nw.col(work.ratio)
        for column in columns[start : start + MOST_AT_ONCE]:
            table, parts = _parts(table, schema, column, work)
            for part in parts:
                total = total + part
        table = table.with_columns(total.alias(work.ratio))
    return table


def _parts(
    table: Frame, schema: nw.Schema, column: Column, work: _Work
) -> tuple[Frame, list[nw.Expr]]:
    """Return what a column adds to r, as one or two expressions."""
    if isinstance(column, MarginColumn):
        return table, [nw.col(work.margin) * column.points]
    dtype = schema[column.name]
    if dtype in OBJECTS and isinstance(table, nw.DataFrame):
        return _with_read(table, column)
    if isinstance(column, CategoryColumn):
        return table, [_category_points(column, dtype)]
    return table, _number_points(column, _number(column.name, schema))


def _number_points(column: NumberColumn | BinColumn, value: nw.Expr) -> list[nw.Expr]:
    known = _is_between(value, -FINITE, FINITE)
    missing = 0.0 if column.missing is None else column.missing.points
    if isinstance(column, BinColumn):
        inside = _bins(value, column.edges, [b.points for b in column.bins])
        return [nw.when(known).then(inside).otherwise(nw.lit(missing))]
    parts = []
    if column.points:
        bounded = value.clip(-LARGEST, LARGEST)
        filled = nw.when(known).then(bounded).otherwise(nw.lit(column.if_missing))
        parts.append(filled * column.points)
    if missing:
        parts.append(nw.when(known).then(nw.lit(0.0)).otherwise(nw.lit(missing)))
    return parts


def _bins(value: nw.Expr, edges: Sequence[float], points: Sequence[float]) -> nw.Expr:
    """Return the points of the bin of each value, by halves: engines overflow on long chains."""
    if len(set(points)) == 1:
        return nw.lit(float(points[0]))
    middle = len(edges) // 2
    below = _bins(value, edges[:middle], points[: middle + 1])
    above = _bins(value, edges[middle + 1 :], points[middle + 1 :])
    return nw.when(value < edges[middle]).then(below).otherwise(above)


def _category_points(column: CategoryColumn, dtype: Any) -> nw.Expr:
    missing = 0.0 if column.missing is None else column.missing.points
    value = nw.col(column.name)
    if _is_empty_type(dtype):
        return nw.lit(missing)
    keys = keys_of(column, dtype)
    if dtype == nw.Boolean:
        points = dict(keys)
        known = nw.when(value).then(nw.lit(points.get(True, 0.0)))
        found = known.otherwise(nw.lit(points.get(False, 0.0)))
        is_missing = value.is_null()
    else:
        number = dtype.is_numeric()
        value = value.cast(nw.Float64 if number else nw.String)
        is_missing = ~_is_between(value, -FINITE, FINITE) if number else value.is_null()
        found = _replaced(value, keys, nw.Float64 if number else nw.String)
    return nw.when(is_missing).then(nw.lit(missing)).otherwise(found)


def _replaced(value: nw.Expr, keys: Sequence[tuple[Value, float]], dtype: Any) -> nw.Expr:
    """Return the points of each category, 0 for any other value."""
    old = [float(key) if dtype == nw.Float64 else key for key, _ in keys]
    new = [points for _, points in keys]
    if len(keys) > MOST_BRANCHES:
        return value.replace_strict(old, new, default=0.0, return_dtype=nw.Float64)
    found = nw.lit(0.0)
    for key, points in zip(old, new, strict=True):
        found = nw.when(value == key).then(nw.lit(points)).otherwise(found)
    return found


def _with_read(
    table: nw.DataFrame[Any], column: NumberColumn | BinColumn | CategoryColumn
) -> tuple[nw.DataFrame[Any], list[nw.Expr]]:
    """Add a column that stands for one of Python objects, which expressions cannot tell apart."""
    encoding = Encoding((terms_of(column),))
    (read,) = read_columns(table.select(column.name).to_native(), encoding.kinds)
    if isinstance(column, CategoryColumn):
        points = np.array([line.points for line in lines_of(column)])
        values = encoding.encode([read]).total(points, 0.0)
    else:
        values = same_kind(encoding.columns[0], {read.name: read}).values
    name = _free_name(f"_commod_{column.name}", table.columns)
    series = nw.Series.from_numpy(name, values, nw.Float64, backend=table.implementation)
    if table.implementation.is_pandas_like():
        native = series.to_native().set_axis(table.to_native().index)
        series = nw.from_native(native, series_only=True)
    if isinstance(column, CategoryColumn):
        return table.with_columns(series), [nw.col(name)]
    return table.with_columns(series), _number_points(column, nw.col(name))


# ---------------------------------------------------------------------------------------------
# Scores and decisions


def _number(name: str, schema: nw.Schema) -> nw.Expr:
    if _is_empty_type(schema[name]):
        return nw.lit(math.nan, nw.Float64)
    return nw.col(name).cast(nw.Float64)


def _is_between(value: nw.Expr, low: float, high: float) -> nw.Expr:
    return ((value >= low) & (value <= high)).fill_null(False)


def _in_range(value: nw.Expr, low: float, high: float) -> nw.Expr:
    return nw.when(_is_between(value, low, high)).then(value)


def _margin(score: nw.Expr, content: Content) -> nw.Expr:
    """Return z; exactly 0 at the threshold, where a large r would make a rounding error large."""
    threshold = content.base.threshold
    clipped = score.clip(SCORE_CLIP, 1 - SCORE_CLIP)
    margin = (clipped / (1.0 - clipped)).log() - float(logit(threshold))
    return nw.when(score == threshold).then(nw.lit(0.0)).otherwise(margin)


def _gated(content: Content, score: nw.Expr, ratio: nw.Expr) -> nw.Expr:
    """Return r, held at 1 where the direction of the update does not let it act."""
    if not content.ratio.may_raise:
        ratio = nw.when(score <= content.base.threshold).then(nw.lit(1.0)).otherwise(ratio)
    if not content.ratio.may_lower:
        ratio = nw.when(score > content.base.threshold).then(nw.lit(1.0)).otherwise(ratio)
    return ratio


def _changed(content: Content, work: _Work) -> nw.Expr:
    score = nw.col(work.score)
    moved = (nw.col(work.ratio) < 0.0) & (score != content.base.threshold)
    return (moved & ~score.is_null()).fill_null(False)


def _decided(content: Content, work: _Work, prefix: str) -> nw.Expr:
    """Return the new decision; False where there is no score."""
    base = (nw.col(work.score) > content.base.threshold).fill_null(False)
    return nw.when(nw.col(prefix + "changed")).then(~base).otherwise(base)


def _edited(content: Content, work: _Work) -> nw.Expr:
    """Return the edited score on its decision's side; the base score itself where r is 1."""
    threshold = content.base.threshold
    score, ratio, decided = (nw.col(n) for n in (work.score, work.ratio, work.decided))
    exponent = (ratio * nw.col(work.margin)).clip(-MAX_EXPONENT, MAX_EXPONENT)
    odds = (-(exponent + float(logit(threshold)))).exp()
    edited = nw.when(ratio == 1.0).then(score).otherwise(1.0 / (1.0 + odds))
    lowest = nw.lit(math.nextafter(threshold, 1.0))
    raised = nw.when(edited > threshold).then(edited).otherwise(lowest)
    lowered = nw.when(edited > threshold).then(nw.lit(threshold)).otherwise(edited)
    return nw.when(~score.is_null()).then(nw.when(decided).then(raised).otherwise(lowered))


def _label(content: Content, work: _Work) -> nw.Expr:
    positive, negative = (
        nw.lit(label, _label_type(content))
        for label in (content.labels.positive, content.labels.negative)
    )
    named = nw.when(nw.col(work.decided)).then(positive).otherwise(negative)
    return nw.when(~nw.col(work.score).is_null()).then(named)


def _label_type(content: Content) -> Any:
    kinds = {type(content.labels.positive), type(content.labels.negative)}
    if kinds <= {bool}:
        return nw.Boolean
    if kinds <= {int, bool}:
        return nw.Int64
    return nw.String if kinds == {str} else nw.Float64


def _direction(content: Content, work: _Work, prefix: str) -> nw.Expr:
    raising_is_gain = content.labels.favorable == content.labels.positive
    up, down = ("gain", "loss") if raising_is_gain else ("loss", "gain")
    moved = nw.when(nw.col(work.decided)).then(nw.lit(up)).otherwise(nw.lit(down))
    named = nw.when(nw.col(prefix + "changed")).then(moved).otherwise(nw.lit("kept"))
    return nw.when(~nw.col(work.score).is_null()).then(named)


def _tidy(table: Frame, decision: str, content: Content) -> Frame:
    """Make whole-number and boolean labels so again: pandas has floats where one is missing."""
    if isinstance(table, nw.DataFrame) and table.implementation.is_pandas_like():
        dtype = _label_type(content)
        if dtype != nw.String and not table[decision].is_null().any():
            return table.with_columns(nw.col(decision).cast(dtype))
    return table
