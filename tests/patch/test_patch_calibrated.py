"""The calibrated probability of a patch: one more column on request, alike in every engine.

The map uses sums and products of doubles only, so it is equal to the last bit wherever the edited
score is.
"""

import json
import math
import sqlite3
from contextlib import closing
from dataclasses import replace

import duckdb
import numpy as np
import polars as pl
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from patches import as_arrow, content_of, number

from commod import Patch
from commod._record.explanation import ScoreKnot, ScoreMap
from commod._statistics.score_map import map_scores, pieces_of
from commod.exceptions import InputError
from commod.patch.file import content_digest
from tables_of_cases import every_line

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

THRESHOLDS = [0.5, 0.3, 0.9, 1e-6, 1e-14, 1 - 1e-9, 1 - 2e-15]
FIGURES = 100, *[0.2] * 6


def map_of(threshold, lower=(), upper=()):
    """Return a map with inner knots at shares (of score, of probability) of each side."""
    room = 1 - threshold
    knots = [ScoreKnot(threshold * s, threshold * p) for s, p in lower]
    above = [ScoreKnot(threshold + room * s, threshold + room * p) for s, p in upper]
    ends = ScoreKnot(0.0, 0.0), ScoreKnot(threshold, threshold), ScoreKnot(1.0, 1.0)
    return ScoreMap((ends[0], *knots, ends[1], *above, ends[2]), *FIGURES)


@st.composite
def maps(draw, threshold):
    """Draw maps that rise by at least a thousandth on every line, or narrow sides as they are."""
    sides = []
    for room in (threshold, 1 - threshold):
        n = draw(st.integers(0, 4)) if room > 1e-6 else 0
        steps = st.lists(st.floats(0.01, 1), min_size=n + 1, max_size=n + 1)
        scores, values = (np.cumsum(draw(steps)) for _ in range(2))
        shares = (scores / scores[-1]).tolist(), (values / values[-1]).tolist()
        sides.append(list(zip(*shares, strict=True))[:-1])
    return map_of(threshold, *sides)


def around(threshold):
    near = [threshold, threshold / 2, (1 + threshold) / 2, threshold * 0.999]
    steps = [math.nextafter(s, end) for s in near for end in (0.0, 1.0)]
    return [0.0, 5e-324, 1e-300, 0.1, 0.7, math.nextafter(1, 0), 1.0, *near, *steps]


def sqlite_values(patch, scores):
    """Return the probabilities that SQLite computes from edited scores.

    SQLite has no lateral joins, so only the expression of the column is run.
    """
    tree = sqlglot.parse_one(patch.to_sql("postgres", "people", calibrated=True), read="postgres")
    columns = {e.alias: e.this.sql(dialect="sqlite") for e in tree.expressions if e.alias}
    column = columns["commod_calibrated"].replace(columns["commod_score"], "score")
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE people (score REAL)")
        connection.executemany("INSERT INTO people VALUES (?)", [(s,) for s in scores])
        return [row[0] for row in connection.execute(f"SELECT {column} FROM people")]


def results(patch, table):
    """Yield edited score and calibrated probability of each engine."""
    names = ["commod_score", "commod_calibrated"]
    yield patch.apply(table.to_pandas(), calibrated=True)[names].to_numpy().T
    lazy = pl.from_arrow(table).lazy()
    yield patch.apply(lazy, calibrated=True).select(names).collect().to_numpy().T
    arrow = patch.apply(table, calibrated=True)
    yield np.array([arrow[name].to_numpy() for name in names])
    with duckdb.connect() as connection:
        connection.register("people", table)
        query = connection.sql(patch.to_sql("duckdb", "people", calibrated=True))
        applied = patch.apply(connection.from_arrow(table), calibrated=True)
        for frame in (applied.pl(), query.pl()):
            yield frame.sort("id").select(names).to_numpy().T
    if onnxruntime is not None:
        model = patch.to_onnx(calibrated=True)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        outputs = session.run(None, patch.onnx_inputs(pl.from_arrow(table)))
        yield np.array([outputs[0], outputs[3]])


