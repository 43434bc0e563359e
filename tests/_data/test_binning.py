"""Bins are honest: round edges, enough people in each, the same whatever the order of the rows."""

from __future__ import annotations

import math
from itertools import pairwise, permutations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from commod._data.encoding import bin_edges, roundest_number
from tables_of_cases import every_line

quick = settings(max_examples=12)
value = st.one_of(
    st.sampled_from([0.0, -0.0, 0.1, 0.3, 0.1 + 0.2, 1.0, 1e-320, -1e300, 1e300]),
    st.integers(-30, 30).map(float),
    st.floats(-1e6, 1e6).map(lambda v: round(v, 2)),
    st.floats(-1e300, 1e300),
)
weights = st.one_of(st.just(1.0), st.floats(0.01, 10))


@st.composite
def samples(draw):
    """Values, many of them repeated, weights, a number of bins and the smallest bin."""
    pool = draw(st.lists(value, min_size=1, max_size=30))
    values = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=80))
    n = len(values)
    weight = draw(st.one_of(st.just([1.0] * n), st.lists(weights, min_size=n, max_size=n)))
    return (
        np.array(values),
        np.array(weight),
        {"n_bins": draw(st.integers(2, 12)), "min_size": draw(st.integers(1, 8))},
    )


def edges_of(values, n_bins=10, min_size=1):
    values = np.asarray(values, dtype=float)
    return bin_edges(values, np.ones(len(values)), n_bins=n_bins, min_size=min_size)


def sizes(values, edges):
    """How many of the values each bin holds, counted one by one."""
    bounds = [-math.inf, *edges, math.inf]
    return [sum(a <= v < b for v in values) for a, b in pairwise(bounds)]


@given(samples())
@quick
def test_edges_are_finite_and_strictly_increasing(sample):
    values, weight, how = sample
    edges = bin_edges(values, weight, **how)
    assert all(type(edge) is float and math.isfinite(edge) for edge in edges)
    assert all(a < b for a, b in pairwise(edges))


@given(samples())
@quick
def test_every_bin_has_enough_rows_and_lies_inside_the_data(sample):
    values, weight, how = sample
    edges = bin_edges(values, weight, **how)
    if edges:
        assert min(sizes(values, edges)) >= how["min_size"]


@given(samples(), st.randoms(use_true_random=False))
@quick
def test_edges_do_not_depend_on_the_order_of_the_rows(sample, random):
    values, weight, how = sample
    order = random.sample(range(len(values)), len(values))
    assert bin_edges(values[order], weight[order], **how) == bin_edges(values, weight, **how)


def test_the_order_in_which_weights_add_up_does_not_decide_a_tie():
    # A cut below 1 and one above it are equally good: the last bit of a sum would choose.
    values = np.array([0.0, 1.0, 2.0, 2.0, 2.0])
    weights = [np.array([5.8, 4.6, *order]) for order in permutations((3.4, 2.2, 0.2))]
    assert len({bin_edges(values, weight, n_bins=2, min_size=1) for weight in weights}) == 1


@given(samples(), st.floats(0.001, 1000))
@quick
def test_the_unit_of_the_weights_does_not_matter(sample, unit):
    values, _, how = sample
    ones = np.ones(len(values))
    assert bin_edges(values, unit * ones, **how) == bin_edges(values, ones, **how)


@given(st.lists(st.integers(-10_000, 10_000), min_size=2, max_size=60), st.integers(2, 12))
@quick
def test_whole_numbers_are_cut_at_whole_numbers(values, n_bins):
    assert all(edge == int(edge) for edge in edges_of(values, n_bins))


@given(samples())
@quick
def test_a_few_different_values_have_a_bin_each_where_enough_rows_share_them(sample):
    values, weight, how = sample
    different, counts = np.unique(np.round(values, 2) + 0.0, return_counts=True)
    assume(len(different) <= how["n_bins"] and counts.min() >= how["min_size"])
    assume(np.abs(different).max() < 1e9)  # beyond, neighbours differ by rounding only
    edges = bin_edges(np.round(values, 2), weight, **how)
    assert sizes(different, edges) == [1] * len(different)


@given(st.integers(-1000, 1000), st.integers(2, 12), st.integers(1, 5), st.data())
@quick
def test_a_heavy_value_has_a_bin_of_its_own(spike, n_bins, min_size, data):
    side = st.lists(st.floats(0.001, 500), min_size=min_size, max_size=40)
    others = [spike - gap for gap in data.draw(side)] + [spike + gap for gap in data.draw(side)]
    n_spikes = max(min_size, len(others))  # half of the rows at least
    values = np.array([float(spike)] * n_spikes + others)
    edges = edges_of(values, n_bins, min_size)
    [spike_bin] = {int(np.searchsorted(edges, spike, side="right"))}
    assert sizes(values, edges)[spike_bin] == n_spikes


