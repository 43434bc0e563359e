"""Every update, frontier and comparison says whether people who gain outscore the others."""

from __future__ import annotations

import math
import pickle

import matplotlib
import numpy as np
import pandas as pd
import pytest

from commod import ScoreColumn, compare, frontier
from commod._study.pictures import default_color
from commod._words.update import further_sentences
from commod.exceptions import InputError
from commod.metrics import outscoring_probability
from commod.rivals import LPP, MinimalFlip, RejectOption
from commod.updates import _promise
from quick_updates import quick_control

matplotlib.use("Agg")


@pytest.fixture(scope="module")
def rows():
    """Return people whose postcode predicts the group better than their score does."""
    random = np.random.default_rng(0)
    group = random.choice(["a", "b"], 500)
    score = np.clip(random.normal(0.55 - 0.15 * (group == "b"), 0.2, 500), 0.01, 0.99)
    town = np.where(random.random(500) < 0.85, group == "b", group == "a") * 1.0
    X = pd.DataFrame({"score": score, "town": town + random.normal(0, 0.2, 500)})
    return X, (random.random(500) < score) * 1, group


@pytest.fixture(scope="module")
def curve(rows):
    X, y, group = rows
    update = quick_control(ScoreColumn("score"), borderline=0.1)
    return frontier(update, X, y, sensitive_features=group, targets=[0.75, 0.85, 0.95])


def measured(update, rows, change, **settings):
    X, y, group = rows
    before = (X["score"] > 0.5) * 1
    given = {"sensitive_features": group, "change": change, "y_true": y, **settings}
    return outscoring_probability(X["score"], before, update.predict(X), **given)


def said(update):
    return " ".join([update.status_, *further_sentences(update._facts)])


@pytest.mark.parametrize("direction", ["gains_only", "losses_only"])
def test_the_status_has_the_figures_of_the_fit_rows(rows, direction):
    X, y, group = rows
    update = quick_control(ScoreColumn("score"), target=0.9, direction=direction)
    update.fit(X, y, sensitive_features=group)
    changed, unchanged = ("gain", "loss") if direction == "gains_only" else ("loss", "gain")
    expected = measured(update, rows, changed)
    found = update.outscoring_[changed]
    assert found["value"] == expected.value
    assert (found["low"], found["high"]) == (expected.low, expected.high)
    assert found["true_share_changed"] == expected.true_share_changed
    assert math.isnan(update.outscoring_[unchanged]["value"])
    assert f"in {expected.value:.1%} of the pairs of the same group" in said(update)
    assert said(update).count("pairs of the same group") == 1


def test_the_favourable_label_decides_who_gains(rows):
    """Where label 0 is favourable, a person with a low score of label 1 is a good candidate."""
    X, y, group = rows
    update = quick_control(
        ScoreColumn("score"), target=0.9, favorable_label=0, pos_label=1, direction="losses_only"
    )
    update.fit(X, y, sensitive_features=group)
    expected = measured(update, rows, "loss", favorable_label=0, pos_label=1)
    assert expected.n_changed == update.n_losses_ > 0
    assert update.outscoring_["loss"]["value"] == expected.value
    assert "People who lose" in said(update)


def test_held_out_rows_are_the_rows_of_the_figures(rows, monkeypatch):
    monkeypatch.setattr(_promise, "N_TESTED_TARGETS", 2)  # fewer fits
    X, y, group = rows
    update = quick_control(ScoreColumn("score"), target=0.8, confidence=0.6, direction="gains_only")
    update.fit(X, y, sensitive_features=group)
    whole = measured(update, rows, "gain")
    assert 0 < update.n_gains_ < whole.n_changed
    assert update.outscoring_["gain"]["value"] != whole.value
    assert "held-out rows:" in update.status_ and "People who gain" in said(update)


def test_a_rival_that_changes_the_best_scored_says_so(rows):
    X, y, group = rows
    update = RejectOption(ScoreColumn("score"), strength=0.1).fit(X, y, sensitive_features=group)
    assert update.outscoring_["gain"]["value"] == 1.0
    assert "People who gain have higher base scores for the favourable label" in said(update)


def test_an_unchanged_update_says_nothing(rows):
    X, y, group = rows
    update = LPP(ScoreColumn("score"), strength=0.0).fit(X, y, sensitive_features=group)
    assert "pairs of the same group" not in said(update)


def test_a_saved_update_keeps_the_figures(rows):
    X, y, group = rows
    update = MinimalFlip(ScoreColumn("score")).fit(X, y, sensitive_features=group)
    saved = pickle.loads(pickle.dumps(update)).outscoring_
    assert saved["gain"] == update.outscoring_["gain"]
    assert saved["gain"]["value"] >= 0


def test_the_frontier_has_a_column_for_gains_and_one_for_losses(rows, curve):
    frame = curve.frame()
    for i, line in frame.iterrows():
        update = curve.points[i].candidate.build()
        for change, column in (("gain", "outscoring"), ("loss", "outscoring_losses")):
            expected = measured(update, rows, change).value
            assert line[column] == pytest.approx(expected, nan_ok=True)
    steps = curve.trade_off().steps
    assert {step.outscoring for step in steps} <= {*frame["outscoring"], None}


def test_a_pickled_frontier_holds_no_scores(rows, curve):
    copied = pickle.loads(pickle.dumps(curve))
    assert copied._rows.scores is None
    assert "_sides" not in vars(copied._rows)
    assert copied.frame().equals(curve.frame())


def test_the_plot_shows_whom_the_updates_change_as_colour(curve):
    import matplotlib.pyplot as plt

    for color, label in ((None, "outscores"), ("accuracy", "accuracy")):
        figure = curve.plot(color=color).figure
        assert label in figure.axes[-1].get_ylabel()
        plt.close(figure)
    with pytest.raises(InputError, match="accuracy"):
        curve.plot(color="acuracy")


def test_the_colour_is_that_of_the_direction_with_more_changes():
    frame = pd.DataFrame({"n_gains": [1, 2], "n_losses": [9, 0], "accuracy": 0.5})
    frame[["outscoring", "outscoring_losses"]] = 0.3
    assert default_color(frame) == "outscoring_losses"
    assert default_color(frame[1:]) == "outscoring"
    assert default_color(frame.assign(outscoring_losses=np.nan)) == "accuracy"


def test_a_comparison_has_the_columns_for_every_method(rows):
    X, y, group = rows
    model = ScoreColumn("score")
    methods = [RejectOption(model), LPP(model), MinimalFlip(model)]
    comparison = compare(methods, X, y, sensitive_features=group)
    frame = comparison.frame()
    loss = comparison.base_accuracy - frame["accuracy"]
    assert np.allclose(frame["accuracy_loss"], loss)
    has_gains = frame["n_gains"] > 0
    assert not (frame["outscoring"].notna() & ~has_gains).any()
    by_method = frame[has_gains].groupby("method")["outscoring"].min()
    assert by_method["RejectOption"] == 1.0  # it changes those nearest to the threshold
    assert set(by_method.dropna().index) == {"RejectOption", "LPP", "MinimalFlip"}
