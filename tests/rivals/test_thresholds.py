"""Reject option, thresholds per group and minimal flips: hand examples and independent versions."""

import numpy as np
import pandas as pd
import pytest
from fairlearn.postprocessing import ThresholdOptimizer as FairlearnOptimizer
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression

from commod import ScoreColumn, bounds, metrics
from commod.datasets import make_biased
from commod.exceptions import InputError
from commod.rivals import (
    MinimalFlip,
    RejectOption,
    RelaxedThresholdOptimizer,
    ThresholdOptimizer,
)
from commod.rivals._rows import weight_above
from commod.rivals.thresholds import _cut


def scores_only(scores):
    return pd.DataFrame({"score": scores})


def draw(seed, n=200, n_groups=2, ties=False):
    """Scores with a gap between groups, and labels that follow them."""
    random = np.random.default_rng(seed)
    group = random.integers(0, n_groups, n)
    scores = np.clip(random.beta(2, 3, n) + 0.1 * group, 0.01, 0.99)
    scores = np.round(scores, 1) if ties else scores
    return scores_only(scores), random.random(n) < scores, group


def fitted(kind, X, y, group, **settings):
    update = kind(ScoreColumn("score"), min_group_size=1, **settings)
    return update.fit(X, y, sensitive_features=group)


# ---------------------------------------------------------------------------------------------
# Reject option


def hand_made():
    X = scores_only([0.45, 0.30, 0.55, 0.52, 0.70, 0.40])
    return X, np.array([1, 0, 1, 1, 1, 0]), np.array(["u", "u", "u", "p", "p", "p"])


def test_the_reject_option_of_the_hand_example():
    X, y, group = hand_made()
    update = fitted(RejectOption, X, y, group, strength=0.06)
    assert update.predict(X, sensitive_features=group).tolist() == [1, 0, 1, 0, 1, 0]
    assert update.n_gains_ == update.n_losses_ == 1
    decided = update.predict(X, sensitive_features=group)
    rates = metrics.group_rates(y, decided, sensitive_features=group)
    gap = rates["u"]["selection_rate"] - rates["p"]["selection_rate"]
    assert gap == pytest.approx(1 / 3)  # over-corrected: the other group is ahead now


@given(st.integers(0, 10**6), st.floats(0, 0.5), st.floats(0, 0.5))
@settings(max_examples=10, deadline=None)
def test_a_wider_margin_never_changes_fewer(seed, a, b):
    X, y, group = draw(seed, 60)
    narrow, wide = (fitted(RejectOption, X, y, group, strength=m) for m in sorted([a, b]))
    before = narrow.changes(X, sensitive_features=group).changed
    assert (before <= wide.changes(X, sensitive_features=group).changed).all()


@pytest.mark.parametrize("constraints", ["demographic_parity", "equalized_odds"])
def test_the_search_finds_what_trying_every_pair_finds(constraints):
    X, y, group = draw(3, 150)
    scores = X["score"].to_numpy()
    strength = 1 - 0.1 / _average_gap(constraints, scores > 0.5, y, group)
    how = {"constraints": constraints, "search": True}
    update = fitted(RejectOption, X, y, group, strength=strength, **how)
    unprivileged = update.raised_[group]
    best, decisions = -1.0, None
    for t in np.linspace(0.01, 0.99, 100):
        for margin in np.linspace(0, min(t, 1 - t), 50):
            doubtful = (scores > t - margin) & (scores <= t + margin)
            decided = np.where(doubtful, unprivileged, scores > t)
            balanced = (decided[y].mean() + 1 - decided[~y].mean()) / 2
            is_better = balanced > best + 1e-12
            if is_better and _average_gap(constraints, decided, y, group) <= 0.1:
                best, decisions = balanced, decided
    got = update.decision_proba(X, sensitive_features=group).astype(bool)
    assert (got[y].mean() + 1 - got[~y].mean()) / 2 == pytest.approx(best)
    assert _average_gap(constraints, got, y, group) <= 0.1 + 1e-12
    assert decisions is not None


