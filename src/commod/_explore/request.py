"""Read and show what an update is asked for: target, caps, direction, constraint, locks."""

from __future__ import annotations

from typing import Any

from commod._explore.draft import Draft
from commod._text import shown
from commod.exceptions import InputError
from commod.metrics._constraint import CONSTRAINTS

DIRECTIONS = ("any", "gains_only", "losses_only")
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
        "constraints": constraints if is_name else None,
        "choices": list(CONSTRAINTS),
        "locked": draft.locked,
        "columns": [*update._columns_seen, *unread],
    }


def changed_parameters(draft: Draft, request: Any) -> dict[str, Any]:
    """Return the parameters of a draft with those that the page changes; values are checked."""
    if not isinstance(request, dict):
        raise InputError("request must be an object with target, direction and so on.")
    known = {*NUMBERS, "direction", "constraints", "locked"}
    unknown = [name for name in request if name not in known]
    if unknown:
        raise InputError(f"request has {shown(unknown[0])}; expected {', '.join(sorted(known))}.")
    params = {**draft.base.update.fitted_params(), "locked_features": tuple(draft.locked)}
    for name in NUMBERS:
        if name in request:
            params[name] = _number(request[name], name)
    if "direction" in request:
        if request["direction"] not in DIRECTIONS:
            raise InputError(f"direction={shown(request['direction'])} is not known.")
        params["direction"] = request["direction"]
    if request.get("constraints") is not None:
        if request["constraints"] not in CONSTRAINTS:
            raise InputError(f"constraints={shown(request['constraints'])} is not known.")
        params["constraints"] = request["constraints"]
    if "locked" in request:
        params["locked_features"] = _columns(request["locked"])
    return params


def _number(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{name}={shown(value)} must be a number, or empty.")
    return float(value)


def _columns(names: Any) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError("locked must be a list of columns.")
    return tuple(dict.fromkeys(names))
