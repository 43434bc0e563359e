"""The loop that every method trained by gradients shares: models, epochs, batches.

A method brings a `step` and a named tuple of rows; everything else is here. Rows are padded and
loops have dynamic lengths: the compiled program is small, and one compilation serves every number
of epochs and, up to padding, of rows. Models are trained one after the other in one computation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax
from numpy.typing import NDArray

from commod._solvers.problem import Pacing

__all__ = [
    "Clock",
    "Method",
    "Trained",
    "adam",
    "descend",
    "descend_often",
    "padded",
    "padded_size",
    "train",
    "weighted_mean",
]

EPOCHS_PER_CALL = 10  # progress and interrupts come between two calls of the compiled program
adam = optax.scale_by_adam()


class Clock(NamedTuple):
    """Where an epoch stands: `age` counts from the end of the warm-up, negative within it.

    `decay` falls from 1 to 0 along a cosine; every method multiplies its rates by it.
    """

    age: Array
    decay: Array


class Method(NamedTuple):
    """What tells one way of training from another; the compiled program depends on it.

    `step(state, penalties, batch, settings, clock, shape)` returns the next state and the values
    of `figures`; `state.key` belongs to the loop. `shape` is whatever else the step is compiled
    for. Of the rows' fields, `values` and `weights` have one entry per row; a batch that is
    shorter than others is filled with rows whose `weights` are 0.
    """

    step: Callable[..., tuple[Any, Array]]
    shape: Hashable
    figures: tuple[str, ...]
    values: tuple[str, ...]
    weights: tuple[str, ...]


class Pace(NamedTuple):
    """Numbers of the schedule that may change without a new compilation."""

    n_rows: Array
    n_batches: Array
    warmup: Array
    total: Array


class Trained(NamedTuple):
    """The states of m models after `epochs_done` epochs, the warm-up not counted.

    `history` maps the name of a figure to its mean per epoch, shape (m, epochs done); `begun` says
    whether any chunk of epochs was finished, one of the warm-up perhaps.
    """

    states: Any
    history: dict[str, NDArray[np.float64]]
    epochs_done: int
    begun: bool
    interrupted: bool


def train(
    method: Method,
    states: Any,
    penalties: Any,
    rows: Any,
    settings: Any,
    pacing: Pacing,
    on_progress: Callable[[int, int], None] | None = None,
) -> Trained:
    """Return m trained models; `states` and `penalties` have one entry per model.

    `rows` is a named tuple with a field `is_row`, False for the padding; `settings` is passed to
    every step as it is. `on_progress(done, total)` is called between chunks of epochs. A keyboard
    interrupt ends the training after the last finished chunk and gives back what was learned.
    """
    size = min(pacing.batch_size, len(rows.is_row))
    pace = _pace(int(rows.is_row.sum()), size, pacing)
    total = pacing.epochs + pacing.warmup_epochs if pacing.epochs else 0
    n_models = len(jax.tree.leaves(states)[0])
    done, interrupted = 0, False
    chunks: list[NDArray[np.float32]] = [np.zeros((n_models, 0, len(method.figures)), np.float32)]
    try:
        while done < total:
            stop = min(done + EPOCHS_PER_CALL, total)
            advanced, losses = _advance(
                states, penalties, rows, settings, pace, done, stop, method, size
            )
            chunks.append(np.asarray(losses)[:, : stop - done])
            states, done = advanced, stop
            if on_progress is not None:
                on_progress(done, total)
    except KeyboardInterrupt:
        interrupted = True
    losses = np.concatenate(chunks, axis=1)[:, pacing.warmup_epochs :].astype(np.float64)
    history = {name: losses[:, :, i] for i, name in enumerate(method.figures)}
    return Trained(states, history, max(0, done - pacing.warmup_epochs), done > 0, interrupted)


def padded_size(n: int) -> int:
    """Return the next of few sizes (steps of 12.5 to 25 %), so that compilations are reused."""
    size = 64
    while size < n:
        size *= 2
    return next(part for part in (size * f // 8 for f in (5, 6, 7, 8)) if part >= n)


def padded(array: NDArray[np.generic]) -> Array:
    """Return an array with one entry per row on the device, zeros behind the last row."""
    extra = padded_size(len(array)) - len(array)
    return jnp.asarray(np.pad(array, [(0, extra)] + [(0, 0)] * (array.ndim - 1)))


def weighted_mean(values: Array, weight: Array) -> Array:
    """Return the mean of `values`; 0 where all weights are."""
    return (values * weight).sum() / jnp.maximum(weight.sum(), 1e-12)


def descend(
    parameters: Array, gradient: Array, optimizer: optax.ScaleByAdamState, rate: Array
) -> tuple[Array, optax.ScaleByAdamState]:
    """Take one step of Adam."""
    update, optimizer = adam.update(gradient, optimizer)
    return parameters - rate * update, optimizer


def descend_often(
    gradient_of: Callable[[Array], Array],
    parameters: Array,
    optimizer: optax.ScaleByAdamState,
    rate: Array,
    n_steps: Array,
) -> tuple[Array, optax.ScaleByAdamState]:
    """Take several steps of Adam on the same batch."""

    def body(
        _: int, carry: tuple[Array, optax.ScaleByAdamState]
    ) -> tuple[Array, optax.ScaleByAdamState]:
        parameters, optimizer = carry
        return descend(parameters, gradient_of(parameters), optimizer, rate)

    return lax.fori_loop(0, n_steps, body, (parameters, optimizer))


def _pace(n_rows: int, batch_size: int, pacing: Pacing) -> Pace:
    return Pace(
        n_rows=jnp.int32(n_rows),
        n_batches=jnp.int32(-(-n_rows // batch_size)),
        warmup=jnp.int32(pacing.warmup_epochs),
        total=jnp.int32(pacing.warmup_epochs + pacing.epochs),
    )


@partial(jax.jit, static_argnames=("method", "batch_size"))
def _advance(
    states: Any,
    penalties: Any,
    rows: Any,
    settings: Any,
    pace: Pace,
    start: int,
    stop: int,
    method: Method,
    batch_size: int,
) -> tuple[Any, Array]:
    """Train from epoch `start` to `stop`; also return figures (m, EPOCHS_PER_CALL, figures)."""

    def one(model: tuple[Any, Any]) -> tuple[Any, Array]:
        state, weights = model

        def body(epoch: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
            state, figures = carry
            take = partial(method.step, settings=settings, shape=method.shape)
            state, mean = _epoch(state, weights, rows, pace, epoch, take, method, batch_size)
            return state, figures.at[epoch - start].set(mean)

        figures = jnp.zeros((EPOCHS_PER_CALL, len(method.figures)))
        return lax.fori_loop(start, stop, body, (state, figures))

    return lax.map(one, (states, penalties))


def _epoch(
    state: Any,
    penalties: Any,
    rows: Any,
    pace: Pace,
    epoch: Array,
    take_step: Callable[..., tuple[Any, Array]],
    method: Method,
    batch_size: int,
) -> tuple[Any, Array]:
    """Go once through the rows in random order; also return the mean figures."""
    key, shuffle = jax.random.split(state.key)
    draw = jax.random.uniform(shuffle, rows.is_row.shape)
    order = jnp.argsort(jnp.where(rows.is_row, draw, 2.0))  # padding goes last
    order = jnp.append(order, jnp.zeros(batch_size, dtype=order.dtype))
    age = epoch - pace.warmup
    decay = 0.5 * (1 + jnp.cos(jnp.pi * jnp.clip(age / (pace.total - pace.warmup), 0.0, 1.0)))
    clock = Clock(age, decay)

    def body(i: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
        state, figures = carry
        batch = _batch(rows, order, i, pace, method, batch_size)
        state, found = take_step(state, penalties, batch, clock=clock)
        return state, figures + found / pace.n_batches

    start = (state._replace(key=key), jnp.zeros(len(method.figures)))
    return lax.fori_loop(0, pace.n_batches, body, start)


def _batch(rows: Any, order: Array, i: Array, pace: Pace, method: Method, size: int) -> Any:
    """Return the i-th of batches that differ by at most one row; missing rows have weight 0."""
    base, longer = pace.n_rows // pace.n_batches, pace.n_rows % pace.n_batches
    first = i * base + jnp.minimum(i, longer)
    length = base + (i < longer)
    index = lax.dynamic_slice(order, (first,), (size,))
    there = (jnp.arange(size) < length).astype(jnp.float32)
    picked = {name: getattr(rows, name)[index] for name in method.values}
    kept = {name: getattr(rows, name)[index] * there for name in method.weights}
    return rows._replace(**picked, **kept)
