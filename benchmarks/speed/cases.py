"""What one benchmark is called, where it runs and how often: a pytest parameter with a marker.

Standard library and pytest only: it is read in the environment of every peer.
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
    """Return a parameter set; benchmarks of one group are compared, and take turns.

    Parameters
    ----------
    *values
        The arguments of the benchmark.
    group, name : str
        The rows it is measured on, and what is measured on them.
    environment : str
        The library whose interpreter runs it.
    turns : int
        Fresh processes it gets.
    cache : str
        "none": nothing compiled before may be found; "filled": by one earlier process.
    """
    mark = pytest.mark.case(
        group=group, name=name, environment=environment, turns=turns, cache=cache
    )
    return pytest.param(*values, id=f"{group}, {name}", marks=mark)
