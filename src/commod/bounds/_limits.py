"""Find the fewest changes to a target, and the best fairness within a budget, from rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from commod._data.groups import GroupedDecisions
from commod._data.parameters import check_number_parameter
from commod._data.strata import ControlFeatures
from commod.bounds._counts import (
    read_requirements,
    read_target,
    simple_constraint,
    solve_best_fairness,
)
from commod.bounds._general import TIME_LIMIT, fewest_changes_of
from commod.bounds._tables import (
    CountTable,
    Flips,
    allowed_changes,
    check_budget,
    check_cells,
    read_problem,
    read_table,
)
from commod.exceptions import InputError
from commod.metrics._cells import Cells
from commod.metrics._conditional import read_rows, strata_on_rows
from commod.metrics._constraint import Constraint, ConstraintLike, missing_labels


@dataclass(frozen=True, repr=False)
class MinimalChanges:
    """The fewest changes: their number, their share of all rows, and who changes to what.

    `flips` maps (group, label before, label after) to a number of people. Where the target cannot
    be reached, `n_changes` is None, `rate` is NaN and `flips` is empty.

    No decisions reach the target with fewer changes than `lower_bound`. The limit `is_exact` where
    this is `n_changes`, and where the target is proven to be unreachable. Otherwise the time was
    over: `n_changes` are the fewest changes found so far, None where none were found.

    Examples
    --------
    >>> limit = MinimalChanges(n_changes=1, rate=0.25, flips={("a", 0, 1): 1})
    >>> limit.flips["a", 0, 1], limit.lower_bound, limit.is_exact
    (1, 1, True)
    """

    n_changes: int | None
    rate: float
    flips: Flips
    lower_bound: int | None = None

    def __post_init__(self) -> None:
        if self.lower_bound is None:
            object.__setattr__(self, "lower_bound", self.n_changes)

    def __repr__(self) -> str:
        proven = "" if self.is_exact else f", lower_bound={self.lower_bound}"
        return (
            f"MinimalChanges(n_changes={self.n_changes}, rate={self.rate}, flips={self.flips}"
            f"{proven})"
        )

    @property
    def is_exact(self) -> bool:
        """Return whether fewer changes are proven to be impossible."""
        return self.lower_bound == self.n_changes


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
    target: Any = None,
    constraints: Any = "demographic_parity",
    y_true: Any = None,
    control_features: Any = None,
    direction: str = "any",
    pos_label: Any = 1,
    favorable_label: Any = None,
    time_limit: float = TIME_LIMIT,
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
    target : float or Fraction, default=None
        Floor on the P-rule, in (0, 1], or ceiling on the disparate mistreatment, in [0, 2], or
        on one gap, in [0, 1]. A float is compared with the rounded metric: the P-rule 4/5
        reaches 0.8. A fraction is compared exactly. None where `constraints` states the bound.
    constraints : str, constraint of `commod.constraints`, or a list, default="demographic_parity"
        What is compared, with its bound if `target` is None. ``A & B`` and lists hold at once.
    y_true : array-like of shape (n_samples,), default=None
        True labels; ignored for demographic parity, needed for constraints on errors.
    control_features : array-like, dict or frame, default=None
        The columns that conditional constraints name. One array is enough for one condition.
    direction : str, default="any"
        "gains_only" allows only gains of the favourable label, "losses_only" only losses.
    pos_label : label, default=1
        The label whose rates are counted.
    favorable_label : label, default=None
        The label that is good for the person; None means `pos_label`.
    time_limit : float, default=5.0
        Seconds after which the search stops. Only combinations, averages over strata and measures
        whose denominator moves need a search that may take long.

    Returns
    -------
    MinimalChanges
        `is_exact` says whether the number is exact. Otherwise `lower_bound` is proven.
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

    Several constraints at once:

    >>> from commod.constraints import DemographicParity, MinimumRate
    >>> both = DemographicParity(ratio=0.8) & MinimumRate(0.25)
    >>> limit = minimal_changes(y_pred, sensitive_features=group, constraints=both)
    >>> limit.n_changes, limit.is_exact
    (15, True)
    """
    requirements, bounds = read_requirements(constraints, target)
    targets = list(map(read_target, requirements.constraints, bounds))
    if control_features is not None and not requirements.columns:
        raise InputError(
            "control_features is passed, but no constraint has a condition. State it with "
            "`within`, as in DemographicParity(ratio=0.8).within('department').",
            parameter="control_features",
        )
    if not requirements.needs_labels:
        y_true = None
    elif y_true is None:
        raise missing_labels(next(c for c in requirements.constraints if c.needs_labels))
    rows, table = read_table(y_true, y_pred, sensitive_features, pos_label, favorable_label)
    may_raise, may_lower = allowed_changes(table, direction)
    people = read_rows(y_true, y_pred, sensitive_features, pos_label, None, control_features)
    cells = _cells(requirements.constraints, table, *people)
    sizes = cells.totals(np.ones(table.n_rows))
    # The values of one simple constraint are exact fractions; others are rounded to some digits.
    is_simple = len(bounds) == 1 and requirements.constraints[0].is_simple
    compared = [
        (comparison, targets[i] if is_simple else float(bound))
        for i, bound in enumerate(bounds)
        for comparison in cells.comparisons(i, sizes)
    ]
    before = cells.totals(rows.decisions.astype(np.float64)).astype(np.int64)
    check_number_parameter(time_limit, "time_limit", (int, float), min_val=0)
    limit = fewest_changes_of(
        compared,
        sizes.astype(np.int64),
        before,
        may_raise=may_raise,
        may_lower=may_lower,
        prefer_raising=table.is_positive_favorable,
        time_limit=time_limit,
    )
    lower_bound = None if limit is None else int(limit.lower_bound)
    if limit is None or limit.moves is None or limit.n_changes is None:
        return MinimalChanges(None, math.nan, {}, lower_bound)
    rate = limit.n_changes / table.n_rows
    return MinimalChanges(limit.n_changes, rate, table.flips_of(limit.moves), lower_bound)


