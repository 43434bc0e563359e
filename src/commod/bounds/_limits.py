"""Find the fewest changes to a target, the best fairness within a budget, and expected changes."""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats
from commod._data.groups import GroupedDecisions, read_decisions
from commod._data.labels import is_label_in
from commod._data.parameters import check_choice, check_number_parameter
from commod._text import shown
from commod.bounds._general import TIME_LIMIT, fewest_changes
from commod.bounds._levels import (
    IntArray,
    RateRowCounts,
    relaxed_gap_costs,
    smallest_step,
    solve_rate_rows,
)
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint, ConstraintLike, missing_labels
from commod.metrics._fairness import people_of
from commod.metrics._language import AllOf
from commod.metrics._named_constraints import read_constraints
from commod.metrics._people import People, read_target

Flips = dict[tuple[Hashable, Any, Any], int]

DIRECTIONS = ("any", "gains_only", "losses_only")


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


# ---------------------------------------------------------------------------------------------
# Counts to change


@dataclass(frozen=True)
class CountProblem:
    """Counts to change, and the changes that are allowed.

    `sizes` and `positives` have shape (n_rate_rows, n_groups), and no cell is empty. There are two
    rate rows for equalized odds, one for every other constraint. `n_raisable` and `n_lowerable`
    have the same shape: how many people of each cell may be raised, and may be lowered. None means
    everybody whose decision is negative, or positive.
    """

    constraint: Constraint
    sizes: IntArray
    positives: IntArray
    may_raise: bool = True
    may_lower: bool = True
    prefer_raising: bool = True
    n_raisable: IntArray | None = None
    n_lowerable: IntArray | None = None

    def rate_rows(self) -> tuple[RateRowCounts, ...]:
        """Return the counts of each rate row, with the range that the allowed changes leave."""
        least = int(self.constraint.is_ratio)  # a ratio is undefined where nobody is positive
        n_up = self.sizes - self.positives if self.n_raisable is None else self.n_raisable
        n_down = self.positives if self.n_lowerable is None else self.n_lowerable
        lowest = self.positives - n_down * self.may_lower
        highest = self.positives + n_up * self.may_raise
        parts = zip(self.sizes, self.positives, np.maximum(lowest, least), highest, strict=True)
        return tuple(RateRowCounts(*part) for part in parts)

    def fairness(self, positives: IntArray) -> Fraction | None:
        """Return the metric's exact value; None where nobody is positive in the P-rule."""
        return self.constraint.value_from_counts(self.sizes, positives)

    def n_changes(self, positives: IntArray) -> int:
        """Return how many people must change to arrive at these counts."""
        return int(np.abs(positives - self.positives).sum())


def solve_fewest_changes(
    problem: CountProblem, target: Fraction, limit: float = math.inf, *, any_tie: bool = False
) -> IntArray | None:
    """Return the positives (n_rate_rows, n_groups) after the fewest changes to the target.

    None where the target cannot be reached, or not with at most `limit` changes.
    """
    after = solve_rate_rows(
        problem.rate_rows(),
        target,
        is_ratio=problem.constraint.is_ratio,
        limit=limit,
        prefer_high=problem.prefer_raising,
        any_tie=any_tie,
    )
    return None if after is None else np.stack(after)


def solve_best_fairness(problem: CountProblem, budget: int) -> IntArray:
    """Return the positives (n_rate_rows, n_groups) of the best fairness within `budget` changes.

    Ties go to the fewest changes. The present positives come back where nobody is positive and
    the budget does not reach every group. The search takes these steps:

    1. Try the ideal value.
    2. Otherwise, ask for anything fairer than the best counts so far, until nothing is.
    3. After each success, also try halfway to the ideal. A failure lowers the ideal to that value.
    """
    best, ideal = problem.positives, Fraction(problem.constraint.ideal)
    perfect = solve_fewest_changes(problem, ideal, budget)
    if perfect is not None:
        return perfect
    while problem.fairness(best) != ideal:
        better = solve_fewest_changes(problem, _just_fairer(problem, best), budget)
        if better is None:
            break
        best, value = better, problem.fairness(better)
        assert value is not None
        halfway = Fraction((float(value) + float(ideal)) / 2)  # rounding does no harm here
        if min(value, ideal) < halfway < max(value, ideal):
            better = solve_fewest_changes(problem, halfway, budget)
            best, ideal = (best, halfway) if better is None else (better, ideal)
    return best


def _just_fairer(problem: CountProblem, positives: IntArray) -> Fraction:
    """Return a target that exactly the counts reach which are fairer than these."""
    value = problem.fairness(positives) or Fraction(0)
    step = smallest_step(value, *problem.sizes)
    return value + step if problem.constraint.higher_is_fairer else value - step


# ---------------------------------------------------------------------------------------------
# Counts of rows


