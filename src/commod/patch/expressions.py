"""Write the decision rule of a patch as narwhals expressions: ratio, decision, edited score.

Engines treat NaN differently. In all of them NaN, NULL and infinity lie outside a finite range, so
every number is compared with a range first.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
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
from commod.scorecard import MAX_EXPONENT, SCORE_CLIP, crossing_at

MAX_COLUMNS_PER_EXPRESSION = 20  # engines overflow on deep expressions
FINITE = sys.float_info.max


class WorkColumns:
    """Names of the columns that exist only while a patch is applied."""

    def __init__(self, taken: Sequence[str]) -> None:
        self.names = FreeNames(taken)
        self.score, self.distance, self.odds, self.margin = self._take(
            "score", "distance", "odds", "margin"
        )
        self.ratio, self.exponent, self.changed, self.decided, self.edited = self._take(
            "ratio", "exponent", "changed", "decided", "edited"
        )

    def _take(self, *names: str) -> list[str]:
        return [self.names.take(f"_commod_{name}") for name in names]


def is_all_missing_type(dtype: Any) -> bool:
    """Return whether a column of this type has no value at all."""
    return bool(dtype == nw.Unknown)


# ---------------------------------------------------------------------------------------------
# r


def with_ratio(table: Frame, schema: nw.Schema, content: Content, work: WorkColumns) -> Frame:
    """Add the sum of the points: in the order of the file, a few columns at a time."""
    table, sources = with_sources(table, schema, content.ratio.columns, work.names)
    table = table.with_columns(nw.lit(content.ratio.intercept, nw.Float64).alias(work.ratio))
    sums = _sums(schema, content.ratio.columns, work, sources)
    if not isinstance(table, nw.DataFrame):
        for _, total in sums:
            table = table.with_columns(total)
        return table
    ratio = table.select(work.ratio)
    for names, total in sums:  # `with_columns` would copy the whole table for every sum
        ratio = table.select(*names).with_columns(ratio[work.ratio]).select(total)
    return table.with_columns(ratio[work.ratio])


def _sums(
    schema: nw.Schema, columns: Sequence[Column], work: WorkColumns, sources: Sources
) -> Iterator[tuple[list[str], nw.Expr]]:
    """Yield the ratio after the next few columns, and the names of all columns that it reads."""
    for start in range(0, len(columns), MAX_COLUMNS_PER_EXPRESSION):
        few = columns[start : start + MAX_COLUMNS_PER_EXPRESSION]
        total = nw.col(work.ratio)
        for column in few:
            for part in _parts(schema, column, work, sources):
                total = total + part
        names = [sources.name(c.name) for c in few if not isinstance(c, ColumnOfScore)]
        yield [work.margin, work.distance, *names], total.alias(work.ratio)


def _parts(schema: nw.Schema, column: Column, work: WorkColumns, sources: Sources) -> list[nw.Expr]:
    """Return what a column adds to r, as one or two expressions."""
    if isinstance(column, MarginColumn):
        return [nw.col(work.margin) * column.points]
    if isinstance(column, DistanceColumn):
        return [nw.col(work.distance) * column.points]
    if isinstance(column, DistanceBinColumn):
        return [_bins(nw.col(work.distance), column.edges, [b.points for b in column.bins])]
    if column.name in sources.points:
        return [nw.col(sources.points[column.name])]
    if isinstance(column, CategoryColumn):
        source = sources.texts.get(column.name, column.name)
        return [_category_points(column, nw.col(source), schema[column.name])]
    if column.name in sources.numbers:
        return _number_points(column, nw.col(sources.numbers[column.name]))
    return _number_points(column, number(column.name, schema))


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
        column = work.names.take("_commod_read_score")
        table = table.with_columns(as_series(table, column, read.values))
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
    """Add the margin and the distance from the threshold.

    The margin is exactly 0 at the threshold, so that a large ratio amplifies no rounding.
    """
    threshold, score = content.base.threshold, nw.col(work.score)
    table = table.with_columns((score - threshold).abs().alias(work.distance))
    # Every step is a column: an engine computes a repeated part of an expression twice.
    table = table.with_columns(score.clip(SCORE_CLIP, 1 - SCORE_CLIP).alias(work.odds))
    odds = nw.col(work.odds)
    table = table.with_columns((odds / (1.0 - odds)).alias(work.odds))
    z = odds.log() - float(logit(threshold))
    is_at_threshold = score == threshold
    return table.with_columns(nw.when(is_at_threshold).then(0.0).otherwise(z).alias(work.margin))


def gated(content: Content, work: WorkColumns) -> nw.Expr:
    """Return the ratio, held at 1 where direction or `max_margin` forbid a change."""
    score, ratio = nw.col(work.score), _ratio_of_sum(content, work)
    if content.ratio.max_margin is not None:
        is_far = nw.col(work.distance) > content.ratio.max_margin
        ratio = nw.when(is_far).then(nw.lit(1.0)).otherwise(ratio)
    if not content.ratio.may_raise:
        ratio = nw.when(score <= content.base.threshold).then(nw.lit(1.0)).otherwise(ratio)
    if not content.ratio.may_lower:
        ratio = nw.when(score > content.base.threshold).then(nw.lit(1.0)).otherwise(ratio)
    return ratio


def _ratio_of_sum(content: Content, work: WorkColumns) -> nw.Expr:
    """Return r as `EvidenceRule.ratio` computes it, before any gate; the sum itself if it is r."""
    total, rule = nw.col(work.ratio), rule_of(content)
    if rule is None:
        return total
    above = rule.pull_above
    is_above = nw.col(work.score) > content.base.threshold
    pull = nw.when(is_above).then(nw.lit(above)).otherwise(nw.lit(-above))
    cost = nw.col(work.distance) * rule.cost_per_distance + rule.fixed_cost
    return cost - total * pull


def changed(content: Content, work: WorkColumns) -> nw.Expr:
    """Return whether the decision changes; False where there is no score."""
    score = nw.col(work.score)
    moved = (nw.col(work.ratio) < 0.0) & (score != content.base.threshold)
    return (moved & ~score.is_null()).fill_null(False)


def decided(content: Content, work: WorkColumns) -> nw.Expr:
    """Return the new decision; False where there is no score."""
    base = (nw.col(work.score) > content.base.threshold).fill_null(False)
    return nw.when(nw.col(work.changed)).then(~base).otherwise(base)


def with_edited_score(table: Frame, content: Content, work: WorkColumns) -> Frame:
    """Add the edited score before it is moved to its side; the base score where the ratio is 1."""
    if content.score_edit == "changed_only":
        crossed = _crossed(content, nw.col(work.score))
        edited = nw.when(nw.col(work.changed)).then(crossed).otherwise(nw.col(work.score))
        return table.with_columns(edited.alias(work.edited))
    score, ratio, exponent = (nw.col(n) for n in (work.score, work.ratio, work.exponent))
    table = table.with_columns((ratio * nw.col(work.margin)).alias(work.exponent))
    bounded = exponent.clip(-MAX_EXPONENT, MAX_EXPONENT) + float(logit(content.base.threshold))
    odds = (-bounded).exp()
    edited = nw.when(ratio == 1.0).then(score).otherwise(1.0 / (1.0 + odds))
    return table.with_columns(edited.alias(work.edited))


def _crossed(content: Content, score: nw.Expr) -> nw.Expr:
    """Return the score on the other side of the threshold, as `crossing_at` places it."""
    line = crossing_at(content.base.threshold)
    raised = score * line.up_slope + line.up_start
    lowered = line.down_start - (1.0 - score) * line.down_slope
    raised = nw.when(raised > line.just_above).then(raised).otherwise(nw.lit(line.just_above))
    lowered = nw.when(lowered < line.just_below).then(lowered).otherwise(nw.lit(line.just_below))
    return nw.when(score > line.threshold).then(lowered).otherwise(raised)


def on_side_of_decision(content: Content, work: WorkColumns) -> nw.Expr:
    """Return the edited score, moved to its decision's side; NULL without a base score."""
    threshold = content.base.threshold
    score, edited, decided = (nw.col(n) for n in (work.score, work.edited, work.decided))
    lowest = nw.lit(math.nextafter(threshold, 1.0))
    raised = nw.when(edited > threshold).then(edited).otherwise(lowest)
    lowered = nw.when(edited > threshold).then(nw.lit(threshold)).otherwise(edited)
    return nw.when(~score.is_null()).then(nw.when(decided).then(raised).otherwise(lowered))


