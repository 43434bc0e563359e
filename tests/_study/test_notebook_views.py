"""What a notebook shows of each result: the figures as tables, and names from outside inert."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import commod
from commod import ScoreColumn
from commod.exceptions import DataWarning
from commod.rivals import MinimalFlip
from evidence_updates import with_evidence
from quick_updates import quick_control

COLUMN = "<script>alert(1)</script>"
KIND = "\u202e<b>"


class _Text(HTMLParser):
    def __init__(self):
        super().__init__()
        self.words, self.tags, self._style = [], set(), False

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self._style = tag == "style"

    def handle_endtag(self, tag):
        self._style = False

    def handle_data(self, data):
        if not self._style:
            self.words.append(data)


def read(result):
    parser = _Text()
    parser.feed(result._repr_html_())
    return parser


@pytest.fixture(scope="module")
def rows():
    """Return people whose column and category have hostile names."""
    random = np.random.RandomState(0)
    group = np.where(random.rand(900) < 0.5, "a", "b")
    X = pd.DataFrame({COLUMN: random.randn(900) + (group == "b")})
    X["kind"] = np.where(random.rand(900) < 0.4 + 0.3 * (group == "b"), KIND, "other")
    X["score"] = np.where(random.rand(900) < np.where(group == "a", 0.6, 0.3), 0.7, 0.3)
    label = random.rand(900) < X["score"]
    return {"X": X, "y": label.astype(int), "sensitive_features": group}


@pytest.fixture(scope="module")
def update(rows):
    return quick_control(ScoreColumn("score"), target=0.8).fit(**rows)


@pytest.fixture(scope="module")
def results(rows, update):
    X, people = rows["X"], {k: v for k, v in rows.items() if k != "X"}
    why = commod.explain(update, X)
    audit = commod.audit(
        why.y_before, why.y_after, sensitive_features=rows["sensitive_features"], explanation=why
    )
    rivals = [update, MinimalFlip(ScoreColumn("score"))]
    return {
        "scorecard": update.scorecard_,
        "explanation": why,
        "ledger": audit.ledger,
        "frontier": commod.frontier(update, X, **people, targets=[0.7, 0.8]),
        "comparison": commod.compare(rivals, X, **people),
        "stability": commod.stability(update, X, **people, n_refits=3, random_state=0),
    }


NAMES = ("scorecard", "explanation", "ledger", "frontier", "comparison", "stability")


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_shows_tables_with_inert_names(results, name):
    html = results[name]._repr_html_()
    assert "commod-snippet" in html and "<table" in html
    assert "<script" not in html and KIND not in html and "\u202e" not in html
    assert len(html) < 40_000


def test_a_scorecard_shows_every_term_with_its_points(results):
    card, text = results["scorecard"], " ".join(read(results["scorecard"]).words)
    assert card.n_terms_used >= 3
    assert COLUMN in text and "per unit" in text
    assert "add the points" in text and "the decision becomes favourable" in text
    for concept in np.flatnonzero(card.contributions):
        assert f"Concept {concept}" in text


def test_a_scorecard_without_points_says_what_it_does(results):
    card = results["scorecard"]
    empty = type(card)(
        card.encoding,
        1.0,
        card.contributions * 0,
        card.concept_points * 0,
        card.concept_intercepts,
    )
    assert "no decision changes" in " ".join(read(empty).words)


def test_an_update_with_evidence_says_its_rule(rows, update):
    made = with_evidence(update, rows["X"])
    (column,) = [c for c in made.scorecard_.encoding.columns if c.name == COLUMN]
    text = " ".join(read(made).words)
    assert "the decision becomes favourable" in text and "evidence about the groups" in text
    assert "r < 0" not in text and "weight in r" not in text
    assert column.counted_text in text


def test_an_explanation_shows_who_changes_and_why(results):
    why, text = results["explanation"], " ".join(read(results["explanation"]).words)
    assert f"{int(why.changed.sum()):,} of 900 people change" in text
    for segment in why.segments.segments:
        assert f"{segment.n_changed:,} of {segment.size:,}" in text
    assert "Points" in text and "Concept 0" in text


def test_a_frontier_shows_one_line_per_update_and_the_rows(results):
    curve, words = results["frontier"], read(results["frontier"]).words
    frame = curve.frame()
    for _, line in frame.iterrows():
        assert f"{line['fairness']:.3f}" in words and f"{line['change_rate']:.1%}" in words
    assert "900 fit rows" in " ".join(words)


def test_a_frontier_shows_in_what_updates_differ_beside_their_target(rows, update):
    people = {k: v for k, v in rows.items() if k != "X"}
    curve = commod.frontier(update, rows["X"], **people)
    words = read(curve).words
    for name in ("nearness", "n_terms"):
        assert name in words
        assert {f"{value:.3g}" for value in curve.frame()[name][:30]} <= set(words)


def test_numbers_are_not_broken_into_lines(results):
    assert ".commod-number{text-align:right;white-space:nowrap}" in results["ledger"]._repr_html_()


def test_a_long_frontier_is_cut_and_says_so(rows, update):
    people = {k: v for k, v in rows.items() if k != "X"}
    curve = commod.frontier(update, rows["X"], **people, targets=np.linspace(0.55, 0.95, 40))
    text = " ".join(read(curve).words)
    assert "40 updates" in text and "frame()" in text
    assert curve._repr_html_().count("<tr>") <= 32


def test_a_comparison_shows_changes_needed_by_method(results):
    text = " ".join(read(results["comparison"]).words)
    needed = results["comparison"].changes_needed()
    assert "ControlledDebiaser" in text and "MinimalFlip" in text and "exact limit" in text
    assert f"{needed.loc['exact limit', 0.8]:.1%}" in text
    assert "needs the group" in text


def test_a_comparison_shows_methods_that_failed(rows):
    class Broken(ClassifierMixin, BaseEstimator):
        classes_ = np.array([0, 1])

        def fit(self, X, y):
            return self

        def predict(self, X):
            raise ValueError("no luck <b>")

    methods = {"works": MinimalFlip(ScoreColumn("score")), "fails": Broken()}
    people = {k: v for k, v in rows.items() if k != "X"}
    with pytest.warns(DataWarning, match="fails is left out"):
        comparison = commod.compare(methods, rows["X"], **people)
    parser = read(comparison)
    assert "fails" in " ".join(parser.words) and "no luck <b>" in " ".join(parser.words)
    assert "b" not in parser.tags


def test_stability_shows_its_sentences_and_columns(results):
    stable, text = results["stability"], " ".join(read(results["stability"]).words)
    assert "On 3 refits" in text and "A refit changes" in text
    for name in stable.columns:
        assert name in text


def test_a_ledger_shows_its_digest_and_first_lines(results):
    ledger, text = results["ledger"], " ".join(read(results["ledger"]).words)
    assert ledger.digest in text and f"{len(ledger):,} changed decisions" in text
    assert "gain" in text and str(ledger.columns["row"][0]) in text


def test_an_empty_ledger_says_that_nothing_changes():
    audit = commod.audit([0, 1] * 30, [0, 1] * 30, sensitive_features=["a", "b"] * 30)
    assert "0 changed decisions" in " ".join(read(audit.ledger).words)
