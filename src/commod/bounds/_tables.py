"""Count checked rows in a table, and name changes of its cells by group and label."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from commod._data.groups import GroupedDecisions, read_decisions
from commod._data.labels import is_label_in
from commod._data.parameters import check_choice
from commod._text import shown
from commod.bounds._counts import CountProblem
from commod.bounds._levels import IntArray
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint, missing_labels

Flips = dict[tuple[Hashable, Any, Any], int]

DIRECTIONS = ("any", "gains_only", "losses_only")


@dataclass(frozen=True)
class CountTable:
    """The number of people per true label, decision and group.

    `counts` has shape (2, 2, n_groups): true label, then decision, each negative before positive.
    Where true labels are unknown the shape is (1, 2, n_groups). `labels` holds the negative and
    the positive label.
    """

    groups: tuple[Hashable, ...]
    labels: tuple[Any, Any]
    counts: IntArray
    is_positive_favorable: bool

    @property
    def n_rows(self) -> int:
        """Return the number of people."""
        return int(self.counts.sum())

    def flips(self, raised: IntArray, lowered: IntArray) -> Flips:
        """Return people raised and lowered, two arrays of shape (n_groups,), by group and label."""
        negative, positive = self.labels
        named: Flips = {}
        for group, up, down in zip(self.groups, raised.tolist(), lowered.tolist(), strict=True):
            if up:
                named[group, negative, positive] = up
            if down:
                named[group, positive, negative] = down
        return named

    def flips_of(self, change: IntArray) -> Flips:
        """Return changes of the positives of cells, shape (R, n_groups), by group and label."""
        return self.flips(np.maximum(change, 0).sum(axis=0), np.maximum(-change, 0).sum(axis=0))


def read_table(
    y_true: Any, y_pred: Any, sensitive_features: Any, pos_label: Any, favorable_label: Any
) -> tuple[GroupedDecisions, CountTable]:
    """Return checked rows of two groups or more, and their counts."""
    rows = read_decisions(y_true, y_pred, sensitive_features, pos_label)
    groups = rows.groups.labels
    if len(groups) < 2:
        raise InputError(
            f"sensitive_features has one group only ({groups[0]!r}), and fairness compares "
            "two or more. Pass the rows of all groups.",
            parameter="sensitive_features",
        )
    labels = _two_labels(rows, pos_label, favorable_label)
    is_favorable = favorable_label in (None, labels[1])
    return rows, CountTable(groups, labels, _count_cells(rows), is_favorable)


def _count_cells(rows: GroupedDecisions) -> IntArray:
    n_groups, n_labels = len(rows.groups.labels), 1 if rows.outcomes is None else 2
    cells = 2 * rows.groups.codes + rows.decisions
    if rows.outcomes is not None:
        cells += 2 * n_groups * rows.outcomes
    counts = np.bincount(cells, minlength=2 * n_groups * n_labels)
    return counts.reshape(n_labels, n_groups, 2).swapaxes(1, 2)


def _two_labels(rows: GroupedDecisions, pos_label: Any, favorable_label: Any) -> tuple[Any, Any]:
    """Return the negative and the positive label as they are written in the data."""
    written: dict[bool, Any] = {}
    for values, is_positive in ((rows.y_pred, rows.decisions), (rows.y_true, rows.outcomes)):
        if values is None or is_positive is None:
            continue
        for kind, at in ((True, is_positive.argmax()), (False, is_positive.argmin())):
            if is_positive[at] == kind:
                written.setdefault(kind, values[at : at + 1].tolist()[0])
    positive = written.get(True, pos_label)
    # Where every label is positive, nothing is unfair or wrong: the other label is never named.
    negative = written.get(False, favorable_label)
    if favorable_label is not None and not is_label_in(favorable_label, (negative, positive)):
        raise InputError(
            f"favorable_label={shown(favorable_label)} is neither of the two labels, {negative!r} "
            f"and {positive!r}. Pass the one that is good for the person.",
            parameter="favorable_label",
        )
    return negative, positive


def read_problem(
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    constraint: Constraint,
    direction: str = "any",
    pos_label: Any = 1,
    favorable_label: Any = None,
) -> tuple[GroupedDecisions, CountTable, CountProblem]:
    """Return checked rows, their counts, and the counts to change as `direction` allows.

    `y_true` may be None if the constraint does not need labels.
    """
    if y_true is None and constraint.needs_labels:
        raise missing_labels(constraint)
    rows, table = read_table(y_true, y_pred, sensitive_features, pos_label, favorable_label)
    return rows, table, count_problem(table, constraint, direction)


def count_problem(table: CountTable, constraint: Constraint, direction: str) -> CountProblem:
    """Return the counts to change, and the changes that `direction` allows."""
    may_raise, may_lower = allowed_changes(table, direction)
    counts = check_cells(table, constraint)
    return CountProblem(
        constraint,
        sizes=counts.sum(axis=1),
        positives=counts[:, 1],
        may_raise=may_raise,
        may_lower=may_lower,
        prefer_raising=table.is_positive_favorable,
    )


def allowed_changes(table: CountTable, direction: str) -> tuple[bool, bool]:
    """Return whether decisions may become positive, and whether they may become negative."""
    check_choice(direction, "direction", DIRECTIONS)
    raising = "gains_only" if table.is_positive_favorable else "losses_only"
    return direction in ("any", raising), direction != raising


def check_cells(table: CountTable, constraint: Constraint) -> IntArray:
    """Return counts of shape (n_rate_rows, 2, n_groups); refuse a rate over nobody."""
    counts = constraint.by_rate_row(table.counts)
    for rate, size in zip(constraint.rate_rows, counts.sum(axis=1), strict=True):
        empty = np.flatnonzero(size == 0)
        if len(empty):
            group, label = table.groups[empty[0]], table.labels[bool(rate.label)]
            raise InputError(
                f"Group {group!r} has no row with true label {label!r}, so its {rate.name} is "
                "undefined whatever is changed. Leave the group out, or merge it with another."
            )
    return counts


def check_budget(max_changes: Any) -> int:
    """Return `max_changes` as an int, 0 or more."""
    is_whole = isinstance(max_changes, int | np.integer) and not isinstance(max_changes, bool)
    if not is_whole or max_changes < 0:
        raise InputError(
            f"max_changes={shown(max_changes)} must be a whole number of changes, 0 or more.",
            parameter="max_changes",
        )
    return min(int(max_changes), sys.maxsize)  # no table has more rows
