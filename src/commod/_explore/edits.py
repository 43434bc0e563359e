"""The one place where the page calls the edits of an update: points, cuts and built updates.

Building an edited update measures everything that a fit measures. The page first needs the points,
the cut and who changes. `points_with_cut` returns these alone; they are those of the built update.
"""

from __future__ import annotations

import copy
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._data.columns import column_without_values
from commod._data.encoding import Encoding
from commod._evidence.cut import evidence, path_of, stop_on
from commod._evidence.search import costs_at
from commod._evidence.task import with_bounds
from commod._record.audit import ExpectedOnNewPeople
from commod._record.edits import AnyEdit, EditRecord
from commod._record.plain import utc_now
from commod._reporting.explain.explanation import expected_figures
from commod.edit import EditedPoints, apply_edits
from commod.exceptions import CommodError
from commod.scorecard import EvidenceRule
from commod.updates._edit import (
    EditedCard,
    EditPlan,
    EditRows,
    check_whole,
    edited_update,
    fit_edit,
    fitted_on_same_rows,
    locked_columns,
    set_by_hand,
)
from commod.updates._found_update import Expectation, FittedUpdate, card_decisions, found_rule
from commod.updates._problem import FitProblem, evidence_task
from commod.updates._targeted import find_asked
from commod.updates.controlled import ControlledDebiaser

READING = ("constraints", "points")  # parameters that the reading of rows needs, beside locks


class PeopleOfFit(NamedTuple):
    """The rows of an exploration, as the user passed them."""

    X: Any
    y: Any
    sensitive_features: Any


class PointsWithCut(NamedTuple):
    """Points (d,) of a scorecard with the rule that has their cut, and what they do to the rows.

    `is_edited` (d,) are the terms that people have set. `after` (n,) are the decisions for the
    positive label, in the order in which rows were given. `is_reached` says whether the target is
    expected on new people, or holds on these rows where the update asks for that.
    """

    points: Floats
    intercept: float
    rule: EvidenceRule
    is_edited: Mask
    after: Mask
    expected: ExpectedOnNewPeople | None
    is_reached: bool


