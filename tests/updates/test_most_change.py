"""An update that changes more than half of all decisions says so first and is no success."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, ScoreColumn, audit, explain, report
from commod.cli import main
from commod.datasets import make_biased
from commod.exceptions import TargetWarning
from commod.rivals import RejectOption
from quick_updates import quick_control

pytest.importorskip("duckdb")


def table(n=400):
    """Return people of whom most must lose: a small group has few positive decisions."""
    rng = np.random.default_rng(0)
    group = np.arange(n) % 5 == 0
    is_positive = rng.random(n) < np.where(group, 0.2, 0.95)
    score = np.where(is_positive, 0.55, 0.05) + 0.4 * rng.random(n)
    hints = {f"hint {i}": group + rng.normal(0, 0.6, n) for i in range(6)}
    return pd.DataFrame({**hints, "score": score}), group


ASKED = {"target": 0.95, "direction": "losses_only"}


@pytest.fixture(scope="module")
def fitted():
    X, group = table()
    update = quick_control(ScoreColumn("score"), **ASKED)
    with pytest.warns(TargetWarning, match="^More than half of all decisions change"):
        update.fit(X, sensitive_features=group)
    return update, X, group


def test_the_status_says_so_first_and_claims_no_success(fitted):
    update, _, _ = fitted
    assert update.change_rate_ > 0.5
    assert update.fairness_ >= 0.95 and not update.reached_
    assert update.status_.startswith("More than half of all decisions change")
    assert "is reached" not in update.status_


@pytest.mark.parametrize("target_on", ["new_rows", "fit_rows"])
def test_decisions_that_become_alike_are_no_success(target_on):
    """All people whom the update can gain for live in one town, so they change together."""
    group = np.repeat([0, 1], 300)
    is_negative = np.arange(600) % 300 < np.where(group, 20, 100)
    town = np.where(is_negative, "north", "south")
    X = pd.DataFrame({"town": town, "score": np.where(is_negative, 0.2, 0.8)})
    update = quick_control(ScoreColumn("score"), target=0.9, target_on=target_on)
    with pytest.warns(TargetWarning, match="^This is not a success"):
        update.fit(X, sensitive_features=group)
    assert update.change_rate_ == 0.2 and update.fairness_ == 1 and not update.reached_
    assert "is reached" not in update.status_


def test_the_audit_and_the_report_say_so_first(fitted, tmp_path):
    update, X, group = fitted
    why = explain(update, X)
    result = audit(why.y_before, why.y_after, sensitive_features=group, explanation=why)
    assert result.answer[0].startswith("More than half of all decisions change")
    assert not any("is reached" in sentence for sentence in result.answer)
    assert {c.code: c.state for c in result.checks}["CM205"] == "failed"
    report(result, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "met only by changing more than half of all decisions" in page
    assert "(reached on these rows" not in page
    target = next(c for c in result.checks if c.code == "CM101")
    assert "CM205" in target.sentence
    assert "More than half of all decisions change" in page


def test_an_update_that_changes_fewer_passes_the_check():
    before = np.array([0, 1] * 50)
    after = before.copy()
    after[:50] = 1 - after[:50]  # exactly half
    group = np.arange(100) // 2 % 2
    result = audit(before, after, sensitive_features=group)
    assert {c.code: c.state for c in result.checks}["CM205"] == "passed"
    assert not result.answer[0].startswith("More than half")


def test_a_rival_says_so_first(fitted):
    _, X, group = fitted
    rival = RejectOption(ScoreColumn("score"), strength=0.5)
    rival.fit(X, sensitive_features=group)
    if rival.change_rate_ > 0.5:
        assert rival.status_.startswith("More than half")
    else:
        assert "More than half" not in rival.status_


def test_the_command_line_ends_with_code_1(fitted, tmp_path, capsys, monkeypatch):
    _, X, group = fitted
    X.assign(group=np.where(group == 1, "a", "b")).to_csv(tmp_path / "t.csv", index=False)
    arguments = [
        *("debias", str(tmp_path / "t.csv"), "--score-column", "score", "--sensitive", "group"),
        *("--at-least", "0.95", "--direction", "losses_only"),
        *("--target-on", "fit_rows"),
        *("--out", str(tmp_path / "p.json")),
    ]
    with pytest.raises(SystemExit) as ended:
        monkeypatch.setattr("sys.argv", ["commod", *arguments, "--json"])
        main()
    assert ended.value.code == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["constraint_met"] is False
    assert printed["status"].startswith("More than half of all decisions change")


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.filterwarnings("ignore:Column .* nearly determines:commod.exceptions.DataWarning")
def test_chance_alone_is_no_reason_to_reject_nearly_everybody(seed):
    """As counted, few changes close the gap. New samples of 700 people have a gap by chance."""
    old, rows = (make_biased(n, bias=2.0, random_state=k) for n, k in ((2000, 99), (700, seed)))
    model = LogisticRegression().fit(old.data, old.target)
    asked = {"constraints": "false_positive_rate_parity", "target": 0.03}
    update = ControlledDebiaser(model, **asked)
    with pytest.warns(TargetWarning):
        update.fit(rows.data, rows.target, sensitive_features=rows.sensitive_features)
    assert not update.reached_ and 0 < update.change_rate_ < 0.2
    assert update.predict(rows.data).mean() > 0.4
