"""Judge whether the base model has seen the fit rows: it then looks better there than it is.

The base model's own optimism is not measured by leaving out fit rows, because the model keeps what
it learned from them. So nothing corrects it, and a user should know.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from commod._data.base_model import ModelScores, ScoreColumn, training_signs
from commod._evidence.sums import dense_rows, design_of
from commod._evidence.task import N_FOLDS, EvidenceTask
from commod.exceptions import BaseModelWarning
from commod.updates._fit_rows import FitRows

MIN_EXCESS = 0.05  # of the accuracy over that of models that have not seen the row
N_ERRORS = 3.0  # standard errors of the excess
MAX_ROWS = 5000  # that models are compared on
MAX_TERMS = 200  # of these models
RIDGE = 10.0  # of these models, per standardised term

NOT_CORRECTED = (
    "its own optimism there is not corrected, so new people may fare worse than expected. Fit the "
    "update on rows that are new to the base model"
)


def stated_optimism(update: Any) -> str:
    """Return what the user says about a base model that has seen the fit rows; else empty."""
    is_seen = update.fitted_param("fit_rows_are_new") is False
    return f"The base model has seen the fit rows: {NOT_CORRECTED}." if is_seen else ""


def optimism_text(update: Any, rows: FitRows, task: EvidenceTask) -> str:
    """Return what is known about a base model that has seen the fit rows; empty if it has not.

    A finding that rests on the accuracy is also a warning. Nothing is found where the base model
    may have read other columns: with a `ScoreColumn` and with locked columns.
    """
    said = update.fitted_param("fit_rows_are_new")
    model = update.estimator
    is_column = isinstance(model, ScoreColumn)
    reads_others = model.reads_others if isinstance(model, ModelScores) else is_column
    if said is not None or reads_others or update.locked_features:
        return stated_optimism(update)
    excess = accuracy_excess(rows, task)
    if excess is None:
        return ""
    base, others = excess
    text = (
        f"The base model has an accuracy of {base:.3f} on the fit rows, and models that have not "
        f"seen a row have {others:.3f}. If the base model has seen the fit rows, {NOT_CORRECTED}. "
        "Otherwise, pass fit_rows_are_new=True."
    )
    if not training_signs(rows.base, rows.label):  # another warning names these
        warnings.warn(text, BaseModelWarning, stacklevel=4)
    return text


def accuracy_excess(rows: FitRows, task: EvidenceTask) -> tuple[float, float] | None:
    """Return the accuracy of the base model and that of models that have not seen a row.

    The models are ridge regressions of the label on the terms. None where the base model is not
    better than chance explains, or where labels are unknown. On many rows, a part is compared.
    """
    if rows.label is None or task.terms.n_terms > MAX_TERMS:
        return None
    compared = np.flatnonzero(rows.weight > 0)
    compared = compared[:: -(-len(compared) // MAX_ROWS)]
    label, fold = rows.label[compared], task.fold[compared]
    terms = dense_rows(design_of(task), compared)
    penalty = np.diag(np.append(1e-9, np.full(terms.shape[1] - 1, RIDGE)))
    predicted = np.zeros(len(compared))
    for f in range(N_FOLDS):
        seen, own = terms[fold != f], fold == f
        solution = np.linalg.solve(seen.T @ seen + penalty, seen.T @ label[fold != f])
        predicted[own] = terms[own] @ solution
    share = rows.weight[compared] / rows.weight[compared].sum()
    is_right = rows.base.decisions[compared] == label
    excess = is_right * 1.0 - ((predicted > 0.5) == label)
    mean = float(share @ excess)
    error = float(np.sqrt(share**2 @ (excess - mean) ** 2))
    if mean < MIN_EXCESS or mean < N_ERRORS * error:
        return None
    base = float(share @ is_right)
    return base, base - mean
