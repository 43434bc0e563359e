"""A fitted update in a notebook: its status, its figures and its points, nothing else alive."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression

from commod import COMMOD, ControlledDebiaser, ScoreColumn
from commod.datasets import make_biased
from commod.rivals import MinimalFlip

HOSTILE = ["<script>alert(1)</script>", "a\"'&", "long " * 2000, "\u202eevil", "$x$"]


@pytest.fixture(scope="module")
def data():
    return make_biased(600, bias=1.5, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return LogisticRegression().fit(data.data[:300], data.target[:300])


@pytest.fixture(scope="module")
def update(model, data):
    fitted = ControlledDebiaser(model, target=0.8)
    return fitted.fit(data.data, data.target, sensitive_features=data.sensitive_features)


class Words(HTMLParser):
    """The text of a page, and its tags, without what is folded away."""

    def __init__(self):
        super().__init__()
        self.tags, self.words, self.open = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data):
        if not {"style", "details", "script"} & set(self.open):
            self.words.append(data)


def read(html):
    parser = Words()
    parser.feed(html)
    return parser


def test_a_fitted_update_shows_status_figures_and_points(update):
    page = read(update._repr_html_())
    text = " ".join(page.words)
    assert "ControlledDebiaser" in text
    for sentence in update.status_.splitlines():
        assert sentence in text
    assert f"{update.base_fairness_:.3f}" in text and f"{update.fairness_:.3f}" in text
    assert f"{update.change_rate_:.1%}" in text
    accuracy = f"{update.accuracy_:.3f}"  # one spelling, in the sentence and in the table
    assert accuracy in update.status_ and accuracy in page.words
    assert f"{update.accuracy_:.1%}" not in text
    columns = {column.name: column for column in update.scorecard_.encoding.columns}
    for name, points in update.scorecard_.rows():  # all columns are numbers
        assert columns[name].counted_text in page.words
        assert any(word.startswith("+" if points > 0 else "−") for word in page.words)
    assert "concept 0" in text and "per unit" in text
    assert "(blank)" not in text
    assert "details" in page.tags  # scikit-learn's own diagram is there, folded


def test_it_is_what_jupyter_is_given(update):
    bundle = update._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert "commod-snippet" in bundle["text/html"]
    with sklearn.config_context(display="text"):
        assert set(update._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(update, "_repr_html_")


def test_until_it_is_fitted_it_is_scikit_learns_diagram(model):
    html = ControlledDebiaser(model)._repr_html_()
    assert "sk-container" in html and "commod-snippet" not in html


def test_rivals_have_figures_and_no_points(model, data):
    rival = MinimalFlip(model, strength=1.0)
    rival.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    text = " ".join(read(rival._repr_html_()).words)
    assert "MinimalFlip" in text and "P-rule" in text
    assert "Scorecard" not in text and "Concepts" not in text


def test_an_update_that_changes_nothing_says_that_no_term_has_points(model, data):
    update = COMMOD(model, epochs=0, random_state=0)
    update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    assert "no term has points" in " ".join(read(update._repr_html_()).words)


@pytest.fixture(scope="module")
def hostile():
    """An update whose columns and categories are called all kinds of things."""
    random = np.random.RandomState(0)
    s = np.where(random.rand(1200) < 0.5, "a", "b")
    X = pd.DataFrame({name: random.randn(1200) + (s == "b") for name in HOSTILE})
    X["kind"] = np.array([f"<b>{i}</b>" for i in range(20)])[random.randint(20, size=1200)]
    X["score"] = np.where(random.rand(1200) < np.where(s == "a", 0.6, 0.25), 0.7, 0.3)
    update = ControlledDebiaser(ScoreColumn("score"), target=0.8, max_lines=None)
    return update.fit(X, sensitive_features=s)


def test_names_are_inert_and_only_the_strongest_terms_are_listed(hostile):
    html = hostile._repr_html_()
    assert "<script>alert" not in html and "<b>1" not in html
    assert "\u202e" not in html.split("<details>")[0]
    text = " ".join(read(html).words)
    n_terms = hostile.scorecard_.n_terms_used
    assert n_terms > 15 and f"15 strongest of {n_terms} terms" in text
    assert "<script>alert(1)</script>" in text  # as it is called
    assert len(text) < 5000


@pytest.mark.filterwarnings("ignore:Column 'strong' of X nearly determines")
def test_strength_is_told_per_standard_deviation_not_per_unit():
    """A column in large units has few points per unit and may still be the strongest term."""
    random = np.random.RandomState(0)
    s = np.where(random.rand(1000) < 0.5, "a", "b")
    hint = random.randn(1000) + 2 * (s == "b")
    X = pd.DataFrame({"weak": random.randn(1000) + 0.3 * (s == "b"), "strong": 1e6 * hint})
    X["score"] = np.where(random.rand(1000) < np.where(s == "a", 0.6, 0.3), 0.7, 0.3)
    update = ControlledDebiaser(ScoreColumn("score"), target=0.8)
    words = " ".join(read(update.fit(X, sensitive_features=s)._repr_html_()).words)
    table = words[words.index("Scorecard") :]
    assert table.index("strong") < table.index("weak")
