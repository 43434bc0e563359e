"""The contract that every rival keeps, whatever it does inside."""

import itertools
import pickle
import re
import subprocess
import sys
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.utils import get_tags

from commod import COMMOD, ControlledDebiaser, ScoreColumn, frontier
from commod._data.columns import Column
from commod.constraints import DemographicParity, EqualizedOdds, MinimumRate, PredictiveParity
from commod.datasets import make_biased
from commod.exceptions import DataWarning, InputError
from commod.metrics._constraint import ALL_CONSTRAINTS, ODDS, PARITY, get_constraint
from commod.rivals import (
    LPP,
    MinimalFlip,
    RejectOption,
    Rival,
    check_rival,
    fit_strengths,
    lineup,
)
from commod.rivals.base import random_draws

pytestmark = [
    pytest.mark.usefixtures("quick_compilation"),
    # CalibratedEqualizedOdds often cannot make the costs equal
    pytest.mark.filterwarnings("ignore:.*by withholding:commod.exceptions.TargetWarning"),
]

N = 480  # rows, columns and layers as in the tests of the methods that train: one compilation
QUICK = {"epochs": 4, "batch_size": 128}  # of the methods that train


def methods(model, **shared):
    """Return every rival by name; those that train do so for a few epochs."""
    updates = lineup(model, random_state=0, **shared)
    if "constraints" not in shared:  # a method that does not know parity has one that it knows
        for constraints in ALL_CONSTRAINTS[1:]:
            updates = lineup(model, random_state=0, constraints=constraints, **shared) | updates
    updates = {name: update for name, update in updates.items() if isinstance(update, Rival)}
    for update in updates.values():
        if "epochs" in update.get_params():
            update.set_params(**QUICK)
        if "max_rows" in update.get_params():
            update.set_params(max_rows=100)
    updates["AdversarialDebiasing"].set_params(hidden=(16,))
    if "RNF" in updates:  # it knows two of the four constraints
        updates["RNF"].set_params(hidden=(16, 16))
    return updates


def tried(update):
    """Return the constraints to try: all that a method knows, one for a method that trains.

    Methods that train compile a program for each constraint; their own tests train them all.
    """
    known = update.known_constraints
    if not hasattr(update, "epochs"):
        return known
    return [ODDS if ODDS in known else known[0]]


METHODS = methods(ScoreColumn("score"))
NAMES = list(METHODS)


def made(name, **parameters):
    """Return a method on the column of scores."""
    return clone(METHODS[name]).set_params(**parameters)


def each_constraint(name):
    """Return a method with each constraint to try, a method with two variants with half of them."""
    known = tried(METHODS[name])
    if f"{name} (aware)" in NAMES:
        known = known[::2]
    elif name.endswith("(aware)"):
        known = known[1::2] or known
    return [made(name, constraints=constraints) for constraints in known]


every_method = pytest.mark.parametrize("name", NAMES)
# MultiaccuracyBoost corrects errors: parity need not improve.
AIMS_AT_PARITY = [
    name for name in methods(None, constraints=PARITY) if name != "MultiaccuracyBoost"
]
NO_PARITY = {"CalibratedEqualizedOdds", "CFBC", "CFBC (aware)"}
SMOOTHING = ("FCGP",)  # these scores are smooth already; its own test has a rough score


@pytest.fixture(scope="module")
def data():
    return make_biased(N, bias=1.5, n_categories=3, random_state=0)


@pytest.fixture(scope="module")
def scores(data):
    numbers = data.data.select_dtypes("number")
    model = LogisticRegression().fit(numbers, data.target)
    return model.predict_proba(numbers)[:, 1]


def with_gaps(X):
    return X.assign(x3=X["x3"].where(np.arange(len(X)) % 5 > 0))


@pytest.fixture(scope="module")
def rows(data, scores):
    X = with_gaps(data.data).assign(score=scores)
    is_first = np.asarray(data.sensitive_features) == "g0"
    return X, data.target, np.where(is_first, "first secret", "other secret")


@pytest.fixture(scope="module")
def strongest(rows):
    """Return what gives each method by name, fitted once at its largest strength."""
    return cache(lambda name: fit(strong(made(name)), rows))


def fit(update, rows, **how):
    X, y, group = rows
    return update.fit(X, y, sensitive_features=group, **how)


