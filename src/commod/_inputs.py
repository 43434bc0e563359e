"""The one door: X, y, sensitive_features and sample_weight as they come → checked arrays."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Number
from typing import Any, Literal

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from commod.exceptions import InputError, InputTypeError

__all__ = [
    "Column",
    "Groups",
    "binary_outcome",
    "check_length",
    "check_weights",
    "read_columns",
    "read_groups",
    "read_labels",
]

Kind = Literal["numeric", "category"]


@dataclass(frozen=True)
class Column:
    """One raw column: float64 with NaN for missing, or Python scalars with None for missing."""

    name: str
    kind: Kind
    values: NDArray[Any]

    def is_missing(self) -> NDArray[np.bool_]:
        """Return where the value is missing, shape (n,)."""
        if self.kind == "numeric":
            return np.isnan(self.values)
        return np.fromiter((v is None for v in self.values), dtype=bool, count=len(self.values))


@dataclass(frozen=True)
class Groups:
    """Rows sorted into sensitive groups: `codes` (n,) point into `labels`.

    `parts` has the codes of each sensitive column where groups are intersections of several.
    """

    codes: NDArray[np.intp]
    labels: tuple[Hashable, ...]
    parts: tuple[NDArray[np.intp], ...] = ()

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Return the number of rows of each group, shape (n_groups,)."""
        return np.bincount(self.codes, minlength=len(self.labels))


# ---------------------------------------------------------------------------------------------
# Frames


def _from_native(values: Any, name: str) -> nw.DataFrame[Any] | nw.Series[Any] | None:
    """Return a frame or a series through narwhals; None for anything that is neither."""
    try:
        native = nw.from_native(values, pass_through=True, allow_series=True)
    except DuplicateError as error:
        names = getattr(values, "column_names", None) or values.columns
        raise _same_name(name, names) from error
    if isinstance(native, nw.LazyFrame):
        raise InputTypeError(
            f"{name} is a lazy frame ({type(values).__module__}.{type(values).__name__}), but "
            "fitting and predicting need its rows. Pass them as a frame in memory: X.collect() in "
            "polars, X.pl() in DuckDB, X.toPandas() in Spark."
        )
    return native if isinstance(native, nw.DataFrame | nw.Series) else None


def _same_name(name: str, names: Iterable[Any]) -> InputError:
    counts = Counter(str(n) for n in names)
    repeated = ", ".join(repr(n) for n, count in counts.items() if count > 1)
    return InputError(
        f"{name} has several columns with the same name ({repeated}), so it is not clear which "
        "one is meant. Rename them or drop all but one."
    )


# ---------------------------------------------------------------------------------------------
# X


def read_columns(
    X: Any, kinds: Mapping[str, Kind] | None = None, skip: Collection[str] = ()
) -> list[Column]:
    """Return the raw columns of a NumPy array, a pandas, polars or pyarrow frame, or nested lists.

    Numbers become float64 with NaN where missing; text, categories and booleans become Python
    scalars with None where missing. Infinite numbers, dates and nested values are refused.
    `kinds` says what a column of Python objects was when it was first read: a handful of rows
    may hold only the numbers of a column that mixes numbers and text. Columns of a frame named in
    `skip` may hold anything: they are listed, but not read.
    """
    known = kinds or {}
    frame = _from_native(X, "X")
    if not isinstance(frame, nw.DataFrame):
        return _columns_of_array(_as_matrix(X), known)
    _check_not_empty(frame.shape)
    columns = [
        _without_values(str(s.name), len(s))
        if str(s.name) in skip
        else _column_of_series(str(s.name), s, known)
        for s in frame.iter_columns()
    ]
    if len({c.name for c in columns}) < len(columns):  # the number 1 and the text "1", say
        raise _same_name("X", frame.columns)
    return columns


def _check_not_empty(shape: tuple[int, ...]) -> None:
    if 0 in shape:
        raise InputError(
            f"X has {shape[0]} sample(s) and {shape[1]} feature(s) (shape={shape}) while a minimum "
            "of 1 is required of each."
        )


