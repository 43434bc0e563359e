"""Fitted updates stored by skops and joblib come back as they were."""

from __future__ import annotations

import io
import warnings

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from commod import COMMOD, TRUSTED_TYPES
from commod.exceptions import CommodWarning
from commod.rivals import lineup
from quick_updates import quick_control
from scored_people import GROUP, SCORED, X, Y, quick

pytestmark = pytest.mark.slow

skops_io = pytest.importorskip("skops.io")

UPDATES = {
    **lineup(SCORED, random_state=0),
    "mlp": COMMOD(SCORED, architecture="mlp", hidden=(4,), random_state=0),
    "bins": quick_control(SCORED, constraints="equalized_odds"),
    "promise": quick_control(SCORED, monotone={"town": 1}, confidence=0.9),
}


@pytest.fixture(scope="module", params=UPDATES)
def update(request, quick_compilation):
    """Return a fitted update of every kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        return quick(UPDATES[request.param]).fit(X, Y, sensitive_features=GROUP)


def check_same(one, other):
    tags = one.__sklearn_tags__()
    told = {"sensitive_features": GROUP} if tags.needs_sensitive_features else {}
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
    table = X[["age", "pay"]]
    model = LogisticRegression().fit(table, Y)
    update = quick_control(model, target=0.9).fit(table, Y, sensitive_features=GROUP)
    again = skops_io.loads(skops_io.dumps(update), trusted=list(TRUSTED_TYPES))
    np.testing.assert_array_equal(again.predict(table), update.predict(table))
    assert again.to_patch().content.ratio == update.to_patch().content.ratio
