"""Many values as few: the short list of the different values, and a code for each row.

Millions of rows pass through here, so no loop over rows runs in the interpreter: values are hashed
in C, counted where they are small whole numbers, or coded by the library whose column they are.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

__all__ = ["Coded", "code_array", "code_list", "code_series", "joint_codes", "plain"]

MOST_COUNTED = 65_536  # a wider range of whole numbers is counted only if there are as many rows


@dataclass(frozen=True)
class Coded:
    """`codes` (n,) into `values`, which are plain Python, all different and all present.

    −1 stands for a missing value. Values are the same where Python says that they are equal: 1,
    1.0 and True are one value, 1 and "1" are two.
    """

    codes: NDArray[np.signedinteger[Any]]
    values: list[Any]

    def objects(self) -> NDArray[Any]:
        """Return the values row by row, None where missing, as an array of objects (n,)."""
        table = np.empty(len(self.values) + 1, dtype=object)
        table[:-1] = self.values
        return table[self.codes]


def plain(value: Any) -> Any:
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


class _Numbering(dict[Any, int]):
    """Gives each new key the next number."""

    def __missing__(self, key: Hashable) -> int:
        number = self[key] = len(self)
        return number


def code_list(values: Sequence[Any]) -> Coded:
    """Return any hashable values as codes, in the order of their first row."""
    numbering = _Numbering()
    codes = np.fromiter(map(numbering.__getitem__, values), dtype=np.int32, count=len(values))
    return _tidy(codes, list(numbering))


def _tidy(codes: NDArray[np.signedinteger[Any]], values: list[Any]) -> Coded:
    """Make the values plain: some may then be missing, or equal to others."""
    numbering = _Numbering()
    scalars = (v if type(v) is str else plain(v) for v in values)
    table = [-1 if v is None else numbering[v] for v in scalars]
    if table == list(range(len(values))):
        return Coded(codes, list(numbering))
    return Coded(np.array([*table, -1], dtype=np.int32)[codes], list(numbering))


def code_array(array: NDArray[Any]) -> Coded:
    """Return an array of one dimension as codes; numbers and booleans in sorted order."""
    if array.dtype.kind == "b":
        return _code_booleans(array)
    if array.dtype.kind in "iu":
        present, codes = _count_or_sort(array)
        return Coded(codes, present.tolist())
    if array.dtype.kind == "f":
        there = ~np.isnan(array)
        present, inverse = np.unique(array[there], return_inverse=True)
        codes = np.full(len(array), -1, dtype=np.intp)
        codes[there] = inverse
        return Coded(codes, present.tolist())
    return code_list(array.astype(object).tolist())


def _code_booleans(array: NDArray[np.bool_]) -> Coded:
    if len(array) and array.any() and not array.all():
        return Coded(array.astype(np.int8), [False, True])
    return Coded(np.zeros(len(array), dtype=np.int8), array[:1].tolist())


def _count_or_sort(keys: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the whole numbers that occur, sorted, and where each key is among them."""
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
    """Return a code per row of the combinations that occur, sorted, and the first row of each.

    Columns hold codes from 0; combinations are sorted by the first column, then by the second.
    """
    joint = np.zeros(len(columns[0]), dtype=np.intp)
    for codes in columns:
        _, joint = _count_or_sort(joint * (int(codes.max(initial=0)) + 1) + codes)
    first_row = np.empty(int(joint.max(initial=-1)) + 1, dtype=np.intp)
    first_row[joint[::-1]] = np.arange(len(joint))[::-1]
    return joint, first_row


# ---------------------------------------------------------------------------------------------
# Columns of frames: each library has codes of its own, or finds them faster than we could


def code_series(series: nw.Series[Any]) -> Coded:
    """Return a column of any type as codes."""
    dtype, native = series.dtype, series.to_native()
    if dtype.is_numeric() or dtype == nw.Boolean:
        if not series.is_null().any():
            return code_array(series.to_numpy())
    elif dtype in (nw.String, nw.Categorical, nw.Enum):
        if series.implementation.is_pandas():
            return _code_pandas(native)
        if series.implementation.is_polars():
            return _code_polars(series)
        if series.implementation.is_pyarrow():
            return _code_pyarrow(native)
    return code_list(series.to_list())


def _code_pandas(native: Any) -> Coded:
    if not hasattr(native, "cat"):
        codes, values = native.factorize()
        return _tidy(codes, values.tolist())
    return _tidy_used(native.array.codes, native.array.categories.tolist())


def _code_polars(series: nw.Series[Any]) -> Coded:
    values = series.unique(maintain_order=True).drop_nulls().to_list()
    codes = series.cast(nw.Enum(values)).to_native().to_physical()
    signed = nw.from_native(codes, series_only=True).cast(nw.Int32).fill_null(-1)
    return Coded(signed.to_numpy(), values)


def _code_pyarrow(native: Any) -> Coded:
    encoded = native.combine_chunks().dictionary_encode()
    return _tidy_used(encoded.indices.fill_null(-1).to_numpy(), encoded.dictionary.to_pylist())


def _tidy_used(codes: NDArray[np.signedinteger[Any]], values: list[Any]) -> Coded:
    """Make the values plain that occur; a dictionary may hold more."""
    is_used = np.zeros(len(values) + 1, dtype=bool)
    is_used[codes] = True  # missing, −1, marks the place behind the last one
    return _tidy(codes, [v if used else None for v, used in zip(values, is_used, strict=False)])
