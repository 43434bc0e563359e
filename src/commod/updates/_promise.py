"""Fit a `ControlledDebiaser` with `confidence`: choose what to test, test it, keep one update.

1. Split the rows in two halves, by their hash.
2. On the fit half, find points for the target, and count cuts from the target up to parity.
3. On the held-out half, test their promises, the fairest update on the fit half first.
4. Keep the last update before the first failure. If the first test fails, keep the first update if
   it is fairer than the base model on the held-out half; otherwise, keep r = 1.

Every choice before the tests uses the fit half only. The held-out half is new to all of them, so
they do not change the error of a promise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from commod._evidence.cut import evidence, path_of, stop_on
from commod._evidence.search import costs_at
from commod._evidence.task import with_bounds
from commod._solvers.threads import single_blas_thread
from commod._statistics.promises import promised_fairness, rows_factor
from commod.exceptions import InputError
from commod.updates._found_update import FittedUpdate, fit_direction, has_enough_people
from commod.updates._held_out import (
    PromiseTest,
    Table,
    choose_update,
    fairest_first,
    is_degenerate,
    split_in_halves,
)
from commod.updates._problem import FitProblem

N_TESTED_TARGETS = 24  # between the target and parity, for the updates that a promise is tested on


def fit_promise(update: Any, problem: FitProblem) -> None:
    """Store in a `ControlledDebiaser` the cheapest update whose promise holds."""
    with single_blas_thread:
        fit_half, held_out = _halves(update, problem)
        tested = fairest_first(cut_path(update, fit_half))
    constraint, target = update._constraint, update._target
    update.direction_ = tested[0].problem.direction
    held_out = update._problem(held_out.rows, fit_half.encoding)  # in this direction
    base = held_out.rows.base.decisions
    tables: list[Table] = []
    degenerate, change_rates = [], []
    for one in tested:
        update._store_update(one)
        decisions = update._decisions_on(held_out)
        tables.append(held_out.counts(decisions))
        degenerate.append(is_degenerate(base, decisions))
        change_rates.append(float(np.mean(base != decisions)))
    unchanged = held_out.counts(base)
    confidence = float(update.confidence)
    choice = choose_update(constraint, tables, unchanged, target, confidence, degenerate)
    update.promised_ = choice.is_promised
    kept = without_changes(tested[0]) if choice.kept is None else tested[choice.kept]
    update._store_update(kept)
    bounds = [promised_fairness(constraint, *table, confidence) for table in tables]
    table: Table = unchanged if choice.kept is None else tables[choice.kept]
    factor = rows_factor(constraint, *table, target, confidence)
    observed = constraint.value_from_counts(*tables[0])
    test = PromiseTest(
        problem=update._problem(problem.rows, fit_half.encoding),  # the terms that have points
        n_fit_rows=len(fit_half.rows),
        n_rows_needed=factor * 2 * len(held_out.rows),
        choice=choice,
        observed=float("nan") if observed is None else float(observed),
        promised=bounds[0],
        change_rate=change_rates[0],
    )
    update._store_figures(held_out, kept, test)


def cut_path(update: Any, problem: FitProblem) -> list[FittedUpdate]:
    """Return updates with the same points, and cuts from the target up to near parity."""
    fitted = fit_direction(update, problem, is_new=has_enough_people(problem))
    task, found, constraint = fitted.task, fitted.found, problem.constraint
    cost = costs_at(task, found.nearness, found.mean_distance)
    path = path_of(task, evidence(task, found.card.counted(task), cost))
    ends = update._target, constraint.near_ideal
    ends = ends if constraint.shortfall(*ends) < 0 else (ends[0], constraint.ideal)
    updates = [fitted]
    for target in np.linspace(*ends, N_TESTED_TARGETS).tolist():
        bounds = (target, *task.bounds[1:])
        stop = stop_on(replace(task, required=with_bounds(task.required, bounds)), path)
        updates.append(fitted._replace(found=replace(found, cut=stop.cut, stop=stop)))
    return updates


def without_changes(fitted: FittedUpdate) -> FittedUpdate:
    """Return the update that changes no decision."""
    return fitted._replace(found=replace(fitted.found, cut=np.inf))


def _halves(update: Any, problem: FitProblem) -> tuple[FitProblem, FitProblem]:
    """Return the problem on the half to fit on, and on the held-out half."""
    sizes, _ = problem.counts(problem.rows.base.decisions)
    if (sizes < 2).any():
        raise InputError(
            "confidence needs rows of every group in both halves, but a group has only "
            f"{sizes.min()} that counts. Raise min_group_size, merge groups or add rows.",
        )
    first, second = split_in_halves(problem.rows)
    # Terms are learned from the fit half, so `min_category_size` counts people of that half.
    fit_half = update._problem(problem.rows.take(first))
    held_out = update._problem(problem.rows.take(second), fit_half.encoding)
    return fit_half, held_out
