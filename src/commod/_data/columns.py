"""Read a table as columns: numbers as float64, everything else as codes of categories.

Codes are an index, for each row, into a short list of distinct values. Tables may have millions of
rows, so no Python loop runs over rows. Values are hashed in C, counted where they are small whole
numbers, or encoded by the library that holds the column.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Number
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.tables import (
    as_matrix,
    check_not_empty,
    duplicate_names,
    from_native,
    unreadable_type,
)
from commod._text import n_of, shown
from commod.exceptions import InputError, InputTypeError

MOST_COUNTED = 65_536  # whole numbers in a wider range are counted only if rows are as many


@dataclass(frozen=True)
class Coded:
    """Rows as `codes` (n,), which index `values`; −1 stands for a missing value.

    `values` are plain Python scalars. They are all distinct, and each occurs. Python decides which
    values are equal: 1, 1.0 and True are one value, 1 and "1" are two.
    """

    codes: NDArray[np.signedinteger[Any]]
    values: list[Any]

    def objects(self) -> NDArray[Any]:
        """Return the value of each row, None if missing, as an array of objects (n,)."""
        table = np.empty(len(self.values) + 1, dtype=object)
        table[:-1] = self.values
        return table[self.codes]


def plain(value: Any) -> Any:
    """Return a value as a Python scalar; every missing value (NaN, NA, NaT) becomes None."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, np.datetime64 | np.timedelta64):  # item() would make it an integer
        return None if np.isnat(value) else value
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def check_text(texts: Iterable[str], place: str, parameter: str) -> None:
    """Refuse text with lone surrogates: no file, no database and no page can hold it.

    `place` says where the text is, after "in": "column 'town'".
    """
    texts = list(texts)
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        wrong = next(text for text in texts if any("\ud800" <= c <= "\udfff" for c in text))
        raise InputError(
            f"{wrong!r} in {place} has a lone surrogate and is no valid Unicode text. It comes "
            "from bytes that were decoded wrongly: read them with the right encoding, or replace "
            "the character.",
            parameter=parameter,
        ) from None


def check_optional_text(text: Any, name: str) -> None:
    """Refuse a parameter that is neither None nor text that a file can hold."""
    if text is not None and not isinstance(text, str):
        raise InputError(f"{name}={shown(text)} must be text or None.", parameter=name)
    check_text([text or ""], name, name)


def is_numeric(kind: type) -> bool:
    """Return whether values of this type are real numbers; booleans and durations are not."""
    return issubclass(kind, Number) and not issubclass(kind, bool | complex | np.timedelta64)


class _Numbering(dict[Any, int]):
    """A dict that gives each new key the next number."""

    def __missing__(self, key: Hashable) -> int:
        number = self[key] = len(self)
        return number


def code_list(values: Sequence[Any]) -> Coded:
    """Return codes of any hashable values; the values are in the order of their first rows."""
    numbering = _Numbering()
    codes = np.fromiter(map(numbering.__getitem__, values), dtype=np.int32, count=len(values))
    return _normalise(codes, list(numbering))


def _normalise(codes: NDArray[np.signedinteger[Any]], values: list[Any]) -> Coded:
    """Return codes of plain scalars: values that become missing or equal are merged."""
    numbering = _Numbering()
    scalars = (v if type(v) is str else plain(v) for v in values)
    table = [-1 if v is None else numbering[v] for v in scalars]
    if table == list(range(len(values))):
        return Coded(codes, list(numbering))
    return Coded(np.array([*table, -1], dtype=np.int32)[codes], list(numbering))


def code_array(array: NDArray[Any]) -> Coded:
    """Return codes of an array (n,); the values of numbers and booleans are sorted."""
    if array.dtype.kind == "b":
        has_both = bool(array.any() and not array.all())
        flags = array.astype(np.int8) if has_both else np.zeros(len(array), dtype=np.int8)
        return Coded(flags, [False, True] if has_both else array[:1].tolist())
    if array.dtype.kind in "iu":
        present, codes = _count_or_sort(array)
        return Coded(codes, present.tolist())
    if array.dtype.kind == "f":
        is_known = ~np.isnan(array)
        present, inverse = np.unique(array[is_known], return_inverse=True)
        codes = np.full(len(array), -1, dtype=np.intp)
        codes[is_known] = inverse
        return Coded(codes, present.tolist())
    return code_list(array.astype(object).tolist())


