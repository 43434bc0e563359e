"""What a patch file holds: a scorecard on raw columns, its gate, its labels, and where it is from.

The classes below are the schema, `commod.patch/1`: their fields are the keys of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from commod._data.encoding import (
    BinTerms,
    CategoryTerms,
    ColumnTerms,
    Encoding,
    NumericTerms,
)
from commod._record import Value
from commod.scorecard import MARGIN_COLUMN, Scorecard

__all__ = [
    "SCHEMA",
    "Asked",
    "Base",
    "Bin",
    "BinColumn",
    "Category",
    "CategoryColumn",
    "Column",
    "Content",
    "Labels",
    "Line",
    "MarginColumn",
    "NumberColumn",
    "Ratio",
    "Reached",
    "Seen",
    "lines_of",
    "ratio_of",
    "scorecard_of",
    "terms_of",
]

SCHEMA = "commod.patch/1"


@dataclass(frozen=True)
class Line:
    """Points in r, and what each concept has of them before its weight."""

    points: float
    concepts: tuple[float, ...]


@dataclass(frozen=True)
class NumberColumn:
    """A number: `points` per unit; a missing one counts as `if_missing`, and has `missing`."""

    name: str
    reads: Literal["number"]
    points: float
    concepts: tuple[float, ...]
    if_missing: float
    missing: Line | None


@dataclass(frozen=True)
class Bin:
    """Numbers below an edge (None: all above the last) that are not below the one before it."""

    below: float | None
    points: float
    concepts: tuple[float, ...]


@dataclass(frozen=True)
class BinColumn:
    """A number in bins; a missing one is in none of them, and has `missing`."""

    name: str
    reads: Literal["bins"]
    bins: tuple[Bin, ...]
    missing: Line | None

    @property
    def edges(self) -> list[float]:
        """Return the increasing edges between the bins."""
        return [b.below for b in self.bins if b.below is not None]


@dataclass(frozen=True)
class Category:
    """One value of a column, typed: 1 is not "1"."""

    value: Value
    points: float
    concepts: tuple[float, ...]


@dataclass(frozen=True)
class CategoryColumn:
    """Categories; any other value has `unseen` points, which are 0, a missing one `missing`."""

    name: str
    reads: Literal["category"]
    categories: tuple[Category, ...]
    missing: Line | None
    unseen: float


@dataclass(frozen=True)
class MarginColumn:
    """The base model's margin, logit(score) − logit(threshold): points per unit."""

    name: str
    reads: Literal["margin"]
    points: float
    concepts: tuple[float, ...]


Column = NumberColumn | BinColumn | CategoryColumn | MarginColumn
KINDS: dict[str, type] = {
    "number": NumberColumn,
    "bins": BinColumn,
    "category": CategoryColumn,
    "margin": MarginColumn,
}


@dataclass(frozen=True)
class Ratio:
    """r = intercept + points, added in the order of the file.

    `concept_weights` (k,) are the weights of the concepts in r, `concept_intercepts` (k,) what each
    concept is before any points. `may_raise` and `may_lower` are the gate of a one-directional
    update: where a base decision must not become positive, or must stay so, r is held at 1.
    """

    intercept: float
    may_raise: bool
    may_lower: bool
    concept_weights: tuple[float, ...]
    concept_intercepts: tuple[float, ...]
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Base:
    """The model that is edited: its class, and a digest of it where one could be made.

    `score` is the column its scores were read from, None where they came from the model itself.
    """

    model: str
    digest: str | None
    score: str | None
    threshold: float


@dataclass(frozen=True)
class Labels:
    """The two labels, and which of them is good for the person."""

    negative: Value
    positive: Value
    favorable: Value


@dataclass(frozen=True)
class Asked:
    """What the update was asked for; None where nothing was."""

    constraints: str
    target: float | None
    direction: str
    max_changes: float | None
    max_accuracy_loss: float | None
    max_volume_change: float | None
    confidence: float | None


@dataclass(frozen=True)
class Reached:
    """What the update does on the rows named; None where a figure is not known."""

    rows: str
    n_rows: int
    metric: str
    fairness_before: float | None
    fairness_after: float | None
    accuracy_before: float | None
    accuracy_after: float | None
    change_rate: float | None
    n_gains: float | None
    n_losses: float | None
    limit: float | None
    target_met: bool | None
    promised: bool | None
    in_words: str


@dataclass(frozen=True)
class Seen:
    """The columns of the fit rows: how many, and a digest of their names."""

    n_columns: int
    digest: str


@dataclass(frozen=True)
class Content:
    """A whole patch; a file adds the digest of this."""

    schema: str
    library: str
    created: str
    method: str
    base: Base
    labels: Labels
    asked: Asked
    reached: Reached
    seen: Seen
    ratio: Ratio


