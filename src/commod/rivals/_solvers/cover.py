"""Choose items whose gains reach a sum at the smallest cost: a knapsack problem.

Each of m items has a gain above 0, a cost of at least 0, and a size that breaks ties of the cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from commod.bounds._quiet import without_debug_lines

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MAX_ENUMERATED = 25  # items; above, the halves have too many subsets
ROUNDING = 1e-12  # a sum of gains may fall short by this much
SCALE = 30.0  # of the constraint: HiGHS allows an error of 1e-6; larger scales make it print more
MAX_NODES = 1000  # of one integer programme; a limit in nodes gives the same result anywhere
MAX_SECONDS = 10.0  # of one integer programme, for trees of thousands of leaves


class Cover(NamedTuple):
    """The chosen items (m,), and whether no cheaper choice exists."""

    chosen: Mask
    is_optimal: bool


def greedy_cover(gain: Floats, cost: Floats, size: Floats, needed: float) -> Mask:
    """Return the items (m,) with the largest gain per cost until the sum of gains is reached.

    Items without cost come first, the smallest of them first.

    Examples
    --------
    >>> gain, cost, size = np.array([0.4, 0.3, 0.1]), np.array([4.0, 1.0, 5.0]), np.ones(3)
    >>> greedy_cover(gain, cost, size, needed=0.3)
    array([False,  True, False])
    """
    free = cost <= 0
    ratio = np.divide(gain, cost, out=np.full(len(gain), np.inf), where=~free)
    order = np.lexsort([size, -ratio])
    before = np.concatenate([[0.0], np.cumsum(gain[order])])[: len(gain)]
    chosen = np.zeros(len(gain), dtype=np.bool_)
    chosen[order[before < needed - ROUNDING]] = True
    return chosen


def cheapest_cover(gain: Floats, cost: Floats, size: Floats, needed: float) -> Cover:
    """Return the items of the smallest cost whose gains reach `needed`; of these, the smallest.

    Up to 25 items are enumerated. Above that, HiGHS solves an integer programme; if it reaches
    its limit, the result may not be optimal.

    Examples
    --------
    >>> gain, cost, size = np.array([0.4, 0.3, 0.1]), np.array([3.0, 2.0, 2.0]), np.ones(3)
    >>> cheapest_cover(gain, cost, size, needed=0.4).chosen
    array([ True, False, False])
    """
    if needed <= ROUNDING:
        return Cover(np.zeros(len(gain), dtype=np.bool_), True)
    if len(gain) <= MAX_ENUMERATED:
        return Cover(_enumerated(gain, cost, size, needed), True)
    return _programmed(gain, cost, size, needed)


def _enumerated(gain: Floats, cost: Floats, size: Floats, needed: float) -> Mask:
    """Return the best of all subsets: each subset of one half meets its best partner.

    The subsets of the second half are sorted by gain. Then the partners that gain enough are the
    last ones, and the best of the last ones is known for each position.
    """
    half = len(gain) // 2
    first, second = _subsets(half), _subsets(len(gain) - half)
    sums = [(first @ values[:half], second @ values[half:]) for values in (gain, cost, size)]
    (gain_1, gain_2), (cost_1, cost_2), (size_1, size_2) = sums
    by_gain = np.argsort(gain_2, kind="stable")
    rank = np.empty(len(second), dtype=np.intp)
    by_cost = np.lexsort([size_2, cost_2])
    rank[by_cost] = np.arange(len(second))
    best_of_last = by_cost[np.minimum.accumulate(rank[by_gain][::-1])[::-1]]
    position = np.searchsorted(gain_2[by_gain], needed - ROUNDING - gain_1)
    rows = np.flatnonzero(position < len(second))
    if not len(rows):  # the gains of all items are not enough
        return np.ones(len(gain), dtype=np.bool_)
    partner = best_of_last[position[rows]]
    total_cost, total_size = cost_1[rows] + cost_2[partner], size_1[rows] + size_2[partner]
    best = np.lexsort([total_size, total_cost])[0]
    return np.concatenate([first[rows[best]], second[partner[best]]]).astype(np.bool_)


def _subsets(n_items: int) -> NDArray[np.int8]:
    """Return all subsets, shape (2 ** n_items, n_items), as zeros and ones."""
    numbers = np.arange(1 << n_items)[:, None]
    return (numbers >> np.arange(n_items) & 1).astype(np.int8)


def _programmed(gain: Floats, cost: Floats, size: Floats, needed: float) -> Cover:
    """Return the solution of the integer programme; the greedy one where HiGHS has found none.

    Sizes only break ties of the cost, and only approximately: together they count a quarter of a
    step between two sums of costs. HiGHS stops half a step from its bound. So it proves the
    smallest cost where costs are whole numbers, with steps of 1; other costs have no smallest step.
    """
    greedy = greedy_cover(gain, cost, size, needed)
    step = 1.0 if (cost == np.round(cost)).all() else 1e-3 * cost[cost > 0].min()
    tie = 0.25 * step / max(size.sum(), 1.0)
    with without_debug_lines():
        solution = milp(
            cost + tie * size,
            integrality=np.ones(len(gain)),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(SCALE / needed * gain[None], lb=SCALE),
            options={
                "mip_rel_gap": 0.5 * step / max(cost @ greedy, step),
                "node_limit": MAX_NODES,
                "time_limit": MAX_SECONDS,
                # With presolving, HiGHS writes many lines of its own to the screen; else very few.
                "presolve": False,
            },
        )
    if solution.x is None:
        return Cover(greedy, False)
    chosen = solution.x > 0.5
    if gain[chosen].sum() < needed - ROUNDING:  # HiGHS rounds: add what is still needed
        others = np.flatnonzero(~chosen)
        missing = needed - gain[chosen].sum()
        chosen[others[greedy_cover(gain[others], cost[others], size[others], missing)]] = True
        return Cover(chosen, False)
    return Cover(chosen, solution.status == 0)
