"""Fairness of decisions between groups: checked functions around unchecked kernels."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from commod._data.inputs import (
    Groups,
    binary_outcome,
    check_length,
    check_weights,
    read_groups,
    read_labels,
)
from commod.exceptions import InputError
from commod.metrics._constraint import ConstraintLike, get_constraint, missing_labels

__all__ = [
    "GroupRates",
    "disparate_mistreatment",
    "fairness_of",
    "fairness_value",
    "false_positive_rate_difference",
    "group_rates",
    "group_shares",
    "group_totals",
    "p_rule",
    "true_positive_rate_difference",
]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Events = BoolArray | FloatArray  # what happened, or how likely it is


# ---------------------------------------------------------------------------------------------
# Kernels: checked arrays in, numbers out. `weight` times a mask restricts a rate to those rows.


def group_totals(
    events: Events, codes: NDArray[np.intp], n_groups: int, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the weight of the rows with the event and of all rows, each of shape (n_groups,)."""
    # Both sums add up in the same order, so a share never exceeds 1 by rounding.
    hits = np.bincount(codes, weight * events, minlength=n_groups)
    totals = np.bincount(codes, weight, minlength=n_groups)
    return np.asarray(hits, np.float64), np.asarray(totals, np.float64)


def group_shares(
    events: Events, codes: NDArray[np.intp], n_groups: int, weight: FloatArray
) -> FloatArray:
    """Return the weighted share of events per group, shape (n_groups,); NaN for no weight."""
    hits, totals = group_totals(events, codes, n_groups, weight)
    shares = np.full(n_groups, math.nan)
    np.divide(hits, totals, out=shares, where=totals > 0)
    return shares


def _exact_shares(
    events: Events, codes: NDArray[np.intp], n_groups: int, weight: FloatArray
) -> list[Fraction]:
    """Return the share of each group; none at all where there is nothing to compare."""
    hits, totals = group_totals(events, codes, n_groups, weight)
    if n_groups < 2 or not totals.all():
        return []
    pairs = zip(hits.tolist(), totals.tolist(), strict=True)
    return [Fraction(hit) / Fraction(total) for hit, total in pairs]


def fairness_of(
    constraints: ConstraintLike,
    decisions: Events,
    outcomes: BoolArray | None,
    codes: NDArray[np.intp],
    n_groups: int,
    weight: FloatArray,
) -> float:
    """Return the value that `fairness_value` gives, from arrays of shape (n,) and unchecked.

    Chances of a positive decision instead of decisions give the fairness of the expected rates.
    """
    constraint = get_constraint(constraints)
    rates = []
    for row in constraint.rate_rows:
        counted = weight if row.label is None else weight * (outcomes == row.label)
        rates.append(_exact_shares(decisions, codes, n_groups, counted))
    if not all(rates):
        return math.nan
    value = constraint.value_from_rates(rates)
    return math.nan if value is None else float(value)


# ---------------------------------------------------------------------------------------------
# Fairness


@dataclass(frozen=True)
class _Rows:
    decisions: BoolArray
    outcomes: BoolArray | None
    groups: Groups
    weight: FloatArray


def _read_rows(
    y_true: Any, y_pred: Any, sensitive_features: Any, pos_label: Any, sample_weight: Any
) -> _Rows:
    pred = _read_some_labels(y_pred, "y_pred")
    if y_true is None:
        decisions, outcomes = binary_outcome(pred, "y_pred", pos_label), None
    else:
        true = read_labels(y_true, "y_true")
        check_length(true, "y_true", len(pred))
        outcomes, decisions = _binary_pair((true, "y_true"), (pred, "y_pred"), pos_label)
    groups = read_groups(sensitive_features, len(pred))
    return _Rows(decisions, outcomes, groups, check_weights(sample_weight, len(pred)))


