"""Explanations: points, concepts and reasons agree with what the update does."""

import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from commod import COMMOD, ScoreColumn
from commod._data.encoding import BinTerms, Encoding, NumericTerms
from commod._record.explanation import Card, Segments
from commod._record.plain import from_plain, to_plain
from commod._reporting.explain import explain, find_segments
from commod._reporting.explain.person import _other_bins, edited_rows
from commod._reporting.explain.reasons import RatioParts, value_text
from commod._statistics.intervals import share_interval
from commod._text import points
from commod.datasets import make_biased
from commod.exceptions import InputError
from commod.rivals import FairScoreTransformer, MinimalFlip
from commod.scorecard import Scorecard
from commod.updates._promise import split_in_halves
from quick_updates import quick_control
from tables_of_cases import every_line

N = 900


def make_table(n, seed):
    """Return a table with numbers, text, booleans and missing values, and a score column."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["g0", "g1"], n)
    is_1 = group == "g1"
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 70, n).astype(float),
            "income": (rng.lognormal(10, 0.4, n) * np.where(is_1, 0.8, 1.1)).round(2),
            "town": np.where(
                is_1, rng.choice(["Oslo", "Rome"], n), rng.choice(["Rome", "Bern"], n)
            ),
            "is_new": rng.random(n) < np.where(is_1, 0.6, 0.3),
        }
    )
    X.loc[rng.random(n) < 0.1, "income"] = np.nan
    X.loc[rng.random(n) < 0.1, "town"] = None
    z = 0.8 * ~is_1 + 0.02 * (X["age"] - 44) + rng.normal(size=n)
    X["score"] = 1 / (1 + np.exp(-z))
    y = (rng.random(n) < X["score"]).astype(int).to_numpy()
    return X, y, group


@pytest.fixture(scope="module")
def rows():
    return make_table(N, 0)


@pytest.fixture(scope="module")
def new():
    return make_table(N, 1)[0]


def with_distance(X):
    """Return a table with the distance of the score from the threshold as a column."""
    return X.assign(**{"distance from the threshold": np.abs(X["score"] - 0.5)})


def fit(rows, kind=quick_control, **how):
    X, y, s = rows
    seed = {"random_state": 0} if kind is COMMOD else {}
    update = kind(ScoreColumn("score"), **seed, **how)
    return update.fit(X, y, sensitive_features=s)


WAYS = {
    "per unit": {"target": 0.9, "borderline": 0.1},  # so that r reads the distance
    "bins": {"target": 0.9, "points": "per bin"},
    "gains only": {"target": 0.85, "direction": "gains_only"},
    "losses only": {
        "target": 0.8,
        "direction": "losses_only",
        "pos_label": 1,
        "favorable_label": 0,
    },
    "confidence": {"target": 0.8, "confidence": 0.6, "points": "per bin"},
    "odds": {"constraints": "equalized_odds", "target": 0.1},
}


@pytest.fixture(scope="module", params=["COMMOD"])  # test_explain_evidence.py has the other form
def update(request, rows, quick_compilation):
    if request.param == "COMMOD":  # with concepts that share columns, one of them the margin
        how = {"reads_score": True, "concepts_by_column": False, "adversary_hidden": (8,)}
        brief = {"epochs": 40, "lambda_fair": 6.0, "lambda_ratio": 0.0}
        return fit(rows, COMMOD, training=how, **brief)
    return fit(rows, **WAYS[request.param])


@pytest.fixture(scope="module")
def why(update, new):
    return explain(update, new)


@pytest.fixture(scope="module")
def simple(rows):
    return fit(rows, **WAYS["per unit"])


@pytest.fixture(scope="module")
def plain(simple, new):
    return explain(simple, new)


@pytest.fixture(scope="module")
def people(why):
    """Return some people who change and some who do not, explained once."""
    return [why.person(row) for row in some_rows(why)]


# -- what an explanation holds --------------------------------------------------------------------


def test_decisions_scores_and_ratio_are_the_updates(update, why, new):
    assert why.n == N
    assert np.array_equal(why.y_after, update.predict(new))
    assert np.array_equal(why.y_before == 1, new["score"] > 0.5)
    assert np.array_equal(why.after, update.predict(new) == 1)
    changes = update.changes(new)
    assert np.array_equal(why.gain, changes.gain)
    assert np.array_equal(why.loss, changes.loss)
    assert np.array_equal(why.changed, changes.changed)
    assert np.array_equal(why.ratio, update.ratio(new))
    assert np.array_equal(why.raw_ratio, update.raw_ratio(new))
    assert np.array_equal(why.scores_before, new["score"])
    assert np.array_equal(why.scores_after, update.predict_proba(new)[:, 1])
    assert changes.n_changes > 0
    assert (why.method, why.negative_label) == (type(update).__name__, 0)


def test_segments_are_those_of_the_decisions_on_columns_that_r_may_read(update, why, new):
    favorable = why.y_before == update._favorable_label
    columns = new
    if "distance from the threshold" in update.scorecard_.columns_used:
        columns = with_distance(new)
    again, segment_of = find_segments(columns, why.gain, why.loss, favorable, skip=["score"])
    assert why.segments == again
    assert np.array_equal(why.segment_of, segment_of)
    used = {c.column for s in why.segments.segments for c in s.conditions}
    assert "score" not in used


def test_many_rows_in_pieces_are_the_same(update, why, new, monkeypatch):
    monkeypatch.setattr("commod._reporting.explain.decisions.CHUNK", 400)
    pieces = explain(update, new)
    assert np.array_equal(pieces.ratio, why.ratio)
    assert pieces.concept_of(range(N)).tolist() == why.concept_of(range(N)).tolist()
    assert pieces.reasons(range(N)) == why.reasons(range(N))
    for one, other in zip(pieces.card.lines, why.card.lines, strict=True):
        assert (one.term, one.points, one.concept) == (other.term, other.points, other.concept)
        assert one.spread == pytest.approx(other.spread)
    counts = [(c.n_active, c.change_if_active) for c in why.card.concepts]
    assert [(c.n_active, c.change_if_active) for c in pieces.card.concepts] == counts


# -- the card -------------------------------------------------------------------------------------


def terms_of(update, X):
    """Return every term of every row by name, read off the scorecard's own columns."""
    encoding = update.scorecard_.encoding
    columns = update._scored_columns(X)[1]
    table = encoding.encode(columns)
    dense = np.zeros((len(X), encoding.n_terms + 1))
    for term, values in zip(table.numeric_terms, table.numeric.T, strict=True):
        dense[:, term] = values
    for codes in table.codes.T:
        dense[np.arange(len(X)), codes] = 1
    return dict(zip(encoding.term_names, dense.T, strict=False))


