"""A base model scores a frame by batches: the update is that of a column of the same scores."""

import datetime
import os
import shutil
import tempfile
import warnings
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from commod import ControlledDebiaser, ScoreColumn
from commod._data import scored_frames as scoring
from commod._data.scored_frames import (
    BatchTypes,
    dictionary_values,
    pandas_rows,
    regrouped,
    with_scores,
)
from commod.exceptions import BaseModelError, BaseModelWarning, InputError
from commod.updates import _fit_rows

COLUMNS = ["size", "skill", "branch", "is_new", "visits"]
FEW_ROWS = 1200  # that points come from


def model_of(function):
    """Return a base model whose scores are those of a function."""
    return SimpleNamespace(predict_proba=function)


def people(n=3000):
    random = np.random.default_rng(0)
    group = random.choice(["f", "m"], n, p=[0.4, 0.6])
    label = random.random(n) < 0.5
    skill = (random.normal(size=n) + 0.8 * label).round(3)
    is_new = random.choice(np.array([True, False, None], dtype=object), n)
    is_new[:1500] = True  # no value is missing in the first batches
    visits = pd.array(random.integers(0, 9, n), dtype="Int64")
    visits[-3:] = pd.NA
    return pd.DataFrame(
        {
            "id": random.permutation(n),
            "size": (random.normal(size=n) + 1.6 * (group == "m")).round(3),
            "skill": np.where(random.random(n) < 0.05, np.nan, skill),
            "branch": random.choice(["north", "south", None], n),
            "is_new": is_new,
            "visits": visits.to_numpy(float, na_value=np.nan),
            "day": [datetime.date(2020, 1, 1 + i % 28) for i in range(n)],
            "g": group,
            "y": label.astype(int),
        }
    )


TABLE = people()
ARROW = pa.Table.from_pandas(TABLE, preserve_index=False).set_column(
    5, "visits", pa.array(TABLE["visits"], pa.int32(), from_pandas=True)
)
WHOLE = ARROW.to_pandas()


def fitted_model(labels=None):
    coded = OneHotEncoder(handle_unknown="ignore"), ["branch", "is_new"]
    read = make_column_transformer((SimpleImputer(), ["size", "skill", "visits"]), coded)
    model = make_pipeline(read, HistGradientBoostingClassifier(max_iter=8, max_leaf_nodes=8))
    y = (WHOLE["skill"].fillna(0) + 1.2 * WHOLE["size"] > 1.3) ^ (WHOLE["id"] % 9 == 0)
    return model.fit(WHOLE[COLUMNS], y.astype(int) if labels is None else labels[y * 1])


MODEL = fitted_model()
SCORES = MODEL.predict_proba(WHOLE[COLUMNS])[:, 1]
SCORED = ARROW.append_column("f", pa.array(SCORES))


