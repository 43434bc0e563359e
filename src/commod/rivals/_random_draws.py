"""Random draws that belong to a row: the same row and seed always give the same number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from commod._data.columns import Column

Bits = NDArray[np.uint64]


def seed_from(random_state: Any) -> int:
    """Return the seed of an update's random draws, taken once by `fit`; None means 0."""
    if random_state is None:
        return 0
    return int(check_random_state(random_state).randint(2**31 - 1))


def random_draws(
    columns: Sequence[Column], scores: NDArray[np.float64], seed: int
) -> NDArray[np.float64]:
    """Return a uniform number in [0, 1) for each row, shape (n,).

    The number depends on the row's values and the seed. It does not depend on other rows, their
    order or a random generator: equal rows are decided alike, in every call.

    The base score counts only where there are no columns, and is rounded first: its last bit may
    depend on the batch.

    Examples
    --------
    >>> ages = Column("age", "numeric", np.array([30.0, 40.0, 30.0]))
    >>> draws = random_draws([ages], np.array([0.5, 0.5, 0.5]), seed=0)
    >>> bool(draws[0] == draws[2] != draws[1])
    True
    """
    state = np.full(len(scores), seed, dtype=np.uint64)
    for bits in [_column_bits(column) for column in columns] or [_number_bits(np.round(scores, 9))]:
        state = _mix(state, bits)
    return (state >> np.uint64(11)).astype(np.float64) / 2.0**53


def _number_bits(numbers: NDArray[np.float64]) -> Bits:
    """Return the bits of each number; −0 counts as 0, and all NaN are equal."""
    canonical = np.where(np.isnan(numbers), np.nan, numbers) + 0.0
    return canonical.astype(np.float64).view(np.uint64)


def _column_bits(column: Column) -> Bits:
    if column.kind == "numeric":
        return _number_bits(column.values)
    from pandas.util import hash_array

    # hash the value of a category, not its code: the code depends on the other rows
    values = np.array([f"{type(c).__name__} {c}" for c in (*column.categories, None)], dtype=object)
    return hash_array(values, categorize=False)[column.values].astype(np.uint64)


def _mix(state: Bits, bits: Bits) -> Bits:
    """Return the state after mixing in the bits of each row: the finaliser of splitmix64."""
    with np.errstate(over="ignore"):
        mixed = state * np.uint64(0x9E3779B97F4A7C15) + bits + np.uint64(0x632BE59BD9B4E019)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
