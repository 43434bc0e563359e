"""Read the columns of X that constraints are conditional on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.codes import Coded, code_array
from commod._data.columns import Column, read_columns
from commod._text import did_you_mean, list_names, n_of, shown
from commod.exceptions import InputError
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
    strata = read_strata(constraints, X, group, n_groups, rows.label, rows.weight > 0)
    return replace(rows, strata=strata)


def read_strata(
    constraints: Sequence[Constraint],
    X: Any,
    group: Codes,
    n_groups: int,
    label: Mask | None,
    is_counted: Mask | None = None,
) -> dict[Constraint, Strata]:
    """Return the strata of each constraint that has a condition.

    `group` (n,) is −1 for people whom no constraint counts.
    """
    strata = {}
    for constraint in constraints:
        if constraint.within is None:
            continue
        coded = read_condition(X, constraint.within.column)
        codes = coded.codes.astype(np.intp)
        strata[constraint] = strata_of(
            constraint, codes, coded.values, group, n_groups, label, is_counted
        )
    return strata


def read_condition(X: Any, name: str) -> Coded:
    """Return the values of a column of X; missing values are refused."""
    columns = {column.name: column for column in read_columns(X, only={name})}
    names = list(columns)
    if name not in columns:
        raise InputError(
            f"A constraint is within {shown(name)}, but X has no such column (columns: "
            f"{list_names(names)}).{did_you_mean(name, names)}",
            parameter="constraints",
        )
    column = columns[name]
    n_missing = int(column.is_missing().sum())
    if n_missing:
        raise InputError(
            f"Column {shown(name)}, which a constraint is within, has "
            f"{n_of(n_missing, 'missing value')} in {len(column):,} rows. Give them a value of "
            "their own, such as 'unknown', or drop these rows.",
            parameter="constraints",
        )
    return _coded(column)


def _coded(column: Column) -> Coded:
    if column.kind == "numeric":
        return code_array(column.values)
    return Coded(column.values, list(column.categories))
