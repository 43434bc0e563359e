"""Compute ROC curves of groups, the areas under them and the areas between them.

The ROC curve of a group shows the true positive rate against the false positive rate, over all
thresholds. People with equal scores pass a threshold together, so the curve has a straight line
there. Every curve is thus piecewise linear, and areas are exact up to rounding. Scores enter by
their order alone: they may be margins, and infinite.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._data.groups import Groups, read_groups
from commod._data.labels import (
    binary_outcome,
    check_length,
    check_weights,
    read_labels,
    read_ranking_scores,
)
from commod._data.parameters import check_number_parameter, check_numbers, check_seed
from commod._data.tables import check_same_rows
from commod._record.explanation import AreaBetween, Estimate
from commod._text import list_names
from commod.exceptions import DataWarning, InputError
from commod.metrics._changes import UNDEFINED, PairShare, as_pair_share, pair_share_interval
from commod.metrics._fairness import reference_index

IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class ScoreCells:
    """The people of one group by score, highest score first; all shapes are (n_scores,).

    `positive` and `negative` are the weights of people with and without the positive label.
    `positive_squares` and `negative_squares` are the sums of squared weights.
    """

    positive: Floats
    negative: Floats
    positive_squares: Floats
    negative_squares: Floats

    @classmethod
    def of_counts(cls, positive: Floats, negative: Floats) -> ScoreCells:
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

        With weights, the variance is that of weighted means. If the scores separate the labels
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


def _effective(weight: Floats, squares: Floats) -> float:
    total = float(squares.sum())
    return float(weight.sum()) ** 2 / total if total > 0 else 0.0


def _shares(weight: Floats) -> Floats:
    return np.asarray(weight / weight.sum())


def _variance(distance: Floats, weight: Floats, squares: Floats, n: float) -> float:
    """Return the variance of a weighted mean; `distance` is that of each value from the mean."""
    return float(distance**2 @ squares) / float(weight.sum()) ** 2 * n / (n - 1)


def _cumulated(weight: Floats) -> Floats:
    """Return the share above each threshold, from 0 to 1; shape (n_scores + 1,)."""
    sums = np.concatenate([[0.0], np.cumsum(weight)])
    return np.asarray(sums / sums[-1])


def score_cells(
    scores: Floats,
    is_positive: Mask,
    codes: IntArray,
    n_groups: int,
    weight: Floats | None = None,
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

    x: Floats
    low: Floats
    high: Floats

    @classmethod
    def through(cls, x: Floats, y: Floats) -> RocCurve:
        """Return the curve through points that never fall; equal `x` make a jump."""
        is_first = np.concatenate([[True], np.diff(x) > 0])
        first = np.flatnonzero(is_first)
        last = np.concatenate([first[1:], [len(x)]]) - 1
        return cls(x[first], y[first], y[last])

    def ends(self, edges: Floats) -> tuple[Floats, Floats]:
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

    def at(self, x: Floats) -> Floats:
        """Return the true positive rates at false positive rates (m,), the higher one at a jump."""
        line = np.minimum(np.searchsorted(self.x, x, side="right") - 1, len(self.x) - 2)
        share = (x - self.x[line]) / (self.x[line + 1] - self.x[line])
        return self.high[line] + (self.low[line + 1] - self.high[line]) * share


def area_between(first: RocCurve, second: RocCurve) -> float:
    """Return the integral of the distance of two curves over [0, 1].

    Within an interval both curves are straight. If they cross inside it, the two triangles are
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


N_CELLS = 100  # scores of a group, at most: neighbours are merged before they are drawn
N_POINTS = 200  # false positive rates at which curves of resamples are compared
N_ADDED = 1.0  # people of each label that are spread over all scores of the group
CLEAR = 3.0  # standard deviations from zero
TINY = 1e-12  # avoids 0 / 0


# ---------------------------------------------------------------------------------------------
# Find by resampling how far the areas between ROC curves may be from the true ones


