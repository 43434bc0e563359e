"""LPP and its group model through their contract: neutral, lawful, blind or aware, hostile data."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from commod import ScoreColumn
from commod.datasets import make_biased
from commod.exceptions import DataWarning, InputError
from commod.metrics import p_rule
from commod.rivals import LPP, fit_strengths
from commod.rivals.plug_in import curved_gain

NUMBERS = ["x0", "x1", "x2", "x3"]
# Without the group each constraint has programmes of its own; with it, the two ends suffice.
some_constraints_of_either_kind = pytest.mark.parametrize(
    ("constraints", "aware"),
    [
        ("demographic_parity", True),
        ("equalized_odds", False),
        ("false_positive_rate_parity", False),
    ],
)
N = 600


@pytest.fixture(scope="module")
def biased():
    return make_biased(2 * N, bias=1.5, n_categories=4, random_state=0)


@pytest.fixture(scope="module")
def rows(biased):
    return biased.data.iloc[N:], biased.target[N:], np.asarray(biased.sensitive_features[N:])


@pytest.fixture(scope="module")
def model(biased):
    numbers = make_column_transformer(("passthrough", NUMBERS))
    model = make_pipeline(numbers, LogisticRegression())
    return model.fit(biased.data.iloc[:N], biased.target[:N])


def predicted_gap(update, X, groups):
    """Return the largest gap between predicted rates, from what the fitted update stores."""
    read = update._read_rows(X, groups if update.aware else None)
    cells = update._cell_probabilities(read, update.shares_.shape[1], update.group_model_)
    positive = update._decide(read)
    rates = (cells / update.shares_[:, :, None]) @ positive / len(positive)
    return np.ptp(rates, axis=1).max()


def by_group(update, groups):
    return {"sensitive_features": groups} if update.aware else {}


# ---------------------------------------------------------------------------------------------
# What it decides


def test_the_hand_example_of_the_method():
    X = pd.DataFrame({"score": [0.9, 0.8, 0.4, 0.3, 0.6, 0.35, 0.2, 0.1]})
    groups = ["a"] * 4 + ["b"] * 4
    update = LPP(ScoreColumn("score"), aware=True, min_group_size=1)
    update.fit(X, sensitive_features=groups)
    assert update.predict(X, sensitive_features=groups).tolist() == [1, 1, 0, 0] * 2
    # half of the paper's: the gain is f - 0.5, not 2f - 1
    assert 0.15 < 2 * update.multipliers_[0, 0] < 0.3
    assert (update.n_gains_, update.n_losses_, update.fairness_) == (1, 0, 1.0)
    assert update.tolerance_ == 0
    np.testing.assert_allclose(update.shares_, [[0.5, 0.5]])


@some_constraints_of_either_kind
def test_more_strength_leaves_a_smaller_predicted_gap(rows, model, constraints, aware):
    X, y, groups = rows
    update = LPP(model, aware=aware, constraints=constraints)
    several = fit_strengths(update, [0, 0.25, 0.5, 0.75, 1], X, y, sensitive_features=groups)
    gaps = np.array([predicted_gap(one, X, groups) for one in several])
    assert (np.diff(gaps) < 0).all()
    allowed = np.array([one.tolerance_ for one in several])
    np.testing.assert_allclose(allowed, gaps[0] * np.array([1, 0.75, 0.5, 0.25, 0]), atol=1e-12)
    assert (gaps <= allowed + 0.02).all()  # a row or two of 600 on the wrong side
    rates = [one.change_rate_ for one in several]
    assert (np.diff(rates) > 0).all()
    assert several[-1].fairness_ != several[0].fairness_


def test_the_predicted_gap_is_measured_at_the_threshold_in_use(rows, model):
    X, y, groups = rows
    update = LPP(model, threshold=0.7)
    with pytest.warns(Warning, match="differs from score > 0.7"):
        update.fit(X, y, sensitive_features=groups)
    assert predicted_gap(update, X, groups) < 0.005
    assert (update.decision_function(X) > 0).tolist() == (update.predict(X) == 1).tolist()


def test_known_groups_reach_parity_on_the_fit_rows(rows, model):
    X, y, groups = rows
    update = LPP(model, aware=True).fit(X, y, sensitive_features=groups)
    decided = update.predict(X, sensitive_features=groups)
    assert p_rule(None, decided, sensitive_features=groups) > 0.98
    assert update.group_model_ is None
    assert update.__sklearn_tags__().needs_sensitive_features


def test_known_groups_have_the_base_score_for_the_chance_of_each_label(rows, model):
    X, y, groups = rows
    update = LPP(model, aware=True, constraints="equalized_odds", strength=0.5)
    update.fit(X, y, sensitive_features=groups)
    score = model.predict_proba(X)[:, 1]
    known = np.stack([groups == "g0", groups == "g1"]) / N
    np.testing.assert_allclose(update.shares_, [known @ score, known @ (1 - score)])


def test_the_update_generalises(biased, model, rows):
    X, y, groups = rows
    update = LPP(model).fit(X, y, sensitive_features=groups)
    new = make_biased(4000, bias=1.5, n_categories=4, random_state=7)
    before = p_rule(None, model.predict(new.data), sensitive_features=new.sensitive_features)
    after = p_rule(None, update.predict(new.data), sensitive_features=new.sensitive_features)
    assert before < 0.4
    assert after > 0.75


# ---------------------------------------------------------------------------------------------
# A function of the row


@pytest.mark.parametrize(
    ("constraints", "aware"), [("demographic_parity", True), ("equalized_odds", False)]
)
def test_a_row_is_decided_alike_in_any_company(rows, biased, model, constraints, aware):
    X, y, groups = rows
    # a column of scores: the model's own may round a row differently in another batch
    X = X.assign(score=model.predict_proba(X)[:, 1])
    update = LPP(ScoreColumn("score"), aware=aware, constraints=constraints, strength=0.7)
    update.fit(X, y, sensitive_features=groups)
    new = biased.data.iloc[:N]
    new = new.assign(score=model.predict_proba(new)[:, 1])
    new_groups = np.asarray(biased.sensitive_features[:N])

    def margins(rows):
        read = update._read_rows(new.iloc[rows], new_groups[rows] if aware else None)
        cells = update._cell_probabilities(read, 2, update.group_model_)
        return cells, update.decision_function(new.iloc[rows], **by_group(update, new_groups[rows]))

    cells, once = margins(np.arange(N))
    assert (margins(np.arange(N))[1] == once).all()
    order = np.random.default_rng(0).permutation(N)
    assert (margins(order)[1] == once[order]).all()
    for i in range(0, N, 41):
        alone = margins(np.array([i]))
        assert alone[1][0] == once[i]
        assert (alone[0][:, :, 0] == cells[:, :, i]).all()


def test_the_order_of_the_fit_rows_does_not_matter(rows, model):
    X, y, groups = rows
    update = LPP(model, constraints="equalized_odds").fit(X, y, sensitive_features=groups)
    order = np.random.default_rng(1).permutation(N)
    other = LPP(model, constraints="equalized_odds")
    other.fit(X.iloc[order], y.iloc[order], sensitive_features=groups[order])
    np.testing.assert_allclose(other.multipliers_, update.multipliers_, atol=1e-4)
    assert (other.predict(X) == update.predict(X)).mean() > 0.995


@pytest.mark.parametrize(
    ("constraints", "aware"),
    [("equalized_odds", False), ("demographic_parity", True)],
)
def test_whole_weights_mean_repetition(rows, model, constraints, aware):
    X, y, groups = rows
    weight = np.random.default_rng(2).integers(0, 4, N)
    times = np.repeat(np.arange(N), weight)
    update = LPP(model, aware=aware, constraints=constraints, strength=0.8)
    weighed = clone(update).fit(X, y, sensitive_features=groups, sample_weight=weight)
    repeated = clone(update).fit(X.iloc[times], y.iloc[times], sensitive_features=groups[times])
    np.testing.assert_allclose(weighed.shares_, repeated.shares_, atol=1e-5)
    np.testing.assert_allclose(weighed.multipliers_, repeated.multipliers_, atol=2e-3)
    agree = weighed.predict(X, **by_group(update, groups)) == repeated.predict(
        X, **by_group(update, groups)
    )
    assert agree.mean() > 0.99


def test_weights_scaled_down_leave_the_group_model_its_rows(rows, model):
    X, y, groups = rows
    update = LPP(model).fit(X, y, sensitive_features=groups)
    light = LPP(model).fit(X, y, sensitive_features=groups, sample_weight=np.full(N, 1e-6))
    np.testing.assert_allclose(light.group_model_.points, update.group_model_.points, atol=1e-6)


# ---------------------------------------------------------------------------------------------
# Groups, labels, columns


@pytest.mark.parametrize(
    ("constraints", "aware"),
    [("equalized_odds", False), ("true_positive_rate_parity", False), ("demographic_parity", True)],
)
def test_several_groups(constraints, aware):
    data = make_biased(800, group_shares=(0.4, 0.3, 0.2, 0.1), bias=2.0, random_state=3)
    model = LogisticRegression().fit(data.data, data.target)
    groups = np.asarray(data.sensitive_features)
    update = LPP(model, aware=aware, constraints=constraints)
    update.fit(data.data, data.target, sensitive_features=groups)
    n_lines = 2 if constraints == "equalized_odds" else 1
    assert update.multipliers_.shape == update.shares_.shape == (n_lines, 4)
    np.testing.assert_allclose(update.multipliers_.sum(axis=1), 0, atol=1e-9)
    assert predicted_gap(update, data.data, groups) < 0.03
    if constraints == "demographic_parity":
        assert update.fairness_ > update.base_fairness_
    else:
        assert update.fairness_ < update.base_fairness_


def test_a_small_group_is_left_out_and_kept_as_it_is(rows, model):
    X, y, groups = rows
    groups = groups.astype(object).copy()
    groups[:12] = "few"
    blind, aware = LPP(model), LPP(model, aware=True)
    for update in (blind, aware):
        with pytest.warns(DataWarning, match="left out of the constraint"):
            update.fit(X, y, sensitive_features=groups)
        assert update.multipliers_.shape == (1, 2)
    with pytest.warns(DataWarning, match="learned nothing about"):
        decided = aware.predict(X, sensitive_features=groups)
    assert (decided[:12] == model.predict(X)[:12]).all()
    # without these rows the group model is the same: they were not learned from
    without = LPP(model).fit(X.iloc[12:], y.iloc[12:], sensitive_features=groups[12:])
    np.testing.assert_allclose(without.shares_, blind.shares_, atol=1e-6)


def test_demographic_parity_needs_no_labels(rows, model):
    X, y, groups = rows
    without = LPP(model).fit(X, sensitive_features=groups)
    assert (
        without.multipliers_ == LPP(model).fit(X, y, sensitive_features=groups).multipliers_
    ).all()
    with pytest.raises(InputError, match="compares errors, and errors need labels"):
        LPP(model, constraints="equalized_odds").fit(X, sensitive_features=groups)


def test_aware_asks_for_the_groups(rows, model):
    X, y, groups = rows
    update = LPP(model, aware=True).fit(X, y, sensitive_features=groups)
    with pytest.raises(InputError, match="decides by group: pass predict"):
        update.predict(X)
    assert LPP(model).fit(X, y, sensitive_features=groups).predict(X).shape == (N,)


def mixed_table(seed=0, n=N):
    """Return text, booleans, numbers and missing values that determine the group."""
    data = make_biased(n, bias=2.0, random_state=seed)
    rng = np.random.default_rng(seed)
    group = np.asarray(data.sensitive_features) == "g1"
    X = data.data.copy()
    X["town"] = np.where(rng.random(n) < 0.2 + 0.5 * group, "Oslo", "Rome")
    X["flag"] = rng.random(n) < 0.5
    X.loc[rng.random(n) < 0.2, "x2"] = np.nan
    X.loc[rng.random(n) < 0.1, "town"] = None
    return X, data.target, group


@pytest.mark.filterwarnings("ignore:Column 'x0' of X nearly determines")
def test_mixed_columns_missing_values_and_unseen_categories():
    X, y, groups = mixed_table()
    encode = make_column_transformer(
        (SimpleImputer(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), ["town", "flag"]),
    )
    model = make_pipeline(encode, LogisticRegression()).fit(X, y)
    update = LPP(model, constraints="equalized_odds").fit(X, y, sensitive_features=groups)
    assert update.change_rate_ > 0.02
    new, _, _ = mixed_table(1, 200)
    new.loc[::3, "town"] = "Lima"
    new.loc[::2, "x0"] = np.nan
    assert set(update.predict(new)) == {0, 1}


def test_a_locked_feature_is_not_read(rows, model):
    X, y, groups = rows
    X = X.assign(group=groups)  # a proxy nobody may use
    update = LPP(model, locked_features=["group"]).fit(X, y, sensitive_features=groups)
    assert "group" not in update.group_model_.encoding.term_columns
    with pytest.raises(InputError, match="'group' of X determines the sensitive group"):
        LPP(model).fit(X, y, sensitive_features=groups)
    # whatever it holds: nobody reads it
    odd = X.assign(group=[["a", "list"]] * N)
    assert (update.predict(odd) == update.predict(X)).all()


def test_a_locked_column_of_an_array_is_not_read(rows):
    X, y, groups = rows
    X = np.column_stack([X[NUMBERS], groups == "g1"])
    model = LogisticRegression().fit(X, y)
    update = LPP(model, locked_features=["x4"]).fit(X, y, sensitive_features=groups)
    assert set(update.group_model_.encoding.term_columns) == set(NUMBERS)


def test_a_fitted_update_is_small_and_survives_pickling(rows, model):
    X, y, groups = rows
    update = LPP(model, constraints="equalized_odds").fit(X, y, sensitive_features=groups)
    stored = pickle.dumps(update)
    assert len(stored) - len(pickle.dumps(model)) < 12_000
    assert (pickle.loads(stored).predict(X) == update.predict(X)).all()


@pytest.mark.parametrize("aware", [False, True])
def test_a_group_without_rows_of_a_line_leaves_everything_as_it_is(rows, model, aware):
    X, y, groups = rows
    one = sorted(set(groups))[0]
    y = np.where(groups == one, 1, y)
    update = LPP(model, aware=aware, constraints="equalized_odds")
    update.fit(X, y, sensitive_features=groups)
    assert update.change_rate_ == 0
    assert np.isnan(update.tolerance_)
    assert "undefined" in update.status_
    other = LPP(model, aware=aware, constraints="true_positive_rate_parity")
    assert other.fit(X, y, sensitive_features=groups).change_rate_ > 0


# ---------------------------------------------------------------------------------------------
# A group model of the user's


class Seen(ClassifierMixin, BaseEstimator):
    """Remembers what it was fitted with and knows the shares of the classes only."""

    def __init__(self, leave_out=None):
        self.leave_out = leave_out

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weight_ = X, y, sample_weight
        kept = np.asarray(y) if self.leave_out is None else y[y != self.leave_out]
        self.classes_, counts = np.unique(kept, return_counts=True)
        self.shares_ = counts / counts.sum()
        return self

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))


def test_a_users_group_model_is_cloned_and_gets_x_untouched(rows, model):
    X, y, groups = rows
    given = Seen()
    update = LPP(model, group_model=given, constraints="equalized_odds")
    update.fit(X, y, sensitive_features=groups, sample_weight=np.arange(1, N + 1))
    fitted = update.group_model_.model
    assert not hasattr(given, "X_")
    assert fitted.X_ is X
    assert set(fitted.y_) == {0, 1, 2, 3}
    assert (fitted.weight_ == np.arange(1, N + 1)).all()
    assert update.change_rate_ == 0  # it cannot tell anyone apart
    unweighted = LPP(model, group_model=Seen()).fit(X, y, sensitive_features=groups)
    assert unweighted.group_model_.model.weight_ is None


def test_a_users_group_model_sees_only_rows_that_count(rows, model):
    X, y, groups = rows
    weight = np.ones(N)
    weight[:10] = 0
    update = LPP(model, group_model=Seen())
    update.fit(X, y, sensitive_features=groups, sample_weight=weight)
    assert len(update.group_model_.model.X_) == N - 10


def test_a_class_that_the_users_model_does_not_know_has_no_probability(rows, model):
    X, y, groups = rows
    update = LPP(model, group_model=Seen(leave_out=3), constraints="equalized_odds")
    update.fit(X, y, sensitive_features=groups)
    assert update.shares_[0, 1] == 0  # label 1, second group
    assert update.change_rate_ == 0
    assert "for one of the groups, every row has probability 0" in update.status_


def test_a_forest_as_group_model(rows, model):
    X, y, groups = rows
    forest = RandomForestClassifier(20, min_samples_leaf=20, random_state=0)
    update = LPP(
        model, group_model=make_pipeline(make_column_transformer(("passthrough", NUMBERS)), forest)
    )
    update.fit(X, y, sensitive_features=groups)
    assert update.fairness_ > update.base_fairness_ + 0.1


# ---------------------------------------------------------------------------------------------
# Mistakes


def test_mistakes_are_explained(rows, model):
    for wrong, message in [
        ({"strength": 1.5}, r"strength=1.5 must be a finite number >= 0 and <= 1"),
        ({"strength": -0.1}, r"strength=-0.1 must be"),
        ({"constraints": "fairness"}, r"constraints='fairness' is not known"),
        ({"min_category_size": 0}, r"min_category_size=0 must be"),
        ({"group_model": LogisticRegression}, r"Pass one that is not fitted"),
        ({"group_model": "forest"}, r"group_model='forest' is no classifier"),
        ({"locked_features": "x0"}, r"locked_features='x0' is text; pass a list"),
        ({"locked_features": ["y0"]}, r"names columns that X does not have"),
    ]:
        X, y, groups = rows
        with pytest.raises(InputError, match=message):
            LPP(model, **wrong).fit(X, y, sensitive_features=groups)


def test_a_group_model_that_knows_something_else_is_refused(rows, model):
    X, y, groups = rows

    class Fixed(Seen):
        def fit(self, X, y, sample_weight=None):
            self.classes_ = np.array(["a", "b"])
            return self

    with pytest.raises(InputError, match="Pass a classifier that is not fitted"):
        LPP(model, group_model=Fixed()).fit(X, y, sensitive_features=groups)


def test_a_group_model_without_probabilities_is_refused(rows, model):
    X, y, groups = rows

    class Wild(Seen):
        def predict_proba(self, X):
            return np.full((len(X), 2), 3.0)

    with pytest.raises(InputError, match="expected probabilities of shape"):
        LPP(model, group_model=Wild()).fit(X, y, sensitive_features=groups)


# ---------------------------------------------------------------------------------------------
# The built-in group model


@given(st.integers(0, 1000), st.integers(2, 4))
@settings(max_examples=4, deadline=None)
def test_the_group_model_predicts_each_groups_share(seed, n_groups):
    shares = np.arange(2, n_groups + 2) / np.arange(2, n_groups + 2).sum()
    data = make_biased(500, group_shares=shares, n_categories=3, random_state=seed)
    model = LogisticRegression().fit(data.data[NUMBERS], data.target)
    X = data.data.assign(score=model.predict_proba(data.data[NUMBERS])[:, 1])
    groups = np.asarray(data.sensitive_features)
    update = LPP(ScoreColumn("score"), strength=0.1).fit(X, sensitive_features=groups)
    # intercepts are free: predicted shares are the true ones
    true = np.bincount(np.unique(groups, return_inverse=True)[1]) / 500
    np.testing.assert_allclose(update.shares_[0], true, atol=1e-5)


def test_the_group_model_comes_close_to_the_true_probabilities():
    data = make_biased(6000, n_categories=4, random_state=0)
    X = data.data.assign(score=data.proba_target)
    update = LPP(ScoreColumn("score"), strength=0.1)
    update.fit(X, sensitive_features=data.sensitive_features)
    new = make_biased(2000, n_categories=4, random_state=1)
    read = update._read_rows(new.data.assign(score=new.proba_target))
    proba = update.group_model_.probabilities(read)
    np.testing.assert_allclose(proba.sum(axis=0), 1)
    assert np.abs(proba.T - np.asarray(new.proba_sensitive)).mean() < 0.03


@pytest.mark.filterwarnings("ignore:Column 'x' of X nearly determines")
def test_a_relation_that_is_not_straight_is_learned():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    groups = (np.abs(x) + 0.3 * rng.normal(size=2000) > 0.8).astype(int)
    X = pd.DataFrame({"x": x, "score": 1 / (1 + np.exp(-x))})
    update = LPP(ScoreColumn("score"), strength=0.1).fit(X, sensitive_features=groups)
    proba = update.group_model_.probabilities(update._read_rows(X))[1]
    assert np.corrcoef(proba, groups)[0, 1] > 0.6


def test_many_terms_take_the_diagonal_and_find_the_same(rows, model, monkeypatch):
    X, y, groups = rows
    update = LPP(model).fit(X, y, sensitive_features=groups)
    monkeypatch.setattr("commod.rivals._group_model.MANY_COLUMNS", 5)
    other = LPP(model).fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(other.group_model_.points, update.group_model_.points, atol=1e-3)


@pytest.mark.parametrize(
    ("constraints", "aware"),
    [("equalized_odds", False), ("equalized_odds", True), ("demographic_parity", True)],
)
def test_gains_are_curved_only_where_a_known_group_may_lose_on_both_rates(
    constraints, aware, rows, model
):
    X, y, groups = (part[:200] for part in rows)
    update = LPP(model, constraints=constraints, aware=aware).fit(X, y, sensitive_features=groups)
    read = update._read_rows(X, groups if aware else None)
    plain = model.predict_proba(X)[:, 1] - 0.5
    is_curved = aware and constraints == "equalized_odds"
    expected = curved_gain(plain) if is_curved else plain
    np.testing.assert_allclose(update._gain(read), expected, atol=1e-12)
    assert np.abs(curved_gain(plain) - plain).max() > 1e-4
