"""Define `Constraint`: the one place that knows what a fairness constraint compares and bounds.

A constraint compares one or more numbers between groups and combines them into one number, its
metric. Code that depends on the kind of constraint asks the object; no other file compares names.
`_cells.py` says how a constraint follows from counts.

A text states one constraint or several: "demographic parity >= 0.8 within 'department'". The
name of a constraint has underscores and no bound: "demographic_parity within 'department'".
Records, patches and audits store the name. Both are read here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from commod._text import did_you_mean, shorten, shown
from commod.exceptions import InputError
from commod.metrics._measures import (
    FALSE_POSITIVE_RATE,
    MEASURES,
    RATES,
    SELECTION_RATE,
    TRUE_POSITIVE_RATE,
    Measure,
    Within,
)

Comparing = Literal["ratio", "difference", "largest", "floor", "ceiling"]
UNBOUNDED = ("error ratio", "labels per selection")  # measures that may exceed 1
ODDS_RATES = (TRUE_POSITIVE_RATE, FALSE_POSITIVE_RATE)


@dataclass(frozen=True)
class Constraint:
    """What is compared between groups, and which values are fair.

    Parameters
    ----------
    name : str
        Fairlearn's name where it has one.
    metric : str
        The name of the number that the target bounds.
    measures : tuple of Measure
        The numbers of a group that are compared: one, or the true and false positive rates.
    comparison : {"ratio", "difference", "largest", "floor", "ceiling"}
        "ratio": the metric is the lowest number over the highest, of one measure. "difference":
        the metric is the highest minus the lowest number, summed over the measures. "largest": the
        largest of these differences. "floor" and "ceiling": the lowest and the highest number,
        which are not compared with each other, but with the target.
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
    measures: tuple[Measure, ...]
    comparison: Comparing
    within: Within | None = None

    def __post_init__(self) -> None:
        is_odds = self.measures == ODDS_RATES and self.comparison in ("difference", "largest")
        if self.comparison not in get_args(Comparing) or not (len(self.measures) == 1 or is_odds):
            labels = [measure.label for measure in self.measures]
            raise InputError(
                f"{self.name!r} compares the rates of true labels {labels} by {self.comparison!r}. "
                "A ratio has one rate row. A difference has one, or two: the positive label first."
            )

    # -- what is compared ----------------------------------------------------------------------

    @property
    def compares_rates(self) -> bool:
        """Return whether shares of positive decisions are compared, not the precision or so."""
        return set(self.measures) <= set(RATES)

    @property
    def rate_rows(self) -> tuple[Measure, ...]:
        """Return the rates that are compared, or those that the compared number follows from.

        Every table of counts in the library has one row per rate row, in this order, and one column
        per group. Positive true labels come before negative.
        """
        if self.compares_rates:
            return self.measures
        return tuple(row for row in ODDS_RATES if self.measures[0].label in (None, row.label))

    @property
    def is_simple(self) -> bool:
        """Return whether rates of all people are compared by ratio or difference.

        `bounds` has exact algorithms for these, and their values are exact fractions.
        """
        is_rate = self.compares_rates and self.within is None
        return is_rate and self.comparison in ("ratio", "difference")

    @property
    def min_groups(self) -> int:
        """Return how many groups a stratum needs: one is enough for a floor or a ceiling."""
        return 1 if self.comparison in ("floor", "ceiling") else 2

    # -- values and targets --------------------------------------------------------------------

    @property
    def is_gap(self) -> bool:
        """Return whether the metric is a difference between groups."""
        return self.comparison in ("difference", "largest")

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
    def typed_sign(self) -> str:
        """Return the sign as texts and keyboards have it."""
        return ">=" if self.higher_is_fairer else "<="

    @property
    def name_alone(self) -> str:
        """Return the name without its condition."""
        return self.name.removesuffix(f" {self.within.text}") if self.within else self.name

    @property
    def spoken(self) -> str:
        """Return the name without its condition and without underscores."""
        return self.name_alone.replace("_", " ")

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

    def meaning(self, outcome: str, other: str) -> str:
        """Return what the numbers are that are compared; `other` is the label not counted.

        Examples
        --------
        >>> get_constraint("predictive_parity").meaning("1", "0")
        'the share of those decided 1 whose true label is 1'
        >>> get_constraint("equalized_odds").meaning("1", "0")
        'how often people are decided 1 among those whose true label is 1, and among those whose
        true label is 0'
        """
        text = self.measures[0].meaning(outcome, other)
        return f"{text}, and among those whose true label is {other}" if self.measures[1:] else text

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
        of = f" of {outcome}" if self.measures[0].counts_one_label else ""
        first = self.measures[0]
        single = f"{'rate' if first == SELECTION_RATE else first.name}{of}"
        equal = "; 0 means equal"
        if self.is_ratio:
            text, equal = f"the lowest group's {single} divided by the highest's", "; 1 means equal"
        elif self.min_groups == 1:
            text, equal = f"the {self._end} {single} of any group", ""
        else:
            gaps = [
                f"how far {whose} {measure.plural}{of} lie apart"
                for whose, measure in zip(("the groups'", "their"), self.measures, strict=False)
            ]
            is_largest = self.comparison == "largest"
            text = (" or " if is_largest else " plus ").join(gaps)
            text += ", whichever is more" if is_largest else ""
        if other and self.needs_labels:
            text += f" ({self.meaning(outcome, other)})"
        if self.within is not None:
            column = repr(self.within.column)
            text += (
                f", with each group's figures averaged over the strata of {column}"
                if self.within.over == "average"
                else f", in the least fair stratum of {column}"
            )
        return text + equal

    @property
    def _end(self) -> str:
        return "lowest" if self.comparison == "floor" else "highest"

    def demand(self, bound: str) -> str:
        """Return the sentence that the constraint demands; `bound` is its bound in words.

        Examples
        --------
        >>> get_constraint("demographic_parity").demand("0.8")
        "The lowest group's selection rate is at least 0.8 times the highest's."
        >>> get_constraint("accuracy_parity within 'unit' average min_rows=30").demand("0.03")
        "The groups' accuracies differ by at most 0.03, on average over the strata of 'unit' with at
        least 30 rows per group."
        """
        first, gaps = self.measures[0], [f"the gap of {m.plural}" for m in self.measures]
        if self.is_ratio:
            text = f"The lowest group's {first.name} is at least {bound} times the highest's"
        elif self.min_groups == 1:
            end = "least" if self.higher_is_fairer else "most"
            text = f"Every group's {first.name} is at {end} {bound}"
        elif len(gaps) == 1:
            text = f"The groups' {first.plural} differ by at most {bound}"
        elif self.comparison == "largest":
            text = f"{' and '.join(gaps)} are each at most {bound}"
        else:
            text = f"{' plus '.join(gaps)} is at most {bound}"
        if self.within is not None:
            is_average = self.within.over == "average"
            which = "on average over the strata" if is_average else "in every stratum"
            text += f", {which} of {self.within.column!r} with at least {self.within.min_rows} rows"
            text += " per group"
        return f"{text[0].upper()}{text[1:]}."

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
        if len(name) > MAX_TEXT // 2:  # the text adds a bound, and must be readable again
            raise InputError(
                f"column={shown(within.column)} has {len(within.column):,} characters, and a "
                f"condition has at most {MAX_TEXT // 2:,}. Give the column a shorter name.",
                parameter="column",
            )
        metric = f"{self.metric}{_condition_of_metric(within)}"
        return replace(self, name=name, metric=metric, within=within)

    # -- labels and cells ----------------------------------------------------------------------

    @property
    def needs_labels(self) -> bool:
        """Return whether the rates depend on true labels."""
        return any(row.label is not None for row in self.rate_rows)

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

        None if a ratio is undefined because nobody is positive.
        """
        rows = (
            [Fraction(p, n) for p, n in zip(ps, ns, strict=True)]
            for ps, ns in zip(_as_lists(positives), _as_lists(sizes), strict=True)
        )
        return self.value_from_rates(list(rows))

    def value_from_rates(self, rates: Sequence[Sequence[Fraction]]) -> Fraction | None:
        """Return the exact value of a ratio or a difference from the rates of each rate row."""
        assert self.comparison in ("ratio", "difference"), self.name
        if self.is_ratio:
            highest = max(rates[0])
            return min(rates[0]) / highest if highest else None
        return sum((max(row) - min(row) for row in rates), Fraction(0))


# ---------------------------------------------------------------------------------------------
# The constraints that the library knows, by name

# The constraints that every method of the literature is about.
PARITY = "demographic_parity"
ODDS = "equalized_odds"
TRUE_POSITIVES = "true_positive_rate_parity"
FALSE_POSITIVES = "false_positive_rate_parity"
ALL_CONSTRAINTS = (PARITY, ODDS, TRUE_POSITIVES, FALSE_POSITIVES)


def _naming(measure: Measure) -> tuple[str, str, str, bool]:
    """Return the names of parity, of its ratio and in slugs, and whether the ratio comes first.

    The form that is first, ratio or difference, has the name of the parity alone.
    """
    if measure == SELECTION_RATE:
        return PARITY, "P-rule", "rate", True
    slug = measure.name.lower().replace(" ", "_")
    if measure.name == "error ratio":
        return slug, "ratio of error ratios", slug, True
    parity = "predictive_parity" if measure.name == "precision" else f"{slug}_parity"
    return parity, f"{_short(measure)} ratio", slug, False


def _short(measure: Measure) -> str:
    """Return the name of a measure in names of metrics."""
    names = {TRUE_POSITIVE_RATE: "TPR", FALSE_POSITIVE_RATE: "FPR"}
    return names.get(measure, measure.name)


def _forms_of(measure: Measure) -> Iterator[Constraint]:
    """Yield the constraints of one measure: parity by ratio and by difference, floor, ceiling."""
    name, metric, slug, is_ratio_first = _naming(measure)
    names = (name, f"{name} difference") if is_ratio_first else (f"{name} ratio", name)
    yield Constraint(names[0], metric, (measure,), "ratio")
    yield Constraint(names[1], f"{_short(measure)} gap", (measure,), "difference")
    yield Constraint(f"minimum_{slug}", f"lowest {measure.name}", (measure,), "floor")
    yield Constraint(f"maximum_{slug}", f"highest {measure.name}", (measure,), "ceiling")


FORMS = {
    form.name: form
    for form in (
        Constraint(ODDS, "disparate mistreatment", ODDS_RATES, "difference"),
        Constraint(f"{ODDS} largest", "larger gap of TPR and FPR", ODDS_RATES, "largest"),
        *(form for measure in MEASURES.values() for form in _forms_of(measure)),
    )
}
CONSTRAINTS = {name: FORMS[name] for name in ALL_CONSTRAINTS}


def find_form(measures: Sequence[Measure], comparison: Comparing) -> Constraint:
    """Return the constraint that compares these measures in this way.

    Examples
    --------
    >>> find_form([SELECTION_RATE], "difference").name
    'demographic_parity difference'
    """
    wanted = tuple(measures), comparison
    return next(form for form in FORMS.values() if (form.measures, form.comparison) == wanted)


# ---------------------------------------------------------------------------------------------
# Reading


Stated = tuple["Constraint", float | None]  # one constraint, and the bound that a text states

_TOKEN = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")"""
    r"""|(?P<open>['"].*)"""  # the whole rest, so that no later quote is tried as well
    r"|(?P<sign>>=|=>|≥|<=|=<|≤|==|=|>|<)"
    r"|(?P<separator>[&;,])"
    r"|(?P<word>[^\s'\"<>=≥≤&;,]+)",
    re.DOTALL,
)
_NUMBER = re.compile(r"[-+]?(\d++(\.\d*)?|\.\d+)(e[-+]?\d{1,3})?%?", re.IGNORECASE)
MAX_TEXT = 2_000  # characters of a text: far more than a person writes
MAX_ROWS_DIGITS = 15  # of min_rows, which is exact as a double
_SIGNS = {">=": ">=", "=>": ">=", "≥": ">=", "<=": "<=", "=<": "<=", "≤": "<="}
_KEYWORDS = ("and", "within", "every", "average", "min_rows")
_LONG = {
    "tpr": "true positive rate",
    "fpr": "false positive rate",
    "fnr": "false negative rate",
    "tnr": "true negative rate",
    "ppv": "precision",
    "npv": "negative predictive value",
    "equalised": "equalized",
    "min": "minimum",
    "max": "maximum",
}


