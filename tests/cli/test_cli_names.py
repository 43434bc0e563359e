"""Names, trade-off and refits on the command line, and what it does with sensitive columns."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from command_tables import people
from sklearn.linear_model import LogisticRegression

from commod import Patch
from commod.updates import _candidates
from tables_of_cases import every_line

pytest.importorskip("duckdb")

FIT = ("--label", "y", "--score-column", "f", "--at-least", "0.8", "--out", "p.json", "--force")
QUICKEST = ("--target-on", "fit_rows", "--borderline", "0")
AUDIT = ("audit", "coded.csv", "--before", "old", "--after", "new")


@pytest.fixture
def coded(tmp_path, monkeypatch):
    """Write a table whose groups and labels are codes; its folder is the working folder."""
    table = people(900, 0)
    table["race"] = (table["race"] == "white") * 1 + 1
    table["old"] = (table["f"] > 0.5) * 1
    table["new"] = (table["f"] > 0.45) * 1
    table["is_old"] = table["age"] > 50
    table.to_csv(tmp_path / "coded.csv", index=False)
    monkeypatch.chdir(tmp_path)


NAMES = ("--group-names", "1=Black people", "--group-names", "2=White people")


@every_line("where", [(), ("--engine", "duckdb")])
def test_an_audit_calls_groups_and_labels_by_their_names(coded, call, where):
    labels = ("--label-names", "1=approved", "--label-names", "0=rejected")
    code, out, _ = call(*AUDIT, "--sensitive", "race", *NAMES, *labels, *where, "--json")
    audit = json.loads(out)["audit"]
    assert code == 0
    assert [g["name"] for g in audit["groups"]] == ["Black people", "White people"]
    assert audit["request"]["favorable_name"] == "approved"


def test_groups_of_several_columns_are_named_by_column(coded, call):
    names = ("--group-names", "race:1=Black", "--group-names", "is_old:true=over 50")
    sensitive = ("--sensitive", "race", "--sensitive", "is_old")
    code, out, _ = call(*AUDIT, *sensitive, *names)
    assert code == 0 and "race = Black, is_old = over 50" in out


def test_a_name_that_cannot_be_meant_is_one_sentence(coded, call):
    """`debias` reads names as `audit` does; its labels are those of the column of labels."""
    for command, name, words in (
        ("debias", ("--group-names", "3=x"), "'3' is not one of"),
        ("debias", ("--label-names", "7=x"), "'7' is not one of the labels"),
        ("audit", ("--group-names", "women"), "VALUE=NAME"),
        ("audit", ("--group-names", "3=x"), "'3' is not one of"),
        ("audit", ("--group-names", "1=x", "--group-names", "1=y"), "twice"),
        ("audit", ("--group-names", "1=x", "--group-names", "2=x"), "do not merge groups"),
        ("audit", ("--label-names", "7=x"), "'7' is not one of the labels"),
    ):
        told = AUDIT if command == "audit" else ("debias", "coded.csv", *FIT, "--report", "r.md")
        code, _, err = call(*told, "--sensitive", "race", *name)
        assert code == 2 and err.startswith("commod: error: ") and err.count("\n") == 1, err
        assert words in err, err


def test_a_report_shows_names_trade_off_and_refits(coded, call, monkeypatch):
    monkeypatch.setattr(_candidates, "N_TARGETS", 2)
    told = ("debias", "coded.csv", *FIT, "--sensitive", "race", *NAMES, "--ignore", "old")
    told = (*told, "--ignore", "new", "--test-size", "0.4", "--report", "r.md", *QUICKEST)
    code, out, _ = call(*told, "--trade-off", "--refits", "2", "--label-names", "1=approved")
    assert code in (0, 1), out
    report = Path("r.md").read_text()
    assert "Black people" in report and "approved" in report and "Black people" in out
    assert "2 refits" in report and "trade-off" in report.lower()
    assert "Black people" not in Path("p.json").read_text()
    assert "race" not in Path("p.json").read_text(), "the update never reads a sensitive column"


def test_a_study_that_no_report_shows_is_refused_before_rows_are_read(coded, call):
    for extra, words in (
        (("--trade-off",), "pass --report"),
        (("--refits", "5"), "pass --report"),
        (("--refits", "1", "--report", "r.md"), "two or more refits"),
        (("--trade-off", "--report", "r.json"), "JSON report"),
    ):
        code, _, err = call("debias", "nowhere.csv", *FIT, "--sensitive", "race", *extra)
        assert code == 2 and words in err, err


def test_the_blind_limit_is_in_the_answer_and_the_report(coded, call):
    pd.read_csv("coded.csv").head(250).to_csv("coded.csv", index=False)
    told = ("--sensitive", "race", "--blind-limit", "--report", "r.md")
    fit = ("debias", "coded.csv", *FIT, "--ignore", "old", "--ignore", "new", *QUICKEST)
    for command in (AUDIT, fit):
        code, out, err = call(*command, *told, "--force")
        assert code in (0, 1), err
        assert "does not read the group needs about" in " ".join(out.split())
        assert "does not read the group needs about" in Path("r.md").read_text()


def test_the_blind_limit_needs_rows_in_memory_and_columns(coded, call):
    pd.read_csv("coded.csv")[["old", "new", "race"]].to_csv("bare.csv", index=False)
    for told, words in (
        ((AUDIT[0], "bare.csv", *AUDIT[2:]), "--blind-limit needs other columns"),
        ((*AUDIT, "--engine", "duckdb"), "--blind-limit needs all rows in memory"),
        (
            ("debias", "coded.csv", *FIT, "--report", "r.md", "--engine", "duckdb"),
            "--blind-limit needs all rows in memory",
        ),
    ):
        code, _, err = call(*told, "--sensitive", "race", "--blind-limit")
        assert code == 2 and words in err, err


# -- sensitive columns, as docs/command-line.md says ----------------------------------------------


def _fit_model(path, columns):
    """Write a model that does not know the names of its columns."""
    import joblib

    table = pd.read_csv("coded.csv")
    model = LogisticRegression(max_iter=500).fit(table[columns].to_numpy(), table["y"])
    joblib.dump(model, path)


def test_a_base_model_gets_the_sensitive_column_and_the_update_does_not(coded, call):
    columns = ["income", "age", "race"]
    _fit_model("model.pkl", columns)
    features = [part for column in columns for part in ("--features", column)]
    told = ("debias", "coded.csv", "--label", "y", "--sensitive", "race", "--out", "p.json")
    model = ("--model", "model.pkl", "--trust", "pickle", "--at-least", "0.8", "--force")
    code, out, err = call(*told, *model, *features, *QUICKEST)
    assert code == 0, (out, err)
    assert "race" not in [c.name for c in Patch.load("p.json").content.ratio.columns]


def test_the_update_cannot_be_told_to_read_a_sensitive_column(coded, call):
    told = ("debias", "coded.csv", *FIT, "--sensitive", "race")
    code, _, err = call(*told, "--features", "race", "--features", "age")
    assert code == 2 and "named by --sensitive and by --features" in err
