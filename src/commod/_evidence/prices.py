"""Price the inequalities: how many changes one unit of each of their slacks is worth.

With prices μ ≥ 0, a person is worth side · U μ, and changes where this exceeds the cost of the
change. The prices minimise a convex function of few variables,

    mean softplus_h(U μ − cost) + μ'slack,

so what they make each person worth is unique. Newton's method solves for them to all digits,
because other code rounds them.
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
N_NEWTON_STEPS, N_HALVINGS = 20, 30  # steps, and how often each may be halved
TOLERANCES = (1e-9, 1e-15)  # of the descent before Newton's method; the second where it is needed
LARGEST_GRADIENT = 1e-9  # of a price that is not at an end


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
    mu = start
    for tolerance in TOLERANCES:
        solved = minimize(
            dual.value_and_gradient,
            mu,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, HIGHEST_PRICE)] * len(slack),
            options={"maxiter": 500, "ftol": tolerance, "gtol": LARGEST_GRADIENT},
        )
        mu = dual.polished(np.asarray(solved.x))
        if dual.is_minimum(mu):
            break
    return mu


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

    def at_end(self, mu: Floats, gradient: Floats) -> NDArray[np.bool_]:
        """Return which prices (J,) are at an end, and would lie beyond it."""
        low, high = (mu <= 0) & (gradient >= 0), (mu >= HIGHEST_PRICE) & (gradient <= 0)
        return np.asarray(low | high)

    def is_minimum(self, mu: Floats) -> bool:
        """Return whether prices are those of the minimum, but for rounding."""
        _, gradient = self.value_and_gradient(mu)
        free = gradient[~self.at_end(mu, gradient)]
        return bool(np.abs(free).max(initial=0.0) <= LARGEST_GRADIENT)

    def polished(self, mu: Floats) -> Floats:
        """Return the minimum by Newton's method on the prices that are not at an end."""
        mu = np.where(mu > 1e-9, mu, 0.0)
        value, gradient = self.value_and_gradient(mu)
        for _ in range(N_NEWTON_STEPS):
            at = np.flatnonzero(~self.at_end(mu, gradient))
            if not len(at):
                break
            U, share = self.U[:, at], expit((self.U @ mu - self.cost) / HEAT)
            curvature = (U * (share * (1 - share))[:, None]).T @ U / (HEAT * len(U))
            ridge = 1e-12 * float(curvature.trace()) + 1e-300
            step = np.zeros(len(mu))
            step[at] = np.linalg.solve(curvature + ridge * np.eye(len(at)), gradient[at])
            for shorter in 0.5 ** np.arange(N_HALVINGS):
                moved = np.clip(mu - shorter * step, 0.0, HIGHEST_PRICE)
                if self.value(moved) <= value + 1e-4 * float(gradient @ (moved - mu)):
                    break
            else:
                break
            change = float(np.abs(moved - mu).max())
            mu = moved
            value, gradient = self.value_and_gradient(mu)
            if change <= 1e-14 * max(float(np.abs(mu).max()), 1.0):
                break
        return mu
