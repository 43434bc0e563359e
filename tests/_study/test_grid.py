"""Grids of COMMOD: what models trained together share, and that sharing changes nothing."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from commod import COMMOD
from commod._solvers import concepts
from commod.datasets import make_biased
from commod.updates import _trained
from commod.updates.commod import fit_grid

pytestmark = pytest.mark.usefixtures("quick_compilation")


@pytest.fixture(scope="module")
def data():
    data = make_biased(400, random_state=0)
    model = LogisticRegression().fit(data.data, data.target)
    return model, data.data, data.target, data.sensitive_features


def grid(data, *settings, **params):
    model, X, y, s = data
    training = {"warmup_epochs": 2, "adversary_steps": 1, "adversary_hidden": (8,)}
    quickest = {"epochs": 10, "training": training}
    update = COMMOD(model, **{**quickest, **params})
    return fit_grid(update, settings, X, y, sensitive_features=s)


def test_models_without_a_seed_share_one_of_their_own(data):
    settings = [{"random_state": 3}, {}, {}]
    seeded, one, other = grid(data, *settings, lambda_fair=4)
    X = data[1]
    assert np.array_equal(one.ratio(X), other.ratio(X))
    assert not np.array_equal(one.ratio(X), seeded.ratio(X))


def test_a_grid_stored_in_parallel_is_the_same_grid(data, monkeypatch):
    settings = [{"lambda_fair": float(fair)} for fair in range(6)]
    in_turn = grid(data, *settings, random_state=0)
    monkeypatch.setattr(_trained, "MANY_ROWS", 0)
    for one, other in zip(in_turn, grid(data, *settings, random_state=0), strict=True):
        assert one.status_ == other.status_
        assert np.array_equal(one.concept_weights_, other.concept_weights_)


def test_an_error_while_storing_in_parallel_is_raised(data, monkeypatch):
    def fail(*args):
        raise ZeroDivisionError

    monkeypatch.setattr(_trained, "MANY_ROWS", 0)
    monkeypatch.setattr(COMMOD, "_store", fail)
    with pytest.raises(ZeroDivisionError):
        grid(data, {}, {}, random_state=0)


def test_concepts_told_apart_on_a_sample_add_up_to_the_same_ratio(data, monkeypatch):
    [whole] = grid(data, {}, random_state=0, lambda_fair=4)
    monkeypatch.setattr(concepts, "MAX_CONCEPT_ROWS", 100)
    [sampled] = grid(data, {}, random_state=0, lambda_fair=4)
    np.testing.assert_allclose(sampled.ratio(data[1]), whole.ratio(data[1]), atol=1e-12)
    assert sampled.concept_weights_.any()
