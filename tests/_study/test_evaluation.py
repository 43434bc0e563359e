"""The evaluator: figures by hand, and no update is let through below the exact limit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from commod import bounds, metrics
from commod._study import evaluation as _evaluation
from commod._study.evaluation import EvaluationRows, as_decisions
from commod.metrics._constraint import get_constraint
from commod.metrics._people import People

N = 24
GROUP = np.arange(N) % 3
LABEL = np.arange(N) % 2 == 0


def rows(before, constraints="demographic_parity", n_groups=3, **given):
    known = {"label": LABEL, "group": GROUP % n_groups, "gain_raises": True, **given}
    people = People((get_constraint(constraints),), known["group"], n_groups, label=known["label"])
    return EvaluationRows(people, before, known["gain_raises"])


decisions = arrays(np.bool_, N)
chances = arrays(np.float64, N, elements=st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]))
constraints = st.sampled_from(["demographic_parity", "equalized_odds", "true_positive_rate_parity"])


@given(decisions, decisions, constraints, st.sampled_from([2, 3]))
@settings(max_examples=100, deadline=None)
def test_no_decisions_whatever_are_below_their_limit(before, after, constraint, n_groups):
    figures = rows(before, constraint, n_groups).measure(after)
    assert figures["n_changes"] == (before != after).sum()
    assert not figures["change_rate"] < figures["limit"]


@given(decisions, chances, constraints, st.sampled_from([2, 3]))
@settings(max_examples=100, deadline=None)
def test_no_chances_whatever_are_below_theirs(before, after, constraint, n_groups):
    figures = rows(before, constraint, n_groups).measure(after)
    expected = np.where(before, 1 - after, after)
    assert figures["n_changes"] == pytest.approx(expected.sum())
    assert figures["accuracy"] == pytest.approx(np.where(LABEL, after, 1 - after).mean())
    assert not figures["change_rate"] < figures["limit"] - 1e-9


@given(decisions, decisions)
@settings(max_examples=40, deadline=None)
def test_the_limit_is_the_fewest_changes_at_exactly_this_fairness(before, after):
    figures = rows(before).measure(after)
    value = metrics.p_rule(None, after, sensitive_features=GROUP, pos_label=True)
    assert figures["fairness"] == pytest.approx(value, nan_ok=True)
    if value > 0:
        counts = np.bincount(GROUP)[None], np.bincount(GROUP, after).astype(int)[None]
        exact = get_constraint("demographic_parity").value_from_counts(*counts)
        fewest = bounds.minimal_changes(before, sensitive_features=GROUP, target=exact, pos_label=1)
        assert figures["limit"] == fewest.rate


def test_an_update_below_its_limit_stops_the_program(monkeypatch):
    before, after = np.arange(N) % 3 == 0, np.ones(N, dtype=bool)
    monkeypatch.setattr(_evaluation, "expected_moves", lambda *_: (0, 0))
    with pytest.raises(
        AssertionError, match="changes 0 decisions, but its fairness takes at least"
    ):
        rows(before).measure(after)


def test_a_lottery_below_its_limit_stops_the_program(monkeypatch):
    before, after = np.arange(N) % 3 == 0, np.full(N, 0.5)
    monkeypatch.setattr(_evaluation, "expected_moves", lambda *_: (0.0, 0.0))
    with pytest.raises(AssertionError, match="at least"):
        rows(before).measure(after)


def test_directions_follow_the_favourable_label():
    before, after = np.zeros(N, dtype=bool), np.ones(N, dtype=bool)
    assert rows(before).measure(after)["n_gains"] == N
    assert rows(before, gain_raises=False).measure(after)["n_losses"] == N


def test_rows_outside_the_constraint_count_as_changes_but_not_in_fairness():
    group = np.where(np.arange(N) < 6, -1, np.arange(N) % 2)
    before = np.arange(N) % 2 == 0
    after = before.copy()
    after[:6] = ~after[:6]
    figures = rows(before, n_groups=2, group=group).measure(after)
    assert figures["n_changes"] == 6
    assert figures["limit"] == 0


def test_certain_chances_are_decisions():
    assert as_decisions(np.array([0.0, 1.0])).dtype == bool
    assert as_decisions(np.array([0.0, 0.2])).dtype == float


def test_an_empty_cell_has_no_limit():
    label = np.where(GROUP == 0, True, LABEL)
    figures = rows(LABEL, "equalized_odds", label=label).measure(~LABEL)
    assert np.isnan(figures["limit"])
    assert np.isnan(figures["fairness"])


@pytest.mark.parametrize(
    ("constraint", "after"),
    [("minimum_rate", 0.5), ("demographic_parity", 0.0)],  # no exact limit, 0 of 0
)
def test_lotteries_whose_limit_is_not_known_have_none(constraint, after):
    group = np.where(np.arange(N) < 6, -1, GROUP)
    figures = rows(LABEL, constraint, group=group).measure(np.where(group < 0, 0.5, after))
    assert np.isnan(figures["limit"])
