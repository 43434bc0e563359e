"""AUC by group and the area between ROC curves: values, intervals, and what is not defined."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import roc_auc_score, roc_curve

from commod.exceptions import DataWarning, InputError
from commod.metrics import abroca, compare_roc_curves, group_auc
from commod.metrics._roc import ResampledCurves, ScoreCells, score_cells
from tables_of_cases import every_line

SCORES = st.sampled_from([-math.inf, -2.5, 0.0, 0.25, 0.5, 1.0, math.inf])
PEOPLE = st.tuples(st.booleans(), SCORES, st.integers(1, 3))
BOTH = st.tuples(SCORES, SCORES)  # a person of each label, so that every group has a curve


@st.composite
def tables(draw, groups="ab"):
    """Draw labels, scores, groups and whole weights; every group has both labels."""
    rows = []
    for group in groups:
        first, second = draw(BOTH)
        own = [(True, first, 1), (False, second, 2), *draw(st.lists(PEOPLE, max_size=8))]
        rows += [(*row, group) for row in own]
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def brute_force(first, second, n=4_000):
    """Return the area between scikit-learn's curves by the midpoint rule."""
    t = (np.arange(n) + 0.5) / n
    a, b = (np.interp(t, *roc_curve(*own, drop_intermediate=False)[:2]) for own in (first, second))
    return np.abs(a - b).mean()


def finite(scores):
    """Return scores in the same order without infinity, which scikit-learn refuses."""
    return np.clip(scores, -99, 99)


@settings(max_examples=15)
@given(table=tables())
def test_areas_are_those_of_scikit_learn_and_of_brute_force(table):
    y, scores, weight, group = table
    repeated = np.repeat(np.arange(len(y)), weight)
    areas = group_auc(y, scores, sensitive_features=group, sample_weight=weight, pos_label=True)
    own = {g: (y[group == g], finite(scores[group == g]), weight[group == g]) for g in "ab"}
    for name, (labels, values, weights) in own.items():
        expected = roc_auc_score(labels, values, sample_weight=weights)
        assert areas[name].value == pytest.approx(expected)
    people = {
        g: (y[repeated][group[repeated] == g], finite(scores[repeated][group[repeated] == g]))
        for g in "ab"
    }
    given = {"sensitive_features": group, "pos_label": True}
    found = abroca(y, scores, sample_weight=weight, **given)
    assert found == pytest.approx(brute_force(people["a"], people["b"]), abs=3e-3)
    assert found >= abs(areas["a"].value - areas["b"].value) - 1e-12
    unweighted = abroca(
        y[repeated], scores[repeated], sensitive_features=group[repeated], pos_label=True
    )
    assert found == pytest.approx(unweighted)  # a weight is a number of people


@settings(max_examples=12)
@given(table=tables("abc"))
def test_the_largest_pair_counts_and_only_the_order_of_scores_does(table):
    y, scores, _, group = table

    def measured(kept, **changes):
        values = {"y_true": y, "scores": scores, **changes}
        rows = {name: np.asarray(value)[kept] for name, value in values.items()}
        return abroca(**rows, sensitive_features=group[kept], pos_label=True)

    everybody = np.ones(len(y), dtype=bool)
    pairs = [measured(group != left_out) for left_out in "abc"]
    assert measured(everybody) == max(pairs)
    assert measured(everybody, scores=np.arctan(scores) / 9) == measured(everybody)
    # the area between the curves is the same for the other label and its scores
    turned = measured(everybody, y_true=~y, scores=-scores)
    assert turned == pytest.approx(measured(everybody), abs=1e-12)


def test_curves_that_cross_inside_a_straight_line_are_integrated_exactly():
    # "a" is the diagonal; "b" goes from (0, 0) to (0, 1/2), to (1, 1/2), to (1, 1)
    y, scores = [1, 0, 1, 0, 1, 0], [5, 5, 9, 5, 1, 5]
    group = ["a"] * 2 + ["b"] * 4
    areas = group_auc(y, scores, sensitive_features=group)
    assert areas["a"].value == areas["b"].value == 0.5
    assert abroca(y, scores, sensitive_features=group) == 0.25


