"""Give fit rows the strata of constraints that are conditional on a column of X."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.strata import read_condition
from commod.metrics._cells import Strata, strata_of
from commod.metrics._constraint import Constraint
from commod.updates._fit_rows import FitRows

Mask = NDArray[np.bool_]
Codes = NDArray[np.intp]


def with_strata(rows: FitRows, constraints: Sequence[Constraint], X: Any) -> FitRows:
    """Return the fit rows with the strata of all constraints that have a condition."""
    if all(constraint.within is None for constraint in constraints):
        return rows
    group, n_groups = rows.large_groups
    people = None if rows.people is None else np.rint(rows.people).astype(np.intp)
    strata = read_strata(constraints, X, group, n_groups, rows.label, rows.weight > 0, people)
    return replace(rows, strata=strata)


def read_strata(
    constraints: Sequence[Constraint],
    X: Any,
    group: Codes,
    n_groups: int,
    label: Mask | None,
    is_counted: Mask | None = None,
    n_people: Codes | None = None,
) -> dict[Constraint, Strata]:
    """Return the strata of each constraint that has a condition.

    `group` (n,) is −1 for people whom no constraint counts. A row stands for one person, or for
    `n_people` (n,).
    """
    strata = {}
    for constraint in constraints:
        if constraint.within is None:
            continue
        column = read_condition(X, constraint.within.column)
        strata[constraint] = strata_of(
            constraint, column.codes, column.labels, group, n_groups, label, is_counted, n_people
        )
    return strata
