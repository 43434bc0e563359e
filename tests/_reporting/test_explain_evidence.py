"""Explanations of updates whose points are evidence: each side has its own reasons."""

import numpy as np
import pandas as pd
import pytest
from test_explain import all_edited, edited, make_table, one_hot, some_rows, terms_of

from commod import ScoreColumn
from commod._record.explanation import Card
from commod._record.plain import from_plain, to_plain
from commod._reporting.explain import explain
from commod._reporting.explain.reasons import RatioParts
from commod.exceptions import InputError
from commod.rivals import MinimalFlip
from evidence_updates import with_evidence
from quick_updates import quick_control

N = 800
WAYS = {  # of the update, and of the rule; together they are every branch of both
    "near, low scores are good": (
        {"favorable_label": 0, "points": "per bin", "max_margin": 0.2},
        {"nearness": 0.4},
    ),
    "gains": ({}, {"may_lose": False, "nearness": 1.0}),
    "losses": ({"favorable_label": 0}, {"may_gain": False}),
}


@pytest.fixture(scope="module")
def rows():
    return make_table(N, 0)


@pytest.fixture(scope="module")
def new():
    return make_table(N, 1)[0]


@pytest.fixture(scope="module", params=WAYS)
def update(request, rows):
    X, y, s = rows
    how, rule = WAYS[request.param]
    fitted = quick_control(ScoreColumn("score"), target=0.8, **how)
    return with_evidence(fitted.fit(X, y, sensitive_features=s), X, **rule)


@pytest.fixture(scope="module")
def why(update, new):
    return explain(update, new)


@pytest.fixture(scope="module")
def people(why):
    """Return some people who change, some who do not, and the first ones, whoever they are."""
    return [why.person(row) for row in dict.fromkeys([*some_rows(why), *range(30)])]


def side_of(update, X):
    """Return +1 for people with the unfavourable base decision and −1 for the others."""
    return np.where((X["score"] > 0.5) == (update._favorable_label == 1), -1, 1)


def cost_of(update, X):
    rule, distance = update.scorecard_.rule, np.abs(X["score"] - 0.5)
    return (1 - rule.nearness + rule.nearness * distance / rule.mean_distance).to_numpy()


def evidence_of(update, X):
    """Return the sum of the points of each row, added up from the scorecard's lines."""
    card, terms = update.scorecard_, terms_of(update, X)
    return card.intercept + sum(value * terms[name] for name, value in card.rows())


def test_people_gain_with_high_evidence_and_lose_with_low(update, why, new):
    rule, v, cost = update.scorecard_.rule, evidence_of(update, new), cost_of(update, new)
    near = np.abs(new["score"] - 0.5) <= (update.max_margin or 1)
    side = side_of(update, new)
    gain = (side == 1) & (v > rule.cut * cost) & near & rule.may_gain
    loss = (side == -1) & (v < -rule.cut * cost) & near & rule.may_lose
    assert np.array_equal(why.gain, gain)
    assert np.array_equal(why.loss, loss)
    assert gain.sum() + loss.sum() > 20
    np.testing.assert_allclose(why.raw_ratio, v, atol=1e-9)


# -- the card -------------------------------------------------------------------------------------


def test_the_card_holds_the_rule_and_goes_through_json(update, why):
    rule = update.scorecard_.rule
    assert (why.card.rule.cut, why.card.rule.nearness) == (rule.cut, rule.nearness)
    assert why.card.rule.mean_distance == rule.mean_distance
    assert (why.card.rule.may_gain, why.card.rule.may_lose) == (rule.may_gain, rule.may_lose)
    assert why.card.rule.favorable_above == rule.favorable_above
    assert from_plain(Card, to_plain(why.card)) == why.card


@pytest.mark.parametrize("n_concepts", [1, 3])
def test_points_stay_the_same_in_other_concepts(update, why, new, n_concepts):
    found = explain(update, new, n_concepts=n_concepts)
    split, card = found.card, update.scorecard_
    assert 0 < len(split.concepts) <= min(n_concepts, len(card.columns_used))
    points = {line.term: line.points for c in split.concepts for line in c.lines}
    assert points == dict(card.rows()) and len(points) == len(split.lines)
    columns = [{line.column for line in c.lines} for c in split.concepts]
    assert sum(map(len, columns)) == len(set().union(*columns))  # each column in one concept
    assert found.person(0) == why.person(0)
    assert set(found.concept_of(np.arange(N)).tolist()) <= {-1, *range(n_concepts)}


