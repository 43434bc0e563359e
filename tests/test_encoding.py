"""Raw columns become terms the same way everywhere, sparsely, and never from chance."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from commod._encoding import CategoryTerms, Encoding, NumericTerms, learn_encoding
from commod._inputs import Column, read_columns
from commod.exceptions import InputError

NAN = math.nan
quick = settings(deadline=None, max_examples=60)
number = st.floats(-1e3, 1e3).map(lambda v: round(v, 3))


def learn(X, *, min_category_size=1, weight=None, locked=()):
    columns = read_columns(X)
    weight = np.ones(len(columns[0].values)) if weight is None else np.asarray(weight, float)
    return learn_encoding(columns, weight, min_category_size=min_category_size, locked=locked)


def dense(encoding, columns):
    """The same terms the long way: one float per row and term, shape (n, d)."""
    given_columns = {c.name: c.values for c in columns}
    blocks = []
    for spec in encoding.columns:
        values = given_columns[spec.name]
        if isinstance(spec, NumericTerms):
            blocks.append(np.where(np.isnan(values), spec.fill, values))
            if spec.has_missing_term:
                blocks.append(np.isnan(values).astype(float))
        else:
            for category in spec.categories:
                blocks.append(np.array([float(v == category) for v in values]))
    return np.column_stack(blocks)


@st.composite
def tables(draw):
    """Two columns of numbers and two of categories, with missing values and at least two rows."""
    row = st.tuples(
        st.one_of(st.none(), number),
        number,
        st.one_of(st.none(), st.sampled_from(["a", "b", "c"])),
        st.one_of(st.none(), st.booleans()),
    )
    rows = draw(st.lists(row, min_size=2, max_size=25))
    assume(len({r[1] for r in rows}) > 1)  # one column at least has terms
    return rows


def as_objects(rows):
    array = np.empty((len(rows), len(rows[0])), dtype=object)
    array[:] = rows
    return array


# ---------------------------------------------------------------------------------------------
# The same rows give the same terms


@given(tables())
@quick
def test_pandas_polars_and_numpy_versions_of_the_rows_give_identical_tables(rows):
    names = ["x0", "x1", "x2", "x3"]
    schema = dict(zip(names, [pl.Float64, pl.Float64, pl.String, pl.Boolean], strict=True))
    dtypes = dict(zip(names, ["Float64", "float", "category", "boolean"], strict=True))
    versions = [
        as_objects(rows),
        pd.DataFrame(as_objects(rows), columns=names),
        pd.DataFrame(as_objects(rows), columns=names).astype(dtypes),
        pl.DataFrame(rows, schema=schema, orient="row"),
        pl.DataFrame(rows, schema=schema | {"x2": pl.Enum(["c", "a", "b"])}, orient="row"),
    ]
    encodings = [learn(X) for X in versions]
    assert all(e == encodings[0] for e in encodings)
    expected = encodings[0].encode(read_columns(versions[0]))
    for X in versions[1:]:
        terms = encodings[0].encode(read_columns(X))
        for name in ("numeric", "numeric_terms", "codes", "code_terms", "n_terms"):
            assert np.array_equal(getattr(terms, name), getattr(expected, name)), name


@given(tables(), st.randoms(use_true_random=False))
@quick
def test_the_order_of_the_rows_does_not_matter_to_the_categories(rows, random):
    shuffled = random.sample(rows, len(rows))
    assert learn(as_objects(shuffled)).term_names == learn(as_objects(rows)).term_names


def test_terms_are_named_column_by_column_with_missing_last():
    X = pd.DataFrame({"sex": ["m", None, "f"], "age": [30, NAN, 50], "flag": [True, False, True]})
    encoding = learn(X)
    assert encoding.term_names == [
        "sex = f",
        "sex = m",
        "sex is missing",
        "age",
        "age is missing",
        "flag = False",
        "flag = True",
    ]
    assert encoding.term_columns == ["sex"] * 3 + ["age"] * 2 + ["flag"] * 2
    assert encoding.kinds == {"sex": "category", "age": "numeric", "flag": "category"}
    assert encoding.n_terms == 7


# ---------------------------------------------------------------------------------------------
# What gets a term


def points_of(encoding, X):
    """Points of each row when every term but the numbers themselves is worth one."""
    terms = encoding.encode(read_columns(X, encoding.kinds))
    points = np.ones(encoding.n_terms)
    points[terms.numeric_terms] = 0.0
    return terms.total(points, 0.0).tolist()


def test_categories_of_too_few_rows_have_no_term_and_no_points():
    X = pd.DataFrame({"town": ["big"] * 5 + ["mid"] * 3 + ["tiny"] * 2})
    encoding = learn(X, min_category_size=3)
    assert encoding.columns == (CategoryTerms("town", ("big", "mid")),)
    assert points_of(encoding, X) == [1.0] * 8 + [0.0] * 2


def test_unseen_categories_have_no_points():
    encoding = learn(pd.DataFrame({"town": ["a", "b"]}))
    assert points_of(encoding, pd.DataFrame({"town": ["a", "new", "b"]})) == [1.0, 0.0, 1.0]


def test_missing_is_a_category_of_its_own():
    X = pd.DataFrame({"town": ["a", None, "a", None]})
    encoding = learn(X, min_category_size=2)
    assert encoding.columns == (CategoryTerms("town", ("a", None)),)
    assert points_of(encoding, X) == [1.0] * 4


def test_missing_that_was_too_rare_while_fitting_has_no_points():
    X = pd.DataFrame({"town": ["a", "a", "b", "b", None]})
    assert points_of(learn(X, min_category_size=2), X) == [1.0, 1.0, 1.0, 1.0, 0.0]


def test_a_missing_number_counts_as_the_weighted_mean_and_has_points_of_its_own():
    X = np.array([[1.0], [3.0], [NAN]])
    encoding = learn(X, weight=[3, 1, 5])
    assert encoding.columns == (NumericTerms("x0", 1.5, has_missing_term=True),)
    terms = encoding.encode(read_columns(X))
    assert terms.total(np.array([2.0, 10.0]), 1.0).tolist() == [3.0, 7.0, 14.0]


def test_too_few_missing_numbers_have_no_term_and_still_a_value():
    X = np.array([[1.0], [3.0], [NAN]])
    encoding = learn(X, min_category_size=2)
    assert encoding.term_names == ["x0"]
    assert encoding.encode(read_columns(X)).numeric.tolist() == [[1.0], [3.0], [2.0]]


def test_constant_and_empty_columns_have_no_term():
    X = pd.DataFrame(
        {
            "same": [1, 1, 1],
            "same or missing": [1, NAN, 1],
            "same up to rounding": [0.3, 0.1 + 0.2, 0.3],
            "same text": ["a", "a", "a"],
            "all missing": [NAN, NAN, NAN],
            "no text": [None, None, None],
            "kept": [1, 2, 3],
        }
    )
    assert learn(X).term_names == ["kept"]


def test_locked_columns_have_no_term():
    X = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    assert learn(X, locked=["b"]).term_names == ["a"]


@pytest.mark.parametrize(
    ("X", "names"),
    [
        (pd.DataFrame({"a": [1, 1], "b": ["x", "x"]}), "a, b"),
        (pd.DataFrame({"locked": [1, 2]}), "none"),
    ],
)
def test_a_table_without_any_usable_column_is_refused(X, names):
    words = rf"no column that could have points \(columns to choose from: {names}\).*Pass columns"
    with pytest.raises(InputError, match=words):
        learn(X, locked=["locked"])


def test_rows_of_weight_zero_count_as_absent():
    X = pd.DataFrame(
        {
            "town": ["a", "a", "b", "b", "z", "z"],
            "age": [1.0, 2.0, 3.0, 4.0, NAN, NAN],
            "same": [5, 5, 5, 5, 6, 7],
        }
    )
    weight = [1, 2, 1, 2, 0, 0]
    assert learn(X, weight=weight) == learn(X[:4], weight=weight[:4])


def test_the_number_1_is_not_the_text_1():
    X = as_objects([[1], ["1"], ["1"], ["a"]])
    encoding = learn(X)
    assert encoding.columns == (CategoryTerms("x0", (1, "1", "a")),)
    assert encoding.encode(read_columns(X)).codes.ravel().tolist() == [0, 1, 1, 2]


# ---------------------------------------------------------------------------------------------
# Numbers: equal to the long way


weights = st.one_of(st.just(0.0), st.floats(0.01, 10))


@given(tables(), st.data())
@quick
def test_moments_equal_those_of_the_dense_matrix(rows, data):
    weight = np.array(data.draw(st.lists(weights, min_size=len(rows), max_size=len(rows))))
    assume(weight.sum() > 0)
    columns = read_columns(as_objects(rows))
    encoding = learn(as_objects(rows))
    mean, scale = encoding.encode(columns).moments(weight)
    matrix = dense(encoding, columns)
    expected = np.average(matrix, axis=0, weights=weight)
    spread = np.sqrt(np.average((matrix - expected) ** 2, axis=0, weights=weight))
    np.testing.assert_allclose(mean, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(scale, spread, rtol=1e-6, atol=1e-6)


@given(st.lists(st.floats(0.01, 10), min_size=2, max_size=40))
@quick
def test_a_category_every_weighted_row_has_no_spread(weight):
    encoding = Encoding((CategoryTerms("x0", ("a", "b")),))
    terms = encoding.encode(read_columns(as_objects([["a"]] * len(weight))))
    _, scale = terms.moments(np.array(weight))  # a sum of shares above 1 would warn and give NaN
    np.testing.assert_allclose(scale, 0.0, atol=1e-7)


@given(tables(), st.data())
@quick
def test_total_equals_the_dense_product(rows, data):
    columns = read_columns(as_objects(rows))
    encoding = learn(as_objects(rows))
    d = encoding.n_terms
    points = np.array(data.draw(st.lists(st.floats(-5, 5), min_size=d, max_size=d)))
    total = encoding.encode(columns).total(points, 0.25)
    np.testing.assert_allclose(total, 0.25 + dense(encoding, columns) @ points, atol=1e-8)


@given(tables(), st.data())
@quick
def test_the_total_of_a_row_does_not_depend_on_the_rows_beside_it(rows, data):
    columns = read_columns(as_objects(rows))
    encoding = learn(as_objects(rows))
    points = np.array(data.draw(st.lists(number, min_size=encoding.n_terms, max_size=30)))
    points = points[: encoding.n_terms] / 7
    i = data.draw(st.integers(0, len(rows) - 1))
    alone = [Column(c.name, c.kind, c.values[[i]]) for c in columns]
    together = encoding.encode(columns).total(points, 1.0)
    assert encoding.encode(alone).total(points, 1.0)[0] == together[i]


def test_five_thousand_categories_never_become_a_dense_matrix():
    town = np.arange(20_000) % 5_000  # dense, these would be 800 MB of floats
    X = pd.DataFrame({"town": [f"t{i}" for i in town], "age": town * 1.0})
    weight = np.ones(len(X))
    tracemalloc.start()
    try:
        columns = read_columns(X)
        encoding = learn_encoding(columns, weight, min_category_size=2)
        terms = encoding.encode(columns)
        terms.moments(weight)
        terms.total(np.ones(encoding.n_terms), 0.0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert encoding.n_terms == 5_001
    assert peak < 20e6


# ---------------------------------------------------------------------------------------------
# New rows that do not fit


def test_a_column_that_is_gone_is_named():
    encoding = learn(pd.DataFrame({"age": [1, 2], "town": ["a", "b"]}))
    words = r"Column 'town' was there.*missing now \(columns: age, sex\)\. Pass the same columns"
    with pytest.raises(InputError, match=words):
        encoding.encode(read_columns(pd.DataFrame({"age": [1, 2], "sex": ["m", "f"]})))


def test_no_columns_at_all_are_refused_by_name():
    encoding = learn(pd.DataFrame({"age": [1, 2]}))
    with pytest.raises(InputError, match="Column 'age' was there"):
        encoding.encode([])


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        ([1, 2], ["young", "old"], "held numbers .* holds categories or text now .*'young'"),
        ([1, 2], [True, False], "held numbers .* holds categories or text now .*True"),
        (["a", "b"], [NAN, 7.0], r"held categories or text .* holds numbers now .*7\.0"),
        ([True, False], [1, 0], "held categories or text .* holds numbers now"),
    ],
)
def test_a_column_that_changed_its_kind_is_refused_with_an_example(before, now, words):
    encoding = learn(pd.DataFrame({"age": before}))
    with pytest.raises(InputError, match=f"Column 'age' {words}.*Convert it to the type it had"):
        encoding.encode(read_columns(pd.DataFrame({"age": now})))


@pytest.mark.parametrize(
    "empty",
    [
        pd.DataFrame({"age": [None, None], "town": [NAN, NAN]}),
        pl.DataFrame({"age": [None, None], "town": [None, None]}),
        as_objects([[None, None], [None, None]]),
    ],
    ids=["pandas", "polars", "objects"],
)
def test_a_column_without_any_value_fits_either_kind(empty):
    fit = pd.DataFrame({"age": [20, 40, NAN], "town": ["a", "b", None]})
    if isinstance(empty, np.ndarray):
        fit.columns = ["x0", "x1"]
    encoding = learn(fit)
    terms = encoding.encode(read_columns(empty, encoding.kinds))
    assert terms.numeric.tolist() == [[30.0], [30.0]]
    assert terms.codes.tolist() == [[1, 4], [1, 4]]  # "age is missing" and "town is missing"


def test_extra_columns_and_another_order_change_nothing():
    X = pd.DataFrame({"age": [1.0, 2.0], "town": ["a", "b"]})
    encoding = learn(X)
    more = X.assign(sex="f")[["sex", "town", "age"]]
    points = np.array([1.0, 10.0, 100.0])
    expected = encoding.encode(read_columns(X)).total(points, 0.0)
    assert encoding.encode(read_columns(more)).total(points, 0.0).tolist() == expected.tolist()
