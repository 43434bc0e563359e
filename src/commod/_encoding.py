"""Raw columns ↔ terms: what each line of a scorecard reads, kept sparse.

A numeric column is one term (its value), plus one for "missing" if the fit rows had missing values.
A text, categorical or boolean column is one term per category that enough rows share, "missing"
being a category like another. A dense one-hot matrix is never built: categories travel as codes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._inputs import Column, Kind
from commod.exceptions import InputError

__all__ = ["CategoryTerms", "Encoding", "NumericTerms", "TermTable", "learn_encoding"]

Scalar = str | bool | int | float

ROUNDING = 1e-12  # of the largest value: shares that add up to 1.0000000000000002 are constant


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


ColumnTerms = NumericTerms | CategoryTerms


@dataclass(frozen=True)
class TermTable:
    """Rows as terms: `numeric` (n, p) filled values and `codes` (n, q) of terms that are present.

    `numeric_terms` (p,) says which term each numeric column is, `code_terms` (q,) the first term
    that each column of codes can name; a code equal to `n_terms` means that none of them is
    present (an unseen or rare category: zero points).
    """

    numeric: NDArray[np.float64]
    numeric_terms: NDArray[np.intp]
    codes: NDArray[np.int32]
    code_terms: NDArray[np.intp]
    n_terms: int

    def __len__(self) -> int:
        return len(self.numeric)

    def total(self, points: NDArray[np.float64], start: float) -> NDArray[np.float64]:
        """Return start + Σ points of each row, shape (n,), added in the order of the terms.

        The order is part of the update's definition: every engine that runs it adds alike.
        """
        total = np.full(len(self), start)
        present = np.append(points, 0.0)
        p = len(self.numeric_terms)
        for j in np.argsort(np.concatenate([self.numeric_terms, self.code_terms]), kind="stable"):
            if j >= p:
                total += present[self.codes[:, j - p]]
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
            np.add.at(mean, codes, share)
        mean = np.minimum(mean[:-1], 1.0)  # a sum of shares may exceed 1 by rounding
        scale = np.sqrt(mean * (1 - mean))
        mean[self.numeric_terms] = share @ self.numeric
        centred = self.numeric - mean[self.numeric_terms]
        scale[self.numeric_terms] = np.sqrt(share @ centred**2)
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
        n_rows = len(columns[0].values) if columns else 0
        numeric, numeric_terms, codes, code_terms = [], [], [], []
        start = 0
        for spec in self.columns:
            column = _same_kind(spec, given)
            if isinstance(spec, NumericTerms):
                missing = np.isnan(column.values)
                numeric.append(np.where(missing, spec.fill, column.values))
                numeric_terms.append(start)
                if spec.has_missing_term:
                    codes.append(np.where(missing, start + 1, self.n_terms).astype(np.int32))
                    code_terms.append(start + 1)
            else:
                codes.append(_codes(spec, column, start, self.n_terms))
                code_terms.append(start)
            start += spec.n_terms
        return TermTable(
            numeric=np.column_stack(numeric) if numeric else np.zeros((n_rows, 0)),
            numeric_terms=np.array(numeric_terms, dtype=np.intp),
            codes=np.column_stack(codes) if codes else np.zeros((n_rows, 0), dtype=np.int32),
            code_terms=np.array(code_terms, dtype=np.intp),
            n_terms=self.n_terms,
        )


def _codes(spec: CategoryTerms, column: Column, start: int, absent: int) -> NDArray[np.int32]:
    table = {category: start + i for i, category in enumerate(spec.categories)}
    found = (table.get(value, absent) for value in column.values)
    return np.fromiter(found, dtype=np.int32, count=len(column.values))


def _same_kind(spec: ColumnTerms, given: Mapping[str, Column]) -> Column:
    if spec.name not in given:
        raise InputError(
            f"Column {spec.name!r} was there when the update was fitted and is missing now "
            f"(columns: {', '.join(given)}). Pass the same columns."
        )
    column = given[spec.name]
    if column.kind == spec.kind:
        return column
    if column.is_missing().all():  # a column without any value has no kind of its own
        empty: NDArray[Any] = np.full(len(column.values), np.nan)
        if spec.kind == "category":
            empty = np.full(len(column.values), None, dtype=object)
        return Column(spec.name, spec.kind, empty)
    words = {"numeric": "numbers", "category": "categories or text"}
    example = next(v for v in column.values if v is not None and v == v)
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
) -> Encoding:
    """Return the terms of the fit rows; constant columns and `locked` ones have none.

    A category shared by fewer than `min_category_size` rows gets no term: it could not be told from
    chance, and a value that one person alone has must not be kept in the update. A row of weight 0
    counts as if it were not there.
    """
    there = weight > 0
    free = [Column(c.name, c.kind, c.values[there]) for c in columns if c.name not in locked]
    specs = [
        _learn_numeric(c, weight[there], min_category_size)
        if c.kind == "numeric"
        else _learn_categories(c, min_category_size)
        for c in free
    ]
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
    missing = column.is_missing()
    seen, seen_weight = column.values[~missing], weight[~missing]
    if not len(seen) or np.ptp(seen) <= ROUNDING * np.abs(seen).max():
        return None
    fill = float(np.average(seen, weights=seen_weight))
    return NumericTerms(column.name, fill, int(missing.sum()) >= min_category_size)


def _learn_categories(column: Column, min_category_size: int) -> CategoryTerms | None:
    counts = Counter(column.values.tolist())
    kept = [value for value, count in counts.items() if count >= min_category_size]
    if not kept or len(counts) == 1:
        return None
    kept.sort(key=lambda v: (v is None, type(v).__name__, v if v is not None else ""))
    return CategoryTerms(column.name, tuple(kept))
