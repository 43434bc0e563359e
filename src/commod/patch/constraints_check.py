"""Refuse constraints of a patch that cannot be read, and figures that they cannot have."""

from __future__ import annotations

from commod._record import FurtherConstraint
from commod.bounds._counts import read_target
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint, get_constraint
from commod.patch.content import Content, FurtherReached

ROUNDING = 1e-9  # of a metric that is computed from sums of weights


def stated_in(content: Content) -> list[tuple[Constraint, float | None]]:
    """Return all constraints of a patch with their bounds, the first one first."""
    asked = content.asked
    first = FurtherConstraint(asked.constraints, asked.target)
    return [(get_constraint(one.constraints), one.bound) for one in (first, *asked.further)]


def reached_in(content: Content) -> list[FurtherReached]:
    """Return the metric of each constraint before and after, in the order of `stated_in`."""
    reached = content.reached
    return [FurtherReached(reached.fairness_before, reached.fairness_after), *reached.further]


def check_constraints(content: Content) -> None:
    """Refuse names that are no constraints, bounds out of range, and missing figures."""
    stated = stated_in(content)
    for constraint, bound in stated:
        if bound is not None:
            read_target(constraint, bound)
    names = [constraint.name for constraint, _ in stated]
    if len(set(names)) < len(names):
        raise InputError("The patch states the same constraint twice.")
    n_asked, n_reached = len(content.asked.further), len(content.reached.further)
    if n_asked != n_reached:
        raise InputError(
            f"The patch states {n_asked} further constraints, but has figures of {n_reached}."
        )
    for (constraint, _), figures in zip(stated[1:], content.reached.further, strict=True):
        for value in (figures.before, figures.after):
            if value is not None and not -ROUNDING <= value <= constraint.largest + ROUNDING:
                raise InputError(
                    f"The patch has the {constraint.metric} {value!r}; it must lie between 0 and "
                    f"{constraint.largest:g}."
                )
