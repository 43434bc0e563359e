"""Lots that belong to a row: the same row and seed always draw the same number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from commod._data.columns import Column

__all__ = ["draw_lots", "seed_of"]

Words = NDArray[np.uint64]


def seed_of(random_state: Any) -> int:
    """Return the seed of an update's lots, taken once when it is fitted; None means 0."""
    if random_state is None:
        return 0
    return int(check_random_state(random_state).randint(2**31 - 1))


def draw_lots(
    columns: Sequence[Column], scores: NDArray[np.float64], seed: int
) -> NDArray[np.float64]:
    """Return a uniform number in [0, 1) for each row, shape (n,).

    It depends on the row's values and the seed, not on the other rows, their order or any
    generator: who asks twice gets the same answer, and rows that are alike are decided alike. The
    base score, whose last bit may depend on the batch, counts only where there is no column, and
    then rounded.

    Examples
    --------
    >>> ages = Column("age", "numeric", np.array([30.0, 40.0, 30.0]))
    >>> lots = draw_lots([ages], np.array([0.5, 0.5, 0.5]), seed=0)
    >>> bool(lots[0] == lots[2] != lots[1])
    True
    """
    state = np.full(len(scores), seed, dtype=np.uint64)
    for words in [_column_words(c) for c in columns] or [_words(np.round(scores, 9))]:
        state = _mixed(state, words)
    return (state >> np.uint64(11)).astype(np.float64) / 2.0**53


def _words(numbers: NDArray[np.float64]) -> Words:
    """Return the bits of each number; −0 is 0 and every NaN the same."""
    plain = np.where(np.isnan(numbers), np.nan, numbers) + 0.0
    return plain.astype(np.float64).view(np.uint64)


def _column_words(column: Column) -> Words:
    if column.kind == "numeric":
        return _words(column.values)
    from pandas.util import hash_array

    # a category is known by its value: its code depends on the other rows
    names = np.array([f"{type(c).__name__} {c}" for c in (*column.categories, None)], dtype=object)
    return hash_array(names, categorize=False)[column.values].astype(np.uint64)


def _mixed(state: Words, words: Words) -> Words:
    """Return the state after taking in one word per row: the finaliser of splitmix64."""
    with np.errstate(over="ignore"):
        mixed = state * np.uint64(0x9E3779B97F4A7C15) + words + np.uint64(0x632BE59BD9B4E019)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
