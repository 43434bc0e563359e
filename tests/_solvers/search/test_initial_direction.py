"""The initial direction, compared with a general optimiser."""

import numpy as np
import pytest
from commod._solvers.search.design import unit_spread
from commod._solvers.search.initial_direction import RIDGE, initial_direction
from scipy.optimize import minimize
from scipy.special import expit
from small_problems import small_design


def test_the_initial_direction_is_a_ridge_logistic_regression():
    design = small_design(9, 300)
    rng = np.random.default_rng(9)
    worth_changing = rng.random(300) < expit(design.times(np.array([1.0, -1, 0, 0.5, 0])))
    weight = rng.uniform(0.5, 2, 300)
    share, sign = weight / weight.sum(), np.where(worth_changing, 1, -1)

    def loss(v):
        margin = sign * (design.times(v[:-1]) + v[-1])
        return share @ np.logaddexp(0, -margin) + RIDGE / 2 * v[:-1] @ v[:-1]

    plain = minimize(loss, np.zeros(6), method="BFGS").x[:-1]
    w = initial_direction(design, worth_changing, weight)
    np.testing.assert_allclose(w, unit_spread(design, plain), atol=2e-3)
    assert design.times(w).std() == pytest.approx(1)


def test_the_initial_direction_keeps_to_the_bounds():
    design = small_design(9, 300)
    worth_changing = design.numeric[:, 0] > 0
    free = initial_direction(design, worth_changing, np.ones(300))
    assert free[0] > 0.5
    bounds = [(None, 0.0)] + [(None, None)] * 4
    held = initial_direction(design, worth_changing, np.ones(300), bounds=bounds)
    assert held[0] == 0
