"""Notice that the rows of a frame differ from one query to the next.

A fit asks its engine several times. A frame that is a query runs anew each time, so a random number
or a limit without an order gives other rows. Every later query must count the people of the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod.exceptions import InputError

Codes = NDArray[np.intp]

MAX_WEIGHT_DEVIATION = 1e-6  # relative, of two sums of the same weights


def rows_differ() -> InputError:
    """Return the error for a frame whose rows are not the same in two queries."""
    return InputError(
        "The rows of the frame differ between two queries of the same fit. The frame may be a "
        "query with random numbers or with a limit, or somebody writes to its table. Store its "
        "rows first (as a table, in a file, or with cache() in Spark), and fit on these.",
        parameter="frame",
    )


def check_same_people(
    first: tuple[Codes, Any], second: tuple[Codes, Any], tolerance: float = 0.0
) -> None:
    """Refuse two counts, each of lines and their people, that differ in any line.

    None as people: one for each entry. Weights may differ by a relative `tolerance`, because
    engines add them in any order.

    Examples
    --------
    >>> check_same_people((np.array([0, 1]), np.ones(2)), (np.array([1, 0]), np.ones(2)))
    """
    n_lines = max(int(line.max(initial=-1)) for line, _ in (first, second)) + 1
    before, after = (np.bincount(line, people, n_lines) for line, people in (first, second))
    if not np.allclose(before, after, rtol=tolerance, atol=0.0):
        raise rows_differ()
