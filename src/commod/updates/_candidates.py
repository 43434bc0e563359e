"""Count the updates of a frontier: points at a few targets, and one count for each target.

1. Fit the update at its own target, which decides the direction of changes.
2. Fit points at a few other targets in this direction, or in another one where it misses a target.
3. For each target, count the cut along the order of the nearest of these points.

The updates between are approximate: their points are those of another target. The update that a
user selects is fitted for its own target.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from commod._evidence.cut import Path
from commod._evidence.search import Regression, find_update
from commod._solvers.threads import single_blas_thread
from commod.scorecard import Scorecard, new_decisions
from commod.updates._found_update import (
    AllPeople,
    Expectation,
    FittedUpdate,
    fit_direction,
    is_for_new_rows,
    recount_on,
    rule_of,
    settings_of,
    store_found,
    with_expectation,
    with_target,
)
from commod.updates._interface import AllowedChanges, FittedCandidate, set_target
from commod.updates._problem import FitProblem, point_problem
from commod.updates.ratio import RatioRows

N_TARGETS = 100  # of the default frontier
N_ANCHORS = 3  # targets at which points are fitted


def default_targets(base_value: float, near_ideal: float, stated: float) -> list[float]:
    """Return targets from the base model's fairness to near parity, denser towards parity."""
    share = 1 - np.linspace(1, 0, N_TARGETS + 1)[1:] ** 1.5
    targets = (base_value + (near_ideal - base_value) * share).tolist()
    if min(targets) < stated < max(targets):
        targets[int(np.argmin(np.abs(np.array(targets) - stated)))] = stated
    return targets


@dataclass(frozen=True)
class CountedCandidate:
    """An update of a frontier: points of a near target, and the cut for its own target.

    `model` is an unfitted update that has read the fit rows, and `problem` has all of these.
    Candidates that share points find their scorecard in `cards`, which differ in their cut only.
    """

    settings: dict[str, float]
    model: Any
    problem: FitProblem
    fitted: FittedUpdate
    expectation: Expectation | None
    cards: dict[int, Scorecard] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def _card(self) -> Scorecard:
        problem, found = self.fitted.problem, self.fitted.found
        known = self.cards.get(id(found.card))
        if known is not None and np.isfinite(found.cut):
            return replace(known, rule=rule_of(self.model, problem, found))
        update = clone(self.model)
        update._take_reading(self.model)
        store_found(update, problem, found)
        if np.isfinite(found.cut):
            self.cards[id(found.card)] = update.scorecard_
        return update.scorecard_

    def decide(self, rows: RatioRows) -> NDArray[np.bool_]:
        """Return the decisions on rows that were read, shape (n,)."""
        problem, card = self.fitted.problem, self._card
        assert card.rule is not None
        base = rows.base
        ratio = card.rule.ratio(card.evaluate(rows.terms), base.scores, base.threshold)
        allowed = AllowedChanges(problem.may_raise, problem.may_lower, problem.max_margin)
        return new_decisions(base, np.where(allowed.is_open(base), ratio, 1.0))

    def scorecard(self) -> Scorecard:
        """Return the points alone."""
        return self._card

    def with_target(self, target: float) -> CountedCandidate:
        """Return a candidate that is built for another target."""
        return replace(self, settings={**self.settings, "target": target})

    def build(self) -> Any:
        """Return the update, fitted for its own target, with all figures on the fit rows."""
        update = set_target(clone(self.model), self.settings["target"])
        update._take_reading(self.model)
        update._check_parameters()
        update._fit_problem(self.problem)
        return update

    def __reduce__(self) -> tuple[type[FittedCandidate], tuple[dict[str, Any], Any]]:
        return FittedCandidate, (self.settings, self.build())


def candidates_of(
    model: Any, problem: FitProblem, targets: Sequence[float] | None
) -> list[CountedCandidate]:
    """Return the updates of a model for each target, or those of the default frontier.

    Afterwards, the model reads new rows for them.
    """
    part = point_problem(problem)
    people = None if part is problem else AllPeople(problem)
    cards: dict[int, Scorecard] = {}
    return [
        CountedCandidate(
            settings_of_swept(one), model, problem, one.fitted, one.fitted.expectation, cards
        )
        for one in sweep_targets(model, part, people, targets)
    ]


class Swept(NamedTuple):
    """The update of one target; its points are those of the target `points_from`."""

    target: float
    points_from: float
    fitted: FittedUpdate


def settings_of_swept(one: Swept) -> dict[str, float]:
    """Return what sets an update apart from the others of its sweep."""
    found = one.fitted.found
    n_terms = int(np.count_nonzero(found.points.values))
    return {"target": one.target, "nearness": found.nearness, "n_terms": n_terms}


def sweep_targets(
    model: Any, problem: FitProblem, people: AllPeople | None, targets: Sequence[float] | None
) -> list[Swept]:
    """Return the update of each target, least strict first; None: those of the default frontier.

    Points come from the rows of `problem`. `people` are all people, where they are more. The model
    keeps the scorecard of its own target.
    """
    everybody, constraint = problem if people is None else people.problem, problem.constraint
    if targets is None:
        targets = default_targets(everybody.base_fairness, constraint.near_ideal, model._target)
    ordered = sorted(set(targets), reverse=not constraint.higher_is_fairer)
    is_new = is_for_new_rows(model, everybody)
    with single_blas_thread:
        first = fit_direction(problem, model._target, settings_of(model), is_new=is_new)
        model.direction_ = first.problem.direction
        store_found(model, first.problem, first.found)
        swept = list(_swept(model, problem, first, people, ordered))
    return [one._replace(fitted=with_expectation(model, one.fitted)) for one in swept]


def _swept(
    model: Any,
    problem: FitProblem,
    first: FittedUpdate,
    people: AllPeople | None,
    targets: Sequence[float],
) -> Iterator[Swept]:
    """Yield the update of each target, with points of the nearest anchor."""
    settings = settings_of(model)._replace(is_budget=False)
    anchors: list[tuple[float, FittedUpdate, Path]] = []
    stated = None if model._is_budget else model._target
    regression = Regression(first.task)
    for anchored in _anchored(targets, stated):
        anchor = first
        if anchored != stated:
            task = with_target(first.task, anchored)
            anchor = first._replace(task=task, found=find_update(task, settings, regression))
            if not anchor.found.stop.is_reached and first.problem is not problem:
                anchor = fit_direction(problem, anchored, settings, is_new=task.is_new)
        if people is not None:
            counted = people.count(anchor.problem, anchor.task, anchor.found, is_swept=True)
            anchor = recount_on(counted, anchor, settings)
        anchors.append((anchored, anchor, anchor.path))
    for target in targets:
        near, anchor, path = min(anchors, key=lambda one: abs(one[0] - target))
        yield Swept(target, near, anchor if near == target else anchor.at_target(target, path))


def _anchored(targets: Sequence[float], stated: float | None) -> list[float]:
    """Return the targets at which points are fitted: some of all, the strictest one among them.

    The one that is nearest to the `stated` target, which is fitted anyway, gives way to it.
    """
    if len(targets) <= N_ANCHORS:
        return list(targets)
    places = np.linspace(0, len(targets) - 1, N_ANCHORS + 1)[1:].round().astype(int)
    *others, strictest = (targets[i] for i in places)
    if stated in targets[:-1]:
        others.remove(min(others, key=lambda one: abs(one - stated)))
        others.append(stated)
    return [*others, strictest]
