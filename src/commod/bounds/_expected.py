"""Find the fewest expected changes of a rule that sees only the group and the base decision."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats
from commod.bounds._counts import (
    CountProblem,
    read_target,
    simple_requirement,
)
from commod.bounds._levels import IntArray, RateRowCounts, relaxed_gap_costs
from commod.bounds._tables import CountTable, read_problem
from commod.exceptions import InputError
from commod.metrics._constraint import ConstraintLike

Shares = dict[tuple[Hashable, Any, Any], float]


@dataclass(frozen=True)
class ExpectedChanges:
    """The fewest expected changes, their share of all rows, and the share of each cell to change.

    `shares` maps (group, label before, label after) to the share, in [0, 1], of the people with
    this group and decision who change. Cells where nobody changes are left out.

    Examples
    --------
    >>> ExpectedChanges(n_changes=1.5, rate=0.25, shares={("a", 0, 1): 0.5}).shares["a", 0, 1]
    0.5
    """

    n_changes: float
    rate: float
    shares: Shares


def minimal_expected_changes(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    target: Any = None,
    constraints: ConstraintLike = "equalized_odds",
    direction: str = "any",
    pos_label: Any = 1,
    favorable_label: Any = None,
) -> ExpectedChanges:
    """Return the fewest expected changes of a randomised rule that sees group and decision only.

    `minimal_changes` may use the true labels to choose who changes. A rule that sees only the
    group and the base decision changes a random share of each group's negatives and of its
    positives. Its expected rates are linear in these shares. The result is a reference for such
    rules, not a limit for every update without true labels: columns that predict the label can
    reach the target with fewer changes.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        True labels and decisions, with the same two labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        Group of each row, two groups or more.
    target : float or Fraction
        Ceiling on the disparate mistreatment, in [0, 2], or on one gap, in [0, 1].
    constraints : str, default="equalized_odds"
        Or "true_positive_rate_parity", "false_positive_rate_parity". Demographic parity needs no
        labels: `minimal_changes` is the limit of such rules there.
    direction : str, default="any"
        Or "gains_only", "losses_only", as in `minimal_changes`.
    pos_label : label, default=1
        The label whose rates are counted.
    favorable_label : label, default=None
        The label that is good for the person; None means `pos_label`.

    Returns
    -------
    ExpectedChanges
        Always finite: changing all negatives, or all positives, closes every gap.

    Examples
    --------
    >>> y_true = [1, 1, 0, 0, 1, 1, 0, 0]
    >>> y_pred = [1, 0, 0, 0, 1, 1, 0, 0]
    >>> group = ["a"] * 4 + ["b"] * 4
    >>> minimal_expected_changes(
    ...     y_true, y_pred, sensitive_features=group, target=0.25,
    ...     constraints="true_positive_rate_parity",
    ... )
    ExpectedChanges(n_changes=0.5, rate=0.0625, shares={('b', 1, 0): 0.25})
    """
    constraint, target = simple_requirement(constraints, target, "The fewest expected changes")
    if not constraint.needs_labels or constraint.is_ratio:
        raise InputError(
            f"constraints={constraint.name!r} compares no true labels, or divides their "
            "rates. Use minimal_changes, or pass equalized_odds, true_positive_rate_parity or "
            "false_positive_rate_parity.",
            parameter="constraints",
        )
    ceiling = float(read_target(constraint, target))
    _, table, problem = read_problem(
        y_true, y_pred, sensitive_features, constraint, direction, pos_label, favorable_label
    )
    people = table.counts.sum(axis=0)
    most = np.array([[problem.may_raise], [problem.may_lower]]) & (people > 0)
    shares = _cheapest_shares(constraint.by_rate_row(table.counts), people, ceiling, most)
    n_changes = float((shares * people).sum())
    return ExpectedChanges(n_changes, n_changes / table.n_rows, _shares_by_cell(table, shares))


def _shares_by_cell(table: CountTable, shares: Floats) -> Shares:
    changes = table.labels, table.labels[::-1]  # labels before and after
    return {
        (group, before, after): share
        for (before, after), of_groups in zip(changes, shares.tolist(), strict=True)
        for group, share in zip(table.groups, of_groups, strict=True)
        if share
    }


def _cheapest_shares(
    counts: IntArray, people: IntArray, ceiling: float, most: NDArray[np.bool_]
) -> Floats:
    """Return the shares of negatives raised and of positives lowered, shape (2, G).

    `counts` (n_rate_rows, 2, G) are the people that each rate counts, `people` (2, G) all people,
    and `most` (2, G) the largest allowed share of each. The other variables of the linear program
    are the highest and the lowest rate of each rate row.
    """
    from scipy.optimize import linprog

    n_rows, _, n_groups = counts.shape
    blocks, limits = [], []
    for i, (negatives, positives) in enumerate(counts):
        size = negatives + positives
        moves = np.hstack([np.diag(negatives / size), -np.diag(positives / size)])
        highest = np.zeros((n_groups, 2 * n_rows))
        lowest = highest.copy()
        highest[:, i], lowest[:, n_rows + i] = 1, 1
        blocks += [np.hstack([moves, -highest]), np.hstack([-moves, lowest])]
        limits += [-positives / size, positives / size]
    gap = np.concatenate([np.zeros(2 * n_groups), np.ones(n_rows), -np.ones(n_rows)])
    cost = np.concatenate([people.ravel(), np.zeros(2 * n_rows)])
    result = linprog(
        cost / cost.sum(),
        A_ub=np.vstack([*blocks, gap]),
        b_ub=np.concatenate([*limits, [ceiling]]),
        bounds=[(0.0, float(m)) for m in [*most.ravel().tolist(), *[1] * (2 * n_rows)]],
    )
    assert result.x is not None  # raising everybody, or lowering everybody, is within any ceiling
    return np.clip(result.x[: 2 * n_groups].reshape(2, n_groups), 0, 1)


# ---------------------------------------------------------------------------------------------
# Find the fewest expected changes of randomised decisions, in real numbers


def fewest_expected_changes(
    constraints: ConstraintLike, sizes: Any, positives: Any, target: Any
) -> float:
    """Return the fewest expected changes of decisions that may be randomised.

    This is the continuous relaxation of `fewest_changes`: a cell may have any real number of
    expected positives. So the result is never above the limit in whole numbers.

    `sizes` and `positives` have shape (n_rate_rows, n_groups), and no cell is empty. For the P-rule
    the result is an infimum: so few changes may leave nobody positive, where the P-rule is
    undefined. Rules with a defined P-rule come arbitrarily close.

    Examples
    --------
    >>> fewest_expected_changes("demographic_parity", [[100, 50]], [[20, 25]], 0.8)
    12.5
    >>> sizes, positives = [[10, 100], [20, 100]], [[3, 50], [4, 60]]
    >>> round(fewest_expected_changes("equalized_odds", sizes, positives, 0.2), 9)
    6.0
    """
    problem = CountProblem.of(constraints, sizes, positives)
    rows, bound = problem.rate_rows(), float(read_target(problem.constraint, target))
    if problem.constraint.is_ratio:
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
