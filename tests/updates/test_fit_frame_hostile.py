"""`fit_frame` on tables that try to mislead it: a right result, or an error that says why."""

import warnings
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.updates.test_fit_frame import FEATURES, people

from commod import ControlledDebiaser, ScoreColumn, audit_frame, frontier_frame
from commod._data import frames
from commod._data.frames import engine_errors, open_frame
from commod._data.scored_frames import with_scores
from commod.constraints import DemographicParity
from commod.exceptions import CommodError, InputError, InputTypeError, TargetWarning
from commod.updates import _fit_rows
from commod.updates._frame_rows import check_same_people

TABLE = people(1500)
ENGINES = {
    "duckdb": lambda frame: open_connection().from_arrow(arrow(frame)),
    "polars": lambda frame: pl.from_pandas(frame).lazy(),
    "pyarrow": lambda frame: arrow(frame),
    "pandas": lambda frame: frame,
}


CONNECTIONS = []


def open_connection():
    """Return a connection that stays open: DuckDB 1.4 closes one that only a relation holds."""
    CONNECTIONS.append(duckdb.connect())
    return CONNECTIONS[-1]


def arrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.fixture(autouse=True)
def few_point_rows(monkeypatch):
    """Let points come from a part of 1,500 rows, as on more than a million."""
    monkeypatch.setattr(_fit_rows, "MAX_POINT_ROWS", 600)


def fit(frame, columns=None, **params):
    asked = {"target": 0.8, "target_on": "fit_rows", "direction": "gains_only", **params}
    named = {"sensitive_features": "g", "y_true": "y", "features": FEATURES, "key": "id"}
    update = ControlledDebiaser(ScoreColumn("f"), **asked)
    return update.fit_frame(frame, **{**named, **(columns or {})})


def query(sql):
    """Return a query on the table in a database of its own."""
    connection = open_connection()
    connection.register("people", arrow(TABLE))
    return connection.sql(sql)


# ---------------------------------------------------------------------------------------------
# Rows that differ from query to query


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM people WHERE random() < 0.9",
        "SELECT * REPLACE (CAST(random() < 0.5 AS INT) AS y) FROM people",
        "SELECT * REPLACE (random() + 0.5 AS w) FROM people",
    ],
)
def test_rows_that_differ_between_queries_are_noticed(sql):
    weight = {"sample_weight": "w"} if "AS w" in sql else {}
    with pytest.raises(InputError, match="differ between two queries") as refused:
        fit(query(sql), weight)
    assert refused.value.parameter == "frame"


def test_weights_may_differ_in_their_last_digits():
    lines = np.array([0, 1])
    sums = np.array([1e6, 1.0])
    check_same_people((lines, sums), (lines, sums * (1 + 1e-12)), tolerance=1e-6)
    with pytest.raises(InputError):
        check_same_people((lines, sums), (lines, sums + np.arange(2)), tolerance=1e-6)


# ---------------------------------------------------------------------------------------------
# Keys, weights and scores


@pytest.mark.parametrize("engine", ENGINES)
def test_missing_text_keys_are_counted_and_keys_beyond_64_bits_are_refused(engine):
    table = TABLE.assign(id=TABLE["id"].astype(str))
    table.loc[:2, "id"] = None
    with pytest.raises(InputError, match="key: column 'id' is missing in 3 rows"):
        fit(ENGINES[engine](table))
    table = TABLE.assign(id=np.uint64(2**64 - 1) - TABLE["id"].to_numpy().astype(np.uint64))
    with pytest.raises(InputError, match="Cast the column to text") as refused:
        fit(ENGINES[engine](table))
    assert refused.value.parameter == "key"


def test_an_unsigned_key_within_the_range_gives_the_same_update():
    signed, unsigned = (
        fit(pl.from_pandas(TABLE.assign(id=TABLE["id"].astype(kind))).lazy())
        for kind in ("int64", "uint64")
    )
    assert (signed.scorecard_.points == unsigned.scorecard_.points).all()


