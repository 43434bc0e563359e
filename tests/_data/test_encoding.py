"""Raw columns become terms the same way everywhere, sparsely, and never from chance."""

from __future__ import annotations

import math
import re
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from commod._data.columns import Column, read_columns
from commod._data.encoding import BinTerms, CategoryTerms, Encoding, NumericTerms, learn_encoding
from commod.exceptions import InputError
from tables_of_cases import every_line

NAN = math.nan
quick = settings(max_examples=9)
number = st.floats(-1e3, 1e3).map(lambda v: round(v, 3))


def learn(X, *, min_category_size=1, weight=None, **how):
    columns = read_columns(X)
    weight = np.ones(len(columns[0])) if weight is None else np.asarray(weight, float)
    return learn_encoding(columns, weight, min_category_size=min_category_size, **how)


def dense(encoding, columns):
    """The same terms the long way: one float per row and term, shape (n, d)."""
    given_columns = {c.name: c for c in columns}
    blocks = []
    for spec in encoding.columns:
        column = given_columns[spec.name]
        values = column.values
        if isinstance(spec, NumericTerms):
            blocks.append(np.where(np.isnan(values), spec.fill, values))
            if spec.has_missing_term:
                blocks.append(np.isnan(values).astype(float))
        elif isinstance(spec, BinTerms):
            blocks += [[told(name, spec.name, v) for v in values] for name in spec.term_names]
        else:
            for category in spec.categories:
                scalars = [(*column.categories, None)[code] for code in values]
                blocks.append(np.array([float(v == category) for v in scalars]))
    return np.column_stack(blocks)


def told(term_name, column, value):
    """Whether a value is what the name of a bin says, read as a person would read it."""
    if term_name == f"{column} is missing":
        return math.isnan(value)
    low, high = re.fullmatch(
        rf"(?:(\S+) ≤ )?{column}(?: < (\S+))?", re.sub(r"^(.*) ≥ (.*)$", r"\2 ≤ \1", term_name)
    ).groups()
    above = low is None or value >= float(low)
    return above and (high is None or value < float(high)) and not math.isnan(value)


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


def test_a_centre_is_the_mean_without_the_digits_that_are_small_beside_the_spread():
    encoding = learn(np.array([[2001.0], [2004.0], [2008.0]]), centred=True)
    assert encoding.columns == (NumericTerms("x0", 2004.3, has_missing_term=False, centre=2004.3),)


def test_a_missing_number_counts_as_the_weighted_mean_and_has_points_of_its_own():
    X = np.array([[1.0], [NAN], [3.0]])
    encoding = learn(X, weight=[3, 5, 1])
    assert encoding.columns == (NumericTerms("x0", 1.5, has_missing_term=True),)
    terms = encoding.encode(read_columns(X))
    assert terms.total(np.array([2.0, 10.0]), 1.0).tolist() == [3.0, 14.0, 7.0]


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


