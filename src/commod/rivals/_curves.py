"""The weight above a threshold, as a step function: what threshold rules are searched on."""

from __future__ import annotations

import numpy as np

from commod._data.arrays import Floats


def weight_above(scores: Floats, weight: Floats, thresholds: Floats) -> Floats:
    """Return the weight of the rows whose score is above each threshold, shape (n_thresholds,).

    Examples
    --------
    >>> weight_above(np.array([0.2, 0.5, 0.9]), np.ones(3), np.array([-np.inf, 0.5, 0.9]))
    array([3., 1., 0.])
    """
    order = np.argsort(scores)
    below = np.concatenate([[0.0], np.cumsum(weight[order])])
    return np.asarray(below[-1] - below[np.searchsorted(scores[order], thresholds, side="right")])
