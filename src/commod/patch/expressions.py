"""Write the decision rule of a patch as narwhals expressions: ratio, decision, edited score.

Engines treat NaN differently. In all of them NaN, NULL and infinity lie outside a finite range, so
every number is compared with a range first.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from scipy.special import logit

from commod._data.columns import Column as RawColumn
from commod._data.columns import read_columns, type_of
from commod._data.encoding import LARGEST, Encoding, matching_column
from commod._record import Value
from commod.exceptions import InputError
from commod.patch.content import (
    BinColumn,
    CategoryColumn,
    Column,
    Content,
    MarginColumn,
    NumberColumn,
    term_points_of,
    terms_of,
)
from commod.scorecard import MAX_EXPONENT, SCORE_CLIP

Frame = nw.DataFrame[Any] | nw.LazyFrame[Any]

MAX_COLUMNS_PER_EXPRESSION = 20  # engines overflow on deep expressions
MAX_BRANCHES = 24  # engines overflow on longer chains of comparisons
FINITE = sys.float_info.max
OBJECT_TYPES = (nw.Object, nw.Categorical, nw.Enum)  # their values may have any type


class WorkColumns:
    """Names of the columns that exist only while a patch is applied."""

    def __init__(self, taken: Sequence[str]) -> None:
        names = ("score", "odds", "margin", "ratio", "exponent", "decided", "edited")
        self.score, self.odds, self.margin, self.ratio, self.exponent, self.decided, self.edited = (
            free_name(f"_commod_{name}", taken) for name in names
        )


def free_name(name: str, taken: Sequence[str]) -> str:
    """Return a name that no column has."""
    lowered = {other.lower() for other in taken}  # some engines ignore case
    while name.lower() in lowered:
        name += "_"
    return name


def is_all_missing_type(dtype: Any) -> bool:
    """Return whether a column of this type has no value at all."""
    return bool(dtype == nw.Unknown)


def category_points_of(column: CategoryColumn, dtype: Any) -> list[tuple[Value, float]]:
    """Return the categories that a column of this type can contain, with their points."""
    if dtype == nw.Boolean:
        held = "boolean"
    elif dtype.is_numeric():
        held = "number"
    elif dtype in (nw.String, nw.Categorical, nw.Enum):
        held = "text"
    else:
        return []
    return [(c.value, c.points) for c in column.categories if type_of(c.value) == held]


# ---------------------------------------------------------------------------------------------
# r


def with_ratio(table: Frame, schema: nw.Schema, content: Content, work: WorkColumns) -> Frame:
    """Add the ratio: points are added in the order of the file, a few columns at a time."""
    table = table.with_columns(nw.lit(content.ratio.intercept, nw.Float64).alias(work.ratio))
    columns = content.ratio.columns
    for start in range(0, len(columns), MAX_COLUMNS_PER_EXPRESSION):
        total = nw.col(work.ratio)
        for column in columns[start : start + MAX_COLUMNS_PER_EXPRESSION]:
            table, parts = _parts(table, schema, column, work)
            for part in parts:
                total = total + part
        table = table.with_columns(total.alias(work.ratio))
    return table


def _parts(
    table: Frame, schema: nw.Schema, column: Column, work: WorkColumns
) -> tuple[Frame, list[nw.Expr]]:
    """Return what a column adds to r, as one or two expressions."""
    if isinstance(column, MarginColumn):
        return table, [nw.col(work.margin) * column.points]
    dtype = schema[column.name]
    is_number = not isinstance(column, CategoryColumn)
    if _must_be_read(table, column.name, dtype) and (is_number or dtype in OBJECT_TYPES):
        assert isinstance(table, nw.DataFrame)
        return _with_read(table, column)
    if isinstance(column, CategoryColumn):
        if table.implementation.is_duckdb() and _can_be_looked_up(column, dtype):
            return _with_looked_up(table, column)
        return table, [_category_points(column, dtype)]
    return table, _number_points(column, number(column.name, schema))


def _number_points(column: NumberColumn | BinColumn, value: nw.Expr) -> list[nw.Expr]:
    known = _is_between(value, -FINITE, FINITE)
    missing = 0.0 if column.missing is None else column.missing.points
    if isinstance(column, BinColumn):
        inside = _bins(value, column.edges, [b.points for b in column.bins])
        return [nw.when(known).then(inside).otherwise(nw.lit(missing))]
    parts = []
    if column.points:
        is_usual = _is_between(value, -LARGEST, LARGEST)
        clipped = nw.when(known).then(value.clip(-LARGEST, LARGEST)).otherwise(column.if_missing)
        parts.append(nw.when(is_usual).then(value).otherwise(clipped) * column.points)
    if missing:
        parts.append(nw.when(known).then(nw.lit(0.0)).otherwise(nw.lit(missing)))
    return parts


def _bins(value: nw.Expr, edges: Sequence[float], points: Sequence[float]) -> nw.Expr:
    """Return the points of each value's bin by bisection; engines overflow on long chains."""
    if len(set(points)) == 1:
        return nw.lit(float(points[0]))
    middle = len(edges) // 2
    below = _bins(value, edges[:middle], points[: middle + 1])
    above = _bins(value, edges[middle + 1 :], points[middle + 1 :])
    return nw.when(value < edges[middle]).then(below).otherwise(above)


