"""ControlledDebiaser through its contract: targets, limits, directions, promises, and hostile data.

Figures are measured here again from decisions alone, with commod.metrics and commod.bounds.
"""

import math
import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from commod import ControlledDebiaser, ScoreColumn, bounds
from commod._data.encoding import BinTerms, CategoryTerms
from commod._words.update import AskedTarget, Goal, PromiseOutcome, UpdateFacts, status_text
from commod.datasets import make_biased
from commod.exceptions import DataWarning, InputError, TargetWarning
from commod.metrics import fairness_value, p_rule
from commod.metrics._changes import is_degenerate
from commod.updates._promise import split_in_halves
from quick_updates import quick_control

N = 300
CONSTRAINTS = (
    "demographic_parity",
    "equalized_odds",
    "true_positive_rate_parity",
    "false_positive_rate_parity",
)
TARGETS = dict(zip(CONSTRAINTS, (0.8, 0.15, 0.1, 0.1), strict=True))
NUMBERS = ["x0", "x1", "x2", "x3"]


@pytest.fixture(scope="module")
def biased():
    return make_biased(2 * N, bias=1.5, n_categories=4, random_state=0)


@pytest.fixture(scope="module")
def rows(biased):
    """Rows new to the model, as a frame with labels and groups."""
    return biased.data.iloc[N:], biased.target[N:], biased.sensitive_features[N:]


@pytest.fixture(scope="module")
def model(biased):
    numbers = make_column_transformer(("passthrough", NUMBERS))
    model = make_pipeline(numbers, LogisticRegression())
    return model.fit(biased.data.iloc[:N], biased.target[:N])


@pytest.fixture(scope="module")
def fitted(model, rows):
    return fit(model, rows)


@pytest.fixture(scope="module")
def new_rows():
    return make_biased(3000, bias=1.5, n_categories=4, random_state=1).data


def fit(model, rows, sample_weight=None, **params):
    X, y, s = rows
    update = quick_control(model, **params)
    return update.fit(X, y, sensitive_features=s, sample_weight=sample_weight)


def is_met(constraints, value, target):
    return value >= target if constraints == "demographic_parity" else value <= target


def quiet_fit(*args, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TargetWarning)
        return fit(*args, **params)


# -- the target is reached and the limit is a floor -----------------------------------------------


def check_against_decisions(update, rows, *, pos_label=1, before=None):
    """Measure an update on its fit rows again: fairness, changes and the exact limit."""
    X, y, s = rows
    after = update.predict(X)
    changed = update.changes(X).changed
    other = update.classes_[update.classes_ != pos_label][0]
    flipped = np.where(after == pos_label, other, pos_label)
    before = np.where(changed, flipped, after)
    value = fairness_value(update.constraints, y, after, sensitive_features=s, pos_label=pos_label)
    assert update.fairness_ == value
    assert update.change_rate_ == changed.mean()
    limit = bounds.minimal_changes(
        before,
        sensitive_features=s,
        target=value,
        constraints=update.constraints,
        y_true=y,
        direction=update.direction,
        pos_label=pos_label,
        favorable_label=update._favorable_label,
    )
    assert update.limit_ == pytest.approx(limit.rate)
    assert changed.sum() >= limit.n_changes
    return value


@pytest.mark.parametrize("constraints", CONSTRAINTS)
def test_the_target_is_reached_and_the_limit_holds(model, rows, constraints):
    target = TARGETS[constraints]
    extra = {"max_lines": 12, "borderline": 0.25}
    update = fit(model, rows, constraints=constraints, target=target, **extra)
    value = check_against_decisions(update, rows)
    assert is_met(constraints, value, target)
    assert not is_met(constraints, update.base_fairness_, target)
    assert update.reached_
    assert "on the fit rows. It is reached." in update.status_
    assert f"({update.limit_:.1%})" in update.status_.splitlines()[-1]
    if constraints == "demographic_parity":
        assert update.change_rate_ <= 1.5 * update.limit_
    assert update.promised_ is None
    low, high = update.fairness_interval_
    assert 0 <= low < value < high <= 1 and "new rows may differ" in update.status_


def test_three_groups():
    constraints = "equalized_odds"
    data = make_biased(900, bias=1.5, group_shares=(0.5, 0.3, 0.2), random_state=2)
    X, y, s = data.data, data.target, data.sensitive_features
    model = LogisticRegression().fit(X[:300], y[:300])
    rows = X[300:], y[300:], s[300:]
    update = fit(model, rows, constraints=constraints, target=0.3)
    assert check_against_decisions(update, rows) <= 0.3


def test_intersections_of_two_columns(model, rows):
    X, y, s = rows
    both = pd.DataFrame({"race": s, "sex": np.where(np.arange(N) % 2, "m", "f")}, index=s.index)
    update = fit(model, (X, y, both), target=0.7)
    joined = both["race"] + both["sex"]
    assert p_rule(None, update.predict(X), sensitive_features=joined) >= 0.7
    assert check_against_decisions(update, (X, y, both)) >= 0.7