def test_the_points_add_up_to_r(update, why, new):
    terms = terms_of(update, new)
    total = why.card.intercept + sum(line.points * terms[line.term] for line in why.card.lines)
    np.testing.assert_allclose(total, update.raw_ratio(new), atol=1e-9)


def test_the_concepts_add_up_to_the_total_with_the_opposite_sign(why):
    total: dict[str, float] = {}
    for concept in why.card.concepts:
        for line in concept.lines:
            total[line.term] = total.get(line.term, 0.0) - line.points
    points = {line.term: line.points for line in why.card.lines}
    assert set(points) <= set(total)
    for term, value in total.items():
        assert value == pytest.approx(points.get(term, 0.0), abs=1e-9)


def test_lines_are_sorted_by_what_they_do_to_people(update, why, new):
    terms = terms_of(update, new)
    for lines in (why.card.lines, *(concept.lines for concept in why.card.concepts)):
        spreads = [line.spread for line in lines]
        assert spreads == sorted(spreads, reverse=True)
        for line in lines:
            assert line.spread == pytest.approx(abs(line.points) * terms[line.term].std(), abs=1e-9)
            assert line.points != 0
            assert line.column in line.term


def test_a_line_knows_its_concept(update, why):
    homes = update.scorecard_.concept_points[:, :] != 0
    homes &= update.scorecard_.contributions[:, None] != 0
    names = update.scorecard_.encoding.term_names
    for line in why.card.lines:
        found = np.flatnonzero(homes[:, names.index(line.term)]).tolist()
        assert line.concept == (found[0] if len(found) == 1 else None)
    for concept in why.card.concepts:
        assert all(line.concept == concept.number for line in concept.lines)
        assert set(concept.name.split(", ")) <= {line.column for line in concept.lines}
        assert concept.name.split(", ")[0] == why_strongest(concept)


def why_strongest(concept):
    sizes: dict[str, float] = {}
    for line in concept.lines:
        sizes[line.column] = sizes.get(line.column, 0.0) + line.spread**2
    return max(sizes, key=sizes.get)


def test_concepts_are_centred_on_the_fit_rows(update, rows):
    X, y, s = rows
    values = update.concepts(X)
    if getattr(update, "confidence", None) is not None:  # one half finds the update
        search = clone(update)._prepare(X, y, s, None)
        values = values[split_in_halves(search.rows, search.random_state)[0]]
        assert len(values) < N
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-6)
    assert np.abs(values).max() > 0.1


