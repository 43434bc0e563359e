"""Scores left alone, and the gate `max_margin`."""

import copy

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from commod import COMMOD, ScoreColumn, audit, explain
from commod.datasets import make_biased
from commod.exceptions import InputError
from commod.scorecard import DISTANCE_COLUMN
from quick_updates import quick_control

MAX_MARGIN = 0.25


@pytest.fixture(scope="module")
def table():
    data = make_biased(1500, bias=1.5, random_state=3)
    model = LogisticRegression().fit(data.data, data.target)
    X = data.data.assign(score=model.predict_proba(data.data)[:, 1])
    return X, data.target, data.sensitive_features


def fitted(table, **params):
    X, y, groups = table
    params = {"target": 0.8, **params}
    update = quick_control(ScoreColumn("score"), **params)
    return update.fit(X, y, sensitive_features=groups)


@pytest.fixture(scope="module")
def update(table):
    return fitted(table)


@pytest.fixture(scope="module")
def edits_all(table):
    return fitted(table, score_edit="all")


@pytest.fixture(scope="module")
def borderline(table):
    return fitted(table, target=0.5, max_margin=MAX_MARGIN)


# ---------------------------------------------------------------------------------------------
# score_edit


def test_scores_stay_where_decisions_stay(table, update, edits_all):
    X, _, _ = table
    changed = update.changes(X).changed
    assert 0 < changed.sum() < len(X) / 2
    scores = update.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(scores[~changed], X["score"][~changed])
    np.testing.assert_array_equal(scores > 0.5, update.predict(X) == 1)
    assert (scores[changed] != 0.5).all()
    np.testing.assert_array_equal(edits_all.predict(X), update.predict(X))
    assert (edits_all.predict_proba(X)[~changed, 1] != X["score"][~changed]).any()


def test_scores_left_alone_cost_less_than_half_of_the_auc(table, update, edits_all):
    X, y, _ = table
    base = roc_auc_score(y, X["score"])
    lost = base - roc_auc_score(y, update.predict_proba(X)[:, 1])
    lost_by_all = base - roc_auc_score(y, edits_all.predict_proba(X)[:, 1])
    assert 0 < lost <= lost_by_all / 2


def test_every_method_and_the_audit_show_the_same_scores(table, update):
    X, y, groups = table
    scores = update.predict_proba(X)[:, 1]
    rows = update._read_rows(X)
    np.testing.assert_array_equal(update._evaluate_rows(rows).scores, scores)
    edited = update.to_patch().apply(X)
    np.testing.assert_array_equal(edited["commod_score"], scores)
    order = np.argsort(update.decision_function(X), kind="stable")
    assert (np.diff(scores[order]) >= 0).all()
    why = explain(update, X)
    np.testing.assert_array_equal(why.scores_after, scores)
    found = audit(
        why.y_before, why.y_after, sensitive_features=groups, y_true=y, explanation=why,
        scores_before=why.scores_before, scores_after=why.scores_after,
    )  # fmt: skip
    assert found.request.score_edit == "changed_only" and found.request.max_margin is None
    assert update.to_patch(found).content.audit == found.digest


@pytest.mark.parametrize("pos_label", [0, 1])
def test_the_sign_of_the_margin_is_the_decision_whatever_the_positive_label(table, pos_label):
    X, y, groups = table
    model = LogisticRegression().fit(X.drop(columns="score"), y)
    update = quick_control(model, target=0.8, pos_label=pos_label)
    update.fit(X.drop(columns="score"), y, sensitive_features=groups)
    inside = X.drop(columns="score")
    decisions = update.predict(inside)
    np.testing.assert_array_equal(update.decision_function(inside) > 0, decisions == 1)
    base, after = model.predict_proba(inside), update.predict_proba(inside)
    stays = decisions == model.predict(inside)
    np.testing.assert_array_equal(after[stays], base[stays])
    assert (after[~stays, 1] > 0.5).tolist() == (decisions[~stays] == 1).tolist()


