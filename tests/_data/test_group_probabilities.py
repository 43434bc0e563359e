"""Probabilities in place of groups: what is read, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from commod._data.groups import read_group_probabilities, read_groups
from commod.exceptions import InputError
from tables_of_cases import every_line

ROWS = [[0.2, 0.8], [1.0, 0.0], [0.5, 0.5]]


@every_line("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_frame_name_the_groups(frame):
    table = frame({"women": [0.2, 1.0, 0.5], "men": [0.8, 0.0, 0.5]})
    groups = read_group_probabilities(table)
    assert groups.labels == ("women", "men")
    np.testing.assert_allclose(groups.probabilities, ROWS)
    assert groups.is_known.tolist() == [False, True, False]


def test_groups_of_an_array_are_numbered_and_small_rounding_is_mended():
    groups = read_group_probabilities(np.array([[0.333, 0.667], [0.3334, 0.6667]]))
    assert groups.labels == (0, 1)
    np.testing.assert_allclose(groups.probabilities.sum(axis=1), 1.0, atol=1e-15)


@every_line(
    "rows, words",
    [
        ([[0.5, 0.5], [0.5, 0.6]], "Row 1 .* sums to 1.1"),
        ([[0.5, 0.5], [1.2, -0.2]], "Row 1 .* negative"),
        ([[np.nan, 0.5], [0.5, 0.5]], "Row 0 .* missing"),
        ([[1.0], [1.0]], "1 column"),
        ([0.5, 0.5], "shape"),
        ([["a", "b"]], "no numbers"),
    ],
)
def test_what_is_no_table_of_probabilities_is_refused(rows, words):
    with pytest.raises((InputError, TypeError), match=words):
        read_group_probabilities(rows)


MISSING = [None, np.nan, pd.NA]


@every_line("missing", MISSING)
def test_rows_that_miss_a_value_have_no_group(missing):
    sex, old = ["f", missing, "m", "f"], [1, 1, 0, 1]
    groups = read_groups(pd.DataFrame({"sex": sex, "old": old}), 4, "ignore")
    assert groups.labels == (("f", 1), ("m", 0))
    assert groups.codes.tolist() == [0, -1, 1, 0]
    assert groups.sizes.tolist() == [2, 1]
    with pytest.raises(InputError, match=r"1 missing value .*unknown_groups='ignore'"):
        read_groups(sex, 4)


def test_a_group_that_occurs_in_incomplete_rows_only_is_no_group():
    groups = read_groups(pd.DataFrame({"a": ["x", "y", "z"], "b": [1, 1, None]}), 3, "ignore")
    assert groups.labels == (("x", 1), ("y", 1))


def test_without_any_known_group_nothing_can_be_measured():
    with pytest.raises(InputError, match="No group is known"):
        read_groups([None, None], 2, "ignore")
