"""Define `Constraint`: the one place that knows what a fairness constraint compares and bounds.

A constraint compares one or more rates between groups and combines them into one number, its
metric. Code that depends on the kind of constraint asks the object; no other file compares names.
How a constraint follows from counts, `_comparison.py` says. Its names and its words are in
`_constraint_text.py` and `_constraint_words.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from commod._text import shown
from commod.exceptions import InputError
from commod.metrics._constraint_text import (
    KNOWN_TEXT,
    Comparing,
    Form,
    Within,
    condition_text,
    definition_text,
    measure_meaning,
    read_text,
)
from commod.metrics._measures import MEASURES, Measure


class RateRow(NamedTuple):
    """A rate that is compared between groups: the share of positive decisions among some people.

    `label` is the true label of these people: True (positive), False (negative), or None where
    everybody counts.
    """

    name: str
    label: bool | None


UNBOUNDED = ("error ratio", "labels per selection")  # measures that may exceed 1
SELECTION_RATE = RateRow("selection rate", None)
TRUE_POSITIVE_RATE = RateRow("true positive rate", True)
FALSE_POSITIVE_RATE = RateRow("false positive rate", False)


@dataclass(frozen=True)
class Constraint:
    """What is compared between groups, and which values are fair.

    Parameters
    ----------
    name : str
        Fairlearn's name where it has one.
    metric : str
        The name of the number that the target bounds.
    rate_rows : tuple of RateRow
        The rates that are compared. Every table of counts in the library has one row per rate
        row, in this order, and one column per group. Positive true labels come before negative.
    comparison : {"ratio", "difference", "largest", "floor", "ceiling"}
        "ratio": the metric is the lowest rate over the highest, of one rate row. "difference":
        the metric is the highest minus the lowest rate, summed over the rate rows. "largest": the
        largest of these differences. "floor" and "ceiling": the lowest and the highest rate, which
        are not compared with each other, but with the target.
    measure : Measure, default=None
        What is compared in place of the rates, such as the precision. `rate_rows` are then the
        rates that it follows from.
    within : Within, default=None
        The condition: groups are compared among people of the same stratum.

    Examples
    --------
    >>> constraint = get_constraint("equalized_odds")
    >>> constraint.metric, constraint.sign, constraint.largest, constraint.needs_labels
    ('disparate mistreatment', '≤', 2.0, True)
    >>> [row.name for row in constraint.rate_rows]
    ['true positive rate', 'false positive rate']
    >>> constraint.value_from_counts([[10, 10], [10, 10]], [[9, 7], [2, 1]])
    Fraction(3, 10)
    """

    name: str
    metric: str
    rate_rows: tuple[RateRow, ...]
    comparison: Comparing
    measure: Measure | None = None
    within: Within | None = None

    def __post_init__(self) -> None:
        labels = [row.label for row in self.rate_rows]
        one_row: list[list[bool | None]] = [[None], [True], [False]]
        is_two = self.comparison in ("difference", "largest") or self.measure is not None
        is_known = self.comparison in get_args(Comparing)
        if not is_known or labels not in [*one_row, *([[True, False]] if is_two else [])]:
            raise InputError(
                f"{self.name!r} compares the rates of true labels {labels} by {self.comparison!r}. "
                "A ratio has one rate row. A difference has one, or two: the positive label first."
            )

    # -- what is compared ----------------------------------------------------------------------

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Return the numbers of a group that are compared."""
        if self.measure is not None:
            return (self.measure,)
        return tuple(MEASURES[row.name] for row in self.rate_rows)

    @property
    def is_simple(self) -> bool:
        """Return whether rates of all people are compared by ratio or difference.

        `bounds` has exact algorithms for these, and their values are exact fractions.
        """
        is_rate = self.measure is None and self.within is None
        return is_rate and self.comparison in ("ratio", "difference")

    @property
    def min_groups(self) -> int:
        """Return how many groups a stratum needs: one is enough for a floor or a ceiling."""
        return 1 if self.comparison in ("floor", "ceiling") else 2

    # -- values and targets --------------------------------------------------------------------

    @property
    def is_ratio(self) -> bool:
        """Return whether rates are divided; otherwise they are subtracted."""
        return self.comparison == "ratio"

    @property
    def has_other_ratio(self) -> bool:
        """Return whether the other label has a ratio of its own: only selection rates have."""
        return self.is_ratio and not self.needs_labels

    @property
    def higher_is_fairer(self) -> bool:
        """Return whether a target is a floor; otherwise it is a ceiling."""
        return self.comparison in ("ratio", "floor")

    @property
    def sign(self) -> str:
        """Return the sign between the metric and its target."""
        return "≥" if self.higher_is_fairer else "≤"

    @property
    def ideal(self) -> float:
        """Return the fairest value."""
        return 1.0 if self.higher_is_fairer else 0.0

    @property
    def near_ideal(self) -> float:
        """Return the fairest value to search for: unlike groups hardly ever have equal rates."""
        return 0.98 if self.higher_is_fairer else 0.01

    @property
    def largest(self) -> float:
        """Return the largest value that the metric can take."""
        if self.is_ratio or self.measures[0].is_linear:
            return float(len(self.measures)) if self.comparison == "difference" else 1.0
        is_share = self.measures[0].name not in UNBOUNDED
        return 1.0 if is_share else float("inf")

    @property
    def least_fair(self) -> float:
        """Return the least fair value that the metric can take."""
        return 0.0 if self.higher_is_fairer else self.largest

    def is_met(self, value: Any, target: Any) -> Any:
        """Return whether a value (or each value of an array) reaches the target; False for NaN."""
        return value >= target if self.higher_is_fairer else value <= target

    def shortfall(self, value: Any, target: Any) -> Any:
        """Return how much fairer the target is than the value; negative where it is less fair."""
        return target - value if self.higher_is_fairer else value - target

    def towards_ideal(self, base: float, strength: float) -> float:
        """Return the value a share `strength` of the way from `base` to the ideal.

        Examples
        --------
        >>> get_constraint("demographic_parity").towards_ideal(0.5, 0.5)
        0.75
        >>> get_constraint("equalized_odds").towards_ideal(0.4, 1.0)
        0.0
        """
        if self.higher_is_fairer:
            return base + strength * (1 - base) if strength < 1 else 1.0
        return (1 - strength) * base

    def metric_of(self, outcome: str) -> str:
        """Return the metric with the label that it counts; `outcome` is that label in words.

        Examples
        --------
        >>> get_constraint("demographic_parity").metric_of("label 1")
        'P-rule of label 1'
        >>> get_constraint("minimum_rate within 'department'").metric_of("label 1")
        "lowest selection rate of label 1 within 'department'"
        """
        if not outcome or not self.measures[0].counts_one_label:
            return self.metric
        condition = _condition_of_metric(self.within)
        return f"{self.metric.removesuffix(condition)} of {outcome}{condition}"

    def rates_in_words(self, outcome: str, other: str) -> str:
        """Return which people each rate counts; `other` is the label that is not counted.

        Examples
        --------
        >>> get_constraint("false_positive_rate_parity").rates_in_words("“high risk”", "“low risk”")
        'decided “high risk” among those whose true label is “low risk”'
        >>> get_constraint("equalized_odds").rates_in_words("1", "0")
        'decided 1 among those whose true label is 1, and among those whose true label is 0'
        """
        labels = {True: outcome, False: other}
        among = [
            f"among those whose true label is {labels[row.label]}"
            for row in self.rate_rows
            if row.label is not None
        ]
        return f"decided {outcome} {', and '.join(among)}".rstrip()

    def meaning(self, outcome: str, other: str) -> str:
        """Return what the numbers are that are compared.

        Examples
        --------
        >>> get_constraint("predictive_parity").meaning("1", "0")
        'the share of those decided 1 whose true label is 1'
        >>> get_constraint("true_positive_rate_parity").meaning("1", "0")
        'how often people are decided 1 among those whose true label is 1'
        """
        if self.measure is not None:
            return measure_meaning(self.measure.name, outcome, other)
        return f"how often people are {self.rates_in_words(outcome, other)}"

    def definition(self, outcome: str, other: str = "") -> str:
        """Return what the metric measures, in words; `outcome` names the counted decision.

        `other` names the other label; with it, rates among true labels are spelled out.

        Examples
        --------
        >>> get_constraint("demographic_parity").definition("approval")
        "the lowest group's rate of approval divided by the highest's; 1 means equal"
        >>> get_constraint("minimum_rate within 'department'").definition("approval")
        "the lowest rate of approval of any group, in the least fair stratum of 'department'"
        """
        spelled = self.meaning(outcome, other) if other and self.needs_labels else ""
        names = [measure.name for measure in self.measures]
        condition = condition_text(self.within)
        return definition_text(self.comparison, names, outcome, spelled, condition)

    def conditional(self, within: Within) -> Constraint:
        """Return the same constraint among people of the same stratum.

        Examples
        --------
        >>> get_constraint("demographic_parity").conditional(Within("department")).name
        "demographic_parity within 'department'"
        """
        if self.within is not None:
            raise InputError(
                f"{self.name} has the condition {self.within.column!r} already. Make one column of "
                "both conditions, and state that one.",
                parameter="column",
            )
        name = f"{self.name} {within.text}"
        metric = f"{self.metric}{_condition_of_metric(within)}"
        return replace(self, name=name, metric=metric, within=within)

    # -- labels and cells ----------------------------------------------------------------------

    @property
    def needs_labels(self) -> bool:
        """Return whether the rates depend on true labels."""
        return any(row.label is not None for row in self.rate_rows)

    @property
    def label_codes(self) -> tuple[int, ...]:
        """Return the true label of each rate row: 1, 0, or −1 where everybody counts."""
        return tuple(-1 if row.label is None else int(row.label) for row in self.rate_rows)

    @property
    def only_label(self) -> bool | None:
        """Return the true label that all rate rows share; None where there is no such label."""
        labels = {row.label for row in self.rate_rows}
        return labels.pop() if len(labels) == 1 else None

    def by_rate_row(self, values: NDArray[Any], axis: int = 0) -> NDArray[Any]:
        """Return sums by rate row from sums by true label along `axis`.

        Along `axis`, `values` has the negative label first, then the positive one; where no rate
        row needs labels there may be one entry for both.
        """
        parts = [
            values.sum(axis=axis) if row.label is None else values.take(int(row.label), axis=axis)
            for row in self.rate_rows
        ]
        return np.stack(parts, axis=axis)

    # -- the metric from counts ----------------------------------------------------------------

    def value_from_counts(self, sizes: Any, positives: Any) -> Fraction | None:
        """Return the exact value from counts of shape (n_rate_rows, n_groups), no cell empty.

        None where a ratio is undefined because nobody is positive.
        """
        rows = (
            [Fraction(p, n) for p, n in zip(ps, ns, strict=True)]
            for ps, ns in zip(_as_lists(positives), _as_lists(sizes), strict=True)
        )
        return self.value_from_rates(list(rows))

    def value_from_rates(self, rates: Sequence[Sequence[Fraction]]) -> Fraction | None:
        """Return the exact value from one sequence of rates per rate row."""
        if self.is_ratio:
            highest = max(rates[0])
            return min(rates[0]) / highest if highest else None
        return sum((max(row) - min(row) for row in rates), Fraction(0))


