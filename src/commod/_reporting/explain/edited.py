"""One row with single values changed, as a table of the same kind that the base model can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.tables import take_rows
from commod._record.explanation import Value


def edited_rows(X: Any, row: int, edits: Sequence[tuple[str, Value]]) -> Any:
    """Return the row as it is, and once more for each edit with one column set to another value.

    Columns keep their types, categories included; a type that cannot hold a value gives way.

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
    given = [series for series in frame.iter_columns() if str(series.name) in changes]
    return frame.with_columns(*(_edited(s, changes[str(s.name)]) for s in given)).to_native()


def _edited_array(array: NDArray[Any], changes: dict[str, dict[int, Value]]) -> NDArray[Any]:
    for column, new in changes.items():
        for i, value in new.items():
            given = np.asarray([value])
            if array.dtype != object and not _fits(value, array.dtype):
                array = array.astype(np.result_type(array.dtype, given.dtype))
            array[i, int(column.removeprefix("x"))] = value
    return array


def _fits(value: Value, dtype: np.dtype[Any]) -> bool:
    if dtype.kind in "iu":
        return float(value).is_integer()
    return dtype.kind != "U" or 4 * len(str(value)) <= dtype.itemsize


def _edited(series: nw.Series[Any], new: dict[int, Value]) -> nw.Series[Any]:
    values: list[Any] = series.to_list()
    for i, value in new.items():
        values[i] = value
    if series.dtype.is_integer():
        is_whole = all(float(value).is_integer() for value in new.values())
        values = [v if v is None or v != v else (int if is_whole else float)(v) for v in values]
    native = series.to_native()
    if nw.dependencies.is_pandas_series(native):
        return nw.from_native(_pandas_series(native, values), series_only=True)
    try:
        return nw.new_series(series.name, values, series.dtype, backend=series.implementation)
    except (TypeError, ValueError, OverflowError):
        return nw.new_series(series.name, values, backend=series.implementation)


def _pandas_series(old: Any, values: list[Any]) -> Any:
    """Return the values with the type of the old ones; new categories are added to it."""
    dtype = old.dtype
    if hasattr(dtype, "categories"):
        unknown = [v for v in dict.fromkeys(values) if v == v and v is not None]
        unknown = [v for v in unknown if v not in dtype.categories]
        if unknown:
            dtype = old.cat.add_categories(unknown).dtype
    try:
        return type(old)(values, index=old.index, name=old.name, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        return type(old)(values, index=old.index, name=old.name)
