"""Run every benchmark in its own process: the order of processes, and their results.

Benchmarks of one group are compared, so they take turns. A machine that is slow for a minute is
then slow for all of them.
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
from benchmarks.speed.settings import QUICK_VARIABLE
from benchmarks.speed.shared_file import FOLDER_VARIABLE, PYTHON_VARIABLE

SPEED = ROOT / "benchmarks" / "speed"
TIME_LIMIT = 900  # seconds that a process may take


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
    """One process: one turn of a benchmark. Turn -1 fills the cache and is not counted."""

    case: Case
    turn: int


class Place(NamedTuple):
    """The folder of the files that the benchmarks of a run share; whether the run is quick."""

    folder: Path
    quick: bool

    def variables(self, case: Case | None = None) -> dict[str, str]:
        """Return the environment of a process."""
        added = {
            # the code of this checkout, also where another checkout is installed
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
            FOLDER_VARIABLE: str(self.folder),
            PYTHON_VARIABLE: str(python_of("commod")),
            QUICK_VARIABLE: "1" if self.quick else "",
            # a plugin would load modules that the program itself does not load
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        filled = case is not None and case.cache == "filled"
        kept = {name: value for name, value in os.environ.items() if not _is_dropped(name)}
        home = self.folder / ("compiled" if filled else "no-compiled-programs")
        if self.quick:  # several processes share the cores
            kept.setdefault("OMP_NUM_THREADS", "1")
        return {**kept, **added, CACHE_HOME: str(home), **({} if filled else {NO_CACHE: "false"})}


def _is_dropped(name: str) -> bool:
    """Return whether a variable of this process would change or prevent a measurement.

    pytest-benchmark measures nothing if it takes itself for a worker of pytest-xdist. Installed
    packages have bytecode; without bytecode of its own, commod alone would be compiled at every
    start.
    """
    return name in (NO_CACHE, "PYTHONDONTWRITEBYTECODE") or name.startswith("PYTEST_")


NO_CACHE = "JAX_ENABLE_COMPILATION_CACHE"
CACHE_HOME = "COMMOD_CACHE_HOME"


class Processes:
    """The processes of a run; all of them end when the run ends."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._has_ended = False

    def run(self, command: list[str], variables: dict[str, str]) -> tuple[int, str]:
        """Return the exit code of a command and, if it is not 0, its last lines of output."""
        with subprocess.Popen(
            command,
            env=variables,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # so that its own child processes end with it
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
            output, _ = child.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            return 1, f"took longer than {TIME_LIMIT} s"
        return child.returncode, _last_lines(output) if child.returncode else ""

    def end(self) -> None:
        """End all running processes; a process that starts later ends at once."""
        self._has_ended = True
        for child in list(self._running):
            _end(child)


def _end(child: subprocess.Popen[str]) -> None:
    """End a process and all processes that it started."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def list_cases(place: Place) -> list[Case]:
    """Return every benchmark that pytest collects."""
    path = place.folder / "cases.json"
    command = _pytest("commod", str(SPEED), "--collect-only", f"--list-cases={path}")
    done = subprocess.run(command, env=place.variables(), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(
            f"The benchmarks cannot be listed:\n{_last_lines(done.stdout + done.stderr)}"
        )
    return in_groups(Case(**described) for described in json.loads(path.read_text()))


def in_groups(cases: Iterable[Case]) -> list[Case]:
    """Return the benchmarks ordered so that those of one group follow each other."""
    cases = list(cases)
    groups = {(case.part, case.group): None for case in cases}
    return [case for group in groups for case in cases if (case.part, case.group) == group]


def steps_of(cases: Iterable[Case]) -> Iterator[Step]:
    """Yield processes in order: group after group, with the benchmarks of a group in turns."""
    for _, group in groupby(cases, key=lambda case: (case.part, case.group)):
        compared = list(group)
        yield from (Step(case, -1) for case in compared if case.cache == "filled")
        for turn in range(max(case.turns for case in compared)):
            yield from (Step(case, turn) for case in compared if turn < case.turns)


def run_step(step: Step, place: Place, processes: Processes) -> dict[str, Any]:
    """Run a process and return its measurements, or the reason why it failed."""
    with tempfile.TemporaryDirectory(dir=place.folder) as folder:
        answer = Path(folder) / "answer.json"
        command = _pytest(
            step.case.environment,
            str(ROOT / "benchmarks" / "speed" / step.case.node),
            f"--benchmark-json={answer}",
            f"--basetemp={Path(folder) / 'files'}",
        )
        code, output = processes.run(command, place.variables(step.case))
        if code or not answer.exists():
            return {"turn": step.turn, "failed": output or f"ended with {code}"}
        return read_answer(json.loads(answer.read_text()), step.turn)


def read_answer(answer: dict[str, Any], turn: int) -> dict[str, Any]:
    """Return a turn from the JSON of pytest-benchmark, which has one benchmark."""
    (benchmark,) = answer["benchmarks"]
    rounds = benchmark["stats"]["data"]
    return {
        "turn": turn,
        "rounds": rounds,
        "seconds": statistics.median(rounds),
        "extra": benchmark["extra_info"],
        "versions": answer["machine_info"],
    }


def _pytest(environment: str, *arguments: str) -> list[str]:
    config = ["-c", str(SPEED / "pytest.ini"), "--rootdir", str(SPEED)]
    plugin = ["-p", "pytest_benchmark.plugin"]
    return [str(python_of(environment)), "-m", "pytest", *config, *plugin, *arguments]


def _last_lines(output: str, most: int = 12) -> str:
    return "\n".join(output.strip().splitlines()[-most:])
