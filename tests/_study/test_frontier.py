"""The frontier: its figures are those of the models it hands out, and its limit is a floor."""

import json
import math
import pickle
import weakref

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from commod import (
    COMMOD,
    ControlledDebiaser,
    Frontier,
    ScoreColumn,
    audit,
    bounds,
    compare,
    frontier,
    report,
)
from commod._record.explanation import TradeOff
from commod._record.plain import from_plain, to_plain
from commod._reporting.explain import explain
from commod._study import frontier as _study
from commod._study.frontier import Point
from commod.datasets import make_biased
from commod.exceptions import InputError, TargetWarning
from commod.metrics import change_rate, fairness_value
from commod.rivals import MinimalFlip, RejectOption
from commod.updates import _candidates
from commod.updates._interface import FittedCandidate
from quick_updates import quick_control

matplotlib.use("Agg")
pytestmark = pytest.mark.usefixtures("quick_compilation")

N = 300
COLUMNS = [
    "target",
    "fairness",
    "accuracy",
    "change_rate",
    "n_changes",
    "n_gains",
    "n_losses",
    "limit",
    "outscoring",
    "outscoring_losses",
]


@pytest.fixture(scope="module")
def biased():
    return make_biased(3 * N, bias=1.5, random_state=0)


@pytest.fixture(scope="module")
def model(biased):
    return LogisticRegression().fit(biased.data[:N], biased.target[:N])


@pytest.fixture(scope="module")
def rows(biased):
    part = slice(N, 2 * N)
    return biased.data[part], biased.target[part], biased.sensitive_features[part]


@pytest.fixture(scope="module")
def new(biased):
    part = slice(2 * N, None)
    return biased.data[part], biased.target[part], biased.sensitive_features[part]


def trace(update, rows, new=None, **how):
    X, y, s = rows
    if new is not None:
        how.update(zip(("X_eval", "y_eval", "sensitive_features_eval"), new, strict=True))
    return frontier(update, X, y, sensitive_features=s, **how)


@pytest.fixture(scope="module")
def curve(model, rows, new):
    return trace(quick_control(model), rows, new)


@pytest.fixture(scope="module")
def short(model, rows, new):
    """Return a frontier of few updates, each of which is a step of its trade-off, or nearly."""
    return trace(quick_control(model), rows, new, targets=[0.5, 0.7, 0.8, 0.9, 0.98])


@pytest.fixture(scope="module")
def networks(model, rows, new):
    """Return the frontier of two networks that were trained together."""
    update = COMMOD(model, epochs=30, training={"adversary_hidden": (8,)}, random_state=0)
    return trace(update, rows, new, grid={"lambda_fair": [0.0, 6.0], "lambda_ratio": [0.0]})


@pytest.fixture(scope="module")
def rejecting(model, rows, new):
    """Return the frontier of a rival, which needs the group."""
    return trace(RejectOption(model), rows, new)


def check_line(line, model, after, rows, constraints="demographic_parity", direction="any"):
    """Measure one line of a frame again, from the decisions of its model."""
    X, y, s = rows
    before = model.predict(X)
    value = fairness_value(constraints, y, after, sensitive_features=s)
    np.testing.assert_allclose(line["fairness"], value)
    assert line["accuracy"] == np.mean(after == y)
    assert line["change_rate"] == change_rate(before, after)
    assert line["n_changes"] == (before != after).sum()
    assert line["n_gains"] == ((before == 0) & (after == 1)).sum()
    assert line["n_losses"] == ((before == 1) & (after == 0)).sum()
    limit = bounds.minimal_changes(
        before,
        sensitive_features=s,
        target=value,
        constraints=constraints,
        y_true=y,
        direction=direction,
    )
    assert line["limit"] == pytest.approx(limit.rate)


# -- what it shows --------------------------------------------------------------------------------


