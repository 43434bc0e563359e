"""Two halves of the rows, and the order in which updates are tested on the second."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commod.updates._search import Search, Update
from commod.updates.base import FitRows

__all__ = ["fairest_first", "halves", "take"]


def halves(
    search: Search, random_state: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return two halves of the rows, stratified by group and, where known, label."""
    rows = search.rows
    strata = rows.groups.codes * 2
    if rows.label is not None:
        strata = strata + rows.label
    order = np.lexsort([random_state.random_sample(len(rows)), strata])
    return np.sort(order[::2]), np.sort(order[1::2])


def take(rows: FitRows, index: NDArray[np.intp]) -> FitRows:
    """Return some of the rows."""
    base = type(rows.base)(rows.base.proba[index], rows.base.threshold)
    groups = type(rows.groups)(rows.groups.codes[index], rows.groups.labels)
    label = None if rows.label is None else rows.label[index]
    columns = [column.take(index) for column in rows.columns]
    weight = rows.weight[index]
    return FitRows(columns, base, label, groups, rows.in_constraint[index], weight)


def fairest_first(search: Search, models: list[Update], is_floor: bool) -> list[Update]:
    """Return the models in the order in which promises are tested, one for each fairness."""
    seen: dict[float, tuple[int, Update]] = {}
    base = search.rows.base.decisions
    for update in models:
        changed = (search.eta(update) > 0) & search.free
        value = search.rows.fairness(search.constraint, base ^ changed)
        if np.isnan(value):
            continue
        cost = int(changed.sum())
        if value not in seen or cost < seen[value][0]:
            seen[value] = (cost, update)
    ordered = sorted(seen, reverse=is_floor)
    kept: list[Update] = []
    fewest = np.inf
    for value in ordered:  # a model that changes more than a fairer one would never be wanted
        cost, update = seen[value]
        if cost < fewest:
            kept.append(update)
            fewest = cost
    return kept or models[:1]  # where fairness is undefined throughout
