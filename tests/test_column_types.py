"""A column whose type changed since `fit` is refused everywhere, as `Patch.apply` refuses it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commod import (
    ScoreColumn,
    audit,
    compare,
    explain,
    frontier,
    stability,
)
from commod._displays import CalibrationDisplay, ChangeDisplay, ConceptDisplay
from commod.exceptions import InputError
from commod.rivals import RejectOption
from quick_updates import quick_control

pytestmark = [
    pytest.mark.filterwarnings("ignore::commod.exceptions.CommodWarning"),
    pytest.mark.usefixtures("quick_compilation"),
]

N = 240
RNG = np.random.default_rng(0)
GROUP = np.where(RNG.random(N) < 0.5, "a", "b")
IS_A = GROUP == "a"
NEAR = np.where(RNG.random(N) < 0.8, IS_A, ~IS_A)  # a column that is worth points
SCORE = np.clip(0.5 - 0.15 * IS_A + RNG.normal(0, 0.2, N), 0.01, 0.99)
Y = (RNG.random(N) < SCORE).astype(int)
FORMS = {  # the column of the fit rows, in each type that it may have
    "flag": NEAR,
    "town": np.where(NEAR, "Oslo", "Rome"),
    "pay": np.where(NEAR, 20.0, 30.0) + RNG.integers(0, 3, N),
}


def table(column, make=pd.Series):
    return pd.DataFrame({"x": make(column), "age": RNG.normal(size=N), "score": SCORE})


UPDATES = {
    name: quick_control(ScoreColumn("score"), target=0.9).fit(
        table(values), Y, sensitive_features=GROUP
    )
    for name, values in FORMS.items()
}
PATCHES = {name: update.to_patch() for name, update in UPDATES.items()}
CHANGED = {
    "true and false as text": ("flag", NEAR.astype(str)),
    "true and false as objects of text": ("flag", NEAR.astype(str).astype(object)),
    "true and false as numbers": ("flag", NEAR.astype(int)),
    "true and false as objects of numbers": ("flag", [*NEAR.astype(int).tolist()[1:], None]),
    "yes and no": ("flag", np.where(NEAR, "yes", "no")),
    "text as numbers": ("town", NEAR.astype(float)),
    "text as objects of numbers": ("town", [*NEAR.astype(int).tolist()[1:], None]),
    "text as codes": ("town", pd.Categorical(FORMS["town"]).codes),
    "text as categories of numbers": ("town", pd.Categorical(NEAR.astype(int))),
    "text as true and false": ("town", NEAR),
    "numbers as text": ("pay", FORMS["pay"].astype(str)),
    "numbers as true and false": ("pay", NEAR),
    "numbers as categories of text": ("pay", pd.Categorical(FORMS["pay"].astype(str))),
}
SAME = {
    "one text": ("town", ["Oslo"] * N),
    "texts never seen": ("town", ["Bonn"] * N),
    "categories": ("town", pd.Categorical(FORMS["town"])),
    "objects": ("town", FORMS["town"].astype(object)),
    "text with gaps": ("town", [None, *FORMS["town"][1:]]),
    "no text": ("town", [None] * N),
    "no number": ("town", [np.nan] * N),
    "true and false as objects": ("flag", [None, *NEAR[1:].tolist()]),
    "true and false with gaps": ("flag", pd.array([None, *NEAR[1:]], dtype="boolean")),
    "all true": ("flag", [True] * N),
    "no true or false": ("flag", [None] * N),
    "whole numbers": ("pay", np.arange(N)),
    "small floats": ("pay", FORMS["pay"].astype("float32")),
    "objects of numbers": ("pay", [None, *FORMS["pay"][1:].tolist()]),
    "no numbers": ("pay", [None] * N),
}
ENTRIES = {
    "predict": lambda update, X: update.predict(X),
    "predict_proba": lambda update, X: update.predict_proba(X),
    "decision_function": lambda update, X: update.decision_function(X),
    "decision_proba": lambda update, X: update.decision_proba(X),
    "ratio": lambda update, X: update.ratio(X),
    "raw_ratio": lambda update, X: update.raw_ratio(X),
    "concepts": lambda update, X: update.concepts(X),
    "changes": lambda update, X: update.changes(X),
    "score": lambda update, X: update.score(X, Y),
    "explain": explain,
    "apply": lambda update, X: update.to_patch().apply(X),
    "ChangeDisplay": lambda update, X: ChangeDisplay.from_estimator(
        update, X, sensitive_features=GROUP
    ),
    "ConceptDisplay": ConceptDisplay.from_estimator,
    "CalibrationDisplay": lambda update, X: CalibrationDisplay.from_estimator(update, X, Y),
}


def tried_changes(entry):
    """Return changes to try: all of the three that read a table by themselves, two of the others.

    These read their table by one function.
    """
    first = list(ENTRIES).index(entry) % len(CHANGED)
    names = [*CHANGED, *CHANGED]
    return CHANGED if entry in ("predict", "explain", "apply") else names[first : first + 2]


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_column_of_another_type_is_refused(entry):
    for change in tried_changes(entry):
        name, values = CHANGED[change]
        with pytest.raises(InputError, match=r"'x'.*Convert it to the type"):
            ENTRIES[entry](UPDATES[name], table(values))


def test_one_row_is_refused_as_all_are():
    for name, values in CHANGED.values():
        with pytest.raises(InputError, match="'x'"):
            UPDATES[name].predict(table(values).iloc[:1])


def test_a_column_of_the_same_type_is_taken_and_predict_and_apply_agree():
    for i, (name, values) in enumerate(SAME.values()):
        X = table(values)
        predicted, decided = UPDATES[name].predict(X), PATCHES[name].apply(X)["commod_decision"]
        np.testing.assert_array_equal(predicted, decided.to_numpy())
        if i % 5 == 0:  # one of each type
            np.testing.assert_array_equal(predicted, explain(UPDATES[name], X).y_after)


def test_polars_columns_are_refused_too():
    for name, values in CHANGED.values():
        X = pl.DataFrame({"x": pl.Series(list(values)), "age": np.zeros(N), "score": SCORE})
        for entry in ("predict", "apply"):
            with pytest.raises(InputError, match="'x'"):
                ENTRIES[entry](UPDATES[name], X)


def test_arrays_of_objects_are_refused_too():
    def objects(values):
        return np.array(list(zip(values, SCORE.tolist(), strict=True)), dtype=object)

    update = quick_control(ScoreColumn(1), target=0.9)
    update.fit(objects(NEAR.tolist()), Y, sensitive_features=GROUP)
    update.predict(objects(NEAR.tolist()))
    for other in (NEAR.astype(str).tolist(), NEAR.astype(int).tolist()):
        with pytest.raises(InputError, match="'x0'"):
            update.predict(objects(other))
        with pytest.raises(InputError, match="'x0'"):
            update.predict(objects(other).tolist())


def test_an_audit_refuses_columns_of_another_type_than_the_update_knows():
    X, update = table(NEAR), UPDATES["flag"]
    decided = {"y_before": (X["score"] > 0.5).astype(int), "y_after": update.predict(X)}
    rows = {**decided, "sensitive_features": GROUP, "explanation": explain(update, X)}
    assert audit(X=X, **rows).changes.n_changes == update.changes(X).n_changes
    audit(X=X.assign(other="text"), **rows)
    with pytest.raises(InputError, match="'x' held true or false"):
        audit(X=table(NEAR.astype(str)), **rows)


def test_a_few_values_of_another_type_are_refused_too():
    """A CSV that is read in parts may hold true and false here, and their text there."""
    parts = [*NEAR[:120].tolist(), *NEAR[120:].astype(str).tolist()]
    for entry in ("predict", "explain", "apply"):
        with pytest.raises(InputError, match="'x'"):
            ENTRIES[entry](UPDATES["flag"], table(parts))


def test_a_column_of_several_types_keeps_them_all():
    """Rare values get no points, and their type is known all the same."""
    mixed = FORMS["town"].astype(object)
    mixed[:3] = [7, 8, 9]
    update = quick_control(ScoreColumn("score"), target=0.9)
    X = table(mixed)
    decided = update.fit(X, Y, sensitive_features=GROUP).predict(X)
    each = [update.predict(X.iloc[[i]])[0] for i in range(5)]
    assert each == decided[:5].tolist()
    np.testing.assert_array_equal(update.to_patch().apply(X)["commod_decision"], decided)
    numbers = table(np.full(N, 7.0))
    assert len(update.predict(numbers)) == N
    with pytest.raises(InputError, match="'x'"):
        update.predict(table(NEAR))


def test_numbers_that_were_categories_may_come_as_numbers():
    update = quick_control(ScoreColumn("score"), target=0.9)
    values = np.where(NEAR, 1, 2)
    X = table(pd.Categorical(values))
    decided = update.fit(X, Y, sensitive_features=GROUP).predict(X)
    for form in (values, values.astype(float)):
        again = X.assign(x=form)
        np.testing.assert_array_equal(update.predict(again), decided)
        np.testing.assert_array_equal(update.to_patch().apply(again)["commod_decision"], decided)
    with pytest.raises(InputError, match="'x'"):
        update.predict(X.assign(x=values.astype(str)))


def test_studies_refuse_evaluated_rows_of_another_type():
    X, new = table(NEAR), table(NEAR.astype(str))
    rows = {"sensitive_features": GROUP}
    other = {"X_eval": new, "y_eval": Y, "sensitive_features_eval": GROUP}
    score = ScoreColumn("score")
    for update in (quick_control(score), RejectOption(score)):
        with pytest.raises(InputError, match="'x'"):
            frontier(update, X, Y, **rows, **other)
        with pytest.raises(InputError, match="'x'"):
            stability(update, X, Y, n_refits=2, random_state=0, **rows, **other)
    with pytest.raises(InputError, match="'x'"):
        compare([RejectOption(score)], X, Y, **rows, **other)


VALUES = st.sampled_from([True, False, "True", "a", 2, 0.5, None])


@settings(max_examples=20)
@given(st.lists(VALUES, min_size=1, max_size=8), st.sampled_from(list(FORMS)))
def test_a_table_is_refused_exactly_if_one_of_its_rows_is(values, name):
    update = UPDATES[name]
    frame = table(FORMS[name]).iloc[: len(values)]
    frame = frame.assign(x=pd.Series(values, dtype=object))

    def is_refused(rows):
        try:
            update.predict(rows)
        except InputError:
            return True
        return False

    assert is_refused(frame) == any(is_refused(frame.iloc[[i]]) for i in range(len(values)))
