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
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from commod._solvers.problem import Layers, Penalties, Problem, Schedule, Solution
from commod._solvers.training.loop import (
    Adam,
    Clock,
    Method,
    Trained,
    descend,
    descend_often,
    padded,
    stacked,
    start_adam,
    train,
    weighted_mean,
)
from commod._solvers.training.networks import (
    Form,
    concept_penalties,
    group_error,
    label_error,
    layers,
    run_across,
    shrink,
    split_bottleneck,
    start_layers,
)

__all__ = ["train_concepts", "train_layers"]

HISTORY = ("label", "adversary", "ratio", "sparsity", "diversity", "change_rate")
LAYERS_HISTORY = ("label", "adversary", "ratio", "change_rate")
EXTRA_WEIGHT = 4.0  # times λ_fair, while the adversary is as good as on the base model
MEMORY = 0.95  # of the running mean of the adversary's advantage
NO_ADVANTAGE = 1e-3  # nats: below, the base model tells nothing about the group

Report = Callable[[int, int], None]


class Shape(NamedTuple):
    """What the compiled program depends on besides the sizes of its arrays; `form` is r's.

    `single_step` of the adversary needs no loop, which would cost as much as a tenth of a step.
    """

    form: Form
    n_groups: int
    hidden: tuple[int, ...]
    sees_label: bool
    single_step: bool = False

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
    surprise: Array
    margin_scale: Any
    offset: Any


class Settings(NamedTuple):
    """The numbers of the schedule that a step needs."""

    ramp: Any
    rate: Any
    adversary_steps: Any
    adversary_rate: Any
    adaptive: Any


class Weights(NamedTuple):
    """The penalties of one model, scalars."""

    fair: Any
    ratio: Any
    sparsity: Any
    diversity: Any


class State(NamedTuple):
    """Everything one model carries from step to step."""

    ratio: Any
    ratio_adam: Adam
    adversary: Any
    adversary_adam: Adam
    advantage: Any
    highest_advantage: Any


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
    form = Form(0, (problem.n_terms, *schedule.hidden, 1))
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
    shape = Shape(
        form=form,
        n_groups=problem.n_groups,
        hidden=schedule.adversary_hidden,
        sees_label=problem.adversary_sees_label,
        single_step=schedule.adversary_steps == 1,
    )
    trained = train(
        _method(shape),
        _initial_states(seeds, shape),
        Weights(**vars(penalties)),
        seeds,
        _rows(problem),
        len(problem.margin),
        _settings(schedule),
        schedule,
        on_progress,
    )
    return trained, np.asarray(trained.states.ratio, dtype=np.float64)


def _method(shape: Shape) -> Method:
    return Method(
        step=_step,
        shape=shape,
        figures=HISTORY if shape.form.n_concepts else LAYERS_HISTORY,
        fields=(
            *("numeric", "codes", "margin", "label", "group"),
            *("weight", "adversary_weight", "ratio_weight", "surprise"),
        ),
        units=max(*shape.adversary_sizes, *shape.form.sizes[1:], 1),
    )


def _rows(problem: Problem) -> Rows:
    # the adversary sees l in standard deviations of z: its speed must not depend on f's confidence
    centred = problem.margin - np.average(problem.margin, weights=problem.weight)
    spread = float(np.sqrt(np.average(centred**2, weights=problem.weight)))
    return Rows(
        numeric=padded(problem.numeric),
        codes=padded(problem.codes),
        code_mean=jax.device_put(problem.code_mean),
        code_scale=jax.device_put(problem.code_scale),
        margin=padded(problem.margin),
        label=padded(problem.label),
        group=padded(problem.group),
        weight=padded(problem.weight),
        adversary_weight=padded(problem.adversary_weight),
        ratio_weight=padded(problem.ratio_weight),
        surprise=padded(_surprise(problem)),
        margin_scale=np.float32(spread if spread > 0 else 1.0),
        offset=np.float32(problem.offset),
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
        ramp=np.float32(max(1, min(schedule.ramp_epochs, schedule.epochs))),
        rate=np.float32(schedule.learning_rate),
        adversary_steps=np.int32(schedule.adversary_steps),
        adversary_rate=np.float32(schedule.adversary_learning_rate),
        adaptive=np.bool_(schedule.adaptive_fairness),
    )