def decided_by_points(candidate, model, X):
    """Decide by the points and the rule of a line, one person at a time."""
    card, rule = candidate.scorecard(), candidate.scorecard().rule
    scores = model.predict_proba(X)[:, 1]
    after = []
    for i, score in enumerate(scores):
        centred = [X.iloc[i][column.name] - column.centre for column in card.encoding.columns]
        v = card.intercept + float(np.dot(card.points, centred))
        is_yes = score > 0.5
        cost = (1 - rule.nearness) + rule.nearness * abs(score - 0.5) / rule.mean_distance
        evidence, is_open = (-v, rule.may_lose) if is_yes else (v, rule.may_gain)
        after.append(int(is_yes != (is_open and evidence > rule.cut * cost)))
    return np.array(after)


def test_a_hundred_models_from_the_base_model_to_near_parity(curve, model, new):
    assert isinstance(curve, Frontier)
    frame = curve.frame()
    assert len(curve) == len(frame) == 100
    assert list(frame.columns[: len(COLUMNS)]) == COLUMNS
    assert frame["fairness"].max() > 0.9
    assert frame["fairness"].min() < curve.base_fairness + 0.15
    assert "100 updates" in repr(curve)
    assert "300 evaluated rows" in repr(curve)
    assert (frame["limit"] <= frame["change_rate"]).all()
    assert frame["limit"].max() > 0
    X, y, s = new
    assert curve.base_accuracy == np.mean(model.predict(X) == y)
    base = fairness_value("demographic_parity", y, model.predict(X), sensitive_features=s)
    assert curve.base_fairness == base


def test_the_target_that_was_stated_has_the_very_update_of_a_fit(model, rows, new, monkeypatch):
    monkeypatch.setattr(_candidates, "N_TARGETS", 12)
    update = ControlledDebiaser(model, target=0.8125)
    curve = trace(update, rows, describe=False)
    (at,) = np.flatnonzero(curve.frame()["target"] == 0.8125)
    assert len(curve) == 12
    alone = update.fit(rows[0], rows[1], sensitive_features=rows[2]).predict(new[0])
    assert np.array_equal(decided_by_points(curve.points[at].candidate, model, new[0]), alone)


def test_every_line_is_what_its_points_do_on_the_evaluated_rows(curve, model, new):
    frame = curve.frame()
    for i in (0, 33, 66, 99):
        after = decided_by_points(curve.points[i].candidate, model, new[0])
        check_line(frame.iloc[i], model, after, new)


@pytest.mark.parametrize(
    ("constraints", "direction"), [("demographic_parity", "gains_only"), ("equalized_odds", "any")]
)
def test_one_model_for_each_target_reaching_it_on_the_fit_rows(model, rows, constraints, direction):
    targets = [0.5, 0.7] if constraints == "demographic_parity" else [0.2, 0.3]
    update = quick_control(model, constraints=constraints, direction=direction)
    curve = trace(update, rows, targets=targets, describe=False)
    frame = curve.frame()
    assert sorted(frame["target"]) == targets
    assert curve.rows_word == "fit rows"
    for i, line in frame.iterrows():
        is_floor = constraints == "demographic_parity"
        sign = 1 if is_floor else -1
        assert sign * line["fairness"] >= sign * line["target"]
        fitted = curve.points[i].candidate.build()
        check_line(line, model, fitted.predict(rows[0]), rows, constraints, direction)
        assert fitted.fairness_ == line["fairness"]
        assert fitted.limit_ == line["limit"]
        assert fitted.target == fitted.target_ == line["target"]
        if direction == "gains_only":
            assert line["n_losses"] == 0


def test_hard_limits_hold_for_every_model(model, rows):
    update = quick_control(model, max_changes=0.05, max_accuracy_loss=0.03)
    curve = trace(update, rows, targets=[0.5, 0.9], describe=False)
    frame = curve.frame()
    assert len(frame) == 2
    assert frame["change_rate"].max() <= 0.05
    assert (curve.base_accuracy - frame["accuracy"]).max() <= 0.03 + 1e-12
    assert frame["fairness"].max() > curve.base_fairness


