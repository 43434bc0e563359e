"""The limits on counts alone: how many positives each group should have, without any rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod.bounds._fewest import fewest_on_line, next_ratio
from commod.bounds._levels import IntArray, Line, gap_floor, largest_denominator, ratio_floor
from commod.bounds._split import fewest_on_two_lines
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint, ConstraintLike, get_constraint

__all__ = [
    "Problem",
    "exact_fairness",
    "fairest",
    "fewest",
    "fewest_changes",
    "fewest_number",
    "read_counts",
    "read_target",
]


def read_target(constraint: Constraint, target: Any) -> Fraction:
    """Return the exact fraction with which the metric's exact value is to be compared.

    A metric is computed exactly and rounded once to a float, so the values that pass ``>= 0.8``
    are those from halfway between 0.8 and the float below it: 4/5 among them. A value halfway
    between two floats has a denominator that no table of counts reaches. A fraction or an integer
    is taken as it is.
    """
    largest, is_floor = constraint.largest, constraint.higher_is_fairer
    is_number = isinstance(target, Real) and not isinstance(target, bool | np.bool_)
    if not is_number or not 0 <= target <= largest or (is_floor and target == 0):
        opening = "(" if is_floor else "["
        raise InputError(
            f"target is a {'floor' if is_floor else 'ceiling'} on the {constraint.metric} "
            f"and must be a number in {opening}0, {largest:g}]; got {target!r}."
        )
    if isinstance(target, Rational):
        return Fraction(int(target.numerator), int(target.denominator))
    value = float(str(target))  # a 32-bit 0.8 means 0.8, not 0.800000011920929
    neighbour = math.nextafter(value, -math.inf if is_floor else math.inf)
    return (Fraction(value) + Fraction(neighbour)) / 2


@dataclass(frozen=True)
class Problem:
    """Counts to change: one line of rates for one gap or the P-rule, two for equalized odds.

    `sizes` and `positives` have shape (n_lines, n_groups) and no empty cell.
    """

    constraint: Constraint
    sizes: IntArray
    positives: IntArray
    may_raise: bool = True
    may_lower: bool = True
    prefer_raising: bool = True

    @property
    def is_ratio(self) -> bool:
        """Tell whether the fairness is the P-rule, of which more is better."""
        return self.constraint.is_ratio

    def lines(self) -> tuple[Line, ...]:
        """Return each line with the counts that the allowed directions leave open."""
        least = 1 if self.is_ratio else 0  # nobody selected is not fair but undefined
        lowest = np.full_like(self.sizes, least) if self.may_lower else self.positives
        highest = self.sizes if self.may_raise else self.positives
        parts = zip(self.sizes, self.positives, np.maximum(lowest, least), highest, strict=True)
        return tuple(Line(*part) for part in parts)

    def fairness(self, positives: IntArray) -> Fraction | None:
        """Return the metric's exact value; None where nobody is positive in the P-rule."""
        return self.constraint.value_from_counts(self.sizes, positives)

    def n_changes(self, positives: IntArray) -> int:
        """Return how many people must change to arrive at these counts."""
        return int(np.abs(positives - self.positives).sum())


def fewest(problem: Problem, target: Fraction, limit: float = math.inf) -> IntArray | None:
    """Return the positives (n_lines, n_groups) after the fewest changes that reach the target.

    None where nothing does, or nothing with at most `limit` changes.
    """
    lines = problem.lines()
    shared: dict[str, Any] = {"limit": limit, "prefer_high": problem.prefer_raising}
    if len(lines) == 2:
        found = fewest_on_two_lines((lines[0], lines[1]), target, **shared)
        return None if found is None else np.stack(found)
    floor = (ratio_floor if problem.is_ratio else gap_floor)(lines[0].sizes, target)
    alone = fewest_on_line(lines[0], floor, **shared)
    return None if alone is None else alone[None, :]


def fairest(problem: Problem, budget: int) -> IntArray:
    """Return the positives (n_lines, n_groups) of the best fairness with at most `budget` changes.

    Of equally fair counts, those after the fewest changes. What is given comes back where nobody
    is positive and the budget does not reach every group.
    """
    best, ideal = problem.positives, Fraction(1 if problem.is_ratio else 0)
    perfect = fewest(problem, ideal, budget)
    if perfect is not None:  # else the way up to it is sought in ever smaller steps
        return perfect
    while problem.fairness(best) != ideal:
        better = fewest(problem, _just_fairer(problem, best), budget)
        if better is None:
            break
        best, value = better, problem.fairness(better)
        assert value is not None
        halfway = Fraction((float(value) + float(ideal)) / 2)  # one step of many: any will do
        if min(value, ideal) < halfway < max(value, ideal):
            better = fewest(problem, halfway, budget)
            best, ideal = (best, halfway) if better is None else (better, ideal)
    return best


