"""Compare the changes of `ControlledDebiaser` with version 0.2's, at version 0.2's test fairness.

A job is a table, a kind of base model, a constraint and a target (`heart_jobs.py`). Version 0.2's
results are stored (`heart_before.py`). This version is compared with them at equal fairness:

1. Fit this version for a path of targets: those of the jobs, a milder and a stricter one.
2. Average the fairness and the changes on test rows over splits. Each target gives one point; the
   base model, with no changes, gives another.
3. Average the fairness that version 0.2 got for the job on the test rows of the same splits.
4. Read the changes at that fairness off the points, by linear interpolation. Changes rise faster
   the fairer the decisions get, so interpolation favours version 0.2, if anything.
5. Where version 0.2 got fairer than every point, continue the last two points. The figure says for
   how many jobs.

A table counts with the splits that version 0.2's results have, at most 20. Ratios are sums of
changes over jobs, divided by version 0.2's. Errors draw splits with replacement.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from heart_before import stored_results
from heart_jobs import (
    MIN_CELL,
    N_SPLITS,
    NOT_POOLED,
    PARITY,
    TARGETS,
    Job,
    fairer_by,
    figures,
    fit_and_test_rows,
    jobs,
    measured,
    smallest_cell,
    tables,
)
from numpy.typing import NDArray
from parallel import chosen_settings, in_parallel, seeds
from report import show, show_at_most

# setting -> parameters of this version; `heart_before.SETTINGS` has those of version 0.2
SETTINGS: dict[str, dict[str, Any]] = {
    "fewest": {"borderline": 0, "max_lines": None},
    "default": {"borderline": 0.1, "max_lines": 12},
}
NAMES = {"fewest": "borderline 0, all lines", "default": "borderline .1, 12 lines"}
MAX_RATIO = {"fewest": 1.0, "default": 1.02}
MAX_TABLE_RATIO = 1.15
GOAL = 0.92  # of the setting "fewest"
FIGURES = ["fairness", "changes", "accuracy", "seconds"]
N_BOOTSTRAP = 200


def heart() -> None:
    """Print changes at version 0.2's test fairness, over all jobs and table by table."""
    before = stored_results()
    before = before[before["table"].isin(tables()) & before["seed"].isin(seeds(N_SPLITS))]
    if before.empty:
        raise SystemExit("heart_0_2.csv.gz has no results for these tables and seeds.")
    tasks = list(
        before[["table", "model", "constraint", "seed"]]
        .drop_duplicates()
        .itertuples(index=False, name=None)
    )
    runs = pd.DataFrame([row for rows in in_parallel(_path, tasks) for row in rows])
    for setting in SETTINGS:
        _show_setting(setting, runs[runs["setting"] == setting], before)


def _path(table: str, model: str, constraint: str, seed: int) -> list[dict[str, Any]]:
    """Return the test figures of every target of a path, in both settings."""
    where = {"table": table, "model": model, "constraint": constraint, "seed": seed}
    _, test = fit_and_test_rows(table, model, seed)
    base = figures(Job(table, model, constraint, np.nan), test, test.score > 0.5)
    rows = []
    for setting, own in SETTINGS.items():
        rows.append({**where, "setting": setting, "target": np.nan, **base, "seconds": 0.0})
        for target in path_of_targets(constraint, TARGETS[table][constraint]):
            job = Job(table, model, constraint, target)
            figures_of = measured(job, seed, **{**chosen_settings(), **own})
            rows.append({**where, "setting": setting, "target": target, **figures_of})
    return rows


def path_of_targets(constraint: str, asked: tuple[float, ...]) -> list[float]:
    """Return the asked targets with a milder one before and a stricter one after them.

    Examples
    --------
    >>> path_of_targets("demographic_parity", (0.7, 0.8, 0.9))
    [0.6, 0.7, 0.8, 0.9, 0.95]
    >>> path_of_targets("equalized_odds", (0.2, 0.1))
    [0.3, 0.2, 0.1, 0.05]
    """
    best = 1.0 if constraint == PARITY else 0.0
    milder = asked[0] - (asked[1] - asked[0])
    return [float(round(t, 4)) for t in (milder, *asked, (asked[-1] + best) / 2)]


# ---------------------------------------------------------------------------------------------
# Equal fairness


class JobRuns(NamedTuple):
    """The test figures of a job on k splits, in the order of `FIGURES`."""

    job: Job
    seeds: NDArray[Any]  # (k,)
    path: NDArray[np.float64]  # (k, 1 + targets, figures): the base model, then mild to strict
    asked: int  # the point of the path that has the job's own target
    before: NDArray[np.float64]  # (k, figures) of version 0.2


def _runs_by_job(runs: pd.DataFrame, before: pd.DataFrame) -> list[JobRuns]:
    """Return both versions' figures on the splits of version 0.2; `runs` has the path in order."""
    paths = dict(iter(runs.groupby(["table", "model", "constraint"])))
    earlier = dict(iter(before.groupby(list(Job._fields))))
    found = []
    for job in jobs():
        if job not in earlier:
            raise SystemExit(f"heart_0_2.csv.gz has no results for {job}.")
        of_job = earlier[job].sort_values("seed")
        by_seed = dict(iter(paths[job[:3]].groupby("seed")))
        points = [by_seed[seed][FIGURES].to_numpy() for seed in of_job["seed"]]
        targets = path_of_targets(job.constraint, TARGETS[job.table][job.constraint])
        asked = 1 + targets.index(job.target)
        seeds_of_job, values = of_job["seed"].to_numpy(), of_job[FIGURES].to_numpy()
        found.append(JobRuns(job, seeds_of_job, np.array(points), asked, values))
    return found