@dataclass(frozen=True)
class ResampledCurves:
    """The curves of groups with both labels, and the errors of the curves of resamples.

    `values` (n_groups, N_POINTS) are the true positive rates that resamples scatter around;
    `errors` (n_resamples, n_groups, N_POINTS) are the differences from them, and `variances`
    (n_groups, N_POINTS) the variances of these.
    """

    curves: tuple[RocCurve, ...]
    values: Floats
    errors: Floats
    variances: Floats

    @classmethod
    def of(
        cls, groups: Sequence[ScoreCells], n_resamples: int, random: np.random.RandomState
    ) -> ResampledCurves:
        """Resample every group. The order of rows in the table does not matter."""
        grid = (np.arange(N_POINTS) + 0.5) / N_POINTS
        values = np.empty((len(groups), N_POINTS))
        errors = np.empty((n_resamples, len(groups), N_POINTS))
        # a seed per group: figures of a group do not depend on the other groups' scores
        seeds = random.randint(2**31 - 1, size=len(groups))
        for i, (cells, seed) in enumerate(zip(groups, seeds, strict=True)):
            own = np.random.RandomState(seed)
            values[i], errors[:, i] = _resampled_errors(cells, grid, n_resamples, own)
        curves = tuple(cells.curve() for cells in groups)
        return cls(curves, values, errors, errors.var(axis=0))

    def gap(self, first: int, second: int, level: float) -> AreaBetween:
        """Return the area between the curves of two groups."""
        return self.largest_gap([(first, second)], level)[1]

    def largest_gap(
        self, pairs: Sequence[tuple[int, int]], level: float
    ) -> tuple[tuple[int, int], AreaBetween]:
        """Return the pair with the largest area between its curves, and that area.

        The interval holds for all pairs together: `low` bounds the area of this pair, `high` the
        largest of all true areas. Errors of a pair are counted in multiples of its mean ∫|W|, so
        that a small group does not widen the intervals of the others.
        """
        areas = np.array([self._areas[min(pair), max(pair)] for pair in pairs])
        largest = int(np.argmax(areas))
        errors = [self._errors(a, b) for a, b in pairs]
        chance = np.array([noise.mean() for _, _, noise in errors])
        scale = np.maximum(chance, TINY)
        over, under, noise = (
            float(np.quantile(np.max(each, axis=0), (1 + level) / 2))
            for each in zip(
                *([kind / s for kind in own] for own, s in zip(errors, scale, strict=True)),
                strict=True,
            )
        )
        area = float(areas[largest])
        low = min(max(area - over * scale[largest], 0.0), area)
        high = max(min(float((areas + under * scale).max()), 1.0), area)
        estimate = Estimate(area, float(low), high)
        gap = AreaBetween(estimate, float(chance[largest]), float(noise * scale[largest]))
        return pairs[largest], gap

    def all_pairs(self) -> list[tuple[int, int]]:
        """Return every pair of groups."""
        return list(combinations(range(len(self.curves)), 2))

    @cached_property
    def _areas(self) -> dict[tuple[int, int], float]:
        """Return the area between the curves of every pair of groups."""
        return {(a, b): area_between(self.curves[a], self.curves[b]) for a, b in self.all_pairs()}

    def _errors(self, first: int, second: int) -> tuple[Floats, Floats, Floats]:
        """Return how far the measured area may be too large, how far too small, and ∫|W|.

        All have shape (n_resamples,).
        """
        error = self.errors[:, first] - self.errors[:, second]
        difference = self.values[first] - self.values[second]
        sign, size = np.sign(difference), np.abs(error)
        # groups are resampled independently, so their variances add
        is_clear = difference**2 > CLEAR**2 * (self.variances[first] + self.variances[second])
        over = error @ (sign * is_clear) + size @ (~is_clear * 1.0)
        # If the difference is not clear, its sign may be that of the whole area instead.
        likely = np.where(is_clear, sign, np.sign(difference.sum()))
        under = np.maximum(-(error @ sign), -(error @ likely))
        return over / N_POINTS, under / N_POINTS, size.mean(axis=1)


