"""A budget is used up to parity; the price of a target is per unit of the target."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from commod import ScoreColumn, metrics
from commod.datasets import make_biased
from commod.exceptions import CommodWarning
from commod.metrics._constraint import CONSTRAINTS, get_constraint
from commod.updates._held_out import choose_update, is_degenerate
from quick_updates import quick_control


def biased(n, seed=3, **options):
    data = make_biased(n + 400, random_state=seed, **options)
    model = LogisticRegression().fit(data.data[:400], data.target[:400])
    return model, (data.data[400:], data.target[400:], data.sensitive_features[400:])


def fit(model, rows, **params):
    X, y, s = rows
    params = {"sparsity": 0, "borderline": 0, "numeric": "unit", "progress": False, **params}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CommodWarning)
        return quick_control(model, **params).fit(X, y, sensitive_features=s)


@pytest.fixture(scope="module")
def rows():
    return biased(1500)


# -- budget ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("constraints", CONSTRAINTS)
def test_a_large_budget_reaches_parity_and_no_more_changes_are_made(rows, constraints):
    model, people = rows
    update = fit(model, people, constraints=constraints, max_changes=1.0)
    metric = get_constraint(constraints)
    X, _, s = people
    sizes = np.unique(np.asarray(s), return_counts=True)[1]
    if metric.is_ratio:  # one decision of the smallest group, at the lowest rate
        rates = metrics.group_rates(None, update.predict(X), sensitive_features=s)
        rate = min(group["selection_rate"] for group in rates.values())
        assert update.fairness_ >= 1 - 1 / (sizes.min() * rate)
        assert update.fairness_ > 0.98, "it stopped there before"
    else:
        assert update.fairness_ < 0.01, "it stopped there before"
    assert "Parity ended the search, not the budget" in update.status_
    asked = fit(model, people, constraints=constraints, target=update.fairness_)
    if asked.reached_:
        assert update.change_rate_ <= 1.1 * asked.change_rate_


def test_a_larger_budget_than_parity_needs_changes_nothing(rows):
    model, people = rows
    half, whole = (fit(model, people, max_changes=budget) for budget in (0.5, 1.0))
    assert np.array_equal(half.predict(people[0]), whole.predict(people[0]))


def test_a_small_budget_is_used_and_says_so(rows):
    model, people = rows
    update = fit(model, people, max_changes=0.02)
    assert 0.018 <= update.change_rate_ <= 0.02
    assert (
        "The budget ended the search: more changes would improve the P-rule of label 1."
        in update.status_
    )


@pytest.mark.slow
def test_no_target_within_the_budget_is_fairer(rows):
    model, people = rows
    update = fit(model, people, max_changes=0.04)
    for target in (0.65, 0.75, 0.9):
        asked = fit(model, people, target=target, max_changes=0.04)
        assert update.fairness_ >= asked.fairness_ - 0.01


def test_a_base_model_at_parity_stays_as_it_is():
    X, y, _ = biased(400)[1]
    score = np.where(np.arange(400) % 2, 0.8, 0.2)
    groups = np.arange(400) // 2 % 2
    update = fit(ScoreColumn("score"), (X.assign(score=score), y, groups), max_changes=0.2)
    assert update.change_rate_ == 0 and update.fairness_ == 1
    assert "Parity ended the search" in update.status_


def test_columns_that_cannot_help_are_named_as_the_reason(rows):
    model, (X, y, s) = rows
    few = (np.arange(len(X)) < 25) * 1  # all that r could tell apart: 25 people from all others
    table = X[[]].assign(few=few, score=model.predict_proba(X)[:, 1])
    params = {"max_changes": 1.0, "direction": "losses_only", "borderline": 0}
    update = fit(ScoreColumn("score"), (table, y, s), **params)
    assert "Neither the budget nor parity ended the search" in update.status_
    assert "no fairer update of these columns" in update.status_


# -- price ----------------------------------------------------------------------------------------


def price_and_slope(model, people, constraints, share=0.28, distance=0.12):
    """Return `multiplier_` and the slope between fits at targets on both sides.

    The target is a share of the way from the base model to parity; so is the distance.
    """
    X, y, s = people
    base = metrics.fairness_value(constraints, y, model.predict(X), sensitive_features=s)
    way = get_constraint(constraints).ideal - base
    update = fit(model, people, constraints=constraints, target=base + way * share)
    looser, stricter = (  # in the same direction, whose price the multiplier is
        fit(
            model,
            people,
            constraints=constraints,
            target=base + way * part,
            direction=update.direction_,
        )
        for part in (share - distance, share + distance)
    )
    assert 0 < looser.change_rate_ < update.change_rate_ < stricter.change_rate_
    rise = stricter.change_rate_ - looser.change_rate_
    return update.multiplier_, rise / abs(stricter.fairness_ - looser.fairness_)


# Each fit searches anew and changes whole people, so slopes agree to about a third. The multiplier
# keeps the points, so it is above the slope of new searches.
SLOPES_AGREE = 0.35


@pytest.mark.slow
@pytest.mark.parametrize(
    ("constraints", "seed"), [*((one, 3) for one in CONSTRAINTS), ("demographic_parity", 4)]
)
def test_the_multiplier_is_the_slope_of_the_changes_along_the_target(constraints, seed):
    model, people = biased(4000, seed)
    price, slope = price_and_slope(model, people, constraints)
    assert price == pytest.approx(slope, rel=SLOPES_AGREE)


def test_the_multiplier_is_per_unit_of_the_p_rule_where_rates_are_low():
    model, people = biased(3000)
    price, slope = price_and_slope(_Squared(model), people, "demographic_parity")
    assert price == pytest.approx(slope, rel=SLOPES_AGREE)


class _Squared:
    """A model with fewer positive decisions."""

    def __init__(self, model):
        self.model, self.classes_ = model, model.classes_

    def predict_proba(self, X):
        score = self.model.predict_proba(X)[:, 1] ** 2
        return np.column_stack([1 - score, score])

    def predict(self, X):
        return (self.predict_proba(X)[:, 1] > 0.5) * 1


# -- confidence without a promise -----------------------------------------------------------------


def table(first, second, n=100):
    return np.array([[n, n]]), np.array([[first, second]])


@pytest.mark.parametrize(
    ("tables", "base", "kept", "is_promised"),
    [
        ([(30, 50), (28, 50)], (20, 50), 0, False),  # not promised, but fairer: the fairest
        ([(20, 50), (48, 50)], (30, 50), None, False),  # less fair than the base model
        ([(30, 50)], (30, 50), None, False),  # not fairer: a change would help nobody
        ([(0, 0)], (30, 50), None, False),  # undefined is not fairer
        ([(5000, 5000), (4900, 5000), (30, 5000)], (20, 5000), 1, True),
        ([(5000, 5000), (4800, 5000)], (4900, 5000), 0, True),  # the promised one that is fairer
    ],
)
def test_what_is_kept_is_never_less_fair_than_the_base_model(tables, base, kept, is_promised):
    n = 10_000 if is_promised else 100
    constraint = get_constraint("demographic_parity")
    counted = [table(*positives, n) for positives in tables]
    choice = choose_update(constraint, counted, table(*base, n), 0.8, 0.95)
    assert (choice.kept, choice.is_promised) == (kept, is_promised)


def test_a_degenerate_update_is_not_promised_and_ends_the_tests():
    constraint = get_constraint("demographic_parity")
    counted = [table(5000, 5000, 10_000)] * 3
    base = table(20, 5000, 10_000)
    for degenerate, kept, is_promised in [
        ([False, True, False], 0, True),
        ([True, False, False], 0, False),
    ]:
        choice = choose_update(constraint, counted, base, 0.8, 0.95, degenerate)
        assert (choice.kept, choice.is_promised) == (kept, is_promised)
        assert choice.failure == ("" if is_promised else "degenerate")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([1, 0, 0, 0], [0, 1, 1, 0], True),  # three of four change
        ([1, 0, 0, 0], [0, 1, 0, 0], False),  # half of them
        ([1, 1, 0, 0], [0, 0, 0, 0], True),  # nobody is told apart any more
        ([0, 0, 0, 0], [0, 0, 0, 0], False),  # as before
    ],
)
def test_a_degenerate_update_changes_most_decisions_or_makes_them_alike(before, after, expected):
    assert is_degenerate(np.array(before, bool), np.array(after, bool)) is expected


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_without_a_promise_no_update_is_less_fair_than_the_base_model(seed):
    model, people = biased(140, seed, bias=0.3, group_shares=(0.5, 0.5))
    update = fit(model, people, target=0.97, confidence=0.99, random_state=seed)
    assert not update.promised_
    assert update.fairness_ >= update.base_fairness_
    if update.change_rate_ == 0:
        assert "no decision changes (r = 1)" in update.status_
        assert (update.ratio(people[0]) == 1).all()
        assert np.array_equal(update.predict(people[0]), model.predict(people[0]))
    else:
        assert update.fairness_ > update.base_fairness_
        assert "r = 1" not in update.status_