# ---------------------------------------------------------------------------------------------
# From a scorecard, and back


def ratio_of(
    scorecard: Scorecard, *, may_raise: bool, may_lower: bool, reads_margin: bool = False
) -> Ratio:
    """Return a scorecard as the lines of a file; what has no points anywhere is left out."""
    lines = _Lines(scorecard)
    start = 0
    columns: list[Column] = []
    for terms in scorecard.encoding.columns:
        mine = range(start, start + terms.n_terms)
        start += terms.n_terms
        if any(map(lines.is_used, mine)):
            is_margin = reads_margin and terms.name == MARGIN_COLUMN
            columns.append(_margin(lines[start - 1]) if is_margin else _column(terms, mine, lines))
    return Ratio(
        intercept=float(scorecard.intercept),
        may_raise=may_raise,
        may_lower=may_lower,
        concept_weights=tuple(scorecard.contributions.tolist()),
        concept_intercepts=tuple(scorecard.concept_intercepts.tolist()),
        columns=tuple(columns),
    )


class _Lines:
    """The points of each term, in r and in the concepts."""

    def __init__(self, scorecard: Scorecard) -> None:
        self._points = scorecard.points.tolist()
        self._concepts = scorecard.concept_points.T.tolist()

    def is_used(self, term: int) -> bool:
        return bool(self._points[term]) or any(self._concepts[term])

    def __getitem__(self, term: int) -> Line:
        return Line(self._points[term], tuple(self._concepts[term]))

    def used(self, term: int | None) -> Line | None:
        return self[term] if term is not None and self.is_used(term) else None


def _column(terms: ColumnTerms, mine: Sequence[int], lines: _Lines) -> Column:
    if isinstance(terms, CategoryTerms):
        known = dict(zip(terms.categories, mine, strict=True))
        missing = lines.used(known.pop(None, None))
        categories = tuple(
            Category(value, **vars(lines[term]))
            for value, term in known.items()
            if value is not None and lines.is_used(term)
        )
        return CategoryColumn(terms.name, "category", categories, missing, unseen=0.0)
    missing = lines.used(mine[-1]) if terms.has_missing_term else None
    if isinstance(terms, BinTerms):
        below = [*terms.edges, None]
        bins = tuple(Bin(edge, **vars(lines[t])) for edge, t in zip(below, mine, strict=False))
        return BinColumn(terms.name, "bins", bins, missing)
    line = lines[mine[0]]
    return NumberColumn(terms.name, "number", line.points, line.concepts, terms.fill, missing)


def _margin(line: Line) -> MarginColumn:
    return MarginColumn(MARGIN_COLUMN, "margin", line.points, line.concepts)


def scorecard_of(ratio: Ratio) -> Scorecard:
    """Return the scorecard that the lines of a file are; it decides as the one they came from."""
    lines = [line for column in ratio.columns for line in lines_of(column)]
    k = len(ratio.concept_weights)
    points = np.array([line.concepts for line in lines], dtype=np.float64).reshape(len(lines), k)
    return Scorecard(
        encoding=Encoding(tuple(map(terms_of, ratio.columns))),
        intercept=ratio.intercept,
        contributions=_floats(ratio.concept_weights),
        concept_points=np.ascontiguousarray(points.T),
        concept_intercepts=_floats(ratio.concept_intercepts),
    )


def lines_of(column: Column) -> list[Line]:
    """Return the lines of a column, "missing" last."""
    if isinstance(column, CategoryColumn):
        found = [Line(c.points, c.concepts) for c in column.categories]
    elif isinstance(column, BinColumn):
        found = [Line(b.points, b.concepts) for b in column.bins]
    else:
        found = [Line(column.points, column.concepts)]
    missing = None if isinstance(column, MarginColumn) else column.missing
    return found if missing is None else [*found, missing]


def terms_of(column: Column) -> ColumnTerms:
    """Return what the lines of a column read, in the same order."""
    if isinstance(column, CategoryColumn):
        values: list[Value | None] = [c.value for c in column.categories]
        return CategoryTerms(column.name, (*values, *([None] if column.missing else [])))
    if isinstance(column, BinColumn):
        return BinTerms(column.name, tuple(column.edges), column.missing is not None)
    if isinstance(column, MarginColumn):
        return NumericTerms(column.name, 0.0, has_missing_term=False)
    return NumericTerms(column.name, column.if_missing, column.missing is not None)


def _floats(values: Iterable[float]) -> NDArray[np.float64]:
    return np.array(list(values), dtype=np.float64)
