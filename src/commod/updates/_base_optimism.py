"""Judge whether the base model has seen the fit rows: it then looks better there than it is.

The base model's own optimism is not measured by leaving out fit rows, because the model keeps what
it learned from them. So nothing corrects it, and a user should know.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from commod._data.base_model import ScoreColumn, training_signs
from commod.exceptions import BaseModelWarning
from commod.updates._fit_rows import FitRows
from commod.updates._problem import FitProblem
from commod.updates._soft_cells import CellModels, cell_models

MIN_EXCESS = 0.05  # of the accuracy over that of models that have not seen the row
N_ERRORS = 3.0  # standard errors of the excess

NOT_CORRECTED = (
    "its own optimism there is not corrected, so new people may fare worse than expected. Fit the "
    "update on rows that are new to the base model"
)


def stated_optimism(update: Any) -> str:
    """Return what the user says about a base model that has seen the fit rows; else empty."""
    is_seen = update.fitted_param("fit_rows_are_new") is False
    return f"The base model has seen the fit rows: {NOT_CORRECTED}." if is_seen else ""


def optimism_text(update: Any, problem: FitProblem) -> str:
    """Return what is known about a base model that has seen the fit rows; empty if it has not.

    A finding that rests on the accuracy is also a warning. Nothing is found where the base model
    may have read other columns: with a `ScoreColumn` and with locked columns.
    """
    said, rows = update.fitted_param("fit_rows_are_new"), problem.rows
    reads_others = isinstance(update.estimator, ScoreColumn) or bool(update.locked_features)
    if said is not None or reads_others:
        return stated_optimism(update)
    models = cell_models(problem, update.min_category_size, ())
    excess = accuracy_excess(rows, models)
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


def accuracy_excess(rows: FitRows, models: CellModels) -> tuple[float, float] | None:
    """Return the accuracy of the base model and that of models that have not seen a row.

    None where the base model is not better than chance explains, or where labels are unknown.
    """
    label = rows.label
    if label is None or label.all() or not label.any():
        return None
    probabilities = models.label_probabilities(label)
    if probabilities is None:
        return None
    others = probabilities > 0.5
    is_right = rows.base.decisions == label
    excess = is_right * 1.0 - (others == label)
    mean = float(np.average(excess, weights=rows.weight))
    share = rows.weight / rows.weight.sum()
    error = float(np.sqrt(share**2 @ (excess - mean) ** 2))
    if mean < MIN_EXCESS or mean < N_ERRORS * error:
        return None
    base = float(np.average(is_right, weights=rows.weight))
    return base, base - mean
