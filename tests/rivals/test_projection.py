"""FairScoreTransformer and FairProjection beside hand examples, the authors' code and duality."""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit, xlogy
from sklearn.base import BaseEstimator, ClassifierMixin

from commod import ScoreColumn
from commod.exceptions import CommodWarning, InputError
from commod.rivals import FairProjection, FairScoreTransformer, check_rival, fit_strengths
from commod.rivals.projection import (
    MeanScores,
    best_prices,
    difference_dual,
    difference_gap,
    projected_scores,
    ratio_dual,
)

pytestmark = pytest.mark.filterwarnings("ignore::commod.exceptions.CommodWarning")

FIXTURE = json.loads(Path(__file__).with_name("fixtures").joinpath("projection.json").read_text())
# with Kullback-Leibler and their regulariser, the authors' code has another penalty than the paper
ANOTHER_PENALTY = [case for case in FIXTURE if case["regularised"] and case["divergence"] == "kl"]
OFFICIAL = [case for case in FIXTURE if case not in ANOTHER_PENALTY]
CONSTRAINTS = {"sp": "demographic_parity", "meo": "equalized_odds"}
SEEDS = st.integers(0, 10**6)
METHODS = [
    FairScoreTransformer,
    FairProjection,
    lambda *args, **how: FairProjection(*args, divergence="cross_entropy", **how),
]
every_method = pytest.mark.parametrize("method", METHODS, ids=["FST", "KL", "cross-entropy"])


class GivenProbabilities(ClassifierMixin, BaseEstimator):
    """A group model whose probabilities are columns p0, p1, ... of the table."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return X[[f"p{k}" for k in range(len(self.classes_))]].to_numpy()


def fit(update, scores, groups, y=None, **how):
    X = pd.DataFrame({"score": scores})
    return update.fit(X, y, sensitive_features=groups, **how)


def new_scores(update, scores, groups):
    X = pd.DataFrame({"score": scores})
    return update.predict_proba(X, sensitive_features=groups)[:, 1]


def people(seed, n=120, n_groups=2):
    """Return scores that differ between groups, groups and labels; every cell has rows."""
    rng = np.random.default_rng(seed)
    cell = np.arange(n) % (2 * n_groups)
    scores = expit(rng.normal(size=n) * 2 + cell // 2 - 0.6)
    return scores, cell // 2, cell % 2


def random_means(seed, n_groups=2, n_rates=1, n=25):
    """Return mean scores of cells with probabilities that depend on the score, and weights."""
    rng = np.random.default_rng(seed)
    scores = rng.beta(0.7, 0.7, n)
    share = rng.integers(1, 5, n) / 1.0
    share /= share.sum()
    groups = rng.dirichlet(np.full(n_groups, 0.5), n).T * (
        1 + 3 * scores * np.eye(n_groups)[0][:, None]
    )
    groups /= groups.sum(axis=0)
    cells = np.stack([groups * scores, groups * (1 - scores)]) if n_rates == 2 else groups[None]
    shares = cells @ share
    return MeanScores(scores, share, cells / shares[:, :, None], shares)


# ---------------------------------------------------------------------------------------------
# Hand examples


def test_the_hand_example_of_the_fair_score_transformer():
    update = FairScoreTransformer(ScoreColumn("score"), aware=True, min_group_size=1)
    fit(update, [0.8, 0.4], ["a", "b"])
    np.testing.assert_allclose(new_scores(update, [0.8, 0.4], ["a", "b"]), 0.6, atol=1e-12)
    prices = update.multipliers_ / update.shares_  # of a row that is surely in the group
    np.testing.assert_allclose(prices, [[5 / 6, -5 / 6]], atol=1e-12)
    assert (update.n_gains_, update.n_losses_) == (1, 0)


def test_the_hand_example_of_fair_projection():
    for divergence, score in [("kl", expit(0.5 * np.log(4 * 2 / 3))), ("cross_entropy", 0.6)]:
        how = {"divergence": divergence, "aware": True, "min_group_size": 1}
        update = fit(FairProjection(ScoreColumn("score"), **how), [0.8, 0.4], ["a", "b"])
        assert round(score, 4) == {"kl": 0.6202, "cross_entropy": 0.6}[divergence]
        np.testing.assert_allclose(new_scores(update, [0.8, 0.4], ["a", "b"]), score, atol=1e-12)


@every_method
def test_a_new_score_of_exactly_one_half_keeps_the_base_decision(method):
    update = method(ScoreColumn("score"), aware=True, min_group_size=1)
    fit(update, [0.7, 0.3], ["a", "b"])
    np.testing.assert_allclose(new_scores(update, [0.7, 0.3], ["a", "b"]), 0.5, atol=1e-12)
    assert update.change_rate_ == 0


@every_method
def test_equal_mean_scores_are_not_equal_rates(method):
    scores, groups = np.array([0.9, 0.1, 0.45, 0.45]), ["a", "a", "b", "b"]
    update = fit(method(ScoreColumn("score"), aware=True, min_group_size=1), scores, groups)
    new = new_scores(update, scores, groups)
    assert new[:2].mean() == pytest.approx(new[2:].mean())
    assert update.fairness_ == 0  # the P-rule: one positive decision among two, and none


# ---------------------------------------------------------------------------------------------
# The authors' code


def official_case(case):
    """Return the rows of a stored case: table, labels and groups."""
    parts = np.array(case["parts"], dtype=float)
    joint = parts / parts.sum(axis=(1, 2), keepdims=True)
    by_label = case["constraint"] == "meo"  # then the class is label · n_groups + group
    cells = joint.reshape(len(joint), -1) if by_label else joint.sum(axis=1)
    columns = {f"p{k}": column for k, column in enumerate(cells.T)}
    return pd.DataFrame({"score": joint[:, 1].sum(axis=1), **columns}), case["label"], case["group"]


def fit_official(method, case, **how):
    """Return a method fitted as the authors' code was, and its new scores."""
    X, y, groups = official_case(case)
    settings = {
        "constraints": CONSTRAINTS[case["constraint"]],
        "aware": case["aware"],
        "group_model": GivenProbabilities(),
        "min_group_size": 1,
    }
    update = method(ScoreColumn("score"), **settings, **how)
    gap = update.set_params(strength=0).fit(X, y, sensitive_features=groups).tolerance_
    strength = 1 - case["alpha"] / gap
    update.set_params(strength=strength).fit(X, y, sensitive_features=groups)
    known = {"sensitive_features": groups} if case["aware"] else {}
    return update, update.predict_proba(X, **known)[:, 1]