def test_a_target_that_is_met_leaves_new_rows_alone_too(model, rows):
    X, _, s = rows
    far = pd.DataFrame(50.0 * np.vstack([X, -X]), columns=X.columns)  # unlike any fit row
    curve = trace(quick_control(model), rows, (far, None, [*s, *s]), targets=[0.1, 0.8])
    assert curve.frame()["n_changes"][0] == 0 < curve.frame()["n_changes"][1]
    assert np.array_equal(curve.select(max_changes=0).predict(far), model.predict(far))


def test_labels_may_be_missing_for_demographic_parity(model, rows, new):
    X, _, s = rows
    curve = frontier(
        quick_control(model), X, sensitive_features=s, targets=[0.7, 0.9], describe=False
    )
    assert curve.frame()["accuracy"].isna().all()
    assert math.isnan(curve.base_accuracy)
    found = curve.trade_off()
    assert found.base_accuracy is None
    assert all(step.accuracy is None for step in found.steps)
    curve.plot()


def test_polars_intersections_and_text_labels(biased, rows):
    X, y, s = rows
    table = pl.from_pandas(X).with_columns(score=pl.Series(np.linspace(0, 1, N) ** 2))
    groups = pl.DataFrame({"race": s.to_list(), "half": ["ab"[i % 2] for i in range(N)]})
    words = np.where(y == 1, "yes", "no")
    curve = frontier(
        quick_control(ScoreColumn("score"), pos_label="yes", min_group_size=20),
        table,
        words,
        sensitive_features=groups,
        targets=[0.6],
    )
    update = curve.select(target=0.6)
    joined = [f"{a}{b}" for a, b in groups.iter_rows()]
    value = fairness_value(
        "demographic_parity",
        words,
        update.predict(table),
        sensitive_features=joined,
        pos_label="yes",
    )
    assert curve.frame()["fairness"][0] == value >= 0.6


def test_small_groups_stay_out_of_the_figures(model, rows):
    X, y, s = rows
    groups = np.where(np.arange(N) < 10, "seldom", np.asarray(s))
    with pytest.warns(match="left out of the constraint"):
        curve = frontier(quick_control(model), X, y, sensitive_features=groups, targets=[0.7])
    inside = groups != "seldom"
    after = curve.select(target=0.7).predict(X)
    value = fairness_value(
        "demographic_parity", y[inside], after[inside], sensitive_features=groups[inside]
    )
    assert curve.frame()["fairness"][0] == value
    note = "1 group (10 rows) left out of the fairness figures: too few fit rows"
    assert repr(curve).endswith(note) and note in curve._repr_html_()
    assert note in curve.plot().get_xlabel()
    assert b"seldom" not in pickle.dumps(curve)


# -- choosing -------------------------------------------------------------------------------------


def test_select_takes_the_fewest_changes_that_reach_the_target(curve, new):
    X, _, s = new
    frame = curve.frame()
    update = curve.select(target=0.8)
    reaching = frame[frame["fairness"] >= 0.8]
    assert update.target_ in set(fewest_changes(reaching)["target"])
    # The update is fitted again for the target of its line.
    value = fairness_value("demographic_parity", None, update.predict(X), sensitive_features=s)
    assert value == pytest.approx(0.8, abs=0.05)
    assert change_rate_of(update, X) == pytest.approx(reaching["change_rate"].min(), abs=0.02)
    assert isinstance(update, ControlledDebiaser)
    assert update.status_
    assert np.array_equal(pickle.loads(pickle.dumps(update)).predict(X), update.predict(X))


def test_select_does_not_depend_on_the_order_of_the_models(curve, new):
    turned = Frontier(curve.points[::-1], curve._rows)
    for wanted in ({"target": 0.8}, {"max_changes": 0.05}):
        one, other = curve.select(**wanted), turned.select(**wanted)
        assert change_rate_of(one, new[0]) == change_rate_of(other, new[0])


