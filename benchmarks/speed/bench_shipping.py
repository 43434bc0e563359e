"""Time `commod apply` on a Parquet file beside a copy by DuckDB, and `commod debias` on a CSV file.

The tables are those of the other benchmarks with a score. Each benchmark is a command of its own.
Memory is the largest resident set of the whole process.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.speed.cases import case
from benchmarks.speed.files import COLUMN_OPTIONS
from benchmarks.speed.names import files_of
from benchmarks.speed.processes import COMMOD, measure_command
from benchmarks.speed.settings import current
from benchmarks.speed.shared_file import shared_file

SETTINGS = current()
COPY = """
import duckdb, sys
source, target = sys.argv[1:]
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
connection.execute(f"COPY (FROM read_parquet('{source}')) TO '{target}' (FORMAT parquet)")
"""


@pytest.mark.parametrize(
    "name",
    [
        case(name, group=files_of(SETTINGS.apply_rows), name=name, turns=SETTINGS.turns)
        for name in ("copy by DuckDB", "commod apply")
    ],
)
def test_apply(benchmark: Any, tmp_path: Path, name: str) -> None:
    """Time the patch on a file, or the copy of the file."""
    rows = str(shared_file("files.scored_parquet", SETTINGS.apply_rows, suffix=".parquet"))
    target = str(tmp_path / "out.parquet")
    if name == "commod apply":
        patch = str(shared_file("files.patch", suffix=".json"))
        measure_command(benchmark, COMMOD, "apply", patch, rows, target, "--quiet")
    else:
        measure_command(benchmark, sys.executable, "-c", COPY, rows, target)
    Path(target).unlink()  # the next turn may need these gigabytes


@pytest.mark.parametrize(
    "n",
    [
        case(
            SETTINGS.debias_rows,
            group=files_of(SETTINGS.debias_rows),
            name="commod debias",
            turns=SETTINGS.turns,
        )
    ],
)
def test_debias(benchmark: Any, tmp_path: Path, n: int) -> None:
    """Time a whole fit from a CSV file to a patch."""
    rows = str(shared_file("files.scored_csv", n, suffix=".csv"))
    patch = str(tmp_path / "patch.json")
    # code 1 means that the target was not reached, which is a valid result
    measure_command(
        benchmark, COMMOD, "debias", rows, *COLUMN_OPTIONS, "--out", patch, codes=(0, 1)
    )