def test_scores_equal_those_of_the_authors_code():
    for case in OFFICIAL:
        penalty = len(case["label"]) ** -0.5 if case["regularised"] else 0.0
        how = {"divergence": case["divergence"], "regularisation": penalty}
        _, scores = fit_official(FairProjection, case, **how)
        np.testing.assert_allclose(scores, case["scores"], atol=1e-6)
        if case["divergence"] == "cross_entropy" and case["alpha"] == 0 and not penalty:
            _, transformed = fit_official(FairScoreTransformer, case)
            np.testing.assert_allclose(transformed, case["scores"], atol=1e-6)


def test_with_the_penalty_of_the_authors_code_the_scores_are_theirs():
    """Their penalty on v + log p instead of v only changes the limits of the constraints."""
    assert ANOTHER_PENALTY
    for case in ANOTHER_PENALTY:
        update, _ = fit_official(FairProjection, case)
        X, _, groups = official_case(case)
        rows = update._read_rows(X, groups if case["aware"] else None)
        n, scores = len(X), rows.base.scores
        means = MeanScores(scores, np.full(n, 1 / n), update._effects(rows), update.shares_)
        labels = [(True,), (False,)] if case["constraint"] == "meo" else [(True, False)]
        dual = ratio_dual(means, labels, case["alpha"], "kl", n**-0.5)
        positive = np.repeat(np.tile([True, False], len(dual.cost)), 2 * update.shares_.shape[1])
        positive = positive[: len(dual.cost)]
        log_scores = np.where(positive[:, None], np.log(scores), np.log(1 - scores))
        prices = np.where(positive, 1, -1)[:, None] * (dual.forms @ means.cells)
        shifted = replace(dual, cost=dual.cost - n**-0.5 * (prices * log_scores).mean(axis=1))
        _, cells = best_prices(shifted)
        projected = projected_scores(scores, cells @ means.cells, "kl")
        np.testing.assert_allclose(projected, case["scores"], atol=1e-6)