def test_sample_weights_weigh_the_rates(model, rows):
    X, _, s = rows
    weight = np.random.default_rng(0).uniform(0.2, 3, N)
    update, doubled = (fit(model, rows, sample_weight=w) for w in (weight, 2 * weight))
    assert np.array_equal(update.predict(X), doubled.predict(X))  # their unit does not matter
    value = p_rule(None, update.predict(X), sensitive_features=s, sample_weight=weight)
    assert value >= 0.8
    assert update.fairness_ == pytest.approx(value, rel=1e-12)
    assert update.change_rate_ == update.changes(X).changed.mean()  # in people
    assert math.isnan(update.limit_)
    assert all(math.isnan(end) for end in update.fairness_interval_)
    assert "fewest possible changes are not given: they count people, not sample" in update.status_


def test_a_row_of_weight_zero_is_as_if_it_were_not_there(model, rows):
    X, y, s = rows
    kept = np.arange(N) % 3 > 0
    settings = {"target": 0.9, "max_changes": 0.05}
    weighted = quiet_fit(model, rows, sample_weight=kept.astype(float), **settings)
    alone = quiet_fit(model, (X[kept], y[kept], s[kept]), **settings)
    assert np.array_equal(weighted.predict(X), alone.predict(X))
    assert weighted.n_rows_ == kept.sum()
    assert weighted.limit_ == alone.limit_ > 0  # equal weights are none
    assert weighted.change_rate_ == weighted.changes(X[kept]).rate <= 0.05


def test_labels_are_not_needed_for_demographic_parity(model, rows, fitted):
    X, _, s = rows
    update = fit(model, (X, None, s))
    assert update.reached_
    assert np.array_equal(update.predict(X), fitted.predict(X))  # labels serve the nearness only
    assert math.isnan(update.accuracy_)
    assert "accuracy" not in update.status_


@pytest.mark.filterwarnings("ignore:The base model's own predict")
def test_thresholds_other_than_a_half(model, rows):
    threshold = 0.3
    X, _, s = rows
    update = fit(model, rows, threshold=threshold)
    base = model.predict_proba(X)[:, 1] > threshold
    assert np.array_equal(update.changes(X).changed, base != (update.predict(X) == 1))
    assert p_rule(None, update.predict(X), sensitive_features=s) >= 0.8
    proba = update.predict_proba(X)[:, 1]
    assert np.array_equal(proba > threshold, update.predict(X) == 1)


def test_other_labels_as_positive_and_favourable(model, rows, fitted):
    X, _, s = rows
    update = fit(model, rows, pos_label=0, target=0.8)
    assert check_against_decisions(update, rows, pos_label=0) >= 0.8
    assert p_rule(None, update.predict(X), sensitive_features=s, pos_label=0) >= 0.8
    turned = fit(model, rows, pos_label=1, favorable_label=0)
    assert (turned.n_gains_, turned.n_losses_) == (fitted.n_losses_, fitted.n_gains_)


def mixed(X, seed=0):
    """The rows with text, categories, booleans and missing values beside the numbers."""
    rng = np.random.default_rng(seed)
    return X.assign(
        x2=X["x2"].where(rng.random(len(X)) > 0.15),
        flag=X["x0"] > 0,
        city=pd.Categorical(rng.choice(["oslo", "rome", "lima"], len(X))),
        note=np.where(rng.random(len(X)) < 0.2, None, X["category"]),
    )


def test_text_categories_booleans_and_missing_values(model, rows):
    X, y, s = rows
    scores = model.predict_proba(X)[:, 1]
    table = mixed(X).assign(score=scores)
    update = fit(ScoreColumn("score"), (table, y, s), borderline=0.25)
    assert check_against_decisions(update, (table, y, s)) >= 0.8
    names = " ".join(update.term_names_)
    for term in ("x2 is missing", "flag = True", "city = rome", "note is missing"):
        assert term in names
    assert "score" not in update.scorecard_.encoding.kinds
    strange = table.head(5).assign(city="mars", note="never seen", x2=np.nan)
    assert np.isfinite(update.ratio(strange)).all()


@pytest.mark.parametrize("direction", ["gains_only", "losses_only"])
def test_decisions_follow_from_the_points_the_cut_and_the_score(model, rows, direction):
    """Add up the points by hand, and hold the sum against the cut: r < 0 says the same."""
    X, y, s = rows
    table = mixed(X).assign(score=model.predict_proba(X)[:, 1])
    asked = {"direction": direction, "favorable_label": 0, "pos_label": 1, "borderline": 1}
    update = fit(ScoreColumn("score"), (table, y, s), **asked)
    v = np.full(N, update.scorecard_.intercept)
    for name, points in update.scorecard_.rows():
        if name.endswith(" is missing"):
            v += points * table[name.removesuffix(" is missing")].isna()
        elif " = " in name:
            column, value = name.split(" = ")
            v += points * (table[column].astype(object).astype(str) == value)
        else:
            terms = {c.name: c for c in update.scorecard_.encoding.columns}[name]
            v += points * (table[name].fillna(terms.fill) - terms.centre)
    np.testing.assert_allclose(update.raw_ratio(table), v, atol=1e-9)
    rule = update.scorecard_.rule
    assert 0 < rule.nearness == update.search_.nearness and rule.cut > 0
    t, m = rule.nearness, rule.mean_distance
    cost = (1 - t) + t * (table["score"] - 0.5).abs() / m
    is_favorable = table["score"] <= 0.5
    side = np.where(is_favorable, -1, 1)
    may_change = {"any": True, "losses_only": is_favorable, "gains_only": ~is_favorable}
    changed = (side * v > rule.cut * cost) & may_change[update.search_.direction]
    assert changed.any()
    assert np.array_equal(update.predict(table) == 1, (table["score"] > 0.5) ^ changed)
    ratio = update.ratio(table)
    np.testing.assert_allclose(
        ratio,
        np.where(may_change[update.search_.direction], cost - side * v / rule.cut, 1),
        atol=1e-9,
    )
    assert np.array_equal(ratio < 0, changed)


