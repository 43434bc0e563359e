"""COMMOD with the paper's settings, where training starts, and what is said about concepts."""

import inspect
import pickle

import numpy as np
import pytest
from experiments.concept_metrics import concept_redundancy
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from commod import COMMOD
from commod.datasets import make_biased
from commod.exceptions import InputError
from commod.metrics import p_rule

N = 600


@pytest.fixture(scope="module")
def biased():
    return make_biased(2 * N, bias=1.5, random_state=0)


@pytest.fixture(scope="module")
def fit_rows(biased):
    rows = slice(N, None)
    return {
        "X": biased.data.iloc[rows],
        "y": biased.target[rows],
        "sensitive_features": biased.sensitive_features[rows],
    }


@pytest.fixture(scope="module")
def model(biased):
    return LogisticRegression().fit(biased.data.iloc[:N], biased.target[:N])


# -- the paper's settings -------------------------------------------------------------------------


def test_the_papers_settings_are_parameters_that_clone_keeps(model):
    update = COMMOD.as_in_the_paper(model, n_concepts=5, lambda_fair=3, random_state=0)
    for copy in (update, clone(update), pickle.loads(pickle.dumps(update))):
        assert type(copy) is COMMOD
        parameters = copy.get_params(deep=False)
        assert parameters["training"] == {
            "adaptive_fairness": False,
            "reads_score": False,
            "concepts_by_column": False,
            "init": "zero",
            "adversary_hidden": (64, 32, 16),
        }
        assert (parameters["architecture"], parameters["threshold"]) == ("concepts", 0.5)
        assert (parameters["n_concepts"], parameters["lambda_fair"]) == (5, 3)


def test_every_other_parameter_keeps_its_default(model):
    defaults = COMMOD(model).get_params(deep=False)
    paper = COMMOD.as_in_the_paper(model).get_params(deep=False)
    assert {name for name in defaults if defaults[name] != paper[name]} == {"training"}


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("adaptive_fairness", {"training": {"adaptive_fairness": True}}),
        ("init", {"training": {"init": "balanced"}}),
        ("threshold", {"threshold": 0.3}),
    ],
)
def test_what_is_not_the_papers_is_refused_with_the_way_out(model, name, wrong):
    with pytest.raises(InputError, match=f"{name}=.*not the paper's.*use COMMOD") as caught:
        COMMOD.as_in_the_paper(model, **wrong)
    assert caught.value.parameter in wrong


def test_the_papers_own_values_may_be_repeated(model):
    own = {"adversary_hidden": [64, 32, 16], "init": "zero", "ramp_epochs": 5}
    update = COMMOD.as_in_the_paper(model, training=own)
    assert update.training["adversary_hidden"] == (64, 32, 16)
    assert update.training["ramp_epochs"] == 5
    with pytest.raises(TypeError, match="lambda_fare"):
        COMMOD.as_in_the_paper(model, lambda_fare=1)


def test_it_makes_the_model_fairer_on_new_rows(model, fit_rows):
    update = COMMOD.as_in_the_paper(model, lambda_fair=8, lambda_ratio=0.01, random_state=0)
    # quick, and a size for which other tests have compiled the program
    update.training["adversary_hidden"] = (32,)
    update.set_params(epochs=80).fit(**fit_rows)
    new = make_biased(5000, bias=1.5, random_state=1)
    before, after = (
        p_rule(None, m.predict(new.data), sensitive_features=new.sensitive_features)
        for m in (model, update)
    )
    assert after > before + 0.1
    assert update.history_["change_rate"][0] == 0.0  # it starts at the base model


def test_the_docstring_says_what_the_paper_states_and_where_it_is_silent():
    text = inspect.getdoc(COMMOD.as_in_the_paper)
    stated, silent = text.split("The paper is silent")
    assert all(
        name in stated for name in ('"adaptive_fairness": False', '"concepts_by_column": False')
    )
    assert all(name in silent for name in ('"init": "zero"', "64, 32"))
    assert ">>> " in text


# -- the start ------------------------------------------------------------------------------------


@pytest.mark.parametrize("init", ["balanced", "zero"])
def test_no_training_changes_nothing_from_either_start(model, fit_rows, init):
    update = COMMOD(model, training={"init": init}, epochs=0, random_state=0).fit(**fit_rows)
    assert update.change_rate_ == 0
    np.testing.assert_array_equal(update.ratio(fit_rows["X"]), 1.0)


def test_an_unknown_start_is_refused(model, fit_rows):
    for init in ("random", None, 0):
        with pytest.raises(InputError, match=r"init=.*choose one of balanced, zero"):
            COMMOD(model, training={"init": init}).fit(**fit_rows)


def as_trained(model, fit_rows, seed=0, **changes):
    changes = {"lambda_fair": 4, "lambda_diversity": 0, **changes}
    trained = {"concepts_by_column": False}
    update = COMMOD(model, training=trained, random_state=seed, **changes)
    return update.fit(**fit_rows)


def cosine(weights):
    return abs(weights[0] @ weights[1])


@pytest.fixture(scope="module")
def trained(model, fit_rows):
    return as_trained(model, fit_rows)


def test_trained_concepts_differ_and_the_penalty_for_diversity_makes_them_less_alike(
    model, fit_rows, trained
):
    """A start of tiny concepts gave every concept the same steps: copies of each other."""
    weights = [update.concept_weights_ for update in (trained, as_trained(model, fit_rows, 1))]
    assert np.mean([concept_redundancy(w) for w in weights]) < 0.7
    assert np.mean([cosine(w) for w in weights]) < 0.95
    apart = as_trained(model, fit_rows, lambda_diversity=1.0).concept_weights_
    assert cosine(apart) < 0.3 * cosine(weights[0])


# -- what is shown --------------------------------------------------------------------------------


def test_the_partition_by_column_is_the_same_update_and_is_not_the_trained_concepts(
    model, fit_rows, trained
):
    shown = COMMOD(model, lambda_fair=4, lambda_diversity=0, random_state=0).fit(**fit_rows)
    np.testing.assert_allclose(trained.ratio(fit_rows["X"]), shown.ratio(fit_rows["X"]))
    assert concept_redundancy(shown.concept_weights_) == 0  # by construction
    assert concept_redundancy(trained.concept_weights_) > 0
