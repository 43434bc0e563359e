"""The most accurate decisions under equalized odds, as an integer program for HiGHS."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from commod.bounds._counts import Problem, fewest
from commod.bounds._levels import FloatArray, IntArray, largest_denominator
from commod.exceptions import InputError

__all__ = ["most_accurate_on_two_lines"]

MOST_BRANCHES = 20_000


def most_accurate_on_two_lines(problem: Problem, ceiling: Fraction, budget: int) -> IntArray | None:
    """Return the positives (2, G) with most right decisions after at most `budget` changes.

    The first line has the people whose true label is positive: there raising is right, in the
    second line lowering is. None where the ceiling takes more changes.
    """
    if fewest(problem, ceiling, budget) is None:
        return None
    must_be_equal = ceiling * max(largest_denominator(line) for line in problem.sizes) < 1
    gains = []
    for slack in (0.0, 1e-12, 1e-9):  # HiGHS allows itself a little more than the ceiling
        rows = _equal_rates(problem) if must_be_equal else _gaps(problem, float(ceiling) - slack)
        change = _solve(problem, rows, budget)
        gains.append(change[0].sum() - change[1].sum())
        value = problem.fairness(problem.positives + change)
        if value is not None and value <= ceiling and gains[-1] == gains[0]:
            return problem.positives + change
    raise _unproven()


def _unproven() -> InputError:
    return InputError(
        f"Within {MOST_BRANCHES} branches no answer for equalized_odds is proven the most "
        "accurate: the ceiling is finer than single rows of the smallest cells. Raise target."
    )


class _Rows(NamedTuple):
    """Rows low <= coefficients @ (raised (2G), lowered (2G), others) <= high of the program."""

    coefficients: FloatArray
    low: FloatArray
    high: FloatArray
    others_are_whole: bool


def _gaps(problem: Problem, ceiling: float) -> _Rows:
    """Return the rows for four others, both lines' highest and lowest rate, in people.

    A rate is counted in people of the line's largest cell, since HiGHS works to 1e-6 or so.
    """
    largest = problem.sizes.max(axis=1)
    scale = np.diag((largest[:, None] / problem.sizes).ravel())
    highest = np.kron(np.eye(2), np.ones((problem.sizes.shape[1], 1)))
    none, offset = np.zeros_like(highest), scale @ problem.positives.ravel()
    below_highest = np.hstack([scale, -scale, -highest, none])
    above_lowest = np.hstack([-scale, scale, none, highest])
    weights = largest.max() / largest
    gap = np.concatenate([np.zeros(2 * problem.sizes.size), weights, -weights])
    return _Rows(
        np.vstack([below_highest, above_lowest, gap]),
        np.full(2 * problem.sizes.size + 1, -np.inf),
        np.concatenate([-offset, offset, [largest.max() * ceiling]]),
        others_are_whole=False,
    )


def _equal_rates(problem: Problem) -> _Rows:
    """Return the rows for two others: how many times 1 / gcd of its sizes each line's rate is."""
    steps = problem.sizes // np.gcd.reduce(problem.sizes, axis=1, keepdims=True)
    one, per_step = np.eye(problem.sizes.size), np.zeros((problem.sizes.size, 2))
    per_step[np.arange(problem.sizes.size), np.repeat([0, 1], problem.sizes.shape[1])] = (
        steps.ravel()
    )
    before = -problem.positives.ravel().astype(np.float64)
    return _Rows(np.hstack([one, -one, -per_step]), before, before, others_are_whole=True)


def _solve(problem: Problem, rows: _Rows, budget: int) -> IntArray:
    """Return raised minus lowered, (2, G), of the most accurate whole numbers."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    is_right = np.repeat([1.0, -1.0], problem.sizes.shape[1])
    n_others = rows.coefficients.shape[1] - 2 * problem.sizes.size
    others, changes = np.zeros(n_others), np.ones(2 * problem.sizes.size)
    up = (problem.sizes - problem.positives) * problem.may_raise
    down = problem.positives * problem.may_lower
    most = np.concatenate([up.ravel(), down.ravel(), np.full(n_others, problem.sizes.max())])
    result = milp(
        np.concatenate([-is_right, is_right, others]),
        constraints=[
            LinearConstraint(rows.coefficients, rows.low, rows.high),
            LinearConstraint(np.concatenate([changes, others])[None, :], -np.inf, budget),
        ],
        integrality=np.concatenate([changes, others + rows.others_are_whole]),
        bounds=Bounds(0, most),
        options={"mip_rel_gap": 0, "node_limit": MOST_BRANCHES},
    )
    if result.status != 0:
        raise _unproven()
    raised, lowered = np.rint(result.x[: len(changes)]).astype(np.int64).reshape(2, 2, -1)
    return np.asarray(raised - lowered)
