"""People who gain against people who stay rejected: shares of pairs, counted by brute force."""

from __future__ import annotations

import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from commod._reporting.audit.scores import RankedScores
from commod.exceptions import InputError
from commod.metrics import outscoring_probability
from commod.metrics._changes import Sides
from tables_of_cases import every_line

PERSON = st.tuples(
    st.sampled_from([0.0, 0.1, 0.3, 0.3001, 0.5, 0.9]),  # score
    st.booleans(),  # decision before
    st.booleans(),  # decision after
    st.sampled_from("abc"),  # group
    st.booleans(),  # true label
)


def share_of_pairs(people, change):
    """Compare every changed person with every other one who had the same decision."""
    wins = []
    for score, before, after, group, _ in people:
        if before == (change == "loss") and after != before:
            for other, other_before, other_after, other_group, _ in people:
                if other_before == other_after == before and other_group == group:
                    distance = score - other if change == "gain" else other - score
                    wins.append(0.5 + 0.5 * np.sign(distance))
    return np.mean(wins) if wins else math.nan


def true_share(people, before, after):
    labels = [person[4] for person in people if (person[1], person[2]) == (before, after)]
    return np.mean(labels) if labels else math.nan


@settings(max_examples=40, deadline=None)
@given(people=st.lists(PERSON, min_size=1, max_size=25), change=st.sampled_from(["gain", "loss"]))
def test_the_probability_is_the_share_of_pairs_of_the_same_group(people, change):
    scores, before, after, groups, label = (
        np.array(values) for values in zip(*people, strict=True)
    )
    found = outscoring_probability(
        scores,
        before * 1,
        after * 1,
        sensitive_features=groups,
        change=change,
        y_true=label * 1,
    )
    assert found.value == pytest.approx(share_of_pairs(people, change), nan_ok=True)
    everybody = [(*person[:3], "all", person[4]) for person in people]
    assert found.overall.value == pytest.approx(share_of_pairs(everybody, change), nan_ok=True)
    for group, figure in found.by_group.items():
        members = [person for person in people if person[3] == group]
        assert figure.value == pytest.approx(share_of_pairs(members, change), nan_ok=True)
    start = change == "loss"
    assert found.n_changed == int(((before == start) & (after != start)).sum())
    expected = [true_share(people, start, end) for end in (not start, start)]
    measured = [found.true_share_changed, found.true_share_others]
    assert measured == pytest.approx(expected, nan_ok=True)
    if not math.isnan(found.low):
        assert 0 <= found.low <= found.value <= found.high <= 1


def test_scores_of_the_other_label_give_the_same_probability():
    scores = np.random.default_rng(0).random(200)
    before = (scores > 0.5) * 1
    after = np.where(np.arange(200) % 5 == 0, 1 - before, before)
    for change in ("gain", "loss"):
        straight = outscoring_probability(scores, before, after, change=change)
        turned = outscoring_probability(1 - scores, before, after, pos_label=0, change=change)
        np.testing.assert_equal(astuple(turned), astuple(straight))  # NaN equals NaN here


@given(
    people=st.lists(
        st.tuples(st.sampled_from([0.1, 0.2, 0.3]), st.sampled_from([0.0, 0.25, 1.0])),
        min_size=1,
        max_size=12,
    )
)
def test_a_randomised_update_has_expected_pairs(people):
    scores, proba = (np.array(values) for values in zip(*people, strict=True))
    n = len(people)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    total = sum(proba[i] * (1 - proba[j]) for i, j in pairs)
    wins = sum(
        proba[i] * (1 - proba[j]) * (0.5 + 0.5 * np.sign(scores[i] - scores[j])) for i, j in pairs
    )
    sides = Sides.of(scores, np.zeros(n, bool), np.zeros(n, np.intp), 1)
    expected = wins / total if total > 1e-12 else math.nan
    assert sides.share(proba, "gain") == pytest.approx(expected, nan_ok=True)


def test_the_interval_of_one_group_is_delongs():
    rng = np.random.default_rng(1)
    scores, after = rng.random(300).round(2), rng.random(300) < 0.2
    found = outscoring_probability(scores, np.zeros(300), after * 1.0, favorable_label=1.0)
    area = RankedScores.of(scores).area(after, 0.95)
    assert (found.value, found.low, found.high) == pytest.approx((area.value, area.low, area.high))


def test_the_interval_over_groups_covers_the_truth():
    """In 95 of 100 draws, about: gainers are as good as the others, groups differ much."""
    rng = np.random.default_rng(2)
    n_draws, covered = 100, 0
    for _ in range(n_draws):
        groups = rng.integers(0, 3, 240)
        scores = (rng.random(240) + groups) / 4
        after = rng.random(240) < np.array([0.05, 0.2, 0.5])[groups]
        found = outscoring_probability(
            scores, np.zeros(240, int), after * 1, sensitive_features=groups
        )
        covered += found.low <= 0.5 <= found.high
    assert 0.89 <= covered / n_draws <= 0.99


