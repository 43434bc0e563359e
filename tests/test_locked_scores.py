"""Locking what the base model reads simply works: a column of scores, or a column of a model."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from commod import ScoreColumn, audit, explain, frontier, stability
from commod.exceptions import InputError
from commod.rivals import lineup
from quick_updates import quick_control
from scored_people import GROUP, SCORED, N, X, Y, quick

pytestmark = [
    pytest.mark.filterwarnings("ignore::commod.exceptions.CommodWarning"),
    pytest.mark.usefixtures("quick_compilation"),
]

NUMBERS = X[["age", "pay", "score"]]
UPDATES = {
    name: update
    for name, update in lineup(SCORED, random_state=0).items()
    if "locked_features" in update.get_params()
}


@pytest.mark.parametrize("name", UPDATES)
def test_a_locked_column_of_scores_decides_as_an_unlocked_one(name):
    """One method is trained for real: the others differ in what comes after columns are read."""
    decided = []
    for locked in ([], ("score",)):
        update = quick(UPDATES[name], locked_features=locked)
        if hasattr(update, "epochs") and name != "COMMOD":
            update.set_params(epochs=0)
        if hasattr(update, "max_rows"):
            update.set_params(max_rows=60)
        update.fit(X, Y, sensitive_features=GROUP)
        decided.append(update._evaluate_rows(update._read_rows(X, GROUP)).scores)
    np.testing.assert_array_equal(*decided)


def test_a_locked_score_works_in_every_function():
    update = quick_control(SCORED, locked_features=["score", "pay"])
    update.fit(NUMBERS, Y, sensitive_features=GROUP)
    assert update._unread_columns() == {"score", "pay"}
    assert update.scorecard_.columns_used == ["age"]
    np.testing.assert_array_equal(update._read_base(NUMBERS).scores, NUMBERS["score"])
    rows = {"sensitive_features": GROUP}
    found = audit(
        (NUMBERS["score"] > 0.5).astype(int),
        update.predict(NUMBERS),
        X=NUMBERS,
        explanation=explain(update, NUMBERS),
        **rows,
    )
    assert found.changes.n_changes == update.changes(NUMBERS).n_changes
    assert len(frontier(update, NUMBERS, Y, targets=[0.9], **rows)) == 1
    assert stability(update, NUMBERS, Y, n_refits=2, random_state=0, **rows).n_refits == 2
    assert update.to_patch().content.base.score == "score"


def test_a_locked_position_of_an_array_is_the_score():
    table = NUMBERS.to_numpy()
    expected = quick_control(ScoreColumn(2)).fit(table, Y, sensitive_features=GROUP)
    locked = quick_control(ScoreColumn(2), locked_features=["x2"])
    locked.fit(table, Y, sensitive_features=GROUP)
    np.testing.assert_array_equal(locked.predict(table), expected.predict(table))


@pytest.mark.parametrize("locked", [["age"], ["age", "pay"]])
def test_locking_what_a_model_reads_leaves_its_scores_alone(locked):
    noise = np.random.default_rng(1).normal(size=N)
    table = NUMBERS[["age", "pay"]].assign(other=X["age"] + noise)
    model = LogisticRegression().fit(table, Y)
    update = quick_control(model, locked_features=locked)
    update.fit(table, Y, sensitive_features=GROUP)
    assert not set(update.scorecard_.columns_used) & set(locked)
    np.testing.assert_array_equal(update._read_base(table).scores, model.predict_proba(table)[:, 1])


def test_a_locked_column_that_x_does_not_have_is_still_refused():
    with pytest.raises(InputError, match="names columns that X does not have"):
        quick_control(SCORED, locked_features=["scores"]).fit(NUMBERS, Y, sensitive_features=GROUP)