def _read_some_labels(values: Any, name: str) -> NDArray[Any]:
    labels = read_labels(values, name)
    if len(labels) == 0:
        raise InputError(f"{name} has 0 rows; at least 1 is needed.")
    return labels


def _binary_pair(
    first: tuple[NDArray[Any], str],
    second: tuple[NDArray[Any], str],
    pos_label: Any,
    parameter: str = "pos_label",
) -> tuple[BoolArray, BoolArray]:
    """Return where each equals `pos_label`; the other label must be the same in both."""
    (a, a_name), (b, b_name) = first, second
    a_positive = binary_outcome(a, a_name, pos_label, parameter)
    b_positive = binary_outcome(b, b_name, pos_label, parameter)
    # Each has at most one other label by now, so one row of each tells it.
    others = _other_label(a, a_positive) + _other_label(b, b_positive)
    if len(set(others)) > 1:
        raise InputError(
            f"{a_name} and {b_name} do not use the same two labels: beside {pos_label!r}, "
            f"{a_name} holds {others[0]!r} and {b_name} holds {others[1]!r}. Give both one coding."
        )
    return a_positive, b_positive


def _other_label(labels: NDArray[Any], is_positive: BoolArray) -> list[Any]:
    found = labels[np.argmin(is_positive) :][:1]  # of the first row that is not positive
    return [] if is_positive.all() else found.tolist()