def test_compas_with_its_hundreds_of_categories(compas):
    index = np.random.default_rng(0).permutation(len(compas.data))[:1200]
    X, s = compas.data.iloc[index], compas.sensitive_features.iloc[index]
    y = compas.target.iloc[index]
    numbers = X.select_dtypes("number").columns
    base = make_pipeline(make_column_transformer(("passthrough", numbers)), LogisticRegression())
    base.fit(X[:600], y[:600])
    rows = X[600:], y[600:], s[600:]
    asked = {"target": 0.9, "max_lines": 12, "pos_label": 1, "favorable_label": 0}
    update = fit(base, rows, min_group_size=100, **asked)
    assert check_against_decisions(update, rows) >= 0.9
    assert n_lines(update) <= 12


# -- directions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["gains_only", "losses_only"])
def test_the_gate_holds_r_at_one_and_the_score_bit_for_bit(model, rows, new_rows, direction):
    update = fit(model, rows, direction=direction, target=0.95)
    check_against_decisions(update, rows)
    changes = update.changes(new_rows)
    counts = changes.n_gains, changes.n_losses
    assert min(counts) == counts[direction == "gains_only"] == 0 < max(counts)
    gated = (model.predict(new_rows) == 1) == (direction == "gains_only")
    ratio, raw = update.ratio(new_rows), update.raw_ratio(new_rows)
    assert (ratio[gated] == 1).all()
    side, rule = (-1 if direction == "losses_only" else 1), update.scorecard_.rule
    cost = rule.costs(np.abs(model.predict_proba(new_rows)[:, 1] - 0.5))
    np.testing.assert_allclose(ratio[~gated], (cost - side * raw / rule.cut)[~gated], atol=1e-9)
    assert (-side * raw > rule.cut * cost)[gated].any()  # the gate is what protects them
    proba = update.predict_proba(new_rows)
    assert np.array_equal(proba[gated], model.predict_proba(new_rows)[gated])


def test_mostly_losses_is_said_with_the_limit_of_gains_only(model, rows):
    X, _, s = rows
    update = fit(model, rows, pos_label=1, favorable_label=0)
    assert update.n_losses_ > update.n_gains_
    assert "Most of the changes are losses" in update.status_
    limit = bounds.minimal_changes(
        model.predict(X),
        sensitive_features=s,
        target=update.fairness_,
        direction="gains_only",
        pos_label=1,
        favorable_label=0,
    )
    words = (
        f"On these rows, gains alone need at least {limit.rate:.1%} changed decisions for the same "
        "fairness."
    )
    assert words in update.status_
    assert limit.rate > update.limit_


# -- hard limits and targets out of reach ---------------------------------------------------------


def volume(update, X):
    before = update.changes(X)
    up = (before.gain if update._favorable_label == update._pos_label else before.loss).sum()
    return (2 * up - before.n_changes) / len(X)


@pytest.mark.parametrize(
    ("constraints", "hard"),
    [
        ("equalized_odds", {"max_changes": 0.02}),
        ("equalized_odds", {"max_accuracy_loss": 0.005}),
        ("demographic_parity", {"max_volume_change": 0.01}),
    ],
)
def test_hard_limits_hold_where_the_target_gives_way(model, rows, constraints, hard):
    X, y, s = rows
    extra = {
        "demographic_parity": {"borderline": 0.25, "target_on": "new_rows"},
        "equalized_odds": {"direction": "gains_only"},
    }[constraints]
    best = {"demographic_parity": 1.0, "equalized_odds": 0.0}[constraints]
    with pytest.warns(TargetWarning, match="was not reached") as caught:
        update = fit(model, rows, constraints=constraints, target=best, **extra, **hard)
    assert not update.reached_
    assert str(caught[0].message) == update.status_
    ((name, cap),) = hard.items()
    lost = accuracy_score(y, model.predict(X)) - accuracy_score(y, update.predict(X))
    used = {
        "max_changes": update.changes(X).rate,
        "max_accuracy_loss": lost,
        "max_volume_change": abs(volume(update, X)),
    }[name]
    assert used <= cap + 1e-12
    assert update.change_rate_ > 0  # what the limit leaves is made use of
    sign = 1 if constraints == "demographic_parity" else -1
    assert sign * update.fairness_ > sign * update.base_fairness_ + 0.05
    worse, better = sorted([update.base_fairness_, update.fairness_])
    assert worse < better
    assert (update.fairness_ == better) == (constraints == "demographic_parity")
    limit = bounds.minimal_changes(
        model.predict(X),
        sensitive_features=s,
        target=best,
        constraints=constraints,
        y_true=y,
        direction=update.direction,
    )
    assert f"the target needs at least {limit.rate:.1%} changed decisions" in update.status_
    assert f"{name}={cap:.1%}" in update.status_


