"""Test promises on held-out rows: split the rows, order the updates, choose one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._statistics.promises import promise_along
from commod.metrics._constraint import Constraint
from commod.updates._fit_rows import FitRows
from commod.updates._problem import FitProblem
from commod.updates._search import SearchOutcome, changed_rows


def split_in_halves(
    rows: FitRows, random_state: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return two halves of the rows, stratified by group and, where it is known, true label."""
    strata = rows.groups.codes * 2
    if rows.label is not None:
        strata = strata + rows.label
    order = np.lexsort([random_state.random_sample(len(rows)), strata])
    return np.sort(order[::2]), np.sort(order[1::2])


def take_fit_rows(rows: FitRows, index: NDArray[np.intp]) -> FitRows:
    """Return the rows `index` (m,)."""
    return FitRows(
        columns=[column.take(index) for column in rows.columns],
        base=rows.base.take(index),
        label=None if rows.label is None else rows.label[index],
        groups=type(rows.groups)(rows.groups.codes[index], rows.groups.labels),
        in_constraint=rows.in_constraint[index],
        weight=rows.weight[index],
        group_names=rows.group_names,
        change_cost=None if rows.change_cost is None else rows.change_cost[index],
    )


def fairest_first(problem: FitProblem, outcomes: Sequence[SearchOutcome]) -> list[SearchOutcome]:
    """Return the updates in the order in which promises are tested, each cheaper than the last.

    Of updates with equal fairness the cheapest stays. An update that changes more than a fairer
    one is left out. Where fairness is undefined for all, the first update is returned.
    """
    base, constraint = problem.rows.base.decisions, problem.constraint
    tested = []
    for outcome in outcomes:
        changed = changed_rows(problem, outcome)
        fairness = problem.rows.fairness(constraint, base ^ changed)
        if not np.isnan(fairness):
            unfairness = -fairness if constraint.higher_is_fairer else fairness
            tested.append((unfairness, int(changed.sum()), outcome))
    kept: list[SearchOutcome] = []
    fewest = np.inf
    for _, n_changed, outcome in sorted(tested, key=lambda entry: entry[:2]):
        if n_changed < fewest:
            kept.append(outcome)
            fewest = n_changed
    return kept or list(outcomes[:1])


class Choice(NamedTuple):
    """The update to keep: its position among those tested, None for no change at all.

    `n_tested` promises were tested; the first failure ended the tests.
    """

    kept: int | None
    is_promised: bool
    n_tested: int


class PromiseTest(NamedTuple):
    """How a promise was tested: the problem on all rows, the size of the half to fit on.

    `n_rows_needed` is the number of rows that the promise would need.
    """

    problem: FitProblem
    n_fit_rows: int
    n_rows_needed: float
    choice: Choice


Table = tuple[NDArray[np.int64], NDArray[np.int64]]  # sizes and positives of the cells


def choose_update(
    constraint: Constraint,
    tables: Sequence[Table],
    unchanged: Table,
    target: float,
    confidence: float,
) -> Choice:
    """Return which update to keep.

    `tables` are those of the updates on the held-out rows, the fairest on the fit half first.
    `unchanged` is the table of the base model. With a promise, the cheapest promised update that
    is not less fair than the base model is kept; if there is none, the cheapest promised one. All
    promises up to the first failure hold together, so any of them may be chosen. Without a
    promise, the first update is kept only if it is fairer than the base model.
    """
    base = constraint.value_from_counts(*unchanged)
    values = [constraint.value_from_counts(*table) for table in tables]
    last = promise_along(constraint, tables, target, confidence)
    if last is None:
        is_fairer = (
            base is not None and values[0] is not None and constraint.shortfall(values[0], base) < 0
        )
        return Choice(0 if is_fairer else None, is_promised=False, n_tested=1)
    kept = [
        i
        for i, value in enumerate(values[: last + 1])
        if base is None or constraint.is_met(value, base)
    ]
    return Choice(max(kept, default=last), is_promised=True, n_tested=last + 2)
