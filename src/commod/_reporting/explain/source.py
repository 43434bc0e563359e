"""Read raw columns for explanations, one at a time; columns that cannot be read are left out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column, Kind, iter_columns
from commod._data.tables import n_rows_of, take_rows
from commod.exceptions import InputError


@dataclass(frozen=True)
class InMemory:
    """Columns that have been read already."""

    columns: Sequence[Column]

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def read_rows(self, rows: NDArray[np.intp]) -> list[Column]:
        """Return all columns with the given rows only."""
        if len(rows) == len(self):
            return list(self.columns)
        return [column.take(rows) for column in self.columns]

    def read_columns(self, names: Collection[str]) -> Iterator[Column]:
        """Yield the named columns with all rows."""
        return (column for column in self.columns if column.name in names)


@dataclass(frozen=True)
class FrameColumns:
    """A raw table of any kind; columns in `skip` are not read, those in `added` are beside it.

    Columns of dates, of nested or of infinite values cannot be read and are left out. Segments may
    use other columns than the update.
    """

    X: Any
    skip: Collection[str] = ()
    added: Sequence[Column] = ()
    _kinds: dict[str, Kind] = field(default_factory=dict, compare=False)

    def __len__(self) -> int:
        return n_rows_of(self.X)

    def read_rows(self, rows: NDArray[np.intp]) -> list[Column]:
        """Return all readable columns with the given rows only."""
        X = self.X if len(rows) == len(self) else take_rows(self.X, rows)
        columns = list(self._readable(X, None))
        # A few rows of a column with numbers and text may hold numbers only.
        self._kinds.update({column.name: column.kind for column in columns})
        return [*columns, *(column.take(rows) for column in self.added)]

    def read_columns(self, names: Collection[str]) -> Iterator[Column]:
        """Yield the named columns with all rows, one after the other."""
        yield from self._readable(self.X, names)
        yield from (column for column in self.added if column.name in names)

    def _readable(self, X: Any, names: Collection[str] | None) -> Iterator[Column]:
        for name, table in _single_columns(X):
            if name in self.skip or (names is not None and name not in names):
                continue
            try:
                kind = self._kinds.get(name)
                (column,) = iter_columns(table, {name: kind, "x0": kind} if kind else None)
            except (InputError, TypeError):
                continue
            yield replace(column, name=name)


ColumnSource = InMemory | FrameColumns


def _single_columns(X: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name of each column and the column as a table of its own, without copies."""
    frame = nw.from_native(X, pass_through=True, eager_only=True)
    if isinstance(frame, nw.DataFrame):
        for series in frame.iter_columns():
            yield str(series.name), series.to_frame().to_native()
        return
    array = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    if array.ndim != 2:
        next(iter_columns(X))  # raises an error that says what is wrong
    for j in range(array.shape[1]):
        yield f"x{j}", array[:, j : j + 1]
