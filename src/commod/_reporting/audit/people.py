"""Read the people of an audit, leave out those who must not be shown, and count the others."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._data.disclosure import hidden_groups, in_totals
from commod._data.groups import Groups, group_names_of, read_groups, sensitive_names
from commod._data.labels import (
    binary_outcome,
    check_length,
    distinct_labels,
    is_label_in,
    read_labels,
    read_scores,
)
from commod._record import Estimate, Request
from commod.exceptions import DataWarning, InputError
from commod.metrics._constraint import Constraint

IntArray = NDArray[np.int64]

UNDEFINED = Estimate(None, None, None)
COMMON_POSITIVES = (1, True)
SCORES = ("scores_before", "scores_after", "scores_calibrated")
ROUNDING = 1e-12  # of a mean score


def finite_or_none(value: Any) -> float | None:
    """Return a finite float; None where the value is None, NaN or infinite."""
    return float(value) if value is not None and np.isfinite(value) else None


@dataclass(frozen=True)
class Coding:
    """The names of groups and labels, which label is favourable, and which one scores predict.

    `group_names` are texts, all different. `negative_label` is None where nobody has it.
    """

    group_names: tuple[str, ...]
    negative_label: Any
    positive_label: Any
    favorable_is_positive: bool
    score_is_for_positive: bool = True

    @property
    def favorable_label(self) -> Any:
        """Return the label that is good for the person."""
        return self.positive_label if self.favorable_is_positive else self.negative_label

    @property
    def score_label(self) -> Any:
        """Return the label that a high score predicts."""
        return self.positive_label if self.score_is_for_positive else self.negative_label


# ---------------------------------------------------------------------------------------------
# Labels


def read_two_labels(
    values: Mapping[str, NDArray[Any]], request: Request
) -> tuple[Any, Any, bool, bool]:
    """Return the negative and the positive label, and what the positive one is.

    The last two values say whether it is favourable, and whether scores predict it. `values` are
    decisions and true labels by parameter name. The request may name pos_label, favorable_label
    and score_is_for. Either of the first two stands for both. The negative label is None where
    nobody has it.
    """
    present = _present_labels(values)
    positive = _positive_label(present, request.pos_label, request.favorable_label)
    negative = next((label for label in present if label != positive), None)
    if negative is None and positive in COMMON_POSITIVES:
        negative = False if isinstance(positive, bool) else 0
    favorable = positive if request.favorable_label is None else request.favorable_label
    if favorable not in (negative, positive):
        raise InputError(
            f"favorable_label={favorable!r} is neither of the two labels, {negative!r} and "
            f"{positive!r}. Pass the label that is good for the person.",
            parameter="favorable_label",
        )
    is_scored = _scores_positive(negative, positive, request.score_is_for)
    return negative, positive, bool(favorable == positive), is_scored


def _scores_positive(negative: Any, positive: Any, score_is_for: Any) -> bool:
    """Return whether scores predict the positive label: by default, the larger of the two."""
    if score_is_for is None:
        return bool(negative is None or positive > negative)
    if score_is_for not in (negative, positive):
        raise InputError(
            f"score_is_for={score_is_for!r} is neither of the two labels, {negative!r} and "
            f"{positive!r}. Pass the label that a high score predicts.",
            parameter="score_is_for",
        )
    return bool(score_is_for == positive)


def _present_labels(values: Mapping[str, NDArray[Any]]) -> list[Any]:
    """Return the different labels, at most two; refuse more, and text mixed with numbers."""
    first_place: dict[Any, str] = {}
    for name, column in values.items():
        for label in distinct_labels(column):
            first_place.setdefault(label, name)
    n_texts = sum(isinstance(label, str) for label in first_place)
    if len(first_place) > 2 or 0 < n_texts < len(first_place):
        examples = ", ".join(f"{label!r} ({name})" for label, name in [*first_place.items()][:4])
        raise InputError(
            "Decisions and true labels must have two labels of one type, but hold "
            f"{len(first_place)} different values: {examples}. Use the same two labels in all "
            "columns; compare scores with the threshold first."
        )
    return list(first_place)


def _positive_label(present: list[Any], pos_label: Any, favorable_label: Any) -> Any:
    """Return the label whose rates are compared: `favorable_label` where only that is given."""
    if pos_label is None and is_label_in(favorable_label, present):
        pos_label = favorable_label
    if pos_label is None:
        pos_label = next((label for label in COMMON_POSITIVES if label in present), None)
    if pos_label is None or (pos_label not in present and len(present) == 2):
        raise InputError(
            f"pos_label={pos_label!r} is not one of the labels, {present}. Pass the label whose "
            "rates are counted as pos_label=.",
            parameter="pos_label",
        )
    return next((label for label in present if label == pos_label), pos_label)


# ---------------------------------------------------------------------------------------------
# Counts


@dataclass(frozen=True)
class DecisionCounts:
    """How many people have each true label and each pair of decisions, by group.

    `cells` has shape (n_groups, n_labels, 2, 2). Its axes are: group; true label (negative,
    positive; one entry where labels are not known); decision before; decision after (negative,
    positive).
    """

    cells: IntArray

    @property
    def has_labels(self) -> bool:
        """Return whether true labels are known."""
        return self.cells.shape[1] == 2

    @property
    def n(self) -> int:
        """Return the number of people."""
        return int(self.cells.sum())

    @property
    def sizes(self) -> IntArray:
        """Return the number of people in each group, shape (n_groups,)."""
        return np.asarray(self.cells.sum(axis=(1, 2, 3)))

    def with_others(self, others: DecisionCounts | None) -> DecisionCounts:
        """Return the counts with further people, whose group is not known, as one more group."""
        return self if others is None else DecisionCounts(np.vstack([self.cells, others.cells]))

    def of_groups(self, kept: Sequence[int] | Mask) -> DecisionCounts:
        """Return the counts of some groups only."""
        return DecisionCounts(self.cells[np.asarray(kept)])

    def raised_and_lowered(self) -> tuple[IntArray, IntArray]:
        """Return how many people of each group are raised, and how many are lowered."""
        by_decisions = self.cells.sum(axis=1)
        return by_decisions[:, 0, 1], by_decisions[:, 1, 0]

    def gains_and_losses(self, favorable_is_positive: bool) -> tuple[int, int]:
        """Return the number of gains and the number of losses, over all groups."""
        raised, lowered = (int(n.sum()) for n in self.raised_and_lowered())
        return (raised, lowered) if favorable_is_positive else (lowered, raised)

    def fixed_and_introduced(self) -> tuple[IntArray, IntArray]:
        """Return the errors fixed and introduced in each group; true labels must be known."""
        cells = self.cells
        fixed = cells[:, 0, 1, 0] + cells[:, 1, 0, 1]
        introduced = cells[:, 0, 0, 1] + cells[:, 1, 1, 0]
        return fixed, introduced

    def by_decision(self, after: bool) -> IntArray:
        """Return people by group, true label and decision before or after; shape (G, L, 2)."""
        return np.asarray(self.cells.sum(axis=2 if after else 3))

    def n_correct(self, after: bool) -> int:
        """Return the number of correct decisions; true labels must be known."""
        by_decision = self.by_decision(after)
        return int((by_decision[:, 0, 0] + by_decision[:, 1, 1]).sum())

    def table(self, constraint: Constraint, after: bool) -> tuple[IntArray, IntArray]:
        """Return sizes and positives of a constraint's cells, both of shape (n_rate_rows, G)."""
        by_rate_row = constraint.by_rate_row(self.by_decision(after), axis=1)
        return by_rate_row.sum(axis=2).T, by_rate_row[:, :, 1].T

    def is_comparable(self, constraint: Constraint) -> bool:
        """Return whether there are two groups or more and no cell of the constraint is empty."""
        if constraint.needs_labels and not self.has_labels:
            return False
        sizes, _ = self.table(constraint, after=False)
        return sizes.shape[1] > 1 and bool(sizes.all())


