"""The soft objective and its search, compared with plain formulas."""

import numpy as np
import pytest
from commod._solvers.search import annealing
from commod._solvers.search.annealing import (
    RIDGE,
    SearchTask,
    _SoftObjective,
    anneal,
    first_prices,
    full_costs,
)
from commod._solvers.search.design import Design, unit_spread
from commod._solvers.search.offset import Direction, best_offset
from commod._solvers.search.rates import Caps, Cells, change_effects
from inequalities import inequalities_of
from scipy.optimize import check_grad
from scipy.special import expit
from small_problems import CONSTRAINTS, Small, small_design


@pytest.mark.parametrize("constraints", CONSTRAINTS)
@pytest.mark.parametrize("temperature", [0.5, 0.1])
def test_the_gradient_of_the_soft_objective(constraints, temperature):
    caps = Caps(changes=0.1, accuracy_loss=0.0, volume_change=0.01)
    small = Small(11, constraints, n=60, n_groups=3, caps=caps)
    target = 0.9 if constraints == "demographic_parity" else 0.05
    inequalities = small.inequalities(target)
    soft = _SoftObjective(small.task(small_design(0, 60), inequalities), temperature)
    n_unknowns = 6 + inequalities.split.shape[1]
    v = 0.5 * np.random.default_rng(1).normal(size=n_unknowns)
    multipliers = np.linspace(0, 0.5, len(inequalities.bound))
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
    inequalities = small.inequalities(0.9)
    design = small_design(2, 40)
    soft = _SoftObjective(small.task(design, inequalities), 0.2)
    v = np.random.default_rng(3).normal(size=6)
    multipliers = np.full(len(inequalities.bound), 0.3)
    p = expit((design.times(v[:5]) + v[5]) / 0.2) * small.may_change
    over = inequalities.matrix @ small.effects.sums(p) - inequalities.bound
    np.testing.assert_allclose(soft.violations(v), over)
    force = np.maximum(0, multipliers + inequalities.penalty * over)
    penalty = force @ force / 2 / inequalities.penalty
    by_hand = small.effects.cost @ p + penalty + RIDGE / 2 * v[:5] @ v[:5]
    assert soft.value_and_gradient(v, multipliers)[0] == pytest.approx(by_hand)


def test_cold_soft_changes_are_the_changes():
    small = Small(6, n=50)
    design = small_design(4, 50)
    v = np.random.default_rng(5).normal(size=6)
    soft = _SoftObjective(small.task(design, small.inequalities(0.8)), 1e-4)
    changed = small.may_change & (design.times(v[:5]) + v[5] > 0)
    inequalities = small.inequalities(0.8)
    over = inequalities.matrix @ small.effects.sums(changed) - inequalities.bound
    np.testing.assert_allclose(soft.violations(v), over, atol=1e-3)


def test_annealing_is_never_worse_than_where_it_begins_and_keeps_to_the_bounds(monkeypatch):
    monkeypatch.setattr(annealing, "SHORT_TEMPERATURES", (0.5, 0.2))
    for seed in range(5):
        small = Small(seed, n=120)
        design = small_design(seed, 120)
        w = unit_spread(design, np.array([1.0, -1.0, 0.5, 0.5, -0.5]))
        inequalities = small.inequalities(0.85)
        begin = best_offset(small.effects, inequalities, design.times(w), w)
        bounds = [(0.0, None), (None, 0.0), (None, None), (None, None), (None, None)]
        found = anneal(small.task(design, inequalities, bounds), w)
        assert not begin.better_than(found)
        assert found.w[0] >= 0 >= found.w[1]
        again = best_offset(small.effects, inequalities, design.times(found.w), found.w)
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
    inequalities = [inequalities_of("demographic_parity", t, effects, Caps()) for t in (0.70, 0.74)]
    cuts = [best_offset(effects, limit, design.times(w), w) for limit in inequalities]
    task = SearchTask(design, effects, inequalities[0], np.arange(1), np.ones(n), (), None, 0.0)
    price = first_prices(task, cuts[0]).max()
    # one unit of the limit τ·high − low is 1/0.5 units of τ here
    slope = (cuts[1].cost - cuts[0].cost) / (0.04 * 0.5)
    assert price == pytest.approx(slope, rel=0.1)


def test_a_row_is_worth_changing_where_it_helps_the_target():
    small = Small(8, n=200)
    design = small_design(3, 200)
    w = unit_spread(design, np.array([1.0, 0, 0, 0, 0]))
    inequalities = small.inequalities(0.9)
    rate = small.effects.base_sums[:2]
    low = int(np.argmin(rate))
    cut = best_offset(small.effects, inequalities, np.where(small.group == low, 1.0, -1.0), w)
    direction = Direction(w, 0.0, cut.cost, 0.0)
    task = small.task(design, inequalities)
    costs = full_costs(task, direction)
    if first_prices(task, direction).any():
        helps = (small.group == low) & ~small.decisions
        assert costs[helps].max() < costs[~helps].min()
