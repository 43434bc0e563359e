"""The best condition of every column, from counts of right and wrong rows in its bins.

The quality of a rule is the F-measure of its precision and of the share of the rows to describe
that it does describe, lowered a little by each thing a reader has to take in. A rule that is wrong
too often describes nobody, however many it reaches: for each column the best condition of all is
found, and where that one is not right often enough the best that is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.binning import roundest_number
from commod._reporting.explain.bins import Binned

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
LEAST_PRECISION = 0.5  # a rule that is not right more often than wrong does not say who changes
LEAST_ODDS = 2.0  # against chance: below, a rule says hardly anything


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

    `n_people` are to be described. A rule needs `least_right` right rows, and more than
    `least_ratio` of them for each wrong one.
    """

    right_weight: float
    wrong_weight: float
    n_people: float
    least_right: float = 1.0
    least_ratio: float = 0.0

    @classmethod
    def of(
        cls, n_right: int, n_wrong: int, weights: tuple[float, float], least_right: float
    ) -> Measure:
        """Return the measure of rules for so many rows, of which a rule must beat the odds."""
        odds = LEAST_ODDS * n_right / n_wrong if n_wrong else 0.0
        even = LEAST_PRECISION / (1 - LEAST_PRECISION) * weights[1] / weights[0]
        return cls(*weights, weights[0] * n_right, least_right, max(odds, even))

    def is_enough(self, right: Any, wrong: Any) -> Mask:
        """Return whether so many right and wrong rows are right often enough to say who changes."""
        right = np.asarray(right, dtype=np.float64)
        return (right >= self.least_right) & (right > self.least_ratio * np.asarray(wrong))

    def f(self, right: Any, wrong: Any) -> Floats:
        """Return the F-measure of so many right and wrong rows, in [0, 1]."""
        people = self.right_weight * np.asarray(right, dtype=np.float64)
        size = people + self.wrong_weight * np.asarray(wrong)
        return (1 + BETA_2) * people / (size + BETA_2 * self.n_people)

    def quality(self, right: Any, wrong: Any, cost: Any) -> Floats:
        """Return the F-measure less what reading costs."""
        return self.f(right, wrong) * (1 - PRICE * cost)


class Found(NamedTuple):
    """A condition, the quality it would give a rule, and whether that is right often enough."""

    quality: float
    is_enough: bool
    part: Part


def best_parts(
    measure: Measure, binned: Binned, right: Floats, wrong: Floats, cost: float
) -> Iterator[Found]:
    """Yield the best conditions of each column for a rule that costs `cost`.

    `right` and `wrong` (c, width) count the rows of the rule in each bin.
    """
    n = binned.n_numeric
    if n:
        yield from _ranges(measure, binned, right[:n], wrong[:n], cost)
    if n < len(binned.columns):
        yield from _lists(measure, binned, right[n:], wrong[n:], cost)


# ---------------------------------------------------------------------------------------------
# Ranges


def _ranges(
    measure: Measure, binned: Binned, right: Floats, wrong: Floats, cost: float
) -> Iterator[Found]:
    """Yield the best range of each number: of all ranges of bins, with and without missing."""
    ranges = binned.ranges
    inside = [_sums(counts, ranges.first, ranges.stop) for counts in (right, wrong)]
    missing = [counts[:, -1] for counts in (right, wrong)]
    has_missing = missing[0] + missing[1] > 0
    costs = np.where(ranges.is_none, 1 / PRICE, 1.0 + EXTRA_END * ranges.is_inner)
    no_choice = ranges.is_whole & ~has_missing[:, None]  # everybody is in the range
    plain = measure.quality(inside[0], inside[1], cost + costs) * ~no_choice
    enough = measure.is_enough(*inside)
    yield from _best_ranges(binned, plain, enough, costs, missing=False)
    if not has_missing.any():
        return
    added = [sums + some[:, None] for sums, some in zip(inside, missing, strict=True)]
    costs = costs + EXTRA_WORD
    is_choice = ~ranges.is_whole & has_missing[:, None]
    either = measure.quality(added[0], added[1], cost + costs) * is_choice
    yield from _best_ranges(binned, either, measure.is_enough(*added), costs, missing=True)
    alone = measure.quality(missing[0], missing[1], cost + 1)
    enough = measure.is_enough(*missing)
    for i in np.flatnonzero(has_missing).tolist():
        yield Found(float(alone[i]), bool(enough[i]), Part(i, 1.0, chosen=(), missing=True))


def _sums(counts: Floats, first: NDArray[np.intp], stop: NDArray[np.intp]) -> Floats:
    upto = np.zeros((len(counts), counts.shape[1] + 1))
    np.cumsum(counts, axis=1, out=upto[:, 1:])
    return upto[:, stop] - upto[:, first]


def _best_ranges(
    binned: Binned, quality: Floats, enough: Mask, costs: Floats, *, missing: bool
) -> Iterator[Found]:
    ranges = binned.ranges
    for i, place in _best_places(quality, enough):
        if quality[i, place] <= 0:
            continue
        first, stop = int(ranges.first[place]), int(ranges.stop[place])
        edges = binned.columns[i].edges
        low = edges[first - 1] if first else None
        high = edges[stop - 1] if stop <= len(edges) else None
        part = Part(i, float(costs[i, place]), low=low, high=high, missing=missing)
        yield Found(float(quality[i, place]), bool(enough[i, place]), part)


