"""Measure scores and decisions: accuracy, calibration and agreement, before and after."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from commod._record import Agreement, Calibration, CalibrationBin, Estimate, Quality
from commod._reporting.audit.areas import RankedScores, area_loss
from commod._reporting.audit.counts import DecisionCounts, finite_or_none
from commod._reporting.audit.people import AuditedPeople
from commod._statistics.intervals import share_estimate
from commod._statistics.score_map import brier_score, score_bins
from commod.metrics import score_agreement

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ScoreFigures:
    """What scores before and after say; None where it is not known.

    `mean_before` and `mean_after` have shape (n_groups,); `square_before` and `square_after` are
    the means of squared scores. `auc_loss` is the area under the curve
    before minus the area after. `n_contradictions` new decisions differ from score > threshold.
    """

    mean_before: FloatArray | None = None
    mean_after: FloatArray | None = None
    square_before: FloatArray | None = None
    square_after: FloatArray | None = None
    auc_before: Estimate | None = None
    auc_after: Estimate | None = None
    auc_loss: Estimate | None = None
    agreement: Agreement | None = None
    calibration: Calibration | None = None
    n_contradictions: int | None = None


def measure_scores(people: AuditedPeople, threshold: float | None, level: float) -> ScoreFigures:
    """Return all figures of the scores that are given."""
    before, after = people.scores_before, people.scores_after
    is_scored = people.coding.score_is_for_positive
    label = None if people.label is None else people.label == is_scored
    pair = None if before is None or after is None else (before, after)
    labelled = None if pair is None or label is None else (*pair, label)
    is_above = None if after is None or threshold is None else (after > threshold) == is_scored
    sizes = np.ones(len(people))
    return ScoreFigures(
        mean_before=people.group_means(before, sizes),
        mean_after=people.group_means(after, sizes),
        square_before=people.group_means(None if before is None else before**2, sizes),
        square_after=people.group_means(None if after is None else after**2, sizes),
        auc_before=_area(before, label, level),
        auc_after=_area(after, label, level),
        auc_loss=None if labelled is None else area_loss(*labelled, level),
        agreement=None if pair is None else _agreement(*pair),
        calibration=None if labelled is None else _calibration(people, *labelled, level),
        n_contradictions=None if is_above is None else int((is_above != people.after).sum()),
    )


def _area(scores: FloatArray | None, label: BoolArray | None, level: float) -> Estimate | None:
    if scores is None or label is None:
        return None
    return RankedScores.of(scores).area(label, level)


def _agreement(before: FloatArray, after: FloatArray) -> Agreement:
    agreement = score_agreement(before, after)
    return Agreement(
        mean_absolute_difference=agreement.mean_absolute_difference,
        correlation=finite_or_none(agreement.correlation),
        rank_correlation=finite_or_none(agreement.rank_correlation),
        share_identical=agreement.share_identical,
    )


def quality_of(counts: DecisionCounts, scores: ScoreFigures, level: float) -> Quality | None:
    """Return accuracy and areas under the curve, before and after; None without true labels."""
    if not counts.has_labels:
        return None
    n_fixed, n_introduced = (int(n.sum()) for n in counts.fixed_and_introduced())
    n_both = n_fixed + n_introduced
    return Quality(
        accuracy_before=share_estimate(counts.n_correct(after=False), counts.n, level),
        accuracy_after=share_estimate(counts.n_correct(after=True), counts.n, level),
        n_errors_fixed=n_fixed,
        n_errors_introduced=n_introduced,
        p_value=float(binomtest(n_fixed, n_both).pvalue) if n_both else 1.0,
        auc_before=scores.auc_before,
        auc_after=scores.auc_after,
        auc_loss=scores.auc_loss,
    )


# ---------------------------------------------------------------------------------------------
# Calibration


def _calibration(
    people: AuditedPeople,
    scores_before: FloatArray,
    scores_after: FloatArray,
    label: BoolArray,
    level: float,
) -> Calibration:
    before = calibration_bins(scores_before, label, level)
    after = calibration_bins(scores_after, label, level)
    figures = Calibration(
        before=before,
        after=after,
        error_before=calibration_error(before),
        error_after=calibration_error(after),
        brier_before=brier_score(scores_before, label),
        brier_after=brier_score(scores_after, label),
    )
    probability = people.scores_calibrated
    if probability is None:
        return figures
    calibrated = calibration_bins(probability, label, level)
    return replace(
        figures,
        calibrated=calibrated,
        error_calibrated=calibration_error(calibrated),
        brier_calibrated=brier_score(probability, label),
        gains=_one_bin(probability[people.gain], label[people.gain], level),
        losses=_one_bin(probability[people.loss], label[people.loss], level),
    )


def _one_bin(scores: FloatArray, label: BoolArray, level: float) -> CalibrationBin | None:
    """Return some people as one bin; None where there are none."""
    n = len(scores)
    if not n:
        return None
    return CalibrationBin(n, float(scores.mean()), share_estimate(int(label.sum()), n, level))


def calibration_bins(
    scores: FloatArray, label: BoolArray, level: float
) -> tuple[CalibrationBin, ...]:
    """Return at most ten bins with about equally many people; equal scores share a bin."""
    index = score_bins(scores)
    n = np.bincount(index).tolist()
    total = np.bincount(index, scores).tolist()
    positives = np.bincount(index[label], minlength=len(n)).tolist()
    return tuple(
        CalibrationBin(n[i], total[i] / n[i], share_estimate(positives[i], n[i], level))
        for i in range(len(n))
    )


def calibration_error(bins: tuple[CalibrationBin, ...]) -> float:
    """Return the mean distance between mean score and observed rate, weighted by people."""
    distances = [b.n * abs((b.observed.value or 0.0) - b.mean_score) for b in bins]
    return sum(distances) / sum(b.n for b in bins)
