"""Price the inequalities: how many changes one unit of each of their slacks is worth.

With prices μ ≥ 0, a person is worth side · U μ, and changes where this exceeds the cost of the
change. The prices minimise a convex function of few variables,

    mean softplus_h(U μ − cost) + μ'slack,

so they are unique. Newton's method solves for them to all digits, because other code rounds them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

Floats = NDArray[np.float64]

HEAT = 0.05  # h: the width of the soft step, in the unit of the cost
HIGHEST_PRICE = 1e3  # of an inequality that cannot be kept
N_NEWTON_STEPS = 20
STEP_LENGTHS = (1.0, 0.5, 0.25, 0.1, 0.01)  # of Newton steps that are tried


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

    start = np.full(U.shape[1], 1e-3) if start is None else start
    dual = Dual(U, cost, slack)
    solved = minimize(
        dual.value_and_gradient,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, HIGHEST_PRICE)] * len(slack),
        options={"maxiter": 500},
    )
    return dual.polished(np.asarray(solved.x))


class Dual(NamedTuple):
    """The convex function that prices minimise."""

    U: Floats
    cost: Floats
    slack: Floats

    def value(self, mu: Floats) -> float:
        """Return the function at prices (J,)."""
        heat = (self.U @ mu - self.cost) / HEAT
        return float(HEAT * np.logaddexp(0, heat).mean() + mu @ self.slack)

    def value_and_gradient(self, mu: Floats) -> tuple[float, Floats]:
        """Return the function and its gradient (J,)."""
        share = expit((self.U @ mu - self.cost) / HEAT)
        return self.value(mu), (share @ self.U) / len(self.U) + self.slack

    def polished(self, mu: Floats) -> Floats:
        """Return the minimum by Newton's method on the prices that are not at an end."""
        n = len(self.U)
        value, gradient = self.value_and_gradient(mu)
        for _ in range(N_NEWTON_STEPS):
            low, high = (mu <= 1e-9) & (gradient >= 0), (mu >= HIGHEST_PRICE) & (gradient <= 0)
            mu = np.where(low, 0.0, mu)
            at = np.flatnonzero(~low & ~high)
            if not len(at):
                break
            U, share = self.U[:, at], expit((self.U @ mu - self.cost) / HEAT)
            curvature = (U * (share * (1 - share))[:, None]).T @ U / (HEAT * n)
            ridge = 1e-12 * float(curvature.trace()) + 1e-300
            step = np.linalg.solve(curvature + ridge * np.eye(len(at)), gradient[at])
            for shorter in STEP_LENGTHS:
                moved = mu.copy()
                moved[at] = np.clip(mu[at] - shorter * step, 0.0, HIGHEST_PRICE)
                if self.value(moved) <= value:
                    break
            else:
                break
            change = float(np.abs(moved - mu).max())
            mu = moved
            value, gradient = self.value_and_gradient(mu)
            if change <= 1e-14 * max(float(np.abs(mu).max()), 1.0):
                break
        return mu