def _resampled_errors(
    cells: ScoreCells, grid: Floats, n_resamples: int, random: np.random.RandomState
) -> tuple[Floats, Floats]:
    """Return the curve that resamples are drawn from, and their differences from it.

    With weights, a resample has the effective number of people.
    """
    cells = cells.merged(N_CELLS)
    both = cells.positive + cells.negative
    drawn = []
    chances = []
    for weight, n in ((cells.negative, cells.n_negative), (cells.positive, cells.n_positive)):
        chance = n * weight / weight.sum() + N_ADDED * both / both.sum()
        chance /= chance.sum()
        n_people = max(round(n) - 1, 1)  # the variance is then that of n people, not n - 1
        people = random.multinomial(n_people, chance, size=n_resamples)
        drawn.append(_from_zero(np.cumsum(people, axis=1) / n_people))
        chances.append(_from_zero(np.cumsum(chance)[None]))
    centre = np.interp(grid, chances[0][0], chances[1][0])
    errors = np.array([np.interp(grid, x, y) for x, y in zip(*drawn, strict=True)])
    return centre, errors - centre


def _from_zero(cumulated: Floats) -> Floats:
    return np.concatenate([np.zeros((len(cumulated), 1)), cumulated], axis=1)


# ---------------------------------------------------------------------------------------------
# Compare how well scores rank the people of each group: AUC by group, and ABROCA

N_RESAMPLES = 400
MOST_GROUPS = 100  # that can be compared by resampling; every pair is resampled


class RocGap(NamedTuple):
    """The area between the ROC curves of two groups (ABROCA), and what chance alone would give.

    `value` is never negative: chance alone makes it positive. If the true curves were equal, it
    would be `chance` on average, and at most `chance_high` with the probability (1 + level) / 2.
    `low` and `high` are the interval of the true area. NaN if undefined.

    Examples
    --------
    >>> RocGap("a", "b", 0.06, 0.0, 0.11, 0.05, 0.09).value
    0.06
    """

    first: Hashable
    second: Hashable
    value: float
    low: float
    high: float
    chance: float
    chance_high: float


@dataclass(frozen=True)
class RocComparison:
    """How well scores rank the people of each group; see `compare_roc_curves`.

    - `by_group`: the area under the curve (AUC) of each group, with its interval.
    - `reference`: the group that the others are compared with.
    - `against_reference`: the area between a group's curve and that of the reference.
    - `largest`: the largest area between two curves, over all pairs of groups.
    - `undefined`: the groups whose people all have the same label. They have no curve.

    Examples
    --------
    >>> y, group = [0, 1, 0, 1, 1, 1], ["a", "a", "a", "a", "b", "b"]
    >>> scores = [0.1, 0.9, 0.4, 0.6, 0.3, 0.8]
    >>> comparison = compare_roc_curves(y, scores, sensitive_features=group)
    >>> comparison.by_group["a"].value, comparison.undefined
    (1.0, ('b',))
    """

    by_group: Mapping[Hashable, PairShare]
    reference: Hashable
    against_reference: Mapping[Hashable, RocGap]
    largest: RocGap
    undefined: tuple[Hashable, ...]


