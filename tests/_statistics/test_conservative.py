"""Bounds that promises rest on: their exact error, from every outcome of small and large cells."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from commod._statistics.intervals import (
    difference_safe_bound,
    difference_upper_bound,
    exact_share_interval,
    ratio_lower_bound,
    ratio_safe_bound,
)
from commod._statistics.promises import _promised

ALPHA = 0.05
SMALL = [1, 2, 3, 12, 40]
SIZES = [*itertools.product(SMALL, repeat=2), (2, 400), (400, 2), (20, 300), (300, 20), (100, 100)]
RATES = np.concatenate([[0.001, 0.005, 0.01, 0.02], np.linspace(0.04, 0.96, 24), [0.98, 0.99, 1.0]])
ROUNDING = 1e-9


def every_outcome(size_1, size_2):
    return np.arange(size_1 + 1)[:, None], np.arange(size_2 + 1)[None]


def error_rates(event, size_1, size_2, rates_1, rates_2):
    """Return the probability of an event (a mask over every outcome) at each pair of rates."""
    first = stats.binom.pmf(np.arange(size_1 + 1), size_1, rates_1[:, None])
    second = stats.binom.pmf(np.arange(size_2 + 1), size_2, rates_2[:, None])
    return ((first @ event.astype(float)) * second).sum(axis=1)


def test_a_lower_bound_of_a_ratio_is_seldom_too_high_in_cells_of_any_size():
    worst_of_score = 0.0
    for n1, n2 in SIZES:
        x1, x2 = every_outcome(n1, n2)
        bound = ratio_safe_bound(x1, n1, x2, n2, ALPHA)
        by_score = ratio_lower_bound(x1, n1, x2, n2, ALPHA)
        for ratio in (0.5, 0.8, 0.95):
            rates = ratio * RATES, RATES
            assert error_rates(bound >= ratio, n1, n2, *rates).max() <= ALPHA, (n1, n2, ratio)
            worst_of_score = max(
                worst_of_score, error_rates(by_score >= ratio, n1, n2, *rates).max()
            )
    assert worst_of_score > 2 * ALPHA  # why the score bound alone is not enough


@pytest.mark.parametrize("alpha", [0.005, 0.001])
def test_very_small_errors_hold_for_certain(alpha):
    for n1, n2 in itertools.product([1, 2, 3, 7, 30], repeat=2):
        x1, x2 = every_outcome(n1, n2)
        ratio = ratio_safe_bound(x1, n1, x2, n2, alpha) >= 0.8
        assert error_rates(ratio, n1, n2, 0.8 * RATES, RATES).max() <= alpha
        gap = difference_safe_bound(x1, n1, x2, n2, alpha) <= 0.5
        second = np.append(RATES[RATES < 0.5], 0.5)
        assert error_rates(gap, n1, n2, second + 0.5, second).max() <= alpha


def test_an_upper_bound_of_a_difference_is_seldom_too_low_in_cells_of_any_size():
    worst_of_score = 0.0
    for n1, n2 in SIZES:
        x1, x2 = every_outcome(n1, n2)
        bound = difference_safe_bound(x1, n1, x2, n2, ALPHA)
        by_score = difference_upper_bound(x1, n1, x2, n2, ALPHA)
        for gap in (0.02, 0.1, 0.2):
            second = np.append(RATES[gap + RATES < 1], [0, 1 - gap])
            rates = np.minimum(second + gap, 1), second
            is_low = bound <= gap + ROUNDING
            assert error_rates(is_low, n1, n2, *rates).max() <= ALPHA, (n1, n2, gap)
            worst_of_score = max(worst_of_score, error_rates(by_score <= gap, n1, n2, *rates).max())
    assert worst_of_score > 1.5 * ALPHA


@pytest.mark.parametrize(
    ("sizes", "rates"),
    [
        ([[12, 50], [5, 60]], [[0.73, 0.63], [0.715, 0.665]]),
        ([[60, 2], [50, 5]], [[0.1, 0.1], [0.6, 0.4]]),
        ([[8, 8], [40, 30]], [[0.76, 0.56], [0.28, 0.08]]),
        ([[3, 3], [3, 40]], [[1.0, 0.9], [0.03, 0.0]]),
        ([[40, 40], [40, 40]], [[0.55, 0.45], [0.55, 0.45]]),
        ([[40, 40], [40, 40]], [[0.99, 0.93], [0.07, 0.01]]),
    ],
)
def test_a_promise_of_equalized_odds_is_seldom_false_in_small_cells(sizes, rates):
    # Every outcome of four cells: those of one rate row against those of the other.
    rows = []
    for (n1, n2), (p1, p2) in zip(sizes, rates, strict=True):
        x1, x2 = every_outcome(n1, n2)
        weight = stats.binom.pmf(x1, n1, p1) * stats.binom.pmf(x2, n2, p2)
        x1, x2 = (np.broadcast_to(x, weight.shape)[weight > 1e-6] for x in (x1, x2))
        gap = x1 / n1 - x2 / n2
        excess = difference_safe_bound(x1, n1, x2, n2, ALPHA) - gap
        rows.append((weight[weight > 1e-6], gap, excess))
    (w1, gap1, excess1), (w2, gap2, excess2) = rows
    bounds = gap1[:, None] + gap2 + np.hypot(excess1[:, None], excess2)
    truth = sum(p1 - p2 for p1, p2 in rates)
    assert w1 @ (bounds <= truth + ROUNDING) @ w2 <= ALPHA


@pytest.mark.parametrize("rates", [[[0.55, 0.45], [0.35, 0.25]], [[0.9, 0.8], [0.1, 0.0]]])
def test_false_promises_of_equalized_odds_at_the_target_are_not_far_below_the_error(rates):
    # The joint test spends its error: splitting it between both rates leaves about a fifth of it.
    sizes = np.array([[400, 300], [300, 500]])
    draws = np.random.default_rng(5).binomial(sizes, rates, (4000, 2, 2))
    table = np.broadcast_to(sizes, draws.shape)
    truth = sum(high - low for high, low in rates)
    share = np.mean(_promised("equalized_odds", table, draws, ALPHA) <= truth)
    assert 0.03 < share < 0.06


def test_equalized_odds_are_promised_twice_as_often_as_with_half_the_error_for_each_rate():
    sizes, rates = np.array([[375, 375], [375, 375]]), [[0.85, 0.8], [0.2, 0.15]]
    draws = np.random.default_rng(6).binomial(sizes, rates, (2000, 2, 2))
    table = np.broadcast_to(sizes, draws.shape)
    joint = np.mean(_promised("equalized_odds", table, draws, ALPHA) <= 0.2)
    each = [
        _promised("true_positive_rate_parity", table[:, [i]], draws[:, [i]], ALPHA / 2)
        for i in range(2)
    ]
    assert joint > 0.3
    assert joint > 2 * np.mean(sum(each) <= 0.2)


def test_a_share_of_nobody_has_no_interval():
    assert np.isnan(exact_share_interval([0, 0], [0, 0], 0.05)).all()


@given(st.integers(1, 200), st.data(), st.sampled_from([0.01, 0.05, 0.2]))
def test_the_exact_interval_of_a_share_is_clopper_and_pearsons(size, data, alpha):
    count = data.draw(st.integers(0, size))
    expected = stats.binomtest(count, size).proportion_ci(1 - 2 * alpha, method="exact")
    assert exact_share_interval(count, size, alpha) == pytest.approx(expected, abs=1e-9)


@given(st.data())
def test_a_safe_bound_is_never_better_than_the_score_bound_and_close_to_it_in_large_cells(data):
    sizes = [data.draw(st.integers(1, 60)) for _ in range(2)]
    counts = [data.draw(st.integers(0, size)) for size in sizes]
    pair = counts[0], sizes[0], counts[1], sizes[1]
    assert ratio_safe_bound(*pair, ALPHA) <= ratio_lower_bound(*pair, ALPHA) + ROUNDING
    assert difference_safe_bound(*pair, ALPHA) >= difference_upper_bound(*pair, ALPHA) - ROUNDING
    large = tuple(10_000 * number for number in pair)
    if counts[1]:  # the bound of an infinite ratio is one of rounding
        by_score = ratio_lower_bound(*large, ALPHA)
        assert ratio_safe_bound(*large, ALPHA) == pytest.approx(by_score, rel=1e-3)
    assert difference_safe_bound(*large, ALPHA) == pytest.approx(
        difference_upper_bound(*large, ALPHA), abs=1e-3
    )


@pytest.mark.parametrize("counts", [(0, 0, 3, 5), (3, 5, 0, 0)])
def test_an_empty_cell_has_no_bound(counts):
    assert np.isnan(ratio_safe_bound(*counts, ALPHA))
    assert np.isnan(difference_safe_bound(*counts, ALPHA))
