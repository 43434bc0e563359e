"""Files that the command line reads: scored rows as CSV or Parquet, and a patch for them.

The functions that `shared_file` calls take a path and write one file.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks.speed.processes import COMMOD, run
from benchmarks.speed.settings import current
from benchmarks.speed.tables import make_rows

COLUMN_OPTIONS = ("--label", "y", "--sensitive", "group", "--score-column", "score", "--quiet")
BLOCK = 1_000_000


def make_scored(n: int, seed: int) -> pd.DataFrame:
    """Return rows with a score, a label and a group."""
    rows = make_rows(n, "text")
    random = np.random.default_rng(seed)
    signal = rows.X["number_0"].to_numpy() + 0.8 * (rows.group == rows.group[0])
    score = 1 / (1 + np.exp(-signal + random.normal(size=n) / 2))
    return rows.X.assign(score=score, y=rows.y, group=rows.group)


def scored_csv(path: Path, n: int) -> None:
    """Write rows that `commod debias` reads."""
    make_scored(n, 2).to_csv(path, index=False)


def scored_parquet(path: Path, n: int) -> None:
    """Write rows that `commod apply` reads, in blocks, because memory may not hold them all."""
    import duckdb

    block = min(n, BLOCK)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        source = Path(folder) / "block.parquet"
        make_scored(block, 0).to_parquet(source)
        connection = duckdb.connect()
        connection.execute("SET memory_limit='4GB'")
        connection.execute(
            f"COPY (SELECT * REPLACE (least(greatest(score + i / 1e4, 0), 1) AS score) "
            f"FROM range({n // block}) t(i), read_parquet('{source}')) "
            f"TO '{path}' (FORMAT parquet)"
        )


def patch(path: Path) -> None:
    """Write a patch that is fitted on `fit_rows` such rows."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        source, made = Path(folder) / "fit.csv", Path(folder) / "patch.json"
        make_scored(current().fit_rows, 1).to_csv(source, index=False)
        run(COMMOD, "debias", str(source), *COLUMN_OPTIONS, "--out", str(made), codes=(0, 1))
        made.replace(path)
