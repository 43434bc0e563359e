"""Constraints within a column, and several constraints at once, in fits and on frontiers."""

import numpy as np
import pandas as pd
import pytest

from commod import ControlledDebiaser, ScoreColumn, audit, frontier
from commod.constraints import (
    AccuracyParity,
    DemographicParity,
    EqualizedOdds,
    ErrorRatio,
    FalsePositiveRateParity,
    Maximum,
    Minimum,
    MinimumRate,
    MinimumTruePositiveRate,
    Parity,
    PredictiveParity,
    TruePositiveRateParity,
)
from commod.exceptions import InputError, TargetWarning
from quick_updates import quick_control

BASE = ScoreColumn("score")


@pytest.fixture(scope="module")
def people():
    """Return applicants of three departments, their labels and groups."""
    rng = np.random.default_rng(3)
    n = 900
    group = rng.random(n) < 0.4
    X = pd.DataFrame(
        {
            "score": np.clip(rng.normal(0.55 - 0.1 * group, 0.15), 0.01, 0.99),
            "proxy": rng.normal(1.5 * group, 1.0),
            "department": rng.choice(["a", "b", "c"], n),
        }
    )
    y = (rng.random(n) < X["score"]).to_numpy().astype(int)
    return X, y, np.where(group, "women", "men")


