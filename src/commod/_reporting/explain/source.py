"""Raw columns for explanations, read one at a time; what cannot be read is left out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column, Kind, iter_columns
from commod._data.tables import n_rows_of, take_rows
from commod.exceptions import InputError


class Source(Protocol):
    """Where the columns of n rows come from."""

    def __len__(self) -> int: ...

    def some(self, rows: NDArray[np.intp]) -> list[Column]:
        """Return all readable columns of some rows."""
        ...

    def whole(self, names: Collection[str]) -> Iterator[Column]:
        """Return the named columns with all rows, one after the other."""
        ...


@dataclass(frozen=True)
class InMemory:
    """Columns that were read already."""

    columns: Sequence[Column]

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def some(self, rows: NDArray[np.intp]) -> list[Column]:
        """Return all columns of some rows."""
        if len(rows) == len(self):
            return list(self.columns)
        return [column.take(rows) for column in self.columns]

    def whole(self, names: Collection[str]) -> Iterator[Column]:
        """Return the named columns."""
        return (column for column in self.columns if column.name in names)


@dataclass(frozen=True)
class Table:
    """A raw table of any kind; `skip` names columns that are not to be looked at.

    A column of dates, of nested or of infinite values cannot be read and is left out: what is
    described here need not be what an update read.
    """

    X: Any
    skip: Collection[str] = ()
    _kinds: dict[str, Kind] = field(default_factory=dict, compare=False)

    def __len__(self) -> int:
        return n_rows_of(self.X)

    def some(self, rows: NDArray[np.intp]) -> list[Column]:
        """Return all readable columns of some rows."""
        part = self.X if len(rows) == len(self) else take_rows(self.X, rows)
        columns = list(self._readable(part, None))
        # few rows of a column that mixes numbers and text may hold numbers alone
        self._kinds.update({column.name: column.kind for column in columns})
        return columns

    def whole(self, names: Collection[str]) -> Iterator[Column]:
        """Return the named columns with all rows, one after the other."""
        return self._readable(self.X, names)

    def _readable(self, X: Any, names: Collection[str] | None) -> Iterator[Column]:
        for name, one in _one_by_one(X):
            if name in self.skip or (names is not None and name not in names):
                continue
            try:
                kind = self._kinds.get(name)
                (column,) = iter_columns(one, {name: kind, "x0": kind} if kind else None)
            except (InputError, TypeError):
                continue
            yield replace(column, name=name)


def _one_by_one(X: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name of each column and the column as a table of its own, without copies."""
    frame = nw.from_native(X, pass_through=True, eager_only=True)
    if isinstance(frame, nw.DataFrame):
        for series in frame.iter_columns():
            yield str(series.name), series.to_frame().to_native()
        return
    array = X if isinstance(X, np.ndarray) else np.asarray(X, dtype=object)
    if array.ndim != 2:
        next(iter_columns(X))  # says what is wrong
    for j in range(array.shape[1]):
        yield f"x{j}", array[:, j : j + 1]
