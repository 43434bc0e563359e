"""Count the cut of an update on all people, where points come from some of them.

People that points come from count with values that their own row did not shape. All others are
new to the points, so they count with the points as they are shipped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from commod._evidence.search import EvidenceCard, FoundUpdate, Settings, recounted
from commod._evidence.task import EvidenceTask
from commod.scorecard import distances
from commod.updates._problem import FitProblem, evidence_task

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MAX_REFINEMENTS = 8  # of the counts around a cut


class Measured(NamedTuple):
    """The problem of all people, and the new decisions on its rows, (n,)."""

    problem: FitProblem
    decisions: Mask


@dataclass(frozen=True)
class CountedPeople:
    """All people as rows of a problem, those that points come from first.

    `v` and `distance` (m,) are the evidence of the m people after those, and the distance of their
    scores from the threshold.
    """

    problem: FitProblem
    v: Floats
    distance: Floats

    def measured(self, changed: Mask) -> Measured:
        """Return what figures are measured on; `changed` (n,) are the rows that change."""
        return Measured(self.problem, self.problem.rows.base.decisions ^ changed)


class AllPeople(Protocol):
    """All people of a fit, in memory or in an engine; `problem` is theirs."""

    @property
    def problem(self) -> FitProblem: ...

    def count(
        self, part: FitProblem, task: EvidenceTask, found: FoundUpdate, *, is_swept: bool = False
    ) -> CountedPeople:
        """Return all people; an update was found on `part`, and `task` is its question.

        If `is_swept`, cuts of many targets will be counted.
        """
        ...

    def refined(self, counted: CountedPeople, cut: float) -> CountedPeople | None:
        """Return the people one by one where a cut lies; None if they are known one by one."""
        ...


@dataclass(frozen=True)
class PeopleInMemory:
    """All people of a fit in memory, in the order of their hashes."""

    problem: FitProblem

    def count(
        self, part: FitProblem, task: EvidenceTask, found: FoundUpdate, *, is_swept: bool = False
    ) -> CountedPeople:
        """Return all people, each of them as a row."""
        base, n_point_rows = self.problem.rows.base, len(part.rows)
        others = np.arange(n_point_rows, len(self.problem.rows))
        return CountedPeople(
            self.problem.with_direction(part.may_raise, part.may_lower),
            self.problem.terms.take(others).total(found.points.values, found.points.intercept),
            distances(base.scores[n_point_rows:], base.threshold),
        )

    def refined(self, counted: CountedPeople, cut: float) -> None:
        """Return None: each person is a row."""


class Recount(NamedTuple):
    """An update whose cut was counted on all people, and the question that they answered."""

    task: EvidenceTask
    found: FoundUpdate
    counted: CountedPeople


def count_everybody(
    people: AllPeople,
    part: FitProblem,
    task: EvidenceTask,
    found: FoundUpdate,
    settings: Settings,
) -> Recount:
    """Return an update that was found on some rows with the cut that all people give."""
    recount = recount_on(people.count(part, task, found), task, found, settings)
    for _ in range(MAX_REFINEMENTS):
        finer = people.refined(recount.counted, recount.found.cut)
        if finer is None:
            break
        recount = recount_on(finer, task, found, settings)
    return recount


def recount_on(
    counted: CountedPeople, task: EvidenceTask, found: FoundUpdate, settings: Settings
) -> Recount:
    """Return an update with the cut that counted people give; `task` is that of its own rows."""
    target = float(task.bounds[0])
    whole = evidence_task(counted.problem, target, is_new=task.is_new)
    whole = replace(whole, distance=np.concatenate([task.distance, counted.distance]))
    card = EvidenceCard(
        found.points,
        np.concatenate([found.card.in_sample, counted.v]),
        np.concatenate([found.card.out_of_fold, counted.v]),
    )
    fewest = found.fewest * float(whole.people.sum() / task.people.sum())
    return Recount(whole, recounted(whole, card, replace(found, fewest=fewest), settings), counted)
