"""The one place where the page calls the edits of an update: points, offsets and built updates.

Building an edited update measures everything that a fit measures. The page first needs the points,
the offset and who changes. `points_with_offset` returns these alone; they are those of the built
update.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.codes import plain
from commod._data.encoding import Encoding, TermTable
from commod._explore.quiet import without_warnings
from commod._record import ExpectedOnNewPeople
from commod._record.edits import AnyEdit, edit_words
from commod._reporting.explain.expected import expected_of
from commod.edit import apply_edits, find_terms, read_edits
from commod.scorecard import EvidenceRule
from commod.updates._budget import parity_value
from commod.updates._compared import all_kept
from commod.updates._cross_fit import ExpectedFigures, outcome_at
from commod.updates._edit import (
    EditPlan,
    EditRows,
    EditTask,
    asks_for_whole,
    check_locks,
    check_whole,
    edited_update,
)
from commod.updates._edit_expectation import fitted_on_same_rows
from commod.updates._exact_points import GivenPoints, outcome_of_points
from commod.updates._expectation import Expectation
from commod.updates._problem import FitProblem
from commod.updates._search import SearchOutcome, changed_rows

__all__ = [
    "AnyEdit",
    "EditPlan",
    "Encoding",
    "FittedRows",
    "OffsetPoints",
    "PeopleOfFit",
    "asks_for_whole",
    "build",
    "edit_words",
    "edited_points",
    "find_terms",
    "fitted_points",
    "points_at_targets",
    "points_with_offset",
    "read_edits",
]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class PeopleOfFit(NamedTuple):
    """The rows of an exploration, as the user passed them."""

    X: Any
    y: Any
    sensitive_features: Any
    change_cost: Any = None


class OffsetPoints(NamedTuple):
    """Points (d,) of a scorecard with their offset, and what they do to the rows.

    `after` (n,) are the decisions for the positive label. `is_reached` says whether the target is
    expected on new people, or holds on these rows where the update asks for that. `rule` says how
    the sum of the points decides; None where the sum is r.
    """

    points: Floats
    intercept: float
    after: Mask
    expected: ExpectedOnNewPeople | None
    is_reached: bool
    rule: EvidenceRule | None


@dataclass(frozen=True, eq=False)
class FittedRows:
    """A fitted update and its rows, read once for all edits of it."""

    update: Any
    people: PeopleOfFit

    @cached_property
    def rows(self) -> EditRows:
        """Return the rows as the update reads them."""
        with without_warnings():  # the fit has given them
            X, y, groups, cost = self.people
            return self.update.edit_rows(X, y, groups, None, None, cost)

    @cached_property
    def problem(self) -> FitProblem:
        """Return the problem in the direction of the update; its counts are kept."""
        return self.rows.problem.with_direction(*self.update._moves(self.update.direction_))

    @cached_property
    def n_people(self) -> NDArray[np.intp]:
        """Return how many people each term describes, (d,)."""
        return self.terms.n_people(self.problem.rows.weight)

    @property
    def terms(self) -> TermTable:
        """Return the terms of each row."""
        return self.problem.terms

    @property
    def encoding(self) -> Encoding:
        """Return the terms of the scorecard, those without points among them."""
        return self.problem.encoding

    @property
    def before(self) -> Mask:
        """Return the base decisions for the positive label, (n,)."""
        return self.problem.rows.base.decisions

    @cached_property
    def searched(self) -> Any:
        """Return the update whose points were searched for on these rows, or None."""
        return fitted_on_same_rows(self.update, self.rows.reader)


def edited_points(fitted: FittedRows, points: Floats, edits: tuple[AnyEdit, ...]) -> Floats:
    """Return points (d,) after edits; a locked column has 0 points and stays in place.

    Refused are locks that the built update would refuse.
    """
    after = apply_edits(fitted.encoding, points, edits, fitted.n_people)
    check_locks(fitted.rows.reader, edits)
    check_whole(fitted.update, after.points)
    return after.points


def fitted_points(fitted: FittedRows) -> OffsetPoints:
    """Return the points and the offset of the fitted update itself."""
    card, problem = fitted.update.scorecard_, fitted.problem
    ratio = fitted.update._effective(problem.rows.base, card.evaluate(problem.terms))
    changed = (ratio < 0) & problem.may_change
    expected = expected_of(fitted.update)
    is_reached = bool(fitted.update.reached_)
    after = fitted.before ^ changed
    return OffsetPoints(card.points, card.intercept, after, expected, is_reached, card.rule)


def points_with_offset(
    fitted: FittedRows, points: Floats, keep_at: float | None = None
) -> OffsetPoints:
    """Return points (d,) with the exact offset for the target, or with the intercept `keep_at`."""
    problem, update = fitted.problem, fitted.update
    plan = EditPlan((), offset="target" if keep_at is None else "keep")
    is_pinned = np.zeros(len(points), dtype=bool)
    task = EditTask(update, problem, fitted.searched, points, is_pinned, plan)
    outcome, expectation = task.new_offset() if keep_at is None else task.kept_offset(keep_at)
    changed = changed_rows(problem, outcome)
    intercept = -outcome.offset if keep_at is None else keep_at
    if not outcome.weights.any() and keep_at is None:  # no points: nobody changes
        changed, intercept = np.zeros_like(changed), 1.0
    after = fitted.before ^ changed
    expected = None if expectation is None else _expected(expectation.figures)
    reached = _is_reached(fitted, after, expectation)
    rule = fitted.update.scorecard_.rule
    return OffsetPoints(-outcome.points, intercept, after, expected, reached, rule)


def _is_reached(fitted: FittedRows, after: Mask, expectation: Expectation | None) -> bool:
    """Return whether the target is reached, as the built update says it."""
    problem, update = fitted.problem, fitted.update
    if update._is_budget:
        return True
    if expectation is None:
        fairness = problem.rows.fairness(problem.constraint, after)
        is_met = problem.constraint.is_met(fairness, update._target)
        return bool(is_met) and problem.keeps_standing(after)
    standing = all_kept(problem.standing, expectation.figures.standing)
    return bool(expectation.is_reached) and standing


def _expected(figures: ExpectedFigures) -> ExpectedOnNewPeople | None:
    """Return the expected figures as a record; None where the fairness is not known."""
    if plain(figures.fairness) is None:
        return None
    accuracy, spread = plain(figures.accuracy), plain(figures.spread.fairness)
    return ExpectedOnNewPeople(figures.fairness, figures.change_rate, accuracy, spread)


def points_at_targets(fitted: FittedRows, points: Floats, n_targets: int) -> Iterator[Mask]:
    """Yield the decisions of points (d,) with offsets for several targets on these rows."""
    problem = fitted.problem
    parity = parity_value(problem)
    base = problem.base_fairness
    outcome = outcome_of_points(problem, GivenPoints(points, 0.0), "edited by hand")
    for share in np.linspace(0.15, 1.0, n_targets).tolist():
        found: SearchOutcome = outcome_at(problem, outcome, base + share * (parity - base))
        yield fitted.before ^ changed_rows(problem, found)


def build(update: Any, fitted: FittedRows, plan: EditPlan) -> Any:
    """Return the edited update with all figures; `fitted` has the rows of `update` or before it.

    After a locked column the rows are read again: the update has other terms then.
    """
    rows = fitted.rows
    if update.scorecard_.encoding != fitted.encoding:
        rows = FittedRows(update, fitted.people).rows
    with without_warnings():  # the page shows the status
        return edited_update(update, rows, plan)
