"""Displays: what is drawn are the counts and shares of the decisions, however things are named."""

import itertools
from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import calibration_curve
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from commod import COMMOD, ScoreColumn, audit, frontier
from commod._displays import CalibrationDisplay, ChangeDisplay, ConceptDisplay, FrontierDisplay
from commod._displays.decisions import Reliability
from commod._record.explanation import Card, CardLine, Concept, Estimate
from commod._reporting.explain import explain
from commod.datasets import make_biased
from commod.exceptions import InputError
from commod.rivals import MinimalFlip
from evidence_updates import with_evidence
from quick_updates import quick_control

matplotlib.use("Agg")

HOSTILE = ["<script>alert(1)</script>", "$\\frac{$", "=1+1", "_under", "x" * 10_000, "\u202eevil"]


@pytest.fixture(autouse=True)
def no_figure_is_left():
    assert not plt.get_fignums()
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return make_biased(600, bias=1.5, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return LogisticRegression().fit(data.data[:300], data.target[:300])


@pytest.fixture(scope="module")
def update(model, data):
    fitted = quick_control(model, target=0.8, pos_label=1, favorable_label=0)
    return fitted.fit(data.data, data.target, sensitive_features=data.sensitive_features)


@pytest.fixture(scope="module")
def aware(model, data):
    rival = MinimalFlip(model, strength=1.0)
    return rival.fit(data.data, data.target, sensitive_features=data.sensitive_features)


def texts(ax):
    return [text.get_text() for text in ax.texts]


# -- changes ---------------------------------------------------------------------------------------


def naive_counts(before, after, groups, favorable):
    return {
        group: (
            int((groups == group).sum()),
            int(((groups == group) & (before != favorable) & (after == favorable)).sum()),
            int(((groups == group) & (before == favorable) & (after != favorable)).sum()),
        )
        for group in np.unique(groups).tolist()
    }


def test_changes_of_an_update_are_those_of_its_predictions(update, model, data):
    s = np.asarray(data.sensitive_features)
    before, after = model.predict(data.data), update.predict(data.data)
    expected = naive_counts(before, after, s, favorable=0)
    by_update = ChangeDisplay.from_estimator(update, data.data, sensitive_features=s)
    by_labels = ChangeDisplay.from_predictions(
        before, after, sensitive_features=s, favorable_label=0
    )
    assert by_update.by_group == by_labels.by_group == expected
    assert sum(gains + losses for _, gains, losses in expected.values()) > 0


def test_bars_are_shares_of_the_group_and_counts_are_written_beside():
    before, after = [0] * 8 + [1] * 2, [1, 0, 0, 0, 0, 0, 0, 0, 1, 0]
    display = ChangeDisplay.from_predictions(
        before, after, sensitive_features=["a"] * 4 + ["b"] * 6
    )
    widths = [bar.get_width() for bar in display.ax_.patches]
    np.testing.assert_allclose(widths, [1 / 4, 0, 0, -1 / 6])  # gains of a, b; losses of a, b
    assert texts(display.ax_) == ["1 (25.0%)", "0 (0.0%)", "0 (0.0%)", "1 (16.7%)"]
    assert display.ax_.get_title() == "2 of 10 decisions change: 1 gain, 1 loss"
    assert "lose the favourable outcome" in display.ax_.get_xlabel()
    assert display.figure_ is display.ax_.figure
    lines = display.ax_.spines.items()
    assert [place for place, line in lines if line.get_visible()] == ["bottom"]


def test_an_aware_rival_is_asked_with_the_groups(aware, data):
    display = ChangeDisplay.from_estimator(
        aware, data.data, sensitive_features=data.sensitive_features
    )
    n_changes = sum(gains + losses for _, gains, losses in display.by_group.values())
    assert n_changes == aware.n_gains_ + aware.n_losses_


def test_of_many_groups_those_with_most_changes_are_drawn_and_the_rest_is_counted():
    groups = np.repeat(np.arange(50), 10)
    before = np.zeros(500, dtype=int)
    after = (groups >= 45).astype(int)
    display = ChangeDisplay.from_predictions(before, after, sensitive_features=groups, max_groups=5)
    names = [label.get_text().split("\n")[0] for label in display.ax_.get_yticklabels()]
    assert names == ["45", "46", "47", "48", "49"]
    assert "(45 groups with fewer changes left out)" in display.ax_.get_title()
    assert "50 of 500 decisions change: 50 gains, 0 losses" in display.ax_.get_title()


def test_intersections_and_hostile_names_are_inert_text():
    groups = pd.DataFrame({"one": HOSTILE * 4, "two": ["a", "b"] * 12})
    decisions = np.arange(24) % 2
    display = ChangeDisplay.from_predictions(decisions, 1 - decisions, sensitive_features=groups)
    display.figure_.canvas.draw()  # a formula would fail or warn here
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert all(len(line) < 60 for label in labels for line in label.split("\n"))
    assert any("<script>alert(1)</script> ×" in label for label in labels)


def test_nothing_changes_is_drawn_too():
    display = ChangeDisplay.from_predictions([0, 1], [0, 1], sensitive_features=["a", "b"])
    display.figure_.canvas.draw()
    assert display.ax_.get_title() == "0 of 2 decisions change: 0 gains, 0 losses"


def test_what_is_no_fitted_update_is_refused(model, data):
    with pytest.raises(InputError, match=r"got LogisticRegression. For .* use from_predictions"):
        ChangeDisplay.from_estimator(model, data.data, sensitive_features=data.sensitive_features)
    with pytest.raises(NotFittedError):
        CalibrationDisplay.from_estimator(quick_control(model), data.data, data.target)
    with pytest.raises(NotFittedError):
        ConceptDisplay.from_estimator(quick_control(model), data.data)
    with pytest.raises(InputError, match="sensitive_features is missing"):
        ChangeDisplay.from_predictions([0], [1], sensitive_features=None)


def test_a_label_under_another_name_is_refused_by_that_name():
    decisions = ["yes", "no"], ["yes", "yes"]
    groups = {"sensitive_features": ["a", "b"]}
    with pytest.raises(TypeError, match="unexpected keyword argument 'pos_label'"):
        ChangeDisplay.from_predictions(*decisions, **groups, pos_label="yes")
    with pytest.raises(InputError, match=r"favorable_label=1 is not .*\['yes', 'no'\]"):
        ChangeDisplay.from_predictions(*decisions, **groups)
    with pytest.raises(InputError, match=r"favorable_label=1 is not among .* y_after: \['yes'\]"):
        ChangeDisplay.from_predictions([1, 0], ["yes", "yes"], **groups)
    display = ChangeDisplay.from_predictions(*decisions, **groups, favorable_label="yes")
    assert display.by_group == {"a": (1, 0, 0), "b": (1, 1, 0)}
    with pytest.raises(TypeError, match="unexpected keyword argument 'labels'"):
        ChangeDisplay.from_estimator(None, None, **groups, labels=1)


# -- calibration -----------------------------------------------------------------------------------


def test_reliability_is_that_of_scikit_learn():
    random = np.random.RandomState(0)
    scores = random.rand(500) ** 2
    happened = random.rand(500) < scores
    curve = Reliability.of(happened, scores)
    observed, mean_score = calibration_curve(happened, scores, n_bins=10, strategy="quantile")
    np.testing.assert_allclose([one.observed.value for one in curve.bins], observed)
    np.testing.assert_allclose([one.mean_score for one in curve.bins], mean_score)
    assert sum(one.n for one in curve.bins) == sum(curve.people) == 500


def test_calibration_is_that_of_the_audit(update, model, data):
    """One number for the same scores: the picture and the report must not disagree."""
    scores = [m.predict_proba(data.data)[:, 1] for m in (model, update)]
    found = audit(
        model.predict(data.data),
        update.predict(data.data),
        sensitive_features=data.sensitive_features,
        y_true=data.target,
        scores_before=scores[0],
        scores_after=scores[1],
        pos_label=1,
        level=0.9,
    ).calibration
    display = CalibrationDisplay.from_predictions(data.target, *scores, level=0.9)
    assert (display.before.bins, display.after.bins) == (found.before, found.after)
    assert (display.before.error, display.after.error) == (found.error_before, found.error_after)


def test_no_point_stands_for_a_handful_and_each_has_its_interval():
    """Three people with high scores, none of whom came true, are no bin of their own."""
    scores = np.append(np.linspace(0.05, 0.3, 297), [0.91, 0.93, 0.95])
    happened = np.append(np.arange(297) % 6 == 0, [False] * 3).astype(int)
    display = CalibrationDisplay.from_predictions(happened, scores, scores)
    assert {one.n for one in display.before.bins} == {30}
    intervals = display.ax_.collections[0].get_segments()
    expected = [
        [(one.mean_score, one.observed.low), (one.mean_score, one.observed.high)]
        for one in display.before.bins
    ]
    np.testing.assert_allclose(intervals, expected)
    assert all(high[1] - low[1] > 0.1 for low, high in expected)


def test_calibration_of_an_update_is_that_of_its_scores(update, model, data):
    display = CalibrationDisplay.from_estimator(update, data.data, data.target, level=0.8)
    expected = CalibrationDisplay.from_predictions(
        data.target,
        model.predict_proba(data.data)[:, 1],
        update.predict_proba(data.data)[:, 1],
        level=0.8,
    )
    assert (display.before, display.after) == (expected.before, expected.after)
    _, before, after = display.ax_.get_lines()
    shares = [one.observed.value for one in display.after.bins]
    np.testing.assert_allclose(after.get_ydata(), shares)
    assert before.get_label() == f"before: {display.before.error:.1%} off on average"
    assert "closer to the dotted line is better" in display.ax_.get_ylabel()


def test_calibration_counts_the_positive_label_whatever_it_is_called():
    labels = np.array(["$no$", "yes"])
    y = labels[[0, 1, 1, 0]]
    scores = [0.1, 0.9, 0.8, 0.3]
    display = CalibrationDisplay.from_predictions(y, scores, scores, pos_label="$no$")
    assert [one.observed.value for one in display.before.bins] == [1, 1, 0, 0]
    display.figure_.canvas.draw()
    with pytest.raises(InputError, match="level=95 must be a number between 0 and 1"):
        CalibrationDisplay.from_predictions(y, scores, scores, pos_label="yes", level=95)
    with pytest.raises(InputError, match="scores_after has 3 rows, but 4 were expected"):
        CalibrationDisplay.from_predictions(y, scores, scores[:3], pos_label="yes")


def test_the_histogram_shares_the_place_of_the_axes_given():
    figure, axes = plt.subplots(1, 2)
    display = CalibrationDisplay.from_predictions([0, 1], [0.2, 0.8], [0.2, 0.8], ax=axes[0])
    assert display.ax_ is axes[0] and display.figure_ is figure
    assert display.histogram_ax_.get_position().y1 <= axes[0].get_position().y0
    people, edges, _ = display.histogram_ax_.patches[0].get_data()
    bars = np.repeat((edges[:-1] + edges[1:]) / 2, people.astype(int))
    np.testing.assert_allclose(bars, [0.2, 0.8], atol=1 / len(people))
    by_hand = figure.add_axes((0.1, 0.1, 0.2, 0.2))
    assert (
        CalibrationDisplay(before=display.before, after=display.after).plot(by_hand).ax_ is by_hand
    )
    figure.canvas.draw()


# -- frontier --------------------------------------------------------------------------------------


def test_the_frontier_is_drawn_once_computed_or_given(model, data):
    X, y, s = data.data, data.target, data.sensitive_features
    display = FrontierDisplay.from_estimator(
        quick_control(model), X, y, sensitive_features=s, targets=[0.7, 0.9]
    )
    points = display.ax_.collections[0].get_offsets()
    frame = display.frontier.frame()
    np.testing.assert_allclose(points, frame[["fairness", "change_rate"]])
    again = FrontierDisplay.from_frontier(display.frontier, ax=plt.subplots()[1])
    np.testing.assert_allclose(again.ax_.collections[0].get_offsets(), points)
    assert again.ax_.get_xlabel().endswith("(fairer →)")
    assert again.ax_.get_ylabel().endswith("(fewer is better ↓)")
    with pytest.raises(InputError, match=r"takes what commod\.frontier returns; got function"):
        FrontierDisplay.from_frontier(frontier)


# -- concepts --------------------------------------------------------------------------------------


def test_concepts_are_those_of_the_explanation(update, data):
    why = explain(update, data.data)
    by_update = ConceptDisplay.from_estimator(update, data.data)
    by_reasons = ConceptDisplay.from_explanation(why, max_terms=2)
    assert by_update.card == why.card == by_reasons.card
    assert by_update.axes_.shape == (sum(bool(c.lines) for c in why.card.concepts), 2)


@pytest.mark.usefixtures("quick_compilation")
def test_bars_of_a_ratio_to_the_right_push_towards_a_change(model, data):
    update = COMMOD(
        model, epochs=20, lambda_fair=6, training={"adversary_hidden": (8,)}, random_state=0
    )
    update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    display = ConceptDisplay.from_estimator(update, data.data)
    concepts = [c for c in display.card.concepts if c.lines]
    points = dict(update.scorecard_.rows())
    assert concepts and points
    for concept, (left, right) in zip(concepts, display.axes_, strict=True):
        widths = [bar.get_width() for bar in left.patches]
        for line, width in zip(concept.lines, widths, strict=True):
            assert np.sign(width) == -np.sign(points[line.term])  # points are on r
            assert abs(width) == pytest.approx(line.spread)
        shares = [bar.get_width() for bar in right.patches]
        assert shares == [concept.change_if_active.value, concept.change_if_inactive.value]
    assert "to change →" in display.axes_[-1, 0].get_xlabel()


def test_bars_of_evidence_push_towards_the_favourable_decision_to_the_right(update, data):
    made = with_evidence(update, data.data)
    display = ConceptDisplay.from_estimator(made, data.data)
    assert display.card == explain(made, data.data).card
    points = dict(made.scorecard_.rows())
    for concept, (left, _) in zip(display.card.concepts, display.axes_, strict=True):
        for line, bar in zip(concept.lines, left.patches, strict=True):
            assert np.sign(bar.get_width()) == np.sign(points[line.term])
        names = [label.get_text() for label in left.get_yticklabels()]
        assert any(line.counted in "".join(names) for line in concept.lines)
    label = display.axes_[-1, 0].get_xlabel()
    assert "evidence for a gain →" in label and "r per" not in label


def hostile_card(n_lines=30):
    lines = tuple(
        CardLine(HOSTILE[i % len(HOSTILE)], "c", "per unit", 1.0 - 0.07 * i, None, 0)
        for i in range(n_lines)
    )
    unknown = Estimate(None, None, None)
    return Card(1.0, lines, (Concept(0, HOSTILE[1], 1.0, 0, 5, unknown, unknown, lines),))


def test_hostile_names_and_many_lines_fit_into_a_small_place():
    figure, axes = plt.subplots(2, 2, figsize=(12, 8), layout="constrained")
    display = ConceptDisplay.from_explanation(SimpleNamespace(card=hostile_card()), ax=axes[0, 0])
    figure.canvas.draw()
    assert len(display.ax_.patches) == 8
    assert "(22 weaker terms left out)" in display.ax_.get_title(loc="left")
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert all(len(label) < 60 for label in labels)
    boxes = [label.get_window_extent() for label in display.ax_.get_yticklabels()]
    assert all(low.y1 <= high.y0 + 4 for high, low in itertools.pairwise(boxes))


def test_a_scorecard_without_points_says_so():
    display = ConceptDisplay(card=Card(1.0, (), ())).plot()
    display.figure_.canvas.draw()
    assert texts(display.ax_) == ["No term has points: r = 1 for everybody."]


def test_concepts_need_a_scorecard_and_a_place(aware, data):
    with pytest.raises(InputError, match=r"MinimalFlip has no scorecard.*ChangeDisplay"):
        ConceptDisplay.from_estimator(aware, data.data)
    with pytest.raises(InputError, match="for an update with a scorecard; got dict"):
        ConceptDisplay.from_explanation({})
    figure = plt.figure()
    with pytest.raises(InputError, match="has no space that could be divided"):
        ConceptDisplay(card=hostile_card()).plot(figure.add_axes((0, 0, 1, 1)))


def test_updates_of_a_score_column_can_be_drawn():
    score = np.where(np.arange(400) % 3, 0.3, 0.7) + np.arange(400) / 4000
    X = pd.DataFrame({"score": score, "x": np.arange(400.0) % 300, "kind": list("abcd") * 100})
    s = np.where(np.arange(400) < 200, "a", "b")
    y = np.arange(400) % 2
    update = quick_control(ScoreColumn("score"), target=0.95).fit(X, y, sensitive_features=s)
    display = CalibrationDisplay.from_estimator(update, X, y)
    assert sum(one.n for one in display.before.bins) == 400
    assert ConceptDisplay.from_estimator(update, X).figure_ is not display.figure_
