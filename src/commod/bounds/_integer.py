"""State bounds as linear inequalities, and solve the integer programme of fewest changes (HiGHS).

The variables are the people raised and lowered in each merged cell, and levels: the highest or the
lowest number of the compared groups. A comparison of measures whose denominator moves is linear
only where a window for the numbers of all groups is given.
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
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from commod._data.arrays import Floats
from commod.bounds._levels import largest_denominator
from commod.bounds._merged import Bounded, IntArray, MergedProblem, least_positive
from commod.metrics._comparison import Measures

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

ROW_SCALE = 1000.0  # the largest weight of a row; HiGHS has an absolute tolerance of 1e-6
TIGHTER = 1e-7  # of this weight: far above the tolerance, far below one person
MOST_NODES = 20_000  # of one integer programme


class Window(NamedTuple):
    """The range of the numbers of all groups in a comparison whose denominators move."""

    low: float
    high: float


class TimeLeft:
    """Measure the time that is left for all programmes of one question."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Return the seconds that are left, 0 or more."""
        return max(self._end - time.monotonic(), 0.0)


@dataclass(frozen=True)
class Answer:
    """Moves (B,) of fewest changes, None where none are known, and a proven lower bound."""

    moves: IntArray | None
    lower_bound: float


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
    clock: TimeLeft,
    *,
    most_changes: float = math.inf,
    slack: float = 0.0,
    is_rounded: bool = False,
) -> Answer:
    """Return the fewest changes that keep every bound within the windows, one per comparison.

    The lower bound is infinite where no moves do. Only moves with at most `most_changes` changes
    are considered. The moves respect bounds up to the tolerance of HiGHS; `slack` tightens the
    bounds, in people. `is_rounded` solves the programme in real numbers and rounds the moves.
    """
    rows = _Rows(np.maximum(problem.n_up, problem.n_down))
    for bounded, window in zip(problem.bounded, windows, strict=True):
        if not _add_bound(rows, bounded, window, slack):
            return Answer(None, math.inf)
    return _solve(problem, rows, clock, most_changes, is_rounded=is_rounded)


def _add_bound(rows: _Rows, bounded: Bounded, window: Window | None, slack: float) -> bool:
    """Add the rows of a bound; return False where no number is defined."""
    bound, kind = float(bounded.target), bounded.comparison.kind
    for table in bounded.tables:
        if table.denominator is None and not (table.scale > 0).all():
            return False
        _add_definedness(rows, table, needs_top=kind == "ratio")
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


def _add_definedness(rows: _Rows, table: Measures, *, needs_top: bool) -> None:
    """Keep denominators above zero; also numerators, for a ratio of numbers that must not be 0."""
    parts = [(table.denominator, table.scale)] if table.denominator is not None else []
    parts += [(table.numerator, table.constant)] if needs_top else []
    for slopes, constant in parts:
        for weights, start in zip(slopes, constant.tolist(), strict=True):
            # The sum is a number of weighted people; half of the smallest one is above zero.
            rows.add(weights, least_positive(weights) / 2 - start, math.inf)


def _add_window(rows: _Rows, table: Measures, window: Window, slack: float) -> None:
    """Keep top / bottom of every group within the window, as top ≥ low · bottom and so on."""
    slopes = np.zeros_like(table.numerator) if table.denominator is None else table.denominator
    for g, top in enumerate(table.numerator):
        for edge, is_low in ((window.low, True), (window.high, False)):
            if math.isinf(edge):
                continue
            limit = float(edge * table.scale[g] - table.constant[g])
            limits = (limit, math.inf) if is_low else (-math.inf, limit)
            rows.add(top - edge * slopes[g], *limits, slack=slack)


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
    problem: MergedProblem, rows: _Rows, clock: TimeLeft, most_changes: float, *, is_rounded: bool
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
        options = {"time_limit": max(clock.left, 0.05), "node_limit": MOST_NODES}
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


class _Diversion:
    """Standard output that goes to a file while at least one thread solves a programme."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.n_inside = 0
        self.original = -1
        self.written: IO[bytes] | None = None

    def enter(self) -> bool:
        """Divert the standard output; return False where there is none."""
        with self.lock:
            if not self.n_inside:
                try:
                    self.original = os.dup(STDOUT)
                except OSError:
                    return False
                self.written = tempfile.TemporaryFile()  # noqa: SIM115 - `leave` closes it
                os.dup2(self.written.fileno(), STDOUT)
            self.n_inside += 1
            return True

    def leave(self) -> None:
        """Restore the standard output, and write what others wrote to it meanwhile."""
        with self.lock:
            self.n_inside -= 1
            if self.n_inside:
                return
            ctypes.CDLL(None).fflush(None)  # HiGHS prints through the buffer of C
            os.dup2(self.original, STDOUT)
            os.close(self.original)
            assert self.written is not None
            with self.written as file:
                file.seek(0)
                others = [line for line in file if not line.startswith(DEBUG_LINE)]
            for line in others:
                os.write(STDOUT, line)


_DIVERSION = _Diversion()


@contextlib.contextmanager
def without_debug_lines() -> Iterator[None]:
    """Drop the debug lines of HiGHS from the standard output; all else is written.

    Nothing is done where a program has no standard output, and on Windows.
    """
    is_diverted = os.name == "posix" and _DIVERSION.enter()
    try:
        yield
    finally:
        if is_diverted:
            _DIVERSION.leave()
