"""Fit several COMMOD models on the same rows: read once, train in one computation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

from commod._data.encoding import learn_encoding
from commod._data.tables import check_same_rows
from commod._data.weights import check_weights
from commod.exceptions import InputError, InterruptionWarning
from commod.updates._fit_rows import warn_about_group_columns
from commod.updates._trained import call_all, ratio_problem, safe_moments, train_ratios


def fit_together(
    models: Sequence[Any],
    X: Any,
    y: Any,
    sensitive_features: Any,
    sample_weight: Any,
    ratio_weight: Any,
) -> None:
    """Fit all models: read the rows once, train in one computation, store each result."""
    first = models[0]
    for model in models:
        model._record_params()
        model._check_parameters()
    rows_of_user = {"X": X, "y": y, "sensitive_features": sensitive_features}
    check_same_rows({**rows_of_user, "ratio_weight": ratio_weight})
    rows = first._read_fit_rows(X, y, sensitive_features, sample_weight)
    distance_weight = rows.weight * check_weights(ratio_weight, len(rows), "ratio_weight")
    if not distance_weight.any():
        raise InputError(
            "ratio_weight is zero wherever sample_weight is not, so no change would cost anything. "
            "Give some rows with sample_weight a ratio_weight."
        )
    columns = first._ratio_columns(rows.base, rows.columns)
    first._check_locked(columns)
    warn_about_group_columns(rows, first.locked_features)
    encoding = learn_encoding(
        columns,
        rows.weight,
        min_category_size=first.min_category_size,
        locked=first.locked_features,
    )
    terms = encoding.encode(columns)
    moments = safe_moments(terms, rows.weight)  # computed once for all models
    constraints = first._requirements.constraints
    problem = ratio_problem(rows, terms, moments, distance_weight, constraints)
    trained = train_ratios(models, problem, first._schedule())
    for model in models:
        model._take_reading(first)
    call_all(
        [
            partial(model._store, rows, encoding, terms, moments, trained, i)
            for i, model in enumerate(models)
        ],
        len(rows),
    )
    if trained.interrupted:
        warnings.warn(first.status_, InterruptionWarning, stacklevel=3)
