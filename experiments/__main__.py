"""Compute the paper's tables and figures and write the page: python -m experiments [--quick]."""

from __future__ import annotations

import argparse
import dataclasses
import json
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd

from commod.exceptions import DatasetError
from experiments import (
    added,
    adult,
    agreement,
    all_methods,
    architectures,
    base_points,
    concepts,
    deciding,
    figure_1,
    gains_only,
    illustration,
    locality,
    page,
    pareto,
    pictures,
    post_hoc,
    sensitivity,
    sweeps,
    table_1,
)
from experiments.frames import read_frames
from experiments.methods import METHODS
from experiments.protocol import ADULT, load
from experiments.provenance import describe
from experiments.run import HERE, STORE, Done, compute_all, default_jobs
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
    all_methods,
)
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "paper.md"
DIGITS = "%.5g"


def main(arguments: list[str]) -> int:
    """Compute what is missing, write tables, pictures and page; return the exit code."""
    options = _parser().parse_args(arguments)
    before = signal.signal(signal.SIGTERM, _stop)  # otherwise the workers live on
    try:
        if options.page:
            return _publish_again(options.quick)
        return _add(options) if options.methods else _run(options)
    except DatasetError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"Cannot write: {error}. Nothing was half-written.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        n = len(list(STORE.glob("*.json")))
        print(f"Stopped. {n} finished cells are stored: the same command continues from here.")
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few splits and points: takes minutes")
    parser.add_argument("--page", action="store_true", help="only draw and write, from the CSVs")
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=METHODS,
        metavar="METHOD",
        help="only sweep these methods, into the tables of an earlier run",
    )
    parser.add_argument("--jobs", type=_at_least_one, default=default_jobs(), help="parallel cells")
    return parser


def _at_least_one(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def _run(options: argparse.Namespace) -> int:
    settings, left_out = _with_available_tables(QUICK if options.quick else FULL)
    begin, done = time.perf_counter(), Done()
    updates = _compute(settings, done, options.jobs)
    if done.failures:
        print(f"{len(done.failures)} cells failed:", *done.failures, sep="\n  ", file=sys.stderr)
        return 1
    run_info = describe(settings, done, options.jobs, time.perf_counter() - begin, left_out)
    page_path = _publish(_tables(settings, done, updates), run_info, options.quick)
    print(f"{len(done)} cells, {run_info['wall_seconds'] / 60:.1f} min. Read {page_path}")
    return 0


def _add(options: argparse.Namespace) -> int:
    folder = _folder(options.quick)
    if not (folder / "run.json").exists():
        print(f"{folder} has no tables yet: run without --methods first.", file=sys.stderr)
        return 2
    settings, _ = _with_available_tables(QUICK if options.quick else FULL)
    done = Done()
    frames = added.compute(settings, options.methods, read_frames(folder), done, options.jobs)
    if done.failures:
        print(f"{len(done.failures)} cells failed:", *done.failures, sep="\n  ", file=sys.stderr)
        return 1
    run_info = json.loads((folder / "run.json").read_text())
    run_info = added.described(run_info, options.methods, frames["sweeps"], done, options.jobs)
    print(f"Read {_publish(frames, run_info, options.quick)}")
    return 0


def _publish_again(quick: bool) -> int:
    folder = _folder(quick)
    if not (folder / "run.json").exists():
        print(f"{folder} has no tables yet: run without --page first.", file=sys.stderr)
        return 2
    run_info = json.loads((folder / "run.json").read_text())
    try:
        page_path = _publish(read_frames(folder), run_info, quick)
    except KeyError as error:
        print(f"{folder} was written by other code ({error}): run without --page.", file=sys.stderr)
        return 2
    print(f"Read {page_path}")
    return 0


def _with_available_tables(settings: Settings) -> tuple[Settings, dict[str, str]]:
    """Return the settings, without Adult where it cannot be fetched, and the reason.

    The paper's tables must be available: otherwise this raises an error.
    """
    for table in dict.fromkeys(table for table, _ in settings.splits if table != ADULT):
        load(table)
    reason = adult.fetch()
    if reason is None:
        return settings, {}
    print(f"Adult is left out: {reason}", file=sys.stderr)
    splits = {key: n for key, n in settings.splits.items() if key[0] != ADULT}
    return dataclasses.replace(settings, splits=splits), {ADULT: reason}


def _compute(settings: Settings, done: Done, jobs: int) -> pd.DataFrame:
    """Compute the sweeps and all independent cells, then the cells that depend on the sweeps."""
    independent = [
        cell
        for module in (sweeps, *EXPERIMENTS)
        if hasattr(module, "cells")
        for cell in module.cells(settings)
    ]
    compute_all(independent, done, jobs, settings.effort)
    if done.failures:
        return pd.DataFrame()
    updates = sweeps.frame(done, settings)
    dependent = [
        cell
        for module in EXPERIMENTS
        if hasattr(module, "cells_after")
        for cell in module.cells_after(settings, updates)
    ]
    compute_all(dependent, done, jobs, settings.effort)
    return updates


def _tables(settings: Settings, done: Done, updates: pd.DataFrame) -> dict[str, pd.DataFrame]:
    frames = {"sweeps": updates}
    for module in EXPERIMENTS:
        frames |= module.tables(done, settings, updates)
    return frames


def _folder(quick: bool) -> Path:
    return RESULTS / "quick" if quick else RESULTS


def _publish(frames: dict[str, pd.DataFrame], run_info: dict[str, Any], quick: bool) -> Path:
    """Write tables, pictures and page, then move all of them into place; return the page."""
    folder, place = _folder(quick), PAGE.parent if not quick else _folder(quick)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HERE, prefix=".unfinished-") as name:
        fresh = Path(name)
        for title, frame in frames.items():
            frame.to_csv(fresh / f"{title}.csv", index=False, float_format=DIGITS)
        (fresh / "run.json").write_text(json.dumps(run_info, indent=2) + "\n")
        pictures.draw_all(fresh)
        page.write_page(fresh, fresh / PAGE.name, "" if quick else "../experiments/results/")
        for old in folder.iterdir():
            if old.suffix in (".csv", ".svg", ".png") and not (fresh / old.name).exists():
                old.unlink()
        for new in fresh.iterdir():
            if new.name != PAGE.name:
                new.replace(folder / new.name)
        (fresh / PAGE.name).replace(place / PAGE.name)
    return place / PAGE.name


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
