"""Scores whose threshold is 0.5: many published rules compare probabilities with one half.

A score f and its threshold t are shifted together on the logit scale, so that the threshold becomes
0.5: logit f − logit t. In this form, a rule that compares with 0.5 decides alike at any threshold.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
HALF = 0.5


def at_half(scores: Floats, threshold: float) -> Floats:
    """Return the scores shifted so that their threshold is 0.5, in [0, 1], same shape.

    The order of scores and the side of the threshold stay the same. At threshold 0.5 the scores are
    returned as they are.

    Examples
    --------
    >>> at_half(np.array([0.0, 0.5, 0.9, 0.99, 1.0]), threshold=0.9).round(3)
    array([0.   , 0.1  , 0.5  , 0.917, 1.   ])
    """
    if threshold == HALF:
        return scores
    positive, negative = scores * (1 - threshold), (1 - scores) * threshold
    shifted = positive / (positive + negative)
    # Rounding must not move a score to the other side of the threshold.
    above = np.maximum(shifted, np.nextafter(HALF, 1.0))
    return np.where(scores > threshold, above, np.minimum(shifted, HALF))


def from_half(scores: Floats, threshold: float) -> Floats:
    """Return scores whose threshold is 0.5 in the unit of the score; the inverse of `at_half`.

    Examples
    --------
    >>> from_half(np.array([0.0, 0.1, 0.5, 1.0]), threshold=0.9).round(3)
    array([0. , 0.5, 0.9, 1. ])
    """
    if threshold == HALF:
        return scores
    positive, negative = scores * threshold, (1 - scores) * (1 - threshold)
    return np.asarray(positive / (positive + negative))


def middle(low: Floats, high: Floats, threshold: float) -> Floats:
    """Return a cut in [low, high), in the unit of the score; `low` where the two are equal.

    It is the mean of the two where the threshold is 0.5. At other thresholds it is the score that
    becomes that mean when the threshold is shifted to 0.5.

    Examples
    --------
    >>> middle(np.array([0.2]), np.array([0.4]), threshold=0.5).round(3)
    array([0.3])
    """
    mean = (at_half(low, threshold) + at_half(high, threshold)) / 2
    # Rounding must not move the cut beyond the scores that it separates.
    return np.maximum(low, np.minimum(from_half(mean, threshold), np.nextafter(high, -1.0)))
