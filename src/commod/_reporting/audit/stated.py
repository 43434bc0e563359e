"""Measure the stated constraints of a request: values, intervals, fewest changes, and strata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._data.disclosure import FEWEST_DESCRIBED, MIN_CATEGORY_SIZE
from commod._data.groups import Groups, read_condition, read_control_features
from commod._record import Estimate, Stratum, StratumGroup, StratumTable
from commod._reporting.audit.people import UNDEFINED, AuditedPeople, IntArray, finite_or_none
from commod._statistics.promises import sampled_interval
from commod.bounds._general import fewest_changes
from commod.exceptions import InputError
from commod.metrics._cells import GroupComparison, comparisons, worst_value
from commod.metrics._constraint import Constraint
from commod.metrics._language import FairnessConstraint
from commod.metrics._people import Bound, People, Strata, strata_of

TIME_LIMIT = 1.0  # seconds for each number of fewest changes


def read_conditions(
    names: Sequence[str], X: Any, control_features: Any, n_rows: int
) -> dict[str, Groups]:
    """Return the columns of conditions, from `control_features` where given, else from X."""
    if not names:
        return {}
    if control_features is not None:
        given = read_control_features(control_features, n_rows)
        return {name: given.strata(name) for name in names}
    if X is None:
        raise InputError(
            f"The request compares people within {names[0]!r}, and that column is not known here. "
            f"Pass it as control_features=data[{names[0]!r}], or among the columns of X.",
            parameter="control_features",
        )
    return {name: read_condition(X, name) for name in names}


@dataclass(frozen=True, eq=False)
class StatedCells:
    """The cells of the stated constraints, counted from lines of people.

    `is_compared` (n_groups,) says which groups are large enough. Strata need at least five rows per
    group even where the condition allows fewer: values tell about these people.
    """

    stated: tuple[FairnessConstraint, ...]
    lines: AuditedPeople
    is_compared: Mask

    @cached_property
    def group(self) -> NDArray[np.intp]:
        """Return the number of each line's group among the compared ones, (k,); −1 if it is not."""
        number = np.where(self.is_compared, np.cumsum(self.is_compared) - 1, -1)
        return np.append(number, -1)[self.lines.groups.codes]  # −1: the last entry

    @property
    def n_groups(self) -> int:
        """Return the number of compared groups."""
        return int(self.is_compared.sum())

    @cached_property
    def _read_strata(self) -> tuple[tuple[Strata, str], ...]:
        return tuple(self._strata(one.constraint) for one in self.stated)

    def strata(self, i: int) -> Strata:
        """Return the strata of the i-th constraint."""
        return self._read_strata[i][0]

    def why_undefined(self, i: int) -> str:
        """Return why a condition leaves nothing to compare; empty where it does not."""
        return self._read_strata[i][1]

    def _strata(self, constraint: Constraint) -> tuple[Strata, str]:
        within = constraint.within
        n_lines = len(self.lines.n)
        if within is None:
            return Strata.everybody(n_lines, self.n_groups), ""
        least = max(within.min_rows, FEWEST_DESCRIBED)
        constraint = replace(constraint, within=within._replace(min_rows=least))
        column = self.lines.conditions[within.column]
        cells = (column.codes.astype(np.intp), column.labels, self.group, self.n_groups)
        try:
            if self.n_groups < constraint.min_groups:
                raise InputError("fewer than two groups are large enough.")
            return strata_of(constraint, *cells, self.lines.label, n_people=self.lines.n), ""
        except InputError as error:
            nothing = np.zeros((1, self.n_groups), dtype=bool)
            codes = np.full(n_lines, -1, dtype=np.intp)
            return Strata(codes, ("",), nothing, len(column.labels)), str(error)

    @cached_property
    def people(self) -> People:
        """Return the lines as people of compared groups."""
        return People(
            tuple(one.constraint for one in self.stated),
            self.group,
            self.n_groups,
            label=self.lines.label,
            each=self.lines.n.astype(np.float64),
            strata={one.constraint: self.strata(i) for i, one in enumerate(self.stated)},
        )

    def decided(self, after: bool) -> Mask:
        """Return which lines have a positive decision before or after, (k,)."""
        return self.lines.after if after else self.lines.before

    def positives(self, after: bool) -> Floats:
        """Return the people of each cell with a positive decision before or after, (R, G)."""
        return self.people.counts(self.decided(after))[1].astype(np.float64)

    def estimate(self, i: int, after: bool, level: float) -> Estimate:
        """Return the i-th metric with an approximate interval, from simulated samples."""
        constraint = self.stated[i].constraint
        if not self.n_groups:
            return UNDEFINED
        compared = self.people.by_counts[i]
        value = finite_or_none(worst_value(constraint, compared, self.positives(after).ravel()))
        if value is None:
            return UNDEFINED
        rates, sizes = self.people.rates(self.decided(after)), self.people.weights
        low, high = sampled_interval(constraint, self.people.by_rates[i], sizes, rates, level)
        # Samples look less fair than the people they come from, so these may be fairer than the
        # fairest samples: as far from the value as the least fair samples are.
        if constraint.higher_is_fairer:
            high = min(max(high, 2 * value - low, value), constraint.largest)
            low = min(low, value)
        else:
            low = max(min(low, 2 * value - high, value), 0.0)
            high = max(high, value)
        return Estimate(value, finite_or_none(low), finite_or_none(high))

    def fewest(self, for_target: bool, **moves: bool) -> tuple[int | None, bool]:
        """Return the fewest changes, or a proven lower bound, and whether it is exact.

        They are those for the bounds of the request, or those that the update keeps. The number is
        None where it is undefined, and where no number of changes is enough.
        """
        # without its own target, the first constraint asks for nothing
        bounds: list[Bound] = [one.bound for one in self.stated]
        if not for_target:
            bounds = self.people.reached_bounds(self.lines.after, bounds)
        question: dict[str, Any] = {"time_limit": TIME_LIMIT, **moves}
        known = fewest_changes(self.people, self.lines.before, bounds, **question)
        return (None, True) if known is None else (int(known.lower_bound), known.is_exact)


