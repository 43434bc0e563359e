"""LPP, linear programme post-processing (Xian and Zhao 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from commod.rivals._rows import RivalFitRows
from commod.rivals.bayes_plug_in import LinearProgramme, PlugInRival, best_multipliers


class LPP(PlugInRival):
    """Take the most accurate decisions whose predicted rates differ little between groups.

    The base score f counts as P(Y = 1 | x). The groups' rates are predicted from P(S | x), or from
    P(S, Y | x) for constraints that compare errors. A linear programme gives a rule for new rows:
    positive where f − 0.5 − Σ ψ_j γ_j > 0, with one multiplier ψ_j for each group and rate row. At
    another threshold than 0.5, f is the shifted score (see `threshold`). Decisions are not
    randomised: where the authors break ties by noise, this class chooses multipliers without ties.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=1.0
        Share of the largest predicted gap between two groups that must go, in [0, 1]. 0 changes
        nothing; 1 requires predicted parity. The fairness on true groups also depends on how well
        the probabilities are calibrated.
    aware : bool, default=False
        If True, `predict` takes the group of each row instead of predicting it.
    group_model : classifier, default=None
        Predicts the group from X where `aware` is False; for constraints that compare errors, also
        the true label. Pass it unfitted: a clone is fitted on X as passed, locked features
        included. None means a logistic regression on numbers, their bins, and categories.
    constraints : str, default="demographic_parity"
        Which rates must be close: those of all rows ("demographic_parity"), of the rows with one
        true label ("true_positive_rate_parity", "false_positive_rate_parity"), or of both labels
        ("equalized_odds").
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
        ψ; zeros where nothing changes. Equalized odds has two rate rows, true label 1 first.
    tolerance_ : float
        The largest predicted gap allowed; NaN where a rate is undefined because a cell is empty.
    shares_ : ndarray of shape (n_rate_rows, n_groups)
        P(S = j), or P(S = j, Y = y), the denominators of γ.
    group_model_ : object
        The fitted group model; None where `aware` is True.

    Notes
    -----
    Sorting solves the case of two groups and one rate row exactly. HiGHS solves all other cases; on
    large tables it gets only the rows near the threshold of the rule. With `aware` and equalized
    odds, a group may have to lose on both rates, which no threshold does. Rows near the threshold
    then change first.

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

    def _choose_multipliers(
        self, models: Sequence[Self], rows: RivalFitRows, programme: LinearProgramme
    ) -> None:
        gap = programme.gap(programme.gain > 0) if self._is_defined(rows) else np.nan
        for model in models:
            model.tolerance_ = (1 - float(model.strength)) * gap
            if model.tolerance_ < gap:
                model.multipliers_ = best_multipliers(programme, model.tolerance_)
