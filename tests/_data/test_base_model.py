"""Any fitted model or column of scores can be the base; what is odd about it is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from lightgbm import LGBMClassifier
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from xgboost import XGBClassifier

from commod import COMMOD, ScoreColumn
from commod._data.base_model import BaseScores, base_classes, warn_about_base_model
from commod.datasets import make_biased
from commod.exceptions import (
    BaseModelError,
    BaseModelWarning,
    InputError,
    ScoreOrderWarning,
)
from tables_of_cases import every_line

CLASSES = np.array([0, 1])
N = 150  # rows for the base model and, others, for the update
DATA = make_biased(2 * N, random_state=0)
X_TRAIN, Y_TRAIN = DATA.data[:N], DATA.target[:N]
X, Y = DATA.data[N:].reset_index(drop=True), DATA.target[N:].reset_index(drop=True)
GROUP = DATA.sensitive_features[N:].reset_index(drop=True)
MODEL = LogisticRegression().fit(X_TRAIN, Y_TRAIN)
SCORES = MODEL.predict_proba(X)[:, 1]
SCORED = X.assign(score=SCORES)


def untrained(estimator, table=X, y=Y, **params):
    """An update with r = 1: everything of the contract but the training."""
    update = COMMOD(estimator, epochs=0, random_state=0, **params)
    return update.fit(table, y, sensitive_features=GROUP)


def inverting(update):
    """The same update with r = -1 everywhere: every decision changes."""
    update.scorecard_ = replace(update.scorecard_, intercept=-1.0)
    return update


class OnlyScores:
    """A model that is no scikit-learn estimator: predict_proba and nothing else."""

    def __init__(self, scores):
        self.scores = scores

    def predict_proba(self, table):
        scores = np.broadcast_to(self.scores, len(table))
        return np.column_stack([1 - scores, scores])


# ---------------------------------------------------------------------------------------------
# Models of many makes: with r = 1 the update is the base model


@every_line(
    "model",
    [
        LogisticRegression(),
        HistGradientBoostingClassifier(max_iter=5),
        XGBClassifier(n_estimators=5, max_depth=2, n_jobs=1),
        LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1),
    ],
)
@every_line("pos_label", [0])  # not the label that counts by default
def test_an_untrained_update_is_the_base_model_bit_for_bit(model, pos_label):
    model.fit(X_TRAIN, Y_TRAIN)
    update = untrained(model, pos_label=pos_label)
    assert update.classes_.tolist() == [0, 1]
    assert np.array_equal(update.predict(X), model.predict(X))
    assert np.array_equal(update.predict_proba(X), model.predict_proba(X))


@every_line("pos_label", [0, 1])
def test_a_decision_function_becomes_a_score_through_the_sigmoid(pos_label):
    model = LinearSVC().fit(X_TRAIN, Y_TRAIN)
    update = untrained(model, pos_label=pos_label)
    assert np.array_equal(update.predict(X), model.predict(X))
    proba = update.predict_proba(X)
    np.testing.assert_allclose(proba[:, 1], expit(model.decision_function(X)), rtol=1e-12)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_a_pipeline_gets_mixed_columns_untouched():
    def mixed(table):
        rng = np.random.default_rng(1)
        return table.assign(
            town=rng.choice(["Oslo", "Paris", "Rome"], len(table)),
            owner=rng.random(len(table)) < 0.5,
            x3=table["x3"].where(rng.random(len(table)) < 0.8),
        )

    model = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), ["town", "owner"]),
            remainder=SimpleImputer(),
        ),
        LogisticRegression(),
    ).fit(mixed(X_TRAIN), Y_TRAIN)
    update = untrained(model, mixed(X))
    assert np.array_equal(update.predict_proba(mixed(X)), model.predict_proba(mixed(X)))
    assert {"town = Oslo", "owner = True", "x3 is missing"} <= set(update.term_names_)


def test_a_frozen_model_is_accepted():
    update = untrained(FrozenEstimator(MODEL))
    assert np.array_equal(update.predict_proba(X), MODEL.predict_proba(X))


def test_the_base_model_is_never_refitted():
    model = LogisticRegression().fit(X_TRAIN, Y_TRAIN)
    before = model.coef_.copy()
    update = untrained(model)
    assert update._base_model is model
    assert np.array_equal(model.coef_, before)


@every_line("y", [Y, None])
def test_an_object_with_predict_proba_alone_is_enough(y):
    update = untrained(OnlyScores(SCORES), y=y)
    assert update.classes_.tolist() == [0, 1]
    assert np.array_equal(update.predict_proba(X)[:, 1], SCORES)


def test_numbers_among_objects_are_scores():
    update = untrained(OnlyScores(SCORES.astype(object)))
    assert np.array_equal(update.predict_proba(X)[:, 1], SCORES)


@every_line("pos_label", [0, 1])
def test_one_dimensional_scores_are_those_of_the_second_class(pos_label):
    class OneColumn(OnlyScores):
        def predict_proba(self, table):
            return self.scores

    update = untrained(OneColumn(SCORES), pos_label=pos_label)
    assert np.array_equal(update.predict_proba(X)[:, 1], SCORES)
    assert np.array_equal(update.predict(X), (SCORES > 0.5).astype(int))


def test_a_predict_that_returns_one_column_is_read_row_by_row():
    class Column(OnlyScores):
        def predict(self, table):
            return (self.scores > 0.5).astype(int).reshape(-1, 1)

    untrained(Column(SCORES))  # a comparison of every row with every other would warn


# ---------------------------------------------------------------------------------------------
# A column of scores instead of a model


@every_line("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_a_score_column_by_name(make):
    table = make(SCORED)
    update = untrained(ScoreColumn("score"), table)
    assert np.array_equal(update.predict_proba(table)[:, 1], SCORES)
    assert np.array_equal(update.predict(table), (SCORES > 0.5).astype(int))


def test_a_score_column_by_position_in_an_array():
    table = np.column_stack([SCORES, X])
    update = untrained(ScoreColumn(0), table)
    assert np.array_equal(update.predict_proba(table)[:, 1], SCORES)
    assert update.term_names_ == ["x1", "x2", "x3", "x4"]


def test_a_score_column_never_becomes_a_term():
    update = untrained(ScoreColumn("score"), SCORED)
    assert update.term_names_ == ["x0", "x1", "x2", "x3"]


def test_a_score_column_needs_no_labels():
    update = untrained(ScoreColumn("score"), SCORED, y=None)
    assert update.classes_.tolist() == [0, 1]


def test_a_score_column_alone_leaves_nothing_to_have_points():
    with pytest.raises(InputError, match="no column that could have points"):
        untrained(ScoreColumn("score"), SCORED[["score"]])


@every_line(
    "column, table, words",
    [
        ("scor", SCORED, r"'scor'\) is not a column of X \(columns: x0, x1, x2, x3, score\)"),
        (9, SCORED.to_numpy(), r"=9\) is not a column of X.*its position, counted from 0"),
        (4, SCORED, r"=4\) is not a column of X.*Name one of them"),
        ("score", SCORED.assign(score="high"), "holds 'high', but scores are numbers"),
        ("score", SCORED.assign(score=True), "holds True, but scores are numbers"),
        ("score", SCORED.assign(score=SCORES.round(1) * 10), r"outside \[0, 1\].*to 10"),
        ("score", SCORED.assign(score=None), f"NaN as the score of {N} of {N} rows"),
    ],
)
def test_a_score_column_that_holds_no_scores_is_refused(column, table, words):
    with pytest.raises(BaseModelError, match=f"ScoreColumn.*{words}"):
        untrained(ScoreColumn(column), table)


@every_line(
    "y, words",
    [
        (np.zeros(N), r"Only binary classification is supported: y holds 1 classes \(\[0\.0\]\)"),
        (np.arange(N) % 3, "y holds 3 classes"),
        ([1, "no"] * (N // 2), r"y mixes labels of different types \(int, str\)"),
    ],
)
def test_a_score_column_needs_labels_of_two_kinds(y, words):
    with pytest.raises(BaseModelError, match=words):
        untrained(ScoreColumn("score"), SCORED, y=y)


# ---------------------------------------------------------------------------------------------
# Labels


LABELS = {
    "numbers": (0, 1),
    "signs": (-1, 1),
    "booleans": (False, True),
    "text": ("bad", "good"),
}


@every_line("labels", LABELS.values())
def test_predictions_are_the_labels_of_the_base_model(labels):
    model = LogisticRegression().fit(X_TRAIN, np.array(labels)[Y_TRAIN])
    update = untrained(model, y=np.array(labels)[Y])
    predicted = update.predict(X)
    assert predicted.dtype == model.classes_.dtype
    assert np.array_equal(predicted, model.predict(X))
    assert update._pos_label == labels[1]


@every_line("labels", LABELS.values())
def test_a_score_column_takes_its_labels_from_y(labels):
    update = untrained(ScoreColumn("score"), SCORED, y=np.array(labels)[Y])
    assert update.predict(SCORED).tolist() == [labels[int(s > 0.5)] for s in SCORES]


@every_line(
    "y",
    [
        [("bad", "good")[v] for v in Y],
        pd.Series(np.array(["bad", "good"])[Y], dtype="category"),
        np.array(["bad", "good"], dtype=object)[Y],
        pl.Series([("bad", "good")[v] for v in Y]),
    ],
)
def test_text_labels_match_whatever_holds_them(y):
    model = LogisticRegression().fit(X_TRAIN, pd.Series(np.array(["bad", "good"])[Y_TRAIN]))
    assert untrained(model, y=y).accuracy_ == model.score(X, np.array(["bad", "good"])[Y])


@pytest.mark.filterwarnings("ignore:The base model's own predict")
def test_the_first_class_may_be_the_positive_label():
    update = untrained(MODEL, pos_label=0, threshold=0.3)
    # the threshold is on the deployed score, that of label 1, whichever label is counted
    assert np.array_equal(update.predict(X) == 1, MODEL.predict_proba(X)[:, 1] > 0.3)
    assert np.array_equal(update.predict_proba(X), MODEL.predict_proba(X))


def test_a_change_is_a_gain_where_it_reaches_the_favourable_label():
    positive = SCORES > 0.5
    changes = inverting(untrained(MODEL)).changes(X)
    assert np.array_equal(changes.loss, positive)
    assert np.array_equal(changes.gain, ~positive)


def test_a_favourable_label_that_is_not_the_positive_one_swaps_gains_and_losses():
    # As on COMPAS: rates count label 1, "will reoffend"; label 0 is good for the person.
    positive = SCORES > 0.5
    update = inverting(untrained(MODEL, pos_label=1, favorable_label=0))
    changes = update.changes(X)
    assert np.array_equal(changes.gain, positive)
    assert np.array_equal(changes.loss, ~positive)
    assert np.array_equal(update.predict(X), 1 - MODEL.predict(X))


@pytest.mark.usefixtures("quick_compilation")
def test_the_favourable_label_changes_no_prediction():
    named = COMMOD(MODEL, epochs=3, pos_label=1, favorable_label=0, random_state=0)
    plain = COMMOD(MODEL, epochs=3, random_state=0)
    for update in (named, plain):
        update.fit(X, Y, sensitive_features=GROUP)
    assert np.array_equal(named.predict_proba(X), plain.predict_proba(X))
    assert (named.n_gains_, named.n_losses_) == (plain.n_losses_, plain.n_gains_)


@every_line("threshold", [0.2, 0.35, 0.9])
def test_the_base_decision_is_the_score_above_the_threshold(threshold):
    update = untrained(ScoreColumn("score"), SCORED, threshold=threshold)
    assert np.array_equal(update.predict(SCORED) == 1, threshold < SCORES)
    assert not update.changes(SCORED).changed.any()


def test_labels_the_base_model_does_not_know_are_refused():
    words = r"y holds \['no', 'yes'\], which the base model does not know; its labels are \[0, 1\]"
    with pytest.raises(InputError, match=words):
        untrained(MODEL, y=np.array(["no", "yes"])[np.sort(Y)])


@every_line("name", ["pos_label", "favorable_label"])
def test_a_label_that_is_none_of_the_base_models_is_refused(name):
    with pytest.raises(InputError, match=rf"{name}='yes' is not a label.*\[0, 1\]"):
        untrained(MODEL, **{name: "yes"})


# ---------------------------------------------------------------------------------------------
# What cannot be a base model


def test_a_model_that_is_not_fitted_is_refused():
    words = "LogisticRegression is not fitted.*never trains it: fit the model first"
    with pytest.raises(NotFittedError, match=words):
        untrained(LogisticRegression())


class Wrapper(ClassifierMixin, BaseEstimator):
    """A user's own class, ready when it is made, without attributes that end in _."""

    def __init__(self, inner):
        self.inner = inner

    def fit(self, table, y):
        return self

    def predict_proba(self, table):
        return self.inner.predict_proba(table)


