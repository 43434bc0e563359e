"""Fewest changes under linear constraints on rates: soft changes, exact cuts (NumPy and SciPy).

The unknown is a direction w in standardised terms and a cut b; row i changes where
η_i = w·x_i + b > 0 (η = −r). Directions are found with soft changes p = sigmoid(η/T) by an
augmented Lagrangian whose temperature T is lowered; the cut is then found exactly, by going
through all of them, so that what is promised on the rows is counted and not approximated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.design import Design, blocks, unit
from commod._solvers.search.quasi_newton import Bounds, descend

__all__ = ["Direction", "Limits", "Rows", "anneal", "best_cut", "worth"]

Floats = NDArray[np.float64]
RIDGE = 1e-4  # keeps directions finite where the rows could be told apart perfectly
TOLERANCE = 1e-6  # relative: when a search at one temperature ends
SLACK = 1e-12  # rates are ratios of counts: equal ones may differ by rounding
LARGEST = 700.0  # the exponential of more is infinite
TIE = 1e-9  # of the range of w·x: rows closer than this cannot be told apart reliably
PREFIXES = 1 << 17  # looked at together at most
MANY, N_BINS = 1 << 18, 1 << 18  # rows too many to sort for a cut that need not be exact


@dataclass(frozen=True)
class Rows:
    """What a change of each row does; a row that may not change does nothing.

    `free` (n,): the row may change. `cost` (n,): what its change costs, 1/n for a plain count.
    The sums a change moves, whose values are `start` (K,) before any, are the rates of the cells,
    of which it moves that of its own `cell` (n,) by `step` (n,), and further ones by `extra`
    (E, n). A row in no cell has the number of cells as its own.
    """

    free: NDArray[np.bool_]
    cost: Floats
    cell: NDArray[np.integer]
    step: Floats
    extra: Floats
    start: Floats

    def __len__(self) -> int:
        return len(self.cost)

    @property
    def n_cells(self) -> int:
        """Return how many of the sums are rates of cells."""
        return len(self.start) - len(self.extra)

    def moved(self, p: Floats, rows: slice = slice(None)) -> Floats:
        """Return what changes of some rows by shares `p` add to the sums, shape (K,)."""
        weights = self.step[rows] * p
        counted = np.bincount(self.cell[rows], weights, minlength=self.n_cells + 1)
        rates = np.asarray(counted[:-1], dtype=np.float64)
        return np.concatenate([rates, self.extra[:, rows] @ p]) if len(self.extra) else rates

    def sums(self, changed: NDArray[np.bool_] | Floats) -> Floats:
        """Return the sums after changes by shares (n,), shape (K,)."""
        return self.start + sum(
            (self.moved(changed[rows].astype(float), rows) for rows in blocks(len(self))),
            np.zeros(len(self.start)),
        )

    def priced(self, prices: Floats, rows: slice = slice(None)) -> Floats:
        """Return what a change of each of some rows costs where the sums have prices (K,)."""
        by_cell = np.zeros(self.n_cells + 1)
        by_cell[:-1] = prices[: self.n_cells]
        each = by_cell.take(self.cell[rows])
        each *= self.step[rows]
        each += self.cost[rows]
        if len(self.extra):
            each += prices[self.n_cells :] @ self.extra[:, rows]
        return each


@dataclass(frozen=True)
class Limits:
    """Linear inequalities on the sums q: matrix @ q ≤ bound + share·θ, θ free.

    `share` lets two of them split an allowance (the gaps of equalized odds); zeros otherwise.
    The first `n_soft` are the target, which gives way to the others. `penalty` weighs a squared
    violation while changes are soft; the inverse of the first violation is the right size. Where
    the target is on a ratio of rates, the first `n_rates` sums are those rates.
    """

    matrix: Floats
    bound: Floats
    share: Floats
    n_soft: int
    penalty: float
    n_rates: int = 0


@dataclass(frozen=True)
class Direction:
    """A direction `w` (d,) with its exact cut: rows with w·x > −`offset` change.

    `cost` is that of the changes; `violation` the largest of the target's, 0 where it is met.
    """

    w: Floats
    offset: float
    cost: float
    violation: float

    def better_than(self, other: Direction | None) -> bool:
        """Return whether this one is closer to the target, or as close and cheaper."""
        if other is None:
            return True
        return (self.violation, self.cost) < (other.violation, other.cost)


# ---------------------------------------------------------------------------------------------
# The exact cut


def _prefixes(
    rows: Rows, order: NDArray[np.intp], size: int
) -> Iterator[tuple[int, Floats, Floats]]:
    """Yield blocks (first k, sums (K, m), costs (m,)) for k = 0, 1, … rows of `order` changed."""
    sums, cost = rows.start.copy(), 0.0
    yield 0, sums[:, None], np.zeros(1)
    for begin in range(0, len(order), size):
        block = order[begin : begin + size]
        moves = np.zeros((rows.n_cells + 1, len(block)))
        moves[rows.cell[block], np.arange(len(block))] = rows.step[block]
        moves = np.vstack([moves[:-1], rows.extra[:, block]]) if len(rows.extra) else moves[:-1]
        running = sums[:, None] + np.cumsum(moves, axis=1)
        costs = cost + np.cumsum(rows.cost[block])
        yield begin + 1, running, costs
        sums, cost = running[:, -1], float(costs[-1])


def _excess(limits: Limits, sums: Floats) -> tuple[Floats, Floats]:
    """Return by how much the target and the hard limits are exceeded at each prefix, both (m,)."""
    over = limits.matrix @ sums - limits.bound[:, None]
    split = limits.share != 0
    if split.any():  # the two gaps share an allowance: only their sum counts
        first = over[limits.share > 0].max(axis=0)
        second = over[limits.share < 0].max(axis=0)
        rest = over[: limits.n_soft][~split[: limits.n_soft]]
        soft = np.vstack([(first + second)[None], rest]).max(axis=0)
    else:
        soft = over[: limits.n_soft].max(axis=0, initial=-np.inf)
    if limits.n_rates:  # short in P-rule: between rates near zero every gap would look small
        highest = np.maximum(sums[: limits.n_rates].max(axis=0), SLACK)
        soft = np.where(soft > SLACK, soft / highest, soft)
    hard = over[limits.n_soft :].max(axis=0, initial=-np.inf)
    return soft, hard


def best_cut(
    rows: Rows, limits: Limits, eta: Floats, w: Floats, *, exact: bool = True
) -> Direction:
    """Return the cheapest cut of `eta` (n,) that keeps all limits, or comes closest to the target.

    Rows of equal η change together. Changing nobody is one of the cuts. Not `exact`, very many
    rows are not sorted: those whose η falls into the same small step of its range change together.
    """
    if not exact and np.count_nonzero(rows.free) > MANY:
        return _rounded_cut(rows, limits, eta, w)
    order = np.argsort(np.where(rows.free, -eta, np.inf))[: np.count_nonzero(rows.free)]
    sorted_eta = eta[order]
    tie = TIE * float(np.ptp(sorted_eta)) if len(order) else 0.0
    is_cut = np.concatenate([[True], sorted_eta[:-1] - sorted_eta[1:] > tie, [True]])
    is_cut = is_cut[: len(order) + 1]
    best = _cheapest(limits, _prefixes(rows, order, _n_prefixes(limits)), is_cut)
    if best is None:
        return Direction(w, _offset(sorted_eta, 0), 0.0, np.inf)
    return Direction(w, _offset(sorted_eta, best[2]), best[1], best[0])


def _rounded_cut(rows: Rows, limits: Limits, eta: Floats, w: Floats) -> Direction:
    """Return the best of the cuts between N_BINS steps of η."""
    few = eta[np.flatnonzero(rows.free)[:: -(-int(rows.free.sum()) // MANY)]]
    low, middle, high = np.quantile(few, (0.25, 0.5, 0.75)).tolist()
    spread = (high - low) or float(few.std()) or 1.0
    at = np.empty(len(eta), dtype=np.intp)
    for some in blocks(len(rows)):
        angle = np.arctan((middle - eta[some]) / spread)  # as fine in the tails as rows are there
        np.clip((angle / np.pi + 0.5) * N_BINS, 0, N_BINS - 1, out=at[some], casting="unsafe")
    costs = np.asarray(np.bincount(at, rows.cost, minlength=N_BINS), dtype=float)
    extra = [np.bincount(at, values, minlength=N_BINS) for values in rows.extra]
    for some in blocks(len(rows)):
        at[some] += rows.cell[some].astype(np.intp) * N_BINS
    n_cells = rows.n_cells
    rates = np.bincount(at, rows.step, minlength=(n_cells + 1) * N_BINS).reshape(-1, N_BINS)
    sums = np.vstack([rates[:n_cells], *extra])
    np.cumsum(sums, axis=1, out=sums)
    sums += rows.start[:, None]
    costs = np.cumsum(costs)
    size = _n_prefixes(limits)
    parts = [slice(begin, begin + size) for begin in range(0, N_BINS, size)]
    steps = [(1 + part.start, sums[:, part], costs[part]) for part in parts]
    nobody = (0, rows.start[:, None], np.zeros(1))
    best = _cheapest(limits, [nobody, *steps], np.ones(N_BINS + 1, dtype=bool))
    if best is None or best[2] == 0:
        return Direction(w, -(float(eta.max()) + 1.0), 0.0, np.inf if best is None else best[0])
    if best[2] == N_BINS:
        return Direction(w, -(float(eta.min()) - 1.0), best[1], best[0])
    cut = middle - spread * float(np.tan(np.pi * (best[2] / N_BINS - 0.5)))
    return Direction(w, -cut, best[1], best[0])


def _n_prefixes(limits: Limits) -> int:
    """Return how many prefixes are looked at together: fewer where there are many limits."""
    return max(1024, min(PREFIXES, 4 * PREFIXES // len(limits.bound)))


def _cheapest(
    limits: Limits, prefixes: Iterable[tuple[int, Floats, Floats]], is_cut: NDArray[np.bool_]
) -> tuple[float, float, int] | None:
    """Return violation, cost and number of the best prefix; None where hard limits allow none."""
    best: tuple[float, float, int] | None = None
    for first, sums, costs in prefixes:
        soft, hard = _excess(limits, sums)
        allowed = is_cut[first : first + len(costs)] & (hard <= SLACK)
        if not allowed.any():
            continue
        violation = np.where(soft <= SLACK, 0.0, soft)
        least = violation[allowed].min()
        ties = np.flatnonzero(allowed & (violation <= least))
        k = ties[np.argmin(costs[ties])]
        found = (float(least), float(costs[k]), first + int(k))
        if best is None or found[:2] < best[:2]:
            best = found
    return best


def _offset(sorted_eta: Floats, k: int) -> float:
    """Return −cut in the middle between the last row that changes and the first that does not."""
    if not len(sorted_eta):
        return 0.0
    if k == 0:
        return -(float(sorted_eta[0]) + 1.0)
    if k == len(sorted_eta):
        return -(float(sorted_eta[-1]) - 1.0)
    return -0.5 * float(sorted_eta[k - 1] + sorted_eta[k])


# ---------------------------------------------------------------------------------------------
# Soft changes


@dataclass(frozen=True)
class _Soft:
    """The augmented Lagrangian at one temperature; the unknowns are (w, b, θ).

    Rows are gone through twice, block by block: for the sums, and for the gradient once the sums
    are known. Only one number for each row is kept between.
    """

    design: Design
    rows: Rows
    limits: Limits
    temperature: float

    def changes(self, v: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of rows and by how much each of them changes, between 0 and 1."""
        prepared = self.design.prepare(v[:-2] / -self.temperature)
        for some in blocks(len(self.rows)):
            eta = self.design.part(prepared, some)
            eta -= v[-2] / self.temperature
            np.exp(np.minimum(eta, LARGEST, out=eta), out=eta)
            eta += 1.0
            yield some, np.divide(1.0, eta, out=eta)

    def violations(self, v: Floats) -> Floats:
        sums = self.rows.start.copy()
        for some, p in self.changes(v):
            sums += self.rows.moved(p, some)
        return self._over(sums, v)

    def _over(self, sums: Floats, v: Floats) -> Floats:
        return np.asarray(self.limits.matrix @ sums - self.limits.bound - self.limits.share * v[-1])

    def value_and_gradient(self, v: Floats, multipliers: Floats) -> tuple[float, Floats]:
        w, limits, rows = v[:-2], self.limits, self.rows
        sums, cost = rows.start.copy(), 0.0
        parts = []
        for some, p in self.changes(v):
            sums += rows.moved(p, some)
            cost += float(rows.cost[some] @ p)
            parts.append((some, p))
        force = np.maximum(0.0, multipliers + limits.penalty * self._over(sums, v))
        value = cost + (force @ force) / (2 * limits.penalty) + RIDGE / 2 * (w @ w)
        prices = limits.matrix.T @ force
        total, by_cut = self.design.nothing(), 0.0
        for some, p in parts:
            by_eta = rows.priced(prices, some)
            by_eta *= p
            by_eta *= np.subtract(1.0, p, out=p)
            by_cut += float(by_eta.sum())
            self.design.add(total, by_eta, some)
        slope = self.design.gather(total) / self.temperature + RIDGE * w
        ends = [by_cut / self.temperature, float(-limits.share @ force)]
        return float(value), np.concatenate([slope, ends])


