"""State the rule of a patch once, for engines that compute it value by value.

An engine is a subclass of `Operations`: `frames.py` has that of data frames, `onnx.py` that of
ONNX. Its values build an expression in the order of the steps below. `sql.py` states the rule
again, because databases treat NULL and tiny products differently.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from commod._data.columns import LARGEST
from commod._statistics.score_map import MapPiece, pieces_of
from commod.patch.content import (
    BinColumn,
    CategoryColumn,
    Column,
    Content,
    DistanceBinColumn,
    NumberColumn,
    UnitColumn,
    missing_points_of,
    rule_of,
)
from commod.scorecard import Operations

FINITE = sys.float_info.max


class PatchOperations(Operations):
    """The operations that read columns, beside those of the decision rule."""

    def is_between(self, value: Any, low: float, high: float) -> Any:
        """Return whether a value is in a finite range; NULL, NaN and infinity are not."""
        return (value >= low) & (value <= high)

    def number_column(self, column: NumberColumn | BinColumn) -> Any:
        """Return a column of numbers as doubles."""
        raise NotImplementedError

    def category_points(self, column: CategoryColumn) -> Any:
        """Return the points of each row's category."""
        raise NotImplementedError

    def in_bins(self, value: Any, edges: Sequence[float], points: Sequence[float]) -> Any:
        """Return the points of each value's bin; a bin begins with its edge."""
        raise NotImplementedError

    def on_lines(self, value: Any, lines: Sequence[MapPiece]) -> Any:
        """Return the value on the line of each score."""
        raise NotImplementedError


def parts_in(engine: PatchOperations, column: Column, margin: Any, distance: Any) -> list[Any]:
    """Return what a column adds to the sum, as one or two values of an engine."""
    if isinstance(column, CategoryColumn):
        return [engine.category_points(column)]
    if isinstance(column, DistanceBinColumn):
        return [engine.in_bins(distance, column.edges, column.bin_points)]
    if isinstance(column, UnitColumn):
        return [(margin if column.reads == "margin" else distance) * column.points]
    value = engine.number_column(column)
    known = engine.is_between(value, -FINITE, FINITE)
    missing = missing_points_of(column)
    if isinstance(column, BinColumn):
        inside = engine.in_bins(value, column.edges, column.bin_points)
        return [engine.where(known, inside, missing)]
    filled = engine.where(known, engine.clip(value, -LARGEST, LARGEST), column.if_missing)
    centred = filled - column.centre if column.centre else filled
    parts = [centred * column.points]
    if missing:
        parts.append(engine.where(known, 0.0, missing))
    return parts


def ratio_in(engine: Operations, content: Content, total: Any, score: Any, distance: Any) -> Any:
    """Return r from the sum of the points, held at 1 where the patch forbids a change."""
    gate, threshold, rule = content.ratio, content.base.threshold, rule_of(content)
    ratio = total
    if rule is not None:
        ratio = rule.ratio_in(engine, total, distance, score > threshold)
    if gate.max_margin is not None:
        ratio = engine.where(distance > gate.max_margin, 1.0, ratio)
    if not gate.may_raise:
        ratio = engine.where(score <= threshold, 1.0, ratio)
    if not gate.may_lower:
        ratio = engine.where(score > threshold, 1.0, ratio)
    return ratio


def calibrated_in(engine: PatchOperations, content: Content, edited: Any) -> Any:
    """Return the calibrated probability of edited scores, on their side of the threshold."""
    assert content.calibration is not None
    threshold = content.base.threshold
    mapped = engine.kept(engine.on_lines(edited, pieces_of(content.calibration)))
    above = engine.maximum(mapped, math.nextafter(threshold, 1.0))
    below = engine.minimum(mapped, math.nextafter(threshold, 0.0))
    cut = engine.number(threshold)
    beside = engine.where(edited < cut, below, cut)
    return engine.where(edited > cut, above, beside)