def _average_gap(constraints, decided, y, group):
    rate_rows = [np.ones(len(y), dtype=bool)] if constraints == "demographic_parity" else [y, ~y]
    return np.mean(
        [
            np.ptp([decided[members & (group == g)].mean() for g in np.unique(group)])
            for members in rate_rows
        ]
    )


@pytest.mark.parametrize("search", [False, True])
def test_where_nobody_is_behind_the_reject_option_changes_nothing(search):
    X, y, _ = draw(5, 100)
    twice = pd.concat([X, X], ignore_index=True)
    group, y = np.repeat([0, 1], 100), np.tile(y, 2)
    update = fitted(RejectOption, twice, y, group, strength=0.3, search=search)
    assert update.change_rate_ == 0


# ---------------------------------------------------------------------------------------------
# Fairlearn's thresholds


@pytest.mark.parametrize(
    ("constraints", "strength"),
    [
        ("demographic_parity", 0.5),
        ("true_positive_rate_parity", 0.7),
        ("false_positive_rate_parity", 1),
        ("equalized_odds", 1),
    ],
)
@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.2)])
def test_fairlearns_probabilities_to_the_last_bit(constraints, strength, shares):
    data = make_biased(600, group_shares=shares, random_state=4)
    model = LogisticRegression().fit(data.data, data.target)
    group = np.asarray(data.sensitive_features)
    update = ThresholdOptimizer(model, constraints=constraints, strength=strength, min_group_size=1)
    update.fit(data.data, data.target, sensitive_features=group)
    theirs = FairlearnOptimizer(
        estimator=model,
        constraints=constraints,
        prefit=True,
        predict_method="predict_proba",
        tol=update.tolerance_ if strength < 1 else None,
    ).fit(data.data, data.target, sensitive_features=group)
    new = make_biased(500, group_shares=shares, random_state=5)
    theirs = theirs._pmf_predict(new.data, sensitive_features=new.sensitive_features)
    ours = update.decision_proba(new.data, sensitive_features=new.sensitive_features)
    assert (ours == theirs[:, 1]).all()
    assert (update.predict_proba(new.data, sensitive_features=new.sensitive_features)[:, 1]
            == ours).all()  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "strength", "constraints"),
    [
        (MinimalFlip, 0.5, "equalized_odds"),
        (RelaxedThresholdOptimizer, 0.5, "demographic_parity"),
        (ThresholdOptimizer, 1.0, "equalized_odds"),
    ],
)
def test_a_row_alone_is_decided_as_in_a_batch(kind, strength, constraints):
    """The last bit of a model's score may depend on the batch: no cut and no random draw may."""
    data = make_biased(400, bias=1.5, random_state=1)
    model = LogisticRegression().fit(data.data, data.target)
    group = np.asarray(data.sensitive_features)
    update = kind(model, strength=strength, constraints=constraints, random_state=0)
    update.fit(data.data, data.target, sensitive_features=group)
    whole = update.predict(data.data, sensitive_features=group)
    some = range(0, 400, 29)
    alone = [update.predict(data.data.iloc[[i]], sensitive_features=group[[i]])[0] for i in some]
    assert (whole[some] == alone).all()


def test_fairlearn_relaxes_no_equalized_odds():
    X, y, group = draw(0)
    with pytest.raises(InputError, match="RelaxedThresholdOptimizer takes anything"):
        fitted(ThresholdOptimizer, X, y, group, constraints="equalized_odds", strength=0.5)


def test_what_fairlearn_cannot_do_is_said():
    X, y, group = draw(0)
    with pytest.raises(InputError, match="Group 0 has rows of one true label only"):
        fitted(ThresholdOptimizer, X, np.where(group == 0, True, y), group)
    with pytest.raises(InputError, match="needs y"):
        fitted(ThresholdOptimizer, X, None, group)
    with pytest.raises(InputError, match="sample_weight"):
        ThresholdOptimizer(ScoreColumn("score")).fit(
            X, y, sensitive_features=group, sample_weight=np.arange(len(y))
        )


# ---------------------------------------------------------------------------------------------
# Relaxed thresholds


