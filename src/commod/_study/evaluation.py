"""Rows on which updates are measured, and the figures of one update, checked against the limit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.rates import Cells, count_cells
from commod.bounds import exact_fairness, fewest_expected_changes
from commod.bounds._counts import fewest_number
from commod.metrics._constraint import ConstraintLike, get_constraint
from commod.metrics._fairness import fairness_of
from commod.updates.base import Decisions, expected_moves

__all__ = ["EvaluationRows", "as_made"]

Mask = NDArray[np.bool_]

ROUNDING = 1e-9  # of all rows: sums of chances are rounded, and so is the limit in real numbers


@dataclass(frozen=True)
class EvaluationRows:
    """The rows a frontier is measured on, with the base model's decisions `before` (n,).

    `group` (n,) numbers the groups of the constraint, −1 for one that is left out; `label` is None
    where true labels are not known; `gain_raises` says whether a positive decision is the
    favourable one.
    """

    constraints: ConstraintLike
    before: Mask
    label: Mask | None
    group: NDArray[np.intp]
    n_groups: int
    gain_raises: bool

    def __len__(self) -> int:
        return len(self.before)

    def fairness(self, decisions: Decisions) -> float:
        """Return the metric of the constraint, of expected rates where lots are drawn."""
        kept = self.group >= 0
        label = None if self.label is None else self.label[kept]
        weight = np.ones(int(kept.sum()))
        group = self.group[kept]
        return fairness_of(self.constraints, decisions[kept], label, group, self.n_groups, weight)

    def accuracy(self, decisions: Decisions) -> float:
        """Return the (expected) share of right decisions; NaN where labels are not known."""
        if self.label is None:
            return float("nan")
        return float(np.mean(1 - np.abs(decisions - self.label * 1.0)))

    def measure(
        self, after: Decisions, *, may_raise: bool = True, may_lower: bool = True
    ) -> dict[str, float]:
        """Return the figures of an update that decides `after`, and the limit it is held against.

        An update that changes fewer decisions than the limit at its own fairness would be a bug in
        one of the two: the program stops there.
        """
        after = as_made(after)
        raised, lowered = expected_moves(self.before, after)
        n_gains, n_losses = (raised, lowered) if self.gain_raises else (lowered, raised)
        n_changes = raised + lowered
        limit = self._limit(after, may_raise, may_lower)
        if n_changes < limit - ROUNDING * len(self) * (after.dtype != np.bool_):
            raise AssertionError(
                f"{n_changes} changes reach what takes at least {limit}: this is a bug in commod, "
                "please report it."
            )
        return {
            "fairness": self.fairness(after),
            "accuracy": self.accuracy(after),
            "change_rate": n_changes / len(self),
            "n_changes": n_changes,
            "n_gains": n_gains,
            "n_losses": n_losses,
            "limit": limit / len(self),
        }

    def limit_at(
        self,
        fairness: float,
        *,
        may_raise: bool = True,
        may_lower: bool = True,
        in_expectation: bool = False,
    ) -> float:
        """Return the fewest changes that reach a fairness, as a share; NaN where undefined.

        `in_expectation`: of decisions that may be drawn by lot, in any direction.
        """
        if np.isnan(fairness) or not self._sizes.all():
            return float("nan")
        return self._fewest(fairness, may_raise, may_lower, in_expectation) / len(self)

    # -- the limit at the fairness that was reached ------------------------------------------------

    @cached_property
    def _cells(self) -> Cells:
        return Cells.of(self.constraints, self.group, self.n_groups, self.label)

    @cached_property
    def _counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return count_cells(self._cells, self.before)

    @property
    def _sizes(self) -> NDArray[np.int64]:
        return self._counts[0]

    @property
    def _positives(self) -> NDArray[np.int64]:
        return self._counts[1]

    def _limit(self, after: Decisions, may_raise: bool, may_lower: bool) -> float:
        """Return the fewest changes for exactly the fairness of `after`; NaN where undefined."""
        if not self._sizes.all():
            return float("nan")
        if after.dtype != np.bool_:
            value = self.fairness(after)
            return value if np.isnan(value) else self._fewest(value, True, True, True)
        counts = count_cells(self._cells, after.astype(np.bool_))
        exact = exact_fairness(self.constraints, *counts)
        if exact is None:
            return float("nan")
        return self._fewest(exact, may_raise, may_lower, False)

    def _fewest(
        self, target: float | Fraction, may_raise: bool, may_lower: bool, in_expectation: bool
    ) -> float:
        """Return the fewest changes that reach a target; NaN where none do."""
        table = self.constraints, self._sizes, self._positives, target
        if in_expectation:
            reached = get_constraint(self.constraints).is_ratio and target <= 0
            return 0.0 if reached else fewest_expected_changes(*table)
        fewest = fewest_number(*table, may_raise=may_raise, may_lower=may_lower)
        return float("nan") if fewest is None else fewest


def as_made(decisions: Decisions) -> Decisions:
    """Return chances that are all 0 or 1 as the decisions they are.

    Examples
    --------
    >>> as_made(np.array([0.0, 1.0]))
    array([False,  True])
    >>> as_made(np.array([0.0, 0.5]))
    array([0. , 0.5])
    """
    if decisions.dtype != np.bool_ and np.isin(decisions, (0.0, 1.0)).all():
        return decisions.astype(np.bool_)
    return decisions
