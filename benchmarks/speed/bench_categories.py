"""Many categories: one column of 10 to 5,000 categories beside 10 numbers, in memory and in Spark.

In Spark, a patch with points for every category is compared with a copy of the same file.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from benchmarks.peers.job import timed
from benchmarks.speed.cases import case
from benchmarks.speed.memory import measure
from benchmarks.speed.names import categories_of, spark_of
from benchmarks.speed.settings import current, turns_of
from benchmarks.speed.shared_file import shared_file
from benchmarks.speed.tables import BenchmarkRows, load

from commod import COMMOD, ControlledDebiaser, Patch, ScoreColumn
from commod.exceptions import CommodWarning
from commod.patch.content import Category, CategoryColumn

SETTINGS = current()
SCORED = ScoreColumn("score")
EPOCHS = 5  # few: the length of training is not the subject here


def controlled(rows: BenchmarkRows) -> Callable[[], Any]:
    """Return a fit of ControlledDebiaser."""
    update = ControlledDebiaser(SCORED, target=0.8)
    few = rows.first(1000)
    update.fit(few.scored, few.y, sensitive_features=few.group)
    return partial(update.fit, rows.scored, rows.y, sensitive_features=rows.group)


def trained(rows: BenchmarkRows) -> Callable[[], Any]:
    """Return a fit of COMMOD; a first fit has compiled already."""
    training = {"warmup_epochs": 0, "progress": False}
    update = COMMOD(SCORED, epochs=EPOCHS, training=training, random_state=0)
    fit = partial(update.fit, rows.scored, rows.y, sensitive_features=rows.group)
    fit()
    return fit


def predict(rows: BenchmarkRows) -> Callable[[], Any]:
    """Return the predictions of COMMOD, which has points for every category."""
    return partial(trained(rows)().predict, rows.scored)


ACTIONS = {
    "ControlledDebiaser": controlled,
    f"COMMOD, {EPOCHS} epochs": trained,
    "predict": predict,
}


def often(n_levels: int, times: int) -> int:
    """Return `times`, or 1 if a fit with so many categories may take minutes."""
    return times if n_levels < 1000 else 1


@pytest.mark.parametrize(
    ("n_levels", "name"),
    [
        case(
            n_levels,
            name,
            group=categories_of(SETTINGS.category_rows, n_levels),
            name=name,
            turns=often(n_levels, turns_of(SETTINGS.category_rows, SETTINGS)),
        )
        for n_levels in SETTINGS.categories
        for name in ACTIONS
    ],
)
def test_categories(benchmark: Any, n_levels: int, name: str) -> None:
    """Time one action on rows with a column of `n_levels` categories."""
    warnings.simplefilter("ignore", CommodWarning)
    rows = load(shared_file("tables.wide_rows", SETTINGS.category_rows, n_levels))
    measure(benchmark, ACTIONS[name](rows), often(n_levels, SETTINGS.repeats))


# ---------------------------------------------------------------------------------------------
# Spark

SPARK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
}
WARM_ROUNDS = 4  # Java compiles while it runs
SPARK_ROUNDS = 5


@pytest.fixture
def spark() -> Iterator[Any]:
    """Start Spark on two threads of this machine."""
    sql = pytest.importorskip("pyspark.sql")
    session = sql.SparkSession.builder.master("local[2]").config(map=SPARK).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def patch_of_every(rows: BenchmarkRows, column: str) -> Patch:
    """Return a patch with points for every category of a column."""
    few = rows.first(1000)
    update = ControlledDebiaser(SCORED, target=0.8)
    fitted = update.fit(few.scored, few.y, sensitive_features=few.group).to_patch().content
    values = sorted(map(str, rows.scored[column].unique()))
    points = [(i % 64 - 32) / 64 for i in range(len(values))]
    categories = tuple(Category(v, p, (p,)) for v, p in zip(values, points, strict=True))
    ratio = replace(
        fitted.ratio,
        intercept=0.25,
        concept_weights=(1.0,),
        concept_intercepts=(0.25,),
        columns=(CategoryColumn(column, "category", categories, None, 0.0),),
    )
    return Patch(replace(fitted, ratio=ratio))


@pytest.mark.parametrize(
    "n_levels",
    [
        case(n_levels, group=spark_of(SETTINGS.category_rows, n_levels), name="apply")
        for n_levels in SETTINGS.spark_categories
    ],
)
def test_spark(benchmark: Any, spark: Any, tmp_path: Path, n_levels: int) -> None:
    """Time a patch from file to file, and a copy of the file before every round."""
    warnings.simplefilter("ignore", CommodWarning)
    rows = load(shared_file("tables.wide_rows", SETTINGS.category_rows, n_levels))
    [column] = rows.scored.select_dtypes(exclude="number").columns
    patch, source = patch_of_every(rows, column), tmp_path / "rows.parquet"
    rows.scored.astype({column: str}).to_parquet(source, index=False)
    frame, target = spark.read.parquet(str(source)), str(tmp_path / "out")
    of_copy: list[float] = []

    def copy() -> None:
        frame.write.mode("overwrite").parquet(target)

    def apply() -> None:
        patch.apply(frame).write.mode("overwrite").parquet(target)

    for _ in range(WARM_ROUNDS):
        copy()
        apply()
    measure(benchmark, apply, SPARK_ROUNDS, lambda: of_copy.append(timed(copy)[1]))
    pairs = zip(benchmark.stats.stats.data, of_copy, strict=True)
    benchmark.extra_info["over_copy"] = statistics.median(ours / theirs for ours, theirs in pairs)
