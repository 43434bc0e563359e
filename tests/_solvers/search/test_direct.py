"""The direct solver's parts against slow and plain ways to compute the same things."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad, minimize
from scipy.special import expit

from commod._data.encoding import learn_encoding
from commod._data.inputs import read_columns
from commod._solvers.search import annealing
from commod._solvers.search.annealing import (
    RIDGE,
    SearchTask,
    _SoftObjective,
    anneal,
    costs_and_multiplier,
)
from commod._solvers.search.design import Design, Lookup, unit_spread
from commod._solvers.search.initial_direction import RIDGE as INITIAL_RIDGE
from commod._solvers.search.initial_direction import initial_direction
from commod._solvers.search.offset import Direction, _binned_offset, best_offset
from commod._solvers.search.path import REFERENCE_POSITION, solve, solve_path
from commod._solvers.search.rates import (
    Caps,
    Cells,
    SumLimits,
    change_effects,
    count_cells,
    fairness_limits,
)
from commod.metrics import fairness_value

CONSTRAINTS = (
    "demographic_parity",
    "equalized_odds",
    "true_positive_rate_parity",
    "false_positive_rate_parity",
)
quick = settings(deadline=None, max_examples=60)
seeds = st.integers(0, 2**32 - 1)


def is_met(constraints, value, target):
    if constraints == "demographic_parity":
        return value >= target - 1e-12
    return value <= target + 1e-12


class Small:
    """A random small task: groups, labels, decisions, weights, and what changes would do."""

    def __init__(self, seed, constraints="demographic_parity", n=24, n_groups=2, caps=None):
        rng = np.random.default_rng(seed)
        self.rng, self.n, self.constraints = rng, n, constraints
        self.group = np.arange(n) % n_groups
        self.label = (np.arange(n) // n_groups) % 2 == 0  # every group has both labels
        self.decisions = rng.random(n) < np.where(self.group == 0, 0.7, 0.3)
        self.weight = rng.choice([0.5, 1.0, 2.0], n)
        self.may_change = rng.random(n) < 0.8
        self.cells = Cells.of(constraints, self.group, n_groups, self.label)
        self.effects = change_effects(
            self.cells, self.decisions, self.weight, may_change=self.may_change, label=self.label
        )
        self.caps = Caps() if caps is None else caps

    def limits(self, target):
        return fairness_limits(self.constraints, target, self.effects, self.caps)

    def task(self, design, limits, bounds=None):
        columns = np.arange(design.width)
        return SearchTask(
            design, self.effects, limits, columns, self.weight, (), bounds, sparsity=0.0
        )

    def fairness(self, changed):
        after = (self.decisions ^ changed).astype(int)
        return fairness_value(
            self.constraints,
            self.label.astype(int),
            after,
            sensitive_features=self.group,
            sample_weight=self.weight,
        )

    def within_caps(self, changed):
        share = self.weight / self.weight.sum()
        after = self.decisions ^ changed
        loss = share @ (self.decisions == self.label) - share @ (after == self.label)
        volume = abs(share @ after - share @ self.decisions)
        figures = ((changed.mean(), self.caps.changes), (loss, self.caps.accuracy_loss))
        figures = (*figures, (volume, self.caps.volume_change))
        return all(cap is None or value <= cap + 1e-9 for value, cap in figures)


# -- what a change does ---------------------------------------------------------------------------


@quick
@given(seed=seeds, constraints=st.sampled_from(CONSTRAINTS), n_groups=st.integers(2, 4))
def test_effects_are_the_changes_of_rates_accuracy_and_volume(seed, constraints, n_groups):
    small = Small(seed, constraints, n_groups=n_groups)
    changed = (small.rng.random(small.n) < 0.4) & small.may_change
    sums = small.effects.sums(changed)
    after, w = small.decisions ^ changed, small.weight
    rates = [
        np.average(after[small.cells.index == c], weights=w[small.cells.index == c])
        for c in range(np.prod(small.cells.shape))
    ]
    np.testing.assert_allclose(sums[:-3], rates, atol=1e-12)
    assert sums[-3] == pytest.approx(changed.mean())  # people, whatever their weight
    gain = np.average(after == small.label, weights=w)
    gain -= np.average(small.decisions == small.label, weights=w)
    assert sums[-2] == pytest.approx(gain, abs=1e-12)
    volume = np.average(after, weights=w) - np.average(small.decisions, weights=w)
    assert sums[-1] == pytest.approx(volume, abs=1e-12)


@pytest.mark.parametrize(
    ("constraints", "n_groups", "n_bytes"),
    [
        ("demographic_parity", 255, 1),
        ("demographic_parity", 256, 2),
        ("demographic_parity", 700, 2),
        ("equalized_odds", 150, 2),
        ("true_positive_rate_parity", 300, 2),
    ],
)
def test_many_cells_in_few_bytes_are_counted_one_by_one(
    constraints, n_groups, n_bytes, monkeypatch
):
    monkeypatch.setattr("commod._solvers.search.rates.MAX_ROWS_WITH_WIDE_CODES", 100)
    n, rng = 20 * n_groups, np.random.default_rng(n_groups)
    group = np.arange(n) % n_groups
    label = (np.arange(n) // n_groups) % 2 == 0
    group[rng.random(n) < 0.1] = -1  # groups that are left out: in no cell
    decisions, changed = rng.random((2, n)) < 0.4
    weight = rng.choice([0.5, 1.0, 2.0], n)
    cells = Cells.of(constraints, group, n_groups, label)
    everybody = np.ones(n, dtype=bool)
    effects = change_effects(cells, decisions, weight, may_change=everybody, label=label)
    assert effects.cell.dtype.itemsize == n_bytes

    def members_of(c):
        rate_row = {"equalized_odds": label == (c < n_groups), "true_positive_rate_parity": label}
        return (group == c % n_groups) & rate_row.get(constraints, everybody)

    members = [members_of(c) for c in range(cells.shape[0] * n_groups)]
    sizes, positives = count_cells(cells, decisions)
    assert sizes.ravel().tolist() == [cell.sum() for cell in members]
    assert positives.ravel().tolist() == [(cell & decisions).sum() for cell in members]
    after_changes = decisions ^ changed
    for after, sums in ((decisions, effects.base_sums), (after_changes, effects.sums(changed))):
        by_hand = [np.average(after[cell], weights=weight[cell]) for cell in members]
        np.testing.assert_allclose(sums[:-3], by_hand, atol=1e-12)


@quick
@given(
    seed=seeds,
    constraints=st.sampled_from(CONSTRAINTS),
    n_groups=st.integers(2, 4),
    target=st.sampled_from([0.1, 0.3, 0.5, 0.8, 1.0]),
)
def test_limits_hold_exactly_where_the_metric_meets_the_target(seed, constraints, n_groups, target):
    caps = Caps(changes=0.4, accuracy_loss=0.1, volume_change=0.15)
    small = Small(seed, constraints, n_groups=n_groups, caps=caps)
    changed = (small.rng.random(small.n) < 0.3) & small.may_change
    limits = small.limits(target)
    over = limits.matrix @ small.effects.sums(changed) - limits.bound
    if limits.split.any():  # the two gaps may split the allowance
        soft = over[limits.split > 0].max() + over[limits.split < 0].max()
    else:
        soft = over[: limits.n_soft].max()
    assert (soft <= 1e-12) == bool(is_met(constraints, small.fairness(changed), target))
    assert (over[limits.n_soft :].max() <= 1e-9) == small.within_caps(changed)


def test_rates_of_zero_everywhere_do_not_count_as_parity():
    small = Small(0)
    limits = small.limits(0.8)
    everybody = np.ones(small.n, dtype=bool)
    effects = change_effects(small.cells, small.decisions, small.weight, may_change=everybody)
    nobody = effects.sums(small.decisions)
    np.testing.assert_allclose(nobody[:2], 0, atol=1e-12)
    assert (limits.matrix @ nobody - limits.bound).max() > 1e-3


def test_an_error_weighs_as_much_as_asked_for():
    small = Small(3)
    effects = change_effects(
        small.cells,
        small.decisions,
        small.weight,
        may_change=small.may_change,
        label=small.label,
        accuracy_weight=0.5,
    )
    wrong = small.decisions != small.label
    # a row that may not change costs nothing
    expected = np.where(wrong, 0.5, 1.5) * small.may_change
    np.testing.assert_allclose(effects.cost * small.n, expected)


@pytest.mark.parametrize("constraints", CONSTRAINTS)
def test_counts_of_cells(constraints):
    group = np.array([0, 0, 1, 1, -1, 1])  # the fifth row belongs to no large group
    label = np.array([True, False, True, False, True, True])
    decisions = np.array([True, True, True, False, True, False])
    cells = Cells.of(constraints, group, 2, label)
    sizes, positives = count_cells(cells, decisions)
    expected = {
        "demographic_parity": ([[2, 3]], [[2, 1]]),
        "equalized_odds": ([[1, 2], [1, 1]], [[1, 1], [1, 0]]),
        "true_positive_rate_parity": ([[1, 2]], [[1, 1]]),
        "false_positive_rate_parity": ([[1, 1]], [[1, 0]]),
    }
    assert (sizes.tolist(), positives.tolist()) == expected[constraints]


# -- the exact cut --------------------------------------------------------------------------------


def cuts_by_hand(small, target, eta):
    """(violated, cost, changed) of every cut of the free rows, each tried by itself."""
    values = np.unique(eta[small.may_change])
    for lowest in [*values, np.inf]:
        changed = small.may_change & (eta >= lowest)
        if small.within_caps(changed):
            met = is_met(small.constraints, small.fairness(changed), target)
            yield not met, changed.sum() / small.n, changed


@quick
@given(
    seed=seeds,
    constraints=st.sampled_from(CONSTRAINTS),
    n_groups=st.integers(2, 3),
    target=st.sampled_from([0.2, 0.5, 0.8]),
    ties=st.booleans(),
    capped=st.booleans(),
)
def test_the_best_cut_is_the_best_of_all_cuts(seed, constraints, n_groups, target, ties, capped):
    caps = Caps(changes=0.25, accuracy_loss=0.2, volume_change=0.2) if capped else Caps()
    small = Small(seed, constraints, n_groups=n_groups, caps=caps)
    eta = small.rng.integers(-3, 4, small.n) if ties else small.rng.normal(size=small.n)
    eta = eta.astype(float)
    cut = best_offset(small.effects, small.limits(target), eta, np.zeros(0))
    changed = small.may_change & (eta + cut.offset > 0)
    assert cut.cost == pytest.approx(changed.sum() / small.n)
    assert small.within_caps(changed)
    every = list(cuts_by_hand(small, target, eta))
    reached = [cost for missed, cost, _ in every if not missed]
    if reached:
        assert cut.violation == 0
        assert is_met(constraints, small.fairness(changed), target)
        assert cut.cost == pytest.approx(min(reached))
    else:
        assert cut.violation > 0


def test_of_cuts_that_miss_the_target_the_closest_is_taken():
    small = Small(5, caps=Caps(changes=0.1))
    eta = np.where(small.group == 1, 1.0, -1.0) * np.where(small.decisions, -1, 1)
    eta = eta + 0.01 * np.arange(small.n)
    cut = best_offset(small.effects, small.limits(1.0), eta, np.zeros(0))
    changed = small.may_change & (eta + cut.offset > 0)
    values = [small.fairness(c) for _, _, c in cuts_by_hand(small, 1.0, eta)]
    assert changed.any()
    assert small.fairness(changed) == pytest.approx(max(values))


def test_blocks_do_not_change_the_cut(monkeypatch):
    small = Small(7, n=200)
    eta = small.rng.normal(size=small.n)
    whole = best_offset(small.effects, small.limits(0.8), eta, np.zeros(0))
    monkeypatch.setattr("commod._solvers.search.offset._n_prefixes", lambda limits: 7)
    parts = best_offset(small.effects, small.limits(0.8), eta, np.zeros(0))
    assert (whole.offset, whole.violation) == (parts.offset, parts.violation)
    assert whole.cost == pytest.approx(parts.cost)


@pytest.mark.parametrize("eta", [np.zeros(24), np.arange(24.0)], ids=["all tied", "spread"])
def test_nobody_free_means_nobody_changes(eta):
    small = Small(1)
    effects = replace(small.effects, may_change=np.zeros(24, dtype=bool))
    cut = best_offset(effects, small.limits(0.8), eta, np.zeros(0))
    assert cut.cost == 0


def test_all_rows_tied_change_together_or_not_at_all():
    small = Small(2)
    cut = best_offset(small.effects, small.limits(0.8), np.zeros(small.n), np.zeros(0))
    n_changed = (small.may_change & (cut.offset > 0)).sum()
    assert n_changed in (0, small.may_change.sum())
    assert cut.cost == pytest.approx(n_changed / small.n)


def test_directions_are_compared_by_violation_then_cost():
    w = np.zeros(1)
    assert Direction(w, 0, 5.0, 0.0).better_than(Direction(w, 0, 1.0, 0.1))
    assert Direction(w, 0, 1.0, 0.1).better_than(Direction(w, 0, 2.0, 0.1))
    assert not Direction(w, 0, 1.0, 0.0).better_than(Direction(w, 0, 1.0, 0.0))


# -- soft changes ---------------------------------------------------------------------------------


def small_design(seed, n, p=3, c=2):
    rng = np.random.default_rng(seed)
    present = rng.random((n, c)) < 0.4
    lookups = [Lookup.of(np.where(present[:, j], 0, 1), np.array([j])) for j in range(c)]
    terms = np.arange(p + c)
    return Design(rng.normal(size=(n, p)), tuple(lookups), np.ones(c), terms, terms)


@pytest.mark.parametrize("constraints", CONSTRAINTS)
@pytest.mark.parametrize("temperature", [0.5, 0.1])
def test_the_gradient_of_the_soft_objective(constraints, temperature):
    caps = Caps(changes=0.1, accuracy_loss=0.0, volume_change=0.01)
    small = Small(11, constraints, n=60, n_groups=3, caps=caps)
    target = 0.9 if constraints == "demographic_parity" else 0.05
    limits = small.limits(target)
    soft = _SoftObjective(small.task(small_design(0, 60), limits), temperature)
    v = 0.5 * np.random.default_rng(1).normal(size=7)
    multipliers = np.linspace(0, 0.5, len(limits.bound))
    error = check_grad(
        lambda v: soft.value_and_gradient(v, multipliers)[0],
        lambda v: soft.value_and_gradient(v, multipliers)[1],
        v,
    )
    size = np.linalg.norm(soft.value_and_gradient(v, multipliers)[1])
    assert size > 0.01
    assert error < 1e-5 * size


def test_the_soft_objective_by_hand():
    small = Small(4, n=40)
    limits = small.limits(0.9)
    design = small_design(2, 40)
    soft = _SoftObjective(small.task(design, limits), 0.2)
    v = np.random.default_rng(3).normal(size=7)
    multipliers = np.full(len(limits.bound), 0.3)
    p = expit((design.times(v[:5]) + v[5]) / 0.2) * small.may_change
    over = limits.matrix @ small.effects.sums(p) - limits.bound
    np.testing.assert_allclose(soft.violations(v), over - limits.split * v[6])
    force = np.maximum(0, multipliers + limits.penalty * over)
    penalty = force @ force / 2 / limits.penalty
    by_hand = small.effects.cost @ p + penalty + RIDGE / 2 * v[:5] @ v[:5]
    assert soft.value_and_gradient(v, multipliers)[0] == pytest.approx(by_hand)


def test_cold_soft_changes_are_the_changes():
    small = Small(6, n=50)
    design = small_design(4, 50)
    v = np.random.default_rng(5).normal(size=7)
    soft = _SoftObjective(small.task(design, small.limits(0.8)), 1e-4)
    changed = small.may_change & (design.times(v[:5]) + v[5] > 0)
    limits = small.limits(0.8)
    over = limits.matrix @ small.effects.sums(changed) - limits.bound - limits.split * v[6]
    np.testing.assert_allclose(soft.violations(v), over, atol=1e-3)


def test_annealing_is_never_worse_than_where_it_begins_and_keeps_to_the_bounds(monkeypatch):
    monkeypatch.setattr(annealing, "SHORT_TEMPERATURES", (0.5, 0.2))
    for seed in range(5):
        small = Small(seed, n=120)
        design = small_design(seed, 120)
        w = unit_spread(design, np.array([1.0, -1.0, 0.5, 0.5, -0.5]))
        limits = small.limits(0.85)
        begin = best_offset(small.effects, limits, design.times(w), w)
        bounds = [(0.0, None), (None, 0.0), (None, None), (None, None), (None, None)]
        found = anneal(small.task(design, limits, bounds), w)
        assert not begin.better_than(found)
        assert found.w[0] >= 0 >= found.w[1]
        again = best_offset(small.effects, limits, design.times(found.w), found.w)
        assert (again.violation, again.cost) == (found.violation, found.cost)


def test_the_multiplier_is_the_cost_of_moving_the_offset():
    rng = np.random.default_rng(0)
    n = 20_000
    group = np.arange(n) % 2
    decisions = rng.random(n) < np.where(group == 0, 0.5, 0.25)
    cells = Cells.of("demographic_parity", group, 2, None)
    may_change = ~decisions & (group == 1)
    effects = change_effects(cells, decisions, np.ones(n), may_change=may_change)
    design = Design(rng.normal(size=(n, 1)), (), np.zeros(0), np.arange(1), np.arange(1))
    w = np.ones(1)
    limits = [fairness_limits("demographic_parity", t, effects, Caps()) for t in (0.70, 0.74)]
    cuts = [best_offset(effects, limit, design.times(w), w) for limit in limits]
    task = SearchTask(design, effects, limits[0], np.arange(1), np.ones(n), (), None, 0.0)
    _, multiplier = costs_and_multiplier(task, cuts[0])
    # one unit of the limit τ·high − low is 1/0.5 units of τ here
    slope = (cuts[1].cost - cuts[0].cost) / (0.04 * 0.5)
    assert multiplier == pytest.approx(slope, rel=0.1)


def test_a_row_is_worth_changing_where_it_helps_the_target():
    small = Small(8, n=200)
    design = small_design(3, 200)
    w = unit_spread(design, np.array([1.0, 0, 0, 0, 0]))
    limits = small.limits(0.9)
    rate = small.effects.base_sums[:2]
    low = int(np.argmin(rate))
    cut = best_offset(small.effects, limits, np.where(small.group == low, 1.0, -1.0), w)
    direction = Direction(w, 0.0, cut.cost, 0.0)
    costs, multiplier = costs_and_multiplier(small.task(design, limits), direction)
    if multiplier > 0:
        helps = (small.group == low) & ~small.decisions
        assert costs[helps].max() < costs[~helps].min()


# -- the initial direction ------------------------------------------------------------------------


def test_the_initial_direction_is_a_ridge_logistic_regression():
    design = small_design(9, 300)
    rng = np.random.default_rng(9)
    worth_changing = rng.random(300) < expit(design.times(np.array([1.0, -1, 0, 0.5, 0])))
    weight = rng.uniform(0.5, 2, 300)
    share, sign = weight / weight.sum(), np.where(worth_changing, 1, -1)

    def loss(v):
        margin = sign * (design.times(v[:-1]) + v[-1])
        return share @ np.logaddexp(0, -margin) + INITIAL_RIDGE / 2 * v[:-1] @ v[:-1]

    plain = minimize(loss, np.zeros(6), method="BFGS").x[:-1]
    w = initial_direction(design, worth_changing, weight)
    np.testing.assert_allclose(w, unit_spread(design, plain), atol=2e-3)
    assert design.times(w).std() == pytest.approx(1)


def test_the_initial_direction_keeps_to_the_bounds():
    design = small_design(9, 300)
    worth_changing = design.numeric[:, 0] > 0
    free = initial_direction(design, worth_changing, np.ones(300))
    assert free[0] > 0.5
    bounds = [(None, 0.0)] + [(None, None)] * 4
    held = initial_direction(design, worth_changing, np.ones(300), bounds=bounds)
    assert held[0] == 0


# -- the path -------------------------------------------------------------------------------------


def informative_columns(seed=0, n=600, n_categories=60):
    """Groups that the first column predicts well, a text column a little, two not at all."""
    rng = np.random.default_rng(seed)
    group = (rng.random(n) < 0.4).astype(np.intp)
    decisions = rng.random(n) < np.where(group == 0, 0.6, 0.3)
    X = pd.DataFrame(
        {
            "informative": group + 0.5 * rng.normal(size=n),
            "noise": rng.normal(size=n),
            "more": rng.normal(size=n),
            "text": [f"c{(rng.integers(n_categories) + 3 * g) % n_categories}" for g in group],
        }
    )
    columns = read_columns(X)
    encoding = learn_encoding(columns, np.ones(n), min_category_size=2)
    terms = encoding.encode(columns)
    design = Design.of(terms, *terms.moments(np.ones(n)))
    names = list(dict.fromkeys(encoding.term_columns))
    of = np.array([names.index(name) for name in encoding.term_columns])[design.terms]
    cells = Cells.of("demographic_parity", group, 2, None)
    effects = change_effects(cells, decisions, np.ones(n), may_change=np.ones(n, dtype=bool))

    def task(target, sparsity, bounds=None):
        limits = fairness_limits("demographic_parity", target, effects, Caps())
        masks = [(group == 1) & ~decisions]
        return SearchTask(design, effects, limits, of, np.ones(n), masks, bounds, sparsity)

    return task, of


def test_sparsity_drops_whole_columns_with_exact_zeros_and_costs_no_more_than_it_may():
    task, of = informative_columns()
    every, few = solve(task(0.8, 0.0)), solve(task(0.8, 0.2))
    assert every.support.all()
    assert every.direction.violation == few.direction.violation == 0
    assert few.direction.cost <= 1.2 * every.direction.cost + 1e-12
    assert set(of[few.support]) < set(of)
    assert 0 in of[few.support]
    assert not few.direction.w[~few.support].any()
    assert few.steps[0][0] == "all columns"
    assert few.steps[-1][2] == few.support.sum()


def test_a_met_target_costs_nothing():
    task, _ = informative_columns()
    found = solve(task(0.1, 0.14))
    assert found.direction.cost == 0
    assert found.direction.violation == 0


def solve_targets(task, targets, sparsity, *args):
    """Return the path from its own reference, and the reference."""
    reference_task = task(targets[int(REFERENCE_POSITION * len(targets))], sparsity)
    reference = solve(reference_task)
    limits = [task(target, sparsity).limits for target in targets]
    return solve_path(reference_task, limits, reference, *args), reference


def test_a_path_shares_its_columns_and_reaches_every_target():
    task, _ = informative_columns()
    targets = [0.6, 0.7, 0.8, 0.9]
    seen = []
    path, _ = solve_targets(task, targets, 0.14, lambda *at: seen.append(at), (None, 0.5))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert [len(several) for several in path] == [2] * 4
    supports = {found.support.tobytes() for several in path for found in several}
    assert len(supports) == 1
    assert all(found.direction.violation == 0 for several in path for found in several)
    costs = [several[0].direction.cost for several in path]
    assert costs == sorted(costs)


def test_a_path_keeps_its_columns_where_its_reference_is_shrunk_all_the_way():
    task, _ = informative_columns()
    path, _ = solve_targets(task, (0.6, 0.7, 0.8), 2.0)
    (found,) = path[-1]
    assert found.shrinkage == 1.0
    assert not found.support.all()


def test_a_path_is_hardly_dearer_than_models_found_alone():
    task, _ = informative_columns()
    targets = [0.7, 0.8, 0.9]
    path, _ = solve_targets(task, targets, 0.0, None, (0.0,))
    for (found,), target in zip(path, targets, strict=True):
        alone = solve(task(target, 0.0)).direction.cost
        assert found.direction.cost <= 1.15 * alone + 1 / 600


def test_a_path_has_more_columns_where_those_of_its_reference_are_not_enough():
    task, _ = informative_columns(n_categories=60)
    targets = [0.55, 0.6, 0.65, 0.95]
    path, reference = solve_targets(task, targets, 0.14)
    for (found,), target in zip(path, targets, strict=True):
        alone = solve(task(target, 0.0)).direction.cost
        assert found.direction.violation == 0
        assert found.direction.cost <= 1.5 * 1.6 * alone + 1 / 600
    (last,) = path[-1]
    assert last.support.sum() >= reference.support.sum()


def test_bounds_hold_along_the_whole_search():
    task, _ = informative_columns()
    width = task(0.7, 0.0).design.width
    bounds = [(None, 0.0), *[(None, None)] * (width - 1)]
    for sparsity in (0.0, 0.14):
        found = solve(task(0.7, sparsity, bounds))
        assert found.direction.w[0] <= 0


def test_limits_without_caps_have_no_hard_rows():
    small = Small(0)
    limits = small.limits(0.8)
    assert isinstance(limits, SumLimits)
    assert len(limits.bound) == limits.n_soft
    assert len(Small(0, caps=Caps(0.1, 0.1, 0.1)).limits(0.8).bound) == limits.n_soft + 4


@quick
@given(seed=seeds, constraints=st.sampled_from(CONSTRAINTS), n_groups=st.integers(2, 3))
def test_a_cut_that_need_not_be_exact_is_close_to_the_best(seed, constraints, n_groups):
    caps = Caps(changes=0.6) if seed % 2 else None
    small = Small(seed, constraints, n=300, n_groups=n_groups, caps=caps)
    target = 0.8 if constraints == "demographic_parity" else 0.2
    eta, limits = small.rng.normal(size=small.n), small.limits(target)
    exact = best_offset(small.effects, limits, eta, np.zeros(0))
    rounded = _binned_offset(small.effects, limits, eta, np.zeros(0))
    assert (exact.violation, exact.cost) <= (rounded.violation + 1e-9, rounded.cost + 1e-9)
    assert rounded.violation <= exact.violation + 0.1  # a few rows may share a step
    assert rounded.cost <= exact.cost + 0.05 or rounded.violation > exact.violation
    changed = small.may_change & (eta > -rounded.offset)
    assert small.effects.cost @ changed == pytest.approx(rounded.cost)


@pytest.mark.parametrize("seed", range(3))
def test_a_heavy_tail_costs_a_binned_offset_nothing(seed, monkeypatch):
    monkeypatch.setattr("commod._solvers.search.offset.N_BINS", 1 << 12)  # fewer bins than rows
    small = Small(seed, n=20_000)
    eta, limits = np.exp(3 * small.rng.normal(size=small.n)), small.limits(0.8)
    assert np.ptp(eta) > 1_000 * (np.quantile(eta, 0.75) - np.quantile(eta, 0.25))
    exact = best_offset(small.effects, limits, eta, np.zeros(0))
    rounded = _binned_offset(small.effects, limits, eta, np.zeros(0))
    assert rounded.violation == exact.violation == 0
    assert rounded.cost <= 1.01 * exact.cost
    changed = small.may_change & (eta > -rounded.offset)
    assert small.effects.cost @ changed == pytest.approx(rounded.cost)


def test_one_value_for_all_is_cut_all_or_none():
    small = Small(2, n=300)
    cut = _binned_offset(small.effects, small.limits(0.8), np.full(small.n, 3.0), np.zeros(0))
    changed = small.may_change & (-cut.offset < 3.0)
    assert changed.sum() in (0, small.may_change.sum())
    assert small.effects.cost @ changed == pytest.approx(cut.cost)


def test_only_a_cut_that_need_not_be_exact_leaves_many_rows_unsorted(monkeypatch):
    small = Small(3, n=300)
    eta = small.rng.normal(size=small.n)
    monkeypatch.setattr("commod._solvers.search.offset.MAX_SORTED_ROWS", 100)
    monkeypatch.setattr("commod._solvers.search.offset._binned_offset", lambda *_: "rounded")
    assert best_offset(small.effects, small.limits(0.8), eta, np.zeros(0), exact=False) == "rounded"
    assert best_offset(small.effects, small.limits(0.8), eta, np.zeros(0)) != "rounded"
