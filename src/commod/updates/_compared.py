"""Hold what a fit compares: the cells of its rows, and the constraints as comparisons of rates.

One constraint moves: its target may change from search to search. The others stand: they keep
their bounds in every search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod.exceptions import InputError
from commod.metrics._cells import CellTable, Strata, worst_value
from commod.metrics._comparison import GroupComparison
from commod.metrics._constraint import Constraint
from commod.metrics._requirements import Requirements
from commod.updates._fit_rows import FitRows

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]


class Standing(NamedTuple):
    """A constraint that keeps its bound while another one moves."""

    constraint: Constraint
    bound: float

    def is_met(self, value: float) -> bool:
        """Return whether a value of the metric keeps the bound; False for NaN."""
        return bool(self.constraint.is_met(value, self.bound))

    def loosened(self, value: float) -> Standing:
        """Return the constraint with a bound that the value keeps: the value, if it misses it."""
        return self if self.is_met(value) or np.isnan(value) else self._replace(bound=value)


def all_kept(standing: Sequence[Standing], values: Sequence[float]) -> bool:
    """Return whether each value keeps the bound of its constraint."""
    return all(one.is_met(value) for one, value in zip(standing, values, strict=True))


def standing_constraints(requirements: Requirements) -> tuple[Standing, ...]:
    """Return all constraints but the first one; each of them needs a bound."""
    if len(requirements.parts) == 1:
        return ()
    for part in requirements.parts:
        if part.bound is None:
            raise InputError(
                f"constraints has {len(requirements.parts)} parts, but {part.text!r} has no bound. "
                "State a bound for each of them, such as 'demographic parity >= 0.8'.",
                parameter="constraints",
            )
    others = requirements.parts[1:]
    return tuple(Standing(part.constraint, float(part.bound or 0.0)) for part in others)


@dataclass(frozen=True)
class ComparedCells:
    """The cells of the rows of a fit, and which of their rates are compared.

    The first constraint of `table` moves; `bounds` are those of the others.
    """

    table: CellTable
    bounds: tuple[float, ...]
    weight: Floats
    people: Floats | None = None

    @classmethod
    def of(
        cls, rows: FitRows, constraint: Constraint, standing: Sequence[Standing]
    ) -> ComparedCells:
        """Return the cells of all constraints of a fit."""
        group, n_groups = rows.large_groups
        people = (rows.strata, group, n_groups, rows.label, rows.weight)
        made = cls.of_people(constraint, standing, *people)
        table = replace(made.table, probabilities=rows.probabilities)
        return replace(made, table=table, people=rows.people)

    @classmethod
    def of_people(
        cls,
        constraint: Constraint,
        standing: Sequence[Standing],
        strata: Mapping[Constraint, Strata],
        group: NDArray[np.intp],
        n_groups: int,
        label: Mask | None,
        weight: Floats,
    ) -> ComparedCells:
        """Return the cells of people whose `group` (n,) is not −1.

        `strata` are those of the constraints that have a condition.
        """
        constraints = [constraint, *(one.constraint for one in standing)]
        everybody = Strata.everybody(len(group), n_groups)
        parts = [everybody if one.within is None else strata[one] for one in constraints]
        table = CellTable.of(constraints, parts, group, n_groups, label)
        return cls(table, tuple(one.bound for one in standing), weight)

    @property
    def n_strata(self) -> int:
        """Return the number of combinations of strata."""
        return int(self.table.stratum.max(initial=0)) + 1

    @property
    def n_cells_of_stratum(self) -> int:
        """Return the number of cells of each combination of strata."""
        return int(np.prod(self.table.shape)) // self.n_strata

    @cached_property
    def sizes(self) -> Counts:
        """Return the number of people in each cell, (R, G)."""
        people = np.ones(len(self.weight)) if self.people is None else self.people
        return np.rint(self.table.totals(people)).astype(np.int64)

    @cached_property
    def weights(self) -> Floats:
        """Return the weight of the rows in each cell, (R, G)."""
        return self.table.totals(self.weight)

    @cached_property
    def by_rates(self) -> list[list[GroupComparison]]:
        """Return the comparisons of each constraint as functions of the weighted rates, (A,)."""
        return [
            [one.per_rate(self.weights.ravel()) for one in self.table.comparisons(i, self.weights)]
            for i in range(len(self.table.constraints))
        ]

    @cached_property
    def by_counts(self) -> list[list[GroupComparison]]:
        """Return the comparisons of each constraint as functions of the numbers of positives."""
        sizes = self.sizes.astype(np.float64)
        return [self.table.comparisons(i, sizes) for i in range(len(self.table.constraints))]

    def required(
        self, target: float, *, by_counts: bool = False
    ) -> list[tuple[GroupComparison, float]]:
        """Return all comparisons with their bounds, where the first constraint has a target."""
        compared = self.by_counts if by_counts else self.by_rates
        bounds = (target, *self.bounds)
        return [(one, b) for some, b in zip(compared, bounds, strict=True) for one in some]

    def value(self, decisions: Mask | Floats) -> float:
        """Return the metric of the constraint that moves."""
        return self._values(decisions, [0])[0]

    def standing_values(self, decisions: Mask | Floats) -> tuple[float, ...]:
        """Return the metrics of the constraints that stand."""
        return self._values(decisions, range(1, len(self.table.constraints)))

    def _values(self, decisions: Mask | Floats, numbers: Iterable[int]) -> tuple[float, ...]:
        weights = np.where(self.weights > 0, self.weights, 1.0)
        rates = self.table.totals(self.weight * decisions) / weights
        return tuple(
            worst_value(self.table.constraints[i], self.by_rates[i], rates.ravel()) for i in numbers
        )

    def loosened(self, decisions: Mask | Floats) -> ComparedCells:
        """Return the same cells; a bound that decisions (n,) miss becomes what they reach."""
        standing = map(Standing, self.table.constraints[1:], self.bounds)
        values = self.standing_values(decisions)
        loosened = (one.loosened(value) for one, value in zip(standing, values, strict=True))
        return replace(self, bounds=tuple(one.bound for one in loosened))

    @cached_property
    def is_compared(self) -> Mask:
        """Return the cells that a comparison depends on, (R, G)."""
        return np.any(self.compared_by_each, axis=0)

    @cached_property
    def compared_by_each(self) -> list[Mask]:
        """Return the cells that the comparisons of each constraint depend on, (R, G) each."""
        masks = []
        for comparisons in self.by_counts:
            used = np.zeros(self.table.shape, dtype=bool)
            for one in comparisons:
                for table in one.tables:
                    used.flat[table.cells] = True
            masks.append(used)
        return masks

    @cached_property
    def n_counted(self) -> Counts:
        """Return how many rows each number that is compared counts, shape (n_numbers,)."""
        sizes = self.sizes.ravel()
        counts = [
            int(sizes[is_counted].sum())
            for compared in self.by_counts
            for one in compared
            for table in one.tables
            for is_counted in table.counted
        ]
        return np.array(counts, dtype=np.int64)
