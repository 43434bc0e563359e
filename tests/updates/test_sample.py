"""The search sample of a large table, and the verification of updates on all rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from commod.updates._sample import (
    MIN_CELL_ROWS,
    SampleComparison,
    agrees_with_sample,
    draw_sample,
    path_agrees_with_samples,
    sample_sizes,
    weight_evenness,
)
from sklearn.utils import check_random_state

from commod import ScoreColumn
from commod.exceptions import InputError, TargetWarning
from commod.updates import _sample
from quick_updates import quick_control

N = 40_000
AGREES = "the share of changed decisions agrees with the sample within sampling error"


def test_the_fewer_have_to_change_the_more_rows_are_looked_at():
    sizes = [sample_sizes(10**7, share, use_all=False)[0] for share in (0.5, 0.05, 0.01, 0.001)]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 1_000_000  # of which a thousand have to change


@pytest.mark.parametrize("n", [500, 20_000, 10**6])
@pytest.mark.parametrize("limit", [None, 0.0, 0.2, 0.001])
@pytest.mark.parametrize("use_all", [False, True])
def test_sizes_grow_and_end_with_all_rows(n, limit, use_all):
    sizes = sample_sizes(n, limit, use_all=use_all)
    assert sizes[-1] == n
    assert sizes == sorted(set(sizes))
    assert len(sizes) <= 2 or not use_all


def test_a_sample_has_the_base_rates_of_all_rows_and_stands_for_them():
    rng = np.random.default_rng(0)
    cell = rng.choice([-1, 0, 1, 2], N, p=[0.05, 0.6, 0.33, 0.02])
    decisions = rng.random(N) < 0.2 + 0.1 * cell
    index, people = draw_sample(cell, decisions, 5_000, np.random.RandomState(0))
    assert len(np.unique(index)) == len(index)
    assert people.sum() == pytest.approx(N, rel=1e-3)
    for code in (0, 1, 2):
        in_cell, drawn = cell == code, cell[index] == code
        assert drawn.sum() >= min(MIN_CELL_ROWS, in_cell.sum())
        rate = np.average(decisions[index][drawn], weights=people[drawn])
        assert rate == pytest.approx(decisions[in_cell].mean(), abs=2 / drawn.sum())
        assert people[drawn].sum() == pytest.approx(in_cell.sum(), rel=0.01)


def test_a_path_agrees_unless_it_costs_more_throughout_or_far_more_at_one_target():
    def path(*shares_of_all):
        return [SampleComparison(0.1, share, 1_000, 0.0, 0.3) for share in shares_of_all]

    assert path_agrees_with_samples(path(0.1, 0.1, 0.12, 0.1, 0.1))
    assert not path_agrees_with_samples(path(0.11, 0.11, 0.11, 0.11, 0.11))
    assert not path_agrees_with_samples(path(0.09, 0.09, 0.14, 0.09, 0.09))


def test_rare_decisions_keep_their_rate():
    cell = np.repeat([0, 1], N // 2)
    decisions = np.zeros(N, dtype=bool)
    decisions[:15], decisions[-70:] = True, True
    index, people = draw_sample(cell, decisions, 5_000, np.random.RandomState(0))
    for code, n_positive in ((0, 15), (1, 70)):
        drawn = (cell[index] == code) & decisions[index]
        assert people[drawn].sum() == pytest.approx(n_positive)
        assert drawn.sum() == n_positive


def test_a_sample_that_is_half_of_the_rows_is_all_of_them():
    assert sample_sizes(23_000, None, use_all=False) == [23_000]
    assert sample_sizes(24_000, None, use_all=False) == [12_000, 24_000]
    assert sample_sizes(49_000, None, use_all=True) == [12_000, 49_000]


def test_uneven_weights_ask_for_more_rows():
    cell = np.zeros(N, dtype=int)
    weight = np.ones(N)
    assert weight_evenness(cell, weight) == 1
    weight[:40] = 1_000.0  # which hold half of the weight
    assert weight_evenness(cell, weight) == pytest.approx(0.004, rel=0.01)
    assert weight_evenness(np.where(np.arange(N) < 40, -1, 0), weight) == 1  # in no cell


def test_an_update_agrees_with_its_sample_within_sampling_error():
    def agrees(share, share_of_all, n_changed, distance=0.0, progress=0.3):
        return agrees_with_sample(
            SampleComparison(share, share_of_all, n_changed, distance, progress)
        )

    assert agrees(0.05, 0.05, 1_000)
    assert agrees(0.05, 0.052, 1_000)
    assert not agrees(0.05, 0.06, 1_000)
    assert not agrees(0.05, 0.052, 100_000)
    assert agrees(0.0, 0.0, 0)
    assert agrees(0.05, 0.05, 1_000, distance=-0.2)  # closer to the target than in the sample
    assert not agrees(0.05, 0.05, 1_000, distance=0.05)
    assert agrees(0.01, 0.01, 1_000, distance=0.005, progress=0.1)
    assert not agrees(0.01, 0.01, 1_000, distance=0.005, progress=0.03)  # a sixth of it is lost


# -- fitting --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    group = rng.random(N) < 0.4
    X = pd.DataFrame(
        {
            "informative": group + rng.normal(size=N),
            "noise": rng.normal(size=N),
            "town": [f"t{k}" for k in rng.integers(0, 6, N) + 2 * group],
        }
    )
    signal = X["noise"] + 0.5 - group * 1.0 + 0.5 * rng.normal(size=N)
    X["score"] = 1 / (1 + np.exp(-signal))
    return X, group


@pytest.fixture
def smaller_samples(monkeypatch):
    """Search on fewer rows, which takes less time."""
    monkeypatch.setattr(_sample, "MIN_ROWS", 4_000)
    monkeypatch.setattr(_sample, "MIN_CHANGED_ROWS", 300)


def fit(rows, **settings):
    settings = {"random_state": 0, "progress": False, **settings}
    update = quick_control(ScoreColumn("score"), **settings)
    return update.fit(rows[0], sensitive_features=rows[1])


@pytest.mark.slow
def test_a_large_table_is_sampled_and_verified_and_the_status_says_so(rows):
    update = fit(rows)
    assert update.reached_
    assert update.n_rows_ == N
    assert update.n_search_rows_ < N / 2
    assert f"sample of {update.n_search_rows_:,} of the {N:,} rows that" in update.status_
    assert AGREES in update.status_
    assert update.fairness_ >= 0.8  # on all rows, not on the sample


@pytest.mark.slow
def test_all_rows_are_searched_where_that_is_asked_for(rows):
    every = fit(rows, sample="all")
    assert every.n_search_rows_ == N
    assert "sample" not in every.status_
    assert every.reached_
    some = fit(rows)
    assert every.change_rate_ == pytest.approx(some.change_rate_, rel=0.05)
    assert every.change_rate_ >= every.limit_


@pytest.mark.slow
@pytest.mark.parametrize("sample", ["auto", "all"])
def test_without_a_seed_the_sample_is_the_same_and_nobody_elses_numbers_are_drawn(rows, sample):
    everybodys = check_random_state(None)
    before = everybodys.get_state()[1].copy()
    one, other = (fit(rows, sample=sample, random_state=None) for _ in range(2))
    assert one.scorecard_ == other.scorecard_
    assert np.array_equal(before, everybodys.get_state()[1])


@pytest.mark.slow
def test_uneven_weights_are_searched_on_as_many_rows_as_they_need(rows):
    weight = np.random.default_rng(0).lognormal(0, 2, N)
    update = quick_control(ScoreColumn("score"), random_state=0, progress=False)
    update.fit(rows[0], sensitive_features=rows[1], sample_weight=weight)
    assert update.n_search_rows_ == N


@pytest.mark.slow
def test_few_rows_are_searched_whole_and_both_ways_agree(rows):
    few = (rows[0][:3000], rows[1][:3000])
    auto, every = fit(few), fit(few, sample="all")
    assert auto.n_search_rows_ == every.n_search_rows_ == 3000
    assert auto.scorecard_ == every.scorecard_


def test_rows_of_small_cells_grow_with_the_sample():
    cell = np.repeat([0, 1], [95_000, 5_000])
    decisions = np.arange(100_000) % 2 == 0
    drawn = []
    for growth in (1, 4):
        index, _ = draw_sample(cell, decisions, 12_000, np.random.RandomState(0), growth)
        drawn.append(np.bincount(cell[index]))
    assert drawn[0][1] == MIN_CELL_ROWS
    assert drawn[1][1] == 4 * MIN_CELL_ROWS
    assert drawn[0][0] == drawn[1][0]


@pytest.mark.slow
def test_a_sample_that_misleads_grows(rows, monkeypatch):
    sizes = []
    draw = _sample.draw_sample

    def misleading(cell, decisions, size, random_state, growth):
        sizes.append(size)
        index, people = draw(cell, decisions, size, random_state, growth)
        if len(sizes) == 1:  # a dozen rows over and over: what is learned from them is chance
            index = index[np.arange(len(index)) % 12]
        return index, people

    monkeypatch.setattr(_sample, "draw_sample", misleading)
    update = fit(rows)
    assert len(sizes) > 1 or update.n_search_rows_ == N
    assert update.reached_
    monkeypatch.undo()
    assert update.change_rate_ <= 1.1 * fit(rows).change_rate_


@pytest.mark.slow
def test_a_frontier_of_many_rows_is_cut_on_all_of_them(rows):
    from commod import frontier

    update = quick_control(ScoreColumn("score"), random_state=0, progress=False)
    curve = frontier(update, rows[0], sensitive_features=rows[1], targets=[0.7, 0.8, 0.9])
    assert (curve.frame()["fairness"] >= [0.7, 0.8, 0.9]).all()
    chosen = curve.select(target=0.8)
    assert chosen.n_search_rows_ < N
    assert "The search ran on a sample of" in chosen.status_
    assert AGREES in chosen.status_
    assert chosen.change_rate_ <= 1.1 * fit(rows).change_rate_


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"max_changes": 0.06}, {"target": 0.95, "max_changes": 0.08}])
def test_a_budget_or_a_target_out_of_reach_is_verified_too_and_needs_no_more_rows(
    rows, smaller_samples, settings
):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TargetWarning)
        update = fit((rows[0][:16_000], rows[1][:16_000]), **settings)
    assert update.n_search_rows_ < 16_000
    assert AGREES in update.status_
    assert update.change_rate_ <= settings["max_changes"]


@pytest.mark.slow
def test_the_half_that_finds_updates_is_what_a_promise_samples(rows, smaller_samples):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TargetWarning)
        update = fit(rows, confidence=0.9, target=0.6)
    assert f"of the {N // 2:,} rows that the update was fitted on" in update.status_


def test_another_sample_is_refused(rows):
    with pytest.raises(InputError, match=r"sample='some' is not known; choose one of auto, all"):
        fit(rows, sample="some")
