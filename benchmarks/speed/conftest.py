"""Pytest as the harness uses it: it lists the benchmarks, and says which versions were measured.

Standard library and pytest only: it is loaded in the environment of every peer.
"""

from __future__ import annotations

import json
import platform
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest

# what decides how fast something is, whichever environment it is found in
PACKAGES = {
    "aif360",
    "commod-debiasing",
    "duckdb",
    "fairlearn",
    "jax",
    "jaxlib",
    "lightgbm",
    "narwhals",
    "numpy",
    "oxonfair",
    "pandas",
    "polars",
    "pyarrow",
    "scikit-learn",
    "scipy",
    "tensorflow",
    "tensorflow-cpu",
    "torch",
}


def pytest_addoption(parser: Any) -> None:
    """Let the harness ask for a list of the benchmarks."""
    parser.addoption("--list-cases", help="write the benchmarks to this JSON file")


def pytest_collection_finish(session: Any) -> None:
    """Write what was collected where it is asked for."""
    path = session.config.getoption("--list-cases")
    if path:
        Path(path).write_text(json.dumps([_described(item) for item in session.items]))


def _described(item: Any) -> dict[str, Any]:
    part = item.path.stem.removeprefix("bench_")
    marker = item.get_closest_marker("case")
    if marker is None:
        raise pytest.UsageError(f"{item.nodeid} has no case: nobody knows how to run it.")
    return {"part": part, "node": item.nodeid, **marker.kwargs}


def pytest_benchmark_generate_machine_info() -> dict[str, Any]:
    """Return versions; the machine itself is described once, by the harness."""
    versions = {d.name.lower().replace("_", "-"): d.version for d in distributions()}
    found = {name: version for name, version in sorted(versions.items()) if name in PACKAGES}
    return {"python": platform.python_version(), "packages": found}


def pytest_benchmark_generate_commit_info() -> dict[str, Any]:
    """Return nothing: the harness asks for the commit once."""
    return {}
