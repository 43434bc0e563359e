"""Fitted updates stored by skops and joblib come back as they were."""

from __future__ import annotations

import io
import warnings

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from commod import COMMOD, TRUSTED_TYPES, ControlledDebiaser, ScoreColumn
from commod.datasets import make_biased
from commod.exceptions import CommodWarning
from commod.rivals import lineup

pytestmark = pytest.mark.slow

skops_io = pytest.importorskip("skops.io")

DATA = make_biased(600, random_state=0)
MODEL = LogisticRegression().fit(DATA.data, DATA.target)
X = DATA.data.assign(
    town=np.random.default_rng(0).choice(["Oslo", "Rome"], 600),
    score=MODEL.predict_proba(DATA.data)[:, 1],
)
SCORED = ScoreColumn("score")
UPDATES = {
    **lineup(SCORED, random_state=0),
    "mlp": COMMOD(SCORED, architecture="mlp", random_state=0),
    "bins": ControlledDebiaser(SCORED, constraints="equalized_odds"),
    "promise": ControlledDebiaser(SCORED, monotone={"town": 1}, confidence=0.9, random_state=0),
}


@pytest.fixture(scope="module", params=UPDATES)
def update(request, quick_compilation):
    """Return a fitted update of every kind."""
    found = UPDATES[request.param]
    if hasattr(found, "epochs"):
        found.set_params(epochs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        return found.fit(X, DATA.target, sensitive_features=DATA.sensitive_features)


def check_same(one, other):
    tags = one.__sklearn_tags__()
    told = {"sensitive_features": DATA.sensitive_features} if tags.needs_sensitive_features else {}
    np.testing.assert_array_equal(one.decision_proba(X, **told), other.decision_proba(X, **told))
    # a promise names the groups that it covers; a file counts them
    assert one._status_without_names() == other.status_ and repr(one) == repr(other)


def test_skops_needs_no_type_that_is_not_listed(update):
    stored = skops_io.dumps(update)
    assert set(skops_io.get_untrusted_types(data=stored)) <= set(TRUSTED_TYPES)
    check_same(update, skops_io.loads(stored, trusted=list(TRUSTED_TYPES)))


def test_joblib_gives_the_update_back(update):
    file = io.BytesIO()
    joblib.dump(update, file)
    file.seek(0)
    check_same(update, joblib.load(file))


def test_every_listed_type_exists_and_is_ours():
    for name in TRUSTED_TYPES:
        module, _, kind = name.rpartition(".")
        assert module.startswith("commod.") and hasattr(
            __import__(module, fromlist=[kind]), kind
        ), name


def test_a_model_and_its_update_are_one_file():
    update = ControlledDebiaser(MODEL, target=0.7)
    update.fit(DATA.data, DATA.target, sensitive_features=DATA.sensitive_features)
    again = skops_io.loads(skops_io.dumps(update), trusted=list(TRUSTED_TYPES))
    np.testing.assert_array_equal(again.predict(DATA.data), update.predict(DATA.data))
    assert again.to_patch().content.ratio == update.to_patch().content.ratio
