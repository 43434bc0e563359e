"""No hostile value of any parameter ends in anything but a clear error that names it."""

import decimal
import inspect
import pickle
import warnings
import zlib
from contextlib import suppress
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import commod
import commod.rivals as rivals
from commod import (
    COMMOD,
    ControlledDebiaser,
    ScoreColumn,
    audit,
    audit_frame,
    bounds,
    compare,
    explain,
    frontier,
    metrics,
    stability,
)
from commod.exceptions import InputError, TargetWarning
from commod.rivals import MinimalFlip, RejectOption
from commod.updates.base import SUCCESSORS, BaseUpdate
from quick_updates import quick_control

rng = np.random.default_rng(0)
N = 80
GROUP = np.where(rng.random(N) < 0.5, "a", "b")
X = pd.DataFrame({"x": rng.normal(size=N) + (GROUP == "a"), "z": rng.normal(size=N)})
X["score"] = 1 / (1 + np.exp(0.5 - X.x))
Y = (rng.random(N) < 0.5).astype(int)
BEFORE = (X.score > 0.5).astype(int).to_numpy()
WITH_GROUP = X.assign(group=GROUP == "a")
LINEAR = LogisticRegression().fit(WITH_GROUP, Y)
TREE = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, Y)

UNDEFINED = {
    "nan": float("nan"),
    "nan of NumPy": np.float64("nan"),
    "nan of 32 bits": np.float32("nan"),
    "infinite": float("inf"),
    "minus infinite": -np.inf,
    "complex": 1j,
    "too large": 10**400,
    "decimal nan": decimal.Decimal("nan"),
    "NA": pd.NA,
    "NaT": pd.NaT,
}
OTHER_TYPES = {
    "text": "text",
    "empty text": "",
    "bytes": b"x",
    "surrogate": "\ud800",
    "None": None,
    "True": True,
    "empty list": [],
    "numbers": [1, 2],
    "list of None": [None],
    "dict": {},
    "dict of nan": {"x": float("nan")},
    "array": np.array([1.0, 2.0]),
    "array of one": np.array(0.3),
    "object": object(),
    "class": int,
    "negative": -1,
    "huge": 1e308,
}


def a_third(values, case):
    """Return a third of the values: another third for other cases."""
    return dict(list(values.items())[zlib.crc32(case.encode()) % 3 :: 3])


UPDATES = [
    ControlledDebiaser,
    COMMOD,
    *(getattr(rivals, name) for name in rivals.__all__ if name[0].isupper()),
]
UPDATES = [
    update
    for update in UPDATES
    if inspect.isclass(update) and issubclass(update, BaseUpdate)
    if update not in (rivals.Rival, rivals.AwareRival)  # they are to be derived from
]


def names_of(update):
    return [name for name in inspect.signature(update).parameters if name != "estimator"]


def fitted(update, **parameters):
    own = inspect.signature(update).parameters
    quickest = {"epochs": 0, "borderline": 0, "target_on": "fit_rows"}
    defaults = {"min_group_size": 5, "progress": False} | quickest
    kept = {name: value for name, value in defaults.items() if name in own}
    table, base = X, ScoreColumn("score")
    if "group_column" in own:  # the method asks the base model, which reads this column
        table, base, kept["group_column"] = WITH_GROUP, LINEAR, "group"
    if getattr(update, "needs_tree", False):
        base = TREE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = update(base, **(kept | parameters))
        return model.fit(table, Y, sensitive_features=GROUP)


FIRST = {name: update for update in reversed(UPDATES) for name in names_of(update)}


@pytest.mark.parametrize("update", UPDATES, ids=lambda update: update.__name__)
def test_every_hostile_parameter_is_refused_by_name_or_works(update):
    """Every update refuses every undefined value.

    Values of other types may be accepted, and each of them is then a fit: the first update that
    has the parameter is given a third of them.
    """
    offenders = []
    for name in names_of(update):
        others = a_third(OTHER_TYPES, f"{update.__name__}-{name}") if update is FIRST[name] else {}
        for kind, value in {**UNDEFINED, **others}.items():
            try:
                model = fitted(update, **{name: value})
            except InputError as error:
                is_right = name in str(error) and error.parameter == name
            except Exception as error:
                is_right = False
                offenders.append(repr(error))
            else:
                is_right = kind not in UNDEFINED and np.isfinite(model.change_rate_)
            if not is_right:
                offenders.append(f"{name}={kind}")
    assert offenders == []


