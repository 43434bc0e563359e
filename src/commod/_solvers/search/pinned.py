"""Search for the weights of some terms while the points of all others are fixed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.annealing import SearchTask, anneal
from commod._solvers.search.offset import Direction

Floats = NDArray[np.float64]


def fit_beside(task: SearchTask, pinned: Floats, start: Floats) -> Direction:
    """Return the weights (d,) that need the fewest changes beside a fixed part of η.

    The sum of both has no free scale: the fixed part sets the unit. So temperatures are shares of
    the spread of η where the search begins.

    Parameters
    ----------
    task : SearchTask
        With the d free columns alone.
    pinned : ndarray of shape (n,)
        What the terms with fixed points add to η.
    start : ndarray of shape (d,)
        The weights where the search begins; the result is never worse on these rows.
    """
    spread = float((pinned + task.design.times(start)).std())
    unit = spread if spread > 0 else 1.0
    beside = replace(task, pinned=pinned / unit)
    found = anneal(beside, start / unit, is_short=False)
    return replace(found, w=found.w * unit, offset=found.offset * unit)
