"""Whom an update changes: extra changes go to people near the threshold, gains come first."""

from __future__ import annotations

import warnings
from functools import cache
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, ScoreColumn, bounds, frontier
from commod.datasets import make_biased
from commod.exceptions import CommodWarning, InputError
from commod.scorecard import DISTANCE_COLUMN
from commod.updates import _sample
from commod.updates._status import whom_texts
from quick_updates import quick_control

SEEDS = (0, 1, 2)


@cache
def table(seed=0, n=700):
    """Return X with a column of scores, y and groups; the base model has seen other rows."""
    data = make_biased(n + 300, n_features=4, random_state=seed)
    model = LogisticRegression().fit(data.data[:300], data.target[:300])
    X = data.data[300:].reset_index(drop=True)
    y, s = (np.asarray(values)[300:] for values in (data.target, data.sensitive_features))
    return X.assign(score=model.predict_proba(X)[:, 1]), y, s


def fit(rows, change_cost=None, **params):
    X, y, s = rows
    asked = {"target": 0.8, "borderline": 0.1, "progress": False, "random_state": 0}
    update = quick_control(ScoreColumn("score"), **{**asked, **params})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        return update.fit(X, y, sensitive_features=s, change_cost=change_cost)


def distance_of_changed(update, X):
    changed = update.changes(X).changed
    return float((X["score"][changed] - 0.5).abs().mean())


# -- borderline -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_extra_changes_go_to_people_nearer_to_the_threshold(seed):
    rows = table(seed)
    fewest, default, doubled = (fit(rows, borderline=b) for b in (0, 0.1, 1))
    distances = [distance_of_changed(update, rows[0]) for update in (fewest, default, doubled)]
    assert distances[0] >= distances[1] >= distances[2] < distances[0]
    shares = [u.outscoring_["gain"]["value"] for u in (fewest, default, doubled)]
    assert shares[1] >= shares[0] - 0.01 and shares[2] > shares[0] + 0.1
    assert all(update.reached_ for update in (fewest, default, doubled))


@pytest.mark.parametrize("borderline", [0, 0.1, 1])
@pytest.mark.parametrize("sparsity", [0, 0.3])
def test_the_extra_changes_stay_within_what_was_stated(borderline, sparsity):
    update = fit(table(), borderline=borderline, sparsity=sparsity)
    most = (1 + sparsity) * (1 + borderline) * update.fewest_change_rate_
    assert update.limit_ <= update.fewest_change_rate_ <= update.change_rate_ <= most + 1e-12
    shown, changed = f"{update.fewest_change_rate_:.1%}", f"{update.change_rate_:.1%}"
    assert (f"The fewest changes found are {shown}" in update.status_) == (shown != changed)


@pytest.mark.parametrize(("fewest", "is_said"), [(0.149, False), (0.1488, False), (0.140, True)])
def test_a_percentage_is_not_said_twice(fewest, is_said):
    update = fit(table())
    update.change_rate_, update.fewest_change_rate_ = 0.1493, fewest
    texts = list(whom_texts(update, SimpleNamespace(cost_is_distance=True)))
    assert any("fewest changes found" in text for text in texts) == is_said


@pytest.mark.parametrize("seed", [0, 1, 5])
@pytest.mark.parametrize(
    "params",
    [{"target_on": "new_rows", "sparsity": 0.14}, {"borderline": 1}, {"points": "integers"}],
    ids=lambda params: next(iter(params)),
)
def test_the_fewest_changes_found_are_those_for_the_fairness_of_the_update(seed, params):
    update = fit(table(seed, 300), **params)
    assert update.limit_ <= update.fewest_change_rate_ <= update.change_rate_ + 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_changes_because_the_score_is_further_away(seed):
    update = fit(table(seed), borderline=1)
    points = dict(update.scorecard_.rows())
    assert update.reads_score_ and points[DISTANCE_COLUMN] > 0


def test_r_reads_the_score_only_where_it_is_asked_to():
    for params in ({"borderline": 0}, {"reads_score": False}, {"borderline": 0, "max_margin": 0.3}):
        update = fit(table(), **params)
        assert not update.reads_score_ and DISTANCE_COLUMN not in update.term_names_


