"""Say what is expected of an edited update on new people, and what its offset must be.

The direction of an edited update is given. What its rows say about new people depends on them:

- On the rows that the update was fitted on, the points have seen the rows. A search chooses the
  points that look best there, and edited points look no better. So the part that the search loses
  on new people is taken off: its internal target is kept.
- On other rows, the points are new to them, and only the offset is adapted. Folds measure what the
  offset loses: it is determined without a fold and applied to the fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod.updates._compared import Standing
from commod.updates._cross_fit import (
    ExpectedFigures,
    FoldDirection,
    FoldDirections,
    Spread,
    figures_on_folds,
    measure,
    without_fold,
)
from commod.updates._expectation import Expectation
from commod.updates._problem import FitProblem
from commod.updates._search import SearchOutcome, changed_rows
from commod.updates._soft_cells import N_FOLDS, draw_folds

Search = Callable[[FitProblem], SearchOutcome]


def earlier_updates(update: Any) -> Iterator[Any]:
    """Yield the update itself and those before its edits, newest first."""
    while update is not None:
        yield update
        update = update._earlier_update


def fitted_on_same_rows(update: Any, reader: Any) -> Any:
    """Return the newest update whose points were searched for on the rows that `reader` read.

    None where the points are new to these rows.
    """
    for one in earlier_updates(update):
        is_searched = not one.edits_ or one.edits_[-1].refit
        digests = (getattr(each, "_scores_digest", None) for each in (one, reader))
        if is_searched and len(set(digests)) == 1 and one._n_fit_rows == reader._n_fit_rows:
            return one
    return None


# ---------------------------------------------------------------------------------------------
# Rows of the fit


def is_known(searched: Any) -> bool:
    """Return whether it is known what a search loses on new people."""
    return not np.isnan(searched.expected_fairness_)


def tightened(problem: FitProblem, searched: Any) -> FitProblem:
    """Return the problem whose bounds that stand include what a search loses on new people."""
    lost = [_lost_by(searched, one) for one in problem.standing]
    pairs = zip(problem.standing, lost, strict=True)
    return problem.with_standing(tuple(s._replace(bound=s.bound - part) for s, part in pairs))


def carried_expectation(
    problem: FitProblem, outcome: SearchOutcome, searched: Any, target: float
) -> Expectation:
    """Return what is expected if new people lose as much as with the update that was searched."""
    constraint, internal = problem.constraint, searched.internal_target_
    decisions = problem.rows.base.decisions ^ changed_rows(problem, outcome)
    fairness, change_rate, accuracy = measure(constraint, problem.rows, decisions)
    asked = searched.fairness_  # what the search had to reach on these rows, or what it reached
    if constraint.is_met(searched.fairness_, internal):
        asked = internal
    lost = _worse(constraint.higher_is_fairer, searched.expected_fairness_ - asked)
    keeps_internal = searched.reached_ and bool(constraint.is_met(fairness, internal))
    expected = fairness + lost
    standing = tuple(
        value + _lost_by(searched, one)
        for one, value in zip(
            problem.standing, problem.compared.standing_values(decisions), strict=True
        )
    )
    figures = ExpectedFigures(
        # Rounding must not put an update below a target that its internal target stands for.
        fairness=_fairer(constraint, expected, target) if keeps_internal else expected,
        change_rate=max(change_rate + searched.expected_change_rate_ - searched.change_rate_, 0.0),
        accuracy=accuracy + searched.expected_accuracy_ - searched.accuracy_,
        spread=Spread(**searched.expected_spread_),
        standing=standing,
    )
    is_reached = bool(constraint.is_met(figures.fairness, target))
    return Expectation(internal, figures, is_reached, is_carried=True)


def _lost_by(searched: Any, one: Standing) -> float:
    """Return by how much a constraint that stands was worse on new people than on the fit rows."""
    name = one.constraint.name
    difference = searched.expected_values_[name] - searched.values_[name]
    return _worse(one.constraint.higher_is_fairer, difference)


def _worse(higher_is_fairer: bool, difference: float) -> float:
    """Return a difference where it is for the worse, else 0."""
    return min(difference, 0.0) if higher_is_fairer else max(difference, 0.0)


def _fairer(constraint: Any, value: float, other: float) -> float:
    return float(value if constraint.is_met(value, other) else other)


# ---------------------------------------------------------------------------------------------
# Other rows


def offset_on_folds(problem: FitProblem, search: Search) -> FoldDirections:
    """Return directions whose offset for a target is determined without each fold.

    `search` returns the direction for the rows outside a fold: always the same one, unless terms
    are fitted again.
    """
    fold = draw_folds(problem)
    parts = []
    for number in range(N_FOLDS):
        inner = without_fold(problem, fold, number)
        outcome, held_out = search(inner), np.flatnonzero(fold == number)
        known = inner.terms.total(outcome.points, 0.0)
        eta = problem.terms.take(held_out).total(outcome.points, 0.0)
        parts.append(FoldDirection(inner, outcome, known, held_out, eta))
    return FoldDirections(problem, fold, parts)


def expected_as_given(problem: FitProblem, outcome: SearchOutcome, target: float) -> Expectation:
    """Return what is expected of points and an offset that are both new to these rows."""
    decisions: NDArray[np.bool_] = problem.rows.base.decisions ^ changed_rows(problem, outcome)
    figures = figures_on_folds(problem, decisions, draw_folds(problem), is_adapted=False)
    return Expectation(target, figures, bool(problem.constraint.is_met(figures.fairness, target)))


def attained(
    problem: FitProblem,
    outcome: SearchOutcome,
    directions: FoldDirections,
    expectation: Expectation,
    target: float,
) -> Expectation:
    """Return the expectation of the fairness that an offset attains where it misses its target."""
    if outcome.violation <= 0:
        return expectation
    decisions = problem.rows.base.decisions ^ changed_rows(problem, outcome)
    figures = directions.figures(problem.rows.fairness(problem.constraint, decisions))
    is_reached = bool(problem.constraint.is_met(figures.fairness, target))
    return replace(expectation, figures=figures, is_reached=is_reached)
