"""The question of one fit: its rows, terms, constraint and caps, and the exact limit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from commod._data.arrays import Floats, Mask
from commod._data.encoding import BinTerms, CategoryTerms, Encoding, TermTable, learn_encoding
from commod._data.labels import is_label_in
from commod._evidence.search import Settings
from commod._evidence.task import Caps, EvidenceTask
from commod._statistics.promises import fairness_interval, sampled_interval
from commod._text import did_you_mean, list_names, shown
from commod.bounds._general import fewest_changes
from commod.bounds._integer import Answer
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint
from commod.metrics._people import Bound, People, is_kept, loosened
from commod.scorecard import AllowedChanges, distances
from commod.updates._fit_rows import FitRows, point_rows

MAX_LIMIT_ROWS = 50_000  # with more rows, the linear programme takes too long
ROUNDING = 1e-6  # of a number of changes
MIN_CELL_PEOPLE = 10  # of a compared rate: with fewer, nothing can be expected on new people

Counts = NDArray[np.int64]


# For the exact limit of several constraints; then it is a proven bound.
LIMIT_SECONDS, ROUGH_SECONDS = 5.0, 0.3


@dataclass(frozen=True)
class Asked:
    """All that a `ControlledDebiaser` is asked for, with the labels of its base model.

    - `constraints`: what is compared. The first one has a `target`, the others keep their `bounds`;
      the first one of these is None.
    - `for_new`: whether the target is one on new people.
    - `settings`: the form of the update. `caps`: hard limits on what it changes.
    - `min_category_size`, `locked`, `has_bins`: how terms are learned from columns.
    - `monotone`: +1 or −1 for columns that may only raise, or only lower, the evidence.
    - `max_margin`: the largest |score − threshold| at which a decision may change; None: any.
    - `confidence`: that of a promise; None without one.
    - `raising_is_a_gain`: whether a decision that becomes positive is a gain for the person.
    - `is_favorable_above`: whether a score above the threshold is the favourable decision.
    - `model_reads_others`: whether the base model may read columns that the update does not.
    """

    constraints: tuple[Constraint, ...]
    bounds: tuple[Bound, ...]
    target: float
    direction: str
    for_new: bool
    settings: Settings
    caps: Caps
    min_category_size: int
    locked: Collection[str]
    has_bins: bool
    monotone: Mapping[str, int]
    max_margin: float | None
    confidence: float | None
    raising_is_a_gain: bool
    is_favorable_above: bool
    model_reads_others: bool

    def problem(self, rows: FitRows, encoding: Encoding | None = None) -> FitProblem:
        """Return the problem of a fit on `rows`; without an encoding, learn it from them.

        Of very many rows, it is learned from those that points come from.
        """
        moves = moves_of(self.direction, self.raising_is_a_gain)
        if encoding is None:
            encoding = self.learn_terms(point_rows(rows))
        terms = encoding.encode(rows.columns, len(rows))
        people = rows.compared(self.constraints)
        problem = FitProblem(rows, encoding, terms, self, people, self.bounds, *moves)
        problem.check_cells()
        return problem

    def learn_terms(self, rows: FitRows) -> Encoding:
        """Return the terms of the columns of `rows`.

        Whole-number points are those of bins. Numbers count from their rounded mean, so that three
        digits are enough for points per unit.
        """
        return learn_encoding(
            rows.columns,
            rows.weight,
            min_category_size=self.min_category_size,
            locked=self.locked,
            numeric="bins" if self.has_bins else "unit",
            centred=True,
            may_be_empty=True,
        )


def moves_of(direction: str, raising_is_a_gain: bool) -> tuple[bool, bool]:
    """Return whether decisions may become positive, and may become negative, in a direction.

    Examples
    --------
    >>> moves_of("any", True), moves_of("gains_only", False)
    ((True, True), (False, True))
    """
    if direction == "any":
        return True, True
    may_raise = raising_is_a_gain == (direction == "gains_only")
    return may_raise, not may_raise


@dataclass(frozen=True)
class FitProblem:
    """Rows, terms and requirements of one fit.

    - `asked`: what the update is asked for.
    - `compared`: the people whose rates are compared.
    - `bounds`: those that are asked for, or looser ones; the first is None.
    - `may_raise`, `may_lower`: whether decisions may become positive, and may become negative.
    - `known_limits`: the answers of `limit` so far, because a search asks the same several times.
    """

    rows: FitRows
    encoding: Encoding
    terms: TermTable
    asked: Asked
    compared: People
    bounds: tuple[Bound, ...]
    may_raise: bool
    may_lower: bool
    known_limits: dict[tuple[Any, ...], Answer | None] = field(default_factory=dict, repr=False)

    @property
    def constraint(self) -> Constraint:
        """Return the constraint whose target moves."""
        return self.compared.constraint

    @property
    def direction(self) -> str:
        """Return the direction of changes by the name that users give it."""
        if self.may_raise and self.may_lower:
            return "any"
        return "gains_only" if self.may_raise == self.asked.raising_is_a_gain else "losses_only"

    @property
    def allowed(self) -> AllowedChanges:
        """Return which decisions may change."""
        return AllowedChanges(self.may_raise, self.may_lower, self.asked.max_margin)

    def on(self, rows: FitRows, encoding: Encoding | None = None) -> FitProblem:
        """Return the same question of other rows; without an encoding, learn it from them."""
        return self.asked.problem(rows, encoding).with_direction(self.may_raise, self.may_lower)

    def of_rows(self, rows: FitRows, terms: TermTable) -> FitProblem:
        """Return the same question of other rows with the same encoding."""
        people = rows.compared(self.compared.constraints)
        return replace(self, rows=rows, terms=terms, compared=people, known_limits={})

    def in_asked_direction(self) -> FitProblem:
        """Return the problem where decisions may change in the directions that were asked for."""
        return self.with_direction(*moves_of(self.asked.direction, self.asked.raising_is_a_gain))

    def with_direction(self, may_raise: bool, may_lower: bool) -> FitProblem:
        """Return the problem where decisions may only change in the given directions."""
        return replace(self, may_raise=may_raise, may_lower=may_lower)

    # -- bounds and counts -------------------------------------------------------------------------

    def bounds_at(self, target: Bound) -> tuple[Bound, ...]:
        """Return the bounds of all constraints where the first one has a target."""
        return (target, *self.bounds[1:])

    def keeps_others(self, values: Sequence[float]) -> bool:
        """Return whether metrics of all constraints but the first one keep their bounds."""
        others = self.compared.constraints[1:], self.bounds[1:], values
        return all(map(is_kept, *others))

    def loosened(self, values: Sequence[float]) -> FitProblem:
        """Return the problem of the same fairness: a bound that is missed becomes the value.

        `values` are the metrics of all constraints but the first one.
        """
        others = self.compared.constraints[1:], self.bounds[1:], values
        return replace(self, bounds=(None, *map(loosened, *others)))

    def check_cells(self) -> None:
        """Refuse a constraint on a rate that no row counts for."""
        if not self.constraint.is_simple or self.rows.probabilities is not None:
            return  # a group that has no row for a rate is not compared; a probable one has rows
        codes, n_groups = self.rows.large_groups
        for row in self.constraint.rate_rows:
            counted = codes >= 0
            if row.label is not None:
                assert self.rows.label is not None
                counted = counted & (self.rows.label == row.label)
            empty = np.flatnonzero(np.bincount(codes[counted], minlength=n_groups) == 0)
            if not len(empty):
                continue
            compared = np.flatnonzero(self.rows.is_large_group)
            name = self.rows.groups.labels[compared[empty[0]]]
            label = "positive" if row.label else "negative"
            raise InputError(
                f"Group {name!r} has no row whose true label is {label}, so its error rate is not "
                f"defined and constraints={self.constraint.name!r} cannot be measured. Merge "
                "groups, add rows, or use demographic_parity."
            )

    @property
    def base_fairness(self) -> float:
        """Return the fairness of the base model; the least fair value where it is undefined."""
        value = self.rows.fairness(self.constraint, self.rows.base.decisions)
        return self.constraint.least_fair if np.isnan(value) else value

    @cached_property
    def _n_changeable(self) -> tuple[Counts, Counts]:
        """Return how many rows of each cell could be raised, and lowered, if both were allowed."""
        decisions = self.rows.base.decisions
        open_rows = AllowedChanges(max_margin=self.asked.max_margin).mask(self.rows.base)
        raisable, lowerable = (
            self.compared.totals((open_rows & rows) * self.rows.each)
            for rows in (~decisions, decisions)
        )
        return np.rint(raisable).astype(np.int64), np.rint(lowerable).astype(np.int64)

    def limit(
        self, target: float, *, raise_only: bool | None = None, is_rough: bool = True
    ) -> float:
        """Return the smallest share of changes that reaches a target; infinite where none does.

        `raise_only` restricts the direction: True to raising, False to lowering. For several
        constraints it may be a proven lower bound; a rough one is found sooner.
        """
        moves = self.may_raise, self.may_lower
        moves = moves if raise_only is None else (raise_only, not raise_only)
        bounds = self.bounds_at(target)
        question = (*bounds, moves, self.asked.max_margin, is_rough)
        if question not in self.known_limits:
            n_raisable, n_lowerable = self._n_changeable
            self.known_limits[question] = fewest_changes(
                self.compared,
                self.rows.base.decisions,
                bounds,
                may_raise=moves[0],
                may_lower=moves[1],
                n_raisable=n_raisable,
                n_lowerable=n_lowerable,
                time_limit=ROUGH_SECONDS if is_rough else LIMIT_SECONDS,
                is_rough=is_rough,
            )
        known = self.known_limits[question]
        return float("inf") if known is None else known.lower_bound / self.rows.n_people

    def is_exact_limit(self, target: float) -> bool:
        """Return whether `limit` is the smallest share; otherwise it is a proven lower bound.

        With probabilities of the groups, it is within a few people.
        """
        if self.compared.is_simple or self.rows.probabilities is not None:
            return True
        self.limit(target, is_rough=False)
        moves = self.may_raise, self.may_lower
        known = self.known_limits[*self.bounds_at(target), moves, self.asked.max_margin, False]
        return known is None or known.is_exact

    # -- what changes do -----------------------------------------------------------------------

    @cached_property
    def may_change(self) -> Mask:
        """Return the rows whose decision may change, shape (n,)."""
        return self.allowed.mask(self.rows.base)

    @property
    def has_enough_people(self) -> bool:
        """Return whether every rate that is compared counts enough people for folds."""
        counted = self.compared.n_counted
        return bool(len(counted)) and int(counted.min()) >= MIN_CELL_PEOPLE

    @property
    def for_new(self) -> bool:
        """Return whether the cut is counted on values that their own row did not shape."""
        return self.asked.for_new and self.has_enough_people

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the terms, both (n_terms,)."""
        return self.terms.moments(self.rows.weight)

    @property
    def scale(self) -> Floats:
        """Return the standard deviation of the terms, 1 where a term has no spread."""
        _, scale = self.moments
        return np.where(scale > 0, scale, 1.0)


