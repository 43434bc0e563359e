"""One way of writing a trained ratio: exact zeros, unit concepts, sorted; by raw columns if wanted.

r = b + v'Wx is the same update for every factorisation of w = v'W, and even the penalties leave
concepts free: any split of w over disjoint supports has the same path norm and diversity. So
concepts are chosen, by a rule that depends on nothing but w and the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

__all__ = ["Concepts", "partition_by_column", "tidy_concepts"]

NEGLIGIBLE_WEIGHT = 0.01  # of a concept's norm: the paper's ε, below which a weight counts as zero
NEGLIGIBLE_CONCEPT = 1e-3  # standard deviations of r: below, a concept cannot be seen in r


@dataclass(frozen=True)
class Concepts:
    """A ratio in standardised terms: `weights` (k, d) of norm 1, `contributions` (k,)."""

    weights: NDArray[np.float64]
    contributions: NDArray[np.float64]
    intercept: float


def tidy_concepts(
    weights: NDArray[np.float64], contributions: NDArray[np.float64], intercept: float
) -> Concepts:
    """Return the same ratio with exact zeros and one way of writing it.

    W → aW, v → v/a leaves r unchanged, so concepts are scaled to norm 1, their largest weight made
    positive, and sorted by the size of their contribution. Weights that cannot be seen become zero.

    Examples
    --------
    >>> tidy = tidy_concepts(np.array([[0.0, -2.0], [1.0, 0.001]]), np.array([0.1, 0.5]), 1.0)
    >>> tidy.weights
    array([[1., 0.],
           [0., 1.]])
    >>> tidy.contributions
    array([ 0.5, -0.2])
    """
    rows = _without_specks(weights)
    seen = np.abs(contributions) * np.linalg.norm(rows, axis=1) > NEGLIGIBLE_CONCEPT
    return _canonical(rows * seen[:, None], contributions, intercept)


def _canonical(
    rows: NDArray[np.float64], contributions: NDArray[np.float64], intercept: float
) -> Concepts:
    """Scale, sign and sort; rows of zeros are concepts that are not used."""
    norm = np.linalg.norm(rows, axis=1)
    unit = rows / np.where(norm > 0, norm, 1.0)[:, None]
    strongest = np.take_along_axis(unit, np.abs(unit).argmax(axis=1, keepdims=True), axis=1)
    sign = np.where(strongest < 0, -1.0, 1.0)
    sizes = contributions * norm * sign[:, 0] + 0.0
    order = np.argsort(-np.abs(sizes), kind="stable")
    return Concepts((unit * sign + 0.0)[order], sizes[order], intercept)


def _without_specks(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    norm = np.linalg.norm(weights, axis=-1, keepdims=True)
    return np.where(np.abs(weights) > NEGLIGIBLE_WEIGHT * norm, weights, 0.0)


def partition_by_column(
    concepts: Concepts,
    columns: Sequence[str],
    contributions: NDArray[np.float64],
    sample_weight: NDArray[np.float64],
) -> Concepts:
    """Return the same ratio with each raw column in one concept.

    Columns whose contributions to r rise and fall together share a concept: average linkage on
    1 − correlation, cut into k groups. Fewer than k columns give fewer concepts, the rest are zero.

    Parameters
    ----------
    concepts : Concepts
        With k concepts; only their total w = v'W is used.
    columns : sequence of str, of length d
        The raw column of each term.
    contributions : ndarray of shape (n, c)
        What each of the c columns with points adds to r on the fit rows, in order of appearance.
    sample_weight : ndarray of shape (n,)
    """
    total = concepts.contributions @ concepts.weights
    used = list(dict.fromkeys(c for c, w in zip(columns, total, strict=True) if w))
    k = len(concepts.contributions)
    groups = _groups(contributions, sample_weight, k)
    where = dict(zip(used, groups.tolist(), strict=True))
    split = np.zeros((k, len(total)))
    for term, column in enumerate(columns):
        if column in where:
            split[where[column], term] = total[term]
    return _canonical(split, np.ones(k), concepts.intercept)


def _groups(
    contributions: NDArray[np.float64], sample_weight: NDArray[np.float64], k: int
) -> NDArray[np.intp]:
    """Return the concept, 0 to k − 1, of each column of `contributions`, shape (c,)."""
    c = contributions.shape[1]
    if c <= k:
        return np.arange(c)
    covariance = np.cov(contributions, rowvar=False, aweights=sample_weight)
    spread = np.sqrt(np.diag(covariance))
    spread = np.where(spread > 0, spread, 1.0)
    distance = np.clip(1 - covariance / np.outer(spread, spread), 0.0, 2.0)
    np.fill_diagonal(distance, 0.0)
    tree = hierarchy.linkage(squareform(distance, checks=False), method="average")
    return np.asarray(hierarchy.fcluster(tree, k, criterion="maxclust") - 1, dtype=np.intp)
