"""Whom an update changes: extra changes go to people near the threshold, gains come first."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from commod import ScoreColumn, bounds, frontier
from commod._words.update import further_sentences
from commod.datasets import make_biased
from commod.exceptions import CommodWarning, InputError
from quick_updates import quick_control


@cache
def table(seed=0, n=700):
    """Return X with a column of scores, y and groups; the base model has seen other rows."""
    data = make_biased(n + 300, n_features=4, random_state=seed)
    model = LogisticRegression().fit(data.data[:300], data.target[:300])
    X = data.data[300:].reset_index(drop=True)
    y, s = (np.asarray(values)[300:] for values in (data.target, data.sensitive_features))
    return X.assign(score=model.predict_proba(X)[:, 1]), y, s


def fit(rows, **params):
    X, y, s = rows
    asked = {"target": 0.8, "borderline": 0.25, "target_on": "new_rows"}
    update = quick_control(ScoreColumn("score"), **{**asked, **params})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        return update.fit(X, y, sensitive_features=s)


def distance_of_changed(update, X):
    changed = update.changes(X).changed
    return float((X["score"][changed] - 0.5).abs().mean())


# -- borderline -----------------------------------------------------------------------------------


def test_extra_changes_buy_accuracy_and_stay_within_what_was_stated():
    """The counts are those on rows that the points have not seen, as is the accuracy."""
    rows = table(1)
    asked = {"direction": "gains_only", "max_lines": 5}
    fewest, *others = (fit(rows, borderline=b, **asked) for b in (0, 0.1, 0.25, 1))
    assert fewest.reached_ and fewest.expected_.change_rate > 0
    accuracy = fewest.expected_.accuracy
    for update, borderline in zip(others, (0.1, 0.25, 1), strict=True):
        most = (1 + borderline) * fewest.expected_.change_rate
        assert update.reached_
        assert fewest.expected_.change_rate <= update.expected_.change_rate <= most + 1e-12
        assert update.expected_.accuracy >= accuracy
        accuracy = update.expected_.accuracy
        first, kept = update.history_["change_rate"]
        assert first == pytest.approx(fewest.expected_.change_rate)
        assert kept == update.expected_.change_rate
    assert others[-1].expected_.accuracy > fewest.expected_.accuracy, "nothing was bought"


def test_without_labels_extra_changes_go_to_people_nearer_to_the_threshold():
    X, _, s = table(1)
    updates = [fit((X, None, s), borderline=b, direction="gains_only") for b in (0, 0.25, 1)]
    distances = [distance_of_changed(update, X) for update in updates]
    assert distances[0] > distances[1] > distances[2]
    nearness = [update.search_.nearness for update in updates]
    assert nearness == sorted(nearness) and nearness[-1] > nearness[0]
    shares = [update.outscoring_["gain"]["value"] for update in updates]
    assert shares[2] > shares[0] + 0.1
    sentence = (
        "If two people have the same base decision and the same sum of points, and one decision "
        "changes, it is that of the person nearer to the threshold."
    )
    assert all(
        (sentence in further_sentences(u._facts)) == (u.search_.nearness > 0.05) for u in updates
    )


def test_people_with_the_same_points_change_in_the_order_of_their_scores():
    X, _, s = table()
    update = fit((X, None, s), borderline=1, direction="gains_only")
    low = X.iloc[[int(np.argmax(update.raw_ratio(X)))] * 50].assign(
        score=np.linspace(0.01, 0.5, 50)
    )
    changed = update.changes(low).changed
    assert changed[:-1].any()  # the last one is at the threshold, where nobody changes
    first = int(np.argmax(changed))
    assert changed[first:-1].all() and not changed[:first].any()


def test_an_undefined_borderline_is_refused():
    for value in (-0.1, np.nan, np.inf, "much", None):
        with pytest.raises((InputError, TypeError), match="borderline"):
            fit(table(), borderline=value)


def test_the_limit_knows_who_is_beyond_the_gate():
    X, _, s = rows = table()
    update = fit(rows, max_margin=0.2, target=0.7)
    is_open = (X["score"] - 0.5).abs() <= 0.2
    fewest = bounds.minimal_cost(
        (X["score"] > 0.5) * 1,
        change_cost=np.ones(len(X)),
        sensitive_features=s,
        target=update.fairness_,
        may_change=is_open,
    )
    assert update.limit_ == pytest.approx(fewest.cost / len(X))


# -- directions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "target"), [(2, 0.75), (9, 0.9)])
def test_gains_alone_are_kept_only_within_the_extra_changes(seed, target):
    rows = table(seed, n=400)
    gains, losses = (
        fit(rows, borderline=0, target=target, direction=one)
        for one in ("gains_only", "losses_only")
    )
    for borderline in (0, 0.25):
        update = fit(rows, borderline=borderline, target=target)
        fewest = update.history_["change_rate"][0]
        assert update.search_.direction in ("any", "gains_only")
        if update.search_.direction == "gains_only":
            assert update.n_losses_ == 0 and fewest == gains.expected_.change_rate
        elif update.reached_ and gains.reached_:
            assert gains.expected_.change_rate > (1 + borderline) * fewest
        for one in (gains, losses):  # both directions never need more than one
            if one.reached_:
                assert update.reached_ and fewest <= (1 + borderline) * one.expected_.change_rate


def test_gains_that_need_more_changes_are_kept_where_these_are_allowed():
    rows, asked = table(), {"favorable_label": 0, "pos_label": 1}
    both = fit(rows, borderline=0, **asked)
    gains = fit(rows, borderline=0, direction="gains_only", **asked)
    assert both.search_.direction == "any" and both.n_losses_ > 0
    needed = gains.expected_.change_rate / both.expected_.change_rate - 1
    assert gains.reached_ and needed > 0.1
    assert fit(rows, borderline=0.7 * needed, **asked).search_.direction == "any"
    assert fit(rows, borderline=1.3 * needed, **asked).search_.direction == "gains_only"


def test_the_kept_direction_is_said_and_holds_on_new_rows_and_in_the_patch():
    X, _, _ = rows = table()
    update, new = fit(rows), table(1)[0]
    assert update.search_.direction == "gains_only" and update.direction == "any"
    assert any("chose gains only" in text for text in further_sentences(update._facts))
    assert not update.changes(X).loss.any()
    changes = update.changes(new)
    assert changes.changed.any() and not changes.loss.any()
    patched = update.to_patch().apply(new, score="score")
    assert np.array_equal(patched["commod_changed"], changes.changed)


# -- frontier -------------------------------------------------------------------------------------


def test_a_frontier_moves_to_nearer_people_too():
    X, _, s = table()
    shares = []
    for borderline in (0, 0.5):
        update = quick_control(ScoreColumn("score"), borderline=borderline)
        found = frontier(update, X, None, sensitive_features=s, targets=[0.6, 0.7, 0.8]).frame()
        shares.append(found["outscoring"].mean())
    assert shares[1] > shares[0] + 0.1
