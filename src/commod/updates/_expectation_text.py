"""Say what is expected of an update on new people, and what would help where that is not enough."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from commod._data.disclosure import FEWEST_DESCRIBED
from commod._text import most_change_text, n_of, shown
from commod.metrics._constraint import Constraint
from commod.updates._constraint_values import store_expected_values
from commod.updates._expectation import Expectation, strictest_target
from commod.updates._fitted_update import FittedUpdate
from commod.updates._left_out import GroupText
from commod.updates._problem import FitProblem
from commod.updates._soft_cells import N_FOLDS


def store_expectation(update: Any, fitted: FittedUpdate) -> None:
    """Store the figures that are expected on new people; NaN where none are."""
    expectation = fitted.expectation
    update.cells_ = "true" if fitted.problem.soft_cells is None else "soft"
    update.internal_target_ = update._target
    names = ("fairness", "change_rate", "accuracy")
    spread = dict.fromkeys(names, float("nan"))
    update.expected_fairness_ = update.expected_change_rate_ = float("nan")
    update.expected_accuracy_ = float("nan")
    if expectation is not None:
        figures = expectation.figures
        update.internal_target_ = float(expectation.internal_target)
        update.expected_fairness_ = float(figures.fairness)
        update.expected_change_rate_ = float(figures.change_rate)
        update.expected_accuracy_ = float(figures.accuracy)
        spread = {name: float(value) for name, value in figures.spread._asdict().items()}
    update.expected_spread_ = spread
    standing = () if expectation is None else expectation.figures.standing
    store_expected_values(update, update.expected_fairness_, standing)


def expectation_texts(
    update: Any, problem: FitProblem, goal: str, expectation: Expectation, groups: str
) -> Iterator[str]:
    """Yield what is expected on new people, the goal first.

    `goal` is such as "P-rule of label 1 ≥ 0.8"; `groups` names the groups that are compared, where
    others are left out.
    """
    people = f"on as many new people {groups}".rstrip()
    if np.isnan(expectation.figures.fairness):
        yield f"Nothing can be expected {people}: {_smallest_cell(problem)}, which is too few."
        return
    if update._is_budget:
        yield f"The {update.compared_text().metric} expected {people} is {_expected(expectation)}."
    elif expectation.is_reached:
        but = ", but this is no success" if most_change_text(update.change_rate_) else ""
        yield f"{goal} is expected {people}: {_expected(expectation)}{but}."
    else:
        yield f"{goal} is not expected {people}: {_expected(expectation)} is."
        yield from missing_texts(problem, update.target_, update.fairness_, expectation)
    yield from figures_texts(problem, expectation)


def figures_texts(problem: FitProblem, expectation: Expectation) -> Iterator[str]:
    """Yield the other expected figures, and how samples differ from an expectation."""
    figures = expectation.figures
    text = f"{figures.change_rate:.1%} of their decisions are expected to change"
    if not np.isnan(figures.accuracy):
        text += f", with an accuracy of {figures.accuracy:.3f}"
    yield f"{text}."
    source = f"the {N_FOLDS} folds that it was measured on"
    if expectation.n_outside is not None:
        n_rows = f"the {expectation.n_outside:,} rows outside the search sample"
        source = f"{N_FOLDS} parts of {n_rows}, which it was measured on"
    worse = "fall below" if problem.constraint.higher_is_fairer else "lie above"
    if expectation.is_carried:
        source = "the parts that the search before the edit was measured on"
        yield (
            "Edited points fit these rows no better than searched ones, so new people are expected "
            "to lose as much as with the update before the edit."
        )
    yield (
        f"About half of all samples {worse} an expectation. Over {source}, the standard "
        f"deviation is {figures.spread.fairness:.3f}."
    )


def missing_texts(
    problem: FitProblem, target: float, fit_value: float, expectation: Expectation
) -> Iterator[str]:
    """Yield why a target is not expected, the smallest cell, and how many rows would help."""
    constraint, n_rows = problem.constraint, problem.rows.n_people
    if not constraint.is_met(fit_value, target):
        return  # it is not reached on the fit rows either
    if expectation.is_carried:
        return  # stricter targets were not tried
    if not expectation.has_tried_all:
        yield (
            f"With {n_rows:,} rows, stricter targets on the fit rows change different people from "
            f"fold to fold; {_smallest_cell(problem)}."
        )
        return
    yield (
        f"No update of these columns is expected to reach it with {n_rows:,} rows; "
        f"{_smallest_cell(problem)}."
    )
    strictest = strictest_target(constraint, target)
    needed = rows_needed(n_rows, target, strictest, expectation.figures.fairness)
    if np.isfinite(needed):
        yield (
            f"About {round_up(needed):,} rows would be enough, if the part that is lost on new "
            "people falls with the square root of their number."
        )


def rows_needed(n_rows: int, target: float, strictest: float, expected: float) -> float:
    """Return about how many rows a target needs, infinite where no number is enough.

    With `n_rows`, the strictest internal target lets a fairness be `expected` on new people. What
    is lost between the two is taken to fall with the square root of the number of rows.

    Examples
    --------
    >>> rows_needed(1000, target=0.9, strictest=0.98, expected=0.82)
    4000.0
    """
    lost, allowed = abs(strictest - expected), abs(strictest - target)
    return float(round(n_rows * (lost / allowed) ** 2)) if allowed > 0 else float("inf")


def round_up(n_rows: float) -> int:
    """Return a number of rows rounded up to two significant digits."""
    step = 10 ** max(0, int(np.floor(np.log10(max(n_rows, 1)))) - 1)
    return int(np.ceil(n_rows / step) * step)


def _expected(expectation: Expectation) -> str:
    return f"{expectation.figures.fairness:.3f}"


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
