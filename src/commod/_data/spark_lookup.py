"""Look up a number for each value of a Spark column, in constant time per row.

Spark searches a map literal linearly. Here the known values are spread over slots by a hash that
NumPy and Spark compute alike, so a row is compared with the few values of one slot. The slots are
two constants of the query, which Spark reads once, whatever the number of rows.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._io.queries import quoted

Frame = TypeVar("Frame", nw.LazyFrame[Any], nw.DataFrame[Any] | nw.LazyFrame[Any])

VALUES_PER_SLOT = 4  # fewer values make more lists, which every task of Spark receives
LARGEST = 1e100  # larger numbers share a slot: a scaled number stays finite
SCALES = tuple(2.0**k for k in (0, 8, 16, 24, 32, 40))  # powers of two, which round nothing
N_MODULI = 4
EXACT = 2**53  # doubles hold whole numbers exactly up to here


def is_spark(frame: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> bool:
    """Return whether Spark holds this frame, through Spark Connect or not."""
    return frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect()


def spark_functions(frame: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> Any:
    """Return the module of Spark's functions for this frame."""
    is_remote = frame.implementation.is_pyspark_connect()
    return import_module("pyspark.sql.connect.functions" if is_remote else "pyspark.sql.functions")


@dataclass(frozen=True)
class SparkLookup:
    """The numbers that a lookup gives to the values of a column.

    - `column`: the column to read.
    - `numbers`: the number of each known value: all values are text, or all are floats.
    - `unknown`: the number of any other value.
    - `missing`: the number of NULL, and of NaN and infinity in a column of numbers.
    """

    column: str
    numbers: Mapping[Any, float]
    unknown: float
    missing: float

    @property
    def is_text(self) -> bool:
        """Return whether the known values are text."""
        return isinstance(next(iter(self.numbers)), str)


def can_be_looked_up(values: Sequence[Any]) -> bool:
    """Return whether these values are all text, or all numbers that a double holds exactly.

    Examples
    --------
    >>> can_be_looked_up(["a", "b"]), can_be_looked_up([1, 2.5]), can_be_looked_up([2**60 + 1])
    (True, True, False)
    """
    kinds = {type(value) for value in values}
    return kinds == {str} or (kinds <= {int, float} and all(abs(v) <= EXACT for v in values))


def with_looked_up(frame: Frame, lookups: Mapping[str, SparkLookup]) -> Frame:
    """Return a Spark frame with a new column of doubles for each lookup, by its name.

    Text is compared byte by byte, whatever the collation of its column.
    """
    if not lookups:
        return frame
    functions = spark_functions(frame)
    native: Any = frame.to_native()
    added = {name: _looked_up(functions, lookup) for name, lookup in lookups.items()}
    return nw.from_native(native.withColumns(added))


def _looked_up(F: Any, lookup: SparkLookup) -> Any:
    """Return the number of each row as a Spark column; `F` is the module of functions."""
    column = F.col(quoted(lookup.column, "`"))
    known = list(lookup.numbers)
    if lookup.is_text:
        value = F.collate(column, "UTF8_BINARY")
        is_missing = value.isNull()
        n_slots, slots = text_slots([str(key) for key in known])
        slot = (F.crc32(value.cast("binary")) % n_slots).cast("int")
    else:
        value = column.cast("double")
        is_missing = value.isNull() | (F.abs(value) >= float("inf"))  # NaN is above infinity
        n_slots, scale, slots = number_slots([float(key) for key in known])
        slot = (F.least(F.abs(value), F.lit(LARGEST)) * scale % float(n_slots)).cast("int")
    keys, numbers = _in_slots(n_slots, slots, known, list(lookup.numbers.values()))
    kind = "string" if lookup.is_text else "double"
    keys_of_slot = F.get(F.from_json(F.lit(keys), f"array<array<{kind}>>"), slot)
    numbers_of_slot = F.get(F.from_json(F.lit(numbers), "array<array<double>>"), slot)
    position = F.array_position(keys_of_slot, value).cast("int") - 1
    found = F.coalesce(F.get(numbers_of_slot, position), F.lit(float(lookup.unknown)))
    return F.when(is_missing, F.lit(float(lookup.missing))).otherwise(found)


def _in_slots(
    n_slots: int, slots: NDArray[np.intp], keys: Sequence[Any], numbers: Sequence[float]
) -> tuple[str, str]:
    """Return the keys and the numbers of all slots as JSON: a list for each slot."""
    keys_of_slot: list[list[Any]] = [[] for _ in range(n_slots)]
    numbers_of_slot: list[list[float]] = [[] for _ in range(n_slots)]
    for slot, key, number in zip(slots.tolist(), keys, numbers, strict=True):
        keys_of_slot[slot].append(key)
        numbers_of_slot[slot].append(float(number))
    dense = (",", ":")
    return json.dumps(keys_of_slot, separators=dense), json.dumps(numbers_of_slot, separators=dense)


def text_slots(texts: Sequence[str]) -> tuple[int, NDArray[np.intp]]:
    """Return the number of slots and the slot of each text, shape (n,).

    Examples
    --------
    >>> n_slots, slots = text_slots(["Bonn", "Köln"])
    >>> n_slots, slots.tolist()
    (1, [0, 0])
    """
    n_slots = len(texts) // VALUES_PER_SLOT + 1
    slots = [zlib.crc32(text.encode()) % n_slots for text in texts]
    return n_slots, np.array(slots, dtype=np.intp)


def number_slots(numbers: Sequence[float]) -> tuple[int, float, NDArray[np.intp]]:
    """Return the number of slots, a scale, and the slot of each number, shape (n,).

    The slot is the remainder of the scaled number. The scale and the number of slots are those
    that spread these numbers best: multiples of 1,000 and fractions of 1 need different ones.

    Examples
    --------
    >>> n_slots, scale, slots = number_slots([i / 1000 for i in range(1000)])
    >>> bool(max(np.bincount(slots)) < 10)
    True
    """
    size = np.minimum(np.abs(np.asarray(numbers, dtype=np.float64)), LARGEST)
    fewest = len(numbers) // VALUES_PER_SLOT + 1

    def slots_of(n_slots: int, scale: float) -> NDArray[np.intp]:
        return np.fmod(size * scale, float(n_slots)).astype(np.intp)

    choices = product(range(fewest, fewest + N_MODULI), SCALES)
    n_slots, scale = min(choices, key=lambda choice: np.bincount(slots_of(*choice)).max())
    return n_slots, scale, slots_of(n_slots, scale)
