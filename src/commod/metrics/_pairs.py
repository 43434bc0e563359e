"""Count in how many pairs of people the one whose decision changes has the higher score.

The share of pairs is an area under the curve (Mann-Whitney), ties counted half. Its interval is
DeLong's on the logit scale. Pairs are made within groups: the areas of the groups are added with
the number of pairs as weight, and their variances with the square of that weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtri

from commod._record import Estimate

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
Shares = BoolArray | FloatArray  # who changes, or the probability of a change

UNDEFINED = Estimate(None, None, None)


def change_shares(before: BoolArray, after: Shares) -> Shares:
    """Return whose decision changes, or how probable a change is, shape (n,).

    Examples
    --------
    >>> change_shares(np.array([True, False]), np.array([0.75, 0.5]))
    array([0.25, 0.5 ])
    """
    if after.dtype == np.bool_:
        return np.asarray(before != after)
    return np.abs(after - before)


@dataclass(frozen=True)
class RankedPeople:
    """People ordered by group and score, so that many updates need one sort.

    `rows` (m,) are the positions of these people in the table. A cell holds people of one group
    with one score: `cells` (m,) numbers the cell of each person, lowest score of a group first.
    `group_of` and `values` (n_cells,) are the group and the score of each cell.
    """

    rows: NDArray[np.intp]
    cells: NDArray[np.intp]
    group_of: NDArray[np.intp]
    values: FloatArray
    n_groups: int

    @classmethod
    def of(
        cls, scores: FloatArray, is_member: BoolArray, groups: NDArray[np.intp], n_groups: int
    ) -> RankedPeople:
        """Rank the people where `is_member` (n,) is true and whose group (n,) is not −1."""
        rows = np.flatnonzero(is_member & (groups >= 0))
        values, codes = np.unique(scores[rows], return_inverse=True)
        used, cells = np.unique(groups[rows] * len(values) + codes, return_inverse=True)
        group_of, rank = np.divmod(used, max(len(values), 1))
        return cls(rows, cells, group_of, values[rank], n_groups)

    def without_groups(self) -> RankedPeople:
        """Return the same people as one group."""
        values, rank = np.unique(self.values, return_inverse=True)
        group = np.zeros(len(values), dtype=np.intp)
        return RankedPeople(self.rows, rank[self.cells], group, values, 1)

    def count_pairs(self, changed: Shares, *, with_variance: bool = True) -> GroupPairs:
        """Return the pairs of each group; `changed` (n,) says who of the whole table changes.

        Without the variance, which takes most of the time, there is no interval.
        """
        own = changed[self.rows]
        n_cells, n_groups, group = len(self.group_of), self.n_groups, self.group_of
        first = _sums(self.cells, own, n_cells)  # people who change
        second = np.bincount(self.cells, minlength=n_cells) - first
        n_first, n_second = (_sums(group, n, n_groups) for n in (first, second))
        below = _ranks(second, n_second, group)
        wins, pairs = _sums(group, below * first, n_groups), n_first * n_second
        if own.dtype != np.bool_:  # nobody makes a pair with himself
            proba = own.astype(np.float64)
            with_self = _sums(group[self.cells], proba * (1 - proba), n_groups)
            wins, pairs = wins - with_self / 2, pairs - with_self
        is_certain = own.dtype == np.bool_
        if not (with_variance and is_certain):
            return GroupPairs(n_first, n_second, pairs, wins, None, is_certain)
        above = n_first[group] - _ranks(first, n_first, group)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = _variance(below / n_second[group], first, n_first, group) + _variance(
                above / n_first[group], second, n_second, group
            )
        return GroupPairs(n_first, n_second, pairs, wins, variance, is_certain)


def _sums(codes: NDArray[np.intp], values: Shares, n: int) -> FloatArray:
    """Return the sum of the values of each code, shape (n,)."""
    return np.bincount(codes, values, n).astype(np.float64)


def _ranks(counts: FloatArray, totals: FloatArray, group: NDArray[np.intp]) -> FloatArray:
    """Return how many people of the same group are below each cell, those in it counted half."""
    before_group = np.cumsum(totals) - totals
    return np.cumsum(counts) - counts / 2 - before_group[group]


def _variance(
    values: FloatArray, counts: FloatArray, sizes: FloatArray, group: NDArray[np.intp]
) -> FloatArray:
    """Return the variance of the mean of each group's values, which occur `counts` times."""
    n_groups = len(sizes)
    values = np.where(counts > 0, values, 0.0)
    mean = _sums(group, values * counts, n_groups) / sizes
    squares = _sums(group, (values - mean[group]) ** 2 * counts, n_groups)
    return np.asarray(squares / (sizes - 1) / sizes)


@dataclass(frozen=True)
class GroupPairs:
    """Pairs of a person who changes and one who does not, by group; all shapes (n_groups,).

    In `wins` of the `pairs` the person who changes has the higher score. `variance` is that of
    wins / pairs, or None if it was not computed; it means nothing for a group with fewer than two
    people on one side. Unless `is_certain`, the numbers are expected ones and have no interval.
    """

    n_changed: FloatArray
    n_others: FloatArray
    pairs: FloatArray
    wins: FloatArray
    variance: FloatArray | None
    is_certain: bool

    @property
    def share(self) -> float:
        """Return the share of the pairs, over all groups, that the changed person wins, or NaN."""
        return float(self.wins.sum() / self.pairs.sum()) if self.pairs.sum() > 0 else math.nan

    def estimate(self, level: float) -> Estimate:
        """Return the share with its interval; no interval without two people on each side."""
        share = self.share
        if math.isnan(share):
            return UNDEFINED
        smaller = np.minimum(self.n_changed, self.n_others)
        n_smaller = float(smaller.sum())
        if self.variance is None or n_smaller < 2:
            return Estimate(share, None, None)
        # The variance of an area is at most this (Birnbaum and Klose 1957). It stands in for the
        # sample variance of a group with a single person on one side, which is not defined.
        bound = share * (1 - share) / np.maximum(smaller, 1)
        variance = np.where(smaller < 2, bound, self.variance)
        weight = self.pairs / self.pairs.sum()
        used = self.pairs > 0
        total = float((weight[used] ** 2) @ variance[used])
        return Estimate(share, *pair_share_interval(share, total, n_smaller, (1 - level) / 2))

    def of_group(self, i: int) -> GroupPairs:
        """Return the pairs of one group."""
        own = slice(i, i + 1)
        return GroupPairs(
            self.n_changed[own],
            self.n_others[own],
            self.pairs[own],
            self.wins[own],
            None if self.variance is None else self.variance[own],
            self.is_certain,
        )


def pair_share_interval(
    share: float, variance: float, n: float, alpha: float
) -> tuple[float, float]:
    """Return the interval of a share of pairs on the logit scale, each end with error `alpha`.

    `n` is the number of people on the smaller side. It decides where no pair, or every pair, is
    won: the variance is 0 there.
    """
    z = float(ndtri(alpha))
    if not 1e-12 < share < 1 - 1e-12:
        widest = z * z / (n + z * z)  # Wilson's bound for 0 of n, and for n of n
        return (0.0, widest) if share < 0.5 else (1 - widest, 1.0)
    variance = variance or share * (1 - share) / n  # 0 where all scores of a side are equal
    half_width = -z * math.sqrt(variance) / (share * (1 - share))
    return float(expit(logit(share) - half_width)), float(expit(logit(share) + half_width))
