"""Hold the problem of one fit: its rows, terms, constraint, caps and directions of change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression

from commod._data.encoding import BinTerms, Encoding, TermTable
from commod._data.labels import is_label_in
from commod._solvers.search.offset import ROUNDING
from commod._solvers.search.rates import (
    Caps,
    Cells,
    ChangeEffects,
    SumInequalities,
    change_effects,
    count_cells,
    fairness_inequalities,
)
from commod._text import did_you_mean, list_names, shown
from commod.bounds import fewest_changes
from commod.bounds._cheapest import cheapest_cost
from commod.bounds._general import fewest_changes_of
from commod.exceptions import InputError
from commod.metrics._comparison import GroupComparison
from commod.metrics._constraint import Constraint
from commod.scorecard import DISTANCE_COLUMN
from commod.updates._compared import ComparedCells, Standing, all_kept
from commod.updates._fit_rows import FitRows
from commod.updates._interface import AllowedChanges
from commod.updates._left_out import rows_in_totals
from commod.updates._probable_cells import ProbableCells, probable_cells

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]


# For the exact limit of several constraints; then it is a proven bound.
LIMIT_SECONDS, ROUGH_SECONDS = 5.0, 0.3

# cached properties that do not depend on the direction of changes
SAME_IN_EVERY_DIRECTION = (
    *("compared", "cells", "is_weighted", "base_fairness", "moments", "is_distance"),
    *("_n_changeable", "_known_limits"),
)


class CellProbabilities(Protocol):
    """How likely rows of a problem are in each cell."""

    def of(self, index: NDArray[np.intp]) -> Floats:
        """Return the probabilities of the cells of their stratum for the rows `index` (m,)."""


@dataclass(frozen=True)
class FitProblem:
    """Rows, terms and requirements of one fit.

    - `constraint`: the constraint whose target moves; `standing`: those that keep their bounds.
    - `may_raise`, `may_lower`: whether decisions may become positive, and may become negative.
    - `monotone`: +1 or −1 for columns with which r may only rise, or only fall.
    - `use_all`: search on all rows, however many they are.
    - `random_state`: draws the search sample.
    - `min_category_size`: people of a search sample that a term needs to get points from it.
    - `raising_is_a_gain`: whether a decision that becomes positive is a gain for the person.
    - `borderline`: extra changes, as a share of the fewest, for people whose change costs less.
    - `change_cost` (n,): what a change of each row costs: the distance of its score from the
      threshold (`cost_is_distance`), or what the user states. None where nothing is spent on it.
    - `known_share`: the share of changes of an update in another direction that is known already.
    - `soft_cells`: how likely each row is in each cell; None for a search on true cells.
    - `max_lines`: the most lines of a scorecard with free points; None: any number.
    - `max_margin`: the largest |score − threshold| at which a decision may change; None: any.
    """

    rows: FitRows
    encoding: Encoding
    terms: TermTable
    constraint: Constraint
    caps: Caps
    may_raise: bool
    may_lower: bool
    sparsity: float
    accuracy_weight: float
    monotone: Mapping[str, int]
    use_all: bool
    random_state: np.random.RandomState
    min_category_size: int
    raising_is_a_gain: bool = True
    borderline: float = 0.0
    change_cost: Floats | None = None
    cost_is_distance: bool = True
    known_share: float = np.inf
    max_margin: float | None = None
    soft_cells: CellProbabilities | None = None
    standing: tuple[Standing, ...] = ()
    max_lines: int | None = None

    @property
    def direction(self) -> str:
        """Return the direction of changes by the name that users give it."""
        if self.may_raise and self.may_lower:
            return "any"
        return "gains_only" if self.may_raise == self.raising_is_a_gain else "losses_only"

    def with_direction(self, may_raise: bool, may_lower: bool, **others: Any) -> Self:
        """Return the problem where decisions may only change in the given directions.

        `others` are further fields that the search looks at, but none of the rows or the terms.
        """
        problem = replace(self, may_raise=may_raise, may_lower=may_lower, **others)
        for name in SAME_IN_EVERY_DIRECTION:
            problem.__dict__[name] = getattr(self, name)
        return problem

    def with_cells(self, soft_cells: CellProbabilities | None) -> Self:
        """Return the problem with other cells in its searches; figures count true cells always."""
        return self.with_direction(self.may_raise, self.may_lower, soft_cells=soft_cells)

    def with_standing(self, standing: tuple[Standing, ...]) -> Self:
        """Return the problem with other bounds of the constraints that stand."""
        problem = self.with_direction(self.may_raise, self.may_lower, standing=standing)
        bounds = tuple(one.bound for one in standing)
        problem.__dict__["compared"] = replace(self.compared, bounds=bounds)
        return problem

    def loosened(self, values: Sequence[float]) -> FitProblem:
        """Return the problem where a bound that stands and is missed becomes the value reached.

        `values` are those of the constraints that stand. Limits are then those of the same
        fairness.
        """
        if all_kept(self.standing, values):
            return self
        pairs = zip(self.standing, values, strict=True)
        return self.with_standing(tuple(one.loosened(value) for one, value in pairs))

    # -- counts and inequalities -------------------------------------------------------------------

    @cached_property
    def compared(self) -> ComparedCells:
        """Return the cells of the rows, and which of their rates are compared."""
        return ComparedCells.of(self.rows, self.constraint, self.standing)

    @cached_property
    def cells(self) -> Cells:
        """Return the cell of each row; rows of groups that are too small are in none."""
        table = self.compared.table
        return probable_cells(Cells(table.index, table.shape), table.probabilities)

    @property
    def is_simple(self) -> bool:
        """Return whether there is one constraint, for which exact algorithms are known."""
        return self.constraint.is_simple and not self.standing

    @property
    def needs_labels(self) -> bool:
        """Return whether one of the constraints depends on true labels."""
        standing = (one.constraint.needs_labels for one in self.standing)
        return self.constraint.needs_labels or any(standing)

    def counts(self, decisions: Mask) -> tuple[Counts, Counts]:
        """Return sizes and positives of the cells, both of the shape of the cells."""
        return count_cells(self.cells, decisions, self.rows.people)

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

    def fewest_moves(self, target: float, *, may_raise: bool, may_lower: bool) -> Counts | None:
        """Return how many more positives each cell needs, with the fewest changes in all.

        The shape is that of the cells. None where no decisions reach the target.
        """
        known = self._limit(target, may_raise=may_raise, may_lower=may_lower)
        return None if known is None else known.moves

    def _limit(
        self, target: float, *, may_raise: bool, may_lower: bool, is_rough: bool = True
    ) -> KnownLimit | None:
        """Return the fewest changes in some directions; None where no decisions are enough.

        For several constraints, a search needs a rough answer only.
        """
        question = (target, self.compared.bounds, may_raise, may_lower, is_rough)
        if question not in self._known_limits:
            sizes, positives = self.counts(self.rows.base.decisions)
            n_raisable, n_lowerable = self._n_changeable
            changeable: dict[str, Any] = {
                "may_raise": may_raise,
                "may_lower": may_lower,
                "n_raisable": n_raisable,
                "n_lowerable": n_lowerable,
            }
            self._known_limits[question] = (
                _simple_limit(self.constraint, sizes, positives, target, changeable)
                if self.is_simple
                else _general_limit(
                    self.compared.required(target, by_counts=True),
                    sizes,
                    positives,
                    changeable,
                    is_rough=is_rough,
                )
            )
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
            self.cells.totals((open_rows & rows) * self.rows.each)
            for rows in (~decisions, decisions)
        )
        return np.rint(raisable).astype(np.int64), np.rint(lowerable).astype(np.int64)

    def cost_limit(self, target: float) -> float:
        """Return the least mean cost of changes that reach a target, over all rows.

        NaN where changes have no cost, for several constraints, for one with a condition, and where
        only probabilities of the groups are known. Infinite where no changes reach the target.
        """
        is_known = self.is_simple and self.rows.probabilities is None and self.rows.people is None
        if self.change_cost is None or not is_known:
            return float("nan")
        cost = cheapest_cost(
            self.constraint,
            self.cells.index,
            self.cells.shape,
            self.rows.base.decisions,
            self.change_cost,
            self.may_change,
            target,
            may_raise=self.may_raise,
            may_lower=self.may_lower,
        )
        return cost / len(self.rows)

    def limit(
        self, target: float, *, raise_only: bool | None = None, is_rough: bool = True
    ) -> float:
        """Return the smallest share of changes that reaches a target; infinite where none does.

        `raise_only` restricts the direction: True to raising, False to lowering. For several
        constraints it may be a proven lower bound; a rough one is found sooner.
        """
        may_raise, may_lower = self.may_raise, self.may_lower
        if raise_only is not None:
            may_raise, may_lower = raise_only, not raise_only
        known = self._limit(target, may_raise=may_raise, may_lower=may_lower, is_rough=is_rough)
        return float("inf") if known is None else known.n_changes / self.rows.n_people

    def is_exact_limit(self, target: float) -> bool:
        """Return whether `limit` is the smallest share; otherwise it is a proven lower bound."""
        moves = {"may_raise": self.may_raise, "may_lower": self.may_lower}
        known = self._limit(target, **moves, is_rough=False)
        return known is None or known.is_exact

    # -- what changes do -----------------------------------------------------------------------

    @cached_property
    def may_change(self) -> Mask:
        """Return the rows whose decision may change, shape (n,)."""
        allowed = AllowedChanges(self.may_raise, self.may_lower, self.max_margin)
        return allowed.mask(self.rows.base)

    @cached_property
    def effects(self) -> ChangeEffects:
        """Return what changing each row does."""
        return self.effects_on(np.arange(len(self.rows)), None)

    def effects_on(self, index: NDArray[np.intp], people: Floats | None) -> ChangeEffects:
        """Return what changing each of the rows `index` (m,) does.

        `people` (m,) is how many people each row stands for; None where that is one.
        """
        label, cells = self.rows.label, self.cells.take(index)
        weight = self.rows.weight[index] * (1.0 if people is None else people)
        if self.rows.people is not None:
            people = self.rows.people[index]
        effects = change_effects(
            cells,
            self.rows.base.decisions[index],
            weight,
            may_change=self.may_change[index],
            people=people,
            label=None if label is None else label[index],
            counted=self.counted[index],
            accuracy_weight=self.accuracy_weight,
            expected_gain=self.expected_gain[index] if self.accuracy_weight else None,
            with_caps=self.caps.any(),
        )
        if isinstance(cells, ProbableCells):
            membership = cells.membership(self.compared.n_cells_of_stratum)
            effects = effects.with_true_probabilities(membership, weight, self._stratum(index))
        return effects

    def _stratum(self, index: NDArray[np.intp]) -> NDArray[np.intp] | None:
        """Return the combination of strata of the rows `index` (m,); None where there is one."""
        return self.compared.table.stratum[index] if self.compared.n_strata > 1 else None

    def search_effects(self, index: NDArray[np.intp], people: Floats | None) -> ChangeEffects:
        """Return what changing each of the rows `index` (m,) does in a search.

        With soft cells, a change moves every rate by its expectation.
        """
        effects = self.effects if people is None else self.effects_on(index, people)
        if self.soft_cells is None:
            return effects
        weight = self.rows.weight[index] * (1.0 if people is None else people)
        return effects.soften(self.soft_cells.of(index), weight, self._stratum(index))

    @cached_property
    def counted(self) -> Mask:
        """Return the rows whose labels may choose an update, (n,): all but those of hidden groups.

        Otherwise, an update and its figures could reveal the labels of a few people.
        """
        return rows_in_totals(self.rows)

    @cached_property
    def expected_gain(self) -> Floats:
        """Return the accuracy that the change of each row is expected to gain, (n,), in [−1, 1].

        A person's own label is mostly chance, and new people have other labels. So the expectation
        follows from the score: P(label | score) is fitted to the labels of all rows.
        """
        rows = self.rows
        assert rows.label is not None
        scores = rows.base.for_positive.scores
        fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        fitted.fit(scores, rows.label.astype(np.float64), rows.weight * self.counted)
        probability = fitted.predict(scores)
        return np.asarray(np.where(rows.base.decisions, 1 - 2 * probability, 2 * probability - 1))

    def inequalities(self, target: float, effects: ChangeEffects) -> SumInequalities:
        """Return the target and the caps as inequalities on the sums of `effects`."""
        return fairness_inequalities(self.compared.required(target), effects, self.caps)

    def is_within_caps(self, changed: Mask) -> bool:
        """Return whether changing the rows `changed` (n,) keeps all caps."""
        inequalities = self.inequalities(1.0, self.effects)  # only the caps are read: any target
        violations = inequalities.matrix @ self.effects.sums(changed) - inequalities.bound
        return bool((violations[inequalities.n_soft :] <= ROUNDING).all())

    @cached_property
    def is_distance(self) -> Mask:
        """Return which terms are the distance of the score from the threshold, (n_terms,)."""
        return np.array([name == DISTANCE_COLUMN for name in self.encoding.term_columns])

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the terms, both (n_terms,)."""
        return self.terms.moments(self.rows.weight)

    @property
    def scale(self) -> Floats:
        """Return the standard deviation of the terms, 1 where a term has no spread."""
        _, scale = self.moments
        return np.where(scale > 0, scale, 1.0)