def test_a_class_of_ones_own_is_told_how_to_say_that_it_is_fitted():
    with pytest.raises(NotFittedError, match=r"Your own class .* __sklearn_is_fitted__"):
        untrained(Wrapper(MODEL))


def test_a_class_of_ones_own_that_says_so_is_accepted():
    class Ready(Wrapper):
        def __sklearn_is_fitted__(self):
            return True

    update = untrained(Ready(MODEL))
    assert np.array_equal(update.predict_proba(X)[:, 1], SCORES)


def test_a_class_instead_of_a_model_is_refused():
    words = r"is the class LogisticRegression itself.*LogisticRegression\(\)\.fit\(X, y\)"
    with pytest.raises(BaseModelError, match=words):
        base_classes(LogisticRegression, None)


@every_line("thing", [None, "score", SimpleImputer()])
def test_what_does_not_score_is_refused(thing):
    words = r"neither predict_proba nor decision_function.*ScoreColumn\('name'\)"
    with pytest.raises(BaseModelError, match=words):
        untrained(thing)


def test_three_classes_are_refused():
    model = LogisticRegression().fit(X_TRAIN, np.arange(N) % 3)
    words = r"the base model LogisticRegression decides between 3 classes \(\[0, 1, 2\]\)"
    with pytest.raises(BaseModelError, match=f"Only binary classification.*{words}.*one label"):
        untrained(model)


