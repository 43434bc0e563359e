"""`calibrated_proba`: the edited score as a probability that keeps every decision."""

import copy
import pickle

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from commod import COMMOD, CalibrationDisplay, Patch, ScoreColumn, audit, explain, report
from commod.datasets import make_biased
from commod.exceptions import InputError
from quick_updates import quick_control


def rows_of(seed, n=600, power=3.0):
    """Return scored people; the true share is a power of the score, so it is not calibrated."""
    data = make_biased(n, random_state=seed)
    model = LogisticRegression().fit(data.data, data.target)
    score = model.predict_proba(data.data)[:, 1]
    random = np.random.default_rng(seed)
    y = (random.random(n) < score**power).astype(int)
    return data.data.assign(score=score), y, np.asarray(data.sensitive_features)


@pytest.fixture(scope="module")
def rows():
    return rows_of(0)


def fitted(rows, method=quick_control, **parameters):
    X, y, groups = rows
    update = method(ScoreColumn("score"), **parameters)
    return update.fit(X, y, sensitive_features=groups)


@pytest.fixture(scope="module")
def shared(rows):
    return fitted(rows, target=0.8)


@pytest.fixture
def update(shared):
    return copy.copy(shared)


def check_kept(update, X, label=1):
    """Check that the probability of the score's label keeps decisions, order and threshold."""
    threshold = update._fitted_param("threshold")
    column = update.classes_.tolist().index(label)
    proba, edited = update.calibrated_proba(X), update.predict_proba(X)[:, column]
    assert proba.shape == (len(X), 2) and np.allclose(proba.sum(axis=1), 1)
    probability = proba[:, column]
    np.testing.assert_array_equal(probability > threshold, update.predict(X) == label)
    np.testing.assert_array_equal(probability == threshold, edited == threshold)
    order = np.argsort(edited, kind="stable")
    assert (np.diff(probability[order]) >= 0).all()
    return probability


@pytest.mark.parametrize(("score_edit", "threshold"), [("changed_only", 0.3), ("all", 0.5)])
def test_decisions_stay_and_the_brier_score_falls_on_new_people(rows, score_edit, threshold):
    update = fitted(rows, target=0.7, score_edit=score_edit, threshold=threshold)
    X, y, _ = rows_of(1)
    probability = check_kept(update, X)
    before = np.mean((X["score"] - y) ** 2)
    edited = np.mean((update.predict_proba(X)[:, 1] - y) ** 2)
    assert np.mean((probability - y) ** 2) < min(before, edited) - 0.01
    figures = update.calibration_
    assert figures.brier_calibrated < figures.brier_after and figures.n_rows == len(X)


def test_commod_has_it_too(rows):
    update = fitted(rows, method=COMMOD, epochs=0, random_state=0)
    check_kept(update, rows[0])
    assert update.to_patch().content.calibration == update.calibration_


def test_the_patch_gives_the_same_numbers(rows, update, tmp_path):
    patch = Patch.load(update.to_patch().save(tmp_path / "patch.json"))
    applied = patch.apply(rows[0], calibrated=True)["commod_calibrated"]
    np.testing.assert_array_equal(applied, update.calibrated_proba(rows[0])[:, 1])
    assert not any("calibration" in p for p in patch.verify(rows[0], rows[2]).problems)


def test_a_score_of_the_other_label_keeps_its_columns(rows):
    X, y, groups = rows
    turned = quick_control(ScoreColumn("score", score_is_for="bad"), favorable_label="good")
    labels = np.where(y == 1, "bad", "good")
    turned.fit(X, labels, sensitive_features=groups)
    assert turned.classes_.tolist() == ["bad", "good"]
    probability = check_kept(turned, X, label="bad")
    assert np.mean((probability - y) ** 2) < np.mean((X["score"] - y) ** 2)
    applied = turned.to_patch().apply(X, calibrated=True)["commod_calibrated"]
    np.testing.assert_array_equal(applied, probability)


def test_scores_at_the_threshold_stay_there(rows, update):
    X = rows[0].head(3).assign(score=[0.5, np.nextafter(0.5, 0), np.nextafter(0.5, 1)])
    probability = check_kept(update, X)
    assert probability[0] == 0.5 or update.changes(X).changed[0]


# ---------------------------------------------------------------------------------------------
# What is needed, and what is kept


