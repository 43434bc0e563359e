"""Updates that a fit could have kept with fewer wrong decisions, and the parameters that get them.

An alternative keeps the target with at most `MAX_MORE` more changes, and has fewer errors by more
than the chance of those changes that differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from commod._data.arrays import Floats, Mask
from commod._evidence.search import FoundUpdate, FoundValues, Settings, find_card, with_nearness
from commod._evidence.task import EvidenceTask
from commod._record.costs import CountedUpdate
from commod.updates._problem import FitProblem

MAX_MORE = 0.25  # changes of an alternative beyond those of the update, as a share of them
CLEAR = 1.645  # standard errors by which errors differ beyond chance, one-sided 5 %
Candidate = tuple[str, EvidenceTask, FoundUpdate]  # with the parameter that gets it


def counted_alternatives(
    problem: FitProblem,
    task: EvidenceTask,
    found: FoundUpdate,
    others: Sequence[tuple[FitProblem, FoundValues]],
    settings: Settings,
) -> tuple[CountedUpdate, ...] | None:
    """Return the found update as it was counted, and gains only or the best other nearness.

    `others` are the values of other directions. None where errors are not known, or the target is
    not reached. Alternatives are looked for only if the found update introduces more errors than it
    fixes by more than chance. Gains only comes first: with more `borderline`, a fit may keep it.
    """
    if task.label is None or settings.is_budget or not found.stop.is_reached:
        return None
    own = errors_fixed(task, found)
    counted = (counted_update("", task, found, problem),)
    if not is_clearly_worse(own, np.zeros(len(own)), task.weight):
        return counted
    most = (1 + MAX_MORE) * found.stop.n_changed
    for kind in (_gains(problem, others, settings), _other_nearness(task, found)):
        better = [
            (parameter, its, one)
            for parameter, its, one in kind
            if one.stop.is_reached
            and 0 < one.stop.n_changed <= most
            and is_clearly_worse(own, errors_fixed(its, one), its.weight)
        ]
        if better:
            best = max(better, key=lambda one: float(errors_fixed(*one[1:]) @ one[1].weight))
            return *counted, counted_update(*best, problem)
    return counted


def _other_nearness(task: EvidenceTask, found: FoundUpdate) -> Iterator[Candidate]:
    """Yield the update with more weight on the distance from the threshold."""
    for one in found.tried:
        extra = math.ceil(100 * (one.stop.n_changed / found.fewest - 1) - 1e-9) / 100
        yield f"borderline={max(extra, 0.0):g}", task, one


def _gains(
    problem: FitProblem, others: Sequence[tuple[FitProblem, FoundValues]], settings: Settings
) -> Iterator[Candidate]:
    """Yield the update with gains only, if its values were found."""
    raises = problem.asked.raising_is_a_gain
    for one, values in others:
        if (one.may_raise, one.may_lower) == (raises, not raises):
            task = values.found.task
            card = find_card(values, settings)
            yield "direction='gains_only'", task, with_nearness(task, card, settings)


def errors_fixed(task: EvidenceTask, found: FoundUpdate) -> Floats:
    """Return 1 for each person whose decision becomes right, −1 where it becomes wrong, else 0."""
    assert task.label is not None
    right = np.where(task.label == task.positive, -1.0, 1.0)
    return np.where(changed_people(task, found), right, 0.0)


def changed_people(task: EvidenceTask, found: FoundUpdate) -> Mask:
    """Return who changes on the values that the cut was counted on, (n,)."""
    return np.asarray(found.score(task) > found.cut)


def is_clearly_worse(own: Floats, other: Floats, weight: Floats) -> bool:
    """Return whether errors fixed are fewer than those of another update, by more than chance.

    Both have an entry of −1, 0 or 1 for each person. Without a true difference, either sign of each
    difference is as likely: a sign test, where rows may have weights.
    """
    difference = weight * (other - own)
    return bool(difference.sum() > CLEAR * math.sqrt(difference @ difference))


def counted_update(
    parameter: str, task: EvidenceTask, found: FoundUpdate, problem: FitProblem
) -> CountedUpdate:
    """Return the figures of an update on the people that its cut was counted on."""
    counted = problem.rows.in_totals
    fixed, changed = errors_fixed(task, found) * counted, changed_people(task, found) & counted
    is_gain = (~task.positive) == problem.asked.raising_is_a_gain
    return CountedUpdate(
        parameter=parameter,
        n=int(counted.sum()),
        n_gains=int((changed & is_gain).sum()),
        n_losses=int((changed & ~is_gain).sum()),
        n_errors_fixed=int((fixed > 0).sum()),
        n_errors_introduced=int((fixed < 0).sum()),
        fairness=float(found.stop.expected[0]),
    )
