"""Read decisions with control features, and measure a constraint within their strata."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from commod._data.groups import GroupedDecisions, Groups, read_decisions
from commod._data.strata import UNNAMED, ControlFeatures, read_control_features
from commod._data.tables import check_same_rows
from commod.exceptions import InputError
from commod.metrics._cells import Cells, Strata, strata_of, worst_value
from commod.metrics._constraint import Constraint, missing_labels
from commod.metrics._measures import Within


def read_rows(
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    pos_label: Any,
    sample_weight: Any = None,
    control_features: Any = None,
) -> tuple[GroupedDecisions, ControlFeatures | None]:
    """Return checked decisions, and the control features by name; None where there are none."""
    rows = read_decisions(y_true, y_pred, sensitive_features, pos_label, sample_weight)
    if control_features is None:
        return rows, None
    check_same_rows({"y_pred": y_pred, "control_features": control_features})
    return rows, read_control_features(control_features, len(rows.decisions))


def strata_on_rows(
    constraint: Constraint, rows: GroupedDecisions, columns: ControlFeatures | None
) -> Strata | None:
    """Return the strata of a constraint; None where it has no condition."""
    if rows.outcomes is None and constraint.needs_labels:
        raise missing_labels(constraint)
    if constraint.within is None:
        return None
    return _strata(constraint, rows, _column_of(constraint.within, columns))


def values_by_stratum(
    constraint: Constraint, rows: GroupedDecisions, columns: ControlFeatures | None
) -> dict[Hashable, float]:
    """Return the value in each stratum by its label; NaN where too few groups are compared."""
    if rows.outcomes is None and constraint.needs_labels:
        raise missing_labels(constraint)
    assert constraint.within is not None
    groups = _column_of(constraint.within, columns)
    every = replace(constraint, within=constraint.within._replace(over="every"))
    strata = _strata(every, rows, groups)
    people = rows.groups.codes, len(rows.groups.labels), rows.outcomes
    table = Cells.of(every, *people, strata={every: strata})
    compared = table.comparisons(0, table.totals(rows.weight))
    positives = table.totals(rows.weight * rows.decisions).ravel()
    values: dict[Hashable, float] = dict.fromkeys(groups.labels, float("nan"))
    for number, label in enumerate(strata.labels):
        here = [comparison for comparison in compared if comparison.stratum == number]
        values[label] = worst_value(every, here, positives)
    return values


def within_columns(constraint: Constraint, columns: ControlFeatures | None) -> Constraint:
    """Return the constraint within the one column of control features that is passed.

    A constraint that has a condition stays as it is. Every group that occurs in a stratum counts.
    """
    if columns is None or constraint.within is not None:
        return constraint
    if len(columns.names) != 1:
        raise InputError(
            f"control_features has {len(columns.names)} columns, and a constraint without a "
            "condition does not say which one is meant. Pass one column. Combine several into one "
            "first.",
            parameter="control_features",
        )
    return constraint.conditional(Within(columns.names[0], min_rows=1))


def _column_of(within: Within, columns: ControlFeatures | None) -> Groups:
    if columns is None:
        raise InputError(
            f"The constraint compares people within {within.column!r}, but control_features is "
            f"missing. Pass that column: control_features=data[{within.column!r}].",
            parameter=UNNAMED,
        )
    return columns.strata(within.column)


def _strata(constraint: Constraint, rows: GroupedDecisions, column: Groups) -> Strata:
    return strata_of(
        constraint,
        column.codes,
        column.labels,
        rows.groups.codes,
        len(rows.groups.labels),
        rows.outcomes,
        rows.weight > 0,
    )
