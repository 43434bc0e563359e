"""Compute the results of version 0.2 that the figure `heart` compares with, once.

Run it with version 0.2, i.e. commit 0feab11, in another folder:

    git archive 0feab11 src | tar x -C FOLDER
    OMP_NUM_THREADS=1 PYTHONPATH=FOLDER/src:benchmarks:. python benchmarks/heart_before.py

Results are added to `heart_0_2.csv.gz` table by table, and rows that the file has are not computed
again. So a stopped run goes on where it stopped. `SEEDS`, `TABLES` and `JOBS` work as in
`make figures`.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pandas as pd
from heart_jobs import N_SPLITS, Job, jobs, measured, tables
from parallel import in_parallel, seeds

import commod

STORED = Path(__file__).parent / "heart_0_2.csv.gz"
SETTINGS: dict[str, dict[str, float]] = {
    "fewest": {"borderline": 0, "sparsity": 0},
    "default": {"borderline": 0.1, "sparsity": 0.14},
}
KEYS = [*Job._fields, "setting", "seed"]


def stored_results() -> pd.DataFrame:
    """Return what version 0.2 got: one row for each job, setting and seed."""
    return pd.read_csv(STORED).round({"target": 6})  # some versions of pandas read 0.95 inexactly


def main() -> None:
    """Compute what is missing, seed by seed and table by table."""
    if Path(commod.__file__).is_relative_to(STORED.parents[1]):
        raise SystemExit("PYTHONPATH must begin with the folder src of version 0.2.")
    records = stored_results().to_dict("records") if STORED.exists() else []
    known = {tuple(record[key] for key in KEYS) for record in records}
    for seed, table in itertools.product(seeds(N_SPLITS), tables()):
        tasks = [
            (job, setting, seed)
            for job in jobs()
            for setting in SETTINGS
            if job.table == table and (*job, setting, seed) not in known
        ]
        if tasks:
            records += in_parallel(_record, tasks)
            _write(records)


def _record(job: Job, setting: str, seed: int) -> dict[str, Any]:
    figures = measured(job, seed, random_state=0, **SETTINGS[setting])
    return {**job._asdict(), "setting": setting, "seed": seed, **figures}


def _write(records: list[dict[str, Any]]) -> None:
    results = pd.DataFrame(records).sort_values(KEYS)
    results = results.round({"target": 6, "fairness": 5, "changes": 5, "accuracy": 5, "seconds": 2})
    unfinished = STORED.with_suffix(".part")
    results.to_csv(unfinished, index=False, compression={"method": "gzip", "mtime": 0})
    unfinished.replace(STORED)  # a stopped run leaves no half file


if __name__ == "__main__":
    main()