@pytest.fixture(autouse=True)
def small_batches(monkeypatch, tmp_path_factory):
    """Score 700 rows at a time, take points from some rows, and watch the temporary folder."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(scoring, "BATCH_ROWS", 700)
    monkeypatch.setattr(_fit_rows, "MAX_POINT_ROWS", FEW_ROWS)
    yield
    assert os.listdir(folder) == []


def as_parquet(table):
    folder = tempfile.mkdtemp(dir=os.path.dirname(tempfile.gettempdir()))
    for i, start in enumerate(range(0, max(len(table), 1), 1100)):
        pa.parquet.write_table(table.slice(start, 1100), f"{folder}/{i}.parquet", row_group_size=90)
    return folder


ENGINES = {
    "duckdb": lambda table: duckdb.from_arrow(table),
    "polars": lambda table: pl.from_arrow(table).lazy(),
    "dataset": lambda table: pa.dataset.dataset(as_parquet(table)),
    "parquet": as_parquet,
    "pandas": lambda table: table.to_pandas().set_index("id", drop=False),
    "pyarrow": lambda table: table,
}


def fit(frame, model=MODEL, **given):
    names = {"sensitive_features": "g", "y_true": "y", "features": COLUMNS, "key": "id"}
    names |= {name: given.pop(name) for name in names if name in given}
    params = {"target": 0.8, "target_on": "fit_rows", **given}
    return ControlledDebiaser(model, **params).fit_frame(frame, **names)


@pytest.fixture(scope="module")
def known():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_fit_rows, "MAX_POINT_ROWS", FEW_ROWS)
        return fit(duckdb.from_arrow(SCORED), ScoreColumn("f"))


def check_same(update, known):
    assert (update.scorecard_.points == known.scorecard_.points).all()
    assert update.scorecard_.rule == known.scorecard_.rule
    assert update.status_ == known.status_
    for name in ("fairness_", "change_rate_", "limit_", "accuracy_", "classes_", "n_rows_"):
        assert np.all(getattr(update, name) == getattr(known, name))
    X = WHOLE[COLUMNS]
    assert (update.predict(X) == known.predict(X.assign(f=SCORES))).all()
    assert update.estimator is update._base_model is MODEL
    assert update.feature_names_in_.tolist() == COLUMNS
    assert update.change_rate_ == (update.predict(X) != (SCORES > 0.5)).mean()


# ---------------------------------------------------------------------------------------------
# The same scores, and the same update


def test_a_model_gives_the_update_of_a_column_of_its_scores(known):
    """`test_scores_equal_those_in_memory` has the other engines."""
    update = fit(ENGINES["polars"](ARROW))
    check_same(update, known)
    assert update.to_patch().content.base.digest is not None


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_spark_workers_score_their_partitions(spark, known):
    """And Spark fits what other engines fit, on a large table."""
    frame = spark.createDataFrame(ARROW).repartition(3)
    update = fit(frame)
    check_same(update, known)
    assert not spark._jsc.getPersistentRDDs()


def test_a_model_gives_the_update_of_fit(monkeypatch):
    """The whole table is here: `fit` on the same rows gives the same sentences and points."""
    monkeypatch.setattr(_fit_rows, "MAX_POINT_ROWS", 10_000)
    asked = {"target": 0.8}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        update = fit(ENGINES["duckdb"](ARROW), key=None, target_on="new_rows", **asked)
        known = ControlledDebiaser(MODEL, **asked).fit(
            WHOLE[COLUMNS], WHOLE["y"], sensitive_features=WHOLE["g"]
        )
    assert update.status_ == known.status_
    assert (update.scorecard_.points == known.scorecard_.points).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_scores_equal_those_in_memory(engine):
    with with_scores(ENGINES[engine](ARROW), MODEL, keep=["id", "day"]) as scored:
        names = {"id", "day", scored.column}
        found = pl.from_pandas(pandas_of(scored.frame)).sort("id")
    assert set(found.columns) == names
    expected = dict(zip(TABLE["id"], SCORES, strict=True))
    assert found[scored.column].to_list() == [expected[i] for i in found["id"]]
    assert scored.n_rows == len(found) == len(TABLE)
    days = dict(zip(TABLE["id"], TABLE["day"], strict=True))
    assert [str(day)[:10] for day in found["day"]] == [str(days[i]) for i in found["id"]]
    for n_rows in (0, 701):  # one more than a batch
        few = ENGINES[engine](ARROW.slice(0, n_rows))
        with with_scores(few, MODEL, keep=["id"]) as scored:
            assert pandas_of(scored.frame)[scored.column].tolist() == SCORES[:n_rows].tolist()


def pandas_of(frame):
    import narwhals as nw

    return nw.from_native(frame).lazy().collect(backend="pyarrow").to_native().to_pandas()


@pytest.mark.parametrize("engine", ["polars", "dataset", "parquet", "pyarrow"])
def test_a_model_sees_the_categories_of_the_whole_table(engine):
    """The last category is in the last batch alone; models read codes of all categories."""
    towns = pa.array(["a", "b"] * 1000 + ["c", "a"]).dictionary_encode()
    table = pa.table({"id": range(2002), "town": towns})
    codes = {"a": 0.0, "b": 0.5, "c": 1.0}

    def model(X):
        assert X["town"].cat.categories.tolist() == ["a", "b", "c"]
        return X["town"].cat.codes / 2

    with with_scores(ENGINES[engine](table), model_of(model), ["town"], keep=["id"]) as scored:
        found = pandas_of(scored.frame).sort_values("id")[scored.column].tolist()
    assert found == [codes[town] for town in table["town"].to_pylist()]


values = {
    pa.int16(): st.integers(-9, 9),
    pa.bool_(): st.booleans(),
    pa.string(): st.sampled_from("ab"),
    pa.float64(): st.floats(allow_nan=True),
    pa.date32(): st.dates(),
    pa.dictionary(pa.int8(), pa.string()): st.sampled_from("abc"),
}


@given(data=st.data(), n=st.integers(0, 12), step=st.integers(1, 5))
def test_batches_have_the_types_of_the_whole_table(data, n, step):
    columns = {}
    for i, (kind, value) in enumerate(values.items()):
        rows = data.draw(st.lists(st.none() | value, min_size=n, max_size=n))
        columns[f"c{i}"] = pa.array(rows, kind)
    whole = pa.table(columns)
    batches = [batch for at in range(0, n, 2) for batch in whole.slice(at, 2).to_batches()]
    tables = list(regrouped(batches, step))
    assert [len(table) for table in tables[:-1]] == [step] * (len(tables) - 1)
    incomplete = frozenset(name for name in ("c0", "c1") if whole[name].null_count)
    types = BatchTypes(incomplete, dictionary_values(tables))
    parts = [pandas_rows(table, types) for table in tables]
    if parts:
        joined = pd.concat(parts, ignore_index=True)
        assert all((part.dtypes == joined.dtypes).all() for part in parts)
        pd.testing.assert_frame_equal(joined, whole.to_pandas(), check_exact=True)


def test_a_model_file_scores_a_frame(tmp_path):
    skl2onnx = pytest.importorskip("skl2onnx")
    pytest.importorskip("onnxruntime")
    from commod.cli._models import load_model

    X = WHOLE[["size", "visits"]].fillna(0).astype("float32")
    linear = LogisticRegression().fit(X.to_numpy(), WHOLE["y"])
    (tmp_path / "m.onnx").write_bytes(
        skl2onnx.to_onnx(linear, X.to_numpy()[:1], options={"zipmap": False}).SerializeToString()
    )
    model = load_model(tmp_path / "m.onnx")
    frame = pl.from_pandas(X).lazy()
    with with_scores(frame, model, ["size", "visits"]) as scored:
        found = scored.frame.collect()[scored.column].to_numpy()
    assert (found == model.predict_proba(X)[:, 1]).all()


# ---------------------------------------------------------------------------------------------
# Whose columns


def with_points(update):
    card = update.scorecard_
    names = zip(card.encoding.term_columns, card.points, strict=True)
    return {name for name, points in names if points} - {"distance from the threshold"}


def test_the_update_and_the_model_read_different_columns():
    y = WHOLE["skill"].fillna(0) + 1.2 * WHOLE["size"] > 1.3
    model = HistGradientBoostingClassifier(max_iter=8, max_leaf_nodes=8).fit(
        WHOLE[["size", "skill"]], y.astype(int)
    )
    update = fit(ENGINES["duckdb"](ARROW), model, features=["branch", "size"])
    assert update.feature_names_in_.tolist() == ["size", "skill", "branch"]
    assert with_points(update) <= {"branch", "size"}
    X = WHOLE[["size", "skill", "branch"]]
    base = model.predict_proba(X[["size", "skill"]])[:, 1] > 0.5
    assert update.change_rate_ == (update.predict(X) != base).mean() > 0
    assert (update.predict(X.assign(skill=-9.0)) != update.predict(X)).any()


def test_locked_and_sensitive_columns_of_the_model_get_no_points():
    table = ARROW.append_column("sex", ARROW["g"])
    model = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(), ["g"]), (SimpleImputer(), ["size", "skill", "visits"])
        ),
        HistGradientBoostingClassifier(max_iter=8, max_leaf_nodes=8),
    ).fit(WHOLE[["size", "skill", "visits", "g"]], WHOLE["skill"].fillna(0) + WHOLE["size"] > 1)
    update = fit(ENGINES["duckdb"](table), model, features=None, locked_features=["visits"])
    assert update.feature_names_in_.tolist() == ["size", "skill", "visits", "g"]
    assert with_points(update) <= {"size", "skill"}
    assert update.change_rate_ > 0


def test_labels_are_those_of_the_model():
    labels = np.array(["refuse", "approve"], dtype=object)
    model = fitted_model(labels=labels)
    given = {"y_true": None, "pos_label": "refuse", "direction": "gains_only"}
    update = fit(ENGINES["duckdb"](ARROW), model, **given)
    refused = model.predict_proba(WHOLE[COLUMNS])[:, 1] > 0.5
    assert model.classes_.tolist() == ["approve", "refuse"]
    after = update.predict(WHOLE[COLUMNS])
    assert set(after) == {"approve", "refuse"}
    assert ((after == "refuse") != refused).mean() == update.change_rate_ > 0


def test_names_that_the_frame_lacks_are_named():
    frame = ENGINES["duckdb"](ARROW.drop_columns("visits"))
    with pytest.raises(InputError, match="no column 'visits'"):
        fit(frame, features=None)
    nameless = LogisticRegression().fit(np.eye(2), [0, 1])
    with pytest.raises(BaseModelError, match=r"fitted on 2 columns without names.* has 5"):
        fit(ENGINES["duckdb"](ARROW), nameless)


# ---------------------------------------------------------------------------------------------
# What goes wrong


class Faulty:
    """A model whose scores are wrong in the third batch."""

    classes_ = np.array([0, 1])

    def __init__(self, fault):
        self.fault, self.n_calls = fault, 0

    def predict_proba(self, X):
        self.n_calls += 1
        scores = np.linspace(0.1, 0.9, len(X))
        return self.fault(scores) if self.n_calls == 4 else scores  # the first rows come twice


def interrupt(scores):
    raise KeyboardInterrupt


FAULTS = {
    "gave NaN": lambda scores: scores * np.nan,
    "699 scores for 700 rows": lambda scores: scores[1:],
    "gave shape": lambda scores: np.zeros((len(scores), 3)),
    r"outside \[0, 1\]": lambda scores: scores + 1,
    "ZeroDivisionError": lambda scores: 1 // 0,
}


def test_a_fault_is_said_with_its_rows():
    for words, fault in FAULTS.items():
        with pytest.raises(BaseModelError, match=words) as refused:
            fit(ENGINES["duckdb"](ARROW), Faulty(fault))
        assert "rows 1,401 to 2,100 of the frame" in str(refused.value)
        assert refused.value.parameter == "estimator"


def test_an_interrupted_fit_keeps_the_earlier_one_and_leaves_no_file(known):
    update = ControlledDebiaser(Faulty(interrupt)).set_params(target=0.8)
    with pytest.raises(KeyboardInterrupt):
        update.fit_frame(ENGINES["polars"](ARROW), sensitive_features="g", features=COLUMNS)
    assert isinstance(update.estimator, Faulty)
    assert not hasattr(update, "scorecard_")


def test_a_full_disk_is_said_before_rows_are_scored(monkeypatch):
    model = Faulty(np.abs)
    usage = shutil.disk_usage("/")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(InputError, match=r"need up to .* where 1 kB are free. Set .* TMPDIR"):
        fit(ENGINES["duckdb"](ARROW), model)
    assert model.n_calls == 1


def test_a_database_that_forbids_files_is_not_written_into_one():
    database = duckdb.connect(config={"enable_external_access": "false"})
    frame = database.sql("SELECT i / 10 AS score FROM range(9) AS t(i)")
    with (
        pytest.raises(InputError, match="forbid files"),
        with_scores(frame, model_of(lambda X: X["score"]), ["score"]),
    ):
        pass


def test_decisions_of_the_model_that_differ_are_said():
    class Strict(Faulty):
        def predict(self, X):
            return np.zeros(len(X))

    with pytest.warns(BaseModelWarning, match="predict differs from score > 0.5 in 500 of 1000"):
        fit(ENGINES["duckdb"](ARROW), Strict(np.abs), target=0.1)


def test_models_are_refused_before_a_row_is_read():
    for model, message in [
        (object(), "neither predict_proba"),
        (LogisticRegression, "the class LogisticRegression itself"),
        (LogisticRegression().fit(np.eye(3), [0, 1, 2]), "3 classes"),
    ]:
        with pytest.raises(InputError, match=message):
            fit("nowhere", model)
    with (
        pytest.raises(InputError, match="does not know the names of its columns"),
        with_scores(ENGINES["duckdb"](ARROW), model_of(lambda X: X)),
    ):
        pass


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_spark_worker_that_lacks_a_package_says_so(spark, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def score(X):\n    return X['visits'] / 10\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here

    frame = spark.range(20).selectExpr("id", "id % 7 AS visits").repartition(2)
    with (
        pytest.raises(BaseModelError, match="A Spark worker cannot import 'only_here'"),
        with_scores(frame, model_of(only_here.score), ["visits"]),
    ):
        pass

    def late_fault(X):
        return X["visits"] / (10 if len(X) > 15 else 5)

    with (
        pytest.raises(BaseModelError, match=r"In rows 1 to \d+ of Spark partition \d: .*outside"),
        with_scores(frame, model_of(late_fault), ["visits"]),
    ):
        pass
    assert not spark._jsc.getPersistentRDDs()