def test_no_budget_at_all_changes_nobody(model, rows):
    update = quiet_fit(model, rows, target=0.8, max_changes=0)
    assert update.change_rate_ == 0
    assert not update.reached_
    assert (update.ratio(rows[0]) == 1).all()


def test_columns_that_tell_nothing_are_an_answer(model, rows):
    X, y, s = rows
    scores = model.predict_proba(X)[:, 1]
    table = pd.DataFrame({"noise": np.arange(N) % 3, "score": scores}, index=X.index)
    with pytest.warns(TargetWarning, match="No update of these columns was found that reaches it"):
        update = fit(ScoreColumn("score"), (table, y, s), target=0.99, direction="losses_only")
    assert update.fairness_ >= update.base_fairness_


def test_a_target_no_update_can_reach(rows):
    X, y, s = rows
    # nobody of one group is positive or may become so, and nobody may be lowered to zero
    table = X.assign(score=np.where((X["x3"] > 0) & (s == "g0"), 0.8, 0.3))
    with pytest.warns(TargetWarning, match="no update with direction='losses_only' can reach it"):
        update = fit(ScoreColumn("score"), (table, y, s), direction="losses_only")
    assert update.change_rate_ == 0


def test_already_fair_means_untouched(model, rows, new_rows):
    X = rows[0]
    # a warning would be an error
    update = fit(model, rows, constraints="equalized_odds", target=0.9)
    assert update.reached_
    assert update.change_rate_ == update.n_gains_ == update.n_losses_ == 0
    for table in (X, new_rows):
        assert (update.ratio(table) == 1).all()
        assert np.array_equal(update.predict(table), model.predict(table))
        assert np.array_equal(update.predict_proba(table), model.predict_proba(table))
    assert update.scorecard_.rows() == []
    assert "no decision changes" in repr(update.scorecard_)
    assert update.concepts(X).shape == (N, 2)
    assert update.limit_ == 0


# -- every parameter matters ----------------------------------------------------------------------


def test_the_evidence_is_the_sum_of_its_concepts(fitted, rows):
    X = rows[0]
    np.testing.assert_allclose(
        fitted.raw_ratio(X), fitted.intercept_ + fitted.concepts(X) @ fitted.concept_contributions_
    )
    assert fitted.concept_weights_.shape == (2, len(fitted.term_names_))


def n_lines(update):
    """Count the lines with points: numbers, "missing", sets of categories, and runs of bins."""
    card, lines, start = update.scorecard_, set(), 0
    for column in card.encoding.columns:
        points = card.points[start : start + column.n_terms]
        start += column.n_terms
        if isinstance(column, CategoryTerms):
            part = np.zeros(len(points), dtype=int)
        elif isinstance(column, BinTerms):
            is_new = np.diff(points, prepend=np.nan) != 0
            is_new[len(column.edges) + 1 :] = True  # "missing" is no bin
            part = np.cumsum(is_new)
        else:
            part = np.arange(len(points))
        lines |= {(column.name, *line) for line in zip(part, points, strict=True) if line[1]}
    return len(lines)


def test_bins_make_steps(model, rows):
    update = fit(model, rows, points="per bin")
    assert any("≤ x2 <" in name for name in update.term_names_)
    assert update.fairness_ >= 0.8


@pytest.mark.parametrize(("points", "max_lines"), [("per unit", 3), ("per bin", 7)])
def test_a_card_has_at_most_the_stated_lines(model, rows, points, max_lines):
    X, y, s = rows
    table = mixed(X).assign(score=model.predict_proba(X)[:, 1]), y, s
    asked = {"points": points, "target_on": "new_rows", "target": 0.6}
    few = quiet_fit(ScoreColumn("score"), table, max_lines=max_lines, **asked)
    assert 1 <= n_lines(few) <= max_lines
    if max_lines == 7:  # and lines are used where they are allowed
        assert n_lines(few) > 3
        assert n_lines(quiet_fit(ScoreColumn("score"), table, **asked)) > 12