def test_concepts_are_asked_of_a_scorecard(rows):
    X, _, s = rows
    rival = MinimalFlip(ScoreColumn("score"), strength=0.5).fit(X, sensitive_features=s)
    with pytest.raises(InputError, match="MinimalFlip has no scorecard, hence no concepts"):
        explain(rival, X, sensitive_features=s, n_concepts=3)
    with pytest.raises(InputError, match="n_concepts"):
        explain(rival, X, sensitive_features=s, n_concepts=0)


def test_a_card_that_an_earlier_version_stored_still_loads(why):
    stored = to_plain(why.card)
    del stored["rule"]
    for lines in (stored["lines"], *(concept["lines"] for concept in stored["concepts"])):
        for line in lines:
            del line["counted"]
    card = from_plain(Card, stored)
    assert card.rule is None
    assert [line.text for line in card.lines] == [line.term for line in why.card.lines]


def test_lines_say_what_their_points_count(update, why, new):
    for line in (*why.card.lines, *(line for c in why.card.concepts for line in c.lines)):
        if line.unit == "per unit":
            column, _, centre = line.text.partition(" − ")
            terms = terms_of(update, new)[line.term]
            known = new[column].notna()
            np.testing.assert_allclose(terms[known], new[column][known] - float(centre))
        else:
            assert line.text == line.term


def test_the_points_of_the_concepts_add_up_to_those_of_the_card(why):
    total: dict[str, float] = {}
    for concept in why.card.concepts:
        for line in concept.lines:
            total[line.term] = total.get(line.term, 0.0) + line.points
    for line in why.card.lines:
        assert total[line.term] == pytest.approx(line.points)


def test_a_concept_is_active_for_people_whom_it_pushes_towards_a_change(update, why, new):
    pushes = side_of(update, new)[:, None] * update.scorecard_.contributions * update.concepts(new)
    for concept in why.card.concepts:
        active = pushes[:, concept.number] > 0
        assert concept.n_active == active.sum()
        assert concept.change_if_active.value == pytest.approx(why.changed[active].mean())
        assert concept.change_if_inactive.value == pytest.approx(why.changed[~active].mean())
    best = np.where(pushes.max(axis=1) > 0, pushes.argmax(axis=1), -1)
    assert np.array_equal(why.concept_of(np.arange(N)), np.where(why.changed, best, -1))


def test_the_text_says_the_rule_and_that_points_are_evidence(update, why):
    for text in (repr(why), why._repr_html_()):
        for sentence in why.card.rule.sentences:
            assert sentence.replace("−", "-") in text.replace("−", "-")
        assert "evidence about the groups that the constraint compares" in text
        assert "r &lt; 0" not in text and "r < 0" not in text
        assert why.card.lines[0].text.replace("<", "&lt;" if "<div" in text else "<") in text
    rule = update.scorecard_.rule
    assert ("becomes favourable" in repr(why)) == rule.may_gain
    assert ("becomes unfavourable" in repr(why)) == rule.may_lose
    far = "No decision changes if the score is more than 0.2 from the threshold."
    assert (far in repr(why)) == (update.max_margin is not None)


# -- people ---------------------------------------------------------------------------------------


def test_contributions_add_up_to_r_on_both_sides(update, people, new):
    rule, v = update.scorecard_.rule, evidence_of(update, new)
    ratio = cost_of(update, new) - side_of(update, new) * v / rule.cut
    of_update = update.ratio(new)
    for person in people:
        total = person.start + sum(c.points for c in person.contributions)
        assert total == pytest.approx(ratio[person.row], abs=1e-9)
        if person.closed is None:
            assert total == pytest.approx(of_update[person.row], abs=1e-9)
        else:
            assert person.ratio == 1


def test_a_column_pushes_the_two_sides_in_opposite_directions(update, rows):
    X = rows[0]
    base, columns = update._scored_columns(X)
    parts = RatioParts(update.scorecard_, base.scores, base.threshold)
    added = {column.name: values for column, values in parts.contributions(columns)}
    terms, side, cut = terms_of(update, X), side_of(update, X), update.scorecard_.rule.cut
    points = dict(update.scorecard_.rows())
    for name in ("town", "age"):
        of_column = [t for t in points if t == name or t.startswith(f"{name} ") or f" {name} " in t]
        own = sum(points[t] * terms[t] for t in of_column)
        centred = -side * added[name] * cut - own
        assert np.ptp(centred) < 1e-9
    if update.scorecard_.rule.nearness:
        distance = added["distance from the threshold"]
        np.testing.assert_allclose(distance, cost_of(update, X) - 1, atol=1e-12)
        assert distance.mean() == pytest.approx(0, abs=1e-9)
    start = 1 - side * evidence_of(update, X).mean() / cut
    np.testing.assert_allclose(parts.start, start, atol=1e-6)


