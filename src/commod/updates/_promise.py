"""Fit a `ControlledDebiaser` with `confidence`: choose what to test, test it, keep one update.

1. Split the rows in two halves, by their hash.
2. On the fit half, find points for the target, and count cuts from the target up to parity.
3. On the held-out half, test their promises, the fairest update on the fit half first.
4. Keep the last update before the first failure. If the first test fails, nothing is promised, and
   the fit goes on as without `confidence`: the fairest update is the largest one.

Every choice before the tests uses the fit half only. The held-out half is new to all of them, so
they do not change the error of a promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._solvers.threads import single_blas_thread
from commod._statistics.promises import promise_along, promised_fairness, rows_factor
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint
from commod.updates._fit_rows import FitRows
from commod.updates._found_update import (
    FittedUpdate,
    card_decisions,
    fit_direction,
    found_card,
)
from commod.updates._problem import FitProblem

Failure = Literal["", "degenerate", "unfair", "too few rows"]
Table = tuple[NDArray[np.int64], NDArray[np.int64]]  # sizes and positives of the cells

N_TESTED_TARGETS = 24  # between the target and parity, for the updates that a promise is tested on


def fit_promise(problem: FitProblem) -> tuple[FittedUpdate, PromiseTest]:
    """Return the cheapest update whose promise holds, and how promises were tested.

    Where none holds, the test says why, and the update is not one to hand over.
    """
    with single_blas_thread:
        fit_half, held_out = _halves(problem)
        tested = fairest_first(cut_path(fit_half))
    constraint, asked = problem.constraint, problem.asked
    assert asked.confidence is not None
    first = tested[0].problem  # all of them have its direction
    held_out = held_out.with_direction(first.may_raise, first.may_lower)
    base = held_out.rows.base.decisions
    decisions = [card_decisions(held_out, found_card(one.problem, one.found)) for one in tested]
    tables: list[Table] = [held_out.compared.counts(decided) for decided in decisions]
    degenerate = [held_out.rows.is_degenerate(decided) for decided in decisions]
    unchanged: Table = held_out.compared.counts(base)
    confidence = float(asked.confidence)
    target = asked.target
    kept, failure = choose_update(constraint, tables, unchanged, target, confidence, degenerate)
    table = unchanged if kept is None else tables[kept]
    factor = rows_factor(constraint, *table, target, confidence)
    observed = constraint.value_from_counts(*tables[0])
    return tested[kept or 0], PromiseTest(
        held_out=held_out,
        problem=first.on(problem.rows, fit_half.encoding),  # the terms that have points
        failure=failure,
        n_rows_needed=factor * 2 * len(held_out.rows),
        observed=float("nan") if observed is None else float(observed),
        promised=promised_fairness(constraint, *tables[0], confidence),
        change_rate=float(np.mean(base != decisions[0])),
    )


def cut_path(problem: FitProblem) -> list[FittedUpdate]:
    """Return updates with the same points, and cuts from the target up to near parity."""
    target, constraint = problem.asked.target, problem.constraint
    fitted = fit_direction(problem, target, for_new=problem.has_enough_people)
    ends = target, constraint.near_ideal
    ends = ends if constraint.shortfall(*ends) < 0 else (ends[0], constraint.ideal)
    targets = np.linspace(*ends, N_TESTED_TARGETS).tolist()
    path = fitted.path
    return [fitted, *(fitted.at_target(target, path) for target in targets)]


def _halves(problem: FitProblem) -> tuple[FitProblem, FitProblem]:
    """Return the problem on the half to fit on, and on the held-out half."""
    sizes, _ = problem.compared.counts(problem.rows.base.decisions)
    if (sizes < 2).any():
        raise InputError(
            "confidence needs rows of every group in both halves, but a group has only "
            f"{sizes.min()} that counts. Raise min_group_size, merge groups or add rows.",
        )
    first, second = split_in_halves(problem.rows)
    # Terms are learned from the fit half, so `min_category_size` counts people of that half.
    fit_half = problem.on(problem.rows.take(first))
    return fit_half, problem.on(problem.rows.take(second), fit_half.encoding)


# ---------------------------------------------------------------------------------------------
# Held-out rows


def split_in_halves(rows: FitRows) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return two halves of the rows, stratified by group and, where it is known, true label.

    The hash of a row decides its half, so the order of the rows does not matter.
    """
    strata = rows.groups.codes * 2
    if rows.label is not None:
        strata = strata + rows.label
    order = np.lexsort([rows.own_hashes, strata])
    return np.sort(order[::2]), np.sort(order[1::2])


