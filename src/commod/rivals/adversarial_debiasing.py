"""Adversarial debiasing (Zhang, Lemoine and Mitchell 2018): a new model, trained fairly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, logit

from commod._data.arrays import Floats
from commod._solvers.problem import TrainedLayers
from commod.rivals._rows import DecisionRows
from commod.rivals._trained import NewModelRival, TrainedRival, TrainingTable
from commod.rivals.base import choice, number
from commod.updates._trained import draw_seeds
from commod.updates.base import LARGEST_WEIGHT
from commod.updates.ratio import Network


@dataclass(eq=False, repr=False, kw_only=True)
class AdversarialDebiasing(NewModelRival, TrainedRival):
    """Train a new model of the labels against an adversary that reads its score.

    The predictor's weights move along ∇L_P − proj(∇L_P onto ∇L_A) − strength · ∇L_A. L_P is the
    predictor's log loss. L_A is the log loss of the adversary, which predicts the group from
    ``t = sigmoid((1 + |c|) logit)`` with a learned c.

    The base model's scores are not used. So decisions differ from the base model's for two reasons:
    fairness, and a training of its own.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model, to which the decisions are compared.
    strength : float, default=1.0
        Weight α of the adversary's gradient. 0 keeps the base model and trains nothing. A tiny α
        already changes decisions: the model is new, and the projection is subtracted in full.
    constraints : str, default="demographic_parity"
        What the adversary sees: t ("demographic_parity"), t of the rows with one true label
        ("true_positive_rate_parity", "false_positive_rate_parity"), or t, t·y and t·(1 − y)
        ("equalized_odds").
    hidden : tuple of int, default=(200,)
        Sizes of the predictor's hidden layers (ReLU); () makes it linear.
    adversary_hidden : tuple of int, default=()
        Sizes of the adversary's hidden layers; () as published.
    projection : str, default="whole"
        Project the "whole" gradient, as published, or each "tensor" (matrix or bias) separately,
        as AIF360 and Fairlearn do.
    epochs : int, default=50
        Passes over the rows in which the predictor trains against the adversary.
    warmup_epochs : int, default=10
        Earlier passes, in which the predictor learns the labels only and the adversary learns to
        read the predictor.
    batch_size : int, default=128
        Rows per step. The batches of one epoch differ in size by at most one row.
    learning_rate : float, default=0.001
        Adam's step size for the predictor. Both step sizes fall to 0 along a cosine.
    adversary_learning_rate : float, default=0.1
        Adam's step size for the adversary. With the predictor's step size, as in AIF360, training
        at strength 1 or more tends to oscillate.
    locked_features : collection of str, default=()
        Columns the new model must not read.
    min_category_size : int, default=20
        Fit rows that a category needs to become a term; rarer categories count as unseen.
    min_group_size : int, default=30
        Fit rows that a group needs to be part of the constraint; smaller groups are reported.
    threshold : float, default=0.5
        The decision is score > threshold, for the base model and the new one. The new model's score
        estimates P(Y = 1 | x) and is not shifted. So the threshold has the same meaning for both
        models only where the base score is calibrated.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.
    progress : bool, default=None
        Show a progress bar; None shows it on a terminal only.
    random_state : int, RandomState or None, default=None
        Seed of the training. The same seed on the same machine gives the same bits.

    Attributes
    ----------
    network_ : Network or None
        The layers of the new model; None where the base model is kept.
    history_ : dict of str to list of float
        Mean of both losses and of the share of changed decisions, per epoch.
    n_iter_ : int
        Epochs done with the adversary; fewer than `epochs` after an interrupt. The base model is
        kept where it is 0.

    Notes
    -----
    The paper raises α as √step while the step size falls as 1/step, and trains both sides before.
    AIF360 has the equalized-odds adversary only, α = 0.1, dropout, Adam 0.001 decaying by 4 % every
    1000 steps, and 50 epochs of 128 rows. AIF360 also reads the sensitive column unless it is
    dropped; this class reads columns of X only. A large α may lead to one decision for all rows: a
    warning then says so.

    References
    ----------
    Zhang, Lemoine, Mitchell: "Mitigating Unwanted Biases with Adversarial Learning", AIES 2018.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import AdversarialDebiasing
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = AdversarialDebiasing(model, epochs=20, random_state=0)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> bool(update.fairness_ > update.base_fairness_)
    True
    """

    hidden: Sequence[int] = (200,)
    adversary_hidden: Sequence[int] = ()
    projection: str = choice("whole", "tensor")
    epochs: int = number(50, low=0, whole=True)
    warmup_epochs: int = number(10, low=0, whole=True)
    batch_size: int = number(128, low=1, whole=True)
    learning_rate: float = number(0.001, low=0.0, high=LARGEST_WEIGHT, include="right")
    adversary_learning_rate: float = number(0.1, low=0.0, high=LARGEST_WEIGHT, include="right")

    new_model = "network_"

    # from nearly no effect to near parity
    default_strengths = (
        *(0.0, 0.01, 0.03, 0.05, 0.07, 0.085, 0.1, 0.12, 0.15, 0.175, 0.2, 0.25, 0.3, 0.4),
        *(0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 8.0),
    )

    # -- learning -------------------------------------------------------------------------------

    def _keep_base(self, table: TrainingTable) -> None:
        self.network_: Network | None = None

    def _train(
        self, models: Sequence[Self], table: TrainingTable, solver: Any, report: Any
    ) -> TrainedLayers:
        rows, weight = table.rows, table.unit_weights
        assert rows.label is not None
        by_row = {
            "label": rows.label.astype(np.float64),
            "group": np.maximum(rows.group, 0),
            "decision": rows.base.decisions,
            "weight": weight,
            "adversary_weight": weight * (rows.cells(self._constraint).index >= 0),
        }
        trained: TrainedLayers = solver.train_predictor(
            table.training_rows(by_row, offset=float(logit(rows.base.threshold))),
            rows.n_groups,
            np.array([model.strength for model in models], dtype=np.float32),
            draw_seeds(models),
            self._schedule(),
            report,
            hidden=tuple(map(int, self.hidden)),
            adversary_hidden=tuple(map(int, self.adversary_hidden)),
            adversary_rate=float(self.adversary_learning_rate),
            sees_label=len(self._constraint.rate_rows) > 1,
            projects_whole=self.projection == "whole",
        )
        return trained

    def _store(self, trained: TrainedLayers, i: int, table: TrainingTable) -> None:
        if trained.epochs_done:
            self.network_ = table.network(trained, i)

    # -- deciding -------------------------------------------------------------------------------

    def _model_scores(self, rows: DecisionRows) -> Floats:
        assert self.network_ is not None
        return np.asarray(expit(self.network_.output(rows.columns)))