def drawn(n, seed):
    """Return people of three groups, whom several columns tell apart, and their weights."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    band = rng.choice(["low", "high"], n)
    X = pd.DataFrame(
        {
            "proxy": rng.normal(group, 0.9),
            "other": rng.normal(group == 1, 0.9),
            "town": np.where(rng.random(n) < 0.6, group.astype(str), rng.choice(["0", "1"], n)),
            "band": band,
        }
    )
    signal = rng.normal(0.9 - 0.5 * group + 0.2 * (band == "low"), 1.0)
    X["score"] = 1 / (1 + np.exp(-signal))
    y = (rng.random(n) < 1 / (1 + np.exp(-(signal + 0.1 * group)))).astype(int)
    return X, y, group, rng.choice([0.5, 1.0, 2.0], n)


@pytest.fixture(scope="module")
def three():
    return drawn(1800, 5)


def metrics_of(constraints, update, rows, **weight):
    """Return all metrics of an update by the public functions."""
    X, y, group, _ = rows
    band = {"control_features": X["band"]} if "within" in repr(constraints) else {}
    value = constraints.value(y, update.predict(X), sensitive_features=group, **band, **weight)
    return np.atleast_1d(value).tolist()


ALL = [  # every rate, every way to compare, alone, within a column and beside others
    DemographicParity(difference=0.1),
    EqualizedOdds(largest=0.15),
    FalsePositiveRateParity(ratio=0.7),
    AccuracyParity(difference=0.02),
    Maximum("error ratio", 1.2),
    Parity("F1 score", difference=0.1),
    Parity("labels per selection", ratio=0.8),
    Minimum("precision", 0.75),
    DemographicParity(ratio=0.9).within("band", over="average"),
    EqualizedOdds(0.3).within("band", over="average"),
    PredictiveParity(difference=0.01).within("band", over="average"),
    EqualizedOdds(0.4) & MinimumTruePositiveRate(0.7),
    DemographicParity(ratio=0.85).within("band")
    & AccuracyParity(difference=0.1)
    & MinimumRate(0.5),
]


@pytest.mark.parametrize("constraints", ALL, ids=repr)
def test_every_constraint_holds_on_the_fit_rows_with_few_changes(three, constraints):
    X, y, group, _ = three
    update = quick_control(BASE, constraints=constraints).fit(X, y, sensitive_features=group)
    values = metrics_of(constraints, update, three)
    assert update.reached_, update.status_
    assert list(update.values_.values()) == pytest.approx(values)
    parts = getattr(constraints, "parts", (constraints,))
    assert all(one.constraint.is_met(v, one.bound) for one, v in zip(parts, values, strict=True))
    assert 0 < update.limit_ <= update.change_rate_ <= 3 * update.limit_ + 0.03


@pytest.mark.parametrize(
    "constraints",
    [
        ErrorRatio(ratio=0.5),
        DemographicParity(ratio=0.85).within("band") & AccuracyParity(difference=0.15),
    ],
    ids=repr,
)
def test_what_is_expected_of_several_metrics_is_near_to_what_new_people_get(three, constraints):
    X, y, group, weight = three
    update = ControlledDebiaser(BASE, constraints=constraints)
    update.fit(X, y, sensitive_features=group, sample_weight=weight)
    assert update.reached_, update.status_
    expected = list(update.expected_.values.values())
    assert list(update.expected_.values) == list(update.values_)
    parts = getattr(constraints, "parts", (constraints,))
    assert all(one.constraint.is_met(v, one.bound) for one, v in zip(parts, expected, strict=True))
    reached = metrics_of(constraints, update, drawn(20_000, 6))
    assert reached == pytest.approx(expected, abs=0.08)
    low, high = update.expected_.interval
    assert low <= reached[0] <= high


def test_weights_and_intersections_count():
    (X, y, group, weight), constraints = drawn(900, 5), EqualizedOdds(0.5)
    both = pd.DataFrame({"group": group, "band": X["band"]})
    update = quick_control(BASE, constraints=constraints)
    update.fit(X.drop(columns="band"), y, sensitive_features=both, sample_weight=weight)
    people = {"sensitive_features": both, "sample_weight": weight}
    value = constraints.value(y, update.predict(X.drop(columns="band")), **people)
    assert update.reached_
    assert value == pytest.approx(update.fairness_)
    assert constraints.constraint.is_met(value, constraints.bound)


def fit(people, constraints, **parameters):
    X, y, group = people
    return quick_control(BASE, constraints=constraints, **parameters).fit(
        X, y, sensitive_features=group
    )


def test_every_stratum_keeps_the_bound(people):
    X, y, group = people
    constraint = DemographicParity(ratio=0.8).within("department")
    update = fit(people, constraint)
    value = constraint.value(
        y, update.predict(X), sensitive_features=group, control_features=X["department"]
    )
    assert update.reached_ and value >= 0.8 > update.base_fairness_
    assert value == pytest.approx(update.fairness_)
    assert update.change_rate_ >= update.limit_ > 0
    assert "3 strata are compared" in update.status_


def test_only_a_ratio_of_selection_rates_has_a_twin_of_the_other_label(people):
    X, y, group = people
    update = fit(people, TruePositiveRateParity(ratio=0.8))
    assert "TPR ratio of label 1" in update.status_ and "ratio of label 0" not in update.status_
    before = (X["score"] > 0.5).astype(int)
    request = {"constraints": TruePositiveRateParity(ratio=0.8)}
    result = audit(before, update.predict(X), y_true=y, sensitive_features=group, request=request)
    twins = {metric.metric for metric in result.fairness if metric.other_after is not None}
    assert twins == {"P-rule"}


def test_two_constraints_hold_at_once(people):
    X, y, group = people
    both = DemographicParity(ratio=0.8) & MinimumRate(0.55)
    update = fit(people, both)
    values = both.value(y, update.predict(X), sensitive_features=group)
    assert update.reached_ and values[0] >= 0.8 and values[1] >= 0.55
    assert list(update.values_.values()) == pytest.approx(values)
    alone = fit(people, DemographicParity(ratio=0.8))
    assert update.change_rate_ >= update.limit_ >= alone.limit_


def test_bounds_that_cannot_be_kept_together_are_said(people):
    both = DemographicParity(ratio=0.95) & Minimum("accuracy", 0.99)
    with pytest.warns(TargetWarning, match="does not hold on the fit rows"):
        update = fit(people, both)
    assert not update.reached_


def test_both_constraints_are_expected_on_new_people(people):
    both = DemographicParity(ratio=0.75) & MinimumRate(0.5)
    X, y, group = people
    update = ControlledDebiaser(BASE, constraints=both).fit(X, y, sensitive_features=group)
    expected = update.expected_.values
    assert list(expected) == ["demographic_parity", "minimum_rate"]
    assert update.reached_ == (
        expected["demographic_parity"] >= 0.75 and expected["minimum_rate"] >= 0.5
    )


def test_one_constraint_moves_along_a_frontier(people):
    X, y, group = people
    update = quick_control(BASE, constraints=DemographicParity(ratio=0.75) & MinimumRate(0.5))
    curve = frontier(
        update, X, y, sensitive_features=group, targets=[0.5, 0.6], moving=1, describe=False
    )
    frame = curve.frame()
    assert curve.constraints == "minimum_rate"
    assert (frame["fairness"] >= frame["target"]).all()
    assert (frame["demographic_parity"] >= 0.75).all()
    with pytest.raises(InputError, match="moving=2"):
        frontier(update, X, y, sensitive_features=group, moving=2)


WITHIN = DemographicParity(ratio=0.8).within("department")


@pytest.mark.parametrize(
    ("constraints", "change", "message"),
    [
        (DemographicParity(ratio=0.8), {"target": 0.9}, "target=0.9"),
        (DemographicParity() & MinimumRate(0.3), {}, "has no bound"),
        (MinimumRate(0.3), {"confidence": 0.9}, "confidence promises one"),
        (
            DemographicParity(ratio=0.8) & TruePositiveRateParity(difference=0.2),
            {"confidence": 0.9},
            "confidence promises one",
        ),
        (DemographicParity(), {"target": None, "max_changes": 5}, "5%, pass 0.05"),
        (DemographicParity(ratio=0.8).within("departmnt"), {}, "'department'"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_way_out(people, constraints, change, message):
    with pytest.raises(InputError, match=message):
        fit(people, constraints, **change)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (lambda n: np.where(np.arange(n) == 5, None, "a"), "missing value"),
        (lambda n: np.arange(n) // 3, "leaves nothing to compare"),
    ],
)
def test_conditions_that_cannot_be_compared_are_refused(people, values, message):
    X, y, group = people
    X = X.assign(department=values(len(X)))
    with pytest.raises(InputError, match=message):
        fit((X, y, group), WITHIN)


def test_hundreds_of_strata_are_refused(people):
    X, y, group = people
    many = DemographicParity(ratio=0.8).within("department", min_rows=1)
    number = pd.Series(group).groupby(group).cumcount()
    with pytest.raises(InputError, match="at most 200"):
        fit((X.assign(department=(number % 300).to_numpy()), y, group), many)


def test_labels_are_asked_for_by_any_of_the_constraints(people):
    X, _, group = people
    update = quick_control(BASE, constraints=DemographicParity(ratio=0.8) & EqualizedOdds(0.2))
    with pytest.raises(InputError, match="labels"):
        update.fit(X, sensitive_features=group)
