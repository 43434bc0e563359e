"""Compare scores with true labels: bins of about equally many people, error and Brier score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

N_BINS = 10


def score_bins(scores: FloatArray) -> NDArray[np.intp]:
    """Return the number of each score's bin, shape (n,).

    There are at most ten bins with about equally many people. Equal scores share a bin.

    Examples
    --------
    >>> score_bins(np.array([0.1, 0.1, 0.9])).tolist()
    [0, 0, 1]
    """
    edges = np.unique(np.quantile(scores, np.arange(1, N_BINS) / N_BINS))
    numbers = np.searchsorted(edges, scores, side="right")
    return np.unique(numbers, return_inverse=True)[1]


def brier_score(scores: FloatArray, label: BoolArray, weight: FloatArray | None = None) -> float:
    """Return the mean squared difference of score and true label, in [0, 1].

    Examples
    --------
    >>> brier_score(np.array([0.5, 1.0]), np.array([True, True]))
    0.125
    """
    return float(np.average((scores - label) ** 2, weights=weight))


def reliability_error(scores: FloatArray, label: BoolArray, weight: FloatArray) -> float:
    """Return the mean distance between mean score and observed share of the bins, weighted.

    Examples
    --------
    >>> people = np.array([0.1, 0.1, 0.9]), np.array([True, False, True])
    >>> round(reliability_error(*people, np.ones(3)), 3)
    0.3
    """
    bins = score_bins(scores)
    distances = np.abs(np.bincount(bins, weight * (scores - label)))
    return float(distances.sum() / weight.sum())
