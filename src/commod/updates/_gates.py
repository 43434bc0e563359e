"""Fit an update for one target: choose which direction of changes is best, then whom to change.

1. Search with gains only, with losses only, and with both. A direction whose exact limit is above
   the changes found already cannot win, and is skipped.
2. Keep the direction with the fewest changes. Gains only is kept where it needs no more than the
   extra changes that `borderline` allows.
3. Spend what is left of these extra changes on people nearer to the threshold, or whose change
   costs less.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.borderline import CheaperSolution, nearest_first
from commod._solvers.search.path import SearchSolution
from commod._solvers.search.repeat import Recipe
from commod._solvers.search.threads import single_blas_thread
from commod.updates._problem import FitProblem
from commod.updates._search import (
    FoundUpdate,
    SearchOutcome,
    changed_rows,
    outcome_of,
    search_target,
)

EQUALLY_CLOSE = 0.02  # of the way to a target that is missed: updates this close miss it equally


class KeptUpdate(NamedTuple):
    """The update that is kept, and the problem with the direction of changes that it keeps to.

    `found` is what the search found before extra changes were spent on cheaper ones, and `recipe`
    holds the choices that led to the update. `n_fewest` is the fewest changes of any direction.
    """

    problem: FitProblem
    outcome: SearchOutcome
    found: FoundUpdate
    recipe: Recipe
    n_fewest: int


class GatedUpdate(NamedTuple):
    """An update of one direction; `rank` orders updates, best first."""

    found: FoundUpdate
    rank: tuple[float, int, float]

    @property
    def n_changed(self) -> int:
        return self.rank[1]


def fit_target(problem: FitProblem, target: float) -> KeptUpdate:
    """Return the update for a target, or the update that comes closest to it within the caps."""
    return spend(fit_fewest(problem, target), target)


def fit_fewest(problem: FitProblem, target: float) -> KeptUpdate:
    """Return the update for a target before `borderline` spends changes on cheaper ones."""
    return _kept(*best_gate(problem, target))


def search_again(kept: KeptUpdate, target: float) -> KeptUpdate:
    """Return the update for another target, in the same direction of changes."""
    found = search_target(kept.problem, target, earlier=kept.found)
    return spend(_kept(GatedUpdate(found, _rank(found, target)), None), target)


def _kept(gate: GatedUpdate, n_fewest: int | None) -> KeptUpdate:
    """Return the update of a direction; `n_fewest` is the fewest changes of any direction."""
    sample, solution, outcome, _ = gate.found
    n_fewest = gate.n_changed if n_fewest is None else n_fewest
    recipe = Recipe.of(sample.task, solution)
    return KeptUpdate(sample.problem, outcome, gate.found, recipe, n_fewest)


def best_gate(problem: FitProblem, target: float) -> tuple[GatedUpdate, int]:
    """Return the update of the best direction of changes, and the fewest changes of any."""
    gates = _search_gates(problem, target)
    fewest = min(gates, key=lambda gate: gate.rank)
    return _prefer_gains(gates, fewest, problem.borderline), fewest.n_changed


def own_gate(problem: FitProblem, target: float) -> tuple[GatedUpdate, int]:
    """Return the update in the direction of the problem as it is, and its changes."""
    found = search_target(problem, target)
    gate = GatedUpdate(found, _rank(found, target))
    return gate, gate.n_changed


# ---------------------------------------------------------------------------------------------
# Directions of changes


def gated_problems(problem: FitProblem) -> list[FitProblem]:
    """Return the problem with gains only, with losses only, and as it is; one where it is gated."""
    if not (problem.may_raise and problem.may_lower):
        return [problem]
    gains = problem.raising_is_a_gain
    return [
        problem.with_direction(gains, not gains),
        problem.with_direction(not gains, gains),
        problem,
    ]


def _search_gates(problem: FitProblem, target: float) -> list[GatedUpdate]:
    """Return the best update of each direction that may win; the list is never empty."""
    gates: list[GatedUpdate] = []
    gated = gated_problems(problem)
    for one in gated:
        best = min(gates, key=lambda gate: gate.rank, default=None)
        if len(gated) > 1 and _cannot_win(one, target, best):
            continue
        is_reached = best is not None and best.rank[0] == 0
        one = one.with_direction(
            one.may_raise,
            one.may_lower,
            # Every direction draws the same sample as a fit with this direction alone would.
            random_state=deepcopy(problem.random_state),
            known_share=best.n_changed / problem.rows.n_people if best and is_reached else np.inf,
        )
        starts = [gate.found.outcome.weights for gate in gates]
        found = search_target(one, target, starts)
        gates.append(GatedUpdate(found, _rank(found, target)))
    return gates


def _cannot_win(gated: FitProblem, target: float, best: GatedUpdate | None) -> bool:
    """Return whether a direction cannot have fewer changes than the best update so far."""
    limit = gated.limit(target)
    is_asked = gated.may_raise and gated.may_lower  # what the user asked for is searched if need be
    if best is None:
        return np.isinf(limit) and not is_asked
    is_reached = best.rank[0] == 0
    return is_reached and limit * gated.rows.n_people >= best.n_changed


def _rank(found: FoundUpdate, target: float) -> tuple[float, int, float]:
    """Return what updates are compared by: distance to the target, changes, errors."""
    problem, outcome = found.sample.problem, found.outcome
    changed = changed_rows(problem, outcome)
    step = EQUALLY_CLOSE * max(abs(target - problem.base_fairness), 1e-9)
    people = replace(problem.rows, weight=problem.rows.weight * problem.counted)
    accuracy = people.accuracy(problem.rows.base.decisions ^ changed)
    errors = 0.0 if np.isnan(accuracy) else 1 - accuracy
    return float(np.ceil(outcome.violation / step)), problem.rows.count(changed), errors


def _prefer_gains(
    gates: Sequence[GatedUpdate], fewest: GatedUpdate, borderline: float
) -> GatedUpdate:
    """Return the update with gains only where its extra changes are allowed, else the fewest."""
    for gate in gates:
        is_gains = gate.found.sample.problem.direction == "gains_only"
        is_as_close = gate.rank[0] == fewest.rank[0]
        if is_gains and is_as_close and gate.n_changed <= (1 + borderline) * fewest.n_changed:
            return gate
    return fewest


# ---------------------------------------------------------------------------------------------
# Whom to change


def spend(kept: KeptUpdate, target: float) -> KeptUpdate:
    """Return the update moved to people whose change costs less, within `borderline`.

    The update is returned as it is where nothing may be spent, or where nothing costs less.
    """
    problem, outcome, found = kept.problem, kept.outcome, kept.found
    n_allowed = (1 + problem.borderline) * kept.n_fewest
    n_changed = problem.rows.count(changed_rows(problem, outcome))
    with single_blas_thread:
        for cheaper in cheaper_solutions(found, n_allowed / max(n_changed, 1)):
            moved = outcome_of(found.sample, found.sample.score_task, cheaper.solution, target)
            n_moved = problem.rows.count(changed_rows(problem, moved))
            if moved.violation <= outcome.violation and n_moved <= n_allowed:
                moved = replace(moved, verified=outcome.verified)
                recipe = Recipe.of(cheaper.task, cheaper.solution)
                recipe = replace(recipe, level=cheaper.level, typical_cost=cheaper.typical_cost)
                return kept._replace(outcome=moved, recipe=recipe)
    return kept


def cheaper_solutions(found: FoundUpdate, max_factor: float) -> list[CheaperSolution]:
    """Return solutions whose changes cost less, with at most `max_factor` times the changes.

    They have weights for the columns of the sample's `score_task`.
    """
    sample, solution, _, value = found
    problem, task = sample.problem, sample.score_task
    if problem.change_cost is None or not problem.borderline:
        return []
    eta = sample.task.design.times(solution.direction.w) + solution.direction.offset
    share = float(task.effects.people[(eta > 0) & task.effects.may_change].sum())
    return nearest_first(
        replace(task, inequalities=problem.inequalities(value, task.effects)),
        problem.change_cost[sample.index[sample.acting]],
        _with_columns(solution, ~task.reads_score),
        share * max_factor,
        is_distance=problem.cost_is_distance,
    )


def _with_columns(solution: SearchSolution, is_known: NDArray[np.bool_]) -> SearchSolution:
    """Return a solution on more columns; `is_known` (d,) marks those that it has weights for."""

    def expand(values: NDArray[Any]) -> NDArray[Any]:
        expanded = np.zeros(len(is_known), dtype=values.dtype)
        expanded[is_known] = values
        return expanded

    return replace(
        solution,
        direction=replace(solution.direction, w=expand(solution.direction.w)),
        support=expand(solution.support),
        dense=expand(solution.dense),
        initial=None,
        supports=(),
    )
