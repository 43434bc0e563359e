"""Apply a map from edited scores to calibrated probabilities, and measure calibration."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._record.scores import ScoreMap

N_BINS = 10


RAMP = 2e-3  # of each side: the line next to the threshold, which may be steep


def ramp_ends(threshold: float) -> tuple[float, float]:
    """Return the knots next to the threshold, below and above it.

    Examples
    --------
    >>> ramp_ends(0.5)
    (0.499, 0.501)
    """
    return threshold - RAMP * threshold, threshold + RAMP * (1.0 - threshold)


class MapPiece(NamedTuple):
    """The line of the scores from `start` (included) to `end`: value + (score − start) · slope.

    The last piece includes its end.
    """

    start: float
    end: float
    value: float
    slope: float


def pieces_of(score_map: ScoreMap) -> tuple[MapPiece, ...]:
    """Return the lines between the knots.

    Slopes are rounded so that no line ends above the next knot. So the map rises in floating-point
    arithmetic, too: each of its sums and products keeps the order of two scores.

    Examples
    --------
    >>> from commod._record import ScoreKnot
    >>> knots = ScoreKnot(0.0, 0.1), ScoreKnot(0.5, 0.5), ScoreKnot(1.0, 0.75)
    >>> pieces_of(ScoreMap(knots, 9, *[0.1] * 6))[1]
    MapPiece(start=0.5, end=1.0, value=0.5, slope=0.5)
    """
    pieces = []
    for left, right in pairwise(score_map.knots):
        width = right.score - left.score
        slope = (right.probability - left.probability) / width
        while left.probability + width * slope > right.probability:
            slope = math.nextafter(slope, 0.0)
        pieces.append(MapPiece(left.score, right.score, left.probability, slope))
    return tuple(pieces)


def map_scores(score_map: ScoreMap, scores: Floats, threshold: float) -> Floats:
    """Return the calibrated probability of each edited score, shape (n,).

    The threshold stays the threshold. A score above it stays strictly above, and one below it
    strictly below: where rounding would put the probability onto the threshold, the number next to
    the threshold takes its place.

    Examples
    --------
    >>> from commod._record import ScoreKnot
    >>> knots = ScoreKnot(0.0, 0.1), ScoreKnot(0.5, 0.5), ScoreKnot(1.0, 0.75)
    >>> map_scores(ScoreMap(knots, 9, *[0.1] * 6), np.array([0.25, 0.5, 0.75]), 0.5)
    array([0.3  , 0.5  , 0.625])
    """
    pieces = np.array(pieces_of(score_map))
    piece = np.searchsorted(pieces[1:, 0], scores, side="right")
    start, _, value, slope = pieces[piece].T
    mapped = value + (scores - start) * slope
    above, below = math.nextafter(threshold, 1.0), math.nextafter(threshold, 0.0)
    kept = np.where(scores > threshold, np.maximum(mapped, above), np.minimum(mapped, below))
    return np.where(scores == threshold, threshold, kept)


# ---------------------------------------------------------------------------------------------
# Scores beside true labels


def score_bins(scores: Floats) -> NDArray[np.intp]:
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


def brier_score(scores: Floats, label: Mask, weight: Floats | None = None) -> float:
    """Return the mean squared difference of score and true label, in [0, 1].

    Examples
    --------
    >>> brier_score(np.array([0.5, 1.0]), np.array([True, True]))
    0.125
    """
    return float(np.average((scores - label) ** 2, weights=weight))


def reliability_error(scores: Floats, label: Mask, weight: Floats) -> float:
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
