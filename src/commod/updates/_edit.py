"""Build the update that an edit by hand asks for: its points, its offset and its figures.

1. Apply the edits to the points of the scorecard.
2. Where asked for, fit all terms that are neither edited nor pinned again.
3. Determine the exact offset for the target, or keep the offset.
4. Measure the update as after a fit on these rows, and add a record to its history.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._record import AnyEdit, EditFigures, EditRecord, Lock, OffsetRule
from commod._text import list_names
from commod.edit import EditedPoints, apply_edits, find_terms
from commod.exceptions import InputError
from commod.scorecard import Scorecard
from commod.updates._base_optimism import stated_optimism
from commod.updates._budget import parity_value, spent_budget
from commod.updates._controlled_problem import fit_problem
from commod.updates._cross_fit import outcome_at
from commod.updates._edit_expectation import (
    attained,
    carried_expectation,
    expected_as_given,
    fitted_on_same_rows,
    is_known,
    offset_on_folds,
    tightened,
)
from commod.updates._exact_points import (
    GivenPoints,
    concept_of_terms,
    outcome_of_points,
    store_given,
    without_terms,
)
from commod.updates._expectation import Expectation, expect_target, is_near_parity
from commod.updates._fitted_update import FittedUpdate
from commod.updates._new_rows import has_enough_rows
from commod.updates._problem import FitProblem
from commod.updates._refit import refitted_points, refitted_whole_points
from commod.updates._search import SearchOutcome, changed_rows, price_of_target
from commod.updates._soft_cells import cell_models, with_soft_cells
from commod.updates._stored_search import store_search
from commod.updates._whole_update import DEFAULT_LINES

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MAX_REFITS = 5  # one after the other


class EditPlan(NamedTuple):
    """What an edit asks for: edits, names of pinned terms, the offset, and who says so."""

    edits: tuple[AnyEdit, ...]
    pin: tuple[str, ...] = ()
    offset: OffsetRule = "target"
    refit: bool = False
    by: str | None = None
    note: str | None = None


class EditRows(NamedTuple):
    """Rows that an edit is measured on: the problem with the terms of the update to be edited.

    `reader` is an unfitted copy of that update, which has read the rows.
    """

    reader: Any
    problem: FitProblem


def edited_update(update: Any, rows: EditRows, plan: EditPlan) -> Any:
    """Return a new update with edited points and all figures; `update` stays as it is.

    The rows may be used for several edits, also of updates that were edited on them before, as
    long as no column is locked in between.
    """
    card = update.scorecard_
    after, is_pinned = _edited_points(card, rows.problem, plan)
    check_whole(update, after.points)
    edited, problem = _edited_problem(update, rows, plan, after.is_locked)
    kept = ~after.is_locked
    points, is_pinned = after.points[kept], is_pinned[kept]
    searched = fitted_on_same_rows(update, rows.reader)
    task = EditTask(edited, problem, searched, points, is_pinned, plan)
    outcome, expectation = (
        task.kept_offset(card.intercept) if plan.offset == "keep" else task.new_offset()
    )
    has_offset = plan.offset == "keep" or bool(outcome.weights.any())
    given = GivenPoints(-outcome.points, -outcome.offset if has_offset else 1.0)
    record = _record(update, plan)
    edited.edits_, edited._earlier_update = (*update.edits_, record), update
    edited.promised_, edited.direction_ = None, problem.direction
    store_given(edited, problem, given, concept_of_terms(card)[kept])
    store_search(edited, problem, outcome)
    edited.multiplier_ = price_of_target(problem, outcome)
    seen = stated_optimism(edited)
    edited._store_figures(problem, FittedUpdate(problem, outcome, expectation, seen))
    edited.edits_ = (*update.edits_, replace(record, after=figures_of(edited)))
    return edited


def _edited_points(
    card: Scorecard, problem: FitProblem, plan: EditPlan
) -> tuple[EditedPoints, Mask]:
    """Return the edited points, and which terms keep their points in a refit, (d,)."""
    n_people = problem.terms.n_people(problem.rows.weight)
    after = apply_edits(card.encoding, card.points, plan.edits, n_people)
    is_pinned = after.is_edited.copy()
    for name in plan.pin:
        is_pinned[find_terms(card.encoding, name, parameter="pin")] = True
    # The fewest changes may be those of people far from the threshold, whom `borderline` spares.
    is_pinned |= problem.is_distance
    if plan.refit and is_pinned[~after.is_locked].all():
        raise InputError(
            "refit=True has nothing to fit: every term is edited, pinned or locked. Pass "
            "refit=False, or pin fewer terms.",
            parameter="refit",
        )
    return after, is_pinned


def _edited_problem(
    update: Any, rows: EditRows, plan: EditPlan, is_locked: Mask
) -> tuple[Any, FitProblem]:
    """Return an unfitted copy of the update, with locked columns, and its problem."""
    params = update.fitted_params()
    locked = list(dict.fromkeys(edit.name for edit in plan.edits if isinstance(edit, Lock)))
    if locked:
        params["locked_features"] = [*params["locked_features"], *locked]
    edited = type(update)(**params)
    edited._take_reading(rows.reader)
    edited.direction_ = update.direction_
    moves = update._moves(update.direction_)
    if not locked:
        return edited, rows.problem.with_direction(*moves)
    check_locks(rows.reader, plan.edits)
    encoding = without_terms(rows.problem.encoding, is_locked)
    if not encoding.columns:
        raise InputError(
            "edits locks every column of the scorecard, so no term would be left. Use 'drop' "
            "instead, or keep a column.",
            parameter="edits",
        )
    return edited, fit_problem(edited, rows.problem.rows, encoding)


def check_locks(reader: Any, edits: Sequence[AnyEdit]) -> None:
    """Refuse to lock a column that is made of the score."""
    locked = [edit.name for edit in edits if isinstance(edit, Lock)]
    unknown = [name for name in locked if name not in reader._columns_seen]
    if unknown:
        raise InputError(
            f"edits locks {list_names(unknown)}, which is no column of X but comes from the score. "
            "Use 'drop' for it.",
            parameter="edits",
        )


def asks_for_whole(update: Any) -> bool:
    """Return whether the points of an update must be whole numbers."""
    return bool(update.fitted_param("points", "free") == "integers")


def check_whole(update: Any, points: Floats) -> None:
    """Refuse edited points (d,) that are no whole numbers where the update asks for such points."""
    wrong = points[points != np.rint(points)]
    if asks_for_whole(update) and len(wrong):
        raise InputError(
            f"edits leads to {wrong[0]:g} points, but points='integers' asks for whole numbers. "
            "Give whole numbers, round with Round(1), or fit with points='free'.",
            parameter="edits",
        )


class EditTask(NamedTuple):
    """The points of an edit, and what decides their offset.

    `searched` is the update whose points were searched for on these rows; None where the points
    are new to the rows.
    """

    update: Any
    problem: FitProblem
    searched: Any
    points: Floats
    is_pinned: Mask
    plan: EditPlan

    @property
    def _is_expected(self) -> bool:
        return self.update.target_on == "new_rows"

    @property
    def _unknown(self) -> Expectation | None:
        return Expectation.unknown(self.update._target) if self._is_expected else None

    def kept_offset(self, intercept: float) -> tuple[SearchOutcome, Expectation | None]:
        """Return the edited points with the offset of the earlier update."""
        given = GivenPoints(self.points, intercept)
        outcome = outcome_of_points(
            self.problem, given, "edited by hand", is_whole=asks_for_whole(self.update)
        )
        target = self.update._target
        if not self._is_expected or not has_enough_rows(self.problem):
            return outcome, self._unknown
        if self.searched is None:
            return outcome, expected_as_given(self.problem, outcome, target)
        if not is_known(self.searched):
            return outcome, self._unknown
        return outcome, carried_expectation(self.problem, outcome, self.searched, target)

    def new_offset(self) -> tuple[SearchOutcome, Expectation | None]:
        """Return the edited points with the exact offset for the target, and what is expected."""
        target, problem = self.update._target, self.problem
        is_budget = self.update._is_budget
        on_rows = parity_value(problem) if is_budget else target
        if not self._is_expected or not has_enough_rows(problem):
            return self._outcome(problem, on_rows), self._unknown
        if self.searched is not None:
            if not is_known(self.searched):
                return self._outcome(problem, on_rows), self._unknown
            internal = on_rows if is_budget else self.searched.internal_target_
            outcome = self._outcome(tightened(problem, self.searched), internal)
            return outcome, carried_expectation(problem, outcome, self.searched, target)
        directions = offset_on_folds(problem, partial(self._direction, target=on_rows))
        if is_budget or is_near_parity(problem.constraint, target):
            outcome = self._outcome(problem, on_rows)
            decisions = problem.rows.base.decisions ^ changed_rows(problem, outcome)
            figures = directions.figures(problem.rows.fairness(problem.constraint, decisions))
            is_reached = bool(problem.constraint.is_met(figures.fairness, target))
            return outcome, Expectation(target, figures, is_reached)
        expectation = expect_target(directions, problem.constraint, target)
        outcome = self._outcome(problem, expectation.internal_target)
        return outcome, attained(problem, outcome, directions, expectation, target)

    def _outcome(self, problem: FitProblem, target: float) -> SearchOutcome:
        """Return the points with the exact offset for a target on the rows of the problem."""
        outcome = self._direction(problem, target)
        return spent_budget(problem, outcome) if self.update._is_budget else outcome

    def _direction(self, problem: FitProblem, target: float) -> SearchOutcome:
        """Return the best points for a target: those of the edit, or refitted ones.

        A refit on all terms is taken only where terms that have points already miss the target. A
        refit begins again at its result as long as that needs fewer changes.
        """
        best = self._with_offset(problem, self.points, target)
        if not self.plan.refit:
            return best
        softened = problem
        if self.searched is not None and self.searched.cells_ == "soft":
            models = cell_models(
                problem, self.update.min_category_size, self.update.locked_features
            )
            softened = with_soft_cells(problem, models)
        for _ in range(MAX_REFITS):
            start = best
            for points in self._refitted(softened, -start.points, target):
                refitted = self._with_offset(problem, points, target)
                best = min(best, refitted, key=partial(_rank, problem))
                if best.violation <= 0:
                    break
            if best is start:
                break
        return best

    def _refitted(self, problem: FitProblem, points: Floats, target: float) -> list[Floats]:
        """Return points (d,) that were fitted again beside the pinned ones."""
        if not asks_for_whole(self.update):
            return refitted_points(problem, points, self.is_pinned, target)
        n_lines = self.update.max_lines
        max_lines = DEFAULT_LINES if n_lines is None else int(n_lines)
        return [refitted_whole_points(problem, points, self.is_pinned, target, max_lines)]

    def _with_offset(self, problem: FitProblem, points: Floats, target: float) -> SearchOutcome:
        given, is_whole = GivenPoints(points, 0.0), asks_for_whole(self.update)
        outcome = outcome_of_points(problem, given, "edited by hand", is_whole=is_whole)
        return outcome_at(problem, outcome, target)


def _rank(problem: FitProblem, outcome: SearchOutcome) -> tuple[float, int]:
    """Return what outcomes are compared by: the distance to the target, then changes."""
    return outcome.violation, problem.rows.count(changed_rows(problem, outcome))


# ---------------------------------------------------------------------------------------------
# History


def figures_of(update: Any) -> EditFigures:
    """Return the figures of a fitted update that a history states."""
    return EditFigures(
        fairness=_known(update.fairness_),
        change_rate=_known(update.change_rate_),
        n_gains=_known(update.n_gains_),
        n_losses=_known(update.n_losses_),
        reached=bool(update.reached_),
    )


def _record(update: Any, plan: EditPlan) -> EditRecord:
    """Return the record of an edit; `after` is filled in when the figures are known."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    before = figures_of(update)
    by, note = plan.by, plan.note
    return EditRecord(now, by, note, plan.edits, plan.offset, plan.refit, plan.pin, before, before)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