def call(update, method, X, group):
    """Call a method of an update with the group where it needs it."""
    groups = {"sensitive_features": group} if update.needs_sensitive_features else {}
    return getattr(update, method)(X, **groups)


def strong(update):
    return update.set_params(strength=update.default_strengths[-1])


def test_the_lineup_is_everything_under_one_contract():
    assert set(NAMES) == {
        "AdversarialDebiasing",
        "FRAPPE",
        "LPP",
        "RNF",
        "WassersteinLogisticRegression",
        "BayesPlugIn",
        "CFBC",
        "CFBC (aware)",
        "FairScoreTransformer",
        "FairScoreTransformer (aware)",
        "FairProjection",
        "FairProjection (aware)",
        "FCGP",
        "LPP (aware)",
        "BayesPlugIn (aware)",
        "RejectOption",
        "ModifiedNaiveBayes",
        "MinimalFlip",
        "RelaxedThresholdOptimizer",
        "ThresholdOptimizer",
        "CalibratedEqualizedOdds",
        "MultiaccuracyBoost",
        "WassersteinPostProcessing",
    }
    left_out = lineup(None).left_out
    assert set(left_out) == {"IndividualGroupDebiasing", "LeafRelabelling", *NO_PARITY}
    assert "group_column" in left_out["IndividualGroupDebiasing"]
    assert "tree" in left_out["LeafRelabelling"]
    assert all("knows" in left_out[name] for name in NO_PARITY)
    assert {type(u) for u in lineup(None).values()} >= {COMMOD, ControlledDebiaser}


class PromoteAll(Rival):
    """A method for two groups, people without weights, parity and a base model of its own kind."""

    known_constraints = (PARITY,)
    several_groups = sample_weights = False

    def __init__(self, estimator, *, strength=1.0, constraints=PARITY, min_group_size=30,
                 threshold=0.5, pos_label=None, favorable_label=None):  # fmt: skip
        self.estimator, self.strength, self.constraints = estimator, strength, constraints
        self.min_group_size, self.threshold = min_group_size, threshold
        self.pos_label, self.favorable_label = pos_label, favorable_label

    def _learn(self, rows):
        self.promotes_ = self.strength > 0

    def _decide(self, rows):
        return rows.base.decisions | self.promotes_


def test_a_method_refuses_what_it_does_not_know(rows):
    X, y, group = rows
    three, weight = np.arange(N) % 3, np.arange(N)
    refused = [
        (ODDS, group, None, "constraints", "knows 'demographic_parity'; got 'equalized_odds'"),
        (PARITY, group, weight, "sample_weight", "does not know sample weights"),
        (PARITY, three, None, "sensitive_features", "compares two groups; got 3: 0, 1, 2"),
    ]
    for constraints, groups, sample_weight, parameter, text in refused:
        update = PromoteAll(ScoreColumn("score"), constraints=constraints)
        with pytest.raises(InputError, match=text) as error:
            fit(update, (X, y, groups), sample_weight=sample_weight)
        assert error.value.parameter == parameter


def test_a_changed_score_at_the_threshold_moves_to_its_side(rows):
    X, y, group = rows
    X = X.assign(score=np.where(np.arange(N) % 2, 0.5, X["score"]))
    update = fit(PromoteAll(ScoreColumn("score")), (X, y, group))
    assert (update.predict_proba(X)[:, 1] > 0.5).all()


def test_constant_weights_are_no_weights(rows):
    fit(PromoteAll(ScoreColumn("score")), rows, sample_weight=np.full(N, 2.0))


# ---------------------------------------------------------------------------------------------
# Neutral


@every_method
def test_strength_zero_changes_nothing_at_all(name, rows):
    X, y, group = rows
    X = X.assign(score=np.where(np.arange(N) < 20, 0.4, X["score"]))
    base = (X["score"] > 0.4).to_numpy()
    for update in each_constraint(name):
        fit(update.set_params(strength=0, threshold=0.4), (X, y, group))
        assert update.change_rate_ == update.n_gains_ == update.n_losses_ == 0
        assert (call(update, "predict", X, group) == base).all()
        assert (call(update, "decision_proba", X, group) == base).all()
        if not update.randomised:
            assert (call(update, "predict_proba", X, group)[:, 1] == X["score"]).all()


def test_the_default_sweeps_begin_with_no_change_and_rise():
    sweeps = {name: update.default_strengths for name, update in METHODS.items()}
    assert {name for name, sweep in sweeps.items() if sweep[0] != 0} == set()
    assert {name for name, sweep in sweeps.items() if not (np.diff(sweep) > 0).all()} == set()


