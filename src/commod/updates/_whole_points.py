"""Fit scorecards of whole-number points: `ControlledDebiaser(points="integers")`.

1. Fit an update with free points. It chooses the direction of changes and the sample.
2. Search for whole-number points on the sample, beginning from the free points.
3. Find the internal target as for free points. Each fold repeats both searches on its own rows.
4. Merge bins in a row that have equal points into one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.encoding import BinTerms, ColumnTerms, Encoding, TermTable
from commod._solvers.search.annealing import SearchTask
from commod._solvers.search.integers import (
    IntegerTask,
    PointCard,
    PointForm,
    descend,
    search_integers,
    tune,
)
from commod._solvers.search.offset import best_offset
from commod._solvers.search.threads import single_blas_thread
from commod.updates._cross_fit import (
    ExpectedFigures,
    Folds,
    NewRows,
    figures_on_folds,
    without_fold,
)
from commod.updates._expectation import expect_target
from commod.updates._gates import KeptUpdate
from commod.updates._new_rows import ExpectedUpdate, expect_as_it_is
from commod.updates._outside_rows import OutsideRows
from commod.updates._problem import FitProblem
from commod.updates._sample import SearchSample
from commod.updates._search import SearchOutcome, changed_rows, half_offset
from commod.updates._search_task import search_task
from commod.updates._soft_cells import draw_folds
from commod.updates._steps import tell

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_TUNED = 1.15  # times the changes on soft cells; with more, the search is on true cells
FOLD_SCALES = (3.0, 5.0)  # at which a fold rounds its free points


# ---------------------------------------------------------------------------------------------
# One target


@dataclass(frozen=True)
class WholeSearch:
    """The search for whole-number points near an update with free points, `free`.

    `problem` has the same rows, cells and direction of changes as that of `free`, and numbers in
    bins.
    """

    free: KeptUpdate
    problem: FitProblem
    max_lines: int

    @classmethod
    def of(cls, free: KeptUpdate, in_bins: FitProblem, max_lines: int) -> WholeSearch:
        """Return the search; `in_bins` may have other cells and directions than `free`."""
        moves = free.problem.may_raise, free.problem.may_lower
        problem = in_bins.with_direction(*moves, soft_cells=free.problem.soft_cells)
        return cls(free, problem.with_standing(free.problem.standing), max_lines)

    @cached_property
    def sample(self) -> SearchSample:
        """Return the sample of `free` with numbers in bins."""
        return in_bins(self.problem, self.free.found.sample, self.free.found.value)

    def kept(self, target: float, starts: Sequence[Ints] = ()) -> KeptUpdate:
        """Return the update for a target; `starts` (n_terms,) are points to begin from, too."""
        free, problem = self.free, self.problem
        weights = binned_points(free.problem, free.found.outcome, problem)
        outcome = whole_outcome(self.sample, [weights], target, self.max_lines, starts)
        outcome = replace(outcome, verified=free.outcome.verified)
        found = free.found._replace(sample=self.sample, outcome=outcome)
        return free._replace(problem=problem, outcome=outcome, found=found)


def in_bins(problem: FitProblem, sample: SearchSample, target: float) -> SearchSample:
    """Return a sample of the same rows for a problem with numbers in bins."""
    task = search_task(problem, target, sample.index, sample.people, sample.acting)
    return SearchSample(problem, sample.index, sample.people, sample.acting, task)


def binned_points(free: FitProblem, outcome: SearchOutcome, problem: FitProblem) -> Floats:
    """Return the mean of what free points add in each term of a problem in bins, (n_terms,)."""
    weight, terms = problem.rows.weight, problem.terms
    columns = np.array(free.encoding.term_columns, dtype=object)
    names = np.array(problem.encoding.term_columns, dtype=object)
    points = np.zeros(terms.n_terms + 1)
    for codes, first in zip(terms.codes.T, terms.code_terms, strict=True):
        own = np.where(columns == names[first], outcome.points, 0.0)
        if own.any():
            added = free.terms.total(own, 0.0)
            totals = np.bincount(codes, weight, terms.n_terms + 1)
            sums = np.bincount(codes, weight * added, terms.n_terms + 1)
            points += sums / np.where(totals > 0, totals, 1.0)
    return points[:-1]


def whole_outcome(
    sample: SearchSample,
    free: Sequence[Floats],
    target: float,
    max_lines: int,
    starts: Sequence[Ints] = (),
    is_pinned: NDArray[np.bool_] | None = None,
    **effort: Any,
) -> SearchOutcome:
    """Return whole-number points near free points (n_terms,), with their threshold on all rows.

    Pinned terms (n_terms,) keep their points in `starts`.
    """
    problem = sample.problem
    task = replace(sample.task, inequalities=problem.inequalities(target, sample.task.effects))
    terms = task.design.terms
    if not len(terms) or not task.effects.may_change.any():  # no term, or nobody, to find
        return on_all_rows(problem, np.zeros(problem.terms.n_terms), target, len(sample.index))
    form = point_form(problem, task, max_lines)
    form = form if is_pinned is None else form._replace(is_pinned=is_pinned[terms])
    if not effort:  # a fold tells its own number
        tell(f"searching for whole-number points on {len(sample.index):,} rows")
    points_to_begin = [one[terms] for one in free], [start[terms] for start in starts]
    with single_blas_thread:
        card = search_integers(IntegerTask.of(task, form), *points_to_begin, **effort)
        if task.effects.soft_step is not None and card.points.any():
            task = replace(task, effects=task.effects.on_true_cells())
            card = _on_true_cells(IntegerTask.of(task, form), card, points_to_begin, effort)
    points = np.zeros(problem.terms.n_terms)
    points[terms] = card.points
    return on_all_rows(problem, points, target, len(sample.index))


def _on_true_cells(
    task: IntegerTask,
    soft: PointCard,
    points_to_begin: tuple[list[Floats], list[Ints]],
    effort: dict[str, Any],
) -> PointCard:
    """Return the scorecard of a search on soft cells, tuned on true cells.

    Where its next threshold needs many more changes than on soft cells, search on true cells.
    """
    card = tune(task, PointCard.of(task, soft.points))
    if card.rank.violation <= soft.rank.violation and card.rank.cost <= MAX_TUNED * soft.rank.cost:
        return card
    card = descend(task, card, task.max_lines)
    if effort:  # a fold has to be quick
        return card
    others = search_integers(task, *points_to_begin)
    return min(card, others, key=lambda one: one.rank)


def on_all_rows(
    problem: FitProblem, points: Floats, target: float, n_search_rows: int
) -> SearchOutcome:
    """Return whole-number points (n_terms,) with the best threshold for a target on all rows."""
    effects = problem.effects if points.any() else problem.effects.of_nobody()
    inequalities = problem.inequalities(target, effects)
    weights = points * problem.scale
    best = best_offset(effects, inequalities, problem.terms.total(points, 0.0), weights)
    mean_total = float(points @ problem.moments[0])
    return SearchOutcome(
        weights=weights,
        points=points,
        offset=half_offset(best.offset) + mean_total,
        mean_total=mean_total,
        steps=(),
        shrinkage=0.0,
        violation=best.violation,
        n_search_rows=n_search_rows,
        is_whole=True,
    )


def point_form(problem: FitProblem, task: SearchTask, max_lines: int) -> PointForm:
    """Return the form of whole-number scorecards on the terms of a task."""
    terms, encoding = task.design.terms, problem.encoding
    is_next = np.concatenate([[False], np.diff(terms) == 1])
    signs = [-problem.monotone.get(name, 0) for name in encoding.term_columns]
    return PointForm(max_lines, follows(encoding)[terms] & is_next, np.array(signs)[terms])


def follows(encoding: Encoding) -> NDArray[np.bool_]:
    """Return whether each term is the bin right above the term before it, (n_terms,)."""
    parts = []
    for column in encoding.columns:
        part = np.zeros(column.n_terms, dtype=bool)
        if isinstance(column, BinTerms):
            part[1 : len(column.edges) + 1] = True
        parts.append(part)
    return np.concatenate(parts)


# ---------------------------------------------------------------------------------------------
# New rows


def expect_whole(search: WholeSearch, target: float) -> ExpectedUpdate:
    """Return the update with whole-number points that is expected to reach the target."""
    kept, new_rows = search.kept(target), new_rows_of(search)
    if not changed_rows(kept.problem, kept.outcome).any() or kept.outcome.violation > 0:
        return expect_as_it_is(kept, target, new_rows)
    expectation = expect_target(new_rows, kept.problem.constraint, target)
    n_outside = len(new_rows.outside) if isinstance(new_rows, WholeOutside) else None
    expectation = replace(expectation, n_outside=n_outside)
    if expectation.internal_target == target:
        return ExpectedUpdate(kept, expectation)
    start = np.rint(kept.outcome.points).astype(np.int64)
    kept = search.kept(expectation.internal_target, [start])
    if kept.outcome.violation > 0:
        return expect_as_it_is(kept, target, new_rows)
    return ExpectedUpdate(kept, expectation)


def new_rows_of(search: WholeSearch) -> NewRows:
    """Return the rows outside the search sample if there are enough, and folds otherwise."""
    free = search.free
    outside = None if free.found.sample.is_all_rows else OutsideRows.of(free)
    return WholeFolds(search) if outside is None else WholeOutside(outside, search)


class WholeFolds:
    """Whole-number updates, each fitted without one fold and applied to it.

    Each fold repeats the search for free points on its own rows.
    """

    def __init__(self, search: WholeSearch) -> None:
        self.problem, self.max_lines = search.problem, search.max_lines
        self.fold = draw_folds(search.problem)
        self.searches = Folds(search.free, self.fold).searches
        self.samples = []
        for number, one in enumerate(self.searches):
            inner = without_fold(search.problem, self.fold, number)
            self.samples.append(in_bins(inner, one.sample, search.free.found.value))
        self.starts: list[list[Ints]] = [[] for _ in self.searches]

    def figures(self, target: float) -> ExpectedFigures:
        """Return the figures of whole-number updates for a target, on rows new to them."""
        problem = self.problem
        decisions = problem.rows.base.decisions.copy()
        for number, (sample, starts) in enumerate(zip(self.samples, self.starts, strict=True)):
            # A stricter target begins from the points of the one before.
            tell(f"trying whole numbers on new people, part {number + 1} of {len(self.samples)}")
            free = [] if starts else [self._free_points(number, target)]
            effort: dict[str, Any] = {"scales": FOLD_SCALES, "n_rounds": len(free)}
            outcome = whole_outcome(sample, free, target, self.max_lines, starts, **effort)
            starts[:] = [np.rint(outcome.points).astype(np.int64)]
            held_out = np.flatnonzero(self.fold == number)
            eta = outcome.eta(problem.terms.take(held_out))
            decisions[held_out] ^= (eta > 0) & problem.may_change[held_out]
        return figures_on_folds(problem, decisions, self.fold)

    def _free_points(self, number: int, target: float) -> Floats:
        """Return the free points of a fold, as points of bins."""
        search = self.searches[number]
        with single_blas_thread:
            outcome = search.outcome(target)
        return binned_points(search.sample.problem, outcome, self.samples[number].problem)


class WholeOutside:
    """Whole-number updates that are fitted on the search sample, on the rows outside of it."""

    def __init__(self, outside: OutsideRows, search: WholeSearch) -> None:
        self.outside, self.search = outside, search

    def figures(self, target: float) -> ExpectedFigures:
        """Return the figures of the whole-number update for a target, on outside rows."""
        kept = self.search.kept(target)
        outside = replace(self.outside, kept=kept)
        return outside.figures_of(kept.outcome)


# ---------------------------------------------------------------------------------------------
# Lines


def merge_bins(problem: FitProblem, outcome: SearchOutcome) -> tuple[FitProblem, SearchOutcome]:
    """Return the problem and the update with one term for bins in a row that have equal points."""
    encoding, new_term = merged_encoding(problem.encoding, outcome.points)
    terms = merged_terms(problem.terms, encoding, new_term)
    merged = replace(problem, encoding=encoding, terms=terms)
    points = np.zeros(encoding.n_terms)
    points[new_term] = outcome.points
    mean_total = float(points @ merged.moments[0])
    outcome = replace(
        outcome,
        points=points,
        weights=points * merged.scale,
        offset=outcome.offset - outcome.mean_total + mean_total,
        mean_total=mean_total,
    )
    return merged, outcome


def merged_encoding(encoding: Encoding, points: Floats) -> tuple[Encoding, NDArray[np.intp]]:
    """Return an encoding without the edges between equal points, and the new term of each term.

    A column with equal points in all its bins keeps its first edge.
    """
    columns: list[ColumnTerms] = []
    new_term: list[int] = []
    first = n_terms = 0
    for column in encoding.columns:
        own = points[first : first + column.n_terms]
        first += column.n_terms
        rises = np.ones(column.n_terms, dtype=bool)
        if isinstance(column, BinTerms):
            n_bins = len(column.edges) + 1
            rises[1:n_bins] = np.diff(own[:n_bins]) != 0
            if not rises[1:n_bins].any():
                rises[1] = True
            edges = tuple(np.array(column.edges)[rises[1:n_bins]].tolist())
            column = replace(column, edges=edges)
        new_term += (n_terms + np.cumsum(rises) - 1).tolist()
        n_terms += column.n_terms
        columns.append(column)
    return Encoding(tuple(columns)), np.array(new_term, dtype=np.intp)


def merged_terms(terms: TermTable, encoding: Encoding, new_term: NDArray[np.intp]) -> TermTable:
    """Return rows in the terms of a merged encoding."""
    codes = np.append(new_term, encoding.n_terms).astype(terms.codes.dtype)
    return TermTable(
        numeric=terms.numeric,
        numeric_terms=new_term[terms.numeric_terms],
        codes=np.asfortranarray(codes[terms.codes]),
        code_terms=new_term[terms.code_terms],
        n_terms=encoding.n_terms,
    )