@pytest.mark.parametrize(
    ("points", "favorable", "sign"),
    [
        ("per unit", 0, 1),
        ("per bin", 1, -1),
    ],
)
def test_a_monotone_column_helps_or_must_not_help(model, rows, points, favorable, sign):
    """1: v rises with the column, whichever label is favourable. -1: it falls."""
    asked = {"favorable_label": favorable, "pos_label": 1, "points": points}
    free = fit(model, rows, **asked)
    update = quiet_fit(model, rows, monotone={"x2": sign, "category": sign}, **asked)
    lines = update.scorecard_.rows()
    assert all(sign * value >= 0 for name, value in lines if name.startswith("category"))
    towns = [value for name, value in free.scorecard_.rows() if name.startswith("category")]
    assert min(towns) < 0 < max(towns), "the sign would not matter"
    X = rows[0].head(40).assign(category="c0")
    higher = X.assign(x2=np.linspace(-3, 3, 40), x0=0.0, x1=0.0, x3=0.0)
    slope = np.diff(update.raw_ratio(higher))
    assert (sign * slope >= -1e-12).all()
    assert not np.allclose(update.raw_ratio(higher), free.raw_ratio(higher))


def test_locked_features_get_no_points_but_the_model_reads_them(model, rows):
    update = fit(model, rows, locked_features=["x2", "category"])
    assert update.scorecard_.columns_used == ["x0", "x1", "x3"]
    with pytest.raises(InputError, match="names columns that X does not have"):
        fit(model, rows, locked_features=["x9"])


def test_rare_categories_have_no_points(model, rows):
    X, y, s = rows
    table = X.assign(rare=np.where(np.arange(N) < 6, "seldom", np.where(X["x1"] > 0, "b", "c")))
    kept = fit(model, (table, y, s), min_category_size=6)
    dropped = fit(model, (table, y, s), min_category_size=7)
    assert "rare = seldom" in kept.term_names_
    assert "rare = seldom" not in dropped.term_names_


def test_small_groups_are_left_out_and_reported(model, rows):
    X, y, s = rows
    groups = np.where(np.arange(N) < 20, "few", np.asarray(s))
    with pytest.warns(DataWarning, match=r"fewer than min_group_size=30.*few \(20 rows\)"):
        left_out = fit(model, (X, y, groups))
    inside = groups != "few"
    value = p_rule(None, left_out.predict(X)[inside], sensitive_features=groups[inside])
    assert left_out.fairness_ == value >= 0.8
    counted = fit(model, (X, y, groups), min_group_size=10)
    assert p_rule(None, counted.predict(X), sensitive_features=groups) >= 0.8


# -- the decision rule and the scikit-learn contract ----------------------------------------------


def test_scores_at_the_threshold_never_change(rows):
    X, y, s = rows
    scores = np.where(np.arange(N) % 3 == 0, 0.5, np.where(s == "g0", 0.8, 0.2))
    update = quiet_fit(ScoreColumn("score"), (X.assign(score=scores), y, s))
    assert not update.changes(X.assign(score=scores)).changed[scores == 0.5].any()
    assert update.change_rate_ == update.changes(X.assign(score=scores)).rate


def test_clone_pickle_and_parameters(model, rows, fitted):
    X = rows[0]
    copied = clone(fitted)
    assert copied.get_params() == fitted.get_params()
    assert copied.estimator is model
    with pytest.raises(NotFittedError):
        copied.predict(X)
    back = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(back.predict_proba(X), fitted.predict_proba(X))
    assert back.status_ == fitted._status_without_names()
    assert not [name for name in vars(fitted) if name in ("_figures", "_more_rows")]


def test_groups_are_routed_through_a_grid_search(model, rows):
    X, y, s = rows
    with sklearn.config_context(enable_metadata_routing=True):
        update = quick_control(model).set_fit_request(sensitive_features=True)
        search = GridSearchCV(
            update, {"target": [0.5, 0.6]}, cv=2, scoring=make_scorer(accuracy_score)
        )
        search.fit(X, y, sensitive_features=s)
    assert search.best_estimator_.fairness_ >= search.best_params_["target"]


# -- promises -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many():
    """Enough rows of a mildly biased population that a promise can be given."""
    data = make_biased(3600, bias=1.0, group_shares=(0.5, 0.5), random_state=4)
    model = LogisticRegression().fit(data.data[:600], data.target[:600])
    return model, (data.data[600:], data.target[600:], data.sensitive_features[600:])


@pytest.fixture(scope="module")
def promised(many):
    model, rows = many
    return fit(model, rows, confidence=0.95, target=0.75)


def test_a_promise_is_given_with_its_condition(promised, many):
    assert promised.promised_ is True
    assert (
        "P-rule of label 1 ≥ 0.75 is promised for new people with confidence 0.95"
        in promised.status_
    )
    assert "You have to check that the rows are new to the base model" in promised.status_
    assert "held-out rows" in promised.status_
    assert "fit rows" not in promised.status_
    low, high = promised.fairness_interval_
    assert low < promised.fairness_ < high
    new = make_biased(50_000, bias=1.0, group_shares=(0.5, 0.5), random_state=9)
    after = promised.predict(new.data)
    assert p_rule(None, after, sensitive_features=new.sensitive_features) >= 0.75


def halves(model, X, y, s):
    """Return the halves of a promise as positions in X; a fit orders the rows by their hashes."""
    rows = quick_control(model)._prepare(X, y, s, None).rows
    position = {value: i for i, value in enumerate(X["x0"])}
    place = np.array([position[value] for value in rows.columns[0].values])
    return [place[half] for half in split_in_halves(rows)]


