"""Sensitive features become groups, and columns that determine the group are recognised."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commod._data.columns import read_columns
from commod._data.groups import read_groups
from commod._data.proxies import determines_group
from commod.exceptions import InputError
from tables_of_cases import every_line

NAN = math.nan


def objects(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def table(*columns):
    return np.column_stack([objects(*c) for c in columns])


@every_line(
    "race",
    [
        ["w", "b", "w"],
        ("w", "b", "w"),
        np.array(["w", "b", "w"]),
        np.array([["w"], ["b"], ["w"]]),
        objects("w", np.str_("b"), "w"),
        pd.Series(["w", "b", "w"], index=[7, 8, 9]),
        pd.Series(["w", "b", "w"], dtype="category"),
        pd.Series(["w", "b", "w"], dtype="string"),
        pd.DataFrame({"race": ["w", "b", "w"]}),
        pd.DataFrame({0: ["w", "b", "w"]}),
        {"race": ["w", "b", "w"]},
        pl.Series(["w", "b", "w"]),
        pl.DataFrame({"race": ["w", "b", "w"]}),
        pa.table({"race": ["w", "b", "w"]}),
    ],
)
def test_one_attribute_from_every_container(race):
    groups = read_groups(race, 3)
    assert groups.labels == ("b", "w")
    assert groups.codes.tolist() == [1, 0, 1]
    assert groups.sizes.tolist() == [1, 2]


@every_line(
    "both",
    [
        pd.DataFrame({"race": ["w", "b", "w"], "sex": [1, 0, 0]}),
        pl.DataFrame({"race": ["w", "b", "w"], "sex": [1, 0, 0]}),
        {"race": pd.Series(["w", "b", "w"]), "sex": np.array([1, 0, 0])},
        np.array([["w", 1], ["b", 0], ["w", 0]], dtype=object),
        [("w", 1), ("b", 0), ("w", 0)],
    ],
)
def test_several_attributes_mean_their_intersections_that_occur(both):
    groups = read_groups(both, 3)
    assert groups.labels == (("b", 0), ("w", 0), ("w", 1))
    assert groups.codes.tolist() == [2, 0, 1]


@every_line(
    "code, labels",
    [
        (np.array([7, -2, 7], dtype=np.int8), (-2, 7)),
        (np.array([10**12, 0, 10**12]), (0, 10**12)),
        (np.array([2**64 - 1, 2**64 - 2, 2**64 - 1], dtype=np.uint64), (2**64 - 2, 2**64 - 1)),
        (np.array([True, False, True]), (False, True)),
        (np.array([0.5, -1.5, 0.5]), (-1.5, 0.5)),
        (pd.Series([7, -2, 7], dtype="Int64"), (-2, 7)),
        (pd.Series([True, False, True]), (False, True)),
        (pl.Series([7, -2, 7]), (-2, 7)),
        (pd.Series(pd.Categorical(["y", "x", "y"], categories=["z", "y", "x"])), ("x", "y")),
    ],
)
def test_groups_of_any_type_are_listed_in_sorted_order_as_plain_values(code, labels):
    groups = read_groups(code, 3)
    assert groups.labels == labels
    assert [type(v) for v in groups.labels] == [type(v) for v in labels]
    assert groups.codes.tolist() == [1, 0, 1]
    assert groups.codes.dtype == np.intp


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ab"), st.booleans()), min_size=1),
    st.sampled_from(["pandas", "polars", "dict", "tuples"]),
)
@settings(deadline=None, max_examples=20)
def test_intersections_equal_the_tuples_of_the_rows(rows, holder):
    columns = dict(zip("abc", map(list, zip(*rows, strict=True)), strict=True))
    made = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "dict": dict, "tuples": lambda _: rows}
    groups = read_groups(made[holder](columns), len(rows))
    assert groups.labels == tuple(sorted(set(rows)))
    assert [groups.labels[code] for code in groups.codes] == rows
    for part, values in zip(groups.parts, columns.values(), strict=True):
        assert part.tolist() == [sorted(set(values)).index(v) for v in values]


def test_groups_of_mixed_types_have_an_order():
    groups = read_groups([2, "b", 1, "a"], 4)
    assert groups.labels == (1, 2, "a", "b")


@every_line(
    "race, count",
    [
        (["w", None, "b"], "1 missing value in"),
        (["w", NAN, None], "2 missing values in"),
        (np.array([1.0, NAN, NAN]), "2 missing values in"),
        (pd.Series(["w", pd.NA, pd.NaT], dtype=object), "2 missing values in"),
        (pl.Series(["w", None, "b"]), "1 missing value in"),
        ({"race": ["w", NAN, "b"], "sex": [1, None, None]}, "2 missing values in"),
        (pd.DataFrame({"race": ["w", None, "b"], "sex": [1, 1, None]}), "2 missing values in"),
    ],
)
def test_missing_groups_are_refused_by_the_number_of_rows(race, count):
    words = rf"sensitive_features has {count} 3 rows.*Drop those rows.*fillna\('unknown'\)"
    with pytest.raises(InputError, match=words):
        read_groups(race, 3)


@every_line(
    "race, words",
    [
        (None, r"is missing\. Pass the group of each row"),
        ("race", r"'race' is text.*Pass the values of the column, such as data\['race'\]"),
        (np.zeros((3, 1, 1)), r"one value per row.*shape \(3, 1, 1\)"),
        (["w", "b"], "has 2 rows, but 3 were expected"),
        (["race", "sex"], r"names of columns.*such as data\[\['race', 'sex'\]\]"),
        ({"race": ["w", "b", "w"], "sex": [1, 0]}, "has 2 rows, but 3 were expected"),
        ({"race": "w"}, r"\['race'\] must be one-dimensional"),
        ({}, "has no column"),
        (pd.DataFrame(index=range(3)), "has no column"),
        (pd.DataFrame([["w", "b"]] * 3, columns=["r", "r"]), r"several columns .* \('r'\)"),
        ([["w"], ["b", "c"], ["w"]], "cannot name a group.*one number or text per row"),
        (pl.LazyFrame({"race": ["w", "b", "w"]}), "is a lazy frame"),
    ],
)
def test_unusable_groups_are_refused(race, words):
    with pytest.raises(InputError, match=f"sensitive_features.*{words}"):
        read_groups(race, 3)


# -- columns that determine the group ------------------------------------------------------------


@every_line("n", [40, 30_000])
@every_line("in_order", [True, False])
def test_a_column_determines_the_group_however_the_rows_are_ordered(n, in_order):
    group = np.arange(n) % 7 == 0
    group = np.sort(group) if in_order else group
    column = read_columns(pd.DataFrame({"code": np.where(group, "x", "y")}))[0]
    assert determines_group(column, group.astype(int))


def test_a_column_with_one_exception_does_not_determine_the_group():
    group = np.arange(30_000) % 7 == 0
    code = group.copy()
    code[12_345] = ~code[12_345]
    column = read_columns(pd.DataFrame({"code": np.where(code, "x", "y")}))[0]
    assert not determines_group(column, group.astype(int))


def test_one_group_is_determined_by_nothing():
    column = read_columns(pd.DataFrame({"code": ["x", "y"] * 20}))[0]
    assert not determines_group(column, np.zeros(40, dtype=int))


@every_line("race", [None, ["a", None], {"race": [["a", "b"]]}])
def test_errors_about_groups_name_their_parameter(race):
    with pytest.raises(InputError) as error:
        read_groups(race, 2)
    assert error.value.parameter == "sensitive_features"
