"""Exact search over the highest rate: which interval of positive counts suits every group best.

Once the highest rate u of any group is fixed, a floor on the P-rule or a ceiling on a gap says how
low the others may go, so each group has an interval of allowed counts and every question about
changes splits by group. What is left is a search over u, which only takes the values count / size.
In real numbers the cost is convex in u and never above the cost in whole people: the search starts
at the real optimum and stops on each side where the real cost alone exceeds the best found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MARGIN",
    "FloatArray",
    "Floor",
    "Goal",
    "IntArray",
    "Interval",
    "Line",
    "best_interval",
    "gap_floor",
    "largest_denominator",
    "ratio_floor",
    "relaxed_minimum",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Relaxed = Callable[[FloatArray], FloatArray]

MARGIN = 1e-3  # far above the rounding of float64 costs, far below the one person they count
NARROWEST, WIDEST = 64, 2**17  # levels tried at once
LONG = 2**13  # levels at once from which it pays to ask whether the search may stop


@dataclass(frozen=True)
class Line:
    """One rate per group: sizes, positives, and the positives each group may end with; all (G,)."""

    sizes: IntArray
    positives: IntArray
    lowest: IntArray
    highest: IntArray

    @property
    def rates(self) -> FloatArray:
        """Return the share of positives per group, shape (G,)."""
        return self.positives / self.sizes


@dataclass(frozen=True)
class Floor:
    """How low a group may go under a highest rate u: to the rate ``slope * u - drop``.

    Exactly, where u is ``k / denominators[r]``, group s needs at least
    ``ceil((k * up[r, s] - off[r, s]) / down[r, s])`` positives. No other u needs a look.
    """

    slope: float
    drop: float
    denominators: IntArray
    up: IntArray
    off: IntArray
    down: IntArray


class Interval(NamedTuple):
    """The counts every group may end with, both of shape (G,), and what the best of them cost."""

    cost: int
    low: IntArray
    high: IntArray


class Goal(Protocol):
    """What to minimise over intervals; one line per level: (N, G) in, (N,) out.

    `relaxed_cost` of an interval of real numbers is convex in the level; on whole numbers it is at
    most `cost`. The relaxed minimum lies at a group's own rate, at the level over which that rate
    is the floor, or is found by `n_refinements` finer and finer grids. `is_ideal` may tell that no
    interval of the same cost has a smaller `tie_break`.
    """

    @property
    def n_refinements(self) -> int: ...

    def cost(self, low: IntArray, high: IntArray) -> IntArray: ...

    def relaxed_cost(self, low: FloatArray, high: FloatArray) -> FloatArray: ...

    def tie_break(self, low: IntArray, high: IntArray) -> FloatArray: ...

    def is_ideal(self, found: Interval) -> bool: ...


# ---------------------------------------------------------------------------------------------
# Floors


def ratio_floor(sizes: IntArray, ratio: Fraction) -> Floor:
    """Return the floor that keeps every rate at least `ratio` times the highest; 0 < ratio <= 1."""
    if 1 - ratio < Fraction(1, largest_denominator(sizes)):
        return _equal_rates(sizes)
    denominators = np.unique(sizes)
    parts = [[_round_up(ratio * s / r, r) for s in sizes.tolist()] for r in denominators.tolist()]
    up = np.array([[f.numerator for f in row] for row in parts], np.int64)
    down = np.array([[f.denominator for f in row] for row in parts], np.int64)
    return Floor(float(ratio), 0.0, denominators, up, np.zeros_like(up), down)


def gap_floor(sizes: IntArray, gap: Fraction) -> Floor:
    """Return the floor that keeps every rate within `gap` of the highest; gap >= 0."""
    if gap < Fraction(1, largest_denominator(sizes)):
        return _equal_rates(sizes)
    denominators = np.unique(sizes)
    p, q = gap.numerator, gap.denominator
    off = [[p * s * r // q for s in sizes.tolist()] for r in denominators.tolist()]
    up = np.tile(sizes, (len(denominators), 1))
    down = np.tile(denominators[:, None], (1, len(sizes)))
    return Floor(1.0, float(gap), denominators, up, np.array(off, np.int64), down)


def _equal_rates(sizes: IntArray) -> Floor:
    # Equal rates are the multiples of 1 / gcd: they may be few and far apart.
    step = np.gcd.reduce(sizes)
    up, down = sizes[None, :], np.full((1, len(sizes)), step)
    return Floor(1.0, 0.0, np.array([step]), up, np.zeros_like(up), down)


def largest_denominator(sizes: IntArray) -> int:
    """Return the largest denominator that a difference or ratio of two groups' rates can have."""
    *_, second, first = sorted(sizes.tolist())
    return int(first * second)


