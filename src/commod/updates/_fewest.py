"""Count the fewest changes that a search found for the fairness that its update reaches."""

from __future__ import annotations

from dataclasses import replace

from commod.updates._problem import FitProblem
from commod.updates._search import FoundUpdate, SearchOutcome, changed_rows, outcome_of


def with_fewest(found: FoundUpdate, problem: FitProblem, outcome: SearchOutcome) -> SearchOutcome:
    """Return an update with the smallest share of changes that was found for its own fairness.

    Two directions of the search compete with the update: the last one, and the one with every
    column and term. All reach the same fairness on the rows of the problem. Where caps do not let
    a direction reach it, it does not compete.
    """
    rows, changed = problem.rows, changed_rows(problem, outcome)
    n_fewest = rows.count(changed)
    if n_fewest:
        fairness = rows.fairness(problem.constraint, rows.base.decisions ^ changed)
        sample, solution = found.sample, found.solution
        for w in (solution.direction.w, solution.dense):
            other = replace(solution, direction=sample.task.with_offset(w))
            at_fairness = outcome_of(sample, sample.task, other, fairness)
            if at_fairness.violation <= 0:
                n_changed = rows.count(changed_rows(sample.problem, at_fairness))
                n_fewest = min(n_fewest, n_changed)
    return replace(outcome, fewest=n_fewest / rows.n_people)
