"""Read tables of any kind: pandas, polars and pyarrow frames, NumPy arrays and nested lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sized
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from commod._text import shorten
from commod.exceptions import InputError, InputTypeError


def from_native(values: Any, name: str) -> nw.DataFrame[Any] | nw.Series[Any] | None:
    """Return a frame or a series through narwhals; None for anything that is neither.

    `name` is what the caller calls `values`, here and in all functions of this package. A lazy
    frame and a frame with duplicate column names are refused.
    """
    if isinstance(values, np.ndarray):  # the usual case, without a look at every library of frames
        return None
    try:
        native = nw.from_native(values, pass_through=True, allow_series=True)
    except DuplicateError as error:
        names = getattr(values, "column_names", None) or values.columns
        raise duplicate_names(name, names) from error
    if isinstance(native, nw.LazyFrame):
        raise InputTypeError(
            f"{name} is a lazy frame ({type(values).__module__}.{type(values).__name__}), but "
            "fitting and predicting need its rows. Load it into memory first: with .collect() in "
            "polars, .pl() in DuckDB, .toPandas() in Spark.",
            parameter=name,
        )
    return native if isinstance(native, nw.DataFrame | nw.Series) else None


def duplicate_names(name: str, names: Iterable[Any]) -> InputError:
    """Return the error for a table in which several columns have one name."""
    counts = Counter(str(n) for n in names)
    repeated = ", ".join(repr(n) for n, count in counts.items() if count > 1)
    return InputError(
        f"{name} has several columns with the same name ({repeated}), so it is not clear which "
        "column is meant. Rename them or drop all but one.",
        parameter=name,
    )


class FreeNames:
    """Give names that no column has yet.

    Examples
    --------
    >>> names = FreeNames(["age", "Work"])
    >>> names.take("work"), names.take("work")
    ('work_', 'work__')
    """

    def __init__(self, taken: Iterable[Any]) -> None:
        self._lowered = {str(name).lower() for name in taken}  # some engines ignore case

    def take(self, name: str) -> str:
        """Return the name, with as many underscores behind it as needed."""
        while name.lower() in self._lowered:
            name += "_"
        self._lowered.add(name.lower())
        return name


def n_rows_of(X: Any) -> int:
    """Return the number of rows of a table of any kind."""
    shape = getattr(X, "shape", None)
    if shape:
        return int(shape[0])
    if not isinstance(X, Sized) or shape == ():
        raise InputTypeError(
            f"X must be a table with rows and columns; got {type(X).__name__}.", parameter="X"
        )
    return len(X)


def index_of(values: Any) -> Any:
    """Return the index of a pandas frame or series, None for anything else."""
    native = nw.to_native(values, pass_through=True)
    is_pandas = nw.dependencies.is_pandas_dataframe(native)
    return native.index if is_pandas or nw.dependencies.is_pandas_series(native) else None


def check_same_rows(tables: Mapping[str, Any]) -> None:
    """Refuse pandas objects whose indexes disagree: their rows would be mixed up.

    `tables` holds what has one entry per row, by the name of its parameter. Only pandas objects
    have labels; everything else is taken as it comes. Lengths are not compared here.

    Examples
    --------
    >>> import pandas as pd
    >>> X, y = pd.DataFrame({"age": [30, 40]}), pd.Series([0, 1])
    >>> check_same_rows({"X": X, "y": y, "sample_weight": [1, 2]})
    >>> check_same_rows({"X": X, "y": y[::-1]})
    Traceback (most recent call last):
    commod.exceptions.InputError: X and y hold the same index labels in different orders (row 0:
    0 and 1), so their rows do not belong together. ...
    """
    indexed = list(_indexes(tables))
    for name, index in indexed[1:]:
        first, expected = indexed[0]
        if len(index) == len(expected) and not index.equals(expected):
            _refuse_other_labels(first, expected.tolist(), name, index.tolist())


def _indexes(tables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the index of each pandas object, also of those in a dict."""
    for name, values in tables.items():
        if isinstance(values, Mapping):
            yield from _indexes({f"{name}[{key!r}]": column for key, column in values.items()})
        elif (index := index_of(values)) is not None:
            yield name, index


