"""Compute the paper's tables and figures and write them down: python -m experiments [--quick]."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

from commod.exceptions import DatasetError
from experiments import (
    adult,
    agreement,
    architectures,
    base_points,
    concepts,
    deciding,
    figure_1,
    gains_only,
    illustration,
    locality,
    pareto,
    post_hoc,
    sensitivity,
    sweeps,
    table_1,
)
from experiments.protocol import ADULT, load
from experiments.provenance import describe
from experiments.run import HERE, Done, compute_all, default_jobs
from experiments.settings import FULL, QUICK, Settings

EXPERIMENTS: tuple[Any, ...] = (
    base_points,
    table_1,
    deciding,
    figure_1,
    pareto,
    illustration,
    concepts,
    locality,
    sensitivity,
    architectures,
    agreement,
    post_hoc,
    gains_only,
)
RESULTS = HERE / "results"
DIGITS = "%.6g"


def main(arguments: list[str]) -> int:
    """Compute what is missing, write tables, pictures and page; return the exit code."""
    options = _parser().parse_args(arguments)
    folder = RESULTS / "quick" if options.quick else RESULTS
    try:
        settings, left_out = _with_tables_at_hand(QUICK if options.quick else FULL)
    except DatasetError as error:
        print(error, file=sys.stderr)
        return 2
    begin, done = time.perf_counter(), Done()
    try:
        updates = _compute(settings, done, options.jobs)
    except KeyboardInterrupt:
        print("Stopped. Finished cells are kept: the same command goes on from here.")
        return 130
    if done.failures:
        print(f"{len(done.failures)} cells failed:", *done.failures, sep="\n  ", file=sys.stderr)
        return 1
    told = describe(settings, done, options.jobs, time.perf_counter() - begin, left_out)
    _write(settings, done, updates, told, folder)
    print(f"{len(done)} cells, {told['wall_seconds'] / 60:.1f} min. Tables are in {folder}.")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few splits and points, minutes")
    parser.add_argument("--jobs", type=int, default=default_jobs(), help="cells at once")
    return parser


def _with_tables_at_hand(settings: Settings) -> tuple[Settings, dict[str, str]]:
    """Return the settings without Adult where it cannot be had, and why; the paper's must be."""
    for table in dict.fromkeys(table for table, _ in settings.splits if table != ADULT):
        load(table)
    reason = adult.fetch()
    if reason is None:
        return settings, {}
    print(f"Adult is left out: {reason}", file=sys.stderr)
    splits = {key: n for key, n in settings.splits.items() if key[0] != ADULT}
    return dataclasses.replace(settings, splits=splits), {ADULT: reason}


def _compute(settings: Settings, done: Done, jobs: int) -> pd.DataFrame:
    """Compute the sweeps and what stands alone, then what is chosen from the sweeps."""
    first = [
        cell
        for module in (sweeps, *EXPERIMENTS)
        if hasattr(module, "cells")
        for cell in module.cells(settings)
    ]
    compute_all(first, done, jobs)
    updates = sweeps.frame(done, settings)
    then = [
        cell
        for module in EXPERIMENTS
        if hasattr(module, "cells_after")
        for cell in module.cells_after(settings, updates)
    ]
    compute_all(then, done, jobs)
    return updates


def _write(
    settings: Settings, done: Done, updates: pd.DataFrame, told: dict[str, Any], folder: Path
) -> None:
    """Write one CSV per table, and where they come from."""
    folder.mkdir(parents=True, exist_ok=True)
    frames = {"sweeps": updates}
    for module in EXPERIMENTS:
        frames |= module.tables(done, settings, updates)
    for name, frame in frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False, float_format=DIGITS)
    (folder / "run.json").write_text(json.dumps(told, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
