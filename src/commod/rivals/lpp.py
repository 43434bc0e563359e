"""LPP, linear programme post-processing (Xian and Zhao 2024): best decisions in expectation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from commod.rivals._group_model import PlugInRival
from commod.rivals._solvers.plug_in import LinearProgramme, best_multipliers
from commod.rivals.base import RivalFitRows

__all__ = ["LPP"]


class LPP(PlugInRival):
    """Solve the linear programme of the most accurate decisions within a predicted disparity.

    The base score f is taken for P(Y = 1 | x), and the groups' rates are predicted from P(S | x),
    or P(S, Y | x) for constraints on errors. The solution is a rule for new rows: positive where
    f − threshold − Σ ψ_j γ_j > 0, with one multiplier ψ_j for each group and line of the
    constraint. Nothing is drawn by lot. The authors break ties by noise; here the multipliers keep
    off them.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=1.0
        How much of the base decisions' largest predicted gap between two groups must go, in
        [0, 1]: 0 changes nothing, 1 asks for predicted parity. What is reached on true groups also
        depends on how well the probabilities are calibrated.
    aware : bool, default=False
        If True, `predict` takes the group of each row instead of predicting it.
    group_model : classifier, default=None
        Predicts the group (and the true label, for constraints on errors) from X where `aware` is
        False. Not fitted: it is cloned and fitted on X as it comes, locked features included. None
        is a logistic regression on numbers, bins of them, and categories.
    constraints : str, default="demographic_parity"
        Which rates must be close: of all rows ("demographic_parity"), of those with one true label
        ("true_positive_rate_parity", "false_positive_rate_parity") or each of both
        ("equalized_odds").
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
        ψ; zeros where nothing changes. Equalized odds has two lines, true label 1 first.
    tolerance_ : float
        The largest predicted gap allowed; NaN where a group has no rows of a line.
    shares_ : ndarray of shape (n_lines, n_groups)
        P(S = j), or P(S = j, Y = y), the denominators of γ.
    group_model_ : object
        What predicts the groups; None where `aware` is True.

    Notes
    -----
    Two groups and one line are solved exactly by sorting, everything else by HiGHS, which sees
    those of many rows that the rule is undecided about. With `aware` and equalized odds a group may
    have to lose on both rates, which no threshold does: rows near the threshold then change first.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import LPP
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = LPP(model, strength=0.5)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> bool(update.fairness_ > update.base_fairness_)
    True
    >>> update.predict(data.data).shape
    (800,)
    """

    tolerance_: float

    def __init__(
        self,
        estimator: Any,
        *,
        strength: float = 1.0,
        aware: bool = False,
        group_model: Any = None,
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
        gap = programme.gap(programme.gain > 0) if self._is_defined(rows) else np.nan
        for model in models:
            model.tolerance_ = (1 - float(model.strength)) * gap
            if model.tolerance_ < gap:
                model.multipliers_ = best_multipliers(programme, model.tolerance_)
