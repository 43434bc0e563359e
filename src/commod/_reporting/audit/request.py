"""Read what was requested of the update, and check the settings of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from commod._data.columns import plain
from commod._data.groups import UNKNOWN_GROUPS
from commod._data.labels import check_label_parameter
from commod._data.parameters import check_choice, check_numbers
from commod._record.audit import FurtherConstraint, Request
from commod._record.plain import from_plain, to_plain
from commod._text import did_you_mean, shown
from commod.bounds._limits import DIRECTIONS
from commod.exceptions import InputError, InputTypeError
from commod.metrics._constraint import CONSTRAINTS, Constraint, get_constraint, missing_labels
from commod.metrics._language import FairnessConstraint, bounded
from commod.metrics._named_constraints import read_constraints
from commod.metrics._people import read_target
from commod.scorecard import SCORE_EDITS

SHARES = ("max_changes", "max_accuracy_loss", "max_volume_change", "confidence", "threshold")
NON_NEGATIVE = ("max_margin",)
MOST_VALUE = 1e12  # of one decision, so that sums over all people stay finite and exact enough
FACTS = (
    "pos_label",
    "favorable_label",
    "threshold",
    "score_is_for",
)  # of the update, not wishes of the user


def stated_constraints(request: Request) -> tuple[FairnessConstraint, ...]:
    """Return all constraints of a request, the first one first.

    Examples
    --------
    >>> [one.constraint.metric for one in stated_constraints(Request(target=0.8))]
    ['P-rule']
    """
    pairs = [(request.constraints, request.target)]
    pairs += [(one.constraints, one.bound) for one in request.further]
    return tuple(bounded(get_constraint(name), bound) for name, bound in pairs)


def condition_columns(request: Request) -> tuple[str, ...]:
    """Return the columns that the constraints of a request are within, each once."""
    conditions = (one.constraint.within for one in stated_constraints(request))
    return tuple(dict.fromkeys(within.column for within in conditions if within is not None))


def check_settings(
    level: float, min_group_size: int, min_subgroup_size: int, unknown_groups: str
) -> None:
    """Refuse a level outside (0.5, 1), a size below 1 and an unknown choice."""
    check_choice(unknown_groups, "unknown_groups", UNKNOWN_GROUPS)
    check_numbers("level", level=level)
    check_numbers("count", min_group_size=min_group_size, min_subgroup_size=min_subgroup_size)


def named_labels(pos_label: Any, favorable_label: Any, score_is_for: Any) -> dict[str, Any]:
    """Return the labels that the caller states, by the name of their parameter."""
    return {
        "pos_label": pos_label,
        "favorable_label": favorable_label,
        "score_is_for": score_is_for,
    }


def read_value(value: Any, *, has_labels: bool) -> tuple[float, float] | None:
    """Return the worth of a right acceptance and the cost of a wrong one; None if not given."""
    if value is None:
        return None
    is_list = isinstance(value, tuple | list) or (isinstance(value, np.ndarray) and value.ndim == 1)
    pair = list(value) if is_list and len(value) == 2 else []
    numbers = [plain(one) for one in pair]
    if not numbers or not all(map(_is_amount, numbers)):
        raise InputError(
            f"value={shown(value)} must be two numbers from 0 to {MOST_VALUE:g}: the worth of a "
            "right acceptance and the cost of a wrong one, such as value=(100, 500). An acceptance "
            "is a decision for the favourable label.",
            parameter="value",
        )
    if not has_labels:
        raise InputError(
            "value needs true labels: without them, nobody knows which acceptances are right. Pass "
            "y_true.",
            parameter="value",
        )
    return float(numbers[0]), float(numbers[1])


def _is_amount(one: Any) -> bool:
    is_number = isinstance(one, int | float) and not isinstance(one, bool)
    return is_number and 0 <= one <= MOST_VALUE


def check_texts(texts: Mapping[str, Any], labels: Mapping[str, Any], label_names: Any) -> None:
    """Refuse texts that are no text, labels that are no single values, and names in no mapping.

    `texts` are parameters by name; all but `rows` may be None. `labels` are pos_label,
    favorable_label and score_is_for by name.
    """
    for name, value in texts.items():
        if not isinstance(value, str) and (value is not None or name == "rows"):
            raise InputTypeError(f"{name}={shown(value)} must be text.", parameter=name)
    for name, label in labels.items():
        check_label_parameter(label, name)
    if label_names is not None and not isinstance(label_names, Mapping):
        raise InputTypeError(
            f"label_names={shown(label_names)} must map labels to names, such as "
            "{0: 'denied', 1: 'granted'}.",
            parameter="label_names",
        )


def read_request(
    request: Any, defaults: Request | None, labels: Mapping[str, Any], *, has_labels: bool
) -> Request:
    """Return the checked request.

    `labels` are pos_label, favorable_label and score_is_for; they replace those of the request if
    not None.
    Entries that a mapping leaves out come from `defaults`, the request of the explained update. So
    do labels and threshold that a `Request` leaves out.
    """
    defaults = Request() if defaults is None else defaults
    request = _with_constraints(_as_request(defaults if request is None else request, defaults))
    if request.alternatives in (None, defaults.alternatives):  # those of one target only
        known = defaults.alternatives if is_same_target(request, defaults) else None
        request = replace(request, alternatives=known)
    missing = [name for name in FACTS if getattr(request, name) is None]
    request = replace(request, **{name: getattr(defaults, name) for name in missing})
    check_choice(request.direction, "direction", DIRECTIONS)
    request = from_plain(Request, to_plain(request))  # refuses entries of a wrong type
    constraints = _checked_constraints(request)
    for name in SHARES:
        value = getattr(request, name)
        if value is not None and not 0 <= value <= 1:
            raise InputError(f"request: {name}={value!r} is a share and lies between 0 and 1.")
    for name in NON_NEGATIVE:
        value = getattr(request, name)
        if value is not None and value < 0:
            raise InputError(f"request: {name}={value!r} must be a number ≥ 0, or None.")
    if request.score_edit is not None:
        check_choice(request.score_edit, "score_edit", SCORE_EDITS)
    if request.points is not None:
        check_choice(request.points, "points", ("integers",))
    needing = [constraint for constraint in constraints if constraint.needs_labels]
    if needing and not has_labels:
        raise missing_labels(needing[0])
    return replace(request, **{name: label for name, label in labels.items() if label is not None})


def _as_request(request: Any, defaults: Request) -> Request:
    if isinstance(request, Request):
        return request
    if not isinstance(request, Mapping):
        raise InputError(
            "request must be a commod.Request or a mapping, such as {'constraints': 'demographic "
            f"parity >= 0.8', 'direction': 'gains_only'}}; got {type(request).__name__}.",
            parameter="request",
        )
    known = [f.name for f in fields(Request)]
    for name, value in request.items():
        if name not in known:
            raise InputError(
                f"request has an unknown entry {shown(name)}; it may hold {', '.join(known)}."
                f"{did_you_mean(name, known)}",
                parameter="request",
            )
        if value is not None and plain(value) is None:
            raise InputError(f"request: {name} is NaN; pass a number, or leave it out.")
    stated = {name: plain(value) for name, value in request.items()}
    if stated.get("constraints") not in (None, defaults.constraints):
        stated = {"further": (), **stated}  # those of the defaults belong to their constraint
    return replace(defaults, **stated)


def _with_constraints(request: Request) -> Request:
    """Return a request whose constraints may be objects, or texts with bounds, with plain ones.

    The first of them becomes `constraints` and `target`, the others become `further`. Their bounds
    replace those of the request.
    """
    if isinstance(request.constraints, str) and request.constraints in CONSTRAINTS:
        return request
    first, *others = read_constraints(request.constraints).parts
    further = tuple(FurtherConstraint(one.constraint.name, one.bound) for one in others)
    return replace(
        request,
        constraints=first.constraint.name,
        target=request.target if first.bound is None else first.bound,
        further=further or request.further,
    )


def _checked_constraints(request: Request) -> list[Constraint]:
    """Return all constraints of a request; refuse a bound that none of their values can reach."""
    stated = stated_constraints(request)
    for one in stated:
        if one.bound is not None:
            read_target(one.constraint, one.bound)
    return [one.constraint for one in stated]


def is_same_target(one: Request, other: Request) -> bool:
    """Return whether two requests state the same constraints with the same bounds."""
    names = ("constraints", "target", "further")
    return all(getattr(one, name) == getattr(other, name) for name in names)
