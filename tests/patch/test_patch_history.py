"""Patches of edited updates: the history they carry."""

import json
import warnings
from dataclasses import replace
from importlib import resources

import pytest
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, Patch, ScoreColumn
from commod._record.edits import MAX_NOTE
from commod.datasets import make_biased
from commod.edit import Round
from commod.exceptions import InputError, TargetWarning
from commod.patch.file import content_digest

DATA = make_biased(500, n_categories=5, bias=1.5, random_state=3)
GROUPS = {"sensitive_features": DATA.sensitive_features}
CATEGORY = "c0" if "c0" in DATA.data else DATA.data.select_dtypes(exclude="number").columns[0]


@pytest.fixture(scope="module")
def update():
    model = LogisticRegression().fit(DATA.data[["x0", "x1"]], DATA.target)
    scored = DATA.data.assign(score=model.predict_proba(DATA.data[["x0", "x1"]])[:, 1])
    quick = {"max_lines": None, "target_on": "fit_rows"}
    update = ControlledDebiaser(ScoreColumn("score"), target=0.8, **quick)
    return update.fit(scored, DATA.target, **GROUPS), scored


def edit(update, scored, edits, **others):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TargetWarning)
        return update.edit(edits, scored, DATA.target, **GROUPS, **others)


def test_a_patch_carries_its_history_and_undoes_it(update):
    update, scored = update
    first = edit(update, scored, Round(0.5), by="Ann", note="whole numbers")
    second = edit(first, scored, {CATEGORY: "drop"}, offset="keep")
    patch = Patch.from_json(second.to_patch().to_json())
    for stored, own in zip(patch.history, second.edits_, strict=True):
        assert (stored.when, stored.by, stored.edits) == (own.when, own.by, own.edits)
        for figures in ("before", "after"):  # a patch has six digits
            ours, theirs = (vars(getattr(one, figures)) for one in (own, stored))
            assert theirs == pytest.approx(ours, rel=1e-5)
    assert "by Ann: round all points to multiples of 0.5" in str(patch)
    for back, earlier in ((patch.undo(), first), (patch.undo().undo(), update)):
        own = earlier.to_patch().content
        assert replace(back.content, created=own.created) == own
    assert update.to_patch().diff(patch)[0].startswith(("Edits by hand", "Intercept", "Number"))
    with pytest.raises(InputError, match="nothing to undo"):
        update.to_patch().undo()


def test_a_patch_says_who_saved_it_and_the_same_dates_give_the_same_bytes(update):
    update, scored = update
    when, created = "2026-01-02T03:04:05+00:00", "2026-01-03T00:00:00+00:00"
    edited = [edit(update, scored, Round(0.5), by="Ann", when=when) for _ in range(2)]
    one, two = (one.to_patch(by="Ben", created=created) for one in edited)
    assert one.to_json() == two.to_json() and one.history[0].when == when
    assert "Saved by Ben." in str(one) and "Saved by" not in str(one.undo())
    assert one.content.by == Patch.from_json(one.to_json()).content.by == "Ben"
    assert one.diff(edited[0].to_patch(by="Ann", created=created)) == ["Saved by: Ben → Ann."]
    for wrong in ({"by": 7}, {"created": "today"}):
        with pytest.raises(InputError):
            update.to_patch(**wrong)
    with pytest.raises(InputError, match="is no time"):
        edit(update, scored, Round(0.5), when="today")


def test_a_patch_without_edits_has_the_fields_it_always_had(update):
    update, _ = update
    known = "schema library created method base labels asked reached seen ratio left_out audit"
    fields = [*known.split(), "versions", "score_edit", "calibration", "digest"]
    assert list(json.loads(update.to_patch().to_json())) == fields


def test_a_history_that_contradicts_itself_is_refused(update):
    update, scored = update
    content = edit(update, scored, Round(0.5)).to_patch().content
    (step,) = content.history
    figures = replace(step.record.before, fairness=0.99)
    wrong = [
        replace(step, record=replace(step.record, when="yesterday")),
        replace(step, record=replace(step.record, before=figures)),
        replace(step, record=replace(step.record, after=figures)),
        replace(step, earlier=replace(step.earlier, base=replace(step.earlier.base, threshold=2))),
    ]
    for one in wrong:
        with pytest.raises(InputError):
            Patch(replace(content, history=(one,)))
    data = json.loads(Patch(content).to_json())
    data["history"][0]["record"]["edits"][0]["step"] = 0.25
    with pytest.raises(InputError, match="digest"):
        Patch.from_json(json.dumps(data))
    assert content_digest(content) != content_digest(replace(content, history=()))


def test_verification_reads_the_versions_before_edits(update):
    update, scored = update
    group = str(DATA.sensitive_features[0])
    patch = edit(update, scored, Round(0.5), note=f"for group-{group}-people").to_patch()
    assert patch.verify(scored, DATA.sensitive_features).problems == ()
    named = DATA.sensitive_features.astype(str).astype(object)
    named[named == group] = "Martians"
    patch = edit(update, scored, Round(0.5), note="more for Martians").to_patch()
    (problem,) = patch.verify(scored, named).problems
    assert "Martians" in problem


def test_a_note_is_as_long_in_python_as_on_the_page(update):
    update, scored = update
    page = resources.files("commod._explore").joinpath("page/explore.html").read_text("utf-8")
    assert f'id="note" maxlength="{MAX_NOTE}"' in page and MAX_NOTE == 2000
    edited = edit(update, scored, Round(0.5), offset="keep", note="n" * MAX_NOTE)
    assert edited.edits_[0].note == "n" * MAX_NOTE
    with pytest.raises(InputError, match=r"note has 2,001 characters; expected at most 2,000"):
        edit(update, scored, Round(0.5), note="n" * (MAX_NOTE + 1))
