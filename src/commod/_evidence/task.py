"""Hold the question of one fit: people, their terms, cells and folds, and what rates have to keep.

Every constraint is a function of K sums. The first sums are the rates of the cells: groups, or
groups and true labels, within strata. With caps, the gain of accuracy and the change of volume
follow. A person whose decision becomes positive adds `weight · share / total` to the rate of each
of their cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Codes, Floats, Mask
from commod._data.encoding import TermTable
from commod._statistics.promises import drawn_rates
from commod.metrics._cells import GroupComparison
from commod.metrics._constraint import Constraint
from commod.metrics._people import Bound, People

N_FOLDS = 5
MAX_ROWS_OF_PRICES = 400  # inequalities whose prices are sought: those with the least slack
TINY = 1e-12  # of a rate or a slack: smaller differences are rounding


@dataclass(frozen=True)
class Caps:
    """Hard limits: the largest share of changes, loss of accuracy and change of volume.

    Volume is the overall rate of positive decisions. None is no limit.
    """

    changes: float | None = None
    accuracy_loss: float | None = None
    volume_change: float | None = None


class Required(NamedTuple):
    """A comparison of the rates of `cells` (k,) and its bound; `constraint` has its number."""

    constraint: int
    comparison: GroupComparison
    cells: Codes
    bound: float

    @classmethod
    def of(cls, constraint: int, comparison: GroupComparison, bound: float) -> Required:
        """Return the requirement; it forgets the cells that it does not depend on."""
        cells = np.unique(np.concatenate([table.cells for table in comparison.tables]))
        tables = tuple(table.on_cells(cells) for table in comparison.tables)
        return cls(constraint, replace(comparison, tables=tables), cells, bound)


class Inequalities(NamedTuple):
    """Inequalities slopes @ sums + constant ≥ 0: `slopes` (J, K), `constant` (J,).

    `constraint` (J,) is the number of the constraint, −1 for a cap.
    """

    slopes: Floats
    constant: Floats
    constraint: Codes

    def take(self, rows: Codes) -> Inequalities:
        """Return some of the inequalities."""
        return Inequalities(self.slopes[rows], self.constant[rows], self.constraint[rows])


@dataclass(frozen=True)
class EvidenceTask:
    """One question: whom to change so that rates keep their bounds with the fewest changes.

    - `terms`: the d terms of n people. `column` (d,) numbers the raw column of each term.
      `is_level` (d,): categories, of which any two may share their points. `is_bin` (d,): bins, of
      which neighbours may.
    - `sign` (d,): 1 or −1 where points must not be below, or above, 0. Points of bins may only rise
      (or fall) instead.
    - `pinned` (d,): points that are given; NaN where they are sought.
    - `fold` (n,), `positive` (n,): fold and base decision. `distance` (n,): of the score from the
      threshold. `may_change` (n,): whether the decision may change.
    - `cell`, `share` (n, q): the cells of each person, and with which probability; the number of
      cells where there is none. `totals` (C,): the weight of each cell. `sizes` (C,): its people.
    - `is_known` (n,): whether the group is known. `weight`, `people` (n,): of each row.
    - `label` (n,): the true label; None where it is not known.
    - `constraints`, `required`: the constraints, and their comparisons with bounds.
    - `for_new`: whether bounds are to hold on new people; otherwise on these rows.
    """

    terms: TermTable
    column: Codes
    is_level: Mask
    is_bin: Mask
    sign: Floats
    pinned: Floats
    fold: NDArray[np.integer]
    positive: Mask
    distance: Floats
    may_change: Mask
    cell: Codes
    share: Floats
    totals: Floats
    sizes: Floats
    is_known: Mask
    weight: Floats
    people: Floats
    label: Mask | None
    constraints: tuple[Constraint, ...]
    required: tuple[Required, ...]
    caps: Caps = Caps()
    for_new: bool = True

    @classmethod
    def of(cls, people: People, bounds: Sequence[Bound], **given: Any) -> EvidenceTask:
        """Return the question for counted people and a bound per constraint.

        `given` are the fields that people do not have.
        """
        n_cells, row = int(np.prod(people.shape)), people.row[:, None]
        cell, share = np.where(people.index < 0, n_cells, people.index)[:, None], np.ones((1, 1))
        if people.probabilities is not None:
            cell = np.where(row < 0, n_cells, row * people.n_groups + np.arange(people.n_groups))
            share = people.probabilities
        required = [
            Required.of(i, comparison, float(bound or 0.0))
            for i, (some, bound) in enumerate(zip(people.by_rates, bounds, strict=True))
            for comparison in some
        ]
        return cls(
            cell=cell,
            share=np.broadcast_to(share, cell.shape),
            totals=people.weights.ravel(),
            weight=people.weight_or_one,
            people=people.each_or_one,
            label=people.label,
            constraints=people.constraints,
            required=tuple(required),
            **given,
        )

    def __len__(self) -> int:
        return len(self.positive)

    @property
    def n_cells(self) -> int:
        """Return C, the number of cells."""
        return len(self.totals)

    @cached_property
    def side(self) -> Floats:
        """Return +1 where a change makes a decision positive, −1 elsewhere, shape (n,)."""
        return np.where(self.positive, -1.0, 1.0)

    @cached_property
    def step(self) -> Floats:
        """Return what a positive decision of each person adds to the rates of their cells, (n, q).

        It is 0 where a person is in no cell.
        """
        totals = np.append(np.where(self.totals > 0, self.totals, np.inf), np.inf)
        return self.weight[:, None] * self.share / totals[self.cell]

    def steps_of(self, rows: Codes) -> Floats:
        """Return what a positive decision of some rows (m,) adds to all sums, (m, K)."""
        steps = np.zeros((len(rows), self.n_cells + 1))
        for cell, step in zip(self.cell[rows].T, self.step[rows].T, strict=True):
            steps[np.arange(len(rows)), cell] += step
        return np.hstack([steps[:, :-1], self.caps_steps[rows]])

    @cached_property
    def caps_steps(self) -> Floats:
        """Return what a positive decision adds to accuracy and volume, (n, 2).

        Without caps on these, the shape is (n, 0).
        """
        if self.caps.accuracy_loss is None and self.caps.volume_change is None:
            return np.zeros((len(self), 0))
        share = self.weight / self.weight.sum()
        right = np.zeros(len(self)) if self.label is None else np.where(self.label, 1.0, -1.0)
        return np.column_stack([right * share, share])

    @cached_property
    def base_rates(self) -> Floats:
        """Return the rates of the cells under the base model, (C,)."""
        return self.added(self.positive.astype(np.float64))

    def added(self, decided: Floats) -> Floats:
        """Return what decisions (n,) add to the rates of the cells, (C,)."""
        sums = np.zeros(self.n_cells + 1)
        for cell, step in zip(self.cell.T, self.step.T, strict=True):
            sums += np.bincount(cell, step * decided, minlength=self.n_cells + 1)
        return sums[:-1]

    @cached_property
    def smallest_base(self) -> float:
        """Return the number of people of the smallest rate that is compared."""
        used = np.unique(np.concatenate([one.cells for one in self.required]))
        return float(self.sizes[used].min(initial=np.inf))

    # -- what rates have to keep ----------------------------------------------------------------

    def values(self, rates: Floats) -> Floats:
        """Return the metric of each constraint at columns of rates (C, m), (n_constraints, m).

        A metric that is not defined has its least fair value.
        """
        worst = np.full((len(self.constraints), rates.shape[1]), np.nan)
        for one in self.required:
            constraint = self.constraints[one.constraint]
            value = one.comparison.value(rates[one.cells])
            least = constraint.least_fair
            value = np.where(np.isnan(value), least, value)
            better = np.fmin if constraint.higher_is_fairer else np.fmax
            worst[one.constraint] = better(worst[one.constraint], value)
        return worst

    @cached_property
    def bounds(self) -> Floats:
        """Return the bound of each constraint, (n_constraints,)."""
        bounds = np.zeros(len(self.constraints))
        for one in self.required:
            bounds[one.constraint] = one.bound
        return bounds

    def slack(self, values: Floats) -> Floats:
        """Return by how much values (n_constraints, …) keep their bounds; negative if they miss."""
        signs = [1.0 if one.higher_is_fairer else -1.0 for one in self.constraints]
        shape = (-1, *(1,) * (values.ndim - 1))
        return np.reshape(signs, shape) * (values - self.bounds.reshape(shape))

    def draws(self, rates: Floats) -> Floats:
        """Return the metrics of new samples of as many people, (n_constraints, n_draws).

        `rates` (C,) were measured on people who are new to the update.
        """
        return self.values(drawn_rates(self.sizes, rates, n_samples=2))

    def expected(self, rates: Floats) -> Floats:
        """Return the metrics to expect of new people at columns of rates (C, m).

        The shape is (n_constraints, m). On fit rows, the metrics are those that were counted.
        """
        if not self.for_new:
            return self.values(rates)
        drawn = np.hstack([drawn_rates(self.sizes, column, n_samples=2) for column in rates.T])
        values = self.values(drawn)
        return np.asarray(values.reshape(len(values), rates.shape[1], -1).mean(axis=2))

    def inequalities(self, rates: Floats) -> Inequalities:
        """Return all bounds as inequalities, which are tangents at `rates` (C,).

        Of very many, those with the least slack at these rates are returned, and all caps.
        """
        at = rates[:, None]
        chance = (self.expected(at) - self.values(at))[:, 0]
        slopes, constants, numbers = [], [], []
        for one in self.required:
            matrix, limit = one.comparison.linear_form(one.bound, rates[one.cells])
            lost = self._lost_to_chance(one, rates, float(chance[one.constraint]))
            full = np.zeros((len(limit), self.n_cells))
            full[:, one.cells] = -matrix
            slopes.append(full)
            constants.append(limit - lost)
            numbers.append(np.full(len(limit), one.constraint, dtype=np.intp))
        made = Inequalities(np.vstack(slopes), np.concatenate(constants), np.concatenate(numbers))
        if len(made.constant) > MAX_ROWS_OF_PRICES:
            order = np.argsort(made.slopes @ rates + made.constant, kind="stable")
            made = made.take(order[:MAX_ROWS_OF_PRICES])
        return self._with_caps(made)

    def _lost_to_chance(self, one: Required, rates: Floats, chance: float) -> float:
        """Return by how much the chance of new samples lowers the slack of an inequality."""
        constraint = self.constraints[one.constraint]
        if not constraint.higher_is_fairer:
            return max(chance, 0.0)
        highest = 1.0
        if one.comparison.kind == "ratio":
            highest = float(np.nanmax(one.comparison.tables[0].values(rates[one.cells])))
        return max(-chance, 0.0) * highest

    def _with_caps(self, made: Inequalities) -> Inequalities:
        loss, volume = self.caps.accuracy_loss, self.caps.volume_change
        n_caps = self.caps_steps.shape[1]
        slopes = np.hstack([made.slopes, np.zeros((len(made.constant), n_caps))])
        rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
        limits = (loss, volume, volume)
        is_set = np.array([limit is not None for limit in limits]) & bool(n_caps)
        capped = np.zeros((int(is_set.sum()), slopes.shape[1]))
        if is_set.any():
            capped[:, -n_caps:] = rows[is_set]
        constant = np.array([limit for limit, known in zip(limits, is_set, strict=True) if known])
        return Inequalities(
            np.vstack([slopes, capped]),
            np.concatenate([made.constant, constant.astype(np.float64)]),
            np.concatenate([made.constraint, np.full(len(capped), -1)]),
        )


def with_bounds(required: Sequence[Required], bounds: Sequence[float]) -> tuple[Required, ...]:
    """Return the same comparisons with another bound for each constraint."""
    return tuple(one._replace(bound=float(bounds[one.constraint])) for one in required)