def test_scores_that_are_nan_are_refused_and_counted():
    scores = np.where(np.arange(N) < 4, np.nan, SCORES)
    words = f"OnlyScores gave NaN as the score of 4 of {N} rows.*drop these rows or correct"
    with pytest.raises(BaseModelError, match=words):
        untrained(OnlyScores(scores))


@every_line("far", [-0.5, 1.5, np.inf])
def test_scores_outside_0_and_1_are_refused_and_counted(far):
    scores = np.where(np.arange(N) < 4, far, SCORES)
    words = rf"OnlyScores gave scores outside \[0, 1\] in 4 of {N} rows.*1 / \(1 \+ exp\(-m\)\)"
    with pytest.raises(BaseModelError, match=words):
        untrained(OnlyScores(scores))


def test_scores_of_another_shape_are_refused():
    class ThreeColumns(OnlyScores):
        def predict_proba(self, table):
            return np.zeros((len(table), 3))

    with pytest.raises(BaseModelError, match=rf"shape \({N}, 3\); expected \(n_rows, 2\)"):
        untrained(ThreeColumns(SCORES))


def test_a_model_that_scores_another_number_of_rows_is_refused():
    class Few(OnlyScores):
        def predict_proba(self, table):
            return super().predict_proba(table)[:10]

    with pytest.raises(BaseModelError, match=f"gave 10 scores for {N} rows"):
        untrained(Few(SCORES))


