"""Hold standardised terms of many rows: numbers as a dense array, categories as codes.

Three things make weighted sums fast:

1. A category's weight is looked up by its code, not multiplied out.
2. Columns with few categories share one code for their combination: ten columns take about three
   lookups.
3. Many rows are processed in blocks that fit into the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from commod._data.arrays import Floats
from commod._data.encoding import TermTable

BLOCK_SIZE = 1 << 14  # rows per block
MAX_COMBINED_ENTRIES = 4096  # the table of combined columns has to stay in the cache
MAX_COMBINED_TERMS = 256  # computing that table is a product with all of these terms
ROWS_PER_ENTRY = 8  # with fewer rows per entry, computing the table costs more than it saves
# Eight-byte codes are the fastest to look up; above this number of rows they take too much memory.
MAX_ROWS_WITH_WIDE_CODES = 1 << 17


class Lookup(NamedTuple):
    """One or several columns of categories: `entry` (n,) is the row's entry in a table.

    - `slots` (c,): the positions of the columns' terms among the categories of the design.
    - `levels` (n_columns, n_entries): the position of the term that each column has in an entry,
      −1 for none.
    - `matrix` (n_entries, c): its product with the weights of the terms is the table. None for a
      single column: its entries are its terms, in order, and a last one for rows with none.
    """

    entry: NDArray[np.integer]
    slots: NDArray[np.intp]
    levels: NDArray[np.intp]
    matrix: Floats | None = None

    @classmethod
    def of(cls, entry: NDArray[np.integer], slots: NDArray[np.intp]) -> Lookup:
        """Return the lookup of a single column."""
        return cls(entry, slots, np.append(slots, -1)[None])

    def table(self, weights: Floats) -> Floats:
        """Return what each entry adds, from the weights of all categories of the design."""
        if self.matrix is None:
            table = np.zeros(len(self.slots) + 1)  # faster than np.append
            table[:-1] = weights[self.slots]
            return table
        return np.asarray(self.matrix @ weights[self.slots])

    @property
    def n_entries(self) -> int:
        """Return the length of the table."""
        return self.levels.shape[1]

    @property
    def n_levels(self) -> int:
        """Return how many entries of a single column the rows use: all, or all but the last."""
        return int(self.entry.max(initial=0)) + 1

    def totals_by_slot(self, totals: Floats) -> Floats:
        """Return totals of the terms, (c,), from totals of the entries."""
        return totals[:-1] if self.matrix is None else self.matrix.T @ totals


class PreparedWeights(NamedTuple):
    """Weights ready to be applied: those of the numbers, and a table for each lookup."""

    numeric: Floats
    tables: list[tuple[NDArray[np.integer], Floats]]


@dataclass(frozen=True)
class Design:
    """Standardised terms of n rows: dense numbers (n, p), and categories behind lookups.

    - `inverse` (c,): one over the standard deviation of each category.
    - `terms` (d,): the term of each column of the design, numbers first.

    Categories are scaled, not centred: the offset absorbs the difference.
    """

    numeric: Floats
    lookups: tuple[Lookup, ...]
    inverse: Floats
    terms: NDArray[np.intp]

    @classmethod
    def of(cls, table: TermTable, mean: Floats, scale: Floats) -> Design:
        """Return the design of a table; terms without spread are left out."""
        keep = scale[table.numeric_terms] > 0
        numeric_terms = table.numeric_terms[keep]
        numeric = np.empty((len(table), len(numeric_terms)))
        for rows in row_blocks(len(table)):
            centred = table.numeric[rows][:, keep] - mean[numeric_terms]
            numeric[rows] = centred / scale[numeric_terms]
        categories = np.setdiff1d(np.flatnonzero(scale > 0), table.numeric_terms)
        terms = np.concatenate([numeric_terms, categories])
        lookups = _lookups(table, categories)
        return cls(numeric, lookups, 1 / scale[categories], terms)

    def __len__(self) -> int:
        return len(self.numeric)

    @property
    def width(self) -> int:
        """Return d, the number of columns."""
        return len(self.terms)

    # -- weighted sums of the columns ---------------------------------------------------------

    def prepare(self, w: Floats) -> PreparedWeights:
        """Return weights (d,) in the form that `weighted_sums` takes."""
        p = self.numeric.shape[1]
        weights = w[p:] * self.inverse
        tables = [(lookup.entry, lookup.table(weights)) for lookup in self.lookups]
        return PreparedWeights(w[:p], tables)

    def weighted_sums(self, prepared: PreparedWeights, rows: slice) -> Floats:
        """Return the weighted sum of the columns for each of `rows`."""
        sums = self.numeric[rows] @ prepared.numeric
        for entry, table in prepared.tables:
            sums += table.take(entry[rows])
        return sums

    def times(self, w: Floats) -> Floats:
        """Return the weighted sum of the columns for each row, shape (n,)."""
        prepared = self.prepare(w)
        sums = np.empty(len(self))
        for rows in row_blocks(len(self)):
            sums[rows] = self.weighted_sums(prepared, rows)
        return sums

    # -- weighted sums of the rows ------------------------------------------------------------

    def zero_totals(self) -> list[Floats]:
        """Return the totals over no rows, for `add_to_totals`."""
        entries = [np.zeros(lookup.n_entries) for lookup in self.lookups]
        return [np.zeros(self.numeric.shape[1]), *entries]

    def add_to_totals(self, totals: list[Floats], g: Floats, rows: slice) -> None:
        """Add `rows`, weighted by `g`, to the totals in place."""
        numeric, *by_entry = totals
        numeric += g @ self.numeric[rows]
        for lookup, entries in zip(self.lookups, by_entry, strict=True):
            entries += np.bincount(lookup.entry[rows], g, minlength=len(entries))

    def gradient_from(self, totals: list[Floats]) -> Floats:
        """Return the totals as one number for each column, shape (d,)."""
        numeric, *by_entry = totals
        categories = np.zeros(len(self.inverse))
        for lookup, entries in zip(self.lookups, by_entry, strict=True):
            categories[lookup.slots] = lookup.totals_by_slot(entries)
        return np.concatenate([numeric, categories * self.inverse])

    def gradient(self, g: Floats) -> Floats:
        """Return the sum of the rows weighted by `g` (n,), shape (d,)."""
        totals = self.zero_totals()
        for rows in row_blocks(len(self)):
            self.add_to_totals(totals, g[rows], rows)
        return self.gradient_from(totals)

    def present(self) -> sparse.csr_array:
        """Return the categories as a sparse matrix, (n, c)."""
        total = sparse.csr_array((len(self), len(self.inverse)))
        for lookup in self.lookups:
            shape = lookup.n_entries, len(lookup.slots)
            matrix = np.eye(*shape) if lookup.matrix is None else lookup.matrix
            entries = np.zeros((lookup.n_entries, len(self.inverse)))
            entries[:, lookup.slots] = matrix * self.inverse[lookup.slots]
            total = total + sparse.csr_array(entries)[lookup.entry]
        return sparse.csr_array(total)


def row_blocks(n: int) -> Iterator[slice]:
    """Yield slices that together cover n rows."""
    for start in range(0, n, BLOCK_SIZE):
        yield slice(start, min(start + BLOCK_SIZE, n))


# ---------------------------------------------------------------------------------------------
# Lookups


def _lookups(table: TermTable, categories: NDArray[np.intp]) -> tuple[Lookup, ...]:
    """Return lookups for the columns of codes; `categories` are their terms, sorted."""
    starts = np.concatenate([table.numeric_terms, table.code_terms, [table.n_terms]])
    is_wide = len(table) <= MAX_ROWS_WITH_WIDE_CODES
    dtype = np.intp if is_wide else np.min_scalar_type(table.n_terms)
    single = []
    for codes, first in zip(table.codes.T, table.code_terms, strict=True):
        last = starts[starts > first].min()
        slots = np.flatnonzero((categories >= first) & (categories < last))
        if len(slots):
            entries = np.full(table.n_terms + 1, len(slots), dtype=dtype)
            entries[categories[slots]] = np.arange(len(slots))
            single.append(Lookup.of(entries[codes], slots))
    max_entries = min(MAX_COMBINED_ENTRIES, len(table) // ROWS_PER_ENTRY)
    return tuple(_combined(lookups) for lookups in _partition(single, max_entries))


def _partition(single: Sequence[Lookup], max_entries: int) -> list[list[Lookup]]:
    """Return single columns in groups with at most `max_entries` combinations, small ones first."""
    groups: list[list[Lookup]] = []
    n_entries, n_terms = max_entries + 1, 0
    for lookup in sorted(single, key=lambda lookup: len(lookup.slots)):
        n_entries, n_terms = n_entries * lookup.n_levels, n_terms + len(lookup.slots)
        if n_entries > max_entries or n_terms > MAX_COMBINED_TERMS:
            groups.append([])
            n_entries, n_terms = lookup.n_levels, len(lookup.slots)
        groups[-1].append(lookup)
    return groups


def _combined(lookups: Sequence[Lookup]) -> Lookup:
    """Return one lookup for several single columns."""
    if len(lookups) == 1:
        return lookups[0]
    sizes = [lookup.n_levels for lookup in lookups]
    n_entries = int(np.prod(sizes))
    is_wide = lookups[0].entry.dtype == np.intp
    dtype = np.dtype(np.intp if is_wide else np.min_scalar_type(n_entries))
    entry = np.zeros(len(lookups[0].entry), dtype)
    for lookup, size in zip(lookups, sizes, strict=True):
        entry *= dtype.type(size)
        entry += lookup.entry.astype(dtype, copy=False)
    chosen = np.unravel_index(np.arange(n_entries), sizes)
    levels = np.array([lookup.levels[0][at] for lookup, at in zip(lookups, chosen, strict=True)])
    slots = np.concatenate([lookup.slots for lookup in lookups])
    return Lookup(entry, slots, levels, (levels[:, :, None] == slots).any(axis=0) * 1.0)