@pytest.mark.parametrize(("threshold", "edit"), [(0.3, "all"), (1e-14, "changed_only")])
def test_every_engine_gives_the_same_probability_on_the_side_of_the_decision(threshold, edit):
    lower = [(0.1, 0.05), (0.4, 0.7)] if threshold > 1e-6 else []
    upper = [(0.25, 0.6), (0.3, 0.7), (0.9, 0.8)] if threshold < 1 - 1e-6 else []
    score_map = map_of(threshold, lower, upper)
    scores = np.array([*np.random.default_rng(0).random(30), *around(threshold)])
    sign = np.where(np.arange(len(scores)) % 3, -1.0, 1.0)
    content = content_of(number("x", 1.0), intercept=0.0, threshold=threshold, score_edit=edit)
    patch = Patch(replace(content, calibration=score_map))
    columns = {"id": list(range(len(scores))), "score": scores.tolist(), "x": sign.tolist()}
    decided = (scores > threshold) ^ ((sign < 0) & (scores != threshold))
    first = None
    for edited, calibrated in results(patch, as_arrow(columns)):
        np.testing.assert_array_equal(calibrated, map_scores(score_map, edited, threshold))
        np.testing.assert_array_equal(calibrated > threshold, decided)
        np.testing.assert_array_equal(calibrated == threshold, edited == threshold)
        first = calibrated if first is None else first
        if edit == "changed_only":
            np.testing.assert_array_equal(calibrated, first)
        np.testing.assert_allclose(calibrated, first, rtol=0, atol=1e-9)


def test_flat_lines_next_to_the_threshold_do_not_round_onto_it_in_any_engine():
    score_map = map_of(0.3, [(0.5, 0.99)], [(0.5, 0.01)])
    patch = Patch(replace(content_of(threshold=0.3), calibration=score_map))
    scores = np.array([0.3, math.nextafter(0.3, 0), math.nextafter(0.3, 1)])
    table = as_arrow({"id": [0, 1, 2], "score": scores.tolist()})
    for _, calibrated in results(patch, table):
        np.testing.assert_array_equal(calibrated, scores)


def test_no_line_ends_above_the_next_knot_by_rounding():
    random = np.random.default_rng(0)
    for _ in range(300):
        (a, b), (p, q) = np.sort(random.random((2, 2))).tolist()
        knots = [(0.0, p / 2), (a, p), (b, q), (1.0, 1.0)]
        score_map = ScoreMap(tuple(map(ScoreKnot, *zip(*knots, strict=True))), *FIGURES)
        for piece, (_, value) in zip(pieces_of(score_map), knots[1:], strict=True):
            assert piece.value + (piece.end - piece.start) * piece.slope <= value


@given(st.data())
def test_the_map_rises_and_keeps_the_threshold(data):
    threshold = data.draw(st.sampled_from(THRESHOLDS) | st.floats(1e-14, 1 - 1e-14))
    score_map = data.draw(maps(threshold))
    knots = [knot.score for knot in score_map.knots]
    steps = [math.nextafter(s, end) for s in knots for end in (0.0, 1.0)]
    drawn = data.draw(st.lists(st.floats(0, 1), max_size=30))
    scores = np.sort([*drawn, *knots, *steps, *around(threshold)])
    mapped = map_scores(score_map, scores, threshold)
    assert (np.diff(mapped) >= 0).all() and mapped[0] >= 0 and mapped[-1] <= 1
    assert (np.sign(mapped - threshold) == np.sign(scores - threshold)).all()


def test_a_row_without_score_has_no_probability():
    patch = Patch(replace(content_of(), calibration=map_of(0.5)))
    table = as_arrow({"id": [0, 1, 2], "score": [math.nan, 1.5, 0.6]})
    for _, calibrated in results(patch, table):
        missing = np.isnan(np.array(calibrated, dtype=float))
        assert missing.tolist() == [True, True, False]


def test_sqlite_evaluates_the_same_expression():
    score_map = map_of(0.3, [(0.5, 0.2)], [(0.002, 0.4), (0.5, 0.6)])
    patch = Patch(replace(content_of(threshold=0.3), calibration=score_map))
    scores = np.array(around(0.3))
    values = sqlite_values(patch, scores.tolist())
    np.testing.assert_array_equal(values, map_scores(score_map, scores, 0.3))


