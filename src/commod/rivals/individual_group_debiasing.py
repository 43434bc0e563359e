"""Individual and group debiasing (Lohia et al. 2019): the score of the same person elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats
from commod._data.base_model import BaseScores, ScoreColumn
from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.parameters import check_number
from commod.exceptions import InputError
from commod.metrics._constraint import PARITY
from commod.rivals._group_column import find_group, group_values, with_constant
from commod.rivals._group_model import GroupModel, fit_group_model
from commod.rivals._rows import HALF, DecisionRows, RivalFitRows, at_half
from commod.rivals.base import AwareRival
from commod.updates._interface import Decisions

OTHERS = "a method that asks nothing of the base model, such as MinimalFlip or ControlledDebiaser"


class IndividualGroupDebiasing(AwareRival):
    """Give a person of another group the score that they would have in the privileged group.

    The individual bias of a row is b = f(x, s = privileged) − f(x, s): how much higher the base
    model would score the same person in the privileged group. Rows of all other groups whose bias
    is above τ get the score f(x, s = privileged). All other rows keep their base decisions.

    The base model must read the group as a column of X. A model that does not read it gives every
    row a bias of 0, and no decision changes.

    Parameters
    ----------
    estimator : fitted classifier
        The base model. It is never refitted, and is asked twice for the score of each row.
    group_column : str or int, default=None
        The column of X that holds the group, which the base model reads; a position for NumPy
        arrays. Each group must have one value of its own there. Required.
    strength : float, default=0.9
        1 − τ, where τ is the bias above which a row changes its score. 0 changes nothing, because
        no bias is above 1. At 1, every row with a bias above 0 changes its score.
    detector : None, "logistic" or classifier, default=None
        None compares the bias of the row itself with τ, as the public port of the method does. A
        classifier learns from x which of the rows have a bias above τ, as in the paper, and then
        decides which new rows change their score. "logistic" is a logistic regression on terms of
        the columns. A classifier of yours is cloned and fitted on X; it needs predict_proba.
    privileged : label, default=None
        The privileged group, a value of `sensitive_features`. None: the group with the highest
        positive rate under the base model.
    min_category_size : int, default=20
        Fit rows that a category needs to become a term of the "logistic" detector.
    constraints : str, default="demographic_parity"
        The only constraint that the method knows.
    min_group_size : int, default=30
        Fit rows that a group needs; smaller groups keep their base decisions.
    threshold : float, default=0.5
        The base decision is score > threshold. The bias is measured after the score and its
        threshold were shifted on the logit scale until the threshold was 0.5.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.

    Attributes
    ----------
    privileged_ : label
        The privileged group.
    privileged_value_ : object
        The value of `group_column` in the privileged group.
    biased_share_ : float
        Share of the fit rows of all other groups whose bias is above τ.
    detector_ : object or None
        The fitted detector; None without one, or where all rows are on the same side of τ.

    Notes
    -----
    Without a detector the method only raises scores. So it may not reach parity, and it makes
    parity worse where the group named as privileged has a lower positive rate than the others.
    The authors choose τ as the largest value that meets a bound on the difference between the
    groups' rates; `frontier` and `compare` do the same with `strength`.

    References
    ----------
    Lohia, Ramamurthy, Bhide, Saha, Varshney, Puri: "Bias Mitigation Post-processing for Individual
    and Group Fairness", ICASSP 2019.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import IndividualGroupDebiasing
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> groups = data.sensitive_features
    >>> X = data.data.assign(group=groups == groups[0])
    >>> model = LogisticRegression().fit(X, data.target)
    >>> update = IndividualGroupDebiasing(model, group_column="group", strength=1.0)
    >>> update = update.fit(X, sensitive_features=groups)
    >>> bool(update.fairness_ > update.base_fairness_)
    True
    """

    known_constraints = (PARITY,)
    needs_group_in_model = True
    largest_strength = 1.0
    detector_: GroupModel | None

    def __init__(
        self,
        estimator: Any,
        *,
        group_column: str | int | None = None,
        strength: float = 0.9,
        detector: Any = None,
        privileged: Any = None,
        min_category_size: int = MIN_CATEGORY_SIZE,
        constraints: str = "demographic_parity",
        min_group_size: int = 30,
        threshold: float = 0.5,
        pos_label: Any = None,
        favorable_label: Any = None,
    ) -> None:
        self.estimator, self.group_column, self.strength = estimator, group_column, strength
        self.detector, self.privileged = detector, privileged
        self.min_category_size, self.constraints = min_category_size, constraints
        self.min_group_size, self.threshold, self.pos_label = min_group_size, threshold, pos_label
        self.favorable_label = favorable_label

    @property
    def default_strengths(self) -> tuple[float, ...]:
        """Return 1 − τ from 0 to 1, denser where τ is small: most models have small biases.

        A detector is trained for each τ, so the sweep with a detector has half as many values.
        """
        n_steps = 30 if self.detector is None else 15
        return tuple(1 - (1 - i / n_steps) ** 3 for i in range(n_steps + 1))

    def _check_base_model(self) -> None:
        reason = "asks the base model for the score of the same person in another group"
        if self.group_column is None:
            raise InputError(
                f"IndividualGroupDebiasing {reason}, so the model must read the group; got "
                "group_column=None. Pass group_column='...', the column of X that holds the "
                f"group. If the model does not read the group, use {OTHERS}.",
                parameter="group_column",
            )
        is_position = isinstance(self.group_column, int | np.integer)
        if isinstance(self.group_column, bool) or not (
            isinstance(self.group_column, str) or (is_position and int(self.group_column) >= 0)
        ):
            raise InputError(
                f"group_column={self.group_column!r} is no column: pass its name, or its position "
                "in a NumPy array, counted from 0.",
                parameter="group_column",
            )
        if isinstance(self.estimator, ScoreColumn):
            raise InputError(
                f"IndividualGroupDebiasing {reason}, but {self.estimator!r} is a column of scores "
                f"and cannot be asked. Pass the fitted model itself, or use {OTHERS}.",
                parameter="estimator",
            )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "min_category_size", low=1, whole=True)
        model = self.detector
        is_classifier = all(hasattr(model, name) for name in ("fit", "predict_proba", "get_params"))
        is_known = model is None or (isinstance(model, str) and model == "logistic")
        if isinstance(model, type) or not (is_known or is_classifier):
            raise InputError(
                f"detector={model!r} is no classifier that can be fitted and gives "
                "probabilities. Pass None, 'logistic', or a classifier that has fit and "
                "predict_proba, such as RandomForestClassifier().",
                parameter="detector",
            )

    # -- learning -------------------------------------------------------------------------------

    def _learn(self, rows: RivalFitRows) -> None:
        assert self.group_column is not None
        rates = rows.rates(self._constraint, rows.base.decisions)[0]
        privileged = int(np.nanargmax(rates))
        if self.privileged is not None:
            privileged = find_group(self.privileged, rows.group_labels)
        self.privileged_ = rows.group_labels[privileged]
        self.privileged_value_ = group_values(rows, self.group_column)[privileged]
        others = rows.is_counted & self._is_other(rows)
        bias = self._bias(rows)
        is_biased = bias > self._tau
        self.biased_share_ = float(np.average(is_biased[others], weights=rows.weight[others]))
        self._largest_bias = float(bias[others].max())
        self.detector_ = None
        if self.detector is not None and len(np.unique(is_biased[others])) > 1:
            is_logistic = isinstance(self.detector, str)
            self.detector_ = fit_group_model(
                rows,
                np.where(others, is_biased, -1).astype(np.intp),
                group_model=None if is_logistic else self.detector,
                min_category_size=self.min_category_size,
                name="detector",
            )

    @property
    def _tau(self) -> float:
        return 1.0 - float(self.fitted_param("strength"))

    def _is_other(self, rows: DecisionRows) -> NDArray[np.bool_]:
        """Return which rows belong to a known group that is not the privileged one, shape (n,)."""
        assert rows.group is not None
        return (rows.group >= 0) & (rows.group != self.group_labels_.index(self.privileged_))

    def _if_privileged(self, rows: DecisionRows) -> BaseScores:
        """Return the scores that the same people would have in the privileged group."""
        column, value = self.fitted_param("group_column"), self.privileged_value_

        def ask() -> BaseScores:
            return self._base(with_constant(rows.X, column, value), rows.columns).for_positive

        scores: BaseScores = rows.remember(("if_privileged", column, value), ask)
        return scores

    def _bias(self, rows: DecisionRows) -> Floats:
        """Return the individual bias of each row, shape (n,)."""
        other = self._if_privileged(rows)
        return at_half(other.scores, other.threshold) - rows.scores_at_half

    def _sentence(self) -> str:
        text = super()._sentence()
        if self._largest_bias <= 0:
            text += (
                f" No row would score higher with {self.fitted_param('group_column')!r} of the "
                "privileged group: the base model does not read this column, or does not favour "
                "that group."
            )
        return text

    # -- deciding -------------------------------------------------------------------------------

    def _decide(self, rows: DecisionRows) -> NDArray[np.bool_]:
        return self._own_scores(rows) > rows.base.threshold

    def _scores(self, rows: DecisionRows, positive: Decisions) -> Floats:
        return self._own_scores(rows)

    def _own_scores(self, rows: DecisionRows) -> Floats:
        """Return the score in the privileged group where a bias is detected, shape (n,)."""
        if self._tau == 1.0:  # no bias is above 1
            return rows.base.scores
        is_biased = self._is_other(rows) & self._detect(rows)
        return np.where(is_biased, self._if_privileged(rows).scores, rows.base.scores)

    def _detect(self, rows: DecisionRows) -> NDArray[np.bool_]:
        """Return which rows count as biased, shape (n,)."""
        if self.fitted_param("detector") is None:
            return self._bias(rows) > self._tau
        if self.detector_ is None:
            return np.full(len(rows), self.biased_share_ > HALF)
        probability = self.detector_.probabilities(rows)
        return np.asarray(probability[self.detector_.classes.tolist().index(1)] > HALF)
