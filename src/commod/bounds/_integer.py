"""Reduce bounds on cells to small problems, and solve them as integer programmes (HiGHS).

Three steps make the problems small; none of them changes the fewest changes:

1. A floor or a ceiling concerns each group alone, so it becomes one comparison per group.
2. Comparisons that share no cell are separate problems.
3. Cells that act alike in all comparisons of a problem are merged. A cell in which raising acts as
   lowering does elsewhere is mirrored first. So the accuracy of a group moves one merged cell.

The variables of a programme are the people raised and lowered in each merged cell, and levels: the
highest or the lowest number of the compared groups. A comparison of measures whose denominator
moves is linear only where a window for the numbers of all groups is given.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from commod._data.arrays import Floats
from commod.bounds._levels import IntArray, largest_denominator
from commod.metrics._cells import DIGITS, GroupComparison, Measures

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

# Metrics are rounded to DIGITS, so a value this close to a bound keeps it.
TOLERANCE = Fraction(1, 2 * 10**DIGITS)


@dataclass(frozen=True)
class Bounded:
    """A comparison of measures that are functions of moves, and the bound that it must keep.

    A move is how many more people of a merged cell are positive, or fewer, where it is negative.
    """

    comparison: GroupComparison
    bound: float | Fraction

    @property
    def tables(self) -> tuple[Measures, ...]:
        """Return the compared measures as functions of the moves."""
        return self.comparison.tables

    @property
    def is_linear(self) -> bool:
        """Return whether inequalities that are linear in the moves state the bound."""
        is_alone = self.comparison.kind in ("floor", "ceiling")
        return is_alone or not any(bottoms(table).any() for table in self.tables)

    @property
    def target(self) -> Fraction:
        """Return the exact number that the exact value is compared with."""
        if isinstance(self.bound, Fraction):
            return self.bound
        exact = Fraction(repr(float(self.bound)))
        return exact - TOLERANCE if self._is_floor else exact + TOLERANCE

    @property
    def _is_floor(self) -> bool:
        return self.comparison.kind in ("ratio", "floor")

    def is_kept(self, moves: IntArray) -> bool:
        """Return whether the moves (B,) keep the bound, in exact fractions.

        A value that is not defined keeps no bound.
        """
        value = self.exact_value(moves)
        if value is None:
            return False
        return value >= self.target if self._is_floor else value <= self.target

    def exact_value(self, moves: IntArray) -> Fraction | None:
        """Return the value at the moves (B,); None if it is not defined."""
        ranges = []
        for table in self.tables:
            numbers = exact_numbers(table, moves)
            if None in numbers:
                return None
            known = [number for number in numbers if number is not None]
            ranges.append((min(known), max(known)))
        lowest, highest = ranges[0]
        match self.comparison.kind:
            case "floor":
                return lowest
            case "ceiling":
                return highest
            case "difference":
                return sum((high - low for low, high in ranges), Fraction(0))
        return lowest / highest if highest > 0 else None


def bottoms(table: Measures) -> Floats:
    """Return the weights of the moves in the denominators, (m, B); `_from_moves` states all."""
    assert table.denominator is not None
    return table.denominator


def exact_numbers(table: Measures, moves: IntArray) -> list[Fraction | None]:
    """Return the exact number of each group; None for a division by zero."""
    tops = _exact_sums(table.numerator, table.constant, moves)
    sizes = _exact_sums(bottoms(table), table.scale, moves)
    return [top / size if size > 0 else None for top, size in zip(tops, sizes, strict=True)]


def _exact_sums(slopes: Floats, constant: Floats, moves: IntArray) -> list[Fraction]:
    """Return weighted numbers of people; 0 if only rounded weights keep them above it."""
    counts, sums = moves.tolist(), []
    for weights, start in zip(slopes.tolist(), constant.tolist(), strict=True):
        parts = (Fraction(a) * z for a, z in zip(weights, counts, strict=True) if a)
        sums.append(Fraction(start) + sum(parts))
    least = [Fraction(least_positive(weights)) / 2 for weights in slopes]
    return [value if value > at else Fraction(0) for value, at in zip(sums, least, strict=True)]


def least_positive(slopes: Floats) -> float:
    """Return the smallest number above zero that a sum of counts with these weights can be."""
    weights = np.abs(slopes[slopes != 0])
    return float(weights.min()) if len(weights) else 0.0


@dataclass(frozen=True)
class MergedProblem:
    """Comparisons that share cells, as functions of the moves of B merged cells.

    `n_up` and `n_down` (B,) are the most people that may be raised and lowered. `merged` (A,) is
    the merged cell of each original cell, −1 for cells of other problems. `sign` (A,) is −1 for a
    mirrored cell.
    """

    bounded: tuple[Bounded, ...]
    n_up: IntArray
    n_down: IntArray
    merged: IntArray
    sign: IntArray

    def is_kept(self, moves: IntArray) -> bool:
        """Return whether the moves (B,) keep every bound."""
        return all(one.is_kept(moves) for one in self.bounded)

    def cell_moves(self, moves: IntArray, n_up: IntArray, n_down: IntArray) -> IntArray:
        """Return the moves of the original cells (A,); at most `n_up` and `n_down` (A,)."""
        result = np.zeros(len(n_up), dtype=np.int64)
        for b, move in enumerate(moves.tolist()):
            for cell in np.flatnonzero(self.merged == b).tolist():
                step = move * int(self.sign[cell])
                step = min(step, int(n_up[cell])) if step > 0 else max(step, -int(n_down[cell]))
                result[cell] = step
                move -= step * int(self.sign[cell])
        return result


def merged_problems(
    compared: Sequence[tuple[GroupComparison, float | Fraction]],
    positives: IntArray,
    n_up: IntArray,
    n_down: IntArray,
) -> Iterator[MergedProblem]:
    """Yield independent problems; `positives`, `n_up` and `n_down` have shape (A,)."""
    bounded = [
        Bounded(one, bound)
        for comparison, bound in compared
        if comparison.kind != "ratio" or bound > 0  # every ratio is at least 0
        for one in _by_group(comparison, [_from_moves(t, positives) for t in comparison.tables])
    ]
    for members in _connected(bounded):
        yield _merge([bounded[i] for i in members], n_up, n_down)


def _by_group(comparison: GroupComparison, tables: Sequence[Measures]) -> list[GroupComparison]:
    """Return the comparison of these tables, split by group for a floor or a ceiling."""
    if comparison.kind not in ("floor", "ceiling"):
        return [replace(comparison, tables=tuple(tables))]
    (table,) = tables
    parts = table.numerator, table.constant, table.scale, bottoms(table)
    return [
        replace(comparison, tables=(Measures(*(part[[i]] for part in parts)),), groups=(group,))
        for i, group in enumerate(comparison.groups)
    ]


def _from_moves(table: Measures, positives: IntArray) -> Measures:
    """Return measures as functions of moves; they are functions of positives (A,) before."""
    constant = table.constant + table.numerator @ positives
    if table.denominator is None:
        return replace(table, constant=constant, denominator=np.zeros_like(table.numerator))
    return replace(table, constant=constant, scale=table.scale + table.denominator @ positives)


def _slopes(bounded: Sequence[Bounded]) -> Floats:
    """Return all weights of the moves, one row per group, table and comparison."""
    tables = [table for one in bounded for table in one.tables]
    return np.vstack([part for table in tables for part in (table.numerator, bottoms(table))])


def _connected(bounded: Sequence[Bounded]) -> list[list[int]]:
    """Return the numbers of the comparisons of each problem: cells link them, directly or not."""
    if not bounded:
        return []
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    uses = np.stack([_slopes([one]).any(axis=0) for one in bounded]).astype(np.int64)
    n_problems, problem = connected_components(csr_array(uses @ uses.T), directed=False)
    return [np.flatnonzero(problem == i).tolist() for i in range(n_problems)]


def _merge(bounded: Sequence[Bounded], n_up: IntArray, n_down: IntArray) -> MergedProblem:
    """Return the problem of some comparisons, with cells that act alike merged."""
    slopes = _slopes(bounded)
    first = slopes[(slopes != 0).argmax(axis=0), np.arange(slopes.shape[1])]
    sign = np.where(first < 0, -1, 1)
    used = np.flatnonzero(first)
    _, first_of, number = np.unique(
        (slopes * sign)[:, used] + 0.0, axis=1, return_index=True, return_inverse=True
    )
    merged, n_merged = np.full(slopes.shape[1], -1), len(first_of)
    number = number.ravel()  # NumPy 2.0.0 gives it the shape (1, n)
    merged[used] = number
    up, down = np.where(sign > 0, n_up, n_down), np.where(sign > 0, n_down, n_up)

    def reduced(one: Bounded) -> Bounded:
        tables = []
        for table in one.tables:
            parts = table.numerator, bottoms(table)
            top, bottom = ((part * sign)[:, used[first_of]] for part in parts)
            tables.append(replace(table, numerator=top, denominator=bottom))
        return replace(one, comparison=replace(one.comparison, tables=tuple(tables)))

    return MergedProblem(
        tuple(map(reduced, bounded)),
        np.bincount(number, up[used], minlength=n_merged).astype(np.int64),
        np.bincount(number, down[used], minlength=n_merged).astype(np.int64),
        merged,
        sign,
    )


# ---------------------------------------------------------------------------------------------
# State bounds as linear inequalities, and solve the programme

ROW_SCALE = 1000.0  # the largest weight of a row; HiGHS has an absolute tolerance of 1e-6
TIGHTER = 1e-7  # of this weight: far above the tolerance, far below one person
MOST_NODES = 20_000  # of one integer programme


class Window(NamedTuple):
    """The range of the numbers of all groups in a comparison whose denominators move."""

    low: float
    high: float


def time_left(deadline: float) -> float:
    """Return the seconds until a deadline of the monotonic clock, 0 or more."""
    return max(deadline - time.monotonic(), 0.0)


@dataclass(frozen=True)
class Answer:
    """The fewest changes that were found, and how few are proven to be necessary.

    - `moves`: how many more people of each cell are positive; None if no changes that keep all
      bounds were found in time. Their shape is that of the cells.
    - `lower_bound`: no decisions keep all bounds with fewer changes.

    Examples
    --------
    >>> Answer(np.array([[3, -1]]), lower_bound=3).is_exact
    False
    """

    moves: IntArray | None
    lower_bound: float

    @property
    def n_changes(self) -> int | None:
        """Return how many changes the moves are; None if none were found in time."""
        return None if self.moves is None else int(np.abs(self.moves).sum())

    @property
    def is_exact(self) -> bool:
        """Return whether no fewer changes are possible."""
        return self.lower_bound == self.n_changes


@dataclass
class _Rows:
    """Rows low ≤ weights @ moves + levels @ level ≤ high."""

    n_movable: IntArray
    moves: list[Floats] = field(default_factory=list)
    levels: list[dict[int, float]] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)
    most: list[float] = field(default_factory=list)  # of each level
    is_whole: list[bool] = field(default_factory=list)  # of each level

    def new_level(self, table: Measures, unit: float, *, is_whole: bool = False) -> int:
        """Return a new level between 0 and the largest number of a table, times `unit`."""
        self.is_whole.append(is_whole)
        most_people = table.constant + np.abs(table.numerator) @ self.n_movable
        self.most.append(float((most_people / table.scale).max()) * unit)
        return len(self.most) - 1

    def add(
        self,
        moves: Floats,
        low: float,
        high: float,
        levels: dict[int, float] | None = None,
        slack: float = 0.0,
    ) -> None:
        """Add a row, scaled; `slack` tightens it."""
        levels = levels or {}
        largest = max(np.abs(moves).max(initial=0.0), *map(abs, levels.values()), 0.0)
        scale = ROW_SCALE / largest if largest else 1.0
        self.moves.append(scale * moves)
        self.levels.append({k: scale * v for k, v in levels.items()})
        self.low.append(scale * low + slack * ROW_SCALE)
        self.high.append(scale * high - slack * ROW_SCALE)


def solve_program(
    problem: MergedProblem,
    windows: Sequence[Window | None],
    deadline: float,
    *,
    most_changes: float = math.inf,
    slack: float = 0.0,
    is_rounded: bool = False,
) -> Answer:
    """Return the fewest changes that keep every bound within the windows, one per comparison.

    The lower bound is infinite if no moves do. Only moves with at most `most_changes` changes
    are considered. The moves respect bounds up to the tolerance of HiGHS; `slack` tightens the
    bounds, in people. `is_rounded` solves the programme in real numbers and rounds the moves.
    """
    rows = _Rows(np.maximum(problem.n_up, problem.n_down))
    for bounded, window in zip(problem.bounded, windows, strict=True):
        if not _add_bound(rows, bounded, window, slack):
            return Answer(None, math.inf)
    return _solve(problem, rows, deadline, most_changes, is_rounded=is_rounded)


def _add_bound(rows: _Rows, bounded: Bounded, window: Window | None, slack: float) -> bool:
    """Add the rows of a bound; return False if no number is defined."""
    bound, kind = float(bounded.target), bounded.comparison.kind
    for table in bounded.tables:
        is_fixed = ~bottoms(table).any(axis=1)
        if (table.scale[is_fixed] <= 0).any():
            return False
        # Denominators stay above zero, and so do the numerators of a ratio.
        _add_positive(rows, bottoms(table)[~is_fixed], table.scale[~is_fixed])
        if kind == "ratio":
            _add_positive(rows, table.numerator, table.constant)
    if kind == "floor":
        window = Window(bound, math.inf)
    elif kind == "ceiling":
        window = Window(-math.inf, bound)
    if window is not None:
        _add_window(rows, bounded.tables[0], window, slack)
    elif _must_be_equal(bounded):
        for table in bounded.tables:
            _add_equality(rows, table)
    elif kind == "ratio":
        _add_ratio(rows, bounded.tables[0], bound, slack)
    else:
        _add_difference(rows, bounded.tables, bound, slack)
    return True


def _add_positive(rows: _Rows, slopes: Floats, constant: Floats) -> None:
    """Keep sums of weighted people above zero: above half of the smallest one."""
    for weights, start in zip(slopes, constant.tolist(), strict=True):
        rows.add(weights, least_positive(weights) / 2 - start, math.inf)


def _add_window(rows: _Rows, table: Measures, window: Window, slack: float) -> None:
    """Keep top / bottom of every group within the window, as top ≥ low · bottom and so on."""
    for g, top in enumerate(table.numerator):
        for edge, is_low in ((window.low, True), (window.high, False)):
            if math.isinf(edge):
                continue
            limit = float(edge * table.scale[g] - table.constant[g])
            limits = (limit, math.inf) if is_low else (-math.inf, limit)
            rows.add(top - edge * bottoms(table)[g], *limits, slack=slack)


def _must_be_equal(bounded: Bounded) -> bool:
    """Return whether a bound allows equal rates only, and all rates are shares of whole people."""
    is_ratio = bounded.comparison.kind == "ratio"
    allowed = 1 - bounded.target if is_ratio else bounded.target
    for table in bounded.tables:
        parts = (table.numerator, table.constant, table.scale)
        if any((part != np.rint(part)).any() for part in parts):
            return False
        if allowed * largest_denominator(table.scale.astype(np.int64)) >= 1:
            return False
    return True


def _add_equality(rows: _Rows, table: Measures) -> None:
    """Keep all rates equal: they are then whole multiples of 1 / gcd of the sizes."""
    sizes = table.scale.astype(np.int64)
    step = int(np.gcd.reduce(sizes))
    level = rows.new_level(table, step, is_whole=True)
    for top, start, size in zip(table.numerator, table.constant, sizes // step, strict=True):
        rows.add(top, -start, -start, {level: -float(size)})


def _add_ratio(rows: _Rows, table: Measures, ratio: float, slack: float) -> None:
    """Keep the rates between ratio · level and level."""
    unit = float(table.scale.max())  # levels are in people, so that all weights are alike
    level = rows.new_level(table, unit)
    for top, start, scale in zip(table.numerator, table.constant, table.scale, strict=True):
        share = scale / unit
        rows.add(top, -math.inf, -start, {level: -share}, slack)
        rows.add(top, -start, math.inf, {level: -share * ratio}, slack)


def _add_difference(
    rows: _Rows, tables: Sequence[Measures], difference: float, slack: float
) -> None:
    """Keep the rates of one table within a width; the widths of two tables share the difference."""
    units = [float(table.scale.max()) for table in tables]
    widths: list[int] = []
    for table, unit in zip(tables, units, strict=True):
        lowest = rows.new_level(table, unit)
        if len(tables) > 1:
            widths.append(rows.new_level(table, unit))
        for top, start, scale in zip(table.numerator, table.constant, table.scale, strict=True):
            share = float(scale) / unit
            rows.add(top, -start, math.inf, {lowest: -share}, slack)
            if widths:
                rows.add(top, -math.inf, -start, {lowest: -share, widths[-1]: -share}, slack)
            else:
                limit = difference * float(scale) - start
                rows.add(top, -math.inf, limit, {lowest: -share}, slack)
    if widths:
        per_width = {k: 1 / unit for k, unit in zip(widths, units, strict=True)}
        rows.add(np.zeros(len(rows.n_movable)), -math.inf, difference, per_width, slack)


def _solve(
    problem: MergedProblem, rows: _Rows, deadline: float, most_changes: float, *, is_rounded: bool
) -> Answer:
    """Return the answer of HiGHS; it tries again without presolve where it fails."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    n_moves, n_levels = len(rows.n_movable), len(rows.most)
    is_change = np.r_[np.ones(2 * n_moves), np.zeros(n_levels)]
    levels = np.zeros((len(rows.levels), n_levels))
    for i, weights in enumerate(rows.levels):
        levels[i, list(weights)] = list(weights.values())
    moves = np.array(rows.moves)
    limits = [LinearConstraint(csr_array(np.hstack([moves, -moves, levels])), rows.low, rows.high)]
    if math.isfinite(most_changes):
        limits.append(LinearConstraint(is_change[None, :], -np.inf, most_changes + 0.5))
    is_whole = (
        np.zeros(len(is_change)) if is_rounded else np.r_[is_change[: 2 * n_moves], rows.is_whole]
    )
    for presolve in (True, False):
        options = {"time_limit": max(time_left(deadline), 0.05), "node_limit": MOST_NODES}
        with without_debug_lines():
            result = milp(
                is_change,
                constraints=limits,
                integrality=is_whole,
                bounds=Bounds(0, np.r_[problem.n_up, problem.n_down, rows.most]),
                options={"mip_rel_gap": 0, "presolve": presolve, **options},
            )
        if result.status in (0, 1, 2):
            break
    return _read(result, n_moves)