def _spoken_forms() -> dict[str, Constraint]:
    """Return each constraint by all texts that mean it, in lower case."""
    spoken = {form.spoken: form for form in FORMS.values()}
    for form in FORMS.values():
        measure, comparison = form.measures[0].name, form.comparison
        if form.min_groups == 1:
            bound = "minimum" if form.higher_is_fairer else "maximum"
            spoken.setdefault(f"{bound} {measure}".lower(), form)
            continue
        if form.measures[1:]:
            spoken.setdefault(f"{form.spoken} sum", form)
            continue
        base = FORMS[form.name.partition(" ")[0]]
        for name in (base.spoken, f"{measure} parity".lower()):
            spoken.setdefault(f"{name} {comparison}", form)
            spoken.setdefault(name, base)
        spoken.setdefault(f"{measure} {comparison}".lower(), form)
    other_names = {
        "p rule": "demographic parity",
        "disparate mistreatment": "equalized odds",
        "equal opportunity": "true positive rate parity",
        "treatment equality": "error ratio difference",
        "f1 parity": "f1 score parity",
        "minimum f1": "minimum f1 score",
        "maximum f1": "maximum f1 score",
    }
    return spoken | {other: spoken[name] for other, name in other_names.items()}


_SPOKEN = _spoken_forms()