def _as_matrix(X: Any) -> NDArray[Any]:
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise InputTypeError(
            "X is a sparse matrix, but commod reads raw columns and encodes them sparsely itself. "
            "Pass the raw table, or X.toarray() if it is small."
        )
    array = _as_array(X, "X")
    if array.ndim != 2:
        raise InputError(
            f"X must be a table with rows and columns; got {type(X).__name__} with {array.ndim} "
            f"dimension(s), shape {array.shape}. Reshape your data, e.g. with X.reshape(-1, 1)."
        )
    _check_not_empty(array.shape)
    if np.iscomplexobj(array):
        raise InputError("Complex data not supported: X holds complex numbers; pass real columns.")
    if array.dtype.kind in "mM":
        raise _unreadable_type("X", array.dtype)
    return array


def _as_array(values: Any, name: str) -> NDArray[Any]:
    """Return `values` as an array in which lists keep the type of each entry."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputError(
            f"{name} cannot be read as array ({error}). Give every row the same number of values."
        ) from error
    if array.dtype.kind in "US" and not hasattr(values, "dtype"):
        return np.asarray(values, dtype=object)  # NumPy writes [1, nan, "a"] as three texts
    return array


def _columns_of_array(array: NDArray[Any], kinds: Mapping[str, Kind]) -> list[Column]:
    names = [f"x{j}" for j in range(array.shape[1])]
    if array.dtype.kind in "fiu":
        table = _finite(array.astype(np.float64, copy=False), "X")
        return [Column(name, "numeric", table[:, j]) for j, name in enumerate(names)]
    return [_column_of_objects(name, array[:, j], kinds.get(name)) for j, name in enumerate(names)]


def _column_of_series(name: str, series: nw.Series[Any], kinds: Mapping[str, Kind]) -> Column:
    dtype = series.dtype
    if dtype.is_numeric():
        values = series.cast(nw.Float64).to_numpy().astype(np.float64, copy=False)
        return Column(name, "numeric", _finite(values, f"Column {name!r}"))
    if dtype == nw.Boolean or dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object):
        if isinstance(dtype, nw.Categorical | nw.Enum):
            return _column_of_objects(name, _object_array(series.to_list()), "category")
        return _column_of_objects(name, _object_array(series.to_list()), kinds.get(name))
    if dtype == nw.Unknown and series.is_null().all():  # the Null type of polars and pyarrow
        return _without_values(name, len(series))
    native = series.to_native()
    raise _unreadable_type(f"Column {name!r}", getattr(native, "dtype", None) or native.type)


def _without_values(name: str, n_rows: int) -> Column:
    return Column(name, "category", np.full(n_rows, None, dtype=object))


def _unreadable_type(what: str, dtype: Any) -> InputTypeError:
    return InputTypeError(
        f"{what} has type {dtype}, but a scorecard reads numbers, text, categories and booleans. "
        "Turn it into one of these (a date into days since a fixed day, say), or name it in "
        "locked_features if only the base model reads it."
    )


def _object_array(values: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _column_of_objects(name: str, values: NDArray[Any], kind: Kind | None = None) -> Column:
    """Read a column of Python objects: all numbers is numeric, anything else is categories."""
    scalars = [_plain(v) for v in values.tolist()]
    present = [v for v in scalars if v is not None]
    if kind is None:
        kind = "numeric" if present and all(_is_number(v) for v in present) else "category"
    if kind == "numeric" and all(_is_number(v) for v in present):
        numbers = np.array([math.nan if v is None else float(v) for v in scalars])
        return Column(name, kind, _finite(numbers, f"Column {name!r}"))
    for v in present:
        if not isinstance(v, str | bool | int | float):
            raise InputTypeError(
                f"Column {name!r} holds values of type {type(v).__name__}, but a scorecard reads "
                "numbers, text, categories and booleans; the argument must be a string or a "
                "number. Convert the column, or name it in locked_features if only the base model "
                "reads it."
            )
    _finite(np.array([v for v in present if isinstance(v, float)]), f"Column {name!r}")
    return Column(name, "category", _object_array(scalars))


def _plain(value: Any) -> Any:
    """Return a Python scalar; every way of saying "missing" becomes None."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, np.datetime64 | np.timedelta64):  # item() would make it an integer
        return None if np.isnat(value) else value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, Number) and not isinstance(value, bool | complex | np.timedelta64)