def test_a_column_of_the_same_name_is_refused_with_a_way_out():
    X, y, s = table()
    with pytest.raises(InputError, match="reads_score=False"):
        fit((X.assign(**{DISTANCE_COLUMN: 1.0}), y, s))


@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf, "much", None])
def test_an_undefined_borderline_is_refused(value):
    with pytest.raises((InputError, TypeError), match="borderline"):
        fit(table(), borderline=value)


def test_the_cheapest_changes_possible_cost_no_more_than_those_of_the_update():
    X, _, s = rows = table()
    update = fit(rows, borderline=1)
    before, distance = X["score"] > 0.5, (X["score"] - 0.5).abs()
    changed = update.changes(X).changed
    assert update.cost_ == pytest.approx(distance[changed].sum() / len(X))
    cheapest = bounds.minimal_cost(
        before * 1, change_cost=distance, sensitive_features=s, target=update.fairness_
    )
    assert update.cost_limit_ == pytest.approx(cheapest.cost / len(X))
    assert update.cost_limit_ <= update.cost_


def test_a_search_on_a_sample_keeps_to_the_extra_changes(monkeypatch):
    monkeypatch.setattr(_sample, "MIN_ROWS", 600)
    monkeypatch.setattr(_sample, "MIN_CHANGED_ROWS", 20)
    monkeypatch.setattr(_sample, "MIN_CELL_ROWS", 100)
    rows = table(5, n=4000)
    fewest, nearer = fit(rows, borderline=0), fit(rows, borderline=0.5)
    assert nearer.n_search_rows_ < 4000
    assert nearer.change_rate_ <= 1.5 * fewest.change_rate_ and nearer.reached_
    assert distance_of_changed(nearer, rows[0]) < distance_of_changed(fewest, rows[0])


def test_the_limit_knows_who_is_beyond_the_gate():
    X, _, s = rows = table()
    update = fit(rows, max_margin=0.2, target=0.7)
    is_open = (X["score"] - 0.5).abs() <= 0.2
    cost = np.ones(len(X))
    fewest = bounds.minimal_cost(
        (X["score"] > 0.5) * 1,
        change_cost=cost,
        sensitive_features=s,
        target=update.fairness_,
        may_change=is_open,
    )
    assert update.limit_ == pytest.approx(fewest.cost / len(X))


# -- change_cost ----------------------------------------------------------------------------------


def test_a_stated_cost_takes_the_place_of_the_distance():
    rows = table()
    cost = np.random.default_rng(0).uniform(0, 2, len(rows[0])) * (1 + (rows[0]["x0"] > 0))
    by_distance, by_cost = fit(rows, borderline=0.5), fit(rows, cost, borderline=0.5)
    spent = [cost[update.changes(rows[0]).changed].sum() for update in (by_distance, by_cost)]
    assert spent[1] < spent[0]
    assert by_cost.cost_ == pytest.approx(spent[1] / len(cost))


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (np.full(700, -1.0), "negative"),
        (np.full(700, np.nan), "NaN"),
        (np.ones(3), "700"),
        (["a"] * 700, "number"),
    ],
)
def test_a_cost_that_cannot_be_used_is_refused(cost, message):
    with pytest.raises(InputError, match=message) as caught:
        fit(table(), cost)
    assert caught.value.parameter == "change_cost"


@pytest.mark.parametrize("unused", [{"borderline": 0}, {"points": "integers"}])
def test_a_cost_that_would_not_be_used_is_refused(unused):
    X, y, s = table()
    with pytest.raises(InputError, match="eave change_cost out") as caught:
        fit((X, y, s), np.ones(len(X)), **unused)
    assert caught.value.parameter == "change_cost"


def test_a_cost_with_borderline_0_is_refused_for_frames():
    X, y, s = table()
    frame = pl.from_pandas(X.assign(y=y, group=s, cost=1.0)).lazy()
    update = ControlledDebiaser(ScoreColumn("score"), borderline=0)
    with pytest.raises(InputError, match="Raise borderline"):
        update.fit_frame(frame, y_true="y", sensitive_features="group", change_cost="cost")


