"""Targets that hold in expectation on new people, and what is said about them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from commod import ControlledDebiaser, ScoreColumn, metrics
from commod._words.update import further_sentences
from commod.datasets import load_compas, make_biased
from commod.exceptions import (
    BaseModelWarning,
    CommodWarning,
    InputError,
    SeenRowsWarning,
    TargetWarning,
)

POPULATION = {"n_features": 5, "bias": 1.0}
OTHER = make_biased(2000, random_state=10**6, **POPULATION)
MODEL = LogisticRegression().fit(OTHER.data, OTHER.target)


def rows_of(n, seed=0):
    return make_biased(n, random_state=seed, **POPULATION)


def fitted(n=800, seed=0, estimator=MODEL, **parameters):
    rows = rows_of(n, seed)
    update = ControlledDebiaser(estimator, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        return update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)


def p_rule(update, rows):
    after = update.predict(rows.data)
    return metrics.p_rule(None, after, sensitive_features=rows.sensitive_features)


@pytest.fixture(scope="module")
def default():
    return fitted()


@pytest.fixture(scope="module")
def capped():
    return fitted(1000, target=0.9, max_changes=0.03)


# ---------------------------------------------------------------------------------------------
# The expectation


def test_the_expectation_is_that_of_the_target(default):
    assert default.reached_
    assert 0.8 <= default.expected_.fairness < 0.83
    low, high = default.expected_.interval
    assert low < default.expected_.fairness < high
    assert default.expected_.values == {"demographic_parity": default.expected_.fairness}


@pytest.fixture(scope="module")
def on_fit_rows():
    return fitted(borderline=0, target_on="fit_rows")


@pytest.fixture(scope="module")
def repeated(default):
    """Return updates of 10 tables, and what each does to a large sample of the same people."""
    new, figures = rows_of(8000, seed=10**5), []
    base = MODEL.predict(new.data)
    for seed in range(10):
        update = fitted(800, seed=seed) if seed else default
        after = update.predict(new.data)
        figures.append(
            {
                "update": update,
                "reached": metrics.p_rule(None, after, sensitive_features=new.sensitive_features),
                "expected": update.expected_.fairness,
                "changes": np.mean(after != base) - update.expected_.change_rate,
                "accuracy": np.mean(after == new.target) - update.expected_.accuracy,
            }
        )
    return figures


def test_new_people_get_what_is_expected_on_average(repeated):
    def mean(values):
        values = np.array(values)
        return values.mean(), values.std(ddof=1) / np.sqrt(len(values))

    lost, error = mean([one["expected"] - one["reached"] for one in repeated])
    assert abs(lost) < 0.01 + 2 * error
    for name in ("changes", "accuracy"):
        bias, error = mean([one[name] for one in repeated])
        assert abs(bias) < 0.005 + 2 * error


def test_the_interval_holds_for_samples_of_as_many_people(repeated):
    is_in = []
    for seed, one in enumerate(repeated):
        low, high = one["update"].expected_.interval
        samples = [rows_of(800, seed=2000 + 2 * seed + k) for k in range(2)]
        is_in += [low <= p_rule(one["update"], sample) <= high for sample in samples]
    assert 0.9 <= np.mean(is_in) <= 1.0


def test_the_cut_for_new_people_is_stricter_than_that_for_the_fit_rows(on_fit_rows):
    own, new = on_fit_rows, fitted(borderline=0, target_on="new_rows")
    assert own.change_rate_ < new.change_rate_
    assert new.fairness_ > own.fairness_ >= 0.8


# ---------------------------------------------------------------------------------------------
# Other requests


@pytest.mark.parametrize("constraint", ["equalized_odds", "false_positive_rate_parity"])
def test_constraints_on_errors_are_expected_too(constraint):
    update = fitted(1000, constraints=constraint, target=0.15, borderline=0)
    assert update.expected_.fairness <= 0.15
    assert update.reached_


def test_caps_hold_on_the_fit_rows_and_their_expected_values_are_said(capped):
    assert capped.change_rate_ <= 0.03
    assert not capped.reached_
    said = " ".join(further_sentences(capped._facts))
    assert f"On new people, {capped.expected_.change_rate:.1%} of the decisions" in said


def test_a_budget_says_what_is_expected_of_it():
    update = fitted(1000, max_changes=0.04)
    assert update.change_rate_ <= 0.04
    assert update.reached_
    assert f"Expected on new people: {update.expected_.fairness:.3f} (" in update.status_


def test_weights_and_several_groups_are_expected_too():
    rows = make_biased(900, random_state=1, group_shares=(0.4, 0.3, 0.3))
    weight = np.random.default_rng(0).uniform(0.5, 2, 900)
    model = LogisticRegression().fit(rows.data, rows.target)
    update = ControlledDebiaser(model, target=0.7)
    update.fit(
        rows.data, rows.target, sensitive_features=rows.sensitive_features, sample_weight=weight
    )
    assert update.expected_.fairness == pytest.approx(0.7, abs=0.02)


def test_an_unchanged_base_model_has_the_measured_fairness_on_average():
    """A target that the base model reaches is expected of it."""
    update = fitted(target=0.1)
    assert update.change_rate_ == update.expected_.change_rate == 0
    assert update.expected_.fairness == pytest.approx(update.fairness_, abs=0.005)


def test_the_status_tells_the_fit_rows_from_the_expectation(capped):
    assert capped.fairness_ < 0.9
    assert "was not reached on the fit rows" in capped.status_


def test_a_label_that_one_person_has_is_no_reason_to_fail():
    rows = rows_of(400)
    y = np.zeros(400, dtype=int)
    y[5] = 1
    update = ControlledDebiaser(MODEL, borderline=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        update.fit(rows.data, y, sensitive_features=rows.sensitive_features)
    assert update.expected_.fairness > 0.7


def test_locked_columns_are_no_sign_of_training_rows():
    update = fitted(locked_features=["x0", "x1"])
    assert "optimism" not in update.status_


def test_with_fit_rows_nothing_is_expected(on_fit_rows):
    update = on_fit_rows
    assert update.fairness_ >= 0.8
    assert np.isnan(update.expected_.fairness)
    assert np.isnan(update.expected_.interval).all()
    assert "expected" not in update.status_
    assert "on the fit rows. It is reached." in update.status_


def test_with_confidence_the_held_out_half_decides():
    update = fitted(800, confidence=0.9, target=0.5, borderline=0)
    assert np.isnan(update.expected_.fairness)
    assert "Expected on" not in update.status_


def test_a_target_out_of_reach_is_not_bought_with_the_decisions_of_half_of_the_people():
    update = fitted(target=0.99)
    assert 0.8 < update.expected_.fairness < 0.99
    assert not update.reached_
    assert 0 < update.change_rate_ < 0.5


# ---------------------------------------------------------------------------------------------
# What is said


def test_the_status_says_what_was_asked_what_is_expected_and_what_holds(default):
    status = default.status_
    low, high = default.expected_.interval
    assert status.startswith(
        "Target: P-rule of label 1 ≥ 0.8. Expected on new people: "
        f"{default.expected_.fairness:.3f} "
        f"(95% interval for as many people: {low:.3f} to {high:.3f})."
    )
    further = further_sentences(default._facts)
    changed = f"{default.expected_.change_rate:.1%} of the decisions"
    assert f"On new people, {changed} are expected to change." in further
    accuracy = f"{default.expected_.accuracy:.3f}"
    assert f"The accuracy of all decisions is expected to be {accuracy}." in further
    assert f"On the 800 fit rows: P-rule of label 1 {default.base_fairness_:.3f} →" in status


def test_a_target_that_few_rows_cannot_reach_names_the_smallest_cell():
    rows = rows_of(200)
    update = ControlledDebiaser(MODEL, target=0.95)
    with pytest.warns(TargetWarning, match="is not expected on new people"):
        update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
    assert not update.reached_
    if update.fairness_ >= 0.95:
        sizes = rows.sensitive_features.value_counts()
        assert f"has {sizes.min()} rows" in update.status_


def test_nothing_is_expected_of_cells_with_a_handful_of_people():
    rows = rows_of(300)
    group = np.where(np.asarray(rows.target) == 1, "a", rows.sensitive_features)
    few = np.flatnonzero(np.asarray(rows.target) == 1)[:6]
    group[few] = "g1"
    group = np.where(group == "a", "g0", group)
    update = ControlledDebiaser(MODEL, constraints="equalized_odds", target=0.2)
    with pytest.warns(TargetWarning, match="There is no expectation for new people"):
        update.fit(rows.data, rows.target, sensitive_features=group)
    assert "with a positive true label, has 6 rows" in update.status_
    assert np.isnan(update.expected_.fairness)
    assert not update.reached_


# ---------------------------------------------------------------------------------------------
# A base model that has seen the fit rows


@pytest.fixture(scope="module")
def forest():
    rows = rows_of(800)
    model = RandomForestClassifier(20, min_samples_leaf=3, random_state=0)
    return model.fit(rows.data, rows.target)


def test_a_base_model_that_is_too_good_on_the_fit_rows_is_warned_about(forest):
    rows = rows_of(800)
    update = ControlledDebiaser(forest, borderline=0)
    with pytest.warns(SeenRowsWarning, match="its own optimism there is not corrected"):
        update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
    assert "models that have not seen a row" in update.status_


def test_a_model_of_other_rows_is_not(default, forest):
    assert "optimism" not in default.status_
    assert "optimism" not in fitted(800, seed=1, estimator=forest).status_


def test_a_linear_model_that_learned_the_noise_of_the_fit_rows_is_warned_about():
    """A linear model of the same rows is as good on them: those to compare have not seen a row."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 60)), rng.integers(0, 2, 300)
    model = LogisticRegression(C=100.0, max_iter=1000).fit(X, y)
    group = np.where(X[:, 0] + rng.normal(size=300) > 0, "a", "b")
    with pytest.warns(SeenRowsWarning, match="its own optimism there is not corrected"):
        ControlledDebiaser(model, target=0.3, borderline=0).fit(X, y, sensitive_features=group)


