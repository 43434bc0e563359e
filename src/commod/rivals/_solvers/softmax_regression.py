"""Multinomial logistic regression on a `Design`, with a ridge penalty for each column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

from commod._solvers.design import Design

Floats = NDArray[np.float64]

MANY_COLUMNS = 2000  # above, the matrix of their products would be too large
STOP: Any = {"maxiter": 500, "maxfun": 1000, "ftol": 1e-12, "gtol": 1e-8}


def softmax_regression(
    design: Design, codes: NDArray[np.intp], weight: Floats, ridge: Floats
) -> tuple[Floats, Floats]:
    """Return weights (d, K) and intercepts (K,) of K classes.

    Parameters
    ----------
    design : Design of n rows and d columns
    codes : ndarray of shape (n,)
        The class of each row, from 0 to K − 1.
    weight : ndarray of shape (n,)
    ridge : ndarray of shape (d,)
        The penalty of each column's squared weight. Intercepts have none.
    """
    share = weight / weight.sum()
    class_shares = np.bincount(codes, share)
    # a weight of 2 means two rows; weights below 1 on average do not make the rows fewer
    penalty = np.append(ridge / max(float(weight.sum()), float(len(weight))), 0.0)
    spread = float((class_shares * (1 - class_shares)).mean())
    root = _curvature_root(design, share, penalty, spread)
    start = np.zeros((design.width + 1, len(class_shares)))
    start[-1] = np.log(class_shares)
    rows = np.arange(len(codes))

    def loss(v: Floats) -> tuple[float, Floats]:
        table = root.solve(v.reshape(start.shape))
        logits = _times(design, table[:-1]) + table[-1]
        logits -= logits.max(axis=1, keepdims=True)
        true_logits = logits[rows, codes]
        odds = np.exp(logits, out=logits)
        total = odds.sum(axis=1)
        shrinkage = penalty[:, None] * table
        value = share @ (np.log(total) - true_logits) + (shrinkage * table).sum() / 2
        slope = np.divide(odds, total[:, None], out=odds)
        slope[rows, codes] -= 1
        slope *= share[:, None]
        gradient = np.vstack([_gradient(design, slope), slope.sum(axis=0)]) + shrinkage
        return float(value), root.solve(gradient, trans="T").ravel()

    optimum = minimize(loss, root.times(start).ravel(), jac=True, method="L-BFGS-B", options=STOP)
    table = root.solve(np.asarray(optimum.x).reshape(start.shape))
    return table[:-1], table[-1]


@dataclass(frozen=True)
class _Root:
    """A root U of a positive definite matrix UᵀU: triangular (d, d), or its diagonal (d, 1)."""

    root: Floats
    is_diagonal: bool

    def times(self, v: Floats) -> Floats:
        return self.root * v if self.is_diagonal else np.asarray(self.root @ v)

    def solve(self, v: Floats, trans: Any = "N") -> Floats:
        if self.is_diagonal:
            return v / self.root
        return np.asarray(solve_triangular(self.root, v, trans=trans))


def _times(design: Design, weights: Floats) -> Floats:
    """Return the weighted sums of the columns for weights (d, K), shape (n, K)."""
    return np.column_stack([design.times(w) for w in weights.T])


def _gradient(design: Design, slopes: Floats) -> Floats:
    """Return the weighted sums of the rows for slopes (n, K), shape (d, K)."""
    return np.column_stack([design.gradient(slope) for slope in slopes.T])


def _curvature_root(design: Design, share: Floats, penalty: Floats, spread: float) -> _Root:
    """Return a root of the loss's approximate second derivative, which all classes share.

    A number and its bins are nearly collinear, which slows plain steps down. In the coordinates of
    this root the regression takes a tenth of the steps.
    """
    if design.width > MANY_COLUMNS:
        squares = np.append(
            share @ design.numeric**2, design.gradient(share)[design.numeric.shape[1] :]
        )
        return _Root(np.sqrt(spread * np.append(squares, 1.0) + penalty)[:, None], True)
    curvature = spread * mean_products(design, share) + np.diag(penalty)
    return _Root(np.asarray(cholesky(curvature)), False)


def mean_products(design: Design, share: Floats) -> Floats:
    """Return the mean product of every two columns, a column of ones last; (d + 1, d + 1)."""
    is_dense = np.append(np.arange(design.width) < design.numeric.shape[1], True)
    dense = share[:, None] * np.column_stack([design.numeric, np.ones(len(design))])
    products = np.empty((len(is_dense), len(is_dense)))
    products[:, is_dense] = np.vstack([_gradient(design, dense), dense.sum(axis=0)])
    products[is_dense] = products[:, is_dense].T
    present = design.present()
    sparse_products = present.T @ (sparse.diags_array(share) @ present)
    products[np.ix_(~is_dense, ~is_dense)] = sparse_products.toarray()
    return products
