"""Time a fit with targets on new rows, and the frontier, beside fits on fit rows and others.

Programs take turns in one run, and the figures are ratios of medians. JOBS is not used. `OLD` names
the source folder of version 0.1; without it, the frontier is compared with `target_on="fit_rows"`.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from expected import fit_update
from experiments.protocol import ADULT, quietly
from protocol import TABLES, Split, make_split
from report import show, show_at_most

from benchmarks.environments import ROOT, is_ready, python_of
from benchmarks.peers.old_commod import has_old_version, old_records
from benchmarks.speed.settings import FULL
from benchmarks.speed.tables import encoded_split
from commod import ControlledDebiaser, frontier

REPEATS = 5
MAX_FIT, GOAL_FIT, MAX_FRONTIER = 4.0, 2.0, 1.4
FAIRLEARN_FIT = """
import sys
from benchmarks.peers.fairlearn_fit import import_program
from benchmarks.peers.job import Task, timed
variant, rows, epochs, batch_size = sys.argv[1:]
job = import_program()(Task(variant, rows, int(epochs), int(batch_size), 1))
print(timed(job.fit)[1])
"""


def expected_cost() -> None:
    """Print the ratios of times."""
    repeats = int(os.environ.get("REPEATS", REPEATS))
    for table in (*TABLES, ADULT):
        split = make_split(table, 0)
        new, old = _medians([_timed_fit(split, kind) for kind in ("new_rows", "fit_rows")], repeats)
        words = f"({new:.2f} s / {old:.2f} s; goal {GOAL_FIT:g})"
        show_at_most(f"{table}: default fit / target_on='fit_rows'", new / old, MAX_FIT, words)
    for table in TABLES:
        _frontier_cost(table, repeats)


def _frontier_cost(table: str, repeats: int) -> None:
    split = make_split(table, 0)

    def of_ours() -> float:
        return _frontier_seconds(split)

    def of_earlier() -> float:
        if has_old_version():
            return float(old_records(split)[0]["seconds"])
        return _frontier_seconds(split, target_on="fit_rows")

    name = "version 0.1" if has_old_version() else "target_on='fit_rows'"
    ours, earlier = _medians([of_ours, of_earlier], repeats)
    words = f"({ours:.2f} s / {earlier:.2f} s)"
    show_at_most(f"{table}: frontier of 100 / {name}", ours / earlier, MAX_FRONTIER, words)
    for variant in ("linear", "guide"):
        label = f"{table}: frontier of 100 / one fit of Fairlearn, {variant}"
        if not is_ready("fairlearn"):
            show(label, "not measured", "`make bench` installs it and measures this")
            continue
        peer = _fairlearn_seconds(table, variant)
        show_at_most(label, ours / peer, 1.0, f"({ours:.2f} s / {peer:.2f} s)")


def _timed_fit(split: Split, target_on: str) -> Callable[[], float]:
    return lambda: _seconds(lambda: fit_update(split, target_on=target_on))


def _seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _medians(programs: list[Callable[[], float]], repeats: int) -> list[float]:
    """Return the median seconds of each program; they take turns after one unmeasured turn."""
    for program in programs:
        program()
    turns = [[program() for program in programs] for _ in range(repeats)]
    return [statistics.median(times) for times in zip(*turns, strict=True)]


def _frontier_seconds(split: Split, **settings: Any) -> float:
    update = ControlledDebiaser(split.model, **settings)
    with quietly():
        return _seconds(lambda: frontier(update, **split.fit_rows))


def _fairlearn_seconds(table: str, variant: str) -> float:
    """Return the seconds of one adversarial fit, imports not counted, in its own environment."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npz"
        encoded_split(rows, table)
        sizes = (str(FULL.epochs), str(FULL.batch_size))
        process = subprocess.run(
            [python_of("fairlearn"), "-c", FAIRLEARN_FIT, variant, rows, *sizes],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    return float(process.stdout.split()[-1])
