"""Standardised terms of many rows: numbers beside categories, which stay codes.

A weighted sum of the categories is looked up, not multiplied out. Columns of few categories are
told by one code for their combination, so that ten of them are three lookups; many rows are gone
through in blocks that fit into the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from commod._data.encoding import TermTable

__all__ = ["Design", "blocks", "unit"]

Floats = NDArray[np.float64]

BLOCK = 1 << 14  # rows that are gone through together
COMBINED = 4096  # entries of a table for combined columns: they must stay in the cache
COMBINED_TERMS = 256  # and their terms no more than these: the table is a product with all of them
ROWS_PER_ENTRY = 8  # and there must be so many rows for each, or making the table costs more
SMALL_CODES = 1 << 17  # rows: above, codes are kept in few bytes, though lookups want eight


class Lookup(NamedTuple):
    """One or several columns of categories: `entry` (n,) is the row's entry in a table.

    `slots` (c,) are the positions of their terms among the categories of the design. The table is
    `matrix` (entries, c) times their weights; None for a single column, whose entries are its
    terms, in order, and a last one for rows that have none of them. `levels` (columns, entries)
    tells the position of the term that each column has in an entry, −1 for none.
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
        """Return what each entry adds, from the weights of all categories."""
        if self.matrix is None:
            entries = np.zeros(len(self.slots) + 1)
            entries[:-1] = weights[self.slots]
            return entries
        return np.asarray(self.matrix @ weights[self.slots])

    @property
    def n_entries(self) -> int:
        """Return the length of the table."""
        return len(self.slots) + 1 if self.matrix is None else len(self.matrix)

    def by_slot(self, entries: Floats) -> Floats:
        """Return the sums of the terms, (c,), from those of the entries."""
        return entries[:-1] if self.matrix is None else self.matrix.T @ entries


class Prepared(NamedTuple):
    """Weights ready to be applied: those of the numbers and a table for each lookup in use."""

    numeric: Floats
    tables: list[tuple[int, Floats]]


@dataclass(frozen=True)
class Design:
    """Standardised terms of n rows: dense numbers (n, p) beside categories behind lookups.

    `terms` (d,) says which term each column of the design is, `kept` (d,) where it stands among
    all columns, numbers first. `inverse` (c,) is one over the standard deviation of each category.
    Categories are scaled, not centred: the cut takes up the difference.
    """

    numeric: Floats
    lookups: tuple[Lookup, ...]
    inverse: Floats
    terms: NDArray[np.intp]
    kept: NDArray[np.intp]

    @classmethod
    def of(cls, table: TermTable, mean: Floats, scale: Floats) -> Design:
        """Return the design of a table; terms without spread are left out."""
        numeric_terms = table.numeric_terms[scale[table.numeric_terms] > 0]
        keep = np.isin(table.numeric_terms, numeric_terms)
        numeric = np.empty((len(table), len(numeric_terms)))
        for rows in blocks(len(table)):
            numeric[rows] = (table.numeric[rows][:, keep] - mean[numeric_terms]) / scale[
                numeric_terms
            ]
        others = np.setdiff1d(np.flatnonzero(scale > 0), table.numeric_terms)
        terms = np.concatenate([numeric_terms, others])
        return cls(
            numeric, _lookups(table, others), 1 / scale[others], terms, np.arange(len(terms))
        )

    def __len__(self) -> int:
        return len(self.numeric)

    @property
    def width(self) -> int:
        """Return d, the number of columns."""
        return len(self.terms)

    def columns(self, keep: NDArray[np.bool_]) -> Design:
        """Return the design with the columns where `keep` (d,) is true; nothing is copied."""
        return replace(self, terms=self.terms[keep], kept=self.kept[keep])

    # -- weighted sums of the columns ---------------------------------------------------------

    def prepare(self, w: Floats) -> Prepared:
        """Return weights (d,) ready for `part`."""
        p = self.numeric.shape[1]
        full = np.zeros(p + len(self.inverse))
        full[self.kept] = w
        weights = full[p:] * self.inverse
        return Prepared(full[:p], [(i, self.lookups[i].table(weights)) for i in self._used])

    def part(self, prepared: Prepared, rows: slice) -> Floats:
        """Return the weighted sum of the columns for some rows."""
        total = self.numeric[rows] @ prepared.numeric
        for i, table in prepared.tables:
            total += table.take(self.lookups[i].entry[rows])
        return total

    def times(self, w: Floats) -> Floats:
        """Return the weighted sum of the columns for each row, shape (n,)."""
        prepared = self.prepare(w)
        if len(self) <= BLOCK:
            return self.part(prepared, slice(None))
        total = np.empty(len(self))
        for rows in blocks(len(self)):
            total[rows] = self.part(prepared, rows)
        return total

    @cached_property
    def _used(self) -> list[int]:
        """Return which lookups have a term that is kept."""
        p = self.numeric.shape[1]
        kept = np.zeros(len(self.inverse), dtype=bool)
        kept[self.kept[self.kept >= p] - p] = True
        return [i for i, each in enumerate(self.lookups) if kept[each.slots].any()]

    # -- weighted sums of the rows ------------------------------------------------------------

    def nothing(self) -> list[Floats]:
        """Return what `add` begins with."""
        entries = [np.zeros(self.lookups[i].n_entries) for i in self._used]
        return [np.zeros(self.numeric.shape[1]), *entries]

    def add(self, sums: list[Floats], g: Floats, rows: slice) -> None:
        """Add some rows weighted by `g` to sums that `gather` makes a gradient of."""
        numeric, *entries = sums
        numeric += g @ self.numeric[rows]
        for i, entry in zip(self._used, entries, strict=True):
            entry += np.bincount(self.lookups[i].entry[rows], g, minlength=len(entry))

    def gather(self, sums: list[Floats]) -> Floats:
        """Return sums over rows as one number for each column, shape (d,)."""
        numeric, *entries = sums
        categories = np.zeros(len(self.inverse))
        for i, entry in zip(self._used, entries, strict=True):
            categories[self.lookups[i].slots] = self.lookups[i].by_slot(entry)
        return np.concatenate([numeric, categories * self.inverse])[self.kept]

    def gradient(self, g: Floats) -> Floats:
        """Return the sum of the rows weighted by `g` (n,), shape (d,)."""
        sums = self.nothing()
        for rows in blocks(len(self)):
            self.add(sums, g[rows], rows)
        return self.gather(sums)

    def gain_without(self, w: Floats, eta: Floats, value: Floats) -> Floats:
        """Return what the rows with η > 0 gain in `value` (n,) without each category, (d,).

        The category's weight is taken off η (n,) where it is present, nothing else moves. Zero for
        numbers.
        """
        p = self.numeric.shape[1]
        full = np.zeros(p + len(self.inverse) + 1)  # position −1 is that of no term
        full[self.kept] = w
        weights = full[p:] * np.append(self.inverse, 0.0)
        gains = np.zeros(len(weights))
        for lookup in self.lookups:
            for levels in lookup.levels:
                at = levels[lookup.entry]
                moved = ((eta - weights[at]) > 0) * value - (eta > 0) * value
                gains += np.bincount(at % len(weights), moved, minlength=len(weights))
        return np.concatenate([np.zeros(p), gains[:-1]])[self.kept]

    # -- for those who need a matrix ------------------------------------------------------------

    def present(self) -> sparse.csr_array:
        """Return the categories that are kept as a sparse matrix (n, c)."""
        total = sparse.csr_array((len(self), len(self.inverse)))
        for each in self.lookups:
            matrix = np.eye(each.n_entries, len(each.slots)) if each.matrix is None else each.matrix
            entries = np.zeros((each.n_entries, len(self.inverse)))
            entries[:, each.slots] = matrix * self.inverse[each.slots]
            total = total + sparse.csr_array(entries)[each.entry]
        p = self.numeric.shape[1]
        return sparse.csr_array(total[:, self.kept[self.kept >= p] - p])


