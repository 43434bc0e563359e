"""What a program that is timed gets and gives back.

Standard library only, because it is read in the environment of every peer.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Task(NamedTuple):
    """Which variant of a program, a file of training rows, how long it trains, how many models."""

    variant: str
    rows: str
    epochs: int
    batch_size: int
    n_models: int


class Job(NamedTuple):
    """One program with its rows in hand: `fit` is timed, `check(fit())` is not."""

    fit: Callable[[], Any]
    check: Callable[[Any], dict[str, float]]


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """Return what an action returns, and its seconds."""
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start
