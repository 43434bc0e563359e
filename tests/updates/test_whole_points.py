"""Whole-number scorecards: few lines, few changes, and decisions that a person can add up."""

import itertools
import math
import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from commod import ControlledDebiaser, Patch, ScoreColumn, frontier
from commod._data.encoding import BinTerms
from commod._evidence import points as points_module
from commod.datasets import make_biased
from commod.edit import Cap
from commod.exceptions import InputError, TargetWarning
from quick_updates import quick_control

MAX_LINES = 6


@pytest.fixture(scope="module")
def data():
    return make_biased(500, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return LogisticRegression().fit(data.data, data.target)


def fit(update, data):
    return update.fit(data.data, data.target, sensitive_features=data.sensitive_features)


@pytest.fixture(scope="module")
def update(model, data):
    settings = {"target_on": "fit_rows", "points": "integers", "max_lines": MAX_LINES}
    return fit(ControlledDebiaser(model, target=0.8, **settings), data)


def points_by_hand(card, frame):
    """Return the total of the points of each row, read off the table as a clerk reads it."""
    total = np.zeros(len(frame), dtype=int)
    first = 0
    for column in card.encoding.columns:
        points = card.points[first : first + column.n_terms]
        first += column.n_terms
        assert isinstance(column, BinTerms)
        edges = [-math.inf, *column.edges, math.inf]
        for low, high, own in zip(edges, edges[1:], points, strict=False):
            values = frame[column.name].to_numpy()
            total[(values >= low) & (values < high)] += int(own)
    return total


def test_where_nobody_may_change_nobody_does(model, data):
    settings = {"target": 0.8, "points": "integers", "max_margin": 0.0}
    with pytest.warns(TargetWarning):
        update = fit(ControlledDebiaser(model, **settings), data)
    assert update.change_rate_ == 0 and not update.reached_
    assert not update.scorecard_.points.any()


# -- the form ----------------------------------------------------------------------------------


def test_points_are_few_small_whole_numbers(update):
    card = update.scorecard_
    assert update.reached_
    assert card.is_whole
    assert np.abs(card.points).max() <= points_module.LARGEST_WHOLE
    assert float(card.intercept).is_integer()
    n_lines = 0
    for column in card.encoding.columns:  # bins in a row with equal points are one line
        own = card.points[np.array(card.encoding.term_columns) == column.name]
        n_lines += sum(1 for value, _ in itertools.groupby(own) if value)
    assert 1 <= n_lines <= MAX_LINES


def test_the_table_shows_whole_numbers_and_the_sum_that_changes_a_decision(update):
    text = repr(update.scorecard_).split("\n")
    shown = [line.rsplit(maxsplit=1)[1] for line in text if re.search(r" [+-]\d+$", line)]
    for _, points in update.scorecard_.rows():
        assert f"{points:+.0f}" in shown
    rule = update.scorecard_.rule
    assert f"above {rule.cut * rule.fixed_cost:.6g}" in " ".join(text)


def test_decisions_are_those_of_a_sum_by_hand_in_every_engine(update, model, tmp_path):
    people = make_biased(500, random_state=1).data
    base, score = model.predict(people), model.predict_proba(people)[:, 1]
    card, rule = update.scorecard_, update.scorecard_.rule
    total = points_by_hand(card, people) + card.intercept
    cost = 1 - rule.nearness + rule.nearness * np.abs(score - 0.5) / rule.mean_distance
    gains = (base == 0) & (total > rule.cut * cost) & rule.may_gain
    losses = (base == 1) & (total < -rule.cut * cost) & rule.may_lose
    expected = base ^ (gains | losses)
    assert (expected != base).any()
    assert np.array_equal(update.predict(people), expected)
    patch = update.to_patch()
    patch.save(tmp_path / "patch.json")
    patch = Patch.load(tmp_path / "patch.json")
    assert patch.content.asked.points == "integers"
    assert "points in whole numbers" in str(patch)
    table = people.assign(score=score)
    for frame in (table, pl.from_pandas(table)):
        decided = patch.apply(frame)["commod_decision"]
        assert np.array_equal(decided.to_numpy(), expected)
    with duckdb.connect() as connection:
        connection.register("people", table)
        decided = connection.sql(patch.to_sql("duckdb", "people")).df()["commod_decision"]
    assert np.array_equal(decided.to_numpy(), expected)


def test_a_patch_with_free_points_does_not_mention_them(model, data):
    patch = fit(quick_control(model, target=0.8), data).to_patch()
    assert '"points":"integers"' not in patch.to_json().replace(" ", "")


# -- the fewest changes ------------------------------------------------------------------------


def fewest_by_brute_force(codes, base, group, target, most):
    """Return the fewest changes of all points from −most to most of two columns of 3 categories.

    People with equal points change together, or only those with one base decision do.
    """
    values = np.array(list(itertools.product(range(-most, most + 1), repeat=3)))
    totals = (values[:, None, :, None] + values[None, :, None, :]).reshape(-1, 9)
    thresholds = range(-2 * most, 2 * most)
    bits = 2 ** np.arange(9)
    sets = np.unique(np.concatenate([(totals > k) @ bits for k in thresholds]))
    changed_cells = (sets[:, None] & bits) > 0
    cell = 3 * codes[:, 0] + codes[:, 1]
    best = np.inf
    for changed, gate in itertools.product(changed_cells[:, cell], (base | True, base, ~base)):
        decided = base ^ (changed & gate)
        rates = [decided[group == g].mean() for g in (0, 1)]
        if min(rates) >= target * max(rates) > 0:
            best = min(best, int((decided != base).sum()))
    return best


def test_changes_are_near_the_fewest_of_all_small_scorecards(monkeypatch):
    monkeypatch.setattr(points_module, "LARGEST_WHOLE", 2)
    found, fewest = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        group = rng.integers(0, 2, 300)
        moved = group[:, None] * (rng.random((300, 2)) < 0.6)
        codes = np.clip(rng.integers(0, 3, (300, 2)) + moved, 0, 2)
        scores = np.clip(rng.normal(0.6 - 0.2 * group, 0.2), 0.01, 0.99)
        X = pd.DataFrame(codes.astype(str), columns=["a", "b"]).assign(score=scores)
        settings = {"points": "integers", "locked_features": ["score"], "min_category_size": 1}
        update = quick_control(ScoreColumn("score"), target=0.8, **settings)
        update.fit(X, sensitive_features=group)
        assert update.reached_
        found.append(round(update.change_rate_ * len(X)))
        fewest.append(fewest_by_brute_force(codes, scores > 0.5, group, 0.8, 2))
    assert sum(found) <= 1.1 * sum(fewest)


def test_whole_numbers_need_hardly_more_changes_than_free_points(update, model, data):
    settings = {"target_on": "fit_rows", "max_lines": MAX_LINES, "points": "per bin"}
    free = fit(ControlledDebiaser(model, target=0.8, **settings), data)
    assert update.change_rate_ <= 1.2 * free.change_rate_


def test_max_lines_limits_free_points_too(model, data):
    short = fit(ControlledDebiaser(model, target=0.75, max_lines=1), data)
    assert short.scorecard_.n_terms_used == 1  # columns are numbers


@pytest.mark.filterwarnings("ignore::commod.exceptions.TargetWarning")
def test_new_people_are_nearer_to_a_target_that_is_meant_for_them(model):
    new = make_biased(8000, random_state=100)
    group = np.asarray(new.sensitive_features)
    reached = {"new_rows": [], "fit_rows": []}
    for seed, target_on in itertools.product(range(1, 3), reached):
        settings = {"points": "integers", "max_lines": 4, "target_on": target_on}
        update = quick_control(model, target=0.8, **settings)
        decided = fit(update, make_biased(400, random_state=seed)).predict(new.data)
        rates = [decided[group == g].mean() for g in np.unique(group)]
        reached[target_on].append(min(rates) / max(rates))
    assert np.mean(reached["new_rows"]) > np.mean(reached["fit_rows"])
    assert np.mean(reached["new_rows"]) == pytest.approx(0.8, abs=0.08)


# -- other requests ----------------------------------------------------------------------------


def test_monotone_locked_and_gains_only_are_kept(model, data):
    names = list(data.data.columns)
    update = fit(
        quick_control(
            model,
            target=0.75,
            points="integers",
            direction="gains_only",
            monotone={names[0]: 1},
            locked_features=[names[2]],
        ),
        data,
    )
    card = update.scorecard_
    own = card.points[np.array(card.encoding.term_columns) == names[0]]
    assert (np.diff(own) >= 0).all()
    assert names[2] not in card.columns_used
    assert update.n_losses_ == 0 < update.n_gains_
    # columns in bins are monotone here, so an edit must read them as the fit did
    rows = {"X": data.data, "y": data.target, "sensitive_features": data.sensitive_features}
    edited = update.edit({names[0]: "lock"}, **rows)
    assert names[0] not in edited.scorecard_.columns_used
    assert update.edit({}, **rows).scorecard_.rows() == card.rows()


def test_caps_and_budgets_are_kept(model, data):
    budget = fit(quick_control(model, max_changes=0.03, points="integers"), data)
    assert 0 < budget.change_rate_ <= 0.03
    assert budget.fairness_ > budget.base_fairness_
    assert budget.scorecard_.is_whole


def test_weights_count(model, data):
    weight = 1.0 + (np.asarray(data.target) == 1)
    update = quick_control(model, target=0.8, points="integers")
    update.fit(
        data.data, data.target, sensitive_features=data.sensitive_features, sample_weight=weight
    )
    decided, group = update.predict(data.data), np.asarray(data.sensitive_features)
    rates = [np.average(decided[group == g], weights=weight[group == g]) for g in np.unique(group)]
    assert min(rates) / max(rates) >= 0.8 - 1e-9


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        ({"score_edit": "all"}, "score_edit"),
        ({"confidence": 0.9, "target": 0.8}, "confidence"),
        ({"max_lines": 0}, "max_lines"),
        ({"points": "whole"}, "points"),
    ],
)
def test_what_whole_numbers_cannot_serve_is_refused(model, data, settings, parameter):
    with pytest.raises(InputError) as error:
        fit(ControlledDebiaser(model, **{"points": "integers", **settings}), data)
    assert error.value.parameter == parameter


