"""Turn the problem of a fit into the question that the search for evidence answers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from commod._data.encoding import BinTerms, CategoryTerms
from commod._evidence.task import EvidenceTask, Required
from commod.scorecard import distances
from commod.updates._problem import FitProblem

Floats = NDArray[np.float64]


def evidence_task(problem: FitProblem, target: float, *, is_new: bool = True) -> EvidenceTask:
    """Return the question of a problem for a target."""
    rows, compared = problem.rows, problem.compared
    table = compared.table
    cell, share = _members(problem)
    column, is_level, is_bin, sign, is_ordered = _term_kinds(problem)
    bounds = (target, *(one.bound for one in problem.standing))
    required = tuple(
        Required.of(i, comparison, bound)
        for i, (some, bound) in enumerate(zip(compared.by_rates, bounds, strict=True))
        for comparison in some
    )
    return EvidenceTask(
        terms=problem.terms,
        column=column,
        is_level=is_level,
        is_bin=is_bin,
        sign=sign,
        is_ordered=is_ordered,
        pinned=np.full(problem.terms.n_terms, np.nan),
        fold=problem.fold,
        positive=rows.base.decisions,
        distance=distances(rows.base.scores, rows.base.threshold),
        may_change=problem.may_change,
        cell=cell,
        share=share,
        totals=compared.weights.ravel(),
        sizes=_effective_sizes(problem),
        is_known=_is_known(problem),
        weight=rows.weight,
        people=rows.each,
        label=rows.label,
        constraints=table.constraints,
        required=required,
        caps=problem.caps,
        is_new=is_new,
    )


def _members(problem: FitProblem) -> tuple[NDArray[np.intp], Floats]:
    """Return the cells of each row, (n, q), and with which probability; C where there is none."""
    table = problem.compared.table
    n_cells = int(np.prod(table.shape))
    if table.probabilities is None:
        cell = np.where(table.index < 0, n_cells, table.index)[:, None]
        return cell, np.ones(cell.shape)
    row = np.where(table.index < 0, -1, table.index // table.n_groups)[:, None]
    cell = np.where(row < 0, n_cells, row * table.n_groups + np.arange(table.n_groups))
    return cell, table.probabilities


def _is_known(problem: FitProblem) -> NDArray[np.bool_]:
    """Return of whom the group is known, or at least its probabilities, (n,)."""
    if problem.rows.probabilities is None:
        return problem.rows.groups.is_known
    return np.ones(len(problem.rows), dtype=bool)


def _effective_sizes(problem: FitProblem) -> Floats:
    """Return how many people of equal weight have the chance of each cell, (C,)."""
    compared, rows = problem.compared, problem.rows
    if not problem.is_weighted:
        return compared.table.totals(rows.each).ravel()
    squares = compared.table.totals(rows.square_weight).ravel()
    return compared.weights.ravel() ** 2 / np.where(squares > 0, squares, 1.0)


def _term_kinds(
    problem: FitProblem,
) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.bool_], Floats, NDArray[np.bool_]]:
    """Return column, level, bin, sign and order of each term, (d,) each."""
    column, level, bins, sign, ordered = [], [], [], [], []
    # A column that must not help has no positive points. Counted decisions may be losses.
    gain = 1.0 if problem.raising_is_a_gain else -1.0
    for number, spec in enumerate(problem.encoding.columns):
        wanted = gain * problem.monotone.get(spec.name, 0)
        for place in range(spec.n_terms):
            is_missing = not isinstance(spec, CategoryTerms) and (
                place == spec.n_terms - 1 and spec.has_missing_term
            )
            is_bin = isinstance(spec, BinTerms) and not is_missing
            column.append(number)
            level.append(isinstance(spec, CategoryTerms))
            bins.append(is_bin)
            sign.append(0.0 if is_missing else wanted)
            ordered.append(is_bin)
    return (
        np.array(column, dtype=np.intp),
        np.array(level, dtype=bool),
        np.array(bins, dtype=bool),
        np.array(sign, dtype=np.float64),
        np.array(ordered, dtype=bool),
    )
