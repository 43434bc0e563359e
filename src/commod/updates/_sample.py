"""Draw the search sample of a large table, and verify updates that were fitted on it.

A direction is searched for on the sample. A direction that is good on a large enough sample is
good on all rows. The offset and every figure are counted on all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.annealing import SearchTask
from commod.updates._problem import FitProblem
from commod.updates._search_task import acting_rows, begin_at, search_task, worth_changing

Floats = NDArray[np.float64]
Numbers = NDArray[np.floating | np.integer]
Mask = NDArray[np.bool_]

MIN_ROWS = 12_000  # in a sample
MIN_CHANGED_ROWS = 1_000  # of a sample: their number is then known to about 3 %
MIN_CELL_ROWS = 1_000  # of a sample from each cell, or all rows of the cell
MIN_STRATUM_ROWS = 100  # of each cell and decision: rates near 0 and 1 stay measurable
GROWTH = 4  # from one sample to the next
MAX_SHARE = 0.5  # of all rows: a larger sample is hardly quicker than all rows

# By which share an update may change more rows, or make less progress, on all rows than on its
# sample, besides sampling error.
MAX_EXCESS = 0.01
MAX_EXCESS_AT_ONE_TARGET = 0.25  # for a single update of a path
MAX_DISTANCE = 0.01  # by which all rows may stay further from the target than the sample


@dataclass(frozen=True)
class SearchSample:
    """Rows on which a direction is searched for, and the task of a search on them.

    `index` (m,) are the rows. `people` (m,) is how many people each row stands for; None where
    the sample is all rows. The tasks hold the rows at the positions `acting`, those whose decision
    may change. `score_task` may read the distance from the threshold, `task` may not. They are for
    one target; `task_for` returns the task for another.
    """

    problem: FitProblem
    index: NDArray[np.intp]
    people: Floats | None
    acting: NDArray[np.intp]
    score_task: SearchTask

    @cached_property
    def task(self) -> SearchTask:
        """Return the task on the raw columns alone."""
        return replace(self.score_task.select(~self.score_task.reads_score), reads=None)

    @property
    def is_all_rows(self) -> bool:
        """Return whether the sample is the whole table."""
        return self.people is None

    def task_for(self, target: float, sparsity: float | None = None) -> SearchTask:
        """Return the task for another target and, if given, another sparsity."""
        return replace(
            self.task,
            inequalities=self.problem.inequalities(target, self.task.effects),
            **begin_at(self.task, worth_changing(self.problem, target, self.index), self.acting),
            sparsity=self.task.sparsity if sparsity is None else sparsity,
        )


def search_samples(problem: FitProblem, target: float) -> Iterator[SearchSample]:
    """Yield samples, smallest first; the last one is all rows."""
    n = len(problem.rows)
    if problem.rows.people is not None:  # the rows are a sample already
        acting = acting_rows(problem, np.arange(n))
        task = search_task(problem, target, np.arange(n), None, acting)
        yield SearchSample(problem, np.arange(n), None, acting, task)
        return
    shares = [problem.limit(target), problem.caps.changes]
    sizes = sample_sizes(
        n,
        min((share for share in shares if share not in (None, np.inf)), default=None),
        use_all=problem.use_all,
        evenness=weight_evenness(problem.cells.index, problem.rows.weight),
    )
    for size in sizes:
        index, people = np.arange(n), None
        if size < n:
            cell, decisions = problem.cells.index, problem.rows.base.decisions
            growth = size / sizes[0]
            index, people = draw_sample(cell, decisions, size, problem.random_state, growth)
        acting = acting_rows(problem, index)
        task = search_task(problem, target, index, people, acting)
        yield SearchSample(problem, index, people, acting, task)


def sample_sizes(n: int, limit: float | None, *, use_all: bool, evenness: float = 1.0) -> list[int]:
    """Return the numbers of rows to search on, from the first sample to all n rows.

    `limit` is the smallest share of changes that reaches the target, None where it is unknown.
    The fewer decisions change, the more rows it takes to see which. Uneven weights also need more
    rows (see `weight_evenness`). With `use_all`, all rows follow right after the first sample.

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
    n_for_changes = MIN_CHANGED_ROWS / limit if limit else 0.0
    size = int(np.ceil(max(MIN_ROWS, n_for_changes) / evenness))
    sizes = []
    while size <= MAX_SHARE * n:
        sizes.append(size)
        size *= GROWTH
    return [*(sizes[:1] if use_all else sizes), n]


