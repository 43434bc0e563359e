"""Terms behind lookups against the same terms written out."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commod._data.columns import read_columns
from commod._data.encoding import learn_encoding
from commod.rivals import _group_model as design_module
from commod.rivals._group_model import Design, row_blocks

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
    return full / np.where(scale > 0, scale, 1.0)


@quick
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(40, 900),
    n_numbers=st.integers(0, 3),
    sizes=st.lists(st.integers(2, 9), min_size=1, max_size=6),
    absent=st.booleans(),
)
def test_lookups_say_what_columns_of_zeros_and_ones_say(seed, n, n_numbers, sizes, absent):
    terms = encoded(drawn(seed, n, n_numbers, sizes, absent=absent))
    mean, scale = terms.moments(np.ones(n))
    design = Design.of(terms, mean, scale)
    dense = written_out(terms, mean, scale)[:, design.terms]
    rng = np.random.default_rng(seed)
    w, g = rng.normal(size=design.width), rng.normal(size=n)
    np.testing.assert_allclose(design.times(w), dense @ w, atol=1e-9)
    np.testing.assert_allclose(design.gradient(g), dense.T @ g, atol=1e-9)
    p = design.numeric.shape[1]
    np.testing.assert_allclose(design.present().toarray(), dense[:, p:], atol=1e-12)


def test_small_columns_share_a_lookup_and_large_ones_keep_their_own():
    terms = encoded(drawn(0, 4000, 1, [2, 3, 4, 5, 300], absent=False))
    design = Design.of(terms, *terms.moments(np.ones(4000)))
    assert [lookup.n_entries for lookup in design.lookups] == [2 * 3 * 4 * 5, 300 + 1]
    slots = np.sort(np.concatenate([lookup.slots for lookup in design.lookups]))
    assert np.array_equal(slots, np.arange(len(design.inverse)))


def test_many_rows_in_few_bytes_and_in_blocks_are_the_same_rows(monkeypatch):
    terms = encoded(drawn(1, 500, 2, [3, 4, 60], absent=True))
    moments = terms.moments(np.ones(500))
    few = Design.of(terms, *moments)
    monkeypatch.setattr(design_module, "MAX_ROWS_WITH_WIDE_CODES", 100)
    monkeypatch.setattr(design_module, "BLOCK_SIZE", 64)
    many = Design.of(terms, *moments)
    assert all(lookup.entry.dtype.itemsize == 1 for lookup in many.lookups)
    w, g = np.linspace(-1, 1, few.width), np.linspace(0, 1, 500)
    np.testing.assert_allclose(many.times(w), few.times(w), atol=1e-12)
    np.testing.assert_allclose(many.gradient(g), few.gradient(g), atol=1e-12)


@pytest.mark.parametrize(
    ("sizes", "bytes_of_code"),
    [([7, 8, 9, 300], [2, 2]), ([255], [1]), ([256], [2])],
)
def test_many_categories_take_two_bytes_and_none_is_lost(sizes, bytes_of_code, monkeypatch):
    monkeypatch.setattr(design_module, "MAX_ROWS_WITH_WIDE_CODES", 100)
    n = 10_000
    terms = encoded(drawn(2, n, 0, sizes, absent=True))
    mean, scale = terms.moments(np.ones(n))
    design = Design.of(terms, mean, scale)
    dense = written_out(terms, mean, scale)[:, design.terms]
    assert [lookup.entry.dtype.itemsize for lookup in design.lookups] == bytes_of_code
    rng = np.random.default_rng(3)
    w, g = rng.normal(size=design.width), rng.normal(size=n)
    np.testing.assert_allclose(design.times(w), dense @ w, atol=1e-9)
    np.testing.assert_allclose(design.gradient(g), dense.T @ g, atol=1e-9)
    np.testing.assert_allclose(design.present().toarray(), dense, atol=1e-12)


@pytest.mark.parametrize("n", [0, 1, design_module.BLOCK_SIZE, design_module.BLOCK_SIZE + 1])
def test_blocks_cover_every_row_once(n):
    rows = np.concatenate([np.arange(n)[rows] for rows in row_blocks(n)] or [np.zeros(0)])
    assert np.array_equal(rows, np.arange(n))


# -- one table with everything in it ---------------------------------------------------------------


@pytest.fixture(scope="module")
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


def test_the_sparse_design_is_the_dense_one(table):
    terms, weight = table
    mean, scale = terms.moments(weight)
    design = Design.of(terms, mean, scale)
    dense = written_out(terms, mean, scale)[:, design.terms]
    rng = np.random.default_rng(1)
    w, g = rng.normal(size=design.width), rng.normal(size=len(design))
    np.testing.assert_allclose(design.times(w), dense @ w, atol=1e-12)
    np.testing.assert_allclose(design.gradient(g), dense.T @ g, atol=1e-12)


def test_terms_without_spread_are_left_out(table):
    terms, weight = table
    mean, scale = terms.moments(weight)
    scale = scale.copy()
    scale[[0, terms.n_terms - 1]] = 0.0
    design = Design.of(terms, mean, scale)
    assert sorted(design.terms) == list(range(1, terms.n_terms - 1))
