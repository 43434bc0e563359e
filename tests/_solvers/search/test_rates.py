"""Effects of changes and inequalities on sums, compared with plain counting."""

import numpy as np
import pytest
from commod._solvers.search.rates import Caps, Cells, SumInequalities, change_effects, count_cells
from hypothesis import given
from hypothesis import strategies as st
from small_problems import CONSTRAINTS, Small, is_met, quick, seeds


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
    inequalities = small.inequalities(target)
    over = inequalities.matrix @ small.effects.sums(changed) - inequalities.bound
    if inequalities.split.any():  # the two gaps may split the allowance
        soft = over[inequalities.split[:, 0] > 0].max() + over[inequalities.split[:, 0] < 0].max()
    else:
        soft = over[: inequalities.n_soft].max()
    assert (soft <= 1e-12) == bool(is_met(constraints, small.fairness(changed), target))
    assert (over[inequalities.n_soft :].max() <= 1e-9) == small.within_caps(changed)


def test_rates_of_zero_everywhere_do_not_count_as_parity():
    small = Small(0)
    inequalities = small.inequalities(0.8)
    everybody = np.ones(small.n, dtype=bool)
    effects = change_effects(small.cells, small.decisions, small.weight, may_change=everybody)
    nobody = effects.sums(small.decisions)
    np.testing.assert_allclose(nobody[:2], 0, atol=1e-12)
    assert (inequalities.matrix @ nobody - inequalities.bound).max() > 1e-3


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


def test_limits_without_caps_have_no_hard_rows():
    small = Small(0)
    inequalities = small.inequalities(0.8)
    assert isinstance(inequalities, SumInequalities)
    assert len(inequalities.bound) == inequalities.n_soft
    assert (
        len(Small(0, caps=Caps(0.1, 0.1, 0.1)).inequalities(0.8).bound) == inequalities.n_soft + 4
    )