def _first_multipliers(soft: _Soft, v: Floats) -> Floats:
    """Return multipliers at which moving the cut neither pays nor costs.

    Started at zero, the Lagrangian would first undo every change.
    """
    rows, limits = soft.rows, soft.limits
    price, sums, gain = 0.0, rows.start.copy(), np.zeros(len(rows.start))
    for some, p in soft.changes(v):
        layer = p * (1 - p)
        price += float(rows.cost[some] @ layer)
        sums += rows.moved(p, some)
        gain += rows.moved(layer, some)
    over = soft._over(sums, v)
    pull = -(limits.matrix @ gain)  # what a step of the cut gains
    useful = (pull > 0) & (over >= over[: limits.n_soft].max(initial=-np.inf) - 0.05)
    multipliers = np.zeros(len(over))
    if useful.any():
        multipliers[useful] = min(price / float(pull[useful].sum()), 20.0)
    return multipliers


def worth(
    design: Design, rows: Rows, limits: Limits, direction: Direction, temperature: float = 0.1
) -> tuple[Floats, float]:
    """Return what changing each row is worth at the cut, shape (n,), and the price of the target.

    Changing a row costs its own cost and, at the price of the target, what it does to the rates;
    negative: it pays. The price is what one more unit of the tightest limit costs, from moving the
    cut a little; NaN where that gains nothing, as with nobody to change.
    """
    spread = float(design.times(direction.w).std())
    spread = spread if spread > 0 else 1.0
    v = np.concatenate([direction.w, [direction.offset, 0.0]]) / spread
    multipliers = _first_multipliers(_Soft(design, rows, limits, temperature), v)
    value = rows.priced(limits.matrix.T @ multipliers)
    return value, float(multipliers.max()) if multipliers.any() else float("nan")


