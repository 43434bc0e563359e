"""Measure fairness between groups, all together or with one reference group.

Public functions check what they get. The kernels in `_people.py` do not.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np

from commod._data.arrays import Floats
from commod._data.groups import UNNAMED, GroupedDecisions, Groups, read_decisions, read_groups
from commod._data.labels import check_weights, is_label_in, read_scores
from commod._data.tables import check_same_rows
from commod._text import did_you_mean, list_names, shown
from commod.exceptions import InputError
from commod.metrics._cells import worst_value
from commod.metrics._constraint import Constraint, ConstraintLike, get_constraint, missing_labels
from commod.metrics._measures import Within
from commod.metrics._people import People, Strata, group_shares, strata_of


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
    people = (sensitive_features, pos_label, sample_weight, control_features)
    return value_on_rows(*_read("demographic_parity", y_true, y_pred, *people))


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
    people = (sensitive_features, pos_label, sample_weight, control_features)
    return value_on_rows(*_read("true_positive_rate_parity", y_true, y_pred, *people))


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
    people = (sensitive_features, pos_label, sample_weight, control_features)
    return value_on_rows(*_read("false_positive_rate_parity", y_true, y_pred, *people))


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
    people = (sensitive_features, pos_label, sample_weight, control_features)
    return value_on_rows(*_read("equalized_odds", y_true, y_pred, *people))


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
    return value_on_rows(*_read(constraints, y_true, y_pred, *people))


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
    constraint, rows = _read(constraints, y_true, y_pred, *people)
    assert constraint.within is not None
    every = replace(constraint, within=constraint.within._replace(over="every"))
    table = people_of(rows, every)
    compared = table.comparisons(0, table.weights)
    positives = table.totals(rows.weight * rows.decisions).ravel()
    labels = _column_of(constraint.within, rows).labels
    values: dict[Hashable, float] = dict.fromkeys(labels, math.nan)
    for number, label in enumerate(table.strata[every].labels):
        here = [comparison for comparison in compared if comparison.stratum == number]
        values[label] = worst_value(every, here, positives)
    return values


def _read(
    constraints: ConstraintLike, y_true: Any, y_pred: Any, *people: Any
) -> tuple[Constraint, GroupedDecisions]:
    """Return the constraint and the checked rows.

    A constraint without a condition gets that of the one column of control features, if there is
    one; every group that occurs in a stratum counts then.
    """
    constraint = get_constraint(constraints)
    rows = read_decisions(y_true if constraint.needs_labels else None, y_pred, *people)
    if rows.columns is None or constraint.within is not None:
        return constraint, rows
    if len(rows.columns.names) != 1:
        raise InputError(
            f"control_features has {len(rows.columns.names)} columns, and a constraint without a "
            "condition does not say which one is meant. Pass one column. Combine several into one "
            "first.",
            parameter="control_features",
        )
    return constraint.conditional(Within(rows.columns.names[0], min_rows=1)), rows


def value_on_rows(constraint: Constraint, rows: GroupedDecisions) -> float:
    """Return the value of a constraint on checked rows."""
    return people_of(rows, constraint).fairness(rows.decisions)


def people_of(rows: GroupedDecisions, *constraints: Constraint) -> People:
    """Return checked rows as people, with the strata of constraints that have a condition."""
    group, n_groups = rows.groups.codes, len(rows.groups.labels)
    strata: dict[Constraint, Strata] = {}
    for one in constraints:
        if rows.outcomes is None and one.needs_labels:
            raise missing_labels(one)
        if one.within is not None:
            column = _column_of(one.within, rows)
            people = group, n_groups, rows.outcomes, rows.weight > 0
            strata[one] = strata_of(one, column.codes, column.labels, *people)
    return People(constraints, group, n_groups, rows.outcomes, rows.weight, strata=strata)


def _column_of(within: Within, rows: GroupedDecisions) -> Groups:
    if rows.columns is None:
        raise InputError(
            f"The constraint compares people within {within.column!r}, but control_features is "
            f"missing. Pass that column: control_features=data[{within.column!r}].",
            parameter=UNNAMED,
        )
    return rows.columns.strata(within.column)


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
    shares = (group_shares(events, codes, n_groups, counted).tolist() for events, counted in rates)
    columns = rows.groups.sizes.tolist(), *shares
    return {
        label: GroupRates(n=n, selection_rate=selected, tpr=tpr, fpr=fpr, accuracy=right)
        for label, n, selected, tpr, fpr, right in zip(rows.groups.labels, *columns, strict=True)
    }


# ---------------------------------------------------------------------------------------------
# Compare each group with one reference group, as credit teams report it


def adverse_impact_ratio(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    reference: Any = None,
    pos_label: Any = 1,
    sample_weight: Any = None,
) -> dict[Hashable, float]:
    """Return each group's rate of `pos_label` divided by the rate of a reference group.

    `pos_label` should be the favourable label: the ratio of denials says little about approvals.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        Ignored, as in Fairlearn.
    y_pred : array-like of shape (n_samples,)
        Decisions.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_sensitive)
        Group of each row.
    reference : label of a group, default=None
        The group that the others are compared with. None: the group with the highest rate, so
        that no ratio exceeds 1 and the smallest one is the P-rule.
    pos_label : label, default=1
        The label whose rates are compared.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row.

    Returns
    -------
    dict
        The ratio of each group, keyed by the group's label; 1 for the reference. NaN where a rate
        is undefined, or where nobody of the reference has `pos_label`.

    Examples
    --------
    >>> decisions, group = [1, 0, 0, 1, 1, 0], ["a", "a", "a", "b", "b", "b"]
    >>> adverse_impact_ratio(None, decisions, sensitive_features=group)
    {'a': 0.5, 'b': 1.0}
    """
    rows = read_decisions(None, y_pred, sensitive_features, pos_label, sample_weight)
    labels = rows.groups.labels
    rates = group_shares(rows.decisions, rows.groups.codes, len(labels), rows.weight)
    highest = rates[reference_index(labels, reference, rates)]
    ratios = rates / highest if highest > 0 else np.full(len(rates), math.nan)
    return dict(zip(labels, ratios.tolist(), strict=True))


def standardized_mean_difference(
    scores: Any,
    *,
    sensitive_features: Any,
    reference: Any = None,
    sample_weight: Any = None,
) -> dict[Hashable, float]:
    """Return how far each group's mean score lies from a reference group's, in standard deviations.

    The value of a group is (its mean score − mean score of the reference) / standard deviation of
    the scores of all rows.

    Parameters
    ----------
    scores : array-like of shape (n_samples,)
        Scores in [0, 1].
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_sensitive)
        Group of each row.
    reference : label of a group, default=None
        The group that the others are compared with. None: the group with the highest mean score.
        Name it where a high score is bad for the person, as a probability of default is.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row in means and standard deviation.

    Returns
    -------
    dict
        The difference of each group, keyed by the group's label; 0 for the reference. NaN where
        all scores are equal, or where a group has no weight.

    Examples
    --------
    >>> result = standardized_mean_difference(
    ...     [0.2, 0.4, 0.6, 0.8], sensitive_features=["a", "a", "b", "b"], reference="b"
    ... )
    >>> {group: round(value, 3) for group, value in result.items()}
    {'a': -1.789, 'b': 0.0}
    """
    check_same_rows(
        {
            "scores": scores,
            "sensitive_features": sensitive_features,
            "sample_weight": sample_weight,
        }
    )
    values = read_scores(scores, "scores")
    groups = read_groups(sensitive_features, len(values))
    weight = check_weights(sample_weight, len(values))
    labels = groups.labels
    means = group_shares(values, groups.codes, len(labels), weight)
    deviation = math.sqrt(
        np.average((values - np.average(values, weights=weight)) ** 2, weights=weight)
    )
    index = reference_index(labels, reference, means)
    return dict(zip(labels, mean_differences(means, index, deviation).tolist(), strict=True))


def mean_differences(means: Floats, reference: int, deviation: float) -> Floats:
    """Return (mean − mean of the reference) / standard deviation, shape (n_groups,)."""
    if not deviation > 0:
        return np.full(len(means), math.nan)
    return (means - means[reference]) / deviation


def reference_index(labels: Any, reference: Any, values: Floats) -> int:
    """Return the position of the reference group: as named, or that of the highest value."""
    if reference is None:
        return 0 if np.isnan(values).all() else int(np.nanargmax(values))
    if not is_label_in(reference, list(labels)):
        raise InputError(
            f"reference={shown(reference)} is not a group; the groups are {list_names(labels)}."
            f"{did_you_mean(reference, labels)}",
            parameter="reference",
        )
    return next(i for i, label in enumerate(labels) if label == reference)
