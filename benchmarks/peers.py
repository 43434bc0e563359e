"""Speed of one fit, and of a whole frontier, against other libraries: `make bench`.

COMMOD against Fairlearn's and AIF360's adversarial classifiers: same epochs, batch size and rows,
one adversary step for each step of the model. ControlledDebiaser against OxonFair with inferred
groups, and a frontier of 100 of its models against ONE adversarial fit. Every peer keeps its own
adversary and lives in an environment of its own, made on the first run. A program runs in fresh
processes that take turns. Its first call counts the imports; the next calls are the median of
several fits after it. Peers get encoded features, ours the raw frame, which they encode themselves.

Where other work keeps cores busy, `OMP_NUM_THREADS=1 make bench` is fairer to programs with several
threads.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from protocol import N_CONCEPTS, TABLES, make_split

HERE = Path(__file__).parent
ROOT = HERE.parent


class Program(NamedTuple):
    """A script that is timed: its environment, its name and its variant."""

    environment: str
    script: str
    variant: str = ""


PROGRAMS = {
    "COMMOD": Program("commod", "commod_fit"),
    "ControlledDebiaser": Program("commod", "controlled_fit"),
    "frontier of 100": Program("commod", "controlled_fit", "frontier"),
    "OxonFair, inferred": Program("oxonfair", "oxonfair_fit"),
    "Fairlearn, linear": Program("fairlearn", "fairlearn_fit", "linear"),
    "Fairlearn, its guide": Program("fairlearn", "fairlearn_fit", "guide"),
    "AIF360": Program("aif360", "aif360_fit"),
}
ADVERSARIAL = ("Fairlearn, linear", "Fairlearn, its guide", "AIF360")


class Comparison(NamedTuple):
    """How many times faster than each of its peers a program must at least be."""

    ours: str
    peers: tuple[str, ...]
    time: str
    bar: float
    words: str


COMPARISONS = (
    Comparison("COMMOD", ADVERSARIAL, "next_call", 8, ">= 8 (goal 20)"),
    Comparison("COMMOD", ADVERSARIAL, "first_call", 1, ">= 1"),
    Comparison("ControlledDebiaser", ("OxonFair, inferred",), "next_call", 0.2, ">= 0.2 (goal)"),
    Comparison("ControlledDebiaser", ("OxonFair, inferred",), "first_call", 1, ">= 1 (goal)"),
    Comparison("frontier of 100", ADVERSARIAL, "next_call", 1, ">= 1 (goal)"),
    Comparison("frontier of 100", ADVERSARIAL, "first_call", 1, ">= 1 (goal)"),
)

Run = dict[str, Any]


def python_of(library: str) -> Path:
    """Return the interpreter of a library; a peer's environment is made where it is missing."""
    if library == "commod":
        return Path(sys.executable)
    home = ROOT / f".venv-{library}"
    folder, suffix = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")
    python = home / folder / f"python{suffix}"
    versions = HERE / "peers" / f"constraints-{library}.txt"
    stamp = home / "installed.txt"
    if not stamp.exists() or stamp.read_text() != versions.read_text():
        print(f"Installing {library} into {home.name} ...", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", home], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", versions], check=True)
        stamp.write_text(versions.read_text())
    return python


def write_rows(table: str, folder: Path) -> tuple[Path, Path]:
    """Write the training rows of split 0: raw for ours, encoded for the peers."""
    split = make_split(table, 0)
    encoded = split.model[0].transform(split.train.X)
    encoded = encoded.toarray() if hasattr(encoded, "toarray") else np.asarray(encoded)
    groups, codes = np.unique(np.asarray(split.train.s), return_inverse=True)
    if len(groups) != 2:
        raise ValueError(f"AIF360 takes two groups; {table} has {len(groups)}.")
    raw, encoded_rows = folder / f"{table}.pickle", folder / f"{table}.npz"
    np.savez(encoded_rows, X=encoded.astype(np.float64), y=np.asarray(split.train.y), s=codes)
    content = {"model": split.model, "n_concepts": N_CONCEPTS[table], **split.train}
    raw.write_bytes(pickle.dumps(content))
    return raw, encoded_rows


