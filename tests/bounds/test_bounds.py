"""Exact limits: against brute force over all decisions, hand examples and the paper's print."""

from __future__ import annotations

import inspect
import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from commod import bounds
from commod.bounds import (
    best_fairness,
    minimal_changes,
    minimal_cost,
    minimal_expected_changes,
)
from commod.exceptions import InputError
from commod.metrics import fairness_value, p_rule
from fewest_changes import fewest_changes

PARITY, ODDS, TPR, FPR = CONSTRAINTS = (
    "demographic_parity",
    "equalized_odds",
    "true_positive_rate_parity",
    "false_positive_rate_parity",
)
DIRECTIONS = ("any", "gains_only", "losses_only")
FLOORS = (0.3, 0.5, 2 / 3, 0.8, 0.9, 1.0, Fraction(4, 5), 1)
CEILINGS = (0.0, 0.1, 0.25, 0.3, 1 / 3, 0.5, 0.8, Fraction(1, 3), 0)
TWO_GROUPS = [1] * 20 + [0] * 80 + [1] * 25 + [0] * 25, ["a"] * 100 + ["b"] * 50

quick = settings(max_examples=20)


# ---------------------------------------------------------------------------------------------
# Brute force: every vector of decisions


@st.composite
def tables(draw):
    """A constraint and at most 8 rows of 2 or 3 groups in which its metric is defined."""
    constraints = draw(st.sampled_from(CONSTRAINTS))
    needed = {PARITY: [None], ODDS: [0, 1], TPR: [1], FPR: [0]}[constraints]
    n_groups = draw(st.integers(2, 3))
    bit = st.integers(0, 1)
    rows = [
        (draw(bit) if y is None else y, draw(bit), "abc"[g])
        for g in range(n_groups)
        for y in needed
    ]
    group = st.sampled_from("abc"[:n_groups])
    rows += draw(st.lists(st.tuples(bit, bit, group), max_size=8 - len(rows)))
    return constraints, *map(np.array, zip(*rows, strict=True))


def target_for(constraints):
    return st.sampled_from(FLOORS if constraints == PARITY else CEILINGS)


def exact_fairness(constraints, y_true, y_pred, group):
    """The metric in fractions; None where nobody is selected."""
    rows = {PARITY: [y_true == y_true], ODDS: [y_true == 1, y_true == 0], TPR: [y_true == 1]}
    gap = Fraction(0)
    for mask in rows.get(constraints, [y_true == 0]):
        cells = [mask & (group == label) for label in sorted(set(group))]
        rates = [Fraction(int(y_pred[c].sum()), int(c.sum())) for c in cells]
        if constraints == PARITY:
            return min(rates) / max(rates) if max(rates) else None
        gap += max(rates) - min(rates)
    return gap


def reaches(constraints, value, target):
    if value is None:
        return False
    value = value if isinstance(target, Fraction | int) else float(value)  # rounded, as the metrics
    return value >= target if constraints == PARITY else value <= target


def all_decisions(constraints, y_true, y_pred, group, direction, favorable):
    """(changes, fairness) of every vector that the direction allows."""
    gained = {"any": (0, 1), "gains_only": (favorable,), "losses_only": (1 - favorable,)}[direction]
    for bits in itertools.product((0, 1), repeat=len(y_pred)):
        after = np.array(bits)
        changed = after != y_pred
        if set(after[changed].tolist()) <= set(gained):
            value = exact_fairness(constraints, y_true, after, group)
            yield int(changed.sum()), value


def carried_out(flips, y_pred, group):
    """Decisions after the flips."""
    after = y_pred.copy()
    for (label, old, new), count in flips.items():
        rows = np.flatnonzero((group == label) & (y_pred == old) & (after == old))
        assert len(rows) >= count > 0
        after[rows[:count]] = new
    return after


def options(constraints, y_true, group, direction, favorable):
    given_labels = {} if constraints == PARITY else {"y_true": y_true}
    return {
        "sensitive_features": group,
        "constraints": constraints,
        "direction": direction,
        "favorable_label": favorable,
        **given_labels,
    }


directions, favorables = st.sampled_from(DIRECTIONS), st.integers(0, 1)


@quick
@given(tables(), st.data(), directions, favorables)
def test_minimal_changes_are_the_fewest_of_all_decisions(table, data, direction, favorable):
    constraints, y_true, y_pred, group = table
    target = data.draw(target_for(constraints))
    found = minimal_changes(
        y_pred, target=target, **options(constraints, y_true, group, direction, favorable)
    )
    everything = list(all_decisions(*table, direction, favorable))
    fair = [d for d in everything if reaches(constraints, d[1], target)]
    if not fair:
        assert found.n_changes is None
        assert math.isnan(found.rate)
        assert found.flips == {}
        return
    assert found.n_changes == min(fair)[0] == sum(found.flips.values())
    assert found.rate == found.n_changes / len(y_pred)