def check_monotone(monotone: Mapping[str, int], names: Sequence[str]) -> None:
    """Refuse `monotone` for columns that X does not have, and for other values than 1, 0, −1."""
    for name, sign in monotone.items():
        if name not in names:
            raise InputError(
                f"monotone names {shown(name)}, but X has no such column (columns: "
                f"{list_names(names)}).{did_you_mean(name, names)}",
                parameter="monotone",
            )
        if not is_label_in(sign, (-1, 0, 1)) or isinstance(sign, bool | np.bool_):
            raise InputError(
                f"monotone={{{name!r}: {shown(sign)}}}: pass 1 where a larger value may only help, "
                "-1 where it must not help, 0 where it is free.",
                parameter="monotone",
            )


# ---------------------------------------------------------------------------------------------
# The question that the search for evidence answers


def evidence_task(problem: FitProblem, target: float, *, for_new: bool = True) -> EvidenceTask:
    """Return the question of a problem for a target."""
    rows = problem.rows
    column, is_level, is_bin, sign = _term_kinds(problem)
    return EvidenceTask.of(
        problem.compared,
        problem.bounds_at(target),
        terms=problem.terms,
        column=column,
        is_level=is_level,
        is_bin=is_bin,
        sign=sign,
        pinned=np.full(problem.terms.n_terms, np.nan),
        fold=rows.fold,
        positive=rows.base.decisions,
        distance=distances(rows.base.scores, rows.base.threshold),
        may_change=problem.may_change,
        sizes=_effective_sizes(problem),
        is_known=rows.groups.is_known if rows.probabilities is None else np.ones(len(rows), bool),
        caps=problem.asked.caps,
        for_new=for_new,
    )


