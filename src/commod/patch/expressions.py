"""Compute the decision rule in a frame of any engine, through narwhals expressions.

Engines treat NaN differently. In all of them NaN, NULL and infinity lie outside a finite range, so
every number is compared with a range first.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from typing import Any

import narwhals as nw
from scipy.special import logit

from commod._data.columns import LARGEST, read_columns
from commod._data.tables import FreeNames
from commod._record import Value
from commod._statistics.score_map import MapPiece, pieces_of
from commod.exceptions import InputError
from commod.patch.content import (
    BinColumn,
    CategoryColumn,
    Column,
    ColumnOfScore,
    Content,
    DistanceBinColumn,
    DistanceColumn,
    MarginColumn,
    NumberColumn,
    Ratio,
    calibrated_in,
    gated_in,
    rule_of,
)
from commod.patch.sources import (
    MAX_BRANCHES,
    Frame,
    Sources,
    as_series,
    category_points_of,
    with_sources,
)
from commod.scorecard import Operations, all_edited_in, crossing_at, is_changed, margins_in

MAX_COLUMNS_PER_EXPRESSION = 20  # engines overflow on deep expressions
FINITE = sys.float_info.max
ALL_MISSING = nw.Unknown  # type of a column without any value


class Applied(Operations):
    """A frame to which a patch is applied, and the operations of the rule on its columns.

    Values are expressions. `table` has the columns of the frame and those that were kept. `taken`
    are names of columns that it must not get.
    """

    score: nw.Expr
    distance: nw.Expr
    margin: nw.Expr

    def __init__(self, table: Frame, schema: nw.Schema, taken: Iterable[str]) -> None:
        self.table, self.schema, self.names = table, schema, FreeNames(taken)

    def kept(self, value: Any, name: str = "step") -> nw.Expr:
        """Return a new column: an engine computes a repeated part of an expression twice."""
        column = self.names.take(f"_commod_{name}")
        self.table = self.table.with_columns(value.alias(column))
        return nw.col(column)

    def where(self, condition: Any, value: Any, other: Any) -> Any:
        """Return the other value also where the condition is NULL."""
        return nw.when(condition).then(_expression(value)).otherwise(_expression(other))

    def minimum(self, value: Any, bound: float) -> Any:
        """Return the smaller one; the bound for NULL."""
        return self.where(value < bound, value, bound)

    def maximum(self, value: Any, bound: float) -> Any:
        """Return the larger one; the bound for NULL."""
        return self.where(value > bound, value, bound)

    def clip(self, value: Any, low: Any, high: Any) -> Any:
        """Return NULL for NULL."""
        return value.clip(low, high)

    def logit(self, share: Any, threshold: float) -> Any:
        """Return the logarithm of odds."""
        odds = self.kept(share / (1.0 - share))
        return odds.log() - float(logit(threshold))

    def sigmoid(self, value: Any, one: Any) -> Any:
        """Return the quotient in the order of the formula."""
        return one / (one + (-value).exp())

    def if_scored(self, value: nw.Expr) -> nw.Expr:
        """Return a value, NULL where there is no score."""
        return nw.when(~self.score.is_null()).then(value)


def _expression(value: Any) -> nw.Expr:
    return value if isinstance(value, nw.Expr) else nw.lit(value)


# ---------------------------------------------------------------------------------------------
# r


def total_of(applied: Applied, ratio: Ratio) -> nw.Expr:
    """Add the sum of the points as a column: in the order of the file, a few columns at a time."""
    applied.table, sources = with_sources(
        applied.table, applied.schema, ratio.columns, applied.names
    )
    name = applied.names.take("_commod_ratio")
    table = applied.table.with_columns(nw.lit(ratio.intercept, nw.Float64).alias(name))
    total: Any = table.select(name) if isinstance(table, nw.DataFrame) else None
    for start in range(0, len(ratio.columns), MAX_COLUMNS_PER_EXPRESSION):
        few = ratio.columns[start : start + MAX_COLUMNS_PER_EXPRESSION]
        parts = [part for column in few for part in _parts(applied, column, sources)]
        added = reduce(add, parts, nw.col(name)).alias(name)
        if total is None:
            table = table.with_columns(added)
        else:  # `with_columns` would copy the whole table for every sum
            read = [sources.name(c.name) for c in few if not isinstance(c, ColumnOfScore)]
            of_score = [applied.margin, applied.distance] if len(read) < len(few) else []
            total = table.select(*of_score, *read).with_columns(total[name]).select(added)
    applied.table = table if total is None else table.with_columns(total[name])
    return nw.col(name)


def _parts(applied: Applied, column: Column, sources: Sources) -> list[nw.Expr]:
    """Return what a column adds to r, as one or two expressions."""
    if isinstance(column, MarginColumn):
        return [applied.margin * column.points]
    if isinstance(column, DistanceColumn):
        return [applied.distance * column.points]
    if isinstance(column, DistanceBinColumn):
        return [_bins(applied.distance, column.edges, [b.points for b in column.bins])]
    if column.name in sources.points:
        return [nw.col(sources.points[column.name])]
    if isinstance(column, CategoryColumn):
        source = sources.texts.get(column.name, column.name)
        return [_category_points(column, nw.col(source), applied.schema[column.name])]
    if column.name in sources.numbers:
        return _number_points(column, nw.col(sources.numbers[column.name]))
    return _number_points(column, _number(column.name, applied.schema))


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
        counted = nw.when(is_usual).then(value).otherwise(clipped)
        centred = counted - column.centre if column.centre else counted
        parts.append(centred * column.points)
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


def _category_points(column: CategoryColumn, value: nw.Expr, dtype: Any) -> nw.Expr:
    missing = 0.0 if column.missing is None else column.missing.points
    if dtype == ALL_MISSING:
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


# ---------------------------------------------------------------------------------------------
# Scores and decisions


def read_score(applied: Applied, name: str, threshold: float) -> None:
    """Add the base score as doubles, NULL where missing or invalid, its distance and margin."""
    schema, table = applied.schema, applied.table
    value = _number(name, schema)
    if schema[name] == nw.Object and isinstance(table, nw.DataFrame) and len(table):
        read = read_columns(table.select(name).to_native())[0]
        if read.kind != "numeric":
            raise InputError(
                f"Column {name!r} holds {read.first_value()!r}, but a score is a number between "
                "0 and 1."
            )
        column = applied.names.take("_commod_read_score")
        applied.table = table.with_columns(as_series(table, column, read.values))
        value = nw.col(column)
    is_score = _is_between(value, 0.0, 1.0)
    applied.score = score = applied.kept(nw.when(is_score).then(value), "score")
    applied.distance = applied.kept((score - threshold).abs(), "distance")
    margin = margins_in(applied, score, score == threshold, threshold)
    applied.margin = applied.kept(margin, "margin")


def _number(name: str, schema: nw.Schema) -> nw.Expr:
    """Return a column as doubles."""
    if schema[name] == ALL_MISSING:
        return nw.lit(math.nan, nw.Float64)
    return nw.col(name).cast(nw.Float64)


def _is_between(value: nw.Expr, low: float, high: float) -> nw.Expr:
    return ((value >= low) & (value <= high)).fill_null(False)


def ratio_of(applied: Applied, content: Content, total: nw.Expr) -> nw.Expr:
    """Add the ratio as a column."""
    rule, is_above = rule_of(content), applied.score > content.base.threshold
    ratio = total if rule is None else rule.ratio_in(applied, total, applied.distance, is_above)
    ratio = gated_in(applied, content, ratio, applied.score, applied.distance)
    return applied.kept(ratio, "r")


def decisions_of(applied: Applied, content: Content, ratio: nw.Expr) -> tuple[nw.Expr, nw.Expr]:
    """Add whether the decision changes, and the new decision; both False without a score."""
    score, threshold = applied.score, content.base.threshold
    moved = is_changed(ratio, score == threshold) & ~score.is_null()
    changed = applied.kept(moved.fill_null(False), "changed")
    base = (score > threshold).fill_null(False)
    return changed, applied.kept(applied.where(changed, ~base, base), "decided")


def edited_of(
    applied: Applied, content: Content, ratio: nw.Expr, changed: nw.Expr, decided: nw.Expr
) -> nw.Expr:
    """Return the edited score, on the side of its decision; NULL without a base score."""
    score, threshold = applied.score, content.base.threshold
    if content.score_edit == "changed_only":
        crossed = crossing_at(threshold).place(score, applied)
        return applied.if_scored(applied.where(changed, crossed, score))
    values = score, ratio, applied.margin, decided
    return applied.if_scored(all_edited_in(applied, *values, threshold))


def calibrated(applied: Applied, content: Content, edited: nw.Expr) -> nw.Expr:
    """Return the calibrated probability of edited scores; NULL without a score."""
    assert content.calibration is not None
    mapped = applied.kept(_line_of(edited, pieces_of(content.calibration)))
    kept = calibrated_in(applied, mapped, edited, content.base.threshold)
    return nw.when(~edited.is_null()).then(kept)


def _line_of(score: nw.Expr, pieces: Sequence[MapPiece]) -> nw.Expr:
    """Return the value on each score's line by bisection; engines overflow on long chains."""
    if len(pieces) == 1:
        return (score - pieces[0].start) * pieces[0].slope + pieces[0].value
    middle = len(pieces) // 2
    below, above = (_line_of(score, part) for part in (pieces[:middle], pieces[middle:]))
    return nw.when(score < pieces[middle].start).then(below).otherwise(above)