def test_figures_of_a_promise_are_those_of_the_held_out_half(promised, many):
    model, (X, y, s) = many
    _, held_out = halves(model, X, y, s)
    X, s = X.iloc[held_out], s.iloc[held_out]
    assert promised.fairness_ == p_rule(None, promised.predict(X), sensitive_features=s)
    assert promised.change_rate_ == promised.changes(X).rate > 0
    assert promised.n_rows_ == len(X)


def test_too_few_rows_are_insufficient_evidence_with_a_number(model, rows):
    with pytest.warns(TargetWarning, match="Nothing is promised for new people") as caught:
        update = fit(model, rows, confidence=0.999, target=0.7)
    assert update.promised_ is False
    assert str(caught[0].message) == update.status_
    number = re.search(r"About ([\d,]+) rows in all, both halves, would be needed", update.status_)
    assert int(number[1].replace(",", "")) > N


def test_promises_on_gaps(many):
    model, rows = many
    constraints = "false_positive_rate_parity"
    settings = {"constraints": constraints, "target": 0.3, "confidence": 0.9}
    update = quiet_fit(model, rows, **settings)
    assert update.promised_ is True
    assert "≤ 0.3 is promised for new people" in update.status_
    assert update.fairness_ <= 0.3
    assert update.fairness_interval_[0] <= update.fairness_ <= update.fairness_interval_[1]


def test_a_higher_confidence_is_harder_to_promise(many):
    model, rows = many
    costs = []
    for confidence in (0.6, 0.999):
        update = quiet_fit(model, rows, confidence=confidence, target=0.7)
        assert update.promised_
        costs.append(update.change_rate_)
    assert costs[0] < costs[1]


def test_the_halves_share_no_row_and_are_alike(model, rows):
    X, y, s = rows
    first, second = halves(model, X, y, s)
    assert sorted([*first, *second]) == list(range(N))
    for half in (first, second):
        for group in ("g0", "g1"):
            for label in (0, 1):
                cell = ((s == group) & (y == label)).to_numpy()
                assert abs(cell[half].sum() - cell.sum() / 2) <= 1


def test_a_group_too_small_to_be_halved_is_refused(model, rows):
    X, y, s = rows
    groups = np.where(np.arange(N) == 0, "alone", np.asarray(s))
    with pytest.raises(InputError, match=r"every group in both halves.*Raise min_group_size"):
        fit(model, (X, y, groups), confidence=0.9, min_group_size=1)


# -- what cannot be asked for ---------------------------------------------------------------------


REFUSED = [
    ({"target": 1.2}, r"target=1.2 must be a finite number >= 0 and <= 1"),
    ({"target": -0.1}, r"target=-0.1 must be a finite number >= 0"),
    ({"target": math.nan}, r"target=nan must be a finite number"),
    ({"target": 2.5, "constraints": "equalized_odds"}, r"target=2.5 must .* <= 2"),
    ({"target": 1.5, "constraints": "true_positive_rate_parity"}, r"target=1.5 must .* <= 1"),
    ({"target": 80}, r"If you mean 80%, pass 0.8\."),
    ({"target": 20, "constraints": "equalized_odds"}, r"If you mean 20%, pass 0.2\."),
    ({"confidence": 95}, r"If you mean 95%, pass 0.95\."),
    ({"max_changes": 1.5}, r"max_changes=1.5 must be a finite number >= 0 and <= 1"),
    ({"max_accuracy_loss": -1}, r"max_accuracy_loss=-1 must be"),
    ({"max_volume_change": 7}, r"max_volume_change=7 must be"),
    ({"direction": "up"}, r"direction='up' is not known; choose one of any, gains_only"),
    (
        {"constraints": "fair"},
        r"constraints='fair' is not known; choose one of demographic_parity",
    ),
    ({"points": "cubes"}, r"points='cubes' is not known; choose one of auto, per unit, per"),
    ({"points": "free"}, r"points='free' is not known since version 0.3. Pass 'auto'"),
    ({"monotone": {"x9": 1}}, r"monotone names 'x9', but X has no such column \(columns: x0"),
    (
        {"monotone": {"x0": 2}},
        r"monotone=\{'x0': 2\}: pass 1 where a larger value may only help",
    ),
    ({"monotone": "x0"}, r"monotone='x0' must map columns to 1 or -1"),
    ({"max_lines": 0}, r"max_lines=0 must be a finite number >= 1"),
    ({"borderline": -0.1}, r"borderline=-0.1 must be"),
    ({"confidence": 0.5}, r"confidence=0.5 must be a finite number > 0.5"),
    ({"confidence": 1.0}, r"confidence=1.0 must be .* <= 0.9999"),
    ({"min_category_size": 0}, r"min_category_size=0 must be"),
    ({"locked_features": "x0"}, r"locked_features='x0' is text; pass a list"),
    ({"pos_label": 7}, r"pos_label=7 is not a label of the base model"),
    ({"favorable_label": "yes"}, r"favorable_label='yes' is not a label of the base model"),
]


