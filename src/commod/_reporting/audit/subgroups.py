"""Find subgroups that fare worse than their peers.

A slice is the people with one value, or one range of values, of a raw column. A subgroup is the
people of one group within a slice. Its peers are the other people of the same slice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column
from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.encoding import BinTerms, bin_edges
from commod._record.audit import Subgroup, Subgroups
from commod._record.explanation import Estimate
from commod._reporting.audit.people import AuditedPeople, ShownPeople
from commod._statistics.intervals import difference_interval, share_estimate
from commod.metrics._constraint import Constraint

IntArray = NDArray[np.int64]

N_BINS = 4  # slices of a numeric column
MAX_CATEGORIES = 8  # slices of a categorical column: its most frequent values
N_SAMPLED = 50_000  # rows that determine the bin edges of a numeric column
MAX_LISTED = 10
MAX_SLICE_SHARE = 0.9  # a larger slice repeats what the slice of everybody says
MIN_GAP = 0.05  # a smaller gap is not listed, even where it is statistically certain


# A slice: its name, empty for everybody, and its people by group, favourable after, and before.
Slice = tuple[str, IntArray]  # the counts have shape (n_groups, 2, 2)


def _counts_favorable_only(constraint: Constraint, has_labels: bool) -> bool:
    """Return whether only people with the favourable true label are compared.

    Demographic parity compares everybody. A constraint on errors compares people with the
    favourable true label, who should get the favourable decision.
    """
    return constraint.needs_labels and has_labels


def _everybody(counted: ShownPeople) -> Slice:
    """Return the slice of all people whose rate is compared."""
    cells = counted.counts.cells
    cells = cells if counted.people.favorable_is_positive else cells[:, ::-1, ::-1, ::-1]
    only_favorable = _counts_favorable_only(counted.constraint, counted.counts.has_labels)
    of_slice = cells[:, 1] if only_favorable else cells.sum(axis=1)
    return "", np.asarray(of_slice.transpose(0, 2, 1))


class SliceCounter:
    """Counts, one raw column at a time, how each group fares in each slice of the column.

    `slices` grows with every column that is added.
    """

    def __init__(self, people: AuditedPeople, constraint: Constraint) -> None:
        self.slices: list[Slice] = []
        codes = people.groups.codes.astype(np.int32)
        # one number for group, favourable after and favourable before: one count per slice
        self._cell = (
            4 * codes + 2 * people.favorable(people.after) + people.favorable(people.before)
        )
        self._n_cells = 4 * len(people.group_names)
        self._is_counted = None
        if people.label is not None and _counts_favorable_only(constraint, True):
            self._is_counted = people.favorable(people.label)
            self._cell = self._cell[self._is_counted]

    def add(self, column: Column) -> None:
        """Count the people of every group in every slice of a column."""
        index, names = _slices(column)
        if len(names) < 2:
            return
        index = index if self._is_counted is None else index[self._is_counted]
        n_slices = len(names) + 1  # the last one holds rows in no slice
        cell = index * np.int32(self._n_cells) + self._cell
        counts = np.bincount(cell, minlength=n_slices * self._n_cells)
        by_slice = counts.reshape(n_slices, -1, 2, 2).astype(np.int64)[:-1]
        largest = MAX_SLICE_SHARE * len(self._cell)
        self.slices += [one for one in zip(names, by_slice, strict=True) if one[1].sum() <= largest]


def _slices(column: Column) -> tuple[NDArray[np.int32], list[str]]:
    """Return the slice of each row and the names of the slices.

    Rows in no slice have the number after the last slice.
    """
    if column.kind == "numeric":
        return _ranges(column)
    counts = np.bincount(column.values[column.values >= 0], minlength=len(column.categories))
    most_frequent = np.argsort(-counts, kind="stable")[:MAX_CATEGORIES]
    kept = [int(c) for c in most_frequent if counts[c] >= MIN_CATEGORY_SIZE]
    position = np.full(len(column.categories) + 1, len(kept), np.int32)
    position[kept] = np.arange(len(kept))
    names = [f"{column.name} = {_visible(column.categories[c])}" for c in kept]
    return position[column.values], names


def _visible(category: object) -> str:
    text = str(category)
    return text if text.strip() else f"“{text}”"


def _ranges(column: Column) -> tuple[NDArray[np.int32], list[str]]:
    sample = column.values[:: max(1, len(column) // N_SAMPLED)]
    sample = sample[~np.isnan(sample)]
    edges = bin_edges(sample, np.ones(len(sample)), n_bins=N_BINS, min_size=MIN_CATEGORY_SIZE)
    if not edges:
        return np.zeros(len(column), np.int32), []
    names = BinTerms(column.name, edges, has_missing_term=False).term_names
    index = np.searchsorted(edges, column.values, side="right").astype(np.int32)
    index[column.is_missing()] = len(names)
    return index, names


# ---------------------------------------------------------------------------------------------
# Comparing


def find_subgroups(counted: ShownPeople, slices: Sequence[Slice], *, min_size: int) -> Subgroups:
    """Return the subgroups that fare worse than their peers, among everybody and in slices.

    The worst subgroup comes first. The level of each interval is raised (Bonferroni), so that all
    intervals hold together at the level of the audit.
    """
    everybody, names = _everybody(counted), counted.compared_names
    every = [everybody, *slices]
    members = np.concatenate([counts[counted.is_compared] for _, counts in every])
    totals = [counts[counted.is_compared].sum(axis=0) for _, counts in every]
    peers = np.repeat(totals, len(names), axis=0) - members
    tested = np.flatnonzero(
        np.minimum(members.sum(axis=(1, 2)), peers.sum(axis=(1, 2))) >= min_size
    )
    level = 1 - (1 - counted.level) / max(len(tested), 1)
    what = "people with the favourable outcome"
    if _counts_favorable_only(counted.constraint, counted.counts.has_labels):
        what += ", of those whose true label is favourable"
    x1, x2 = members[tested, 1].sum(axis=1), peers[tested, 1].sum(axis=1)
    n1, n2 = members[tested].sum(axis=(1, 2)), peers[tested].sum(axis=(1, 2))
    gap = x1 / n1 - x2 / n2
    low, high = difference_interval(x1, n1, x2, n2, (1 - level) / 2)
    worse = np.flatnonzero((high < 0) & (gap <= -MIN_GAP))
    worse = worse[np.argsort(gap[worse], kind="stable")]
    listed = []
    for k in worse[:MAX_LISTED].tolist():
        (slice_name, _), group = every[tested[k] // len(names)], names[tested[k] % len(names)]
        where = f" with {slice_name}" if slice_name else ""
        subgroup = Subgroup(
            name=f"{group}{where}",
            what=what,
            n=int(n1[k]),
            rate=share_estimate(int(x1[k]), int(n1[k]), level),
            rate_before=float(members[tested[k]][:, 1].sum() / n1[k]),
            compared_with=f"the others{where}" if where else "everybody else",
            n_others=int(n2[k]),
            others=float(x2[k] / n2[k]),
            gap=Estimate(float(gap[k]), float(low[k]), float(high[k])),
        )
        listed.append(subgroup)
    return Subgroups(
        n_tested=len(tested),
        n_worse=len(worse),
        n_too_small=len(members) - len(tested),
        min_size=min_size,
        level=level,
        listed=tuple(listed),
    )