def _effective_sizes(problem: FitProblem) -> Floats:
    """Return how many people of equal weight have the chance of each cell, (C,)."""
    compared, rows = problem.compared, problem.rows
    if not rows.is_weighted:
        return compared.totals(rows.each).ravel()
    squares = compared.totals(rows.square_weight).ravel()
    return compared.weights.ravel() ** 2 / np.where(squares > 0, squares, 1.0)


def _term_kinds(problem: FitProblem) -> tuple[NDArray[np.intp], Mask, Mask, Floats]:
    """Return the column of each term, whether it is a level or a bin, and its sign, (d,) each."""
    kinds = []
    # A column that must not help has no positive points. Counted decisions may be losses.
    gain = 1.0 if problem.asked.raising_is_a_gain else -1.0
    for number, spec in enumerate(problem.encoding.columns):
        sign, is_level = (
            gain * problem.asked.monotone.get(spec.name, 0),
            isinstance(spec, CategoryTerms),
        )
        n_values = spec.n_terms - (not isinstance(spec, CategoryTerms) and spec.has_missing_term)
        kinds += [(number, is_level, isinstance(spec, BinTerms), sign)] * n_values
        kinds += [(number, is_level, False, 0.0)] * (spec.n_terms - n_values)
    column, level, bins, signs = np.array(kinds, dtype=np.float64).reshape(-1, 4).T
    return column.astype(np.intp), level.astype(bool), bins.astype(bool), signs


