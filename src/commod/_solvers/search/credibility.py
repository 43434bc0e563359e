"""Weigh the points of small categories by their evidence, as credibility theory does.

The points of a category with few people follow the groups of these people, whether or not the
category has anything to do with the group. A scorecard with many such points would predict the
group of people in small categories. So the evidence of each raw column is weighed, over its small
categories:

1. Count, in each category, how many more rows are worth changing than among all rows with the same
   base decision (`surplus`), and the variance of this number if the category does not matter.
2. Test whether the small categories of the column differ at all (a chi-squared test). Where they
   do not, none of them gets points.
3. Otherwise estimate how much they differ beyond chance. A category keeps the share of its points
   that this difference explains: V·t / (V·t + 1), for the variance V and the squared difference t.
   The share grows with the number of people (empirical Bayes, Bühlmann and Straub).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from commod._data.disclosure import SMALL_CATEGORY

Floats = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

SIGNIFICANCE = 0.05  # of the test whether small categories differ


def credibility(
    codes: Sequence[NDArray[np.integer]],
    n_terms: int,
    worth_changing: Sequence[Mask],
    decisions: Mask,
    may_change: Mask,
) -> Floats:
    """Return the share of its points that each term keeps, shape (n_terms,), from 0 to 1.

    Each of `codes` (n,) is a raw column of categories: the term of each row, `n_terms` where a row
    has none. `worth_changing` has masks (n,), one for each way to begin a search; a term keeps the
    largest share over these. Terms that are in no column of `codes` keep all of their points.

    Examples
    --------
    >>> town = np.repeat(np.arange(20), 30)  # 20 towns of 30 people
    >>> decisions, everybody = np.zeros(600, dtype=bool), np.ones(600, dtype=bool)
    >>> evenly, by_town = np.arange(600) % 3 == 0, town % 3 == 0
    >>> float(credibility([town], 20, [evenly], decisions, everybody).max())
    0.0
    >>> float(credibility([town], 20, [by_town], decisions, everybody).min().round(2))
    0.97
    """
    kept = np.ones(n_terms)
    for column in codes:
        n_rows = np.bincount(column, minlength=n_terms + 1)[:-1]
        small = np.flatnonzero((n_rows > 0) & (n_rows < SMALL_CATEGORY))
        if len(small):
            rows = column[may_change], decisions[may_change]
            shares = [_explained(*rows, mask[may_change], small) for mask in worth_changing]
            kept[small] = np.max(shares, axis=0)
    return kept


def _explained(
    column: NDArray[np.integer], decisions: Mask, worth_changing: Mask, small: Index
) -> Floats:
    """Return the share of the points of each small term that differences explain, (n_small,)."""
    expected = np.zeros(len(column))
    for rows in (decisions, ~decisions):
        expected[rows] = worth_changing[rows].mean() if rows.any() else 0.0
    n_terms = int(small.max()) + 1
    surplus = np.bincount(column, worth_changing - expected, minlength=n_terms)[small]
    variance = np.bincount(column, expected * (1 - expected), minlength=n_terms)[small]
    is_known = variance > 0
    statistic = float((surplus[is_known] ** 2 / variance[is_known]).sum())
    if not is_known.any() or chdtrc(is_known.sum(), statistic) > SIGNIFICANCE:
        return np.zeros(len(small))
    difference = max(0.0, float((surplus**2 - variance).sum() / (variance**2).sum()))
    return variance * difference / (variance * difference + 1)
