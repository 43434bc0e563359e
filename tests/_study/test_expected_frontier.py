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
from commod.updates import _candidates

matplotlib.use("Agg")

N = 600
QUICK = {"borderline": 0, "max_lines": None}
EXPECTED = ["expected_fairness", "expected_change_rate", "expected_accuracy"]


@pytest.fixture(autouse=True, scope="module")
def few_targets():
    """Let a frontier have 25 updates; `test_frontier.py` has the hundred of the default."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_candidates, "N_TARGETS", 25)
        yield


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


def test_every_update_of_the_default_frontier_has_expected_figures(curve):
    frame = curve.frame()
    assert len(frame) == 25
    assert frame[EXPECTED].notna().all(axis=None)
    assert frame["expected_fairness"].between(0, 1).all()


def test_expectations_are_those_of_samples_of_as_many_new_people(curve, model, fit_rows, biased):
    on_fit_rows = curve.frame()
    fairness = []
    for start in range(2 * N, 4 * N, N):
        new = rows_of(biased, slice(start, start + N), "_eval")
        sample = frontier(ControlledDebiaser(model, **QUICK), **fit_rows, **new, describe=False)
        frame = sample.frame()
        assert on_fit_rows["expected_fairness"].equals(frame["expected_fairness"])
        fairness.append(frame["fairness"])
    near_parity = on_fit_rows["fairness"] > 0.9
    expected = on_fit_rows.loc[near_parity, "expected_fairness"].mean()
    assert expected < on_fit_rows.loc[near_parity, "fairness"].mean() - 0.02
    assert expected == pytest.approx(np.mean(fairness, axis=0)[near_parity].mean(), abs=0.06)


def test_without_evaluated_rows_the_expectation_selects(curve):
    frame, target = curve.frame(), 0.8
    update = curve.select(target=target)
    is_enough = frame["expected_fairness"] >= target
    assert update.expected_.fairness >= target == update.target_
    assert update.reached_
    fewest = frame.loc[is_enough, "expected_change_rate"].min()
    assert update.expected_.change_rate == pytest.approx(fewest, abs=0.01)
    with pytest.warns(TargetWarning, match="No update is expected to reach .* on new people"):
        curve.select(target=1.0)


def test_with_evaluated_rows_these_select(evaluated):
    frame, target = evaluated.frame(), 0.8
    chosen = evaluated.select(target=target)
    reaching = frame[frame["fairness"] >= target]
    best = reaching[reaching["change_rate"] == reaching["change_rate"].min()]
    assert chosen.target_ in set(best["target"])


def test_the_own_target_is_among_those_of_the_default_frontier(curve):
    frame = curve.frame()
    at_target = frame.loc[frame["target"] == 0.8, "expected_fairness"].max()
    assert 0.8 <= at_target < 0.82


def test_targets_go_from_the_base_model_to_near_parity_and_are_expected(curve):
    frame = curve.frame()
    assert frame["target"].is_monotonic_increasing
    assert frame["target"].iloc[0] == pytest.approx(curve.base_fairness, abs=0.04)
    assert frame["target"].iloc[-1] == 0.98
    in_reach = frame[frame["target"] <= frame["expected_fairness"].max()]
    assert len(in_reach) > 12
    assert (in_reach["expected_fairness"] >= in_reach["target"] - 1e-9).all()
    assert in_reach["expected_fairness"].is_monotonic_increasing


def test_a_given_target_is_the_expectation_of_its_update(model, fit_rows):
    targets = [0.7, 0.8]
    update = ControlledDebiaser(model, **QUICK)
    frame = frontier(update, **fit_rows, targets=targets, describe=False).frame()
    assert frame["target"].tolist() == targets
    assert (frame["expected_fairness"] >= np.array(targets) - 1e-9).all()
    for line in frame.to_dict("records"):
        alone = ControlledDebiaser(model, target=line["target"], **QUICK).fit(**fit_rows)
        assert line["expected_fairness"] == alone.expected_.fairness
        assert line["expected_change_rate"] == alone.expected_.change_rate
        assert line["expected_accuracy"] == alone.expected_.accuracy


@pytest.mark.parametrize(("borderline", "direction"), [(0, "any"), (9, "gains_only")])
def test_all_updates_of_a_frontier_have_the_direction_of_its_own_target(
    model, fit_rows, borderline, direction
):
    update = ControlledDebiaser(
        model, constraints="true_positive_rate_parity", borderline=borderline, max_lines=None
    )
    curve = frontier(update, **fit_rows, describe=False)
    frame = curve.frame()
    assert len(frame) == 25 and frame["n_gains"].max() > 0
    assert (frame["n_losses"] > 0).any() == (direction == "any")
    assert curve.select(target=0.1).search_.direction == direction


def test_a_frontier_of_fit_rows_keeps_both_directions_for_equalized_odds(model, fit_rows):
    update = ControlledDebiaser(model, constraints="equalized_odds", target_on="fit_rows", **QUICK)
    curve = frontier(update, **fit_rows, targets=[0.3, 0.1], describe=False)
    assert curve.select(target=0.3).search_.direction == "any"
    assert curve.frame()[EXPECTED].isna().all(axis=None)


def test_an_unpickled_frontier_still_selects_by_expectation(model, fit_rows):
    update = ControlledDebiaser(model, **QUICK)
    curve = frontier(update, **fit_rows, targets=[0.7, 0.8], describe=False)
    copy = pickle.loads(pickle.dumps(curve))
    assert copy.frame()[EXPECTED].equals(curve.frame()[EXPECTED])
    assert copy.select(target=0.8).expected_.fairness >= 0.8 - 1e-9


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
    update = ControlledDebiaser(model, constraints="equalized_odds", borderline=0)
    curve = frontier(update, rows.data, rows.target, sensitive_features=group, targets=[0.2, 0.3])
    assert curve.frame()["expected_fairness"].isna().all()
    assert "There is no expectation for new people" in curve.select(target=0.3).status_
