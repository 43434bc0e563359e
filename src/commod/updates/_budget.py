"""Search for the fairest update within a budget of changes, where no target is stated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from commod._solvers.search.offset import Direction, best_offset
from commod._solvers.search.rates import Caps, fairness_inequalities
from commod.updates._gates import KeptUpdate, fit_target
from commod.updates._problem import FitProblem
from commod.updates._search import SearchOutcome, StoppedBy, changed_rows

Fit = Callable[[FitProblem, float], KeptUpdate]

# Changes beyond those that a budget needs for parity up to one decision: a share, or a few rows.
MORE_CHANGES_TO_PARITY, MORE_ROWS_TO_PARITY = 0.05, 5


def fit_budget(problem: FitProblem, fit: Fit = fit_target) -> KeptUpdate:
    """Return the fairest update within the cap on changes; parity needs no further changes.

    1. Search for parity up to about one decision of the smallest group (`parity_value`).
    2. If that is reached, spend up to 5 % more changes, within the budget, on rates that are still
       more equal.

    `fit` returns the update for a target.
    """
    kept = fit(problem, parity_value(problem))
    return kept._replace(outcome=spent_budget(kept.problem, kept.outcome))


def spent_budget(problem: FitProblem, outcome: SearchOutcome) -> SearchOutcome:
    """Return an update for `parity_value` with what is left of the budget spent on more parity."""
    n_changed = problem.rows.count(changed_rows(problem, outcome))
    if outcome.violation > 0:
        return replace(outcome, stopped_by=_why_not_parity(problem, outcome, n_changed))
    if n_changed:
        n_allowed = n_changed + max(MORE_ROWS_TO_PARITY, int(MORE_CHANGES_TO_PARITY * n_changed))
        most = min(n_allowed / problem.rows.n_people, float(problem.caps.changes or 0.0))
        fairest = _offset_within(problem, outcome, replace(problem.caps, changes=most))
        outcome = outcome.moved(fairest.offset)
    return replace(outcome, stopped_by="parity")


def parity_value(problem: FitProblem) -> float:
    """Return the fairness at which rates differ by about one decision of the smallest group.

    It lies between `near_ideal` and a thousandth short of parity: equal rates are hardly ever
    possible in whole people, and a sample cannot tell smaller differences.
    """
    effects, constraint = problem.effects, problem.constraint
    steps = effects.smallest_step.reshape(problem.cells.shape).max(axis=1)
    near, least = constraint.near_ideal, 0.001
    if constraint.comparison in ("floor", "ceiling"):
        return near
    if not constraint.is_ratio:
        return float(np.clip(steps.sum(), least, near))
    highest = float(effects.base_sums[: effects.n_cells].max())
    step = float(steps.max())
    return 1 - float(np.clip(step / max(highest, step), least, 1 - near))


def _why_not_parity(problem: FitProblem, outcome: SearchOutcome, n_changed: int) -> StoppedBy:
    """Return "budget" if more changes would help, "columns" if no fairer update was found."""
    cap = float(problem.caps.changes or 0.0)
    is_spent = n_changed + 1 > cap * problem.rows.n_people
    freed = _offset_within(problem, outcome, replace(problem.caps, changes=None))
    kept = _offset_within(problem, outcome, problem.caps)
    return "budget" if is_spent or freed.violation < kept.violation else "columns"


def _offset_within(problem: FitProblem, outcome: SearchOutcome, caps: Caps) -> Direction:
    """Return the offset closest to parity under other caps; the points stay as they are."""
    required = problem.compared.required(problem.constraint.ideal)
    inequalities = fairness_inequalities(required, problem.effects, caps)
    eta = problem.terms.total(outcome.points, 0.0)
    return best_offset(problem.effects, inequalities, eta, outcome.weights)
