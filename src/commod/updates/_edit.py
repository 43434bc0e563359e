"""Build the update that an edit by hand asks for: its points, its cut and its figures.

1. Apply the edits to the points of the scorecard.
2. If asked to, fit all terms again that are neither edited nor pinned. Otherwise do so only to see
   how far points move without the fold of a row: the cut is counted on such values.
3. Count the cut for the target, or keep it.
4. Measure the update as after a fit on these rows, and add a record to its history.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from commod._data.arrays import Floats, Mask
from commod._data.columns import check_optional_text
from commod._data.encoding import Encoding
from commod._data.parameters import check_choice, check_flag
from commod._evidence.cut import evidence, stop_at_cut
from commod._evidence.points import Points
from commod._evidence.search import EvidenceCard, FoundUpdate, costs_at, find_update, recounted
from commod._record.edits import MAX_NOTE, AnyEdit, EditFigures, EditRecord, Lock, OffsetRule
from commod._record.plain import utc_now
from commod._solvers.threads import single_blas_thread
from commod._text import list_names, shown
from commod.edit import EditedPoints, apply_edits, find_terms, read_edits
from commod.exceptions import InputError
from commod.scorecard import Scorecard
from commod.updates._as_patch import known
from commod.updates._found_update import (
    FittedUpdate,
    concept_of_terms,
    favorable_points,
    found_rule,
    given_card,
    with_expectation,
)
from commod.updates._problem import FitProblem, evidence_task
from commod.updates._targeted import TargetedUpdate

Updated = TypeVar("Updated", bound=TargetedUpdate)


class EditPlan(NamedTuple):
    """What an edit asks for: edits, names of pinned terms, the offset, and who says so."""

    edits: tuple[AnyEdit, ...]
    pin: tuple[str, ...] = ()
    offset: OffsetRule = "target"
    refit: bool = False
    by: str | None = None
    note: str | None = None
    when: str | None = None  # now if None


class EditRows(NamedTuple):
    """Rows that an edit is measured on: the problem with the terms of the update to be edited.

    `reader` is an unfitted copy of that update, which has read the rows.
    """

    reader: TargetedUpdate
    problem: FitProblem


def read_plan(
    edits: Any,
    offset: Any = "target",
    refit: Any = False,
    pin: Any = (),
    by: Any = None,
    note: Any = None,
    when: Any = None,
) -> EditPlan:
    """Return the checked parameters of an edit."""
    check_choice(offset, "offset", ("target", "keep"))
    check_flag(refit, "refit")
    if refit and offset == "keep":
        raise InputError(
            "refit=True fits points for the target, so the offset must follow. Pass "
            "offset='target', or refit=False.",
            parameter="offset",
        )
    if isinstance(pin, str) or not all(isinstance(name, str) for name in pin):
        raise InputError(
            f"pin={shown(pin)} must be a list of names of terms or columns.", parameter="pin"
        )
    if pin and not refit:
        raise InputError(
            "pin says which terms keep their points in a refit, but refit is False. Pass "
            "refit=True, or leave pin out.",
            parameter="pin",
        )
    for name, text in (("by", by), ("note", note), ("when", when)):
        check_optional_text(text, name)
    if note is not None and len(note) > MAX_NOTE:
        raise InputError(
            f"note has {len(note):,} characters; expected at most {MAX_NOTE:,}. Keep the reasons "
            "in a document, and name it in the note.",
            parameter="note",
        )
    if when is not None:
        try:
            datetime.datetime.fromisoformat(when)
        except ValueError:
            raise InputError(
                f"when={shown(when)} is no time; expected one such as '2026-01-02T03:04:05+00:00'.",
                parameter="when",
            ) from None
    return EditPlan(read_edits(edits), tuple(pin), offset, bool(refit), by, note, when)


def edited_update(update: Updated, rows: EditRows, plan: EditPlan) -> Updated:
    """Return a new update with edited points and all figures; `update` stays as it is.

    The rows may be used for several edits, also of updates that were edited on them before, as
    long as no column is locked in between.
    """
    card = update.scorecard_
    after, is_pinned = _edited_points(card, rows.problem, plan)
    check_whole(after.points, is_whole=update._has_whole_points)
    params, locked = update._fitted_params(), locked_columns(plan.edits, rows.reader)
    if locked:
        params["locked_features"] = [*params["locked_features"], *locked]
    edited = type(update)(**params)
    edited._take_reading(rows.reader)
    allowed = update._allowed_changes()
    problem = rows.problem.with_direction(allowed.may_raise, allowed.may_lower)
    if locked:
        encoding = _without_terms(problem.encoding, after.is_locked)
        problem = replace(problem, asked=edited._asked()).on(problem.rows, encoding)
    kept, is_edited = ~after.is_locked, after.is_edited | set_by_hand(update)
    given = EditedCard(card, after.points[kept], is_edited[kept], is_pinned[kept])
    is_same_rows = fitted_on_same_rows(update, rows.reader)
    fitted = fit_edit(problem, given, plan, is_same_rows=is_same_rows)
    record = _record(update, plan)
    edited.edits_, edited._earlier_update = (*update.edits_, record), update
    names = zip(card.encoding.term_names, is_pinned if plan.refit else is_edited, strict=True)
    edited._terms_by_hand = tuple(name for name, is_kept in names if is_kept)
    edited.promised_ = None
    points = favorable_points(problem, fitted.found.points)
    rule, concept = found_rule(problem, fitted.found), concept_of_terms(card)[kept]
    edited._store_card(problem, given_card(problem, points, rule, concept))
    edited.history_ = {"step": ["edited by hand"], "n_terms": [edited.scorecard_.n_terms_used]}
    edited.history_["change_rate"] = [fitted.found.stop.n_changed / problem.rows.n_people]
    edited._store_figures(problem, fitted)
    edited.edits_ = (*update.edits_, replace(record, after=figures_of(edited)))
    return edited


def set_by_hand(update: TargetedUpdate) -> Mask:
    """Return the terms of an update whose points were edited, or pinned in its last refit, (d,)."""
    names = update.scorecard_.encoding.term_names
    return np.array([name in update._terms_by_hand for name in names], dtype=bool)


def fitted_on_same_rows(update: TargetedUpdate, reader: TargetedUpdate) -> bool:
    """Return whether the points of an update, or of one before its edits, come from these rows."""
    for version in update._versions():
        is_fitted = not version.edits_ or version.edits_[-1].refit
        is_same = version._scores_digest == reader._scores_digest
        if is_fitted and is_same and version._n_fit_rows == reader._n_fit_rows:
            return True
    return False


def _edited_points(
    card: Scorecard, problem: FitProblem, plan: EditPlan
) -> tuple[EditedPoints, Mask]:
    """Return the edited points, and which terms keep their points in a refit, (d,)."""
    n_people = problem.terms.n_people(problem.rows.weight)
    after = apply_edits(card.encoding, card.points, plan.edits, n_people)
    is_pinned = after.is_edited.copy()
    for name in plan.pin:
        is_pinned[find_terms(card.encoding, name, parameter="pin")] = True
    if plan.refit and is_pinned[~after.is_locked].all():
        raise InputError(
            "refit=True has nothing to fit: every term is edited, pinned or locked. Pass "
            "refit=False, or pin fewer terms.",
            parameter="refit",
        )
    return after, is_pinned


def locked_columns(edits: Sequence[AnyEdit], reader: TargetedUpdate) -> list[str]:
    """Return the columns that edits lock; refuse one that is made of the score."""
    locked = list(dict.fromkeys(edit.name for edit in edits if isinstance(edit, Lock)))
    unknown = [name for name in locked if name not in reader._columns_seen]
    if unknown:
        raise InputError(
            f"edits locks {list_names(unknown)}, which is not a column of X but comes from the "
            "score. Use 'drop' for it.",
            parameter="edits",
        )
    return locked


def _without_terms(encoding: Encoding, is_locked: Mask) -> Encoding:
    """Return the terms of all columns that have no locked term (d,); refuse to leave none."""
    locked = {name for name, gone in zip(encoding.term_columns, is_locked, strict=True) if gone}
    columns = tuple(column for column in encoding.columns if column.name not in locked)
    if not columns:
        raise InputError(
            "edits locks every column of the scorecard, so no term would be left. Use 'drop' "
            "instead, or keep a column.",
            parameter="edits",
        )
    return Encoding(columns)


def check_whole(points: Floats, *, is_whole: bool) -> None:
    """Refuse edited points (d,) that are no whole numbers where `is_whole` asks for such points."""
    wrong = points[points != np.rint(points)]
    if is_whole and len(wrong):
        raise InputError(
            f"edits leads to {wrong[0]:g} points, but points='integers' asks for whole numbers. "
            "Give whole numbers, round with Round(1), or fit with points='per bin'.",
            parameter="edits",
        )


class EditedCard(NamedTuple):
    """A scorecard, and its edited points (d,).

    `is_edited` (d,) are terms whose points people have set, also in earlier edits. `is_pinned` (d,)
    are those that keep their points in a refit.
    """

    card: Scorecard
    points: Floats
    is_edited: Mask
    is_pinned: Mask


def fit_edit(
    problem: FitProblem, edited: EditedCard, plan: EditPlan, *, is_same_rows: bool
) -> FittedUpdate:
    """Return the edited update with its cut, and what is expected of it.

    On the rows that points come from, the cut is counted on values of points that were fitted
    without the fold of each row, beside the edited ones.
    """
    asked = problem.asked
    task = evidence_task(problem, asked.target, for_new=problem.for_new)
    rule = edited.card.rule
    assert rule is not None
    sign = 1.0 if asked.raising_is_a_gain else -1.0
    settings = asked.settings._replace(nearness=rule.nearness)
    own = Points(sign * edited.points, sign * edited.card.intercept)
    in_sample = problem.terms.total(own.values, own.intercept)
    card = EvidenceCard(own, in_sample, in_sample)
    with single_blas_thread:
        if plan.refit:
            pinned = np.where(edited.is_pinned, own.values, np.nan)
            card = find_update(replace(task, pinned=pinned), settings).card
        elif problem.for_new and is_same_rows and own.values.any():
            # Terms without points stay without them, and edited points stay as they are.
            is_fixed = edited.is_edited | (own.values == 0)
            pinned = np.where(is_fixed, own.values, np.nan)
            refitted = find_update(replace(task, pinned=pinned), settings._replace(max_lines=None))
            # The cut is one for these points, so only what leaving out a fold changes is taken.
            unseen = refitted.card.out_of_fold - refitted.card.in_sample
            card = replace(card, out_of_fold=in_sample + unseen)
    score = evidence(task, card.counted(task), costs_at(task, rule.nearness, rule.mean_distance))
    cut = rule.cut if plan.offset == "keep" else np.inf
    stop = stop_at_cut(task, score, cut)
    found = FoundUpdate(card, cut, rule.nearness, rule.mean_distance, stop, stop.n_changed)
    has_evidence = card.points.values.any() or not problem.terms.n_terms
    if plan.offset == "target" and has_evidence:
        found = recounted(task, card, found, settings)
    return with_expectation(FittedUpdate(problem, task, found))


# ---------------------------------------------------------------------------------------------
# History


def figures_of(update: TargetedUpdate) -> EditFigures:
    """Return the figures of a fitted update that a history states."""
    names = ("fairness", "change_rate", "n_gains", "n_losses")
    figures = {name: known(getattr(update, f"{name}_")) for name in names}
    return EditFigures(**figures, reached=bool(update.reached_))


def _record(update: TargetedUpdate, plan: EditPlan) -> EditRecord:
    """Return the record of an edit; `after` is filled in when the figures are known."""
    when = plan.when or utc_now()
    before = figures_of(update)
    by, note = plan.by, plan.note
    return EditRecord(when, by, note, plan.edits, plan.offset, plan.refit, plan.pin, before, before)
