"""Build the task of a search: who may change, who is worth changing, and which terms count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.encoding import BinTerms
from commod._solvers.search.annealing import RESTART_FACTOR, LearningRows, SearchTask
from commod._solvers.search.credibility import credibility
from commod._solvers.search.design import Design
from commod._solvers.search.quasi_newton import Bounds
from commod.updates._problem import FitProblem

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]
Counts = NDArray[np.int64]

# Several comparisons have more local minima than one.
RESTART_FACTOR_OF_SEVERAL = 1.2
MIN_ERROR_WEIGHT = 0.02  # of a row whose change would introduce an error, in initial directions


def acting_rows(problem: FitProblem, index: Rows) -> Rows:
    """Return the positions in `index` (m,) of the rows whose decision may change.

    Only these rows move a rate or cost anything, so a search does not look at the others. Where no
    row may change, all positions are returned: a search needs rows.
    """
    may_change = problem.may_change[index]
    return np.flatnonzero(may_change) if may_change.any() else np.arange(len(index))


def search_task(
    problem: FitProblem, target: float, index: Rows, people: Floats | None, acting: Rows
) -> SearchTask:
    """Return the task of a search on the rows `index` (m,), of which those at `acting` may change.

    The columns of its design include the distance from the threshold where the problem has it.
    """
    rows, acting_index = problem.rows, index[acting]
    everyone = len(acting_index) == len(rows)
    terms = problem.terms if everyone else problem.terms.take(acting_index)
    design = Design.of(terms, *problem.moments)
    names = np.array(problem.encoding.term_columns, dtype=object)[design.terms]
    position = {name: i for i, name in enumerate(dict.fromkeys(names))}
    weight = rows.weight[index] * (1.0 if people is None else people)
    if problem.accuracy_weight and rows.label is not None:
        is_right = (1 - problem.expected_gain[index]) / 2
        weight = weight * np.maximum(1 - problem.accuracy_weight * is_right, MIN_ERROR_WEIGHT)
    masks = worth_changing(problem, target, index)
    learning = None
    if len(acting) < len(index):
        whole = problem.terms if people is None else problem.terms.take(index)
        learning = LearningRows(Design.of(whole, *problem.moments), masks, weight)
    effects = problem.search_effects(index, people)
    limit = problem.limit(target)
    task = SearchTask(
        design=design,
        effects=effects.take(acting),
        inequalities=problem.inequalities(target, effects),
        columns=np.array([position[name] for name in names], dtype=np.intp),
        weight=weight[acting],
        worth_changing=[mask[acting] for mask in masks],
        learning=learning,
        bounds=_bounds(problem, names),
        sparsity=problem.sparsity,
        limit=limit if np.isfinite(limit) else 0.0,
        restart_factor=RESTART_FACTOR if problem.is_simple else RESTART_FACTOR_OF_SEVERAL,
        known=problem.known_share,
        reads=problem.is_distance[design.terms],
        max_lines=_max_lines(problem),
    )
    kept = _credibility(problem, masks, index)[design.terms]
    return task if (kept == 1).all() else replace(task, credibility=kept).select(kept > 0)


def _max_lines(problem: FitProblem) -> int | None:
    """Return the most lines of a search; one of them may go to the distance later."""
    if problem.max_lines is None:
        return None
    return max(problem.max_lines - int(problem.is_distance.any()), 1)


def begin_at(task: SearchTask, masks: list[Mask], acting: Rows) -> dict[str, Any]:
    """Return the fields of a task that begins at other rows worth changing, `masks` (m,)."""
    learning = task.learning and task.learning._replace(worth_changing=masks)
    return {"worth_changing": [mask[acting] for mask in masks], "learning": learning}


def _credibility(problem: FitProblem, masks: list[Mask], index: Rows) -> Floats:
    """Return the share of its weight that each term keeps, (n_terms,); 0 for terms left out.

    Points are fitted on the rows `index` (m,), so the bar for a category counts these rows.
    `masks` (m,) are the rows worth changing.
    """
    sample = problem.terms.take(index)
    n_people = sample.n_people(problem.rows.weight[index])
    categories = [
        codes
        for codes, first in zip(sample.codes.T, sample.code_terms, strict=True)
        if _is_category(problem, int(first))
    ]
    kept = credibility(
        categories,
        sample.n_terms,
        masks,
        problem.rows.base.decisions[index],
        problem.may_change[index],
    )
    kept[n_people < problem.min_category_size] = 0.0
    return kept


def _is_category(problem: FitProblem, term: int) -> bool:
    """Return whether a term is a category of a raw column, not a bin or a missing number."""
    kinds = problem.encoding.kinds
    return kinds[problem.encoding.term_columns[term]] == "category"


def _bounds(problem: FitProblem, names: NDArray[np.object_]) -> Bounds | None:
    """Return the signs that each weight of η = −r may have; None where all are free."""
    if not problem.monotone:
        return None
    bounds = {1: (None, 0.0), -1: (0.0, None), 0: (None, None)}
    signs = [problem.monotone.get(name, 0) * (not _is_binned(problem, name)) for name in names]
    return [bounds[sign] for sign in signs]


def _is_binned(problem: FitProblem, name: str) -> bool:
    """Return whether a column is in bins: its order is then no sign of the weights."""
    return any(isinstance(c, BinTerms) and c.name == name for c in problem.encoding.columns)


def worth_changing(problem: FitProblem, target: float, index: NDArray[np.intp]) -> list[Mask]:
    """Return masks (m,) of the rows worth changing, one for each way to begin.

    The exact limit says how many positives each cell should gain or lose. A row is worth changing
    where its change moves its cell that way.
    """
    masks: list[Mask] = []
    for may_raise, may_lower in _directions_to_begin(problem):
        fewest = problem.fewest_moves(target, may_raise=may_raise, may_lower=may_lower)
        for moves in [] if fewest is None else _ways_to_begin(problem, fewest):
            mask = _rows_to_move(problem, moves)[index]
            if 0 < mask.sum() < len(mask) and not any((mask == other).all() for other in masks):
                masks.append(mask)
    return masks or [problem.may_change[index]]


def _directions_to_begin(problem: FitProblem) -> list[tuple[bool, bool]]:
    """Return the directions of changes whose exact limits say how a search begins.

    A search in both directions begins from what each of them found alone. Caps may forbid changes
    in one direction alone, so it then begins from their limits, too.
    """
    directions = [(problem.may_raise, problem.may_lower)]
    if all(directions[0]) and problem.caps.any():
        directions += [(True, False), (False, True)]
    return directions


def _ways_to_begin(problem: FitProblem, moves: Counts) -> list[Counts]:
    """Return the moves of all cells and, for three or more groups, the furthest moves alone.

    One direction cannot separate three groups. Where one of them must change far more than the
    others, a search for this group alone often begins better.
    """
    if moves.shape[1] == 2:
        return [moves]
    sizes, positives = problem.counts(problem.rows.base.decisions)
    room = np.where(moves > 0, sizes - positives, positives)
    share = np.abs(moves) / np.maximum(room, 1)
    return [moves, np.where(share >= 0.5 * share.max(), moves, 0)]


def _rows_to_move(problem: FitProblem, moves: Counts) -> Mask:
    """Return the rows (n,) whose change moves the count of their cell the right way."""
    move = np.append(moves.ravel(), 0)[problem.cells.index]  # −1 points at the added zero
    decisions = problem.rows.base.decisions
    return np.asarray(np.where(decisions, move < 0, move > 0) & problem.may_change)
