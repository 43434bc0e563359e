"""Which of many rows a direction is sought on: how many, and which ones.

A direction that is right on a sample is right on all rows; what is promised, the cut and every
figure, is counted on all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Compared",
    "carries_over",
    "draw_sample",
    "evenness_of",
    "path_carries_over",
    "sample_sizes",
]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST_ROWS = 12_000
CHANGED_ROWS = 1_000  # of a sample have to change: their number is then known to some 3 %
CELL_ROWS = 1_000  # of a sample at least from each cell, as far as it has so many
STRATUM_ROWS = 100  # of them at least of each decision: rates near 0 and 1 keep a meaning
GROWTH = 4
LARGEST = 0.5  # of all rows: a larger sample is hardly quicker than all of them
EXTRA = 0.01  # of the changes: what a sample's direction may cost more on all rows, beside chance
EXTRA_AT_TURNS = 0.25  # of the changes: the same for a single one of many targets
FURTHER = 0.01  # from the target: how much further all rows may be than the sample


def sample_sizes(n: int, limit: float | None, *, use_all: bool, evenness: float = 1.0) -> list[int]:
    """Return on how many of n rows to search, first, next and last.

    The fewer decisions have to change, the more rows it takes to see which: `limit` is the share
    of changes that the target needs at least, None where that is not known. The less even the
    weights, the more rows, too (see `evenness_of`). A size that proves too small is followed by
    the next; with `use_all`, all rows come right after the first.

    Examples
    --------
    >>> sample_sizes(1_000_000, 0.02, use_all=False)
    [50000, 200000, 1000000]
    >>> sample_sizes(1_000_000, 0.02, use_all=True)
    [50000, 1000000]
    >>> sample_sizes(1_000_000, 0.02, use_all=False, evenness=0.5)
    [100000, 400000, 1000000]
    >>> sample_sizes(20_000, 0.2, use_all=False)
    [20000]
    """
    changed = CHANGED_ROWS / limit if limit else 0.0
    wanted = int(np.ceil(max(FEWEST_ROWS, changed) / evenness))
    sizes = []
    while wanted <= LARGEST * n:
        sizes.append(wanted)
        wanted *= GROWTH
    return [*(sizes[:1] if use_all else sizes), n]


def evenness_of(cell: NDArray[np.intp], weight: Floats) -> float:
    """Return how many of a cell's rows would tell as much with equal weights, the least share.

    `cell` (n,) is −1 for rows in none. Kish's effective number over the number: 1 where weights
    are equal, near 0 where a few rows hold most of the weight.

    Examples
    --------
    >>> float(evenness_of(np.array([0, 0, 1, 1]), np.array([1.0, 1.0, 3.0, 1.0])))
    0.8
    """
    if weight.min() == weight.max():
        return 1.0
    rows, total, squares = (
        np.bincount(cell + 1, values)[1:] for values in (None, weight, weight**2)
    )
    there = rows > 0
    return float((total[there] ** 2 / (rows * squares)[there]).min(initial=1.0))


def draw_sample(
    cell: NDArray[np.intp], decisions: Mask, size: int, random_state: np.random.RandomState
) -> tuple[NDArray[np.intp], Floats]:
    """Return about `size` rows and how many people each stands for, both of shape (m,).

    Drawn within each cell and decision and standing for as many as there are, so that base rates
    in people are those of all rows. Small cells and rare decisions are drawn more densely.
    """
    chosen, people = [], []
    strata = 2 * (cell + 1) + decisions
    cell_sizes = np.bincount(cell + 1)
    for code in np.flatnonzero(np.bincount(strata)):
        rows = np.flatnonzero(strata == code)
        rate = max(size / len(cell), CELL_ROWS / cell_sizes[code // 2])
        n = min(len(rows), max(int(np.ceil(rate * len(rows))), STRATUM_ROWS))
        chosen.append(random_state.choice(rows, n, replace=False))
        people.append(np.full(n, len(rows) / n))
    index, stands_for = np.concatenate(chosen), np.concatenate(people)
    order = np.argsort(index)
    return index[order], stands_for[order]


class Compared(NamedTuple):
    """What a direction does to its sample and to all rows.

    `share` of the people in the sample change, which are `n_changed` of its rows, and
    `share_of_all` of all rows. `progress` is how much closer to the target the sample comes, and
    `further` how much further from it all rows stay.
    """

    share: float
    share_of_all: float
    n_changed: float
    further: float
    progress: float


def carries_over(one: Compared, extra: float = EXTRA) -> bool:
    """Return whether a direction does to all rows what it does to its sample, but for chance.

    `extra` is the share of changes, or of progress, that may be lost beside chance.
    """
    more = extra + 2 / np.sqrt(max(one.n_changed, 1))
    lost = min(FURTHER, more * one.progress)
    return bool(one.further <= lost and one.share_of_all <= one.share * (1 + more))


def path_carries_over(several: Sequence[Compared]) -> bool:
    """Return whether the directions of a path carry over, on average, and none of them fails badly.

    Where the best direction turns into another one, a target may fall on the other side of the
    turn: dearer than it seemed, while those around it are not.
    """
    mean = Compared(*np.mean(several, axis=0).tolist())
    return carries_over(mean) and all(carries_over(one, EXTRA_AT_TURNS) for one in several)
