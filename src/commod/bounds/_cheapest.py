"""Find the cheapest changes that reach a target, where each row has its own cost of a change.

Raising k people of a cell is cheapest with its k cheapest negatives, and lowering k people with
its k cheapest positives. So the cost of a cell is convex in its count, with its minimum at the
present count. Within an interval of counts, the cheapest count is the one nearest to the present
count, as for the fewest changes; only the cost differs.

One rate row is searched by level (see `_levels`). Two rate rows share the ceiling on the sum of
their gaps. `_GapSearch` divides it between the rows, best first:

1. A box holds gaps of the first row: from `low` to `high`.
2. Its bound is the cost of the first row with the gap `high`, plus that of the second row with all
   that `low` leaves. No division inside the box is cheaper.
3. Where both answers together keep the ceiling, the bound is reached. The box with the least bound
   then holds the optimum. Otherwise the box is cut in two between both answers.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import getitem
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._data.labels import check_costs, check_length, one_dimensional
from commod._data.tables import check_same_rows
from commod.bounds._levels import (
    CountInterval,
    FewestChanges,
    Floor,
    IntArray,
    RowAnswer,
    best_interval,
    floor_of,
    gap_floor,
    solve_one_rate_row,
)
from commod.bounds._limits import (
    CountProblem,
    Flips,
    LimitRows,
    simple_requirement,
    solve_fewest_changes,
)
from commod.exceptions import InputError
from commod.metrics._constraint import ConstraintLike
from commod.metrics._people import read_target

IndexArray = NDArray[np.intp]


# ---------------------------------------------------------------------------------------------
# Costs of the cells


@dataclass(frozen=True)
class SortedChanges:
    """The rows that may change in one direction, by cell, the cheapest first.

    `rows` (m,) are row numbers; those of cell c lie between `starts[c]` and `starts[c + 1]`.
    `totals[c][k]` is the cost of the k cheapest rows of cell c.
    """

    rows: IndexArray
    starts: IndexArray
    totals: tuple[Floats, ...]

    @classmethod
    def of(cls, cells: IndexArray, cost: Floats, may_move: Mask, n_cells: int) -> SortedChanges:
        """Return the sorted rows; `cells` (n,) are their cells, and rows of equal cost stay."""
        rows = np.flatnonzero(may_move & (cells >= 0))
        rows = rows[np.lexsort((cost[rows], cells[rows]))]
        starts = np.searchsorted(cells[rows], np.arange(n_cells + 1))
        parts = np.split(cost[rows], starts[1:-1])
        return cls(rows, starts, tuple(np.concatenate([[0.0], part.cumsum()]) for part in parts))

    def cheapest(self, counts: IntArray) -> IndexArray:
        """Return the rows of the cheapest changes, `counts` (n_cells,) of each cell."""
        pairs = zip(self.starts[:-1], counts.ravel(), strict=True)
        return np.concatenate([self.rows[start : start + n] for start, n in pairs])


def _cheapest_rows(
    problem: CountProblem, raising: SortedChanges, lowering: SortedChanges, target: Fraction
) -> IndexArray | None:
    """Return the rows of the cheapest changes to a target; None where no changes reach it."""
    shape = problem.sizes.shape
    problem = replace(
        problem,
        n_raisable=np.diff(raising.starts).reshape(shape),
        n_lowerable=np.diff(lowering.starts).reshape(shape),
    )
    is_ratio, prefer_high = problem.constraint.is_ratio, problem.prefer_raising
    objectives = []
    for i, row in enumerate(problem.rate_rows()):
        own = slice(i * shape[1], (i + 1) * shape[1])
        up, down = raising.totals[own], lowering.totals[own]
        objectives.append(CheapestChanges(row, is_ratio, raising=up, lowering=down))
    if len(objectives) == 1:
        floor = floor_of(problem.sizes[0], target, is_ratio=is_ratio)
        positives = objectives[0].solve(floor, prefer_high=prefer_high)
    elif solve_fewest_changes(problem, target) is None:
        return None  # the search below would try every division before it says so
    else:
        positives = _GapSearch(objectives, target, prefer_high).solve()
    if positives is None:
        return None
    move = positives.reshape(shape) - problem.positives
    up, down = np.maximum(move, 0), np.maximum(-move, 0)
    return np.concatenate([raising.cheapest(up), lowering.cheapest(down)])


# ---------------------------------------------------------------------------------------------
# One rate row


@dataclass(frozen=True)
class CheapestChanges(FewestChanges):
    """The objective of cheap changes. Ties go to few changes, then to the fairest counts.

    `raising[s][k]` is the least cost of raising k people of group s, and `lowering[s][k]` that of
    lowering k.
    """

    raising: Sequence[Floats] = ()
    lowering: Sequence[Floats] = ()

    @property
    def n_refinements(self) -> int:
        """Return how many grids, each 16 times finer, bring the search within one level."""
        return math.ceil(math.log(self.row.sizes.sum(), 16))

    def solve(self, floor: Floor, *, prefer_high: bool) -> IntArray | None:
        """Return the positives per group after the cheapest changes, (G,); None where none do."""
        if any(totals[:2].sum() == 0 for totals in (*self.raising, *self.lowering)):
            # Many levels may cost nothing. The fewest changes then come first among them.
            fewest = solve_one_rate_row(self.row, floor, prefer_high=prefer_high)
            if fewest is None or self.cost_of(fewest) == 0:
                return fewest
        best = best_interval(self.row, floor, self, prefer_high=prefer_high)
        return None if best is None else np.clip(self.row.positives, best.low, best.high)

    def cost_of(self, positives: IntArray) -> float:
        """Return the cost of arriving at these counts, (G,)."""
        return float(self.cost(positives[None, :], positives[None, :])[0])

    def cost(self, low: Any, high: Any) -> Any:
        """Return the cost of the changes into each interval."""
        return self._total(low, high, getitem)

    def relaxed_cost(self, low: Floats, high: Floats) -> Floats:
        """Return the cost in real numbers."""
        return self._total(low, high, _interpolated)

    def _total(self, low: Any, high: Any, cost_of: Callable[[Floats, Any], Floats]) -> Floats:
        """Return the cost of each interval; `cost_of` reads the totals at numbers of changes."""
        before, total = self.row.positives, np.zeros(len(low))
        moves = (np.clip(before, low, high) - before).T
        for raising, lowering, move in zip(self.raising, self.lowering, moves, strict=True):
            total += cost_of(raising, np.maximum(move, 0)) + cost_of(lowering, np.maximum(-move, 0))
        return total

    def rounding(self, cost: float) -> float:
        """Return the rounding error of a sum of costs, none of them negative."""
        return 1e-9 * cost

    def tie_break(self, low: IntArray, high: IntArray) -> tuple[Floats, Floats]:
        """Return the number of changes, and the unfairness of the counts."""
        positives = np.clip(self.row.positives, low, high)
        n_changes = np.abs(positives - self.row.positives).sum(axis=1)
        unfairness = self.row.unfairness(positives, is_ratio=self.is_ratio)
        return n_changes.astype(np.float64), unfairness

    def is_ideal(self, interval: CountInterval) -> bool:
        """Return False: nothing is known about ties beyond the levels that were tried."""
        return False


def _interpolated(totals: Floats, counts: Floats) -> Floats:
    """Return the cost of real numbers of changes, (N,), from the totals of whole numbers."""
    last = len(totals) - 1
    below = np.minimum(counts.astype(np.intp), last)
    above = np.minimum(below + 1, last)
    return np.asarray(totals[below] + (counts - below) * (totals[above] - totals[below]))


# ---------------------------------------------------------------------------------------------
# Two rate rows


@dataclass
class _GapSearch:
    """The best-first search over divisions of the ceiling between two rows."""

    rows: Sequence[CheapestChanges]
    ceiling: Fraction
    prefer_high: bool
    boxes: list[Any] = field(default_factory=list)
    answers: dict[tuple[int, Fraction], RowAnswer | None] = field(default_factory=dict)

    def solve(self) -> IntArray | None:
        """Return the positives (2, G) of the cheapest changes; None where none reach it."""
        self._add(Fraction(0), self.ceiling)
        while self.boxes:
            *_, low, high, first, second = heapq.heappop(self.boxes)
            gap_left = self.ceiling - second.gap
            if first.gap <= gap_left:
                return np.stack([first.positives, second.positives])
            middle = _between(gap_left, first.gap)
            self._add(low, middle)
            self._add(middle, high)
        return None

    def _add(self, low: Fraction, high: Fraction) -> None:
        """Add the box from `low` to `high`, unless a row has no answer."""
        first, second = self._answer(0, high), self._answer(1, self.ceiling - low)
        if first is None or second is None:
            return
        # Of equal bounds, the newest box comes first: it is the smallest.
        order = first.cost + second.cost, first.n_changes + second.n_changes, -len(self.answers)
        heapq.heappush(self.boxes, (*order, low, high, first, second))

    def _answer(self, i: int, gap: Fraction) -> RowAnswer | None:
        """Return the cheapest changes of one row within a gap."""
        if (i, gap) not in self.answers:
            one = self.rows[i]
            floor = gap_floor(one.row.sizes, gap)
            positives = one.solve(floor, prefer_high=self.prefer_high)
            self.answers[i, gap] = (
                None if positives is None else one.row.answer(positives, one.cost_of(positives))
            )
        return self.answers[i, gap]


def _between(low: Fraction, high: Fraction) -> Fraction:
    """Return a fraction strictly between two others, a short one where possible."""
    middle = (low + high) / 2
    short = Fraction(float(middle))
    return short if low < short < high else middle


# ---------------------------------------------------------------------------------------------
# Find the cheapest changes to a target from rows, where each change has its own cost


@dataclass(frozen=True)
class MinimalCost:
    """The cheapest changes: their cost, their number, their share, and who changes to what.

    `flips` maps (group, label before, label after) to a number of people. Where the target cannot
    be reached, `cost` is infinite, `n_changes` is None, `rate` is NaN and `flips` is empty.

    Examples
    --------
    >>> MinimalCost(cost=0.3, n_changes=1, rate=0.25, flips={("a", 0, 1): 1}).cost
    0.3
    """

    cost: float
    n_changes: int | None
    rate: float
    flips: Flips


def minimal_cost(
    y_pred: Any,
    *,
    change_cost: Any,
    sensitive_features: Any,
    target: Any = None,
    constraints: ConstraintLike = "demographic_parity",
    y_true: Any = None,
    direction: str = "any",
    may_change: Any = None,
    pos_label: Any = 1,
    favorable_label: Any = None,
) -> MinimalCost:
    """Return the cheapest changed decisions that reach a fairness target, exactly.

    Every row has its own cost of a change: its distance from the threshold, its profit or its
    expected loss. No method reaches the target on these rows at a lower total cost, whatever it
    knows about them. The cheapest changes may be more than the fewest of `minimal_changes`.

    Parameters
    ----------
    y_pred : array-like of shape (n_samples,)
        Decisions, with at most two different labels.
    change_cost : array-like of shape (n_samples,)
        What changing each decision costs: finite and at least 0, in any unit.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        Group of each row, two groups or more.
    target : float or Fraction
        As in `minimal_changes`.
    constraints : str, default="demographic_parity"
        Or "equalized_odds", "true_positive_rate_parity", "false_positive_rate_parity".
    y_true : array-like of shape (n_samples,), default=None
        True labels; ignored for demographic parity, needed for the other constraints.
    direction : str, default="any"
        Or "gains_only", "losses_only", as in `minimal_changes`.
    may_change : array-like of bool of shape (n_samples,), default=None
        The rows that may change; None means all rows.
    pos_label : label, default=1
        The label whose rates are counted.
    favorable_label : label, default=None
        The label that is good for the person; None means `pos_label`.

    Returns
    -------
    MinimalCost
        No changes where the target is met already. Ties go to the fewest changes. Where every
        change costs 1, `cost` and `n_changes` are the `n_changes` of `minimal_changes`.

    Notes
    -----
    Within a group (and true label), the people with the lowest costs change. So the cost of a cell
    is convex in its count, and the search over levels of rates is that of `minimal_changes`. For
    equalized odds, a search divides the ceiling between the two gaps. It takes seconds for 20,000
    rows and up to minutes for a million.

    Examples
    --------
    Approving one person of group a is enough. The cheapest one has a cost of 0.1:

    >>> y_pred, group = [1, 0, 0, 0, 1, 1, 0, 0], ["a"] * 4 + ["b"] * 4
    >>> cost = [0.4, 0.1, 0.2, 0.3, 0.4, 0.5, 0.1, 0.1]
    >>> minimal_cost(y_pred, change_cost=cost, sensitive_features=group, target=0.8)
    MinimalCost(cost=0.1, n_changes=1, rate=0.125, flips={('a', 0, 1): 1})
    """
    constraint, target = simple_requirement(constraints, target, "The least cost")
    bound = read_target(constraint, target)
    check_same_rows({"y_pred": y_pred, "change_cost": change_cost, "may_change": may_change})
    given = y_true, y_pred, sensitive_features
    rows = LimitRows.read([constraint], *given, direction, pos_label, favorable_label)
    problem = rows.problem(constraint)
    cost, is_open = check_costs(change_cost, rows.n_rows), _read_mask(may_change, rows.n_rows)
    people, decisions = rows.people(constraint), rows.given.decisions
    raising, lowering = (
        SortedChanges.of(people.index, cost, is_open & may_move, problem.sizes.size)
        for may_move in (~decisions & problem.may_raise, decisions & problem.may_lower)
    )
    changed = _cheapest_rows(problem, raising, lowering, bound)
    if changed is None:
        return MinimalCost(math.inf, None, math.nan, {})
    moved, step = people.group[changed], np.where(decisions[changed], -1, 1)
    size = people.n_groups
    by_direction = [sign * np.bincount(moved[step == sign], minlength=size) for sign in (1, -1)]
    flips = rows.flips(np.array(by_direction))
    return MinimalCost(math.fsum(cost[changed]), len(changed), len(changed) / rows.n_rows, flips)


def _read_mask(may_change: Any, n_rows: int) -> Mask:
    """Return the rows that may change, shape (n_rows,)."""
    if may_change is None:
        return np.ones(n_rows, bool)
    mask = one_dimensional(may_change, "may_change")
    check_length(mask, "may_change", n_rows)
    if mask.dtype.kind != "b":
        raise InputError(
            f"may_change must hold True or False for each row; got {mask.dtype}. Compare the "
            "values first, for example distance <= 0.2.",
            parameter="may_change",
        )
    return mask
