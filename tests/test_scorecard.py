"""The decision rule holds at every threshold, and a scorecard survives JSON to the last bit."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import numpy as np
import pandas as pd
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import logit

from commod._data.columns import Column, read_columns
from commod._data.encoding import BinTerms, CategoryTerms, Encoding, NumericTerms
from commod.scorecard import Scorecard, decide, edited_scores, logit_of, margins

quick = settings(deadline=None, max_examples=60)
thresholds = st.one_of(st.just(0.5), st.floats(0.01, 0.99))
ratios = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e6, -1e6, 1e-300, -1e-300]),
    st.floats(-3, 3),
    st.floats(-1e6, 1e6),
)


@st.composite
def rows(draw, ratio=ratios):
    """A threshold, scores that like to sit on it or at the ends, and ratios: (t, f, r)."""
    threshold = draw(thresholds)
    special = [0.0, 1.0, threshold, math.nextafter(threshold, 0), math.nextafter(threshold, 1)]
    score = st.one_of(st.sampled_from(special), st.floats(0, 1))
    pairs = draw(st.lists(st.tuples(score, ratio), min_size=1, max_size=20))
    scores, values = (np.array(column) for column in zip(*pairs, strict=True))
    return threshold, scores, values


# ---------------------------------------------------------------------------------------------
# The decision rule


@given(rows())
@quick
def test_a_decision_changes_exactly_where_r_is_negative_and_the_score_is_off_the_threshold(case):
    threshold, scores, ratio = case
    before = scores > threshold
    decided, edited = decide(scores, ratio, threshold), edited_scores(scores, ratio, threshold)
    changed = decided != before
    assert changed.tolist() == ((ratio < 0) & (scores != threshold)).tolist()
    assert (edited > threshold).tolist() == decided.tolist()
    assert ((edited >= 0) & (edited <= 1)).all()
    for nothing in (1.0, 0.0, -0.0):  # 1 keeps every bit of a score, too
        constant = np.full(len(scores), nothing)
        assert decide(scores, constant, threshold).tolist() == before.tolist()
    ones = np.ones(len(scores))
    assert edited_scores(scores, ones, threshold).tolist() == scores.tolist()


@given(rows())
@settings(deadline=None, max_examples=20)
def test_the_mean_squared_distance_of_r_from_1_is_never_below_the_share_of_changes(case):
    threshold, scores, ratio = case
    changed = decide(scores, ratio, threshold) != (scores > threshold)
    assert np.mean((ratio - 1) ** 2) >= changed.mean()


def test_ratio_one_changes_nothing_at_any_threshold():
    scores = np.concatenate([np.linspace(0, 1, 201), np.arange(1, 100) / 100])
    ones = np.ones(len(scores))
    for threshold in np.arange(1, 100) / 100:
        assert np.array_equal(decide(scores, ones, threshold), scores > threshold)
        assert np.array_equal(edited_scores(scores, ones, threshold), scores)


@given(thresholds, ratios)
@quick
def test_a_score_on_the_threshold_never_changes(threshold, ratio):
    scores, ratio = np.array([threshold]), np.array([ratio])
    assert margins(scores, threshold).tolist() == [0.0]
    assert decide(scores, ratio, threshold).tolist() == [False]
    assert edited_scores(scores, ratio, threshold)[0] <= threshold


@given(rows(ratio=st.floats(-3, 3)))
@quick
def test_the_edited_score_is_the_sigmoid_of_the_edited_margin(case):
    threshold, scores, ratio = case
    inside = np.clip(scores, 1e-9, 1 - 1e-9)
    odds = np.log(inside / (1 - inside)) - math.log(threshold / (1 - threshold))
    exponent = np.clip(ratio * odds, -30, 30) + math.log(threshold / (1 - threshold))
    expected = 1 / (1 + np.exp(-exponent))
    np.testing.assert_allclose(edited_scores(inside, ratio, threshold), expected, atol=1e-7)


@given(st.lists(st.floats(0.001, 0.999), min_size=2, max_size=10), st.floats(0.01, 50), thresholds)
@example([0.5, 0.5 + 1e-16], 3.0, 0.5)
@quick
def test_a_common_positive_ratio_keeps_the_order_of_the_people(scores, ratio, threshold):
    scores = np.sort(scores)
    edited = edited_scores(scores, np.full(len(scores), ratio), threshold)
    assert (np.diff(edited) >= 0).all()


# ---------------------------------------------------------------------------------------------
# The table of points


ENCODING = Encoding(
    (
        NumericTerms("age", fill=40.0, has_missing_term=True),
        CategoryTerms("town", ("Paris", None)),
        CategoryTerms("flag", (False, True)),
    )
)
PEOPLE = read_columns(
    pd.DataFrame(
        {
            "age": [30.0, np.nan, 50.0],
            "town": ["Paris", None, "Oslo"],
            "flag": [True, False, True],
        }
    )
)


def scorecard(points, intercept=1.0, contributions=(1.0,), starts=None, encoding=ENCODING):
    points = np.atleast_2d(np.array(points, dtype=np.float64))
    return Scorecard(
        encoding=encoding,
        intercept=intercept,
        contributions=np.array(contributions, dtype=np.float64),
        concept_points=points,
        concept_intercepts=np.zeros(len(points)) if starts is None else np.array(starts),
    )


TWO_CONCEPTS = scorecard(
    [[0.5, 0, -1, 0, 0, 0], [0, 2, 0, 4, 0, -3]],
    intercept=0.25,
    contributions=[0.1, -0.5],
    starts=[-20.0, 1.0],
)


def test_the_ratio_is_the_intercept_and_the_points_of_the_row():
    card = scorecard([-0.01, 0.2, 0.5, -0.5, 0.0, -2.0], intercept=1.5)
    expected = [1.5 - 0.3 + 0.5 - 2, 1.5 - 0.4 + 0.2 - 0.5, 1.5 - 0.5 - 2]
    np.testing.assert_allclose(card.ratio(PEOPLE), expected, rtol=1e-12)


def test_a_scorecard_without_points_is_exactly_its_intercept():
    assert scorecard([0.0] * 6, intercept=1.0).ratio(PEOPLE).tolist() == [1.0, 1.0, 1.0]


def test_the_points_are_the_weighted_points_of_the_concepts():
    expected = [0.05, -1.0, -0.1, -2.0, 0.0, 1.5]
    np.testing.assert_allclose(TWO_CONCEPTS.points, expected, rtol=1e-12)


def test_concepts_are_tables_whose_weighted_sum_moves_the_ratio():
    concepts = TWO_CONCEPTS.concepts(PEOPLE)
    assert concepts.shape == (3, 2)
    assert concepts[0].tolist() == [-20 + 15 - 1, 1 - 3]
    moved = (concepts - TWO_CONCEPTS.concept_intercepts) @ TWO_CONCEPTS.contributions
    np.testing.assert_allclose(TWO_CONCEPTS.ratio(PEOPLE), 0.25 + moved, rtol=1e-12)


def test_lines_and_columns_without_points_are_not_counted():
    card = scorecard([0.0, 0.2, 0.0, 0.0, 0.0, -2.0])
    assert card.n_terms_used == 2
    assert card.columns_used == ["age", "flag"]
    assert card.rows() == [("age is missing", 0.2), ("flag = True", -2.0)]


def test_what_is_in_use_gives_the_same_r_and_the_same_concepts():
    unweighted = replace(TWO_CONCEPTS, contributions=np.array([0.5, 0.0]))
    for card in (TWO_CONCEPTS, unweighted):
        short, both = card.in_use(), card.in_use(concepts=True)
        assert [c.name for c in short.encoding.columns] == card.columns_used
        for kept in (short, both):
            assert kept.ratio(PEOPLE).tolist() == card.ratio(PEOPLE).tolist()
        assert both.concepts(PEOPLE).tolist() == card.concepts(PEOPLE).tolist()
    assert len(both.encoding.columns) > len(short.encoding.columns)


def test_the_lines_of_one_concept_can_be_listed():
    assert TWO_CONCEPTS.rows(0) == [("age", 0.5), ("town = Paris", -1.0)]


def test_the_points_do_not_depend_on_how_the_array_lies_in_memory():
    rng = np.random.default_rng(0)
    names = tuple(str(i) for i in range(40))
    encoding = Encoding((CategoryTerms("town", names),))
    card = scorecard(rng.normal(size=(5, 40)), contributions=rng.normal(size=5), encoding=encoding)
    turned = replace(card, concept_points=np.asfortranarray(card.concept_points))
    assert turned.points.tolist() == card.points.tolist()


def test_a_scorecard_equals_its_copy_and_no_other():
    assert copy.deepcopy(TWO_CONCEPTS) == TWO_CONCEPTS
    assert replace(TWO_CONCEPTS, intercept=0.5) != TWO_CONCEPTS
    assert TWO_CONCEPTS != "a scorecard"


# ---------------------------------------------------------------------------------------------
# What it looks like


def test_the_table_shows_the_points_on_the_raw_columns_first():
    assert repr(TWO_CONCEPTS).splitlines() == [
        "r(x) = +0.25 and points (a decision changes where r < 0)",
        "  age                 +0.0500 per unit",
        "  age is missing      -1.0000",
        "  town = Paris        -0.1000",
        "  town is missing     -2.0000",
        "  flag = True         +1.5000",
        "concept 0, weight +0.1 in r: -20 and points",
        "  age              +0.5000 per unit",
        "  town = Paris     -1.0000",
        "concept 1, weight -0.5 in r: +1 and points",
        "  age is missing      +2.0000",
        "  town is missing     +4.0000",
        "  flag = True         -3.0000",
    ]


def test_points_of_a_large_number_do_not_look_like_nothing():
    card = scorecard([1.25e-5], encoding=Encoding((NumericTerms("income", 0.0, False),)))
    assert "+1.25e-05 per unit" in repr(card)


def test_bins_are_lines_of_their_own_and_not_per_unit():
    bins = BinTerms("age", (25.0, 45.0), has_missing_term=True)
    card = scorecard([0.5, 0.0, -1.0, 2.0], encoding=Encoding((bins,)))
    assert repr(card).splitlines()[1:5] == [
        "  age < 25           +0.5000",
        "  age ≥ 45           -1.0000",
        "  age is missing     +2.0000",
        "concept 0, weight +1 in r: +0 and points",
    ]
    assert card.columns_used == ["age"]
    people = [Column("age", "numeric", np.array([24.9, 25.0, 45.0, np.nan]))]
    assert card.ratio(people).tolist() == [1.5, 1.0, 0.0, 3.0]


def test_a_concept_without_weight_is_not_shown():
    card = replace(TWO_CONCEPTS, contributions=np.array([0.1, 0.0]))
    assert "concept 0" in repr(card)
    assert "concept 1" not in repr(card)


def test_a_concept_without_points_does_not_break_the_table():
    card = scorecard([[1.0, 0, 0, 0, 0, 0], [0.0] * 6], contributions=[1.0, 1.0])
    assert "concept 1, weight +1" in repr(card)


def test_a_scorecard_without_points_says_what_it_does():
    for intercept, words in [
        (1.0, "r = 1, no points: no decision changes."),
        (-0.5, "r = -0.5, no points: every decision changes."),
    ]:
        assert repr(scorecard([0.0] * 6, intercept=intercept)) == words


def test_margins_are_zero_at_the_threshold_and_finite_at_the_ends():
    z = margins(np.array([0.0, 0.3, 1.0]), 0.3)
    assert z[0] < z[1] == 0 < z[2]
    assert np.isfinite(z).all()


@quick
@given(st.floats(1e-15, 1 - 1e-15))
@example(0.3)
@example(0.65)
@example(1e-15)
@example(1 - 1e-15)
def test_the_logit_of_a_number_has_the_bits_of_the_logit_of_an_array(share):
    assert logit_of(share) == logit(np.array([share])).item()


def test_at_one_half_the_margin_is_the_logit():
    np.testing.assert_allclose(margins(np.array([0.8]), 0.5), [math.log(4)])


def test_a_scorecard_reads_new_rows_with_unseen_categories():
    card = scorecard([0.0, 0.0, 5.0, 7.0, 0.0, 0.0])
    people = pd.DataFrame({"age": [1.0], "town": ["Rome"], "flag": [True]})
    assert card.ratio(read_columns(people)).tolist() == [1.0]
