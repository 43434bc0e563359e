"""The best condition of every column, from counts of right and wrong rows in its bins.

The quality of a rule is the F-measure of its precision and of the share of the rows to describe
that it does describe, lowered a little by each thing a reader has to take in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._binning import _roundest
from commod._explain.bins import Binned

__all__ = ["Measure", "Part", "best_parts", "in_range", "log_choices", "with_end_moved"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

BETA_2 = 0.35  # below 1: a rule that is right counts for more than one that says all
PRICE = 0.03  # of the quality: what a condition must add to earn its place
EXTRA_END = 0.5  # what more there is to read costs, in conditions: a range's second end,
EXTRA_VALUE = 0.25  # another category,
EXTRA_WORD = 0.3  # "or missing", "not"
MOST_VALUES = 6  # categories that a condition lists
MOST_EXCEPTIONS = 3  # categories that it excepts
ROUNDER = 0.01  # of the quality: what a rounder edge may cost


@dataclass(frozen=True)
class Part:
    """A condition on column number `column`: low ≤ x < high, or one of the bins `chosen`.

    `chosen` is None for a range. `missing` says whether a missing value satisfies it; `cost` is
    how much there is to read, in conditions.
    """

    column: int
    cost: float
    low: float | None = None
    high: float | None = None
    chosen: tuple[int, ...] | None = None
    missing: bool = False
    negated: bool = False

    def mask(self, binned: Binned) -> Mask:
        """Return which of the binned rows satisfy it, shape (n,)."""
        if self.chosen is None:
            values = binned.columns[self.column].column.values
            return in_range(values, self.low, self.high, self.missing)
        table = np.full(binned.width, self.negated)
        table[list(self.chosen)] = not self.negated
        table[-1] = self.missing
        return table[binned.codes[:, self.column] - self.column * binned.width]


def in_range(values: Floats, low: float | None, high: float | None, missing: bool) -> Mask:
    """Return where low ≤ value < high, shape (n,)."""
    inside = ~np.isnan(values) if low is None else values >= low
    if high is not None:
        inside &= values < high
    return inside | np.isnan(values) if missing else inside


def log_choices(part: Part, binned: Binned) -> float:
    """Return the logarithm of how many conditions of this form there are to choose from."""
    n_values = binned.columns[part.column].n_values
    if part.chosen is not None:
        choices = math.comb(n_values + 1, max(len(part.chosen), 1))
    elif part.low is None or part.high is None:
        choices = 2 * n_values
    else:
        choices = n_values * (n_values + 1) // 2
    return math.log(choices) + math.log(len(binned.columns))


@dataclass(frozen=True)
class Measure:
    """How good a rule is: a right row stands for `right_weight` people, a wrong one likewise.

    `n_people` are to be described.
    """

    right_weight: float
    wrong_weight: float
    n_people: float

    def f(self, right: Any, wrong: Any) -> Floats:
        """Return the F-measure of so many right and wrong rows, in [0, 1]."""
        people = self.right_weight * np.asarray(right, dtype=np.float64)
        size = people + self.wrong_weight * np.asarray(wrong)
        return (1 + BETA_2) * people / (size + BETA_2 * self.n_people)

    def quality(self, right: Any, wrong: Any, cost: Any) -> Floats:
        """Return the F-measure less what reading costs."""
        return self.f(right, wrong) * (1 - PRICE * cost)


def best_parts(
    measure: Measure, binned: Binned, right: Floats, wrong: Floats, cost: float
) -> Iterator[tuple[float, Part]]:
    """Yield the quality and the best conditions of each column for a rule that costs `cost`.

    `right` and `wrong` (c, width) count the rows of the rule in each bin.
    """
    n = binned.n_numeric
    if n:
        yield from _ranges(measure, binned, right[:n], wrong[:n], cost)
    if n < len(binned.columns):
        for negated in (False, True):
            yield from _lists(measure, binned, right[n:], wrong[n:], cost, negated)


# ---------------------------------------------------------------------------------------------
# Ranges


def _ranges(
    measure: Measure, binned: Binned, right: Floats, wrong: Floats, cost: float
) -> Iterator[tuple[float, Part]]:
    """Yield the best range of each number: of all ranges of bins, with and without missing."""
    ranges = binned.ranges
    inside = [_sums(counts, ranges.first, ranges.stop) for counts in (right, wrong)]
    missing = [counts[:, -1] for counts in (right, wrong)]
    has_missing = missing[0] + missing[1] > 0
    costs = np.where(ranges.is_none, 1 / PRICE, 1.0 + EXTRA_END * ranges.is_inner)
    no_choice = ranges.is_whole & ~has_missing[:, None]  # everybody is in the range
    plain = measure.quality(inside[0], inside[1], cost + costs) * ~no_choice
    yield from _best_ranges(binned, plain, costs, missing=False)
    if not has_missing.any():
        return
    added = [sums + some[:, None] for sums, some in zip(inside, missing, strict=True)]
    costs = costs + EXTRA_WORD
    is_choice = ~ranges.is_whole & has_missing[:, None]
    either = measure.quality(added[0], added[1], cost + costs) * is_choice
    yield from _best_ranges(binned, either, costs, missing=True)
    alone = measure.quality(missing[0], missing[1], cost + 1)
    for i in np.flatnonzero(has_missing).tolist():
        yield float(alone[i]), Part(i, 1.0, chosen=(), missing=True)


def _sums(counts: Floats, first: NDArray[np.intp], stop: NDArray[np.intp]) -> Floats:
    upto = np.zeros((len(counts), counts.shape[1] + 1))
    np.cumsum(counts, axis=1, out=upto[:, 1:])
    return upto[:, stop] - upto[:, first]


def _best_ranges(
    binned: Binned, quality: Floats, costs: Floats, *, missing: bool
) -> Iterator[tuple[float, Part]]:
    ranges = binned.ranges
    for i, place in enumerate(quality.argmax(axis=1).tolist()):
        if quality[i, place] <= 0:
            continue
        first, stop = int(ranges.first[place]), int(ranges.stop[place])
        edges = binned.columns[i].edges
        low = edges[first - 1] if first else None
        high = edges[stop - 1] if stop <= len(edges) else None
        part = Part(i, float(costs[i, place]), low=low, high=high, missing=missing)
        yield float(quality[i, place]), part


# ---------------------------------------------------------------------------------------------
# Lists of categories


def _lists(
    measure: Measure, binned: Binned, right: Floats, wrong: Floats, cost: float, negated: bool
) -> Iterator[tuple[float, Part]]:
    """Yield the best short list of categories, or of exceptions, of each column."""
    n = binned.n_numeric
    most = int(binned.n_values[n:].max())
    everybody = [counts.sum(axis=1) for counts in (right, wrong)]
    bins = [*range(most), binned.width - 1]  # rare ones cannot be listed
    right, wrong = right[:, bins], wrong[:, bins]
    # What a category adds to a ratio of sums is told by the ratio itself (Dinkelbach): it is taken
    # from the rule as it is, and then from the best list found.
    level = measure.f(*everybody)
    for _ in range(2):
        order = _worth_listing(measure, right, wrong, level, negated)
        listed = [
            np.cumsum(np.take_along_axis(counts, order, axis=1), axis=1)
            for counts in (right, wrong)
        ]
        if negated:
            listed = [all_[:, None] - some for all_, some in zip(everybody, listed, strict=True)]
        f = measure.f(*listed)
        level = np.maximum(level, f.max(axis=1))
    costs = 1 + EXTRA_VALUE * np.arange(order.shape[1]) + EXTRA_WORD * negated
    quality = f * (1 - PRICE * (cost + costs))
    for i, k in enumerate(quality.argmax(axis=1).tolist()):
        places = order[i, : k + 1].tolist()
        n_values = binned.columns[n + i].n_values
        chosen = tuple(sorted(place for place in places if place < n_values))
        missing = (most in places) != negated
        if chosen or most in places:
            part = Part(n + i, float(costs[k]), chosen=chosen, missing=missing, negated=negated)
            yield float(quality[i, k]), part


def _worth_listing(
    measure: Measure, right: Floats, wrong: Floats, level: Floats, negated: bool
) -> NDArray[np.intp]:
    """Return the categories to list, first those that add most at this quality."""
    people = measure.right_weight * right
    adds = (1 + BETA_2) * people - level[:, None] * (people + measure.wrong_weight * wrong)
    adds = np.where(right + wrong == 0, -np.inf, -adds if negated else adds)
    most = MOST_EXCEPTIONS if negated else MOST_VALUES
    return np.argsort(-adds, axis=1, kind="stable")[:, :most]


# ---------------------------------------------------------------------------------------------
# Edges between those of the bins


def with_end_moved(
    measure: Measure, binned: Binned, part: Part, right: Mask, wrong: Mask, *, is_low: bool
) -> Part:
    """Return a range with one end at the best place within the two bins that meet there.

    `right` and `wrong` are the rows that the other conditions of the rule leave.
    """
    cut = binned.columns[part.column]
    values, edge = cut.column.values, part.low if is_low else part.high
    assert edge is not None
    first = max((e for e in cut.edges if e < edge), default=-math.inf)
    stop = min((e for e in cut.edges if e > edge), default=math.inf)
    low, high = (None, part.high) if is_low else (part.low, None)
    other = in_range(values, low, high, missing=False)
    inside = [np.sort(values[rows & other]) for rows in (right, wrong)]
    near = np.concatenate([some[(some >= first) & (some < stop)] for some in inside])
    near = np.unique(near)
    if len(near) < 2:
        return part
    counts = []
    for some, rows in zip(inside, (right, wrong), strict=True):
        below = np.searchsorted(some, near[1:])
        n_missing = int((rows & np.isnan(values)).sum()) if part.missing else 0
        counts.append((len(some) - below if is_low else below) + n_missing)
    moved = _round_edge(near, measure.f(*counts))
    return replace(part, low=moved) if is_low else replace(part, high=moved)


def _round_edge(values: Floats, quality: Floats) -> float:
    """Return the roundest edge among those about as good as the best.

    `quality` (m − 1,) is that of an edge between two neighbours of the m rising `values`.
    """
    best = int(quality.argmax())
    is_exact = quality[best] > 1 - 1e-9  # nobody wrong, nobody left: round as far as it stays so
    worse = np.flatnonzero(quality < quality[best] * (1 - (1e-9 if is_exact else ROUNDER)))
    first = int(worse[worse < best].max(initial=-1)) + 1
    last = int(worse[worse > best].min(initial=len(quality))) - 1
    low, high = float(values[first]), float(values[last + 1])
    if (values != np.rint(values)).any():  # an edge between them need not be anybody's own value
        high = math.nextafter(high, low)
    return _roundest(low, high) if high > low else high
