"""The cheapest changes: against brute force over all sets of changed rows."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from commod.bounds import minimal_changes, minimal_cost
from commod.exceptions import InputError
from commod.metrics._constraint import get_constraint
from commod.metrics._people import People
from fewest_changes import fewest_changes

PARITY, ODDS, TPR, FPR = CONSTRAINTS = (
    "demographic_parity",
    "equalized_odds",
    "true_positive_rate_parity",
    "false_positive_rate_parity",
)
DIRECTIONS = {"any": (True, True), "gains_only": (True, False), "losses_only": (False, True)}
FLOORS = (0.3, 0.5, 2 / 3, 0.8, 0.9, 1.0, Fraction(4, 5))
CEILINGS = (0.0, 0.1, 0.25, 1 / 3, 0.5, 0.8, Fraction(1, 3))
N_INSTANCES = 264  # each constraint, number of groups and direction 11 times


# ---------------------------------------------------------------------------------------------
# Brute force: every set of changed rows


class Instance:
    """Few random rows in which every rate is defined, with costs that add up without rounding."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        kinds = list(itertools.product(CONSTRAINTS, (2, 3), DIRECTIONS))
        self.constraints, n_groups, self.direction = kinds[seed % len(kinds)]
        labels = {PARITY: [0], ODDS: [0, 1], TPR: [1], FPR: [0]}[self.constraints]
        cells = np.array(list(itertools.product(range(n_groups), labels)))
        n_more = 11 - len(cells) - seed % 3
        more = np.column_stack([rng.integers(0, n_groups, n_more), rng.integers(0, 2, n_more)])
        self.group, self.y_true = np.vstack([cells, more]).T
        n = len(self.group)
        self.y_pred = (rng.random(n) < rng.choice([0.2, 0.5, 0.8])).astype(int)
        dyadic = rng.integers(0, 256, n) / 64
        self.cost = rng.choice([dyadic, rng.integers(0, 3, n), np.ones(n), 8.0 * (dyadic > 2)])
        self.may_change = rng.random(n) < rng.choice([0.6, 1.0])
        self.target = rng.choice(
            np.array(FLOORS if self.constraints == PARITY else CEILINGS, object)
        )

    @property
    def request(self):
        return {
            "sensitive_features": self.group,
            "target": self.target,
            "constraints": self.constraints,
            "y_true": None if self.constraints == PARITY else self.y_true,
            "direction": self.direction,
        }

    def allowed_changes(self):
        """Every set of changed rows that direction and mask allow: (sets, rows)."""
        n = len(self.y_pred)
        changed = (np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1
        up, down = DIRECTIONS[self.direction]
        allowed = self.may_change & np.where(self.y_pred == 1, down, up)
        return changed[~(changed & ~allowed).any(axis=1)]

    def reaches(self, changed):
        """Whether each set of changes reaches the target: one division of whole numbers."""
        after = np.where(changed, 1 - self.y_pred, self.y_pred)
        kept = {PARITY: [self.y_true >= 0], ODDS: [self.y_true == 1, self.y_true == 0]}
        above, below = np.zeros(len(changed), int), 1
        for rows in kept.get(self.constraints, [self.y_true == (self.constraints == TPR)]):
            cells = [rows & (self.group == s) for s in np.unique(self.group)]
            unit = math.lcm(*(int(cell.sum()) for cell in cells))
            rates = [after[:, cell].sum(axis=1) * (unit // cell.sum()) for cell in cells]
            top, bottom = np.max(rates, axis=0), np.min(rates, axis=0)
            if self.constraints == PARITY:
                above, below = bottom, top
            else:
                above, below = above * unit + (top - bottom) * below, below * unit
        target = self.target
        if isinstance(target, Fraction):
            left, right = above * target.denominator, below * target.numerator
        else:
            with np.errstate(invalid="ignore"):
                left, right = above / below, target
        fair = left >= right if self.constraints == PARITY else left <= right
        return fair & (below > 0)

    def cheapest(self):
        """The least cost and, among the cheapest, the fewest changes; None where there are none."""
        changed = self.allowed_changes()
        changed = changed[self.reaches(changed)]
        costs = changed @ self.cost
        return min(zip(costs.tolist(), changed.sum(axis=1).tolist(), strict=True), default=None)


def test_the_cheapest_changes_of_all_sets_of_rows():
    n_reached = 0
    for seed in range(N_INSTANCES):
        rows = Instance(seed)
        limit = minimal_cost(
            rows.y_pred,
            change_cost=rows.cost,
            may_change=rows.may_change,
            **rows.request,
        )
        best = rows.cheapest()
        if best is None:
            assert (limit.cost, limit.n_changes, limit.flips) == (math.inf, None, {}), seed
            assert math.isnan(limit.rate)
            continue
        n_reached += 1
        assert (limit.cost, limit.n_changes) == best, seed
        assert limit.n_changes == sum(limit.flips.values())
        assert limit.rate == limit.n_changes / len(rows.y_pred)
    assert n_reached > 120


def test_the_fewest_changes_among_rows_that_may_change():
    for seed in range(0, N_INSTANCES, 5):
        rows = Instance(seed)
        rows.cost = np.ones(len(rows.cost))
        constraint = get_constraint(rows.constraints)
        n_groups = len(set(rows.group))
        shape = len(constraint.rate_rows), n_groups
        cells = People((constraint,), rows.group, n_groups, rows.y_true == 1).index
        is_up = rows.y_pred == 1

        def count(mask, cells=cells, shape=shape):
            counts = np.bincount(cells[mask & (cells >= 0)], minlength=math.prod(shape))
            return counts.reshape(shape)

        up, down = DIRECTIONS[rows.direction]
        after = fewest_changes(
            constraint,
            count(cells >= 0),
            count(is_up),
            rows.target,
            may_raise=up,
            may_lower=down,
            n_raisable=count(~is_up & rows.may_change),
            n_lowerable=count(is_up & rows.may_change),
        )
        best = rows.cheapest()
        if best is None:
            assert after is None, seed
        else:
            assert np.abs(after - count(is_up)).sum() == best[1], seed


# ---------------------------------------------------------------------------------------------
# What a user relies on


def random_rows(seed, n, n_groups=3):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n)
    y_true = (rng.random(n) < 0.4).astype(int)
    score = np.clip(rng.normal(0.45 + 0.12 * y_true - 0.06 * group, 0.2), 0, 1)
    return score, (score > 0.5).astype(int), y_true, group


@pytest.mark.parametrize(
    ("constraints", "direction"),
    [(PARITY, "losses_only"), (ODDS, "gains_only"), (TPR, "any"), (FPR, "any")],
)
def test_with_equal_costs_the_cheapest_are_the_fewest(constraints, direction):
    for seed, n_groups in ((0, 2), (1, 3)):
        _, y_pred, y_true, group = random_rows(seed, 500, n_groups)
        request = {
            "sensitive_features": group,
            "target": 0.9 if constraints == PARITY else 0.1,
            "constraints": constraints,
            "y_true": y_true,
            "direction": direction,
        }
        fewest = minimal_changes(y_pred, **request)
        for price in (1, 0.375):  # sums of 0.375 have no rounding error
            cheapest = minimal_cost(y_pred, change_cost=np.full(500, price), **request)
            assert (cheapest.n_changes, cheapest.rate) == (fewest.n_changes, fewest.rate)
            assert cheapest.cost == pytest.approx(price * fewest.n_changes)
            if constraints != ODDS:
                assert cheapest.flips == fewest.flips


@pytest.mark.parametrize("constraints", [PARITY, ODDS])
def test_borderline_people_are_cheaper_and_the_unit_of_the_cost_does_not_matter(constraints):
    score, y_pred, y_true, group = random_rows(0, 300)
    distance = np.abs(score - 0.5)
    request = {
        "sensitive_features": group,
        "target": 0.9 if constraints == PARITY else 0.1,
        "constraints": constraints,
        "y_true": y_true,
    }
    fewest = minimal_changes(y_pred, **request)
    cheapest = minimal_cost(y_pred, change_cost=distance, **request)
    assert cheapest.n_changes >= fewest.n_changes
    for factor in (2.0**-300, 2.0**300):
        scaled = minimal_cost(y_pred, change_cost=factor * distance, **request)
        assert (scaled.cost, scaled.flips) == (factor * cheapest.cost, cheapest.flips)
    # Very dear rows that nobody needs to change make no difference.
    dear = np.where(distance > 0.2, 1e12, distance)
    assert minimal_cost(y_pred, change_cost=dear, **request) == cheapest


def test_rows_that_may_not_change_can_make_a_target_unreachable():
    score, y_pred, _, group = random_rows(0, 2000)
    request = {"change_cost": np.abs(score - 0.5), "sensitive_features": group, "target": 0.95}
    costs = [
        minimal_cost(y_pred, may_change=np.abs(score - 0.5) <= width, **request).cost
        for width in (0.001, 0.05, 0.1, 1.0)
    ]
    assert costs[0] == math.inf
    assert costs == sorted(costs, reverse=True)


def test_one_of_two_rates_that_may_not_move_can_make_a_target_unreachable():
    y_true = np.repeat([1, 0], 4)
    y_pred, group = [1, 1, 0, 0, 1, 0, 1, 0], ["a", "a", "b", "b"] * 2
    asked = {"constraints": ODDS, "y_true": y_true, "sensitive_features": group, "target": 0.5}
    found = minimal_cost(y_pred, change_cost=np.full(8, 3.0), **asked)
    assert (found.cost, found.n_changes) == (3.0, 1)  # one of the four whose label is 1
    found = minimal_cost(y_pred, change_cost=np.ones(8), may_change=y_true == 0, **asked)
    assert (found.cost, found.n_changes, found.flips) == (math.inf, None, {})
    # a gap of a half stays in one rate, so that a quarter is left for the other one
    y_pred, asked["target"] = [1, 1, 1, 0, 1, 1, 0, 0], 0.75
    found = minimal_cost(y_pred, change_cost=np.ones(8), may_change=y_true == 0, **asked)
    assert (found.cost, found.n_changes) == (2.0, 2)


def test_many_rows_are_no_obstacle():
    score, y_pred, y_true, group = random_rows(0, 100_000)
    for constraints, target in ((PARITY, 0.9), (TPR, 0.05)):
        limit = minimal_cost(
            y_pred,
            change_cost=np.abs(score - 0.5),
            sensitive_features=group,
            target=target,
            constraints=constraints,
            y_true=y_true,
        )
        assert limit.n_changes > 1000


def test_bad_costs_and_masks_are_refused():
    y_pred, group = [1, 0, 1, 0], ["a", "a", "b", "b"]
    request = {"sensitive_features": group, "target": 0.8}
    for cost, message in (
        ([1, 2, 3], "change_cost has 3 rows, but 4 were expected"),
        ([1, 2, 3, -1], "costs must be finite and at least 0"),
        ([1, 2, 3, math.nan], "costs must be finite and at least 0"),
        (["a", "b", "c", "d"], "change_cost must hold numbers; got 'a'"),
    ):
        with pytest.raises(InputError, match=message) as error:
            minimal_cost(y_pred, change_cost=cost, **request)
        assert error.value.parameter == "change_cost"
    for mask, message in (
        ([True], "may_change has 1 rows, but 4 were expected"),
        ([0, 1, 1, 0], "may_change must hold True or False for each row; got int64"),
    ):
        with pytest.raises(InputError, match=message) as error:
            minimal_cost(y_pred, change_cost=[0] * 4, may_change=mask, **request)
        assert error.value.parameter == "may_change"
    assert minimal_cost(y_pred, change_cost=[0] * 4, **request).cost == 0
