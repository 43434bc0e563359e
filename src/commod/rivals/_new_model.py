"""`NewModelRival`: what rivals share that replace the base model by a model of their own."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any

from commod.exceptions import InputError, TrainingWarning
from commod.rivals.base import Rival
from commod.updates._fit_rows import FitRows
from commod.updates._interface import Decisions


class NewModelRival(Rival):
    """A rival that trains a new model of the labels; it needs y for every constraint."""

    trained_anew = True
    needs_labels = True

    @property
    @abstractmethod
    def _has_new_model(self) -> bool:
        """Return whether a new model decides; False where the base model is kept."""

    def _read_fit_rows(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
    ) -> FitRows:
        if y is None:
            raise InputError(
                "This estimator requires y to be passed, but the target y is None: "
                f"{type(self).__name__} trains a new model of the labels. Pass y, or use a method "
                "that does not need y, such as FRAPPE."
            )
        return super()._read_fit_rows(X, y, sensitive_features, sample_weight)

    def _store_outcome(self, rows: FitRows, positive: Decisions) -> None:
        super()._store_outcome(rows, positive)
        if self._has_new_model and (positive.all() or not positive.any()):
            label = self.labels_of(positive[:1].astype(bool)).tolist()[0]
            note = (
                f"At strength={self.strength:g} training ended with one decision for all rows, "
                f"{label!r}. {self._way_out_of_collapse()}"
            )
            self.status_ = f"{note} {self.status_}"
            warnings.warn(note, TrainingWarning, stacklevel=4)

    def _way_out_of_collapse(self) -> str:
        return "Lower the strength or the learning rate, or try another random_state."
