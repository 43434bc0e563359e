"""Find the fewest changes in one rate row that reach a floor on a ratio or a ceiling on a gap.

Targets are exact fractions, and every comparison with a target is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from commod.bounds._levels import (
    MARGIN,
    CountInterval,
    FloatArray,
    Floor,
    IntArray,
    RateRowCounts,
    best_interval,
    smallest_step,
)


def solve_one_rate_row(
    row: RateRowCounts, floor: Floor, *, limit: float = math.inf, prefer_high: bool = True
) -> IntArray | None:
    """Return the positives per group after the fewest changes that respect the floor, shape (G,).

    None where no allowed counts do, or where it takes more than `limit` changes. Ties go to the
    fairest counts, then to the highest level of rates (the lowest one without `prefer_high`).
    """
    objective = FewestChanges(row, is_ratio=floor.slope < 1)
    best = best_interval(row, floor, objective, limit=limit, prefer_high=prefer_high)
    return None if best is None else np.clip(row.positives, best.low, best.high)


@dataclass(frozen=True)
class FewestChanges:
    """The objective of few changes. Ties go to the fairest counts."""

    row: RateRowCounts
    is_ratio: bool
    n_refinements: int = 0

    def cost(self, low: Any, high: Any) -> Any:
        """Return the distance from the positives to each interval, summed over groups."""
        p = self.row.positives
        return (np.maximum(p - high, 0) + np.maximum(low - p, 0)).sum(axis=1)

    relaxed_cost = cost

    def rounding(self, cost: float) -> float:
        """Return the rounding error of a relaxed cost: far below one person."""
        return MARGIN

    def tie_break(self, low: IntArray, high: IntArray) -> tuple[FloatArray]:
        """Return the gap, or minus the ratio, of the counts nearest to the present positives."""
        positives = np.clip(self.row.positives, low, high)
        return (self.row.unfairness(positives, is_ratio=self.is_ratio),)

    def is_ideal(self, interval: CountInterval) -> bool:
        """Return whether every fairer target costs more, even in real numbers."""
        row = self.row
        rates = row.exact_rates(np.clip(row.positives, interval.low, interval.high))
        slope, drop = Fraction(1), Fraction(0)
        if self.is_ratio:
            ratio = min(rates) / max(rates)
            slope = ratio + smallest_step(ratio, row.sizes)
        else:
            gap = max(rates) - min(rates)
            drop = gap - smallest_step(gap, row.sizes)
        return slope > 1 or drop < 0 or _least_real_cost(row, slope, drop) > interval.cost


def _least_real_cost(row: RateRowCounts, slope: Fraction, drop: Fraction) -> Fraction:
    """Return the fewest changes in real numbers where the floor is slope·u − drop, exactly."""
    cells = list(zip(row.sizes.tolist(), row.positives.tolist(), strict=True))

    def cost(u: Fraction) -> Fraction:
        parts = (max(p - u * n, (slope * u - drop) * n - p, Fraction(0)) for n, p in cells)
        return sum(parts, Fraction(0))

    rates = row.exact_rates(row.positives)
    return min(cost(u) for r in rates for u in (r, (r + drop) / slope))
