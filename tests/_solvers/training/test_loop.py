"""The loop that all trained methods share, on a method so small that it can be done by hand."""

from types import SimpleNamespace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, log_expit, log_softmax

from commod._data.columns import Column
from commod._data.encoding import learn_encoding
from commod._solvers.problem import Schedule, TrainingRows, solver_position, standardise
from commod._solvers.training import loop as training
from commod._solvers.training import networks
from commod._solvers.training.loop import (
    BatchOrders,
    Method,
    TrainedWeights,
    padded_size,
    train,
)

pytestmark = pytest.mark.usefixtures("quick_compilation")


# compiled whole: one by one, their operations would be compiled for each shape
apply_across_rows = jax.jit(networks.apply_across_rows, static_argnums=1)


class State(NamedTuple):
    mean: jax.Array


def rows_of(values):
    values = np.asarray(values, dtype=np.float32)
    return TrainingRows.of({"value": values, "weight": np.ones_like(values)})


def toward_the_mean(state, penalties, batch, settings, clock, spec):
    """Move towards the batch's mean, as fast as `penalties` says; only after the warm-up."""
    mean = training.weighted_mean(batch.value, batch.weight)
    moved = state.mean + penalties * (mean - state.mean)
    state = state._replace(mean=jnp.where(clock.age >= 0, moved, state.mean))
    return state, jnp.stack([batch.weight.sum(), clock.decay])


def start_at_zero(seed, spec):
    return State(np.float32(0))


def layers_of_means(states, spec):
    return [(states.mean, states.mean)]


METHOD = Method(start_at_zero, toward_the_mean, layers_of_means, None, ("size", "decay"), units=1)


def run(values, speeds=(1.0,), progress=None, seeds=None, **changes):
    speeds = np.array(speeds, np.float32)
    seeds = np.zeros(len(speeds), int) if seeds is None else np.array(seeds)
    schedule = Schedule(
        **{"epochs": 1, "batch_size": 1000, "warmup_epochs": 0, "learning_rate": 0.1, **changes}
    )
    return train(METHOD, speeds, seeds, rows_of(values), (), schedule, progress)


def means(found):
    [(mean, _)] = found.layers
    return mean


def test_a_whole_batch_ends_at_the_mean_and_padding_does_not_count():
    found = run(np.arange(100.0))
    assert float(means(found)[0]) == pytest.approx(49.5)
    assert found.history["size"].tolist() == [[100.0]]


def test_each_model_has_its_own_penalty():
    found = run(np.arange(100.0), speeds=(0.0, 0.5, 1.0))
    assert means(found).tolist() == pytest.approx([0, 24.75, 49.5])


def test_the_rates_fall_along_a_cosine_once_the_warm_up_is_over():
    found = run(np.arange(100.0), epochs=4, warmup_epochs=3)
    assert found.epochs_done == 4
    assert found.history["decay"][0] == pytest.approx(0.5 + 0.5 * np.cos(np.pi * np.arange(4) / 4))


def test_nothing_is_learned_in_the_warm_up():
    reports = []

    def stop(done, total):
        reports.append((done, total))
        if done == 10:
            raise KeyboardInterrupt

    found = run(np.arange(100.0), epochs=5, warmup_epochs=12, progress=stop)
    assert found.interrupted
    assert found.epochs_done == 0
    assert means(found).tolist() == [0.0]
    assert reports == [(10, 17)]
    assert found.history["size"].shape == (1, 0)


def test_no_epochs_leave_the_start_as_it_is():
    found = run(np.arange(100.0), epochs=0, warmup_epochs=3)
    assert not found.interrupted
    assert means(found).tolist() == [0.0]


def test_an_epoch_sees_every_row_once_in_batches_that_differ_by_one():
    for n, size in [(96, 40), (97, 40), (65, 64), (5, 2), (64, 80)]:
        orders = BatchOrders(n, padded_size(n + 1), size, np.array([3]))
        [order] = orders.draw(2).values()
        for epoch in np.asarray(order)[:2]:
            batches = epoch.reshape(-1, size)
            lengths = (batches < n).sum(axis=1)
            assert lengths[: orders.n_batches].max() - lengths[: orders.n_batches].min() <= 1
            assert not lengths[orders.n_batches :].any()
            assert sorted(epoch[epoch < n]) == list(range(n))
            assert set(epoch[epoch >= n]) <= {n}, "the row of zeros"


def test_orders_do_not_depend_on_how_many_are_drawn_at_once():
    seeds = np.array([3, 4])
    whole, parts = (BatchOrders(50, 64, 16, seeds) for _ in range(2))
    together = jax.device_get(whole.draw(5))
    first, rest = jax.device_get(parts.draw(2)), jax.device_get(parts.draw(3))
    for seed in (3, 4):
        assert (together[seed][:5] == np.concatenate([first[seed][:2], rest[seed][:3]])).all()
    assert (together[3] != together[4]).any()


