"""The figures of targets on new rows measure what they say."""

import importlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from commod import metrics
from commod.datasets import make_biased

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def module_of(monkeypatch):
    """Return a function that imports a file of the benchmarks as `make figures` does."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, range(100)),
        ({"SEEDS": "0..1"}, range(2)),
        ({"SEEDS": "1000.."}, range(1000, 1100)),
        ({"SEEDS": "1000..1019"}, range(1000, 1020)),
        ({"SEEDS": "1000..", "SPLITS": "3"}, range(1000, 1003)),
        ({"SEEDS": "0..500"}, range(100)),
    ],
)
def test_seeds_are_those_of_the_environment_and_at_most_those_of_the_figure(
    module_of, monkeypatch, environment, expected
):
    for name in ("SEEDS", "SPLITS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert module_of("parallel").seeds(100) == expected


def test_slow_results_are_computed_once(module_of, monkeypatch, tmp_path):
    parallel = module_of("parallel")
    monkeypatch.setattr(parallel, "RESULTS", tmp_path)
    first = parallel.kept("a method", lambda: [{"changes": np.float64(0.5)}])
    assert first == parallel.kept("a method", lambda: pytest.fail("computed again"))
    assert [json.loads(path.read_text()) for path in tmp_path.iterdir()] == [[{"changes": 0.5}]]


@pytest.mark.parametrize("left_out", [set(), {"g0"}])
def test_fresh_samples_have_the_mean_fairness_of_drawn_rows(module_of, left_out):
    known = module_of("known_populations")
    rows = make_biased(20_000, group_shares=(0.5, 0.3, 0.2), random_state=0)
    y, s = rows.target.to_numpy(), rows.sensitive_features.to_numpy()
    decisions = (rows.data["x0"] > 0).to_numpy().astype(int)
    shares = known._shares(rows, decisions, left_out)
    random = np.random.default_rng(0)
    samples = [random.integers(0, len(y), 120) for _ in range(150)]
    samples = [drawn[~np.isin(s[drawn], list(left_out))] for drawn in samples]
    for constraint in known.CONSTRAINTS:
        values = [
            metrics.fairness_value(constraint, y[i], decisions[i], sensitive_features=s[i])
            for i in samples
        ]
        error = np.std(values) / np.sqrt(len(values))
        fresh = known._fresh(constraint, shares, 120, seed=0)
        assert abs(fresh - np.mean(values)) < 4 * error + 0.002


def test_changes_are_compared_where_the_mean_p_rule_is_equal(module_of):
    expected = module_of("expected")
    runs = pd.DataFrame(
        {
            "target": [0.7, 0.8, 0.7, 0.8],
            "p_rule": [0.60, 0.70, 0.70, 0.80],
            "changes": [0.00, 0.02, 0.02, 0.04],
        }
    )
    assert expected._changes_at(0.70, runs) == pytest.approx(0.02)
    assert np.isnan(expected._changes_at(0.80, runs))  # no mean is that high
