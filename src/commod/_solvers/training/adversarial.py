"""COMMOD's min–max training: a ratio r against an adversary that predicts the group.

With z the margin of the base model, t its threshold, l = r(x)·z the edited margin and h the
adversary, r minimises

    L_Y(l + logit t, y) − λ_fair L_S(h(l), s) + λ_ratio mean (r − 1)² + λ_sparsity Σ_j |v_j| ‖W_j‖₁
    + λ_diversity mean_{i<j} cos(W_i, W_j)²,      r(x) = b + Σ_j v_j (W_j · x),

while h minimises L_S, the cross-entropy of its prediction of the group s. Where r is layers of
units, there are no concepts, and the loss ends with λ_ratio.

Training starts at r = 1 and a random h. Each epoch shuffles the rows and cuts them into batches of
nearly equal size. Each batch does this:

1. Compute l with the current r.
2. Take `adversary_steps` steps of Adam on h.
3. Compute the weight of L_S: λ_fair grows over `ramp_epochs`, and is multiplied by a factor that
   falls with the adversary's advantage (`_fairness_factor`).
4. Take one step of Adam on r against the new h; warm-up epochs leave r as it is.
5. Shrink W by soft-thresholding, which gives exact zeros.
6. Update the running mean of the adversary's advantage.

Both learning rates fall to 0 along a cosine. Margins are clipped at ±10 while training.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from commod._solvers.problem import (
    RatioPenalties,
    RatioProblem,
    RatioSchedule,
    TrainedConcepts,
    TrainedLayers,
)
from commod._solvers.training.loop import (
    AdamState,
    Clock,
    Method,
    Progress,
    adam_step,
    adam_steps,
    initial_adam,
    rows_on_device,
    train,
    weighted_mean,
)
from commod._solvers.training.networks import (
    Architecture,
    apply_across_rows,
    group_cross_entropy,
    initial_layers,
    label_cross_entropy,
)

HISTORY = ("label", "adversary", "ratio", "sparsity", "diversity", "change_rate")
LAYERS_HISTORY = ("label", "adversary", "ratio", "change_rate")
ROW_FIELDS = (
    *("numeric", "codes", "margin", "label", "group"),
    *("weight", "adversary_weight", "ratio_weight", "surprise"),
)
EXTRA_WEIGHT = 4.0  # times λ_fair, while the adversary is as good as on the base model
ADVANTAGE_DECAY = 0.95  # of the running mean of the adversary's advantage
NO_ADVANTAGE = 1e-3  # nats: below it, the base model's score does not predict the group


class RatioSpec(NamedTuple):
    """What the compiled program depends on besides the sizes of its arrays.

    `architecture` is that of r. With `single_step` the adversary takes one step per batch, without
    a loop; a loop takes a tenth of the time of a step.
    """

    architecture: Architecture
    n_groups: int
    adversary_hidden: tuple[int, ...]
    sees_label: bool
    single_step: bool = False

    @property
    def adversary_sizes(self) -> tuple[int, ...]:
        """Return the sizes of the adversary's layers, from its inputs to its logits."""
        return (1 + self.sees_label, *self.adversary_hidden, self.n_groups)


class RatioTrainingRows(NamedTuple):
    """The fit rows on the device, padded; `numeric` to `ratio_weight` as in `RatioProblem`.

    `surprise` is explained in `_surprise`. `margin_scale` is the standard deviation of z, and
    `offset` is the logit of the threshold.
    """

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


class RatioSettings(NamedTuple):
    """The numbers of the schedule that a step needs."""

    ramp: Any
    rate: Any
    adversary_steps: Any
    adversary_rate: Any
    adaptive: Any


class RatioState(NamedTuple):
    """Everything that one model carries from step to step.

    `advantage` is the running mean of the adversary's advantage, `highest_advantage` its maximum.
    """

    ratio: Any
    ratio_adam: AdamState
    adversary: Any
    adversary_adam: AdamState
    advantage: Any
    highest_advantage: Any


