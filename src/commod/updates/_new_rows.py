"""Fit an update whose target holds in expectation on new people.

1. Fit updates for the stated target: on soft cells and, for constraints on errors, also on true
   cells and with other terms. Keep the one with the fewest expected changes.
2. Find its internal target on rows that are new to its direction (`_expectation.py`).
3. Search again for the internal target, and find the internal target of the new direction. Only
   the offset moves there. Where this takes far more changes, search again for that target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from commod.updates._cross_fit import (
    Folds,
    NewRows,
    figures_on_folds,
    with_target,
)
from commod.updates._expectation import Expectation, expect_target, is_near_parity
from commod.updates._gates import KeptUpdate, fit_fewest, spend
from commod.updates._outside_rows import OutsideRows
from commod.updates._problem import FitProblem
from commod.updates._repeat import refit_target
from commod.updates._search import changed_rows
from commod.updates._soft_cells import N_FOLDS, draw_folds

MAX_SEARCHES = 4  # for internal targets, each for that of the direction before
MIN_CELL_ROWS = 2 * N_FOLDS  # with fewer, folds say nothing about the rate of the cell


class ExpectedUpdate(NamedTuple):
    """An update and what is expected of it on new people."""

    kept: KeptUpdate
    expectation: Expectation


def fit_new_rows(problems: Sequence[FitProblem], target: float) -> ExpectedUpdate:
    """Return the update of one of the problems that is expected to reach the target best.

    The problems have the same rows and differ in their terms and cells. The first one chooses the
    direction of changes.
    """
    several = len(problems) > 1
    kept = best_update(problems, target) if several else fit_fewest(problems[0], target)
    kept = spend(kept, target)
    problem = kept.problem
    if not changed_rows(problem, kept.outcome).any() or kept.outcome.violation > 0:
        return expect_as_it_is(kept, target)
    outside = outside_rows(kept)
    if outside is not None:
        return moved_update(
            kept, outside, expect_target(outside, problem.constraint, target), target
        )
    folds = Folds(kept, draw_folds(problem))
    expectation = expect_target(folds.directions(target), problem.constraint, target)
    if expectation.internal_target == target:
        return ExpectedUpdate(kept, expectation)
    return searched_update(kept, folds, expectation.internal_target, target)


def searched_update(
    kept: KeptUpdate, folds: Folds, internal: float, target: float
) -> ExpectedUpdate:
    """Return the update whose direction is searched for an internal target.

    The new direction has an internal target of its own. If its offset needs more changes for that
    than `sparsity` and `borderline` allow, the direction is searched for that target instead.
    """
    problem = kept.problem
    most = (1 + problem.sparsity) * (1 + problem.borderline)
    found: list[ExpectedUpdate] = []
    for _ in range(MAX_SEARCHES):
        stricter = refit_target(kept, internal)
        directions = folds.directions(internal)
        expectation = expect_target(directions, problem.constraint, target)
        found.append(moved_update(stricter, directions, expectation, target))
        if _n_changed(found[-1].kept) <= most * _n_changed(stricter):
            break
        internal = expectation.internal_target
    return min(found, key=lambda one: (not one.expectation.is_reached, _n_changed(one.kept)))


def _n_changed(kept: KeptUpdate) -> int:
    return kept.problem.rows.count(changed_rows(kept.problem, kept.outcome))


def moved_update(
    kept: KeptUpdate, new_rows: NewRows, expectation: Expectation, target: float
) -> ExpectedUpdate:
    """Return the update with the offset for its internal target.

    Where caps stop it before, the expectation is that of the fairness that it attains.
    """
    problem = kept.problem
    moved = with_target(kept, expectation.internal_target)
    if moved.outcome.violation > 0:
        decisions = problem.rows.base.decisions ^ changed_rows(problem, moved.outcome)
        figures = new_rows.figures(problem.rows.fairness(problem.constraint, decisions))
        is_reached = bool(problem.constraint.is_met(figures.fairness, target))
        expectation = replace(expectation, figures=figures, is_reached=is_reached)
    return ExpectedUpdate(moved, replace(expectation, n_outside=_n_outside(new_rows)))


def _n_outside(new_rows: NewRows) -> int | None:
    """Return the number of rows outside the search sample; None for folds."""
    return len(new_rows) if isinstance(new_rows, OutsideRows) else None


def has_enough_rows(problem: FitProblem) -> bool:
    """Return whether every rate that is compared counts enough rows for folds."""
    return bool(problem.compared.n_counted.min() >= MIN_CELL_ROWS)


def best_problem(problems: Sequence[FitProblem], target: float) -> FitProblem:
    """Return the problem whose update is expected to need the fewest changes."""
    first = problems[0]
    is_strict = is_near_parity(first.constraint, target)
    if len(problems) == 1 or is_strict or not has_enough_rows(first):
        return first
    best = best_update(problems, target).problem
    return best.with_direction(first.may_raise, first.may_lower)


def best_update(problems: Sequence[FitProblem], target: float) -> KeptUpdate:
    """Return the update that is expected to need the fewest changes, with the fewest changes."""
    first = fit_fewest(problems[0], target)
    moves = first.problem.may_raise, first.problem.may_lower
    others = [fit_fewest(problem.with_direction(*moves), target) for problem in problems[1:]]
    return min((first, *others), key=lambda kept: _rank(kept, target))


def _rank(kept: KeptUpdate, target: float) -> tuple[bool, bool, float]:
    """Return what updates are compared by: whether the target is reached and expected, changes.

    Updates that are not expected to reach it are compared by what is missing.
    """
    problem = kept.problem
    if kept.outcome.violation > 0:
        return True, True, kept.outcome.violation
    folds = Folds(kept, draw_folds(problem))
    new_rows = outside_rows(kept) or folds.directions(target)
    expectation = expect_target(new_rows, problem.constraint, target)
    figures = expectation.figures
    if expectation.is_reached:
        return False, False, figures.change_rate
    return False, True, float(problem.constraint.shortfall(figures.fairness, target))


def expect_as_it_is(
    kept: KeptUpdate, target: float, new_rows: NewRows | None = None
) -> ExpectedUpdate:
    """Return an update that no internal target can improve, and what is expected of it.

    `new_rows` are rows that are new to the update; None for those of a search with free points.
    """
    problem, changed = kept.problem, changed_rows(kept.problem, kept.outcome)
    decisions = problem.rows.base.decisions ^ changed
    n_outside = None
    if changed.any():
        fairness = problem.rows.fairness(problem.constraint, decisions)
        if new_rows is None:
            folds = Folds(kept, draw_folds(problem))
            new_rows = outside_rows(kept) or folds.directions(kept.found.value)
        figures, n_outside = new_rows.figures(fairness), _n_outside(new_rows)
    else:
        figures = figures_on_folds(problem, decisions, draw_folds(problem), is_adapted=False)
    is_reached = bool(problem.constraint.is_met(figures.fairness, target))
    return ExpectedUpdate(kept, Expectation(target, figures, is_reached, n_outside))


def outside_rows(kept: KeptUpdate) -> OutsideRows | None:
    """Return the rows outside the search sample; None where there are none, or too few."""
    return None if kept.found.sample.is_all_rows else OutsideRows.of(kept)