def test_select_on_the_fit_rows_fits_for_the_very_target(model, rows):
    X, y, s = rows
    curve = trace(quick_control(model, target=0.8), rows, targets=[0.7, 0.85])
    alone = quick_control(model, target=0.777).fit(X, y, sensitive_features=s)
    chosen = curve.select(target=0.777)
    assert chosen.target_ == 0.777 <= chosen.fairness_
    assert chosen.scorecard_ == alone.scorecard_
    assert np.array_equal(chosen.predict(X), alone.predict(X))


def fewest_changes(frame):
    return frame[frame["change_rate"] == frame["change_rate"].min()]


def change_rate_of(update, X):
    return update.changes(X).rate


def test_select_by_budget_takes_the_fairest_within_it(curve):
    frame = curve.frame()
    budget = float(frame["change_rate"].median())
    update = curve.select(max_changes=budget)
    within = frame[frame["change_rate"] <= budget]
    best = within[within["fairness"] == within["fairness"].max()]
    assert update.target_ in set(fewest_changes(best)["target"])


def test_select_with_both_warns_where_none_reaches_both(curve):
    frame = curve.frame()
    reaching = fewest_changes(frame[frame["fairness"] >= 0.8])
    cheapest = float(reaching["change_rate"].iloc[0])
    chosen = curve.select(target=0.8, max_changes=cheapest)
    assert chosen.target_ in set(reaching["target"])
    with pytest.warns(
        TargetWarning, match=r"No update reaches P-rule of label 1 ≥ 0.8 on the evaluated rows"
    ):
        update = curve.select(target=0.8, max_changes=cheapest / 2)
    within = frame[frame["change_rate"] <= cheapest / 2]
    assert update.target_ in set(within["target"])


def test_select_says_what_it_needs(curve):
    with pytest.raises(InputError, match=r"select needs target=, max_changes= or both"):
        curve.select()
    with pytest.raises(InputError, match=r"changes at most 0.0%; the fewest is .*looser targets"):
        curve.select(max_changes=0)


# -- drawing --------------------------------------------------------------------------------------


def test_the_plot_has_the_models_the_limit_and_the_base_model(curve):
    ax = curve.plot()
    labels = {text.get_text() for text in ax.get_legend().get_texts()}
    assert labels == {"updates", "fewest possible changes", "base model"}
    dots = ax.collections[0].get_offsets()
    assert len(dots) == 100
    (limit,) = [line for line in ax.lines if line.get_label() == "fewest possible changes"]
    x, y = limit.get_data()
    assert np.all(np.diff(y) >= 0)
    for fairness, changed in np.asarray(dots):
        assert changed >= np.interp(fairness, x, y) - 2 / N
    assert "P-rule of label 1 on the 300 evaluated rows" in ax.get_xlabel()
    matplotlib.pyplot.close(ax.figure)


def test_the_plot_goes_where_it_is_told_and_fairer_is_to_the_right(model, rows):
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    update = quick_control(model, constraints="false_positive_rate_parity")
    assert trace(update, rows, targets=[0.05, 0.1]).plot(ax) is ax
    left, right = ax.get_xlim()
    assert left > right
    plt.close("all")


# -- what cannot be asked for ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"targets": []}, r"targets must be a list of numbers.*got \[\]"),
        ({"targets": 0.8}, r"targets must be a list of numbers.*got 0.8"),
        ({"targets": ["high"]}, r"targets must be a list of numbers"),
        ({"targets": [0.8, 1.4]}, r"target=1.4 must be a finite number >= 0 and <= 1"),
        ({"grid": {"sparsity": [0]}}, r"A ControlledDebiaser has no grid; got sparsity\. Give t"),
        ({"y_eval": [1]}, r"belong to X_eval, which is None"),
        ({"sensitive_features_eval": ["a"]}, r"belong to X_eval, which is None"),
    ],
    ids=str,
)
def test_arguments_that_make_no_sense(model, rows, how, message):
    with pytest.raises(InputError, match=message):
        trace(quick_control(model), rows, **how)


