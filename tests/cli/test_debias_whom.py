"""`commod debias` changes the people, and has the points and the target, that its options state."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from commod import ControlledDebiaser, Patch, ScoreColumn

pytest.importorskip("duckdb")

TOLD = ("--label", "y", "--sensitive", "race", "--score-column", "f", "--at-least", "0.8")


def test_the_options_set_the_parameters_of_the_library(folder, call):
    told = ("--borderline", "0.5", "--points", "per bin", "--score-edit", "all", "--max-lines", "7")
    told = (*told, "--target-on", "fit_rows")  # of the default, test_cli.py compares the patch
    code, _, err = call("debias", "train.csv", *TOLD, *told, "--out", "ours.json")
    assert code == 0, err
    table = pd.read_csv("train.csv")
    update = ControlledDebiaser(
        ScoreColumn("f"),
        target=0.8,
        borderline=0.5,
        score_edit="all",
        points="per bin",
        max_lines=7,
        target_on="fit_rows",
    )
    X = table.drop(columns=["y", "race"])
    theirs = update.fit(X, table["y"], sensitive_features=table["race"]).to_patch().content
    ours = Patch.load("ours.json").content
    assert (ours.ratio, ours.score_edit) == (theirs.ratio, theirs.score_edit)
    assert ours.score_edit == "all" and ours.ratio.columns


def test_the_scorecard_has_twelve_lines_unless_all_are_asked_for(folder, call, monkeypatch):
    given = {}

    def fit(update, *_, **__):
        given.update(update.get_params(deep=False))
        raise KeyboardInterrupt

    monkeypatch.setattr(ControlledDebiaser, "fit", fit)
    for told, most in (((), 12), (("--max-lines", "0"), None)):
        call("debias", "train.csv", *TOLD, *told)
        assert (given["max_lines"], given["borderline"], given["points"]) == (most, 0.25, "auto")


def test_a_wrong_number_or_choice_names_its_option(folder, call):
    wrong = (
        ("--borderline", "-1"),
        ("--score-edit", "some"),
        ("--points", "free"),
        ("--target-on", "all"),
    )
    for option, value in wrong:
        code, _, err = call("debias", "train.csv", *TOLD, option, value)
        assert code == 2 and option in err and err.count("\n") == 1, err


def test_expected_figures_are_given_where_the_target_is_for_new_people(folder, call):
    told = ("--target-on", "new_rows", "--test-size", "0.4")
    code, out, err = call(
        "debias", "train.csv", *TOLD, "--borderline", "0", "--max-lines", "0", "--json", *told
    )
    result = json.loads(out)
    assert code in (0, 1), err  # about half of all held-out rows miss an expected target
    expected = result["expected"]
    assert result["audit"]["expected"] == expected
    assert "Expected on new people: " in result["status"]
    assert expected["fairness"] >= 0.8 and 0 < expected["change_rate"] < 1
    assert 0.5 < expected["accuracy"] < 1
    assert 0 < expected["low"] < expected["fairness"] < expected["high"] < 1