def label(applied: Applied, content: Content, decided: nw.Expr) -> nw.Expr:
    """Return the new decision as a label, NULL where there is no score."""
    positive, negative = (
        nw.lit(label, _label_type(content))
        for label in (content.labels.positive, content.labels.negative)
    )
    return applied.if_scored(applied.where(decided, positive, negative))


def _label_type(content: Content) -> Any:
    kinds = {type(content.labels.positive), type(content.labels.negative)}
    if kinds <= {bool}:
        return nw.Boolean
    if kinds <= {int, bool}:
        return nw.Int64
    return nw.String if kinds == {str} else nw.Float64


def direction(applied: Applied, content: Content, changed: nw.Expr, decided: nw.Expr) -> nw.Expr:
    """Return "gain", "loss" or "kept", NULL where there is no score."""
    up, down = ("gain", "loss") if content.labels.favorable_above else ("loss", "gain")
    moved = applied.where(decided, up, down)
    return applied.if_scored(applied.where(changed, moved, "kept"))


def restore_label_type(table: Frame, decision: str, content: Content) -> Frame:
    """Cast labels back to integers or Booleans: pandas made them floats for missing values."""
    if isinstance(table, nw.DataFrame) and table.implementation.is_pandas_like():
        dtype = _label_type(content)
        if dtype != nw.String and not table[decision].is_null().any():
            return table.with_columns(nw.col(decision).cast(dtype))
    return table
