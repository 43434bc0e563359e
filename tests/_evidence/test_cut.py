"""Counts along an order of people and the cut, compared with slow counting."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tasks import People

from commod import constraints as c
from commod._evidence import cut as cut_module
from commod._evidence.cut import N_TRIED, best_stop, evidence, path_of, stop_at_cut, stop_on
from commod._evidence.task import TINY, Caps

seeds = st.integers(0, 10**6)
CONSTRAINTS = {
    "parity": c.DemographicParity(ratio=0.9),
    "odds": c.EqualizedOdds(0.25),
    "both": c.DemographicParity(ratio=0.9) & c.MinimumRate(0.5),
    "precision": c.PredictiveParity(difference=0.1),
}


def drawn(seed, name="parity", digits=9, **others):
    """Return a task, and evidence that tells groups apart; few digits make ties."""
    people = People(seed, n=120, n_groups=2 + seed % 2)
    caps = others.pop("caps", None)
    task = people.task(CONSTRAINTS[name], weight=people.weight, **others)
    if caps is not None:
        task = replace(task, caps=caps)
    v = people.rng.normal(size=120) + 2.0 * (people.group - 0.5)
    cost = people.rng.uniform(0.5, 1.5, 120)
    score = np.round(evidence(task, v, cost), digits)
    return task, np.where(people.rng.random(120) < 0.1, -np.inf, score)


def slow_path(task, score):
    """Return the people changed, the rates and the caps after each step, by recounting all rows."""
    rows = []
    for cut in [np.inf, *sorted(set(score[score > 0].tolist()), reverse=True)]:
        side = task.side * (score >= cut)
        rates = task.added(task.positive + side)
        rows.append((task.people[score >= cut].sum(), rates, side @ task.caps_steps))
    return rows


@settings(max_examples=15)
@given(seed=seeds, digits=st.sampled_from([1, 9]), name=st.sampled_from(sorted(CONSTRAINTS)))
def test_a_path_counts_what_each_cut_changes(seed, digits, name):
    task, score = drawn(seed, name, digits, caps=Caps(accuracy_loss=0.5, volume_change=0.5))
    path = path_of(task, score)
    slow = slow_path(task, score)
    assert len(path) == len(slow)
    assert path.n_changed.tolist() == [n for n, _, _ in slow]
    np.testing.assert_allclose(path.rates.T, [rates for _, rates, _ in slow], atol=1e-12)
    np.testing.assert_allclose(path.caps.T, [caps for _, _, caps in slow], atol=1e-12)
    for at in range(len(path)):
        assert (score > path.cut(at)).sum() == path.n_changed[at]


@settings(max_examples=20)
@given(seed=seeds, name=st.sampled_from(sorted(CONSTRAINTS)), digits=st.sampled_from([1, 9]))
def test_the_stop_on_fit_rows_is_the_first_count_that_keeps_all_bounds(seed, name, digits):
    limits = Caps(*np.random.default_rng(seed).choice([None, 0.05, 0.2], 3))
    task, score = drawn(seed, name, digits, caps=limits)
    found = best_stop(task, score)
    kept = []
    for n, rates, caps in slow_path(task, score):
        is_within = limits.changes is None or n <= limits.changes * len(task) + 1e-9
        if limits.accuracy_loss is not None:
            is_within &= caps[0] >= -limits.accuracy_loss - TINY
        if limits.volume_change is not None:
            is_within &= abs(caps[1]) <= limits.volume_change + TINY
        worst = task.slack(task.values(rates[:, None])[:, 0]).min()
        kept.append((n, is_within, worst))
    enough = [n for n, is_within, worst in kept if is_within and worst >= -TINY]
    assert found.is_reached == bool(enough)
    counts = {n: (is_within, worst) for n, is_within, worst in kept}
    is_within, worst = counts[found.n_changed]
    assert is_within
    assert task.slack(found.expected).min() == pytest.approx(worst)
    if enough:
        assert found.n_changed == enough[0]
    changed = score > found.cut
    assert task.people[changed].sum() == found.n_changed
    again = stop_at_cut(task, score, found.cut)
    assert (again.n_changed, again.is_reached) == (found.n_changed, found.is_reached)
    np.testing.assert_allclose(again.rates, found.rates, atol=1e-12)
    np.testing.assert_allclose(again.expected, found.expected, atol=1e-9)


@settings(max_examples=10)
@given(seed=seeds)
def test_a_budget_takes_the_best_expectation_within_the_caps(seed):
    task, score = drawn(seed, caps=Caps(changes=0.1))
    found = best_stop(task, score, is_budget=True)
    within = [rates for n, rates, _ in slow_path(task, score) if n <= 12]
    best = max(task.slack(task.values(rates[:, None])[:, 0]).min() for rates in within)
    assert found.n_changed <= 12
    assert task.slack(found.expected).min() == pytest.approx(best)


@settings(max_examples=12)
@given(seed=seeds, name=st.sampled_from(sorted(CONSTRAINTS)))
def test_for_new_people_the_expectation_keeps_the_bound_and_few_counts_before_it_do(seed, name):
    task, score = drawn(seed, name, for_new=True)
    found = best_stop(task, score)
    path = path_of(task, score)
    kept = (task.slack(task.expected(path.rates)) >= -TINY).all(axis=0)
    at = int(np.flatnonzero(path.n_changed == found.n_changed)[0])
    if found.is_reached:
        assert kept[at]
        assert kept[:at].sum() <= 2  # expectations go up and down by chance
    else:
        assert kept.sum() <= 2


def test_where_no_count_is_enough_the_cut_is_hardly_worse_than_the_best_with_fewer_changes():
    people = People(3, n=400)
    task = people.task(c.DemographicParity(ratio=0.99), for_new=True)
    v = people.rng.normal(size=400) + 1.5 * (people.group - 0.5)
    score = evidence(task, v, np.ones(400))
    found = best_stop(task, score)
    path = path_of(task, score)
    (expected,) = task.expected(path.rates)
    best = int(expected.argmax())
    assert not found.is_reached
    assert 0 < found.n_changed < path.n_changed[best]
    lost = (expected[best] - expected) / standard_errors(task, path, best)
    at = int(np.flatnonzero(path.n_changed == found.n_changed)[0])
    assert lost[at] <= 0.5
    assert np.flatnonzero(lost <= 0.5)[0] >= at - len(path) // N_TRIED - 1


def standard_errors(task, path, best):
    """Return those of the P-rule at each count less that at the best one.

    Only the people between both counts make a difference. The errors are those of the tangent.
    """
    low, high = np.sort(path.rates[:, best])
    is_low = path.rates[:, best] == low
    slope = np.where(is_low, 1 / high, low / high**2)
    between = np.abs(path.rates - path.rates[:, [best]]) / task.sizes[:, None]
    errors = np.sqrt((slope**2) @ between)
    return np.where(errors > 0, errors, np.inf)


@pytest.mark.parametrize("name", ["parity", "odds"])
def test_of_many_counts_a_part_leads_to_the_same_stop(name, monkeypatch):
    people = People(6, n=3000)
    task = people.task(CONSTRAINTS[name])
    signal = people.group if name == "parity" else people.group * np.where(people.y, 1, 0.5)
    v = people.rng.normal(size=3000) + 2.0 * (signal - signal.mean())
    score = evidence(task, v, np.ones(3000))
    full = best_stop(task, score)
    assert full.is_reached and full.n_changed > 50
    monkeypatch.setattr(cut_module, "MAX_STOPS", 100)
    thin = path_of(task, score)
    assert len(thin) == 101
    exact = {n: at for at, n in enumerate(thin.n_changed.tolist())}
    for n, rates, _ in slow_path(task, score)[::10]:
        if n in exact:
            np.testing.assert_allclose(thin.rates[:, exact[n]], rates, atol=1e-12)
    found = best_stop(task, score)
    assert (found.cut, found.n_changed) == (full.cut, full.n_changed)
    assert stop_on(task, thin).n_changed >= full.n_changed


@cache
def any_task():
    return drawn(1)[0]


@given(low=st.floats(1e-6, 1e3), gap=st.floats(1e-15, 1e-3))
def test_a_cut_separates_those_who_change_however_close_the_others_are(low, gap):
    task = any_task()
    score = np.full(120, -np.inf)
    score[:3] = low * (1 + gap), low * (1 + 2 * gap), low
    path = path_of(task, score)
    for at in range(len(path)):
        assert (score > path.cut(at)).sum() == path.n_changed[at]
    usual = np.full(120, -np.inf)
    usual[:2] = 0.5, 0.25
    assert path_of(task, usual).cut(1) == 0.375


def test_nobody_changes_whose_change_is_expected_to_hurt():
    task, score = drawn(1)
    path = path_of(task, np.minimum(score, 0.0))
    assert (len(path), path.cut(0)) == (1, np.inf)
    stop = best_stop(task, np.full(120, -np.inf))
    assert (stop.cut, stop.n_changed) == (np.inf, 0.0)
