"""Adversarial debiasing: train a predictor of the label against an adversary that reads its score.

With L_P the log loss of the predictor and L_A that of the adversary, the predictor's weights move
along

    ∇L_P − proj(∇L_P onto ∇L_A) − strength ∇L_A

and the adversary's along ∇L_A: the first two terms never help the adversary, the third hurts it.
The adversary is linear (or has hidden layers) on t = sigmoid((1 + |c|) logit); it learns c too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from commod._solvers.problem import DebiasingProblem, DebiasingSchedule, TrainedLayers
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
    group_cross_entropy,
    initial_layers,
    label_cross_entropy,
    layer_lengths,
    linear_in_terms,
    trained_layers,
)

HISTORY = ("label", "adversary", "change_rate")
ROW_FIELDS = ("numeric", "codes", "label", "group", "decision", "weight", "adversary_weight")


class DebiasingSpec(NamedTuple):
    """What the compiled program depends on besides the sizes of its arrays.

    `sizes` are those of the predictor's layers. `pieces` are the lengths of the parts of its
    gradient that are projected separately: one for all of it, or one for each matrix and bias.
    """

    sizes: tuple[int, ...]
    adversary_sizes: tuple[int, ...]
    sees_label: bool
    pieces: tuple[int, ...]


class DebiasingRows(NamedTuple):
    """The fit rows on the device, padded; fields as in `DebiasingProblem`."""

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


class DebiasingSettings(NamedTuple):
    """The numbers of the schedule that a step needs."""

    rate: Any
    adversary_rate: Any


class DebiasingState(NamedTuple):
    """Everything that one model carries from step to step; the adversary's first number is c."""

    predictor: Any
    predictor_adam: AdamState
    adversary: Any
    adversary_adam: AdamState


def train_predictor(
    problem: DebiasingProblem,
    strengths: NDArray[np.float32],
    seeds: NDArray[np.int64],
    schedule: DebiasingSchedule,
    on_progress: Progress | None = None,
) -> TrainedLayers:
    """Return m predictors of ReLU layers whose output is the logit of the positive label."""
    sizes = (problem.n_terms, *schedule.hidden, 1)
    lengths = layer_lengths(sizes)
    n_inputs = 3 if problem.adversary_sees_label else 1
    spec = DebiasingSpec(
        sizes=sizes,
        adversary_sizes=(n_inputs, *schedule.adversary_hidden, problem.n_groups),
        sees_label=problem.adversary_sees_label,
        pieces=(sum(lengths),) if schedule.projects_whole else lengths,
    )
    method = Method(
        start=_initial_state,
        step=_step,
        spec=spec,
        figures=HISTORY,
        row_fields=ROW_FIELDS,
        units=max(*sizes[1:], *spec.adversary_sizes),
    )
    settings = DebiasingSettings(
        rate=np.float32(schedule.learning_rate),
        adversary_rate=np.float32(schedule.adversary_learning_rate),
    )
    rows, n_rows = _rows(problem), len(problem.label)
    models = train(method, strengths, seeds, rows, n_rows, settings, schedule, on_progress)
    return trained_layers(models, models.states.predictor, sizes)


def _rows(problem: DebiasingProblem) -> DebiasingRows:
    return rows_on_device(DebiasingRows, problem, ROW_FIELDS)


def _initial_state(seed: int, spec: DebiasingSpec) -> DebiasingState:
    rng = np.random.default_rng(seed)
    predictor = initial_layers(rng, spec.sizes)
    adversary = np.append(np.float32(1), initial_layers(rng, spec.adversary_sizes))
    return DebiasingState(predictor, initial_adam(predictor), adversary, initial_adam(adversary))


# ---------------------------------------------------------------------------------------------
# Losses and their gradients


def _label_loss(logit: Array, batch: DebiasingRows) -> Array:
    """Return L_P, a weighted mean."""
    return weighted_mean(label_cross_entropy(logit, batch.label), batch.weight)


def _adversary_loss(
    adversary: Array, logit: Array, batch: DebiasingRows, spec: DebiasingSpec
) -> Array:
    """Return L_A: the cross-entropy of the group predicted from the score (and y)."""
    t = jax.nn.sigmoid((1 + jnp.abs(adversary[0])) * logit)
    x = t[:, None]
    if spec.sees_label:
        x = jnp.column_stack([t, t * batch.label, t * (1 - batch.label)])
    logits = apply_layers(
        adversary[1:], spec.adversary_sizes, lambda matrix, bias: x @ matrix + bias
    )
    return weighted_mean(group_cross_entropy(logits.T, batch.group), batch.adversary_weight)


def combine_gradients(
    of_label: Array, of_adversary: Array, strength: Array | float, pieces: tuple[int, ...]
) -> Array:
    """Return ∇L_P − proj(∇L_P onto ∇L_A) − strength ∇L_A; `pieces` are projected separately.

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
    state: DebiasingState,
    strength: Array,
    batch: DebiasingRows,
    settings: DebiasingSettings,
    clock: Clock,
    spec: DebiasingSpec,
) -> tuple[DebiasingState, Array]:
    """Return the state after a step of the adversary and one of the predictor.

    In the warm-up the predictor follows ∇L_P alone.
    """

    def predict(predictor: Array) -> Array:
        def first_layer(matrix: Array, bias: Array) -> Array:
            return linear_in_terms(matrix, bias, batch)

        return apply_layers(predictor, spec.sizes, first_layer)[:, 0]

    # one forward pass serves both gradients of the predictor
    logit, backward = jax.vjp(predict, state.predictor)
    adversary, adversary_adam = adam_step(
        state.adversary,
        jax.grad(_adversary_loss)(state.adversary, logit, batch, spec),
        state.adversary_adam,
        clock.decay * settings.adversary_rate,
    )
    label_loss, by_label = jax.value_and_grad(_label_loss)(logit, batch)
    adversary_loss, by_adversary = jax.value_and_grad(_adversary_loss, argnums=1)(
        adversary, logit, batch, spec
    )
    (of_label,), (of_adversary,) = backward(by_label), backward(by_adversary)
    debiased = combine_gradients(of_label, of_adversary, strength, spec.pieces)
    predictor, predictor_adam = adam_step(
        state.predictor,
        jnp.where(clock.age >= 0, debiased, of_label),
        state.predictor_adam,
        clock.decay * settings.rate,
    )
    is_changed = ((logit > batch.offset) != batch.decision).astype(logit.dtype)
    figures = jnp.stack([label_loss, adversary_loss, weighted_mean(is_changed, batch.weight)])
    return DebiasingState(predictor, predictor_adam, adversary, adversary_adam), figures