def group_auc(
    y_true: Any,
    scores: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = 1,
    sample_weight: Any = None,
    level: float = 0.95,
) -> dict[Hashable, PairShare]:
    """Return the area under the ROC curve (AUC) of each group, with its interval.

    It is the probability that, within the group, a person with `pos_label` has a higher score than
    a person without it. Ties count half.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, at most two different ones.
    scores : array-like of shape (n_samples,)
        Scores of `pos_label`, any numbers: only their order counts. Infinity is allowed.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_sensitive)
        Group of each row.
    pos_label : label, default=1
        The label that a high score predicts.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row. The variance is then that of weighted means.
    level : float, default=0.95
        Level of the two-sided intervals, in (0.5, 1).

    Returns
    -------
    dict of group to PairShare
        NaN for a group whose people all have the same label; a `DataWarning` names it. The
        interval is DeLong's on the logit scale. It is NaN with fewer than two people of a label.

    Examples
    --------
    >>> areas = group_auc(
    ...     [0, 1, 0, 1, 0, 1, 0, 1],
    ...     [0.1, 0.9, 0.4, 0.6, 0.5, 0.4, 0.2, 0.8],
    ...     sensitive_features=["a"] * 4 + ["b"] * 4,
    ... )
    >>> areas["a"].value, areas["b"].value
    (1.0, 0.75)
    """
    check_numbers("level", level=level)
    groups, cells = _read_cells(y_true, scores, sensitive_features, pos_label, sample_weight)
    _warn_of_one_label(groups, cells)
    areas = (as_pair_share(own.area(level)) for own in cells)
    return dict(zip(groups.labels, areas, strict=True))


def abroca(
    y_true: Any,
    scores: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = 1,
    sample_weight: Any = None,
) -> float:
    """Return the area between the ROC curves of two groups (ABROCA), in [0, 1].

    It is the integral of the distance of the two curves over all false positive rates (Gardner,
    Brooks and Baker 2019). 0 means that the scores rank the people of both groups equally well, at
    every threshold. The areas under both curves may be equal where ABROCA is not 0: the curves then
    cross. With more than two groups it is the largest area over all pairs of groups.

    Parameters
    ----------
    y_true, scores, sensitive_features, pos_label, sample_weight
        As in `group_auc`.

    Returns
    -------
    float
        Exact up to rounding: the curves are piecewise linear. NaN if there is one group only,
        and where all people of a group have the same label; a `DataWarning` names that group.

    See Also
    --------
    compare_roc_curves : Every pair with the reference group, with intervals and what chance gives.

    Notes
    -----
    On few people, chance alone gives a large value. Compare it with `chance` of
    `compare_roc_curves` before you read it as a difference between groups.

    References
    ----------
    Gardner, Brooks and Baker (2019). Evaluating the fairness of predictive student models through
    slicing analysis. LAK19.

    Examples
    --------
    >>> abroca(
    ...     [0, 1, 0, 1, 0, 1, 0, 1],
    ...     [0.1, 0.9, 0.4, 0.6, 0.5, 0.4, 0.2, 0.8],
    ...     sensitive_features=["a"] * 4 + ["b"] * 4,
    ... )
    0.25
    """
    groups, cells = _read_cells(y_true, scores, sensitive_features, pos_label, sample_weight)
    if _warn_of_one_label(groups, cells) or len(cells) < 2:
        return math.nan
    curves = [own.curve() for own in cells]
    return max(area_between(first, second) for first, second in combinations(curves, 2))


