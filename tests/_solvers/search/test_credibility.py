"""Small categories keep only points that their evidence supports."""

import numpy as np
import pytest
from commod._solvers.search.credibility import credibility
from hypothesis import given, settings
from hypothesis import strategies as st

from commod._data.disclosure import SMALL_CATEGORY


def rows_of(seed, n_towns, size, effect, *, n_more=0):
    """Return a column of small towns, beside a large one, whose shares worth changing differ."""
    random = np.random.RandomState(seed)
    town = np.concatenate([np.repeat(np.arange(n_towns), size), np.full(n_more, n_towns)])
    decisions = random.rand(len(town)) < 0.5
    share = np.where(decisions, 0.3, 0.5) + effect * random.randn(n_towns + 1)[town]
    return town, random.rand(len(town)) < share, decisions


def kept(seed, n_towns, size, effect, **more):
    town, worth, decisions = rows_of(seed, n_towns, size, effect, **more)
    everybody = np.ones(len(town), dtype=bool)
    return credibility([town], town.max() + 1, [worth], decisions, everybody)


def test_towns_that_do_not_matter_get_no_points_nearly_always():
    zero = [kept(seed, 200, 25, 0.0).max() == 0 for seed in range(100)]
    assert np.mean(zero) >= 0.9


def test_towns_that_matter_keep_more_of_their_points_the_larger_they_are():
    shares = [np.mean(kept(3, 200, size, 0.15)) for size in (20, 40, 80)]
    assert 0.2 < shares[0] < shares[1] < shares[2] < 1


def test_the_share_of_the_points_is_that_with_the_smallest_error():
    # the estimate of a town's surplus, times the share, should be closest to the true one
    town, worth, decisions = rows_of(5, 400, 25, 0.15)
    random = np.random.RandomState(5)
    random.rand(len(town))
    true = 0.15 * random.randn(401)[:400]
    expected = np.where(decisions, worth[decisions].mean(), worth[~decisions].mean())
    seen = np.bincount(town, worth - expected) / 25
    best = float(seen @ true / (seen @ seen))
    share = kept(5, 400, 25, 0.15).mean()
    assert share == pytest.approx(best, abs=0.1)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 12), st.integers(1, 99), st.sampled_from([0.0, 0.3]))
def test_large_categories_keep_their_points_and_shares_are_between_0_and_1(
    seed, n_towns, size, effect
):
    share = kept(seed, n_towns, size, effect, n_more=SMALL_CATEGORY)
    assert share[-1] == 1
    assert ((share >= 0) & (share <= 1)).all()


def test_rows_that_may_not_change_are_no_evidence():
    town, worth, decisions = rows_of(1, 20, 30, 0.3)
    nobody = np.zeros(len(town), dtype=bool)
    assert credibility([town], 20, [worth], decisions, nobody).max() == 0
