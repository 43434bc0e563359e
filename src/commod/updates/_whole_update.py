"""Fit the update with whole-number points that a `ControlledDebiaser` asks for, and its price."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from commod.updates._budget import fit_budget, parity_value
from commod.updates._controlled_problem import fit_problem
from commod.updates._fewest import with_fewest
from commod.updates._gates import KeptUpdate, fit_fewest
from commod.updates._new_rows import ExpectedUpdate, best_update, expect_as_it_is
from commod.updates._problem import FitProblem
from commod.updates._search import SearchOutcome, changed_rows, search_target
from commod.updates._whole_points import WholeSearch, expect_whole, new_rows_of

DEFAULT_LINES = 20  # of a whole-number scorecard


def whole_search(update: Any, problems: Sequence[FitProblem], target: float) -> WholeSearch:
    """Return the search for whole-number points near the free points of one of the problems."""
    free = best_update(problems, target) if len(problems) > 1 else fit_fewest(problems[0], target)
    in_bins = fit_problem(update, problems[0].rows, numeric="bins")
    max_lines = DEFAULT_LINES if update.max_lines is None else int(update.max_lines)
    return WholeSearch.of(free, in_bins, max_lines)


def fit_whole(update: Any, problem: FitProblem) -> KeptUpdate:
    """Return the update with whole-number points on the fit rows: for the target, or a budget."""
    return _fit_searched(update, _search_stated(update, [problem]))


def fit_whole_as_it_is(update: Any, problem: FitProblem) -> ExpectedUpdate:
    """Return the same update and what is expected of it on new people."""
    search = _search_stated(update, [problem])
    return expect_as_it_is(_fit_searched(update, search), update._target, new_rows_of(search))


def fit_whole_on_new_rows(update: Any, problems: Sequence[FitProblem]) -> ExpectedUpdate:
    """Return the update that is expected to reach the target on new people."""
    search = whole_search(update, problems, update._target)
    expected = expect_whole(search, update._target)
    return expected._replace(kept=_with_fewest(search, expected.kept))


def _search_stated(update: Any, problems: Sequence[FitProblem]) -> WholeSearch:
    target = parity_value(problems[0]) if update._is_budget else update._target
    return whole_search(update, problems, target)


def _fit_searched(update: Any, search: WholeSearch) -> KeptUpdate:
    if update._is_budget:
        kept = fit_budget(search.problem, lambda _, target: search.kept(target))
    else:
        kept = search.kept(update._target)
    return _with_fewest(search, kept)


def _with_fewest(search: WholeSearch, kept: KeptUpdate) -> KeptUpdate:
    """Return the update with the fewest changes that the search with free points found."""
    return kept._replace(outcome=with_fewest(search.free.found, kept.problem, kept.outcome))


def points_price(
    problem: FitProblem, whole: FitProblem, outcome: SearchOutcome, target: float
) -> float:
    """Return the changes over those of free points with as many lines and the same target.

    `problem` is that of the free points, `whole` that of the outcome. NaN where nothing changes, or
    where free points with as many lines do not get as far.
    """
    changed, rows = changed_rows(whole, outcome), whole.rows
    if not changed.any() or outcome.violation > 0:
        return float("nan")
    free = problem.with_direction(
        whole.may_raise, whole.may_lower, max_lines=int(np.count_nonzero(outcome.points))
    )
    found = search_target(free.with_standing(whole.standing), target).outcome
    n_free = rows.count(changed_rows(free, found))
    return rows.count(changed) / n_free if n_free and found.violation <= 0 else float("nan")
