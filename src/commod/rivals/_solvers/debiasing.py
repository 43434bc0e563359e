"""Adversarial debiasing: a predictor of the label trained against an adversary that reads it.

With L_P the log loss of the predictor and L_A that of the adversary, the predictor's weights move
along

    ∇L_P − proj(∇L_P onto ∇L_A) − strength ∇L_A

and the adversary's along ∇L_A: the first two terms never help the adversary, the third hurts it.
The adversary is linear (or has hidden layers) on t = sigmoid((1 + |c|) logit), c being learned too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from commod._solvers.problem import DebiasingProblem, DebiasingSchedule, Layers
from commod._solvers.training.loop import (
    Adam,
    Clock,
    Method,
    descend,
    padded,
    stacked,
    start_adam,
    weighted_mean,
)
from commod._solvers.training.loop import train as train_models
from commod._solvers.training.networks import (
    group_error,
    label_error,
    layer_lengths,
    layers,
    on_terms,
    run_layers,
    start_layers,
)

__all__ = ["combine_gradients", "train"]

HISTORY = ("label", "adversary", "change_rate")


class Shape(NamedTuple):
    """What the compiled program depends on besides the sizes of its arrays.

    `pieces` are the lengths of the parts of the predictor's gradient that are projected each by
    itself; one for all of it, or one for each matrix and bias.
    """

    sizes: tuple[int, ...]
    adversary_sizes: tuple[int, ...]
    sees_label: bool
    pieces: tuple[int, ...]


class Rows(NamedTuple):
    """The training rows on the device, padded; `numeric` to `offset` as in `DebiasingProblem`."""

    numeric: Array
    codes: Array
    code_mean: Array
    code_scale: Array
    label: Array
    group: Array
    decision: Array
    weight: Array
    adversary_weight: Array
    offset: Any


class Settings(NamedTuple):
    """Numbers of the schedule that a step needs."""

    rate: Any
    adversary_rate: Any


class State(NamedTuple):
    """Everything one model carries from step to step; the adversary's first number is c."""

    predictor: Any
    predictor_adam: Adam
    adversary: Any
    adversary_adam: Adam


def train(
    problem: DebiasingProblem,
    strengths: NDArray[np.float32],
    seeds: NDArray[np.int64],
    schedule: DebiasingSchedule,
    on_progress: Callable[[int, int], None] | None = None,
) -> Layers:
    """Return m predictors of ReLU layers whose output is the logit of the positive label."""
    sizes = (problem.n_terms, *schedule.hidden, 1)
    lengths = layer_lengths(sizes)
    shape = Shape(
        sizes=sizes,
        adversary_sizes=(
            3 if problem.adversary_sees_label else 1,
            *schedule.adversary_hidden,
            problem.n_groups,
        ),
        sees_label=problem.adversary_sees_label,
        pieces=(sum(lengths),) if schedule.projects_whole else lengths,
    )
    method = Method(
        step=_step,
        shape=shape,
        figures=HISTORY,
        fields=(
            *("numeric", "codes", "label", "group", "decision"),
            *("weight", "adversary_weight"),
        ),
        units=max(*sizes[1:], *shape.adversary_sizes),
    )
    trained = train_models(
        method,
        _initial_states(seeds, shape),
        strengths,
        seeds,
        _rows(problem),
        len(problem.label),
        Settings(
            rate=np.float32(schedule.learning_rate),
            adversary_rate=np.float32(schedule.adversary_learning_rate),
        ),
        schedule,
        on_progress,
    )
    return Layers(
        layers=layers(np.asarray(trained.states.predictor, dtype=np.float64), sizes),
        history=trained.history,
        epochs_done=trained.epochs_done,
        interrupted=trained.interrupted,
    )


def _rows(problem: DebiasingProblem) -> Rows:
    return Rows(
        numeric=padded(problem.numeric),
        codes=padded(problem.codes),
        code_mean=jax.device_put(problem.code_mean),
        code_scale=jax.device_put(problem.code_scale),
        label=padded(problem.label),
        group=padded(problem.group),
        decision=padded(problem.decision),
        weight=padded(problem.weight),
        adversary_weight=padded(problem.adversary_weight),
        offset=np.float32(problem.offset),
    )