def compare_roc_curves(
    y_true: Any,
    scores: Any,
    *,
    sensitive_features: Any,
    reference: Any = None,
    pos_label: Any = 1,
    sample_weight: Any = None,
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    random_state: Any = 0,
) -> RocComparison:
    """Return AUC by group and the areas between ROC curves, with intervals and what chance gives.

    Parameters
    ----------
    y_true, scores, sensitive_features, pos_label, sample_weight, level
        As in `group_auc`.
    reference : label of a group, default=None
        The group that the others are compared with. If None, the group with most people, by
        weight, among those with both labels.
    n_resamples : int, default=400
        Number of resamples, at least 100.
    random_state : int, RandomState or None, default=0
        Seed of the resamples.

    Returns
    -------
    RocComparison
        Groups whose people all have the same label are in `undefined` and in no pair. If the
        reference is one of them, `against_reference` is empty.

    Notes
    -----
    Resamples are drawn within each group and label. They bound the error of the measured area, so
    the interval holds where the true curves are equal, too; the percentile bootstrap does not. The
    interval and `chance_high` of `largest` hold for all pairs together: its `high` bounds the
    largest true area. With weights, a resample has the effective number of rows, (Σw)² / Σw².

    Examples
    --------
    Both groups are alike; what differs is chance:

    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> y, group = random.integers(0, 2, 300), random.choice(["a", "b"], 300)
    >>> scores = y + 2 * random.normal(size=300)
    >>> largest = compare_roc_curves(y, scores, sensitive_features=group).largest
    >>> largest.low == 0 < largest.value < largest.chance_high
    True
    """
    check_numbers("level", level=level)
    check_number_parameter(n_resamples, "n_resamples", (int, np.integer), min_val=100)
    groups, cells = _read_cells(y_true, scores, sensitive_features, pos_label, sample_weight)
    labels = groups.labels
    known = [i for i, own in enumerate(cells) if own.has_both]
    if len(known) > MOST_GROUPS:
        raise InputError(
            f"sensitive_features make {len(known):,} groups with both labels; at most "
            f"{MOST_GROUPS} can be compared by resampling. Name fewer columns, or use abroca and "
            "group_auc, which do not resample.",
            parameter="sensitive_features",
        )
    weights = [float((own.positive + own.negative).sum()) * own.has_both for own in cells]
    base = reference_index(labels, reference, np.array(weights))
    random = check_seed(random_state)
    resampled = ResampledCurves.of([cells[i] for i in known], int(n_resamples), random)
    gaps = {
        labels[i]: _as_gap((labels[i], labels[base]), resampled.gap(j, known.index(base), level))
        for j, i in enumerate(known)
        if i != base and base in known
    }
    largest = RocGap(None, None, *[math.nan] * 5)
    if len(known) > 1:
        (first, second), gap = resampled.largest_gap(resampled.all_pairs(), level)
        largest = _as_gap((labels[known[first]], labels[known[second]]), gap)
    return RocComparison(
        by_group={
            label: as_pair_share(own.area(level)) for label, own in zip(labels, cells, strict=True)
        },
        reference=labels[base],
        against_reference=gaps,
        largest=largest,
        undefined=tuple(label for i, label in enumerate(labels) if i not in known),
    )


def _as_gap(pair: tuple[Hashable, Hashable], gap: AreaBetween) -> RocGap:
    return RocGap(*pair, *as_pair_share(gap.area), gap.chance, gap.chance_high)


# ---------------------------------------------------------------------------------------------
# Reading and checking


def _read_cells(
    y_true: Any, scores: Any, sensitive_features: Any, pos_label: Any, sample_weight: Any
) -> tuple[Groups, list[ScoreCells]]:
    """Return the groups, and the people of each group by score and label."""
    if y_true is None:
        raise InputError(
            "y_true is None, but an ROC curve compares scores with true labels. Pass the labels.",
            parameter="y_true",
        )
    given = {"y_true": y_true, "scores": scores, "sensitive_features": sensitive_features}
    check_same_rows({**given, "sample_weight": sample_weight})
    labels = read_labels(y_true, "y_true", allow_empty=False)
    is_positive = binary_outcome(labels, "y_true", pos_label)
    n = len(labels)
    numbers = read_ranking_scores(scores, "scores")
    check_length(numbers, "scores", n)
    groups = read_groups(sensitive_features, n)
    weight = check_weights(sample_weight, n)
    return groups, score_cells(numbers, is_positive, groups.codes, len(groups.labels), weight)


def _warn_of_one_label(groups: Groups, cells: list[ScoreCells]) -> bool:
    """Warn of groups whose people all have the same label; return whether there are any."""
    pairs = zip(groups.labels, cells, strict=True)
    alike = [str(label) for label, own in pairs if not own.has_both]
    if alike:
        warnings.warn(
            f"All people of {list_names(alike, 3)} have the same true label, so there is no ROC "
            "curve. The result is NaN there. Leave such groups out, or use compare_roc_curves, "
            "which does so and names them.",
            DataWarning,
            stacklevel=3,
        )
    return bool(alike)
