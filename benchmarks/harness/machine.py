"""Describe the machine and the time of a measurement."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from typing import Any

from experiments.provenance import LOCAL_CHANGES

from experiments import provenance


def describe() -> dict[str, Any]:
    """Return machine, commit and current time."""
    return {
        "measured": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "cores": os.cpu_count() or 1,
        "processor": provenance.processor(),
        "memory_gb": round(_memory() / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": os.environ.get("OMP_NUM_THREADS", ""),
        "load": load(),
    }


def commit() -> str:
    """Return the last commit that changed what is measured or what measures."""
    return provenance.commit("src", "benchmarks", "experiments/*.py")


def is_of_this_source(part: dict[str, Any]) -> bool:
    """Return whether a stored part was measured with the source as it is, all of it committed."""
    source = commit()
    return bool(part["commit"] == source and LOCAL_CHANGES not in source)


def load() -> float:
    """Return how many processes wanted to run in the last minute."""
    return round(os.getloadavg()[0], 2)


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
