"""The paper's min–max training of the ratio r against an adversary that guesses the group.

With z the margin of the base model, t its threshold, l = r(x)·z the edited margin and h the
adversary, r minimises

    L_Y(l + logit t, y) − λ_fair L_S(h(l), s) + λ_ratio mean (r − 1)² + λ_sparsity Σ_j |v_j| ‖W_j‖₁
    + λ_diversity mean_{i<j} cos(W_i, W_j)²,      r(x) = b + Σ_j v_j (W_j · x),

while h minimises L_S; λ_fair shrinks with the adversary's advantage (`_fair_weight`). Both learn by
Adam on the same minibatches, several steps of h for each of r. Where r is layers of units instead,
there are no concepts, and the loss ends with λ_ratio.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from numpy.typing import NDArray

from commod._solvers.networks import (
    Form,
    concept_penalties,
    layers,
    run_layers,
    shrink,
    split_bottleneck,
    start_layers,
)
from commod._solvers.problem import Layers, Penalties, Problem, Schedule, Solution
from commod._solvers.training import (
    Clock,
    Method,
    Trained,
    adam,
    descend,
    descend_often,
    padded,
    train,
    weighted_mean,
)

__all__ = ["train_concepts", "train_layers"]

HISTORY = ("label", "adversary", "ratio", "sparsity", "diversity", "change_rate")
LAYERS_HISTORY = ("label", "adversary", "ratio", "change_rate")
EXTRA_WEIGHT = 4.0  # times λ_fair, while the adversary is as good as on the base model
MEMORY = 0.95  # of the running mean of the adversary's advantage
NO_ADVANTAGE = 1e-3  # nats: below, the base model tells nothing about the group

Report = Callable[[int, int], None]


class Shape(NamedTuple):
    """What the compiled program depends on besides the sizes of its arrays; `form` is r's."""

    form: Form
    n_groups: int
    hidden: tuple[int, ...]
    sees_label: bool

    @property
    def adversary_sizes(self) -> tuple[int, ...]:
        """Return the sizes of the adversary's layers, from its inputs to its guesses."""
        return (1 + self.sees_label, *self.hidden, self.n_groups)


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


class Settings(NamedTuple):
    """The numbers of the schedule that a step needs."""

    ramp: Array
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


def train_concepts(
    problem: Problem,
    penalties: Penalties,
    seeds: NDArray[np.int64],
    schedule: Schedule,
    on_progress: Report | None = None,
) -> Solution:
    """Return m ratios of concepts, one for each entry of `penalties` and of `seeds`.

    `on_progress(done, total)` is called between chunks of epochs. A keyboard interrupt ends the
    training after the last finished chunk and gives back what was learned so far.
    """
    form = Form(schedule.n_concepts, (problem.n_terms,))
    trained, flat = _train(problem, penalties, seeds, schedule, form, on_progress)
    concepts, contributions, intercept = split_bottleneck(flat, form.n_concepts)
    return Solution(
        weights=concepts,
        contributions=contributions if trained.begun else np.zeros_like(contributions),
        intercept=intercept,
        history=trained.history,
        epochs_done=trained.epochs_done,
        interrupted=trained.interrupted,
    )


def train_layers(
    problem: Problem,
    penalties: Penalties,
    seeds: NDArray[np.int64],
    schedule: Schedule,
    on_progress: Report | None = None,
) -> Layers:
    """Return m ratios of ReLU layers that end in one unit; none hidden makes r linear.

    As `train_concepts`; `penalties` on concepts are not looked at.
    """
    form = Form(0, (problem.n_terms, *schedule.ratio_hidden, 1))
    trained, flat = _train(problem, penalties, seeds, schedule, form, on_progress)
    return Layers(
        layers=layers(flat, form.sizes),
        history=trained.history,
        epochs_done=trained.epochs_done,
        interrupted=trained.interrupted,
    )


def _train(
    problem: Problem,
    penalties: Penalties,
    seeds: NDArray[np.int64],
    schedule: Schedule,
    form: Form,
    on_progress: Report | None,
) -> tuple[Trained, NDArray[np.float64]]:
    """Return the training and the parameters of r, one row per model."""
    shape = Shape(form, problem.n_groups, schedule.adversary_hidden, problem.adversary_sees_label)
    states = _initial_states(jnp.asarray(seeds, dtype=jnp.uint32), shape)
    weights = Weights(*(jnp.asarray(a) for a in vars(penalties).values()))
    trained = train(
        _method(shape), states, weights, _rows(problem), _settings(schedule), schedule, on_progress
    )
    return trained, np.asarray(trained.states.ratio, dtype=np.float64)


def _method(shape: Shape) -> Method:
    return Method(
        step=_step,
        shape=shape,
        figures=HISTORY if shape.form.n_concepts else LAYERS_HISTORY,
        values=("numeric", "codes", "margin", "label", "group", "surprise"),
        weights=("weight", "adversary_weight", "ratio_weight"),
    )