def test_change_given_a_concept_equals_brute_force(update, why, new):
    values, weights = update.concepts(new), update.scorecard_.contributions
    assert [c.number for c in why.card.concepts] == np.flatnonzero(weights).tolist()
    assert why.card.concepts
    for concept in why.card.concepts:
        active = -weights[concept.number] * values[:, concept.number] > 0
        assert concept.contribution == weights[concept.number]
        assert (concept.n_active, concept.n_inactive) == (active.sum(), (~active).sum())
        for rows, estimate in (
            (active, concept.change_if_active),
            (~active, concept.change_if_inactive),
        ):
            n_changed, size = int(why.changed[rows].sum()), int(rows.sum())
            assert estimate.value == (n_changed / size if size else None)
            low, high = share_interval(n_changed, size, 0.025)
            if size:
                assert (estimate.low, estimate.high) == pytest.approx((float(low), float(high)))


def test_an_update_that_changes_nobody_has_an_empty_card(rows, new):
    X, _, s = rows
    update = quick_control(ScoreColumn("score"), target=0.01).fit(X, sensitive_features=s)
    why = explain(update, new)
    assert (why.card.intercept, why.card.lines, why.card.concepts) == (0.0, (), ())
    assert why.segments.segments == ()
    assert "Nobody changes" in repr(why)
    assert (why.concept_of([0, 1]) == -1).all()
    assert why.reasons([0, 1]) == ["", ""]
    person = why.person(0)
    assert person.contributions == person.kept_by == ()
    assert "r = 1 is not below 0" in person.sentence


def test_records_go_through_json(why):
    assert from_plain(Card, to_plain(why.card)) == why.card
    assert from_plain(Segments, to_plain(why.segments)) == why.segments


# -- people ---------------------------------------------------------------------------------------


def some_rows(why):
    changed = np.flatnonzero(why.changed)[:12].tolist()
    return changed + np.flatnonzero(~why.changed)[:12].tolist()


def test_contributions_add_up_to_r(why, people):
    for person in people:
        total = person.start + sum(c.points for c in person.contributions)
        assert total == pytest.approx(why.raw_ratio[person.row], abs=1e-9)
        points = [c.points for c in person.contributions]
        assert points == sorted(points, reverse=person.direction is None)


def added_to_r(update, X):
    """Return what each column adds to r on some rows."""
    base, columns = update._scored_columns(X)
    parts = RatioParts(update.scorecard_, base.scores, base.threshold)
    return {column.name: values for column, values in parts.contributions(columns)}


def on_fit_rows(update, rows):
    """Return what each column adds to r on the rows that were fitted on."""
    X, y, s = rows
    if getattr(update, "confidence", None) is not None:  # one half finds the update
        search = clone(update)._prepare(X, y, s, None)
        X = X.iloc[split_in_halves(search.rows, search.random_state)[0]]
    return added_to_r(update, X), update.raw_ratio(X)


def test_a_person_starts_from_the_mean_r_of_the_fit_rows(update, why, rows):
    added, ratio = on_fit_rows(update, rows)
    assert why.person(0).start == pytest.approx(ratio.mean(), abs=1e-6)
    np.testing.assert_allclose(sum(added.values()), ratio - ratio.mean(), atol=1e-6)


def test_a_column_adds_nothing_on_average_over_the_fit_rows(update, rows):
    added, _ = on_fit_rows(update, rows)
    for values in added.values():  # columns of categories that share a concept: nearly
        assert abs(values.mean()) < 0.35 * values.std() + 1e-6


def test_the_columns_of_a_concept_add_up_to_its_push(update, why, new):
    added = added_to_r(update, new)
    pushes = -update.scorecard_.contributions * update.concepts(new)
    for concept in why.card.concepts:
        own = {line.column for line in concept.lines}
        others = [c for c in why.card.concepts if c is not concept]
        if own.isdisjoint(line.column for c in others for line in c.lines):
            total = sum(added[name] for name in own)
            np.testing.assert_allclose(-total, pushes[:, concept.number], atol=1e-6)


def test_a_category_that_decides_is_a_reason():
    rng = np.random.default_rng(0)
    s = rng.choice(["a", "b"], 800)
    smoker = rng.random(800) < np.where(s == "b", 0.6, 0.2)
    X = pd.DataFrame({"smoker": smoker, "x": rng.normal(size=800)})
    X["score"] = 1 / (1 + np.exp(-(0.5 - 1.5 * smoker + X["x"])))
    update = quick_control(ScoreColumn("score"), target=0.9).fit(X, sensitive_features=s)
    why, rows = explain(update, X), np.flatnonzero(smoker)
    rows = rows[why.gain[rows]]
    assert len(rows) > 20
    reasons = why.reasons(rows)
    assert all("smoker = True (−" in text for text in reasons)
    for row, text in zip(rows[:5].tolist(), reasons, strict=False):
        assert text.split("; ")[0] in why.person(row).sentence
    # it is the same update with points for not smoking and next to none for smoking
    card = update.scorecard_
    own = np.array(card.encoding.term_columns) == "smoker"
    (j,) = np.flatnonzero((card.concept_points[:, own] != 0).any(axis=1)).tolist()
    by = (0.03 - card.points[own].min()) / card.contributions[j]
    home = np.arange(len(card.contributions)) == j
    other = copy.copy(update)
    other.scorecard_ = replace(
        card,
        intercept=card.intercept - card.contributions[j] * by,
        concept_points=card.concept_points + by * np.outer(home, own),
        concept_intercepts=card.concept_intercepts - by * home,
    )
    np.testing.assert_allclose(other.ratio(X), update.ratio(X), atol=1e-12)
    assert explain(other, X).reasons(rows) == why.reasons(rows)


