"""What rivals that are trained by gradients share: terms, one computation for all, interrupts."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from commod._data.encoding import Encoding, TermTable, learn_encoding
from commod._solvers.problem import TrainingRecord
from commod.exceptions import InterruptionWarning
from commod.rivals.base import LearningRows, Rival
from commod.updates.base import check_number

__all__ = ["TrainedRival", "unit_weights"]


class TrainedRival(Rival):
    """A rival whose strengths are trained together; it reads the columns of X as terms.

    A subclass defines `_train`, which trains several models at once, and `_store`, which keeps one
    of them. Without strength or epochs nothing is trained: `_keep_base` leaves the base model.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    min_category_size: int
    progress: bool | None

    @abstractmethod
    def _train(self, models: Sequence[Self], rows: LearningRows, terms: TermTable) -> Any:
        """Return the solver's `TrainingRecord`, with one result for each of `models`."""

    @abstractmethod
    def _store(
        self, trained: Any, i: int, rows: LearningRows, encoding: Encoding, terms: TermTable
    ) -> None:
        """Keep the i-th result as what `_decide` needs."""

    @abstractmethod
    def _keep_base(self, rows: LearningRows, encoding: Encoding, terms: TermTable) -> None:
        """Keep what makes `_decide` repeat the base model."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "epochs", low=0, whole=True)
        for name in ("batch_size", "min_category_size"):
            check_number(self, name, low=1, whole=True)
        check_number(self, "learning_rate", low=0.0, include="right")

    def _learn(self, rows: LearningRows) -> None:
        self._learn_all([self], rows)

    def _learn_all(self, models: Sequence[Self], rows: LearningRows) -> None:
        """Train all models with a strength in one computation."""
        encoding = learn_encoding(
            rows.columns,
            rows.weight,
            min_category_size=self.min_category_size,
            locked=self.locked_features,
        )
        terms = encoding.encode(rows.columns)
        for model in models:
            model.history_, model.n_iter_, model._interrupted = {}, 0, False
            model._keep_base(rows, encoding, terms)
        edited = [model for model in models if model.strength > 0]
        if not (edited and self.epochs):
            return
        trained = self._train(edited, rows, terms)
        for i, model in enumerate(edited):
            model._remember(trained, i)
            model._store(trained, i, rows, encoding, terms)
        if trained.interrupted:
            warnings.warn(edited[0]._interruption(), InterruptionWarning, stacklevel=4)

    def _remember(self, training: TrainingRecord, i: int) -> None:
        self.history_ = {name: values[i].tolist() for name, values in training.history.items()}
        self.n_iter_ = training.epochs_done
        self._interrupted = training.interrupted

    def _interruption(self) -> str:
        return f"Training was interrupted after {self.n_iter_} of {self.epochs} epochs."

    def _sentence(self) -> str:
        text = super()._sentence()
        return f"{self._interruption()} {text}" if self._interrupted else text


def unit_weights(rows: LearningRows) -> NDArray[np.float64]:
    """Return weights of mean 1: float32 sums stay well scaled whatever their unit."""
    return rows.weight / rows.weight.mean()
