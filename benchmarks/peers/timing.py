"""How each program is timed: its first call with its imports, then its next calls.

Standard library only, because it runs in the environment of every peer.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Task(NamedTuple):
    """What is given to a program: which of its variants, a file of training rows, how long."""

    variant: str
    rows: str
    epochs: int
    batch_size: int


class Job(NamedTuple):
    """One program with its rows in hand: `fit` is timed, `check(fit())` is not."""

    fit: Callable[[], Any]
    check: Callable[[Any], dict[str, float]]


def report(import_program: Callable[[], Callable[[Task], Job]]) -> None:
    """Time the program named by the command line's task and print one line of JSON.

    `import_program` does the imports and returns what reads the rows; reading is not timed.
    """
    variant, rows, epochs, batch_size, repeats = sys.argv[1:]
    with contextlib.redirect_stdout(io.StringIO()):  # some programs print while they train
        prepare, importing = _timed(import_program)
        job = prepare(Task(variant, rows, int(epochs), int(batch_size)))
        fitted, first = _timed(job.fit)
        following = [_timed(job.fit)[1] for _ in range(int(repeats))]
        checks = job.check(fitted)
    times = {"imports": importing, "first_fit": first, "first_call": importing + first}
    print(json.dumps({**times, "next_calls": following, **checks}))


def _timed(action: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = action()
    return result, time.perf_counter() - start
