"""The question of one fit: its rows, terms, constraint and caps, and the exact limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from commod._data.arrays import Floats, Mask
from commod._data.encoding import BinTerms, CategoryTerms, Encoding, TermTable, learn_encoding
from commod._data.labels import is_label_in
from commod._evidence.task import N_FOLDS, Caps, EvidenceTask, Required
from commod._statistics.promises import fairness_interval, sampled_interval
from commod._text import did_you_mean, list_names, shown
from commod.bounds import fewest_changes
from commod.bounds._general import fewest_changes_of
from commod.exceptions import InputError
from commod.metrics._cells import CellTable, Strata, count_cells, worst_value
from commod.metrics._comparison import GroupComparison
from commod.metrics._constraint import Constraint
from commod.metrics._requirements import Requirements
from commod.scorecard import distances
from commod.updates._fit_rows import FitRows, point_rows
from commod.updates._interface import AllowedChanges

MAX_LIMIT_ROWS = 50_000  # with more rows, the linear programme takes too long
ROUNDING = 1e-6  # of a number of changes

Counts = NDArray[np.int64]


# The fewest changes: the number is proven to be needed and, where it is exact, enough.
KnownLimit = tuple[int, bool]

# For the exact limit of several constraints; then it is a proven bound.
LIMIT_SECONDS, ROUGH_SECONDS = 5.0, 0.3

# cached properties that do not depend on the direction of changes
SAME_IN_EVERY_DIRECTION = (
    *("compared", "is_weighted", "base_fairness", "moments", "fold"),
    *("_n_changeable", "_known_limits"),
)


@dataclass(frozen=True)
class FitProblem:
    """Rows, terms and requirements of one fit.

    - `constraint`: the constraint whose target moves; `standing`: those that keep their bounds.
    - `may_raise`, `may_lower`: whether decisions may become positive, and may become negative.
    - `monotone`: +1 or −1 for columns that may only raise, or only lower, the evidence.
    - `raising_is_a_gain`: whether a decision that becomes positive is a gain for the person.
    - `max_margin`: the largest |score − threshold| at which a decision may change; None: any.
    """

    rows: FitRows
    encoding: Encoding
    terms: TermTable
    constraint: Constraint
    caps: Caps
    may_raise: bool
    may_lower: bool
    monotone: Mapping[str, int]
    raising_is_a_gain: bool = True
    max_margin: float | None = None
    standing: tuple[Standing, ...] = ()

    @property
    def direction(self) -> str:
        """Return the direction of changes by the name that users give it."""
        if self.may_raise and self.may_lower:
            return "any"
        return "gains_only" if self.may_raise == self.raising_is_a_gain else "losses_only"

    def with_direction(self, may_raise: bool, may_lower: bool) -> Self:
        """Return the problem where decisions may only change in the given directions."""
        return self._with(may_raise=may_raise, may_lower=may_lower)

    def _with(self, **fields: Any) -> Self:
        """Return the problem with other fields, but the same rows, terms and cells."""
        problem = replace(self, **fields)
        for name in SAME_IN_EVERY_DIRECTION:
            problem.__dict__[name] = getattr(self, name)
        return problem

    def loosened(self, values: Sequence[float]) -> FitProblem:
        """Return the problem where a bound that stands and is missed becomes the value reached.

        `values` are those of the constraints that stand. Limits are then those of the same
        fairness.
        """
        if all_kept(self.standing, values):
            return self
        pairs = zip(self.standing, values, strict=True)
        problem = self._with(standing=tuple(one.loosened(value) for one, value in pairs))
        bounds = tuple(one.bound for one in problem.standing)
        problem.__dict__["compared"] = replace(self.compared, bounds=bounds)
        return problem

    # -- counts and inequalities -------------------------------------------------------------------

    @cached_property
    def compared(self) -> ComparedCells:
        """Return the cells of the rows, and which of their rates are compared."""
        return ComparedCells.of(self.rows, self.constraint, self.standing)

    @property
    def is_simple(self) -> bool:
        """Return whether there is one constraint, for which exact algorithms are known."""
        return self.constraint.is_simple and not self.standing

    def counts(self, decisions: Mask) -> tuple[Counts, Counts]:
        """Return sizes and positives of the cells, both of the shape of the cells."""
        return count_cells(self.compared.table, decisions, self.rows.people)

    def keeps_standing(self, decisions: Mask) -> bool:
        """Return whether all constraints that stand keep their bounds."""
        return all_kept(self.standing, self.compared.standing_values(decisions))

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

    @cached_property
    def is_weighted(self) -> bool:
        """Return whether rows have different weights."""
        if self.rows.people is None:
            return bool((self.rows.weight != self.rows.weight[0]).any())
        weight = self.rows.weight / self.rows.people
        return not np.allclose(weight, weight[0], rtol=1e-9, atol=0.0)

    @cached_property
    def base_fairness(self) -> float:
        """Return the fairness of the base model; the least fair value where it is undefined."""
        value = self.rows.fairness(self.constraint, self.rows.base.decisions)
        return self.constraint.least_fair if np.isnan(value) else value

    def _limit(self, target: float, moves: tuple[bool, bool], is_rough: bool) -> KnownLimit | None:
        """Return the fewest changes in some directions; None where no decisions are enough.

        `moves` says whether decisions may be raised, and lowered.
        """
        question = (target, self.compared.bounds, moves, is_rough)
        if question not in self._known_limits:
            sizes, positives = self.counts(self.rows.base.decisions)
            may_raise, may_lower = moves
            n_raisable, n_lowerable = self._n_changeable
            changeable: dict[str, Any] = {
                "may_raise": may_raise,
                "may_lower": may_lower,
                "n_raisable": n_raisable,
                "n_lowerable": n_lowerable,
            }
            limit: KnownLimit | None = None
            if self.is_simple:
                best = fewest_changes(self.constraint, sizes, positives, target, **changeable)
                if best is not None:
                    limit = int(np.abs(best - positives).sum()), True
            else:
                changeable["time_limit"] = ROUGH_SECONDS if is_rough else LIMIT_SECONDS
                required = self.compared.required(target, by_counts=True)
                found = fewest_changes_of(
                    required, sizes, positives, **changeable, is_rough=is_rough
                )
                if found is not None:
                    limit = found.lower_bound, found.is_exact
            self._known_limits[question] = limit
        return self._known_limits[question]

    @cached_property
    def _known_limits(self) -> dict[tuple[Any, ...], KnownLimit | None]:
        """Return the answers of `_limit` so far: a search asks the same several times."""
        return {}

    @cached_property
    def _n_changeable(self) -> tuple[Counts, Counts]:
        """Return how many rows of each cell could be raised, and lowered, if both were allowed."""
        decisions = self.rows.base.decisions
        open_rows = AllowedChanges(max_margin=self.max_margin).mask(self.rows.base)
        raisable, lowerable = (
            self.compared.table.totals((open_rows & rows) * self.rows.each)
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
        moves = (self.may_raise, self.may_lower)
        known = self._limit(
            target, moves if raise_only is None else (raise_only, not raise_only), is_rough
        )
        return float("inf") if known is None else known[0] / self.rows.n_people

    def is_exact_limit(self, target: float) -> bool:
        """Return whether `limit` is the smallest share; otherwise it is a proven lower bound.

        With probabilities of the groups, it is within a few people.
        """
        if self.is_simple or self.rows.probabilities is not None:
            return True
        known = self._limit(target, (self.may_raise, self.may_lower), is_rough=False)
        return known is None or known[1]

    # -- what changes do -----------------------------------------------------------------------

    @cached_property
    def may_change(self) -> Mask:
        """Return the rows whose decision may change, shape (n,)."""
        allowed = AllowedChanges(self.may_raise, self.may_lower, self.max_margin)
        return allowed.mask(self.rows.base)

    @cached_property
    def fold(self) -> NDArray[np.int8]:
        """Return the fold of each row, (n,), by the content of the row: see `row_hashes`."""
        return self.rows.folds(N_FOLDS)

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


def evidence_task(problem: FitProblem, target: float, *, is_new: bool = True) -> EvidenceTask:
    """Return the question of a problem for a target."""
    rows, compared = problem.rows, problem.compared
    table = compared.table
    cell, share = _members(problem)
    column, is_level, is_bin, sign = _term_kinds(problem)
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
        pinned=np.full(problem.terms.n_terms, np.nan),
        fold=problem.fold,
        positive=rows.base.decisions,
        distance=distances(rows.base.scores, rows.base.threshold),
        may_change=problem.may_change,
        cell=cell,
        share=share,
        totals=compared.weights.ravel(),
        sizes=_effective_sizes(problem),
        is_known=rows.groups.is_known if rows.probabilities is None else np.ones(len(rows), bool),
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
    row = table.row[:, None]
    cell = np.where(row < 0, n_cells, row * table.n_groups + np.arange(table.n_groups))
    return cell, table.probabilities


def _effective_sizes(problem: FitProblem) -> Floats:
    """Return how many people of equal weight have the chance of each cell, (C,)."""
    compared, rows = problem.compared, problem.rows
    if not problem.is_weighted:
        return compared.table.totals(rows.each).ravel()
    squares = compared.table.totals(rows.square_weight).ravel()
    return compared.weights.ravel() ** 2 / np.where(squares > 0, squares, 1.0)


def _term_kinds(problem: FitProblem) -> tuple[NDArray[np.intp], Mask, Mask, Floats]:
    """Return the column of each term, whether it is a level or a bin, and its sign, (d,) each."""
    kinds = []
    # A column that must not help has no positive points. Counted decisions may be losses.
    gain = 1.0 if problem.raising_is_a_gain else -1.0
    for number, spec in enumerate(problem.encoding.columns):
        sign, is_level = gain * problem.monotone.get(spec.name, 0), isinstance(spec, CategoryTerms)
        n_values = spec.n_terms - (not isinstance(spec, CategoryTerms) and spec.has_missing_term)
        kinds += [(number, is_level, isinstance(spec, BinTerms), sign)] * n_values
        kinds += [(number, is_level, False, 0.0)] * (spec.n_terms - n_values)
    column, level, bins, signs = np.array(kinds, dtype=np.float64).reshape(-1, 4).T
    return column.astype(np.intp), level.astype(bool), bins.astype(bool), signs


# ---------------------------------------------------------------------------------------------
# The question that a ControlledDebiaser asks


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
        numeric="bins" if update.points in ("per bin", "integers") else "unit",
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
        standing=update.standing(),
        caps=Caps(update.max_changes, update.max_accuracy_loss, update.max_volume_change),
        may_raise=may_raise,
        may_lower=may_lower,
        monotone=monotone,
        max_margin=update.max_margin,
        raising_is_a_gain=update._raising_is_a_gain(),
    )
    problem.check_cells()
    return problem


def proven_limit(problem: FitProblem, target: float, *, raise_only: bool | None = None) -> float:
    """Return a share of changes that every update needs for a target; infinite if none reaches it.

    Where only probabilities of the groups are known, it is that of a method that knows these. It
    solves the linear programme in which decisions may change in part, so no update needs fewer. NaN
    on tables of more than MAX_LIMIT_ROWS rows.
    """
    if problem.rows.probabilities is None:
        return problem.limit(target, raise_only=raise_only, is_rough=False)
    if raise_only is not None:
        problem = problem.with_direction(raise_only, not raise_only)
    if len(problem.rows) > MAX_LIMIT_ROWS:
        return float("nan")
    task = evidence_task(problem, target, is_new=False)
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


def point_problem(problem: FitProblem) -> FitProblem:
    """Return the problem of the rows that points come from; the problem itself if these are all."""
    rows = point_rows(problem.rows)
    if rows is problem.rows:
        return problem
    return replace(problem, rows=rows, terms=problem.terms.take(np.arange(len(rows))))


# ---------------------------------------------------------------------------------------------
# What is compared
#
# One constraint moves: its target may change from search to search. The others stand: they keep
# their bounds in every search.


class Standing(NamedTuple):
    """A constraint that keeps its bound while another one moves."""

    constraint: Constraint
    bound: float

    def is_met(self, value: float) -> bool:
        """Return whether a value of the metric keeps the bound; False for NaN."""
        return bool(self.constraint.is_met(value, self.bound))

    def loosened(self, value: float) -> Standing:
        """Return the constraint with a bound that the value keeps: the value, if it misses it."""
        return self if self.is_met(value) or np.isnan(value) else self._replace(bound=value)


def all_kept(standing: Sequence[Standing], values: Sequence[float]) -> bool:
    """Return whether each value keeps the bound of its constraint."""
    return all(one.is_met(value) for one, value in zip(standing, values, strict=True))


def standing_constraints(requirements: Requirements) -> tuple[Standing, ...]:
    """Return all constraints but the first one; each of them needs a bound."""
    if len(requirements.parts) == 1:
        return ()
    for part in requirements.parts:
        if part.bound is None:
            raise InputError(
                f"constraints has {len(requirements.parts)} parts, but {part.text!r} has no bound. "
                "State a bound for each of them, such as 'demographic parity >= 0.8'.",
                parameter="constraints",
            )
    others = requirements.parts[1:]
    return tuple(Standing(part.constraint, float(part.bound or 0.0)) for part in others)


@dataclass(frozen=True)
class ComparedCells:
    """The cells of the rows of a fit, and which of their rates are compared.

    The first constraint of `table` moves; `bounds` are those of the others.
    """

    table: CellTable
    bounds: tuple[float, ...]
    weight: Floats
    people: Floats | None = None

    @classmethod
    def of(
        cls, rows: FitRows, constraint: Constraint, standing: Sequence[Standing]
    ) -> ComparedCells:
        """Return the cells of all constraints of a fit."""
        people = (rows.strata, *rows.large_groups, rows.label, rows.weight)
        made = cls.of_people(constraint, standing, *people)
        table = replace(made.table, probabilities=rows.probabilities)
        return replace(made, table=table, people=rows.people)

    @classmethod
    def of_people(
        cls,
        constraint: Constraint,
        standing: Sequence[Standing],
        strata: Mapping[Constraint, Strata],
        group: NDArray[np.intp],
        n_groups: int,
        label: Mask | None,
        weight: Floats,
    ) -> ComparedCells:
        """Return the cells of people whose `group` (n,) is not −1.

        `strata` are those of the constraints that have a condition.
        """
        constraints = [constraint, *(one.constraint for one in standing)]
        everybody = Strata.everybody(len(group), n_groups)
        parts = [everybody if one.within is None else strata[one] for one in constraints]
        table = CellTable.of(constraints, parts, group, n_groups, label)
        return cls(table, tuple(one.bound for one in standing), weight)

    @cached_property
    def sizes(self) -> Counts:
        """Return the number of people in each cell, (R, G)."""
        people = np.ones(len(self.weight)) if self.people is None else self.people
        return np.rint(self.table.totals(people)).astype(np.int64)

    @cached_property
    def weights(self) -> Floats:
        """Return the weight of the rows in each cell, (R, G)."""
        return self.table.totals(self.weight)

    @cached_property
    def by_rates(self) -> list[list[GroupComparison]]:
        """Return the comparisons of each constraint as functions of the weighted rates, (A,)."""
        return [
            [one.per_rate(self.weights.ravel()) for one in self.table.comparisons(i, self.weights)]
            for i in range(len(self.table.constraints))
        ]

    @cached_property
    def by_counts(self) -> list[list[GroupComparison]]:
        """Return the comparisons of each constraint as functions of the numbers of positives."""
        sizes = self.sizes.astype(np.float64)
        return [self.table.comparisons(i, sizes) for i in range(len(self.table.constraints))]

    def required(
        self, target: float, *, by_counts: bool = False
    ) -> list[tuple[GroupComparison, float]]:
        """Return all comparisons with their bounds, where the first constraint has a target."""
        compared = self.by_counts if by_counts else self.by_rates
        bounds = (target, *self.bounds)
        return [(one, b) for some, b in zip(compared, bounds, strict=True) for one in some]

    def value(self, decisions: Mask | Floats) -> float:
        """Return the metric of the constraint that moves."""
        return self._values(decisions, [0])[0]

    def standing_values(self, decisions: Mask | Floats) -> tuple[float, ...]:
        """Return the metrics of the constraints that stand."""
        return self._values(decisions, range(1, len(self.table.constraints)))

    def _values(self, decisions: Mask | Floats, numbers: Iterable[int]) -> tuple[float, ...]:
        weights = np.where(self.weights > 0, self.weights, 1.0)
        rates = self.table.totals(self.weight * decisions) / weights
        return tuple(
            worst_value(self.table.constraints[i], self.by_rates[i], rates.ravel()) for i in numbers
        )

    def loosened(self, decisions: Mask | Floats) -> ComparedCells:
        """Return the same cells; a bound that decisions (n,) miss becomes what they reach."""
        standing = map(Standing, self.table.constraints[1:], self.bounds)
        values = self.standing_values(decisions)
        loosened = (one.loosened(value) for one, value in zip(standing, values, strict=True))
        return replace(self, bounds=tuple(one.bound for one in loosened))

    @cached_property
    def compared_by_each(self) -> list[Mask]:
        """Return the cells that the comparisons of each constraint depend on, (R, G) each."""
        masks = []
        for comparisons in self.by_counts:
            used = np.zeros(self.table.shape, dtype=bool)
            for one in comparisons:
                for table in one.tables:
                    used.flat[table.cells] = True
            masks.append(used)
        return masks

    @cached_property
    def n_counted(self) -> Counts:
        """Return how many rows each number that is compared counts, shape (n_numbers,)."""
        sizes = self.sizes.ravel()
        counts = [
            int(sizes[is_counted].sum())
            for compared in self.by_counts
            for one in compared
            for table in one.tables
            for is_counted in table.counted
        ]
        return np.array(counts, dtype=np.int64)
