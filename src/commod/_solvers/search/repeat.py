"""Repeat a search on other rows: the same terms, shrinkage and cost, learned anew.

A search on all rows chooses the terms of the scorecard, how far it is shrunk, and whom it prefers.
`Recipe` keeps these choices. `RepeatedSearch` makes the same scorecard from fewer rows. It begins
from an initial direction of its own rows, so it knows nothing about the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.annealing import SearchTask, anneal
from commod._solvers.search.borderline import with_cost
from commod._solvers.search.path import SearchSolution, shrink_by, shrink_small
from commod._solvers.search.rates import SumInequalities

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Recipe:
    """The choices of a search.

    - `terms` (k,): the terms with weights.
    - `shrinkage`: the weight of the initial direction in the weights, between 0 and 1.
    - `read_weight`: the weight of the distance from the threshold in initial directions.
    - `level`, `typical_cost`: how the cost of a change grows with its own cost; see
      `borderline.cost_at_level`. Level 0 counts changes.
    """

    terms: NDArray[np.intp]
    shrinkage: float = 0.0
    read_weight: float = 0.0
    level: float = 0.0
    typical_cost: float = 1.0

    @classmethod
    def of(cls, task: SearchTask, solution: SearchSolution) -> Recipe:
        """Return the choices that led to the solution of a task."""
        return cls(
            task.design.terms[solution.support],
            solution.shrinkage,
            task.read_weight,
        )


class RepeatedSearch:
    """A search by a recipe on the rows of a task, for one target after another.

    `change_cost` (n,) is the cost of each change; None where the recipe counts changes. Each target
    begins from the direction of the one before.
    """

    def __init__(self, task: SearchTask, recipe: Recipe, change_cost: Floats | None) -> None:
        task = replace(task, read_weight=recipe.read_weight)
        if recipe.level and change_cost is not None:
            task = with_cost(task, change_cost / recipe.typical_cost, recipe.level)
        self.task = task
        self.support = np.isin(task.design.terms, recipe.terms)
        self.part = task.select(self.support)
        self.shrinkage = recipe.shrinkage
        self.initial = np.zeros(0)
        if self.support.any():
            self.initial, _ = self.part.best_initial_direction()
        self.weights = self.initial

    def solve_each(
        self, inequalities: SumInequalities, shrinkages: Sequence[float]
    ) -> list[SearchSolution]:
        """Return the solutions for other inequalities, one for each shrinkage."""
        task, part = (replace(one, inequalities=inequalities) for one in (self.task, self.part))
        if not self.support.any():
            nobody = task.with_offset(np.zeros(task.design.width))
            return [SearchSolution(nobody, self.support, 0.0, (), nobody.w) for _ in shrinkages]
        direction = anneal(part, self.weights)
        initial = part.with_offset(self.initial)
        if initial.better_than(direction):
            direction = min(direction, anneal(part, self.initial), key=lambda one: one.rank)
        self.weights = direction.w
        start = SearchSolution(direction, self.support, 0.0, (), direction.w)
        unshrunk = start.then("repeated", direction, self.support)
        shrunk = [shrink_by(part, unshrunk, self.initial, s, np.inf) for s in shrinkages]
        return [shrink_small(task, solution) for solution in shrunk]
