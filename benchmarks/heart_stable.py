"""Check that a fit finds the same update everywhere, and nearly the same with 5 % fewer rows.

Four requests (parity, odds, parity of three groups, parity of many rows) are fitted with stored
base scores: with other BLAS kernels in other processes, with the rows in five other orders, and
with the rows in other frames and engines. Decisions are compared person by person. Patches are
compared but for the fields that name time and versions.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from heart_jobs import Job, fit_and_test_rows, fitted, jobs
from parallel import chosen_settings, in_parallel, seeds
from report import show
from three_parts import MODELS, SCORE, base_model

from benchmarks.speed import lake
from benchmarks.speed.spark import HAS_SPARK, spark_session
from commod import ControlledDebiaser, ScoreColumn
from commod.datasets import load_compas, make_biased

KERNELS = {
    "x86_64": ("Nehalem", "Haswell", "SkylakeX"),
    "aarch64": ("ARMV8", "NEOVERSEN1", "NEOVERSEV1"),
}
N_ORDERS = 5
# Fields of a patch that may differ; the digest is that of all fields.
UNEQUAL = ("created", "library", "versions", "digest")
KEY, GROUP, LABEL = "id", "group", "label"
LOANS = "five groups, 60,000 rows"  # more rows than an engine hands over whole in version 0.2
REQUESTS: dict[str, dict[str, Any]] = {
    "parity": {"constraints": "demographic_parity", "target": 0.9},
    "odds": {"constraints": "equalized_odds", "target": 0.15},
    "three groups": {"constraints": "demographic_parity", "target": 0.7},
    LOANS: {"constraints": "demographic_parity", "target": 0.8},
}
MIN_JACCARD, JACCARD_GOAL, JACCARD_BEFORE = 0.75, 0.85, 0.48
LEFT_OUT, N_DRAWS, N_SPLITS = 0.05, 2, 5


def heart_stable() -> None:
    """Compare fits of the same rows, then fits with 5 % of the rows left out."""
    with tempfile.TemporaryDirectory() as folder:
        for request in REQUESTS:
            path = Path(folder) / "rows.parquet"
            make_rows(request).to_parquet(path)
            _show_kernels(request, path)
            _show_orders(request, pd.read_parquet(path))
            _show_frames(request, path)
            _show_engines(request, path)
    _show_rows_left_out()


# ---------------------------------------------------------------------------------------------
# The same rows


def make_rows(request: str) -> pd.DataFrame:
    """Return people with base score, group, label and key; the base model has seen others."""
    if request == LOANS:
        loans = lake.connect().sql(lake.loans_sql(60_000)).df()
        return loans.rename(columns={lake.GROUP: GROUP, lake.LABEL: LABEL})
    if request == "three groups":
        bunch = make_biased(6000, group_shares=(0.5, 0.3, 0.2), n_categories=6, random_state=5)
        favorable = 1
    else:
        bunch, favorable = load_compas(), 0
    X = pd.DataFrame(bunch.data).reset_index(drop=True)
    y = np.asarray(bunch.target) == favorable
    order = np.random.default_rng(0).permutation(len(X))
    own, rows = order[:2000], order[2000:]
    model = base_model(MODELS[0]).fit(X.iloc[own], y[own])
    frame = X.iloc[rows].reset_index(drop=True)
    for name in frame.select_dtypes("category"):
        frame[name] = frame[name].astype(str)  # Spark has no categories
    return frame.assign(
        **{
            SCORE: model.predict_proba(X.iloc[rows])[:, 1],
            LABEL: y[rows].astype(int),
            GROUP: np.asarray(bunch.sensitive_features)[rows].astype(str),
            KEY: np.arange(len(rows)),
        }
    )


def features(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the columns that an update may read, with the score."""
    return rows.drop(columns=[LABEL, GROUP, KEY])


