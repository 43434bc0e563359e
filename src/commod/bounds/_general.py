"""Find the fewest changes that keep any combination of bounds on comparisons.

A problem with one comparison of rates by ratio or difference has its own exact algorithm, and so
has one floor or ceiling on a rate. Every other problem becomes an integer programme.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from commod._data.arrays import Floats, Mask
from commod.bounds._integer import (
    TIGHTER,
    Answer,
    Bounded,
    MergedProblem,
    Window,
    bottoms,
    least_positive,
    merged_problems,
    solve_program,
    time_left,
)
from commod.bounds._levels import IntArray, RateRowCounts, solve_rate_rows
from commod.metrics._cells import GroupComparison, Measures
from commod.metrics._people import Bound, People, read_target

TIME_LIMIT = 5.0  # seconds


def fewest_changes(
    people: People, before: Mask, bounds: Sequence[Bound], *, any_tie: bool = True, **moves: Any
) -> Answer | None:
    """Return the fewest changes of decisions `before` (n,) that keep bounds, one per constraint.

    `moves` are those of `fewest_changes_of`: who may change, and how long the search may take.
    None if nothing can be compared, or no decisions are enough.

    Examples
    --------
    >>> from commod.metrics._constraint import get_constraint
    >>> group, before = np.array([0, 0, 1, 1]), np.array([True, True, True, False])
    >>> people = People((get_constraint("demographic_parity"),), group, 2)
    >>> fewest_changes(people, before, [0.8]).n_changes
    1
    """
    sizes, positives = people.counts(before)
    known = [bound for bound in bounds if bound is not None and not np.isnan(float(bound))]
    if len(known) < len(bounds):
        return None
    if people.is_simple:
        if people.n_groups < 2 or not sizes.all():
            return None
        if not people.constraint.is_ratio or known[0] > 0:  # every ratio is at least 0
            known = [read_target(people.constraint, known[0])]
    if not all(people.by_counts):
        return None
    pairs = zip(people.by_counts, known, strict=True)
    compared = [(one, bound) for some, bound in pairs for one in some]
    return fewest_changes_of(compared, sizes, positives, any_tie=any_tie, **moves)


def fewest_changes_of(
    compared: Sequence[tuple[GroupComparison, float | Fraction]],
    sizes: IntArray,
    positives: IntArray,
    *,
    may_raise: bool = True,
    may_lower: bool = True,
    n_raisable: IntArray | None = None,
    n_lowerable: IntArray | None = None,
    prefer_raising: bool = True,
    time_limit: float = TIME_LIMIT,
    is_rough: bool = False,
    any_tie: bool = False,
) -> Answer | None:
    """Return the fewest changes that keep all bounds; None if no decisions do.

    `compared` holds comparisons, which are functions of the positives of the cells, and the bound
    of each: a fraction is exact, and a float is compared with values as they are rounded. `sizes`,
    `positives`, `n_raisable`, `n_lowerable` and the moves that come back have shape (R, G).
    After `time_limit` seconds, the answer is the best so far, with a proven lower bound. A rough
    answer takes milliseconds: its changes may miss a bound by a person, its lower bound is proven.
    `prefer_raising` breaks ties of rates; with `any_tie`, the answer is any of the fewest changes,
    which is quicker.

    A value that is not defined keeps no bound; so a ratio needs somebody positive. A ratio that
    must be at least 0 always holds.
    """
    n_up = np.asarray(sizes - positives if n_raisable is None else n_raisable) * may_raise
    n_down = np.asarray(positives if n_lowerable is None else n_lowerable) * may_lower
    up, down, start = (np.asarray(part, np.int64).ravel() for part in (n_up, n_down, positives))
    deadline, moves = time.monotonic() + time_limit, np.zeros_like(start)
    lower_bound, is_known = 0, True
    problems = list(merged_problems(compared, start, up, down))
    for i, problem in enumerate(problems):
        until = time.monotonic() + time_left(deadline) / (len(problems) - i)
        answer = _solve(problem, until, prefer_raising, is_rough=is_rough, any_tie=any_tie)
        if math.isinf(answer.lower_bound):
            return None
        lower_bound += int(answer.lower_bound)
        is_known &= answer.moves is not None
        if answer.moves is not None:
            moves += problem.cell_moves(answer.moves, up, down)
    return Answer(moves.reshape(np.shape(positives)) if is_known else None, lower_bound)


def _solve(
    problem: MergedProblem, deadline: float, prefer_high: bool, *, is_rough: bool, any_tie: bool
) -> Answer:
    """Return the fewest changes of one problem by the algorithm that fits it.

    A rough answer solves the programme in real numbers and rounds its moves. Comparisons that are
    not linear need a search, which is as long as the time allows.
    """
    nothing = np.zeros_like(problem.n_up)
    if problem.is_kept(nothing):
        return Answer(nothing, 0.0)
    (one, *others) = problem.bounded
    rates = None if others else _as_rates(problem, one)
    if rates is not None:
        moves = _solve_rates(one, rates, len(nothing), prefer_high, any_tie)
        return Answer(moves, math.inf if moves is None else float(np.abs(moves).sum()))
    if is_rough and all(part.is_linear for part in problem.bounded):
        windows = [None] * len(problem.bounded)
        return solve_program(problem, windows, deadline, is_rounded=True)
    return _Search(problem, deadline, separable=SeparableProblem.of(problem)).run()


# Rates that each move one merged cell by one person: counts, and the cell of each group.
Rates = tuple[RateRowCounts, IntArray]


def _as_rates(problem: MergedProblem, one: Bounded) -> list[Rates] | None:
    """Return the measures of a comparison as rates; None if they are not rates."""
    least = int(one.comparison.kind == "ratio")  # which is undefined where nobody is positive
    rates = [_rates_of(problem, table, least) for table in one.tables]
    known = [part for part in rates if part is not None]
    return known if len(known) == len(rates) else None


def _rates_of(problem: MergedProblem, table: Measures, least: int) -> Rates | None:
    is_moved = table.numerator != 0
    cells = is_moved.argmax(axis=1)
    is_whole = all((part == np.rint(part)).all() for part in (table.constant, table.scale))
    if (
        bottoms(table).any()
        or not is_whole
        or not (table.scale > 0).all()
        or not (is_moved.sum(axis=1) == 1).all()
        or not (table.numerator[is_moved] == 1).all()
        or len(set(cells.tolist())) < len(cells)
    ):
        return None
    start = table.constant.astype(np.int64)
    lowest = np.maximum(start - problem.n_down[cells], least)
    highest = start + problem.n_up[cells]
    return RateRowCounts(table.scale.astype(np.int64), start, lowest, highest), cells


def _solve_rates(
    one: Bounded, rates: Sequence[Rates], n_cells: int, prefer_high: bool, any_tie: bool
) -> IntArray | None:
    """Return the moves (n_cells,) of the fewest changes in rates; None if no moves exist."""
    counts, kind = [part for part, _ in rates], one.comparison.kind
    if kind in ("floor", "ceiling"):
        after = _solve_threshold(counts[0], one.target, kind == "floor")
    elif kind == "ratio" and one.target > 1:
        return None
    else:
        ties: Any = {"prefer_high": prefer_high, "any_tie": any_tie}
        after = solve_rate_rows(counts, one.target, is_ratio=kind == "ratio", **ties)
    if after is None:
        return None
    moves = np.zeros(n_cells, dtype=np.int64)
    for (part, cells), row in zip(rates, after, strict=True):
        moves[cells] = row - part.positives
    return moves


def _solve_threshold(
    counts: RateRowCounts, bound: Fraction, is_floor: bool
) -> list[IntArray] | None:
    """Return the positives nearest to the present ones with rates above, or below, the bound."""
    edges = [bound * size for size in counts.sizes.tolist()]
    if is_floor:
        after = np.maximum(counts.positives, [math.ceil(edge) for edge in edges])
    else:
        after = np.minimum(counts.positives, [math.floor(edge) for edge in edges])
    is_possible = ((counts.lowest <= after) & (after <= counts.highest)).all()
    return [after] if is_possible else None


# ---------------------------------------------------------------------------------------------
# Search over windows where comparisons are not linear: best first, with proven lower bounds

CLOSEST = 1e-12  # numbers that differ by less are not separated by a split
SLACKS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # people by which programmes are stricter than asked
FIXED_EVERY = 4  # ranges after which fixed windows are tried, for moves that keep every bound


# Of each comparison, where the lowest of its numbers lies.
Levels = tuple[Window, ...]


@dataclass
class _Search:
    """The state of the search: the best moves so far, and what is proven about the others.

    `dropped` is the smallest lower bound of ranges that could not be split any more.
    """

    problem: MergedProblem
    deadline: float
    separable: SeparableProblem | None
    best: IntArray | None = None
    n_best: float = math.inf
    dropped: float = math.inf
    n_visited: int = 0
    queue: list[tuple[float, int, Levels, IntArray | None]] = field(default_factory=list)

    def run(self) -> Answer:
        """Return the best moves (B,), None if none were found in time, and the lower bound.

        The lower bound is infinite if no moves keep every bound.
        """
        anywhere = (Window(0.0, math.inf),) * len(self.problem.bounded)
        self._push(anywhere, 0.0)
        while self.queue and self.queue[0][0] < self.n_best and time_left(self.deadline) > 0:
            lower, _, levels, moves = heapq.heappop(self.queue)
            if moves is None:  # its programme ran out of time
                self.dropped = min(self.dropped, lower)
            else:
                self._visit(levels, moves, lower)
        lower = min([self.dropped, *(entry[0] for entry in self.queue)])
        if self.best is None and math.isfinite(lower):
            self._try_rounded(anywhere)
        return Answer(self.best, min(lower, self.n_best))

    def _push(self, levels: Levels, parent: float) -> None:
        """Bound a range of levels from below, and put it into the queue."""
        windows = self._windows(levels)
        answer = self._solve(windows)
        lower = max(answer.lower_bound, parent)
        if answer.moves is None and math.isfinite(lower):  # out of time: real numbers are quick
            answer = solve_program(self.problem, windows, self.deadline, is_rounded=True)
            lower = max(answer.lower_bound, lower)
            self._record(answer.moves)
        if lower < self.n_best:
            self.n_visited += 1
            heapq.heappush(self.queue, (lower, self.n_visited, levels, answer.moves))

    def _visit(self, levels: Levels, moves: IntArray, lower: float) -> None:
        """Record the moves if they keep every bound; split the range otherwise."""
        self._record(moves)
        if self.n_best <= lower:
            return
        bounded = self.problem.bounded
        if self.n_visited % FIXED_EVERY == 1 and not all(one.is_linear for one in bounded):
            self._record(self._solve(self._fixed_windows(levels, moves)).moves)
        for i, (one, (low, high)) in enumerate(zip(bounded, levels, strict=True)):
            at = None if one.is_linear else _split(one, moves, low, high)
            if at is not None:
                for part in (Window(low, at), Window(at, high)):
                    self._push((*levels[:i], part, *levels[i + 1 :]), lower)
                return
        # Only the tolerance of HiGHS is violated, or the time for this range was over.
        self.dropped = min(self.dropped, lower)
        self._record(self._solve(self._windows(levels), slack=TIGHTER).moves)

    def _record(self, moves: IntArray | None) -> None:
        """Keep the moves if they are the fewest so far that keep every bound."""
        if moves is None:
            return
        n_changes = int(np.abs(moves).sum())
        if n_changes < self.n_best and self.problem.is_kept(moves):
            self.best, self.n_best = moves, n_changes

    def _solve(self, windows: Sequence[Window | None], slack: float = 0.0) -> Answer:
        """Return the fewest changes within windows; fewer than those of the best moves so far."""
        most = self.n_best - 1
        if self.separable is not None and windows[0] is not None and not slack:
            return self.separable.solve(windows[0], most)
        return solve_program(self.problem, windows, self.deadline, most_changes=most, slack=slack)

    def _try_rounded(self, anywhere: Levels) -> None:
        """Solve stricter programmes in real numbers, and round their moves."""
        windows = self._windows(anywhere)
        for slack in SLACKS:
            answer = solve_program(
                self.problem, windows, self.deadline, slack=slack, is_rounded=True
            )
            if answer.moves is None:
                return
            windows = self._fixed_windows(anywhere, answer.moves)
            self._record(answer.moves)
            if self.best is not None:
                return

    def _windows(self, levels: Levels) -> list[Window | None]:
        """Return the window that each range of the lowest number leaves; None for linear bounds."""
        return [
            None if one.is_linear else Window(low, _top(one, high))
            for one, (low, high) in zip(self.problem.bounded, levels, strict=True)
        ]

    def _fixed_windows(self, levels: Levels, moves: IntArray) -> list[Window | None]:
        """Return windows as wide as the bounds allow, in the middle of the numbers at `moves`."""
        return [
            None if one.is_linear else _fixed_window(one, moves, low, high)
            for one, (low, high) in zip(self.problem.bounded, levels, strict=True)
        ]


def _top(one: Bounded, lowest: float) -> float:
    """Return the largest number that is allowed beside a lowest number."""
    bound = float(one.target)
    return lowest / bound if one.comparison.kind == "ratio" else lowest + bound


def _bottom(one: Bounded, highest: float) -> float:
    """Return the smallest number that is allowed beside a highest number."""
    bound = float(one.target)
    return highest * bound if one.comparison.kind == "ratio" else highest - bound


def _split(one: Bounded, moves: IntArray, low: float, high: float) -> float | None:
    """Return a level that excludes the moves from both parts; None if they keep the bound."""
    values = one.tables[0].values(moves.astype(np.float64))
    if np.isnan(values).any():
        return None
    lowest, needed = float(values.min()), _bottom(one, float(values.max()))
    middle = (lowest + needed) / 2
    return middle if needed - lowest > CLOSEST and low < middle < high else None


def _fixed_window(one: Bounded, moves: IntArray, low: float, high: float) -> Window:
    """Return a window as wide as the bound allows, in the middle of the numbers at `moves`."""
    values = one.tables[0].values(moves.astype(np.float64))
    known = values[~np.isnan(values)]
    lowest, highest = (float(known.min()), float(known.max())) if len(known) else (low, low)
    level = min(max((lowest + _bottom(one, highest)) / 2, low), high)
    return Window(level, _top(one, level))


# ---------------------------------------------------------------------------------------------
# Find the fewest changes of each group alone that bring its number into a window

ROUNDING = 1e-9  # people: far above rounding errors, so that no allowed count is lost
SMALLEST_WEIGHT = 1e-14  # a smaller one is 0, but for rounding errors


@dataclass(frozen=True)
class SeparableProblem:
    """One comparison whose groups share no cell; each group moves one or two cells."""

    problem: MergedProblem
    cells: tuple[IntArray, ...]  # of each group

    @classmethod
    def of(cls, problem: MergedProblem) -> SeparableProblem | None:
        """Return the problem; None if groups share cells or move more than two."""
        if len(problem.bounded) != 1 or problem.bounded[0].is_linear:
            return None
        is_moved = problem.bounded[0].tables[0].counted
        n_moved = is_moved.sum(axis=1)
        if (is_moved.sum(axis=0) > 1).any() or (n_moved > 2).any() or (n_moved < 1).any():
            return None
        return cls(problem, tuple(np.flatnonzero(row) for row in is_moved))

    def solve(self, window: Window, most_changes: float = math.inf) -> Answer:
        """Return the fewest changes that bring all numbers into the window.

        The lower bound is infinite if no moves do, or not with at most `most_changes`.
        """
        moves = np.zeros(len(self.problem.n_up), dtype=np.int64)
        n_changes = 0
        for group, cells in enumerate(self.cells):
            best = self._moves_of(group, cells, window, most_changes - n_changes)
            if best is None:
                return Answer(None, math.inf)
            moves[cells] = best
            n_changes += int(np.abs(best).sum())
        return Answer(moves, float(n_changes))

    def _moves_of(
        self, group: int, cells: IntArray, window: Window, most: float
    ) -> IntArray | None:
        """Return the moves of the one or two cells of a group, (n_cells,)."""
        if most < 0:
            return None
        n_up, n_down = (part[cells] for part in (self.problem.n_up, self.problem.n_down))
        reach = int(min(most, max(n_up[0], n_down[0])))
        first = np.arange(-min(n_down[0], reach), min(n_up[0], reach) + 1)
        low = np.full(len(first), -n_down[1] if len(cells) > 1 else 0, dtype=np.float64)
        high = np.full(len(first), n_up[1] if len(cells) > 1 else 0, dtype=np.float64)
        for weights, limit in self._inequalities(group, window):
            needed = limit - weights[cells[0]] * first - ROUNDING
            weight = weights[cells[1]] if len(cells) > 1 else 0.0
            if weight > SMALLEST_WEIGHT:
                low = np.maximum(low, np.ceil(needed / weight - ROUNDING))
            elif weight < -SMALLEST_WEIGHT:
                high = np.minimum(high, np.floor(needed / weight + ROUNDING))
            else:
                high[needed > 0] = -math.inf
        second = np.clip(0.0, low, high)
        costs = np.where(low <= high, np.abs(first) + np.abs(second), math.inf)
        best = int(costs.argmin())
        if math.isinf(costs[best]) or costs[best] > most:
            return None
        return np.array([first[best], second[best]][: len(cells)]).astype(np.int64)

    def _inequalities(self, group: int, window: Window) -> list[tuple[Floats, float]]:
        """Return (weights, limit) of weights @ moves ≥ limit: the window, and what is defined."""
        one = self.problem.bounded[0]
        (table,) = one.tables
        top, bottom = table.numerator[group], bottoms(table)[group]
        start, scale = float(table.constant[group]), float(table.scale[group])
        found = [(bottom, least_positive(bottom) / 2 - scale)]
        if one.comparison.kind == "ratio":
            found.append((top, least_positive(top) / 2 - start))
        if math.isfinite(window.low):
            found.append((top - window.low * bottom, window.low * scale - start))
        if math.isfinite(window.high):
            found.append((window.high * bottom - top, start - window.high * scale))
        return found