def train_ratio(
    problem: RatioProblem,
    penalties: RatioPenalties,
    seeds: NDArray[np.int64],
    schedule: RatioSchedule,
    on_progress: Progress | None = None,
) -> TrainedConcepts | TrainedLayers:
    """Return m ratios, one for each entry of `penalties` and of `seeds`.

    They are concepts where `schedule.n_concepts` > 0, and layers otherwise. Layers ignore the
    penalties on concepts. See `loop.train` for `on_progress` and keyboard interrupts.
    """
    spec = RatioSpec(
        architecture=Architecture.of(
            problem.n_terms, schedule.n_concepts, schedule.hidden, schedule.init
        ),
        n_groups=problem.n_groups,
        adversary_hidden=schedule.adversary_hidden,
        sees_label=problem.adversary_sees_label,
        single_step=schedule.adversary_steps == 1,
    )
    models = train(
        _method(spec),
        penalties,
        seeds,
        _rows(problem),
        len(problem.margin),
        _settings(schedule),
        schedule,
        on_progress,
    )
    return spec.architecture.trained(models, models.states.ratio)


def _method(spec: RatioSpec) -> Method:
    return Method(
        start=_initial_state,
        step=_step,
        spec=spec,
        figures=HISTORY if spec.architecture.n_concepts else LAYERS_HISTORY,
        row_fields=ROW_FIELDS,
        units=max(*spec.adversary_sizes, *spec.architecture.sizes[1:], 1),
    )


def _rows(problem: RatioProblem) -> RatioTrainingRows:
    # The adversary sees l in standard deviations of z: its speed must not depend on how far the
    # base model's scores are from the threshold.
    centred = problem.margin - np.average(problem.margin, weights=problem.weight)
    spread = float(np.sqrt(np.average(centred**2, weights=problem.weight)))
    return rows_on_device(
        RatioTrainingRows,
        problem,
        ROW_FIELDS,
        surprise=_surprise(problem),
        margin_scale=spread if spread > 0 else 1.0,
    )


def _surprise(problem: RatioProblem) -> NDArray[np.float32]:
    """Return −log of the share of each row's group (among rows of its label), shape (n,).

    Its mean is the loss of an adversary that does not look at the score.
    """
    cell = problem.group.astype(np.int64)
    stratum = np.zeros_like(cell)
    if problem.adversary_sees_label:
        stratum = (problem.label > 0.5).astype(np.int64)
        cell = 2 * cell + stratum
    weight = problem.adversary_weight.astype(np.float64) + 1e-12
    share = np.bincount(cell, weight)[cell] / np.bincount(stratum, weight)[stratum]
    return -np.log(share).astype(np.float32)


def _settings(schedule: RatioSchedule) -> RatioSettings:
    return RatioSettings(
        ramp=np.float32(max(1, min(schedule.ramp_epochs, schedule.epochs))),
        rate=np.float32(schedule.learning_rate),
        adversary_steps=np.int32(schedule.adversary_steps),
        adversary_rate=np.float32(schedule.adversary_learning_rate),
        adaptive=np.bool_(schedule.adaptive_fairness),
    )


def _initial_state(seed: int, spec: RatioSpec) -> RatioState:
    """Return a state with r = 1 exactly."""
    rng = np.random.default_rng(seed)
    ratio = spec.architecture.start(rng, 1.0)
    adversary = initial_layers(rng, spec.adversary_sizes)
    zero = np.float32(0)
    return RatioState(ratio, initial_adam(ratio), adversary, initial_adam(adversary), zero, zero)


# ---------------------------------------------------------------------------------------------
# Losses


def _adversary_loss(
    adversary: Array, edited: Array, batch: RatioTrainingRows, spec: RatioSpec
) -> Array:
    """Return L_S: the cross-entropy of the group predicted from l (and y), a weighted mean."""
    x = (edited / batch.margin_scale)[None]
    if spec.sees_label:
        x = jnp.concatenate([x, batch.label[None]])
    logits = apply_across_rows(adversary, spec.adversary_sizes, x)
    return weighted_mean(group_cross_entropy(logits, batch.group), batch.adversary_weight)


