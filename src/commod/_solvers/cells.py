"""Put rows of data into the cells of a constraint, and count them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commod.metrics._cells import CellTable
from commod.metrics._constraint import ConstraintLike, get_constraint

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Cells:
    """The cell of each row of data: `index` (n,), −1 for rows outside the constraint.

    `shape` is (n_rate_rows, n_groups). Demographic parity has one rate row. Equalized odds has
    two: rows of data with a positive true label, then those with a negative one.
    """

    index: NDArray[np.intp]
    shape: tuple[int, int]

    @classmethod
    def of(
        cls, constraints: ConstraintLike, group: NDArray[np.intp], n_groups: int, label: Mask | None
    ) -> Cells:
        """Return the cells of a constraint; `group` (n,) is −1 for a group that is left out."""
        constraint = get_constraint(constraints)
        shape = (len(constraint.rate_rows), n_groups)
        return cls(constraint.cells(group, n_groups, label), shape)

    def take(self, index: NDArray[np.intp]) -> Cells:
        """Return the cells of the rows `index` (m,)."""
        return Cells(self.index[index], self.shape)

    def totals(self, values: Floats) -> Floats:
        """Return the sum of `values` (n,) in each cell, shape (n_rate_rows, n_groups)."""
        n_cells = self.shape[0] * self.shape[1]
        sums = np.bincount(self.index + 1, values, minlength=n_cells + 1)[1:]
        return np.asarray(sums, dtype=np.float64).reshape(self.shape)


def count_cells(
    cells: Cells | CellTable, decisions: Mask, people: Floats | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return size and number of positives of each cell, both of shape (n_rate_rows, n_groups).

    A row is one person, or stands for `people` (n,). Expected numbers are rounded.
    """
    each = np.ones(len(decisions)) if people is None else people
    negatives, positives = (
        np.rint(cells.totals(kind * each)).astype(np.int64) for kind in (~decisions, decisions)
    )
    return negatives + positives, positives
