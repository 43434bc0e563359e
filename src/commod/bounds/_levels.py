"""Search the fewest changes, and other best counts, over all levels of the highest rate.

A level u is the highest rate of any group. At a fixed level, a floor on the P-rule or a ceiling on
a gap says how low the other rates may be. So every group has an interval of allowed counts, and the
cost is a sum over groups. `best_interval` searches over the levels:

1. Relax counts to real numbers. The relaxed cost is convex in u and never above the exact cost.
2. Minimise the relaxed cost, which gives the level where the search starts.
3. Try all levels count / size in steps outwards, with exact counts.
4. Stop on each side where the relaxed cost alone exceeds the best exact cost.

Below, G is the number of groups and N the number of levels that are tried at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats

IntArray = NDArray[np.int64]
CostFunction = Callable[[Floats], Floats]  # shape (N,) to (N,)

MARGIN = 1e-3  # far above rounding errors of float64 costs, far below one person
SMALLEST_BATCH, LARGEST_BATCH = 32, 2**17  # levels that are tried at once
LONG_BATCH = 2**13  # above this many levels, `is_ideal` is cheaper than another batch


class RowAnswer(NamedTuple):
    """The best changes of one rate row within a gap: cost, number, the gap that they leave."""

    cost: float
    n_changes: int
    gap: Fraction
    positives: IntArray


@dataclass(frozen=True)
class RateRowCounts:
    """The counts of one rate row: sizes, positives and the allowed final positives, each (G,)."""

    sizes: IntArray
    positives: IntArray
    lowest: IntArray
    highest: IntArray

    @property
    def rates(self) -> Floats:
        """Return the share of positives per group, shape (G,)."""
        return self.positives / self.sizes

    def exact_rates(self, positives: IntArray) -> list[Fraction]:
        """Return the exact rate of each group after its positives became `positives`."""
        return [
            Fraction(p, n) for p, n in zip(positives.tolist(), self.sizes.tolist(), strict=True)
        ]

    def exact_gap(self, positives: IntArray) -> Fraction:
        """Return the highest minus the lowest of these exact rates."""
        rates = self.exact_rates(positives)
        return max(rates) - min(rates)

    def answer(self, positives: IntArray, cost: float | None = None) -> RowAnswer:
        """Return what it takes to arrive at these positives; each change costs 1 by default."""
        n_changes = int(np.abs(positives - self.positives).sum())
        gap = self.exact_gap(positives)
        return RowAnswer(n_changes if cost is None else cost, n_changes, gap, positives)

    def unfairness(self, positives: IntArray, *, is_ratio: bool) -> Floats:
        """Return the gap of the rates, or minus their ratio, for counts (N, G); shape (N,)."""
        rates, at = positives / self.sizes, np.arange(len(positives))
        top, bottom = rates.argmax(axis=1), rates.argmin(axis=1)
        # One division of whole numbers: equal fractions give equal floats.
        a, b = positives[at, top] * self.sizes[bottom], positives[at, bottom] * self.sizes[top]
        return np.asarray(-b / a if is_ratio else (a - b) / (self.sizes[top] * self.sizes[bottom]))

    def smallest_gap(self) -> Fraction:
        """Return the smallest gap of rates that the allowed counts can have."""
        if not self.lowest.any() or (self.highest == self.sizes).all():
            return Fraction(0)  # nobody is positive, or everybody
        gaps = [Fraction(1)]
        for size, low, high in zip(self.sizes, self.lowest, self.highest, strict=True):
            # This group has the highest rate; the others have as many positives as that allows.
            top = np.arange(low, high + 1)[:, None]
            counts = np.minimum(top * self.sizes // size, self.highest)
            counts = counts[(counts >= self.lowest).all(axis=1)]
            if len(counts):
                gaps.append(
                    self.exact_gap(counts[self.unfairness(counts, is_ratio=False).argmin()])
                )
        return min(gaps)


@dataclass(frozen=True)
class Floor:
    """The lowest rate that is allowed under a highest rate u: ``slope * u - drop``.

    In whole numbers: where u is ``k / denominators[r]``, group s needs at least
    ``ceil((k * up[r, s] - off[r, s]) / down[r, s])`` positives. Only such u need to be tried.
    """

    slope: float
    drop: float
    denominators: IntArray
    up: IntArray
    off: IntArray
    down: IntArray


class CountInterval(NamedTuple):
    """The counts that each group may end with at a level: from `low` to `high`, both (G,).

    The smallest `rank` is best: cost, ties, and the level.
    """

    rank: tuple[float, ...]
    low: IntArray
    high: IntArray

    @property
    def cost(self) -> float:
        """Return the cost."""
        return self.rank[0]


# ---------------------------------------------------------------------------------------------
# Floors


def floor_of(sizes: IntArray, target: Fraction, *, is_ratio: bool) -> Floor:
    """Return the floor that keeps a ratio of rates at or above a target, or a gap at or below."""
    return (ratio_floor if is_ratio else gap_floor)(sizes, target)


def ratio_floor(sizes: IntArray, ratio: Fraction) -> Floor:
    """Return the floor that keeps every rate at least `ratio` times the highest; 0 < ratio <= 1."""
    if 1 - ratio < Fraction(1, largest_denominator(sizes)):
        return _equal_rates(sizes)
    denominators = np.array(sorted(set(sizes.tolist())))
    parts = [
        [_round_up(ratio * s / r, r).as_integer_ratio() for s in sizes.tolist()]
        for r in denominators.tolist()
    ]
    up, down = np.moveaxis(np.array(parts, np.int64), -1, 0)
    return Floor(float(ratio), 0.0, denominators, up, np.zeros_like(up), down)


def gap_floor(sizes: IntArray, gap: Fraction) -> Floor:
    """Return the floor that keeps every rate within `gap` of the highest; gap >= 0."""
    if gap < Fraction(1, largest_denominator(sizes)):
        return _equal_rates(sizes)
    denominators = np.array(sorted(set(sizes.tolist())))
    p, q = gap.numerator, gap.denominator
    off = [[p * s * r // q for s in sizes.tolist()] for r in denominators.tolist()]
    up = np.tile(sizes, (len(denominators), 1))
    down = np.tile(denominators[:, None], (1, len(sizes)))
    return Floor(1.0, float(gap), denominators, up, np.array(off, np.int64), down)


def _equal_rates(sizes: IntArray) -> Floor:
    # Rates can only be equal at multiples of 1 / gcd.
    step = np.gcd.reduce(sizes)
    up, down = sizes[None, :], np.full((1, len(sizes)), step)
    return Floor(1.0, 0.0, np.array([step]), up, np.zeros_like(up), down)


def largest_denominator(sizes: IntArray) -> int:
    """Return the largest denominator that a difference or ratio of two groups' rates can have."""
    *_, second, first = sorted(sizes.tolist())
    return int(first * second)