def blocks(n: int) -> Iterator[slice]:
    """Yield slices that go through n rows."""
    for start in range(0, n, BLOCK):
        yield slice(start, min(start + BLOCK, n))


def unit(design: Design, w: Floats) -> Floats:
    """Return w scaled so that w·x has standard deviation 1 over the rows."""
    spread = float(design.times(w).std())
    return w / spread if spread > 0 else w


# ---------------------------------------------------------------------------------------------
# Lookups


def _lookups(table: TermTable, others: NDArray[np.intp]) -> tuple[Lookup, ...]:
    """Return lookups for the columns of codes; `others` are the terms of the categories, sorted."""
    starts = np.concatenate([table.numeric_terms, table.code_terms, [table.n_terms]])
    small = np.intp if len(table) <= SMALL_CODES else np.min_scalar_type(table.n_terms)
    single = []
    for codes, first in zip(table.codes.T, table.code_terms, strict=True):
        last = starts[starts > first].min()
        slots = np.flatnonzero((others >= first) & (others < last))
        if len(slots):
            entries = np.full(table.n_terms + 1, len(slots), dtype=small)
            entries[others[slots]] = np.arange(len(slots))
            single.append(Lookup.of(entries[codes], slots))
    most = min(COMBINED, len(table) // ROWS_PER_ENTRY)
    return tuple(_combined(some) for some in _shares(single, most))


def _shares(single: Sequence[Lookup], most: int) -> list[list[Lookup]]:
    """Return the columns in groups whose combinations are at most so many, small columns first."""
    groups: list[list[Lookup]] = []
    size, n_terms = most + 1, 0
    for each in sorted(single, key=lambda lookup: len(lookup.slots)):
        size, n_terms = size * _n_levels(each), n_terms + len(each.slots)
        if size > most or n_terms > COMBINED_TERMS:
            groups.append([])
            size, n_terms = _n_levels(each), len(each.slots)
        groups[-1].append(each)
    return groups


def _n_levels(lookup: Lookup) -> int:
    """Return how many entries the rows make use of: all of them, or all but the last."""
    return int(lookup.entry.max(initial=0)) + 1


def _combined(some: Sequence[Lookup]) -> Lookup:
    """Return one lookup for several columns."""
    if len(some) == 1:
        return some[0]
    sizes = [_n_levels(each) for each in some]
    n_entries = int(np.prod(sizes))
    wide = some[0].entry.dtype == np.intp
    index = np.zeros(len(some[0].entry), np.intp if wide else np.min_scalar_type(n_entries))
    for each, size in zip(some, sizes, strict=True):
        index *= index.dtype.type(size)
        index += each.entry.astype(index.dtype, copy=False)
    chosen = np.unravel_index(np.arange(n_entries), sizes)
    levels = np.array([each.levels[0][at] for each, at in zip(some, chosen, strict=True)])
    slots = np.concatenate([each.slots for each in some])
    return Lookup(index, slots, levels, (levels[:, :, None] == slots).any(axis=0) * 1.0)
