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

from dataclasses import dataclass
from typing import Any

import narwhals as nw

from commod._data.codes import plain
from commod.exceptions import InputError
from commod.updates._controlled_parameters import check_labels_given, check_no_weighted_promise
from commod.updates._controlled_problem import learn_terms
from commod.updates._fit_rows import check_both_decisions
from commod.updates._found_update import fit_update
from commod.updates._frames.columns import FrameTable, NamedColumns, prepare_frame
from commod.updates._frames.cut import PeopleOfFrame
from commod.updates._frames.lines import count_lines, problem_of_lines, rows_of_lines
from commod.updates._frames.pulled import (
    WholeTable,
    pull_point_rows,
    pull_whole,
    read_point_rows,
)
from commod.updates._point_rows import hash_bound, may_come_whole
from commod.updates._problem import FitProblem
from commod.updates._promise import fit_promise


def fit_frame(update: Any, frame: Any, named: NamedColumns) -> None:
    """Store in a `ControlledDebiaser` the update that it asks for, fitted on a frame."""
    table = open_table(update, frame, named)
    whole = whole_table(update, table)
    if whole is not None:
        update._fit_prepared(update._prepare(*whole[:4], hashes=whole.hashes))
        return
    parts = read_parts(update, table)
    if update.confidence is not None:
        fit_promise(update, parts.problem)
    else:
        update._store_fit(fit_update(update, parts.problem, parts.people))


def open_table(update: Any, frame: Any, named: NamedColumns) -> FrameTable:
    """Return the frame with its prepared columns; the parameters are checked and recorded."""
    update._record_params()
    update._check_parameters()
    check_no_weighted_promise(update, named.sample_weight)
    check_labels_given(update, named.y_true is not None)
    return prepare_frame(frame, named, float(update.threshold), update.max_margin)


def whole_table(update: Any, table: FrameTable) -> WholeTable | None:
    """Return all rows of a table that may come whole; None for a larger one."""
    n_rows = int(table.lazy.select(nw.len().alias("n")).collect(backend="pyarrow").item())
    if not may_come_whole(n_rows):
        return None
    return pull_whole(table, allow_unknown=update.unknown_groups == "ignore")


@dataclass(frozen=True)
class FrameParts:
    """The problem of the rows that points come from, and all people of the frame."""

    problem: FitProblem
    people: PeopleOfFrame


def read_parts(update: Any, table: FrameTable) -> FrameParts:
    """Return what a fit on a large frame needs: two queries count people and bring rows here."""
    if update.unknown_groups != "error":
        raise InputError(
            "unknown_groups='ignore' needs a table of at most a million rows. Give missing groups "
            "a name of their own, drop these rows, or call fit on rows in memory.",
            parameter="unknown_groups",
        )
    update.direction_ = str(update.direction)
    lines = count_lines(table)
    rows = rows_of_lines(update, lines)
    everybody = problem_of_lines(update, rows)
    both = plain(update._other_label(update.pos_label_)), plain(update.pos_label_)
    check_both_decisions(rows, update._constraint, both)
    bound = hash_bound(rows.n_people)
    read, line = read_point_rows(update, rows, pull_point_rows(lines, bound))
    people = PeopleOfFrame(update, everybody, lines, line, read.weight, bound)
    return FrameParts(update._problem(read, learn_terms(update, read)), people)
