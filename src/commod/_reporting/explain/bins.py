"""Cut raw columns into a few bins, so that one count per bin is enough to rate every short rule.

Numbers are cut at round edges. Frequent categories get a bin each, and so do missing values. Bins
are numbered over all columns, padded to the same width per column: numeric columns come first, then
columns of categories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from commod._data.binning import bin_edges
from commod._data.columns import Column, Scalar
from commod._data.disclosure import MIN_CATEGORY_SIZE

N_BINS = 32  # per numeric column: enough to locate a range, few enough for round edges
MAX_CATEGORY_BINS = 60  # a rule lists a few categories only
MAX_BINS_BY_SIZE = 400  # a bin holds at least one in 400 rows


@dataclass(frozen=True)
class ColumnBins:
    """The bins of one column: cut at `edges`, or one per category, the most frequent first."""

    column: Column
    edges: tuple[float, ...] = ()
    categories: tuple[Scalar, ...] = ()

    @property
    def n_values(self) -> int:
        """Return the number of bins that a rule may choose from, without missing values."""
        is_number = self.column.kind == "numeric"
        return len(self.edges) + 1 if is_number else len(self.categories)


@dataclass(frozen=True)
class BinRanges:
    """All ranges of bins, from `first` to `stop` − 1, both (m,), for p numeric columns.

    The masks have shape (p, m). `is_beyond`: the column has fewer bins than `stop`. `is_bounded`:
    the range has two ends. `is_everything`: the range has none.
    """

    first: NDArray[np.intp]
    stop: NDArray[np.intp]
    is_beyond: NDArray[np.bool_]
    is_bounded: NDArray[np.bool_]
    is_everything: NDArray[np.bool_]


@dataclass(frozen=True)
class BinnedColumns:
    """The rows of a sample as bins.

    `codes` (n, c) has the bin of each row and column. Column i owns the bins from i · width on: the
    last holds missing values, and the last but one holds values, or missing values, of too few
    people to be named. The first `n_numeric` columns are numbers.
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
    def ranges(self) -> BinRanges:
        """Return all ranges of bins of the numeric columns."""
        n_values = self.n_values[: self.n_numeric, None]
        first, stop = np.triu_indices(int(n_values.max(initial=0)) + 1, k=1)
        return BinRanges(
            first=first,
            stop=stop,
            is_beyond=stop > n_values,
            is_bounded=(first > 0) & (stop < n_values),
            is_everything=(first == 0) & (stop == n_values),
        )

    def count(self, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return how many of the rows in a mask each bin of each column holds, (c, width)."""
        shape = len(self.columns), self.width
        codes = self.codes[np.flatnonzero(rows)].ravel()
        counts = np.bincount(codes, minlength=shape[0] * shape[1])
        return counts.reshape(shape).astype(np.float64)


def bin_columns(columns: Sequence[Column], weight: NDArray[np.float64]) -> BinnedColumns:
    """Return the columns in bins; a column with a single bin separates nobody and is left out."""
    min_size = max(1, len(weight) // MAX_BINS_BY_SIZE)
    numbers = [_bin_number(c, weight, min_size) for c in columns if c.kind == "numeric"]
    others = [_bin_categories(c, weight) for c in columns if c.kind == "category"]
    binned = tuple(c for c in (*numbers, *others) if c is not None)
    width = max((c.n_values for c in binned), default=0) + 2
    codes = np.empty((len(weight), len(binned)), dtype=np.intp)
    for i, bins in enumerate(binned):
        codes[:, i] = i * width + _bin_codes(bins, width)
    return BinnedColumns(binned, sum(c is not None for c in numbers), codes, width)


def _bin_number(column: Column, weight: NDArray[np.float64], min_size: int) -> ColumnBins | None:
    known = ~column.is_missing()
    edges = bin_edges(column.values[known], weight[known], n_bins=N_BINS, min_size=min_size)
    is_constant = not edges and (known.all() or not known.any())
    return None if is_constant else ColumnBins(column, edges=edges)


def _bin_categories(column: Column, weight: NDArray[np.float64]) -> ColumnBins | None:
    size = np.bincount(column.values + 1, weight, minlength=len(column.categories) + 1)
    if np.count_nonzero(size) < 2:
        return None
    # A rule must not name a category of a few people, however many people a sampled row stands for.
    n_people = np.bincount(column.values + 1, minlength=len(column.categories) + 1)
    size[n_people < MIN_CATEGORY_SIZE] = 0.0
    if not size.any():
        return None
    # Ties are sorted by value, not by first row: the order of rows must not matter.
    sized = [
        (-n, isinstance(value, str), value)
        for n, value in zip(size[1:], column.categories, strict=True)
        if n
    ]
    return ColumnBins(
        column, categories=tuple(value for *_, value in sorted(sized)[:MAX_CATEGORY_BINS])
    )


def _bin_codes(bins: ColumnBins, width: int) -> NDArray[np.intp]:
    values, is_missing = bins.column.values, bins.column.is_missing()
    missing = width - 1 if np.count_nonzero(is_missing) >= MIN_CATEGORY_SIZE else width - 2
    if bins.column.kind == "numeric":
        codes = np.searchsorted(bins.edges, values, side="right")
        return np.where(is_missing, missing, codes)
    code_of = {value: i for i, value in enumerate(bins.categories)}
    table = [code_of.get(value, width - 2) for value in bins.column.categories]
    return np.array([*table, missing], dtype=np.intp)[values]  # missing is −1: the last entry
