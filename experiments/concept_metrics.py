"""Measure how sparse concepts are, and how much they overlap: the paper's two figures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALL = 0.01  # a weight up to this size counts as zero, after its concept has the length 1


def concept_sparsity(concept_weights: Any, *, eps: float = SMALL) -> float:
    """Return the share of the weights (n_concepts, n_terms) that are zero, in [0, 1].

    Examples
    --------
    >>> concept_sparsity([[0.5, -0.3, 0.005, 0], [0.4, 0.3, 0, 0.2]])
    0.375
    """
    return float(np.mean(_signed_support(concept_weights, eps) == 0))


def concept_redundancy(concept_weights: Any, *, eps: float = SMALL) -> float:
    """Return how much pairs of concepts use the same terms with the same sign, in [0, 1].

    The value is the mean Jaccard index over the pairs: 0 for a single concept, and for a pair of
    concepts without weights. A term used with opposite signs does not count as shared.

    Examples
    --------
    >>> concept_redundancy([[0.5, -0.3, 0.005, 0], [0.4, 0.3, 0, 0.2]])
    0.25
    """
    support = _signed_support(concept_weights, eps)
    first, second = np.triu_indices(len(support), k=1)
    if len(first) == 0:
        return 0.0
    used = np.hstack([support > 0, support < 0]).astype(int)
    shared = (used @ used.T)[first, second]
    either = used.sum(axis=1)[first] + used.sum(axis=1)[second] - shared
    return float(np.mean(shared / np.maximum(either, 1)))


def _signed_support(concept_weights: Any, eps: float) -> NDArray[np.int_]:
    """Return the sign of each weight, shape (k, d); 0 where a weight counts as zero."""
    weights = np.asarray(concept_weights, dtype=np.float64)
    # Dividing by the largest entry first avoids overflow and underflow of the squares.
    largest = np.abs(weights).max(axis=1, keepdims=True)
    scaled = weights / np.where(largest > 0, largest, 1)
    norm = np.linalg.norm(scaled, axis=1, keepdims=True)
    is_used = np.abs(scaled / np.where(norm > 0, norm, 1)) > eps
    return (np.sign(weights) * is_used).astype(int)
