"""What each raw column adds to r, row by row, and the strongest of it in words.

A number counts by its distance from the mean of the fit rows, a category or a bin by its points:
r = start + Σ contributions, where `start` is r for somebody with average numbers and no category
that has points. That needs nothing but the scorecard, and no row is compared with those that happen
to be explained beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from commod._encoding import Encoding, NumericTerms
from commod._explain.words import cut, short_value, signed
from commod._inputs import Column
from commod.scorecard import Scorecard

__all__ = ["WORTH_SAYING", "added_by_column", "start_of", "strongest"]

Floats = NDArray[np.float64]

WORTH_SAYING = 0.01  # of the strongest push: less explains nothing


def start_of(scorecard: Scorecard) -> float:
    """Return r for a person with average numbers and no category that has points."""
    start, first = float(scorecard.intercept), 0
    for spec in scorecard.encoding.columns:
        if isinstance(spec, NumericTerms):
            start += float(scorecard.points[first]) * spec.fill
        first += spec.n_terms
    return start


def added_by_column(
    scorecard: Scorecard, columns: Sequence[Column]
) -> Iterator[tuple[Column, Floats]]:
    """Yield each column that has points with what it adds to r on each row, shape (n,)."""
    given = {c.name: c for c in columns}
    first = 0
    for spec in scorecard.encoding.columns:
        points = scorecard.points[first : first + spec.n_terms]
        first += spec.n_terms
        if not points.any():
            continue
        column = given[spec.name]
        start = -float(points[0]) * spec.fill if isinstance(spec, NumericTerms) else 0.0
        yield column, Encoding((spec,)).encode([column]).total(points, start) + 0.0


def strongest(
    scorecard: Scorecard, columns: Sequence[Column], towards: Floats, most: int
) -> list[str]:
    """Return the contributions that push most into a direction, as short texts; no negligible ones.

    `towards` (n,) is −1 where those below 0 are wanted, 1 where those above.
    """
    found = list(added_by_column(scorecard, columns))
    n = len(towards)
    if not found:
        return [""] * n
    pushes = np.column_stack([added for _, added in found]) * towards[:, None]
    order = np.argsort(-pushes, axis=1, kind="stable")[:, :most]
    rank_of = np.full(pushes.shape, -1, dtype=np.intp)
    np.put_along_axis(rank_of, order, np.arange(order.shape[1])[None, :], axis=1)
    rank_of[pushes <= WORTH_SAYING * pushes.max(axis=1, keepdims=True, initial=0.0)] = -1
    written = np.full((n, order.shape[1]), "", dtype=object)
    for i, (column, added) in enumerate(found):
        rows = np.flatnonzero(rank_of[:, i] >= 0)
        written[rows, rank_of[rows, i]] = _texts(column.take(rows), added[rows])
    return ["; ".join(filter(None, parts)) for parts in written.tolist()]


def _texts(column: Column, added: Floats) -> list[str]:
    """Return "column = value (points)" of each row; equal rows are written once."""
    known: dict[tuple[object, float], str] = {}
    texts = []
    for pair in zip(values_of(column), added.tolist(), strict=True):
        if pair not in known:
            known[pair] = f"{cut(column.name)} = {short_value(pair[0])} ({signed(pair[1])})"
        texts.append(known[pair])
    return texts


def values_of(column: Column) -> list[str | bool | int | float | None]:
    """Return the values of a column as plain Python, None where missing."""
    if column.kind == "category":
        table = np.array([*column.categories, None], dtype=object)
        return table[column.values].tolist()
    return [None if value != value else value for value in column.values.tolist()]
