"""Constraints within a column, and several constraints at once, in fits and on frontiers."""

import numpy as np
import pandas as pd
import pytest

from commod import ControlledDebiaser, ScoreColumn, audit, frontier
from commod.constraints import (
    DemographicParity,
    EqualizedOdds,
    Minimum,
    MinimumRate,
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


@pytest.mark.slow
def test_both_constraints_are_expected_on_new_people(people):
    both = DemographicParity(ratio=0.75) & MinimumRate(0.5)
    X, y, group = people
    update = ControlledDebiaser(BASE, constraints=both).fit(X, y, sensitive_features=group)
    expected = update.expected_values_
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
