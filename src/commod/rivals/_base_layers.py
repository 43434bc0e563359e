"""Read the last step of a base model: its inputs, and the first hidden layer of a network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from commod._data.arrays import Floats

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
