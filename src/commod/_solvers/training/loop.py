"""The loop that every method trained by gradients shares: models, epochs, batches.

A method brings a `step` and a named tuple of rows; everything else is here. All random numbers are
drawn by NumPy: generators and sorting would be most of what is compiled. Rows are padded and loops
have dynamic lengths, so one compilation serves every number of epochs and, up to padding, of rows.
Models of a grid that share a seed see the rows in the same order; a GPU trains them side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import NDArray

from commod._solvers.problem import Pacing
from commod._solvers.training.programs import kept_programs

__all__ = [
    "Adam",
    "Clock",
    "Method",
    "Trained",
    "descend",
    "descend_often",
    "padded",
    "padded_size",
    "reach",
    "stacked",
    "start_adam",
    "train",
    "weighted_mean",
]

EPOCHS_PER_CALL = 10  # progress and interrupts come between two calls of the compiled program
MOST_INDICES = 2**26  # in the orders of a call, 256 MB
MOST_MODELS = 128  # side by side
MOST_UNITS = 2**28  # models · rows · units of one step: 1 GB for each array of them
ORDERS = 1  # tells the draws of orders from those of the start, which are seeded alike


class Clock(NamedTuple):
    """Where an epoch stands: `age` counts from the end of the warm-up, negative within it.

    `decay` falls from 1 to 0 along a cosine; every method multiplies its rates by it.
    """

    age: Any
    decay: Any


class Method(NamedTuple):
    """What tells one way of training from another; the compiled program depends on it.

    `step(state, penalties, batch, settings, clock, shape)` returns the next state and the values
    of `figures`. `shape` is whatever else the step is compiled for. `fields` are those of the rows
    that have one entry per row; a batch that is shorter than others is filled with a row of zeros,
    its weights too. `units` is the most numbers a step makes of one row.
    """

    step: Callable[..., tuple[Any, Array]]
    shape: Hashable
    figures: tuple[str, ...]
    fields: tuple[str, ...]
    units: int


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


class Block(NamedTuple):
    """Models of one seed to be trained side by side; the last is repeated to fill up."""

    seed: int
    models: NDArray[np.intp]
    n_models: int


# ---------------------------------------------------------------------------------------------
# The loop


def train(
    method: Method,
    states: Any,
    penalties: Any,
    seeds: NDArray[np.int64],
    rows: Any,
    n_rows: int,
    settings: Any,
    pacing: Pacing,
    on_progress: Callable[[int, int], None] | None = None,
) -> Trained:
    """Return m trained models; `states`, `penalties` and `seeds` have one entry per model.

    `rows` is a named tuple of `padded` arrays; `settings` is passed to every step as it is.
    `on_progress(done, total)` is called between chunks of epochs. A keyboard interrupt ends the
    training after the last finished chunk and gives back what was learned.
    """
    size = min(pacing.batch_size, len(getattr(rows, method.fields[0])))
    total = pacing.epochs + pacing.warmup_epochs if pacing.epochs else 0
    blocks = _blocks(seeds, _widest(method, size))
    weights = [_of_models(penalties, block) for block in blocks]
    current = [_of_models(states, block) for block in blocks]
    orders = Orders(n_rows, len(getattr(rows, method.fields[0])), size, seeds)
    done, interrupted = 0, False
    chunks: list[NDArray[np.float32]] = [np.zeros((len(seeds), 0, len(method.figures)), np.float32)]
    try:
        drawn = orders.draw(min(total, orders.epochs)) if total else {}
        while done < total:
            stop = min(done + orders.epochs, total)
            clock = _clock(done, orders.epochs, pacing)
            span = (orders.n_batches, np.int32(stop - done))
            with nullcontext() if done else kept_programs():
                found = [
                    _advance(state, w, rows, settings, drawn[b.seed], clock, *span, method, size)
                    for b, state, w in zip(blocks, current, weights, strict=True)
                ]
            if stop < total:  # while the device is busy
                drawn = orders.draw(min(total - stop, orders.epochs))
            figures = _gather(blocks, [losses for _, losses in found])
            chunks.append(figures[:, : stop - done])
            current, done = [state for state, _ in found], stop
            if on_progress is not None:
                on_progress(done, total)
    except KeyboardInterrupt:
        interrupted = True
    losses = np.concatenate(chunks, axis=1)[:, pacing.warmup_epochs :].astype(np.float64)
    history = {name: losses[:, :, i] for i, name in enumerate(method.figures)}
    ended = jax.tree.map(lambda *leaves: _gather(blocks, leaves), *current)
    return Trained(ended, history, max(0, done - pacing.warmup_epochs), done > 0, interrupted)


@partial(jax.jit, static_argnames=("method", "size"))
def _advance(
    states: Any,
    penalties: Any,
    rows: Any,
    settings: Any,
    orders: Array,
    clock: Clock,
    n_batches: Array,
    n_epochs: Array,
    method: Method,
    size: int,
) -> tuple[Any, Array]:
    """Train for `n_epochs`, one for each of `orders`; also return figures (m, orders, figures)."""

    def one(state: Any, weights: Any) -> tuple[Any, Array]:
        def body(epoch: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
            state, figures = carry
            now = Clock(clock.age[epoch], clock.decay[epoch])
            take = partial(method.step, settings=settings, clock=now, shape=method.shape)
            shuffled = _shuffled(rows, orders[epoch], method)
            state, mean = _epoch(state, weights, shuffled, n_batches, take, method, size)
            return state, figures.at[epoch].set(mean)

        figures = jnp.zeros((len(orders), len(method.figures)), jnp.float32)
        return lax.fori_loop(0, n_epochs, body, (state, figures))

    with jax.default_matmul_precision("float32"):  # a GPU would round to ten bits
        if len(jax.tree.leaves(states)[0]) > 1:
            return jax.vmap(one)(states, penalties)
        alone = jax.tree.map(lambda leaf: leaf[0], (states, penalties))
        return jax.tree.map(lambda leaf: leaf[None], one(*alone))


def _shuffled(rows: Any, order: Array, method: Method) -> Any:
    """Return the rows in their order for one epoch: batches are then slices, which cost nothing."""
    return rows._replace(
        **{
            name: getattr(rows, name).at[order].get(mode="promise_in_bounds")
            for name in method.fields
        }
    )


def _epoch(
    state: Any,
    penalties: Any,
    shuffled: Any,
    n_batches: Array,
    take_step: Callable[..., tuple[Any, Array]],
    method: Method,
    size: int,
) -> tuple[Any, Array]:
    """Go once through the rows in their order; also return the mean figures."""

    def body(i: Array, carry: tuple[Any, Array]) -> tuple[Any, Array]:
        state, figures = carry
        batch = shuffled._replace(
            **{
                name: lax.dynamic_slice_in_dim(getattr(shuffled, name), i * size, size)
                for name in method.fields
            }
        )
        state, found = take_step(state, penalties, batch)
        return state, figures + found

    nothing = jnp.zeros(len(method.figures), jnp.float32)
    state, figures = lax.fori_loop(0, n_batches, body, (state, nothing))
    return state, figures / n_batches


def _clock(start: int, n_epochs: int, pacing: Pacing) -> Clock:
    age = np.arange(start, start + n_epochs, dtype=np.int32) - np.int32(pacing.warmup_epochs)
    part = np.clip(age / max(1, pacing.epochs), 0.0, 1.0)
    return Clock(age, (0.5 * (1 + np.cos(np.pi * part))).astype(np.float32))


# ---------------------------------------------------------------------------------------------
# Models side by side


def _widest(method: Method, size: int) -> int:
    """Return how many models may be trained side by side, as far as memory goes.

    One on a CPU: more would save little there, and would be rounded another way than a model that
    is trained alone, which training against an adversary makes larger with each step.
    """
    if jax.default_backend() == "cpu":
        return 1
    most = MOST_MODELS
    while most > 1 and most * size * method.units > MOST_UNITS:
        most //= 2
    return most


def _blocks(seeds: NDArray[np.int64], widest: int) -> list[Block]:
    """Return the models seed by seed, in blocks of few widths: each is compiled for itself.

    Examples
    --------
    >>> [(b.seed, b.models.tolist(), b.n_models) for b in _blocks(np.array([7, 7, 5, 7, 7]), 4)]
    [(7, [0, 1, 3, 4], 4), (5, [2], 1)]
    >>> [(b.models.tolist(), b.n_models) for b in _blocks(np.array([7, 7, 7, 7, 7]), 2)]
    [([0, 1], 2), ([2, 3], 2), ([4, 4], 1)]
    """
    blocks = []
    for seed in dict.fromkeys(seeds.tolist()):
        members = np.flatnonzero(seeds == seed)
        width = min(widest, _width(len(members)))
        for start in range(0, len(members), width):
            part = members[start : start + width]
            filled = np.append(part, np.repeat(part[-1:], width - len(part)))
            blocks.append(Block(seed, filled, len(part)))
    return blocks


def _width(n: int) -> int:
    """Return the next power of two, or one of the few sizes between larger ones."""
    return padded_size(n) if n > 32 else 1 << (n - 1).bit_length()


def _of_models(leaves: Any, block: Block) -> Any:
    return jax.device_put(jax.tree.map(lambda leaf: leaf[block.models], leaves))


def _gather(blocks: list[Block], leaves: Any) -> NDArray[Any]:
    """Return one array with an entry per model from one array per block."""
    parts = [np.asarray(leaf)[: block.n_models] for block, leaf in zip(blocks, leaves, strict=True)]
    position = np.concatenate([block.models[: block.n_models] for block in blocks])
    return np.concatenate(parts)[np.argsort(position)]


# ---------------------------------------------------------------------------------------------
# The order of the rows


class Orders:
    """Random orders of n rows, one for each epoch, as batches that differ by at most one row.

    `draw(n_epochs)` returns, for each seed, the next indices (epochs, slots); a slot of no row has
    the index n, that of a row of zeros. `epochs` is the most that may be asked for at once.
    """

    def __init__(self, n: int, n_padded: int, size: int, seeds: NDArray[np.int64]) -> None:
        n_batches = -(-n // size)
        length, longer = divmod(n, n_batches)
        lengths = length + (np.arange(n_batches) < longer)
        first = np.cumsum(lengths) - lengths
        self.n, self.n_slots, self.n_batches = n, -(-n_padded // size) * size, np.int32(n_batches)
        self.slots = np.arange(n) + np.repeat(np.arange(n_batches) * size - first, lengths)
        self.generators = {seed: np.random.default_rng((seed, ORDERS)) for seed in seeds.tolist()}
        share = MOST_INDICES // (self.n_slots * len(self.generators))
        self.epochs = max(1, min(EPOCHS_PER_CALL, share))

    def draw(self, n_epochs: int) -> dict[int, Array]:
        """Return the next orders of each seed on the device, in the shape for `epochs` of them."""
        return {
            seed: jax.device_put(self._draw(rng, n_epochs)) for seed, rng in self.generators.items()
        }

    def _draw(self, rng: np.random.Generator, n_epochs: int) -> NDArray[np.int32]:
        order = np.full((self.epochs, self.n_slots), self.n, dtype=np.int32)
        for epoch in range(n_epochs):
            order[epoch, self.slots] = rng.permutation(self.n)
        return order


def padded_size(n: int) -> int:
    """Return the next of few sizes (steps of 12.5 to 25 %), so that compilations are reused."""
    size = 64
    while size < n:
        size *= 2
    return next(part for part in (size * f // 8 for f in (5, 6, 7, 8)) if part >= n)


def padded(array: NDArray[np.generic]) -> Array:
    """Return an array with one entry per row on the device, zeros behind the last row."""
    extra = padded_size(len(array) + 1) - len(array)
    return jax.device_put(np.pad(array, [(0, extra)] + [(0, 0)] * (array.ndim - 1)))


# ---------------------------------------------------------------------------------------------
# Steps


class Adam(NamedTuple):
    """Adam's memory: the steps taken, running means of the gradient and of its square."""

    steps: Any
    mean: Any
    square: Any


