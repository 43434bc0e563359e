"""Read and change which constraints an update states: other targets, another one that moves."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from commod._record import FurtherConstraint
from commod.constraints import AllOf
from commod.exceptions import InputError
from commod.metrics._requirements import Requirements


def further_constraints(requirements: Requirements) -> tuple[FurtherConstraint, ...]:
    """Return all constraints but the first one, with their bounds, as records."""
    return tuple(
        FurtherConstraint(part.constraint.name, part.bound) for part in requirements.parts[1:]
    )


def set_target(update: Any, target: float) -> Any:
    """Return the update with another target of its first constraint.

    Where the constraint states a bound, the target replaces this bound.
    """
    first, *others = update._requirements.parts
    if update.target is not None or (first.bound is None and not others):
        return update.set_params(target=target)
    parts = (first.with_bound(target), *others)
    return update.set_params(constraints=parts[0] if len(parts) == 1 else AllOf(parts))


def set_moving(update: Any, moving: int) -> Any:
    """Return an update whose constraint number `moving` comes first, because it moves."""
    parts = list(update._requirements.parts)
    if isinstance(moving, bool) or not isinstance(moving, int) or not 0 <= moving < len(parts):
        numbers = "0" if len(parts) == 1 else f"0 to {len(parts) - 1}"
        raise InputError(
            f"moving={moving!r} is not the number of a constraint: pass {numbers}, in the order "
            "of constraints.",
            parameter="moving",
        )
    if moving == 0:
        return update
    parts.insert(0, parts.pop(moving))
    return clone(update).set_params(constraints=AllOf(parts))
