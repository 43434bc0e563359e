"""Count people in cells where only probabilities of their groups are known.

A person of whom the group is not known belongs to every group with a probability. Sums over a cell
are then expectations: the rate of a group is Σ pᵢ dᵢ / Σ pᵢ. True labels and strata are known, so
a person's probabilities are spread over the groups of one row of cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commod._data.groups import Groups
from commod._solvers.search.rates import Cells
from commod.metrics._cells import DIGITS
from commod.metrics._constraint import ConstraintLike, get_constraint

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


def large_probable_groups(groups: Groups, weight: Floats, min_group_size: int) -> Mask | None:
    """Return which groups have enough expected rows, (n_groups,); None where groups are known."""
    if groups.probabilities is None:
        return None
    return np.asarray(groups.count(weight > 0) >= min_group_size)


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
        sums = np.zeros(self.shape)
        for i in range(self.shape[0]):
            counted = self.row == i
            sums[i] = values[counted] @ self.probabilities[counted]
        return sums

    def membership(self) -> Floats:
        """Return how likely each row is in each cell, shape (n, n_cells)."""
        n_rows, n_groups = self.shape
        result = np.zeros((len(self.index), n_rows, n_groups))
        counted = np.flatnonzero(self.index >= 0)
        result[counted, self.index[counted] // n_groups] = self.probabilities[counted]
        return result.reshape(len(self.index), n_rows * n_groups)


def probable_cells(cells: Cells, probabilities: Floats | None) -> Cells:
    """Return cells by probabilities (n, n_groups) of the groups; the same cells if None."""
    if probabilities is None:
        return cells
    return ProbableCells(cells.index, cells.shape, probabilities)


def expected_value(
    constraints: ConstraintLike,
    cells: Cells,
    probabilities: Floats,
    decisions: Mask | Floats,
    weight: Floats,
) -> float:
    """Return the metric of expected rates; NaN where it is not defined.

    `cells` are the most likely ones. `decisions` (n,) may be probabilities of a positive decision.
    """
    constraint = get_constraint(constraints)
    probable = probable_cells(cells, probabilities)
    totals = probable.totals(weight)
    if not totals.all() or totals.shape[1] < 2:
        return float("nan")
    rates = probable.totals(weight * decisions) / totals
    value = constraint.value_from_rates(rates.tolist())
    return float("nan") if value is None else round(float(value), DIGITS)