def test_most_people_at_zero_and_the_others_in_bins_of_similar_size():
    rng = np.random.default_rng(0)
    values = np.concatenate([np.zeros(600), np.exp(rng.normal(8, 1, 400)).round(2)])
    edges = edges_of(values, min_size=20)
    assert sizes(values, edges)[0] == 600
    assert len(edges) == 4
    assert min(sizes(values, edges)[1:]) > 50


def test_counts_are_cut_between_their_values_and_the_rare_ones_join():
    count = [0] * 500 + [1] * 60 + [2] * 25 + [3] * 5 + [8]
    assert edges_of(count, min_size=20) == (1.0, 2.0)
    assert edges_of(count, min_size=6) == (1.0, 2.0, 3.0)


def test_a_small_bin_joins_the_smaller_of_its_neighbours():
    assert edges_of([0] * 30 + [1] * 2 + [2] * 10, min_size=5) == (1.0,)
    assert edges_of([0] * 10 + [1] * 2 + [2] * 30, min_size=5) == (2.0,)


def test_edges_are_round_numbers_near_the_quantiles():
    income = np.exp(np.random.default_rng(1).normal(10, 1, 5_000))
    edges = edges_of(income, n_bins=5, min_size=20)
    assert edges == (10_000.0, 15_000.0, 30_000.0, 50_000.0)
    assert all(500 < size < 1_500 for size in sizes(income, edges))


def test_few_rows_make_few_bins_of_similar_size():
    values = np.arange(150) / 7
    assert all(30 <= size <= 70 for size in sizes(values, edges_of(values, min_size=20)))


def test_the_weight_decides_where_the_middle_is():
    values = np.arange(100.0)
    heavy_top = np.where(values < 80, 1.0, 4.0)
    assert bin_edges(values, heavy_top, n_bins=2, min_size=1) == (70.0,)
    assert bin_edges(values, np.ones(100), n_bins=2, min_size=1) == (50.0,)


def test_no_edge_is_the_value_of_a_few_people():
    # A spike forces a cut close to it; 0.01 would be round, but it is somebody's own value.
    values = [0.0] * 70 + [0.01] + list(np.linspace(3, 9, 60))
    assert edges_of(values, n_bins=2, min_size=2) == (0.005,)
    whole = [0] * 70 + [10] + list(range(300, 360))
    assert edges_of(whole, n_bins=2, min_size=2) == (5.0,)
    assert edges_of([0] * 60 + [10] * 60, n_bins=2, min_size=2) == (10.0,)


@given(st.lists(st.floats(0, 1e6), min_size=200, max_size=300, unique=True))
@settings(max_examples=5)
def test_edges_of_a_smooth_column_are_nobodys_value(values):
    spread = np.unique(np.array(values) + np.linspace(0, 1, len(values)) / 3)
    assert not set(edges_of(spread, min_size=20)) & set(spread[spread % 1 != 0])


def test_values_that_differ_by_rounding_are_one_value():
    assert edges_of([0.3, 0.1 + 0.2] * 30) == ()
    assert edges_of([0.3, 0.1 + 0.2, 0.7, 0.1 + 0.6] * 30) == (0.5,)


@every_line("values", [[], [5.0], [5.0] * 9, [1.0, 2.0, 3.0]])
def test_a_column_that_fills_one_bin_has_no_edges(values):
    assert edges_of(values, min_size=2) == ()


@given(value, value)
@quick
def test_the_roundest_number_lies_in_the_interval(a, b):
    assume(a != b)
    low, high = min(a, b), max(a, b)
    assert low < roundest_number(low, high) <= high


@every_line(
    "low, high, round_number",
    [
        (0, 1, 1),
        (-3, 0, 0),
        (-0.7, 12, 0),
        (18.3, 25.7, 20),
        (23, 29, 25),
        (26, 29, 28),
        (23_451.27, 23_752.9, 23_500),
        (0.013, 0.0171, 0.015),
        (-25.7, -18.3, -20),
        (1.0, math.nextafter(1.0, 2.0), math.nextafter(1.0, 2.0)),
    ],
)
def test_the_roundest_number_between_two(low, high, round_number):
    assert roundest_number(low, high) == round_number