def _just_fairer(problem: Problem, positives: IntArray) -> Fraction:
    """Return a target that everything fairer than these counts reaches, and nothing else."""
    value, sizes = problem.fairness(positives), problem.sizes
    if problem.is_ratio:
        return next_ratio(value, sizes[0]) if value else Fraction(1, largest_denominator(sizes[0]))
    assert value is not None
    # Two gaps have the product of all denominators between them.
    step = math.prod(largest_denominator(line) for line in sizes)
    return value - Fraction(1, value.denominator * step)


def fewest_changes(
    constraints: ConstraintLike,
    sizes: Any,
    positives: Any,
    target: Any,
    *,
    may_raise: bool = True,
    may_lower: bool = True,
    prefer_raising: bool = True,
) -> NDArray[np.int64] | None:
    """Return how many positives each cell has after the fewest changes that reach the target.

    The same as `minimal_changes`, on counts: no rows are needed, and a call takes about a
    millisecond (with equalized odds several) whatever the number of people.

    Parameters
    ----------
    constraints : str
        "demographic_parity", "equalized_odds", "true_positive_rate_parity" or
        "false_positive_rate_parity".
    sizes, positives : array-like of shape (n_lines, n_groups)
        People per cell, at least one, and how many of them are decided positively. One line per
        rate: all people for demographic parity; those whose true label is positive for true
        positive rates; those whose true label is not for false positive rates; both lines, in
        this order, for equalized odds.
    target : float or Fraction
        Floor on the P-rule, in (0, 1], or ceiling on the gap, in [0, 1] ([0, 2] for equalized
        odds).
    may_raise, may_lower : bool, default=True
        Whether people may become positive, and may cease to be.
    prefer_raising : bool, default=True
        Which way to lean between answers that change equally many and are equally fair.

    Returns
    -------
    ndarray of shape (n_lines, n_groups) or None
        None where no allowed change reaches the target.

    Examples
    --------
    >>> fewest_changes("demographic_parity", [[100, 50]], [[20, 25]], 0.8)
    array([[20, 12]])
    >>> fewest_changes("equalized_odds", [[10, 100], [20, 100]], [[3, 50], [4, 60]], 0.2)
    array([[ 5, 50],
           [ 8, 60]])
    """
    constraint = get_constraint(constraints)
    n_people, before = read_counts(constraint, sizes, positives)
    bound = read_target(constraint, target)
    directions = may_raise, may_lower, prefer_raising
    return fewest(Problem(constraint, n_people, before, *directions), bound)


def fewest_number(
    constraints: ConstraintLike,
    sizes: Any,
    positives: Any,
    target: float | Fraction,
    *,
    may_raise: bool = True,
    may_lower: bool = True,
) -> int | None:
    """Return how many changes `fewest_changes` makes; None where nothing reaches the target.

    Examples
    --------
    >>> fewest_number("demographic_parity", [[100, 50]], [[20, 25]], 0.8)
    13
    """
    if get_constraint(constraints).is_ratio and target <= 0:
        return 0  # a P-rule of 0 is what every update reaches
    best = fewest_changes(
        constraints, sizes, positives, target, may_raise=may_raise, may_lower=may_lower
    )
    return None if best is None else int(np.abs(best - np.asarray(positives)).sum())


def exact_fairness(constraints: ConstraintLike, sizes: Any, positives: Any) -> Fraction | None:
    """Return the exact value of a constraint's metric on counts.

    Parameters
    ----------
    constraints : str
        As in `fewest_changes`.
    sizes, positives : array-like of shape (n_lines, n_groups)
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
    constraint = get_constraint(constraints)
    return constraint.value_from_counts(*read_counts(constraint, sizes, positives))


def read_counts(constraint: Constraint, sizes: Any, positives: Any) -> tuple[IntArray, IntArray]:
    """Return checked people and positives per cell, both (n_lines, n_groups), no cell empty."""
    n_lines = len(constraint.rate_rows)
    counts = [_read_counts(c, n, n_lines) for c, n in ((sizes, "sizes"), (positives, "positives"))]
    if counts[0].shape != counts[1].shape or not (counts[1] <= counts[0]).all():
        raise InputError(
            f"positives must have a count between 0 and the size for each of the "
            f"{counts[0].shape} sizes; got {counts[1].tolist()} of {counts[0].tolist()}."
        )
    if not counts[0].all():
        raise InputError(
            f"sizes has an empty cell: {counts[0].tolist()}. Its rate is undefined whatever is "
            "changed; leave the group out, or merge it with another."
        )
    return counts[0], counts[1]


def _read_counts(values: Any, name: str, n_lines: int) -> IntArray:
    counts = np.asarray(values)
    is_table = counts.ndim == 2 and counts.shape[0] == n_lines and counts.shape[1] >= 2
    if not is_table or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise InputError(
            f"{name} must hold whole numbers from 0 on, {n_lines} line(s) for two or more groups; "
            f"got {counts.dtype} of shape {counts.shape}."
        )
    return counts.astype(np.int64)