def test_weights_whose_squares_overflow_are_refused():
    for factor in (1e300, 1e-300):
        table = arrow(TABLE.assign(w=TABLE["w"] * factor))
        with pytest.raises(InputError, match="Divide the weights by their mean") as refused:
            fit(table, {"sample_weight": "w"})
        assert refused.value.parameter == "sample_weight"


def test_pandas_frames_count_invalid_scores():
    table = TABLE.copy()
    for value in (np.nan, 1.5, np.inf):
        table.loc[3, "f"] = value
        with pytest.raises(CommodError, match="in 1 of 1,500 rows"):
            fit(table)


def test_a_column_of_mixed_values_is_refused():
    mixed = [1 if i % 2 else "one" for i in range(len(TABLE))]
    with pytest.raises(InputTypeError, match="values of one type"):
        fit(TABLE.assign(size=pd.Series(mixed, dtype=object)))


@pytest.mark.parametrize(
    ("name", "message"), [("a.size", "a dot or a backtick"), ("SIZE", "'size' and 'SIZE' apart")]
)
def test_spark_names_that_it_cannot_find_are_refused(spark, name, message):
    table = arrow(TABLE.head(5).assign(**{name: 1.0}))
    features = [*FEATURES, name] if "." in name else FEATURES
    with pytest.raises(InputError, match=message) as refused:
        fit(spark.createDataFrame(table), {"features": features})
    assert refused.value.parameter == "frame"


# ---------------------------------------------------------------------------------------------
# Requests


def test_a_condition_belongs_to_the_features_at_any_size():
    stated = DemographicParity(ratio=0.8).within("branch")
    with pytest.raises(InputError, match="not among the features") as refused:
        fit(arrow(TABLE), {"features": ["size", "skill"]}, constraints=stated, target=None)
    assert refused.value.parameter == "features"


@pytest.mark.parametrize("n_rows", [400, 1500])  # all of them, or a part, has points
def test_a_missed_promise_warns_once(n_rows):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        update = fit(arrow(TABLE.head(n_rows)), confidence=0.9, max_changes=0.01)
    assert update.promised_ is False
    about_target = [one for one in caught if issubclass(one.category, TargetWarning)]
    assert len(about_target) == 1
    assert about_target[0].filename == __file__


def test_columns_of_hive_partitions_are_read(tmp_path):
    for group, rows in TABLE.groupby("g"):
        folder = tmp_path / f"g={group}"
        folder.mkdir()
        rows.drop(columns="g").to_parquet(folder / "rows.parquet")
    known, update = fit(arrow(TABLE)), fit(tmp_path)
    assert (update.scorecard_.points == known.scorecard_.points).all()
    assert update.fairness_ == known.fairness_


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_values_in_the_names_of_folders_are_text(engine, tmp_path, monkeypatch):
    """A region 01 is not the number 1, whatever reads the folder; so it is for a base model."""
    for region in ("01", "2"):
        folder = tmp_path / "it's" / "year=2026" / f"region={region}"
        folder.mkdir(parents=True)
        pd.DataFrame({"x": [1.0, 2.0]}).to_parquet(folder / "rows.parquet")
    monkeypatch.setattr(frames, "find_spec", lambda name: name == engine or None)
    frame = open_frame(tmp_path / "it's").select("region", "year", "x").collect()
    assert frame["year"].to_list() == ["2026"] * 4
    assert sorted(frame["region"].to_list()) == ["01", "01", "2", "2"]
    model = SimpleNamespace(predict_proba=lambda X: X["region"].str.len() / 4)
    with with_scores(tmp_path / "it's", model, ["region"], keep=["region"]) as scored:
        scores = open_frame(scored.frame).select(scored.column).collect()[scored.column]
        assert sorted(scores.to_list()) == [0.25, 0.25, 0.5, 0.5]


# ---------------------------------------------------------------------------------------------
# Files that are not what they were, and columns that an update must not read