def result(update: ControlledDebiaser, rows: pd.DataFrame) -> dict[str, Any]:
    """Return digests of an update's decisions and of each field of its patch."""
    decisions = np.asarray(update.predict(features(rows))).astype(np.uint8)
    patch = json.loads(update.to_patch().to_json())
    return {
        "decisions": _digest(decisions.tobytes()),
        "patch": {
            name: _digest(json.dumps(value, sort_keys=True).encode())
            for name, value in patch.items()
            if name not in UNEQUAL
        },
    }


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def fit_rows(
    request: str, rows: pd.DataFrame, as_frame: Callable[[pd.DataFrame], Any] = lambda X: X
) -> ControlledDebiaser:
    """Return an update fitted in memory; `as_frame` converts the columns."""
    X = as_frame(features(rows))
    with _quiet():
        return _update(request).fit(
            X, rows[LABEL].to_numpy(), sensitive_features=rows[GROUP].to_numpy()
        )


def fit_frame(request: str, frame: Any) -> ControlledDebiaser:
    """Return an update fitted where a table is, with a key."""
    with _quiet():
        return _update(request).fit_frame(frame, sensitive_features=GROUP, y_true=LABEL, key=KEY)


def _update(request: str) -> ControlledDebiaser:
    settings = {**chosen_settings(), **REQUESTS[request]}
    return ControlledDebiaser(ScoreColumn(SCORE), **settings)


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _show_kernels(request: str, path: Path) -> None:
    """Fit in a process for each kernel, and say which kernels really ran."""
    results, ran = [], []
    for kernel in KERNELS.get(platform.machine(), ()):
        process = subprocess.run(
            [sys.executable, __file__, request, str(path)],
            env={**os.environ, "OPENBLAS_CORETYPE": kernel},
            capture_output=True,
            text=True,
        )
        if process.returncode > 0:
            raise SystemExit(f"the fit with {kernel} failed:\n{process.stderr[-4000:]}")
        if process.returncode == 0:  # below 0: the processor does not know the instructions
            found = json.loads(process.stdout)
            ran.append("+".join(found.pop("kernels")))
            results.append(found)
    _show_same(f"{request}: kernels {', '.join(ran)}", results)


def main(request: str, path: str) -> None:
    """Print the result of a fit, and the kernels of this process, as JSON."""
    from threadpoolctl import threadpool_info

    rows = pd.read_parquet(path)
    update = fit_rows(request, rows)
    kernels = {info["architecture"] for info in threadpool_info() if "architecture" in info}
    print(json.dumps({**result(update, rows), "kernels": sorted(kernels)}))


def _show_orders(request: str, rows: pd.DataFrame) -> None:
    results = [result(fit_rows(request, rows), rows)]
    for seed in range(N_ORDERS):
        order = np.random.default_rng(seed).permutation(len(rows))
        update = fit_rows(request, rows.iloc[order].reset_index(drop=True))
        results.append(result(update, rows))
    _show_same(f"{request}: {N_ORDERS} orders of the rows", results)


def _show_frames(request: str, path: Path) -> None:
    import polars as pl
    import pyarrow as pa

    rows = pd.read_parquet(path)
    makers = (lambda X: X, pl.from_pandas, lambda X: pa.Table.from_pandas(X, preserve_index=False))
    results = [result(fit_rows(request, rows, make), rows) for make in makers]
    _show_same(f"{request}: pandas, polars, pyarrow", results)


def _show_engines(request: str, path: Path) -> None:
    import duckdb

    rows = pd.read_parquet(path)
    results = [result(fit_frame(request, rows), rows)]
    with duckdb.connect() as connection:
        results.append(result(fit_frame(request, connection.read_parquet(str(path))), rows))
    names = "memory, DuckDB"
    if HAS_SPARK:
        names += ", Spark"
        with _quiet(), spark_session() as spark:
            results.append(result(fit_frame(request, spark.read.parquet(str(path))), rows))
    _show_same(f"{request}: {names}, with a key", results)
    n_same = _n_equal([result(fit_rows(request, rows), rows), results[0]], "decisions")
    words = "equal" if n_same == 2 else "differ"
    show(f"{request}: decisions with and without a key", words, "reported")


