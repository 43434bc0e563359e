"""Fairness, change and score metrics: against brute force, Fairlearn and plain sense."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import cycle

import fairlearn.metrics as fl
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from commod._words.shared import LEAST_LEFT, MAX_ALIKE, NEARLY_ALIKE
from commod.exceptions import InputError
from commod.metrics import (
    ChangeCounts,
    change_locality,
    change_rate,
    count_changes,
    disparate_mistreatment,
    fairness_value,
    false_positive_rate_difference,
    group_rates,
    p_rule,
    score_agreement,
    true_positive_rate_difference,
)
from commod.metrics._changes import is_degenerate
from commod.metrics._people import group_shares
from tables_of_cases import every_line

FAIRNESS = {
    "demographic_parity": p_rule,
    "equalized_odds": disparate_mistreatment,
    "true_positive_rate_parity": true_positive_rate_difference,
    "false_positive_rate_parity": false_positive_rate_difference,
}
every_fairness_metric = every_line("metric", FAIRNESS.values())
every_gap = every_line("metric", list(FAIRNESS.values())[1:])

quick = settings(max_examples=30)
binary = st.integers(0, 1)
counts = st.integers(0, 3)
score = st.integers(0, 8).map(lambda v: v / 8)  # few values, so that ties are common


@st.composite
def tables(draw, weight=counts, fill_cells=False):
    """Columns y_true, y_pred, group, weight; on demand with every group and cell occupied."""
    groups = "abcd"[: draw(st.integers(2, 4))]
    rows = draw(
        st.lists(
            st.tuples(binary, binary, st.sampled_from(groups), weight), min_size=1, max_size=25
        )
    )
    if fill_cells:
        rows += [(y, draw(binary), group, draw(weight)) for group in groups for y in (0, 1)]
    else:
        rows += [(1, 1, "a", 1)]  # some weight, whatever was drawn
    y_true, y_pred, group, weights = zip(*rows, strict=True)
    return np.array(y_true), np.array(y_pred), np.array(group), np.array(weights)


def same(a, b):
    """Equal up to rounding, NaN being equal to NaN."""
    return a == pytest.approx(b, rel=1e-9, abs=1e-12, nan_ok=True)


# ---------------------------------------------------------------------------------------------
# Fairness: against other computations


def exact_rates(y_pred, group, weight, rows):
    """Selection rate of each group among `rows`, in fractions; None for a group without weight."""
    rates = []
    for label in sorted(set(group)):
        mine = [i for i in range(len(group)) if group[i] == label and rows[i]]
        total = sum(Fraction(int(weight[i])) for i in mine)
        hits = sum(Fraction(int(weight[i])) for i in mine if y_pred[i] == 1)
        rates.append(hits / total if total else None)
    return rates


def exact_gap(rates):
    return None if None in rates or len(rates) < 2 else max(rates) - min(rates)


@quick
@given(tables())
def test_p_rule_is_the_correctly_rounded_exact_ratio(table):
    _, y_pred, group, weight = table
    rates = exact_rates(y_pred, group, weight, np.ones(len(group), bool))
    value = p_rule(None, y_pred, sensitive_features=group, sample_weight=weight)
    if None in rates or len(rates) < 2 or not any(rates):
        assert math.isnan(value)
    else:
        assert value == float(min(rates) / max(rates))
    by_name = fairness_value(
        "demographic_parity", None, y_pred, sensitive_features=group, sample_weight=weight
    )
    assert by_name == value or (math.isnan(by_name) and math.isnan(value))


@quick
@given(tables())
def test_differences_are_the_correctly_rounded_exact_gaps(table):
    y_true, y_pred, group, weight = table
    tpr = exact_gap(exact_rates(y_pred, group, weight, y_true == 1))
    fpr = exact_gap(exact_rates(y_pred, group, weight, y_true == 0))
    expected = {
        "true_positive_rate_parity": tpr,
        "false_positive_rate_parity": fpr,
        "equalized_odds": None if None in (tpr, fpr) else tpr + fpr,
    }
    for name, gap in expected.items():
        people = {"sensitive_features": group, "sample_weight": weight}
        value = FAIRNESS[name](y_true, y_pred, **people)
        assert math.isnan(value) if gap is None else value == float(gap)
        by_name = fairness_value(name, y_true, y_pred, **people)
        assert by_name == value or (math.isnan(by_name) and math.isnan(value))


@settings(max_examples=6)  # Fairlearn is slow
@given(tables(weight=st.floats(0.01, 100), fill_cells=True))
def test_rates_and_values_equal_fairlearns_where_every_cell_has_rows(table):
    y_true, y_pred, group, weight = table
    frame = fl.MetricFrame(
        metrics={
            "selection_rate": fl.selection_rate,
            "tpr": fl.true_positive_rate,
            "fpr": fl.false_positive_rate,
        },
        y_true=y_true,
        y_pred=y_pred,
        sensitive_features=group,
        sample_params={
            name: {"sample_weight": weight} for name in ("selection_rate", "tpr", "fpr")
        },
    )
    shared = {"sensitive_features": group, "sample_weight": weight}
    gap = frame.difference()
    assert same(p_rule(y_true, y_pred, **shared), frame.ratio()["selection_rate"])
    assert same(true_positive_rate_difference(y_true, y_pred, **shared), gap["tpr"])
    assert same(false_positive_rate_difference(y_true, y_pred, **shared), gap["fpr"])
    assert same(disparate_mistreatment(y_true, y_pred, **shared), gap["tpr"] + gap["fpr"])
    for name, metric in FAIRNESS.items():  # weights of any size leave values in their range
        value = metric(y_true, y_pred, sensitive_features=group, sample_weight=weight**9)
        assert 0 <= value <= (2 if name == "equalized_odds" else 1) or math.isnan(value)
    ours = group_rates(y_true, y_pred, **shared)
    for label, theirs in frame.by_group.to_dict("index").items():
        assert ours[label]["n"] == sum(group == label)
        for name, value in theirs.items():
            assert same(ours[label][name], value)


def test_a_p_rule_of_exactly_four_fifths_passes_the_80_percent_rule():
    # In floats (4 / 25) / (1 / 5) is 0.7999999999999999.
    y_pred = [1] * 4 + [0] * 21 + [1] + [0] * 4
    group = ["a"] * 25 + ["b"] * 5
    assert p_rule(None, y_pred, sensitive_features=group) == 0.8


def test_a_difference_is_rounded_once():
    # In floats 0.4 - 0.1 is 0.30000000000000004, which would miss a ceiling of 0.3.
    y_pred = [1] * 4 + [0] * 6 + [1] + [0] * 9
    group = ["a"] * 10 + ["b"] * 10
    value = true_positive_rate_difference([1] * 20, y_pred, sensitive_features=group)
    assert value == 0.3


# ---------------------------------------------------------------------------------------------
# Fairness: labels and groups of every kind


LABELS = [("no", "yes"), ("yes", "no"), (False, True), (-1, 1), (1, 0), (0.0, 1.0), ("a", "b" * 9)]
CONTAINERS = [list, np.array, pd.Series, pl.Series]


@every_line(
    "labels, container, metric", zip(LABELS, cycle(CONTAINERS), cycle([*FAIRNESS.values(), p_rule]))
)
def test_labels_of_any_kind_count_the_positive_one(labels, container, metric):
    (negative, positive), group = labels, list("aaaabbbbb")
    y_true = np.array([1, 1, 0, 0, 1, 1, 1, 0, 0])
    y_pred = np.array([1, 0, 1, 0, 1, 1, 0, 0, 0])

    def coded(labels):
        return container([positive if v else negative for v in labels.tolist()])

    value = metric(coded(y_true), coded(y_pred), sensitive_features=group, pos_label=positive)
    assert value == metric(y_true, y_pred, sensitive_features=group)
    opposite = metric(coded(y_true), coded(y_pred), sensitive_features=group, pos_label=negative)
    assert opposite == metric(1 - y_true, 1 - y_pred, sensitive_features=group)


@every_line("frame", [pd.DataFrame, pl.DataFrame])
def test_several_sensitive_columns_mean_their_intersections(frame):
    columns = frame({"sex": list("ffmmffmm"), "race": list("abababab")})
    y_pred = [1, 1, 1, 1, 1, 0, 1, 0]
    both = ["fa", "fb", "ma", "mb"] * 2
    table = group_rates(None, y_pred, sensitive_features=columns)
    assert list(table) == [("f", "a"), ("f", "b"), ("m", "a"), ("m", "b")]
    assert table[("m", "b")]["selection_rate"] == 0.5
    assert p_rule(None, y_pred, sensitive_features=columns) == p_rule(
        None, y_pred, sensitive_features=both
    )


def test_p_rule_ignores_the_true_labels_even_of_another_length():
    assert p_rule([7, 8, 9], [1, 0, 1, 1], sensitive_features=[0, 0, 1, 1]) == 0.5
    assert (
        fairness_value("demographic_parity", "x", [1, 0, 1, 1], sensitive_features=[0, 0, 1, 1])
        == 0.5
    )


def test_group_rates_by_hand():
    table = group_rates(
        [1, 1, 0, 0, 1],
        [1, 0, 1, 1, 1],
        sensitive_features=["a", "a", "a", "a", "b"],
        sample_weight=[1, 3, 2, 2, 5],
    )
    assert list(table) == ["a", "b"]
    assert table["a"] == {
        "n": 4,
        "selection_rate": 0.625,
        "tpr": 0.25,
        "fpr": 1.0,
        "accuracy": 0.125,
    }
    assert table["b"] == pytest.approx(
        {"n": 1, "selection_rate": 1.0, "tpr": 1.0, "fpr": math.nan, "accuracy": 1.0}, nan_ok=True
    )


def test_group_rates_without_true_labels_know_the_selection_rate_only():
    table = group_rates(None, [1, 0], sensitive_features=["a", "a"])
    assert table["a"].pop("selection_rate") == 0.5
    assert table["a"].pop("n") == 2
    assert all(math.isnan(value) for value in table["a"].values())
    assert set(table["a"]) == {"tpr", "fpr", "accuracy"}


def test_a_group_without_weight_has_no_share():
    decisions = np.array([True, False, True, True])
    codes, weight = np.array([0, 0, 1, 1]), np.array([1.0, 3.0, 1.0, 1.0])
    np.testing.assert_array_equal(group_shares(decisions, codes, 3, weight), [0.25, 1.0, math.nan])


# ---------------------------------------------------------------------------------------------
# Fairness: undefined is NaN


def test_p_rule_is_zero_when_one_group_is_never_selected():
    assert p_rule(None, [0, 0, 1], sensitive_features=["a", "b", "b"]) == 0


def test_p_rule_is_nan_when_nobody_is_selected_as_in_fairlearn():
    y_pred, group = [0, 0, 0], ["a", "b", "b"]
    assert math.isnan(p_rule(None, y_pred, sensitive_features=group))
    assert math.isnan(fl.demographic_parity_ratio(y_pred, y_pred, sensitive_features=group))


def test_one_group_is_nan_where_fairlearn_says_perfectly_fair():
    y_true, y_pred, group = [1, 0, 1, 0], [1, 0, 0, 1], ["a"] * 4
    for metric in FAIRNESS.values():
        assert math.isnan(metric(y_true, y_pred, sensitive_features=group))
    theirs = [
        fl.demographic_parity_ratio(y_true, y_pred, sensitive_features=group),
        fl.true_positive_rate_difference(y_true, y_pred, sensitive_features=group),
        fl.false_positive_rate_difference(y_true, y_pred, sensitive_features=group),
    ]
    assert theirs == [1.0, 0.0, 0.0]


@every_line(
    "missing_label, undefined, defined",
    [
        (1, true_positive_rate_difference, false_positive_rate_difference),
        (0, false_positive_rate_difference, true_positive_rate_difference),
    ],
)
def test_an_empty_cell_is_nan_where_fairlearn_takes_its_rate_for_zero(
    missing_label, undefined, defined
):
    present = 1 - missing_label
    y_true = [present, present, present, missing_label]  # group "a" lacks the missing label
    y_pred, group = [1, 0, 1, 1], ["a", "a", "b", "b"]
    assert math.isnan(undefined(y_true, y_pred, sensitive_features=group))
    assert math.isnan(disparate_mistreatment(y_true, y_pred, sensitive_features=group))
    assert defined(y_true, y_pred, sensitive_features=group) == 0.5
    theirs = getattr(fl, undefined.__name__)(y_true, y_pred, sensitive_features=group)
    assert theirs == 1.0
    assert fl.equalized_odds_difference(y_true, y_pred, sensitive_features=group) == 1.0


def test_a_group_without_weight_is_nan_and_does_not_vanish():
    y, group, weight = [1, 0, 1, 1, 0], ["a", "a", "b", "b", "c"], [1, 1, 1, 1, 0]
    assert math.isnan(p_rule(None, y, sensitive_features=group, sample_weight=weight))
    with pytest.warns(RuntimeWarning, match="invalid value"):
        theirs = fl.demographic_parity_ratio(
            y, y, sensitive_features=group, sample_weight=np.array(weight)
        )
    assert theirs == 0.5  # Fairlearn leaves the group out


# ---------------------------------------------------------------------------------------------
# Fairness: errors


@every_fairness_metric
def test_input_errors_say_what_is_wrong(metric):
    y, group = [1, 0, 1], ["a", "b", "b"]
    with pytest.raises(InputError, match="sensitive_features has 2 rows, but 3 were expected"):
        metric(y, y, sensitive_features=["a", "b"])
    with pytest.raises(InputError, match="sensitive_features has 1 missing value in 3 rows"):
        metric(y, y, sensitive_features=["a", None, "b"])
    with pytest.raises(InputError, match="sensitive_features is missing"):
        metric(y, y, sensitive_features=None)
    with pytest.raises(InputError, match=r"y_pred contains NaN or infinity \(1 NaN\)"):
        metric(y, [1, 0, math.nan], sensitive_features=group)
    with pytest.raises(InputError, match="y_pred holds 3 different values"):
        metric(y, [0, 1, 2], sensitive_features=group)
    with pytest.raises(InputError, match="y_pred has 0 rows"):
        metric([], [], sensitive_features=[])
    with pytest.raises(InputError, match="pos_label='yes' is not among the values of y_"):
        metric(y, y, sensitive_features=group, pos_label="yes")
    with pytest.raises(InputError, match="sample_weight contains negative"):
        metric(y, y, sensitive_features=group, sample_weight=[1, -1, 1])
    with pytest.raises(InputError, match="sample_weight has 2 rows, but 3 were expected"):
        metric(y, y, sensitive_features=group, sample_weight=[1, 1])


@every_gap
def test_true_labels_are_checked_too(metric):
    y, group = [1, 0, 1], ["a", "b", "b"]
    with pytest.raises(InputError, match="y_true has 2 rows, but 3 were expected"):
        metric([1, 0], y, sensitive_features=group)
    with pytest.raises(InputError, match="y_true contains NaN"):
        metric([1, None, 0], y, sensitive_features=group)
    with pytest.raises(InputError, match="y_true holds 3 different values"):
        metric([1, 0, 2], y, sensitive_features=group)
    with pytest.raises(InputError, match="compares decisions with true labels, but y_true is None"):
        metric(None, y, sensitive_features=group)


@every_gap
def test_two_codings_of_the_same_labels_are_refused(metric):
    message = r"same two labels: beside 1, y_true holds -1 and y_pred holds 0"
    with pytest.raises(InputError, match=message):
        metric([1, -1, 1], [1, 0, 1], sensitive_features=["a", "b", "b"])


@every_line("name", ["parity", "", None, ["equalized_odds"]])
def test_an_unknown_constraint_is_answered_with_the_four_names(name):
    with pytest.raises(InputError) as error:
        fairness_value(name, [0, 1], [0, 1], sensitive_features=["a", "b"])
    assert all(known in str(error.value) for known in FAIRNESS)
    assert repr(name) in str(error.value)


# ---------------------------------------------------------------------------------------------
# Changes


labels = st.sampled_from(["yes", "no", "later"])


@quick
@given(st.lists(st.tuples(labels, labels, st.integers(1, 3)), min_size=1, max_size=20))
def test_change_rate_is_the_share_of_rows_that_differ(rows):
    before, after, weight = (np.array(column) for column in zip(*rows, strict=True))
    expected = sum(w for b, a, w in rows if a != b) / sum(w for *_, w in rows)
    assert change_rate(before, after, sample_weight=weight) == expected
    assert change_rate(after, before, sample_weight=weight) == expected
    assert change_rate(before, before, sample_weight=weight) == 0


@settings(max_examples=10)
@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=30))
def test_change_rate_is_exactly_one_when_all_change(weight):
    n = len(weight)
    assert change_rate([0] * n, [1] * n, sample_weight=weight) == 1


def test_change_rate_compares_numbers_and_booleans_but_not_text():
    assert change_rate([0, 1, 1], [False, True, False]) == 1 / 3
    assert change_rate([0, 1], pd.Series([0.0, 1.0])) == 0
    with pytest.raises(InputError, match="text never equals a number"):
        change_rate([0, 1], ["0", "1"])
    with pytest.raises(InputError, match="text never equals a number"):
        change_rate(pd.Series(["0", "1"]), [False, True])


def test_change_rate_refuses_what_has_no_share():
    with pytest.raises(InputError, match="y_before has 0 rows"):
        change_rate([], [])
    with pytest.raises(InputError, match="y_after has 1 rows, but 2 were expected"):
        change_rate([0, 1], [0])
    with pytest.raises(InputError, match="y_after contains NaN"):
        change_rate([0, 1], [0, math.nan])
    with pytest.raises(InputError, match="zero in every row"):
        change_rate([0, 1], [0, 1], sample_weight=[0, 0])


def test_updates_that_are_no_correction_begin_beyond_their_bounds():
    """More than half changed, 99 % alike, or 95 % alike and a quarter left of the rarer one."""
    new, old = 0.7, 0.7
    for changed, is_so in ((0.5, False), (0.5 + 1e-6, True), (0.0, False)):
        assert bool(is_degenerate(changed, old, new)) == is_so
    alike, step = MAX_ALIKE, 1e-6
    for after, is_so in ((alike, True), (alike - step, False), (1 - alike, True)):
        assert bool(is_degenerate(0.1, 1 - 2 * (1 - alike), after)) == is_so, after
    assert not is_degenerate(0.0, alike, alike)  # the old decisions were alike
    assert is_degenerate(0.0, alike - step, alike)
    nearly = NEARLY_ALIKE
    before = 1 - (1 - nearly) / LEAST_LEFT  # of which exactly the least is left
    assert is_degenerate(0.2, before, nearly)
    assert not is_degenerate(0.2, before, nearly - step)
    assert not is_degenerate(0.2, before + step, nearly)


def test_count_changes_calls_the_label_what_the_caller_calls_it():
    with pytest.raises(InputError, match=r"favorable_label=1 is not among the values of y_before"):
        count_changes(["yes", "no"], ["no", "no"])


@quick
@given(st.lists(st.tuples(binary, binary, st.sampled_from("abc")), min_size=1, max_size=25))
def test_count_changes_counts_people_by_direction_and_group(rows):
    before, after, group = zip(*rows, strict=True)
    found = count_changes(before, after, sensitive_features=group)
    gains = [(g, b, a) for b, a, g in rows if (b, a) == (0, 1)]
    losses = [(g, b, a) for b, a, g in rows if (b, a) == (1, 0)]
    assert (found.n, found.n_gains, found.n_losses) == (len(rows), len(gains), len(losses))
    assert found.n_changes == len(gains) + len(losses)
    assert found.rate == change_rate(before, after)
    assert found.by_group == {
        label: (
            group.count(label),
            sum(g == label for g, *_ in gains),
            sum(g == label for g, *_ in losses),
        )
        for label in set(group)
    }


def test_the_favourable_label_decides_what_is_a_gain():
    before, after = ["low", "high", "low"], ["high", "high", "high"]
    up = count_changes(before, after, favorable_label="high")
    down = count_changes(before, after, favorable_label="low")
    assert up == ChangeCounts(n=3, n_changes=2, n_gains=2, n_losses=0, by_group={})
    assert down == ChangeCounts(n=3, n_changes=2, n_gains=0, n_losses=2, by_group={})


def test_change_counts_cannot_be_altered():
    with pytest.raises(AttributeError):
        count_changes([0, 1], [1, 1]).n_gains = 5


def test_count_changes_errors():
    with pytest.raises(InputError, match="y_before holds 3 different values"):
        count_changes([0, 1, 2], [0, 1, 1])
    with pytest.raises(InputError, match="y_after has 1 rows, but 2 were expected"):
        count_changes([0, 1], [0])
    with pytest.raises(InputError, match="y_before holds 0 and y_after holds -1"):
        count_changes([0, 1], [-1, 1])
    with pytest.raises(InputError, match="y_before has 0 rows"):
        count_changes([], [])
    with pytest.raises(InputError, match="sensitive_features has 1 missing value"):
        count_changes([0, 1], [0, 1], sensitive_features=["a", math.nan])


# ---------------------------------------------------------------------------------------------
# Locality


def test_locality_is_one_for_a_box_and_low_for_scattered_changes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    before = np.zeros(400, int)
    box = (X[:, 0] > 0.5) & (X[:, 2] < 0)
    scattered = rng.permutation(box)
    assert change_locality(X, before, box.astype(int)) == 1
    assert change_locality(X, before, scattered.astype(int)) < 0.4
    assert change_locality(X, before, box.astype(int), max_depth=1) < 1


def test_locality_is_nan_when_nothing_or_everything_changed():
    X = [[1.0], [2.0], [3.0]]
    assert math.isnan(change_locality(X, [0, 1, 0], [0, 1, 0]))
    assert math.isnan(change_locality(X, [0, 1, 0], [1, 0, 1]))
    assert math.isnan(change_locality(X, [0, 1, 0], [1, 1, 0], sample_weight=[0, 1, 1]))


@every_line("frame", [pd.DataFrame, pl.DataFrame])
def test_locality_reads_categories_and_missing_values(frame):
    city = ["x", "y", None, "z"] * 10
    income = ([1.0, None] * 20)[:40]
    table = frame({"city": city, "income": income, "member": [True, False] * 20})
    before = ["no"] * 40

    def locality_of(changed):
        after = ["yes" if c else "no" for c in changed]
        return change_locality(table, before, after, max_depth=1)

    assert locality_of([c == "y" for c in city]) == 1  # "y" lies between "x" and "z"
    assert locality_of([c is None for c in city]) == 1
    assert locality_of([v is None for v in income]) == 1


@every_line("changed", ["001100", "111100", "001111", "110011"])
def test_locality_lets_one_split_send_missing_numbers_either_way(changed):
    X = [[-5.0], [-4.0], [math.nan], [math.nan], [4.0], [5.0]]
    assert change_locality(X, list("000000"), list(changed), max_depth=1) == 1


def test_locality_accepts_a_column_without_any_number():
    X = np.array([[math.nan, 1], [math.nan, 2]])
    assert change_locality(X, [0, 0], [0, 1]) == 1


def test_locality_tells_numbers_apart_that_single_precision_cannot():
    X = np.array([[2.0**30], [2.0**30 + 1], [1e90], [1.0000001e90]])
    assert change_locality(X, [0] * 4, [0, 1, 1, 1], max_depth=1) == 1
    assert change_locality(X, [0] * 4, [0, 0, 0, 1], max_depth=1) == 1


@settings(max_examples=12)
@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.booleans(), st.integers(0, 3)),
        min_size=2,
        max_size=20,
    )
)
def test_locality_weights_mean_repetition_and_only_order_counts(rows):
    first, second, changed, weight = (np.array(column) for column in zip(*rows, strict=True))
    weight[0] = 1
    X, before = np.column_stack([first, second]), np.zeros(len(rows), int)
    value = change_locality(X, before, changed, sample_weight=weight)
    repeated = change_locality(*(np.repeat(part, weight, axis=0) for part in (X, before, changed)))
    assert same(value, repeated)
    assert same(value, change_locality(np.exp(50.0 * X), before, changed, sample_weight=weight))
    assert math.isnan(value) or 0 <= value <= 1


def test_locality_is_the_f1_score_of_the_tree():
    # The best single split finds 3 of 4 changes and nobody else: 2·3 / (2·3 + 1).
    X = np.arange(10)[:, None]
    changed = np.array([0, 1, 0, 0, 0, 0, 0, 1, 1, 1])
    assert change_locality(X, [0] * 10, changed, max_depth=1) == pytest.approx(6 / 7)


def test_locality_errors():
    with pytest.raises(InputError, match="X has 3 rows, but 2 were expected"):
        change_locality([[1], [2], [3]], [0, 1], [1, 1])
    with pytest.raises(InputError, match="y_after has 1 rows, but 2 were expected"):
        change_locality([[1], [2]], [0, 1], [1])
    with pytest.raises(InputError, match="sample_weight contains negative"):
        change_locality([[1], [2]], [0, 1], [1, 1], sample_weight=[1, -1])
    with pytest.raises(ValueError, match="max_depth"):
        change_locality([[1], [2]], [0, 1], [1, 1], max_depth=0)


# ---------------------------------------------------------------------------------------------
# Scores


@quick
@given(st.lists(st.tuples(score, score, st.integers(0, 3)), min_size=1, max_size=20))
def test_score_agreement_equals_scipy_on_repeated_rows(rows):
    before, after, weight = (
        np.array(column) for column in zip(*[*rows, (0.5, 0.25, 1)], strict=True)
    )
    agreement = score_agreement(before, after, sample_weight=weight)
    b, a = np.repeat(before, weight), np.repeat(after, weight)
    assert same(agreement.mean_absolute_difference, np.mean(np.abs(b - a)))
    assert same(agreement.share_identical, np.mean(b == a))
    if np.ptp(b) == 0 or np.ptp(a) == 0:
        assert math.isnan(agreement.correlation)
        assert math.isnan(agreement.rank_correlation)
    else:
        assert agreement.correlation == pytest.approx(np.corrcoef(b, a)[0, 1], abs=1e-9)
        expected = stats.spearmanr(b, a).statistic
        assert agreement.rank_correlation == pytest.approx(expected, abs=1e-9)


@settings(max_examples=8)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=20, unique=True))
def test_any_increasing_change_of_distinct_scores_keeps_the_ranks(scores):
    order = np.argsort(np.argsort(scores))
    agreement = score_agreement(scores, order / len(scores))
    assert agreement.rank_correlation == 1
    assert -1 <= agreement.correlation <= 1


def test_equal_scores_agree_fully_and_constant_ones_correlate_with_nothing():
    scores = [0.1, 0.7, 0.3]
    same_scores = score_agreement(scores, scores)
    assert same_scores.mean_absolute_difference == 0
    assert same_scores.correlation == same_scores.rank_correlation == 1
    assert same_scores.share_identical == 1
    # 0.1 three times does not average to 0.1 in floats, and is constant all the same.
    flat = [0.1, 0.1, 0.1]
    for constant in (score_agreement(flat, scores), score_agreement(scores, flat)):
        assert math.isnan(constant.correlation)
        assert math.isnan(constant.rank_correlation)


def test_tiny_scores_still_correlate():
    agreement = score_agreement([1e-200, 2e-200, 3e-200], [0.1, 0.2, 0.3])
    assert agreement.correlation == pytest.approx(1)


@every_line(
    "scores, message",
    [
        ([0.5, 1.5], r"scores_after has 1 values? outside \[0, 1\]"),
        ([-0.1, 0.5], r"scores_after has 1 values? outside \[0, 1\]"),
        ([0.5, math.nan], "scores_after has 1 missing value in 2 rows"),
        ([0.5, math.inf], "scores_after has 1 value outside"),
        (["0.1", "0.2"], "scores_after must hold numbers"),
        ([0.5, {}], "scores_after must hold numbers"),
        ([0.5], "scores_after has 1 rows, but 2 were expected"),
        ([], "scores_after has 0 rows"),
    ],
)
def test_scores_must_be_probabilities(scores, message):
    with pytest.raises(InputError, match=message):
        score_agreement([0.2, 0.4], scores)
    with pytest.raises(InputError, match="sample_weight contains negative"):
        score_agreement([0.2, 0.4], [0.2, 0.4], sample_weight=[1, -1])
