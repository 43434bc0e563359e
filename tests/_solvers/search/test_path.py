"""Shorter scorecards, and paths of targets."""

import numpy as np
import pandas as pd
import pytest
from commod._solvers.search.annealing import SearchTask
from commod._solvers.search.design import Design
from commod._solvers.search.path import REFERENCE_POSITION, solve, solve_path
from commod._solvers.search.rates import Caps, Cells, change_effects
from inequalities import inequalities_of

from commod._data.columns import read_columns
from commod._data.encoding import learn_encoding


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
        inequalities = inequalities_of("demographic_parity", target, effects, Caps())
        masks = [(group == 1) & ~decisions]
        return SearchTask(design, effects, inequalities, of, np.ones(n), masks, bounds, sparsity)

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
    inequalities = [task(target, sparsity).inequalities for target in targets]
    return solve_path(reference_task, inequalities, reference, *args), reference


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


@pytest.mark.slow
def test_bounds_hold_along_the_whole_search():
    task, _ = informative_columns()
    width = task(0.7, 0.0).design.width
    bounds = [(None, 0.0), *[(None, None)] * (width - 1)]
    for sparsity in (0.0, 0.14):
        found = solve(task(0.7, sparsity, bounds))
        assert found.direction.w[0] <= 0
