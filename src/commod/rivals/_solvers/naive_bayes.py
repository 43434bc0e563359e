"""Naive Bayes with class counts that are moved between groups until their rates are equal.

Calders and Verwer (2010) change the counts N(label, group) in small steps and decide all rows anew
after each step. Here the rows are sorted once: in group g, a row is positive where N(1, g) exceeds
the row's critical count, because no step changes the size of a group. So the path jumps from one
changed decision to the next.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]


def attribute_tables(
    codes: NDArray[np.integer],
    first_terms: NDArray[np.intp],
    n_terms: int,
    cells: NDArray[np.intp],
    n_cells: int,
    weight: Floats,
    beta: float,
) -> Floats:
    """Return the smoothed weight of each term in each cell, shape (n_cells, n_terms).

    `codes` (n, q) holds the term of each row in each of q columns, or `n_terms` where a row has
    none. `first_terms` (q,) is the first term of each column. A column with v terms adds beta / v
    to each of its terms.

    Examples
    --------
    >>> codes = np.array([[0], [0], [1]])
    >>> attribute_tables(codes, np.array([0]), 2, np.array([0, 1, 1]), 2, np.ones(3), beta=1.0)
    array([[1.5, 0.5],
           [1.5, 1.5]])
    """
    size = n_terms + 1
    totals = np.zeros(n_cells * size)
    for column in codes.T:
        totals += np.bincount(cells * size + column, weight, minlength=n_cells * size)
    n_values = np.diff([*first_terms.tolist(), n_terms])
    return totals.reshape(n_cells, size)[:, :-1] + np.repeat(beta / n_values, n_values)


def log_probabilities(tables: Floats, first_terms: NDArray[np.intp]) -> Floats:
    """Return log P(term | cell), shape (n_cells, n_terms), from the weights of `attribute_tables`.

    Examples
    --------
    >>> np.exp(log_probabilities(np.array([[1.5, 0.5]]), np.array([0])))
    array([[0.75, 0.25]])
    """
    if not tables.shape[1]:
        return tables
    totals = np.add.reduceat(tables, first_terms, axis=1)
    n_values = np.diff([*first_terms.tolist(), tables.shape[1]])
    return np.asarray(np.log(tables) - np.log(np.repeat(totals, n_values, axis=1)))


@dataclass(frozen=True)
class CountPath:
    """The class counts after each change of a decision, and after the last step.

    Attributes
    ----------
    n_steps : ndarray of shape (m,)
        How many steps led to each entry; the first is 0.
    counts : ndarray of shape (m, 2, 2)
        The counts by entry, label and group.
    difference : ndarray of shape (m,)
        The positive rate of the favoured group, minus that of the other one.
    """

    n_steps: NDArray[np.intp]
    counts: Floats
    difference: Floats

    def entry(self, bound: float, *, closest: bool) -> int:
        """Return the entry at which the loop stops: the first difference of at most `bound`.

        Without such an entry it is the last. With `closest`, it is the entry up to there whose
        difference is closest to `bound`; the last step may lead far beyond it.
        """
        within = np.flatnonzero(self.difference <= bound)
        stop = int(within[0]) if within.size else len(self.difference) - 1
        return int(np.argmin(np.abs(self.difference[: stop + 1] - bound))) if closest else stop


class _SortedGroup:
    """The sorted critical counts of one group, and the weight of its positive decisions."""

    def __init__(self, critical: Floats, weight: Floats, counts: Floats) -> None:
        order = np.argsort(critical, kind="stable")
        self.critical: list[float] = critical[order].tolist()
        self.weight_below: list[float] = list(accumulate(weight[order].tolist(), initial=0.0))
        self.negative, self.positive = counts.tolist()
        self.n_positive = bisect_left(self.critical, self.positive)

    @property
    def positive_weight(self) -> float:
        return self.weight_below[self.n_positive]

    @property
    def rate(self) -> float:
        return self.positive_weight / self.weight_below[-1]

    def move(self, amount: float) -> None:
        """Move an amount from the negative to the positive labels."""
        self.positive += amount
        self.negative -= amount
        self.n_positive = bisect_left(self.critical, self.positive)


def count_path(
    log_ratio: Floats,
    group: NDArray[np.intp],
    weight: Floats,
    counts: Floats,
    *,
    favoured: int,
    delta: float,
    alpha: float,
    cut: float = 0.0,
) -> CountPath:
    """Return the path of the class counts until the groups' rates are equal or no count is left.

    Parameters
    ----------
    log_ratio : ndarray of shape (n,)
        log P(x | 1) − log P(x | 0) of each row.
    group, weight : ndarray of shape (n,)
        The group, 0 or 1, and the weight of each row.
    counts : ndarray of shape (2, 2)
        The weight of each label in each group.
    favoured : int
        The group whose positive rate is to fall, compared with the other one.
    delta : float
        A step moves this share of a count.
    alpha : float
        alpha / 2 is added to each count in the prior.
    cut : float, default=0.0
        A row is positive where its log odds exceed this number.

    Examples
    --------
    >>> group = np.repeat([0, 1], 100)
    >>> counts = np.array([[70.0, 40.0], [30.0, 60.0]])
    >>> path = count_path(np.zeros(200), group, np.ones(200), counts, favoured=1, delta=0.01,
    ...                   alpha=1.0)
    >>> path.n_steps, path.difference
    (array([ 0, 34]), array([1., 0.]))
    """
    n_positive_labels = float(counts[1].sum())
    groups = []
    for number in (0, 1):
        inside = group == number
        total = counts[:, number].sum() + alpha
        critical = total * expit(cut - log_ratio[inside]) - alpha / 2
        groups.append(_SortedGroup(critical, weight[inside], counts[:, number]))
    high, low = groups[favoured], groups[1 - favoured]
    n_steps, entries, differences = 0, [], []
    is_last = False
    while True:
        entries.append((n_steps, *((g.negative, g.positive) for g in groups)))
        differences.append(high.rate - low.rate)
        if is_last or differences[-1] <= 0:
            break
        if high.positive_weight + low.positive_weight < n_positive_labels:
            n_taken, is_last = _raise(low, delta * high.negative)
        else:
            n_taken, is_last = _lower(high, delta * low.positive)
        n_steps += n_taken
    counted = np.array([entry[1:] for entry in entries])  # (m, group, label)
    return CountPath(
        np.array([entry[0] for entry in entries], dtype=np.intp),
        counted.transpose(0, 2, 1),
        np.array(differences),
    )


def _raise(group: _SortedGroup, step: float) -> tuple[int, bool]:
    """Move counts to the positive label until a decision changes; return steps and "is last"."""
    most = _most_steps(group.negative, step)
    if group.n_positive == len(group.critical):
        needed = math.inf
    else:
        gap = group.critical[group.n_positive] - group.positive
        needed = _n_steps(gap, step, beyond=True)
    taken = int(min(needed, most))
    group.move(taken * step)
    return taken, needed > most


def _lower(group: _SortedGroup, step: float) -> tuple[int, bool]:
    """Move counts to the negative label until a decision changes; return steps and "is last"."""
    most = _most_steps(group.positive, step)
    gap = group.positive - group.critical[group.n_positive - 1]
    needed = _n_steps(gap, step, beyond=False)
    taken = int(min(needed, most))
    group.move(-taken * step)
    return taken, needed > most


def _n_steps(gap: float, step: float, *, beyond: bool) -> float:
    """Return how many steps, at least one, cover the gap, or go `beyond` it; inf where none do."""
    if step <= 0 or gap / step > 2**53:
        return math.inf
    return max(math.floor(gap / step) + 1 if beyond else math.ceil(gap / step), 1)


def _most_steps(count: float, step: float) -> int:
    """Return after how many steps the count is still not negative; 0 for a step of nothing."""
    if step <= 0 or count / step > 2**53:
        return 0
    most = math.floor(count / step)
    return most - (count - most * step < 0)
