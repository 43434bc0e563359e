"""The Bayes-optimal rule with estimated probabilities plugged in, and a dead zone for changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.rates import Cells
from commod.rivals._group_model import PlugInRival
from commod.rivals._solvers.plug_in import LinearProgramme, Path, best_multipliers, walk
from commod.rivals.base import RivalFitRows
from commod.updates.base import Decisions, FitRows

__all__ = ["BayesPlugIn"]

Floats = NDArray[np.float64]

N_KNOTS = 16  # linear programmes on the way to parity; between them the path is straight
NEARLY = 1e-9  # a target is reached up to rounding


class BayesPlugIn(PlugInRival):
    """Decide by the corrected Bayes-optimal score, at the smallest multiplier that is fair enough.

    The score is f − threshold, plus the fairness margin of `commod.bounds`, plus `lambda_ratio` in
    favour of the base decision: a decision changes where accuracy and fairness together speak
    against it by more than `lambda_ratio`. f stands for P(Y = 1 | x), a group model for P(S | x) or
    P(S, Y | x). The multipliers are the first on their path that reach the target on the fit rows,
    with their true groups.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=1.0
        How far from the base decisions' fairness to parity the target lies, in [0, 1]; 0 changes
        nothing.
    aware : bool, default=False
        If True, `predict` takes the group of each row instead of predicting it.
    group_model : classifier, default=None
        Predicts the group (and the true label, for constraints on errors) from X where `aware` is
        False. Not fitted: it is cloned and fitted on X as it comes, locked features included. None
        is a logistic regression on numbers, bins of them, and categories. A model that knows its
        own rows too well, such as a deep forest, reaches targets there that new rows miss.
    lambda_ratio : float, default=0.0
        What one changed decision costs, in units of the score: 0.1 is worth as much as a tenth of
        an error at threshold 0.5. Larger values need larger multipliers for the same target.
    constraints : str, default="demographic_parity"
        "demographic_parity" (P-rule), "equalized_odds" (DM = ΔTPR + ΔFPR),
        "true_positive_rate_parity" or "false_positive_rate_parity" (one gap).
    locked_features : sequence of str, default=()
        Columns that the built-in group model must not read.
    min_category_size : int, default=20
        Fit rows that must share a category before the built-in group model reads it.
    min_group_size : int, default=30
        Fit rows a group needs to be part of the constraint.
    threshold : float, default=0.5
        The base decision is score > threshold.
    pos_label : label, default=None
        The label whose rates count; `classes_[1]` if None.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. Only names directions.

    Attributes
    ----------
    multipliers_ : ndarray of shape (n_lines, n_groups)
        ψ of the margin −Σ ψ_j γ_j; zeros where nothing changes. Two groups under demographic
        parity have ψ = (−μ, target·μ), the lower group first: `bounds.p_rule_margin` with
        multiplier μ. Equalized odds has two lines, true label 1 first.
    target_ : float
        The P-rule or disparity that was asked for on the fit rows; `fairness_` is what came out.
    reached_ : bool
        Whether the fit rows meet the target, up to rounding.
    shares_ : ndarray of shape (n_lines, n_groups)
        P(S = j), or P(S = j, Y = y), the denominators of γ.
    group_model_ : object
        What predicts the groups; None where `aware` is True.

    Notes
    -----
    Two groups and one rate have a single multiplier, which runs from 0 upwards. Otherwise the path
    goes straight through the multipliers of the linear programmes of `LPP` for ever smaller
    predicted gaps, and beyond the last in its direction. All points of a path are looked at, so
    the first that is fair enough is found; where none is, the fairest is kept and `status_` says
    so.

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
        min_category_size: int = 20,
        min_group_size: int = 30,
        threshold: float = 0.5,
        pos_label: Any = None,
        favorable_label: Any = None,
    ) -> None:
        self.estimator = estimator
        self.strength = strength
        self.aware = aware
        self.group_model = group_model
        self.lambda_ratio = lambda_ratio
        self.constraints = constraints
        self.locked_features = locked_features
        self.min_category_size = min_category_size
        self.min_group_size = min_group_size
        self.threshold = threshold
        self.pos_label = pos_label
        self.favorable_label = favorable_label

    def _choose(
        self,
        models: Sequence[Self],
        rows: RivalFitRows,
        used: NDArray[np.bool_],
        programme: LinearProgramme,
    ) -> None:
        is_ratio = self._constraint.is_ratio
        base = rows.fairness(self._constraint, rows.base.decisions)
        path = None
        for model in models:
            strength = float(model.strength)
            model.target_ = self._constraint.towards_ideal(base, strength)
            if strength > 0 and not np.isnan(base) and self._is_defined(rows):
                if path is None or (is_ratio and rows.n_groups == 2):  # its direction is the target
                    path = self._path(rows, used, programme, model.target_)
                model.multipliers_ = path.first(model.target_ if is_ratio else -model.target_)

    def _path(
        self, rows: RivalFitRows, used: NDArray[np.bool_], programme: LinearProgramme, target: float
    ) -> Path:
        """Return the path of multipliers with the fairness that is counted along it."""
        rates = rows.rates(self._constraint, rows.base.decisions)
        if rates.shape == (1, 2):
            level = target if self._constraint.is_ratio else 1.0
            knots = [np.zeros((1, 2)), np.where(rates == rates.min(), -1.0, level)]
        else:
            knots = _knots(programme)
        cells = rows.cells(self._constraint)
        return walk(
            programme.gain,
            programme.effects,
            knots,
            cells=Cells(cells.index[used], cells.shape),
            weight=rows.weight[used],
            as_ratio=self._constraint.is_ratio,
        )

    def _store_outcome(self, rows: FitRows, positive: Decisions) -> None:
        super()._store_outcome(rows, positive)
        self.reached_ = bool(self._missing() <= NEARLY)

    def _missing(self) -> float:
        """Return how much fairer the target is than what was reached; NaN where undefined."""
        return float(self._constraint.shortfall(self.fairness_, self.target_))

    def _sentence(self) -> str:
        text = super()._sentence()
        if self._missing() > NEARLY:
            metric = self._constraint.metric
            text += (
                f" The target, a {metric} of {self.target_:.4g}, was not reached: "
                f"{self.fairness_:.4g} is the fairest that any multiplier on the path gives."
            )
        return text


def _knots(programme: LinearProgramme) -> list[Floats]:
    """Return multipliers for ever smaller predicted gaps, from none to parity and beyond."""
    gap = programme.gap(programme.gain > 0)
    tolerances = gap * np.linspace(1, 0, N_KNOTS + 1)[1:]
    found = [best_multipliers(programme, float(t)) for t in tolerances]
    return [np.zeros_like(found[0]), *found, 2 * found[-1]]