def smallest_step(value: Fraction, *sizes: IntArray) -> Fraction:
    """Return less than the distance from `value` to any other value of the metric.

    `sizes` are the group sizes of each rate row. Two values of the metric differ by a fraction
    whose denominator is at most the product of all denominators.
    """
    return Fraction(1, value.denominator * math.prod(map(largest_denominator, sizes)))


def _round_up(value: Fraction, largest: int) -> Fraction:
    """Return the least fraction >= `value`, which is >= 0, with a denominator of at most `largest`.

    For counts up to `largest` both fractions give the same ceil(count * value). The exact value of
    a float has a denominator of sixteen digits, which would overflow 64 bits; this one does not.
    """
    nearest = value.limit_denominator(largest)
    if nearest >= value:
        return nearest
    # the next fraction c / d has c · b − a · d = 1, with the largest such d
    a, b = nearest.as_integer_ratio()
    d = largest - (largest + pow(a, -1, b)) % b
    return Fraction(a * d + 1, b * d)


# ---------------------------------------------------------------------------------------------
# The search


def best_interval(
    row: RateRowCounts,
    floor: Floor,
    objective: FewestChanges,
    *,
    limit: float = math.inf,
    prefer_high: bool = True,
    least_gain: int = 0,
) -> CountInterval | None:
    """Return the interval of least cost over all levels; None where no cost is at most `limit`.

    Ties go to the smaller `objective.tie_break`, then to the higher level (the lower one without
    `prefer_high`). The search ends where no other level can be cheaper by `least_gain`: 1 for whole
    costs whose ties do not matter. The module docstring lists the steps of the search.
    """
    search = _LevelSearch(row, floor, objective, prefer_high)
    start, end = search.reachable_levels()
    if start > end:
        return None
    kinks = np.concatenate([row.rates, (row.rates + floor.drop) / floor.slope, [start, end]])
    kinks = np.sort(np.clip(kinks, start, end))
    middle, least = relaxed_minimum(search.relaxed, kinks, objective.n_refinements, prefer_high)
    if least > limit + objective.rounding(limit):
        return None
    total = int(floor.denominators.sum())
    # The middle is only near the minimum, so both sides of it are always tried.
    edges = {side: middle + side * SMALLEST_BATCH / total for side in (1, -1)}
    best, n_levels = search.best_level(edges[-1], edges[1]), 2 * SMALLEST_BATCH
    while edges:
        ceiling = min(best.cost - least_gain, limit) if best else limit
        costs = search.relaxed(np.array([*edges.values()]))
        for (side, edge), cost in zip(tuple(edges.items()), costs.tolist(), strict=True):
            if not start <= edge <= end or cost > ceiling + objective.rounding(ceiling):
                del edges[side]
                continue
            edges[side] = edge + side * n_levels / total
            level = search.best_level(min(edge, edges[side]), max(edge, edges[side]))
            best = min(filter(None, (best, level)), key=itemgetter(0), default=None)
        # Where no whole cost lies between the relaxed minimum and the best, only ties are open.
        if n_levels > LONG_BATCH and best and best.cost < least + 1 - MARGIN:
            edges = {} if objective.is_ideal(best) else edges
        n_levels = min(2 * n_levels, LARGEST_BATCH)
    return best if best and best.cost <= limit else None


