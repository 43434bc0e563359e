"""The description of a benchmark: a pytest parameter with a marker.

The module needs only the standard library and pytest: every peer's environment imports it.
"""

from __future__ import annotations

from typing import Any

import pytest


def case(
    *values: Any,
    group: str,
    name: str,
    environment: str = "commod",
    turns: int = 1,
    cache: str = "none",
) -> Any:
    """Return a parameter set; benchmarks of one group are compared and take turns.

    Parameters
    ----------
    *values
        The arguments of the benchmark.
    group, name : str
        The rows that it is measured on, and the action that is measured.
    environment : str
        The library whose interpreter runs the benchmark.
    turns : int
        The number of fresh processes.
    cache : str
        "none": no compiled program is reused; "filled": one earlier process fills the cache.
    """
    mark = pytest.mark.case(
        group=group, name=name, environment=environment, turns=turns, cache=cache
    )
    return pytest.param(*values, id=f"{group}, {name}", marks=mark)