ConstraintLike = str | Constraint

# The constraints that every method of the literature is about, by name.
PARITY = "demographic_parity"
ODDS = "equalized_odds"
TRUE_POSITIVES = "true_positive_rate_parity"
FALSE_POSITIVES = "false_positive_rate_parity"
ALL_CONSTRAINTS = (PARITY, ODDS, TRUE_POSITIVES, FALSE_POSITIVES)

CONSTRAINTS = {
    constraint.name: constraint
    for constraint in (
        Constraint(PARITY, "P-rule", (SELECTION_RATE,), "ratio"),
        Constraint(
            ODDS,
            "disparate mistreatment",
            (TRUE_POSITIVE_RATE, FALSE_POSITIVE_RATE),
            "difference",
        ),
        Constraint(TRUE_POSITIVES, "TPR gap", (TRUE_POSITIVE_RATE,), "difference"),
        Constraint(FALSE_POSITIVES, "FPR gap", (FALSE_POSITIVE_RATE,), "difference"),
    )
}


def get_constraint(constraints: Any) -> Constraint:
    """Return the constraint of a name; a `Constraint` is returned as it is.

    A name states no bound; `commod.constraints.parse_constraint` reads bounds too.

    Examples
    --------
    >>> get_constraint("demographic_parity").metric
    'P-rule'
    >>> get_constraint("equalized_odds largest within 'department' min_rows=30").within
    Within(column='department', min_rows=30, over='every')
    >>> get_constraint("parity")
    Traceback (most recent call last):
    commod.exceptions.InputError: constraints='parity' is not known; choose one of
    demographic_parity, equalized_odds, true_positive_rate_parity, false_positive_rate_parity, or
    another name of commod.constraints.
    """
    if isinstance(constraints, Constraint):
        return constraints
    if not isinstance(constraints, str):
        raise InputError(
            f"constraints={shown(constraints)} is not known; {KNOWN_TEXT}", parameter="constraints"
        )
    known = CONSTRAINTS.get(constraints)
    return _named(constraints) if known is None else known