@quick
@given(tables(), st.data(), directions, favorables)
def test_minimal_changes_can_be_carried_out(table, data, direction, favorable):
    constraints, y_true, y_pred, group = table
    target = data.draw(target_for(constraints))
    assume(constraints != ODDS)  # there a flip also needs a true label
    found = minimal_changes(
        y_pred, target=target, **options(constraints, y_true, group, direction, favorable)
    )
    assume(found.n_changes is not None)
    if constraints != PARITY:  # who is changed must be among the rows that the rate counts
        kept = y_true == (constraints == TPR)
        y_true, y_pred, group = y_true[kept], y_pred[kept], group[kept]
    after = carried_out(found.flips, y_pred, group)
    value = fairness_value(constraints, y_true, after, sensitive_features=group)
    assert (value >= target) if constraints == PARITY else (value <= target)
    fairest = [
        value
        for n, value in all_decisions(constraints, y_true, y_pred, group, direction, favorable)
        if n == found.n_changes and value is not None
    ]
    assert value == float(max(fairest) if constraints == PARITY else min(fairest))


@quick
@given(tables(), st.integers(0, 8), directions, favorables)
def test_best_fairness_is_the_best_of_all_decisions(table, budget, direction, favorable):
    constraints, y_true, y_pred, group = table
    found = best_fairness(
        y_pred, max_changes=budget, **options(constraints, y_true, group, direction, favorable)
    )
    sign = -1 if constraints == PARITY else 1
    everything = all_decisions(*table, direction, favorable)
    within = [(sign * v, n) for n, v in everything if n <= budget and v is not None]
    best, n_changes = min(within, default=(Fraction(0), 0))
    if constraints == PARITY and best == 0 and not y_pred.any():
        assert math.isnan(found.fairness)
        assert (found.n_changes, found.flips) == (0, {})
    else:
        assert found.fairness == float(sign * best)
        assert found.n_changes == n_changes == sum(found.flips.values())
        assert found.rate == n_changes / len(y_pred)


# ---------------------------------------------------------------------------------------------
# Counts: against all counts, and against closed forms where there are too many


@st.composite
def rate_rows(draw, most=11, n_groups=(2, 3)):
    """Sizes and positives of one rate row."""
    sizes = draw(st.lists(st.integers(1, most), min_size=n_groups[0], max_size=n_groups[1]))
    return sizes, [draw(st.integers(0, n)) for n in sizes]


def staircase(sizes, positives, may_raise=True, may_lower=True):
    """Least gap and highest ratio for each number of changes, over all counts."""
    ranges = [
        range(0 if may_lower else p, (n if may_raise else p) + 1)
        for n, p in zip(sizes, positives, strict=True)
    ]
    gaps, ratios = {}, {}
    for counts in itertools.product(*ranges):
        n_changes = sum(abs(q - p) for q, p in zip(counts, positives, strict=True))
        rates = [Fraction(q, n) for q, n in zip(counts, sizes, strict=True)]
        gaps[n_changes] = min(gaps.get(n_changes, 2), max(rates) - min(rates))
        if max(rates):
            ratios[n_changes] = max(ratios.get(n_changes, -1), min(rates) / max(rates))
    return gaps, ratios


@quick
@given(
    rate_rows(), st.integers(1, 20), st.integers(0, 14), st.sampled_from([(1, 1), (1, 0), (0, 1)])
)
def test_counts_of_one_rate_row_equal_the_search_of_all_counts(row, floor, ceiling, allowed):
    sizes, positives = row
    may = dict(zip(("may_raise", "may_lower"), map(bool, allowed), strict=True))
    gaps, ratios = staircase(sizes, positives, **may)
    floor, ceiling = Fraction(floor, 20), Fraction(ceiling, 20)
    for constraints, target, reached in (
        (PARITY, floor, [k for k, ratio in ratios.items() if ratio >= floor]),
        (TPR, ceiling, [k for k, gap in gaps.items() if gap <= ceiling]),
    ):
        found = fewest_changes(constraints, [sizes], [positives], target, **may)
        if reached:
            assert np.abs(found - positives).sum() == min(reached)
        else:
            assert found is None


