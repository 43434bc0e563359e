"""Find the fewest changes of each group alone that bring its number into a window.

A number such as the precision follows from two counts of a group. The search tries every value of
the first count at once. Given the first one, the window allows a range of the second one, and the
value nearest to the present one is best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from commod.bounds._integer import Answer, Window
from commod.bounds._merged import FloatArray, IntArray, MergedProblem, least_positive

ROUNDING = 1e-9  # people: far above rounding errors, so that no allowed count is lost
SMALLEST_WEIGHT = 1e-14  # a smaller one is 0, but for rounding errors


@dataclass(frozen=True)
class SeparableProblem:
    """One comparison whose groups share no cell; each group moves one or two cells."""

    problem: MergedProblem
    cells: tuple[IntArray, ...]  # of each group

    @classmethod
    def of(cls, problem: MergedProblem) -> SeparableProblem | None:
        """Return the problem; None where groups share cells or move more than two."""
        if len(problem.bounded) != 1 or problem.bounded[0].is_linear:
            return None
        (table,) = problem.bounded[0].tables
        assert table.denominator is not None
        is_moved = (table.numerator != 0) | (table.denominator != 0)
        n_moved = is_moved.sum(axis=1)
        if (is_moved.sum(axis=0) > 1).any() or (n_moved > 2).any() or (n_moved < 1).any():
            return None
        return cls(problem, tuple(np.flatnonzero(row) for row in is_moved))

    def solve(self, window: Window, most_changes: float = math.inf) -> Answer:
        """Return the fewest changes that bring all numbers into the window.

        The lower bound is infinite where no moves do, or not with at most `most_changes`.
        """
        moves = np.zeros(len(self.problem.n_up), dtype=np.int64)
        n_changes = 0
        for group, cells in enumerate(self.cells):
            best = self._moves_of(group, cells, window, most_changes - n_changes)
            if best is None:
                return Answer(None, math.inf)
            moves[cells] = best
            n_changes += int(np.abs(best).sum())
        return Answer(moves, float(n_changes))

    def _moves_of(
        self, group: int, cells: IntArray, window: Window, most: float
    ) -> IntArray | None:
        """Return the moves of the one or two cells of a group, (n_cells,)."""
        if most < 0:
            return None
        n_up, n_down = (part[cells] for part in (self.problem.n_up, self.problem.n_down))
        reach = int(min(most, max(n_up[0], n_down[0])))
        first = np.arange(-min(n_down[0], reach), min(n_up[0], reach) + 1)
        low = np.full(len(first), -n_down[1] if len(cells) > 1 else 0, dtype=np.float64)
        high = np.full(len(first), n_up[1] if len(cells) > 1 else 0, dtype=np.float64)
        for weights, limit in self._inequalities(group, window):
            needed = limit - weights[cells[0]] * first - ROUNDING
            weight = weights[cells[1]] if len(cells) > 1 else 0.0
            if weight > SMALLEST_WEIGHT:
                low = np.maximum(low, np.ceil(needed / weight - ROUNDING))
            elif weight < -SMALLEST_WEIGHT:
                high = np.minimum(high, np.floor(needed / weight + ROUNDING))
            else:
                high[needed > 0] = -math.inf
        second = np.clip(0.0, low, high)
        costs = np.where(low <= high, np.abs(first) + np.abs(second), math.inf)
        best = int(costs.argmin())
        if math.isinf(costs[best]) or costs[best] > most:
            return None
        return np.array([first[best], second[best]][: len(cells)]).astype(np.int64)

    def _inequalities(self, group: int, window: Window) -> list[tuple[FloatArray, float]]:
        """Return (weights, limit) of weights @ moves ≥ limit: the window, and what is defined."""
        one = self.problem.bounded[0]
        (table,) = one.tables
        assert table.denominator is not None
        top, bottom = table.numerator[group], table.denominator[group]
        start, scale = float(table.constant[group]), float(table.scale[group])
        found = [(bottom, least_positive(bottom) / 2 - scale)]
        if one.comparison.kind == "ratio":
            found.append((top, least_positive(top) / 2 - start))
        if math.isfinite(window.low):
            found.append((top - window.low * bottom, window.low * scale - start))
        if math.isfinite(window.high):
            found.append((window.high * bottom - top, start - window.high * scale))
        return found
