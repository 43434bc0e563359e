"""Multipliers of plug-in rules, beside linear programmes and paths written down directly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from commod.metrics._constraint import get_constraint
from commod.metrics._people import People
from commod.rivals import plug_in
from commod.rivals.plug_in import (
    LinearProgramme,
    best_multipliers,
    curved_gain,
    decide,
    fair_margins,
    single_multiplier,
    trace_path,
)

SEEDS = st.integers(0, 10**6)


def random_programme(seed, n, *, rate_rows=1, groups=2, aware=False, ties=False):
    """Return a programme whose effects average to 1, with weights that differ."""
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    share = rng.integers(1, 4, n) * 1.0
    share /= share.sum()
    proba = rng.dirichlet(np.full(groups, 0.7), n).T
    if ties:
        score, proba = score.round(1), proba.round(1) + 0.1
    if aware:
        proba = np.eye(groups)[np.arange(n) % groups].T
    cells = np.stack([proba * score, proba * (1 - score)]) if rate_rows == 2 else proba[None]
    # effects depend on the score, otherwise the groups would hardly differ
    cells = cells * (1 + np.arange(groups)[:, None] * score)
    gain = score - 0.45
    if rate_rows == 2 and aware:
        gain = curved_gain(gain)
    return LinearProgramme(gain, cells / (cells @ share)[:, :, None], share)


def primal(programme, tolerance):
    """Return the best value and probabilities p, from inequalities for each pair of groups."""
    _, n_groups, n = programme.effects.shape
    pairs = [(i, j) for i in range(n_groups) for j in range(n_groups) if i != j]
    weighed = programme.effects * programme.share
    limits = np.concatenate([[row[i] - row[j] for i, j in pairs] for row in weighed])
    solution = linprog(
        -n * programme.gain * programme.share,
        A_ub=n * limits,
        b_ub=np.full(len(limits), n * tolerance),
        bounds=(0, 1),
        method="highs",
        options={"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10},
    )
    assert solution.status == 0
    return -solution.fun / n, solution.x


def dual(programme, multipliers, tolerance):
    margins = fair_margins(programme.gain, programme.effects, multipliers)
    reserve = tolerance * np.maximum(multipliers, 0).sum()
    return programme.share @ np.maximum(margins, 0) + reserve


# ---------------------------------------------------------------------------------------------
# Two groups, one rate row


def test_the_hand_example_of_the_method():
    eta = np.array([0.9, 0.8, 0.4, 0.3, 0.6, 0.35, 0.2, 0.1])
    effects = np.array([[[2.0] * 4 + [0.0] * 4, [0.0] * 4 + [2.0] * 4]])
    two = LinearProgramme(2 * eta - 1, effects, np.full(8, 1 / 8))
    multipliers = best_multipliers(two, 0.0)
    assert 0.15 < multipliers[0, 0] < 0.3
    assert multipliers[0, 1] == -multipliers[0, 0]
    chosen = two.decisions(multipliers)
    assert chosen.tolist() == [True, True, False, False] * 2
    assert two.gain @ chosen == pytest.approx(1.3)
    assert not best_multipliers(two, np.inf).any()


@given(SEEDS, st.integers(2, 60), st.floats(0, 0.9), st.booleans())
@settings(max_examples=30, deadline=None)
def test_sorting_solves_the_linear_programme(seed, n, part, ties):
    programme = random_programme(seed, n, ties=ties)
    first, second = programme.effects[0]
    difference = second - first
    tolerance = part * programme.gap(programme.gain > 0)
    single = single_multiplier(programme.gain, difference, programme.share, tolerance)
    # the dual is convex and bends at breakpoints alone: one of those beside λ is its minimum
    with np.errstate(divide="ignore", invalid="ignore"):
        breaks = programme.gain / difference
    breaks = np.append(breaks[np.isfinite(breaks)], 0.0)
    beside = [
        single,
        breaks[breaks < single].max(initial=-9),
        breaks[breaks > single].min(initial=9),
    ]
    values = [dual(programme, np.array([[-b, b]]), tolerance) for b in beside]
    best, probabilities = primal(programme, tolerance)
    assert min(values) == pytest.approx(best, abs=1e-9)
    if not ties:
        assert ((probabilities > 1e-7) & (probabilities < 1 - 1e-7)).sum() <= 1
        chosen = programme.decisions(np.array([[-single, single]]))
        assert (np.abs(chosen - probabilities) > 1e-7).sum() <= 1


@given(SEEDS, st.booleans())
@settings(max_examples=25, deadline=None)
def test_a_smaller_tolerance_never_gives_a_larger_gap(seed, ties):
    programme = random_programme(seed, 40, ties=ties)
    base = programme.gap(programme.gain > 0)
    steps = np.linspace(1, 0, 9) * base
    gaps = [programme.gap(programme.decisions(best_multipliers(programme, t))) for t in steps]
    assert (np.diff(gaps) <= 1e-12).all()
    largest = (programme.share * np.abs(programme.effects[0, 1] - programme.effects[0, 0])).max()
    if not ties:  # one row at most is on the wrong side
        assert (gaps <= steps + largest / 2 + 1e-12).all()


def test_the_multiplier_keeps_its_distance_from_every_row():
    gain = np.array([0.4, -0.1, -0.4])
    single = single_multiplier(gain, np.array([2.0, -2.0, -2.0]), np.full(3, 1 / 3), 2 / 3 - 0.6)
    assert single == pytest.approx(0.2 / 2 + 0.05 / 2)  # breakpoints .05 and .2: their middle


def test_rows_that_are_alike_fall_to_the_closer_side():
    # a gap of 0.5: the first row takes 0.3 at λ = 0.1, two that are alike 0.6 at λ = 0.2
    gain, difference = np.array([0.3, 0.6, 0.6, 0.5]), np.array([3.0, 3.0, 3.0, -4.0])
    share = np.full(4, 0.1)
    assert single_multiplier(gain, difference, share, 0.05) == pytest.approx(0.15)  # 0.2, not -0.4
    assert single_multiplier(gain, difference, share, 0.4) == pytest.approx(0.15)  # 0.2 is within
    share[0] = 0.04  # now 0.32 and then 0.2 are left, and -0.4 after the two
    assert single_multiplier(gain, difference, share, 0.0) == pytest.approx(0.15)
    share[3] = 0.05
    assert single_multiplier(gain, difference, share, 0.0) > 0.2  # -0.2 is closer than 0.4


def test_nothing_is_to_be_done_within_the_tolerance():
    programme = random_programme(3, 200, rate_rows=2, groups=3)
    gap = programme.gap(programme.gain > 0)
    assert (best_multipliers(programme, gap) == 0).all()
    assert best_multipliers(programme, 0.99 * gap).any()


# ---------------------------------------------------------------------------------------------
# Several groups or rate rows


@given(
    SEEDS,
    st.integers(8, 80),
    st.sampled_from([(1, 3), (2, 2), (2, 3), (1, 4)]),
    st.booleans(),
    st.floats(0, 0.9),
)
@settings(max_examples=30, deadline=None)
def test_the_multipliers_are_those_of_the_linear_programme(seed, n, shape, aware, part):
    programme = random_programme(seed, n, rate_rows=shape[0], groups=shape[1], aware=aware)
    tolerance = part * programme.gap(programme.gain > 0)
    multipliers = plug_in._solve(programme, tolerance)
    best, probabilities = primal(programme, tolerance)
    np.testing.assert_allclose(multipliers.sum(axis=1), 0, atol=1e-9)
    assert dual(programme, multipliers, tolerance) == pytest.approx(best, abs=1e-8)
    margins = fair_margins(programme.gain, programme.effects, multipliers)
    assert (probabilities[margins > 1e-7] > 1 - 1e-7).all()
    assert (probabilities[margins < -1e-7] < 1e-7).all()


@given(SEEDS, st.sampled_from([(1, 3), (2, 2), (2, 3)]), st.booleans(), st.floats(0, 0.9))
@settings(max_examples=30, deadline=None)
def test_no_row_is_left_on_the_edge_and_few_fall_on_the_wrong_side(seed, shape, aware, part):
    programme = random_programme(seed, 300, rate_rows=shape[0], groups=shape[1], aware=aware)
    tolerance = part * programme.gap(programme.gain > 0)
    multipliers = best_multipliers(programme, tolerance)
    margins = fair_margins(programme.gain, programme.effects, multipliers)
    assert np.abs(margins).min() > 0
    vertex = plug_in._solve(programme, tolerance)
    sides = [programme.gap(programme.decisions(s * vertex)) for s in (1 - 1e-7, 1 + 1e-7)]
    assert programme.gap(programme.decisions(multipliers)) <= max(tolerance, min(sides)) + 1e-9
    n_free = shape[0] * (shape[1] - 1)
    # groups that are known meet both rates near the threshold, where many margins are tiny
    heaviest = np.sort(programme.share * programme.effects.max(axis=(0, 1)))[-n_free:].sum()
    room = heaviest if not (aware and shape[0] == 2) else 3 * heaviest
    assert programme.gap(programme.decisions(multipliers)) <= tolerance + room


@pytest.mark.parametrize("aware", [False, True])
@pytest.mark.parametrize("part", [0.0, 0.4, 0.95])
def test_many_rows_are_solved_by_those_near_the_edge(monkeypatch, aware, part):
    programme = random_programme(5, 4000, rate_rows=2, groups=3, aware=aware)
    tolerance = part * programme.gap(programme.gain > 0)
    assert len(programme.gain) < plug_in.N_ROWS
    whole = plug_in._solve(programme, tolerance)
    monkeypatch.setattr(plug_in, "N_ROWS", 100)
    sizes = []
    solve_rows = plug_in._solve_rows

    def counted(programme, tolerance, rows, fixed):
        sizes.append(len(rows))
        return solve_rows(programme, tolerance, rows, fixed)

    monkeypatch.setattr(plug_in, "_solve_rows", counted)
    np.testing.assert_allclose(plug_in._solve(programme, tolerance), whole, atol=1e-7)
    if part == 0.4:
        assert max(sizes) < 1500


@pytest.mark.parametrize("shift", [0.05, 0.15, 0.2])  # right, wrong and impossible at first
def test_multipliers_of_a_misleading_sample_are_corrected(monkeypatch, shift):
    programme = random_programme(6, 3000, rate_rows=2, groups=2)
    tolerance = 0.1 * programme.gap(programme.gain > 0)
    whole = plug_in._solve(programme, tolerance)
    sample = plug_in._sample
    monkeypatch.setattr(plug_in, "N_ROWS", 100)

    def misleading(programme, size):
        sampled = sample(programme, size)
        np.testing.assert_allclose(sampled.effects @ sampled.share, 1)  # as of all rows
        return LinearProgramme(sampled.gain - shift, sampled.effects, sampled.share)

    monkeypatch.setattr(plug_in, "_sample", misleading)
    np.testing.assert_allclose(plug_in._solve(programme, tolerance), whole, atol=1e-9)


def test_a_group_that_must_lose_on_both_rates_changes_near_the_threshold():
    rng = np.random.default_rng(0)
    n = 3000
    group = np.arange(n) % 2
    score = np.where(group, rng.beta(0.5, 0.5, n), rng.beta(3, 3, n))  # separates one better
    known = np.eye(2)[group].T
    cells = np.stack([known * score, known * (1 - score)])
    share = np.full(n, 1 / n)
    effects = cells / (cells @ share)[:, :, None]
    programme = LinearProgramme(curved_gain(score - 0.5), effects, share)
    multipliers = best_multipliers(programme, 0.0)
    chosen = programme.decisions(multipliers)
    assert programme.gap(programme.gain > 0) > 0.1
    assert programme.gap(chosen) < 0.003
    changed = chosen != (score > 0.5)
    assert np.abs(score - 0.5)[changed].mean() < 0.6 * np.abs(score - 0.5)[group == 1].mean()


def test_the_curved_gain_keeps_signs_and_order():
    gain = np.linspace(-0.6, 0.6, 101)
    assert (np.sign(curved_gain(gain)) == np.sign(gain)).all()
    assert (np.diff(curved_gain(gain)) > 0).all()


def test_a_margin_of_zero_keeps_the_base_decision():
    margins = np.array([-1e-300, -0.0, 0.0, 1e-300])
    assert decide(margins, np.array([True] * 4)).tolist() == [False, True, True, True]
    assert decide(margins, np.array([False] * 4)).tolist() == [False, False, False, True]


# ---------------------------------------------------------------------------------------------
# Along a path


def cells_at(index, shape):
    """Return cells of people in the given ones; two rows are those of both true labels."""
    row, group = np.divmod(index, shape[1])
    constraint = ("demographic_parity", "equalized_odds")[shape[0] - 1]
    return People((get_constraint(constraint),), group, shape[1], row == 0)


def counted_fairness(programme, multipliers, cells, weight, as_ratio):
    chosen = programme.decisions(multipliers)
    rates = cells.totals(weight * chosen) / cells.totals(weight)
    if not as_ratio:
        return -np.ptp(rates, axis=1).sum()
    return rates.min() / rates.max() if rates.max() > 0 else -np.inf


@given(SEEDS, st.sampled_from([(1, 2), (1, 3), (2, 2)]), st.booleans())
@settings(max_examples=25, deadline=None)
def test_a_traced_path_sees_every_change_of_decisions(seed, shape, ties):
    rng = np.random.default_rng(seed)
    n = 60
    programme = random_programme(seed, n, rate_rows=shape[0], groups=shape[1], ties=ties)
    weight = rng.integers(1, 3, n) * 1.0
    cells = cells_at(rng.permutation(np.arange(n) % (shape[0] * shape[1])), shape)
    knots = [np.zeros(shape), *rng.normal(0, 0.2, (3, *shape))]
    as_ratio = shape[0] == 1
    path = trace_path(programme, knots, cells=cells, weight=weight, as_ratio=as_ratio)
    ends = np.append(path.starts[1:], path.starts[-1] + 1)
    wide = ends - path.starts > 1e-9
    middles = (path.starts + ends) / 2
    for middle, fairness in zip(middles[wide], path.fairness[wide], strict=True):
        multipliers = path.at(float(middle))
        now = counted_fairness(programme, multipliers, cells, weight, as_ratio)
        assert now == pytest.approx(fairness, abs=1e-9)
    # nothing happens between the steps: any other place has the fairness of its stretch
    for position in rng.uniform(0, 6, 50):
        k = int(np.searchsorted(path.starts, position, side="right")) - 1
        now = counted_fairness(programme, path.at(position), cells, weight, as_ratio)
        assert now == pytest.approx(path.fairness[k], abs=1e-9)


@given(SEEDS, st.floats(0.5, 1.0))
@settings(max_examples=25, deadline=None)
def test_the_first_multipliers_that_are_fair_enough_are_taken(seed, target):
    programme = random_programme(seed, 80)
    rng = np.random.default_rng(seed)
    cells = cells_at((rng.random(80) < programme.effects[0, 1] / 2).astype(np.intp), (1, 2))
    weight = np.ones(80)
    knots = [np.zeros((1, 2)), np.array([[-1.0, 1.0]])]
    path = trace_path(programme, knots, cells=cells, weight=weight, as_ratio=True)
    multipliers = path.first(target)
    reached = counted_fairness(programme, multipliers, cells, weight, True)
    if path.fairness.max() >= target:
        assert reached >= target - 1e-9
        earlier = path.fairness[path.starts < multipliers[0, 1]][:-1]
        assert (earlier < target).all()
    else:
        assert reached == pytest.approx(path.fairness.max())
    assert (path.first(-np.inf) == 0).all()


def test_nobody_decided_positively_is_not_fair():
    gain = np.array([0.2, 0.1, 0.1, -0.3])
    effects = np.ones((1, 2, 4))
    knots = [np.zeros((1, 2)), np.full((1, 2), 0.5)]
    cells = cells_at(np.array([0, 0, 1, 1]), (1, 2))
    programme = LinearProgramme(gain, effects, np.full(4, 0.25))
    path = trace_path(programme, knots, cells=cells, weight=np.ones(4), as_ratio=True)
    assert path.fairness[-1] == -np.inf
    assert path.fairness[0] == 0.5