@quick
@given(rate_rows(9), rate_rows(9), st.integers(0, 30), st.sampled_from([(1, 1), (1, 0), (0, 1)]))
# In these the gaps that are best in real numbers are not the best in whole people.
@example(([3, 7, 10], [1, 0, 7]), ([2, 9, 3], [0, 7, 0]), 16, (1, 1))
@example(([10, 9, 3], [1, 9, 0]), ([6, 3, 8], [6, 2, 6]), 15, (1, 1))
@example(([7, 3, 6], [3, 1, 0]), ([3, 5, 2], [2, 2, 1]), 8, (1, 1))
@example(([5, 8, 10], [1, 6, 10]), ([4, 6, 2], [4, 4, 1]), 16, (1, 1))
@example(([5, 6, 3], [5, 4, 1]), ([8, 9, 7], [3, 9, 3]), 14, (1, 1))
@example(([5, 1, 9], [3, 0, 7]), ([6, 7, 8], [0, 3, 7]), 27, (1, 1))
@example(([13, 9, 1], [3, 6, 0]), ([11, 5, 8], [9, 0, 5]), 8, (1, 1))
def test_counts_of_two_rate_rows_equal_the_search_of_all_counts(first, second, ceiling, allowed):
    n_groups = min(len(first[0]), len(second[0]))
    pair = [(n[:n_groups], p[:n_groups]) for n, p in (first, second)]
    may = dict(zip(("may_raise", "may_lower"), map(bool, allowed), strict=True))
    steps = [staircase(n, p, **may)[0] for n, p in pair]
    ceiling = Fraction(ceiling, 30)
    fewest = min(
        k1 + k0
        for k1, gap1 in steps[0].items()
        for k0, gap0 in steps[1].items()
        if gap1 + gap0 <= ceiling
    )
    sizes, positives = map(list, zip(*pair, strict=True))
    found = fewest_changes(ODDS, sizes, positives, ceiling, **may)
    assert np.abs(found - positives).sum() == fewest


