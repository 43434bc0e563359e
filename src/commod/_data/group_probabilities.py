"""Read probabilities of the groups, which stand in the place of groups that are not known."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.codes import plain
from commod._data.groups import Groups
from commod._data.tables import from_native
from commod._text import n_of
from commod.exceptions import InputError, InputTypeError

TOLERANCE = 1e-3  # of the sum of a row: tables of probabilities are often rounded to three digits
NAME = "sensitive_probabilities"


def read_group_probabilities(probabilities: Any) -> Groups:
    """Return the groups with their probabilities; rows are scaled to sum to exactly 1.

    `probabilities` has shape (n, n_groups): an array, or a frame whose columns are named after the
    groups. The groups of an array are called 0, 1, 2, …
    """
    values, labels = _as_table(probabilities)
    if values.shape[1] < 2:
        raise InputError(
            f"{NAME} has {n_of(values.shape[1], 'column')}, but fairness compares at least 2 "
            "groups. Pass one column per group; for two groups p and 1 − p.",
            parameter=NAME,
        )
    for is_bad, what in (
        (~np.isfinite(values).all(axis=1), "a value that is missing or infinite"),
        ((values < 0).any(axis=1), "a negative probability"),
    ):
        if is_bad.any():
            row = int(np.argmax(is_bad))
            raise InputError(
                f"Row {row} of {NAME} has {what}: {values[row].tolist()}. Pass probabilities in "
                "[0, 1] for every group. Where nothing is known about a person, pass the shares "
                "of the groups in the population.",
                parameter=NAME,
            )
    sums = values.sum(axis=1)
    is_off = np.abs(sums - 1) > TOLERANCE
    if is_off.any():
        row = int(np.argmax(is_off))
        raise InputError(
            f"Row {row} of {NAME} sums to {sums[row]:.6g}, not to 1 "
            f"({n_of(int(is_off.sum()), 'such row')} in {len(sums)}). Each row holds one "
            "probability per group. Divide every row by its sum, or add a column for all others.",
            parameter=NAME,
        )
    shares = values / sums[:, None]
    return Groups(shares.argmax(axis=1), labels, probabilities=shares)


def _as_table(probabilities: Any) -> tuple[NDArray[np.float64], tuple[Hashable, ...]]:
    """Return the values, (n, n_groups), and the name of each group."""
    native = from_native(probabilities, NAME)
    labels: tuple[Hashable, ...] | None = None
    if isinstance(native, nw.DataFrame):
        labels = tuple(_column_labels(probabilities, native))
        probabilities = native.to_numpy()
    elif isinstance(native, nw.Series):
        probabilities = native.to_numpy()
    try:
        values = np.asarray(probabilities, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            f"{NAME} holds values that are no numbers ({error}). Pass one probability per row and "
            "group.",
            parameter=NAME,
        ) from error
    if values.ndim != 2 or not len(values):
        raise InputError(
            f"{NAME} has shape {values.shape}, but needs one row per person and one column per "
            "group. For two groups with probability p, pass np.column_stack([1 - p, p]).",
            parameter=NAME,
        )
    return values, tuple(range(values.shape[1])) if labels is None else labels


def _column_labels(frame: Any, native: nw.DataFrame[Any]) -> list[Hashable]:
    """Return the names of the columns; pandas may have names that are no text."""
    names = getattr(frame, "columns", native.columns)
    return [plain(name) for name in names]
