"""`TrainedRival`: what rivals share that are trained by gradients."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from commod._data.encoding import Encoding, TermTable, learn_encoding
from commod._data.parameters import check_number
from commod._solvers.problem import TrainedLayers, TrainingRecord
from commod.exceptions import InterruptionWarning
from commod.rivals._rows import RivalFitRows
from commod.rivals.base import Rival
from commod.updates._network import Network, raw_network
from commod.updates.base import LARGEST_WEIGHT


@dataclass(frozen=True)
class TrainingTable:
    """The fit rows, and the same rows as terms: what a rival is trained on."""

    rows: RivalFitRows
    encoding: Encoding
    terms: TermTable

    @property
    def unit_weights(self) -> NDArray[np.float64]:
        """Return the weights scaled to mean 1, so that float32 sums stay accurate in any unit."""
        return self.rows.weight / self.rows.weight.mean()

    def network(self, trained: TrainedLayers, i: int) -> Network:
        """Return the layers of the i-th trained model as a network on raw columns."""
        layers = [(matrix[i], bias[i]) for matrix, bias in trained.layers]
        return raw_network(self.encoding, layers, self.terms, self.rows.weight)


class TrainedRival(Rival):
    """A rival that reads the columns of X as terms and trains all strengths in one computation.

    A subclass defines:

    - `_train`, which trains several models at once;
    - `_store`, which keeps the result of one model;
    - `_keep_base`, which leaves the base model as it is, for strength 0 or 0 epochs.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    min_category_size: int
    progress: bool | None

    @abstractmethod
    def _train(self, models: Sequence[Self], table: TrainingTable) -> Any:
        """Return the solver's `TrainingRecord`, with one result for each of `models`."""

    @abstractmethod
    def _store(self, trained: Any, i: int, table: TrainingTable) -> None:
        """Store the i-th result as what `_decide` needs."""

    @abstractmethod
    def _keep_base(self, table: TrainingTable) -> None:
        """Store what makes `_decide` repeat the base model."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "epochs", low=0, whole=True)
        for name in ("batch_size", "min_category_size"):
            check_number(self, name, low=1, whole=True)
        check_number(self, "learning_rate", low=0.0, high=LARGEST_WEIGHT, include="right")

    def _learn(self, rows: RivalFitRows) -> None:
        self._learn_all([self], rows)

    def _learn_all(self, models: Sequence[Self], rows: RivalFitRows) -> None:
        """Train all models with a strength above 0 in one computation."""
        encoding = learn_encoding(
            rows.columns,
            rows.weight,
            min_category_size=self.min_category_size,
            locked=self.locked_features,
        )
        table = TrainingTable(rows, encoding, encoding.encode(rows.columns))
        for model in models:
            model.history_, model.n_iter_, model._interrupted = {}, 0, False
            model._keep_base(table)
        edited = [model for model in models if model.strength > 0]
        if not (edited and self.epochs):
            return
        trained = self._train(edited, table)
        for i, model in enumerate(edited):
            model._store_training(trained, i)
            model._store(trained, i, table)
        if trained.interrupted:
            warnings.warn(edited[0]._interruption(), InterruptionWarning, stacklevel=4)

    def _store_training(self, training: TrainingRecord, i: int) -> None:
        self.history_ = {name: values[i].tolist() for name, values in training.history.items()}
        self.n_iter_ = training.epochs_done
        self._interrupted = training.interrupted

    def _interruption(self) -> str:
        return f"Training was interrupted after {self.n_iter_} of {self.epochs} epochs."

    def _sentence(self) -> str:
        text = super()._sentence()
        return f"{self._interruption()} {text}" if self._interrupted else text
