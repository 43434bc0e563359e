"""Fewest changes under linear constraints on rates: soft changes, exact cuts (NumPy and SciPy).

The unknown is a direction w in standardised terms and a cut b; row i changes where
η_i = w·x_i + b > 0 (η = −r). Directions are found with soft changes p = sigmoid(η/T) by an
augmented Lagrangian whose temperature T is lowered; the cut is then found exactly, by going
through all of them, so that what is promised on the rows is counted and not approximated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

from commod._encoding import TermTable

__all__ = [
    "Bounds",
    "Design",
    "Direction",
    "Limits",
    "Rows",
    "anneal",
    "best_cut",
    "unit",
    "worth",
]

Floats = NDArray[np.float64]
Bounds = Sequence[tuple[float | None, float | None]]

RIDGE = 1e-4  # keeps directions finite where the rows could be told apart perfectly
SLACK = 1e-12  # rates are ratios of counts: equal ones may differ by rounding
TIE = 1e-9  # of the range of w·x: rows closer than this cannot be told apart reliably
BLOCK = 1 << 17  # prefixes looked at together


@dataclass(frozen=True)
class Design:
    """Standardised terms of n rows: dense numbers (n, p) beside sparse categories (n, c).

    `terms` (d,) says which term each column of the design is. Categories are scaled, not centred:
    the cut takes up the difference and the matrix stays sparse.
    """

    numeric: Floats
    present: sparse.csr_array
    terms: NDArray[np.intp]

    @classmethod
    def of(cls, table: TermTable, mean: Floats, scale: Floats) -> Design:
        """Return the design of a table; terms without spread are left out."""
        numeric_terms = table.numeric_terms[scale[table.numeric_terms] > 0]
        keep = np.isin(table.numeric_terms, numeric_terms)
        numeric = (table.numeric[:, keep] - mean[numeric_terms]) / scale[numeric_terms]
        others = np.setdiff1d(np.flatnonzero(scale > 0), table.numeric_terms)
        position = np.full(table.n_terms + 1, -1)
        position[others] = np.arange(len(others))
        columns = position[table.codes]
        known = columns >= 0
        entries = columns[known]
        starts = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        values = 1 / scale[others][entries]
        shape = (len(table), len(others))
        present = sparse.csr_array((values, entries, starts), shape=shape)
        return cls(numeric, present, np.concatenate([numeric_terms, others]))

    def __len__(self) -> int:
        return len(self.numeric)

    @property
    def width(self) -> int:
        """Return d, the number of columns."""
        return len(self.terms)

    def times(self, w: Floats) -> Floats:
        """Return the weighted sum of the columns for each row, shape (n,)."""
        p = self.numeric.shape[1]
        total = self.numeric @ w[:p]
        if p < self.width:
            total += self.present @ w[p:]
        return total

    def gradient(self, g: Floats) -> Floats:
        """Return the sum of the rows weighted by `g` (n,), shape (d,)."""
        numeric = self.numeric.T @ g
        if len(numeric) == self.width:
            return numeric
        return np.concatenate([numeric, self._present_t @ g])

    @cached_property
    def _present_t(self) -> sparse.csc_array:
        return self.present.T

    def columns(self, keep: NDArray[np.bool_]) -> Design:
        """Return the design with the columns where `keep` (d,) is true."""
        p = self.numeric.shape[1]
        return Design(
            np.ascontiguousarray(self.numeric[:, keep[:p]]),
            self.present[:, np.flatnonzero(keep[p:])],
            self.terms[keep],
        )

    def rows(self, index: NDArray[np.intp]) -> Design:
        """Return the design of some rows."""
        return replace(self, numeric=self.numeric[index], present=self.present[index])


@dataclass(frozen=True)
class Rows:
    """What a change of each row does.

    `free` (n,): the row may change. `cost` (n,): what its change costs, 1/n for a plain count.
    `effects` (K, n): what its change adds to each of K sums (rates of cells, accuracy, volume)
    whose values are `start` (K,) before any change.
    """

    free: NDArray[np.bool_]
    cost: Floats
    effects: sparse.csr_array
    start: Floats

    @cached_property
    def effects_t(self) -> sparse.csc_array:
        """Return `effects` the other way round, (n, K): made once, used in every step."""
        return self.effects.T


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


def _prefixes(rows: Rows, order: NDArray[np.intp]) -> Iterator[tuple[int, Floats, Floats]]:
    """Yield blocks (first k, sums (K, m), costs (m,)) for k = 0, 1, … rows of `order` changed."""
    sums, cost = rows.start.copy(), 0.0
    yield 0, sums[:, None], np.zeros(1)
    for begin in range(0, len(order), BLOCK):
        block = order[begin : begin + BLOCK]
        running = sums[:, None] + np.cumsum(rows.effects[:, block].toarray(), axis=1)
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


def best_cut(rows: Rows, limits: Limits, eta: Floats, w: Floats) -> Direction:
    """Return the cheapest cut of `eta` (n,) that keeps all limits, or comes closest to the target.

    Rows of equal η change together. Changing nobody is one of the cuts.
    """
    free = np.flatnonzero(rows.free)
    order = free[np.argsort(-eta[free], kind="stable")]
    sorted_eta = eta[order]
    tie = TIE * float(np.ptp(sorted_eta)) if len(order) else 0.0
    is_cut = np.concatenate([[True], sorted_eta[:-1] - sorted_eta[1:] > tie, [True]])
    is_cut = is_cut[: len(order) + 1]
    best: tuple[float, float, int] | None = None
    for first, sums, costs in _prefixes(rows, order):
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
    if best is None:
        return Direction(w, _offset(sorted_eta, 0), 0.0, np.inf)
    return Direction(w, _offset(sorted_eta, best[2]), best[1], best[0])


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
    """The augmented Lagrangian at one temperature; the unknowns are (w, b, θ)."""

    design: Design
    rows: Rows
    limits: Limits
    temperature: float

    def sums(self, v: Floats) -> Floats:
        eta = self.design.times(v[:-2]) + v[-2]
        p = expit(eta / self.temperature) * self.rows.free
        return np.asarray(self.rows.start + self.rows.effects @ p)

    def violations(self, v: Floats) -> Floats:
        over = self.limits.matrix @ self.sums(v) - self.limits.bound - self.limits.share * v[-1]
        return np.asarray(over)

    def value_and_gradient(self, v: Floats, multipliers: Floats) -> tuple[float, Floats]:
        w = v[:-2]
        s = expit((self.design.times(w) + v[-2]) / self.temperature)
        p = s * self.rows.free
        q = self.rows.start + self.rows.effects @ p
        over = self.limits.matrix @ q - self.limits.bound - self.limits.share * v[-1]
        force = np.maximum(0.0, multipliers + self.limits.penalty * over)
        value = self.rows.cost @ p + (force @ force) / (2 * self.limits.penalty)
        value += RIDGE / 2 * (w @ w)
        by_change = self.rows.cost + self.rows.effects_t @ (self.limits.matrix.T @ force)
        by_eta = by_change * p * (1 - s) / self.temperature
        gradient = np.concatenate(
            [
                self.design.gradient(by_eta) + RIDGE * w,
                [by_eta.sum(), -self.limits.share @ force],
            ]
        )
        return float(value), gradient


def _first_multipliers(soft: _Soft, v: Floats) -> Floats:
    """Return multipliers at which moving the cut neither pays nor costs.

    Started at zero, the Lagrangian would first undo every change.
    """
    eta = soft.design.times(v[:-2]) + v[-2]
    s = expit(eta / soft.temperature)
    layer = s * (1 - s) * soft.rows.free
    price = float(soft.rows.cost @ layer)
    over = soft.violations(v)
    pull = -(soft.limits.matrix @ (soft.rows.effects @ layer))  # what a step of the cut gains
    useful = (pull > 0) & (over >= over[: soft.limits.n_soft].max(initial=-np.inf) - 0.05)
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
    value = rows.cost + rows.effects_t @ (limits.matrix.T @ multipliers)
    return np.asarray(value), float(multipliers.max()) if multipliers.any() else float("nan")


def unit(design: Design, w: Floats) -> Floats:
    """Return w scaled so that w·x has standard deviation 1 over the rows."""
    spread = float(design.times(w).std())
    return w / spread if spread > 0 else w


def anneal(
    design: Design,
    rows: Rows,
    limits: Limits,
    w: Floats,
    *,
    temperatures: Sequence[float],
    bounds: Bounds | None = None,
    n_rounds: int = 2,
    n_steps: int = 40,
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
    n_rounds, n_steps : int
        Updates of the multipliers, and quasi-Newton steps in each, per temperature.
    """
    w = unit(design, w)
    best = current = best_cut(rows, limits, design.times(w), w)
    box = None if bounds is None else [*bounds, (None, None), (None, None)]
    for temperature in temperatures:
        soft = _Soft(design, rows, limits, temperature)
        v = np.concatenate([current.w, [current.offset, _fair_split(soft, current)]])
        multipliers = _first_multipliers(soft, v)
        for _ in range(n_rounds):
            v = minimize(
                soft.value_and_gradient,
                v,
                args=(multipliers,),
                jac=True,
                method="L-BFGS-B",
                bounds=box,
                options={"maxiter": n_steps, "ftol": 1e-6},
            ).x
            multipliers = np.maximum(0.0, multipliers + limits.penalty * soft.violations(v))
        w = unit(design, v[:-2])
        current = best_cut(rows, limits, design.times(w), w)
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
