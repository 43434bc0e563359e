"""The most accurate decisions within a fairness target and a number of changes, exactly.

Every change mends an error or makes one, so accuracy gains the changes minus twice the wrong ones.
Under a fixed highest rate each group has an interval of counts (see `_levels`): reaching it takes
forced changes, right ones first; what is left of the budget mends errors as far as the intervals
let it, a pair in opposite directions needing no room at all.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from commod.bounds._counts import Problem, fewest, read_target
from commod.bounds._levels import (
    FloatArray,
    IntArray,
    Interval,
    Line,
    best_interval,
    gap_floor,
    ratio_floor,
)
from commod.bounds._program import most_accurate_on_two_lines
from commod.bounds._tables import Table, check_budget, read_problem
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint, ConstraintLike, get_constraint

__all__ = ["MostAccurate", "most_accurate"]

LabelFlips = dict[tuple[Hashable, Any, Any, Any], int]


@dataclass(frozen=True)
class MostAccurate:
    """The best accuracy, and the changes that give it.

    `flips` maps (group, true label, label before, label after) to a number of people. Where
    nothing reaches the target within the budget `n_changes` is None, `accuracy` and `rate` NaN
    and `flips` empty.

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
    target: Any,
    max_changes: int | None = None,
    constraints: ConstraintLike = "demographic_parity",
    direction: str = "any",
    pos_label: Any = 1,
    favorable_label: Any = None,
) -> MostAccurate:
    """Return the best accuracy of decisions that reach a fairness target, given few changes.

    An oracle: it sees the true labels. By default the changes are as few as the target allows;
    with a larger budget it also corrects errors, and takes fewer right decisions back.

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
        Of equally accurate answers one with few changes; the same counts always give the same.

    Notes
    -----
    Equalized odds is solved as an integer program by HiGHS and its answer checked in exact
    fractions; the other constraints are searched exactly. A ceiling finer than a single row of the
    smallest cell can be out of reach for the program, which then says so.

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
    constraint = get_constraint(constraints)
    bound = read_target(constraint, target)
    if y_true is None:
        raise InputError(
            "y_true is None, but accuracy compares decisions with it. Pass the labels."
        )
    table, problem = read_problem(
        y_true, y_pred, sensitive_features, constraint, direction, pos_label, favorable_label
    )
    if max_changes is None:
        minimum = fewest(problem, bound)
        budget = -1 if minimum is None else problem.n_changes(minimum)
    else:
        budget = check_budget(max_changes)
    return _named(table, _best_changes(table, problem, bound, budget))


class _Changes(NamedTuple):
    """People raised and lowered per true label (positive first) and group, each (2, G)."""

    raised: IntArray
    lowered: IntArray


def _named(table: Table, changes: _Changes | None) -> MostAccurate:
    if changes is None:
        return MostAccurate(math.nan, None, math.nan, {})
    raised, lowered = changes
    flips: LabelFlips = {}
    for line, true_label in enumerate(reversed(table.labels)):
        for (group, before, after), n in table.flips(raised[line], lowered[line]).items():
            flips[group, true_label, before, after] = n
    n_right = table.counts[0, 0].sum() + table.counts[1, 1].sum()
    n_right += (raised[0] + lowered[1] - raised[1] - lowered[0]).sum()
    n_changes = int(raised.sum() + lowered.sum())
    return MostAccurate(int(n_right) / table.n_rows, n_changes, n_changes / table.n_rows, flips)


def _best_changes(table: Table, problem: Problem, bound: Fraction, budget: int) -> _Changes | None:
    if budget < 0:
        return None
    if len(problem.constraint.rate_rows) == 2:
        positives = most_accurate_on_two_lines(problem, bound, budget)
        if positives is None:
            return None
        change = positives - problem.positives
        return _Changes(np.maximum(change, 0), np.maximum(-change, 0))
    line = problem.lines()[0]
    floor = (ratio_floor if problem.is_ratio else gap_floor)(line.sizes, bound)
    goal = _goal(table, problem, line, budget)
    found = best_interval(line, floor, goal, limit=table.n_rows, prefer_high=problem.prefer_raising)
    return None if found is None else _changes_within(goal, found, problem.constraint)


# ---------------------------------------------------------------------------------------------
# One line of rates


def _goal(table: Table, problem: Problem, line: Line, budget: int) -> _Accuracy:
    mend_up = table.counts[1, 0] * problem.may_raise  # false negatives
    mend_down = table.counts[0, 1] * problem.may_lower  # false positives
    none = np.zeros_like(mend_up)
    parts = {  # by the true label of the people that the rate counts
        None: (mend_up, mend_down, none),
        True: (mend_up, none, mend_down),
        False: (none, mend_down, mend_up),
    }
    return _Accuracy(line, *parts[problem.constraint.only_label], budget)


class _Parts(NamedTuple):
    """Per level and group, (N, G): forced changes, wrong ones among them, and what may be mended.

    `extra` counts the errors that can still be mended in the interval, `room_up` and `room_down`
    how far the count may move.
    """

    positives: Any
    forced: Any
    wrong: Any
    left_up: Any
    left_down: Any
    room_up: Any
    room_down: Any
    extra: Any


@dataclass(frozen=True)
class _Accuracy:
    """The goal of accuracy; of equally many right decisions, of few changes.

    `mend_up` and `mend_down` are the errors of the line that may be mended, `free` those of other
    rows, which no rate of the constraint sees; all (G,).
    """

    line: Line
    mend_up: IntArray
    mend_down: IntArray
    free: IntArray
    budget: int
    n_refinements: int = 14

    def parts(self, low: Any, high: Any) -> _Parts:
        before = self.line.positives
        after = np.clip(before, low, high)
        up, down = np.maximum(after - before, 0), np.maximum(before - after, 0)
        wrong = np.maximum(up - self.mend_up, 0) + np.maximum(down - self.mend_down, 0)
        left_up = np.maximum(self.mend_up - up, 0)
        left_down = np.maximum(self.mend_down - down, 0)
        room_up, room_down = high - after, after - low
        extra = np.minimum(left_up, left_down + room_up)
        extra = extra + np.minimum(left_down, left_up + room_down)
        return _Parts(after, up + down, wrong, left_up, left_down, room_up, room_down, extra)

    def relaxed_cost(self, low: FloatArray, high: FloatArray) -> FloatArray:
        parts = self.parts(low, high)
        forced, extra = parts.forced.sum(axis=1), parts.extra.sum(axis=1) + self.free.sum()
        beyond = np.maximum(forced - self.budget - 1e-6, 0) * 8 * self.line.sizes.sum()
        wrong = 2 * parts.wrong.sum(axis=1)
        return np.asarray(wrong - np.minimum(forced + extra, self.budget) + beyond)

    def cost(self, low: IntArray, high: IntArray) -> IntArray:
        parts = self.parts(low, high)
        wrong = 2 * parts.wrong.sum(axis=1)
        too_many = 8 * self.line.sizes.sum()  # above the limit of the search
        is_within = parts.forced.sum(axis=1) <= self.budget
        return np.where(is_within, wrong - self._n_changes(parts), too_many)

    def tie_break(self, low: IntArray, high: IntArray) -> FloatArray:
        return self._n_changes(self.parts(low, high)).astype(np.float64)

    def is_ideal(self, found: Interval) -> bool:
        """Tell whether no change is wrong: fewer changes would mean fewer right decisions."""
        return not self.parts(found.low, found.high).wrong.any()

    def _n_changes(self, parts: _Parts) -> IntArray:
        """Return the changes that are made, right ones up to the budget, shape (N,)."""
        left = self.budget - parts.forced.sum(axis=1)
        extra = parts.extra.sum(axis=1) + self.free.sum()
        needs_pair = ~_has_single(parts).any(axis=1) & (self.free.sum() == 0)
        odd_one = (left < extra) & (left % 2 == 1) & needs_pair
        return np.asarray(self.budget - left + np.minimum(left, extra) - odd_one)


def _has_single(parts: _Parts) -> Any:
    """Tell where one error alone can be mended, not only a pair of opposite ones."""
    up = (parts.left_up > 0) & (parts.room_up > 0)
    return up | ((parts.left_down > 0) & (parts.room_down > 0))


def _changes_within(goal: _Accuracy, found: Interval, constraint: Constraint) -> _Changes:
    """Return the changes behind the best interval: the forced ones, then errors mended."""
    parts = goal.parts(found.low, found.high)
    change = parts.positives - goal.line.positives
    mended_up, mended_down = np.maximum(change, 0), np.maximum(-change, 0)
    wrong_up = np.maximum(mended_up - goal.mend_up, 0)
    wrong_down = np.maximum(mended_down - goal.mend_down, 0)
    mended_up, mended_down = mended_up - wrong_up, mended_down - wrong_down
    left = goal.budget - int(parts.forced.sum())
    single = _has_single(parts)
    for s in np.argsort(single, kind="stable"):  # pairs first: a single can follow, not precede
        n = min(left, int(parts.extra[s]))
        n -= 0 if single[s] else n % 2
        up = min(int(parts.left_up[s]), n, (n + int(parts.room_up[s])) // 2)
        mended_up[s] += up
        mended_down[s] += n - up
        left -= n
    free = np.diff(np.minimum(np.cumsum(goal.free), left), prepend=0)
    if constraint.only_label:
        mended_down += free
    else:
        mended_up += free
    return _Changes(np.stack([mended_up, wrong_up]), np.stack([wrong_down, mended_down]))
