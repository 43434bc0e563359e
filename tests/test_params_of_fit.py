"""What was fitted decides: parameters that are set after `fit` wait for the next one.

Updates that were stored come back as they were.
"""

from __future__ import annotations

import copy
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from commod import COMMOD, TRUSTED_TYPES, ControlledDebiaser, ScoreColumn, explain
from commod.exceptions import CommodWarning, InputError
from commod.rivals import (
    FRAPPE,
    LPP,
    AdversarialDebiasing,
    BayesPlugIn,
    MinimalFlip,
    RejectOption,
    RelaxedThresholdOptimizer,
    ThresholdOptimizer,
    lineup,
)
from commod.updates._notebook import figures_table
from quick_updates import quick_control
from scored_people import GROUP, SCORED, X, Y, quick

pytestmark = [
    pytest.mark.filterwarnings("ignore::commod.exceptions.CommodWarning"),
    pytest.mark.usefixtures("quick_compilation"),
]

ERRORS = "equalized_odds"
LINEUP = lineup(SCORED, random_state=0)
UPDATES = {  # every class once; COMMOD is "margin" and "mlp"
    **{k: u for k, u in LINEUP.items() if k != "COMMOD" and not k.endswith("(aware)")},
    "budget": quick_control(
        SCORED,
        max_changes=0.05,
        threshold=0.4,
        direction="gains_only",
        pos_label=1,
        favorable_label=0,
    ),
    "promise": quick_control(SCORED, monotone={"town": 1}, confidence=0.9),
    "bins": quick_control(SCORED, constraints=ERRORS, points="per bin"),
    "margin": COMMOD(
        SCORED,
        training={"reads_score": True},
        random_state=0,
        lambda_fair=20,
        locked_features=["town"],
    ),
    "mlp": COMMOD(SCORED, architecture="mlp", training={"hidden": (4,)}, random_state=0),
    "errors": MinimalFlip(SCORED, constraints=ERRORS),
    "aware errors": BayesPlugIn(SCORED, aware=True, constraints=ERRORS, lambda_ratio=0.1),
}
OTHER = {
    "estimator": lambda value: ScoreColumn("other"),
    "constraints": lambda value: "demographic_parity" if value == ERRORS else ERRORS,
    "direction": lambda value: "losses_only",
    "architecture": lambda value: "concepts" if value == "mlp" else "mlp",
    "points": lambda value: "per unit" if value == "per bin" else "per bin",
    "sample": lambda value: "all",
    "projection": lambda value: "tensor",
    "objective": lambda value: "balanced_accuracy_score",
    "pos_label": lambda value: 0,
    "favorable_label": lambda value: 1 if value == 0 else 0,
    "locked_features": lambda value: [] if len(value) else ["age", "pay", "score"],
    "monotone": lambda value: {"age": 1},
    "group_model": lambda value: DecisionTreeClassifier(),
    "confidence": lambda value: 0.8 if value is None else None,
    "progress": lambda value: True,
    "training": lambda value: {"batch_size": 64},
}


def another(name, value):
    """Return another valid value of a parameter."""
    if name in OTHER:
        return OTHER[name](value)
    if isinstance(value, bool):
        return not value
    if value is None:
        return 0.3
    if isinstance(value, int | float):
        return value + 3 if isinstance(value, int) else 0.7 * value + 0.02
    return (3,)


SOME = slice(0, 60)  # rows on which outcomes are compared


def told(update, rows=SOME):
    needs = get_tags(update).needs_sensitive_features
    return {"sensitive_features": GROUP[rows]} if needs else {}


def outcome(update):
    """Return all that a fitted update says and decides, by name."""
    rows, table = told(update), X[SOME]
    changes = update.changes(table, **rows)
    why = explain(update, table, **rows)
    found = {
        "predict": update.predict(table, **rows),
        "predict_proba": update.predict_proba(table, **rows),
        "decision_function": update.decision_function(table, **rows),
        "decision_proba": update.decision_proba(table, **rows),
        "gain": changes.gain,
        "loss": changes.loss,
        "before": why.before,
        "after": why.after,
        "explanation": repr(why),
        "settings": why.settings,
        "request": update.request(),
        "status": update.status_,
        "figures": figures_table(update._facts),
        "allowed": update._allowed_changes(),
        "unread": update._unread_columns(),
        "base": update._read_base(table).scores,
        "estimator": update._base_model,
        "tags": {k: v for k, v in vars_of(get_tags(update)) if "needs" in k or "random" in k},
        "score": update.score(table, Y[SOME], **rows),
    }
    if hasattr(update, "ratio"):
        found["ratio"] = update.ratio(table)
    if hasattr(update, "term"):
        found["term"] = update.term(table)
    if hasattr(update, "to_patch") and update.scorecard_ is not None:
        found["patch"] = replace(update.to_patch().content, created="")
        found["concepts"] = update.concepts(table)
        found["person"] = str(why.person(3))
    return found


def vars_of(tags):
    return [(name, getattr(tags, name)) for name in ("needs_sensitive_features", "randomised")]


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, other[name], err_msg=name)
        else:
            assert value == other[name], name


