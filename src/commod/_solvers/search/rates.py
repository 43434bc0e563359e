"""Write a fairness target and hard caps as linear inequalities on sums over the rows.

Every change of a decision moves each sum by a known step. `ChangeEffects` holds the steps of all
rows, `SumInequalities` the inequalities that the sums have to keep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.design import MAX_ROWS_WITH_WIDE_CODES
from commod.metrics._comparison import GroupComparison, LinearForm
from commod.metrics._constraint import ConstraintLike, get_constraint

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

N_CAPPED_SUMS = 3  # share of changes, gain of accuracy, change of volume
TINY = 1e-300  # avoids 0 / 0
TIE_BREAK = 1e-9  # weight of an error beside a change: of as many changes, the most accurate win


@dataclass(frozen=True)
class Caps:
    """Hard inequalities: the largest share of changes, loss of accuracy and change of volume.

    Volume is the overall rate of positive decisions. None is no limit.
    """

    changes: float | None = None
    accuracy_loss: float | None = None
    volume_change: float | None = None

    def any(self) -> bool:
        """Return whether there is at least one hard limit."""
        return any(cap is not None for cap in astuple(self))


@dataclass(frozen=True)
class Cells:
    """The cell of each row of data: `index` (n,), −1 for rows outside the constraint.

    `shape` is (n_rate_rows, n_groups). Demographic parity has one rate row. Equalized odds has
    two: rows of data with a positive true label, then those with a negative one.
    """

    index: NDArray[np.intp]
    shape: tuple[int, int]

    @classmethod
    def of(
        cls, constraints: ConstraintLike, group: NDArray[np.intp], n_groups: int, label: Mask | None
    ) -> Cells:
        """Return the cells of a constraint; `group` (n,) is −1 for a group that is left out."""
        constraint = get_constraint(constraints)
        shape = (len(constraint.rate_rows), n_groups)
        return cls(constraint.cells(group, n_groups, label), shape)

    def take(self, index: NDArray[np.intp]) -> Cells:
        """Return the cells of the rows `index` (m,)."""
        return Cells(self.index[index], self.shape)

    def totals(self, values: Floats) -> Floats:
        """Return the sum of `values` (n,) in each cell, shape (n_rate_rows, n_groups)."""
        n_cells = self.shape[0] * self.shape[1]
        sums = np.bincount(self.index + 1, values, minlength=n_cells + 1)[1:]
        return np.asarray(sums, dtype=np.float64).reshape(self.shape)


def count_cells(
    cells: Cells, decisions: Mask, people: Floats | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return size and number of positives of each cell, both of shape (n_rate_rows, n_groups).

    A row is one person, or stands for `people` (n,). Expected numbers are rounded.
    """
    each = np.ones(len(decisions)) if people is None else people
    negatives, positives = (
        np.rint(cells.totals(kind * each)).astype(np.int64) for kind in (~decisions, decisions)
    )
    return negatives + positives, positives


# ---------------------------------------------------------------------------------------------
# What a change does