def test_reasons_are_the_strongest_contributions(why, people):
    reasons = why.reasons([person.row for person in people], most=2)
    for person, text in zip(people, reasons, strict=True):
        sign = -1 if person.direction else 1
        pushes = sorted((c.points * sign for c in person.contributions), reverse=True)[:2]
        shown = [part.rpartition(" (")[2].removesuffix(")") for part in text.split("; ") if part]
        strong = [push for push in pushes if push > max(0, 0.01 * pushes[0])]
        read = [float(number.replace("−", "-")) for number in shown]
        assert read == pytest.approx([push * sign for push in strong], rel=0.01)


def test_what_would_have_decided_otherwise_does(update, people, new):
    again, pairs = all_edited(new, people)
    assert not (update.predict(again) == [person.after for person, _ in pairs]).any()
    ratios = [other.ratio for _, other in pairs]
    np.testing.assert_allclose(update.ratio(again), ratios, atol=1e-9)
    n_of_changed = sum(person.direction is not None for person, _ in pairs)
    assert n_of_changed > 5
    assert len(pairs) - n_of_changed > 5


def test_a_smaller_change_of_a_number_would_not_do(update, people, new):
    nearer, after = [], []
    for person in people:
        for other in person.kept_by:
            if other.column == "age" and other.text == f"age ≥ {other.value:.0f}":
                nearer.append(edited(new, person.row, "age", other.value - 1))
                after.append(person.after)
    if nearer:
        assert update.predict(pd.concat(nearer)).tolist() == after


def test_no_town_that_would_decide_otherwise_is_left_out(update, people, new):
    rows = [person.row for person in people]
    decided = {t: update.predict(new.iloc[rows].assign(town=t)) for t in ("Oslo", "Rome", "Bern")}
    for i, person in enumerate(people):
        towns = [town for town, after in decided.items() if after[i] != person.after]
        listed = [other.value for other in person.kept_by if other.column == "town"]
        assert bool(towns) == bool(listed)
        assert set(listed) <= set(towns)


def test_sentences_compare_the_points_with_the_cut_of_the_side(update, why, people, new):
    rule, v = update.scorecard_.rule, evidence_of(update, new)
    cuts = rule.cut * cost_of(update, new) * side_of(update, new)
    for person in people:
        row = person.row
        assert person.raw_ratio == pytest.approx(v[row], abs=1e-9)
        assert person.cut == pytest.approx(cuts[row], abs=1e-9)
        if person.closed is not None:
            continue
        side = "a gain needs more than" if cuts[row] > 0 else "a loss needs less than"
        own, _, needed = person.sentence.partition(f", and {side} ")
        own = float(own.rpartition("add up to ")[2].replace("−", "-"))
        needed = float(needed.partition(". ")[0].replace("−", "-"))
        is_beyond = own > needed if cuts[row] > 0 else own < needed
        assert is_beyond == why.changed[row]
        below = "is below 0" if why.changed[row] else "is not below 0"
        assert " So r = " in person.sentence and below in person.sentence


def test_people_who_may_not_change_are_told_why(update, people, new):
    rule, side = update.scorecard_.rule, side_of(update, new)
    far = np.abs(new["score"] - 0.5) > (update.max_margin or 1)
    held = np.where(side == 1, not rule.may_gain, not rule.may_lose) | far
    for person in people:
        assert (person.closed is not None) == held[person.row]
        if person.closed is not None:
            assert (person.ratio, person.kept_by) == (1, ())


def test_segments_may_use_the_distance_that_r_reads(update, why, new):
    used = {c.column for s in why.segments.segments for c in s.conditions}
    if not update.scorecard_.rule.nearness:
        assert "distance from the threshold" not in used
    assert "score" not in used


def test_alternatives_hold_although_the_base_model_reads_the_column_too(rows):
    X, y, s = rows
    X = X.drop(columns="score")
    y = (y + X["is_new"] + (X["town"] == "Oslo") + (X["age"] < 40) < 2).astype(int)
    fitted = quick_control(one_hot(X, y), target=0.9).fit(X, y, sensitive_features=s)
    update = with_evidence(fitted, X, share=0.5, seed=1, nearness=0.3)
    why = explain(update, X)
    assert why.gain.any() and why.loss.any()
    people = [why.person(row) for row in some_rows(why)[8:16]]
    assert {person.score for person in people} == {"asked"}
    again, pairs = all_edited(X, people)
    assert len(pairs) > 10
    assert not (update.predict(again) == [person.after for person, _ in pairs]).any()
    np.testing.assert_allclose(update.ratio(again), [other.ratio for _, other in pairs])
