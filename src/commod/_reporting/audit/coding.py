"""What was asked, and what groups and labels are called: known before anybody is counted."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_scalar

from commod._data.codes import plain
from commod._data.labels import distinct_labels
from commod._record import Request, from_plain, to_plain
from commod._reporting.explain import Explanation
from commod.bounds._counts import read_target
from commod.bounds._tables import DIRECTIONS
from commod.exceptions import DataWarning, InputError
from commod.metrics._constraint import get_constraint

__all__ = [
    "Coding",
    "check_labels_known",
    "check_settings",
    "named_request",
    "names_of_groups",
    "read_request",
    "read_two_labels",
    "warn_about_scores",
]

COMMON_POSITIVES = (1, True)
SHARES = ("max_changes", "max_accuracy_loss", "max_volume_change", "confidence", "threshold")
LABELS = ("pos_label", "favorable_label", "threshold")  # not asked for, but facts of the update
ROUNDING = 1e-12  # of a mean score


@dataclass(frozen=True)
class Coding:
    """What groups and labels are called, and which label is good; of rows and of counts alike.

    `group_names` are texts, all different. `negative_label` is None where nobody has it.
    """

    group_names: tuple[str, ...]
    negative_label: Any
    positive_label: Any
    favorable_is_positive: bool

    @property
    def favorable_label(self) -> Any:
        """Return the label that is good for the person."""
        return self.positive_label if self.favorable_is_positive else self.negative_label


# ---------------------------------------------------------------------------------------------
# What was asked


def check_settings(level: float, min_group_size: int, min_subgroup_size: int) -> None:
    """Refuse a level or a size that is none."""
    check_scalar(level, "level", float, min_val=0.5, max_val=1, include_boundaries="neither")
    check_scalar(min_group_size, "min_group_size", (int, np.integer), min_val=1)
    check_scalar(min_subgroup_size, "min_subgroup_size", (int, np.integer), min_val=1)


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
        undefined = [name for name, v in request.items() if v is not None and plain(v) is None]
        if undefined:
            raise InputError(f"request: {undefined[0]} is NaN; pass a number, or leave it out.")
        request = replace(known_already, **{name: plain(v) for name, v in request.items()})
    if not isinstance(request, Request):
        raise InputError(
            f"request must be a commod.Request or a mapping such as {{'target': 0.8}}; got "
            f"{type(request).__name__}."
        )
    request = replace(
        request, **{n: getattr(known_already, n) for n in LABELS if getattr(request, n) is None}
    )
    constraint = get_constraint(request.constraints)
    if request.direction not in DIRECTIONS:
        raise InputError(
            f"direction={request.direction!r} is not known; choose one of {', '.join(DIRECTIONS)}."
        )
    request = from_plain(Request, to_plain(request))  # refuses entries of a wrong kind
    if request.target is not None:
        read_target(constraint, request.target)
    for name in SHARES:
        value = getattr(request, name)
        if value is not None and not 0 <= value <= 1:
            raise InputError(f"request: {name}={value!r} is a share and lies between 0 and 1.")
    return request


def named_request(request: Request, coding: Coding, names: Mapping[Any, str]) -> Request:
    """Return the request with the labels of the data, and what they are called."""
    favorable = coding.favorable_label
    known = (coding.negative_label, coding.positive_label)
    unknown = [label for label in names if label not in known]
    if unknown:
        raise InputError(
            f"label_names has {unknown[0]!r}, which is no label; the labels are "
            f"{coding.negative_label!r} and {coding.positive_label!r}."
        )
    return replace(
        request,
        pos_label=plain(coding.positive_label),
        favorable_label=plain(favorable),
        pos_name=str(names.get(coding.positive_label, request.pos_name or coding.positive_label)),
        favorable_name=str(names.get(favorable, request.favorable_name or favorable)),
    )


def check_labels_known(asked: Request, has_labels: bool) -> None:
    """Refuse a constraint on errors where true labels are not given."""
    if get_constraint(asked.constraints).needs_labels and not has_labels:
        raise InputError(
            f"constraints={asked.constraints!r} compares decisions with true labels, but y_true is "
            "None. Pass the labels, or ask for demographic_parity, which needs none."
        )


# ---------------------------------------------------------------------------------------------
# What groups and labels are called


def read_two_labels(
    read: Mapping[str, NDArray[Any]], labels: tuple[Any, Any]
) -> tuple[Any, Any, bool]:
    """Return the negative and the positive label that `read` holds, and whether the latter is good.

    `labels` are pos_label and favorable_label, None where not named.
    """
    negative, positive = _two_labels(read, labels[0])
    favorable = positive if labels[1] is None else labels[1]
    if favorable not in (negative, positive):
        raise InputError(
            f"favorable_label={favorable!r} is neither of the two labels, {negative!r} and "
            f"{positive!r}. Pass the one that is good for the person."
        )
    return negative, positive, bool(favorable == positive)


def _two_labels(read: Mapping[str, NDArray[Any]], pos_label: Any) -> tuple[Any, Any]:
    """Return the negative and the positive label; the negative is None where nobody has it."""
    found: dict[Any, str] = {}
    for name, values in read.items():
        for value in distinct_labels(values):
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


def names_of_groups(labels: Sequence[Hashable], columns: tuple[str, ...] | None) -> tuple[str, ...]:
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


def warn_about_scores(coding: Coding, means: Mapping[str, tuple[float, float] | None]) -> None:
    """Warn where scores are lower for the positive decision: scores of the other label.

    `means` are the mean scores of negative and of positive decisions, by the name of the scores;
    None where there are none, or only one decision.
    """
    for name, mean in means.items():
        if mean is not None and mean[1] < mean[0] - ROUNDING:
            warnings.warn(
                f"{name} are lower where the decision is {coding.positive_label!r}: they look like "
                "scores of the other label. Pass those of pos_label.",
                DataWarning,
                stacklevel=3,
            )