def read_text(text: str, parameter: str = "constraints") -> list[Stated]:
    """Return the constraints that a text states, one or several, each with its bound.

    Examples
    --------
    >>> ((constraint, bound),) = read_text("Demographic Parity ≥ 80% within department")
    >>> constraint.name, bound
    ("demographic_parity within 'department'", 0.8)
    """
    if len(text) > MAX_TEXT:
        raise InputError(
            f"{parameter} is a text of {len(text):,} characters, and a constraint has at most "
            f"{MAX_TEXT:,}. Pass a shorter text, or several in a list.",
            parameter=parameter,
        )
    tokens = _tokens(text, parameter)
    parts: list[list[tuple[str, str]]] = [[]]
    for kind, token in tokens:
        if kind == "separator" or (kind == "word" and token.lower() == "and"):
            parts.append([])
        else:
            parts[-1].append((kind, token))
    return [_Reader(part, text, parameter).read() for part in parts]


def _tokens(text: str, parameter: str) -> list[tuple[str, str]]:
    tokens = [(match.lastgroup or "", match[0]) for match in _TOKEN.finditer(text)]
    for i in range(len(tokens) - 1):  # "at least" and "at most" are signs
        pair = tuple(token.lower() for _, token in tokens[i : i + 2])
        if pair in (("at", "least"), ("at", "most")):
            tokens[i : i + 2] = [("sign", ">=" if pair[1] == "least" else "<="), ("gap", "")]
    for kind, token in tokens:
        if kind == "open":
            raise InputError(
                f"{parameter}={shown(text)} has a quote {token[0]} without its other end. Write "
                "the name of a column as 'pay band'.",
                parameter=parameter,
            )
    return [(kind, token) for kind, token in tokens if kind != "gap"]


