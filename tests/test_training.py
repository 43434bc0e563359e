"""The loop that all trained methods share, on a method so small that it can be done by hand."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from commod._encoding import learn_encoding
from commod._inputs import Column
from commod._solvers import networks, training
from commod._solvers.problem import Pacing, TermArrays, solver_position, standardise
from commod._solvers.training import Method, Pace, padded, padded_size, train


class Rows(NamedTuple):
    value: jax.Array
    weight: jax.Array
    is_row: jax.Array


class State(NamedTuple):
    mean: jax.Array
    key: jax.Array


def rows_of(values):
    values = np.asarray(values, dtype=np.float32)
    return Rows(padded(values), padded(np.ones_like(values)), padded(np.ones(len(values), bool)))


def toward_the_mean(state, penalties, batch, settings, clock, shape):
    """Move towards the batch's mean, as fast as `penalties` says; only after the warm-up."""
    mean = training.weighted_mean(batch.value, batch.weight)
    moved = state.mean + penalties * (mean - state.mean)
    state = state._replace(mean=jnp.where(clock.age >= 0, moved, state.mean))
    return state, jnp.stack([batch.weight.sum(), clock.decay])


METHOD = Method(toward_the_mean, None, ("size", "decay"), ("value",), ("weight",))


def run(values, speeds=(1.0,), progress=None, **pacing):
    states = State(
        jnp.zeros(len(speeds)), jax.vmap(jax.random.key)(jnp.arange(len(speeds), dtype=jnp.uint32))
    )
    pace = Pacing(
        **{"epochs": 1, "batch_size": 1000, "warmup_epochs": 0, "learning_rate": 0.1, **pacing}
    )
    return train(METHOD, states, jnp.asarray(speeds), rows_of(values), (), pace, progress)


def test_a_whole_batch_ends_at_the_mean_and_padding_does_not_count():
    found = run(np.arange(100.0))
    assert float(found.states.mean[0]) == pytest.approx(49.5)
    assert found.history["size"].tolist() == [[100.0]]


def test_each_model_has_its_own_penalty():
    found = run(np.arange(100.0), speeds=(0.0, 0.5, 1.0))
    assert found.states.mean.tolist() == pytest.approx([0, 24.75, 49.5])


def test_the_rates_fall_along_a_cosine_once_the_warm_up_is_over():
    found = run(np.arange(10.0), epochs=4, warmup_epochs=3)
    assert found.epochs_done == 4
    assert found.history["decay"][0] == pytest.approx(0.5 + 0.5 * np.cos(np.pi * np.arange(4) / 4))


def test_nothing_is_learned_in_the_warm_up():
    reports = []

    def stop(done, total):
        reports.append((done, total))
        if done == 10:
            raise KeyboardInterrupt

    found = run(np.arange(10.0), epochs=5, warmup_epochs=12, progress=stop)
    assert found.interrupted
    assert found.begun
    assert found.epochs_done == 0
    assert found.states.mean.tolist() == [0.0]
    assert reports == [(10, 17)]
    assert found.history["size"].shape == (1, 0)


def test_no_epochs_leave_the_start_as_it_is():
    found = run(np.arange(10.0), epochs=0, warmup_epochs=3)
    assert not found.begun
    assert not found.interrupted
    assert found.states.mean.tolist() == [0.0]


@pytest.mark.parametrize(("n", "size"), [(96, 40), (97, 40), (65, 64), (5, 2)])
def test_an_epoch_sees_every_row_once_in_batches_that_differ_by_one(n, size):
    rows = rows_of(np.arange(n) + 1)
    pace = training._pace(n, size, Pacing(1, size, 0, 0.1))
    order = jnp.append(jnp.arange(len(rows.value)), jnp.zeros(size, dtype=jnp.int32))
    seen = []
    for i in range(int(pace.n_batches)):
        batch = training._batch(rows, order, i, pace, METHOD, size)
        seen.append(np.asarray(batch.value)[np.asarray(batch.weight) > 0])
    lengths = [len(part) for part in seen]
    assert max(lengths) - min(lengths) <= 1
    assert np.concatenate(seen).tolist() == (np.arange(n) + 1).tolist()


def test_every_epoch_has_an_order_of_its_own():
    """With batches of one row and full speed a model ends at the last row it saw."""
    ends = {float(run(np.arange(64.0), batch_size=1, epochs=e).states.mean[0]) for e in range(1, 9)}
    assert len(ends) > 4


def test_another_number_of_epochs_or_rows_needs_no_new_compilation():
    run(np.arange(100.0), epochs=3, batch_size=16)
    before = training._advance._cache_size()
    run(np.arange(101.0), epochs=25, batch_size=16, warmup_epochs=2)
    assert training._advance._cache_size() == before


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, 100_000])
def test_padding_wastes_at_most_a_quarter(n):
    assert n <= padded_size(n) <= max(64, 1.25 * n)


