"""Prices of inequalities: the minimum of a convex dual, checked by its conditions."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq, linprog
from scipy.special import expit

from commod._evidence.search import HEAT, HIGHEST_PRICE, prices_of


def gradient(mu, U, cost, slack):
    return expit((U @ mu - cost) / HEAT) @ U / len(U) + slack


def drawn(seed, n_inequalities, n=300):
    """Return effects, costs and slacks of which some are short; a change can cure each of them."""
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(n, n_inequalities)) * rng.choice([0.2, 1.0, 5.0], n_inequalities)
    reach = np.maximum(U, 0).mean(axis=0)
    return U, rng.uniform(0.5, 2.0, n), reach * rng.uniform(-0.35, 0.2, n_inequalities)


@given(seed=st.integers(0, 10**6), n_inequalities=st.integers(1, 5))
def test_the_conditions_of_the_minimum_hold(seed, n_inequalities):
    # the dual is convex, so these conditions hold at its minimum alone
    given_ = drawn(seed, n_inequalities)
    mu = prices_of(*given_)
    slope = gradient(mu, *given_)
    assert (mu >= 0).all() and (mu < HIGHEST_PRICE).all()
    assert np.abs(slope[mu > 0]).max(initial=0) < 1e-9  # so prices are known to all digits
    assert slope[mu == 0].min(initial=0) > -1e-9


@given(seed=st.integers(0, 10**6), n_inequalities=st.integers(1, 3))
def test_no_rule_costs_less_than_the_one_that_the_prices_lead_to(seed, n_inequalities):
    """The theorem of docs/concepts/the-mathematics.md, beside a linear programme of all rules."""
    U, cost, slack = drawn(seed, n_inequalities)
    cheapest = linprog(cost / len(U), A_ub=-U.T / len(U), b_ub=slack, bounds=(0, 1))
    assume(cheapest.status == 0)  # the bounds may exclude each other
    value = U @ -cheapest.ineqlin.marginals - cost
    assert (cheapest.x[value > 1e-7] > 1 - 1e-7).all()
    assert (cheapest.x[value < -1e-7] < 1e-7).all()
    mu = prices_of(U, cost, slack)
    # the smooth maximum of the dual is too large by HEAT · log 2 at most
    least = -HEAT * np.logaddexp(0, (U @ mu - cost) / HEAT).mean() - mu @ slack
    assert least - 1e-9 <= cheapest.fun <= least + HEAT * np.log(2) + 1e-9


@given(seed=st.integers(0, 10**6), n_groups=st.integers(2, 5))
def test_inequalities_that_depend_on_each_other_have_prices_too(seed, n_groups):
    # all pairs of groups, whose members a regression nearly tells apart
    rng = np.random.default_rng(seed)
    member = np.eye(n_groups)[rng.integers(0, n_groups, 400)]
    effect = np.clip(member + 0.02 * rng.normal(size=member.shape), 0, 1) * n_groups
    side, rates = rng.choice([-1.0, 1.0], 400), np.sort(rng.uniform(0.3, 0.7, n_groups))
    pairs = [
        np.eye(n_groups)[i] - np.eye(n_groups)[j]
        for i in range(n_groups)
        for j in range(n_groups)
        if i != j
    ]
    slopes = np.array(pairs)
    given_ = side[:, None] * effect @ slopes.T, np.ones(400), 0.1 + slopes @ rates
    mu = prices_of(*given_)
    slope = gradient(mu, *given_)
    assert (mu >= 0).all()
    assert np.abs(slope[mu > 0]).max(initial=0) < 1e-7
    assert slope[mu == 0].min(initial=0) > -1e-7
    again = prices_of(*given_, start=rng.uniform(0, 1, len(pairs)))
    np.testing.assert_allclose(given_[0] @ again, given_[0] @ mu, atol=1e-6)


def test_one_price_is_the_root_of_its_condition():
    U, cost, slack = drawn(3, 1)
    slack = -np.abs(slack) - 0.05
    root = brentq(lambda mu: gradient(np.array([mu]), U, cost, slack)[0], 0, 100, xtol=1e-13)
    assert prices_of(U, cost, slack) == pytest.approx([root], rel=1e-11)
    backwards = prices_of(U[::-1].copy(), cost[::-1].copy(), slack, np.array([7.0]))
    assert backwards == pytest.approx([root], rel=1e-11)


def test_what_cannot_be_kept_has_the_highest_price_and_what_is_kept_has_none():
    U = np.column_stack([np.full(50, 0.1), np.ones(50)])
    mu = prices_of(U, np.ones(50), np.array([-0.2, 0.3]))
    assert mu.tolist() == [HIGHEST_PRICE, 0.0]