@dataclass(frozen=True, eq=False)
class FittedRows:
    """A fitted update and its rows, read once for all edits of it.

    `unmeasured` is the fit whose figures the update lacks until `measure` is called.
    """

    update: ControlledDebiaser
    people: PeopleOfFit
    unmeasured: FittedUpdate | None = None

    @cached_property
    def rows(self) -> EditRows:
        """Return the rows as the update reads them."""
        with without_warnings():  # the fit has given them
            return self.update._edit_rows(*self.people)

    def refitted(self, params: Mapping[str, Any]) -> Self | None:
        """Return the update of other parameters; None if the rows must be read again for it.

        It has points and a cut. Its figures are measured if somebody keeps it.
        """
        before = self.update._fitted_params()
        is_locked_alike = set(params["locked_features"]) == set(before["locked_features"])
        is_read_alike = is_locked_alike and all(params[one] == before[one] for one in READING)
        if not (is_read_alike and self.has_own_terms):
            return None
        update = type(self.update)(**params)
        update._check_parameters()
        update._take_reading(self.rows.reader)
        problem = replace(self.rows.problem, asked=update._asked()).in_asked_direction()
        found, _ = find_asked(problem, keeps_columns=True)
        update._store_points(found)
        rows = EditRows(self.rows.reader, problem)
        return self._with(update, rows, unmeasured=found, is_repeated=True)

    def measure(self) -> None:
        """Measure the figures of the update that a fit left out."""
        if self.unmeasured is not None:
            self.update._store_figures(self.unmeasured.problem, self.unmeasured)
            vars(self)["unmeasured"] = None  # it is large, and the history keeps this object

    def pinned(self, plan: EditPlan) -> Self:
        """Return the update with other points fitted beside those that a plan sets."""
        self.measure()
        return self._with(build(self.update, self, plan), self.rows)

    def _with(self, update: ControlledDebiaser, rows: EditRows, **known: Any) -> Self:
        fitted = replace(self, update=update, unmeasured=None)
        vars(fitted).update(rows=rows, has_own_terms=self.has_own_terms, **known)
        return fitted

    @cached_property
    def has_own_terms(self) -> bool:
        """Return whether the terms are those that a fit learns from these rows, without weights."""
        problem = self.rows.problem
        return problem.asked.problem(problem.rows).encoding == problem.encoding

    @cached_property
    def problem(self) -> FitProblem:
        """Return the problem in the direction of the update; its counts are kept."""
        allowed = self.update._allowed_changes()
        return self.rows.problem.with_direction(allowed.may_raise, allowed.may_lower)

    def problem_without(self, locked: tuple[str, ...]) -> FitProblem:
        """Return the problem with the folds of rows that are read again without some columns.

        A row's fold depends on its content. An edit after a lock reads rows without the column.
        """
        if not locked:
            return self.problem
        known = self._problems.get(locked)
        if known is None:
            rows = self.problem.rows
            read = [
                column_without_values(column.name, len(rows)) if column.name in locked else column
                for column in rows.columns
            ]
            folded = copy.copy(rows)
            vars(folded)["fold"] = replace(rows, columns=read, hashes=None).fold
            known = self._problems[locked] = replace(self.problem, rows=folded)
        return known

    @cached_property
    def _problems(self) -> dict[tuple[str, ...], FitProblem]:
        return {}

    @cached_property
    def n_people(self) -> NDArray[np.intp]:
        """Return how many people each term describes, (d,)."""
        return self.problem.terms.n_people(self.problem.rows.weight)

    @property
    def encoding(self) -> Encoding:
        """Return the terms of the scorecard, those without points among them."""
        return self.problem.encoding

    @cached_property
    def before(self) -> Mask:
        """Return the base decisions for the positive label, (n,)."""
        return self.as_given(self.problem.rows.base.decisions)

    def as_given(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values (n,) of the rows of the problem in the order in which rows were given."""
        given = np.empty_like(values)
        given[self._position] = values
        return given

    def as_in_problem(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values (n,) of rows as they were given in the order of the problem."""
        return np.asarray(values[self._position])

    @property
    def _position(self) -> NDArray[np.intp]:
        position = self.problem.rows.position
        assert position is not None  # a fit orders rows by their hashes
        return position

    @cached_property
    def is_repeated(self) -> bool:
        """Return whether a fit on these rows, and the edits of its history, give the update."""
        X, y, groups = self.people
        again = type(self.update)(**params_before_edits(self.update))
        try:
            with without_warnings():
                again.fit(X, y, sensitive_features=groups)
                for record in self.update.edits_:
                    rows = FittedRows(again, self.people).rows
                    again = edited_update(again, rows, recorded_plan(record))
        except CommodError:
            return False
        created = utc_now()
        same = {made.to_patch(created=created).to_json() for made in (again, self.update)}
        return len(same) == 1

    @cached_property
    def is_same_rows(self) -> bool:
        """Return whether the points of the update come from these rows."""
        return fitted_on_same_rows(self.update, self.rows.reader)


def recorded_plan(record: EditRecord) -> EditPlan:
    """Return the plan that a record of the history tells of."""
    what = record.edits, record.pinned, record.offset, record.refit
    return EditPlan(*what, record.by, record.note, record.when)


def params_before_edits(update: ControlledDebiaser) -> dict[str, Any]:
    """Return the parameters of the fit that edits by hand began with: edits may lock columns."""
    given = update._fitted_params()
    locked = {edit.name for record in update.edits_ for edit in record.edits if edit.edit == "lock"}
    free = tuple(name for name in given["locked_features"] if name not in locked)
    return {**given, "locked_features": free}


def edited_points(fitted: FittedRows, points: Floats, edits: tuple[AnyEdit, ...]) -> EditedPoints:
    """Return points (d,) after edits; a locked column has 0 points and stays in place.

    Refused are locks that the built update would refuse.
    """
    after = apply_edits(fitted.encoding, points, edits, fitted.n_people)
    locked_columns(edits, fitted.rows.reader)
    check_whole(after.points, is_whole=fitted.problem.asked.settings.is_whole)
    return after


def fitted_points(fitted: FittedRows) -> PointsWithCut:
    """Return the points and the cut of the fitted update itself."""
    update, problem, found = fitted.update, fitted.problem, fitted.unmeasured
    card = update.scorecard_
    after = card_decisions(problem, card)
    if found is None:
        expected, is_reached = expected_figures(update.expected_), bool(update.reached_)
    else:
        expected = expected_figures(found.expectation)
        is_reached = _is_reached(problem, after, found.expectation)
    by_hand, given = set_by_hand(update), fitted.as_given(after)
    return PointsWithCut(
        card.points, card.intercept, card.rule, by_hand, given, expected, is_reached
    )


def points_with_cut(
    fitted: FittedRows,
    before: PointsWithCut,
    edited: EditedPoints,
    plan: EditPlan,
    locked: tuple[str, ...] = (),
) -> PointsWithCut:
    """Return edited points with the cut that a plan asks for.

    `before` are the points before the edit, and `locked` the columns that earlier edits have
    locked.
    """
    problem = fitted.problem_without(locked)
    is_edited = before.is_edited | edited.is_edited
    card = replace(fitted.update.scorecard_, rule=before.rule)
    found = fit_edit(
        problem,
        EditedCard(card, edited.points, is_edited, is_edited),
        plan,
        is_same_rows=fitted.is_same_rows,
    )
    after = problem.rows.base.decisions ^ found.changed
    return PointsWithCut(
        edited.points,
        before.intercept,
        found_rule(problem, found.found),
        is_edited,
        fitted.as_given(after),
        expected_figures(found.expectation),
        _is_reached(problem, after, found.expectation),
    )


def _is_reached(problem: FitProblem, after: Mask, expectation: Expectation | None) -> bool:
    """Return whether the target is reached, as the built update says it.

    `after` (n,) are decisions in the order of the problem.
    """
    rows = problem.rows
    if rows.is_degenerate(after):
        return False
    if problem.asked.settings.is_budget:
        return True
    if expectation is None:
        fairness = rows.fairness(problem.constraint, after)
        is_met = problem.constraint.is_met(fairness, problem.asked.target)
        return bool(is_met) and problem.keeps_others(problem.compared.other_values(after))
    return expectation.is_reached and problem.keeps_others(expectation.other_values)


def points_at_targets(
    fitted: FittedRows, now: PointsWithCut, n_targets: int
) -> Iterator[tuple[float, Mask]]:
    """Yield targets, and the decisions of points with the cut for each of them on these rows.

    The targets go from the base model to near parity. Decisions are in the order of the problem.
    """
    problem, rule = fitted.problem, now.rule
    base, near_ideal = problem.base_fairness, problem.constraint.near_ideal
    task = evidence_task(problem, problem.asked.target, for_new=False)
    sign = 1.0 if problem.asked.raising_is_a_gain else -1.0
    v = sign * problem.terms.total(now.points, now.intercept)
    score = evidence(task, v, costs_at(task, rule.nearness, rule.mean_distance))
    path, standing = path_of(task, score), task.bounds[1:]
    for share in np.linspace(0.1, 1.0, n_targets).tolist():
        target = round(base + share * (near_ideal - base), 3)
        required = with_bounds(task.required, (target, *standing))
        stop = stop_on(replace(task, required=required), path)
        yield target, problem.rows.base.decisions ^ (score > stop.cut)


def build(update: ControlledDebiaser, fitted: FittedRows, plan: EditPlan) -> ControlledDebiaser:
    """Return the edited update with all figures; `fitted` has the rows of `update` or before it.

    After a locked column the rows are read again: the update has other terms then.
    """
    rows = fitted.rows
    if update.scorecard_.encoding != fitted.encoding:
        rows = FittedRows(update, fitted.people).rows
    with without_warnings():  # the page shows the status
        return edited_update(update, rows, plan)


# ---------------------------------------------------------------------------------------------
# Ignore warnings in several threads at once

_lock = threading.Lock()
_blocks: list[warnings.catch_warnings[None]] = []  # one entry for each open block


@contextmanager
def without_warnings() -> Iterator[None]:
    """Ignore warnings inside the block; the last block that ends restores the filters.

    Filters belong to the whole process. Were each thread to restore what it found, one that began
    later and ended last would leave the filters of the other, and the user would never see a
    warning again.

    Examples
    --------
    >>> with without_warnings():
    ...     warnings.warn("nobody sees this")
    """
    with _lock:
        block = warnings.catch_warnings()
        if not _blocks:
            block.__enter__()
            warnings.simplefilter("ignore")
        _blocks.append(_blocks[0] if _blocks else block)
    try:
        yield
    finally:
        with _lock:
            block = _blocks.pop()
            if not _blocks:
                block.__exit__(None, None, None)
