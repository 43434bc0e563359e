"""Every group beside a reference group: adverse impact ratio, standardised mean difference."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commod import audit, audit_frame
from commod.exceptions import InputError
from commod.metrics import adverse_impact_ratio, p_rule, standardized_mean_difference

ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from("abc"), st.integers(0, 16), st.integers(1, 4)),
    min_size=2,
    max_size=30,
)


@given(rows=ROWS)
def test_both_are_the_definitions_by_hand(rows):
    decisions, groups, points, weights = (np.array(column) for column in zip(*rows, strict=True))
    scores = points / 16
    options = {"sensitive_features": groups, "sample_weight": weights}
    repeated = np.repeat(np.arange(len(groups)), weights)  # a weight is a number of people
    people = groups[repeated]
    names = sorted(set(groups))
    rates = {g: decisions[repeated][people == g].mean() for g in names}
    means = {g: scores[repeated][people == g].mean() for g in names}
    spread = scores[repeated].std()
    ratios = adverse_impact_ratio(None, decisions, reference=names[0], **options)
    gaps = standardized_mean_difference(scores, reference=names[0], **options)
    for g in names:
        expected = rates[g] / rates[names[0]] if rates[names[0]] else math.nan
        assert ratios[g] == pytest.approx(expected, nan_ok=True)
        expected = (means[g] - means[names[0]]) / spread if spread > 1e-9 else math.nan
        if spread > 1e-9:
            assert gaps[g] == pytest.approx(expected, abs=1e-9)


def test_without_a_reference_the_group_that_fares_best_is_it():
    decisions = [1, 1, 0, 0, 1, 0, 0, 0]
    groups = ["a"] * 4 + ["b"] * 4
    ratios = adverse_impact_ratio(None, decisions, sensitive_features=groups)
    assert ratios == {"a": 1.0, "b": 0.5}
    assert min(ratios.values()) == p_rule(None, decisions, sensitive_features=groups)
    denials = adverse_impact_ratio(None, decisions, sensitive_features=groups, pos_label=0)
    assert denials == {"a": pytest.approx(2 / 3), "b": 1.0}
    gaps = standardized_mean_difference([0.5] * 8, sensitive_features=groups)
    assert np.isnan(list(gaps.values())).all()
    with pytest.raises(InputError, match="reference='c' is not a group"):
        adverse_impact_ratio(None, decisions, sensitive_features=groups, reference="c")


def test_an_audit_has_both_beside_its_reference_group():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b", "c"], 60)
    scores = np.clip(rng.normal(0.5, 0.2, 180) - 0.1 * (group == "b"), 0, 1)
    edited = np.clip(scores + 0.1 * (group == "b"), 0, 1)
    before, after = (scores > 0.5).astype(int), (edited > 0.5).astype(int)
    result = audit(
        before, after, sensitive_features=group, scores_before=scores, scores_after=edited
    )
    rates = {g: before[group == g].mean() for g in "abc"}
    best = max(rates, key=rates.get)
    ratios = adverse_impact_ratio(None, after, sensitive_features=group, reference=best)
    gaps = standardized_mean_difference(edited, sensitive_features=group, reference=best)
    assert [g.name for g in result.groups if g.is_reference] == [best]
    for found in result.groups:
        assert found.impact_after == pytest.approx(ratios[found.name])
        assert found.score_gap_after == pytest.approx(gaps[found.name])
    frame = pd.DataFrame({"b": before, "a": after, "g": group, "s": scores, "e": edited})
    counted = audit_frame(
        frame, before="b", after="a", sensitive_features="g", scores_before="s", scores_after="e"
    )
    for one, other in zip(result.groups, counted.groups, strict=True):
        assert other.impact_before == one.impact_before
        assert other.score_gap_before == pytest.approx(one.score_gap_before)


def test_the_reference_is_the_highest_group_the_first_of_several_and_never_one_without_weight():
    groups, decisions = list("aabbccdd"), [0, 0, 1, 0, 1, 0, 1, 1]
    people = {"sensitive_features": groups, "sample_weight": [1] * 6 + [0] * 2}
    ratios = adverse_impact_ratio(None, decisions, **people)
    assert ratios == pytest.approx({"a": 0.0, "b": 1.0, "c": 1.0, "d": math.nan}, nan_ok=True)
    nobody = adverse_impact_ratio(None, decisions, reference="a", **people)
    assert np.isnan(list(nobody.values())).all()  # nobody of the reference is selected
    scores = [0.1, 0.3, 0.5, 0.7, 0.6, 0.6, 1.0, 1.0]
    gaps = standardized_mean_difference(scores, **people)
    spread = np.std(scores[:6])
    expected = {"a": -0.4 / spread, "b": 0.0, "c": 0.0, "d": math.nan}
    assert gaps == pytest.approx(expected, nan_ok=True, abs=1e-12)
    of_a = standardized_mean_difference(scores, reference="a", **people)
    assert of_a["b"] == pytest.approx(0.4 / spread) and of_a["a"] == 0
