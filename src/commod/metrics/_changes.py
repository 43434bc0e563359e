"""Count changed decisions, in total and per group, and measure how few conditions describe them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column, read_columns
from commod._data.groups import Groups, read_groups
from commod._data.labels import binary_outcomes, check_length, check_weights, read_label_pair
from commod._data.tables import check_same_rows
from commod.exceptions import InputError

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

PAIR = ("y_before", "y_after")  # names of the two columns of decisions


def _changed_rows(y_before: Any, y_after: Any) -> BoolArray:
    before, after = read_label_pair(y_before, y_after, PAIR)
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
        Never NaN. No rows, or rows without any weight, are an error.

    Examples
    --------
    >>> change_rate(["no", "no", "yes", "no"], ["no", "yes", "yes", "no"])
    0.25
    """
    check_same_rows({"y_before": y_before, "y_after": y_after, "sample_weight": sample_weight})
    changed = _changed_rows(y_before, y_after)
    weight = check_weights(sample_weight, len(changed))
    return float(np.sum(weight * changed) / np.sum(weight))


@dataclass(frozen=True)
class ChangeCounts:
    """The changes among `n` people: in total, gains and losses, and per group.

    `by_group` maps a group's label to (n, n_gains, n_losses); empty when no groups were given.

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
    """Return how many people gained and lost the favourable label, as unweighted counts.

    Parameters
    ----------
    y_before, y_after : array-like of shape (n_samples,)
        Decisions with the same two labels.
    favorable_label : label, default=1
        The label that is good for the person. A change to it is a gain, a change away from it a
        loss.
    sensitive_features : array-like, default=None
        Group of each row, to count changes per group as well.

    Returns
    -------
    ChangeCounts
        `n_changes` is always `n_gains + n_losses`.

    Examples
    --------
    >>> count_changes([0, 0, 1], [1, 0, 0], sensitive_features=["a", "a", "b"])
    ChangeCounts(n=3, n_changes=2, n_gains=1, n_losses=1, by_group={'a': (2, 1, 0), 'b': (1, 0, 1)})
    """
    check_same_rows(
        {"y_before": y_before, "y_after": y_after, "sensitive_features": sensitive_features}
    )
    labels = read_label_pair(y_before, y_after, PAIR)
    before, after = binary_outcomes(labels, PAIR, favorable_label, "favorable_label")
    gains, losses = ~before & after, before & ~after
    by_group: dict[Hashable, tuple[int, int, int]] = {}
    if sensitive_features is not None:
        by_group = _counts_by_group(gains, losses, read_groups(sensitive_features, len(before)))
    n_gains, n_losses = int(gains.sum()), int(losses.sum())
    return ChangeCounts(len(before), n_gains + n_losses, n_gains, n_losses, by_group)


def _counts_by_group(
    gains: BoolArray, losses: BoolArray, groups: Groups
) -> dict[Hashable, tuple[int, int, int]]:
    counts = [
        np.bincount(groups.codes[rows], minlength=len(groups.labels)).tolist()
        for rows in (slice(None), gains, losses)
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
    """Return the F1 score, in [0, 1], of a small decision tree that separates changed rows.

    1 means that a few conditions describe the changed rows exactly; scattered changes score low.
    The tree is scored on the rows that it was fitted on, because it only describes these rows.

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
        NaN when no row with weight changed, or all of them did. 0 when no leaf of the tree has a
        majority of changed rows.

    Examples
    --------
    >>> change_locality([[20], [30], [40], [50]], [0, 0, 0, 0], [0, 0, 1, 1])
    1.0
    """
    from sklearn.metrics import f1_score
    from sklearn.tree import DecisionTreeClassifier

    check_same_rows(
        {"X": X, "y_before": y_before, "y_after": y_after, "sample_weight": sample_weight}
    )
    changed = _changed_rows(y_before, y_after)
    columns = read_columns(X)
    check_length(columns[0].values, "X", len(changed))
    weight = check_weights(sample_weight, len(changed))
    kept = weight > 0  # the values of a row without weight must not become splits of the tree
    changed, weight, table = changed[kept], weight[kept], _tree_table(columns)[kept]
    if changed.all() or not changed.any():
        return math.nan
    tree = DecisionTreeClassifier(max_depth=max_depth, random_state=random_state)
    predicted = tree.fit(table, changed, sample_weight=weight).predict(table)
    return float(f1_score(changed, predicted, sample_weight=weight))


def _tree_table(columns: list[Column]) -> Any:
    """Return a sparse matrix: one column per category, also for missing; ranks for numbers."""
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

    # Trees work in float32. Ranks keep the order of values that are equal or infinite in float32.
    missing = np.isnan(values)
    ranks = np.zeros(len(values))
    ranks[~missing] = np.unique(values[~missing], return_inverse=True)[1] + 1
    if not missing.any():
        return csc_matrix(ranks[:, None])
    # One column ranks missing values below all others, one above: a split can go either way.
    return csc_matrix(np.column_stack([ranks, np.where(missing, ranks.max() + 1, ranks)]))
