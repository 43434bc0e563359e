"""Find the fewest changes to a target, the best fairness within a budget, and expected changes."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats
from commod._data.parameters import check_number_parameter
from commod.bounds._counts import (
    CountProblem,
    Flips,
    LimitRows,
    check_budget,
    check_simple,
    read_requirements,
    simple_requirement,
    solve_best_fairness,
)
from commod.bounds._general import TIME_LIMIT, fewest_changes
from commod.bounds._levels import IntArray, RateRowCounts, relaxed_gap_costs
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint, ConstraintLike
from commod.metrics._named_constraints import read_constraints
from commod.metrics._people import read_target


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
    given = y_true, y_pred, sensitive_features, direction, pos_label, favorable_label
    rows = LimitRows.read(requirements.constraints, *given, control_features)
    for constraint in requirements.constraints:
        if constraint.within is None:
            rows.problem(constraint)  # refuses a rate over nobody
    check_number_parameter(time_limit, "time_limit", (int, float), min_val=0)
    limit = fewest_changes(
        rows.people(*requirements.constraints),
        rows.given.decisions,
        targets if requirements.constraints[0].is_simple and not bounds[1:] else bounds,
        may_raise=rows.may_raise,
        may_lower=rows.may_lower,
        prefer_raising=rows.prefer_raising,
        time_limit=time_limit,
        any_tie=False,
    )
    lower_bound = None if limit is None else int(limit.lower_bound)
    if limit is None or limit.moves is None or limit.n_changes is None:
        return MinimalChanges(None, math.nan, {}, lower_bound)
    rate = limit.n_changes / rows.n_rows
    return MinimalChanges(limit.n_changes, rate, rows.flips(limit.moves), lower_bound)


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
    stated, name = read_constraints(constraints), getattr(constraints, "name", constraints)
    constraint = check_simple(stated.constraints, "The best fairness", name)
    given = y_true, y_pred, sensitive_features
    rows = LimitRows.read([constraint], *given, direction, pos_label, favorable_label)
    problem = rows.problem(constraint)
    positives = solve_best_fairness(problem, budget)
    value, n_changes = problem.fairness(positives), problem.n_changes(positives)
    return BestFairness(
        math.nan if value is None else float(value),
        n_changes,
        n_changes / rows.n_rows,
        rows.flips(positives - problem.positives),
    )


# ---------------------------------------------------------------------------------------------
# Rules that see only the group and the base decision: fewest expected changes


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
    shares: dict[tuple[Hashable, Any, Any], float]


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
    given = y_true, y_pred, sensitive_features
    rows = LimitRows.read([constraint], *given, direction, pos_label, favorable_label)
    problem = rows.problem(constraint)
    counts = np.stack([problem.sizes - problem.positives, problem.positives], axis=1)
    codes, n_groups = rows.given.groups.codes, len(rows.given.groups.labels)
    cells = n_groups * rows.given.decisions + codes
    people = np.bincount(cells, minlength=2 * n_groups).reshape(2, n_groups)
    most = np.array([[rows.may_raise], [rows.may_lower]]) & (people > 0)
    shares = _cheapest_shares(counts, people, ceiling, most)
    changes = rows.labels, rows.labels[::-1]  # labels before and after
    named = {
        (group, before, after): share
        for (before, after), of_groups in zip(changes, shares.tolist(), strict=True)
        for group, share in zip(rows.given.groups.labels, of_groups, strict=True)
        if share
    }
    n_changes = float((shares * people).sum())
    return ExpectedChanges(n_changes, n_changes / rows.n_rows, named)


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
    constraint: Constraint, sizes: IntArray, positives: IntArray, target: Any
) -> float:
    """Return the fewest expected changes of decisions that may be randomised.

    A cell may have any real number of expected positives. So the result is never above the limit in
    whole numbers.

    `sizes` and `positives` have shape (n_rate_rows, n_groups), and no cell is empty. For the P-rule
    the result is an infimum: so few changes may leave nobody positive, where the P-rule is
    undefined. Rules with a defined P-rule come arbitrarily close.

    Examples
    --------
    >>> from commod.metrics._constraint import get_constraint
    >>> counts = np.array([[100, 50]]), np.array([[20, 25]])
    >>> fewest_expected_changes(get_constraint("demographic_parity"), *counts, 0.8)
    12.5
    """
    rows = CountProblem(constraint, sizes, positives).rate_rows()
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