def measure(program: str, python: Path, rows: Path, settings: argparse.Namespace) -> Run:
    """Time one program in a fresh process."""
    _, name, variant = PROGRAMS[program]
    script = HERE / "peers" / f"{name}.py"
    numbers = (settings.epochs, settings.batch_size, settings.repeats)
    # a first call is one without anything compiled before
    environment = {**os.environ, "JAX_ENABLE_COMPILATION_CACHE": "false"}
    done = subprocess.run(
        [python, script, variant, rows, *map(str, numbers)],
        capture_output=True,
        text=True,
        env=environment,
    )
    if done.returncode:
        raise SystemExit(f"{program} failed:\n{done.stderr[-4000:]}")
    run = json.loads(done.stdout.splitlines()[-1])
    return {**run, "next_call": statistics.median(run["next_calls"])}


def spread(values: Sequence[float]) -> str:
    """Return the median with the least and the most, for the table."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def show_times(table: str, runs: dict[str, list[Run]]) -> None:
    """Print what was measured on one table, in seconds."""
    print(
        f"\n{table:<22} {'first call, s':<24} {'of it imports, s':<24} {'next calls, s':<24} ",
        end="",
    )
    print(f"{'steps':>6} {'accuracy on its rows':>21}")
    for program, turns in runs.items():
        columns = (
            spread([run[name] for run in turns]) for name in ("first_call", "imports", "next_call")
        )
        print(f"{program:<22} " + " ".join(f"{column:<24}" for column in columns), end="")
        print(f" {turns[-1]['steps']:>6} {turns[-1]['accuracy']:>21.3f}")


def show_ratios(table: str, runs: dict[str, list[Run]]) -> dict[str, list[float]]:
    """Print how many times faster ours were, beside the bars; ratios are taken turn by turn."""
    ratios = {}
    for ours, peers, name, bar, text in COMPARISONS:
        for peer in peers:
            if ours not in runs or peer not in runs:
                continue
            pairs = zip(runs[peer], runs[ours], strict=True)
            ratio = [theirs[name] / mine[name] for theirs, mine in pairs]
            figure = f"{name.replace('_', ' ')}, {peer} / {ours}"
            ratios[figure] = ratio
            verdict = "holds" if statistics.median(ratio) >= bar else "MISSED"
            figure = f"{table}: {figure}"
            print(f"{figure:<66} {spread(ratio):<26} {text:<16} {verdict}", flush=True)
    return ratios


def read_settings(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the settings of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add: Callable[..., Any] = parser.add_argument
    add("--tables", nargs="+", choices=TABLES, default=TABLES)
    add("--programs", nargs="+", choices=tuple(PROGRAMS), default=tuple(PROGRAMS))
    add("--turns", type=int, default=3, help="fresh processes of each program")
    add("--repeats", type=int, default=5, help="fits after the first in each process")
    add("--epochs", type=int, default=100)
    add("--batch-size", type=int, default=128)
    return parser.parse_args(arguments)


def main() -> None:
    """Measure, print and keep the figures."""
    settings = read_settings()
    pythons = {program: python_of(PROGRAMS[program].environment) for program in settings.programs}
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    results: dict[str, Any] = {"settings": vars(settings), "cores": cores, "load_before": load}
    if load > 0.5 * cores:
        print(f"Other work keeps this machine busy (load {load:.1f} on {cores} cores).")
        print("Programs with several threads suffer most from it: measure again when it is idle.")
    print(
        f"{settings.epochs} epochs in batches of {settings.batch_size}; medians over "
        f"{settings.turns} turns, with the least and the most"
    )
    with tempfile.TemporaryDirectory() as folder:
        for table in settings.tables:
            raw, encoded = write_rows(table, Path(folder))
            runs: dict[str, list[Run]] = {program: [] for program in pythons}
            for _ in range(settings.turns):
                for program, python in pythons.items():
                    rows = raw if PROGRAMS[program].environment == "commod" else encoded
                    runs[program].append(measure(program, python, rows, settings))
            show_times(table, runs)
            results[table] = {"runs": runs, "ratios": show_ratios(table, runs)}
    results["load_after"] = os.getloadavg()[0]
    target = HERE / "results" / "peers.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(results, indent=1) + "\n")
    print(f"\nEvery timing: {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
