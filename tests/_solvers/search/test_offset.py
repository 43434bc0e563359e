"""The exact offset of a direction, compared with trying every offset."""

from dataclasses import replace

import numpy as np
import pytest
from commod._solvers.search import offset
from commod._solvers.search.offset import Direction, _binned_offset, best_offset
from commod._solvers.search.rates import Caps
from hypothesis import given
from hypothesis import strategies as st
from small_problems import CONSTRAINTS, Small, is_met, quick, seeds


def cuts_by_hand(small, target, eta):
    """(violated, cost, changed) of every cut of the free rows, each tried by itself."""
    values = np.unique(eta[small.may_change])
    for lowest in [*values, np.inf]:
        changed = small.may_change & (eta >= lowest)
        if small.within_caps(changed):
            met = is_met(small.constraints, small.fairness(changed), target)
            yield not met, changed.sum() / small.n, changed


@pytest.mark.slow
@quick
@given(
    seed=seeds,
    constraints=st.sampled_from(CONSTRAINTS),
    n_groups=st.integers(2, 3),
    target=st.sampled_from([0.2, 0.5, 0.8]),
    ties=st.booleans(),
    capped=st.booleans(),
    many=st.booleans(),
)
def test_the_best_cut_is_the_best_of_all_cuts(
    seed, constraints, n_groups, target, ties, capped, many
):
    caps = Caps(changes=0.25, accuracy_loss=0.2, volume_change=0.2) if capped else Caps()
    small = Small(seed, constraints, n_groups=n_groups, caps=caps)
    eta = small.rng.integers(-3, 4, small.n) if ties else small.rng.normal(size=small.n)
    eta = eta.astype(float)
    with pytest.MonkeyPatch.context() as patch:
        if many:  # then the highest rows are tried first
            patch.setattr(offset, "MAX_SORTED_ROWS", 4)
        cut = best_offset(small.effects, small.inequalities(target), eta, np.zeros(0))
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
    cut = best_offset(small.effects, small.inequalities(1.0), eta, np.zeros(0))
    changed = small.may_change & (eta + cut.offset > 0)
    values = [small.fairness(c) for _, _, c in cuts_by_hand(small, 1.0, eta)]
    assert changed.any()
    assert small.fairness(changed) == pytest.approx(max(values))


def test_blocks_do_not_change_the_cut(monkeypatch):
    small = Small(7, n=200)
    eta = small.rng.normal(size=small.n)
    whole = best_offset(small.effects, small.inequalities(0.8), eta, np.zeros(0))
    monkeypatch.setattr("commod._solvers.search.offset._n_prefixes", lambda inequalities: 7)
    parts = best_offset(small.effects, small.inequalities(0.8), eta, np.zeros(0))
    assert (whole.offset, whole.violation) == (parts.offset, parts.violation)
    assert whole.cost == pytest.approx(parts.cost)


@pytest.mark.parametrize("eta", [np.zeros(24), np.arange(24.0)], ids=["all tied", "spread"])
def test_nobody_free_means_nobody_changes(eta):
    small = Small(1)
    effects = replace(small.effects, may_change=np.zeros(24, dtype=bool))
    cut = best_offset(effects, small.inequalities(0.8), eta, np.zeros(0))
    assert cut.cost == 0


def test_all_rows_tied_change_together_or_not_at_all():
    small = Small(2)
    cut = best_offset(small.effects, small.inequalities(0.8), np.zeros(small.n), np.zeros(0))
    n_changed = (small.may_change & (cut.offset > 0)).sum()
    assert n_changed in (0, small.may_change.sum())
    assert cut.cost == pytest.approx(n_changed / small.n)


def test_directions_are_compared_by_violation_then_cost():
    w = np.zeros(1)
    assert Direction(w, 0, 5.0, 0.0).better_than(Direction(w, 0, 1.0, 0.1))
    assert Direction(w, 0, 1.0, 0.1).better_than(Direction(w, 0, 2.0, 0.1))
    assert not Direction(w, 0, 1.0, 0.0).better_than(Direction(w, 0, 1.0, 0.0))


@pytest.mark.slow
@quick
@given(seed=seeds, constraints=st.sampled_from(CONSTRAINTS), n_groups=st.integers(2, 3))
def test_a_cut_that_need_not_be_exact_is_close_to_the_best(seed, constraints, n_groups):
    caps = Caps(changes=0.6) if seed % 2 else None
    small = Small(seed, constraints, n=300, n_groups=n_groups, caps=caps)
    target = 0.8 if constraints == "demographic_parity" else 0.2
    eta, inequalities = small.rng.normal(size=small.n), small.inequalities(target)
    exact = best_offset(small.effects, inequalities, eta, np.zeros(0))
    rounded = _binned_offset(small.effects, inequalities, eta, np.zeros(0))
    assert (exact.violation, exact.cost) <= (rounded.violation + 1e-9, rounded.cost + 1e-9)
    assert rounded.violation <= exact.violation + 0.1  # a few rows may share a step
    assert rounded.cost <= exact.cost + 0.05 or rounded.violation > exact.violation
    changed = small.may_change & (eta > -rounded.offset)
    assert small.effects.cost @ changed == pytest.approx(rounded.cost)


@pytest.mark.parametrize("seed", range(3))
def test_a_heavy_tail_costs_a_binned_offset_nothing(seed, monkeypatch):
    monkeypatch.setattr("commod._solvers.search.offset.N_BINS", 1 << 12)  # fewer bins than rows
    small = Small(seed, n=20_000)
    eta, inequalities = np.exp(3 * small.rng.normal(size=small.n)), small.inequalities(0.8)
    assert np.ptp(eta) > 1_000 * (np.quantile(eta, 0.75) - np.quantile(eta, 0.25))
    exact = best_offset(small.effects, inequalities, eta, np.zeros(0))
    rounded = _binned_offset(small.effects, inequalities, eta, np.zeros(0))
    assert rounded.violation == exact.violation == 0
    assert rounded.cost <= 1.01 * exact.cost
    changed = small.may_change & (eta > -rounded.offset)
    assert small.effects.cost @ changed == pytest.approx(rounded.cost)


def test_one_value_for_all_is_cut_all_or_none():
    small = Small(2, n=300)
    cut = _binned_offset(small.effects, small.inequalities(0.8), np.full(small.n, 3.0), np.zeros(0))
    changed = small.may_change & (-cut.offset < 3.0)
    assert changed.sum() in (0, small.may_change.sum())
    assert small.effects.cost @ changed == pytest.approx(cut.cost)


def test_only_a_cut_that_need_not_be_exact_leaves_many_rows_unsorted(monkeypatch):
    small = Small(3, n=300)
    eta = small.rng.normal(size=small.n)
    monkeypatch.setattr("commod._solvers.search.offset.MAX_SORTED_ROWS", 100)
    monkeypatch.setattr("commod._solvers.search.offset._binned_offset", lambda *_: "rounded")
    assert (
        best_offset(small.effects, small.inequalities(0.8), eta, np.zeros(0), exact=False)
        == "rounded"
    )
    assert best_offset(small.effects, small.inequalities(0.8), eta, np.zeros(0)) != "rounded"
