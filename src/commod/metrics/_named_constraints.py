"""The constraints that have a name of their own, one class each, and how constraints are read.

Users write constraints as objects, texts or JSON, with or without `target`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from commod._text import shown
from commod.exceptions import InputError, InputTypeError
from commod.metrics._constraint import (
    CONSTRAINTS,
    FORMS,
    ODDS_RATES,
    Comparing,
    Constraint,
    get_constraint,
    read_text,
)
from commod.metrics._language import (
    AllOf,
    Bound,
    FairnessConstraint,
    Maximum,
    Minimum,
    Parity,
    check_compatible,
    state_bound,
)


class DemographicParity(Parity):
    """Every group is selected about equally often.

    Parameters
    ----------
    ratio : float, default=None
        Floor on the P-rule: the lowest selection rate divided by the highest. Without a bound, the
        ratio is compared.
    difference : float, default=None
        Ceiling on the highest selection rate minus the lowest. ``...`` leaves it to `target`.

    Examples
    --------
    >>> print(DemographicParity(ratio=0.8))
    The lowest group's selection rate is at least 0.8 times the highest's.
    >>> print(DemographicParity(difference=0.05))
    The groups' selection rates differ by at most 0.05.
    """

    DEFAULT: ClassVar[Comparing] = "ratio"

    def __init__(self, *, ratio: Bound = None, difference: Bound = None) -> None:
        super().__init__("selection rate", difference=difference, ratio=ratio)


class ErrorRatio(Parity):
    """Every group has about as many false positives for each false negative.

    OxonFair calls it treatment equality. The denominator moves with the decisions.

    Parameters
    ----------
    ratio : float, default=None
        Floor on the lowest error ratio divided by the highest. Without a bound, the ratio is
        compared.
    difference : float, default=None
        Ceiling on the highest error ratio minus the lowest. It may exceed 1.

    Examples
    --------
    >>> print(ErrorRatio(difference=0.5))
    The groups' error ratios differ by at most 0.5.
    """

    DEFAULT: ClassVar[Comparing] = "ratio"

    def __init__(self, *, ratio: Bound = None, difference: Bound = None) -> None:
        super().__init__("error ratio", difference=difference, ratio=ratio)


class TruePositiveRateParity(Parity):
    """Those whose true label is positive are selected about equally often in every group.

    Parameters
    ----------
    difference : float, default=None
        Ceiling on the highest true positive rate minus the lowest.
    ratio : float, default=None
        Floor on the lowest true positive rate divided by the highest.

    Examples
    --------
    >>> print(TruePositiveRateParity(0.1))
    The groups' true positive rates differ by at most 0.1.
    """

    def __init__(self, difference: Bound = None, *, ratio: Bound = None) -> None:
        super().__init__("true positive rate", difference=difference, ratio=ratio)


class FalsePositiveRateParity(Parity):
    """Those whose true label is negative are selected about equally often in every group.

    Parameters
    ----------
    difference : float, default=None
        Ceiling on the highest false positive rate minus the lowest.
    ratio : float, default=None
        Floor on the lowest false positive rate divided by the highest.

    Examples
    --------
    >>> print(FalsePositiveRateParity(ratio=0.8))
    The lowest group's false positive rate is at least 0.8 times the highest's.
    """

    def __init__(self, difference: Bound = None, *, ratio: Bound = None) -> None:
        super().__init__("false positive rate", difference=difference, ratio=ratio)


class AccuracyParity(Parity):
    """Decisions are right about equally often in every group.

    Parameters
    ----------
    difference : float, default=None
        Ceiling on the highest accuracy minus the lowest.
    ratio : float, default=None
        Floor on the lowest accuracy divided by the highest.

    Examples
    --------
    >>> print(AccuracyParity(0.03))
    The groups' accuracies differ by at most 0.03.
    """

    def __init__(self, difference: Bound = None, *, ratio: Bound = None) -> None:
        super().__init__("accuracy", difference=difference, ratio=ratio)


class PredictiveParity(Parity):
    """Those who are selected have the positive label about equally often in every group.

    The denominator of the precision, those who are selected, moves with the decisions.

    Parameters
    ----------
    difference : float, default=None
        Ceiling on the highest precision minus the lowest.
    ratio : float, default=None
        Floor on the lowest precision divided by the highest.

    Examples
    --------
    >>> print(PredictiveParity(0.05))
    The groups' precisions differ by at most 0.05.
    """

    def __init__(self, difference: Bound = None, *, ratio: Bound = None) -> None:
        super().__init__("precision", difference=difference, ratio=ratio)


class EqualizedOdds(FairnessConstraint):
    """Groups have about the same true and false positive rates.

    Parameters
    ----------
    sum : float, default=None
        Ceiling on the gap of true positive rates plus that of false positive rates: disparate
        mistreatment. Without a bound, the sum is compared.
    largest : float, default=None
        Ceiling on the larger of the two gaps: Fairlearn's reading.

    Examples
    --------
    >>> print(EqualizedOdds(0.1))
    The gap of true positive rates plus the gap of false positive rates is at most 0.1.
    >>> print(EqualizedOdds(largest=0.1))
    The gap of true positive rates and the gap of false positive rates are each at most 0.1.
    """

    ARGUMENTS: ClassVar[Mapping[Comparing, str]] = {"difference": "sum", "largest": "largest"}
    DEFAULT: ClassVar[Comparing] = "difference"

    def __init__(self, sum: Bound = None, *, largest: Bound = None) -> None:
        state_bound(self, ODDS_RATES, (sum, largest))


class MinimumRate(Minimum):
    """Every group's selection rate is at least the bound.

    Parameters
    ----------
    bound : float, default=None

    Examples
    --------
    >>> print(MinimumRate(0.3))
    Every group's selection rate is at least 0.3.
    """

    def __init__(self, bound: Bound = None) -> None:
        super().__init__("selection rate", bound)


class MinimumTruePositiveRate(Minimum):
    """Every group's true positive rate is at least the bound.

    Parameters
    ----------
    bound : float, default=None

    Examples
    --------
    >>> print(MinimumTruePositiveRate(0.6))
    Every group's true positive rate is at least 0.6.
    """

    def __init__(self, bound: Bound = None) -> None:
        super().__init__("true positive rate", bound)


# ---------------------------------------------------------------------------------------------
# Reading

_OF_EACH_CLASS: tuple[FairnessConstraint, ...] = (
    DemographicParity(),
    EqualizedOdds(),
    TruePositiveRateParity(),
    FalsePositiveRateParity(),
    MinimumRate(),
    MinimumTruePositiveRate(),
    AccuracyParity(),
    PredictiveParity(),
    ErrorRatio(),
)


_CLASSES = {
    (one.constraint.measures, one.constraint.comparison == "floor"): type(one)
    for one in _OF_EACH_CLASS
}


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
    form, within = FORMS.get(constraint.name_alone), constraint.within
    known = form.conditional(within) if form and within else form
    if known != constraint:
        return checked  # a constraint from outside the library
    general = {"floor": Minimum, "ceiling": Maximum}.get(constraint.comparison, Parity)
    key = constraint.measures, constraint.comparison == "floor"
    made = object.__new__(general if general is Maximum else _CLASSES.get(key, general))
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
    for constraint, bound in read_text(text, parameter):
        try:
            yield as_object(constraint, bound)
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


def read_constraints(constraints: Any, target: Any = None) -> AllOf:
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
        return AllOf(parts)
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
    return AllOf(parts)


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
