"""Find by resampling how far the areas between ROC curves may be from the true ones.

The measured area between two curves is never negative. So chance alone makes it positive, and the
percentile bootstrap does not hold where the true curves are equal or nearly so. This module bounds
the error of the measured area Â = ∫|D̂| of the true A = ∫|D| instead. D̂ is the measured difference
of the two curves, and W = D̂ − D its error. For every D:

- Â − A ≤ ∫|W|. Where D̂ is clearly not zero, |D̂| − |D| = sign(D̂)·W, which is a tighter bound.
- A − Â ≤ −∫ sign(D)·W, because |D̂| ≥ sign(D)·D̂.

Resamples show how large W is. Each one draws as many people as there are, separately for each group
and label. One person of each label is added to every group, spread over all scores of the group.
Without this person, scores that separate the labels by chance would have no error (compare Agresti
and Coull 1998 for proportions).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from commod._record import Estimate
from commod.metrics._roc import RocCurve, ScoreCells, area_between

FloatArray = NDArray[np.float64]

N_CELLS = 100  # scores of a group, at most: neighbours are merged before they are drawn
N_POINTS = 200  # false positive rates at which curves of resamples are compared
N_ADDED = 1.0  # people of each label that are spread over all scores of the group
CLEAR = 3.0  # standard deviations from zero
TINY = 1e-12  # avoids 0 / 0


@dataclass(frozen=True)
class CurveGap:
    """The area between two ROC curves, and what chance alone would give.

    If the true curves were equal, the area would be `chance` on average on as many people. With
    the probability (1 + level) / 2 it would be at most `chance_high`.
    """

    area: Estimate
    chance: float
    chance_high: float


@dataclass(frozen=True)
class ResampledCurves:
    """The curves of groups with both labels, and the errors of the curves of resamples.

    `values` (n_groups, N_POINTS) are the true positive rates that resamples scatter around;
    `errors` (n_resamples, n_groups, N_POINTS) are the differences from them, and `variances`
    (n_groups, N_POINTS) the variances of these.
    """

    curves: tuple[RocCurve, ...]
    values: FloatArray
    errors: FloatArray
    variances: FloatArray

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

    def gap(self, first: int, second: int, level: float) -> CurveGap:
        """Return the area between the curves of two groups."""
        return self.largest_gap([(first, second)], level)[1]

    def largest_gap(
        self, pairs: Sequence[tuple[int, int]], level: float
    ) -> tuple[tuple[int, int], CurveGap]:
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
        gap = CurveGap(estimate, float(chance[largest]), float(noise * scale[largest]))
        return pairs[largest], gap

    def all_pairs(self) -> list[tuple[int, int]]:
        """Return every pair of groups."""
        return list(combinations(range(len(self.curves)), 2))

    @cached_property
    def _areas(self) -> dict[tuple[int, int], float]:
        """Return the area between the curves of every pair of groups."""
        return {(a, b): area_between(self.curves[a], self.curves[b]) for a, b in self.all_pairs()}

    def _errors(self, first: int, second: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how far the measured area may be too large, how far too small, and ∫|W|.

        All have shape (n_resamples,).
        """
        error = self.errors[:, first] - self.errors[:, second]
        difference = self.values[first] - self.values[second]
        sign, size = np.sign(difference), np.abs(error)
        # groups are resampled independently, so their variances add
        is_clear = difference**2 > CLEAR**2 * (self.variances[first] + self.variances[second])
        over = error @ (sign * is_clear) + size @ (~is_clear * 1.0)
        # Where the difference is not clear, its sign may be that of the whole area instead.
        likely = np.where(is_clear, sign, np.sign(difference.sum()))
        under = np.maximum(-(error @ sign), -(error @ likely))
        return over / N_POINTS, under / N_POINTS, size.mean(axis=1)


def _resampled_errors(
    cells: ScoreCells, grid: FloatArray, n_resamples: int, random: np.random.RandomState
) -> tuple[FloatArray, FloatArray]:
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


def _from_zero(cumulated: FloatArray) -> FloatArray:
    return np.concatenate([np.zeros((len(cumulated), 1)), cumulated], axis=1)
