"""The map from edited scores to probabilities: it rises, keeps decisions and is near the labels."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from commod._statistics.score_map import (
    MIN_SLOPE,
    _rising_values,
    brier_score,
    learn_score_map,
    map_scores,
    reliability_error,
    too_few_text,
)

THRESHOLDS = [0.5, 0.3, 0.97, 1e-5, 1e-14, 1 - 1e-9, 1 - 2e-15]


@st.composite
def tables(draw):
    """Draw scores with ties, one-sided scores and scores at the ends, labels and weights."""
    seed, n = draw(st.integers(0, 10**6)), draw(st.integers(20, 300))
    random = np.random.default_rng(seed)
    threshold = draw(st.sampled_from(THRESHOLDS) | st.floats(1e-10, 1 - 1e-10))
    power = draw(st.sampled_from([0.2, 1.0, 5.0]))
    scores = random.random(n) ** power
    kind = draw(st.sampled_from(["any", "above", "below", "few values", "near"]))
    if kind == "above":
        scores = threshold + (1 - threshold) * scores
    elif kind == "below":
        scores = threshold * scores
    elif kind == "few values":
        scores = random.choice([0.0, threshold, 0.4, 0.6, 1.0], n)
    elif kind == "near":
        steps = random.integers(-3, 4, n) * math.ulp(threshold)
        scores = np.clip(threshold + steps, 0, 1)
    label = random.random(n) < scores ** draw(st.sampled_from([0.3, 1.0, 4.0]))
    label[:10] = np.arange(10) % 2
    weight = random.choice([1.0, 1e-3, 1e3], n) if draw(st.booleans()) else np.ones(n)
    return scores, label, weight, threshold


@given(tables(), st.booleans())
@settings(deadline=None, max_examples=60)
def test_a_learned_map_rises_and_keeps_every_decision(table, has_landmarks):
    scores, label, weight, threshold = table
    marks = (threshold * 0.99, threshold + (1 - threshold) * 0.01) if has_landmarks else ()
    learned = learn_score_map(scores, scores, label, weight, threshold, marks)
    knots = np.array([(knot.score, knot.probability) for knot in learned.knots])
    assert (knots[0, 0], knots[-1, 0]) == (0, 1) and len(knots) <= 21
    assert (np.diff(knots, axis=0) > 0).all()
    assert knots[0, 1] >= 0 and knots[-1, 1] <= 1
    assert learned.threshold_knot(threshold) is not None
    steps = [math.nextafter(s, end) for s in (threshold, *knots[:, 0]) for end in (0.0, 1.0)]
    asked = np.sort([*scores, *knots[:, 0], *steps])
    mapped = map_scores(learned, asked, threshold)
    assert (np.diff(mapped) >= 0).all()
    assert (np.sign(mapped - threshold) == np.sign(asked - threshold)).all()
    slopes = np.diff(knots[:, 1]) / np.diff(knots[:, 0])
    width = np.diff(knots[:, 0])
    wide = width > 1e-9
    least = MIN_SLOPE * (1 - 1e-6) - 1e-9 / width  # probabilities of knots have nine digits
    assert (slopes >= least)[wide].all() and (slopes <= 1001 + 1e-9 / width)[wide].all()


@given(tables())
@settings(deadline=None, max_examples=20)
def test_the_unit_of_the_weights_does_not_matter_and_equal_rows_give_an_equal_map(table):
    scores, label, weight, threshold = table
    one = learn_score_map(scores, scores, label, weight, threshold)
    other = learn_score_map(scores, scores, label, 1024 * weight, threshold)
    assert one == other == learn_score_map(scores, scores, label, weight, threshold)


@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from([0.5, 0.2]))
@settings(deadline=None, max_examples=15)
def test_values_are_those_of_constrained_least_squares(seed, m, room):
    random = np.random.default_rng(seed)
    ends = np.array([0.0, *np.sort(random.random(m - 1)) * 0.9 * room, room])
    distance, target = random.random(200) * room, random.normal(0.2, 0.5, 200)
    ramps = np.clip((distance[:, None] - ends[:-1]) / np.diff(ends), 0, 1)
    moment = ramps.T @ (target - MIN_SLOPE * distance)
    values = _rising_values(ramps.T @ ramps, moment, ends)

    def loss(v):
        line = np.interp(distance, ends, [0.0, *v])
        return ((line - target) ** 2).sum() + ((v - ends[1:]) ** 2).sum()

    rises = np.eye(m) - np.eye(m, k=-1)
    least = LinearConstraint(rises, lb=MIN_SLOPE * np.diff(ends))
    best = minimize(loss, ends[1:], method="SLSQP", constraints=[least], tol=1e-12)
    if best.x[-1] <= room:  # beyond the end of the scores values are cut off
        assert loss(values) <= best.fun + 1e-6
    assert values[-1] <= room


def test_out_of_fold_figures_are_those_of_new_people():
    def people(seed):
        random = np.random.default_rng(seed)
        scores = random.random(3000)
        return scores, random.random(3000) < 0.05 + 0.9 * scores**3

    (scores, label), (new_scores, new_label) = people(0), people(1)
    learned = learn_score_map(scores, scores, label, np.ones(3000), 0.5)
    probability = map_scores(learned, new_scores, 0.5)
    assert learned.brier_after - learned.brier_calibrated > 0.02
    assert brier_score(probability, new_label) == pytest.approx(learned.brier_calibrated, abs=0.01)
    assert learned.brier_after == pytest.approx(brier_score(scores, label), rel=1e-5)  # six digits
    below = new_scores < 0.5  # above, the threshold holds many people back
    assert reliability_error(probability[below], new_label[below], np.ones(below.sum())) < 0.03


def test_figures_of_small_tables_are_not_those_of_the_rows_that_taught_the_map():
    excess = []
    for seed in range(12):
        random = np.random.default_rng(seed)
        scores, label = random.random(120), random.random(120) < 0.5
        learned = learn_score_map(scores, scores, label, np.ones(120), 0.5)
        seen = brier_score(map_scores(learned, scores, 0.5), label)
        excess.append(learned.brier_calibrated - seen)
    assert np.mean(excess) > 1e-4  # exactly 0 if a fold taught its own map


def test_labels_that_carry_no_order_do_not_bend_the_map_much():
    random = np.random.default_rng(0)
    scores, label = random.random(4000), random.random(4000) < 0.5
    learned = learn_score_map(scores, scores, label, np.ones(4000), 0.5)
    assert learned.brier_calibrated == pytest.approx(0.25, abs=0.003)
    assert len(learned.knots) < 12


def test_knots_hold_enough_people_and_no_persons_score():
    random = np.random.default_rng(0)
    scores = random.random(400) ** 2
    label = random.random(400) < scores
    learned = learn_score_map(scores, scores, label, np.ones(400), 0.37)
    inner = [k.score for k in learned.knots if k.score not in (0.36926, 0.37, 0.37126)]
    assert all(float(f"{s:.3g}") == s for s in inner)
    edges = [s for s in (k.score for k in learned.knots) if s not in (0.36926, 0.37126)]
    counts, _ = np.histogram(scores, edges)
    assert len(edges) > 3 and counts.min() >= 19  # rounding may move one person


@pytest.mark.parametrize(
    "label, text",
    [
        (None, "without true labels"),
        (np.ones(100, dtype=bool), "100 and 0 people"),
        (np.arange(100) < 4, "4 and 96 people"),
        (np.arange(16) < 8, "20 in all"),
        (np.arange(20) < 5, ""),
    ],
)
def test_too_few_labels_are_a_reason(label, text):
    assert text in too_few_text(label) and bool(text) == bool(too_few_text(label))