# ---------------------------------------------------------------------------------------------
# Limits and intervals


def proven_limit(problem: FitProblem, target: float, *, raise_only: bool | None = None) -> float:
    """Return a share of changes that every update needs for a target; infinite if none reaches it.

    Where only probabilities of the groups are known, it is that of a method that knows these. It
    solves the linear programme in which decisions may change in part, so no update needs fewer. NaN
    on tables of more than MAX_LIMIT_ROWS rows, and with weights.
    """
    if problem.rows.is_weighted:
        return float("nan")
    if problem.rows.probabilities is None:
        return problem.limit(target, raise_only=raise_only, is_rough=False)
    if raise_only is not None:
        problem = problem.with_direction(raise_only, not raise_only)
    if len(problem.rows) > MAX_LIMIT_ROWS:
        return float("nan")
    task = evidence_task(problem, target, for_new=False)
    required = task.inequalities(task.base_rates)
    acting = np.flatnonzero(problem.may_change)
    slopes = np.column_stack([required.slopes[:, : task.n_cells], np.zeros(len(required.slopes))])
    raised = np.einsum("jnq,nq->jn", slopes[:, task.cell[acting]], task.step[acting])
    solved = linprog(
        np.ones(len(acting)),
        A_ub=-raised * task.side[acting],
        b_ub=slopes[:, :-1] @ task.base_rates + required.constant,
        bounds=(0, 1),
        method="highs",
    )
    if solved.status == 2:
        return float("inf")
    return float(np.ceil(solved.fun - ROUNDING)) / len(problem.rows) if solved.success else np.nan


def metric_interval(
    problem: FitProblem, decisions: NDArray[np.bool_], level: float
) -> tuple[float, float]:
    """Return the interval of the metric of decisions (n,) for people like the rows.

    NaN with weights, and where only probabilities of the groups are known.
    """
    if problem.rows.is_weighted or problem.rows.probabilities is not None:
        return float("nan"), float("nan")
    counts = problem.compared.counts(decisions)
    if problem.compared.is_simple:
        return fairness_interval(problem.constraint, *counts, level)
    sizes, positives = (part.astype(np.float64) for part in counts)
    rates = positives / np.maximum(sizes, 1.0)
    return sampled_interval(problem.constraint, problem.compared.by_rates[0], sizes, rates, level)


def point_problem(problem: FitProblem) -> FitProblem:
    """Return the problem of the rows that points come from; the problem itself if these are all."""
    rows = point_rows(problem.rows)
    if rows is problem.rows:
        return problem
    return problem.of_rows(rows, problem.terms.take(np.arange(len(rows))))
