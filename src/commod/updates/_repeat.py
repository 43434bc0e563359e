"""Repeat the search of an update: on fewer rows, or for another target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from commod._solvers.search.annealing import anneal
from commod._solvers.search.path import SearchSolution
from commod._solvers.search.repeat import Recipe, RepeatedSearch
from commod._solvers.search.threads import single_blas_thread
from commod.updates._gates import KeptUpdate, search_again
from commod.updates._sample import SearchSample
from commod.updates._search import SearchOutcome, changed_rows, outcome_of


@dataclass(frozen=True)
class RepeatedUpdate:
    """The updates of one recipe on a sample, for one target after another."""

    sample: SearchSample
    search: RepeatedSearch

    @classmethod
    def of(cls, sample: SearchSample, recipe: Recipe) -> RepeatedUpdate:
        """Return the updates of a recipe on a sample."""
        task = sample.score_task if recipe.level else sample.task
        cost = sample.problem.change_cost
        acting = sample.index[sample.acting]
        return cls(sample, RepeatedSearch(task, recipe, None if cost is None else cost[acting]))

    def outcome(self, target: float) -> SearchOutcome:
        """Return the update for a target, with its exact offset on all rows of the problem."""
        (outcome,) = self.outcomes(target, [self.search.shrinkage])
        return outcome

    def outcomes(self, target: float, shrinkages: Sequence[float]) -> list[SearchOutcome]:
        """Return the updates for a target, one for each shrinkage."""
        task = self.search.task
        inequalities = self.sample.problem.inequalities(target, task.effects)
        solutions = self.search.solve_each(inequalities, shrinkages)
        return [outcome_of(self.sample, task, solution, target) for solution in solutions]

    def initial_outcome(self, target: float) -> SearchOutcome:
        """Return the initial direction of all columns, with its exact offset for a target."""
        task = self.search.task
        initial, _ = task.best_initial_direction()
        inequalities = self.sample.problem.inequalities(target, task.effects)
        direction = replace(task, inequalities=inequalities).with_offset(initial)
        every = np.ones(task.design.width, dtype=bool)
        solution = SearchSolution(direction, every, 1.0, (), initial)
        return outcome_of(self.sample, task, solution, target)


def refit_target(kept: KeptUpdate, target: float) -> KeptUpdate:
    """Return the update for another target by the same recipe, in the same direction of changes.

    Where the recipe needs more changes than `sparsity` and `borderline` allow, or misses the
    target, the search makes its choices anew.
    """
    problem = kept.problem
    with single_blas_thread:
        outcome = RepeatedUpdate.of(kept.found.sample, kept.recipe).outcome(target)
        every_column, n_fewest = _with_every_column(kept, target)
    n_allowed = (1 + problem.sparsity) * (1 + problem.borderline) * n_fewest
    n_changed = problem.rows.count(changed_rows(problem, outcome))
    if outcome.violation > 0 or n_changed > n_allowed:
        return search_again(kept, target)
    outcome = replace(outcome, verified=kept.outcome.verified)
    return kept._replace(outcome=outcome, found=kept.found._replace(solution=every_column))


def _with_every_column(kept: KeptUpdate, target: float) -> tuple[SearchSolution, int]:
    """Return the solution with every column and term for a target, and its changes."""
    sample, solution = kept.found.sample, kept.found.solution
    task = sample.task_for(target)
    direction = anneal(task, solution.dense)
    dense = replace(solution, direction=direction)
    changed = changed_rows(kept.problem, outcome_of(sample, task, dense, target))
    return dense, kept.problem.rows.count(changed)
