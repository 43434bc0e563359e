"""Fairness and hard limits as linear inequalities on sums that a change moves by a known step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.design import SMALL_CODES
from commod._solvers.search.direct import Limits, Rows
from commod.metrics._constraint import ConstraintLike, get_constraint

__all__ = ["Caps", "Cells", "change_rows", "count_cells", "fairness_limits"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

N_EXTRA = 3  # sums beside the rates: changes, accuracy, volume


@dataclass(frozen=True)
class Caps:
    """Hard limits: at most this share of changes, loss of accuracy, change of the positive rate."""

    changes: float | None = None
    accuracy_loss: float | None = None
    volume_change: float | None = None

    def any(self) -> bool:
        """Return whether there is a hard limit at all."""
        return not (
            self.changes is None and self.accuracy_loss is None and self.volume_change is None
        )


@dataclass(frozen=True)
class Cells:
    """The cell of each row: `index` (n,), −1 for rows outside the constraint; `shape` (lines, G).

    Demographic parity has one line of G groups; equalized odds two, the rows with true label 1
    and those with 0; parity of one error rate has that line only.
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

    def totals(self, values: Floats) -> Floats:
        """Return the sum of `values` (n,) in each cell, shape (lines, G)."""
        n_cells = self.shape[0] * self.shape[1]
        sums = np.bincount(self.index + 1, values, minlength=n_cells + 1)[1:]
        return np.asarray(sums, dtype=np.float64).reshape(self.shape)


def count_cells(cells: Cells, decisions: Mask) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many rows each cell has and how many of them are positive, both (lines, G)."""
    sizes = cells.totals(np.ones(len(decisions)))
    positives = cells.totals(decisions.astype(np.float64))
    return sizes.astype(np.int64), positives.astype(np.int64)


def change_rows(
    cells: Cells,
    decisions: Mask,
    weight: Floats,
    *,
    free: Mask,
    people: Floats | None = None,
    label: Mask | None = None,
    accuracy_weight: float = 0.0,
    with_extra: bool = True,
) -> Rows:
    """Return what changing each row does to the rates of the cells, changes, accuracy and volume.

    The sums are the rates of the cells and, `with_extra`, the share of changes (people, not
    weights), the gain of accuracy (zero without labels) and the change of the overall positive
    rate. `people` (n,) is how many people a row of a sample stands for; `weight` (n,) is that of
    all of them.
    """
    n = len(decisions)
    person = np.full(n, 1 / n) if people is None else people / people.sum()
    gain = np.zeros(n) if label is None else np.where(decisions == label, -1.0, 1.0)
    rates, cell, step = _rates(cells, decisions, weight)
    extra = np.zeros((0, n))
    if with_extra:
        share = weight / weight.sum()
        sign = np.where(decisions, -1.0, 1.0)
        extra = np.stack([person, gain * share, sign * share]) * free
        rates = np.concatenate([rates, np.zeros(N_EXTRA)])
    cost = person * (1 - accuracy_weight * gain)
    return Rows(free, cost * free, cell, step * free, extra, rates)


def _rates(
    cells: Cells, decisions: Mask, weight: Floats
) -> tuple[Floats, NDArray[np.integer], Floats]:
    """Return the positive rate of each cell, (K,), the cell of each row and its step, both (n,)."""
    totals = cells.totals(weight).ravel()
    cell = np.where(cells.index >= 0, cells.index, len(totals))
    if len(cell) > SMALL_CODES:
        cell = cell.astype(np.min_scalar_type(len(totals)))
    step = np.where(decisions, -1.0, 1.0) * weight / np.append(totals, np.inf)[cell]
    return cells.totals(weight * decisions).ravel() / totals, cell, step


def fairness_limits(
    constraints: ConstraintLike, target: float, cells: Cells, rows: Rows, weight: Floats, caps: Caps
) -> Limits:
    """Return "P-rule ≥ target", or "gap ≤ target", and the hard caps as linear inequalities."""
    constraint = get_constraint(constraints)
    n_groups, n_sums = cells.shape[1], len(rows.start)
    target_limits = constraint.limits(target, n_groups)
    soft = np.zeros((len(target_limits.bound), n_sums))
    soft[:, : target_limits.matrix.shape[1]] = target_limits.matrix
    bound, share = target_limits.bound, target_limits.split
    if constraint.is_ratio:  # equal rates of zero are undefined, not fair
        somebody = cells.totals(weight).ravel()
        soft = np.vstack([soft, -np.eye(n_groups, n_sums)])
        bound = np.concatenate([bound, -0.5 * _lightest(cells, weight) / somebody])
        share = np.concatenate([share, np.zeros(n_groups)])
    hard, cap = _cap_rows(caps, n_sums)
    size = max(float((soft @ rows.start - bound).max()), 1e-3)
    return Limits(
        matrix=np.vstack([soft, hard]),
        bound=np.concatenate([bound, cap]),
        share=np.concatenate([share, np.zeros(len(cap))]),
        n_soft=len(soft),
        penalty=3.0 / size,
        n_rates=n_groups if constraint.is_ratio else 0,
    )


def _lightest(cells: Cells, weight: Floats) -> Floats:
    """Return the smallest positive weight in each cell: what selecting one person adds."""
    inside = (cells.index >= 0) & (weight > 0)
    least = np.full(cells.shape[0] * cells.shape[1], np.inf)
    np.minimum.at(least, cells.index[inside], weight[inside])
    return least


def _cap_rows(caps: Caps, n_sums: int) -> tuple[Floats, Floats]:
    if not caps.any():
        return np.zeros((0, n_sums)), np.zeros(0)
    changes, accuracy, volume = np.eye(n_sums)[-N_EXTRA:]
    wanted = [
        (changes, caps.changes),
        (-accuracy, caps.accuracy_loss),
        (volume, caps.volume_change),
        (-volume, caps.volume_change),
    ]
    rows = [(row, cap) for row, cap in wanted if cap is not None]
    return np.array([row for row, _ in rows]), np.array([cap for _, cap in rows])
