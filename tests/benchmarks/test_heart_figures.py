"""The figures of the search compare at equal fairness, and count who changes."""

import importlib
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def module_of(monkeypatch):
    """Return a function that imports a file of the benchmarks as `make figures` does."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module


def test_changes_are_read_off_the_path_at_equal_fairness(module_of):
    for fairness, changes, is_beyond in [
        (0.5, 0.0, False),
        (0.7, 0.02, False),
        (0.85, 0.07, False),
        (0.95, 0.13, True),
        (0.4, 0.0, False),
    ]:
        path = np.array([0.5, 0.7, 0.8, 0.9]), np.array([0.0, 0.02, 0.04, 0.10])
        found = module_of("heart").at_fairness("demographic_parity", fairness, *path)
        assert found == (pytest.approx(changes), is_beyond)


def test_a_smaller_gap_is_fairer_and_a_step_back_is_left_out(module_of):
    path = np.array([0.4, 0.2, 0.25, 0.1]), np.array([0.0, 0.02, 0.09, 0.06])
    found = module_of("heart").at_fairness("equalized_odds", 0.15, *path)
    assert found == (pytest.approx(0.04), False)


def test_the_path_goes_beyond_the_asked_targets(module_of):
    path_of_targets = module_of("heart").path_of_targets
    assert path_of_targets("demographic_parity", (0.7, 0.8, 0.9)) == [0.6, 0.7, 0.8, 0.9, 0.95]
    assert path_of_targets("equalized_odds", (0.2, 0.1)) == [0.3, 0.2, 0.1, 0.05]


def test_a_table_is_judged_by_its_smallest_compared_cell(module_of):
    jobs = module_of("heart_jobs")
    n_labelled = jobs.smallest_cell("COMPAS", jobs.ODDS)
    assert jobs.MIN_CELL < n_labelled < jobs.smallest_cell("COMPAS", jobs.PARITY)


def test_stored_results_have_both_settings_of_every_job(module_of):
    stored = module_of("heart_before").stored_results()
    jobs = {tuple(job) for job in module_of("heart_jobs").jobs()}
    keys = ["table", "model", "constraint", "target"]
    for _, some in stored.groupby("setting"):
        assert set(some[keys].itertuples(index=False, name=None)) == jobs
    assert set(stored["setting"]) == {"fewest", "default"}
    assert stored[["fairness", "changes", "accuracy"]].apply(np.isfinite).all().all()


def test_a_bias_score_changes_more_people_with_more_strength(module_of):
    lpp, jobs = module_of("heart_lpp"), module_of("heart_jobs")
    fit, test = jobs.fit_and_test_rows("COMPAS", jobs.MODELS[0], 1000)
    rule, before = lpp.BiasScore(fit), test.score > 0.5
    changed = [int(np.sum(rule.predict(test, s) != before)) for s in (0.0, 0.2, 1.0)]
    assert changed[0] == 0 < changed[1] < changed[2]


def test_the_flexible_rule_of_the_fit_rows_is_counted_at_our_fairness(module_of, monkeypatch):
    blind, jobs = module_of("heart_blind"), module_of("heart_jobs")
    fit, test = jobs.fit_and_test_rows("COMPAS", jobs.MODELS[0], 1000)
    parts = fit.only(slice(600)), test.only(slice(600))
    monkeypatch.setattr(blind, "fit_and_test_rows", lambda *_: parts)
    found = blind._changes("COMPAS", jobs.MODELS[0], 1000)
    assert 0 < found["ours"] <= found["decided"]
    assert 0 < found["flexible"] < 1


def test_two_empty_sets_of_people_are_alike(module_of):
    nobody, somebody = np.zeros(3, bool), np.array([True, False, False])
    jaccard = module_of("heart_stable").jaccard
    assert (jaccard(nobody, nobody), jaccard(nobody, somebody)) == (1.0, 0.0)
