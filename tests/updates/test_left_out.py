"""Groups below min_group_size: named to the user with sizes and rates, counted in every file."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from commod import TRUSTED_TYPES, ScoreColumn, audit, metrics
from commod.datasets import make_biased
from commod.exceptions import CommodWarning, DataWarning
from commod.rivals import lineup
from quick_updates import quick_control

N = 600
SECRETS = ("sentinel-a-few", "sentinel-b-hidden", "sentinel-c-compared")


def people(n_few=25, n_hidden=3, seed=0):
    """Return rows of two large groups, one of `n_few` people and one of `n_hidden`."""
    data = make_biased(N, random_state=seed)
    X = data.data.assign(
        score=LogisticRegression().fit(data.data, data.target).predict_proba(data.data)[:, 1]
    )
    large = np.where(np.asarray(data.sensitive_features) == "g0", SECRETS[2], "other")
    groups = large.astype(object)
    groups[:n_few] = SECRETS[0]
    groups[n_few : n_few + n_hidden] = SECRETS[1]
    X.loc[: n_few - 1, "score"] = np.linspace(0.1, 0.4, n_few)  # nobody of them is positive
    return X, data.target, groups


def quiet(update, X, y, groups, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        return update.fit(X, y, sensitive_features=groups, **more)


def rate(labels, mask):
    return float(np.mean(np.asarray(labels)[mask] == 1))


@pytest.fixture(scope="module")
def rows():
    return people()


@pytest.fixture(scope="module")
def update(rows):
    return quiet(quick_control(ScoreColumn("score"), target=0.8), *rows)


def test_status_names_the_groups_left_out_with_sizes_and_rates(update, rows):
    X, _, groups = rows
    few, hidden = update.groups_left_out_
    inside = groups == SECRETS[0]
    after = update.predict(X)
    assert (few.name, few.n, few.rate_before) == (SECRETS[0], 25, 0.0)
    assert few.rate_after == rate(after, inside)
    assert (hidden.name, hidden.n) == (SECRETS[1], 3)
    assert hidden.rate_before is hidden.rate_after is None
    assert f"{SECRETS[0]} (25 rows, rate 0.0% → {few.rate_after:.1%})" in update.status_
    assert f"{SECRETS[1]} (3 rows, rate not shown)" in update.status_
    assert (
        "on the fit rows for the groups other, sentinel-c-compared. It is reached."
        in update.status_
    )


def test_status_states_the_metric_over_all_groups(update, rows):
    X, _, groups = rows
    shown = groups != SECRETS[1]  # a rate of three people would be revealed
    value = metrics.p_rule(None, update.predict(X)[shown], sensitive_features=groups[shown])
    text = f"Over the 3 groups of at least 5 rows, the P-rule of label 1 is {value:.3f}."
    assert value < 0.8 <= update.fairness_
    assert text in update.status_


def test_with_enough_people_in_every_group_the_metric_is_over_all_of_them():
    X, y, groups = people(n_hidden=0)
    update = quiet(quick_control(ScoreColumn("score"), target=0.8), X, y, groups)
    value = metrics.p_rule(None, update.predict(X), sensitive_features=groups)
    assert f"Over all 3 groups, the P-rule of label 1 is {value:.3f}." in update.status_


def test_nothing_is_said_where_no_group_is_left_out():
    X, y, groups = people(n_few=0, n_hidden=0)
    update = quiet(quick_control(ScoreColumn("score"), target=0.8), X, y, groups)
    assert update.groups_left_out_ == ()
    assert "left out" not in update.status_
    assert not any(name in update.status_ for name in SECRETS[:2])


def test_every_update_says_it(rows):
    offenders = []
    for name, model in lineup(ScoreColumn("score"), random_state=0).items():
        if hasattr(model, "epochs"):
            model.set_params(epochs=0)
        quiet(model, *rows)
        left_out = [(group.name, group.n) for group in model.groups_left_out_]
        data = pickle.dumps(model)
        is_said = (
            left_out == [(SECRETS[0], 25), (SECRETS[1], 3)]
            and SECRETS[0] in model.status_
            and "P-rule of label 1 is" in model.status_
            and not any(secret.encode() in data for secret in SECRETS[:2])
        )
        if not is_said:
            offenders.append(name)
    assert offenders == []


def test_weights_count_in_the_rates(rows):
    X, _, groups = rows
    weight = np.where(np.arange(N) % 2, 3.0, 1.0)
    update = quick_control(ScoreColumn("score"), target=0.8)
    quiet(update, *rows, sample_weight=weight)
    few = groups == SECRETS[0]
    assert update.groups_left_out_[0].rate_after == pytest.approx(
        np.average(update.predict(X)[few], weights=weight[few])
    )


def test_a_list_of_many_groups_is_capped():
    X, y, groups = people(n_few=0, n_hidden=0)
    groups[:90] = [f"small {i // 10}" for i in range(90)]
    update = quiet(quick_control(ScoreColumn("score"), target=0.6), X, y, groups)
    assert len(update.groups_left_out_) == 9
    assert "9 groups" in update.status_ and "and 3 more" in update.status_
    assert "small 5" in update.status_ and "small 6" not in update.status_


def test_intersections_are_named_with_their_columns():
    X, y, groups = people(n_few=0, n_hidden=0)
    age = np.where(np.arange(N) < 8, "old", "young")
    table = pd.DataFrame({"race": groups.astype(str), "age": age})
    update = quiet(quick_control(ScoreColumn("score"), target=0.6), X, y, table)
    assert "race = other, age = old (" in update.status_


def test_the_other_constraints_say_it_too(rows):
    X, y, groups = rows
    update = quick_control(
        ScoreColumn("score"), constraints="true_positive_rate_parity", target=0.2, points="per unit"
    )
    quiet(update, X, y, groups)
    shown = groups != SECRETS[1]
    value = metrics.true_positive_rate_difference(
        np.asarray(y)[shown], update.predict(X)[shown], sensitive_features=groups[shown]
    )
    assert f"the TPR gap of label 1 is {value:.3f}." in update.status_


# -- promises -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def promised():
    data = make_biased(2400, bias=1.0, group_shares=(0.5, 0.5), random_state=4)
    model = LogisticRegression().fit(data.data[:400], data.target[:400])
    groups = np.asarray(data.sensitive_features[400:], dtype=object)
    groups[:25] = SECRETS[0]
    groups[25:69] = "forty"  # enough on all rows; 22 in the held-out half
    update = quick_control(model, confidence=0.6, target=0.4)
    return quiet(update, data.data[400:], data.target[400:], groups), data, groups


def test_a_promise_names_in_one_sentence_whom_it_covers_and_whom_not(promised):
    update, _, _ = promised
    assert update.promised_
    assert "is promised for new people with confidence 0.6" in update.status_
    covered = update.status_.split("for the groups ")[1].split(". ")[0]
    covered, not_covered = covered.split(", but not for ")
    assert "forty (22 held-out rows)" in covered and SECRETS[0] not in covered
    assert not_covered == SECRETS[0]
    assert {"g0", "g1"} <= {part.split(" (")[0] for part in covered.split(", ")}


def test_a_promise_counts_small_groups_on_all_rows(promised):
    update, data, groups = promised
    (few,) = update.groups_left_out_
    inside = np.flatnonzero(groups == SECRETS[0])
    assert few.n == 25, "not the 12 or 13 of the held-out half"
    assert few.rate_after == rate(update.predict(data.data[400:].iloc[inside]), slice(None))
    assert f"{SECRETS[0]} (25 rows, rate" in update.status_


# -- files hold counts, no name and no rate -------------------------------------------------------


def secrets_in(data):
    return [secret for secret in (*SECRETS, "forty") if secret.encode() in data]


def test_no_file_of_an_update_names_a_group(update, promised):
    skops_io = pytest.importorskip("skops.io")
    for fitted in (update, promised[0]):
        before = fitted.status_
        patch = fitted.to_patch()
        few = fitted.groups_left_out_[0]
        texts = [patch.to_json(), str(patch), patch.to_sql("duckdb", table="t", score="score")]
        assert secrets_in(pickle.dumps(fitted)) == []
        stored = skops_io.dumps(fitted)
        assert secrets_in(stored) == []
        loaded = skops_io.loads(stored, trusted=list(TRUSTED_TYPES))
        assert [g.n for g in loaded.groups_left_out_] == [g.n for g in fitted.groups_left_out_]
        assert secrets_in("".join(texts).encode()) == []
        words = patch.content.reached.in_words
        assert f"rate {few.rate_before:.1%}" not in words and "Over" not in words
        n_rows = sum(group.n for group in fitted.groups_left_out_)
        assert f"({n_rows} rows in all)" in words
        assert fitted.status_ == before, "the update in memory still names them"


def test_a_saved_update_keeps_the_counts_and_the_same_patch(update, promised):
    for fitted in (update, promised[0]):
        loaded = pickle.loads(pickle.dumps(fitted))
        assert [g.n for g in loaded.groups_left_out_] == [g.n for g in fitted.groups_left_out_]
        assert {(g.name, g.rate_after) for g in loaded.groups_left_out_} == {("", None)}
        words = fitted.to_patch().content.reached.in_words
        assert loaded.status_ == words == loaded.to_patch().content.reached.in_words


@pytest.mark.parametrize("more", [{}, {"confidence": 0.9}])
def test_the_totals_of_a_patch_do_not_count_people_of_very_small_groups(rows, more):
    """A report leaves them out, so the difference would reveal their decisions and labels."""
    X, y, groups = rows
    hidden = groups == SECRETS[1]
    found = set()
    for labels in (y, np.where(hidden, 1 - np.asarray(y), y)):
        update = quick_control(ScoreColumn("score"), target=0.8, **more)
        quiet(update, X, labels, groups)
        found.add(repr(update.to_patch().content.reached))
        assert "Groups of fewer than 5 rows are in no total; they have 3 rows." in update.status_
    assert len(found) == 1
    if not more:
        shown = np.asarray(y)[~hidden] == update.predict(X)[~hidden]
        assert update.n_rows_ == (~hidden).sum()
        assert update.accuracy_ == pytest.approx(shown.mean())
        assert update.change_rate_ == update.changes(X).changed[~hidden].mean()


def test_an_audit_of_the_fit_rows_has_the_figures_of_the_patch(update, rows):
    X, y, groups = rows
    before, after = (X["score"] > 0.5).astype(int), update.predict(X)
    request = update.request()
    result = audit(before, after, sensitive_features=groups, y_true=y, request=request)
    shipped = update.to_patch().with_audit(result).shipped_with(result)
    assert shipped.same_figures and shipped.n_test_rows == shipped.n_figure_rows == N - 3


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_in_memory_still_names_the_groups(update, copied):
    twin = copied(update)
    assert twin.status_ == update.status_
    assert twin.groups_left_out_ == update.groups_left_out_


@settings(max_examples=4)
@given(text=st.text(max_size=30))
def test_no_name_survives_saving_whatever_it_is(text):
    name = f"sentinel {text}"
    X, y, groups = people(n_few=20, n_hidden=0)
    groups = np.where(groups == SECRETS[2], "compared", groups)
    groups[:20] = name
    update = quiet(quick_control(ScoreColumn("score"), target=0.5), X, y, groups)
    assert update.groups_left_out_[0].name == name
    assert b"sentinel" not in pickle.dumps(update)


def test_with_confidence_groups_left_out_are_measured_with_the_terms_of_the_fit_half():
    """All rows have other categories and bins than the half that the points belong to."""
    data = make_biased(400, n_categories=4, random_state=0)
    numbers = data.data.select_dtypes("number")
    model = LogisticRegression().fit(numbers, data.target)
    X = data.data.assign(score=model.predict_proba(numbers)[:, 1])
    groups = np.asarray(data.sensitive_features, dtype=object)
    groups[:12] = SECRETS[0]
    update = quick_control(ScoreColumn("score"), target=0.9, confidence=0.6, points="per bin")
    quiet(update, X, data.target, groups)
    (few,) = update.groups_left_out_
    assert few.rate_after == rate(update.predict(X), groups == SECRETS[0])


def test_with_confidence_the_metric_over_all_groups_names_its_rows(rows):
    """It is measured on both halves, and the other figures on the held-out half."""
    X, y, groups = rows
    update = quick_control(ScoreColumn("score"), target=0.6, confidence=0.8)
    quiet(update, X, y, groups)
    shown = groups != SECRETS[1]
    value = metrics.p_rule(None, update.predict(X)[shown], sensitive_features=groups[shown])
    text = f"Over the 3 groups of at least 5 rows, the P-rule of label 1 is {value:.3f}"
    assert f"{text} on the {N} rows of both halves." in update.status_


def test_names_with_commas_are_listed_with_semicolons():
    X, y, groups = people(n_few=0, n_hidden=0)
    age = np.where(np.arange(N) < 16, "old", "young")
    table = pd.DataFrame({"race": groups.astype(str), "age": age})
    with pytest.warns(CommodWarning, match="left out") as caught:
        update = quick_control(ScoreColumn("score"), target=0.6)
        update.fit(X, y, sensitive_features=table)
    covered = "race = other, age = young; race = sentinel-c-compared, age = young."
    assert f"for the groups {covered}" in update.status_
    left_out = update.status_.split("left out of the constraint: ")[1].split(". ")[0]
    assert left_out.startswith("race = other, age = old (") and "; race = sentinel" in left_out
    assert "race = other, age = old (" in str(caught[0].message)


def test_the_smallest_cell_is_named_to_the_user_and_not_in_files(rows):
    """The fit rows keep the target, but as many new people are not expected to."""
    told = {"target": 0.91, "direction": "gains_only", "target_on": "new_rows"}
    X, y, groups = rows
    groups = np.where(groups == "other", SECRETS[2], "another")
    update = quiet(quick_control(ScoreColumn("score"), **told), X[:300], y[:300], groups[:300])
    assert (
        not update.reached_
        and "smallest part that is compared, group 'sentinel-c" in update.status_
    )
    words = update.to_patch().content.reached.in_words
    assert "The smallest part that is compared has " in words and not secrets_in(words.encode())


def test_a_group_may_be_left_out_of_a_constraint_with_a_condition():
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b", "few"], 700, p=[0.5, 0.47, 0.03])
    score = np.clip(rng.normal(0.55 - 0.15 * (group == "b"), 0.2), 0.01, 0.99)
    hint, town = (group == "b") + rng.normal(0, 1, 700), rng.choice(["x", "y"], 700)
    X = pd.DataFrame({"hint": hint, "town": town, "score": score})
    asked = {"constraints": "demographic_parity within town", "target": 0.8}
    with pytest.warns(DataWarning, match="few .* is left out|left out of the constraint: few"):
        update = quick_control(ScoreColumn("score"), **asked).fit(X, sensitive_features=group)
    assert [one.name for one in update.groups_left_out_] == ["few"]
    assert "left out of the constraint: few" in update.status_
    assert "Over all" not in update.status_