def _cells(
    constraints: Sequence[Constraint],
    table: CountTable,
    rows: GroupedDecisions,
    columns: ControlFeatures | None,
) -> Cells:
    """Return the cells of all constraints; refuse a rate over nobody."""
    strata = {}
    for constraint in constraints:
        found = strata_on_rows(constraint, rows, columns)
        if found is None:
            check_cells(table, constraint)
        else:
            strata[constraint] = found
    people = rows.groups.codes, len(table.groups), rows.outcomes
    return Cells.of(constraints, *people, strata=strata)


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
    K. For two groups, all changes are then on one side, as long as K is too small to make the
    lower rate as high as the other. People of the group with the lower rate are raised where K is
    at most the difference of the two groups' counts; otherwise people of the other group are
    lowered. The paper comes to the same result, although from a derivative of the wrong sign.

    Examples
    --------
    >>> y_pred, group = [1, 0, 0, 0, 1, 1, 1, 0], ["a"] * 4 + ["b"] * 4
    >>> best_fairness(y_pred, sensitive_features=group, max_changes=1)
    BestFairness(fairness=0.6666666666666666, n_changes=1, rate=0.125, flips={('a', 0, 1): 1})
    """
    budget = check_budget(max_changes)
    constraint = simple_constraint(constraints, "The best fairness")
    y_true = y_true if constraint.needs_labels else None
    _, table, problem = read_problem(
        y_true, y_pred, sensitive_features, constraint, direction, pos_label, favorable_label
    )
    positives = solve_best_fairness(problem, budget)
    value, n_changes = problem.fairness(positives), problem.n_changes(positives)
    return BestFairness(
        math.nan if value is None else float(value),
        n_changes,
        n_changes / table.n_rows,
        table.flips_of(positives - problem.positives),
    )
