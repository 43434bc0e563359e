"""FRAPPE's training of an additive term: stay near the base model, bring the groups' scores close.

With z the margin of the base model, t its threshold, f = sigmoid(z + logit t) its score and
q = sigmoid(z + T(x) + logit t) the new one, T minimises

    mean KL(f ‖ q) + strength Σ_lines mean_groups MMD²(q of the group, q of all others)

with the Gaussian kernel k(a, b) = exp(−(a − b)²/length²). Scores lie in [0, 1], where k is a short
Fourier series: MMD² is a sum of squared differences between mean waves, exact to the rounding of
float32, and its cost grows with the rows, not with their pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from commod._solvers.problem import AdditivePenalties, AdditiveProblem, Layers, Pacing, Solution
from commod._solvers.training.loop import (
    Adam,
    Clock,
    Method,
    Trained,
    descend,
    padded,
    stacked,
    start_adam,
    train,
    weighted_mean,
)
from commod._solvers.training.networks import (
    Form,
    concept_penalties,
    label_error,
    layers,
    shrink,
    split_bottleneck,
)

__all__ = ["train_concepts", "train_layers"]

HISTORY = ("divergence", "discrepancy", "change_rate")
CONCEPT_HISTORY = ("sparsity", "diversity")
NEGLIGIBLE = 4.2  # exp(−4.2²) is 2e-8, below the rounding of float32
FEWEST_PAIRS = 0.25  # of all pairs of a side: less, and it has hardly two rows in this batch

Report = Callable[[int, int], None]


class Shape(NamedTuple):
    """What the compiled program depends on besides the sizes of its arrays; `form` is T's."""

    form: Form
    n_lines: int
    n_groups: int


class Rows(NamedTuple):
    """The training rows on the device, padded; `numeric` to `offset` as in `AdditiveProblem`."""

    numeric: Array
    codes: Array
    code_mean: Array
    code_scale: Array
    margin: Array
    cell: Array
    weight: Array
    fairness_weight: Array
    offset: Any


class Waves(NamedTuple):
    """k(a, b) = Σ size cos(frequency (a − b)) + a constant, which cancels in MMD²; shape (w,)."""

    frequency: Any
    size: Any


class Settings(NamedTuple):
    """What every step needs; `own_share` (2, lines, groups) is explained in `_discrepancy`."""

    rate: Any
    waves: Waves
    own_share: Any


class Weights(NamedTuple):
    """The penalties of one model, scalars."""

    fair: Any
    sparsity: Any
    diversity: Any


class State(NamedTuple):
    """Everything one model carries from step to step."""

    term: Any
    adam: Adam


def train_layers(
    problem: AdditiveProblem,
    penalties: AdditivePenalties,
    seeds: NDArray[np.int64],
    pacing: Pacing,
    hidden: tuple[int, ...],
    on_progress: Report | None = None,
) -> Layers:
    """Return m terms of ReLU layers that end in one unit; none hidden makes T linear."""
    form = Form(0, (problem.n_terms, *hidden, 1))
    trained, flat = _train(problem, penalties, seeds, pacing, form, on_progress)
    return Layers(
        layers=layers(flat, form.sizes),
        history=trained.history,
        epochs_done=trained.epochs_done,
        interrupted=trained.interrupted,
    )


def train_concepts(
    problem: AdditiveProblem,
    penalties: AdditivePenalties,
    seeds: NDArray[np.int64],
    pacing: Pacing,
    n_concepts: int,
    on_progress: Report | None = None,
) -> Solution:
    """Return m terms T = intercept + contributions @ (W @ x)."""
    form = Form(n_concepts, (problem.n_terms,))
    trained, flat = _train(problem, penalties, seeds, pacing, form, on_progress)
    concepts, contributions, intercept = split_bottleneck(flat, n_concepts)
    return Solution(
        weights=concepts,
        contributions=contributions if trained.begun else np.zeros_like(contributions),
        intercept=intercept,
        history=trained.history,
        epochs_done=trained.epochs_done,
        interrupted=trained.interrupted,
    )


