"""`commod verify` against files of which one value was altered, with all digests computed anew."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from patch_files import evidence_patch
from tests._reporting import audits
from tied_files import content_of, edited, mixed_patch, tied

from benchmarks import altered_files
from commod import Patch, report, verify_report
from commod._record.audit import FurtherConstraint
from commod.exceptions import InputError
from commod.patch.content import FurtherReached

STORED = Path(__file__).parents[1] / "_reporting" / "stored" / "signed"
SCHEMAS = Path(__file__).parent / "stored"


def constrained():
    """Return a content of whole-number points with two further constraints."""
    content = content_of(*mixed_patch().content.ratio.columns[1:3], intercept=0.5)
    asked = replace(content.asked, further=(FurtherConstraint("minimum_rate", 0.3),))
    reached = replace(content.reached, further=(FurtherReached(0.2, 0.35),))
    return replace(content, asked=asked, reached=reached)


@pytest.fixture(scope="module")
def cases():
    """Return files without edits, with edits and a frontier, and of earlier schemas."""
    first = Patch.load(SCHEMAS / "demographic_parity.json").content  # of schema 1
    second = Patch.load(STORED / "patch.json").content  # of schema 2
    made = {
        "schema 1.json": (first, None),
        "schema 2.json": (second, None),
        "points.md": (mixed_patch().content, None),
        "constraints.json": (constrained(), None),
        "edits.html": (edited(evidence_patch().content), audits.trade_off(2)),
    }
    return {
        name: altered_files.files_of(*tied(content), f".{name.partition('.')[2]}", frontier)
        for name, (content, frontier) in made.items()
    }


def test_what_is_accepted_changes_nothing_that_a_signer_reads(cases, tmp_path):
    for name, files in cases.items():
        assert altered_files.verdict(files, tmp_path) == "accepted", name
    found = altered_files.attack(cases, 50, seed=1)
    faults = [
        (name, one.part, one.path, one.how)
        for name, one, said in found
        if said == "accepted" and altered_files.reason(one) is None
    ]
    assert not faults
    refused = [one for _, one, said in found if said != "accepted"]
    assert {one.part for one in refused} == {"patch", "audit", "report", "text"}
    assert len(refused) > 40


def altered(files, change):
    """Return the files with a change of the data in the report, digests computed anew."""
    data = altered_files.data_of(files)
    change(data)
    return altered_files._resealed(files, files.patch, data)


def written(files, folder):
    """Write two files and return their paths."""
    paths = folder / "patch.json", folder / f"report{files.suffix}"
    for path, data in zip(paths, files[:2], strict=True):
        path.write_bytes(data)
    return paths


@pytest.mark.parametrize("name", ["points.md", "constraints.json", "edits.html"])
def test_an_altered_figure_is_told_with_the_text_that_it_does_not_fit(name, cases, tmp_path):
    files = altered(cases[name], lambda data: data["audit"]["changes"].update(n_gains=40))
    (difference,) = verify_report(*written(files, tmp_path)).differences
    assert difference.field == "the text of the report"
    assert "where the data in it give" in difference.in_report


def test_a_copy_of_the_patch_in_a_report_is_compared_field_by_field(cases, tmp_path):
    files = altered(cases["points.md"], lambda data: data["patch"]["seen"].update(n_columns=9))
    result = verify_report(*written(files, tmp_path))
    assert "patch.seen.n_columns: 4 in the patch, 9 in the report." in map(str, result.differences)
    files = altered(cases["points.md"], lambda data: data["patch"]["ratio"]["columns"].reverse())
    result = verify_report(*written(files, tmp_path))
    assert "patch: its copy has another order of columns." in map(str, result.differences)


def test_data_that_no_report_can_be_written_from_are_refused(cases, tmp_path):
    files = altered(
        cases["points.md"], lambda data: data["audit"]["request"].update(score_edit="x")
    )
    result = verify_report(*written(files, tmp_path))
    assert "no report can be written from the data in it" in str(result)


def test_verify_says_what_it_compared(cases, tmp_path):
    result = verify_report(*written(cases["edits.html"], tmp_path))
    text = str(result)
    assert result.passed and not result.not_compared and "every field agrees" not in text
    for words in ("the points of each term by name", "the edits by hand", "every figure and"):
        assert words in text
    content = mixed_patch().content
    files = altered_files.files_of(*tied(content, card=None), ".md")
    result = verify_report(*written(files, tmp_path))
    assert result.passed
    (left_out,) = result.not_compared
    assert "points and edits by hand" in left_out
    assert "points of each term" not in " ".join(result.compared)


def test_files_of_version_0_2_still_agree_and_say_what_they_do_not_hold(tmp_path):
    result = verify_report(STORED / "patch.json", STORED / "report.json")
    assert result.passed and "every field of the patch" in result.not_compared[0]
    assert "every figure and sentence" not in " ".join(result.compared)
    data = json.loads((STORED / "report.json").read_text("utf-8"))
    for added in ({"library": "0.2.0"}, {"patch": {}}, {"text": ""}):
        other = tmp_path / "report.json"
        other.write_text(json.dumps({**data, **added}))
        with pytest.raises(InputError, match="unknown field"):
            verify_report(STORED / "patch.json", other)


def test_a_report_of_a_later_or_unknown_version_is_compared_as_strictly(cases, tmp_path):
    def change(data, library):
        data["library"] = library
        data["audit"]["changes"]["n_gains"] = 40

    for library in ("99.0.0", "", "0.3.0.dev0"):
        files = altered(cases["points.md"], lambda data, to=library: change(data, to))
        assert not verify_report(*written(files, tmp_path)).passed, library
    files = altered(cases["points.md"], lambda data: change(data, "0.2.9"))
    (left_out,) = verify_report(*written(files, tmp_path)).not_compared
    assert "commod 0.2.9 wrote it, so verify it with that version" in left_out


def test_an_audit_alone_is_no_report(cases, tmp_path):
    """Its figures stand nowhere else, so nothing could show that they were altered."""
    patch, audit = tied(mixed_patch().content)
    paths = patch.save(tmp_path / "patch.json"), report(audit, tmp_path / "audit.json")
    with pytest.raises(InputError, match="carries no patch"):
        verify_report(*paths)
    with pytest.raises(InputError, match="cannot be used as a patch"):
        verify_report(paths[1], report(audit, tmp_path / "report.md", patch=patch))