class KnownLimit(NamedTuple):
    """The fewest changes: `moves` are how many more positives each cell gets.

    `n_changes` is proven to be needed; where it `is_exact`, the moves have as many changes.
    """

    moves: Counts
    n_changes: int
    is_exact: bool


def _simple_limit(
    constraint: Constraint, sizes: Counts, positives: Counts, target: float, changeable: Any
) -> KnownLimit | None:
    best = fewest_changes(constraint, sizes, positives, target, **changeable)
    if best is None:
        return None
    moves = best - positives
    return KnownLimit(moves, int(np.abs(moves).sum()), is_exact=True)


def _general_limit(
    required: Sequence[tuple[GroupComparison, float]],
    sizes: Counts,
    positives: Counts,
    changeable: Any,
    *,
    is_rough: bool,
) -> KnownLimit | None:
    seconds = ROUGH_SECONDS if is_rough else LIMIT_SECONDS
    best = fewest_changes_of(
        required, sizes, positives, **changeable, time_limit=seconds, is_rough=is_rough
    )
    if best is None:
        return None
    after = positives if best.positives is None else best.positives
    return KnownLimit(after - positives, best.lower_bound, best.is_exact)


def check_monotone(
    monotone: Mapping[str, int],
    encoding: Encoding,
    names: Sequence[str],
    *,
    bins_allowed: bool = False,
) -> None:
    """Refuse `monotone` for columns that X does not have or, by default, that are in bins."""
    for name, sign in monotone.items():
        if name not in names:
            raise InputError(
                f"monotone names {shown(name)}, but X has no such column (columns: "
                f"{list_names(names)}).{did_you_mean(name, names)}",
                parameter="monotone",
            )
        if not is_label_in(sign, (-1, 0, 1)) or isinstance(sign, bool | np.bool_):
            raise InputError(
                f"monotone={{{name!r}: {shown(sign)}}}: pass 1 where r may only rise with the "
                "column, -1 where it may only fall, 0 where it is free.",
                parameter="monotone",
            )
        if bins_allowed:
            continue
        if sign and any(isinstance(c, BinTerms) and c.name == name for c in encoding.columns):
            raise InputError(
                f"monotone names {name!r}, which numeric='bins' cuts into bins. Use "
                "numeric='unit', where one sign covers the whole column, or leave the column out "
                "of monotone.",
                parameter="monotone",
            )
