"""Cells of work: each is computed once, kept on disk, and found again by what it depends on.

A cell is a call of a module's `compute` with plain arguments. Its key is a digest of the arguments,
of the library's and the experiment's code and of the versions of what they stand on: a stopped run
goes on where it was, and nothing computed by older code is taken for new.
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
SHARED = ("paper", "adult", "protocol", "methods", "matching")  # what every cell's code may rest on
PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "jax", "jaxlib")
# One thread per cell: two threads in each of two processes would fight over two cores, and sums
# would be added in another order on a machine with more.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


@dataclass(frozen=True, eq=False)
class Cell:
    """One call of `experiments.<module>.compute`, and a guess of the seconds it takes."""

    module: str
    arguments: dict[str, Any]
    guess: float = 5.0

    @property
    def key(self) -> str:
        """Return the digest of everything the result depends on."""
        told = json.dumps([self.module, self.arguments, code_of(self.module)], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:24]

    @property
    def name(self) -> str:
        """Return the cell in words."""
        parts = [str(v) for v in self.arguments.values() if isinstance(v, str | int)]
        return f"{self.module}: {', '.join(parts)}"


@dataclass(frozen=True)
class Outcome:
    """What a cell gave, or why it failed, and how long it took."""

    lines: list[dict[str, Any]] = field(default_factory=list)
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
        """Take the outcome of a cell."""
        self._outcomes[cell.key] = outcome

    def frame(self, cells: Iterable[Cell]) -> pd.DataFrame:
        """Return the lines of cells, the arguments first; cells that failed are left out."""
        lines = [
            {**cell.arguments, **line}
            for cell in cells
            for line in self._outcomes.get(cell.key, Outcome()).lines
        ]
        return pd.DataFrame(lines)

    @property
    def seconds(self) -> float:
        """Return what all cells took together, whenever they were computed."""
        return sum(outcome.seconds for outcome in self._outcomes.values())

    @property
    def failures(self) -> list[str]:
        """Return why cells failed."""
        return [outcome.error for outcome in self._outcomes.values() if outcome.error]


def compute_all(cells: Sequence[Cell], done: Done, jobs: int, effort: float = 1.0) -> None:
    """Compute what is not kept yet, the longest first, and put everything into `done`.

    `effort` is how much of a guess of seconds a cell may take, for the first estimate.
    """
    different = list({cell.key: cell for cell in cells}.values())
    missing = [cell for cell in different if not _read(cell, done)]
    missing.sort(key=lambda cell: -cell.guess)
    if not missing:
        return
    context = multiprocessing.get_context("spawn")
    progress = _Progress(len(different), missing, jobs, effort)
    # a worker that heard Ctrl-C would end its training early and give that as its result
    quiet = {"initializer": signal.signal, "initargs": (signal.SIGINT, signal.SIG_IGN)}
    with _one_thread(), progress, ProcessPoolExecutor(jobs, context, **quiet) as pool:
        futures = {pool.submit(_computed, cell.module, cell.arguments): cell for cell in missing}
        try:
            for future in as_completed(futures):
                cell, outcome = futures[future], _outcome(future, futures[future])
                if not outcome.error:
                    _keep(cell, outcome)
                done.add(cell, outcome)
                progress.finished(cell, outcome)
        except BaseException:  # Ctrl-C, or a full disk: nothing that is computed now is of use
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let workers that start now use one thread; NumPy and JAX ask when they are imported."""
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
    lines = importlib.import_module(f"experiments.{module}").compute(**arguments)
    plain = json.loads(json.dumps(lines, default=_plain))  # the same whether kept or computed
    return Outcome(plain, time.perf_counter() - start)


def _plain(value: Any) -> Any:
    """Return a NumPy number as Python's."""
    return value.item()


def _outcome(future: Future[Outcome], cell: Cell) -> Outcome:
    try:
        return future.result()
    except Exception as error:  # one cell that fails must not take hours of others with it
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
    done.add(cell, Outcome(kept["lines"], kept["seconds"]))
    done.n_kept += 1
    return True


def _is_whole(kept: Any) -> bool:
    """Return whether a file holds what `_keep` writes."""
    if not isinstance(kept, dict) or not isinstance(kept.get("lines"), list):
        return False
    known = isinstance(kept.get("seconds"), int | float)
    return known and all(isinstance(line, dict) for line in kept["lines"])


def _keep(cell: Cell, outcome: Outcome) -> None:
    """Write under another name first: a run stopped here leaves nothing half-written."""
    STORE.mkdir(parents=True, exist_ok=True)
    told = {"name": cell.name, "seconds": outcome.seconds, "lines": outcome.lines}
    unfinished = _path(cell).with_suffix(".part")
    unfinished.write_text(json.dumps(told))
    unfinished.replace(_path(cell))


@cache
def code_of(module: str) -> str:
    """Return a digest of the code a module's cells run, and of the versions beneath it."""
    files = sorted(Path(commod.__file__).parent.rglob("*.py"))
    files += [HERE / f"{name}.py" for name in (*SHARED, module)]
    told = json.dumps([versions(), ONE_THREAD], sort_keys=True)
    digest = hashlib.sha256(told.encode())
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages the figures rest on."""
    found = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), **found}


# ---------------------------------------------------------------------------------------------
# Progress


class _Progress:
    """A bar with the remaining time on a terminal, a line per finished cell elsewhere."""

    def __init__(self, n_cells: int, missing: Sequence[Cell], jobs: int, effort: float) -> None:
        self._n_left, self._jobs, self._effort = len(missing), jobs, effort
        self._guess_left = sum(cell.guess for cell in missing)
        self._guess_done, self._seconds_done = 0.0, 0.0
        self._bar = Progress(
            TextColumn("{task.completed} of {task.total} cells"),
            BarColumn(),
            TextColumn("{task.fields[left]} left: {task.description}"),
            console=Console(stderr=True),
        )
        kept = n_cells - len(missing)
        self._task = self._bar.add_task("", total=n_cells, completed=kept, left=self._left())
        self._bar.console.print(
            f"{n_cells} cells, {kept} kept from before, {len(missing)} to compute: about "
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
        self._guess_left -= cell.guess
        self._guess_done += cell.guess
        self._seconds_done += outcome.seconds
        self._bar.update(self._task, advance=1, description=cell.name, left=self._left())
        console = self._bar.console
        if outcome.error:
            console.print(f"FAILED {outcome.error}", markup=False)
        elif not console.is_terminal:
            seconds = f"{outcome.seconds:.0f} s; {self._n_left} cells, {self._left()} left"
            console.print(f"{cell.name} ({seconds})", markup=False, soft_wrap=True)

    def _left(self) -> str:
        """Return the time the rest will take, going by how long the guesses were so far."""
        pace = self._seconds_done / self._guess_done if self._seconds_done else self._effort
        seconds = self._guess_left * pace / self._jobs
        return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def default_jobs() -> int:
    """Return how many cells are computed at once: one for each core this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
