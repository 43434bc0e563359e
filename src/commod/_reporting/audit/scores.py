"""How good scores are and whom they tell apart: areas under the curve, calibration, agreement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri
from scipy.stats import binomtest

from commod._record import Agreement, Calibration, CalibrationBin, Estimate, Proxy, Quality
from commod._reporting.audit.counts import Counts, number, share
from commod._reporting.audit.people import People
from commod._statistics.intervals import share_interval
from commod.metrics import score_agreement

__all__ = [
    "NO_AREAS",
    "Areas",
    "Ranked",
    "agreement_of",
    "area_loss",
    "area_of_counts",
    "areas_of",
    "calibration_bins",
    "calibration_error",
    "calibration_of",
    "change_areas",
    "group_areas",
    "mean_scores_of",
    "n_unlike_of",
    "proxies_of",
    "quality_of",
]

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

N_BINS = 10
Areas = tuple[Estimate | None, Estimate | None, Estimate | None]  # before, after, what is lost
NO_AREAS: Areas = (None, None, None)


@dataclass(frozen=True)
class Ranked:
    """Scores as the rank of their value, so that many areas under the curve cost one sort."""

    codes: NDArray[np.intp]
    n_values: int

    @classmethod
    def of(cls, scores: FloatArray) -> Ranked:
        """Return the ranks of scores (n,)."""
        values, codes = np.unique(scores, return_inverse=True)
        return cls(codes, len(values))

    def placements(self, positive: BoolArray) -> FloatArray:
        """Return for a positive the share of negatives below it, for a negative the reverse."""
        positives = np.bincount(self.codes[positive], minlength=self.n_values)
        negatives = np.bincount(self.codes, minlength=self.n_values) - positives
        below, above = _placements(positives, negatives)
        return np.where(positive, below[self.codes], above[self.codes])

    def area(self, positive: BoolArray, level: float) -> Estimate:
        """Return the chance that a positive has a higher score than a negative, ties half.

        Examples
        --------
        >>> ranked = Ranked.of(np.array([0.1, 0.4, 0.35, 0.8]))
        >>> ranked.area(np.array([False, False, True, True]), 0.95).value
        0.75
        """
        positives = np.bincount(self.codes[positive], minlength=self.n_values)
        negatives = np.bincount(self.codes, minlength=self.n_values) - positives
        return area_of_counts(positives, negatives, level)


def area_of_counts(positives: IntArray, negatives: IntArray, level: float) -> Estimate:
    """Return the area under the curve of people counted by score, lowest first, both (n_values,).

    The interval is DeLong's on the logit scale. Where the classes are told apart without an error
    nothing varies, and the interval is that of no error among the smaller class.

    Examples
    --------
    >>> area_of_counts(np.array([1, 3]), np.array([3, 1]), 0.95).value
    0.75
    """
    n_positive, n_negative = int(positives.sum()), int(negatives.sum())
    if not n_positive or not n_negative:
        return Estimate(None, None, None)
    below, above = _placements(positives, negatives)
    area = float(below @ positives) / n_positive
    variance = _variance(below, positives) + _variance(above, negatives)
    low, high = _area_interval(area, variance, min(n_positive, n_negative), (1 - level) / 2)
    return Estimate(area, low, high)


def _placements(positives: IntArray, negatives: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return for each value the share of negatives below it, and of positives above, ties half."""
    below = (np.cumsum(negatives) - negatives / 2) / negatives.sum()
    above = 1 - (np.cumsum(positives) - positives / 2) / positives.sum()
    return below, above


def area_loss(before: FloatArray, after: FloatArray, positive: BoolArray, level: float) -> Estimate:
    """Return the area before minus the area after, with DeLong's interval of paired areas.

    Examples
    --------
    >>> label = np.array([False, False, True, True])
    >>> area_loss(np.array([0.1, 0.4, 0.5, 0.8]), np.array([0.1, 0.4, 0.3, 0.8]), label, 0.95).value
    0.25
    """
    if positive.all() or not positive.any():
        return Estimate(None, None, None)
    first, second = (Ranked.of(scores).placements(positive) for scores in (before, after))
    loss, variance = 0.0, 0.0
    for rows in (positive, ~positive):
        moved = first[rows] - second[rows]
        loss = float(moved.mean())  # the same for both: each is the difference of the areas
        variance += float(moved.var(ddof=1)) / len(moved) if len(moved) > 1 else math.nan
    if math.isnan(variance):
        return Estimate(loss, None, None)
    reach = float(-ndtri((1 - level) / 2)) * math.sqrt(variance)
    return Estimate(loss, loss - reach, loss + reach)


def _variance(values: FloatArray, counts: IntArray) -> float:
    """Return the variance of the mean of values that occur `counts` times."""
    n = int(counts.sum())
    mean = values @ counts / n
    return float((values - mean) ** 2 @ counts) / max(n - 1, 1) / n


def _area_interval(
    area: float, variance: float, n_fewer: int, alpha: float
) -> tuple[float | None, float | None]:
    if n_fewer < 2:
        return None, None
    if not 1e-12 < area < 1 - 1e-12 or not variance:
        low, high = share_interval(round(area * n_fewer), n_fewer, alpha)
        return float(low), float(high)
    reach = -ndtri(alpha) * math.sqrt(variance) / (area * (1 - area))
    middle = logit(area)
    return float(expit(middle - reach)), float(expit(middle + reach))