def test_groups_hide_or_reverse_what_all_pairs_show():
    """Gainers come from the group that scores lower, and are the best of it."""
    scores = [0.1, 0.2, 0.3, 0.35, 0.4, 0.45]
    after = [0, 0, 1, 0, 0, 0]
    groups = ["a", "a", "a", "b", "b", "b"]
    found = outscoring_probability(scores, [0] * 6, after, sensitive_features=groups)
    assert (found.value, found.overall.value) == (1.0, 0.4)
    assert math.isnan(found.by_group["b"].value)


def test_separated_scores_have_an_interval_that_is_no_point():
    found = outscoring_probability([0.1] * 10 + [0.4] * 4, [0] * 14, [0] * 10 + [1] * 4)
    assert found.value == 1.0
    assert 0.4 < found.low < 0.6
    assert found.high == 1.0


@every_line(
    "settings, message",
    [
        ({"change": "gains"}, "Did you mean 'gain'"),
        ({"pos_label": 2}, "not among the labels"),
        ({"level": 0.3}, "level"),
        ({"scores": [0.1, 7.0]}, "outside"),
    ],
)
def test_wrong_parameters_are_named(settings, message):
    arguments = {"scores": [0.1, 0.7], "y_before": [0, 1], "y_after": [1, 1], **settings}
    with pytest.raises(InputError, match=message) as raised:
        outscoring_probability(
            arguments.pop("scores"),
            arguments.pop("y_before"),
            arguments.pop("y_after"),
            **arguments,
        )
    assert raised.value.parameter == next(iter(settings))


def by_delong(groups, level=0.95):
    """Return share and interval of (scores of the changed, scores of the others) by group.

    A group with one person on a side has the largest variance that an area can have.
    """
    areas, variances, n_pairs, smaller = [], [], [], []
    for first, second in groups:
        wins = 0.5 + 0.5 * np.sign(np.subtract.outer(first, second))
        areas.append(wins.mean())
        n_pairs.append(wins.size)
        smaller.append(min(wins.shape))
        if min(wins.shape) > 1:
            by_person = wins.mean(axis=1), wins.mean(axis=0)
            variances.append(sum(part.var(ddof=1) / len(part) for part in by_person))
        else:
            variances.append(None)
    weight = np.array(n_pairs) / sum(n_pairs)
    share = float(weight @ areas)
    known = [share * (1 - share) if v is None else v for v in variances]
    spread = math.sqrt(weight**2 @ known) / (share * (1 - share))
    z, middle = -stats.norm.ppf((1 - level) / 2), math.log(share / (1 - share))
    return share, *(1 / (1 + math.exp(-middle + sign * z * spread)) for sign in (1, -1))


def test_the_interval_over_groups_is_that_of_weighted_areas():
    """Two people are enough for a variance of their own, and one person is not."""
    cells = {
        "two": ([0.3, 0.6], [0.1, 0.4, 0.5]),
        "one": ([0.2], [0.1, 0.35, 0.25]),
        "more": ([0.4, 0.5, 0.2], [0.3, 0.45]),
    }
    rows = [
        (score, is_changed, group)
        for group, sides in cells.items()
        for is_changed, side in zip((1, 0), sides, strict=True)
        for score in side
    ]
    scores, after, groups = zip(*rows, strict=True)
    before = [0] * len(rows)
    for level in (0.95, 0.8):
        told = {} if level == 0.95 else {"level": level}  # the default
        found = outscoring_probability(scores, before, after, sensitive_features=groups, **told)
        ours = found.value, found.low, found.high
        assert ours == pytest.approx(by_delong([cells[g] for g in sorted(cells)], level))
        alone = found.by_group["two"]
        assert tuple(alone) == pytest.approx(by_delong([cells["two"]], level))
        assert math.isnan(found.by_group["one"].low) and found.by_group["one"].value == 1 / 3


def test_an_interval_needs_two_people_on_each_side():
    for n_changed, is_known in ((1, False), (2, True)):
        scores = [0.1, 0.3, 0.5, *[0.2, 0.4][:n_changed]]
        found = outscoring_probability(scores, [0] * len(scores), [0, 0, 0, *[1] * n_changed])
        assert math.isnan(found.low) == math.isnan(found.high) == (not is_known)
    widest = stats.norm.ppf(0.975) ** 2 / (2 + stats.norm.ppf(0.975) ** 2)  # Wilson, for 0 of 2
    for scores, ends in (([0.1, 0.2], (0.0, widest)), ([0.8, 0.9], (1 - widest, 1.0))):
        found = outscoring_probability([0.4, 0.5, 0.6, *scores], [0] * 5, [0, 0, 0, 1, 1])
        assert (found.low, found.high) == pytest.approx(ends)