def _category_points(column: CategoryColumn, dtype: Any) -> nw.Expr:
    missing = 0.0 if column.missing is None else column.missing.points
    value = nw.col(column.name)
    if is_all_missing_type(dtype):
        return nw.lit(missing)
    keys = category_points_of(column, dtype)
    if dtype == nw.Boolean:
        points = dict(keys)
        if_true = nw.when(value).then(nw.lit(points.get(True, 0.0)))
        category_points = if_true.otherwise(nw.lit(points.get(False, 0.0)))
        is_missing = value.is_null()
    else:
        number = dtype.is_numeric()
        value = value.cast(nw.Float64 if number else nw.String)
        is_missing = ~_is_between(value, -FINITE, FINITE) if number else value.is_null()
        category_points = _replaced(value, keys, nw.Float64 if number else nw.String)
    return nw.when(is_missing).then(nw.lit(missing)).otherwise(category_points)


def _replaced(value: nw.Expr, keys: Sequence[tuple[Value, float]], dtype: Any) -> nw.Expr:
    """Return the points of each category, 0 for any other value."""
    old = [float(key) if dtype == nw.Float64 else key for key, _ in keys]
    new = [points for _, points in keys]
    if len(keys) > MAX_BRANCHES:
        return value.replace_strict(old, new, default=0.0, return_dtype=nw.Float64)
    chain = nw.lit(0.0)
    for key, points in zip(old, new, strict=True):
        chain = nw.when(value == key).then(nw.lit(points)).otherwise(chain)
    return chain


def _can_be_looked_up(column: CategoryColumn, dtype: Any) -> bool:
    keys = category_points_of(column, dtype)
    is_text = dtype == nw.String and not any("\x00" in str(key) for key, _ in keys)
    return is_text and len(keys) > MAX_BRANCHES


def _with_looked_up(table: Frame, column: CategoryColumn) -> tuple[Frame, list[nw.Expr]]:
    """Add the points of many categories in DuckDB, looked up by their code in an enumeration.

    DuckDB would turn `replace_strict` into a join, which loses the order of rows and takes longer.
    """
    keys = category_points_of(column, nw.String)
    missing = 0.0 if column.missing is None else column.missing.points
    value = '"' + column.name.replace('"', '""') + '"'
    texts = ", ".join("'" + str(key).replace("'", "''") + "'" for key, _ in keys)
    points = ", ".join(_double(p) for _, p in keys)
    code = f"enum_code(TRY_CAST({value} AS ENUM ({texts})))::INTEGER"
    known = f"coalesce(list_extract([{points}], {code} + 1), 0e0)"
    name = free_name(f"_commod_{column.name}", table.collect_schema().names())
    quoted = '"' + name.replace('"', '""') + '"'
    sql = f"CASE WHEN {value} IS NULL THEN {_double(missing)} ELSE {known} END AS {quoted}"
    native = table.to_native().project(f"*, {sql}")
    return nw.from_native(native), [nw.col(name)]