def test_people_have_their_own_values_and_decisions(why, new):
    for row in some_rows(why)[::5]:
        person = why.person(row)
        assert (person.before, person.after) == (why.y_before[row], why.y_after[row])
        assert person.ratio == why.ratio[row]
        assert person.score_before == why.scores_before[row]
        assert person.score_after == why.scores_after[row]
        direction = "gain" if why.gain[row] else "loss" if why.loss[row] else None
        assert person.direction == direction
        for c in person.contributions:
            if c.column in new:
                value = new[c.column].iloc[row]
                assert c.value == value or (c.value is None and pd.isna(value))


def edited(X, row, column, value):
    one = X.iloc[[row]].copy()
    one[column] = value if isinstance(value, str) else type(value)(value)
    return one


def all_edited(X, people):
    """Return one edited row for each alternative of some people, and the alternatives."""
    pairs = [(person, other) for person in people for other in person.kept_by]
    rows = [edited(X, person.row, other.column, other.value) for person, other in pairs]
    return pd.concat(rows) if rows else X.iloc[:0], pairs


def test_what_would_have_kept_a_decision_really_keeps_it(update, people, new):
    again, pairs = all_edited(new, [person for person in people if person.direction])
    assert len(pairs) > 0
    assert update.predict(again).tolist() == [person.before for person, _ in pairs]
    ratios = [other.ratio for _, other in pairs]
    np.testing.assert_allclose(update.raw_ratio(again), ratios, atol=1e-9)


def test_what_would_have_changed_a_decision_really_changes_it(update, people, new):
    again, pairs = all_edited(new, [person for person in people if not person.direction])
    assert all(person.closed is None for person, _ in pairs)
    if pairs:
        assert not (update.predict(again) == [person.before for person, _ in pairs]).any()


def test_a_smaller_change_of_a_number_would_not_do(simple, new, plain):
    low, high = new["age"].min(), new["age"].max()
    signs, nearer_rows, after = set(), [], []
    for row in some_rows(plain):
        for other in plain.person(row).kept_by:
            if other.column == "age":
                here = new["age"].iloc[row]
                nearer = other.value + np.sign(here - other.value)
                nearer_rows.append(edited(new, row, "age", nearer))
                after.append(plain.y_after[row])
                sign = "≥" if other.value > here else "≤"
                assert other.text == f"age {sign} {other.value:.0f}"
                assert other.is_seen == (low <= other.value <= high)
                signs.add(sign)
    assert simple.predict(pd.concat(nearer_rows)).tolist() == after
    assert signs == {"≥", "≤"}


def test_no_column_that_could_keep_a_decision_is_left_out(simple, new, plain):
    rows = np.flatnonzero(plain.changed)[:12]
    decided = {t: simple.predict(new.iloc[rows].assign(town=t)) for t in ("Oslo", "Rome", "Bern")}
    for i, row in enumerate(rows.tolist()):
        keeping = [town for town, after in decided.items() if after[i] == plain.y_before[row]]
        listed = [other.value for other in plain.person(row).kept_by if other.column == "town"]
        assert bool(keeping) == bool(listed)
        assert set(listed) <= set(keeping)


def test_sentences_of_gains_losses_and_those_who_stay(plain):
    kinds = {"gain": plain.gain, "loss": plain.loss}
    for direction, rows in kinds.items():
        for row in np.flatnonzero(rows)[:5].tolist():
            sentence = plain.person(row).sentence
            before, after = plain.y_before[row], plain.y_after[row]
            assert f"Row {row} changes from {before} to {after}, a {direction} of" in sentence
            assert "is below 0" in sentence
            assert "have kept it" in sentence
    row = int(np.flatnonzero(~plain.changed)[0])
    sentence = plain.person(row).sentence
    assert sentence.startswith(f"Row {row} keeps {plain.y_before[row]}: its points add up to ")
    assert "is not below 0" in sentence
    assert "change it" in sentence
    assert repr(plain.person(row)) == sentence


