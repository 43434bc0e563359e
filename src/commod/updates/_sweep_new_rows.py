"""Search for the updates of a frontier whose figures are expected on new people.

A search on true cells fits the fit rows best, and a search on soft cells often does better on new
rows. For constraints on errors, the direction of changes that is best for one target may be bad
for another. So a frontier has several paths, and the figures that are expected on new people tell
which of their updates to take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from commod.metrics._constraint import Constraint
from commod.updates._controlled_problem import fit_problem
from commod.updates._cross_fit import ExpectedFigures, with_target
from commod.updates._expectation import Expectation, between
from commod.updates._gates import KeptUpdate
from commod.updates._path import SearchedPath, extend_past_target, search_path
from commod.updates._problem import FitProblem
from commod.updates._search import SearchOutcome
from commod.updates._soft_cells import cell_models, with_soft_cells
from commod.updates._swept_expectation import PathOnNewRows, SweptUpdate

Report = Callable[[int, int], None] | None

N_UPDATES = 100  # of a default frontier
N_GRID_TARGETS = 10  # of each path that the updates of given targets are taken from
TARGET_DIGITS = 3
# Extra changes past parity, as shares.
FEW_EXTRAS = (0.03, 0.08, 0.15, 0.25)
SOME_EXTRAS = (0.02, 0.04, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4)
MANY_EXTRAS = (0.015, 0.03, 0.045, 0.06, 0.08, 0.1, 0.125, 0.15, 0.19, 0.24, 0.3, 0.4)


class ExpectedOutcome(NamedTuple):
    """An update of a frontier, the problem that it solves, and what is expected of it.

    `target` is the stated target that the update is for.
    """

    problem: FitProblem
    outcome: SearchOutcome
    target: float
    expectation: Expectation


class PathPlan(NamedTuple):
    """A path to search for.

    - `extras`: the extra changes past parity, for each of the shrinkages.
    - `keep_direction`: whether updates keep to the direction of changes of the problem; otherwise,
      the search chooses one of them.
    - `every`: a direction is searched for at every second (third, …) target.
    """

    problem: FitProblem
    shrinkages: tuple[float | None, ...]
    extras: tuple[tuple[float, ...], ...]
    keep_direction: bool
    every: int


class Line(NamedTuple):
    """Updates of one path and one shrinkage, and what is expected of them."""

    path: SearchedPath
    updates: list[SweptUpdate]
    figures: list[ExpectedFigures]
    n_outside: int | None


def sweep_new_rows(
    update: Any, problem: FitProblem, targets: Sequence[float] | None, report: Report
) -> list[ExpectedOutcome]:
    """Return the updates of a frontier, loosest internal target first.

    With targets, each has one update: that with the fewest expected changes that is expected to
    reach it. Without targets, 100 updates are returned. The update's own target is among theirs.
    """
    constraint = problem.constraint
    if targets is None:
        ends = (problem.base_fairness, constraint.near_ideal)
        lines = _search_lines(update, problem, ends, None, report)
        return _default_sweep(constraint, lines, update._target)
    ordered = sorted(set(targets), reverse=not constraint.higher_is_fairer)
    n_grid = int(np.clip(len(ordered), N_GRID_TARGETS, N_UPDATES // 4))
    lines = _search_lines(update, problem, (ordered[0], ordered[-1]), n_grid, report)
    return [_best_for(constraint, lines, target) for target in ordered]


# ---------------------------------------------------------------------------------------------
# Paths


def _search_lines(
    update: Any,
    problem: FitProblem,
    ends: tuple[float, float],
    n_grid: int | None,
    report: Report,
) -> list[Line]:
    """Return the lines of all paths; `ends` are the loosest and the tightest target.

    A path has `n_grid` targets, and none past parity. None: as many as a default frontier has.
    """
    # The models of the cells are better with numbers per unit beside the bins.
    per_unit = fit_problem(update, problem.rows, numeric="unit")
    models = cell_models(per_unit, update.min_category_size, update.locked_features)
    plans = _plans(with_soft_cells(problem, models))
    if n_grid is not None:
        plans = [plan._replace(extras=((),) * len(plan.extras)) for plan in plans]
    lines: list[Line] = []
    for i, plan in enumerate(plans):
        values = path_targets(problem.constraint, ends, n_grid or _n_targets(plans))
        if n_grid is not None and values[0] != ends[0]:
            values = [ends[0], *values]
        lines += _search_plan(plan, values, _part_of(report, i, len(plans)))
    return lines


def _plans(soft: FitProblem) -> list[PathPlan]:
    """Return the paths of a frontier.

    For rates of all people, the direction of changes is chosen once. For constraints on errors,
    updates of each direction are on the frontier.
    """
    if not (soft.constraint.needs_labels and soft.may_raise and soft.may_lower):
        return [PathPlan(soft, (None, 0.5, 1.0), (FEW_EXTRAS, (), MANY_EXTRAS), False, 2)]
    one_way = [soft.with_direction(may_raise, not may_raise) for may_raise in (True, False)]
    strictest = soft.constraint.near_ideal
    possible = [one for one in one_way if np.isfinite(one.limit(strictest))]
    return [
        PathPlan(soft, (None,), (SOME_EXTRAS,), True, 2),
        *(PathPlan(one, (None,), (FEW_EXTRAS,), True, 3) for one in possible),
    ]


def _n_targets(plans: Sequence[PathPlan]) -> int:
    """Return the number of targets of each path on a default frontier of `N_UPDATES`."""
    n_past = sum(len(extras) for plan in plans for extras in plan.extras)
    return (N_UPDATES - n_past) // sum(len(plan.shrinkages) for plan in plans)


def path_targets(constraint: Constraint, ends: tuple[float, float], n_targets: int) -> list[float]:
    """Return targets after the first end, to near parity or to the second end if it is stricter.

    They are denser towards parity.
    """
    loosest, tightest = ends
    is_strict = constraint.is_met(tightest, constraint.near_ideal)
    tightest = tightest if is_strict else constraint.near_ideal
    if constraint.is_met(loosest, tightest):
        tightest = constraint.ideal
    share = 1 - np.linspace(1, 0, n_targets + 1)[1:] ** 1.5
    return [loosest + (tightest - loosest) * s for s in share.tolist()]


def _search_plan(plan: PathPlan, targets: Sequence[float], report: Report) -> Iterator[Line]:
    """Yield the lines of one path, one for each shrinkage."""
    # Every path draws the same sample.
    problem = plan.problem.with_direction(
        plan.problem.may_raise,
        plan.problem.may_lower,
        random_state=deepcopy(plan.problem.random_state),
    )
    path = search_path(
        problem,
        targets,
        report,
        plan.shrinkages,
        every=plan.every,
        keep_direction=plan.keep_direction,
    )
    on_new_rows = PathOnNewRows(path, targets, plan.shrinkages)
    for i, extras in enumerate(plan.extras):
        outcomes = [updates[i] for updates in path.updates]
        line = [SweptUpdate(*one) for one in zip(outcomes, targets, strict=True)]
        for extra in extras:
            further = extend_past_target(path.problem, outcomes[-1], extra)
            line.append(SweptUpdate(further, targets[-1], extra))
        yield Line(path, line, on_new_rows.expect(line, i), on_new_rows.n_outside)


def _part_of(report: Report, i: int, n_parts: int) -> Report:
    """Return what reports the progress of one of several equal parts."""
    if report is None:
        return None
    return lambda done, total: report(i * total + done, n_parts * total)


# ---------------------------------------------------------------------------------------------
# Updates


def _default_sweep(
    constraint: Constraint, lines: Sequence[Line], stated: float
) -> list[ExpectedOutcome]:
    """Return all updates; one of them is for the stated target, where it is on a line."""
    sign = 1 if constraint.higher_is_fairer else -1
    swept: list[ExpectedOutcome] = []
    order: list[tuple[float, float]] = []
    for line in lines:
        for update, figures in zip(line.updates, line.figures, strict=True):
            value = sign * np.floor(sign * figures.fairness * 10**TARGET_DIGITS)
            target = float(value / 10**TARGET_DIGITS)
            expectation = Expectation(update.target, figures, True, line.n_outside)
            problem = line.path.problem
            swept.append(ExpectedOutcome(problem, update.outcome, target, expectation))
            order.append((update.extra, sign * update.target))
    best = _best_for(constraint, lines, stated)
    if best.expectation.is_reached:
        nearest = int(np.argmin([abs(one.target - stated) for one in swept]))
        swept[nearest] = best
        order[nearest] = (0.0, sign * best.expectation.internal_target)
    return [swept[i] for i in sorted(range(len(swept)), key=order.__getitem__)]


def _best_for(constraint: Constraint, lines: Sequence[Line], target: float) -> ExpectedOutcome:
    """Return the update with the fewest expected changes that is expected to reach a target."""
    candidates = [_expected_at(constraint, line, target) for line in lines]

    def rank(one: ExpectedOutcome) -> tuple[float, float]:
        figures = one.expectation.figures
        missing = float(constraint.shortfall(figures.fairness, target))
        return (0.0 if one.expectation.is_reached else missing), figures.change_rate

    return min(candidates, key=rank)


def _expected_at(constraint: Constraint, line: Line, target: float) -> ExpectedOutcome:
    """Return the update of a line that is expected to reach a target, or that comes closest.

    Its internal target is never looser than the target.
    """
    updates = [update for update in line.updates if not update.extra]
    figures = line.figures[: len(updates)]
    sign = 1 if constraint.higher_is_fairer else -1
    # np.interp needs rising numbers; fairness rises with the internal target, or stays
    internals = np.array([sign * update.target for update in updates])
    fairness = np.array([sign * one.fairness for one in figures])
    problem = line.path.problem
    if fairness[-1] < sign * target:
        i = int(np.argmax(fairness))
        expectation = Expectation(updates[i].target, figures[i], False, line.n_outside)
        return ExpectedOutcome(problem, updates[i].outcome, target, expectation)
    first = int(np.argmax(fairness >= sign * target))
    needed = internals[0]
    if first > 0:
        share = (sign * target - fairness[first - 1]) / (fairness[first] - fairness[first - 1])
        needed = internals[first - 1] + share * (internals[first] - internals[first - 1])
    internal = min(max(needed, sign * target), internals[-1])
    i = int(np.argmax(internals >= internal))
    expected = figures[i]
    if i > 0 and internals[i] > internals[i - 1]:
        share = float((internal - internals[i - 1]) / (internals[i] - internals[i - 1]))
        expected = between(figures[i - 1], figures[i], share)
    path = line.path
    kept = KeptUpdate(problem, updates[i].outcome, path.found, path.recipe, 0)
    outcome = with_target(kept, float(sign * internal)).outcome
    expectation = Expectation(float(sign * internal), expected, True, line.n_outside)
    return ExpectedOutcome(problem, outcome, target, expectation)
