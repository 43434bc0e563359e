"""The provenance of a run: commit, versions, seeds, machine and time.

It is kept apart from the tables: the same code on the same machine gives the same tables, but
another time.
"""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiments.run import HERE, Done, versions
from experiments.settings import Settings

LOCAL_CHANGES = " with local changes"  # after the commit, where files differ from it


def describe(
    settings: Settings, done: Done, jobs: int, seconds: float, left_out: dict[str, str]
) -> dict[str, Any]:
    """Return what the page says about the run."""
    return {
        "settings": settings.name,
        **provenance(jobs),
        "splits": {f"{table}, {notion}": n for (table, notion), n in settings.splits.items()},
        "few_splits": settings.few_splits,
        "sensitivity_seeds": settings.sensitivity_seeds,
        "n_cells": len(done),
        "n_kept": done.n_kept,
        "cell_seconds": round(done.seconds),
        "wall_seconds": round(seconds),
        "left_out": left_out,
    }


def separate_part(done: Done, jobs: int, splits: dict[str, int]) -> dict[str, Any]:
    """Return what the page says about cells that were computed apart from the main run.

    `splits` maps "table, notion" to the number of splits of these cells.
    """
    size = {"n_cells": len(done), "cell_seconds": round(done.seconds)}
    return {**provenance(jobs), "splits": splits, **size}


def provenance(jobs: int) -> dict[str, Any]:
    """Return commit, versions, machine and time of a computation that ends now."""
    return {
        "commit": commit("src", "experiments/*.py"),
        "versions": versions(),
        "machine": _machine(),
        "jobs": jobs,
        "finished": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def commit(*paths: str) -> str:
    """Return the last commit that changed files under `paths`, and whether they differ from it.

    Commits that store results or change pages have the code of the commit before them.
    """
    revision = _git("log", "-1", "--format=%h", "--abbrev=12", "--", *paths)
    changed = _git("status", "--porcelain", "--", *paths)
    return (revision or "unknown") + (LOCAL_CHANGES if changed else "")


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=HERE.parent, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip()


def _machine() -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cores": os.cpu_count(),
    }


def processor() -> str:
    """Return the name of the processor, as the system names it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"
