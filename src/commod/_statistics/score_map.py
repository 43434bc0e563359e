"""Learn, apply and measure maps from edited scores to calibrated probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._record.explanation import ScoreKnot, ScoreMap

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
    >>> from commod._record.explanation import ScoreKnot
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
    >>> from commod._record.explanation import ScoreKnot
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


# ---------------------------------------------------------------------------------------------
# Learn a map that keeps every decision
#
# A map is a rising line through a few knots. It is learned by weighted least squares, which is the
# Brier score, separately on the two sides of the threshold:
#
# 1. Candidate knots are quantiles of the scores, rounded to three digits. Each line between two of
#    them has at least `MIN_CATEGORY_SIZE` people. One more knot lies next to the threshold: between
#    the two the line may be steep, because the threshold need not be where the true share is.
# 2. Five folds choose the number of knots: the fewest whose out-of-fold Brier score is within one
#    standard error of the best.
# 3. The map itself is learned on all rows with these knots. One map is easier to read than the mean
#    of five, and its figures, which are out-of-fold, describe maps of four fifths of the rows.
#
# Every line rises by at least `MIN_SLOPE`, so people keep their order. If the true labels would
# put people onto the other side of the threshold, the map holds them next to the threshold.

N_FOLDS = 5
QUANTILES_PER_SIDE = (0, 1, 3, 7)  # that may become knots
MIN_SLOPE = 1e-3
MIN_GAP = 1e-3  # between knots, as a share of the side: no line is steeper than 1 / MIN_GAP
MIN_ROOM = 1e-6  # a narrower side keeps its scores: rounding would make knots equal
DIGITS = 3  # of a knot; a number with no more of them identifies nobody
VALUE_DIGITS = 9  # of a probability: the last bits depend on the processor, and lines have to rise
FIGURE_DIGITS = 6  # of a measured figure
MAX_ROWS = 100_000  # that a map is learned on: it has some ten free numbers


def too_few_text(label: Mask | None) -> str:
    """Return why no map can be learned from true labels (n,); empty if it can.

    Examples
    --------
    >>> too_few_text(np.array([True, False]))
    'the fit rows have 1 and 1 people of the two true labels, and 5 of each are needed, 20 in all'
    """
    if label is None:
        return "the update was fitted without true labels (y is None)"
    n_true = int(label.sum())
    counts = n_true, len(label) - n_true
    if min(counts) >= N_FOLDS and len(label) >= MIN_CATEGORY_SIZE:
        return ""
    return (
        f"the fit rows have {counts[0]:,} and {counts[1]:,} people of the two true labels, and "
        f"{N_FOLDS} of each are needed, {MIN_CATEGORY_SIZE} in all"
    )


def learn_score_map(
    before: Floats,
    edited: Floats,
    label: Mask,
    weight: Floats,
    threshold: float,
    landmarks: Sequence[float] = (),
) -> ScoreMap:
    """Return the map of `edited` scores (n,) to probabilities of the `label` (n,).

    Parameters
    ----------
    before : ndarray of shape (n,)
        The base scores; their figures are reported beside. Of more than MAX_ROWS rows, evenly
        spaced ones are taken.
    edited : ndarray of shape (n,)
        The edited scores of the label that the score predicts.
    label : ndarray of bool, shape (n,)
        Whether the true label is that label.
    weight : ndarray of shape (n,)
        Positive weights.
    threshold : float
        The score that is mapped to itself.
    landmarks : sequence of float
        Scores at which the edit bends, such as the ends of the band of changed scores. They are
        candidate knots.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> scores = random.random(2000)
    >>> label = random.random(2000) < scores**2
    >>> score_map = learn_score_map(scores, scores, label, np.ones(2000), 0.5)
    >>> score_map.brier_calibrated < score_map.brier_after
    True
    >>> map_scores(score_map, np.array([0.2, 0.5, 0.9]), 0.5).round(2)
    array([0.04, 0.5 , 0.8 ])
    """
    step = -(-len(edited) // MAX_ROWS)
    before, edited, label, weight = before[::step], edited[::step], label[::step], weight[::step]
    order = np.lexsort([weight, before, label, edited])  # so the order of the rows does not matter
    before, edited, label = before[order], edited[order], label[order]
    weight = weight[order] / weight.mean()
    fold = _folds(edited, label)
    probability = np.full(len(edited), threshold)
    ends: list[list[ScoreKnot]] = []
    for side in (_Side(threshold, 0.0), _Side(threshold, 1.0)):
        rows = np.flatnonzero(side.distance(edited) > 0)
        rows = rows[np.argsort(fold[rows], kind="stable")]
        distances = side.distance(edited[rows]), side.distance(label[rows])
        people = _WeightedPeople(*distances, weight[rows], fold[rows])
        beyond, out_of_fold = _learn_side(side, people, landmarks)
        probability[rows] = threshold + side.sign * out_of_fold
        ends.append(beyond)
    knots = *reversed(ends[0]), ScoreKnot(threshold, threshold), *ends[1]
    figures = [
        float(f"{measure(scores, label, weight):.{FIGURE_DIGITS}g}")
        for measure in (brier_score, reliability_error)
        for scores in (before, edited, probability)
    ]
    return ScoreMap(knots, len(edited), *figures)


def _folds(scores: Floats, label: Mask) -> NDArray[np.intp]:
    """Return the fold of each row, shape (n,): the folds have alike labels and scores.

    No random numbers are drawn, so equal rows give an equal map.
    """
    order = np.lexsort([scores, label])
    fold = np.empty(len(scores), dtype=np.intp)
    fold[order] = np.arange(len(scores)) % N_FOLDS
    return fold


# ---------------------------------------------------------------------------------------------
# One side of the threshold


class _Side(NamedTuple):
    """The scores from the threshold to `end`, which is 0 or 1."""

    threshold: float
    end: float

    @property
    def sign(self) -> float:
        return 1.0 if self.end else -1.0

    @property
    def room(self) -> float:
        return abs(self.end - self.threshold)

    def distance(self, score: Any) -> Any:
        """Return how far a score lies beyond the threshold; negative on the other side."""
        return self.sign * (score - self.threshold)


class _WeightedPeople(NamedTuple):
    """Rows on one side: distances of score and true label from the threshold, weights, folds.

    `target` is positive where the true label is on this side. All have shape (n,), and rows are in
    the order of folds.
    """

    distance: Floats
    target: Floats
    weight: Floats
    fold: NDArray[np.intp]


def _learn_side(
    side: _Side, people: _WeightedPeople, landmarks: Sequence[float]
) -> tuple[list[ScoreKnot], Floats]:
    """Return the knots beyond the threshold, nearest first, and out-of-fold distances (n,)."""
    if side.room < MIN_ROOM:
        return [ScoreKnot(side.end, side.end)], people.distance
    candidates = dict.fromkeys(
        tuple(_knot_scores(side, people.distance, n, landmarks)) for n in QUANTILES_PER_SIDE
    )
    fits = [_fit_side(side, people, knots) for knots in candidates]
    losses = [people.weight * (people.target - out_of_fold) ** 2 for _, out_of_fold in fits]
    chosen = _simplest(losses)
    values, out_of_fold = fits[chosen]
    rounded = (float(f"{value:.{VALUE_DIGITS}g}") for value in values.tolist())
    probabilities = [side.threshold + side.sign * min(value, side.room) for value in rounded]
    return list(map(ScoreKnot, list(candidates)[chosen], probabilities)), out_of_fold


def _simplest(losses: Sequence[Floats]) -> int:
    """Return the first loss whose sum is within one standard error of the smallest."""
    best = losses[int(np.argmin([loss.sum() for loss in losses]))]
    extra = [loss - best for loss in losses]
    return [e.sum() <= np.sqrt((e**2).sum()) for e in extra].index(True)


def _knot_scores(
    side: _Side, distance: Floats, n_knots: int, landmarks: Sequence[float]
) -> list[float]:
    """Return the scores of the knots, nearest to the threshold first; the end is the last one.

    The first knot is the end of the ramp. A further knot that would leave fewer than
    MIN_CATEGORY_SIZE people on a line is left out.
    """
    shares = np.arange(1, n_knots + 1) / (n_knots + 1)
    quantiles = np.quantile(distance, shares).tolist() if len(distance) else []
    rounded = [float(f"{side.threshold + side.sign * u:.{DIGITS}g}") for u in quantiles]
    gap = MIN_GAP * side.room
    free = [s for s in rounded if all(abs(s - mark) > 2 * gap for mark in landmarks)]
    ordered = np.sort(distance)

    def has_people(low: float, high: float) -> bool:
        first, last = np.searchsorted(ordered, [low, high], side="right")
        return bool(last - first >= MIN_CATEGORY_SIZE)

    kept = [ramp_ends(side.threshold)[int(side.end)]]
    for score in sorted([*free, *landmarks], key=side.distance):
        before, here = side.distance(kept[-1]), side.distance(score)
        if before + gap <= here <= side.room - gap and has_people(before, here):
            kept.append(score)
    while len(kept) > 1 and not has_people(side.distance(kept[-1]), side.room):
        kept.pop()
    return [*kept, side.end]


def _fit_side(
    side: _Side, people: _WeightedPeople, knots: tuple[float, ...]
) -> tuple[Floats, Floats]:
    """Return the distances of the knots' probabilities (m,), and those of the rows, out-of-fold.

    The distance of a row is learned without the rows of its fold.
    """
    ends = np.array([0.0, *map(side.distance, knots)])
    ramps = np.clip((people.distance[:, None] - ends[:-1]) / np.diff(ends), 0.0, 1.0)
    target = people.target - MIN_SLOPE * people.distance
    out_of_fold = np.empty(len(target))
    weighted = ramps * people.weight[:, None]
    starts = np.searchsorted(people.fold, np.arange(N_FOLDS + 1))
    folds = [slice(*starts[f : f + 2]) for f in range(N_FOLDS)]
    sums = [(weighted[rows].T @ ramps[rows], weighted[rows].T @ target[rows]) for rows in folds]
    gram, moment = (sum(parts) for parts in zip(*sums, strict=True))
    for rows, (fold_gram, fold_moment) in zip(folds, sums, strict=True):
        values = _rising_values(gram - fold_gram, moment - fold_moment, ends)
        out_of_fold[rows] = np.interp(people.distance[rows], ends, [0.0, *values])
    return _rising_values(gram, moment, ends), out_of_fold


def _rising_values(gram: Floats, moment: Floats, ends: Floats) -> Floats:
    """Return the distances of the probabilities at the knots from the threshold, shape (m,).

    This is least squares from the sums over rows. The unknowns are the rises from knot to knot
    beyond the least slope, which are not negative. One person at each knot, whose label agrees
    with the score, keeps the values near the scores where there are few rows.
    """
    from scipy.optimize import nnls  # loads slowly, and only learning needs it

    prior = np.tri(len(moment))
    root = np.linalg.cholesky(gram + prior.T @ prior)  # positive definite: the prior is
    moment = moment + prior.T @ ((1 - MIN_SLOPE) * ends[1:])
    rises, _ = nnls(root.T, np.linalg.solve(root, moment))
    values = MIN_SLOPE * ends[1:] + np.cumsum(rises)
    # no probability lies beyond 0 or 1, and every line still rises
    room = ends[-1]
    return np.minimum(values, room - MIN_SLOPE * (room - ends[1:]))
