"""The one door of the audit: decisions, labels, groups and scores as they come → checked rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.groups import Groups, read_groups, sensitive_names
from commod._data.labels import binary_outcome, check_length, read_labels, read_scores
from commod._reporting.audit.coding import Coding, names_of_groups, read_two_labels
from commod.exceptions import InputError

__all__ = ["People", "read_people"]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class People:
    """The audited people: decisions are True where they are `pos_label`, all arrays (n,).

    `gain` and `loss` are of the favourable label.
    """

    before: BoolArray
    after: BoolArray
    label: BoolArray | None
    scores_before: FloatArray | None
    scores_after: FloatArray | None
    groups: Groups
    coding: Coding

    def __len__(self) -> int:
        return len(self.before)

    @property
    def gain(self) -> BoolArray:
        """Return who gains the favourable outcome."""
        up = self.coding.favorable_is_positive
        return (~self.before & self.after) if up else (self.before & ~self.after)

    @property
    def loss(self) -> BoolArray:
        """Return who loses the favourable outcome."""
        up = self.coding.favorable_is_positive
        return (self.before & ~self.after) if up else (~self.before & self.after)

    @property
    def changed(self) -> BoolArray:
        """Return whose decision changes."""
        return np.asarray(self.before != self.after)

    def favorable(self, decisions: BoolArray) -> BoolArray:
        """Return where decisions (or labels) are the favourable one."""
        return decisions if self.coding.favorable_is_positive else ~decisions


def read_people(
    y_before: Any,
    y_after: Any,
    y_true: Any,
    scores: tuple[Any, Any],
    sensitive_features: Any,
    labels: tuple[Any, Any],
) -> People:
    """Return the checked rows; `labels` are pos_label and favorable_label, None where not named."""
    if sensitive_features is None:
        raise InputError(
            "sensitive_features is missing. Pass the group of each row: an audit compares groups."
        )
    given = {"y_before": y_before, "y_after": y_after, "y_true": y_true}
    read = {name: read_labels(v, name) for name, v in given.items() if v is not None}
    for name in ("y_before", "y_after"):
        if name not in read:
            raise InputError(f"{name} is None; pass the decision of every row.")
    n = len(read["y_before"])
    if not n:
        raise InputError("y_before has 0 rows; at least 1 is needed.")
    for name, values in read.items():
        check_length(values, name, n)
    two_labels = read_two_labels(read, labels)
    outcome = {name: binary_outcome(v, name, two_labels[1]) for name, v in read.items()}
    groups = read_groups(sensitive_features, n)
    names = names_of_groups(groups.labels, sensitive_names(sensitive_features))
    return People(
        before=outcome["y_before"],
        after=outcome["y_after"],
        label=outcome.get("y_true"),
        scores_before=_scores(scores[0], "scores_before", n),
        scores_after=_scores(scores[1], "scores_after", n),
        groups=groups,
        coding=Coding(names, *two_labels),
    )


def _scores(values: Any, name: str, n: int) -> FloatArray | None:
    if values is None:
        return None
    scores = read_scores(values, name)
    check_length(scores, name, n)
    return scores