def test_a_strength_without_meaning_is_refused(rows):
    offenders = []
    meaningless = [-0.1, np.nan, np.inf, "strong", None]  # each refused by several methods
    for name, strength in zip(NAMES, itertools.cycle(meaningless), strict=False):
        try:
            fit(made(name, strength=strength), rows)
        except (InputError, TypeError) as error:
            if "strength" in str(error):
                continue
        offenders.append((name, strength))
    assert offenders == []


def test_a_constraint_that_rivals_do_not_know_is_refused(rows):
    unknown = [
        (DemographicParity().within("town"), "rates of all people"),
        (EqualizedOdds(largest=...), "rates of all people"),
        (MinimumRate(), "rates of all people"),
        (PredictiveParity(), "rates of all people"),
        (DemographicParity() & EqualizedOdds(), "one constraint"),
        (DemographicParity(ratio=0.8), "demographic parity >= 0.8"),
    ]
    offenders = []
    for name, (constraints, reason) in zip(NAMES, itertools.cycle(unknown), strict=False):
        try:
            fit(made(name, constraints=constraints), rows)
        except InputError as error:
            is_explained = re.search(f"(?s){reason}.*ControlledDebiaser", str(error))
            if is_explained and error.parameter == "constraints":
                continue
        offenders.append(name)
    assert offenders == []


def test_parity_by_difference_is_parity(rows):
    by_ratio = fit(made("MinimalFlip", strength=0.3, constraints=DemographicParity()), rows)
    assert by_ratio.base_fairness_ < by_ratio.fairness_
    for name in AIMS_AT_PARITY:
        if hasattr(METHODS[name], "epochs") or name.endswith("(aware)"):
            continue  # their own tests train the former; the latter read it as the blind ones do
        update = made(name, strength=0.3, constraints=DemographicParity(difference=...))
        fit(update, rows)
        assert update.base_fairness_ > update.fairness_, name


# ---------------------------------------------------------------------------------------------
# One contract


@every_method
def test_labels_scores_margins_and_changes_agree_and_a_file_knows_no_groups(name, rows, strongest):
    X, _, group = rows
    update = strongest(name)
    decided = check_agreement(update, X, group, positive=1)
    again = pickle.loads(pickle.dumps(update))
    assert (call(again, "predict", X, group) == decided).all()
    if update.needs_sensitive_features:
        with pytest.raises(InputError, match=r"predict\(X, sensitive_features=...\)"):
            update.predict(X)
    else:
        assert b"secret" not in pickle.dumps(update)


# a method that is told groups, or that trains, reads labels as the others do
@pytest.mark.parametrize(
    "name", [n for n in NAMES if not (n.endswith("(aware)") or hasattr(METHODS[n], "epochs"))]
)
def test_labels_scores_margins_and_changes_agree_where_the_other_label_counts(name, rows):
    X, y, group = rows
    X = X.assign(score=1 - X["score"])
    model = ScoreColumn("score", score_is_for=0)
    update = made(name, estimator=model, pos_label=0, favorable_label=1)
    check_agreement(fit(strong(update), (X, y, group)), X, group, positive=0)


def check_agreement(update, X, group, positive):
    """Check what an update says of rows whose label 1 is favorable, and return its labels."""
    decided = call(update, "predict", X, group)
    assert set(decided) <= {0, 1}
    proba = call(update, "predict_proba", X, group)
    assert proba.shape == (len(X), 2)
    assert proba.sum(axis=1) == pytest.approx(1)
    probability = call(update, "decision_proba", X, group)
    margin = call(update, "decision_function", X, group)
    assert ((margin > 0) == (decided == 1)).all()
    if not update.randomised:
        assert (probability == (decided == positive)).all()
        assert ((proba[:, positive] > 0.5) == (decided == positive)).all()
    else:
        assert (proba[:, positive] == probability).all()
        assert ((probability > 0) | (decided != positive)).all()
        assert ((probability < 1) | (decided == positive)).all()
    changes = call(update, "changes", X, group)
    before = (X["score"] > 0.5).to_numpy() == bool(positive)  # whether the base label is 1
    assert (changes.gain == (~before & (decided == 1))).all()
    assert (changes.loss == (before & (decided == 0))).all()
    return decided


