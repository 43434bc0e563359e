"""People counted by group, true label, decision before and after: all rates come from here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._record import Estimate
from commod._statistics.intervals import share_interval
from commod.metrics._constraint import get_constraint

__all__ = ["Counts", "count_people", "number", "share"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Counts:
    """How many people each cell holds.

    `cells` has shape (n_groups, n_labels, 2, 2): group, true label (negative, positive; one entry
    where labels are not known), decision before and after (negative, positive).
    """

    cells: IntArray

    @property
    def has_labels(self) -> bool:
        """Return whether true labels are known."""
        return self.cells.shape[1] == 2

    @property
    def n(self) -> int:
        """Return the number of people."""
        return int(self.cells.sum())

    @property
    def sizes(self) -> IntArray:
        """Return the people of each group, shape (n_groups,)."""
        return np.asarray(self.cells.sum(axis=(1, 2, 3)))

    def of_groups(self, kept: Sequence[int] | BoolArray) -> Counts:
        """Return the counts of some groups only."""
        return Counts(self.cells[np.asarray(kept)])

    def moves(self) -> tuple[IntArray, IntArray]:
        """Return how many people of each group become positive, and how many cease to be."""
        decided = self.cells.sum(axis=1)
        return decided[:, 0, 1], decided[:, 1, 0]

    def decided(self, after: bool) -> IntArray:
        """Return people by group, true label and decision, before or after; shape (G, L, 2)."""
        return np.asarray(self.cells.sum(axis=2 if after else 3))

    def table(self, constraints: str, after: bool) -> tuple[IntArray, IntArray]:
        """Return the sizes and positives a constraint compares, both of shape (n_lines, G)."""
        lines = get_constraint(constraints).by_rate_row(self.decided(after), axis=1)
        return lines.sum(axis=2).T, lines[:, :, 1].T

    def n_right(self, after: bool) -> IntArray:
        """Return the right decisions of each group, shape (n_groups,); labels must be known."""
        decided = self.decided(after)
        return np.asarray(decided[:, 0, 0] + decided[:, 1, 1])


def count_people(
    codes: NDArray[np.intp],
    n_groups: int,
    before: BoolArray,
    after: BoolArray,
    label: BoolArray | None,
    times: IntArray | NDArray[np.float64] | None = None,
) -> Counts:
    """Return the counts of rows; `codes` (n,) number the groups.

    A row stands for one person, or for `times` (n,) people: the sums are exact below 2⁵³.

    Examples
    --------
    >>> codes, no, yes = np.array([0, 0]), np.array([False, False]), np.array([True, False])
    >>> count_people(codes, 1, no, yes, None).cells.tolist()
    [[[[1, 1], [0, 0]]]]
    """
    n_labels = 1 if label is None else 2
    cell = codes * (4 * n_labels)
    if label is not None:
        cell += 4 * label
    cell += 2 * before
    cell += after
    counted = np.bincount(cell, times, minlength=n_groups * n_labels * 4)
    return Counts(counted.reshape(n_groups, n_labels, 2, 2).astype(np.int64))


def share(positives: Any, size: Any, level: float) -> Estimate:
    """Return a share with Wilson's interval; None where there is nobody."""
    if not size:
        return Estimate(None, None, None)
    low, high = share_interval(positives, size, (1 - level) / 2)
    return Estimate(float(positives / size), float(low), float(high))


def number(value: Any) -> float | None:
    """Return a finite float, None for anything that is undefined."""
    return float(value) if value is not None and np.isfinite(value) else None