def anneal(
    design: Design,
    rows: Rows,
    limits: Limits,
    w: Floats,
    *,
    temperatures: Sequence[float],
    bounds: Bounds | None = None,
    n_steps: int = 25,
) -> Direction:
    """Return the best direction seen while the temperature is lowered from a first one.

    Parameters
    ----------
    design, rows, limits
        The problem, n rows and d columns.
    w : ndarray of shape (d,)
        Where to begin; its cut is found first.
    temperatures : sequence of float
        In standard deviations of w·x, from high to low.
    bounds : sequence of (low, high) of length d, default=None
        Of each weight; None is free.
    n_steps : int
        Quasi-Newton steps at most before the multipliers are set anew.
    """
    w = unit(design, w)
    best = current = best_cut(rows, limits, design.times(w), w, exact=False)
    box = None if bounds is None else [*bounds, (None, None), (None, None)]
    # one limit has its price from the first; what several are worth shows after an attempt
    n_rounds = 1 if rows.n_cells <= 2 and len(limits.bound) == limits.n_soft else 2
    for temperature in temperatures:
        soft = _Soft(design, rows, limits, temperature)
        v = np.concatenate([current.w, [current.offset, _fair_split(soft, current)]])
        multipliers = _first_multipliers(soft, v)
        for i in range(n_rounds):
            if i:
                multipliers = np.maximum(0.0, multipliers + limits.penalty * soft.violations(v))
            v = descend(
                partial(soft.value_and_gradient, multipliers=multipliers),
                v,
                n_steps=n_steps,
                tolerance=TOLERANCE,
                bounds=box,
            )
        w = unit(design, v[:-2])
        current = best_cut(rows, limits, design.times(w), w, exact=False)
        if current.better_than(best):
            best = current
    return best


def _fair_split(soft: _Soft, direction: Direction) -> float:
    """Return the θ at which two gaps that share an allowance exceed it alike."""
    split = soft.limits.share != 0
    if not split.any():
        return 0.0
    v = np.concatenate([direction.w, [direction.offset, 0.0]])
    over = soft.violations(v)
    first = over[soft.limits.share > 0].max()
    second = over[soft.limits.share < 0].max()
    return float(first - second) / 2
