"""Turn the parameters of a `ControlledDebiaser` and its fit rows into the problem of a fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.encoding import Encoding, TermTable, learn_encoding
from commod._evidence.task import Caps
from commod._statistics.new_samples import sampled_interval
from commod._statistics.promises import fairness_interval
from commod.updates._fit_rows import FitRows
from commod.updates._point_rows import point_rows
from commod.updates._problem import FitProblem, check_monotone
from commod.updates._unknown_groups import proven_limit


def fit_problem(update: Any, rows: FitRows, encoding: Encoding | None = None) -> FitProblem:
    """Return the problem of a fit on `rows`; without an encoding, learn it from them.

    Of very many rows, it is learned from those that points come from.
    """
    if encoding is None:
        encoding = learn_terms(update, point_rows(rows))
    monotone = dict(update.monotone or {})
    check_monotone(monotone, [column.name for column in rows.columns])
    return problem_of(update, rows, encoding, encoding.encode(rows.columns), monotone)


def learn_terms(update: Any, rows: FitRows) -> Encoding:
    """Return the terms of the columns of `rows`.

    Whole-number points are those of bins. Numbers count from their rounded mean, so that three
    digits are enough for points per unit.
    """
    return learn_encoding(
        rows.columns,
        rows.weight,
        min_category_size=update.min_category_size,
        locked=update.locked_features,
        numeric="bins" if update.points == "integers" else update.numeric,
        centred=True,
    )


def problem_of(
    update: Any,
    rows: FitRows,
    encoding: Encoding,
    terms: TermTable,
    monotone: Mapping[str, int],
) -> FitProblem:
    """Return the problem of a fit on rows whose terms are known."""
    may_raise, may_lower = update._may_move()
    problem = FitProblem(
        rows=rows,
        encoding=encoding,
        terms=terms,
        constraint=update._constraint,
        standing=update._standing,
        caps=Caps(update.max_changes, update.max_accuracy_loss, update.max_volume_change),
        may_raise=may_raise,
        may_lower=may_lower,
        monotone=monotone,
        max_margin=update.max_margin,
        raising_is_a_gain=update._raising_is_a_gain(),
    )
    problem.check_cells()
    return problem


def smallest_share(problem: FitProblem, fairness: float) -> float:
    """Return the smallest share of changes that reaches a fairness; NaN if it is not known."""
    if problem.is_weighted or not fairness > 0:
        return float("nan")
    limit = proven_limit(problem, fairness)
    return float("nan") if np.isinf(limit) else limit


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