@every_line("dialect", ["postgres", "spark", "snowflake", "bigquery", "tsql"])
def test_the_column_is_written_in_every_dialect(dialect):
    patch = Patch(replace(content_of(), calibration=map_of(0.5, upper=[(0.5, 0.3)])))
    assert "commod_calibrated" in patch.to_sql(dialect, "people", calibrated=True)
    assert "commod_calibrated" not in patch.to_sql(dialect, "people")


def test_the_column_comes_on_request_only_and_goes_with_revert():
    patch = Patch(replace(content_of(), calibration=map_of(0.5)))
    frame = pl.DataFrame({"score": [0.2, 0.7]})
    assert "commod_calibrated" not in patch.apply(frame).columns
    edited = patch.apply(frame, calibrated=True)
    assert edited.columns[-1] == "commod_calibrated"
    assert patch.revert(edited).columns == ["score"]
    with pytest.raises(InputError, match="has a column 'commod_calibrated' already"):
        patch.apply(frame.with_columns(commod_calibrated=0.1), calibrated=True)


def test_a_patch_without_a_map_says_how_to_get_one():
    patch = Patch(content_of())
    frame = pl.DataFrame({"score": [0.2]})
    for call in (
        lambda: patch.apply(frame, calibrated=True),
        lambda: patch.to_sql("duckdb", "people", calibrated=True),
        lambda: patch.to_onnx(calibrated=True),
    ):
        with pytest.raises(InputError, match="Fit the update with y"):
            call()


# ---------------------------------------------------------------------------------------------
# The file


def test_a_file_without_the_field_still_loads():
    patch = Patch(content_of())
    tree = json.loads(patch.to_json())
    del tree["calibration"]
    tree["digest"] = content_digest(patch.content, absent=["calibration"])
    assert Patch.from_json(json.dumps(tree)) == patch


def test_the_map_is_read_back_printed_and_compared():
    one = Patch(replace(content_of(), calibration=map_of(0.5, upper=[(0.5, 0.3)])))
    other = Patch(replace(content_of(), calibration=map_of(0.5)))
    assert Patch.from_json(one.to_json()) == one
    assert "0.75 → 0.6500" in str(one) and "keeps every decision" in str(one)
    assert "Calibration map" in " ".join(one.diff(other))
    assert "lost its calibration map" in " ".join(one.diff(Patch(content_of())))
    assert one.diff(one) == []


@every_line(
    "knots, match",
    [
        ([(0, 0.1), (0.5, 0.5), (0.9, 1)], "from 0 to 1"),
        ([(0, 0.1), (0.5, 0.4), (1, 0.9)], "does not map the threshold"),
        ([(0, 0.1), (0.6, 0.6), (1, 0.9)], "does not map the threshold"),
        ([(0, 0.1), (0.5, 0.5), (0.6, 0.5), (1, 0.9)], "does not rise"),
        ([(0, 0.1), (0.5, 0.5), (0.5, 0.6), (1, 0.9)], "does not rise"),
        ([(0, 0.1), (0.5, 0.5), (0.500001, 0.6), (1, 0.9)], "steeper"),
        ([(0, -0.1), (0.5, 0.5), (1, 0.9)], "outside"),
        ([(0, 0.1), (1, 0.9)], "2 knots"),
    ],
)
def test_a_map_that_would_change_decisions_or_order_is_refused(knots, match):
    score_map = ScoreMap(tuple(ScoreKnot(float(s), float(p)) for s, p in knots), *FIGURES)
    with pytest.raises(InputError, match=match):
        Patch(replace(content_of(), calibration=score_map))


def test_figures_of_a_map_must_be_possible():
    for field, value in (("brier_after", 1.5), ("n_rows", 0), ("error_before", -0.1)):
        score_map = replace(map_of(0.5), **{field: value})
        with pytest.raises(InputError, match=field):
            Patch(replace(content_of(), calibration=score_map))


def test_verify_finds_a_knot_that_may_be_a_persons_score():
    X, groups = np.zeros((40, 1)), ["a", "b"] * 20
    for share, n in ((0.5, 0), (0.123456789, 1)):
        score_map = map_of(0.5, upper=[(share, 0.3)])
        patch = Patch(replace(content_of(), calibration=score_map))
        problems = patch.verify(X, groups).problems
        assert sum("calibration map" in problem for problem in problems) == n
