"""Quasi-Newton steps against SciPy's, on functions whose lowest point is known."""

import numpy as np
import pytest
from commod._solvers.search.quasi_newton import descend
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, rosen, rosen_der


def bowl(seed, d):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d))
    matrix, low = root @ root.T + 0.1 * np.eye(d), rng.normal(size=d)
    return (lambda v: (float((v - low) @ matrix @ (v - low)), 2 * matrix @ (v - low))), low


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), d=st.integers(1, 12))
def test_the_lowest_point_of_a_bowl(seed, d):
    function, low = bowl(seed, d)
    found = descend(function, np.zeros(d), n_steps=500, tolerance=1e-16)
    np.testing.assert_allclose(found, low, atol=1e-3)


def test_a_curved_valley_takes_about_as_many_steps_as_scipys():
    counts = [0, 0]

    def valley(which):
        def function(v):
            counts[which] += 1
            return float(rosen(v)), rosen_der(v)

        return function

    start = np.full(6, -1.2)
    found = descend(valley(0), start, n_steps=400, tolerance=1e-12)
    theirs = minimize(valley(1), start, jac=True, method="L-BFGS-B", options={"ftol": 1e-12})
    assert rosen(found) < 1e-6
    assert theirs.fun < 1e-6
    assert counts[0] < 2 * counts[1]


def test_no_step_leads_up_and_the_number_of_steps_is_kept():
    values = []

    def steep(v):
        values.append(float(np.sum(v**4)))
        return values[-1], 4 * v**3

    start = np.array([30.0, -20.0])
    after = [steep(descend(steep, start, n_steps=n, tolerance=0.0))[0] for n in range(12)]
    assert after == sorted(after, reverse=True)
    assert after[0] == 30.0**4 + 20.0**4
    assert after[-1] < 1e-3 * after[0]


def test_a_flat_place_is_left_alone():
    start = np.array([1.0, 2.0])
    found = descend(lambda v: (0.0, np.zeros(2)), start, n_steps=5, tolerance=1e-6)
    assert np.array_equal(found, start)


@pytest.mark.parametrize("seed", range(5))
def test_bounds_are_kept(seed):
    function, _ = bowl(seed, 3)
    bounds = [(0.0, None), (None, 0.0), (None, None)]
    found = descend(function, np.zeros(3), n_steps=200, tolerance=1e-12, bounds=bounds)
    assert found[0] >= 0 >= found[1]
    theirs = minimize(lambda v: function(v)[0], np.zeros(3), bounds=bounds).fun
    assert function(found)[0] == pytest.approx(theirs, abs=1e-4)
