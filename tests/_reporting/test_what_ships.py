"""The signed report and the patch that ships: each carries the other's digest, and is checked."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import reduce
from random import Random

import numpy as np
import pytest
from audits import hostile
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from commod import (
    Audit,
    Patch,
    audit,
    audit_frame,
    explain,
    report,
    verify_report,
)
from commod.datasets import make_biased
from commod.exceptions import InputError, TargetWarning
from quick_updates import quick_control

FORMATS = ("html", "md", "json")


class Pair:
    """A fitted update, its audit on new rows and the patch that carries its digest."""

    def __init__(self, **parameters):
        self.rows, self.new = (make_biased(n, random_state=n) for n in (500, 400))
        self.model = LogisticRegression().fit(self.rows.data, self.rows.target)
        self.update = quick_control(self.model, **({"target": 0.8} | parameters))
        group = self.rows.sensitive_features
        self.update.fit(self.rows.data, self.rows.target, sensitive_features=group)
        self.audit = self.audit_of(self.update)
        self.patch = self.update.to_patch(audit=self.audit)

    def audit_of(self, update, **settings):
        why = explain(update, self.new.data)
        return audit(
            why.y_before,
            why.y_after,
            sensitive_features=self.new.sensitive_features,
            y_true=self.new.target,
            X=self.new.data,
            explanation=why,
            rows="test rows",
            **settings,
        )

    def write(self, folder, suffix):
        patch = self.patch.save(folder / "patch.json")
        return patch, report(self.audit, folder / f"report.{suffix}", patch=self.patch)


@pytest.fixture(scope="module")
def pair():
    return Pair()


@pytest.fixture(scope="module")
def refused():
    """A pair whose update was asked for more confidence than its rows can give."""
    with pytest.warns(TargetWarning):
        return Pair(confidence=0.999)


@pytest.fixture
def files(pair, tmp_path):
    """What is compared is the data of a report, the same in every format: see the next tests."""
    return pair.write(tmp_path, "md")


# -- the digest of an audit ---------------------------------------------------------------------


def test_an_audit_has_a_digest_of_its_content(pair):
    digest = pair.audit.digest
    assert re.fullmatch("[0-9a-f]{64}", digest)
    assert Audit.from_json(pair.audit.to_json()).digest == digest
    assert Audit.from_json(pair.audit.to_json(indent=None)).digest == digest
    assert replace(pair.audit, n=pair.audit.n + 1).digest != digest
    assert replace(pair.audit, ledger=None).digest == digest


def test_the_patch_carries_the_digest_and_its_own_digest_covers_it(pair):
    plain = pair.update.to_patch()
    assert plain.content.audit is None
    tied = plain.with_audit(pair.audit)
    assert tied.content.audit == pair.audit.digest and plain.content.audit is None
    assert tied.digest != plain.digest and tied.sha256 != plain.sha256
    assert tied.content.ratio == plain.content.ratio
    assert f"Audit (SHA-256): {pair.audit.digest}" in str(tied)


# -- what cannot be tied --------------------------------------------------------------------------


def test_an_audit_of_another_request_or_update_is_refused(pair):
    patch = pair.update.to_patch()
    for request, word in (
        ({"target": 0.9}, "target"),
        ({"constraints": "equalized_odds", "target": 0.1}, "constraint"),
        ({"direction": "gains_only"}, "direction"),
        ({"max_changes": 0.3}, "max_changes"),
    ):
        other = replace(pair.audit, request=replace(pair.audit.request, **request))
        with pytest.raises(InputError, match=word):
            patch.with_audit(other)
    unasked = audit([0, 1] * 50, [0, 1] * 50, sensitive_features=["a"] * 50 + ["b"] * 50)
    with pytest.raises(InputError, match=r"target is 0\.8 in the patch and none in the audit"):
        patch.with_audit(unasked)
    card = replace(pair.audit.card, intercept=pair.audit.card.intercept + 1e-12)
    with pytest.raises(InputError, match="scorecard"):
        patch.with_audit(replace(pair.audit, card=card))
    with pytest.raises(InputError, match="needs an Audit"):
        patch.with_audit("audit")


def test_a_report_refuses_a_patch_of_another_audit(pair, tmp_path):
    for patch in (pair.update.to_patch(), Patch(replace(pair.patch.content, audit="a" * 64))):
        with pytest.raises(InputError, match="with_audit"):
            report(pair.audit, tmp_path / "report.html", patch=patch)
    with pytest.raises(TypeError, match="patch must be a Patch"):
        report(pair.audit, tmp_path / "report.html", patch="patch.json")
    assert not list(tmp_path.iterdir())


# -- what a validator reads -------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["html", "md"])
def test_the_report_says_what_ships(pair, tmp_path, suffix):
    _, path = pair.write(tmp_path, suffix)
    text = path.read_text("utf-8").replace("\\", "")
    content = pair.patch.content
    visible = re.split(r"<script|<!--", text)[0]
    assert "What ships" in visible
    assert visible.count(pair.patch.sha256) >= 1 and content.base.digest in visible
    assert content.base.scores_digest in visible and pair.audit.digest in visible
    assert "500" in visible and "400 test rows" in visible
    for name, version in content.versions.items():
        assert name in visible and version in visible
    for figure in (
        f"{content.reached.fairness_after:.3f}",
        f"{pair.audit.fairness[0].after.value:.3f}",
        f"{content.reached.accuracy_after:.1%}",
        f"{pair.audit.quality.accuracy_after.value:.1%}",
        f"{content.reached.change_rate:.1%}",
        f"{pair.audit.changes.rate.value:.1%}",
    ):
        assert figure in visible, figure
    signing = text[text.index("sign-off" if suffix == "html" else "## Sign-off") :]
    assert pair.patch.sha256 in signing


def test_the_gap_is_the_figure_on_test_rows_minus_that_on_fit_rows(pair):
    shipped = pair.patch.shipped_with(pair.audit)
    reached = pair.patch.content.reached
    gaps = {gap.name: gap for gap in shipped.gaps}
    after = pair.audit.fairness[0].after.value
    assert gaps["P-rule of label 1"].difference == pytest.approx(after - reached.fairness_after)
    accuracy = pair.audit.quality.accuracy_after.value
    assert gaps["accuracy"].difference == pytest.approx(accuracy - reached.accuracy_after)
    assert gaps["changed decisions"].test == pair.audit.changes.rate.value
    assert not shipped.same_figures


def test_an_audit_of_the_fit_rows_is_called_so(pair):
    why = explain(pair.update, pair.rows.data)
    same = audit(
        why.y_before,
        why.y_after,
        sensitive_features=pair.rows.sensitive_features,
        y_true=pair.rows.target,
        explanation=why,
    )
    assert pair.patch.with_audit(same).shipped_with(same).same_figures


def test_figures_on_held_out_rows_are_called_so(refused):
    """A promise is tested on half of the rows; without one, the update is that of all rows."""
    promised = Pair(target=0.4, confidence=0.8)
    assert (promised.update.promised_, refused.update.promised_) == (True, False)
    for one, word in ((promised, "held-out rows"), (refused, "fit rows")):
        content, shipped = one.patch.content, one.patch.shipped_with(one.audit)
        assert (shipped.n_fit_rows, shipped.fit_rows) == (500, word)
        assert shipped.n_figure_rows == content.reached.n_rows
        assert (content.reached.n_rows < 500) == (one is promised)


def test_json_has_the_audit_beside_what_ships(pair, tmp_path):
    _, path = pair.write(tmp_path, "json")
    tree = json.loads(path.read_text("utf-8"))
    assert tree["schema"] == "commod.report/2"
    assert tree["patch"] == json.loads(pair.patch.to_json())
    assert tree["text"].startswith("# ")
    assert tree["shipped"]["patch_sha256"] == pair.patch.sha256
    assert Audit.from_json(path.read_text("utf-8")) == pair.audit
    alone = report(pair.audit, tmp_path / "alone.json").read_text("utf-8")
    assert json.loads(alone) == pair.audit.to_dict()


# -- checking the pair --------------------------------------------------------------------------


def test_a_tied_pair_agrees_in_every_format(pair, tmp_path):
    for suffix in FORMATS:
        result = verify_report(*pair.write(tmp_path, suffix))
        assert result.passed and not result.differences, suffix
        assert result.patch_sha256 == pair.patch.sha256
        assert "agree" in str(result)


def test_an_audit_from_counts_is_tied_as_well(pair, tmp_path):
    table = pair.new.data.assign(
        old=pair.model.predict(pair.new.data),
        new=pair.update.predict(pair.new.data),
        group=pair.new.sensitive_features,
    )
    counted = audit_frame(
        table, before="old", after="new", sensitive_features="group", request={"target": 0.8}
    )
    patch = pair.update.to_patch(audit=counted)
    path = patch.save(tmp_path / "patch.json")
    assert verify_report(path, report(counted, tmp_path / "report.html", patch=patch)).passed


def test_names_from_outside_do_not_break_out(pair, tmp_path):
    seal = '"report_sha256":"' + "0" * 64 + '"'
    block = '<script type="application/json" id="commod-report">{}</script>'
    comment = "--><!-- commod-report {} -->"
    texts = ("</script><script>alert(1)</script>", "--> <b>", seal, "\ud800", block, comment)
    together = " ".join((*texts, "a\u2028b", "#{", '{"schema": "commod.report/1"}'))
    evil = replace(hostile(together)[0], request=pair.audit.request, card=None)
    patch = pair.update.to_patch(audit=evil)
    path = patch.save(tmp_path / "patch.json")
    for suffix in FORMATS:
        written = report(evil, tmp_path / f"report.{suffix}", patch=patch)
        assert verify_report(path, written).passed, suffix
        page = written.read_text("utf-8")
        assert "<script>alert" not in page or suffix == "json"


def test_another_patch_is_named_by_the_field_that_differs(pair, files, tmp_path):
    content = pair.patch.content
    for part, changes, field in (
        ("base", {"digest": "b" * 64}, "base_digest"),
        ("base", {"threshold": 0.4}, "threshold"),
        ("seen", {"n_rows": 501}, "n_fit_rows"),
        ("reached", {"accuracy_after": 0.123}, "gaps.accuracy.fit"),
        ("asked", {"target": 0.75}, "target"),
        (None, {"versions": {"numpy": "0.1"}}, "versions.numpy"),
        (None, {"audit": "a" * 64}, "audit_digest"),
        (None, {"audit": None}, "audit_digest"),
        (None, {"created": "2020-01-01T00:00:00+00:00"}, "patch_sha256"),
    ):
        changed = changes if part is None else {part: replace(getattr(content, part), **changes)}
        if "threshold" in changes:  # the calibration map keeps one threshold
            changed["calibration"] = None
        other = Patch(replace(content, **changed)).save(tmp_path / "other.json")
        result = verify_report(other, files[1])
        assert not result.passed
        fields = {difference.field for difference in result.differences}
        assert field in fields and "patch_sha256" in fields, (field, fields)
        assert field in str(result)


def test_a_label_of_another_patch_and_both_values_of_a_difference_are_named(pair, files, tmp_path):
    labels = replace(pair.patch.content.labels, positive=5, favorable=5)
    other = Patch(replace(pair.patch.content, labels=labels)).save(tmp_path / "other.json")
    fields = {difference.field for difference in verify_report(other, files[1]).differences}
    assert {"positive_label", "favorable_label"} <= fields
    base = replace(pair.patch.content.base, threshold=0.4)
    content = replace(pair.patch.content, base=base, calibration=None)  # it is of one threshold
    other = Patch(content).save(tmp_path / "other.json")
    result = verify_report(other, files[1])
    difference = next(d for d in result.differences if d.field == "threshold")
    assert (difference.in_patch, difference.in_report) == ("0.4", "0.5")


def test_a_report_without_a_patch_or_a_patch_without_an_audit_is_told(pair, files, tmp_path):
    lonely = report(pair.audit, tmp_path / "lonely.html")
    with pytest.raises(InputError, match="carries no patch"):
        verify_report(files[0], lonely)
    with pytest.raises(InputError, match="carries no patch"):
        verify_report(files[0], files[0])
    with pytest.raises(InputError, match="cannot be used as a patch"):
        verify_report(files[1], files[1])
    for text in ("", "<html>", "[" * 10_000, "{}"):
        path = tmp_path / "broken.md"
        path.write_text(text)
        with pytest.raises(InputError, match=r"carries no patch|cannot be read"):
            verify_report(files[0], path)


@pytest.fixture(scope="module")
def written(pair, tmp_path_factory):
    """Return the bytes of the files of every format."""
    folder = tmp_path_factory.mktemp("pair")
    return {
        suffix: [path.read_bytes() for path in pair.write(folder, suffix)] for suffix in FORMATS
    }


@settings(max_examples=8)  # each of them reads both files
@given(
    suffix=st.sampled_from(FORMATS),
    which=st.integers(0, 1),
    how=st.sampled_from(["flip", "drop", "insert", "cut"]),
    seed=st.integers(0, 2**32),
)
def test_no_byte_of_either_file_can_be_changed_unseen(
    suffix, which, how, seed, written, tmp_path_factory
):
    random, folder = Random(seed), tmp_path_factory.mktemp("pair")
    paths = [folder / "patch.json", folder / f"report.{suffix}"]
    for path, data in zip(paths, written[suffix], strict=True):
        path.write_bytes(data)
    damaged = paths[which]
    raw = bytearray(damaged.read_bytes())
    at = random.randrange(len(raw))
    if how == "flip":
        raw[at] ^= 1 << random.randrange(8)
    elif how == "drop":
        del raw[at]
    elif how == "insert":
        raw.insert(at, random.randrange(256))
    else:
        raw = raw[:at]
    damaged.write_bytes(raw)
    try:
        result = verify_report(*paths)
    except InputError:
        return
    assert not result.passed and result.differences, (damaged.suffix, how, at)


def _changed(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}x" if isinstance(value, str) else "x"


def _leaves(tree, here=()):
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        if isinstance(value, dict | list) and value:
            yield from _leaves(value, (*here, key))
        else:
            yield (*here, key)


def test_every_field_that_ships_is_compared(pair, tmp_path):
    """An edited field is named even where the report was sealed again."""
    from commod._reporting.render.embedding import sealed

    patch, path = pair.write(tmp_path, "json")
    other, leaves = tmp_path / "edited.json", list(_leaves(json.loads(path.read_text())["shipped"]))

    def value_at(leaf):
        return reduce(
            lambda holder, key: holder[key], leaf, json.loads(path.read_text())["shipped"]
        )

    def verified(*changed):
        edited = json.loads(path.read_text("utf-8"))
        for leaf in changed:
            holder = edited["shipped"]
            for key in leaf[:-1]:
                holder = holder[key]
            holder[leaf[-1]] = _changed(holder[leaf[-1]])
        edited["report_sha256"] = "0" * 64
        other.write_bytes(sealed(json.dumps(edited).encode()))
        return {d.field for d in verify_report(patch, other).differences}

    gaps = {i: gap.name for i, gap in enumerate(pair.patch.shipped_with(pair.audit).gaps)}
    known = [
        leaf
        for leaf in leaves
        if leaf[-1] not in ("kind", "name") and value_at(leaf) not in (None, [])
    ]
    names = {
        ".".join(("gaps", gaps[leaf[1]], leaf[2]) if leaf[0] == "gaps" else leaf) for leaf in known
    }
    assert len(names) > 30 and names <= verified(*known)
    assert {"by", "score_column"} <= verified(("by",), ("score_column",))  # not known, and stated
    for path_to in (("n",), ("changes", "n_changes"), ("request", "target"), ("title",)):
        edited = json.loads(path.read_text("utf-8"))
        holder = edited["audit"]
        for key in path_to[:-1]:
            holder = holder[key]
        holder[path_to[-1]] = _changed(holder[path_to[-1]])
        edited["report_sha256"] = "0" * 64
        other.write_bytes(sealed(json.dumps(edited).encode()))
        fields = {d.field for d in verify_report(patch, other).differences}
        assert "audit_digest" in fields and "report_sha256" not in fields, path_to


def test_a_visible_figure_cannot_be_edited_unseen(pair, tmp_path):
    for suffix in ("html", "md"):
        paths = pair.write(tmp_path, suffix)
        text = paths[1].read_text("utf-8")
        paths[1].write_text(text.replace("What ships", "What shops"), "utf-8")
        (difference,) = verify_report(*paths).differences
        assert difference.field == "report_sha256"


def test_decisions_do_not_depend_on_the_audit(pair):
    scored = pair.new.data.assign(score=pair.model.predict_proba(pair.new.data)[:, 1])
    edited = pair.patch.apply(scored)
    np.testing.assert_array_equal(edited["commod_decision"], pair.update.predict(pair.new.data))


@pytest.mark.parametrize(("confidence", "word"), [(None, "none"), (0.999, "refused")])
def test_a_report_says_whether_the_promise_was_given(pair, refused, confidence, word, tmp_path):
    """A refused promise must not read as one: the request alone says what was asked for."""
    pair = pair if confidence is None else refused
    assert pair.update.promised_ is not True
    file = pair.patch.save(tmp_path / "patch.json")
    path = tmp_path / "report.md"
    report(pair.audit, path, patch=pair.patch)
    lines = path.read_text().splitlines()
    promises = [line for line in lines if line.startswith("| Promise for new people")]
    assert promises[1].startswith(f"| Promise for new people | {word}")
    asked = "none was asked for" if confidence is None else "asked for with 99.9% confidence"
    assert promises[0].startswith(f"| Promise for new people | {asked}")
    (ships,) = [line for line in lines if line.startswith("- What ships:")]
    assert ("promise for new people was refused" in ships) == (confidence is not None)
    assert verify_report(file, path).passed