# ---------------------------------------------------------------------------------------------
# Quality


def quality_of(counts: Counts, areas: Areas, level: float) -> Quality | None:
    """Return accuracy and areas under the curve, before and after; None without labels."""
    if not counts.has_labels:
        return None
    cells = counts.cells.sum(axis=0)  # true label, before, after
    n_errors_introduced = int(cells[0, 0, 1] + cells[1, 1, 0])
    n_errors_fixed = int(cells[0, 1, 0] + cells[1, 0, 1])
    n_changed = n_errors_introduced + n_errors_fixed
    return Quality(
        accuracy_before=share(int(counts.n_right(False).sum()), counts.n, level),
        accuracy_after=share(int(counts.n_right(True).sum()), counts.n, level),
        n_errors_fixed=n_errors_fixed,
        n_errors_introduced=n_errors_introduced,
        p_value=float(binomtest(n_errors_fixed, n_changed).pvalue) if n_changed else 1.0,
        auc_before=areas[0],
        auc_after=areas[1],
        auc_loss=areas[2],
    )


def areas_of(people: People, level: float) -> Areas:
    """Return the areas under the curve before and after, and the loss; None where not known."""
    label, before, after = people.label, people.scores_before, people.scores_after
    if label is None:
        return NO_AREAS
    return (
        None if before is None else Ranked.of(before).area(label, level),
        None if after is None else Ranked.of(after).area(label, level),
        None if before is None or after is None else area_loss(before, after, label, level),
    )


def mean_scores_of(people: People) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the mean score of each group (n_groups,), before and after; None where not given."""
    codes, sizes = people.groups.codes, people.groups.sizes
    before, after = (
        None if scores is None else np.bincount(codes, scores, minlength=len(sizes)) / sizes
        for scores in (people.scores_before, people.scores_after)
    )
    return before, after


def n_unlike_of(people: People, threshold: float | None) -> int | None:
    """Return how many decisions are not what score > threshold says; None without either."""
    if people.scores_after is None or threshold is None:
        return None
    return int(((people.scores_after > threshold) != people.after).sum())


def agreement_of(people: People) -> Agreement | None:
    """Return how close the scores are; None where one column is not given."""
    if people.scores_before is None or people.scores_after is None:
        return None
    found = score_agreement(people.scores_before, people.scores_after)
    return Agreement(
        mean_absolute_difference=found.mean_absolute_difference,
        correlation=number(found.correlation),
        rank_correlation=number(found.rank_correlation),
        share_identical=found.share_identical,
    )


# ---------------------------------------------------------------------------------------------
# Calibration


def calibration_of(people: People, level: float) -> Calibration | None:
    """Return mean scores beside what happened, in bins of about as many people each."""
    if people.label is None or people.scores_before is None or people.scores_after is None:
        return None
    before = calibration_bins(people.scores_before, people.label, level)
    after = calibration_bins(people.scores_after, people.label, level)
    return Calibration(before, after, calibration_error(before), calibration_error(after))


def calibration_bins(
    scores: FloatArray, happened: BoolArray, level: float
) -> tuple[CalibrationBin, ...]:
    """Return at most ten bins of about as many people each; equal scores share a bin."""
    edges = np.unique(np.quantile(scores, np.arange(1, N_BINS) / N_BINS))
    index = np.searchsorted(edges, scores, side="right")
    n = np.bincount(index, minlength=len(edges) + 1).tolist()
    total = np.bincount(index, scores, minlength=len(n)).tolist()
    hits = np.bincount(index[happened], minlength=len(n)).tolist()
    return tuple(
        CalibrationBin(n[i], total[i] / n[i], share(hits[i], n[i], level))
        for i in range(len(n))
        if n[i]
    )


def calibration_error(bins: tuple[CalibrationBin, ...]) -> float:
    """Return the mean distance of scores and what happened, weighted by people."""
    distances = [b.n * abs((b.observed.value or 0.0) - b.mean_score) for b in bins]
    return sum(distances) / sum(b.n for b in bins)


# ---------------------------------------------------------------------------------------------
# Proxies


def group_areas(
    values: FloatArray, codes: NDArray[np.intp], compared: BoolArray, level: float
) -> list[Estimate]:
    """Return how well values (n,) tell who belongs to each of the compared groups."""
    ranked = Ranked.of(values)
    return [ranked.area(codes == i, level) for i in np.flatnonzero(compared)]


def change_areas(counts: Counts, compared: BoolArray, level: float) -> list[Estimate]:
    """Return how well the change itself tells who belongs to each of the compared groups."""
    changed = sum(counts.moves())
    members = np.stack([counts.sizes - changed, changed], axis=1)  # group; stays, changes
    others = members.sum(axis=0) - members
    return [area_of_counts(members[i], others[i], level) for i in np.flatnonzero(compared)]


def proxies_of(
    names: Sequence[str],
    updates: Sequence[Estimate],
    base_scores: Sequence[Estimate] | None,
    *,
    by_ratio: bool,
) -> tuple[Proxy, ...]:
    """Return how well −r, or the change itself without r, tells who belongs to each group.

    `updates` and `base_scores` are the areas of the compared groups, which `names` names.
    """
    bases = [None] * len(names) if base_scores is None else base_scores
    return tuple(
        Proxy(group=name, by_ratio=by_ratio, update=update, base_score=base)
        for name, update, base in zip(names, updates, bases, strict=True)
    )
