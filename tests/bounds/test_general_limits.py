"""Limits of conditional and combined constraints: against brute force over all decisions."""

from __future__ import annotations

import ctypes
import os
import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
from benchmarks.brute_force import (
    BOTH,
    CASES,
    MINIMUM_RATE,
    PARITY,
    brute_force,
    compared_cells,
    exact_limit,
    of_kind,
    random_case,
    random_people,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from commod.bounds import best_fairness, minimal_changes, minimal_cost
from commod.bounds._general import fewest_changes_of
from commod.constraints import (
    AccuracyParity,
    DemographicParity,
    EqualizedOdds,
    MinimumRate,
    PredictiveParity,
)
from commod.exceptions import InputError
from commod.metrics._constraint import SELECTION_RATE

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=40)
@given(name=st.sampled_from(list(CASES)), seed=seeds)
def test_limits_agree_with_all_decisions(name, seed):
    case = random_case(name, np.random.default_rng(seed))
    fewest, limit = brute_force(case), exact_limit(case)
    if fewest is None:
        assert limit is None
    else:
        assert (limit.n_changes, limit.lower_bound) == (fewest, fewest)


@settings(max_examples=8)
@given(name=st.sampled_from(list(CASES)), seed=seeds, time_limit=st.sampled_from([0.0, 0.02]))
def test_a_search_without_time_proves_no_more_than_is_true(name, seed, time_limit):
    case = random_case(name, np.random.default_rng(seed))
    fewest, limit = brute_force(case), exact_limit(case, time_limit=time_limit)
    if fewest is None:
        assert limit is None or limit.n_changes is None
    else:
        assert limit.lower_bound <= fewest
        assert limit.n_changes is None or limit.n_changes >= fewest


@settings(max_examples=10)
@given(name=st.sampled_from(list(CASES)), seed=seeds)
def test_the_positives_that_come_back_keep_all_bounds(name, seed):
    case = random_people(name, np.random.default_rng(seed), n_rows=400)
    compared, sizes, before = compared_cells(case)
    limit = exact_limit(case, time_limit=0.5)
    if limit is None or limit.moves is None:
        return
    positives = before + limit.moves
    assert ((positives >= 0) & (positives <= sizes)).all()
    assert np.abs(limit.moves).sum() == limit.n_changes
    assert limit.lower_bound <= limit.n_changes
    after = positives.ravel().astype(float)
    for comparison, bound in compared:
        sign = -1 if comparison.kind in ("ratio", "floor") else 1
        assert sign * (comparison.value(after) - bound) <= 1e-12


@settings(max_examples=6)
@given(seed=seeds)
def test_movable_people_limit_the_changes(seed):
    rng = np.random.default_rng(seed)
    case = random_people("P-rule, equalized odds", rng, n_rows=60)
    compared, sizes, before = compared_cells(case)
    n_raisable, n_lowerable = (rng.integers(0, most + 1) for most in (sizes - before, before))
    limit = fewest_changes_of(
        compared, sizes, before, n_raisable=n_raisable, n_lowerable=n_lowerable
    )
    free = fewest_changes_of(compared, sizes, before)
    if limit is not None:
        assert (limit.moves <= n_raisable).all()
        assert (-limit.moves <= n_lowerable).all()
        assert free.n_changes <= limit.n_changes


def test_contradictory_constraints_have_no_limit():
    ceiling = of_kind("ceiling", (SELECTION_RATE,))
    case = random_people("minimum rate", np.random.default_rng(0), n_rows=40)
    strata = case.strata * 2
    both = replace(case, constraints=(MINIMUM_RATE, ceiling), bounds=(0.6, 0.5), strata=strata)
    assert exact_limit(both) is None
    assert exact_limit(replace(both, bounds=(0.5, 0.6))) is not None


def test_nobody_positive_is_not_fair():
    """A ratio of rates that are all zero is undefined: somebody of each group must be positive."""
    people = np.zeros(8, dtype=bool)
    case = random_people("P-rule", np.random.default_rng(0), n_rows=8)
    nobody = replace(case, decisions=people, group=np.arange(8) % 2, n_groups=2, bounds=(0.5,))
    nobody = replace(nobody, strata=(replace(case.strata[0], is_compared=np.ones((1, 2), bool)),))
    assert exact_limit(nobody).n_changes == 2
    two = replace(
        nobody,
        constraints=(PARITY, of_kind("ceiling", BOTH, "accuracy")),
        bounds=(0.5, 1.0),
        strata=nobody.strata * 2,
    )
    assert exact_limit(two).n_changes == 2


@pytest.mark.parametrize(
    "name", ["P-rule in every stratum", "P-rule of averages", "P-rule, equalized odds"]
)
def test_fifty_thousand_rows_are_exact_in_seconds(name):
    case = random_people(name, np.random.default_rng(0), n_rows=50_000, n_strata=10)
    case = replace(case, bounds=tuple(0.9 if b > 0.5 else 0.05 for b in case.bounds))
    start = time.perf_counter()
    limit = exact_limit(case)
    assert limit.is_exact
    assert time.perf_counter() - start < 5


# ---------------------------------------------------------------------------------------------
# From rows