def _best_places(quality: Floats, enough: Mask) -> Iterator[tuple[int, int]]:
    """Yield each row with its best place, and with the best that is enough where that is not."""
    best = quality.argmax(axis=1)
    yield from enumerate(best.tolist())
    rows = np.flatnonzero(~enough[np.arange(len(best)), best] & enough.any(axis=1))
    strict = np.where(enough[rows], quality[rows], -np.inf).argmax(axis=1)
    yield from zip(rows.tolist(), strict.tolist(), strict=True)


# ---------------------------------------------------------------------------------------------
# Lists of categories


def _lists(
    measure: Measure, binned: Binned, right: Floats, wrong: Floats, cost: float
) -> Iterator[Found]:
    """Yield the best short list of categories, and of exceptions, of each column."""
    everybody = np.stack([right.sum(axis=1), wrong.sum(axis=1)])
    bins = [*range(int(binned.n_values[binned.n_numeric :].max())), binned.width - 1]
    counts = np.stack([right[:, bins], wrong[:, bins]])  # rare ones cannot be listed
    people = measure.right_weight * counts[0]
    size = people + measure.wrong_weight * counts[1]
    # What a category adds to a ratio of sums is told by the ratio itself (Dinkelbach): it is taken
    # from the rule as it is, and then from the best list found.
    level = np.stack([measure.f(*everybody)] * 2)[:, :, None]
    for _ in range(2):
        lists = _Lists.of((1 + BETA_2) * people - level * size, counts, everybody)
        level = np.maximum(level, measure.f(*lists.rows).max(axis=2, keepdims=True))
    quality, enough = lists.worth(measure, cost)
    best = quality.argmax(axis=2)
    yield from lists.found(binned, best, quality, enough)
    # what is wrong too often is sought again, the categories most often right first
    again = ~np.take_along_axis(enough, best[:, :, None], axis=2)
    if again.any():
        lists = _Lists.of(np.stack([people / np.maximum(size, 1e-300)] * 2), counts, everybody)
        quality, enough = lists.worth(measure, cost)
        quality = quality * (enough & again)
        yield from lists.found(binned, quality.argmax(axis=2), quality, enough)


@dataclass(frozen=True)
class _Lists:
    """The first 1, 2, … categories in the `order` of each column, and all but these.

    `order` has shape (2, columns, longest); `rows` (2, 2, columns, longest) are the right and the
    wrong rows that each list leaves, `costs` what it costs to read, in conditions.
    """

    order: NDArray[np.intp]
    rows: Floats
    costs: Floats

    @classmethod
    def of(cls, worth: Floats, counts: Floats, everybody: Floats) -> _Lists:
        """Return lists of what is worth most, and of all but what is worth least."""
        _, n_columns, n_bins = counts.shape
        absent = counts[0] + counts[1] == 0
        rising = np.where(absent, np.inf, worth * _SIGNS)
        order = np.argsort(rising, axis=2, kind="stable")[:, :, :MOST_VALUES]
        places = order + n_bins * np.arange(n_columns)[:, None]
        rows = counts.reshape(2, -1)[:, places].cumsum(axis=3)
        rows[:, 1] = everybody[:, :, None] - rows[:, 1]
        rows[0, 1, :, MOST_EXCEPTIONS:] = 0.0  # too long to be read: as if nobody were right
        extra = EXTRA_VALUE * np.arange(order.shape[2])
        return cls(order, rows, 1.0 + extra + EXTRA_WORD * (_SIGNS > 0))

    def worth(self, measure: Measure, cost: float) -> tuple[Floats, Mask]:
        """Return the quality of each list in a rule that costs `cost`, and whether it is enough."""
        right, wrong = self.rows
        return measure.quality(right, wrong, cost + self.costs), measure.is_enough(right, wrong)

    def found(
        self, binned: Binned, best: NDArray[np.intp], quality: Floats, enough: Mask
    ) -> Iterator[Found]:
        """Yield the best list of each column, and the best of exceptions, where there is one."""
        last = int(binned.n_values[binned.n_numeric :].max())  # the bin of missing values
        for negated in (False, True):
            for i, k in enumerate(best[int(negated)].tolist()):
                place = int(negated), i, k
                listed = self.order[int(negated), i, : k + 1].tolist()
                column = binned.n_numeric + i
                n_values = binned.columns[column].n_values
                chosen = tuple(sorted(b for b in listed if b < n_values))
                if quality[place] > 0 and (chosen or last in listed):
                    cost = float(self.costs[int(negated), 0, k])
                    missing = (last in listed) != negated
                    part = Part(column, cost, None, None, chosen, missing, negated)
                    yield Found(float(quality[place]), bool(enough[place]), part)


_SIGNS = np.array([-1.0, 1.0])[:, None, None]  # the most first, and the least first


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
    quality, enough = measure.f(*counts), measure.is_enough(*counts)
    moved = _round_edge(near, quality * enough if enough.any() else quality)
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
    return roundest_number(low, high) if high > low else high
