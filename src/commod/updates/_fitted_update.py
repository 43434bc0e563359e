"""Fit the update that a `ControlledDebiaser` asks for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from commod._solvers.search.threads import single_blas_thread
from commod.updates._base_optimism import optimism_text
from commod.updates._budget import fit_budget
from commod.updates._controlled_problem import problems_for_new_rows
from commod.updates._expectation import Expectation, is_near_parity
from commod.updates._fewest import with_fewest
from commod.updates._gates import KeptUpdate, fit_target
from commod.updates._new_rows import (
    ExpectedUpdate,
    expect_as_it_is,
    fit_new_rows,
    has_enough_rows,
)
from commod.updates._problem import FitProblem
from commod.updates._search import SearchOutcome
from commod.updates._soft_cells import SoftCells
from commod.updates._standing_bounds import fit_with_standing
from commod.updates._whole_points import merge_bins
from commod.updates._whole_update import (
    fit_whole,
    fit_whole_as_it_is,
    fit_whole_on_new_rows,
    points_price,
)


class FittedUpdate(NamedTuple):
    """The update that a `ControlledDebiaser` asks for, and the problem that it solves.

    `expectation` is None where the target is one on the fit rows. `optimism` says in words that the
    base model has seen the fit rows; it is empty where nothing speaks for that. `points_price` is
    the changes of whole-number points over those of free points; NaN for free points.
    """

    problem: FitProblem
    outcome: SearchOutcome
    expectation: Expectation | None = None
    optimism: str = ""
    points_price: float = float("nan")


def fit_update(update: Any, problem: FitProblem) -> FittedUpdate:
    """Return the update that a `ControlledDebiaser` asks for, and what is expected of it.

    One BLAS thread computes it: sums of several threads are rounded differently, so that the update
    would depend on the number of cores.
    """
    with single_blas_thread:
        return _fit_update(update, problem)


def _fit_update(update: Any, problem: FitProblem) -> FittedUpdate:
    is_on_new_rows = update.target_on == "new_rows"
    if not is_on_new_rows or not has_enough_rows(problem):
        if update.points == "integers":
            kept = fit_whole(update, problem)
        else:
            kept = fit_budget(problem) if update._is_budget else fit_target(problem, update._target)
        unknown = Expectation.unknown(update._target) if is_on_new_rows else None
        return _fitted(update, problem, kept, unknown)
    problems = problems_for_new_rows(update, problem)
    fit = partial(_fit_expected, update, problem)
    kept, expectation, _ = fit_with_standing(problems, fit)
    soft = problems[0].soft_cells
    assert isinstance(soft, SoftCells)
    optimism = optimism_text(update, problem.rows, soft.models)
    return _fitted(update, problems[0], kept, expectation, optimism)


def _fit_expected(
    update: Any, on_true_cells: FitProblem, problems: Sequence[FitProblem]
) -> ExpectedUpdate:
    """Return the update of one of the problems, and what is expected of it.

    A target near parity is searched for `on_true_cells`, because no stricter one is left.
    """
    target, is_whole = update._target, update.points == "integers"
    if update._is_budget:
        if is_whole:
            return fit_whole_as_it_is(update, problems[0])
        return expect_as_it_is(fit_budget(problems[0]), target)
    if is_near_parity(problems[0].constraint, target):
        strict = on_true_cells.with_standing(problems[0].standing)
        if is_whole:
            return fit_whole_as_it_is(update, strict)
        return expect_as_it_is(fit_target(strict, target), target)
    return fit_whole_on_new_rows(update, problems) if is_whole else fit_new_rows(problems, target)


def _fitted(
    update: Any,
    problem: FitProblem,
    kept: KeptUpdate,
    expectation: Expectation | None,
    optimism: str = "",
) -> FittedUpdate:
    """Return the fitted update; whole-number points get their lines and their price."""
    if not kept.outcome.is_whole:
        outcome = with_fewest(kept.found, kept.problem, kept.outcome)
        return FittedUpdate(kept.problem, outcome, expectation, optimism)
    merged, outcome = merge_bins(kept.problem, kept.outcome)
    target = update._target if expectation is None else expectation.internal_target
    is_priced = not update._is_budget
    price = points_price(problem, merged, outcome, target) if is_priced else float("nan")
    return FittedUpdate(merged, outcome, expectation, optimism, price)


def with_expected_standing(update: Any, problem: FitProblem) -> FitProblem:
    """Return the problem with bounds that stand so tight that they are expected on new people.

    They are found at the update's own target, and a frontier keeps them for all targets.
    """
    if not problem.standing:
        return problem
    fit = partial(_fit_expected, update, problem)
    tightened = fit_with_standing(problems_for_new_rows(update, problem), fit)
    return problem.with_standing(tightened.standing)
