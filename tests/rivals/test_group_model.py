"""The matrix of terms and its products against the same terms written out."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commod._data.columns import read_columns
from commod._data.encoding import learn_encoding
from commod.rivals._group_model import (
    curvature_root,
    mean_products,
    moments_of_numbers,
    solve_root,
    term_matrix,
    times_root,
)

quick = settings(deadline=None, max_examples=25)


def drawn(seed, n, n_numbers, sizes, *, absent):
    """Columns of categories of some sizes beside numbers; `absent` makes some rare or missing."""
    rng = np.random.default_rng(seed)
    columns = {f"number {j}": rng.normal(j, 1 + j, n) for j in range(n_numbers)}
    for j, size in enumerate(sizes):
        values = [f"level {k}" for k in rng.integers(size, size=n)]
        if absent:
            values[: size % 3] = [f"rare {i}" for i in range(size % 3)]
        columns[f"category {j}"] = values
    return pd.DataFrame(columns)


def encoded(X):
    columns = read_columns(X)
    weight = np.ones(len(X))
    return learn_encoding(columns, weight, min_category_size=2).encode(columns)


def written_out(terms, mean, scale):
    full = np.zeros((len(terms), terms.n_terms + 1))
    for codes in terms.codes.T:
        full[np.arange(len(terms)), codes] = 1.0
    full = full[:, :-1]
    full[:, terms.numeric_terms] = terms.numeric - mean[terms.numeric_terms]
    return full / scale


@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(40, 900),
    n_numbers=st.integers(0, 3),
    sizes=st.lists(st.integers(2, 9), min_size=1, max_size=6),
    absent=st.booleans(),
)
def test_the_sparse_matrix_says_what_columns_of_zeros_and_ones_say(
    seed, n, n_numbers, sizes, absent
):
    terms = encoded(drawn(seed, n, n_numbers, sizes, absent=absent))
    mean, scale = moments_of_numbers(terms, np.ones(n))
    matrix = term_matrix(terms, mean, scale).toarray()
    np.testing.assert_allclose(matrix, written_out(terms, mean, scale), atol=1e-12)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    n = 200
    X = pd.DataFrame(
        {
            "number": rng.normal(50, 7, n),
            "gaps": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
            "text": rng.choice(["a", "b", "c", None], n),
            "flag": rng.random(n) < 0.4,
        }
    )
    columns = read_columns(X)
    weight = rng.uniform(0.5, 2, n)
    encoding = learn_encoding(columns, weight, min_category_size=3)
    return encoding.encode(columns), weight


def test_the_matrix_and_its_products_are_the_dense_ones(table):
    terms, weight = table
    mean, scale = moments_of_numbers(terms, weight)
    matrix, dense = term_matrix(terms, mean, scale), written_out(terms, mean, scale)
    np.testing.assert_allclose(matrix.toarray(), dense, atol=1e-12)
    share = weight / weight.sum()
    with_ones = np.column_stack([dense, np.ones(len(dense))])
    products = with_ones.T @ (share[:, None] * with_ones)
    np.testing.assert_allclose(mean_products(matrix, share), products, atol=1e-12)
    np.testing.assert_allclose(mean_products(dense, share), products, atol=1e-12)


def test_numbers_are_standardised_and_terms_that_do_not_vary_count_as_0(table):
    terms, weight = table
    terms.numeric[:, np.flatnonzero(terms.numeric_terms == 0)] = 0.0
    mean, scale = moments_of_numbers(terms, weight)
    matrix = term_matrix(terms, mean, scale).toarray()
    assert not matrix[:, 0].any()
    numbers = matrix[:, terms.numeric_terms[1:]]
    np.testing.assert_allclose(np.average(numbers, axis=0, weights=weight), 0, atol=1e-12)
    np.testing.assert_allclose(np.average(numbers**2, axis=0, weights=weight), 1, atol=1e-12)


@pytest.mark.parametrize("most", [2000, 3])
def test_a_root_solves_what_it_multiplies(table, most, monkeypatch):
    monkeypatch.setattr("commod.rivals._group_model.MANY_COLUMNS", most)
    terms, weight = table
    matrix = term_matrix(terms, *moments_of_numbers(terms, weight))
    share, penalty = weight / weight.sum(), np.ones(matrix.shape[1] + 1)
    root = curvature_root(matrix, share, penalty, 0.25)
    square = root.T @ root if root.ndim > 1 else np.diag(root**2)
    curvature = 0.25 * mean_products(matrix, share) + np.diag(penalty)
    np.testing.assert_allclose(np.diag(square), np.diag(curvature), rtol=1e-12)
    for v in (np.linspace(-1, 1, len(penalty)), np.eye(len(penalty))[:, :2]):
        np.testing.assert_allclose(solve_root(root, times_root(root, v)), v, atol=1e-12)
