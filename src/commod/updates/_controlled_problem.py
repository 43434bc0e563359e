"""Turn the parameters of a `ControlledDebiaser` and its fit rows into the problem of a fit."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from commod._data.columns import Column
from commod._data.encoding import Encoding, learn_encoding
from commod._solvers.search.rates import Caps
from commod._statistics.new_samples import sampled_interval
from commod._statistics.promises import fairness_interval
from commod.scorecard import DISTANCE_COLUMN, distances
from commod.updates._fit_rows import FitRows
from commod.updates._problem import FitProblem, check_monotone
from commod.updates._soft_cells import cell_models, with_soft_cells
from commod.updates._unknown_groups import proven_limit
from commod.updates.ratio import with_score_columns

Numeric = Literal["unit", "bins"]

MAX_COSTED_ROWS = 20_000  # with equalized odds, the exact cost of more rows takes too long


def reads_distance(update: Any) -> bool:
    """Return whether a fitted update encodes rows with the distance, which is no column of X.

    It does so also where the distance got no points. X may have a column of this name otherwise.
    """
    names = {column.name for column in update.scorecard_.encoding.columns}
    return DISTANCE_COLUMN in names.difference(update._columns_seen)


def fit_problem(
    update: Any,
    rows: FitRows,
    encoding: Encoding | None = None,
    numeric: Numeric | None = None,
) -> FitProblem:
    """Return the problem of a fit on `rows`; without an encoding, learn it from them.

    `numeric` says how numeric columns become terms; None: as the parameters of the update do.
    """
    distance = distances(rows.base.scores, rows.base.threshold)
    columns = list(rows.columns)
    spends = bool(update.borderline)
    has_line = update.points == "free" and update.max_lines != 1  # a line for the distance
    if spends and update.reads_score and has_line:
        columns = with_score_columns(columns, [Column(DISTANCE_COLUMN, "numeric", distance)])
    # whole numbers keep bins in order; a given encoding is that of a fitted scorecard
    keeps_bins = update.points == "integers" and (numeric == "bins" or encoding is not None)
    if encoding is None:
        encoding = learn_encoding(
            columns,
            rows.weight,
            min_category_size=update.min_category_size,
            locked=update.locked_features,
            numeric=numeric or numeric_terms(update),
            per_unit=(DISTANCE_COLUMN,),
        )
    monotone = dict(update.monotone or {})
    names = [column.name for column in rows.columns]
    check_monotone(monotone, encoding, names, bins_allowed=keeps_bins)
    may_raise, may_lower = update._may_move()
    problem = FitProblem(
        rows=rows,
        encoding=encoding,
        terms=encoding.encode(columns),
        constraint=update._constraint,
        standing=update._standing,
        caps=Caps(update.max_changes, update.max_accuracy_loss, update.max_volume_change),
        may_raise=may_raise,
        may_lower=may_lower,
        sparsity=float(update.sparsity),
        accuracy_weight=float(update.accuracy_weight),
        monotone=monotone,
        use_all=update.sample == "all",
        random_state=check_random_state(0 if update.random_state is None else update.random_state),
        min_category_size=update.min_category_size,
        max_margin=update.max_margin,
        raising_is_a_gain=update._raising_is_a_gain(),
        borderline=float(update.borderline),
        change_cost=_cost(rows, distance) if spends else None,
        cost_is_distance=rows.change_cost is None,
        max_lines=update.max_lines if update.points == "free" else None,
    )
    problem.check_cells()
    return problem


def problems_for_new_rows(update: Any, problem: FitProblem) -> list[FitProblem]:
    """Return the problems whose updates are compared on new rows.

    Soft cells are better for the rates of all people. For constraints on errors, what is better
    depends on the table: soft or true cells, points per unit or per bin (decision 0016). For rates
    within strata, it is points per unit or per bin.
    """
    models = cell_models(problem, update.min_category_size, update.locked_features)
    is_fixed = update.numeric != "auto" or bool(update.monotone)
    if not may_have_bins(update) or (is_fixed and not problem.needs_labels):
        return [with_soft_cells(problem, models)]
    if is_fixed:
        return [with_soft_cells(problem, models), problem]
    per_unit = fit_problem(update, problem.rows, numeric="unit")
    models = cell_models(per_unit, update.min_category_size, update.locked_features)
    soft = [with_soft_cells(one, models) for one in (per_unit, problem)]
    return [*soft, per_unit] if problem.needs_labels else soft


def may_have_bins(update: Any) -> bool:
    """Return whether points per bin may need fewer changes than points per unit.

    They do for errors and within strata, where one line per column is too coarse.
    """
    stated = update.stated()
    return bool(stated.needs_labels or stated.columns)


def numeric_terms(update: Any) -> Numeric:
    """Return how numeric columns become terms, with "auto" resolved."""
    is_auto_bins = may_have_bins(update) and not update.monotone
    if update.numeric == "bins" or (update.numeric == "auto" and is_auto_bins):
        return "bins"
    return "unit"


class ChangeCosts(NamedTuple):
    """The smallest share of changes, the cost of an update, and the smallest cost."""

    limit: float
    cost: float
    cost_limit: float


def whom_costs(problem: FitProblem, decisions: NDArray[np.bool_], fairness: float) -> ChangeCosts:
    """Return the exact limits for a fairness, and what decisions (n,) cost; NaN if not known."""
    unknown = float("nan")
    changed = decisions != problem.rows.base.decisions
    cost = unknown
    if problem.change_cost is not None:
        costs = problem.change_cost * problem.rows.each
        cost = float(costs[changed].sum()) / problem.rows.n_people
    if problem.is_weighted or not fairness > 0:
        return ChangeCosts(unknown, cost, unknown)
    is_slow = problem.cells.shape[0] > 1 and len(changed) > MAX_COSTED_ROWS
    limits = proven_limit(problem, fairness), unknown if is_slow else problem.cost_limit(fairness)
    limit, cost_limit = (unknown if np.isinf(value) else value for value in limits)
    return ChangeCosts(limit, cost, cost_limit)


def metric_interval(
    problem: FitProblem, decisions: NDArray[np.bool_], level: float
) -> tuple[float, float]:
    """Return the interval of the metric of decisions (n,) for people like the rows.

    NaN with weights, and where only probabilities of the groups are known.
    """
    if problem.is_weighted or problem.rows.probabilities is not None:
        return float("nan"), float("nan")
    counts = problem.counts(decisions)
    if problem.constraint.is_simple and not problem.standing:
        return fairness_interval(problem.constraint, *counts, level)
    sizes, positives = (part.astype(np.float64) for part in counts)
    rates = positives / np.maximum(sizes, 1.0)
    return sampled_interval(problem.constraint, problem.compared.by_rates[0], sizes, rates, level)


def _cost(rows: FitRows, distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what a change of each row costs, (n,): what the user states, else the distance."""
    return distance if rows.change_cost is None else rows.change_cost
