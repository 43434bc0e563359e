"""Patches whose sum is evidence: every engine computes the ratio of `EvidenceRule`, bit by bit."""

import json
import math
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from engines import FRAMES, IN_MEMORY, check_onnx, onnxruntime
from patch_files import content_of, evidence_patch, mixed_patch
from patches import OUTPUTS, Expected, as_arrow, check_rows, distance, in_order, margin, number
from patches import content_of as patch_content
from sklearn.linear_model import LogisticRegression

from commod import COMMOD, Patch
from commod._data.columns import read_columns
from commod._data.encoding import BinTerms, CategoryTerms, Encoding, NumericTerms
from commod._record.edits import EditRecord
from commod._record.plain import to_plain
from commod.datasets import make_biased
from commod.edit import Drop
from commod.exceptions import InputError
from commod.patch.content import (
    PatchEdit,
    PatchEvidence,
    editable_parts,
    figures_of_edit,
    ratio_of,
    rule_of,
)
from commod.patch.file import as_version, content_digest
from commod.patch.query import DIALECTS
from commod.scorecard import EvidenceRule, Scorecard, decide, edited_scores, is_within
from tables_of_cases import every_line

N_ROWS = 300
TOWNS = [f"town {i}" for i in range(60)]
LABELS = [(0, 1, 1), (0, 1, 0), ("denied", "it's approved", "denied"), (False, True, True)]