@pytest.mark.parametrize("name", [name for name in AIMS_AT_PARITY if name not in SMOOTHING])
def test_fairness_improves_along_the_sweep(name, rows):
    update = made(name)
    strengths = update.default_strengths
    strengths = strengths[0], strengths[2], strengths[len(strengths) // 2], strengths[-1]
    if "epochs" in update.get_params():
        update.set_params(epochs=30)
        strengths = strengths[0], strengths[1], strengths[-1]
    X, y, group = rows
    base, *updates = fit_strengths(update, strengths, X, y, sensitive_features=group)
    assert max(model.fairness_ for model in updates) > base.fairness_ + 0.15


@every_method
def test_several_strengths_at_once_equal_each_alone_in_either_kind_of_frame(name, rows, strongest):
    X, y, group = rows
    update = made(name)
    strengths = update.default_strengths[2], update.default_strengths[-1]
    models = fit_strengths(update, strengths, X, y, sensitive_features=group)
    other = pl.from_pandas(X)
    weak = fit(clone(update).set_params(strength=strengths[0]), (other, y, group))
    for model, alone, frame in zip(models, (weak, strongest(name)), (other, X), strict=True):
        ours, theirs = (
            call(m, "decision_proba", f, group) for m, f in ((model, X), (alone, frame))
        )
        assert (ours == theirs).all()


@pytest.fixture(scope="module")
def three_groups():
    data = make_biased(N, group_shares=(0.5, 0.3, 0.2), bias=1.5, n_categories=3, random_state=2)
    X = with_gaps(data.data).assign(score=data.proba_target)
    return X, data.target, np.asarray(data.sensitive_features)


@every_method
def test_three_groups_stay_above_the_limit(name, three_groups):
    X, y, group = three_groups
    if not METHODS[name].several_groups:
        with pytest.raises(InputError, match="compares two groups; got 3"):
            made(name).fit(X, y, sensitive_features=group)
        return
    updates = each_constraint(name)
    update = updates[NAMES.index(name) % len(updates)]
    strengths = [update.default_strengths[-1]]
    curve = frontier(update, X, y, sensitive_features=group, grid={"strength": strengths},
                     describe=False)  # fmt: skip
    frame = curve.frame()
    assert not (frame["change_rate"] < frame["limit"] - 1e-9).any()
    assert curve.needs_sensitive_features == update.needs_sensitive_features


def test_cloning_keeps_the_base_model_and_the_parameters():
    model = LogisticRegression().fit(np.arange(4.0)[:, None], [0, 0, 1, 1])
    for name, update in methods(model).items():
        copy = clone(strong(update))
        assert copy.estimator is model, name
        assert copy.get_params() == update.get_params(), name


@pytest.fixture(scope="module")
def twice_as_many_rows():
    data = make_biased(2 * N, bias=1.5, n_categories=3, random_state=0)
    X = with_gaps(data.data).assign(score=data.proba_target)
    return X, data.target, np.asarray(data.sensitive_features)


@every_method
def test_the_check_for_methods_of_ones_own_passes(name, twice_as_many_rows):
    X, y, group = twice_as_many_rows  # it fits on half of them
    if not hasattr(METHODS[name], "epochs"):  # these compile no program for a number of rows
        X, y, group = X[:N], y[:N], group[:N]
    check_rival(made(name), X, y, sensitive_features=group)


class Careless(RejectOption):
    """Break one rule of the contract."""

    broken = "neutral"

    @property
    def default_strengths(self):
        return (0.1, 0.2) if self.broken == "sweep" else super().default_strengths

    def _decide(self, rows):
        decided = super()._decide(rows)
        return {
            "neutral": ~decided,
            "shape": decided[:-1] if self.strength else decided,
            "range": decided * 2.0 if self.strength else decided,
            "probabilities": np.where(decided, 0.7, 0.0) if self.strength else decided,
            "order": decided ^ (np.arange(len(rows)) == 0) if self.strength else decided,
            "unknown": decided | (rows.group < 0) if self.strength else decided,
            "sweep": decided,
        }[self.broken]


BROKEN = [
    ("neutral", "strength=0 must change nothing"),
    ("shape", r"must return shape \(240,\)"),
    ("range", "probabilities between 0 and 1"),
    ("probabilities", "sets randomised=True"),
    ("order", "depend on its row alone"),
    ("unknown", "must keep its base decisions"),
    ("sweep", "must rise from 0"),
]


def test_the_check_finds_what_is_broken(rows, monkeypatch):
    X, y, group = rows
    for broken, message in BROKEN:
        monkeypatch.setattr(Careless, "broken", broken)
        with pytest.raises((AssertionError, ValueError), match=message):
            check_rival(Careless(ScoreColumn("score")), X, y, sensitive_features=group)


# ---------------------------------------------------------------------------------------------
# Who knows the group


def test_tags_say_what_predicting_needs():
    aware = {name for name in NAMES if name.endswith("(aware)")} | {
        "RejectOption",
        "ModifiedNaiveBayes",
        "MinimalFlip",
        "RelaxedThresholdOptimizer",
        "ThresholdOptimizer",
        "CalibratedEqualizedOdds",
        "WassersteinPostProcessing",
    }
    tags = {name: get_tags(update) for name, update in METHODS.items()}
    assert {name for name in NAMES if tags[name].needs_sensitive_features} == aware
    assert not get_tags(COMMOD(None)).needs_sensitive_features


def test_a_group_never_seen_keeps_its_base_decisions_with_a_warning(rows):
    X, _, group = rows
    update = fit(RejectOption(ScoreColumn("score"), strength=0.3), rows)
    new = np.where(np.arange(len(X)) < 50, "new", group.astype(str))
    update = update.fit(X, rows[1], sensitive_features=group.astype(str))
    with pytest.warns(DataWarning, match="nothing about the group.* 'new'"):
        decided = update.predict(X, sensitive_features=new)
    assert (decided[:50] == (X["score"] > 0.5)[:50]).all()


def test_sensitive_columns_in_another_order_and_groups_nobody_knows_are_refused(rows):
    X, y, group = rows
    both = pd.DataFrame({"a": group, "b": np.arange(len(X)) % 2})
    update = MinimalFlip(ScoreColumn("score")).fit(X, y, sensitive_features=both)
    with pytest.raises(InputError, match=r"has the columns b, a, but .* with a, b"):
        update.predict(X, sensitive_features=both[["b", "a"]])
    update.fit(X, y, sensitive_features=np.arange(len(X)) % 2)
    with pytest.raises(InputError, match=r"none of the groups .*; got '0', '1'"):
        update.predict(X, sensitive_features=(np.arange(len(X)) % 2).astype(str))


def test_an_aware_update_is_scored_and_cross_validated_with_its_groups(data):
    X = data.data.select_dtypes("number")
    model = LogisticRegression().fit(X, data.target)
    group = np.asarray(data.sensitive_features)
    with sklearn.config_context(enable_metadata_routing=True):
        update = RejectOption(model).set_fit_request(sensitive_features=True)
        update.set_score_request(sensitive_features=True)
        accuracies = cross_val_score(
            update, X, data.target, params={"sensitive_features": group}, error_score="raise"
        )
    assert (accuracies > 0.5).all()


def test_the_sensitive_attribute_can_be_routed_to_predict():
    update = RejectOption(ScoreColumn("score"))
    assert "sensitive_features" in update.get_metadata_routing().predict.requests
    assert "sensitive_features" not in methods(None)["FRAPPE"].get_metadata_routing()\
        .predict.requests  # fmt: skip


# ---------------------------------------------------------------------------------------------
# Random draws


def test_a_random_draw_belongs_to_its_row():
    def draws(seed, order=slice(None)):
        ages = np.array([30.0, 40.0, np.nan, 40.0])[order]
        towns = Column("town", "category", np.array([0, 1, -1, 1])[order], ("a", "b"))
        return random_draws([Column("age", "numeric", ages), towns], np.full(len(ages), 0.5), seed)

    first = draws(1)
    assert random_draws([], np.array([0.5, 0.5 + 1e-16]), 1)[:1] == random_draws(
        [], np.array([0.5]), 1
    )
    assert first[1] == first[3]
    assert len(set(first)) == 3
    assert (draws(1, slice(None, None, -1)) == first[::-1]).all()
    assert (draws(2) != first).all()
    coded_otherwise = Column("town", "category", np.array([1, 0, -1, 0]), ("b", "a"))
    ages = Column("age", "numeric", np.array([30.0, 40.0, np.nan, 40.0]))
    assert (random_draws([ages, coded_otherwise], np.full(4, 0.5), 1) == first).all()


def test_random_draws_are_uniform():
    values = Column("x", "numeric", np.arange(100_000.0))
    draws = random_draws([values], np.full(100_000, 0.5), 0)
    assert np.histogram(draws, 20, (0, 1))[0] == pytest.approx(5_000, rel=0.06)
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.02


def test_random_draws_keep_their_probabilities():
    """Random draws split ties at a cut: of many rows with one score, the required share."""
    n = 30_000
    group = np.arange(n) % 2
    tied = np.where(np.arange(n) < 28_000, 0.45, 0.7)  # group 0 has 14,000 ties, as has group 1
    X = pd.DataFrame({"score": np.where(group == 1, tied + 0.1, tied), "row": np.arange(float(n))})
    update = MinimalFlip(ScoreColumn("score"), strength=0.5).fit(X, sensitive_features=group)
    probability = update.decision_proba(X, sensitive_features=group)
    between = (probability > 0) & (probability < 1)
    assert between.sum() == 14_000
    drawn = update.predict(X, sensitive_features=group)[between]
    assert drawn.mean() == pytest.approx(probability[between][0], abs=0.02)


def test_a_generator_as_random_state_is_asked_once(rows):
    X, y, group = rows
    update = MinimalFlip(ScoreColumn("score"), constraints="equalized_odds",
                         random_state=np.random.RandomState(0))  # fmt: skip
    update.fit(X, y, sensitive_features=group)
    first = update.predict(X, sensitive_features=group)
    assert (update.predict(X, sensitive_features=group) == first).all()


# ---------------------------------------------------------------------------------------------
# Other rules


def test_strength_sets_the_target_between_base_and_parity():
    assert get_constraint("demographic_parity").towards_ideal(0.4, 0) == 0.4
    assert get_constraint("demographic_parity").towards_ideal(0.4, 1) == 1
    assert get_constraint("equalized_odds").towards_ideal(0.4, 0.5) == 0.2


def test_lineups_and_stored_updates_need_no_jax_and_no_fairlearn(rows, strongest, tmp_path):
    X = rows[0].head(60)
    names = ("AdversarialDebiasing", "FRAPPE", "RNF")
    kinds = ("mlp", "concepts")  # their layers are read alike, trained or not
    others = [fit(made("FRAPPE", architecture=kind, epochs=0), rows) for kind in kinds]
    updates = [*map(strongest, names), *others]
    (tmp_path / "updates.pkl").write_bytes(pickle.dumps((updates, X)))
    code = f"""
import pickle, sys
from commod.rivals import lineup
lineup(None)
assert not {{"jax", "fairlearn", "matplotlib"}} & set(sys.modules)
updates, X = pickle.load(open({str(tmp_path / "updates.pkl")!r}, "rb"))
print(b"".join(update.predict_proba(X).tobytes() for update in updates).hex())
assert not {{"jax", "fairlearn", "matplotlib"}} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    expected = b"".join(update.predict_proba(X).tobytes() for update in updates)
    assert done.stdout.strip() == expected.hex(), done.stderr


def test_without_fairlearn_the_error_names_the_extra(rows, monkeypatch):
    from commod.rivals import ThresholdOptimizer

    monkeypatch.setitem(sys.modules, "fairlearn", None)
    with pytest.raises(ImportError, match=r"commod-debiasing\[fairlearn\]"):
        fit(ThresholdOptimizer(ScoreColumn("score")), rows)


def test_a_small_group_keeps_its_base_decisions(rows):
    X, y, group = rows
    group = group.astype(object)
    group[:10] = "few"
    for name in ("LPP (aware)", "MinimalFlip", "RejectOption", "ThresholdOptimizer"):
        update = strong(made(name))
        with pytest.warns(DataWarning, match=r"few \(10 rows\)"):
            update.fit(X, y, sensitive_features=group.astype(str))
        with pytest.warns(DataWarning, match="'few'"):
            decided = update.predict(X, sensitive_features=group.astype(str))
        assert (decided[:10] == (X["score"] > 0.5)[:10]).all()


def test_a_rival_has_strengths_not_targets(rows):
    X, y, group = rows
    with pytest.raises(InputError, match=r"grid=\{'strength'"):
        frontier(LPP(ScoreColumn("score")), X, y, sensitive_features=group, targets=[0.8])
    with pytest.raises(InputError, match="may hold strength; got lambda"):
        frontier(LPP(ScoreColumn("score")), X, y, sensitive_features=group, grid={"lambda": [1]})
