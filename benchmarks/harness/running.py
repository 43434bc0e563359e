"""Every benchmark in a process of its own: what runs when, and what comes back.

Benchmarks of one group are compared, so they take turns: a machine that is slower for a minute is
slower for all of them.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.environments import ROOT, python_of
from benchmarks.speed.kept import FOLDER_VARIABLE, PYTHON_VARIABLE
from benchmarks.speed.settings import QUICK_VARIABLE

SPEED = ROOT / "benchmarks" / "speed"
LONGEST = 900  # seconds a process may take


class Case(NamedTuple):
    """One benchmark, as it describes itself."""

    part: str
    node: str
    group: str
    name: str
    environment: str
    turns: int
    cache: str


class Step(NamedTuple):
    """One process: a benchmark's turn; turn -1 fills its cache and is not counted."""

    case: Case
    turn: int


class Place(NamedTuple):
    """Where a run keeps what its benchmarks share, and whether it is quick."""

    folder: Path
    quick: bool

    def variables(self, case: Case | None = None) -> dict[str, str]:
        """Return the environment of a process."""
        added = {
            "PYTHONPATH": str(ROOT),
            FOLDER_VARIABLE: str(self.folder),
            PYTHON_VARIABLE: str(python_of("commod")),
            QUICK_VARIABLE: "1" if self.quick else "",
            # nothing is loaded that the program itself does not load
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        filled = case is not None and case.cache == "filled"
        found = {name: value for name, value in os.environ.items() if not _is_dropped(name)}
        home = self.folder / ("compiled" if filled else "compiled-by-nobody")
        if self.quick:  # several processes share the cores
            found.setdefault("OMP_NUM_THREADS", "1")
        return {**found, **added, CACHE_HOME: str(home), **({} if filled else {NO_CACHE: "false"})}


def _is_dropped(name: str) -> bool:
    """Return whether a variable of ours would change what a process measures, or keep it from it.

    pytest-benchmark measures nothing where it believes to be a worker of pytest-xdist.
    """
    return name == NO_CACHE or name.startswith("PYTEST_")


NO_CACHE = "JAX_ENABLE_COMPILATION_CACHE"
CACHE_HOME = "COMMOD_CACHE_HOME"


class Processes:
    """The processes of a run, which end with it, whatever happens."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._has_ended = False

    def run(self, command: list[str], variables: dict[str, str]) -> tuple[int, str]:
        """Return the code and, where it is not 0, the last words of a command."""
        with subprocess.Popen(
            command,
            env=variables,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # so that what it started ends with it
        ) as child:
            self._running.add(child)
            try:
                return self._wait(child)
            finally:
                _end(child)
                self._running.discard(child)

    def _wait(self, child: subprocess.Popen[str]) -> tuple[int, str]:
        if self._has_ended:
            return 1, "interrupted"
        try:
            said, _ = child.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            return 1, f"took longer than {LONGEST} s"
        return child.returncode, _last(said) if child.returncode else ""

    def end(self) -> None:
        """End all that is running; what is started later ends at once."""
        self._has_ended = True
        for child in list(self._running):
            _end(child)


def _end(child: subprocess.Popen[str]) -> None:
    """End a process and everything that it started."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def list_cases(place: Place) -> list[Case]:
    """Return every benchmark that pytest finds."""
    path = place.folder / "cases.json"
    command = _pytest("commod", str(SPEED), "--collect-only", f"--list-cases={path}")
    done = subprocess.run(command, env=place.variables(), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"The benchmarks cannot be listed:\n{_last(done.stdout + done.stderr)}")
    return in_groups(Case(**described) for described in json.loads(path.read_text()))


def in_groups(cases: Iterable[Case]) -> list[Case]:
    """Return benchmarks with those of one group side by side."""
    cases = list(cases)
    groups = {(case.part, case.group): None for case in cases}
    return [case for group in groups for case in cases if (case.part, case.group) == group]


def steps_of(cases: Iterable[Case]) -> Iterator[Step]:
    """Yield processes in order: groups one after another, their benchmarks in turns."""
    for _, together in groupby(cases, key=lambda case: (case.part, case.group)):
        compared = list(together)
        yield from (Step(case, -1) for case in compared if case.cache == "filled")
        for turn in range(max(case.turns for case in compared)):
            yield from (Step(case, turn) for case in compared if turn < case.turns)


def run_step(step: Step, place: Place, processes: Processes) -> dict[str, Any]:
    """Return what a process measured, or why it failed."""
    with tempfile.TemporaryDirectory(dir=place.folder) as folder:
        answer = Path(folder) / "answer.json"
        command = _pytest(
            step.case.environment,
            str(ROOT / "benchmarks" / "speed" / step.case.node),
            f"--benchmark-json={answer}",
            f"--basetemp={Path(folder) / 'files'}",
        )
        code, said = processes.run(command, place.variables(step.case))
        if code or not answer.exists():
            return {"turn": step.turn, "failed": said or f"ended with {code}"}
        return read_answer(json.loads(answer.read_text()), step.turn)


def read_answer(answer: dict[str, Any], turn: int) -> dict[str, Any]:
    """Return a turn from the JSON of pytest-benchmark; it has one benchmark."""
    (benchmark,) = answer["benchmarks"]
    rounds = benchmark["stats"]["data"]
    return {
        "turn": turn,
        "rounds": rounds,
        "seconds": statistics.median(rounds),
        "extra": benchmark["extra_info"],
        "versions": answer["machine_info"],
    }


def _pytest(environment: str, *words: str) -> list[str]:
    config = ["-c", str(SPEED / "pytest.ini"), "--rootdir", str(SPEED)]
    plugin = ["-p", "pytest_benchmark.plugin"]
    return [str(python_of(environment)), "-m", "pytest", *config, *plugin, *words]


def _last(said: str, most: int = 12) -> str:
    return "\n".join(said.strip().splitlines()[-most:])
