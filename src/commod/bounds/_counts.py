"""Find limits from counts alone: the positives that each cell should have, without any rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._text import n_of, shown
from commod.bounds._levels import (
    IntArray,
    RateRowCounts,
    smallest_step,
    solve_rate_rows,
)
from commod.exceptions import InputError
from commod.metrics._constraint import CONSTRAINTS, Constraint, ConstraintLike, get_constraint
from commod.metrics._requirements import Requirements, read_constraints


def read_target(constraints: ConstraintLike, target: Any) -> Fraction:
    """Return the exact fraction to compare the exact value of the metric with.

    A metric is computed exactly and then rounded to a float. So the values that pass ``>= 0.8``
    begin halfway between 0.8 and the float below it; 4/5 is among them. No table of counts has
    a value exactly halfway between two floats. A fraction or an integer is used as it is.
    """
    constraint = get_constraint(constraints)
    largest, is_floor = constraint.largest, constraint.higher_is_fairer
    is_number = isinstance(target, Real) and not isinstance(target, bool | np.bool_)
    if not is_number or not 0 <= target <= largest or (is_floor and target == 0):
        opening = "(" if is_floor else "["
        raise InputError(
            f"target={target!r} must be a number in {opening}0, {largest:g}]: it is a "
            f"{'floor' if is_floor else 'ceiling'} on the {constraint.metric}.",
            parameter="target",
        )
    if isinstance(target, Rational):
        return Fraction(int(target.numerator), int(target.denominator))
    value = float(str(target))  # a 32-bit 0.8 means 0.8, not 0.800000011920929
    neighbour = math.nextafter(value, -math.inf if is_floor else math.inf)
    (a, b), (c, d) = value.as_integer_ratio(), neighbour.as_integer_ratio()
    return Fraction(a * d + b * c, 2 * b * d)


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


def fewest_changes(
    constraints: ConstraintLike,
    sizes: Any,
    positives: Any,
    target: Any,
    *,
    may_raise: bool = True,
    may_lower: bool = True,
    prefer_raising: bool = True,
    n_raisable: Any = None,
    n_lowerable: Any = None,
) -> NDArray[np.int64] | None:
    """Return how many positives each cell has after the fewest changes that reach the target.

    It answers the same question as `minimal_changes`, from counts instead of rows. A call takes
    about a millisecond (several with equalized odds), whatever the number of people.

    Parameters
    ----------
    constraints : str
        "demographic_parity", "equalized_odds", "true_positive_rate_parity" or
        "false_positive_rate_parity".
    sizes, positives : array-like of shape (n_rate_rows, n_groups)
        People per cell, at least one, and how many of them have a positive decision. One row per
        rate: all people for demographic parity; people with a positive true label for true
        positive rates; people with a negative true label for false positive rates; both rows, in
        this order, for equalized odds.
    target : float or Fraction
        Floor on the P-rule, in (0, 1], or ceiling on the gap, in [0, 1] ([0, 2] for equalized
        odds).
    may_raise, may_lower : bool, default=True
        Whether decisions may become positive, and whether they may become negative.
    prefer_raising : bool, default=True
        Which answer to return of those with equally few changes that are equally fair: the one
        with more positives, or the one with fewer.
    n_raisable, n_lowerable : array-like of shape (n_rate_rows, n_groups), default=None
        How many people of each cell may become positive, and negative. None means everybody
        whose decision is negative, or positive.

    Returns
    -------
    ndarray of shape (n_rate_rows, n_groups) or None
        None where no allowed change reaches the target.

    Examples
    --------
    >>> fewest_changes("demographic_parity", [[100, 50]], [[20, 25]], 0.8)
    array([[20, 12]])
    >>> fewest_changes("equalized_odds", [[10, 100], [20, 100]], [[3, 50], [4, 60]], 0.2)
    array([[ 5, 50],
           [ 8, 60]])

    Only 10 people of the second group may lose a positive decision:

    >>> fewest_changes("demographic_parity", [[100, 50]], [[20, 25]], 0.8, n_lowerable=[[20, 10]])
    array([[24, 15]])
    """
    problem = _read_problem(
        constraints,
        sizes,
        positives,
        may_raise=may_raise,
        may_lower=may_lower,
        prefer_raising=prefer_raising,
        n_raisable=n_raisable,
        n_lowerable=n_lowerable,
    )
    return solve_fewest_changes(problem, read_target(problem.constraint, target))


def _read_problem(
    constraints: ConstraintLike,
    sizes: Any,
    positives: Any,
    *,
    n_raisable: Any = None,
    n_lowerable: Any = None,
    **directions: bool,
) -> CountProblem:
    """Return checked counts to change, as the parameters of `fewest_changes` state them."""
    constraint = simple_constraint(constraints, "The fewest changes of counts")
    n_people, before = read_counts(constraint, sizes, positives)
    return CountProblem(
        constraint,
        n_people,
        before,
        n_raisable=_read_movable(n_raisable, "n_raisable", n_people - before),
        n_lowerable=_read_movable(n_lowerable, "n_lowerable", before),
        **directions,
    )


def fewest_number(
    constraints: ConstraintLike, sizes: Any, positives: Any, target: float | Fraction, **moves: Any
) -> int | None:
    """Return how many changes `fewest_changes` makes; None where nothing reaches the target.

    `moves` are those of its parameters that say who may change. No ties are broken, so a call is
    quicker.

    Examples
    --------
    >>> fewest_number("demographic_parity", [[100, 50]], [[20, 25]], 0.8)
    13
    """
    if get_constraint(constraints).is_ratio and target <= 0:
        return 0  # every update reaches a P-rule of 0
    problem = _read_problem(constraints, sizes, positives, **moves)
    bound = read_target(problem.constraint, target)
    best = solve_fewest_changes(problem, bound, any_tie=True)
    return None if best is None else problem.n_changes(best)


def exact_fairness(constraints: ConstraintLike, sizes: Any, positives: Any) -> Fraction | None:
    """Return the exact value of a constraint's metric on counts.

    Parameters
    ----------
    constraints : str
        As in `fewest_changes`.
    sizes, positives : array-like of shape (n_rate_rows, n_groups)
        As in `fewest_changes`.

    Returns
    -------
    Fraction or None
        The P-rule or the gap; None for the P-rule where nobody is positive.

    Examples
    --------
    >>> exact_fairness("demographic_parity", [[100, 50]], [[20, 12]])
    Fraction(5, 6)
    """
    constraint = simple_constraint(constraints, "The value of counts")
    return constraint.value_from_counts(*read_counts(constraint, sizes, positives))


def read_counts(constraint: Constraint, sizes: Any, positives: Any) -> tuple[IntArray, IntArray]:
    """Return checked sizes and positives, both (n_rate_rows, n_groups), with no empty cell."""
    n_rows = len(constraint.rate_rows)
    n_people = _read_table(sizes, "sizes", n_rows)
    before = _read_table(positives, "positives", n_rows)
    if n_people.shape != before.shape or not (before <= n_people).all():
        raise InputError(
            f"positives must have a count between 0 and the size for each of the "
            f"{n_people.shape} sizes; got {before.tolist()} of {n_people.tolist()}.",
            parameter="positives",
        )
    if not n_people.all():
        raise InputError(
            f"sizes has an empty cell: {n_people.tolist()}. Its rate is undefined whatever is "
            "changed; leave the group out, or merge it with another.",
            parameter="sizes",
        )
    return n_people, before


def _read_movable(values: Any, name: str, most: IntArray) -> IntArray | None:
    """Return checked numbers of people who may change, at most `most` of each cell."""
    if values is None:
        return None
    movable = _read_table(values, name, len(most))
    if movable.shape != most.shape or (movable > most).any():
        raise InputError(
            f"{name} must have a count between 0 and {most.tolist()} for each cell; got "
            f"{movable.tolist()}.",
            parameter=name,
        )
    return movable


def _read_table(values: Any, name: str, n_rows: int) -> IntArray:
    counts = np.asarray(values)
    is_table = counts.ndim == 2 and counts.shape[0] == n_rows and counts.shape[1] >= 2
    if not is_table or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise InputError(
            f"{name} must hold whole numbers, 0 or more, in {n_of(n_rows, 'row')} for two or more "
            f"groups; got {counts.dtype} of shape {counts.shape}.",
            parameter=name,
        )
    return counts.astype(np.int64)


# ---------------------------------------------------------------------------------------------
# Constraints that have exact limits


def read_requirements(constraints: Any, target: Any) -> tuple[Requirements, tuple[Any, ...]]:
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


def simple_constraint(constraints: Any, purpose: str) -> Constraint:
    """Return the one constraint; it must compare rates of all people by ratio or difference.

    `purpose` says what is computed.
    """
    if isinstance(constraints, str) and constraints in CONSTRAINTS:
        return CONSTRAINTS[constraints]
    if isinstance(constraints, Constraint) and constraints.is_simple:
        return constraints
    if isinstance(constraints, str | Constraint):
        constraints = get_constraint(constraints)
    name = getattr(constraints, "name", constraints)
    return check_simple(read_constraints(constraints).constraints, purpose, name)


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