# ---------------------------------------------------------------------------------------------
# Optimality


def divergence_of(divergence, f, q):
    """Return the divergence of each row."""
    if divergence == "kl":
        return xlogy(q, q / f) + xlogy(1 - q, (1 - q) / (1 - f))
    return -xlogy(f, q) - xlogy(1 - f, 1 - q)


@given(
    f=st.one_of(st.floats(0.001, 0.999), st.sampled_from([0.5, 0.001, 0.999])),
    price=st.one_of(st.floats(-50, 50), st.sampled_from([-1.0, 0.0, 1.0, 1e-9, -1e-9])),
    divergence=st.sampled_from(["kl", "cross_entropy"]),
)
def test_no_other_score_costs_less(f, price, divergence):
    best = projected_scores(np.array([f]), np.array([price]), divergence)
    others = np.concatenate([np.linspace(1e-9, 1 - 1e-9, 2001), best - 1e-6, best + 1e-6])
    others = others[(others > 0) & (others < 1)]
    with np.errstate(divide="ignore"):
        cost = divergence_of(divergence, f, best) + price * best
    assert cost <= (divergence_of(divergence, f, others) + price * others).min() + 1e-12
    if price == 0:
        assert best == f


@given(
    seed=SEEDS,
    n_groups=st.integers(2, 4),
    n_rates=st.integers(1, 2),
    share=st.floats(0, 0.95),
    divergence=st.sampled_from(["kl", "cross_entropy"]),
)
@settings(max_examples=40)
def test_the_primal_and_the_dual_meet(seed, n_groups, n_rates, share, divergence):
    means = random_means(seed, n_groups, n_rates)
    tolerance = share * difference_gap(means, means.scores)
    dual = difference_dual(means, tolerance, divergence)
    multipliers, cells = best_prices(dual)
    new = projected_scores(means.scores, cells @ means.cells, divergence)
    assert difference_gap(means, new) <= tolerance + 1e-10
    primal = means.share @ divergence_of(divergence, means.scores, new)
    assert -dual.value_and_slope(multipliers)[0] == pytest.approx(primal, abs=1e-9)
    other, _ = best_prices(dual, start=np.ones_like(multipliers))
    again = projected_scores(means.scores, (other @ dual.forms) @ means.cells, divergence)
    np.testing.assert_allclose(again, new, atol=1e-9)


# ---------------------------------------------------------------------------------------------
# Strength, groups, weights, thresholds


@every_method
def test_strength_is_the_share_of_the_gap_that_goes(method):
    scores, groups, _ = people(0, n_groups=3)
    X = pd.DataFrame({"score": scores})
    update = method(ScoreColumn("score"), aware=True, min_group_size=1)
    models = fit_strengths(update, [1, 0, 0.5, 0.25], X, sensitive_features=groups)
    gaps = []
    for model in models:
        new = model.predict_proba(X, sensitive_features=groups)[:, 1]
        means = np.array([new[groups == group].mean() for group in range(3)])
        if isinstance(model, FairProjection):
            by_label = [means / new.mean(), (1 - means) / (1 - new.mean())]
            gaps.append(np.abs(np.array(by_label) - 1).max())
        else:
            gaps.append(np.abs(means - new.mean()).max())
    assert gaps == pytest.approx([0, gaps[1], gaps[1] / 2, gaps[1] * 3 / 4], abs=1e-9)
    assert models[1].tolerance_ == pytest.approx(gaps[1])
    assert (models[1].predict_proba(X, sensitive_features=groups)[:, 1] == scores).all()


@every_method
def test_with_known_labels_the_means_of_each_label_agree(method):
    scores, groups, labels = people(1)
    update = method(ScoreColumn("score"), aware=True, constraints="equalized_odds")
    fit(update, scores, groups, labels)
    new = new_scores(update, scores, groups)
    for weight in (scores, 1 - scores):  # of label 1 and label 0, as the base model predicts them
        first, second = (np.average(new[groups == g], weights=weight[groups == g]) for g in (0, 1))
        assert first == pytest.approx(second, abs=1e-9)


