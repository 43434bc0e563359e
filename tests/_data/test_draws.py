"""The draw of a row follows from its key alone, in every engine."""

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commod._data.draws import P, draws_of, text_key, with_draws, with_key
from commod.exceptions import InputError

SEEDS = (123_456_789, 987_654_321)
KEYS = np.concatenate(
    [
        np.arange(50),
        np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 50),
        [-(2**63), 2**63 - 1, 2**53 + 1],
    ]
)
FRAME = pd.DataFrame({"number": KEYS, "text": [f"Zeile ü {key}" for key in KEYS]})
ENGINES = {
    "duckdb": lambda frame: duckdb.from_df(frame),
    "polars": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "pandas": lambda frame: frame.set_axis(range(7, 7 + len(frame))),
}


def drawn(native, key):
    lazy = with_key(nw.from_native(native).lazy(), key, "k")
    table = with_draws(lazy, "k", "draw", "work", SEEDS).collect()
    return dict(zip(table["number"].to_list(), table["draw"].to_list(), strict=True))


def by_rule(key, seeds):
    """The documented rule, in Python's whole numbers."""
    x = -(key + 1) if key < 0 else key
    h = (1103515245 * (x % P) + (key < 0) + seeds[0]) % P
    for _ in range(3):
        h = (h**3 + x % 2147483549 + seeds[1]) % P
    return h


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, P - 1), st.integers(1, P - 1))
def test_arithmetic_never_overflows(key, first, second):
    assert draws_of(np.array([key]), (first, second))[0] == by_rule(key, (first, second))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_draws_whole_numbers_and_texts_alike(engine):
    native = ENGINES[engine](FRAME)
    texts = np.array([text_key(text) for text in FRAME["text"]])
    assert drawn(native, "number") == dict(zip(KEYS, draws_of(KEYS, SEEDS), strict=True))
    assert drawn(native, "text") == dict(zip(KEYS, draws_of(texts, SEEDS), strict=True))


def test_draws_of_consecutive_keys_look_uniform_and_independent():
    shares = draws_of(np.arange(100_000), SEEDS) / P
    counts, _ = np.histogram(shares, 50, (0, 1))
    assert abs(counts - 2000).max() < 5 * np.sqrt(2000)
    assert abs(np.corrcoef(shares[:-1], shares[1:])[0, 1]) < 0.015
    assert abs(np.corrcoef(np.arange(100_000) % 7, shares)[0, 1]) < 0.015


def test_a_key_of_fractions_is_refused():
    with pytest.raises(InputError, match="whole numbers or text"):
        with_key(nw.from_native(pd.DataFrame({"k": [0.5]})).lazy(), "k", "key")