def _count_or_sort(keys: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the whole numbers that occur, sorted, and the position of each key among them."""
    low, high = (int(keys.min()), int(keys.max())) if len(keys) else (0, 0)
    if high - low > max(MOST_COUNTED, len(keys)) or high > np.iinfo(np.intp).max:
        present, codes = np.unique(keys, return_inverse=True)
        return present, codes
    shifted = np.subtract(keys, low, dtype=np.intp)
    present = np.flatnonzero(np.bincount(shifted))
    if len(present) == high - low + 1:
        return present + low, shifted
    table = np.zeros(high - low + 1, dtype=np.intp)
    table[present] = np.arange(len(present))
    return present + low, table[shifted]


def joint_codes(
    columns: Sequence[NDArray[np.signedinteger[Any]]],
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return a code for each combination that occurs, and the first row of each combination.

    Columns hold codes from 0. Combinations are sorted by the first column, then by the next ones.
    The codes have shape (n,), the first rows (n_combinations,).
    """
    joint = np.zeros(len(columns[0]), dtype=np.intp)
    for codes in columns:
        _, joint = _count_or_sort(joint * (int(codes.max(initial=0)) + 1) + codes)
    first_row = np.empty(int(joint.max(initial=-1)) + 1, dtype=np.intp)
    first_row[joint[::-1]] = np.arange(len(joint))[::-1]
    return joint, first_row


# ---------------------------------------------------------------------------------------------
# Columns of frames: each library has its own codes, or computes them faster than Python does


def code_series(series: nw.Series[Any]) -> Coded:
    """Return codes of a column of any type."""
    dtype, native = series.dtype, series.to_native()
    if dtype.is_numeric() or dtype == nw.Boolean:
        if not series.is_null().any():
            return code_array(series.to_numpy())
    elif dtype in (nw.String, nw.Categorical, nw.Enum):
        if series.implementation.is_pandas():
            return code_pandas(native)
        if series.implementation.is_polars():
            return _code_polars(series)
        if series.implementation.is_pyarrow():
            return _code_pyarrow(native)
    return code_list(series.to_list())


def code_pandas(native: Any) -> Coded:
    """Return codes of a pandas column of text or categories."""
    if not hasattr(native, "cat"):
        codes, values = native.factorize()
        return _normalise(codes, values.tolist())
    return _normalise_used(native.array.codes, native.array.categories.tolist())


def _code_polars(series: nw.Series[Any]) -> Coded:
    values = series.unique(maintain_order=True).drop_nulls().to_list()
    codes = series.cast(nw.Enum(values)).to_native().to_physical()
    signed = nw.from_native(codes, series_only=True).cast(nw.Int32).fill_null(-1)
    return Coded(signed.to_numpy(), values)


def _code_pyarrow(native: Any) -> Coded:
    encoded = native.combine_chunks().dictionary_encode()
    return _normalise_used(encoded.indices.fill_null(-1).to_numpy(), encoded.dictionary.to_pylist())


def _normalise_used(codes: NDArray[np.signedinteger[Any]], values: list[Any]) -> Coded:
    """Return codes of plain scalars from a dictionary that may hold values without rows."""
    is_used = np.zeros(len(values) + 1, dtype=bool)
    is_used[codes] = True  # the code −1 of missing values marks the extra last place
    used = [v if is_used[i] else None for i, v in enumerate(values)]
    return _normalise(codes, used)


# ---------------------------------------------------------------------------------------------
# Columns of a table

LARGEST = 1e100  # larger numbers are cut, so that squares and points times numbers stay finite
MAX_CODES = 20  # different whole numbers that may be codes of categories
Kind = Literal["numeric", "category"]
Scalar = str | bool | int | float

PLAIN_TYPES = frozenset({str, bool, int, float, type(None)})
UNNAMED = "\0"  # begins the name of a category that stands for one row and has no type
KIND_NAMES = {"numeric": "numbers", "category": "categories or text"}
TYPE_NAMES = {"boolean": "true or false", "number": "numbers", "text": "text"}


@dataclass(frozen=True)
class Column:
    """One raw column of n rows: numbers, or categories as codes.

    If `kind` is "numeric", `values` (n,) are float64 with NaN for missing. Otherwise they are
    codes that index `categories`, with −1 for missing. A category may have no row.

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

    @property
    def types(self) -> frozenset[str]:
        """Return which types the values have: boolean, number, text; none where all are missing."""
        if self.kind == "category":
            return types_of(self.categories)
        return frozenset() if self.is_missing().all() else frozenset({"number"})

    def take(self, rows: Any) -> Column:
        """Return the column of the given rows: a mask, or positions."""
        return replace(self, values=self.values[rows])

    def first_value(self) -> Scalar | None:
        """Return the first value that is not missing; None if all values are."""
        first = self.values[~self.is_missing()][:1].tolist()
        if not first:
            return None
        return self.categories[first[0]] if self.kind == "category" else first[0]


def type_of(value: Scalar) -> str:
    """Return the type of a value as scorecards see it: boolean, number or text."""
    if isinstance(value, bool):
        return "boolean"
    return "text" if isinstance(value, str) else "number"


def types_of(values: Iterable[Scalar | None]) -> frozenset[str]:
    """Return the types that occur among categories; None is missing and has no type."""
    named = (v for v in values if not (isinstance(v, str) and v.startswith(UNNAMED)))
    return frozenset(type_of(v) for v in named if v is not None)


def as_fitted(
    column: Column,
    kind: Kind,
    types: Collection[str] = (),
    categories: Collection[Scalar | None] = (),
) -> Column:
    """Return a column in the kind that it had in the fit rows; a changed type is refused.

    Updates and patches share this rule. `types` are those of the values in the fit rows, and a
    value of any other type is refused. A patch does not know them (`types` is empty) but knows
    `categories` with points. Then the column is refused if it has no value of their types, or if a
    value of another type spells one of them, as "True" spells True.

    A column without any value has no type, so it fits every kind.

    Examples
    --------
    >>> flag = Column("flag", "category", np.array([0, 1]), ("False", "True"))
    >>> as_fitted(flag, "category", {"boolean"})
    Traceback (most recent call last):
    commod.exceptions.InputError: Column 'flag' held true or false when the update was fitted and
    holds text now (for example 'False'). Convert it to the type it had.
    """
    if column.kind != kind and column.first_value() is None:
        empty = np.full(len(column), np.nan if kind == "numeric" else -1)
        return Column(column.name, kind, empty if kind == "numeric" else empty.astype(np.int32))
    known = frozenset(types) or types_of(categories)
    if column.kind != kind and (kind == "numeric" or "number" not in known):
        raise _other_type(column, KIND_NAMES[kind], KIND_NAMES[column.kind], column.first_value())
    if column.kind != kind:  # numbers that were categories in the fit rows
        coded = code_array(column.values)
        column = Column(column.name, kind, coded.codes, tuple(coded.values))
    if not known or kind == "numeric" or column.types <= known:
        return column
    others = [c for c in column.categories if types_of([c]) - known]
    if not types and column.types & known:
        spelled = {str(c).casefold() for c in categories}
        others = [c for c in others if str(c).casefold() in spelled]
    if others:
        held = " and ".join(TYPE_NAMES[name] for name in sorted(known))
        raise _other_type(column, held, TYPE_NAMES[type_of(others[0])], others[0])
    return column


def _other_type(column: Column, held: str, holds: str, example: Any) -> InputError:
    return InputError(
        f"Column {column.name!r} held {held} when the update was fitted and holds {holds} now (for "
        f"example {example!r}). Convert it to the type it had.",
        parameter="X",
    )


def may_hold_codes(column: Column) -> bool:
    """Return whether a numeric column may hold codes of categories instead of amounts.

    It holds between 3 and MAX_CODES different whole numbers. Two values need no hint: points per
    unit are then the same as points of a category.

    Examples
    --------
    >>> may_hold_codes(Column("grade", "numeric", np.array([0.0, 1, 4, 4, np.nan])))
    True
    >>> may_hold_codes(Column("rate", "numeric", np.array([0.5, 1, 4, 4])))
    False
    """
    if column.kind != "numeric":
        return False
    for step in (-(-len(column) // 1_000), 1):  # a subsample of 1,000 rows rules out most columns
        values = column.values[::step]
        distinct = np.unique(values[~np.isnan(values)])
        if len(distinct) > MAX_CODES or (distinct != np.rint(distinct)).any():
            return False
    return len(distinct) > 2


def read_columns(
    X: Any,
    kinds: Mapping[str, Kind] | None = None,
    skip: Collection[str] = (),
    only: Collection[str] | None = None,
) -> list[Column]:
    """Return the raw columns of a NumPy array, a pandas, polars or pyarrow frame, or nested lists.

    Numbers become float64 with NaN if missing; beyond ±LARGEST they become ±LARGEST. Text,
    categories and booleans become codes of the values that occur. Infinite numbers, dates and
    nested values are refused.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
    kinds : mapping of column name to kind, default=None
        The kinds that columns of Python objects had in an earlier table. A column that mixes
        numbers and text stays categorical, even where a few rows hold only numbers.
    skip, only : collection of str
        Columns in `skip`, or not in `only`, are listed as missing everywhere and are not read. So
        they may hold values of any type.
    """
    columns = list(iter_columns(X, kinds, skip, only))
    check_text((c.name for c in columns), "the names of the columns of X", "X")
    if len({c.name for c in columns}) < len(columns):  # for example the number 1 and the text "1"
        raise duplicate_names("X", [c.name for c in columns])
    return columns


def iter_columns(
    X: Any,
    kinds: Mapping[str, Kind] | None = None,
    skip: Collection[str] = (),
    only: Collection[str] | None = None,
    *,
    unread: list[str] | None = None,
) -> Iterator[Column]:
    """Yield the columns of `read_columns`, so that only one of them is in memory at a time.

    If `unread` is a list, a column of a frame that cannot be read is not an error: the column is
    yielded as missing everywhere, and its name is appended to the list.
    """
    known = kinds or {}
    frame = from_native(X, "X")
    if not isinstance(frame, nw.DataFrame):
        yield from _columns_of_array(as_matrix(X), known, skip, only)
        return
    check_not_empty(frame.shape)
    n_rows, native = len(frame), frame.to_native()
    is_pandas = frame.implementation.is_pandas()
    for key in frame.columns:
        name = str(key)
        if not _is_read(name, skip, only):
            yield column_without_values(name, n_rows)
            continue
        try:
            column = _usual_column(name, native[key]) if is_pandas else None
            if column is None:
                column = _column_of_series(name, frame.get_column(key), known)
            yield column
        except InputError:
            if unread is None:
                raise
            unread.append(name)
            yield column_without_values(name, n_rows)


def _is_read(name: str, skip: Collection[str], only: Collection[str] | None) -> bool:
    return name not in skip and (only is None or name in only)


def _columns_of_array(
    array: NDArray[Any],
    kinds: Mapping[str, Kind],
    skip: Collection[str],
    only: Collection[str] | None,
) -> Iterator[Column]:
    read = [_is_read(f"x{j}", skip, only) for j in range(array.shape[1])]
    if array.dtype.kind in "fiu":
        _finite(array if all(read) else array[:, read], "X")  # one message for the whole array
    for j, values in enumerate(array.T):
        name = f"x{j}"
        if not read[j]:
            yield column_without_values(name, len(array))
        elif array.dtype.kind in "fiu":
            numbers = values.astype(np.float64, copy=False)
            yield Column(name, "numeric", _finite(numbers, f"Column {name!r}"))
        elif array.dtype.kind == "b":
            yield _categories(name, code_array(values))
        else:
            yield _column_of_objects(name, values.tolist(), kinds.get(name))


def _usual_column(name: str, series: Any) -> Column | None:
    """Return a pandas column of floats or categories; None for any other type.

    These are the usual types. They are read without narwhals, whose fixed cost is seen in the
    predictions of few rows.
    """
    if series.dtype == np.float64:
        return Column(name, "numeric", _finite(series.to_numpy(), f"Column {name!r}"))
    if series.dtype.name == "category":
        return _categories(name, code_pandas(series))
    return None


def _column_of_series(name: str, series: nw.Series[Any], kinds: Mapping[str, Kind]) -> Column:
    dtype = series.dtype
    if dtype.is_numeric():
        values = _as_doubles(series)
        return Column(name, "numeric", _finite(values, f"Column {name!r}"))
    native = series.to_native()
    # narwhals looks at the first rows only
    if dtype == nw.Object or getattr(native, "dtype", None) == np.dtype(object):
        return _column_of_objects(name, series.to_list(), kinds.get(name))
    if dtype in (nw.Boolean, nw.String, nw.Categorical, nw.Enum):
        return _categories(name, code_series(series))
    if dtype == nw.Unknown and series.is_null().all():  # the Null type of polars and pyarrow
        return column_without_values(name, len(series))
    raise unreadable_type(f"Column {name!r}", getattr(native, "dtype", None) or native.type)


def _as_doubles(series: nw.Series[Any]) -> NDArray[np.float64]:
    if series.dtype in (nw.Int64, nw.UInt64):  # Arrow refuses to cast numbers beyond 2⁵³
        missing = series.is_null()
        if not missing.any():
            return series.to_numpy().astype(np.float64)
        values = series.fill_null(0).to_numpy().astype(np.float64)
        values[missing.to_numpy()] = np.nan
        return values
    return series.cast(nw.Float64).to_numpy().astype(np.float64, copy=False)


def column_without_values(name: str, n_rows: int) -> Column:
    """Return a column that is missing everywhere, in place of one that is not read."""
    return Column(name, "category", np.full(n_rows, -1, dtype=np.int32))


def _column_of_objects(name: str, values: list[Any], kind: Kind | None = None) -> Column:
    """Read Python objects: as a numeric column where all are numbers, else as categories."""
    types = set(map(type, values))
    if not types <= PLAIN_TYPES:
        values = [plain(v) for v in values]
        types = set(map(type, values))
    types.discard(type(None))
    if kind != "category" and all(map(is_numeric, types)):
        try:
            numbers = np.array(values, dtype=np.float64)  # None becomes NaN
        except OverflowError as error:
            raise InputError(
                f"Column {name!r} holds a whole number too large for a float; a scorecard needs "
                "finite numbers. Clip it, or make it missing.",
                parameter="X",
            ) from error
        return Column(name, "numeric", _finite(numbers, f"Column {name!r}"))
    if not types <= PLAIN_TYPES:
        _check_readable(name, values)
    return _categories(name, code_list(values))


def _categories(name: str, coded: Coded) -> Column:
    _check_readable(name, coded.values)
    if float in map(type, coded.values):
        numbers = [v if isinstance(v, float) else 0.0 for v in coded.values]
        _finite(np.array([*numbers, 0.0])[coded.codes], f"Column {name!r}")
    is_small = len(coded.values) < np.iinfo(np.int16).max - 1  # two bytes per row instead of four
    codes = coded.codes.astype(np.int16 if is_small else np.int32, copy=False)
    return Column(name, "category", codes, tuple(coded.values))


def _check_readable(name: str, values: Iterable[Any]) -> None:
    values = list(values)
    check_text((v for v in values if isinstance(v, str)), f"column {name!r}", "X")
    for v in values:
        if v is not None and not isinstance(v, str | bool | int | float):
            raise InputTypeError(
                f"Column {name!r} holds values of type {type(v).__name__}, but a scorecard reads "
                "numbers, text, categories and booleans; the argument must be a string or a "
                "number. Convert the column, or list it in locked_features if only the base model "
                "reads it.",
                parameter="X",
            )


def _finite(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return finite numbers, cut to ±LARGEST; infinite ones are refused."""
    lowest = np.fmin.reduce(values, axis=None, initial=0)  # missing values are not counted
    highest = np.fmax.reduce(values, axis=None, initial=0)
    if np.isinf(lowest) or np.isinf(highest):
        n_infinite = int(np.isinf(values).sum())
        raise InputError(
            f"{name} contains {n_of(n_infinite, 'infinite value')} (inf); a scorecard needs finite "
            "numbers. Clip them, or make them missing.",
            parameter="X",
        )
    if values.dtype == np.float64 and max(-lowest, highest) > LARGEST:
        return np.clip(values, -LARGEST, LARGEST)
    return values