def p_rule(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = 1,
    sample_weight: Any = None,
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

    Returns
    -------
    float
        0 when some group is never selected and another is. NaN when nobody is selected, when
        there is one group only, and when a group has no weight: undefined, not perfect.

    Examples
    --------
    >>> p_rule(None, [1, 0, 1, 1], sensitive_features=["a", "a", "b", "b"])
    0.5
    """
    rows = _read_rows(None, y_pred, sensitive_features, pos_label, sample_weight)
    return _fairness("demographic_parity", rows)


def true_positive_rate_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = 1,
    sample_weight: Any = None,
) -> float:
    """Return the highest minus the lowest true positive rate over the groups, in [0, 1].

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        True labels and decisions, with the same two labels.
    sensitive_features, pos_label, sample_weight
        As in `p_rule`.

    Returns
    -------
    float
        NaN when a group has no true positive label (or no weight there) or is the only group.

    Examples
    --------
    >>> true_positive_rate_difference(
    ...     [1, 1, 1, 1], [1, 0, 1, 1], sensitive_features=["a", "a", "b", "b"]
    ... )
    0.5
    """
    rows = _read_rows(y_true, y_pred, sensitive_features, pos_label, sample_weight)
    return _fairness("true_positive_rate_parity", rows)


def false_positive_rate_difference(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = 1,
    sample_weight: Any = None,
) -> float:
    """Return the highest minus the lowest false positive rate over the groups, in [0, 1].

    Parameters
    ----------
    y_true, y_pred, sensitive_features, pos_label, sample_weight
        As in `true_positive_rate_difference`.

    Returns
    -------
    float
        NaN when a group has no true negative label (or no weight there) or is the only group.

    Examples
    --------
    >>> false_positive_rate_difference(
    ...     [0, 0, 0, 0], [1, 0, 0, 0], sensitive_features=["a", "a", "b", "b"]
    ... )
    0.5
    """
    rows = _read_rows(y_true, y_pred, sensitive_features, pos_label, sample_weight)
    return _fairness("false_positive_rate_parity", rows)


def disparate_mistreatment(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = 1,
    sample_weight: Any = None,
) -> float:
    """Return the sum of the two error-rate differences (the paper's DM), in [0, 2].

    Fairlearn's `equalized_odds_difference` is the larger of the two instead of their sum.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, pos_label, sample_weight
        As in `true_positive_rate_difference`.

    Returns
    -------
    float
        NaN when a group lacks one of the two true labels (or weight there) or is the only group.

    Examples
    --------
    >>> disparate_mistreatment(
    ...     [1, 0, 0, 1, 0, 0], [1, 1, 0, 0, 0, 0], sensitive_features=["a"] * 3 + ["b"] * 3
    ... )
    1.5
    """
    rows = _read_rows(y_true, y_pred, sensitive_features, pos_label, sample_weight)
    return _fairness("equalized_odds", rows)


def fairness_value(
    constraints: ConstraintLike,
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = 1,
    sample_weight: Any = None,
) -> float:
    """Return the value of the metric that belongs to one of Fairlearn's constraint names.

    Parameters
    ----------
    constraints : str
        "demographic_parity" gives `p_rule` (higher is fairer), "equalized_odds" gives
        `disparate_mistreatment`, "true_positive_rate_parity" and "false_positive_rate_parity"
        give that difference (lower is fairer).
    y_true : array-like of shape (n_samples,) or None
        Ignored for demographic parity, needed for the others.
    y_pred, sensitive_features, pos_label, sample_weight
        As in `p_rule`.

    Returns
    -------
    float
        NaN where the metric is undefined.

    Examples
    --------
    >>> groups = ["a", "a", "b", "b"]
    >>> fairness_value("demographic_parity", None, [1, 0, 1, 1], sensitive_features=groups)
    0.5
    """
    constraint = get_constraint(constraints)
    y_true = y_true if constraint.needs_labels else None
    rows = _read_rows(y_true, y_pred, sensitive_features, pos_label, sample_weight)
    return _fairness(constraint, rows)


def _fairness(constraints: ConstraintLike, rows: _Rows) -> float:
    constraint = get_constraint(constraints)
    if rows.outcomes is None and constraint.needs_labels:
        raise missing_labels(constraint)
    codes, n_groups = rows.groups.codes, len(rows.groups.labels)
    return fairness_of(constraint, rows.decisions, rows.outcomes, codes, n_groups, rows.weight)


class GroupRates(TypedDict):
    """One group's line in `group_rates`: rows, and weighted rates with NaN where undefined."""

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
        Per group `n` (rows, unweighted), `selection_rate`, `tpr`, `fpr` and `accuracy`; a rate
        over no rows, or over rows without weight, is NaN.

    Examples
    --------
    >>> table = group_rates([1, 0, 1], [1, 1, 0], sensitive_features=["a", "a", "b"])
    >>> table["a"]
    {'n': 2, 'selection_rate': 1.0, 'tpr': 1.0, 'fpr': 1.0, 'accuracy': 0.5}
    >>> table["b"]
    {'n': 1, 'selection_rate': 0.0, 'tpr': 0.0, 'fpr': nan, 'accuracy': 0.0}
    """
    rows = _read_rows(y_true, y_pred, sensitive_features, pos_label, sample_weight)
    sizes, rates = rows.groups.sizes.tolist(), _rates_by_group(rows)
    return {
        label: GroupRates(
            n=sizes[i],
            selection_rate=rates["selection_rate"][i],
            tpr=rates["tpr"][i],
            fpr=rates["fpr"][i],
            accuracy=rates["accuracy"][i],
        )
        for i, label in enumerate(rows.groups.labels)
    }


def _rates_by_group(rows: _Rows) -> dict[str, list[float]]:
    """Return one list over the groups per rate."""
    n_groups = len(rows.groups.labels)

    def shares(events: BoolArray, weight: FloatArray) -> list[float]:
        values: list[float] = group_shares(events, rows.groups.codes, n_groups, weight).tolist()
        return values

    decisions, outcomes, weight = rows.decisions, rows.outcomes, rows.weight
    known = np.zeros_like(weight) if outcomes is None else weight
    outcomes = decisions if outcomes is None else outcomes  # weightless then, so NaN all the same
    return {
        "selection_rate": shares(decisions, weight),
        "tpr": shares(decisions, known * outcomes),
        "fpr": shares(decisions, known * ~outcomes),
        "accuracy": shares(decisions == outcomes, known),
    }
