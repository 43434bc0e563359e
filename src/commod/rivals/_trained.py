"""What rivals share that train a model: a new one, by gradients, or on the base model's layers."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from commod._data.arrays import Floats
from commod._data.encoding import Encoding, TermTable
from commod._io.optional import require_jax
from commod._solvers.problem import Schedule, TrainedLayers, TrainingRows, standardise
from commod.exceptions import InputError, InterruptionWarning, TrainingWarning
from commod.rivals._rows import DecisionRows, RivalFitRows
from commod.rivals.base import ScoredRival, TermsRival
from commod.updates._fit_rows import FitRows
from commod.updates._interface import Decisions, progress_bar
from commod.updates._trained import check_layers, raw_network
from commod.updates.ratio import Network


class NewModelRival(ScoredRival, TermsRival):
    """A rival that trains a new model of the labels; it needs y for every constraint."""

    trained_anew = True
    needs_labels = True

    new_model: ClassVar[str]  # the attribute that holds the new model; None: the base model is kept

    @abstractmethod
    def _model_scores(self, rows: DecisionRows) -> Floats:
        """Return the new model's score of each row, shape (n,)."""

    def _new_scores(self, rows: DecisionRows) -> Floats:
        kept = getattr(self, self.new_model) is None
        return rows.base.scores if kept else self._model_scores(rows)

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
        if getattr(self, self.new_model) is not None and (positive.all() or not positive.any()):
            label = self._labels_of(positive[:1].astype(bool)).tolist()[0]
            note = (
                f"At strength={self.strength:g} training ended with one decision for all rows, "
                f"{label!r}. {self._way_out_of_collapse()}"
            )
            self._note(note)
            warnings.warn(note, TrainingWarning, stacklevel=4)

    def _way_out_of_collapse(self) -> str:
        return "Lower the strength or the learning rate, or try another random_state."


@dataclass(frozen=True)
class TrainingTable:
    """The fit rows, and the same rows as terms: what a rival is trained on."""

    rows: RivalFitRows
    encoding: Encoding
    terms: TermTable

    @property
    def unit_weights(self) -> Floats:
        """Return the weights scaled to mean 1, so that float32 sums stay accurate in any unit."""
        return self.rows.weight / self.rows.weight.mean()

    def training_rows(self, by_row: Mapping[str, Any], **shared: Any) -> TrainingRows:
        """Return the standardised terms, and further fields, for the solver."""
        return standardise(self.terms, self.rows.weight).add(by_row, **shared)

    def network(self, trained: TrainedLayers, i: int) -> Network:
        """Return the layers of the i-th trained model as a network on raw columns."""
        return raw_network(self.encoding, trained.of_model(i), self.terms, self.rows.weight)


