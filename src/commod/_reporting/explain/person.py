"""Explain one person: what moved the decision, what would have kept it, and both in a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column
from commod._data.encoding import BinTerms, CategoryTerms, ColumnTerms, NumericTerms
from commod._data.tables import take_rows
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
class Person:
    """Why one decision changed or stayed.

    Attributes
    ----------
    row : int
    id : label or None
        The label of the row in the index of X; None if the index counts from 0.
    before, after : label
        The decisions.
    direction : {"gain", "loss"} or None
    ratio, raw_ratio : float
        The r that acts, and the sum of the points: r before it is held at 1, or the evidence.
    score_before, score_after : float
    closed : str or None
        Why the decision could not change; None if it could.
    start : float
        r with the mean points of the fit rows. If the points are evidence: of a person with the
        same base decision, at the mean distance from the threshold.
    contributions : tuple of Contribution
        r = start + the sum of their points; also for a person whose r is held at 1, who would have
        this r otherwise. The strongest push towards the actual decision comes first.
    cut : float or None
        If the points are evidence, the sum of points beyond which this decision changes: above
        it if it is positive (a gain), below it if it is negative (a loss). None without evidence.
    kept_by : tuple of Alternative
        For a changed decision, the smallest change of each single column that would have kept it.
        For a decision that stayed, the smallest that would have changed it. Empty if there is none.
    score : {"asked", "given", "not asked"}
        How the base score enters `kept_by`. "asked": the base model scored each edited row, and
        every alternative listed leads to the other decision. "given": the score is a column of X
        and stays as it is. "not asked": the base model failed on an edited row, so its score is
        taken as it is.
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
    start: float
    contributions: tuple[Contribution, ...]
    cut: float | None
    kept_by: tuple[Alternative, ...]
    score: ScoreUse

    def __repr__(self) -> str:
        return self.sentence

    @property
    def sentence(self) -> str:
        """Return all of this in plain words."""
        who, before = f"Row {self.row}", value_text(self.before)
        if self.id is not None:
            kind = "" if isinstance(self.id, str) else "id "
            who += f" ({kind}{value_text(self.id)})"
        if self.closed is not None:
            return f"{who} keeps {before}: {self.closed}."
        ratio = f"{self._sum_text()}r = {points(self.ratio).removeprefix('+')}"
        if self.direction is None:
            head = f"{who} keeps {before}: {ratio} is not below 0."
            reasons_head, sign = "What keeps it most", 1.0
        else:
            head = (
                f"{who} changes from {before} to {value_text(self.after)}, a "
                f"{self.direction} of the favourable outcome: {ratio} is below 0."
            )
            reasons_head, sign = "What moved it most", -1.0
        if self.cut is not None:  # points of the scorecard have another unit
            reasons_head += ", in parts of r"
        smallest = MIN_PUSH * max((c.points * sign for c in self.contributions), default=0.0)
        pushing = [c for c in self.contributions if c.points * sign > max(smallest, 0)]
        strongest = pushing[:MAX_REASONS]
        reasons = ", ".join(contribution_text(c.column, c.value, c.points) for c in strongest)
        parts = [head, f"{reasons_head}: {reasons}." if reasons else "", self._alternatives_text()]
        return " ".join(filter(None, parts))

    def _sum_text(self) -> str:
        """Return the sum of the points and the sum that a change needs; "" without evidence."""
        if self.cut is None:
            return ""
        needs = "a gain needs more than" if self.cut > 0 else "a loss needs less than"
        own, needed = distinct_pair(self.raw_ratio, self.cut, digits=3)
        return f"its points add up to {own}, and {needs} {needed}. So ".replace("-", "−")

    def _alternatives_text(self) -> str:
        would = "would have kept it" if self.direction else "would change it"
        seen = [a.text for a in self.kept_by if a.is_seen]
        if seen:
            text = f"one other value {would}: {' or '.join(seen[:MAX_REASONS])}."
        elif self.score == "asked":  # the base model was asked about some values only
            text = f"no other value of a single column was found that {would}"
            if self.kept_by:
                text += f", except one that none of these people has: {self.kept_by[0].text}"
            text += "."
        elif self.kept_by:
            text = (
                f"no value of a single column that occurs among these people {would}, only "
                f"{self.kept_by[0].text}."
            )
        else:
            text = f"no other value of a single column {would}."
        if self.score == "asked":
            return text[0].upper() + text[1:]
        return f"With the {'score' if self.score == 'given' else 'base score'} as it is, {text}"


