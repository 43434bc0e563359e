"""Hold people counted by group, true label and decisions; all rates of an audit come from here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._record import Estimate
from commod.metrics._constraint import Constraint

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

UNDEFINED = Estimate(None, None, None)


@dataclass(frozen=True)
class DecisionCounts:
    """How many people have each true label and each pair of decisions, by group.

    `cells` has shape (n_groups, n_labels, 2, 2). Its axes are: group; true label (negative,
    positive; one entry where labels are not known); decision before; decision after (negative,
    positive).
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
        """Return the number of people in each group, shape (n_groups,)."""
        return np.asarray(self.cells.sum(axis=(1, 2, 3)))

    def with_others(self, others: DecisionCounts | None) -> DecisionCounts:
        """Return the counts with further people, whose group is not known, as one more group."""
        return self if others is None else DecisionCounts(np.vstack([self.cells, others.cells]))

    def of_groups(self, kept: Sequence[int] | BoolArray) -> DecisionCounts:
        """Return the counts of some groups only."""
        return DecisionCounts(self.cells[np.asarray(kept)])

    def raised_and_lowered(self) -> tuple[IntArray, IntArray]:
        """Return how many people of each group are raised, and how many are lowered."""
        by_decisions = self.cells.sum(axis=1)
        return by_decisions[:, 0, 1], by_decisions[:, 1, 0]

    def gains_and_losses(self, favorable_is_positive: bool) -> tuple[int, int]:
        """Return the number of gains and the number of losses, over all groups."""
        raised, lowered = (int(n.sum()) for n in self.raised_and_lowered())
        return (raised, lowered) if favorable_is_positive else (lowered, raised)

    def fixed_and_introduced(self) -> tuple[IntArray, IntArray]:
        """Return the errors fixed and introduced in each group; true labels must be known."""
        cells = self.cells
        fixed = cells[:, 0, 1, 0] + cells[:, 1, 0, 1]
        introduced = cells[:, 0, 0, 1] + cells[:, 1, 1, 0]
        return fixed, introduced

    def by_decision(self, after: bool) -> IntArray:
        """Return people by group, true label and decision before or after; shape (G, L, 2)."""
        return np.asarray(self.cells.sum(axis=2 if after else 3))

    def n_correct(self, after: bool) -> int:
        """Return the number of correct decisions; true labels must be known."""
        by_decision = self.by_decision(after)
        return int((by_decision[:, 0, 0] + by_decision[:, 1, 1]).sum())

    def table(self, constraint: Constraint, after: bool) -> tuple[IntArray, IntArray]:
        """Return sizes and positives of a constraint's cells, both of shape (n_rate_rows, G)."""
        by_rate_row = constraint.by_rate_row(self.by_decision(after), axis=1)
        return by_rate_row.sum(axis=2).T, by_rate_row[:, :, 1].T

    def is_comparable(self, constraint: Constraint) -> bool:
        """Return whether there are two groups or more and no cell of the constraint is empty."""
        if constraint.needs_labels and not self.has_labels:
            return False
        sizes, _ = self.table(constraint, after=False)
        return sizes.shape[1] > 1 and bool(sizes.all())


def finite_or_none(value: Any) -> float | None:
    """Return a finite float; None where the value is None, NaN or infinite."""
    return float(value) if value is not None and np.isfinite(value) else None
