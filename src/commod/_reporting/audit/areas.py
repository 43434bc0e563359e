"""Compute areas under the ROC curve with DeLong's intervals.

The area is the probability that a positive has a higher score than a negative, ties counted half.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from commod._data.arrays import Floats, Mask
from commod._record import Estimate
from commod._reporting.audit.counts import UNDEFINED, DecisionCounts
from commod._statistics.intervals import share_interval

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class RankedScores:
    """Scores as ranks of their values, so that many areas under the curve need one sort."""

    codes: NDArray[np.intp]
    n_values: int

    @classmethod
    def of(cls, scores: Floats) -> RankedScores:
        """Return the ranks of scores (n,)."""
        values, codes = np.unique(scores, return_inverse=True)
        return cls(codes, len(values))

    def placements(self, positive: Mask) -> Floats:
        """Return the share of negatives below each positive, and of positives above each negative.

        `positive` and the result have shape (n,). Ties count half.
        """
        below, above = _placements(*self._counts(positive))
        return np.where(positive, below[self.codes], above[self.codes])

    def area(self, positive: Mask, level: float) -> Estimate:
        """Return the area under the curve for positives and negatives, `positive` (n,).

        Examples
        --------
        >>> ranked = RankedScores.of(np.array([0.1, 0.4, 0.35, 0.8]))
        >>> ranked.area(np.array([False, False, True, True]), 0.95).value
        0.75
        """
        return area_of_counts(*self._counts(positive), level)

    def _counts(self, positive: Mask) -> tuple[IntArray, IntArray]:
        positives = np.bincount(self.codes[positive], minlength=self.n_values)
        return positives, self._people - positives

    @cached_property
    def _people(self) -> IntArray:
        """Return the number of people with each value."""
        return np.bincount(self.codes, minlength=self.n_values)


def area_of_counts(positives: IntArray, negatives: IntArray, level: float) -> Estimate:
    """Return the area under the curve of people counted by score, lowest first, both (n_values,).

    The interval is DeLong's on the logit scale. Where the scores separate the classes without
    error, DeLong's variance is 0; the interval is then that of no error among the smaller class.

    Examples
    --------
    >>> area_of_counts(np.array([1, 3]), np.array([3, 1]), 0.95).value
    0.75
    """
    n_positive, n_negative = int(positives.sum()), int(negatives.sum())
    if not n_positive or not n_negative:
        return UNDEFINED
    below, above = _placements(positives, negatives)
    area = float(below @ positives) / n_positive
    variance = _variance(below, positives) + _variance(above, negatives)
    low, high = _area_interval(area, variance, min(n_positive, n_negative), (1 - level) / 2)
    return Estimate(area, low, high)


def _placements(positives: IntArray, negatives: IntArray) -> tuple[Floats, Floats]:
    """Return for each value the share of negatives below it, and of positives above, ties half."""
    below = (np.cumsum(negatives) - negatives / 2) / negatives.sum()
    above = 1 - (np.cumsum(positives) - positives / 2) / positives.sum()
    return below, above


def _variance(values: Floats, counts: IntArray) -> float:
    """Return the variance of the mean of values that occur `counts` times."""
    n = int(counts.sum())
    mean = values @ counts / n
    return float((values - mean) ** 2 @ counts) / max(n - 1, 1) / n


def _area_interval(
    area: float, variance: float, n_smaller: int, alpha: float
) -> tuple[float | None, float | None]:
    if n_smaller < 2:
        return None, None
    if not 1e-12 < area < 1 - 1e-12 or not variance:
        low, high = share_interval(round(area * n_smaller), n_smaller, alpha)
        return float(low), float(high)
    half_width = -ndtri(alpha) * math.sqrt(variance) / (area * (1 - area))
    centre = logit(area)
    return float(expit(centre - half_width)), float(expit(centre + half_width))


def area_loss(before: Floats, after: Floats, positive: Mask, level: float) -> Estimate:
    """Return the area before minus the area after, with DeLong's interval of paired areas.

    Examples
    --------
    >>> label = np.array([False, False, True, True])
    >>> area_loss(np.array([0.1, 0.4, 0.5, 0.8]), np.array([0.1, 0.4, 0.3, 0.8]), label, 0.95).value
    0.25
    """
    if positive.all() or not positive.any():
        return UNDEFINED
    first, second = (RankedScores.of(scores).placements(positive) for scores in (before, after))
    return _paired_difference(first, second, positive, level)


def _paired_difference(first: Floats, second: Floats, positive: Mask, level: float) -> Estimate:
    """Return the first area minus the second, from the placements (n,) of the same people."""
    loss, variance = 0.0, 0.0
    for rows in (positive, ~positive):
        difference = first[rows] - second[rows]
        loss = float(difference.mean())  # the same for both classes: the difference of the areas
        n = len(difference)
        variance += float(difference.var(ddof=1)) / n if n > 1 else math.nan
    if math.isnan(variance):
        return Estimate(loss, None, None)
    half_width = float(-ndtri((1 - level) / 2)) * math.sqrt(variance)
    return Estimate(loss, loss - half_width, loss + half_width)


# ---------------------------------------------------------------------------------------------
# Areas that predict the group


def group_areas(
    values: Floats, codes: NDArray[np.intp], is_compared: Mask, level: float
) -> list[Estimate]:
    """Return how well values (n,) predict membership of each compared group."""
    ranked = RankedScores.of(values)
    return [ranked.area(codes == i, level) for i in np.flatnonzero(is_compared)]


def group_area_differences(
    values: Floats,
    others: Floats,
    codes: NDArray[np.intp],
    is_compared: Mask,
    level: float,
) -> list[Estimate]:
    """Return how much better values (n,) predict each compared group than others (n,) do.

    An area below 0.5 predicts who is not in the group, equally well: both areas are turned to 0.5
    or above. The interval is that of paired areas.

    Examples
    --------
    >>> group = np.array([0, 0, 1, 1])
    >>> better, worse = np.array([4.0, 3.0, 2.0, 1.0]), np.array([1.0, 3.0, 2.0, 4.0])
    >>> differences = group_area_differences(better, worse, group, np.array([False, True]), 0.95)
    >>> differences[0].value
    0.25
    """
    ranked = RankedScores.of(values), RankedScores.of(others)
    differences = []
    for i in np.flatnonzero(is_compared):
        positive = codes == i
        if positive.all() or not positive.any():
            differences.append(UNDEFINED)
            continue
        first, second = (_turned(ranks.placements(positive), positive) for ranks in ranked)
        differences.append(_paired_difference(first, second, positive, level))
    return differences


def _turned(placements: Floats, positive: Mask) -> Floats:
    """Return the placements of the scores, or of their negatives, whichever area is larger."""
    return placements if placements[positive].mean() >= 0.5 else 1 - placements


def change_areas(counts: DecisionCounts, is_compared: Mask, level: float) -> list[Estimate]:
    """Return how well the change itself predicts membership of each compared group."""
    changed = sum(counts.raised_and_lowered())
    members = np.stack([counts.sizes - changed, changed], axis=1)  # group; unchanged, changed
    others = members.sum(axis=0) - members
    return [area_of_counts(members[i], others[i], level) for i in np.flatnonzero(is_compared)]
