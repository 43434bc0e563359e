"""Read the parameter `constraints` of updates that have no target: COMMOD and rivals."""

from __future__ import annotations

from typing import Any

from commod._text import shown
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint, get_constraint


def unbounded_constraints(constraints: Any, method: str, parameter: str) -> tuple[Constraint, ...]:
    """Return the constraints that are asked for; `A & B` are two.

    A bound is refused: `method` has no target, and `parameter` says how far it goes.
    """
    parts = getattr(constraints, "parts", (constraints,))
    for part in parts:
        bound = getattr(part, "bound", None)
        if bound is not None:
            raise InputError(
                f"constraints={shown(part)} has the bound {bound:g}, but {method} has no target: "
                f"{parameter} says how far it goes. Leave the bound out, or use "
                "ControlledDebiaser, which searches for the bound.",
                parameter="constraints",
            )
    return tuple(get_constraint(getattr(part, "constraint", part)) for part in parts)