def weight_evenness(cell: NDArray[np.intp], weight: Floats) -> float:
    """Return Kish's effective sample size over the number of rows, the least over the cells.

    `cell` (n,) is −1 for rows in none. The result is 1 where weights are equal, and near 0 where
    a few rows hold most of the weight.

    Examples
    --------
    >>> float(weight_evenness(np.array([0, 0, 1, 1]), np.array([1.0, 1.0, 3.0, 1.0])))
    0.8
    """
    if weight.min() == weight.max():
        return 1.0
    weight = np.ldexp(weight, -np.frexp(weight.max())[1])  # squares of huge weights overflow
    n_rows, totals, squares = (
        np.bincount(cell + 1, values)[1:] for values in (None, weight, weight**2)
    )
    return evenness_of(n_rows, totals, squares)


def evenness_of(n_rows: Numbers, totals: Numbers, squares: Numbers) -> float:
    """Return the evenness of weights from their number, sum and sum of squares in each cell."""
    counted = n_rows > 0
    shares = totals[counted] ** 2 / (n_rows * squares)[counted]
    return float(shares.min(initial=1.0))


def draw_sample(
    cell: NDArray[np.intp],
    decisions: Mask,
    size: int,
    random_state: np.random.RandomState,
    growth: float = 1.0,
) -> tuple[NDArray[np.intp], Floats]:
    """Return about `size` rows and how many people each stands for, both of shape (m,).

    Rows are drawn within strata of cell and decision. The rows of a stratum together stand for
    all its people, so base rates in people are those of all rows. Small cells and rare decisions
    are drawn more densely. Their rows grow with the sample, which is `growth` times the first one.
    """
    drawn, people = [], []
    strata = 2 * (cell + 1) + decisions
    cell_sizes = np.bincount(cell + 1)
    for stratum in np.flatnonzero(np.bincount(strata)):
        rows = np.flatnonzero(strata == stratum)
        rate = max(size / len(cell), growth * MIN_CELL_ROWS / cell_sizes[stratum // 2])
        n = min(len(rows), int(np.ceil(max(rate * len(rows), growth * MIN_STRATUM_ROWS))))
        drawn.append(random_state.choice(rows, n, replace=False))
        people.append(np.full(n, len(rows) / n))
    index = np.concatenate(drawn)
    order = np.argsort(index)
    return index[order], np.concatenate(people)[order]


# ---------------------------------------------------------------------------------------------
# Verification on all rows


class SampleComparison(NamedTuple):
    """What an update does to its search sample and to all rows.

    - `share`: the share of the people in the sample who change.
    - `share_of_all`: the share of all rows that change.
    - `n_changed`: the number of rows of the sample that change.
    - `distance`: how much further from the target all rows stay than the sample.
    - `progress`: how much closer to the target the sample comes than the base model.
    """

    share: float
    share_of_all: float
    n_changed: float
    distance: float
    progress: float


def agrees_with_sample(comparison: SampleComparison, max_excess: float = MAX_EXCESS) -> bool:
    """Return whether an update does the same on all rows as on its sample, within sampling error.

    `max_excess` is the share of additional changes, or of missing progress, that is accepted
    besides sampling error.
    """
    tolerance = max_excess + 2 / np.sqrt(max(comparison.n_changed, 1))
    max_distance = min(MAX_DISTANCE, tolerance * comparison.progress)
    max_share = comparison.share * (1 + tolerance)
    return bool(comparison.distance <= max_distance and comparison.share_of_all <= max_share)


def path_agrees_with_samples(comparisons: Sequence[SampleComparison]) -> bool:
    """Return whether the updates of a path agree with the sample on average, and none fails badly.

    Along a path, the best direction may turn into another one. A target near such a turn may cost
    more on all rows than on the sample, although its neighbours do not.
    """
    mean = SampleComparison(*np.mean(comparisons, axis=0).tolist())
    return agrees_with_sample(mean) and all(
        agrees_with_sample(comparison, MAX_EXCESS_AT_ONE_TARGET) for comparison in comparisons
    )
