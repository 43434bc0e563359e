"""Read decisions together with true labels, groups and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.groups import Groups, read_groups
from commod._data.labels import (
    binary_outcome,
    binary_outcomes,
    check_weights,
    read_label_pair,
    read_labels,
)
from commod._data.tables import check_same_rows


@dataclass(frozen=True)
class GroupedDecisions:
    """Checked decisions of n ≥ 1 rows; every array has shape (n,).

    `y_pred` and `y_true` hold the labels as they were passed. `decisions` and `outcomes` say where
    these equal the positive label. `y_true` and `outcomes` are None where true labels are unknown.
    """

    y_pred: NDArray[Any]
    decisions: NDArray[np.bool_]
    y_true: NDArray[Any] | None
    outcomes: NDArray[np.bool_] | None
    groups: Groups
    weight: NDArray[np.float64]


def read_decisions(
    y_true: Any, y_pred: Any, sensitive_features: Any, pos_label: Any, sample_weight: Any = None
) -> GroupedDecisions:
    """Return checked decisions; `y_true` may be None, and otherwise uses the same two labels."""
    check_same_rows(
        {
            "y_pred": y_pred,
            "y_true": y_true,
            "sensitive_features": sensitive_features,
            "sample_weight": sample_weight,
        }
    )
    labels: NDArray[Any] | None = None
    outcomes: NDArray[np.bool_] | None = None
    if y_true is None:
        pred = read_labels(y_pred, "y_pred", allow_empty=False)
        decisions = binary_outcome(pred, "y_pred", pos_label)
    else:
        pred, labels = read_label_pair(y_pred, y_true, ("y_pred", "y_true"))
        outcomes, decisions = binary_outcomes((labels, pred), ("y_true", "y_pred"), pos_label)
    groups = read_groups(sensitive_features, len(pred))
    weight = check_weights(sample_weight, len(pred))
    return GroupedDecisions(pred, decisions, labels, outcomes, groups, weight)
