"""ModifiedNaiveBayes: the published loop, the code of 2012, and steps that jump."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from commod import ScoreColumn
from commod.datasets import make_biased
from commod.exceptions import InputError, TrainingWarning
from commod.rivals import ModifiedNaiveBayes, check_rival, fit_strengths
from commod.rivals.modified_naive_bayes import count_path

pytestmark = pytest.mark.filterwarnings("ignore::commod.exceptions.CommodWarning")
FIXTURE = Path(__file__).parent / "fixtures" / "modified_naive_bayes.json"
CASES = json.loads(FIXTURE.read_text())
SCORED = ScoreColumn("score")


def published_loop(log_ratio, group, weight, counts, favoured, delta, alpha, cut, most=3000):
    """Return the differences and counts after each step; every step decides all rows."""
    counts = counts.astype(float).copy()
    other, labels = 1 - favoured, counts[1].sum()
    states = []
    while True:
        prior = np.log(counts[1] + alpha / 2) - np.log(counts[0] + alpha / 2)
        positive = log_ratio + prior[group] > cut
        rates = [np.average(positive[group == g], weights=weight[group == g]) for g in (0, 1)]
        states.append((rates[favoured] - rates[other], counts.copy()))
        if states[-1][0] <= 0 or len(states) > most:
            return states
        if weight[positive].sum() < labels:
            source, target, moved, g = 0, 1, delta * counts[0, favoured], other
        else:
            source, target, moved, g = 1, 0, delta * counts[1, other], favoured
        if moved == 0 or counts[source, g] - moved < 0:
            return states
        counts[source, g] -= moved
        counts[target, g] += moved


def table(case):
    columns = {f"a{j}": list(column) for j, column in enumerate(case["attributes"])}
    group, label = (np.array(list(case[name]), dtype=int) for name in ("group", "label"))
    return pd.DataFrame(columns).assign(score=0.2 + 0.6 * group), label, group


@pytest.fixture(scope="module")
def data():
    data = make_biased(600, bias=1.5, n_categories=3, random_state=0)
    X = data.data.assign(score=data.proba_target)
    X.loc[::5, "x3"] = np.nan
    return X, data.target.to_numpy(), data.sensitive_features.to_numpy()


# ---------------------------------------------------------------------------------------------
# The published loop


def test_without_attributes_the_loop_ends_after_34_steps_with_all_negative():
    group = np.repeat([0, 1], 100)
    counts = np.array([[70.0, 40.0], [30.0, 60.0]])
    path = count_path(np.zeros(200), group, np.ones(200), counts, favoured=1, delta=0.01, alpha=1.0)
    assert path.n_steps.tolist() == [0, 34]
    assert path.difference.tolist() == [1.0, 0.0]
    assert path.counts[-1] == pytest.approx(np.array([[70, 50.2], [30, 49.8]]))


def test_a_difference_that_is_not_positive_moves_nothing():
    group = np.repeat([0, 1], 100)
    counts = np.array([[70.0, 40.0], [30.0, 60.0]])
    path = count_path(np.zeros(200), group, np.ones(200), counts, favoured=0, delta=0.01, alpha=1.0)
    assert path.n_steps.tolist() == [0]
    assert path.difference.tolist() == [-1.0]


@given(
    seed=st.integers(0, 10**6),
    delta=st.sampled_from([0.01, 0.1, 0.5]),
    cut=st.sampled_from([-1.0, 0.0, 0.7]),
    n_levels=st.sampled_from([2, 5, 1000]),
    favoured=st.integers(0, 1),
)
@settings(max_examples=60, deadline=None)
def test_jumps_equal_single_steps(seed, delta, cut, n_levels, favoured):
    rng = np.random.default_rng(seed)
    n = 60
    group = np.append([0, 1], rng.integers(0, 2, n - 2))
    log_ratio = rng.normal(size=n_levels)[rng.integers(0, n_levels, n)] + 0.5 * group
    weight = rng.integers(1, 4, n).astype(float)
    label = rng.random(n) < rng.uniform(0.1, 0.9)
    counts = np.bincount(label * 2 + group, weight, minlength=4).reshape(2, 2)
    given_ = {"favoured": favoured, "delta": delta, "alpha": 1.0, "cut": cut}
    states = published_loop(log_ratio, group, weight, counts, **given_)
    if len(states) > 3000:
        return
    path = count_path(log_ratio, group, weight, counts, **given_)
    assert path.n_steps[-1] == len(states) - 1
    for n_steps, difference, counted in zip(
        path.n_steps, path.difference, path.counts, strict=True
    ):
        assert difference == pytest.approx(states[n_steps][0], abs=1e-12)
        assert counted == pytest.approx(states[n_steps][1], rel=1e-9, abs=1e-9)
    for bound in (0.0, 0.1, 0.3):
        stop = next((i for i, s in enumerate(states) if s[0] <= bound), len(states) - 1)
        assert path.n_steps[path.entry(bound, closest=False)] == stop
        closest = path.difference[path.entry(bound, closest=True)]
        best = min(abs(s[0] - bound) for s in states[: stop + 1])
        assert abs(closest - bound) == pytest.approx(best, abs=1e-12)


def test_a_step_of_nothing_ends_the_loop():
    """The published loop runs for ever here: the other group has no positive label."""
    group = np.repeat([0, 1], 10)
    counts = np.array([[10.0, 0.0], [0.0, 10.0]])
    path = count_path(np.zeros(20), group, np.ones(20), counts, favoured=1, delta=0.01, alpha=1.0)
    assert path.n_steps.tolist() == [0, 0]


@pytest.mark.parametrize("variant", ["2NB", "MNB"])
def test_counts_tables_and_decisions_equal_the_code_of_2012(variant):
    n_moved = 0
    for case in CASES:
        X, label, group = table(case)
        update = ModifiedNaiveBayes(
            SCORED, variant=variant, keep="last", privileged=1, min_category_size=1
        ).fit(X, label, sensitive_features=group)
        theirs = case[variant]
        assert update.counts_ == pytest.approx(np.array(theirs["counts"]), rel=1e-9)
        assert update.tables_.reshape(-1, update.tables_.shape[2]) == pytest.approx(
            np.array(theirs["tables"]), rel=1e-12
        )
        decided = update.predict(X, sensitive_features=group)
        assert "".join(map(str, decided)) == theirs["decisions"]
        n_moved += update.n_iter_ > 0
    assert n_moved >= 15


# ---------------------------------------------------------------------------------------------
# What a user sees


@pytest.mark.parametrize("variant", ["2NB", "MNB"])
def test_strength_is_the_share_of_the_difference_that_is_removed(variant, data):
    X, y, group = data
    base = [(X["score"] > 0.5)[group == g].mean() for g in np.unique(group)]
    strengths = np.linspace(0, 1, 11)
    updates = fit_strengths(
        ModifiedNaiveBayes(SCORED, variant=variant, keep="last"), strengths, X, y,
        sensitive_features=group,
    )  # fmt: skip
    assert updates[0].change_rate_ == 0
    for strength, update in zip(strengths[1:], updates[1:], strict=True):
        bound = (1 - strength) * abs(base[1] - base[0])
        decided = update.predict(X, sensitive_features=group)
        high = update.privileged_
        difference = decided[group == high].mean() - decided[group != high].mean()
        assert difference == pytest.approx(update.difference_)
        assert difference <= bound + 1e-12
        assert "before the rates were close enough" not in update.status_
        assert ("No count moved" in update.status_) == (update.n_iter_ == 0)


def test_the_closest_step_is_no_further_from_parity_than_the_last(data):
    X, y, group = data
    closest, last = (
        ModifiedNaiveBayes(SCORED, keep=keep).fit(X, y, sensitive_features=group)
        for keep in ("closest", "last")
    )
    assert abs(closest.difference_) <= abs(last.difference_)
    assert closest.n_iter_ <= last.n_iter_


def test_the_score_is_the_probability_of_the_model_at_any_threshold(data):
    X, y, group = data
    update = ModifiedNaiveBayes(SCORED, threshold=0.3).fit(X, y, sensitive_features=group)
    proba = update.predict_proba(X, sensitive_features=group)[:, 1]
    assert ((proba > 0.3) == (update.predict(X, sensitive_features=group) == 1)).all()
    number = {label: i for i, label in enumerate(update.group_labels_)}
    terms = update.encoding_.encode(update._read_rows(X, group).columns)
    row, g = 7, number[group[7]]
    odds = np.log((update.counts_[1, g] + 0.5) / (update.counts_[0, g] + 0.5))
    sizes = np.diff([*terms.code_terms, terms.n_terms])
    for code, first, size in zip(terms.codes[row], terms.code_terms, sizes, strict=True):
        if code < terms.n_terms:
            one, zero = (update.tables_[y, g] for y in (1, 0))
            columns = slice(first, first + size)
            odds += np.log(one[code] / one[columns].sum() / zero[code] * zero[columns].sum())
    assert proba[row] == pytest.approx(expit(odds), rel=1e-9)


@pytest.mark.parametrize("variant", ["2NB", "MNB"])
def test_weights_count_as_repeated_rows(variant, data):
    X, y, group = data
    X = X.drop(columns="x3")  # bins count people
    n_times = np.random.default_rng(0).integers(1, 4, len(X))
    index = np.repeat(np.arange(len(X)), n_times)
    how = {"variant": variant, "min_category_size": 1, "n_bins": 4}
    weighted = ModifiedNaiveBayes(SCORED, **how).fit(
        X, y, sensitive_features=group, sample_weight=n_times
    )
    repeated = ModifiedNaiveBayes(SCORED, **how).fit(
        X.iloc[index].reset_index(drop=True), y[index], sensitive_features=group[index]
    )
    assert weighted.n_iter_ == repeated.n_iter_
    assert weighted.counts_ == pytest.approx(repeated.counts_)
    one, other = (u.predict(X, sensitive_features=group) for u in (weighted, repeated))
    assert (one == other).all()


def test_one_decision_for_all_rows_is_a_warning():
    group = np.repeat([0, 1], 100)
    label = np.concatenate([np.arange(100) < 30, np.arange(100) < 60]).astype(int)
    X = pd.DataFrame({"coin": np.tile([0, 1], 100), "score": 0.3 + 0.4 * group})
    X.loc[[0, 100], "score"] = 0.5 + 0.01 * np.array([1, -1])
    with pytest.warns(TrainingWarning, match=r"one decision for all rows, 0\."):
        ModifiedNaiveBayes(SCORED, keep="last").fit(X, label, sensitive_features=group)


def test_the_contract_holds(data):
    X, y, group = data
    for variant in ("2NB", "MNB"):
        check_rival(ModifiedNaiveBayes(SCORED, variant=variant), X, y, sensitive_features=group)


# ---------------------------------------------------------------------------------------------
# Refusals


def test_a_parameter_without_meaning_is_refused(data):
    for parameter, value, message in [
        ("variant", "3NB", "choose one of 2NB, MNB"),
        ("keep", "best", "choose one of closest, last"),
        ("delta", 0, "delta=0 must be a finite number > 0"),
        ("alpha", 0, "alpha=0 must be"),
        ("beta", -1, "beta=-1 must be"),
        ("n_bins", 1, "n_bins=1 must be"),
        ("privileged", "nobody", "is not one of the groups"),
        ("constraints", "equalized_odds", "knows 'demographic_parity'"),
        ("strength", 1.1, "strength=1.1"),
    ]:
        X, y, group = data
        update = ModifiedNaiveBayes(SCORED).set_params(**{parameter: value})
        with pytest.raises(InputError, match=message) as error:
            update.fit(X, y, sensitive_features=group)
        assert error.value.parameter == parameter


def test_three_groups_and_rows_without_labels_are_refused(data):
    X, y, group = data
    with pytest.raises(InputError, match="compares two groups; got 3"):
        ModifiedNaiveBayes(SCORED).fit(X, y, sensitive_features=np.arange(len(X)) % 3)
    with pytest.raises(InputError, match="requires y to be passed"):
        ModifiedNaiveBayes(SCORED).fit(X, sensitive_features=group)
