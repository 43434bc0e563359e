"""Let edits go first: slower parts of the page wait while an edit is computed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column
from commod._reporting.explain.source import FrameColumns

MAX_WAIT = 10.0  # seconds that a slower part waits at once: edits must not starve it
Pause = Callable[[], None]


class OutdatedError(Exception):
    """The draft that a slower part is about is not the present one any more."""


class Turns:
    """Whose turn it is: that of edits, as long as there are any."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._n_edits = 0

    @contextmanager
    def edit(self) -> Iterator[None]:
        """Let slower parts wait inside the block."""
        with self._changed:
            self._n_edits += 1
        try:
            yield
        finally:
            with self._changed:
                self._n_edits -= 1
                self._changed.notify_all()

    def give_way(self) -> None:
        """Wait until no edit is computed."""
        with self._changed:
            self._changed.wait_for(lambda: self._n_edits == 0, MAX_WAIT)


def go_on() -> None:
    """Give way to nobody."""


@dataclass(frozen=True)
class PausedColumns(FrameColumns):
    """The columns of a table; `pause` is called between them."""

    pause: Pause = go_on

    def read_rows(self, rows: NDArray[np.intp]) -> list[Column]:
        """Return all readable columns with the given rows only."""
        self.pause()
        return super().read_rows(rows)

    def read_columns(self, names: Collection[str]) -> Iterator[Column]:
        """Yield the named columns with all rows, one after the other."""
        for column in super().read_columns(names):
            self.pause()
            yield column