def test_evaluated_rows_must_have_every_group_and_known_labels(model, rows, new):
    X, y, s = new
    update = quick_control(model)
    one = {"targets": [0.6], "X_eval": X}
    with pytest.raises(InputError, match="X_eval needs sensitive_features_eval"):
        trace(update, rows, **one)
    with pytest.raises(InputError, match=r"nobody of group 'g1'.*Pass rows of every group"):
        trace(update, rows, sensitive_features_eval=["g0"] * N, **one)
    with pytest.raises(InputError, match=r"y_eval holds \['no'.*its labels are \[0, 1\]"):
        trace(update, rows, sensitive_features_eval=s, y_eval=np.where(y, "yes", "no"), **one)
    with pytest.raises(InputError, match="y_eval has 3 rows, but 300 were expected"):
        trace(update, rows, sensitive_features_eval=s, y_eval=y[:3], **one)
    strict = quick_control(model, constraints="equalized_odds")
    with pytest.raises(InputError, match="needs y_eval, but it is None"):
        trace(strict, rows, sensitive_features_eval=s, **one)


def test_only_our_updates_have_a_frontier(model, rows):
    with pytest.raises(InputError, match=r"or one of commod\.rivals; got Logistic"):
        trace(model, rows)
    with pytest.raises(InputError, match=r"COMMOD has lambdas, not targets: pass grid="):
        trace(COMMOD(model), rows, targets=[0.8])
    with pytest.raises(InputError, match="grid is empty"):
        trace(COMMOD(model), rows, grid={"lambda_fair": []})
    with pytest.raises(InputError, match="A grid may change"):
        trace(COMMOD(model, epochs=1), rows, grid={"epochs": [1]})


def test_a_grid_of_commod_models(networks, model, new):
    curve, frame = networks, networks.frame()
    assert list(frame.columns[: len(COLUMNS)]) == COLUMNS
    assert frame["target"].isna().all()
    assert frame["lambda_fair"].tolist() == [0.0, 6.0]
    assert (frame["limit"] <= frame["change_rate"]).all()
    assert frame["n_changes"].max() > 0
    for i, line in frame.iterrows():
        check_line(line, model, curve.points[i].candidate.build().predict(new[0]), new)
    chosen = curve.select(max_changes=1.0)
    assert isinstance(chosen, COMMOD)
    assert chosen.lambda_fair == frame["lambda_fair"][frame["fairness"].idxmax()]


# -- the trade-off for a slider -------------------------------------------------------------------


def is_beaten(line, frame, sign):
    """Whether another update is at least as fair with fewer changes."""
    fairer = sign * frame["fairness"] >= sign * line["fairness"]
    return bool((fairer & (frame["n_changes"] < line["n_changes"])).any())


def check_steps(curve, sign=1):
    frame, found = curve.frame(), curve.trade_off()
    kept = frame.dropna(subset="fairness")
    kept = kept[sign * kept["fairness"] >= sign * curve.base_fairness]
    best = [line for _, line in kept.iterrows() if not is_beaten(line, kept, sign)]
    pairs = {(line["fairness"], line["n_changes"]) for line in best}
    steps = [(step.fairness, step.n_changes) for step in found.steps]
    assert set(steps) <= pairs
    assert len(steps) == min(len(pairs), _study.MOST_STEPS)
    assert steps == sorted(steps, key=lambda step: sign * step[0])
    assert [step[1] for step in steps] == sorted(step[1] for step in steps)
    ends = sorted(pairs, key=lambda pair: sign * pair[0])
    assert (steps[0], steps[-1]) == (ends[0], ends[-1])
    for step in found.steps:
        if step.segments is not None:
            counts = step.segments.n_gains, step.segments.n_losses
            assert counts == (step.n_gains, step.n_losses)
    return found


