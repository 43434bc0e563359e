"""Searches in which a row belongs to every cell with a probability."""

import numpy as np
import pytest
from commod._solvers.search import offset
from commod._solvers.search.offset import best_offset
from commod._solvers.search.rates import Caps, Cells, change_effects
from hypothesis import given
from hypothesis import strategies as st
from inequalities import inequalities_of


def problem(seed, with_caps=False, n=60):
    rng = np.random.default_rng(seed)
    cells = Cells(rng.integers(-1, 3, n), (1, 3))
    decisions = rng.random(n) < 0.5
    weight = rng.uniform(0.5, 2, n)
    effects = change_effects(
        cells, decisions, weight, may_change=rng.random(n) < 0.8, with_caps=with_caps
    )
    return rng, cells, weight, effects


def certain(cells):
    """Return probabilities that are 1 for the true cell."""
    return (cells.index[:, None] == np.arange(3)).astype(float)


@given(st.integers(0, 10**6), st.booleans())
def test_certain_probabilities_move_rates_as_the_true_cells_do(seed, with_caps):
    rng, cells, weight, hard = problem(seed, with_caps)
    soft = hard.soften(certain(cells), weight)
    shares, prices = rng.random(60), rng.normal(size=len(hard.base_sums))
    assert soft.sums(shares) == pytest.approx(hard.sums(shares))
    assert soft.costs_at(prices) == pytest.approx(hard.costs_at(prices))
    part = rng.permutation(60)[:30]
    assert soft.take(part).sums(shares[:30]) == pytest.approx(hard.take(part).sums(shares[:30]))
    assert soft.on_true_cells().sums(shares) == pytest.approx(hard.sums(shares))


@given(st.integers(0, 10**6), st.booleans())
def test_certain_probabilities_lead_to_the_same_offset(seed, is_binned):
    rng, cells, weight, hard = problem(seed, with_caps=True)
    soft = hard.soften(certain(cells), weight)
    inequalities = inequalities_of("demographic_parity", 0.9, hard, Caps(changes=0.3))
    eta = rng.normal(size=60)
    with pytest.MonkeyPatch.context() as patch:
        if is_binned:
            patch.setattr(offset, "MAX_SORTED_ROWS", 1)
        found = [
            best_offset(effects, inequalities, eta, np.ones(1), exact=False)
            for effects in (hard, soft)
        ]
    assert found[0].offset == pytest.approx(found[1].offset)
    assert found[0].cost == pytest.approx(found[1].cost)


@given(st.integers(0, 10**6))
def test_a_change_is_expected_to_move_each_rate_by_its_probability(seed):
    rng, _, weight, hard = problem(seed)
    probabilities = rng.dirichlet(np.ones(3), 60)
    soft = hard.soften(probabilities, weight)
    moved = soft.sums(soft.may_change) - soft.base_sums
    sign = np.where(hard.is_raised, 1, -1) * hard.may_change
    totals = weight @ probabilities
    assert moved == pytest.approx((sign * weight) @ probabilities / totals)
