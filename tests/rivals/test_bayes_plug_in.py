"""BayesPlugIn: optimal where probabilities are known, fair enough where the target says so."""

import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from experiments.bayes import bayes_optimal_scores, p_rule_margin
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from commod import ScoreColumn
from commod.datasets import make_biased
from commod.exceptions import BaseModelWarning, InputError, ScoreOrderWarning
from commod.metrics import fairness_value
from commod.rivals import LPP, BayesPlugIn, fit_strengths

ERRORS = ("true_positive_rate_parity", "false_positive_rate_parity", "equalized_odds")
CONSTRAINTS = ("demographic_parity", *ERRORS)
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


def by_group(update, groups):
    return {"sensitive_features": groups} if update.aware else {}


def is_met(update, slack=1e-9):
    missing = update.target_ - update.fairness_
    return (missing if update.constraints == "demographic_parity" else -missing) <= slack


# ---------------------------------------------------------------------------------------------
# Optimal where the probabilities are known


class Known(ClassifierMixin, BaseEstimator):
    """Reads the probability of class k from column "p{k}" of X."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return X[[f"p{k}" for k in self.classes_]].to_numpy()


def finite_population(seed, n_points, n_classes):
    """Return points with their numbers of rows, scores and probabilities of group and label."""
    rng = np.random.default_rng(seed)
    size = rng.integers(8, 30, n_points)
    score = rng.uniform(0.1, 0.9, n_points)
    proba = rng.dirichlet(np.ones(n_classes), n_points)
    points = pd.DataFrame(proba, columns=[f"p{k}" for k in range(n_classes)]).assign(score=score)
    X = points.iloc[np.repeat(np.arange(n_points), size)].reset_index(drop=True)
    classes = [rng.choice(n_classes, n, p=p) for n, p in zip(size, proba, strict=True)]
    return points, size / size.sum(), X, np.concatenate(classes)


def lagrangian(update, points, mass, decisions):
    """Return risk/2 + Σ ψ·rate + lambda_ratio·share of changes of each classifier."""
    score = points["score"].to_numpy()
    risk = 0.5 * ((1 - decisions) * score) @ mass + 0.5 * (decisions * (1 - score)) @ mass
    changes = (decisions != (score > 0.5)) @ mass
    proba = points.drop(columns="score").to_numpy().T
    if update.constraints == "demographic_parity":
        cells = proba[None]
    else:
        labels = {"true_positive_rate_parity": [1], "false_positive_rate_parity": [0]}
        cells = proba.reshape(2, 2, -1)[labels.get(update.constraints, [1, 0])]
    rates = np.einsum("lgx,dx->dlg", cells * mass, decisions) / (cells @ mass)
    return risk + (update.multipliers_ * rates).sum(axis=(1, 2)) + update.lambda_ratio * changes


@pytest.mark.filterwarnings("ignore:(Only .|None) of the .* base decisions are")
@pytest.mark.filterwarnings("ignore:Column 'p.' of X nearly determines")
@given(
    st.integers(0, 10**6),
    st.sampled_from(CONSTRAINTS),
    st.sampled_from([0.0, 0.04, 0.15]),
    st.sampled_from([0.3, 0.8, 1.0]),
    st.sampled_from([0.5, 0.4]),
)
@example(90948, "demographic_parity", 0.0, 0.3, 0.5)  # no base decision is 1: refused
@example(1, "demographic_parity", 0.04, 0.8, 0.4)
@example(2, "equalized_odds", 0.15, 0.3, 0.5)
@example(3, "true_positive_rate_parity", 0.0, 0.8, 0.4)
@example(4, "false_positive_rate_parity", 0.04, 1.0, 0.5)
@settings(max_examples=8, deadline=None)
def test_no_classifier_has_a_smaller_lagrangian(seed, constraints, ratio, strength, threshold):
    n_classes = 2 if constraints == "demographic_parity" else 4
    points, mass, X, classes = finite_population(seed, 7, n_classes)
    update = BayesPlugIn(
        ScoreColumn("score"),
        group_model=Known(),
        lambda_ratio=ratio,
        strength=strength,
        constraints=constraints,
        threshold=threshold,
        min_group_size=1,
    )
    if len(np.unique(classes)) < n_classes:
        return
    y = None if constraints == "demographic_parity" else classes // 2
    if constraints == "demographic_parity" and not (X["score"] > threshold).any():
        with pytest.raises(InputError, match=r"None of the \d+ base decisions are 1"):
            update.fit(X, y, sensitive_features=classes % 2)
        return
    with warnings.catch_warnings():  # random scores may order the labels backwards
        warnings.simplefilter("ignore", ScoreOrderWarning)
        update.fit(X, y, sensitive_features=classes % 2)
    every = np.array(list(itertools.product([0, 1], repeat=7)))
    own = update.predict(points)[None]
    shifted = points.assign(score=expit(logit(points["score"]) - logit(threshold)))
    least = lagrangian(update, shifted, mass, every).min()
    assert lagrangian(update, shifted, mass, own)[0] == pytest.approx(least, abs=1e-12)


@pytest.mark.parametrize("ratio", [0.0, 0.1])
def test_two_groups_have_the_margin_of_the_p_rule(rows, model, ratio):
    X, y, groups = rows
    update = BayesPlugIn(model, strength=0.6, lambda_ratio=ratio, threshold=0.5)
    update.fit(X, y, sensitive_features=groups)
    proba = update.group_model_.probabilities(update._read_rows(X))[1]
    lower = int(np.argmin(update.multipliers_[0]))  # whose positive decisions are worth more
    margin = p_rule_margin(
        proba,
        multiplier=-update.multipliers_[0, lower],
        target=update.target_,
        disadvantaged=lower,
        group_share=update.shares_[0, 1],
    )
    score = model.predict_proba(X)[:, 1]
    best = bayes_optimal_scores(score, score > 0.5, margin, cost=0.5, lambda_ratio=ratio)
    clear = np.abs(best) > 1e-9
    assert (update.predict(X)[clear] == (best > 0)[clear]).all()
    assert update.change_rate_ > 0


# ---------------------------------------------------------------------------------------------
# Fair enough on the fit rows


@some_constraints_of_either_kind
def test_targets_are_met_on_the_fit_rows(rows, model, constraints, aware):
    X, y, groups = rows
    update = BayesPlugIn(model, aware=aware, constraints=constraints)
    several = fit_strengths(update, [0.0, 0.3, 0.6, 0.8], X, y, sensitive_features=groups)
    for one in several:
        decided = one.predict(X, **by_group(one, groups))
        measured = fairness_value(constraints, y, decided, sensitive_features=groups)
        assert one.fairness_ == pytest.approx(measured)
        assert is_met(one)
        assert "not reached" not in one.status_
    assert several[0].change_rate_ == 0
    rates = [one.change_rate_ for one in several]
    assert (np.diff(rates) > 0).all()


def test_the_multiplier_is_the_smallest_that_is_fair_enough(rows, model):
    X, y, groups = rows
    update = BayesPlugIn(model, strength=0.5).fit(X, y, sensitive_features=groups)
    assert is_met(update)
    multipliers = update.multipliers_.copy()
    for part in [*np.linspace(0, 0.95, 10), 0.98, 0.995]:
        update.multipliers_ = part * multipliers
        decided = update.predict(X)
        value = fairness_value("demographic_parity", y, decided, sensitive_features=groups)
        assert value < update.target_


@pytest.mark.parametrize("constraints", ["demographic_parity", "equalized_odds"])
def test_a_target_out_of_reach_is_named_and_the_fairest_kept(rows, model, constraints):
    X, y, groups = rows
    update = BayesPlugIn(model, strength=1.0, constraints=constraints)
    update.fit(X.iloc[:-1], y.iloc[:-1], sensitive_features=groups[:-1])  # no equal counts
    assert update.target_ == (1.0 if constraints == "demographic_parity" else 0.0)
    assert not is_met(update)
    assert update.reached_ is False
    assert f"{update.fairness_:.4g} is the fairest" in update.status_
    assert "was not reached" in update.status_
    assert abs(update.fairness_ - update.target_) < 0.5 * abs(
        update.base_fairness_ - update.target_
    )


def test_groups_that_cannot_be_told_apart_keep_their_gap():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"score": rng.uniform(0.1, 0.9, 300)})
    X = X.assign(**{f"p{k}": 0.25 + 1e-9 * rng.normal(size=300) for k in range(4)})
    groups = (rng.random(300) < 0.3 + 0.4 * (X["score"] > 0.5)).astype(int)
    y = (X["score"] > rng.random(300)).astype(int)
    update = BayesPlugIn(ScoreColumn("score"), group_model=Known(), constraints="equalized_odds")
    update.fit(X, y, sensitive_features=groups)
    assert update.change_rate_ == 0
    assert update.fairness_ == update.base_fairness_
    assert "was not reached" in update.status_


def test_the_base_model_may_be_fair_already(rows, model):
    X, y, groups = rows
    everybody = BayesPlugIn(ScoreColumn("score"), strength=1.0)
    high = np.linspace(0.6, 0.9, N)
    with pytest.warns(BaseModelWarning, match="None of"):
        everybody.fit(X.assign(score=high), y, sensitive_features=groups)
    assert everybody.change_rate_ == 0
    assert everybody.fairness_ == everybody.target_ == 1.0
    assert everybody.reached_ is True


@pytest.mark.parametrize(
    ("constraints", "aware"), [("equalized_odds", False), ("demographic_parity", True)]
)
def test_several_groups(constraints, aware):
    data = make_biased(600, group_shares=(0.4, 0.3, 0.2, 0.1), bias=2.0, random_state=3)
    model = LogisticRegression().fit(data.data, data.target)
    groups = np.asarray(data.sensitive_features)
    update = BayesPlugIn(model, aware=aware, constraints=constraints, strength=0.6)
    update.fit(data.data, data.target, sensitive_features=groups)
    assert update.multipliers_.shape == (2 if constraints == "equalized_odds" else 1, 4)
    assert is_met(update)
    assert 0 < update.change_rate_ < 0.3


def test_the_update_generalises(rows, model):
    X, y, groups = rows
    update = BayesPlugIn(model, strength=0.8).fit(X, y, sensitive_features=groups)
    new = make_biased(4000, bias=1.5, n_categories=4, random_state=7)
    decided = update.predict(new.data)
    after = fairness_value(
        "demographic_parity", None, decided, sensitive_features=new.sensitive_features
    )
    assert after > 0.75


# ---------------------------------------------------------------------------------------------
# Neutral, and a function of the row


def test_no_strength_changes_nothing(rows, model):
    aware, constraints, threshold, ratio = False, "equalized_odds", 0.37, 0.1
    X, y, groups = rows
    scores = model.predict_proba(X)[:, 1]
    scores[:50] = threshold
    update = BayesPlugIn(
        ScoreColumn("score"),
        strength=0.0,
        aware=aware,
        lambda_ratio=ratio,
        constraints=constraints,
        threshold=threshold,
    ).fit(X.assign(score=scores), y, sensitive_features=groups)
    assert (update.multipliers_ == 0).all()
    assert update.change_rate_ == 0
    assert update.target_ == update.fairness_ == update.base_fairness_
    new = X.assign(score=np.linspace(0, 1, N))
    decided = update.predict(new, **by_group(update, groups))
    assert (decided == (new["score"] > threshold)).all()


def test_a_row_on_the_threshold_keeps_its_decision_unless_fairness_speaks(rows, model):
    X, y, groups = rows
    scores = model.predict_proba(X)[:, 1]
    scores[:100] = 0.5
    update = BayesPlugIn(ScoreColumn("score"), strength=0.3, aware=True)
    update.fit(X.assign(score=scores), y, sensitive_features=groups)
    raised = update.predict(X.assign(score=0.5), sensitive_features=groups)
    lower = int(np.argmin(update.multipliers_[0]))
    assert (raised == (groups == update.group_labels_[lower])).all()


def test_a_dead_zone_keeps_decisions_that_gain_little(rows, model):
    X, y, groups = rows
    score = model.predict_proba(X)[:, 1]
    update = BayesPlugIn(model, strength=0.7, aware=True)
    free = clone(update).fit(X, y, sensitive_features=groups)
    held = clone(update).set_params(lambda_ratio=0.1).fit(X, y, sensitive_features=groups)
    assert is_met(free)
    assert is_met(held)
    # each change must be worth more than 0.1 to fairness: larger multipliers, no fewer changes
    # than the target needs
    assert np.abs(held.multipliers_).max() > np.abs(free.multipliers_).max()
    changed = held.changes(X, sensitive_features=groups).changed
    known = groups == held.group_labels_[0]
    worth = -np.where(known, *(held.multipliers_ / held.shares_)[0])
    against = np.where(score > 0.5, score - 0.5, 0.5 - score)
    assert (np.abs(worth)[changed] > against[changed] + 0.1 - 1e-9).all()


def test_a_row_is_decided_alike_in_any_company(rows, biased, model):
    X, y, groups = rows
    X = X.assign(score=model.predict_proba(X)[:, 1])
    update = BayesPlugIn(ScoreColumn("score"), strength=0.7, lambda_ratio=0.02)
    update.fit(X, y, sensitive_features=groups)
    new = biased.data.iloc[:N]
    new = new.assign(score=model.predict_proba(new)[:, 1])
    once = update.predict(new)
    order = np.random.default_rng(0).permutation(N)
    assert (update.predict(new) == once).all()
    assert (update.predict(new.iloc[order]) == once[order]).all()
    assert all(update.predict(new.iloc[i : i + 1])[0] == once[i] for i in range(0, N, 29))
    assert (pickle.loads(pickle.dumps(update)).predict(new) == once).all()
    assert len(pickle.dumps(update)) < 12_000


def test_whole_weights_mean_repetition(rows, model):
    X, y, groups = rows
    weight = np.random.default_rng(2).integers(0, 4, N)
    times = np.repeat(np.arange(N), weight)
    update = BayesPlugIn(model, constraints="equalized_odds", strength=0.5)
    weighed = clone(update).fit(X, y, sensitive_features=groups, sample_weight=weight)
    repeated = clone(update).fit(X.iloc[times], y.iloc[times], sensitive_features=groups[times])
    assert weighed.target_ == pytest.approx(repeated.target_)
    np.testing.assert_allclose(weighed.multipliers_, repeated.multipliers_, atol=2e-3)
    decided = [one.predict(X, **by_group(update, groups)) for one in (weighed, repeated)]
    assert (decided[0] == decided[1]).mean() > 0.99


def test_demographic_parity_needs_no_labels_and_aware_needs_groups(rows, model):
    X, _, groups = rows
    update = BayesPlugIn(model, strength=0.5, aware=True).fit(X, sensitive_features=groups)
    assert np.isnan(update.accuracy_)
    with pytest.raises(InputError, match="decides by group: pass predict"):
        update.predict(X)
    with pytest.raises(InputError, match="errors need labels"):
        BayesPlugIn(model, constraints="equalized_odds").fit(X, sensitive_features=groups)


def test_mistakes_are_explained(rows, model):
    for wrong, message in [
        ({"strength": 2}, r"strength=2 must be a finite number >= 0 and <= 1"),
        ({"lambda_ratio": -1}, r"lambda_ratio=-1 must be a finite number >= 0"),
        ({"lambda_ratio": np.inf}, r"lambda_ratio=inf must be"),
    ]:
        X, y, groups = rows
        with pytest.raises(InputError, match=message):
            BayesPlugIn(model, **wrong).fit(X, y, sensitive_features=groups)


def test_a_mirrored_label_gives_mirrored_directions(rows, model):
    X, y, groups = rows
    update = BayesPlugIn(model, strength=0.5, pos_label=1, favorable_label=0)
    update.fit(X, y, sensitive_features=groups)
    plain = BayesPlugIn(model, strength=0.5).fit(X, y, sensitive_features=groups)
    assert (update.predict(X) == plain.predict(X)).all()
    assert (update.n_gains_, update.n_losses_) == (plain.n_losses_, plain.n_gains_)


def test_known_groups_agree_with_the_linear_programme(rows, model):
    """Two groups, one rate of errors: both methods move along the same single multiplier."""
    X, y, groups = rows
    settings = {"aware": True, "constraints": "true_positive_rate_parity"}
    plug_in = BayesPlugIn(model, strength=0.5, **settings).fit(X, y, sensitive_features=groups)
    programme = LPP(model, strength=0.5, **settings).fit(X, y, sensitive_features=groups)
    for update in (plug_in, programme):
        assert update.multipliers_[0, 0] == pytest.approx(-update.multipliers_[0, 1])
    assert np.sign(plug_in.multipliers_[0, 0]) == np.sign(programme.multipliers_[0, 0])