def test_the_orders_of_many_rows_are_drawn_one_epoch_at_a_time(monkeypatch):
    assert BatchOrders(100, 112, 16, np.array([1])).epochs == training.EPOCHS_PER_CALL
    monkeypatch.setattr(training, "MAX_INDICES", 1000)
    assert BatchOrders(100, 112, 16, np.array([1])).epochs == 8
    assert BatchOrders(100, 112, 16, np.arange(100)).epochs == 1
    found = run(np.arange(100.0), epochs=20)
    assert float(means(found)[0]) == pytest.approx(49.5)
    assert found.history["size"].tolist() == [[100.0] * 20]


@pytest.mark.parametrize(("epochs", "drawn"), [(0, []), (10, [10]), (11, [10, 1])])
def test_orders_are_drawn_for_epochs_that_are_still_to_come(monkeypatch, epochs, drawn):
    seen, draw = [], BatchOrders.draw

    def counted(self, n_epochs):
        seen.append(n_epochs)
        return draw(self, n_epochs)

    monkeypatch.setattr(BatchOrders, "draw", counted)
    run(np.arange(100.0), epochs=epochs)
    assert seen == drawn


@pytest.mark.parametrize("widest", [2, 8])
def test_models_of_one_seed_are_trained_side_by_side_and_others_apart(monkeypatch, widest):
    monkeypatch.setattr(training, "_max_models_at_once", lambda method, size: widest)
    speeds, seeds = (0.1, 0.2, 0.3, 0.4, 0.5), (7, 8, 7, 7, 7)
    pace = {"epochs": 3, "batch_size": 16}
    together = run(np.arange(100.0), speeds, seeds=seeds, **pace)
    for i, (speed, seed) in enumerate(zip(speeds, seeds, strict=True)):
        alone = run(np.arange(100.0), (speed,), seeds=(seed,), **pace)
        assert float(means(together)[i]) == pytest.approx(float(means(alone)[0]))
        assert together.history["size"][i].tolist() == alone.history["size"][0].tolist()


def test_a_gpu_trains_as_many_models_side_by_side_as_memory_has_room_for(monkeypatch):
    narrow, wide = METHOD._replace(units=32), METHOD._replace(units=10_000)
    assert training._max_models_at_once(narrow, 128) == 1, "a CPU trains each as if it were alone"
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert training._max_models_at_once(narrow, 8192) == training.MAX_MODELS
    assert 1 < training._max_models_at_once(wide, 8192) < 8
    assert training._max_models_at_once(wide, 10_000_000) == 1


def test_every_epoch_has_an_order_of_its_own():
    """With batches of one row and full speed a model ends at the last row it saw."""
    ends = {float(means(run(np.arange(64.0), batch_size=1, epochs=e))[0]) for e in range(1, 9)}
    assert len(ends) > 4


def test_another_number_of_epochs_or_rows_needs_no_new_compilation():
    run(np.arange(100.0), epochs=3, batch_size=16)
    before = training._program.cache_info().misses
    run(np.arange(101.0), epochs=25, batch_size=16, warmup_epochs=2)
    assert training._program.cache_info().misses == before


def test_padding_wastes_at_most_a_quarter():
    for n in [1, 63, 64, 65, 1000, 100_000]:
        assert n <= padded_size(n) <= max(64, 1.25 * n)


def test_adam_descends_as_written_in_its_paper():
    weights = TrainedWeights.of(np.array([1.0, -2.0], np.float32))
    ours = weights.steps(lambda p: 2 * p, jnp.float32(0.1), 3).values
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


def batch_of(rows):
    return SimpleNamespace(**rows.by_row, **rows.shared)


def sum_of_terms(weights, start, rows):
    """Compiled whole: one by one, its operations would be compiled for each shape."""
    return jax.jit(lambda w, b: networks.linear_in_terms(w, b, batch_of(rows)))(weights, start)


@pytest.mark.parametrize("units", [(), (3,)])
def test_a_sum_over_terms_equals_a_product_with_the_standardised_matrix(terms, units):
    table, weight = terms
    matrix = dense(table)
    mean = np.average(matrix, axis=0, weights=weight)
    z = (matrix - mean) / np.sqrt(np.average((matrix - mean) ** 2, axis=0, weights=weight))
    arrays = standardise(table, weight)
    weights = np.random.default_rng(1).normal(size=(table.n_terms, *units))
    found = sum_of_terms(jnp.asarray(weights, jnp.float32), jnp.float32(0.5), arrays)
    ours = weights[solver_position(table)]
    np.testing.assert_allclose(found, 0.5 + z @ ours, atol=1e-5)
    assert arrays.n_terms == table.n_terms == 8


def test_a_column_of_numbers_alone_needs_no_codes():
    by_row = {"numeric": np.ones((2, 1)), "codes": np.zeros((2, 0), int)}
    arrays = TrainingRows.of(by_row, code_mean=np.zeros(0), code_scale=np.zeros(0))
    found = sum_of_terms(jnp.array([2.0]), jnp.float32(1), arrays)
    assert found.tolist() == [3.0, 3.0]


