"""Check that a rival knows the constraint, the groups and the weights that it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commod.exceptions import InputError
from commod.metrics._constraint import Constraint, get_constraint
from commod.metrics._requirements import Requirements
from commod.rivals._rows import RivalFitRows

if TYPE_CHECKING:
    from commod.rivals.base import Rival

PARITY = "demographic_parity"
ODDS = "equalized_odds"
TRUE_POSITIVES = "true_positive_rate_parity"
FALSE_POSITIVES = "false_positive_rate_parity"
ALL_CONSTRAINTS = (PARITY, ODDS, TRUE_POSITIVES, FALSE_POSITIVES)
OTHERS = "Use ControlledDebiaser for any constraint"


def check_constraint(asked: Requirements, method: Rival) -> None:
    """Raise an error where a method would compute the constraint as if it were another one."""
    name = type(method).__name__
    names = " and ".join(constraint.name for constraint in asked.constraints)
    if len(asked.parts) > 1 or not asked.constraints[0].is_simple:
        what = "one constraint" if len(asked.parts) > 1 else "rates of all people"
        raise InputError(
            f"{name} compares {what} by ratio or difference; got {names!r}. {OTHERS}, or COMMOD "
            "for parity within a column and for several parities at once.",
            parameter="constraints",
        )
    compared = _compared_labels(asked.constraints[0])
    if compared not in [
        _compared_labels(get_constraint(known)) for known in method.known_constraints
    ]:
        known = " and ".join(repr(known) for known in method.known_constraints)
        raise InputError(f"{name} knows {known}; got {names!r}. {OTHERS}.", parameter="constraints")


def _compared_labels(constraint: Constraint) -> tuple[bool | None, ...]:
    """Return the true label that each compared rate is restricted to; None means all rows."""
    return tuple(row.label for row in constraint.rate_rows)


def check_fit_rows(rows: RivalFitRows, method: Rival) -> None:
    """Raise an error for groups or weights that a method does not know."""
    name = type(method).__name__
    if not method.several_groups and rows.n_groups > 2:
        groups = ", ".join(repr(label) for label in rows.group_labels[:6])
        raise InputError(
            f"{name} compares two groups; got {rows.n_groups}: {groups}. Pass a column with two "
            "values, such as one group and all others, or use a method for several groups, such "
            "as ControlledDebiaser or LPP.",
            parameter="sensitive_features",
        )
    if not method.sample_weights and (rows.weight != rows.weight[0]).any():
        raise InputError(
            f"{name} does not know sample weights. Leave out sample_weight, or use a method that "
            "knows them, such as ControlledDebiaser.",
            parameter="sample_weight",
        )
