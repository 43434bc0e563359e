"""Scores in patches: which are edited, where changed ones go, and the gate `max_margin`.

Each engine must do the same to the last bit: the rule uses products and sums of doubles only.
"""

import math

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from patches import as_arrow, content_of, distance, distance_bins, number, reference

from commod.patch import Patch
from commod.scorecard import crossing_at, decide, edited_scores
from tables_of_cases import every_line

try:
    import onnxruntime
except ImportError:
    onnxruntime = None

THRESHOLDS = [0.5, 0.3, 0.9, 1e-6, 1e-14, 1 - 1e-9, 1 - 2e-15]


def scores_around(threshold, reach=0.2):
    """Return scores of every kind: the ends, the threshold and the gate with their neighbours."""
    near = [threshold, threshold - reach, threshold + reach, threshold / 2, (1 + threshold) / 2]
    steps = [math.nextafter(s, end) for s in near for end in (0.0, 1.0)]
    inside = [s for s in (*near, *steps) if 0 <= s <= 1]
    return np.array([0.0, 5e-324, 1e-300, 0.1, 0.7, math.nextafter(1, 0), 1.0, *inside])


def results(patch, table):
    """Yield the scores and the changes that each engine makes of a table."""
    pandas = patch.apply(table.to_pandas())
    yield pandas["commod_score"].to_numpy(), pandas["commod_changed"].to_numpy()
    polars = patch.apply(pl.from_arrow(table).lazy()).collect()
    yield polars["commod_score"].to_numpy(), polars["commod_changed"].to_numpy()
    with duckdb.connect() as connection:
        connection.register("people", table)
        query = connection.sql(patch.to_sql("duckdb", "people"))
        for frame in (patch.apply(connection.from_arrow(table)).pl(), query.pl()):
            frame = frame.sort("id")
            yield frame["commod_score"].to_numpy(), frame["commod_changed"].to_numpy()
    if onnxruntime is not None:
        session = onnxruntime.InferenceSession(patch.to_onnx().SerializeToString())
        score, _, changed = session.run(None, patch.onnx_inputs(pl.from_arrow(table)))
        yield score, changed


def check_alike(content, scores, **columns):
    table = as_arrow({"id": list(range(len(scores))), "score": scores.tolist(), **columns})
    expected = reference(content, table)
    for score, changed in results(Patch(content), table):
        np.testing.assert_array_equal(changed, expected.changed)
        np.testing.assert_allclose(score, expected.score, rtol=1e-12, atol=0)
        np.testing.assert_array_equal(score[~expected.changed], scores[~expected.changed])
        yield score, changed


# ---------------------------------------------------------------------------------------------
# Only changed scores are edited


@pytest.mark.parametrize("threshold", [1e-14, 1 - 2e-15])
def test_every_engine_leaves_kept_scores_alone_and_puts_changed_ones_across(threshold):
    scores = scores_around(threshold)
    sign = np.where(np.arange(len(scores)) % 3, -1.0, 1.0)
    content = content_of(
        number("x", 1.0), intercept=0.0, threshold=threshold, score_edit="changed_only"
    )
    expected = edited_scores(scores, sign, threshold, "changed_only")
    for score, _ in check_alike(content, scores, x=sign.tolist()):
        np.testing.assert_array_equal(score, expected)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=30),
    st.sampled_from(THRESHOLDS) | st.floats(1e-14, 1 - 1e-14),
)
def test_changed_scores_keep_their_order_on_the_right_side(scores, threshold):
    scores = np.sort(np.array([*scores, 0.0, 1.0]))
    changed = scores != threshold
    edited = edited_scores(scores, np.full(len(scores), -1.0), threshold, "changed_only")
    assert ((edited[changed] > threshold) == (scores[changed] < threshold)).all()
    assert (edited[changed] != threshold).all()
    assert ((edited >= 0) & (edited <= 1)).all()
    for rows in (scores < threshold, scores > threshold):
        assert (np.diff(edited[rows]) >= 0).all()
    width = 0.01 * np.where(scores < threshold, 1 - threshold, threshold)
    assert (np.abs(edited - threshold) <= width * (1 + 1e-9) + math.ulp(threshold))[changed].all()