@dataclass(frozen=True)
class _LevelSearch:
    """The levels of one rate row under one floor, and their costs."""

    row: RateRowCounts
    floor: Floor
    objective: FewestChanges
    prefer_high: bool

    def reachable_levels(self) -> tuple[float, float]:
        """Return the lowest and the highest u at which no relaxed interval is empty."""
        row, floor = self.row, self.floor
        start = float(np.max(row.lowest / row.sizes))
        top = float(np.min(row.highest / row.sizes) + floor.drop) / floor.slope
        return start, min(1.0, top + 1e-12)  # slightly too many: exact counts are checked later

    def relaxed(self, levels: Floats) -> Floats:
        """Return the relaxed cost of each level, (N,)."""
        row, floor = self.row, self.floor
        low = np.maximum((floor.slope * levels - floor.drop)[:, None] * row.sizes, row.lowest)
        high = np.maximum(np.minimum(levels[:, None] * row.sizes, row.highest), low)
        return self.objective.relaxed_cost(low, high)

    def best_level(self, low: float, high: float) -> CountInterval | None:
        """Return the best level in [low, high]; None where every level leaves a group no count."""
        if not self._smallest_group_has_count(low, high):
            return None
        steps = [
            np.arange(max(math.ceil(low * d - 1e-6), 0), min(math.floor(high * d + 1e-6), d) + 1)
            for d in self.floor.denominators.tolist()
        ]
        place = np.repeat(np.arange(len(steps)), [len(part) for part in steps])
        numbers = np.concatenate(steps)
        lows, highs = self._intervals(place, numbers)
        feasible = np.flatnonzero((lows <= highs).all(axis=1))
        if not len(feasible):
            return None
        costs = self.objective.cost(lows[feasible], highs[feasible])
        least = costs.min().item()
        if math.isinf(least):
            return None
        ties = feasible[costs == least]
        order = numbers[ties] / self.floor.denominators[place[ties]]
        order = -order if self.prefer_high else order
        keys = *self.objective.tie_break(lows[ties], highs[ties]), order
        at = np.lexsort(keys[::-1])[0]
        rank = least, *(float(key[at]) for key in keys)
        return CountInterval(rank, lows[ties[at]], highs[ties[at]])

    def _smallest_group_has_count(self, low: float, high: float) -> bool:
        """Return whether the smallest group has a count for some level in [low, high].

        A small group has few rates, so this test alone excludes most ranges of levels.
        """
        row, floor = self.row, self.floor
        s = int(row.sizes.argmin())
        least = max((floor.slope * low - floor.drop) * row.sizes[s] - 1e-6, row.lowest[s])
        most = min(high * row.sizes[s] + 1e-6, row.highest[s])
        return bool(math.ceil(least) <= math.floor(most))

    def _intervals(self, place: NDArray[np.intp], steps: IntArray) -> tuple[IntArray, IntArray]:
        row, floor, k = self.row, self.floor, steps[:, None]
        low = -((floor.off[place] - k * floor.up[place]) // floor.down[place])
        high = k * row.sizes // floor.denominators[place, None]
        return np.maximum(low, row.lowest), np.minimum(high, row.highest)


def relaxed_minimum(
    relaxed: CostFunction, levels: Floats, n_refinements: int, prefer_high: bool
) -> tuple[float, float]:
    """Return the level of least relaxed cost and that cost; of several, the preferred end."""
    for n_left in range(n_refinements, -1, -1):
        costs = relaxed(levels)
        least = float(costs.min())
        flat = np.flatnonzero(costs <= least + 1e-9 * (1 + abs(least)))
        at = flat[-1] if prefer_high else flat[0]
        best = float(levels[at])
        if n_left:
            levels = np.linspace(levels[max(at - 1, 0)], levels[min(at + 1, len(levels) - 1)], 33)
    return best, least


# ---------------------------------------------------------------------------------------------
# Relaxed costs of a gap


def relaxed_gap_costs(row: RateRowCounts, gaps: Floats) -> Floats:
    """Return the fewest changes in real numbers that bring the gap to each of `gaps`, (N,)."""
    rates, t = row.rates, gaps[:, None]
    levels = np.concatenate([np.broadcast_to(rates, (len(gaps), len(rates))), rates + t], axis=1)
    end = np.minimum((row.highest / row.sizes).min() + t, 1)
    levels = np.clip(levels, (row.lowest / row.sizes).max(), end)[:, :, None]
    down = np.maximum(row.positives - levels * row.sizes, 0)
    up = np.maximum((levels - t[:, :, None]) * row.sizes - row.positives, 0)
    return np.asarray((down + up).sum(axis=2).min(axis=1))


# ---------------------------------------------------------------------------------------------
# The fewest changes


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
    """What to minimise over intervals: changes. Ties go to the fairest counts, unless `any_tie`.

    A subclass has other costs. Methods take one interval per level, (N, G), (N, G). The minimum of
    `relaxed_cost` lies at the rate of a group, or at the level whose floor is that rate, or is
    approached by `n_refinements` grids, each finer than the one before.
    """

    row: RateRowCounts
    is_ratio: bool
    any_tie: bool = False

    @property
    def n_refinements(self) -> int:
        """Return how many grids approach the minimum of the relaxed cost."""
        return 0

    def cost(self, low: Any, high: Any) -> Any:
        """Return the distance from the positives to each interval, summed over groups, (N,)."""
        p = self.row.positives
        return (np.maximum(p - high, 0) + np.maximum(low - p, 0)).sum(axis=1)

    relaxed_cost = cost  # of real numbers: convex in the level, and never above `cost`

    def rounding(self, cost: float) -> float:
        """Return how far rounding errors may lift a relaxed cost: far below one person."""
        return MARGIN

    def tie_break(self, low: IntArray, high: IntArray) -> tuple[Floats, ...]:
        """Return the gap, or minus the ratio, of the counts nearest to the present positives.

        Of several keys (N,), the first one decides, then the next.
        """
        if self.any_tie:
            return ()
        positives = np.clip(self.row.positives, low, high)
        return (self.row.unfairness(positives, is_ratio=self.is_ratio),)

    def is_ideal(self, interval: CountInterval) -> bool:
        """Return True only if no interval of the same cost has a smaller `tie_break`.

        Then every fairer target costs more, even in real numbers.
        """
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

    def try_pair(self, i: int, allowance: Fraction, limit: float) -> RowAnswer | None:
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

    def _step(self, row: RateRowCounts, allowance: Fraction, limit: float) -> RowAnswer | None:
        floor = gap_floor(row.sizes, allowance)
        positives = solve_one_rate_row(row, floor, limit=limit, prefer_high=self.prefer_high)
        return None if positives is None else row.answer(positives)


def _boundary(search: _AllowanceSearch, inside: float, outside: float, cost: float) -> float:
    """Return an allowance, towards `outside`, beyond which the relaxed cost is above `cost`."""
    for _ in range(6):
        grid = np.linspace(inside, outside, 33)
        above = np.flatnonzero(search.relaxed(grid) > cost)
        if not len(above):
            return outside
        inside, outside = grid[max(above[0] - 1, 0)], grid[above[0]]
    return outside
