"""A search beside fixed points: they are part of η, and of the result's offset."""

from dataclasses import replace

import numpy as np
import pytest
from commod._solvers.search.annealing import _SoftObjective
from commod._solvers.search.pinned import fit_beside
from small_problems import Small, small_design


def test_a_pinned_part_counts_as_a_column_of_weight_one():
    small, design = Small(2, n=60), small_design(2, 60)
    task = small.task(design, small.inequalities(0.8))
    w = np.array([0.4, -0.7, 0.2, 0.9, -0.1])
    is_pinned = np.array([True, False, True, False, False])
    pinned = design.times(np.where(is_pinned, w, 0.0))
    beside = replace(task.select(~is_pinned), pinned=pinned)
    all_free, some_free = (_SoftObjective(one, 0.3) for one in (task, beside))
    v = np.append(w, 0.2)
    kept = np.append(~is_pinned, True)
    np.testing.assert_allclose(some_free.sums(v[kept]), all_free.sums(v))
    multipliers = np.full(len(task.inequalities.bound), 0.3)
    gradients = [
        soft.value_and_gradient(x, multipliers)[1]
        for soft, x in ((all_free, v), (some_free, v[kept]))
    ]
    np.testing.assert_allclose(gradients[1], gradients[0][kept])
    assert beside.with_offset(w[~is_pinned]).rank == task.with_offset(w).rank


def test_the_result_is_never_worse_and_its_offset_is_in_the_unit_of_the_pins():
    small, design = Small(3, n=120), small_design(3, 120)
    task = small.task(design, small.inequalities(0.8))
    is_pinned = np.array([True, True, False, False, False])
    for size in (0.01, 1.0, 100.0):
        pinned = size * design.times(np.where(is_pinned, [1.0, -0.5, 0, 0, 0], 0.0))
        part = task.select(~is_pinned)
        start = size * np.array([0.3, -0.2, 0.1])
        found = fit_beside(part, pinned, start)
        assert found.rank <= replace(part, pinned=pinned).with_offset(start).rank
        changed = (pinned + part.design.times(found.w) + found.offset > 0) & small.may_change
        assert float(small.effects.cost @ changed) == pytest.approx(found.cost)
