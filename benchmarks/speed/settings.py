"""Sizes of the benchmarks: for the full run, and for the quick run, which judges no bar.

The module needs only the standard library: every peer's environment imports it.
"""

from __future__ import annotations

import os
from typing import NamedTuple

QUICK_VARIABLE = "COMMOD_BENCH_QUICK"


class Settings(NamedTuple):
    """Sizes and numbers of repetitions."""

    tables: tuple[str, ...]
    first_rows: tuple[str, int]  # a table and the number of its rows for a small first fit
    epochs: int
    batch_size: int
    turns: int  # fresh processes of each program that is compared
    fits: int  # most fits of a program in one process after its first fit
    repeats: int  # rounds in a process, if a round takes seconds
    n_models: int  # of a frontier or a grid
    rows: tuple[int, ...]
    text_rows: tuple[int, ...]
    category_rows: int
    categories: tuple[int, ...]
    spark_categories: tuple[int, ...]
    base_rows: int  # rows that a base model is fitted on
    n_trees: int
    base_models: tuple[str, ...]
    predict_rows: tuple[int, ...]
    audit_kinds: tuple[str, ...]
    audit_rows: int
    report_rows: int
    fit_rows: int  # rows that an update is fitted on before it predicts, applies or is audited
    apply_rows: int
    debias_rows: int
    lake_rows: tuple[int, ...]  # rows on disk that DuckDB fits on
    spark_rows: int


FULL = Settings(
    tables=("Law School", "COMPAS"),
    first_rows=("COMPAS", 1000),
    epochs=100,
    batch_size=128,
    turns=3,
    fits=5,
    repeats=3,
    n_models=100,
    rows=(10_000, 100_000, 1_000_000, 10_000_000),
    text_rows=(1_000_000,),
    category_rows=100_000,
    categories=(10, 100, 1000, 5000),
    spark_categories=(10, 5000, 50_000),
    base_rows=20_000,
    n_trees=200,
    base_models=("LightGBM, frame", "LightGBM, array", "LogisticRegression, frame"),
    predict_rows=(1000, 100_000, 1_000_000),
    audit_kinds=("category", "text"),
    audit_rows=1_000_000,
    report_rows=100_000,
    fit_rows=50_000,
    apply_rows=20_000_000,
    debias_rows=1_000_000,
    lake_rows=(1_000_000, 10_000_000, 100_000_000),
    spark_rows=10_000_000,
)
QUICK = Settings(
    tables=("COMPAS",),  # this table comes with the library
    first_rows=("COMPAS", 1000),
    epochs=2,
    batch_size=128,
    turns=1,
    fits=1,
    repeats=1,
    n_models=4,
    rows=(10_000,),
    text_rows=(),
    category_rows=5000,
    categories=(50,),
    spark_categories=(50,),
    base_rows=2000,
    n_trees=20,
    base_models=("LightGBM, frame", "LightGBM, array"),
    predict_rows=(1000,),
    audit_kinds=("text",),
    audit_rows=5000,
    report_rows=5000,
    fit_rows=5000,
    apply_rows=20_000,
    debias_rows=3000,
    lake_rows=(12_000,),
    spark_rows=12_000,
)


def current() -> Settings:
    """Return the settings that the environment asks for."""
    return QUICK if os.environ.get(QUICK_VARIABLE) else FULL


def turns_of(n: int, settings: Settings) -> int:
    """Return the number of fresh processes for a benchmark on `n` rows."""
    return min(2 if n <= 1_000_000 else 1, settings.turns)


def repeats_of(n: int, settings: Settings) -> int:
    """Return the number of rounds in a process for a benchmark on `n` rows."""
    most = 3 if n <= 100_000 else 2 if n <= 1_000_000 else 1
    return min(most, settings.repeats)
