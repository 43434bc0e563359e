"""A table of scores, labels and groups only: the people nearest to the threshold change."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import commod
from commod import ControlledDebiaser, Patch, ScoreColumn
from commod._explore.edits import PeopleOfFit
from commod._explore.server import open_session
from commod.exceptions import InputError
from commod.updates import _fit_rows

SCORE = 'the "score", %'


@pytest.fixture(scope="module")
def people():
    """Return scores, labels and groups of 900 people, and the numbers of the rows."""
    rng = np.random.default_rng(11)
    group = rng.choice(["a", "b"], 900)
    score = np.clip(rng.normal(0.5, 0.2, 900) - 0.06 * (group == "b"), 0.01, 0.99)
    label = np.where(rng.random(900) < score, "yes", "no")
    rows = {SCORE: score, "label": label, "group": group, "id": np.arange(900)}
    return pd.DataFrame(rows)


def fitted(people, **changes):
    update = ControlledDebiaser(ScoreColumn(SCORE), **{"target": 0.85, **changes})
    return update.fit(people[[SCORE]], people["label"], sensitive_features=people["group"])


@pytest.fixture(scope="module")
def update(people):
    return fitted(people)


def nearest(people, before, after):
    """Return whether all who change are nearer to the threshold than others of their decision."""
    distance = np.abs(people[SCORE] - 0.5).to_numpy()
    changed = before != after
    others = (before == before[changed][0]) & ~changed
    return distance[changed].max() < distance[others].min()


def test_the_nearest_people_change_as_few_as_reach_the_target(people, update):
    before = np.where(people[SCORE] > 0.5, "yes", "no")
    after = update.predict(people[[SCORE]])
    assert update.reached_ and 0 < update.change_rate_ == np.mean(before != after)
    assert nearest(people, before, after) and update.term_names_ == []
    order = np.argsort(np.where(before == "no", np.abs(people[SCORE] - 0.5), np.inf))
    fairness = []  # of new people, where so many of those below the threshold gain
    for n in range(int((before != after).sum()) + 1):
        tried = before.copy()
        tried[order[:n]] = "yes"
        rates = [np.mean(tried[people["group"] == g] == "yes") for g in "ab"]
        fairness.append(min(rates) / max(rates))
    assert fairness[-1] >= 0.85 > max(fairness[:-5])


@pytest.mark.parametrize(
    "changes",
    [
        {"direction": "losses_only", "target_on": "fit_rows"},
        {"constraints": "true_positive_rate_parity", "target": 0.08, "favorable_label": "no"},
        {"target": None, "max_changes": 0.04},
        {"points": "integers", "borderline": 0, "max_lines": None},
        {"confidence": 0.8, "target": 0.6},
    ],
)
@pytest.mark.filterwarnings("ignore::commod.exceptions.TargetWarning")  # losses alone do not help
def test_every_kind_of_fit_can_do_without_features(people, changes):
    update = fitted(people, **changes)
    before = np.where(people[SCORE] > 0.5, "yes", "no")
    after = update.predict(people[[SCORE]])
    assert (before == after).all() or nearest(people, before, after)
    assert np.mean(before != after) == update.change_rate_ <= changes.get("max_changes", 1)


def test_a_model_whose_columns_are_all_locked_is_edited_by_its_distance(people):
    X = pd.DataFrame({"x": people[SCORE] * 10, "z": people["id"] % 7})
    model = LogisticRegression().fit(X, people["label"])
    update = ControlledDebiaser(model, target=0.85, locked_features=["x", "z"])
    update.fit(X, people["label"], sensitive_features=people["group"])
    assert update.to_patch().content.ratio.columns == ()
    assert update.change_rate_ == np.mean(model.predict(X) != update.predict(X)) > 0
    update.locked_features = ["x"]
    with pytest.raises(InputError, match="no column that could have points"):  # a mistake, rather
        update.fit(X.assign(z=0), people["label"], sensitive_features=people["group"])


@pytest.mark.parametrize("engine", ["pandas", "lazy", "duckdb", "path"])
def test_every_engine_fits_and_applies_the_same_update(people, update, engine, tmp_path):
    frame = in_engine(engine, people, tmp_path)
    again = ControlledDebiaser(ScoreColumn(SCORE), target=0.85)
    again.fit_frame(frame, sensitive_features="group", y_true="label", features=[], key="id")
    assert again.scorecard_ == update.scorecard_ and again.change_rate_ == update.change_rate_
    if engine != "path":
        edited = nw.from_native(update.to_patch().apply(frame, SCORE)).lazy().collect()
        decided = dict(
            zip(edited["id"].to_list(), edited["commod_decision"].to_list(), strict=True)
        )
        assert [decided[i] for i in people["id"]] == update.predict(people[[SCORE]]).tolist()


def in_engine(engine, people, folder):
    if engine == "pandas":
        return people
    if engine in ("polars", "lazy"):
        frame = pytest.importorskip("polars").from_pandas(people)
        return frame.lazy() if engine == "lazy" else frame
    table = pytest.importorskip("pyarrow").Table.from_pandas(people)
    if engine == "pyarrow":
        return table
    relation = pytest.importorskip("duckdb").from_arrow(table)
    if engine == "duckdb":
        return relation
    relation.write_parquet(str(folder / "people.parquet"))
    return str(folder / "people.parquet")


def test_a_large_table_is_counted_in_its_engine(people, update, monkeypatch):
    frame = in_engine("duckdb", people, None)
    monkeypatch.setattr(_fit_rows, "MAX_POINT_ROWS", 300)
    large = ControlledDebiaser(ScoreColumn(SCORE), target=0.85)
    large.fit_frame(frame, sensitive_features="group", y_true="label", key="id")
    assert large.change_rate_ == pytest.approx(update.change_rate_, abs=0.01)
    assert large.n_rows_ == len(people)


def test_everything_that_follows_a_fit_works(people, update, tmp_path):
    rows = people[[SCORE]], people["label"]
    explanation = commod.explain(update, people[[SCORE]])
    assert (
        "distance from the threshold" in explanation.reasons(np.flatnonzero(explanation.changed))[0]
    )
    audit = commod.audit(
        explanation.y_before,
        explanation.y_after,
        sensitive_features=people["group"],
        y_true=people["label"],
        explanation=explanation,
    )
    patch = update.to_patch(audit=audit)
    saved, report = patch.save(tmp_path / "p.json"), tmp_path / "r.html"
    curve = commod.frontier(
        update, *rows, sensitive_features=people["group"], targets=[0.75, 0.85, 0.95]
    )
    commod.report(audit, report, frontier=curve, patch=patch)
    assert commod.verify_report(saved, report).passed and Patch.load(saved) == patch
    assert curve.frame()["change_rate"].is_monotonic_increasing
    assert patch.verify(people[[SCORE]], people["group"]).passed
    edited = update.edit([], *rows, sensitive_features=people["group"])
    assert (edited.predict(rows[0]) == update.predict(rows[0])).all()
    page = open_session(update, PeopleOfFit(*rows, people["group"]), None)
    assert page.update is update


def test_sql_and_onnx_decide_alike(people, update):
    duckdb, patch = pytest.importorskip("duckdb"), update.to_patch()
    quoted = '"' + SCORE.replace('"', '""') + '"'
    table = duckdb.from_df(people)
    sql = patch.to_sql("duckdb", "people", SCORE)
    edited = table.query("people", sql).df().sort_values("id")
    assert quoted in sql
    assert edited["commod_decision"].tolist() == update.predict(people[[SCORE]]).tolist()
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(patch.to_onnx().SerializeToString())
    (score,) = session.get_inputs()
    changed = session.run(["commod_changed"], {score.name: people[SCORE].to_numpy()})[0]
    assert changed.ravel().tolist() == (edited["commod_direction"] != "kept").tolist()
