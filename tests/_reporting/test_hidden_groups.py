"""Nothing that an audit publishes depends on the people of groups with fewer than five people."""

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commod import (
    ScoreColumn,
    audit,
    audit_frame,
    explain,
    frontier,
    report,
)
from quick_updates import quick_control

SIZES = {"a": 40, "b": 12, "c": 7}


def rows_of(seed, n_tiny, *, more_tiny=0):
    """Return columns of people in groups of 40, 12, 7 and `n_tiny` people."""
    random = np.random.RandomState(seed)
    sizes = {**SIZES, "tiny": n_tiny, "other tiny": more_tiny}
    group = np.repeat(list(sizes), list(sizes.values()))
    n = len(group)
    scores = random.rand(2, n)
    return pd.DataFrame(
        {
            "group": group,
            "before": (scores[0] > 0.5).astype(int),
            "after": (scores[1] > 0.5).astype(int),
            "y": random.randint(2, size=n),
            "score_before": scores[0],
            "score_after": scores[1],
            "x": random.randn(n).round(1),
            "town": random.choice(["p", "q"], n),
        }
    ).sample(frac=1, random_state=0)


def published(rows, how):
    if how == "frame":
        result = audit_frame(
            rows,
            before="before",
            after="after",
            sensitive_features="group",
            y_true="y",
            scores_before="score_before",
            scores_after="score_after",
            unknown_groups="ignore",
            created="now",
        )
    else:
        result = audit(
            rows["before"],
            rows["after"],
            sensitive_features=rows["group"],
            y_true=rows["y"],
            scores_before=rows["score_before"],
            scores_after=rows["score_after"],
            X=rows[["x", "town"]],
            unknown_groups="ignore",
            created="now",
        )
    plain = result.to_dict()
    plain["provenance"] = {
        name: value for name, value in plain["provenance"].items() if "digest" not in name
    }
    return result, plain


def rounded(value):
    """Return plain data with numbers to 12 digits: engines add in different orders."""
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(part) for part in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value


@settings(max_examples=4)
@given(
    st.integers(0, 999), st.integers(1, 4), st.integers(0, 4), st.sampled_from(["rows", "frame"])
)
def test_an_audit_does_not_depend_on_people_in_hidden_groups(seed, n_tiny, more_tiny, how):
    rows = rows_of(seed, n_tiny, more_tiny=more_tiny)
    is_hidden = rows["group"].str.contains("tiny")
    others = rows.copy()
    random = np.random.RandomState(seed + 1)
    for name in ("before", "after", "y"):
        others.loc[is_hidden, name] = random.randint(2, size=is_hidden.sum())
    for name in ("score_before", "score_after", "x"):
        others.loc[is_hidden, name] = random.rand(is_hidden.sum())
    assert rounded(published(rows, how)[1]) == rounded(published(others, how)[1])


@pytest.mark.parametrize("how", ["rows", "frame"])
def test_few_people_of_unknown_groups_are_in_no_figure(how):
    rows = rows_of(0, 3)
    is_tiny = rows["group"] == "tiny"
    rows["group"] = rows["group"].where(~is_tiny, None)
    others = rows.copy()
    for name in ("before", "after", "y"):
        others.loc[is_tiny, name] = 1 - others.loc[is_tiny, name]
    result, plain = published(rows, how)
    assert rounded(plain) == rounded(published(others, how)[1])
    assert result.n == result.changes.n == 59
    assert result.unknown_groups.n_unknown == 3 and result.unknown_groups.low_after is None
    assert any("For 3 people, the group is not known" in text for text in result.answer)
    assert any("in no figure and no total" in text for text in result.not_known)
    assert result.provenance.ledger_lines in (None, 0)

    rows["group"] = rows["group"].where(rows["group"] != "c", None)  # seven more: no secret
    result, _ = published(rows, how)
    assert result.n == 62 and result.unknown_groups.n_unknown == 10


