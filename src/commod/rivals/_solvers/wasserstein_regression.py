"""Logistic regression with a Wasserstein penalty: scores distributed alike in all groups.

The loss of coefficients w and intercept b, with the scores h = sigmoid(Xw + b), is

    mean log loss + strength · Σ_a p_a W1(h of group a, target) + ridge/2 · ‖w‖²

p_a is the group's share of the weight. W1 between two distributions of numbers is the area between
their distribution functions F. All F are steps at the scores, so the area is a finite sum:

    Σ_k c_k (s_{k+1} − s_k)   with   c_k = Σ_a p_a |F_a(s_k) − F(s_k)|

over the sorted scores s of all groups. F is the target's. c depends on the order of the scores
only. So c_{k−1} − c_k is the exact derivative by s_k wherever no two scores are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import expit

from commod.rivals._solvers.wasserstein import weighted_median

Floats = NDArray[np.float64]

TARGETS = ("barycentre", "pooled")
MAX_WIDTH = 1000  # columns; above, the matrix of their products would be large
LEAST_CURVATURE = 1e-6  # of the largest: columns may be collinear


@dataclass(frozen=True)
class WassersteinProblem:
    """Rows of a regression: `matrix` (n, d), dense or sparse; all others have shape (n,).

    `weight` weights the log loss. `group` is −1 for rows without a group; `group_weight` weights
    the rows in the distribution of their group's scores. `ridge` is the penalty of ‖w‖²/2.
    """

    matrix: Any
    label: NDArray[np.bool_]
    weight: Floats
    group: NDArray[np.intp]
    group_weight: Floats
    ridge: float
    target: str


def group_distance(
    scores: Floats,
    group: NDArray[np.intp],
    weight: Floats,
    target: str = "barycentre",
) -> tuple[float, Floats]:
    """Return Σ_a p_a W1(scores of group a, target) and its derivative by the scores, shape (n,).

    The target is the "barycentre", which has the least such sum, or "pooled": the scores of all
    groups. At each score, the barycentre's distribution function is the weighted median of the
    groups' ones. Every group needs some weight.

    Examples
    --------
    >>> scores, group = np.array([0.2, 0.4, 0.6, 0.8, 0.1, 0.3]), np.array([0, 0, 0, 0, 1, 1])
    >>> distance, _ = group_distance(scores, group, np.ones(6))
    >>> round(distance, 9)  # W1 is 0.3, and a third of the people are in the group that moves
    0.1
    """
    totals = np.bincount(group, weight)
    order = np.argsort(scores)
    ordered_group = group[order]
    steps = np.zeros((len(totals), len(scores)))
    steps[ordered_group, np.arange(len(scores))] = weight[order] / totals[ordered_group]
    functions = np.minimum(np.cumsum(steps, axis=1, out=steps), 1.0)
    shares = totals / totals.sum()
    middle = shares @ functions if target == "pooled" else weighted_median(functions, shares)
    cost = (shares @ np.abs(functions - middle))[:-1]
    slope = np.empty(len(scores))
    slope[order] = np.append(0.0, cost) - np.append(cost, 0.0)
    return float(cost @ np.diff(scores[order])), slope


class WassersteinLoss:
    """The loss of w and b, in coordinates in which the log loss curves alike in all directions.

    Coordinates v are U(w, b), with UᵀU near the second derivative of the log loss. They save most
    steps where columns have different units or are correlated.
    """

    def __init__(self, problem: WassersteinProblem) -> None:
        self.problem = problem
        self.share = problem.weight / problem.weight.sum()
        counted = (problem.group >= 0) & (problem.group_weight > 0)
        _, codes = np.unique(problem.group[counted], return_inverse=True)
        self.rows, self.codes = np.flatnonzero(counted), codes
        self.row_weight = problem.group_weight[counted]
        self.root = _curvature_root(problem.matrix, self.share, problem.ridge)

    def to_coordinates(self, coefficients: Floats) -> Floats:
        """Return v for the coefficients (d + 1,), the intercept last."""
        return self.root * coefficients if self.root.ndim == 1 else self.root @ coefficients

    def to_coefficients(self, v: Floats) -> Floats:
        """Return the coefficients (d + 1,) for v."""
        return self._solve(v)

    def __call__(self, v: Floats, strength: float) -> tuple[float, Floats]:
        """Return the loss at v and its gradient by v."""
        value, gradient = self.at(self.to_coefficients(v), strength)
        return value, self._solve(gradient, trans="T")

    def at(self, coefficients: Floats, strength: float) -> tuple[float, Floats]:
        """Return the loss at coefficients (d + 1,) and its gradient by them."""
        problem, w = self.problem, coefficients[:-1]
        logits = problem.matrix @ w + coefficients[-1]
        scores = expit(logits)
        value = self.share @ (np.logaddexp(0.0, logits) - logits * problem.label)
        slope = self.share * (scores - problem.label)
        if strength and len(self.rows):
            distance, by_score = self.distance(scores)
            value += strength * distance
            slope[self.rows] += strength * by_score * (scores * (1 - scores))[self.rows]
        value += problem.ridge / 2 * (w @ w)
        gradient = np.append(problem.matrix.T @ slope + problem.ridge * w, slope.sum())
        return float(value), gradient

    def _solve(self, v: Floats, trans: Any = "N") -> Floats:
        if self.root.ndim == 1:
            return v / self.root
        return np.asarray(solve_triangular(self.root, v, trans=trans))

    def distance(self, scores: Floats) -> tuple[float, Floats]:
        """Return the penalty of the scores (n,), and its slope at the rows that have a group."""
        target = self.problem.target
        return group_distance(scores[self.rows], self.codes, self.row_weight, target)


def minimise(
    loss: WassersteinLoss, start: Floats, strength: float, max_iter: int
) -> tuple[Floats, int]:
    """Return coefficients (d + 1,) of a local minimum near `start`, and the iterations taken."""
    stop: Any = {"maxiter": max_iter, "maxfun": 3 * max_iter, "ftol": 1e-9, "gtol": 1e-6}
    optimum = minimize(
        loss,
        loss.to_coordinates(start),
        args=(strength,),
        jac=True,
        method="L-BFGS-B",
        options=stop,
    )
    return loss.to_coefficients(np.asarray(optimum.x)), int(optimum.nit)


def _curvature_root(matrix: Any, share: Floats, ridge: float) -> Floats:
    """Return U with UᵀU near the log loss's second derivative, which is that of scores of one half.

    U is upper triangular, (d + 1, d + 1). For many columns, only its diagonal is returned.
    """
    d, is_sparse = matrix.shape[1], sparse.issparse(matrix)
    weighted = matrix.multiply(share[:, None]) if is_sparse else matrix * share[:, None]
    squares = matrix.multiply(weighted) if is_sparse else matrix * weighted
    diagonal = np.append(np.asarray(squares.sum(axis=0)).ravel(), 1.0) / 4
    diagonal[:d] += ridge
    diagonal += LEAST_CURVATURE * np.maximum(diagonal, LEAST_CURVATURE * diagonal.max())
    if d > MAX_WIDTH:
        return np.sqrt(diagonal)
    curvature = np.empty((d + 1, d + 1))
    products = matrix.T @ weighted
    curvature[:d, :d] = (products.toarray() if is_sparse else products) / 4
    curvature[d, :d] = curvature[:d, d] = matrix.T @ share / 4
    np.fill_diagonal(curvature, diagonal)
    return np.asarray(cholesky(curvature))
