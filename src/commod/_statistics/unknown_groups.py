"""Bound a fairness metric over what the groups of unknown people could be.

- `worst_interval`: every assignment of the unknown people to groups is possible.
- `calibrated_interval`: each person is in a group with a stated probability, independently.

Tables of counts have shape (n_rate_rows, n_groups), one row per rate that is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commod._data.arrays import Floats
from commod.metrics._constraint import Constraint, ConstraintLike, get_constraint

N_DRAWS = 4_000
TINY = 1e-300  # avoids 0 / 0


class UnknownInterval(NamedTuple):
    """The smallest and the largest value of a metric; `is_exact` where both can occur."""

    low: float
    high: float
    is_exact: bool


UNDEFINED = UnknownInterval(float("nan"), float("nan"), is_exact=False)


def no_interval_text(constraints: Sequence[Constraint], metrics: Sequence[str]) -> str:
    """Return which stated constraints have no interval over the unknown groups, and why.

    `metrics` are their names; the text is empty where the only constraint has an interval.

    Examples
    --------
    >>> no_interval_text([get_constraint("minimum_rate")], ["lowest selection rate"])
    'How far the lowest selection rate could move with the unknown groups is not given: only the
    first constraint has such an interval, if it is a ratio or a difference of rates of all people.'
    """
    named = zip(constraints, metrics, strict=True)
    without = [f"the {name}" for i, (one, name) in enumerate(named) if i or not one.is_simple]
    if not without:
        return ""
    return (
        f"How far {' and '.join(without)} could move with the unknown groups is not given: only "
        "the first constraint has such an interval, if it is a ratio or a difference of rates of "
        "all people."
    )


def worst_interval(
    constraints: ConstraintLike,
    sizes: ArrayLike,
    positives: ArrayLike,
    unknown_sizes: ArrayLike,
    unknown_positives: ArrayLike,
    *,
    may_be_elsewhere: bool = False,
) -> UnknownInterval:
    """Return between which values a metric lies, whatever the groups of unknown people are.

    The least fair value is exact. It gives all unknown positive decisions to one group and all
    negative ones to another. The fairest value is exact for two groups, if unknown people belong to
    these and weights count whole people. Otherwise it is a proven bound: each pair of groups is
    compared as if all unknown people could be theirs.

    Parameters
    ----------
    constraints : str or Constraint
        A constraint on ratios or differences of rates of all people.
    sizes, positives : array-like of shape (n_rate_rows, n_groups)
        How many people of each group count, and how many of them have a positive decision.
    unknown_sizes, unknown_positives : array-like of shape (n_rate_rows,)
        The same for the people whose group is not known.
    may_be_elsewhere : bool, default=False
        Whether unknown people may also belong to groups that are not compared.

    Returns
    -------
    UnknownInterval

    Examples
    --------
    >>> low, high, is_exact = worst_interval("demographic_parity", [[10, 10]], [[5, 2]], [2], [1])
    >>> round(low, 3), round(high, 3), is_exact
    (0.333, 0.6, True)
    """
    constraint = get_constraint(constraints)
    known = np.asarray(sizes, np.float64), np.asarray(positives, np.float64)
    others = np.asarray(unknown_sizes, np.float64), np.asarray(unknown_positives, np.float64)
    if known[0].shape[1] < 2:
        return UNDEFINED
    if not known[0].all():  # a group may be empty, or consist of one person
        low, high = sorted((constraint.least_fair, constraint.ideal))
        return UnknownInterval(low, high, is_exact=False)
    whole = not may_be_elsewhere
    tables = zip(*known, *others, strict=True)
    rows = [_CountedRate(n, k, float(m), float(m_pos), whole) for n, k, m, m_pos in tables]
    is_exact = all(row.is_exact for row in rows)
    if constraint.is_ratio:
        low, high = rows[0].lowest_ratio(), rows[0].highest_ratio()
        return UnknownInterval(low, high, is_exact) if np.isfinite(low) else UNDEFINED
    fairest, least_fair = (
        sum(row.smallest_gap() for row in rows),
        sum(row.largest_gap() for row in rows),
    )
    return UnknownInterval(float(fairest), float(least_fair), is_exact)


class _CountedRate(NamedTuple):
    """The counts of one rate: by group (n_groups,), and of unknown people."""

    sizes: Floats
    positives: Floats
    unknown_size: float
    unknown_positive: float
    is_whole: bool

    @property
    def is_exact(self) -> bool:
        """Return whether two groups share all unknown people, who are counted one by one."""
        if not self.is_whole or len(self.sizes) > 2:
            return False
        values = np.array([*self.sizes, *self.positives, self.unknown_size, self.unknown_positive])
        return bool((values == np.rint(values)).all())

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Return the lowest and the highest rate that each group could have."""
        negative = self.unknown_size - self.unknown_positive
        lowest = self.positives / (self.sizes + negative)
        highest = (self.positives + self.unknown_positive) / (self.sizes + self.unknown_positive)
        return lowest, highest

    def _pairs(self) -> tuple[Floats, Floats]:
        """Return the lowest rate of one group and the highest of another one, for every pair."""
        lowest, highest = self.ends
        i, j = np.nonzero(~np.eye(len(lowest), dtype=bool))
        return lowest[i], highest[j]

    def lowest_ratio(self) -> float:
        """Return the lowest ratio of two rates; NaN where nobody can have a positive decision."""
        low, high = self._pairs()
        return float((low / np.maximum(high, TINY)).min()) if high.any() else float("nan")

    def largest_gap(self) -> float:
        """Return the largest difference of two rates."""
        low, high = self._pairs()
        return float((high - low).max())

    def highest_ratio(self) -> float:
        """Return the highest ratio of the lowest rate to the highest one, or a bound on it."""
        if self.is_exact:
            low, high = self._closest_rates()
            return float((low / np.maximum(high, TINY)).max())
        low, high = self._pairs()
        return float(min((high / np.maximum(low, TINY)).min(), 1.0))

    def smallest_gap(self) -> float:
        """Return the smallest difference between the lowest and the highest rate, or a bound."""
        if self.is_exact:
            low, high = self._closest_rates()
            return float((high - low).min())
        low, high = self._pairs()
        return float(max((low - high).max(), 0.0))

    def _closest_rates(self) -> tuple[Floats, Floats]:
        """Return the lower and the higher rate of two groups, for assignments that may be fairest.

        Let the first group get x of the unknown positives and y of the unknown negatives. For each
        x, the difference of the rates falls with y. So only the two y next to its sign change
        count, and halving determines these.
        """
        n_negative = int(self.unknown_size - self.unknown_positive)
        x = np.arange(int(self.unknown_positive) + 1)

        def rates(y: NDArray[np.int64]) -> tuple[Floats, Floats]:
            first = (self.positives[0] + x) / (self.sizes[0] + x + y)
            others = self.unknown_positive - x, n_negative - y
            second = (self.positives[1] + others[0]) / (self.sizes[1] + others[0] + others[1])
            return first, second

        low, high = np.zeros_like(x), np.full_like(x, n_negative)  # the sign changes at or after
        for _ in range(n_negative.bit_length() + 1):
            middle = (low + high) // 2
            first, second = rates(middle)
            is_before = first > second
            low, high = np.where(is_before, middle, low), np.where(is_before, high, middle)
        tried = [np.stack(rates(y)) for y in (low, high, np.minimum(low + 1, n_negative))]
        both = np.concatenate(tried, axis=1)
        return both.min(axis=0), both.max(axis=0)


