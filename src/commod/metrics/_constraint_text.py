"""Name the constraints that the library knows, and read and write their texts.

A text states one constraint or several: "demographic parity >= 0.8 within 'department'". The
name of a constraint has underscores and no bound: "demographic_parity within 'department'".
Records, patches and audits store the name. Both are read here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Literal, NamedTuple

from commod._text import did_you_mean, shown
from commod.exceptions import InputError
from commod.metrics._measures import MEASURES

Comparing = Literal["ratio", "difference", "largest", "floor", "ceiling"]
FLOORS = ("ratio", "floor")  # comparisons whose target is a lower bound


class Within(NamedTuple):
    """The condition of a constraint: people are compared with people of the same stratum.

    A stratum is a value of `column`. A group is compared in a stratum where every number that is
    compared counts at least `min_rows` of its rows. `over`: "every" stratum keeps the constraint,
    or the "average" over the strata does.
    """

    column: str
    min_rows: int = 50
    over: Literal["every", "average"] = "every"

    @property
    def text(self) -> str:
        """Return the condition as it follows the name of a constraint.

        Examples
        --------
        >>> Within("pay band", 30, "average").text
        "within 'pay band' average min_rows=30"
        """
        over = " average" if self.over == "average" else ""
        rows = (
            f" min_rows={self.min_rows}"
            if self.min_rows != Within._field_defaults["min_rows"]
            else ""
        )
        return f"within {self.column!r}{over}{rows}"


class Form(NamedTuple):
    """What a constraint compares, and how: its name, its metric, its measures, the comparison."""

    name: str
    metric: str
    measures: tuple[str, ...]
    comparison: Comparing

    @property
    def spoken(self) -> str:
        """Return the name without underscores."""
        return self.name.replace("_", " ")

    @property
    def sign(self) -> str:
        """Return the sign between the metric and its bound."""
        return ">=" if self.comparison in FLOORS else "<="


SELECTION, TPR, FPR = "selection rate", "true positive rate", "false positive rate"
_SHORT = {TPR: "TPR", FPR: "FPR"}  # in names of metrics


def _naming(measure: str) -> tuple[str, str, str, bool]:
    """Return the names of parity, of its ratio and in slugs, and whether the ratio comes first.

    The form that is first, ratio or difference, has the name of the parity alone.
    """
    if measure == SELECTION:
        return "demographic_parity", "P-rule", "rate", True
    slug = measure.lower().replace(" ", "_")
    if measure == "error ratio":
        return slug, "ratio of error ratios", slug, True
    parity = "predictive_parity" if measure == "precision" else f"{slug}_parity"
    return parity, f"{_SHORT.get(measure, measure)} ratio", slug, False


def _forms_of(measure: str) -> Iterator[Form]:
    """Yield the forms of one measure: parity by ratio and by difference, floor and ceiling."""
    name, metric, slug, is_ratio_first = _naming(measure)
    names = (name, f"{name} difference") if is_ratio_first else (f"{name} ratio", name)
    yield Form(names[0], metric, (measure,), "ratio")
    yield Form(names[1], f"{_SHORT.get(measure, measure)} gap", (measure,), "difference")
    yield Form(f"minimum_{slug}", f"lowest {measure}", (measure,), "floor")
    yield Form(f"maximum_{slug}", f"highest {measure}", (measure,), "ceiling")


FORMS = {
    form.name: form
    for form in (
        Form("equalized_odds", "disparate mistreatment", (TPR, FPR), "difference"),
        Form("equalized_odds largest", "larger gap of TPR and FPR", (TPR, FPR), "largest"),
        *(form for measure in MEASURES for form in _forms_of(measure)),
    )
}


def find_form(measures: Sequence[str], comparison: str) -> Form:
    """Return the form that compares these measures in this way.

    Examples
    --------
    >>> find_form(["selection rate"], "difference").name
    'demographic_parity difference'
    """
    found = (
        f for f in FORMS.values() if (f.measures, f.comparison) == (tuple(measures), comparison)
    )
    return next(found)


# ---------------------------------------------------------------------------------------------
# Reading


class Stated(NamedTuple):
    """One constraint as a text states it."""

    form: Form
    bound: float | None
    within: Within | None


_TOKEN = re.compile(
    r"""(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
    r"|(?P<sign>>=|=>|≥|<=|=<|≤|==|=|>|<)"
    r"|(?P<separator>[&;,])"
    r"|(?P<word>[^\s'\"<>=≥≤&;,]+)"
    r"|(?P<other>\S)",
    re.DOTALL,
)
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?%?", re.IGNORECASE)
_SIGNS = {">=": ">=", "=>": ">=", "≥": ">=", "<=": "<=", "=<": "<=", "≤": "<="}
_KEYWORDS = ("and", "within", "every", "average", "min_rows")
_LONG = {
    "tpr": TPR,
    "fpr": FPR,
    "fnr": "false negative rate",
    "tnr": "true negative rate",
    "ppv": "precision",
    "npv": "negative predictive value",
    "equalised": "equalized",
    "min": "minimum",
    "max": "maximum",
}


