"""Write a fitted update as a patch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from commod._data.base_model import ScoreColumn
from commod._data.columns import check_optional_text, plain
from commod._record.edits import EditRecord
from commod._record.explanation import ScoreMap
from commod._record.plain import utc_now
from commod.exceptions import InputError
from commod.metrics._constraint import CONSTRAINTS, FORMS, Constraint, get_constraint
from commod.patch import Patch, content
from commod.patch.fingerprint import PACKAGE, columns_digest, library_versions, model_digest
from commod.patch.pairing import FIGURE_DIGITS
from commod.scorecard import AllowedChanges, Scorecard
from commod.updates._interface import further_constraints
from commod.updates.base import BaseUpdate


def patch_of(
    versions: Sequence[content.Content],
    records: Sequence[EditRecord],
    by: str | None,
    created: str | None,
) -> Patch:
    """Return the newest of several versions as a patch, with the edits by hand between them.

    Versions are newest first, and records oldest first. Figures of an edit are those of the
    versions before and after it, which are rounded.
    """
    check_optional_text(by, "by")
    check_optional_text(created, "created")
    created = utc_now() if created is None else created
    edits: list[content.PatchEdit] = []
    for record, (earlier, later) in zip(records, pairwise(reversed(versions)), strict=True):
        before, after = map(content.figures_of_edit, (earlier.reached, later.reached))
        figures = replace(record, before=before, after=after)
        edits.append(content.PatchEdit(figures, content.editable_parts(earlier)))
    return Patch(replace(versions[0], by=by, created=created, history=tuple(edits)))


def content_of(
    update: BaseUpdate,
    card: Scorecard,
    calibration: ScoreMap | None,
    allowed: AllowedChanges,
    base: content.Base,
) -> content.Content:
    """Return what a patch holds of a fitted update, without its edits and without a date.

    `calibration` maps its scores to calibrated probabilities. `allowed` is about decisions for
    `pos_label`; a patch has its gate for the label that the score predicts. `base` is the base
    model on any rows.
    """
    if update._score_label() != update._pos_label:
        allowed = allowed._replace(may_raise=allowed.may_lower, may_lower=allowed.may_raise)
    labels = {name: plain(value) for name, value in _labels(update).items()}
    refused = [x for x in labels.values() if not isinstance(x, str | bool | int | float | None)]
    if refused:
        raise InputError(
            f"A patch holds labels that are text, numbers or booleans; got {refused[0]!r} of type "
            f"{type(refused[0]).__name__}. Fit the update with other labels."
        )
    libraries = library_versions()
    return content.Content(
        schema=content.SCHEMA,
        library=f"{PACKAGE} {libraries[PACKAGE]}",
        created="",
        method=type(update).__name__,
        base=replace(base, **_on_rows(update)),
        labels=content.Labels(**labels),
        asked=_asked(update),
        reached=_reached(update),
        seen=_seen(update),
        ratio=content.ratio_of(
            card,
            may_raise=allowed.may_raise,
            may_lower=allowed.may_lower,
            max_margin=known(allowed.max_margin),
            score_columns=tuple(c.name for c in update._score_columns(np.zeros(0))),
        ),
        score_edit=update._fitted_param("score_edit", "all"),
        calibration=calibration,
        left_out=_left_out(update),
        versions=libraries,
    )


def _seen(update: BaseUpdate) -> content.Seen:
    names = update._columns_seen
    return content.Seen(len(names), columns_digest(names), update._n_fit_rows)


def _left_out(update: BaseUpdate) -> content.LeftOut:
    """Return how many small groups the constraint leaves out; a patch names none of them."""
    groups = getattr(update, "groups_left_out_", ())
    return content.LeftOut(len(groups), sum(int(group.n) for group in groups))


def _labels(update: BaseUpdate) -> dict[str, Any]:
    """Return the labels in the base model's own type: a user may write 1.0 for 1.

    In a patch the positive label is the one that the score predicts.
    """
    positive = update.classes_ == update._score_label()
    counted = update.classes_ == update._pos_label
    favorable = update.classes_ == update._favorable_label
    return {
        "negative": update.classes_[~positive][0],
        "positive": update.classes_[positive][0],
        "favorable": update.classes_[favorable][0],
        "counted": None if (counted == positive).all() else update.classes_[counted][0],
    }


def base_of(update: BaseUpdate) -> content.Base:
    """Return the base model of an update with its fingerprint, which takes long."""
    model, on_rows = update._base_model, _on_rows(update)
    if isinstance(model, ScoreColumn):
        return content.Base("a column of scores", None, model.name, **on_rows)
    name = type(model).__name__
    if hasattr(model, "steps"):
        name += f" ({', '.join(type(step).__name__ for _, step in model.steps)})"
    return content.Base(name, model_digest(model), None, **on_rows)


def _on_rows(update: BaseUpdate) -> dict[str, Any]:
    """Return what a patch says about the scores of the base model on the rows of an update."""
    threshold = float(update._fitted_param("threshold"))
    return {"threshold": threshold, "scores_digest": update._scores_digest}


def _constraint(update: BaseUpdate) -> Constraint:
    """Return the first constraint of an update; refuse names that a patch could not read back."""
    constraints = update._stated().constraints
    for constraint in constraints:
        name = constraint.name
        is_known = name in CONSTRAINTS or name.partition(" within ")[0] in FORMS
        if not is_known or get_constraint(name) != constraint:
            raise InputError(
                f"A patch names its constraints, but {name!r} is not a name of commod.constraints, "
                "so the patch could not be read."
            )
    first: Constraint = constraints[0]
    return first


def _further_reached(update: BaseUpdate) -> tuple[content.FurtherReached, ...]:
    names = [one.constraints for one in further_constraints(update._stated())]
    return tuple(
        content.FurtherReached(_figure(update.base_values_[name]), _figure(update.values_[name]))
        for name in names
    )


def _asked(update: BaseUpdate) -> content.PatchRequest:
    limits = ("max_changes", "max_accuracy_loss", "max_volume_change", "confidence")
    is_budget = getattr(update, "_is_budget", True)  # True also where there is no target
    return content.PatchRequest(
        constraints=_constraint(update).name,
        target=None if is_budget else float(update.target_),
        direction=update._fitted_param("direction", "any"),
        **{name: known(update._fitted_param(name)) for name in limits},
        further=further_constraints(update._stated()),
        points="integers" if update._fitted_param("points") == "integers" else None,
    )


def _reached(update: BaseUpdate) -> content.Reached:
    promised = getattr(update, "promised_", None)  # without a promise, figures are of all rows
    return content.Reached(
        rows="held-out rows" if promised else "fit rows",
        n_rows=int(update.n_rows_),
        metric=_constraint(update).metric,
        fairness_before=_figure(update.base_fairness_),
        fairness_after=_figure(update.fairness_),
        accuracy_before=_figure(update.base_accuracy_),
        accuracy_after=_figure(update.accuracy_),
        change_rate=known(update.change_rate_),
        n_gains=known(update.n_gains_),
        n_losses=known(update.n_losses_),
        limit=known(getattr(update, "limit_", None)),
        target_met=_is_target_met(update),
        promised=promised,
        in_words=update._status_without_names(),
        further=_further_reached(update),
    )


def _is_target_met(update: BaseUpdate) -> bool | None:
    """Return whether a target is reached, and kept by the figures of the patch; None without one.

    What is expected on new people may be fairer than the fit rows are.
    """
    reached = getattr(update, "reached_", None)
    if not reached or getattr(update, "_is_budget", True):
        return reached
    stated = update._stated()
    bounds = (update.target_, *stated.bounds[1:])
    return all(
        constraint.is_met(update.values_[constraint.name], bound)
        for constraint, bound in zip(stated.constraints, bounds, strict=True)
        if bound is not None
    )


def known(value: Any) -> float | None:
    """Return a figure; None for NaN."""
    return None if value is None or math.isnan(value) else float(value)


def _figure(value: Any) -> float | None:
    """Return a measured figure with FIGURE_DIGITS digits: the last bits depend on the processor.

    Shares of people need no rounding, because they are quotients of counts.
    """
    figure = known(value)
    return None if figure is None else float(f"{figure:.{FIGURE_DIGITS}g}")
