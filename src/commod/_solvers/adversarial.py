"""The paper's min–max training of the ratio r against an adversary that guesses the group.

With z the margin of the base model, t its threshold, l = r(x)·z the edited margin and h the
adversary, r minimises

    L_Y(l + logit t, y) − λ_fair L_S(h(l), s) + λ_ratio mean (r − 1)² + λ_sparsity Σ_j |v_j| ‖W_j‖₁
    + λ_diversity mean_{i<j} cos(W_i, W_j)²,      r(x) = b + Σ_j v_j (W_j · x),

while h minimises L_S; λ_fair shrinks with the adversary's advantage (`_fair_weight`). Both learn by
Adam on the same minibatches, several steps of h for each of r. Parameters are flat vectors and
loops have dynamic lengths: the compiled program is small, and one compilation serves every number
of epochs and, up to padding, of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax
from numpy.typing import NDArray

from commod._solvers.problem import Penalties, Problem, Schedule, Solution

__all__ = ["train"]

HISTORY = ("label", "adversary", "ratio", "sparsity", "diversity", "change_rate")
START_SIZE = 0.01  # of the usual size of random weights: enough to tell the concepts apart
EXTRA_WEIGHT = 4.0  # times λ_fair, while the adversary is as good as on the base model
MEMORY = 0.95  # of the running mean of the adversary's advantage
NO_ADVANTAGE = 1e-3  # nats: below, the base model tells nothing about the group
EPOCHS_PER_CALL = 10  # progress and interrupts come between two calls of the compiled program
_adam = optax.scale_by_adam()


class Shape(NamedTuple):
    """What the compiled program depends on besides the sizes of its arrays."""

    n_concepts: int
    n_groups: int
    batch_size: int
    hidden: tuple[int, ...]
    sees_label: bool


class Rows(NamedTuple):
    """The training rows on the device, padded; `numeric` to `ratio_weight` as in `Problem`."""

    numeric: Array
    codes: Array
    code_mean: Array
    code_scale: Array
    margin: Array
    label: Array
    group: Array
    weight: Array
    adversary_weight: Array
    ratio_weight: Array
    is_row: Array
    margin_scale: Array
    offset: Array
    surprise: Array


class Pace(NamedTuple):
    """The numbers of the schedule that may change without a new compilation."""

    n_rows: Array
    n_batches: Array
    warmup: Array
    ramp: Array
    total: Array
    rate: Array
    adversary_steps: Array
    adversary_rate: Array
    adaptive: Array


class Weights(NamedTuple):
    """The penalties of one model, scalars."""

    fair: Array
    ratio: Array
    sparsity: Array
    diversity: Array


class State(NamedTuple):
    """Everything one model carries from step to step."""

    ratio: Array
    ratio_optimizer: optax.ScaleByAdamState
    adversary: Array
    adversary_optimizer: optax.ScaleByAdamState
    advantage: Array
    highest_advantage: Array
    key: Array


def train(
    problem: Problem,
    penalties: Penalties,
    seeds: NDArray[np.int64],
    schedule: Schedule,
    on_progress: Callable[[int, int], None] | None = None,
) -> Solution:
    """Return m trained ratios, one for each entry of `penalties` and of `seeds`.

    `on_progress(done, total)` is called between chunks of epochs. A keyboard interrupt ends the
    training after the last finished chunk and gives back what was learned so far.
    """
    shape = Shape(
        schedule.n_concepts,
        problem.n_groups,
        min(schedule.batch_size, _padded(len(problem.margin))),
        schedule.adversary_hidden,
        problem.adversary_sees_label,
    )
    rows, pace = _rows(problem), _pace(problem, schedule, shape.batch_size)
    weights = Weights(*(jnp.asarray(a) for a in vars(penalties).values()))
    states = _initial_states(jnp.asarray(seeds, dtype=jnp.uint32), shape, problem.n_terms)
    total = schedule.epochs + schedule.warmup_epochs if schedule.epochs else 0
    done, interrupted, chunks = 0, False, []
    try:
        while done < total:
            stop = min(done + EPOCHS_PER_CALL, total)
            advanced, losses = _advance(states, weights, rows, pace, done, stop, shape)
            chunks.append(np.asarray(losses)[:, : stop - done])
            states, done = advanced, stop
            if on_progress is not None:
                on_progress(done, total)
    except KeyboardInterrupt:
        interrupted = True
    return _solution(states, chunks, schedule, problem.n_terms, done, interrupted)


def _padded(n: int) -> int:
    """Return the next of few sizes (steps of 12.5 to 25 %), so that compilations are reused."""
    size = 64
    while size < n:
        size *= 2
    return next(part for part in (size * f // 8 for f in (5, 6, 7, 8)) if part >= n)


def _rows(problem: Problem) -> Rows:
    n = len(problem.margin)
    extra = _padded(n) - n

    def pad(array: NDArray[np.generic]) -> Array:
        return jnp.asarray(np.pad(array, [(0, extra)] + [(0, 0)] * (array.ndim - 1)))

    # the adversary sees l in standard deviations of z: its speed must not depend on f's confidence
    centred = problem.margin - np.average(problem.margin, weights=problem.weight)
    spread = float(np.sqrt(np.average(centred**2, weights=problem.weight)))
    return Rows(
        numeric=pad(problem.numeric),
        codes=pad(problem.codes),
        code_mean=jnp.asarray(problem.code_mean),
        code_scale=jnp.asarray(problem.code_scale),
        margin=pad(problem.margin),
        label=pad(problem.label),
        group=pad(problem.group),
        weight=pad(problem.weight),
        adversary_weight=pad(problem.adversary_weight),
        ratio_weight=pad(problem.ratio_weight),
        is_row=pad(np.ones(n, dtype=bool)),
        margin_scale=jnp.float32(spread if spread > 0 else 1.0),
        offset=jnp.float32(problem.offset),
        surprise=pad(_surprise(problem)),
    )


def _surprise(problem: Problem) -> NDArray[np.float32]:
    """Return −log of the share of each row's group (with its label), shape (n,).

    Its mean is the loss of an adversary that does not look at the score.
    """
    cell = problem.group.astype(np.int64)
    whole = np.zeros_like(cell)
    if problem.adversary_sees_label:
        whole = (problem.label > 0.5).astype(np.int64)
        cell = 2 * cell + whole
    weight = problem.adversary_weight.astype(np.float64) + 1e-12
    share = np.bincount(cell, weight)[cell] / np.bincount(whole, weight)[whole]
    return -np.log(share).astype(np.float32)


def _pace(problem: Problem, schedule: Schedule, batch_size: int) -> Pace:
    n = len(problem.margin)
    return Pace(
        n_rows=jnp.int32(n),
        n_batches=jnp.int32(-(-n // batch_size)),
        warmup=jnp.int32(schedule.warmup_epochs),
        ramp=jnp.int32(max(1, min(schedule.ramp_epochs, schedule.epochs))),
        total=jnp.int32(schedule.warmup_epochs + schedule.epochs),
        rate=jnp.float32(schedule.learning_rate),
        adversary_steps=jnp.int32(schedule.adversary_steps),
        adversary_rate=jnp.float32(schedule.adversary_learning_rate),
        adaptive=jnp.asarray(schedule.adaptive_fairness),
    )


# ---------------------------------------------------------------------------------------------
# Parameters


@partial(jax.jit, static_argnames=("shape", "n_terms"))
def _initial_states(seeds: Array, shape: Shape, n_terms: int) -> State:
    return jax.vmap(partial(_initial_state, shape=shape, n_terms=n_terms))(seeds)


def _initial_state(seed: Array, shape: Shape, n_terms: int) -> State:
    """Start at r = 1 with every direction open: equal v, and concepts in pairs that cancel.

    With v = 0 and random W, only the k directions of W could move at first, and few concepts meant
    another update for each seed (docs/decisions/0002).
    """
    key, ratio_key, adversary_key = jax.random.split(jax.random.key(seed), 3)
    k = shape.n_concepts
    half = START_SIZE * _glorot(ratio_key, k // 2, n_terms)
    concepts = jnp.concatenate([half, -half, jnp.zeros((k % 2, n_terms))])
    ratio = jnp.concatenate([concepts.ravel(), jnp.full(k, k**-0.5), jnp.ones(1)])
    layers = []
    for layer_key, (rows, columns) in zip(
        jax.random.split(adversary_key, len(shape.hidden) + 1), _layer_sizes(shape), strict=True
    ):
        layers += [_glorot(layer_key, rows, columns).ravel(), jnp.zeros(columns)]
    adversary = jnp.concatenate(layers)
    zero = jnp.zeros(())
    return State(ratio, _adam.init(ratio), adversary, _adam.init(adversary), zero, zero, key)


def _glorot(key: Array, rows: int, columns: int) -> Array:
    limit = float(np.sqrt(6 / (rows + columns)))
    return jax.random.uniform(key, (rows, columns), minval=-limit, maxval=limit)


def _layer_sizes(shape: Shape) -> list[tuple[int, int]]:
    sizes = [1 + shape.sees_label, *shape.hidden, shape.n_groups]
    return list(pairwise(sizes))


def _split_ratio(ratio: Array, k: int) -> tuple[Array, Array, Array]:
    """Return W (k, d), v (k,) and b from the flat vector."""
    return ratio[: -k - 1].reshape(k, -1), ratio[-k - 1 : -1], ratio[-1]


# ---------------------------------------------------------------------------------------------
# Losses


def _ratio_of(ratio: Array, batch: Rows, k: int) -> Array:
    """Return r(x) of the rows of a batch, shape (batch,): only w = v'W is ever multiplied out."""
    concepts, contributions, intercept = _split_ratio(ratio, k)
    total = contributions @ concepts
    p = batch.numeric.shape[1]
    r = intercept + batch.numeric @ total[:p]
    if batch.codes.shape[1]:
        points = total[p:] * batch.code_scale
        r += jnp.append(points, 0.0)[batch.codes].sum(axis=1) - points @ batch.code_mean
    return r


