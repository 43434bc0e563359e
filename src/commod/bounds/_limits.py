"""Find the fewest changes to a target, and the best fairness within a budget, from rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from commod.bounds._counts import (
    CountProblem,
    read_target,
    solve_best_fairness,
    solve_fewest_changes,
)
from commod.bounds._levels import IntArray
from commod.bounds._tables import (
    CountTable,
    Flips,
    check_budget,
    problem_of,
    read_problem,
    read_table,
)
from commod.exceptions import InputError
from commod.metrics._constraint import ConstraintLike, get_constraint


@dataclass(frozen=True)
class MinimalChanges:
    """The fewest changes: their number, their share of all rows, and who changes to what.

    `flips` maps (group, label before, label after) to a number of people. Where the target cannot
    be reached, `n_changes` is None, `rate` is NaN and `flips` is empty.

    Examples
    --------
    >>> MinimalChanges(n_changes=1, rate=0.25, flips={("a", 0, 1): 1}).flips["a", 0, 1]
    1
    """

    n_changes: int | None
    rate: float
    flips: Flips


@dataclass(frozen=True)
class BestFairness:
    """The best fairness, and the fewest changes that give it, as in `MinimalChanges`.

    Examples
    --------
    >>> BestFairness(fairness=0.8, n_changes=1, rate=0.25, flips={("a", 0, 1): 1}).fairness
    0.8
    """

    fairness: float
    n_changes: int
    rate: float
    flips: Flips


def minimal_changes(
    y_pred: Any,
    *,
    sensitive_features: Any,
    target: Any,
    constraints: ConstraintLike = "demographic_parity",
    y_true: Any = None,
    direction: str = "any",
    pos_label: Any = 1,
    favorable_label: Any = None,
) -> MinimalChanges:
    """Return the fewest changed decisions that reach a fairness target, exactly.

    No method reaches the target on these rows with fewer changes, whatever it knows about them.
    So this is the limit to compare an update with. It counts people and takes no sample weights.

    Parameters
    ----------
    y_pred : array-like of shape (n_samples,)
        Decisions, with at most two different labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        Group of each row, two groups or more; several columns mean their intersections.
    target : float or Fraction
        Floor on the P-rule, in (0, 1], or ceiling on the disparate mistreatment, in [0, 2], or
        on one gap, in [0, 1]. A float is compared with the rounded metric: the P-rule 4/5
        reaches 0.8. A fraction is compared exactly.
    constraints : str, default="demographic_parity"
        Or "equalized_odds", "true_positive_rate_parity", "false_positive_rate_parity".
    y_true : array-like of shape (n_samples,), default=None
        True labels; ignored for demographic parity, needed for the other constraints.
    direction : str, default="any"
        "gains_only" allows only gains of the favourable label, "losses_only" only losses.
    pos_label : label, default=1
        The label whose rates are counted.
    favorable_label : label, default=None
        The label that is good for the person; None means `pos_label`.

    Returns
    -------
    MinimalChanges
        No changes where the target is met already. An undefined P-rule (nobody has `pos_label`)
        meets no target. `n_changes` is None where the target is unreachable; for example,
        `losses_only` cannot raise the rate of a group without positives. It is an error if a
        group has no row with a true label that the constraint needs.

    Notes
    -----
    Fairness depends on counts alone, so any people of a group (and true label) may be the ones who
    change. Ties go to the fairest counts, then to gains; for equalized odds, to some answer with
    the fewest changes. The same counts always give the same answer.

    The paper puts all changes for equalized odds on the true label whose smallest cell is smaller.
    That is right only until this gap is closed. Further changes belong to the other label.

    Examples
    --------
    >>> y_pred = [1] * 20 + [0] * 80 + [1] * 25 + [0] * 25
    >>> group = ["a"] * 100 + ["b"] * 50
    >>> minimal_changes(y_pred, sensitive_features=group, target=0.8)
    MinimalChanges(n_changes=13, rate=0.08666666666666667, flips={('b', 1, 0): 13})
    >>> minimal_changes(y_pred, sensitive_features=group, target=0.8, direction="gains_only").flips
    {('a', 0, 1): 20}
    """
    constraint = get_constraint(constraints)
    bound = read_target(constraint, target)
    y_true = y_true if constraint.needs_labels else None
    table, problem = read_problem(
        y_true, y_pred, sensitive_features, constraint, direction, pos_label, favorable_label
    )
    positives = solve_fewest_changes(problem, bound)
    if positives is None:
        return MinimalChanges(None, math.nan, {})
    n_changes = problem.n_changes(positives)
    flips = _named_flips(table, problem, positives)
    return MinimalChanges(n_changes, n_changes / table.n_rows, flips)


def _named_flips(table: CountTable, problem: CountProblem, positives: IntArray) -> Flips:
    """Return the changes from the present positives to these, by group and label."""
    change = positives - problem.positives
    return table.flips(np.maximum(change, 0).sum(axis=0), np.maximum(-change, 0).sum(axis=0))


def best_fairness(
    y_pred: Any,
    *,
    sensitive_features: Any,
    max_changes: int,
    constraints: ConstraintLike = "demographic_parity",
    y_true: Any = None,
    direction: str = "any",
    pos_label: Any = 1,
    favorable_label: Any = None,
) -> BestFairness:
    """Return the best fairness that at most `max_changes` changed decisions can give, exactly.

    Parameters
    ----------
    y_pred : array-like of shape (n_samples,)
        Decisions, with at most two different labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        Group of each row, two groups or more.
    max_changes : int
        How many rows may change, 0 or more.
    constraints, y_true, direction, pos_label, favorable_label
        As in `minimal_changes`.

    Returns
    -------
    BestFairness
        The highest P-rule, or the smallest mistreatment or gap, and the fewest changes that give
        it. Where nobody has `pos_label` and the budget does not reach every group, nothing is
        changed and the fairness is NaN.

    Notes
    -----
    The paper asks for exactly K changes, which can force harmful ones; its statement needs at most
    K. For two groups and K below `switching_point`, all changes are then on one side. People of
    the group with the lower rate are raised where K is at most the difference of the two groups'
    counts; otherwise people of the other group are lowered. The paper comes to the same result,
    although from a derivative of the wrong sign.

    Examples
    --------
    >>> y_pred, group = [1, 0, 0, 0, 1, 1, 1, 0], ["a"] * 4 + ["b"] * 4
    >>> best_fairness(y_pred, sensitive_features=group, max_changes=1)
    BestFairness(fairness=0.6666666666666666, n_changes=1, rate=0.125, flips={('a', 0, 1): 1})
    """
    budget = check_budget(max_changes)
    constraint = get_constraint(constraints)
    y_true = y_true if constraint.needs_labels else None
    table, problem = read_problem(
        y_true, y_pred, sensitive_features, constraint, direction, pos_label, favorable_label
    )
    positives = solve_best_fairness(problem, budget)
    value, n_changes = problem.fairness(positives), problem.n_changes(positives)
    return BestFairness(
        math.nan if value is None else float(value),
        n_changes,
        n_changes / table.n_rows,
        _named_flips(table, problem, positives),
    )


def switching_point(y_pred: Any, *, sensitive_features: Any, pos_label: Any = 1) -> int:
    """Return the fewest changes after which the lower rate can equal or exceed the other rate.

    Only helpful changes count: people raised in the group with the lower rate, or lowered in the
    other group. With fewer changes, the best P-rule puts all of them on one side. The paper calls
    this number the switching point K_s.

    Parameters
    ----------
    y_pred : array-like of shape (n_samples,)
        Decisions, with at most two different labels.
    sensitive_features : array-like of shape (n_samples,)
        Group of each row, exactly two groups.
    pos_label : label, default=1
        The label whose rates are counted.

    Returns
    -------
    int
        0 when both groups have the same rate, also where nobody is selected.

    Examples
    --------
    >>> y_pred = [1] * 20 + [0] * 80 + [1] * 25 + [0] * 25
    >>> switching_point(y_pred, sensitive_features=["a"] * 100 + ["b"] * 50)
    15
    """
    table = read_table(y_pred, sensitive_features, pos_label)
    if len(table.groups) != 2:
        raise InputError(
            f"sensitive_features has {len(table.groups)} groups, but the switching point is "
            "defined for two. Pick two of them, or use minimal_changes, which takes any number.",
            parameter="sensitive_features",
        )
    problem = problem_of(table, "demographic_parity")
    (p0, p1), (n0, n1) = problem.positives[0].tolist(), problem.sizes[0].tolist()
    # A change in either group moves p0·n1 − p1·n0 by the size of the other one.
    return int(-(-abs(p0 * n1 - p1 * n0) // max(n0, n1)))