def test_a_gate_and_a_score_at_the_threshold_are_named(rows, new):
    update = fit(rows, **WAYS["gains only"])
    X = new.assign(score=np.where(np.arange(N) == 7, 0.5, new["score"]))
    why = explain(update, X)
    held = int(np.flatnonzero(why.before & (why.raw_ratio < 0))[0])
    person = why.person(held)
    assert person.ratio == 1.0
    assert person.kept_by == ()
    assert (
        "this update makes gains only, and the decision is already the favourable one"
        in person.sentence
    )
    person = why.person(7)
    assert person.direction is None
    assert "its score equals the threshold" in person.sentence


def test_a_person_alone_is_explained_alike(simple, new, plain):
    row = int(np.flatnonzero(plain.changed)[0])
    alone = explain(simple, new.iloc[[row]]).person(0)
    among = plain.person(row)
    assert alone.contributions == among.contributions
    assert alone.start == among.start
    assert {a.value for a in alone.kept_by} == {a.value for a in among.kept_by}
    assert any(not a.is_seen for a in alone.kept_by)


@every_line("row", [-1, N, "first", 1.5])
def test_rows_that_do_not_exist(row, plain):
    with pytest.raises(InputError, match="rows must be positions from 0 to 899"):
        plain.person(row)


# -- many people at once --------------------------------------------------------------------------


def test_reasons_are_the_persons_strongest_pushes(why, people):
    reasons = why.reasons([person.row for person in people], most=2)
    for person, text in zip(people, reasons, strict=True):
        sign = -1 if person.direction else 1
        strongest = max(c.points * sign for c in person.contributions)
        pushing = [c for c in person.contributions if c.points * sign > 0.01 * strongest][:2]
        pushing = pushing if strongest > 0 else []
        expected = [c.text.rpartition(": ") for c in pushing]
        assert text == "; ".join(f"{head} ({points})" for head, _, points in expected)


def test_the_concept_that_pushed_most(update, why, new):
    pushes = -update.scorecard_.contributions * update.concepts(new)
    best = np.where(pushes.max(axis=1) > 0, pushes.argmax(axis=1), -1)
    assert np.array_equal(why.concept_of(np.arange(N)), np.where(why.changed, best, -1))
    assert np.array_equal(why.concept_of(why.changed), best[why.changed])
    turned = copy.copy(update)  # everybody changes, whatever the concepts say
    turned.scorecard_ = replace(update.scorecard_, intercept=-100.0)
    assert np.array_equal(explain(turned, new).concept_of(why.changed), best[why.changed])
    stayed = np.flatnonzero(why.ratio != 1)
    assert np.array_equal(explain(turned, new).concept_of(stayed), best[stayed])
    assert (best[stayed] == -1).any()
    assert why.concept_of([]).tolist() == []
    assert why.reasons([]) == []


def test_polars_and_pandas_are_explained_alike(simple, new, plain):
    one, other = plain, explain(simple, pl.from_pandas(new))
    assert one.card == other.card
    assert one.segments == other.segments
    rows = np.flatnonzero(one.changed)[:20]
    assert one.reasons(rows) == other.reasons(rows)
    assert one.person(int(rows[0])) == other.person(int(rows[0]))


def test_a_frame_of_segments(plain):
    frame = plain.frame()
    assert frame["rule"].tolist() == [s.text for s in plain.segments.segments]
    assert frame["n_changed"].tolist() == [s.n_changed for s in plain.segments.segments]
    assert len(frame) > 0


def test_the_text_shows_the_total_beside_the_concepts(plain):
    text = repr(plain)
    for words in ("people change", "Who changes", "Why: ", "Concept 0 (", "Concept 1 ("):
        assert words in text
    assert text.index("Why: ") < text.index("Concept 0 (")


def test_no_line_that_counts_looks_like_nothing(simple, new):
    small = copy.copy(simple)
    small.scorecard_ = replace(
        simple.scorecard_, contributions=simple.scorecard_.contributions / 1e4
    )
    text = repr(explain(small, new))
    for line in explain(small, new).card.lines[:8]:
        assert f"{points(line.points)} " in text
    assert "0.0000 " not in text


def test_the_text_says_where_no_rule_describes_a_direction(new):
    before = (np.arange(N) % 2).astype(int)
    after = np.where((new["age"] < 30) & (before == 0), 1, before)
    after[np.flatnonzero(before)[::70]] = 0
    text = repr(explain(None, new, y_before=before, y_after=after))
    assert "gain  age < 30" in text
    assert "No short rule describes the 7 losses." in text


# -- what was asked -------------------------------------------------------------------------------


ASKED = {"target": 0.8, "max_changes": 0.5, "direction": "gains_only", "max_volume_change": 1}


