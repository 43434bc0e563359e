"""Price the inequalities: how many changes one unit of each of their slacks is worth.

With prices μ ≥ 0, a person is worth side · U μ, and changes where this exceeds the cost of the
change. The prices minimise a convex function of few variables,

    mean softplus_h(U μ − cost) + μ'slack,

so what they make each person worth is unique. Newton's method solves for them to all digits,
because other code rounds them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

Floats = NDArray[np.float64]

HEAT = 0.05  # h: the width of the soft step, in the unit of the cost
HIGHEST_PRICE = 1e3  # of an inequality that cannot be kept
OPTIONS = {"maxiter": 500}
N_NEWTON_STEPS, N_HALVINGS = 30, 30
SMALLEST_GRADIENT = 1e-13
RIDGE = 1e-10  # share of the mean curvature: inequalities may depend on each other


def prices_of(U: Floats, cost: Floats, slack: Floats, start: Floats | None = None) -> Floats:
    """Return the prices (J,) that minimise the dual.

    Parameters
    ----------
    U : ndarray of shape (n, J)
        By how much the change of each person raises the slack of each inequality, times n.
    cost : ndarray of shape (n,)
        What the change of each person costs.
    slack : ndarray of shape (J,)
        The slacks before any change.
    start : ndarray of shape (J,), default=None

    Examples
    --------
    Nobody has to change where every slack is positive.

    >>> prices_of(np.ones((4, 1)), np.ones(4), np.array([0.5]))
    array([0.])
    """
    dual = _Dual(U, cost, slack)
    start = np.full(U.shape[1], 1e-3) if start is None else start
    bounds = [(0.0, HIGHEST_PRICE)] * U.shape[1]
    solved = minimize(dual, start, jac=True, method="L-BFGS-B", bounds=bounds, options=OPTIONS)
    return _polished(dual, np.asarray(solved.x))


class _Dual:
    """The convex function of the prices, with its gradient and its curvature."""

    def __init__(self, U: Floats, cost: Floats, slack: Floats) -> None:
        self.U, self.cost, self.slack = U, cost, slack

    def __call__(self, mu: Floats) -> tuple[float, Floats]:
        heat = (self.U @ mu - self.cost) / HEAT
        value = HEAT * np.logaddexp(0, heat).mean() + mu @ self.slack
        return float(value), (expit(heat) @ self.U) / len(self.U) + self.slack

    def curvature(self, mu: Floats, at: NDArray[np.intp]) -> Floats:
        """Return the second derivatives by the prices `at` (k,), with a little ridge, (k, k)."""
        share = expit((self.U @ mu - self.cost) / HEAT)
        part = self.U[:, at]
        curvature = (part * (share * (1 - share))[:, None]).T @ part / (HEAT * len(part))
        ridge = RIDGE * max(float(curvature.trace()), 1e-12) / len(at)
        return curvature + ridge * np.eye(len(at))


def _polished(dual: _Dual, mu: Floats) -> Floats:
    """Return the same minimum by Newton's method on the prices that are not at an end."""
    mu = np.where(mu > 1e-9, mu, 0.0)
    value, gradient = dual(mu)
    for _ in range(N_NEWTON_STEPS):
        is_free = np.where(gradient > 0, mu > 0, mu < HIGHEST_PRICE)
        at = np.flatnonzero(is_free & (gradient != 0))
        if not len(at) or np.abs(gradient[at]).max() <= SMALLEST_GRADIENT:
            break
        step = np.zeros(len(mu))
        step[at] = np.linalg.solve(dual.curvature(mu, at), gradient[at])
        for shorter in 0.5 ** np.arange(N_HALVINGS):
            moved = np.clip(mu - shorter * step, 0.0, HIGHEST_PRICE)
            new_value, new_gradient = dual(moved)
            if new_value <= value + 1e-4 * float(gradient @ (moved - mu)):
                break
        else:
            break  # the value falls by rounding alone
        mu, value, gradient = moved, new_value, new_gradient
    return mu
