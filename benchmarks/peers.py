"""Speed of one COMMOD fit against Fairlearn's and AIF360's adversarial classifiers: `make bench`.

Same epochs, batch size and rows, one adversary step for each step of the model; every peer keeps
its own adversary and lives in an environment of its own, made on the first run. A program runs in
fresh processes that take turns. Its first call counts the imports; the next calls are the median
of several fits after it. Peers get encoded features, COMMOD the raw frame, which it encodes itself.
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
from typing import Any

import numpy as np
from protocol import LOADERS, N_CONCEPTS, make_split

HERE = Path(__file__).parent
ROOT = HERE.parent
OURS = "COMMOD"
# name -> (environment and script, variant)
PROGRAMS = {
    OURS: ("commod", ""),
    "Fairlearn, linear": ("fairlearn", "linear"),
    "Fairlearn, its guide": ("fairlearn", "guide"),
    "AIF360": ("aif360", ""),
}
NEXT_CALLS_BAR, NEXT_CALLS_GOAL, FIRST_CALL_BAR = 8, 20, 1

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
    """Write the training rows of split 0: raw for COMMOD, encoded for its peers."""
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
    library, variant = PROGRAMS[program]
    script = HERE / "peers" / f"{library}_fit.py"
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
    """Print how many times faster COMMOD was, beside the bars; ratios are taken turn by turn."""
    bars: dict[str, tuple[str, int, str]] = {
        "next_call": (
            "next calls",
            NEXT_CALLS_BAR,
            f">= {NEXT_CALLS_BAR} (goal {NEXT_CALLS_GOAL})",
        ),
        "first_call": ("first call", FIRST_CALL_BAR, f">= {FIRST_CALL_BAR}"),
    }
    ratios = {}
    for name, (words, bar, text) in bars.items():
        for peer in list(runs)[1:]:
            pairs = zip(runs[peer], runs[OURS], strict=True)
            ratio = [theirs[name] / ours[name] for theirs, ours in pairs]
            ratios[f"{words}, {peer} / {OURS}"] = ratio
            verdict = "holds" if statistics.median(ratio) >= bar else "MISSED"
            figure = f"{table}: {words}, {peer} / {OURS}"
            print(f"{figure:<54} {spread(ratio):<26} {text:<16} {verdict}", flush=True)
    return ratios


def read_settings(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the settings of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add: Callable[..., Any] = parser.add_argument
    add("--tables", nargs="+", choices=tuple(LOADERS), default=tuple(LOADERS))
    add("--turns", type=int, default=3, help="fresh processes of each program")
    add("--repeats", type=int, default=5, help="fits after the first in each process")
    add("--epochs", type=int, default=100)
    add("--batch-size", type=int, default=128)
    return parser.parse_args(arguments)


def main() -> None:
    """Measure, print and keep the figures."""
    settings = read_settings()
    pythons = {program: python_of(library) for program, (library, _) in PROGRAMS.items()}
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
            runs: dict[str, list[Run]] = {program: [] for program in PROGRAMS}
            for _ in range(settings.turns):
                for program, python in pythons.items():
                    rows = raw if program == OURS else encoded
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
