"""Measure how sparse concepts are, and how much they overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod.exceptions import InputError

FloatArray = NDArray[np.float64]


def _signed_support(concept_weights: Any, eps: float) -> NDArray[np.int_]:
    """Return the sign of each weight, shape (k, d); 0 where a weight counts as zero."""
    try:
        weights = np.asarray(concept_weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"concept_weights must be a table of numbers: {error}", parameter="concept_weights"
        ) from error
    if weights.ndim != 2 or 0 in weights.shape:
        raise InputError(
            "concept_weights must have one row per concept and one column per term; got shape "
            f"{weights.shape}.",
            parameter="concept_weights",
        )
    if not np.isfinite(weights).all():
        raise InputError(
            "concept_weights contains NaN or infinite values; all must be finite.",
            parameter="concept_weights",
        )
    if not 0 <= eps < 1:
        raise InputError(
            f"eps={eps!r} must be in [0, 1), because rows are scaled to unit norm.", parameter="eps"
        )
    return (np.sign(weights) * (np.abs(_unit_rows(weights)) > eps)).astype(int)


def _unit_rows(weights: FloatArray) -> FloatArray:
    # Dividing by the largest entry first avoids overflow and underflow of the squares.
    largest = np.abs(weights).max(axis=1, keepdims=True)
    scaled = weights / np.where(largest > 0, largest, 1)
    norm = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled / np.where(norm > 0, norm, 1))


def concept_sparsity(concept_weights: Any, *, eps: float = 0.01) -> float:
    """Return the share of concept weights that are zero, in [0, 1]; higher is easier to read.

    Parameters
    ----------
    concept_weights : array-like of shape (n_concepts, n_terms)
    eps : float, default=0.01
        A weight up to this size counts as zero, after its row is scaled to unit Euclidean norm.

    Returns
    -------
    float
        1 when all weights are zero.

    Examples
    --------
    >>> concept_sparsity([[0.5, -0.3, 0.005, 0], [0.4, 0.3, 0, 0.2]])
    0.375
    """
    return float(np.mean(_signed_support(concept_weights, eps) == 0))


def concept_redundancy(concept_weights: Any, *, eps: float = 0.01) -> float:
    """Return how much pairs of concepts use the same terms with the same sign, in [0, 1].

    The value is the mean Jaccard index over the pairs. A term used with opposite signs does not
    count as shared.

    Parameters
    ----------
    concept_weights : array-like of shape (n_concepts, n_terms)
    eps : float, default=0.01
        As in `concept_sparsity`.

    Returns
    -------
    float
        0 for a single concept; a pair of all-zero concepts counts as 0.

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
