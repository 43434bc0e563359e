"""Commands on tables that stay in DuckDB or Spark: the same answers, and reasons for refusals."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import joblib
import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from command_tables import people
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from commod import ControlledDebiaser, Patch, ScoreColumn
from commod._data import scored_frames as scoring
from commod._data.scored_frames import score_rows
from commod.cli import _engines, _rows
from commod.cli._engines import choose_engine
from commod.cli._options import Options
from commod.exceptions import InputError
from commod.updates import _candidates, _fit_rows
from quick_updates import quick_control
from tables_of_cases import every_line

duckdb = pytest.importorskip("duckdb")

TOLD = ("--label", "y", "--sensitive", "race", "--score-column", "f", "--key", "id")
FIT = (*TOLD, "--borderline", "0", "--target-on", "fit_rows", "--at-least", "0.8")
N = 6000


@pytest.fixture(autouse=True, scope="module")
def few_point_rows():
    """Let points come from a part of 6,000 rows, as on more than a million."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_fit_rows, "MAX_POINT_ROWS", 2000)
        patched.setattr(_rows, "SAMPLED_ROWS", 2000)
        yield


def table():
    rows = people(N, 0)
    return rows.assign(id=np.random.default_rng(1).permutation(N))


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """A folder of two Parquet files, below the working folder."""
    rows = table()
    (tmp_path / "lake").mkdir()
    rows[:2000].to_parquet(tmp_path / "lake" / "a.parquet", index=False)
    rows[2000:].to_parquet(tmp_path / "lake" / "b.parquet", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---------------------------------------------------------------------------------------------
# The choice


@every_line(
    "stated, n_rows, free, needs, engine",
    [
        ("auto", 1_000, 10**9, False, "memory"),
        ("auto", 6_000_000, 10**12, False, "duckdb"),
        ("auto", 6_000_000, 10**12, True, "memory"),
        ("auto", 1_000, 10_000, False, "duckdb"),
        ("memory", 10**9, 10_000, True, "memory"),
        ("duckdb", 10, 10**9, False, "duckdb"),
        ("spark", 10, 10**9, False, "spark"),
    ],
)
def test_the_size_of_a_table_chooses_the_engine(stated, n_rows, free, needs, engine, monkeypatch):
    monkeypatch.setattr(_engines, "available_memory", lambda: free)
    table = SimpleNamespace(n_rows=n_rows, kinds={"a": "number"})
    asked = {"--ledger": "Leave it out"} if needs else {}
    choice = choose_engine(Options(engine=stated), table, ["a"], asked)
    assert choice.engine == engine
    assert bool(choice.text("counts")) == (engine != "memory" or (needs and stated == "auto"))


def test_rows_that_an_option_needs_must_fit_into_memory(monkeypatch):
    monkeypatch.setattr(_engines, "available_memory", lambda: 10_000)
    table = SimpleNamespace(n_rows=10**6, kinds={"a": "number"})
    with pytest.raises(InputError, match=r"--ledger needs all rows in memory, .* GB .*Leave it"):
        choose_engine(Options(), table, ["a"], {"--ledger": "Leave it out"})


def test_this_machine_has_memory():
    assert 10**7 < _engines.available_memory() < 10**15


# ---------------------------------------------------------------------------------------------
# debias


def test_debias_in_duckdb_is_fit_frame(lake, call):
    """The patch is that of fit_frame on the same columns; the report belongs to it."""
    files = ("--out", "p.json", "--report", "r.html", "--json")
    code, out, _ = call("debias", "lake", *FIT, "--engine", "duckdb", *files)
    said = json.loads(out)
    assert code == 0 and "DuckDB counts all rows where they are" in said["notes"][0]
    features = ["income", "age", "town", "f"]
    parameters = {"target": 0.8, "borderline": 0, "target_on": "fit_rows"}
    columns = {"sensitive_features": "race", "y_true": "y", "features": features, "key": "id"}
    update = ControlledDebiaser(ScoreColumn("f"), **parameters).fit_frame(
        duckdb.from_df(table()), **columns
    )
    ours, theirs = Patch.load("p.json").content, update.to_patch().content
    assert ours.ratio == theirs.ratio and ours.reached == theirs.reached
    assert ours.seen == theirs.seen and ours.labels == theirs.labels
    audit = said["audit"]
    assert audit["n"] == N and audit["request"]["target"] == 0.8
    assert audit["provenance"]["method"] == "ControlledDebiaser"
    assert audit["changes"]["n_changes"] == round(update.change_rate_ * N)
    assert any("need single rows were not computed" in text for text in audit["not_known"])
    assert call("verify", "p.json", "r.html")[0] == 0
    assert {path.name for path in lake.iterdir()} == {"lake", "p.json", "r.html"}


def model_file(path, names=("income", "town", "age")):
    """Write a model that reads some columns and counts the rows that it scores."""
    coded = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    rows = table()
    model = make_pipeline(coded, LogisticRegression()).fit(rows[list(names)], rows["y"])
    joblib.dump(model, path)
    return model


def test_a_model_file_scores_once_and_patches_as_its_scores_do(lake, call, monkeypatch):
    """Split, fit, trade-off and audit read one column of scores, which is gone at the end."""
    monkeypatch.setattr(tempfile, "tempdir", str(lake))
    model, n_scored = model_file("m.joblib"), []
    scored = model.predict_proba(table()[["income", "town", "age"]])[:, 1]
    table().assign(f=scored).to_parquet("scored.parquet")
    monkeypatch.setattr(
        scoring, "score_rows", lambda *given: n_scored.append(len(given[1])) or score_rows(*given)
    )
    monkeypatch.setattr(_candidates, "N_TARGETS", 2)
    told = ("--test-size", "0.3", "--engine", "duckdb", "--json", *FIT)
    read = ("--features", "income", "--features", "age", "--features", "town")
    study = ("--trade-off", "--report", "r.md")
    score = told.index("--score-column")
    by_model = (*told[:score], "--model", "m.joblib", "--trust", "pickle", *told[score + 2 :])
    codes, outs, _ = zip(
        call("debias", "lake", *by_model, *study, "--out", "m.json"),
        call("debias", "scored.parquet", *told, *read, "--out", "f.json"),
        strict=True,
    )
    assert codes[0] == codes[1] and codes[0] in (0, 1)
    assert sum(n_scored) == N + scoring.FIRST_ROWS
    ours, theirs = Patch.load("m.json").content, Patch.load("f.json").content
    assert ours.reached == theirs.reached and ours.ratio.intercept == theirs.ratio.intercept
    assert {c.name: c for c in ours.ratio.columns} == {c.name: c for c in theirs.ratio.columns}
    first, second = (json.loads(out)["audit"] for out in outs)
    assert first["changes"] == second["changes"] and first["n"] == second["n"] < 0.4 * N
    shown = Path("r.md").read_text()
    assert "Step" in shown and "No other updates were compared" not in shown
    assert not list(lake.glob("commod-scores-*"))


def test_text_is_read_with_the_types_of_memory(lake, call):
    """A postcode with a leading zero is text in both; so both engines see the same categories."""
    rows = table().assign(zip=np.where(np.arange(N) % 2, "01234", "98765"))
    rows = rows.head(1000)
    rows.to_csv("t.csv", index=False)
    rows.to_parquet("t.parquet")
    for name in ("csv", "parquet"):
        out = ("--out", f"{name}.json", "--engine", "duckdb")
        assert call("debias", f"t.{name}", *FIT, "--features", "zip", *out)[0] in (0, 1)
    assert Patch.load("csv.json").content.ratio == Patch.load("parquet.json").content.ratio


def test_options_of_debias_hold_in_duckdb(lake, call):
    """Held-out rows, names of groups, missing groups and an identifier, as in memory."""
    rows = table().assign(number=np.arange(N) * 7, when=pd.Timestamp("2026-01-01"))
    rows.loc[:99, "race"] = None
    rows.to_parquet("holes.parquet")
    told = (*FIT, "--engine", "duckdb", "--json")
    code, _, err = call("debias", "holes.parquet", *told)
    assert code == 2 and "--sensitive" in err and "100 missing values" in err
    assert not list(lake.glob("*.json"))
    options = ("--drop-missing", "--group-names", "black=B", "--test-size", "0.25")
    code, out, _ = call("debias", "holes.parquet", *told, *options)
    said = json.loads(out)
    notes = " ".join(said["notes"])
    assert code in (0, 1)
    assert "100 of 6,000 rows were dropped" in notes
    assert "'number' has a different whole number in every row" in notes
    assert "'when' is of type timestamp" in notes
    assert said["audit"]["rows"] == "rows held out" and abs(said["audit"]["n"] - 1475) < 150
    assert {group["name"] for group in said["audit"]["groups"]} == {"B", "white"}
    assert Patch.load("patch.json").content.seen.n_rows == N - 100 - said["audit"]["n"]


def test_what_does_not_go_is_refused_before_rows_are_read(lake, call):
    for options, words in (
        (("--engine", "duckdb", "--ledger", "l.csv"), ("--ledger", "commod apply")),
        (("--engine", "spark", "--unknown-groups", "ignore"), ("--unknown-groups", "drop-missing")),
        (("--engine", "duckdb", "--refits", "3", "--report", "r.html"), ("--refits",)),
        (("--engine", "ducks"), ("--engine 'ducks' is not one of", "duckdb")),
        (("--engine", "sparks"), ("'sparks' is not one of", "Did you mean 'spark'")),
        (("--engine", "spark", "--type", "age=text"), ("--type", "--engine duckdb")),
        (("--engine", "duckdb", "--ignore", "y"), ("'y' is named by",)),
    ):
        code, _, err = call("debias", "lake/*.parquet", *FIT, *options)
        assert code == 2 and err.count("\n") == 1, options
        for word in words:
            assert word in err, err
        assert {path.name for path in lake.iterdir()} == {"lake"}, options


def test_spark_does_not_read_text(lake, call):
    table().to_csv("t.csv", index=False)
    code, _, err = call("debias", "t.csv", *FIT, "--engine", "spark")
    assert code == 2 and "'t.csv' is text" in err and "--engine duckdb" in err


def test_whole_numbers_that_differ_in_all_rows_are_identifiers(monkeypatch):
    """Numbers that differ in the first rows only are none; neither are those with holes."""
    monkeypatch.setattr(_rows, "FEW_ROWS", 500)
    monkeypatch.setattr(_rows, "CLASSES", 11)
    number = np.arange(-3000, 3000) * 3
    columns = {"unique": number, "early": np.arange(6000) % 3000, "few": number // 900}
    frame = nw.from_native(duckdb.from_df(pd.DataFrame(columns)))
    found = {name: _rows._is_identifier(frame, name) for name in columns}
    assert found == {"unique": True, "early": False, "few": False}
    assert _rows._is_identifier(frame.head(400), "early")


def test_a_column_that_determines_the_group_is_refused(lake, call):
    rows = table()
    rows.assign(side=rows["race"].map({"black": "l", "white": "r"})).to_parquet("copy.parquet")
    code, _, err = call("debias", "copy.parquet", *FIT, "--engine", "duckdb")
    assert code == 2 and "--ignore: Column 'side' of X determines the sensitive group" in err


# ---------------------------------------------------------------------------------------------
# The other commands


def test_a_large_table_is_audited_by_counts(lake, call, monkeypatch):
    rows = table().assign(old=lambda t: (t["f"] > 0.5) * 1, new=lambda t: (t["f"] > 0.45) * 1)
    rows.to_parquet("decided.parquet")
    told = ("--before", "old", "--after", "new", "--sensitive", "race", "--label", "y", "--json")
    _, in_memory, _ = call("audit", "decided.parquet", *told)
    monkeypatch.setattr(_engines, "MOST_ROWS", 1000)
    _, counted, _ = call("audit", "decided.parquet", *told)
    first, second = json.loads(in_memory), json.loads(counted)
    assert not first["notes"] and "6,000 rows are more than 1,000: DuckDB" in second["notes"][0]
    assert first["audit"]["changes"] == second["audit"]["changes"]
    assert second["audit"]["segments"] is None


def test_a_large_table_is_compared_on_a_sample(lake, call, monkeypatch):
    monkeypatch.setattr(_engines, "MOST_ROWS", 1000)
    methods = ("--method", "MinimalFlip", "--test-size", "0", "--at-least", "0.8", "--json")
    model_file("m.joblib")
    told = ("--model", "m.joblib", "--trust", "pickle", "--label", "y", "--sensitive", "race")
    code, out, _ = call("compare", "lake/*.parquet", *told, *methods)
    said = json.loads(out)
    words = "of 6,000 rows, and all figures and the limit are those of these rows"
    assert code == 0 and words in said["notes"][0]
    assert {row["method"] for row in said["changes_needed"]} == {"MinimalFlip", "exact limit"}


def test_check_counts_a_folder(lake, call):
    rows = table().head(1000)
    update = quick_control(ScoreColumn("f"), target=0.8)
    X = rows.drop(columns=["y", "race", "id"])
    update.fit(X, rows["y"], sensitive_features=rows["race"]).to_patch().save("p.json")
    told = ("p.json", "lake", "--sensitive", "race", "--at-least", "0.5")
    assert call("check", *told)[0] == 0
    code, _, err = call("check", *told, "--engine", "memory")
    assert code == 2 and "--engine memory" in err


def test_spark_debiases_as_duckdb_does(lake, call, spark):
    """One table, one key: the same patch, audited with the same counts."""
    told = (*FIT, "--features", "income", "--max-lines", "0", "--json", "--report")
    said = {}
    for engine in ("duckdb", "spark"):
        files = (f"{engine}.md", "--out", f"{engine}.json")
        outcome = call("debias", "lake", *told, *files, "--engine", engine)
        said[engine] = json.loads(outcome[1])
    ours, theirs = (Patch.load(f"{engine}.json").content for engine in said)
    undated = {"created": "", "audit": None}  # the audit says when it was made
    assert replace(ours, **undated) == replace(theirs, **undated)
    assert said["duckdb"]["audit"]["changes"] == said["spark"]["audit"]["changes"]
    digests = [one["audit"]["provenance"]["data_digest"] for one in said.values()]
    assert digests[0] == digests[1]
    assert spark.sql("SELECT 1 AS one").count() == 1  # a session of others is not stopped


def test_split_rows_of_an_engine_are_counted_as_they_are_shared_out():
    people = duckdb.sql("SELECT i AS id FROM range(4000) AS t(i)")
    rows = _rows.FrameRows(Options(key="id"), people, (), [], None, (), (), n_rows=4000)
    fit, test = rows.split(0.25, seed=0)
    assert (fit.n_rows, test.n_rows) == (3000, 1000)
    assert len(nw.from_native(test.frame).collect()) == pytest.approx(test.n_rows, rel=0.1)
    assert rows.split(0.0, seed=0) == (rows, rows)
