"""Compare each group with one reference group, as credit teams report it."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np

from commod._data.arrays import Floats
from commod._data.groups import read_decisions, read_groups
from commod._data.labels import check_weights, is_label_in, read_scores
from commod._data.tables import check_same_rows
from commod._text import did_you_mean, list_names, shown
from commod.exceptions import InputError
from commod.metrics._cells import group_shares


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
