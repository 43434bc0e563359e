"""pandas objects whose indexes disagree are refused everywhere; what has no labels is taken."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate, train_test_split

from commod import (
    COMMOD,
    CalibrationDisplay,
    ChangeDisplay,
    FrontierDisplay,
    ScoreColumn,
    audit,
    bounds,
    compare,
    explain,
    frontier,
    metrics,
    stability,
)
from commod.exceptions import CommodWarning, InputError
from commod.rivals import MinimalFlip, RejectOption, check_rival, lineup
from quick_updates import quick_control

pytestmark = pytest.mark.filterwarnings("ignore::commod.exceptions.CommodWarning")

N = 240
RNG = np.random.default_rng(0)
GROUP = pd.Series(RNG.integers(0, 2, N), name="group").map({0: "a", 1: "b"})
AGE = pd.Series(RNG.normal(45 - 8 * (GROUP == "a"), 10), name="age")
SCORE = pd.Series(1 / (1 + np.exp(-(AGE - 42) / 8)), name="score")
X = pd.DataFrame({"age": AGE, "town": RNG.choice(["Oslo", "Rome"], N), "score": SCORE})
Y = pd.Series((RNG.random(N) < SCORE).astype(int), name="y")
WEIGHT = pd.Series(np.ones(N))
SCORED = ScoreColumn("score")
NEW = (SCORE > 0.45).astype(int)
OLD = (SCORE > 0.5).astype(int)
FITTED = quick_control(SCORED, target=0.9).fit(X, Y, sensitive_features=GROUP)
AWARE = RejectOption(SCORED).fit(X, Y, sensitive_features=GROUP)
WAY_OUT = r"reset_index\(drop=True\).*to_numpy\(\)"


def shuffled(values):
    """Return the same labels in another order."""
    return values.sample(frac=1, random_state=1)


def relabelled(values):
    """Return the same rows under other labels."""
    return values.set_axis(np.arange(N) + 7)


# Each entry calls one function with row-wise arguments by name.
CALLS = {
    "ControlledDebiaser.fit": (
        lambda X, y, sensitive_features, sample_weight: quick_control(SCORED).fit(
            X, y, sensitive_features=sensitive_features, sample_weight=sample_weight
        ),
        {"X": X, "y": Y, "sensitive_features": GROUP, "sample_weight": WEIGHT},
    ),
    "COMMOD.fit": (
        lambda X, y, sensitive_features, ratio_weight: COMMOD(SCORED, epochs=0).fit(
            X, y, sensitive_features=sensitive_features, ratio_weight=ratio_weight
        ),
        {"X": X, "y": Y, "sensitive_features": GROUP, "ratio_weight": WEIGHT},
    ),
    "score": (FITTED.score, {"X": X, "y": Y, "sample_weight": WEIGHT}),
    "score of a rival": (AWARE.score, {"X": X, "y": Y, "sensitive_features": GROUP}),
    "predict": (AWARE.predict, {"X": X, "sensitive_features": GROUP}),
    "predict_proba": (AWARE.predict_proba, {"X": X, "sensitive_features": GROUP}),
    "decision_function": (AWARE.decision_function, {"X": X, "sensitive_features": GROUP}),
    "decision_proba": (AWARE.decision_proba, {"X": X, "sensitive_features": GROUP}),
    "changes": (AWARE.changes, {"X": X, "sensitive_features": GROUP}),
    "check_rival": (
        lambda **rows: check_rival(RejectOption(SCORED), **rows),
        {"X": X, "y": Y, "sensitive_features": GROUP},
    ),
    "p_rule": (
        lambda **rows: metrics.p_rule(None, **rows),
        {"y_pred": OLD, "sensitive_features": GROUP, "sample_weight": WEIGHT},
    ),
    **{
        name: (
            getattr(metrics, name),
            {"y_true": Y, "y_pred": OLD, "sensitive_features": GROUP, "sample_weight": WEIGHT},
        )
        for name in (
            "disparate_mistreatment",
            "true_positive_rate_difference",
            "false_positive_rate_difference",
            "group_rates",
        )
    },
    "change_rate": (
        metrics.change_rate,
        {"y_before": OLD, "y_after": NEW, "sample_weight": WEIGHT},
    ),
    "count_changes": (
        metrics.count_changes,
        {"y_before": OLD, "y_after": NEW, "sensitive_features": GROUP},
    ),
    "change_locality": (
        metrics.change_locality,
        {"X": X, "y_before": OLD, "y_after": NEW, "sample_weight": WEIGHT},
    ),
    "score_agreement": (
        metrics.score_agreement,
        {"scores_before": SCORE, "scores_after": SCORE**2, "sample_weight": WEIGHT},
    ),
    "minimal_changes": (
        lambda **rows: bounds.minimal_changes(target=0.9, constraints="equalized_odds", **rows),
        {"y_pred": OLD, "sensitive_features": GROUP, "y_true": Y},
    ),
    "minimal_cost": (
        lambda **rows: bounds.minimal_cost(target=0.9, constraints="equalized_odds", **rows),
        {"y_pred": OLD, "sensitive_features": GROUP, "y_true": Y, "change_cost": WEIGHT},
    ),
    "audit": (
        audit,
        {
            "y_before": OLD,
            "y_after": NEW,
            "sensitive_features": GROUP,
            "y_true": Y,
            "scores_before": SCORE,
            "scores_after": SCORE + 0,
            "X": X,
        },
    ),
    "explain": (
        lambda **rows: explain(None, **rows),
        {"X": X, "y_before": OLD, "y_after": NEW},
    ),
    "explain a rival": (
        lambda **rows: explain(AWARE, **rows),
        {"X": X, "sensitive_features": GROUP},
    ),
    "frontier": (
        lambda **rows: frontier(RejectOption(SCORED), grid={"strength": [0.1]}, **rows),
        {"X": X, "y": Y, "sensitive_features": GROUP},
    ),
    "frontier on other rows": (
        lambda **rows: frontier(
            RejectOption(SCORED), X, Y, sensitive_features=GROUP, grid={"strength": [0.1]}, **rows
        ),
        {"X_eval": X, "y_eval": Y, "sensitive_features_eval": GROUP},
    ),
    "frontier of ControlledDebiaser on other rows": (
        lambda **rows: frontier(
            quick_control(SCORED),
            X,
            Y,
            sensitive_features=GROUP,
            targets=[0.9],
            **rows,
        ),
        {"X_eval": X, "y_eval": Y, "sensitive_features_eval": GROUP},
    ),
    "compare": (
        lambda **rows: compare([MinimalFlip(SCORED)], **rows),
        {"X": X, "y": Y, "sensitive_features": GROUP},
    ),
    "compare on other rows": (
        lambda **rows: compare([MinimalFlip(SCORED)], X, Y, sensitive_features=GROUP, **rows),
        {"X_eval": X, "y_eval": Y, "sensitive_features_eval": GROUP},
    ),
    "stability": (
        lambda **rows: stability(RejectOption(SCORED), n_refits=2, random_state=0, **rows),
        {"X": X, "y": Y, "sensitive_features": GROUP},
    ),
    "stability on other rows": (
        lambda **rows: stability(
            RejectOption(SCORED),
            X,
            Y,
            sensitive_features=GROUP,
            n_refits=2,
            random_state=0,
            **rows,
        ),
        {"X_eval": X, "y_eval": Y, "sensitive_features_eval": GROUP},
    ),
    "ChangeDisplay": (
        lambda **rows: ChangeDisplay.from_estimator(FITTED, **rows),
        {"X": X, "sensitive_features": GROUP},
    ),
    "ChangeDisplay of decisions": (
        ChangeDisplay.from_predictions,
        {"y_before": OLD, "y_after": NEW, "sensitive_features": GROUP},
    ),
    "CalibrationDisplay": (
        lambda **rows: CalibrationDisplay.from_estimator(FITTED, **rows),
        {"X": X, "y": Y},
    ),
    "CalibrationDisplay of scores": (
        CalibrationDisplay.from_predictions,
        {"y_true": Y, "scores_before": SCORE, "scores_after": SCORE + 0},
    ),
    "FrontierDisplay": (
        lambda **rows: FrontierDisplay.from_estimator(
            RejectOption(SCORED), grid={"strength": [0.1]}, **rows
        ),
        {"X": X, "y": Y, "sensitive_features": GROUP},
    ),
    "Patch.verify": (FITTED.to_patch().verify, {"X": X, "sensitive_features": GROUP}),
}


@pytest.mark.parametrize("name", CALLS)
def test_rows_with_equal_indexes_are_taken_and_arrays_as_they_come(name):
    """Arguments in turn: pandas objects with equal labels, and arrays, which have none."""
    call, rows = CALLS[name]
    labels = np.arange(N)[::-1]
    first, *others = ((key, values.set_axis(labels)) for key, values in rows.items())
    turn = list(CALLS).index(name)
    mixed = (v.to_numpy() if (i + turn) % 2 else v for i, (_, v) in enumerate(others))
    call(**dict([first]), **dict(zip((key for key, _ in others), mixed, strict=True)))


@pytest.mark.parametrize("name", CALLS)
def test_rows_with_other_indexes_are_refused_with_the_way_out(name):
    call, rows = CALLS[name]
    for argument in rows:
        for change in (shuffled, relabelled):
            with pytest.raises(InputError, match=WAY_OUT) as caught:
                call(**{**rows, argument: change(rows[argument])})
            assert caught.value.parameter in rows, (argument, change)
            ordered = ".loc[" in str(caught.value)
            assert ordered == (change is shuffled), (argument, change)


def test_every_update_refuses_other_indexes_in_fit():
    arguments = itertools.cycle(["y", "sensitive_features"])
    for update, argument in zip(lineup(SCORED).values(), arguments, strict=False):
        rows = {"X": X, "y": Y, "sensitive_features": GROUP}
        rows[argument] = shuffled(rows[argument])
        with pytest.raises(InputError, match=rf"(?s){WAY_OUT}"):
            update.fit(**rows)


def test_sensitive_features_of_any_form_keep_their_labels():
    for groups in [
        lambda s: s.to_frame(),
        lambda s: pd.DataFrame({"one": s, "two": s}),
        lambda s: {"one": s},
        lambda s: {"one": GROUP, "two": s},
    ]:
        fit = quick_control(SCORED, target=0.9).fit
        fit(X, Y, sensitive_features=groups(GROUP))
        for change in (shuffled, relabelled):
            with pytest.raises(InputError, match=WAY_OUT):
                fit(X, Y, sensitive_features=groups(change(GROUP)))
            with pytest.raises(InputError, match=WAY_OUT):
                metrics.p_rule(None, OLD, sensitive_features=groups(change(GROUP)))


def test_labels_in_a_frame_of_one_column_keep_their_labels():
    fit = quick_control(SCORED, target=0.9).fit
    fit(X, Y.to_frame(), sensitive_features=GROUP)
    with pytest.raises(InputError, match=WAY_OUT):
        fit(X, shuffled(Y.to_frame()), sensitive_features=GROUP)


def test_indexes_with_equal_labels_agree():
    for one, other in [
        (pd.RangeIndex(N), pd.Index(list(range(N)))),
        (pd.RangeIndex(N), pd.Index(list(range(N)), dtype=object)),
        (pd.RangeIndex(N, name="id"), pd.RangeIndex(N)),
        (pd.Index(["p", "q"] * (N // 2)), pd.Index(["p", "q"] * (N // 2))),
        (pd.Index(["p", "q"] * (N // 2), dtype=object), pd.Index(["p", "q"] * (N // 2))),
        (pd.CategoricalIndex(["p", "q"] * (N // 2)), pd.Index(["p", "q"] * (N // 2))),
        (pd.MultiIndex.from_product([[0, 1], range(N // 2)]),) * 2,
        (pd.Index([None] * N), pd.Index([None] * N)),
    ]:
        quick_control(SCORED, target=0.9).fit(
            X.set_axis(one), Y.set_axis(other), sensitive_features=GROUP.set_axis(other)
        )
        with pytest.raises(InputError, match=WAY_OUT):
            metrics.p_rule(None, OLD.set_axis(one), sensitive_features=relabelled(GROUP))


def test_repeated_labels_in_another_order_are_refused():
    repeated = pd.Index(["p", "q"] * (N // 2))
    with pytest.raises(InputError, match=WAY_OUT):
        metrics.p_rule(
            None, OLD.set_axis(repeated), sensitive_features=GROUP.set_axis(repeated[::-1])
        )


def test_labels_that_are_missing_or_lists_are_compared():
    for index in [
        pd.Index(pd.array([None, *range(1, N)], dtype="Int64")),
        pd.Index([*range(N - 1), pd.NA], dtype=object),
        pd.MultiIndex.from_arrays([pd.array([None, *range(1, N)], dtype="Int64"), range(N)]),
        pd.Index([[i] for i in range(N)], dtype=object),
        pd.DatetimeIndex([None, *pd.date_range("2020-01-01", periods=N - 1)]),
    ]:
        rows = {"y_pred": OLD.set_axis(index), "sensitive_features": GROUP.set_axis(index)}
        assert metrics.p_rule(None, **rows) == metrics.p_rule(None, OLD, sensitive_features=GROUP)
        for other in (rows["sensitive_features"][::-1], relabelled(GROUP)):
            with pytest.raises(InputError, match=WAY_OUT):
                metrics.p_rule(None, rows["y_pred"], sensitive_features=other)


def test_a_split_stays_together_and_its_labels_are_compared():
    part, _, y, _, groups, _ = train_test_split(X, Y, GROUP, random_state=0)
    update = quick_control(SCORED, target=0.9).fit(part, y, sensitive_features=groups)
    assert update.score(part, y) > 0
    with pytest.raises(InputError, match=WAY_OUT):
        update.fit(part, y, sensitive_features=groups.reset_index(drop=True))
    by_position = groups.reset_index(drop=True).to_numpy()
    again = quick_control(SCORED, target=0.9).fit(part, y, sensitive_features=by_position)
    assert again.fairness_ == update.fairness_


@pytest.mark.parametrize(
    "table", [pl.from_pandas, pa.Table.from_pandas, lambda frame: frame.to_numpy()]
)
def test_other_tables_have_no_labels(table):
    frame = X[["age", "score"]]
    column = 1 if isinstance(table(frame), np.ndarray) else "score"
    expected = quick_control(SCORED).fit(frame, Y, sensitive_features=GROUP)
    groups = relabelled(GROUP)
    update = quick_control(ScoreColumn(column)).fit(
        table(frame), Y.tolist(), sensitive_features=groups
    )
    assert update.fairness_ == expected.fairness_
    other = relabelled(GROUP)
    value = metrics.p_rule(None, pl.Series(OLD.tolist()), sensitive_features=other)
    assert value == metrics.p_rule(None, OLD, sensitive_features=GROUP)


def test_cross_validation_of_pandas_rows_agrees():
    labels = np.random.default_rng(1).permutation(N)
    frame, y, groups = (values.set_axis(labels) for values in (X, Y, GROUP))
    with config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        update = quick_control(SCORED, target=0.9).set_fit_request(sensitive_features=True)
        rows = {"sensitive_features": groups}
        scores = cross_validate(update, frame, y, cv=3, params=rows, error_score="raise")
        assert np.isfinite(scores["test_score"]).all()
        search = GridSearchCV(update, {"target": [0.8, 0.9]}, cv=3, error_score="raise")
        assert search.fit(frame, y, **rows).best_params_["target"] in (0.8, 0.9)
        aware = RejectOption(SCORED).set_fit_request(sensitive_features=True)
        aware = aware.set_score_request(sensitive_features=True)
        scores = cross_validate(aware, frame, y, cv=3, params=rows, error_score="raise")
        assert np.isfinite(scores["test_score"]).all()


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 3), min_size=6, max_size=6), st.permutations(range(6)))
def test_a_metric_never_depends_on_an_order_that_labels_contradict(labels, order):
    """The metric is either refused or equals the value for rows that were matched by position."""
    decisions = pd.Series([1, 0, 1, 1, 0, 1], index=labels)
    groups = pd.Series(list("aabbab"), index=labels)
    moved = groups.iloc[list(order)]
    try:
        value = metrics.p_rule(None, decisions, sensitive_features=moved)
    except InputError:
        assert not moved.index.equals(decisions.index)
    else:
        expected = metrics.p_rule(None, decisions.to_numpy(), sensitive_features=moved.to_numpy())
        assert moved.index.equals(decisions.index)
        assert value == expected or np.isnan([value, expected]).all()


def test_the_message_names_the_tables_and_the_first_difference():
    with pytest.raises(InputError) as caught:
        FITTED.fit(X, relabelled(Y), sensitive_features=GROUP)
    assert "X" in str(caught.value) and "y" in str(caught.value)
    assert "row 0" in str(caught.value) and "7" in str(caught.value)
    base = LogisticRegression().fit(X[["age"]], Y)
    with pytest.raises(InputError, match="sensitive_features"):
        quick_control(base).fit(X[["age"]], Y, sensitive_features=shuffled(GROUP))
