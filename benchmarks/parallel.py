"""Run the fits of a figure: which seeds, how many processes, and results that are kept.

`SEEDS=0..1` takes the seeds 0 and 1 only. `SEEDS=1000..` takes as many seeds as the figure has,
from 1000 on: settings are chosen on such seeds, and figures are reported on the seeds from 0 on.
`JOBS=16` uses 16 processes. `SETTINGS='{"borderline": 0}'` passes parameters to every
`ControlledDebiaser`, where the figure does not set them itself.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from experiments.run import one_thread
from rich.console import Console
from rich.progress import track

RESULTS = Path(__file__).parent / "results"


def seeds(n: int) -> range:
    """Return the seeds of a figure: 0..n-1, or those in the environment, at most n of them."""
    first, _, last = os.environ.get("SEEDS", "0..").partition("..")
    start = int(first or 0)
    end = min(start + n, int(last) + 1) if last else start + n
    return range(start, min(end, start + int(os.environ.get("SPLITS", n))))


def chosen_settings() -> dict[str, Any]:
    """Return the parameters of `ControlledDebiaser` that the environment sets."""
    settings: dict[str, Any] = json.loads(os.environ.get("SETTINGS", "{}"))
    return settings


def in_parallel(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Return the results of a function, in the order of its arguments, from JOBS processes.

    A terminal shows how many of them are there.
    """
    jobs = int(os.environ.get("JOBS", 1))
    console = Console(stderr=True)
    bar = {"console": console, "transient": True, "disable": not console.is_terminal}
    if jobs == 1:
        return [function(*one) for one in track(arguments, "fits", **bar)]
    context = multiprocessing.get_context("spawn")
    with one_thread(), ProcessPoolExecutor(jobs, context) as pool:
        futures = [pool.submit(function, *one) for one in arguments]
        return [future.result() for future in track(futures, "fits", **bar)]


def kept(name: str, compute: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return records of slow methods that do not change with this library's search.

    They are computed once and stored in `benchmarks/results`. Delete the file to compute anew.
    """
    path = RESULTS / f"{name.replace(' ', '_')}.json"
    if path.exists():
        stored: list[dict[str, Any]] = json.loads(path.read_text())
        return stored
    records = compute()
    RESULTS.mkdir(exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(records, default=float))
    unfinished.replace(path)  # a stopped run leaves no half file
    return records