@pytest.fixture(scope="module", params=UPDATES)
def fitted(request, quick_compilation):
    update = quick(clone(UPDATES[request.param]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        update.fit(X, Y, sensitive_features=GROUP)
        return update, outcome(update)


def test_no_parameter_that_is_set_later_changes_a_fitted_update_and_a_file_keeps_it(fitted):
    """It reads rows as it did when it was fitted, and skops needs no type that is not listed."""
    fitted, expected = fitted
    update = copy.deepcopy(fitted)
    for name, value in update.get_params().items():
        update.set_params(**{name: another(name, value)})
    assert_same(expected, outcome(update))
    assert all(getattr(update, n) != v for n, v in fitted.get_params().items() if n != "estimator")
    check_stored(fitted, expected)
    check_column_types(fitted)


def check_stored(fitted, expected):
    # a promise names the groups that it covers; a file counts them
    expected = {**expected, "status": fitted._status_without_names()}
    stored = pickle.loads(pickle.dumps(fitted))
    assert repr(stored) == repr(fitted)
    stored.set_params(threshold=0.9, estimator=ScoreColumn("other"))
    assert_same(expected, outcome(stored))
    skops_io = pytest.importorskip("skops.io")
    written = skops_io.dumps(fitted)
    assert set(skops_io.get_untrusted_types(data=written)) <= set(TRUSTED_TYPES)
    stored = skops_io.loads(written, trusted=list(TRUSTED_TYPES))
    probabilities = (u.decision_proba(X[SOME], **told(u)) for u in (fitted, stored))
    np.testing.assert_array_equal(*probabilities)
    assert (stored.status_, repr(stored)) == (expected["status"], repr(fitted))


def check_column_types(update):
    table, groups = X[SOME], told(update)
    for same in (table["town"].to_numpy()[::-1], [None] * len(table)):
        update.predict(table.assign(town=same), **groups)
    is_oslo = table["town"] == "Oslo"
    for other in (is_oslo, is_oslo.astype(int)):
        changed = table.assign(town=other)
        if "town" in (getattr(update, "locked_features", None) or ()):  # nobody reads it
            update.predict(changed, **groups)
            continue
        for method in ("predict", "predict_proba", "decision_function", "changes"):
            with pytest.raises(InputError, match="'town'"):
                getattr(update, method)(changed, **groups)
        with pytest.raises(InputError, match="'town'"):
            explain(update, changed, sensitive_features=GROUP[SOME])


def test_a_copy_and_the_next_fit_use_the_new_parameters():
    update = quick_control(SCORED, target=0.9).fit(X, Y, sensitive_features=GROUP)
    update.set_params(direction="gains_only", target=0.8, threshold=0.4, constraints=ERRORS)
    fresh = quick_control(
        SCORED,
        direction="gains_only",
        target=0.8,
        threshold=0.4,
        constraints=ERRORS,
    ).fit(X, Y, sensitive_features=GROUP)
    assert clone(update).get_params() == fresh.get_params()
    assert_same(outcome(update.fit(X, Y, sensitive_features=GROUP)), outcome(fresh))


def test_the_next_fit_of_a_rival_uses_the_new_parameters():
    update = clone(UPDATES["RejectOption"]).fit(X, Y, sensitive_features=GROUP)
    changed = {"threshold": 0.4, "constraints": "true_positive_rate_parity", "strength": 0.3}
    update.set_params(**changed).fit(X, Y, sensitive_features=GROUP)
    fresh = clone(UPDATES["RejectOption"]).set_params(**changed).fit(X, Y, sensitive_features=GROUP)
    assert_same(outcome(update), outcome(fresh))


@pytest.mark.parametrize(
    "update",
    [quick_control(SCORED, target=0.9), RejectOption(SCORED)],
    ids=lambda update: type(update).__name__,
)
def test_a_fit_that_fails_leaves_the_earlier_one_in_force(update):
    rows = {"X": X, "y": Y, "sensitive_features": GROUP}
    expected = outcome(update.fit(**rows))
    update.set_params(threshold=0.7, estimator=ScoreColumn("other"), pos_label=0)
    unfitted = clone(update)
    for wrong in ({"y": Y[:-1]}, {"sensitive_features": None}):
        for one in (update, unfitted):
            with pytest.raises(InputError):
                one.fit(**{**rows, **wrong})
    assert_same(expected, outcome(update))
    assert vars(unfitted).keys() == vars(clone(update)).keys()


def test_lists_that_are_changed_in_place_change_nothing():
    locked = ["town"]
    update = quick_control(SCORED, target=0.9, locked_features=locked)
    expected = outcome(update.fit(X, Y, sensitive_features=GROUP))
    locked += ["age", "pay"]
    assert_same(expected, outcome(update))


def test_another_base_model_waits_for_the_next_fit():
    table = X[["age", "pay"]]
    one, two = (LogisticRegression(C=c).fit(table, y) for c, y in ((1.0, Y), (0.1, 1 - Y)))
    update = quick_control(one, target=0.9).fit(table, Y, sensitive_features=GROUP)
    before, patch = update.predict_proba(table), update.to_patch().content.base
    update.set_params(estimator=two)
    np.testing.assert_array_equal(update.predict_proba(table), before)
    assert update._base_model is one and update.to_patch().content.base == patch
    assert update.fit(table, Y, sensitive_features=GROUP)._base_model is two


def test_an_update_without_the_record_still_decides():
    """Version 0.1 stored none; its updates decide with their present parameters."""
    update = quick_control(SCORED, target=0.9).fit(X, Y, sensitive_features=GROUP)
    expected = outcome(update)
    del update._params_of_fit
    assert_same(expected, outcome(update))


def test_every_class_of_updates_is_tried():
    tried = {type(update) for update in UPDATES.values()}
    assert tried >= {
        *(COMMOD, ControlledDebiaser, AdversarialDebiasing, BayesPlugIn, FRAPPE, LPP),
        *(MinimalFlip, RejectOption, RelaxedThresholdOptimizer, ThresholdOptimizer),
    }
