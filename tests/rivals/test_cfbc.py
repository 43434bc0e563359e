"""CFBC beside its hand example, brute force over all multipliers and a linear programme."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.base import BaseEstimator, ClassifierMixin

from commod import ScoreColumn
from commod.exceptions import InputError
from commod.rivals import CFBC, LPP, check_rival, lineup

pytestmark = pytest.mark.filterwarnings("ignore::commod.exceptions.CommodWarning")

SEEDS = st.integers(0, 10**6)
HAND = np.array([0.6, 0.45, 0.9, 0.6])  # two rows of group 0, two of group 1


class GivenProbabilities(ClassifierMixin, BaseEstimator):
    """A group model whose probabilities of (label, group) are the columns p0 to p3."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return X[["p0", "p1", "p2", "p3"]].to_numpy()


def random_table(seed, n=14, *, ties=False):
    """Return rows with P(Y, S | x), labels and groups; every cell has rows."""
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(4, 0.8), n)  # (Y, S) = (0, 0), (0, 1), (1, 0), (1, 1)
    if ties:
        joint = (joint * 10).round() + 1
        joint /= joint.sum(axis=1, keepdims=True)
    X = pd.DataFrame(joint, columns=["p0", "p1", "p2", "p3"])
    cell = np.arange(n) % 4
    return X.assign(score=joint[:, 2] + joint[:, 3]), cell // 2, cell % 2


def method(aware, **how):
    return CFBC(
        ScoreColumn("score"),
        aware=aware,
        group_model=None if aware else GivenProbabilities(),
        min_group_size=1,
        **how,
    )


def problem(X, groups, weight, aware):
    """Return 2f − 1 and the factor of θ, as the paper states them, and the weights."""
    f = X["score"].to_numpy()
    share = weight / weight.sum()
    if aware:
        joint = np.stack([f * (groups == 0), f * (groups == 1)])
    else:
        joint = X[["p2", "p3"]].to_numpy().T
    effects = joint / (joint @ share)[:, None]
    return 2 * f - 1, effects[1] - effects[0], share


def best_by_trying_all(gain, factor, share, tolerance):
    """Return the θ of smallest size within the tolerance, or the one with the smallest gap.

    Decisions change only where 2f − 1 = θ · factor, so one θ between two of these is enough.
    """
    with np.errstate(divide="ignore"):
        breaks = np.sort(gain[factor != 0] / factor[factor != 0])
    breaks = breaks[np.append(True, np.diff(breaks) > 1e-9)]
    tried = np.concatenate([[0], (breaks[1:] + breaks[:-1]) / 2, breaks[[0, -1]] + [-1, 1]])
    tried = tried[np.argsort(np.abs(tried), kind="stable")]
    gaps = np.array([abs(share @ (factor * (gain > theta * factor))) for theta in tried])
    within = gaps <= tolerance + 1e-9
    chosen = np.argmax(within) if within.any() else np.argmin(gaps)
    return tried[chosen], gaps[chosen]


# ---------------------------------------------------------------------------------------------
# What it decides


def test_the_hand_example_of_the_method():
    X, groups = pd.DataFrame({"score": HAND}), [0, 0, 1, 1]
    update = method(aware=True).fit(X, [1, 1, 1, 0], sensitive_features=groups)
    assert 0.0583 <= update.theta_ <= 0.125
    assert update.predict(X, sensitive_features=groups).tolist() == [1, 1, 1, 1]
    assert (update.n_gains_, update.n_losses_) == (1, 0)
    assert (update.base_fairness_, update.fairness_) == (0.5, 0)  # both rates are 1
    np.testing.assert_allclose(update.shares_, [[0.2625, 0.375]])  # each with its own mean


@given(seed=SEEDS, aware=st.booleans(), ties=st.booleans(), strength=st.floats(0.05, 1))
@settings(max_examples=30)
def test_the_rule_equals_brute_force_over_all_breakpoints(seed, aware, ties, strength):
    X, y, groups = random_table(seed, ties=ties)
    weight = np.random.default_rng(seed).integers(1, 4, len(X)) * 1.0
    update = method(aware, strength=strength)
    update.fit(X, y, sensitive_features=groups, sample_weight=weight)
    gain, factor, share = problem(X, groups, weight, aware)
    tolerance = (1 - strength) * abs(share @ (factor * (gain > 0)))
    theta, gap = best_by_trying_all(gain, factor, share, tolerance)
    assert update.tolerance_ == pytest.approx(tolerance)
    decided = gain > update.theta_ * factor
    known = {"sensitive_features": groups} if aware else {}
    assert (update.predict(X, **known) == decided).all()
    assert abs(share @ (factor * decided)) == pytest.approx(gap, abs=1e-9)
    if gap <= tolerance + 1e-9:
        assert (decided == (gain > theta * factor)).all()


