"""Raw columns ↔ terms: what each line of a scorecard reads, kept sparse.

A numeric column is one term (its value), or one for each of its bins, plus one for "missing" if the
fit rows had enough missing values.
A text, categorical or boolean column is one term per category that enough rows share, "missing"
being a category like another. A dense one-hot matrix is never built: categories travel as codes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from commod._data.binning import ROUNDING, bin_edges
from commod._data.columns import Column, Kind, Scalar
from commod.exceptions import InputError

__all__ = [
    "LARGEST",
    "BinTerms",
    "CategoryTerms",
    "Encoding",
    "NumericTerms",
    "TermTable",
    "learn_encoding",
    "same_kind",
]

LARGEST = 1e100  # larger numbers count as this one: points times them must not overflow anywhere


@dataclass(frozen=True)
class NumericTerms:
    """A numeric column: points per unit; `fill` stands in for a missing value."""

    name: str
    fill: float
    has_missing_term: bool

    kind: Kind = "numeric"

    @property
    def n_terms(self) -> int:
        """Return 1, or 2 where "missing" has points of its own."""
        return 1 + self.has_missing_term

    @property
    def term_names(self) -> list[str]:
        """Return the names of the lines of this column."""
        return [self.name, f"{self.name} is missing"][: self.n_terms]


@dataclass(frozen=True)
class CategoryTerms:
    """A column of categories: points for each of `categories`; None is "missing"."""

    name: str
    categories: tuple[Scalar | None, ...]

    kind: Kind = "category"

    @property
    def n_terms(self) -> int:
        """Return the number of categories that have points of their own."""
        return len(self.categories)

    @property
    def term_names(self) -> list[str]:
        """Return the names of the lines of this column."""
        return [
            f"{self.name} is missing" if c is None else f"{self.name} = {c}"
            for c in self.categories
        ]


@dataclass(frozen=True)
class BinTerms:
    """A numeric column in bins: points for each bin between two of the increasing `edges`.

    A bin holds its lower edge and not its upper one. A missing value without a term of its own is
    in no bin and has zero points.

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
        """Return the number of bins, plus 1 where "missing" has points of its own."""
        return len(self.edges) + 1 + self.has_missing_term

    @property
    def term_names(self) -> list[str]:
        """Return the names of the lines of this column."""
        cuts = [_exact_text(edge) for edge in self.edges]
        inner = [f"{a} ≤ {self.name} < {b}" for a, b in pairwise(cuts)]
        names = [f"{self.name} < {cuts[0]}", *inner, f"{self.name} ≥ {cuts[-1]}"]
        return [*names, f"{self.name} is missing"][: self.n_terms]


def _exact_text(number: float) -> str:
    """Return the shortest text that reads back as exactly this number, digits before powers."""
    texts = (f"{number:.{digits}g}" for digits in range(6, 17))
    return next((text for text in texts if float(text) == number), repr(number))


ColumnTerms = NumericTerms | BinTerms | CategoryTerms