def test_parameters_that_make_no_sense(model, rows):
    for params, message in REFUSED:
        with pytest.raises(InputError, match=message):
            fit(model, rows, **params)


def test_what_needs_labels_or_no_weights_says_so(model, rows):
    X, _, s = rows
    with pytest.raises(InputError, match=r"compares decisions with labels, but y is None. Pass y"):
        fit(model, (X, None, s), max_accuracy_loss=0.1)
    with pytest.raises(InputError, match="can do without"):
        fit(model, (X, None, s), constraints="equalized_odds")
    with pytest.raises(InputError, match=r"cannot be used together: the promise counts"):
        fit(model, rows, sample_weight=np.ones(N), confidence=0.9)


@pytest.mark.parametrize(
    ("constraints", "missing", "word"),
    [("equalized_odds", 0, "negative"), ("true_positive_rate_parity", 1, "positive")],
)
def test_a_group_without_a_label_it_is_measured_on(model, rows, constraints, missing, word):
    X, y, s = rows
    labels = np.where((s == "g1") & (y == missing), 1 - missing, y)
    message = rf"Group 'g1' has no row whose true label is {word}.*Merge groups, add rows"
    with pytest.raises(InputError, match=message):
        fit(model, (X, labels, s), constraints=constraints)


def test_missing_groups_are_refused(model, rows):
    X, y, s = rows
    with pytest.raises(InputError, match="1 missing value"):
        fit(model, (X, y, s.where(np.arange(N) > 0)))
    with pytest.raises((InputError, TypeError), match="sensitive_features"):
        quick_control(model).fit(X, y)


def test_labels_among_the_features_are_refused_by_their_name(model, rows):
    X, y, s = rows
    values = pd.Series(np.asarray(y), index=X.index)
    for named in (pl.Series("bought", values), values.rename("bought")):
        with pytest.raises(InputError, match="'bought', which holds the true labels y"):
            quick_control(model).fit(X.assign(bought=values), named, sensitive_features=s)
    other = X.assign(bought=np.arange(len(X)) % 2)
    scored = other.assign(score=model.predict_proba(X)[:, 1])
    quick_control(ScoreColumn("score")).fit(scored, named, sensitive_features=s)


# -- hostile tables -------------------------------------------------------------------------------

hostile = settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
SCORES = {
    "spread": lambda rng, n: rng.random(n),
    "all yes": lambda rng, n: np.full(n, 0.7),
    "all no": lambda rng, n: np.full(n, 0.1),
    "at the threshold": lambda rng, n: np.full(n, 0.5),
    "tied": lambda rng, n: rng.choice([0.2, 0.5, 0.8], n),
    "extreme": lambda rng, n: rng.choice([0.0, 1.0, 0.3], n),
}