def start_adam(parameters: NDArray[np.float32]) -> Adam:
    """Return the memory before the first step of one model."""
    return Adam(np.int32(0), np.zeros_like(parameters), np.zeros_like(parameters))


def stacked(states: Iterator[Any]) -> Any:
    """Return the states of m models as one, NumPy arrays with one entry per model."""
    return jax.tree.map(lambda *leaves: np.stack(leaves), *states)


def descend(parameters: Array, gradient: Array, adam: Adam, rate: Array) -> tuple[Array, Adam]:
    """Take one step of Adam."""
    adam = Adam(
        adam.steps + 1,
        0.9 * adam.mean + 0.1 * gradient,
        0.999 * adam.square + 0.001 * gradient**2,
    )
    move = reach(adam, rate) * (adam.mean / (1 - 0.9 ** adam.steps.astype(jnp.float32)))
    return parameters - move, adam


def reach(adam: Adam, rate: Array) -> Array:
    """Return how far a gradient of one moves each parameter: the metric of Adam's last step."""
    square = adam.square / (1 - 0.999 ** adam.steps.astype(jnp.float32))
    return rate / (jnp.sqrt(square) + 1e-8)


def descend_often(
    gradient_of: Callable[[Array], Array],
    parameters: Array,
    adam: Adam,
    rate: Array,
    n_steps: Array,
) -> tuple[Array, Adam]:
    """Take several steps of Adam on the same batch."""

    def body(_: Array, carry: tuple[Array, Adam]) -> tuple[Array, Adam]:
        parameters, adam = carry
        return descend(parameters, gradient_of(parameters), adam, rate)

    return lax.fori_loop(0, n_steps, body, (parameters, adam))


def weighted_mean(values: Array, weight: Array) -> Array:
    """Return the mean of `values`; 0 where all weights are."""
    return (values * weight).sum() / jnp.maximum(weight.sum(), 1e-12)
