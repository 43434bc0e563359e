"""Pytest hooks for the harness: list the benchmarks, and report the measured versions.

The module needs only the standard library and pytest: every peer's environment loads it.
"""

from __future__ import annotations

import json
import platform
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest

# packages whose version matters for speed, in any environment
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
    "pyspark",
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
    """Write the collected benchmarks to the file of `--list-cases`, if given."""
    path = session.config.getoption("--list-cases")
    if path:
        Path(path).write_text(json.dumps([_described(item) for item in session.items]))


def _described(item: Any) -> dict[str, Any]:
    part = item.path.stem.removeprefix("bench_")
    marker = item.get_closest_marker("case")
    if marker is None:
        raise pytest.UsageError(f"{item.nodeid} has no case, so the harness cannot run it.")
    return {"part": part, "node": item.nodeid, **marker.kwargs}


def pytest_benchmark_generate_machine_info() -> dict[str, Any]:
    """Return the versions; the harness describes the machine once."""
    versions = {d.name.lower().replace("_", "-"): d.version for d in distributions()}
    packages = {name: versions[name] for name in sorted(versions) if name in PACKAGES}
    return {"python": platform.python_version(), "packages": packages}


def pytest_benchmark_generate_commit_info() -> dict[str, Any]:
    """Return nothing: the harness stores the commit once."""
    return {}