# ---------------------------------------------------------------------------------------------
# People


@dataclass(frozen=True)
class AuditedPeople:
    """The audited people; all arrays have shape (k,).

    A line stands for `n` people with the same group, decisions and true label. In memory each
    person has a line, and an engine counts people by line. Scores are sums over the people of a
    line. `before`, `after` and `label` are True where the decision or true label is `pos_label`.
    Gains and losses refer to the favourable label. `conditions` has the columns that constraints
    are within.
    """

    before: Mask
    after: Mask
    label: Mask | None
    groups: Groups
    coding: Coding
    n: IntArray
    scores_before: Floats | None = None
    scores_after: Floats | None = None
    scores_calibrated: Floats | None = None
    conditions: Mapping[str, Groups] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.before)

    @property
    def gain(self) -> Mask:
        """Return who gains the favourable outcome."""
        return ~self.favorable(self.before) & self.favorable(self.after)

    @property
    def loss(self) -> Mask:
        """Return who loses the favourable outcome."""
        return self.favorable(self.before) & ~self.favorable(self.after)

    @property
    def changed(self) -> Mask:
        """Return whose decision changes."""
        return np.asarray(self.before != self.after)

    def favorable(self, decisions: Mask) -> Mask:
        """Return where decisions, or true labels, are favourable."""
        return decisions if self.coding.favorable_is_positive else ~decisions

    def take(self, kept: Mask | NDArray[np.intp]) -> AuditedPeople:
        """Return some of the lines; groups keep their numbers and names."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        taken: dict[str, Any] = {
            name: array[kept] for name, array in values.items() if isinstance(array, np.ndarray)
        }
        conditions = {name: column.take(kept) for name, column in self.conditions.items()}
        return replace(self, **taken, groups=self.groups.take(kept), conditions=conditions)

    def merged(self) -> AuditedPeople:
        """Return one line for all people who differ in nothing but their scores, without scores."""
        key = self.groups.codes.astype(np.int64) + 1
        for column in self.conditions.values():
            # numbered anew, because the product of many columns would be too large a number
            _, key = np.unique(key * len(column.labels) + column.codes, return_inverse=True)
        for flag in (self.label, self.before, self.after):
            key = 2 * key if flag is None else 2 * key + flag
        totals = np.bincount(key, self.n).astype(np.int64)
        line = np.zeros(len(totals), dtype=np.intp)
        line[key] = np.arange(len(key))
        no_scores: dict[str, Any] = dict.fromkeys(SCORES)
        lines = self.take(line[totals > 0])
        return replace(lines, n=totals[totals > 0], **no_scores)

    def count(self) -> DecisionCounts:
        """Return the people of known groups, counted by group, true label and decisions."""
        return DecisionCounts(self._cells()[1:])

    def count_unknown(self) -> DecisionCounts | None:
        """Return the people whose group is not known, as one group; None where there are none."""
        unknown = DecisionCounts(self._cells()[:1])
        return unknown if unknown.n else None

    def _cells(self) -> IntArray:
        """Return all people by group, those without a group first, (n_groups + 1, L, 2, 2)."""
        n_groups, n_labels = len(self.coding.group_names) + 1, 1 if self.label is None else 2
        cell = (self.groups.codes + 1) * (4 * n_labels)
        if self.label is not None:
            cell += 4 * self.label
        cell += 2 * self.before
        cell += self.after
        counts = np.bincount(cell, self.n, minlength=n_groups * n_labels * 4)
        return counts.reshape(n_groups, n_labels, 2, 2).astype(np.int64)

    def group_means(self, sums: Floats | None) -> Floats | None:
        """Return the mean score of each group (n_groups,); None where scores are not given.

        `sums` (k,) are of scores, or of their squares, over the people of each line.
        """
        if sums is None:
            return None
        codes, n_groups = self.groups.codes + 1, len(self.coding.group_names) + 1
        totals, n_people = (
            np.bincount(codes, values, minlength=n_groups)[1:] for values in (sums, self.n)
        )
        return np.where(n_people > 0, totals / np.maximum(n_people, 1), np.nan)

    def warn_of_inverted_scores(self, stacklevel: int) -> None:
        """Warn where decisions for the score's label have the lower mean score."""
        for name, decided in (("scores_before", self.before), ("scores_after", self.after)):
            totals, positive = getattr(self, name), decided == self.coding.score_is_for_positive
            if totals is None or positive.all() or not positive.any():
                continue
            low, high = (totals[rows].sum() / self.n[rows].sum() for rows in (~positive, positive))
            if high < low - ROUNDING:
                warnings.warn(
                    f"{name} are read as scores of the label {self.coding.score_label!r}, but are "
                    "lower where that is the decision. They look like scores of the other label. "
                    "Pass the label that a high score predicts as score_is_for= (on the command "
                    "line: --score-is-for).",
                    DataWarning,
                    stacklevel=stacklevel,
                )