def _rows(problem: Problem) -> Rows:
    # the adversary sees l in standard deviations of z: its speed must not depend on f's confidence
    centred = problem.margin - np.average(problem.margin, weights=problem.weight)
    spread = float(np.sqrt(np.average(centred**2, weights=problem.weight)))
    return Rows(
        numeric=padded(problem.numeric),
        codes=padded(problem.codes),
        code_mean=jnp.asarray(problem.code_mean),
        code_scale=jnp.asarray(problem.code_scale),
        margin=padded(problem.margin),
        label=padded(problem.label),
        group=padded(problem.group),
        weight=padded(problem.weight),
        adversary_weight=padded(problem.adversary_weight),
        ratio_weight=padded(problem.ratio_weight),
        is_row=padded(np.ones(len(problem.margin), dtype=bool)),
        margin_scale=jnp.float32(spread if spread > 0 else 1.0),
        offset=jnp.float32(problem.offset),
        surprise=padded(_surprise(problem)),
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


def _settings(schedule: Schedule) -> Settings:
    return Settings(
        ramp=jnp.int32(max(1, min(schedule.ramp_epochs, schedule.epochs))),
        rate=jnp.float32(schedule.learning_rate),
        adversary_steps=jnp.int32(schedule.adversary_steps),
        adversary_rate=jnp.float32(schedule.adversary_learning_rate),
        adaptive=jnp.asarray(schedule.adaptive_fairness),
    )


@partial(jax.jit, static_argnames=("shape",))
def _initial_states(seeds: Array, shape: Shape) -> State:
    return jax.vmap(partial(_initial_state, shape=shape))(seeds)


def _initial_state(seed: Array, shape: Shape) -> State:
    """Start at r = 1 exactly."""
    key, ratio_key, adversary_key = jax.random.split(jax.random.key(seed), 3)
    ratio = shape.form.start(ratio_key, 1.0)
    adversary = start_layers(adversary_key, shape.adversary_sizes)
    zero = jnp.zeros(())
    return State(ratio, adam.init(ratio), adversary, adam.init(adversary), zero, zero, key)


# ---------------------------------------------------------------------------------------------
# Losses


def _adversary_loss(adversary: Array, edited: Array, batch: Rows, shape: Shape) -> Array:
    """Return L_S: the cross-entropy of the group guessed from l (and y), a weighted mean."""
    x = (edited / batch.margin_scale)[:, None]
    if shape.sees_label:
        x = jnp.column_stack([x, batch.label])
    guesses = run_layers(adversary, shape.adversary_sizes, lambda matrix, bias: x @ matrix + bias)
    losses = optax.softmax_cross_entropy_with_integer_labels(guesses, batch.group)
    return weighted_mean(losses, batch.adversary_weight)


def _ratio_loss(
    ratio: Array, adversary: Array, batch: Rows, weights: Weights, shape: Shape
) -> tuple[Array, Array]:
    """Return the loss of the ratio, its L1 on W left to the proximal step, and its parts."""
    r = shape.form.run(ratio, batch)
    edited = r * batch.margin
    errors = optax.sigmoid_binary_cross_entropy(edited + batch.offset, batch.label)
    label = weighted_mean(errors, batch.weight)
    guess = _adversary_loss(adversary, edited, batch, shape)
    distance = weighted_mean((r - 1) ** 2, batch.ratio_weight)
    loss = label - weights.fair * guess + weights.ratio * distance
    changed = weighted_mean((r < 0).astype(r.dtype), batch.weight)
    if not shape.form.n_concepts:
        return loss, jnp.stack([label, guess, distance, changed])
    path, alike = concept_penalties(ratio, shape.form.n_concepts)
    loss = loss + weights.sparsity * path + weights.diversity * alike
    return loss, jnp.stack([label, guess, distance, path, alike, changed])


# ---------------------------------------------------------------------------------------------
# The step


def _step(
    state: State, weights: Weights, batch: Rows, settings: Settings, clock: Clock, shape: Shape
) -> tuple[State, Array]:
    """Take several steps of the adversary, then one of the ratio (none while warming up)."""
    edited = shape.form.run(state.ratio, batch) * batch.margin

    def gradient_of(adversary: Array) -> Array:
        return jax.grad(_adversary_loss)(adversary, edited, batch, shape)

    adversary, adversary_optimizer = descend_often(
        gradient_of,
        state.adversary,
        state.adversary_optimizer,
        clock.decay * settings.adversary_rate,
        settings.adversary_steps,
    )
    ramped = weights.fair * jnp.clip((clock.age + 1) / settings.ramp, 0.0, 1.0)
    weights = weights._replace(fair=ramped * _fair_weight(state, settings))
    gradient, parts = jax.grad(_ratio_loss, has_aux=True)(
        state.ratio, adversary, batch, weights, shape
    )
    rate = clock.decay * settings.rate
    ratio, optimizer = descend(state.ratio, gradient, state.ratio_optimizer, rate)
    if shape.form.n_concepts:
        ratio = shrink(ratio, optimizer, rate, weights.sparsity, shape.form.n_concepts)
    ratio, optimizer = jax.tree.map(
        lambda new, old: jnp.where(clock.age >= 0, new, old),
        (ratio, optimizer),
        (state.ratio, state.ratio_optimizer),
    )
    advantage = weighted_mean(batch.surprise, batch.adversary_weight) - parts[1]
    advantage = MEMORY * state.advantage + (1 - MEMORY) * advantage
    highest = jnp.maximum(state.highest_advantage, advantage)
    return State(
        ratio, optimizer, adversary, adversary_optimizer, advantage, highest, state.key
    ), parts


def _fair_weight(state: State, settings: Settings) -> Array:
    """Return what λ_fair is multiplied by: 5 at the base model, 1 where the group is hidden.

    With I the adversary's advantage and I₀ that on the base model, the ratio descends along
    λ_fair (I + 2 I²/I₀): a constant weight alone has nothing to hold it between "no change" and
    "far too many".
    """
    left = state.advantage / jnp.maximum(state.highest_advantage, NO_ADVANTAGE)
    return 1 + jnp.where(settings.adaptive, EXTRA_WEIGHT * jnp.clip(left, 0.0, 1.0), 0.0)
