"""Measure how far edited scores are from the base scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.labels import check_length, check_weights, read_scores
from commod._data.tables import check_same_rows

FloatArray = NDArray[np.float64]


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


def _ranks(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the mean rank of each value, up to a constant; a row of weight w counts as w rows."""
    _, codes = np.unique(values, return_inverse=True)
    total = np.bincount(codes, weight)
    return np.asarray((np.cumsum(total) - total / 2)[codes])


def _correlation(a: FloatArray, b: FloatArray, weight: FloatArray) -> float:
    if a.min() == a.max() or b.min() == b.max():
        return math.nan
    a, b = _centred(a, weight), _centred(b, weight)
    return float(np.clip((a @ b) / math.sqrt((a @ a) * (b @ b)), -1, 1))


def _centred(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the centred values times the root of their weight, the largest scaled to 1."""
    centred = np.sqrt(weight) * (values - np.average(values, weights=weight))
    return np.asarray(centred / np.abs(centred).max())