def _spoken_forms() -> dict[str, Form]:
    """Return each form by all texts that mean it, in lower case."""
    spoken = {form.spoken: form for form in FORMS.values()}
    for form in FORMS.values():
        (measure, *more), comparison = form.measures, form.comparison
        if comparison in ("floor", "ceiling"):
            bound = "minimum" if comparison == "floor" else "maximum"
            spoken.setdefault(f"{bound} {measure}".lower(), form)
            continue
        if more:
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
    """Return the constraints that a text states, one or several.

    Examples
    --------
    >>> (stated,) = read_text("Demographic Parity ≥ 80% within department")
    >>> stated.form.name, stated.bound, stated.within
    ('demographic_parity', 0.8, Within(column='department', min_rows=50, over='every'))
    """
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
        if kind == "other":
            raise InputError(
                f"{parameter}={shown(text)} has a quote {token} without its other end. Write the "
                "name of a column as 'pay band'.",
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
            if kind == "sign" and bound is None:
                bound = self._bound(form)
            elif token.lower() == "within" and kind == "word" and within is None:
                within = self._within()
            else:
                raise self._error(f"does not expect {token} there. {_EXAMPLE}")
        return Stated(form, bound, within)

    def _error(self, problem: str) -> InputError:
        message = f"{self.parameter}={shown(self.text)} {problem}"
        return InputError(message, parameter=self.parameter)

    def _take(self) -> tuple[str, str]:
        return self.tokens.pop(0) if self.tokens else ("end", "")

    def _form(self) -> Form:
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

    def _bound(self, form: Form) -> float:
        sign = self._take()[1]
        if sign not in _SIGNS:
            raise self._error(f"has the sign {sign}. Write {form.sign}, which includes the bound.")
        number = self._take()[1]
        if self.tokens and self.tokens[0] == ("word", "%"):
            number += self._take()[1]
        if not _NUMBER.fullmatch(number):
            raise self._error(f"needs a number after {sign}; got {shown(number)}. {_EXAMPLE}")
        if _SIGNS[sign] != form.sign:
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
            raise self._error(
                f"needs the name of a column after 'within'; got {shown(token)}. Write a name "
                f"that is a word of this language in quotes, as within '{token or 'department'}'."
            )
        if not column:
            raise self._error("needs the name of a column after 'within'; got an empty one.")
        within = Within(column)
        while self.tokens and self.tokens[0][0] == "word":
            word = self.tokens[0][1].lower().replace("-", "_")
            if word in ("every", "average"):
                within = within._replace(over="average" if word == "average" else "every")
                self._take()
            elif word == "min_rows":
                within = within._replace(min_rows=self._min_rows())
            elif word == "within":
                break
            else:
                raise self._error(
                    f"does not expect {self.tokens[0][1]} after the column {column}. Write a name "
                    "with spaces in quotes, as 'pay band'. After the column come every, average "
                    "or min_rows=50."
                )
        return within

    def _min_rows(self) -> int:
        self._take()
        sign, number = self._take()[1], self._take()[1]
        if sign != "=" or not number.isdecimal() or not number.isascii() or int(number) < 1:
            raise self._error("needs a whole number from 1 after min_rows, as min_rows=30.")
        return int(number)


def _other_direction(form: Form, number: str) -> str:
    """Return why a sign does not go with a form, and how to state both directions."""
    is_floor = form.sign == ">="
    other = {"ratio": "difference", "difference": "ratio", "floor": "ceiling", "ceiling": "floor"}
    names = {f.name: f for f in FORMS.values() if f.measures == form.measures}
    siblings = [f for f in names.values() if f.comparison == other.get(form.comparison)]
    ways = [f"{f.spoken} {f.sign} {number}" for f in (form, *siblings)]
    return (
        f"has the wrong sign: the bound on the {form.metric} is a "
        f"{'floor' if is_floor else 'ceiling'}. Write {' or '.join(map(repr, ways))}."
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


# ---------------------------------------------------------------------------------------------
# Say in words what a constraint measures and what it demands

_PLURALS = {"accuracy": "accuracies", "labels per selection": "labels per selection"}


def measure_meaning(measure: str, outcome: str, other: str) -> str:
    """Return what a measure is; `outcome` is the label that it counts, `other` the other one.

    Examples
    --------
    >>> measure_meaning("precision", "1", "0")
    'the share of those decided 1 whose true label is 1'
    """
    rightly = "the share of those decided {0} whose true label is {0}"
    among = "how often people are decided {0} among those whose true label is {1}"
    return {
        SELECTION: f"how often people are decided {outcome}",
        "true positive rate": among.format(outcome, outcome),
        "false positive rate": among.format(outcome, other),
        "false negative rate": among.format(other, outcome),
        "true negative rate": among.format(other, other),
        "accuracy": "the share of decisions that equal the true label",
        "precision": rightly.format(outcome),
        "negative predictive value": rightly.format(other),
        "F1 score": f"the harmonic mean of precision and true positive rate of {outcome}",
        "error ratio": f"how many are wrongly decided {outcome} for each one wrongly {other}",
        "labels per selection": (
            f"how many have the true label {outcome} for each one decided {outcome}"
        ),
    }[measure]


def plural_of(measure: str) -> str:
    """Return the plural of a measure.

    Examples
    --------
    >>> plural_of("accuracy"), plural_of("selection rate")
    ('accuracies', 'selection rates')
    """
    return _PLURALS.get(measure, f"{measure}s")


def definition_text(
    comparison: Comparing, measures: Sequence[str], outcome: str, spelled: str, condition: str
) -> str:
    """Return what a metric measures. `spelled` explains the measures, `condition` the strata.

    Examples
    --------
    >>> definition_text("floor", ["precision"], "approval", "", "")
    'the lowest precision of approval of any group'
    """
    of = [f" of {outcome}" if MEASURES[m].counts_one_label else "" for m in measures]
    names = zip(measures, of, strict=True)
    singles = [f"{'rate' if m == SELECTION else m}{counted}" for m, counted in names]
    plurals = [f"{plural_of(m)}{counted}" for m, counted in zip(measures, of, strict=True)]
    if comparison == "ratio":
        text = f"the lowest group's {singles[0]} divided by the highest's"
    elif comparison in ("floor", "ceiling"):
        text = f"the {'lowest' if comparison == 'floor' else 'highest'} {singles[0]} of any group"
    else:
        whose = ["the groups'", *["their"] * len(plurals)]
        gaps = [f"how far {w} {p} lie apart" for w, p in zip(whose, plurals, strict=False)]
        link = " or " if comparison == "largest" else " plus "
        text = link.join(gaps) + (", whichever is more" if comparison == "largest" else "")
    meaning = {"ratio": "; 1 means equal", "floor": "", "ceiling": ""}.get(
        comparison, "; 0 means equal"
    )
    return f"{text}{f' ({spelled})' if spelled else ''}{condition}{meaning}"


def condition_text(within: Within | None) -> str:
    """Return how the strata enter a metric; empty without a condition.

    Examples
    --------
    >>> condition_text(Within("department"))
    ", in the least fair stratum of 'department'"
    """
    if within is None:
        return ""
    if within.over == "average":
        return f", with each group's figures averaged over the strata of {within.column!r}"
    return f", in the least fair stratum of {within.column!r}"


def demand_text(
    comparison: Comparing, measures: Sequence[str], bound: str, within: Within | None
) -> str:
    """Return the sentence that a constraint demands; `bound` is its bound in words.

    Examples
    --------
    >>> demand_text("ratio", ["selection rate"], "0.8", None)
    "The lowest group's selection rate is at least 0.8 times the highest's."
    >>> demand_text("difference", ["accuracy"], "0.03", Within("department", 30, "average"))
    "The groups' accuracies differ by at most 0.03, on average over the strata of 'department' with
    at least 30 rows per group."
    """
    first, gaps = measures[0], [f"the gap of {plural_of(m)}" for m in measures]
    if comparison == "ratio":
        text = f"The lowest group's {first} is at least {bound} times the highest's"
    elif comparison in ("floor", "ceiling"):
        text = f"Every group's {first} is at {'least' if comparison == 'floor' else 'most'} {bound}"
    elif len(measures) == 1:
        text = f"The groups' {plural_of(first)} differ by at most {bound}"
    elif comparison == "largest":
        text = f"{' and '.join(gaps)} are each at most {bound}"
    else:
        text = f"{' plus '.join(gaps)} is at most {bound}"
    strata = ""
    if within is not None:
        which = "on average over the strata" if within.over == "average" else "in every stratum"
        strata = f", {which} of {within.column!r} with at least {within.min_rows} rows per group"
    return f"{text[0].upper()}{text[1:]}{strata}."
