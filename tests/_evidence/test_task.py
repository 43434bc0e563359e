"""What rates have to keep: inequalities, compared with the metrics of all constraints."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small_tasks import People, membership

from commod import constraints as c
from commod._evidence import task as task_module
from commod._evidence.task import with_bounds

# linear ones: their inequalities hold exactly where the metric keeps its bound
CONSTRAINTS = {
    "ratio": c.DemographicParity(ratio=0.7),
    "difference": c.DemographicParity(difference=0.15),
    "true positives": c.TruePositiveRateParity(0.2),
    "false positives": c.FalsePositiveRateParity(ratio=0.6),
    "sum of two gaps": c.EqualizedOdds(0.45),
    "floor": c.MinimumRate(0.35),
    "ceiling": c.Maximum("false positive rate", 0.6),
    "accuracy": c.AccuracyParity(difference=0.15),
    "every stratum": c.DemographicParity(ratio=0.6).within("band", min_rows=1),
    "average": c.DemographicParity(ratio=0.7).within("band", min_rows=1, over="average"),
    "odds on average": c.EqualizedOdds(0.4).within("band", min_rows=1, over="average"),
    "several": c.DemographicParity(ratio=0.6)
    & c.MinimumTruePositiveRate(0.4)
    & c.EqualizedOdds(0.6).within("band", min_rows=1),
}


def metrics_of(people, constraints, decided, weight):
    """Return the metric of each constraint as the public function measures it."""
    found = constraints.value(
        people.y.astype(int),
        decided.astype(int),
        sensitive_features=people.group,
        control_features=people.X["band"] if "within" in repr(constraints) else None,
        sample_weight=weight,
    )
    return np.atleast_1d(found)


@pytest.mark.parametrize("name", CONSTRAINTS)
@given(seed=st.integers(0, 10**6), n_groups=st.integers(2, 4), is_weighted=st.booleans())
@example(seed=0, n_groups=2, is_weighted=False)
@settings(max_examples=3)  # each has three sets of decisions
def test_inequalities_hold_exactly_where_every_metric_keeps_its_bound(
    name, seed, n_groups, is_weighted
):
    constraints, people = CONSTRAINTS[name], People(seed, n=80, n_groups=n_groups)
    for g in range(n_groups):  # every cell has people
        own = np.flatnonzero(people.group == g)[:8]
        people.y[own] = [0, 1] * 4
        people.X.loc[own, "band"] = ["low", "low", "high", "high"] * 2
    weight = people.weight if is_weighted else None
    task = people.task(constraints, weight=weight)
    made = task.inequalities(task.base_rates)
    for share in (0.0, 0.5, 1.0):
        spread = people.rng.random(n_groups) * share
        decided = people.rng.random(people.n) < 0.5 + 0.4 * (spread[people.group] - share / 2)
        rates = task.added(decided * 1.0)
        metrics = metrics_of(people, constraints, decided, weight)
        np.testing.assert_allclose(task.values(rates[:, None])[:, 0], metrics, atol=1e-9)
        slack = task.slack(metrics)
        if np.abs(slack).min() < 1e-9:
            continue
        ours = made.slopes @ rates + made.constant
        for i, own in enumerate(slack):
            assert (ours[made.constraint == i].min() >= 0) == (own >= 0)


def test_tangents_touch_where_the_denominator_moves():
    people = People(5, n=400)
    for constraints in (
        c.PredictiveParity(difference=0.05),
        c.Parity("F1 score", difference=0.05),
        c.Minimum("negative predictive value", 0.5),
    ):
        task = people.task(constraints)
        rates = task.added((people.rng.random(400) < 0.6) * 1.0)
        made = task.inequalities(rates)
        # at the point of the tangent the least slack is that of the metric
        slack = task.slack(task.values(rates[:, None]))[0, 0]
        assert (made.slopes @ rates + made.constant).min() == pytest.approx(slack)
        for step in np.eye(task.n_cells) * 1e-6:
            before, after = (
                task.slack(task.values((rates + way * step)[:, None]))[0, 0] for way in (-1, 1)
            )
            moved = [(made.slopes @ (rates + way * step) + made.constant).min() for way in (-1, 1)]
            assert moved[1] - moved[0] == pytest.approx(after - before, abs=1e-10)


@pytest.mark.parametrize("groups", ["known", "partly", "probable"])
def test_rates_are_weighted_shares_of_expected_people(groups):
    people = People(7, n_groups=3)
    others = {"unknown_groups": "ignore"} if groups == "partly" else {}
    task = people.task("equalized_odds", groups, weight=people.weight, **others)
    share = people.shares if groups == "probable" else np.eye(3)[people.group]
    if groups == "partly":
        share = share * (np.arange(people.n) % 5 > 0)[:, None]
    rates = [
        np.average(people.base, weights=people.weight * share[:, g] * (people.y == label))
        for label in (True, False)
        for g in range(3)
    ]
    np.testing.assert_allclose(task.base_rates, rates)
    np.testing.assert_allclose(membership(task).sum(axis=1), share.sum(axis=1))


@pytest.mark.parametrize("caps", [(0.03, None), (None, 0.1), (0.03, 0.1)])
def test_caps_are_inequalities_on_accuracy_and_volume(caps):
    people = People(8)
    caps = dict(zip(("max_accuracy_loss", "max_volume_change"), caps, strict=True))
    task = people.task(weight=people.weight, **caps)
    made = task.inequalities(task.base_rates)
    changed = people.rng.random(people.n) < 0.3
    after = people.base ^ changed

    def mean(values):
        return np.average(values, weights=people.weight)

    gain = mean(after == people.y) - mean(people.base == people.y)
    volume = mean(after) - mean(people.base)
    side = task.side * changed
    sums = np.concatenate([task.base_rates + task.added(side), side @ task.caps_steps])
    np.testing.assert_allclose(sums[-2:], [gain, volume])
    slack = (made.slopes @ sums + made.constant)[made.constraint < 0]
    of_accuracy = [] if caps["max_accuracy_loss"] is None else [gain + 0.03]
    of_volume = [] if caps["max_volume_change"] is None else [0.1 + volume, 0.1 - volume]
    np.testing.assert_allclose(slack, of_accuracy + of_volume)


def test_of_very_many_inequalities_those_with_the_least_slack_are_kept(monkeypatch):
    people = People(9, n=400, n_groups=4)
    task = people.task(c.DemographicParity(ratio=0.8).within("band", min_rows=1))
    everything = task.inequalities(task.base_rates)
    monkeypatch.setattr(task_module, "MAX_ROWS_OF_PRICES", 5)
    few = task.inequalities(task.base_rates)
    slack = everything.slopes @ task.base_rates + everything.constant
    np.testing.assert_allclose(
        few.slopes @ task.base_rates + few.constant, np.sort(slack)[:5], atol=1e-12
    )


def test_the_expectation_is_the_mean_of_samples_that_chance_makes_less_fair():
    people = People(10, n=600)
    task = people.task(for_new=True)
    rates = np.array([0.4, 0.45])
    rng, sizes = np.random.default_rng(0), task.sizes
    # both the fit rows and the new sample have chance
    drawn = rates + sum(
        rng.binomial(sizes.astype(int), rates, (20_000, 2)) / sizes - rates for _ in "ab"
    )
    mean = (drawn.min(axis=1) / drawn.max(axis=1)).mean()
    several = np.column_stack([rates, rates[::-1]])
    expected = task.expected(several)[0]
    assert expected == pytest.approx([mean, mean], abs=0.003)
    assert (expected < task.values(several)[0] - 0.01).all()
    assert people.task(for_new=False).expected(several)[0] == pytest.approx([0.4 / 0.45] * 2)


def test_other_bounds_keep_the_comparisons():
    task = People(11).task(c.DemographicParity(ratio=0.7) & c.MinimumRate(0.3))
    moved = with_bounds(task.required, [0.9, 0.2])
    assert [one.bound for one in moved] == [0.9, 0.2]
    assert [one.comparison for one in moved] == [one.comparison for one in task.required]