def test_the_trade_off_has_the_updates_that_no_other_beats(short):
    curve, found = short, check_steps(short)
    assert (found.constraints, found.metric) == ("demographic_parity", "P-rule of label 1")
    assert (found.method, found.rows, found.n_rows) == (
        "ControlledDebiaser",
        "evaluated rows",
        N,
    )
    assert (found.base_fairness, found.base_accuracy) == (curve.base_fairness, curve.base_accuracy)
    frame = curve.frame()
    for step in found.steps:
        same = frame["fairness"].eq(step.fairness) & frame["n_changes"].eq(step.n_changes)
        line = frame[same].iloc[0]
        assert step.change_rate == line["change_rate"]
        assert step.limit == line["limit"]
        assert (step.n_gains, step.n_losses) == (line["n_gains"], line["n_losses"])
        assert set(step.settings) == {"nearness", "n_terms"}


def test_gains_are_losses_where_the_other_label_is_the_good_one(model, rows, new):
    update = quick_control(model, pos_label=1, favorable_label=0)
    found = check_steps(trace(update, rows, new, targets=[0.6, 0.8, 0.95]))
    assert max(step.n_losses for step in found.steps) > 0


def test_many_updates_are_thinned_to_a_few_from_end_to_end(curve, monkeypatch):
    monkeypatch.setattr("commod._study.frontier.MOST_STEPS", 5)
    few = Frontier(curve.points, curve._rows)
    assert len(check_steps(few).steps) == 5


def test_a_target_that_gains_alone_miss_gets_losses_too():
    people = make_biased(1600, group_shares=(0.5, 0.3, 0.2), bias=1.2, random_state=0)
    model = LogisticRegression().fit(people.data[:800], people.target[:800])
    rows = people.data[800:], people.target[800:], people.sensitive_features[800:]
    update = quick_control(model, target=0.7, target_on="fit_rows")
    curve = trace(update, rows, targets=[0.7, 0.8, 0.99], describe=False)
    lines = curve.frame()
    assert (lines["fairness"] >= lines["target"]).all()
    assert (lines["n_losses"] > 0).tolist() == [False, False, True]
    chosen = curve.select(target=0.99)
    assert chosen.reached_ and chosen.n_losses_ > 0


# -- the blind limit ------------------------------------------------------------------------------


def test_a_few_efficient_updates_have_the_limit_of_blind_changes(model, rows, new, monkeypatch):
    monkeypatch.setattr("commod._study.frontier.MOST_BLIND", 3)
    direction = "losses_only"
    update = quick_control(model, direction=direction)
    how = {"targets": [0.5, 0.6, 0.7, 0.8, 0.9, 0.98], "blind_limit": True, "describe": False}
    blind = trace(update, rows, new, **how)
    frame = blind.frame()
    known = frame.dropna(subset="blind_limit")
    efficient = [frame.index[frame["fairness"] == s.fairness][0] for s in blind.trade_off().steps]
    assert 2 <= len(known) <= 3 < len(efficient)
    assert set(known.index) <= set(efficient)
    assert (known["blind_limit"] >= known["limit"]).all()
    X, _, s = new
    for _, line in frame.loc[[efficient[0], efficient[-1]]].iterrows():  # NaN: never as fair
        found = bounds.blind_changes(
            X, model.predict(X), sensitive_features=s, target=line["fairness"], direction=direction
        )
        figures = [line["blind_limit"], line["blind_limit_low"]]
        np.testing.assert_allclose(figures, [found.rate, found.interval[0] / len(X)])
    steps = [step for step in blind.trade_off().steps if step.blind_limit is not None]
    assert [step.blind_limit.value for step in steps] == known["blind_limit"].tolist()