def _adversary_loss(adversary: Array, edited: Array, batch: Rows, shape: Shape) -> Array:
    """Return L_S: the cross-entropy of the group guessed from l (and y), a weighted mean."""
    x = (edited / batch.margin_scale)[:, None]
    if shape.sees_label:
        x = jnp.column_stack([x, batch.label])
    start = 0
    sizes = _layer_sizes(shape)
    for i, (rows, columns) in enumerate(sizes):
        matrix = adversary[start : start + rows * columns].reshape(rows, columns)
        bias = adversary[start + rows * columns : start + (rows + 1) * columns]
        x = x @ matrix + bias
        x = jax.nn.relu(x) if i < len(sizes) - 1 else x
        start += (rows + 1) * columns
    losses = optax.softmax_cross_entropy_with_integer_labels(x, batch.group)
    return _mean(losses, batch.adversary_weight)


def _mean(values: Array, weight: Array) -> Array:
    return (values * weight).sum() / jnp.maximum(weight.sum(), 1e-12)


def _ratio_loss(
    ratio: Array, adversary: Array, batch: Rows, weights: Weights, shape: Shape
) -> tuple[Array, Array]:
    """Return the loss of the ratio, its L1 on W left to the proximal step, and its parts."""
    concepts, contributions, _ = _split_ratio(ratio, shape.n_concepts)
    r = _ratio_of(ratio, batch, shape.n_concepts)
    edited = r * batch.margin
    errors = optax.sigmoid_binary_cross_entropy(edited + batch.offset, batch.label)
    label = _mean(errors, batch.weight)
    guess = _adversary_loss(adversary, edited, batch, shape)
    distance = _mean((r - 1) ** 2, batch.ratio_weight)
    path = jnp.abs(contributions) @ lax.stop_gradient(jnp.abs(concepts).sum(axis=1))
    alike = _diversity(concepts)
    loss = (
        label
        - weights.fair * guess
        + weights.ratio * distance
        + weights.sparsity * path
        + weights.diversity * alike
    )
    changed = _mean((r < 0).astype(r.dtype), batch.weight)
    return loss, jnp.stack([label, guess, distance, path, alike, changed])


