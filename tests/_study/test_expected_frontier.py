"""A frontier for new people: its expectations, what is selected by them, and how they are shown."""

import pickle

import matplotlib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, frontier
from commod._reporting.render.texts import step_sentence
from commod.datasets import make_biased
from commod.exceptions import TargetWarning

matplotlib.use("Agg")

N = 600
QUICK = {"borderline": 0, "sparsity": 0, "random_state": 0, "progress": False}
EXPECTED = ["expected_fairness", "expected_change_rate", "expected_accuracy"]


@pytest.fixture(scope="module")
def biased():
    return make_biased(6 * N, bias=1.5, random_state=0)


@pytest.fixture(scope="module")
def model(biased):
    return LogisticRegression().fit(biased.data[:N], biased.target[:N])


def rows_of(biased, part, suffix=""):
    names = ("X", "y", "sensitive_features")
    values = (biased.data[part], biased.target[part], biased.sensitive_features[part])
    return {f"{name}{suffix}": value for name, value in zip(names, values, strict=True)}


@pytest.fixture(scope="module")
def fit_rows(biased):
    return rows_of(biased, slice(N, 2 * N))


@pytest.fixture(scope="module")
def curve(model, fit_rows):
    """Return the default frontier without evaluated rows."""
    return frontier(ControlledDebiaser(model, **QUICK), **fit_rows)


@pytest.fixture(scope="module")
def evaluated(model, fit_rows, biased):
    """Return the same frontier, evaluated on many new people."""
    new = rows_of(biased, slice(2 * N, None), "_eval")
    return frontier(ControlledDebiaser(model, **QUICK), **fit_rows, **new, describe=False)


