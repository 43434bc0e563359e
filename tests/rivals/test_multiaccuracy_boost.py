"""MultiaccuracyBoost: what it stops at, what it converges to, and what it keeps."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LinearRegression, Ridge

from commod import ScoreColumn
from commod.datasets import make_biased
from commod.exceptions import InputError
from commod.rivals import MultiaccuracyBoost, check_rival, fit_strengths
from commod.rivals.multiaccuracy_boost import signed_residuals

OPEN = {"validation_fraction": 0.0, "keep": "last", "min_group_size": 1}  # all rows, last round


def table(n=600, seed=0, bias=1.0):
    """Return X with a score that is wrong by a line in `a` and by town; labels and groups."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "town": rng.choice(["p", "q", "r"], n)})
    truth = X["a"] + (X["town"] == "p")
    label = (rng.uniform(size=n) < expit(truth)).astype(int)
    wrong = bias * (0.5 * X["a"] - 1.2 * (X["town"] == "q"))
    return X.assign(score=expit(truth + wrong)), label, rng.integers(0, 2, n)


def fitted(rows, **how):
    X, label, group = rows
    update = MultiaccuracyBoost(ScoreColumn("score"), **how)
    return update.fit(X, label, sensitive_features=group)


def new_scores(update, X):
    return update.predict_proba(X)[:, 1]


# ---------------------------------------------------------------------------------------------
# The audit


def test_the_residual_is_signed_and_straight_near_the_wrong_end():
    scores = np.array([0.5, 0.25, 0.1, 0.05, 0.0, 0.95])
    positive = signed_residuals(scores, np.ones(6, dtype=bool))
    assert positive == pytest.approx([-2, -4, -10, -15, -20, -1 / 0.95])
    negative = signed_residuals(1 - scores, np.zeros(6, dtype=bool))
    assert negative == pytest.approx(-positive)


