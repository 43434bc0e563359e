"""Find the most accurate decisions under equalized odds with an integer program (HiGHS).

The variables of the program are the people raised (2G), the people lowered (2G), and a few
auxiliary variables. G is the number of groups; the two rate rows come one after the other.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from commod.bounds._counts import CountProblem, solve_fewest_changes
from commod.bounds._levels import FloatArray, IntArray, largest_denominator
from commod.bounds._quiet import without_debug_lines
from commod.exceptions import InputError

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

    coefficients: FloatArray
    low: FloatArray
    high: FloatArray
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