def _train(
    problem: AdditiveProblem,
    penalties: AdditivePenalties,
    seeds: NDArray[np.int64],
    pacing: Pacing,
    form: Form,
    on_progress: Report | None,
) -> tuple[Trained, NDArray[np.float64]]:
    """Return the training and the parameters of T, one row per model."""
    rows, shape = _rows(problem), Shape(form, problem.n_lines, problem.n_groups)
    settings = _settings(rows, shape, pacing.learning_rate, problem.kernel_length)
    method = Method(
        step=_step,
        shape=shape,
        figures=HISTORY + CONCEPT_HISTORY if form.n_concepts else HISTORY,
        fields=("numeric", "codes", "margin", "cell", "weight", "fairness_weight"),
        units=max(2 * len(settings.waves.size), *form.sizes[1:], 1),
    )
    trained = train(
        method,
        _initial_states(seeds, shape),
        Weights(**vars(penalties)),
        seeds,
        rows,
        len(problem.margin),
        settings,
        pacing,
        on_progress,
    )
    return trained, np.asarray(trained.states.term, dtype=np.float64)


def _rows(problem: AdditiveProblem) -> Rows:
    return Rows(
        numeric=padded(problem.numeric),
        codes=padded(problem.codes),
        code_mean=jax.device_put(problem.code_mean),
        code_scale=jax.device_put(problem.code_scale),
        margin=padded(problem.margin),
        cell=padded(problem.cell),
        weight=padded(problem.weight),
        fairness_weight=padded(problem.fairness_weight),
        offset=np.float32(problem.offset),
    )


def _settings(rows: Rows, shape: Shape, rate: float, kernel_length: float) -> Settings:
    return Settings(np.float32(rate), _waves(kernel_length), _own_share(rows, shape))


def _own_share(rows: Rows, shape: Shape) -> NDArray[np.float32]:
    """Return Σ w² / (Σ w)² of each group and of all others, shape (2, lines, groups)."""
    cell, weight = np.asarray(rows.cell), np.asarray(rows.fairness_weight, dtype=np.float64)
    n_cells = shape.n_lines * shape.n_groups
    total, squares = (
        np.stack([of_group, of_group @ (1 - np.eye(shape.n_groups))])
        for of_group in (
            np.bincount(cell, w, n_cells).reshape(shape.n_lines, shape.n_groups)
            for w in (weight, weight**2)
        )
    )
    return (squares / np.maximum(total**2, 1e-12)).astype(np.float32)


def _waves(length: float) -> Waves:
    """Return the kernel on [0, 1] as a Fourier series over a period that its tails do not fill."""
    period = 1 + NEGLIGIBLE * length
    n_waves = int(np.ceil(NEGLIGIBLE * period / (np.pi * length)))
    half = np.arange(1, n_waves + 1) * np.pi / period
    size = 2 * np.sqrt(np.pi) * length / period * np.exp(-((length * half) ** 2))
    return Waves((2 * half).astype(np.float32), size.astype(np.float32))


def _initial_states(seeds: NDArray[np.int64], shape: Shape) -> State:
    return stacked(_initial_state(int(seed), shape) for seed in seeds)


def _initial_state(seed: int, shape: Shape) -> State:
    """Start at T = 0 exactly."""
    term = shape.form.start(np.random.default_rng(seed), 0.0)
    return State(term, start_adam(term))


# ---------------------------------------------------------------------------------------------
# Losses