@pytest.mark.parametrize("how", ["rows", "frame"])
def test_totals_are_those_of_the_groups_that_are_shown(how):
    rows = rows_of(0, 1)
    result, _ = published(rows, how)
    shown = [group for group in result.groups if group.n_gains is not None]
    assert [group.name for group in result.groups if group.n_gains is None] == ["tiny"]
    assert [group.n for group in result.groups if group.name == "tiny"] == [1]
    assert result.n == result.changes.n == sum(group.n for group in shown) == 59
    assert result.changes.n_gains == sum(group.n_gains for group in shown)
    assert result.changes.n_losses == sum(group.n_losses for group in shown)
    assert any("1 person in groups of fewer than 5 people" in text for text in result.not_known)


def test_the_ledger_has_everybody_and_the_audit_does_not_count_its_lines():
    rows = rows_of(0, 4)
    rows.loc[rows["group"] == "tiny", ["before", "after"]] = [0, 1]
    result, _ = published(rows, "rows")
    assert len(result.ledger) == (rows["before"] != rows["after"]).sum()
    assert result.provenance.ledger_lines is None
    assert result.from_json(result.to_json()) == result


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_a_report_with_hidden_people_is_written(tmp_path, name):
    result, _ = published(rows_of(0, 1), "rows")
    report(result, tmp_path / name)
    text = (tmp_path / name).read_text()
    assert re.search(r"Ledger of changes.{0,20}not stated", text, re.DOTALL)


@pytest.mark.parametrize("how", ["rows", "frame"])
def test_a_table_of_hidden_groups_alone_is_still_audited(how):
    rows = rows_of(0, 3, more_tiny=2)
    result, _ = published(rows[rows["group"].str.contains("tiny")], how)
    assert result.n == 5


def test_hidden_people_have_no_part_in_the_figures_of_an_update():
    rows = rows_of(0, 2)
    alone, _ = published(rows[rows["group"] != "tiny"], "frame")
    result, _ = published(rows, "frame")
    assert rounded(alone.to_dict()["agreement"]) == rounded(result.to_dict()["agreement"])
    assert alone.changes == result.changes and alone.quality == result.quality


def test_the_scorecard_of_an_audit_does_not_count_hidden_people():
    rows = rows_of(0, 2)
    X = rows[["x", "town", "score_before"]].rename(columns={"score_before": "score"})
    settings = {"min_group_size": 5, "target": 0.5}
    with pytest.warns(Warning):
        update = quick_control(ScoreColumn("score"), **settings)
        update.fit(X, sensitive_features=rows["group"])
    is_hidden = (rows["group"] == "tiny").to_numpy()
    others = X.copy()
    others.loc[is_hidden, "x"] = 99.0
    results = []
    for table in (X, others):
        why = explain(update, table)
        result = audit(why.y_before, why.y_after, sensitive_features=rows["group"], explanation=why)
        results.append(result.to_dict())
    assert results[0]["card"] == results[1]["card"]
    assert results[0]["segments"] == results[1]["segments"]
    assert results[0]["changes"] == results[1]["changes"]


def test_a_trade_off_counts_the_people_that_the_audit_counts():
    """A report shows both, so the difference would reveal the people of very small groups."""
    rows = rows_of(0, 2)
    X = rows[["x", "town", "score_before"]].rename(columns={"score_before": "score"})
    is_hidden = (rows["group"] == "tiny").to_numpy()
    update = quick_control(ScoreColumn("score"), min_group_size=5)
    found = set()
    for y in (rows["y"], rows["y"].where(~is_hidden, 1 - rows["y"])):
        with pytest.warns(Warning):
            curve = frontier(update, X, y, sensitive_features=rows["group"], targets=[0.9])
        found.add(repr(curve.trade_off()))
        assert curve.trade_off().n_rows == published(rows, "rows")[0].n == 59
        assert curve.frame()["n_changes"].max() <= 59
    assert len(found) == 1