def test_bad_scores_are_refused_when_predicting_too():
    update = untrained(ScoreColumn("score"), SCORED)
    with pytest.raises(BaseModelError, match=rf"outside \[0, 1\] in {N} of {N} rows"):
        update.predict(SCORED.assign(score=7.0))


@every_line("name", ["y", "sensitive_features", "sample_weight"])
def test_one_entry_per_row_is_asked_for(name):
    given = {"y": Y, "sensitive_features": GROUP, "sample_weight": np.ones(N)}
    given[name] = given[name][:10]
    with pytest.raises(InputError, match=f"{name} has 10 rows, but {N} were expected"):
        COMMOD(MODEL, epochs=0).fit(X, **given)


# ---------------------------------------------------------------------------------------------
# What deserves a look


def test_a_predict_that_differs_from_the_threshold_is_said_to_the_caller():
    n_different = int(((SCORES > 0.5) != (SCORES > 0.7)).sum())
    words = f"own predict differs from score > 0.7 in {n_different} of {N} rows"
    with pytest.warns(BaseModelWarning, match=words) as caught:
        untrained(MODEL, threshold=0.7)
    text = str(caught[0].message)
    assert "check that threshold=0.7 is the one that is deployed" in text
    assert "set threshold=" not in text  # it is set


def test_who_left_the_threshold_alone_is_told_to_set_it():
    class Strict:
        classes_ = MODEL.classes_
        predict_proba = staticmethod(MODEL.predict_proba)

        @staticmethod
        def predict(table):
            return (MODEL.predict_proba(table)[:, 1] > 0.7).astype(int)

    with pytest.warns(BaseModelWarning, match="set threshold= to the threshold that is deployed"):
        untrained(Strict())


