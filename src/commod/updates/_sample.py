"""Which of many rows a direction is sought on: how many, and which ones.

A direction that is right on a sample is right on all rows; what is promised, the cut and every
figure, is counted on all of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["carries_over", "draw_sample", "sample_sizes"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST_ROWS = 12_000
CHANGED_ROWS = 1_000  # of a sample have to change: their number is then known to some 3 %
CELL_ROWS = 1_000  # of a sample at least from each cell, as far as it has so many
GROWTH = 4
EXTRA = 0.01  # of the changes: what a sample's direction may cost more on all rows, beside chance
FURTHER = 0.01  # from the target: how much further all rows may be than the sample


def sample_sizes(n: int, limit: float | None, *, use_all: bool) -> list[int]:
    """Return on how many of n rows to search, first, next and last.

    The fewer decisions have to change, the more rows it takes to see which: `limit` is the share
    of changes that the target needs at least, None where that is not known. A size that proves too
    small is followed by the next; with `use_all`, all rows come right after the first.

    Examples
    --------
    >>> sample_sizes(1_000_000, 0.02, use_all=False)
    [50000, 200000, 800000, 1000000]
    >>> sample_sizes(1_000_000, 0.02, use_all=True)
    [50000, 1000000]
    >>> sample_sizes(5_000, 0.02, use_all=False)
    [5000]
    """
    wanted = FEWEST_ROWS if not limit else max(FEWEST_ROWS, int(np.ceil(CHANGED_ROWS / limit)))
    if wanted >= n:
        return [n]
    if use_all:
        return [wanted, n]
    sizes = []
    while wanted < n:
        sizes.append(wanted)
        wanted *= GROWTH
    return [*sizes, n]


def draw_sample(
    cell: NDArray[np.intp], decisions: Mask, size: int, random_state: np.random.RandomState
) -> tuple[NDArray[np.intp], Floats]:
    """Return about `size` rows and how many people each stands for, both of shape (m,).

    Drawn within each cell and decision, so that base rates are those of all rows. Small cells are
    drawn more densely, so that their rates keep a meaning.
    """
    chosen, people = [], []
    strata = 2 * (cell + 1) + decisions
    cell_sizes = np.bincount(cell + 1)
    for code in np.flatnonzero(np.bincount(strata)):
        rows = np.flatnonzero(strata == code)
        rate = min(1.0, max(size / len(cell), CELL_ROWS / cell_sizes[code // 2]))
        n = int(np.ceil(rate * len(rows)))
        chosen.append(random_state.choice(rows, n, replace=False))
        people.append(np.full(n, 1 / rate))
    index, stands_for = np.concatenate(chosen), np.concatenate(people)
    order = np.argsort(index)
    return index[order], stands_for[order]


def carries_over(share: float, share_of_all: float, n_changed: int, further: float) -> bool:
    """Return whether a direction does to all rows what it does to its sample, but for chance.

    `share` of the people in the sample change, which are `n_changed` of its rows, and
    `share_of_all` of all rows; `further` is how much further from the target all rows are.
    """
    chance = 2 / np.sqrt(max(n_changed, 1))
    return bool(further <= FURTHER and share_of_all <= share * (1 + EXTRA + chance))
