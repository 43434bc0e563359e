"""Versions of the patch schema: each has its own fields, and earlier files still load."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from patch_files import content_of, mixed_patch
from patches import number
from sklearn.linear_model import LogisticRegression

from commod import Patch, ScoreColumn, frontier
from commod._record.plain import to_plain
from commod.datasets import make_biased
from commod.exceptions import InputError
from commod.patch.content import SCHEMA, LeftOut, Ratio
from commod.patch.file import ADDED, DEFAULTS, as_version, content_digest
from quick_updates import quick_control
from tables_of_cases import every_line

STORED = sorted((Path(__file__).parent / "stored").glob("*.json"))
OLDEST = [path for path in STORED if json.loads(path.read_text("utf-8"))["schema"][-1] == "1"]
DIGEST = "a" * 64


@pytest.fixture(scope="module")
def fitted():
    data = make_biased(400, random_state=0)
    model = LogisticRegression().fit(data.data, data.target)
    update = quick_control(model, target=0.8)
    update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    return data, model, update


def as_file(patch, version):
    """Return a patch as a file of an earlier version holds it."""
    plain = as_version(to_plain(patch.content), version)
    return {**plain, "digest": content_digest(patch.content, version)}


@pytest.mark.parametrize("path", OLDEST, ids=lambda path: path.stem)
def test_a_file_of_version_1_is_upgraded_and_saved_as_version_3(path, tmp_path):
    text = path.read_text("utf-8")
    patch = Patch.load(path, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    content = patch.content
    assert content.schema == SCHEMA == "commod.patch/3"
    assert content.audit is content.left_out is content.versions is None
    assert content.base.scores_digest is content.seen.n_rows is None
    again = Patch.load(patch.save(tmp_path / "patch.json"))
    assert again == patch and json.loads(again.to_json())["schema"] == "commod.patch/3"
    assert set(json.loads(again.to_json())) - set(json.loads(text)) == {
        "left_out",
        "audit",
        "versions",
        "score_edit",
        "calibration",
    }
    assert content.score_edit == "all" and content.ratio.max_margin is None
    assert content.ratio.evidence is None and patch.scorecard.rule is None


def test_a_file_of_version_1_has_no_field_of_version_2():
    text = STORED[0].read_text("utf-8")
    for name in (*ADDED[2], *DEFAULTS):
        tree = json.loads(text)
        *parts, last = name.split(".")
        holder = tree
        for part in parts:
            holder = holder[part]
        holder[last] = None
        with pytest.raises(InputError, match=rf"unknown field '{last}'"):
            Patch.from_json(json.dumps(tree))


@pytest.mark.parametrize("version", [2, 3])
def test_a_later_file_has_every_field_of_version_2(version):
    for name in ADDED[2]:
        tree = as_file(mixed_patch(), version)
        *parts, last = name.split(".")
        holder = tree
        for part in parts:
            holder = holder[part]
        del holder[last]
        with pytest.raises(InputError, match=rf"lacks field '{last}'"):
            Patch.from_json(json.dumps(tree))


@pytest.mark.parametrize("edit", ["all", "changed_only"])
@pytest.mark.parametrize("path", DEFAULTS)
def test_an_early_file_of_version_2_edits_all_scores(path, edit):
    patch = Patch(replace(mixed_patch().content, score_edit=edit))
    tree = as_file(patch, 2)
    *parts, last = path.split(".")
    holder = tree
    for part in parts:
        holder = holder[part]
    del holder[last]
    with pytest.raises(InputError, match="damaged or edited"):
        Patch.from_json(json.dumps(tree))  # its digest counts the field
    if path == "score_edit":
        patch = Patch(replace(patch.content, score_edit="all"))
    tree["digest"] = content_digest(patch.content, 2, absent=[path])
    early = Patch.from_json(json.dumps(tree))
    assert early == patch and early.content.score_edit == patch.content.score_edit
    assert early.content.ratio.max_margin is None


def test_a_version_is_not_changed_by_its_number_alone():
    tree = json.loads(mixed_patch().to_json())
    for schema in ("commod.patch/1", "commod.patch/2"):
        with pytest.raises(InputError, match="unknown field"):
            Patch.from_json(json.dumps({**tree, "schema": schema}))
    with pytest.raises(InputError, match="damaged"):  # version 3 states these fields
        Patch.from_json(json.dumps({**as_file(mixed_patch(), 2), "schema": SCHEMA}))
    tree = json.loads(STORED[0].read_text("utf-8"))
    with pytest.raises(InputError, match="lacks field"):
        Patch.from_json(json.dumps({**tree, "schema": "commod.patch/2"}))
    for schema in ("commod.patch/4", "commod.patch/10"):
        with pytest.raises(InputError, match=r"newer than 'commod.patch/3'"):
            Patch.from_json(json.dumps({**tree, "schema": schema}))
    for schema in ("commod.patch/0", "commod.patch/01", "commod.patch/", "commod.patch/²"):
        with pytest.raises(InputError, match=r"expected 'commod.patch/3'"):
            Patch.from_json(json.dumps({**tree, "schema": schema}))


def test_a_patch_says_where_it_comes_from(fitted):
    data, model, update = fitted
    content = update.to_patch().content
    assert set(content.versions) == {"python", "commod-debiasing", "numpy", "scipy", "scikit-learn"}
    assert content.seen.n_rows == 400 and content.left_out == LeftOut(0, 0)
    scores = model.predict_proba(data.data)[:, 1]
    expected = hashlib.sha256(np.sort(scores).astype("<f8").tobytes()).hexdigest()
    assert content.base.scores_digest == expected
    scored = data.data.assign(score=scores)
    alike = quick_control(ScoreColumn("score"), target=0.8)
    alike.fit(scored, data.target, sensitive_features=data.sensitive_features)
    column = alike.to_patch().content
    assert column.base.digest is None and column.base.scores_digest == expected


def test_a_patch_counts_the_groups_that_were_left_out_and_names_none(fitted):
    update = fitted[2]
    update.groups_left_out_ = (
        SimpleNamespace(name="hidden", n=12),
        SimpleNamespace(name="less", n=3),
    )
    try:
        patch = update.to_patch()
    finally:
        del update.groups_left_out_
    assert patch.content.left_out == LeftOut(2, 15)
    assert "hidden" not in patch.to_json() and "2 groups with 15 people" in str(patch)


@every_line(
    "changes, match",
    [
        ({"audit": "abc"}, "digest of an audit"),
        ({"audit": DIGEST.upper()}, "digest of an audit"),
        ({"left_out": LeftOut(-1, 0)}, "left out"),
        ({"left_out": LeftOut(0, 7)}, "left out"),
        ({"left_out": LeftOut(1, 10**30)}, "left out"),
        ({"schema": "commod.patch/1"}, "schema"),
        ({"score_edit": "some"}, "score_edit must be"),
        ({"ratio": Ratio(1.0, True, True, (1.0,), (0.0,), (), -0.1)}, "max_margin -0.1"),
    ],
)
def test_a_content_of_version_2_that_contradicts_itself_is_refused(changes, match):
    with pytest.raises(InputError, match=match):
        Patch(replace(content_of(number("a", 1.0)), **changes))


@every_line(
    "changes, match",
    [
        ({"scores_digest": "abc"}, "digest of scores"),
        ({"n_rows_seen": 0}, "fitted on 0 rows"),
        ({"n_rows_seen": 999}, "fitted on 999 rows"),  # figures were measured on 1,000 of them
    ],
)
def test_an_origin_that_contradicts_itself_is_refused(changes, match):
    content = content_of(number("a", 1.0))
    if "n_rows_seen" in changes:
        content = replace(content, seen=replace(content.seen, n_rows=changes["n_rows_seen"]))
    else:
        content = replace(content, base=replace(content.base, **changes))
    with pytest.raises(InputError, match=match):
        Patch(content)


@every_line(
    "text, match",
    [
        ("'\\" * 8_000, "16,000 characters"),
        ("demographic parity >= 1e999999999%", "needs a number"),
        ("demographic_parity within a average every", "average and every"),
        ("demographic_parity within a min_rows=" + "9" * 1_900, "a whole number"),
        ("demographic_parity within '" + "a" * 1_400 + "'", "shorter name"),
    ],
)
def test_a_constraint_of_a_patch_is_read_as_carefully_as_one_of_a_user(text, match, tmp_path):
    content = content_of(number("a", 1.0), constraints=text)
    with pytest.raises(InputError, match=match):
        Patch(content)
    path = tmp_path / "patch.json"
    path.write_text(json.dumps({**to_plain(content), "digest": content_digest(content)}), "utf-8")
    with pytest.raises(InputError, match=match):
        Patch.load(path)


def test_differences_name_every_new_field():
    patch = mixed_patch()
    content = patch.content
    for changes, word in (
        ({"audit": "b" * 64}, "audit"),
        ({"left_out": LeftOut(2, 9)}, "left out"),
        ({"score_edit": "changed_only"}, "edited scores"),
        ({"ratio": replace(content.ratio, max_margin=0.25)}, "largest distance"),
        ({"versions": {"numpy": "9.9"}}, "version of"),
        ({"seen": replace(content.seen, n_rows=5000)}, "fit rows"),
        ({"base": replace(content.base, scores_digest="c" * 64)}, "scores"),
    ):
        sentences = patch.diff(Patch(replace(content, **changes)))
        assert sentences and all(word in sentence.lower() for sentence in sentences), sentences


def test_verify_compares_the_scores_where_a_model_has_no_fingerprint(fitted):
    data, model, _ = fitted
    scored = data.data.assign(score=model.predict_proba(data.data)[:, 1])
    update = quick_control(ScoreColumn("score"), target=0.8)
    patch = update.fit(scored, data.target, sensitive_features=data.sensitive_features).to_patch()
    group = data.sensitive_features
    assert patch.verify(scored, group, estimator=ScoreColumn("score")).passed
    other = scored.assign(score=np.clip(scored["score"] + 0.001, 0, 1))
    problems = patch.verify(other, group, estimator=ScoreColumn("score")).problems
    assert any("scores of the base model differ" in problem for problem in problems)


def test_an_update_of_a_frontier_knows_its_rows_too(fitted):
    data, _, update = fitted
    group = {"sensitive_features": data.sensitive_features}
    curve = frontier(update, data.data, data.target, targets=[0.7, 0.8], **group)
    content = curve.select(target=0.7).to_patch().content
    assert content.seen.n_rows == 400
    assert content.base.scores_digest == update.to_patch().content.base.scores_digest
