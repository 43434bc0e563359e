"""Compare targets and 95 % intervals with samples of new people, default settings.

An update is fitted on as many rows as it is tested on, because it expects its figures for a new
sample of as many people. Neither the base model nor the update has seen the test rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from expected import mean_and_error
from heart_jobs import (
    MIN_CELL,
    NOT_POOLED,
    Job,
    fairer_by,
    fairness,
    fit_and_test_rows,
    fitted,
    jobs,
    smallest_cell,
)
from parallel import chosen_settings, in_parallel, seeds
from report import show

MAX_DISTANCE, MAX_TABLE_DISTANCE = 0.01, 0.02
COVERAGE = (0.92, 0.98)
N_SPLITS = 40  # a split moves all of its jobs together, so the mean of a table needs many


def heart_new_rows() -> None:
    """Print reached minus asked (positive: fairer) and the coverage of the intervals."""
    tasks = [(job, seed) for job in jobs() for seed in seeds(N_SPLITS)]
    runs = pd.DataFrame(in_parallel(_run, tasks))
    pooled = runs[~runs["table"].isin(NOT_POOLED)]
    if len(pooled):
        _show_distance("all tables", pooled, MAX_DISTANCE)
        _show_coverage("all tables", pooled, is_judged=True)
    for table, some in runs.groupby("table", sort=False):
        large = some[some["cell"] >= MIN_CELL]
        if table not in NOT_POOLED and len(large):
            _show_distance(f"{table}, cells of {MIN_CELL} people", large, MAX_TABLE_DISTANCE)
        if table in NOT_POOLED or len(large) < len(some):
            _show_distance(f"{table}, all jobs", some, None)
        _show_coverage(table, some, is_judged=False)
    for constraint, some in pooled.groupby("constraint", sort=False):
        _show_distance(f"  {constraint}", some, None)
        _show_coverage(f"  {constraint}", some, is_judged=False)


def _run(job: Job, seed: int) -> dict[str, Any]:
    """Return how far one update lies from its target and its expectation on new people."""
    fit, test = fit_and_test_rows(job.table, job.model, seed, equal=True)
    update, _ = fitted(job, fit, **chosen_settings())
    got = fairness(job.constraint, test, update.predict(test.X))
    low, high = update.expected_.interval
    return {
        **job._asdict(),
        "seed": seed,
        "cell": smallest_cell(job.table, job.constraint),
        "reached": bool(update.reached_),
        "above_target": fairer_by(job.constraint, got, job.target),
        "above_expected": fairer_by(job.constraint, got, update.expected_.fairness),
        "covered": bool(low <= got <= high) if np.isfinite(got) else np.nan,
        "width": high - low,
    }


def _show_distance(label: str, runs: pd.DataFrame, most: float | None) -> None:
    mean, error = mean_and_error(runs.groupby("seed")["above_target"].mean())
    bar = "reported" if most is None else f"within ±{most:g}"
    holds = None if most is None else abs(mean) <= most
    show(f"{label}: reached − asked", f"{mean:+.4f} ± {error:.4f}", bar, holds)
    said, _ = mean_and_error(runs.loc[runs["reached"], "above_target"])
    n_reached = f"{int(runs['reached'].sum())} of {len(runs)}"
    show(f"{label}:   of those called reached", f"{said:+.4f}", n_reached)
    expected, _ = mean_and_error(runs["above_expected"])
    show(f"{label}:   reached − expected", f"{expected:+.4f}", "reported")


def _show_coverage(label: str, runs: pd.DataFrame, *, is_judged: bool) -> None:
    share, width = float(runs["covered"].dropna().astype(float).mean()), runs["width"].mean()
    bar = f"{COVERAGE[0]:.0%} to {COVERAGE[1]:.0%}" if is_judged else "reported"
    holds = COVERAGE[0] <= share <= COVERAGE[1] if is_judged else None
    show(f"{label}: coverage of the 95 % interval", f"{share:.1%} (width {width:.3f})", bar, holds)
