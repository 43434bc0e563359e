"""Define the task of one search: rows, terms and limits as the solver sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.design import Design
from commod._solvers.search.initial_direction import initial_direction
from commod._solvers.search.offset import Direction, best_offset
from commod._solvers.search.quasi_newton import Bounds
from commod._solvers.search.rates import ChangeEffects, SumLimits

__all__ = ["SearchTask"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class SearchTask:
    """The task of one search, on n rows and d columns of the design.

    - `columns` (d,): the raw column of each column of the design.
    - `weight` (n,): the weight of each row in the initial direction.
    - `worth_changing`: masks (n,) of rows worth changing, one for each way to begin.
    - `bounds`: the bounds of each of the d weights, or None.
    - `sparsity`: extra changes allowed for a shorter scorecard, as a share of the fewest.
    """

    design: Design
    effects: ChangeEffects
    limits: SumLimits
    columns: NDArray[np.intp]
    weight: Floats
    worth_changing: Sequence[Mask]
    bounds: Bounds | None
    sparsity: float

    def select(self, support: Mask) -> SearchTask:
        """Return the task with the columns of the design where `support` (d,) is true."""
        bounds = self.bounds and list(compress(self.bounds, support))
        design, columns = self.design.select(support), self.columns[support]
        return replace(self, design=design, columns=columns, bounds=bounds)

    def with_offset(self, w: Floats) -> Direction:
        """Return the direction `w` (d,) with its best offset."""
        return best_offset(self.effects, self.limits, self.design.times(w), w, exact=False)

    def initial_direction(self, i: int, start: Floats | None = None) -> Floats:
        """Return the initial direction for the i-th way to begin, shape (d,)."""
        mask = self.worth_changing[i]
        return initial_direction(self.design, mask, self.weight, bounds=self.bounds, start=start)

    def best_initial_direction(self, start: Floats | None = None) -> tuple[Floats, int]:
        """Return the initial direction that comes closest by itself, (d,), and its number."""
        n_ways = len(self.worth_changing)
        candidates = [self.with_offset(self.initial_direction(i, start)) for i in range(n_ways)]
        i = min(range(n_ways), key=lambda i: candidates[i].rank)
        return candidates[i].w, i