@dataclass(frozen=True)
class TermTable:
    """Rows as terms: `numeric` (n, p) filled values and `codes` (n, q) of terms that are present.

    `numeric_terms` (p,) says which term each numeric column is, `code_terms` (q,) the first term
    that each column of codes can name; a code equal to `n_terms` means that none of them is
    present (an unseen or rare category: zero points).
    """

    numeric: NDArray[np.float64]
    numeric_terms: NDArray[np.intp]
    codes: NDArray[np.int16] | NDArray[np.int32]
    code_terms: NDArray[np.intp]
    n_terms: int

    def __len__(self) -> int:
        return len(self.numeric)

    def take(self, rows: NDArray[np.intp]) -> TermTable:
        """Return some of the rows."""
        return replace(self, numeric=self.numeric[rows], codes=self.codes[rows])

    def total(self, points: NDArray[np.float64], start: float) -> NDArray[np.float64]:
        """Return start + Σ points of each row, shape (n,), added in the order of the terms.

        The order is part of the update's definition: every engine that runs it adds alike.
        """
        total = np.full(len(self), start)
        present = np.append(points, 0.0)
        p = len(self.numeric_terms)
        for j in np.argsort(np.concatenate([self.numeric_terms, self.code_terms]), kind="stable"):
            if j >= p:
                total += present.take(self.codes[:, j - p])
            elif points[self.numeric_terms[j]]:
                total += points[self.numeric_terms[j]] * self.numeric[:, j]
        return total

    def moments(
        self, weight: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the weighted mean and standard deviation of each term, both of shape (d,)."""
        share = weight / weight.sum()
        mean = np.zeros(self.n_terms + 1)
        for codes in self.codes.T:
            mean += np.bincount(codes, share, minlength=self.n_terms + 1)
        mean = np.minimum(mean[:-1], 1.0)  # a sum of shares may exceed 1 by rounding
        scale = np.sqrt(mean * (1 - mean))
        gap = np.empty(len(self))
        for term, values in zip(self.numeric_terms, self.numeric.T, strict=True):
            mean[term] = share @ values
            np.subtract(values, mean[term], out=gap)
            scale[term] = np.sqrt(share @ np.square(gap, out=gap))
        return mean, scale


@dataclass(frozen=True)
class Encoding:
    """How raw columns become terms; learned once, then fixed."""

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
    def kinds(self) -> dict[str, Kind]:
        """Return the kind of each raw column."""
        return {c.name: c.kind for c in self.columns}

    def encode(self, columns: Sequence[Column]) -> TermTable:
        """Return the rows of `columns` as terms; a column that changed its kind is refused."""
        given = {c.name: c for c in columns}
        n_rows = len(columns[0]) if columns else 0
        firsts = np.cumsum([0, *(c.n_terms for c in self.columns)])
        numeric_terms = [
            first
            for first, spec in zip(firsts, self.columns, strict=False)
            if isinstance(spec, NumericTerms)
        ]
        code_terms = [
            first + isinstance(spec, NumericTerms)
            for first, spec in zip(firsts, self.columns, strict=False)
            if not isinstance(spec, NumericTerms) or spec.has_missing_term
        ]
        # column by column into place: a second copy of many rows would be the largest thing here
        numeric = np.empty((n_rows, len(numeric_terms)), order="F")
        few = self.n_terms < np.iinfo(np.int16).max
        codes = np.empty((n_rows, len(code_terms)), np.int16 if few else np.int32, order="F")
        values_of, codes_of = iter(numeric.T), iter(codes.T)
        for first, spec in zip(firsts, self.columns, strict=False):
            column = same_kind(spec, given)
            if isinstance(spec, NumericTerms):
                missing = column.is_missing()
                values = next(values_of)
                np.clip(column.values, -LARGEST, LARGEST, out=values)
                values[missing] = spec.fill
                if spec.has_missing_term:
                    next(codes_of)[:] = np.where(missing, first + 1, self.n_terms)
            else:
                next(codes_of)[:] = _codes(spec, column, int(first), self.n_terms)
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
    """Return the term of each row, shape (n,); `absent` where it has none."""
    if isinstance(spec, BinTerms):
        return _bin_codes(spec, column, start, absent)
    terms = {category: start + i for i, category in enumerate(spec.categories)}
    # the code of a missing value is −1, so it finds the last entry
    table = [terms.get(category, absent) for category in (*column.categories, None)]
    return np.array(table, dtype=np.int32)[column.values]


def _bin_codes(spec: BinTerms, column: Column, start: int, absent: int) -> NDArray[np.int32]:
    found = start + np.searchsorted(spec.edges, column.values, side="right")
    missing = start + len(spec.edges) + 1 if spec.has_missing_term else absent
    return np.where(np.isnan(column.values), missing, found).astype(np.int32)


def same_kind(spec: ColumnTerms, given: Mapping[str, Column]) -> Column:
    """Return the column that some terms read; one that is missing or of another kind is refused."""
    if spec.name not in given:
        raise InputError(
            f"Column {spec.name!r} was there when the update was fitted and is missing now "
            f"(columns: {', '.join(given)}). Pass the same columns."
        )
    column = given[spec.name]
    if column.kind == spec.kind:
        return column
    example = column.first_value()
    if example is None:  # a column without any value has no kind of its own
        empty = np.full(len(column), np.nan) if spec.kind == "numeric" else np.full(len(column), -1)
        return Column(spec.name, spec.kind, empty)
    words = {"numeric": "numbers", "category": "categories or text"}
    raise InputError(
        f"Column {spec.name!r} held {words[spec.kind]} when the update was fitted and holds "
        f"{words[column.kind]} now (for example {example!r}). Convert it to the type it had."
    )


def learn_encoding(
    columns: Sequence[Column],
    weight: NDArray[np.float64],
    *,
    min_category_size: int,
    locked: Collection[str] = (),
    numeric: Literal["unit", "bins"] = "unit",
    n_bins: int = 10,
) -> Encoding:
    """Return the terms of the fit rows; constant columns and `locked` ones have none.

    A category shared by fewer than `min_category_size` rows gets no term: it could not be told from
    chance, and a value that one person alone has must not be kept in the update. A row of weight 0
    counts as if it were not there. With `numeric="bins"` a number enters as about `n_bins` bins of
    similar weight, each of `min_category_size` rows at least; one that falls into a single bin has
    no term.
    """
    if numeric not in ("unit", "bins"):
        raise InputError(f"numeric={numeric!r} is not known; choose 'unit' or 'bins'.")
    free = [c for c in columns if c.name not in locked]
    there = weight > 0
    if not there.all():
        free, weight = [c.take(there) for c in free], weight[there]
    specs: list[ColumnTerms | None] = []
    for column in free:
        if column.kind == "category":
            specs.append(_learn_categories(column, min_category_size))
        elif numeric == "bins":
            specs.append(_learn_bins(column, weight, min_category_size, n_bins))
        else:
            specs.append(_learn_numeric(column, weight, min_category_size))
    if not any(specs):
        raise InputError(
            "X has no column that could have points (columns to choose from: "
            f"{', '.join(c.name for c in free) or 'none'}): each is constant, missing everywhere "
            f"or has no category that min_category_size={min_category_size} rows share. Pass "
            "columns that tell people apart, or lower min_category_size."
        )
    return Encoding(tuple(spec for spec in specs if spec is not None))


def _learn_numeric(
    column: Column, weight: NDArray[np.float64], min_category_size: int
) -> NumericTerms | None:
    seen, seen_weight, n_missing = _seen(column, weight)
    if not len(seen) or np.ptp(seen) <= ROUNDING * np.abs(seen).max():
        return None
    fill = float(np.average(seen, weights=seen_weight))
    return NumericTerms(column.name, fill, n_missing >= min_category_size)


def _learn_bins(
    column: Column, weight: NDArray[np.float64], min_category_size: int, n_bins: int
) -> BinTerms | None:
    seen, seen_weight, n_missing = _seen(column, weight)
    edges = bin_edges(seen, seen_weight, n_bins=n_bins, min_size=min_category_size)
    return BinTerms(column.name, edges, n_missing >= min_category_size) if edges else None


def _seen(
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
    return CategoryTerms(column.name, tuple(kept))
