"""Describe the machine and the time of a measurement."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from typing import Any

from experiments.provenance import commit, processor


def describe() -> dict[str, Any]:
    """Return machine, commit and current time."""
    return {
        "measured": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit("src", "benchmarks"),
        "cores": os.cpu_count() or 1,
        "processor": processor(),
        "memory_gb": round(_memory() / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": os.environ.get("OMP_NUM_THREADS", ""),
        "load": load(),
    }


def load() -> float:
    """Return how many processes wanted to run in the last minute."""
    return round(os.getloadavg()[0], 2)


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