def test_the_blind_limit_is_drawn_listed_and_reported(model, rows, new, tmp_path):
    blind = trace(quick_control(model), rows, new, targets=[0.7], blind_limit=True)
    (line,) = [line for line in blind.plot().lines if "without the group" in str(line.get_label())]
    assert line.get_label() == "fewest without the group (estimate)"
    np.testing.assert_array_equal(line.get_ydata(), blind.frame()["blind_limit"].dropna())
    assert "fewest without the group (estimate)" in blind._repr_html_()
    X, _, s = new
    result = audit(model.predict(X), blind.select(target=0.7).predict(X), sensitive_features=s)
    page = report(result, tmp_path / "page.html", frontier=blind).read_text("utf-8")
    assert 'class="blind-line"' in page and "fewest without the group (estimate)" in page
    share = blind.trade_off().steps[-1].blind_limit.value
    assert f"without the group an estimated {share:.1%}" in page


def test_the_blind_limit_is_asked_for_and_of_one_simple_constraint(curve, model, rows):
    assert not [name for name in curve.frame() if "blind" in name]
    assert all(step.blind_limit is None for step in curve.trade_off().steps)
    with pytest.raises(InputError, match="blind_limit"):
        trace(quick_control(model), rows, blind_limit="yes")
    for constraints in (
        "predictive parity <= 0.1",
        ["demographic_parity >= 0.8", "false_positive_rate_parity <= 0.1"],
    ):
        update = ControlledDebiaser(model, constraints=constraints)
        with pytest.raises(InputError, match="blind limit is known for one constraint"):
            trace(update, rows, blind_limit=True)


def test_an_update_that_is_less_fair_than_the_base_model_is_no_step(short):
    rows = short._rows
    rates = [rows.before[rows.people.group == g].mean() for g in (0, 1)]
    poorer = np.flatnonzero(rows.before & (rows.people.group == int(np.argmin(rates))))
    worse = rows.before.copy()
    worse[poorer[:2]] = False
    points = [Point(FittedCandidate({}, None), worse), *short.points]
    both = Frontier(points, rows)
    assert both.frame()["fairness"][0] < both.base_fairness
    assert min(step.fairness for step in both.trade_off().steps) >= both.base_fairness
    check_steps(both)


def test_each_step_has_the_segments_and_the_points_of_its_model(short, new):
    X, curve = new[0], short
    frame = curve.frame()
    steps = curve.trade_off().steps
    assert any(step.segments.segments for step in steps)
    for step in steps:
        same = frame["fairness"].eq(step.fairness) & frame["n_changes"].eq(step.n_changes)
        for i in np.flatnonzero(same):
            candidate = curve.points[i].candidate
            model = candidate.build()  # fitted for its own target; the line has points of another
            model.scorecard_ = candidate.scorecard()
            why = explain(model, X)
            if why.card == step.card:
                assert why.segments == step.segments
                break
        else:
            raise AssertionError("no model of the frontier has these points")


def decided(update, rows):
    """What an update that may need the group decides."""
    groups = {"sensitive_features": rows[2]} if isinstance(update, RejectOption) else {}
    return update.predict(rows[0], **groups)


def decisions_of(curve, rows):
    """Return what each update of a frontier decides."""
    return [decided(point.candidate.build(), rows) for point in curve.points]


SECRET = 1234.56789


def with_a_secret(rows, model):
    """The rows with scores, and one person whose number and text nobody else has."""
    X, y, s = rows
    table = X.assign(score=model.predict_proba(X)[:, 1], name="")
    table.iloc[7, [0, -1]] = [SECRET, "sentinel-name"]
    return table, y, s


