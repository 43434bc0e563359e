"""Targets that hold in expectation on new people, and what is said about them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from commod.updates._cross_fit import ExpectedFigures, Folds, Spread, expected_on, measure
from commod.updates._expectation import expect_target, internal_targets
from commod.updates._gates import fit_target
from commod.updates._new_rows import moved_update
from commod.updates._outside_rows import OutsideRows
from commod.updates._search import changed_rows
from commod.updates._soft_cells import cell_models, draw_folds, with_soft_cells
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from commod import ControlledDebiaser, ScoreColumn, metrics
from commod.constraints import DemographicParity, MinimumRate, TruePositiveRateParity
from commod.datasets import load_compas, make_biased
from commod.exceptions import BaseModelWarning, CommodWarning, InputError, TargetWarning
from commod.metrics._constraint import get_constraint
from commod.updates import _sample, _search

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


def test_the_internal_target_is_stricter_and_the_fit_rows_reach_it(default):
    assert default.internal_target_ >= 0.8
    assert default.fairness_ >= default.internal_target_ - 1e-9
    assert default.expected_fairness_ >= 0.8
    assert default.reached_
    assert default.cells_ == "soft"


def test_the_same_rows_lead_to_the_same_expectation(default):
    again = fitted()
    assert again.expected_fairness_ == default.expected_fairness_
    assert again.expected_spread_ == default.expected_spread_
    assert again.scorecard_.points == pytest.approx(default.scorecard_.points)


def test_a_fold_has_no_say_in_the_direction_that_it_measures():
    rows = rows_of(600)
    update = ControlledDebiaser(MODEL, borderline=0)
    problem = update._prepare(rows.data, rows.target, rows.sensitive_features, None)
    soft = with_soft_cells(problem, cell_models(problem, 20, ()))
    kept = fit_target(soft, 0.8)
    fold = draw_folds(kept.problem)
    points = Folds(kept, fold).directions(0.8).parts[0].outcome.points

    other = np.asarray(rows.sensitive_features).copy()
    in_fold = np.flatnonzero(fold == 0)
    other[in_fold] = np.random.default_rng(0).permutation(other[in_fold])
    shuffled = update._prepare(rows.data, rows.target, pd.Series(other), None)
    models = cell_models(shuffled, 20, ())
    models = type(models)(**{**vars(models), "fold": fold, "_fitted": {}})
    gated = with_soft_cells(shuffled, models).with_direction(
        kept.problem.may_raise, kept.problem.may_lower
    )
    again = Folds(kept._replace(problem=gated), fold).directions(0.8).parts[0].outcome.points
    assert again == pytest.approx(points, rel=1e-6)


class Line:
    """New rows whose fairness falls behind the internal target by a fixed amount."""

    def __init__(self, behind, changes_spread=0.0):
        self.behind, self.changes_spread = behind, changes_spread
        self.asked = []

    def figures(self, target):
        self.asked.append(target)
        spread = Spread(0.0, self.changes_spread if len(self.asked) > 1 else 0.0, 0.0)
        return ExpectedFigures(target + self.behind, 0.1 * target, 0.7, spread)


@pytest.mark.parametrize(
    ("constraint", "target", "behind"),
    [("demographic_parity", 0.8, -0.05), ("equalized_odds", 0.2, 0.07)],
)
def test_the_internal_target_makes_up_for_what_new_rows_lose(constraint, target, behind):
    expectation = expect_target(Line(behind), get_constraint(constraint), target)
    assert expectation.is_reached
    assert expectation.internal_target == pytest.approx(target - behind)
    assert expectation.figures.fairness == target
    assert expectation.figures.change_rate == pytest.approx(0.1 * (target - behind))


def test_the_search_for_the_internal_target_ends_where_the_target_is_reached():
    line = Line(0.01)
    expectation = expect_target(line, get_constraint("demographic_parity"), 0.8)
    assert line.asked == [0.8] == [expectation.internal_target]
    assert expectation.figures.fairness == pytest.approx(0.81)


def test_the_fairest_internal_target_is_kept_where_none_is_enough():
    constraint = get_constraint("demographic_parity")
    expectation = expect_target(Line(-0.3), constraint, 0.8)
    assert not expectation.is_reached
    assert expectation.internal_target == internal_targets(constraint, 0.8)[-1] == 0.98


def test_an_internal_target_at_which_folds_change_different_people_is_no_answer():
    line = Line(-0.05, changes_spread=0.3)
    expectation = expect_target(line, get_constraint("demographic_parity"), 0.8)
    assert not expectation.is_reached
    assert expectation.internal_target == 0.8


# ---------------------------------------------------------------------------------------------
# Other requests


@pytest.mark.parametrize(
    "constraint",
    ["equalized_odds", "true_positive_rate_parity", "false_positive_rate_parity"],
)
def test_constraints_on_errors_are_expected_too(constraint):
    update = fitted(1500, constraints=constraint, target=0.12, borderline=0)
    assert update.expected_fairness_ <= 0.12
    assert update.internal_target_ <= 0.12
    assert update.reached_


def test_caps_hold_on_the_fit_rows_and_their_expected_values_are_said(capped):
    assert capped.change_rate_ <= 0.03
    assert not capped.reached_
    assert f"{capped.expected_change_rate_:.1%} of their decisions" in capped.status_


def test_a_budget_says_what_is_expected_of_it():
    update = fitted(1000, max_changes=0.04)
    assert update.change_rate_ <= 0.04
    assert update.reached_
    assert f"expected on as many new people is {update.expected_fairness_:.3f}" in update.status_


def test_weights_and_several_groups_are_expected_too():
    rows = make_biased(900, random_state=1, group_shares=(0.4, 0.3, 0.3))
    weight = np.random.default_rng(0).uniform(0.5, 2, 900)
    model = LogisticRegression().fit(rows.data, rows.target)
    update = ControlledDebiaser(model, target=0.7, fit_rows_are_new=True)
    update.fit(
        rows.data, rows.target, sensitive_features=rows.sensitive_features, sample_weight=weight
    )
    assert update.expected_fairness_ == pytest.approx(0.7, abs=0.02)


def test_an_unchanged_base_model_has_the_measured_fairness_on_average():
    """A target that the base model reaches is expected of it."""
    update = fitted(target=0.1)
    assert update.change_rate_ == update.expected_change_rate_ == 0
    assert update.expected_fairness_ == pytest.approx(update.fairness_)


def test_the_expectation_is_that_of_the_fairness_that_a_cap_allows():
    rows = rows_of(400)
    update = ControlledDebiaser(MODEL, borderline=0, max_changes=0.1)
    problem = update._prepare(rows.data, rows.target, rows.sensitive_features, None)
    kept = fit_target(problem, 0.7)
    stricter = expect_target(Line(-0.2), problem.constraint, 0.7)
    assert stricter.is_reached
    moved, expectation = moved_update(kept, Line(-0.2), stricter, 0.7)
    after = problem.rows.base.decisions ^ changed_rows(moved.problem, moved.outcome)
    attained = problem.rows.fairness(problem.constraint, after)
    assert 0.7 <= attained < stricter.internal_target
    assert expectation.figures.fairness == pytest.approx(attained - 0.2)
    assert not expectation.is_reached


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
    assert update.expected_fairness_ > 0.7


def test_nothing_is_promised_on_rows_that_the_base_model_has_seen():
    with pytest.raises(InputError, match="confidence needs rows that are new to the base model"):
        fitted(confidence=0.9, fit_rows_are_new=False)


def test_locked_columns_are_no_sign_of_training_rows():
    update = fitted(locked_features=["x0", "x1"])
    assert "optimism" not in update.status_


def test_with_fit_rows_nothing_is_expected():
    update = fitted(target_on="fit_rows")
    assert update.fairness_ >= 0.8
    assert np.isnan(update.expected_fairness_)
    assert np.isnan(list(update.expected_spread_.values())).all()
    assert "expected" not in update.status_
    assert "is reached on the fit rows" in update.status_


def test_with_confidence_the_held_out_half_decides():
    update = fitted(800, confidence=0.9, target=0.5, borderline=0)
    assert np.isnan(update.expected_fairness_)
    assert "expected on" not in update.status_


def test_parity_has_no_stricter_internal_target():
    update = fitted(target=0.99)
    assert update.internal_target_ == 0.99
    assert update.fairness_ >= 0.99
    assert update.expected_fairness_ < 0.99
    assert not update.reached_
    assert update.change_rate_ < 0.5


@pytest.fixture
def small_samples(monkeypatch):
    sizes = {"MIN_ROWS": 600, "MIN_CHANGED_ROWS": 50, "MIN_CELL_ROWS": 150}
    for name, size in sizes.items():
        monkeypatch.setattr(_sample, name, size)


@pytest.mark.usefixtures("small_samples")
def test_rows_outside_the_search_sample_replace_the_folds():
    rows = rows_of(6000)
    update = ControlledDebiaser(MODEL, borderline=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Folds, "directions", None)  # no fold is searched
        update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
    n_outside = 6000 - update.n_search_rows_
    assert f"parts of the {n_outside:,} rows outside the search sample" in update.status_
    assert p_rule(update, rows_of(20_000, seed=5)) == pytest.approx(
        update.expected_fairness_, abs=0.06
    )


def decisions_by_row(outside, changed, part):
    """Return the decision of each row if it changes as often as its stratum does in a part."""
    problem = outside.kept.problem
    decisions = problem.rows.base.decisions.astype(float)
    for stratum in np.unique(outside.stratum):
        rows = (outside.stratum == stratum) & problem.may_change
        if (rows & part).any():
            share = changed[rows & part].mean()
            decisions[rows] = np.where(problem.rows.base.decisions[rows], 1 - share, share)
    return decisions


def check_figures_of_strata(outside):
    """Compare figures of few strata with those of the decisions of all rows."""
    problem = outside.kept.problem
    changed = np.random.default_rng(1).random(len(problem.rows)) < 0.3
    changed &= problem.may_change & (problem.rows.groups.codes == 0)
    figures = outside._figures(changed)
    expected = decisions_by_row(outside, changed, outside.part >= 0)
    _, change_rate, accuracy = measure(problem.constraint, problem.rows, expected)
    assert (figures.change_rate, figures.accuracy) == pytest.approx((change_rate, accuracy))
    parts = [
        measure(problem.constraint, problem.rows, decisions_by_row(outside, changed, part))
        for part in (outside.part == number for number in range(5))
    ]
    assert [*figures.spread] == pytest.approx(np.std(parts, axis=0, ddof=1))
    metrics_of_all = expected_on(problem.compared, problem.cells, problem.rows, expected)
    assert [figures.fairness, *figures.standing] == pytest.approx(metrics_of_all)


@pytest.mark.usefixtures("small_samples")
@pytest.mark.parametrize("max_margin", [None, 0.2])
@pytest.mark.parametrize(
    ("constraints", "target"),
    [
        ("demographic_parity", 0.6),
        ("equalized_odds", 0.2),
        (DemographicParity(ratio=0.6) & MinimumRate(0.1), 0.6),
    ],
)
def test_figures_of_few_strata_are_those_of_all_rows(constraints, target, max_margin, monkeypatch):
    monkeypatch.setattr(_search, "agrees_with_sample", lambda *_: True)  # no larger sample
    n = 12_000
    rows, weight = rows_of(n), np.random.default_rng(0).integers(1, 4, n)
    update = ControlledDebiaser(MODEL, constraints=constraints, borderline=0, max_margin=max_margin)
    problem = update._prepare(rows.data, rows.target, rows.sensitive_features, weight)
    check_figures_of_strata(OutsideRows.of(fit_target(problem, target)))


@pytest.mark.usefixtures("small_samples")
def test_a_group_without_positive_labels_is_not_lost_among_the_strata(monkeypatch):
    monkeypatch.setattr(_search, "agrees_with_sample", lambda *_: True)  # no larger sample
    n, random = 12_000, np.random.default_rng(0)
    rows = rows_of(n)
    is_first = rows.sensitive_features == np.asarray(rows.sensitive_features)[0]
    groups = np.where(is_first, "c", "b").astype(object)
    groups[(rows.target == 0) & (random.random(n) < 0.02)] = "a"  # sorts before the others
    X = rows.data.assign(score=MODEL.predict_proba(rows.data)[:, 1], band=random.integers(0, 2, n))
    update = ControlledDebiaser(
        ScoreColumn("score"),
        constraints=TruePositiveRateParity(0.1).within("band"),
        borderline=0,
    )
    problem = update._prepare(X, rows.target, groups, None)
    check_figures_of_strata(OutsideRows.of(fit_target(problem, 0.15)))


@pytest.mark.usefixtures("small_samples")
def test_everybody_changes_where_all_outside_rows_do():
    rows = rows_of(6000)
    update = ControlledDebiaser(MODEL, borderline=0)
    problem = update._prepare(rows.data, rows.target, rows.sensitive_features, None)
    outside = OutsideRows.of(fit_target(problem, 0.8))
    rejected = ~problem.rows.base.decisions
    figures = outside._figures(rejected & problem.may_change)
    assert figures.fairness == pytest.approx(1.0, abs=1e-3)
    assert figures.change_rate == pytest.approx(rejected.mean())


# ---------------------------------------------------------------------------------------------
# What is said


def test_the_status_says_what_was_asked_what_is_expected_and_what_holds(default):
    status = default.status_
    expected = f"{default.expected_fairness_:.3f}"
    assert status.startswith(
        f"P-rule of label 1 ≥ 0.8 is expected on as many new people: {expected}."
    )
    assert "About half of all samples fall below an expectation." in status
    assert f"deviation is {default.expected_spread_['fairness']:.3f}" in status
    assert f"On the 800 fit rows: P-rule of label 1 {default.base_fairness_:.3f} →" in status


def test_a_target_that_few_rows_cannot_reach_names_the_smallest_cell_and_the_rows_needed():
    rows = rows_of(200)
    update = ControlledDebiaser(MODEL, target=0.95)
    with pytest.warns(TargetWarning, match="is not expected on as many new people"):
        update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
    sizes = rows.sensitive_features.value_counts()
    assert f"has {sizes.min()} rows." in update.status_
    assert "rows would be enough" in update.status_
    assert not update.reached_


def test_nothing_is_expected_of_cells_with_a_handful_of_people():
    rows = rows_of(300)
    group = np.where(np.asarray(rows.target) == 1, "a", rows.sensitive_features)
    few = np.flatnonzero(np.asarray(rows.target) == 1)[:6]
    group[few] = "g1"
    group = np.where(group == "a", "g0", group)
    update = ControlledDebiaser(MODEL, constraints="equalized_odds", target=0.2)
    with pytest.warns(TargetWarning, match="Nothing can be expected on as many new people"):
        update.fit(rows.data, rows.target, sensitive_features=group)
    assert "with a positive true label, has 6 rows" in update.status_
    assert np.isnan(update.expected_fairness_)
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
    with pytest.warns(BaseModelWarning, match="its own optimism there is not corrected"):
        update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
    assert "models that have not seen a row" in update.status_


def test_a_model_of_other_rows_is_not(default, forest):
    assert "optimism" not in default.status_
    assert "optimism" not in fitted(800, seed=1, estimator=forest).status_


@pytest.mark.parametrize(("said", "is_named"), [(True, False), (False, True)])
def test_a_user_who_knows_is_believed(forest, said, is_named):
    rows = rows_of(800)
    update = ControlledDebiaser(forest, borderline=0, fit_rows_are_new=said)
    with warnings.catch_warnings():
        warnings.simplefilter("error", BaseModelWarning)
        update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
    assert ("The base model has seen the fit rows" in update.status_) is is_named


@pytest.mark.parametrize(
    "parameters", [{"target_on": "new rows"}, {"target_on": None}, {"fit_rows_are_new": "yes"}]
)
def test_other_values_are_refused(parameters):
    with pytest.raises(InputError, match=next(iter(parameters))):
        fitted(**parameters)


def test_an_update_changes_hardly_more_people_than_it_expects_to():
    # A search for one internal target, then an offset for a stricter one, changed twice as many.
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
        monotone=dict.fromkeys(record, 1),
        max_margin=0.3,
    ).fit(X.loc[fit_rows], people.target[fit_rows], sensitive_features=race[fit_rows])
    assert update.reached_
    assert update.change_rate_ < 1.4 * update.expected_change_rate_