@dataclass(frozen=True)
class ChangeEffects:
    """What changing the decision of each of n rows does to the cost and to K sums.

    The first sums are the rates of the cells; E further sums follow where there are caps. A row
    that may not change has a cost and steps of zero.

    - `may_change` (n,): whether the decision of the row may change.
    - `people` (n,): the share of all people that the row stands for.
    - `cost` (n,): the cost of the change, 1/n for a plain count.
    - `cell` (n,): the cell of the row; the number of cells for a row in no cell.
    - `step` (n,): by how much the change moves the rate of that cell.
    - `extra` (E, n): by how much it moves each further sum.
    - `base_sums` (K,): the sums before any change.
    - `smallest_step` (n_cells,): the rate that the lightest row of each cell stands for.
    - `is_raised` (n,): whether the change makes the decision positive.
    - `soft_step` (k, n): by how much the change is expected to move each of k rates, where a row
      belongs to k cells with a probability. It replaces `cell` and `step`; None for true cells.
    - `stratum` (n,): which k of the cells these are: the first k for 0, the next k for 1, …
    - `true_step` (k, n), `true_stratum` (n,): the same where users state the probabilities, because
      groups are not known. They are then what the change does to the rates that are measured.
    """

    may_change: Mask
    people: Floats
    cost: Floats
    cell: NDArray[np.integer]
    step: Floats
    extra: Floats
    base_sums: Floats
    smallest_step: Floats
    is_raised: Mask
    soft_step: Floats | None = None
    stratum: NDArray[np.integer] | None = None
    true_step: Floats | None = None
    true_stratum: NDArray[np.integer] | None = None

    def __len__(self) -> int:
        return len(self.cost)

    @property
    def n_cells(self) -> int:
        """Return how many of the sums are rates of cells."""
        return len(self.smallest_step)

    def of_nobody(self) -> ChangeEffects:
        """Return the effects where no row may change: for directions without a weight.

        All rows have the same η then, and the only other update would change everybody.
        """
        return replace(self, may_change=np.zeros_like(self.may_change))

    def take(self, rows: NDArray[np.intp]) -> ChangeEffects:
        """Return the effects of `rows` (m,) alone; the sums before any change stay those of all."""
        return replace(
            self,
            may_change=self.may_change[rows],
            people=self.people[rows],
            cost=self.cost[rows],
            cell=self.cell[rows],
            step=self.step[rows],
            extra=self.extra[:, rows],
            is_raised=self.is_raised[rows],
            soft_step=None if self.soft_step is None else self.soft_step[:, rows],
            stratum=None if self.stratum is None else self.stratum[rows],
            true_step=None if self.true_step is None else self.true_step[:, rows],
            true_stratum=None if self.true_stratum is None else self.true_stratum[rows],
        )

    def soften(
        self, probabilities: Floats, weight: Floats, stratum: NDArray[np.integer] | None = None
    ) -> ChangeEffects:
        """Return the expected effects where row i is in cell c with `probabilities` (n, k).

        `weight` (n,) is that of the rows. `stratum` (n,) says which k of the cells these are; None
        where there are k cells. Rates before any change stay those of the true cells.
        """
        shares = weight * probabilities.T
        for share in shares:
            totals = share.sum() if stratum is None else np.bincount(stratum, share)[stratum]
            share /= np.maximum(totals, TINY)
        sign = np.where(self.is_raised, 1.0, -1.0) * self.may_change
        return replace(self, soft_step=np.ascontiguousarray(sign * shares), stratum=stratum)

    def with_true_probabilities(
        self, probabilities: Floats, weight: Floats, stratum: NDArray[np.integer] | None = None
    ) -> ChangeEffects:
        """Return the effects where the rates that are measured are expectations.

        The arguments are those of `soften`, and `base_sums` are expected rates.
        """
        soft = self.soften(probabilities, weight, stratum)
        return replace(soft, true_step=soft.soft_step, true_stratum=stratum)

    def on_true_cells(self) -> ChangeEffects:
        """Return the effects on the rates that are measured."""
        return replace(self, soft_step=self.true_step, stratum=self.true_stratum)

    def rate_steps(self, rows: slice | NDArray[np.intp]) -> Floats:
        """Return by how much a change of each of `rows` moves each rate, (n_cells, m)."""
        if self.soft_step is None:
            cell = self.cell[rows]
            moves = np.zeros((self.n_cells + 1, len(cell)))
            moves[cell, np.arange(len(cell))] = self.step[rows]
            return moves[:-1]
        steps = self.soft_step[:, rows]
        if self.stratum is None:
            return steps
        moves = np.zeros((self.n_cells, steps.shape[1]))
        for k, step in enumerate(steps):
            moves[self.stratum[rows] * len(steps) + k, np.arange(len(step))] = step
        return moves

    def added(self, shares: Floats, rows: slice = slice(None)) -> Floats:
        """Return what changes of `rows` by `shares` (m,) add to the sums, shape (K,)."""
        if self.soft_step is not None:
            rates = self._soft_moves(shares, rows)
        else:
            moves = self.step[rows] * shares
            counted = np.bincount(self.cell[rows], moves, minlength=self.n_cells + 1)
            rates = np.asarray(counted[:-1], dtype=np.float64)
        return np.concatenate([rates, self.extra[:, rows] @ shares]) if len(self.extra) else rates

    def _soft_moves(self, shares: Floats, rows: slice) -> Floats:
        """Return by how much changes of `rows` by `shares` (m,) move the rates, (n_cells,)."""
        assert self.soft_step is not None
        steps = self.soft_step[:, rows]
        if self.stratum is None:
            return np.asarray(steps @ shares)
        n_strata = self.n_cells // len(steps)
        moves = [np.bincount(self.stratum[rows], step * shares, n_strata) for step in steps]
        return np.stack(moves, axis=1).ravel().astype(np.float64, copy=False)

    def sums(self, shares: Mask | Floats) -> Floats:
        """Return the sums after changes by `shares` (n,), shape (K,)."""
        return self.base_sums + self.added(shares.astype(float))

    def costs_at(self, prices: Floats, rows: slice = slice(None)) -> Floats:
        """Return the full cost of changing each of `rows` where the sums have `prices` (K,)."""
        if self.soft_step is not None and self.stratum is not None:
            steps = self.soft_step[:, rows]
            by_stratum = prices[: self.n_cells].reshape(-1, len(steps))
            costs = (by_stratum[self.stratum[rows]].T * steps).sum(axis=0)
        elif self.soft_step is not None:
            costs = prices[: self.n_cells] @ self.soft_step[:, rows]
        else:
            by_cell = np.zeros(self.n_cells + 1)  # faster than np.append
            by_cell[:-1] = prices[: self.n_cells]
            costs = by_cell.take(self.cell[rows])
            costs *= self.step[rows]
        costs += self.cost[rows]
        if len(self.extra):
            costs += prices[self.n_cells :] @ self.extra[:, rows]
        return costs