def _diversity(concepts: Array) -> Array:
    """Return the mean squared cosine over pairs of concepts: 0 apart, 1 the same up to sign."""
    k = len(concepts)
    if k == 1:
        return jnp.zeros(())
    unit = concepts / jnp.sqrt((concepts**2).sum(axis=1, keepdims=True) + 1e-12)
    cosine = unit @ unit.T
    return ((cosine**2).sum() - (jnp.diagonal(cosine) ** 2).sum()) / (k * (k - 1))


# ---------------------------------------------------------------------------------------------
# The iteration


@partial(jax.jit, static_argnames=("shape",))
def _advance(
    states: State, weights: Weights, rows: Rows, pace: Pace, start: int, stop: int, shape: Shape
) -> tuple[State, Array]:
    """Train all models from epoch `start` to `stop`; also return losses (m, EPOCHS_PER_CALL, 6)."""

    def one(model: tuple[State, Weights]) -> tuple[State, Array]:
        state, penalties = model

        def body(epoch: Array, carry: tuple[State, Array]) -> tuple[State, Array]:
            state, losses = carry
            state, mean = _epoch(state, penalties, rows, pace, epoch, shape)
            return state, losses.at[epoch - start].set(mean)

        losses = jnp.zeros((EPOCHS_PER_CALL, len(HISTORY)))
        return lax.fori_loop(start, stop, body, (state, losses))

    return lax.map(one, (states, weights))


