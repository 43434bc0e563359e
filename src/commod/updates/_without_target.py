"""Refuse bounds in the constraints of updates that have no target: COMMOD and rivals."""

from __future__ import annotations

from commod.exceptions import InputError
from commod.metrics._requirements import Requirements


def check_no_bounds(asked: Requirements, method: str, parameter: str) -> None:
    """Refuse a bound: `method` has no target, and its `parameter` says how far it goes."""
    for part in asked.parts:
        if part.bound is not None:
            raise InputError(
                f"constraints states the bound of {part.text!r}, but {method} has no target: "
                f"{parameter} says how far it goes. Leave the bound out, or use "
                "ControlledDebiaser, which searches for the bound.",
                parameter="constraints",
            )
