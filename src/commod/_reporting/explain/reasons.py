"""What each raw column adds to r, row by row, and the strongest of it in words.

A column counts by how far its points are from their mean over the fit rows, so that no column is a
reason for being what most people have: r = start + Σ contributions, where `start` is the mean r of
the fit rows. That needs nothing but the scorecard, and no row is compared with those that happen to
be explained beside it: a scorecard knows the mean of every number, and that of every concept. Where
several columns of categories or bins share a concept, the mean of their sum alone is known; see
`_shared_out`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column
from commod._data.encoding import CategoryTerms, ColumnTerms, Encoding, NumericTerms
from commod._reporting.explain.words import column_text, short_value, signed
from commod.scorecard import Scorecard

Floats = NDArray[np.float64]

WORTH_SAYING = 0.01  # of the strongest push: less explains nothing
RARE = 0.1  # a share of rows that may well be missing


def start_of(scorecard: Scorecard) -> float:
    """Return r for a person all of whose columns have their mean points: that of the fit rows."""
    return float(scorecard.intercept) + float(column_means(scorecard).sum())


def column_means(scorecard: Scorecard) -> Floats:
    """Return the mean points of each column of the encoding over the fit rows, shape (columns,).

    Exact for numbers without points for missing, and where a concept has one other column at most.
    """
    means = np.zeros(len(scorecard.encoding.columns))
    concepts = zip(
        scorecard.contributions.tolist(),
        scorecard.concept_points,
        scorecard.concept_intercepts.tolist(),
        strict=True,
    )
    for weight, points, start in concepts:
        if weight:  # concepts are centred on the fit rows: start + Σ means of columns = 0
            columns = [_Mean.of(*entry) for entry in _with_points(scorecard.encoding, points)]
            means += weight * _shared_out(columns, -start)
    return means


def _with_points(encoding: Encoding, points: Floats) -> Iterator[tuple[ColumnTerms, Floats]]:
    first = 0
    for spec in encoding.columns:
        yield spec, points[first : first + spec.n_terms]
        first += spec.n_terms


@dataclass(frozen=True)
class _Mean:
    """The mean points of a column: a guess, how unsure it is, and the ends it cannot be beyond.

    Missing values are guessed to be rare, bins and categories to be alike in size.
    """

    guess: float
    doubt: float
    low: float
    high: float

    @classmethod
    def of(cls, spec: ColumnTerms, points: Floats) -> _Mean:
        """Return what the points alone tell about their mean."""
        if isinstance(spec, NumericTerms):
            mean, missing = float(points[0]) * spec.fill, float(points[1:].sum())
            ends = sorted([mean, mean + missing])
            return cls(mean, RARE * missing**2, *ends)
        if isinstance(spec, CategoryTerms):
            is_value = np.array([category is not None for category in spec.categories])
        else:
            is_value = np.arange(len(points)) <= len(spec.edges)  # behind them: missing
        guess = float(points[is_value].mean()) if is_value.any() else 0.0
        low, high = min(float(points.min()), 0.0), max(float(points.max()), 0.0)  # 0 for rare ones
        return cls(guess, (high - low) ** 2 / (len(points) + 1), low, high)


def _shared_out(columns: Sequence[_Mean], total: float) -> Floats:
    """Return the mean of each column, shape (columns,), so that they sum up to `total`.

    What the sum of the guesses lacks goes to those that are unsure, as far as a mean can go.
    """
    guess, doubt, low, high = np.array([[c.guess, c.doubt, c.low, c.high] for c in columns]).T
    if not doubt.any():
        return guess

    def means(step: float) -> Floats:
        return np.clip(guess + step * doubt, low, high)

    # the sum rises with the step, along a straight line between those where a mean meets an end
    moving = doubt > 0
    ends = np.concatenate([(end - guess)[moving] / doubt[moving] for end in (low, high)])
    steps = np.unique(ends)
    sums = np.array([means(step).sum() for step in steps.tolist()])
    return means(float(np.interp(total, sums, steps)))


def added_by_column(
    scorecard: Scorecard, columns: Sequence[Column]
) -> Iterator[tuple[Column, Floats]]:
    """Yield each column that has points with what it adds to r on each row, shape (n,).

    0 is what it adds on average over the fit rows.
    """
    given = {c.name: c for c in columns}
    means = column_means(scorecard).tolist()
    entries = _with_points(scorecard.encoding, scorecard.points)
    for (spec, points), mean in zip(entries, means, strict=True):
        if points.any():
            column = given[spec.name]
            yield column, Encoding((spec,)).encode([column]).total(points, -mean) + 0.0


def strongest(
    scorecard: Scorecard,
    columns: Sequence[Column],
    towards: Floats,
    most: int,
    skip: Collection[str] = (),
) -> list[str]:
    """Return the contributions that push most into a direction, as short texts; no negligible ones.

    `towards` (n,) is −1 where those below 0 are wanted, 1 where those above.
    """
    added = added_by_column(scorecard, columns)
    found = [(column, values) for column, values in added if column.name not in skip]
    n = len(towards)
    if not found:
        return [""] * n
    pushes = np.column_stack([values for _, values in found]) * towards[:, None]
    order = np.argsort(-pushes, axis=1, kind="stable")[:, :most]
    rank_of = np.full(pushes.shape, -1, dtype=np.intp)
    np.put_along_axis(rank_of, order, np.arange(order.shape[1])[None, :], axis=1)
    rank_of[pushes <= WORTH_SAYING * pushes.max(axis=1, keepdims=True, initial=0.0)] = -1
    written = np.full((n, order.shape[1]), "", dtype=object)
    for i, (column, values) in enumerate(found):
        rows = np.flatnonzero(rank_of[:, i] >= 0)
        written[rows, rank_of[rows, i]] = _texts(column.take(rows), values[rows])
    return ["; ".join(filter(None, parts)) for parts in written.tolist()]


def _texts(column: Column, added: Floats) -> list[str]:
    """Return "column = value (points)" of each row; equal rows are written once."""
    known: dict[tuple[object, float], str] = {}
    texts = []
    for pair in zip(values_of(column), added.tolist(), strict=True):
        if pair not in known:
            known[pair] = f"{column_text(column.name)} = {short_value(pair[0])} ({signed(pair[1])})"
        texts.append(known[pair])
    return texts


def values_of(column: Column) -> list[str | bool | int | float | None]:
    """Return the values of a column as plain Python, None where missing."""
    if column.kind == "category":
        table = np.array([*column.categories, None], dtype=object)
        return table[column.values].tolist()
    return [None if value != value else value for value in column.values.tolist()]