def test_the_request_is_what_was_asked_in_plain_python(rows, new):
    update, new = fit(rows, **ASKED), new.head(50)
    request = explain(update, new).request
    assert (request.constraints, request.target) == ("demographic_parity", 0.8)
    assert (request.direction, request.max_changes) == ("gains_only", 0.5)
    assert (request.max_accuracy_loss, request.max_volume_change) == (None, 1.0)
    assert (request.pos_label, request.favorable_label, request.threshold) == (1, 1, 0.5)
    assert type(request.pos_label) is int
    assert fit(rows).request().target == 0.8
    budget = explain(fit(rows, max_changes=0.05), new).request
    assert (budget.target, budget.max_changes) == (None, 0.05)


def test_settings_name_the_parameters_but_not_the_model(plain):
    settings = plain.settings
    assert settings["target"] == "0.9"
    assert "estimator" not in settings
    assert all(isinstance(value, str) and len(value) <= 60 for value in settings.values())


def test_locked_columns_are_in_no_segment(rows, new):
    X, y, s = rows
    X, day = X.assign(day=pd.Timestamp("2026-01-01")), new.assign(day=pd.Timestamp("2026-01-01"))
    update = quick_control(ScoreColumn("score"), target=0.9, locked_features=["town", "day"])
    why = explain(update.fit(X, y, sensitive_features=s), day)
    used = {c.column for s in why.segments.segments for c in s.conditions}
    assert used
    assert not used & {"town", "day", "score"}
    assert why.reasons(why.changed)


# -- updates without a scorecard ------------------------------------------------------------------


@pytest.fixture(scope="module")
def biased():
    data = make_biased(600, bias=1.5, random_state=0)
    model = LogisticRegression().fit(data.data, data.target)
    return model, data.data, data.target, np.asarray(data.sensitive_features)


class Fussy:
    """A base model that refuses rows with an age it never saw."""

    classes_ = np.array([0, 1])

    def __init__(self, ages):
        self.ages = ages

    def predict_proba(self, X):
        if not np.isin(X["age"], self.ages).all():
            raise RuntimeError("never seen")
        score = 1 / (1 + np.exp(-X["z"].to_numpy(dtype=float)))
        return np.column_stack([1 - score, score])


def one_hot(X, y):
    towns = OneHotEncoder(handle_unknown="ignore"), ["town", "is_new"]
    numbers = make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income"]
    model = make_pipeline(make_column_transformer(towns, numbers), LogisticRegression())
    return model.fit(X, y)


@pytest.fixture(scope="module")
def reading(rows):
    """Return an update of a base model that reads the same columns as r."""
    X, y, s = rows
    X = X.drop(columns="score").assign(age=X["age"].astype(int), town=X["town"].astype("category"))
    y = (y + X["is_new"] + (X["town"] == "Oslo") + (X["age"] < 40) < 2).astype(int)
    update = quick_control(one_hot(X, y), target=0.9)
    return update.fit(X, y, sensitive_features=s), X


def test_alternatives_hold_although_the_base_model_reads_the_column_too(reading):
    update, X = reading
    why = explain(update, X)
    rows = [*np.flatnonzero(why.changed)[:6], *np.flatnonzero(~why.changed)[:4]]
    people = [why.person(int(row)) for row in rows]
    for person in people:
        assert person.score == "asked"
        assert "as it is" not in person.sentence
        again = edited_rows(
            X, person.row, [(other.column, other.value) for other in person.kept_by]
        )
        assert again.dtypes.equals(X.dtypes)
        is_kept = update.predict(again)[1:] == person.before
        assert (is_kept == (person.direction is not None)).all()
        ratios = [other.ratio for other in person.kept_by]
        np.testing.assert_allclose(update.ratio(again)[1:], ratios)
        for other in person.kept_by:
            assert other.text == f"{other.column} = {value_text(other.value)}"
    assert sum(len(person.kept_by) for person in people) > 10
    assert any("was found that would" in person.sentence for person in people)


def test_polars_and_arrays_are_asked_alike(reading, biased):
    update, X = reading
    _, numbers, y, s = biased
    frame = explain(update, X)
    # A missing town is another object after the way through polars, and the base model sees it.
    row = int(np.flatnonzero(frame.changed & X["town"].notna())[0])
    polars = copy.copy(update)
    polars.estimator = FromPandas(update.estimator)
    one, other = frame.person(row), explain(polars, pl.from_pandas(X)).person(row)
    assert (one.kept_by, one.score, one.sentence) == (other.kept_by, "asked", other.sentence)
    array = LogisticRegression().fit(numbers.to_numpy(), y)
    debiaser = quick_control(array, target=0.9).fit(numbers.to_numpy(), y, sensitive_features=s)
    why = explain(debiaser, numbers.to_numpy())
    people = [why.person(int(row)) for row in np.flatnonzero(why.changed)[:4]]
    assert {person.score for person in people} == {"asked"}
    for person in people:
        for a in person.kept_by:
            again = edited_rows(numbers.to_numpy(), person.row, [(a.column, a.value)])
            assert debiaser.predict(again)[1] == person.before


