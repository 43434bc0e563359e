"""Cells and tables of a report as plain text: HTML, Markdown and the slider show the same ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from commod._record import Estimate
from commod._reporting.render.texts import NAME_LIMIT, SENTENCE_LIMIT
from commod._text import NOT_KNOWN, count, number, percent

Record = TypeVar("Record")
Columns = Sequence[tuple[str, Callable[[Record], "Cell"]]]


@dataclass(frozen=True)
class Cell:
    """A text, a note in smaller letters below it, a value to sort by, and how to show them.

    `kind` is "text" or "number"; `tone` names a colour of the style sheet; `limit` is the number of
    characters after which the text is cut.
    """

    text: str
    note: str = ""
    sort: float | None = None
    kind: str = "text"
    tone: str = ""
    limit: int = NAME_LIMIT


@dataclass(frozen=True)
class ReportTable:
    """A caption, the names of the columns, rows of cells, and a sentence on omitted rows."""

    key: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    sortable: bool = True
    more: str = ""


def table_of(
    key: str,
    caption: str,
    records: Iterable[Record],
    columns: Columns[Record],
    *,
    sortable: bool = True,
    more: str = "",
) -> ReportTable:
    """Return a table with one row per record; a column is its name and a function of a record."""
    names = tuple(name for name, _ in columns)
    rows = tuple(tuple(cell(record) for _, cell in columns) for record in records)
    return ReportTable(key, caption, names, rows, sortable, more)


def text(value: Any) -> Cell:
    """Return a cell with a name or a short text."""
    return Cell(str(value))


def sentence(value: str) -> Cell:
    """Return a cell with a sentence."""
    return Cell(value, limit=SENTENCE_LIMIT)


def figure(
    value: float | None, write: Callable[[float | None], str] = count, reason: str = ""
) -> Cell:
    """Return a cell with a number; `reason` says why it may be missing."""
    return Cell(write(value), reason if value is None else "", value, "number")


def interval(
    estimate: Estimate | None,
    write: Callable[[float | None], str] = percent,
    reason: str = "no labels",
) -> Cell:
    """Return a cell with a figure and its interval as a note, or with why there is none."""
    if estimate is None:
        return Cell(NOT_KNOWN, reason, None, "number")
    if estimate.value is None:
        return Cell(NOT_KNOWN, "undefined here", None, "number")
    low, high = estimate.low, estimate.high
    if low is None and high is None:
        note = "no interval"
    elif low is None or high is None:
        note = f"at most {write(high)}" if low is None else f"at least {write(low)}"
    else:
        without_unit = write(low).removesuffix("%").removesuffix(" points")
        note = f"{without_unit} to {write(high)}"
    return Cell(write(estimate.value), note, estimate.value, "number")


def three_digits(value: float | None) -> str:
    """Return a number with three digits behind the point."""
    return number(value, 3)
