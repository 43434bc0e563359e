"""RNF: pairs, losses and gradients by hand, the encoders, and the contract."""

from collections import namedtuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from commod import ScoreColumn
from commod.datasets import make_biased
from commod.exceptions import InputError
from commod.rivals import RNF, fit_strengths
from commod.rivals import _jax_training as solver
from commod.rivals._trained import hidden_units

pytestmark = pytest.mark.usefixtures("quick_compilation")

N = 480  # rows, columns and layers as in the tests of the other methods that train
QUICK = {"epochs": 20, "hidden": (16, 16), "random_state": 0, "progress": False}


@pytest.fixture(scope="module")
def rows():
    data = make_biased(N, bias=1.5, n_categories=3, random_state=0)
    X = data.data.assign(score=data.proba_target)
    X.loc[np.arange(N) % 5 == 0, "x3"] = np.nan
    return X, np.asarray(data.target), np.asarray(data.sensitive_features)


@pytest.fixture(scope="module")
def numbers(rows):
    return rows[0][["x0", "x1", "x2"]], rows[1], rows[2]


@pytest.fixture(scope="module")
def network(numbers):
    model = MLPClassifier((8, 4), max_iter=60, learning_rate_init=0.02, random_state=0)
    model.set_params(activation="tanh", n_iter_no_change=100, tol=0)
    with pytest.warns(UserWarning, match="Maximum iterations"):
        return make_pipeline(StandardScaler(), model).fit(*numbers[:2])


def fit(model, rows, sample_weight=None, **params):
    X, y, group = rows
    update = RNF(model, **{**QUICK, **params})
    return update.fit(X, y, sensitive_features=group, sample_weight=sample_weight)


HEAD_ROWS = ("units", "margin", "label", "group", "pair_weight", "decision", "temperature")
HeadRows = namedtuple("HeadRows", HEAD_ROWS)


def make_batch(units, label, group, weight=None, margin=None):
    n = len(label)
    return HeadRows(
        units=jnp.asarray(units),
        margin=jnp.asarray(np.linspace(-2, 2, n) if margin is None else margin),
        label=jnp.asarray(label, dtype=float),
        group=jnp.asarray(group),
        pair_weight=jnp.asarray(np.ones(n) if weight is None else weight),
        decision=jnp.zeros(n, bool),
        temperature=2.0,
    )


# -- pairs and losses -----------------------------------------------------------------------------

choose_partners = jax.jit(solver.choose_partners)  # one compilation, not one per operation
head_loss = jax.jit(jax.value_and_grad(solver.head_loss, has_aux=True), static_argnums=4)
row = st.tuples(st.integers(0, 1), st.integers(0, 2), st.sampled_from([0.0, 1.0, 3.0]))


@given(st.lists(row, min_size=12, max_size=12))
def test_partners_share_the_label_and_differ_in_the_group(batch):
    label, group, weight = (np.array(part) for part in zip(*batch, strict=True))
    pairs = choose_partners(make_batch(np.zeros((12, 1)), label, group, weight))
    partner, pair_weight = map(np.asarray, pairs)
    for i in range(12):
        allowed = (label == label[i]) & (group != group[i]) & (weight > 0)
        assert (pair_weight[i] > 0) == (allowed.any() and weight[i] > 0)
        if pair_weight[i] > 0:
            assert allowed[partner[i]]
            assert pair_weight[i] == weight[i] * weight[partner[i]]


def test_a_linear_head_is_smooth_where_it_ignores_the_difference():
    """z1 − z2 is (1, −2) in every pair: only w = (2, 1) is orthogonal to it."""
    for w, is_smooth in [((2.0, 1.0), True), ((1.0, 1.0), False)]:
        units = np.array([[0.0, 0.0], [1.0, -2.0], [3.0, 5.0], [2.0, 7.0]])
        batch = make_batch(units, [0, 0, 1, 1], [0, 1, 0, 1])
        spec = (2, 1)
        layers = jnp.array([*w, 0.3])
        (_, figures), _ = head_loss(layers, 1.0, batch, choose_partners(batch), spec)
        distillation, smoothness, paired, _ = figures
        assert (float(smoothness) == pytest.approx(0, abs=1e-6)) == is_smooth
        logits = units @ w + 0.3
        teacher = expit(np.linspace(-2, 2, 4) / 2)
        neutral = expit([logits[:2].mean(), logits[2:].mean()])
        target = np.array([teacher[:2].mean(), teacher[2:].mean()])
        assert float(distillation) == pytest.approx(((neutral - target) ** 2).mean(), rel=1e-5)
        assert float(paired) == 1