# ---------------------------------------------------------------------------------------------
# List the strata of a conditional constraint, without figures that tell about few people


def listed_strata(sizes: IntArray, candidates: Mask) -> Mask:
    """Return which strata can be listed, (n_strata,), so that no small cell can be computed.

    `sizes` (n_strata, n_cells) are people by stratum, and by group or by group and true label. The
    totals of groups are published, and other parts of an audit may tell those of a stratum. So a
    stratum is listed only if each of its cells has nobody or enough people. The strata that are not
    listed add up to nobody or enough people in each column, too: else a further stratum, the
    smallest that helps, is not listed.

    Examples
    --------
    The second stratum has a cell of three people. The first one minus the total would reveal them.

    >>> sizes = np.array([[50, 60], [40, 3], [70, 80]])
    >>> listed_strata(sizes, np.ones(3, dtype=bool)).tolist()
    [False, False, True]
    """

    def is_few(people: IntArray) -> Mask:
        return np.asarray((people > 0) & (people < FEWEST_DESCRIBED))

    listed = candidates & ~is_few(sizes).any(axis=1) & (sizes.sum(axis=1) >= MIN_CATEGORY_SIZE)
    while (few := is_few(sizes[~listed].sum(axis=0))).any():
        helping = np.flatnonzero(listed & (sizes[:, few] > 0).any(axis=1))
        if not len(helping):
            return np.zeros_like(listed)
        listed[helping[sizes[helping].sum(axis=1).argmin()]] = False
    return listed


def stratum_table(cells: StatedCells, i: int, group_names: tuple[str, ...]) -> StratumTable | None:
    """Return the strata of the i-th constraint; None where it has no condition.

    `group_names` are those of the compared groups.
    """
    constraint = cells.stated[i].constraint
    within = constraint.within
    if within is None:
        return None
    strata, column = cells.strata(i), cells.lines.conditions[within.column]
    is_undefined = bool(cells.why_undefined(i))
    labels = () if is_undefined else strata.labels
    people = _people_compared(cells, i)
    n_all = int(cells.lines.n[cells.group >= 0].sum())
    is_listed = _is_listed(cells, within.column)
    position = {label: number for number, label in enumerate(column.labels)}
    shown = [s for s, label in enumerate(labels) if is_listed[position[label]]]
    figures = _StratumFigures.of(cells, i)
    listed = [figures.stratum(s, str(labels[s]), people[s], group_names) for s in shown]
    fairness = {True: 1.0, False: -1.0}[constraint.higher_is_fairer]
    listed.sort(key=lambda one: (-np.inf if one.after is None else fairness * one.after, one.name))
    return StratumTable(
        column=within.column,
        over=within.over,
        min_rows=max(within.min_rows, FEWEST_DESCRIBED),
        measures=tuple(measure.name for measure in constraint.measures),
        n_strata=len(column.labels),
        n_compared=len(labels),
        n_people=int(people.sum()),
        n_left_out=strata.n_left_out,
        n_people_left_out=n_all - int(people.sum()),
        n_hidden=len(labels) - len(listed),
        listed=tuple(listed),
    )


