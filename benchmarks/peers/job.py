"""The inputs and outputs of a timed program.

The module needs only the standard library: every peer's environment imports it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Task(NamedTuple):
    """Variant of a program, file of training rows, length of training, number of models."""

    variant: str
    rows: str
    epochs: int
    batch_size: int
    n_models: int


class Job(NamedTuple):
    """A program that has read its rows: `fit` is timed, `check(fit())` is not."""

    fit: Callable[[], Any]
    check: Callable[[Any], dict[str, float]]


def timed(action: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of an action and its seconds."""
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start