def _refuse_other_labels(first: str, expected: list[Any], name: str, labels: list[Any]) -> None:
    """Raise an error that names the first row whose labels differ, if there is one."""
    rows = enumerate(zip(expected, labels, strict=True))
    row = next((i for i, (one, other) in rows if _differ(one, other)), None)
    if row is None:  # equal labels of different types, such as 0 and 0.0
        return
    fault, way = "different index labels", ""
    if Counter(map(repr, expected)) == Counter(map(repr, labels)):  # labels may be unhashable
        fault = "the same index labels in different orders"
        way = f"Bring the rows into one order with {name}.loc[{first}.index]. "
    shown = f"{shorten(repr(expected[row]), 40)} and {shorten(repr(labels[row]), 40)}"
    raise InputError(
        f"{first} and {name} hold {fault} (row {row}: {shown}), so their rows do not belong "
        f"together. {way}If the rows are in the same order and only the labels differ, drop the "
        "labels of both: .reset_index(drop=True), or .to_numpy().",
        parameter=name.partition("[")[0],
    )


def _differ(one: Any, other: Any) -> bool:
    """Return whether two labels differ; a missing one equals itself."""
    try:
        return one is not other and bool(one != other) and bool(one == one or other == other)
    except (TypeError, ValueError):  # NA, or an array, has no truth value
        return repr(one) != repr(other)


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return the given rows of a table, as a table of the same kind."""
    frame = from_native(X, "X")
    return frame[rows, :].to_native() if isinstance(frame, nw.DataFrame) else as_matrix(X)[rows]


def as_matrix(X: Any) -> NDArray[Any]:
    """Return `X` as an array of two dimensions, neither of them empty.

    Sparse matrices, complex numbers and dates are refused.
    """
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise InputTypeError(
            "X is a sparse matrix, but commod reads raw columns and encodes them sparsely itself. "
            "Pass the raw table, or convert the matrix with toarray() if it is small.",
            parameter="X",
        )
    array = as_array(X, "X")
    if array.ndim != 2:
        raise InputError(
            f"X must be a table with rows and columns; got {type(X).__name__} with {array.ndim} "
            f"dimension(s), shape {array.shape}. Reshape your data, e.g. with X.reshape(-1, 1).",
            parameter="X",
        )
    check_not_empty(array.shape)
    if np.iscomplexobj(array):
        raise InputError(
            "Complex data not supported: X holds complex numbers; pass real columns.", parameter="X"
        )
    if array.dtype.kind in "mM":
        raise unreadable_type("X", array.dtype)
    return array


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Return `values` as an array in which entries of lists keep their types."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(
            f"{name} cannot be read as array ({error}). Give every row the same number of values.",
            parameter=name,
        ) from error
    if array.dtype.kind in "US" and not hasattr(values, "dtype"):
        return np.asarray(values, dtype=object)  # NumPy turns [1, nan, "a"] into three texts
    return array


def check_not_empty(shape: tuple[int, ...]) -> None:
    """Refuse a table `X` of this shape if it has no rows or no columns."""
    if 0 in shape:
        raise InputError(
            f"X has {shape[0]} sample(s) and {shape[1]} feature(s) (shape={shape}) while a minimum "
            "of 1 is required of each.",
            parameter="X",
        )


def unreadable_type(name: str, dtype: Any) -> InputTypeError:
    """Return the error for `X`, or for a column of it, whose type has no place in a scorecard."""
    return InputTypeError(
        f"{name} has type {dtype}, but a scorecard reads numbers, text, categories and booleans. "
        "Convert the values (dates into days since a fixed day, for example), or list the column "
        "in locked_features if only the base model reads it.",
        parameter="X",
    )
