"""Explain one person: what moved the decision, what would have kept it, and both in a sentence."""

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
from commod._reporting.explain.reasons import (
    MIN_PUSH,
    RatioParts,
    column_text,
    contribution_text,
    number_text,
    points_by_column,
    short_value,
    value_text,
    values_of,
)
from commod._text import distinct_pair, points

MAX_REASONS = 3  # in the sentence
MAX_TRIED = 10  # values of one column that the base model is asked about
ROUNDING_TOLERANCE = 0.05  # share of the distance that a rounder number may add

ScoreUse = Literal["asked", "given", "not asked"]

# For other values of single columns: r with each value, and whether the decision differs; None
# where the base model does not answer.
BaseModelTrial = Callable[[Sequence[tuple[str, Value]]], Sequence[tuple[float, bool]] | None]


@dataclass(frozen=True)
class Contribution:
    """What one column adds to r for one person, less what it adds on average over the fit rows.

    Points below 0 push towards a change. They are in the unit of r, also where the points of the
    scorecard are evidence.
    """

    column: str
    value: Value | None
    points: float

    @property
    def text(self) -> str:
        """Return the contribution as text, such as "priors_count = 0: −0.623"."""
        return f"{column_text(self.column)} = {short_value(self.value)}: {points(self.points)}"


@dataclass(frozen=True)
class Alternative:
    """Another value of one column that alone would have led to the other decision.

    `ratio` is r with this value. `is_seen` is False for a number outside the range of the explained
    people.
    """

    column: str
    value: Value
    ratio: float
    is_seen: bool
    text: str


