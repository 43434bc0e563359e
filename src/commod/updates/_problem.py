"""Hold the problem of one fit: its rows, terms, constraint, caps and directions of change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from commod._data.encoding import Encoding, TermTable
from commod._data.labels import is_label_in
from commod._evidence.task import N_FOLDS, Caps
from commod._solvers.cells import Cells, count_cells
from commod._text import did_you_mean, list_names, shown
from commod.bounds import fewest_changes
from commod.bounds._general import fewest_changes_of
from commod.exceptions import InputError
from commod.metrics._comparison import GroupComparison
from commod.metrics._constraint import Constraint
from commod.updates._compared import ComparedCells, Standing, all_kept
from commod.updates._fit_rows import FitRows
from commod.updates._interface import AllowedChanges
from commod.updates._probable_cells import probable_cells

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]


# For the exact limit of several constraints; then it is a proven bound.
LIMIT_SECONDS, ROUGH_SECONDS = 5.0, 0.3

# cached properties that do not depend on the direction of changes
SAME_IN_EVERY_DIRECTION = (
    *("compared", "cells", "is_weighted", "base_fairness", "moments", "fold"),
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

    def with_direction(self, may_raise: bool, may_lower: bool, **others: Any) -> Self:
        """Return the problem where decisions may only change in the given directions.

        `others` are further fields that the search looks at, but none of the rows or the terms.
        """
        problem = replace(self, may_raise=may_raise, may_lower=may_lower, **others)
        for name in SAME_IN_EVERY_DIRECTION:
            problem.__dict__[name] = getattr(self, name)
        return problem

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


class KnownLimit(NamedTuple):
    """The fewest changes: `n_changes` is proven to be needed, and enough where it `is_exact`."""

    n_changes: int
    is_exact: bool


def _simple_limit(
    constraint: Constraint, sizes: Counts, positives: Counts, target: float, changeable: Any
) -> KnownLimit | None:
    best = fewest_changes(constraint, sizes, positives, target, **changeable)
    if best is None:
        return None
    return KnownLimit(int(np.abs(best - positives).sum()), is_exact=True)


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
    return KnownLimit(best.lower_bound, best.is_exact)


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