def test_a_frontier_of_whole_numbers_keeps_them(model, data):
    update = quick_control(model, points="integers")
    people = {"sensitive_features": data.sensitive_features}
    curve = frontier(update, data.data, data.target, **people, targets=[0.75, 0.85])
    assert (curve.frame()["fairness"] >= [0.75, 0.85]).all()
    assert curve.select(target=0.85).scorecard_.is_whole


def test_an_edit_keeps_whole_numbers(update, data):
    rows = {"X": data.data, "y": data.target, "sensitive_features": data.sensitive_features}
    name, points = update.scorecard_.rows()[0]
    edited = update.edit({name: points - 1}, **rows)
    assert edited.scorecard_.is_whole
    assert dict(edited.scorecard_.rows())[name] == points - 1
    with pytest.raises(InputError, match="asks for whole numbers"):
        update.edit({name: points - 0.5}, **rows)


@pytest.mark.filterwarnings("ignore::commod.exceptions.TargetWarning")
def test_every_edit_in_whole_numbers_can_be_saved(update, data):
    rows = {"X": data.data, "y": data.target, "sensitive_features": data.sensitive_features}
    for most in (0, 1, 2, 5):
        capped = update.edit(Cap(-most, most), **rows)
        assert capped.scorecard_.is_whole or not capped.scorecard_.points.any()
        patch = Patch.from_json(capped.to_patch().to_json())
        assert patch.content.ratio.intercept == capped.scorecard_.intercept


