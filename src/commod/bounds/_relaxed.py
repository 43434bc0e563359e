"""Find the fewest expected changes of randomised decisions, in real numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from commod.bounds._counts import CountProblem, read_counts, read_target, simple_constraint
from commod.bounds._levels import RateRowCounts, relaxed_gap_costs
from commod.metrics._constraint import ConstraintLike


def fewest_expected_changes(
    constraints: ConstraintLike, sizes: Any, positives: Any, target: Any
) -> float:
    """Return the fewest expected changes of decisions that may be randomised.

    This is the continuous relaxation of `fewest_changes`: a cell may have any real number of
    expected positives. So the result is never above the limit in whole numbers.

    Parameters
    ----------
    constraints : str
        "demographic_parity", "equalized_odds", "true_positive_rate_parity" or
        "false_positive_rate_parity".
    sizes, positives : array-like of shape (n_rate_rows, n_groups)
        As in `fewest_changes`.
    target : float or Fraction
        Floor on the P-rule of the expected rates, in (0, 1], or ceiling on their gap.

    Returns
    -------
    float
        For the P-rule an infimum: so few changes may leave nobody positive, where the P-rule is
        undefined. Rules with a defined P-rule come arbitrarily close.

    Examples
    --------
    >>> fewest_expected_changes("demographic_parity", [[100, 50]], [[20, 25]], 0.8)
    12.5
    >>> sizes, positives = [[10, 100], [20, 100]], [[3, 50], [4, 60]]
    >>> round(fewest_expected_changes("equalized_odds", sizes, positives, 0.2), 9)
    6.0
    """
    constraint = simple_constraint(constraints, "The fewest expected changes")
    rows = CountProblem(constraint, *read_counts(constraint, sizes, positives)).rate_rows()
    bound = float(read_target(constraint, target))
    if constraint.is_ratio:
        return _ratio_cost(rows[0], bound)
    if len(rows) == 1:
        return float(relaxed_gap_costs(rows[0], np.array([bound]))[0])
    # Both costs are convex in their ceiling, and have kinks only at differences of two rates.
    first, second = (np.abs(row.rates[:, None] - row.rates).ravel() for row in rows)
    parts = np.clip(np.concatenate([first, bound - second, [0.0, bound]]), 0.0, bound)
    costs = relaxed_gap_costs(rows[0], parts) + relaxed_gap_costs(rows[1], bound - parts)
    return float(costs.min())


def _ratio_cost(row: RateRowCounts, floor: float) -> float:
    """Return the least Σ dist(p, [floor·u·n, u·n]) over the highest rate u in [0, 1]."""
    highest = np.clip(np.concatenate([row.rates, row.rates / floor]), 0.0, 1.0)[:, None]
    high, low = highest * row.sizes, floor * highest * row.sizes
    moves = np.maximum(row.positives - high, low - row.positives)
    return float(np.maximum(moves, 0.0).sum(axis=1).min())
