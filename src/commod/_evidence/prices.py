"""Price the inequalities: how many changes one unit of each of their slacks is worth.

With prices μ ≥ 0, a person is worth side · U μ, and changes where this exceeds the cost of the
change. The prices minimise a convex function of few variables,

    mean softplus_h(U μ − cost) + μ'slack,

so they are unique. Newton's method solves for them to all digits, because other code rounds them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

Floats = NDArray[np.float64]

HEAT = 0.05  # h: the width of the soft step, in the unit of the cost
HIGHEST_PRICE = 1e3  # of an inequality that cannot be kept
N_NEWTON_STEPS = 20


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

    def dual(mu: Floats) -> tuple[float, Floats]:
        heat = (U @ mu - cost) / HEAT
        value = HEAT * np.logaddexp(0, heat).mean() + mu @ slack
        return float(value), (expit(heat) @ U) / len(U) + slack

    start = np.full(U.shape[1], 1e-3) if start is None else start
    bounds = [(0.0, HIGHEST_PRICE)] * U.shape[1]
    solved = minimize(
        dual, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500}
    )
    return _polished(U, cost, slack, np.asarray(solved.x))


def _polished(U: Floats, cost: Floats, slack: Floats, mu: Floats) -> Floats:
    """Return the same minimum by Newton's method on the prices that are not at an end."""
    heat = (U @ mu - cost) / HEAT
    gradient = (expit(heat) @ U) / len(U) + slack
    free = (mu > 1e-9) | (gradient < 0)
    free &= mu < HIGHEST_PRICE
    mu = np.where(free | (mu >= HIGHEST_PRICE), mu, 0.0)
    for _ in range(N_NEWTON_STEPS):
        at = np.flatnonzero(free)
        if not len(at):
            break
        share = expit((U @ mu - cost) / HEAT)
        gradient = (share @ U[:, at]) / len(U) + slack[at]
        curvature = (U[:, at] * (share * (1 - share))[:, None]).T @ U[:, at] / (HEAT * len(U))
        ridge = 1e-10 * max(float(curvature.trace()), 1e-12) / len(at)
        step = np.linalg.solve(curvature + ridge * np.eye(len(at)), gradient)
        shorter = min(1.0, 10.0 / max(float(np.abs(step).max()), 1e-300))
        moved = mu[at] - shorter * step
        free[at[moved < 0]] = False
        mu[at] = np.clip(moved, 0.0, HIGHEST_PRICE)
        if np.abs(step).max(initial=0.0) <= 1e-13 * max(np.abs(mu).max(), 1.0):
            break
    return mu