def read_people(
    labels: Mapping[str, Any],
    scores: Mapping[str, Any],
    sensitive_features: Any,
    request: Request,
    group_names: Mapping[Any, Any] | None = None,
    unknown_groups: str = "error",
) -> AuditedPeople:
    """Return a checked line per row; people of unknown groups are refused, or kept without a group.

    `labels` are the decisions before, the decisions after and the true labels, by the name of
    their parameter; true labels may be None. `scores` are those of SCORES that are given, by name.
    The request may name pos_label and favorable_label.
    """
    before, after, truth = labels
    if sensitive_features is None:
        raise InputError(
            "sensitive_features is missing. Pass the group of each row: an audit compares groups."
        )
    values = {name: read_labels(v, name) for name, v in labels.items() if v is not None}
    for name in (before, after):
        if name not in values:
            raise InputError(f"{name} is None; pass the decision of every row.")
    n = len(values[before])
    if not n:
        raise InputError(f"{before} has 0 rows; at least 1 is needed.")
    for name, column in values.items():
        check_length(column, name, n)
    two_labels = read_two_labels(values, request)
    outcome = {name: binary_outcome(v, name, two_labels[1]) for name, v in values.items()}
    groups = read_groups(sensitive_features, n, unknown_groups)
    names = group_names_of(groups.labels, sensitive_names(sensitive_features), group_names)
    checked: dict[str, Any] = {name: _scores(scores.get(name), name, n) for name in SCORES}
    return AuditedPeople(
        before=outcome[before],
        after=outcome[after],
        label=outcome.get(truth),
        groups=groups,
        coding=Coding(names, *two_labels),
        n=np.ones(n, dtype=np.int64),
        **checked,
    )


