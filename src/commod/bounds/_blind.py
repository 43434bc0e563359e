"""Estimate the fewest changes of a rule that does not know anybody's group.

The exact limit knows everybody's group, which a method that must not read the group cannot. A
flexible model of the same columns tells how far a rule without the group can come at best: it
learns how likely each person is in each group (and true label), on rows other than their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.columns import Column, read_columns
from commod._data.decisions import GroupedDecisions
from commod._data.encoding import Encoding
from commod._data.row_hash import row_hashes
from commod._data.tables import check_same_rows
from commod._evidence.cut import best_stop, evidence
from commod._evidence.prices import Pricing, priced_rows
from commod._evidence.task import N_FOLDS, EvidenceTask, Required
from commod.bounds._counts import read_target, simple_requirement
from commod.bounds._tables import count_problem, read_table
from commod.metrics._cells import CellTable, Strata
from commod.metrics._constraint import Constraint, ConstraintLike, missing_labels

Floats = NDArray[np.float64]

N_BOOTSTRAPS = 100  # of the interval
LEVEL = 0.95
MAX_CATEGORIES = 255  # that the model takes as categories


@dataclass(frozen=True)
class BlindChanges:
    """An estimate of the fewest changes without the group: their number, share and interval.

    `n_changes` is infinite, and `rate` NaN, where the model's rule does not reach the target.

    Examples
    --------
    >>> BlindChanges(n_changes=128.0, rate=0.05, interval=(110.0, 147.0)).n_changes
    128.0
    """

    n_changes: float
    rate: float
    interval: tuple[float, float]


def blind_changes(
    X: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    target: Any = None,
    constraints: ConstraintLike = "demographic_parity",
    y_true: Any = None,
    direction: str = "any",
    pos_label: Any = 1,
    favorable_label: Any = None,
) -> BlindChanges:
    """Estimate the fewest changes that reach a target without knowing anybody's group.

    Scikit-learn's gradient boosting learns from the columns of X how likely each person is in each
    group (and true label), in five folds. The rule that is optimal for these probabilities changes
    people until the target holds on these rows. This is an estimate, not a bound: another model may
    need fewer changes.

    Parameters
    ----------
    X : table of shape (n_samples, n_features)
        The columns that a rule may read: without the group.
    y_pred : array-like of shape (n_samples,)
        Decisions, with at most two different labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        Group of each row, two groups or more.
    target, constraints, y_true, direction, pos_label, favorable_label
        As in `minimal_changes`.

    Returns
    -------
    BlindChanges
        With a 95 % bootstrap interval for other people of the same population.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> data = make_biased(800, random_state=0)
    >>> y_pred = (data.data["x0"] > 0).astype(int)
    >>> groups = {"sensitive_features": data.sensitive_features}
    >>> blind = blind_changes(data.data, y_pred, target=0.95, **groups)
    >>> from commod.bounds import minimal_changes
    >>> blind.n_changes >= minimal_changes(y_pred, target=0.95, **groups).n_changes
    True
    """
    constraint, target = simple_requirement(constraints, target, "The blind limit")
    read_target(constraint, target)
    if y_true is None and constraint.needs_labels:
        raise missing_labels(constraint)
    check_same_rows({"X": X, "y_pred": y_pred, "sensitive_features": sensitive_features})
    y_true = y_true if constraint.needs_labels else None
    rows, table = read_table(y_true, y_pred, sensitive_features, pos_label, favorable_label)
    moves = count_problem(table, constraint, direction)
    decided = rows.decisions
    may_change = np.where(decided, moves.may_lower, moves.may_raise)
    columns = read_columns(X)
    hashes = row_hashes(columns)
    task = _task(constraint, float(target), rows, may_change, hashes)
    # People of equal probabilities change one by one: a rule may draw among them.
    score = _blind_score(task, columns) * (1 + 1e-9 * (hashes / 2.0**64))
    stop = best_stop(task, score)
    if not stop.is_reached:
        return BlindChanges(float("inf"), float("nan"), (float("nan"), float("nan")))
    return BlindChanges(stop.n_changed, stop.n_changed / len(task), _interval(task, score))


def _task(
    constraint: Constraint,
    target: float,
    rows: GroupedDecisions,
    may_change: NDArray[np.bool_],
    hashes: NDArray[np.uint64],
) -> EvidenceTask:
    """Return the question whom to change; people have no terms, but probabilities of cells."""
    n, n_groups = len(rows.decisions), len(rows.groups.labels)
    strata = [Strata.everybody(n, n_groups)]
    table = CellTable.of([constraint], strata, rows.groups.codes, n_groups, rows.outcomes)
    ones = np.ones(n)
    sizes = table.totals(ones)
    compared = [one.per_rate(sizes.ravel()) for one in table.comparisons(0, sizes)]
    none = np.zeros(0)
    return EvidenceTask(
        terms=Encoding(()).encode([]),
        column=none.astype(np.intp),
        is_level=none.astype(bool),
        is_bin=none.astype(bool),
        sign=none,
        is_ordered=none.astype(bool),
        pinned=none,
        fold=(hashes % np.uint64(N_FOLDS)).astype(np.int8),
        positive=rows.decisions,
        distance=np.zeros(n),
        may_change=may_change,
        cell=np.where(table.index < 0, sizes.size, table.index)[:, None],
        share=np.ones((n, 1)),
        totals=sizes.ravel(),
        sizes=sizes.ravel(),
        is_known=np.ones(n, dtype=bool),
        weight=ones,
        people=ones,
        label=rows.outcomes,
        constraints=(constraint,),
        required=tuple(Required.of(0, one, target) for one in compared),
        is_new=False,
    )


def _blind_score(task: EvidenceTask, columns: Sequence[Column]) -> Floats:
    """Return the evidence of each person by the prices with the fewest changes, (n,)."""
    expected = _cell_probabilities(task, columns) / np.maximum(task.totals, 1.0)
    cost, rows = np.ones(len(task)), priced_rows(task)
    best, fewest = np.full(len(task), -np.inf), None
    rates = task.base_rates
    for coef in Pricing(task, rows, expected[rows], cost).rounds(rates):
        score = evidence(task, expected @ coef, cost)
        rank = best_stop(task, score).rank(task)
        if fewest is None or rank < fewest:
            best, fewest = score, rank
    return best


def _cell_probabilities(task: EvidenceTask, columns: Sequence[Column]) -> Floats:
    """Return how likely each person is in each cell, (n, C), from models of other folds."""
    from sklearn.ensemble import HistGradientBoostingClassifier  # half a second to import

    matrix = np.column_stack([column.values.astype(np.float64) for column in columns])
    is_category = [
        column.kind == "category" and len(column.categories) < MAX_CATEGORIES for column in columns
    ]
    matrix[:, is_category] = np.where(matrix[:, is_category] < 0, np.nan, matrix[:, is_category])
    cell, result = task.cell[:, 0], np.zeros((len(task), task.n_cells + 1))
    for f in range(N_FOLDS):
        own = task.fold == f
        if not own.any() or own.all():
            continue
        model = HistGradientBoostingClassifier(categorical_features=is_category, random_state=0)
        model.fit(matrix[~own], cell[~own])
        result[np.ix_(own, model.classes_)] = model.predict_proba(matrix[own])
    return result[:, :-1]


def _interval(task: EvidenceTask, score: Floats) -> tuple[float, float]:
    """Return the interval of the number of changes over samples of the people, with replacement."""
    random, n = np.random.RandomState(0), len(task)
    found = []
    for _ in range(N_BOOTSTRAPS):
        people = random.multinomial(n, np.full(n, 1 / n)).astype(np.float64)
        totals = np.bincount(task.cell[:, 0], people, task.n_cells + 1)[:-1].astype(np.float64)
        drawn = replace(task, weight=people, people=people, totals=totals, sizes=totals)
        stop = best_stop(drawn, score)
        found.append(stop.n_changed if stop.is_reached else np.inf)
    low, high = np.quantile(found, ((1 - LEVEL) / 2, (1 + LEVEL) / 2), method="nearest").tolist()
    return float(low), float(high)
