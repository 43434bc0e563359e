"""Fewest expected changes: the linear programme says the same, and whole people never need less."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from commod.bounds._limits import fewest_expected_changes
from commod.metrics._constraint import get_constraint
from fewest_changes import fewest_changes

LINES = {
    "demographic_parity": 1,
    "equalized_odds": 2,
    "true_positive_rate_parity": 1,
    "false_positive_rate_parity": 1,
}


@st.composite
def tables(draw):
    constraints = draw(st.sampled_from(list(LINES)))
    shape = LINES[constraints], draw(st.integers(2, 4))
    sizes = np.array(draw(st.lists(st.integers(1, 40), min_size=8, max_size=8)))[: np.prod(shape)]
    sizes = sizes.reshape(shape)
    shares = draw(st.lists(st.floats(0, 1), min_size=sizes.size, max_size=sizes.size))
    positives = np.floor(sizes * np.array(shares).reshape(shape)).astype(int)
    target = draw(st.floats(0.05, 1.0))
    return constraints, sizes, positives, target


def by_linear_program(constraints, sizes, positives, target):
    """Raised and lowered people per cell, and each row's highest and lowest rate."""
    k, (n_rows, n_groups) = sizes.size, sizes.shape
    rows, limits = [], []
    for cell in range(k):
        row = cell // n_groups
        move = np.zeros(2 * k + 2 * n_rows)
        move[cell], move[k + cell] = 1 / sizes.flat[cell], -1 / sizes.flat[cell]
        rate = positives.flat[cell] / sizes.flat[cell]
        high, low = move.copy(), -move
        high[2 * k + row], low[2 * k + n_rows + row] = -1, 1
        rows += [high, low]
        limits += [-rate, rate]
    fair = np.zeros(2 * k + 2 * n_rows)
    if constraints == "demographic_parity":
        fair[-2:] = target, -1
        rows, limits = [*rows, fair], [*limits, 0]
    else:
        fair[2 * k :] = [1] * n_rows + [-1] * n_rows
        rows, limits = [*rows, fair], [*limits, target]
    most = [*(sizes - positives).ravel(), *positives.ravel(), *[1] * (2 * n_rows)]
    cost = np.array([1.0] * (2 * k) + [0.0] * (2 * n_rows))
    return linprog(cost, rows, limits, bounds=[(0, float(m)) for m in most]).fun


def expected(name, sizes, positives, target):
    return fewest_expected_changes(get_constraint(name), sizes, positives, target)


@given(tables())
@settings(max_examples=40, deadline=None)
def test_it_is_the_value_of_the_linear_programme(table):
    assert expected(*table) == pytest.approx(by_linear_program(*table), abs=1e-6)


@given(tables())
@settings(max_examples=40, deadline=None)
def test_whole_people_never_need_fewer(table):
    whole = fewest_changes(*table)
    if whole is not None:
        assert np.abs(whole - table[2]).sum() >= expected(*table) - 1e-9


def test_hand_examples():
    # 20 of 100 against 25 of 50: half a person more would do what takes 13 people.
    counts = np.array([[100, 50]]), np.array([[20, 25]])
    assert expected("demographic_parity", *counts, Fraction(4, 5)) == pytest.approx(12.5)