def test_a_constant_auditor_moves_the_score_to_the_mean_label():
    """Score 0.2 in all rows but those that are needed to have both decisions."""
    for mean in [0.5, 0.8]:
        n = 400
        X = pd.DataFrame({"score": 0.2, "noise": np.tile([0.0, 1.0], n // 2)}, index=range(n))
        X.loc[: n // 10 - 1, "score"] = 0.9
        label = (np.arange(n) // 2 % 10 < 10 * mean).astype(int)  # the column tells nothing
        group = np.arange(n) // 2 % 2
        update = fitted((X, label, group), alpha=1e-10, max_iter=400, **OPEN)
        assert update.audit_passed_
        assert new_scores(update, X)[-1] == pytest.approx(mean, abs=1e-4)
        assert update.points_ == pytest.approx(0, abs=1e-4)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-4, 1e-2), st.sampled_from([0.0, 0.3]))
def test_on_stop_no_audited_correlation_exceeds_alpha(seed, alpha, share):
    """Fit auditors anew with scikit-learn on the final scores, as in the first audit."""
    X, label, group = table(300, seed)
    how = {**OPEN, "validation_fraction": share}
    update = fitted((X, label, group), alpha=alpha, max_iter=300, **how)
    if not update.audit_passed_:
        assert update.n_iter_ == 300
        return
    assert (update.correlations_ <= alpha).all()
    if share:  # the held-out rows are the class's own
        return
    q, base = new_scores(update, X), (X["score"] > 0.5).to_numpy()
    number = (X["a"] - X["a"].mean()) / X["a"].std(ddof=0)
    terms = np.column_stack([number, *(X["town"] == name for name in "pqr")]).astype(float)
    for k, members in enumerate([~base, base, np.ones(len(X), dtype=bool)]):
        residuals = signed_residuals(q, label == 1)[members]
        h = Ridge(alpha=1).fit(terms[members], residuals).predict(terms[members])
        correlation = (h * (q - label)[members]).mean()
        assert correlation == pytest.approx(update.correlations_[k], rel=1e-6, abs=1e-9)
        assert correlation <= alpha + 1e-9


def test_errors_that_follow_the_columns_are_corrected():
    X, label, _ = rows = table(4000)
    update = fitted(rows, **OPEN, max_iter=300)
    terms = np.column_stack([X["a"], *(X["town"] == name for name in "pq")]).astype(float)
    before, after = (
        LinearRegression().fit(terms, scores - label)
        for scores in (X["score"], new_scores(update, X))
    )
    assert np.abs(after.coef_).max() < 0.15 * np.abs(before.coef_).max()
    assert update.accuracy_ > update.base_accuracy_ + 0.02


def test_the_score_is_the_base_logit_plus_points_by_base_decision():
    X, *_ = rows = table()
    update = fitted(rows, **OPEN)
    assert update.term_names_ == ["a", "town = p", "town = q", "town = r"]
    positive = (X["score"] > 0.5).to_numpy().astype(int)
    terms = np.column_stack([X["a"], *(X["town"] == name for name in "pqr")]).astype(float)
    added = update.intercepts_[positive] + (terms * update.points_[positive]).sum(axis=1)
    score = X["score"].to_numpy()
    expected = expit(np.log(score / (1 - score)) + added)
    assert new_scores(update, X) == pytest.approx(expected)
    assert np.abs(update.points_[0] - update.points_[1]).max() > 0.01


# ---------------------------------------------------------------------------------------------
# Rounds


def test_strength_is_the_share_of_the_rounds_and_a_sweep_is_one_path():
    X, label, group = rows = table()
    update = MultiaccuracyBoost(ScoreColumn("score"), keep="last", max_iter=20, alpha=0.0)
    strengths = [0, 0.25, 1]
    models = fit_strengths(update, strengths, X, label, sensitive_features=group)
    assert [model.n_iter_ for model in models] == [0, 5, 20]
    assert (new_scores(models[0], X) == X["score"]).all()
    alone = fitted(rows, keep="last", max_iter=5, alpha=0.0)
    assert (new_scores(models[1], X) == new_scores(alone, X)).all()
    assert models[2].accuracies_[:6].tolist() == alone.accuracies_.tolist()


def test_the_round_with_the_best_held_out_accuracy_is_kept():
    n_fewer = 0
    for seed in range(4):
        rows = table(300, seed)
        best, last = (fitted(rows, alpha=0.0, keep=keep, random_state=seed)
                      for keep in ("best", "last"))  # fmt: skip
        assert best.accuracies_.tolist() == last.accuracies_.tolist()
        assert best.n_iter_ == best.accuracies_.argmax() <= last.n_iter_
        n_fewer += best.n_iter_ < last.n_iter_
        said = "best held-out accuracy is that of" in best.status_
        assert said == (best.n_iter_ < last.n_iter_)
    assert n_fewer > 0


def test_the_seed_draws_the_held_out_rows():
    rows = table(300)
    first, again, other = (fitted(rows, random_state=seed).accuracies_ for seed in (0, 0, 1))
    assert first.tolist() == again.tolist() != other.tolist()


def test_a_score_that_is_right_everywhere_is_left_alone():
    X, *_ = table(600)
    rng = np.random.default_rng(0)
    X["score"] = np.where(np.arange(600) % 2, 0.75, 0.25)
    pattern = np.arange(600) // 2 % 4  # the mean label is the score, whatever the columns say
    label = np.where(np.arange(600) % 2, pattern > 0, pattern == 0).astype(int)
    X["a"], X["town"] = np.repeat(rng.normal(size=75), 8), np.repeat(rng.choice(list("pq"), 75), 8)
    update = fitted((X, label, np.arange(600) // 8 % 2), **OPEN)
    assert update.n_iter_ == 0
    assert update.audit_passed_
    assert (new_scores(update, X) == X["score"]).all()


def test_weights_count_as_repeated_rows():
    X, label, group = table()
    weight = np.arange(len(X)) % 3 + 1
    weighted = MultiaccuracyBoost(ScoreColumn("score"), **OPEN)
    weighted.fit(X, label, sensitive_features=group, sample_weight=weight)
    again = np.repeat(np.arange(len(X)), weight)
    repeated = fitted((X.iloc[again], label[again], group[again]), **OPEN)
    assert new_scores(weighted, X) == pytest.approx(new_scores(repeated, X), abs=1e-9)


def test_rows_without_weight_do_not_count():
    X, label, group = table()
    weight = (np.arange(len(X)) % 2).astype(float)
    update = MultiaccuracyBoost(ScoreColumn("score"), **OPEN)
    update.fit(X, np.where(weight > 0, label, 1), sensitive_features=group, sample_weight=weight)
    kept = weight > 0
    alone = fitted((X[kept], label[kept], group[kept]), **OPEN)
    assert new_scores(update, X) == pytest.approx(new_scores(alone, X))


@pytest.mark.filterwarnings("ignore::commod.exceptions.BaseModelWarning")
def test_extreme_scores_and_outliers_give_probabilities():
    X, label, group = table()
    X["score"] = np.round(X["score"])
    update = fitted((X, label, group), max_iter=30, keep="last")
    far = X.assign(a=np.where(np.arange(len(X)) % 2, 1e300, -1e300))
    for rows in (X, far):
        proba = new_scores(update, rows)
        assert ((proba >= 0) & (proba <= 1)).all()


# ---------------------------------------------------------------------------------------------
# Contract


def test_labels_are_needed_and_parameters_have_ranges():
    X, _, group = rows = table()
    with pytest.raises(InputError, match="needs y"):
        fitted((X, None, group))
    for name, value in {"keep": "first", "alpha": -1.0, "max_iter": 2.5, "ridge": 0.0,
                        "validation_fraction": 1.0}.items():  # fmt: skip
        with pytest.raises((InputError, TypeError), match=name):
            fitted(rows, **{name: value})


def test_the_contract_holds_on_mixed_columns_and_three_groups():
    data = make_biased(900, group_shares=(0.5, 0.3, 0.2), bias=1.5, n_categories=3, random_state=0)
    X = data.data.assign(score=data.proba_target)
    X["x3"] = X["x3"].where(np.arange(len(X)) % 5 > 0)
    update = MultiaccuracyBoost(ScoreColumn("score"), constraints="equalized_odds", keep="last")
    check_rival(update, X, data.target, sensitive_features=data.sensitive_features)
