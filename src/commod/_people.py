"""People in cells, counted once: what constraints compare, what holds, and the fewest changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod.bounds._counts import read_target
from commod.bounds._general import fewest_changes_of
from commod.exceptions import InputError
from commod.metrics._cells import (
    Cells,
    GroupComparison,
    Strata,
    count_cells,
    fairness_of,
    worst_value,
)
from commod.metrics._constraint import Constraint
from commod.metrics._language import AllOf, FairnessConstraint, bounded

IntArray = NDArray[np.intp]
Counts = NDArray[np.int64]

Bound = float | Fraction | None  # of a constraint; None where there is none

# The fewest changes: the number is proven to be needed and, where it is exact, enough.
KnownLimit = tuple[int, bool]

LOOSER = 1e-9  # than values that were reached: they have 12 digits


@dataclass(frozen=True)
class People:
    """People of compared groups: a row is one person, or stands for `each` (n,) people.

    - `stated`: the constraints with their bounds. The first one moves: its target may change from
      question to question. The others stand.
    - `group` (n,): the number of the group among `n_groups`; −1 for people whom nothing counts.
    - `label` (n,): where the true label is positive; None where it is not known.
    - `weight` (n,): the sum of the weights of the people of a row; None: everybody has weight 1.
    - `strata`: those of the constraints that have a condition.
    - `probabilities` (n, G): those of the groups where these are not known; rates are expectations.

    Examples
    --------
    >>> from commod.constraints import parse_constraint
    >>> stated = parse_constraint("demographic parity >= 0.8").parts
    >>> people = People(stated, np.array([0, 0, 1, 1]), 2)
    >>> decisions = np.array([True, True, True, False])
    >>> people.fairness(decisions), people.fewest(decisions, people.asked_bounds(0.8))
    (0.5, (1, True))
    """

    stated: tuple[FairnessConstraint, ...]
    group: IntArray
    n_groups: int
    label: Mask | None = None
    weight: Floats | None = None
    each: Floats | None = None
    strata: Mapping[Constraint, Strata] = field(default_factory=dict)
    probabilities: Floats | None = None

    @property
    def constraint(self) -> Constraint:
        """Return the constraint that moves."""
        return self.stated[0].constraint

    @property
    def standing(self) -> tuple[FairnessConstraint, ...]:
        """Return the constraints that keep their bounds."""
        return self.stated[1:]

    @property
    def is_simple(self) -> bool:
        """Return whether there is one constraint, for which exact algorithms are known."""
        return len(self.stated) == 1 and self.constraint.is_simple

    def with_stated(self, stated: Sequence[FairnessConstraint]) -> People:
        """Return the same people with other bounds of the same constraints."""
        people = replace(self, stated=tuple(stated))
        for name in ("cells", "sizes", "weights", "by_rates", "by_counts"):
            if name in self.__dict__:
                people.__dict__[name] = self.__dict__[name]
        return people

    def take(self, index: NDArray[np.intp]) -> People:
        """Return the rows `index` (m,)."""
        names = ("group", "label", "weight", "each", "probabilities")
        arrays: dict[str, Any] = {name: getattr(self, name) for name in names}
        taken: dict[str, Any] = {
            name: None if a is None else a[index] for name, a in arrays.items()
        }
        strata = {one: strata.take(index) for one, strata in self.strata.items()}
        return replace(self, strata=strata, **taken)

    # -- cells ---------------------------------------------------------------------------------

    @cached_property
    def cells(self) -> Cells:
        """Return the cell of each row."""
        constraints = [one.constraint for one in self.stated]
        people = self.group, self.n_groups, self.label
        return Cells.of(constraints, *people, strata=self.strata, probabilities=self.probabilities)

    @property
    def _each(self) -> Floats:
        return np.ones(len(self.group)) if self.each is None else self.each

    @property
    def _weight(self) -> Floats:
        return self._each if self.weight is None else self.weight

    @cached_property
    def sizes(self) -> Counts:
        """Return the number of people in each cell, (R, G)."""
        return np.rint(self.cells.totals(self._each)).astype(np.int64)

    @cached_property
    def weights(self) -> Floats:
        """Return the weight of the people in each cell, (R, G)."""
        return self.cells.totals(self._weight)

    def counts(self, decisions: Mask) -> tuple[Counts, Counts]:
        """Return people and positive decisions of each cell, both (R, G)."""
        return count_cells(self.cells, decisions, self.each)

    def rates(self, decisions: Mask | Floats) -> Floats:
        """Return the weighted rate of positive decisions in each cell, (R, G); 0 for nobody."""
        weights = np.where(self.weights > 0, self.weights, 1.0)
        return self.cells.totals(self._weight * decisions) / weights

    @cached_property
    def by_rates(self) -> list[list[GroupComparison]]:
        """Return the comparisons of each constraint as functions of the weighted rates, (A,)."""
        return [
            [one.per_rate(self.weights.ravel()) for one in self.cells.comparisons(i, self.weights)]
            for i in range(len(self.stated))
        ]

    @cached_property
    def by_counts(self) -> list[list[GroupComparison]]:
        """Return the comparisons of each constraint as functions of the numbers of positives."""
        sizes = self.sizes.astype(np.float64)
        return [self.cells.comparisons(i, sizes) for i in range(len(self.stated))]

    @cached_property
    def compared_by_each(self) -> list[Mask]:
        """Return the cells that the comparisons of each constraint depend on, (R, G) each."""
        masks = []
        for comparisons in self.by_counts:
            used = np.zeros(self.cells.shape, dtype=bool)
            for one in comparisons:
                for table in one.tables:
                    used.flat[table.cells] = True
            masks.append(used)
        return masks

    @cached_property
    def n_counted(self) -> Counts:
        """Return how many people each number that is compared counts, shape (n_numbers,)."""
        sizes = self.sizes.ravel()
        counts = [
            int(sizes[is_counted].sum())
            for compared in self.by_counts
            for one in compared
            for table in one.tables
            for is_counted in table.counted
        ]
        return np.array(counts, dtype=np.int64)

    # -- what holds ----------------------------------------------------------------------------

    def fairness(self, decisions: Mask | Floats) -> float:
        """Return the metric of the constraint that moves.

        Probabilities of a positive decision give the metric of expected rates.
        """
        if self.probabilities is not None or not self.constraint.is_simple:
            return worst_value(self.constraint, self.by_rates[0], self.rates(decisions).ravel())
        counted = self.group >= 0
        label = None if self.label is None else self.label[counted]
        weight, group = self._weight[counted], self.group[counted]
        return fairness_of(self.constraint, decisions[counted], label, group, self.n_groups, weight)

    def standing_values(self, decisions: Mask | Floats) -> tuple[float, ...]:
        """Return the metrics of the constraints that stand."""
        if not self.standing:
            return ()
        rates = self.rates(decisions).ravel()
        return tuple(
            worst_value(self.stated[i].constraint, self.by_rates[i], rates)
            for i in range(1, len(self.stated))
        )

    def keeps_standing(self, decisions: Mask | Floats) -> bool:
        """Return whether all constraints that stand keep their bounds."""
        return all_kept(self.standing, self.standing_values(decisions))

    def loosened(self, values: Sequence[float]) -> People:
        """Return people for whom a bound that stands and is missed becomes the value reached.

        `values` are those of the constraints that stand. Limits are then those of the same
        fairness.
        """
        if all_kept(self.standing, values):
            return self
        others = map(loosened, self.standing, values)
        return self.with_stated((self.stated[0], *others))

    # -- the fewest changes --------------------------------------------------------------------

    def asked_bounds(self, target: Bound) -> list[Bound]:
        """Return the bounds that are asked for, where the first constraint has a target."""
        return [target, *(one.bound for one in self.standing)]

    def reached_bounds(self, after: Mask) -> list[Bound]:
        """Return the bounds that decisions keep.

        The first constraint has the value that it reached, exactly where it stands alone. A bound
        that is missed, or not stated, becomes the value reached. All are a little looser than that,
        because these values are rounded.
        """
        if self.is_simple:
            sizes, positives = self.counts(after)
            is_defined = self.n_groups > 1 and bool(sizes.all())
            return [self.constraint.value_from_counts(sizes, positives) if is_defined else None]
        others = map(loosened, self.standing, self.standing_values(after))
        return self.looser([self.fairness(after), *(one.bound for one in others)])

    def looser(self, bounds: Sequence[Bound]) -> list[Bound]:
        """Return bounds that rounded values keep, too; one alone is compared exactly."""
        if self.is_simple:
            return list(bounds)
        signs = (-1 if one.higher_is_fairer else 1 for one in self.stated)
        return [
            None if bound is None else bound + sign * LOOSER
            for bound, sign in zip(bounds, signs, strict=True)
        ]

    def fewest(
        self,
        before: Mask,
        bounds: Sequence[Bound],
        *,
        time_limit: float | None = None,
        is_rough: bool = False,
        **moves: Any,
    ) -> KnownLimit | None:
        """Return the fewest changes of decisions `before` (n,) to keep bounds, and if it is exact.

        There is one bound per constraint. `moves` say who may change: `may_raise` and `may_lower`,
        and how many people of each cell, `n_raisable` and `n_lowerable` (R, G). For several
        constraints, the search ends after `time_limit` seconds with a proven lower bound; a rough
        one is found sooner. None where nothing can be compared, or no decisions are enough.
        """
        sizes, positives = self.counts(before)
        known = [bound for bound in bounds if bound is not None and not np.isnan(float(bound))]
        if len(known) < len(bounds):
            return None
        if self.is_simple:
            if self.n_groups < 2 or not sizes.all():
                return None
            if not self.constraint.is_ratio or known[0] > 0:  # every ratio is at least 0
                known = [read_target(self.constraint, known[0])]
        if not all(self.by_counts):
            return None
        pairs = zip(self.by_counts, known, strict=True)
        required = [(one, bound) for some, bound in pairs for one in some]
        if time_limit is not None:
            moves["time_limit"] = time_limit
        found = fewest_changes_of(
            required, sizes, positives, is_rough=is_rough, any_tie=True, **moves
        )
        return None if found is None else (int(found.lower_bound), found.is_exact)


# ---------------------------------------------------------------------------------------------
# Constraints that stand: they keep their bounds while the first one moves


def is_kept(one: FairnessConstraint, value: float | None) -> bool:
    """Return whether a value of the metric keeps the bound; False for NaN, and without a bound."""
    if value is None or one.bound is None:
        return False
    return bool(one.constraint.is_met(value, one.bound))


def all_kept(standing: Sequence[FairnessConstraint], values: Sequence[float]) -> bool:
    """Return whether each value keeps the bound of its constraint."""
    return all(map(is_kept, standing, values))


def loosened(one: FairnessConstraint, value: float | None) -> FairnessConstraint:
    """Return the constraint with a bound that the value keeps: the value, if it misses it."""
    if value is None or np.isnan(value) or is_kept(one, value):
        return one
    return bounded(one.constraint, value)


def standing_constraints(requirements: AllOf) -> tuple[FairnessConstraint, ...]:
    """Return all constraints but the first one; each of them needs a bound."""
    if len(requirements.parts) > 1:
        for part in requirements.parts:
            if part.bound is None:
                raise InputError(
                    f"constraints has {len(requirements.parts)} parts, but {part.text!r} has no "
                    "bound. State a bound for each of them, such as 'demographic parity >= 0.8'.",
                    parameter="constraints",
                )
    return requirements.parts[1:]
