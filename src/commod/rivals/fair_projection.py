"""FairProjection (Alghamdi et al. 2022)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self, cast

import numpy as np

from commod._data.arrays import Floats, Mask
from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.parameters import check_choice, check_number
from commod.rivals._group_probabilities import GroupProbabilityRival
from commod.rivals._rows import HALF, DecisionRows, RivalFitRows, from_half
from commod.rivals._solvers.plug_in import fair_margins
from commod.rivals._solvers.projection import (
    Divergence,
    Dual,
    MeanScores,
    best_prices,
    projected_scores,
    ratio_dual,
    ratio_gap,
)
from commod.scorecard import on_their_side
from commod.updates._interface import Decisions
from commod.updates.base import LARGEST_WEIGHT

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


DIVERGENCES = ("kl", "cross_entropy")


class FairProjection(ProjectionRival):
    """Project the base model onto the models whose groups have similar mean scores.

    Of all such models, the new one has the smallest divergence from the base model. The base score
    f counts as P(Y = 1 | x). In each group, the mean score divided by the mean score of all groups
    must be within 1 ± α; so must the mean of one minus the score. For constraints that compare
    errors, the mean scores of the true label are compared: q in the rows with label 1, 1 − q in
    those with label 0.

    The solution has a closed form: f pays a price μ = Σ m_j γ_j. The effect γ_j is
    P(S = j | x) / P(S = j), or P(S = j, Y = y | x) / P(S = j, Y = y). With "kl", the new logit is
    the old logit minus μ. The decision is q > 0.5, as published.

    Equal mean scores are not equal rates of decisions: a group can have many scores just below 0.5.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted. Its scores should be calibrated probabilities.
    strength : float, default=1.0
        Share of the largest deviation of these ratios from 1 that must go, in [0, 1]. The authors'
        tolerance α is (1 − strength) times the deviation of the base scores. 0 changes neither
        decisions nor scores; 1 requires equal mean scores.
    divergence : str, default="kl"
        "kl", the Kullback-Leibler divergence of the new scores from the base scores, or
        "cross_entropy", with which the method equals `FairScoreTransformer` at strength 1.
    regularisation : float, default=0.0
        The authors' ζ, a penalty on the multipliers that makes their solver converge. With it, a
        part of the gap remains even at strength 1. Their code has n^−½ for n rows.
    aware : bool, default=False
        If True, `predict` takes the group of each row instead of predicting it.
    group_model : classifier, default=None
        Predicts the group from X where `aware` is False; for constraints that compare errors, also
        the true label. Pass it unfitted: a clone is fitted on X as passed, locked features
        included. None means a logistic regression on numbers, their bins, and categories.
    constraints : str, default="demographic_parity"
        Which mean scores must be close: those of all rows ("demographic_parity"), of the rows with
        either true label ("equalized_odds", the authors' mean equalized odds), or with one
        ("true_positive_rate_parity", "false_positive_rate_parity").
    locked_features : sequence of str, default=()
        Columns that the built-in group model must not read.
    min_category_size : int, default=20
        Fit rows that a category needs before the built-in group model reads it.
    min_group_size : int, default=30
        Fit rows that a group needs to be part of the constraint.
    threshold : float, default=0.5
        The base decision is score > threshold.
        The method compares new scores with 0.5. So the score and its threshold are shifted on the
        logit scale until the threshold is 0.5.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.

    Attributes
    ----------
    multipliers_ : ndarray of shape (n_rate_rows, n_groups)
        m; zeros where nothing changes. Equalized odds has two rate rows, true label 1 first.
    tolerance_ : float
        The authors' α; NaN where a mean is undefined because a cell is empty.
    shares_ : ndarray of shape (n_rate_rows, n_groups)
        P(S = j), or P(S = j, Y = y), the denominators of γ.
    group_model_ : object
        The fitted group model; None where `aware` is True.

    Notes
    -----
    L-BFGS-B and Newton steps solve the dual. The authors use ADMM and add random noise to the
    constraints, in `fit` and in `predict`; this class adds none. With "kl", scores closer than 1e-6
    to 0 or 1 are moved to that distance before they pay a price other than 0. A new score that is
    0.5 up to 1e-9 keeps its base decision. The aware form of constraints that compare errors takes
    f as P(Y = 1 | x); the other form takes P(S, Y | x) from the group model.

    References
    ----------
    Alghamdi, Hsu, Jeong, Wang, Michalák, Asoodeh, Calmon: "Beyond Adult and COMPAS: Fair
    Multi-Class Prediction via Information Projection", NeurIPS 2022.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import FairProjection
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = FairProjection(model, divergence="kl")
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> bool(update.fairness_ > update.base_fairness_)
    True
    >>> update.predict_proba(data.data).shape
    (800, 2)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        strength: float = 1.0,
        divergence: str = "kl",
        regularisation: float = 0.0,
        aware: bool = False,
        group_model: Any = None,
        constraints: str = "demographic_parity",
        locked_features: Sequence[str] = (),
        min_category_size: int = MIN_CATEGORY_SIZE,
        min_group_size: int = 30,
        threshold: float = 0.5,
        pos_label: Any = None,
        favorable_label: Any = None,
    ) -> None:
        self.estimator, self.strength, self.divergence = estimator, strength, divergence
        self.regularisation, self.aware, self.group_model = regularisation, aware, group_model
        self.constraints, self.locked_features = constraints, locked_features
        self.min_category_size, self.min_group_size = min_category_size, min_group_size
        self.threshold, self.pos_label, self.favorable_label = threshold, pos_label, favorable_label

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.divergence, "divergence", DIVERGENCES)
        check_number(self, "regularisation", low=0.0, high=LARGEST_WEIGHT)

    @property
    def _divergence(self) -> Divergence:
        return cast(Divergence, self.fitted_param("divergence"))

    @property
    def _compared_labels(self) -> list[tuple[bool, ...]]:
        """Return the labels whose scores are compared in each rate row."""
        rows = self._constraint.rate_rows
        return [(True, False) if row.label is None else (row.label,) for row in rows]

    def _gap(self, means: MeanScores) -> float:
        return ratio_gap(means, means.scores, self._compared_labels)

    def _dual(self, means: MeanScores, tolerance: float) -> Dual:
        labels, penalty = self._compared_labels, float(self.regularisation)
        return ratio_dual(means, labels, tolerance, self._divergence, penalty)