def test_layers_run_as_written_out(terms):
    arrays = standardise(*terms)
    sizes = (arrays.n_terms, 4, 3, 1)
    flat = networks.initial_layers(np.random.default_rng(0), sizes)
    assert len(flat) == sum(networks.layer_lengths(sizes))
    (A, a), (B, b), (C, c) = networks.split_layers(np.asarray(flat), sizes)
    batch = batch_of(arrays)

    @jax.jit
    def run_layers(flat):
        return networks.apply_layers(
            flat, sizes, lambda m, bias: networks.linear_in_terms(m, bias, batch)
        )

    found = run_layers(flat)
    first = np.maximum(np.asarray(sum_of_terms(A, a, arrays)), 0)
    np.testing.assert_allclose(found, np.maximum(first @ B + b, 0) @ C + c, atol=1e-5)


def test_layers_across_rows_are_the_same_layers():
    sizes = (2, 4, 3, 2)
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(sizes[0], 7)).astype(np.float32)
    flat = rng.normal(size=sum(networks.layer_lengths(sizes))).astype(np.float32)
    turned = [
        part
        for i, (matrix, bias) in enumerate(networks.split_layers(flat, sizes))
        for part in (matrix.reshape(sizes[i + 1], sizes[i]).T.ravel(), bias)
    ]
    rows = jax.jit(
        lambda flat: networks.apply_layers(flat, sizes, lambda m, bias: inputs.T @ m + bias)
    )(jnp.asarray(np.concatenate(turned)))
    across = apply_across_rows(jnp.asarray(flat), sizes, inputs)
    np.testing.assert_allclose(across, rows.T, atol=1e-5)


def test_codes_are_added_up_alike_on_every_device(terms, monkeypatch):
    arrays = standardise(*terms)
    points = np.random.default_rng(1).normal(size=(len(arrays.shared["code_mean"]), 3))
    several, one = (jnp.asarray(p, jnp.float32) for p in (points, points[:, 0]))
    here = networks._sum_of_points(arrays.by_row["codes"], several)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    there = networks._sum_of_points(arrays.by_row["codes"], several)
    np.testing.assert_allclose(here, there, atol=1e-6)
    alone = networks._sum_of_points(arrays.by_row["codes"], one)
    np.testing.assert_allclose(alone, np.asarray(here)[..., 0], atol=1e-6)


def test_errors_of_a_row_are_cross_entropies():
    rng = np.random.default_rng(0)
    guesses, group = rng.normal(size=(3, 50)) * 20, rng.integers(3, size=50)
    own = log_softmax(guesses, axis=0)[group, np.arange(50)]
    found = jax.jit(networks.group_cross_entropy)(jnp.asarray(guesses, jnp.float32), group)
    np.testing.assert_allclose(found, -own, atol=1e-4)
    logit, label = np.append(rng.normal(size=49) * 20, 0.0), rng.random(50)
    expected = -label * log_expit(logit) - (1 - label) * log_expit(-logit)

    @jax.jit
    def errors_and_slope(x):
        errors, back = jax.vjp(lambda x: networks.label_cross_entropy(x, np.float32(label)), x)
        return errors, back(jnp.ones_like(errors))[0]

    errors, slope = errors_and_slope(jnp.asarray(logit, jnp.float32))
    np.testing.assert_allclose(errors, expected, atol=1e-4)
    np.testing.assert_allclose(slope, expit(logit) - label, atol=1e-6)


def test_what_starts_as_a_constant_is_exactly_that(terms):
    for n_concepts, sizes, constant in [(0, (4, 1), 0.5), (3, (), 1.0)]:
        arrays = standardise(*terms)
        architecture = networks.Architecture(n_concepts, (arrays.n_terms, *sizes))
        flat = architecture.start(np.random.default_rng(0), constant)
        found = architecture.apply(flat, batch_of(arrays))
        assert set(np.asarray(found).tolist()) == {constant}
        assert len(np.unique(flat)) > 5, "it could never move"


def test_a_bottleneck_starts_at_its_intercept(terms):
    for k in [1, 5]:
        arrays = standardise(*terms)
        flat = networks.initial_bottleneck(
            np.random.default_rng(0), k, arrays.n_terms, intercept=0.25
        )
        found = networks.apply_bottleneck(flat, batch_of(arrays), k)
        assert set(np.asarray(found).tolist()) == {0.25}
        W, v, b = networks.split_bottleneck(np.stack([flat, flat]), k)
        assert W.shape == (2, k, arrays.n_terms)
        assert v.shape == (2, k)
        assert b.tolist() == [0.25, 0.25]


def test_the_sigmoid_of_the_device_is_scipys():
    """Scores are learned with JAX's and applied with SciPy's."""
    z = np.linspace(-30, 30, 601).astype(np.float32)
    np.testing.assert_allclose(jax.nn.sigmoid(z), expit(z), rtol=2e-6)