def _epoch(
    state: State, weights: Weights, rows: Rows, pace: Pace, epoch: Array, shape: Shape
) -> tuple[State, Array]:
    """Go once through the rows in random order; also return the mean losses, shape (6,)."""
    key, shuffle = jax.random.split(state.key)
    draw = jax.random.uniform(shuffle, rows.is_row.shape)
    order = jnp.argsort(jnp.where(rows.is_row, draw, 2.0))  # padding goes last
    order = jnp.append(order, jnp.zeros(shape.batch_size, dtype=order.dtype))
    age = epoch - pace.warmup
    decay = 0.5 * (1 + jnp.cos(jnp.pi * jnp.clip(age / (pace.total - pace.warmup), 0.0, 1.0)))
    ramped = weights._replace(fair=weights.fair * jnp.clip((age + 1) / pace.ramp, 0.0, 1.0))

    def body(i: Array, carry: tuple[State, Array]) -> tuple[State, Array]:
        state, losses = carry
        batch = _batch(rows, order, i, pace, shape.batch_size)
        state, parts = _step(state, ramped, batch, pace, decay, age >= 0, shape)
        return state, losses + parts / pace.n_batches

    return lax.fori_loop(
        0, pace.n_batches, body, (state._replace(key=key), jnp.zeros(len(HISTORY)))
    )


def _batch(rows: Rows, order: Array, i: Array, pace: Pace, size: int) -> Rows:
    """Return the i-th of batches that differ by at most one row; missing rows have weight 0."""
    base, longer = pace.n_rows // pace.n_batches, pace.n_rows % pace.n_batches
    first = i * base + jnp.minimum(i, longer)
    length = base + (i < longer)
    index = lax.dynamic_slice(order, (first,), (size,))
    there = (jnp.arange(size) < length).astype(jnp.float32)
    picked = {
        name: getattr(rows, name)[index]
        for name in ("numeric", "codes", "margin", "label", "group", "surprise")
    }
    kept = {
        name: getattr(rows, name)[index] * there
        for name in ("weight", "adversary_weight", "ratio_weight")
    }
    return rows._replace(**picked, **kept)


