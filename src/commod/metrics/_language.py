"""State constraints as objects: what is compared between groups, the bound, and the condition."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from types import EllipsisType
from typing import Any, ClassVar, Self

from commod._data.groups import read_decisions
from commod._data.parameters import check_choice, check_numbers
from commod._text import did_you_mean, shown
from commod.exceptions import InputError, InputTypeError
from commod.metrics._constraint import Comparing, Constraint, find_form
from commod.metrics._fairness import value_on_rows
from commod.metrics._measures import MEASURES, Measure, Within


class Immutable:
    """Refuse every change of an attribute, and to be read as true or false; join with ``&``."""

    def __and__(self, other: FairnessConstraint | AllOf) -> AllOf:
        if not isinstance(other, FairnessConstraint | AllOf):
            return NotImplemented
        return AllOf([self, other])  # type: ignore[list-item]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{type(self).__name__} cannot be changed, as others may use it. Make a new one."
        )

    def __bool__(self) -> bool:
        # `A and B` would be B alone
        raise InputError(
            "A constraint is neither true nor false. Join two of them with A & B, not with 'and'; "
            "is_met says whether decisions keep one.",
            parameter="constraints",
        )

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)


Bound = float | EllipsisType | None
_COMPLEMENTS = {  # 1 minus the rate
    "false negative rate": "true positive rate",
    "true negative rate": "false positive rate",
}


class FairnessConstraint(Immutable):
    """A constraint with its bound: the base class of all others in `commod.constraints`.

    Two objects are equal if they compare the same numbers in the same way, with the same bound.

    Parameters
    ----------
    constraint : Constraint
        What is compared between groups, from `commod.metrics`.
    bound : float or None
        The floor or the ceiling. With None, `target` states it.

    Examples
    --------
    >>> from commod.constraints import DemographicParity
    >>> constraint = DemographicParity(ratio=0.8).within("department")
    >>> print(constraint)
    The lowest group's selection rate is at least 0.8 times the highest's, in every stratum of
    'department' with at least 50 rows per group.
    >>> constraint.text
    "demographic parity >= 0.8 within 'department'"
    >>> constraint.bound, constraint.higher_is_fairer, constraint.needs_labels
    (0.8, True, False)
    """

    # the parameter that states the bound of each comparison; "" for the only one
    ARGUMENTS: ClassVar[Mapping[Comparing, str]] = {}
    DEFAULT: ClassVar[Comparing]  # what is compared without a bound

    constraint: Constraint
    bound: float | None

    def __init__(self, constraint: Constraint, bound: Bound = None, *, parameter: str = "bound"):
        vars(self)["constraint"] = constraint
        vars(self)["bound"] = _checked_bound(bound, constraint, parameter)

    def _replaced(self, constraint: Constraint, bound: float | None) -> Self:
        made = object.__new__(type(self))
        vars(made).update(constraint=constraint, bound=bound)
        return made

    # -- a value like any other ----------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FairnessConstraint):
            return NotImplemented
        return (self.constraint, self.bound) == (other.constraint, other.bound)

    def __hash__(self) -> int:
        return hash((self.constraint, self.bound))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._arguments()}){_within_call(self.constraint.within)}"

    def _arguments(self) -> str:
        """Return the arguments that make this object again."""
        if not self.ARGUMENTS:
            return f"{self.constraint!r}, {self.bound!r}"
        comparison = self.constraint.comparison
        name = self.ARGUMENTS[comparison]
        is_general = type(self) in (Parity, Minimum, Maximum)
        arguments = [repr(self.constraint.measures[0].name)] if is_general else []
        if self.bound is not None:
            arguments.append(f"{name}={self.bound!r}" if name else repr(self.bound))
        elif comparison != self.DEFAULT:
            arguments.append(f"{name}=...")
        return ", ".join(arguments)

    def __str__(self) -> str:
        return self.constraint.demand("the target" if self.bound is None else _text(self.bound))

    # -- what it says --------------------------------------------------------------------------

    @property
    def parts(self) -> tuple[FairnessConstraint, ...]:
        """Return the constraint itself, as the only part."""
        return (self,)

    @property
    def needs_labels(self) -> bool:
        """Return whether the constraint depends on true labels."""
        return self.constraint.needs_labels

    @property
    def higher_is_fairer(self) -> bool:
        """Return whether the bound is a floor; otherwise it is a ceiling."""
        return self.constraint.higher_is_fairer

    @property
    def condition(self) -> Within | None:
        """Return the condition that `within` stated: its column, min_rows and over."""
        return self.constraint.within

    @property
    def text(self) -> str:
        """Return the text that `parse_constraint` reads, with the bound."""
        one = self.constraint
        bound = "" if self.bound is None else f" {one.typed_sign} {_text(self.bound)}"
        return f"{one.spoken}{bound}{f' {one.within.text}' if one.within else ''}"

    def to_json(self) -> dict[str, Any]:
        """Return plain values that `constraint_from_json` reads.

        Examples
        --------
        >>> from commod.constraints import MinimumRate
        >>> MinimumRate(0.3).to_json()
        {'name': 'minimum_rate', 'bound': 0.3, 'within': None}
        """
        within = self.constraint.within
        condition = None if within is None else within._asdict()
        return {"name": self.constraint.name_alone, "bound": self.bound, "within": condition}

    def within(self, column: str, *, min_rows: int = 50, over: str = "every") -> Self:
        """Return the constraint among people who have the same value in a column.

        Parameters
        ----------
        column : str
            Column of X; its values are the strata.
        min_rows : int, default=50
            A group is compared in a stratum where at least so many of its rows count: all rows, or
            those with the true label of the rate. Other groups and strata are left out.
        over : {"every", "average"}, default="every"
            Whether the constraint holds in every stratum, or for each group's average over the
            strata. The average has the same weights for all groups: the share of people.

        Examples
        --------
        >>> from commod.constraints import EqualizedOdds
        >>> EqualizedOdds(largest=0.1).within("department", over="average").text
        "equalized odds largest <= 0.1 within 'department' average"
        """
        if not isinstance(column, str) or not column:
            raise InputTypeError(
                f"column={shown(column)} must be the name of a column, such as 'department'.",
                parameter="column",
            )
        check_numbers("count", min_rows=min_rows)
        check_choice(over, "over", ("every", "average"))
        condition = Within(column, int(min_rows), "average" if over == "average" else "every")
        return self._replaced(self.constraint.conditional(condition), self.bound)

    def with_bound(self, bound: Bound) -> Self:
        """Return the same constraint with another bound; with None, `target` states it.

        Examples
        --------
        >>> from commod.constraints import MinimumRate
        >>> MinimumRate(0.3).with_bound(0.4)
        MinimumRate(0.4)
        """
        return self._replaced(self.constraint, _checked_bound(bound, self.constraint, "bound"))

    # -- what holds ----------------------------------------------------------------------------

    def value(
        self,
        y_true: Any,
        decisions: Any,
        *,
        sensitive_features: Any,
        pos_label: Any = 1,
        sample_weight: Any = None,
        control_features: Any = None,
    ) -> float:
        """Return the metric of the constraint on rows of data.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            True labels; ignored where the constraint needs none.
        decisions : array-like of shape (n_samples,)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        pos_label : label, default=1
            The label whose rates are counted.
        sample_weight : array-like of shape (n_samples,), default=None
        control_features : array-like of shape (n_samples,), frame or dict, default=None
            The column of the condition, alone or among others by its name.

        Returns
        -------
        float
            NaN where it is undefined: a group without anybody to count, one group only.

        Examples
        --------
        >>> from commod.constraints import DemographicParity
        >>> groups = ["a", "a", "b", "b"]
        >>> DemographicParity(ratio=0.8).value(None, [1, 0, 1, 1], sensitive_features=groups)
        0.5
        """
        people = (pos_label, sample_weight, control_features)
        return _values([self], y_true, decisions, sensitive_features, *people)[0]

    def is_met(self, y_true: Any, decisions: Any, **people: Any) -> bool:
        """Return whether the constraint holds on rows of data; the parameters are as in `value`.

        A value that is undefined does not meet the bound.

        Examples
        --------
        >>> from commod.constraints import MinimumRate
        >>> MinimumRate(0.5).is_met(None, [1, 0, 1, 1], sensitive_features=["a", "a", "b", "b"])
        True
        """
        if self.bound is None:
            raise InputError(
                f"{self!r} has no bound, so nothing says which values meet it. State the bound, or "
                "use value().",
                parameter="bound",
            )
        return bool(self.constraint.is_met(self.value(y_true, decisions, **people), self.bound))


def bounded(constraint: Constraint, bound: float | None = None) -> FairnessConstraint:
    """Return a constraint with any bound, such as a value that was measured."""
    made = object.__new__(FairnessConstraint)
    vars(made).update(constraint=constraint, bound=bound)
    return made


class AllOf(Immutable):
    """Several constraints that hold at once: ``A & B``.

    Parameters
    ----------
    parts : iterable of FairnessConstraint or AllOf
        Parts of combinations become parts of this one. No constraint may occur twice.

    Examples
    --------
    >>> from commod.constraints import DemographicParity, MinimumRate
    >>> both = DemographicParity(ratio=0.8) & MinimumRate(0.3)
    >>> both
    DemographicParity(ratio=0.8) & MinimumRate(0.3)
    >>> print(both)
    The lowest group's selection rate is at least 0.8 times the highest's. Every group's selection
    rate is at least 0.3.
    >>> both.value(None, [1, 0, 1, 1], sensitive_features=["a", "a", "b", "b"])
    (0.5, 0.5)
    """

    parts: tuple[FairnessConstraint, ...]

    def __init__(self, parts: Iterable[FairnessConstraint | AllOf]) -> None:
        listed = [parts] if isinstance(parts, FairnessConstraint | AllOf | str) else list(parts)
        for part in listed:
            if not isinstance(part, FairnessConstraint | AllOf):
                raise InputTypeError(
                    f"parts has {shown(part)}, which is no constraint. Pass objects of "
                    "commod.constraints, such as DemographicParity(ratio=0.8).",
                    parameter="parts",
                )
        flat = tuple(inner for part in listed for inner in part.parts)
        if not flat:
            raise InputError("parts is empty; pass at least one constraint.", parameter="parts")
        check_compatible(flat)
        vars(self)["parts"] = flat

    def __eq__(self, other: object) -> bool:
        return self.parts == other.parts if isinstance(other, AllOf) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.parts)

    def __iter__(self) -> Iterator[FairnessConstraint]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __repr__(self) -> str:
        if len(self.parts) == 1:
            return f"AllOf([{self.parts[0]!r}])"
        return " & ".join(map(repr, self.parts))

    def __str__(self) -> str:
        return " ".join(map(str, self.parts))

    @property
    def needs_labels(self) -> bool:
        """Return whether a part depends on true labels."""
        return any(part.needs_labels for part in self.parts)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Return what each part compares."""
        return tuple(part.constraint for part in self.parts)

    @property
    def bounds(self) -> tuple[float | None, ...]:
        """Return the bound of each part; None where none is stated."""
        return tuple(part.bound for part in self.parts)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that people are compared within, each once."""
        conditions = (part.constraint.within for part in self.parts)
        return tuple(dict.fromkeys(within.column for within in conditions if within is not None))

    @property
    def text(self) -> str:
        """Return the text that `parse_constraint` reads."""
        return " and ".join(part.text for part in self.parts)

    def to_json(self) -> list[dict[str, Any]]:
        """Return plain values that `constraint_from_json` reads."""
        return [part.to_json() for part in self.parts]

    def within(self, column: str, *, min_rows: int = 50, over: str = "every") -> AllOf:
        """Return all parts among people who have the same value in a column."""
        return AllOf([part.within(column, min_rows=min_rows, over=over) for part in self.parts])

    def value(self, y_true: Any, decisions: Any, **people: Any) -> tuple[float, ...]:
        """Return the metric of each part; the parameters are as in `FairnessConstraint.value`."""
        return tuple(_values(self.parts, y_true, decisions, **people))

    def is_met(self, y_true: Any, decisions: Any, **people: Any) -> bool:
        """Return whether every part holds on rows of data."""
        if any(part.bound is None for part in self.parts):
            raise InputError(f"{self!r} has a part without a bound.", parameter="bound")
        values = self.value(y_true, decisions, **people)
        pairs = zip(self.parts, values, strict=True)
        return all(bool(part.constraint.is_met(value, part.bound)) for part, value in pairs)


# ---------------------------------------------------------------------------------------------
# Any measure


class Parity(FairnessConstraint):
    """The groups' values of a measure are close, by difference or by ratio.

    Parameters
    ----------
    measure : str
        "selection rate", "true positive rate", "false positive rate", "false negative rate", "true
        negative rate", "accuracy", "precision", "negative predictive value", "F1 score", "error
        ratio" or "labels per selection".
    difference : float, default=None
        Ceiling on the highest value minus the lowest. Without a bound, the difference is compared.
    ratio : float, default=None
        Floor on the lowest value divided by the highest.

    Examples
    --------
    >>> print(Parity("F1 score", difference=0.05))
    The groups' F1 scores differ by at most 0.05.
    """

    ARGUMENTS: ClassVar[Mapping[Comparing, str]] = {"difference": "difference", "ratio": "ratio"}
    DEFAULT: ClassVar[Comparing] = "difference"

    def __init__(self, measure: str, *, difference: Bound = None, ratio: Bound = None) -> None:
        state_bound(self, (_known_measure(measure),), (difference, ratio))


class Minimum(FairnessConstraint):
    """Every group's value of a measure is at least the bound.

    Parameters
    ----------
    measure : str
        As in `Parity`.
    bound : float, default=None

    Examples
    --------
    >>> print(Minimum("accuracy", 0.7))
    Every group's accuracy is at least 0.7.
    """

    ARGUMENTS: ClassVar[Mapping[Comparing, str]] = {"floor": "", "ceiling": ""}
    DEFAULT: ClassVar[Comparing] = "floor"

    def __init__(self, measure: str, bound: Bound = None) -> None:
        super().__init__(find_form([_known_measure(measure)], self.DEFAULT), bound)


class Maximum(Minimum):
    """Every group's value of a measure is at most the bound.

    Parameters
    ----------
    measure : str
        As in `Parity`.
    bound : float, default=None

    Examples
    --------
    >>> print(Maximum("false positive rate", 0.2))
    Every group's false positive rate is at most 0.2.
    """

    DEFAULT: ClassVar[Comparing] = "ceiling"


# ---------------------------------------------------------------------------------------------
# Helpers


def state_bound(
    made: FairnessConstraint, measures: Sequence[Measure], bounds: Sequence[Bound]
) -> None:
    """Set the constraint and the bound from the one bound that is stated, out of ARGUMENTS."""
    pairs = zip(made.ARGUMENTS.items(), bounds, strict=True)
    stated = [(comparison, name, bound) for (comparison, name), bound in pairs if bound is not None]
    if len(stated) > 1:
        both = " and ".join(f"{name}={bound!r}" for _, name, bound in stated)
        raise InputError(
            f"{both} are two constraints. State one here, and join both with &.",
            parameter=stated[1][1],
        )
    default = (made.DEFAULT, made.ARGUMENTS[made.DEFAULT], None)
    comparison, name, bound = stated[0] if stated else default
    FairnessConstraint.__init__(made, find_form(measures, comparison), bound, parameter=name)


def _known_measure(measure: Any) -> Measure:
    known = {name.lower(): known for name, known in MEASURES.items()}
    if isinstance(measure, str) and (name := measure.lower().replace("_", " ")) in known:
        return known[name]
    raise InputError(
        f"measure={shown(measure)} is not known; choose one of {', '.join(MEASURES)}."
        f"{did_you_mean(measure, MEASURES)}",
        parameter="measure",
    )


def _checked_bound(bound: Any, constraint: Constraint, parameter: str) -> float | None:
    """Return the bound as a float in the range of the metric; None for no bound."""
    if bound is None or bound is ...:
        return None
    is_number = isinstance(bound, Real | Decimal) and type(bound).__name__ not in ("bool", "bool_")
    if not is_number:
        raise InputTypeError(
            f"{parameter}={shown(bound)} must be a number: the bound on the {constraint.metric}.",
            parameter=parameter,
        )
    largest = constraint.largest
    value = _as_float(bound)
    if math.isnan(value) or not 0 <= value <= largest or math.isinf(value):
        most = "" if math.isinf(largest) else f" to {largest:g}"
        share = f" Write {value / 100:g} for {value:g} %." if 1 < value <= 100 and most else ""
        raise InputError(
            f"{parameter}={shown(bound)} is out of range: the bound on the {constraint.metric} is "
            f"a number from 0{most}.{share}",
            parameter=parameter,
        )
    return value + 0.0  # no negative zero


def _as_float(bound: Any) -> float:
    try:
        return float(bound)
    except (OverflowError, ValueError):  # a whole number beyond all floats
        return math.inf


def _text(bound: float) -> str:
    return repr(int(bound)) if bound.is_integer() else repr(bound)


def _within_call(within: Within | None) -> str:
    if within is None:
        return ""
    defaults = Within._field_defaults
    rows = "" if within.min_rows == defaults["min_rows"] else f", min_rows={within.min_rows}"
    over = "" if within.over == defaults["over"] else f", over={within.over!r}"
    return f".within({within.column!r}{rows}{over})"


def _values(
    parts: Sequence[FairnessConstraint],
    y_true: Any,
    decisions: Any,
    sensitive_features: Any,
    pos_label: Any = 1,
    sample_weight: Any = None,
    control_features: Any = None,
) -> list[float]:
    needs_labels = any(part.needs_labels for part in parts)
    if control_features is not None and not any(part.constraint.within for part in parts):
        raise InputError(
            "control_features is passed, but the constraint has no condition. Name the column: "
            ".within('department').",
            parameter="control_features",
        )
    people = (sensitive_features, pos_label, sample_weight, control_features)
    rows = read_decisions(y_true if needs_labels else None, decisions, *people)
    return [value_on_rows(part.constraint, rows) for part in parts]


def check_compatible(parts: Sequence[FairnessConstraint], parameter: str = "parts") -> None:
    """Refuse a constraint that is stated twice, and a floor above the ceiling of the same rate."""
    seen: dict[Constraint, FairnessConstraint] = {}
    for part in parts:
        if (first := seen.setdefault(part.constraint, part)) is not part:
            raise InputError(
                f"{parameter} states {part.constraint.name} twice: {first.text!r} and "
                f"{part.text!r}. Keep the stricter one.",
                parameter=parameter,
            )
    for floor in parts:
        for ceiling in parts:
            if _exclude_each_other(floor, ceiling):
                raise InputError(
                    f"{floor.text!r} and {ceiling.text!r} contradict each other: no decisions "
                    "meet both. Lower the floor or raise the ceiling.",
                    parameter=parameter,
                )


def _exclude_each_other(floor: FairnessConstraint, ceiling: FairnessConstraint) -> bool:
    if floor is ceiling or floor.constraint.within != ceiling.constraint.within:
        return False
    low, high = _as_range(floor), _as_range(ceiling)
    if low is None or high is None or low[0] != high[0]:
        return False
    return max(low[1], high[1]) > min(low[2], high[2]) + 1e-12


def _as_range(part: FairnessConstraint) -> tuple[str, float, float] | None:
    """Return the rate that a floor or a ceiling bounds, and its range; None for others."""
    if part.constraint.comparison not in ("floor", "ceiling") or part.bound is None:
        return None
    name = part.constraint.measures[0].name
    is_floor = part.constraint.comparison == "floor"
    low, high = (part.bound, math.inf) if is_floor else (-math.inf, part.bound)
    if name in _COMPLEMENTS:
        return _COMPLEMENTS[name], 1 - high, 1 - low
    return name, low, high
