"""What the command line says to somebody who signs: `audit --strict`, tied files, `verify`."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest

from commod import ControlledDebiaser, ScoreColumn
from commod.cli._options import Options
from commod.cli._printing import Printer
from commod.updates._interface import listening, tell

pytest.importorskip("duckdb")


@pytest.fixture(autouse=True)
def working_folder(monkeypatch, tmp_path):
    """Let commands read and write in the folder of the test."""
    monkeypatch.chdir(tmp_path)


def decided(path, *, fairer):
    """Write decisions of two groups: the later ones are fairer, or less fair, than the earlier."""
    few, many = np.tile([0, 0, 0, 1], 100), np.tile([0, 0, 1, 1], 100)
    old, new = (few, many) if fairer else (many, few)
    group = np.repeat(["a", "b"], 400)
    table = {"old": np.r_[many, old], "new": np.r_[many, new], "group": group}
    pd.DataFrame(table).to_csv(path, index=False)


AUDIT = ("--before", "old", "--after", "new", "--sensitive", "group")


def test_a_strict_audit_fails_where_a_check_blocks_signing(call, tmp_path):
    decided(tmp_path / "better.csv", fairer=True)
    decided(tmp_path / "worse.csv", fairer=False)
    code, out, _ = call("audit", "better.csv", *AUDIT, "--strict")
    assert code == 0 and "Nothing blocks signing." in out
    code, out, _ = call("audit", "worse.csv", *AUDIT)
    assert code == 0 and "1 check blocks signing: CM103." in out
    code, out, _ = call("audit", "worse.csv", *AUDIT, "--strict", "--json")
    assert code == 1 and json.loads(out)["blocks_signing"] == ["CM103"]


# -- debias ties its files, verify checks them --------------------------------------------------


def scored(n=600, seed=0):
    random = np.random.default_rng(seed)
    race = random.choice(["black", "white"], n, p=[0.4, 0.6])
    income = random.normal(size=n) + 0.7 * (race == "white")
    f = 1 / (1 + np.exp(-1.2 * income))
    y = (random.random(n) < f).astype(int)
    return pd.DataFrame({"income": income.round(3), "f": f.round(4), "y": y, "race": race})


DEBIAS = ("--label", "y", "--sensitive", "race", "--score-column", "f", "--at-least", "0.8")


def assert_pair(call, report):
    """Assert that the patch and the report, which were written together, agree."""
    patch = report.partition(".")[0] + ".json"
    code, out, _ = call("verify", patch, report)
    assert code == 0 and "agree" in out
    code, out, _ = call("verify", patch, report, "--json")
    result = json.loads(out)
    assert code == 0 and result["agrees"] is True and result["differences"] == []
    code, _, err = call("verify", patch, report, "--sha256", "0" * 64)
    assert code == 2 and "signed off" in err


def test_verify_accepts_pairs_and_names_what_differs_or_is_no_pair(call, tmp_path):
    for seed, report in ((0, "one.html"), (1, "two.md")):
        scored(seed=seed).to_csv(tmp_path / "train.csv", index=False)
        files = ("--out", f"{report[:3]}.json", "--report", report)
        quickest = ("--target-on", "fit_rows", "--borderline", "0", "--test-size", "0.3")
        code, _, err = call("debias", "train.csv", *DEBIAS, *files, *quickest)
        assert code in (0, 1) and not err
        assert_pair(call, report)
    fields = [line.split(":")[0] for line in call("verify", "one.json", "two.md")[1].splitlines()]
    assert {"patch_sha256", "audit_digest", "SHA-256 of the report file"} <= set(fields)
    code, out, _ = call("verify", "two.json", "one.html")
    assert code == 1 and "patch_sha256" in out and "scores_digest" in out
    assert out.splitlines()[0].endswith("These fields differ:")  # one field per line
    assert any(line.startswith("scores_digest: ") for line in out.splitlines())
    code, out, _ = call("verify", "two.json", "one.html", "--json")
    result = json.loads(out)
    assert code == 1 and not result["agrees"]
    assert {"field", "patch", "report"} == set(result["differences"][0])
    for arguments in (("one.html", "one.html"), ("one.json", "one.json"), ("one.json", "no.html")):
        code, _, err = call("verify", *arguments)
        assert code == 2 and err.startswith("commod: error: ") and err.count("\n") == 1


def test_a_note_is_printed_once_though_the_trade_off_fits_again(call, tmp_path):
    table = scored()
    table.loc[:24, "race"] = "seldom"
    table.loc[25:27, "race"] = "very seldom"
    table.to_csv(tmp_path / "train.csv", index=False)
    files = ("--report", "report.md", "--ledger", "ledger.csv")
    quickest = ("--target-on", "fit_rows", "--borderline", "0")
    _, out, _ = call("debias", "train.csv", *DEBIAS, *files, *quickest, "--trade-off")
    assert out.count("Nothing is promised about these groups.") == 1
    assert "seldom (25 rows, rate" in out
    row = next(line for line in out.splitlines() if line.startswith("│ very seldom"))
    assert row.count("not shown") == 4
    n_changes = out.split(" of 597 people")[0].split()[-1]
    n_lines = len(pd.read_csv("ledger.csv"))
    assert (f"Ledger of {n_lines} changes:" in out) == (n_lines == int(n_changes))


def test_rows_that_tested_a_promise_are_not_called_rows_of_the_fit(call, tmp_path):
    scored().to_csv(tmp_path / "train.csv", index=False)
    files = ("--out", "tested.json", "--report", "tested.report.json")
    _, out, _ = call("debias", "train.csv", *DEBIAS, "--confidence", "0.9", *files)
    assert_pair(call, "tested.report.json")
    assert "the update was fitted on" not in out
    assert "600 rows given to the fit, half of them to test the promise" in out


def test_a_command_shows_at_a_terminal_which_step_a_fit_is_at(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    shown, steps = Terminal(), []
    update = ControlledDebiaser(ScoreColumn("f"), target_on="fit_rows")
    rows = scored(300).drop(columns=["y"])
    with listening(steps.append):
        update.fit(rows.drop(columns=["race"]), sensitive_features=rows["race"])
    assert steps == ["searching points", "counting decisions", "measuring the update"]
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr", shown)
    with Printer(Options()).spinner("fitting"):
        tell(steps[1])
    assert "fitting: counting decisions" in shown.getvalue()


def test_the_command_gives_the_hints_that_python_gives(call, tmp_path):
    table = scored(400).assign(same=0.6, old=lambda t: t["y"])
    table.assign(new=(table["f"] > 0.5) * 1).to_csv(tmp_path / "t.csv", index=False)
    told = ("t.csv", "--label", "y", "--sensitive", "race")
    code, _, err = call("debias", *told, "--score-column", "same", "--at-least", "0.8")
    assert code == 2 and "every row the same score" in err and "Check that" in err
    gap = ("--constraint", "true_positive_rate_parity", "--at-most", "0.95")
    _, out, err = call("debias", *told, "--score-column", "f", "--features", "income", *gap)
    assert "0.95 looks like a ratio" in " ".join((out + err).split())
    _, out, err = call("audit", *told, "--before", "old", "--after", "new")
    assert "agrees with y_true in all 400 rows" in " ".join((out + err).split())
