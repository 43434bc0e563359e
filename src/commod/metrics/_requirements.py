"""Read constraints from what users write: objects, texts, JSON, with or without `target`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from commod._text import shown
from commod.exceptions import InputError, InputTypeError
from commod.metrics import _named_constraints as named
from commod.metrics._constraint import CONSTRAINTS, Constraint, constraint_of, get_constraint
from commod.metrics._constraint_text import FORMS, read_text
from commod.metrics._language import (
    AllOf,
    FairnessConstraint,
    Maximum,
    Minimum,
    Parity,
    check_compatible,
)

_OF_EACH_CLASS: tuple[FairnessConstraint, ...] = (
    named.DemographicParity(),
    named.EqualizedOdds(),
    named.TruePositiveRateParity(),
    named.FalsePositiveRateParity(),
    named.MinimumRate(),
    named.MinimumTruePositiveRate(),
    named.AccuracyParity(),
    named.PredictiveParity(),
    named.ErrorRatio(),
)


def _key(constraint: Constraint) -> tuple[tuple[str, ...], bool]:
    """Return the measures, and whether each group is bounded by itself."""
    names = tuple(measure.name for measure in constraint.measures)
    return names, constraint.comparison == "floor"


_CLASSES = {_key(one.constraint): type(one) for one in _OF_EACH_CLASS}


def as_object(constraint: Constraint, bound: float | None = None) -> FairnessConstraint:
    """Return the object of a constraint: of the class with the most special name.

    Examples
    --------
    >>> as_object(get_constraint("minimum_true_positive_rate"), 0.6)
    MinimumTruePositiveRate(0.6)
    >>> as_object(get_constraint("f1_score_parity within 'unit'"))
    Parity('F1 score').within('unit')
    """
    checked = FairnessConstraint(constraint, bound)
    within = constraint.within
    name = constraint.name.removesuffix(f" {within.text}") if within else constraint.name
    if name not in FORMS or constraint_of(FORMS[name], within) != constraint:
        return checked  # a constraint from outside the library
    general = {"floor": Minimum, "ceiling": Maximum}.get(constraint.comparison, Parity)
    is_ceiling = constraint.comparison == "ceiling"
    kind = general if is_ceiling else _CLASSES.get(_key(constraint), general)
    made = object.__new__(kind)
    vars(made).update(vars(checked))
    return made


def parse_constraint(text: str) -> FairnessConstraint | AllOf:
    """Return the constraint that a text states, or several that "and" joins.

    A text is the name of a constraint, a sign and a bound. A condition may follow: ``within``, the
    column, ``every`` (the default) or ``average``, and ``min_rows=30``. Write the name of a column
    in quotes if it has spaces. Capitals and underscores do not matter.

    Parameters
    ----------
    text : str

    Returns
    -------
    FairnessConstraint or AllOf
        Its property `text` is a text that means the same.

    Examples
    --------
    >>> parse_constraint("demographic parity >= 0.8 within department")
    DemographicParity(ratio=0.8).within('department')
    >>> parse_constraint("Equalized Odds ≤ 10% and minimum rate at least 0.3")
    EqualizedOdds(sum=0.1) & MinimumRate(0.3)
    >>> parse_constraint("demographic parity <= 0.1")
    Traceback (most recent call last):
    commod.exceptions.InputError: text='demographic parity <= 0.1' has the wrong sign: the bound on
    the P-rule is a floor. Write 'demographic parity >= 0.1' or 'demographic parity difference <=
    0.1'.
    """
    if not isinstance(text, str):
        raise InputTypeError(
            f"text={shown(text)} must be text, such as 'demographic parity >= 0.8'.",
            parameter="text",
        )
    parts = tuple(_from_text(text, "text"))
    check_compatible(parts, "text")
    return parts[0] if len(parts) == 1 else AllOf(parts)


def _from_text(text: str, parameter: str) -> Iterator[FairnessConstraint]:
    if text in CONSTRAINTS:
        yield as_object(CONSTRAINTS[text])
        return
    for stated in read_text(text, parameter):
        constraint = constraint_of(stated.form, stated.within)
        try:
            yield as_object(constraint, stated.bound)
        except InputError as error:  # the bound
            message = f"{parameter}={shown(text)}: {error}"
            raise InputError(message, parameter=parameter) from error


def constraint_from_json(data: Any) -> FairnessConstraint | AllOf:
    """Return the constraint that `to_json` wrote, or several from a list.

    Parameters
    ----------
    data : dict or list of dict
        With the keys name, bound and within (column, min_rows and over).

    Examples
    --------
    >>> from commod.constraints import MinimumRate
    >>> constraint_from_json(MinimumRate(0.3).within("unit").to_json())
    MinimumRate(0.3).within('unit')
    """
    if isinstance(data, list):
        return AllOf([_from_dict(part) for part in data])
    return _from_dict(data)


def _from_dict(data: Any) -> FairnessConstraint:
    keys = ("name", "bound", "within")
    if not isinstance(data, Mapping) or "name" not in data or not set(data) <= set(keys):
        raise InputError(
            f"data={shown(data)} is no constraint: expected an object with the keys "
            f"{', '.join(keys)}.",
            parameter="data",
        )
    made = as_object(get_constraint(data["name"]))
    made = made.with_bound(data.get("bound"))
    within = data.get("within")
    if within is None:
        return made
    known = ("column", "min_rows", "over")
    if not isinstance(within, Mapping) or "column" not in within or not set(within) <= set(known):
        raise InputError(
            f"within={shown(within)} is no condition: expected an object with the keys "
            f"{', '.join(known)}.",
            parameter="data",
        )
    return made.within(**within)


@dataclass(frozen=True)
class Requirements:
    """Constraints as `constraints` and `target` state them: one part per constraint.

    A part without a bound gets it from `target`, or has none.
    """

    parts: tuple[FairnessConstraint, ...]

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Return what each part compares."""
        return tuple(part.constraint for part in self.parts)

    @property
    def bounds(self) -> tuple[float | None, ...]:
        """Return the bound of each part; None where none is stated."""
        return tuple(part.bound for part in self.parts)

    @property
    def needs_labels(self) -> bool:
        """Return whether a part depends on true labels."""
        return any(part.needs_labels for part in self.parts)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that people are compared within, each once."""
        conditions = (part.constraint.within for part in self.parts)
        return tuple(dict.fromkeys(within.column for within in conditions if within is not None))


def read_constraints(constraints: Any, target: Any = None) -> Requirements:
    """Return the constraints that a user states as objects, texts or lists of these.

    A bound beside `target` is refused, and so is `target` for several constraints.

    Examples
    --------
    >>> read_constraints("demographic_parity", target=0.8).parts
    (DemographicParity(),)
    >>> read_constraints("demographic parity >= 0.8 and minimum rate >= 0.3").bounds
    (0.8, 0.3)
    """
    parts = tuple(_parts_of(constraints))
    if not parts:
        raise InputError(
            "constraints is empty; state at least one, such as 'demographic_parity'.",
            parameter="constraints",
        )
    check_compatible(parts, "constraints")
    if target is None:
        return Requirements(parts)
    bounded = next((part for part in parts if part.bound is not None), None)
    if bounded is not None:
        raise InputError(
            f"constraints states the bound of {bounded.text!r}, and target={shown(target)} states "
            "another one. Leave out target, or the bound.",
            parameter="target",
        )
    if len(parts) > 1:
        names = " and ".join(part.constraint.name for part in parts)
        raise InputError(
            f"target={shown(target)} is the bound of one constraint, but constraints has "
            f"{len(parts)}: {names}. State each bound with its constraint, as in 'demographic "
            "parity >= 0.8 and minimum rate >= 0.3'.",
            parameter="target",
        )
    return Requirements(parts)


def _parts_of(constraints: Any) -> Iterator[FairnessConstraint]:
    if isinstance(constraints, FairnessConstraint | AllOf):
        yield from constraints.parts
    elif isinstance(constraints, str):
        yield from _from_text(constraints, "constraints")
    elif isinstance(constraints, list | tuple) and not hasattr(constraints, "_fields"):
        for part in constraints:
            yield from _parts_of(part)
    else:
        yield as_object(get_constraint(constraints))
