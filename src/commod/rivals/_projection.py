"""`ProjectionRival`: what FairScoreTransformer and FairProjection share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from commod.rivals._group_probabilities import GroupProbabilityRival
from commod.rivals._half import HALF, from_half
from commod.rivals._rows import DecisionRows, RivalFitRows
from commod.rivals._solvers.plug_in import fair_margins
from commod.rivals._solvers.projection import (
    Divergence,
    Dual,
    MeanScores,
    best_prices,
    projected_scores,
)
from commod.scorecard import on_their_side
from commod.updates._interface import Decisions

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

TIE = 1e-9  # new scores are more precise than this: a score so close to 0.5 is a tie
LEAST_GAP = 1e-12  # mean scores that differ by less are equal up to rounding


class ProjectionRival(GroupProbabilityRival):
    """A rule on new scores: the nearest to the base scores whose means agree between groups.

    - Every row has a price μ = Σ m_j γ_j, with the effects γ of `GroupProbabilityRival`.
    - The new score minimises divergence(base score, new score) + μ · new score.
    - A subclass states the constraints in `_gap` and `_dual`.
    """

    tolerance_: float

    @property
    @abstractmethod
    def _divergence(self) -> Divergence:
        """Return the distance of scores that is minimised."""

    @abstractmethod
    def _gap(self, means: MeanScores) -> float:
        """Return the gap of the base scores, in the unit of the tolerance."""

    @abstractmethod
    def _dual(self, means: MeanScores, tolerance: float) -> Dual:
        """Return the dual of the constraints with this tolerance."""

    # -- learning -------------------------------------------------------------------------------

    def _learn_all(self, models: Sequence[Self], rows: RivalFitRows) -> None:
        """Fit the group model once; solve the weakest strength first, each start at the last."""
        cells = self._learn_cells(models, rows)
        scores = rows.scores_at_half[cells.counted]
        means = MeanScores(scores, cells.share, cells.effects, self.shares_)
        gap = self._gap(means) if self._is_defined(rows) else np.nan
        start = None
        for model in sorted(models, key=lambda model: float(model.strength)):
            model.tolerance_ = (1 - float(model.strength)) * gap
            if model.strength > 0 and gap > LEAST_GAP:
                start, prices = best_prices(self._dual(means, model.tolerance_), start)
                model.multipliers_ = prices.reshape(self.shares_.shape)

    def _sentence(self) -> str:
        text = super()._sentence()
        if np.isnan(self.tolerance_) and (self.shares_ > 0).all():
            text += " Nothing changes: one of the groups has no rows with one of the true labels."
        return text

    # -- deciding -------------------------------------------------------------------------------

    def _new_scores(self, rows: DecisionRows) -> Floats:
        """Return the new scores, shape (n,), shifted so that their threshold is 0.5."""
        if not self.multipliers_.any():
            return rows.scores_at_half
        price = -fair_margins(np.zeros(len(rows)), self._effects(rows), self.multipliers_)
        return projected_scores(rows.scores_at_half, price, self._divergence)

    def _decide(self, rows: DecisionRows) -> Mask:
        new = self._new_scores(rows)
        keeps = (new == rows.scores_at_half) | (np.abs(new - HALF) <= TIE)
        return np.where(keeps, rows.base.decisions, new > HALF)

    def _scores(self, rows: DecisionRows, positive: Decisions) -> Floats:
        """Return the new scores in the unit of the base score, on the side of their decision."""
        new, threshold = self._new_scores(rows), rows.base.threshold
        edited = on_their_side(from_half(new, threshold), positive.astype(np.bool_), threshold)
        return np.where(new == rows.scores_at_half, rows.base.scores, edited)
