"""The one door: X, y, sensitive_features and sample_weight as they come → checked arrays."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Number
from typing import Any, Literal

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from commod._data.codes import Coded, code_array, code_list, code_series, joint_codes, plain
from commod.exceptions import InputError, InputTypeError

__all__ = [
    "Column",
    "Groups",
    "binary_outcome",
    "check_length",
    "check_weights",
    "determines_group",
    "different_labels",
    "index_of",
    "iter_columns",
    "n_rows_of",
    "read_columns",
    "read_groups",
    "read_labels",
    "same_name",
    "take_rows",
]

Kind = Literal["numeric", "category"]
Scalar = str | bool | int | float

PLAIN_TYPES = frozenset({str, bool, int, float, type(None)})


@dataclass(frozen=True)
class Column:
    """One raw column of n rows: numbers, or categories as codes.

    `values` (n,) are float64 with NaN for missing where `kind` is "numeric"; else they are codes
    into `categories`, −1 for missing. A category need not occur.

    Examples
    --------
    >>> Column("town", "category", np.array([0, 1, -1, 0]), ("Oslo", "Rome")).take([1, 2])
    Column(name='town', kind='category', values=array([ 1, -1]), categories=('Oslo', 'Rome'))
    """

    name: str
    kind: Kind
    values: NDArray[Any]
    categories: tuple[Scalar, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    def is_missing(self) -> NDArray[np.bool_]:
        """Return where the value is missing, shape (n,)."""
        return np.isnan(self.values) if self.kind == "numeric" else self.values < 0

    def take(self, rows: Any) -> Column:
        """Return the column of some rows, given by a mask or by their positions."""
        return replace(self, values=self.values[rows])

    def first_value(self) -> Scalar | None:
        """Return the first value that is not missing; None where all are."""
        there = self.values[~self.is_missing()][:1].tolist()
        if self.kind == "category":
            there = [self.categories[code] for code in there]
        return there[0] if there else None


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
        raise same_name(name, names) from error
    if isinstance(native, nw.LazyFrame):
        raise InputTypeError(
            f"{name} is a lazy frame ({type(values).__module__}.{type(values).__name__}), but "
            "fitting and predicting need its rows. Pass them as a frame in memory: X.collect() in "
            "polars, X.pl() in DuckDB, X.toPandas() in Spark."
        )
    return native if isinstance(native, nw.DataFrame | nw.Series) else None


def same_name(name: str, names: Iterable[Any]) -> InputError:
    """Return the error for a table with several columns of one name."""
    counts = Counter(str(n) for n in names)
    repeated = ", ".join(repr(n) for n, count in counts.items() if count > 1)
    return InputError(
        f"{name} has several columns with the same name ({repeated}), so it is not clear which "
        "one is meant. Rename them or drop all but one."
    )


# ---------------------------------------------------------------------------------------------
# X


def read_columns(
    X: Any,
    kinds: Mapping[str, Kind] | None = None,
    skip: Collection[str] = (),
    only: Collection[str] | None = None,
) -> list[Column]:
    """Return the raw columns of a NumPy array, a pandas, polars or pyarrow frame, or nested lists.

    Numbers become float64 with NaN where missing; text, categories and booleans become codes into
    the values that occur. Infinite numbers, dates and nested values are refused.
    `kinds` says what a column of Python objects was when it was first read: a handful of rows
    may hold only the numbers of a column that mixes numbers and text. Columns named in `skip`, or
    not named in `only`, may hold anything: they are listed, but not read.
    """
    columns = list(iter_columns(X, kinds, skip, only))
    if len({c.name for c in columns}) < len(columns):  # the number 1 and the text "1", say
        raise same_name("X", [c.name for c in columns])
    return columns


def iter_columns(
    X: Any,
    kinds: Mapping[str, Kind] | None = None,
    skip: Collection[str] = (),
    only: Collection[str] | None = None,
    *,
    unread: list[str] | None = None,
) -> Iterator[Column]:
    """Return the columns of `read_columns` one after the other: one at a time is in memory.

    Where `unread` is a list, a column of a frame that cannot be read comes with all its values
    missing, and its name is added to the list.
    """
    known = kinds or {}
    frame = _from_native(X, "X")
    if not isinstance(frame, nw.DataFrame):
        yield from _columns_of_array(_as_matrix(X), known, skip, only)
        return
    _check_not_empty(frame.shape)
    for key in frame.columns:
        name = str(key)
        if not _is_read(name, skip, only):
            yield _without_values(name, len(frame))
            continue
        try:
            yield _column_of_series(name, frame.get_column(key), known)
        except InputError:
            if unread is None:
                raise
            unread.append(name)
            yield _without_values(name, len(frame))


def _is_read(name: str, skip: Collection[str], only: Collection[str] | None) -> bool:
    return name not in skip and (only is None or name in only)


def n_rows_of(X: Any) -> int:
    """Return the number of rows of a table of any kind."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def index_of(values: Any) -> Any:
    """Return the index of a pandas frame or series, None for anything else."""
    is_pandas = type(values).__module__.partition(".")[0] == "pandas"
    return getattr(values, "index", None) if is_pandas else None


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Return some rows of a table, as a table of the same kind."""
    frame = _from_native(X, "X")
    if isinstance(frame, nw.DataFrame):
        return frame[rows, :].to_native()
    return _as_matrix(X)[rows]


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


def _columns_of_array(
    array: NDArray[Any],
    kinds: Mapping[str, Kind],
    skip: Collection[str],
    only: Collection[str] | None,
) -> Iterator[Column]:
    read = [_is_read(f"x{j}", skip, only) for j in range(array.shape[1])]
    if array.dtype.kind in "fiu":
        _finite(array if all(read) else array[:, read], "X")
    for j, values in enumerate(array.T):
        name = f"x{j}"
        if not read[j]:
            yield _without_values(name, len(array))
        elif array.dtype.kind in "fiu":
            yield Column(name, "numeric", values.astype(np.float64, copy=False))
        elif array.dtype.kind == "b":
            yield _categories(name, code_array(values))
        else:
            yield _column_of_objects(name, values.tolist(), kinds.get(name))


def _column_of_series(name: str, series: nw.Series[Any], kinds: Mapping[str, Kind]) -> Column:
    dtype = series.dtype
    if dtype.is_numeric():
        values = _as_doubles(series)
        return Column(name, "numeric", _finite(values, f"Column {name!r}"))
    if dtype == nw.Object or _holds_objects(series):  # also where the first rows look like text
        return _column_of_objects(name, series.to_list(), kinds.get(name))
    if dtype in (nw.Boolean, nw.String, nw.Categorical, nw.Enum):
        return _categories(name, code_series(series))
    if dtype == nw.Unknown and series.is_null().all():  # the Null type of polars and pyarrow
        return _without_values(name, len(series))
    native = series.to_native()
    raise _unreadable_type(f"Column {name!r}", getattr(native, "dtype", None) or native.type)


def _as_doubles(series: nw.Series[Any]) -> NDArray[np.float64]:
    if series.dtype in (nw.Int64, nw.UInt64):  # Arrow casts none beyond 2⁵³
        missing = series.is_null()
        if not missing.any():
            return series.to_numpy().astype(np.float64)
        values = series.fill_null(0).to_numpy().astype(np.float64)
        values[missing.to_numpy()] = np.nan
        return values
    native = series.to_native()
    if getattr(native, "dtype", None) == np.float64:  # as most columns are: nothing to convert
        return np.asarray(native.to_numpy(), dtype=np.float64)
    return series.cast(nw.Float64).to_numpy().astype(np.float64, copy=False)


def _holds_objects(series: nw.Series[Any]) -> bool:
    return bool(getattr(series.to_native(), "dtype", None) == np.dtype(object))


def _without_values(name: str, n_rows: int) -> Column:
    return Column(name, "category", np.full(n_rows, -1, dtype=np.int32))


def _unreadable_type(what: str, dtype: Any) -> InputTypeError:
    return InputTypeError(
        f"{what} has type {dtype}, but a scorecard reads numbers, text, categories and booleans. "
        "Turn it into one of these (a date into days since a fixed day, say), or name it in "
        "locked_features if only the base model reads it."
    )


def _column_of_objects(name: str, values: list[Any], kind: Kind | None = None) -> Column:
    """Read a column of Python objects: all numbers is numeric, anything else is categories."""
    types = set(map(type, values))
    if not types <= PLAIN_TYPES:
        values = [plain(v) for v in values]
        types = set(map(type, values))
    types.discard(type(None))
    if kind != "category" and all(map(_is_number_type, types)):
        numbers = np.array(values, dtype=np.float64)  # None becomes NaN
        return Column(name, "numeric", _finite(numbers, f"Column {name!r}"))
    if not types <= PLAIN_TYPES:
        _check_readable(name, values)
    return _categories(name, code_list(values))


def _categories(name: str, coded: Coded) -> Column:
    _check_readable(name, coded.values)
    if float in map(type, coded.values):
        numbers = [v if isinstance(v, float) else 0.0 for v in coded.values]
        _finite(np.array([*numbers, 0.0])[coded.codes], f"Column {name!r}")
    few = len(coded.values) < np.iinfo(np.int16).max - 1  # many rows in two bytes each, not in four
    codes = coded.codes.astype(np.int16 if few else np.int32, copy=False)
    return Column(name, "category", codes, tuple(coded.values))


def _check_readable(name: str, values: Iterable[Any]) -> None:
    for v in values:
        if v is not None and not isinstance(v, str | bool | int | float):
            raise InputTypeError(
                f"Column {name!r} holds values of type {type(v).__name__}, but a scorecard reads "
                "numbers, text, categories and booleans; the argument must be a string or a "
                "number. Convert the column, or name it in locked_features if only the base model "
                "reads it."
            )


def _is_number_type(kind: type) -> bool:
    return issubclass(kind, Number) and not issubclass(kind, bool | complex | np.timedelta64)


def _finite(values: NDArray[Any], what: str) -> NDArray[Any]:
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
        array = _known_labels(array.tolist(), name)
    return array


def _known_labels(scalars: list[Any], name: str) -> NDArray[Any]:
    if not _share_one_type(scalars):
        scalars = [plain(v) for v in scalars]
        n_missing = scalars.count(None)
        if n_missing:
            raise InputError(
                f"Input {name} contains NaN or None in {n_missing} row(s). Labels must be known: "
                "drop those rows first."
            )
    return _typed(scalars)


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
    dtype = series.dtype
    if (dtype.is_numeric() or dtype == nw.Boolean) and not series.is_null().any():
        return series.to_numpy()
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        coded = code_series(series)
        if coded.codes.min(initial=0) < 0:
            return coded.objects()
        return _typed(coded.values)[coded.codes]
    return _object_array(series.to_list())


def _object_array(values: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _share_one_type(scalars: Iterable[Any]) -> bool:
    return set(map(type, scalars)) in ({int}, {bool}, {str})


def _typed(scalars: list[Any]) -> NDArray[Any]:
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
        scalars = [math.nan if v is None else v for v in map(plain, weight.tolist())]
        wrong = [v for v in scalars if not isinstance(v, bool) and not _is_number_type(type(v))]
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


def binary_outcome(
    labels: NDArray[Any], name: str, pos_label: Any, parameter: str = "pos_label"
) -> NDArray[np.bool_]:
    """Return where `labels` equal `pos_label`; more than two different labels are refused.

    `parameter` is what the caller calls the label.
    """
    if not len(labels):
        raise InputError(f"{name} has 0 rows; at least 1 is needed.")
    values = different_labels(labels)
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
            f"{parameter}={pos_label!r} is not among the values of {name}: {values}. "
            f"Pass the label that is meant as {parameter}=."
        )
    return np.asarray(labels == pos_label, dtype=bool)


def different_labels(labels: NDArray[Any]) -> list[Any]:
    """Return the labels that occur, in the order of their first rows; quickly where two do."""
    first = labels[:1]
    is_first = labels == first
    second = labels[np.argmin(is_first) :][:1]  # of the first row that differs, if any does
    if np.all(is_first | (labels == second)):
        return list(dict.fromkeys([*first.tolist(), *second.tolist()]))
    return list(dict.fromkeys(labels.tolist()))


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
    for coded in columns:
        check_length(coded.codes, "sensitive_features", n_rows)
    n_missing = int(np.any([coded.codes < 0 for coded in columns], axis=0).sum())
    if n_missing:
        plural = "s" if n_missing > 1 else ""
        raise InputError(
            f"sensitive_features has {n_missing} missing value{plural} in {n_rows} rows. Drop "
            "those rows, or give them a group of their own, e.g. with fillna('unknown')."
        )
    parts = [_sorted_groups(coded) for coded in columns]
    return parts[0] if len(parts) == 1 else _intersections(parts)


def names_of_columns(sensitive_features: Any) -> tuple[str, ...] | None:
    """Return the names of several sensitive columns, None where they have none."""
    native = _from_native(sensitive_features, "sensitive_features")
    if isinstance(native, nw.DataFrame):
        return tuple(map(str, native.columns))
    if isinstance(sensitive_features, dict):
        return tuple(map(str, sensitive_features))
    return None


def _group_columns(sensitive_features: Any) -> list[Coded]:
    native = _from_native(sensitive_features, "sensitive_features")
    if isinstance(native, nw.Series):
        return [_code_groups(native)]
    if isinstance(native, nw.DataFrame):
        return [_code_groups(series) for series in native.iter_columns()]
    if isinstance(sensitive_features, dict):
        named = {f"sensitive_features[{k!r}]": v for k, v in sensitive_features.items()}
        return [_code_groups(_one_dimensional(c, k)) for k, c in named.items()]
    is_array = isinstance(sensitive_features, np.ndarray)  # a list keeps the type of each entry
    array = np.asarray(sensitive_features, dtype=None if is_array else object)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(
            "sensitive_features must be one value per row, or a table of several columns; got "
            f"shape {array.shape}."
        )
    return [_code_groups(column) for column in array.T]


def _code_groups(values: nw.Series[Any] | NDArray[Any]) -> Coded:
    try:
        return code_array(values) if isinstance(values, np.ndarray) else code_series(values)
    except TypeError as error:
        raise InputTypeError(
            f"sensitive_features holds values that cannot name a group ({error}). Pass one number "
            "or text per row, or a table of several columns."
        ) from error


def _sorted_groups(coded: Coded) -> Groups:
    values = coded.values
    try:
        order = sorted(range(len(values)), key=values.__getitem__)
    except TypeError:  # mixed kinds of labels have no order of their own
        order = sorted(range(len(values)), key=lambda i: (type(values[i]).__name__, str(values[i])))
    if order == list(range(len(values))):
        return Groups(coded.codes.astype(np.intp), tuple(values))
    return Groups(np.argsort(order)[coded.codes], tuple(values[i] for i in order))


def _intersections(parts: Sequence[Groups]) -> Groups:
    codes, first_rows = joint_codes([part.codes for part in parts])
    labels = [[part.labels[code] for code in part.codes[first_rows]] for part in parts]
    return Groups(codes, tuple(zip(*labels, strict=True)), tuple(part.codes for part in parts))


def determines_group(column: Column, codes: NDArray[np.intp], most: int = 50) -> bool:
    """Return whether few values, shared by several rows each, determine the group."""
    n = len(codes)
    for step in (-(-n // 1_000), 1):  # some of the rows tell that most columns do not
        values, groups = code_array(column.values[::step]).codes + 1, codes[::step]  # 0: missing
        n_pairs = len(joint_codes([values, groups])[1])
        if n_pairs > min(most, n // 2) or n_pairs > len(np.unique(values)):
            return False
    return len(np.unique(codes)) > 1
