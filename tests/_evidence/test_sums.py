"""Sums of squares by fold, compared with products of dense matrices."""

import numpy as np
import pytest
from small_tasks import People, membership, written_out

from commod._evidence import points as sums_module
from commod._evidence.points import dense_rows, design_of, sums_of
from commod._evidence.task import N_FOLDS
from commod.updates._problem import evidence_task


def dense_sums(task, full, local, rows):
    """Return Gram matrix and cross products of the terms of some rows, in raw units."""
    terms = np.column_stack([np.ones(len(task)), full])[rows]
    steps = membership(task) * task.weight[:, None]
    steps = steps / np.where(task.totals > 0, task.totals, np.inf)
    steps = np.column_stack([steps, task.caps_steps])[rows]
    weighted = terms * local[rows, None]
    return weighted.T @ terms, weighted.T @ steps


@pytest.mark.parametrize(  # from one column on, blocks of rows are multiplied
    ("points", "groups", "block_rows", "many_columns"),
    [
        ("per unit", "known", 7, 1),
        ("per unit", "partly", 65_536, 24),
        ("per unit", "probable", 7, 24),
        ("per bin", "known", 65_536, 24),
        ("per bin", "partly", 7, 1),
        ("per bin", "probable", 65_536, 1),
        ("per bin", "known", 7, 24),
    ],
)
def test_sums_are_those_of_dense_matrices(points, groups, block_rows, many_columns, monkeypatch):
    monkeypatch.setattr(sums_module, "BLOCK_ROWS", block_rows)
    monkeypatch.setattr(sums_module, "DENSE_VALUES", 20 * block_rows)
    monkeypatch.setattr(sums_module, "MANY_COLUMNS", many_columns)
    monkeypatch.setattr(sums_module, "FEW_CODES", 1000)
    people = People(1, n_groups=3)
    caps = {"max_accuracy_loss": 0.1, "max_volume_change": 0.2}
    others = {"unknown_groups": "ignore"} if groups == "partly" else {}
    problem, target = people.problem(
        "equalized_odds", groups, weight=people.weight, points=points, **caps, **others
    )
    task = evidence_task(problem, target)
    design = design_of(task)
    full = written_out(problem.encoding, people.X)
    share = people.weight / people.weight.sum()
    spread = np.sqrt(share @ (full - share @ full) ** 2)
    assert np.array_equal(design.terms, np.flatnonzero(spread > 0))
    np.testing.assert_allclose(design.scale, spread[design.terms])
    full, scale = full[:, design.terms], np.append(1.0, design.scale)
    np.testing.assert_allclose(
        dense_rows(design, np.arange(5, 60)), np.column_stack([np.ones(55), full[5:60]]) / scale
    )
    local = np.random.default_rng(0).random(len(task)) * task.is_known
    found = sums_of(task, design, local)
    for fold in range(N_FOLDS):
        rows = task.fold == fold
        assert rows.any()
        gram, cross = dense_sums(task, full, local, rows)
        np.testing.assert_allclose(found.gram[fold], gram / np.outer(scale, scale), atol=1e-9)
        np.testing.assert_allclose(found.cross[fold], cross / scale[:, None], atol=1e-12)
        gram, cross = dense_sums(task, full, local, ~rows)
        left = found.without(fold)
        np.testing.assert_allclose(left[0], gram / np.outer(scale, scale), atol=1e-9)
        np.testing.assert_allclose(left[1], cross / scale[:, None], atol=1e-12)
    gram, cross = dense_sums(task, full, local, task.fold >= 0)
    np.testing.assert_allclose(found.without(None)[0], gram / np.outer(scale, scale), atol=1e-9)


def test_of_many_terms_those_that_tell_the_cells_apart_are_taken(monkeypatch):
    people = People(2, n=600)
    people.X["town"] = np.where(people.group == 1, "a", people.X["town"])
    task = people.task()
    names = np.array(people.problem()[0].encoding.term_names)
    monkeypatch.setattr(sums_module, "MAX_TERMS", 3)
    design = design_of(task)
    assert design.n_terms == 3
    assert "town = a" in names[design.terms]
    full = written_out(people.problem()[0].encoding, people.X)[:, design.terms]
    found = sums_of(task, design, np.ones(len(task))).without(None)[0]
    np.testing.assert_allclose(found[1:, 1:] * np.outer(design.scale, design.scale), full.T @ full)
