"""Cells of work: each is computed once and stored on disk under a key.

A cell is a call of a module's `compute` with plain arguments. Its key is a digest of the arguments,
the code of the library and the experiment, and the versions of the packages they use. So a stopped
run continues where it was, and results of older code are never used.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import json
import multiprocessing
import os
import platform
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

import commod

HERE = Path(__file__).parent
STORE = HERE / ".cache" / "cells"
SHARED = (
    "paper",
    "adult",
    "protocol",
    "methods",
    "matching",
)  # modules that any cell may use
PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "jax", "jaxlib")
# One thread per cell. Two threads in each of two processes would compete for two cores, and a
# machine with more cores would add sums in another order.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


@dataclass(frozen=True, eq=False)
class Cell:
    """One call of `experiments.<module>.compute`, and a rough estimate of its seconds."""

    module: str
    arguments: dict[str, Any]
    estimate: float = 5.0

    @property
    def key(self) -> str:
        """Return the digest of everything that the result depends on."""
        content = json.dumps([self.module, self.arguments, code_of(self.module)], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()[:24]

    @property
    def name(self) -> str:
        """Return the module and the short arguments, for messages."""
        parts = [str(v) for v in self.arguments.values() if isinstance(v, str | int)]
        return f"{self.module}: {', '.join(parts)}"


@dataclass(frozen=True)
class Outcome:
    """The records of a cell, or the reason why it failed, and its seconds."""

    records: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    error: str = ""


class Done:
    """The outcomes of finished cells."""

    def __init__(self) -> None:
        self._outcomes: dict[str, Outcome] = {}
        self.n_kept = 0

    def __len__(self) -> int:
        return len(self._outcomes)

    def add(self, cell: Cell, outcome: Outcome) -> None:
        """Add the outcome of a cell."""
        self._outcomes[cell.key] = outcome

    def frame(self, cells: Iterable[Cell]) -> pd.DataFrame:
        """Return the records of cells, with the arguments first; failed cells are left out."""
        records = [
            {**cell.arguments, **record}
            for cell in cells
            for record in self._outcomes.get(cell.key, Outcome()).records
        ]
        return pd.DataFrame(records)

    @property
    def seconds(self) -> float:
        """Return the seconds of all cells together, stored ones included."""
        return sum(outcome.seconds for outcome in self._outcomes.values())

    @property
    def failures(self) -> list[str]:
        """Return the reasons why cells failed."""
        return [outcome.error for outcome in self._outcomes.values() if outcome.error]


def compute_all(cells: Sequence[Cell], done: Done, jobs: int, effort: float = 1.0) -> None:
    """Compute the cells that are not stored, the longest first, and add all cells to `done`.

    `effort` scales the estimated seconds of a cell until the first cells are finished.
    """
    distinct = list({cell.key: cell for cell in cells}.values())
    missing = [cell for cell in distinct if not _read(cell, done)]
    missing.sort(key=lambda cell: -cell.estimate)
    if not missing:
        return
    context = multiprocessing.get_context("spawn")
    progress = _Progress(len(distinct), missing, jobs, effort)
    # a worker that gets Ctrl-C would end its training early and return that as its result
    quiet = {"initializer": signal.signal, "initargs": (signal.SIGINT, signal.SIG_IGN)}
    with one_thread(), progress, ProcessPoolExecutor(jobs, context, **quiet) as pool:
        futures = {pool.submit(_computed, cell.module, cell.arguments): cell for cell in missing}
        try:
            for future in as_completed(futures):
                cell, outcome = futures[future], _outcome(future, futures[future])
                if not outcome.error:
                    _store(cell, outcome)
                done.add(cell, outcome)
                progress.finished(cell, outcome)
        except BaseException:  # Ctrl-C or a full disk: what the workers compute now is lost
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


@contextmanager
def one_thread() -> Iterator[None]:
    """Let new workers use one thread; NumPy and JAX read these variables when imported."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _computed(module: str, arguments: dict[str, Any]) -> Outcome:
    start = time.perf_counter()
    records = importlib.import_module(f"experiments.{module}").compute(**arguments)
    plain = json.loads(json.dumps(records, default=_plain))  # equal to what is read from the store
    return Outcome(plain, time.perf_counter() - start)