def _initial_states(seeds: NDArray[np.int64], shape: Shape) -> State:
    return stacked(_initial_state(int(seed), shape) for seed in seeds)


def _initial_state(seed: int, shape: Shape) -> State:
    rng = np.random.default_rng(seed)
    predictor = start_layers(rng, shape.sizes)
    guess = start_layers(rng, shape.adversary_sizes)
    adversary = np.append(np.float32(1), guess)
    return State(predictor, start_adam(predictor), adversary, start_adam(adversary))


# ---------------------------------------------------------------------------------------------
# Losses and their gradients


def _label_loss(logit: Array, batch: Rows) -> Array:
    """Return L_P, a weighted mean."""
    return weighted_mean(label_error(logit, batch.label), batch.weight)


def _adversary_loss(adversary: Array, logit: Array, batch: Rows, shape: Shape) -> Array:
    """Return L_A: the cross-entropy of the group guessed from the score (and y)."""
    t = jax.nn.sigmoid((1 + jnp.abs(adversary[0])) * logit)
    x = t[:, None]
    if shape.sees_label:
        x = jnp.column_stack([t, t * batch.label, t * (1 - batch.label)])
    guesses = run_layers(
        adversary[1:], shape.adversary_sizes, lambda matrix, bias: x @ matrix + bias
    )
    return weighted_mean(group_error(guesses.T, batch.group), batch.adversary_weight)


def combine_gradients(
    of_label: Array, of_adversary: Array, strength: Array | float, pieces: tuple[int, ...]
) -> Array:
    """Return ∇L_P − proj(∇L_P onto ∇L_A) − strength ∇L_A; each of `pieces` is projected by itself.

    Examples
    --------
    >>> combine_gradients(jnp.array([3.0, 4.0]), jnp.array([1.0, 0.0]), 0.5, (2,))
    Array([-0.5,  4. ], dtype=float32)
    """
    ends = np.cumsum(pieces)[:-1].tolist()
    projected = []
    for p, a in zip(jnp.split(of_label, ends), jnp.split(of_adversary, ends), strict=True):
        length = (a**2).sum()
        share = jnp.where(length > 0, (p * a).sum() / jnp.where(length > 0, length, 1.0), 0.0)
        projected.append(p - (share + strength) * a)
    return jnp.concatenate(projected)


# ---------------------------------------------------------------------------------------------
# The step


def _step(
    state: State, penalties: Array, batch: Rows, settings: Settings, clock: Clock, shape: Shape
) -> tuple[State, Array]:
    """Move the adversary, then the predictor; while warming up that one sees labels only.

    `penalties` is the strength.
    """

    def predict(predictor: Array) -> Array:
        def enter(matrix: Array, bias: Array) -> Array:
            return on_terms(matrix, bias, batch)

        return run_layers(predictor, shape.sizes, enter)[:, 0]

    logit, pull_back = jax.vjp(predict, state.predictor)  # one way there, two ways back
    adversary, adversary_adam = descend(
        state.adversary,
        jax.grad(_adversary_loss)(state.adversary, logit, batch, shape),
        state.adversary_adam,
        clock.decay * settings.adversary_rate,
    )
    label, by_label = jax.value_and_grad(_label_loss)(logit, batch)
    guess, by_guess = jax.value_and_grad(_adversary_loss, argnums=1)(adversary, logit, batch, shape)
    (of_label,), (of_adversary,) = pull_back(by_label), pull_back(by_guess)
    fair = combine_gradients(of_label, of_adversary, penalties, shape.pieces)
    predictor, predictor_adam = descend(
        state.predictor,
        jnp.where(clock.age >= 0, fair, of_label),
        state.predictor_adam,
        clock.decay * settings.rate,
    )
    turned = ((logit > batch.offset) != batch.decision).astype(logit.dtype)
    figures = jnp.stack([label, guess, weighted_mean(turned, batch.weight)])
    return State(predictor, predictor_adam, adversary, adversary_adam), figures
