"""Show each warning of a study once, although the study fits many updates."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def each_warning_once() -> Iterator[None]:
    """Collect the warnings of the block, and show each text once where the study was called.

    Use this in the function that the user calls: warnings point to the line of its call.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message, category in dict.fromkeys((str(w.message), w.category) for w in caught):
        warnings.warn(message, category, stacklevel=4)
