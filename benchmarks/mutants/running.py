"""Find out which mutants the tests kill.

A mutant is killed if one of the tests that reach its line fails. Tests that reach few lines and
cost little run first. At most `SECONDS` of tests are run for one mutant; what they do not kill has
survived. Where all of them skip, because a program is missing on this machine, nobody has judged
the mutant.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

from benchmarks.mutants.making import Mutant
from benchmarks.mutants.reach import FIXTURE

ROOT = Path(__file__).parents[2]
PACKAGE = "src/commod"
PLUGIN = "benchmarks.mutants.reach"
IMPORT = "import"  # the context of what runs before any test: all tests of the file judge it
SECONDS = 90.0  # CPU seconds of tests for one mutant
PATIENCE = 240.0  # seconds that a mutant may take beyond: it loops for ever
SETTINGS = """[run]
parallel = true
source_pkgs = commod
data_file = {folder}/data
context = ${{COVERAGE_CONTEXT-{name}}}
"""
NONE_COLLECTED = 5  # the exit code of pytest
STARTED = "import coverage; coverage.process_startup()\n"  # in every Python that a test starts


class Verdict(NamedTuple):
    """What became of a mutant: `how` is killed, survived, slow (killed), unreached or skipped."""

    mutant: Mutant
    how: str
    n_tests: int
    killer: str

    @property
    def is_killed(self) -> bool:
        """Return whether the tests found the fault."""
        return self.how in ("killed", "slow")


@dataclass
class Reached:
    """Which tests reach which lines, and what a test costs; read from a folder of `measure`."""

    tests: dict[str, dict[str, Any]]
    by_line: dict[str, dict[int, set[str]]]
    focus: dict[str, int]

    @classmethod
    def read(cls, folder: Path) -> Reached:
        """Return what the processes of a run have stored."""
        from coverage import CoverageData

        tests: dict[str, dict[str, Any]] = defaultdict(dict)
        for part in sorted(folder.glob("tests-*.json")):
            for name, facts in json.loads(part.read_text("utf-8")).items():
                tests[name] |= facts
        good = {name: one for name, one in tests.items() if one.get("passed") and "seconds" in one}
        users: dict[str, set[str]] = defaultdict(set)
        for name, one in good.items():
            for fixture in one["fixtures"]:
                users[fixture].add(name)
        data = CoverageData(str(folder / "data"))
        data.read()
        by_line: dict[str, dict[int, set[str]]] = {}
        focus: dict[str, int] = defaultdict(int)
        for measured in data.measured_files():
            file = measured[measured.index(PACKAGE) :]
            lines: dict[int, set[str]] = {}
            contexts_of = data.contexts_by_lineno(measured)
            for line, contexts in contexts_of.items():
                names: set[str] = set()
                for context in contexts:
                    name = context.removeprefix(f"{IMPORT}|")
                    names |= users[name] if name.startswith(FIXTURE) else {name} & good.keys()
                lines[line] = names
                for name in names:
                    focus[name] += 1
            of_file = set().union(*lines.values())
            once = {line for line, found in contexts_of.items() if IMPORT in found}
            if (ROOT / file).exists():
                once |= cached_lines((ROOT / file).read_text("utf-8")) & lines.keys()
            lines |= dict.fromkeys(once, of_file)
            by_line[file] = lines
        return cls(good, by_line, focus)

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach a mutant, those that reach few lines and cost little first.

        What runs on import, or once in a process because its result is kept, is judged by all
        tests that reach any line of the file. Tests of one file stay together, because they share
        fixtures.
        """
        lines = self.by_line.get(mutant.file, {})
        found = set().union(*(lines.get(line, set()) for line in mutant.lines))
        by_file: dict[str, list[str]] = defaultdict(list)
        chosen, seconds = [], 0.0
        price = {name: 0.05 + self.tests[name]["seconds"] for name in found}
        for name in sorted(found, key=lambda name: (self.focus[name] * price[name], name)):
            seconds += price[name]
            if seconds > SECONDS and chosen:
                break
            chosen.append(name)
            by_file[name.partition("::")[0]].append(name)
        return [name for names in by_file.values() for name in names]


