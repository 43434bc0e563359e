"""Compute ROC curves of groups, the areas under them and the areas between them.

The ROC curve of a group shows the true positive rate against the false positive rate, over all
thresholds. People with equal scores pass a threshold together, so the curve has a straight line
there. Every curve is thus piecewise linear, and areas are exact up to rounding. Scores enter by
their order alone: they may be margins, and infinite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from commod._record import Estimate
from commod.metrics._outscoring import UNDEFINED, pair_share_interval

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class ScoreCells:
    """The people of one group by score, highest score first; all shapes are (n_scores,).

    `positive` and `negative` are the weights of people with and without the positive label.
    `positive_squares` and `negative_squares` are the sums of squared weights.
    """

    positive: FloatArray
    negative: FloatArray
    positive_squares: FloatArray
    negative_squares: FloatArray

    @classmethod
    def of_counts(cls, positive: FloatArray, negative: FloatArray) -> ScoreCells:
        """Return cells of people that all have weight 1."""
        return cls(positive, negative, positive, negative)

    @property
    def n_positive(self) -> float:
        """Return the effective number of people with the positive label: (Σw)² / Σw²."""
        return _effective(self.positive, self.positive_squares)

    @property
    def n_negative(self) -> float:
        """Return the effective number of people without the positive label."""
        return _effective(self.negative, self.negative_squares)

    @property
    def has_both(self) -> bool:
        """Return whether people have both labels: without them there is no curve."""
        return self.n_positive > 0 and self.n_negative > 0

    def merged(self, n_cells: int) -> ScoreCells:
        """Return at most `n_cells` cells, each with neighbouring scores and about as many people.

        Both labels have the same weight in this count.
        """
        if len(self.positive) <= n_cells:
            return self
        share = (_shares(self.positive) + _shares(self.negative)) / 2
        middle = np.cumsum(share) - share / 2
        cell = np.minimum((middle * n_cells).astype(np.intp), n_cells - 1)
        columns = (self.positive, self.negative, self.positive_squares, self.negative_squares)
        used = np.bincount(cell, minlength=n_cells) > 0
        sums = (np.bincount(cell, c, minlength=n_cells)[used] for c in columns)
        return ScoreCells(*(each.astype(np.float64) for each in sums))

    def area(self, level: float) -> Estimate:
        """Return the area under the curve, with DeLong's interval on the logit scale.

        With weights, the variance is that of weighted means. Where the scores separate the labels
        without error, the interval is that of no error among the smaller label.

        Examples
        --------
        >>> cells = ScoreCells.of_counts(np.array([3.0, 1.0]), np.array([1.0, 3.0]))
        >>> cells.area(0.95).value
        0.75
        """
        if not self.has_both:
            return UNDEFINED
        positive, negative = self.positive, self.negative
        n_pairs = float(positive.sum()) * float(negative.sum())
        # the negatives below a score, and the positives above it; ties count half
        n_below = negative.sum() - np.cumsum(negative) + negative / 2
        n_above = np.cumsum(positive) - positive / 2
        area = min(max(float(n_below @ positive) / n_pairs, 0.0), 1.0)
        n_smaller = min(self.n_positive, self.n_negative)
        if n_smaller < 2 - 1e-9:
            return Estimate(area, None, None)
        below, above = n_below / negative.sum() - area, n_above / positive.sum() - area
        variance = _variance(below, positive, self.positive_squares, self.n_positive)
        variance += _variance(above, negative, self.negative_squares, self.n_negative)
        return Estimate(area, *pair_share_interval(area, variance, n_smaller, (1 - level) / 2))

    @property
    def tied_area(self) -> float:
        """Return how far the curve of other scores may be, if these scores are rounded ones.

        Rounded scores tie people whose true scores differ. The true curve then lies anywhere within
        the rectangle around a straight line; half of the rectangles is the most that the area
        under the curve, and the area between both curves, can change.
        """
        n_pairs = float(self.positive.sum()) * float(self.negative.sum())
        return float(self.positive @ self.negative) / n_pairs / 2

    def points(self, n_points: int, min_people: float) -> tuple[tuple[float, float], ...]:
        """Return about `n_points` points of the curve, with `min_people` or more between two.

        Examples
        --------
        >>> ScoreCells.of_counts(np.array([3.0, 1.0]), np.array([1.0, 3.0])).points(20, 4)
        ((0.0, 0.0), (0.25, 0.75), (1.0, 1.0))
        """
        cells = self.merged(n_points)
        people = np.cumsum(cells.positive + cells.negative)
        kept, last = [0], 0.0
        for i, n in enumerate(people, start=1):
            if n - last >= min_people and (people[-1] - n >= min_people or i == len(people)):
                kept.append(i)
                last = n
        if kept[-1] != len(people):
            kept.append(len(people))
        x, y = (_cumulated(weight)[kept].tolist() for weight in (cells.negative, cells.positive))
        return tuple((round(a, 4), round(b, 4)) for a, b in zip(x, y, strict=True))

    def curve(self) -> RocCurve:
        """Return the ROC curve; people must have both labels."""
        return RocCurve.through(_cumulated(self.negative), _cumulated(self.positive))


def _effective(weight: FloatArray, squares: FloatArray) -> float:
    total = float(squares.sum())
    return float(weight.sum()) ** 2 / total if total > 0 else 0.0


def _shares(weight: FloatArray) -> FloatArray:
    return np.asarray(weight / weight.sum())


def _variance(distance: FloatArray, weight: FloatArray, squares: FloatArray, n: float) -> float:
    """Return the variance of a weighted mean; `distance` is that of each value from the mean."""
    return float(distance**2 @ squares) / float(weight.sum()) ** 2 * n / (n - 1)


def _cumulated(weight: FloatArray) -> FloatArray:
    """Return the share above each threshold, from 0 to 1; shape (n_scores + 1,)."""
    sums = np.concatenate([[0.0], np.cumsum(weight)])
    return np.asarray(sums / sums[-1])


def score_cells(
    scores: FloatArray,
    is_positive: BoolArray,
    codes: IntArray,
    n_groups: int,
    weight: FloatArray | None = None,
) -> list[ScoreCells]:
    """Return the people of each group by score, from arrays of shape (n,).

    All groups need one sort. Rows without weight are nobody.
    """
    weight = np.ones(len(scores)) if weight is None else weight
    if not weight.all():
        kept = weight > 0
        scores, is_positive, codes = scores[kept], is_positive[kept], codes[kept]
        weight = weight[kept]
    values, rank = np.unique(-scores, return_inverse=True)
    used, cell = np.unique(codes * len(values) + rank, return_inverse=True)
    columns = [
        np.bincount(cell[rows], amount[rows], minlength=len(used)).astype(np.float64)
        for amount in (weight, weight**2)
        for rows in (is_positive, ~is_positive)
    ]
    ends = np.searchsorted(used, np.arange(n_groups + 1) * len(values))
    return [ScoreCells(*(column[start:end] for column in columns)) for start, end in pairwise(ends)]


@dataclass(frozen=True)
class RocCurve:
    """A piecewise linear curve over [0, 1] that may jump.

    `x` (m,) are the false positive rates at which a line begins or ends, from 0 to 1, all
    different. At x[i] the true positive rate jumps from `low[i]` to `high[i]`.
    """

    x: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def through(cls, x: FloatArray, y: FloatArray) -> RocCurve:
        """Return the curve through points that never fall; equal `x` make a jump."""
        is_first = np.concatenate([[True], np.diff(x) > 0])
        first = np.flatnonzero(is_first)
        last = np.concatenate([first[1:], [len(x)]]) - 1
        return cls(x[first], y[first], y[last])

    def ends(self, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the values at the start and at the end of each interval between `edges` (m,).

        The edges include every x of the curve, so the curve is straight within an interval.
        """
        line = np.searchsorted(self.x, edges[:-1], side="right") - 1
        start, slope = self.high[line], self.low[line + 1] - self.high[line]
        x, width = self.x[line], self.x[line + 1] - self.x[line]
        return (
            start + slope * ((edges[:-1] - x) / width),
            start + slope * ((edges[1:] - x) / width),
        )

    def at(self, x: FloatArray) -> FloatArray:
        """Return the true positive rates at false positive rates (m,), the higher one at a jump."""
        line = np.minimum(np.searchsorted(self.x, x, side="right") - 1, len(self.x) - 2)
        share = (x - self.x[line]) / (self.x[line + 1] - self.x[line])
        return self.high[line] + (self.low[line + 1] - self.high[line]) * share


def area_between(first: RocCurve, second: RocCurve) -> float:
    """Return the integral of the distance of two curves over [0, 1].

    Within an interval both curves are straight. Where they cross inside it, the two triangles are
    added.

    Examples
    --------
    >>> diagonal = RocCurve.through(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    >>> perfect = RocCurve.through(np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0]))
    >>> area_between(diagonal, perfect)
    0.5
    """
    edges = np.union1d(first.x, second.x)
    left, right = (a - b for a, b in zip(first.ends(edges), second.ends(edges), strict=True))
    total = np.abs(left) + np.abs(right)
    crosses = left * right < 0
    triangles = (left**2 + right**2) / np.where(crosses, total, 1.0)
    area = float(np.diff(edges) @ np.where(crosses, triangles, total)) / 2
    return 0.0 if math.isclose(area, 0.0, abs_tol=1e-15) else min(area, 1.0)