def _show_same(label: str, results: list[dict[str, Any]]) -> None:
    """Print how many results agree with the first one, and which fields of patches differ."""
    n = len(results)
    equal = [_n_equal(results, part) for part in ("decisions", "patch")]
    value = f"decisions {equal[0]} of {n}, patches {equal[1]} of {n}"
    show(label, value, "all", equal == [n, n] and n > 1)
    patches = [found["patch"] for found in results]
    differing = [name for name in patches[0] if len({patch.get(name) for patch in patches}) > 1]
    if differing:
        show(f"{label}: fields that differ", ", ".join(differing))


def _n_equal(results: list[dict[str, Any]], part: str) -> int:
    return sum(found[part] == results[0][part] for found in results)


# ---------------------------------------------------------------------------------------------
# Fewer rows


def _show_rows_left_out() -> None:
    """Print the mean Jaccard index of the changed people among the test rows."""
    strictest = {job[:3]: job for job in jobs()}  # the last target of each constraint
    tasks = [(job, seed) for job in strictest.values() for seed in seeds(N_SPLITS)]
    runs = pd.DataFrame([row for rows in in_parallel(_left_out, tasks) for row in rows])
    mean = float(runs["jaccard"].mean())
    show(
        f"{LEFT_OUT:.0%} of the rows left out: Jaccard of the changed, mean",
        f"{mean:.3f} ({len(runs)} pairs)",
        f">= {MIN_JACCARD} (goal {JACCARD_GOAL})",
        mean >= MIN_JACCARD,
    )
    show("  version 0.2, other tables", f"{JACCARD_BEFORE}", "reported")
    for table, some in runs.groupby("table", sort=False):
        worst, differ = some["jaccard"].min(), some["differ"].mean()
        words = f"{some['jaccard'].mean():.3f} (worst {worst:.2f})"
        show(f"  {table}: Jaccard", words, f"decisions differ {differ:.2%}")
    for constraint, some in runs.groupby("constraint", sort=False):
        show(f"  {constraint}: Jaccard", f"{some['jaccard'].mean():.3f}", "reported")
    flips = f"{int(runs['flips'].sum())} of {len(runs)}"
    show("  pairs whose changes go mostly the other way", flips, "reported")


def _left_out(job: Job, seed: int) -> list[dict[str, Any]]:
    """Compare the test decisions of a fit with those of fits on 95 % of its rows."""
    fit, test = fit_and_test_rows(job.table, job.model, seed)
    before = test.score > 0.5
    whole = np.asarray(fitted(job, fit, **chosen_settings())[0].predict(test.X), dtype=bool)
    rows = []
    for draw in range(N_DRAWS):
        kept = np.random.default_rng([seed, draw]).random(len(fit.y)) >= LEFT_OUT
        update, _ = fitted(job, fit.only(kept), **chosen_settings())
        fewer = np.asarray(update.predict(test.X), dtype=bool)
        gains = [np.sum(after & ~before) - np.sum(~after & before) for after in (whole, fewer)]
        rows.append(
            {
                **job._asdict(),
                "jaccard": jaccard(whole != before, fewer != before),
                "differ": float(np.mean(whole != fewer)),
                "flips": bool(gains[0] * gains[1] < 0),
            }
        )
    return rows


def jaccard(first: Any, second: Any) -> float:
    """Return the people in both sets over the people in one of them; 1 if both are empty.

    Examples
    --------
    >>> jaccard(np.array([True, True, False]), np.array([True, False, False]))
    0.5
    """
    either = int(np.sum(first | second))
    return float(np.sum(first & second) / either) if either else 1.0


if __name__ == "__main__":
    main(*sys.argv[1:])
