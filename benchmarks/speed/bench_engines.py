"""Fits where the table is: `fit_frame` in DuckDB and Spark on Parquet, beside one scan.

A scan applies a patch, whose r is computed for every row, and counts people by group, label,
decision and change. The fit in memory reads its columns from the file first, which counts. Memory
is that of the whole process, with DuckDB in it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from benchmarks.speed.cases import case
from benchmarks.speed.lake import (
    FEATURES,
    GROUP,
    LABEL,
    SCORE,
    connect,
    fit_frame,
    make_update,
    scan,
)
from benchmarks.speed.memory import held, measure
from benchmarks.speed.names import lake_of
from benchmarks.speed.settings import current, turns_of
from benchmarks.speed.shared_file import shared_file
from benchmarks.speed.spark import HAS_SPARK, spark_session

from commod import ControlledDebiaser, Patch
from commod.exceptions import CommodWarning

SETTINGS = current()
MOST_ROWS_IN_MEMORY = 1_000_000
CELLS = (GROUP, LABEL, "base_decision", "commod_changed")


def fit_in_memory(path: Path) -> ControlledDebiaser:
    """Return an update that is fitted on all rows of a file, read into memory."""
    rows = connect().read_parquet(str(path)).df()
    X = rows[[*FEATURES, SCORE]]
    return make_update().fit(X, rows[LABEL], sensitive_features=rows[GROUP])


def scan_spark(frame: Any, patch: Patch) -> list[Any]:
    """Return the people of each cell after a patch."""
    decided = patch.apply(frame, score=SCORE).withColumn("base_decision", frame[SCORE] > 0.5)
    return decided.groupBy(*CELLS).count().collect()


def duckdb_cases() -> list[Any]:
    """Return the actions in DuckDB at every size, and fits in memory where it is small."""
    return [
        case(n, name, group=lake_of(n, "DuckDB"), name=name, turns=turns_of(n, SETTINGS))
        for n in SETTINGS.lake_rows
        for name in ("fit_frame", "one scan", "fit in memory")
        if n <= MOST_ROWS_IN_MEMORY or name != "fit in memory"
    ]


@pytest.mark.parametrize(("n", "name"), duckdb_cases())
def test_duckdb(benchmark: Any, n: int, name: str) -> None:
    """Time a fit or a scan in DuckDB, or a fit in memory on the same file."""
    warnings.simplefilter("ignore", CommodWarning)
    path = shared_file("lake.loans", n, suffix=".parquet")
    frame = connect().read_parquet(str(path))
    actions: dict[str, Callable[[], Any]] = {
        "fit_frame": partial(fit_frame, frame),
        "fit in memory": partial(fit_in_memory, path),
    }
    if name == "one scan":
        actions[name] = partial(scan, frame, read_patch())
    result = measure(benchmark, actions[name], rounds=1)
    record(benchmark.extra_info, path, result)


def spark_cases() -> list[Any]:
    """Return the actions in Spark; none where Spark or Java is missing."""
    n = SETTINGS.spark_rows
    names = ("fit_frame", "one scan") if HAS_SPARK else ()
    return [case(n, name, group=lake_of(n, "Spark"), name=name) for name in names]


@pytest.mark.parametrize(("n", "name"), spark_cases())
def test_spark(benchmark: Any, n: int, name: str) -> None:
    """Time a fit or a scan in Spark on two threads; the start of Spark does not count."""
    warnings.simplefilter("ignore")
    path = shared_file("lake.loans", n, suffix=".parquet")
    with spark_session() as spark:
        frame = spark.read.parquet(str(path))
        frame.limit(1000).groupBy(GROUP).count().collect()  # load the classes that every query uses
        action = partial(fit_frame, frame)
        if name == "one scan":
            action = partial(scan_spark, frame, read_patch())
        result = measure(benchmark, action, rounds=1)
        info = benchmark.extra_info
        pid = spark._jvm.java.lang.ProcessHandle.current().pid()
        info["jvm_peak_gb"] = held("VmHWM", pid) / 1e9
        record(info, path, result)


def read_patch() -> Patch:
    """Return the patch that scans apply."""
    return Patch.load(shared_file("lake.patch", SETTINGS.fit_rows, suffix=".json"))


def record(info: dict[str, Any], path: Path, result: Any) -> None:
    """Store the size of the file and, of a fit, its fairness and changes."""
    info["file_gb"] = path.stat().st_size / 1e9
    if isinstance(result, ControlledDebiaser):
        info["fairness"] = result.fairness_
        info["changes"] = result.change_rate_
