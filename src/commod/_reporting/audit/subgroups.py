"""Find subgroups that fare worse than their peers.

A slice is the people with one value, or one range of values, of a raw column. A subgroup is the
people of one group within a slice. Its peers are the other people of the same slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column
from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.encoding import BinTerms, bin_edges
from commod._record import Estimate, Subgroup, Subgroups
from commod._reporting.audit.people import AuditedPeople, Coding, DecisionCounts
from commod._statistics.intervals import difference_interval, share_estimate
from commod.metrics._constraint import Constraint

IntArray = NDArray[np.int64]

N_BINS = 4  # slices of a numeric column
MAX_CATEGORIES = 8  # slices of a categorical column: its most frequent values
N_SAMPLED = 50_000  # rows that determine the bin edges of a numeric column
MAX_LISTED = 10
MAX_SLICE_SHARE = 0.9  # a larger slice repeats what the slice of everybody says
MIN_GAP = 0.05  # a smaller gap is not listed, even where it is statistically certain


class Slice(NamedTuple):
    """A slice and its people by group, favourable after and favourable before: shape (G, 2, 2).

    The name is empty for the slice of everybody.
    """

    name: str
    counts: IntArray


def _counts_favorable_only(constraint: Constraint, has_labels: bool) -> bool:
    """Return whether only people with the favourable true label are compared."""
    return constraint.needs_labels and has_labels


def _everybody(counts: DecisionCounts, coding: Coding, constraint: Constraint) -> Slice:
    """Return the slice of all people whose rate is compared.

    Demographic parity compares everybody. A constraint on errors compares people with the
    favourable true label, who should get the favourable decision.
    """
    cells = counts.cells if coding.favorable_is_positive else counts.cells[:, ::-1, ::-1, ::-1]
    only_favorable = _counts_favorable_only(constraint, counts.has_labels)
    counted = cells[:, 1] if only_favorable else cells.sum(axis=1)
    return Slice("", np.asarray(counted.transpose(0, 2, 1)))


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
        self._n_cells = 4 * len(people.coding.group_names)
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
        slices = map(Slice, names, by_slice)
        self.slices += [candidate for candidate in slices if candidate.counts.sum() <= largest]


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


class _PeerComparison(NamedTuple):
    """A subgroup and its peers: counts of shape (2, 2), favourable after and before."""

    slice_name: str
    group_name: str
    members: IntArray
    peers: IntArray


def find_subgroups(
    counts: DecisionCounts,
    coding: Coding,
    constraint: Constraint,
    slices: Sequence[Slice],
    is_compared: NDArray[np.bool_],
    *,
    min_size: int,
    level: float,
) -> Subgroups:
    """Return the subgroups that fare worse than their peers, among everybody and in slices.

    The worst subgroup comes first. The level of each interval is raised (Bonferroni), so that all
    intervals hold together at `level`.
    """
    names = [coding.group_names[i] for i in np.flatnonzero(is_compared)]
    comparisons: list[_PeerComparison] = []
    for slice_name, slice_counts in (_everybody(counts, coding, constraint), *slices):
        members = slice_counts[is_compared]
        peers = members.sum(axis=0) - members
        comparisons += map(_PeerComparison, repeat(slice_name), names, members, peers)
    tested = [c for c in comparisons if min(c.members.sum(), c.peers.sum()) >= min_size]
    single_level = 1 - (1 - level) / max(len(tested), 1)
    what = "people with the favourable outcome"
    if _counts_favorable_only(constraint, counts.has_labels):
        what += ", of those whose true label is favourable"
    worse = _worse(tested, what, single_level) if tested else []
    return Subgroups(
        n_tested=len(tested),
        n_worse=len(worse),
        n_too_small=len(comparisons) - len(tested),
        min_size=min_size,
        level=single_level,
        listed=tuple(worse[:MAX_LISTED]),
    )


def _worse(comparisons: Sequence[_PeerComparison], what: str, level: float) -> list[Subgroup]:
    members = np.array([comparison.members for comparison in comparisons])
    peers = np.array([comparison.peers for comparison in comparisons])
    x1, x2 = members[:, 1].sum(axis=1), peers[:, 1].sum(axis=1)
    n1, n2 = members.sum(axis=(1, 2)), peers.sum(axis=(1, 2))
    gap = x1 / n1 - x2 / n2
    low, high = difference_interval(x1, n1, x2, n2, (1 - level) / 2)
    worse = np.flatnonzero((high < 0) & (gap <= -MIN_GAP))
    worse = worse[np.argsort(gap[worse], kind="stable")]
    return [
        Subgroup(
            name=_with(comparisons[k].group_name, comparisons[k].slice_name),
            what=what,
            n=int(n1[k]),
            rate=share_estimate(int(x1[k]), int(n1[k]), level),
            rate_before=float(members[k][:, 1].sum() / n1[k]),
            compared_with=_with("the others", comparisons[k].slice_name, "everybody else"),
            n_others=int(n2[k]),
            others=float(x2[k] / n2[k]),
            gap=Estimate(float(gap[k]), float(low[k]), float(high[k])),
        )
        for k in worse.tolist()
    ]


def _with(people: str, slice_name: str, everywhere: str | None = None) -> str:
    """Return people within a slice; `everywhere` names them in the slice of everybody."""
    return f"{people} with {slice_name}" if slice_name else everywhere or people
