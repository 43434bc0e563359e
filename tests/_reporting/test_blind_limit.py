"""The blind limit of an audit: the number of `blind_changes`, one sentence, and refusals."""

import numpy as np
import pandas as pd
import pytest

from commod import Audit, audit, report
from commod._record.explanation import Estimate
from commod._words.shared import blind_limit_text
from commod.bounds import blind_changes
from commod.constraints import DemographicParity, MinimumRate
from commod.exceptions import InputError

N = 400
BOTH = [DemographicParity(ratio=0.8), MinimumRate(0.2)]


@pytest.fixture(scope="module")
def people():
    """Return columns, decisions before and after, groups and labels; `hint` tells the group."""
    random = np.random.RandomState(0)
    group = random.rand(N) < 0.4
    X = pd.DataFrame({"hint": group + random.normal(scale=0.7, size=N), "noise": random.rand(N)})
    before = (random.rand(N) < np.where(group, 0.25, 0.5)).astype(int)
    after = np.where(X["hint"] > 1.1, 1, before)
    label = (random.rand(N) < 0.3 + 0.4 * before).astype(int)
    return X, before, after, np.where(group, "a", "b"), label


REQUEST = {"constraints": "true_positive_rate_parity", "direction": "losses_only"}
LABELS = {"pos_label": 1, "favorable_label": 0}


@pytest.fixture(scope="module")
def result(people):
    """Return an audit that asks for much at once: a blind limit takes long to fit.

    A few people are of a small group or of none, and two columns are not for the blind limit.
    """
    X, before, after, group, label = people
    group = group.astype(object)
    group[:20], group[20:40] = "small", None
    X = X.assign(sex=pd.Series(group).fillna("?"), day=pd.Timestamp("2026-01-01"))
    return audit(
        before,
        after,
        sensitive_features=group,
        y_true=label,
        X=X,
        request=REQUEST,
        level=0.8,
        blind_limit=True,
        unknown_groups="ignore",
        **LABELS,
    )


def test_the_number_is_that_of_blind_changes_as_the_audit_was_asked(people, result):
    X, before, _, group, label = (part[40:] for part in people)  # who are compared
    people_and_labels = {"sensitive_features": group, "y_true": label, **LABELS}
    found = blind_changes(
        X, before, target=result.fairness[0].after.value, **people_and_labels, **REQUEST
    )
    blind, (low, high) = result.limit.blind, found.interval
    assert blind.value == found.n_changes > result.limit.n_fewest
    assert low < blind.low < found.n_changes < blind.high < high  # at 80% rather than 95%
    assert Audit.from_json(result.to_json()) == result


def test_every_place_has_the_same_sentence(result, tmp_path):
    sentence = blind_limit_text(result.limit.blind, 0.8)
    assert f"needs about {result.limit.blind.value:.0f} changes (an estimate; 80% int" in sentence
    assert any(part.endswith(sentence) for part in result.answer)
    assert sentence in result._repr_html_()
    for name in ("page.html", "page.md"):
        assert report(result, tmp_path / name).read_text("utf-8").count(sentence) == 2


def test_an_audit_without_it_is_the_one_that_it_was(people, tmp_path):
    X, before, after, group, _ = people
    result = audit(before, after, sensitive_features=group, X=X)
    assert result.limit.blind is None
    assert "blind" not in result.to_dict()["limit"]
    assert "flexible" not in report(result, tmp_path / "page.html").read_text("utf-8")


def test_an_open_end_is_said():
    assert "95% interval 5 or more" in blind_limit_text(Estimate(8, 5, None), 0.95)
    assert "does not come so far" in blind_limit_text(Estimate(None, None, None), 0.95)


@pytest.mark.parametrize(
    ("columns", "request_", "message"),
    [
        (None, {}, "blind_limit=True needs X.*X is None. Pass X"),
        (["sex"], {}, "a column that does not determine the group, but X has none"),
        (["hint"], {"constraints": BOTH}, "blind limit is known for one .*; got several"),
        (["hint"], {"constraints": "predictive parity <= 0.1"}, "blind limit is known for one"),
    ],
)
def test_what_it_needs(people, columns, request_, message):
    X, before, after, group, label = people
    X = None if columns is None else X.assign(sex=group)[columns]
    with pytest.raises(InputError, match=message):
        audit(
            before,
            after,
            sensitive_features=group,
            y_true=label,
            X=X,
            request=request_,
            blind_limit=True,
        )


def test_it_is_a_flag(people):
    X, before, after, group, _ = people
    with pytest.raises(InputError, match="blind_limit"):
        audit(before, after, sensitive_features=group, X=X, blind_limit="yes")
