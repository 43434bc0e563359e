"""An audit counts what one would count by hand, and says what it does not know."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from commod import (
    Audit,
    Request,
    ScoreColumn,
    audit,
    audit_frame,
    bounds,
    explain,
    metrics,
)
from commod._record.audit import StabilitySummary
from commod._reporting.audit.checks import CHECKS
from commod._reporting.audit.scores import RankedScores, area_loss
from commod.datasets import make_biased
from commod.exceptions import DataWarning, InputError
from commod.rivals import MinimalFlip
from quick_updates import quick_control
from tables_of_cases import every_line

GROUPS = np.array(["a"] * 6 + ["b"] * 4)
BEFORE = np.array([1, 1, 1, 0, 0, 0, 1, 0, 0, 0])
AFTER = np.array([1, 1, 1, 0, 0, 0, 1, 1, 0, 0])
TRUTH = np.array([1, 1, 0, 0, 0, 1, 1, 1, 0, 1])


def small(**options):
    return audit(
        options.pop("before", BEFORE),
        options.pop("after", AFTER),
        sensitive_features=options.pop("groups", GROUPS),
        min_group_size=options.pop("min_group_size", 1),
        **options,
    )


def random_rows(seed, n=400, n_groups=3):
    rng = np.random.default_rng(seed)
    group = rng.integers(n_groups, size=n)
    label = rng.random(n) < 0.35 + 0.1 * group
    scores = np.clip(0.3 * label + 0.1 * group + rng.normal(0.3, 0.2, n), 0, 1).round(2)
    edited = np.clip(scores + rng.normal(0, 0.1, n), 0, 1).round(2)
    return group, label.astype(int), scores, edited


# -- by hand --------------------------------------------------------------------------------------


def test_ten_people_counted_by_hand():
    result = small(y_true=TRUTH, request={"target": 0.8})
    assert (result.n, result.changes.n_changes, result.changes.n_gains) == (10, 1, 1)
    p_rule = result.fairness[0]
    assert p_rule.before.value == 0.5  # 1/4 over 3/6
    assert p_rule.after.value == 1.0  # 2/4 over 3/6
    a, b = result.groups
    assert (a.name, a.n, a.n_gains, a.n_losses, a.selected_after.value) == ("a", 6, 0, 0, 0.5)
    assert (b.n_gains, b.selected_before.value, b.selected_after.value) == (1, 0.25, 0.5)
    assert (b.true_positive_before.value, b.true_positive_after.value) == (1 / 3, 2 / 3)
    assert b.false_positive_after.value == 0
    assert (result.quality.accuracy_before.value, result.quality.accuracy_after.value) == (0.6, 0.7)
    assert (result.quality.n_errors_fixed, result.quality.n_errors_introduced) == (1, 0)
    assert (result.limit.n_fewest, result.limit.times, result.limit.n_gains_only) == (1, 1.0, 1)


def test_a_label_that_is_bad_for_people_turns_gains_into_losses():
    names = {0: "low risk", 1: "high risk"}
    result = small(pos_label=1, favorable_label=0, label_names=names)
    assert (result.changes.n_gains, result.changes.n_losses) == (0, 1)
    assert (result.groups[1].favorable_before.value, result.groups[1].selected_before.value) == (
        0.75,
        0.25,
    )
    assert "“low risk”" in result.answer[0]
    assert result.notice.startswith("1 person loses the favourable outcome, 0 gain it.")
    assert "Most of the changes are losses. 1 person loses" in result._repr_html_()
    assert small().notice is None
    for label in (0, 1):  # by default, scores predict the larger label, whichever counts
        assert small(pos_label=label).request.score_is_for == 1


def test_most_changes_being_losses_comes_with_what_gains_only_would_take():
    group, _, scores, _ = random_rows(0)
    before = (scores > 0.5).astype(int)
    best = np.flatnonzero(before & (group == 2))
    after = before.copy()
    after[best[: len(best) // 2]] = 0
    result = audit(before, after, sensitive_features=group)
    reached = metrics.p_rule(None, after, sensitive_features=group)
    gains = bounds.minimal_changes(
        before, sensitive_features=group, target=reached, direction="gains_only"
    )
    assert result.limit.n_gains_only == gains.n_changes
    needed = f"{gains.n_changes:,} changes ({gains.n_changes / len(group):.1%} of all people)"
    assert f"gains alone need at least {needed} for the same fairness." in result.notice


# -- against other ways of computing it -----------------------------------------------------------


@settings(max_examples=4)  # each of them is an audit with everything
@given(st.integers(0, 10_000), st.booleans())
def test_figures_are_those_of_the_metrics_and_the_bounds(seed, favorable_is_one):
    group, label, scores, edited = random_rows(seed)
    before, after = (scores > 0.5).astype(int), (edited > 0.5).astype(int)
    favorable = int(favorable_is_one)
    result = audit(
        before,
        after,
        sensitive_features=group,
        y_true=label,
        scores_before=scores,
        scores_after=edited,
        pos_label=1,
        favorable_label=favorable,
    )
    for fairness in result.fairness:
        for decisions, value in ((before, fairness.before), (after, fairness.after)):
            expected = metrics.fairness_value(
                fairness.constraints, label, decisions, sensitive_features=group
            )
            assert value.value == expected
            assert value.low <= expected <= value.high
    counts = metrics.count_changes(
        before, after, favorable_label=favorable, sensitive_features=group
    )
    assert (result.changes.n_gains, result.changes.n_losses) == (counts.n_gains, counts.n_losses)
    rates = metrics.group_rates(label, after, sensitive_features=group)
    for line, (name, (n, n_gains, n_losses)) in zip(
        result.groups, counts.by_group.items(), strict=True
    ):
        assert (line.name, line.n) == (str(name), n)
        assert (line.n_gains, line.n_losses) == (n_gains, n_losses)
        assert line.selected_after.value == pytest.approx(rates[name]["selection_rate"])
        assert line.true_positive_after.value == pytest.approx(rates[name]["tpr"])
        assert line.false_positive_after.value == pytest.approx(rates[name]["fpr"])
        assert line.mean_score_after == pytest.approx(edited[group == name].mean())
    limit = bounds.minimal_changes(
        before, sensitive_features=group, target=result.fairness[0].after.value
    )
    assert result.limit.n_fewest == limit.n_changes
    only_gains = bounds.minimal_changes(
        before,
        sensitive_features=group,
        target=result.fairness[0].after.value,
        direction="gains_only",
        favorable_label=favorable,
    )
    assert result.limit.n_gains_only == only_gains.n_changes
    assert result.changes.n_changes >= result.limit.n_fewest
    assert result.quality.auc_after.value == pytest.approx(roc_auc_score(label, edited))
    errors = [b.n * abs(b.observed.value - b.mean_score) for b in result.calibration.after]
    assert result.calibration.error_after == pytest.approx(sum(errors) / 400)
    assert sum(b.n for b in result.calibration.after) == 400
    assert sum(b.n * b.mean_score for b in result.calibration.after) == pytest.approx(edited.sum())
    assert sum(b.n * b.observed.value for b in result.calibration.after) == pytest.approx(
        sum(label)
    )
    lowest = result.calibration.after[0]
    assert lowest.observed.value == pytest.approx(label[np.argsort(edited)][: lowest.n].mean())


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000))
def test_the_interval_of_an_area_is_delongs(seed):
    rng = np.random.default_rng(seed)
    label = np.arange(40) < rng.integers(5, 35)
    scores = rng.integers(0, 12, 40) + 3.0 * label
    result = RankedScores.of(scores).area(label, 0.95)
    above = (scores[label][:, None] > scores[~label]) + 0.5 * (
        scores[label][:, None] == scores[~label]
    )
    assert result.value == pytest.approx(above.mean())
    variance = above.mean(axis=1).var(ddof=1) / label.sum()
    variance += above.mean(axis=0).var(ddof=1) / (~label).sum()
    if 0 < result.value < 1:
        reach = 1.959963984540054 * math.sqrt(variance) / (result.value * (1 - result.value))
        middle = math.log(result.value / (1 - result.value))
        assert result.low == pytest.approx(1 / (1 + math.exp(reach - middle)))
        assert result.high == pytest.approx(1 / (1 + math.exp(-middle - reach)))


def test_a_perfect_area_is_not_claimed_with_certainty():
    result = RankedScores.of(np.arange(20.0)).area(np.arange(20) >= 10, 0.95)
    assert result.value == result.high == 1
    assert result.low < 0.75


def test_the_interval_of_an_area_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    truth = 0.5 * (1 + math.erf(1 / 2))  # two normal distributions one deviation apart
    hits = 0
    for _ in range(400):
        label = np.arange(120) < 50
        area = RankedScores.of(rng.normal(1.0 * label)).area(label, 0.9)
        hits += area.low <= truth <= area.high
    assert 0.85 <= hits / 400 <= 0.95


def test_mcnemars_test_is_the_exact_one():
    before = np.array([1] * 9 + [0] * 3 + [1] * 30)
    after = 1 - before
    after[12:] = before[12:]
    truth = np.array([0] * 9 + [0] * 3 + [1] * 30)
    result = audit(
        before, after, sensitive_features=["a", "b"] * 21, y_true=truth, min_group_size=1
    )
    assert (result.quality.n_errors_fixed, result.quality.n_errors_introduced) == (9, 3)
    both = 2 * sum(math.comb(12, k) for k in range(4)) / 2**12
    assert result.quality.p_value == pytest.approx(both)


# -- JSON -----------------------------------------------------------------------------------------


def test_json_goes_both_ways_and_is_strict():
    result = small(y_true=TRUTH, X=np.arange(20.0).reshape(10, 2), request={"target": 0.8})
    text = result.to_json()
    assert Audit.from_json(text) == result
    assert json.loads(text)["schema"] == "commod.audit/2"
    assert "NaN" not in text


@every_line(
    "edit, message",
    [
        (lambda d: d | {"schema": "commod.audit/99"}, "schema 'commod.audit/99'"),
        (lambda d: {k: v for k, v in d.items() if k != "limit"}, "lacks field 'limit'"),
        (lambda d: d | {"more": 1}, "unknown field 'more'"),
        (lambda d: d | {"n": "ten"}, "Audit.n must be int"),
        (lambda d: d | {"checks": [{"code": 1}]}, r"Audit.checks\[0\] lacks field"),
        (lambda d: [d], "not an audit"),
    ],
)
def test_a_file_that_is_no_audit_is_refused(edit, message):
    with pytest.raises(InputError, match=message):
        Audit.from_dict(edit(small().to_dict()))


def test_text_that_is_no_json_is_refused():
    for text in ("{", "", "[1, NaN]", small().to_json().replace('"level": 0.95', '"level": NaN')):
        with pytest.raises(InputError):
            Audit.from_json(text)


def test_an_audit_cannot_be_altered():
    with pytest.raises(dataclasses.FrozenInstanceError):
        small().n = 11


# -- the ledger -----------------------------------------------------------------------------------


def test_the_ledger_has_one_line_per_changed_decision(tmp_path):
    import hashlib

    X = pd.DataFrame({"age": range(10)}, index=[f"id{i}" for i in range(10)])
    result = small(X=X, scores_before=BEFORE * 0.5, scores_after=AFTER * 0.5)
    frame = result.ledger.frame()
    assert frame.row.tolist() == ["id7"]
    assert frame[["before", "after", "direction"]].values.tolist() == [[0, 1, "gain"]]
    assert frame[["score_before", "score_after"]].values.tolist() == [[0.0, 0.5]]
    assert "group" not in frame
    path = result.ledger.to_csv(tmp_path / "ledger.csv")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert digest == result.ledger.digest == result.provenance.ledger_digest
    assert [p.name for p in tmp_path.iterdir()] == ["ledger.csv"]


def test_the_group_is_in_the_ledger_only_if_asked_for():
    assert small(sensitive_in_ledger=True).ledger.columns["group"] == ("b",)
    lines = list(csv.reader(io.StringIO(small().ledger._bytes.decode())))
    assert "group" not in lines[0] and "b" not in lines[1]


def test_the_digest_of_a_parquet_ledger_is_that_of_the_csv(tmp_path):
    ids = ["x", 2, None, 4.5, "=1+1", 6, 7, 8, 9, 10]
    before = np.zeros(10, int)
    result = small(before=before, after=1 - before, row_ids=ids, request={"pos_label": 1})
    path = result.ledger.to_parquet(tmp_path / "ledger.parquet")
    assert type(result.ledger).digest_of(path) == result.ledger.digest
    assert (
        type(result.ledger).digest_of(result.ledger.to_csv(tmp_path / "l.csv"))
        == result.ledger.digest
    )
    assert len(pd.read_parquet(path)) == 10


@every_line("text", ["=1+1", "+1", "-1", "@sum", "\t=1", "  =1", "\r=1"])
def test_a_spreadsheet_runs_nothing_from_the_ledger(text):
    lines = csv.reader(io.StringIO(small(row_ids=[text] * 10).ledger._bytes.decode(), newline=""))
    assert [line[0] for line in lines] == ["row", "'" + re.sub(r"\s", " ", text)]


@pytest.mark.parametrize(
    "ids", [[(1, "a")] * 10, [-1, "-1"] * 5, pd.date_range("2020", periods=10)]
)
def test_ids_of_any_kind_survive_a_file(ids, tmp_path):
    result = small(after=1 - BEFORE, row_ids=ids).ledger
    path = result.to_parquet(tmp_path / "ledger.parquet")
    assert type(result).digest_of(path) == result.digest


def test_a_ledger_of_no_changes_is_empty_and_has_a_digest():
    result = small(after=BEFORE)
    assert len(result.ledger) == 0 and len(result.ledger.digest) == 64
    assert result.answer[0] == "No decision changes on the 10 audited rows."


def test_the_lines_of_a_ledger_are_immutable():
    with pytest.raises(TypeError):
        small().ledger.columns["direction"][0] = "loss"


def test_rows_of_an_index_with_several_levels_have_readable_ids():
    index = pd.MultiIndex.from_product([["x", "y"], range(5)])
    result = small(X=pd.DataFrame({"age": range(10)}, index=index))
    assert result.ledger.columns["row"] == ("y, 2",)


def test_an_index_that_names_rows_twice_is_not_used_and_decisions_may_have_one():
    with pytest.warns(DataWarning, match="repeat"):
        result = small(X=pd.DataFrame({"age": range(10)}, index=[0] * 10))
    assert result.ledger.columns["row"] == (7,)
    named = small(after=pd.Series(AFTER, index=list("abcdefghij")))
    assert named.ledger.columns["row"] == ("h",)


# -- subgroups ------------------------------------------------------------------------------------


def planted(seed, harm):
    rng = np.random.default_rng(seed)
    n = 4000
    group = rng.choice(["a", "b"], n)
    town = rng.choice(["Oslo", "Rome", "Kyiv"], n)
    age = rng.integers(18, 70, n)
    chance = np.where((group == "b") & (town == "Rome"), 0.6 - harm, 0.6)
    after = (rng.random(n) < chance).astype(int)
    return group, pd.DataFrame({"town": town, "age": age}), after


def test_a_subgroup_that_is_served_badly_is_named():
    group, X, after = planted(0, harm=0.3)
    before = np.roll(after, 1)
    made = audit(before, after, sensitive_features=group, X=X)
    result, worst = made.subgroups, made.subgroups.listed[0]
    assert worst.name == "b with town = Rome"
    assert worst.compared_with == "the others with town = Rome"
    inside = (X.town == "Rome").to_numpy()
    assert worst.n == (inside & (group == "b")).sum()
    assert worst.rate.value == pytest.approx(after[inside & (group == "b")].mean())
    assert worst.rate_before == pytest.approx(before[inside & (group == "b")].mean())
    assert worst.others == pytest.approx(after[inside & (group == "a")].mean())
    assert worst.gap.high < 0
    assert result.level == pytest.approx(1 - 0.05 / result.n_tested)
    shares = f"{worst.name} ({worst.rate.value:.0%} against {worst.others:.0%})"
    assert any(shares in check.sentence for check in made.checks)


def test_subgroups_that_differ_by_chance_are_hardly_ever_named():
    named = 0
    for seed in range(8):
        group, X, after = planted(seed, harm=0.0)
        named += bool(audit(after, after, sensitive_features=group, X=X).subgroups.listed)
    assert named <= 2  # 5 % of 8, and room for luck


def test_all_subgroups_that_fare_worse_are_counted_though_ten_are_listed():
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b"], 6000)
    X = rng.integers(0, 4, (6000, 6))
    after = (rng.random(6000) < np.where(group == "b", 0.3, 0.7)).astype(int)
    result = audit(after, after, sensitive_features=group, X=X)
    assert result.subgroups.n_worse == 25 and len(result.subgroups.listed) == 10
    sentence = next(c.sentence for c in result.checks if c.code == "CM304")
    assert "and 20 more" in sentence


def test_small_subgroups_are_counted_not_hidden():
    group, X, after = planted(0, harm=0.3)
    result = audit(after[:300], after[:300], sensitive_features=group[:300], X=X[:300])
    assert result.subgroups.n_tested < 2 * 8
    assert result.subgroups.n_tested + result.subgroups.n_too_small == 2 * (1 + 3 + 4)
    assert any("subgroups have too few people" in text for text in result.not_known)


def test_for_error_rates_only_people_with_the_favourable_label_are_compared():
    group, X, after = planted(1, harm=0.3)
    truth = np.random.default_rng(5).integers(0, 2, len(after))
    result = audit(
        after,
        after,
        sensitive_features=group,
        X=X,
        y_true=truth,
        request={"constraints": "true_positive_rate_parity"},
    )
    worst = result.subgroups.listed[0]
    members = (group == "b") & (X.town == "Rome").to_numpy() & (truth == 1)
    assert worst.name == "b with town = Rome" and worst.n == members.sum()
    assert worst.rate.value == pytest.approx(after[members].mean())


# -- what comes in --------------------------------------------------------------------------------


def test_groups_of_several_columns_are_named_by_both():
    sensitive = pd.DataFrame({"sex": ["f", "m"] * 5, "old": [True, False, False, True, True] * 2})
    result = small(groups=sensitive)
    assert {g.name for g in result.groups} <= {
        f"sex = {s}, old = {o}" for s in "fm" for o in (True, False)
    }
    assert sum(g.n for g in result.groups) == 10


def test_groups_that_read_alike_stay_apart():
    groups = np.array([1, "1"] * 5, dtype=object)
    assert [g.name for g in small(groups=groups).groups] == ["1", "'1'"]


def test_frames_of_every_kind_give_the_same_audit():
    group, label, scores, edited = random_rows(3)
    before, after = (scores > 0.5).astype(int), (edited > 0.5).astype(int)
    rng = np.random.default_rng(0)
    raw = {"age": rng.normal(40, 9, 400), "town": rng.choice(["x", "y", "z"], 400).tolist()}
    raw["age"][:5] = np.nan
    options = {"y_true": label, "scores_before": scores, "created": "now"}
    pandas_ = audit(before, after, sensitive_features=group, X=pd.DataFrame(raw), **options)
    frame = pl.DataFrame(raw).with_columns(pl.col("age").fill_nan(None))
    polars_ = audit(
        pl.Series(before), pl.Series(after), sensitive_features=pl.Series(group), X=frame, **options
    )
    assert pandas_ == polars_
    coded = pd.DataFrame(raw).astype({"town": pd.CategoricalDtype(["z", "unused", "x", "y"])})
    assert audit(before, after, sensitive_features=group, X=coded, **options) == pandas_
    moved = {**raw, "town": raw["town"][1:] + raw["town"][:1]}
    other = audit(before, after, sensitive_features=group, X=pd.DataFrame(moved), **options)
    assert other.provenance.data_digest != pandas_.provenance.data_digest
    raw["town"] = [t.upper() if i == 399 else t for i, t in enumerate(raw["town"])]
    other = audit(before, after, sensitive_features=group, X=pd.DataFrame(raw), **options)
    assert other.provenance.data_digest != pandas_.provenance.data_digest


def test_columns_that_cannot_be_read_are_left_out():
    X = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=10), "age": range(10)})
    assert small(X=X).segments is not None


def explained(favorable=0, **options):
    X = np.arange(10.0)[:, None]
    labels = {"pos_label": 1, "favorable_label": favorable}
    return explain(None, X, y_before=BEFORE, y_after=AFTER, **labels, **options)


def test_a_part_of_a_request_keeps_what_the_explanation_knows():
    result = small(explanation=explained(), request={"target": 0.8})
    assert (result.changes.n_gains, result.changes.n_losses) == (0, 1)
    assert result.request.target == 0.8 and result.request.favorable_label == 0
    assert small(explanation=explained(), request=Request(target=0.8)).request == result.request
    for contrary in ({"favorable_label": 1}, {"pos_label": 0}):
        with pytest.raises(InputError, match="contradict"):
            small(explanation=explained(), **contrary)


def test_the_level_is_the_explanations():
    assert small(explanation=explained(level=0.8)).level == 0.8
    with pytest.raises(InputError, match=re.escape("explain(..., level=0.9)")):
        small(explanation=explained(level=0.8), level=0.9)


def test_tables_in_different_orders_are_refused():
    X = pd.DataFrame({"age": range(10)})
    with pytest.raises(InputError, match="different orders"):
        small(X=X.iloc[::-1], after=pd.Series(AFTER))
    why = explain(None, X, y_before=BEFORE, y_after=AFTER)
    with pytest.raises(InputError, match="different orders"):
        small(X=X.iloc[::-1], explanation=why)
    with pytest.raises(InputError, match="different index labels"):
        small(X=X, after=pd.Series(AFTER, index=range(100, 110)))


def test_scores_of_the_other_label_are_noticed():
    with pytest.warns(DataWarning, match="scores_before are read as scores of the label 1, but"):
        small(scores_before=1.0 - BEFORE, scores_after=AFTER * 1.0)


def test_an_update_that_reads_the_group_or_is_randomised_is_called_so_first():
    rows = make_biased(400, random_state=0)
    model = LogisticRegression().fit(rows.data, rows.target)
    group = {"sensitive_features": rows.sensitive_features}
    rival = MinimalFlip(model, constraints="equalized_odds", random_state=0)
    why = explain(rival.fit(rows.data, rows.target, **group), rows.data, **group)
    result = audit(why.y_before, why.y_after, y_true=rows.target, explanation=why, **group)
    assert result.answer[1].startswith(
        "This update reads each person's group, or a column that determines it, to decide. "
        "This update is randomised"
    )
    assert (result.provenance.reads_group, result.provenance.is_randomised) == (True, True)
    states = {check.code: check.state for check in result.checks}
    assert states["CM302"] == "failed"
    assert small().provenance.reads_group is None


def test_groups_too_small_to_compare_stay_out_of_the_limit_and_its_check():
    group = np.repeat(["a", "b", "c"], [200, 200, 20])
    before = np.r_[np.tile([0, 1], 100), np.zeros(200, int), np.zeros(20, int)]
    after = before.copy()
    after[200:240] = 1
    after[400:] = 1
    result = audit(before, after, sensitive_features=group)
    assert (result.changes.n_changes, result.limit.n_changes) == (60, 40)
    assert result.limit.times == 40 / result.limit.n_fewest
    check = next(c for c in result.checks if c.code == "CM204")
    assert check.sentence.startswith("The update makes 40 changes in the compared groups.")
    assert "not counting 20 in groups too small" in " ".join(result.answer)
    assert "400 audited rows without 20 in groups too small" in " ".join(result.answer)
    assert result.fairness[0].n == 400


def test_a_figure_just_short_of_its_target_has_enough_digits():
    before = np.r_[np.tile([1] * 7998 + [0] * 2002, 1), np.ones(10_000, int)]
    group = np.repeat(["a", "b"], 10_000)
    result = audit(before, before, sensitive_features=group, request={"target": 0.8})
    check = result.checks[0]
    assert check.state == "failed" and "79.98%" in check.sentence and "80.00%" in check.sentence
    changed = before.copy()
    changed[:3] = 0
    result = audit(before, changed, sensitive_features=group, request={"max_changes": 0.000149})
    sentence = next(c.sentence for c in result.checks if c.code == "CM104")
    assert "0.0150%" in sentence and "0.0149%" in sentence


def test_an_update_that_is_less_fair_than_before_is_called_so():
    result = small(before=AFTER, after=BEFORE)
    assert "This is less fair than before." in " ".join(result.answer)
    assert "as fair as this, or fairer, without any change" in " ".join(result.answer)
    alone = small(groups=["a"] * 10)
    assert "fewer than two groups are large enough" in " ".join(alone.answer)


def test_columns_left_out_are_named():
    X = pd.DataFrame({"when": pd.date_range("2020-01-01", periods=10), "age": range(10)})
    assert any("(when)" in text for text in small(X=X).not_known)
    assert not any("(when)" in text for text in small(X=X[["age"]]).not_known)


def biased_update(**options):
    rows = make_biased(800, random_state=0)
    model = LogisticRegression().fit(rows.data, rows.target)
    update = quick_control(model, target=0.8, **options)
    group = {"sensitive_features": rows.sensitive_features}
    return update.fit(rows.data, rows.target, **group), rows, group


def test_a_direction_does_not_hide_how_well_r_predicts_the_group():
    update, rows, group = biased_update(direction="losses_only")
    why = explain(update, rows.data)
    result = audit(why.y_before, why.y_after, explanation=why, **group)
    for proxy, name in zip(result.proxies, np.unique(rows.sensitive_features), strict=True):
        area = roc_auc_score(rows.sensitive_features == name, update.raw_ratio(rows.data))
        assert proxy.update.value == pytest.approx(area)


def case_with_group_column():
    rng = np.random.default_rng(0)
    sex = rng.choice(["F", "M"], 800)
    X = pd.DataFrame({"sex": sex, "w": rng.normal(size=800)})
    before = (rng.random(800) < np.where(sex == "F", 0.3, 0.6)).astype(int)
    after = np.where((sex == "F") & (X.w > 0), 1, before)
    return X, sex, before, after


def test_columns_that_determine_the_group_are_in_the_ledger_only_on_request():
    X, sex, before, after = case_with_group_column()
    result = audit(before, after, sensitive_features=sex, X=X)
    assert not any("sex" in rule for rule in result.ledger.columns["rule"])
    model = ScoreColumn("score")
    scored = X.assign(score=np.where(before == 1, 0.8, 0.2) + 0.01 * X.w)
    update = quick_control(model, target=0.9)
    nearly = np.append("M" if sex[0] == "F" else "F", sex[1:])  # a copy of it is refused
    with pytest.warns(DataWarning, match="nearly determines the sensitive group"):
        update.fit(scored, sensitive_features=nearly)
    why = explain(update, scored)
    quiet, asked = (
        audit(
            why.y_before,
            why.y_after,
            sensitive_features=sex,
            explanation=why,
            sensitive_in_ledger=wanted,
        )
        for wanted in (False, True)
    )
    texts = [*quiet.ledger.columns["rule"], *quiet.ledger.columns["reasons"]]
    assert len(quiet.ledger) > 0 and not any("sex" in text for text in texts)
    assert any("sex" in text for text in asked.ledger.columns["reasons"])
    assert quiet.provenance.reads_group is True
    assert {c.code: c.state for c in quiet.checks}["CM302"] == "failed"


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_the_loss_of_area_is_delongs_for_the_same_people(seed):
    rng = np.random.default_rng(seed)
    label = np.arange(40) < rng.integers(5, 35)
    before, after = rng.integers(0, 12, (2, 40)) + 3.0 * label

    def wins(scores):
        return (scores[label][:, None] > scores[~label]) + 0.5 * (
            scores[label][:, None] == scores[~label]
        )

    result = area_loss(before, after, label, 0.95)
    moved = wins(before) - wins(after)
    assert result.value == pytest.approx(moved.mean())
    variance = moved.mean(axis=1).var(ddof=1) / label.sum()
    variance += moved.mean(axis=0).var(ddof=1) / (~label).sum()
    assert result.high - result.value == pytest.approx(1.959963984540054 * math.sqrt(variance))


def test_a_small_loss_of_order_is_seen_because_the_people_are_the_same():
    rng = np.random.default_rng(0)
    label = rng.random(3000) < 0.5
    scores = 1 / (1 + np.exp(-(1.3 * label + rng.normal(size=3000))))
    worse = np.clip(scores + rng.normal(0, 0.09, 3000), 0, 1)
    decided = (scores > 0.5).astype(int)
    result = audit(
        decided,
        decided,
        sensitive_features=rng.choice(["a", "b"], 3000),
        y_true=label.astype(int),
        scores_before=scores,
        scores_after=worse,
    )
    assert {c.code: c.state for c in result.checks}["CM401"] == "failed"
    assert result.quality.auc_after.high > result.quality.auc_before.low  # their intervals overlap


def test_scores_in_another_order_are_refused():
    scores = pd.Series(BEFORE * 0.5)
    with pytest.raises(InputError, match="different orders"):
        small(after=pd.Series(AFTER), scores_before=scores.iloc[::-1])


def test_what_is_asked_is_checked_and_its_names_are_kept():
    for wrong in ({"max_changes": 300}, {"confidence": 95}, {"max_changes": "x"}, {"threshold": 2}):
        with pytest.raises(InputError):
            small(request=wrong)
    asked = Request(pos_name="hired", favorable_name="hired")
    assert "“hired”" in small(request=asked).answer[0]


def test_rates_of_a_group_of_one_person_are_hidden():
    groups = np.array(["a"] * 5 + ["b"] * 4 + ["c"])
    result = small(groups=groups, min_group_size=3, y_true=TRUTH)
    alone = result.groups[2]
    assert (alone.name, alone.n, alone.n_gains, alone.favorable_after.value) == ("c", 1, None, None)
    assert alone.accuracy_after.value is None and Audit.from_json(result.to_json()) == result


def test_one_group_is_not_enough_evidence_for_a_proxy():
    states = {c.code: c for c in small(groups=["all"] * 10).checks}
    assert states["CM302"].state == states["CM303"].state == "not enough evidence"
    assert "0.50" not in states["CM302"].sentence


def test_a_parquet_ledger_of_any_name_and_ids_has_the_same_digest(tmp_path):
    ids = ["bad \udc80", *range(8), 2**70]
    for row_ids in (ids, [2**70 + i for i in range(10)]):
        result = small(after=1 - BEFORE, row_ids=row_ids).ledger
        assert type(result).digest_of(result.to_parquet(tmp_path / "ledger.pq")) == result.digest


def test_a_private_file_stays_private_and_a_link_a_link(tmp_path):
    private, link = tmp_path / "private.csv", tmp_path / "link.csv"
    private.write_text("old")
    private.chmod(0o600)
    link.symlink_to(private)
    assert small().ledger.to_csv(link) == link
    assert link.is_symlink() and private.read_text().startswith('"row"')
    assert private.stat().st_mode & 0o777 == 0o600
    assert {p.name for p in tmp_path.iterdir()} == {"private.csv", "link.csv"}


def test_infinite_numbers_in_a_file_are_refused():
    with pytest.raises(InputError, match=r"Audit\.level"):
        Audit.from_json(small().to_json().replace('"level": 0.95', '"level": 1e999'))


def test_refits_that_failed_leave_a_check_open():
    steady = StabilitySummary(
        n_refits=3,
        n_asked=9,
        failure="too few rows",
        n_rows=10,
        agreement=0.9,
        n_always=1,
        n_sometimes=0,
        columns={},
        histogram=(9, 0, 0, 0, 0, 0, 0, 0, 0, 1),
        fairness_low=None,
        fairness_high=None,
        changes_low=0.1,
        changes_high=0.1,
    )
    check = next(c for c in small(stability=steady).checks if c.code == "CM501")
    assert check.state == "not enough evidence" and "too few rows" in check.sentence


@every_line("labels", [("no", "yes"), (False, True), (-1, 1), (1.0, 2.0)])
def test_labels_of_every_kind(labels):
    table = np.array(labels, dtype=object if isinstance(labels[0], str) else None)
    result = small(
        before=table[BEFORE], after=table[AFTER], y_true=table[TRUTH], pos_label=labels[1]
    )
    assert result.changes.n_gains == 1 and result.quality.accuracy_after.value == 0.7
    assert result.ledger.columns["after"] == (labels[1],)
    assert Audit.from_json(result.to_json()) == result


def test_decisions_that_are_all_alike():
    result = small(before=np.ones(10), after=np.ones(10))
    assert result.fairness[0].after.value == 1.0
    nobody = small(before=np.zeros(10), after=np.zeros(10), pos_label=1)
    assert nobody.fairness[0].after.value is None
    assert any("not defined" in text for text in nobody.not_known)


@every_line(
    "options, message",
    [
        ({"after": AFTER[:5]}, "y_after"),
        ({"after": np.arange(10)}, "different values"),
        ({"before": np.where(BEFORE, "yes", "no")}, "same two labels"),
        ({"before": BEFORE + 1, "after": AFTER + 1, "pos_label": 7}, "pos_label=7"),
        ({"favorable_label": 3}, "favorable_label=3"),
        ({"request": {"goal": 1}}, "unknown entry 'goal'"),
        ({"request": "fair"}, "must be a commod.Request"),
        ({"request": {"target": 3.0}}, "target"),
        ({"request": {"constraints": "equalized_odds"}}, "y_true is None"),
        ({"request": {"direction": "up"}}, "direction='up'"),
        ({"X": np.ones((3, 1))}, "X has 3 rows"),
        ({"row_ids": [1]}, "row_ids"),
        ({"scores_after": np.full(10, 2.0)}, "scores_after"),
        ({"label_names": {5: "x"}}, "label_names"),
        ({"explanation": "because"}, "commod.explain"),
        ({"stability": 3}, "commod.stability"),
        ({"groups": [None, *GROUPS[1:]]}, "missing"),
        ({"level": 1.5}, "level"),
    ],
)
def test_what_cannot_be_audited_is_refused_with_a_way_out(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        small(**options)


# -- what it says ---------------------------------------------------------------------------------


def test_what_is_not_given_is_said_to_be_unknown():
    text = " ".join(small().not_known)
    for part in ("True labels were not given", "Raw columns were not given", "Refits"):
        assert part in text
    full = small(y_true=TRUTH, X=np.ones((10, 1)), scores_before=BEFORE, scores_after=AFTER)
    assert "were not" not in " ".join(full.not_known).replace(
        "Refits on resampled rows were not", ""
    )


def test_a_group_too_small_to_say_anything_is_named_and_left_out():
    groups = np.array(["a"] * 6 + ["b"] * 3 + ["c"])
    result = small(groups=groups, min_group_size=2)
    assert [(g.name, g.n, g.needed) for g in result.small_groups] == [("c", 1, 2)]
    assert [g.compared for g in result.groups] == [True, True, False]
    assert [g.compared for g in small(groups=groups, min_group_size=3).groups] == [1, 1, 0]
    assert result.fairness[0].after.value == metrics.p_rule(
        None, AFTER[:9], sensitive_features=groups[:9]
    )
    assert any("too small" in text for text in result.not_known)
    states = {check.code: check.state for check in result.checks}
    assert states["CM303"] == "not enough evidence"


def state(code, **options):
    result = small(**options)
    return {check.code: check.state for check in result.checks}.get(code)


def many(times, **options):
    return {
        "before": np.tile(BEFORE, times),
        "after": np.tile(options.pop("after", AFTER), times),
        "groups": np.tile(GROUPS, times),
        **options,
    }


def test_each_check_can_pass_fail_and_lack_evidence():
    asked = {"request": {"target": 0.8}}
    assert state("CM101", **asked) == "passed"
    assert state("CM101", after=BEFORE, **asked) == "failed"
    assert state("CM101", groups=["a"] * 10, **asked) == "not enough evidence"
    assert state("CM101") is None
    assert state("CM102", **many(200, **asked)) == "passed"
    assert state("CM102", **asked) == "not enough evidence"
    assert state("CM102", **many(200, after=BEFORE, **asked)) == "failed"
    assert state("CM103") == "passed"
    assert state("CM103", before=AFTER, after=BEFORE) == "failed"
    assert state("CM104", request={"max_changes": 0.1}) == "passed"
    assert state("CM104", request={"max_changes": 0.05}) == "failed"
    assert state("CM105", request={"direction": "gains_only"}) == "passed"
    assert state("CM105", request={"direction": "losses_only"}) == "failed"
    limit = {"request": {"max_accuracy_loss": 0.05}}
    assert state("CM106", y_true=TRUTH, **limit) == "passed"
    assert state("CM106", before=AFTER, after=BEFORE, y_true=TRUTH, **limit) == "failed"
    assert state("CM106", **limit) == "not enough evidence"
    assert state("CM107", request={"max_volume_change": 0.05}) == "failed"
    assert state("CM107", request={"max_volume_change": 0.1}) == "passed"
    worse = {"before": AFTER, "after": BEFORE, "y_true": TRUTH}
    assert state("CM201", y_true=TRUTH) == "passed"
    assert state("CM201", **worse) == state("CM202", **worse) == "not enough evidence"
    much_worse = {**many(30, after=BEFORE), "before": np.tile(AFTER, 30)}
    much_worse["y_true"] = np.tile(TRUTH, 30)
    assert state("CM201", **much_worse) == state("CM202", **much_worse) == "failed"
    assert state("CM202", y_true=TRUTH) == "passed"
    by_chance = {**many(4, after=BEFORE), "before": np.tile(AFTER, 4)}
    by_chance["y_true"] = np.concatenate([np.tile(TRUTH, 3), 1 - TRUTH])  # 3 worse, 1 better
    assert state("CM202", **by_chance) == "not enough evidence"
    assert state("CM203") == "passed"
    assert state("CM203", pos_label=1, favorable_label=0) == "failed"
    assert state("CM204") == "passed"
    assert state("CM204", after=1 - BEFORE) == "failed"
    assert state("CM403", scores_after=AFTER * 0.9, request={"threshold": 0.5}) == "passed"
    assert state("CM403", scores_after=BEFORE * 0.9, request={"threshold": 0.5}) == "failed"


def test_an_update_that_predicts_the_group_fails_the_proxy_check():
    group = np.repeat(["a", "b"], 200)
    before = np.tile([0, 1], 200)
    proxy = np.where(group == "b", 1, before)
    result = audit(before, proxy, sensitive_features=group)
    assert [p.by_ratio for p in result.proxies] == [False, False]
    assert result.proxies[1].update.value == pytest.approx(0.75)
    assert {c.code: c.state for c in result.checks}["CM302"] == "failed"
    few = audit(before[160:240], proxy[160:240], sensitive_features=group[160:240])
    assert {c.code: c.state for c in few.checks}["CM302"] == "not enough evidence"
    same = audit(before, 1 - before, sensitive_features=group)
    assert {c.code: c.state for c in same.checks}[
        "CM302"
    ] == "not enough evidence"  # no r, no proof


def test_a_group_that_never_changes_is_predicted_as_well():
    group = np.repeat(["a", "b", "c"], [200, 200, 100])
    before = np.tile([0, 1], 250)
    result = audit(before, np.where(group == "c", before, 1 - before), sensitive_features=group)
    assert [p.update.value for p in result.proxies] == pytest.approx([2 / 3, 2 / 3, 0])
    check = next(c for c in result.checks if c.code == "CM302")
    assert check.state == "failed" and "c (1.00, " in check.sentence


def test_no_sentence_claims_that_a_law_is_complied_with():
    group, label, scores, edited = random_rows(1)
    result = audit(
        scores > 0.5,
        edited > 0.5,
        sensitive_features=group,
        y_true=label.astype(bool),
        scores_before=scores,
        scores_after=edited,
        request={"target": 0.8},
        X=np.column_stack([scores, label]),
    )
    said = [*result.answer, *(f"{c.title} {c.sentence}" for c in result.checks)]
    forbidden = re.compile(r"\b(legal|lawful|compl(y|ies|iant|iance)|law|certif\w+|guarantee\w*)\b")
    assert not [text for text in said if forbidden.search(text.lower())]


def test_every_interval_in_a_sentence_says_its_level_and_its_rows():
    group, label, scores, edited = random_rows(1)
    result = audit(
        (scores > 0.5) * 1,
        (edited > 0.5) * 1,
        sensitive_features=group,
        y_true=label,
        scores_before=scores,
        scores_after=edited,
        request=Request(target=0.8),
        rows="held-out rows",
        level=0.9,
    )
    for text in (*result.answer, *(c.sentence for c in result.checks)):
        if "between" in text and " and " in text and "%" in text and "interval" in text:
            assert "90% interval, 400 held-out rows" in text
    assert any("90% interval, 400 held-out rows" in text for text in result.answer)


def test_the_table_of_checks_in_the_docs_is_the_real_one():
    text = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()
    written = dict(re.findall(r"^\| (CM\d+) \| (.+?) \|", text, flags=re.MULTILINE))
    assert written == {check.code: check.title for check in CHECKS}


def test_an_update_that_reads_a_near_copy_of_the_group_fails_a_check_that_names_it():
    X, sex, before, _ = case_with_group_column()
    code = np.asarray(sex).copy()
    code[0] = code[code != code[0]][0]
    scored = X.drop(columns="sex").assign(
        code=code, score=np.where(before == 1, 0.8, 0.2) + 0.01 * X.w
    )
    update = quick_control(ScoreColumn("score"), target=0.9)
    with pytest.warns(DataWarning, match="'code' of X nearly determines"):
        update.fit(scored, sensitive_features=sex)
    why = explain(update, scored)
    result = audit(why.y_before, why.y_after, sensitive_features=sex, explanation=why)
    check = next(c for c in result.checks if c.code == "CM305")
    assert check.state == "failed" and "code alone predicts" in check.sentence
    assert result.provenance.reads_group is False  # the group does not follow without error
    texts = [*result.ledger.columns["rule"], *result.ledger.columns["reasons"]]
    assert not any("code" in text for text in texts)
    assert not update.to_patch().verify(scored, sex).passed


@every_line("place", [0, 1])
def test_decisions_that_are_the_true_labels_are_noticed(place):
    truth, other = np.tile(TRUTH, 20), np.tile(AFTER, 20)
    decisions = [other, other]
    decisions[place] = truth
    groups = np.tile(GROUPS, 20)
    name = ("y_before", "y_after")[place]
    with pytest.warns(DataWarning, match=rf"{name} agrees with y_true in all 200 rows"):
        audit(*decisions, sensitive_features=groups, y_true=truth)
    table = pl.DataFrame({"b": decisions[0], "a": decisions[1], "y": truth, "g": groups})
    columns = {"before": "b", "after": "a", "y_true": "y", "sensitive_features": "g"}
    with pytest.warns(DataWarning, match=rf"{name[2:]} agrees with y_true in all 200 rows"):
        audit_frame(table, **columns)
