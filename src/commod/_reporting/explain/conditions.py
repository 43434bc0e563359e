"""Find the best condition of every column, from counts of changed and unchanged rows in its bins.

The quality of a rule is the F-measure of its precision and its coverage of the changed rows, less a
penalty for its length. A rule must also be precise enough: a rule that is usually wrong describes
nobody, whatever its coverage. So each column proposes its best condition and, where that is not
acceptable, its best acceptable one.

Counts are arrays whose first axis has two entries: changed rows and unchanged rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from commod._data.arrays import Floats, Mask
from commod._data.columns import Column, Scalar
from commod._data.disclosure import MIN_CATEGORY_SIZE
from commod._data.encoding import bin_edges, roundest_number

N_BINS = 32  # per numeric column: enough to locate a range, few enough for round edges
MAX_CATEGORY_BINS = 60  # a rule lists a few categories only
MAX_BINS_BY_SIZE = 400  # a bin holds at least one in 400 rows


@dataclass(frozen=True)
class ColumnBins:
    """The bins of one column: cut at `edges`, or one per category, the most frequent first."""

    column: Column
    edges: tuple[float, ...] = ()
    categories: tuple[Scalar, ...] = ()


@dataclass(frozen=True)
class BinnedColumns:
    """The rows of a sample as bins.

    `codes` (n, c) has the bin of each row and column. Column i owns the bins from i · width on: the
    last holds missing values, and the last but one holds values, or missing values, of too few
    people to be named. The first `n_numeric` columns are numbers.
    """

    columns: tuple[ColumnBins, ...]
    n_numeric: int
    n_values: NDArray[np.intp]
    codes: NDArray[np.intp]
    width: int

    @cached_property
    def ranges(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Mask, Mask, Mask]:
        """Return all ranges of bins of p numeric columns, from `first` to `stop` − 1, both (m,).

        Three masks (p, m) follow: the column has fewer bins than `stop`, the range has two ends,
        and it has none.
        """
        n_values = self.n_values[: self.n_numeric, None]
        first, stop = np.triu_indices(int(n_values.max(initial=0)) + 1, k=1)
        is_bounded = (first > 0) & (stop < n_values)
        return first, stop, stop > n_values, is_bounded, (first == 0) & (stop == n_values)

    def count(self, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return how many of the rows in a mask each bin of each column holds, (c, width)."""
        shape = len(self.columns), self.width
        codes = self.codes[np.flatnonzero(rows)].ravel()
        counts = np.bincount(codes, minlength=shape[0] * shape[1])
        return counts.reshape(shape).astype(np.float64)


