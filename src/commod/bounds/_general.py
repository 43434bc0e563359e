"""Find the fewest changes that keep any combination of bounds on comparisons.

A problem with one comparison of rates by ratio or difference has its own exact algorithm, and so
has one floor or ceiling on a rate. Every other problem becomes an integer programme.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from commod.bounds._fewest import solve_one_rate_row
from commod.bounds._integer import Answer, TimeLeft
from commod.bounds._levels import RateRowCounts, gap_floor, ratio_floor
from commod.bounds._merged import Bounded, IntArray, MergedProblem, merged_problems
from commod.bounds._split import solve_two_rate_rows
from commod.bounds._windows import solve_roughly, solve_windows
from commod.metrics._comparison import GroupComparison, Measures

TIME_LIMIT = 5.0  # seconds


@dataclass(frozen=True)
class GeneralLimit:
    """The fewest changes that were found, and how few are proven to be necessary.

    - `positives` (R, G): the positives of each cell after these changes; None where no changes
      that keep all bounds were found in time.
    - `n_changes`: how many changes these are; None where none were found in time.
    - `lower_bound`: no decisions keep all bounds with fewer changes.

    Examples
    --------
    >>> import numpy as np
    >>> GeneralLimit(np.array([[3, 5]]), n_changes=4, lower_bound=3).is_exact
    False
    """

    positives: IntArray | None
    n_changes: int | None
    lower_bound: int

    @property
    def is_exact(self) -> bool:
        """Return whether no fewer changes are possible."""
        return self.lower_bound == self.n_changes


def fewest_changes_of(
    compared: Sequence[tuple[GroupComparison, float]],
    sizes: IntArray,
    positives: IntArray,
    *,
    may_raise: bool = True,
    may_lower: bool = True,
    n_raisable: IntArray | None = None,
    n_lowerable: IntArray | None = None,
    time_limit: float = TIME_LIMIT,
    is_rough: bool = False,
) -> GeneralLimit | None:
    """Return the fewest changes that keep all bounds; None where no decisions do.

    `compared` holds comparisons, which are functions of the positives of the cells, and the bound
    of each. `sizes`, `positives`, `n_raisable` and `n_lowerable` have shape (R, G), in people.
    After `time_limit` seconds, the answer is the best so far, with a proven lower bound. A rough
    answer takes milliseconds: its changes may miss a bound by a person, its lower bound is proven.

    A value that is not defined keeps no bound; so a ratio needs somebody positive. A ratio that
    must be at least 0 always holds.
    """
    n_up = np.asarray(sizes - positives if n_raisable is None else n_raisable) * may_raise
    n_down = np.asarray(positives if n_lowerable is None else n_lowerable) * may_lower
    up, down, start = (np.asarray(part, np.int64).ravel() for part in (n_up, n_down, positives))
    clock, moves = TimeLeft(time_limit), np.zeros_like(start)
    lower_bound, is_known = 0, True
    problems = list(merged_problems(compared, start, up, down))
    for i, problem in enumerate(problems):
        answer = _solve(problem, TimeLeft(clock.left / (len(problems) - i)), is_rough=is_rough)
        if math.isinf(answer.lower_bound):
            return None
        lower_bound += int(answer.lower_bound)
        is_known &= answer.moves is not None
        if answer.moves is not None:
            moves += problem.cell_moves(answer.moves, up, down)
    if not is_known:
        return GeneralLimit(None, None, lower_bound)
    after = (start + moves).reshape(np.shape(positives))
    return GeneralLimit(after, int(np.abs(moves).sum()), lower_bound)


def _solve(problem: MergedProblem, clock: TimeLeft, *, is_rough: bool) -> Answer:
    """Return the fewest changes of one problem by the algorithm that fits it."""
    nothing = np.zeros_like(problem.n_up)
    if problem.is_kept(nothing):
        return Answer(nothing, 0.0)
    (one, *others) = problem.bounded
    rates = None if others else _as_rates(problem, one)
    if rates is None:
        return (solve_roughly if is_rough else solve_windows)(problem, clock)
    moves = _solve_rates(one, rates, len(nothing))
    return Answer(None, math.inf) if moves is None else Answer(moves, float(np.abs(moves).sum()))


@dataclass(frozen=True)
class _Rates:
    """Rates that each move one merged cell by one person: counts, and the cell of each group."""

    counts: RateRowCounts
    cells: IntArray


def _as_rates(problem: MergedProblem, one: Bounded) -> list[_Rates] | None:
    """Return the measures of a comparison as rates; None where they are not rates."""
    rates = [_rates_of(problem, table) for table in one.tables]
    known = [part for part in rates if part is not None]
    return known if len(known) == len(rates) else None


def _rates_of(problem: MergedProblem, table: Measures) -> _Rates | None:
    is_moved = table.numerator != 0
    cells = is_moved.argmax(axis=1)
    is_whole = all((part == np.rint(part)).all() for part in (table.constant, table.scale))
    if (
        table.denominator is not None
        or not is_whole
        or not (table.scale > 0).all()
        or not (is_moved.sum(axis=1) == 1).all()
        or not (table.numerator[is_moved] == 1).all()
        or len(set(cells.tolist())) < len(cells)
    ):
        return None
    start = table.constant.astype(np.int64)
    lowest, highest = start - problem.n_down[cells], start + problem.n_up[cells]
    return _Rates(RateRowCounts(table.scale.astype(np.int64), start, lowest, highest), cells)


def _solve_rates(one: Bounded, rates: Sequence[_Rates], n_cells: int) -> IntArray | None:
    """Return the moves (n_cells,) of the fewest changes in rates; None where no moves exist."""
    counts = [part.counts for part in rates]
    after: Sequence[IntArray] | None
    match one.comparison.kind:
        case "floor" | "ceiling":
            row = _solve_threshold(counts[0], one.target, one.comparison.kind == "floor")
            after = None if row is None else [row]
        case "difference" if len(counts) == 2:
            after = solve_two_rate_rows((counts[0], counts[1]), one.target)
        case "difference":
            row = solve_one_rate_row(counts[0], gap_floor(counts[0].sizes, one.target))
            after = None if row is None else [row]
        case "ratio":
            row = _solve_ratio(counts[0], one.target)
            after = None if row is None else [row]
    if after is None:
        return None
    moves = np.zeros(n_cells, dtype=np.int64)
    for part, row in zip(rates, after, strict=True):
        moves[part.cells] = row - part.counts.positives
    return moves


def _solve_threshold(counts: RateRowCounts, bound: Fraction, is_floor: bool) -> IntArray | None:
    """Return the positives nearest to the present ones with rates above, or below, the bound."""
    edges = [bound * size for size in counts.sizes.tolist()]
    if is_floor:
        after = np.maximum(counts.positives, [math.ceil(edge) for edge in edges])
    else:
        after = np.minimum(counts.positives, [math.floor(edge) for edge in edges])
    is_possible = ((counts.lowest <= after) & (after <= counts.highest)).all()
    return after if is_possible else None


def _solve_ratio(counts: RateRowCounts, ratio: Fraction) -> IntArray | None:
    lowest = np.maximum(counts.lowest, 1)  # a ratio is undefined where nobody is positive
    if ratio > 1 or (lowest > counts.highest).any():
        return None
    allowed = RateRowCounts(counts.sizes, counts.positives, lowest, counts.highest)
    return solve_one_rate_row(allowed, ratio_floor(counts.sizes, ratio))