def test_whole_numbers_of_an_array_stay_whole_where_the_new_value_is():
    whole, fraction = (edited_rows(np.arange(6).reshape(3, 2), 1, [("x0", v)]) for v in (7.0, 7.5))
    assert (whole.dtype.kind, whole.tolist()) == ("i", [[2, 3], [7, 3]])
    assert (fraction.dtype.kind, fraction.tolist()) == ("f", [[2, 3], [7.5, 3]])


class FromPandas:
    """A base model that reads pandas frames, asked about those of polars."""

    def __init__(self, model):
        self.model = model
        self.classes_ = model.classes_

    def predict_proba(self, X):
        return self.model.predict_proba(X.to_pandas())


def test_a_base_model_that_does_not_answer_is_said_to_be_taken_as_it_is(rows):
    X, y, s = rows
    X = X[["age"]].assign(z=np.log(X["score"] / (1 - X["score"])))
    X.loc[X["age"] == 43, "age"] = 44.0
    update = quick_control(Fussy(X["age"].unique()), target=0.9, locked_features=["z"])
    update.fit(X, y, sensitive_features=s)
    turned = copy.copy(update)
    turned.scorecard_ = Scorecard(
        encoding=Encoding((NumericTerms("age", 40.0, False),)),
        intercept=-42.5,
        contributions=np.array([1.0]),
        concept_points=np.array([[1.0]]),
        concept_intercepts=np.array([-40.0]),
    )  # who is younger than 43 changes, and nobody is 43
    why = explain(turned, X)
    row = int(np.flatnonzero(why.changed)[0])
    person = why.person(row)
    assert person.score == "not asked"
    assert person.sentence.endswith(
        "With the base score as it is, one other value would have kept it: age ≥ 43."
    )
    update.estimator.ages = [*X["age"].unique(), 43.0]
    person = why.person(row)
    assert (person.score, person.kept_by[0].text) == ("asked", "age = 43")
    assert person.sentence.endswith(" One other value would have kept it: age = 43.")


def test_a_score_that_is_given_stays_as_it_is(new, plain):
    people = [plain.person(row) for row in some_rows(plain)]
    assert {person.score for person in people} == {"given"}
    could_change = [person for person in people if person.closed is None]
    assert len(could_change) > 12
    for person in could_change:
        assert " With the score as it is, " in person.sentence
        assert all(other.column in new for other in person.kept_by)


# -- ids ------------------------------------------------------------------------------------------


def test_a_person_is_found_by_the_label_of_the_row(simple, new, plain):
    named = new.set_axis([f"ID{i}" for i in range(N)])
    why = explain(simple, named)
    row = int(np.flatnonzero(why.changed)[0])
    person = why.person(id=f"ID{row}")
    assert person == why.person(row)
    assert (person.row, person.id) == (row, f"ID{row}")
    assert person.sentence.startswith(f"Row {row} (ID{row}) changes from ")
    counted = plain
    assert counted.person(id=row) == counted.person(row)
    assert counted.person(row).id is None
    assert counted.person(row).sentence == person.sentence.replace(f" (ID{row})", "")
    moved = explain(simple, new.set_axis(range(1000, 1000 + N)))
    assert f"Row {row} (id {1000 + row}) changes" in moved.person(id=1000 + row).sentence
    pairs = explain(simple, new.set_axis(pd.MultiIndex.from_product([range(30), range(30)])))
    assert pairs.person(id=(1, 2)) == pairs.person(32)


def test_labels_that_name_no_row_or_several(simple, new):
    why = explain(simple, new.set_axis(["a", "b", "b", *(f"c{i}" for i in range(N - 3))]))
    with pytest.raises(
        InputError, match=r"id='z' is not in the index of X \(the first .* 'a', 'b'"
    ):
        why.person(id="z")
    with pytest.raises(InputError, match=r"id='b' is the label of 2 rows of X"):
        why.person(id="b")
    with pytest.raises(InputError, match="Pass either the row"):
        why.person()
    with pytest.raises(InputError, match="Pass either the row"):
        why.person(0, id="a")
    with pytest.raises(InputError, match=r"X is DataFrame and has none. Pass the row"):
        explain(simple, pl.from_pandas(new)).person(id="a")


