"""Constraints as texts on the command line: with bounds, conditions, and several at once."""

from __future__ import annotations

from typing import ClassVar

import pandas as pd
import pytest

from commod import Patch
from commod.cli._options import Options
from commod.constraints import DemographicParity, EqualizedOdds, MinimumRate
from commod.exceptions import InputError
from tables_of_cases import every_line

FIT = ("--label", "y", "--sensitive", "race", "--score-column", "f", "--out", "p.json", "--force")


@every_line(
    "told, expected",
    [
        ({}, [DemographicParity()]),
        ({"at_least": 0.8}, [DemographicParity(ratio=0.8)]),
        ({"constraint": ["equalized_odds"], "at_most": 0.1}, [EqualizedOdds(0.1)]),
        ({"constraint": ["minimum rate"], "at_least": 0.3}, [MinimumRate(0.3)]),
        ({"constraint": ["demographic parity >= 80%"]}, [DemographicParity(ratio=0.8)]),
        (
            {"constraint": ["demographic parity >= 0.8 within town", "minimum rate >= 0.3"]},
            [DemographicParity(ratio=0.8).within("town"), MinimumRate(0.3)],
        ),
    ],
)
def test_options_state_constraints_with_bounds(told, expected):
    assert list(Options(**told).requirements.parts) == expected


@every_line(
    "told, message",
    [
        ({"constraint": ["demographic parity >= 0.8"], "at_least": 0.9}, "states its bound"),
        ({"constraint": ["minimum rate"], "at_most": 0.3}, "State --at-least"),
        ({"constraint": ["minimum_rate", "demographic_parity"], "at_least": 0.3}, "states 2"),
        ({"constraint": ["minimum rate >= 0.3", "minimum rate >= 0.4"]}, "twice"),
        ({"at_least": 7}, "--at-least 7 is no P-rule"),
    ],
)
def test_options_that_contradict_each_other_are_refused(told, message):
    with pytest.raises(InputError, match=message):
        _ = Options(**told).requirements


def test_compare_gives_several_constraints_to_every_method(folder, call, monkeypatch):
    pytest.importorskip("duckdb")

    class Compared:
        failures: ClassVar = {}

        def __init__(self, updates, *_):
            self.constraints = {name: update.constraints for name, update in updates.items()}
            compared.append(self)

        def changes_needed(self, levels):
            columns = pd.Index(["needs group", *levels], name="lowest selection rate")
            return pd.DataFrame([[False, 0.1]], index=["ControlledDebiaser"], columns=columns)

    compared = []
    monkeypatch.setattr("commod.cli.compare._compare", Compared)
    told = ("compare", "train.csv", *FIT[:6], "--method", "ControlledDebiaser")
    both = ("--constraint", "minimum rate >= 0.3", "--constraint", "p-rule >= 0.6")
    code, out, err = call(*told, *both)
    assert code == 0, err
    stated = MinimumRate(0.3) & DemographicParity(ratio=0.6)
    assert compared[0].constraints == {"ControlledDebiaser": stated}
    assert "Only updates that also keep demographic parity >= 0.6 are counted." in out + err


def test_a_condition_goes_into_the_patch(folder, call):
    pytest.importorskip("duckdb")
    table = pd.read_csv("train.csv")
    table.assign(town=table["town"].fillna("other")).head(900).to_csv("towns.csv", index=False)
    text = "demographic parity >= 0.7 within town min_rows=30"
    fit = ("debias", "towns.csv", *FIT, "--target-on", "fit_rows", "--constraint", text)
    code, out, err = call(*fit)
    assert code == 0, err
    assert "P-rule of label 1 within 'town'" in out
    asked = Patch.load("p.json").content.asked
    assert asked.constraints == "demographic_parity within 'town' min_rows=30"
    assert asked.target == 0.7

    code, _, err = call("debias", "towns.csv", *FIT, "--constraint", text.replace("town", "twon"))
    assert code == 2 and "Did you mean 'town'?" in err
    code, _, err = call("debias", "train.csv", *FIT, "--constraint", text)
    assert code == 2 and "missing value" in err


def test_check_and_audit_measure_all_constraints_of_a_patch(folder, call):
    pytest.importorskip("duckdb")
    table = pd.read_csv("train.csv")
    table.assign(town=table["town"].fillna("other")).head(900).to_csv("towns.csv", index=False)
    both = ("demographic parity >= 0.6 within town min_rows=30", "minimum rate >= 0.1")
    stated = [part for text in both for part in ("--constraint", text)]
    code, _, err = call("debias", "towns.csv", *FIT, "--target-on", "fit_rows", *stated)
    assert code == 0, err
    rows = ("--sensitive", "race", "--score", "f")
    code, out, err = call("check", "p.json", "towns.csv", *rows)
    assert code in (0, 3), err
    assert "within 'town'" in out and "lowest selection rate" in out
    pd.read_csv("towns.csv").drop(columns="town").to_csv("no_towns.csv", index=False)
    code, _, err = call("check", "p.json", "no_towns.csv", *rows)
    assert code == 2 and "town" in err

    decided = pd.read_csv("towns.csv")
    decided.assign(old=decided["f"] > 0.5, new=decided["f"] > 0.4).to_csv("d.csv", index=False)
    columns = ("--before", "old", "--after", "new", "--sensitive", "race")
    for counting in ((), ("--engine", "duckdb")):
        told = ("audit", "d.csv", *columns, *counting, *stated[:2])
        code, out, err = call(*told, "--constraint", "minimum rate >= 0.99")
        assert code == 1, err
        assert "is not kept" in out


def test_debias_keeps_people_of_unknown_groups_on_request(folder, call):
    pytest.importorskip("duckdb")
    table = pd.read_csv("train.csv").head(900)
    table.loc[::3, "race"] = None
    table.to_csv("partly.csv", index=False)
    told = ("debias", "partly.csv", *FIT, "--target-on", "fit_rows", "--at-least", "0.7")
    code, _, err = call(*told)
    assert code == 2 and "--unknown-groups ignore" in err
    studies = ("--report", "partly.html", "--refits", "2", "--group-names", "black=B")
    code, out, err = call(*told, "--unknown-groups", "ignore", *studies)
    assert code == 0, err
    assert "For 300 rows, the group is not known" in out
    assert "Fairness counts only the 600 people with a known group" in out
    assert (
        "counts only the 600 rows with a known group"
        in Patch.load("p.json").content.reached.in_words
    )
