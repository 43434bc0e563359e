"""Fit a `ControlledDebiaser` on a frame: the same fit as in memory.

Up to MAX_POINT_ROWS rows, all rows come onto this machine. Of a larger table:

1. One query counts people by group, true label, conditions and base decision. This gives the
   groups, the base rates and the exact limit.
2. One query brings the rows with the smallest hash of the key here. Points come from them.
3. One query counts the other people who may change by their evidence: this gives the cut
   (`cut.py`).

So a fit reads the table three times, and once more where the cut falls into a bin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from commod._data.columns import plain
from commod._data.encoding import Encoding
from commod.exceptions import InputError
from commod.updates._candidates import CountedCandidate, sweep_targets
from commod.updates._controlled_parameters import check_labels_given, check_no_weighted_promise
from commod.updates._fit_rows import FitRows, check_both_decisions, hash_bound, may_come_whole
from commod.updates._found_update import fit_update
from commod.updates._frames.columns import FrameTable, NamedColumns, prepare_frame
from commod.updates._frames.cut import CountsOfFrame, PeopleOfFrame
from commod.updates._frames.lines import count_lines, rows_of_lines
from commod.updates._frames.pulled import (
    WholeTable,
    pull_point_rows,
    pull_whole,
    read_point_rows,
)
from commod.updates._interface import read_numbers
from commod.updates._problem import FitProblem, check_monotone
from commod.updates._promise import fit_promise
from commod.updates._targeted import TargetedUpdate, set_target

Counts = NDArray[np.int64]


def fit_frame(update: TargetedUpdate, frame: Any, named: NamedColumns) -> WholeTable | None:
    """Store in an update the fit of a large frame; a table that may come whole is returned."""
    table = open_table(update, frame, named)
    whole = whole_table(update, table)
    if whole is not None:
        return whole
    problem, people = read_parts(update, table)
    if update.confidence is not None:
        update._store_fit(*fit_promise(problem))
    else:
        update._store_fit(fit_update(problem, people))
    return None


def open_table(update: TargetedUpdate, frame: Any, named: NamedColumns) -> FrameTable:
    """Return the frame with its prepared columns; the parameters are checked and recorded."""
    update._record_params()
    update._check_parameters()
    check_no_weighted_promise(update, named.sample_weight)
    check_labels_given(update, named.y_true is not None)
    return prepare_frame(frame, named, float(update.threshold), update.max_margin)


def whole_table(update: TargetedUpdate, table: FrameTable) -> WholeTable | None:
    """Return all rows of a table that may come whole; None for a larger one."""
    n_rows = int(table.lazy.select(nw.len().alias("n")).collect(backend="pyarrow").item())
    if not may_come_whole(n_rows):
        return None
    return pull_whole(table, allow_unknown=update.unknown_groups == "ignore")


def read_parts(update: TargetedUpdate, table: FrameTable) -> tuple[FitProblem, PeopleOfFrame]:
    """Return the problem of the rows that points come from, and all people of a large frame.

    Two queries count people and bring rows here.
    """
    if update.unknown_groups != "error":
        raise InputError(
            "unknown_groups='ignore' needs a table of at most a million rows. Give missing groups "
            "a name of their own, drop these rows, or call fit on rows in memory.",
            parameter="unknown_groups",
        )
    update.direction_ = str(update.direction)
    lines = count_lines(table)
    rows = rows_of_lines(update, lines)
    asked = update._asked()
    everybody = asked.problem(rows, Encoding(()))  # whose columns are not known
    both = plain(update._other_label(update.pos_label_)), plain(update.pos_label_)
    check_both_decisions(rows, update._constraint, both)
    bound = hash_bound(rows.n_people)
    read, line = read_point_rows(update, rows, pull_point_rows(lines, bound))
    people = PeopleOfFrame(everybody, lines, line, read.weight, bound)
    check_monotone(asked.monotone, [column.name for column in read.columns])
    return asked.problem(read, asked.learn_terms(read)), people


# ---------------------------------------------------------------------------------------------
# The updates of a frontier
#
# A table that may come whole is swept in memory. Of a larger one, points are fitted at a few
# targets, and one query for each of them counts all people by bins of evidence. These counts give
# the cut of every target, which lies between two bins.


@dataclass(frozen=True)
class FrameCandidate(CountedCandidate):
    """An update of a frontier on a frame, with the figures of all its people."""

    def build(self) -> TargetedUpdate:
        """Return the update as it was counted, with all figures."""
        update = self.unfitted()
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
    update: TargetedUpdate, frame: Any, named: NamedColumns, targets: Sequence[float] | None
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
    problem, people = read_parts(update, table)
    candidates, n_changed = [], []
    _, swept = sweep_targets(problem, people, targets)
    for one in swept:
        fitted = one.fitted
        assert isinstance(fitted.counted, CountsOfFrame)
        settings = {**one.settings, "points_from": one.points_from}
        candidates.append(FrameCandidate(settings, update, problem, fitted))
        n_changed.append(fitted.counted.changed_by_line(fitted.changed))
    return FrameSweep(candidates, n_changed, people.problem.rows)
