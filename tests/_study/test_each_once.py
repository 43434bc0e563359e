"""A study says what it has to say about the base model once, where it was called."""

import warnings

import pytest
from sklearn.linear_model import LogisticRegression

from commod import compare, frontier, stability
from commod.datasets import make_biased
from commod.exceptions import BaseModelWarning
from commod.rivals import RejectOption
from quick_updates import quick_control

DATA = make_biased(300, random_state=0)
MODEL = LogisticRegression().fit(DATA.data, DATA.target)
ROWS = {"X": DATA.data, "y": DATA.target, "sensitive_features": DATA.sensitive_features}


def caught_in(study):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = study()
    return [w for w in caught if issubclass(w.category, BaseModelWarning)], result


def update(**how):
    return quick_control(MODEL, threshold=0.4, **how)


@pytest.mark.parametrize(
    "study",
    [
        lambda: frontier(update(), **ROWS, targets=[0.7, 0.8], describe=False),
        lambda: frontier(
            RejectOption(MODEL, threshold=0.4), **ROWS, grid={"strength": [0, 0.1]}, describe=False
        ),
        lambda: compare([RejectOption(MODEL, threshold=0.4)] * 2, **ROWS),
    ],
    ids=["frontier", "frontier of a rival", "compare"],
)
def test_a_study_warns_of_the_base_model_once_where_it_was_called(study):
    caught, _ = caught_in(study)
    assert [w.filename for w in caught] == [__file__]
    assert "set threshold=" not in str(caught[0].message)


def test_stability_keeps_one_message_about_the_base_model():
    _, found = caught_in(lambda: stability(update(), **ROWS, n_refits=3, random_state=0))
    assert len(found.warnings["BaseModelWarning"]) == 1
    assert "3 × BaseModelWarning" not in repr(found)