@dataclass(eq=False, repr=False, kw_only=True)
class TrainedRival(TermsRival):
    """A rival that reads the columns of X as terms and trains all strengths in one computation.

    A subclass defines:

    - `_train`, which trains several models at once;
    - `_store`, which keeps the result of one model;
    - `_keep_base`, which leaves the base model as it is, for strength 0 or 0 epochs.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    progress: bool | None = None
    random_state: Any = None

    @abstractmethod
    def _train(
        self, models: Sequence[Self], table: TrainingTable, solver: Any, report: Any
    ) -> TrainedLayers:
        """Return what `solver` trains, with one result for each of `models`.

        The solver tells its progress to `report`.
        """

    @abstractmethod
    def _store(self, trained: TrainedLayers, i: int, table: TrainingTable) -> None:
        """Store the i-th result as what `_decide` needs."""

    @abstractmethod
    def _keep_base(self, table: TrainingTable) -> None:
        """Store what makes `_decide` repeat the base model."""

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("hidden", "adversary_hidden"):
            if hasattr(self, name):
                check_layers(self, name)

    def _learn_all(self, models: Sequence[Self], rows: RivalFitRows) -> None:
        """Train all models with a strength above 0 in one computation."""
        table = TrainingTable(rows, *self._learn_terms(rows.columns, rows.weight))
        for model in models:
            model.history_, model.n_iter_, model._interrupted = {}, 0, False
            model._keep_base(table)
        edited = [model for model in models if model.strength > 0]
        if not (edited and self.epochs):
            return
        require_jax(type(self).__name__)
        from commod.rivals import _jax_training as solver  # the first fit loads JAX, not the import

        with progress_bar(type(self).__name__, self.progress) as report:
            trained = self._train(edited, table, solver, report)
        for i, model in enumerate(edited):
            figures = trained.history.items()
            model.history_ = {name: values[i].tolist() for name, values in figures}
            model.n_iter_, model._interrupted = trained.epochs_done, trained.interrupted
            model._store(trained, i, table)
        if trained.interrupted:
            warnings.warn(edited[0]._interruption(), InterruptionWarning, stacklevel=4)

    def _schedule(self) -> Schedule:
        """Return how long and how fast to train."""
        return Schedule(
            epochs=int(self.epochs),
            batch_size=int(self.batch_size),
            warmup_epochs=int(getattr(self, "warmup_epochs", 0)),
            learning_rate=float(self.learning_rate),
        )

    def _interruption(self) -> str:
        return f"Training was interrupted after {self.n_iter_} of {self.epochs} epochs."

    def _sentence(self) -> str:
        text = super()._sentence()
        return f"{self._interruption()} {text}" if self._interrupted else text


# ---------------------------------------------------------------------------------------------
# The last step of a base model: its inputs, and the first hidden layer of a network

ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {
    "identity": lambda x: x,
    "logistic": expit,
    "relu": lambda x: np.maximum(x, 0.0),
    "tanh": np.tanh,
}


def last_step(estimator: Any) -> Any:
    """Return the model that ends a pipeline; any other estimator is its own last step.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> last_step(make_pipeline(StandardScaler(), LogisticRegression()))
    LogisticRegression()
    """
    estimator = _unwrapped(estimator)
    return last_step(estimator.steps[-1][1]) if isinstance(estimator, Pipeline) else estimator


def inputs_of_last_step(estimator: Any, X: Any) -> Any:
    """Return what the last step of a fitted base model reads, as its earlier steps return it."""
    estimator = _unwrapped(estimator)
    if not isinstance(estimator, Pipeline):
        return X
    earlier = estimator[:-1]
    return inputs_of_last_step(estimator.steps[-1][1], earlier.transform(X) if earlier else X)


def model_inputs(estimator: Any, X: Any) -> Any:
    """Return the inputs of the last step as numbers, shape (n, d); sparse where it gets them so."""
    inputs = inputs_of_last_step(estimator, X)
    return check_array(inputs, accept_sparse="csr", dtype=np.float64)


def hidden_units(estimator: Any, X: Any) -> Floats:
    """Return what a base model encodes a row into, shape (n, units), for the rest to decide on.

    This is the first hidden layer of a network, and the inputs of a logistic regression.
    """
    inputs, model = model_inputs(estimator, X), last_step(estimator)
    if isinstance(model, MLPClassifier):
        units = inputs @ model.coefs_[0] + model.intercepts_[0]
        return np.asarray(ACTIVATIONS[model.activation](np.asarray(units)), dtype=np.float64)
    return np.asarray(inputs.toarray() if sparse.issparse(inputs) else inputs)


def is_logistic_regression(estimator: Any) -> bool:
    """Return whether the last step of the base model is a logistic regression."""
    return isinstance(last_step(estimator), LogisticRegression)


def is_network(estimator: Any) -> bool:
    """Return whether the last step of the base model is a network."""
    return isinstance(last_step(estimator), MLPClassifier)


def _unwrapped(estimator: Any) -> Any:
    """Return the estimator within one that only freezes it, or that searched its parameters."""
    while True:
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            return estimator