def test_a_group_with_one_label_is_named_and_left_out():
    y, scores = [0, 1, 0, 1, 1, 1], [0.1, 0.8, 0.3, 0.2, 0.5, 0.4]
    group = ["a", "a", "b", "b", "only ones", "only ones"]
    with pytest.warns(DataWarning, match="All people of only ones have the same true label"):
        assert math.isnan(abroca(y, scores, sensitive_features=group))
    with pytest.warns(DataWarning, match="only ones"):
        areas = group_auc(y, scores, sensitive_features=group)
    assert areas["a"].value == 1.0 and math.isnan(areas["only ones"].value)
    found = compare_roc_curves(y, scores, sensitive_features=group)
    assert found.undefined == ("only ones",)
    assert {found.largest.first, found.largest.second} == {"a", "b"}
    assert found.largest.value == 1.0
    alone = compare_roc_curves([0, 1], [0.2, 0.4], sensitive_features=["a", "a"])
    assert math.isnan(alone.largest.value) and alone.against_reference == {}


@every_line(
    "changes, parameter, message",
    [
        ({"y_true": None}, "y_true", "Pass the labels"),
        ({"scores": [0.1, math.nan, 0.3, 0.4]}, "scores", "1 missing value in 4 rows"),
        ({"scores": ["a", "b", "c", "d"]}, "scores", "must hold numbers; got"),
        ({"scores": [0.1, 0.2]}, "scores", "inconsistent numbers"),
        ({"y_true": [0, 1, 2, 1]}, "y_true", "3 different values"),
        ({"reference": "c"}, "reference", "is not a group"),
        ({"n_resamples": 3}, "n_resamples", "must be >= 100"),
        ({"level": 95.0}, "level", "must be < 1"),
    ],
)
def test_wrong_input_is_refused_with_its_name(changes, parameter, message):
    rows = {"y_true": [0, 1, 0, 1], "scores": [0.1, 0.2, 0.3, 0.4]}
    with pytest.raises(InputError, match=message) as raised:
        compare_roc_curves(**{**rows, "sensitive_features": list("aabb"), **changes})
    assert raised.value.parameter == parameter


def test_too_many_groups_are_refused_before_any_work():
    group = np.repeat(np.arange(101), 2)
    with pytest.raises(InputError, match="101 groups with both labels; at most 100"):
        compare_roc_curves([0, 1] * 101, np.arange(202), sensitive_features=group)


def test_results_depend_on_seed_and_people_and_not_on_their_order():
    random = np.random.default_rng(3)
    y, group = random.integers(0, 2, 200), random.choice(["a", "b", "c"], 200)
    scores = np.round(y + random.normal(size=200), 1)
    order = random.permutation(200)
    found = compare_roc_curves(y, scores, sensitive_features=group)
    shuffled = compare_roc_curves(y[order], scores[order], sensitive_features=group[order])
    assert found == shuffled
    other = compare_roc_curves(y, scores, sensitive_features=group, random_state=1)
    assert other.largest.value == found.largest.value and other.largest.high != found.largest.high
    largest = max(found.against_reference.values(), key=lambda gap: gap.value)
    assert largest.value <= found.largest.value == abroca(y, scores, sensitive_features=group)


def test_weights_of_two_are_two_people_and_uneven_ones_widen_intervals():
    random = np.random.default_rng(5)
    y, scores = random.integers(0, 2, 300), random.normal(size=300)
    group = random.choice(["a", "b"], 300)
    twice = np.tile(np.arange(300), 2)
    repeated = compare_roc_curves(y[twice], scores[twice], sensitive_features=group[twice])
    once = compare_roc_curves(y, scores, sensitive_features=group, sample_weight=np.full(300, 7.0))
    assert once.largest.value == pytest.approx(repeated.largest.value)
    assert once.largest.chance > 1.2 * repeated.largest.chance  # a weight is no more people
    uneven = random.exponential(size=300) ** 2
    areas = group_auc(y, scores, sensitive_features=group, sample_weight=uneven)
    even = group_auc(y, scores, sensitive_features=group)
    for name in "ab":
        assert areas[name].high - areas[name].low > even[name].high - even[name].low


# -- intervals -------------------------------------------------------------------------------------


def curve_of(shift):
    """Return the true ROC curve of normal scores that are `shift` apart, on a grid."""
    t = (np.arange(5000) + 0.5) / 5000
    return norm.sf(norm.isf(t) - shift)


def simulate(random, sizes, shifts, n_positive=0.4):
    cells = []
    for n, shift in zip(sizes, shifts, strict=True):
        y = np.arange(n) < n_positive * n
        codes = np.zeros(n, dtype=np.intp)
        cells += score_cells(random.normal(size=n) + shift * y, y, codes, 1)
    return cells


