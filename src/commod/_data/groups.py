"""Read sensitive features as groups, and test whether a column determines the group."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.codes import Coded, check_text, code_array, code_series, joint_codes
from commod._data.labels import check_length, one_dimensional
from commod._data.tables import from_native
from commod._text import n_of
from commod.exceptions import InputError, InputTypeError


@dataclass(frozen=True)
class Groups:
    """The sensitive group of each row: `codes` (n,) index `labels`.

    Where groups are intersections of several columns, `parts` holds the codes of each column.
    """

    codes: NDArray[np.intp]
    labels: tuple[Hashable, ...]
    parts: tuple[NDArray[np.intp], ...] = ()

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Return the number of rows of each group, shape (n_groups,)."""
        return np.bincount(self.codes, minlength=len(self.labels))

    @property
    def codings(self) -> tuple[NDArray[np.intp], ...]:
        """Return the codes of the groups, and those of each column where there are several."""
        return self.codes, *self.parts


def read_groups(sensitive_features: Any, n_rows: int) -> Groups:
    """Return the sensitive group of each row; several columns mean their intersections.

    Only groups that occur are listed, in sorted order. A label is the value itself, or a tuple of
    values for several columns. Missing values are refused.
    """
    if sensitive_features is None:
        raise InputError(
            "sensitive_features is missing. Pass the group of each row, such as data['race']; it "
            "is needed while fitting only.",
            parameter="sensitive_features",
        )
    columns = _group_columns(sensitive_features)
    if not columns:
        raise InputError(
            "sensitive_features has no column. Pass the group of each row.",
            parameter="sensitive_features",
        )
    for coded in columns:
        check_length(coded.codes, "sensitive_features", n_rows)
        texts = (value for value in coded.values if isinstance(value, str))
        check_text(texts, "sensitive_features", "sensitive_features")
    n_missing = int(np.any([coded.codes < 0 for coded in columns], axis=0).sum())
    if n_missing:
        raise InputError(
            f"sensitive_features has {n_of(n_missing, 'missing value')} in {n_rows} rows. Drop "
            "those rows, or give them a group of their own, e.g. with fillna('unknown').",
            parameter="sensitive_features",
        )
    parts = [sorted_groups(coded) for coded in columns]
    return parts[0] if len(parts) == 1 else _intersections(parts)


def sensitive_names(sensitive_features: Any) -> tuple[str, ...] | None:
    """Return the names of the sensitive columns of a frame or a dict, None for anything else."""
    native = from_native(sensitive_features, "sensitive_features")
    if isinstance(native, nw.DataFrame):
        return tuple(map(str, native.columns))
    if isinstance(sensitive_features, dict):
        return tuple(map(str, sensitive_features))
    return None


def _group_columns(sensitive_features: Any) -> list[Coded]:
    native = from_native(sensitive_features, "sensitive_features")
    if isinstance(native, nw.Series):
        return [_code_groups(native)]
    if isinstance(native, nw.DataFrame):
        return [_code_groups(series) for series in native.iter_columns()]
    if isinstance(sensitive_features, dict):
        named = {f"sensitive_features[{k!r}]": v for k, v in sensitive_features.items()}
        return [_code_groups(one_dimensional(c, k)) for k, c in named.items()]
    is_array = isinstance(sensitive_features, np.ndarray)  # entries of lists keep their types
    array = np.asarray(sensitive_features, dtype=None if is_array else object)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            "sensitive_features must be one value per row, or a table of several columns; got "
            f"shape {array.shape}.",
            parameter="sensitive_features",
        )
    return [_code_groups(column) for column in array.T]


def _code_groups(values: nw.Series[Any] | NDArray[Any]) -> Coded:
    try:
        return code_array(values) if isinstance(values, np.ndarray) else code_series(values)
    except TypeError as error:
        raise InputTypeError(
            f"sensitive_features holds values that cannot name a group ({error}). Pass one number "
            "or text per row, or a table of several columns.",
            parameter="sensitive_features",
        ) from error


def sorted_groups(coded: Coded) -> Groups:
    """Return codes as groups whose labels are in sorted order."""
    values = coded.values
    try:
        order = sorted(range(len(values)), key=values.__getitem__)
    except TypeError:  # labels of different types cannot be compared
        order = sorted(range(len(values)), key=lambda i: (type(values[i]).__name__, str(values[i])))
    if order == list(range(len(values))):
        return Groups(coded.codes.astype(np.intp), tuple(values))
    return Groups(np.argsort(order)[coded.codes], tuple(values[i] for i in order))


def _intersections(parts: Sequence[Groups]) -> Groups:
    codes, first_rows = joint_codes([part.codes for part in parts])
    labels = [[part.labels[code] for code in part.codes[first_rows]] for part in parts]
    return Groups(codes, tuple(zip(*labels, strict=True)), tuple(part.codes for part in parts))
