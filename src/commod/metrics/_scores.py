"""How far edited scores are from the base scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.inputs import (
    check_length,
    check_weights,
)
from commod.exceptions import InputError
from commod.metrics._fairness import _read_some_labels

__all__ = [
    "ScoreAgreement",
    "score_agreement",
]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


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
    """Return how far scores moved and whether their order survived.

    Parameters
    ----------
    scores_before, scores_after : array-like of shape (n_samples,)
        Scores in [0, 1].
    sample_weight : array-like of shape (n_samples,), default=None
        A weight of 2 means the row twice, for the rank correlation too.

    Returns
    -------
    ScoreAgreement
        `mean_absolute_difference` in [0, 1]; `correlation` (Pearson) and `rank_correlation`
        (Spearman, ties at their mean rank) in [-1, 1], NaN if either column is constant over the
        rows with weight; `share_identical` in [0, 1], the rows with exactly the same score.

    Examples
    --------
    >>> agreement = score_agreement([0.0, 0.5, 1.0], [0.0, 0.75, 1.0])
    >>> agreement.rank_correlation
    1.0
    >>> round(agreement.mean_absolute_difference, 3), round(agreement.share_identical, 3)
    (0.083, 0.667)
    """
    before = _read_scores(scores_before, "scores_before")
    after = _read_scores(scores_after, "scores_after")
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


def _read_scores(values: Any, name: str) -> FloatArray:
    scores = _read_some_labels(values, name)
    try:
        # Digits in quotes are text: a column read as text is a mistake worth an error.
        numbers = scores.astype(np.float64) if scores.dtype.kind not in "US" else None
    except (TypeError, ValueError):
        numbers = None
    if numbers is None:
        raise InputError(f"{name} must hold numbers; got {scores[0]!r} of type {scores.dtype}.")
    n_outside = int(np.sum((numbers < 0) | (numbers > 1)))
    if n_outside:
        raise InputError(
            f"{name} has {n_outside} value(s) outside [0, 1]; pass probabilities. Margins become "
            "scores through the sigmoid 1 / (1 + exp(-z))."
        )
    return numbers


def _ranks(values: FloatArray, weight: FloatArray) -> FloatArray:
    """Return each value's mean rank when a row of weight w stands for w rows, up to a constant."""
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