RANGES = {  # the least and the largest number that a parameter takes; None: no largest one
    ControlledDebiaser: {
        "target": (0.0, 1.0),
        "max_changes": (0.0, 1.0),
        "max_accuracy_loss": (0.0, 1.0),
        "max_volume_change": (0.0, 1.0),
        "max_margin": (0.0, None),
        "borderline": (0.0, None),
        "confidence": (np.nextafter(0.5, 1), 0.9999),
        "min_category_size": (1, None),
        "max_lines": (1, None),
    },
    COMMOD: {
        "lambda_fair": (0.0, 1e9),
        "lambda_ratio": (0.0, 1e9),
        "lambda_sparsity": (0.0, 1e9),
        "lambda_diversity": (0.0, 1e9),
        "epochs": (0, None),
        "n_concepts": (1, None),
        "min_category_size": (1, None),
    },
}
OF_TRAINING = {
    "batch_size": (1, None),
    "adversary_steps": (1, None),
    "warmup_epochs": (0, None),
    "ramp_epochs": (0, None),
    "learning_rate": (np.nextafter(0.0, 1), 1e9),
    "adversary_learning_rate": (np.nextafter(0.0, 1), 1e9),
}


def test_ranges_include_their_ends_and_nothing_beyond():
    asked = [(kind, name, name, ends) for kind, own in RANGES.items() for name, ends in own.items()]
    asked += [(COMMOD, "training", name, ends) for name, ends in OF_TRAINING.items()]
    for kind, parameter, name, (low, high) in asked:

        def check(value, kind=kind, parameter=parameter, name=name):
            value = {name: value} if parameter == "training" else value
            kind(ScoreColumn("score"), **{parameter: value})._check_parameters()

        for end, direction in ((low, -np.inf), (high, np.inf)):
            if end is None:
                check(10**6)
                continue
            check(end)
            further = np.nextafter(end, direction)
            if type(end) is int:
                further = end + int(np.sign(direction))
            with pytest.raises(InputError, match=name) as refused:
                check(further)
            assert refused.value.parameter == name


def test_an_undefined_threshold_is_refused():
    for update in (ControlledDebiaser, COMMOD, RejectOption):
        for value in (float("nan"), np.float32("nan"), True, "0.5"):
            with pytest.raises(InputError, match="threshold") as error:
                fitted(update, threshold=value)
            assert error.value.parameter == "threshold"


def test_locked_features_must_be_a_list_of_names():
    for value in (None, 3, "x", [1], (name for name in ["x"]), b"x"):
        with pytest.raises(InputError, match="locked_features") as error:
            fitted(ControlledDebiaser, locked_features=value)
        assert error.value.parameter == "locked_features"
    fitted(MinimalFlip)


