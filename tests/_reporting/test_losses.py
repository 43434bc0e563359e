"""What an update costs is read first: rates before and after, and errors beside an alternative."""

import ast
import json
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import binomtest

from commod import (
    Audit,
    ControlledDebiaser,
    Request,
    ScoreColumn,
    audit,
    audit_frame,
    explain,
    report,
)
from commod._record.costs import CountedUpdate
from commod.exceptions import InputError
from tables_of_cases import every_line


def test_a_report_begins_with_the_rate_before_and_after_of_all_people_and_by_group(tmp_path):
    rng = np.random.default_rng(5)
    group = np.repeat(["north", "south", "west"], [90, 140, 60])
    old = np.where(rng.random(290) < 0.4, "late", "on time")
    new = np.where(rng.random(290) < 0.2, "late", old)
    table = pd.DataFrame({"old": old, "new": new, "group": group})
    labels = {"pos_label": "late", "favorable_label": "on time"}
    columns = {"before": "old", "after": "new", "sensitive_features": "group"}
    result = audit_frame(table, **columns, **labels)
    for made in (pl.from_pandas(table), pa.table(table)):
        assert audit_frame(made, **columns, **labels).answer == result.answer
    shares = (table[["old", "new"]] == "late").groupby(table["group"]).mean()
    parts = [f"{name} {row.old:.1%} → {row.new:.1%}" for name, row in shares.iterrows()]
    rates = (old == "late").mean(), (new == "late").mean()
    sentence = (
        f"The rate of label late goes from {rates[0]:.1%} to {rates[1]:.1%} ({', '.join(parts)})."
    )
    assert sentence in result.answer
    told = json.loads(report(result, tmp_path / "r.json").read_text("utf-8"))
    changes = told["changes"] if "changes" in told else told["audit"]["changes"]
    assert [changes[f"selected_{when}"]["value"] for when in ("before", "after")] == list(rates)
    page = report(result, tmp_path / "r.html").read_text("utf-8").split('id="who"')[0]
    page = unescape(re.sub("<[^>]*>", "", page))
    assert sentence in page and "Rate of label late: " in page
    text = report(result, tmp_path / "r.md").read_text("utf-8").split("## Who changes")[0]
    assert f"{rates[0]:.1%} to {rates[1]:.1%}" in text


# -- alternatives -------------------------------------------------------------------------------


def policy(n, seed, share):
    """Return applicants of a lender, who default if their label is 1; `share` of them are young."""
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < share, "young", "old")
    is_old = group == "old"
    X = pd.DataFrame(
        {
            "income": rng.normal(size=n) + 0.6 * is_old,
            "debt": rng.normal(size=n) - 0.3 * is_old,
            "tenure": rng.gamma(2, 2, n) + 2 * is_old,
        }
    )
    chance = 1 / (1 + np.exp(2.2 + 0.9 * X["income"] - 0.8 * X["debt"]))
    return X.assign(score=chance), (rng.random(n) < chance).astype(int), group


ASKED = {"threshold": 0.22, "favorable_label": 0, "target": 0.95}


def lender(seed=0, share=0.6, **parameters):
    X, y, group = policy(2000, seed, share)
    update = ControlledDebiaser(ScoreColumn("score"), **{**ASKED, **parameters})
    return update.fit(X, y, sensitive_features=group)


@pytest.fixture(scope="module")
def wasteful():
    """Return an update that takes approvals from people who repay."""
    return lender(borderline=0.0)


def audited(update, seed=100, **more):
    X, y, group = policy(2000, seed, 0.6)
    before = (X["score"] > 0.22).astype(int)
    given = {"sensitive_features": group, "y_true": y, "X": X, **more}
    return audit(before, update.predict(X), **given)


def check_of(result, code="CM207"):
    return next(check for check in result.checks if check.code == code)


@pytest.mark.parametrize("way", ["request", "explanation"])
def test_an_update_that_introduces_needless_errors_cannot_be_signed(wasteful, way, tmp_path):
    X, *_ = policy(2000, 100, 0.6)
    known = wasteful.request() if way == "request" else explain(wasteful, X)
    result = audited(wasteful, **{way: known})
    own, *others = wasteful.search_.alternatives
    best = max(others, key=lambda one: one.n_errors_fixed - one.n_errors_introduced)
    check = check_of(result)
    assert check.blocks_signing and "CM207" in result.verdict_sentences[0]
    page = report(result, tmp_path / "report.html").read_text("utf-8").split('id="who"')[0]
    for text in (
        f"{best.parameter} does better: {best.n_changes:,} changes",
        f"{best.n_errors_fixed:,} errors fixed and {best.n_errors_introduced:,} introduced",
        f"This update has {own.n_changes:,} changes",
    ):
        assert text in check.sentence
        assert text in unescape(re.sub("<[^>]*>", "", page))
    assert Audit.from_json(result.to_json()) == result