@every_method
@pytest.mark.parametrize("constraints", CONSTRAINTS.values())
def test_weights_are_repeated_rows(method, constraints):
    scores, groups, labels = people(2, n=60)
    times = np.random.default_rng(0).integers(0, 4, 60)
    how = {"aware": True, "constraints": constraints, "min_group_size": 1, "strength": 0.8}
    weighted = fit(method(ScoreColumn("score"), **how), scores, groups, labels, sample_weight=times)
    rows = np.repeat(np.arange(60), times)
    repeated = fit(method(ScoreColumn("score"), **how), scores[rows], groups[rows], labels[rows])
    np.testing.assert_allclose(
        new_scores(weighted, scores, groups), new_scores(repeated, scores, groups), atol=1e-9
    )


@every_method
@given(seed=SEEDS, threshold=st.floats(0.03, 0.97))
@settings(max_examples=3)
def test_the_method_is_the_same_at_a_shifted_threshold(method, seed, threshold):
    scores, groups, labels = people(seed)
    shifted = expit(logit(scores) + logit(threshold))
    how = {"aware": True, "constraints": "equalized_odds", "strength": 0.7}
    half = fit(method(ScoreColumn("score"), **how), scores, groups, labels)
    other = fit(method(ScoreColumn("score"), threshold=threshold, **how), shifted, groups, labels)
    new = logit(new_scores(half, scores, groups))
    again = logit(new_scores(other, shifted, groups)) - logit(threshold)
    np.testing.assert_allclose(again, new, atol=1e-6)


@every_method
def test_an_unknown_group_keeps_its_scores(method):
    scores, groups, _ = people(3)
    update = fit(method(ScoreColumn("score"), aware=True), scores, groups)
    new = new_scores(update, scores, np.where(np.arange(120) < 10, 7, groups))
    assert (new[:10] == scores[:10]).all()
    assert (new[10:] != scores[10:]).all()


@every_method
@given(seed=SEEDS, kind=st.sampled_from(["0 or 1", "constant", "all positive", "round", "tiny"]))
@settings(max_examples=6)
def test_extreme_scores_give_scores_without_a_warning(method, seed, kind):
    scores, groups, labels = people(seed, n_groups=2 + seed % 2)
    scores = {
        "0 or 1": (scores > 0.5) * 1.0,
        "constant": np.full(120, 0.7),
        "all positive": 0.5 + scores / 2,
        "round": scores.round(1),
        "tiny": np.where(groups == 0, scores * 1e-300, 1.0),
    }[kind]
    weights = np.where(np.arange(120) % 7 == 0, 0.0, 1.0)
    for constraints in CONSTRAINTS.values():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", CommodWarning)
            update = method(ScoreColumn("score"), aware=True, constraints=constraints)
            fit(update, scores, groups, labels, sample_weight=weights)
            new = new_scores(update, scores, groups)
        assert ((new >= 0) & (new <= 1)).all()
        if kind == "constant":
            assert (new == scores).all()


@every_method
def test_an_empty_cell_changes_nothing_and_says_so(method):
    scores, groups, _ = people(4)
    update = method(ScoreColumn("score"), aware=True, constraints="equalized_odds")
    fit(update, scores, groups, groups)
    assert update.change_rate_ == 0
    assert "no rows with one of the true labels" in update.status_


@every_method
def test_the_contract_with_several_groups_strings_and_gaps(method):
    scores, groups, _ = people(5, n=240, n_groups=3)
    labels = np.random.default_rng(5).integers(0, 2, 240)
    towns = np.random.default_rng(6).choice(list("xyz"), 240)
    X = pd.DataFrame({"score": scores, "town": towns})
    X["age"] = np.where(np.arange(240) % 5 == 0, np.nan, scores + groups)
    for aware in (False, True):
        update = method(ScoreColumn("score"), aware=aware, constraints="equalized_odds")
        check_rival(update, X, labels, sensitive_features=np.array(list("abc"))[groups])


def test_parameters_without_meaning_are_refused():
    for parameter, value in [("divergence", "total_variation"), ("regularisation", -1)]:
        scores, groups, _ = people(6)
        with pytest.raises(InputError, match=parameter) as error:
            fit(FairProjection(ScoreColumn("score"), **{parameter: value}), scores, groups)
        assert error.value.parameter == parameter
