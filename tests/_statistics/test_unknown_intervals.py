"""What a metric could be, whatever the groups of unknown people are."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commod._statistics.promises import calibrated_interval, worst_interval
from commod.metrics._constraint import get_constraint

CONSTRAINTS = ("demographic_parity", "true_positive_rate_parity", "equalized_odds")


def all_values(constraint, sizes, positives, unknown, unknown_positives):
    """Return the metric for every assignment of unknown people to groups."""
    n_groups = len(sizes[0])
    by_row = []
    for row in range(len(sizes)):
        options = []
        n_pos = unknown_positives[row]
        for pos in _splits(n_pos, n_groups):
            for neg in _splits(unknown[row] - n_pos, n_groups):
                n = [s + a + b for s, a, b in zip(sizes[row], pos, neg, strict=True)]
                k = [p + a for p, a in zip(positives[row], pos, strict=True)]
                options.append((n, k))
        by_row.append(options)
    for chosen in itertools.product(*by_row):
        value = constraint.value_from_counts([c[0] for c in chosen], [c[1] for c in chosen])
        if value is not None:
            yield float(value)


def _splits(n, n_groups):
    return [s for s in itertools.product(range(n + 1), repeat=n_groups) if sum(s) == n]


@st.composite
def tables(draw):
    constraint = get_constraint(draw(st.sampled_from(CONSTRAINTS)))
    n_rows = len(constraint.rate_rows)
    n_groups = draw(st.integers(2, 3 if n_rows == 1 else 2))
    sizes = [[draw(st.integers(1, 6)) for _ in range(n_groups)] for _ in range(n_rows)]
    positives = [[draw(st.integers(0, n)) for n in row] for row in sizes]
    unknown = [draw(st.integers(0, 5 if n_rows == 1 else 3)) for _ in range(n_rows)]
    unknown_positives = [draw(st.integers(0, n)) for n in unknown]
    return constraint, sizes, positives, unknown, unknown_positives


@given(tables())
def test_the_ends_are_those_of_all_assignments(table):
    constraint, *counts = table
    values = list(all_values(constraint, *counts))
    low, high, is_exact = worst_interval(constraint, *counts)
    if not values:
        assert np.isnan(low)
        return
    assert is_exact == (len(counts[0][0]) == 2)
    least, most = min(values), max(values)
    if is_exact:
        assert (low, high) == pytest.approx((least, most))
    elif constraint.is_ratio:  # the least fair end is exact for any number of groups
        assert low == pytest.approx(least)
        assert high >= most - 1e-12
    else:
        assert high == pytest.approx(most)
        assert low <= least + 1e-12


def test_a_group_without_known_people_may_be_anything():
    interval = worst_interval("demographic_parity", [[0, 5]], [[0, 3]], [10], [4])
    assert interval == (0.0, 1.0, False)


def test_people_of_groups_that_are_not_compared_make_it_a_bound():
    counts = [[10, 10]], [[5, 4]], [2], [1]
    exact = worst_interval("demographic_parity", *counts)
    bound = worst_interval("demographic_parity", *counts, may_be_elsewhere=True)
    assert exact.is_exact
    assert not bound.is_exact
    assert bound.low == exact.low
    assert bound.high >= exact.high


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_the_calibrated_interval_is_that_of_drawn_groups(constraint):
    random = np.random.default_rng(0)
    n = 400
    probabilities = random.dirichlet([1.0, 2.0], n)
    decisions = random.random(n) < 0.3 + 0.4 * probabilities[:, 0]
    label = random.random(n) < 0.5
    n_rows = len(get_constraint(constraint).rate_rows)
    row = np.zeros(n, int) if n_rows == 1 else np.where(label, 0, 1)
    interval = calibrated_interval(constraint, row, decisions, probabilities, np.ones(n))
    values = []
    for _ in range(3000):
        group = (random.random(n) > probabilities[:, 0]).astype(int)
        counts = [
            [[np.sum((row == i) & (group == g) & d) for g in (0, 1)] for i in range(n_rows)]
            for d in (np.ones(n, bool), decisions)
        ]
        values.append(float(get_constraint(constraint).value_from_counts(*counts)))
    np.testing.assert_allclose(interval, np.quantile(values, [0.025, 0.975]), atol=0.015)


def test_certain_groups_leave_nothing_open():
    probabilities = np.eye(2)[[0, 0, 0, 1, 1]]
    decisions = np.array([True, False, False, True, True])
    at = np.zeros(5, int)
    interval = calibrated_interval("demographic_parity", at, decisions, probabilities, np.ones(5))
    assert interval == pytest.approx((1 / 3, 1 / 3))
