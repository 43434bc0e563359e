"""Counts of the people of each cell, compared with plain counting."""

import numpy as np

from commod.metrics._constraint import get_constraint
from commod.metrics._people import People


def test_counts_of_cells():
    for constraints, sizes, positives in [
        ("demographic_parity", [[2, 3]], [[2, 1]]),
        ("equalized_odds", [[1, 2], [1, 1]], [[1, 1], [1, 0]]),
        ("true_positive_rate_parity", [[1, 2]], [[1, 1]]),
        ("false_positive_rate_parity", [[1, 1]], [[1, 0]]),
    ]:
        group = np.array([0, 0, 1, 1, -1, 1])  # the fifth row belongs to no large group
        label = np.array([True, False, True, False, True, True])
        decisions = np.array([True, True, True, False, True, False])
        stated = (get_constraint(constraints),)
        counted = People(stated, group, 2, label).counts(decisions)
        assert [part.tolist() for part in counted] == [sizes, positives]
        twice = People(stated, group, 2, label, each=np.full(6, 2.0)).counts(decisions)
        assert [(part // 2).tolist() for part in twice] == [sizes, positives]


def test_many_cells_are_counted_one_by_one():
    n_groups = 300
    n, rng = 20 * n_groups, np.random.default_rng(0)
    group = np.arange(n) % n_groups
    label = (np.arange(n) // n_groups) % 2 == 0
    group[rng.random(n) < 0.1] = -1
    decisions = rng.random(n) < 0.4
    people = People((get_constraint("equalized_odds"),), group, n_groups, label)
    members = [(group == c % n_groups) & (label == (c < n_groups)) for c in range(2 * n_groups)]
    sizes, positives = people.counts(decisions)
    assert sizes.ravel().tolist() == [cell.sum() for cell in members]
    assert positives.ravel().tolist() == [(cell & decisions).sum() for cell in members]
    some = rng.permutation(n)[: n // 3]
    part = people.take(some).totals(np.ones(len(some)))
    assert part.ravel().tolist() == [cell[some].sum() for cell in members]
