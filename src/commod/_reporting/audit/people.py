"""Read decisions, labels, groups and scores of an audit from arrays, and check them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._data.groups import Groups, group_names_of, read_groups, sensitive_names
from commod._data.labels import binary_outcome, check_length, read_labels, read_scores
from commod._record import Request
from commod._reporting.audit.counts import Coding, DecisionCounts, read_two_labels
from commod.exceptions import DataWarning, InputError

OptionalPair = tuple[Floats | None, Floats | None]

SCORES = ("scores_before", "scores_after", "scores_calibrated")
ROUNDING = 1e-12  # of a mean score


@dataclass(frozen=True)
class AuditedPeople:
    """The audited people, one per row; all arrays have shape (n,).

    `before`, `after` and `label` are True where the decision or true label is `pos_label`. Gains
    and losses refer to the favourable label.
    """

    before: Mask
    after: Mask
    label: Mask | None
    scores_before: Floats | None
    scores_after: Floats | None
    groups: Groups
    coding: Coding
    scores_calibrated: Floats | None = None

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

    def take(self, kept: Mask) -> AuditedPeople:
        """Return the people where `kept` (n,) is true; groups keep their numbers and names."""
        before, after, calibrated = (
            None if scores is None else scores[kept]
            for scores in (self.scores_before, self.scores_after, self.scores_calibrated)
        )
        return replace(
            self,
            before=self.before[kept],
            after=self.after[kept],
            label=None if self.label is None else self.label[kept],
            scores_before=before,
            scores_after=after,
            scores_calibrated=calibrated,
            groups=self.groups.take(kept),
        )

    def count(self, multiplicity: Floats | None = None) -> DecisionCounts:
        """Return the people of known groups, counted by group, true label and decisions.

        A row stands for one person, or for `multiplicity` (n,) people. Sums are exact below 2⁵³.
        """
        return DecisionCounts(self._cells(multiplicity)[1:])

    def count_unknown(self, multiplicity: Floats | None = None) -> DecisionCounts | None:
        """Return the people whose group is not known, as one group; None where there are none."""
        unknown = DecisionCounts(self._cells(multiplicity)[:1])
        return unknown if unknown.n else None

    def _cells(self, multiplicity: Floats | None) -> NDArray[np.int64]:
        """Return all people by group, those without a group first, (n_groups + 1, L, 2, 2)."""
        n_groups, n_labels = len(self.coding.group_names) + 1, 1 if self.label is None else 2
        cell = (self.groups.codes + 1) * (4 * n_labels)
        if self.label is not None:
            cell += 4 * self.label
        cell += 2 * self.before
        cell += self.after
        counts = np.bincount(cell, multiplicity, minlength=n_groups * n_labels * 4)
        return counts.reshape(n_groups, n_labels, 2, 2).astype(np.int64)

    def group_means(self, sums: Floats | None, sizes: Floats) -> Floats | None:
        """Return the mean score of each group (n_groups,); None where scores are not given.

        A row of `sums` (n,) is the sum of the scores of `sizes` (n,) people.
        """
        if sums is None:
            return None
        codes, n_groups = self.groups.codes + 1, len(self.coding.group_names) + 1
        totals, n_people = (
            np.bincount(codes, values, minlength=n_groups)[1:] for values in (sums, sizes)
        )
        return np.where(n_people > 0, totals / np.maximum(n_people, 1), np.nan)

    def warn_of_inverted_scores(self, sums: OptionalPair, sizes: Floats, stacklevel: int) -> None:
        """Warn where decisions for the score's label have the lower mean score.

        `sums` are scores before and after: each row (n,) adds the scores of `sizes` (n,) people.
        """
        names = "scores_before", "scores_after"
        for name, totals, decided in zip(names, sums, (self.before, self.after), strict=True):
            positive = decided == self.coding.score_is_for_positive
            if totals is None or positive.all() or not positive.any():
                continue
            low, high = (totals[rows].sum() / sizes[rows].sum() for rows in (~positive, positive))
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
    """Return the checked rows; people of unknown groups are refused, or kept without a group.

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
    return AuditedPeople(
        before=outcome[before],
        after=outcome[after],
        label=outcome.get(truth),
        groups=groups,
        coding=Coding(names, *two_labels),
        **{name: _scores(scores.get(name), name, n) for name in SCORES},
    )


def _scores(values: Any, name: str, n: int) -> Floats | None:
    if values is None:
        return None
    scores = read_scores(values, name)
    check_length(scores, name, n)
    return scores
