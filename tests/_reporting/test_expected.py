"""An audit says what the fit expects on new people, if it is about the same request."""

from __future__ import annotations

import math

import pytest
from sklearn.linear_model import LogisticRegression

from commod import Audit, audit, explain
from commod._reporting.explain.expected import expected_of
from commod.datasets import make_biased
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
    assert result.expected.fairness == update.expected_fairness_
    assert result.expected.change_rate == update.expected_change_rate_
    assert result.expected.accuracy == update.expected_accuracy_
    assert result.expected.spread == update.expected_spread_["fairness"]
    assert Audit.from_json(result.to_json()) == result


@pytest.mark.parametrize("asked", [{"target": 0.7}, {"constraints": "equalized_odds"}])
def test_an_expectation_of_another_request_is_not_shown(asked, update, rows):
    assert audited(update, rows, request=asked).expected is None


def test_without_labels_the_expected_accuracy_is_not_known():
    class Unlabelled:
        expected_fairness_, expected_change_rate_ = 0.8, 0.1
        expected_accuracy_, expected_spread_ = math.nan, {"fairness": math.nan}

    assert expected_of(Unlabelled()).accuracy is expected_of(Unlabelled()).spread is None
    assert expected_of(LogisticRegression()) is None
