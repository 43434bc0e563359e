"""Compute what each raw column adds to r, row by row, and write the strongest as reasons.

A column counts by the distance of its points from their mean over the fit rows, so that a value
that most people have is not a reason. That is, r = start + Σ contributions, where `start` is r with
the mean points of the fit rows. If the sum of the points is evidence, a point pushes people with
the unfavourable base decision and people with the favourable one in opposite directions.

The means come from the scorecard alone, and do not depend on which rows are explained together. A
scorecard knows the mean of every number, and the mean of every concept. If several columns of
categories or bins share a concept, only the mean of their sum is known; `_distribute` splits it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from commod._data.arrays import Floats, Mask
from commod._data.columns import Column
from commod._data.encoding import CategoryTerms, ColumnTerms, Encoding, NumericTerms
from commod._record.explanation import Condition, Value
from commod._text import points as signed_points
from commod._text import shorten
from commod.scorecard import DISTANCE_COLUMN, EvidenceRule, Scorecard, distances

MIN_PUSH = 0.01  # of the strongest push: a weaker one explains nothing
MISSING_SHARE = 0.1  # an upper estimate of the share of missing values


def ratio_per_point(rule: EvidenceRule | None, favorable: Mask) -> Floats:
    """Return what one point of a scorecard adds to the r of each person, shape (n,).

    It is 1 if the sum of the points is r. If the sum is evidence, it is −1 / cut for people
    with the unfavourable base decision, and 1 / cut for people with the favourable one.

    Examples
    --------
    >>> import numpy as np
    >>> ratio_per_point(EvidenceRule(cut=0.5), np.array([False, True]))
    array([-2.,  2.])
    """
    if rule is None:
        return np.ones(len(favorable))
    return np.where(favorable, 1.0, -1.0) / rule.cut


@dataclass(frozen=True, eq=False)
class RatioParts:
    """The r of n people as a start and what each column adds; r as it is where it may act.

    `scores` (n,) are base scores in the unit that is deployed. They matter where the sum of the
    points is evidence: their side of the threshold decides the sign of each contribution, and their
    distance from the threshold adds nearness · (distance / mean distance − 1).
    """

    scorecard: Scorecard
    scores: Floats
    threshold: float

    @cached_property
    def per_point(self) -> Floats:
        """Return what one point of the scorecard adds to r, shape (n,)."""
        rule = self.scorecard.rule
        if rule is None:
            return np.ones(len(self.scores))
        return ratio_per_point(rule, rule.is_favorable(self.scores, self.threshold))

    @property
    def start(self) -> Floats:
        """Return r with mean points, and at the mean distance from the threshold, shape (n,)."""
        mean = float(self.scorecard.intercept) + float(column_means(self.scorecard).sum())
        return (self.scorecard.rule is not None) + self.per_point * mean

    @property
    def cuts(self) -> Floats | None:
        """Return the sum of points beyond which each decision changes, (n,); None without a rule.

        It is above 0 for people who may gain, and below 0 for people who may lose.
        """
        rule = self.scorecard.rule
        if rule is None:
            return None
        return -rule.costs(distances(self.scores, self.threshold)) / self.per_point

    def ratio(self, columns: Sequence[Column]) -> Floats:
        """Return r of each row, shape (n,), exactly as the update computes it where it may act."""
        total, rule = self.scorecard.ratio(columns), self.scorecard.rule
        return total if rule is None else rule.ratio(total, self.scores, self.threshold)

    def contributions(self, columns: Sequence[Column]) -> Iterator[tuple[Column, Floats]]:
        """Yield each column that matters with what it adds to r on each row, shape (n,).

        A contribution is 0 on average over the fit rows.
        """
        card, rule = self.scorecard, self.scorecard.rule
        column_of = {column.name: column for column in columns}
        means = column_means(card).tolist()
        entries = points_by_column(card.encoding, card.points)
        for (spec, points), mean in zip(entries, means, strict=True):
            if points.any():
                column = column_of[spec.name]
                total = Encoding((spec,)).encode([column]).total(points, -mean)
                yield column, self.per_point * total + 0.0
        if rule is not None and rule.nearness:
            distance = distance_column(self.scores, self.threshold)
            yield distance, rule.costs(distance.values) - 1.0


def reads_distance(scorecard: Scorecard) -> bool:
    """Return whether r depends on the distance of the score from the threshold."""
    has_cost = scorecard.rule is not None and scorecard.rule.nearness > 0
    return has_cost or DISTANCE_COLUMN in scorecard.columns_used


def distance_column(scores: Floats, threshold: float) -> Column:
    """Return the distance of each score from the threshold as a column."""
    return Column(DISTANCE_COLUMN, "numeric", distances(scores, threshold))


def column_means(scorecard: Scorecard) -> Floats:
    """Return the mean points of each column of the encoding over the fit rows, shape (columns,).

    A mean is exact for a number without points for missing values, and where at most one column of
    the concept is anything else.
    """
    means = np.zeros(len(scorecard.encoding.columns))
    concepts = zip(
        scorecard.contributions.tolist(),
        scorecard.concept_points,
        scorecard.concept_intercepts.tolist(),
        strict=True,
    )
    for weight, points, intercept in concepts:
        if weight:  # concepts are centred on the fit rows: intercept + Σ means of columns = 0
            by_column = points_by_column(scorecard.encoding, points)
            means += weight * _distribute([_mean_points(*c) for c in by_column], -intercept)
    return means


def points_by_column(encoding: Encoding, points: Floats) -> Iterator[tuple[ColumnTerms, Floats]]:
    """Yield each column of an encoding with the points of its terms."""
    first = 0
    for spec in encoding.columns:
        yield spec, points[first : first + spec.n_terms]
        first += spec.n_terms


def _mean_points(spec: ColumnTerms, points: Floats) -> tuple[float, float, float, float]:
    """Return what the points of a column say about their mean: an estimate, its variance, bounds.

    The estimate assumes that missing values are rare, and that bins and categories have equal
    sizes.
    """
    if isinstance(spec, NumericTerms):
        mean, missing = float(points[0]) * (spec.fill - spec.centre), float(points[1:].sum())
        return (
            mean,
            MISSING_SHARE * missing**2,
            min(mean, mean + missing),
            max(mean, mean + missing),
        )
    if isinstance(spec, CategoryTerms):
        is_value = np.array([category is not None for category in spec.categories])
    else:
        is_value = np.arange(len(points)) <= len(spec.edges)  # the term behind them: missing
    mean = float(points[is_value].mean()) if is_value.any() else 0.0
    low, high = min(float(points.min()), 0.0), max(float(points.max()), 0.0)  # rare values: 0
    return mean, (high - low) ** 2 / (len(points) + 1), low, high


def _distribute(columns: Sequence[tuple[float, ...]], total: float) -> Floats:
    """Return the mean of each column, shape (columns,), so that the means add up to `total`.

    `columns` are what `_mean_points` returns of each. The difference between `total` and the sum of
    the estimates is distributed in proportion to the variances, within the bounds.
    """
    estimate, variance, low, high = np.array(columns).T
    if not variance.any():
        return estimate

    def means(step: float) -> Floats:
        return np.clip(estimate + step * variance, low, high)

    # The sum of the means rises with the step, linearly between steps where one meets a bound.
    moving = variance > 0
    bounds = np.stack([low, high])[:, moving]
    steps = np.unique((bounds - estimate[moving]) / variance[moving])
    sums = np.array([means(step).sum() for step in steps.tolist()])
    return means(float(np.interp(total, sums, steps)))


def strongest_reasons(
    parts: RatioParts,
    columns: Sequence[Column],
    sign: Floats,
    n_reasons: int,
    skip: Collection[str] = (),
) -> list[str]:
    """Return the strongest contributions of each row as text, without negligible ones.

    `sign` (n,) is −1 if negative contributions are reasons, and 1 if positive ones are.
    """
    contributions = [
        (column, added) for column, added in parts.contributions(columns) if column.name not in skip
    ]
    if not contributions:
        return [""] * len(sign)
    pushes = np.column_stack([added for _, added in contributions]) * sign[:, None]
    order = np.argsort(-pushes, axis=1, kind="stable")[:, :n_reasons]
    rank_of = np.full(pushes.shape, -1, dtype=np.intp)
    np.put_along_axis(rank_of, order, np.arange(order.shape[1])[None, :], axis=1)
    rank_of[pushes <= MIN_PUSH * pushes.max(axis=1, keepdims=True, initial=0.0)] = -1
    texts = np.full(order.shape, "", dtype=object)
    for i, (column, added) in enumerate(contributions):
        rows = np.flatnonzero(rank_of[:, i] >= 0)
        texts[rows, rank_of[rows, i]] = _texts(column.take(rows), added[rows])
    return ["; ".join(filter(None, row)) for row in texts.tolist()]


def _texts(column: Column, added: Floats) -> list[str]:
    """Return "column = value (points)" of each row; equal rows are written once."""
    write = cache(contribution_text)
    pairs = zip(values_of(column), added.tolist(), strict=True)
    return [write(column.name, value, points) for value, points in pairs]


def values_of(column: Column) -> list[Value | None]:
    """Return the values of a column as plain Python, None if missing."""
    if column.kind == "category":
        table = np.array([*column.categories, None], dtype=object)
        return table[column.values].tolist()
    return [None if value != value else value for value in column.values.tolist()]


# ---------------------------------------------------------------------------------------------
# Write numbers, values, conditions and rules as people read them

LONGEST_VALUE = 80  # characters
_PART_OF_A_RULE = re.compile("[,;=<>≤≥“”]|\\b(and|or)\\b|^missing$")


def column_text(name: str) -> str:
    """Return the name of a column; a number or a blank name follows the word "column".

    Examples
    --------
    >>> column_text("age"), column_text("2"), column_text(" ")
    ('age', 'column 2', 'column “ ”')
    """
    if not _is_ambiguous(name):
        return shorten(name)
    is_blank = name.strip() != name or not name
    return f"column {value_text(name) if is_blank else name}"


def _is_ambiguous(text: str) -> bool:
    """Return whether text starts or ends with a blank, is empty, or looks like a number."""
    try:
        float(text)
    except ValueError:
        return text.strip() != text or not text
    return True


def number_text(number: float) -> str:
    """Return the shortest text that reads back as this number, without an exponent if possible.

    Examples
    --------
    >>> number_text(25.0), number_text(0.1 + 0.2), number_text(1_200_000.0)
    ('25', '0.30000000000000004', '1200000')
    """
    if number == int(number) and abs(number) < 1e15:
        return str(int(number))
    return repr(float(number))


def value_text(value: Value | None) -> str:
    """Return one value as text; text that could be mistaken for something else is quoted.

    Examples
    --------
    >>> value_text(52.0), value_text("F"), value_text(None), value_text(" "), value_text("52")
    ('52', 'F', 'missing', '“ ”', '“52”')
    >>> value_text("North, not Oslo"), value_text("missing")
    ('“North, not Oslo”', '“missing”')
    >>> value_text("a, " * 100)[-4:]
    'a,…”'
    """
    if value is None:
        return "missing"
    if isinstance(value, str):
        if not (_is_ambiguous(value) or _PART_OF_A_RULE.search(value)):
            return shorten(value, LONGEST_VALUE)
        quoted = shorten(f"“{value}”", LONGEST_VALUE - 1)
        return quoted if quoted.endswith("”") else f"{quoted}”"
    return str(value) if isinstance(value, bool) else number_text(value)


def short_value(value: Value | None) -> str:
    """Return `value_text`, but a number with at most seven significant digits.

    Examples
    --------
    >>> short_value(-2.51926849063594), short_value(123456.0), short_value("F")
    ('-2.519268', '123456', 'F')
    """
    is_fraction = isinstance(value, float) and not value.is_integer()
    return f"{value:.7g}" if is_fraction else value_text(value)


def contribution_text(column: str, value: Value | None, added: float) -> str:
    """Return a column, its value, and the points that it adds to r.

    Examples
    --------
    >>> contribution_text("priors", 0, -0.6234)
    'priors = 0 (−0.623)'
    """
    return f"{column_text(column)} = {short_value(value)} ({signed_points(added)})"


def condition_text(condition: Condition, some_missing: bool = True) -> str:
    """Return one condition in words; `some_missing` says whether the column has missing values.

    Examples
    --------
    >>> condition_text(Condition("age", None, 25.0, None, False, False, ""))
    'age < 25'
    >>> condition_text(Condition("town", None, None, ("Oslo",), False, True, ""))
    'town is known and not Oslo'
    """
    column, values = column_text(condition.column), condition.values
    or_missing = " (or missing)" if condition.missing else ""
    if values is None:
        return _range_text(column, condition.low, condition.high) + or_missing
    if not values:
        return f"{column} is missing" if condition.missing else f"{column} is not missing"
    listed = ", ".join(value_text(value) for value in values)
    one_of = "one of " if len(values) > 1 else ""
    if not condition.negated:
        return f"{column} {'is one of' if one_of else '='} {listed}{or_missing}"
    known = "known and " if some_missing and not condition.missing else ""
    return f"{column} is {known}not {one_of}{listed}{or_missing if some_missing else ''}"


def _range_text(column: str, low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"{number_text(low)} ≤ {column} < {number_text(high)}"
    if high is not None:
        return f"{column} < {number_text(high)}"
    return f"{column} is not missing" if low is None else f"{column} ≥ {number_text(low)}"


def rule_text(conditions: Sequence[Condition]) -> str:
    """Return a rule in words: "everyone" where it has no condition."""
    return " and ".join(condition.text for condition in conditions) or "everyone"
