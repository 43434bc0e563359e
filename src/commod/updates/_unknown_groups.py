"""Say what is known about an update where the groups of some people are not known.

1. How many people have a known group: rates rest on these alone.
2. How fair the update could be, whatever the groups of the others are.
3. How many decisions of the known people change, and how many have to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.disclosure import FEWEST_DESCRIBED
from commod._solvers.cells import Cells
from commod._statistics.unknown_groups import (
    UNDEFINED,
    UnknownInterval,
    calibrated_interval,
    no_interval_text,
    worst_interval,
)
from commod._text import n_of
from commod.updates._fit_rows import FitRows
from commod.updates._left_out import rows_in_totals
from commod.updates._problem import FitProblem

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

KNOWING_METHOD = "even for a method that knows the sensitive features"
DRAWS_LEVEL = 0.95  # of the interval where probabilities are calibrated


def store_unknown(update: Any, problem: FitProblem, decisions: Mask) -> None:
    """Store on how many known people the figures rest, and what the unknown could be."""
    rows = problem.rows
    known = rows.groups.is_known
    counted = known & rows_in_totals(rows)
    is_probable = rows.probabilities is not None
    update.n_known_ = rows.count(known)
    nan = float("nan")
    update.known_change_rate_ = update.known_limit_ = nan
    if not is_probable and counted.any():
        changed = decisions != rows.base.decisions
        update.known_change_rate_ = rows.count(changed & counted) / rows.count(counted)
        update.known_limit_ = update.limit_ * rows.n_people / update.n_known_
    worst, calibrated = _worst(problem, decisions), (nan, nan)
    if is_probable and problem.constraint.is_simple:
        table = problem.compared.table
        arrays = table.row, decisions, table.probabilities, rows.weight
        calibrated = calibrated_interval(problem.constraint, *arrays, DRAWS_LEVEL)
    update.unknown_interval_ = {
        "worst_case": (worst.low, worst.high),
        "is_exact": worst.is_exact,
        "calibrated": calibrated,
    }


def _hides_unknown(rows: FitRows) -> bool:
    """Return whether people of unknown groups are so few that no total counts them."""
    return bool((~rows_in_totals(rows) & ~rows.groups.is_known).any())


def _worst(problem: FitProblem, decisions: Mask) -> UnknownInterval:
    """Return between which values the metric lies, whatever the groups of unknown people are."""
    rows, constraint = problem.rows, problem.constraint
    if not constraint.is_simple:
        return UNDEFINED
    if _hides_unknown(rows):
        return UNDEFINED  # it would tell their decisions
    known, (group, n_groups) = rows.groups.is_known, rows.large_groups
    may_be_elsewhere = not rows.is_large_group.all()
    if rows.probabilities is not None:
        known_elsewhere = known & (rows.probabilities.max(axis=1) < 0.5)  # of a group left out
        group = np.where(known & ~known_elsewhere, group, -1)
        may_be_elsewhere |= bool((rows.probabilities[~known] == 0).any())
    cells = Cells.of(constraint, group, n_groups, rows.label)
    of_unknown = Cells.of(constraint, np.where(known, -1, 0), 1, rows.label)
    weights = rows.weight, rows.weight * decisions
    counts = [cells.totals(values) for values in weights]
    unknown = [of_unknown.totals(values)[:, 0] for values in weights]
    return worst_interval(constraint, *counts, *unknown, may_be_elsewhere=may_be_elsewhere)


def unknown_texts(update: Any, problem: FitProblem) -> Iterator[str]:
    """Yield on how many known people the figures rest, and what the unknown could be."""
    rows, metric = problem.rows, update.compared_text().metric
    n_unknown = rows.n_people - update.n_known_
    if not n_unknown:
        return
    if _hides_unknown(rows):
        yield (
            f"The group of {n_of(n_unknown, 'row')} is not known. No figure and no total counts "
            f"fewer than {FEWEST_DESCRIBED} such people."
        )
    elif rows.probabilities is None:
        yield (
            f"The group of {n_of(n_unknown, 'row')} is not known. The {metric} rests on the "
            f"{update.n_known_:,} known rows; changes, volume and accuracy count all "
            f"{rows.n_people:,}."
        )
    else:
        yield (
            f"Groups are given by probabilities, and {update.n_known_:,} of the {len(rows):,} rows "
            f"have a certain group. The {metric} is that of expected rates."
        )
    low, high = update.unknown_interval_["calibrated"]
    if np.isfinite(low):
        yield (
            f"If the probabilities are calibrated, the {metric} of these rows lies between "
            f"{low:.3f} and {high:.3f} ({DRAWS_LEVEL:.0%} of draws)."
        )
    low, high = update.unknown_interval_["worst_case"]
    if np.isfinite(low):
        which = "which is exact" if update.unknown_interval_["is_exact"] else "a proven bound"
        yield (
            f"Whatever the unknown groups are, it lies between {low:.3f} and {high:.3f}, {which}."
        )
    constraints = update.stated().constraints
    names = [update.compared_text().metric_of(one) for one in constraints]
    if text := no_interval_text(constraints, names):
        yield text


def knowing_method(problem: FitProblem) -> str:
    """Return for which methods the limit of a problem holds, in words."""
    if problem.rows.probabilities is None:
        return KNOWING_METHOD
    return "even for a method that knows the probabilities of the groups"


def known_limit_texts(update: Any) -> Iterator[str]:
    """Yield the limit among people whose group is known, where others are not known."""
    if np.isfinite(update.known_limit_) and update.n_known_ < update.n_rows_:
        yield (
            "Only people of a known group have to change for that. Among them "
            f"{update.known_change_rate_:.1%} change, and at least {update.known_limit_:.1%} "
            "have to."
        )
