"""Smooth a score by Gaussian-process regression, for many noise levels at once (FCGP).

The score minus a prior mean is regressed on the points of the rows, with the kernel
k(a, b) = variance · exp(−|a − b|² / (2 · length²)). A point of weight w has the noise v / w, so a
weight of 2 counts as two equal rows. The posterior mean of noise v is

    m_v(x) = prior + k(x, points) · (K + v W⁻¹)⁻¹ · (score − prior).

With S = W^½ and the eigendecomposition S K S = Q diag(λ) Qᵀ, the inverse is
S Q diag(1 / (λ + v)) Qᵀ S. So one decomposition serves every noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import minimize_scalar
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel

Floats = NDArray[np.float64]

SMALLEST_NOISE = 1e-5  # of the authors: with this noise, the posterior mean repeats the score
# Kernels that are tried: lengths, in units of the median distance of two points, and variances.
LENGTHS = np.geomspace(0.03, 300.0, 13)
VARIANCES = np.geomspace(1e-5, 1e5, 41)


@dataclass(frozen=True)
class Kernel:
    """A Gaussian kernel.

    Examples
    --------
    >>> Kernel(variance=2.0, length=1.0).matrix(np.zeros((1, 1)), np.array([[0.0], [2.0]])).round(3)
    array([[2.   , 0.271]])
    """

    variance: float
    length: float

    def matrix(self, a: Floats, b: Floats) -> Floats:
        """Return the kernel between the rows of `a` (n, d) and of `b` (m, d), shape (n, m)."""
        similarity = rbf_kernel(a, b, gamma=0.5 / self.length**2)
        return np.asarray(self.variance * similarity)


def fit_kernel(points: Floats, residual: Floats, weight: Floats) -> Kernel:
    """Return the kernel with the largest marginal likelihood at the smallest noise.

    `points` has shape (n, d). `residual` (n,) is the score minus the prior mean. For each length,
    one eigendecomposition gives the likelihood of every variance. So the search has one dimension:
    a grid of lengths, then a refinement around the best one.
    """
    distances = np.sqrt(euclidean_distances(points, squared=True))
    typical = float(np.median(distances[distances > 0])) if distances.any() else 1.0

    def fitted(log_length: float) -> tuple[float, Kernel]:
        kernel = Kernel(1.0, typical * math.exp(log_length))
        path = NoisePath.of(kernel.matrix(points, points), residual, weight)
        loss, variance = _best_variance(path.values, path.projected)
        return loss, Kernel(variance, kernel.length)

    grid = np.log(LENGTHS)
    best = int(np.argmin([fitted(log_length)[0] for log_length in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    refined = minimize_scalar(
        lambda log_length: fitted(log_length)[0], bounds=bounds, options={"xatol": 1e-4}
    )
    return min(fitted(grid[best]), fitted(refined.x), key=lambda result: result[0])[1]


def _best_variance(values: Floats, projected: Floats) -> tuple[float, float]:
    """Return the smallest negative log-likelihood, up to a constant, and the kernel's variance."""

    def loss(log_variance: Any) -> Any:
        total = np.exp(log_variance) * values + SMALLEST_NOISE
        return 0.5 * (projected**2 / total + np.log(total)).sum(axis=-1)

    grid = np.log(VARIANCES)
    best = int(np.argmin(loss(grid[:, None])))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    refined = minimize_scalar(loss, bounds=bounds, options={"xatol": 1e-6})
    return float(refined.fun), math.exp(refined.x)


@dataclass(frozen=True)
class NoisePath:
    """The regression on n points for every noise: the eigendecomposition in the module's text."""

    root: Floats
    vectors: Floats
    values: Floats
    projected: Floats

    @classmethod
    def of(cls, kernel_matrix: Floats, residual: Floats, weight: Floats) -> NoisePath:
        """Return the path from the kernel matrix (n, n) of the points."""
        root = np.sqrt(weight)
        values, vectors = eigh(root[:, None] * kernel_matrix * root)
        # Rounding makes the smallest eigenvalues negative; a kernel has none.
        return cls(root, vectors, np.maximum(values, 0.0), vectors.T @ (root * residual))

    def coefficients(self, noises: Floats) -> Floats:
        """Return the coefficients of the points for each of k noises, shape (n, k).

        The posterior mean is prior + k(x, points) @ coefficients.
        """
        return self._coefficients(1.0 / (self.values[:, None] + noises))

    def changes(self, noises: Floats, base: float = SMALLEST_NOISE) -> Floats:
        """Return the coefficients of m_v − m_base for each of k noises, shape (n, k).

        They are exactly 0 for the noise `base`.
        """
        values = self.values[:, None]
        return self._coefficients((base - noises) / (values + noises) / (values + base))

    def _coefficients(self, factors: Floats) -> Floats:
        inner = self.vectors @ (factors * self.projected[:, None])
        return np.asarray(self.root[:, None] * inner)


def balanced_choice(gaps: Floats, differences: Floats, strength: float) -> int:
    """Return which candidate has the best balance of fairness and similarity, the first of equals.

    The balance is strength · (1 − gap) + (1 − strength) · (1 − difference); both have shape (k,).

    Examples
    --------
    >>> balanced_choice(np.array([0.4, 0.1]), np.array([0.0, 0.2]), strength=0.5)
    1
    """
    return int(np.argmax(strength * (1 - gaps) + (1 - strength) * (1 - differences)))