OPENED = {
    "folder": str,
    "pattern": lambda folder: str(folder / "*.parquet"),
    "duckdb": lambda folder: open_connection().sql(f"FROM read_parquet('{folder}/*.parquet')"),
    "polars": lambda folder: pl.scan_parquet(folder / "*.parquet"),
    "dataset": lambda folder: pytest.importorskip("pyarrow.dataset").dataset(folder),
}
DAMAGE = {
    "other type": lambda file: TABLE.assign(size="text").to_parquet(file, index=False),
    "no score": lambda file: TABLE.drop(columns="f").to_parquet(file, index=False),
    "truncated": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "overwritten": lambda file: file.write_bytes(
        file.read_bytes()[:100] + b"\xff" * 2000 + file.read_bytes()[2100:]
    ),
    "no Parquet": lambda file: file.write_bytes(b"id,g,f,y\n" * 9),
    "all vanished": lambda file: [other.unlink() for other in file.parent.glob("*.parquet")],
}


@pytest.fixture(scope="module")
def fitted_before():
    return fit(TABLE, {"features": ["size"]})


@pytest.mark.parametrize(
    ("opened", "damage"),
    [
        ("folder", "other type"),
        ("duckdb", "other type"),
        ("pattern", "no score"),
        ("polars", "no score"),
        ("dataset", "truncated"),
        ("duckdb", "truncated"),
        ("pattern", "overwritten"),
        ("polars", "overwritten"),
        ("folder", "no Parquet"),
        ("duckdb", "no Parquet"),
        ("dataset", "all vanished"),
        ("polars", "all vanished"),
    ],
)
def test_files_that_cannot_be_read_are_an_error_of_commod(opened, damage, fitted_before, tmp_path):
    for i in range(3):
        TABLE[i::3].to_parquet(tmp_path / f"{i}.parquet", index=False)
    frame, update = OPENED[opened](tmp_path), fitted_before
    earlier = update.predict(TABLE[["size", "f"]])
    DAMAGE[damage](tmp_path / "2.parquet")
    named = {"sensitive_features": "g", "y_true": "y", "features": ["size"], "key": "id"}
    for run in (update.fit_frame, lambda *args, **told: frontier_frame(update, *args, **told)):
        with pytest.raises(CommodError, match=r"Check that its files|there is no such|no score in"):
            run(frame, **named)
    assert (update.predict(TABLE[["size", "f"]]) == earlier).all()
    decided = {"before": "y", "after": "y", "scores_before": "f", "sensitive_features": "g"}
    if opened not in ("folder", "pattern") and damage not in ("other type", "overwritten"):
        with pytest.raises(CommodError):
            audit_frame(frame, **decided)


def test_a_bug_of_a_base_model_and_an_interruption_are_no_errors_of_the_files():
    for error in (ZeroDivisionError("a bug"), duckdb.InterruptException("Ctrl-C")):
        with pytest.raises(type(error)), engine_errors("lake"):
            raise error
    with (
        pytest.raises(InputError, match="frame='lake' cannot be read: gone"),
        engine_errors("lake"),
    ):
        raise FileNotFoundError("gone.")


@pytest.mark.parametrize("engine", ENGINES)
def test_columns_that_an_update_must_not_read_are_refused_as_on_the_command_line(engine):
    frame = ENGINES[engine](TABLE.assign(side=np.where(TABLE["g"] == "f", 1.5, 0.5)))
    for parameter, column in (("y_true", "y"), ("sensitive_features", "g"), ("key", "id")):
        with pytest.raises(InputError, match=f"Column '{column}' is named by {parameter} and by"):
            fit(frame, {"features": [*FEATURES, column]})
    with pytest.raises(InputError, match="'side' of X determines the sensitive group"):
        fit(frame, {"features": [*FEATURES, "side"]})
    if engine == "duckdb":
        locked = fit(frame, {"features": [*FEATURES, "side"]}, locked_features=["side"])
        assert "side" not in locked.scorecard_.columns_used