def test_the_gradient_is_that_of_finite_differences():
    rng = np.random.default_rng(1)
    spec = (3, 4, 1)
    with jax.enable_x64(True):
        batch = make_batch(
            rng.normal(size=(10, 3)), rng.integers(0, 2, 10), rng.integers(0, 2, 10),
            rng.random(10), rng.normal(size=10),
        )  # fmt: skip
        pairs = choose_partners(batch)
        at = solver.initial_network(0, spec).values.astype(np.float64) + 0.05

        def evaluate(layers):
            (loss, _), gradient = head_loss(jnp.asarray(layers), 0.7, batch, pairs, spec)
            return float(loss), np.asarray(gradient)

        steps = 1e-6 * np.eye(len(at))
        slopes = [(evaluate(at + e)[0] - evaluate(at - e)[0]) / 2e-6 for e in steps]
        np.testing.assert_allclose(evaluate(at)[1], slopes, rtol=1e-4, atol=1e-7)


def test_the_generalised_cross_entropy_weights_rows_by_their_probability():
    logit, label, q = (
        np.array([-3.0, 0.5, 2.0] * 4),
        np.tile([0.0, 1.0], 6),
        np.linspace(0.05, 1, 12),
    )
    p = expit(np.where(label, logit, -logit))

    @jax.jit
    def evaluate(logit, power):
        total = jax.grad(lambda x: solver.generalised_cross_entropy(x, label, power).sum())
        return solver.generalised_cross_entropy(logit, label, power), total(logit)

    (loss, slope), (usual, usual_slope) = (evaluate(logit, power) for power in (q, 0 * q))
    np.testing.assert_allclose(loss, (1 - p**q) / q, rtol=1e-4)
    np.testing.assert_allclose(usual, -np.log(p), rtol=1e-4)
    np.testing.assert_allclose(slope, p**q * usual_slope, rtol=1e-4)


# -- encoders -------------------------------------------------------------------------------------


def test_the_head_of_a_network_replaces_its_later_layers(network, numbers):
    """With the network's own later layers as the head, nothing changes."""
    X = numbers[0]
    update = fit(network, numbers, strength=0.05)
    assert [matrix.shape for matrix, _ in update.head_] == [(8, 4), (4, 1)]
    layers = network[-1]
    units = hidden_units(network, X)
    z = np.tanh(units @ layers.coefs_[1] + layers.intercepts_[1])
    logits = (z @ layers.coefs_[2] + layers.intercepts_[2])[:, 0]
    np.testing.assert_allclose(expit(logits), network.predict_proba(X)[:, 1])
    (first, a), (last, b) = update.head_
    margin = (np.maximum(units @ first + a, 0) @ last + b)[:, 0]
    np.testing.assert_allclose(update.predict_proba(X)[:, 1], expit(margin), rtol=1e-9)


def test_a_logistic_regression_gets_a_linear_head_on_its_inputs(numbers):
    X, y, _ = numbers
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    update = fit(model, numbers, strength=0.01, epochs=60, learning_rate=0.02)
    [(matrix, _)] = update.head_
    cosine = np.corrcoef(model.decision_function(X), model[0].transform(X) @ matrix[:, 0])
    assert cosine[0, 1] > 0.95, "a small strength leaves most of the base model"
    assert update.encoder_ is None


