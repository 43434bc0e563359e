"""Read the constraints and targets that the functions of this package take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from commod._text import shown
from commod.exceptions import InputError
from commod.metrics._constraint import CONSTRAINTS, Constraint, get_constraint
from commod.metrics._requirements import Requirements, read_constraints


def read_requirements(constraints: Any, target: Any) -> tuple[Requirements, tuple[Any, ...]]:
    """Return the constraints and the bound of each, from the objects or from `target`."""
    requirements = read_constraints(constraints, target)
    bounds = tuple(target if bound is None else bound for bound in requirements.bounds)
    for part, bound in zip(requirements.parts, bounds, strict=True):
        if bound is None:
            raise InputError(
                f"target=None must be a number, because {part.constraint.name} has no bound. State "
                f"it here, or in the text: '{part.constraint.name} {part.constraint.sign} 0.5'.",
                parameter="target",
            )
    return requirements, bounds


def simple_requirement(constraints: Any, target: Any, purpose: str) -> tuple[Constraint, Any]:
    """Return the one constraint and its bound; it must compare rates of all people."""
    requirements, bounds = read_requirements(constraints, target)
    return _only_simple(requirements, constraints, purpose), bounds[0]


def simple_constraint(constraints: Any, purpose: str) -> Constraint:
    """Return the one constraint; it must compare rates of all people by ratio or difference.

    `purpose` says what is computed.
    """
    if isinstance(constraints, str) and constraints in CONSTRAINTS:
        return CONSTRAINTS[constraints]
    if isinstance(constraints, Constraint) and constraints.is_simple:
        return constraints
    if isinstance(constraints, str | Constraint):
        constraints = get_constraint(constraints)
    return _only_simple(read_constraints(constraints), constraints, purpose)


def _only_simple(requirements: Requirements, constraints: Any, purpose: str) -> Constraint:
    return check_simple(
        requirements.constraints, purpose, getattr(constraints, "name", constraints)
    )


def check_simple(constraints: Sequence[Constraint], purpose: str, name: Any = None) -> Constraint:
    """Return the only constraint; refuse several, and others than of rates of all people."""
    (first, *others) = constraints
    if others or not first.is_simple:
        found = "several constraints" if others else shown(first.name if name is None else name)
        raise InputError(
            f"{purpose} is known for one constraint that compares selection rates, true or false "
            f"positive rates of all people by ratio or difference; got {found}. "
            "bounds.minimal_changes takes every constraint and combination.",
            parameter="constraints",
        )
    return first