def test_warnings_about_the_base_model_point_at_the_line_that_called_fit():
    update = COMMOD(MODEL, epochs=0, threshold=0.7)
    with pytest.warns(BaseModelWarning) as caught:
        update.fit(X, Y, sensitive_features=GROUP)
    assert caught[0].filename == __file__


def test_rows_the_base_model_was_trained_on_are_recognised_by_the_accuracy():
    model = DecisionTreeClassifier(random_state=0).fit(X, Y)
    words = "look like rows the base model was trained on .accuracy 1.000.*held-out rows"
    with pytest.warns(BaseModelWarning, match=words):
        untrained(model)


def test_scores_at_the_ends_are_recognised_without_labels():
    table = SCORED.assign(score=(SCORES > 0.5) * 1.0)
    words = r"trained on \(100% of the scores at 0 or 1\)"
    with pytest.warns(BaseModelWarning, match=words):
        untrained(ScoreColumn("score"), table, y=None)


def test_scores_that_order_the_labels_backwards_are_said_with_the_area_under_the_curve():
    rng = np.random.default_rng(0)
    scores = rng.random(301).round(2)
    labels = (rng.random(301) > scores).astype(int)
    area = roc_auc_score(labels, scores)
    frame = pd.DataFrame({"age": rng.normal(size=301), "score": scores})
    with pytest.warns(ScoreOrderWarning, match=rf"area under the curve {area:.3f}, "):
        COMMOD(ScoreColumn("score"), epochs=0).fit(frame, labels, sensitive_features=labels)


@every_line("model", [ScoreColumn("score"), DummyClassifier().fit([[0], [1]], [0, 1])])
def test_the_same_score_for_everybody_is_refused(model):
    table = SCORED.assign(score=0.6)
    with pytest.raises(BaseModelError, match=r"every row the same score \(0\.[56]\).* Check that"):
        untrained(model, table)


class Deployed(LogisticRegression):
    """Decides at a threshold of its own, and counts the rows it is asked about."""

    threshold, asked = 0.5, 0

    def predict(self, X):
        type(self).asked += len(X)
        return (self.predict_proba(X)[:, 1] > type(self).threshold).astype(int)


@pytest.fixture
def deployed(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 2))
    y = (X[:, 0] + rng.normal(size=30_000) > 0).astype(int)
    monkeypatch.setattr(Deployed, "asked", 0)
    model = Deployed().fit(X, y)
    return model, X, BaseScores(model.predict_proba(X), 0.5)


def test_of_many_rows_some_are_asked_for_the_models_own_decisions(deployed):
    model, X, base = deployed
    warn_about_base_model(model, X, base, classes=CLASSES, pos_label=1, label=None)
    assert 500 <= Deployed.asked <= 1_000


@pytest.mark.parametrize("rank", [-5, 5])
def test_another_threshold_is_noticed_among_many_rows(deployed, monkeypatch, rank):
    model, X, base = deployed
    in_order = np.sort(base.scores)
    first = int(np.searchsorted(in_order, 0.5))
    monkeypatch.setattr(Deployed, "threshold", in_order[first + rank])
    different = int((base.decisions != (base.scores > in_order[first + rank])).sum())
    assert 4 <= different <= 6
    with pytest.warns(BaseModelWarning, match=rf"own predict differs .* {different} of 30000 rows"):
        warn_about_base_model(model, X, base, classes=CLASSES, pos_label=1, label=None)
