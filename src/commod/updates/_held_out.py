"""Split rows into a half to fit on and a held-out half, and order updates for their test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

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
    base = type(rows.base)(rows.base.proba[index], rows.base.threshold)
    groups = type(rows.groups)(rows.groups.codes[index], rows.groups.labels)
    label = None if rows.label is None else rows.label[index]
    columns = [column.take(index) for column in rows.columns]
    weight = rows.weight[index]
    return FitRows(columns, base, label, groups, rows.in_constraint[index], weight)


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
