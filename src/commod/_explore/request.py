"""Read and show what an update is asked for: target, caps, direction, constraint, locks."""

from __future__ import annotations

from typing import Any

from commod._explore.draft import Draft
from commod._text import shown
from commod.exceptions import InputError
from commod.metrics._constraint import CONSTRAINTS

CHOICES = {
    "direction": ("any", "gains_only", "losses_only"),
    "points": ("free", "integers"),
    "constraints": tuple(CONSTRAINTS),
}
LARGEST = 1_000_000  # number of a request
NUMBERS = ("target", "max_changes", "max_accuracy_loss")


def request_view(draft: Draft) -> dict[str, Any]:
    """Return the request of a draft for the form of the page.

    `constraints` is None where the user stated an object or a text with bounds: the page keeps it.
    """
    update = draft.base.update
    given = update.fitted_params()
    constraints = given["constraints"]
    is_name = isinstance(constraints, str) and constraints in CONSTRAINTS
    numbers = {name: None if given[name] is None else float(given[name]) for name in NUMBERS}
    if given["target"] is None and not update._is_budget and is_name:
        numbers["target"] = float(update.target_)
    unread = [name for name in draft.locked if name not in update._columns_seen]
    return {
        **numbers,
        "direction": given["direction"],
        "points": given["points"],
        "max_lines": given["max_lines"],
        "constraints": constraints if is_name else None,
        "choices": list(CHOICES["constraints"]),
        "locked": draft.locked,
        "columns": [*update._columns_seen, *unread],
    }


def changed_parameters(draft: Draft, request: Any) -> dict[str, Any]:
    """Return the parameters of a draft with those that the page changes; values are checked."""
    if not isinstance(request, dict):
        raise InputError("request must be an object with target, direction and so on.")
    known = {*NUMBERS, *CHOICES, "max_lines", "locked"}
    unknown = [name for name in request if name not in known]
    if unknown:
        raise InputError(f"request has {shown(unknown[0])}; expected {', '.join(sorted(known))}.")
    params = {**draft.base.update.fitted_params(), "locked_features": tuple(draft.locked)}
    params |= {name: _number(request[name], name) for name in NUMBERS if name in request}
    params |= {name: _choice(request[name], name) for name in CHOICES if name in request}
    if request.get("constraints") is None:  # an object or a text with bounds stays as it is
        params["constraints"] = draft.base.update.fitted_params()["constraints"]
    if "max_lines" in request:
        params["max_lines"] = _whole_number(request["max_lines"], "max_lines")
    if "locked" in request:
        params["locked_features"] = _columns(request["locked"])
    return params


def _choice(value: Any, name: str) -> str | None:
    if value is None and name == "constraints":
        return None
    if value not in CHOICES[name]:
        raise InputError(f"{name}={shown(value)} is not known.")
    return str(value)


def _number(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{name}={shown(value)} must be a number, or empty.")
    if not abs(value) <= LARGEST:
        raise InputError(f"{name}={shown(value)} is too large; expected at most {LARGEST:,d}.")
    return float(value)


def _whole_number(value: Any, name: str) -> int | None:
    number = _number(value, name)
    if number is None:
        return None
    if not number.is_integer() or number < 1:
        raise InputError(f"{name}={shown(value)} must be a whole number from 1, or empty.")
    return int(number)


def _columns(names: Any) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError("locked must be a list of columns.")
    return tuple(dict.fromkeys(names))