@dataclass(frozen=True)
class LimitRows:
    """Checked rows of two groups or more, and the changes that are allowed.

    `labels` are the negative and the positive label as they are written in the data.
    """

    given: GroupedDecisions
    labels: tuple[Any, Any]
    may_raise: bool
    may_lower: bool
    prefer_raising: bool

    @classmethod
    def read(
        cls,
        constraints: Sequence[Constraint],
        y_true: Any,
        y_pred: Any,
        sensitive_features: Any,
        direction: str,
        pos_label: Any,
        favorable_label: Any,
        control_features: Any = None,
    ) -> LimitRows:
        """Return the checked rows; true labels only count where a constraint needs them."""
        needing = next((one for one in constraints if one.needs_labels), None)
        if needing is None:
            y_true = None
        elif y_true is None:
            raise missing_labels(needing)
        groups_of = sensitive_features, pos_label, None, control_features
        given = read_decisions(y_true, y_pred, *groups_of)
        groups = given.groups.labels
        if len(groups) < 2:
            raise InputError(
                f"sensitive_features has one group only ({groups[0]!r}), and fairness compares "
                "two or more. Pass the rows of all groups.",
                parameter="sensitive_features",
            )
        labels = _two_labels(given, pos_label, favorable_label)
        is_favorable = favorable_label in (None, labels[1])
        check_choice(direction, "direction", DIRECTIONS)
        raising = "gains_only" if is_favorable else "losses_only"
        return cls(given, labels, direction in ("any", raising), direction != raising, is_favorable)

    @property
    def n_rows(self) -> int:
        """Return the number of people."""
        return len(self.given.decisions)

    def people(self, *constraints: Constraint) -> People:
        """Return the rows as people whom these constraints compare."""
        return people_of(self.given, *constraints)

    def problem(self, constraint: Constraint) -> CountProblem:
        """Return the counts to change; refuse a rate over nobody."""
        counts = self.people(constraint).counts(self.given.decisions)
        for rate, size in zip(constraint.rate_rows, counts[0], strict=True):
            empty = np.flatnonzero(size == 0)
            if len(empty):
                group, label = self.given.groups.labels[empty[0]], self.labels[bool(rate.label)]
                raise InputError(
                    f"Group {group!r} has no row with true label {label!r}, so its {rate.name} is "
                    "undefined whatever is changed. Leave the group out, or merge it with another."
                )
        return CountProblem(
            constraint, *counts, self.may_raise, self.may_lower, self.prefer_raising
        )

    def flips(self, change: IntArray) -> Flips:
        """Return changes of the positives of cells, shape (..., n_groups), by group and label."""
        negative, positive = self.labels
        by_group = change.reshape(-1, len(self.given.groups.labels))
        raised, lowered = np.maximum(by_group, 0).sum(axis=0), np.maximum(-by_group, 0).sum(axis=0)
        counts = zip(self.given.groups.labels, raised.tolist(), lowered.tolist(), strict=True)
        named: Flips = {}
        for group, up, down in counts:
            if up:
                named[group, negative, positive] = up
            if down:
                named[group, positive, negative] = down
        return named


def _two_labels(rows: GroupedDecisions, pos_label: Any, favorable_label: Any) -> tuple[Any, Any]:
    """Return the negative and the positive label as they are written in the data."""
    written: dict[bool, Any] = {}
    for values, is_positive in ((rows.y_pred, rows.decisions), (rows.y_true, rows.outcomes)):
        if values is None or is_positive is None:
            continue
        for kind, at in ((True, is_positive.argmax()), (False, is_positive.argmin())):
            if is_positive[at] == kind:
                written.setdefault(kind, values[at : at + 1].tolist()[0])
    positive = written.get(True, pos_label)
    # Where every label is positive, nothing is unfair or wrong: the other label is never named.
    negative = written.get(False, favorable_label)
    if favorable_label is not None and not is_label_in(favorable_label, (negative, positive)):
        raise InputError(
            f"favorable_label={shown(favorable_label)} is neither of the two labels, {negative!r} "
            f"and {positive!r}. Pass the one that is good for the person.",
            parameter="favorable_label",
        )
    return negative, positive


def check_budget(max_changes: Any) -> int:
    """Return `max_changes` as an int, 0 or more."""
    is_whole = isinstance(max_changes, int | np.integer) and not isinstance(max_changes, bool)
    if not is_whole or max_changes < 0:
        raise InputError(
            f"max_changes={shown(max_changes)} must be a whole number of changes, 0 or more.",
            parameter="max_changes",
        )
    return min(int(max_changes), sys.maxsize)  # no table has more rows


# ---------------------------------------------------------------------------------------------
# Constraints that have exact limits


def read_requirements(constraints: Any, target: Any) -> tuple[AllOf, tuple[Any, ...]]:
    """Return the constraints and the bound of each, from the objects or from `target`."""
    requirements = read_constraints(constraints, target)
    bounds = tuple(target if bound is None else bound for bound in requirements.bounds)
    for part, bound in zip(requirements.parts, bounds, strict=True):
        if bound is None:
            raise InputError(
                f"target=None must be a number, because {part.constraint.name} has no bound. State "
                f"it here, or in the text: '{part.constraint.name} {part.constraint.sign} 0.5'.",
                parameter="target",
            )
    return requirements, bounds


def simple_requirement(constraints: Any, target: Any, purpose: str) -> tuple[Constraint, Any]:
    """Return the one constraint and its bound; it must compare rates of all people."""
    requirements, bounds = read_requirements(constraints, target)
    name = getattr(constraints, "name", constraints)
    return check_simple(requirements.constraints, purpose, name), bounds[0]


def check_simple(constraints: Sequence[Constraint], purpose: str, name: Any = None) -> Constraint:
    """Return the only constraint; refuse several, and others than of rates of all people."""
    (first, *others) = constraints
    if others or not first.is_simple:
        found = "several constraints" if others else shown(first.name if name is None else name)
        raise InputError(
            f"{purpose} is known for one constraint that compares selection rates, true or false "
            f"positive rates of all people by ratio or difference; got {found}. "
            "bounds.minimal_changes takes every constraint and combination.",
            parameter="constraints",
        )
    return first
