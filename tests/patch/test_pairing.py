"""A patch and the audit of another update: each term, rule, category and edit is compared."""

from dataclasses import replace

import pytest
import tied_files
from patches import bins, category, number
from tied_files import edited, mixed_patch, tied

from commod import Patch, report
from commod._record.edits import Drop
from commod.exceptions import InputError
from commod.patch.content import PatchEvidence

MIXED = mixed_patch(centre=3.5, evidence=PatchEvidence(0.75, 0.5, 0.25)).content
PATCH, AUDIT = tied(MIXED)
EDITED_PATCH, EDITED_AUDIT = tied(edited(MIXED))


def with_column(i, column):
    columns = list(MIXED.ratio.columns)
    columns[i] = column
    return replace(MIXED, ratio=replace(MIXED.ratio, columns=tuple(columns)))


def with_rule(**changes):
    rule = replace(MIXED.ratio.evidence, **changes)
    return replace(MIXED, ratio=replace(MIXED.ratio, evidence=rule))


income, age, job, member = MIXED.ratio.columns
OTHERS = {
    "a renamed column of bins": (with_column(1, replace(age, name="years")), "scorecard.age < 25"),
    "a renamed column": (with_column(0, replace(income, name="Income")), "scorecard.income"),
    "points of another term": (
        with_column(2, category("job", {"clerk": 0.5, "nurse": -2.0, "": 0.125}, missing=-0.5)),
        "scorecard.job = clerk",
    ),
    "a moved edge": (
        with_column(1, bins("age", [25.0, 40.500000000000007], [-1.5, 0.25, 0.5], missing=-0.75)),
        "scorecard.25 ≤ age < 40.5",
    ),
    "a category of another type": (
        with_column(3, category("member", {"True": -0.5, False: 0.25})),
        "scorecard.member = True",
    ),
    "another centre": (
        with_column(0, number("income", -0.25, if_missing=2.0, missing=0.5, centre=3.25)),
        "scorecard.income",
    ),
    "another value for missing": (
        with_column(0, number("income", -0.25, if_missing=2.5, missing=0.5, centre=3.5)),
        "scorecard.income",
    ),
    "another cut": (with_rule(cut=0.7500000000000001), "scorecard.rule.cut"),
    "another nearness": (with_rule(nearness=0.25), "scorecard.rule.nearness"),
    "another scale": (with_rule(mean_distance=0.5), "scorecard.rule.mean_distance"),
    "a sum and no rule": (
        replace(MIXED, ratio=replace(MIXED.ratio, evidence=None)),
        "scorecard.rule.cut",
    ),
    "another gate": (
        replace(MIXED, ratio=replace(MIXED.ratio, may_lower=False)),
        "scorecard.rule.may_lose",
    ),
    "another start": (
        replace(MIXED, ratio=replace(MIXED.ratio, intercept=1.0000000000000002)),
        "scorecard.intercept",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_audit_of_another_update_is_refused_by_name(name, tmp_path):
    content, field = OTHERS[name]
    with pytest.raises(InputError, match="does not belong") as refused:
        Patch(content).with_audit(AUDIT)
    assert field in str(refused.value)
    other = Patch(replace(content, audit=AUDIT.digest))  # as an edit of the file would do
    with pytest.raises(InputError, match="does not belong"):
        report(AUDIT, tmp_path / "report.md", patch=other)


def test_two_updates_with_the_same_whole_points_are_told_apart():
    whole = [
        tied_files.content_of(
            bins("age", [25.0, 40.0], points),
            category("job", dict(zip(["clerk", "nurse"], others, strict=True))),
            intercept=0.5,
            points="integers",
        )
        for points, others in (([-2.0, 1.0, 3.0], [2.0, -1.0]), ([2.0, -1.0, 3.0], [-2.0, 1.0]))
    ]
    audits = [tied(content)[1] for content in whole]
    for content, other in zip(whole, reversed(audits), strict=True):
        with pytest.raises(InputError) as refused:
            Patch(content).with_audit(other)
        for term in ("age < 25", "25 ≤ age < 40", "job = clerk", "job = nurse"):
            assert f"scorecard.{term}" in str(refused.value)
        assert "age ≥ 40" not in str(refused.value)


def test_the_order_of_terms_does_not_matter():
    columns = MIXED.ratio.columns[::-1]
    other = Patch(replace(MIXED, ratio=replace(MIXED.ratio, columns=columns)))
    assert other.with_audit(AUDIT).content.audit == AUDIT.digest


def test_the_history_of_a_patch_is_that_of_its_audit():
    first, second = EDITED_AUDIT.edits
    other_figures = replace(second.after, n_gains=41.0)
    for edits, field in (
        ((), "history is 2 edits in the patch and 0 edits in the audit"),
        ((first,), "history is 2 edits"),
        ((first, second, second), "history is 2 edits in the patch and 3 edits"),
        ((second, first), "history.1.by is Ann in the patch and Ben in the audit"),
        ((replace(first, by="Eve"), second), "history.1.by is Ann in the patch and Eve"),
        ((replace(first, by=None), second), "history.1.by is Ann in the patch and none"),
        ((first, replace(second, when="2026-01-04T03:04:05+00:00")), "history.2.when"),
        ((first, replace(second, note="other")), "history.2.note"),
        ((first, replace(second, edits=(Drop("job"),))), "history.2.edits.job.edit"),
        ((first, replace(second, offset="target")), "history.2.offset"),
        ((first, replace(second, pinned=("age",))), "history.2.pinned"),
        ((first, replace(second, refit=True)), "history.2.refit"),
        ((first, replace(second, after=other_figures)), "history.2.after.n_gains"),
    ):
        with pytest.raises(InputError) as refused:
            Patch(EDITED_PATCH.content).with_audit(replace(EDITED_AUDIT, edits=edits))
        assert field in str(refused.value), (edits, refused.value)
    with pytest.raises(InputError, match="history is 0 edits in the patch and 2 edits"):
        PATCH.with_audit(EDITED_AUDIT)


def test_figures_of_edits_are_compared_at_the_six_digits_of_a_patch():
    first, second = EDITED_AUDIT.edits
    near, far = (replace(second.after, fairness=value) for value in (0.81000004, 0.810004))
    Patch(EDITED_PATCH.content).with_audit(
        replace(EDITED_AUDIT, edits=(first, replace(second, after=near)))
    )
    with pytest.raises(InputError, match=r"history\.2\.after\.fairness"):
        Patch(EDITED_PATCH.content).with_audit(
            replace(EDITED_AUDIT, edits=(first, replace(second, after=far)))
        )


def test_an_audit_of_decisions_alone_states_no_edits():
    alone = replace(EDITED_AUDIT, card=None, edits=())
    assert Patch(EDITED_PATCH.content).with_audit(alone).content.audit == alone.digest