class Case:
    """A random patch with an evidence rule, a table, and what NumPy makes of it."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        is_dyadic = seed % 2 == 0  # sums are exact then, so that r is often exactly 0
        self.threshold = float(rng.choice([0.25, 0.5, 0.75] if is_dyadic else [0.31, 0.5, 0.97]))
        labels = LABELS[rng.integers(len(LABELS))]
        direction = rng.choice(["any", "gains_only", "losses_only"])
        rule = EvidenceRule(
            cut=float(rng.choice([0.5, 1.0, 2.0]) if is_dyadic else rng.uniform(0.3, 3)),
            nearness=float(rng.choice([0.0, 0.25, 1.0] if is_dyadic else [0.0, 0.3, 1.0])),
            mean_distance=0.125 if is_dyadic else float(rng.uniform(0.05, 0.4)),
            favorable_above=labels[2] == labels[1],
            may_gain=bool(direction != "losses_only"),
            may_lose=bool(direction != "gains_only"),
        )
        self.card = random_card(rng, rule, is_dyadic)
        gate = {"may_raise": rule.may_raise, "may_lower": rule.may_lower}
        self.max_margin = [None, 0.25][seed // 2 % 2]
        content = patch_content(
            labels=labels,
            threshold=self.threshold,
            score_edit=str(rng.choice(["all", "changed_only"])),
            **gate,
        )
        ratio = ratio_of(self.card, **gate, max_margin=self.max_margin)
        seen = replace(content.seen, n_columns=len(ratio.columns))
        self.content = replace(content, ratio=ratio, seen=seen)
        self.patch = Patch(self.content)
        self.table = random_table(rng, self.threshold, is_dyadic)
        self.expected = self._expected()

    def _expected(self):
        frame = self.table.to_pandas().replace([math.inf, -math.inf], math.nan)
        known = frame["score"].between(0, 1).to_numpy()
        scores = frame["score"].to_numpy()[known]
        total = self.card.ratio(read_columns(frame[known], self.card.encoding.kinds))
        r = self.card.rule.ratio(total, scores, self.threshold)
        r = np.where(is_within(scores, self.threshold, self.max_margin), r, 1.0)
        after, labels = decide(scores, r, self.threshold), self.content.labels
        edited = edited_scores(scores, r, self.threshold, self.content.score_edit)
        changed = after != (scores > self.threshold)
        names = [labels.positive if decision else labels.negative for decision in after]
        moves = np.where(after == labels.favorable_above, "gain", "loss")
        moves = np.where(changed, moves, "kept").tolist()
        return Expected(
            spread(r, known, math.nan),
            spread(edited, known, math.nan),
            spread(np.array(names, dtype=object), known, None).tolist(),
            spread(changed, known, False),
            spread(np.array(moves, dtype=object), known, None).tolist(),
        )

    def apply(self, frame):
        return self.patch.apply(frame, columns=[f"commod_{name}" for name in (*OUTPUTS, "r")])

    def to_sql(self, dialect, table):
        return self.patch.to_sql(dialect, table)

    def check(self, engine, request):
        """Compare what an engine does with what NumPy does; frames tell r itself, too."""
        found = FRAMES[engine](self, self.table, request)
        check_rows(self.content, self.expected, in_order(found))
        if "commod_r" in found.column_names:
            ratio = found.sort_by("id")["commod_r"].to_pandas().to_numpy(dtype=float)
            np.testing.assert_array_equal(ratio, self.expected.ratio)


def spread(values, known, absent):
    """Return values of known rows among all rows."""
    spread = np.full(len(known), absent, dtype=values.dtype)
    spread[known] = values
    return spread


def random_card(rng, rule, is_dyadic):
    encoding = Encoding(
        (
            NumericTerms("age", 41.5, True, centre=45.25),
            BinTerms("income", (0.0, 1.5, 2.0), True),
            NumericTerms("debt", -0.5, False, centre=-1.5),
            CategoryTerms("town", (*TOWNS, None)),
            CategoryTerms("member", (False, True)),
        )
    )
    points = np.where(rng.random((2, encoding.n_terms)) < 0.9, 1.0, 0.0)
    points *= rng.integers(-4, 5, points.shape) / 4 if is_dyadic else rng.normal(size=points.shape)
    points[:, 0] /= 16  # of age
    return Scorecard(
        encoding=encoding,
        intercept=0.25 if is_dyadic else float(rng.normal()),
        contributions=np.array([1.0, -1.0]) if is_dyadic else rng.normal(size=2),
        concept_points=points,
        concept_intercepts=np.zeros(2),
        rule=rule,
    )


def random_table(rng, threshold, is_dyadic):
    beside = [0.0, 1.0, threshold, math.nextafter(threshold, 0), math.nextafter(threshold, 1)]
    numbers = [None, math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324]
    scores = rng.integers(0, 17, N_ROWS) / 16 if is_dyadic else rng.random(N_ROWS)
    columns = {
        "id": list(range(N_ROWS)),
        "score": sprinkled(rng, scores, [None, math.nan, -0.1, 1.1, *beside]),
        "age": sprinkled(rng, rng.integers(5, 18, N_ROWS) * 4 + 1.25, [None, math.nan, 45.25]),
        "income": sprinkled(rng, rng.integers(-4, 12, N_ROWS) / 4, numbers),
        "debt": sprinkled(rng, rng.integers(-4, 4, N_ROWS) + 0.5, numbers),
        "town": sprinkled(rng, rng.choice(TOWNS, N_ROWS), [None, "unseen", "Town 1", "town 1 "]),
        "member": sprinkled(rng, rng.random(N_ROWS) < 0.5, [None]),
    }
    doubles = dict.fromkeys(("score", "age", "income", "debt"), pa.float64())
    return as_arrow(columns, **doubles)


def sprinkled(rng, values, odd, share=0.15):
    """Return a list in which some values are odd ones."""
    some = rng.random(len(values)) < share
    return [
        odd[rng.integers(len(odd))] if is_odd else value
        for value, is_odd in zip(values.tolist(), some, strict=True)
    ]


# ---------------------------------------------------------------------------------------------
# Every engine


SEEDS = [0, 2, 5]  # sums are exact in the first two


def test_random_cases_hold_what_they_should():
    cases = [Case(seed) for seed in SEEDS]
    assert {case.content.labels.favorable_above for case in cases} == {True, False}
    assert {case.content.asked.direction for case in cases} >= {"any", "gains_only"}
    assert {case.card.rule.nearness > 0 for case in cases} == {True, False}
    assert {case.max_margin for case in cases} == {None, 0.25}
    assert any((case.expected.ratio == 0).any() for case in cases)
    assert sum(case.expected.changed.sum() for case in cases) > 50
    moves = {move for case in cases for move in case.expected.direction}
    assert moves == {"gain", "loss", "kept", None}


@pytest.mark.parametrize("seed", SEEDS)
def test_engines_in_memory_compute_the_ratio_of_the_rule(seed, request):
    case = Case(seed)
    for engine in IN_MEMORY if seed == SEEDS[-1] else ("pandas", "lazy polars", "SQL in DuckDB"):
        case.check(engine, request)
    if onnxruntime is not None:
        check_onnx(case, "polars")


# PySpark leaves its sockets to the garbage collector, which comes when it likes
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize("engine", ["Spark", "SQL in Spark", "SQL in PostgreSQL"])
def test_other_engines_compute_the_ratio_of_the_rule(engine, request):
    Case(SEEDS[0]).check(engine, request)


def test_postgres_refuses_no_sum_that_vanishes(request):
    """PostgreSQL fails where a product or a quotient rounds to 0."""
    tiny = number("x", 5e-324, if_missing=1.0, centre=-1e-300)
    rules = {"cut": (1e100, 0.0, 1.0), "cost": (1e-100, 5e-324, 1e-3)}
    for evidence in rules.values():
        patch = Patch(patch_content(tiny, intercept=1e-323, evidence=evidence))
        values = {"id": [0, 1, 2], "score": [0.5, 0.4, 5e-324], "x": [None, 1e-300, 1e300]}
        found = FRAMES["SQL in PostgreSQL"](patch, as_arrow(values), request)
        assert found["commod_changed"].to_pylist() == [False] * 3


def test_a_fitted_update_with_a_rule_decides_as_its_patch():
    data = make_biased(300, random_state=0)
    model = LogisticRegression().fit(data.data, data.target)
    update = COMMOD(model, epochs=0, random_state=0, favorable_label=0)
    update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    card = update.scorecard_
    update.scorecard_ = replace(
        card,
        intercept=0.0,
        contributions=np.ones(len(card.contributions)),
        concept_points=np.random.default_rng(0).normal(size=card.concept_points.shape),
        rule=EvidenceRule(0.75, 0.5, 0.2, favorable_above=False, may_lose=False),
    )
    patch = update.to_patch()
    assert patch.content.ratio.evidence == PatchEvidence(0.75, 0.5, 0.2)
    assert (patch.content.ratio.may_raise, patch.content.ratio.may_lower) == (False, True)
    scored = data.data.assign(score=model.predict_proba(data.data)[:, 1])
    edited = patch.apply(scored, columns=["commod_r", "commod_decision"])
    assert (edited["commod_r"] == update.ratio(data.data)).all()
    assert (edited["commod_decision"] == update.predict(data.data)).all()
    assert 0 < update.changes(data.data).n_gains < 300 and update.changes(data.data).n_losses == 0


# ---------------------------------------------------------------------------------------------
# Files


@every_line("seed", range(4))
def test_a_patch_read_back_has_the_same_scorecard_and_rule(seed):
    case = Case(seed)
    read = Patch.from_json(case.patch.to_json())
    assert read == case.patch and read.to_json() == case.patch.to_json()
    assert read.scorecard.rule == case.card.rule
    frame = case.table.to_pandas().replace([math.inf, -math.inf], math.nan)
    columns = read_columns(frame.drop(columns="score"), case.card.encoding.kinds)
    assert read.scorecard.ratio(columns).tolist() == case.card.ratio(columns).tolist()


@every_line(
    "changes, match",
    [
        ({"cut": 0.0}, "evidence.cut of the patch is 0.0"),
        ({"cut": -1.0}, "evidence.cut"),
        ({"cut": 5e-324}, "evidence.cut"),
        ({"cut": 1e300}, "evidence.cut"),
        ({"cut": "1"}, "cut must be float"),
        ({"nearness": -0.1}, "nearness of the patch is -0.1; it must lie between 0 and 1"),
        ({"nearness": 1.1}, "evidence.nearness"),
        ({"mean_distance": 0.0}, "evidence.mean_distance"),
        ({"mean_distance": 1.5}, "evidence.mean_distance"),
    ],
)
def test_an_evidence_rule_that_makes_no_sense_is_refused(changes, match):
    evidence = replace(PatchEvidence(1.0, 0.5, 0.25), **changes)
    with pytest.raises(InputError, match=match):
        Patch(content_of(number("a", 1.0), evidence=evidence))


@every_line("name, value", [("cut", math.nan), ("nearness", math.inf), ("mean_distance", math.nan)])
def test_an_evidence_rule_is_finite(name, value):
    tree = json.loads(evidence_patch().to_json())
    tree["ratio"]["evidence"][name] = value
    with pytest.raises(InputError, match="is not a number"):
        Patch.from_json(json.dumps(tree))


@every_line("column", [margin(0.5), distance(0.5)])
def test_an_evidence_rule_goes_with_no_column_of_the_score(column):
    with pytest.raises(InputError, match=r"evidence rule.*that reads the score"):
        Patch(content_of(number("a", 1.0), column, evidence=PatchEvidence(1.0, 0.0, 1.0)))


def test_a_centre_is_a_number_within_bounds():
    with pytest.raises(InputError, match=r"holds 1e\+101"):
        Patch(content_of(number("a", 1.0, centre=1e101)))


def test_whole_points_need_no_intercept_between_two_where_the_sum_is_evidence():
    whole = {"points": "integers", "evidence": PatchEvidence(2.5, 0.0, 1.0), "intercept": 0.0}
    card = Patch(content_of(number("a", 2.0), **whole)).scorecard
    assert card.is_whole and "+2 per unit" in repr(card)
    with pytest.raises(InputError, match="whole numbers"):
        Patch(content_of(number("a", 2.5), **whole))


def edited_by_hand(content):
    """Return a content with a history of one edit, which changed nothing."""
    figures = figures_of_edit(content.reached)
    when = "2026-01-02T00:00:00+00:00"
    record = EditRecord(when, None, None, (Drop("age"),), "keep", False, (), figures, figures)
    return replace(content, history=(PatchEdit(record, editable_parts(content)),))


@every_line("part, is_earlier", product(["evidence", "centre"], [False, True]))
def test_an_earlier_version_has_neither_evidence_nor_centre(part, is_earlier):
    new = edited_by_hand(evidence_patch().content)
    old = edited_by_hand(mixed_patch().content)
    tree = as_version(to_plain(old), 2)
    tree["digest"] = content_digest(old, 2)
    assert Patch.from_json(json.dumps(tree)).content == old
    ratio, other = (t["history"][0]["earlier"] if is_earlier else t for t in (tree, to_plain(new)))
    ratio, other = ratio["ratio"], other["ratio"]
    if part == "centre":
        ratio, other = ratio["columns"][0], other["columns"][0]
    ratio[part] = other[part]
    with pytest.raises(InputError, match=rf"unknown field '{part}': its schema, commod.patch/2"):
        Patch.from_json(json.dumps(tree))


def test_the_newest_version_keeps_evidence_and_centre_before_edits():
    content = edited_by_hand(evidence_patch().content)
    read = Patch.from_json(Patch(content).to_json())
    assert read.content == content
    assert read.undo().content.ratio == evidence_patch().content.ratio


def test_verification_looks_at_centres():
    X = make_biased(200, random_state=0).data[["x0"]]
    group = np.arange(200) % 2
    own = float(X["x0"].iloc[0])
    for numbers, n_problems in (((0.0, own), 1), ((own, own), 1), ((0.0, 0.25), 0)):
        patch = Patch(content_of(number("x0", 1.0, numbers[0], centre=numbers[1])))
        assert len(patch.verify(X, group).problems) == n_problems


# ---------------------------------------------------------------------------------------------
# Words


GAIN = (
    "If the base decision is “{}” and the sum is above 0.375 (more, the farther the score is from "
    "the threshold: plus 1.5 × the distance), the decision becomes “{}”."
)
LOSS = (
    "If the base decision is “{}” and the sum is below −0.375 (less, the farther the score is from "
    "the threshold: minus 1.5 × the distance), the decision becomes “{}”."
)


def test_the_page_says_when_a_decision_changes():
    lines = str(evidence_patch()).splitlines()
    assert lines[3] == f"Add the points. {GAIN.format(0, 1)} {LOSS.format(1, 0)}"
    assert "The sum is +1, plus points:" in lines
    assert any(line.split() == ["income", "−", "3.5", "-0.2500", "per", "unit"] for line in lines)
    one_way = {"direction": "gains_only", "may_raise": False, "favorable": 0, "max_margin": 0.25}
    lines = str(evidence_patch(**one_way)).splitlines()
    far = "No decision changes if the score is more than 0.25 from the threshold."
    assert lines[3] == f"Add the points. {GAIN.format(1, 0)} {far}"


def test_the_page_says_how_the_sum_becomes_r_where_scores_depend_on_r():
    text = str(evidence_patch())
    assert "r is 0.5 + 2 · |score − 0.5| − sum / 0.75 if the base decision is “0”, and " in text
    assert "r is the sum" not in text
    only_changed = replace(evidence_patch().content, score_edit="changed_only")
    assert "sum / 0.75" not in str(Patch(only_changed))


@every_line("dialect", DIALECTS)
def test_sql_says_the_rule_in_comments_and_parses(dialect):
    hostile = "yes\n; DROP TABLE people; --"
    labels = {"negative": "no", "positive": hostile, "favorable": hostile}
    text = evidence_patch(**labels).to_sql(dialect, "people")
    (tree,) = sqlglot.parse(text, read=dialect)
    assert isinstance(tree, sqlglot.exp.Select)
    head = [line for line in text.splitlines() if line.startswith("--")]
    expected = GAIN.replace("“{}”", "{}").format("unfavourable", "favourable")
    assert f"-- {expected.replace('×', '*')}" in head
    assert all(line.isascii() for line in head) and "DROP" not in "".join(head)


def test_a_scorecard_says_when_a_decision_changes():
    card = evidence_patch().scorecard
    lines = repr(card).splitlines()
    named = [s.replace("“{}”", "{}") for s in (GAIN, LOSS)]
    assert lines[:4] == [
        "Start at +1 and add the points.",
        named[0].format("unfavourable", "favourable"),
        named[1].format("favourable", "unfavourable"),
        "  income − 3.5          -0.2500 per unit",
    ]
    assert "concept 0, weight +1 in the sum: +0 and points" in lines
    html = card._repr_html_()
    assert "income − 3.5" in html and "Points in the sum" in html and "r &lt; 0" not in html


@every_line(
    "changes, words",
    [
        ({"intercept": 0.25}, "No points: no decision changes."),
        ({"intercept": 2.0, "may_lower": False}, "No points: the sum is 2 for everybody. If"),
        ({"intercept": 2.0, "may_raise": False, "may_lower": False}, "No decision changes."),
    ],
)
def test_a_scorecard_without_points_says_what_the_rule_does(changes, words):
    content = content_of(evidence=PatchEvidence(1.0, 0.5, 0.25), **changes)
    card = replace(Patch(content_of()).scorecard, intercept=changes["intercept"])
    assert words in repr(replace(card, rule=rule_of(content)))


def test_nothing_is_in_brackets_without_nearness():
    rule = EvidenceRule(cut=0.42)
    assert rule.sentences() == [
        "If the base decision is unfavourable and the sum is above 0.42, the decision becomes "
        "favourable.",
        "If the base decision is favourable and the sum is below −0.42, the decision becomes "
        "unfavourable.",
    ]
    at_once = replace(rule, nearness=1.0).sentences()
    assert "is above 0 (more" in at_once[0] and "is below 0 (less" in at_once[1]


def test_differences_name_the_rule_and_the_centre():
    patch = evidence_patch()
    for other, words in (
        (mixed_patch(centre=3.5), "Sum that changes a decision: 0.75 → none."),
        (evidence_patch(intercept=2.0), "Intercept of the sum: 1 → 2."),
        (mixed_patch(evidence=patch.content.ratio.evidence), "Centre of income: 3.5 → 0."),
    ):
        assert words in patch.diff(other)
