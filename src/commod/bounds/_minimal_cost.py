"""Find the cheapest changes to a target from rows, where each change has its own cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from commod._data.labels import check_length, one_dimensional
from commod._data.tables import check_same_rows
from commod._data.weights import check_costs
from commod.bounds._cheapest import BoolArray, PricedChanges
from commod.bounds._counts import read_target
from commod.bounds._requirement import simple_requirement
from commod.bounds._tables import Flips, check_budget, read_problem
from commod.exceptions import InputError
from commod.metrics._constraint import ConstraintLike


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
    max_changes: int | None = None,
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
    max_changes : int, default=None
        How many rows may change at most; None means any number.
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
    rows and up to minutes for a million; with `max_changes` it takes longer still.

    Examples
    --------
    Approving one person of group a is enough. The cheapest one has a cost of 0.1:

    >>> y_pred, group = [1, 0, 0, 0, 1, 1, 0, 0], ["a"] * 4 + ["b"] * 4
    >>> cost = [0.4, 0.1, 0.2, 0.3, 0.4, 0.5, 0.1, 0.1]
    >>> minimal_cost(y_pred, change_cost=cost, sensitive_features=group, target=0.8)
    MinimalCost(cost=0.1, n_changes=1, rate=0.125, flips={('a', 0, 1): 1})
    """
    constraint, target = simple_requirement(constraints, target, "The least cost")
    read_target(constraint, target)  # a wrong target is refused before any work
    budget = math.inf if max_changes is None else check_budget(max_changes)
    check_same_rows({"y_pred": y_pred, "change_cost": change_cost, "may_change": may_change})
    y_true = y_true if constraint.needs_labels else None
    rows, table, problem = read_problem(
        y_true, y_pred, sensitive_features, constraint, direction, pos_label, favorable_label
    )
    changes = PricedChanges.of(
        constraint,
        constraint.cells(rows.groups.codes, len(table.groups), rows.outcomes),
        (problem.sizes.shape[0], problem.sizes.shape[1]),
        rows.decisions,
        check_costs(change_cost, table.n_rows),
        _read_mask(may_change, table.n_rows),
        may_raise=problem.may_raise,
        may_lower=problem.may_lower,
        prefer_raising=problem.prefer_raising,
    )
    changed = changes.cheapest_rows(target, max_changes=budget)
    if changed is None:
        return MinimalCost(math.inf, None, math.nan, {})
    group, was_positive = rows.groups.codes[changed], rows.decisions[changed]
    raised = np.bincount(group[~was_positive], minlength=len(table.groups))
    lowered = np.bincount(group[was_positive], minlength=len(table.groups))
    cost, rate = math.fsum(changes.cost[changed]), len(changed) / table.n_rows
    return MinimalCost(cost, len(changed), rate, table.flips(raised, lowered))


def _read_mask(may_change: Any, n_rows: int) -> BoolArray:
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
