"""Count the fewest changes that a search found for the fairness that its update reaches."""

from __future__ import annotations

from dataclasses import replace

from commod.updates._problem import FitProblem
from commod.updates._search import FoundUpdate, SearchOutcome, changed_rows, outcome_of


def with_fewest(found: FoundUpdate, problem: FitProblem, outcome: SearchOutcome) -> SearchOutcome:
    """Return an update with the smallest share of changes that was found for its own fairness.

    The update of `found` with every column and term competes with the update itself: both reach
    the same fairness on the rows of the problem. Within the caps, the former may not reach it.
    """
    rows, changed = problem.rows, changed_rows(problem, outcome)
    n_fewest = rows.count(changed)
    if n_fewest:
        fairness = rows.fairness(problem.constraint, rows.base.decisions ^ changed)
        sample, solution = found.sample, found.solution
        dense = replace(solution, direction=sample.task.with_offset(solution.dense))
        every_column = outcome_of(sample, sample.task, dense, fairness)
        if every_column.violation <= 0:
            changed = changed_rows(sample.problem, every_column)
            n_fewest = min(n_fewest, rows.count(changed))
    return replace(outcome, fewest=n_fewest / rows.n_people)