def _finite(values: NDArray[np.float64], what: str) -> NDArray[np.float64]:
    n_infinite = int(np.isinf(values).sum())
    if n_infinite:
        raise InputError(
            f"{what} contains {n_infinite} infinite value(s) (inf); a scorecard needs finite "
            "numbers. Clip them, or make them missing."
        )
    return values


# ---------------------------------------------------------------------------------------------
# One value per row


def read_labels(values: Any, name: str) -> NDArray[Any]:
    """Return one label per row as a one-dimensional array; missing labels are refused.

    Accepts arrays, lists, Series, and tables of one column.
    """
    array = _one_dimensional(values, name)
    if array.dtype.kind == "c":
        raise InputError(f"Complex data not supported: {name} holds complex numbers.")
    if array.dtype.kind == "f":
        n_missing = int(np.isnan(array).sum())
        if n_missing or np.isinf(array).any():
            raise InputError(
                f"Input {name} contains NaN or infinity ({n_missing} NaN). Labels must be known: "
                "drop those rows first."
            )
    elif array.dtype.kind == "O":
        scalars = [_plain(v) for v in array.tolist()]
        n_missing = sum(v is None for v in scalars)
        if n_missing:
            raise InputError(
                f"Input {name} contains NaN or None in {n_missing} row(s). Labels must be known: "
                "drop those rows first."
            )
        array = _tidy(scalars)
    return array


