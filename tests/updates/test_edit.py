"""Edits by hand: what a user changes on a scorecard, and what comes back."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import commod
from commod import COMMOD, ControlledDebiaser, ScoreColumn
from commod._evidence.points import Points
from commod.edit import Cap, EditRecord, Merge, Round
from commod.exceptions import InputError, TargetWarning
from commod.updates._found_update import card_of_points
from quick_updates import quick_control

TOWNS = ["Brest", "Lyon", "Nice", "Paris"]


def make_people(n, seed):
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.4
    town = np.where(rng.random(n) < 0.7, np.where(group, "Nice", "Lyon"), rng.choice(TOWNS, n))
    income = rng.normal(size=n) + group
    score = 1 / (1 + np.exp(-(income * 0.3 - 1.2 * group + 0.5 * rng.normal(size=n))))
    X = pd.DataFrame({"income": income, "town": town, "age": rng.integers(20, 60, n) * 1.0})
    X.loc[rng.random(n) < 0.1, "income"] = np.nan
    X["score"] = score
    return X, rng.random(n) < score, group


X, Y, GROUP = make_people(600, 0)
GROUPS = {"sensitive_features": GROUP}


@pytest.fixture(scope="module")
def update():
    return quick_control(ScoreColumn("score"), target=0.8).fit(X, Y, **GROUPS)


@pytest.fixture(scope="module")
def expecting():
    """An update whose target is one for new people."""
    return ControlledDebiaser(ScoreColumn("score"), target=0.85).fit(X, Y, **GROUPS)


def edit(update, edits, **others):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TargetWarning)
        return update.edit(edits, X, Y, **GROUPS, **others)


def points_by_hand(card, person):
    """Return the sum of the points of one person from the printed terms of a scorecard."""
    total = card.intercept
    numbers = {c.name: c for c in card.encoding.columns if hasattr(c, "fill")}
    for name, points in card.rows():
        if name in numbers:
            column, value = numbers[name], person[name]
            total += points * ((column.fill if np.isnan(value) else value) - column.centre)
        elif name.endswith(" is missing"):
            total += points * bool(pd.isna(person[name.removesuffix(" is missing")]))
        else:
            column, _, value = name.partition(" = ")
            total += points * (person[column] == value)
    return total


def check_decisions(edited):
    """Compare decisions with the rule: a sum above the cut gains, and one below −cut loses."""
    card, rule = edited.scorecard_, edited.scorecard_.rule
    total = np.array([points_by_hand(card, row) for row in X.to_dict("records")])
    score = X["score"].to_numpy()
    base, distance = score > 0.5, np.abs(score - 0.5)
    cost = 1 - rule.nearness + rule.nearness * distance / rule.mean_distance
    gains = ~base & (total > rule.cut * cost) & rule.may_gain
    losses = base & (total < -rule.cut * cost) & rule.may_lose
    is_near = np.abs(np.abs(total) - rule.cut * cost) < 1e-9
    decided = np.asarray(edited.predict(X), dtype=bool)
    assert ((decided == (base ^ (gains | losses))) | is_near).all()
    assert edited.change_rate_ == (decided != base).mean()


TERMS = ["income", "income is missing", "age", *(f"town = {town}" for town in TOWNS)]
POINTS = st.floats(-2, 2).map(lambda points: round(points, 3))
EDITS = st.one_of(
    st.dictionaries(st.sampled_from(TERMS), POINTS, min_size=1, max_size=4),
    st.sampled_from(["town", "age", "income is missing"]).map(lambda name: {name: "drop"}),
    st.just({"age": "lock"}),
    st.builds(lambda most, name: Cap(-most, most, name), POINTS.map(abs), st.just("town")),
    st.sampled_from([0.1, 0.25, 1.0]).map(Round),
    st.lists(st.sampled_from(TOWNS), min_size=2, unique=True).map(lambda v: Merge("town", v)),
)


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(first=EDITS, second=EDITS, offset=st.sampled_from(["target", "keep"]))
def test_an_edited_update_decides_as_its_lines_added_by_hand(update, first, second, offset):
    is_locked = second != {"age": "lock"} and first == {"age": "lock"}
    edits = [second, first] if is_locked else [first, second]
    edited = edit(update, edits, offset=offset)
    check_decisions(edited)
    if isinstance(edits[1], dict):
        after = dict(zip(edited.term_names_, edited.scorecard_.points.tolist(), strict=True))
        stated = {name: p for name, p in edits[1].items() if isinstance(p, float)}
        assert {name: after[name] for name in stated} == stated
    assert edited.scorecard_.intercept == update.scorecard_.intercept
    if offset == "keep":
        assert edited.scorecard_.rule == update.scorecard_.rule
    assert edited.undo() is update


def test_all_figures_are_those_of_the_edited_decisions(update):
    edited = edit(update, Round(0.25), by="Ann", note="for the clerk")
    rate = commod.metrics.p_rule(None, edited.predict(X), sensitive_features=GROUP, pos_label=True)
    assert edited.fairness_ == pytest.approx(rate)
    assert edited.reached_ and edited.fairness_ >= 0.8
    (record,) = edited.edits_
    assert (record.by, record.note, record.refit) == ("Ann", "for the clerk", False)
    assert record.when.endswith("+00:00")
    assert record.before.fairness == update.fairness_
    assert record.after.n_losses == edited.n_losses_
    assert EditRecord.from_dict(record.to_dict()) == record
    assert "edited by hand once, by Ann" in edited.status_
    assert update.edits_ == ()


def test_given_points_are_kept_bit_for_bit(update):
    encoding, rng = update.scorecard_.encoding, np.random.default_rng(0)
    for scale in (1e-6, 1.0, 1e6):
        for row in scale * rng.normal(size=(20, encoding.n_terms)):
            concept = rng.integers(0, 2, len(row))
            card = card_of_points(encoding, Points(row, 0.1), concept, np.ones(len(row)))
            assert (card.points == row).all()
            assert card.intercept == 0.1


def test_a_merge_takes_the_mean_of_people(update):
    towns = X["town"].value_counts()
    merged = edit(update, [{"town = Lyon": 1, "town = Nice": 3}, Merge("town", ["Lyon", "Nice"])])
    after = dict(merged.scorecard_.rows())
    mean = (towns["Lyon"] + 3 * towns["Nice"]) / (towns["Lyon"] + towns["Nice"])
    assert after["town = Lyon"] == after["town = Nice"] == pytest.approx(mean)


def test_pinned_and_edited_lines_keep_their_points_bit_for_bit(update):
    terms = dict(update.scorecard_.rows())
    pin = [name for name in terms if name.startswith("town")][:2]
    refitted = edit(update, {"age": 0.0123}, pin=pin, refit=True)
    after = dict(refitted.scorecard_.rows())
    assert {name: after[name] for name in pin} == {name: terms[name] for name in pin}
    assert after["age"] == 0.0123
    only_edited = edit(update, {"age": 0.0123})
    assert refitted.change_rate_ <= only_edited.change_rate_
    assert refitted.reached_
    check_decisions(refitted)


def test_a_refit_without_pins_is_the_fit_and_one_beside_pins_needs_about_as_many_changes(update):
    again = edit(update, {}, refit=True)
    assert again.scorecard_.rows() == update.scorecard_.rows()
    assert again.scorecard_.rule == update.scorecard_.rule
    names = [name for name, _ in update.scorecard_.rows()]
    refitted = edit(update, {}, pin=names[::2], refit=True)
    assert refitted.reached_
    assert refitted.change_rate_ <= 1.05 * update.change_rate_


def test_a_refit_finds_fewer_changes_where_a_line_was_spoilt(update):
    spoilt = edit(update, {"income": -2 * dict(update.scorecard_.rows())["income"]})
    refitted = edit(spoilt, {}, pin=["town"], refit=True)
    assert refitted.change_rate_ < spoilt.change_rate_


def test_a_refit_of_one_term_is_as_good_as_a_grid(update):
    town = -0.6
    others = [name for name in TERMS if name not in ("income", "town = Lyon")]
    base = {"town = Lyon": town, "income is missing": 0.0}
    refitted = edit(update, base, pin=others, refit=True)
    grid = [edit(update, {**base, "income": income}) for income in np.linspace(-0.6, 0.6, 9)]
    fewest = min((not one.reached_, one.change_rate_) for one in grid)
    found = not refitted.reached_, refitted.change_rate_
    after = dict(zip(refitted.term_names_, refitted.scorecard_.points.tolist(), strict=True))
    assert after["town = Lyon"] == town
    assert found <= (fewest[0], 1.1 * fewest[1])


def test_undo_brings_the_earlier_update_back_bit_for_bit(update):
    once = edit(update, Round(0.5))
    twice = edit(once, {"town": "drop"})
    stored = pickle.loads(pickle.dumps(twice))
    assert stored.scorecard_ == twice.scorecard_
    for back, earlier in ((stored.undo(), once), (stored.undo().undo(), update)):
        assert back.scorecard_ == earlier.scorecard_
        assert back.edits_ == earlier.edits_
        assert (back.predict_proba(X) == earlier.predict_proba(X)).all()
        assert back.to_patch().diff(earlier.to_patch()) == []
    with pytest.raises(InputError, match="nothing to undo"):
        update.undo()


def test_a_new_fit_and_a_clone_have_no_history(update):
    edited = edit(update, Round(0.5))
    assert clone(edited).edits_ == ()
    assert clone(edited).fit(X, Y, **GROUPS).edits_ == ()
    edited.fit(X, Y, **GROUPS)
    assert edited.edits_ == ()
    assert edited.scorecard_ == update.scorecard_


def test_a_locked_column_is_read_no_more(update):
    edited = edit(update, {"age": "lock"}, refit=True)
    assert edited._fitted_param("locked_features") == ["age"]
    assert "age" not in edited.scorecard_.columns_used
    garbage = X.assign(age=[object()] * len(X))
    assert (edited.predict(garbage) == edited.predict(X)).all()
    refitted = clone(edited).fit(X, Y, **GROUPS)
    assert "age" not in refitted.scorecard_.columns_used


def test_an_unreachable_target_says_so_with_the_limit():
    update = quick_control(ScoreColumn("score"), target=0.8, max_changes=0.15).fit(X, Y, **GROUPS)
    assert update.reached_
    with pytest.warns(TargetWarning, match="No cut of the edited points reaches it"):
        edited = update.edit({"town": "drop", "income": "drop"}, X, Y, **GROUPS)
    assert not edited.reached_
    assert f"{edited.fairness_:.3f}" in edited.status_
    assert re.search(r"the target needs at least [\d.]+% changed decisions", edited.status_)


def test_without_points_nothing_changes(update):
    edited = edit(update, Cap(0, 0))
    assert edited.change_rate_ == 0
    assert not edited.scorecard_.points.any()
    assert edited.ratio(X) == pytest.approx(1)
    kept = edit(update, Cap(0, 0), offset="keep")
    assert kept.scorecard_.rule == update.scorecard_.rule
    check_decisions(kept)


def test_on_the_fit_rows_an_unchanged_card_is_expected_to_do_what_it_was(expecting):
    unchanged = edit(expecting, {})
    assert unchanged.expected_.fairness == pytest.approx(expecting.expected_.fairness, abs=0.03)
    assert unchanged.change_rate_ == pytest.approx(expecting.change_rate_, abs=0.02)
    assert unchanged.reached_ == expecting.reached_
    # out-of-fold values tell that points were fitted to these rows
    assert unchanged.expected_.fairness < unchanged.fairness_
    rounded = edit(expecting, Round(0.25))
    assert rounded.reached_ == (rounded.expected_.fairness >= 0.85)


def test_on_other_rows_the_points_are_new_to_them(expecting):
    others, labels, group = make_people(600, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TargetWarning)
        edited = expecting.edit({}, others, labels, sensitive_features=group)
        kept = expecting.edit({}, others, labels, sensitive_features=group, offset="keep")
    assert (edited.scorecard_.points == expecting.scorecard_.points).all()
    assert edited.reached_ == (edited.expected_.fairness >= 0.85)
    assert kept.scorecard_.rule == expecting.scorecard_.rule
    # nothing was fitted to these rows but the cut, so only the chance of samples is lost
    for one in (edited, kept):
        low, high = one.expected_.interval
        assert low < one.expected_.fairness < one.fairness_ < high


def test_caps_hold_after_an_edit_for_new_people():
    update = ControlledDebiaser(ScoreColumn("score"), target=0.95, max_changes=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TargetWarning)
        update.fit(X, Y, **GROUPS)
    for refit in (False, True):
        edited = edit(update, {"age": 0.01}, refit=refit)
        assert 0 < edited.change_rate_ <= 0.05
        assert edited.expected_.change_rate <= 0.05


def test_a_budget_is_kept():
    few, groups = X[:300], {"sensitive_features": GROUP[:300]}
    update = quick_control(ScoreColumn("score"), max_changes=0.05, direction="gains_only")
    edited = update.fit(few, **groups).edit(Round(0.05), few, **groups)
    assert edited.reached_
    assert 0 < edited.change_rate_ <= 0.05


@pytest.mark.parametrize(
    ("edits", "others", "message"),
    [
        ({"twon = Paris": 1}, {}, "Did you mean 'town = Paris'"),
        ({"Paris": 1}, {}, "Did you mean 'town = Paris'"),
        ({"town": 1}, {}, "no term of the scorecard but a column"),
        ({"age": "loose"}, {}, "expected a number of points, 'drop', 'lock'"),
        ({"age": float("nan")}, {}, "expected a number between"),
        ({"age": True}, {}, "expected a number of points"),
        (Round(0), {}, "step must be at least"),
        (Cap(2, -2), {}, "low is above high"),
        (Merge("town", ["Paris"]), {}, "has 1 term; expected two or more"),
        (Merge("town", ["Paris", "Rome"]), {}, "names 'Rome'"),
        ({"rent": "lock"}, {}, "is no column of the scorecard"),
        ([{"age": "lock"}, {"age": 2}], {}, "then gives it points again"),
        ("age", {}, "is no edit"),
        ({"age": 1}, {"pin": ["town"]}, "but refit is False"),
        ({"age": 1}, {"refit": True, "offset": "keep"}, "the offset must follow"),
        ({}, {"refit": True, "pin": ["town", "age", "income"]}, "nothing to fit"),
        ({}, {"refit": True, "pin": ["rent"]}, "pin names 'rent'"),
        ({}, {"offset": "best"}, "offset"),
        ({}, {"by": 1}, "must be text or None"),
        ({"town": "lock", "age": "lock", "income": "lock"}, {}, "locks every column"),
    ],
)
def test_a_wrong_edit_says_what_is_wrong(update, edits, others, message):
    with pytest.raises(InputError, match=message):
        update.edit(edits, X, Y, **GROUPS, **others)


def test_updates_that_cannot_be_edited_say_so():
    promised = quick_control(ScoreColumn("score"), target=0.6, confidence=0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TargetWarning)
        promised.fit(X, Y, **GROUPS)
    with pytest.raises(InputError, match="would break the promise"):
        promised.edit({}, X, Y, **GROUPS)
    with pytest.raises(InputError, match="COMMOD cannot be edited by hand"):
        COMMOD(ScoreColumn("score")).edit({}, X, Y)


def test_an_audit_and_its_report_tell_the_edits(update, tmp_path):
    edited = edit(update, {"town = Paris": 0.5}, by="<b>Ann</b>", note="asked by the branch")
    base = X["score"].to_numpy() > 0.5
    people = {"y_true": Y, **GROUPS, "X": X[["town"]]}
    audits = [
        commod.audit(base, one.predict(X), **people, explanation=commod.explain(one, X))
        for one in (update, edited)
    ]
    assert "edits" not in audits[0].to_dict()
    assert audits[1].edits == edited.edits_
    assert commod.Audit.from_json(audits[1].to_json()).edits == edited.edits_
    for name in ("report.html", "report.md"):
        commod.report(audits[1], tmp_path / name)
        text = (tmp_path / name).read_text()
        assert "changed by hand after the fit" in text
        assert "set the points of town = Paris to +0.5" in text.replace("\\", "")
        assert "asked by the branch" in text
        assert "<b>Ann" not in text
