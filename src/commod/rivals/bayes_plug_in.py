"""The Bayes-optimal rule with estimated probabilities, and a cost for each change."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from commod._data.arrays import Floats, Mask
from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.parameters import check_number
from commod.bounds import bayes_optimal_scores
from commod.metrics._cells import Cells
from commod.rivals._group_probabilities import GroupProbabilityRival
from commod.rivals._rows import HALF, DecisionRows, RivalFitRows
from commod.rivals._solvers.plug_in import (
    LinearProgramme,
    MultiplierPath,
    best_multipliers,
    curved_gain,
    decide,
    fair_margins,
    trace_path,
)
from commod.updates._fit_rows import FitRows
from commod.updates._interface import Decisions
from commod.updates.base import LARGEST_WEIGHT


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


N_KNOTS = 16  # linear programmes from the base model to parity; the path is straight between
ROUNDING = 1e-9  # a target counts as reached if it is missed by no more


class BayesPlugIn(PlugInRival):
    """Decide by the Bayes-optimal score, with the smallest multipliers that reach the target.

    The score has three parts: f − 0.5, a fairness margin, and `lambda_ratio` in favour of the base
    decision. So a decision changes where accuracy and fairness together speak against it by more
    than `lambda_ratio`. f counts as P(Y = 1 | x); at another threshold than 0.5,
    f is the shifted score (see `threshold`). A group model gives P(S | x) or P(S, Y | x). The
    multipliers are the first on their path that reach the target on the fit rows, measured with the
    true groups.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=1.0
        Where the target lies between the base model's fairness (0) and parity (1); 0 changes
        nothing.
    aware : bool, default=False
        If True, `predict` takes the group of each row instead of predicting it.
    group_model : classifier, default=None
        Predicts the group from X where `aware` is False; for constraints that compare errors, also
        the true label. Pass it unfitted: a clone is fitted on X as passed, locked features
        included. None means a logistic regression on numbers, their bins, and categories.
        A model that overfits, such as a deep forest, reaches targets on the fit rows only.
    lambda_ratio : float, default=0.0
        The cost of one changed decision, in units of f: 0.1 equals a tenth of an error. Larger
        values need larger multipliers for the same target.
    constraints : str, default="demographic_parity"
        "demographic_parity" (P-rule), "equalized_odds" (DM = ΔTPR + ΔFPR),
        "true_positive_rate_parity" or "false_positive_rate_parity" (one gap).
    locked_features : sequence of str, default=()
        Columns that the built-in group model must not read.
    min_category_size : int, default=20
        Fit rows that a category needs before the built-in group model reads it.
    min_group_size : int, default=30
        Fit rows that a group needs to be part of the constraint.
    threshold : float, default=0.5
        The base decision is score > threshold.
        The rule compares with 0.5. So the score and its threshold are shifted on the logit scale
        until the threshold is 0.5: the rule decides alike if both are shifted together.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.

    Attributes
    ----------
    multipliers_ : ndarray of shape (n_rate_rows, n_groups)
        ψ of the margin −Σ ψ_j γ_j; zeros where nothing changes. Two groups under demographic
        parity have ψ = (−μ, target·μ), the lower group first. Equalized odds has two rate rows,
        true label 1 first.
    target_ : float
        The P-rule or sum of gaps required on the fit rows; `fairness_` is the value reached.
    reached_ : bool
        Whether the update reaches the target on the fit rows, up to rounding.
    shares_ : ndarray of shape (n_rate_rows, n_groups)
        P(S = j), or P(S = j, Y = y), the denominators of γ.
    group_model_ : object
        The fitted group model; None where `aware` is True.

    Notes
    -----
    Two groups and one rate row have a single multiplier, which rises from 0. Otherwise the path is
    straight from one knot to the next. The knots are the multipliers of `LPP` for smaller and
    smaller predicted gaps; past the last knot the path keeps its direction. Every stretch of the
    path is measured, and the first that reaches the target is taken. Where none does, the fairest
    is taken, and `status_` says so.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import BayesPlugIn
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = BayesPlugIn(model, strength=0.5)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> update.reached_
    True
    """

    target_: float
    reached_: bool

    def __init__(
        self,
        estimator: Any,
        *,
        strength: float = 1.0,
        aware: bool = False,
        group_model: Any = None,
        lambda_ratio: float = 0.0,
        constraints: str = "demographic_parity",
        locked_features: Sequence[str] = (),
        min_category_size: int = MIN_CATEGORY_SIZE,
        min_group_size: int = 30,
        threshold: float = 0.5,
        pos_label: Any = None,
        favorable_label: Any = None,
    ) -> None:
        self.estimator, self.strength, self.aware = estimator, strength, aware
        self.group_model, self.lambda_ratio = group_model, lambda_ratio
        self.constraints, self.locked_features = constraints, locked_features
        self.min_category_size, self.min_group_size = min_category_size, min_group_size
        self.threshold, self.pos_label, self.favorable_label = threshold, pos_label, favorable_label

    def _choose_multipliers(
        self, models: Sequence[Self], rows: RivalFitRows, programme: LinearProgramme
    ) -> None:
        is_ratio = self._constraint.is_ratio
        base = rows.fairness(self._constraint, rows.base.decisions)
        path = None
        for model in models:
            strength = float(model.strength)
            model.target_ = self._constraint.towards_ideal(base, strength)
            if strength > 0 and not np.isnan(base) and self._is_defined(rows):
                # with a ratio of two groups, the target sets the direction of the path
                if path is None or (is_ratio and rows.n_groups == 2):
                    path = self._path(rows, programme, model.target_)
                model.multipliers_ = path.first(model.target_ if is_ratio else -model.target_)

    def _path(
        self, rows: RivalFitRows, programme: LinearProgramme, target: float
    ) -> MultiplierPath:
        """Return the path of multipliers with the fairness that is measured along it."""
        rates = rows.rates(self._constraint, rows.base.decisions)
        if rates.shape == (1, 2):
            level = target if self._constraint.is_ratio else 1.0
            knots = [np.zeros((1, 2)), np.where(rates == rates.min(), -1.0, level)]
        else:
            knots = _knots(programme)
        counted, cells = rows.is_counted, rows.cells(self._constraint)
        return trace_path(
            programme,
            knots,
            cells=Cells(cells.index[counted], cells.shape),
            weight=rows.weight[counted],
            as_ratio=self._constraint.is_ratio,
        )

    def _store_outcome(self, rows: FitRows, positive: Decisions) -> None:
        super()._store_outcome(rows, positive)
        self.reached_ = bool(self._shortfall() <= ROUNDING)

    def _shortfall(self) -> float:
        """Return how much fairer the target is than `fairness_`; NaN where undefined."""
        return float(self._constraint.shortfall(self.fairness_, self.target_))

    def _sentence(self) -> str:
        text = super()._sentence()
        if self._shortfall() > ROUNDING:
            text += (
                f" The target, {self.compared_text().metric} {self._constraint.sign} "
                f"{self.target_:.4g}, was not reached: "
                f"{self.fairness_:.4g} is the fairest value on the path of multipliers."
            )
        return text


def _knots(programme: LinearProgramme) -> list[Floats]:
    """Return multipliers for smaller and smaller predicted gaps: 0, to parity, and beyond."""
    gap = programme.gap(programme.gain > 0)
    tolerances = gap * np.linspace(1, 0, N_KNOTS + 1)[1:]
    knots = [best_multipliers(programme, float(tolerance)) for tolerance in tolerances]
    return [np.zeros_like(knots[0]), *knots, 2 * knots[-1]]