def rows(seed=0, n=300):
    rng = np.random.default_rng(seed)
    group = np.where(rng.random(n) < 0.4, "b", "a")
    column = np.where(rng.random(n) < 0.5, "law", "arts")
    y_true = (rng.random(n) < 0.5).astype(int)
    y_pred = (rng.random(n) < 0.3 + 0.3 * (group == "a") * (column == "law")).astype(int)
    return y_true, y_pred, group, column


def test_rows_of_a_condition_give_the_sum_of_the_strata():
    _, y_pred, group, column = rows()
    parity = DemographicParity(ratio=0.9)
    limit = minimal_changes(
        y_pred,
        sensitive_features=group,
        constraints=parity.within("unit", min_rows=1),
        control_features={"unit": column},
    )
    parts = [
        minimal_changes(
            y_pred[column == name], sensitive_features=group[column == name], constraints=parity
        )
        for name in ("law", "arts")
    ]
    assert limit.is_exact
    assert limit.n_changes == sum(part.n_changes for part in parts) == sum(limit.flips.values())
    assert limit.rate == limit.n_changes / len(y_pred)


def test_objects_texts_and_targets_mean_the_same():
    y_true, y_pred, group, _ = rows()
    known = {"sensitive_features": group, "y_true": y_true}
    expected = minimal_changes(y_pred, constraints="equalized_odds", target=0.1, **known)
    assert minimal_changes(y_pred, constraints=EqualizedOdds(0.1), **known) == expected
    assert minimal_changes(y_pred, constraints="equalized odds <= 0.1", **known) == expected
    both = DemographicParity(ratio=0.9) & AccuracyParity(0.02)
    limits = [
        minimal_changes(y_pred, constraints=one, **known)
        for one in (both, "demographic parity >= 0.9 and accuracy parity <= 0.02")
    ]
    assert limits[0] == limits[1]
    assert limits[0].is_exact


def test_a_direction_holds_for_combinations():
    y_true, y_pred, group, _ = rows()
    both = MinimumRate(0.5) & PredictiveParity(0.05)
    options = {"sensitive_features": group, "y_true": y_true, "constraints": both}
    limit = minimal_changes(y_pred, direction="gains_only", **options)
    assert {(before, after) for _, before, after in limit.flips} == {(0, 1)}
    turned = minimal_changes(y_pred, direction="losses_only", favorable_label=0, **options)
    assert turned.n_changes == limit.n_changes


def test_what_is_missing_or_not_known_is_said():
    _, y_pred, group, column = rows()
    conditional = DemographicParity(ratio=0.9).within("unit")
    with pytest.raises(InputError, match="control_features is missing"):
        minimal_changes(y_pred, sensitive_features=group, constraints=conditional)
    with pytest.raises(InputError, match="no constraint has a condition"):
        minimal_changes(y_pred, sensitive_features=group, target=0.8, control_features=column)
    with pytest.raises(InputError, match="has no bound"):
        minimal_changes(y_pred, sensitive_features=group)
    with pytest.raises(InputError, match=r"target=1.2 must be a number in \(0, 1\]"):
        minimal_changes(y_pred, sensitive_features=group, constraints="minimum_rate", target=1.2)
    with pytest.raises(InputError, match="y_true"):
        minimal_changes(y_pred, sensitive_features=group, constraints=AccuracyParity(0.1))
    several = DemographicParity(ratio=0.9) & MinimumRate(0.3)
    with pytest.raises(InputError, match=r"got several constraints.*minimal_changes"):
        best_fairness(y_pred, max_changes=3, sensitive_features=group, constraints=several)
    with pytest.raises(InputError, match=r"minimum_rate.*minimal_changes"):
        minimal_cost(
            y_pred,
            change_cost=np.ones(len(y_pred)),
            sensitive_features=group,
            constraints="minimum_rate",
            target=0.3,
        )
    with pytest.raises(InputError, match="best fairness is known for one"):
        best_fairness(y_pred, sensitive_features=group, max_changes=3, constraints=conditional)


def test_a_limit_that_is_not_exact_shows_its_lower_bound():
    rng = np.random.default_rng(0)
    n = 3000
    group, column = rng.integers(2, size=n), rng.integers(4, size=n)
    y_pred = (rng.random(n) < 0.3 + 0.3 * group).astype(int)
    limit = minimal_changes(
        y_pred,
        sensitive_features=group,
        constraints=DemographicParity(ratio=1.0).within("unit", over="average"),
        control_features=column,
        time_limit=0.1,
    )
    assert not limit.is_exact
    assert limit.lower_bound > 100
    assert repr(limit).endswith(f"lower_bound={limit.lower_bound})")


def test_the_solver_prints_nothing_and_what_others_print_is_kept(capfd, monkeypatch):
    milp = scipy.optimize.milp

    def noisy(*arguments, **options):
        ctypes.CDLL(None).puts(b"HighsMipSolverData::transformNewIntegerFeasibleSolution")
        os.write(1, b"of another thread\n")
        return milp(*arguments, **options)

    monkeypatch.setattr(scipy.optimize, "milp", noisy)
    case = random_people("P-rule, equalized odds", np.random.default_rng(0), 400, 2, n_groups=2)
    exact_limit(replace(case, bounds=(0.9, 0.1), may_raise=True, may_lower=True))
    assert set(capfd.readouterr().out.splitlines()) == {"of another thread"}
