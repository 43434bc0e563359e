"""Labels, decisions and scores of every kind become arrays."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commod._data.labels import (
    binary_outcome,
    check_length,
    distinct_labels,
    read_labels,
    read_scores,
)
from commod.exceptions import InputError
from tables_of_cases import every_line

NAN = math.nan


def objects(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


@every_line(
    "y",
    [
        [1, 0],
        np.array([1, 0]),
        np.array([[1], [0]]),
        pd.Series([1, 0], index=[5, 9]),
        pd.Series([1, 0], dtype="Int64"),
        pd.Series([1, 0], dtype="category"),
        pd.DataFrame({"y": [1, 0]}),
        pd.DataFrame({0: [1, 0]}),
        pl.Series([1, 0]),
        pl.DataFrame({"y": [1, 0]}),
        pa.chunked_array([[1, 0]]),
        objects(1, 0),
    ],
)
def test_labels_from_every_container_are_one_array(y):
    labels = read_labels(y, "y")
    assert labels.dtype.kind == "i"
    assert labels.tolist() == [1, 0]


@every_line(
    "y",
    [
        ["no", "yes"],
        np.array(["no", "yes"]),
        objects("no", np.str_("yes")),
        pd.Series(["no", "yes"]),
        pd.Series(["no", "yes"], dtype="category"),
        pl.Series(["no", "yes"]),
        pl.Series(["no", "yes"], dtype=pl.Categorical),
    ],
)
def test_text_labels_are_the_same_whatever_holds_them(y):
    labels = read_labels(y, "y")
    assert labels.dtype.kind == "U"
    assert labels.tolist() == ["no", "yes"]


def test_mixed_labels_keep_their_types():
    assert read_labels([1, "1"], "y").tolist() == [1, "1"]


@every_line(
    "y",
    [
        ["no", None, NAN],
        ["no", "yes", NAN, NAN],
        objects("no", pd.NA, pd.NaT),
        [1.0, NAN, NAN],
        pd.Series([1, None, None], dtype="Int64"),
        pl.Series(["no", None, None]),
        pl.Series([1.0, NAN, NAN]),
    ],
)
def test_missing_labels_are_refused_and_counted(y):
    with pytest.raises(InputError, match=r"Input y contains NaN.*\b2\b.*drop those rows first"):
        read_labels(y, "y")


def test_infinite_labels_are_refused():
    with pytest.raises(InputError, match="Input y contains NaN or infinity"):
        read_labels([1.0, np.inf], "y")


@every_line(
    "y, words",
    [
        (np.zeros((2, 2)), r"y must be one-dimensional.*shape \(2, 2\)"),
        (1, r"y must be one-dimensional.*shape \(\)"),
        (pd.DataFrame({"a": [1], "b": [2]}), "y must have one column; got 2"),
        ([[1], [2, 3]], "y cannot be read as array"),
        (pl.LazyFrame({"y": [1]}), "y is a lazy frame"),
        ([1j], "Complex data not supported: y"),
    ],
)
def test_labels_that_are_not_one_per_row_are_refused(y, words):
    with pytest.raises(InputError, match=words):
        read_labels(y, "y")


def test_wrong_lengths_name_both_numbers():
    with pytest.raises(InputError, match=r"y has 2 rows, but 3 were expected.*one entry per row"):
        check_length([1, 0], "y", 3)


@every_line(
    "y",
    [
        pd.Series([True, False]),
        pd.Series([True, False], dtype="boolean"),
        pd.Series([True, False], dtype="category"),
        pl.Series([True, False]),
        objects(True, np.bool_(False)),
    ],
)
def test_boolean_labels_are_the_same_whatever_holds_them(y):
    labels = read_labels(y, "y")
    assert labels.dtype == bool
    assert labels.tolist() == [True, False]


label = st.one_of(st.integers(0, 2), st.sampled_from(["no", "yes"]), st.sampled_from([0.5, 1.0]))


@given(st.lists(label, min_size=1, max_size=8), st.booleans())
@settings(deadline=None, max_examples=25)
def test_distinct_labels_are_listed_in_the_order_of_their_rows(values, as_objects):
    labels = objects(*values) if as_objects else read_labels(values, "y")
    assert distinct_labels(labels) == list(dict.fromkeys(labels.tolist()))


@given(st.lists(st.sampled_from([3, 5]), min_size=1, max_size=8), st.sampled_from([3, 5]))
@settings(deadline=None, max_examples=20)
def test_outcomes_are_where_the_positive_label_is(values, pos_label):
    for labels in (np.array(values), np.array(values, dtype=np.int8), objects(*values)):
        assert binary_outcome(labels, "y", pos_label).tolist() == [v == pos_label for v in values]


def test_the_positive_label_may_be_absent_from_one_sided_decisions():
    assert not binary_outcome(np.array([0, 0]), "y_pred", 1).any()


def test_scores_in_place_of_decisions_are_refused():
    with pytest.raises(InputError, match=r"y_pred holds 3 different values.*score > threshold"):
        binary_outcome(np.array([0.1, 0.2, 0.3]), "y_pred", 1)


def test_an_unknown_positive_label_is_refused():
    words = r"pos_label=1 is not among the values of y_true: \['no', 'yes'\]"
    with pytest.raises(InputError, match=words):
        binary_outcome(np.array(["no", "yes"]), "y_true", 1)


def test_errors_name_the_parameter_that_is_wrong():
    calls = {
        "y_pred": lambda: read_labels([1, math.nan], "y_pred"),
        "y_true": lambda: check_length([1, 2], "y_true", 3),
        "scores": lambda: read_scores([0.2, 1.2], "scores"),
        "pos_label": lambda: binary_outcome(np.array([0, 1]), "y", 7),
        None: lambda: read_labels([[1, 2]], "predict of the model"),
    }
    for parameter, call in calls.items():
        with pytest.raises(InputError) as error:
            call()
        assert error.value.parameter == parameter