def _read(result: OptimizeResult, n_moves: int) -> Answer:
    """Return the moves and the proven lower bound of a result of HiGHS."""
    if result.status == 2:
        return Answer(None, math.inf)
    moves = None
    if result.x is not None:
        raised, lowered = result.x[: 2 * n_moves].reshape(2, -1)
        moves = np.rint(raised - lowered).astype(np.int64)
    proven = result.fun if result.status == 0 else result.mip_dual_bound
    is_known = proven is not None and math.isfinite(proven)
    return Answer(moves, max(math.ceil(proven - 1e-6), 0.0) if is_known else 0.0)


# ---------------------------------------------------------------------------------------------
# Keep a debug line of HiGHS away from the standard output

DEBUG_LINE = b"HighsMipSolverData::"
STDOUT = 1  # the file descriptor


_DIVERSION = threading.Lock()


@contextlib.contextmanager
def without_debug_lines() -> Iterator[None]:
    """Drop the debug lines of HiGHS from the standard output; all else is written at the end.

    One thread at a time solves its programme so. Nothing is done where a program has no standard
    output, and on Windows.
    """
    with _DIVERSION:
        try:
            original = os.dup(STDOUT) if os.name == "posix" else None
        except OSError:
            original = None
        if original is None:
            yield
            return
        with tempfile.TemporaryFile() as written:
            os.dup2(written.fileno(), STDOUT)
            try:
                yield
            finally:
                ctypes.CDLL(None).fflush(None)  # HiGHS prints through the buffer of C
                os.dup2(original, STDOUT)
                os.close(original)
                written.seek(0)
                for line in written:
                    if not line.startswith(DEBUG_LINE):
                        os.write(STDOUT, line)