@pytest.mark.filterwarnings("ignore:The base model's own predict differs")
def test_another_threshold_with_scores_shifted_alike_changes_nothing(numbers):
    X, y, _ = numbers
    model = LogisticRegression().fit(X, y)
    shifted = LogisticRegression().fit(X, y)
    shifted.intercept_ = model.intercept_ + np.log(0.2 / 0.8)
    usual = fit(model, numbers)
    other = fit(shifted, numbers, threshold=0.2)
    assert (usual.predict(X) == other.predict(X)).mean() > 0.99


# -- what strength buys ---------------------------------------------------------------------------


def test_strength_closes_the_gap_of_scores_and_zero_keeps_the_base_model(rows):
    X, y, group = rows
    update = RNF(ScoreColumn("score"), constraints="equalized_odds", **{**QUICK, "epochs": 60})
    zero, weak, strong = fit_strengths(update, [0, 0.02, 0.12], X, y, sensitive_features=group)
    assert zero.head_ is None
    assert zero.change_rate_ == 0
    assert (zero.predict_proba(X)[:, 1] == X["score"]).all()
    assert strong.history_["smoothness"][-1] < weak.history_["smoothness"][-1]
    assert strong.fairness_ < weak.fairness_
    assert weak.history_["change_rate"][-1] == pytest.approx(weak.change_rate_, abs=0.02)


def test_proxy_groups_need_no_groups(rows):
    X, y, group = rows
    shuffled = np.random.default_rng(0).permutation(group)
    usual, other = (fit(ScoreColumn("score"), (X, y, g), groups="proxy") for g in (group, shuffled))
    assert (usual.predict_proba(X) == other.predict_proba(X)).all()
    true = fit(ScoreColumn("score"), rows)
    assert (true.predict_proba(X) != usual.predict_proba(X)).any()


def test_rows_without_weight_do_not_matter(rows):
    X, y, group = rows
    half = np.arange(N) < N // 2
    garbled = X.assign(x0=np.where(half, X["x0"], 99.0))
    usual, other = (
        fit(ScoreColumn("score"), (table, labels, group), sample_weight=half * 1.0)
        for table, labels in ((X, y), (garbled, np.where(half, y, 1 - y)))
    )
    assert (usual.predict_proba(X) == other.predict_proba(X)).all()


def test_without_pairs_the_base_model_stays(rows):
    X, y, _ = rows
    update = fit(ScoreColumn("score"), (X, y, y), constraints="demographic_parity")
    assert update.head_ is None
    assert update.change_rate_ == 0
    assert "No two rows of different groups have the same true label" in update.status_


def test_a_large_table_has_fewer_epochs(numbers):
    model = LogisticRegression().fit(*numbers[:2])
    assert fit(model, numbers, max_steps=10).n_iter_ == 3, "3 epochs of 4 batches are 10 steps"


@pytest.mark.filterwarnings("ignore::commod.exceptions.CommodWarning")
def test_a_hostile_table_gives_no_numerical_warning():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            "x0": rng.choice([0.0, 1e-9, 1e9, np.nan], N),
            "town": rng.choice(["a", "b"], N),
            "score": rng.choice([0.0, 0.5, 1.0, rng.random()], N),
        }
    )
    group, y, weight = rng.integers(0, 3, N), rng.integers(0, 2, N), rng.choice([0, 1, 1e6], N)
    update = fit(ScoreColumn("score"), (X, y, group), weight, groups="proxy", strength=10.0)
    assert np.isfinite(update.predict_proba(X)).all()


# -- refusals -------------------------------------------------------------------------------------


def test_what_it_does_not_know_is_refused(numbers):
    for params, words in [
        ({"constraints": "true_positive_rate_parity"}, "knows 'demographic_parity' and 'equal"),
        ({"groups": "none"}, "groups='none' is not known"),
        ({"hidden": ()}, r"hidden=\(\) leaves no layer for the encoder"),
        ({"locked_features": ["x0"]}, "LogisticRegression. Pass ScoreColumn"),
        ({"temperature": 0.5}, "temperature=0.5"),
        ({"proxy_share": 1.0}, "proxy_share == 1.0, must be < 1"),
    ]:
        with pytest.raises(InputError, match=words):
            fit(LogisticRegression().fit(*numbers[:2]), numbers, **params)
