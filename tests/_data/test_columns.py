"""Tables of every kind become columns; what cannot be read is refused."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from commod._data.columns import read_columns
from commod.exceptions import InputError, InputTypeError
from tables_of_cases import every_line

NAN = math.nan


def objects(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def table(*columns):
    return np.column_stack([objects(*c) for c in columns])


def spelled(X, kinds=None):
    """Columns as (name, kind, values) with None for every missing value."""
    return [
        (
            c.name,
            c.kind,
            [
                None if gone else c.categories[v] if c.kind == "category" else v
                for v, gone in zip(c.values, c.is_missing(), strict=True)
            ],
        )
        for c in read_columns(X, kinds)
    ]


def only(X):
    [(_, kind, values)] = spelled(X)
    return kind, values


# ---------------------------------------------------------------------------------------------
# X: arrays and lists


@every_line("dtype", ["float64", "float32", "int8", "uint64", "int64"])
def test_arrays_of_numbers_are_numeric_columns_named_by_position(dtype):
    X = np.array([[1, 2], [3, 4]], dtype=dtype)
    assert spelled(X) == [("x0", "numeric", [1.0, 3.0]), ("x1", "numeric", [2.0, 4.0])]
    assert all(c.values.dtype == np.float64 for c in read_columns(X))


def test_float32_numbers_keep_their_exact_value():
    [column] = read_columns(np.array([[0.1]], dtype=np.float32))
    assert float(column.values[0]) == float(np.float32(0.1))


def test_arrays_of_text_are_categories():
    assert only(np.array([["a"], ["b"]])) == ("category", ["a", "b"])


def test_arrays_of_booleans_are_categories_of_python_booleans():
    kind, values = only(np.array([[True], [False]]))
    assert (kind, values) == ("category", [True, False])
    assert all(type(v) is bool for v in values)


def test_object_arrays_are_read_column_by_column():
    X = table([1, 2.5], ["a", None], [True, False])
    assert spelled(X) == [
        ("x0", "numeric", [1.0, 2.5]),
        ("x1", "category", ["a", None]),
        ("x2", "category", [True, False]),
    ]


def test_numpy_scalars_inside_objects_become_plain_python():
    kind, values = only(table([np.str_("a"), np.int64(3), np.bool_(True)]))
    assert kind == "category"
    assert [type(v) for v in values] == [str, int, bool]


def test_lists_of_numbers_are_a_table():
    assert spelled([[1, 2.5], [3, 4.5]])[1] == ("x1", "numeric", [2.5, 4.5])


def test_lists_keep_numbers_numbers_beside_text():
    # NumPy alone would turn the first column into text.
    assert spelled([[1.5, "a"], [2.5, "b"]]) == [
        ("x0", "numeric", [1.5, 2.5]),
        ("x1", "category", ["a", "b"]),
    ]


def test_lists_keep_missing_values_missing_beside_text():
    # NumPy alone would write the missing value as the text "nan".
    assert only([["a"], [NAN]]) == ("category", ["a", None])


def test_decimals_are_numbers():
    assert only(table([Decimal("1.5"), Decimal("NaN")])) == ("numeric", [1.5, None])


# ---------------------------------------------------------------------------------------------
# X: frames


def test_pandas_columns_by_dtype():
    X = pd.DataFrame(
        {
            "object": objects("a", None, "b"),
            "string": pd.array(["a", None, "b"], dtype="string"),
            "category": pd.Categorical(["a", None, "b"]),
            "coded": pd.Categorical([3, None, 1]),
            "bool": [True, False, True],
            "boolean": pd.array([True, pd.NA, False], dtype="boolean"),
            "int": [1, 2, 3],
            "Int64": pd.array([1, pd.NA, 3], dtype="Int64"),
            "float": [1.5, NAN, 2.5],
            "arrow": pd.array([1, None, 3], dtype="int64[pyarrow]"),
            "arrow text": pd.array(["a", None, "b"], dtype="string[pyarrow]"),
        }
    )
    text = ["a", None, "b"]
    assert spelled(X) == [
        ("object", "category", text),
        ("string", "category", text),
        ("category", "category", text),
        ("coded", "category", [3, None, 1]),
        ("bool", "category", [True, False, True]),
        ("boolean", "category", [True, None, False]),
        ("int", "numeric", [1.0, 2.0, 3.0]),
        ("Int64", "numeric", [1.0, None, 3.0]),
        ("float", "numeric", [1.5, None, 2.5]),
        ("arrow", "numeric", [1.0, None, 3.0]),
        ("arrow text", "category", text),
    ]


def test_polars_columns_by_dtype():
    X = pl.DataFrame(
        {
            "String": ["a", None],
            "Categorical": pl.Series(["a", None], dtype=pl.Categorical),
            "Enum": pl.Series(["a", None], dtype=pl.Enum(["b", "a"])),
            "Boolean": [True, None],
            "Int": [7, None],
            "Float": [1.5, NAN],
            "Decimal": pl.Series([Decimal("1.5"), None]),
            "Null": [None, None],
        }
    )
    assert spelled(X) == [
        ("String", "category", ["a", None]),
        ("Categorical", "category", ["a", None]),
        ("Enum", "category", ["a", None]),
        ("Boolean", "category", [True, None]),
        ("Int", "numeric", [7.0, None]),
        ("Float", "numeric", [1.5, None]),
        ("Decimal", "numeric", [1.5, None]),
        ("Null", "category", [None, None]),
    ]


def test_pyarrow_columns_by_type():
    X = pa.table(
        {
            "string": ["a", None],
            "dictionary": pa.array(["a", None]).dictionary_encode(),
            "bool": [True, None],
            "int": [7, None],
            "double": [1.5, NAN],
            "null": pa.nulls(2),
        }
    )
    assert [kind for _, kind, _ in spelled(X)] == [
        *["category"] * 3,
        *["numeric"] * 2,
        "category",
    ]
    assert [values for _, _, values in spelled(X)] == [
        ["a", None],
        ["a", None],
        [True, None],
        [7.0, None],
        [1.5, None],
        [None, None],
    ]


@every_line("missing", [None, NAN, np.float64("nan"), pd.NA, pd.NaT])
@every_line("present", ["a", 2.5, True])
def test_every_way_of_saying_missing_reads_as_missing(missing, present):
    X = pd.DataFrame({"a": objects(present, missing)})
    assert only(X)[1] == [present, None]
    assert only(X.to_numpy())[1] == [present, None]


def test_numpy_not_a_time_reads_as_missing():
    assert only(table(["a", np.datetime64("NaT", "ns")]))[1] == ["a", None]


@every_line(
    "column",
    [
        objects(None, None),
        pd.Series([pd.NaT, pd.NaT], dtype=object),
        [NAN, NAN],
        pd.array([None, None], dtype="Int64"),
        pd.array([None, None], dtype="string"),
        pd.Categorical([None, None]),
    ],
)
def test_a_column_without_any_value_is_read(column):
    assert only(pd.DataFrame({"a": column}))[1] == [None, None]


def test_frames_with_numbers_as_column_names_are_read_by_name():
    X = pd.DataFrame({0: [1, 2], 1: ["a", "b"]})[[1, 0]]
    assert spelled(X) == [("1", "category", ["a", "b"]), ("0", "numeric", [1.0, 2.0])]


def test_frames_with_several_levels_of_names_are_read():
    X = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")]))
    assert [name for name, _, _ in spelled(X)] == ["('a', 'b')", "('a', 'c')"]


def test_filtered_frames_keep_the_order_of_their_rows():
    X = pd.DataFrame({"a": [1, 2, 3]}).iloc[[2, 0]]
    assert only(X) == ("numeric", [3.0, 1.0])


def test_a_known_kind_keeps_the_numbers_of_a_mixed_column_categories():
    # A column that mixed numbers and text when it was first read; these rows have only numbers.
    assert spelled(table([1, 2]), {"x0": "category"}) == [("x0", "category", [1, 2])]


def test_a_known_kind_does_not_turn_text_into_numbers():
    assert spelled(table(["a", 2]), {"x0": "numeric"}) == [("x0", "category", ["a", 2])]


WHATEVER = {
    "pandas": pd.DataFrame({"x0": [1.0, 2.0], "x1": [np.inf, 1.0], "x2": [[1], [2]]}),
    "polars": pl.DataFrame({"x0": [1.0, 2.0], "x1": [np.inf, 1.0], "x2": [[1], [2]]}),
    "numbers": np.array([[1.0, np.inf, np.inf], [2.0, 1.0, 1.0]]),
    "objects": np.array([[1.0, np.inf, datetime.date(2020, 1, 1)], [2.0, "a", [2]]], dtype=object),
    "lists": [[1.0, np.inf, datetime.date(2020, 1, 1)], [2.0, 1.0, None]],
}


@every_line("X", WHATEVER.values())
@every_line("which", [{"only": {"x0"}}, {"skip": {"x1", "x2"}}])
def test_a_column_that_is_not_asked_for_may_hold_anything(X, which):
    first, *others = read_columns(X, **which)
    assert first.values.tolist() == [1.0, 2.0]
    assert [(column.name, column.is_missing().all()) for column in others] == [
        ("x1", True),
        ("x2", True),
    ]
    with pytest.raises(InputError, match="infinite"):
        read_columns(X, only={"x0", "x1"})


value = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 9), st.text("ab1", max_size=2), st.just(NAN)
)


@every_line("values", [[1, True], [True, 1], [0.0, False, None], [1.0, "1", True]])
def test_a_boolean_among_numbers_makes_them_categories(values):
    # Python says that 1 == True, so one of the two stands for both; the order must not matter.
    assert only(table(values)) == ("category", values)


def test_text_whose_first_hundred_rows_look_alike_is_read_to_its_end():
    kind, values = only(pd.DataFrame({"a": objects(*["a"] * 200, 1, None)}))
    assert (kind, values[199:]) == ("category", ["a", 1, None])


def test_numbers_after_hundreds_of_missing_values_are_numbers():
    kind, values = only(pd.DataFrame({"a": objects(*[None] * 200, 1, 2.5)}))
    assert (kind, values[199:]) == ("numeric", [None, 1.0, 2.5])


def test_categories_that_do_not_occur_are_not_listed():
    town = pd.Categorical(["b", "b"], categories=[pd.Interval(0, 1), "a", "b"])
    [column] = read_columns(pd.DataFrame({"town": town}))
    assert column.categories == ("b",)


def test_categories_travel_as_small_codes():
    X = pd.DataFrame({"a": ["x", "y", None], "b": [True, False, True]})
    for column in [*read_columns(X), *read_columns(pl.from_pandas(X))]:
        assert column.values.dtype == np.int16
    many = [f"town {i}" for i in range(40_000)]
    [column] = read_columns(pd.DataFrame({"a": many}))
    assert column.values.dtype == np.int32
    assert [column.categories[code] for code in column.values[-3:]] == many[-3:]


def test_some_rows_of_a_column_are_the_column_of_these_rows():
    [column] = read_columns(pd.DataFrame({"a": ["x", None, "y", "x"]}))
    for rows in ([2, 1], np.array([False, True, True, False])):
        part = column.take(rows)
        assert len(part) == 2
        assert sorted(part.is_missing()) == [False, True]
        assert part.first_value() == "y"
    assert column.first_value() == "x"
    assert column.take([1]).first_value() is None


@given(st.lists(value, min_size=1, max_size=8))
@settings(deadline=None, max_examples=20)
def test_pandas_and_numpy_objects_read_alike(values):
    frame = pd.DataFrame({"x0": objects(*values)})
    assert spelled(frame) == spelled(table(values))


# ---------------------------------------------------------------------------------------------
# X: what is refused, and in which words


@every_line(
    "X",
    [
        pd.DataFrame([[1, 2, 3]], columns=["age", "sex", "age"]),
        pa.table([[1], [2], [3]], names=["age", "sex", "age"]),
    ],
)
def test_two_columns_of_one_name_are_refused(X):
    with pytest.raises(InputError, match=r"X has several columns .* \('age'\).* Rename them"):
        read_columns(X)


def test_the_names_1_and_text_1_are_one_name():
    with pytest.raises(InputError, match=r"X has several columns with the same name \('1'\)"):
        read_columns(pd.DataFrame([[1, 2]], columns=[1, "1"]))


@every_line(
    "X, where",
    [
        (np.array([[1.0, np.inf], [-np.inf, 2.0]]), "X contains 2 infinite"),
        (pd.DataFrame({"a": [1.0, np.inf]}), "Column 'a' contains 1 infinite"),
        (pl.DataFrame({"a": [1.0, -np.inf]}), "Column 'a' contains 1 infinite"),
        (table([1, np.inf]), "Column 'x0' contains 1 infinite"),
        (table(["a", np.inf]), "Column 'x0' contains 1 infinite"),
        (table(["a", np.inf, np.inf, None]), "Column 'x0' contains 2 infinite"),
        (pd.DataFrame({"a": pd.Categorical([1.5, np.inf])}), "Column 'a' contains 1 infinite"),
    ],
)
def test_infinite_values_are_refused_and_counted(X, where):
    with pytest.raises(InputError, match=f"{where}.*Clip them, or make them missing"):
        read_columns(X)


@every_line(
    "X, kind",
    [
        (pd.DataFrame({"a": pd.to_datetime(["2024-05-01"])}), "'a' has type datetime64"),
        (pd.DataFrame({"a": [datetime.date(2024, 5, 1)]}), "'a' holds values of type date"),
        (pl.DataFrame({"a": [datetime.date(2024, 5, 1)]}), "'a' has type Date"),
        (pa.table({"a": [datetime.date(2024, 5, 1)]}), "'a' has type date32"),
        (np.array([["2024-05-01"]], dtype="datetime64[ns]"), "X has type datetime64"),
        (np.array([[5]], dtype="timedelta64[ns]"), "X has type timedelta64"),
        (table([np.datetime64("2024-05-01", "ns")]), "'x0' holds values of type datetime64"),
        (table([np.timedelta64(5, "ns")]), "'x0' holds values of type timedelta64"),
    ],
)
def test_dates_are_refused_never_read_as_numbers(X, kind):
    with pytest.raises(InputTypeError, match=f"{kind}.*locked_features"):
        read_columns(X)


@every_line(
    "X, kind",
    [
        (pd.DataFrame({"a": [[1, 2]]}), "'a' holds values of type list"),
        (pd.DataFrame({"a": [{"b": 1}]}), "'a' holds values of type dict"),
        (pd.DataFrame({"a": pd.cut([1, 2], 2)}), "'a' holds values of type Interval"),
        (pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 1.0])}), "'a' has type Sparse"),
        (pd.DataFrame({"a": [1 + 2j]}), "'a' has type complex128"),
        (pl.DataFrame({"a": [[1, 2]]}), "'a' has type List"),
        (pl.DataFrame({"a": [{"b": 1}]}), "'a' has type Struct"),
        (pl.DataFrame({"a": [b"b"]}), "'a' has type Binary"),
        (np.array([[b"b"]]), "'x0' holds values of type bytes"),
        (table([1 + 2j]), "'x0' holds values of type complex"),
        (table([1, 1 + 0j]), "'x0' holds values of type complex"),
        (table(["a", [1]]), "'x0' holds values of type list"),
    ],
)
def test_values_a_scorecard_cannot_read_are_named(X, kind):
    words = f"{kind}.*a scorecard reads numbers, text, categories and booleans"
    with pytest.raises(InputTypeError, match=words):
        read_columns(X)


def test_complex_arrays_are_refused():
    with pytest.raises(InputError, match="Complex data not supported: X holds complex numbers"):
        read_columns(np.array([[1 + 2j]]))


@every_line("sparse_type", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_matrices_are_refused(sparse_type):
    with pytest.raises(InputTypeError, match=r"X is a sparse matrix.*raw table.*toarray"):
        read_columns(sparse_type(np.eye(2)))


def test_lazy_frames_are_refused():
    with pytest.raises(InputTypeError, match=r"X is a lazy frame \(polars.*\.collect\(\)"):
        read_columns(pl.LazyFrame({"a": [1]}))


@every_line(
    "X, came",
    [
        ([1, 2], "list with 1 dimension"),
        (np.zeros(3), "ndarray with 1 dimension"),
        (pd.Series([1, 2]), "Series with 1 dimension"),
        (pl.Series([1, 2]), "Series with 1 dimension"),
        (np.zeros((2, 2, 2)), "ndarray with 3 dimension"),
        ({"a": [1, 2]}, "dict with 0 dimension"),
        (None, "NoneType with 0 dimension"),
    ],
)
def test_what_is_no_table_is_refused(X, came):
    with pytest.raises(InputError, match=f"rows and columns; got {came}.*Reshape your data"):
        read_columns(X)


@every_line(
    "X, shape",
    [
        (np.zeros((0, 3)), r"0 sample\(s\) and 3 feature\(s\)"),
        (np.zeros((3, 0)), r"3 sample\(s\) and 0 feature\(s\)"),
        (pd.DataFrame({"a": []}), r"0 sample\(s\) and 1 feature\(s\)"),
        (pd.DataFrame(index=range(3)), r"3 sample\(s\) and 0 feature\(s\)"),
        (pl.DataFrame({"a": []}), r"0 sample\(s\) and 1 feature\(s\)"),
        (pl.DataFrame(), r"0 sample\(s\) and 0 feature\(s\)"),
    ],
)
def test_empty_tables_are_refused(X, shape):
    with pytest.raises(InputError, match=f"X has {shape}.*a minimum of 1 is required"):
        read_columns(X)


def test_rows_of_different_lengths_are_refused():
    with pytest.raises(InputError, match=r"X cannot be read.*every row the same number of values"):
        read_columns([[1, 2], [3]])
