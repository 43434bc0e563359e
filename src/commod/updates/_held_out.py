"""Test promises on held-out rows: split the rows, order the updates, choose one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._statistics.promises import promise_along
from commod._text import MAX_CHANGED
from commod.metrics._constraint import Constraint
from commod.updates._fit_rows import FitRows
from commod.updates._found_update import FittedUpdate
from commod.updates._problem import FitProblem

MAX_ALIKE = 0.99  # decisions of which a larger share are alike no longer tell people apart


def split_in_halves(rows: FitRows) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return two halves of the rows, stratified by group and, where it is known, true label.

    The hash of a row decides its half, so the order of the rows does not matter.
    """
    strata = rows.groups.codes * 2
    if rows.label is not None:
        strata = strata + rows.label
    order = np.lexsort([rows.own_hashes, strata])
    return np.sort(order[::2]), np.sort(order[1::2])


def fairest_first(updates: Sequence[FittedUpdate]) -> list[FittedUpdate]:
    """Return the updates in the order in which promises are tested, each cheaper than the last.

    Of updates with equal fairness the cheapest stays. An update that changes more than a fairer
    one is left out, and so is a degenerate one while others remain. Where fairness is undefined
    for all, the first update is returned.
    """
    problem = updates[0].problem
    base, constraint = problem.rows.base.decisions, problem.constraint
    tested = []
    for one in updates:
        changed = one.changed
        fairness = problem.rows.fairness(constraint, base ^ changed)
        if not np.isnan(fairness):
            unfairness = -fairness if constraint.higher_is_fairer else fairness
            degenerate = is_degenerate(base, base ^ changed, problem.rows.people)
            tested.append((degenerate, unfairness, problem.rows.count(changed), one))
    kept: list[FittedUpdate] = []
    fewest = np.inf
    is_left_out = not all(degenerate for degenerate, *_ in tested)
    for degenerate, _, n_changed, one in sorted(tested, key=lambda entry: entry[:3]):
        if n_changed < fewest and not (degenerate and is_left_out):
            kept.append(one)
            fewest = n_changed
    return kept or list(updates[:1])


def is_degenerate(
    before: NDArray[np.bool_],
    after: NDArray[np.bool_],
    people: NDArray[np.float64] | None = None,
) -> bool:
    """Return whether new decisions (n,) are no correction of the old ones: nothing is promised.

    Either more than `MAX_CHANGED` of them change, or a share of `MAX_ALIKE` become alike that were
    not. Decisions that are all alike are fair whatever the base model is, and help nobody. A row
    is one person, or stands for `people` (n,).
    """
    if np.average(before != after, weights=people) > MAX_CHANGED:
        return True
    rates = (float(np.average(decided, weights=people)) for decided in (before, after))
    old, new = (max(rate, 1 - rate) for rate in rates)
    return bool(new >= MAX_ALIKE > old)


Failure = Literal["", "degenerate", "unfair", "too few rows"]


class Choice(NamedTuple):
    """The update to keep: its position among those tested, None for no change at all.

    `n_tested` promises were tested; the first failure ended the tests. `failure` says why the
    promise of the first update failed; empty where there is a promise.
    """

    kept: int | None
    is_promised: bool
    n_tested: int
    failure: Failure = ""


class PromiseTest(NamedTuple):
    """How a promise was tested: the problem on all rows, the size of the half to fit on.

    `n_rows_needed` is the number of rows that the promise would need. `observed` and `promised` are
    the fairness of the first tested update on the held-out rows, and its bound for new people.
    `change_rate` is its share of changes there.
    """

    problem: FitProblem
    n_fit_rows: int
    n_rows_needed: float
    choice: Choice
    observed: float
    promised: float
    change_rate: float


Table = tuple[NDArray[np.int64], NDArray[np.int64]]  # sizes and positives of the cells


def choose_update(
    constraint: Constraint,
    tables: Sequence[Table],
    unchanged: Table,
    target: float,
    confidence: float,
    degenerate: Sequence[bool] = (),
) -> Choice:
    """Return which update to keep.

    `tables` are those of the updates on the held-out rows, the fairest on the fit half first.
    `unchanged` is the table of the base model. With a promise, the cheapest promised update that
    is not less fair than the base model is kept; if there is none, the cheapest promised one. All
    promises up to the first failure hold together, so any of them may be chosen. Without a
    promise, the first update is kept only if it is fairer than the base model. `degenerate` updates
    fail, whatever their fairness is.
    """
    base = constraint.value_from_counts(*unchanged)
    values = [constraint.value_from_counts(*table) for table in tables]
    first_degenerate = [*degenerate, True].index(True) if degenerate else len(tables)
    last = promise_along(constraint, tables[:first_degenerate], target, confidence)
    if last is None:
        is_fairer = (
            base is not None and values[0] is not None and constraint.shortfall(values[0], base) < 0
        )
        failure: Failure = "too few rows"
        if first_degenerate == 0:
            failure = "degenerate"
        elif values[0] is None or not constraint.is_met(values[0], target):
            failure = "unfair"
        return Choice(0 if is_fairer else None, False, n_tested=1, failure=failure)
    kept = [
        i
        for i, value in enumerate(values[: last + 1])
        if base is None or constraint.is_met(value, base)
    ]
    return Choice(max(kept, default=last), is_promised=True, n_tested=last + 2)
