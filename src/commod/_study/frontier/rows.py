"""The rows a frontier is measured on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from commod._data.base_model import BaseScores
from commod._data.groups import read_groups
from commod._data.labels import check_length, distinct_labels, read_labels
from commod._data.tables import n_rows_of
from commod._study.evaluation import EvaluationRows
from commod.exceptions import InputError
from commod.metrics._constraint import get_constraint
from commod.updates.base import BaseUpdate

__all__ = ["groups_compared", "read_evaluated", "rows_to_measure"]


def rows_to_measure(
    fit_rows: tuple[Any, Any, Any], eval_rows: tuple[Any, Any, Any]
) -> tuple[tuple[Any, Any, Any], str]:
    """Return the rows given for measuring, or the fit rows where none are, and what they are."""
    X, y, sensitive_features = eval_rows
    if X is None:
        if y is not None or sensitive_features is not None:
            raise InputError("y_eval and sensitive_features_eval belong to X_eval, which is None.")
        return fit_rows, "fit rows"
    if sensitive_features is None:
        raise InputError("X_eval needs sensitive_features_eval: fairness is measured on its rows.")
    return eval_rows, "evaluated rows"


def read_evaluated(
    model: BaseUpdate, labels: Sequence[Any], base: BaseScores, rows: tuple[Any, Any, Any]
) -> EvaluationRows:
    """Read labels and groups of the evaluated rows; groups outside the constraint are left out."""
    _, y, sensitive_features = rows
    n = len(base.scores)
    groups = read_groups(sensitive_features, n)
    position = {label: i for i, label in enumerate(labels)}
    group = np.array([position.get(label, -1) for label in groups.labels], dtype=np.intp)
    missing = [repr(label) for label in labels if label not in groups.labels]
    if missing:
        raise InputError(
            f"The evaluated rows have nobody of group {missing[0]}, which the constraint compares. "
            "Pass rows of every group."
        )
    label = None
    if y is not None:
        values = read_labels(y, "y_eval")
        check_length(values, "y_eval", n)
        unknown = [v for v in distinct_labels(values) if v not in model.classes_.tolist()]
        if unknown:
            raise InputError(
                f"y_eval holds {unknown[:3]}, which the base model does not know; its labels are "
                f"{model.classes_.tolist()}."
            )
        label = np.asarray(values == model.pos_label_, dtype=bool)
    elif get_constraint(model.constraints).needs_labels:
        raise InputError(f"constraints={model.constraints!r} needs y_eval, but it is None.")
    return EvaluationRows(
        constraints=model.constraints,
        before=base.decisions,
        label=label,
        group=group[groups.codes],
        n_groups=len(labels),
        gain_raises=model._raising_is_a_gain(),
    )


def groups_compared(update: BaseUpdate, X: Any, sensitive_features: Any) -> list[Any]:
    """Return the groups of the fit rows that are large enough to be part of the constraint."""
    groups = read_groups(sensitive_features, n_rows_of(X))
    sizes = zip(groups.labels, groups.sizes, strict=True)
    return [group for group, n in sizes if n >= update.min_group_size]
