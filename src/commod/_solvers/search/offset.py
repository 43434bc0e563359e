"""Find the exact offset of a direction: the cheapest one that keeps all inequalities.

Row i changes where w·x_i + offset > 0. All offsets are tried, in the order of w·x, so that costs
and violations are counted and not approximated. Within a search on very many rows, only the
boundaries between bins of w·x are tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.design import row_blocks
from commod._solvers.search.rates import ChangeEffects, SumInequalities

Floats = NDArray[np.float64]
Index = NDArray[np.intp]
# for consecutive prefixes of the rows: the first number of rows, sums (K, m), costs (m,)
PrefixBlock = tuple[int, Floats, Floats]

DIGITS = 12  # of a violation
ROUNDING = 10.0**-DIGITS  # rates are ratios of counts: equal ones may differ by rounding
TIE = 1e-9  # rows whose w·x differs by less than this share of its range change together
MAX_PREFIXES = 1 << 17  # prefixes examined together
MAX_SORTED_ROWS = 1 << 18  # an offset that need not be exact does not sort more rows than this
N_BINS = 1 << 18  # bins of w·x that replace sorting
HEADS = (8, 2)  # parts of very many rows to try first: most updates change few of them


@dataclass(frozen=True)
class Direction:
    """A direction `w` (d,) and its offset: rows with w·x + `offset` > 0 change.

    `cost` is the cost of these changes. `violation` is by how much the target is missed, 0 where
    it is reached.
    """

    w: Floats
    offset: float
    cost: float
    violation: float

    @property
    def rank(self) -> tuple[float, float]:
        """Return what directions are compared by, best first: violation, then cost."""
        return self.violation, self.cost

    def better_than(self, other: Direction) -> bool:
        """Return whether this direction is closer to the target, or as close and cheaper."""
        return self.rank < other.rank


def best_offset(
    effects: ChangeEffects,
    inequalities: SumInequalities,
    eta: Floats,
    w: Floats,
    *,
    exact: bool = True,
) -> Direction:
    """Return `w` with the cheapest offset of `eta` = w·x (n,) that keeps all inequalities.

    Where no offset reaches the target, the one that comes closest is returned. Rows of equal η
    change together. Changing nobody is one of the offsets. Where the offset need not be `exact`
    and rows are many, η is put into bins instead of being sorted.
    """
    n_rows = int(np.count_nonzero(effects.may_change))
    if not exact and n_rows > MAX_SORTED_ROWS:
        return _binned_offset(effects, inequalities, eta, w)
    if n_rows > MAX_SORTED_ROWS and (effects.cost >= 0).all():
        rows = np.flatnonzero(effects.may_change)
        tie = TIE * float(np.ptp(eta[rows]))
        for share in HEADS:
            head = _highest(eta, rows, n_rows // share)
            best = _sorted_offset(effects, inequalities, eta, w, head, tie, is_whole=False)
            if len(head) and best.violation == 0:
                return best
    order = np.argsort(np.where(effects.may_change, -eta, np.inf))[:n_rows]
    tie = TIE * float(np.ptp(eta[order])) if n_rows else 0.0
    return _sorted_offset(effects, inequalities, eta, w, order, tie)


def _highest(eta: Floats, rows: Index, n_highest: int) -> Index:
    """Return those of `rows` (m,) with the highest η, highest first."""
    head = rows[np.argpartition(-eta[rows], n_highest)[:n_highest]]
    return np.asarray(head[np.argsort(-eta[head])])


def _sorted_offset(
    effects: ChangeEffects,
    inequalities: SumInequalities,
    eta: Floats,
    w: Floats,
    order: Index,
    tie: float,
    *,
    is_whole: bool = True,
) -> Direction:
    """Return the best of the offsets between rows of `order` (m,), highest η first.

    Rows that differ by at most `tie` change together. Where other rows that may change have a
    lower η, the order is not `is_whole`: changing all of its rows is then none of the offsets.
    """
    sorted_eta = eta[order]
    gaps = sorted_eta[:-1] - sorted_eta[1:] > tie
    is_offset = np.concatenate([[True], gaps, [is_whole]])[: len(order) + 1]
    prefixes = _prefixes(effects, order, _n_prefixes(inequalities))
    is_rising = bool((effects.cost[order] >= 0).all())
    violation, cost, k = _cheapest(inequalities, prefixes, is_offset, is_rising=is_rising)
    return Direction(w, _offset_after(sorted_eta, k), cost, violation)


def _prefixes(effects: ChangeEffects, order: Index, size: int) -> Iterator[PrefixBlock]:
    """Yield blocks of prefixes: the first k = 0, 1, … rows of `order` change."""
    sums, cost = effects.base_sums.copy(), 0.0
    yield 0, sums[:, None], np.zeros(1)
    for begin in range(0, len(order), size):
        block = order[begin : begin + size]
        moves = np.vstack([effects.rate_steps(block), effects.extra[:, block]])
        running = sums[:, None] + np.cumsum(moves, axis=1)
        costs = cost + np.cumsum(effects.cost[block])
        yield begin + 1, running, costs
        sums, cost = running[:, -1], float(costs[-1])


def _n_prefixes(inequalities: SumInequalities) -> int:
    """Return how many prefixes are examined together: fewer where there are many inequalities."""
    return max(1024, min(MAX_PREFIXES, 4 * MAX_PREFIXES // len(inequalities.bound)))


def _cheapest(
    inequalities: SumInequalities,
    prefixes: Iterable[PrefixBlock],
    is_offset: NDArray[np.bool_],
    *,
    is_rising: bool,
) -> tuple[float, float, int]:
    """Return violation, cost and number of the best prefix.

    Where the caps allow none, that is prefix 0 with an infinite violation. Where no change has a
    negative cost, costs are rising: no prefix after one that reaches the target is cheaper.
    """
    best = (float("inf"), 0.0, 0)
    for first, sums, costs in prefixes:
        soft, hard = exceeded(inequalities, sums)
        allowed = is_offset[first : first + len(costs)] & (hard <= ROUNDING)
        if not allowed.any():
            continue
        # Rounded: of offsets that miss the target equally, the cheapest must win.
        violation = np.where(soft <= ROUNDING, 0.0, soft).round(DIGITS)
        least = violation[allowed].min()
        ties = np.flatnonzero(allowed & (violation <= least))
        k = ties[np.argmin(costs[ties])]
        best = min(best, (float(least), float(costs[k]), first + int(k)), key=lambda p: p[:2])
        if is_rising and best[0] == 0:
            break
    return best


def exceeded(inequalities: SumInequalities, sums: Floats) -> tuple[Floats, Floats]:
    """Return by how much target and caps are exceeded at each column of `sums`, both (m,)."""
    target = np.full(sums.shape[1], -np.inf)
    for required in inequalities.requirements:
        np.maximum(target, required.excess(sums), out=target)
    n_soft = inequalities.n_soft
    caps = inequalities.matrix[n_soft:] @ sums - inequalities.bound[n_soft:, None]
    return target, caps.max(axis=0, initial=-np.inf)


def _offset_after(sorted_eta: Floats, k: int) -> float:
    """Return the offset at which the first k rows change: midway between rows k − 1 and k."""
    if not len(sorted_eta):
        return 0.0
    if k == 0:
        return -(float(sorted_eta[0]) + 1.0)
    if k == len(sorted_eta):
        return -(float(sorted_eta[-1]) - 1.0)
    return -0.5 * float(sorted_eta[k - 1] + sorted_eta[k])


# ---------------------------------------------------------------------------------------------
# Bins instead of sorting


def _binned_offset(
    effects: ChangeEffects, inequalities: SumInequalities, eta: Floats, w: Floats
) -> Direction:
    """Return the best of the offsets between N_BINS bins of η, highest η first."""
    middle, spread = _centre_and_spread(effects, eta)
    bins = np.empty(len(eta), dtype=np.intp)
    for rows in row_blocks(len(effects)):
        angle = np.arctan((middle - eta[rows]) / spread)  # bins in the tails are as full as others
        np.clip((angle / np.pi + 0.5) * N_BINS, 0, N_BINS - 1, out=bins[rows], casting="unsafe")
    prefixes = _bin_prefixes(effects, bins, _n_prefixes(inequalities))
    is_offset, is_rising = np.ones(N_BINS + 1, dtype=bool), bool((effects.cost >= 0).all())
    violation, cost, k = _cheapest(inequalities, prefixes, is_offset, is_rising=is_rising)
    if 0 < k < N_BINS:
        boundary = middle - spread * float(np.tan(np.pi * (k / N_BINS - 0.5)))
        return Direction(w, -boundary, cost, violation)
    extremes = np.array([eta.max(), eta.min()])
    return Direction(w, _offset_after(extremes, min(k, len(extremes))), cost, violation)


def _centre_and_spread(effects: ChangeEffects, eta: Floats) -> tuple[float, float]:
    """Return median and interquartile range of η over rows that may change (a part of many)."""
    rows = np.flatnonzero(effects.may_change)
    values = eta[rows[:: -(-len(rows) // MAX_SORTED_ROWS)]]
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75)).tolist()
    return middle, (high - low) or float(values.std()) or 1.0


def _bin_prefixes(effects: ChangeEffects, bins: Index, size: int) -> Iterator[PrefixBlock]:
    """Yield blocks as `_prefixes` does for k = 0, 1, … bins changed; `bins` is overwritten."""
    costs = np.cumsum(np.asarray(np.bincount(bins, effects.cost, minlength=N_BINS), dtype=float))
    extra = [np.bincount(bins, values, minlength=N_BINS) for values in effects.extra]
    sums = np.vstack([_bin_rates(effects, bins), *extra])
    np.cumsum(sums, axis=1, out=sums)
    sums += effects.base_sums[:, None]
    yield 0, effects.base_sums[:, None], np.zeros(1)
    for begin in range(0, N_BINS, size):
        part = slice(begin, begin + size)
        yield begin + 1, sums[:, part], costs[part]


def _bin_rates(effects: ChangeEffects, bins: Index) -> Floats:
    """Return by how much all rows of each bin move each rate, (n_cells, N_BINS)."""
    if effects.soft_step is not None:
        return _soft_bin_rates(effects, effects.soft_step, bins)
    for rows in row_blocks(len(effects)):
        bins[rows] += effects.cell[rows].astype(np.intp) * N_BINS
    size = (effects.n_cells + 1) * N_BINS
    rates = np.bincount(bins, effects.step, minlength=size).reshape(-1, N_BINS)
    return np.asarray(rates[:-1], dtype=np.float64)


def _soft_bin_rates(effects: ChangeEffects, steps: Floats, bins: Index) -> Floats:
    """Return by how much all rows of each bin are expected to move each rate, (n_cells, N_BINS)."""
    if effects.stratum is not None:
        bins = bins + effects.stratum * N_BINS
    n_strata = effects.n_cells // len(steps)
    rates = [np.bincount(bins, step, minlength=n_strata * N_BINS) for step in steps]
    by_stratum = np.stack([rate.reshape(n_strata, N_BINS) for rate in rates], axis=1)
    return np.asarray(by_stratum.reshape(effects.n_cells, N_BINS), dtype=np.float64)
