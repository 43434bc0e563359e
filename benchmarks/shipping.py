"""Time and memory of `commod apply` on 20,000,000 rows and of `commod debias` on 1,000,000.

The table is that of `many_rows` (numbers and categories) with a score; the patch is fitted on fewer
such rows. `commod apply` is held against DuckDB copying the same Parquet file in one run: each is a
process of its own, in turns, medians of three. Memory is the largest resident set of the whole
process. `commod --help` is timed in the same way. `make bench` runs it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from many_rows import make_rows
from report import show_at_most

N_APPLY, N_DEBIAS, N_FIT = 20_000_000, 1_000_000, 50_000
REPEATS = 3
SPEED_BAR, MEMORY_BAR, DEBIAS_BAR, HELP_BAR = 2.0, 2.0, 60, 0.5
COMMAND = str(Path(sys.executable).with_name("commod"))
COPY = """
import duckdb, sys
source, target = sys.argv[1:]
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
connection.execute(f"COPY (FROM read_parquet('{source}')) TO '{target}' (FORMAT parquet)")
"""


def make_table(n: int, seed: int) -> pd.DataFrame:
    """Return rows with a score, a label and a group."""
    X, y, group = make_rows(n, "text")
    random = np.random.default_rng(seed)
    signal = X["number_0"].to_numpy() + 0.8 * (np.asarray(group) == np.asarray(group)[0])
    score = 1 / (1 + np.exp(-signal + random.normal(size=n) / 2))
    return X.assign(score=score, y=np.asarray(y), group=group)


def run(*command: str) -> tuple[float, float]:
    """Return the seconds and the gigabytes of a process."""
    started = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - started
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"{' '.join(command[:3])} failed")
    return seconds, used.ru_maxrss / 2**20


def write_rows(folder: Path) -> Path:
    """Write the 20,000,000 rows in blocks, so that this process stays small."""
    import duckdb

    block = make_table(N_DEBIAS, 0)
    block.to_parquet(folder / "block.parquet")
    path = folder / "rows.parquet"
    n_blocks = N_APPLY // N_DEBIAS
    connection = duckdb.connect()
    connection.execute("SET memory_limit='4GB'")
    connection.execute(
        f"COPY (SELECT * REPLACE (least(greatest(score + i / 1e4, 0), 1) AS score) "
        f"FROM range({n_blocks}) t(i), read_parquet('{folder / 'block.parquet'}')) "
        f"TO '{path}' (FORMAT parquet)"
    )
    return path


def make_files(folder: Path) -> None:
    """Write the tables that are read."""
    make_table(N_FIT, 1).to_csv(folder / "fit.csv", index=False)
    make_table(N_DEBIAS, 2).to_csv(folder / "train.csv", index=False)
    write_rows(folder)


def main() -> None:
    """Print the figures beside their bars."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # in a process of its own: one that is started here counts what this one holds as its own
        subprocess.run([sys.executable, __file__, name], check=True)
        told = ["--label", "y", "--sensitive", "group", "--score-column", "score", "--quiet"]
        patch, rows = str(folder / "patch.json"), str(folder / "rows.parquet")
        run(COMMAND, "debias", str(folder / "fit.csv"), *told, "--out", patch)
        out = [str(folder / f"out_{kind}.parquet") for kind in ("copy", "apply")]
        taken: dict[str, list[tuple[float, float]]] = {"copy": [], "apply": []}
        for _ in range(REPEATS):
            taken["copy"].append(run(sys.executable, "-c", COPY, rows, out[0]))
            taken["apply"].append(run(COMMAND, "apply", patch, rows, out[1], "--force", "--quiet"))
        times = {kind: statistics.median(t for t, _ in found) for kind, found in taken.items()}
        debias = [
            run(COMMAND, "debias", str(folder / "train.csv"), *told, "--out", patch, "--force")
            for _ in range(REPEATS)
        ]
    print(f"apply on {N_APPLY:,} rows: {times['apply']:.1f} s; a copy: {times['copy']:.1f} s")
    show_at_most("apply, times the copy", times["apply"] / times["copy"], SPEED_BAR)
    show_at_most("apply, GB of memory", max(gb for _, gb in taken["apply"]), MEMORY_BAR)
    show_at_most("debias, seconds", statistics.median(t for t, _ in debias), DEBIAS_BAR)
    helps = statistics.median(run(COMMAND, "--help")[0] for _ in range(5))
    show_at_most("commod --help, seconds", helps, HELP_BAR)


if __name__ == "__main__":
    make_files(Path(sys.argv[1])) if len(sys.argv) > 1 else main()
