"""Sample weights are checked."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

from commod._data.labels import check_weights
from commod.exceptions import InputError
from tables_of_cases import every_line

NAN = math.nan


def objects(*values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def test_no_weights_are_ones():
    assert check_weights(None, 3).tolist() == [1.0, 1.0, 1.0]


@every_line(
    "weight",
    [
        [2, 0],
        np.array([2, 0], dtype=np.int8),
        objects(2, 0.0),
        pd.Series([2, 0], dtype="Int64"),
        pl.Series([2, 0]),
        pd.DataFrame({"w": [2.0, 0.0]}),
    ],
)
def test_weights_from_every_container(weight):
    weights = check_weights(weight, 2)
    assert weights.dtype == np.float64
    assert weights.tolist() == [2.0, 0.0]


@every_line(
    "weight, words",
    [
        ([1, -1], "negative, NaN or infinite.*at least 0"),
        ([1, NAN], "negative, NaN or infinite"),
        ([1, np.inf], "negative, NaN or infinite"),
        (objects(1, None), "negative, NaN or infinite"),
        (pd.Series([1, None], dtype="Float64"), "negative, NaN or infinite"),
        ([0, 0], "zero in every row"),
        (["1", "2"], "must hold numbers; got '1'"),
        ([1j, 2], "must hold numbers; got 1j"),
        ([1], "has 1 rows, but 2 were expected"),
        (1.0, "must be one-dimensional"),
        ([[1, 2], [3, 4]], "must be one-dimensional"),
    ],
)
def test_unusable_weights_are_refused(weight, words):
    with pytest.raises(InputError, match=f"sample_weight .*{words}"):
        check_weights(weight, 2)
