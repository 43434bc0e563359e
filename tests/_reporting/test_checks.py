"""The severity of checks, and the figures in their sentences: value and bar never read alike."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from audits import audit as full_audit
from hypothesis import given, settings
from hypothesis import strategies as st

from commod import Audit, audit
from commod._record.audit import Calibration, Proxy, StabilitySummary
from commod._record.checks import Check
from commod._record.explanation import Estimate
from commod._reporting.audit import checks
from commod._reporting.audit.checks import CHECKS
from commod.metrics._constraint import get_constraint

STORED = Path(__file__).parent / "stored" / "audit.json"
DOCS = Path(__file__).parents[2] / "docs" / "audit.md"
SEVERITIES = ("blocks signing", "needs a reason", "for information")


def answer(code, evidence):
    """Return the check of one code on this evidence."""
    (check,) = checks.checks_of(evidence, [c for c in CHECKS if c.code == code])
    return check


# -- severity ---------------------------------------------------------------------------------


def test_every_check_has_a_severity_and_the_docs_give_its_reason():
    text = DOCS.read_text()
    rows = re.findall(r"^\| (CM\d+) \| .+? \| (.+?) \|", text, flags=re.MULTILINE)
    assert dict(rows) == {check.code: check.severity for check in CHECKS}
    assert {check.severity for check in CHECKS} == set(SEVERITIES)
    reasons = text[text.index("#### What a failed check means") :]
    assert all(check.code in reasons for check in CHECKS)


def test_an_audit_states_the_severity_of_its_checks_and_keeps_it_in_json():
    decisions = np.tile([0, 1, 1, 1], 50), np.tile([1, 1, 1, 0], 50)
    result = audit(*decisions, sensitive_features=["a", "b"] * 100, request={"target": 0.8})
    severity = {check.code: check.severity for check in result.checks}
    assert severity["CM101"] == "blocks signing" and severity["CM204"] == "for information"
    assert Audit.from_json(result.to_json()).checks == result.checks


def test_an_audit_of_version_0_1_gets_the_severities_of_its_codes():
    stored = Audit.from_json(STORED.read_text("utf-8"))
    now = {check.code: check.severity for check in CHECKS}
    assert stored.checks and all(check.severity == now[check.code] for check in stored.checks)
    assert Audit.from_json(stored.to_json()) == stored


def with_failed(severity, n=6):
    failed = [Check(f"CM90{i}", f"Question {i}", "failed", "No.", severity) for i in range(n)]
    return replace(full_audit(), checks=tuple(failed))


def test_a_good_update_reads_as_one_that_can_be_signed():
    informed = with_failed("for information")
    for text in (repr(informed), informed._repr_html_(), informed.verdict):
        assert "Nothing blocks signing." in text and "6 failed" not in text
    blocked = with_failed("blocks signing", 1)
    for text in (repr(blocked), blocked._repr_html_(), blocked.verdict):
        assert "1 check blocks signing: CM900." in text


@pytest.mark.parametrize("severity", SEVERITIES)
def test_reports_and_notebooks_group_the_checks_by_severity(severity):
    from commod._reporting.render.page import render_html, render_markdown

    result = with_failed(severity, 2)
    assert f"Checks: {severity}" in result._repr_html_()
    heading = severity[:1].upper() + severity[1:]
    assert f"<h3>{heading}</h3>" in render_html(result)
    assert f"### {heading}" in render_markdown(result)
    for text in (render_html(result), render_markdown(result)):
        assert result.verdict in text.replace("&#39;", "'") and "2 failed" not in text


# -- figures beside their bars ----------------------------------------------------------------

NEAR = st.sampled_from([1e-12, 1e-9, 3e-7, 1e-5, 4e-5, 3e-4, 4e-3, 0.04]).flatmap(
    lambda size: st.floats(size / 2, size)
)
BARS = st.floats(0.1, 0.9).flatmap(
    lambda bar: st.sampled_from([bar, round(bar, 1), round(bar, 2), round(bar, 4)])
)


def evidence(**figures):
    """Return stand-in evidence on 10,000 rows."""
    given = {"rows": "rows", "n": 10_000, "level": 0.95}
    given["changes"] = SimpleNamespace(n_changes=100, n_gains=100, n_losses=0)
    given["card"] = None
    given["counted"] = SimpleNamespace(decision_shares=(0.01, 0.5, 0.51))
    return SimpleNamespace(**{**given, **figures})


def request(**entries):
    names = ("target", "max_changes", "max_accuracy_loss", "max_volume_change")
    return SimpleNamespace(**{**dict.fromkeys(names), "pos_name": "yes", **entries})


def fairness(metric, before, after):
    return SimpleNamespace(
        metric=metric, name=f"{metric} of yes", before=before, after=after, n=10_000
    )


def of_target(value, target, name):
    constraint = get_constraint(name)
    after = Estimate(value, value - 0.05, value)
    if not constraint.higher_is_fairer:
        after = Estimate(value, value, value + 0.05)
    metric = fairness(constraint.metric, Estimate(target, None, None), after)
    metric.bound, metric.is_kept = target, bool(constraint.is_met(value, target))
    metric.constraints, metric.is_approximate = name, False
    return evidence(asked=(metric,), fairness=(metric,))


NUMBER = r"(-?\d(?:[\d.,e-]*\d)?%?)"
VALUE_AND_BAR = {  # where a sentence has the value that was compared, and its bar
    "CM101": rf"is {NUMBER} on the .* at (?:least|most) {NUMBER}\.",
    "CM103": rf"was (?P<bar>{NUMBER}) before the update and is (?P<value>{NUMBER}) after",
    "CM104": rf"changes {NUMBER} of the .* allows {NUMBER}\.",
    "CM106": rf"loss is {NUMBER} of all .* allows {NUMBER}\.",
    "CM107": rf"changes by {NUMBER} of all .* allows {NUMBER}\.",
    "CM201": rf"p = {NUMBER}, .* below {NUMBER}\.",
    "CM204": rf"makes {NUMBER} changes .* times that, {NUMBER}\.",
    "CM301": rf"changes \({NUMBER}\)\. This check requires {NUMBER}\.",
    "CM401": rf"between {NUMBER} and .* allows {NUMBER}\.",
    "CM402": rf"grows by {NUMBER}\. .* together {NUMBER}\.",
    "CM501": rf"have {NUMBER} of the people .* requires {NUMBER}\.",
}


def assert_failing_figures_differ(code, figures):
    check = answer(code, figures)
    assert check.state == "failed", check
    match = re.search(VALUE_AND_BAR[code], check.sentence)
    assert match, check.sentence
    names = match.groupdict() or {"value": match[1], "bar": match[2]}
    value, bar = (text.replace(",", "") for text in (names["value"], names["bar"]))
    assert value.endswith("%") == bar.endswith("%")
    value, bar = (float(text.rstrip("%")) for text in (value, bar))
    assert value != bar, check.sentence
    return value, bar, check


@settings(max_examples=30, deadline=None)
@given(BARS, NEAR, st.sampled_from(["demographic_parity", "equalized_odds"]))
def test_a_missed_target_reads_as_missed(target, distance, name):
    is_floor = name == "demographic_parity"
    missed = of_target(target - distance if is_floor else target + distance, target, name)
    for code in ("CM101", "CM103"):
        value, bar, _ = assert_failing_figures_differ(code, missed)
        assert (value < bar) == is_floor
    check = answer("CM102", missed)
    assert check.state == "failed"
    low, high, bar = (
        float(text.rstrip("%"))
        for text in re.search(
            rf"between {NUMBER} and {NUMBER} .* at (?:least|most) {NUMBER}\.", check.sentence
        ).groups()
    )
    assert high < bar if is_floor else low > bar, check.sentence


@settings(max_examples=25, deadline=None)
@given(BARS, NEAR)
def test_a_cap_that_is_exceeded_reads_as_exceeded(cap, distance):
    n = cap + distance  # of a share, with one person
    changes = SimpleNamespace(n_changes=n, n_gains=n, n_losses=0)
    quality = SimpleNamespace(n_errors_introduced=n, n_errors_fixed=0)
    for code, name in (
        ("CM104", "max_changes"),
        ("CM106", "max_accuracy_loss"),
        ("CM107", "max_volume_change"),
    ):
        figures = evidence(n=1, changes=changes, quality=quality, request=request(**{name: cap}))
        value, bar, _ = assert_failing_figures_differ(code, figures)
        assert value > bar


@settings(max_examples=25, deadline=None)
@given(NEAR)
def test_figures_just_beyond_the_bars_of_commod_read_as_beyond(distance):
    quality = SimpleNamespace(
        n_errors_introduced=9, n_errors_fixed=2, p_value=0.05 * (1 - distance)
    )
    value, bar, _ = assert_failing_figures_differ("CM201", evidence(quality=quality))
    assert value < bar
    stability = replace(full_audit().stability, agreement=0.7 - distance, n_refits=10, n_asked=10)
    assert isinstance(stability, StabilitySummary)
    value, bar, _ = assert_failing_figures_differ("CM501", evidence(stability=stability))
    assert value < bar
    loss = Estimate(0.02 + distance, 0.01 + distance, 0.03 + distance)
    areas = {"auc_before": Estimate(0.8, None, None), "auc_after": Estimate(0.78, None, None)}
    scores = SimpleNamespace(**areas, auc_loss=loss)
    value, bar, _ = assert_failing_figures_differ("CM401", evidence(quality=scores))
    assert value > bar
    worse = Calibration((), (), 0.05, 0.05 + 0.02 + 0.01 + distance)  # 0.01: 1 / sqrt(10,000)
    value, bar, _ = assert_failing_figures_differ("CM402", evidence(calibration=worse))
    assert value > bar


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 10**6))
def test_counts_just_beyond_the_bars_of_commod_read_as_beyond(n):
    limit = SimpleNamespace(is_exact=True, n_changes=3 * n // 2 + 1, n_fewest=n)
    value, bar, _ = assert_failing_figures_differ("CM204", evidence(limit=limit))
    assert value > bar
    n_described = (4 * n - 1) // 5
    segments = SimpleNamespace(segments=(1, 2), n_described_gains=n_described, n_described_losses=0)
    figures = evidence(segments=segments, changes=SimpleNamespace(n_changes=n))
    value, bar, _ = assert_failing_figures_differ("CM301", figures)
    assert value < bar


def test_the_first_screen_shows_a_missed_target_as_missed():
    from commod._reporting.render.page import render_html, render_markdown

    before = np.r_[[1] * 7998, [0] * 2002, np.ones(10_000, int)]
    group = np.repeat(["a", "b"], 10_000)
    result = audit(before, before, sensitive_features=group, request={"target": 0.8})
    assert "0.7998" in repr(result) and "0.7998" in result._repr_html_()
    screen = render_html(result).split("</section>")[0]
    assert re.search(r"0\.7998 <span class=\"arrow\">→</span> 0\.7998", screen)
    page = render_markdown(result).replace("\\", "")
    assert "0.7998 before, 0.7998 after" in page
    assert re.search(r"\| P-rule of label 1 \(asked for\) .* 0\.7998 ", page)


# -- the update and the group: relative to the base score --------------------------------------


def of_proxy(update, base, difference, by_ratio=True):
    proxy = Proxy("b", by_ratio, Estimate(*update), base and Estimate(*base), difference)
    return evidence(proxies=(proxy,), provenance=SimpleNamespace(reads_group=False))


def test_an_update_that_predicts_the_group_no_better_than_the_base_score_does_not_fail():
    base = (0.757, 0.74, 0.774)
    alike = of_proxy((0.752, 0.735, 0.769), base, Estimate(-0.005, -0.012, -0.001))
    check = answer("CM302", alike)
    assert check.state == "passed"
    assert "0.75," in check.sentence and "base score: 0.76," in check.sentence
    unsure = of_proxy((0.76, 0.74, 0.78), base, Estimate(0.003, -0.01, 0.016))
    assert answer("CM302", unsure).state == "not enough evidence"
    better = of_proxy((0.83, 0.81, 0.85), base, Estimate(0.073, 0.06, 0.086))
    check = answer("CM302", better)
    assert check.state == "failed"
    assert "0.83," in check.sentence and "base score: 0.76," in check.sentence


def test_without_scores_the_bar_on_the_area_is_absolute():
    assert answer("CM302", of_proxy((0.75, 0.72, 0.78), None, None)).state == "failed"
    assert answer("CM302", of_proxy((0.69, 0.67, 0.71), None, None)).state == "not enough evidence"
    assert answer("CM302", of_proxy((0.6, 0.5, 0.7), None, None)).state == "passed"


@settings(max_examples=30, deadline=None)
@given(NEAR)
def test_an_area_just_beyond_its_bar_reads_as_beyond(distance):
    check = answer("CM302", of_proxy((0.75, 0.7 + distance, 0.78), None, None))
    assert check.state == "failed"
    low = float(re.search(rf"{NUMBER} to", check.sentence)[1])
    assert low > 0.7, check.sentence
    base, excess = (0.75, 0.74, 0.76), Estimate(distance, distance / 2, 2 * distance)
    check = answer("CM302", of_proxy((0.75 + distance, 0.74, 0.76), base, excess))
    area, bar = re.search(rf"b \({NUMBER}, .*base score: {NUMBER},", check.sentence).groups()
    assert check.state == "failed" and float(area) > float(bar), check.sentence


def test_the_difference_to_the_base_score_is_that_of_paired_areas():
    random = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 300)
    shift = np.where(group == "b", -1.0, 0.0)  # the base score predicts a, −r predicts b
    scores = 1 / (1 + np.exp(-(shift + random.normal(size=600))))
    before = (scores > 0.5) * 1
    after = before.copy()
    after[(group == "b") & (random.random(600) < 0.5)] = 1
    result = audit(
        before, after, sensitive_features=group, scores_before=scores, scores_after=scores
    )
    for proxy in result.proxies:
        strengths = [max(e.value, 1 - e.value) for e in (proxy.update, proxy.base_score)]
        assert proxy.difference.value == pytest.approx(strengths[0] - strengths[1])
        assert proxy.difference.low < proxy.difference.value < proxy.difference.high


def test_a_target_without_an_interval_names_its_metric_only_beside_others():
    metrics = [
        of_target(0.9, 0.8, name).asked[0] for name in ("demographic_parity", "equalized_odds")
    ]
    for metric in metrics:
        metric.after = Estimate(0.9, None, None)
    alone = answer("CM102", evidence(asked=tuple(metrics[:1]), fairness=tuple(metrics)))
    assert (alone.state, alone.sentence) == (
        "not enough evidence",
        "There is no interval on these rows.",
    )
    both = answer("CM102", evidence(asked=tuple(metrics), fairness=tuple(metrics)))
    assert both.sentence == " ".join(
        f"There is no interval of the {metric.name} on these rows." for metric in metrics
    )
