"""Search for updates along a path of targets, on one sample and with one direction of changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from commod._solvers.search.offset import TIE
from commod._solvers.search.path import REFERENCE_POSITION as REFERENCE
from commod._solvers.search.path import Progress, solve_path
from commod._solvers.search.repeat import Recipe
from commod._solvers.search.threads import single_blas_thread
from commod.updates._gates import GatedUpdate, best_gate, cheaper_solutions, own_gate
from commod.updates._problem import FitProblem
from commod.updates._sample import agrees_with_sample, path_agrees_with_samples
from commod.updates._search import (
    FoundUpdate,
    SearchOutcome,
    changed_rows,
    compare_with_sample,
    outcome_of,
    verified_updates,
)


class FittedPath(NamedTuple):
    """The updates of each target, and the problem with the direction that all of them keep to."""

    problem: FitProblem
    updates: list[list[SearchOutcome]]


class SearchedPath(NamedTuple):
    """The updates of a path, and what repeats them on other rows.

    - `updates`: those of each target, one for each shrinkage.
    - `found`: the update at the reference target, with its sample.
    - `recipe`: the choices that all updates share.
    """

    problem: FitProblem
    updates: list[list[SearchOutcome]]
    found: FoundUpdate
    recipe: Recipe


def fit_path(
    problem: FitProblem,
    targets: Sequence[float],
    report: Progress = None,
    shrinkages: Sequence[float | None] = (None,),
) -> FittedPath:
    """Return updates for each target, loosest first: one for each shrinkage.

    A shrinkage of None lets the search choose. The direction of changes, and how much nearer
    people are preferred, are chosen at one target of the path. On large tables all updates are
    fitted on one sample, which grows until the path agrees with it.
    """
    path = search_path(problem, targets, report, shrinkages)
    return FittedPath(path.problem, path.updates)


def search_path(
    problem: FitProblem,
    targets: Sequence[float],
    report: Progress = None,
    shrinkages: Sequence[float | None] = (None,),
    *,
    every: int = 1,
    keep_direction: bool = False,
) -> SearchedPath:
    """Return updates as `fit_path` does, and what repeats them.

    Directions are searched for at `every` second (third, …) target. With `keep_direction`, updates
    keep to the direction of changes of the problem, and none is chosen.
    """
    reference_target = targets[int(REFERENCE * len(targets))]
    choose = own_gate if keep_direction else best_gate
    gate, n_fewest = choose(problem, reference_target)
    problem = gate.found.sample.problem
    max_factor = (1 + problem.borderline) * n_fewest / max(gate.n_changed, 1)
    with single_blas_thread:
        for found in _updates_of(gate, reference_target):
            sample, level, typical_cost = found.sample, 0.0, 1.0
            task, solution = sample.task, found.solution
            for cheaper in cheaper_solutions(found, max_factor)[:1]:
                solution, task = cheaper.solution, cheaper.task
                level, typical_cost = cheaper.level, cheaper.typical_cost
            inequalities = [problem.inequalities(target, task.effects) for target in targets]
            path = solve_path(task, inequalities, solution, report, shrinkages, every)
            terms = task.design.terms[path[0][0].support]
            recipe = Recipe(terms, solution.shrinkage, task.read_weight, level, typical_cost)
            outcomes = [
                [outcome_of(sample, task, solution, target) for solution in solutions]
                for solutions, target in zip(path, targets, strict=True)
            ]
            if sample.is_all_rows:
                return SearchedPath(problem, outcomes, found, recipe)
            comparisons = [
                compare_with_sample(sample, task, path[i][0], outcomes[i][0], target)
                for i, target in enumerate(targets)
            ]
            if path_agrees_with_samples(comparisons):
                break
        verified = [
            [replace(first, verified=agrees_with_sample(comparison)), *others]
            for (first, *others), comparison in zip(outcomes, comparisons, strict=True)
        ]
        return SearchedPath(problem, verified, found, recipe)


def _updates_of(gate: GatedUpdate, target: float) -> Iterator[FoundUpdate]:
    """Yield the update of a direction that is fitted already, then those on larger samples."""
    yield gate.found
    later = verified_updates(gate.found.sample.problem, target, closest=False)
    size = len(gate.found.sample.index)
    yield from (found for found in later if len(found.sample.index) > size)


def extend_past_target(problem: FitProblem, outcome: SearchOutcome, extra: float) -> SearchOutcome:
    """Return the update with another offset, which changes a share `extra` more of the rows.

    It goes past parity on the fit rows, for new rows that need more. The update is returned as it
    is where there is no such offset within the caps.
    """
    eta = np.sort(outcome.eta(problem.terms)[problem.may_change])[::-1]
    n_changed = int((eta > 0).sum())
    if not n_changed:
        return outcome
    is_gap = eta[:-1] - eta[1:] > TIE * float(np.ptp(eta))
    offsets = 1 + np.flatnonzero(is_gap)
    offsets = offsets[offsets >= np.ceil(n_changed * (1 + extra))]
    if not len(offsets):
        return outcome
    last_changed, first_unchanged = eta[offsets[0] - 1], eta[offsets[0]]
    offset = outcome.offset - 0.5 * float(last_changed + first_unchanged)
    extended = replace(outcome, offset=offset)
    return extended if problem.is_within_caps(changed_rows(problem, extended)) else outcome
