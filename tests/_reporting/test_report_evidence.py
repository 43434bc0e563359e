"""Reports of updates whose points are evidence: the rule in plain words, and no claim about r."""

import re
from dataclasses import replace

import audits
import numpy as np
import pytest
from test_explain import make_table

from commod import Audit, ScoreColumn, audit
from commod._record.explanation import CardRule
from commod._record.plain import to_plain
from commod._reporting.explain import explain
from commod._reporting.render import explanation_tables
from commod._reporting.render.page import render_html, render_markdown, step_tables
from evidence_updates import with_evidence
from quick_updates import quick_control

RENDERED = {"html": render_html, "markdown": render_markdown}
CLAIMS = r"r &lt; 0|r < 0|on −r|on r\b|in r\b|Points below 0|r is below 0"


@pytest.fixture(scope="module")
def update():
    X, y, s = make_table(900, 0)
    fitted = quick_control(ScoreColumn("score"), target=0.8).fit(X, y, sensitive_features=s)
    return with_evidence(fitted, X, nearness=0.3)


@pytest.fixture(scope="module")
def made(update):
    X, y, s = make_table(900, 1)
    why = explain(update, X)
    return why, audit(
        why.y_before,
        why.y_after,
        sensitive_features=s,
        y_true=y,
        scores_before=why.scores_before,
        scores_after=why.scores_after,
        X=X,
        explanation=why,
    )


def section_of(text, begin, end):
    return text[text.index(begin) : text.index(end)]


def why_of(rendered, found):
    text = RENDERED[rendered](found)
    if rendered == "html":
        text = section_of(text, 'id="why"', 'id="trade-off"')
    else:
        text = section_of(text, "## Why", "## Trade-off")
    return re.sub(r"\\(.)", r"\1", text)


@pytest.mark.parametrize("rendered", RENDERED)
def test_the_rule_is_said_in_plain_words(made, rendered):
    why, found = made
    text = why_of(rendered, found)
    for sentence in why.card.rule.sentences:
        assert sentence in text
    assert "evidence about the groups that the constraint compares" in text
    assert "ositive points push towards the favourable decision" in text
    assert not re.search(CLAIMS, text)
    for line in why.card.lines:
        if line.unit:
            assert " − " in line.text and line.text in text


@pytest.mark.parametrize("rendered", RENDERED)
def test_a_card_whose_sum_is_r_reads_as_before(rendered):
    text = why_of(rendered, audits.audit())
    assert "Points below 0 push towards a change" in text
    assert "evidence" not in text


def test_effects_name_the_changes_that_are_allowed():
    def effects(**moves):
        rule = CardRule(0.4, 0.0, 1.0, True, **moves, sentences=())
        table = explanation_tables.scorecard(replace(audits.card(), rule=rule), "")
        lines = zip(audits.card().lines, table.rows[1:], strict=True)
        return {line.points > 0: row[2].text for line, row in lines}

    assert effects(may_gain=True, may_lose=True) == {
        True: "towards a gain, against a loss",
        False: "towards a loss, against a gain",
    }
    assert effects(may_gain=True, may_lose=False) == {
        True: "towards a gain",
        False: "against a gain",
    }
    assert effects(may_gain=False, may_lose=True) == {
        True: "against a loss",
        False: "towards a loss",
    }


def test_each_step_of_the_slider_says_its_own_rule(made):
    (step, *_) = audits.trade_off().steps
    cards = [
        replace(made[0].card, rule=replace(made[0].card.rule, sentences=(f"Above {cut}.",)))
        for cut in (1, 2)
    ]
    tables = [step_tables(replace(step, card=card))[1] for card in cards]
    assert [table.more.rpartition(". ")[2] or table.more for table in tables] == [
        "Above 1.",
        "Above 2.",
    ]


def test_an_audit_with_evidence_goes_through_json(made):
    found = made[1]
    assert Audit.from_json(found.to_json()) == found
    earlier = found.to_dict()
    del earlier["card"]["rule"]
    for lines in (earlier["card"]["lines"], *(c["lines"] for c in earlier["card"]["concepts"])):
        for line in lines:
            del line["counted"]
    assert to_plain(Audit.from_dict(earlier).card.lines[0])["term"] == found.card.lines[0].term


def test_the_audit_measures_how_well_the_evidence_predicts_the_group(made, update):
    found = made[1]
    X, _, s = make_table(900, 1)
    v = update.raw_ratio(X)
    for proxy in found.proxies:
        inside = s == proxy.group
        pairs = v[inside][:, None] - v[~inside][None, :]
        area = np.mean((pairs > 0) + 0.5 * (pairs == 0))
        assert proxy.update.value == pytest.approx(area, abs=1e-6)
    check = next(check for check in found.checks if check.code == "CM302")
    assert "The evidence" in check.sentence and "−r" not in check.sentence
    assert "the evidence" in render_markdown(found)


def test_the_ledger_gives_reasons_for_both_sides(made):
    why = made[0]
    rows = np.flatnonzero(why.changed)
    assert why.gain.any() and why.loss.any()
    for text in why.reasons(rows):
        assert text and "(+" not in text  # what lowers r
