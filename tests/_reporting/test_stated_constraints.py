"""Audits, reports and patches of several constraints, and of constraints within a column."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commod import Audit, Patch, ScoreColumn, audit, audit_frame, compare, explain, report
from commod._record.audit import FurtherConstraint, Request
from commod._reporting.audit.strata import listed_strata
from commod.bounds import minimal_changes
from commod.constraints import (
    DemographicParity,
    EqualizedOdds,
    Maximum,
    MinimumRate,
    PredictiveParity,
)
from commod.exceptions import DataWarning, InputError
from commod.rivals import ThresholdOptimizer
from commod.updates import _candidates
from quick_updates import quick_control
from tables_of_cases import every_line

LOOSE, STRICT = MinimumRate(0.1), Maximum("selection rate", 0.2)
WITHIN = DemographicParity(ratio=0.8).within("department")


@pytest.fixture(scope="module")
def table():
    """Return decisions where all departments are fair, and everybody together is not.

    Women apply where few are admitted (Simpson's paradox). The update admits more of them in music.
    """
    cells = [  # department, sex, people, admitted, admitted after
        ("law", "f", 300, 60, 60),
        ("law", "m", 100, 20, 20),
        ("maths", "f", 100, 80, 80),
        ("maths", "m", 300, 240, 240),
        ("music", "f", 100, 30, 45),
        ("music", "m", 100, 50, 50),
        ("tiny", "f", 3, 1, 2),
        ("tiny", "m", 40, 10, 10),
    ]
    rows = [
        {"department": d, "sex": s, "old": int(i < a), "new": int(i < b), "y": i % 2}
        for d, s, n, a, b in cells
        for i in range(n)
    ]
    return pd.DataFrame(rows)


def audited(table, constraints, **more):
    return audit(
        table["old"],
        table["new"],
        sensitive_features=table["sex"],
        y_true=table["y"],
        control_features=table["department"],
        request={"constraints": constraints},
        **more,
    )


def check_of(result, code):
    return next(check for check in result.checks if check.code == code)


@every_line(
    "constraint",
    [
        WITHIN,
        DemographicParity(difference=0.1).within("department", over="average", min_rows=20),
        EqualizedOdds(largest=0.1).within("department", min_rows=20),
        MinimumRate(0.3),
        Maximum("selection rate", 0.6),
        PredictiveParity(0.05),
    ],
)
def test_the_audit_measures_what_the_constraint_says(table, constraint):
    people = {"sensitive_features": table["sex"]}
    if constraint.condition is not None:
        people["control_features"] = table["department"]
    result = audited(table, constraint)
    asked = result.fairness[0]
    for figure, decisions in ((asked.before, table["old"]), (asked.after, table["new"])):
        expected = constraint.value(table["y"], decisions, **people)
        assert figure.value == pytest.approx(expected, abs=1e-9)
        assert figure.low <= figure.value <= figure.high
    assert asked.bound == constraint.bound
    assert asked.is_kept == constraint.is_met(table["y"], table["new"], **people)


def test_an_audit_inside_an_engine_has_the_same_figures(table):
    constraints = WITHIN & LOOSE & EqualizedOdds(largest=0.5).within("department", min_rows=20)
    by_rows = audited(table, constraints)
    by_frame = audit_frame(
        table,
        before="old",
        after="new",
        sensitive_features="sex",
        y_true="y",
        request={"constraints": constraints},
    )
    assert by_frame.fairness == by_rows.fairness
    assert by_frame.limit == by_rows.limit


def test_the_digest_of_the_data_knows_the_column_that_people_are_compared_within(table):
    swapped = table.assign(department=table["department"].replace({"law": "maths", "maths": "law"}))
    columns = {"before": "old", "after": "new", "sensitive_features": "sex"}
    request = {"request": {"constraints": WITHIN}}
    for digest in (
        lambda rows: audited(rows, WITHIN).provenance.data_digest,
        lambda rows: audit_frame(rows, **columns, **request).provenance.data_digest,
    ):
        assert digest(table) != digest(swapped)
        assert digest(table) == digest(table.astype({"department": "category"}))
    assert audited(table, LOOSE).provenance.data_digest == (
        audited(swapped, LOOSE).provenance.data_digest  # no constraint reads the column
    )


def test_the_target_is_reached_only_if_all_constraints_are_kept(table):
    assert check_of(audited(table, LOOSE & WITHIN), "CM101").state == "passed"
    missed = audited(table, LOOSE & STRICT)
    assert [metric.is_kept for metric in missed.fairness[:2]] == [True, False]
    assert check_of(missed, "CM101").state == "failed"
    assert check_of(missed, "CM102").state == "failed"
    (further,) = (sentence for sentence in missed.answer if "is not kept" in sentence)
    assert f"; it was {missed.fairness[1].before.value:.3f} before" in further


def test_the_limit_of_a_condition_is_the_sum_over_its_strata(table):
    result = audited(table, WITHIN)
    reached, total = result.fairness[0].after.value, 0
    for department in ("law", "maths", "music"):
        rows = table[table["department"] == department]
        found = minimal_changes(rows["old"], sensitive_features=rows["sex"], target=reached)
        total += found.n_changes
    assert result.limit.is_exact and result.limit.n_fewest == total > 0


def test_the_request_survives_json_and_older_audits_load(table):
    result = audited(table, WITHIN & LOOSE)
    assert result.request.further == (FurtherConstraint("minimum_rate", 0.1),)
    assert result.request.constraints == "demographic_parity within 'department'"
    assert Audit.from_json(result.to_json()) == result
    older = json.loads(result.to_json())
    del older["request"]["further"], older["limit"]["is_exact"], older["limit"]["n_constraints"]
    for metric in older["fairness"]:
        for name in ("title", "bound", "is_kept", "strata", "is_approximate"):
            del metric[name]
    assert Audit.from_dict(older).request.further == ()


# -- few people -------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 60), min_size=3, max_size=3), min_size=1, max_size=8))
def test_no_cell_of_few_people_follows_from_totals_and_listed_strata(sizes):
    sizes = np.array(sizes)
    listed = listed_strata(sizes, np.ones(len(sizes), dtype=bool))
    for shown in (*sizes[listed], sizes[~listed].sum(axis=0)) if listed.any() else ():
        assert all(n == 0 or n >= 5 for n in shown)


@every_line("min_rows", [1, 20])
def test_the_decisions_of_three_people_change_no_figure_by_stratum(table, min_rows):
    other = table.copy()
    few = (other["department"] == "tiny") & (other["sex"] == "f")
    other.loc[few, "old"] = 1 - other.loc[few, "old"]
    other.loc[few, "new"] = 1 - other.loc[few, "new"]
    constraint = DemographicParity(ratio=0.8).within("department", min_rows=min_rows)
    one, two = (audited(t, constraint).fairness[0] for t in (table, other))
    assert one == two
    assert "tiny" not in {stratum.name for stratum in one.strata.listed}
    assert one.strata.listed
    unlisted = set(table["department"]) - {stratum.name for stratum in one.strata.listed}
    women = table[table["department"].isin(unlisted) & (table["sex"] == "f")]
    assert len(women) >= 5  # the total of all women minus those listed


def test_people_who_are_left_out_are_counted_and_named_as_unknown(table):
    result = audited(table, WITHIN)
    strata = result.fairness[0].strata
    assert (strata.n_strata, strata.n_compared, strata.n_left_out) == (4, 3, 1)
    assert strata.n_people + strata.n_people_left_out == result.n == len(table)
    assert check_of(result, "CM309").state == "not enough evidence"


def test_a_condition_that_compares_nobody_is_said_and_not_an_error(table):
    result = audited(table, DemographicParity(ratio=0.8).within("department", min_rows=5000))
    assert result.fairness[0].after.value is None
    assert "leaves nothing to compare" in " ".join(result.answer)
    assert check_of(result, "CM101").state == "not enough evidence"


# -- input ------------------------------------------------------------------------------------


def test_the_column_of_a_condition_comes_from_X_or_is_asked_for(table):
    people = {"sensitive_features": table["sex"], "request": {"constraints": WITHIN}}
    columns = table[["department", "y"]]
    from_X = audit(table["old"], table["new"], X=columns, **people)
    assert from_X.fairness[0] == audited(table, WITHIN).fairness[0]
    with pytest.raises(InputError, match="control_features=data"):
        audit(table["old"], table["new"], **people)


def test_texts_and_records_state_the_same_request(table):
    text = "demographic parity >= 0.8 within department and minimum rate >= 0.1"
    further = (FurtherConstraint("minimum_rate", 0.1),)
    record = Request("demographic_parity within 'department'", 0.8, further=further)
    figures = audited(table, WITHIN & LOOSE).fairness
    assert audited(table, text).fairness == figures
    people = {"sensitive_features": table["sex"], "control_features": table["department"]}
    by_record = audit(table["old"], table["new"], y_true=table["y"], request=record, **people)
    assert by_record.fairness == figures


# -- report and patch -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_a_report_shows_all_constraints_and_strata(table, tmp_path, name):
    result = audited(table, WITHIN & STRICT)
    path, rate = report(result, tmp_path / name), result.fairness[1]
    text = (tmp_path / name if path is None else path).read_text()
    for words in ("law", "maths", "not kept", "1 stratum is compared but not listed"):
        assert words in text
    text = text.replace("\\", "")
    assert "maximum rate, at most 0.2" in text
    assert f": {rate.before.value:.3f} → {rate.after.value:.3f}. Bound: at most 0.2" in text


@pytest.fixture(scope="module")
def update():
    rng = np.random.default_rng(0)
    n = 600
    X = pd.DataFrame({"department": rng.choice(["law", "music"], n), "x": rng.normal(size=n)})
    sex = np.where(rng.random(n) < 0.5, "f", "m")
    X["hint"] = np.where(rng.random(n) < 0.85, sex == "f", sex == "m").astype(float)
    margin = X["x"] - 0.8 * (sex == "f")
    X["score"] = 1 / (1 + np.exp(-margin))
    fitted = quick_control(ScoreColumn("score"), constraints=WITHIN & MinimumRate(0.2))
    return fitted.fit(X, None, sensitive_features=sex), X, sex


def test_a_patch_keeps_all_constraints_and_fits_to_its_audit_only(update, tmp_path):
    fitted, X, sex = update
    patch = fitted.to_patch()
    patch.save(tmp_path / "patch.json")
    loaded = Patch.load(tmp_path / "patch.json")
    assert loaded.content == patch.content
    asked, reached = loaded.content.asked, loaded.content.reached
    assert asked.constraints == "demographic_parity within 'department'"
    assert asked.further == (FurtherConstraint("minimum_rate", 0.2),)
    assert reached.further[0].after == pytest.approx(fitted.values_["minimum_rate"], rel=1e-5)
    assert "Requested at the same time: lowest selection rate" in str(loaded)
    before, after = (X["score"] > 0.5).astype(int), fitted.predict(X)
    same = audit(before, after, sensitive_features=sex, X=X, explanation=explain(fitted, X))
    assert loaded.with_audit(same).content.audit == same.digest
    people = {"sensitive_features": sex, "X": X}
    asked_less = {"constraints": WITHIN, "threshold": 0.5}
    less = audit(before, after, request=asked_less, **people)
    with pytest.raises(InputError, match="further constraints"):
        loaded.with_audit(less)


def test_an_update_with_constraint_objects_is_saved_and_shown(update):
    fitted, X, _ = update
    loaded = pickle.loads(pickle.dumps(fitted))
    assert (loaded.predict(X) == fitted.predict(X)).all()
    assert loaded.request() == fitted.request()
    assert "DemographicParity(ratio=0.8).within('department') & MinimumRate(0.2)" in repr(loaded)
    assert "lowest selection rate" in loaded._repr_html_().lower()


def test_a_patch_that_claims_what_it_misses_is_refused(update):
    from dataclasses import replace

    from commod.patch.checking import check_content

    content = update[0].to_patch().content
    worse = replace(content.reached.further[0], after=0.1)
    with pytest.raises(InputError, match="promised = true"):
        claim = replace(content.reached, further=(worse,), promised=True)
        check_content(replace(content, reached=claim))
    with pytest.raises(InputError, match="figures of 0"):
        check_content(replace(content, reached=replace(content.reached, further=())))
    beyond = replace(content.reached.further[0], before=1.5)
    with pytest.raises(InputError, match=r"before of the patch is 1.5; it"):
        check_content(replace(content, reached=replace(content.reached, further=(beyond,))))


def test_a_comparison_leaves_out_rivals_that_do_not_know_the_condition(update, monkeypatch):
    monkeypatch.setattr(_candidates, "N_TARGETS", 4)
    _, X, sex = update
    stated = DemographicParity(ratio=0.7).within("department")
    ours = quick_control(ScoreColumn("score"), constraints=stated)
    rival = ThresholdOptimizer(ScoreColumn("score"), constraints=stated.with_bound(None))
    with pytest.warns(DataWarning, match="ThresholdOptimizer is left out"):
        lines = compare([ours, rival], X, (X["x"] > 0) * 1, sensitive_features=sex).frame()
    assert set(lines["method"]) == {"ControlledDebiaser"}
    assert lines["fairness"].max() >= 0.7
