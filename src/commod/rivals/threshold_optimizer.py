"""Fairlearn's ThresholdOptimizer (Hardt, Price and Srebro 2016) under the contract of an update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from commod._data.arrays import Floats, Mask
from commod._data.parameters import check_choice
from commod.exceptions import InputError
from commod.metrics._constraint import CONSTRAINTS
from commod.rivals._rows import DecisionRows, RivalFitRows, from_half
from commod.rivals.base import AwareRival, number
from commod.updates._interface import Decisions


@dataclass(eq=False, repr=False, kw_only=True)
class ThresholdOptimizer(AwareRival):
    """Mix two of Fairlearn's thresholds per group at random; needs `pip install fairlearn`.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=1.0
        Fairlearn's `tol` is (1 − strength) times the gap between the groups' rates on the fit rows;
        1 means no tolerance. 0 keeps the base model, whose threshold Fairlearn would move
        otherwise. Fairlearn does not relax equalized odds: only 0 and 1 are allowed there.
    constraints : str, default="demographic_parity"
        Or "equalized_odds", "true_positive_rate_parity", "false_positive_rate_parity".
    objective : str, default="accuracy_score"
        Fairlearn's objective, such as "balanced_accuracy_score".
    grid_size : int, default=1000
        The number of values of the constrained rate that Fairlearn tries.
    min_group_size : int, default=30
        Fit rows that a group needs; smaller groups keep their base decisions.
    threshold : float, default=0.5
        The base decision is score > threshold.
        Only the order of the scores counts. Cuts lie between two scores, in the middle after the
        score and its threshold were shifted on the logit scale until the threshold was 0.5.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.
    random_state : int, RandomState or None, default=None
        Seed of the random draws. A draw belongs to its row: the same row always gets the same one.

    Attributes
    ----------
    tolerance_ : float
        Fairlearn's `tol`.
    thresholds_, probabilities_ : ndarray of shape (n_groups, 2)
        The two thresholds of each group and the probability of each.
    ignored_, constants_ : ndarray of shape (n_groups,)
        The probability that a score is ignored, and that of a positive decision then.

    Notes
    -----
    y is always needed. Two inputs are refused: `sample_weight`, because Fairlearn takes no weights
    here, and a group with one true label only, for which Fairlearn has no threshold.

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

    objective: str = "accuracy_score"
    grid_size: int = number(1000, low=2, whole=True)
    random_state: Any = None

    largest_strength = 1.0
    needs_labels = True
    sample_weights = False
    randomised = True

    @property
    def default_strengths(self) -> tuple[float, ...]:
        """Return strengths from 0 to 1; for equalized odds only 0 and 1."""
        if len(self._constraint.rate_rows) > 1:
            return (0.0, 1.0)
        return super().default_strengths

    def _objectives(self) -> tuple[str, ...]:
        """Return the objectives that Fairlearn takes with the constraint."""
        accuracies = ("accuracy_score", "balanced_accuracy_score")
        if len(self._constraint.rate_rows) > 1:
            return accuracies
        return (*accuracies, "selection_rate", "true_positive_rate", "true_negative_rate")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.objective, "objective", self._objectives())
        if len(self._constraint.rate_rows) > 1 and self.strength not in (0, 1):
            raise InputError(
                f"strength={self.strength!r} must be 0 or 1: Fairlearn does not relax "
                "equalized_odds. RelaxedThresholdOptimizer takes anything between.",
                parameter="strength",
            )

    def _learn(self, rows: RivalFitRows) -> None:
        labels = rows.needed_labels("ThresholdOptimizer maximises accuracy")
        for group, name in enumerate(rows.group_labels):
            if len(np.unique(labels[rows.group == group])) < 2:
                raise InputError(
                    f"Group {name!r} has rows of one true label only, for which Fairlearn's "
                    "ThresholdOptimizer has no threshold. Merge it with another or leave it out."
                )
        gap = np.ptp(rows.rates(self._constraint, rows.base.decisions), axis=1).sum()
        self.tolerance_ = float((1 - self.strength) * gap)
        self.thresholds_ = np.full((rows.n_groups, 2), rows.base.threshold)
        self.probabilities_ = np.tile([1.0, 0.0], (rows.n_groups, 1))
        self.ignored_, self.constants_ = np.zeros(rows.n_groups), np.zeros(rows.n_groups)
        if self.strength > 0:
            self._store_rule(_fairlearn_rule(self, rows, labels), rows.base.threshold)

    def _store_rule(self, rule: dict[int, Any], threshold: float) -> None:
        """Store Fairlearn's rule as numbers, so that `predict` does not need Fairlearn."""
        for group, mix in rule.items():
            operations = mix.operation0, mix.operation1  # "score > threshold": flip=False
            cuts = np.array([float(operation.threshold) for operation in operations])
            inside = np.isfinite(cuts)  # infinite: all rows or none
            cuts[inside] = from_half(cuts[inside], threshold)
            self.thresholds_[group] = cuts
            self.probabilities_[group] = mix.p0, mix.p1
            self.ignored_[group] = mix.get("p_ignore", 0.0)
            self.constants_[group] = mix.get("prediction_constant", 0.0)

    def _decide(self, rows: DecisionRows) -> Decisions:
        group = rows.group_index
        above = rows.base.scores[:, None] > self.thresholds_[group]
        probabilities, ignored = self.probabilities_[group], self.ignored_[group]
        mixed = probabilities[:, 0] * above[:, 0] + probabilities[:, 1] * above[:, 1]
        mixed = ignored * self.constants_[group] + (1 - ignored) * mixed
        return rows.keep_unknown(mixed)


class _ScoreModel(BaseEstimator):  # type: ignore[misc]
    """The base model as Fairlearn sees it: the only column of X is the score."""

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> Self:
        return self

    def predict_proba(self, X: Floats) -> Floats:
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def _fairlearn_rule(update: ThresholdOptimizer, rows: RivalFitRows, labels: Mask) -> dict[int, Any]:
    """Return Fairlearn's mix of thresholds for each group."""
    try:
        from fairlearn import postprocessing
    except ImportError as error:
        raise ImportError(
            "ThresholdOptimizer wraps Fairlearn, which is not installed: "
            "pip install 'commod-debiasing[fairlearn]'."
        ) from error
    compared = update._constraint.rate_rows
    relaxed = len(compared) == 1 and update.tolerance_ > 0
    optimizer = postprocessing.ThresholdOptimizer(
        estimator=_ScoreModel(),
        # Fairlearn always compares by difference
        constraints=next(c.name for c in CONSTRAINTS.values() if c.rate_rows == compared),
        objective=update.objective,
        grid_size=update.grid_size,
        prefit=True,
        predict_method="predict_proba",
        tol=update.tolerance_ if relaxed else None,
    )
    kept = rows.in_constraint
    optimizer.fit(
        rows.scores_at_half[kept][:, None],
        labels[kept].astype(np.int64),
        sensitive_features=rows.group[kept],
    )
    rule = optimizer.interpolated_thresholder_.interpolation_dict
    return {int(group): mix for group, mix in rule.items()}
