"""The demo: gains near the threshold, a target for new people, ProPublica's rate beside it."""

from __future__ import annotations

import json
from functools import partial
from types import SimpleNamespace

import pytest

import commod
from commod.cli import _demo_text
from commod.cli import demo as command
from commod.datasets import load_compas


def parameters(constraints="demographic_parity", **stated):
    told = {"target": None, "direction": None} | stated
    found = command._method_parameters("ControlledDebiaser", constraints, told, {})
    return {"constraints": constraints, **found}


def test_the_target_is_the_one_for_new_people():
    assert parameters()["target"] == command.TARGET == 0.8
    assert parameters(target=0.7)["target"] == 0.7
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


def test_the_demo_says_what_was_asked_expected_and_measured_in_one_line(demo):
    out, folder = demo
    audit = json.loads((folder / "audit.json").read_text())
    assert audit["request"]["target"] == command.TARGET
    expected, measured = audit["expected"]["fairness"], audit["fairness"][0]["after"]["value"]
    (line,) = (line for line in out.splitlines() if line.startswith("P-rule of “low risk”: asked"))
    assert f"asked at least 0.8, expected {expected:.3f} on new people" in line
    assert f"measured {measured:.3f} on {audit['n']:,} held-out people" in line
    assert expected >= command.TARGET


def test_the_demo_gives_low_risk_near_the_threshold(demo):
    out, folder = demo
    audit = json.loads((folder / "audit.json").read_text())
    assert audit["changes"]["n_losses"] == 0 < audit["changes"]["n_gains"]
    assert "called high risk, of those not arrested again" in out
    assert (folder / "report.html").exists()


@pytest.mark.slow
def test_the_demo_takes_other_constraints_targets_and_directions(tmp_path, call, monkeypatch):
    people = load_compas()
    few = people.data.sample(1500, random_state=0).index
    people.update(data=people.data.loc[few], target=people.target[few], race=people.race[few])
    monkeypatch.setattr("commod.datasets.load_compas", lambda: people)
    quick = partial(commod.frontier, targets=[0.1, 0.2])
    monkeypatch.setattr("commod.frontier", quick)
    monkeypatch.setattr(command, "N_REFITS", 2)
    told = ("--constraints", "false_positive_rate_parity", "--direction", "any")
    code, out, err = call("demo", *told, "--output", tmp_path)
    assert code == 0, err
    assert "“high risk” among those who" in out or "of “high risk”" in out
    assert "asked at most 0.1, expected " in " ".join(out.split())


def test_parameters_of_the_other_method_are_refused(tmp_path, call):
    code, _, err = call("demo", "--method", "COMMOD", "--target", "0.8", "--output", tmp_path)
    assert code == 2 and "--target belongs to --method ControlledDebiaser" in err
