"""People of a group, within a slice of a raw column, who fare worse than the others in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from commod._data.binning import bin_edges
from commod._data.columns import Column
from commod._data.encoding import BinTerms
from commod._record import Estimate, Subgroup, Subgroups
from commod._reporting.audit.coding import Coding
from commod._reporting.audit.counts import Counts, share
from commod._reporting.audit.people import People
from commod._statistics.intervals import difference_interval
from commod.metrics._constraint import get_constraint

__all__ = ["Slices", "SubgroupSearch", "everybody_of"]

IntArray = NDArray[np.int64]
Slice = tuple[str, IntArray]

N_BINS = 4  # slices of a number
MOST_VALUES = 8  # slices of a column of categories: its most frequent values
SAMPLE = 50_000  # rows that say where to cut a number
MOST_LISTED = 10
NEARLY_ALL = 0.9  # of the people: a larger slice says what everybody says
WORTH_SAYING = 0.05  # a smaller gap is not listed, however certain it is


def everybody_of(counts: Counts, coding: Coding, constraints: str) -> IntArray:
    """Return all people whose rate is compared, by group, favourable after and before: (G, 2, 2).

    All count for demographic parity; where errors are compared, those with the favourable true
    label, who ought to have got the favourable decision.
    """
    cells = counts.cells if coding.favorable_is_positive else counts.cells[:, ::-1, ::-1, ::-1]
    kept = cells[:, 1] if _are_deserving(constraints, counts.has_labels) else cells.sum(axis=1)
    return np.asarray(kept.transpose(0, 2, 1))


def _are_deserving(constraints: str, has_labels: bool) -> bool:
    """Return whether only people with the favourable true label are compared."""
    return get_constraint(constraints).needs_labels and has_labels


@dataclass
class Slices:
    """Counts, one raw column at a time, how each group fares in each slice of it.

    `found` has a name and counts by group, favourable after and before (G, 2, 2) of each slice.
    """

    people: People
    constraints: str
    found: list[Slice] = field(default_factory=list)

    def __post_init__(self) -> None:
        people = self.people
        codes = people.groups.codes.astype(np.int32)
        favorable = people.favorable(people.after)
        # group, favourable after, favourable before: eight bits of what is counted per row
        self._cell = 4 * codes + 2 * favorable + people.favorable(people.before)
        self._n_cells = 4 * len(people.coding.group_names)
        self._counted = None
        if people.label is not None and _are_deserving(self.constraints, True):
            self._counted = people.favorable(people.label)
            self._cell = self._cell[self._counted]

    def add(self, column: Column) -> None:
        """Count the people of every group in every slice of a column."""
        index, names = _slices(column)
        if len(names) < 2:
            return
        index = index if self._counted is None else index[self._counted]
        counts = self._count(index, len(names) + 1)
        most = NEARLY_ALL * len(self._cell)
        named = zip(names, counts[:-1], strict=True)  # the last are in no slice
        self.found += [(name, inside) for name, inside in named if inside.sum() <= most]

    def _count(self, index: NDArray[np.int32], n_slices: int) -> IntArray:
        """Return people by slice, group, favourable after and before: (n_slices, G, 2, 2)."""
        cell = index * np.int32(self._n_cells) + self._cell
        counts = np.bincount(cell, minlength=n_slices * self._n_cells)
        return counts.reshape(n_slices, -1, 2, 2).astype(np.int64)


@dataclass(frozen=True)
class SubgroupSearch:
    """Which of the compared groups fare worse than the others, among everybody and in slices."""

    group_names: tuple[str, ...]
    compared: NDArray[np.bool_]
    are_deserving: bool
    min_size: int
    level: float

    @classmethod
    def of(
        cls,
        coding: Coding,
        compared: NDArray[np.bool_],
        constraints: str,
        has_labels: bool,
        min_size: int,
        level: float,
    ) -> SubgroupSearch:
        """Return a search that compares what the constraint is about."""
        are_deserving = _are_deserving(constraints, has_labels)
        return cls(coding.group_names, compared, are_deserving, min_size, level)

    def found(self, everybody: IntArray, slices: Sequence[Slice] = ()) -> Subgroups:
        """Return the subgroups that fare worse than the others, all people being a slice too."""
        all_slices = [("", everybody), *slices]
        large = list(self._large(all_slices))
        n_all = len(all_slices) * int(self.compared.sum())
        level = 1 - (1 - self.level) / max(len(large), 1)
        worse = self._worse(large, level)
        return Subgroups(
            n_tested=len(large),
            n_worse=len(worse),
            n_too_small=n_all - len(large),
            min_size=self.min_size,
            level=level,
            listed=tuple(worse[:MOST_LISTED]),
        )

    def _large(self, slices: Sequence[Slice]) -> Iterator[tuple[str, int, IntArray, IntArray]]:
        """Return (slice, group, counts of its members, counts of the others) where both do."""
        for name, counts in slices:
            everybody = counts[self.compared].sum(axis=0)
            for i in np.flatnonzero(self.compared):
                members, others = counts[i], everybody - counts[i]
                if min(members.sum(), others.sum()) >= self.min_size:
                    yield name, int(i), members, others

    def _worse(
        self, large: Sequence[tuple[str, int, IntArray, IntArray]], level: float
    ) -> list[Subgroup]:
        if not large:
            return []
        members, others = (np.array([line[j] for line in large]) for j in (2, 3))
        x1, x2 = members[:, 1].sum(axis=1), others[:, 1].sum(axis=1)
        n1, n2 = members.sum(axis=(1, 2)), others.sum(axis=(1, 2))
        gap = x1 / n1 - x2 / n2
        low, high = difference_interval(x1, n1, x2, n2, (1 - level) / 2)
        worst = np.flatnonzero((high < 0) & (gap <= -WORTH_SAYING))
        worst = worst[np.argsort(gap[worst], kind="stable")]
        return [
            Subgroup(
                name=self._name(*large[k][:2]),
                what=self._what(),
                n=int(n1[k]),
                rate=share(int(x1[k]), int(n1[k]), level),
                rate_before=float(members[k][:, 1].sum() / n1[k]),
                compared_with=f"the others with {large[k][0]}" if large[k][0] else "everybody else",
                n_others=int(n2[k]),
                others=float(x2[k] / n2[k]),
                gap=Estimate(float(gap[k]), float(low[k]), float(high[k])),
            )
            for k in worst.tolist()
        ]

    def _name(self, part: str, group: int) -> str:
        name = self.group_names[group]
        return f"{name} with {part}" if part else name

    def _what(self) -> str:
        if self.are_deserving:
            return "people with the favourable outcome, of those whose true label is favourable"
        return "people with the favourable outcome"


def _slices(column: Column) -> tuple[NDArray[np.int32], list[str]]:
    """Return the slice of each row and the names of the slices; one more is for all other rows."""
    if column.kind == "numeric":
        return _ranges(column)
    counts = np.bincount(column.values[column.values >= 0], minlength=len(column.categories))
    kept = [int(c) for c in np.argsort(-counts, kind="stable")[:MOST_VALUES] if counts[c]]
    position = np.full(len(column.categories) + 1, len(kept), np.int32)
    position[kept] = np.arange(len(kept))
    names = [f"{column.name} = {_value(column.categories[c])}" for c in kept]
    return position[column.values], names


def _value(category: object) -> str:
    text = str(category)
    return text if text.strip() else "“" + text + "”"


def _ranges(column: Column) -> tuple[NDArray[np.int32], list[str]]:
    missing = column.is_missing()
    step = max(1, len(column) // SAMPLE)
    some = column.values[::step]
    some = some[~np.isnan(some)]
    edges = bin_edges(some, np.ones(len(some)), n_bins=N_BINS, min_size=1)
    if not edges:
        return np.zeros(len(column), np.int32), []
    names = BinTerms(column.name, edges, has_missing_term=False).term_names
    index = np.searchsorted(edges, column.values, side="right").astype(np.int32)
    index[missing] = len(names)
    return index, names