def _people_compared(cells: StatedCells, i: int) -> IntArray:
    """Return the people of each stratum and group that are compared, (n_strata, G)."""
    strata, n_groups = cells.strata(i), cells.n_groups
    counted = (strata.codes >= 0) & (cells.group >= 0)
    cell = strata.codes[counted] * n_groups + cells.group[counted]
    n = np.bincount(cell, cells.lines.n[counted], minlength=strata.is_compared.size)
    return np.where(strata.is_compared, n.reshape(strata.is_compared.shape), 0).astype(np.int64)


def _is_listed(cells: StatedCells, column: str) -> Mask:
    """Return which values of a column can be listed, the same for all constraints within it."""
    lines, values = cells.lines, cells.lines.conditions[column]
    candidates = np.zeros(len(values.labels), dtype=bool)
    by_label = False
    for i, one in enumerate(cells.stated):
        within = one.constraint.within
        if within is not None and within.column == column and not cells.why_undefined(i):
            candidates |= np.isin(np.arange(len(values.labels)), _positions(cells, i, column))
            by_label |= one.constraint.needs_labels
    known = lines.groups.codes >= 0
    label = lines.label if by_label and lines.label is not None else np.zeros_like(known)
    n_cells = 2 * len(cells.is_compared)
    cell = values.codes * n_cells + 2 * lines.groups.codes + label
    sizes = np.bincount(cell[known], lines.n[known], minlength=len(candidates) * n_cells)
    return listed_strata(sizes.reshape(-1, n_cells).astype(np.int64), candidates)


def _positions(cells: StatedCells, i: int, column: str) -> list[int]:
    position = {label: k for k, label in enumerate(cells.lines.conditions[column].labels)}
    return [position[label] for label in cells.strata(i).labels]


@dataclass(frozen=True)
class _StratumFigures:
    """A constraint with one comparison per stratum, also where it bounds their average.

    `positives` are those of all cells before and after.
    """

    constraint: Constraint
    compared: Mapping[int | None, Sequence[GroupComparison]]
    positives: tuple[Floats, Floats]

    @classmethod
    def of(cls, cells: StatedCells, i: int) -> _StratumFigures:
        constraint = cells.stated[i].constraint
        assert constraint.within is not None
        every = replace(constraint, within=constraint.within._replace(over="every"))
        compared: dict[int | None, list[GroupComparison]] = {}
        people = cells.people
        rows = people.row_strata[i], people.row_label, people.weights
        for one in comparisons(every, *rows, cells.strata(i).is_compared):
            compared.setdefault(one.stratum, []).append(one)
        before, after = (cells.positives(after).ravel() for after in (False, True))
        return cls(every, compared, (before, after))

    def stratum(self, s: int, name: str, people: IntArray, group_names: tuple[str, ...]) -> Stratum:
        compared = self.compared[s]
        before, after = (
            finite_or_none(worst_value(self.constraint, compared, x)) for x in self.positives
        )
        tables = [table for one in compared for table in one.tables]
        numbers = [[table.values(x) for table in tables] for x in self.positives]
        groups = tuple(
            StratumGroup(
                name=group_names[g],
                n=int(people[g]),
                before=tuple(finite_or_none(values[k]) for values in numbers[0]),
                after=tuple(finite_or_none(values[k]) for values in numbers[1]),
            )
            for k, g in enumerate(compared[0].groups)
        )
        return Stratum(name, int(people.sum()), before, after, groups)
