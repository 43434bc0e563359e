"""The estimate of the fewest changes without the group: between chance and the exact limit."""

import numpy as np
import pandas as pd
import pytest

from commod.bounds import blind_changes, minimal_changes
from commod.exceptions import InputError


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
def test_a_column_that_is_the_group_leaves_only_the_exact_limit(constraints):
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


def test_columns_without_information_need_far_more_changes():
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


def test_the_order_of_the_rows_does_not_matter():
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


def test_what_cannot_be_estimated_is_refused():
    X, decided, group, _ = people(100)
    with pytest.raises(InputError, match="y_true is None"):
        blind_changes(
            X, decided, sensitive_features=group, target=0.1, constraints="equalized_odds"
        )
    with pytest.raises(InputError, match="blind limit"):
        blind_changes(X, decided, sensitive_features=group, constraints="predictive parity <= 0.1")