def _one_dimensional(values: Any, name: str) -> NDArray[Any]:
    native = _from_native(values, name)
    if isinstance(native, nw.Series):
        return _array_of_series(native)
    if isinstance(native, nw.DataFrame):
        if native.shape[1] != 1:
            raise InputError(f"{name} must have one column; got {native.shape[1]}.")
        return _array_of_series(next(native.iter_columns()))
    array = _as_array(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    if array.ndim != 1:
        raise InputError(f"{name} must be one-dimensional (a 1d array); got shape {array.shape}.")
    return array


def _array_of_series(series: nw.Series[Any]) -> NDArray[Any]:
    if series.dtype.is_numeric() and not series.is_null().any():
        return series.to_numpy()
    return _object_array(series.to_list())


def _tidy(scalars: list[Any]) -> NDArray[Any]:
    """Return a typed array where all scalars share one type, else an object array."""
    kinds = {type(v) for v in scalars}
    if kinds in ({int}, {float}, {bool}, {str}):
        return np.array(scalars)
    return _object_array(scalars)


def check_length(values: Sequence[Any] | NDArray[Any], name: str, n_rows: int) -> None:
    """Refuse `values` if it has not one entry per row."""
    if len(values) != n_rows:
        raise InputError(
            f"{name} has {len(values)} rows, but {n_rows} were expected: found input variables "
            "with inconsistent numbers of samples. Pass one entry per row, in the same order."
        )


def check_weights(
    sample_weight: Any, n_rows: int, name: str = "sample_weight"
) -> NDArray[np.float64]:
    """Return one non-negative finite weight per row, shape (n_rows,); ones where None."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = _one_dimensional(sample_weight, name)
    if weight.dtype.kind not in "fiub":
        scalars = [math.nan if v is None else v for v in map(_plain, weight.tolist())]
        wrong = [v for v in scalars if not _is_number(v) and not isinstance(v, bool)]
        if wrong:
            raise InputError(f"{name} must hold numbers; got {wrong[0]!r}.")
        weight = np.array(scalars)
    weight = weight.astype(np.float64)
    check_length(weight, name, n_rows)
    with np.errstate(over="ignore"):
        is_finite = bool(np.isfinite(weight.sum()))
    if not is_finite or (weight < 0).any():
        raise InputError(
            f"{name} contains negative, NaN or infinite values; weights must be finite and "
            "at least 0."
        )
    if not weight.any():
        raise InputError(f"{name} is zero in every row; at least one must be positive.")
    return weight


def binary_outcome(labels: NDArray[Any], name: str, pos_label: Any) -> NDArray[np.bool_]:
    """Return where `labels` equal `pos_label`; more than two different labels are refused."""
    values = list(dict.fromkeys(labels.tolist()))
    if not values:
        raise InputError(f"{name} has 0 rows; at least 1 is needed.")
    if len(values) > 2:
        shown = ", ".join(repr(v) for v in values[:4])
        raise InputError(
            f"{name} holds {len(values)} different values ({shown}, ...), but decisions have two. "
            "If these are scores, compare them with the threshold first: score > threshold."
        )
    if pos_label not in values and (
        len(values) == 2 or isinstance(values[0], str) != isinstance(pos_label, str)
    ):
        raise InputError(
            f"pos_label={pos_label!r} is not among the values of {name}: {values}. "
            "Pass the label whose rate is to be counted as pos_label=."
        )
    return np.asarray(labels == pos_label, dtype=bool)


# ---------------------------------------------------------------------------------------------
# Sensitive groups


def read_groups(sensitive_features: Any, n_rows: int) -> Groups:
    """Return the sensitive group of each row; several columns mean their intersections.

    Only groups that occur are listed, in sorted order; a label is the value itself, or a tuple of
    values for several columns. A missing value is an error that says how many there are.
    """
    if sensitive_features is None:
        raise InputError(
            "sensitive_features is missing. Pass the group of each row, e.g. "
            "sensitive_features=data['race']; it is needed while fitting only."
        )
    columns = _group_columns(sensitive_features)
    if not columns:
        raise InputError("sensitive_features has no column. Pass the group of each row.")
    for values in columns:
        check_length(values, "sensitive_features", n_rows)
    n_missing = sum(any(v is None for v in row) for row in zip(*columns, strict=True))
    if n_missing:
        plural = "s" if n_missing > 1 else ""
        raise InputError(
            f"sensitive_features has {n_missing} missing value{plural} in {n_rows} rows. Drop "
            "those rows, or give them a group of their own, e.g. with fillna('unknown')."
        )
    if len(columns) == 1:
        return _factorize(columns[0])
    joint = _factorize(list(zip(*columns, strict=True)))
    return replace(joint, parts=tuple(_factorize(values).codes for values in columns))


def _group_columns(sensitive_features: Any) -> list[list[Any]]:
    native = _from_native(sensitive_features, "sensitive_features")
    if isinstance(native, nw.Series):
        return [[_plain(v) for v in native.to_list()]]
    if isinstance(native, nw.DataFrame):
        return [[_plain(v) for v in series.to_list()] for series in native.iter_columns()]
    if isinstance(sensitive_features, dict):
        named = {f"sensitive_features[{k!r}]": v for k, v in sensitive_features.items()}
        return [[_plain(v) for v in _one_dimensional(c, k).tolist()] for k, c in named.items()]
    array = np.asarray(sensitive_features, dtype=object)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            "sensitive_features must be one value per row, or a table of several columns; got "
            f"shape {array.shape}."
        )
    return [[_plain(v) for v in array[:, j].tolist()] for j in range(array.shape[1])]


def _factorize(keys: Sequence[Hashable]) -> Groups:
    try:
        labels = list(dict.fromkeys(keys))
    except TypeError as error:
        raise InputTypeError(
            f"sensitive_features holds values that cannot name a group ({error}). Pass one number "
            "or text per row, or a table of several columns."
        ) from error
    try:
        labels.sort()  # type: ignore[call-arg]
    except TypeError:  # mixed kinds of labels have no order of their own
        labels.sort(key=lambda v: (type(v).__name__, str(v)))
    position = {label: i for i, label in enumerate(labels)}
    codes = np.fromiter((position[k] for k in keys), dtype=np.intp, count=len(keys))
    return Groups(codes, tuple(labels))
