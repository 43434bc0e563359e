"""Choose the internal target at which the stated target is expected to hold on new people.

An update fits the fit rows better than new ones. So the search is given a stricter target than the
stated one, the internal target. It is the loosest one at which rows that are new to the update
reach the stated target:

1. Determine offsets for stricter and stricter internal targets, until new rows reach the stated
   one.
2. Make the measured fairness monotone in the internal target (isotonic regression).
3. Interpolate between the last two internal targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from commod._text import MAX_CHANGED
from commod.metrics._constraint import Constraint
from commod.updates._cross_fit import ExpectedFigures, NewRows, Spread

Floats = NDArray[np.float64]

# Internal targets, as shares of the way from the stated target to the strictest one.
POSITIONS = (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.27, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.93, 1.0)
MAX_GROWTH = 3.0  # times the changes for the stated target, where no internal target is enough
MAX_SPREAD_OF_CHANGES = 0.1  # over the folds: a larger spread means different kinds of updates


@dataclass(frozen=True)
class Expectation:
    """What is expected of an update on as many new people as it was fitted on.

    - `internal_target`: the target on the fit rows at which this is expected.
    - `is_reached`: whether the stated target is expected to be reached.
    - `n_outside`: the number of rows outside the search sample, where these were measured; None
      where folds were.
    - `has_tried_all`: whether all internal targets were tried. Otherwise, folds changed different
      people at the next one.
    - `is_carried`: whether the part that is lost on new people is that of a search before an edit.
    """

    internal_target: float
    figures: ExpectedFigures
    is_reached: bool
    n_outside: int | None = None
    has_tried_all: bool = True
    is_carried: bool = False

    @classmethod
    def unknown(cls, target: float) -> Expectation:
        """Return the expectation where there are too few rows for one."""
        nan = float("nan")
        return cls(target, ExpectedFigures(nan, nan, nan, Spread(nan, nan, nan)), is_reached=False)


def is_near_parity(constraint: Constraint, target: float) -> bool:
    """Return whether a target is so strict that no stricter one is worth a search."""
    return bool(constraint.is_met(target, constraint.near_ideal))


def strictest_target(constraint: Constraint, target: float) -> float:
    """Return the strictest target beyond a target: near parity, or parity if that is passed."""
    return constraint.ideal if is_near_parity(constraint, target) else constraint.near_ideal


def internal_targets(constraint: Constraint, target: float) -> list[float]:
    """Return the internal targets to try, loosest first, for a target that is not near parity."""
    return [float(target + (constraint.near_ideal - target) * share) for share in POSITIONS]


def expect_target(new_rows: NewRows, constraint: Constraint, target: float) -> Expectation:
    """Return the loosest internal target whose update is expected to reach the stated one.

    Where none does, the expectation is that of the fairest one; an update that changes far more
    people than the stated target asks for is not taken.
    """
    tried: list[float] = []
    measured: list[ExpectedFigures] = []
    for internal in internal_targets(constraint, target):
        figures = new_rows.figures(internal)
        if measured and not is_steady(figures):
            break
        tried.append(internal)
        measured.append(figures)
        fairness = monotone_fairness(constraint, measured)
        if constraint.is_met(fairness[-1], target):
            break
    if not constraint.is_met(fairness[-1], target):
        changes = np.array([figures.change_rate for figures in measured])
        is_alike = ~(changes > MAX_GROWTH * changes[0])
        fairest = int(np.argmin(np.where(is_alike, constraint.shortfall(fairness, target), np.inf)))
        has_tried_all = len(tried) == len(POSITIONS)
        return Expectation(
            tried[fairest], measured[fairest], is_reached=False, has_tried_all=has_tried_all
        )
    internal = tried[-1]
    if len(tried) == 1:
        return Expectation(internal, measured[0], is_reached=True)
    before, after = fairness[-2:]
    share = float((target - before) / (after - before)) if after != before else 1.0
    internal = tried[-2] + share * (tried[-1] - tried[-2])
    figures = between(measured[-2], measured[-1], share)._replace(fairness=target)
    return Expectation(internal, figures, is_reached=True)


def is_steady(figures: ExpectedFigures) -> bool:
    """Return whether all folds have updates of one kind: none changes nearly everybody."""
    is_alike = not figures.spread.change_rate > MAX_SPREAD_OF_CHANGES
    return is_alike and figures.change_rate <= MAX_CHANGED


def monotone_fairness(constraint: Constraint, measured: Sequence[ExpectedFigures]) -> Floats:
    """Return the fairness of figures, loosest internal target first, made monotone, (m,)."""
    values = np.array([figures.fairness for figures in measured])
    values = np.where(np.isnan(values), constraint.least_fair, values)
    regression = IsotonicRegression(increasing=constraint.higher_is_fairer)
    return np.asarray(regression.fit_transform(np.arange(len(values)), values))


def between(first: ExpectedFigures, second: ExpectedFigures, share: float) -> ExpectedFigures:
    """Return the figures a share of the way from the first to the second."""

    def mean(a: float, b: float) -> float:
        return a + share * (b - a)

    return ExpectedFigures(
        mean(first.fairness, second.fairness),
        mean(first.change_rate, second.change_rate),
        mean(first.accuracy, second.accuracy),
        Spread(*map(mean, first.spread, second.spread)),
        tuple(map(mean, first.standing, second.standing)),
    )