def cached_lines(source: str) -> set[int]:
    """Return the lines of functions whose result is kept: only the first test is seen there."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    kept = [f for f in functions if any("cache" in ast.unparse(d) for d in f.decorator_list)]
    return {line for f in kept for line in range(f.lineno, (f.end_lineno or f.lineno) + 1)}


# ---------------------------------------------------------------------------------------------
# Run


def environment(root: Path, **more: str) -> dict[str, str]:
    """Return the environment of a run of the tests in a copy of the repository."""
    path = os.pathsep.join([str(root / "src"), str(root), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **more}


def measure(folder: Path, n_jobs: int, tests: Sequence[str] = ()) -> None:
    """Run all tests or some once, and store which lines they reach.

    They run in a copy of the repository, as for a mutant: a test that fails there judges nothing.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "site").mkdir(parents=True)
    (folder / "site" / "sitecustomize.py").write_text(STARTED)
    settings = folder / "settings"
    settings.write_text(SETTINGS.format(folder=folder, name=IMPORT))
    command = [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN, "-n", str(n_jobs)]
    with tempfile.TemporaryDirectory() as home:
        copy = _copy(Path(home, "copy"))
        env = environment(copy, REACH=str(folder), COVERAGE_PROCESS_START=str(settings))
        env["PYTHONPATH"] = f"{folder / 'site'}{os.pathsep}{env['PYTHONPATH']}"
        subprocess.run([*command, "--dist", "loadfile", *tests], cwd=copy, env=env, check=False)
    combine = [sys.executable, "-m", "coverage", "combine", "-q", f"--rcfile={settings}"]
    subprocess.run([*combine, str(folder)], cwd=folder, check=False)


def judge(mutants: list[Mutant], reached: Reached, n_jobs: int) -> list[Verdict]:
    """Return what became of each mutant, in their order; progress goes to standard error."""
    with tempfile.TemporaryDirectory() as home, ThreadPoolExecutor(n_jobs) as pool:
        copies: Queue[Path] = Queue()
        for i in range(n_jobs):
            copies.put(_copy(Path(home, str(i))))

        def judged(mutant: Mutant) -> Verdict:
            copy = copies.get()
            try:
                verdict = _judge(mutant, reached.tests_of(mutant), copy)
            finally:
                copies.put(copy)
            print(verdict.how, mutant.shown((ROOT / mutant.file).read_text("utf-8")), flush=True)
            return verdict

        return list(pool.map(judged, mutants))


def _copy(root: Path) -> Path:
    """Return a copy of the files of the repository."""
    skipped = shutil.ignore_patterns(".*", "results", "_build", "__pycache__", "dist", "generated")
    shutil.copytree(ROOT, root, ignore=skipped)
    return root


def _judge(mutant: Mutant, tests: list[str], root: Path) -> Verdict:
    if not tests:
        return Verdict(mutant, "unreached", 0, "")
    file, chosen = root / mutant.file, root / "chosen.txt"
    source = file.read_text("utf-8")
    chosen.write_text("\n".join(tests), "utf-8")
    files = list(dict.fromkeys(name.partition("::")[0] for name in tests))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", PLUGIN, "-p", "no:xdist"]
    try:
        file.write_text(mutant.applied(source), "utf-8")
        done = subprocess.run(
            [*command, *files],
            cwd=root,
            env=environment(root, CHOSEN=str(chosen), PYTHONDONTWRITEBYTECODE="1"),
            capture_output=True,
            text=True,
            timeout=SECONDS + PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Verdict(mutant, "slow", len(tests), "")
    finally:
        file.write_text(source, "utf-8")
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    killer = " ".join(lines[:1])[:160]
    return Verdict(mutant, outcome_of(done.returncode, done.stdout), len(tests), killer)


def outcome_of(code: int, output: str) -> str:
    """Return what a run of pytest with `-q` says of a mutant, by its exit code and its output.

    Tests may be there and skip; where a whole file skips, none is collected.
    """
    if code not in (0, NONE_COLLECTED):
        return "killed"
    return "survived" if re.search(r"\b\d+ passed\b", output) else "skipped"
