"""A frontier of a frame: figures of all rows equal those of the updates' own decisions."""

import pickle
import warnings
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from commod import COMMOD, ControlledDebiaser, ScoreColumn, frontier_frame
from commod._study.evaluation import EvaluationRows
from commod.constraints import DemographicParity, MinimumRate
from commod.exceptions import DataWarning, InputError
from commod.metrics._constraint import get_constraint
from commod.metrics._people import People
from commod.updates import _fit_rows

N = 6000
FEATURES = ["income", "age", "town"]
NAMED = {"sensitive_features": "race", "y_true": "y", "key": "id", "features": FEATURES}


def table():
    random = np.random.default_rng(0)
    race = random.choice(["black", "white", "rare"], N, p=[0.398, 0.6, 0.002])
    income = random.normal(size=N) + 0.7 * (race == "white")
    town = random.choice(["Oslo", "Rome"], N)
    f = 1 / (1 + np.exp(-1.2 * income + 0.4 * (town == "Oslo")))
    return pd.DataFrame(
        {
            "id": random.permutation(N),
            "income": income.round(3),
            "age": random.integers(18, 80, N),
            "town": town,
            "f": f.round(4),
            "y": (random.random(N) < f).astype(int),
            "race": race,
        }
    )


TABLE = table()
X = TABLE[[*FEATURES, "f"]]


@pytest.fixture(autouse=True, scope="module")
def few_point_rows():
    """Let points come from a part of 6,000 rows, as on more than a million."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_fit_rows, "MAX_POINT_ROWS", 2000)
        yield


def sweep(targets, *, estimator=None, frame=None, **parameters):
    estimator = ScoreColumn("f") if estimator is None else estimator
    update = ControlledDebiaser(estimator, borderline=0, **parameters)
    frame = duckdb.from_df(TABLE) if frame is None else frame
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "1 group with fewer than", DataWarning)
        return frontier_frame(update, frame, targets=targets, **NAMED)


def measured(curve, target, rows=X):
    """Return figures of the selected update from its decisions on all rows."""
    update = curve.points[curve.frame()["target"].tolist().index(target)].candidate.build()
    before, after = (TABLE["f"] > 0.5).to_numpy() * 1, update.predict(rows)
    return {
        "n_changes": int((before != after).sum()),
        "n_gains": int((before < after).sum()),
        "accuracy": float((after == TABLE["y"]).mean()),
        "change_rate": update.change_rate_,
        "fairness": update.fairness_,
        "limit": update.limit_,
    }


@pytest.fixture(scope="module")
def curve():
    return sweep([0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.97], target_on="fit_rows")


def test_figures_are_those_of_the_decisions_on_all_rows(curve):
    lines = curve.frame().set_index("target")
    assert lines.index.tolist() == [0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.97]
    for target, line in lines.iterrows():
        for name, value in measured(curve, target).items():
            assert line[name] == pytest.approx(value, abs=1e-12), (target, name)
    assert (lines["fairness"] >= lines.index).all() and lines["change_rate"].is_monotonic_increasing
    assert (lines["limit"] <= lines["change_rate"]).all()
    assert lines["points_from"].nunique() == 3 and not curve.randomised
    assert curve.select(target=0.85).fairness_ >= 0.85


def test_a_target_between_fitted_ones_needs_few_more_changes(curve):
    """Against a fit for this target alone, with its exact cut."""
    alone = ControlledDebiaser(ScoreColumn("f"), target=0.75, target_on="fit_rows", borderline=0)
    with pytest.warns(DataWarning, match="left out of the constraint"):
        alone.fit_frame(duckdb.from_df(TABLE), **NAMED)
    ours = curve.frame().set_index("target").loc[0.75]
    assert ours["points_from"] != 0.75
    assert ours["change_rate"] <= 1.05 * alone.change_rate_


def test_what_is_not_known_is_said_and_the_rest_is_shown(curve, tmp_path):
    frame = curve.frame()
    assert frame["outscoring"].isna().all() and frame["outscoring_losses"].isna().all()
    assert "All figures were counted on all rows" in curve.notes
    assert "need single rows, and were not computed" in curve._repr_html_()
    assert "1 group (" in repr(curve)  # the rare one is in no fairness figure
    assert curve.plot().get_ylabel() == "share of decisions changed"
    again = pickle.loads(pickle.dumps(curve))
    assert again.frame().equals(frame)
    steps = again.trade_off().steps
    assert [step.segments for step in steps] == [None] * len(steps) and steps


def test_updates_on_new_rows_with_a_model_and_a_second_constraint(tmp_path):
    """Expected figures are known; updates have the model and its columns, not the scores."""
    model = LogisticRegression().fit(TABLE[["income", "age"]], TABLE["y"])
    asked = DemographicParity(ratio=0.8) & MinimumRate(0.2)
    curve = sweep([0.75, 0.9], estimator=model, constraints=asked)
    lines = curve.frame()
    assert (lines["expected_fairness"] >= lines["target"] - 1e-9).all()
    standing = [name for name in lines if "minimum" in name]
    assert len(standing) == 1 and (lines[standing[0]] >= 0.2).all()
    update = curve.select(target=0.9)
    assert update.estimator is model
    assert update.feature_names_in_.tolist() == ["income", "age", "town"]
    after = update.predict(TABLE[["income", "age", "town"]])
    n_changes = int((after != model.predict(TABLE[["income", "age"]])).sum())
    assert n_changes == lines["n_changes"].iloc[-1]


def test_a_small_table_is_swept_in_memory():
    """Updates have the model then, too; figures of single rows are known."""
    some = TABLE[TABLE["race"] != "rare"].head(1200)
    model = LogisticRegression().fit(some[["income", "age"]], some["y"])
    curve = sweep([0.7, 0.8], estimator=model, frame=some, target_on="fit_rows")
    assert curve.frame()["outscoring"].notna().all() and not curve.notes
    update = curve.select(target=0.8)
    assert update.estimator is model and update.fairness_ >= 0.8
    after = update.predict(some[["income", "age", "town"]])
    n_changes = int((after != model.predict(some[["income", "age"]])).sum())
    assert n_changes == curve.frame()["n_changes"].iloc[-1] > 0


def test_counts_measure_as_rows_do():
    """One row per person, or rows that stand for many: the same figures, the limit included."""
    random = np.random.default_rng(3)
    for name in ("demographic_parity", "equalized_odds", "true_positive_rate_parity"):
        group, label, before, changed = random.integers(0, 2, (4, 400)) > 0
        group = np.where(random.random(400) < 0.1, -1, group)
        people = People((get_constraint(name),), group, 2, label=label)
        rows = EvaluationRows(people, before, True, 1)
        ours = rows.measure(before ^ changed)
        keys = np.column_stack([before, label, group])
        _, first, line = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        each = np.bincount(line.ravel()).astype(float)
        lines = replace(people.take(first), each=each)
        counts = EvaluationRows(lines, before[first], True, 1)
        theirs = counts.measure(np.bincount(line.ravel(), changed).astype(np.int64))
        assert theirs == pytest.approx(ours, nan_ok=True) and len(counts) == 400
        assert counts.limit_at(0.1) == rows.limit_at(0.1)
        assert counts.left_out_text == rows.left_out_text


def test_what_frontier_frame_does_not_take():
    with pytest.raises(InputError, match="takes a ControlledDebiaser; got COMMOD"):
        frontier_frame(COMMOD(ScoreColumn("f")), TABLE, sensitive_features="race")
    with pytest.raises(InputError, match="targets must be a list of numbers"):
        sweep("high")
    with pytest.raises(InputError, match="target"):
        sweep([0.8, 1.5])
