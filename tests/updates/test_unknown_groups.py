"""Updates whose groups are partly known: missing groups, and probabilities of groups."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from commod import (
    COMMOD,
    ControlledDebiaser,
    ScoreColumn,
    audit,
    audit_frame,
    compare,
    frontier,
    metrics,
    stability,
)
from commod._words.update import further_sentences
from commod.constraints import DemographicParity, MinimumRate, MinimumTruePositiveRate
from commod.datasets import make_biased
from commod.exceptions import InputError
from commod.rivals import LPP
from commod.updates._problem import proven_limit
from commod.updates._status import smallest_cell
from quick_updates import quick_control

ERRORS = "equalized_odds"


@pytest.fixture(scope="module")
def people():
    return make_biased(1200, random_state=1)


@pytest.fixture(scope="module")
def model():
    own = make_biased(1000, random_state=0)
    return LogisticRegression().fit(own.data, own.target)


@pytest.fixture(scope="module")
def partly_known(people):
    """Return the groups, of which half are missing at random."""
    groups = people.sensitive_features.astype(object).copy()
    groups[np.random.default_rng(0).random(len(groups)) < 0.5] = None
    return groups


@pytest.fixture(scope="module")
def ignoring(model, people, partly_known):
    update = quick_control(model, unknown_groups="ignore")
    return update.fit(people.data, people.target, sensitive_features=partly_known)


# -- missing groups --------------------------------------------------------------------------------


def test_rates_come_from_the_known_rows_and_changes_count_all(ignoring, people, partly_known):
    known = partly_known.notna().to_numpy()
    decisions = ignoring.predict(people.data)
    groups = {"sensitive_features": partly_known[known]}
    assert ignoring.fairness_ == metrics.p_rule(None, decisions[known], **groups) >= 0.8
    changed = decisions != ignoring.estimator.predict(people.data)
    assert ignoring.change_rate_ == changed.mean()
    assert ignoring.accuracy_ == np.mean(decisions == people.target)
    assert (ignoring.unknown_groups_.n_known, ignoring.n_rows_) == (known.sum(), len(known))
    assert ignoring.unknown_groups_.change_rate == changed[known].mean()


def test_the_limit_is_that_of_the_known_rows(ignoring, model, people, partly_known):
    known = partly_known.notna().to_numpy()
    rows = people.data[known], people.target[known], partly_known[known], None
    limit = quick_control(model)._prepare(*rows).limit(ignoring.fairness_)
    assert ignoring.unknown_groups_.limit == pytest.approx(limit)
    assert ignoring.unknown_groups_.change_rate >= ignoring.unknown_groups_.limit
    assert ignoring.change_rate_ >= ignoring.limit_ > 0
    assert (
        f"Among them {ignoring.unknown_groups_.change_rate:.1%} change"
        in further_sentences(ignoring._facts)[-1]
    )


def test_the_status_says_on_how_many_people_it_rests_and_what_the_others_could_be(
    ignoring, people, partly_known
):
    low, high = ignoring.unknown_groups_.worst_case
    n_known = ignoring.unknown_groups_.n_known
    assert f"counts only the {n_known:,} rows with a known group" in ignoring.status_
    assert f"between {low:.3f} and {high:.3f}. Both ends can occur." in ignoring.status_
    decisions = ignoring.predict(people.data)
    for random_state in range(5):
        drawn = partly_known.copy()
        is_missing = drawn.isna()
        drawn[is_missing] = np.random.default_rng(random_state).choice(
            ["g0", "g1"], is_missing.sum()
        )
        assert low <= metrics.p_rule(None, decisions, sensitive_features=drawn) <= high
    truth = metrics.p_rule(None, decisions, sensitive_features=people.sensitive_features)
    assert low <= truth <= high
    assert ignoring.groups_left_out_ == ()


def test_missing_groups_are_refused_unless_they_are_to_be_ignored(model, people, partly_known):
    rows = {"sensitive_features": partly_known}
    for update in (ControlledDebiaser(model), COMMOD(model)):
        with pytest.raises(InputError, match=r"missing values .*unknown_groups='ignore'"):
            update.fit(people.data, people.target, **rows)
    with pytest.raises(InputError, match="unknown_groups"):
        ControlledDebiaser(model, unknown_groups="drop").fit(people.data, people.target, **rows)


# -- probabilities ---------------------------------------------------------------------------------


def test_certain_probabilities_are_groups(model, people):
    rows = people.data, people.target
    certain = pd.get_dummies(people.sensitive_features).astype(float)
    known = quick_control(model).fit(*rows, sensitive_features=people.sensitive_features)
    update = quick_control(model).fit(*rows, sensitive_probabilities=certain)
    np.testing.assert_array_equal(update.predict(people.data), known.predict(people.data))
    assert update.fairness_ == pytest.approx(known.fairness_)
    assert update.limit_ == pytest.approx(known.limit_, abs=2 / len(people.data))
    assert update.unknown_groups_.n_known == len(people.data)
    assert update.unknown_groups_.calibrated == pytest.approx((known.fairness_,) * 2)


@pytest.fixture(scope="module")
def probable(model, people):
    return quick_control(model).fit(
        people.data, people.target, sensitive_probabilities=people.proba_sensitive
    )


def test_rates_are_expectations(probable, people):
    positive = probable.predict(people.data) == 1
    shares = people.proba_sensitive
    rates = positive @ shares / shares.sum(axis=0)
    assert probable.fairness_ == pytest.approx(rates.min() / rates.max())
    assert probable.fairness_ >= 0.8
    assert probable.change_rate_ >= probable.limit_ > 0
    assert probable.unknown_groups_.n_known == 0
    low, high = probable.unknown_groups_.calibrated
    truth = metrics.p_rule(None, positive * 1, sensitive_features=people.sensitive_features)
    assert 0 < low < probable.fairness_ < high < 1
    assert low <= truth <= high
    assert f"between {low:.3f} and {high:.3f}" in probable.status_
    assert probable.unknown_groups_.worst_case == (0.0, 1.0)


@pytest.mark.parametrize("known", ["half of the groups", "probabilities"])
def test_a_target_for_new_people_is_expected_and_near(model, people, partly_known, known):
    groups = {"sensitive_probabilities": people.proba_sensitive}
    if known == "half of the groups":
        groups = {"sensitive_features": partly_known}
    update = ControlledDebiaser(model, target=0.8, unknown_groups="ignore")
    update.fit(people.data, people.target, **groups)
    assert update.reached_ and update.expected_.fairness >= 0.8
    new = make_biased(20_000, random_state=3)
    decided = update.predict(new.data)
    reached = metrics.p_rule(None, decided, sensitive_features=new.sensitive_features)
    low, high = update.expected_.interval
    assert low <= reached <= high
    assert reached == pytest.approx(update.expected_.fairness, abs=0.06)
    changed = np.mean(decided != model.predict(new.data))
    assert changed == pytest.approx(update.expected_.change_rate, abs=0.03)


@pytest.mark.parametrize("constraints", ["demographic_parity", ERRORS])
def test_the_limit_under_probabilities_is_below_every_set_of_changes(constraints):
    random = np.random.default_rng(3)
    n = 12
    X = pd.DataFrame({"score": np.linspace(0.05, 0.95, n), "x": random.normal(size=n)})
    y = np.tile([0, 1], n // 2)
    shares = random.dirichlet([1.0, 1.0], n)
    target = 0.9 if constraints == "demographic_parity" else 0.1
    from commod import ScoreColumn

    update = quick_control(
        ScoreColumn("score"),
        constraints=constraints,
        target=target,
        min_group_size=1,
        points="per unit",
    )
    groups = update_groups(shares)
    problem = update._prepare(X, y, groups, None)
    before = X["score"].to_numpy() > 0.5
    rows = [y == 1, y == 0] if constraints == ERRORS else [np.ones(n, bool)]

    def is_met(after):
        rates = [(after[r] @ shares[r]) / shares[r].sum(axis=0) for r in rows]
        if constraints == ERRORS:
            return sum(np.ptp(rate) for rate in rates) <= target
        return rates[0].min() >= target * rates[0].max() > 0

    fewest = min(
        sum(changed)
        for changed in itertools.product([False, True], repeat=n)
        if is_met(before ^ np.array(changed))
    )
    limit = proven_limit(problem, target) * n
    assert fewest - 3 <= round(limit) <= fewest  # at most as many people change in part


def test_nobody_changes_twice_for_the_limit_under_probabilities(model, people):
    """Few are near the threshold: all of them are not enough, but each counted twice would be."""
    certain = pd.get_dummies(people.sensitive_features).astype(float).to_numpy()
    update = quick_control(model, max_margin=0.03, direction="gains_only")
    problem = update._prepare(people.data, people.target, update_groups(certain), None)
    certain = problem.rows.probabilities  # a fit orders the rows by their hashes
    rates = problem.rows.base.decisions @ certain / certain.sum(axis=0)
    lower = certain[:, rates.argmin()]
    gained = (problem.may_change @ lower) / lower.sum()
    assert 0 < rates.min() + 2 * gained < rates.max()
    assert np.isinf(proven_limit(problem, (rates.min() + 1.5 * gained) / rates.max()))
    assert 0 < proven_limit(problem, (rates.min() + 0.5 * gained) / rates.max()) < gained


def update_groups(shares):
    from commod._data.groups import read_group_probabilities

    return read_group_probabilities(shares)


@pytest.mark.parametrize(
    ("settings", "arguments", "words"),
    [
        ({"confidence": 0.9}, {}, "confidence and sensitive_probabilities"),
        ({}, {"sensitive_features": "all"}, "both given"),
        ({}, {"sensitive_probabilities": np.full((5, 2), 0.5)}, "sensitive_probabilities has 5"),
        ({"min_group_size": 1200}, {}, "of at least min_group_size"),
    ],
)
def test_bad_requests_name_the_reason(model, people, settings, arguments, words):
    given = {"sensitive_probabilities": people.proba_sensitive, **arguments}
    if "sensitive_features" in given:
        given["sensitive_features"] = people.sensitive_features
    with pytest.raises(InputError, match=words):
        ControlledDebiaser(model, **settings).fit(people.data, people.target, **given)


def test_a_small_group_is_left_out_by_its_expected_size(model, people):
    shares = np.column_stack([people.proba_sensitive * 0.99, np.full(len(people.data), 0.01)])
    table = pd.DataFrame(shares, columns=["a", "b", "few"])
    with pytest.warns(UserWarning, match="few"):
        update = quick_control(model).fit(people.data, people.target, sensitive_probabilities=table)
    assert [(group.name, group.n) for group in update.groups_left_out_] == [("few", 12)]


# -- audits ----------------------------------------------------------------------------------------


def test_an_audit_counts_everybody_and_compares_the_known(ignoring, people, partly_known):
    known = partly_known.notna().to_numpy()
    before, after = ignoring.estimator.predict(people.data), ignoring.predict(people.data)
    both = {"y_true": people.target, "X": people.data}
    whole = audit(
        before,
        after,
        sensitive_features=partly_known,
        unknown_groups="ignore",
        sensitive_in_ledger=True,
        **both,
    )
    part = audit(
        before[known],
        after[known],
        sensitive_features=partly_known[known],
        y_true=people.target[known],
        X=people.data[known],
    )
    assert whole.fairness == part.fairness
    assert whole.groups == part.groups
    assert whole.subgroups == part.subgroups
    assert whole.proxies == part.proxies
    assert whole.limit == part.limit
    assert whole.n == len(people.data)
    assert whole.changes.n_changes == np.sum(before != after) == len(whole.ledger)
    assert whole.quality.accuracy_after.value == np.mean(after == people.target)
    unknown = whole.unknown_groups
    assert (unknown.n_known, unknown.n_unknown) == (known.sum(), (~known).sum())
    interval = ignoring.unknown_groups_.worst_case
    assert (unknown.low_after, unknown.high_after) == pytest.approx(interval)
    words = f"For {unknown.n_unknown:,} people, the group is not known"
    assert any(words in text for text in whole.answer)
    assert type(whole).from_json(whole.to_json()) == whole
    with pytest.raises(InputError, match="unknown_groups='ignore'"):
        audit(before, after, sensitive_features=partly_known)


def test_constraints_without_an_interval_over_the_unknown_groups_say_so(
    model, people, partly_known
):
    constraints = DemographicParity(ratio=0.7) & MinimumRate(0.3)
    update = quick_control(model, constraints=constraints, unknown_groups="ignore")
    update = update.fit(people.data, people.target, sensitive_features=partly_known)
    why = "For the lowest selection rate of label 1, no range over the unknown groups is given"
    assert why in further_sentences(update._facts)[-1]
    rows = model.predict(people.data), update.predict(people.data)
    groups = {"sensitive_features": partly_known, "unknown_groups": "ignore"}
    result = audit(*rows, **groups, request={"constraints": constraints})
    assert why in " ".join(result.not_known)
    alone = audit(*rows, **groups, request={"constraints": DemographicParity(ratio=0.7)})
    assert "no range over" not in " ".join(alone.not_known)


def test_an_audit_of_a_frame_counts_the_same(ignoring, people, partly_known):
    before, after = ignoring.estimator.predict(people.data), ignoring.predict(people.data)
    frame = pd.DataFrame({"old": before, "new": after, "sex": partly_known, "y": people.target})
    frame["score"] = ignoring.estimator.predict_proba(people.data)[:, 1]
    columns = {
        "scores_before": "score",
        "before": "old",
        "after": "new",
        "sensitive_features": "sex",
        "y_true": "y",
    }
    counted = audit_frame(frame, **columns, unknown_groups="ignore")
    whole = audit(
        before,
        after,
        sensitive_features=partly_known,
        y_true=people.target,
        unknown_groups="ignore",
    )
    assert counted.fairness == whole.fairness
    assert counted.changes == whole.changes
    assert counted.unknown_groups == whole.unknown_groups
    assert [group.n for group in counted.groups] == [group.n for group in whole.groups]


# -- found by trying -------------------------------------------------------------------------------


def test_few_rows_of_unknown_groups_are_in_no_total(model, people):
    groups = people.sensitive_features.astype(object).copy()
    groups[:3] = None
    update = quick_control(model, unknown_groups="ignore")
    update.fit(people.data, people.target, sensitive_features=groups)
    decisions = update.predict(people.data)
    changed = decisions[3:] != model.predict(people.data[3:])
    assert update.n_rows_ == len(groups) - 3
    assert update.n_gains_ + update.n_losses_ == changed.sum()
    assert update.accuracy_ == np.mean(decisions[3:] == people.target[3:])
    assert np.isnan(update.unknown_groups_.worst_case).all()
    words = "For 3 rows, the group is not known. These people are so few that they are in no figure"
    assert f"{words} and no total." in update.status_


def test_empty_texts_are_not_taken_for_a_group(model, people):
    for blank in ["", "  "]:
        groups = people.sensitive_features.astype(object).copy()
        groups[:100] = blank
        update = quick_control(model, unknown_groups="ignore")
        with pytest.raises(InputError, match="Replace such texts by None"):
            update.fit(people.data, people.target, sensitive_features=groups)


def test_a_patch_is_verified_where_groups_are_partly_known(ignoring, people, partly_known):
    assert ignoring.to_patch().verify(people.data, partly_known).passed


def test_refits_keep_rows_of_unknown_groups(ignoring, people, partly_known):
    found = stability(
        ignoring, people.data, people.target, sensitive_features=partly_known, n_refits=2
    )
    assert len(found.frame()) > 0


def test_compare_says_why_it_refuses_unknown_groups(model, people, partly_known):
    methods = [quick_control(model, unknown_groups="ignore"), LPP(model)]
    with pytest.raises(InputError, match="or use commod"):
        compare(methods, people.data, people.target, sensitive_features=partly_known)


def test_a_frontier_of_probabilities_is_measured_on_known_people(model, people):
    names = sorted(set(people.sensitive_features))
    given = {"sensitive_probabilities": pd.DataFrame(people.proba_sensitive, columns=names)}
    new = make_biased(1200, random_state=2)
    measured = {"X_eval": new.data, "y_eval": new.target}
    known = {"sensitive_features_eval": new.sensitive_features}
    update = quick_control(model, target=0.8)
    curve = frontier(
        update, people.data, people.target, targets=[0.8], **given, **measured, **known
    )
    fitted = curve.select(target=curve.frame()["fairness"].max())
    alone = quick_control(model, target=0.8).fit(people.data, people.target, **given)
    assert fitted.base_fairness_ == alone.base_fairness_
    decisions = fitted.predict(new.data)
    value = metrics.p_rule(None, decisions, sensitive_features=new.sensitive_features)
    assert curve.frame()["fairness"].max() == value
    with pytest.raises(InputError, match="as X_eval, y_eval and sensitive_features_eval"):
        frontier(update, people.data, people.target, **given)
    with pytest.raises(InputError, match="LPP needs the group of each person"):
        frontier(LPP(model), people.data, people.target, **given, **measured, **known)


def test_an_audit_refuses_probabilities_with_a_way_out(people):
    given = {"sensitive_probabilities": people.proba_sensitive}
    with pytest.raises(InputError, match="unknown_groups='ignore'"):
        audit(people.target, people.target, **given)


def test_the_smallest_cell_is_one_that_a_constraint_compares(model, people):
    X = pd.DataFrame(people.data).add_prefix("x")
    X["score"] = model.predict_proba(people.data)[:, 1]
    X["unit"] = np.where(np.arange(len(X)) % 10, "large", "small")
    X["band"] = np.where(np.arange(len(X)) % 9, "wide", "narrow")
    constraint = DemographicParity(ratio=0.1).within("unit", min_rows=20)
    constraint &= MinimumTruePositiveRate(0.1).within("band", min_rows=10)
    update = quick_control(ScoreColumn("score"), constraints=constraint)
    problem = update._prepare(X, people.target, people.sensitive_features, None, None)
    groups, label = people.sensitive_features, people.target == 1
    sizes = [
        ((X["unit"] == unit) & (groups == group)).sum()
        for unit, group in itertools.product(("small", "large"), set(groups))
    ] + [
        ((X["band"] == band) & (groups == group) & label).sum()
        for band, group in itertools.product(("narrow", "wide"), set(groups))
    ]
    text, n_people = smallest_cell(problem)
    assert n_people == min(sizes)
    assert ("unit" in text) != ("band" in text)
