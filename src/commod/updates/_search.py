"""Search for the update with the fewest changes for one target.

On large tables a search runs on a sample, and its result is verified on all rows:

1. Search on the sample.
2. Determine the exact offset on all rows.
3. If the update changes a larger share of all rows than sampling error explains, or stays further
   from the target, continue on a larger sample, from the direction found so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.encoding import TermTable
from commod._solvers.search.annealing import SearchTask
from commod._solvers.search.offset import best_offset
from commod._solvers.search.path import SearchSolution, SearchStep, solve
from commod._solvers.search.threads import single_blas_thread
from commod.updates._problem import FitProblem
from commod.updates._sample import (
    SampleComparison,
    SearchSample,
    agrees_with_sample,
    search_samples,
)
from commod.updates._steps import tell

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

StoppedBy = Literal["parity", "budget", "columns"]

N_HALVINGS = 6  # of the interval that holds the closest value to an unreachable target
PRICING_WIDTHS = (0.01, 0.02, 0.04, 0.08)  # distances of targets whose costs are compared
MIN_PRICED_ROWS = 40  # changes by which these costs should differ


@dataclass(frozen=True)
class SearchOutcome:
    """The update that a search returns, as weights of η = −r; rows with η > 0 change.

    - `weights` (n_terms,): per standard deviation of a term; `points` (n_terms,): per raw unit.
    - `offset`: η where every term has its mean; `mean_total`: the sum of the points at the means.
    - `steps`: the steps of the search, with cost and number of terms after each.
    - `shrinkage`: the weight of the initial direction in the weights, between 0 and 1.
    - `violation`: by how much the target is missed on all rows; 0 where it is reached.
    - `n_search_rows`: the size of the search sample.
    - `verified`: whether the update was compared with its sample and agrees with it.
    - `stopped_by`: what ended a search without a target; None for a search with one.
    - `fewest`: the smallest share of changed rows that was found for the same fairness, NaN where
      not counted.
    - `is_whole`: whether points are whole numbers, and rows change above a whole number of points.
    """

    weights: Floats
    points: Floats
    offset: float
    mean_total: float
    steps: tuple[SearchStep, ...]
    shrinkage: float
    violation: float
    n_search_rows: int
    verified: bool = False
    stopped_by: StoppedBy | None = None
    fewest: float = float("nan")
    is_whole: bool = False

    def eta(self, terms: TermTable) -> Floats:
        """Return η of any rows, before r is scaled, shape (n,)."""
        return terms.total(self.points, 0.0) + (self.offset - self.mean_total)

    def moved(self, offset: float) -> SearchOutcome:
        """Return the update with another offset of the total of the points."""
        offset = half_offset(offset) if self.is_whole else offset
        return replace(self, offset=offset + self.mean_total)


def half_offset(offset: float) -> float:
    """Return the offset halfway between two whole totals that changes the same rows.

    Examples
    --------
    >>> half_offset(-3.0), half_offset(-2.5)
    (-3.5, -2.5)
    """
    return -(float(np.floor(-offset)) + 0.5)


def no_change(outcome: SearchOutcome) -> SearchOutcome:
    """Return the update that changes no decision; it keeps the size of the search sample."""
    nothing = np.zeros_like(outcome.weights)
    return replace(outcome, weights=nothing, points=nothing, offset=-1.0, mean_total=0.0, steps=())


def changed_rows(problem: FitProblem, outcome: SearchOutcome) -> Mask:
    """Return the rows of the problem that an update changes, shape (n,)."""
    return (outcome.eta(problem.terms) > 0) & problem.may_change


# ---------------------------------------------------------------------------------------------
# One target


class FoundUpdate(NamedTuple):
    """An update that a search found: its sample, its solution there, and the update on all rows.

    `value` is the target, or the closest value to it that the search reached.
    """

    sample: SearchSample
    solution: SearchSolution
    outcome: SearchOutcome
    value: float


def search_target(
    problem: FitProblem,
    target: float,
    starts: Sequence[Floats] = (),
    earlier: FoundUpdate | None = None,
) -> FoundUpdate:
    """Return the update for a target, or the update that comes closest to it within the caps.

    `starts` are weights (n_terms,) of updates from which the search also begins. Where `earlier`,
    an update for another target, is given, the search begins there and nowhere else.
    """
    with single_blas_thread:
        return next(verified_updates(problem, target, closest=True, starts=starts, earlier=earlier))


def verified_updates(
    problem: FitProblem,
    target: float,
    *,
    closest: bool,
    starts: Sequence[Floats] = (),
    earlier: FoundUpdate | None = None,
) -> Iterator[FoundUpdate]:
    """Yield verified updates, smallest sample first. The last one is fitted on all rows.

    If `closest`, an unreachable target is replaced by the closest value that can be reached.
    """
    known: SearchSolution | None = None
    value = target
    terms = np.arange(problem.terms.n_terms)
    if earlier is not None:
        known, value, terms = earlier.solution, earlier.value, earlier.sample.task.design.terms
    for sample in search_samples(problem, target):
        if known is not None:
            known = _on_terms(known, terms, sample.task.design.terms)
        terms = sample.task.design.terms
        tell(f"searching for points on {len(sample.index):,} rows")
        solution = solve(sample.task, known, [weights[terms] for weights in starts])
        # A looser target does not help where another constraint is what cannot be kept.
        if closest and not solution.is_reached and not problem.standing:
            solution, value = _closest(sample, target, solution, known, value)
        else:
            value = target
        known = solution
        if problem.use_all and not sample.is_all_rows:
            continue
        outcome = outcome_of(sample, sample.task, solution, target)
        if sample.is_all_rows:
            yield FoundUpdate(sample, solution, outcome, value)
        elif agrees_with_sample(
            compare_with_sample(sample, sample.task, solution, outcome, target)
        ):
            yield FoundUpdate(sample, solution, replace(outcome, verified=True), value)


def _on_terms(
    solution: SearchSolution, terms: NDArray[np.intp], other_terms: NDArray[np.intp]
) -> SearchSolution:
    """Return a solution on `terms` (d,) as a start on the terms of a larger sample.

    A larger sample has more terms that enough people share. They begin with weight 0.
    """
    if np.array_equal(terms, other_terms):
        return solution

    def moved(w: Floats) -> Floats:
        weights = np.zeros(1 + max(terms.max(initial=0), other_terms.max(initial=0)))
        weights[terms] = w
        return np.asarray(weights[other_terms])

    direction = replace(solution.direction, w=moved(solution.direction.w))
    initial = None if solution.initial is None else moved(solution.initial)
    return replace(
        solution,
        direction=direction,
        support=direction.w != 0,
        dense=moved(solution.dense),
        initial=initial,
        supports=(),
    )


def outcome_of(
    sample: SearchSample, task: SearchTask, solution: SearchSolution, target: float
) -> SearchOutcome:
    """Return the solution of a task as an update with its exact offset on all rows."""
    problem, effects = sample.problem, sample.problem.effects
    weights = np.zeros(problem.terms.n_terms)
    weights[task.design.terms] = solution.direction.w
    points = weights / problem.scale
    mean_total = float(points @ problem.moments[0])
    eta = problem.terms.total(points, 0.0)
    effects = effects if weights.any() else effects.of_nobody()
    on_all_rows = best_offset(effects, problem.inequalities(target, effects), eta, weights)
    return SearchOutcome(
        weights=weights,
        points=points,
        offset=on_all_rows.offset + mean_total,
        mean_total=mean_total,
        steps=solution.steps,
        shrinkage=solution.shrinkage,
        violation=on_all_rows.violation,
        n_search_rows=len(sample.index),
    )


def compare_with_sample(
    sample: SearchSample,
    task: SearchTask,
    solution: SearchSolution,
    outcome: SearchOutcome,
    target: float,
) -> SampleComparison:
    """Return what the solution of a task does to its search sample and to all rows."""
    problem, effects, w = sample.problem, task.effects.on_true_cells(), solution.direction.w
    eta = task.design.times(w)
    on_sample = best_offset(effects, problem.inequalities(target, effects), eta, w)
    changed = (eta + on_sample.offset > 0) & effects.may_change
    return SampleComparison(
        share=float(effects.people[changed].sum()),
        share_of_all=float(changed_rows(problem, outcome).mean()),
        n_changed=int(changed.sum()),
        distance=outcome.violation - on_sample.violation,
        progress=abs(target - problem.base_fairness) - on_sample.violation,
    )


# ---------------------------------------------------------------------------------------------
# An unreachable target


def _closest(
    sample: SearchSample,
    target: float,
    at_target: SearchSolution,
    earlier: SearchSolution | None,
    value: float,
) -> tuple[SearchSolution, float]:
    """Return the solution for the reachable value closest to a target, and that value.

    Halving determines the value. It begins near `value`, which `earlier`, a solution on fewer
    rows, reaches. `at_target` is the solution for the target itself, which may come closer.
    """
    base = sample.problem.base_fairness
    best, start = None, earlier
    reached, missed = base, target
    step = (missed - reached) / (2 if earlier is None else 16)
    goal = reached + step if earlier is None else value
    goal = target - step if goal == target else goal
    for _ in range(N_HALVINGS):
        task = sample.task_for(goal, sparsity=0.0)
        solution = solve(task, start)
        if not solution.is_reached and start is not None and earlier is None:
            solution = solve(task)
        if solution.is_reached:
            reached, best, start = goal, solution, solution
        else:
            missed = goal
        half = (missed - reached) / 2
        if abs(half) < abs(target - base) / 2 ** (N_HALVINGS + 1):
            break
        if best is None:
            goal = missed - min(step, half, key=abs)
        else:
            goal = reached + (min(step, half, key=abs) if missed == target else half)
    if best is None:
        return at_target, base
    if sample.problem.sparsity:
        best = _shorten(sample, reached, best, None if earlier is None else best)
    if at_target.direction.better_than(sample.task.with_offset(best.direction.w)):
        best = at_target
    return best, reached


def _shorten(
    sample: SearchSample, value: float, best: SearchSolution, start: SearchSolution | None
) -> SearchSolution:
    """Return a shorter scorecard than `best` for a reachable value, or for a little less."""
    base = sample.problem.base_fairness
    for share in (1.0, 0.97):
        solution = solve(sample.task_for(base + share * (value - base)), start)
        if solution.is_reached:
            return solution
    return best


# ---------------------------------------------------------------------------------------------
# The price of the target


def price_of_target(problem: FitProblem, outcome: SearchOutcome) -> float:
    """Return the cost of a stricter target per unit of the target, at the fairness reached.

    It is the slope of the cost between a looser and a stricter target, with the same points and
    the cheapest offset for each. The distance between the two grows until their costs differ by
    enough rows. NaN where the update changes nothing or the slope is not defined.
    """
    changed = changed_rows(problem, outcome)
    reached = problem.rows.fairness(problem.constraint, problem.rows.base.decisions ^ changed)
    if not changed.any() or np.isnan(reached):
        return float("nan")
    eta, ideal = problem.terms.total(outcome.points, 0.0), problem.constraint.ideal
    slope = float("nan")
    for width in PRICING_WIDTHS:
        looser, stricter = (
            _cheapest_at(problem, outcome, eta, _towards(reached, end, width))
            for end in (problem.base_fairness, ideal)
        )
        if stricter is None:  # no offset is fairer
            stricter = _cheapest_at(problem, outcome, eta, reached)
        if looser is None or stricter is None or looser[0] == stricter[0]:
            continue
        rise = stricter[1] - looser[1]
        slope = max(rise, 0.0) / abs(stricter[0] - looser[0])
        if rise * problem.rows.n_people >= MIN_PRICED_ROWS:
            break
    return slope


def _towards(value: float, end: float, width: float) -> float:
    return value + float(np.clip(end - value, -width, width))


def _cheapest_at(
    problem: FitProblem, outcome: SearchOutcome, eta: Floats, target: float
) -> tuple[float, float] | None:
    """Return a target and the cost of the cheapest offset that reaches it; None if none does."""
    effects = problem.effects
    inequalities = problem.inequalities(target, effects)
    direction = best_offset(effects, inequalities, eta, outcome.weights)
    return None if direction.violation > 0 else (target, direction.cost)
