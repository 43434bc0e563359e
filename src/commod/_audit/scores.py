"""How good scores are and whom they tell apart: areas under the curve, calibration, agreement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri
from scipy.stats import binomtest

from commod._audit.counts import Counts, number, share
from commod._audit.people import People
from commod._intervals import share_interval
from commod._record import Agreement, Calibration, CalibrationBin, Estimate, Proxy, Quality
from commod.metrics import score_agreement

__all__ = [
    "Ranked",
    "agreement_of",
    "area_loss",
    "calibration_bins",
    "calibration_error",
    "calibration_of",
    "proxies_of",
    "quality_of",
]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

N_BINS = 10


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

        The interval is DeLong's on the logit scale. Where the classes are told apart without an
        error nothing varies, and the interval is that of no error among the smaller class.

        Examples
        --------
        >>> ranked = Ranked.of(np.array([0.1, 0.4, 0.35, 0.8]))
        >>> ranked.area(np.array([False, False, True, True]), 0.95).value
        0.75
        """
        positives = np.bincount(self.codes[positive], minlength=self.n_values)
        negatives = np.bincount(self.codes, minlength=self.n_values) - positives
        n_positive, n_negative = int(positives.sum()), int(negatives.sum())
        if not n_positive or not n_negative:
            return Estimate(None, None, None)
        below, above = _placements(positives, negatives)
        area = float(below @ positives) / n_positive
        variance = _variance(below, positives) + _variance(above, negatives)
        low, high = _area_interval(area, variance, min(n_positive, n_negative), (1 - level) / 2)
        return Estimate(area, low, high)


def _placements(
    positives: NDArray[np.int64], negatives: NDArray[np.int64]
) -> tuple[FloatArray, FloatArray]:
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


def _variance(values: FloatArray, counts: NDArray[np.int64]) -> float:
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


def quality_of(people: People, counts: Counts, level: float) -> Quality | None:
    """Return accuracy and areas under the curve, before and after; None without labels."""
    if people.label is None:
        return None
    cells = counts.cells.sum(axis=0)  # true label, before, after
    n_broken = int(cells[0, 0, 1] + cells[1, 1, 0])
    n_mended = int(cells[0, 1, 0] + cells[1, 0, 1])
    n_changed = n_broken + n_mended
    return Quality(
        accuracy_before=share(int(counts.n_right(False).sum()), counts.n, level),
        accuracy_after=share(int(counts.n_right(True).sum()), counts.n, level),
        n_mended=n_mended,
        n_broken=n_broken,
        p_value=float(binomtest(n_mended, n_changed).pvalue) if n_changed else 1.0,
        auc_before=_area_of(people.scores_before, people.label, level),
        auc_after=_area_of(people.scores_after, people.label, level),
        auc_loss=_loss_of(people, level),
    )


def _area_of(scores: FloatArray | None, label: BoolArray, level: float) -> Estimate | None:
    return None if scores is None else Ranked.of(scores).area(label, level)


def _loss_of(people: People, level: float) -> Estimate | None:
    if people.label is None or people.scores_before is None or people.scores_after is None:
        return None
    return area_loss(people.scores_before, people.scores_after, people.label, level)


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


def proxies_of(people: People, ratio: Any, compared: BoolArray, level: float) -> tuple[Proxy, ...]:
    """Return how well −r, or the change itself without r, tells who belongs to each group."""
    push = people.changed.astype(np.float64) if ratio is None else -np.asarray(ratio)
    pushed = Ranked.of(push)
    scored = None if people.scores_before is None else Ranked.of(people.scores_before)
    found = []
    for i, name in enumerate(people.group_names):
        if compared[i]:
            is_member = people.groups.codes == i
            found.append(
                Proxy(
                    group=name,
                    by_ratio=ratio is not None,
                    update=pushed.area(is_member, level),
                    base_score=None if scored is None else scored.area(is_member, level),
                )
            )
    return tuple(found)
