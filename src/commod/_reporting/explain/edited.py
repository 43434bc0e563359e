"""Edit single values of one row, in a table of the same kind that the base model can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.tables import take_rows
from commod._record.explanation import Value


def edited_rows(X: Any, row: int, edits: Sequence[tuple[str, Value]]) -> Any:
    """Return a table with the row as it is, followed by one copy per edit.

    An edit (column, value) sets one column of its copy. Columns keep their types and categories. A
    type that cannot hold a new value is replaced by one that can.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [18, 40], "town": pd.Categorical(["Oslo", "Rome"])})
    >>> edited = edited_rows(X, 1, [("age", 25.0), ("town", "Oslo")])
    >>> edited.to_dict("list"), str(edited.dtypes["town"])
    ({'age': [40, 25, 40], 'town': ['Rome', 'Rome', 'Oslo']}, 'category')
    """
    rows = np.full(len(edits) + 1, row, dtype=np.intp)
    copies = take_rows(X, rows)
    changes: dict[str, dict[int, Value]] = {}
    for i, (name, value) in enumerate(edits, start=1):
        changes.setdefault(name, {})[i] = value
    if isinstance(copies, np.ndarray):
        return _edited_array(copies, changes)
    frame = nw.from_native(copies, eager_only=True)
    edited = [
        _edited_series(series, changes[str(series.name)])
        for series in frame.iter_columns()
        if str(series.name) in changes
    ]
    return frame.with_columns(*edited).to_native()


def _edited_array(array: NDArray[Any], changes: dict[str, dict[int, Value]]) -> NDArray[Any]:
    for column, new_values in changes.items():
        for i, value in new_values.items():
            if array.dtype != object and not _fits(value, array.dtype):
                array = array.astype(np.result_type(array.dtype, np.asarray([value]).dtype))
            array[i, int(column.removeprefix("x"))] = value
    return array


def _fits(value: Value, dtype: np.dtype[Any]) -> bool:
    """Return whether an array of this type can hold the value."""
    if dtype.kind in "iu":
        return float(value).is_integer()
    return dtype.kind != "U" or 4 * len(str(value)) <= dtype.itemsize


def _edited_series(series: nw.Series[Any], new_values: dict[int, Value]) -> nw.Series[Any]:
    values: list[Any] = series.to_list()
    for i, value in new_values.items():
        values[i] = value
    if series.dtype.is_integer():
        is_whole = all(float(value).is_integer() for value in new_values.values())
        values = [v if v is None or v != v else (int if is_whole else float)(v) for v in values]
    native = series.to_native()
    if nw.dependencies.is_pandas_series(native):
        return nw.from_native(_pandas_series(native, values), series_only=True)
    try:
        return nw.new_series(series.name, values, series.dtype, backend=series.implementation)
    except (TypeError, ValueError, OverflowError):
        return nw.new_series(series.name, values, backend=series.implementation)


def _pandas_series(old: Any, values: list[Any]) -> Any:
    """Return the values with the type of the old series; new categories are added to the type."""
    dtype = old.dtype
    if hasattr(dtype, "categories"):
        known = [v for v in dict.fromkeys(values) if v == v and v is not None]
        new_categories = [v for v in known if v not in dtype.categories]
        dtype = old.cat.add_categories(new_categories).dtype
    try:
        return type(old)(values, index=old.index, name=old.name, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        return type(old)(values, index=old.index, name=old.name)