@pytest.mark.parametrize("kind", [MinimalFlip, FairScoreTransformer])  # with groups and without
def test_rivals_are_described_by_their_decisions(biased, kind):
    model, X, y, s = biased
    update = kind(model, strength=0.5).fit(X, y, sensitive_features=s)
    groups = {"sensitive_features": s} if update.needs_sensitive_features else {}
    why = explain(update, X, **groups)
    assert np.array_equal(why.y_after, update.predict(X, **groups))
    assert np.array_equal(why.scores_after, update.predict_proba(X, **groups)[:, 1])
    assert np.array_equal(why.gain, update.changes(X, **groups).gain)
    assert why.card is why.ratio is None
    assert why.request.direction == "any"
    assert why.concept_of([0]).tolist() == [-1]
    assert why.reasons([0]) == [""]
    assert "Why" not in repr(why)
    with pytest.raises(InputError, match=f"{kind.__name__} has no scorecard"):
        why.person(0)


def test_a_rival_that_needs_groups_says_so(biased):
    model, X, y, s = biased
    update = MinimalFlip(model, strength=0.5).fit(X, y, sensitive_features=s)
    with pytest.raises(InputError, match=r"MinimalFlip decides by group: pass explain"):
        explain(update, X)


def test_a_pair_of_models_gives_what_the_update_gives(new, plain):
    columns = with_distance(new).drop(columns="score")
    pair = explain(None, columns, y_before=plain.y_before, y_after=plain.y_after)
    assert pair.segments == plain.segments
    assert np.array_equal(pair.gain, plain.gain)
    assert (pair.method, pair.card, pair.scores_before) == (None, None, None)
    assert (pair.request.pos_label, pair.settings) == (1, {})
    with pytest.raises(InputError, match="A pair of models has no scorecard"):
        pair.person(0)


def test_labels_of_a_pair(new):
    before = np.where(new["age"] < 40, "no", "yes")
    after = np.where(new["age"] < 30, "no", "yes")
    why = explain(None, new, y_before=before, y_after=after, pos_label="yes", favorable_label="no")
    assert (why.pos_label, why.negative_label, why.favorable_label) == ("yes", "no", "no")
    assert why.gain.sum() == 0
    assert why.loss.sum() == ((new["age"] >= 30) & (new["age"] < 40)).sum()
    assert why.segments.segments[0].text == "age ≥ 30"
    assert explain(None, new, y_before=before, y_after=list(after), pos_label="yes").gain.any()
    with pytest.raises(InputError, match=r"'yes', 'no'.*pass the label that counts as positive"):
        explain(None, new, y_before=after, y_after=before)


@every_line(
    "how, message",
    [
        ({}, "Without an update, pass the decisions"),
        ({"y_before": [1] * N}, "Without an update, pass the decisions"),
        ({"y_before": [1, 0], "y_after": [1] * N}, "y_before has 2 rows, but 900 were expected"),
        ({"y_before": [1] * N, "y_after": [0, 1, 2] * 300}, "3 different values"),
        ({"y_before": [1] * N, "y_after": [0] * N, "favorable_label": 5}, "favorable_label=5 is"),
        ({"y_before": [1] * N, "y_after": [0] * N, "level": 95}, "level=95 must lie between"),
    ],
)
def test_arguments_of_a_pair_that_make_no_sense(new, how, message):
    with pytest.raises(InputError, match=message):
        explain(None, new, **how)


def test_arguments_that_do_not_go_with_an_update(simple, new, biased):
    with pytest.raises(InputError, match="y_before and y_after are for update=None"):
        explain(simple, new, y_before=[1] * N, y_after=[1] * N)
    with pytest.raises(InputError, match=r"favorable_label=0, but the update was fitted with 1"):
        explain(simple, new, favorable_label=0)
    with pytest.raises(InputError, match=r"got LogisticRegression. For any other model: explain"):
        explain(biased[0], biased[1])


@settings(max_examples=30)
@given(
    edges=st.lists(st.integers(-400, 400), min_size=1, max_size=6, unique=True),
    value=st.none() | st.integers(-500, 500),
    unit=st.sampled_from([1.0, 0.25]),
)
def test_every_other_bin_is_offered_once_the_nearest_first(edges, value, unit):
    edges = tuple(sorted(edge * unit for edge in edges))
    value = None if value is None else value * unit
    spec = BinTerms("age", edges, has_missing_term=True)
    bin_of = lambda number: int(np.searchsorted(edges, number, side="right"))  # noqa: E731
    offered = list(_other_bins(spec, value))
    bins = [bin_of(number) for number, _ in offered]
    assert [text for _, text in offered] == [spec.term_names[i] for i in bins]
    own = [] if value is None else [bin_of(value)]
    assert sorted([*bins, *own]) == list(range(len(edges) + 1))
    if value is not None:
        # an upper bin begins at its lower edge, and a lower one ends before its upper edge
        away = [edges[i - 1] - value if i > own[0] else value - edges[i] for i in bins]
        assert away == sorted(away)
