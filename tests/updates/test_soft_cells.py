"""Probabilities of groups and labels that never depend on the row's own group and label."""

from dataclasses import replace

import numpy as np
import pytest
from commod.updates._cross_fit import without_fold
from commod.updates._soft_cells import (
    N_FOLDS,
    CellModels,
    cell_models,
    draw_folds,
    with_soft_cells,
)
from sklearn.linear_model import LogisticRegression

from commod import ControlledDebiaser, ScoreColumn
from commod.datasets import make_biased
from commod.updates import _cross_fit, _soft_cells


def problem_of(n=600, seed=0, constraints="demographic_parity", **options):
    data = make_biased(n, random_state=seed, **options)
    model = LogisticRegression().fit(data.data, data.target)
    update = ControlledDebiaser(model, constraints=constraints)
    groups = {"sensitive_features": data.sensitive_features, "sample_weight": None}
    return update._prepare(data.data, data.target, **groups), data


def models_of(problem):
    return cell_models(problem, 20, ())


@pytest.fixture(scope="module")
def odds():
    return problem_of(constraints="equalized_odds")[0]


def test_probabilities_are_close_to_the_known_ones():
    problem, data = problem_of(4000, bias=1.5)
    found = models_of(problem).probabilities(np.arange(4000), None)
    assert found.sum(axis=1) == pytest.approx(1)
    truth = np.asarray(data.proba_sensitive)
    assert np.abs(found - truth).mean() < 0.05  # they vary by about 0.2
    assert np.corrcoef(found[:, 1], truth[:, 1])[0, 1] > 0.95


def test_a_row_has_no_say_in_its_own_probabilities(odds):
    models = models_of(odds)
    row = 7
    cell = models.cell.copy()
    cell[row] = (cell[row] + 1) % 4
    changed = replace(models, cell=cell, _fitted={})
    own = np.array([row])
    assert changed.probabilities(own, None) == pytest.approx(models.probabilities(own, None))


def test_probabilities_without_a_fold_do_not_depend_on_its_people(odds):
    models = models_of(odds)
    in_fold = models.fold == 2
    cell = np.where(in_fold, (models.cell + 1) % 4, models.cell)
    changed = replace(models, cell=cell, _fitted={})
    others = np.flatnonzero(~in_fold)
    found = changed.probabilities(others, without=2)
    assert found == pytest.approx(models.probabilities(others, without=2))
    assert not np.allclose(changed.probabilities(others, None), models.probabilities(others, None))


def test_the_problem_without_a_fold_knows_nothing_of_it(odds):
    soft = with_soft_cells(odds, models_of(odds))
    fold = draw_folds(odds)
    inner = without_fold(soft, fold, 1)
    assert len(inner.rows) == (fold != 1).sum()
    assert inner.soft_cells.without == 1
    kept = np.flatnonzero(fold != 1)
    assert inner.soft_cells.of(np.arange(5)) == pytest.approx(
        soft.soft_cells.models.probabilities(kept[:5], without=1)
    )


def test_folds_have_equal_shares_of_each_cell_and_decision(odds):
    fold = draw_folds(odds)
    strata = 2 * (odds.cells.index + 1) + odds.rows.base.decisions
    for stratum in np.unique(strata):
        counts = np.bincount(fold[strata == stratum], minlength=N_FOLDS)
        assert np.ptp(counts) <= 1


def test_a_cell_that_a_fold_holds_alone_gets_no_probability():
    problem, _ = problem_of(200, constraints="equalized_odds")
    models = models_of(problem)
    fold = np.where(models.cell == 0, 0, models.fold % 4 + 1)
    alone = CellModels(**{**vars(models), "fold": fold, "_fitted": {}})
    rows = np.flatnonzero(fold == 0)
    found = alone.probabilities(rows, None)
    assert (found[:, 0] == 0).all()
    assert found.sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("constraints", ["demographic_parity", "equalized_odds"])