def test_a_user_who_knows_silences_the_warning_by_its_category(forest):
    rows = rows_of(800)
    update = ControlledDebiaser(forest, borderline=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", BaseModelWarning)
        warnings.simplefilter("ignore", SeenRowsWarning)
        update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
    assert "If the base model has seen the fit rows" in update.status_
    assert "silence" not in update.status_


@pytest.mark.parametrize("is_column", [True, False])
def test_scores_of_seen_rows_are_noticed_at_any_threshold_and_in_a_column(is_column):
    rng = np.random.default_rng(5)
    X, y = pd.DataFrame(rng.normal(size=(800, 4)), columns=list("abcd")), rng.random(800)
    y = (X["a"] + 3 * y > 2.2).to_numpy()
    model = RandomForestClassifier(30, min_samples_leaf=2, random_state=0).fit(X[:400], y[:400])
    group = X["b"] + rng.normal(size=800) > 0
    column = X.assign(score=model.predict_proba(X)[:, 1])
    data, estimator = (column, ScoreColumn("score")) if is_column else (X, model)
    update = ControlledDebiaser(estimator, target=0.7, threshold=0.22, borderline=0)

    def fit(rows):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            update.fit(data[rows], y[rows], sensitive_features=group[rows])
        return [str(one.message) for one in caught if one.category is SeenRowsWarning]

    (told,) = fit(slice(400))
    assert "models that have not seen a row have" in told
    assert ("area under the ROC curve" in told) is is_column
    assert "its own optimism there is not corrected" in update.status_
    assert fit(slice(400, None)) == [] and "optimism" not in update.status_


def test_other_values_are_refused():
    for value in ("new rows", None):
        with pytest.raises(InputError, match="target_on"):
            fitted(target_on=value)


def test_an_update_changes_hardly_more_people_than_it_expects_to():
    people = load_compas()
    texts, record = (
        ["sex", "c_charge_degree"],
        ["priors_count", "juv_misd_count", "juv_other_count"],
    )
    X = people.data[["sex", "age", *record, "c_charge_degree"]]
    model_rows, others = train_test_split(X.index, train_size=0.3, random_state=0)
    fit_rows, _ = train_test_split(others, test_size=0.5, random_state=0)
    race = people.race.where(people.race == "African-American", "others")
    encode = make_column_transformer((OneHotEncoder(), texts), remainder=StandardScaler())
    model = make_pipeline(encode, LogisticRegression())
    model.fit(X.loc[model_rows], people.target[model_rows])
    update = ControlledDebiaser(
        model,
        constraints="equalized_odds",
        target=0.25,
        pos_label=1,
        favorable_label=0,
        direction="gains_only",
        monotone=dict.fromkeys(record, -1),
        max_margin=0.3,
    ).fit(X.loc[fit_rows], people.target[fit_rows], sensitive_features=race[fit_rows])
    assert update.reached_
    assert update.change_rate_ < 1.4 * update.expected_.change_rate
