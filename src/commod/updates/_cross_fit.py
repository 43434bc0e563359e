"""Measure updates on rows that are new to them: search without a part of the rows, apply to it.

The part is one of five folds. On a large table, it is the rows outside the search sample
(`_outside_rows.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.offset import best_offset
from commod._solvers.search.rates import Cells
from commod._solvers.search.threads import single_blas_thread
from commod._statistics.new_samples import expected_values
from commod.metrics._constraint import Constraint
from commod.metrics._pairs import change_shares
from commod.updates._compared import ComparedCells
from commod.updates._fit_rows import FitRows
from commod.updates._gates import KeptUpdate
from commod.updates._held_out import take_fit_rows
from commod.updates._path import extend_past_target
from commod.updates._problem import FitProblem
from commod.updates._repeat import RepeatedUpdate
from commod.updates._sample import search_samples
from commod.updates._search import SearchOutcome
from commod.updates._soft_cells import N_FOLDS, FoldNumbers, SoftCells, random_part
from commod.updates._steps import tell

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.intp]

MAX_ROWS_WITHOUT_FOLD = 500_000  # to search on, unless a cell needs more
MIN_ROWS_OF_A_CELL = 300  # to search on without a fold, where the cell has as many


class Spread(NamedTuple):
    """The standard deviations of three figures over the folds."""

    fairness: float
    change_rate: float
    accuracy: float


class ExpectedFigures(NamedTuple):
    """Fairness, share of changes and accuracy that are expected on new rows.

    `standing` are the metrics of the constraints that keep their bounds.
    """

    fairness: float
    change_rate: float
    accuracy: float
    spread: Spread
    standing: tuple[float, ...] = ()


def figures_on_folds(
    problem: FitProblem, decisions: Mask, fold: FoldNumbers, *, is_adapted: bool = True
) -> ExpectedFigures:
    """Return the figures of decisions (n,) on all rows, and their spread over the folds.

    Offsets that are determined on rows of the sample are adapted to its chance. The decisions of
    the base model are not, so that new samples have the measured fairness on average.
    """
    rows = problem.rows
    parts = []
    for number in range(N_FOLDS):
        part = replace(rows, weight=rows.weight * (fold == number))
        parts.append(measure(problem.constraint, part, decisions))
    fairness, change_rate, accuracy = measure(problem.constraint, rows, decisions)
    standing = problem.compared.standing_values(decisions)
    if is_adapted:
        fairness, *others = expected_on(problem.compared, problem.cells, rows, decisions)
        standing = tuple(others)
    spread = spread_over(np.array(parts))
    return ExpectedFigures(fairness, change_rate, accuracy, spread, standing)


def measure(
    constraint: Constraint, rows: FitRows, decisions: Mask | Floats
) -> tuple[float, float, float]:
    """Return fairness, share of changes and accuracy of decisions on rows with a weight."""
    changed = change_shares(rows.base.decisions, decisions)
    share = np.average(changed, weights=rows.each * (rows.weight > 0))
    return rows.fairness(constraint, decisions), float(share), rows.accuracy(decisions)


def expected_on(
    compared: ComparedCells, cells: Cells, rows: FitRows, decisions: Mask | Floats
) -> list[float]:
    """Return the expected metrics of as many new people, decided as these rows are.

    The first one is that of the constraint that moves; the others stand.
    """
    totals, squares = cells.totals(rows.weight), cells.totals(rows.square_weight)
    positives = cells.totals(rows.weight * decisions)
    is_empty = totals <= 0
    rates = positives / np.where(is_empty, 1.0, totals)
    sizes = totals**2 / np.where(is_empty, 1.0, squares)  # Kish's
    constraints = compared.table.constraints
    return expected_values(list(zip(constraints, compared.by_rates, strict=True)), sizes, rates)


def spread_over(parts: Floats) -> Spread:
    """Return the standard deviation of three figures over the parts, (n_parts, 3)."""
    known = np.isfinite(parts).sum(axis=0) > 1
    values = [
        float(np.nanstd(column, ddof=1)) if is_known else float("nan")
        for column, is_known in zip(parts.T, known, strict=True)
    ]
    return Spread(*values)


class NewRows(Protocol):
    """Rows that are new to the direction of an update."""

    def figures(self, target: float) -> ExpectedFigures:
        """Return the figures of the direction with the offset for an internal target."""


# ---------------------------------------------------------------------------------------------
# Folds


@dataclass(frozen=True)
class Folds:
    """Searches by the recipe of an update, each without one fold."""

    kept: KeptUpdate
    fold: FoldNumbers

    @cached_property
    def searches(self) -> list[RepeatedUpdate]:
        """Return the repeated search of each fold."""
        problem, found = self.kept.problem, self.kept.found
        searches = []
        for number in range(N_FOLDS):
            inner = without_fold(problem, self.fold, number)
            samples = search_samples(inner, found.value)
            sample = [*samples][-1] if found.sample.is_all_rows else next(samples)
            searches.append(RepeatedUpdate.of(sample, self.kept.recipe))
        return searches

    def directions(self, target: float) -> FoldDirections:
        """Return the directions that these searches find for a target."""
        (directions,) = self.directions_each(target, [self.kept.recipe.shrinkage])
        return directions

    def directions_each(self, target: float, shrinkages: Sequence[float]) -> list[FoldDirections]:
        """Return the directions that these searches find for a target, for each shrinkage."""
        with single_blas_thread:
            outcomes = []
            for number, search in enumerate(self.searches, start=1):
                tell(f"trying the search on new people, part {number} of {N_FOLDS}")
                outcomes.append(search.outcomes(target, shrinkages))
        return [self._new_to_folds(some) for some in zip(*outcomes, strict=True)]

    def initial_directions(self, target: float) -> FoldDirections:
        """Return the initial directions of these searches, on all columns."""
        with single_blas_thread:
            outcomes = [search.initial_outcome(target) for search in self.searches]
        return self._new_to_folds(outcomes)

    def _new_to_folds(self, outcomes: Sequence[SearchOutcome]) -> FoldDirections:
        problem = self.kept.problem
        parts = []
        for number, outcome in enumerate(outcomes):
            held_out = np.flatnonzero(self.fold == number)
            inner = self.searches[number].sample.problem
            eta = problem.terms.take(held_out).total(outcome.points, 0.0)
            known = inner.terms.total(outcome.points, 0.0)
            parts.append(FoldDirection(inner, outcome, known, held_out, eta))
        return FoldDirections(problem, self.fold, parts)


class FoldDirection(NamedTuple):
    """A direction and the rows of one fold, which it is new to.

    - `problem`: that of the rows outside the fold, or of a part of them where they are too many.
    - `known_eta` (n,): their η without an offset.
    - `held_out` (m,): the rows of the fold; `eta` (m,) has their η without an offset.
    """

    problem: FitProblem
    outcome: SearchOutcome
    known_eta: Floats
    held_out: Codes
    eta: Floats

    def known_share(self, offset: float) -> float:
        """Return the share of the rows of the problem that change with an offset."""
        changed = (self.known_eta + offset > 0) & self.problem.may_change
        return self.problem.rows.count(changed) / self.problem.rows.n_people

    def offset(self, target: float, extra: float) -> float:
        """Return the offset for a target, determined on the rows of the problem.

        With `extra`, it changes this share more of these rows than for the target.
        """
        effects, outcome = self.problem.effects, self.outcome
        effects = effects if outcome.weights.any() else effects.of_nobody()
        inequalities = self.problem.inequalities(target, effects)
        offset = best_offset(effects, inequalities, self.known_eta, outcome.weights).offset
        if extra:
            outcome = replace(outcome, offset=offset + outcome.mean_total)
            outcome = extend_past_target(self.problem, outcome, extra)
            offset = outcome.offset - outcome.mean_total
        return offset


@dataclass(frozen=True)
class FoldDirections:
    """A direction for each fold; its offset is determined on the rows outside the fold."""

    problem: FitProblem
    fold: FoldNumbers
    parts: Sequence[FoldDirection]

    def figures(self, target: float) -> ExpectedFigures:
        """Return the figures of the directions with offsets for a target, on rows new to them."""
        return self.figures_and_share(target, 0.0)[0]

    def figures_and_share(self, target: float, extra: float) -> tuple[ExpectedFigures, float]:
        """Return the figures on rows new to the directions, and the share of known rows changed.

        With `extra`, this share more of the rows outside a fold changes than for the target.
        """
        decisions = self.problem.rows.base.decisions.copy()
        shares = []
        for part in self.parts:
            offset = part.offset(target, extra)
            may_change = self.problem.may_change[part.held_out]
            decisions[part.held_out] ^= (part.eta + offset > 0) & may_change
            shares.append(part.known_share(offset))
        return figures_on_folds(self.problem, decisions, self.fold), float(np.mean(shares))


def without_fold(problem: FitProblem, fold: FoldNumbers, number: int) -> FitProblem:
    """Return the problem on the rows outside one fold, or a part of them, with the same terms."""
    index = _part_to_search(problem, np.flatnonzero(fold != number))
    cost, soft = problem.change_cost, problem.soft_cells
    if isinstance(soft, SoftCells):
        soft = SoftCells(soft.models, soft.rows[index], without=number)
    inner = replace(
        problem,
        rows=replace(take_fit_rows(problem.rows, index), kept_groups=problem.rows.is_large_group),
        terms=problem.terms.take(index),
        change_cost=None if cost is None else cost[index],
        soft_cells=soft,
    )
    inner.__dict__["moments"] = problem.moments  # weights then have the same unit
    return inner


def _part_to_search(problem: FitProblem, rows: Codes) -> Codes:
    """Return sorted rows, or a random part of them where they are too many.

    Each cell is expected to keep MIN_ROWS_OF_A_CELL, or all of its rows: an offset that is
    determined on the rates of a few people is mostly chance.
    """
    sizes = np.bincount(problem.cells.index[rows] + 1)[1:]
    shares = MIN_ROWS_OF_A_CELL / sizes[sizes > 0]
    share = shares.max(initial=MAX_ROWS_WITHOUT_FOLD / len(rows))
    return np.sort(random_part(rows, int(np.ceil(share * len(rows)))))


# ---------------------------------------------------------------------------------------------
# Other offsets


def with_target(kept: KeptUpdate, target: float) -> KeptUpdate:
    """Return the update with the same points, and the exact offset for another target."""
    return kept._replace(outcome=outcome_at(kept.problem, kept.outcome, target))


def outcome_at(
    problem: FitProblem, outcome: SearchOutcome, target: float, eta: Floats | None = None
) -> SearchOutcome:
    """Return the outcome with the same points, and the exact offset for a target.

    `eta` (n,) are the totals of the points; None to compute them.
    """
    effects = problem.effects if outcome.weights.any() else problem.effects.of_nobody()
    inequalities = problem.inequalities(target, effects)
    eta = problem.terms.total(outcome.points, 0.0) if eta is None else eta
    moved = best_offset(effects, inequalities, eta, outcome.weights)
    return replace(outcome.moved(moved.offset), violation=moved.violation)