def _step(
    state: State,
    weights: Weights,
    batch: Rows,
    pace: Pace,
    decay: Array,
    train_ratio: Array,
    shape: Shape,
) -> tuple[State, Array]:
    """Take several steps of the adversary, then one of the ratio (none while warming up)."""
    edited = _ratio_of(state.ratio, batch, shape.n_concepts) * batch.margin

    def improve(_: int, carry: tuple[Array, optax.ScaleByAdamState]):  # type: ignore[no-untyped-def]
        adversary, optimizer = carry
        gradient = jax.grad(_adversary_loss)(adversary, edited, batch, shape)
        update, optimizer = _adam.update(gradient, optimizer)
        return adversary - decay * pace.adversary_rate * update, optimizer

    adversary, adversary_optimizer = lax.fori_loop(
        0, pace.adversary_steps, improve, (state.adversary, state.adversary_optimizer)
    )
    weights = weights._replace(fair=weights.fair * _fair_weight(state, pace))
    gradient, parts = jax.grad(_ratio_loss, has_aux=True)(
        state.ratio, adversary, batch, weights, shape
    )
    update, optimizer = _adam.update(gradient, state.ratio_optimizer)
    rate = decay * pace.rate
    ratio = _shrink(state.ratio - rate * update, optimizer, rate, weights.sparsity, shape)
    ratio, optimizer = jax.tree.map(
        lambda new, old: jnp.where(train_ratio, new, old),
        (ratio, optimizer),
        (state.ratio, state.ratio_optimizer),
    )
    advantage = _mean(batch.surprise, batch.adversary_weight) - parts[1]
    advantage = MEMORY * state.advantage + (1 - MEMORY) * advantage
    highest = jnp.maximum(state.highest_advantage, advantage)
    return State(
        ratio, optimizer, adversary, adversary_optimizer, advantage, highest, state.key
    ), parts


def _fair_weight(state: State, pace: Pace) -> Array:
    """Return what λ_fair is multiplied by: 5 at the base model, 1 where the group is hidden.

    With I the adversary's advantage and I₀ that on the base model, the ratio descends along
    λ_fair (I + 2 I²/I₀): a constant weight alone has nothing to hold it between "no change" and
    "far too many".
    """
    left = state.advantage / jnp.maximum(state.highest_advantage, NO_ADVANTAGE)
    return 1 + jnp.where(pace.adaptive, EXTRA_WEIGHT * jnp.clip(left, 0.0, 1.0), 0.0)


def _shrink(
    ratio: Array, optimizer: optax.ScaleByAdamState, rate: Array, sparsity: Array, shape: Shape
) -> Array:
    """Soft-threshold W for the L1 path norm, in the metric of Adam's step: exact zeros."""
    k = shape.n_concepts
    concepts, contributions, intercept = _split_ratio(ratio, k)
    curvature = optimizer.nu / (1 - 0.999**optimizer.count)  # optax's default decay of nu
    step, _, _ = _split_ratio(rate / (jnp.sqrt(curvature) + 1e-8), k)
    threshold = sparsity * step * jnp.abs(contributions)[:, None]
    concepts = jnp.sign(concepts) * jnp.maximum(jnp.abs(concepts) - threshold, 0.0)
    return jnp.concatenate([concepts.ravel(), contributions, intercept[None]])


def _solution(
    states: State,
    chunks: list[NDArray[np.float32]],
    schedule: Schedule,
    n_terms: int,
    done: int,
    interrupted: bool,
) -> Solution:
    flat = np.asarray(states.ratio, dtype=np.float64)
    m, k = len(flat), schedule.n_concepts
    losses = np.concatenate(chunks, axis=1) if chunks else np.zeros((m, 0, len(HISTORY)))
    losses = losses[:, schedule.warmup_epochs :].astype(np.float64)
    return Solution(
        weights=flat[:, : k * n_terms].reshape(m, k, n_terms),
        contributions=flat[:, k * n_terms : -1] if done else np.zeros((m, k)),
        intercept=flat[:, -1],
        history={name: losses[:, :, i] for i, name in enumerate(HISTORY)},
        epochs_done=max(0, done - schedule.warmup_epochs),
        interrupted=interrupted,
    )