class _Reader:
    """Read one constraint from its tokens, from the left to the right."""

    def __init__(self, tokens: list[tuple[str, str]], text: str, parameter: str) -> None:
        self.tokens, self.text, self.parameter = tokens, text, parameter

    def read(self) -> Stated:
        form = self._form()
        bound: float | None = None
        within: Within | None = None
        while self.tokens:
            kind, token = self.tokens[0]
            if kind == "sign":
                stated, bound = bound, self._bound(form)
                self._check_once(stated, bound, "bounds")
            elif token.lower() == "within" and kind == "word":
                earlier, within = within, self._within()
                self._check_once(earlier and earlier.text, within.text, "conditions")
            else:
                raise self._error(f"does not expect {shorten(token)} there. {_EXAMPLE}")
        return (form if within is None else form.conditional(within)), bound

    def _error(self, problem: str) -> InputError:
        message = f"{self.parameter}={shown(self.text)} {problem}"
        return InputError(message, parameter=self.parameter)

    def _check_once(self, earlier: object, later: object, what: str) -> None:
        """Refuse a part of the text that an earlier one states already."""
        if earlier is not None:
            raise self._error(f"states two {what}, {earlier} and {later}. Keep one of them.")

    def _take(self) -> tuple[str, str]:
        return self.tokens.pop(0) if self.tokens else ("end", "")

    def _form(self) -> Constraint:
        words = []
        while self.tokens and self.tokens[0][0] == "word" and self.tokens[0][1].lower() != "within":
            if _NUMBER.fullmatch(self.tokens[0][1]):
                raise self._error(
                    "has a number without a sign; a decimal has a point, not a comma. " + _EXAMPLE
                )
            words += re.split(r"[_\-\s]+", self._take()[1].lower())
        name = " ".join(_LONG.get(word, word) for word in words if word)
        if name in _SPOKEN:
            return _SPOKEN[name]
        if not name:
            raise self._error(f"does not name a constraint; {KNOWN_TEXT}")
        raise InputError(
            f"{self.parameter}={shown(self.text)} is not known; {KNOWN_TEXT}"
            f"{did_you_mean(name.replace(' ', '_'), FORMS)}",
            parameter=self.parameter,
        )

    def _bound(self, form: Constraint) -> float:
        sign = self._take()[1]
        if sign not in _SIGNS:
            raise self._error(
                f"has the sign {sign}. Write {form.typed_sign}, which includes the bound."
            )
        number = self._take()[1]
        if self.tokens and self.tokens[0] == ("word", "%"):
            number += self._take()[1]
        if not _NUMBER.fullmatch(number):
            raise self._error(f"needs a number after {sign}; got {shown(number)}. {_EXAMPLE}")
        if _SIGNS[sign] != form.typed_sign:
            raise self._error(_other_direction(form, number))
        is_share = number.endswith("%")
        value = Decimal(number.rstrip("%")) / (100 if is_share else 1)  # 80% is 0.8, to the bit
        return float(value)

    def _within(self) -> Within:
        self._take()
        kind, token = self._take()
        if kind == "quoted":
            column = _unquoted(token)
        elif kind == "word" and token.lower() not in _KEYWORDS:
            column = token
        else:
            example = shorten(token) or "department"
            raise self._error(
                f"needs the name of a column after 'within'; got {shown(token)}. Write a name "
                f"that is a word of this language in quotes, as within '{example}'."
            )
        if not column:
            raise self._error("needs the name of a column after 'within'; got an empty one.")
        stated: dict[str, Any] = {}
        while self.tokens and self.tokens[0][0] == "word":
            word = self.tokens[0][1].lower().replace("-", "_")
            if word in ("every", "average"):
                self._take()
                self._check_once(stated.get("over"), word, "ways to compare strata")
                stated["over"] = word
            elif word == "min_rows":
                n_rows = self._min_rows()
                self._check_once(stated.get("min_rows"), n_rows, "numbers of min_rows")
                stated["min_rows"] = n_rows
            elif word == "within":
                break
            else:
                raise self._error(
                    f"does not expect {shorten(self.tokens[0][1])} after the column "
                    f"{shorten(column)}. Write a name with spaces in quotes, as 'pay band'. After "
                    "the column come every, average or min_rows=50."
                )
        return Within(column, **stated)

    def _min_rows(self) -> int:
        self._take()
        sign, number = self._take()[1], self._take()[1]
        is_whole = number.isdecimal() and number.isascii() and len(number) <= MAX_ROWS_DIGITS
        if sign != "=" or not is_whole or int(number) < 1:
            raise self._error("needs a whole number from 1 after min_rows, as min_rows=30.")
        return int(number)


