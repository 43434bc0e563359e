"""Measure fairness between groups: checked public functions around unchecked kernels."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypedDict

import numpy as np

from commod._data.groups import GroupedDecisions, read_decisions
from commod._data.strata import ControlFeatures
from commod.metrics._cells import fairness_of, group_shares
from commod.metrics._conditional import (
    read_rows,
    strata_on_rows,
    values_by_stratum,
    within_columns,
)
from commod.metrics._constraint import Constraint, ConstraintLike, get_constraint

# ---------------------------------------------------------------------------------------------
# Fairness


def p_rule(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = 1,
    sample_weight: Any = None,
    control_features: Any = None,
) -> float:
    """Return the lowest group's selection rate divided by the highest's, in [0, 1].

    1 means that every group gets `pos_label` equally often; the "80 % rule" asks for 0.8.

    Parameters
    ----------
    y_true : ignored
        Present because Fairlearn's metrics have it; may be None.
    y_pred : array-like of shape (n_samples,)
        Decisions, with at most two different labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        Group of each row, two groups or more; several columns mean their intersections.
    pos_label : label, default=1
        The label whose rate is counted.
    sample_weight : array-like of shape (n_samples,), default=None
    control_features : array-like of shape (n_samples,), default=None
        Compare people with people who have the same value here, and return the value of the least
        fair stratum. See `fairness_by_stratum`.

    Returns
    -------
    float
        0 when one group is never selected and another is. NaN (undefined, not perfect) when
        nobody is selected, when there is only one group, and when a group has no weight.

    Examples
    --------
    >>> p_rule(None, [1, 0, 1, 1], sensitive_features=["a", "a", "b", "b"])
    0.5
    """
    return fairness_value(
        "demographic_parity",
        y_true,
        y_pred,
        sensitive_features=sensitive_features,
        pos_label=pos_label,
        sample_weight=sample_weight,
        control_features=control_features,
    )


def true_positive_rate_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = 1,
    sample_weight: Any = None,
    control_features: Any = None,
) -> float:
    """Return the highest minus the lowest true positive rate over the groups, in [0, 1].

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        True labels and decisions, with the same two labels.
    sensitive_features, pos_label, sample_weight, control_features
        As in `p_rule`.

    Returns
    -------
    float
        NaN when a group has no row (or no weight) with a positive true label, and when there is
        only one group.

    Examples
    --------
    >>> true_positive_rate_difference(
    ...     [1, 1, 1, 1], [1, 0, 1, 1], sensitive_features=["a", "a", "b", "b"]
    ... )
    0.5
    """
    return fairness_value(
        "true_positive_rate_parity",
        y_true,
        y_pred,
        sensitive_features=sensitive_features,
        pos_label=pos_label,
        sample_weight=sample_weight,
        control_features=control_features,
    )


def false_positive_rate_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = 1,
    sample_weight: Any = None,
    control_features: Any = None,
) -> float:
    """Return the highest minus the lowest false positive rate over the groups, in [0, 1].

    Parameters
    ----------
    y_true, y_pred, sensitive_features, pos_label, sample_weight, control_features
        As in `true_positive_rate_difference`.

    Returns
    -------
    float
        NaN when a group has no row (or no weight) with a negative true label, and when there is
        only one group.

    Examples
    --------
    >>> false_positive_rate_difference(
    ...     [0, 0, 0, 0], [1, 0, 0, 0], sensitive_features=["a", "a", "b", "b"]
    ... )
    0.5
    """
    return fairness_value(
        "false_positive_rate_parity",
        y_true,
        y_pred,
        sensitive_features=sensitive_features,
        pos_label=pos_label,
        sample_weight=sample_weight,
        control_features=control_features,
    )


def disparate_mistreatment(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = 1,
    sample_weight: Any = None,
    control_features: Any = None,
) -> float:
    """Return the gap of true positive rates plus the gap of false positive rates, in [0, 2].

    The paper calls it DM. Fairlearn's `equalized_odds_difference` is the larger of the two gaps
    instead of their sum.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, pos_label, sample_weight, control_features
        As in `true_positive_rate_difference`.

    Returns
    -------
    float
        NaN when a group has no row (or no weight) with one of the two true labels, and when there
        is only one group.

    Examples
    --------
    >>> disparate_mistreatment(
    ...     [1, 0, 0, 1, 0, 0], [1, 1, 0, 0, 0, 0], sensitive_features=["a"] * 3 + ["b"] * 3
    ... )
    1.5
    """
    return fairness_value(
        "equalized_odds",
        y_true,
        y_pred,
        sensitive_features=sensitive_features,
        pos_label=pos_label,
        sample_weight=sample_weight,
        control_features=control_features,
    )


def fairness_value(
    constraints: ConstraintLike,
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = 1,
    sample_weight: Any = None,
    control_features: Any = None,
) -> float:
    """Return the metric of a constraint, which is named as in Fairlearn.

    Parameters
    ----------
    constraints : str
        "demographic_parity" gives `p_rule` (higher is fairer), "equalized_odds" gives
        `disparate_mistreatment`, "true_positive_rate_parity" and "false_positive_rate_parity"
        give the difference of that rate. In the last three, lower is fairer. `commod.constraints`
        lists all names.
    y_true : array-like of shape (n_samples,) or None
        Ignored for demographic parity, needed for constraints on true labels.
    y_pred, sensitive_features, pos_label, sample_weight
        As in `p_rule`.
    control_features : array-like of shape (n_samples,), default=None
        The column that people are compared within. The value is that of the least fair stratum,
        where groups with at least one row count. A name with a condition, such as
        "demographic_parity within 'department' average", says which rows count, and how. It needs
        the column, alone, or by its name in a frame or a dict.

    Returns
    -------
    float
        NaN where the metric is undefined.

    Examples
    --------
    >>> groups = ["a", "a", "b", "b"]
    >>> fairness_value("demographic_parity", None, [1, 0, 1, 1], sensitive_features=groups)
    0.5
    >>> fairness_value("minimum_rate", None, [1, 0, 1, 1], sensitive_features=groups)
    0.5
    """
    people = (sensitive_features, pos_label, sample_weight, control_features)
    return value_on_rows(*_read_constraint(constraints, y_true, y_pred, *people))


def fairness_by_stratum(
    constraints: ConstraintLike,
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    control_features: Any,
    pos_label: Any = 1,
    sample_weight: Any = None,
) -> dict[Hashable, float]:
    """Return the metric of a constraint in each stratum, keyed by the stratum's value.

    Fairlearn's ``MetricFrame(..., control_features=).ratio()`` and ``.difference()`` return the
    same, but for strata with one group, which Fairlearn calls fair.

    Parameters
    ----------
    constraints, y_true, y_pred, sensitive_features, pos_label, sample_weight
        As in `fairness_value`.
    control_features : array-like of shape (n_samples,)
        The column that people are compared within.

    Returns
    -------
    dict
        NaN where the metric is undefined, and where fewer than two groups have rows. Where the
        constraint has a condition, its `min_rows` says how many rows a group needs.

    Examples
    --------
    >>> fairness_by_stratum(
    ...     "demographic_parity",
    ...     None,
    ...     [1, 0, 1, 1, 0, 1],
    ...     sensitive_features=["a", "a", "b", "b", "b", "a"],
    ...     control_features=["day", "day", "day", "day", "night", "night"],
    ... )
    {'day': 0.5, 'night': 0.0}
    """
    people = (sensitive_features, pos_label, sample_weight, control_features)
    return values_by_stratum(*_read_constraint(constraints, y_true, y_pred, *people))


def _read_constraint(
    constraints: ConstraintLike, y_true: Any, y_pred: Any, *people: Any
) -> tuple[Constraint, GroupedDecisions, ControlFeatures | None]:
    """Return the constraint with its condition, the checked rows and the control features."""
    constraint = get_constraint(constraints)
    rows, columns = read_rows(y_true if constraint.needs_labels else None, y_pred, *people)
    return within_columns(constraint, columns), rows, columns


def value_on_rows(
    constraint: Constraint, rows: GroupedDecisions, columns: ControlFeatures | None = None
) -> float:
    """Return the value of a constraint on checked rows; `columns` holds the control features."""
    strata = strata_on_rows(constraint, rows, columns)
    codes, n_groups = rows.groups.codes, len(rows.groups.labels)
    return fairness_of(
        constraint, rows.decisions, rows.outcomes, codes, n_groups, rows.weight, strata
    )


class GroupRates(TypedDict):
    """The number of rows of one group and its weighted rates; NaN where a rate is undefined.

    Examples
    --------
    >>> rates = group_rates([1, 0, 1], [1, 1, 0], sensitive_features=["a", "a", "b"])["a"]
    >>> rates["n"], rates["selection_rate"], rates["accuracy"]
    (2, 1.0, 0.5)
    """

    n: int
    selection_rate: float
    tpr: float
    fpr: float
    accuracy: float


def group_rates(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = 1,
    sample_weight: Any = None,
) -> dict[Hashable, GroupRates]:
    """Return each group's number of rows and its rates in [0, 1], keyed by the group's label.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        None leaves `tpr`, `fpr` and `accuracy` undefined.
    y_pred, sensitive_features, pos_label, sample_weight
        As in `p_rule`.

    Returns
    -------
    dict
        Per group `n` (rows, unweighted), `selection_rate`, `tpr`, `fpr` and `accuracy`. A rate
        over no rows, or over rows without weight, is NaN.

    Examples
    --------
    >>> table = group_rates([1, 0, 1], [1, 1, 0], sensitive_features=["a", "a", "b"])
    >>> table["a"]
    {'n': 2, 'selection_rate': 1.0, 'tpr': 1.0, 'fpr': 1.0, 'accuracy': 0.5}
    >>> table["b"]
    {'n': 1, 'selection_rate': 0.0, 'tpr': 0.0, 'fpr': nan, 'accuracy': 0.0}
    """
    rows = read_decisions(y_true, y_pred, sensitive_features, pos_label, sample_weight)
    columns = rows.groups.sizes.tolist(), *_rates_by_group(rows)
    return {
        label: GroupRates(n=n, selection_rate=selected, tpr=tpr, fpr=fpr, accuracy=right)
        for label, n, selected, tpr, fpr, right in zip(rows.groups.labels, *columns, strict=True)
    }


def _rates_by_group(rows: GroupedDecisions) -> list[list[float]]:
    """Return selection rates, true and false positive rates and accuracies of the groups."""
    decisions, outcomes, weight = rows.decisions, rows.outcomes, rows.weight
    known = np.zeros_like(weight) if outcomes is None else weight
    if outcomes is None:
        outcomes = decisions  # any labels will do: rates over zero weight are NaN
    rates = (
        (decisions, weight),
        (decisions, known * outcomes),
        (decisions, known * ~outcomes),
        (decisions == outcomes, known),
    )
    codes, n_groups = rows.groups.codes, len(rows.groups.labels)
    return [group_shares(events, codes, n_groups, counted).tolist() for events, counted in rates]