def _plain(value: Any) -> Any:
    """Return a NumPy number as Python's."""
    return value.item()


def _outcome(future: Future[Outcome], cell: Cell) -> Outcome:
    try:
        return future.result()
    except Exception as error:  # a failed cell must not stop hours of other cells
        return Outcome(error=f"{cell.name}: {type(error).__name__}: {error}")


# ---------------------------------------------------------------------------------------------
# The store


def _path(cell: Cell) -> Path:
    return STORE / f"{cell.module}-{cell.key}.json"


def _read(cell: Cell, done: Done) -> bool:
    try:
        kept = json.loads(_path(cell).read_text())
    except (OSError, ValueError):
        return False
    if not _is_whole(kept):
        return False
    done.add(cell, Outcome(kept["records"], kept["seconds"]))
    done.n_kept += 1
    return True


def _is_whole(kept: Any) -> bool:
    """Return whether a file holds what `_store` writes."""
    if not isinstance(kept, dict) or not isinstance(kept.get("records"), list):
        return False
    known = isinstance(kept.get("seconds"), int | float)
    return known and all(isinstance(record, dict) for record in kept["records"])


def _store(cell: Cell, outcome: Outcome) -> None:
    """Store an outcome; the file is renamed last, so that a stopped run leaves no half file."""
    STORE.mkdir(parents=True, exist_ok=True)
    content = {"name": cell.name, "seconds": outcome.seconds, "records": outcome.records}
    unfinished = _path(cell).with_suffix(".part")
    unfinished.write_text(json.dumps(content))
    unfinished.replace(_path(cell))


@cache
def code_of(module: str) -> str:
    """Return a digest of the code that a module's cells run, and of all package versions."""
    files = sorted(Path(commod.__file__).parent.rglob("*.py"))
    files += [HERE / f"{name}.py" for name in (*SHARED, module)]
    content = json.dumps([versions(), ONE_THREAD], sort_keys=True)
    digest = hashlib.sha256(content.encode())
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that the figures depend on."""
    packages = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), **packages}


# ---------------------------------------------------------------------------------------------
# Progress


class _Progress:
    """A bar with the remaining time on a terminal, a line per finished cell elsewhere."""

    def __init__(self, n_cells: int, missing: Sequence[Cell], jobs: int, effort: float) -> None:
        self._n_left, self._jobs, self._effort = len(missing), jobs, effort
        self._estimate_left = sum(cell.estimate for cell in missing)
        self._estimate_done, self._seconds_done = 0.0, 0.0
        self._bar = Progress(
            TextColumn("{task.completed} of {task.total} cells"),
            BarColumn(),
            TextColumn("{task.fields[left]} left: {task.description}"),
            console=Console(stderr=True),
        )
        kept = n_cells - len(missing)
        self._task = self._bar.add_task("", total=n_cells, completed=kept, left=self._left())
        self._bar.console.print(
            f"{n_cells} cells, {kept} stored before, {len(missing)} to compute: about "
            f"{self._left()} with {jobs} at once"
        )

    def __enter__(self) -> _Progress:
        if self._bar.console.is_terminal:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def finished(self, cell: Cell, outcome: Outcome) -> None:
        self._n_left -= 1
        self._estimate_left -= cell.estimate
        self._estimate_done += cell.estimate
        self._seconds_done += outcome.seconds
        self._bar.update(self._task, advance=1, description=cell.name, left=self._left())
        console = self._bar.console
        if outcome.error:
            console.print(f"FAILED {outcome.error}", markup=False)
        elif not console.is_terminal:
            seconds = f"{outcome.seconds:.0f} s; {self._n_left} cells, {self._left()} left"
            console.print(f"{cell.name} ({seconds})", markup=False, soft_wrap=True)

    def _left(self) -> str:
        """Return the remaining time, from the ratio of real to estimated seconds so far."""
        pace = self._seconds_done / self._estimate_done if self._seconds_done else self._effort
        seconds = self._estimate_left * pace / self._jobs
        return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def default_jobs() -> int:
    """Return how many cells are computed at once: one for each core this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
