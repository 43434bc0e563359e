"""Search for the updates of a frontier whose targets are those of the fit rows.

It has many targets, several degrees of shrinkage, and updates past parity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from commod.updates._path import extend_past_target, search_path
from commod.updates._problem import FitProblem
from commod.updates._search import SearchOutcome

N_TARGETS = 28  # default targets between the base model and parity, denser towards parity
# The update that fits the fit rows best is not the best one on new rows.
SHRINKAGES = (None, 0.5, 1.0)
# Extra changes past parity, as shares: of the fitted direction, and of the initial direction.
PAST_PARITY = (
    (0.03, 0.08, 0.15, 0.25),
    (0.015, 0.03, 0.045, 0.06, 0.08, 0.1, 0.125, 0.15, 0.19, 0.24, 0.3, 0.4),
)

Report = Callable[[int, int], None] | None
SweptOutcome = tuple[dict[str, float], SearchOutcome]


def sweep_targets(
    problem: FitProblem, targets: Sequence[float] | None, stated: float, report: Report
) -> tuple[FitProblem, list[SweptOutcome]]:
    """Return settings and update of each target, loosest target first.

    The problem that is returned with them has the direction of changes that they all keep to.

    Without targets, the default sweep is returned: targets from the base model's fairness to near
    parity, each at every shrinkage, then updates past parity on the fit rows. `stated` is the
    update's own target; where it lies between the default ones, it replaces the nearest.
    """
    constraint = problem.constraint
    use_default = targets is None
    if targets is None:
        targets = default_targets(problem.base_fairness, constraint.near_ideal, stated)
    ordered = sorted(set(targets), reverse=not constraint.higher_is_fairer)
    shrinkages = SHRINKAGES if use_default else (None,)
    # For constraints on errors, the best direction of changes differs from target to target.
    keeps = constraint.needs_labels
    path = search_path(problem, ordered, report, shrinkages, keep_direction=keeps)
    problem, updates = path.problem, path.updates
    swept = [
        (_settings(target, outcome), outcome)
        for target, outcomes in zip(ordered, updates, strict=True)
        for outcome in outcomes
    ]
    if use_default:
        swept += _past_parity(problem, updates[-1])
    return problem, swept


def default_targets(base_value: float, near_ideal: float, stated: float) -> list[float]:
    share = 1 - np.linspace(1, 0, N_TARGETS + 1)[1:] ** 1.5
    targets = (base_value + (near_ideal - base_value) * share).tolist()
    if min(targets) < stated < max(targets):
        targets[int(np.argmin(np.abs(np.array(targets) - stated)))] = stated
    return targets


def _past_parity(problem: FitProblem, fairest: Sequence[SearchOutcome]) -> Iterator[SweptOutcome]:
    """Yield updates that change more than the fairest ones; they have no target."""
    for outcome, extras in zip((fairest[0], fairest[-1]), PAST_PARITY, strict=True):
        for extra in extras:
            further = extend_past_target(problem, outcome, extra)
            yield _settings(float("nan"), further), further


def _settings(target: float, outcome: SearchOutcome) -> dict[str, float]:
    n_terms = int((outcome.weights != 0).sum())
    return {"target": target, "shrinkage": outcome.shrinkage, "n_terms": n_terms}