def fairest_first(updates: Sequence[FittedUpdate]) -> list[FittedUpdate]:
    """Return the updates in the order in which promises are tested, each cheaper than the last.

    Of updates with equal fairness the cheapest stays. An update that changes more than a fairer
    one is left out, and so is a degenerate one while others remain. Where fairness is undefined
    for all, the first update is returned.
    """
    problem = updates[0].problem
    base, constraint = problem.rows.base.decisions, problem.constraint
    tested = []
    for one in updates:
        changed = one.changed
        fairness = problem.rows.fairness(constraint, base ^ changed)
        if not np.isnan(fairness):
            unfairness = -fairness if constraint.higher_is_fairer else fairness
            degenerate = problem.rows.is_degenerate(base ^ changed)
            tested.append((degenerate, unfairness, problem.rows.count(changed), one))
    kept: list[FittedUpdate] = []
    fewest = np.inf
    is_left_out = not all(degenerate for degenerate, *_ in tested)
    for degenerate, _, n_changed, one in sorted(tested, key=lambda entry: entry[:3]):
        if n_changed < fewest and not (degenerate and is_left_out):
            kept.append(one)
            fewest = n_changed
    return kept or list(updates[:1])


class PromiseTest(NamedTuple):
    """How a promise was tested on the `held_out` rows; `problem` is that of all rows.

    - `failure`: why the promise of the first update failed; empty where there is a promise.
    - `n_rows_needed`: the number of rows that the promise would need.
    - `observed`, `promised`: the fairness of the first tested update on the held-out rows, and its
      bound for new people. `change_rate`: its share of changes there.
    """

    held_out: FitProblem
    problem: FitProblem
    failure: Failure
    n_rows_needed: float
    observed: float
    promised: float
    change_rate: float


def choose_update(
    constraint: Constraint,
    tables: Sequence[Table],
    unchanged: Table,
    target: float,
    confidence: float,
    degenerate: Sequence[bool] = (),
) -> tuple[int | None, Failure]:
    """Return the position of the update to keep, None for no change, and why a promise failed.

    `tables` are those of the updates on the held-out rows, the fairest on the fit half first.
    `unchanged` is the table of the base model. With a promise, the cheapest promised update that
    is not less fair than the base model is kept; if there is none, the cheapest promised one. All
    promises up to the first failure hold together, so any of them may be chosen. Without a
    promise, the first update is kept only if it is fairer than the base model. `degenerate` updates
    fail, whatever their fairness is.
    """
    base = constraint.value_from_counts(*unchanged)
    values = [constraint.value_from_counts(*table) for table in tables]
    first_degenerate = [*degenerate, True].index(True) if degenerate else len(tables)
    last = promise_along(constraint, tables[:first_degenerate], target, confidence)
    if last is None:
        is_fairer = (
            base is not None and values[0] is not None and constraint.shortfall(values[0], base) < 0
        )
        failure: Failure = "too few rows"
        if first_degenerate == 0:
            failure = "degenerate"
        elif values[0] is None or not constraint.is_met(values[0], target):
            failure = "unfair"
        return (0 if is_fairer else None), failure
    kept = [
        i
        for i, value in enumerate(values[: last + 1])
        if base is None or constraint.is_met(value, base)
    ]
    return max(kept, default=last), ""