def test_blocks_of_rows_have_the_probabilities_of_all_rows(monkeypatch, constraints):
    problem, _ = problem_of(constraints=constraints)
    rows = np.random.default_rng(0).permutation(600)[:500]
    whole = models_of(problem).probabilities(rows, 1)
    monkeypatch.setattr(_soft_cells, "BLOCK_ROWS", 64)
    assert models_of(problem).probabilities(rows, 1) == pytest.approx(whole, abs=1e-9)


def test_a_large_table_learns_its_bins_from_a_part_and_has_similar_probabilities(monkeypatch):
    problem, _ = problem_of(6000, bias=1.5)
    whole = models_of(problem)
    monkeypatch.setattr(_soft_cells, "MAX_ENCODING_ROWS", 3000)
    part = models_of(problem)
    assert whole.terms.table is not None
    assert part.terms.table is None
    rows = np.arange(0, 6000, 7)
    own = part.terms.encoding.encode(problem.rows.columns)
    assert (part.terms.codes(rows) == own.codes[rows]).all()
    gap = np.abs(part.probabilities(rows, None) - whole.probabilities(rows, None))
    assert gap.mean() < 0.01  # they vary by about 0.2


def test_folds_of_soft_cells_are_those_that_would_be_drawn(odds):
    soft = with_soft_cells(odds, models_of(odds))
    assert (draw_folds(soft) == draw_folds(odds)).all()
    inner = without_fold(soft, draw_folds(odds), 1)
    assert (draw_folds(inner) == draw_folds(inner.with_cells(None))).all()


def test_a_search_without_a_fold_of_a_large_table_takes_a_part_of_its_rows(monkeypatch, odds):
    fold = draw_folds(odds)
    monkeypatch.setattr(_cross_fit, "MAX_ROWS_WITHOUT_FOLD", 100)
    monkeypatch.setattr(_cross_fit, "MIN_ROWS_OF_A_CELL", 1)
    inner = without_fold(with_soft_cells(odds, models_of(odds)), fold, 1)
    assert len(inner.rows) == 100
    assert (np.diff(inner.soft_cells.rows) > 0).all()
    assert (fold[inner.soft_cells.rows] != 1).all()


def test_a_part_of_the_rows_keeps_people_of_every_cell(monkeypatch, odds):
    soft, fold = with_soft_cells(odds, models_of(odds)), draw_folds(odds)
    sizes = np.bincount(odds.cells.index[fold != 1])
    monkeypatch.setattr(_cross_fit, "MAX_ROWS_WITHOUT_FOLD", 10)
    monkeypatch.setattr(_cross_fit, "MIN_ROWS_OF_A_CELL", sizes.min() // 2)
    kept = np.bincount(without_fold(soft, fold, 1).cells.index, minlength=len(sizes))
    assert kept.min() >= sizes.min() // 4
    monkeypatch.setattr(_cross_fit, "MIN_ROWS_OF_A_CELL", 10**6)  # then all rows are kept
    assert len(without_fold(soft, fold, 1).rows) == sizes.sum()


def test_a_group_that_a_part_misses_stays_in_the_constraint(monkeypatch, odds):
    monkeypatch.setattr(_cross_fit, "MAX_ROWS_WITHOUT_FOLD", 1)
    monkeypatch.setattr(_cross_fit, "MIN_ROWS_OF_A_CELL", 0)
    inner = without_fold(with_soft_cells(odds, models_of(odds)), draw_folds(odds), 1)
    assert len(np.unique(inner.rows.groups.codes)) < odds.cells.shape[1]
    assert inner.cells.shape == odds.cells.shape


def test_a_type_that_a_part_of_the_rows_misses_is_not_refused(monkeypatch):
    monkeypatch.setattr(_soft_cells, "MAX_ENCODING_ROWS", 300)
    data = make_biased(600, random_state=0)
    mixed = np.where(data.data.iloc[:, 0] > 0, "up", "down").astype(object)
    part = _soft_cells.random_part(np.arange(600), 300)
    mixed[np.setdiff1d(np.arange(600), part)[0]] = 7
    X = data.data.assign(score=data.proba_target, mixed=mixed)
    update = ControlledDebiaser(ScoreColumn("score"))
    update.fit(X, data.target, sensitive_features=data.sensitive_features)