def _loss(
    term: Array, batch: Rows, weights: Weights, settings: Settings, shape: Shape
) -> tuple[Array, Array]:
    """Return the loss of T, an L1 on W left to the proximal step, and its parts."""
    logit = batch.margin + batch.offset
    edited = logit + shape.form.run(term, batch)
    divergence = weighted_mean(_divergence(logit, edited), batch.weight)
    discrepancy = _discrepancy(jax.nn.sigmoid(edited), batch, settings, shape)
    turned = (edited > batch.offset) != (logit > batch.offset)
    changed = weighted_mean(turned.astype(edited.dtype), batch.weight)
    loss = divergence + weights.fair * discrepancy
    if not shape.form.n_concepts:
        return loss, jnp.stack([divergence, discrepancy, changed])
    path, alike = concept_penalties(term, shape.form.n_concepts)
    loss += weights.sparsity * path + weights.diversity * alike
    return loss, jnp.stack([divergence, discrepancy, changed, path, alike])


def _divergence(logit: Array, edited: Array) -> Array:
    """Return KL(f ‖ q) from the two logits: the cross-entropy of q less that of f."""
    score = jax.nn.sigmoid(logit)
    return label_error(edited, score) - label_error(logit, score)


def _discrepancy(scores: Array, batch: Rows, settings: Settings, shape: Shape) -> Array:
    """Return the batch's estimate of MMD² over the whole table, diagonal included.

    With its own diagonal, a batch with few rows of a group would mostly be told to make all scores
    alike: a row is at distance 0 from itself alone. So pairs of a row with itself count by the
    share `own_share` they have in the whole table, and a group that has hardly two rows in the
    batch is left out. On the whole table this is the usual biased estimator.
    """
    waves = settings.waves
    angle = scores[:, None] * waves.frequency
    features = jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], axis=1)
    features *= jnp.tile(jnp.sqrt(waves.size), 2)
    weight = _members(batch, shape)
    total, squares = _side_weights(weight, shape)
    mean = _sides(weight.T @ features, shape) / jnp.maximum(total, 1e-12)[..., None]
    gap = ((mean[0] - mean[1]) ** 2).sum(axis=-1)

    pairs = total**2 - squares
    enough = pairs > FEWEST_PAIRS * total**2
    own = (mean**2).sum(axis=-1)  # mean kernel over pairs, a row with itself included
    alone = waves.size.sum()  # the kernel of a row with itself
    others = own - (alone - own) * squares / jnp.where(enough, pairs, 1.0)
    gap += (others + (alone - others) * settings.own_share - own).sum(axis=0)
    there = enough.all(axis=0)
    found = jnp.where(there, gap, 0.0).sum(axis=1)
    return (found / jnp.maximum(there.sum(axis=1), 1)).sum()


def _members(batch: Rows, shape: Shape) -> Array:
    """Return the weight of each row in its cell, zero in the others, shape (batch, cells)."""
    cells = jax.nn.one_hot(batch.cell, shape.n_lines * shape.n_groups)
    return cells * batch.fairness_weight[:, None]


def _side_weights(weight: Array, shape: Shape) -> tuple[Array, Array]:
    """Return Σ w and Σ w² of each group and of all others, both (2, lines, groups)."""
    return _sides(weight.sum(axis=0), shape), _sides((weight**2).sum(axis=0), shape)


def _sides(values: Array, shape: Shape) -> Array:
    """Return sums by cell (cells, …) as those of each group and of all others in its line.

    Shape (2, lines, groups, …).
    """
    of_group = values.reshape(shape.n_lines, shape.n_groups, *values.shape[1:])
    # not the total less one's own: that would round small groups
    is_other = 1 - np.eye(shape.n_groups, dtype=np.float32)
    return jnp.stack([of_group, jnp.einsum("gh,lh...->lg...", is_other, of_group)])


# ---------------------------------------------------------------------------------------------
# The step


def _step(
    state: State, weights: Weights, batch: Rows, settings: Settings, clock: Clock, shape: Shape
) -> tuple[State, Array]:
    gradient, parts = jax.grad(_loss, has_aux=True)(state.term, batch, weights, settings, shape)
    rate = clock.decay * settings.rate
    term, adam = descend(state.term, gradient, state.adam, rate)
    if shape.form.n_concepts:
        term = shrink(term, adam, rate, weights.sparsity, shape.form.n_concepts)
    return State(term, adam), parts
