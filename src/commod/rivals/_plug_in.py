"""`PlugInRival`: what LPP, BayesPlugIn and CFBC share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from commod._data.parameters import check_number
from commod.bounds import bayes_optimal_scores
from commod.rivals._group_probabilities import GroupProbabilityRival
from commod.rivals._half import HALF
from commod.rivals._rows import DecisionRows, RivalFitRows
from commod.rivals._solvers.plug_in import LinearProgramme, curved_gain, decide, fair_margins
from commod.updates.base import LARGEST_WEIGHT

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class PlugInRival(GroupProbabilityRival):
    """A rule that uses estimated probabilities: positive where gain − Σ ψ_j γ_j > 0.

    - The gain is the base score minus 0.5, after both the score and its threshold were shifted on
      the logit scale until the threshold was 0.5. It is what a positive decision is worth.
    - γ_j are the effects of `GroupProbabilityRival`.
    - A subclass sets the multipliers ψ in `_choose_multipliers`.
    """

    lambda_ratio: float = 0.0

    @abstractmethod
    def _choose_multipliers(
        self, models: Sequence[Self], rows: RivalFitRows, programme: LinearProgramme
    ) -> None:
        """Set `multipliers_` of each model. The programme has the rows of `rows.is_counted`.

        A model that this method leaves alone has multipliers of 0 and changes nothing.
        """

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "lambda_ratio", low=0.0, high=LARGEST_WEIGHT)

    # -- learning -------------------------------------------------------------------------------

    def _learn_all(self, models: Sequence[Self], rows: RivalFitRows) -> None:
        """Fit the group model once; the models differ only in their multipliers."""
        cells = self._learn_cells(models, rows)
        gain = self._gain(rows)[cells.counted]
        self._choose_multipliers(models, rows, LinearProgramme(gain, cells.effects, cells.share))

    # -- deciding -------------------------------------------------------------------------------

    def _decide(self, rows: DecisionRows) -> Mask:
        if not self.multipliers_.any():
            return rows.base.decisions
        margins = fair_margins(self._gain(rows), self._effects(rows), self.multipliers_)
        return decide(margins, rows.base.decisions)

    def _gain(self, rows: DecisionRows) -> Floats:
        """Return what a positive decision is worth without fairness, shape (n,)."""
        gain = bayes_optimal_scores(
            rows.scores_at_half,
            rows.base.decisions,
            cost=HALF,
            lambda_ratio=float(self.fitted_param("lambda_ratio")),
        )
        return (
            curved_gain(gain)
            if self.fitted_param("aware") and len(self._constraint.rate_rows) > 1
            else gain
        )
