"""The demo: gains near the threshold, the goal for unseen people, ProPublica's rate beside it."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pytest

from commod._record import Request
from commod.cli import _demo_text
from commod.cli import demo as command


def parameters(constraints="demographic_parity", **stated):
    told = {"target": None, "direction": None} | stated
    found = command._method_parameters("ControlledDebiaser", constraints, told, {})
    return {"constraints": constraints, **found}


def test_the_reserve_on_the_fit_rows_is_only_the_default():
    assert parameters()["target"] == command.FIT_TARGET
    assert command._goal(Request(target=command.FIT_TARGET)).target == command.GOAL
    assert command._goal(Request(target=0.7)).target == 0.7
    gap = Request(constraints="equalized_odds", target=command.FIT_TARGET)
    assert command._goal(gap) is gap
    assert "target" not in parameters("false_positive_rate_parity"), "the library has a default"


def test_nobody_loses_unless_the_user_allows_it():
    assert parameters()["direction"] == "gains_only"
    assert parameters(direction="any")["direction"] == "any"


@pytest.mark.parametrize(("pos_label", "tpr", "fpr"), [(1, 0.7, 0.2), (0, 0.8, 0.3)])
def test_the_table_shows_the_same_rates_whichever_label_counts(pos_label, tpr, fpr):
    rates = {"true_positive": tpr, "false_positive": fpr}
    group = SimpleNamespace(
        **{
            f"{k}_{w}": SimpleNamespace(value=v)
            for k, v in rates.items()
            for w in ("before", "after")
        }
    )
    shown = [_demo_text._high_risk(group, label, pos_label)[0] for label in (0, 1)]
    assert shown == ["20.0%", "70.0%"]


def test_the_demo_gives_low_risk_near_the_threshold_and_says_whether_the_goal_holds(demo):
    out, folder = " ".join(demo[0].split()), demo[1]
    audit = json.loads((folder / "audit.json").read_text())
    value = audit["fairness"][0]["after"]["value"]
    verdict = "is reached" if value >= command.GOAL else "is missed"
    assert f"P-rule of “low risk” ≥ {command.GOAL:g} {verdict}" in out
    assert f"asked for {command.FIT_TARGET:g} on the fit rows" in out
    assert audit["request"]["target"] == command.GOAL
    assert audit["changes"]["n_losses"] == 0 < audit["changes"]["n_gains"]
    assert re.search("called high risk, of those not arrested again", out)
    assert (folder / "report.html").exists()


@pytest.mark.slow
def test_the_demo_takes_other_constraints_targets_and_directions(tmp_path, call, monkeypatch):
    monkeypatch.setattr(command, "N_REFITS", 2)
    told = ("--constraints", "false_positive_rate_parity", "--direction", "any")
    code, out, err = call("demo", *told, "--output", tmp_path)
    assert code == 0, err
    assert "“high risk” among those who" in out or "of “high risk”" in out
    assert "≤ 0.1 is " in out and "asked for" not in out


def test_parameters_of_the_other_method_are_refused(tmp_path, call):
    code, _, err = call("demo", "--method", "COMMOD", "--target", "0.8", "--output", tmp_path)
    assert code == 2 and "--target belongs to --method ControlledDebiaser" in err
