"""Encode values as codes: a short list of distinct values, and an index into it for each row.

Tables may have millions of rows, so no Python loop runs over rows. Values are hashed in C, counted
where they are small whole numbers, or encoded by the library that holds the column.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod.exceptions import InputError

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
        """Return the value of each row, None where missing, as an array of objects (n,)."""
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
        return _code_booleans(array)
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


def _code_booleans(array: NDArray[np.bool_]) -> Coded:
    if len(array) and array.any() and not array.all():
        return Coded(array.astype(np.int8), [False, True])
    return Coded(np.zeros(len(array), dtype=np.int8), array[:1].tolist())


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
