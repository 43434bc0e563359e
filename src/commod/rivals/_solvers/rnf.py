"""RNF: train the head of a network on representations that are neutral between two groups.

A row with the units z1 and the teacher's probability p1 meets a partner (z2, p2) of its batch, who
has the same true label and is of another group. With c the new head's probability, the loss is

    mean (c(z̄) − p̄)² + strength · Σ_λ mean |c(λ z1 + (1 − λ) z2) − c(z̄)|

over all pairs, with z̄ = (z1 + z2)/2, p̄ = (p1 + p2)/2 and λ = 0.6, 0.7, 0.8, 0.9. The teacher's
probability is sigmoid(margin / temperature).

The networks of the labels, before, minimise the generalised cross-entropy (1 − p^q)/q of the
probability p of the true label; it is the usual cross-entropy at q = 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from commod._solvers.problem import HeadProblem, LabelProblem, Schedule, TrainedLayers
from commod._solvers.training.loop import (
    AdamState,
    Clock,
    Method,
    Progress,
    adam_step,
    initial_adam,
    rows_on_device,
    train,
    weighted_mean,
)
from commod._solvers.training.networks import (
    apply_layers,
    initial_layers,
    label_cross_entropy,
    linear_in_terms,
    split_layers,
    trained_layers,
)

DEGREES = (0.6, 0.7, 0.8, 0.9)  # λ: how near an augmented representation is to the row's own
LABEL_FIELDS = ("numeric", "codes", "label", "weight")
HEAD_FIELDS = ("units", "margin", "label", "group", "pair_weight", "decision")
HISTORY = ("distillation", "smoothness", "paired", "change_rate")


class LayerSpec(NamedTuple):
    """The sizes of the layers that are trained: inputs, hidden units, one output."""

    sizes: tuple[int, ...]


class LayerSettings(NamedTuple):
    """The step size."""

    rate: Any


class LayerState(NamedTuple):
    """Everything that one model carries from step to step."""

    layers: Any
    adam: AdamState


class LabelRows(NamedTuple):
    """The fit rows on the device, padded; fields as in `LabelProblem`."""

    numeric: Array
    codes: Array
    code_mean: Array
    code_scale: Array
    label: Array
    weight: Array


class HeadRows(NamedTuple):
    """The fit rows on the device, padded; fields as in `HeadProblem`."""

    units: Array
    margin: Array
    label: Array
    group: Array
    pair_weight: Array
    decision: Array
    temperature: Any


class Pairs(NamedTuple):
    """The `partner` of each row of a batch, and its `weight`: 0 where a row has no partner."""

    partner: Array
    weight: Array


def train_networks(
    problem: LabelProblem,
    powers: NDArray[np.float32],
    seeds: NDArray[np.int64],
    schedule: Schedule,
    hidden: tuple[int, ...],
) -> TrainedLayers:
    """Return networks of the labels with `hidden` ReLU layers, one for each power q."""
    sizes = (problem.n_terms, *hidden, 1)
    method = Method(
        start=_initial_state,
        step=_label_step,
        spec=LayerSpec(sizes),
        figures=("label",),
        row_fields=LABEL_FIELDS,
        units=max(sizes[1:]),
    )
    rows = rows_on_device(LabelRows, problem, LABEL_FIELDS)
    settings = LayerSettings(np.float32(schedule.learning_rate))
    models = train(method, powers, seeds, rows, len(problem.label), settings, schedule)
    return trained_layers(models, models.states.layers, sizes)


def train_heads(
    problem: HeadProblem,
    strengths: NDArray[np.float32],
    seeds: NDArray[np.int64],
    schedule: Schedule,
    hidden: tuple[int, ...],
    on_progress: Progress | None = None,
) -> TrainedLayers:
    """Return m heads of `hidden` ReLU layers; their output is the margin over the temperature."""
    sizes = (problem.units.shape[1], *hidden, 1)
    method = Method(
        start=_initial_state,
        step=_head_step,
        spec=LayerSpec(sizes),
        figures=HISTORY,
        row_fields=HEAD_FIELDS,
        units=max(schedule.batch_size, 6 * max(sizes[1:])),
    )
    rows = rows_on_device(HeadRows, problem, HEAD_FIELDS)
    settings = LayerSettings(np.float32(schedule.learning_rate))
    n_rows = len(problem.label)
    models = train(method, strengths, seeds, rows, n_rows, settings, schedule, on_progress)
    return trained_layers(models, models.states.layers, sizes)


def _initial_state(seed: int, spec: LayerSpec) -> LayerState:
    layers = initial_layers(np.random.default_rng(seed), spec.sizes)
    return LayerState(layers, initial_adam(layers))


# ---------------------------------------------------------------------------------------------
# Networks of the labels


def generalised_cross_entropy(logit: Array, label: Array, power: Array | float) -> Array:
    """Return (1 − p^q)/q, element by element; p is the probability of the label, 0 or 1.

    Examples
    --------
    >>> generalised_cross_entropy(jnp.zeros(2), jnp.array([0.0, 1.0]), 1.0)
    Array([0.5, 0.5], dtype=float32)
    """
    log_loss = label_cross_entropy(logit, label)
    safe = jnp.where(power > 0, power, 1.0)
    return jnp.where(power > 0, -jnp.expm1(-safe * log_loss) / safe, log_loss)


def _label_step(
    state: LayerState,
    power: Array,
    batch: LabelRows,
    settings: LayerSettings,
    clock: Clock,
    spec: LayerSpec,
) -> tuple[LayerState, Array]:
    def loss(layers: Array) -> Array:
        def first_layer(matrix: Array, bias: Array) -> Array:
            return linear_in_terms(matrix, bias, batch)

        logit = apply_layers(layers, spec.sizes, first_layer)[:, 0]
        return weighted_mean(generalised_cross_entropy(logit, batch.label, power), batch.weight)

    value, gradient = jax.value_and_grad(loss)(state.layers)
    layers, adam = adam_step(state.layers, gradient, state.adam, clock.decay * settings.rate)
    return LayerState(layers, adam), value[None]


# ---------------------------------------------------------------------------------------------
# Heads


def choose_partners(batch: HeadRows) -> Pairs:
    """Return a partner for each row: the next one with the same label and another group.

    A batch begins again after its last row. Its order is random, so the partner is. The weight of a
    pair is the product of both weights, as if rows were repeated.
    """
    n = len(batch.label)
    place = jnp.arange(n, dtype=jnp.int32)
    steps = (place[:, None] - place) % n  # from the row (column) on to its candidate (row)
    is_allowed = (
        (batch.label[:, None] == batch.label)
        & (batch.group[:, None] != batch.group)
        & (batch.pair_weight > 0)[:, None]
    )
    step = jnp.where(is_allowed, steps, n).min(axis=0)
    partner = (place + step) % n  # the row itself where no candidate is allowed
    weight = batch.pair_weight * _rows_of(batch.pair_weight, partner)
    return Pairs(partner, jnp.where(step < n, weight, 0.0))


def head_loss(
    layers: Array, strength: Array | float, batch: HeadRows, pairs: Pairs, spec: LayerSpec
) -> tuple[Array, Array]:
    """Return the loss of a head on the pairs of a batch, and the values of `HISTORY`."""
    (matrix, bias), *later = split_layers(layers, spec.sizes)
    own = batch.units @ matrix + bias  # the first layer is linear, so it mixes as its inputs do
    other = _rows_of(own, pairs.partner)

    def margin(degree: float) -> Array:
        x = degree * own + (1 - degree) * other
        for matrix, bias in later:
            x = jax.nn.relu(x) @ matrix + bias
        return x[:, 0]

    teacher = jax.nn.sigmoid(batch.margin / batch.temperature)
    target = (teacher + _rows_of(teacher, pairs.partner)) / 2
    neutral = jax.nn.sigmoid(margin(0.5))
    distillation = weighted_mean((neutral - target) ** 2, pairs.weight)
    mixed = jnp.stack([jax.nn.sigmoid(margin(degree)) for degree in DEGREES])
    smoothness = weighted_mean(jnp.abs(mixed - neutral).sum(axis=0), pairs.weight)
    is_paired = (pairs.weight > 0).astype(own.dtype)
    is_changed = ((margin(1.0) > 0) != batch.decision).astype(own.dtype)
    shares = [weighted_mean(share, batch.pair_weight) for share in (is_paired, is_changed)]
    return distillation + strength * smoothness, jnp.stack([distillation, smoothness, *shares])


def _rows_of(values: Array, index: Array) -> Array:
    """Return the given rows of a table; on a GPU by a product, whose gradient repeats exactly."""
    if jax.default_backend() == "cpu":
        return values.at[index].get(mode="promise_in_bounds")
    return jax.nn.one_hot(index, len(values), dtype=values.dtype) @ values


def _head_step(
    state: LayerState,
    strength: Array,
    batch: HeadRows,
    settings: LayerSettings,
    clock: Clock,
    spec: LayerSpec,
) -> tuple[LayerState, Array]:
    pairs = choose_partners(batch)
    gradient, figures = jax.grad(head_loss, has_aux=True)(
        state.layers, strength, batch, pairs, spec
    )
    layers, adam = adam_step(state.layers, gradient, state.adam, clock.decay * settings.rate)
    return LayerState(layers, adam), figures
