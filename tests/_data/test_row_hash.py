"""Hashes of rows: the same for the same content, whatever holds it and in whatever order."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from commod._data.columns import read_columns
from commod._data.draws import row_hashes

N = 400


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "number": rng.normal(size=N).round(6),
            "whole": rng.integers(0, 9, N),
            "gaps": np.where(rng.random(N) < 0.2, np.nan, rng.integers(0, 5, N)),
            "town": rng.choice(["a", "b", "ü", None], N),
            "flag": rng.random(N) < 0.5,
        }
    )


def hashes(table, tie=None):
    return row_hashes(read_columns(table), () if tie is None else (tie,))


def test_the_hash_follows_the_row_through_every_order_and_frame(frame):
    own = hashes(frame)
    assert own.dtype == np.uint64 and len(set(own.tolist())) == N
    order = np.random.default_rng(1).permutation(N)
    assert np.array_equal(hashes(frame.iloc[order]), own[order])
    assert np.array_equal(hashes(frame[frame.columns[::-1]]), own)
    for other in (
        pl.from_pandas(frame),
        pa.Table.from_pandas(frame),
        frame.astype({"whole": "int8", "town": "category"}),
        frame.astype({"whole": float}),
        frame.assign(number=frame["number"].where(frame["number"] != 0, -0.0)),
    ):
        assert np.array_equal(hashes(other), own)


def test_every_value_counts_and_so_does_its_column(frame):
    own = hashes(frame)
    for name, value in {"number": 0.123, "gaps": np.nan, "town": "c", "whole": 99}.items():
        other = frame.copy()
        other.loc[7, name] = value
        is_same = hashes(other) == own
        assert is_same.sum() == N - (not is_same[7])
        assert is_same[7] == (pd.isna(value) and pd.isna(frame.loc[7, name]))
    swapped = frame.rename(columns={"number": "gaps", "gaps": "number"})
    assert not (hashes(swapped) == own).any()


def test_equal_rows_are_counted_in_the_order_of_their_ties():
    table = pd.DataFrame({"age": [31, 40, 31, 31]})
    tie = np.array([0.3, 0.1, 0.2, 0.4])
    own = hashes(table, tie)
    assert len(set(own.tolist())) == 4
    order = [3, 0, 1, 2]
    assert np.array_equal(hashes(table.iloc[order], tie[order]), own[order])
    assert sorted(hashes(table).tolist()) == sorted(own.tolist())


def test_hashes_spread_evenly(frame):
    many = pd.concat([frame.assign(part=k) for k in range(50)], ignore_index=True)
    for n_folds in (5, 8):
        counts = np.bincount((hashes(many) % np.uint64(n_folds)).astype(int))
        assert np.abs(counts - len(many) / n_folds).max() < 5 * np.sqrt(len(many) / n_folds)
