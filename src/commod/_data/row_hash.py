"""Hash rows by their content, so that what depends on chance does not depend on their order.

The hash of a row is the same for pandas, polars and pyarrow, for numbers of any width, and for
columns in any order. Equal rows get different numbers: they are counted among each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column, Scalar

Hashes = NDArray[np.uint64]


def row_hashes(columns: Sequence[Column], ties: Sequence[NDArray[np.float64]] = ()) -> Hashes:
    """Return a number of 64 bits for each row, shape (n,).

    Parameters
    ----------
    columns : sequence of Column
        What the hash depends on.
    ties : sequence of ndarray of shape (n,), default=()
        Numbers by which equal rows are counted, the most important first; in the order of the rows
        without any.

    Examples
    --------
    >>> age = Column("age", "numeric", np.array([31.0, 40.0, 31.0]))
    >>> first, second, third = row_hashes([age]).tolist()
    >>> first == third, row_hashes([age.take([1, 0])]).tolist() == [second, first]
    (False, True)
    """
    total = np.zeros(len(columns[0]) if columns else 0, dtype=np.uint64)
    for column in columns:
        total += spread_bits(_values(column) ^ _text_hash(f"column {column.name}"))
    order = np.argsort(total, kind="stable")
    ordered = total[order]
    if ties and (ordered[1:] == ordered[:-1]).any():
        order = np.lexsort([*reversed(ties), total])
    is_new = np.append(True, ordered[1:] != ordered[:-1]) if len(ordered) else np.zeros(0, bool)
    position = np.arange(len(ordered))
    number = np.empty(len(total), dtype=np.uint64)
    number[order] = position - np.maximum.accumulate(np.where(is_new, position, 0))
    return spread_bits(total + spread_bits(number))


def _values(column: Column) -> Hashes:
    if column.kind == "numeric":
        values = column.values + 0.0  # −0 is 0
        return np.where(np.isnan(values), np.nan, values).view(np.uint64)
    table = [_scalar_hash(value) for value in (*column.categories, None)]
    return np.array(table, dtype=np.uint64)[column.values]  # missing is −1, the last entry


def _scalar_hash(value: Scalar | None) -> np.uint64:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _text_hash(f"number {float(value)!r}")
    return _text_hash(f"{type(value).__name__} {value}")


def _text_hash(text: str) -> np.uint64:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def spread_bits(values: Hashes) -> Hashes:
    """Return numbers whose bits are spread: the last step of SplitMix64."""
    mixed = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
