"""Concepts are one way of writing a ratio: the ratio itself must not change."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from commod._solvers.concepts import (
    NEGLIGIBLE_WEIGHT,
    Concepts,
    partition_by_column,
    tidy_concepts,
)

K, D = 3, 6
COLUMNS = ["a", "b", "b", "c", "d", "d"]
weight = st.floats(-3, 3).map(lambda v: round(v, 2))
weights = hnp.arrays(np.float64, (K, D), elements=weight)
outputs = hnp.arrays(np.float64, K, elements=weight)


def total(concepts):
    return concepts.contributions @ concepts.weights


@settings(deadline=None)
@given(weights, outputs)
def test_tidying_keeps_the_ratio_but_for_the_unseen_and_leaves_norm_one_or_none(W, v):
    tidy = tidy_concepts(W, v, 1.0)
    sizes = np.abs(v) * np.linalg.norm(W, axis=1)
    bound = (NEGLIGIBLE_WEIGHT * sizes + 1e-3).sum()
    np.testing.assert_allclose(total(tidy), v @ W, atol=bound + 1e-12)
    used = tidy.contributions != 0
    np.testing.assert_allclose(np.linalg.norm(tidy.weights[used], axis=1), 1)
    assert not tidy.weights[~used].any()
    assert (np.diff(np.abs(tidy.contributions)) <= 0).all()
    strongest = np.abs(tidy.weights).argmax(axis=1)
    assert (tidy.weights[np.arange(K), strongest] >= 0).all()


@settings(deadline=None)
@given(weights, outputs, st.floats(0.1, 10))
def test_the_scale_between_the_two_layers_does_not_matter(W, v, scale):
    one, other = tidy_concepts(W, v, 1.0), tidy_concepts(W * scale, v / scale, 1.0)
    np.testing.assert_allclose(np.abs(one.contributions), np.abs(other.contributions), atol=2e-3)


def contributions_of(W, rows):
    """What each used column adds to r on rows whose terms are all numbers."""
    w = total(W)
    used = [c for c in dict.fromkeys(COLUMNS) if any(w[i] for i in range(D) if COLUMNS[i] == c)]
    parts = [
        rows[:, [c == name for c in COLUMNS]] @ w[[c == name for c in COLUMNS]] for name in used
    ]
    return np.column_stack(parts) if parts else np.zeros((len(rows), 0))


ROWS = np.random.default_rng(0).normal(size=(50, D))


@settings(deadline=None)
@given(weights, outputs)
def test_a_partition_keeps_the_ratio_and_puts_each_column_into_one_concept(W, v):
    before = tidy_concepts(W, v, 0.5)
    after = partition_by_column(before, COLUMNS, contributions_of(before, ROWS), np.ones(50))
    np.testing.assert_allclose(total(after), total(before), atol=1e-12)
    for name in set(COLUMNS):
        terms = [i for i, c in enumerate(COLUMNS) if c == name]
        assert np.count_nonzero(after.weights[:, terms].any(axis=1)) <= 1
    assert after.intercept == 0.5


def test_columns_that_rise_and_fall_together_share_a_concept():
    rng = np.random.default_rng(1)
    base = rng.normal(size=(200, 2))
    added = np.column_stack([base[:, 0], base[:, 1], base[:, 0] + 0.1 * rng.normal(size=200)])
    one = Concepts(np.full((2, 3), 3**-0.5), np.array([1.0, 0.5]), 1.0)
    parts = partition_by_column(one, ["x", "y", "z"], added, np.ones(200))
    supports = {tuple(np.flatnonzero(row)) for row in parts.weights}
    assert supports == {(0, 2), (1,)}


def test_fewer_columns_than_concepts_leave_concepts_empty():
    one = Concepts(np.array([[1.0], [0.0], [0.0]]), np.array([0.7, 0.0, 0.0]), 1.0)
    parts = partition_by_column(one, ["x"], ROWS[:, :1], np.ones(50))
    assert parts.contributions.tolist() == pytest.approx([0.7, 0, 0])
