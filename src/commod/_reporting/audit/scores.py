"""Measure scores: accuracy, calibration, ROC curves of groups, and who outscores whom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri
from scipy.stats import binomtest

from commod._data.arrays import Floats, Mask
from commod._data.disclosure import FEWEST_DESCRIBED
from commod._record.audit import Agreement, Calibration, CalibrationBin, Quality
from commod._record.explanation import (
    AreaBetween,
    Direction,
    Estimate,
    GroupOutscoring,
    GroupRoc,
    LargestGap,
    Outscoring,
    RocFigures,
)
from commod._reporting.audit.people import (
    UNDEFINED,
    AuditedPeople,
    ShownPeople,
    finite_or_none,
)
from commod._statistics.intervals import share_estimate, share_interval
from commod._statistics.score_map import brier_score, score_bins
from commod.metrics import score_agreement
from commod.metrics._changes import Sides
from commod.metrics._roc import N_RESAMPLES, ResampledCurves, ScoreCells, score_cells


def figures_of_scores(counted: ShownPeople) -> dict[str, Any]:
    """Return the figures of an audit that single scores give, by field; None where not known."""
    people, threshold = counted.people, counted.request.threshold
    before, after = people.scores_before, people.scores_after
    n_contradictions, is_paired = None, before is not None and after is not None
    if after is not None and threshold is not None:
        is_above = (after > threshold) == people.score_is_for_positive
        n_contradictions = int((is_above != people.after).sum())
    return {
        "agreement": _agreement(before, after) if is_paired else None,
        "calibration": _calibration(counted) if is_paired and people.label is not None else None,
        "n_contradictions": n_contradictions,
        "outscoring": outscoring_of(counted),
        "roc": roc_of(rank_groups(counted), people.group_names, counted.level),
    }


def _agreement(before: Floats | None, after: Floats | None) -> Agreement:
    agreement = score_agreement(before, after)
    return Agreement(
        mean_absolute_difference=agreement.mean_absolute_difference,
        correlation=finite_or_none(agreement.correlation),
        rank_correlation=finite_or_none(agreement.rank_correlation),
        share_identical=agreement.share_identical,
    )


def quality_of(counted: ShownPeople, *, has_rows: bool = True) -> Quality | None:
    """Return accuracy and areas under the curve, before and after; None without true labels."""
    counts, people, level = counted.everybody, counted.people, counted.level
    if people.label is None:
        return None
    n_fixed, n_introduced = (int(n.sum()) for n in counts.fixed_and_introduced())
    n_both = n_fixed + n_introduced
    before, after = (
        share_estimate(int(counts.by_decision(when)[:, [0, 1], [0, 1]].sum()), counts.n, level)
        for when in (False, True)
    )
    label, loss = people.label == people.score_is_for_positive, None
    scores = [people.scores_before, people.scores_after] if has_rows else [None, None]
    if scores[0] is not None and scores[1] is not None:
        loss = area_loss(scores[0], scores[1], label, level)
    areas = (None if of is None else RankedScores.of(of).area(label, level) for of in scores)
    return Quality(
        before,
        after,
        n_errors_fixed=n_fixed,
        n_errors_introduced=n_introduced,
        p_value=float(binomtest(n_fixed, n_both).pvalue) if n_both else 1.0,
        auc_before=next(areas),
        auc_after=next(areas),
        auc_loss=loss,
    )


# ---------------------------------------------------------------------------------------------
# Calibration


def _calibration(counted: ShownPeople) -> Calibration:
    """Return scores against true labels."""
    people, level = counted.people, counted.level
    assert people.scores_before is not None and people.scores_after is not None
    assert people.label is not None
    label = people.label == people.score_is_for_positive
    before = calibration_bins(people.scores_before, label, level)
    after = calibration_bins(people.scores_after, label, level)
    figures = Calibration(
        before=before,
        after=after,
        error_before=calibration_error(before),
        error_after=calibration_error(after),
        brier_before=brier_score(people.scores_before, label),
        brier_after=brier_score(people.scores_after, label),
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


def _one_bin(scores: Floats, label: Mask, level: float) -> CalibrationBin | None:
    """Return some people as one bin; None where there are none."""
    n = len(scores)
    if not n:
        return None
    return CalibrationBin(n, float(scores.mean()), share_estimate(int(label.sum()), n, level))


def calibration_bins(scores: Floats, label: Mask, level: float) -> tuple[CalibrationBin, ...]:
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


IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class RankedScores:
    """Scores as ranks of their values, so that many areas under the curve need one sort."""

    codes: NDArray[np.intp]
    n_values: int

    @classmethod
    def of(cls, scores: Floats) -> RankedScores:
        """Return the ranks of scores (n,)."""
        values, codes = np.unique(scores, return_inverse=True)
        return cls(codes, len(values))

    def placements(self, positive: Mask) -> Floats:
        """Return the share of negatives below each positive, and of positives above each negative.

        `positive` and the result have shape (n,). Ties count half.
        """
        below, above = _placements(*self._counts(positive))
        return np.where(positive, below[self.codes], above[self.codes])

    def area(self, positive: Mask, level: float) -> Estimate:
        """Return the area under the curve for positives and negatives, `positive` (n,).

        Examples
        --------
        >>> ranked = RankedScores.of(np.array([0.1, 0.4, 0.35, 0.8]))
        >>> ranked.area(np.array([False, False, True, True]), 0.95).value
        0.75
        """
        return area_of_counts(*self._counts(positive), level)

    def _counts(self, positive: Mask) -> tuple[IntArray, IntArray]:
        positives = np.bincount(self.codes[positive], minlength=self.n_values)
        return positives, self._people - positives

    @cached_property
    def _people(self) -> IntArray:
        """Return the number of people with each value."""
        return np.bincount(self.codes, minlength=self.n_values)


def area_of_counts(positives: IntArray, negatives: IntArray, level: float) -> Estimate:
    """Return the area under the curve of people counted by score, lowest first, both (n_values,).

    The interval is DeLong's on the logit scale. Where the scores separate the classes without
    error, DeLong's variance is 0; the interval is then that of no error among the smaller class.

    Examples
    --------
    >>> area_of_counts(np.array([1, 3]), np.array([3, 1]), 0.95).value
    0.75
    """
    n_positive, n_negative = int(positives.sum()), int(negatives.sum())
    if not n_positive or not n_negative:
        return UNDEFINED
    below, above = _placements(positives, negatives)
    area = float(below @ positives) / n_positive
    variance = _variance(below, positives) + _variance(above, negatives)
    low, high = _area_interval(area, variance, min(n_positive, n_negative), (1 - level) / 2)
    return Estimate(area, low, high)


def _placements(positives: IntArray, negatives: IntArray) -> tuple[Floats, Floats]:
    """Return for each value the share of negatives below it, and of positives above, ties half."""
    below = (np.cumsum(negatives) - negatives / 2) / negatives.sum()
    above = 1 - (np.cumsum(positives) - positives / 2) / positives.sum()
    return below, above


def _variance(values: Floats, counts: IntArray) -> float:
    """Return the variance of the mean of values that occur `counts` times."""
    n = int(counts.sum())
    mean = values @ counts / n
    return float((values - mean) ** 2 @ counts) / max(n - 1, 1) / n


def _area_interval(
    area: float, variance: float, n_smaller: int, alpha: float
) -> tuple[float | None, float | None]:
    if n_smaller < 2:
        return None, None
    if not 1e-12 < area < 1 - 1e-12 or not variance:
        low, high = share_interval(round(area * n_smaller), n_smaller, alpha)
        return float(low), float(high)
    half_width = -ndtri(alpha) * math.sqrt(variance) / (area * (1 - area))
    centre = logit(area)
    return float(expit(centre - half_width)), float(expit(centre + half_width))


def area_loss(before: Floats, after: Floats, positive: Mask, level: float) -> Estimate:
    """Return the area before minus the area after, with DeLong's interval of paired areas.

    Examples
    --------
    >>> label = np.array([False, False, True, True])
    >>> area_loss(np.array([0.1, 0.4, 0.5, 0.8]), np.array([0.1, 0.4, 0.3, 0.8]), label, 0.95).value
    0.25
    """
    if positive.all() or not positive.any():
        return UNDEFINED
    first, second = (RankedScores.of(scores).placements(positive) for scores in (before, after))
    return _paired_difference(first, second, positive, level)


def _paired_difference(first: Floats, second: Floats, positive: Mask, level: float) -> Estimate:
    """Return the first area minus the second, from the placements (n,) of the same people."""
    loss, variance = 0.0, 0.0
    for rows in (positive, ~positive):
        difference = first[rows] - second[rows]
        loss = float(difference.mean())  # the same for both classes: the difference of the areas
        n = len(difference)
        variance += float(difference.var(ddof=1)) / n if n > 1 else math.nan
    if math.isnan(variance):
        return Estimate(loss, None, None)
    half_width = float(-ndtri((1 - level) / 2)) * math.sqrt(variance)
    return Estimate(loss, loss - half_width, loss + half_width)


# ---------------------------------------------------------------------------------------------
# Areas that predict the group


def group_areas(
    values: Floats, codes: NDArray[np.intp], is_compared: Mask, level: float
) -> list[Estimate]:
    """Return how well values (n,) predict membership of each compared group."""
    ranked = RankedScores.of(values)
    return [ranked.area(codes == i, level) for i in np.flatnonzero(is_compared)]


def group_area_differences(
    values: Floats, others: Floats, codes: NDArray[np.intp], is_compared: Mask, level: float
) -> list[Estimate]:
    """Return how much better values (n,) predict each compared group than others (n,) do.

    An area below 0.5 predicts who is not in the group, equally well: both areas are turned to 0.5
    or above. The interval is that of paired areas.

    Examples
    --------
    >>> group = np.array([0, 0, 1, 1])
    >>> better, worse = np.array([4.0, 3.0, 2.0, 1.0]), np.array([1.0, 3.0, 2.0, 4.0])
    >>> differences = group_area_differences(better, worse, group, np.array([False, True]), 0.95)
    >>> differences[0].value
    0.25
    """
    ranked = RankedScores.of(values), RankedScores.of(others)
    differences = []
    for i in np.flatnonzero(is_compared):
        positive = codes == i
        if positive.all() or not positive.any():
            differences.append(UNDEFINED)
            continue
        first, second = (_turned(ranks.placements(positive), positive) for ranks in ranked)
        differences.append(_paired_difference(first, second, positive, level))
    return differences


def _turned(placements: Floats, positive: Mask) -> Floats:
    """Return the placements of the scores, or of their negatives, whichever area is larger."""
    return placements if placements[positive].mean() >= 0.5 else 1 - placements


def change_areas(counted: ShownPeople) -> list[Estimate]:
    """Return how well the change itself predicts membership of each compared group."""
    by_decisions = counted.counts.cells.sum(axis=1)
    changed = by_decisions[:, 0, 1] + by_decisions[:, 1, 0]
    members = np.stack([counted.counts.sizes - changed, changed], axis=1)  # unchanged, changed
    others = members.sum(axis=0) - members
    compared = np.flatnonzero(counted.is_compared)
    return [area_of_counts(members[i], others[i], counted.level) for i in compared]


# ---------------------------------------------------------------------------------------------
# ROC curves of groups

MOST_GROUPS = 20  # with curves: every pair of them is compared
N_POINTS = 15  # of a curve in a picture, at most
SEED = 0  # of the resamples: an audit of the same people has the same figures

ONE_LABEL = "all people of the group have the same true label"
FEW_OF_A_LABEL = f"fewer than {FEWEST_DESCRIBED} people of the group have one of the true labels"


@dataclass(frozen=True)
class RankedGroups:
    """The people of each listed group by score and true label.

    `listed` are the numbers of the compared groups, largest groups only. `before` and `after` are
    their people by score, None where scores are not given. `losses` are the areas under the curve
    before minus after; None where single rows are not known. `n_bins` is the number of bins that
    scores were counted in, None where they were not.
    """

    listed: tuple[int, ...]
    n_left_out: int
    before: tuple[ScoreCells, ...] | None
    after: tuple[ScoreCells, ...] | None
    losses: tuple[Estimate, ...] | None = None
    n_bins: int | None = None


def listed_groups(
    sizes: NDArray[np.integer], is_compared: NDArray[np.bool_]
) -> tuple[tuple[int, ...], int]:
    """Return the numbers of the largest compared groups, in order, and how many are left out.

    Examples
    --------
    >>> listed_groups(np.array([40, 7, 90]), np.array([True, False, True]))
    ((0, 2), 0)
    """
    compared = np.flatnonzero(is_compared)
    largest = compared[np.argsort(-sizes[compared], kind="stable")][:MOST_GROUPS]
    return tuple(np.sort(largest).tolist()), len(compared) - len(largest)


def rank_groups(counted: ShownPeople) -> RankedGroups | None:
    """Return the people of each group by score; None without true labels or without scores."""
    people, level = counted.known, counted.level
    scores = people.scores_before, people.scores_after
    is_scored = any(values is not None for values in scores)
    if people.label is None or not is_scored or not counted.is_compared.any():
        return None
    label = people.label == people.score_is_for_positive
    codes = people.groups.codes
    listed, n_left_out = listed_groups(people.groups.sizes, counted.is_compared)
    before, after = (
        None if values is None else _cells_of(values, label, codes, listed) for values in scores
    )
    losses = None
    if people.scores_before is not None and people.scores_after is not None:
        if np.array_equal(people.scores_before, people.scores_after):
            after = before  # the same cells need not be resampled twice
        rows = [codes == i for i in listed]
        losses = tuple(
            area_loss(people.scores_before[own], people.scores_after[own], label[own], level)
            for own in rows
        )
    return RankedGroups(listed, n_left_out, before, after, losses)


def _cells_of(
    scores: NDArray[np.float64],
    label: NDArray[np.bool_],
    codes: NDArray[np.intp],
    listed: Sequence[int],
) -> tuple[ScoreCells, ...]:
    cells = score_cells(scores, label, codes, max(listed) + 1)
    return tuple(cells[i] for i in listed)


# ---------------------------------------------------------------------------------------------
# Figures


def roc_of(ranked: RankedGroups | None, names: Sequence[str], level: float) -> RocFigures | None:
    """Return the areas under and between the curves; None where no group is ranked.

    `names` are those of all groups.
    """
    known = None if ranked is None else (ranked.before or ranked.after)
    if ranked is None or known is None:
        return None
    rocs = [
        _without_figures(names[i], cells) for i, cells in zip(ranked.listed, known, strict=True)
    ]
    described = [j for j, roc in enumerate(rocs) if not roc.why_unknown]
    reference = max(described, key=lambda j: rocs[j].n, default=None)
    own_names = [rocs[j].name for j in described]
    before = _measure(ranked.before, described, reference, ranked, level)
    is_same = ranked.after is ranked.before
    after = before if is_same else _measure(ranked.after, described, reference, ranked, level)
    for k, j in enumerate(described):
        rocs[j] = replace(
            rocs[j],
            **({} if before is None else before.of_group(k, "before")),
            **({} if after is None else after.of_group(k, "after")),
            auc_loss=None if ranked.losses is None else ranked.losses[j],
        )
    return RocFigures(
        reference=None if reference is None else rocs[reference].name,
        groups=tuple(rocs),
        largest_before=None if before is None else before.largest(own_names),
        largest_after=None if after is None else after.largest(own_names),
        n_left_out=ranked.n_left_out,
        n_bins=ranked.n_bins,
    )


def _without_figures(name: str, cells: ScoreCells) -> GroupRoc:
    """Return a group without figures, and why it gets none, if so."""
    n_positive, n_negative = int(cells.positive.sum()), int(cells.negative.sum())
    fewest = min(n_positive, n_negative)
    why = "" if fewest >= FEWEST_DESCRIBED else FEW_OF_A_LABEL if fewest else ONE_LABEL
    return GroupRoc(name, n_positive, n_negative, why_unknown=why)


@dataclass(frozen=True)
class _MeasuredCurves:
    """The curves of the described groups before or after, and how far bins may have moved them.

    `base` is the position of the reference group among them.
    """

    cells: Sequence[ScoreCells]
    base: int
    resampled: ResampledCurves
    level: float
    errors: Sequence[float]

    def of_group(self, k: int, when: str) -> dict[str, Any]:
        """Return the figures of a group under the field names of `GroupRoc`."""
        gap = None
        if k != self.base:
            error = self.errors[k] + self.errors[self.base]
            gap = _with_error(self.resampled.gap(k, self.base, self.level), error)
        return {
            f"auc_{when}": _widened(self.cells[k].area(self.level), self.errors[k]),
            f"gap_{when}": gap,
            f"curve_{when}": self.cells[k].points(N_POINTS, FEWEST_DESCRIBED),
        }

    def largest(self, names: Sequence[str]) -> LargestGap | None:
        """Return the largest area over all pairs; None where there is no pair."""
        pairs = self.resampled.all_pairs()
        if not pairs:
            return None
        (first, second), gap = self.resampled.largest_gap(pairs, self.level)
        error = sum(sorted(self.errors)[-2:])
        return LargestGap(names[first], names[second], _with_error(gap, error))


def _measure(
    cells: Sequence[ScoreCells] | None,
    described: Sequence[int],
    reference: int | None,
    ranked: RankedGroups,
    level: float,
) -> _MeasuredCurves | None:
    if cells is None or reference is None:
        return None
    own = [cells[j] for j in described]
    errors = [0.0 if ranked.n_bins is None else each.tied_area for each in own]
    resampled = ResampledCurves.of(own, N_RESAMPLES, np.random.RandomState(SEED))
    return _MeasuredCurves(own, described.index(reference), resampled, level, errors)


def _with_error(gap: AreaBetween, error: float) -> AreaBetween:
    return replace(gap, area=_widened(gap.area, error))


def _widened(figure: Estimate, error: float) -> Estimate:
    """Return the figure with an interval that also includes this error."""
    if figure.low is None or figure.high is None:
        return figure
    return Estimate(figure.value, max(figure.low - error, 0.0), min(figure.high + error, 1.0))


# ---------------------------------------------------------------------------------------------
# Measure whether those who change are nearer to the threshold than those who do not

DIRECTIONS: tuple[Direction, ...] = ("gain", "loss")


def outscoring_of(counted: ShownPeople) -> tuple[Outscoring, ...]:
    """Return the figures of gains and of losses, whichever occur; none without base scores.

    Only compared groups count: a pair is made within a group, and a small group has few pairs.
    """
    people, names = counted.known, [str(name) for name in counted.compared_names]
    if people.scores_before is None or not names:
        return ()
    # a high score may predict the favourable label, or the other one
    is_good = people.favorable_is_positive == people.score_is_for_positive
    scores = people.scores_before if is_good else -people.scores_before
    group = counted.number[people.groups.codes]
    sides = Sides.of(scores, people.favorable(people.before), group, len(names))
    figures = (_of_direction(people, sides, one, names, counted.level) for one in DIRECTIONS)
    return tuple(figure for figure in figures if figure.n_changed)


def _of_direction(
    people: AuditedPeople, sides: Sides, change: Direction, names: list[str], level: float
) -> Outscoring:
    side, changed = sides.side_of(change), people.changed
    pairs = side.count_pairs(changed)
    true_shares: list[Estimate | None] = [None, None]
    if people.label is not None:
        is_true, own = people.favorable(people.label)[side.rows], changed[side.rows]
        true_shares = [
            share_estimate(int(is_true[part].sum()), int(part.sum()), level) for part in (own, ~own)
        ]
    groups = []
    for i, name in enumerate(names):
        n_changed, n_others = int(pairs.n_changed[i]), int(pairs.n_others[i])
        # the rank of one person among few would tell about that person
        is_described = min(n_changed, n_others) >= FEWEST_DESCRIBED
        figure = pairs.of_group(i).estimate(level) if is_described else UNDEFINED
        groups.append(GroupOutscoring(name, n_changed, n_others, figure))
    return Outscoring(
        change=change,
        n_changed=int(pairs.n_changed.sum()),
        n_others=int(pairs.n_others.sum()),
        same_group=pairs.estimate(level),
        overall=side.without_groups().count_pairs(changed).estimate(level),
        true_share_changed=true_shares[0],
        true_share_others=true_shares[1],
        groups=tuple(groups),
    )
