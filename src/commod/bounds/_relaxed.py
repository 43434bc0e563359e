"""The fewest expected changes: what decisions drawn by lot can do at best, in real numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from commod.bounds._counts import read_counts, read_target
from commod.bounds._levels import FloatArray
from commod.metrics._constraint import ConstraintLike, get_constraint

__all__ = ["fewest_expected_changes"]


def fewest_expected_changes(
    constraints: ConstraintLike, sizes: Any, positives: Any, target: Any
) -> float:
    """Return the fewest changes, in expectation, of decisions that may be drawn by lot.

    The continuous relaxation of `fewest_changes`: a cell may have any real number of expected
    positives, so it is never above the limit in whole numbers.

    Parameters
    ----------
    constraints : str
        "demographic_parity", "equalized_odds", "true_positive_rate_parity" or
        "false_positive_rate_parity".
    sizes, positives : array-like of shape (n_lines, n_groups)
        As in `fewest_changes`.
    target : float or Fraction
        Floor on the P-rule of the expected rates, in (0, 1], or ceiling on their gap.

    Returns
    -------
    float
        An infimum for the P-rule: as few changes as that may leave nobody positive, which no rule
        with a defined P-rule does, but rules come as close as one likes.

    Examples
    --------
    >>> fewest_expected_changes("demographic_parity", [[100, 50]], [[20, 25]], 0.8)
    12.5
    >>> sizes, positives = [[10, 100], [20, 100]], [[3, 50], [4, 60]]
    >>> round(fewest_expected_changes("equalized_odds", sizes, positives, 0.2), 9)
    6.0
    """
    constraint = get_constraint(constraints)
    n_people, before = read_counts(constraint, sizes, positives)
    bound = float(read_target(constraint, target))
    lines = list(zip(n_people.astype(np.float64), before.astype(np.float64), strict=True))
    if constraint.is_ratio:
        return _ratio_cost(*lines[0], bound)
    if len(lines) == 1:
        return float(_gap_costs(*lines[0], np.array([bound]))[0])
    # both costs are convex in their ceiling and bend only at differences of two rates
    first, second = (_differences(*line) for line in lines)
    parts = np.clip(np.concatenate([first, bound - second, [0.0, bound]]), 0.0, bound)
    return float((_gap_costs(*lines[0], parts) + _gap_costs(*lines[1], bound - parts)).min())


def _ratio_cost(sizes: FloatArray, positives: FloatArray, floor: float) -> float:
    """Return the least Σ dist(p, [floor·u·n, u·n]) over the highest rate u in [0, 1]."""
    rates = positives / sizes
    highest = np.clip(np.concatenate([rates, rates / floor]), 0.0, 1.0)[:, None]
    moves = np.maximum(positives - highest * sizes, floor * highest * sizes - positives)
    return float(np.maximum(moves, 0.0).sum(axis=1).min())


def _gap_costs(sizes: FloatArray, positives: FloatArray, ceilings: FloatArray) -> FloatArray:
    """Return the least Σ dist(p, [(u − t)·n, u·n]) over u in [0, 1] for each t, shape (m,)."""
    rates = positives / sizes
    t = ceilings[:, None, None]
    ends = [np.broadcast_to(rates[:, None], (len(ceilings), len(rates), 1)), rates[:, None] + t]
    highest = np.clip(np.concatenate(ends, axis=1), 0.0, 1.0)
    moves = np.maximum(positives - highest * sizes, (highest - t) * sizes - positives)
    return np.asarray(np.maximum(moves, 0.0).sum(axis=2).min(axis=1))


def _differences(sizes: FloatArray, positives: FloatArray) -> FloatArray:
    rates = positives / sizes
    return np.abs(rates[:, None] - rates).ravel()