def calibrated(content: Content, edited: str) -> nw.Expr:
    """Return the calibrated probability of a column of edited scores; NULL without a score."""
    assert content.calibration is not None
    threshold, score = content.base.threshold, nw.col(edited)
    mapped = _line_of(score, pieces_of(content.calibration))
    above, below = (nw.lit(math.nextafter(threshold, end)) for end in (1.0, 0.0))
    raised = nw.when(mapped > threshold).then(mapped).otherwise(above)
    lowered = nw.when(mapped < threshold).then(mapped).otherwise(below)
    beside = nw.when(score < threshold).then(lowered).otherwise(nw.lit(threshold))
    kept = nw.when(score > threshold).then(raised).otherwise(beside)
    return nw.when(~score.is_null()).then(kept)


def _line_of(score: nw.Expr, pieces: Sequence[MapPiece]) -> nw.Expr:
    """Return the value on each score's line by bisection; engines overflow on long chains."""
    if len(pieces) == 1:
        return (score - pieces[0].start) * pieces[0].slope + pieces[0].value
    middle = len(pieces) // 2
    below, above = (_line_of(score, part) for part in (pieces[:middle], pieces[middle:]))
    return nw.when(score < pieces[middle].start).then(below).otherwise(above)


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


def direction(content: Content, work: WorkColumns) -> nw.Expr:
    """Return "gain", "loss" or "kept", NULL where there is no score."""
    up, down = ("gain", "loss") if content.labels.favorable_above else ("loss", "gain")
    moved = nw.when(nw.col(work.decided)).then(nw.lit(up)).otherwise(nw.lit(down))
    named = nw.when(nw.col(work.changed)).then(moved).otherwise(nw.lit("kept"))
    return nw.when(~nw.col(work.score).is_null()).then(named)


def known_ratio(work: WorkColumns) -> nw.Expr:
    """Return the ratio, NULL where there is no score."""
    return nw.when(~nw.col(work.score).is_null()).then(nw.col(work.ratio))


def restore_label_type(table: Frame, decision: str, content: Content) -> Frame:
    """Cast labels back to integers or Booleans: pandas made them floats for missing values."""
    if isinstance(table, nw.DataFrame) and table.implementation.is_pandas_like():
        dtype = _label_type(content)
        if dtype != nw.String and not table[decision].is_null().any():
            return table.with_columns(nw.col(decision).cast(dtype))
    return table
