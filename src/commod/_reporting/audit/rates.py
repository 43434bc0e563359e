"""Compute fairness, group rates, changes and the exact limit from counts of people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._data.disclosure import FEWEST_DESCRIBED, MIN_CATEGORY_SIZE
from commod._record import (
    ChangeSummary,
    Estimate,
    Fairness,
    Group,
    Limit,
    Stratum,
    StratumGroup,
    StratumTable,
)
from commod._reporting.audit.counts import UNDEFINED, Coding, DecisionCounts, finite_or_none
from commod._reporting.audit.stated import StatedCells
from commod._statistics.intervals import share_estimate
from commod._statistics.promises import fairness_interval
from commod.bounds._counts import fewest_number
from commod.metrics._cells import worst_value
from commod.metrics._comparison import GroupComparison, comparisons
from commod.metrics._constraint import CONSTRAINTS, Constraint


def fairness_of_all(
    counts: DecisionCounts,
    cells: StatedCells,
    group_names: tuple[str, ...],
    outcome: str,
    other: str,
    level: float,
) -> tuple[Fairness, ...]:
    """Return every fairness metric of the compared groups, the stated ones first.

    `cells` have the stated constraints; `counts` and `group_names` are of the compared groups.
    `outcome` names the counted decision, `other` the other one; it is empty where nobody has it.
    """
    metrics = [*fairness_of_stated(counts, cells, group_names, outcome, other, level)]
    stated = [one.constraint for one in cells.stated]
    for constraint in CONSTRAINTS.values():
        if constraint not in stated:
            before, after = (_fairness(counts, constraint, a, level) for a in (False, True))
            labels = outcome, other, level
            record = _fairness_record(counts, constraint, before, after, *labels, asked=False)
            metrics.append(record)
    return tuple(metrics)


def fairness_of_stated(
    counts: DecisionCounts,
    cells: StatedCells,
    group_names: tuple[str, ...],
    outcome: str,
    other: str,
    level: float,
) -> tuple[Fairness, ...]:
    """Return the fairness metrics that the request states; parameters as in `fairness_of_all`."""
    metrics = []
    for i, one in enumerate(cells.stated):
        constraint = one.constraint
        before, after = (
            _fairness(counts, constraint, after, level)
            if constraint.is_simple
            else cells.estimate(i, after, level)
            for after in (False, True)
        )
        metrics.append(
            _fairness_record(
                counts,
                constraint,
                before,
                after,
                outcome,
                other,
                level,
                asked=True,
                bound=one.bound,
                is_kept=one.is_kept(after.value),
                strata=stratum_table(cells, i, group_names),
                is_approximate=not constraint.is_simple,
            )
        )
    return tuple(metrics)


def _fairness_record(
    counts: DecisionCounts,
    constraint: Constraint,
    before: Estimate,
    after: Estimate,
    outcome: str,
    other: str,
    level: float,
    **more: Any,
) -> Fairness:
    return Fairness(
        n=counts.n,
        constraints=constraint.name,
        metric=constraint.metric,
        higher_is_fairer=constraint.higher_is_fairer,
        definition=constraint.definition(outcome, other),
        before=before,
        after=after,
        outcome=outcome,
        other_outcome=other,
        other_before=_other_ratio(counts, constraint, False, other, level),
        other_after=_other_ratio(counts, constraint, True, other, level),
        title=constraint.metric_of(outcome),
        **more,
    )


def _fairness(
    counts: DecisionCounts, constraint: Constraint, after: bool, level: float
) -> Estimate:
    if not counts.is_comparable(constraint):
        return UNDEFINED
    return _estimate(constraint, *counts.table(constraint, after), level)


def _other_ratio(
    counts: DecisionCounts, constraint: Constraint, after: bool, other: str, level: float
) -> Estimate | None:
    """Return the P-rule of the other label; None for other metrics, which have no such twin."""
    if not (constraint.is_simple and constraint.has_other_ratio) or not other:
        return None
    if not counts.is_comparable(constraint):
        return UNDEFINED
    sizes, positives = counts.table(constraint, after)
    return _estimate(constraint, sizes, sizes - positives, level)


def _estimate(
    constraint: Constraint, sizes: NDArray[np.int64], positives: NDArray[np.int64], level: float
) -> Estimate:
    value = constraint.value_from_counts(sizes, positives)
    low, high = fairness_interval(constraint, sizes, positives, level)
    return Estimate(
        None if value is None else float(value), finite_or_none(low), finite_or_none(high)
    )


def changes_of(counts: DecisionCounts, favorable_is_positive: bool, level: float) -> ChangeSummary:
    """Return how many people change, and how many of them gain and lose."""
    n_gains, n_losses = counts.gains_and_losses(favorable_is_positive)
    n_changes = n_gains + n_losses
    rate = share_estimate(n_changes, counts.n, level)
    return ChangeSummary(counts.n, n_changes, n_gains, n_losses, rate)


# ---------------------------------------------------------------------------------------------
# Groups


def groups_of(
    counts: DecisionCounts,
    coding: Coding,
    mean_scores: tuple[NDArray[np.float64] | None, NDArray[np.float64] | None],
    sizes: NDArray[np.int64],
    is_compared: NDArray[np.bool_],
    level: float,
) -> tuple[Group, ...]:
    """Return each group before and after, including groups too small to be compared.

    `mean_scores` are before and after, each (n_groups,) or None where scores are not given.
    `sizes` (n_groups,) count hidden people, too, whom `counts` leave out.
    """
    gains_raise = coding.favorable_is_positive
    groups = []
    for i, name in enumerate(coding.group_names):
        group, compared = counts.of_groups([i]), bool(is_compared[i])
        is_described = compared or int(sizes[i]) >= FEWEST_DESCRIBED
        n_gains, n_losses = group.gains_and_losses(gains_raise) if is_described else (None, None)
        before, after = (
            None if means is None or not is_described else finite_or_none(means[i])
            for means in mean_scores
        )
        n_positive = int(group.cells[0, 1].sum()) if group.has_labels and is_described else None
        group_level = level if is_described else None
        groups.append(
            Group(
                name=name,
                n=int(sizes[i]),
                n_positive_labels=n_positive,
                compared=compared,
                n_gains=n_gains,
                n_losses=n_losses,
                **_rates(group, "before", gains_raise, group_level),
                **_rates(group, "after", gains_raise, group_level),
                mean_score_before=before,
                mean_score_after=after,
            )
        )
    return tuple(groups)


def _rates(
    counts: DecisionCounts, when: str, gains_raise: bool, level: float | None
) -> dict[str, Any]:
    """Return the rates of one group before or after, under the field names of `Group`.

    All are undefined where `level` is None; rates that need true labels are None without them.
    """

    def rate(count: Any, size: Any) -> Estimate:
        return UNDEFINED if level is None else share_estimate(count, size, level)

    n, by_decision = counts.n, counts.by_decision(when == "after")[0]  # true label, decision
    positive = int(by_decision[:, 1].sum())
    rates: dict[str, Estimate | None] = {
        "selected": rate(positive, n),
        "favorable": rate(positive if gains_raise else n - positive, n),
        "accuracy": None,
        "true_positive": None,
        "false_positive": None,
    }
    if counts.has_labels:
        rates["accuracy"] = rate(by_decision.trace(), n)
        rates["true_positive"] = rate(by_decision[1, 1], by_decision[1].sum())
        rates["false_positive"] = rate(by_decision[0, 1], by_decision[0].sum())
    return {f"{name}_{when}": estimate for name, estimate in rates.items()}


# ---------------------------------------------------------------------------------------------
# The limit


def allowed_moves(direction: str, favorable_is_positive: bool) -> dict[str, bool]:
    """Return whether decisions may become positive, and whether they may become negative."""
    is_raise = (direction == "gains_only") == favorable_is_positive
    return {
        "may_raise": direction == "any" or is_raise,
        "may_lower": direction == "any" or not is_raise,
    }


def limit_of(
    counts: DecisionCounts,
    cells: StatedCells,
    direction: str,
    favorable_is_positive: bool,
    blind: Estimate | None,
) -> Limit:
    """Return the fewest changes for the fairness that was reached, and for the target.

    `counts` are those of the compared groups, `cells` have the stated constraints.
    """
    moves = allowed_moves(direction, favorable_is_positive)
    gains = allowed_moves("gains_only", favorable_is_positive)
    find = _simple_limit(counts, cells) if cells.is_simple else _general_limit(cells)
    n_changes = sum(counts.gains_and_losses(favorable_is_positive))
    (n_fewest, is_fewest), (n_target, is_target) = (
        find(for_target, **moves) for for_target in (False, True)
    )
    return Limit(
        direction=direction,
        n_changes=n_changes,
        n_fewest=n_fewest,
        times=n_changes / n_fewest if n_fewest else None,
        n_gains_only=find(False, **gains)[0],
        n_target=n_target,
        n_target_gains_only=find(True, **gains)[0],
        is_exact=is_fewest and is_target,
        n_constraints=len(cells.stated),
        blind=blind,
    )


Fewest = Callable[..., tuple[int | None, bool]]  # the number, and whether it is exact


def _simple_limit(counts: DecisionCounts, cells: StatedCells) -> Fewest:
    """Return a function that finds the fewest changes of one simple constraint, exactly."""
    (stated,) = cells.stated
    constraint = stated.constraint
    is_comparable = counts.is_comparable(constraint)
    reached = None
    if is_comparable:
        reached = constraint.value_from_counts(*counts.table(constraint, after=True))

    def fewest(for_target: bool, **moves: bool) -> tuple[int | None, bool]:
        target = stated.bound if for_target else reached
        if target is None or not is_comparable:
            return None, True
        table = counts.table(constraint, after=False)
        return fewest_number(constraint, *table, target, **moves), True

    return fewest


def _general_limit(cells: StatedCells) -> Fewest:
    """Return a function that finds the fewest changes, or a proven lower bound."""
    reached = cells.reached_bounds()
    stated = [one.bound for one in cells.stated]
    # without its own target, the first constraint asks for nothing that could be missed
    is_stated = stated[0] is not None

    def fewest(for_target: bool, **moves: bool) -> tuple[int | None, bool]:
        if for_target and not is_stated:
            return None, True
        bounds = stated if for_target else reached
        found = cells.fewest(bounds, **moves)
        return (None, True) if found is None else (found.lower_bound, found.is_exact)

    return fewest


# ---------------------------------------------------------------------------------------------
# List the strata of a conditional constraint, without figures that tell about few people

IntArray = NDArray[np.int64]


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


def _is_listed(cells: StatedCells, column: str) -> Mask:
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
    positives: tuple[Floats, Floats]

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