@every_line(
    "X, names",
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
# Numbers in bins


def in_bins(values, **how):
    """The terms of one numeric column in bins, and the column itself."""
    column = Column("v", "numeric", np.asarray(values, dtype=float))
    weight = np.ones(len(column.values))
    how = {"min_category_size": 1, "numeric": "bins", **how}
    encoding = learn_encoding([column], weight, **how)
    return encoding, column


edge_lists = st.lists(
    st.one_of(number, st.integers(-5, 5).map(float), st.floats(-1e300, 1e300)),
    min_size=1,
    max_size=8,
    unique=True,
).map(sorted)


@given(edge_lists, st.booleans(), st.data())
@quick
def test_every_number_is_in_exactly_one_bin_and_its_name_tells_the_truth(edges, missing, data):
    near = [e for edge in edges for e in (edge, math.nextafter(edge, -math.inf))]
    value = st.one_of(st.sampled_from(near), st.floats(allow_nan=False, allow_infinity=False))
    values = np.array(data.draw(st.lists(value, min_size=1, max_size=20)))
    encoding = Encoding((BinTerms("v", tuple(edges), has_missing_term=missing),))
    names = encoding.term_names
    assert len(set(names)) == len(names) == encoding.n_terms
    codes = encoding.encode([Column("v", "numeric", values)]).codes[:, 0]
    for value, code in zip(values.tolist(), codes.tolist(), strict=True):
        assert [told(name, "v", value) for name in names] == [j == code for j in range(len(names))]


@given(tables(), st.integers(2, 5), st.integers(1, 4))
@quick
def test_bins_equal_a_reading_of_their_names(rows, n_bins, min_size):
    columns = read_columns(as_objects(rows))
    try:
        encoding = learn(
            as_objects(rows), numeric="bins", n_bins=n_bins, min_category_size=min_size
        )
    except InputError:
        return assume(False)
    terms = encoding.encode(columns)
    points = np.arange(1.0, encoding.n_terms + 1)
    assert terms.numeric.shape == (len(rows), 0)
    assert terms.codes.shape == (len(rows), len(encoding.columns))
    expected = dense(encoding, columns)
    np.testing.assert_allclose(terms.total(points, 0.5), 0.5 + expected @ points)
    np.testing.assert_allclose(terms.moments(np.ones(len(rows)))[0], expected.mean(axis=0))


@given(tables(), st.data())
@quick
def test_rows_without_weight_are_absent_from_the_bins(rows, data):
    there = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    kept = [row for row, is_there in zip(rows, there, strict=True) if is_there]
    assume(len({row[1] for row in kept}) > 1)
    X, weight = as_objects(rows), np.array(there, dtype=float)
    columns = [c for c in read_columns(X) if c.name == "x1"]
    alone = [Column("x1", "numeric", columns[0].values[weight > 0])]
    bins = {"min_category_size": 1, "numeric": "bins", "n_bins": 4}
    assert learn_encoding(columns, weight, **bins) == learn_encoding(
        alone, np.ones(len(kept)), **bins
    )


@given(tables(), st.randoms(use_true_random=False))
@quick
def test_the_order_of_the_rows_does_not_matter_to_the_bins(rows, random):
    shuffled = random.sample(rows, len(rows))
    bins = {"numeric": "bins", "n_bins": 4, "min_category_size": 1}
    assert learn(as_objects(shuffled), **bins) == learn(as_objects(rows), **bins)


def test_numbers_in_bins_beside_categories():
    X = pd.DataFrame({"age": [20, 20, 31, 31, NAN, NAN], "sex": list("mfmfmf")})
    encoding = learn(X, numeric="bins", min_category_size=2)
    assert encoding.columns == (
        BinTerms("age", (30.0,), has_missing_term=True),
        CategoryTerms("sex", ("f", "m")),
    )
    assert encoding.term_names[:3] == ["age < 30", "age ≥ 30", "age is missing"]
    assert encoding.kinds == {"age": "numeric", "sex": "category"}
    terms = encoding.encode(read_columns(X))
    assert terms.codes.tolist() == [[0, 4], [0, 3], [1, 4], [1, 3], [2, 4], [2, 3]]
    assert terms.code_terms.tolist() == [0, 3]


def test_too_few_missing_numbers_are_in_no_bin_and_have_no_points():
    encoding, column = in_bins([1, 1, 2, 2, NAN], min_category_size=2)
    assert encoding.term_names == ["v < 2", "v ≥ 2"]
    assert encoding.encode([column]).total(np.ones(2), 0.0).tolist() == [1, 1, 1, 1, 0]


@every_line(
    "edge, text",
    [
        (25.0, "25"),
        (0.1, "0.1"),
        (-2.5, "-2.5"),
        (1234567.0, "1234567"),
        (1e20, "1e+20"),
        (0.1 + 0.2, "0.30000000000000004"),
    ],
)
def test_an_edge_is_written_in_few_digits_that_mean_exactly_it(edge, text):
    assert BinTerms("v", (edge,), has_missing_term=False).term_names == [
        f"v < {text}",
        f"v ≥ {text}",
    ]


@every_line("values", [[5, 5, 5, 5], [NAN] * 4, [5, 5, NAN, NAN], [1, 1, 1, 2]])
def test_a_column_that_fills_one_bin_has_no_term(values):
    X = pd.DataFrame({"one": values, "two": [1, 1, 2, 2]})
    assert learn(X, numeric="bins", min_category_size=2).kinds == {"two": "numeric"}


def test_the_number_of_bins_can_be_chosen():
    values = np.arange(1000)
    assert in_bins(values, n_bins=4)[0].n_terms == 4
    assert in_bins(values, n_bins=2)[0].columns[0].edges == (500.0,)


def test_an_unknown_way_of_reading_numbers_is_refused():
    with pytest.raises(InputError, match="numeric='splines' is not known; choose 'unit' or 'bins'"):
        in_bins([1, 2], numeric="splines")


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
    alone = [c.take([i]) for c in columns]
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


@every_line(
    "before, now, words",
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


@every_line(
    "empty",
    [
        pd.DataFrame({"age": [None, None], "town": [NAN, NAN]}),
        pl.DataFrame({"age": [None, None], "town": [None, None]}),
        as_objects([[None, None], [None, None]]),
    ],
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
