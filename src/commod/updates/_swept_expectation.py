"""Expect what the updates of a path do on new people.

Searching without each fold for every update would take long. Neighbours on a path are alike, so:

1. Search without each fold for one or two targets of the path.
2. Measure some of the updates on rows that are new to these directions: the offset is that for
   the target of the update. On a large table, measure the updates outside the search sample.
3. Interpolate the figures of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from commod.updates._cross_fit import (
    ExpectedFigures,
    FoldDirections,
    Folds,
    Spread,
)
from commod.updates._expectation import MAX_SPREAD_OF_CHANGES, is_steady, monotone_fairness
from commod.updates._gates import KeptUpdate
from commod.updates._outside_rows import OutsideRows
from commod.updates._path import SearchedPath
from commod.updates._search import SearchOutcome, changed_rows
from commod.updates._soft_cells import draw_folds

# On a path, of the targets that are searched for without each fold. Constraints on errors need two:
# their directions turn along the path.
SEARCHED_POSITIONS = {False: (0.7,), True: (0.45, 1.0)}
N_MEASURED = 6  # targets of a path
MEASURED_EXTRA = 4  # every fourth update past parity, and the last


class SweptUpdate(NamedTuple):
    """An update on a path, for a target on the fit rows, that may go past it.

    It changes the share `extra` more of the rows than the target needs.
    """

    outcome: SearchOutcome
    target: float
    extra: float = 0.0


class PathOnNewRows:
    """The updates of a path on rows that are new to them."""

    def __init__(
        self, path: SearchedPath, targets: Sequence[float], shrinkages: Sequence[float | None]
    ) -> None:
        self.path = path
        positions = SEARCHED_POSITIONS[path.problem.constraint.needs_labels]
        self.searched = [targets[round(position * (len(targets) - 1))] for position in positions]
        self.shrinkages = shrinkages

    def expect(self, line: Sequence[SweptUpdate], which: int) -> list[ExpectedFigures]:
        """Return what is expected of updates of the same shrinkage, the number `which`.

        The loosest target comes first, then the updates past parity.
        """
        is_past = np.array([update.extra > 0 for update in line])
        targets, past = np.flatnonzero(~is_past), np.flatnonzero(is_past)
        places = np.linspace(0, len(targets) - 1, min(N_MEASURED, len(targets))).round()
        at_targets = targets[np.unique(places.astype(np.intp))].tolist()
        at_past = past[MEASURED_EXTRA - 1 :: MEASURED_EXTRA].tolist()
        if len(past) and past[-1] not in at_past:
            at_past.append(int(past[-1]))
        measured, is_known = [], []
        for i in (*at_targets, *at_past):
            figures, is_alike = self._measure(line[i], which)
            measured.append(figures)
            is_known.append(is_alike)
        for i in np.flatnonzero(~np.array(is_known)):  # as the fairest update before that is known
            measured[i] = measured[max((j for j in range(i) if is_known[j]), default=i)]
        fairness = monotone_fairness(self.path.problem.constraint, measured[: len(at_targets)])
        values = np.array([_as_row(figures) for figures in measured])
        values[: len(at_targets), 0] = fairness
        places = np.array([*at_targets, *at_past])
        columns = [np.interp(np.arange(len(line)), places, column) for column in values.T]
        return [_from_row(row) for row in np.transpose(columns).tolist()]

    def _measure(self, update: SweptUpdate, which: int) -> tuple[ExpectedFigures, bool]:
        """Return the figures of an update, and whether its folds have updates of its kind."""
        if self.outside is not None:
            return self.outside.figures_of(update.outcome), True
        near = int(np.argmin([abs(update.target - target) for target in self.searched]))
        directions = self._directions[near][which]
        figures, known = directions.figures_and_share(update.target, update.extra)
        # The direction was searched for another target, so it changes more rows than the update.
        own = changed_rows(self.path.problem, update.outcome).mean()
        factor = float(own / known) if known > 0 else 1.0
        is_alike = is_steady(figures) and known - own <= MAX_SPREAD_OF_CHANGES
        return figures._replace(change_rate=min(figures.change_rate * factor, 1.0)), is_alike

    @property
    def n_outside(self) -> int | None:
        """Return the number of rows outside the search sample; None where folds are measured."""
        return None if self.outside is None else len(self.outside)

    @cached_property
    def outside(self) -> OutsideRows | None:
        """Return the rows outside the search sample; None where there are none, or too few."""
        return None if self.path.found.sample.is_all_rows else OutsideRows.of(self._kept)

    @cached_property
    def _kept(self) -> KeptUpdate:
        path = self.path
        return KeptUpdate(path.problem, path.updates[0][0], path.found, path.recipe, 0)

    @cached_property
    def _directions(self) -> list[list[FoldDirections]]:
        """Return the directions for each searched target and each shrinkage."""
        folds = Folds(self._kept, draw_folds(self.path.problem))
        own = self.path.recipe.shrinkage
        shrinkages = [own if s is None else s for s in self.shrinkages]
        directions = [folds.directions_each(target, shrinkages) for target in self.searched]
        if 1.0 in self.shrinkages:  # the initial direction, on all columns
            initial = folds.initial_directions(self.searched[-1])
            for some in directions:
                some[self.shrinkages.index(1.0)] = initial
        return directions


def _as_row(figures: ExpectedFigures) -> list[float]:
    numbers = (figures.fairness, figures.change_rate, figures.accuracy)
    return [*numbers, *figures.spread, *figures.standing]


def _from_row(row: Sequence[float]) -> ExpectedFigures:
    fairness, change_rate, accuracy, *others = row
    n = len(Spread._fields)
    return ExpectedFigures(fairness, change_rate, accuracy, Spread(*others[:n]), tuple(others[n:]))