def explain_person(
    known: Mapping[str, Any],
    parts: RatioParts,
    columns: Sequence[Column],
    range_of: Callable[[str], tuple[float, float]],
    fixed: Sequence[str] = (),
    trial: BaseModelTrial | None = None,
) -> Person:
    """Return why one decision changed or stayed.

    Parameters
    ----------
    known : mapping of str to Any
        The fields of `Person` from `row` to `closed`.
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
    is_change = known["direction"] is not None
    contributions = [
        Contribution(column.name, values_of(column)[0], float(added[0]))
        for column, added in parts.contributions(columns)
    ]
    contributions.sort(key=lambda c: c.points if is_change else -c.points)
    valid: list[Alternative] = []
    if known["closed"] is None:
        search = _AlternativeSearch(parts, columns, is_change)
        valid = [a for a in search.alternatives(range_of) if a.column not in fixed]
    score: ScoreUse = "given"
    if trial is not None:
        answers = trial([(a.column, a.value) for a in valid]) if valid else []
        score = "not asked" if answers is None else "asked"
        if answers is not None:
            # The text names one value, because the base model was asked about this value only.
            valid = [
                replace(a, ratio=ratio, text=_equals(a.column, a.value))
                for a, (ratio, is_other) in zip(valid, answers, strict=True)
                if is_other
            ]
    alternatives = list({a.column: a for a in reversed(valid)}.values())[::-1]  # first per column
    alternatives.sort(key=lambda a: not a.is_seen)
    return Person(
        **known,
        start=float(parts.start[0]),
        contributions=tuple(contributions),
        cut=None if parts.cuts is None else float(parts.cuts[0]),
        kept_by=tuple(alternatives),
        score=score,
    )


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
                number = round(count * unit, max(digits, 0))
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
        if current <= low:  # equal where the value is missing: the first edge stands for it
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
# Edit single values of one row, in a table of the same kind that the base model can read


def edited_rows(X: Any, row: int, edits: Sequence[tuple[str, Value]]) -> Any:
    """Return a table with the row as it is, followed by one copy per edit.

    An edit (column, value) sets one column of its copy. Columns keep their types and categories. A
    type that cannot hold a new value is replaced by one that can.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [18, 40], "town": pd.Categorical(["Oslo", "Rome"])})
    >>> edited = edited_rows(X, 1, [("age", 25.0), ("town", "Oslo")])
    >>> edited.to_dict("list"), str(edited.dtypes["town"])
    ({'age': [40, 25, 40], 'town': ['Rome', 'Rome', 'Oslo']}, 'category')
    """
    rows = np.full(len(edits) + 1, row, dtype=np.intp)
    copies = take_rows(X, rows)
    changes: dict[str, dict[int, Value]] = {}
    for i, (name, value) in enumerate(edits, start=1):
        changes.setdefault(name, {})[i] = value
    if isinstance(copies, np.ndarray):
        return _edited_array(copies, changes)
    frame = nw.from_native(copies, eager_only=True)
    edited = [
        _edited_series(series, changes[str(series.name)])
        for series in frame.iter_columns()
        if str(series.name) in changes
    ]
    return frame.with_columns(*edited).to_native()


def _edited_array(array: NDArray[Any], changes: dict[str, dict[int, Value]]) -> NDArray[Any]:
    for column, new_values in changes.items():
        for i, value in new_values.items():
            if array.dtype != object and not _fits(value, array.dtype):
                array = array.astype(np.result_type(array.dtype, np.asarray([value]).dtype))
            array[i, int(column.removeprefix("x"))] = value
    return array


def _fits(value: Value, dtype: np.dtype[Any]) -> bool:
    """Return whether an array of this type can hold the value."""
    if dtype.kind in "iu":
        return float(value).is_integer()
    return dtype.kind != "U" or 4 * len(str(value)) <= dtype.itemsize


def _edited_series(series: nw.Series[Any], new_values: dict[int, Value]) -> nw.Series[Any]:
    values: list[Any] = series.to_list()
    for i, value in new_values.items():
        values[i] = value
    if series.dtype.is_integer():
        is_whole = all(float(value).is_integer() for value in new_values.values())
        values = [v if v is None or v != v else (int if is_whole else float)(v) for v in values]
    native = series.to_native()
    if nw.dependencies.is_pandas_series(native):
        return nw.from_native(_pandas_series(native, values), series_only=True)
    try:
        return nw.new_series(series.name, values, series.dtype, backend=series.implementation)
    except (TypeError, ValueError, OverflowError):
        return nw.new_series(series.name, values, backend=series.implementation)


def _pandas_series(old: Any, values: list[Any]) -> Any:
    """Return the values with the type of the old series; new categories are added to the type."""
    dtype = old.dtype
    if hasattr(dtype, "categories"):
        known = [v for v in dict.fromkeys(values) if v == v and v is not None]
        new_categories = [v for v in known if v not in dtype.categories]
        dtype = old.cat.add_categories(new_categories).dtype
    try:
        return type(old)(values, index=old.index, name=old.name, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        return type(old)(values, index=old.index, name=old.name)
