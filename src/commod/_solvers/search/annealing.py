"""Search for the direction with the fewest changes that reaches a target.

The unknowns are a direction w in standardised terms and an offset b; row i changes where
η_i = w·x_i + b > 0 (η = −r). The search has three steps:

1. Replace changes by soft changes p = sigmoid(η / T), which have a gradient.
2. Minimise their cost under the inequalities with an augmented Lagrangian, and lower the
   temperature T.
3. At every temperature, determine the best offset by counting and keep the best direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.design import Design, row_blocks, unit_spread
from commod._solvers.search.initial_direction import initial_direction
from commod._solvers.search.offset import Direction, best_offset
from commod._solvers.search.quasi_newton import Bounds, descend
from commod._solvers.search.rates import ChangeEffects, SumInequalities

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

RIDGE = 1e-4  # keeps directions finite where the terms separate the rows perfectly
TOLERANCE = 1e-6  # relative fall of the objective at which a search at one temperature ends
MAX_EXPONENT = 700.0  # the exponential of more is infinite
MAX_FIRST_MULTIPLIER = 20.0  # an inequality that changes hardly help would get a huge price
# Temperatures are standard deviations of w·x; steps are between two updates of the multipliers.
FULL_TEMPERATURES, N_STEPS_FULL = (0.5, 0.35, 0.25, 0.18, 0.12, 0.09, 0.06, 0.04), 50
SHORT_TEMPERATURES, N_STEPS_SHORT = (0.25, 0.12, 0.06), 25
RESTART_FACTOR = 2.0  # times the exact limit: with more changes, the search begins again
PRICING_TEMPERATURE = 0.1  # at which the cost of a limit is measured


class LearningRows(NamedTuple):
    """The rows that initial directions are learned from: more of them mean less noise.

    `design` has the columns of the task, `worth_changing` a mask for each way to begin, and
    `weight` the weight of each row.
    """

    design: Design
    worth_changing: Sequence[Mask]
    weight: Floats


@dataclass(frozen=True)
class SearchTask:
    """The task of one search, on n rows and d terms (the columns of the design).

    - `columns` (d,): the raw column of each column of the design.
    - `weight` (n,): the weight of each row in the initial direction.
    - `worth_changing`: masks (n,) of rows worth changing, one for each way to begin.
    - `bounds`: the bounds of each of the d weights, or None.
    - `sparsity`: extra changes allowed for a shorter scorecard, as a share of the fewest.
    - `credibility` (d,): the share of its weight that each term keeps after the search; None for 1.
    - `limit`: the smallest share of changes that any method needs; 0 where it is not known.
    - `restart_factor`: times the limit; with more changes, the search begins again.
    - `learning`: the rows that initial directions are learned from; None for those of the task.
    - `known`: the share of changes of another direction; a search that needs more ends early.
    - `reads` (d,): which columns read the score; None for none of them. Initial directions are
      learned without these columns, which then get the weight `read_weight`.
    - `pinned` (n,): what terms with fixed points add to η, None for no such lines. The unit of η
      is then theirs, so directions are not scaled.
    - `max_lines`: the most columns with weights; None for any number.
    """

    design: Design
    effects: ChangeEffects
    inequalities: SumInequalities
    columns: NDArray[np.intp]
    weight: Floats
    worth_changing: Sequence[Mask]
    bounds: Bounds | None
    sparsity: float
    credibility: Floats | None = None
    limit: float = 0.0
    restart_factor: float = RESTART_FACTOR
    learning: LearningRows | None = None
    known: float = np.inf
    reads: Mask | None = None
    read_weight: float = 0.0
    pinned: Floats | None = None
    max_lines: int | None = None

    @property
    def reads_score(self) -> Mask:
        """Return which columns read the score, (d,)."""
        return np.zeros(self.design.width, dtype=bool) if self.reads is None else self.reads

    @property
    def learning_rows(self) -> LearningRows:
        """Return the rows that initial directions are learned from."""
        return self.learning or LearningRows(self.design, self.worth_changing, self.weight)

    def select(self, support: Mask) -> SearchTask:
        """Return the task with the columns of the design where `support` (d,) is true."""
        learning = self.learning
        if learning is not None:
            learning = learning._replace(design=learning.design.select(support))
        return replace(
            self,
            design=self.design.select(support),
            columns=self.columns[support],
            bounds=self.bounds and list(compress(self.bounds, support)),
            credibility=None if self.credibility is None else self.credibility[support],
            reads=None if self.reads is None else self.reads[support],
            learning=learning,
        )

    def with_offset(self, w: Floats) -> Direction:
        """Return the direction `w` (d,) with its best offset."""
        eta, acts = self.design.times(w), bool(w.any())
        if self.pinned is not None:
            eta, acts = eta + self.pinned, acts or bool(self.pinned.any())
        effects = self.effects if acts else self.effects.of_nobody()
        return best_offset(effects, self.inequalities, eta, w, exact=False)

    def normalised(self, w: Floats) -> Floats:
        """Return `w` (d,) with spread 1 on the rows; as it is where some points are fixed."""
        return unit_spread(self.design, w) if self.pinned is None else w

    def unit_columns(self, w: Floats) -> Floats:
        """Return `w` (d,) scaled so that the columns that do not read the score have spread 1."""
        if self.reads is None:
            return unit_spread(self.design, w)
        spread = float(self.design.times(np.where(self.reads, 0.0, w)).std())
        return w / spread if spread > 0 else w

    def initial_direction(self, i: int, start: Floats | None = None) -> Floats:
        """Return the initial direction for the i-th way to begin, shape (d,)."""
        if self.reads is not None:
            direction = np.where(self.reads, self.read_weight, 0.0)
            others = replace(self.select(~self.reads), reads=None)
            start = None if start is None else start[~self.reads]
            direction[~self.reads] = others.initial_direction(i, start)
            return direction
        rows = self.learning_rows
        mask = rows.worth_changing[i]
        w = initial_direction(rows.design, mask, rows.weight, bounds=self.bounds, start=start)
        return unit_spread(self.design, w)

    def best_initial_direction(self, start: Floats | None = None) -> tuple[Floats, int]:
        """Return the initial direction that comes closest by itself, (d,), and its number."""
        n_ways = len(self.worth_changing)
        candidates = [self.with_offset(self.initial_direction(i, start)) for i in range(n_ways)]
        i = min(range(n_ways), key=lambda i: candidates[i].rank)
        return candidates[i].w, i


@dataclass(frozen=True)
class _SoftObjective:
    """The augmented Lagrangian at one temperature; its unknowns v are (w, b, θ).

    w has one weight per column of the design, and θ one entry per pair of gaps that share an
    allowance.

    Each evaluation passes through the rows twice, block by block: once for the sums, and once for
    the gradient, which needs the sums. Only one number per row is kept in between.
    """

    task: SearchTask
    temperature: float

    def soft_changes(self, v: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of rows and by how much each row changes, between 0 and 1."""
        design = self.task.design
        prepared = design.prepare(v[: design.width] / -self.temperature)
        for rows in row_blocks(len(design)):
            eta = design.weighted_sums(prepared, rows)
            eta -= v[design.width] / self.temperature
            if self.task.pinned is not None:
                eta -= self.task.pinned[rows] / self.temperature
            np.exp(np.minimum(eta, MAX_EXPONENT, out=eta), out=eta)
            eta += 1.0
            yield rows, np.divide(1.0, eta, out=eta)

    def violations(self, v: Floats) -> Floats:
        """Return by how much soft changes exceed each limit, negative where they keep it."""
        return self._violations_at(self.sums(v), v)

    def sums(self, v: Floats) -> Floats:
        """Return the sums after soft changes, shape (K,)."""
        effects = self.task.effects
        sums = effects.base_sums.copy()
        for rows, p in self.soft_changes(v):
            sums += effects.added(p, rows)
        return sums

    def _violations_at(self, sums: Floats, v: Floats) -> Floats:
        inequalities, theta = self.task.inequalities, v[self.task.design.width + 1 :]
        return np.asarray(
            inequalities.matrix @ sums - inequalities.bound - inequalities.split @ theta
        )

    def value_and_gradient(self, v: Floats, multipliers: Floats) -> tuple[float, Floats]:
        """Return the objective and its gradient, the shape of `v`."""
        design = self.task.design
        w = v[: design.width]
        effects, inequalities = self.task.effects, self.task.inequalities
        sums, cost = effects.base_sums.copy(), 0.0
        blocks = []
        for rows, p in self.soft_changes(v):
            sums += effects.added(p, rows)
            cost += float(effects.cost[rows] @ p)
            blocks.append((rows, p))
        force = np.maximum(0.0, multipliers + inequalities.penalty * self._violations_at(sums, v))
        value = cost + (force @ force) / (2 * inequalities.penalty) + RIDGE / 2 * (w @ w)
        prices = inequalities.matrix.T @ force
        totals, by_offset = design.zero_totals(), 0.0
        for rows, p in blocks:
            by_eta = effects.costs_at(prices, rows)
            by_eta *= p
            by_eta *= np.subtract(1.0, p, out=p)
            by_offset += float(by_eta.sum())
            design.add_to_totals(totals, by_eta, rows)
        gradient = np.empty(len(v))
        gradient[: len(w)] = design.gradient_from(totals) / self.temperature + RIDGE * w
        gradient[len(w)] = by_offset / self.temperature
        gradient[len(w) + 1 :] = -(force @ inequalities.split)
        return float(value), gradient

    def first_multipliers(self, v: Floats) -> Floats:
        """Return multipliers at which a small move of the offset neither gains nor loses.

        Multipliers of zero would make the search undo every change first.
        """
        effects, inequalities = self.task.effects, self.task.inequalities
        price, sums = 0.0, effects.base_sums.copy()
        gain = np.zeros(len(sums))
        for rows, p in self.soft_changes(v):
            slope = p * (1 - p)
            price += float(effects.cost[rows] @ slope)
            sums += effects.added(p, rows)
            gain += effects.added(slope, rows)
        violations = self._violations_at(sums, v)
        helped = -(
            inequalities.matrix @ gain
        )  # by how much a move of the offset relieves each limit
        largest = violations[: inequalities.n_soft].max(initial=-np.inf)
        is_priced = (helped > 0) & (violations >= largest - 0.05)
        multipliers = np.zeros(len(violations))
        if is_priced.any():
            price /= float(helped[is_priced].sum())
            multipliers[is_priced] = min(price, MAX_FIRST_MULTIPLIER)
        return multipliers

    def even_split(self, v: Floats) -> Floats:
        """Return the θ at which two gaps that share an allowance exceed it equally, (T,)."""
        split = self.task.inequalities.split
        if not split.shape[1]:
            return np.zeros(0)
        violations = self.violations(v)[:, None]
        first, second = (
            np.where(sign * split > 0, violations, -np.inf).max(axis=0) for sign in (1, -1)
        )
        return np.asarray((first - second) / 2)


