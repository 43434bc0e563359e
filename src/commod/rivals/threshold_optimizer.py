"""Fairlearn's ThresholdOptimizer (Hardt, Price and Srebro 2016) under the contract of an update."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from commod.exceptions import InputError
from commod.rivals.base import AwareRival, DecisionRows, RivalFitRows
from commod.updates.base import Decisions, check_number

__all__ = ["ThresholdOptimizer"]


class ThresholdOptimizer(AwareRival):
    """Fairlearn's thresholds per group, two of them mixed by lot; needs `pip install fairlearn`.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=1.0
        Fairlearn's `tol` is (1 − strength) times the gap between the groups' rates on the fit rows;
        1 is no tolerance. 0 keeps the base model, whose threshold Fairlearn would move otherwise.
        Fairlearn does not relax equalized odds: only 0 and 1 there.
    constraints : str, default="demographic_parity"
        Or "equalized_odds", "true_positive_rate_parity", "false_positive_rate_parity".
    objective : str, default="accuracy_score"
        Fairlearn's objective, such as "balanced_accuracy_score".
    grid_size : int, default=1000
        Fairlearn's number of values of the constrained rate that are tried.
    min_group_size : int, default=30
        Fit rows a group needs; smaller ones keep their base decisions.
    threshold : float, default=0.5
        The base decision is score > threshold.
    pos_label : label, default=None
        The label whose rates count; `classes_[1]` if None.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. Only names directions.
    random_state : int, RandomState or None, default=None
        Seed of the lots, which belong to rows: the same row always draws the same one.

    Attributes
    ----------
    tolerance_ : float
        Fairlearn's `tol`.
    thresholds_, probabilities_ : ndarray of shape (n_groups, 2)
        The two thresholds of each group and how often each is used.
    ignored_, constants_ : ndarray of shape (n_groups,)
        How often a score is ignored, and the chance of a positive decision then.

    Notes
    -----
    y is always needed and `sample_weight` refused: Fairlearn has no weights here. A group with one
    label only has no threshold that Fairlearn could choose.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import ThresholdOptimizer
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> groups = data.sensitive_features
    >>> update = ThresholdOptimizer(model)
    >>> update = update.fit(data.data, data.target, sensitive_features=groups)
    >>> bool(update.fairness_ > 0.99)
    True
    """

    largest_strength = 1.0
    randomised = True

    def __init__(
        self,
        estimator: Any,
        *,
        strength: float = 1.0,
        constraints: str = "demographic_parity",
        objective: str = "accuracy_score",
        grid_size: int = 1000,
        min_group_size: int = 30,
        threshold: float = 0.5,
        pos_label: Any = None,
        favorable_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.strength = strength
        self.constraints = constraints
        self.objective = objective
        self.grid_size = grid_size
        self.min_group_size = min_group_size
        self.threshold = threshold
        self.pos_label = pos_label
        self.favorable_label = favorable_label
        self.random_state = random_state

    @property
    def default_strengths(self) -> tuple[float, ...]:
        """Return the tolerances from the base model's gap to none."""
        if len(self._constraint.rate_rows) > 1:
            return (0.0, 1.0)
        return super().default_strengths

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "grid_size", low=2, whole=True)
        if len(self._constraint.rate_rows) > 1 and self.strength not in (0, 1):
            raise InputError(
                f"strength={self.strength!r}: Fairlearn does not relax equalized_odds, so it must "
                "be 0 or 1. RelaxedThresholdOptimizer takes anything between."
            )

    def _learn(self, rows: RivalFitRows) -> None:
        if rows.label is None:
            raise InputError("ThresholdOptimizer maximises accuracy, which needs y; it is None.")
        if np.ptp(rows.weight) > 0:
            raise InputError("Fairlearn's ThresholdOptimizer takes no sample_weight. Leave it out.")
        for group, label in enumerate(rows.group_labels):
            if len(np.unique(rows.label[rows.group == group])) < 2:
                raise InputError(
                    f"Group {label!r} has rows of one true label only, for which Fairlearn's "
                    "ThresholdOptimizer has no threshold. Merge it with another or leave it out."
                )
        gap = np.ptp(rows.rates(self._constraint, rows.base.decisions), axis=1).sum()
        self.tolerance_ = float((1 - self.strength) * gap)
        self.thresholds_ = np.full((rows.n_groups, 2), float(self.threshold))
        self.probabilities_ = np.tile([1.0, 0.0], (rows.n_groups, 1))
        self.ignored_, self.constants_ = np.zeros(rows.n_groups), np.zeros(rows.n_groups)
        if self.strength > 0:
            self._take(_fairlearn_rule(self, rows))

    def _take(self, rule: dict[int, Any]) -> None:
        """Keep Fairlearn's rule as numbers, so that predicting needs Fairlearn no more."""
        for group, mix in rule.items():
            operations = mix.operation0, mix.operation1  # "score > threshold": flip=False
            self.thresholds_[group] = [float(operation.threshold) for operation in operations]
            self.probabilities_[group] = mix.p0, mix.p1
            self.ignored_[group] = mix.get("p_ignore", 0.0)
            self.constants_[group] = mix.get("prediction_constant", 0.0)

    def _decide(self, rows: DecisionRows) -> Decisions:
        assert rows.group is not None
        known, group = rows.group >= 0, np.maximum(rows.group, 0)
        above = rows.base.scores[:, None] > self.thresholds_[group]
        chances, ignored = self.probabilities_[group], self.ignored_[group]
        mixed = chances[:, 0] * above[:, 0] + chances[:, 1] * above[:, 1]
        mixed = ignored * self.constants_[group] + (1 - ignored) * mixed
        return np.where(known, mixed, rows.base.decisions.astype(np.float64))


class _ScoresAreX(BaseEstimator):  # type: ignore[misc]
    """A model whose probabilities are its only column: Fairlearn needs no more of a base model."""

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> Self:
        return self

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def _fairlearn_rule(update: ThresholdOptimizer, rows: RivalFitRows) -> dict[int, Any]:
    """Return Fairlearn's mix of thresholds for each group."""
    try:
        from fairlearn import postprocessing
    except ImportError as error:
        raise ImportError(
            "ThresholdOptimizer wraps Fairlearn, which is not installed: "
            "pip install 'commod-debiasing[fairlearn]'."
        ) from error
    relaxed = len(update._constraint.rate_rows) == 1 and update.tolerance_ > 0
    optimizer = postprocessing.ThresholdOptimizer(
        estimator=_ScoresAreX(),
        constraints=update.constraints,
        objective=update.objective,
        grid_size=update.grid_size,
        prefit=True,
        predict_method="predict_proba",
        tol=update.tolerance_ if relaxed else None,
    )
    kept = rows.in_constraint
    assert rows.label is not None
    optimizer.fit(
        rows.base.scores[kept][:, None],
        rows.label[kept].astype(np.int64),
        sensitive_features=rows.group[kept],
    )
    found = optimizer.interpolated_thresholder_.interpolation_dict
    return {int(group): mix for group, mix in found.items()}
