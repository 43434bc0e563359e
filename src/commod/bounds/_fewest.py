"""Find the fewest changes in one rate row that reach a floor on a ratio or a ceiling on a gap.

Targets are exact fractions, and every comparison with a target is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from commod._data.arrays import Floats
from commod.bounds._levels import (
    MARGIN,
    CountInterval,
    Floor,
    IntArray,
    RateRowCounts,
    best_interval,
    floor_of,
    gap_floor,
    relaxed_gap_costs,
    relaxed_minimum,
    smallest_step,
)


def solve_rate_rows(
    rows: Sequence[RateRowCounts],
    target: Fraction,
    *,
    is_ratio: bool,
    limit: float = math.inf,
    prefer_high: bool = True,
    any_tie: bool = False,
) -> list[IntArray] | None:
    """Return the positives of each row, (G,), after the fewest changes to a target.

    It is a floor on the ratio of one row, or a ceiling on the gap of one row or the sum of the gaps
    of two. None where it cannot be reached, or not with at most `limit` changes. `any_tie` is
    quicker where only the number of changes counts.
    """
    if len(rows) == 2:
        pair = solve_two_rate_rows((rows[0], rows[1]), target, limit=limit, prefer_high=prefer_high)
        return None if pair is None else [*pair]
    floor = floor_of(rows[0].sizes, target, is_ratio=is_ratio)
    after = solve_one_rate_row(
        rows[0], floor, limit=limit, prefer_high=prefer_high, any_tie=any_tie
    )
    return None if after is None else [after]


def solve_one_rate_row(
    row: RateRowCounts,
    floor: Floor,
    *,
    limit: float = math.inf,
    prefer_high: bool = True,
    any_tie: bool = False,
) -> IntArray | None:
    """Return the positives per group after the fewest changes that respect the floor, shape (G,).

    None where no allowed counts do, or where it takes more than `limit` changes. Ties go to the
    fairest counts, then to the highest level of rates (the lowest one without `prefer_high`). With
    `any_tie`, the answer is any of the fewest changes.
    """
    objective = FewestChanges(row, is_ratio=floor.slope < 1, any_tie=any_tie)
    best = best_interval(
        row, floor, objective, limit=limit, prefer_high=prefer_high, least_gain=int(any_tie)
    )
    return None if best is None else np.clip(row.positives, best.low, best.high)


@dataclass(frozen=True)
class FewestChanges:
    """The objective of few changes. Ties go to the fairest counts, unless `any_tie` will do."""

    row: RateRowCounts
    is_ratio: bool
    any_tie: bool = False
    n_refinements: int = 0

    def cost(self, low: Any, high: Any) -> Any:
        """Return the distance from the positives to each interval, summed over groups."""
        p = self.row.positives
        return (np.maximum(p - high, 0) + np.maximum(low - p, 0)).sum(axis=1)

    relaxed_cost = cost

    def rounding(self, cost: float) -> float:
        """Return the rounding error of a relaxed cost: far below one person."""
        return MARGIN

    def tie_break(self, low: IntArray, high: IntArray) -> tuple[Floats, ...]:
        """Return the gap, or minus the ratio, of the counts nearest to the present positives."""
        if self.any_tie:
            return ()
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


# ---------------------------------------------------------------------------------------------
# Find the fewest changes in two rate rows, for equalized odds: how the rows share the ceiling


def solve_two_rate_rows(
    rows: tuple[RateRowCounts, RateRowCounts],
    ceiling: Fraction,
    *,
    limit: float = math.inf,
    prefer_high: bool = True,
) -> tuple[IntArray, IntArray] | None:
    """Return the positives of both rows, each (G,), after the fewest changes to gaps ≤ ceiling.

    None where that takes more than `limit` changes. The same counts always give the same answer.
    """
    gaps = [row.exact_gap(row.positives) for row in rows]
    if sum(gaps) <= ceiling:
        return rows[0].positives, rows[1].positives
    least_gaps = [row.smallest_gap() for row in rows]
    if sum(least_gaps) > ceiling:
        return None
    search = _AllowanceSearch(rows, ceiling, prefer_high, lowest_cost=limit + 1)
    # Outside this range, one of the rows would be allowed a wider gap than it has now, or the
    # other row less than its smallest gap.
    start = float(max(least_gaps[0], ceiling - gaps[1]))
    end = float(min(ceiling - least_gaps[1], gaps[0]))
    allowance, least = relaxed_minimum(search.relaxed, np.linspace(start, end, 33), 8, True)
    search.try_near(allowance)
    if search.lowest_cost >= least + 1 - MARGIN:  # a smaller whole number of changes is possible
        cost = search.lowest_cost - 1 + MARGIN
        low, high = (_boundary(search, allowance, outside, cost) for outside in (start, end))
        search.walk(low, high, least)
    return search.best


class _AllowanceStep(NamedTuple):
    """A step of one row's staircase: its changes, the smallest gap they allow, its positives."""

    n_changes: int
    gap: Fraction
    positives: IntArray