# ---------------------------------------------------------------------------------------------
# Probabilities


def calibrated_interval(
    constraints: ConstraintLike,
    row: NDArray[np.intp],
    decisions: NDArray[np.bool_],
    probabilities: Floats,
    weight: Floats,
    level: float = 0.95,
) -> tuple[float, float]:
    """Return the interval of a metric where everybody's group is drawn with stated probabilities.

    The numbers of positive and negative decisions of the groups are sums of independent draws. They
    are drawn from the normal distribution with the same means and covariances, with a fixed seed.

    Parameters
    ----------
    constraints : str or Constraint
        A constraint on ratios or differences of rates of all people.
    row : array of shape (n,)
        The rate that counts each person, −1 where none does.
    decisions : array of shape (n,)
    probabilities : array of shape (n, n_groups)
    weight : array of shape (n,)
    level : float
        The probability that the metric lies inside.

    Returns
    -------
    tuple of float
    """
    constraint = get_constraint(constraints)
    random_state = np.random.RandomState(0)
    rates = []
    for i in range(len(constraint.rate_rows)):
        positive, negative = (
            _drawn_numbers(probabilities[rows], weight[rows], random_state)
            for rows in ((row == i) & decisions, (row == i) & ~decisions)
        )
        rates.append(positive / np.maximum(positive + negative, TINY))
    if constraint.is_ratio:
        highest = rates[0].max(axis=1)
        values = rates[0].min(axis=1) / np.maximum(highest, TINY)
    else:
        values = np.sum([rate.max(axis=1) - rate.min(axis=1) for rate in rates], axis=0)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _drawn_numbers(
    probabilities: Floats, weight: Floats, random_state: np.random.RandomState
) -> Floats:
    """Return how many of some people each group could have, shape (N_DRAWS, n_groups)."""
    mean = weight @ probabilities
    squares = weight**2
    covariance = np.diag(squares @ probabilities) - (probabilities.T * squares) @ probabilities
    # a matrix of this kind is singular where probabilities sum to 1: take its symmetric root
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = random_state.standard_normal((N_DRAWS, len(mean))) @ root.T
    return np.asarray(np.maximum(mean + draws, 0.0))