def first_prices(task: SearchTask, direction: Direction) -> Floats:
    """Return the cost of one more unit of each limit, from a small move of the offset, shape (K,).

    Only the tightest limits have a price; all are 0 where a move gains nothing.
    """
    spread = float(task.design.times(direction.w).std())
    spread = spread if spread > 0 else 1.0
    v = _unknowns(task, direction) / spread
    return _SoftObjective(task, PRICING_TEMPERATURE).first_multipliers(v)


def _unknowns(task: SearchTask, direction: Direction) -> Floats:
    """Return the unknowns (w, b, θ) of a direction; θ is 0."""
    n_pairs = task.inequalities.split.shape[1]
    return np.concatenate([direction.w, [direction.offset], np.zeros(n_pairs)])


def full_costs(task: SearchTask, direction: Direction) -> Floats:
    """Return the full cost of changing each row, shape (n,); negative where the change helps.

    It is the row's own cost plus the price of what the change does to the rates.
    """
    prices = first_prices(task, direction)
    return task.effects.costs_at(task.inequalities.matrix.T @ prices)


def anneal(task: SearchTask, start: Floats, *, is_short: bool = True) -> Direction:
    """Return the best direction seen while the temperature is lowered.

    `start` (d,) is the direction where the search begins. A short search is enough where that is
    near the end.
    """
    temperatures = SHORT_TEMPERATURES if is_short else FULL_TEMPERATURES
    n_steps = N_STEPS_SHORT if is_short else N_STEPS_FULL
    inequalities, width = task.inequalities, task.design.width
    best = current = task.with_offset(task.normalised(start))
    n_free = 1 + inequalities.split.shape[1]
    bounds = None if task.bounds is None else [*task.bounds, *[(None, None)] * n_free]
    # the first multiplier of a single limit is right; those of several need a second round
    n_rounds = (
        1 if task.effects.n_cells <= 2 and len(inequalities.bound) == inequalities.n_soft else 2
    )
    for temperature in temperatures:
        v = _unknowns(task, current)
        soft = _tangent(_SoftObjective(task, temperature), v)
        v[width + 1 :] = soft.even_split(v)
        multipliers = soft.first_multipliers(v)
        for i in range(n_rounds):
            if i:
                soft = _tangent(soft, v)
                multipliers = np.maximum(
                    0.0, multipliers + inequalities.penalty * soft.violations(v)
                )
            objective = partial(soft.value_and_gradient, multipliers=multipliers)
            v = descend(objective, v, n_steps=n_steps, tolerance=TOLERANCE, bounds=bounds)
        current = task.with_offset(task.normalised(v[:width]))
        if current.better_than(best):
            best = current
    return best


def _tangent(soft: _SoftObjective, v: Floats) -> _SoftObjective:
    """Return the objective with the inequalities of the tangents at `v`; itself where exact."""
    if soft.task.inequalities.is_linear:
        return soft
    inequalities = soft.task.inequalities.at(soft.sums(v))
    return replace(soft, task=replace(soft.task, inequalities=inequalities))