@pytest.mark.parametrize(
    ("sizes", "shifts"),
    [((50, 50), (1, 1)), ((400, 60), (1, 1.6)), ((60, 60), (1, 0)), ((60, 40), (3, 3))],
    ids=["equal", "unequal", "far apart", "nearly perfect"],
)
def test_intervals_of_areas_hold_and_chance_is_what_equal_curves_give(sizes, shifts):
    truth = [curve_of(shift) for shift in shifts]
    area, n = np.abs(truth[0] - truth[1]).mean(), 60
    random = np.random.default_rng(11)
    gaps, under = [], []
    for _ in range(n):
        cells = simulate(random, sizes, shifts)
        gaps.append(ResampledCurves.of(cells, 150, np.random.RandomState(0)).gap(0, 1, 0.95))
        own = cells[1].area(0.95)
        under.append(own.low <= truth[1].mean() <= own.high)
    n_held = sum(gap.area.low <= area <= gap.area.high for gap in gaps)
    assert n_held >= 52  # below 1 % where 0.95 hold
    assert sum(under) >= 52
    if area == 0:
        mean = np.mean([gap.area.value for gap in gaps])
        # the added people make small samples a little more uncertain than they are
        assert (
            mean * 0.8 < np.mean([gap.chance for gap in gaps]) < mean * (1.4 if mean > 0.05 else 4)
        )


def test_the_largest_of_many_pairs_is_not_taken_for_a_difference():
    random = np.random.default_rng(2)
    n_clear = n_small = 0
    for _ in range(30):
        cells = simulate(random, [60] * 6, [1] * 6)
        resampled = ResampledCurves.of(cells, 100, np.random.RandomState(0))
        _, largest = resampled.largest_gap(resampled.all_pairs(), 0.95)
        n_clear += largest.area.low > 0
        n_small += resampled.gap(0, 1, 0.95).area.value < largest.area.value
    assert n_clear <= 4 and n_small >= 22


def test_defaults_are_those_that_are_documented():
    random = np.random.default_rng(8)
    y, scores = random.integers(0, 2, 90), random.random(90).round(1)
    group = np.repeat(["a", "b", "c"], [20, 40, 30])
    people = {"sensitive_features": group}
    told = {"level": 0.95, "n_resamples": 400, "random_state": 0, "pos_label": 1}
    found = compare_roc_curves(y, scores, **people)
    assert found == compare_roc_curves(y, scores, **people, **told, reference="b")
    assert found.reference == "b" and set(found.against_reference) == {"a", "c"}
    by_weight = compare_roc_curves(y, scores, **people, sample_weight=np.where(group == "a", 5, 1))
    assert by_weight.reference == "a"
    areas = group_auc(y, scores, **people)
    assert areas == found.by_group == group_auc(y, scores, **people, level=0.95, pos_label=1)
    turned = group_auc(y, -scores, **people, pos_label=0)
    assert {g: a.value for g, a in turned.items()} == pytest.approx(
        {g: a.value for g, a in areas.items()}
    )


def test_cells_are_merged_to_at_most_the_number_that_is_asked_for():
    positive, negative = np.array([4.0, 0, 2, 1, 3]), np.array([0.0, 5, 1, 2, 2])
    cells = ScoreCells.of_counts(positive, negative)
    assert cells.merged(5) is cells
    for n in (4, 2, 1):
        merged = cells.merged(n)
        assert 1 <= len(merged.positive) <= n
        assert (merged.positive.sum(), merged.negative.sum()) == (10, 10)
        assert merged.area(0.95).value <= 1
    assert cells.merged(1).area(0.95).value == 0.5
    # half of the people of each label are in the upper half of the cells, ties at the middle
    assert cells.merged(2).positive.tolist() == [4.0, 6.0]
    assert cells.merged(2).negative.tolist() == [5.0, 5.0]
    one, two = (ScoreCells.of_counts(np.array([n, 0.0]), np.array([1.0, 3.0])) for n in (1.0, 2.0))
    assert one.area(0.95).low is None and two.area(0.95).low is not None


def test_the_number_of_people_of_uneven_weights_is_smaller():
    weight = np.array([3.0, 1.0, 2.0])
    (cells,) = score_cells(np.arange(3.0), np.ones(3, dtype=bool), np.zeros(3, np.intp), 1, weight)
    assert cells.n_positive == pytest.approx(36 / 14) and cells.n_negative == 0
    assert not cells.has_both and cells.area(0.95).value is None
    (none,) = score_cells(np.arange(3.0), np.ones(3, bool), np.zeros(3, np.intp), 1, np.zeros(3))
    assert none.n_positive == 0
