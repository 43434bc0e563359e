"""Search for a short scorecard with few changes, for one target or along a path of targets.

`solve` begins with all columns and the fewest changes. `sparsity` allows extra changes, a share of
the fewest. They are spent in three steps:

1. Drop raw columns, for up to a quarter of the extra changes; up to half while more than 6 remain.
2. Drop terms of columns with many until 40 terms are left, for up to half; up to all if needed.
3. Shrink the direction towards the initial direction, for the rest. The initial direction fits
   less noise, so the update does better on new rows.

At the end, small categories keep the share of their weight that their evidence supports
(`credibility.py`), whatever `sparsity` is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.annealing import SearchTask, anneal, full_costs
from commod._solvers.search.offset import Direction
from commod._solvers.search.rates import SumInequalities

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Progress = Callable[[int, int], None] | None

BUDGET_SHARES = (0.25, 0.5, 1.0)  # of the extra changes: after columns, after terms, after all
READABLE_COLUMNS = 6  # with more columns than this, dropping columns may cost twice as much
READABLE_TERMS = 40  # a scorecard of one page
MIN_SEPARATE_TERMS = 4  # a column with fewer terms is kept or dropped as a whole
MIN_SHRINKAGE = 0.05  # less makes no difference
SHARES_OF_SMALL_SHRINKAGE = (1.0, 0.75, 0.5, 0.25)  # tried in this order
MAX_COST_OF_SMALL_SHRINKAGE = 1.05  # times the changes; at a higher cost, shrink less
MAX_COST_OF_SHRINKAGE = 1.5  # times the changes; at a higher cost, shrink less
# Positions along a path of targets, from the loosest (0) to the tightest (1).
REFERENCE_POSITION = 0.6  # the target whose columns all targets share
CHECKED_POSITIONS = (1.0, 0.3)  # targets at which these columns must be enough
MAX_COST_OF_SUPPORT = 1.6  # times the changes with all columns; at a higher cost, add columns

N_RESTARTS = 3  # from the raw columns whose parts come closest by themselves

rank = attrgetter("rank")


class SearchStep(NamedTuple):
    """The state of a search after one step, on the search sample.

    `change_rate` is the cost: the share of changes where errors have no weight.
    """

    step: str
    change_rate: float
    n_terms: int


@dataclass(frozen=True)
class SearchSolution:
    """A direction with d weights, zero outside `support` (d,), and how it was reached.

    `shrinkage` is the weight of the initial direction in it. A search on more rows starts from
    `dense` (d,), the direction of all columns, and from `initial` (d,), the initial direction. It
    tries the same `supports`.
    """

    direction: Direction
    support: Mask
    shrinkage: float
    steps: tuple[SearchStep, ...]
    dense: Floats
    initial: Floats | None = None
    supports: tuple[Mask, ...] = ()

    @property
    def is_reached(self) -> bool:
        """Return whether the target is reached."""
        return self.direction.violation <= 0

    def then(
        self, step: str, direction: Direction, support: Mask, shrinkage: float = 0.0
    ) -> SearchSolution:
        """Return the solution after one more step; `direction` has one weight per kept column."""
        return replace(
            self,
            direction=replace(direction, w=_expand(direction.w, support)),
            support=support,
            shrinkage=shrinkage,
            steps=(*self.steps, SearchStep(step, direction.cost, int(support.sum()))),
        )


def _expand(w: Floats, support: Mask) -> Floats:
    """Return weights of all columns from those of the columns in `support`."""
    weights = np.zeros(len(support))
    weights[support] = w
    return weights


# ---------------------------------------------------------------------------------------------
# One target


def solve(
    task: SearchTask, earlier: SearchSolution | None = None, starts: Sequence[Floats] = ()
) -> SearchSolution:
    """Return the solution of a task; it may miss the target, see its violation.

    The search begins from `earlier`: a solution on fewer rows, or for another target. Without it,
    the search begins from the initial directions, and also from `starts` (d,).
    """
    return shrink_small(task, _limited(task, _solve(task, earlier, starts)))


def _solve(
    task: SearchTask, earlier: SearchSolution | None, starts: Sequence[Floats]
) -> SearchSolution:
    """Return the solution before the weights of small categories are shrunk."""
    all_columns = np.ones(task.design.width, dtype=bool)
    best = _fewest(task, starts) if earlier is None else anneal(task, earlier.dense)
    solution = SearchSolution(best, all_columns, 0.0, (), best.w)
    solution = solution.then("all columns", best, all_columns)
    if not task.sparsity or best.violation > 0 or not 0 < best.cost <= task.known:
        return solution
    supports = (earlier.supports if earlier else ()) or tuple(_shorter_supports(task))
    solution = replace(solution, supports=supports, initial=earlier.initial if earlier else None)
    max_costs = [best.cost * (1 + task.sparsity * share) for share in BUDGET_SHARES]
    solution = _drop_columns(task, solution, supports, max_costs[0])
    n_too_many = len(np.unique(task.columns[solution.support])) - READABLE_COLUMNS
    if n_too_many > 0:
        n_dropped = len(np.unique(task.columns)) - READABLE_COLUMNS
        supports = supports[n_dropped - n_too_many : n_dropped]
        solution = _drop_columns(task, solution, supports, max_costs[1])
    for max_cost in max_costs[1:]:
        solution = _drop_terms(task, solution, max_cost)
    return _shrink(task, solution, max_costs[-1])


def _limited(task: SearchTask, solution: SearchSolution) -> SearchSolution:
    """Return the solution on at most `max_lines` columns of the design, shrunk as far as allowed.

    A fifth of the columns that are too many is dropped at once, those first that are missed least.
    """
    max_lines = task.max_lines
    if max_lines is None or int((solution.direction.w != 0).sum()) <= max_lines:
        return solution
    support = solution.direction.w != 0
    direction = solution.direction
    while (n_too_many := int(support.sum()) - max_lines) > 0:
        at = np.flatnonzero(support)
        weights = [np.where(np.arange(len(support)) == t, 0.0, direction.w) for t in at]
        without = [task.with_offset(w) for w in weights]
        order = sorted(range(len(at)), key=lambda i: without[i].rank)
        support = support.copy()
        support[at[order[: max(1, n_too_many // 5)]]] = False
        part = task.select(support)
        best = anneal(part, direction.w[support])
        direction = replace(best, w=_expand(best.w, support))
    best = replace(direction, w=direction.w[support])
    solution = solution.then("fewer lines", best, support)
    if not task.sparsity:
        return solution
    return _shrink(task, solution, best.cost * (1 + task.sparsity / 2))


def _fewest(task: SearchTask, starts: Sequence[Floats]) -> Direction:
    """Return the direction of all columns with the fewest changes.

    Where it needs far more changes than the exact limit, the search begins again from each raw
    column's part of the best direction.
    """
    initial = [task.initial_direction(i) for i in range(len(task.worth_changing))]
    best = min((anneal(task, w, is_short=False) for w in initial), key=rank)
    best = min([best, *(anneal(task, w) for w in starts if w.any())], key=rank)
    is_near = min(best.cost, task.known) <= task.restart_factor * task.limit
    if best.violation > 0 or is_near or task.effects.soft_step is not None:
        return best  # soft changes of soft cells have few local minima
    columns = [task.columns == column for column in np.unique(task.columns)]
    parts = [np.where(column, w, 0.0) for w in initial for column in columns]
    by_itself = sorted((task.with_offset(w) for w in parts if w.any()), key=rank)
    others = [anneal(task, direction.w, is_short=False) for direction in by_itself[:N_RESTARTS]]
    return min([best, *others], key=rank)


def _drop_columns(
    task: SearchTask, solution: SearchSolution, supports: Sequence[Mask], max_cost: float
) -> SearchSolution:
    """Return the solution on the shortest of `supports` that costs at most `max_cost`.

    Supports go from long to short. The bisection assumes that shorter ones cost more.
    """
    low, high = -1, len(supports) - 1
    while low < high:
        middle = (low + high + 1) // 2
        shorter = _restrict(task, solution, supports[middle], max_cost, "fewer columns")
        if shorter is None:
            high = middle - 1
        else:
            solution, low = shorter, middle
    return solution


def _restrict(
    task: SearchTask, solution: SearchSolution, support: Mask, max_cost: float, step: str
) -> SearchSolution | None:
    """Return the solution on the columns in `support`; None where it costs too much."""
    part, w = task.select(support), solution.direction.w[support]
    direction = anneal(part, w if w.any() else part.best_initial_direction()[0])
    is_allowed = direction.violation <= 0 and direction.cost <= max_cost
    return solution.then(step, direction, support) if is_allowed else None


def _shorter_supports(task: SearchTask) -> list[Mask]:
    """Return supports (d,) without one raw column, without two, …, least useful columns first.

    The initial direction judges how useful a column is: it answers one clear question, while the
    direction of a search has adapted to noise.
    """
    w, i = task.best_initial_direction()
    rows = task.learning_rows
    mask, times = rows.worth_changing[i], rows.design.times
    support = np.ones(task.design.width, dtype=bool)
    supports = []
    while len(names := np.unique(task.columns[support])) > 1:
        columns = [support & (task.columns == name) for name in names]
        eta = times(w)
        losses = [_misordered(mask, eta - times(np.where(part, w, 0.0))) for part in columns]
        support = support & ~columns[int(np.argmin(losses))]
        w = _expand(task.select(support).initial_direction(i), support)
        supports.append(support)
    return supports


def _misordered(worth_changing: Mask, eta: Floats) -> float:
    """Return the share of pairs of a row worth changing and another that `eta` orders wrongly."""
    ranks = 1 + np.flatnonzero(worth_changing[np.argsort(eta, kind="stable")])
    n, m = float(worth_changing.sum()), float((~worth_changing).sum())
    return 1 - float(ranks.sum() - n * (n + 1) / 2) / max(n * m, 1.0)


def _drop_terms(task: SearchTask, solution: SearchSolution, max_cost: float) -> SearchSolution:
    """Drop terms of columns with many, several at once, until the scorecard is readable."""
    share = 0.4
    while (n_too_many := int(solution.support.sum()) - READABLE_TERMS) > 0:
        n_terms = np.bincount(task.columns[solution.support], minlength=task.columns.max() + 1)
        is_separate = solution.support & (n_terms >= MIN_SEPARATE_TERMS)[task.columns]
        separate = np.flatnonzero(is_separate)
        n_dropped = min(int(share * len(separate)), n_too_many)
        if not n_dropped:
            break
        losses = _losses_without(task, solution.direction)[separate]
        support = solution.support.copy()
        support[separate[np.argsort(losses, kind="stable")[:n_dropped]]] = False
        shorter = _restrict(task, solution, support, max_cost, "fewer terms")
        if shorter is None:
            share /= 2
        else:
            solution = shorter
    return solution


def _losses_without(task: SearchTask, direction: Direction) -> Floats:
    """Return the loss when the weight of each category becomes zero and the offset stays, (d,)."""
    costs = full_costs(task, direction) * task.effects.may_change
    eta = task.design.times(direction.w) + direction.offset
    return task.design.gain_without(direction.w, eta, costs)


def _shrink(task: SearchTask, solution: SearchSolution, max_cost: float) -> SearchSolution:
    """Shrink towards the initial direction as far as the cost stays within `max_cost`."""
    support = solution.support
    part, w = task.select(support), solution.direction.w[support]
    start = None if solution.initial is None else solution.initial[support]
    initial, _ = part.best_initial_direction(start)
    solution = replace(solution, initial=_expand(initial, support))
    for shrinkage in np.linspace(1.0, MIN_SHRINKAGE, 20).tolist():
        direction = _shrunk(part, w, initial, shrinkage)
        if direction.violation <= 0 and direction.cost <= max_cost:
            return solution.then("shrunk", direction, support, shrinkage)
    return solution


def _shrunk(part: SearchTask, w: Floats, initial: Floats, shrinkage: float) -> Direction:
    """Return the direction between `w` and the initial direction, with its offset."""
    return part.with_offset((1 - shrinkage) * part.unit_columns(w) + shrinkage * initial)


def shrink_small(task: SearchTask, solution: SearchSolution) -> SearchSolution:
    """Shrink the weights of small categories.

    Shrink less where the target would be missed further, or where it costs too many changes.
    """
    if task.credibility is None:
        return solution
    w, support = solution.direction.w, solution.support
    for share in SHARES_OF_SMALL_SHRINKAGE:
        shrunk = w * (1 - share * (1 - task.credibility))
        if np.array_equal(shrunk, w):
            break
        direction = task.with_offset(shrunk)
        is_near = direction.violation <= max(solution.direction.violation, 0.0)
        if is_near and direction.cost <= MAX_COST_OF_SMALL_SHRINKAGE * solution.direction.cost:
            direction = replace(direction, w=direction.w[support])
            return solution.then("small categories", direction, support, solution.shrinkage)
    return solution


# ---------------------------------------------------------------------------------------------
# A path of targets


def solve_path(
    task: SearchTask,
    inequalities: Sequence[SumInequalities],
    reference: SearchSolution,
    report: Progress = None,
    shrinkages: Sequence[float | None] = (None,),
    every: int = 1,
) -> list[list[SearchSolution]]:
    """Return solutions for several inequalities, from loosest to tightest: one for each shrinkage.

    `reference` is the solution of `task`, whose inequalities are those at REFERENCE_POSITION. All
    solutions share its columns, so that they can be compared term by term; columns are added where
    these are not enough. Every search begins from its neighbour's direction. A shrinkage of None
    is that of the reference; 1 is the initial direction itself, on all columns. A direction is
    searched for at `every` second (third, …) one; the others take a neighbour's, with an offset of
    their own.
    """
    tasks = [replace(task, inequalities=limit) for limit in inequalities]
    support, starts = _shared_support(tasks, reference)
    part = task.select(support)
    initial, i = part.best_initial_direction()
    dense_initial = task.initial_direction(i)
    parts = [replace(part, inequalities=limit) for limit in inequalities]
    directions = _follow_path(parts, [initial, *(w[support] for w in starts)], report, every)
    start = replace(reference, steps=())
    path: list[list[SearchSolution]] = []
    for task, part, direction in zip(tasks, parts, directions, strict=True):
        unshrunk = start.then("on the path", direction, support)
        dense = task.with_offset(dense_initial)
        path.append([])
        for shrinkage in shrinkages:
            is_dense = shrinkage == 1.0 and task.max_lines is None
            if is_dense and dense.violation <= direction.violation:
                all_columns = np.ones(len(support), dtype=bool)
                solution = start.then("initial direction", dense, all_columns, 1.0)
            elif shrinkage is None:
                max_cost = direction.cost * max(MAX_COST_OF_SHRINKAGE, 1 + task.sparsity)
                solution = shrink_by(part, unshrunk, initial, reference.shrinkage, max_cost)
            else:
                solution = shrink_by(part, unshrunk, initial, shrinkage, np.inf)
            path[-1].append(shrink_small(task, solution))
    return path


def _shared_support(
    tasks: Sequence[SearchTask], reference: SearchSolution
) -> tuple[Mask, list[Floats]]:
    """Return the columns (d,) of a path, and directions (d,) from which to start.

    These are the reference's columns, and more where they cost far more than all columns would.
    """
    support, starts = reference.support, [reference.direction.w]
    may_grow = tasks[0].sparsity and tasks[0].max_lines is None
    for position in CHECKED_POSITIONS if may_grow else ():
        task = tasks[int(position * (len(tasks) - 1))]
        dense = anneal(task, reference.dense)
        if dense.violation > 0 or not dense.cost:
            continue
        part = task.select(support)
        candidates = [part.with_offset(w[support]) for w in (dense.w, starts[0])]
        short = anneal(part, min(candidates, key=rank).w)
        if short.violation > 0 or short.cost > MAX_COST_OF_SUPPORT * dense.cost:
            longer = solve(task, replace(reference, dense=dense.w))
            support = support | longer.support
            starts.append(longer.direction.w)
    return support, starts


def _follow_path(
    tasks: Sequence[SearchTask], starts: Sequence[Floats], report: Progress, every: int
) -> list[Direction]:
    """Return a direction for each of several tasks; each search begins from its neighbour's.

    Where one of `starts` is better by itself than the result, a second search begins from it.
    Between two searches, a task takes the direction of the one before, if it is not worse than
    that of the one after.
    """
    directions: list[Direction] = []
    w = starts[-1]
    for i, task in enumerate(tasks):
        is_searched = i % every == 0 or i == len(tasks) - 1
        direction = anneal(task, w) if is_searched else task.with_offset(w)
        start = min((task.with_offset(start) for start in starts), key=rank)
        if start.better_than(direction):
            direction = min(direction, anneal(task, start.w) if is_searched else start, key=rank)
        directions.append(direction)
        w = direction.w
        if report is not None:
            report(len(directions), len(tasks))
    for i in reversed(range(len(tasks) - 1)):  # a tighter target's direction may be better here
        tighter = tasks[i].with_offset(directions[i + 1].w)
        directions[i] = min(directions[i], tighter, key=rank)
    return directions


def shrink_by(
    part: SearchTask, unshrunk: SearchSolution, initial: Floats, shrinkage: float, max_cost: float
) -> SearchSolution:
    """Return the shrunk solution, or the unshrunk one where shrinking misses the target more.

    The shrinkage is halved while it costs more than `max_cost`. That may be more than `sparsity`
    allows at the reference: shrinkage pays on new rows.
    """
    w = unshrunk.direction.w[unshrunk.support]
    while shrinkage >= MIN_SHRINKAGE:
        direction = _shrunk(part, w, initial, shrinkage)
        if direction.violation > unshrunk.direction.violation:
            break
        if direction.cost <= max_cost:
            return unshrunk.then("shrunk", direction, unshrunk.support, shrinkage)
        shrinkage /= 2
    return unshrunk