def test_without_labels_the_error_says_what_to_do(rows):
    X, _, groups = rows
    update = quick_control(ScoreColumn("score"), target=0.7).fit(X, None, sensitive_features=groups)
    with pytest.raises(InputError, match=r"fitted without true labels.*fit\(X, y") as error:
        update.calibrated_proba(X)
    assert error.value.parameter == "y"
    assert update.to_patch().content.calibration is None
    with pytest.raises(InputError, match="no calibration map"):
        update.to_patch().apply(X, calibrated=True)
    assert explain(update, X).scores_calibrated is None


def test_a_few_people_of_a_label_are_not_enough(rows):
    X, _, groups = rows
    update = fitted((X, (np.arange(len(X)) < 4).astype(int), groups), target=0.7)
    with pytest.raises(InputError, match="4 and 596 people of the two true labels"):
        update.calibrated_proba(X)


def test_a_refit_without_labels_forgets_the_map(rows, update):
    X, _, groups = rows
    update.fit(X, None, sensitive_features=groups)
    assert update.calibration_ is None


def test_copies_keep_the_map_and_clones_do_not(rows, update):
    again = pickle.loads(pickle.dumps(update))
    np.testing.assert_array_equal(again.calibrated_proba(rows[0]), update.calibrated_proba(rows[0]))
    assert not hasattr(clone(update), "scorecard_") and clone(update).calibration_ is None
    update.set_params(threshold=0.2, score_edit="all")  # what was fitted decides
    np.testing.assert_array_equal(again.calibrated_proba(rows[0]), update.calibrated_proba(rows[0]))


def test_rows_without_weight_and_hidden_groups_teach_nothing(rows):
    X, y, groups = rows
    weight = np.ones(len(X))
    weight[::3] = 0
    wrong = np.where(weight == 0, 1 - y, y)
    maps = []
    for labels in (y, wrong):
        update = quick_control(ScoreColumn("score"), target=0.7)
        update.fit(X, labels, sensitive_features=groups, sample_weight=weight)
        maps.append(update.calibration_)
    assert maps[0] == maps[1] and maps[0].n_rows == int(weight.sum())
    few = groups.astype(object)
    few[:3] = "few"
    for labels in (y, np.where(few == "few", 1 - y, y)):
        update = quick_control(ScoreColumn("score"), target=0.7)
        with pytest.warns(UserWarning, match="left out"):
            update.fit(X, labels, sensitive_features=few)
        maps.append(update.calibration_)
    assert maps[2] == maps[3] and maps[2].n_rows == len(X) - 3


def test_with_confidence_the_fit_half_teaches_the_map():
    rows = rows_of(2, n=3000)
    update = fitted(rows, target=0.5, confidence=0.9)
    assert update.calibration_.n_rows == 1500
    check_kept(update, rows[0])


# ---------------------------------------------------------------------------------------------
# Audit, report, display


def test_the_audit_has_brier_scores_and_those_who_change(rows, update, tmp_path):
    X, y, groups = rows_of(1)
    why = explain(update, X)
    result = audit(why.y_before, why.y_after, sensitive_features=groups, y_true=y, explanation=why)
    figures, probability = result.calibration, update.calibrated_proba(X)[:, 1]
    assert figures.brier_calibrated == pytest.approx(np.mean((probability - y) ** 2))
    assert figures.brier_before == pytest.approx(np.mean((X["score"] - y) ** 2))
    assert sum(b.n for b in figures.calibrated) == len(X)
    gains = update.changes(X).gain
    assert figures.gains.n == gains.sum() > 0
    assert figures.gains.observed.value == pytest.approx(y[gains].mean())
    assert figures.gains.mean_score == pytest.approx(probability[gains].mean())
    assert type(result).from_json(result.to_json()) == result
    for name in ("report.html", "report.md"):
        text = report(result, tmp_path / name).read_text("utf-8")
        assert "Brier score" in text and "Mean calibrated probability" in text


def test_the_display_draws_a_third_curve_on_request(rows, update):
    X, y, _ = rows
    display = CalibrationDisplay.from_estimator(update, X, y, calibrated=True)
    assert display.calibrated.error < display.after.error
    assert any("calibrated" in text.get_text() for text in display.ax_.get_legend().get_texts())
    plt.close(display.figure_)
