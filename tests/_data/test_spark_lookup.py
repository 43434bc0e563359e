"""Looking up numbers in Spark: right for every value, and the same work for more known values."""

import math
from types import SimpleNamespace

import narwhals as nw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commod._data.frames import (
    VALUES_PER_SLOT,
    SparkLookup,
    number_slots,
    text_slots,
    with_looked_up,
)
from commod._data.tables import FreeNames
from commod.updates._frame_rows import Lines
from tables_of_cases import every_line

pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
TEXTS = ["", " ", "a", "A", "a ", "'", '"', "\\", "\\n", "\n", "\t", "\0", "a\0b", "é", "e\u0301"]
TEXTS += ["東京", "😀", "${x}", "null", "NaN", "[]", "1", "]]", "x" * 60_000]
NUMBERS = [0.0, 1.0, -1.0, 0.1, -3.5, 1e-300, 5e-324, 1e100, 1e300, -1e308, 2.0**53, 1e15 + 1]
UNKNOWN, MISSING = 0.25, -0.5


def looked_up(spark, values, known, kind):
    lookup = SparkLookup("a`b", known, UNKNOWN, MISSING)
    frame = spark.createDataFrame(list(enumerate(values)), f"id int, `a``b` {kind}")
    found = with_looked_up(nw.from_native(frame), {"points": lookup}).to_native()
    assert found.columns == ["id", "a`b", "points"]
    return [row.points for row in sorted(found.collect(), key=lambda row: row.id)]


def test_every_text_has_its_number(spark):
    known = {text: i / 8 for i, text in enumerate([*TEXTS, *map(str, range(1000))])}
    values = [*known, *known, "unknown", "B", "a  ", "É", None]
    expected = [MISSING if v is None else known.get(v, UNKNOWN) for v in values]
    assert looked_up(spark, values, known, "string") == expected
    assert looked_up(spark, values, known, "string COLLATE UNICODE_CI_AI") == expected


def test_every_number_has_its_own(spark):
    known = {x: i / 8 for i, x in enumerate([*NUMBERS, *np.arange(100, 500) / 4])}
    missing = [None, math.nan, math.inf, -math.inf]
    values = [*map(float, known), -0.0, 1.5e-300, 1.0000000000000002, 3e300, *missing]
    expected = [known.get(v, UNKNOWN) for v in values[:-4]] + [MISSING] * 4
    assert looked_up(spark, values, known, "double") == expected


def test_whole_numbers_and_decimals_have_the_number_of_their_value(spark):
    known = {float(i): i / 8 for i in range(-500, 500, 7)}
    values = [*range(-520, 520), None]
    expected = [MISSING if v is None else known.get(v, UNKNOWN) for v in values]
    assert looked_up(spark, values, known, "int") == expected


@pytest.mark.parametrize("kind", ["string", "bigint"])
def test_rows_of_many_groups_find_their_line(spark, kind):
    """`fit_frame` numbers the lines of a count the same way."""
    groups = [f"g {i}" if kind == "string" else 10**12 + 7 * i for i in range(60)]
    rows = [(groups[i % 60], i % 2 == 0) for i in range(240)]
    frame = nw.from_native(spark.createDataFrame(rows, f"g {kind}, above boolean"))
    table = SimpleNamespace(keys={"g": "g", "above": "above"}, names=FreeNames(["g"]))
    values = {"g": [g for g in groups for _ in (0, 1)], "above": [False, True] * 60}
    lines = Lines(table, values, *[np.ones(120)] * 3)
    numbered = lines.with_number(frame, "line").to_native().collect()
    place = dict(zip(zip(*values.values(), strict=True), lines.numbers.tolist(), strict=True))
    assert [row.line for row in numbered] == [place[row.g, row.above] for row in numbered]


def largest(slots):
    return int(np.bincount(slots).max())


@given(
    n=st.integers(100, 5000),
    step=st.sampled_from([1.0, 7.0, 10.0, 1000.0, 4096.0, 0.01, 0.25, 1e-6, 1e9]),
    start=st.sampled_from([0.0, 10_000.0, -500.0]),
)
@settings(max_examples=10)
def test_numbers_are_spread_over_the_slots(n, step, start):
    n_slots, _, slots = number_slots([start + step * i for i in range(n)])
    assert slots.min() >= 0 and slots.max() < n_slots
    assert largest(slots) <= 8 * VALUES_PER_SLOT


@every_line("n", [25, 5000])
def test_texts_are_spread_over_the_slots(n):
    n_slots, slots = text_slots([f"town {i}" for i in range(n)])
    assert slots.max() < n_slots
    assert largest(slots) <= 6 * VALUES_PER_SLOT
