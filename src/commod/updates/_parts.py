"""Read the parameter `constraints` of updates that have no target: COMMOD and rivals."""

from __future__ import annotations

from typing import Any

from commod.exceptions import InputError
from commod.metrics._constraint import Constraint
from commod.metrics._requirements import read_constraints


def unbounded_constraints(constraints: Any, method: str, parameter: str) -> tuple[Constraint, ...]:
    """Return the constraints that are asked for; `A & B` are two.

    A bound is refused: `method` has no target, and `parameter` says how far it goes.
    """
    asked = read_constraints(constraints)
    for part in asked.parts:
        if part.bound is not None:
            raise InputError(
                f"constraints states the bound of {part.text!r}, but {method} has no target: "
                f"{parameter} says how far it goes. Leave the bound out, or use "
                "ControlledDebiaser, which searches for the bound.",
                parameter="constraints",
            )
    return asked.constraints
