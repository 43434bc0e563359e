"""Groups that are too small to compare: on the first screen, with sizes and rates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from commod import Audit, audit, audit_frame, report
from commod.metrics import p_rule

N = 400


def decided(n_small=25, n_tiny=3):
    """Return decisions before and after, and groups of which the small ones are never positive."""
    random = np.random.default_rng(0)
    groups = np.where(np.arange(N) % 2, "a", "b").astype(object)
    groups[:n_small] = "small"
    groups[n_small : n_small + n_tiny] = "tiny"
    before = (random.random(N) < np.where(groups == "a", 0.3, 0.6)) * 1
    before[groups == "small"] = 0
    after = np.where((groups == "a") & (random.random(N) < 0.4), 1, before)
    after[:2] = 1  # two of the small group gain
    return pd.DataFrame({"before": before, "after": after, "group": groups})


def audit_of(table, **options):
    return audit(
        table["before"], table["after"], sensitive_features=table["group"].to_numpy(), **options
    )


def test_the_answer_names_small_groups_with_sizes_and_rates():
    table = decided()
    result = audit_of(table, request={"target": 0.5})
    shown = table["group"] != "tiny"
    value = p_rule(None, table["after"][shown], sensitive_features=table["group"][shown].to_numpy())
    (sentence,) = [text for text in result.answer if "not compared" in text]
    assert sentence == (
        "2 groups of fewer than 30 people are not compared: small (25 people, rate 0.0% → 8.0%), "
        "tiny (3 people, rate not shown). 3 people in groups of fewer than 5 are in no figure and "
        "no total. Over the 3 groups whose rates can be shown, the P-rule of label 1 is "
        f"{value:.1%}."
    )
    assert result.fairness[0].after.value > 0.5 > value
    small, tiny = result.small_groups
    assert (small.rate_before, small.rate_after) == (0.0, 0.08)
    assert tiny.rate_before is tiny.rate_after is None
    assert Audit.from_json(result.to_json()) == result


def test_with_five_people_in_every_group_the_metric_is_over_all_groups():
    table = decided(n_tiny=0)
    value = p_rule(None, table["after"], sensitive_features=table["group"].to_numpy())
    assert f"Over all 3 groups, the P-rule of label 1 is {value:.1%}." in " ".join(
        audit_of(table).answer
    )


def test_nothing_is_said_where_every_group_is_large():
    assert "not compared" not in " ".join(audit_of(decided(0, 0)).answer)


def test_counts_in_a_frame_say_the_same():
    table = decided()
    inside = audit_frame(table, before="before", after="after", sensitive_features="group")
    rows = audit_of(table)
    assert inside.small_groups == rows.small_groups
    assert [t for t in inside.answer if "compared" in t] == [
        t for t in rows.answer if "compared" in t
    ]


def test_a_gap_leaves_out_groups_without_the_label():
    table = decided(n_tiny=0)
    truth = np.arange(N) // 2 % 2
    truth[table["group"] == "small"] = 0  # no true positive rate
    request = {"constraints": "true_positive_rate_parity"}
    (sentence,) = [
        t for t in audit_of(table, y_true=truth, request=request).answer if "small (" in t
    ]
    assert sentence.endswith("rate 0.0% → 8.0%).")


@pytest.mark.parametrize("ending", ["html", "md"])
def test_the_report_shows_them_on_its_first_screen(tmp_path, ending):
    path = tmp_path / f"report.{ending}"
    report(audit_of(decided()), path)
    text = path.read_text()
    assert text.index("small (25 people, rate 0.0% → 8.0%)") < text.index("Gains")
    assert "Rate after" in text


def test_a_stored_audit_without_rates_still_loads():
    data = audit_of(decided()).to_dict()
    for group in data["small_groups"]:
        del group["rate_before"], group["rate_after"]
    assert [g.rate_after for g in Audit.from_dict(data).small_groups] == [None, None]


def test_tables_say_why_a_very_small_group_has_no_figures(tmp_path):
    table = decided()
    y = np.arange(len(table)) % 2
    report(audit_of(table, y_true=y), tmp_path / "report.md")
    lines = (tmp_path / "report.md").read_text().splitlines()
    tiny = [line for line in lines if line.startswith("| tiny ")]
    assert len(tiny) >= 3
    assert all("too few people" in line for line in tiny)
    assert not any("undefined here" in line or "no labels" in line for line in tiny)


def test_small_intersections_are_listed_with_semicolons():
    table = decided()
    groups = pd.DataFrame({"group": table["group"], "age": "old"})
    result = audit(table["before"], table["after"], sensitive_features=groups)
    (sentence,) = [text for text in result.answer if "not compared" in text]
    assert "rate 0.0% → 8.0%); group = tiny, age = old (3 people" in sentence


def test_a_small_group_whose_rate_is_not_defined_is_in_no_comparison_of_all_groups():
    groups = np.repeat(["a", "b", "one of this label", "none of it"], [50, 50, 10, 10])
    y = np.r_[np.tile([1, 0], 50), 1, np.zeros(19, int)]
    after = np.where(np.arange(len(y)) % 5 == 0, 1 - y, y)
    request = {"constraints": "true_positive_rate_parity"}
    result = audit(after, after, sensitive_features=groups, y_true=y, request=request)
    (sentence,) = [text for text in result.answer if "not compared" in text]
    assert "Over the 3 groups whose rates can be shown, the TPR gap of label 1 is 0.8" in sentence
