"""`commod debias` changes the people whom its options ask for: near the threshold, or cheap."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from commod import ControlledDebiaser, Patch, ScoreColumn
from commod.patch.content import term_points_of

pytest.importorskip("duckdb")

TOLD = ("--label", "y", "--sensitive", "race", "--score-column", "f", "--at-least", "0.8")


def test_the_options_set_the_parameters_of_the_library(folder, call):
    told = ("--borderline", "0.5", "--no-reads-score", "--score-edit", "all")
    code, _, err = call("debias", "train.csv", *TOLD, *told, "--out", "ours.json")
    assert code == 0, err
    table = pd.read_csv("train.csv")
    update = ControlledDebiaser(ScoreColumn("f"), target=0.8, borderline=0.5, score_edit="all")
    X = table.drop(columns=["y", "race"])
    theirs = update.fit(X, table["y"], sensitive_features=table["race"]).to_patch().content
    ours = Patch.load("ours.json").content
    assert (ours.ratio, ours.score_edit) == (theirs.ratio, theirs.score_edit)
    assert ours.score_edit == "all"


def test_points_may_be_whole_numbers_of_a_few_lines(folder, call):
    told = ("--points", "integers", "--max-lines", "4", "--target-on", "fit_rows")
    code, _, err = call("debias", "train.csv", *TOLD, *told, "--out", "whole.json")
    assert code == 0, err
    content = Patch.load("whole.json").content
    assert content.asked.points == "integers"
    points = [term.points for column in content.ratio.columns for term in term_points_of(column)]
    assert all(float(value).is_integer() for value in points)
    assert 1 <= np.count_nonzero(points) <= 4


def test_a_column_of_costs_spares_dear_people_and_is_no_feature(folder, call):
    table = pd.read_csv("train.csv")
    cost = np.where(table["age"] < 50, 1.0, 100.0)
    table.assign(loss=cost).to_csv("costs.csv", index=False)
    shares = []
    for told in ((), ("--change-cost", "loss")):
        ignored = () if told else ("--ignore", "loss")
        files = ("--out", "p.json", "--ledger", "l.csv", "--force")
        call_told = (*TOLD, *told, *ignored, "--borderline", "1", *files)
        code, out, err = call("debias", "costs.csv", *call_told, "--json")
        assert code == 0, err
        assert "loss" not in json.loads(out)["columns"]
        changed = pd.read_csv("l.csv")["row"].to_numpy(int)
        shares.append((cost[changed] == 100).mean())
    assert shares[1] < shares[0]


def test_costs_that_cannot_be_used_are_refused(folder, call):
    table = pd.read_csv("train.csv")
    table.assign(loss=-1.0).to_csv("negative.csv", index=False)
    table.assign(loss=np.where(table.index == 3, np.nan, 1.0)).to_csv("missing.csv", index=False)
    for file, told, words in (
        ("negative.csv", (), ("--change-cost", "negative")),
        ("missing.csv", (), ("'loss' is missing in 1", "--drop-missing")),
        ("negative.csv", ("--features", "loss"), ("--features", "--change-cost")),
        ("negative.csv", ("--report", "r.html", "--trade-off"), ("--trade-off", "--change-cost")),
    ):
        code, _, err = call("debias", file, *TOLD, "--change-cost", "loss", *told)
        assert code == 2 and err.startswith("commod: error: "), err
        for word in words:
            assert word in err, err


def test_a_wrong_price_or_edit_names_its_option(folder, call):
    for option, value in (("--borderline", "-1"), ("--score-edit", "some")):
        code, _, err = call("debias", "train.csv", *TOLD, option, value)
        assert code == 2 and option in err and err.count("\n") == 1, err