def test_the_common_point_of_the_hand_example():
    # ROC corners: group a (FPR .2, TPR .8), group b (.3, .6); equal odds are at (.3, .6), where
    # a takes 7 of 10 positives and 2 of 10 negatives.
    score = [0.2, 0.8]
    cells = {("a", 1): (2, 8), ("a", 0): (8, 2), ("b", 1): (4, 6), ("b", 0): (7, 3)}
    table = [
        (g, y, score[i]) for (g, y), counts in cells.items() for i in (0, 1)
        for _ in range(10 * counts[i])
    ]  # fmt: skip
    group, y, scores = map(np.array, zip(*table, strict=True))
    X = scores_only(scores)
    how = {"constraints": "equalized_odds", "strength": 1}
    update = fitted(RelaxedThresholdOptimizer, X, y, group, **how)
    probability = update.decision_proba(X, sensitive_features=group)
    assert probability[(group == "a") & (scores > 0.5)][0] == pytest.approx(0.7)
    assert probability[(group == "a") & (scores < 0.5)][0] == pytest.approx(0.2)
    assert probability[(group == "b")] == pytest.approx((scores > 0.5)[group == "b"] * 1.0)
    assert update.fairness_ == pytest.approx(0, abs=1e-9)


@given(
    st.integers(0, 10**6),
    st.sampled_from([0.3, 0.7, 1.0]),
    st.sampled_from([2, 3]),
    st.booleans(),
    st.sampled_from(
        ["demographic_parity", "equalized_odds", "true_positive_rate_parity",
         "false_positive_rate_parity"]
    ),
)  # fmt: skip
@settings(max_examples=15, deadline=None)
def test_no_other_mix_of_thresholds_is_more_accurate(seed, strength, n_groups, ties, constraints):
    X, y, group = draw(seed, 80, n_groups, ties)
    if any(len(np.unique(y[group == g])) < 2 for g in range(n_groups)):
        return
    how = {"constraints": constraints, "strength": strength, "change_weight": 0.0}
    update = fitted(RelaxedThresholdOptimizer, X, y, group, **how)
    if np.isnan(update.base_fairness_) or np.isnan(update.fairness_):
        return
    is_floor = constraints == "demographic_parity"
    slack = update.fairness_ - update.target_
    assert (slack >= -1e-7) if is_floor else (slack <= 1e-7)
    best = _best_accuracy(X["score"].to_numpy(), y, group, constraints, update.target_)
    assert update.accuracy_ == pytest.approx(best, abs=1e-6)


def _best_accuracy(scores, y, group, constraints, target):
    """Every threshold of every group as a variable, instead of the corners of a hull."""
    cuts = np.append(-np.inf, np.unique(scores))
    rules = scores[:, None] > cuts
    k, n_groups = len(cuts), group.max() + 1
    rate_rows = {
        "demographic_parity": [np.ones(len(y), dtype=bool)],
        "equalized_odds": [y, ~y],
        "true_positive_rate_parity": [y],
        "false_positive_rate_parity": [~y],
    }[constraints]
    width = n_groups * k + 2 * len(rate_rows)
    rows, limits, cost, one = [], [], np.zeros(width), np.zeros((n_groups, width))
    for g in range(n_groups):
        span = slice(g * k, (g + 1) * k)
        one[g, span] = 1
        right = rules[group == g] == y[group == g, None]
        cost[span] = -right.sum(axis=0) / len(y)
        for i, members in enumerate(rate_rows):
            rate = np.zeros(width)
            rate[span] = rules[members & (group == g)].mean(axis=0)
            high, low = rate.copy(), -rate
            high[n_groups * k + i], low[n_groups * k + len(rate_rows) + i] = -1, 1
            rows += [high, low]
            limits += [0, 0]
    fair = np.zeros(width)
    if constraints == "demographic_parity":
        fair[-2:] = target, -1
    else:
        fair[n_groups * k :] = [1] * len(rate_rows) + [-1] * len(rate_rows)
    limits.append(0 if constraints == "demographic_parity" else target)
    solution = linprog(cost, [*rows, fair], limits, one, np.ones(n_groups), bounds=(0, 1))
    return -solution.fun


