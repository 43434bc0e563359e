"""CFBC, equal opportunity by one multiplier (Chzhen et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from commod.metrics._constraint import TRUE_POSITIVES
from commod.rivals._rows import RivalFitRows
from commod.rivals.bayes_plug_in import LEAST_GAP, LinearProgramme, PlugInRival, single_multiplier


@dataclass(eq=False, repr=False, kw_only=True)
class CFBC(PlugInRival):
    """Give two groups equal true positive rates, as predicted from the base scores.

    The base score f counts as P(Y = 1 | x), and P_s is P(Y = 1, S = s). Group 0 is the first group,
    group 1 the second, in sorted order.

    - With `aware`, a row of group 1 is positive where f · (2 − θ/P_1) > 1, a row of group 0 where
      f · (2 + θ/P_0) > 1.
    - Otherwise, a row is positive where 2f − 1 > θ · (P(Y = 1, S = 1 | x)/P_1 −
      P(Y = 1, S = 0 | x)/P_0).

    θ is the number of smallest size with which the predicted true positive rates are equal, or
    as close as `strength` requires.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted. Its scores should be calibrated probabilities: the
        method predicts true positive rates from them.
    strength : float, default=1.0
        Share of the predicted gap between the true positive rates that must go, in [0, 1]. 0
        changes nothing. The paper has no tolerance: it is strength 1.
    aware : bool, default=False
        If True, `predict` takes the group of each row instead of predicting it.
    group_model : classifier, default=None
        Predicts the group and the true label from X where `aware` is False. Pass it unfitted: a
        clone is fitted on X as passed, locked features included. None means a logistic regression
        on numbers, their bins, and categories.
    constraints : str, default="true_positive_rate_parity"
        The only constraint that this method knows, by ratio or difference.
    locked_features : sequence of str, default=()
        Columns that the built-in group model must not read.
    min_category_size : int, default=20
        Fit rows that a category needs before the built-in group model reads it.
    min_group_size : int, default=30
        Fit rows that a group needs to be part of the constraint.
    threshold : float, default=0.5
        The base decision is score > threshold.
        The rule compares with 0.5. So the score and its threshold are shifted on the
        logit scale until the threshold is 0.5.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.

    Attributes
    ----------
    theta_ : float
        θ; 0 where nothing changes.
    tolerance_ : float
        The largest predicted gap allowed; NaN where a rate is undefined because a cell is empty.
    multipliers_ : ndarray of shape (1, 2)
        −θ/2 and θ/2.
    shares_ : ndarray of shape (1, 2)
        P_0 and P_1, the means of the predicted probabilities.
    group_model_ : object
        The fitted group model; None where `aware` is True.

    Notes
    -----
    Sorting the breakpoints of θ solves the problem exactly; θ lies midway between two of them. For
    two groups, `LPP` with this constraint decides the same: both solve one linear programme. Use
    `LPP` for more than two groups. A tie keeps its base decision.

    The authors compute P_0 with the mean score of group 1, search a grid that leaves out
    ``|θ| < 0.01``, and their code without the group changes nothing. This class follows the paper.

    References
    ----------
    Chzhen, Denis, Hebiri, Oneto, Pontil: "Leveraging Labeled and Unlabeled Data for Consistent Fair
    Binary Classification", NeurIPS 2019.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import CFBC
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = CFBC(model)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> bool(update.fairness_ < update.base_fairness_)
    True
    """

    constraints: str = TRUE_POSITIVES

    known_constraints: ClassVar[tuple[str, ...]] = (TRUE_POSITIVES,)
    several_groups: ClassVar[bool] = False

    def _choose_multipliers(
        self, models: Sequence[Self], rows: RivalFitRows, programme: LinearProgramme
    ) -> None:
        is_defined = self._is_defined(rows)
        gap = programme.gap(programme.gain > 0) if is_defined else np.nan
        for model in models:
            model.tolerance_, model.theta_ = (1 - float(model.strength)) * gap, 0.0
            if model.tolerance_ < gap and gap > LEAST_GAP:
                first, second = programme.effects[0]
                args = (programme.gain, second - first, programme.share, model.tolerance_)
                model.theta_ = 2 * single_multiplier(*args)
                model.multipliers_ = np.array([[-model.theta_, model.theta_]]) / 2