@lru_cache(maxsize=256)
def _named(name: str) -> Constraint:
    """Return the constraint of a name that is not in `CONSTRAINTS`."""
    stated = read_text(name)
    if len(stated) > 1 or stated[0].bound is not None:
        raise InputError(
            f"constraints={shown(name)} states {'several constraints' if stated[1:] else 'a bound'}"
            ", and this function takes the name of one constraint without its bound.",
            parameter="constraints",
        )
    return constraint_of(stated[0].form, stated[0].within)


def constraint_of(form: Form, within: Within | None = None) -> Constraint:
    """Return the constraint of a form, under a condition where there is one.

    Examples
    --------
    >>> from commod.metrics._constraint_text import FORMS
    >>> constraint_of(FORMS["accuracy_parity"]).measure.name
    'accuracy'
    """
    rates = {row.name: row for row in (SELECTION_RATE, TRUE_POSITIVE_RATE, FALSE_POSITIVE_RATE)}
    measure, rows = None, tuple(rates[name] for name in form.measures if name in rates)
    if not rows:
        (name,) = form.measures
        measure = MEASURES[name]
        rows = tuple(row for row in rates.values() if row.label is not None)
        rows = tuple(row for row in rows if measure.label in (None, row.label))
    constraint = Constraint(form.name, form.metric, rows, form.comparison, measure)
    return constraint if within is None else constraint.conditional(within)


def _condition_of_metric(within: Within | None) -> str:
    """Return what the name of a metric says of the strata."""
    if within is None:
        return ""
    return f" within {within.column!r}{' on average' if within.over == 'average' else ''}"


def missing_labels(constraint: Constraint, parameter: str = "y_true") -> InputError:
    """Return the error for a constraint that needs true labels where there are none."""
    return InputError(
        f"{constraint.name} compares decisions with true labels, but {parameter} is None. Pass "
        "the labels, or use demographic_parity, which needs none.",
        parameter=parameter,
    )


def _as_lists(counts: Any) -> list[list[int]]:
    return np.asarray(counts).tolist()