@given(seed=SEEDS, aware=st.booleans(), strength=st.floats(0.05, 1))
@settings(max_examples=20)
def test_no_randomised_rule_is_better_at_the_gap_that_is_reached(seed, aware, strength):
    X, y, groups = random_table(seed)
    update = method(aware, strength=strength).fit(X, y, sensitive_features=groups)
    gain, factor, share = problem(X, groups, np.ones(len(X)), aware)
    decided = gain > update.theta_ * factor
    reached = share @ (factor * decided)
    sides = np.stack([factor * share, -factor * share])
    # a gap on the other side of 0 than the base gap's is the price of whole decisions
    limits = [max(reached, 0), max(-reached, 0)]
    best = linprog(-gain * share, A_ub=sides, b_ub=limits, bounds=(0, 1))
    crossed = reached * (share @ (factor * (gain > 0))) < -1e-12
    if not crossed:
        assert share @ (gain * decided) == pytest.approx(-best.fun, abs=1e-9)
    assert share @ (gain * decided) <= -best.fun + 1e-9


# In thousandths: the linear programme of LPP ignores a strength below its own tolerance.
@given(seed=SEEDS, aware=st.booleans(), strength=st.integers(0, 1000).map(lambda n: n / 1000))
@settings(max_examples=5)
def test_lpp_with_this_constraint_decides_the_same(seed, aware, strength):
    X, y, groups = random_table(seed)
    update = method(aware, strength=strength)
    other = LPP(**{**update.get_params(), "constraints": "true_positive_rate_parity"})
    known = {"sensitive_features": groups} if aware else {}
    ours, theirs = (u.fit(X, y, sensitive_features=groups).predict(X, **known)
                    for u in (update, other))  # fmt: skip
    assert (ours == theirs).all()


# ---------------------------------------------------------------------------------------------
# Contract


@pytest.mark.parametrize("aware", [False, True])
def test_strength_zero_changes_nothing_on_new_rows(aware):
    X, y, groups = random_table(0)
    update = method(aware, strength=0).fit(X, y, sensitive_features=groups)
    new, _, new_groups = random_table(1, 200)
    known = {"sensitive_features": new_groups} if aware else {}
    assert update.theta_ == 0
    assert (update.predict(new, **known) == (new["score"] > 0.5)).all()
    assert (update.predict_proba(new, **known)[:, 1] == new["score"]).all()


def test_weights_are_repeated_rows():
    X, y, groups = random_table(2, 24)
    times = np.random.default_rng(2).integers(1, 4, 24)
    rows = np.repeat(np.arange(24), times)
    weighted = method(True).fit(X, y, sensitive_features=groups, sample_weight=times)
    repeated = method(True).fit(X.iloc[rows], y[rows], sensitive_features=groups[rows])
    assert weighted.theta_ == pytest.approx(repeated.theta_)


@pytest.mark.parametrize("aware", [False, True])
def test_the_contract_with_strings_and_gaps(aware):
    X, _, _ = random_table(3, 300)
    rng = np.random.default_rng(3)
    y, groups = (rng.random(300) < X["score"]).astype(int), rng.integers(0, 2, 300)
    X = X.assign(
        town=np.array(["x", "y"])[np.roll(groups, 1)], age=X["p1"].where(np.arange(300) % 5 > 0)
    )
    update = CFBC(ScoreColumn("score"), aware=aware)
    check_rival(update, X, y, sensitive_features=np.array(["a", "b"])[groups])


def test_a_group_without_positive_labels_changes_nothing():
    X, _, groups = random_table(4, 40)
    update = method(True).fit(X, (groups == 0).astype(int), sensitive_features=groups)
    assert update.change_rate_ == update.theta_ == 0
    assert np.isnan(update.tolerance_)


def test_three_groups_are_refused():
    X, y, _ = random_table(5, 30)
    with pytest.raises(InputError, match="compares two groups; got 3") as error:
        method(True).fit(X, y, sensitive_features=np.arange(30) % 3)
    assert error.value.parameter == "sensitive_features"


def test_only_equal_opportunity_is_known():
    X, y, groups = random_table(6)
    with pytest.raises(InputError, match="true_positive_rate_parity") as error:
        method(True, constraints="equalized_odds").fit(X, y, sensitive_features=groups)
    assert error.value.parameter == "constraints"
    assert {"CFBC", "CFBC (aware)"} <= set(lineup(None).left_out)
    assert {"CFBC", "CFBC (aware)"} <= set(lineup(None, constraints="true_positive_rate_parity"))
