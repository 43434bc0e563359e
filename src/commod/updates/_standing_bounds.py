"""Tighten the bounds of the constraints that stand, so that they too are expected on new people.

The target of the constraint that moves has an internal target. The bounds of the others are
tightened by what is missing on rows that are new to the update, until nothing is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from commod.updates._compared import Standing
from commod.updates._expectation import Expectation, strictest_target
from commod.updates._gates import KeptUpdate
from commod.updates._new_rows import ExpectedUpdate
from commod.updates._problem import FitProblem

N_ROUNDS = 4
OVERSHOOT = 1.2  # a bound is tightened by this many times what is missing
MAX_GROWTH = 2.0  # times the changes: an update that changes more people is of another kind

Fit = Callable[[Sequence[FitProblem]], ExpectedUpdate]


class TightenedUpdate(NamedTuple):
    """An update, what is expected of it, and the bounds that its search kept."""

    kept: KeptUpdate
    expectation: Expectation
    standing: tuple[Standing, ...]


def fit_with_standing(problems: Sequence[FitProblem], fit: Fit) -> TightenedUpdate:
    """Return the update of `fit` whose constraints that stand are expected to keep their bounds.

    Where no round of tightening is enough, the update that misses least is returned. The problem
    of the update has the stated bounds.
    """
    stated = tightened = problems[0].standing
    best: tuple[float, TightenedUpdate] | None = None
    for _ in range(N_ROUNDS if stated else 1):
        kept, expectation = fit([problem.with_standing(tightened) for problem in problems])
        missing = missing_from(stated, expectation)
        largest = max(missing, default=0.0)
        if best is not None:
            before = best[1].expectation.figures.change_rate
            if not expectation.figures.change_rate <= MAX_GROWTH * before:
                break
        if best is None or largest < best[0]:
            kept = kept._replace(problem=kept.problem.with_standing(stated))
            best = largest, TightenedUpdate(kept, expectation, tightened)
        if largest <= 0:
            break
        tightened = tuple(map(_tightened, tightened, missing))
    assert best is not None
    return best[1]


def missing_from(standing: Sequence[Standing], expectation: Expectation) -> list[float]:
    """Return by how much each constraint that stands is expected to miss its bound; 0 if not."""
    values = expectation.figures.standing
    return [
        max(float(one.constraint.shortfall(value, one.bound)), 0.0)
        for one, value in zip(standing, values, strict=True)
    ]


def _tightened(one: Standing, missing: float) -> Standing:
    """Return a constraint with a bound that is stricter by what is missing."""
    sign = 1.0 if one.constraint.higher_is_fairer else -1.0
    strictest = strictest_target(one.constraint, one.bound)
    bound = one.bound + sign * OVERSHOOT * missing
    bound = min(bound, strictest) if sign > 0 else max(bound, strictest)
    return one._replace(bound=bound)
