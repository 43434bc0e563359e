"""The estimate of the fewest changes without the group: between chance and the exact limit."""

import numpy as np
import pandas as pd
import pytest

from commod.bounds import blind_changes, minimal_changes
from commod.exceptions import InputError


@pytest.fixture
def quick_estimate(monkeypatch):
    """Draw one sample and few trees instead of many: for tests that look at no interval."""
    monkeypatch.setattr("commod.bounds._blind.N_BOOTSTRAPS", 1)
    monkeypatch.setattr("commod.bounds._blind.MODEL", {"max_leaf_nodes": 6, "max_iter": 20})


def people(n=600, seed=0):
    """Return columns, decisions, groups and labels; `town` tells the group, `noise` does not."""
    random = np.random.RandomState(seed)
    group = random.rand(n) < 0.4
    X = pd.DataFrame(
        {
            "town": np.where(group, "Oslo", "Rome"),
            "hint": group * 1.0 + random.normal(scale=0.7, size=n),
            "noise": random.normal(size=n),
        }
    )
    decided = (random.rand(n) < np.where(group, 0.2, 0.5)).astype(int)
    label = (random.rand(n) < 0.3 + 0.4 * decided).astype(int)
    return X, decided, np.where(group, "a", "b"), label


@pytest.mark.parametrize("constraints", ["demographic_parity", "equalized_odds"])
def test_a_column_that_is_the_group_leaves_only_the_exact_limit(constraints, quick_estimate):
    X, decided, group, label = people()
    target = 0.8 if constraints == "demographic_parity" else 0.3
    asked = {"sensitive_features": group, "target": target, "constraints": constraints}
    exact = minimal_changes(decided, y_true=label, **asked).n_changes
    known, hinted = (
        blind_changes(X[columns], decided, y_true=label, **asked).n_changes
        for columns in (["town", "noise"], ["hint", "noise"])
    )
    assert exact <= known <= hinted
    if constraints == "demographic_parity":
        assert known <= 1.1 * exact + 1
    assert hinted > exact


def test_columns_without_information_need_far_more_changes(quick_estimate):
    X, decided, group, _ = people()
    asked = {"sensitive_features": group, "target": 0.8}
    informed = blind_changes(X[["hint"]], decided, **asked)
    blind = blind_changes(X[["noise"]], decided, **asked)
    assert blind.n_changes > 1.5 * informed.n_changes


def test_the_interval_contains_the_estimate_and_nobody_moves_the_other_way():
    X, decided, group, _ = people()
    asked = {"sensitive_features": group, "target": 0.8, "direction": "gains_only"}
    found = blind_changes(X[["hint"]], decided, **asked)
    low, high = found.interval
    assert low <= found.n_changes <= high
    assert found.rate == found.n_changes / len(decided)
    assert found.n_changes >= minimal_changes(decided, **asked).n_changes


def test_the_order_of_the_rows_does_not_matter(quick_estimate):
    X, decided, group, _ = people()
    order = np.random.RandomState(1).permutation(len(X))
    first = blind_changes(X[["hint", "town"]], decided, sensitive_features=group, target=0.9)
    second = blind_changes(
        X[["hint", "town"]].iloc[order].reset_index(drop=True),
        decided[order],
        sensitive_features=group[order],
        target=0.9,
    )
    assert abs(first.n_changes - second.n_changes) <= 2  # trees break ties by the order of rows


@pytest.mark.parametrize(
    ("constraints", "target", "n_groups"),
    [("demographic_parity", 0.85, 2), ("true_positive_rate_parity", 0.08, 3)],
)
def test_more_freedom_never_needs_more_changes(
    constraints, target, n_groups, monkeypatch, quick_estimate
):
    monkeypatch.setattr("commod.bounds._blind.MODEL", {"max_leaf_nodes": 6, "max_iter": 10})
    random = np.random.RandomState(1)
    group = random.randint(0, n_groups, 400)
    X = pd.DataFrame({"hint": group + random.normal(size=400), "noise": random.rand(400)})
    decided = (random.rand(400) < 0.25 + 0.3 * group / (n_groups - 1)).astype(int)
    label = (random.rand(400) < 0.3 + 0.4 * decided).astype(int)
    asked = {"sensitive_features": group, "target": target, "constraints": constraints}
    found = {
        direction: blind_changes(X, decided, y_true=label, direction=direction, **asked).n_changes
        for direction in ("any", "gains_only", "losses_only")
    }
    assert found["any"] == min(found.values())
    exact = minimal_changes(decided, y_true=label, **asked).n_changes
    assert exact <= found["any"]


def test_the_rule_knows_the_decision_that_it_changes(quick_estimate):
    random = np.random.RandomState(0)
    decided, flag = (random.rand(2, 800) < 0.5).astype(int)
    group = flag ^ decided ^ (random.rand(800) < 0.1)  # the flag tells it only with the decision
    decided = np.where((group == 0) & (random.rand(800) < 0.4), 0, decided)
    X = pd.DataFrame({"flag": flag})
    asked = {"sensitive_features": group, "target": 0.9}
    assert blind_changes(X, decided, **asked).rate < 0.25


def test_hostile_columns_are_read(quick_estimate):
    X, decided, group, _ = people()
    asked = {"sensitive_features": group, "target": 0.8}
    one = np.arange(len(X)) == 3
    hostile = X.assign(
        empty=np.nan,
        constant=1,
        once=np.where(one, 1.0, np.nan),
        once_text=np.where(one, "a", None),
        number=[f"id {i}" for i in range(len(X))],
        hint=X["hint"].mask(X["noise"] > 1),
    )
    found = blind_changes(hostile, decided, **asked)
    assert np.isfinite(found.n_changes)
    nothing = blind_changes(hostile[["empty"]], decided, **asked)  # the decision alone is left
    assert nothing.n_changes > found.n_changes


def test_nobody_who_may_change_is_no_error(quick_estimate):
    X, decided, group, _ = people(100)
    asked = {"sensitive_features": group, "target": 0.8, "direction": "gains_only"}
    assert blind_changes(X, np.ones_like(decided), **asked).n_changes == 0
    losses = {**asked, "direction": "losses_only"}
    assert blind_changes(X, np.zeros_like(decided), **losses).n_changes == np.inf


def test_what_cannot_be_estimated_is_refused():
    X, decided, group, _ = people(100)
    with pytest.raises(InputError, match="y_true is None"):
        blind_changes(
            X, decided, sensitive_features=group, target=0.1, constraints="equalized_odds"
        )
    with pytest.raises(InputError, match="blind limit"):
        blind_changes(X, decided, sensitive_features=group, constraints="predictive parity <= 0.1")
    with pytest.raises(InputError, match="X has 50 rows, but 100 were expected"):
        blind_changes(X[:50].to_numpy(), decided, sensitive_features=group, target=0.8)
    with pytest.raises(InputError, match="missing values"):
        unknown = np.where(np.arange(100) < 9, None, group)
        blind_changes(X, decided, sensitive_features=unknown, target=0.8)
    few = np.where(np.arange(100) < 3, "c", group)
    with pytest.raises(InputError, match=r"smallest group that is compared has 3 people.*at least"):
        blind_changes(X, decided, sensitive_features=few, target=0.8)
