"""Write a trained ratio in one standard way: exact zeros, unit concepts, sorted by size.

r = b + v'Wx is the same update for every factorisation of w = v'W. The penalties do not decide
either: every split of w over disjoint terms has the same path norm and diversity. So a rule that
depends on w and the rows only chooses the concepts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from commod._data.encoding import Encoding, TermTable

NEGLIGIBLE_WEIGHT = 0.01  # of a concept's norm: a smaller weight counts as zero (the paper's ε)
NEGLIGIBLE_CONCEPT = 1e-3  # standard deviations of r: a smaller concept has no visible effect
MAX_CONCEPT_ROWS = 20_000  # on which columns are grouped into concepts


@dataclass(frozen=True)
class Concepts:
    """A ratio in standardised terms: `weights` (k, d) of norm 1, `contributions` (k,)."""

    weights: NDArray[np.float64]
    contributions: NDArray[np.float64]
    intercept: float


def tidy_concepts(
    weights: NDArray[np.float64], contributions: NDArray[np.float64], intercept: float
) -> Concepts:
    """Return the ratio in its standard form, without negligible weights and concepts.

    W → aW, v → v/a leaves r unchanged. Concepts are therefore scaled to norm 1, their largest
    weight is made positive, and they are sorted by the size of their contribution. Negligible
    weights and concepts become zero.

    Examples
    --------
    >>> tidy = tidy_concepts(np.array([[0.0, -2.0], [1.0, 0.001]]), np.array([0.1, 0.5]), 1.0)
    >>> tidy.weights
    array([[1., 0.],
           [0., 1.]])
    >>> tidy.contributions
    array([ 0.5, -0.2])
    """
    norm = np.linalg.norm(weights, axis=1, keepdims=True)
    kept = np.where(np.abs(weights) > NEGLIGIBLE_WEIGHT * norm, weights, 0.0)
    is_visible = np.abs(contributions) * np.linalg.norm(kept, axis=1) > NEGLIGIBLE_CONCEPT
    return _standard_form(kept * is_visible[:, None], contributions, intercept)


def _standard_form(
    weights: NDArray[np.float64], contributions: NDArray[np.float64], intercept: float
) -> Concepts:
    """Return scaled, signed and sorted concepts; rows of zeros are concepts that are not used."""
    norm = np.linalg.norm(weights, axis=1)
    unit = weights / np.where(norm > 0, norm, 1.0)[:, None]
    strongest = np.take_along_axis(unit, np.abs(unit).argmax(axis=1, keepdims=True), axis=1)
    sign = np.where(strongest < 0, -1.0, 1.0)
    sizes = contributions * norm * sign[:, 0] + 0.0
    order = np.argsort(-np.abs(sizes), kind="stable")
    return Concepts((unit * sign + 0.0)[order], sizes[order], intercept)


def partition_by_column(
    concepts: Concepts,
    columns: Sequence[str],
    contributions: NDArray[np.float64],
    sample_weight: NDArray[np.float64],
) -> Concepts:
    """Return the same ratio with each raw column in one concept.

    Columns whose contributions to r are correlated share a concept: average linkage on
    1 − correlation, cut into k clusters. With fewer than k columns, the remaining concepts are
    zero.

    Parameters
    ----------
    concepts : Concepts
        With k concepts; only their total w = v'W is used.
    columns : sequence of str, of length d
        The raw column of each term.
    contributions : ndarray of shape (n, c)
        What each of the c columns with points adds to r, row by row, in order of appearance.
    sample_weight : ndarray of shape (n,)
    """
    total = concepts.contributions @ concepts.weights
    used = list(dict.fromkeys(c for c, w in zip(columns, total, strict=True) if w))
    k = len(concepts.contributions)
    clusters = _clusters(contributions, sample_weight, k)
    concept_of = dict(zip(used, clusters.tolist(), strict=True))
    split = np.zeros((k, len(total)))
    for term, column in enumerate(columns):
        if column in concept_of:
            split[concept_of[column], term] = total[term]
    return _standard_form(split, np.ones(k), concepts.intercept)


def _clusters(
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


def by_column(
    concepts: Concepts,
    encoding: Encoding,
    terms: TermTable,
    scale: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> Concepts:
    """Return the same ratio with each raw column in one concept.

    `partition_by_column` groups the columns by their correlation on at most MAX_CONCEPT_ROWS rows.
    """
    weighted = np.flatnonzero(weight)
    sample = weighted[:: -(-len(weighted) // MAX_CONCEPT_ROWS)]
    if len(sample) < len(terms):
        terms, weight = terms.take(sample), weight[sample]
    total = concepts.contributions @ concepts.weights
    columns = np.array(encoding.term_columns, dtype=object)
    used = dict.fromkeys(columns[total != 0])
    added = [terms.total(np.where(columns == name, total / scale, 0.0), 0.0) for name in used]
    if not added:
        return concepts
    return partition_by_column(concepts, encoding.term_columns, np.column_stack(added), weight)