@pytest.fixture(scope="module")
def errors(model, fit_rows):
    """Return a frontier for a constraint on errors."""
    update = ControlledDebiaser(model, constraints="true_positive_rate_parity", **QUICK)
    few = {name: values[: N // 2] for name, values in fit_rows.items()}
    return frontier(update, **few, describe=False)


def test_every_update_of_the_default_frontier_has_expected_figures(curve):
    frame = curve.frame()
    assert len(frame) == 100
    assert frame[EXPECTED].notna().all(axis=None)
    assert frame["expected_fairness"].between(0, 1).all()


def test_expectations_are_less_optimistic_than_the_fit_rows(curve, evaluated):
    on_fit_rows, on_new_rows = curve.frame(), evaluated.frame()
    assert on_fit_rows["expected_fairness"].equals(on_new_rows["expected_fairness"])
    near_parity = on_fit_rows["fairness"] > 0.9
    expected = on_fit_rows.loc[near_parity, "expected_fairness"].mean()
    assert expected < on_fit_rows.loc[near_parity, "fairness"].mean() - 0.02
    assert expected == pytest.approx(on_new_rows.loc[near_parity, "fairness"].mean(), abs=0.06)


def test_without_evaluated_rows_the_expectation_selects(curve):
    frame, target = curve.frame(), 0.8
    update = curve.select(target=target)
    is_enough = frame["expected_fairness"] >= target
    assert update.expected_fairness_ >= target
    assert update.reached_
    assert update.expected_change_rate_ == frame.loc[is_enough, "expected_change_rate"].min()
    with pytest.warns(TargetWarning, match="No update is expected to reach .* on new people"):
        curve.select(target=1.0)


def test_with_evaluated_rows_these_select(evaluated):
    frame, target = evaluated.frame(), 0.8
    chosen = evaluated.select(target=target)
    best = frame.loc[frame["fairness"] >= target, "change_rate"].min()
    lines = frame[frame["expected_fairness"] == chosen.expected_fairness_]
    assert best in set(lines["change_rate"])


def test_the_own_target_is_among_those_of_the_default_frontier(curve):
    frame = curve.frame()
    assert frame.loc[frame["target"] == 0.8, "expected_fairness"].max() == pytest.approx(0.8)


def test_each_update_reaches_its_internal_target_on_the_fit_rows(curve):
    frame = curve.frame()
    path = frame[frame["internal_target"] < frame["internal_target"].max()]
    assert (path["fairness"] >= path["internal_target"] - 1e-9).all()


def test_a_given_target_is_the_expectation_of_its_update(model, fit_rows):
    targets = [0.7, 0.8]
    update = ControlledDebiaser(model, **QUICK)
    frame = frontier(update, **fit_rows, targets=targets, describe=False).frame()
    assert frame["target"].tolist() == targets
    assert (frame["expected_fairness"] >= np.array(targets) - 1e-9).all()
    assert (frame["internal_target"] >= frame["target"]).all()


def test_constraints_on_errors_have_updates_of_each_direction(errors):
    frame = errors.frame()
    assert len(frame) == 100
    assert ((frame["n_gains"] > 0) & (frame["n_losses"] > 0)).any()
    assert ((frame["n_gains"] > 0) & (frame["n_losses"] == 0)).any()
    assert ((frame["n_gains"] == 0) & (frame["n_losses"] > 0)).any()


def test_a_frontier_of_fit_rows_keeps_both_directions_for_equalized_odds(model, fit_rows):
    update = ControlledDebiaser(model, constraints="equalized_odds", target_on="fit_rows", **QUICK)
    curve = frontier(update, **fit_rows, targets=[0.3, 0.1], describe=False)
    assert curve.select(target=0.3).direction_ == "any"
    assert curve.frame()[EXPECTED].isna().all(axis=None)


def test_the_rows_outside_the_search_sample_are_the_new_ones_of_a_large_table():
    data = make_biased(26_000, bias=1.5, random_state=1)
    model = LogisticRegression().fit(data.data[:500], data.target[:500])
    curve = frontier(
        ControlledDebiaser(model, **QUICK),
        data.data,
        data.target,
        sensitive_features=data.sensitive_features,
        targets=[0.8],
        describe=False,
    )
    update = curve.select(target=0.8)
    assert update.n_search_rows_ < 26_000
    assert "rows outside the search sample" in update.status_


def test_an_unpickled_frontier_still_selects_by_expectation(model, fit_rows):
    update = ControlledDebiaser(model, **QUICK)
    curve = frontier(update, **fit_rows, targets=[0.7, 0.8], describe=False)
    copy = pickle.loads(pickle.dumps(curve))
    assert copy.frame()[EXPECTED].equals(curve.frame()[EXPECTED])
    assert copy.select(target=0.8).expected_fairness_ >= 0.8 - 1e-9


def test_the_picture_shows_expectation_dots_and_limit(evaluated):
    ax = evaluated.plot()
    labels = {text.get_text() for text in ax.get_legend().get_texts()}
    assert {"expected on new people", "updates", "fewest possible changes"} <= labels
    matplotlib.pyplot.close(ax.figure)


def test_a_step_says_which_figures_are_measured_and_which_expected(curve):
    trade_off = curve.trade_off()
    step = trade_off.steps[-1]
    sentence = step_sentence(trade_off, len(trade_off.steps) - 1)
    assert "on the fit rows. Expected on as many new people" in sentence
    assert f"{step.expected_fairness:.3f}" in sentence


def test_a_frontier_expects_nothing_of_cells_with_a_handful_of_people():
    rows = make_biased(200, random_state=0)
    group = np.asarray(rows.sensitive_features).copy()
    positive = np.flatnonzero((np.asarray(rows.target) == 1) & (group == "g1"))
    group[positive[4:]] = "g0"
    model = LogisticRegression().fit(rows.data, rows.target)
    update = ControlledDebiaser(
        model, constraints="equalized_odds", borderline=0, fit_rows_are_new=True
    )
    curve = frontier(update, rows.data, rows.target, sensitive_features=group, targets=[0.2, 0.3])
    assert curve.frame()["expected_fairness"].isna().all()
    assert "Nothing can be expected on as many new people" in curve.select(target=0.3).status_
