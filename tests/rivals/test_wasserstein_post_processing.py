"""Wasserstein post-processing: the barycentre is a linear programme's, and rates become equal."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance

from commod import ScoreColumn
from commod.datasets import make_biased
from commod.exceptions import InputError
from commod.rivals import WassersteinPostProcessing, check_rival, fit_strengths
from commod.rivals.wasserstein import (
    distances_to_common,
    score_maps,
    weighted_median,
)

grid_scores = st.lists(st.integers(0, 10).map(lambda i: i / 10), min_size=1, max_size=6)
some_groups = st.lists(grid_scores, min_size=2, max_size=4)


def least_total_distance(scores, shares):
    """Return min over ν of Σ share_s · W1(scores_s, ν), by a linear programme on transports."""
    support = np.unique(np.concatenate(scores))
    k, g = len(support), len(scores)
    sizes = [len(values) for values in scores]
    cost, n_plans = [], [size * k for size in sizes]
    for values, share in zip(scores, shares, strict=True):
        cost.append(share * np.abs(values[:, None] - support).ravel())
    cost = np.concatenate([*cost, np.zeros(k)])
    first = np.cumsum([0, *n_plans])
    rows, wanted = [], []
    for s in range(g):
        for i in range(sizes[s]):  # each person is moved once
            row = np.zeros(len(cost))
            row[first[s] + i * k : first[s] + (i + 1) * k] = 1
            rows.append(row)
            wanted.append(1 / sizes[s])
        for j in range(k):  # and what arrives is ν
            row = np.zeros(len(cost))
            row[first[s] + j : first[s + 1] : k] = 1
            row[first[-1] + j] = -1
            rows.append(row)
            wanted.append(0)
    return linprog(cost, A_eq=np.array(rows), b_eq=wanted).fun


def fitted(table, **how):
    X = table[["score"]].assign(row=np.arange(float(len(table))))
    update = WassersteinPostProcessing(ScoreColumn("score"), **{"min_group_size": 1, **how})
    return update.fit(X, sensitive_features=table["group"]), X


def moved(update, X, groups):
    return update.predict_proba(X, sensitive_features=groups)[:, 1]


# ---------------------------------------------------------------------------------------------
# The barycentre


def test_the_hand_example_moves_only_the_smaller_group():
    small = pd.DataFrame({"score": [0.2, 0.4, 0.6, 0.8, 0.1, 0.3], "group": [0] * 4 + [1] * 2})
    table = pd.concat([small] * 10, ignore_index=True)
    update, X = fitted(table)
    assert update.distances_ == pytest.approx([0, 0.3])
    new = moved(update, X, table["group"])
    assert (new[table["group"] == 0] == table["score"][table["group"] == 0]).all()
    assert new[4:6] == pytest.approx([0.3, 0.7])


@settings(max_examples=20, deadline=None)
@given(some_groups, st.data())
def test_the_total_distance_is_the_least_that_a_linear_programme_finds(groups, data):
    scores = [np.array(values) for values in groups]
    shares = np.array(data.draw(st.lists(st.integers(1, 4), min_size=len(groups),
                                         max_size=len(groups))), float)  # fmt: skip
    shares /= shares.sum()
    weights = [
        np.full(len(values), p / len(values)) for values, p in zip(scores, shares, strict=True)
    ]
    distances = distances_to_common(scores, weights, distribution="barycentre")
    assert shares @ distances == pytest.approx(least_total_distance(scores, shares), abs=1e-9)


@given(grid_scores, grid_scores, st.integers(1, 5), st.integers(1, 5))
def test_distances_are_those_of_scipy(first, second, repeat, other):
    scores = [np.repeat(first, repeat), np.repeat(second, other)]
    sizes = np.array([len(values) for values in scores])
    ones = [np.ones(size) for size in sizes]
    whole = wasserstein_distance(*scores)
    shares = sizes / sizes.sum()
    found = distances_to_common(scores, ones, distribution="barycentre")
    expected = np.where(sizes == sizes.min(), whole, 0) / (1 + (sizes[0] == sizes[1]))
    assert found == pytest.approx(expected, abs=1e-12)
    assert found @ shares == pytest.approx(shares.min() * whole, abs=1e-12)
    pooled = [wasserstein_distance(values, np.concatenate(scores)) for values in scores]
    assert distances_to_common(scores, ones, distribution="pooled") == pytest.approx(
        pooled, abs=1e-12
    )


@given(st.integers(2, 4), st.integers(1, 6), st.data())
def test_groups_of_equal_size_move_by_exactly_their_distance(n_groups, size, data):
    values = st.lists(st.floats(0, 1), min_size=size, max_size=size, unique=True)
    scores = [np.array(data.draw(values)) for _ in range(n_groups)]
    parts = data.draw(st.lists(st.integers(1, 4), min_size=n_groups, max_size=n_groups))
    weights = [np.full(size, float(part)) for part in parts]
    maps = score_maps(scores, weights, distribution="barycentre", n_levels=100)
    distances = distances_to_common(scores, weights, distribution="barycentre")
    new = [score_map.moved(values, 1.0) for score_map, values in zip(maps, scores, strict=True)]
    for before, after, distance in zip(scores, new, distances, strict=True):
        assert np.abs(after - before).mean() == pytest.approx(distance, abs=1e-9)
        assert np.sort(after) == pytest.approx(np.sort(new[0]), abs=1e-12)
        assert (np.diff(after[np.argsort(before)]) >= -1e-15).all()


def test_two_groups_of_equal_weight_meet_in_the_middle():
    low, high = np.array([0.2, 0.4]), np.array([0.4, 0.8])
    assert weighted_median(np.stack([low, high]), np.array([3.0, 3.0])) == pytest.approx([0.3, 0.6])
    assert distances_to_common(
        [low, high], [np.ones(2)] * 2, distribution="barycentre"
    ) == pytest.approx([0.15, 0.15])


# ---------------------------------------------------------------------------------------------
# Decisions


@pytest.fixture(scope="module")
def population():
    rng = np.random.default_rng(0)
    group = rng.choice(3, 3000, p=[0.5, 0.3, 0.2])
    return pd.DataFrame({"score": rng.beta(2 + group, 3), "group": group})


def test_rates_become_equal_at_every_threshold(population):
    for distribution in ["barycentre", "pooled"]:
        for threshold in [0.3, 0.5, 0.8]:
            update, X = fitted(population, distribution=distribution, threshold=threshold)
            decided = pd.Series(update.predict(X, sensitive_features=population["group"]))
            rates = decided.groupby(population["group"]).mean()
            assert np.ptp(rates) < 0.005


def test_strength_is_the_share_of_the_way(population):
    X = population[["score"]].assign(row=0.0)
    how = {"sensitive_features": population["group"]}
    update = WassersteinPostProcessing(ScoreColumn("score"))
    none, half, whole = fit_strengths(update, [0, 0.5, 1], X, **how)
    before = population["score"].to_numpy()
    ends = moved(whole, X, population["group"])
    assert (moved(none, X, population["group"]) == before).all()
    assert moved(half, X, population["group"]) == pytest.approx((before + ends) / 2)
    assert whole.fairness_ > half.fairness_ > none.fairness_


def test_a_large_tie_is_not_split():
    table = pd.DataFrame({"score": [0.6] * 30 + [0.1, 0.9] * 30, "group": [0] * 30 + [1] * 60})
    update, X = fitted(table)
    new = moved(update, X, table["group"])
    assert len(set(new[:30])) == 1
    assert new[0] == pytest.approx(0.5)  # the middle rank of the larger group


def test_few_stored_levels_keep_heavy_ties_and_nearly_the_same_map(population):
    table = population.assign(score=np.where(np.arange(3000) % 4 > 0, population["score"], 0.45))
    exact, X = fitted(table, n_levels=5000)
    thin, _ = fitted(table, n_levels=50)
    assert max(len(score_map.scores) for score_map in thin.maps_) <= 54
    assert all(0.45 in score_map.scores for score_map in thin.maps_)
    off = np.abs(moved(thin, X, table["group"]) - moved(exact, X, table["group"]))
    assert off.mean() < 0.002
    assert off[table["score"] < 0.85].max() < 0.015  # the last 1% of a group has one level


def test_scores_beyond_the_fit_rows_stay_probabilities_in_order(population):
    update, _ = fitted(population)
    score = np.linspace(0, 1, 501)
    X = pd.DataFrame({"score": score, "row": 0.0})
    for group in range(3):
        new = moved(update, X, np.full(501, group))
        assert (np.diff(new) >= 0).all()
        assert new.min() >= 0
        assert new.max() <= 1


def test_weights_count_as_repeated_rows(population):
    weight = np.arange(len(population)) % 3
    X = population[["score"]].assign(row=0.0)
    update = WassersteinPostProcessing(ScoreColumn("score"), n_levels=5000)
    update.fit(X, sensitive_features=population["group"], sample_weight=weight)
    again = population.loc[np.repeat(population.index, weight)].reset_index(drop=True)
    repeated, _ = fitted(again, n_levels=5000)
    ours, theirs = (moved(model, X, population["group"]) for model in (update, repeated))
    assert ours == pytest.approx(theirs, abs=1e-12)
    assert update.distances_ == pytest.approx(repeated.distances_, abs=1e-12)


def test_what_the_method_does_not_know_is_refused(population):
    with pytest.raises(InputError, match="knows 'demographic_parity'"):
        fitted(population, constraints="equalized_odds")
    with pytest.raises(InputError, match="choose one of barycentre, pooled"):
        fitted(population, distribution="middle")
    with pytest.raises(InputError, match="n_levels=1 must be"):
        fitted(population, n_levels=1)


def test_the_contract_holds_on_mixed_columns_and_three_groups():
    data = make_biased(900, group_shares=(0.5, 0.3, 0.2), bias=1.5, n_categories=3, random_state=0)
    X = data.data.assign(score=data.proba_target)
    X["x3"] = X["x3"].where(np.arange(len(X)) % 5 > 0)
    update = WassersteinPostProcessing(ScoreColumn("score"))
    check_rival(update, X, sensitive_features=data.sensitive_features)