def _other_direction(form: Constraint, number: str) -> str:
    """Return why a sign does not go with a form, and how to state both directions."""
    other = {"ratio": "difference", "difference": "ratio", "floor": "ceiling", "ceiling": "floor"}
    wanted = form.measures, other.get(form.comparison)
    siblings = [f for f in FORMS.values() if (f.measures, f.comparison) == wanted]
    ways = [f"{f.spoken} {f.typed_sign} {shorten(number)}" for f in (form, *siblings)]
    return (
        f"has the wrong sign: the bound on the {form.metric} is a "
        f"{'floor' if form.higher_is_fairer else 'ceiling'}. Write "
        f"{' or '.join(map(repr, ways))}."
    )


def _unquoted(token: str) -> str:
    try:
        return str(ast.literal_eval(token))
    except (SyntaxError, ValueError):  # a backslash that Python does not read as an escape
        return token[1:-1]


_EXAMPLE = "Write for example 'demographic parity >= 0.8 within department'."
KNOWN_TEXT = (
    "choose one of demographic_parity, equalized_odds, true_positive_rate_parity, "
    "false_positive_rate_parity, or another name of commod.constraints."
)


ConstraintLike = str | Constraint


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
    (constraint, bound), *others = read_text(name)
    if others or bound is not None:
        raise InputError(
            f"constraints={shown(name)} states {'several constraints' if others else 'a bound'}"
            ", and this function takes the name of one constraint without its bound.",
            parameter="constraints",
        )
    return constraint


def _condition_of_metric(within: Within | None) -> str:
    """Return what the name of a metric says of the strata."""
    if within is None:
        return ""
    return f" within {within.column!r}{' on average' if within.over == 'average' else ''}"


def missing_labels(constraint: Constraint, parameter: str = "y_true") -> InputError:
    """Return the error for a constraint that needs true labels if there are none."""
    return InputError(
        f"{constraint.name} compares decisions with true labels, but {parameter} is None. Pass "
        "the labels, or use demographic_parity, which needs none.",
        parameter=parameter,
    )


def _as_lists(counts: Any) -> list[list[int]]:
    return np.asarray(counts).tolist()