ROWS = {"X": X, "y": Y, "sensitive_features": GROUP}
RIVAL = RejectOption(ScoreColumn("score"), min_group_size=5)
CALLS = {
    "audit": (audit, {"y_before": BEFORE, "y_after": Y, "sensitive_features": GROUP}),
    "audit_frame": (
        audit_frame,
        {
            "frame": pd.DataFrame({"b": BEFORE, "a": Y, "g": GROUP}),
            "before": "b",
            "after": "a",
            "sensitive_features": "g",
        },
    ),
    "explain": (explain, {"update": None, "X": X, "y_before": BEFORE, "y_after": Y}),
    "frontier": (frontier, {"update": RIVAL, **ROWS, "describe": False}),
    "compare": (compare, {"methods": [RIVAL], **ROWS, "progress": False}),
    "stability": (stability, {"update": RIVAL, **ROWS, "n_refits": 2, "progress": False}),
    "minimal_changes": (
        bounds.minimal_changes,
        {"y_true": Y, "y_pred": BEFORE, "sensitive_features": GROUP, "target": 0.8},
    ),
    "minimal_cost": (
        bounds.minimal_cost,
        {
            "y_true": Y,
            "y_pred": BEFORE,
            "sensitive_features": GROUP,
            "target": 0.8,
            "change_cost": [1.0] * len(Y),
        },
    ),
    "p_rule": (metrics.p_rule, {"y_true": Y, "y_pred": BEFORE, "sensitive_features": GROUP}),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_hostile_argument_of_a_function_is_refused_or_works(name):
    function, arguments = CALLS[name]
    for parameter in inspect.signature(function).parameters:
        for value in a_third(UNDEFINED | OTHER_TYPES, f"{name}-{parameter}").values():
            if parameter in ("update", "targets") and value is None:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with suppress(InputError):
                    function(**(arguments | {parameter: value}))


def test_an_undefined_level_is_refused():
    for name in ("audit", "audit_frame", "explain"):
        function, arguments = CALLS[name]
        for level in (float("nan"), np.float32("nan"), float("inf"), True, "0.95"):
            with pytest.raises(InputError, match="level") as error:
                function(**arguments, level=level)
            assert error.value.parameter == "level"


def test_undefined_targets_of_a_frontier_are_refused():
    update = quick_control(ScoreColumn("score"), min_group_size=5)
    for targets in ([float("nan")], [float("inf")], [True], ["0.8"], "0.8", 0.8):
        with pytest.raises(InputError, match="target"):
            frontier(update, **ROWS, targets=targets)


def test_labels_that_are_no_single_values_are_refused():
    for labels in ([{}] * N, [[1], [1, 2]] * (N // 2), [(1,), {2}] * (N // 2)):
        with pytest.raises(InputError) as error:
            RejectOption(ScoreColumn("score")).fit(X, labels, sensitive_features=GROUP)
        assert error.value.parameter == "y"


# -- columns --------------------------------------------------------------------------------------


def test_columns_with_the_largest_floats_work():
    points = "per bin"
    table = X.assign(
        ends=np.where(rng.random(N) < 0.5, 1e308, -1e308),
        one=np.where(np.arange(N) == 0, 1e308, X.x),
        mixed=rng.choice([1e308, -1e308, 0, 1, np.nan], N),
    )
    update = quick_control(ScoreColumn("score"), min_group_size=5, points=points)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        update.fit(table, Y, sensitive_features=GROUP)
        why = explain(update, table)
        audit(why.y_before, why.y_after, sensitive_features=GROUP, explanation=why)
    decided = update.to_patch().apply(table, "score")
    assert (decided["commod_decision"].to_numpy() == update.predict(table)).all()


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("category", "column 't'"),
        ("name", "the names of the columns of X"),
        ("label", "y"),
        ("group", "sensitive_features"),
    ],
)
def test_lone_surrogates_are_refused_where_they_come_in(where, place):
    bad = np.where(np.arange(N) % 2 == 0, "\ud800", "b").astype(object)
    table, labels, groups = X, Y, GROUP
    if where == "category":
        table = X.assign(t=pd.Series(bad, dtype=object))
    elif where == "name":
        table = X.assign(t=1.0).set_axis(pd.Index([*X.columns, "\udfff"], dtype=object), axis=1)
    elif where == "label":
        labels = bad
    else:
        groups = bad
    update = quick_control(ScoreColumn("score"), min_group_size=5)
    with pytest.raises(InputError, match=f"in {place} has a lone surrogate"):
        update.fit(table, labels, sensitive_features=groups)


# -- what a base model returns --------------------------------------------------------------------

RETURNED = {
    "text": lambda n: np.array([["a", "b"]] * n),
    "digits as text": lambda n: np.array([["0.1", "0.9"]] * n),
    "None": lambda n: None,
    "missing": lambda n: [[None, None]] * n,
    "complex": lambda n: np.full((n, 2), 0.5 + 0j),
    "three columns": lambda n: np.full((n, 3), 0.3),
    "too few rows": lambda n: np.full((n - 1, 2), 0.5),
    "three dimensions": lambda n: np.full((n, 2, 2), 0.5),
    "one number": lambda n: 0.5,
    "a word": lambda n: "hello",
    "ragged": lambda n: [[0.1, 0.9], [0.5]] * (n // 2),
    "dict": lambda n: {},
    "nan": lambda n: np.full((n, 2), np.nan),
}


class Answers:
    """A base model that returns what it is told to."""

    classes_ = np.array([0, 1])

    def __init__(self, method, returned):
        setattr(self, method, lambda table: returned(len(table)))


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_a_base_model_that_returns_no_scores_is_named(method):
    def good(n):
        score = X.score.to_numpy()[:n]
        return np.column_stack([1 - score, score]) if method == "predict_proba" else score - 0.5

    model = Answers(method, good)
    update = RejectOption(model, min_group_size=5).fit(X, Y, sensitive_features=GROUP)
    for returned in RETURNED.values():
        with pytest.raises(InputError, match="base model"):
            RejectOption(Answers(method, returned), min_group_size=5).fit(
                X, Y, sensitive_features=GROUP
            )
        setattr(model, method, lambda table, returned=returned: returned(len(table)))
        with pytest.raises(InputError, match="base model"):
            update.predict(X, sensitive_features=GROUP)


# -- parameters of earlier versions ---------------------------------------------------------------


@pytest.mark.parametrize("estimator", SUCCESSORS)
def test_a_removed_parameter_names_its_successor(estimator):
    method = getattr(commod, estimator)
    update = method(ScoreColumn("score"))
    for name, successor in SUCCESSORS[estimator].items():
        for call in (partial(method, ScoreColumn("score")), update.set_params):
            with pytest.raises(TypeError, match=f"{estimator} has no parameter '{name}'") as caught:
                call(**{name: 1})
            assert str(caught.value).endswith(successor)
            assert caught.value.parameter == name
        assert name not in update.get_params()


@pytest.mark.parametrize(
    ("training", "words"),
    [
        ({"steps": 3}, "training has no key 'steps'; it has batch_size, learning_rate, .*progress"),
        ({3: 3}, "training has no key 3; it has batch_size"),
        ([("batch_size", 3)], "training=.* must be a mapping, such as"),
        ({"init": "random"}, "init='random' is not known; choose one of balanced, zero"),
        ({"reads_score": "yes"}, "reads_score='yes' must be True or False"),
        ({"ramp_epochs": -1}, "ramp_epochs=-1 must be"),
    ],
)
def test_details_of_the_training_are_checked_before_it(training, words):
    with pytest.raises(InputError, match=words):
        COMMOD(ScoreColumn("score"), training=training).fit(X, Y, sensitive_features=GROUP)


def test_the_details_that_are_given_are_kept_as_they_are():
    given = {"batch_size": 40}
    update = COMMOD(ScoreColumn("score"), training=given)
    for copied in (clone(update), pickle.loads(pickle.dumps(update))):
        assert copied.get_params()["training"] == given
    assert update.training is given and update._schedule().batch_size == 40


def test_a_gap_that_looks_like_a_ratio_is_noticed():
    constraints = "equalized_odds"
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"x": rng.normal(size=400)})
    label = (table.x + rng.normal(size=400) > 0).astype(int)
    group = np.where(rng.random(400) < 0.5, "a", "b")
    table["score"] = 1 / (1 + np.exp(-table.x))
    asked = {"constraints": constraints, "target": 0.95}
    with pytest.warns(TargetWarning, match=r"at most 0\.95, .* 0\.95 looks like a ratio"):
        update = quick_control(ScoreColumn("score"), **asked).fit(
            table, label, sensitive_features=group
        )
    assert "looks like a ratio" in update.status_ and update.reached_
    table["score"] = np.where(group == "a", 0.3, 0.7) + 0.01 * table.x  # a gap of nearly 1
    update = quick_control(ScoreColumn("score"), **asked)
    update.fit(table, label, sensitive_features=group)
    assert "looks like a ratio" not in update.status_
