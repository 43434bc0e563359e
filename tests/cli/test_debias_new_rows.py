"""`commod debias` states a target for new people: what is expected, and what is measured."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("duckdb")

TOLD = ("--label", "y", "--sensitive", "race", "--score-column", "f", "--at-least", "0.8")
FIT = (*TOLD, "--borderline", "0", "--max-lines", "0", "--force", "--json")


def test_expected_figures_are_given_where_the_target_is_for_new_people(folder, call):
    told = ("--target-on", "new_rows", "--test-size", "0.4")
    code, out, err = call("debias", "train.csv", *FIT, *told)
    result = json.loads(out)
    assert code in (0, 1), err  # about half of all held-out rows miss an expected target
    expected = result["expected"]
    assert result["audit"]["expected"] == expected
    assert "Expected on new people: " in result["status"]
    assert expected["fairness"] >= 0.8 and 0 < expected["change_rate"] < 1
    assert 0.5 < expected["accuracy"] < 1
    assert 0 < expected["low"] < expected["fairness"] < expected["high"] < 1


def test_a_wrong_choice_names_its_option(folder, call):
    code, _, err = call("debias", "train.csv", *TOLD, "--target-on", "all_rows")
    assert code == 2 and "--target-on" in err and "new_rows" in err and err.count("\n") == 1