@pytest.mark.parametrize(("share", "parameter"), [(0.6, "direction"), (0.7, "borderline")])
def test_the_parameter_of_an_alternative_gets_it(share, parameter):
    own, one = lender(borderline=0.0, share=share).search_.alternatives
    assert own.n_errors_introduced > own.n_errors_fixed and one.n_changes <= 1.25 * own.n_changes
    name, value = one.parameter.split("=")
    update = lender(**{"borderline": 0.0, name: ast.literal_eval(value)}, share=share)
    assert update.search_.alternatives[0] == replace(one, parameter="") and name == parameter
    assert 0.95 <= update.expected_.fairness == one.fairness
    assert (one.n_losses == 0) == (update.search_.direction == "gains_only")


def test_alternatives_are_those_of_the_same_target_and_points(wasteful):
    request = {"target": 0.8}
    assert audited(wasteful, request=request).request.alternatives is None
    X, *_ = policy(2000, 100, 0.6)
    other = audited(wasteful, request=request, explanation=explain(wasteful, X))
    assert other.request.alternatives is None
    update = lender(max_changes=0.05, target=None)
    assert update.search_.alternatives is None and update.request().alternatives is None


def test_an_audit_of_arrays_alone_says_that_alternatives_were_not_evaluated(wasteful):
    check = check_of(audited(wasteful, favorable_label=0))
    assert "not evaluated" in check.sentence
    assert (check.state, check.severity) == ("not enough evidence", "needs a reason")
    truth = [1, 1, 1, 0] * 100
    turned = audit([0, 1] * 200, [1] * 400, sensitive_features=["a", "b"] * 200, y_true=truth)
    assert check_of(turned).state == "passed" and "not evaluated" in check_of(turned).sentence


@every_line(
    "fixed, introduced, is_known",
    [(0, 5, True), (0, 6, True), (0, 6, False), (7, 30, True), (30, 7, True)],
)
def test_the_check_fails_beyond_chance_where_an_alternative_is_better(fixed, introduced, is_known):
    n = fixed + introduced
    truth = np.r_[np.ones(fixed, int), np.zeros(introduced, int), [0, 1] * 60, 1]
    after = np.r_[np.ones(n, int), [0, 1] * 60, 0]
    before = np.r_[np.zeros(n, int), [0, 1] * 60, 0]
    counted = [CountedUpdate("", 9, 9, 0, 1, 8, 0.8)]
    counted += [CountedUpdate("borderline=0.3", 9, 9, 0, 6, 3, 0.8)] if is_known else []
    request = Request(target=0.01, alternatives=tuple(counted))
    groups = np.arange(len(truth)) % 2
    result = audit(before, after, sensitive_features=groups, y_true=truth, request=request)
    is_clear = introduced > fixed and binomtest(introduced, n).pvalue < 0.05
    assert (check_of(result).state == "failed") == (is_clear and is_known)


# -- money --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "favorable"), [((100, 500), 1), (np.array([0.5, 7]), 0)])
def test_errors_cost_what_a_right_and_a_wrong_acceptance_are_worth(value, favorable, tmp_path):
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.integers(0, 2, (300, 3)), columns=["old", "new", "y"])
    table["g"] = np.arange(300) % 3
    given = {"favorable_label": favorable, "value": value}
    rows = audit(
        table["old"], table["new"], sensitive_features=table["g"], y_true=table["y"], **given
    )
    columns = {"before": "old", "after": "new", "sensitive_features": "g", "y_true": "y"}
    for frame in (table, pl.from_pandas(table), pa.table(table)):
        assert audit_frame(frame, **columns, **given).losses == rows.losses
    for when, decided in (("before", table["old"]), ("after", table["new"])):
        is_good, accepted = table["y"] == favorable, decided == favorable
        missed, wrong = (is_good & ~accepted).sum(), (~is_good & accepted).sum()
        assert getattr(rows.losses, when) == value[0] * missed + value[1] * wrong
        assert getattr(rows.losses, f"n_wrong_{when}") == wrong
    sentence = next(text for text in rows.answer if "errors cost" in text)
    assert f"{rows.losses.before:,.10g} before the update" in sentence
    first = report(rows, tmp_path / "r.html").read_text("utf-8").split('id="who"')[0]
    assert "What errors cost: " in first and sentence in unescape(re.sub("<[^>]*>", "", first))
    assert sentence in report(rows, tmp_path / "r.md").read_text("utf-8").replace("\\", "")
    assert Audit.from_json(rows.to_json()) == rows


HOSTILE = ["12", 5, (1,), (1, 2, 3), (1, "2"), (-1, 2), (float("nan"), 1), (1, float("inf"))]


@every_line("value", [*HOSTILE, (True, 1), (None, 1), {1: 2, 3: 4}, (1j, 1), 10**400])
def test_hostile_values_are_refused(value):
    given = {"sensitive_features": ["a", "b"] * 50, "y_true": [0, 1] * 50, "value": value}
    with pytest.raises(InputError, match=r"value=.* must be two numbers from 0 to 1e\+12"):
        audit([0, 1] * 50, [1, 0] * 50, **given)


def test_values_need_true_labels():
    with pytest.raises(InputError, match="Pass y_true"):
        audit([0, 1] * 50, [1, 0] * 50, sensitive_features=["a", "b"] * 50, value=(1, 2))
