"""Hold people counted by group, true label and decisions; all rates of an audit come from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Mask
from commod._data.labels import distinct_labels, is_label_in
from commod._record import Estimate, Request
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint

COMMON_POSITIVES = (1, True)


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


IntArray = NDArray[np.int64]

UNDEFINED = Estimate(None, None, None)


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


def finite_or_none(value: Any) -> float | None:
    """Return a finite float; None where the value is None, NaN or infinite."""
    return float(value) if value is not None and np.isfinite(value) else None
