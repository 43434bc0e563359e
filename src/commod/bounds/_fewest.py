"""Fewest changes on one line of rates: the P-rule, or the gap between true or false positive rates.

The target is an exact fraction here, and so is every comparison with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from commod.bounds._levels import (
    FloatArray,
    Floor,
    IntArray,
    Interval,
    Line,
    best_interval,
    largest_denominator,
)

__all__ = ["exact_gap", "exact_ratio", "fewest_on_line", "next_gap", "next_ratio"]


def exact_ratio(sizes: IntArray, positives: IntArray) -> Fraction | None:
    """Return the lowest rate over the highest; None where nobody is positive."""
    rates = _exact_rates(sizes, positives)
    return min(rates) / max(rates) if max(rates) else None


def exact_gap(sizes: IntArray, positives: IntArray) -> Fraction:
    """Return the highest rate minus the lowest."""
    rates = _exact_rates(sizes, positives)
    return max(rates) - min(rates)


def _exact_rates(sizes: IntArray, positives: IntArray) -> list[Fraction]:
    return [Fraction(p, n) for p, n in zip(positives.tolist(), sizes.tolist(), strict=True)]


def next_ratio(ratio: Fraction, sizes: IntArray) -> Fraction:
    """Return a target above `ratio` that every larger ratio of these groups' rates reaches."""
    return ratio + Fraction(1, ratio.denominator * largest_denominator(sizes))


def next_gap(gap: Fraction, sizes: IntArray) -> Fraction:
    """Return a target below `gap` that every smaller gap of these groups' rates reaches."""
    return gap - Fraction(1, gap.denominator * largest_denominator(sizes))


def fewest_on_line(
    line: Line, floor: Floor, *, limit: float = math.inf, prefer_high: bool = True
) -> IntArray | None:
    """Return the positives per group after the fewest changes that respect the floor, shape (G,).

    None where no counts do, or where it takes more than `limit` changes. Of equally few changes
    the fairest are taken, then those that lower (or raise) fewest.
    """
    goal = _Fewest(line, is_ratio=floor.slope < 1)
    found = best_interval(line, floor, goal, limit=limit, prefer_high=prefer_high)
    return None if found is None else np.clip(line.positives, found.low, found.high)


@dataclass(frozen=True)
class _Fewest:
    """The goal of few changes; between equally few, of fairness."""

    line: Line
    is_ratio: bool
    n_refinements: int = 0

    def cost(self, low: Any, high: Any) -> Any:
        p = self.line.positives
        return (np.maximum(p - high, 0) + np.maximum(low - p, 0)).sum(axis=1)

    relaxed_cost = cost

    def tie_break(self, low: IntArray, high: IntArray) -> FloatArray:
        positives, sizes = np.clip(self.line.positives, low, high), self.line.sizes
        rates, rows = positives / sizes, np.arange(len(low))
        top, bottom = rates.argmax(axis=1), rates.argmin(axis=1)
        # Whole numbers divided once: what is equal stays equal.
        a, b = positives[rows, top] * sizes[bottom], positives[rows, bottom] * sizes[top]
        return -b / a if self.is_ratio else (a - b) / (sizes[top] * sizes[bottom])

    def is_ideal(self, found: Interval) -> bool:
        """Tell whether anything fairer costs more even in real numbers."""
        sizes, positives = self.line.sizes, np.clip(self.line.positives, found.low, found.high)
        if self.is_ratio:
            ratio = exact_ratio(sizes, positives)
            assert ratio is not None  # every group has a positive
            slope, drop = next_ratio(ratio, sizes), Fraction(0)
        else:
            slope, drop = Fraction(1), next_gap(exact_gap(sizes, positives), sizes)
        return slope > 1 or drop < 0 or _least_real_cost(self.line, slope, drop) > found.cost


def _least_real_cost(line: Line, slope: Fraction, drop: Fraction) -> Fraction:
    """Return the fewest changes in real numbers where the floor is slope·u − drop, exactly."""
    cells = list(zip(line.sizes.tolist(), line.positives.tolist(), strict=True))
    rates = _exact_rates(line.sizes, line.positives)

    def cost(u: Fraction) -> Fraction:
        parts = (max(p - u * n, (slope * u - drop) * n - p, Fraction(0)) for n, p in cells)
        return sum(parts, Fraction(0))

    return min(cost(u) for r in rates for u in (r, (r + drop) / slope))