def _initial_states(seeds: NDArray[np.int64], shape: Shape) -> State:
    return stacked(_initial_state(int(seed), shape) for seed in seeds)


def _initial_state(seed: int, shape: Shape) -> State:
    """Start at r = 1 exactly."""
    rng = np.random.default_rng(seed)
    ratio = shape.form.start(rng, 1.0)
    adversary = start_layers(rng, shape.adversary_sizes)
    zero = np.float32(0)
    return State(ratio, start_adam(ratio), adversary, start_adam(adversary), zero, zero)


# ---------------------------------------------------------------------------------------------
# Losses


def _adversary_loss(adversary: Array, edited: Array, batch: Rows, shape: Shape) -> Array:
    """Return L_S: the cross-entropy of the group guessed from l (and y), a weighted mean."""
    x = (edited / batch.margin_scale)[None]
    if shape.sees_label:
        x = jnp.concatenate([x, batch.label[None]])
    guesses = run_across(adversary, shape.adversary_sizes, x)
    return weighted_mean(group_error(guesses, batch.group), batch.adversary_weight)


def _ratio_loss(
    ratio: Array, adversary: Array, batch: Rows, weights: Weights, shape: Shape
) -> tuple[Array, Array]:
    """Return the loss of the ratio, its L1 on W left to the proximal step, and its parts."""
    r = shape.form.run(ratio, batch)
    edited = r * batch.margin
    label = weighted_mean(label_error(edited + batch.offset, batch.label), batch.weight)
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

    adversary_rate = clock.decay * settings.adversary_rate
    adversary, adversary_adam = state.adversary, state.adversary_adam
    if shape.single_step:
        gradient = gradient_of(adversary)
        adversary, adversary_adam = descend(adversary, gradient, adversary_adam, adversary_rate)
    else:
        adversary, adversary_adam = descend_often(
            gradient_of, adversary, adversary_adam, adversary_rate, settings.adversary_steps
        )
    ramped = weights.fair * jnp.clip((clock.age + 1) / settings.ramp, 0.0, 1.0)
    weights = weights._replace(fair=ramped * _fair_weight(state, settings))
    gradient, parts = jax.grad(_ratio_loss, has_aux=True)(
        state.ratio, adversary, batch, weights, shape
    )
    rate = clock.decay * settings.rate
    ratio, ratio_adam = descend(state.ratio, gradient, state.ratio_adam, rate)
    if shape.form.n_concepts:
        ratio = shrink(ratio, ratio_adam, rate, weights.sparsity, shape.form.n_concepts)
    ratio, ratio_adam = jax.tree.map(
        lambda new, old: jnp.where(clock.age >= 0, new, old),
        (ratio, ratio_adam),
        (state.ratio, state.ratio_adam),
    )
    advantage = weighted_mean(batch.surprise, batch.adversary_weight) - parts[1]
    advantage = MEMORY * state.advantage + (1 - MEMORY) * advantage
    highest = jnp.maximum(state.highest_advantage, advantage)
    return State(ratio, ratio_adam, adversary, adversary_adam, advantage, highest), parts


def _fair_weight(state: State, settings: Settings) -> Array:
    """Return what λ_fair is multiplied by: 5 at the base model, 1 where the group is hidden.

    With I the adversary's advantage and I₀ that on the base model, the ratio descends along
    λ_fair (I + 2 I²/I₀): a constant weight alone has nothing to hold it between "no change" and
    "far too many".
    """
    left = state.advantage / jnp.maximum(state.highest_advantage, NO_ADVANTAGE)
    return 1 + jnp.where(settings.adaptive, EXTRA_WEIGHT * jnp.clip(left, 0.0, 1.0), 0.0)
