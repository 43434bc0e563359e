"""List the strata of a conditional constraint, without figures that tell about few people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from commod._data.arrays import Floats, Mask
from commod._data.disclosure import FEWEST_DESCRIBED, MIN_CATEGORY_SIZE
from commod._record.audit import Stratum, StratumGroup, StratumTable
from commod._reporting.audit.people import IntArray, ShownPeople, finite_or_none
from commod.metrics._cells import GroupComparison, comparisons, worst_value
from commod.metrics._constraint import Constraint


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


def stratum_table(counted: ShownPeople, i: int) -> StratumTable:
    """Return the strata of the i-th constraint, which has a condition."""
    constraint, lines, in_cells = counted.stated[i].constraint, counted.merged, counted.in_cells
    within, (strata, why_undefined) = constraint.within, counted.strata[i]
    assert within is not None
    column = lines.conditions[within.column]
    labels = () if why_undefined else strata.labels
    people = _people_compared(counted, i)
    n_all = int(lines.n[in_cells.group >= 0].sum())
    is_listed = dict(zip(column.labels, _is_listed(counted, within.column), strict=True))
    # one comparison per stratum, also where the constraint bounds their average
    every = replace(constraint, within=within._replace(over="every"))
    compared: dict[int | None, list[GroupComparison]] = {}
    rows = in_cells.row_strata[i], in_cells.row_label, in_cells.weights
    for one in comparisons(every, *rows, strata.is_compared):
        compared.setdefault(one.stratum, []).append(one)
    positives = [
        in_cells.counts(decided)[1].astype(np.float64).ravel()
        for decided in (lines.before, lines.after)
    ]
    listed = [
        _stratum(str(label), every, compared[s], positives, people[s], counted.compared_names)
        for s, label in enumerate(labels)
        if is_listed[label]
    ]
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


def _people_compared(counted: ShownPeople, i: int) -> IntArray:
    """Return the people of each stratum and group that are compared, (n_strata, G)."""
    strata, group, n_groups = (
        counted.strata[i][0],
        counted.in_cells.group,
        counted.in_cells.n_groups,
    )
    is_counted = (strata.codes >= 0) & (group >= 0)
    cell = strata.codes[is_counted] * n_groups + group[is_counted]
    n = np.bincount(cell, counted.merged.n[is_counted], minlength=strata.is_compared.size)
    return np.where(strata.is_compared, n.reshape(strata.is_compared.shape), 0).astype(np.int64)


def _is_listed(counted: ShownPeople, column: str) -> Mask:
    """Return which values of a column can be listed, the same for all constraints within it."""
    lines, values = counted.merged, counted.merged.conditions[column]
    compared: set[object] = set()
    by_label = False
    for one, (strata, why_undefined) in zip(counted.stated, counted.strata, strict=True):
        within = one.constraint.within
        if within is not None and within.column == column and not why_undefined:
            compared.update(strata.labels)
            by_label |= one.constraint.needs_labels
    candidates = np.array([label in compared for label in values.labels], dtype=bool)
    known = lines.groups.codes >= 0
    label = lines.label if by_label and lines.label is not None else np.zeros_like(known)
    n_cells = 2 * len(counted.is_compared)
    cell = values.codes * n_cells + 2 * lines.groups.codes + label
    sizes = np.bincount(cell[known], lines.n[known], minlength=len(candidates) * n_cells)
    return listed_strata(sizes.reshape(-1, n_cells).astype(np.int64), candidates)


def _stratum(
    name: str,
    constraint: Constraint,
    compared: Sequence[GroupComparison],
    positives: Sequence[Floats],
    people: IntArray,
    group_names: Sequence[str],
) -> Stratum:
    """Return a stratum; `positives` are those of all cells before and after, `people` (G,)."""
    before, after = (finite_or_none(worst_value(constraint, compared, x)) for x in positives)
    tables = [table for one in compared for table in one.tables]
    numbers = [[table.values(x) for table in tables] for x in positives]
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
