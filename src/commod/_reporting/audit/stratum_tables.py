"""List the strata of a conditional constraint, without figures that tell about few people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from commod._data.disclosure import FEWEST_DESCRIBED, MIN_CATEGORY_SIZE
from commod._record import Stratum, StratumGroup, StratumTable
from commod._reporting.audit.counts import finite_or_none
from commod._reporting.audit.stated import StatedCells
from commod.metrics._cells import worst_value
from commod.metrics._comparison import GroupComparison, comparisons
from commod.metrics._constraint import Constraint

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def listed_strata(sizes: IntArray, candidates: BoolArray) -> BoolArray:
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

    def is_few(people: IntArray) -> BoolArray:
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
    strata, column = cells.strata(i), cells.lines.columns[within.column]
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


def _is_listed(cells: StatedCells, column: str) -> BoolArray:
    """Return which values of a column can be listed, the same for all constraints within it."""
    lines, values = cells.lines, cells.lines.columns[column]
    candidates = np.zeros(len(values.labels), dtype=bool)
    by_label = False
    for i, one in enumerate(cells.stated):
        within = one.constraint.within
        if within is not None and within.column == column and not cells.why_undefined(i):
            candidates |= np.isin(np.arange(len(values.labels)), _positions(cells, i, column))
            by_label |= one.constraint.needs_labels
    known = lines.group >= 0
    label = lines.label if by_label and lines.label is not None else np.zeros_like(known)
    n_cells = 2 * len(cells.is_compared)
    cell = values.codes * n_cells + 2 * lines.group + label
    sizes = np.bincount(cell[known], lines.n[known], minlength=len(candidates) * n_cells)
    return listed_strata(sizes.reshape(-1, n_cells).astype(np.int64), candidates)


def _positions(cells: StatedCells, i: int, column: str) -> list[int]:
    position = {label: k for k, label in enumerate(cells.lines.columns[column].labels)}
    return [position[label] for label in cells.strata(i).labels]


@dataclass(frozen=True)
class _StratumFigures:
    """A constraint with one comparison per stratum, also where it bounds their average.

    `positives` are those of all cells before and after.
    """

    constraint: Constraint
    compared: Mapping[int | None, Sequence[GroupComparison]]
    positives: tuple[FloatArray, FloatArray]

    @classmethod
    def of(cls, cells: StatedCells, i: int) -> _StratumFigures:
        constraint = cells.stated[i].constraint
        assert constraint.within is not None
        every = replace(constraint, within=constraint.within._replace(over="every"))
        compared: dict[int | None, list[GroupComparison]] = {}
        rows = (cells.table.rows[i], cells.sizes, cells.strata(i).is_compared)
        for one in comparisons(every, *rows):
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