def at_fairness(
    constraint: str, wanted: float, fairness: NDArray[Any], values: NDArray[Any]
) -> tuple[float, bool]:
    """Return the value at a wanted fairness, and whether every point is less fair.

    The points (n,) go from mild to strict. Those that are less fair than a milder one are left out.
    """
    signed, x = fairer_by(constraint, fairness, 0.0), fairer_by(constraint, wanted, 0.0)
    is_fairer = np.r_[True, signed[1:] > np.maximum.accumulate(signed)[:-1]]
    signed, values = signed[is_fairer], values[is_fairer]
    value = float(np.interp(x, signed, values))
    is_beyond = bool(x > signed[-1])
    if is_beyond and len(signed) > 1:
        slope = (values[-1] - values[-2]) / (signed[-1] - signed[-2])
        value += float(slope * (x - signed[-1]))
    return value, is_beyond


def _compared(found: list[JobRuns], splits: NDArray[Any]) -> pd.DataFrame:
    """Return a row for each job: this version's figures at the mean fairness of version 0.2.

    `splits` may name a split more than once. A job that lacks a split goes without it.
    """
    rows = []
    for runs in found:
        drawn = [int(i) for split in splits for i in np.flatnonzero(runs.seeds == split)]
        if not drawn:
            continue
        path, before = runs.path[drawn].mean(axis=0), runs.before[drawn].mean(axis=0)
        fairness, changes, accuracy, seconds = path.T
        constraint = runs.job.constraint
        needed, is_beyond = at_fairness(constraint, before[0], fairness, changes)
        rows.append(
            {
                **runs.job._asdict(),
                "changes": needed,
                "beyond": is_beyond,
                "accuracy": at_fairness(constraint, before[0], fairness, accuracy)[0],
                "seconds": seconds[runs.asked],
                "old_changes": before[1],
                "old_accuracy": before[2],
                "old_seconds": before[3],
                "splits": len(set(drawn)),
                "cell": smallest_cell(runs.job.table, constraint),
            }
        )
    return pd.DataFrame(rows)


# ---------------------------------------------------------------------------------------------
# Bars


def _show_setting(setting: str, runs: pd.DataFrame, before: pd.DataFrame) -> None:
    before = before[before["setting"] == setting]
    splits = before["seed"].unique()
    found = _runs_by_job(runs, before)
    rows = _compared(found, splits)
    name = NAMES[setting]
    pooled = rows[~rows["table"].isin(NOT_POOLED)]
    label = f"{name}: changes / 0.2's, at most {len(splits)} splits"
    if len(pooled):
        random = np.random.default_rng(0)
        drawn = [
            _ratio(_compared(found, random.choice(splits, len(splits)))) for _ in range(N_BOOTSTRAP)
        ]
        note = f"± {np.std(drawn):.3f}" + (f" (goal {GOAL})" if setting == "fewest" else "")
        show_at_most(label, _ratio(rows), MAX_RATIO[setting], note)
        large = pooled[pooled["cell"] >= MIN_CELL]
        show(f"{name}:   cells of {MIN_CELL} people", f"{_ratio(large):.3f}", "reported")
        _show_rest(name, pooled)
    for table, some in rows.groupby("table", sort=False):
        large = some[some["cell"] >= MIN_CELL]
        is_judged = table not in NOT_POOLED and len(large) > 0
        if is_judged:
            note = f"({len(large)} of {len(some)} jobs, {some['splits'].max()} splits)"
            show_at_most(f"{name}: {table}", _ratio(large), MAX_TABLE_RATIO, note)
        if len(large) < len(some) or not is_judged:
            show(f"{name}: {table}, all jobs", f"{_ratio(some, ()):.3f}", "reported")
    for constraint, some in pooled.groupby("constraint", sort=False):
        show(f"{name}:   {constraint}", f"{_ratio(some):.3f}", "reported")


def _ratio(rows: pd.DataFrame, left_out: tuple[str, ...] = NOT_POOLED) -> float:
    counted = rows[~rows["table"].isin(left_out)]
    return float(counted["changes"].sum() / counted["old_changes"].sum())


def _show_rest(name: str, rows: pd.DataFrame) -> None:
    """Print what has no bar here: accuracy, seconds, and jobs that needed extrapolation."""
    difference = float((rows["accuracy"] - rows["old_accuracy"]).mean())
    n_fewer = int((rows["changes"] <= rows["old_changes"]).sum())
    show(f"{name}:   jobs with at most 0.2's changes", f"{n_fewer} of {len(rows)}", "reported")
    show(f"{name}:   accuracy − 0.2's", f"{difference:+.4f}", "reported")
    times = f"{rows['seconds'].mean():.2f} / {rows['old_seconds'].mean():.2f}"
    show(f"{name}:   seconds / 0.2's", times, "reported (of the processor)")
    n_beyond = int(rows["beyond"].sum())
    show(f"{name}:   jobs beyond the path of targets", f"{n_beyond} of {len(rows)}", "reported")
