"""Count people in cells where only probabilities of their groups are known.

A person of whom the group is not known belongs to every group with a probability. Sums over a cell
are then expectations: the rate of a group is Σ pᵢ dᵢ / Σ pᵢ. True labels and strata are known, so
a person's probabilities are spread over the groups of one row of cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commod._solvers.cells import Cells
from commod.metrics._cells import expected_totals

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ProbableCells(Cells):
    """Cells to which each row belongs with `probabilities` (n, n_groups), by group.

    `index` (n,) is the most likely cell of each row: it serves to draw folds and samples.
    """

    probabilities: Floats

    def take(self, index: NDArray[np.intp]) -> ProbableCells:
        """Return the cells of the rows `index` (m,)."""
        return ProbableCells(self.index[index], self.shape, self.probabilities[index])

    @property
    def row(self) -> NDArray[np.intp]:
        """Return the row of cells that counts each row of data, (n,); −1 where none does."""
        return np.where(self.index < 0, -1, self.index // self.shape[1])

    def totals(self, values: Floats) -> Floats:
        """Return the expected sum of `values` (n,) in each cell, shape (n_rate_rows, n_groups)."""
        return expected_totals(self.row, self.shape[0], self.probabilities, values)

    def membership(self, n_cells: int) -> Floats:
        """Return how likely each row is in each cell of its stratum, shape (n, n_cells)."""
        n_groups = self.shape[1]
        result = np.zeros((len(self.index), n_cells // n_groups, n_groups))
        counted = np.flatnonzero(self.index >= 0)
        row = self.index[counted] % n_cells // n_groups
        result[counted, row] = self.probabilities[counted]
        return result.reshape(len(self.index), n_cells)


def probable_cells(cells: Cells, probabilities: Floats | None) -> Cells:
    """Return cells by probabilities (n, n_groups) of the groups; the same cells if None."""
    if probabilities is None:
        return cells
    return ProbableCells(cells.index, cells.shape, probabilities)
