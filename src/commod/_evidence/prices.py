"""Price the inequalities: how many changes one unit of each of their slacks is worth.

With prices μ ≥ 0, a person is worth side · U μ, and changes where this exceeds the cost of the
change. The prices minimise a convex function of few variables,

    mean softplus_h(U μ − cost) + μ'slack,

so what they make each person worth is unique. Newton's method solves for them to all digits,
because other code rounds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from commod._data.arrays import Codes, Floats, Mask
from commod._evidence.task import EvidenceTask

HEAT = 0.05  # h: the width of the soft step, in the unit of the cost
N_ROUNDS = 2  # of prices, each corrected by what the last ones change
MAX_PRICED_ROWS = 5_000  # on which prices are sought
CAP_WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # of a cap beside a bound that is out of reach
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
    dual = PriceDual(U, cost, slack)
    mu = np.full(U.shape[1], 1e-3) if start is None else start
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


class PriceDual(NamedTuple):
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
        heat = (self.U @ mu - self.cost) / HEAT
        value = HEAT * np.logaddexp(0, heat).mean() + mu @ self.slack
        return float(value), (expit(heat) @ self.U) / len(self.U) + self.slack

    def at_end(self, mu: Floats, gradient: Floats) -> Mask:
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


def priced_rows(task: EvidenceTask) -> Codes:
    """Return the rows that prices are sought on: those that may change, at most MAX_PRICED_ROWS."""
    rows = np.flatnonzero(task.may_change)
    return rows[:: -(-len(rows) // MAX_PRICED_ROWS)] if len(rows) else rows


class Pricing:
    """Seek what one unit of each sum is worth.

    Parameters
    ----------
    task : EvidenceTask
    rows : ndarray of shape (m,)
        The rows that prices are sought on.
    expected : ndarray of shape (m, K)
        What a positive decision of each of these rows is expected to add to the sums.
    cost : ndarray of shape (n,)
        What the change of each person costs.
    """

    def __init__(self, task: EvidenceTask, rows: Codes, expected: Floats, cost: Floats) -> None:
        self.task, self.cost = task, cost[rows]
        side = task.side[rows, None] * len(task)
        counted = np.zeros((len(rows), task.n_cells + 1))
        for cell, step in zip(task.cell[rows].T, task.step[rows].T, strict=True):
            counted[np.arange(len(rows)), cell] += step
        self.expected = side * expected
        self.counted = side * np.hstack([counted[:, :-1], task.caps_steps[rows]])
        self.share = float(task.may_change.mean())
        self.base = np.concatenate([task.base_rates, np.zeros(task.caps_steps.shape[1])])

    def rounds(self, rates: Floats) -> Iterator[Floats]:
        """Yield values of the sums, (K,), each corrected by what the last ones change.

        Inequalities are tangents at `rates` (C,), and then at the rates that prices lead to.
        """
        task = self.task
        if not len(self.cost):  # nobody may change, so no sum is worth anything
            yield np.zeros(len(self.base))
            return
        made = task.inequalities(rates)
        slack = made.slopes @ self.base + made.constant
        if len(slack) == 2 and len(task.required) == 1:
            # Two groups and one rate: one of two inequalities is short, and its price is any.
            yield self._scaled(made.slopes[int(np.argmin(slack))])
            return
        mu, correction = None, np.zeros(len(slack))
        for _ in range(N_ROUNDS):
            U = self.expected @ made.slopes.T
            mu = prices_of(U, self.cost, (slack + correction) / self.share, mu)
            yield self._scaled(made.slopes.T @ mu)
            changed = expit((U @ mu - self.cost) / HEAT) * (self.share / len(U))
            moved = changed @ self.counted
            made = task.inequalities(np.clip((self.base + moved)[: task.n_cells], 0.0, 1.0))
            slack = made.slopes @ self.base + made.constant
            correction = made.slopes @ (moved - changed @ self.expected)

    def beside_caps(self, rates: Floats) -> Iterator[Floats]:
        """Yield values for the worst inequality and caps at several weights; none without caps."""
        made = self.task.inequalities(rates)
        is_cap = made.constraint < 0
        slack = made.slopes @ self.base + made.constant
        worst = made.slopes[int(np.argmin(np.where(is_cap, np.inf, slack)))]
        for weight in CAP_WEIGHTS:
            for caps in made.slopes[is_cap]:
                yield self._scaled(worst / np.abs(worst).max() + weight * caps)

    def _scaled(self, coef: Floats) -> Floats:
        """Return values of the sums so that the person who counts most is worth 1."""
        task, n_caps = self.task, self.task.caps_steps.shape[1]
        totals = np.concatenate([task.totals, np.full(n_caps, task.weight.sum())])
        largest = np.abs(coef / np.where(totals > 0, totals, np.inf)).max(initial=0.0)
        return coef / (largest * task.weight.mean()) if largest else coef
