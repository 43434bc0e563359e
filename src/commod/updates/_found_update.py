"""Find the update that a `ControlledDebiaser` asks for, and what to expect of it on new people."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._evidence.cut import Stop
from commod._evidence.search import (
    FoundUpdate,
    Regression,
    Settings,
    changed_by,
    find_card,
    with_nearness,
)
from commod._evidence.task import EvidenceTask
from commod._solvers.threads import single_blas_thread
from commod.updates._all_people import AllPeople, CountedPeople, count_everybody
from commod.updates._base_optimism import optimism_text
from commod.updates._problem import FitProblem, evidence_task

MIN_CELL_PEOPLE = 10  # of a compared rate: with fewer, nothing can be expected on new people
LEVEL = 0.95  # of the interval for a new sample of as many people


class Expectation(NamedTuple):
    """What is expected on a new sample of as many people, from rows that points have not seen.

    `values` are the metrics of all constraints, NaN where nothing can be expected. `interval` is
    that of the first one, for a new sample.
    """

    values: tuple[float, ...]
    interval: tuple[float, float]
    change_rate: float
    accuracy: float
    is_reached: bool

    @classmethod
    def unknown(cls, n_constraints: int) -> Expectation:
        """Return that nothing can be expected."""
        nan = float("nan")
        return cls((nan,) * n_constraints, (nan, nan), nan, nan, is_reached=False)

    @property
    def is_known(self) -> bool:
        """Return whether anything can be expected."""
        return not np.isnan(self.values[0])


class FittedUpdate(NamedTuple):
    """The update that was found, and the problem that it solves, in the direction that it keeps.

    `problem` has the rows that points come from, and `task` those that the cut was counted on. If
    these are more, `counted` has them; else it is None. `expectation` is None where the target is
    one on the fit rows. `optimism` says in words that the base model has seen the fit rows; it is
    empty where nothing speaks for that.
    """

    problem: FitProblem
    task: EvidenceTask
    found: FoundUpdate
    expectation: Expectation | None = None
    optimism: str = ""
    counted: CountedPeople | None = None

    @property
    def n_people(self) -> float:
        """Return how many people the cut was counted on."""
        return float(self.task.people.sum())

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Return the rows of the task that the update changes, shape (n,)."""
        return changed_by(self.task, self.found)


def settings_of(update: Any) -> Settings:
    """Return what the parameters of a `ControlledDebiaser` say about the form of the update."""
    return Settings(
        borderline=float(update.borderline),
        max_lines=None if update.max_lines is None else int(update.max_lines),
        is_whole=update.points == "integers",
        is_budget=update._is_budget,
    )


def has_enough_people(problem: FitProblem) -> bool:
    """Return whether every rate that is compared counts enough people for folds."""
    counted = problem.compared.n_counted
    return bool(len(counted)) and int(counted.min()) >= MIN_CELL_PEOPLE


def fit_update(update: Any, problem: FitProblem, people: AllPeople | None = None) -> FittedUpdate:
    """Return the update that a `ControlledDebiaser` asks for, and what is expected of it.

    Points come from the rows of `problem`. `people` are all people, where they are more. Gains only
    is kept where it needs no more changes than `borderline` allows.
    """
    with single_blas_thread:
        is_on_new_rows = update.target_on == "new_rows"
        is_new = is_on_new_rows and has_enough_people(problem if people is None else people.problem)
        fitted = fit_direction(update, problem, is_new=is_new)
        optimism = optimism_text(update, problem.rows, fitted.task) if is_new else ""
        if people is not None:
            fitted = counted_update(update, fitted, people)
        expectation = expectation_of(fitted) if is_new else None
        if is_on_new_rows and not is_new:
            expectation = Expectation.unknown(len(fitted.task.constraints))
    return fitted._replace(expectation=expectation, optimism=optimism)


def counted_update(update: Any, fitted: FittedUpdate, people: AllPeople) -> FittedUpdate:
    """Return an update that was found on some rows with the cut that all people give."""
    found_on = fitted.problem, fitted.task, fitted.found
    task, found, counted = count_everybody(people, *found_on, settings_of(update))
    return fitted._replace(task=task, found=found, counted=counted)


def fit_direction(update: Any, problem: FitProblem, *, is_new: bool) -> FittedUpdate:
    """Return the update in the direction that the user states, or with gains only.

    Where neither reaches the target, losses only is kept if it does: one sum of points may serve
    one direction better than both.
    """
    settings = settings_of(update)
    task = evidence_task(problem, update._target, is_new=is_new)
    regression = Regression(task)
    card = find_card(task, settings, regression)
    kept = problem, task, card
    is_any = problem.may_raise and problem.may_lower
    for raises in (problem.raising_is_a_gain, not problem.raising_is_a_gain) if is_any else ():
        is_gain, stop = raises == problem.raising_is_a_gain, kept[2].stop
        if stop.is_reached and not (is_gain and stop.n_changed):
            break
        single = problem.with_direction(raises, not raises)
        own = evidence_task(single, update._target, is_new=is_new)
        found = find_card(own, settings, Regression(own, regression))
        if _is_near(found.stop, stop, task, settings, is_gain=is_gain):
            kept = single, own, found
    problem, task, card = kept
    return FittedUpdate(problem, task, with_nearness(task, card, settings))


def _is_near(
    one: Stop, both: Stop, task: EvidenceTask, settings: Settings, *, is_gain: bool
) -> bool:
    """Return whether one direction reaches as much, with no more changes than are allowed."""
    if not is_gain:
        return one.is_reached and not settings.is_budget
    if settings.is_budget or not both.is_reached:
        return one.rank(task) <= both.rank(task)
    return one.is_reached and one.n_changed <= (1 + settings.borderline) * both.n_changed


def expectation_of(fitted: FittedUpdate) -> Expectation:
    """Return what is expected of an update whose cut was counted on rows new to its points."""
    task, stop = fitted.task, fitted.found.stop
    low, high = np.quantile(task.draws(stop.rates)[0], ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return Expectation(
        values=tuple(stop.expected.tolist()),
        interval=(float(low), float(high)),
        change_rate=stop.n_changed / fitted.n_people,
        accuracy=_expected_accuracy(fitted),
        is_reached=stop.is_reached,
    )


def _expected_accuracy(fitted: FittedUpdate) -> float:
    """Return the accuracy of the counted decisions; NaN without true labels."""
    task, found = fitted.task, fitted.found
    if task.label is None:
        return float("nan")
    changed = found.counted_changes(task)
    return float(np.average((task.positive ^ changed) == task.label, weights=task.weight))
