"""Names of groups of benchmarks, by which bars and pictures look up their values."""

from __future__ import annotations

START = "a fresh process"
FIT_ROWS = "ControlledDebiaser, fit rows"
PIPELINE = "the base pipeline's fit"


def first_rows_of(table: str, n: int) -> str:
    """Return the name of the first rows of a table."""
    return f"{table}, {n:,} rows"


def rows_of(n: int, kind: str) -> str:
    """Return the name of many rows."""
    return f"{n:,} rows of {kind}"


def categories_of(n: int, n_levels: int) -> str:
    """Return the name of rows with one column of many categories."""
    return f"{n:,} rows, {n_levels:,} categories"


def predictions_of(n: int, kind: str) -> str:
    """Return the name of rows that a base model predicts."""
    return f"{kind}, {n:,} rows"


def audit_of(n: int, kind: str) -> str:
    """Return the name of rows that are audited."""
    return f"{n:,} rows of {kind}, 5 groups"


def files_of(n: int) -> str:
    """Return the name of rows in a file."""
    return f"{n:,} rows on disk"


def lake_of(n: int, engine: str) -> str:
    """Return the name of rows in a Parquet file that an engine reads."""
    return f"{n:,} rows, {engine}"


def spark_of(n: int, n_levels: int) -> str:
    """Return the name of rows that Spark reads and writes, with one column of many categories."""
    return f"{n:,} rows in Spark, {n_levels:,} categories"
