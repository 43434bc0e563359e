"""Fit a `ControlledDebiaser` with `confidence`: choose what to test, test it, keep one update.

1. Split the rows in two halves.
2. On the fit half, choose terms and cells as for new rows (`_new_rows.py`), and fit updates from
   the target up to parity.
3. On the held-out half, test their promises, the fairest update on the fit half first.
4. Keep the last update before the first failure. If the first test fails, keep the first update if
   it is fairer than the base model on the held-out half; otherwise, keep r = 1.

Every choice before the tests uses the fit half only. The held-out half is new to all of them, so
they do not change the error of a promise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from commod._solvers.search.threads import single_blas_thread
from commod._statistics.promises import promised_fairness, rows_factor
from commod.exceptions import InputError
from commod.updates._controlled_problem import problems_for_new_rows
from commod.updates._expectation import strictest_target
from commod.updates._fitted_update import FittedUpdate
from commod.updates._held_out import (
    PromiseTest,
    Table,
    choose_update,
    fairest_first,
    is_degenerate,
    split_in_halves,
    take_fit_rows,
)
from commod.updates._new_rows import best_problem
from commod.updates._path import fit_path
from commod.updates._problem import FitProblem
from commod.updates._progress import progress_bar
from commod.updates._search import no_change, price_of_target

N_TESTED_TARGETS = 24  # between the target and parity, for the updates that a promise is tested on


def fit_promise(update: Any, problem: FitProblem) -> None:
    """Store in a `ControlledDebiaser` the cheapest update whose promise holds."""
    random_state = check_random_state(update.random_state)
    with single_blas_thread:  # as in a fit without promise, see `fit_update`
        fit_half, held_out = _halves(update, problem, random_state)
    constraint, target = update._constraint, update._target
    targets = np.linspace(target, strictest_target(constraint, target), N_TESTED_TARGETS)
    with progress_bar("ControlledDebiaser", update.progress, "models") as report:
        fit_half, path = fit_path(fit_half, targets.tolist(), report)
    update.direction_ = fit_half.direction
    held_out = update._problem(held_out.rows, fit_half.encoding)  # in this direction
    tested = fairest_first(fit_half, [outcome for (outcome,) in path])
    base = held_out.rows.base.decisions
    tables: list[Table] = []
    degenerate, change_rates = [], []
    for outcome in tested:
        update._store_update(fit_half, outcome)
        decisions = update._decisions_on(held_out)
        tables.append(held_out.counts(decisions))
        degenerate.append(is_degenerate(base, decisions))
        change_rates.append(float(np.mean(base != decisions)))
    unchanged = held_out.counts(base)
    confidence = float(update.confidence)
    choice = choose_update(constraint, tables, unchanged, target, confidence, degenerate)
    update.promised_ = choice.is_promised
    kept = no_change(tested[0]) if choice.kept is None else tested[choice.kept]
    update._store_update(fit_half, kept)
    update.multiplier_ = price_of_target(fit_half, kept)
    bounds = [promised_fairness(constraint, *table, confidence) for table in tables]
    update.path_ = [
        {
            **outcome.steps[-1]._asdict(),
            "step": "tested" if i < choice.n_tested else "not tested",
            "promised_fairness": bounds[i],
        }
        for i, outcome in enumerate(tested)
    ]
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
    update._store_figures(held_out, FittedUpdate(fit_half, kept), test)


def _halves(
    update: Any, problem: FitProblem, random_state: np.random.RandomState
) -> tuple[FitProblem, FitProblem]:
    """Return the problem on the half to fit on, and on the held-out half."""
    sizes, _ = problem.counts(problem.rows.base.decisions)
    if (sizes < 2).any():
        raise InputError(
            "confidence needs rows of every group in both halves, but a group has only "
            f"{sizes.min()} that counts. Raise min_group_size, merge groups or add rows.",
        )
    first, second = split_in_halves(problem.rows, random_state)
    # Terms are learned from the fit half, so `min_category_size` counts people of that half.
    fit_half = update._problem(take_fit_rows(problem.rows, first))
    fit_half = best_problem(problems_for_new_rows(update, fit_half), update._target)
    held_out = update._problem(take_fit_rows(problem.rows, second), fit_half.encoding)
    return fit_half, held_out
