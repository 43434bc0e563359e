"""Find the most accurate decisions within a fairness target and a number of changes, exactly.

A change fixes an error or introduces one. So accuracy grows by the number of changes minus twice
the number of wrong ones. At a fixed level (see `_levels`) every group has an interval of counts:

1. Forced changes bring the count into the interval, right changes first.
2. The remaining budget fixes errors as far as the interval allows. A pair of changes in opposite
   directions keeps the count, so it is always allowed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from commod._data.arrays import Floats
from commod.bounds._counts import (
    CountProblem,
    read_target,
    simple_requirement,
    solve_fewest_changes,
)
from commod.bounds._integer import without_debug_lines
from commod.bounds._levels import (
    MARGIN,
    CountInterval,
    IntArray,
    RateRowCounts,
    best_interval,
    floor_of,
    largest_denominator,
)
from commod.bounds._tables import CountTable, check_budget, read_problem
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint, ConstraintLike

LabelFlips = dict[tuple[Hashable, Any, Any, Any], int]


@dataclass(frozen=True)
class MostAccurate:
    """The best accuracy, and the changes that give it.

    `flips` maps (group, true label, label before, label after) to a number of people. Where the
    target cannot be reached within the budget, `n_changes` is None, `accuracy` and `rate` are NaN
    and `flips` is empty.

    Examples
    --------
    >>> MostAccurate(0.9, n_changes=1, rate=0.1, flips={("a", 1, 0, 1): 1}).flips["a", 1, 0, 1]
    1
    """

    accuracy: float
    n_changes: int | None
    rate: float
    flips: LabelFlips


def most_accurate(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    target: Any = None,
    max_changes: int | None = None,
    constraints: ConstraintLike = "demographic_parity",
    direction: str = "any",
    pos_label: Any = 1,
    favorable_label: Any = None,
) -> MostAccurate:
    """Return the best accuracy of decisions that reach a fairness target with few changes.

    It is a limit, not a method, because it uses the true labels. By default there are as few
    changes as the target allows. A larger budget also fixes errors, and avoids introducing some.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        True labels and decisions, with the same two labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        Group of each row, two groups or more.
    target : float or Fraction
        As in `minimal_changes`.
    max_changes : int, default=None
        How many rows may change; None means as many as `minimal_changes` needs.
    constraints : str, default="demographic_parity"
        Or "equalized_odds", "true_positive_rate_parity", "false_positive_rate_parity".
    direction : str, default="any"
        Or "gains_only", "losses_only", as in `minimal_changes`.
    pos_label : label, default=1
        The label whose rates are counted.
    favorable_label : label, default=None
        The label that is good for the person; None means `pos_label`.

    Returns
    -------
    MostAccurate
        Ties go to an answer with few changes. The same counts always give the same answer.

    Notes
    -----
    Equalized odds is solved as an integer program by HiGHS, and its answer is checked in exact
    fractions. The other constraints are searched exactly. Where a single row of the smallest cell
    changes a rate by more than the ceiling, the program may fail; that is an error.

    Examples
    --------
    >>> y_true = [1, 1, 0, 0, 1, 1, 0, 0]
    >>> y_pred = [1, 0, 0, 0, 1, 1, 1, 0]
    >>> group = ["a"] * 4 + ["b"] * 4
    >>> most_accurate(y_true, y_pred, sensitive_features=group, target=0.6)
    MostAccurate(accuracy=0.875, n_changes=1, rate=0.125, flips={('a', 1, 0, 1): 1})
    >>> most_accurate(y_true, y_pred, sensitive_features=group, target=0.6, max_changes=2).accuracy
    1.0
    """
    constraint, target = simple_requirement(constraints, target, "The highest accuracy")
    bound = read_target(constraint, target)
    if y_true is None:
        raise InputError(
            "y_true is None, but accuracy compares decisions with true labels. Pass the labels.",
            parameter="y_true",
        )
    _, table, problem = read_problem(
        y_true, y_pred, sensitive_features, constraint, direction, pos_label, favorable_label
    )
    if max_changes is None:
        minimum = solve_fewest_changes(problem, bound)
        budget = -1 if minimum is None else problem.n_changes(minimum)
    else:
        budget = check_budget(max_changes)
    return _as_result(table, _best_changes(table, problem, bound, budget))


class ChangesByLabel(NamedTuple):
    """People raised and lowered, each (2, G): by true label (positive first) and group."""

    raised: IntArray
    lowered: IntArray


def _as_result(table: CountTable, changes: ChangesByLabel | None) -> MostAccurate:
    if changes is None:
        return MostAccurate(math.nan, None, math.nan, {})
    raised, lowered = changes
    flips: LabelFlips = {}
    for i, true_label in enumerate(reversed(table.labels)):
        for (group, before, after), n in table.flips(raised[i], lowered[i]).items():
            flips[group, true_label, before, after] = n
    n_right = table.counts[0, 0].sum() + table.counts[1, 1].sum()
    n_right += (raised[0] + lowered[1] - raised[1] - lowered[0]).sum()
    n_changes = int(raised.sum() + lowered.sum())
    return MostAccurate(int(n_right) / table.n_rows, n_changes, n_changes / table.n_rows, flips)


def _best_changes(
    table: CountTable, problem: CountProblem, bound: Fraction, budget: int
) -> ChangesByLabel | None:
    if budget < 0:
        return None
    if len(problem.constraint.rate_rows) == 2:
        positives = solve_most_accurate(problem, bound, budget)
        if positives is None:
            return None
        change = positives - problem.positives
        return ChangesByLabel(np.maximum(change, 0), np.maximum(-change, 0))
    row = problem.rate_rows()[0]
    objective = _objective(table, problem, row, budget)
    best = best_interval(
        row,
        floor_of(row.sizes, bound, is_ratio=problem.constraint.is_ratio),
        objective,
        limit=table.n_rows,
        prefer_high=problem.prefer_raising,
    )
    return None if best is None else _changes_within(objective, best, problem.constraint)


# ---------------------------------------------------------------------------------------------
# One rate row


def _objective(
    table: CountTable, problem: CountProblem, row: RateRowCounts, budget: int
) -> MostRightDecisions:
    fixable_up = table.counts[1, 0] * problem.may_raise  # false negatives
    fixable_down = table.counts[0, 1] * problem.may_lower  # false positives
    none = np.zeros_like(fixable_up)
    errors = {  # by the true label of the people that the rate counts
        None: (fixable_up, fixable_down, none),
        True: (fixable_up, none, fixable_down),
        False: (none, fixable_down, fixable_up),
    }
    return MostRightDecisions(row, *errors[problem.constraint.only_label], budget)


class IntervalChanges(NamedTuple):
    """The changes that an interval of counts forces and allows; arrays of shape (N, G) or (G,).

    `positives` are the counts after the forced changes, and `wrong` counts the forced changes that
    introduce errors. `left_up` and `left_down` are errors that are still there, `room_up` and
    `room_down` how far the count may still move. `extra` counts errors that can still be fixed.
    """

    positives: Any
    forced: Any
    wrong: Any
    left_up: Any
    left_down: Any
    room_up: Any
    room_down: Any
    extra: Any

    def can_fix_one(self) -> Any:
        """Return where a single error can be fixed, not only a pair of opposite errors."""
        up = (self.left_up > 0) & (self.room_up > 0)
        return up | ((self.left_down > 0) & (self.room_down > 0))


@dataclass(frozen=True)
class MostRightDecisions:
    """The objective of accuracy: wrong changes minus right ones. Ties go to few changes.

    `fixable_up` and `fixable_down` are the errors of the rate row that may be fixed by raising and
    by lowering. `uncounted` are errors of people whom the rate row does not count. All are (G,).
    """

    row: RateRowCounts
    fixable_up: IntArray
    fixable_down: IntArray
    uncounted: IntArray
    budget: int
    n_refinements: int = 14

    def changes(self, low: Any, high: Any) -> IntervalChanges:
        """Return the changes that each interval forces and allows."""
        before = self.row.positives
        after = np.clip(before, low, high)
        up, down = np.maximum(after - before, 0), np.maximum(before - after, 0)
        wrong = np.maximum(up - self.fixable_up, 0) + np.maximum(down - self.fixable_down, 0)
        left_up = np.maximum(self.fixable_up - up, 0)
        left_down = np.maximum(self.fixable_down - down, 0)
        room_up, room_down = high - after, after - low
        extra = np.minimum(left_up, left_down + room_up)
        extra = extra + np.minimum(left_down, left_up + room_down)
        return IntervalChanges(
            after, up + down, wrong, left_up, left_down, room_up, room_down, extra
        )

    def relaxed_cost(self, low: Floats, high: Floats) -> Floats:
        """Return the cost in real numbers; changes beyond the budget are penalised."""
        changes = self.changes(low, high)
        forced = changes.forced.sum(axis=1)
        extra = changes.extra.sum(axis=1) + self.uncounted.sum()
        beyond = np.maximum(forced - self.budget - 1e-6, 0) * 8 * self.row.sizes.sum()
        wrong = 2 * changes.wrong.sum(axis=1)
        return np.asarray(wrong - np.minimum(forced + extra, self.budget) + beyond)

    def cost(self, low: IntArray, high: IntArray) -> IntArray:
        """Return wrong minus right changes; a number above any limit where the budget is short."""
        changes = self.changes(low, high)
        wrong = 2 * changes.wrong.sum(axis=1)
        is_within = changes.forced.sum(axis=1) <= self.budget
        return np.where(is_within, wrong - self._n_changes(changes), 8 * self.row.sizes.sum())

    def rounding(self, cost: float) -> float:
        """Return the rounding error of a relaxed cost: far below one person."""
        return MARGIN

    def tie_break(self, low: IntArray, high: IntArray) -> tuple[Floats]:
        """Return the number of changes."""
        return (self._n_changes(self.changes(low, high)).astype(np.float64),)

    def is_ideal(self, interval: CountInterval) -> bool:
        """Return whether no change is wrong: fewer changes would mean fewer right decisions."""
        return not self.changes(interval.low, interval.high).wrong.any()

    def _n_changes(self, changes: IntervalChanges) -> IntArray:
        """Return the number of changes, right ones up to the budget, shape (N,)."""
        left = self.budget - changes.forced.sum(axis=1)
        extra = changes.extra.sum(axis=1) + self.uncounted.sum()
        needs_pair = ~changes.can_fix_one().any(axis=1) & (self.uncounted.sum() == 0)
        is_odd = (left < extra) & (left % 2 == 1) & needs_pair
        return np.asarray(self.budget - left + np.minimum(left, extra) - is_odd)


def _changes_within(
    objective: MostRightDecisions, interval: CountInterval, constraint: Constraint
) -> ChangesByLabel:
    """Return the changes of the best interval: the forced ones, then errors that are fixed."""
    changes = objective.changes(interval.low, interval.high)
    change = changes.positives - objective.row.positives
    up, down = np.maximum(change, 0), np.maximum(-change, 0)
    wrong_up = np.maximum(up - objective.fixable_up, 0)
    wrong_down = np.maximum(down - objective.fixable_down, 0)
    fixed_up, fixed_down = up - wrong_up, down - wrong_down
    left = objective.budget - int(changes.forced.sum())
    can_fix_one = changes.can_fix_one()
    for s in np.argsort(can_fix_one, kind="stable"):  # groups that need pairs come first
        n = min(left, int(changes.extra[s]))
        n -= 0 if can_fix_one[s] else n % 2
        n_up = min(int(changes.left_up[s]), n, (n + int(changes.room_up[s])) // 2)
        fixed_up[s] += n_up
        fixed_down[s] += n - n_up
        left -= n
    fixed_uncounted = np.diff(np.minimum(np.cumsum(objective.uncounted), left), prepend=0)
    if constraint.only_label:
        fixed_down += fixed_uncounted
    else:
        fixed_up += fixed_uncounted
    return ChangesByLabel(np.stack([fixed_up, wrong_up]), np.stack([wrong_down, fixed_down]))


# ---------------------------------------------------------------------------------------------
# Find the most accurate decisions under equalized odds with an integer program (HiGHS)

MOST_BRANCHES = 20_000


def solve_most_accurate(problem: CountProblem, ceiling: Fraction, budget: int) -> IntArray | None:
    """Return the positives (2, G) of the most accurate decisions within `budget` changes.

    In the first rate row, the true label is positive and raising is right. In the second, lowering
    is right. None where the ceiling cannot be reached within the budget.
    """
    if solve_fewest_changes(problem, ceiling, budget) is None:
        return None
    must_be_equal = ceiling * max(map(largest_denominator, problem.sizes)) < 1
    n_fixed = []
    for slack in (0.0, 1e-12, 1e-9):  # HiGHS may exceed the ceiling by its own tolerance
        if must_be_equal:
            limits = _equal_rate_limits(problem)
        else:
            limits = _gap_limits(problem, float(ceiling) - slack)
        change = _solve(problem, limits, budget)
        n_fixed.append(change[0].sum() - change[1].sum())
        value = problem.fairness(problem.positives + change)
        if value is not None and value <= ceiling and n_fixed[-1] == n_fixed[0]:
            return problem.positives + change
    raise _unproven_error()


def _unproven_error() -> InputError:
    return InputError(
        f"target is too small for equalized_odds: within {MOST_BRANCHES} branches no answer is "
        "proven the most accurate, because a single row of the smallest cells changes a rate by "
        "more. Raise the target.",
        parameter="target",
    )


class ProgramLimits(NamedTuple):
    """Inequalities low ≤ coefficients @ (raised, lowered, auxiliary) ≤ high of the program."""

    coefficients: Floats
    low: Floats
    high: Floats
    auxiliary_is_whole: bool


def _gap_limits(problem: CountProblem, ceiling: float) -> ProgramLimits:
    """Return limits whose four auxiliary variables are the rows' highest and lowest rates.

    HiGHS has a tolerance of about 1e-6. So a rate is expressed in people of its row's largest cell.
    """
    largest = problem.sizes.max(axis=1)
    scale = np.diag((largest[:, None] / problem.sizes).ravel())
    highest = np.kron(np.eye(2), np.ones((problem.sizes.shape[1], 1)))
    none, offset = np.zeros_like(highest), scale @ problem.positives.ravel()
    below_highest = np.hstack([scale, -scale, -highest, none])
    above_lowest = np.hstack([-scale, scale, none, highest])
    weights = largest.max() / largest
    gap = np.concatenate([np.zeros(2 * problem.sizes.size), weights, -weights])
    return ProgramLimits(
        np.vstack([below_highest, above_lowest, gap]),
        np.full(2 * problem.sizes.size + 1, -np.inf),
        np.concatenate([-offset, offset, [largest.max() * ceiling]]),
        auxiliary_is_whole=False,
    )


def _equal_rate_limits(problem: CountProblem) -> ProgramLimits:
    """Return limits whose two auxiliary variables are the rates, in units of 1 / gcd of sizes."""
    steps = problem.sizes // np.gcd.reduce(problem.sizes, axis=1, keepdims=True)
    one = np.eye(problem.sizes.size)
    per_step = np.repeat(np.eye(2), problem.sizes.shape[1], axis=0) * steps.reshape(-1, 1)
    before = -problem.positives.ravel().astype(np.float64)
    return ProgramLimits(np.hstack([one, -one, -per_step]), before, before, auxiliary_is_whole=True)


def _solve(problem: CountProblem, limits: ProgramLimits, budget: int) -> IntArray:
    """Return people raised minus people lowered, (2, G), of the most accurate solution."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    is_right = np.repeat([1.0, -1.0], problem.sizes.shape[1])
    n_auxiliary = limits.coefficients.shape[1] - 2 * problem.sizes.size
    auxiliary, changes = np.zeros(n_auxiliary), np.ones(2 * problem.sizes.size)
    up = (problem.sizes - problem.positives) * problem.may_raise
    down = problem.positives * problem.may_lower
    most = np.concatenate([up.ravel(), down.ravel(), np.full(n_auxiliary, problem.sizes.max())])
    with without_debug_lines():
        result = milp(
            np.concatenate([-is_right, is_right, auxiliary]),
            constraints=[
                LinearConstraint(limits.coefficients, limits.low, limits.high),
                LinearConstraint(np.concatenate([changes, auxiliary])[None, :], -np.inf, budget),
            ],
            integrality=np.concatenate([changes, auxiliary + limits.auxiliary_is_whole]),
            bounds=Bounds(0, most),
            options={"mip_rel_gap": 0, "node_limit": MOST_BRANCHES},
        )
    if result.status != 0:
        raise _unproven_error()
    raised, lowered = np.rint(result.x[: len(changes)]).astype(np.int64).reshape(2, 2, -1)
    return np.asarray(raised - lowered)
