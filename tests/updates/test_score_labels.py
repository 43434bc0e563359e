"""A score may predict either label: decisions, scores, gates and patches are the same either way.

The same people are written down twice. Once the score is a probability of default (label 1) and
the favourable label is 0. Once labels are swapped and the score is 1 − PD. An update must do the
same to each person.
"""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commod import COMMOD, ScoreColumn, explain
from commod._data.base_model import BaseScores, base_scores
from commod._data.columns import read_columns
from commod.exceptions import BaseModelWarning, InputError
from commod.rivals import LPP, RejectOption
from commod.scorecard import decide, new_decisions
from quick_updates import quick_control

THRESHOLD = 0.3125  # a multiple of 1/32, so that 1 − threshold is exact
STEP = 1 / 1024


def credit_rows(seed: int = 0, n: int = 500) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return rows with a probability of default, true labels (1 = default) and groups.

    Scores are odd multiples of 1/1024: 1 − score is exact, and none equals the threshold.
    """
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    income = rng.normal(0, 1, n) - 0.6 * group
    risk = 1 / (1 + np.exp(1.2 * income + rng.normal(0, 0.5, n)))
    pd_score = (2 * np.floor(risk * 511) + 1) * STEP
    y = (rng.random(n) < risk).astype(int)
    X = pd.DataFrame({"income": income, "town": rng.integers(0, 3, n).astype(str), "pd": pd_score})
    X["postcode"] = np.where(rng.random(n) < 0.7, group, rng.integers(0, 2, n)).astype(str)
    return X, y, group


def mirrored_pair(X, y, group, method=quick_control, **parameters):
    """Return the update of the probability of default, and the update of the mirrored problem."""
    pd_model = method(ScoreColumn("pd"), favorable_label=0, threshold=THRESHOLD, **parameters)
    repay = method(ScoreColumn("pd"), threshold=1 - THRESHOLD, **parameters)
    mirrored = X.assign(pd=1 - X["pd"])
    return (
        pd_model.fit(X, y, sensitive_features=group),
        repay.fit(mirrored, 1 - y, sensitive_features=group),
        mirrored,
    )


@pytest.mark.parametrize(
    ("direction", "constraints"),
    [
        ("any", "true_positive_rate_parity"),
        ("gains_only", "demographic_parity"),
        ("losses_only", "true_positive_rate_parity"),
    ],
)
def test_a_score_of_the_unfavourable_label_gives_everybody_the_mirrored_decision(
    direction, constraints
):
    X, y, group = credit_rows()
    target = 0.9 if constraints == "demographic_parity" else 0.05
    parameters = {"constraints": constraints, "direction": direction, "target": target}
    default, repay, mirrored = mirrored_pair(X, y, group, **parameters)
    assert default._pos_label == 0
    assert default.change_rate_ > 0
    new = credit_rows(seed=1)[0]
    assert (default.predict(new) == 1 - repay.predict(new.assign(pd=1 - new["pd"]))).all()
    np.testing.assert_allclose(
        default.predict_proba(X), repay.predict_proba(mirrored)[:, ::-1], atol=1e-12
    )
    assert (default.n_gains_, default.n_losses_) == (repay.n_gains_, repay.n_losses_)
    assert default.fairness_ == repay.fairness_
    assert ((default.predict_proba(X)[:, 1] > THRESHOLD) == (default.predict(X) == 1)).all()
    assert ((default.decision_function(X) > 0) == (default.predict(X) == 1)).all()


@pytest.mark.parametrize("method", [LPP, RejectOption])
def test_rivals_read_a_score_of_the_unfavourable_label_at_any_threshold(method):
    X, y, group = credit_rows()
    strengths = {"strength": 0.2}
    models = [
        method(ScoreColumn("pd"), favorable_label=0, threshold=THRESHOLD, **strengths),
        method(ScoreColumn("pd"), threshold=1 - THRESHOLD, **strengths),
    ]
    mirrored = X.assign(pd=1 - X["pd"])
    default = models[0].fit(X, y, sensitive_features=group)
    repay = models[1].fit(mirrored, 1 - y, sensitive_features=group)
    needs = {"sensitive_features": group} if default.needs_sensitive_features else {}
    assert (default.predict(X, **needs) == 1 - repay.predict(mirrored, **needs)).all()
    score = default.predict_proba(X, **needs)[:, 1]
    assert ((score > THRESHOLD) == (default.predict(X, **needs) == 1)).all()
    kept = ~default.changes(X, **needs).changed
    assert (score[kept] == X["pd"][kept]).all()


def test_commod_trains_on_a_score_of_the_unfavourable_label():
    X, y, group = credit_rows(n=600)
    rng = np.random.default_rng(0)  # four columns: other tests have compiled this program
    noise = {f"noise {i}": rng.normal(size=len(X)) for i in range(3)}
    X = X[["income", "pd"]].assign(**noise)
    training = {"warmup_epochs": 2, "learning_rate": 0.05}
    pace = {"epochs": 20, "training": training, "random_state": 0}
    default, repay, mirrored = mirrored_pair(
        X, y, group, COMMOD, lambda_fair=8.0, lambda_ratio=0.01, **pace
    )
    assert default.change_rate_ > 0
    assert (default.predict(X) == 1 - repay.predict(mirrored)).all()


@settings(max_examples=60, deadline=None)
@given(
    scores=st.lists(st.sampled_from([0.0, 0.1, 0.3, np.nextafter(0.3, 1), 0.7, 1.0]), min_size=1),
    threshold=st.sampled_from([0.1, 0.3, 0.7]),
    ratio=st.floats(-2, 2),
)
def test_a_score_at_the_threshold_decides_for_the_other_label_and_never_changes(
    scores, threshold, ratio
):
    values = np.array(scores)
    ratios = np.full(len(values), ratio)
    proba = np.column_stack([1 - values, values])
    base = BaseScores(proba, threshold, is_for_positive=False)
    assert (base.decisions == (values <= threshold)).all()
    assert (new_decisions(base, ratios) == ~decide(values, ratios, threshold)).all()
    changed = new_decisions(base, ratios) != base.decisions
    assert not changed[values == threshold].any()
    mirrored = base.for_positive
    assert ((mirrored.scores > mirrored.threshold) == base.decisions).all()
    assert (mirrored.decisions == base.decisions).all()
    assert (mirrored.at_threshold == (values == threshold)).all()
    assert mirrored.deployed is base


def test_a_patch_edits_the_deployed_score_in_every_engine():
    X, y, group = credit_rows()
    X.loc[:4, "pd"] = THRESHOLD  # ties decide for label 0 and never change
    update = quick_control(
        ScoreColumn("pd"), favorable_label=0, threshold=THRESHOLD, target=0.9,
        direction="gains_only",
    ).fit(X, y, sensitive_features=group)  # fmt: skip
    patch = update.to_patch()
    assert (patch.content.labels.positive, patch.content.labels.compared) == (1, 0)
    assert type(patch).from_json(patch.to_json()) == patch
    edited = patch.apply(X, score="pd")
    assert (edited["commod_decision"] == update.predict(X)).all()
    assert (edited["commod_direction"] == "gain").sum() == update.n_gains_ > 0
    assert not (edited["commod_direction"] == "loss").any()
    np.testing.assert_allclose(edited["commod_score"], update.predict_proba(X)[:, 1], atol=1e-12)
    people = X.reset_index(names="person")
    connection = duckdb.connect()
    connection.register("people", people)
    rows = connection.sql(patch.to_sql("duckdb", "people", "pd")).df().sort_values("person")
    assert (rows["commod_decision"].to_numpy() == update.predict(X)).all()
    assert (update.predict(X)[:5] == 0).all()
    explanation = explain(update, X)
    assert (explanation.scores_before == X["pd"]).all()
    assert (explanation.y_after == update.predict(X)).all()


def test_the_column_says_which_label_its_score_predicts():
    X, y, group = credit_rows()
    for_repayment = X.assign(repays=1 - X["pd"]).drop(columns="pd")
    update = quick_control(
        ScoreColumn("repays", score_is_for=0), favorable_label=0, threshold=1 - THRESHOLD
    ).fit(for_repayment, y, sensitive_features=group)
    other = quick_control(ScoreColumn("pd"), favorable_label=0, threshold=THRESHOLD)
    other.fit(X, y, sensitive_features=group)
    assert (update.predict(for_repayment) == other.predict(X)).all()
    proba = update.predict_proba(for_repayment)
    kept = ~update.changes(for_repayment).changed
    assert ((proba[:, 0] > 1 - THRESHOLD) == (update.predict(for_repayment) == 0)).all()
    assert (proba[kept].argmax(axis=1) == other.predict_proba(X)[kept].argmax(axis=1)).all()
    assert update.to_patch().content.labels.positive == 0
    with pytest.raises(InputError, match=r"score_is_for='yes' of .* is not one of the labels"):
        quick_control(ScoreColumn("pd", score_is_for="yes")).fit(X, y, sensitive_features=group)


def test_only_the_favourable_label_is_needed_and_the_papers_reading_is_one_parameter_away():
    X, y, group = credit_rows()
    approvals = quick_control(ScoreColumn("pd"), favorable_label=0, threshold=THRESHOLD)
    defaults = quick_control(ScoreColumn("pd"), favorable_label=0, pos_label=1, threshold=THRESHOLD)
    for update in (approvals, defaults):
        update.fit(X, y, sensitive_features=group)
    before = X["pd"].to_numpy() > THRESHOLD
    rates = [before[group == g].mean() for g in (0, 1)]
    assert defaults.base_fairness_ == pytest.approx(min(rates) / max(rates))
    assert approvals.base_fairness_ == pytest.approx((1 - max(rates)) / (1 - min(rates)))
    assert approvals._favorable_label == defaults._favorable_label == 0


def test_a_column_that_orders_the_labels_backwards_is_a_warning_and_stays_as_it_is():
    X, y, group = credit_rows()
    backward = X.assign(pd=1 - X["pd"])
    update = quick_control(ScoreColumn("pd"), favorable_label=0)
    with pytest.warns(BaseModelWarning, match=r"backwards.*score_is_for=0.*--score-is-for 0"):
        update.fit(backward, y, sensitive_features=group)
    base = update._read_base(backward)
    assert (base.scores == backward["pd"]).all()
    with pytest.warns(BaseModelWarning, match="y is None, so its order cannot be checked"):
        update.fit(X, sensitive_features=group)


def test_a_model_scores_its_larger_label_whatever_is_counted():
    class Model:
        classes_ = np.array(["bad", "good"])

        def decision_function(self, X):
            return np.array([-1.0, 0.0, 2.0])

    X = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    known = {"classes": Model.classes_, "threshold": 0.5}
    good = base_scores(Model(), X, read_columns(X), pos_label="good", **known)
    bad = base_scores(Model(), X, read_columns(X), pos_label="bad", **known)
    assert (good.scores == bad.scores).all()
    assert (good.decisions == ~bad.decisions).all()
    assert bad.decisions.tolist() == [True, True, False]
