"""Find the fewest changes of rows under any constraints: conditional, combined, or of new kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from commod.bounds._general import GeneralLimit, fewest_changes_of
from commod.bounds._levels import IntArray
from commod.bounds._tables import CountTable, allowed_changes, check_cells, read_table
from commod.exceptions import InputError
from commod.metrics._cells import CellTable, Strata
from commod.metrics._conditional import read_rows, strata_on_rows
from commod.metrics._constraint import missing_labels
from commod.metrics._requirements import Requirements


class RowData(NamedTuple):
    """Rows as users pass them."""

    y_true: Any
    y_pred: Any
    sensitive_features: Any
    control_features: Any


class GeneralChanges(NamedTuple):
    """A limit on rows, and how many people of each cell have a positive decision before (R, G)."""

    table: CountTable
    positives: IntArray
    limit: GeneralLimit | None


def fewest_changes_of_rows(
    requirements: Requirements,
    bounds: Sequence[float],
    data: RowData,
    direction: str,
    pos_label: Any,
    favorable_label: Any,
    time_limit: float,
) -> GeneralChanges:
    """Return the fewest changes that keep the bound of each constraint."""
    data = _checked(requirements, data)
    y_true, y_pred, groups, control_features = data
    _, table = read_table(y_true, y_pred, groups, pos_label, favorable_label)
    rows, columns = read_rows(y_true, y_pred, groups, pos_label, None, control_features)
    n_groups = len(table.groups)
    strata = []
    for constraint in requirements.constraints:
        found = strata_on_rows(constraint, rows, columns)
        if found is None:
            check_cells(table, constraint)
            found = Strata.everybody(table.n_rows, n_groups)
        strata.append(found)
    cells = CellTable.of(
        requirements.constraints, strata, rows.groups.codes, n_groups, rows.outcomes
    )
    sizes = cells.totals(np.ones(table.n_rows))
    compared = [
        (comparison, float(bound))
        for i, bound in enumerate(bounds)
        for comparison in cells.comparisons(i, sizes)
    ]
    before = cells.totals(rows.decisions.astype(np.float64)).astype(np.int64)
    may_raise, may_lower = allowed_changes(table, direction)
    limit = fewest_changes_of(
        compared,
        sizes.astype(np.int64),
        before,
        may_raise=may_raise,
        may_lower=may_lower,
        time_limit=time_limit,
    )
    return GeneralChanges(table, before, limit)


def control_features_error() -> InputError:
    """Return the error for control features that no constraint names."""
    return InputError(
        "control_features is passed, but no constraint has a condition. State it with `within`, "
        "as in DemographicParity(ratio=0.8).within('department').",
        parameter="control_features",
    )


def _checked(requirements: Requirements, data: RowData) -> RowData:
    """Return the data that the constraints need; refuse what is missing or has no use."""
    if data.control_features is not None and not requirements.columns:
        raise control_features_error()
    if not requirements.needs_labels:
        return data._replace(y_true=None)
    if data.y_true is None:
        raise missing_labels(next(c for c in requirements.constraints if c.needs_labels))
    return data
