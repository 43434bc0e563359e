"""AUC by group and the area between ROC curves in audits, reports and on the command line."""

from __future__ import annotations

from itertools import pairwise

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from commod import Audit, audit, audit_frame, explain, report
from commod.cli import app
from commod.datasets import make_biased
from commod.metrics import abroca, compare_roc_curves, group_auc
from quick_updates import quick_control

SIZES = {"a": 400, "b": 240, "c": 60, "one label": 40, "few": 40, "small": 20, "tiny": 3}


def people(seed=0, sizes=SIZES, tiny=0):
    """Return people of groups of many sizes; `tiny` changes the people of the hidden group only."""
    random = np.random.default_rng(seed)
    group = np.repeat(list(sizes), list(sizes.values()))
    n = len(group)
    y = random.integers(0, 2, n)
    y[group == "one label"] = 1
    few = np.flatnonzero(group == "few")
    y[few] = np.arange(len(few)) < 4
    score = 1 / (1 + np.exp(-(y - 0.5 + random.normal(size=n))))
    edited = np.where((group == "b") & (score < 0.5) & (random.random(n) < 0.3), 0.51, score)
    hidden = group == "tiny"
    y[hidden] = (y[hidden] + tiny) % 2
    score[hidden] = edited[hidden] = 0.01 + 0.98 * tiny
    columns = {"group": group, "y": y, "score": score, "edited": edited}
    decisions = {"old": (score > 0.5) * 1, "new": (edited > 0.5) * 1}
    return pd.DataFrame({**columns, **decisions}).sample(frac=1, random_state=seed)


def audited(rows, **changes):
    given = {
        "sensitive_features": rows["group"],
        "y_true": rows["y"],
        "scores_before": rows["score"],
        "scores_after": rows["edited"],
        "created": "now",
        **changes,
    }
    return audit(rows["old"], rows["new"], **given)


def counted(rows, **changes):
    columns = {"before": "old", "after": "new", "sensitive_features": "group", "y_true": "y"}
    scores = {"scores_before": "score", "scores_after": "edited", "created": "now"}
    return audit_frame(rows, **{**columns, **scores, **changes})


@pytest.fixture(scope="module")
def rows():
    return people()


@pytest.fixture(scope="module")
def result(rows):
    return audited(rows)


def of_group(figures, name):
    return next(group for group in figures.groups if group.name == name)


def test_the_figures_are_those_of_the_metrics(rows, result):
    kept = rows[rows["group"].isin(["a", "b", "c"])]
    for when, column in (("before", "score"), ("after", "edited")):
        measured = group_auc(kept["y"], kept[column], sensitive_features=kept["group"])
        found = compare_roc_curves(kept["y"], kept[column], sensitive_features=kept["group"])
        for name, area in measured.items():
            group = of_group(result.roc, name)
            own = kept[kept["group"] == name]
            figure = getattr(group, f"auc_{when}")
            assert (figure.value, figure.low, figure.high) == tuple(area)
            assert figure.value == pytest.approx(roc_auc_score(own["y"], own[column]))
            gap = getattr(group, f"gap_{when}")
            assert (gap is None) == (name == result.roc.reference)
            if gap is not None:
                expected = found.against_reference[name]
                assert (gap.area.value, gap.area.low, gap.area.high) == expected[2:5]
                assert (gap.chance, gap.chance_high) == expected[5:]
        largest = getattr(result.roc, f"largest_{when}")
        value = abroca(kept["y"], kept[column], sensitive_features=kept["group"])
        assert largest.gap.area.value == value
        assert (largest.first, largest.second) == found.largest[:2]
    assert result.roc.reference == "a"  # the largest group
    b = of_group(result.roc, "b")
    assert b.auc_loss.value == pytest.approx(b.auc_before.value - b.auc_after.value)
    assert b.auc_loss.low > 0 == of_group(result.roc, "a").auc_loss.value


def test_groups_without_a_curve_say_why(result):
    listed = {group.name: group for group in result.roc.groups}
    assert set(listed) == {"a", "b", "c", "one label", "few"}  # the compared groups
    assert "same true label" in listed["one label"].why_unknown
    assert "fewer than 5 people" in listed["few"].why_unknown
    for name in ("one label", "few"):
        assert listed[name].auc_before is listed[name].gap_after is None
        assert listed[name].curve_before == ()
    said = [text for text in result.not_known if text.startswith("ROC curves are not known for")]
    assert len(said) == 1 and "few" in said[0] and "one label" in said[0]


def test_five_people_lie_between_two_points_of_a_curve(rows, result):
    for group in result.roc.groups:
        for curve in (group.curve_before, group.curve_after):
            assert curve == () or (curve[0] == (0, 0) and curve[-1] == (1, 1))
            for (x, y), (next_x, next_y) in pairwise(curve):
                n = (next_x - x) * group.n_negative + (next_y - y) * group.n_positive
                assert n > 4.9  # rates have four digits
    small = audited(people(sizes={"a": 300, "b": 31}))
    assert 3 <= len(of_group(small.roc, "b").curve_before) <= 7


