"""The Wasserstein penalty against linear programmes and SciPy, and the regression around it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import wasserstein_distance
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from commod import ScoreColumn
from commod.datasets import make_biased
from commod.exceptions import CommodWarning, InputError, TrainingWarning
from commod.rivals import WassersteinLogisticRegression, check_rival, fit_strengths
from commod.rivals._group_model import solve_root, times_root
from commod.rivals.wasserstein import (
    WassersteinLoss,
    group_distance,
)

SCORES, GROUP = np.array([0.2, 0.4, 0.6, 0.8, 0.1, 0.3]), np.array([0, 0, 0, 0, 1, 1])


@pytest.fixture(scope="module")
def rows():
    """Numbers with gaps, a category, two groups; a column holds the scores."""
    data = make_biased(600, bias=1.5, n_categories=3, random_state=0)
    X = data.data.assign(score=data.proba_target)
    X.loc[np.arange(len(X)) % 5 == 0, "x3"] = np.nan
    return X, np.asarray(data.target), np.asarray(data.sensitive_features)


@pytest.fixture(scope="module")
def numbers(rows):
    return rows[0][["x0", "x1", "x2"]], rows[1], rows[2]


def fit(model, rows, sample_weight=None, **params):
    X, y, group = rows
    update = WassersteinLogisticRegression(model, **params)
    return update.fit(X, y, sensitive_features=group, sample_weight=sample_weight)


# -- the penalty ----------------------------------------------------------------------------------


def test_the_distance_of_two_groups_by_hand():
    """W1 is 0.3. With shares p of 2/3 and 1/3 the sums are 0.3 min p, and 0.3 · 2 p (1 − p)."""
    assert group_distance(SCORES, GROUP, np.ones(6))[0] == pytest.approx(0.1)
    assert group_distance(SCORES, GROUP, np.ones(6), "pooled")[0] == pytest.approx(0.4 / 3)


def test_equal_groups_have_no_penalty():
    for target in ["barycentre", "pooled"]:
        scores = np.tile([0.1, 0.5, 0.5, 0.9], 3)
        distance, _ = group_distance(scores, np.repeat([0, 1, 2], 4), np.ones(12), target)
        assert distance == pytest.approx(0, abs=1e-15)


weights = st.sampled_from([0.5, 1.0, 2.0])
people = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 2), weights), min_size=1, max_size=9
).map(lambda some: [*some, (3, 0, 1.0), (17, 1, 1.0), (31, 2, 2.0)])


@settings(max_examples=12)
@given(people)
def test_penalties_equal_a_linear_programme_and_scipy(people):
    score, group, weight = (np.array(part) for part in zip(*people, strict=True))
    score = score / 40
    shares = np.bincount(group, weight) / weight.sum()
    to_all = [
        wasserstein_distance(score[group == a], score, weight[group == a], weight) for a in range(3)
    ]
    assert group_distance(score, group, weight, "pooled")[0] == pytest.approx(shares @ to_all)
    assert group_distance(score, group, weight)[0] == pytest.approx(
        nearest_distribution(score, group, weight, shares), abs=1e-9
    )


def nearest_distribution(score, group, weight, shares):
    """Return the least Σ_a p_a W1 to any distribution on the scores, by a linear programme.

    Its unknowns are the values of the distribution function, then those of each |F_a − F|.
    """
    points = np.unique(score)
    k, gaps = len(points), np.append(np.diff(points), 0)
    functions = np.array(
        [
            [weight[(group == a) & (score <= t)].sum() / weight[group == a].sum() for t in points]
            for a in range(3)
        ]
    )
    cost = np.concatenate([np.zeros(k), *(p * gaps for p in shares)])
    above, limits = [], []
    for a in range(3):
        for sign in (1, -1):
            row = np.zeros((k, 4 * k))
            row[:, :k], row[:, (a + 1) * k : (a + 2) * k] = -sign * np.eye(k), -np.eye(k)
            above.append(row)
            limits.append(-sign * functions[a])
    rising = np.hstack([np.eye(k)[:-1] - np.eye(k)[1:], np.zeros((k - 1, 3 * k))])
    found = linprog(
        cost,
        A_ub=np.vstack([*above, rising]),
        b_ub=np.concatenate([*limits, np.zeros(k - 1)]),
        bounds=(0, 1),
    )
    return found.fun


def test_the_gradient_is_that_of_finite_differences():
    for target in ["barycentre", "pooled"]:
        for n_groups in [2, 3]:
            rng = np.random.default_rng(0)
            n = 60
            loss = WassersteinLoss(
                matrix=rng.normal(size=(n, 3)) * [1, 10, 0.1],
                label=rng.random(n) < 0.4,
                weight=rng.integers(0, 3, n) * 1.0,
                group=rng.integers(-1, n_groups, n),
                group_weight=rng.integers(0, 3, n) * 0.5,
                ridge=0.1,
                target=target,
            )
            at, step = np.array([0.5, 0.05, -2.0, 0.3]), 1e-7
            _, gradient = loss.at(at, 3.0)
            for i, e in enumerate(np.eye(4) * step):
                slope = (loss.at(at + e, 3.0)[0] - loss.at(at - e, 3.0)[0]) / (2 * step)
                assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-6)
            v = times_root(loss.root, at)
            np.testing.assert_allclose(solve_root(loss.root, v), at)
            value, by_v = loss(v, 3.0)
            assert value == pytest.approx(loss.at(at, 3.0)[0])
            e = np.array([0.0, step, 0.0, 0.0])
            slope = (loss(v + e, 3.0)[0] - loss(v - e, 3.0)[0]) / (2 * step)
            assert by_v[1] == pytest.approx(slope, rel=1e-4, abs=1e-6)


# -- the regression -------------------------------------------------------------------------------


def test_it_starts_from_the_coefficients_of_the_base_model(numbers):
    X, y, _ = numbers
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, class_weight="balanced"))
    update = fit(model.fit(X, y), numbers, strength=1e-9)
    np.testing.assert_allclose(update.regression_.coefficients, model[-1].coef_[0], atol=1e-3)
    assert update.change_rate_ < 0.005
    one_step = fit(model, numbers, strength=2, max_iter=1)
    far = fit(model, numbers, strength=2)
    assert one_step.distance_ < one_step.base_distance_
    assert far.distance_ < one_step.distance_


def test_strength_makes_scores_alike_and_zero_keeps_the_base_model(rows):
    X, y, group = rows
    update = WassersteinLogisticRegression(ScoreColumn("score"), threshold=0.4)
    zero, weak, strong = fit_strengths(update, [0, 1, 6], X, y, sensitive_features=group)
    assert zero.regression_ is None
    assert (zero.predict_proba(X)[:, 1] == X["score"]).all()
    assert zero.distance_ > weak.distance_ > strong.distance_
    assert strong.fairness_ > 0.8 > zero.fairness_
    scores = strong.predict_proba(X)[:, 1]
    by_group = [scores[group == g] for g in np.unique(group)]
    share = min(len(part) for part in by_group) / len(scores)
    assert strong.distance_ == pytest.approx(share * wasserstein_distance(*by_group))


def test_the_two_targets_differ_by_a_factor_for_two_groups(numbers):
    X, y, group = numbers
    p = (group == group[0]).mean()
    model = LogisticRegression().fit(X, y)
    near = fit(model, numbers, strength=2 * max(p, 1 - p))
    pooled = fit(model, numbers, strength=1, compared_with="pooled")
    np.testing.assert_allclose(near.predict_proba(X), pooled.predict_proba(X), atol=1e-3)


def test_a_weight_of_two_is_a_repeated_row(rows):
    X, y, group = rows
    weight = 1.0 + (np.arange(len(X)) % 3 == 0)
    twice = np.repeat(np.arange(len(X)), weight.astype(int))
    params = {"strength": 1, "min_category_size": 1}
    weighted = fit(ScoreColumn("score"), rows, sample_weight=weight, **params)
    repeated = fit(ScoreColumn("score"), (X.iloc[twice], y[twice], group[twice]), **params)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=2e-3)


def test_inputs_of_a_pipeline_may_be_sparse_and_the_positive_label_either(rows):
    X, y, group = rows
    X = X[["x0", "x1", "category"]]
    encode = make_column_transformer(
        (StandardScaler(), ["x0", "x1"]), (OneHotEncoder(), ["category"]), sparse_threshold=1
    )
    model = make_pipeline(encode, LogisticRegression()).fit(X, y)
    update = fit(model, (X, y, group), strength=2)
    mirrored = fit(model, (X, y, group), strength=2, pos_label=0)
    assert update.fairness_ > update.base_fairness_
    np.testing.assert_allclose(update.predict_proba(X), mirrored.predict_proba(X), atol=1e-3)


def test_many_terms_take_the_diagonal_and_find_the_same(rows, monkeypatch):
    update = fit(ScoreColumn("score"), rows, strength=1).predict_proba(rows[0])
    monkeypatch.setattr("commod.rivals._group_model.MANY_COLUMNS", 1)
    diagonal = fit(ScoreColumn("score"), rows, strength=1, max_iter=500).predict_proba(rows[0])
    np.testing.assert_allclose(diagonal, update, atol=0.02)


@pytest.fixture(scope="module")
def three_groups():
    data = make_biased(500, group_shares=(0.5, 0.3, 0.2), n_categories=3, random_state=1)
    X = data.data.assign(score=data.proba_target)
    X.loc[::4, "x1"] = np.nan
    return X, np.asarray(data.target), np.asarray(data.sensitive_features)


@pytest.mark.filterwarnings("ignore:At strength=16 training ended with one decision")
def test_several_groups_strings_and_gaps_keep_the_contract(three_groups):
    X, y, group = three_groups
    check_rival(WassersteinLogisticRegression(ScoreColumn("score")), X, y, sensitive_features=group)


@pytest.mark.parametrize("seed", range(5))
def test_hostile_tables_give_no_numerical_warning(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 60))
    X = pd.DataFrame(
        {
            "number": rng.choice([0.0, 1e-9, 1e9, np.nan], n),
            "town": rng.choice(["a", "b"], n),
            "score": rng.choice([0.0, 0.5, 1.0, rng.random()], n),
        }
    )
    X.iloc[:2, 2], X.iloc[:2, 0] = [0.0, 1.0], [1.0, 2.0]
    group, y = rng.integers(0, 3, n), rng.integers(0, 2, n)
    group[:2], y[:2] = [0, 1], [0, 1]
    weight = rng.choice([0.0, 1.0, 1e6], n)
    weight[:2] = 1
    params = {"min_group_size": 1, "min_category_size": 1, "strength": float(rng.choice([1, 50]))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        update = fit(ScoreColumn("score"), (X, y, group), sample_weight=weight, **params)
        assert np.isfinite(update.predict_proba(X)).all()


def test_collapse_to_one_decision_is_said_aloud(three_groups):
    with pytest.warns(TrainingWarning, match=r"strength=200 .* Lower the strength"):
        update = fit(ScoreColumn("score"), three_groups, strength=200, max_iter=200)
    assert update.distance_ < 1e-3


# -- refusals -------------------------------------------------------------------------------------


def test_labels_are_needed(numbers):
    with pytest.raises(InputError, match=r"requires y .* WassersteinLogisticRegression trains"):
        fit(LogisticRegression().fit(*numbers[:2]), (numbers[0], None, numbers[2]))


def test_what_it_does_not_know_is_refused(numbers):
    for params, words in [
        ({"constraints": "equalized_odds"}, "knows 'demographic_parity'; got 'equalized_odds'"),
        ({"compared_with": "mean"}, "compared_with='mean' is not known"),
        ({"locked_features": ["x0"]}, "reads the same inputs. Pass ScoreColumn"),
        ({"max_iter": 0}, "max_iter=0"),
    ]:
        with pytest.raises(InputError, match=words):
            fit(LogisticRegression().fit(*numbers[:2]), numbers, **params)
