"""Count checked rows, and find the positives that each cell of counts should have."""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from commod._data.groups import GroupedDecisions, read_decisions
from commod._data.labels import is_label_in
from commod._data.parameters import check_choice
from commod._text import shown
from commod.bounds._levels import (
    IntArray,
    RateRowCounts,
    smallest_step,
    solve_rate_rows,
)
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint, missing_labels
from commod.metrics._fairness import people_of
from commod.metrics._language import AllOf
from commod.metrics._named_constraints import read_constraints
from commod.metrics._people import People

Flips = dict[tuple[Hashable, Any, Any], int]

DIRECTIONS = ("any", "gains_only", "losses_only")


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