@pytest.mark.filterwarnings("ignore::commod.exceptions.TargetWarning")
def test_a_refit_keeps_pinned_lines_and_whole_numbers(update, data):
    rows = {"X": data.data, "y": data.target, "sensitive_features": data.sensitive_features}
    card = update.scorecard_
    column, *others = card.columns_used
    refitted = update.edit({column: "drop"}, **rows, refit=True, pin=others[:1])
    plain = update.edit({column: "drop"}, **rows)
    after = dict(refitted.scorecard_.rows())
    names = np.array(card.encoding.term_columns)
    assert refitted.scorecard_.is_whole
    assert column not in refitted.scorecard_.columns_used
    pinned = names == others[0]
    assert np.array_equal(refitted.scorecard_.points[pinned], card.points[pinned])
    assert refitted.scorecard_.points[~pinned].any()  # in the unit of the pinned ones
    assert max(map(abs, after.values())) <= 3 * points_module.LARGEST_WHOLE
    assert refitted.reached_ >= plain.reached_
    assert refitted.change_rate_ <= 1.1 * plain.change_rate_


def test_new_people_are_counted_with_points_of_the_same_unit():
    """With a unit of its own in each fold, one cut would mean something else in each of them."""
    deviations = []
    for seed in range(2):
        rows = make_biased(1000, n_categories=6, bias=0.8, random_state=seed)
        numbers = make_column_transformer(
            ("passthrough", make_column_selector(dtype_include="number"))
        )
        model = make_pipeline(numbers, LogisticRegression()).fit(rows.data, rows.target)
        update = ControlledDebiaser(
            model, constraints="equalized_odds", target=0.15, points="integers"
        )
        fit(update, rows)
        deviations.append(abs(update.expected_.change_rate / update.change_rate_ - 1))
    assert np.mean(deviations) < 0.15
