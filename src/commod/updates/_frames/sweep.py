"""Find the updates of a frontier on a frame: points at a few targets, a count for each target.

A table that may come whole is swept in memory. Of a larger one:

1. Two queries count people and bring the rows here that points come from, as in a fit.
2. Points are fitted at a few targets, and one query for each of them counts all people by bins of
   evidence. These counts give the cut of every target, which lies between two bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from commod.updates._candidates import CountedCandidate, settings_of_swept, sweep_targets
from commod.updates._fit_rows import FitRows
from commod.updates._frames.columns import NamedColumns
from commod.updates._frames.cut import CountsOfFrame
from commod.updates._frames.fit import open_table, read_parts, whole_table
from commod.updates._frames.pulled import WholeTable
from commod.updates._interface import read_numbers, set_target

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class FrameCandidate(CountedCandidate):
    """An update of a frontier on a frame, with the figures of all its people."""

    def build(self) -> Any:
        """Return the update as it was counted, with all figures."""
        update = set_target(clone(self.model), self.settings["target"])
        update._take_reading(self.model)
        update._store_fit(self.fitted)
        return update


class FrameSweep(NamedTuple):
    """The updates of a frontier on a frame.

    - `candidates`, `n_changed`: each update, and how many people of each line it changes, (n,).
    - `rows`: the lines as fit rows, each of many people.
    """

    candidates: list[FrameCandidate]
    n_changed: list[Counts]
    rows: FitRows


def sweep_frame(
    update: Any, frame: Any, named: NamedColumns, targets: Sequence[float] | None
) -> FrameSweep | WholeTable:
    """Return an update for each target, least strict first; None: those of the default frontier.

    A table that may come whole is returned as it is. Afterwards, the update knows the labels and
    parameters of all candidates.
    """
    targets = read_numbers("targets", targets)
    for target in targets or ():
        set_target(clone(update), target)._check_parameters()
    table = open_table(update, frame, named)
    whole = whole_table(update, table)
    if whole is not None:
        return whole
    parts = read_parts(update, table)
    candidates, n_changed = [], []
    for one in sweep_targets(update, parts.problem, parts.people, targets):
        fitted = one.fitted
        assert isinstance(fitted.counted, CountsOfFrame)
        settings = {**settings_of_swept(one), "points_from": one.points_from}
        candidates.append(
            FrameCandidate(settings, update, parts.problem, fitted, fitted.expectation)
        )
        n_changed.append(fitted.counted.changed_by_line(fitted.changed))
    return FrameSweep(candidates, n_changed, parts.people.problem.rows)
