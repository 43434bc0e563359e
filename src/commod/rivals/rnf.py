"""RNF (Du et al. 2021): retrain the head of a network on representations between two groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import expit, logit

from commod._data.arrays import Codes, Floats
from commod._data.parameters import check_numbers
from commod._solvers.problem import (
    MAX_MARGIN,
    Layer,
    Schedule,
    TrainedLayers,
    TrainingRows,
    training_margins,
)
from commod.exceptions import InputError
from commod.metrics._constraint import ODDS, PARITY
from commod.rivals._rows import DecisionRows, RivalFitRows
from commod.rivals._trained import (
    NewModelRival,
    TrainedRival,
    TrainingTable,
    hidden_units,
    is_logistic_regression,
    is_network,
    last_step,
)
from commod.rivals.base import choice, number
from commod.updates._trained import draw_seeds
from commod.updates.base import LARGEST_WEIGHT
from commod.updates.ratio import Network


@dataclass(eq=False, repr=False, kw_only=True)
class RNF(NewModelRival, TrainedRival):
    """Train a new head for a network, on representations that are neutral between two groups.

    The first hidden layer is the encoder: it stays as it is and turns a row into units z. Each row
    meets a partner of its batch who has the same true label and is of another group. The new head c
    minimises ``mean (c(z̄) − p̄)² + strength · Σ_λ mean |c(λ z1 + (1 − λ) z2) − c(z̄)|``. Here z̄ is
    the mean of the units z1 and z2 of both rows, p̄ the mean of the old model's probabilities, and λ
    is 0.6, 0.7, 0.8 and 0.9. The head learns to ignore the units in which the groups differ.

    Encoder and old model depend on the base model:

    =============================================  ========================  =======================
    base model, alone or the last of a pipeline    encoder                   old model
    =============================================  ========================  =======================
    `MLPClassifier`                                its first hidden layer    the base model
    `LogisticRegression`                           its inputs                the base model
    any other                                      that of a new network     the new network
    =============================================  ========================  =======================

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=0.1
        Weight α of the second part of the loss. 0 keeps the base model and trains nothing. A tiny α
        already changes decisions: the head is new. α multiplies means over the pairs. The authors'
        code sums over a batch of 64 rows and two classes: their 0.035 is 4.5 here.
    groups : str, default="true"
        The groups that partners differ in: the "true" ones, or a "proxy" that is guessed without
        them. The proxy splits the rows of each true label at the score of a network that amplifies
        bias. The sensitive features are then only used to measure.
    hidden : tuple of int, default=(50, 50)
        Sizes of the hidden layers (ReLU) of a network that is trained here. The first is the
        encoder, the others belong to the head. For a base model that is a network, the new head has
        as many units as its own.
    temperature : float, default=2.0
        T: the old model's probabilities are sigmoid(margin / T). The new score undoes this.
    q : float, default=0.2
        Amplification of bias for "proxy": the network minimises (1 − p^q)/q, p being the
        probability of the true label.
    proxy_share : float, default=0.5
        Share γ of the rows of each true label that "proxy" puts into the group with high scores.
    constraints : str, default="demographic_parity"
        What is measured: "demographic_parity" or "equalized_odds". The training is the same.
    epochs : int, default=50
        Passes over the rows in which a head is trained, and a network before it.
    max_steps : int, default=1500
        Steps after which a training ends, with its epoch: a large table has fewer epochs.
    batch_size : int, default=128
        Rows per step; partners come from the same batch. Batches differ by at most one row.
    learning_rate : float, default=0.003
        Adam's step size; it falls to 0 along a cosine.
    locked_features : collection of str, default=()
        Columns the new model must not read. Not for a base model whose layers are used.
    min_category_size : int, default=20
        Fit rows that a category needs to become a term; rarer categories count as unseen. For
        networks that are trained here.
    min_group_size : int, default=30
        Fit rows that a group needs; rows of smaller groups have no partners and are reported.
    threshold : float, default=0.5
        The base decision is score > threshold. All margins are logit(score) − logit(threshold). So
        the head learns the same if the score and its threshold are shifted together.
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
    head_ : tuple of (matrix, bias), or None
        The layers of the new head, which read the encoder's units; None where the base model is
        kept. Their output is the new margin.
    encoder_ : Network or None
        The network that was trained here; None where the base model is the encoder.
    history_ : dict of str to list of float
        Mean of both parts of the loss, of the share of rows that have a partner, and of the share
        of changed decisions, per epoch.
    n_iter_ : int
        Epochs of the head that are done.

    Notes
    -----
    A row without a partner in its batch is left out of the step. The authors' code takes a partner
    of the same group then, and uses the true groups although its README says proxy. They train with
    dropout 0.2 and batches of 64 rows, nine epochs for the network and four for the head. Two
    outputs with a softmax are one output with a sigmoid here. Several groups: any other group has
    partners.

    References
    ----------
    Du, Mukherjee, Wang, Tang, Awadallah, Hu: "Fairness via Representation Neutralization",
    NeurIPS 2021.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import RNF
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = RNF(model, epochs=40, learning_rate=0.02, random_state=0)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> bool(update.fairness_ > update.base_fairness_)
    True
    """

    strength: float = 0.1
    groups: str = choice("true", "proxy")
    hidden: Sequence[int] = (50, 50)
    temperature: float = number(2.0, low=1.0, high=LARGEST_WEIGHT)
    q: float = number(0.2, low=0.0, high=1.0, include="right")
    proxy_share: float = 0.5
    epochs: int = number(50, low=0, whole=True)
    max_steps: int = number(1500, low=1, whole=True)
    batch_size: int = number(128, low=1, whole=True)
    learning_rate: float = number(0.003, low=0.0, high=LARGEST_WEIGHT, include="right")

    known_constraints = (PARITY, ODDS)
    needs_network = True
    new_model = "head_"

    # from nearly no effect to near parity
    default_strengths = (0.0, *(2.0 ** (i / 3) for i in range(-18, 1)), 2.0, 4.0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not len(self.hidden):
            raise InputError(
                "hidden=() leaves no layer for the encoder. Pass at least one size, such as (50,).",
                parameter="hidden",
            )
        check_numbers("share", proxy_share=self.proxy_share)
        if len(self.locked_features) and self._reads_base_layers:
            raise InputError(
                f"locked_features={list(self.locked_features)!r} cannot be kept: the new head "
                f"reads layers of the base model, a {type(last_step(self.estimator)).__name__}. "
                "Pass ScoreColumn with the scores of the base model: the method then trains a "
                "network on the other columns of X.",
                parameter="locked_features",
            )

    @property
    def _reads_base_layers(self) -> bool:
        return is_network(self.estimator) or is_logistic_regression(self.estimator)

    # -- learning -------------------------------------------------------------------------------

    def _keep_base(self, table: TrainingTable) -> None:
        self.head_: tuple[Layer, ...] | None = None
        self.encoder_: Network | None = None
        self._has_pairs = True

    def _train(
        self, models: Sequence[Self], table: TrainingTable, solver: Any, report: Any
    ) -> TrainedLayers:
        """Train what all strengths share, the networks, then the heads of all of them."""
        seed = int(draw_seeds(models[:1])[0])
        networks = self._networks(seed, table, solver)
        if networks is None:
            return TrainedLayers({}, 0, True, [])
        encoder, amplified = networks
        group = table.rows.group if amplified is None else self._proxy(amplified, table)
        has_pairs = _has_pairs(table.rows, group)
        for model in models:
            model.encoder_, model._has_pairs = encoder, has_pairs
        if not has_pairs:
            return TrainedLayers({}, 0, False, [])
        units = self._units(encoder, table.rows)
        centre, scale = _moments(units, table.rows.weight)
        trained = solver.train_heads(
            self._head_rows(table, encoder, group, (units - centre) / scale),
            np.array([model.strength for model in models], dtype=np.float32),
            np.full(len(models), seed),
            self._schedule_for(len(table.rows)),
            self._head_sizes(),
            report,
        )
        return _in_raw_units(trained, centre, scale, float(self.temperature))

    def _store(self, trained: TrainedLayers, i: int, table: TrainingTable) -> None:
        if trained.epochs_done:
            self.head_ = tuple(trained.of_model(i))

    def _networks(
        self, seed: int, table: TrainingTable, solver: Any
    ) -> tuple[Network | None, Network | None] | None:
        """Return the encoder's network and the one that amplifies bias; None after an interrupt.

        A network that is not needed is None.
        """
        powers = {} if self._reads_base_layers else {"encoder": 0.0}
        if self.groups == "proxy":
            powers["amplified"] = float(self.q)
        if not powers:
            return None, None
        assert table.rows.label is not None
        by_row = {"label": table.rows.label.astype(np.float64), "weight": table.unit_weights}
        trained = solver.train_networks(
            table.training_rows(by_row),
            np.array(list(powers.values()), dtype=np.float32),
            np.full(len(powers), seed),
            self._schedule_for(len(table.rows)),
            tuple(map(int, self.hidden)),
        )
        if trained.interrupted:
            return None
        networks = {name: table.network(trained, i) for i, name in enumerate(powers)}
        return networks.get("encoder"), networks.get("amplified")

    def _schedule_for(self, n_rows: int) -> Schedule:
        schedule = self._schedule()
        most = -(-int(self.max_steps) // -(-n_rows // schedule.batch_size))
        return replace(schedule, epochs=min(schedule.epochs, most))

    def _proxy(self, amplified: Network, table: TrainingTable) -> Codes:
        """Return proxy groups (n,): 1 for high scores among the rows of the same true label."""
        rows, scores = table.rows, amplified.evaluate(table.terms)
        group = np.full(len(rows), -1, dtype=np.intp)
        for label in (False, True):
            inside = (rows.label == label) & (rows.weight > 0)
            if inside.any():
                order = np.flatnonzero(inside)[np.argsort(scores[inside])]
                below = np.cumsum(rows.weight[order]) / rows.weight[inside].sum()
                cut = scores[order[np.searchsorted(below, 1 - float(self.proxy_share))]]
                group[inside] = scores[inside] > cut
        return group

    def _units(self, encoder: Network | None, rows: DecisionRows) -> Floats:
        """Return what the encoder makes of each row, shape (n, units)."""
        if encoder is None:
            return hidden_units(self._base_model, rows.X)
        return encoder.hidden_units(rows.columns)

    def _head_sizes(self) -> tuple[int, ...]:
        """Return the sizes of the head's hidden layers."""
        if is_network(self.estimator):
            return tuple(bias.size for bias in last_step(self.estimator).intercepts_[1:-1])
        if is_logistic_regression(self.estimator):
            return ()
        return tuple(map(int, self.hidden))[1:]

    def _head_rows(
        self, table: TrainingTable, encoder: Network | None, group: Codes, units: Floats
    ) -> TrainingRows:
        """Return what `train_heads` reads."""
        rows = table.rows
        assert rows.label is not None
        if encoder is None:
            margin = training_margins(rows.base.scores, rows.base.threshold)
        else:
            margin = encoder.evaluate(table.terms) - logit(rows.base.threshold)
        by_row = {
            "units": units,
            "margin": np.clip(margin, -MAX_MARGIN, MAX_MARGIN),
            "label": rows.label.astype(np.float64),
            "group": group,
            "pair_weight": table.unit_weights * (group >= 0),
            "decision": rows.base.decisions,
        }
        return TrainingRows.of(by_row, temperature=float(self.temperature))

    def _sentence(self) -> str:
        text = super()._sentence()
        if self._has_pairs:
            return text
        return (
            "No two rows of different groups have the same true label, so no head was trained and "
            f"the base model stays. {text}"
        )

    # -- deciding -------------------------------------------------------------------------------

    def _model_scores(self, rows: DecisionRows) -> Floats:
        assert self.head_ is not None
        (matrix, bias), *later = self.head_
        x = self._units(self.encoder_, rows) @ matrix + bias
        for matrix, bias in later:
            x = np.maximum(x, 0.0) @ matrix + bias
        return np.asarray(expit(x[:, 0] + logit(rows.base.threshold)))


def _has_pairs(rows: RivalFitRows, group: Codes) -> bool:
    """Return whether two rows with weight have the same true label and different groups."""
    counted = (group >= 0) & (rows.weight > 0)
    assert rows.label is not None
    return any(len(np.unique(group[counted & (rows.label == y)])) > 1 for y in (False, True))


def _moments(units: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the weighted mean and standard deviation of each unit; 1 where it does not vary."""
    mean = np.average(units, axis=0, weights=weight)
    spread = np.sqrt(np.average((units - mean) ** 2, axis=0, weights=weight))
    return mean, np.where(spread > 0, spread, 1.0)


def _in_raw_units(
    trained: TrainedLayers, centre: Floats, scale: Floats, temperature: float
) -> TrainedLayers:
    """Return heads that read the encoder's units as they are, and whose output is the margin."""
    (matrix, bias), *later = trained.layers
    raw = matrix / scale[:, None]
    layers = [(raw, bias - centre @ raw), *later]
    last, last_bias = layers[-1]
    layers[-1] = (temperature * last, temperature * last_bias)
    return replace(trained, layers=layers)