def _double(number: float) -> str:
    """Return a literal that DuckDB reads as this double; without an exponent it is a decimal."""
    text = repr(number)
    return text if "e" in text else f"{text}e0"


def _with_read(
    table: nw.DataFrame[Any], column: NumberColumn | BinColumn | CategoryColumn
) -> tuple[nw.DataFrame[Any], list[nw.Expr]]:
    """Add a numeric column in place of Python objects, which expressions cannot read."""
    encoding = Encoding((terms_of(column),))
    read = _read(table, column.name, encoding)
    if isinstance(column, CategoryColumn):
        points = np.array([line.points for line in term_points_of(column)])
        values = encoding.encode([read]).total(points, 0.0)
    else:
        values = matching_column(encoding.columns[0], {read.name: read}).values
    table, name = _with_numbers(table, column.name, values)
    if isinstance(column, CategoryColumn):
        return table, [nw.col(name)]
    return table, _number_points(column, nw.col(name))


def _read(table: nw.DataFrame[Any], name: str, encoding: Encoding) -> RawColumn:
    if not len(table):
        return RawColumn(name, encoding.kinds[name], np.zeros(0, dtype=np.intp))
    return read_columns(table.select(name).to_native(), encoding.kinds)[0]


def _with_numbers(table: nw.DataFrame[Any], of: str, values: Any) -> tuple[nw.DataFrame[Any], str]:
    """Return the table with one more column of numbers, and its name."""
    name = free_name(f"_commod_{of}", table.columns)
    series = nw.Series.from_numpy(name, values, nw.Float64, backend=table.implementation)
    if table.implementation.is_pandas_like():
        native = series.to_native().set_axis(table.to_native().index)
        series = nw.from_native(native, series_only=True)
    return table.with_columns(series), name


def _must_be_read(table: Frame, name: str, dtype: Any) -> bool:
    """Return whether NumPy must read a column: objects, and Arrow integers that are not cast."""
    if not isinstance(table, nw.DataFrame):
        return False
    if dtype in OBJECT_TYPES:
        return True
    native = table[name].to_native()
    is_arrow = (
        table.implementation.is_pyarrow()
        or "Arrow" in type(getattr(native, "dtype", None)).__name__
    )
    return is_arrow and dtype in (nw.Int64, nw.UInt64)


# ---------------------------------------------------------------------------------------------
# Scores and decisions


def with_score(table: Frame, schema: nw.Schema, name: str, work: WorkColumns) -> Frame:
    """Return the table with the base score as doubles, NULL where it is missing or invalid."""
    value = number(name, schema)
    if schema[name] == nw.Object and isinstance(table, nw.DataFrame) and len(table):
        read = read_columns(table.select(name).to_native())[0]
        if read.kind != "numeric":
            raise InputError(
                f"Column {name!r} holds {read.first_value()!r}, but a score is a number between "
                "0 and 1."
            )
        table, column = _with_numbers(table, name, read.values)
        value = nw.col(column)
    return table.with_columns(in_range(value, 0.0, 1.0).alias(work.score))


def number(name: str, schema: nw.Schema) -> nw.Expr:
    """Return a column as doubles."""
    if is_all_missing_type(schema[name]):
        return nw.lit(math.nan, nw.Float64)
    return nw.col(name).cast(nw.Float64)


def _is_between(value: nw.Expr, low: float, high: float) -> nw.Expr:
    return ((value >= low) & (value <= high)).fill_null(False)


def in_range(value: nw.Expr, low: float, high: float) -> nw.Expr:
    """Return a value, NULL outside the range."""
    return nw.when(_is_between(value, low, high)).then(value)