@dataclass(frozen=True)
class PersonDecision:
    """The decision about one person: labels, direction, scores, and the r that acts.

    `id` is the label of the row in the index of X; None where the index counts from 0. `raw_ratio`
    is the sum of the points: r before it is held at 1, or the evidence. `closed` says why the
    decision could not change; None where it could.
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
class Person(PersonDecision):
    """Why one decision changed or stayed.

    Attributes
    ----------
    start : float
        r with the mean points of the fit rows. Where the points are evidence: of a person with the
        same base decision, at the mean distance from the threshold.
    contributions : tuple of Contribution
        r = start + the sum of their points; also for a person whose r is held at 1, who would have
        this r otherwise. The strongest push towards the actual decision comes first.
    cut : float or None
        Where the points are evidence, the sum of points beyond which this decision changes: above
        it if it is positive (a gain), below it if it is negative (a loss). None without evidence.
    kept_by : tuple of Alternative
        For a changed decision, the smallest change of each single column that would have kept it.
        For a decision that stayed, the smallest that would have changed it. Empty if there is none.
    score : {"asked", "given", "not asked"}
        How the base score enters `kept_by`. "asked": the base model scored each edited row, and
        every alternative listed leads to the other decision. "given": the score is a column of X
        and stays as it is. "not asked": the base model failed on an edited row, so its score is
        taken as it is.
    sentence : str
        All of this in plain words.
    """

    start: float
    contributions: tuple[Contribution, ...]
    cut: float | None
    kept_by: tuple[Alternative, ...]
    score: ScoreUse
    sentence: str

    def __repr__(self) -> str:
        return self.sentence


def explain_person(
    decision: PersonDecision,
    parts: RatioParts,
    columns: Sequence[Column],
    range_of: Callable[[str], tuple[float, float]],
    fixed: Sequence[str] = (),
    trial: BaseModelTrial | None = None,
) -> Person:
    """Return why one decision changed or stayed.

    Parameters
    ----------
    decision : PersonDecision
    parts : RatioParts
        The r of this one person.
    columns : sequence of Column
        The columns that the scorecard reads, with one row.
    range_of : function
        Returns the lowest and the highest value of a numeric column among the explained people.
    fixed : sequence of str
        Columns that no alternative changes.
    trial : function, default=None
        Decides about the person with other values. None if the score does not depend on them.
    """
    is_change = decision.direction is not None
    contributions = [
        Contribution(column.name, values_of(column)[0], float(added[0]))
        for column, added in parts.contributions(columns)
    ]
    contributions.sort(key=lambda c: c.points if is_change else -c.points)
    proposed: list[Alternative] = []
    if decision.closed is None:
        search = _AlternativeSearch(parts, columns, is_change)
        proposed = [a for a in search.alternatives(range_of) if a.column not in fixed]
    confirmed = None if trial is None else _confirmed(proposed, trial)
    score: ScoreUse
    score = "given" if trial is None else "not asked" if confirmed is None else "asked"
    valid = proposed if confirmed is None else confirmed
    alternatives = list({a.column: a for a in reversed(valid)}.values())[::-1]  # first per column
    alternatives.sort(key=lambda a: not a.is_seen)
    cut = None if parts.cuts is None else float(parts.cuts[0])
    return Person(
        **vars(decision),
        start=float(parts.start[0]),
        contributions=tuple(contributions),
        cut=cut,
        kept_by=tuple(alternatives),
        score=score,
        sentence=_sentence(decision, cut, contributions, alternatives, score),
    )


def _confirmed(proposed: Sequence[Alternative], trial: BaseModelTrial) -> list[Alternative] | None:
    """Return the alternatives that lead to the other decision; None where the trial fails."""
    if not proposed:
        return []
    answers = trial([(a.column, a.value) for a in proposed])
    if answers is None:
        return None
    return [
        # The text names one value, because the base model was asked about this value only.
        replace(a, ratio=ratio, text=_equals(a.column, a.value))
        for a, (ratio, is_other) in zip(proposed, answers, strict=True)
        if is_other
    ]


def _equals(column: str, value: Value) -> str:
    return f"{column_text(column)} = {value_text(value)}"


# ---------------------------------------------------------------------------------------------
# The smallest change of one column


@dataclass(frozen=True)
class _AlternativeSearch:
    """The search for single values that would lead to the other decision about one person."""

    parts: RatioParts
    columns: Sequence[Column]
    is_change: bool

    def alternatives(self, range_of: Callable[[str], tuple[float, float]]) -> Iterator[Alternative]:
        """Yield at most MAX_TRIED alternatives of each column, the smallest change first."""
        card = self.parts.scorecard
        for spec, term_points in points_by_column(card.encoding, card.points):
            if not term_points.any():
                continue
            rated = (
                (value, self.ratio(spec, value), text)
                for value, text in self._candidates(spec, term_points)
            )
            for value, ratio, text in islice((r for r in rated if self._differs(r[1])), MAX_TRIED):
                is_seen = True
                if isinstance(spec, NumericTerms):
                    low, high = range_of(spec.name)
                    is_seen = low <= float(value) <= high
                yield Alternative(spec.name, value, ratio, is_seen, text)

    def ratio(self, spec: ColumnTerms, value: Value) -> float:
        """Return r with another value of one column, exactly as the update computes it."""
        if spec.kind == "numeric":
            other = Column(spec.name, "numeric", np.array([value], dtype=np.float64))
        else:
            other = Column(spec.name, "category", np.array([0]), (value,))
        changed = [other if c.name == spec.name else c for c in self.columns]
        return float(self.parts.ratio(changed)[0])

    def _differs(self, ratio: float) -> bool:
        """Return whether r is on the other side of 0 than the person's own."""
        return (ratio >= 0) if self.is_change else (ratio < 0)

    def _candidates(
        self, spec: ColumnTerms, term_points: np.ndarray
    ) -> Iterator[tuple[Value, str]]:
        """Yield values to try with their texts, the smallest change first."""
        (value,) = values_of(next(c for c in self.columns if c.name == spec.name))
        if isinstance(spec, CategoryTerms):
            return _other_categories(spec, term_points, value)
        if isinstance(spec, BinTerms):
            return _other_bins(spec, value)
        return self._other_numbers(spec, float(term_points[0] * self.parts.per_point[0]), value)

    def _other_numbers(
        self, spec: NumericTerms, slope: float, value: Value | None
    ) -> Iterator[tuple[Value, str]]:
        """Yield the nearest round number with which r, of this slope, is on the other side of 0."""
        if not slope:
            return
        current = spec.fill if value is None else float(value)
        edge = current - self.ratio(spec, current) / slope
        if not math.isfinite(edge):
            return
        is_up = edge >= current
        is_whole = value is not None and current == int(current)
        tolerance = ROUNDING_TOLERANCE * abs(edge - current) + 1e-12 * abs(edge)
        for digits in range(0 if is_whole else -int(math.log10(abs(edge - current) or 1.0)), 17):
            unit = 10.0**-digits
            steps = edge / unit
            for extra in (0, 1):  # one step more: after rounding errors, or if r is 0 at the edge
                count = math.ceil(steps) + extra if is_up else math.floor(steps) - extra
                number = round(count * unit, max(digits, 0)) + 0.0
                is_near = is_whole or abs(number - edge) <= tolerance
                if is_near and self._differs(self.ratio(spec, number)):
                    text = f"{column_text(spec.name)} {'≥' if is_up else '≤'} {number_text(number)}"
                    yield number, text
                    return