def test_labels_and_scores_of_the_other_label_give_the_same_areas(rows, result):
    turned = audited(
        rows.assign(score=1 - rows["score"], edited=1 - rows["edited"]), score_is_for=0
    )
    for group, other in zip(result.roc.groups, turned.roc.groups, strict=True):
        assert (group.n_positive, group.n_negative) == (other.n_negative, other.n_positive)
        if not group.why_unknown:
            assert group.auc_after.value == pytest.approx(other.auc_after.value)
    largest, other = result.roc.largest_after.gap.area, turned.roc.largest_after.gap.area
    assert largest.value == pytest.approx(other.value)


def test_without_labels_or_scores_nothing_is_claimed(rows):
    assert audited(rows, y_true=None).roc is None
    assert audited(rows, scores_before=None, scores_after=None).roc is None
    one = audited(rows, scores_after=None).roc
    assert one.largest_after is None and one.groups[0].auc_after is None
    assert one.largest_before is not None and one.groups[0].auc_loss is None
    alone = audited(rows[rows["group"] == "a"]).roc
    assert alone.largest_before is None and alone.groups[0].auc_before is not None


def test_json_keeps_the_figures_and_older_audits_have_none(result):
    assert Audit.from_json(result.to_json()).roc == result.roc
    older = result.to_dict()
    del older["roc"]
    assert Audit.from_dict(older).roc is None


def test_edited_scores_of_an_update_are_measured_as_they_are():
    old, new = make_biased(800, random_state=0), make_biased(800, random_state=1)
    model = LogisticRegression().fit(old.data, old.target)
    update = quick_control(model, target=0.8, score_edit="changed_only")
    update.fit(old.data, old.target, sensitive_features=old.sensitive_features)
    after = update.predict_proba(new.data)[:, 1]
    found = audit(
        model.predict(new.data),
        update.predict(new.data),
        sensitive_features=new.sensitive_features,
        y_true=new.target,
        explanation=explain(update, new.data),
    )
    for group in found.roc.groups:
        own = new.sensitive_features == group.name
        expected = roc_auc_score(new.target[own], after[own])
        assert group.auc_after.value == pytest.approx(expected)


def test_many_groups_are_cut_and_said():
    random = np.random.default_rng(1)
    group = np.repeat(np.arange(22), [30, 31] + [40] * 20)
    y, score = random.integers(0, 2, len(group)), random.random(len(group))
    rows = pd.DataFrame({"group": group, "y": y, "score": score, "edited": score})
    found = audited(rows.assign(old=(score > 0.5) * 1, new=(score > 0.5) * 1))
    assert len(found.roc.groups) == 20 and found.roc.n_left_out == 2
    assert found.roc.reference == found.roc.groups[0].name  # the first of those of 40 people
    assert found.roc.largest_before == found.roc.largest_after  # nothing changed
    assert any("20 largest groups only; 2 compared groups are" in t for t in found.not_known)


# -- inside an engine ------------------------------------------------------------------------------


def test_bins_of_an_engine_give_intervals_that_include_their_error():
    rows = people(2, sizes={"a": 3000, "b": 2000})
    exact, by_bins = audited(rows).roc, counted(rows)
    binned = by_bins.roc
    assert exact.n_bins is None and 20 <= binned.n_bins <= 1000
    for group, other in zip(exact.groups, binned.groups, strict=True):
        assert (group.name, group.n_positive) == (other.name, other.n_positive)
        assert other.auc_before.low <= group.auc_before.value <= other.auc_before.high
        assert group.auc_before.value == pytest.approx(other.auc_before.value, abs=0.01)
        assert other.auc_before.high - other.auc_before.low > (
            group.auc_before.high - group.auc_before.low
        )
    first, second = exact.largest_after.gap.area, binned.largest_after.gap.area
    assert second.low <= first.value <= second.high
    assert first.value == pytest.approx(second.value, abs=0.01)
    assert any(f"{binned.n_bins:,} bins" in text for text in by_bins.not_known)
    few = counted(people(sizes={"a": 40, "b": 30}))
    assert few.roc is None and any("Too few people" in text for text in few.not_known)


def test_engines_count_the_same_bins():
    rows = people(3, sizes={"a": 250, "b": 150}).reset_index(drop=True)
    expected = counted(rows).roc
    assert counted(pl.from_pandas(rows).lazy()).roc == expected
    assert counted(duckdb.from_df(rows)).roc == expected


# -- where people read it --------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["html", "md"])
def test_reports_say_what_chance_alone_would_give(result, tmp_path, ending):
    text = report(result, tmp_path / f"report.{ending}").read_text("utf-8").replace("\\", "")
    assert "Ranking within groups" in text
    largest = result.roc.largest_after
    assert f"(ABROCA) is {largest.gap.area.value:.3f} (95% interval" in text
    assert f"it would be {largest.gap.chance:.3f} on average" in text
    assert "in 2.5% of samples" in text
    assert "all people of the group have the same true label" in text


def test_notebooks_show_the_areas(result):
    assert f"{of_group(result.roc, 'b').auc_after.value:.3f} (" in result._repr_html_()


def test_the_command_line_prints_areas_by_group(rows, tmp_path):
    rows.to_csv(tmp_path / "decided.csv", index=False)
    command = ["audit", str(tmp_path / "decided.csv"), "--before", "old", "--after", "new"]
    command += ["--sensitive", "group", "--label", "y", "--score-before", "score"]
    command += ["--score-after", "edited"]
    printed = CliRunner().invoke(app, command)
    assert printed.exit_code == 0, printed.output
    assert "After the update, the largest area between the ROC curves" in printed.output
    assert "AUC before" in printed.output