def _scores(values: Any, name: str, n: int) -> Floats | None:
    if values is None:
        return None
    scores = read_scores(values, name)
    check_length(scores, name, n)
    return scores


# ---------------------------------------------------------------------------------------------
# Leave out people of groups that are too small to be shown; every figure counts the others


@dataclass(frozen=True)
class ShownPeople:
    """The people outside hidden groups, whom figures count.

    `is_shown` (k,) says which lines they are. `n_hidden` (n_groups,) counts the others by group,
    and `n_unknown_hidden` those whose group is not known.
    """

    people: AuditedPeople
    is_shown: Mask
    n_hidden: IntArray
    n_unknown_hidden: int

    @property
    def is_complete(self) -> bool:
        """Return whether nobody is hidden."""
        return bool(self.is_shown.all())

    @cached_property
    def is_known(self) -> Mask:
        """Return which of the lines that are shown have a known group."""
        return self.people.groups.is_known

    @cached_property
    def known(self) -> AuditedPeople:
        """Return the people of known groups, whom comparisons count."""
        return self.people if self.is_known.all() else self.people.take(self.is_known)


def without_hidden(everybody: AuditedPeople, min_group_size: int) -> ShownPeople:
    """Return the people outside groups that are too small to be shown."""
    codes, n_groups = everybody.groups.codes, len(everybody.groups.labels)
    n_unknown, *known = np.bincount(codes + 1, everybody.n, n_groups + 1).astype(np.int64)
    sizes = np.array(known, dtype=np.int64)
    is_hidden = hidden_groups(sizes, sizes >= min_group_size)
    is_shown = in_totals(codes, is_hidden, int(n_unknown))
    n_unknown_hidden = int(everybody.n[(codes < 0) & ~is_shown].sum())
    people = everybody if is_shown.all() else everybody.take(is_shown)
    return ShownPeople(people, is_shown, np.where(is_hidden, sizes, 0), n_unknown_hidden)
