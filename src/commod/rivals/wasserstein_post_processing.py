"""Wasserstein-1 post-processing (Jiang et al. 2020): the groups' scores get one distribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from commod._data.arrays import Floats
from commod.metrics._constraint import PARITY
from commod.rivals._rows import DecisionRows, RivalFitRows
from commod.rivals.base import AwareRival, ScoredRival, choice, number


@dataclass(eq=False, repr=False, kw_only=True)
class WassersteinPostProcessing(ScoredRival, AwareRival):
    """Move each group's scores towards one common distribution, in their order.

    A score goes to the quantile of the common distribution that it has in its own group. At
    strength 1, the groups have equal rates at every threshold, up to ties. The common distribution
    moves the scores as little as possible: it is the Wasserstein-1 barycentre of the groups.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=1.0
        The share of its way that each score moves, in [0, 1]: the partial repair a. 0 changes
        nothing.
    distribution : str, default="barycentre"
        The common distribution. "barycentre" is the weighted median of the groups' quantile
        functions. With two groups it is the distribution of the larger group: only the smaller
        group moves. "pooled" is the distribution of all scores.
    n_levels : int, default=1000
        Quantiles of each group that the map stores. A group with fewer distinct scores has an exact
        map.
    constraints : str, default="demographic_parity"
        The metric that measures the result; the method knows no other constraint.
    min_group_size : int, default=30
        Fit rows that a group needs; smaller groups keep their base scores.
    threshold : float, default=0.5
        A decision is score > threshold. The map is the same for every threshold.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.

    Attributes
    ----------
    distances_ : ndarray of shape (n_groups,)
        The Wasserstein-1 distance of each group's base scores from the common distribution. It is
        the share of the group's decisions that change at strength 1, as a mean over all thresholds.
        NaN for a group without weight.
    maps_ : list of GroupShift
        How far a score of each group moves at strength 1: `shifts` at `scores`, linear in between.

    Notes
    -----
    The barycentre is not unique where two halves of the weight have different quantiles, for
    example with two groups of equal weight. The middle between the two quantiles is taken: both
    groups move by the same distance. The pooled distribution is then a barycentre, too.

    The distance is smallest as a mean over all thresholds, and not at the threshold in use. Equal
    scores of a group stay equal: they get the quantile at their mid-rank. So a large tie can leave
    a gap between the groups. New scores between two fit scores move by linear interpolation.

    References
    ----------
    Jiang, Pacchiano, Stepleton, Jiang, Chiappa: "Wasserstein Fair Classification", UAI 2019,
    PMLR 115, 2020.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import WassersteinPostProcessing
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> groups = data.sensitive_features
    >>> update = WassersteinPostProcessing(model).fit(data.data, sensitive_features=groups)
    >>> bool(update.fairness_ > 0.98)
    True
    >>> update.distances_.shape
    (2,)
    """

    distribution: str = choice("barycentre", "pooled")
    n_levels: int = number(1000, low=2, whole=True)

    known_constraints = (PARITY,)
    largest_strength = 1.0

    def _learn_all(self, models: Sequence[Self], rows: RivalFitRows) -> None:
        """Learn the maps once; the models differ only in the share of the way."""
        groups = [rows.group == group for group in range(rows.n_groups)]
        scores = [rows.base.scores[group] for group in groups]
        weights = [rows.weight[group] for group in groups]
        maps = score_maps(
            scores, weights, distribution=self.distribution, n_levels=int(self.n_levels)
        )
        distances = distances_to_common(scores, weights, distribution=self.distribution)
        for model in models:
            model.maps_, model.distances_ = maps, distances

    def _new_scores(self, rows: DecisionRows) -> Floats:
        moved = rows.base.scores.copy()
        for group, score_map in enumerate(self.maps_):
            members = rows.group == group
            share = float(self._fitted_param("strength"))
            moved[members] = score_map.moved(rows.base.scores[members], share)
        return moved


ROUNDING = 1e-12  # a cumulative weight this near to one half is one half


class Distribution(NamedTuple):
    """Distinct values (k,) in rising order, and the share of weight up to each of them (k,)."""

    values: Floats
    upper: Floats

    @classmethod
    def of(cls, values: Floats, weight: Floats) -> Distribution:
        """Return the distribution of weighted values; values without weight are left out."""
        distinct, position = np.unique(values[weight > 0], return_inverse=True)
        parts = np.bincount(position, weight[weight > 0], minlength=len(distinct))
        total = np.cumsum(parts.astype(np.float64))
        return cls(distinct, total / total[-1] if len(total) else total)

    @property
    def mid_ranks(self) -> Floats:
        """Return the middle of the levels that each value covers, shape (k,)."""
        return (self.upper + np.concatenate([[0.0], self.upper[:-1]])) / 2

    def quantiles(self, levels: Floats) -> Floats:
        """Return the smallest value whose share is at least the level: a step function."""
        at = np.searchsorted(self.upper, levels)
        return self.values[np.minimum(at, len(self.values) - 1)]

    def thinned(self, n_levels: int) -> LinearQuantiles:
        """Return the mid-ranks of about `n_levels` values, or of all if there are fewer.

        Every value with more than 1/n_levels of the weight stays, with its two neighbours: the
        quantile function is steep beside it. The first and last value stay, too.
        """
        last = len(self.values) - 1
        keep = np.arange(last + 1)
        if len(keep) > n_levels:
            levels = (np.arange(n_levels) + 0.5) / n_levels
            heavy = np.flatnonzero(np.diff(self.upper, prepend=0.0) > 1 / n_levels)
            chosen = np.searchsorted(self.upper, levels), heavy - 1, heavy + 1, [0, last]
            keep = np.unique(np.clip(np.concatenate(chosen), 0, last))
        return LinearQuantiles(self.values[keep], self.mid_ranks[keep])


class LinearQuantiles(NamedTuple):
    """A quantile function that is linear between mid-ranks: the value (k,) at each level (k,)."""

    values: Floats
    levels: Floats

    def at(self, levels: Floats) -> Floats:
        """Return the value at each level; beyond the first and last level it is constant."""
        return np.interp(levels, self.levels, self.values)


class GroupShift(NamedTuple):
    """How far the scores of one group move: `shifts` (k,) at `scores` (k,), linear in between."""

    scores: Floats
    shifts: Floats

    def moved(self, scores: Floats, share: float) -> Floats:
        """Return the scores after the given share of the way, in [0, 1], shape (n,)."""
        if not self.shifts.any() or share == 0:
            return scores
        return np.clip(scores + share * np.interp(scores, self.scores, self.shifts), 0.0, 1.0)


def weighted_median(values: Floats, weight: Floats) -> Floats:
    """Return the weighted median of each column of values (g, n) with weights (g,), shape (n,).

    Where one half of the weight is below and one half above an interval, the median is its middle.

    Examples
    --------
    >>> values = np.array([[0.2, 0.6], [0.4, 0.8]])
    >>> weighted_median(values, np.array([2.0, 1.0])), weighted_median(values, np.ones(2))
    (array([0.2, 0.6]), array([0.3, 0.7]))
    """
    if weight.max() > (0.5 + ROUNDING) * weight.sum():
        return values[weight.argmax()]  # more than half of the weight: no sorting
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    below = np.cumsum((weight / weight.sum())[order], axis=0)
    first = np.argmax(below >= 0.5 - ROUNDING, axis=0)
    last = np.argmax(below > 0.5 + ROUNDING, axis=0)
    low, high = (np.take_along_axis(ordered, at[None], axis=0)[0] for at in (first, last))
    return low + (high - low) / 2


def score_maps(
    scores: Sequence[Floats], weights: Sequence[Floats], *, distribution: str, n_levels: int
) -> list[GroupShift]:
    """Return the map of each group's scores to the common distribution, for groups of any size.

    A score goes to the common quantile at its mid-rank. Equal scores stay equal. A group without
    weight does not move.

    Examples
    --------
    >>> first, second = np.array([0.2, 0.4, 0.6, 0.8]), np.array([0.1, 0.3])
    >>> maps = score_maps(
    ...     [first, second], [np.ones(4), np.ones(2)], distribution="barycentre", n_levels=100
    ... )
    >>> maps[0].moved(first, 1.0), maps[1].moved(second, 1.0)
    (array([0.2, 0.4, 0.6, 0.8]), array([0.3, 0.7]))
    """
    group_weights = np.array([weight.sum() for weight in weights])
    parts = map(Distribution.of, scores, weights)
    groups = [part.thinned(n_levels) for part in parts]
    counted = [group for group in groups if len(group.values)]
    everyone = Distribution.of(np.concatenate(scores), np.concatenate(weights)).thinned(n_levels)

    def common_at(levels: Floats) -> Floats:
        if distribution == "pooled":
            return everyone.at(levels)
        quantiles = np.stack([group.at(levels) for group in counted])
        return weighted_median(quantiles, group_weights[group_weights > 0])

    return [
        GroupShift(group.values, common_at(group.levels) - group.values)
        if len(group.values)
        else GroupShift(np.zeros(1), np.zeros(1))
        for group in groups
    ]


def distances_to_common(
    scores: Sequence[Floats], weights: Sequence[Floats], *, distribution: str
) -> Floats:
    """Return the Wasserstein-1 distance of each group from the common distribution, (g,).

    It is exact: the integral of |Q_s(u) − Q(u)| over the levels u of the step functions. NaN for a
    group without weight.

    Examples
    --------
    >>> distances_to_common(
    ...     [np.array([0.2, 0.4, 0.6, 0.8]), np.array([0.1, 0.3])], [np.ones(4), np.ones(2)],
    ...     distribution="barycentre",
    ... ).round(3)
    array([0. , 0.3])
    """
    group_weights = np.array([weight.sum() for weight in weights])
    parts = list(map(Distribution.of, scores, weights))
    everyone = Distribution.of(np.concatenate(scores), np.concatenate(weights))
    ends = np.unique(np.concatenate([[0.0, 1.0], everyone.upper, *(p.upper for p in parts)]))
    middles, widths = (ends[1:] + ends[:-1]) / 2, np.diff(ends)
    quantiles = np.full((len(parts), len(widths)), np.nan)
    for i, part in enumerate(parts):
        if len(part.values):
            quantiles[i] = part.quantiles(middles)
    counted = group_weights > 0
    wanted = (
        everyone.quantiles(middles)
        if distribution == "pooled"
        else weighted_median(quantiles[counted], group_weights[counted])
    )
    return np.asarray(np.abs(quantiles - wanted) @ widths)
