"""Hold the updates of a sweep, which are built when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod.scorecard import Scorecard
from commod.updates._expectation import Expectation
from commod.updates._fitted_update import with_expected_standing
from commod.updates._interface import AllowedChanges, FittedCandidate
from commod.updates._new_rows import has_enough_rows
from commod.updates._problem import FitProblem
from commod.updates._progress import progress_bar
from commod.updates._search import SearchOutcome, changed_rows
from commod.updates._sweep_new_rows import sweep_new_rows
from commod.updates._sweep_targets import sweep_targets
from commod.updates.ratio import RatioRows


@dataclass(frozen=True)
class SearchCandidate:
    """An update of a sweep; `fitted_copy` builds it from its fields when needed.

    `expectation` says what is expected of it on new people; None where that is not known.
    The candidate holds the fit rows. Therefore, pickling stores the built update in its place.
    """

    settings: dict[str, Any]
    problem: FitProblem
    outcome: SearchOutcome
    fitted_copy: Callable[[FitProblem, SearchOutcome, float | None, Expectation | None], Any]
    expectation: Expectation | None = None

    @property
    def allowed(self) -> AllowedChanges:
        """Return the changes that the update allows, which its direction restricts."""
        problem = self.problem
        return AllowedChanges(problem.may_raise, problem.may_lower, problem.max_margin)

    def decide(self, rows: RatioRows) -> NDArray[np.bool_]:
        """Return the decisions on rows that were read, shape (n,)."""
        # An update that changes no fit row is stored as r = 1, so it changes no other row either.
        acts = changed_rows(self.problem, self.outcome).any()
        eta = self.outcome.eta(rows.terms)
        return rows.base.decisions ^ ((eta > 0) & self.allowed.mask(rows.base) & acts)

    def build(self) -> Any:
        """Return the fitted update with its figures on the fit rows."""
        target = self.settings["target"]
        return self.fitted_copy(self.problem, self.outcome, target, self.expectation)

    def scorecard(self) -> Scorecard:
        """Return the points alone: nothing is measured on the fit rows."""
        return self.fitted_copy(self.problem, self.outcome, None, None).scorecard_

    def __reduce__(self) -> tuple[type[FittedCandidate], tuple[dict[str, Any], Any]]:
        return FittedCandidate, (self.settings, self.build())


def candidates_of(
    model: Any, problem: FitProblem, targets: Sequence[float] | None
) -> Iterator[SearchCandidate]:
    """Yield the updates of a model for each target, or those of the default frontier.

    Afterwards, the model reads new rows for them.
    """
    fitted_copy = model._fitted_copy
    is_on_new_rows = model.target_on == "new_rows"
    is_expected = is_on_new_rows and has_enough_rows(problem)
    with progress_bar("frontier", model.progress, "targets") as report:
        if is_expected:
            searched = with_expected_standing(model, problem)
            swept = sweep_new_rows(model, searched, targets, report)
        else:
            problem, outcomes = sweep_targets(problem, targets, model._target, report)
    model.direction_ = problem.direction
    model._store_no_change(problem)  # lets the model read new rows
    if not is_expected:
        unknown = Expectation.unknown(model._target) if is_on_new_rows else None
        for settings, outcome in outcomes:
            yield SearchCandidate(settings, problem, outcome, fitted_copy, unknown)
        return
    for one in swept:
        outcome, expectation = one.outcome, one.expectation
        figures: dict[str, Any] = {
            "target": one.target,
            "internal_target": expectation.internal_target,
            "shrinkage": outcome.shrinkage,
            "cells": "true" if one.problem.soft_cells is None else "soft",
            "n_terms": int((outcome.weights != 0).sum()),
        }
        stated = one.problem.with_standing(problem.standing)
        yield SearchCandidate(figures, stated, outcome, fitted_copy, expectation)