def _other_categories(
    spec: CategoryTerms, term_points: np.ndarray, value: Value | None
) -> Iterator[tuple[Value, str]]:
    """Yield the other categories, those with the most similar points first."""
    is_known = value in spec.categories
    own_points = float(term_points[spec.categories.index(value)]) if is_known else 0.0
    for i in np.argsort(np.abs(term_points - own_points), kind="stable").tolist():
        other = spec.categories[i]
        if other is not None and other != value:
            yield other, _equals(spec.name, other)


def _other_bins(spec: BinTerms, value: Value | None) -> Iterator[tuple[Value, str]]:
    """Yield a value of each other bin, the nearest bins first."""
    current = spec.edges[0] if value is None else float(value)
    is_whole = value is not None and current == int(current)
    bounds = (-math.inf, *spec.edges, math.inf)
    bins = list(zip(bounds[:-1], bounds[1:], spec.term_names, strict=False))
    bins.sort(key=lambda b: max(b[0] - current, current - b[1], 0.0))
    for low, high, text in bins:
        if value is not None and low <= current < high:
            continue
        if current < low:
            yield (math.ceil(low) + 0.0 if is_whole and math.ceil(low) < high else low), text
        else:
            yield _just_below(high, max(low, high - abs(current) - 1), is_whole), text


def _just_below(high: float, low: float, is_whole: bool) -> float:
    """Return the largest number with few digits that is below `high` and not below `low`.

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


# ---------------------------------------------------------------------------------------------
# The sentence


def _sentence(
    decision: PersonDecision,
    cut: float | None,
    contributions: Sequence[Contribution],
    alternatives: Sequence[Alternative],
    score: ScoreUse,
) -> str:
    who, before = f"Row {decision.row}", value_text(decision.before)
    if decision.id is not None:
        kind = "" if isinstance(decision.id, str) else "id "
        who += f" ({kind}{value_text(decision.id)})"
    if decision.closed is not None:
        return f"{who} keeps {before}: {decision.closed}."
    ratio = f"{_sum_text(decision, cut)}r = {points(decision.ratio).removeprefix('+')}"
    if decision.direction is None:
        head = f"{who} keeps {before}: {ratio} is not below 0."
        reasons_head, sign = "What keeps it most", 1.0
    else:
        head = (
            f"{who} changes from {before} to {value_text(decision.after)}, a "
            f"{decision.direction} of the favourable outcome: {ratio} is below 0."
        )
        reasons_head, sign = "What moved it most", -1.0
    if cut is not None:  # points of the scorecard have another unit
        reasons_head += ", in parts of r"
    smallest = MIN_PUSH * max((c.points * sign for c in contributions), default=0.0)
    pushing = [c for c in contributions if c.points * sign > max(smallest, 0)][:MAX_REASONS]
    reasons = ", ".join(contribution_text(c.column, c.value, c.points) for c in pushing)
    parts = [
        head,
        f"{reasons_head}: {reasons}." if reasons else "",
        _alternatives_sentence(decision.direction is not None, alternatives, score),
    ]
    return " ".join(filter(None, parts))


def _sum_text(decision: PersonDecision, cut: float | None) -> str:
    """Return the sum of the points and the sum that a change needs; "" without evidence."""
    if cut is None:
        return ""
    needs = "a gain needs more than" if cut > 0 else "a loss needs less than"
    own, needed = distinct_pair(decision.raw_ratio, cut, digits=3)
    return f"its points add up to {own}, and {needs} {needed}. So ".replace("-", "−")


def _alternatives_sentence(
    is_change: bool, alternatives: Sequence[Alternative], score: ScoreUse
) -> str:
    would = "would have kept it" if is_change else "would change it"
    seen = [a.text for a in alternatives if a.is_seen]
    if seen:
        text = f"one other value {would}: {' or '.join(seen[:MAX_REASONS])}."
    elif score == "asked":  # the base model was asked about some values only
        text = f"no other value of a single column was found that {would}"
        if alternatives:
            text += f", except one that none of these people has: {alternatives[0].text}"
        text += "."
    elif alternatives:
        text = (
            f"no value of a single column that occurs among these people {would}, only "
            f"{alternatives[0].text}."
        )
    else:
        text = f"no other value of a single column {would}."
    if score == "asked":
        return text[0].upper() + text[1:]
    return f"With the {'score' if score == 'given' else 'base score'} as it is, {text}"
