"""Turn raw columns into the terms of a scorecard, in a sparse form.

A numeric column has one term (its value), or one term per bin. It has a further term for "missing"
if enough fit rows have a missing value. A text, categorical or boolean column has one term per
category that enough rows share; "missing" is a category like any other. Categories are kept as
codes, so no dense one-hot matrix is built.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats
from commod._data.columns import LARGEST, Column, Kind, Scalar, as_fitted, types_of
from commod._text import did_you_mean, list_names
from commod.exceptions import InputError


@dataclass(frozen=True)
class NumericTerms:
    """The terms of a numeric column: points × (value − centre). `fill` replaces a missing value."""

    name: str
    fill: float
    has_missing_term: bool
    centre: float = 0.0

    kind: Kind = "numeric"

    @property
    def n_terms(self) -> int:
        """Return 1, or 2 where "missing" has a term of its own."""
        return 1 + self.has_missing_term

    @property
    def term_names(self) -> list[str]:
        """Return the names of the terms of this column."""
        return [self.name, f"{self.name} is missing"][: self.n_terms]

    @property
    def exact_values(self) -> Sequence[Scalar | None]:
        """Return what a missing number counts as, at the term of the number."""
        return [self.fill, None][: self.n_terms]

    @property
    def counted_text(self) -> str:
        """Return what the points are multiplied by.

        Examples
        --------
        >>> NumericTerms("age", 40.0, False, 45.0).counted_text
        'age − 45'
        >>> NumericTerms("age", 40.0, False).counted_text
        'age'
        """
        if not self.centre:
            return self.name
        return f"{self.name} {'−' if self.centre > 0 else '+'} {_exact_text(abs(self.centre))}"


@dataclass(frozen=True)
class CategoryTerms:
    """The terms of a categorical column: points per category; None is "missing".

    `types` are those of all values in the fit rows, also of rare ones; empty if not known.
    """

    name: str
    categories: tuple[Scalar | None, ...]

    kind: Kind = "category"
    types: tuple[str, ...] = field(default=(), compare=False)

    @property
    def n_terms(self) -> int:
        """Return the number of categories that have a term."""
        return len(self.categories)

    @property
    def term_names(self) -> list[str]:
        """Return the names of the terms of this column."""
        return [
            f"{self.name} is missing" if c is None else f"{self.name} = {c}"
            for c in self.categories
        ]

    @property
    def exact_values(self) -> Sequence[Scalar | None]:
        """Return the category of each term, with its type."""
        return self.categories


@dataclass(frozen=True)
class BinTerms:
    """The terms of a numeric column in bins: points for each bin. `edges` are increasing.

    A bin includes its lower edge and not its upper one. If "missing" has no term of its own, a
    missing value gets zero points.

    Examples
    --------
    >>> BinTerms("age", (25.0, 33.5), has_missing_term=True).term_names
    ['age < 25', '25 ≤ age < 33.5', 'age ≥ 33.5', 'age is missing']
    """

    name: str
    edges: tuple[float, ...]
    has_missing_term: bool

    kind: Kind = "numeric"

    @property
    def n_terms(self) -> int:
        """Return the number of bins, plus 1 if "missing" has a term of its own."""
        return len(self.edges) + 1 + self.has_missing_term

    @property
    def term_names(self) -> list[str]:
        """Return the names of the terms of this column."""
        cuts = [_exact_text(edge) for edge in self.edges]
        inner = [f"{a} ≤ {self.name} < {b}" for a, b in pairwise(cuts)]
        names = [f"{self.name} < {cuts[0]}", *inner, f"{self.name} ≥ {cuts[-1]}"]
        return [*names, f"{self.name} is missing"][: self.n_terms]

    @property
    def exact_values(self) -> Sequence[Scalar | None]:
        """Return None for each term: names of bins have all digits of the edges."""
        return [None] * self.n_terms


def _exact_text(number: float) -> str:
    """Return the shortest text that reads back as exactly this number, if possible in digits."""
    texts = (f"{number:.{digits}g}" for digits in range(6, 17))
    return next((text for text in texts if float(text) == number), repr(number))


ColumnTerms = NumericTerms | BinTerms | CategoryTerms


@dataclass(frozen=True)
class TermTable:
    """The terms of n rows: p numeric columns, and q columns of codes.

    `numeric` (n, p) holds values without gaps, less their centres, and `numeric_terms` (p,) the
    term of each column.
    A code in `codes` (n, q) is the term that is present in a row. It is at least the entry of
    `code_terms` (q,), or equal to `n_terms` where no term is present: an unseen or rare category,
    which gets zero points.
    """

    numeric: NDArray[np.float64]
    numeric_terms: NDArray[np.intp]
    codes: NDArray[np.int16] | NDArray[np.int32]
    code_terms: NDArray[np.intp]
    n_terms: int

    def __len__(self) -> int:
        return len(self.numeric)

    def take(self, rows: NDArray[np.intp]) -> TermTable:
        """Return the given rows; columns stay contiguous, because sums go by column."""
        numeric = self.numeric.T.take(rows, axis=1).T
        return replace(self, numeric=numeric, codes=self.codes.T.take(rows, axis=1).T)

    def total(self, points: NDArray[np.float64], start: float) -> NDArray[np.float64]:
        """Return start + Σ points of each row, shape (n,), added in the order of the terms.

        The order is part of the update's definition: every engine adds in this order.
        """
        total = np.full(len(self), start)
        present = np.append(points, 0.0)
        firsts = np.concatenate([self.numeric_terms, self.code_terms])
        order = np.argsort(firsts, kind="stable")
        ends = np.append(firsts[order], self.n_terms)[1:]
        p = len(self.numeric_terms)
        for j, first, end in zip(order, firsts[order], ends, strict=True):  # most have no points
            if j < p and points[first]:
                total += points[first] * self.numeric[:, j]
            elif j >= p and points[first:end].any():
                total += present.take(self.codes[:, j - p])
        return total

    def n_people(self, weight: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the rows with a positive weight in which each term is present, shape (d,).

        A number is present in every row.
        """
        is_counted = weight > 0
        counted = slice(None) if is_counted.all() else is_counted
        n_people = np.zeros(self.n_terms + 1, dtype=np.intp)
        for codes in self.codes.T:
            n_people += np.bincount(codes[counted], minlength=self.n_terms + 1)
        n_people[self.numeric_terms] = np.count_nonzero(is_counted)
        return n_people[:-1]

    def moments(
        self, weight: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the weighted mean and standard deviation of each term, both of shape (d,)."""
        share = weight / weight.sum()
        mean = np.zeros(self.n_terms + 1)
        for codes in self.codes.T:
            mean += np.bincount(codes, share, minlength=self.n_terms + 1)
        mean = np.minimum(mean[:-1], 1.0)  # rounding may lift a sum of shares above 1
        scale = np.sqrt(mean * (1 - mean))
        gap = np.empty(len(self))
        for term, values in zip(self.numeric_terms, self.numeric.T, strict=True):
            mean[term] = share @ values
            np.subtract(values, mean[term], out=gap)
            scale[term] = np.sqrt(share @ np.square(gap, out=gap))
        return mean, scale


@dataclass(frozen=True)
class Encoding:
    """The terms of all raw columns, learned from the fit rows and then fixed."""

    columns: tuple[ColumnTerms, ...]

    @property
    def n_terms(self) -> int:
        """Return d, the number of terms."""
        return sum(c.n_terms for c in self.columns)

    @property
    def term_names(self) -> list[str]:
        """Return the names of the d terms, column by column."""
        return [name for column in self.columns for name in column.term_names]

    @property
    def term_columns(self) -> list[str]:
        """Return the raw column of each of the d terms."""
        return [column.name for column in self.columns for _ in range(column.n_terms)]

    @property
    def counted_names(self) -> dict[str, str]:
        """Return what is counted per unit, by the name of its term: age − 45 for age."""
        return {c.name: c.counted_text for c in self.columns if isinstance(c, NumericTerms)}

    @property
    def kinds(self) -> dict[str, Kind]:
        """Return the kind of each raw column."""
        return {c.name: c.kind for c in self.columns}

    def encode(self, columns: Sequence[Column], n_rows: int = 0) -> TermTable:
        """Return the rows of `columns` as terms; a column that changed its type is refused.

        `n_rows` is their number, which says how many there are where there is no column.
        """
        by_name = {c.name: c for c in columns}
        n_rows = len(columns[0]) if columns else n_rows
        firsts = np.cumsum([0, *(c.n_terms for c in self.columns)]).tolist()
        placed = list(zip(firsts, self.columns, strict=False))
        numeric_terms = [first for first, spec in placed if isinstance(spec, NumericTerms)]
        code_terms = [
            first + isinstance(spec, NumericTerms)
            for first, spec in placed
            if not isinstance(spec, NumericTerms) or spec.has_missing_term
        ]
        # Each column is written into place, because a second copy of large tables costs memory.
        numeric = np.empty((n_rows, len(numeric_terms)), order="F")
        is_small = self.n_terms < np.iinfo(np.int16).max
        codes = np.empty((n_rows, len(code_terms)), np.int16 if is_small else np.int32, order="F")
        values_of, codes_of = iter(numeric.T), iter(codes.T)
        for first, spec in placed:
            column = matching_column(spec, by_name)
            if isinstance(spec, NumericTerms):
                missing = column.is_missing()
                values = next(values_of)
                np.clip(column.values, -LARGEST, LARGEST, out=values)
                values[missing] = spec.fill
                values -= spec.centre
                if spec.has_missing_term:
                    next(codes_of)[:] = np.where(missing, first + 1, self.n_terms)
            else:
                next(codes_of)[:] = _codes(spec, column, first, self.n_terms)
        return TermTable(
            numeric=numeric,
            numeric_terms=np.array(numeric_terms, dtype=np.intp),
            codes=codes,
            code_terms=np.array(code_terms, dtype=np.intp),
            n_terms=self.n_terms,
        )


def _codes(
    spec: BinTerms | CategoryTerms, column: Column, start: int, absent: int
) -> NDArray[np.int32]:
    """Return the term of each row, shape (n,); `absent` where a row has no term."""
    if isinstance(spec, BinTerms):
        bins = start + np.searchsorted(spec.edges, column.values, side="right")
        missing = start + len(spec.edges) + 1 if spec.has_missing_term else absent
        return np.where(np.isnan(column.values), missing, bins).astype(np.int32)
    terms = {category: start + i for i, category in enumerate(spec.categories)}
    # The code of a missing value is −1, which indexes the last entry.
    table = [terms.get(category, absent) for category in (*column.categories, None)]
    return np.array(table, dtype=np.int32)[column.values]


def matching_column(spec: ColumnTerms, columns: Mapping[str, Column]) -> Column:
    """Return the column that the terms read; an absent column or another type is refused."""
    if spec.name not in columns:
        raise InputError(
            f"Column {spec.name!r} was there when the update was fitted and is missing now "
            f"(columns: {list_names(list(columns))}).{did_you_mean(spec.name, columns)} Pass the "
            "same columns.",
            parameter="X",
        )
    column = columns[spec.name]
    if isinstance(spec, CategoryTerms):
        return as_fitted(column, spec.kind, spec.types, spec.categories)
    return as_fitted(column, spec.kind)


def learn_encoding(
    columns: Sequence[Column],
    weight: NDArray[np.float64],
    *,
    min_category_size: int,
    locked: Collection[str] = (),
    numeric: Literal["unit", "bins"] = "unit",
    n_bins: int = 10,
    centred: bool = False,
    may_be_empty: bool = False,
) -> Encoding:
    """Return the terms of the fit rows; constant columns and `locked` ones have none.

    Without any column that is not locked, an encoding that `may_be_empty` has no terms.

    A category that fewer than `min_category_size` rows share gets no term: it would fit noise, and
    the update must not store a value of a single person. Rows of weight 0 are ignored. With
    `numeric="bins"`, a numeric column has about `n_bins` bins of similar weight, each with at least
    `min_category_size` rows. A numeric column with a single bin has no term. If `centred`, numbers
    count from their mean, which is rounded so that its digits end where the spread begins.
    """
    if numeric not in ("unit", "bins"):
        raise InputError(
            f"numeric={numeric!r} is not known; choose 'unit' or 'bins'.", parameter="numeric"
        )
    free = [c for c in columns if c.name not in locked]
    has_weight = weight > 0
    if not has_weight.all():
        free, weight = [c.take(has_weight) for c in free], weight[has_weight]
    specs: list[ColumnTerms | None] = []
    for column in free:
        if column.kind == "category":
            specs.append(_learn_categories(column, min_category_size))
        elif numeric == "bins":
            specs.append(_learn_bins(column, weight, min_category_size, n_bins))
        else:
            specs.append(_learn_numeric(column, weight, min_category_size, centred=centred))
    kept = tuple(spec for spec in specs if spec is not None)
    if not kept and (free or not may_be_empty):
        raise InputError(
            "X has no column that could have points (columns to choose from: "
            f"{list_names([c.name for c in free])}): each is constant, missing everywhere "
            f"or has no category that min_category_size={min_category_size} rows share. Pass "
            "columns in which people differ, or lower min_category_size.",
            parameter="X",
        )
    return Encoding(kept)


def _learn_numeric(
    column: Column, weight: NDArray[np.float64], min_category_size: int, *, centred: bool
) -> NumericTerms | None:
    known, known_weight, n_missing = _known_values(column, weight)
    if not len(known) or np.ptp(known) <= ROUNDING * np.abs(known).max():
        return None
    fill = float(np.average(known, weights=known_weight))
    if not centred:
        return NumericTerms(column.name, fill, n_missing >= min_category_size)
    spread = float(np.sqrt(np.average((known - fill) ** 2, weights=known_weight)))
    centre = _rounded_to(fill, spread / 10)
    return NumericTerms(column.name, centre, n_missing >= min_category_size, centre)


def _rounded_to(value: float, size: float) -> float:
    """Return a number without the decimal digits that are smaller than `size`.

    Examples
    --------
    >>> _rounded_to(2003.456, 0.3), _rounded_to(51234.0, 900.0)
    (2003.5, 51200.0)
    """
    if not 0 < size < np.inf:
        return value
    return float(round(value, -math.floor(math.log10(size))))


def _learn_bins(
    column: Column, weight: NDArray[np.float64], min_category_size: int, n_bins: int
) -> BinTerms | None:
    known, known_weight, n_missing = _known_values(column, weight)
    edges = bin_edges(known, known_weight, n_bins=n_bins, min_size=min_category_size)
    return BinTerms(column.name, edges, n_missing >= min_category_size) if edges else None


def _known_values(
    column: Column, weight: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Return the values that are not missing, their weights, and how many are missing."""
    missing = column.is_missing()
    n_missing = int(missing.sum())
    if not n_missing:
        return column.values, weight, 0
    return column.values[~missing], weight[~missing], n_missing


def _learn_categories(column: Column, min_category_size: int) -> CategoryTerms | None:
    n_rows = np.bincount(column.values + 1, minlength=len(column.categories) + 1).tolist()
    counts = {c: n for c, n in zip((None, *column.categories), n_rows, strict=True) if n}
    kept = [category for category, count in counts.items() if count >= min_category_size]
    if not kept or len(counts) == 1:
        return None
    kept.sort(key=lambda v: (v is None, type(v).__name__, v if v is not None else ""))
    return CategoryTerms(column.name, tuple(kept), types=tuple(sorted(types_of(counts))))


# ---------------------------------------------------------------------------------------------
# Bins: cut numbers at weighted quantiles, moved to round numbers nearby
#
# An update stores its edges, and must not store the value of a single person. So an edge is the
# roundest number in an interval. It is a value of few people only if no other number separates two
# values. The steps are:
#
# 1. Sort the values and merge those that are equal up to rounding (`_distinct_values`).
# 2. Find for each edge an interval in which it may lie (`_intervals`).
# 3. Choose the roundest number of each interval (`roundest_number`).
# 4. Drop edges until every bin is large enough (`_without_small_bins`).

ROUNDING = 1e-12  # relative difference of values that count as equal, such as 0.3 and 0.1 + 0.2
SLACK = 0.25  # how far an edge may move to become round, as a share of a bin's weight
TINY = 1e-9  # shares that differ by less count as equal


def bin_edges(values: Floats, weight: Floats, *, n_bins: int, min_size: int) -> tuple[float, ...]:
    """Return increasing edges of bins of about the same weight; () for a single bin.

    A bin includes its lower edge, not its upper one, and holds at least `min_size` values. A value
    with the weight of a whole bin gets a bin of its own. If there are at most `n_bins` distinct
    values, each gets a bin of its own. The order of `values` (n,) does not matter.

    Examples
    --------
    >>> import numpy as np
    >>> age = np.array([18, 19, 22, 24, 29, 31, 38, 45, 52, 71.0])
    >>> bin_edges(age, np.ones(10), n_bins=3, min_size=1)
    (25.0, 40.0)
    >>> n_children = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2, 3.0])
    >>> bin_edges(n_children, np.ones(10), n_bins=5, min_size=2)
    (1.0, 2.0)
    """
    if not len(values):
        return ()
    distinct = _distinct_values(values, weight)
    intervals = _intervals(distinct, n_bins, min_size)
    edges = sorted({roundest_number(low, high) for low, high in intervals})
    return _without_small_bins(edges, distinct.values, min_size)


@dataclass(frozen=True)
class _DistinctValues:
    """The u distinct values in rising order, and all n values sorted.

    Values that are equal up to rounding count as one, which reaches from `lowest` to `highest`.
    `values` has shape (n,), all other arrays (u,).
    """

    values: Floats
    lowest: Floats
    highest: Floats
    n_rows: NDArray[np.intp]
    share: Floats
    is_whole: bool


def _distinct_values(values: Floats, weight: Floats) -> _DistinctValues:
    if (weight == weight[0]).all():
        values, weight = np.sort(values), np.ones(len(values))
    else:
        order = np.lexsort((weight, values))  # sums do not depend on the order of the rows
        values, weight = values[order], weight[order]
    size = np.abs(values)
    with np.errstate(over="ignore"):
        is_new = np.diff(values) > ROUNDING * np.maximum(size[1:], size[:-1])
    first = np.flatnonzero(np.append(True, is_new))
    stop = np.append(first[1:], len(values))
    return _DistinctValues(
        values=values,
        lowest=values[first],
        highest=values[stop - 1],
        n_rows=stop - first,
        share=np.add.reduceat(weight, first) / weight.sum(),
        is_whole=bool((values == np.rint(values)).all()),
    )


def _intervals(
    distinct: _DistinctValues, n_bins: int, min_size: int
) -> Iterator[tuple[float, float]]:
    """Yield an interval (low, high] for each edge, which may lie anywhere in it."""
    for first_cut, last_cut in _cuts(distinct.share, distinct.n_rows, n_bins, min_size):
        low, high = float(distinct.highest[first_cut]), float(distinct.lowest[last_cut + 1])
        if distinct.n_rows[last_cut + 1] < min_size:  # the edge must not be the value of few people
            below = high - 1 if distinct.is_whole else math.nextafter(high, low)
            high = below if below > low else high
        yield low, high


def _cuts(
    share: Floats, n_rows: NDArray[np.intp], n_bins: int, min_size: int
) -> Iterator[tuple[int, int]]:
    """Yield for each edge the first and the last distinct value that it may come after."""
    has_own_bin = (share >= 1 / n_bins - TINY) | (len(share) <= n_bins)
    is_start = np.append(True, has_own_bin[1:] | has_own_bin[:-1])
    starts = np.flatnonzero(is_start).tolist()
    cumulative = np.cumsum(share)
    for first, stop in zip(starts, [*starts[1:], len(share)], strict=True):
        if first:
            yield first - 1, first - 1
        if stop - first > 1:
            largest = max(2, int(n_rows[first:stop].sum()) // (2 * min_size))
            n_wanted = round(float(share[first:stop].sum()) * n_bins)
            yield from _cuts_of_range(cumulative, first, stop, min(n_wanted, largest))


def _cuts_of_range(
    cumulative: Floats, first: int, stop: int, n_bins: int
) -> Iterator[tuple[int, int]]:
    """Yield the cuts of the values from `first` to `stop` into bins of the same weight."""
    start = float(cumulative[first - 1]) if first else 0.0
    size = (float(cumulative[stop - 1]) - start) / max(n_bins, 1)
    inside = cumulative[first : stop - 1]  # a cut comes after each value but the last
    for level in (start + size * j for j in range(1, n_bins)):
        slack = SLACK * size + TINY
        low = int(np.searchsorted(inside, level - slack, side="left"))
        high = int(np.searchsorted(inside, level + slack, side="right")) - 1
        if low > high:  # a value with much weight covers this level: cut at its nearest end
            low = high = int(np.argmin(np.abs(inside - level)))
        yield first + low, first + high


def roundest_number(low: float, high: float) -> float:
    """Return the number in (low, high] with the fewest digits; of several, the middle one."""
    if low < 0 <= high:
        return 0.0
    bottom, top = Fraction(low), Fraction(high)
    exponent = math.floor(math.log10(max(abs(low), abs(high)))) + 1
    for power in range(exponent, exponent - 20, -1):  # more digits than a float has
        for parts in (1, 2):  # a step is 10**power / parts = unit / scale; integers are quick
            unit, scale = 10 ** max(power, 0), parts * 10 ** max(-power, 0)
            first = bottom.numerator * scale // (bottom.denominator * unit) + 1
            last = top.numerator * scale // (top.denominator * unit)
            if first <= last:
                middle = round((bottom + top) * scale / (2 * unit))
                edge = min(max(middle, first), last) * unit / scale
                if edge > low:  # rounding to a float may fall back to low
                    return edge
    return high


def _without_small_bins(edges: list[float], values: Floats, min_size: int) -> tuple[float, ...]:
    """Return the edges that remain after each small bin joined its smaller neighbour."""
    kept = list(edges)
    stops = np.searchsorted(values, kept, side="left")
    n_rows = np.diff(stops, prepend=0, append=len(values)).tolist()
    while kept and min(n_rows) < min_size:
        i = n_rows.index(min(n_rows))
        is_left = i == len(kept) or (i > 0 and n_rows[i - 1] <= n_rows[i + 1])
        j = i - 1 if is_left else i
        n_rows[j : j + 2] = [n_rows[j] + n_rows[j + 1]]
        del kept[j]
    return tuple(kept)