def _round_up(value: Fraction, largest: int) -> Fraction:
    """Return the least fraction >= value whose denominator is at most `largest`.

    For counts up to `largest` both give the same ceil(count * value), and only this one surely
    stays within 64 bits: a float's exact value has a denominator of sixteen digits.
    """
    near = value.limit_denominator(largest)
    if near >= value:
        return near
    p, q = near.numerator, near.denominator  # the next Farey fraction a / b has a·q − b·p = 1
    b = largest - (largest + pow(p, -1, q)) % q
    return Fraction((b * p + 1) // q, b)


# ---------------------------------------------------------------------------------------------
# The search


class _Found(NamedTuple):
    """A level, so many steps of 1 / one of the floor's denominators; less is better."""

    cost: int
    tie_break: float
    order: float
    place: int
    steps: int


def best_interval(
    line: Line, floor: Floor, goal: Goal, *, limit: float = math.inf, prefer_high: bool = True
) -> Interval | None:
    """Return the best interval over all levels of the highest rate; None where none costs less.

    A cost beyond `limit` is not looked for. Ties go to the smaller `goal.tie_break`, then to the
    higher (or the lower) level.
    """
    start, end = _reachable_levels(line, floor)
    if start > end:
        return None

    def relaxed(levels: FloatArray) -> FloatArray:
        return goal.relaxed_cost(*_relaxed_interval(line, floor, levels))

    kinks = np.concatenate([line.rates, (line.rates + floor.drop) / floor.slope, [start, end]])
    kinks = np.sort(np.clip(kinks, start, end))
    middle, least = relaxed_minimum(relaxed, kinks, goal.n_refinements, prefer_high)
    total = int(floor.denominators.sum())
    width, best = NARROWEST, None
    edges = {1: middle, -1: middle}  # how far the search has come on each side
    while edges:
        for side, edge in tuple(edges.items()):
            bar = min(best.cost, limit) if best else limit
            if not start <= edge <= end or relaxed(np.array([edge]))[0] > bar + MARGIN:
                del edges[side]
                continue
            edges[side] = edge + side * width / total
            low, high = min(edge, edges[side]), max(edge, edges[side])
            found = _best_between(line, floor, goal, low, high, prefer_high)
            best = min(filter(None, (best, found)), default=None)
        if width > LONG and best and best.cost < least + 1 - MARGIN:  # no whole cost lies between
            edges = {} if goal.is_ideal(_interval_of(line, floor, best)) else edges
        width = min(2 * width, WIDEST)
    return _interval_of(line, floor, best) if best and best.cost <= limit else None


def _reachable_levels(line: Line, floor: Floor) -> tuple[float, float]:
    """Return the lowest and the highest u at which, in real numbers, no interval is empty."""
    start = float(np.max(line.lowest / line.sizes))
    top = float(np.min(line.highest / line.sizes) + floor.drop) / floor.slope
    return start, min(1.0, top + 1e-12)  # counts are checked exactly later, so rather too many


def _relaxed_interval(
    line: Line, floor: Floor, levels: FloatArray
) -> tuple[FloatArray, FloatArray]:
    low = np.maximum((floor.slope * levels - floor.drop)[:, None] * line.sizes, line.lowest)
    return low, np.maximum(np.minimum(levels[:, None] * line.sizes, line.highest), low)


def relaxed_minimum(
    relaxed: Relaxed, levels: FloatArray, n_refinements: int, prefer_high: bool
) -> tuple[float, float]:
    """Return the level of least relaxed cost (the preferred one of several) and that cost."""
    for n_left in range(n_refinements, -1, -1):
        costs = relaxed(levels)
        least = float(costs.min())
        flat = np.flatnonzero(costs <= least + 1e-9 * (1 + abs(least)))
        at = flat[-1] if prefer_high else flat[0]
        best = float(levels[at])
        if n_left:
            levels = np.linspace(levels[max(at - 1, 0)], levels[min(at + 1, len(levels) - 1)], 33)
    return best, least


def _best_between(
    line: Line, floor: Floor, goal: Goal, low: float, high: float, prefer_high: bool
) -> _Found | None:
    """Return the best level in [low, high]; None where no level suits every group."""
    if not _smallest_group_can(line, floor, low, high):
        return None
    first = np.maximum(np.ceil(low * floor.denominators - 1e-6), 0).astype(np.int64)
    last = np.floor(high * floor.denominators + 1e-6).astype(np.int64)
    last = np.minimum(last, floor.denominators)
    place = np.repeat(np.arange(len(first)), np.maximum(last - first + 1, 0))
    steps = np.concatenate([np.arange(f, t + 1) for f, t in zip(first, last, strict=True)])
    lows, highs = _intervals(line, floor, place, steps)
    suits = np.flatnonzero((lows <= highs).all(axis=1))
    if not len(suits):
        return None
    costs = goal.cost(lows[suits], highs[suits])
    ties = suits[costs == costs.min()]
    order = steps[ties] / floor.denominators[place[ties]] * (-1 if prefer_high else 1)
    keys = goal.tie_break(lows[ties], highs[ties])
    at = np.lexsort((order, keys))[0]
    level = int(place[ties[at]]), int(steps[ties[at]])
    return _Found(int(costs.min()), float(keys[at]), float(order[at]), *level)


def _smallest_group_can(line: Line, floor: Floor, low: float, high: float) -> bool:
    """Tell whether the group with the fewest rates has one to offer: a few rows leave deserts."""
    s = int(np.argmin(line.sizes))
    least = max((floor.slope * low - floor.drop) * line.sizes[s] - 1e-6, line.lowest[s])
    most = min(high * line.sizes[s] + 1e-6, line.highest[s])
    return bool(math.ceil(least) <= math.floor(most))


def _intervals(
    line: Line, floor: Floor, place: NDArray[np.intp], steps: IntArray
) -> tuple[IntArray, IntArray]:
    k = steps[:, None]
    low = -((floor.off[place] - k * floor.up[place]) // floor.down[place])
    high = k * line.sizes // floor.denominators[place, None]
    return np.maximum(low, line.lowest), np.minimum(high, line.highest)


def _interval_of(line: Line, floor: Floor, found: _Found) -> Interval:
    low, high = _intervals(line, floor, np.array([found.place]), np.array([found.steps]))
    return Interval(found.cost, low[0], high[0])
