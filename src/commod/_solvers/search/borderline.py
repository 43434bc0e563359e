"""Move an update towards people whose change costs less, such as those near the threshold.

The fewest changes go to the people whose columns tell the group best, wherever their scores are.
`nearest_first` spends a stated number of extra changes on people nearer to the threshold:

1. Let the direction read the distance from the threshold.
2. Search with a cost that grows with the distance, from a small share of the cost to all of it, and
   then to higher powers of the distance. Each search begins from the one before.
3. Of all directions within the allowed changes, keep those with almost the lowest total distance.
   Take the one whose people are the nearest on average.
4. Shrink it towards the initial direction as far as the total distance stays as low.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.annealing import SearchTask, anneal
from commod._solvers.search.design import unit_spread
from commod._solvers.search.offset import Direction
from commod._solvers.search.path import SearchSolution

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


LEVELS = (0.4, 0.7, 0.9, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # see `cost_at_level`
N_HALVINGS = 2  # of the interval between the last level within the allowed changes and the next
START = 0.2  # standard deviations of the distance in the first direction that reads it
MAX_TOTAL = 0.1  # of the extra changes: by how much the total cost may exceed the lowest total
SHRINKAGES = (0.8, 0.6, 0.4, 0.2)
MAX_MEAN = 1.03  # times the mean cost of the best direction, for one that is shrunk


def cost_at_level(relative_cost: Floats, level: float) -> Floats:
    """Return the cost of each change in a search, (n,), from its cost relative to a typical change.

    Up to level 1, the level is the share of the relative cost beside that of a plain change. Above
    1, the level is the power of the relative cost.
    """
    if level <= 1:
        return np.asarray((1 - level) + level * relative_cost)
    return np.asarray(relative_cost**level)


@dataclass(frozen=True)
class CostedDirection:
    """A direction, the share of people who change, and their total cost.

    The direction was searched at a level of the cost, and then shrunk.
    """

    direction: Direction
    n_changes: float
    total: float
    level: float = 0.0
    shrinkage: float = 0.0

    @property
    def mean(self) -> float:
        """Return the mean cost of a change."""
        return self.total / max(self.n_changes, 1e-12)


class CheaperSolution(NamedTuple):
    """A solution whose changes cost less, and the task with the cost that it was searched with.

    That cost follows from the `level` and the `typical_cost` of a change.
    """

    solution: SearchSolution
    task: SearchTask
    level: float
    typical_cost: float


def nearest_first(
    task: SearchTask,
    change_cost: Floats,
    solution: SearchSolution,
    max_changes: float,
    *,
    is_distance: bool = True,
) -> list[CheaperSolution]:
    """Return solutions that cost less than `solution`, best first; none where there are none.

    `solution` has weights for all d columns of the task, zeros for those that read the score.
    `change_cost` (n,) is the cost of each change. At most a share `max_changes` of the people
    changes. If the cost `is_distance`, r may only rise with the columns that read the score:
    nobody changes because the score is further away.
    """
    support = solution.support | task.reads_score
    part = task.select(support)
    w = unit_spread(part.design, solution.direction.w[support])
    first = _costed(part, part.with_offset(w), change_cost)
    if not first.n_changes or not first.total:
        return []
    candidates = [
        candidate
        for candidate in (first, *_candidates(part, change_cost, first, max_changes))
        if not is_distance or (candidate.direction.w[part.reads_score] <= 0).all()
    ]
    lowest = min(candidate.total for candidate in candidates)
    max_total = lowest * (1 + MAX_TOTAL * max(max_changes / first.n_changes - 1, 0.0))
    near = [c for c in candidates if c.total <= max_total]
    best = min(near, key=lambda candidate: candidate.mean)
    if best is first:
        return []
    shrunk = _shrunk(part, change_cost, best, max_changes, max_total)
    others = sorted((c for c in candidates[1:] if c is not best), key=lambda c: c.mean)
    relative_cost = change_cost / first.mean
    return [
        CheaperSolution(
            solution.then("nearer people", c.direction, support, c.shrinkage),
            with_cost(_reading(task, support, c.direction), relative_cost, c.level),
            c.level,
            first.mean,
        )
        for c in (shrunk, best, *others)
        if c is not None and c.mean < first.mean
    ]


def _candidates(
    part: SearchTask, change_cost: Floats, first: CostedDirection, max_changes: float
) -> Iterator[CostedDirection]:
    """Yield directions within the allowed changes, at higher and higher levels of the cost.

    Behind the first level that changes too many people, the interval to it is halved.
    """
    relative_cost = change_cost / first.mean
    start = np.where(part.reads_score, -START, first.direction.w)
    last_level, too_high = 0.0, None
    levels = list(LEVELS)
    while levels:
        level = levels.pop(0)
        direction = anneal(with_cost(part, relative_cost, level), start)
        candidate = _costed(part, direction, change_cost, level)
        is_reached = direction.violation <= first.direction.violation
        if is_reached and candidate.n_changes <= max_changes:
            start, last_level = direction.w, level
            yield candidate
        elif is_reached and too_high is None:
            too_high, levels = level, [np.nan] * N_HALVINGS
        elif too_high is not None:
            too_high = level
        if too_high is not None and levels:
            levels[0] = (last_level + too_high) / 2


def _shrunk(
    part: SearchTask,
    change_cost: Floats,
    best: CostedDirection,
    max_changes: float,
    max_total: float,
) -> CostedDirection | None:
    """Return `best` shrunk towards the initial direction; None where that costs more."""
    part = _reading(part, np.ones(part.design.width, dtype=bool), best.direction)
    initial, w = part.best_initial_direction()[0], part.unit_columns(best.direction.w)
    for shrinkage in SHRINKAGES:
        mixed = part.with_offset((1 - shrinkage) * w + shrinkage * initial)
        candidate = _costed(part, mixed, change_cost, best.level)
        is_reached = mixed.violation <= best.direction.violation
        is_cheap = candidate.total <= max_total and candidate.mean <= MAX_MEAN * best.mean
        if is_reached and is_cheap and candidate.n_changes <= max_changes:
            return replace(candidate, shrinkage=shrinkage)
    return None


def _reading(task: SearchTask, support: Mask, direction: Direction) -> SearchTask:
    """Return the task whose initial directions read the score as much as `direction` does.

    The direction has weights for the columns in `support` (d,).
    """
    w = task.select(support).unit_columns(direction.w)
    read = w[task.reads_score[support]]
    return replace(task, read_weight=float(read[0]) if len(read) else 0.0)


def with_cost(task: SearchTask, relative_cost: Floats, level: float) -> SearchTask:
    """Return the task in which the cost of a change grows as the level says."""
    cost = task.effects.cost * cost_at_level(relative_cost, level)
    return replace(task, effects=replace(task.effects, cost=cost))


def _costed(
    task: SearchTask, direction: Direction, change_cost: Floats, level: float = 0.0
) -> CostedDirection:
    """Return a direction with the share of people who change and what they cost."""
    effects = task.effects
    changed = (task.design.times(direction.w) + direction.offset > 0) & effects.may_change
    people = effects.people[changed]
    direction = replace(direction, cost=float(effects.cost[changed].sum()))
    total = float(people @ change_cost[changed])
    return CostedDirection(direction, float(people.sum()), total, level)
