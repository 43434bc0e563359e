"""Check that a rival knows the constraint, the groups and the weights that it is given."""

from __future__ import annotations

from collections.abc import Sequence

from commod.exceptions import InputError
from commod.metrics._constraint import (
    ALL_CONSTRAINTS,
    FALSE_POSITIVES,
    ODDS,
    PARITY,
    TRUE_POSITIVES,
    Constraint,
    get_constraint,
)
from commod.metrics._requirements import Requirements
from commod.rivals._rows import RivalFitRows

__all__ = [
    "ALL_CONSTRAINTS",
    "FALSE_POSITIVES",
    "ODDS",
    "PARITY",
    "TRUE_POSITIVES",
    "check_constraint",
    "check_groups",
    "check_weights",
]

OTHERS = "Use ControlledDebiaser for any constraint"


def check_constraint(asked: Requirements, method: str, known: Sequence[str]) -> None:
    """Raise an error where a method would compute the constraint as if it were another one.

    `known` are the names of the constraints that the method knows, by ratio or difference.
    """
    names = " and ".join(constraint.name for constraint in asked.constraints)
    if len(asked.parts) > 1 or not asked.constraints[0].is_simple:
        what = "one constraint" if len(asked.parts) > 1 else "rates of all people"
        raise InputError(
            f"{method} compares {what} by ratio or difference; got {names!r}. {OTHERS}, or COMMOD "
            "for parity within a column and for several parities at once.",
            parameter="constraints",
        )
    compared = _compared_labels(asked.constraints[0])
    if compared not in [_compared_labels(get_constraint(name)) for name in known]:
        knows = " and ".join(repr(name) for name in known)
        raise InputError(
            f"{method} knows {knows}; got {names!r}. {OTHERS}.", parameter="constraints"
        )


def _compared_labels(constraint: Constraint) -> tuple[bool | None, ...]:
    """Return the true label that each compared rate is restricted to; None means all rows."""
    return tuple(row.label for row in constraint.rate_rows)


def check_groups(rows: RivalFitRows, method: str) -> None:
    """Raise an error for more than two groups."""
    if rows.n_groups <= 2:
        return
    groups = ", ".join(repr(label) for label in rows.group_labels[:6])
    raise InputError(
        f"{method} compares two groups; got {rows.n_groups}: {groups}. Pass a column with two "
        "values, such as one group and all others, or use a method for several groups, such as "
        "ControlledDebiaser or LPP.",
        parameter="sensitive_features",
    )


def check_weights(rows: RivalFitRows, method: str) -> None:
    """Raise an error for weights that differ."""
    if (rows.weight != rows.weight[0]).any():
        raise InputError(
            f"{method} does not know sample weights. Leave out sample_weight, or use a method that "
            "knows them, such as ControlledDebiaser.",
            parameter="sample_weight",
        )
