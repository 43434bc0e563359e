"""The command line: the whole job on files, one sentence for a mistake, nothing half-written."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_tables import people
from sklearn.linear_model import LogisticRegression

import commod
from commod import ControlledDebiaser, Patch, ScoreColumn, metrics
from commod.cli._tables import patch_column_kinds
from commod.updates import _candidates
from quick_updates import quick_control
from tables_of_cases import every_line

pytest.importorskip("duckdb")

COMMAND = Path(sys.executable).with_name("commod")
DOCS = Path(__file__).parents[2] / "docs" / "command-line.md"
TOLD = ("--label", "y", "--sensitive", "race", "--score-column", "f")
FIT = (*TOLD, "--borderline", "0", "--target-on", "fit_rows")  # the quickest search


@pytest.fixture(scope="module")
def patch_file(tmp_path_factory):
    """Return a patch for the tables, fitted once."""
    patch = fitted_patch(quick_control(ScoreColumn("f"), target=0.8))
    return patch.save(tmp_path_factory.mktemp("patch") / "patch.json")


def fitted_patch(update):
    table = people(2000, 0)
    X = table.drop(columns=["y", "race"])
    return update.fit(X, table["y"], sensitive_features=table["race"]).to_patch()


def test_a_column_of_a_file_has_the_kind_that_the_patch_says(patch_file):
    """Towns in a batch may all look like numbers, and labels like text."""
    patch = Patch.load(patch_file)
    numbers = {column.name for column in patch.content.ratio.columns} - {"town"}
    expected = dict.fromkeys([*numbers, "f", "y"], "number") | {"town": "text"}
    assert patch_column_kinds(patch, "f", "y") == expected and len(numbers) > 1
    assert "y" not in patch_column_kinds(patch, "f")


def assert_one_sentence(outcome, *words):
    code, _, err = outcome
    assert code == 2, outcome
    assert err.startswith("commod: error: ") and err.count("\n") == 1, err
    for word in words:
        assert word in err, err


# -- the whole job ----------------------------------------------------------------------------


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "commod", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"commod {commod.__version__}\n"


def test_the_documented_commands_run(folder, call, monkeypatch):
    monkeypatch.setattr(_candidates, "N_TARGETS", 4)  # of a comparison
    lines = [line for line in DOCS.read_text().splitlines() if line.startswith("$ commod ")]
    assert len(lines) >= 7
    for line in lines:
        code, out, err = call(*shlex.split(line)[2:])
        assert code == 0, (line, out, err)
        assert out and not err, line
    assert {p.name for p in folder.iterdir()} >= {"patch.json", "report.html", "edited.parquet"}


def test_show_says_in_its_first_line_which_version_wrote_a_patch(call):
    versions = set()
    for path in (Path(__file__).parents[1] / "patch").glob("*/*.json"):
        written = json.loads(path.read_text("utf-8"))["library"]
        code, out, _ = call("show", str(path))
        assert code == 0 and f"({written}, 20" in out.splitlines()[0]
        versions.add(written)
    assert versions == {"commod-debiasing 0.1.0", "commod-debiasing 0.2.0.dev0"}


def test_debias_writes_the_patch_of_the_same_fit(folder, call):
    """The command and the library have the same defaults."""
    code, out, _ = call("debias", "train.csv", *TOLD, "--at-least", "0.8", "--out", "p.json")
    assert code == 0 and "Target: P-rule of label 1 ≥ 0.8. Expected on new people" in out
    theirs = fitted_patch(ControlledDebiaser(ScoreColumn("f"), target=0.8)).content
    ours = Patch.load("p.json").content
    assert ours.ratio == theirs.ratio and ours.asked == theirs.asked


def test_apply_edits_as_the_library_does(folder, call, patch_file):
    for name in ("out.parquet", "out.csv.gz"):
        told = ("apply", patch_file, "new.csv", name, "--score", "f", "--calibrated")
        code, out, _ = call(*told)
        assert code == 0 and "decisions changed" in out
        edited = pd.read_parquet(name) if name.endswith("parquet") else pd.read_csv(name)
        patch = Patch.load(patch_file)
        expected = patch.apply(pd.read_csv("new.csv"), score="f", calibrated=True)
        np.testing.assert_array_equal(edited["commod_decision"], expected["commod_decision"])
        for column in ("commod_score", "commod_calibrated"):
            np.testing.assert_allclose(edited[column], expected[column], atol=1e-9)
        assert edited["income"].tolist() == expected["income"].tolist(), "in the same order"
    told = ("check", patch_file, "out.parquet", "--sensitive", "race", "--at-least", "0.1")
    assert call(*told)[0] == 0, "a table that was edited can be checked"


def whole_numbers(n=60):
    """Return a table whose columns hold whole numbers, some of them missing, with odd values."""
    table = people(n, 3).assign(
        age=lambda t: t["age"].astype("Int64").mask(t.index % 7 == 2),
        income=lambda t: t["income"].round().astype("int64"),
        large=2**53 + 1 + np.arange(n),
        gaps=pd.array([None, *range(1, n)], dtype="Int64"),
        f=lambda t: (t["f"] > 0.5).astype("int64"),
    )
    return table.drop(columns=["race", "y"])


@pytest.mark.parametrize(("source", "ending"), [("csv", "parquet"), ("parquet", "csv")])
def test_apply_writes_whole_numbers_as_whole_numbers(folder, call, patch_file, source, ending):
    table = whole_numbers()
    write = table.to_csv if source == "csv" else table.to_parquet
    write(f"whole.{source}", index=False)
    out = f"out.{ending}"
    code, _, err = call("apply", patch_file, f"whole.{source}", out, "--score", "f")
    assert code == 0, err
    names = ["income", "age", "large", "gaps", "f"]
    if ending == "parquet":
        types = pytest.importorskip("pyarrow.parquet").read_schema(out)
        assert {str(types.field(name).type) for name in names} == {"int64"}
        read = pd.read_parquet(out, dtype_backend="numpy_nullable")[names]
        pd.testing.assert_frame_equal(read, table[names].astype("Int64"))
    else:
        written = pd.read_csv(out, dtype=str)[names]
        expected = pd.read_csv(io.StringIO(table.to_csv(index=False)), dtype=str)[names]
        pd.testing.assert_frame_equal(written, expected)
    decided = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    expected = Patch.load(patch_file).apply(table, score="f")
    assert decided["commod_decision"].tolist() == expected["commod_decision"].tolist()


def test_numbers_of_which_some_are_not_whole_stay_numbers(folder, call, patch_file):
    table = people(9, 4).assign(age=["7", "007", "8.50", "1e1", "", "NA", "9", "10.0", " 3 "])
    table.to_csv("mixed.csv", index=False)
    assert call("apply", patch_file, "mixed.csv", "out.parquet", "--score", "f")[0] == 0
    ages = pd.read_parquet("out.parquet")["age"].tolist()
    assert ages == pytest.approx([7, 7, 8.5, 10, np.nan, np.nan, 9, 10, 3], nan_ok=True)


@every_line(
    "scores, words",
    [
        (lambda f: f * 100, ["0 of 200 rows", "percentages: divide them by 100"]),
        (lambda f: np.log(f / (1 - f)), ["margins", "1 / (1 + exp(-margin))"]),
        (lambda f: f.where(f.index > 120), ["79 of 200 rows", "missing: drop these rows"]),
        (lambda f: f * 1e6, ["another scale", "name another column with --score"]),
        (lambda f: f * np.inf, ["0 of 200 rows", "another scale"]),
    ],
)
def test_apply_writes_nothing_where_most_rows_get_no_decision(
    folder, call, patch_file, scores, words
):
    table = people(200, 1)
    table.assign(f=scores(table["f"])).to_parquet("new.parquet", index=False)
    Path("earlier.csv").write_text("earlier")
    before = sorted(p.name for p in folder.iterdir())
    told = ("apply", patch_file, "new.parquet", "earlier.csv", "--score", "f", "--force")
    code, printed, err = call(*told, "--quiet")
    assert code == 1 and printed == "" and err.count("\n") == 1
    assert all(word in err for word in ("'f'", *words)), err
    assert sorted(p.name for p in folder.iterdir()) == before
    assert Path("earlier.csv").read_text() == "earlier"


def test_apply_says_that_it_wrote_nothing_and_writes_where_the_score_is_one(
    folder, call, patch_file
):
    table = people(200, 1)
    table.assign(f=100 * table["f"], g=table["f"]).to_parquet("new.parquet", index=False)
    told = ("apply", patch_file, "new.parquet", "o.csv", "--score")
    code, printed, _ = call(*told, "f", "--json")
    assert code == 1 and json.loads(printed)["written"] is None and not Path("o.csv").exists()
    assert call(*told, "g")[0] == 0 and len(pd.read_csv("o.csv")) == 200


def test_apply_names_the_column_that_the_update_was_fitted_on(folder, call, patch_file):
    people(50, 1).assign(years=30).to_csv("new.csv", index=False)
    _, _, err = call("apply", patch_file, "new.csv", "o.csv", "--score", "years")
    assert "The update was fitted on 'f'" in err
    half = people(50, 1)["f"].where(people(50, 1).index % 2 == 0)
    people(50, 1).assign(f=half).to_csv("new.csv", index=False)
    code, out, _ = call("apply", patch_file, "new.csv", "o.csv", "--score", "f")
    assert code == 0 and "25 rows have no score between 0 and 1" in out


def test_apply_writes_the_columns_that_are_named(folder, call, patch_file):
    told = ("apply", patch_file, "new.csv", "r.parquet", "--score", "f", "--json")
    code, out, _ = call(*told, "--columns", "commod_r", "--columns", "commod_changed")
    edited = pd.read_parquet("r.parquet")
    expected = Patch.load(patch_file).apply(
        pd.read_csv("new.csv"), score="f", columns=("commod_r", "commod_changed")
    )
    assert code == 0 and list(edited.columns) == list(expected.columns)
    np.testing.assert_allclose(edited["commod_r"], expected["commod_r"], atol=1e-9)
    assert json.loads(out)["n_changed"] == expected["commod_changed"].sum()
    code, _, err = call(*told, "--columns", "commod_ratio", "--force")
    assert code == 2 and "commod_r" in err


def test_check_gives_one_verdict_in_text_json_report_and_exit_code(folder, call, patch_file):
    told = (patch_file, "new.csv", "--sensitive", "race", "--score", "f", "--force")
    table = pd.read_csv("new.csv")
    edited = Patch.load(patch_file).apply(table, score="f")
    fair = metrics.p_rule(None, edited["commod_decision"], sensitive_features=table["race"])
    verdicts = {
        fair - 0.15: (0, "holds", True, "Nothing blocks signing.", "The patch holds"),
        fair + 0.01: (
            3,
            "not enough evidence",
            None,
            "Nothing blocks signing, but the evidence is not enough: CM102.",
            "Not enough",
        ),
        fair + 0.15: (
            1,
            "does not hold",
            False,
            "2 checks block signing: CM101, CM102.",
            "The patch does not hold",
        ),
    }
    for bar, (expected, verdict, holds, checks, sentence) in verdicts.items():
        code, out, _ = call("check", *told, "--at-least", bar, "--json")
        found = json.loads(out)
        assert (code, found["verdict"], found["holds"]) == (expected, verdict, holds)
        assert found["failures"] == ([found["sentence"]] if code == 1 else [])
        after = found["audit"]["fairness"][0]["after"]
        assert after["value"] == pytest.approx(fair)
        assert (after["low"] >= bar, after["high"] < bar) == (code == 0, code == 1)
        states = {c["state"] for c in found["audit"]["checks"] if c["severity"] == "blocks signing"}
        worst = {0: "passed", 1: "failed", 3: "not enough evidence"}[expected]
        assert worst in states and ("failed" in states) == (expected == 1)
        code, out, _ = call("check", *told, "--report", "checked.html", "--at-least", bar)
        assert code == expected and f"Checks: {checks}" in " ".join(out.split())
        assert sentence in out and f">{checks}" in Path("checked.html").read_text("utf-8")


def test_check_counts_more_changes_than_allowed(folder, call, patch_file):
    told = ("--sensitive", "race", "--score", "f", "--max-changes", "0.001", "--at-least")
    code, out, _ = call("check", patch_file, "new.csv", *told, "0.5")
    assert code == 1 and "changes more than allowed" in out and "The patch holds" in out
    alike = people(2000, 3).assign(f=0.99, income=0.0, age=40, town="Rome")  # nobody changes
    alike.to_csv("certain.csv", index=False)
    _, out, _ = call("check", patch_file, "certain.csv", *told, "0.9")
    assert "changes more than allowed" not in out, out


def test_check_fails_where_an_update_is_less_fair_though_its_target_holds(folder, call, patch_file):
    table = pd.read_csv("new.csv")
    edited = Patch.load(patch_file).apply(table, score="f")
    before, after = edited["f"] > 0.5, edited["commod_decision"] == 1
    is_favored = np.random.default_rng(0).random(len(table)) < np.where(before, 0.6, 0.4)
    race = np.where((is_favored | (after & ~before)) & ~(before & ~after), "white", "black")
    table.assign(race=race).to_csv("turned.csv", index=False)
    told = ("turned.csv", "--sensitive", "race", "--score", "f", "--at-least", "0.1")
    code, out, _ = call("check", patch_file, *told)
    blocked = "1 check blocks signing: CM103" in " ".join(out.split())
    assert blocked and code == 1 and "The patch does not hold" in out


def test_check_knows_the_direction_of_a_gap(folder, call):
    told = ("new.csv", "--sensitive", "race", "--score", "f", "--label", "y", "--json")
    update = quick_control(ScoreColumn("f"), constraints="equalized_odds", target=0.3)
    table = pd.read_csv("train.csv")
    X = table.drop(columns=["y", "race"])
    update.fit(X, table["y"], sensitive_features=table["race"]).to_patch().save("gap.json")
    verdicts = [
        json.loads(call("check", "gap.json", *told, "--at-most", bar)[1])["verdict"]
        for bar in ("0.9", "0.01")
    ]
    assert verdicts == ["holds", "does not hold"]


def test_check_says_how_many_rows_have_no_score(folder, call, patch_file):
    table = pd.read_csv("new.csv")
    table.loc[:9, "f"] = None
    table.to_csv("holes.csv", index=False)
    told = (patch_file, "holes.csv", "--sensitive", "race", "--score", "f", "--at-least", "0.1")
    code, out, _ = call("check", *told, "--json")
    assert code == 0
    assert json.loads(out)["notes"] == ["10 rows without a score (f) were left out."]


def test_a_threshold_above_every_score_is_an_error_with_the_way_out(folder, call):
    told = ("debias", "train.csv", *FIT, "--at-least", "0.8", "--threshold", "0.9999")
    assert_one_sentence(call(*told), "base decisions", "threshold=0.9999", "Check the threshold")
    assert not Path("patch.json").exists()


def test_debias_names_groups_left_out_and_the_patch_counts_them(folder, call):
    table = pd.read_csv("train.csv")
    table.loc[:24, "race"] = "seldom"
    table.loc[25:54, "race"] = "as many as count"
    table.to_csv("train.csv", index=False)
    code, out, _ = call("debias", "train.csv", *FIT, "--at-least", "0.6", "--json")
    assert code == 0 and "seldom" not in Path("patch.json").read_text()
    assert "Over all 4 groups, the P-rule of label 1 is" in json.loads(out)["status"]
    (group,) = json.loads(out)["groups_left_out"]
    assert (group["name"], group["n"]) == ("seldom", 25)


def test_a_retrained_score_is_checked_alike(folder, call, patch_file):
    table = pd.read_csv("new.csv")
    worse = (table["f"] - 0.3 * (table["race"] == "black")).clip(0, 1)
    table.assign(f=worse).to_csv("retrained.csv", index=False)
    edited = Patch.load(patch_file).apply(pd.read_csv("retrained.csv"), score="f")
    fair = metrics.p_rule(None, edited["commod_decision"], sensitive_features=table["race"])
    code, out, _ = call("check", patch_file, "retrained.csv", "--sensitive", "race", "--json")
    found = json.loads(out)
    assert code == 1 and found["verdict"] == "does not hold"
    assert found["audit"]["fairness"][0]["after"]["value"] == pytest.approx(fair)
    assert fair < 0.8


def test_debias_with_models_in_files(folder, call):
    skops_io = pytest.importorskip("skops.io")
    import joblib

    table = pd.read_csv("train.csv")
    model = LogisticRegression().fit(table[["income", "age"]], table["y"])
    skops_io.dump(model, "model.skops")
    joblib.dump(model, "model.pkl")
    told = ("debias", "train.csv", "--label", "y", "--sensitive", "race", "--out", "p.json", "-q")
    code, out, err = call(*told, "--model", "model.skops", "--ignore", "income")
    assert (code, out, err) == (0, "", "")
    patch = Patch.load("p.json").content
    assert patch.base.model == "LogisticRegression"
    read = {column.name for column in patch.ratio.columns}
    assert read <= {"age", "distance from the threshold"}, "the update does not, the model does"
    assert_one_sentence(call(*told, "--model", "model.pkl", "--force"), "--trust pickle")


def test_a_constraint_that_is_not_met_is_exit_code_1_and_the_closest_patch(folder, call):
    told = ("debias", "train.csv", *FIT, "--at-least", "0.99", "--max-changes", "0.01")
    code, out, _ = call(*told, "--json")
    found = json.loads(out)
    assert code == 1 and found["constraint_met"] is False
    assert found["reached"]["change_rate"] <= 0.01
    assert Patch.load("patch.json").sha256 == found["sha256"]


def test_rows_are_held_out_where_asked_and_nobody_loses_the_favourable_label(folder, call):
    code, out, _ = call(
        *("debias", "train.csv", *FIT, "--at-least", "0.6", "--test-size", "0.25"),
        *("--ledger", "ledger.csv", "--json", "--direction", "gains_only", "--favorable", "0"),
    )
    found, content = json.loads(out), Patch.load("patch.json").content
    assert content.labels.favorable == 0 and not content.ratio.may_raise
    assert found["reached"]["n_losses"] == 0
    assert found["expected"] is found["audit"]["expected"] is None  # --target-on fit_rows
    assert "expected" not in found["status"]
    assert found["constraint_met"] is (code == 0)
    assert found["audit"]["n"] == 500 and found["reached"]["n_rows"] == 1500
    assert "held out" in found["audit"]["rows"]
    ledger = pd.read_csv("ledger.csv")
    assert len(ledger) == found["audit"]["changes"]["n_changes"] > 0
    scores = people(2000, 0)["f"][ledger["row"]]
    np.testing.assert_allclose(ledger["score_before"], scores, atol=1e-9)


def test_the_ledger_names_rows_by_their_key(folder, call):
    table = people(2000, 0)
    table.loc[:20, "race"] = None
    table.assign(key=[f"k{i}" for i in range(2000)]).to_csv("keys.csv", index=False)
    told = ("debias", "keys.csv", *FIT, "--test-size", "0.5", "--drop-missing", "-q")
    call(*told, "--key", "key", "--out", "b.json", "--ledger", "keys_.csv")
    ledger = pd.read_csv("keys_.csv")
    rows = ledger["row"].str.removeprefix("k").astype(int)
    assert len(rows) > 5 and rows.min() > 20
    np.testing.assert_allclose(ledger["score_before"], table["f"][rows], atol=1e-9)


def test_rows_held_out_decide_too(folder, call):
    told = ("debias", "train.csv", *FIT, "--at-least", "0.9", "--test-size", "0.5")
    codes = set()
    for seed in range(2):
        code, out, _ = call(*told, "--seed", seed, "--json", "--force")
        found = json.loads(out)
        fair = found["audit"]["fairness"][0]["after"]["value"]
        assert code == (0 if fair >= 0.9 and found["reached"]["target_met"] else 1)
        codes.add(code)
    assert codes == {0, 1}  # some half of the rows is less fair than the other


def test_the_score_of_the_patch_is_the_one_that_is_edited(folder, call, patch_file):
    pd.read_csv("new.csv").assign(score=0.9).to_csv("both.csv", index=False)
    call("apply", patch_file, "both.csv", "out.csv")
    expected = Patch.load(patch_file).apply(pd.read_csv("both.csv"), score="f")
    np.testing.assert_array_equal(
        pd.read_csv("out.csv")["commod_decision"], expected["commod_decision"]
    )


def test_types_can_be_corrected_and_a_batch_is_read_as_the_patch_says(folder, call):
    """Columns that the patch does not read stay as they are, letter by letter."""
    random = np.random.default_rng(0)
    table = people(2000, 0).drop(columns=["income", "age", "town"])
    table["zip"] = np.where(table["race"] == "black", "1", "9") + pd.Series(
        random.choice(["1", "2"], 2000)
    )
    table["zip"] = np.where(random.random(2000) < 0.3, "77", table["zip"])
    table.to_csv("zip.csv", index=False)
    told = ("debias", "zip.csv", *FIT, "--at-least", "0.8", "-q", "--force")
    assert call(*told, "--type", "zip=text")[0] == 0
    columns = Patch.load("patch.json").content.ratio.columns
    assert {c.name: c.reads for c in columns}["zip"] == "category"
    batch = table.assign(phone="+490", word="NA", exact="1.50")
    batch.to_csv("batch.csv", index=False)
    assert call("apply", "patch.json", "batch.csv", "out.csv")[0] == 0
    read = pd.read_csv("out.csv", dtype=str, keep_default_na=False)
    assert read[["phone", "word", "exact"]].drop_duplicates().to_numpy().tolist() == [
        ["+490", "NA", "1.50"]
    ]
    expected = Patch.load("patch.json").apply(batch, score="f")
    assert read["commod_decision"].astype(int).tolist() == expected["commod_decision"].tolist()


def test_audit_keeps_people_of_missing_groups_on_request(folder, call):
    table = pd.DataFrame({"old": [0, 1] * 100, "new": [0, 1, 1, 1] * 50, "sex": ["f", "m"] * 100})
    table.loc[:49, "sex"] = None
    table.to_csv("partly.csv", index=False)
    told = ("audit", "partly.csv", "--before", "old", "--after", "new", "--sensitive", "sex")
    assert_one_sentence(call(*told), "missing in 50 of 200 rows")
    found = []
    for extra in ((), ("--engine", "duckdb")):
        code, out, _ = call(*told, "--unknown-groups", "ignore", "--json", *extra)
        assert code == 0
        found.append(json.loads(out)["audit"])
    assert found[0]["n"] == found[1]["n"] == 200
    assert found[0]["unknown_groups"] == found[1]["unknown_groups"]
    assert found[0]["unknown_groups"]["n_known"] == 150


def test_check_keeps_people_of_missing_groups_on_request(folder, call, patch_file):
    table = pd.read_csv("train.csv").head(900)
    table.loc[::3, "race"] = None
    table.to_csv("partly.csv", index=False)
    told = ("check", patch_file, "partly.csv", "--sensitive", "race", "--score", "f", "--json")
    code, _, err = call(*told)
    assert code == 2 and "--unknown-groups ignore" in err
    code, out, err = call(*told, "--unknown-groups", "ignore")
    assert code in (0, 1, 3), err
    kept = json.loads(out)["audit"]
    assert kept["n"] == 900 and kept["unknown_groups"]["n_known"] == 600
    code, out, _ = call(*told, "--drop-missing")
    assert json.loads(out)["audit"]["n"] == 600


def test_audit_counts_alike_in_memory_and_in_the_engine(folder, call):
    told = ("audit", "decided.csv", "--before", "old", "--after", "new", "--sensitive", "race")
    whole, counted = (
        json.loads(call(*told, "--at-least", "0.3", "--json", *more)[1])
        for more in ((), ("--engine", "duckdb"))
    )
    for name in ("changes", "fairness", "groups", "limit"):
        assert whole["audit"][name] == counted["audit"][name], name
    assert call(*told, "--at-least", "0.999")[0] == 1


def test_sql_is_printed_or_written(folder, call, patch_file):
    told = ("sql", patch_file, "--dialect", "duckdb", "--table", "scores", "--score", "f")
    code, out, _ = call(*told)
    assert code == 0 and "SELECT" in out and "scores" in out
    assert call(*told, "--out", "edit.sql")[0] == 0
    assert (folder / "edit.sql").read_text() == out
    assert_one_sentence(call(*told, "--out", "edit.sql"), "--force")
    assert "commod_calibrated" not in out and "commod_calibrated" in call(*told, "--calibrated")[1]
    assert '"Gain"' in call(*told, "--column", "income=Gain")[1] and '"Gain"' not in out
    assert_one_sentence(call(*told, "--column", "income"), "PATCH=TABLE", "age=AGE")
    bad = ("sql", patch_file, "--dialect", "duckdb", "--table", "a; drop table b", "--score", "f")
    assert_one_sentence(call(*bad))


def test_show_prints_one_page_and_what_differs(folder, call, patch_file):
    code, out, _ = call("show", patch_file)
    assert code == 0 and "income" in out and Patch.load(patch_file).sha256 in out
    code, out, _ = call("show", patch_file, "--diff", patch_file)
    assert code == 0 and "alike" in out
    Path("laid_out.json").write_text(json.dumps(json.loads(Path(patch_file).read_text()), indent=4))
    found = json.loads(call("show", "laid_out.json", "--json")[1])
    assert found["patch"]["schema"] == "commod.patch/3"
    assert found["sha256"] == hashlib.sha256(Path("laid_out.json").read_bytes()).hexdigest()


def test_compare_holds_methods_against_the_limit(folder, call, monkeypatch):
    monkeypatch.setattr(_candidates, "N_TARGETS", 3)
    people(300, 0).to_csv("few.csv", index=False)
    told = ("compare", "few.csv", *TOLD, "--method", "ControlledDebiaser", "--method", "LPP")
    code, out, _ = call(*told, "--json", "--out", "c.csv", "--picture", "c.png")
    names = [line["method"] for line in json.loads(out)["changes_needed"]]
    assert code == 0 and names == ["ControlledDebiaser", "LPP", "exact limit"]
    assert set(pd.read_csv("c.csv")["method"]) == {"ControlledDebiaser", "LPP"}
    assert (folder / "c.png").read_bytes().startswith(b"\x89PNG")
    assert_one_sentence(call("compare", "train.csv", *TOLD, "--method", "Magic"), "Magic", "LPP")


# -- mistakes ---------------------------------------------------------------------------------


def bad_tables(folder):
    """Return the name of each bad table, and words that its sentence has."""
    table = people(300, 0)
    csv = table.to_csv(index=False)
    head, *lines = csv.splitlines()
    some = table.assign(race=table["race"].where(table.index > 4))
    texts = {
        "empty.csv": ("", ["empty"]),
        "header.csv": (head + "\n", ["no rows"]),
        "semicolons.csv": (csv.replace(",", ";"), ["--csv delimiter"]),
        "long.csv": ("\n".join([head, lines[0], lines[1] + ",9", *lines[2:]]), ["line 3"]),
        "short.csv": ("\n".join([head, lines[0], "1,2", *lines[2:]]), ["line 3"]),
        "twice.csv": (csv.replace("age", "income", 1), ["income"]),
        "latin.csv": (csv.replace("Oslo", "Zürich").encode("latin-1"), ["--csv encoding"]),
        "three.csv": (table.assign(y=np.arange(300) % 3).to_csv(index=False), ["3"]),
        "one.csv": (table.assign(y=1).to_csv(index=False), ["1 classes"]),
        "no_race.csv": (table.assign(race=None).to_csv(index=False), ["race", "missing"]),
        "some_race.csv": (some.to_csv(index=False), ["missing in 5 of 300", "--drop-missing"]),
        "no_score.csv": (table.assign(f=None).to_csv(index=False), ["missing in 300 of 300"]),
        "text_score.csv": (table.assign(f="high").to_csv(index=False), ["between 0 and 1"]),
        "large_score.csv": (table.assign(f=50).to_csv(index=False), ["outside [0, 1]"]),
        "one_group.csv": (table.assign(race="white").to_csv(index=False), ["group"]),
        "no_column.csv": (table.drop(columns="race").to_csv(index=False), ["--sensitive 'race'"]),
        "quote.csv": (csv + 'a,"b\n', ["quote"]),
        "not.parquet": (csv, ["Parquet"]),
        "table.xlsx": (csv, [".xlsx"]),
        "not.csv.gz": (csv, ["gzip"]),
    }  # fmt: skip
    for name, (text, _) in texts.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    (folder / "folder.csv").mkdir()
    return {
        **{name: words for name, (_, words) in texts.items()},
        "folder.csv": ["folder"],
        "nothing.csv": ["nothing.csv"],
        "no*.such": ["no*.such"],
    }


def test_a_bad_table_is_one_sentence_and_leaves_earlier_files_alone(folder, call):
    Path("patch.json").write_text("earlier")
    before = sorted(p.name for p in folder.iterdir())
    tables = bad_tables(folder)
    bad = sorted(p.name for p in folder.iterdir())
    assert len(tables) >= 20
    for name, words in tables.items():
        outcome = call("debias", name, *FIT, "--out", "patch.json", "--force")
        assert_one_sentence(outcome, *words)
    assert Path("patch.json").read_text() == "earlier"
    assert sorted(p.name for p in folder.iterdir()) == bad and set(before) <= set(bad)


def test_errors_reach_machines_too(folder, call):
    code, out, err = call("debias", "nothing.csv", *FIT, "--json")
    assert code == 2 and "nothing.csv" in json.loads(out)["error"] and err


def test_ten_thousand_columns_are_refused(folder, call):
    wide = people(20, 0)
    more = np.random.default_rng(0).integers(0, 9, (20, 10_000))
    names = [f"c{i}" for i in range(10_000)]
    wide = pd.concat([wide, pd.DataFrame(more, columns=names)], axis=1)
    wide.to_csv("wide.csv", index=False)
    assert_one_sentence(call("debias", "wide.csv", *FIT), "10,006 columns")


BAD_OPTIONS = [
    (["--threshold", "2"], ["threshold"]),
    (["--confidence", "3"], ["confidence"]),
    (["--max-changes", "-1"], ["--max-changes: ", "max_changes=-1.0"]),
    (["--at-least", "7"], ["--at-least 7"]),
    (["--direction", "down"], ["--direction", "losses_only"]),
    (["--positive", "maybe"], ["--positive 'maybe'", "0, 1"]),
    (["--type", "age"], ["COLUMN=TYPE"]),
    (["--type", "age=colour"], ["colour"]),
    (["--type", "town=number"], ["town"]),
    (["--type", "age=text", "--type", "age=number"], ["--type 'age'", "'text'", "'number'"]),
    (["--group-names", "a=x", "--group-names", "a=y"], ["--group-names 'a'", "'x'", "'y'"]),
    (["--sensitive", "race"], ["'race' is named by --sensitive and by --sensitive"]),
    (["--label", "old"], ["--label is stated twice", "Keep one"]),
    (["--max-changes", ".1", "--max-changes", ".2"], ["--max-changes is stated twice"]),
    (["--constraint", "minimum rate >= 1e400"], ["--constraint", "from 0 to 1"]),
    (["--features", "height"], ["--features 'height'"]),
    (["--ignore", "y"], ["--label", "--ignore"]),
    (["--model", "model.skops"], ["one of them"]),
    (["--test-size", "1.5"], ["--test-size"]),
    (["--out", "no/such/folder/p.json"], ["folder"]),
    (["--out", "train.csv"], ["train.csv"]),
    (["--out", "."], ["folder"]),
    (["--report", "r.xyz"], ["r.xyz"]),
    (["--min-group-size", "5000"], ["--min-group-size: ", "min_group_size=5000"]),
]


def test_a_bad_option_is_one_sentence(folder, call):
    Path("model.skops").write_text("")
    before = sorted(p.name for p in folder.iterdir())
    for options, words in BAD_OPTIONS:
        assert_one_sentence(call("debias", "train.csv", *FIT, *options), *words)
        assert sorted(p.name for p in folder.iterdir()) == before, options


def test_nothing_is_overwritten_without_force(folder, call, patch_file):
    Path("p.json").write_text("earlier")
    assert_one_sentence(call("debias", "train.csv", *FIT, "--out", "p.json"), "--force")
    Path("out.csv").write_text("earlier")
    told = ("apply", patch_file, "new.csv", "out.csv", "--score", "f")
    assert_one_sentence(call(*told), "--force")
    assert Path("p.json").read_text() == Path("out.csv").read_text() == "earlier"
    assert call(*told, "--force")[0] == 0
    same = ("apply", patch_file, "new.csv", "new.csv", "--score", "f", "--force")
    assert_one_sentence(call(*same), "being read")


def test_nothing_that_is_read_or_written_is_replaced(folder, call, patch_file):
    Path("d").mkdir()
    people(500, 0).to_csv("d/a.csv", index=False)
    Path("p.json").write_text(Path(patch_file).read_text())
    same = ("--out", "same.json", "--report", "same.json")
    assert_one_sentence(call("debias", "train.csv", *FIT, *same), "two outputs")
    told = ("d/*.csv", *TOLD, "--force")
    assert_one_sentence(call("debias", *told, "--ledger", "d/a.csv"), "being read")
    assert_one_sentence(call("compare", *told, "--out", "d/a.csv"), "being read")
    told = ("check", "p.json", "new.csv", "--sensitive", "race", "--report", "p.json", "--force")
    assert_one_sentence(call(*told), "being read")
    assert_one_sentence(call("compare", "train.csv", *TOLD, "--picture", "a.xyz"), "a.xyz")
    Path("loop.json").symlink_to("loop.json")
    assert call("debias", "train.csv", *FIT, "--out", "loop.json")[0] == 0
    assert Patch.load("loop.json")


def test_a_mistyped_column_is_one_sentence(folder, call, patch_file):
    told = ("audit", "decided.csv", "--before", "old", "--after", "new")
    for option, more in (
        ("--sensitive", ()),
        ("--sensitive", ("--engine", "duckdb")),
        ("--label", ("--engine", "duckdb")),
        ("--score-before", ()),
    ):
        given = (option, "nope") if option == "--sensitive" else ("--sensitive", "race")
        given = given if option == "--sensitive" else (*given, option, "nope")
        assert_one_sentence(call(*told, *given, *more), option, "'nope'", "columns: ")
    assert_one_sentence(call("check", patch_file, "new.csv", "--sensitive", "nope"), "'nope'")


def test_a_bound_that_is_no_number_is_refused(folder, call, patch_file):
    check = ("check", patch_file, "new.csv", "--sensitive", "race")
    assert_one_sentence(call(*check, "--at-least", "nan"), "--at-least")
    assert_one_sentence(call(*check, "--max-changes", "nan"), "--max-changes")
    audit = ("audit", "decided.csv", "--before", "old", "--after", "new", "--sensitive", "race")
    assert_one_sentence(call(*audit, "--at-least", "nan"), "--at-least")


def test_a_damaged_parquet_file_is_one_sentence(folder, call, patch_file):
    people(2000, 1).to_parquet("bad.parquet")
    raw = bytearray(Path("bad.parquet").read_bytes())
    footer = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    raw[4:footer] = bytes(255 - byte for byte in raw[4:footer])
    Path("bad.parquet").write_bytes(raw)
    told = ("--sensitive", "race")
    for command in (
        ("debias", "bad.parquet", *FIT),
        ("check", patch_file, "bad.parquet", *told),
        ("apply", patch_file, "bad.parquet", "out.csv"),
        ("audit", "bad.parquet", "--before", "y", "--after", "y", *told),
        ("audit", "bad.parquet", "--before", "y", "--after", "y", *told, "--engine", "duckdb"),
    ):
        assert_one_sentence(call(*command))


def test_decisions_may_have_any_two_labels(folder, call):
    table = pd.read_csv("decided.csv").replace(
        {"old": {0: "no", 1: "yes"}, "new": {0: "no", 1: "yes"}}
    )
    table.loc[:4, ["old", "new"]] = None
    table.to_csv("words.csv", index=False)
    told = (
        "audit",
        "words.csv",
        "--before",
        "old",
        "--after",
        "new",
        "--sensitive",
        "race",
        "--json",
    )
    whole, counted = (json.loads(call(*told, *more)[1]) for more in ((), ("--engine", "duckdb")))
    assert whole["audit"]["request"]["pos_label"] == "yes" and whole["audit"]["n"] == 1995
    assert whole["audit"]["groups"] == counted["audit"]["groups"]
    assert any("5 rows without a decision" in note for note in whole["notes"])


def test_a_patch_for_other_columns_is_refused(folder, call, patch_file):
    pd.read_csv("new.csv").rename(columns={"income": "pay"}).to_csv("other.csv", index=False)
    pd.read_csv("new.csv").assign(income="much").to_csv("text.csv", index=False)
    for name, words in (("other.csv", "does not have"), ("text.csv", "line 2")):
        told = (patch_file, name, "out.csv", "--score", "f")
        assert_one_sentence(call("apply", *told), "'income'", words)
        told = (patch_file, name, "--score", "f", "--sensitive", "race")
        assert_one_sentence(call("check", *told), "'income'", words)
    wrong = ("apply", patch_file, "new.csv", "o.csv", "--score", "g")
    assert_one_sentence(call(*wrong), "--score: ", "no column 'g'")
    assert not Path("out.csv").exists()


def test_a_damaged_or_forged_patch_is_refused(folder, call, patch_file):
    text = Path(patch_file).read_text()
    Path("cut.json").write_text(text[:-20])
    Path("edited.json").write_text(text.replace("0.8", "0.9"))
    for name in ("cut.json", "edited.json", "train.csv", "nothing.json", "."):
        assert_one_sentence(call("show", name), name)
    signed = ("--sha256", "0" * 64)
    assert_one_sentence(call("show", patch_file, *signed), "not the file that was signed off")


def test_rows_and_columns_that_cannot_be_used_are_refused_or_left_out_with_a_note(folder, call):
    table = people(2000, 0)
    table = table.assign(
        copy=table["race"],
        id=np.random.default_rng(0).permutation(2000),
        day=pd.date_range("2020-01-01", periods=2000).strftime("%Y-%m-%d"),
    )
    table["race"] = table["race"].where(table.index > 9)
    table["y"] = table["y"].where(table.index < 1990).astype("Int64")
    table.to_csv("holes.csv", index=False)
    told = ("debias", "holes.csv", *FIT, "--drop-missing")
    assert_one_sentence(call(*told, "-q"), "'copy'", "determines", "--ignore")
    code, out, _ = call(*told, "--ignore", "copy", "--json")
    found = json.loads(out)
    assert code == 0 and found["reached"]["n_rows"] == 1980
    notes = " ".join(found["notes"])
    assert "20 of 2,000 rows were dropped" in notes
    assert "'id'" in notes and "'day'" in notes
    assert Patch.load("patch.json").content.labels.positive == 1


def test_a_disk_that_fills_up_leaves_all_outputs_or_none(folder, call, monkeypatch):
    at = 3  # the last of three files: the first two have their names by then
    Path("r.html").write_text("earlier")
    Path("p.json").write_text("earlier")
    files = sorted(p.name for p in folder.iterdir())
    replace, n_calls = os.replace, []

    def full(*arguments, **options):
        n_calls.append(1)
        if len(n_calls) == at:
            raise OSError(28, "No space left on device")
        return replace(*arguments, **options)

    monkeypatch.setattr(os, "replace", full)
    outputs = ("--out", "p.json", "--ledger", "l.csv", "--report", "r.html", "--force")
    code, _, err = call("debias", "train.csv", *FIT, "--at-least", "0.7", *outputs)
    assert code == 2 and err.count("\n") == 1 and "No space left" in err
    assert Path("r.html").read_text() == Path("p.json").read_text() == "earlier"
    assert sorted(p.name for p in folder.iterdir()) == files


# -- the command itself -----------------------------------------------------------------------


def test_every_command_has_help_with_examples(call):
    for name in ("debias", "explore", "audit", "apply", "sql", "show", "compare", "check", "demo"):
        code, out, _ = call(name, "--help")
        assert code == 0 and "Examples:" in out
        assert f"$ commod {name}" in out, name


def test_a_wrong_use_is_one_sentence_too(call):
    for told, word in (
        (["debias", "train.csv"], "--sensitive"),
        (["debias", "a.csv", "--sensitive", "s", "--at-least", "x"], "--at-least"),
        (["debias", "a.csv", "--sensitive", "s", "--constraint", "kind"], "equalized_odds"),
        (["nothing"], "nothing"),
    ):
        assert_one_sentence(call(*told), word, "--help")
    code, out, _ = call("debias", "train.csv", "--json")
    assert code == 2 and "--sensitive" in json.loads(out)["error"]


def test_files_are_written_wherever_words_cannot_be(folder, call, monkeypatch, patch_file):
    shown = io.TextIOWrapper(io.BytesIO(), encoding="ascii")  # which has the fewest letters
    monkeypatch.setattr(sys, "stdout", shown)
    told = ("sql", patch_file, "--dialect", "duckdb", "--table", "scores", "--score", "f")
    assert call(*told, "--out", "edit.sql")[0] == 0
    assert call("show", patch_file)[0] == 0
    shown.flush()
    assert "\\u2265 0.8" in shown.buffer.getvalue().decode("ascii")
    assert "SELECT" in Path("edit.sql").read_text()


def test_a_reader_that_stops_reading_does_not_stop_the_work(folder, patch_file):
    told = [str(COMMAND), "apply", str(patch_file), "new.csv", "out.csv", "--score", "f"]
    line = f"({shlex.join(told)}; echo $? > code) | true"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert Path("code").read_text().strip() == "0", done.stderr
    assert len(pd.read_csv("out.csv")) == 2000 and "Traceback" not in done.stderr


def test_the_version_of_the_library_is_in_the_patch(patch_file):
    assert Patch.load(patch_file).content.library == f"commod-debiasing {commod.__version__}"


def test_disparities_have_a_ceiling_and_the_score_column_may_be_ignored_by_the_update(folder, call):
    """`--ignore` locks a column; the base model reads the score anyway."""
    odds = ("debias", "train.csv", *FIT, "--constraint", "equalized_odds", "--ignore", "f")
    assert_one_sentence(call(*odds, "--at-least", "0.8"), "State --at-most")
    outcome = call(*odds, "--at-most", "0.2")
    assert outcome[0] == 0, outcome
    parameters = {"constraints": "equalized_odds", "target": 0.2, "borderline": 0}
    parameters["target_on"] = "fit_rows"
    theirs = fitted_patch(ControlledDebiaser(ScoreColumn("f"), **parameters)).content
    ours = Patch.load("patch.json").content
    assert ours.ratio == theirs.ratio and ours.asked.target == 0.2
    assert ours.base.score == "f"
