"""One person: what moved the decision, what would have kept it, and both in a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

import numpy as np

from commod._data.columns import Column
from commod._data.encoding import BinTerms, CategoryTerms, ColumnTerms, NumericTerms
from commod._record.explanation import Direction, Value
from commod._reporting.explain.reasons import WORTH_SAYING, added_by_column, start_of, values_of
from commod._reporting.explain.words import (
    column_text,
    number_text,
    short_value,
    signed,
    value_text,
)
from commod.scorecard import Scorecard

MOST_REASONS = 3  # in the sentence
MOST_TRIED = 10  # values of one column that the base model is asked about

# Returns, for values of single columns, r with each and whether the decision becomes another;
# None where that cannot be asked.
Trial = Callable[[Sequence[tuple[str, Value]]], Sequence[tuple[float, bool]] | None]


@dataclass(frozen=True)
class Contribution:
    """What one column adds to r for one person, beyond what it adds on average over the fit rows.

    Below 0 it pushes towards a change.
    """

    column: str
    value: Value | None
    points: float

    @property
    def text(self) -> str:
        """Return it in words, such as "priors_count = 0: −0.62"."""
        return f"{column_text(self.column)} = {short_value(self.value)}: {signed(self.points)}"


@dataclass(frozen=True)
class Alternative:
    """Another value of one column, all else as it is, with which it would have been otherwise.

    `ratio` is the r it gives. `is_seen` is False for a number beyond those of the explained
    people.
    """

    column: str
    value: Value
    ratio: float
    is_seen: bool
    text: str


@dataclass(frozen=True)
class Decision:
    """What was decided about one person: labels, direction, scores, and the r that acts.

    `id` is the label of the row in the index of X, None where that counts from 0. `closed` says
    why the decision could not change, None where it could.
    """

    row: int
    id: Value | None
    before: Value
    after: Value
    direction: Direction | None
    ratio: float
    raw_ratio: float
    score_before: float
    score_after: float
    closed: str | None


@dataclass(frozen=True)
class Person(Decision):
    """Why one decision changed or stayed.

    Attributes
    ----------
    start : float
        r of the average person: the mean of r over the fit rows.
    contributions : tuple of Contribution
        raw_ratio = start + their points; first what pushed most to where the decision went.
    kept_by : tuple of Alternative
        For a changed decision the smallest change of each single column that would have kept it;
        for one that stayed the smallest that would have changed it. Empty where none would.
    score : {"asked", "given", "not asked"}
        How `kept_by` was found: the base model was asked about each edited row, and all of them
        would have; the score is a column of X and stays as it is; or the base model refused to
        answer, and its score is taken as it is.
    sentence : str
        All of it in plain words.
    """

    start: float
    contributions: tuple[Contribution, ...]
    kept_by: tuple[Alternative, ...]
    score: Literal["asked", "given", "not asked"]
    sentence: str

    def __repr__(self) -> str:
        return self.sentence


def explain_person(
    decision: Decision,
    scorecard: Scorecard,
    columns: Sequence[Column],
    seen: Callable[[str], tuple[float, float]],
    fixed: Sequence[str] = (),
    trial: Trial | None = None,
) -> Person:
    """Return the reasons of one person.

    Parameters
    ----------
    decision : Decision
    scorecard : Scorecard
    columns : sequence of Column
        What the scorecard reads of this person: columns of one row.
    seen : function
        Returns the lowest and the highest value of a number among the explained people.
    fixed : sequence of str
        Columns that are nobody's to change.
    trial : function, default=None
        Decides about the person with other values; None where the score does not depend on them.
    """
    is_change = decision.direction is not None
    found = [
        Contribution(column.name, values_of(column)[0], float(added[0]))
        for column, added in added_by_column(scorecard, columns)
    ]
    found.sort(key=lambda c: c.points if is_change else -c.points)
    proposed: list[Alternative] = []
    if decision.closed is None:
        wanted = _is_kept if is_change else _is_changed
        every = _alternatives(scorecard, columns, wanted, seen)
        proposed = [a for a in every if a.column not in fixed]
    others = None if trial is None else _tried(proposed, trial)
    score: Literal["asked", "given", "not asked"]
    score = "given" if trial is None else "not asked" if others is None else "asked"
    first = _first_of_each_column(proposed if others is None else others)
    first.sort(key=lambda a: not a.is_seen)
    return Person(
        **vars(decision),
        start=start_of(scorecard),
        contributions=tuple(found),
        kept_by=tuple(first),
        score=score,
        sentence=_sentence(decision, found, first, score),
    )


def _tried(proposed: Sequence[Alternative], trial: Trial) -> list[Alternative] | None:
    """Return the values that really make the decision another; None where that cannot be asked."""
    if not proposed:
        return []
    answers = trial([(a.column, a.value) for a in proposed])
    if answers is None:
        return None
    return [
        # of one value only: the base model was asked about no other
        replace(a, ratio=ratio, text=f"{column_text(a.column)} = {value_text(a.value)}")
        for a, (ratio, is_other) in zip(proposed, answers, strict=True)
        if is_other
    ]


def _first_of_each_column(others: Sequence[Alternative]) -> list[Alternative]:
    return list({a.column: a for a in reversed(others)}.values())[::-1]


def _is_kept(ratio: float) -> bool:
    return ratio >= 0


def _is_changed(ratio: float) -> bool:
    return ratio < 0


# ---------------------------------------------------------------------------------------------
# The smallest change of one column


def _alternatives(
    scorecard: Scorecard,
    columns: Sequence[Column],
    wanted: Callable[[float], bool],
    seen: Callable[[str], tuple[float, float]],
) -> Iterator[Alternative]:
    """Yield values with which r is on the other side of 0, the smallest change of a column first.

    They are at most MOST_TRIED of a column.
    """
    first = 0
    for spec in scorecard.encoding.columns:
        points = scorecard.points[first : first + spec.n_terms]
        first += spec.n_terms
        if not points.any():
            continue
        what_if = _WhatIf(scorecard, columns, spec)
        rated = (
            (value, what_if.ratio(value), text)
            for value, text in _candidates(spec, points, what_if, wanted)
        )
        for value, ratio, text in islice((r for r in rated if wanted(r[1])), MOST_TRIED):
            is_seen = True
            if isinstance(spec, NumericTerms):
                low, high = seen(spec.name)
                is_seen = low <= float(value) <= high
            yield Alternative(spec.name, value, ratio, is_seen, text)


@dataclass(frozen=True)
class _WhatIf:
    """r of one person if one column were another."""

    scorecard: Scorecard
    columns: Sequence[Column]
    spec: ColumnTerms

    @property
    def column(self) -> Column:
        return next(c for c in self.columns if c.name == self.spec.name)

    @property
    def value(self) -> Value | None:
        return values_of(self.column)[0]

    def ratio(self, value: Value | None) -> float:
        """Return r with this value, exactly as the scorecard adds it up."""
        if self.spec.kind == "numeric":
            values = np.array([math.nan if value is None else value], dtype=np.float64)
            other = Column(self.spec.name, "numeric", values)
        else:
            known = () if value is None else (value,)
            other = Column(self.spec.name, "category", np.array([len(known) - 1]), known)
        changed = [other if c.name == self.spec.name else c for c in self.columns]
        return float(self.scorecard.ratio(changed)[0])


def _candidates(
    spec: ColumnTerms,
    points: np.ndarray,
    what_if: _WhatIf,
    wanted: Callable[[float], bool],
) -> Iterator[tuple[Value, str]]:
    """Yield values to try, the smallest change first, in words."""
    if isinstance(spec, CategoryTerms):
        yield from _categories(spec, points, what_if)
    elif isinstance(spec, BinTerms):
        yield from _bins(spec, what_if)
    else:
        yield from _numbers(spec, float(points[0]), what_if, wanted)


def _categories(
    spec: CategoryTerms, points: np.ndarray, what_if: _WhatIf
) -> Iterator[tuple[Value, str]]:
    """Yield the other categories, those with the most similar points first."""
    own = what_if.value
    mine = float(points[spec.categories.index(own)]) if own in spec.categories else 0.0
    for i in np.argsort(np.abs(points - mine), kind="stable").tolist():
        value = spec.categories[i]
        if value is not None and value != own:
            yield value, f"{column_text(spec.name)} = {value_text(value)}"


def _bins(spec: BinTerms, what_if: _WhatIf) -> Iterator[tuple[Value, str]]:
    """Yield a value of each bin, the nearest bins first."""
    own = what_if.value
    here = spec.edges[0] if own is None else float(own)
    is_whole = own is not None and here == int(here)
    ends = (-math.inf, *spec.edges, math.inf)
    bins = list(zip(ends[:-1], ends[1:], spec.term_names, strict=False))
    for low, high, text in sorted(bins, key=lambda b: max(b[0] - here, here - b[1], 0.0)):
        if own is not None and low <= here < high:
            continue
        if here < low:
            yield (math.ceil(low) + 0.0 if is_whole and math.ceil(low) < high else low), text
        else:
            yield _just_below(high, max(low, high - abs(here) - 1), is_whole), text


def _just_below(high: float, low: float, is_whole: bool) -> float:
    """Return the largest readable number under `high` that is not under `low`.

    Examples
    --------
    >>> _just_below(2.5, 1.5, True), _just_below(1.0, 0.0, False), _just_below(2.5, 2.2, True)
    (2.0, 0.99, 2.49)
    """
    whole = math.ceil(high) - 1.0
    if is_whole and whole >= low:
        return whole
    for digits in range(2, 17):
        unit = 10.0**-digits
        number = round(math.ceil(high / unit - 1e-6) * unit - unit, digits)
        if low <= number < high:
            return number
    return low


def _numbers(
    spec: NumericTerms, slope: float, what_if: _WhatIf, wanted: Callable[[float], bool]
) -> Iterator[tuple[Value, str]]:
    """Yield the nearest round numbers with which r is on the other side of 0."""
    if not slope:
        return
    own = what_if.value
    here = spec.fill if own is None else float(own)
    edge = here - what_if.ratio(here) / slope
    if not math.isfinite(edge):
        return
    up = edge >= here
    sign = "≥" if up else "≤"
    is_whole = own is not None and here == int(here)
    for digits in range(0 if is_whole else -int(math.log10(abs(edge - here) or 1.0)), 17):
        unit = 10.0**-digits
        steps = edge / unit
        for extra in (0, 1):  # rounding, and an edge that itself is not enough
            count = math.ceil(steps) + extra if up else math.floor(steps) - extra
            value = round(count * unit, max(digits, 0)) + 0.0
            if wanted(what_if.ratio(value)) and (is_whole or _is_near(value, edge, here)):
                yield value, f"{column_text(spec.name)} {sign} {number_text(value)}"
                return


def _is_near(value: float, edge: float, here: float) -> bool:
    """Return whether rounding costs little of the way to the edge."""
    return abs(value - edge) <= 0.05 * abs(edge - here) + 1e-12 * abs(edge)


# ---------------------------------------------------------------------------------------------
# In words


def _sentence(
    decision: Decision,
    contributions: Sequence[Contribution],
    others: Sequence[Alternative],
    score: str,
) -> str:
    who = f"Row {decision.row}"
    if decision.id is not None:
        number = "" if isinstance(decision.id, str) else "id "
        who += f" ({number}{value_text(decision.id)})"
    if decision.closed is not None:
        return f"{who} keeps {value_text(decision.before)}: {decision.closed}."
    ratio = signed(decision.ratio).removeprefix("+")
    if decision.direction is None:
        head = f"{who} keeps {value_text(decision.before)}: r = {ratio} is not below 0."
        why, sign = "What keeps it", 1.0
    else:
        head = (
            f"{who} changes from {value_text(decision.before)} to "
            f"{value_text(decision.after)}, a {decision.direction} of the favourable outcome: "
            f"r = {ratio} is below 0."
        )
        why, sign = "What moved it", -1.0
    least = WORTH_SAYING * max((c.points * sign for c in contributions), default=0.0)
    pushing = [c for c in contributions if c.points * sign > max(least, 0)][:MOST_REASONS]
    reasons = ", ".join(
        f"{column_text(c.column)} = {short_value(c.value)} ({signed(c.points)})" for c in pushing
    )
    otherwise = _otherwise(decision, others, score)
    parts = [head, f"{why} most: {reasons}." if reasons else "", otherwise]
    return " ".join(filter(None, parts))


def _otherwise(decision: Decision, others: Sequence[Alternative], score: str) -> str:
    would = "change it" if decision.direction is None else "have kept it"
    given = {"given": "With the score as it is, ", "not asked": "With the base score as it is, "}
    head = given.get(score, "")
    seen = [other.text for other in others if other.is_seen]
    if seen:
        text = f"one other value would {would}: {' or '.join(seen[:MOST_REASONS])}."
    elif others and score == "asked":
        text = (
            f"no other value of a single column was found that would {would}, except one that none "
            f"of these people has: {others[0].text}."
        )
    elif others:
        text = (
            f"no value of a single column that is found among these people would {would}, only "
            f"{others[0].text}."
        )
    elif score == "asked":  # r is known for every value, the score only where it was asked for
        text = f"no other value of a single column was found that would {would}."
    else:
        text = f"no other value of a single column would {would}."
    return head + text if head else text[0].upper() + text[1:]