def hostile_table(seed, n, scores, n_groups):
    """Rows with constant, tied, huge, tiny and half-missing columns and unequal groups."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n_groups, rng.choice([0.3, 3.0])))
    group = rng.choice(n_groups, n, p=shares)
    X = pd.DataFrame(
        {
            "score": SCORES[scores](rng, n),
            "proxy": group + rng.normal(size=n),
            "tied": rng.integers(0, 3, n) * 10.0 ** rng.integers(-8, 12),
            "far": 1e9 + rng.normal(size=n),
            "constant": 1.0,
            "text": rng.choice(["a", "b", None], n, p=[0.9, 0.05, 0.05]),
            "one": "same",
            "gaps": np.where(rng.random(n) < 0.5, np.nan, group),
        }
    )
    y = (rng.random(n) < 0.5).astype(int)
    return X, y, group


@hostile
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(30, 120),
    scores=st.sampled_from([*SCORES]),
    n_groups=st.integers(2, 4),
    constraints=st.sampled_from(CONSTRAINTS),
    direction=st.sampled_from(["any", "gains_only", "losses_only"]),
    favorable=st.integers(0, 1),
    pos=st.integers(0, 1),
    extra=st.sampled_from([(None, 0), (3, 0), (12, 0.25)]),
    points=st.sampled_from(["per unit", "per bin"]),
    caps=st.fixed_dictionaries(
        {},
        optional={
            "max_changes": st.sampled_from([0.0, 0.1]),
            "max_accuracy_loss": st.sampled_from([0.0, 0.05]),
            "max_volume_change": st.sampled_from([0.0, 0.05]),
        },
    ),
)
@example(  # it changes more than half of all decisions
    seed=0,
    n=30,
    scores="spread",
    n_groups=3,
    constraints="equalized_odds",
    direction="gains_only",
    favorable=1,
    pos=0,
    extra=(None, 0),
    points="per unit",
    caps={},
)
def test_whatever_comes_in_what_is_promised_holds(
    seed, n, scores, n_groups, constraints, direction, favorable, pos, extra, points, caps
):
    X, y, group = hostile_table(seed, n, scores, n_groups)
    target = 0.8 if constraints == "demographic_parity" else 0.1
    max_lines, borderline = extra
    update = quick_control(
        ScoreColumn("score"),
        constraints=constraints,
        target=target,
        direction=direction,
        favorable_label=favorable,
        pos_label=pos,
        max_lines=max_lines,
        borderline=borderline,
        points=points,
        min_group_size=2,
        **caps,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            update.fit(X, y, sensitive_features=group)
        except InputError as error:
            known = (
                r"groups? of at least|has no row whose true label|base decisions|"
                r"no column that could have points|the same score|determines the sensitive group"
            )
            assert re.search(known, str(error))
            return
    sizes = np.bincount(group, minlength=n_groups)
    kept = sizes[group] >= 2
    after = update.predict(X)
    changes = update.changes(X)
    value = fairness_value(
        constraints, y[kept], after[kept], sensitive_features=group[kept], pos_label=pos
    )
    assert value == pytest.approx(update.fairness_, nan_ok=True)
    before = X["score"] > 0.5
    assert not is_degenerate(changes.rate, before.mean(), np.mean(after))
    assert update.reached_ == bool(is_met(constraints, value, target))
    assert update.reached_ != any(issubclass(w.category, TargetWarning) for w in caught)
    if is_met(constraints, update.base_fairness_, target):
        assert changes.n_changes == 0
    assert not update.change_rate_ < update.limit_
    assert changes.rate <= caps.get("max_changes", 1)
    lost = update.base_accuracy_ - update.accuracy_
    assert lost <= caps.get("max_accuracy_loss", 1) + 1e-12
    assert abs(volume(update, X)) <= caps.get("max_volume_change", 1) + 1e-12
    assert direction != "gains_only" or changes.n_losses == 0
    assert direction != "losses_only" or changes.n_gains == 0
    other = hostile_table(seed + 1, 200, "spread", n_groups)[0]
    changes = update.changes(other)
    assert direction != "gains_only" or changes.n_losses == 0
    assert direction != "losses_only" or changes.n_gains == 0


def test_one_of_three_groups_that_must_change_most_is_looked_for_alone():
    """Beginning with all groups that must change ended, in this table, at three times as many."""
    data = make_biased(
        20_000, bias=1.5, n_categories=6, group_shares=(0.5, 0.3, 0.2), random_state=0
    )
    numbers = data.data.select_dtypes("number")
    model = LogisticRegression().fit(numbers, data.target)
    X = data.data.assign(score=model.predict_proba(numbers)[:, 1])
    update = quick_control(ScoreColumn("score"), target=0.85, direction="gains_only")
    update.fit(X, data.target, sensitive_features=data.sensitive_features)
    assert update.reached_
    assert update.change_rate_ <= 1.5 * update.limit_


def test_a_refused_promise_says_which_check_failed():
    def text(failure, n_rows):
        promise = PromiseOutcome(0.95, failure, 0.6, 0.75, 0.7, n_rows)
        goal = Goal("P-rule", "≥", 0.5, 0.75, 0.8)
        facts = UpdateFacts((goal,), "held-out rows", 900, 0.6, 540, 0, (0.8, 0.8))
        facts = replace(facts, covered=(("a", 600), ("b", 300)), target=AskedTarget())
        return status_text(replace(facts, change_rate=0.1, promise=promise))

    unfair = text("unfair", np.inf)
    assert "no update" not in unfair  # the first failure ended the tests
    assert "not fairer than the target on the held-out rows (0.750)." in unfair
    rows = text("too few rows", 1234.0)
    assert "too few. On them, the P-rule of the tested update is 0.750." in rows
    assert "With confidence 0.95, they support only 0.700." in rows
    assert "About 1,300 rows in all, both halves, would be needed." in rows
    degenerate = text("degenerate", 1234.0)
    assert "changes more than half of the held-out decisions (60.0%)" in degenerate
    assert "would be needed" not in degenerate


@pytest.mark.parametrize(
    ("old", "now"),
    [("expected_fairness_", "expected_.fairness"), ("nearness_", "search_.nearness")],
)
def test_an_attribute_of_an_earlier_version_names_its_successor(old, now):
    update = ControlledDebiaser(ScoreColumn("score"))
    with pytest.raises(AttributeError, match=f"{old} is {now} since version 0.3"):
        getattr(update, old)


def test_the_status_has_the_weighted_rate_of_all_people_and_of_each_group():
    data = make_biased(600, random_state=3)
    third = np.random.default_rng(1).random(600) < 0.3
    group = np.where(third, "g2", data.sensitive_features)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 3.0], 600)
    model = LogisticRegression().fit(data.data, data.target)
    update = quick_control(model, target=0.9, target_on="fit_rows")
    update.fit(data.data, data.target, sensitive_features=group, sample_weight=weight)
    both = [model.predict(data.data), update.predict(data.data)]
    rates = [f"{np.average(one, weights=weight):.1%}" for one in both]
    assert f"The rate of label 1 goes from {rates[0]} to {rates[1]} (" in update.status_
    for name in np.unique(group):
        own = group == name
        ends = [f"{np.average(one[own], weights=weight[own]):.1%}" for one in both]
        assert f"{name} {ends[0]} → {ends[1]}" in update.status_
