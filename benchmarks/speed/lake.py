"""Scored loans as Parquet, as many as a lake holds: DuckDB computes and writes them.

The table has 10 numbers, 10 columns of 8 categories, five regions of very different size, labels,
a key and a score that prefers some regions. Every value is computed from the number of its row, so
a table does not depend on the number of threads. The functions that `shared_file` calls take a path
and write one file.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from commod import ControlledDebiaser, Patch, ScoreColumn

N_NUMBERS, N_CATEGORIES, N_LEVELS = 10, 10, 8
SCORE, GROUP, LABEL, KEY = "score", "region", "y", "id"
NUMBERS = tuple(f"number_{j}" for j in range(N_NUMBERS))
CATEGORIES = tuple(f"category_{j}" for j in range(N_CATEGORIES))
FEATURES = (*NUMBERS, *CATEGORIES)
# Each region with its upper share of all rows, and what the score adds to its logit.
REGIONS = (
    ("north", 0.40, 0.2),
    ("south", 0.70, 0.1),
    ("east", 0.90, 0.0),
    ("west", 0.99, -0.15),
    ("islands", 1.00, -0.1),
)
MEMORY = "4GB"
STEP = 1_000_000_007_000  # far more than rows, so that no two draws of the table are the same


def loans_sql(n: int) -> str:
    """Return a query of `n` loans.

    Even numbers are continuous, odd ones have two decimals. Regions differ in the mean of every
    third number and in every fourth category, so an update can lower their distance.
    """
    draws = itertools.count(1)

    def uniform() -> str:
        """Return a new uniform number of each row in [0, 1)."""
        return f"(CAST(hash(i + {next(draws) * STEP}) >> 11 AS DOUBLE) * {2.0**-53!r})"

    bell = "2 * ({} + {} + {} - 1.5)"  # mean 0, standard deviation 1
    biases = " ".join(f"WHEN '{g}' THEN {bias}::DOUBLE" for g, _, bias in REGIONS)
    region = " ".join(f"WHEN u < {share} THEN '{g}'" for g, share, _ in REGIONS)
    columns = []
    for j, name in enumerate(NUMBERS):
        value = bell.format(uniform(), uniform(), uniform()) + " + 0.8 * far" * (j % 3 == 0)
        columns.append(f"{f'round({value}, 2)' if j % 2 else value} AS {name}")
    for j in range(N_CATEGORIES):
        power = f"pow({uniform()}, 1 - far)" if j % 4 == 0 else uniform()
        columns.append(f"CAST(floor({N_LEVELS} * {power}) AS INT) AS code_{j}")
    levels = ", ".join(f"chr(97 + code_{j}) AS {name}" for j, name in enumerate(CATEGORIES))
    signal = " + ".join(f"0.4 * {name}" for name in NUMBERS[::2])
    signal += "".join(f" + 0.1 * (code_{j} - 3.5)" for j in range(0, N_CATEGORIES, 2))
    noise, drawn = bell.format(uniform(), uniform(), uniform()), uniform()
    return f"""
        SELECT i AS {KEY}, {GROUP}, CAST({drawn} < 1 / (1 + exp(-signal)) AS INT) AS {LABEL},
               1 / (1 + exp(-(signal + far + 0.3 * ({noise})))) AS {SCORE},
               {", ".join(NUMBERS)}, {levels}
        FROM (SELECT *, {signal} AS signal FROM (
            SELECT *, {", ".join(columns)} FROM (
                SELECT *, CASE {GROUP} {biases} END AS far FROM (
                    SELECT i, CASE {region} END AS {GROUP}
                    FROM (SELECT i, {uniform()} AS u FROM range({n}) AS numbers(i))))))
    """


def connect() -> Any:
    """Return a connection to DuckDB on two threads, without a progress bar."""
    import duckdb

    connection = duckdb.connect()
    for setting in ("threads = 2", "enable_progress_bar = false", f"memory_limit = '{MEMORY}'"):
        connection.execute(f"SET {setting}")
    return connection


def loans(path: Path, n: int) -> None:
    """Write `n` loans; a billion bytes hold about 15 million."""
    connection = connect()
    connection.execute("SET preserve_insertion_order = false")  # both threads write at once
    connection.execute(f"COPY ({loans_sql(n)}) TO '{path}' (FORMAT parquet)")


def patch(path: Path, n: int) -> None:
    """Write a patch that is fitted in memory on `n` loans."""
    rows = connect().sql(loans_sql(n)).df()
    X = rows[[*FEATURES, SCORE]]
    make_update().fit(X, rows[LABEL], sensitive_features=rows[GROUP]).to_patch().save(path)


def make_update(**params: Any) -> ControlledDebiaser:
    """Return an update that reads scores from a column; its target is 0.8 if not given."""
    params = {"target": 0.8, **params}
    return ControlledDebiaser(ScoreColumn(SCORE), **params)


def fit_frame(frame: Any, **params: Any) -> ControlledDebiaser:
    """Return an update that is fitted where the loans are."""
    columns = {"sensitive_features": GROUP, "y_true": LABEL, "features": FEATURES, "key": KEY}
    return make_update(**params).fit_frame(frame, **columns)


def scan(frame: Any, shipped: Patch) -> list[Any]:
    """Return the people of each cell of a DuckDB relation after a patch."""
    decided = shipped.apply(frame, score=SCORE)
    cells = f"{GROUP}, {LABEL}, {SCORE} > 0.5 AS base_decision, commod_changed"
    return decided.aggregate(f"{cells}, count(*)").fetchall()
