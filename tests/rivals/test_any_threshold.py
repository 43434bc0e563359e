"""Rivals decide alike when the score and its threshold are shifted together on the logit scale."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import expit, logit

from commod import ScoreColumn
from commod.rivals import (
    FRAPPE,
    LPP,
    BayesPlugIn,
    MinimalFlip,
    RejectOption,
    RelaxedThresholdOptimizer,
    ThresholdOptimizer,
)
from commod.rivals._rows import at_half, from_half, middle

pytestmark = [
    pytest.mark.filterwarnings("ignore::commod.exceptions.CommodWarning"),
    pytest.mark.usefixtures("quick_compilation"),
]

RIVALS = {
    "LPP": (LPP, {}),
    "LPP (aware)": (LPP, {"aware": True}),
    "BayesPlugIn": (BayesPlugIn, {"lambda_ratio": 0.05}),
    "BayesPlugIn (aware)": (BayesPlugIn, {"aware": True}),
    "RejectOption": (RejectOption, {}),
    "RejectOption, searched": (RejectOption, {"search": True}),
    "MinimalFlip": (MinimalFlip, {}),
    "RelaxedThresholdOptimizer": (RelaxedThresholdOptimizer, {}),
    "ThresholdOptimizer": (ThresholdOptimizer, {}),
}
STRENGTHS = {"demographic_parity": 0.3, "equalized_odds": 1.0, "true_positive_rate_parity": 0.8}


def population(seed, n=160):
    """Return columns, margins, labels and groups of a small population."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    X = pd.DataFrame({"a": rng.normal(size=n) + group, "b": rng.normal(size=n)})
    margin = X["a"] + 0.5 * X["b"] - 0.4 + 0.3 * rng.normal(size=n)
    label = rng.uniform(size=n) < expit(margin)
    return X, margin.to_numpy(), label.astype(int), group


def swept(seed, n=1000):
    """Return rows with margins so close that every cut between two fit rows is met."""
    X, _, label, group = population(seed, n)
    return X, np.linspace(-3, 3, n), label, group


def positive_share(make, threshold, tables, constraints):
    """Return the probability of a positive decision on the fit rows and on new rows."""
    shares = []
    update = make(constraints=constraints, threshold=threshold)
    for X, margin, label, group in tables:
        X = X.assign(score=expit(margin + logit(threshold)))
        if not shares:
            update.fit(X, label, sensitive_features=group)
        known = {"sensitive_features": group} if update.needs_sensitive_features else {}
        shares.append(update.decision_proba(X, **known))
    return np.concatenate(shares)


def assert_same_at(first, second, make, tables, constraints):
    before = positive_share(make, first, tables, constraints)
    after = positive_share(make, second, tables, constraints)
    np.testing.assert_allclose(after, before, atol=1e-7)


SHIFTS = [  # seed, two thresholds, constraint
    (1, 0.5, 0.9, "demographic_parity"),
    (2, 0.7, 0.2, "equalized_odds"),
    (3, 0.04, 0.6, "true_positive_rate_parity"),
]


@pytest.mark.parametrize("name", RIVALS)
def test_decisions_stay_when_score_and_threshold_are_shifted_together(name):
    seed, first, second, constraints = SHIFTS[list(RIVALS).index(name) % 3]
    method, how = RIVALS[name]
    strength = STRENGTHS[constraints]

    def make(**more):
        return method(ScoreColumn("score"), strength=strength, min_group_size=5, **how, **more)

    assert_same_at(first, second, make, [population(seed), swept(seed)], constraints)


def test_frappe_learns_the_same_term_when_score_and_threshold_are_shifted_together():
    def make(**more):
        how = {"strength": 2.0, "epochs": 4, "batch_size": 128, "random_state": 0}
        return FRAPPE(ScoreColumn("score"), **how, **more)

    tables = [population(seed) for seed in (0, 1)]
    assert_same_at(0.5, 0.9, make, tables, "demographic_parity")


def test_lpp_needs_no_more_changes_at_a_high_threshold():
    X, margin, label, group = population(3, n=800)
    for threshold in (0.5, 0.9):
        scored = X.assign(score=expit(margin + logit(threshold)))
        update = LPP(ScoreColumn("score"), threshold=threshold)
        update.fit(scored, label, sensitive_features=group)
        if threshold == 0.5:
            expected = update.change_rate_
    assert update.change_rate_ == expected > 0


def test_the_critical_region_lies_evenly_around_any_threshold():
    X, margin, label, group = population(0, n=400)
    scored = X.assign(score=expit(margin + logit(0.9)))
    update = RejectOption(ScoreColumn("score"), strength=0.2, threshold=0.9)
    update.fit(scored, label, sensitive_features=group)
    changed = update.changes(scored, sensitive_features=group).changed
    is_raised = update.raised_[group]
    expected = (np.abs(expit(margin) - 0.5) <= 0.2) & (is_raised != (margin > 0))
    assert changed.tolist() == expected.tolist()


# ---------------------------------------------------------------------------------------------
# The shift itself

scores = st.lists(st.floats(0, 1), min_size=1, max_size=20).map(np.array)


@given(scores, st.floats(1e-6, 1 - 1e-6))
def test_shifted_scores_keep_their_side_and_their_order(values, threshold):
    neighbours = [np.nextafter(threshold, side) for side in (0.0, 1.0)]
    values = np.concatenate([values, [0.0, threshold, 1.0], neighbours])
    shifted = at_half(values, threshold)
    assert ((shifted > 0.5) == (values > threshold)).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(shifted[order]) >= -1e-15).all()
    assert shifted.min() == 0 and shifted.max() == 1
    inside = (values > 1e-9) & (values < 1 - 1e-9)
    expected = expit(logit(values[inside]) - logit(threshold))
    np.testing.assert_allclose(shifted[inside], expected, rtol=1e-6)
    np.testing.assert_allclose(from_half(shifted, threshold), values, atol=1e-9)


@given(scores)
def test_at_threshold_half_scores_are_untouched(values):
    assert at_half(values, 0.5) is values
    assert from_half(values, 0.5) is values


@given(st.floats(0, 1), st.floats(0, 1), st.floats(1e-6, 1 - 1e-6))
def test_a_cut_separates_its_two_scores(a, b, threshold):
    assume(a != b)
    for low, high in ((min(a, b), max(a, b)), (np.nextafter(b, -1), b)):
        cut = middle(np.array(low), np.array(high), threshold)
        assert low <= cut < high
