"""Ignore warnings in several threads at once."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_blocks: list[warnings.catch_warnings[None]] = []  # one entry for each open block


@contextmanager
def without_warnings() -> Iterator[None]:
    """Ignore warnings inside the block; the last block that ends restores the filters.

    Filters belong to the whole process. Were each thread to restore what it found, one that began
    later and ended last would leave the filters of the other, and the user would never see a
    warning again.

    Examples
    --------
    >>> with without_warnings():
    ...     warnings.warn("nobody sees this")
    """
    with _lock:
        block = warnings.catch_warnings()
        if not _blocks:
            block.__enter__()
            warnings.simplefilter("ignore")
        _blocks.append(_blocks[0] if _blocks else block)
    try:
        yield
    finally:
        with _lock:
            block = _blocks.pop()
            if not _blocks:
                block.__exit__(None, None, None)
