"""Wasserstein-1 post-processing (Jiang et al. 2020): the groups' scores get one distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats
from commod._data.parameters import check_choice, check_number
from commod.metrics._constraint import PARITY
from commod.rivals._rows import DecisionRows, RivalFitRows
from commod.rivals._solvers.wasserstein import (
    DISTRIBUTIONS,
    GroupShift,
    distances_to_common,
    score_maps,
)
from commod.rivals.base import AwareRival
from commod.scorecard import on_their_side
from commod.updates._interface import Decisions


class WassersteinPostProcessing(AwareRival):
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

    known_constraints = (PARITY,)
    largest_strength = 1.0
    maps_: list[GroupShift]

    def __init__(
        self,
        estimator: Any,
        *,
        strength: float = 1.0,
        distribution: str = "barycentre",
        n_levels: int = 1000,
        constraints: str = "demographic_parity",
        min_group_size: int = 30,
        threshold: float = 0.5,
        pos_label: Any = None,
        favorable_label: Any = None,
    ) -> None:
        self.estimator, self.strength, self.distribution = estimator, strength, distribution
        self.n_levels, self.constraints, self.min_group_size = n_levels, constraints, min_group_size
        self.threshold, self.pos_label, self.favorable_label = threshold, pos_label, favorable_label

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.distribution, "distribution", DISTRIBUTIONS)
        check_number(self, "n_levels", low=2, whole=True)

    def _learn(self, rows: RivalFitRows) -> None:
        self._learn_all([self], rows)

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

    def _moved(self, rows: DecisionRows) -> Floats:
        """Return the new score of each row, shape (n,); bit for bit the base score if unmoved."""
        moved = rows.base.scores.copy()
        for group, score_map in enumerate(self.maps_):
            members = rows.group == group
            share = float(self.fitted_param("strength"))
            moved[members] = score_map.moved(rows.base.scores[members], share)
        return moved

    def _decide(self, rows: DecisionRows) -> NDArray[np.bool_]:
        moved = self._moved(rows)
        is_unmoved = moved == rows.base.scores
        return np.where(is_unmoved, rows.base.decisions, moved > rows.base.threshold)

    def _scores(self, rows: DecisionRows, positive: Decisions) -> Floats:
        """Return the moved scores, on the side of the threshold that their decision has."""
        return on_their_side(self._moved(rows), positive.astype(np.bool_), rows.base.threshold)
