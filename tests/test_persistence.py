"""Fitted updates stored by skops and joblib; `test_params_of_fit.py` stores one of every class."""

from __future__ import annotations

import io

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from commod import TRUSTED_TYPES
from commod.exceptions import InputError
from quick_updates import quick_control
from scored_people import GROUP, SCORED, X, Y

skops_io = pytest.importorskip("skops.io")


def test_joblib_gives_the_update_back():
    update = quick_control(SCORED, target=0.9).fit(X, Y, sensitive_features=GROUP)
    file = io.BytesIO()
    joblib.dump(update, file)
    file.seek(0)
    again = joblib.load(file)
    np.testing.assert_array_equal(update.decision_proba(X), again.decision_proba(X))
    assert update._status_without_names() == again.status_ and repr(update) == repr(again)


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


def test_an_update_that_an_earlier_version_saved_is_refused():
    update = quick_control(SCORED, target=0.9).fit(X, Y, sensitive_features=GROUP)
    state = update.__getstate__()
    del state["_stored_as"]  # as version 0.2 saved it
    with pytest.raises(InputError, match="saved by another version of commod"):
        quick_control(SCORED).__setstate__(state)
