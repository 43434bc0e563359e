"""What label-dependent targets cost an update that sees the group and the base decision only."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod.bounds._counts import read_target
from commod.bounds._levels import FloatArray, IntArray
from commod.bounds._tables import Table, read_problem
from commod.exceptions import InputError
from commod.metrics._constraint import ConstraintLike, get_constraint

__all__ = ["ExpectedChanges", "minimal_expected_changes"]

Shares = dict[tuple[Hashable, Any, Any], float]


@dataclass(frozen=True)
class ExpectedChanges:
    """The fewest expected changes, their share of all rows, and the share of each cell to change.

    `shares` maps (group, label before, label after) to the share, in [0, 1], of the people with
    that group and decision who change; cells where nobody does are left out.

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
    target: Any,
    constraints: ConstraintLike = "equalized_odds",
    direction: str = "any",
    pos_label: Any = 1,
    favorable_label: Any = None,
) -> ExpectedChanges:
    """Return the fewest changes, on average, of a rule that draws who changes by lot.

    `minimal_changes` changes whom it likes, knowing the true labels. A rule that sees nothing but
    the group and the base decision changes a share of each group's negatives and of its
    positives, drawn at random: the rates it reaches, on average, are linear in these shares.
    This is a reference for such rules, not a limit for every update without true labels: columns
    that tell more about the label can get by with fewer changes.

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
        labels: there `minimal_changes` is the limit of such rules already.
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
    constraint = get_constraint(constraints)
    if not constraint.needs_labels:
        raise InputError(
            f"{constraint.name} compares no true labels, so seeing them changes nothing: use "
            "minimal_changes. Here constraints must be equalized_odds, true_positive_rate_parity "
            "or false_positive_rate_parity."
        )
    ceiling = float(read_target(constraint, target))
    table, problem = read_problem(
        y_true, y_pred, sensitive_features, constraint, direction, pos_label, favorable_label
    )
    people = table.counts.sum(axis=0)
    most = np.array([[problem.may_raise], [problem.may_lower]]) & (people > 0)
    shares = _cheapest_shares(constraint.by_rate_row(table.counts), people, ceiling, most)
    n_changes = float((shares * people).sum())
    return ExpectedChanges(n_changes, n_changes / table.n_rows, _named(table, shares))


def _named(table: Table, shares: FloatArray) -> Shares:
    named: Shares = {}
    for (before, after), line in zip((table.labels, table.labels[::-1]), shares, strict=True):
        named |= {
            (g, before, after): s for g, s in zip(table.groups, line.tolist(), strict=True) if s
        }
    return named


def _cheapest_shares(
    counts: IntArray, people: IntArray, ceiling: float, most: NDArray[np.bool_]
) -> FloatArray:
    """Return the shares of negatives raised and of positives lowered, shape (2, G).

    `counts` (n_lines, 2, G) are the rows that the rates count, `people` (2, G) all rows, and `most`
    (2, G) the largest share of each. The other variables of the linear program are the highest and
    the lowest rate of each line.
    """
    from scipy.optimize import linprog

    n_lines, _, n_groups = counts.shape
    blocks, limits = [], []
    for i, (negatives, positives) in enumerate(counts):
        size = negatives + positives
        moves = np.hstack([np.diag(negatives / size), -np.diag(positives / size)])
        highest = np.zeros((n_groups, 2 * n_lines))
        lowest = highest.copy()
        highest[:, i], lowest[:, n_lines + i] = 1, 1
        blocks += [np.hstack([moves, -highest]), np.hstack([-moves, lowest])]
        limits += [-positives / size, positives / size]
    gap = np.concatenate([np.zeros(2 * n_groups), np.ones(n_lines), -np.ones(n_lines)])
    cost = np.concatenate([people.ravel(), np.zeros(2 * n_lines)])
    result = linprog(
        cost / cost.sum(),
        A_ub=np.vstack([*blocks, gap]),
        b_ub=np.concatenate([*limits, [ceiling]]),
        bounds=[(0.0, float(m)) for m in [*most.ravel().tolist(), *[1] * (2 * n_lines)]],
    )
    assert result.x is not None  # all raised, or all lowered, is within any ceiling
    return np.clip(result.x[: 2 * n_groups].reshape(2, n_groups), 0, 1)
