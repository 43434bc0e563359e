"""Say what is expected of an update on new people, and what would help where that is not enough."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from commod._data.disclosure import FEWEST_DESCRIBED
from commod._text import n_of, shown
from commod.metrics._constraint import Constraint
from commod.updates._found_update import LEVEL, Expectation
from commod.updates._left_out import GroupText
from commod.updates._problem import FitProblem


def store_expectation(update: Any, expectation: Expectation | None) -> None:
    """Store the figures that are expected on new people; NaN where none are."""
    names = [one.name for one in update.stated().constraints]
    known = Expectation.unknown(len(names)) if expectation is None else expectation
    update.expected_values_ = dict(zip(names, known.values, strict=True))
    update.expected_fairness_ = known.values[0]
    update.expected_interval_ = known.interval
    update.expected_change_rate_ = known.change_rate
    update.expected_accuracy_ = known.accuracy


def expectation_texts(
    update: Any, problem: FitProblem, goal: str, expectation: Expectation, groups: str
) -> Iterator[str]:
    """Yield what is expected on new people, the goal first.

    `goal` is such as "P-rule of label 1 ≥ 0.8"; `groups` names the groups that are compared, where
    others are left out.
    """
    people = f"on as many new people {groups}".rstrip()
    if not expectation.is_known:
        yield f"Nothing can be expected {people}: {_smallest_cell(problem)}, which is too few."
        return
    value, (low, high) = expectation.values[0], expectation.interval
    interval = f"{LEVEL:.0%} interval for a sample: {low:.3f} to {high:.3f}"
    if update._is_budget:
        yield f"The {update.compared_text().metric} expected {people} is {value:.3f} ({interval})."
    elif expectation.is_reached:
        but = ", but this is no success" if update._is_degenerate else ""
        yield f"{goal} is expected {people}: {value:.3f} ({interval}){but}."
    else:
        yield f"{goal} is not expected {people}: {value:.3f} is ({interval})."
        if problem.constraint.is_met(update.fairness_, update.target_):
            yield (
                f"No update of these columns is expected to reach it with "
                f"{problem.rows.n_people:,} rows; {_smallest_cell(problem)}."
            )
    text = f"{expectation.change_rate:.1%} of their decisions are expected to change"
    if not np.isnan(expectation.accuracy):
        text += f", with an accuracy of {expectation.accuracy:.3f}"
    yield f"{text}."


def round_up(n_rows: float) -> int:
    """Return a number of rows rounded up to two significant digits."""
    step = 10 ** max(0, int(np.floor(np.log10(max(n_rows, 1)))) - 1)
    return int(np.ceil(n_rows / step) * step)


def _smallest_cell(problem: FitProblem) -> str:
    return smallest_cell_text(problem).named


def smallest_cell_text(problem: FitProblem) -> GroupText:
    """Return the size of the smallest cell in words; files get it without the name of the group.

    A cell is a group in a stratum of one constraint, with the true label where that counts.
    """
    size, name = min(_compared_cells(problem), key=lambda cell: cell[0])
    few = f"fewer than {FEWEST_DESCRIBED} rows" if size < FEWEST_DESCRIBED else n_of(size, "row")
    return GroupText(f"the smallest cell, {name}, has {few}", f"the smallest cell has {few}")


def _compared_cells(problem: FitProblem) -> Iterator[tuple[int, str]]:
    """Yield the size of each cell that a constraint compares, and the cell in words."""
    compared, table = problem.compared, problem.compared.table
    for constraint, rows, used in zip(
        table.constraints, table.rows, compared.compared_by_each, strict=True
    ):
        label = np.where(constraint.needs_labels, rows.label, -1)
        keys = np.stack([rows.stratum, label], axis=1)
        for stratum, value in np.unique(keys, axis=0).tolist():
            lines = (keys == (stratum, value)).all(axis=1)
            sizes = (compared.sizes * used)[lines].sum(axis=0)
            for group in np.flatnonzero(used[lines].any(axis=0)).tolist():
                yield int(sizes[group]), _cell_name(problem, constraint, group, stratum, value)


def _cell_name(
    problem: FitProblem, constraint: Constraint, group: int, stratum: int, label: int
) -> str:
    """Return a cell in words: its group and, where it counts, its stratum and true label."""
    compared = np.flatnonzero(problem.rows.is_large_group)
    name = f"group {shown(problem.rows.group_names[compared[group]])}"
    if constraint.within is not None:
        value = problem.rows.strata_of(constraint).labels[stratum]
        name = f"{name} with {constraint.within.column} {shown(value)}"
    if label < 0:
        return name
    return f"{name} with a {'positive' if label else 'negative'} true label"
