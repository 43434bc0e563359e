"""Raw columns cut into few bins, so that one count over all columns shows every short rule.

Numbers are cut at round edges, categories are kept if they are frequent; a missing value has a bin
of its own. All columns share one numbering of bins, padded to the same width: numeric columns
first, then those of categories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from commod._data.binning import bin_edges
from commod._data.columns import Column, Scalar

N_BINS = 32  # per number: fine enough to find a range, coarse enough for round edges
N_CATEGORIES = 60  # a rule lists few categories: rare ones cannot matter to it
SHARE_OF_BIN = 400  # a bin has at least one in so many rows


@dataclass(frozen=True)
class ColumnBins:
    """How one column was cut: at `edges`, or into `categories`, the most frequent first."""

    column: Column
    edges: tuple[float, ...] = ()
    categories: tuple[Scalar, ...] = ()

    @property
    def n_values(self) -> int:
        """Return the number of bins that a rule may choose from, missing values aside."""
        is_number = self.column.kind == "numeric"
        return len(self.edges) + 1 if is_number else len(self.categories)


@dataclass(frozen=True)
class Ranges:
    """Ranges of bins, from `first` to `stop` − 1, both (m,), the same for all p numbers.

    Of shape (p, m): `is_none` where a number has not so many bins, `is_inner` where the range has
    two ends, `is_whole` where it has none.
    """

    first: NDArray[np.intp]
    stop: NDArray[np.intp]
    is_none: NDArray[np.bool_]
    is_inner: NDArray[np.bool_]
    is_whole: NDArray[np.bool_]


@dataclass(frozen=True)
class Binned:
    """Some rows of all columns as bins.

    `codes` (n, c) numbers the bin of each row and column among all bins: column i has the bins from
    i · width on, of which the last holds missing values and the last but one, for categories, the
    rare ones. The first `n_numeric` columns are numbers.
    """

    columns: tuple[ColumnBins, ...]
    n_numeric: int
    codes: NDArray[np.intp]
    width: int

    @cached_property
    def n_values(self) -> NDArray[np.intp]:
        """Return the number of bins of each column that hold values, shape (c,)."""
        return np.array([c.n_values for c in self.columns], dtype=np.intp)

    @cached_property
    def ranges(self) -> Ranges:
        """Return all ranges of bins of the numbers."""
        n_values = self.n_values[: self.n_numeric, None]
        first, stop = np.triu_indices(int(n_values.max(initial=0)) + 1, k=1)
        return Ranges(
            first=first,
            stop=stop,
            is_none=stop > n_values,
            is_inner=(first > 0) & (stop < n_values),
            is_whole=(first == 0) & (stop == n_values),
        )

    def count(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return how many of some rows each bin of each column holds, shape (c, width)."""
        found = np.bincount(self.codes[rows].ravel(), minlength=len(self.columns) * self.width)
        return found.reshape(len(self.columns), self.width).astype(np.float64)


def cut_columns(columns: Sequence[Column], weight: NDArray[np.float64]) -> Binned:
    """Return the columns in bins; those with a single bin tell nobody apart and are left out."""
    min_size = max(1, len(weight) // SHARE_OF_BIN)
    numbers = [_cut_number(c, weight, min_size) for c in columns if c.kind == "numeric"]
    others = [_keep_categories(c, weight) for c in columns if c.kind == "category"]
    kept = [[c for c in some if c is not None] for some in (numbers, others)]
    cut = (*kept[0], *kept[1])
    width = max((c.n_values for c in cut), default=0) + 2
    codes = np.empty((len(weight), len(cut)), dtype=np.intp)
    for i, one in enumerate(cut):
        codes[:, i] = i * width + _codes(one, width)
    return Binned(cut, len(kept[0]), codes, width)


def _cut_number(column: Column, weight: NDArray[np.float64], min_size: int) -> ColumnBins | None:
    missing = column.is_missing()
    there = ~missing
    edges = bin_edges(column.values[there], weight[there], n_bins=N_BINS, min_size=min_size)
    if not edges and (missing.all() or not missing.any()):
        return None
    return ColumnBins(column, edges=edges)


def _keep_categories(column: Column, weight: NDArray[np.float64]) -> ColumnBins | None:
    size = np.bincount(column.values + 1, weight, minlength=len(column.categories) + 1)
    if np.count_nonzero(size) < 2:
        return None
    there = [(n, value) for n, value in zip(size[1:], column.categories, strict=True) if n]
    there.sort(key=_most_frequent)  # not by first row: the order of rows must not matter
    return ColumnBins(column, categories=tuple(value for _, value in there[:N_CATEGORIES]))


def _most_frequent(entry: tuple[float, Scalar]) -> tuple[float, bool, Scalar]:
    n, value = entry
    return -n, isinstance(value, str), value


def _codes(one: ColumnBins, width: int) -> NDArray[np.intp]:
    values = one.column.values
    if one.column.kind == "numeric":
        found = np.searchsorted(one.edges, values, side="right")
        return np.where(np.isnan(values), width - 1, found)
    place = {value: i for i, value in enumerate(one.categories)}
    table = [place.get(value, width - 2) for value in one.column.categories]
    return np.array([*table, width - 1], dtype=np.intp)[values]  # missing is −1: the last entry