def test_adam_descends_as_written_in_its_paper():
    parameters, optimizer = jnp.array([1.0, -2.0]), training.adam.init(jnp.zeros(2))
    ours = training.descend_often(lambda p: 2 * p, parameters, optimizer, jnp.float32(0.1), 3)[0]
    x, m, v = np.array([1.0, -2.0]), np.zeros(2), np.zeros(2)
    for t in (1, 2, 3):
        g = 2 * x
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        x = x - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    assert np.asarray(ours) == pytest.approx(x, rel=1e-5)


# -- terms and the functions that read them ------------------------------------------------------


@pytest.fixture(scope="module")
def terms():
    """Numbers with missing values and two columns of categories, one of them rare values."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(3, 2, size=(60, 2))
    numbers[rng.random(60) < 0.4, 1] = np.nan
    columns = [
        Column("town", "category", rng.integers(-1, 3, 60), ("a", "b", "c")),
        Column("age", "numeric", numbers[:, 0]),
        Column("income", "numeric", numbers[:, 1]),
        Column("job", "category", rng.integers(0, 2, 60), ("x", "y")),
    ]
    weight = rng.uniform(0.5, 2, 60)
    return learn_encoding(columns, weight, min_category_size=10).encode(columns), weight


def dense(terms):
    """The terms as a matrix that the library never builds, in our order."""
    matrix = np.zeros((len(terms), terms.n_terms + 1))
    matrix[:, terms.numeric_terms] = terms.numeric
    for codes in terms.codes.T:
        matrix[np.arange(len(terms)), codes] += 1
    return matrix[:, :-1]


class Batch(NamedTuple):
    numeric: jax.Array
    codes: jax.Array
    code_mean: jax.Array
    code_scale: jax.Array


@pytest.mark.parametrize("units", [(), (3,)])
def test_a_sum_over_terms_equals_a_product_with_the_standardised_matrix(terms, units):
    table, weight = terms
    matrix = dense(table)
    mean = np.average(matrix, axis=0, weights=weight)
    z = (matrix - mean) / np.sqrt(np.average((matrix - mean) ** 2, axis=0, weights=weight))
    arrays = standardise(table, weight)
    weights = np.random.default_rng(1).normal(size=(table.n_terms, *units))
    found = networks.on_terms(
        jnp.asarray(weights, jnp.float32), jnp.float32(0.5), Batch(**vars(arrays))
    )
    ours = weights[solver_position(table)]
    np.testing.assert_allclose(found, 0.5 + z @ ours, atol=1e-5)
    assert arrays.n_terms == table.n_terms == 8


def test_a_column_of_numbers_alone_needs_no_codes():
    arrays = TermArrays(
        np.ones((2, 1), np.float32), np.zeros((2, 0), np.int32), np.zeros(0), np.zeros(0)
    )
    found = networks.on_terms(jnp.array([2.0]), jnp.float32(1), Batch(**vars(arrays)))
    assert found.tolist() == [3.0, 3.0]


def test_layers_run_as_written_out(terms):
    arrays = standardise(*terms)
    sizes = (arrays.n_terms, 4, 3, 1)
    flat = networks.start_layers(jax.random.key(0), sizes)
    assert len(flat) == sum(networks.layer_lengths(sizes))
    (A, a), (B, b), (C, c) = networks.layers(np.asarray(flat), sizes)
    batch = Batch(**vars(arrays))
    found = networks.run_layers(flat, sizes, lambda m, bias: networks.on_terms(m, bias, batch))
    first = np.maximum(np.asarray(networks.on_terms(A, a, batch)), 0)
    np.testing.assert_allclose(found, np.maximum(first @ B + b, 0) @ C + c, atol=1e-5)


@pytest.mark.parametrize(
    ("n_concepts", "sizes", "constant"), [(0, (4, 1), 0.0), (0, (4, 1), 1.0), (3, (), 1.0)]
)
def test_what_starts_as_a_constant_is_exactly_that(terms, n_concepts, sizes, constant):
    arrays = standardise(*terms)
    form = networks.Form(n_concepts, (arrays.n_terms, *sizes))
    flat = form.start(jax.random.key(0), constant)
    found = form.run(flat, Batch(**vars(arrays)))
    assert set(np.asarray(found).tolist()) == {constant}
    assert len(np.unique(flat)) > 5, "it could never move"


@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_bottleneck_starts_at_its_intercept(terms, k):
    arrays = standardise(*terms)
    flat = networks.start_bottleneck(jax.random.key(0), k, arrays.n_terms, intercept=0.25)
    found = networks.bottleneck(flat, Batch(**vars(arrays)), k)
    assert set(np.asarray(found).tolist()) == {0.25}
    W, v, b = networks.split_bottleneck(np.stack([flat, flat]), k)
    assert W.shape == (2, k, arrays.n_terms)
    assert v.shape == (2, k)
    assert b.tolist() == [0.25, 0.25]


def test_the_sigmoid_of_the_device_is_scipys():
    """Scores are learned with JAX's and applied with SciPy's."""
    z = np.linspace(-30, 30, 601).astype(np.float32)
    np.testing.assert_allclose(jax.nn.sigmoid(z), expit(z), rtol=2e-6)


def test_a_pace_counts_batches():
    assert training._pace(100, 30, Pacing(5, 30, 2, 0.1)) == Pace(100, 4, 2, 7)