def change_effects(
    cells: Cells,
    decisions: Mask,
    weight: Floats,
    *,
    may_change: Mask,
    people: Floats | None = None,
    label: Mask | None = None,
    counted: Mask | None = None,
    accuracy_weight: float = 0.0,
    expected_gain: Floats | None = None,
    with_caps: bool = True,
) -> ChangeEffects:
    """Return what changing each row does to the rates of the cells and, `with_caps`, to 3 sums.

    The three sums are: the share of changes (people, not weights), the gain of accuracy (zero
    without labels), and the change of the overall positive rate. `people` (n,) is how many people
    a row of a sample stands for; `weight` (n,) is the weight of all of them together. The cost of a
    change falls with its `expected_gain` of accuracy (n,), in [−1, 1]; that of the label if None.
    Only the labels of the rows `counted` (n,) affect costs; all rows if None.
    """
    n = len(decisions)
    person = np.full(n, 1 / n) if people is None else people / people.sum()
    gain = np.zeros(n) if label is None else np.where(decisions == label, -1.0, 1.0)
    known_gain = gain if counted is None else gain * counted
    expected = known_gain if expected_gain is None else expected_gain * (1 - TIE_BREAK)
    sign = np.where(decisions, -1.0, 1.0)
    totals = np.maximum(cells.totals(weight).ravel(), TINY)  # of an empty cell: a rate of 0
    cell = np.where(cells.index >= 0, cells.index, len(totals))
    if n > MAX_ROWS_WITH_WIDE_CODES:
        cell = cell.astype(np.min_scalar_type(len(totals)))
    step = sign * weight / np.append(totals, np.inf)[cell]
    base_sums = cells.totals(weight * decisions).ravel() / totals
    extra = np.zeros((0, n))
    if with_caps:
        share = weight / weight.sum()
        extra = np.stack([person, gain * share, sign * share]) * may_change
        base_sums = np.concatenate([base_sums, np.zeros(N_CAPPED_SUMS)])
    return ChangeEffects(
        may_change=may_change,
        people=person,
        cost=person * (1 - accuracy_weight * expected - TIE_BREAK * known_gain) * may_change,
        cell=cell,
        step=step * may_change,
        extra=extra,
        base_sums=base_sums,
        smallest_step=_lightest(cells, weight) / totals,
        is_raised=~decisions,
    )


def _lightest(cells: Cells, weight: Floats) -> Floats:
    """Return the smallest positive weight in each cell, shape (n_cells,)."""
    counted = (cells.index >= 0) & (weight > 0)
    lightest = np.full(cells.shape[0] * cells.shape[1], np.inf)
    np.minimum.at(lightest, cells.index[counted], weight[counted])
    return np.where(np.isinf(lightest), 0.0, lightest)


# ---------------------------------------------------------------------------------------------
# What the sums have to keep


class Requirement(NamedTuple):
    """A comparison and its bound, as a function of the sums at `cells` (k,)."""

    comparison: GroupComparison
    bound: float
    cells: NDArray[np.intp]

    @classmethod
    def of(cls, comparison: GroupComparison, bound: float) -> Requirement:
        """Return the requirement; it forgets the cells that it does not depend on."""
        cells = np.unique(np.concatenate([table.cells for table in comparison.tables]))
        tables = tuple(table.on_cells(cells) for table in comparison.tables)
        return cls(replace(comparison, tables=tables), bound, cells)

    def excess(self, sums: Floats) -> Floats:
        """Return by how much the bound is missed at each column of `sums` (K, m), shape (m,)."""
        return self.comparison.excess(sums[self.cells], self.bound)


