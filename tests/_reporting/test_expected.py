"""An audit says what the fit expects on new people, if it is about the same request."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
from sklearn.linear_model import LogisticRegression

from commod import Audit, audit, explain
from commod._reporting.explain.explanation import expected_of
from commod._reporting.render import texts
from commod.datasets import make_biased
from commod.updates._found_update import Expectation
from quick_updates import quick_control


@pytest.fixture(scope="module")
def rows():
    return make_biased(600, random_state=1)


@pytest.fixture(scope="module")
def update(rows):
    old = make_biased(600, random_state=0)
    update = quick_control(LogisticRegression().fit(old.data, old.target), target_on="new_rows")
    return update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)


def audited(update, rows, **more):
    why = explain(update, rows.data)
    return audit(
        why.y_before,
        why.y_after,
        sensitive_features=rows.sensitive_features,
        y_true=rows.target,
        explanation=why,
        **more,
    )


def test_an_audit_has_the_figures_of_the_fit_and_keeps_them_in_json(update, rows):
    result = audited(update, rows)
    assert result.expected.fairness == update.expected_.fairness
    assert result.expected.change_rate == update.expected_.change_rate
    assert result.expected.accuracy == update.expected_.accuracy
    assert (result.expected.low, result.expected.high) == update.expected_.interval
    assert result.expected.low < result.expected.fairness < result.expected.high
    assert Audit.from_json(result.to_json()) == result


@pytest.mark.parametrize("asked", [{"target": 0.7}, {"constraints": "equalized_odds"}])
def test_an_expectation_of_another_request_is_not_shown(asked, update, rows):
    assert audited(update, rows, request=asked).expected is None


def test_without_labels_the_expected_accuracy_is_not_known():
    unlabelled = Expectation(0.8, (math.nan, math.nan), 0.1, math.nan, {}, is_reached=True)
    expected = expected_of(SimpleNamespace(expected_=unlabelled))
    assert expected.accuracy is expected.low is expected.high is None
    assert expected_of(LogisticRegression()) is None


def test_the_interval_of_a_new_sample_is_in_the_line_with_the_expectation(update, rows):
    result = audited(update, rows)
    low, high = update.expected_.interval
    interval = f"(95% interval for as many people: {low:.3f} to {high:.3f}), measured"
    assert interval in texts.asked_expected_measured(result)
    without = replace(result, expected=replace(result.expected, low=None, high=None))
    assert "interval" not in texts.asked_expected_measured(without)


def test_an_audit_of_version_0_2_keeps_its_spread(update, rows):
    stored = json.loads(audited(update, rows).to_json())
    del stored["expected"]["low"], stored["expected"]["high"]
    stored["expected"]["spread"] = 0.042
    loaded = Audit.from_json(json.dumps(stored))
    assert (loaded.expected.spread, loaded.expected.low) == (0.042, None)
    assert "the standard deviation of the P-rule" in texts.expected_figures(loaded)
    assert "0.042" in texts.expected_figures(loaded)