def test_a_budget_without_a_target_spends_what_parity_leaves_on_cheap_changes():
    rows = table()
    cost = np.random.default_rng(0).exponential(1.0, len(rows[0]))
    budget = {"target": None, "max_changes": 0.3, "borderline": 1}
    by_distance, by_cost = fit(rows, **budget), fit(rows, cost, **budget)
    spent = [cost[update.changes(rows[0]).changed].sum() for update in (by_distance, by_cost)]
    assert spent[1] < spent[0]
    assert by_cost.change_rate_ <= 0.3


def test_a_cost_of_zero_for_everybody_is_the_fewest_changes():
    rows = table()
    free, fewest = fit(rows, np.zeros(len(rows[0]))), fit(rows, borderline=0)
    assert free.change_rate_ <= 1.1 * fewest.change_rate_


def test_the_cost_is_routed_as_metadata():
    with config_context(enable_metadata_routing=True):
        update = ControlledDebiaser(ScoreColumn("score")).set_fit_request(change_cost="profit")
        assert update.get_metadata_routing().fit.requests["change_cost"] == "profit"


# -- directions -----------------------------------------------------------------------------------


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 30), target=st.sampled_from([0.75, 0.9]))
def test_both_directions_never_need_more_changes_than_one(seed, target):
    rows = table(seed, n=400)
    both = fit(rows, borderline=0, target=target)
    for direction in ("gains_only", "losses_only"):
        one = fit(rows, borderline=0, target=target, direction=direction)
        if one.reached_:
            assert both.reached_ and both.change_rate_ <= one.change_rate_
    assert both.direction_ in ("any", "gains_only", "losses_only")


def test_gains_only_is_kept_where_its_extra_changes_are_allowed():
    rows = table()
    losses = fit(rows, direction="losses_only", borderline=0)
    gains = fit(rows, direction="gains_only", borderline=0)
    assert gains.change_rate_ < losses.change_rate_, "the table is not the one meant here"
    update = fit(rows)
    assert update.direction_ == "gains_only" and update.n_losses_ == 0
    assert "gains only was kept" in update.status_
    assert not update.changes(rows[0]).loss.any()


def test_the_kept_direction_holds_on_new_rows_and_in_the_patch():
    update, new = fit(table()), table(1)[0]
    assert update.direction_ == "gains_only"
    changes = update.changes(new)
    assert changes.changed.any() and not changes.loss.any()
    patched = update.to_patch().apply(new, score="score")
    assert np.array_equal(patched["commod_changed"], changes.changed)


def test_of_as_many_changes_the_most_accurate_are_kept():
    rng = np.random.default_rng(0)
    n = 400
    group = np.repeat([0, 1], n // 2)
    score = np.where((group == 1) | (rng.random(n) < 0.5), 0.9, 0.1)
    right = rng.random(n) < 0.5
    # Both columns tell the group equally well; the first one also finds wrong rejections.
    X = {"tells": (group == 0) & right, "also": (group == 0) & ~right}
    y = np.where(score > 0.5, 1, np.where(right, 1, 0))
    frame = pd.DataFrame({name: column.astype(float) for name, column in X.items()})
    update = fit((frame.assign(score=score), y, group), borderline=0, sparsity=0, target=0.6)
    before = np.mean((score > 0.5) == y)
    assert update.accuracy_ > before, "changes that fix errors cost as much as others"


# -- frontier -------------------------------------------------------------------------------------


def test_a_frontier_moves_to_nearer_people_too():
    X, y, s = table()
    shares = []
    for borderline in (0, 0.5):
        update = quick_control(ScoreColumn("score"), borderline=borderline, progress=False)
        found = frontier(update, X, y, sensitive_features=s, targets=[0.6, 0.7, 0.8]).frame()
        shares.append(found["outscoring"].mean())
    assert shares[1] > shares[0] + 0.1