@dataclass(frozen=True)
class SumInequalities:
    """Linear inequalities on the sums q: matrix @ q ≤ bound + split @ θ, where θ is free.

    `split` (m, T) lets two gaps share one allowance; T is how many pairs of gaps do. The first
    `n_soft` inequalities are the target, which gives way to the others, the caps. `penalty` is
    the weight of a squared violation while changes are soft. `requirements` are what the target
    asks for exactly. Where these are not linear in the sums, the inequalities are those of their
    tangents.
    """

    matrix: Floats
    bound: Floats
    split: Floats
    n_soft: int
    penalty: float
    requirements: tuple[Requirement, ...]
    smallest_step: Floats

    @property
    def is_linear(self) -> bool:
        """Return whether the inequalities are exact."""
        return all(required.comparison.is_linear for required in self.requirements)

    def at(self, sums: Floats) -> SumInequalities:
        """Return the inequalities of the tangents at `sums` (K,); themselves where exact."""
        if self.is_linear:
            return self
        soft = _linear_forms(self.requirements, sums, self.smallest_step)
        parts = zip(soft, (self.matrix, self.bound, self.split), strict=True)
        matrix, bound, split = (np.concatenate([new, old[self.n_soft :]]) for new, old in parts)
        return replace(self, matrix=matrix, bound=bound, split=split)


def fairness_inequalities(
    compared: Sequence[tuple[GroupComparison, float]], effects: ChangeEffects, caps: Caps
) -> SumInequalities:
    """Return the bounds of comparisons, which are functions of the cells' rates, and the caps."""
    sums = effects.base_sums
    requirements = tuple(Requirement.of(*one) for one in compared)
    soft, bound, split = _linear_forms(requirements, sums, effects.smallest_step)
    hard, hard_bound = _cap_limits(caps, len(sums))
    largest_violation = max(float((soft @ sums - bound).max(initial=0.0)), 1e-3)
    return SumInequalities(
        matrix=np.vstack([soft, hard]),
        bound=np.concatenate([bound, hard_bound]),
        split=np.concatenate([split, np.zeros((len(hard_bound), split.shape[1]))]),
        n_soft=len(soft),
        penalty=3.0 / largest_violation,
        requirements=requirements,
        smallest_step=effects.smallest_step,
    )


def _linear_forms(
    requirements: Sequence[Requirement], sums: Floats, smallest_step: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return matrix, bound and split of the requirements, or of their tangents at `sums` (K,)."""
    n_pairs = sum(len(one.comparison.tables) == 2 for one in requirements)
    matrices, bounds, splits = [], [], []
    pair = 0
    for comparison, bound, cells in requirements:
        form = comparison.linear_form(bound, sums[cells])
        if comparison.kind == "ratio":  # equal numbers of zero are undefined, not fair
            form = _above_zero(form, comparison, smallest_step[cells], sums[cells])
        matrix, split = np.zeros((len(form.bound), len(sums))), np.zeros((len(form.bound), n_pairs))
        matrix[:, cells] = form.matrix
        if len(comparison.tables) == 2:
            split[:, pair] = form.split
            pair += 1
        matrices.append(matrix)
        bounds.append(form.bound)
        splits.append(split)
    if not matrices:
        return np.zeros((0, len(sums))), np.zeros(0), np.zeros((0, 0))
    return np.vstack(matrices), np.concatenate(bounds), np.vstack(splits)


def _above_zero(
    form: LinearForm, comparison: GroupComparison, smallest_step: Floats, rates: Floats
) -> LinearForm:
    """Return the inequalities and one more per group: its number is above half of a step."""
    line = comparison.tables[0].linearised(rates)
    steps = np.abs(line.numerator) * smallest_step
    least = np.where(steps > 0, steps, np.inf).min(axis=1)
    least = np.where(np.isfinite(least), 0.5 * least, 0.0)
    return LinearForm(
        np.vstack([form.matrix, -line.numerator]),
        np.concatenate([form.bound, line.constant - least]),
        np.concatenate([form.split, np.zeros(len(least))]),
    )


def _cap_limits(caps: Caps, n_sums: int) -> tuple[Floats, Floats]:
    """Return matrix and bound of the caps that are set."""
    if not caps.any():
        return np.zeros((0, n_sums)), np.zeros(0)
    changes, accuracy_gain, volume = np.eye(n_sums)[-N_CAPPED_SUMS:]
    inequalities = [
        (changes, caps.changes),
        (-accuracy_gain, caps.accuracy_loss),
        (volume, caps.volume_change),
        (-volume, caps.volume_change),
    ]
    matrix, bound = zip(*((row, cap) for row, cap in inequalities if cap is not None), strict=True)
    return np.array(matrix), np.array(bound)