@dataclass
class _AllowanceSearch:
    """The state of the search: the best pair of positives so far, and its cost.

    Until there is a pair, `lowest_cost` is the limit plus 1.
    """

    rows: tuple[RateRowCounts, RateRowCounts]
    ceiling: Fraction
    prefer_high: bool
    lowest_cost: float
    best: tuple[IntArray, IntArray] | None = None

    def allowances(self, first: Floats) -> tuple[Floats, Floats]:
        """Return the allowances of both rows from those of the first row."""
        return first, float(self.ceiling) - first

    def relaxed_of_rows(self, first: Floats) -> list[Floats]:
        """Return the least real cost of each row where the first has each allowance, (N,)."""
        return list(map(relaxed_gap_costs, self.rows, self.allowances(first)))

    def relaxed(self, first: Floats) -> Floats:
        """Return the least real cost of both rows together, (N,)."""
        of_first, of_second = self.relaxed_of_rows(first)
        return of_first + of_second

    def try_near(self, allowance: float) -> None:
        """Try pairs at an allowance of the first row, and one step of a rate beside it."""
        shares = Fraction(allowance), self.ceiling - Fraction(allowance)
        for n_steps in (1, 0):  # between two steps, the exact allowance may cost far too much
            for i, share in enumerate(shares):
                step = Fraction(n_steps, int(self.rows[i].sizes.min()))
                self.try_pair(i, share + step, self.lowest_cost - 1)

    def walk(self, low: float, high: float, least: float) -> None:
        """Try every step of one row, the one with fewer steps, where the first has [low, high]."""
        first = np.array([low, high])
        costs = self.relaxed_of_rows(first)
        i = int(np.argmin([np.ptp(c) for c in costs]))
        allowance = Fraction(high) if i == 0 else self.ceiling - Fraction(low)
        allowance += Fraction(1, 10**12)
        stop = max(self.allowances(first)[i].min() - 1e-12, 0)
        least_of_other = math.ceil(costs[1 - i].min() - MARGIN)
        while allowance >= stop and self.lowest_cost >= least + 1 - MARGIN:
            step = self.try_pair(i, allowance, self.lowest_cost - 1 - least_of_other)
            if step is None:
                return
            allowance = step.gap - smallest_step(step.gap, self.rows[i].sizes)

    def try_pair(self, i: int, allowance: Fraction, limit: float) -> _AllowanceStep | None:
        """Return the step of row i at an allowance; record the pair if it is the best so far."""
        other = self.rows[1 - i]
        allowance = min(max(allowance, Fraction(0)), self.ceiling)
        step = self._step(self.rows[i], allowance, limit)
        if step is None:
            return None
        n_left = self.lowest_cost - 1 - step.n_changes
        remainder = self.ceiling - step.gap
        if relaxed_gap_costs(other, np.array([float(remainder)]))[0] > n_left + MARGIN:
            return step
        partner = self._step(other, remainder, n_left)
        if partner is not None:
            self.lowest_cost = step.n_changes + partner.n_changes
            pair = step.positives, partner.positives
            self.best = pair if i == 0 else pair[::-1]
        return step

    def _step(self, row: RateRowCounts, allowance: Fraction, limit: float) -> _AllowanceStep | None:
        floor = gap_floor(row.sizes, allowance)
        positives = solve_one_rate_row(row, floor, limit=limit, prefer_high=self.prefer_high)
        if positives is None:
            return None
        n_changes = int(np.abs(positives - row.positives).sum())
        return _AllowanceStep(n_changes, row.exact_gap(positives), positives)


def _boundary(search: _AllowanceSearch, inside: float, outside: float, cost: float) -> float:
    """Return an allowance, towards `outside`, beyond which the relaxed cost is above `cost`."""
    for _ in range(6):
        grid = np.linspace(inside, outside, 33)
        above = np.flatnonzero(search.relaxed(grid) > cost)
        if not len(above):
            return outside
        inside, outside = grid[max(above[0] - 1, 0)], grid[above[0]]
    return outside