def with_margin(table: Frame, content: Content, work: WorkColumns) -> Frame:
    """Add the margin; exactly 0 at the threshold, so that a large ratio amplifies no rounding."""
    threshold, score = content.base.threshold, nw.col(work.score)
    # Every step is a column: an engine computes a repeated part of an expression twice.
    table = table.with_columns(score.clip(SCORE_CLIP, 1 - SCORE_CLIP).alias(work.odds))
    odds = nw.col(work.odds)
    table = table.with_columns((odds / (1.0 - odds)).alias(work.odds))
    z = odds.log() - float(logit(threshold))
    is_at_threshold = score == threshold
    return table.with_columns(nw.when(is_at_threshold).then(0.0).otherwise(z).alias(work.margin))


def gated(content: Content, score: nw.Expr, ratio: nw.Expr) -> nw.Expr:
    """Return the ratio, held at 1 where the direction of the update forbids a change."""
    if not content.ratio.may_raise:
        ratio = nw.when(score <= content.base.threshold).then(nw.lit(1.0)).otherwise(ratio)
    if not content.ratio.may_lower:
        ratio = nw.when(score > content.base.threshold).then(nw.lit(1.0)).otherwise(ratio)
    return ratio


def changed(content: Content, work: WorkColumns) -> nw.Expr:
    """Return whether the decision changes; False where there is no score."""
    score = nw.col(work.score)
    moved = (nw.col(work.ratio) < 0.0) & (score != content.base.threshold)
    return (moved & ~score.is_null()).fill_null(False)


def decided(content: Content, work: WorkColumns, prefix: str) -> nw.Expr:
    """Return the new decision; False where there is no score."""
    base = (nw.col(work.score) > content.base.threshold).fill_null(False)
    return nw.when(nw.col(prefix + "changed")).then(~base).otherwise(base)


def with_edited_score(table: Frame, content: Content, work: WorkColumns) -> Frame:
    """Add the edited score before it is moved to its side; the base score where the ratio is 1."""
    score, ratio, exponent = (nw.col(n) for n in (work.score, work.ratio, work.exponent))
    table = table.with_columns((ratio * nw.col(work.margin)).alias(work.exponent))
    bounded = exponent.clip(-MAX_EXPONENT, MAX_EXPONENT) + float(logit(content.base.threshold))
    odds = (-bounded).exp()
    edited = nw.when(ratio == 1.0).then(score).otherwise(1.0 / (1.0 + odds))
    return table.with_columns(edited.alias(work.edited))


def on_side_of_decision(content: Content, work: WorkColumns) -> nw.Expr:
    """Return the edited score, moved to its decision's side; NULL without a base score."""
    threshold = content.base.threshold
    score, edited, decided = (nw.col(n) for n in (work.score, work.edited, work.decided))
    lowest = nw.lit(math.nextafter(threshold, 1.0))
    raised = nw.when(edited > threshold).then(edited).otherwise(lowest)
    lowered = nw.when(edited > threshold).then(nw.lit(threshold)).otherwise(edited)
    return nw.when(~score.is_null()).then(nw.when(decided).then(raised).otherwise(lowered))


def label(content: Content, work: WorkColumns) -> nw.Expr:
    """Return the new decision as a label, NULL where there is no score."""
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


def direction(content: Content, work: WorkColumns, prefix: str) -> nw.Expr:
    """Return "gain", "loss" or "kept", NULL where there is no score."""
    raising_is_gain = content.labels.favorable == content.labels.positive
    up, down = ("gain", "loss") if raising_is_gain else ("loss", "gain")
    moved = nw.when(nw.col(work.decided)).then(nw.lit(up)).otherwise(nw.lit(down))
    named = nw.when(nw.col(prefix + "changed")).then(moved).otherwise(nw.lit("kept"))
    return nw.when(~nw.col(work.score).is_null()).then(named)


def restore_label_type(table: Frame, decision: str, content: Content) -> Frame:
    """Cast labels back to integers or Booleans: pandas made them floats for missing values."""
    if isinstance(table, nw.DataFrame) and table.implementation.is_pandas_like():
        dtype = _label_type(content)
        if dtype != nw.String and not table[decision].is_null().any():
            return table.with_columns(nw.col(decision).cast(dtype))
    return table
