"""Codes say exactly what the rows hold, whichever library holds them."""

from __future__ import annotations

import math

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commod._data.columns import code_array, code_list, code_series, joint_codes, plain
from tables_of_cases import every_line

NAN = math.nan
quick = settings(max_examples=12)
missing = st.sampled_from([None, NAN, float("nan"), np.float64("nan"), pd.NA, pd.NaT])
scalar = st.one_of(
    st.booleans(), st.integers(-3, 3), st.sampled_from([1.0, 2.5]), st.text("ab1", max_size=2)
)


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def check(coded, values):
    """The codes give back the rows; no value is listed twice or without a row."""
    assert coded.objects().tolist() == values
    assert set(coded.codes.tolist()) - {-1} == set(range(len(coded.values)))
    assert len(set(coded.values)) == len(coded.values)


@given(st.lists(st.one_of(missing, scalar), max_size=12))
@quick
def test_any_values_come_back_and_every_way_of_missing_is_one(values):
    check(code_list(values), [plain(v) for v in values])
    check(code_array(objects(values)), [plain(v) for v in values])


def test_numpy_scalars_and_their_python_twins_are_one_plain_value():
    coded = code_list([np.str_("a"), "a", np.int64(3), 3, np.bool_(False)])
    assert coded.codes.tolist() == [0, 0, 1, 1, 2]
    assert [type(v) for v in coded.values] == [str, int, bool]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
@given(data=st.data())
@quick
def test_whole_numbers_of_any_type_and_range(dtype, data):
    limits = np.iinfo(dtype)
    number = st.one_of(
        st.integers(int(limits.min), int(limits.max)),
        st.sampled_from([0, 1, int(limits.min), int(limits.max)]),
    )
    values = data.draw(st.lists(number, max_size=12))
    coded = code_array(np.array(values, dtype=dtype))
    check(coded, values)
    assert coded.values == sorted(coded.values)


@given(st.lists(st.booleans(), max_size=6))
@quick
def test_booleans(values):
    coded = code_array(np.array(values, dtype=bool))
    check(coded, values)
    assert all(type(v) is bool for v in coded.values)


@given(st.lists(st.sampled_from([NAN, 0.0, -1.5, math.inf]), max_size=8))
@quick
def test_floats_with_missing_values(values):
    check(code_array(np.array(values)), [None if math.isnan(v) else v for v in values])


def test_values_without_a_hash_are_a_type_error():
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        code_list([[1], [2]])


# ---------------------------------------------------------------------------------------------
# Columns of frames


def through_narwhals(native):
    return code_series(nw.from_native(native, series_only=True))


text_holders = {
    "pandas objects": lambda v: pd.Series(v, dtype=object),
    "pandas str": lambda v: pd.Series(v, dtype="str"),
    "pandas string": lambda v: pd.Series(v, dtype="string"),
    "pandas arrow": lambda v: pd.Series(v, dtype=pd.ArrowDtype(pa.string())),
    "pandas category": lambda v: pd.Series(pd.Categorical(v, categories=["z", "b", "a", ""])),
    "polars": lambda v: pl.Series(v, dtype=pl.String),
    "polars Categorical": lambda v: pl.Series(v, dtype=pl.Categorical),
    "polars Enum": lambda v: pl.Series(v, dtype=pl.Enum(["z", "b", "a", ""])),
    "pyarrow": lambda v: pa.chunked_array([v[:1], v[1:]], type=pa.string()),
    "pyarrow dictionary": lambda v: pa.chunked_array(
        [pa.array(part, type=pa.string()).dictionary_encode() for part in (v[:2], v[2:])]
    ),
}


@pytest.mark.parametrize("holder", text_holders)
@given(values=st.lists(st.sampled_from(["a", "b", "", None]), max_size=8))
@quick
def test_text_is_coded_alike_whatever_holds_it(holder, values):
    check(through_narwhals(text_holders[holder](values)), values)


@every_line("dtype", [pl.String, pl.Categorical])
def test_polars_text_is_listed_in_the_order_of_its_rows_every_time(dtype):
    values = [f"t{i * 7 % 50}" for i in range(50)]
    assert through_narwhals(pl.Series(values, dtype=dtype)).values == values


@every_line(
    "series, values",
    [
        (pd.Series([True, False, True]), [True, False, True]),
        (pd.Series([True, None, False], dtype="boolean"), [True, None, False]),
        (pl.Series([True, None]), [True, None]),
        (pd.Series([3, 1, 3]), [3, 1, 3]),
        (pd.Series([3, None], dtype="Int64"), [3, None]),
        (pl.Series([3, None]), [3, None]),
        (pl.Series([0.5, NAN, None]), [0.5, None, None]),
        (pd.Series(["a"] * 200 + [1], dtype=object), ["a"] * 200 + [1]),
        (pd.Series(pd.Categorical([3, None, 1])), [3, None, 1]),
    ],
)
def test_columns_of_other_types(series, values):
    coded = through_narwhals(series)
    check(coded, values)
    present = [v for v in values if v is not None]
    assert {type(v) for v in coded.values} == {type(v) for v in present}


# ---------------------------------------------------------------------------------------------
# Combinations


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=20))
@quick
def test_combinations_are_those_that_occur_in_order(rows):
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    joint, first_rows = joint_codes(columns)
    labels = sorted(set(rows))
    assert [labels[code] for code in joint] == rows
    assert first_rows.tolist() == [rows.index(label) for label in labels]


def test_many_values_in_several_columns_combine_without_overflow():
    columns = [np.arange(100_000)] * 5  # 10^25 combinations could occur
    joint, first_rows = joint_codes(columns)
    assert np.array_equal(joint, np.arange(100_000))
    assert np.array_equal(first_rows, joint)
