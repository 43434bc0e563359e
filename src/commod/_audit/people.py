"""The one door of the audit: decisions, labels, groups and scores as they come → checked rows."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._codes import plain
from commod._explain import Explanation
from commod._inputs import (
    Groups,
    binary_outcome,
    check_length,
    different_labels,
    names_of_columns,
    read_groups,
    read_labels,
)
from commod._record import Request, from_plain, to_plain
from commod.bounds._counts import check_constraints, read_target
from commod.bounds._tables import DIRECTIONS
from commod.exceptions import InputError
from commod.metrics._scores import _read_scores

__all__ = ["People", "named_request", "read_people", "read_request"]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

COMMON_POSITIVES = (1, True)
SHARES = ("max_changes", "max_accuracy_loss", "max_volume_change", "confidence", "threshold")
LABELS = ("pos_label", "favorable_label", "threshold")  # not asked for, but facts of the update


@dataclass(frozen=True)
class People:
    """The audited people: decisions are True where they are `pos_label`, all arrays (n,).

    `gain` and `loss` are of the favourable label. `group_names` are texts, all different.
    """

    before: BoolArray
    after: BoolArray
    label: BoolArray | None
    scores_before: FloatArray | None
    scores_after: FloatArray | None
    groups: Groups
    group_names: tuple[str, ...]
    negative_label: Any
    positive_label: Any
    favorable_is_positive: bool

    def __len__(self) -> int:
        return len(self.before)

    @property
    def gain(self) -> BoolArray:
        """Return who gains the favourable outcome."""
        up = self.favorable_is_positive
        return (~self.before & self.after) if up else (self.before & ~self.after)

    @property
    def loss(self) -> BoolArray:
        """Return who loses the favourable outcome."""
        up = self.favorable_is_positive
        return (self.before & ~self.after) if up else (~self.before & self.after)

    @property
    def changed(self) -> BoolArray:
        """Return whose decision changes."""
        return np.asarray(self.before != self.after)

    def favorable(self, decisions: BoolArray) -> BoolArray:
        """Return where decisions (or labels) are the favourable one."""
        return decisions if self.favorable_is_positive else ~decisions


def read_request(request: Any, explanation: Explanation | None) -> Request:
    """Return what was asked: as given, what is not given as of the explained update."""
    known_already = Request() if explanation is None else explanation.request
    if request is None:
        request = known_already
    if isinstance(request, Mapping):
        known = [f.name for f in fields(Request)]
        unknown = [name for name in request if name not in known]
        if unknown:
            raise InputError(
                f"request has an unknown entry {unknown[0]!r}; it may hold {', '.join(known)}."
            )
        request = replace(known_already, **{name: plain(v) for name, v in request.items()})
    if not isinstance(request, Request):
        raise InputError(
            f"request must be a commod.Request or a mapping such as {{'target': 0.8}}; got "
            f"{type(request).__name__}."
        )
    request = replace(
        request, **{n: getattr(known_already, n) for n in LABELS if getattr(request, n) is None}
    )
    check_constraints(request.constraints)
    if request.direction not in DIRECTIONS:
        raise InputError(
            f"direction={request.direction!r} is not known; choose one of {', '.join(DIRECTIONS)}."
        )
    request = from_plain(Request, to_plain(request))  # refuses entries of a wrong kind
    if request.target is not None:
        read_target(request.constraints, request.target)
    for name in SHARES:
        value = getattr(request, name)
        if value is not None and not 0 <= value <= 1:
            raise InputError(f"request: {name}={value!r} is a share and lies between 0 and 1.")
    return request


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
    negative, positive = _two_labels(read, labels[0])
    favorable = positive if labels[1] is None else labels[1]
    if favorable not in (negative, positive):
        raise InputError(
            f"favorable_label={favorable!r} is neither of the two labels, {negative!r} and "
            f"{positive!r}. Pass the one that is good for the person."
        )
    outcome = {name: binary_outcome(v, name, positive) for name, v in read.items()}
    groups = read_groups(sensitive_features, n)
    return People(
        before=outcome["y_before"],
        after=outcome["y_after"],
        label=outcome.get("y_true"),
        scores_before=_scores(scores[0], "scores_before", n),
        scores_after=_scores(scores[1], "scores_after", n),
        groups=groups,
        group_names=_names(groups.labels, names_of_columns(sensitive_features)),
        negative_label=negative,
        positive_label=positive,
        favorable_is_positive=bool(favorable == positive),
    )


def _two_labels(read: Mapping[str, NDArray[Any]], pos_label: Any) -> tuple[Any, Any]:
    """Return the negative and the positive label; the negative is None where nobody has it."""
    found: dict[Any, str] = {}
    for name, values in read.items():
        for value in different_labels(values):
            found.setdefault(value, name)
    texts = {value for value in found if isinstance(value, str)}
    if len(found) > 2 or (texts and len(texts) < len(found)):
        shown = ", ".join(f"{value!r} ({name})" for value, name in list(found.items())[:4])
        raise InputError(
            f"Decisions and labels hold {len(found)} different values, but there are two: {shown}. "
            "Give all one coding; scores are compared with the threshold first."
        )
    if pos_label is None:
        pos_label = next((value for value in COMMON_POSITIVES if value in found), None)
    if pos_label is None or (pos_label not in found and len(found) == 2):
        raise InputError(
            f"pos_label={pos_label!r} is not one of the labels, {list(found)}. Pass the label "
            "whose rates are counted as pos_label=."
        )
    positive = next((value for value in found if value == pos_label), pos_label)
    negative = next((value for value in found if value != pos_label), None)
    if negative is None and positive in COMMON_POSITIVES:
        negative = False if isinstance(positive, bool) else 0
    return negative, positive


def _scores(values: Any, name: str, n: int) -> FloatArray | None:
    if values is None:
        return None
    scores = _read_scores(values, name)
    check_length(scores, name, n)
    return scores


def _names(labels: Sequence[Hashable], columns: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the groups as different texts: values, with the names of several columns."""
    parts = [label if isinstance(label, tuple) else (label,) for label in labels]
    several = columns is not None and len(columns) > 1
    names = [
        ", ".join(f"{c} = {v}" for c, v in zip(columns or (), part, strict=True))
        if several
        else ", ".join(map(str, part))
        for part in parts
    ]
    if len(set(names)) < len(names):  # 1 and "1" are two groups
        names = [", ".join(map(repr, part)) for part in parts]
    return tuple(names)


def named_request(request: Request, people: People, names: Mapping[Any, str]) -> Request:
    """Return the request with the labels of the data, and what they are called."""
    favorable = people.positive_label if people.favorable_is_positive else people.negative_label
    unknown = [
        label for label in names if label not in (people.negative_label, people.positive_label)
    ]
    if unknown:
        raise InputError(
            f"label_names has {unknown[0]!r}, which is no label; the labels are "
            f"{people.negative_label!r} and {people.positive_label!r}."
        )
    return replace(
        request,
        pos_label=plain(people.positive_label),
        favorable_label=plain(favorable),
        pos_name=str(names.get(people.positive_label, request.pos_name or people.positive_label)),
        favorable_name=str(names.get(favorable, request.favorable_name or favorable)),
    )