def bin_columns(columns: Sequence[Column], weight: NDArray[np.float64]) -> BinnedColumns:
    """Return the columns in bins; a column with a single bin separates nobody and is left out."""
    min_size = max(1, len(weight) // MAX_BINS_BY_SIZE)
    numbers = [_bin_number(c, weight, min_size) for c in columns if c.kind == "numeric"]
    others = [_bin_categories(c, weight) for c in columns if c.kind == "category"]
    binned = tuple(c for c in (*numbers, *others) if c is not None)
    n_values = np.array([_n_values(c) for c in binned], dtype=np.intp)
    width = int(n_values.max(initial=0)) + 2
    codes = np.empty((len(weight), len(binned)), dtype=np.intp)
    for i, bins in enumerate(binned):
        codes[:, i] = i * width + _bin_codes(bins, width)
    return BinnedColumns(binned, sum(c is not None for c in numbers), n_values, codes, width)


def _n_values(bins: ColumnBins) -> int:
    """Return the number of bins that a rule may choose from, without missing values."""
    return len(bins.edges) + 1 if bins.column.kind == "numeric" else len(bins.categories)


def _bin_number(column: Column, weight: NDArray[np.float64], min_size: int) -> ColumnBins | None:
    known = ~column.is_missing()
    edges = bin_edges(column.values[known], weight[known], n_bins=N_BINS, min_size=min_size)
    is_constant = not edges and (known.all() or not known.any())
    return None if is_constant else ColumnBins(column, edges=edges)


def _bin_categories(column: Column, weight: NDArray[np.float64]) -> ColumnBins | None:
    size = np.bincount(column.values + 1, weight, minlength=len(column.categories) + 1)
    if np.count_nonzero(size) < 2:
        return None
    # A rule must not name a category of a few people, however many people a sampled row stands for.
    n_people = np.bincount(column.values + 1, minlength=len(column.categories) + 1)
    size[n_people < MIN_CATEGORY_SIZE] = 0.0
    if not size.any():
        return None
    # Ties are sorted by value, not by first row: the order of rows must not matter.
    sized = [
        (-n, isinstance(value, str), value)
        for n, value in zip(size[1:], column.categories, strict=True)
        if n
    ]
    return ColumnBins(
        column, categories=tuple(value for *_, value in sorted(sized)[:MAX_CATEGORY_BINS])
    )


def _bin_codes(bins: ColumnBins, width: int) -> NDArray[np.intp]:
    values, is_missing = bins.column.values, bins.column.is_missing()
    missing = width - 1 if np.count_nonzero(is_missing) >= MIN_CATEGORY_SIZE else width - 2
    if bins.column.kind == "numeric":
        codes = np.searchsorted(bins.edges, values, side="right")
        return np.where(is_missing, missing, codes)
    code_of = {value: i for i, value in enumerate(bins.categories)}
    table = [code_of.get(value, width - 2) for value in bins.column.categories]
    return np.array([*table, missing], dtype=np.intp)[values]  # missing is −1: the last entry


Index = NDArray[np.intp]

BETA_SQUARED = 0.35  # below 1: precision counts more than coverage
LENGTH_PENALTY = 0.03  # share of the quality that each condition must add
SECOND_BOUND_COST = 0.5  # costs of longer conditions, in conditions: the second end of a range,
EXTRA_CATEGORY_COST = 0.25  # another category,
QUALIFIER_COST = 0.3  # "or missing", "not"
MAX_CATEGORIES = 6  # listed in a condition
MAX_EXCEPTIONS = 3  # categories after "not"
ROUNDING_TOLERANCE = 0.01  # share of the quality that a rounder edge may cost
MIN_PRECISION = 0.5  # a rule must be right more often than wrong
MIN_LIFT = 2.0  # odds of a change in a rule over those among all rows
EXACT = 1e-9
SIGNIFICANCE = 0.1  # probability of a rule as good, among all rules, if changes are random


@dataclass(frozen=True)
class RuleCondition:
    """A condition on column number `column`: low ≤ x < high, or one of `bins`.

    `bins` is None for a range. `missing` says whether a missing value satisfies the condition. If
    `negated`, x must be in none of the bins. `cost` is the length of the text, in conditions.
    """

    column: int
    cost: float
    low: float | None = None
    high: float | None = None
    bins: tuple[int, ...] | None = None
    missing: bool = False
    negated: bool = False

    def mask(self, binned: BinnedColumns) -> Mask:
        """Return which binned rows satisfy the condition, shape (n,)."""
        if self.bins is None:
            values = binned.columns[self.column].column.values
            return in_range(values, self.low, self.high, self.missing)
        table = np.full(binned.width, self.negated)
        table[list(self.bins)] = not self.negated
        table[-1] = self.missing
        return table[binned.codes[:, self.column] - self.column * binned.width]


def in_range(values: Floats, low: float | None, high: float | None, missing: bool) -> Mask:
    """Return where low ≤ value < high, shape (n,)."""
    inside = ~np.isnan(values) if low is None else values >= low
    if high is not None:
        inside &= values < high
    return inside | np.isnan(values) if missing else inside


def log_n_choices(condition: RuleCondition, binned: BinnedColumns) -> float:
    """Return the logarithm of the number of conditions of this form."""
    n_values = int(binned.n_values[condition.column])
    if condition.bins is not None:
        n_choices = math.comb(n_values + 1, max(len(condition.bins), 1))
    elif condition.low is None or condition.high is None:
        n_choices = 2 * n_values
    else:
        n_choices = n_values * (n_values + 1) // 2
    return math.log(n_choices) + math.log(len(binned.columns))


@dataclass(frozen=True)
class Rule:
    """Conditions that hold together, the binned rows that they cover, and the quality."""

    conditions: tuple[RuleCondition, ...]
    rows: Mask
    quality: float
    is_acceptable: bool = True

    @property
    def cost(self) -> float:
        """Return the length of the rule, in conditions."""
        return sum(condition.cost for condition in self.conditions)

    @property
    def rank(self) -> tuple[bool, float]:
        """Return the key by which rules are compared: acceptable ones first."""
        return self.is_acceptable, self.quality

    def with_replaced(self, i: int, *others: RuleCondition) -> tuple[RuleCondition, ...]:
        """Return all conditions, with other ones, or none, as number i."""
        return (*self.conditions[:i], *others, *self.conditions[i + 1 :])


@dataclass(frozen=True)
class RuleSearch:
    """The task of a search: cover rows of `changed` and as few rows of `unchanged` as possible.

    Both are masks over the binned rows; a row in neither does not count. A changed row stands for
    `weights[0]` people, an unchanged one for `weights[1]`. An acceptable rule covers at least
    `min_changed` of the changed rows, and more than `min_ratio` of them per unchanged row.
    """

    binned: BinnedColumns
    changed: Mask
    unchanged: Mask
    weights: tuple[float, float]
    min_changed: float = 1.0

    @cached_property
    def n_rows(self) -> tuple[int, int]:
        """Return how many rows changed, and how many did not."""
        return int(np.count_nonzero(self.changed)), int(np.count_nonzero(self.unchanged))

    @cached_property
    def min_ratio(self) -> float:
        """Return the number of changed rows per unchanged one that a rule must exceed."""
        n_changed, n_unchanged = self.n_rows
        odds = MIN_LIFT * n_changed / n_unchanged if n_unchanged else 0.0
        return max(odds, MIN_PRECISION / (1 - MIN_PRECISION) * self.weights[1] / self.weights[0])

    def is_acceptable(self, counts: Any) -> Mask:
        """Return whether rules with these counts are precise and cover enough changed rows."""
        changed, unchanged = counts
        return np.asarray((changed >= self.min_changed) & (changed > self.min_ratio * unchanged))

    def f_measure(self, counts: Any) -> Floats:
        """Return the F-measure of rules with these counts, in [0, 1]."""
        people = self.weights[0] * counts[0]
        size = people + self.weights[1] * counts[1]
        n_people = self.weights[0] * self.n_rows[0]
        return (1 + BETA_SQUARED) * people / (size + BETA_SQUARED * n_people)

    def quality(self, counts: Any, cost: Any) -> Floats:
        """Return the F-measure less the penalty for length."""
        return self.f_measure(counts) * (1 - LENGTH_PENALTY * cost)

    def counts(self, rows: Mask) -> NDArray[np.intp]:
        """Return how many changed and unchanged rows a mask covers, shape (2,)."""
        return np.array([np.count_nonzero(rows & m) for m in (self.changed, self.unchanged)])

    def rule(self, conditions: tuple[RuleCondition, ...], rows: Mask | None = None) -> Rule:
        """Return the rule with these conditions; `rows`, if known, are those it covers."""
        if rows is None:
            rows = np.ones(len(self.changed), dtype=bool)
            for condition in conditions:
                rows &= condition.mask(self.binned)
        counts, cost = self.counts(rows), sum(condition.cost for condition in conditions)
        quality = float(self.quality(counts, cost))
        return Rule(conditions, rows, quality, bool(self.is_acceptable(counts)))

    def is_significant(self, rule: Rule) -> bool:
        """Return whether the precision exceeds that of the best rule for random changes.

        The p-value of a binomial test is multiplied by the number of rules of this form.
        """
        n_changed, n_unchanged = self.counts(rule.rows)
        all_changed, all_unchanged = self.n_rows
        if n_changed == all_changed and not n_unchanged and len(rule.conditions) == 1:
            return True  # one condition that holds for exactly the changed rows
        rate = all_changed / (all_changed + all_unchanged)
        p_value = bdtrc(n_changed - 1, n_changed + n_unchanged, rate)
        n_choices = np.exp(sum(log_n_choices(c, self.binned) for c in rule.conditions))
        return bool(p_value * n_choices <= SIGNIFICANCE)


class CandidateCondition(NamedTuple):
    """A condition, the quality of the rule with it, and whether that rule is acceptable."""

    quality: float
    is_acceptable: bool
    condition: RuleCondition

    @property
    def rank(self) -> tuple[bool, float]:
        """Return the key by which candidates are compared: acceptable ones first."""
        return self.is_acceptable, self.quality


def best_conditions(
    search: RuleSearch, counts: Floats, cost: float
) -> Iterator[CandidateCondition]:
    """Yield the best conditions of each column for a rule whose other conditions cost `cost`.

    `counts` (2, c, width) are the changed and the unchanged rows of the rule in each bin.
    """
    n = search.binned.n_numeric
    if n:
        yield from _range_candidates(search, counts[:, :n], cost)
    if n < len(search.binned.columns):
        yield from _list_candidates(search, counts[:, n:], cost)


# ---------------------------------------------------------------------------------------------
# Ranges


def _range_candidates(
    search: RuleSearch, counts: Floats, cost: float
) -> Iterator[CandidateCondition]:
    """Yield the best range of each numeric column, with and without missing values."""
    first, stop, is_beyond, is_bounded, is_everything = search.binned.ranges
    cumulated = np.pad(counts.cumsum(axis=2), ((0, 0), (0, 0), (1, 0)))
    inside = cumulated[:, :, stop] - cumulated[:, :, first]
    missing = counts[:, :, -1]
    has_missing = missing.sum(axis=0) > 0
    for or_missing in (False, True) if has_missing.any() else (False,):
        covered = inside + or_missing * missing[:, :, None]
        costs = np.where(is_bounded, 1.0 + SECOND_BOUND_COST, 1.0) + QUALIFIER_COST * or_missing
        # A range that everybody satisfies is not a condition.
        combine = np.logical_and if or_missing else np.logical_or
        allowed = ~is_beyond & combine(~is_everything, has_missing[:, None])
        quality = search.quality(covered, cost + costs) * allowed
        acceptable = search.is_acceptable(covered)
        for i, k in _best_positions(quality, acceptable):
            if quality[i, k] > 0:
                edges = search.binned.columns[i].edges
                low = edges[first[k] - 1] if first[k] else None
                high = edges[stop[k] - 1] if stop[k] <= len(edges) else None
                condition = RuleCondition(i, float(costs[i, k]), low, high, missing=or_missing)
                rated = float(quality[i, k]), bool(acceptable[i, k])
                yield CandidateCondition(*rated, condition)
    quality, acceptable = search.quality(missing, cost + 1), search.is_acceptable(missing)
    for i in np.flatnonzero(has_missing).tolist():
        condition = RuleCondition(i, 1.0, bins=(), missing=True)
        yield CandidateCondition(float(quality[i]), bool(acceptable[i]), condition)


def _best_positions(quality: Floats, acceptable: Mask) -> Iterator[tuple[int, int]]:
    """Yield each row with its best position and, if not acceptable, its best acceptable one."""
    best = quality.argmax(axis=1)
    yield from enumerate(best.tolist())
    rows = np.flatnonzero(~acceptable[np.arange(len(best)), best] & acceptable.any(axis=1))
    best = np.where(acceptable[rows], quality[rows], -np.inf).argmax(axis=1)
    yield from zip(rows.tolist(), best.tolist(), strict=True)


# ---------------------------------------------------------------------------------------------
# Lists of categories


def _list_candidates(
    search: RuleSearch, counts: Floats, cost: float
) -> Iterator[CandidateCondition]:
    """Yield the best short list of categories, and of exceptions, of each column."""
    binned, total = search.binned, counts.sum(axis=2)
    bins = [*range(int(binned.n_values[binned.n_numeric :].max())), binned.width - 1]
    counts = counts[:, :, bins]  # without rare categories, which are not listed
    people = search.weights[0] * counts[0]
    size = people + search.weights[1] * counts[1]
    # The F-measure is a ratio of sums. Dinkelbach's method maximises it: a category adds its
    # numerator less the current ratio times its denominator.
    ratio = np.stack([search.f_measure(total)] * 2)[:, :, None]
    for _ in range(2):
        gain = (1 + BETA_SQUARED) * people - ratio * size
        order, covered, costs = _category_lists(gain, counts, total)
        ratio = np.maximum(ratio, search.f_measure(covered).max(axis=2, keepdims=True))
    quality, acceptable = search.quality(covered, cost + costs), search.is_acceptable(covered)
    yield from _best_lists(binned, order, costs, quality, acceptable)
    # If the best list is not acceptable, take the categories with the highest precision first.
    best = quality.argmax(axis=2)[:, :, None]
    again = ~np.take_along_axis(acceptable, best, axis=2)
    if again.any():
        precision = people / np.maximum(size, 1e-300)
        order, covered, costs = _category_lists(np.stack([precision] * 2), counts, total)
        quality, acceptable = search.quality(covered, cost + costs), search.is_acceptable(covered)
        yield from _best_lists(binned, order, costs, quality * (acceptable & again), acceptable)


_DESCENDING_ASCENDING = np.array([-1.0, 1.0])[:, None, None]


def _category_lists(gain: Floats, counts: Floats, total: Floats) -> tuple[Index, Floats, Floats]:
    """Return the lists of the first 1, 2, … categories of each column in an order by gain.

    The first axis of the order (2, columns, longest) has lists of the categories with the highest
    gain, then lists of exceptions, which have the lowest. With it come the changed and the
    unchanged rows of each list, (2, 2, columns, longest), and its length in conditions.
    """
    _, n_columns, n_bins = counts.shape
    is_empty = counts[0] + counts[1] == 0
    keys = np.where(is_empty, np.inf, gain * _DESCENDING_ASCENDING)
    order = np.argsort(keys, axis=2, kind="stable")[:, :, :MAX_CATEGORIES]
    positions = order + n_bins * np.arange(n_columns)[:, None]
    covered = counts.reshape(2, -1)[:, positions].cumsum(axis=3)
    covered[:, 1] = total[:, :, None] - covered[:, 1]
    covered[0, 1, :, MAX_EXCEPTIONS:] = 0.0  # too long: as if the list covered no change
    costs = 1.0 + EXTRA_CATEGORY_COST * np.arange(order.shape[2])
    return order, covered, costs + QUALIFIER_COST * (_DESCENDING_ASCENDING > 0)


def _best_lists(
    binned: BinnedColumns, order: Index, costs: Floats, quality: Floats, acceptable: Mask
) -> Iterator[CandidateCondition]:
    """Yield the best list of categories and of exceptions of each column that has one."""
    missing_bin = int(binned.n_values[binned.n_numeric :].max())
    best = quality.argmax(axis=2)
    for kind, i in np.ndindex(*best.shape):
        k = int(best[kind, i])
        listed = order[kind, i, : k + 1].tolist()
        column = binned.n_numeric + i
        bins = tuple(sorted(b for b in listed if b < binned.n_values[column]))
        if quality[kind, i, k] > 0 and (bins or missing_bin in listed):
            is_missing, length = (missing_bin in listed) != bool(kind), float(costs[kind, 0, k])
            condition = RuleCondition(
                column, length, bins=bins, missing=is_missing, negated=bool(kind)
            )
            rated = float(quality[kind, i, k]), bool(acceptable[kind, i, k])
            yield CandidateCondition(*rated, condition)


# ---------------------------------------------------------------------------------------------
# Bounds between the edges of bins


def move_bound(
    search: RuleSearch,
    condition: RuleCondition,
    rows: tuple[Mask, Mask],
    *,
    is_low: bool,
) -> RuleCondition:
    """Return a range with one bound at the best round number within the two bins beside it.

    `rows` are the changed and the unchanged rows that the other conditions of the rule cover.
    """
    bins = search.binned.columns[condition.column]
    values, bound = bins.column.values, condition.low if is_low else condition.high
    assert bound is not None
    first = max((edge for edge in bins.edges if edge < bound), default=-math.inf)
    stop = min((edge for edge in bins.edges if edge > bound), default=math.inf)
    low, high = (None, condition.high) if is_low else (condition.low, None)
    inside = in_range(values, low, high, missing=False)
    covered = [np.sort(values[mask & inside]) for mask in rows]
    near = np.unique(np.concatenate(covered))
    near = near[(near >= first) & (near < stop)]
    if len(near) < 2:
        return condition
    below = np.stack([np.searchsorted(v, near[1:]) for v in covered])
    counts = np.array([len(v) for v in covered])[:, None] - below if is_low else below
    if condition.missing:
        counts = counts + np.array([[np.sum(mask & np.isnan(values))] for mask in rows])
    quality, acceptable = search.f_measure(counts), search.is_acceptable(counts)
    moved = _round_edge(near, quality * acceptable if acceptable.any() else quality)
    return replace(condition, low=moved) if is_low else replace(condition, high=moved)


def _round_edge(values: Floats, quality: Floats) -> float:
    """Return the roundest edge among those about as good as the best.

    `quality` (m − 1,) is that of an edge between two neighbours of the m rising `values`.
    """
    best = int(quality.argmax())
    is_perfect = quality[best] > 1 - EXACT  # then rounding must not cost anything
    tolerance = EXACT if is_perfect else ROUNDING_TOLERANCE
    worse = np.flatnonzero(quality < quality[best] * (1 - tolerance))
    first = int(worse[worse < best].max(initial=-1)) + 1
    last = int(worse[worse > best].min(initial=len(quality))) - 1
    low, high = float(values[first]), float(values[last + 1])
    if (values != np.rint(values)).any():  # an edge between fractions need not be a value
        high = math.nextafter(high, low)
    return roundest_number(low, high) if high > low else high
