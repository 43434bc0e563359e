"""How many decisions an update changes, for whom, and how easily the changed rows are told."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.inputs import (
    Column,
    Groups,
    check_length,
    check_weights,
    read_columns,
    read_groups,
    read_labels,
)
from commod.exceptions import InputError
from commod.metrics._fairness import _binary_pair, _read_some_labels

__all__ = [
    "ChangeCounts",
    "change_locality",
    "change_rate",
    "count_changes",
]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def _changed_rows(y_before: Any, y_after: Any) -> BoolArray:
    before, after = _read_some_labels(y_before, "y_before"), read_labels(y_after, "y_after")
    check_length(after, "y_after", len(before))
    is_text = [labels.dtype.kind in "US" for labels in (before, after)]
    if is_text[0] != is_text[1] and "O" not in (before.dtype.kind, after.dtype.kind):
        raise InputError(
            f"y_before holds {before.dtype} labels and y_after {after.dtype}: text never equals a "
            "number, so every row would count as changed. Give both one coding."
        )
    return np.asarray(before != after, dtype=bool)


def change_rate(y_before: Any, y_after: Any, *, sample_weight: Any = None) -> float:
    """Return the weighted share of rows whose label differs, in [0, 1].

    Parameters
    ----------
    y_before, y_after : array-like of shape (n_samples,)
        Labels of any kind and number.
    sample_weight : array-like of shape (n_samples,), default=None

    Returns
    -------
    float
        Never NaN: no rows, or no weight at all, is an error.

    Examples
    --------
    >>> change_rate(["no", "no", "yes", "no"], ["no", "yes", "yes", "no"])
    0.25
    """
    changed = _changed_rows(y_before, y_after)
    weight = check_weights(sample_weight, len(changed))
    return float(np.sum(weight * changed) / np.sum(weight))


@dataclass(frozen=True)
class ChangeCounts:
    """How many of `n` people changed, in which direction, and per group.

    `by_group` maps a group's label to its (n, n_gains, n_losses); empty when no groups were given.

    Examples
    --------
    >>> ChangeCounts(n=4, n_changes=1, n_gains=1, n_losses=0, by_group={}).rate
    0.25
    """

    n: int
    n_changes: int
    n_gains: int
    n_losses: int
    by_group: Mapping[Hashable, tuple[int, int, int]]

    @property
    def rate(self) -> float:
        """Return the share of people who changed, in [0, 1]."""
        return self.n_changes / self.n


def count_changes(
    y_before: Any, y_after: Any, *, favorable_label: Any = 1, sensitive_features: Any = None
) -> ChangeCounts:
    """Return how many people gained and lost the favourable label: counts of rows, unweighted.

    Parameters
    ----------
    y_before, y_after : array-like of shape (n_samples,)
        Decisions with the same two labels.
    favorable_label : label, default=1
        The label that is good for the person: becoming it is a gain, ceasing to be it a loss.
    sensitive_features : array-like, default=None
        Group of each row, to count per group too.

    Returns
    -------
    ChangeCounts
        `n_changes` is always `n_gains + n_losses`.

    Examples
    --------
    >>> count_changes([0, 0, 1], [1, 0, 0], sensitive_features=["a", "a", "b"])
    ChangeCounts(n=3, n_changes=2, n_gains=1, n_losses=1, by_group={'a': (2, 1, 0), 'b': (1, 0, 1)})
    """
    before, after = _read_some_labels(y_before, "y_before"), read_labels(y_after, "y_after")
    check_length(after, "y_after", len(before))
    pair = (before, "y_before"), (after, "y_after")
    was, is_now = _binary_pair(*pair, favorable_label, "favorable_label")
    gains, losses = ~was & is_now, was & ~is_now
    by_group: dict[Hashable, tuple[int, int, int]] = {}
    if sensitive_features is not None:
        by_group = _counts_by_group(gains, losses, read_groups(sensitive_features, len(was)))
    n_gains, n_losses = int(gains.sum()), int(losses.sum())
    return ChangeCounts(len(was), n_gains + n_losses, n_gains, n_losses, by_group)


def _counts_by_group(
    gains: BoolArray, losses: BoolArray, groups: Groups
) -> dict[Hashable, tuple[int, int, int]]:
    counts = [
        np.bincount(groups.codes[rows], minlength=len(groups.labels)).tolist()
        for rows in (gains | ~gains, gains, losses)
    ]
    return dict(zip(groups.labels, zip(*counts, strict=True), strict=True))


def change_locality(
    X: Any,
    y_before: Any,
    y_after: Any,
    *,
    max_depth: int | None = 3,
    sample_weight: Any = None,
    random_state: Any = 0,
) -> float:
    """Return how well a small decision tree on X tells who changed, as its F1 score in [0, 1].

    1 means that a few conditions describe the changed rows exactly; scattered changes score low.
    The tree is scored on the rows it was grown on: it describes these changes, it predicts none.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Raw columns: numbers, text, categories, booleans, with missing values.
    y_before, y_after : array-like of shape (n_samples,)
        Labels of any kind.
    max_depth : int or None, default=3
    sample_weight : array-like of shape (n_samples,), default=None
    random_state : int, RandomState or None, default=0
        Breaks ties between equally good splits.

    Returns
    -------
    float
        NaN when nothing changed or everything did (among rows with weight); 0 when no leaf of
        the tree has a majority of changes.

    Examples
    --------
    >>> change_locality([[20], [30], [40], [50]], [0, 0, 0, 0], [0, 0, 1, 1])
    1.0
    """
    from sklearn.metrics import f1_score
    from sklearn.tree import DecisionTreeClassifier

    changed = _changed_rows(y_before, y_after)
    columns = read_columns(X)
    check_length(columns[0].values, "X", len(changed))
    weight = check_weights(sample_weight, len(changed))
    kept = weight > 0  # a row without weight must not offer the tree a split either
    changed, weight, table = changed[kept], weight[kept], _tree_table(columns)[kept]
    if changed.all() or not changed.any():
        return math.nan
    tree = DecisionTreeClassifier(max_depth=max_depth, random_state=random_state)
    found = tree.fit(table, changed, sample_weight=weight).predict(table)
    return float(f1_score(changed, found, sample_weight=weight))


def _tree_table(columns: list[Column]) -> Any:
    """Return a sparse matrix: one column per category, missing being one too; ranks for numbers."""
    from scipy.sparse import hstack

    blocks = [
        _one_hot(column) if column.kind == "category" else _ranks_and_missing(column.values)
        for column in columns
    ]
    return hstack(blocks, format="csr", dtype=np.float32)


def _one_hot(column: Column) -> Any:
    from scipy.sparse import csc_matrix

    codes = np.where(column.is_missing(), len(column.categories), column.values)
    return csc_matrix((np.ones(len(codes)), (np.arange(len(codes)), codes)))


def _ranks_and_missing(values: FloatArray) -> Any:
    from scipy.sparse import csc_matrix

    # Trees work in float32; ranks keep the order of values that float32 cannot tell apart or hold.
    missing = np.isnan(values)
    ranks = np.zeros(len(values))
    ranks[~missing] = np.unique(values[~missing], return_inverse=True)[1] + 1
    if not missing.any():
        return csc_matrix(ranks[:, None])
    # Below all others in one column, above them in the other: a split can send them either way.
    return csc_matrix(np.column_stack([ranks, np.where(missing, ranks.max() + 1, ranks)]))