def _ratio_loss(
    ratio: Array,
    adversary: Array,
    batch: RatioTrainingRows,
    penalties: RatioPenalties,
    spec: RatioSpec,
) -> tuple[Array, Array]:
    """Return the loss of the ratio and its parts.

    The path norm has a gradient for v only; `Architecture.step` shrinks W.
    """
    r = spec.architecture.apply(ratio, batch)
    edited = r * batch.margin
    label = weighted_mean(label_cross_entropy(edited + batch.offset, batch.label), batch.weight)
    group = _adversary_loss(adversary, edited, batch, spec)
    distance = weighted_mean((r - 1) ** 2, batch.ratio_weight)
    loss = label - penalties.fair * group + penalties.ratio * distance
    changed = weighted_mean((r < 0).astype(r.dtype), batch.weight)
    if not spec.architecture.n_concepts:
        return loss, jnp.stack([label, group, distance, changed])
    path, cosine = spec.architecture.concept_penalties(ratio)
    loss = loss + penalties.sparsity * path + penalties.diversity * cosine
    return loss, jnp.stack([label, group, distance, path, cosine, changed])


# ---------------------------------------------------------------------------------------------
# The step


def _step(
    state: RatioState,
    penalties: RatioPenalties,
    batch: RatioTrainingRows,
    settings: RatioSettings,
    clock: Clock,
    spec: RatioSpec,
) -> tuple[RatioState, Array]:
    """Return the state after several steps of the adversary and one of the ratio."""
    adversary, adversary_adam = _train_adversary(state, batch, settings, clock, spec)
    ramped = penalties.fair * jnp.clip((clock.age + 1) / settings.ramp, 0.0, 1.0)
    weighted = penalties._replace(fair=ramped * _fairness_factor(state, settings))
    gradient, parts = jax.grad(_ratio_loss, has_aux=True)(
        state.ratio, adversary, batch, weighted, spec
    )
    moved = spec.architecture.step(
        state.ratio, gradient, state.ratio_adam, clock.decay * settings.rate, penalties.sparsity
    )
    ratio, ratio_adam = jax.tree.map(
        lambda new, old: jnp.where(clock.age >= 0, new, old),  # the warm-up keeps the ratio
        moved,
        (state.ratio, state.ratio_adam),
    )
    advantage = weighted_mean(batch.surprise, batch.adversary_weight) - parts[1]
    advantage = ADVANTAGE_DECAY * state.advantage + (1 - ADVANTAGE_DECAY) * advantage
    highest = jnp.maximum(state.highest_advantage, advantage)
    return RatioState(ratio, ratio_adam, adversary, adversary_adam, advantage, highest), parts


def _train_adversary(
    state: RatioState,
    batch: RatioTrainingRows,
    settings: RatioSettings,
    clock: Clock,
    spec: RatioSpec,
) -> tuple[Array, AdamState]:
    edited = spec.architecture.apply(state.ratio, batch) * batch.margin

    def gradient_of(adversary: Array) -> Array:
        return jax.grad(_adversary_loss)(adversary, edited, batch, spec)

    adversary, adam = state.adversary, state.adversary_adam
    rate = clock.decay * settings.adversary_rate
    if spec.single_step:
        return adam_step(adversary, gradient_of(adversary), adam, rate)
    return adam_steps(gradient_of, adversary, adam, rate, settings.adversary_steps)


def _fairness_factor(state: RatioState, settings: RatioSettings) -> Array:
    """Return the factor on λ_fair: 5 at the base model, 1 where the group is hidden.

    I is the adversary's advantage and I₀ the highest advantage so far; after the warm-up that is
    its advantage on the base model. The ratio descends along λ_fair (I + 2 I²/I₀). A constant
    weight does not hold the ratio anywhere between "no change" and "far too many changes".
    """
    remaining = state.advantage / jnp.maximum(state.highest_advantage, NO_ADVANTAGE)
    return 1 + jnp.where(settings.adaptive, EXTRA_WEIGHT * jnp.clip(remaining, 0.0, 1.0), 0.0)