@quick
@given(st.data(), st.sampled_from([0.5, 0.8, 0.9, 0.95]))
def test_ten_million_rows_give_the_closed_form(data, target):
    n_d, n_a = (data.draw(st.integers(10**4, 10**7)) for _ in range(2))
    g_d = data.draw(st.integers(n_d // 100, n_d // 2))
    g_a = data.draw(st.integers(n_a * g_d // n_d + 1, n_a))
    c = Fraction(str(target)) * n_d / n_a
    fewest = math.ceil(c * g_a) - g_d if c <= 1 else g_a - math.floor(g_d / c)
    found = fewest_changes(PARITY, [[n_d, n_a]], [[g_d, g_a]], target)[0]
    assert abs(found[0] - g_d) + abs(found[1] - g_a) == max(fewest, 0)


@quick
@given(st.data(), st.sampled_from([0.01, 0.05, 0.1, 0.2]))
def test_large_cells_of_equalized_odds_lie_between_relaxed_and_greedy_changes(data, ceiling):
    sizes = [[data.draw(st.integers(1000, 10**6)) for _ in range(2)] for _ in range(2)]
    positives = [[data.draw(st.integers(0, n)) for n in row] for row in sizes]
    t = Fraction(str(ceiling))
    pairs = zip(positives, sizes, strict=True)
    gaps = [abs(Fraction(p0, n0) - Fraction(p1, n1)) for (p0, p1), (n0, n1) in pairs]
    first = 0 if min(sizes[0]) <= min(sizes[1]) else 1  # its gap closes fastest
    m, rest = min(sizes[first]), min(sizes[1 - first])
    excess = sum(gaps) - t
    assume(excess > 0)
    if excess <= gaps[first]:
        relaxed, greedy = excess * m, math.ceil(excess * m)
    else:
        k = math.floor(gaps[first] * m)
        relaxed = gaps[first] * m + (excess - gaps[first]) * rest
        greedy = k + math.ceil((excess - Fraction(k, m)) * rest)
    found = fewest_changes(ODDS, sizes, positives, ceiling)
    assert math.ceil(relaxed) <= np.abs(found - positives).sum() <= greedy


def test_equal_rates_are_found_or_not_among_ten_million_rows():
    # 4,999,999 and 5,000,000 have no common divisor, so only all or none have equal rates.
    sizes, positives = [[5_000_000, 4_999_999]], [[1_000_000, 2_500_000]]
    assert fewest_changes(PARITY, sizes, positives, 1).tolist() == sizes
    assert fewest_changes(TPR, sizes, positives, 0).tolist() == [[0, 0]]
    assert fewest_changes(PARITY, sizes, positives, 1, may_raise=False) is None


def test_the_fairest_of_equally_few_changes_is_found_among_ten_million_rows():
    (n_low, low), (n_high, high) = (5_000_100, 1_000_000), (5_000_000, 2_500_000)
    gap = Fraction(1, 5)
    found = fewest_changes(TPR, [[n_low, n_high]], [[low, high]], gap)[0]
    n_changes = abs(found[0] - low) + abs(found[1] - high)
    raised = np.arange(n_changes + 1)  # the others are lowered
    left = np.abs((high - n_changes + raised) * n_low - (low + raised) * n_high)
    assert left.min() <= gap * n_low * n_high
    assert abs(found[1] * n_low - found[0] * n_high) == left.min()
    one_less = (high - n_changes + 1) * n_low - low * n_high  # the higher group's steps are longer
    assert one_less > gap * n_low * n_high


def test_ties_lean_the_way_they_are_told():
    sizes, positives = [[5_000_000, 5_000_000]], [[1_000_000, 2_500_000]]
    assert fewest_changes(TPR, sizes, positives, 0.2).tolist() == [[1_500_000, 2_500_000]]
    down = fewest_changes(TPR, sizes, positives, 0.2, prefer_raising=False)
    assert down.tolist() == [[1_000_000, 2_000_000]]
    sizes, positives = [[50, 50]], [[10, 20]]
    assert fewest_changes(PARITY, sizes, positives, 1.0).tolist() == [[20, 20]]
    down = fewest_changes(PARITY, sizes, positives, 1.0, prefer_raising=False)
    assert down.tolist() == [[10, 10]]
    y_pred, group = [1] * 10 + [0] * 40 + [1] * 20 + [0] * 30, ["a"] * 50 + ["b"] * 50
    good_zero = minimal_changes(y_pred, sensitive_features=group, target=1.0, favorable_label=0)
    assert good_zero.flips == {("b", 1, 0): 10}  # ten gains, where ten losses would do as well


# ---------------------------------------------------------------------------------------------
# Targets


shares = st.tuples(st.integers(1, 10**5), st.integers(1, 10**5)).map(sorted)


@quick
@given(shares, shares)
def test_a_table_meets_its_own_p_rule_as_a_target(a, b):
    positives, sizes = zip(a, b, strict=True)
    ratio = Fraction(positives[0], sizes[0]) / Fraction(positives[1], sizes[1])
    ratio = min(ratio, 1 / ratio)
    for target in (float(ratio), ratio, np.float64(ratio)):
        found = fewest_changes(PARITY, [sizes], [positives], target)
        assert found.tolist() == [list(positives)]
    if ratio < 1:
        above = math.nextafter(float(ratio), 2)
        assert fewest_changes(PARITY, [sizes], [positives], above).tolist() != [list(positives)]


def test_a_float_is_what_the_rounded_metric_must_reach():
    sizes, positives = [[6, 6]], [[5, 6]]
    assert fewest_changes(PARITY, sizes, positives, 5 / 6).tolist() == positives
    assert Fraction(5 / 6) > Fraction(5, 6)
    assert fewest_changes(PARITY, sizes, positives, Fraction(5 / 6)).tolist() == [[6, 6]]
    assert fewest_changes(TPR, sizes, positives, Fraction(1, 6)).tolist() == positives
    assert fewest_changes(TPR, sizes, positives, 0.16).tolist() != positives
    assert fewest_changes(PARITY, [[5, 5]], [[4, 5]], np.float32(0.8)).tolist() == [[4, 5]]


def test_the_80_percent_rule_is_met_by_four_fifths():
    y_pred, group = [1] * 4 + [0] * 21 + [1] + [0] * 4, ["a"] * 25 + ["b"] * 5
    found = minimal_changes(y_pred, sensitive_features=group, target=0.8)
    assert (found.n_changes, found.rate, found.flips) == (0, 0.0, {})


REFUSED_TARGETS = [
    (PARITY, 0, r"target=0 must be a number in \(0, 1\]: it is a floor on the P-rule"),
    (PARITY, 1.2, r"target=1.2 must be a number in \(0, 1\]"),
    (PARITY, math.nan, r"target=nan must be a number in \(0, 1\]"),
    (PARITY, "0.8", "target='0.8' must"),
    (PARITY, True, "target=True must"),
    (PARITY, None, "target=None must"),
    (ODDS, 2.1, r"target=2.1 must be .* \[0, 2\]: .* a ceiling on the disparate mistreatment"),
    (ODDS, -0.1, r"target=-0.1 must be a number in \[0, 2\]"),
    (TPR, 1.5, r"target=1.5 must be a number in \[0, 1\]: it is a ceiling on the TPR gap"),
    (FPR, -1, r"target=-1 must be a number in \[0, 1\]: it is a ceiling on the FPR gap"),
]


def test_a_target_out_of_range_is_refused():
    y, group = [1, 0, 1, 0], ["a", "a", "b", "b"]
    for constraints, target, message in REFUSED_TARGETS:
        keywords = {"sensitive_features": group, "target": target, "constraints": constraints}
        with pytest.raises(InputError, match=message) as error:
            minimal_changes(y, y_true=y, **keywords)
        assert error.value.parameter == "target"
        n_rows = 2 if constraints == ODDS else 1
        with pytest.raises(InputError, match=message) as error:
            fewest_changes(constraints, [[2, 2]] * n_rows, [[1, 1]] * n_rows, target)
        assert error.value.parameter == "target"


# ---------------------------------------------------------------------------------------------
# By hand


def test_lowering_the_higher_group_is_cheaper_when_it_is_small():
    y_pred, group = TWO_GROUPS
    found = minimal_changes(y_pred, sensitive_features=group, target=0.8)
    assert (found.n_changes, found.flips) == (13, {("b", 1, 0): 13})
    gains = minimal_changes(y_pred, sensitive_features=group, target=0.8, direction="gains_only")
    assert (gains.n_changes, gains.flips) == (20, {("a", 0, 1): 20})
    losses = minimal_changes(y_pred, sensitive_features=group, target=0.8, direction="losses_only")
    assert losses == found


def test_raising_the_lower_group_is_cheaper_when_it_is_small():
    y_pred, group = [1] * 10 + [0] * 40 + [1] * 50 + [0] * 50, ["a"] * 50 + ["b"] * 100
    found = minimal_changes(y_pred, sensitive_features=group, target=0.8)
    assert (found.n_changes, found.flips) == (10, {("a", 0, 1): 10})


def test_equalized_odds_shares_six_changes_between_both_labels():
    def rows(label, hits, size, group):
        return [(label, int(i < hits), group) for i in range(size)]

    table = (
        rows(1, 3, 10, "a") + rows(1, 50, 100, "b") + rows(0, 4, 20, "a") + rows(0, 60, 100, "b")
    )
    y_true, y_pred, group = zip(*table, strict=True)
    keywords = {"sensitive_features": group, "constraints": ODDS}
    found = minimal_changes(y_pred, y_true=y_true, target=0.2, **keywords)
    assert (found.n_changes, found.flips) == (6, {("a", 0, 1): 6})
    counts = fewest_changes(ODDS, [[10, 100], [20, 100]], [[3, 50], [4, 60]], 0.2)
    assert counts.tolist() == [[5, 50], [8, 60]]
    assert best_fairness(y_pred, y_true=y_true, max_changes=6, **keywords).fairness == 0.2
    # The paper's rule spends all six on true positive rates, whose cell is the smallest.
    all_on_one = min(abs(Fraction(3 + k, 10) - Fraction(1, 2)) for k in range(7))
    assert all_on_one + abs(Fraction(4, 20) - Fraction(60, 100)) == Fraction(2, 5)


def test_nobody_selected_is_not_fair():
    y_pred, group = [0, 0, 0], ["a", "b", "b"]
    found = minimal_changes(y_pred, sensitive_features=group, target=0.5)
    assert found.flips == {("a", 0, 1): 1, ("b", 0, 1): 1}
    losses = minimal_changes(y_pred, sensitive_features=group, target=0.5, direction="losses_only")
    assert losses.n_changes is None
    assert math.isnan(best_fairness(y_pred, sensitive_features=group, max_changes=1).fairness)
    assert best_fairness(y_pred, sensitive_features=group, max_changes=2).fairness == 0.5


def test_a_group_without_anybody_selected_cannot_be_helped_by_losses():
    found = minimal_changes(
        [0, 0, 1, 1], sensitive_features=list("aabb"), target=0.8, direction="losses_only"
    )
    assert found.n_changes is None
    assert math.isnan(found.rate)
    assert found.flips == {}


@pytest.mark.parametrize("constraints", CONSTRAINTS)
def test_no_more_changes_are_allowed_than_asked_for(constraints):
    y_true = np.array([1, 0] * 6)
    y_pred = np.array([1, 0, 1, 0, 1, 1, 0, 0, 0, 0, 1, 0])
    group = np.array(["a", "b"])[[0] * 6 + [1] * 6]
    keywords = {"sensitive_features": group, "constraints": constraints, "y_true": y_true}
    limits = [best_fairness(y_pred, max_changes=k, **keywords) for k in range(13)]
    sign = -1 if constraints == PARITY else 1
    values = [sign * limit.fairness for limit in limits]
    assert values == sorted(values, reverse=True)
    assert all(limit.n_changes <= k for k, limit in enumerate(limits))
    assert values[0] == sign * fairness_value(constraints, y_true, y_pred, sensitive_features=group)


# ---------------------------------------------------------------------------------------------
# Labels and groups of every kind


@pytest.mark.parametrize(
    ("container", "negative", "positive"),
    [
        (list, "no", "yes"),
        (list, False, True),
        (np.array, -1, 1),
        (pd.Series, 1, 0),
        (pd.Series, 0.0, 1.0),
    ],
)
def test_flips_are_named_with_the_labels_of_the_data(container, negative, positive):
    y_pred, group = TWO_GROUPS
    y_pred = container([positive if v else negative for v in y_pred])
    keywords = {"sensitive_features": group, "pos_label": positive, "target": 0.8}
    assert minimal_changes(y_pred, **keywords).flips == {("b", positive, negative): 13}
    # With the other label as the good one, taking pos_label is the gain.
    keywords["favorable_label"] = negative
    gains = minimal_changes(y_pred, direction="gains_only", **keywords)
    assert gains.flips == {("b", positive, negative): 13}
    losses = minimal_changes(y_pred, direction="losses_only", **keywords)
    assert losses.flips == {("a", negative, positive): 20}


def test_groups_are_intersections_of_several_columns():
    groups = pd.DataFrame({"sex": list("ffmmffmm"), "race": list("abababab")})
    y_pred = [1, 1, 1, 0, 1, 1, 1, 0]
    found = minimal_changes(y_pred, sensitive_features=groups, target=0.5)
    assert found.flips == {(("m", "b"), 0, 1): 1}


def test_the_other_label_is_known_even_when_nobody_has_it():
    # A gap of false positive rates closes by lowering the only group that has any.
    y_true, group = ["no", "no", "yes", "no", "no"], ["a", "a", "a", "b", "b"]
    keywords = {"sensitive_features": group, "pos_label": "yes", "target": 0.0}
    found = minimal_changes(["yes"] * 5, y_true=y_true, constraints=FPR, **keywords)
    assert found.n_changes == 0
    assert best_fairness([1] * 4, sensitive_features=list("aabb"), max_changes=0).fairness == 1
    keywords = {"sensitive_features": list("aabb"), "pos_label": "yes", "target": 0.8}
    for favorable in (None, "yes", "no"):
        all_positive = minimal_changes(["yes"] * 4, favorable_label=favorable, **keywords)
        assert (all_positive.n_changes, all_positive.flips) == (0, {})


# ---------------------------------------------------------------------------------------------
# Errors


LIMITS = {
    "minimal_changes": lambda y, s, **more: minimal_changes(
        y, sensitive_features=s, target=0.8, **more
    ),
    "minimal_cost": lambda y, s, **more: minimal_cost(
        y, change_cost=[1, 1, 1], sensitive_features=s, target=0.8, **more
    ),
    "best_fairness": lambda y, s, **more: best_fairness(
        y, sensitive_features=s, max_changes=1, **more
    ),
    "minimal_expected_changes": lambda y, s, **more: minimal_expected_changes(
        [1, 0, 1], y, sensitive_features=s, target=0.8, **more
    ),
}


def test_bad_rows_are_refused():
    for limit in LIMITS.values():
        y, group = [1, 0, 1], ["a", "b", "b"]
        with pytest.raises(InputError, match="sensitive_features has 2 rows, but 3 were expected"):
            limit(y, ["a", "b"])
        with pytest.raises(InputError, match="sensitive_features has 1 missing value in 3 rows"):
            limit(y, ["a", None, "b"])
        with pytest.raises(
            InputError, match=r"has one group only \('a'\), and fairness compares two"
        ):
            limit(y, ["a"] * 3)
        with pytest.raises(InputError, match=r"y_pred contains NaN or infinity \(1 NaN\)"):
            limit([1, 0, math.nan], group)
        with pytest.raises(InputError, match="y_pred holds 3 different values"):
            limit([0, 1, 2], group)
        with pytest.raises(InputError, match="pos_label='yes' is not among the values of y_"):
            limit(y, group, pos_label="yes")


def test_unknown_names_are_answered_with_the_known_ones():
    for name in LIMITS:
        limit, y, group = LIMITS[name], [1, 0, 1], ["a", "b", "b"]
        for wrong in ("parity", ["parity"]):  # a list holds several constraints
            with pytest.raises(
                InputError, match=r"^constraints=.* is not known; choose one of"
            ) as error:
                limit(y, group, constraints=wrong)
            assert all(known in str(error.value) for known in (*CONSTRAINTS, "'parity'"))
        with pytest.raises(
            InputError, match="direction='up' is not known; choose one of any, gains_only"
        ):
            limit(y, group, direction="up")
        with pytest.raises(
            InputError, match="favorable_label=7 is neither of the two labels, 0 and 1"
        ):
            limit(y, group, favorable_label=7)


def test_true_labels_are_needed_where_they_are_compared():
    y, group = [1, 0, 1, 0], ["a", "a", "b", "b"]
    for constraints in (ODDS, TPR, FPR):
        keywords = {"sensitive_features": group, "constraints": constraints}
        with pytest.raises(InputError, match=f"{constraints} compares .* but y_true is None"):
            minimal_changes(y, target=0.1, **keywords)
        with pytest.raises(InputError, match=f"{constraints} compares .* but y_true is None"):
            best_fairness(y, max_changes=1, **keywords)
        with pytest.raises(InputError, match=f"{constraints} compares .* but y_true is None"):
            minimal_cost(y, change_cost=[1] * 4, target=0.1, **keywords)
    with pytest.raises(InputError, match="y_true has 2 rows, but 4 were expected"):
        minimal_changes(y, y_true=[1, 0], target=0.1, sensitive_features=group, constraints=TPR)
    with pytest.raises(InputError, match="do not use the same two labels"):
        minimal_changes(
            y, y_true=[1, -1, 1, -1], target=0.1, sensitive_features=group, constraints=TPR
        )


def test_an_empty_cell_leaves_the_rate_undefined_whatever_is_changed():
    y_true, y_pred, group = [1, 1, 0, 1], [1, 0, 0, 1], ["a", "a", "b", "b"]
    keywords = {"sensitive_features": group, "y_true": y_true, "target": 0.1}
    message = "Group 'a' has no row with true label 0, so its false positive rate is undefined"
    for constraints in (ODDS, FPR):
        with pytest.raises(InputError, match=message):
            minimal_changes(y_pred, constraints=constraints, **keywords)
    assert minimal_changes(y_pred, constraints=TPR, **keywords).n_changes == 1


def test_a_budget_is_a_whole_number():
    for budget in [-1, 1.5, "2", True]:
        y, group = [1, 0, 1, 0], ["a", "a", "b", "b"]
        message = re.escape(f"max_changes={budget!r} must be a whole number of changes, 0 or more")
        with pytest.raises(InputError, match=message):
            best_fairness(y, sensitive_features=group, max_changes=budget)


# ---------------------------------------------------------------------------------------------
# What the paper prints about P-rule and changes


def p_rule_of(n_d, g_d, n_a, g_a):
    ratio = Fraction(g_d, n_d) / Fraction(g_a, n_a)
    return min(ratio, 1 / ratio) if ratio else ratio


def two_groups(n_d, g_d, n_a, g_a):
    y_pred = [1] * g_d + [0] * (n_d - g_d) + [1] * g_a + [0] * (n_a - g_a)
    return y_pred, ["d"] * n_d + ["a"] * n_a


@quick
@given(st.data(), st.integers(20, 60), st.integers(20, 60))
def test_before_the_switching_point_all_changes_belong_on_one_side(data, n_d, n_a):
    g_d, g_a = data.draw(st.integers(1, n_d // 3)), data.draw(st.integers(n_a // 2, n_a))
    y_pred, group = two_groups(n_d, g_d, n_a, g_a)
    switch = -(-abs(g_d * n_a - g_a * n_d) // max(n_d, n_a))  # the rates can meet
    k = data.draw(st.integers(1, max(min(switch, g_a) - 1, 1)))
    assume(k < switch)
    assert k <= n_d - g_d  # neither side runs out of people
    all_up = k <= g_a - g_d
    best = p_rule_of(n_d, g_d + k * all_up, n_a, g_a - k * (not all_up))
    found = best_fairness(y_pred, sensitive_features=group, max_changes=k)
    assert found.fairness == float(best)


def test_the_papers_derivative_has_the_wrong_sign():
    g_d, g_a, k = 10, 50, 5  # gamma_11 and gamma_10 in the paper's proof
    printed = g_d - k - g_a
    assert printed < 0  # raising more of the lower group would make the P-rule worse
    assert p_rule_of(50, g_d + k, 100, g_a) > p_rule_of(50, g_d, 100, g_a - k)  # it does not


def test_exactly_k_changes_can_force_harm():
    y_pred, group = [1, 0, 1, 0], ["a", "a", "b", "b"]
    found = best_fairness(y_pred, sensitive_features=group, max_changes=1)
    assert (found.fairness, found.n_changes) == (1.0, 0)
    exactly_one = [1 - v if i == j else v for j in range(4) for i, v in enumerate(y_pred)]
    values = [
        p_rule(None, exactly_one[4 * j : 4 * j + 4], sensitive_features=group) for j in range(4)
    ]
    assert max(values) == 0.5


# ---------------------------------------------------------------------------------------------
# Rules that draw by lot


def cells_by_hand(y_true, y_pred, group):
    """(true positives, false negatives, false positives, true negatives) per group."""
    return {
        label: [
            int(((y_true == y) & (y_pred == p) & (group == label)).sum())
            for y, p in ((1, 1), (1, 0), (0, 1), (0, 0))
        ]
        for label in sorted(set(group))
    }


def expected_gaps(cells, shares):
    tpr, fpr = [], []
    for label, (tp, fn, fp, tn) in cells.items():
        up, down = shares.get((label, 0, 1), 0), shares.get((label, 1, 0), 0)
        tpr.append((tp * (1 - down) + fn * up) / (tp + fn))
        fpr.append((fp * (1 - down) + tn * up) / (fp + tn))
    return max(tpr) - min(tpr), max(fpr) - min(fpr)


@st.composite
def full_tables(draw):
    """Rows of two groups in which every true label occurs."""
    counts = [draw(st.lists(st.integers(0, 6), min_size=4, max_size=4)) for _ in range(2)]
    rows = []
    for label, (tp, fn, fp, tn) in zip("ab", counts, strict=True):
        assume(tp + fn and fp + tn)
        cells = {(1, 1): tp, (1, 0): fn, (0, 1): fp, (0, 0): tn}
        rows += [(y, p, label) for (y, p), n in cells.items() for _ in range(n)]
    return tuple(map(np.array, zip(*rows, strict=True)))


@quick
@given(full_tables(), st.sampled_from([0.0, 0.1, 0.3]))
def test_one_expected_gap_takes_the_cheapest_cell(table, target):
    y_true, y_pred, group = table
    found = minimal_expected_changes(
        y_true, y_pred, sensitive_features=group, target=target, constraints=TPR
    )
    cells = cells_by_hand(*table)
    low, high = sorted(cells, key=lambda label: cells[label][0] / sum(cells[label][:2]))
    gap = expected_gaps(cells, {})[0]
    if gap <= target:
        assert found.n_changes == 0
        return
    tp, fn, fp, tn = cells[low]
    by_raising = (gap - target) * (fn + tn) * (tp + fn) / fn
    tp, fn, fp, tn = cells[high]
    by_lowering = (gap - target) * (tp + fp) * (tp + fn) / tp
    assert found.n_changes == pytest.approx(min(by_raising, by_lowering))
    assert found.rate == pytest.approx(found.n_changes / len(y_true))


@quick
@given(full_tables(), st.sampled_from([0.0, 0.1, 0.3]), directions)
def test_both_expected_gaps_are_closed_and_no_grid_of_shares_is_cheaper(table, target, direction):
    y_true, y_pred, group = table
    found = minimal_expected_changes(
        y_true, y_pred, sensitive_features=group, target=target, direction=direction
    )
    cells = cells_by_hand(*table)
    assert sum(expected_gaps(cells, found.shares)) <= target + 1e-6
    keys = [(label, before, 1 - before) for label in "ab" for before in (0, 1)]
    people = {key: sum((group == key[0]) & (y_pred == key[1])) for key in keys}
    cost = sum(share * people[key] for key, share in found.shares.items())
    assert found.n_changes == pytest.approx(cost)
    allowed = {"any": (0, 1), "gains_only": (0,), "losses_only": (1,)}[direction]
    assert all(key[1] in allowed and 0 < share <= 1 for key, share in found.shares.items())
    for values in itertools.product((0, 0.25, 0.5, 0.75, 1), repeat=4):
        shares = dict(zip(keys, values, strict=True))
        if all(key[1] in allowed or not v for key, v in shares.items()):
            fair = sum(expected_gaps(cells, shares)) <= target
            assert not fair or sum(shares[k] * people[k] for k in keys) >= found.n_changes - 1e-6


def test_seeing_the_labels_saves_changes():
    y_true = np.array([1] * 40 + [0] * 60 + [1] * 40 + [0] * 60)
    y_pred = np.array([1] * 10 + [0] * 90 + [1] * 30 + [0] * 70)
    group = np.array(["a"] * 100 + ["b"] * 100)
    keywords = {"sensitive_features": group, "target": 0.1, "constraints": TPR}
    expected = minimal_expected_changes(y_true, y_pred, **keywords)
    assert minimal_changes(y_pred, y_true=y_true, **keywords).n_changes == 16
    assert expected.shares == {("b", 1, 0): pytest.approx(0.5333333)}
    assert expected.n_changes == pytest.approx(16)  # every positive of b is a true one
    y_pred[140:150] = 1  # now a quarter of them is not, and random draws change them as well
    expected = minimal_expected_changes(y_true, y_pred, **keywords)
    assert expected.n_changes == pytest.approx(16 * 4 / 3)


def test_expected_changes_are_for_constraints_with_labels():
    with pytest.raises(InputError, match="constraints='demographic_parity' compares no true"):
        minimal_expected_changes(
            [1, 0], [1, 0], sensitive_features=["a", "b"], target=0.8, constraints=PARITY
        )


# ---------------------------------------------------------------------------------------------
# What the documentation says


def test_every_name_has_an_example_and_writes_its_real_defaults():
    for name in bounds.__all__:
        thing = getattr(bounds, name)
        text = inspect.getdoc(thing)
        assert ">>>" in text
        parameters = inspect.signature(thing).parameters
        for names, default in re.findall(
            r"^([\w, ]+) : .*?default=(.+?)$", text, flags=re.MULTILINE
        ):
            for parameter in names.split(", "):
                assert parameters[parameter].default == eval(default), parameter