def test_a_later_set_params_changes_no_score(table, update):
    X, _, _ = table
    before = update.predict_proba(X)
    changed = copy.deepcopy(update).set_params(score_edit="all", max_margin=0.0)
    np.testing.assert_array_equal(changed.predict_proba(X), before)


def test_an_update_without_the_parameter_edits_all_scores(table, edits_all):
    """Version 0.1 stored such updates."""
    X, _, _ = table
    old = copy.deepcopy(edits_all)
    for name in ("score_edit", "max_margin"):
        del vars(old)[name], old._params_of_fit[name]
    np.testing.assert_array_equal(old.predict_proba(X), edits_all.predict_proba(X))
    assert old.to_patch().content.score_edit == "all"


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"score_edit": "some"}, "score_edit='some'"),
        ({"max_margin": -0.1}, "max_margin=-0.1 must be a finite number >= 0"),
        ({"max_margin": "near"}, "max_margin"),
    ],
)
def test_wrong_parameters_are_refused(table, params, match):
    with pytest.raises(InputError, match=match):
        fitted(table, **params)


# ---------------------------------------------------------------------------------------------
# max_margin


def test_max_margin_holds_in_the_fit_and_where_it_is_told(table, borderline, update):
    X, _, _ = table
    is_far = np.abs(X["score"] - 0.5).to_numpy() > MAX_MARGIN
    assert update.changes(X).changed[is_far].any()  # the gate matters
    assert borderline.changes(X).changed.any() and borderline.reached_
    assert not borderline.changes(X).changed[is_far].any()
    assert (borderline.ratio(X)[is_far] == 1).all()
    assert borderline.request().max_margin == MAX_MARGIN
    assert borderline._allowed_changes().max_margin == MAX_MARGIN
    person = explain(borderline, X).person(int(np.flatnonzero(is_far)[0]))
    assert "further than 0.25 from the threshold" in person.sentence


@given(st.integers(0, 2**32 - 1), st.floats(-3, 6))
@settings(max_examples=5)
def test_max_margin_holds_on_any_row(borderline, seed, size):
    rng = np.random.default_rng(seed)
    names = [name for name in borderline.feature_names_in_ if name != "score"]
    X = pd.DataFrame({name: rng.normal(0, 10**size, 300) for name in names})
    X["score"] = rng.random(300)
    X.loc[:3, "score"] = [0.0, 1.0, 0.5 + MAX_MARGIN, np.nextafter(0.5 + MAX_MARGIN, 1)]
    is_far = np.abs(X["score"] - 0.5).to_numpy() > MAX_MARGIN
    changes = borderline.changes(X).changed
    assert not changes[is_far].any()
    edited = borderline.to_patch().apply(X)
    assert edited["commod_changed"].tolist() == changes.tolist()
    assert (edited["commod_score"][is_far] == X["score"][is_far]).all()


def test_a_gate_of_zero_changes_nothing(table):
    X, _, _ = table
    with pytest.warns(UserWarning):
        update = fitted(table, max_margin=0)
    assert not update.changes(X).changed.any()


def test_a_column_may_have_the_name_of_the_distance(table):
    X, y, groups = table
    named = X.assign(**{DISTANCE_COLUMN: X["x0"]}).drop(columns="x0")
    update = fitted((named, y, groups), borderline=0.25)
    plain = fitted(table, borderline=0.25)
    np.testing.assert_array_equal(update.predict(named), plain.predict(X))
    edited = update.to_patch().apply(named)
    np.testing.assert_array_equal(edited["commod_changed"], update.changes(named).changed)


def test_commod_may_read_the_margin(table):
    X, y, groups = table
    update = COMMOD(ScoreColumn("score"), training={"reads_score": True}, epochs=0, random_state=0)
    update.fit(X, y, sensitive_features=groups)
    assert update.term_names_[-1] == "base margin"
    assert update.to_patch().content.score_edit == "all"
