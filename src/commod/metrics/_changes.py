"""Count changed decisions, in total and per group, and measure how few conditions describe them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from commod._data.arrays import Floats, Mask
from commod._data.columns import Column, read_columns
from commod._data.groups import Groups, read_groups
from commod._data.labels import (
    binary_outcomes,
    check_length,
    check_weights,
    read_label_pair,
    read_scores,
)
from commod._data.tables import check_same_rows
from commod.exceptions import InputError

PAIR = ("y_before", "y_after")  # names of the two columns of decisions


def _changed_rows(y_before: Any, y_after: Any) -> Mask:
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
    gains: Mask, losses: Mask, groups: Groups
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


def _ranks_and_missing(values: Floats) -> Any:
    from scipy.sparse import csc_matrix

    # Trees work in float32. Ranks keep the order of values that are equal or infinite in float32.
    missing = np.isnan(values)
    ranks = np.zeros(len(values))
    ranks[~missing] = np.unique(values[~missing], return_inverse=True)[1] + 1
    if not missing.any():
        return csc_matrix(ranks[:, None])
    # One column ranks missing values below all others, one above: a split can go either way.
    return csc_matrix(np.column_stack([ranks, np.where(missing, ranks.max() + 1, ranks)]))


# ---------------------------------------------------------------------------------------------
# Measure how far edited scores are from the base scores


@dataclass(frozen=True)
class ScoreAgreement:
    """How close two columns of scores are; see `score_agreement`.

    Examples
    --------
    >>> score_agreement([0.5, 0.5], [0.5, 0.25]).correlation
    nan
    """

    mean_absolute_difference: float
    correlation: float
    rank_correlation: float
    share_identical: float


def score_agreement(
    scores_before: Any, scores_after: Any, *, sample_weight: Any = None
) -> ScoreAgreement:
    """Return how far scores moved and whether they kept their order.

    Parameters
    ----------
    scores_before, scores_after : array-like of shape (n_samples,)
        Scores in [0, 1].
    sample_weight : array-like of shape (n_samples,), default=None
        A row of weight 2 counts as two rows, also in the rank correlation.

    Returns
    -------
    ScoreAgreement
        `mean_absolute_difference` in [0, 1]; `correlation` (Pearson) and `rank_correlation`
        (Spearman, ties at their mean rank) in [-1, 1], NaN if either column is constant over the
        rows with weight; `share_identical` in [0, 1], the share of rows whose score is unchanged.

    Examples
    --------
    >>> agreement = score_agreement([0.0, 0.5, 1.0], [0.0, 0.75, 1.0])
    >>> agreement.rank_correlation
    1.0
    >>> round(agreement.mean_absolute_difference, 3), round(agreement.share_identical, 3)
    (0.083, 0.667)
    """
    check_same_rows(
        {
            "scores_before": scores_before,
            "scores_after": scores_after,
            "sample_weight": sample_weight,
        }
    )
    before = read_scores(scores_before, "scores_before")
    after = read_scores(scores_after, "scores_after")
    check_length(after, "scores_after", len(before))
    weight = check_weights(sample_weight, len(before))
    kept = weight > 0
    before, after, weight = before[kept], after[kept], weight[kept]
    return ScoreAgreement(
        mean_absolute_difference=float(np.sum(weight * np.abs(before - after)) / np.sum(weight)),
        correlation=_correlation(before, after, weight),
        rank_correlation=_correlation(_ranks(before, weight), _ranks(after, weight), weight),
        share_identical=float(np.sum(weight * (before == after)) / np.sum(weight)),
    )


def _ranks(values: Floats, weight: Floats) -> Floats:
    """Return the mean rank of each value, up to a constant; a row of weight w counts as w rows."""
    _, codes = np.unique(values, return_inverse=True)
    total = np.bincount(codes, weight)
    return np.asarray((np.cumsum(total) - total / 2)[codes])


def _correlation(a: Floats, b: Floats, weight: Floats) -> float:
    if a.min() == a.max() or b.min() == b.max():
        return math.nan
    a, b = _centred(a, weight), _centred(b, weight)
    return float(np.clip((a @ b) / math.sqrt((a @ a) * (b @ b)), -1, 1))


def _centred(values: Floats, weight: Floats) -> Floats:
    """Return the centred values times the root of their weight, the largest scaled to 1."""
    centred = np.sqrt(weight) * (values - np.average(values, weights=weight))
    return np.asarray(centred / np.abs(centred).max())