@pytest.mark.parametrize(
    ("update", "how"),
    [
        (quick_control(ScoreColumn("score")), {"targets": [0.6, 0.8]}),
        (
            COMMOD(ScoreColumn("score"), epochs=0),
            {"grid": {"lambda_fair": [2.0, 6.0]}},
        ),
        (RejectOption(ScoreColumn("score")), {}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_pickle_holds_the_trade_off_and_no_value_of_a_person(
    model, rows, new, monkeypatch, update, how
):
    monkeypatch.setattr("commod._study.frontier.MOST_STEPS", 3)
    old, new = (with_a_secret(each, model) for each in (rows, new))
    curve = trace(update, old, new, **how)
    data = pickle.dumps(curve)
    assert b"sentinel-name" not in data
    assert np.float64(SECRET).tobytes() not in data
    assert np.float64(SECRET).tobytes()[::-1] not in data  # pickle's floats are big-endian
    copied = pickle.loads(data)
    with monkeypatch.context() as nothing_is_sought:
        nothing_is_sought.setattr("commod._study.frontier.SegmentFinder.find", None)
        assert copied.trade_off() == curve.trade_off()
    found = curve.trade_off()
    assert found.steps[0].segments is not None
    text = json.dumps(to_plain(found), allow_nan=False)
    assert from_plain(TradeOff, json.loads(text)) == found
    one, other = (each.select(max_changes=1.0) for each in (curve, copied))
    assert one._status_without_names() == other._status_without_names()
    np.testing.assert_array_equal(decided(one, new), decided(other, new))


def test_what_segments_were_sought_in_is_let_go(model, rows):
    curve = trace(quick_control(model), rows, targets=[0.7])
    columns = weakref.ref(curve._describe)
    curve.trade_off()
    assert columns() is None


@pytest.mark.parametrize("kind", [COMMOD, RejectOption, quick_control])
def test_a_selected_update_is_the_callers_own(model, rows, new, kind, networks, rejecting):
    if kind is quick_control:
        curve = trace(kind(model), rows, new, targets=[0.6, 0.8], describe=False)
    else:
        curve = networks if kind is COMMOD else rejecting
    picked, all_before = curve.select(max_changes=1.0), decisions_of(curve, new)
    before = decided(picked, new)
    other = {"epochs": 0} if kind is COMMOD else {"target": 0.3} if kind is quick_control else {}
    picked.set_params(constraints="equalized_odds", **other)
    picked.fit(new[0], new[1], sensitive_features=new[2])
    np.testing.assert_array_equal(decisions_of(curve, new), all_before)
    again = curve.select(max_changes=1.0)
    assert again.constraints == "demographic_parity"
    np.testing.assert_array_equal(decided(again, new), before)


def test_without_describing_the_steps_are_bare_and_nothing_is_sought(model, rows, monkeypatch):
    monkeypatch.setattr("commod._study.frontier.SegmentFinder", None)
    update = quick_control(model)
    bare = trace(update, rows, targets=[0.6, 0.8], describe=False).trade_off()
    assert bare.steps
    assert all(step.segments is step.card is None for step in bare.steps)
    assert compare([update], *rows[:2], sensitive_features=rows[2], progress=False)


def test_the_trade_off_of_a_disparity_goes_down_and_its_target_is_a_ceiling(model, rows):
    update = quick_control(model, constraints="true_positive_rate_parity")
    curve = trace(update, rows, targets=[0.05, 0.1, 0.15], describe=False)
    check_steps(curve, sign=-1)
    chosen = curve.select(target=0.1)
    frame = curve.frame()
    assert chosen.fairness_ <= 0.1
    assert chosen.change_rate_ == frame[frame["fairness"] <= 0.1]["change_rate"].min()


def test_the_trade_off_of_rivals_and_of_commod(model, rows, new, networks, rejecting):
    found = check_steps(rejecting)
    assert found.method == "RejectOption"
    assert all(step.card is None and step.target is None for step in found.steps)
    assert any(step.segments.segments for step in found.steps)
    lots = trace(MinimalFlip(model, constraints="equalized_odds"), rows, new)
    assert lots.randomised
    drawn = [step.n_changes != int(step.n_changes) for step in check_steps(lots, sign=-1).steps]
    assert any(drawn)
    for step, by_lot in zip(lots.trade_off().steps, drawn, strict=True):
        assert (step.segments is None) == by_lot
    for step in check_steps(networks).steps:
        assert step.card is not None
        assert step.settings["lambda_ratio"] == 0.0