@every_line("threshold", [1e-6, 0.01, 0.3, 0.5, 0.9, 0.9999])
def test_changed_scores_stay_on_their_side_in_single_precision(threshold):
    scores = scores_around(threshold)
    crossed = crossing_at(threshold).place(scores[scores != threshold]).astype(np.float32)
    was_above = scores[scores != threshold] > threshold
    assert ((crossed < np.float32(threshold)) == was_above).all()
    assert ((crossed > np.float32(threshold)) == ~was_above).all()


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(-2, 2)), min_size=1, max_size=30))
def test_decisions_do_not_depend_on_which_scores_are_edited(rows):
    scores, ratio = np.array(rows).T
    for threshold in (0.5, 0.2):
        decisions = decide(scores, ratio, threshold)
        for edit in ("all", "changed_only"):
            edited = edited_scores(scores, ratio, threshold, edit)
            assert ((edited > threshold) == decisions).all()


# ---------------------------------------------------------------------------------------------
# max_margin, and points for the distance


@pytest.mark.parametrize(
    ("threshold", "reach", "edit"),
    [(0.3, 0.1, "changed_only"), (0.7, 0.0, "all")],
)
def test_no_engine_changes_a_decision_beyond_max_margin(threshold, reach, edit):
    drawn = np.random.default_rng(0).random(30)
    scores = np.array([*drawn, *scores_around(threshold, reach)])
    content = content_of(intercept=-1.0, threshold=threshold, max_margin=reach, score_edit=edit)
    is_far = np.abs(scores - threshold) > reach
    table = as_arrow({"id": list(range(len(scores))), "score": scores.tolist()})
    for score, changed in results(Patch(content), table):
        np.testing.assert_array_equal(changed, ~is_far & (scores != threshold))
        np.testing.assert_array_equal(score[is_far], scores[is_far])


@pytest.mark.parametrize(
    "column", [distance(-5.0), distance_bins([0.05, 0.2], [-1.5, 0.25, -3.0])], ids=["unit", "bins"]
)
def test_every_engine_reads_the_distance_alike(column):
    scores = scores_around(0.3)
    content = content_of(column, intercept=1.0, threshold=0.3, score_edit="changed_only")
    n_changed = {int(changed.sum()) for _, changed in check_alike(content, scores)}
    assert len(n_changed) == 1 and 0 < n_changed.pop() < len(scores)


def test_a_row_without_score_has_no_distance_and_no_decision():
    content = content_of(distance(-9.0), intercept=-1.0, max_margin=0.3, score_edit="changed_only")
    table = as_arrow({"id": [0, 1, 2], "score": [math.nan, 1.5, 0.6]})
    for score, changed in results(Patch(content), table):
        assert changed.tolist() == [False, False, True]
        assert np.isnan(np.array(score, dtype=float)).tolist() == [True, True, False]


def test_the_page_of_a_patch_states_gate_distance_and_edit():
    columns = (distance_bins([0.1], [-2.0, 0.0]),)
    page = str(Patch(content_of(*columns, max_margin=0.2, score_edit="changed_only")))
    assert "if the score is at most 0.2 from the threshold" in page
    assert "distance from the threshold < 0.1" in page
    assert "base score where the decision stays" in page
    assert "to 0.5025 to 0.505 above, to 0.495 to 0.4975 below" in page
    assert "sigmoid" in str(Patch(content_of()))


def test_a_patch_with_a_distance_column_is_read_back():
    patch = Patch(content_of(distance(0.5), max_margin=0.25, score_edit="changed_only"))
    assert Patch.from_json(patch.to_json()) == patch
    other = Patch(content_of(distance_bins([0.1], [0.5, 0.0])))
    assert Patch.from_json(other.to_json()) == other
    text = " ".join(patch.diff(other))
    assert "in bins" in text and "Edited scores: changed_only → all." in text
