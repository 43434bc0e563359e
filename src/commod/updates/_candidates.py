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
from typing import Any

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
    found_card,
    found_rule,
    ratio_on,
    recount_on,
    with_expectation,
    with_target,
)
from commod.updates._interface import FittedCandidate
from commod.updates._problem import FitProblem
from commod.updates._targeted import TargetedUpdate, find_asked, set_target
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

    `model` is an unfitted update that has read the fit rows, and `problem` has all of these. It is
    None for rows of a frame that were counted where they are: the update is built as counted.
    Candidates that share points find their scorecard in `cards`, which differ in their cut only.
    `points_from` is the target that points were fitted for.
    """

    target: float
    points_from: float
    fitted: FittedUpdate
    model: TargetedUpdate
    problem: FitProblem | None
    cards: dict[int, Scorecard] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, float]:
        """Return what sets the update apart from the others of its sweep."""
        found = self.fitted.found
        n_terms = int(np.count_nonzero(found.points.values))
        settings = {"target": self.target, "nearness": found.nearness, "n_terms": n_terms}
        return settings if self.problem else {**settings, "points_from": self.points_from}

    @property
    def expectation(self) -> Expectation | None:
        """Return what is expected of the update."""
        return self.fitted.expectation

    @cached_property
    def _card(self) -> Scorecard:
        problem, found = self.fitted.problem, self.fitted.found
        if not np.isfinite(found.cut):
            return found_card(problem, found)
        if id(found.card) not in self.cards:
            self.cards[id(found.card)] = found_card(problem, found)
        return replace(self.cards[id(found.card)], rule=found_rule(problem, found))

    def decide(self, rows: RatioRows) -> NDArray[np.bool_]:
        """Return the decisions on rows that were read, shape (n,)."""
        ratio = ratio_on(self._card, rows.terms, rows.base, self.fitted.problem.allowed)
        return new_decisions(rows.base, ratio)

    def scorecard(self) -> Scorecard:
        """Return the points alone."""
        return self._card

    def with_target(self, target: float) -> CountedCandidate:
        """Return a candidate that is built for another target."""
        return replace(self, target=target)

    def build(self) -> TargetedUpdate:
        """Return the update, fitted for its own target, with all figures on the fit rows."""
        update = set_target(clone(self.model), self.target)
        update._take_reading(self.model)
        if self.problem is None:
            update._store_fit(self.fitted)
            return update
        update._check_parameters()
        update._store_fit(*find_asked(replace(self.problem, asked=update._asked())))
        return update

    def __reduce__(self) -> tuple[type[FittedCandidate], tuple[dict[str, Any], Any]]:
        return FittedCandidate, (self.settings, self.build())


Swept = tuple[float, float, FittedUpdate]  # target, that of the points, and the update


def sweep_targets(
    problem: FitProblem, people: AllPeople | None, targets: Sequence[float] | None
) -> tuple[FittedUpdate, list[Swept]]:
    """Return the update of the problem's own target, and those of all targets.

    The least strict target comes first; None: the targets of the default frontier. Points come from
    the rows of `problem`. `people` are all people, where they are more.
    """
    everybody, constraint = problem if people is None else people.problem, problem.constraint
    target = problem.asked.target
    if targets is None:
        targets = default_targets(everybody.base_fairness, constraint.near_ideal, target)
    ordered = sorted(set(targets), reverse=not constraint.higher_is_fairer)
    with single_blas_thread:
        first = fit_direction(problem, target, for_new=everybody.for_new)
        swept = list(_swept(problem, first, people, ordered))
    return first, [(target, near, with_expectation(one)) for target, near, one in swept]


def _swept(
    problem: FitProblem, first: FittedUpdate, people: AllPeople | None, targets: Sequence[float]
) -> Iterator[Swept]:
    """Yield the update of each target, with points of the nearest anchor."""
    asked = problem.asked
    settings = asked.settings._replace(is_budget=False)
    anchors: list[tuple[float, FittedUpdate, Path]] = []
    stated = None if asked.settings.is_budget else asked.target
    regression = Regression(first.task)
    for anchored in _anchored(targets, stated):
        anchor = first
        if anchored != stated:
            task = with_target(first.task, anchored)
            anchor = first._replace(task=task, found=find_update(task, settings, regression))
            if not anchor.found.stop.is_reached and first.problem is not problem:
                anchor = fit_direction(problem, anchored, settings, for_new=task.for_new)
        if people is not None:
            counted = people.count(anchor.problem, anchor.task, anchor.found, is_swept=True)
            anchor = recount_on(counted, anchor, settings)
        anchors.append((anchored, anchor, anchor.path))
    for target in targets:
        near, anchor, path = min(anchors, key=lambda one: abs(one[0] - target))
        yield target, near, anchor if near == target else anchor.at_target(target, path)


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
