"""The column of X that holds the group: its value in each group, and the same rows in another one.

Some methods ask the base model for the score that a person would have in another group. They
replace one column by a constant and keep everything else: the kind of table, the order and types of
its columns, and the categories.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from commod._data.columns import Column
from commod._data.labels import is_label_in
from commod._data.tables import as_matrix, from_native
from commod._text import did_you_mean, list_names, shown
from commod.exceptions import InputError
from commod.rivals._rows import RivalFitRows


def find_group(privileged: Any, labels: Sequence[Hashable]) -> int:
    """Return the number of the privileged group; a value that is no group is refused."""
    if is_label_in(privileged, labels):
        return list(labels).index(privileged)
    raise InputError(
        f"privileged={shown(privileged)} is not one of the groups: "
        f"{', '.join(map(repr, labels[:6]))}.{did_you_mean(privileged, labels)} Pass one of them, "
        "or None.",
        parameter="privileged",
    )


def column_name(column: str | int) -> str:
    """Return the name of a column; a position becomes the name that arrays have.

    Examples
    --------
    >>> column_name("sex"), column_name(2)
    ('sex', 'x2')
    """
    return column if isinstance(column, str) else f"x{column}"


def group_values(rows: RivalFitRows, column: str | int) -> list[Any]:
    """Return the value of the group column in each group, as the table holds it.

    Each group must have one value of the column, and no two groups the same. Anything else is
    refused, because the same person in another group would not be defined.
    """
    values = _read_column(rows.columns, column)
    found = []
    for number, label in enumerate(rows.group_labels):
        inside = np.flatnonzero(rows.group == number)
        codes = values.values[inside]
        if values.is_missing()[inside].any() or (codes != codes[0]).any():
            raise InputError(
                f"group_column={column!r} holds more than one value, or none, in the group "
                f"{label!r}. The column must hold the group itself: pass the column that "
                "sensitive_features was made from.",
                parameter="group_column",
            )
        found.append((codes[0], int(inside[0])))
    if len({code for code, _ in found}) < len(found):
        raise InputError(
            f"group_column={column!r} holds the same value in several groups, so it does not tell "
            "them apart. Pass the column that sensitive_features was made from.",
            parameter="group_column",
        )
    return [value_at(rows.X, row, column) for _, row in found]


def _read_column(columns: Sequence[Column], column: str | int) -> Column:
    names = [c.name for c in columns]
    if column_name(column) not in names:
        raise InputError(
            f"group_column={column!r} is not a column of X (columns: {list_names(names)})."
            f"{did_you_mean(column, names)} Name the column that holds the group. For a NumPy "
            "array, pass its position, counted from 0.",
            parameter="group_column",
        )
    return columns[names.index(column_name(column))]


def value_at(X: Any, row: int, column: str | int) -> Any:
    """Return one value of a table as a Python object."""
    frame = from_native(X, "X")
    if isinstance(frame, nw.DataFrame):
        value = frame.get_column(_key(frame, column))[row]
    else:
        value = as_matrix(X)[row, _position(column)]
    return value.item() if isinstance(value, np.generic) else value


def with_constant(X: Any, column: str | int, value: Any) -> Any:
    """Return the table with one column set to `value` in every row; types and categories stay.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [30, 40], "sex": pd.Categorical(["f", "m"])})
    >>> with_constant(people, "sex", "m")["sex"].tolist()
    ['m', 'm']
    >>> with_constant(np.array([[30, 0], [40, 1]]), 1, 1)
    array([[30,  1],
           [40,  1]])
    """
    frame = from_native(X, "X")
    if not isinstance(frame, nw.DataFrame):
        return _array_with_constant(as_matrix(X), _position(column), value)
    key = _key(frame, column)
    if nw.dependencies.is_pandas_dataframe(X):
        return _pandas_with_constant(X, key, value)
    try:
        constant = nw.lit(value, dtype=frame.schema[key]).alias(key)
        return frame.with_columns(constant).to_native()
    except Exception as error:
        raise InputError(
            f"Column {key!r} has type {frame.schema[key]}, which cannot hold {value!r}, its value "
            "in the fit rows. Give the column the type it had.",
            parameter="X",
        ) from error


def _array_with_constant(array: Any, position: int, value: Any) -> Any:
    dtype = array.dtype
    if dtype.kind in "US":  # a longer text must not be cut
        dtype = np.result_type(dtype, np.array([value]).dtype)
    elif dtype.kind in "fiu":
        dtype = np.result_type(dtype, value)
    constant = array.astype(dtype, copy=True)
    constant[:, position] = value
    return constant


def _pandas_with_constant(X: Any, key: Any, value: Any) -> Any:
    import pandas as pd

    dtype = X[key].dtype
    if isinstance(dtype, pd.CategoricalDtype) and value not in dtype.categories:
        # rows of one group may come without the other group's category
        dtype = pd.CategoricalDtype(dtype.categories.append(pd.Index([value])), dtype.ordered)
    constant = pd.Series([value] * len(X), index=X.index, dtype=object)
    changed = X.copy(deep=False)
    try:
        typed = constant.astype(dtype)
        is_kept = bool((typed == value).all())
    except (TypeError, ValueError):
        is_kept = False
    changed[key] = typed if is_kept else constant.infer_objects()
    return changed


def _key(frame: nw.DataFrame[Any], column: str | int) -> Any:
    """Return the name of the column as the frame spells it; it may be no text in pandas."""
    return next(key for key in frame.columns if str(key) == column_name(column))


def _position(column: str | int) -> int:
    """Return the position of a column of an array, from its position or its name "x3"."""
    return int(column[1:]) if isinstance(column, str) else int(column)