def test_a_change_that_costs_more_changes_less():
    X, y, group = draw(1, 400)
    cheap, dear = (
        fitted(
            RelaxedThresholdOptimizer,
            X,
            y,
            group,
            strength=0.5,
            change_weight=w,
            constraints="equalized_odds",
        ).change_rate_
        for w in (0.0, 0.5)
    )
    assert dear < cheap


def test_weights_are_repetitions():
    X, y, group = draw(2, 60)
    weight = np.arange(60) % 3
    how = {"strength": 0.7, "min_group_size": 1, "constraints": "equalized_odds"}
    weighted = RelaxedThresholdOptimizer(ScoreColumn("score"), **how).fit(
        X, y, sensitive_features=group, sample_weight=weight
    )
    again = np.repeat(np.arange(60), weight)
    repeated = RelaxedThresholdOptimizer(ScoreColumn("score"), **how).fit(
        X.iloc[again], y[again], sensitive_features=group[again]
    )
    probabilities = [m.decision_proba(X, sensitive_features=group) for m in (weighted, repeated)]
    assert probabilities[0] == pytest.approx(probabilities[1], abs=1e-6)


def test_the_weight_above_each_cut():
    assert weight_above(np.array([0.1, 0.5, 0.5]), np.array([1.0, 2, 3]), np.array([0.5, 0.1]))\
        .tolist() == [0, 5]  # fmt: skip


@given(st.lists(st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0]), min_size=1, max_size=9), st.data())
def test_a_cut_gives_as_many_positives_as_asked(scores, data):
    n_positive = data.draw(st.integers(0, len(scores)))
    cut, share = _cut(np.array(scores), n_positive, 0.5)
    expected = sum(score > cut for score in scores) + share * scores.count(cut)
    assert expected == pytest.approx(n_positive)
    assert share < 1  # people whom no draw decides lie on one side of the cut, not at it


# ---------------------------------------------------------------------------------------------
# Minimal flips


@given(st.integers(0, 10**6), st.floats(0.01, 0.99), st.sampled_from([2, 3]), st.booleans())
@settings(max_examples=15, deadline=None)
def test_minimal_flips_equal_the_exact_limit(seed, strength, n_groups, ties):
    X, _, group = draw(seed, 90, n_groups, ties)
    update = fitted(MinimalFlip, X, None, group, strength=strength)
    if np.isnan(update.base_fairness_):
        return
    before = (X["score"] > 0.5).to_numpy()
    limit = bounds.minimal_changes(
        before, sensitive_features=group, target=update.target_, pos_label=True
    )
    assert update.n_gains_ + update.n_losses_ == pytest.approx(limit.n_changes)
    assert update.fairness_ >= update.target_ - 1e-12


@given(st.integers(0, 10**6), st.floats(0.01, 1.0))
@settings(max_examples=10, deadline=None)
def test_minimal_flips_under_equalized_odds_reach_the_limit_without_labels(seed, strength):
    X, y, group = draw(seed, 120)
    how = {"constraints": "equalized_odds", "strength": strength}
    update = fitted(MinimalFlip, X, y, group, **how)
    if np.isnan(update.base_fairness_):
        return
    limit = bounds.minimal_expected_changes(
        y, (X["score"] > 0.5).to_numpy(), sensitive_features=group, target=update.target_,
        pos_label=True,
    )  # fmt: skip
    assert update.change_rate_ == pytest.approx(limit.rate, abs=1e-9)
    assert update.fairness_ <= update.target_ + 1e-9


def test_those_nearest_to_the_threshold_change():
    X = scores_only([0.9, 0.8, 0.45, 0.2, 0.9, 0.8, 0.7, 0.1])
    group = np.repeat([0, 1], 4)
    update = fitted(MinimalFlip, X, None, group, strength=0.99)
    changed = update.changes(X, sensitive_features=group).changed
    assert changed.tolist() == [False, False, True, False, False, False, False, False]


def test_people_have_no_weights():
    X, y, group = draw(0)
    with pytest.raises(InputError, match="does not know sample weights"):
        MinimalFlip(ScoreColumn("score")).fit(
            X, y, sensitive_features=group, sample_weight=np.arange(len(y))
        )
