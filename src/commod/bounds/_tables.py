"""Rows to counts and back: checked tables for the limits, and changes named by group and label."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.inputs import Groups, binary_outcome, check_length, read_groups, read_labels
from commod.bounds._counts import Problem
from commod.bounds._levels import IntArray
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint, ConstraintLike, get_constraint, missing_labels
from commod.metrics._fairness import _binary_pair, _read_some_labels

__all__ = ["Flips", "Table", "check_budget", "problem_of", "read_problem", "read_table"]

Flips = dict[tuple[Hashable, Any, Any], int]
BoolArray = NDArray[np.bool_]

DIRECTIONS = ("any", "gains_only", "losses_only")


@dataclass(frozen=True)
class Table:
    """How many people there are per true label, decision and group.

    `counts` has shape (2, 2, n_groups): true label and decision, each negative or positive; with
    unknown true labels (1, 2, n_groups). `labels` are the negative and the
    positive one.
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
        """Return the changes of one line, two arrays of shape (n_groups,), by their labels."""
        negative, positive = self.labels
        named: Flips = {}
        for group, up, down in zip(self.groups, raised.tolist(), lowered.tolist(), strict=True):
            if up:
                named[group, negative, positive] = up
            if down:
                named[group, positive, negative] = down
        return named


def read_table(
    y_pred: Any,
    sensitive_features: Any,
    pos_label: Any,
    favorable_label: Any = None,
    y_true: Any = None,
) -> Table:
    """Return the counts of checked rows of two groups or more."""
    pred = _read_some_labels(y_pred, "y_pred")
    if y_true is None:
        columns = [(pred, binary_outcome(pred, "y_pred", pos_label))]
    else:
        true = read_labels(y_true, "y_true")
        check_length(true, "y_true", len(pred))
        outcomes, decisions = _binary_pair((true, "y_true"), (pred, "y_pred"), pos_label)
        columns = [(pred, decisions), (true, outcomes)]
    groups = read_groups(sensitive_features, len(pred))
    if len(groups.labels) < 2:
        raise InputError(
            f"sensitive_features has one group only ({groups.labels[0]!r}), and fairness compares "
            "two or more. Pass the rows of all groups."
        )
    labels = _two_labels(columns, pos_label, favorable_label)
    counts = _count_cells([is_positive for _, is_positive in columns], groups)
    return Table(groups.labels, labels, counts, favorable_label in (None, labels[1]))


def _count_cells(positives: list[BoolArray], groups: Groups) -> IntArray:
    decisions, *outcomes = positives
    n_groups = len(groups.labels)
    cells = 2 * groups.codes + decisions
    for outcome in outcomes:
        cells += 2 * n_groups * outcome
    counts = np.bincount(cells, minlength=2 * n_groups * len(positives))
    return counts.reshape(len(positives), n_groups, 2).swapaxes(1, 2)


def _two_labels(
    columns: list[tuple[NDArray[Any], BoolArray]], pos_label: Any, favorable_label: Any
) -> tuple[Any, Any]:
    """Return the negative and the positive label as they are written in the data."""
    found: dict[bool, Any] = {}
    for values, is_positive in columns:
        for kind, at in ((True, is_positive.argmax()), (False, is_positive.argmin())):
            if is_positive[at] == kind:
                found.setdefault(kind, values[at : at + 1].tolist()[0])
    positive = found.get(True, pos_label)
    # Where everybody is positive nothing is unfair or wrong: the other label is never named.
    negative = found.get(False, favorable_label)
    if favorable_label is not None and favorable_label not in (negative, positive):
        raise InputError(
            f"favorable_label={favorable_label!r} is neither of the two labels, {negative!r} and "
            f"{positive!r}. Pass the one that is good for the person."
        )
    return negative, positive


def read_problem(
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    constraints: ConstraintLike,
    direction: str,
    pos_label: Any,
    favorable_label: Any,
) -> tuple[Table, Problem]:
    """Return the checked table and what is to be changed in it; y_true may be None for parity."""
    constraint = get_constraint(constraints)
    if y_true is None and constraint.needs_labels:
        raise missing_labels(constraint)
    table = read_table(y_pred, sensitive_features, pos_label, favorable_label, y_true)
    return table, problem_of(table, constraint, direction)


def problem_of(table: Table, constraints: ConstraintLike, direction: str = "any") -> Problem:
    """Return what a constraint compares in the table, and what a direction allows to change."""
    constraint = get_constraint(constraints)
    if direction not in DIRECTIONS:
        known = ", ".join(DIRECTIONS)
        raise InputError(f"direction must be one of {known}; got {direction!r}.")
    counts = constraint.by_rate_row(table.counts)
    _check_cells(table, constraint, counts.sum(axis=1))
    raising = "gains_only" if table.is_positive_favorable else "losses_only"
    return Problem(
        constraint,
        sizes=counts.sum(axis=1),
        positives=counts[:, 1],
        may_raise=direction in ("any", raising),
        may_lower=direction != raising,
        prefer_raising=table.is_positive_favorable,
    )


def _check_cells(table: Table, constraint: Constraint, sizes: IntArray) -> None:
    """Refuse a rate over nobody; `sizes` has shape (n_rate_rows, n_groups)."""
    for rate, size in zip(constraint.rate_rows, sizes, strict=True):
        empty = np.flatnonzero(size == 0)
        if len(empty):
            group, label = table.groups[empty[0]], table.labels[bool(rate.label)]
            raise InputError(
                f"Group {group!r} has no row with true label {label!r}, so its {rate.name} is "
                "undefined whatever is changed. Leave the group out, or merge it with another."
            )


def check_budget(max_changes: Any) -> int:
    """Return a number of changes from 0 on."""
    is_whole = isinstance(max_changes, int | np.integer) and not isinstance(max_changes, bool)
    if not is_whole or max_changes < 0:
        raise InputError(
            f"max_changes must be a whole number of changes, 0 or more; got {max_changes!r}."
        )
    return int(max_changes)
