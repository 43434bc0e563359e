"""COMMOD's min–max training: a ratio r against adversaries that predict the group.

With z the margin of the base model, t its threshold, l = r(x)·z the edited margin and h_c the
adversary of constraint c, r minimises

    L_Y(l + logit t, y) − λ_fair Σ_c L_S(h_c, s) + λ_ratio mean (r − 1)²
    + λ_sparsity Σ_j |v_j| ‖W_j‖₁ + λ_diversity mean_{i<j} cos(W_i, W_j)²,
    r(x) = b + Σ_j v_j (W_j · x),

while h_c minimises L_S, the cross-entropy of its prediction of the group s. h_c reads l and, where
its constraint needs them, the true label and the stratum. It is trained on the rows that its
constraint counts. Where r is layers of units, there are no concepts, and the loss ends with
λ_ratio.

Training starts at r = 1 and a random h_c. Each epoch shuffles the rows and cuts them into batches
of nearly equal size. Each batch does this:

1. Compute l with the current r.
2. Take `adversary_steps` steps of Adam on each h_c.
3. Compute the weight of each L_S: λ_fair grows over `ramp_epochs`, and is multiplied by a factor
   that falls with the adversary's own advantage (`_fairness_factor`).
4. Take one step of Adam on r against the new h_c; warm-up epochs leave r as it is.
5. Shrink W by soft-thresholding, which gives exact zeros.
6. Update the running mean of each adversary's advantage.

Both learning rates fall to 0 along a cosine. Margins are clipped at ±10 while training.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from commod._solvers.problem import (
    AdversaryProblem,
    Layer,
    Penalties,
    RatioSchedule,
    TrainedLayers,
    TrainingRows,
)
from commod._solvers.training.loop import (
    Clock,
    Method,
    Progress,
    TrainedWeights,
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

CONCEPT_FIGURES = ("sparsity", "diversity")
EXTRA_WEIGHT = 4.0  # times λ_fair, while the adversary is as good as on the base model
ADVANTAGE_DECAY = 0.95  # of the running mean of the adversary's advantage
NO_ADVANTAGE = 1e-3  # nats: below it, the base model's score does not predict the group


class AdversarySpec(NamedTuple):
    """What one adversary reads, as in `AdversaryProblem`, and the `sizes` of its layers."""

    sizes: tuple[int, ...]
    sees_label: bool = False
    n_strata: int = 0
    reads_rightness: bool = False

    @classmethod
    def of(cls, problem: AdversaryProblem, hidden: tuple[int, ...], n_groups: int) -> AdversarySpec:
        """Return the specification of an adversary with `hidden` units."""
        sizes = (1 + problem.sees_label + problem.n_strata, *hidden, n_groups)
        return cls(sizes, problem.sees_label, problem.n_strata, problem.reads_rightness)


class RatioSpec(NamedTuple):
    """What the compiled program depends on besides the sizes of its arrays.

    `architecture` is that of r. With `single_step` an adversary takes one step per batch, without
    a loop; a loop takes a tenth of the time of a step.
    """

    architecture: Architecture
    adversaries: tuple[AdversarySpec, ...]
    single_step: bool = False

    @property
    def figures(self) -> tuple[str, ...]:
        """Return the names of the figures of the history."""
        n = len(self.adversaries)
        adversaries = ["adversary"] if n == 1 else [f"adversary_{i + 1}" for i in range(n)]
        concepts = CONCEPT_FIGURES if self.architecture.n_concepts else ()
        return ("label", *adversaries, "ratio", *concepts, "change_rate")


class RatioSettings(NamedTuple):
    """The numbers of the schedule that a step needs."""

    ramp: Any
    rate: Any
    adversary_steps: Any
    adversary_rate: Any
    adaptive: Any


class AdversaryState(NamedTuple):
    """What one adversary carries from step to step.

    `advantage` is the running mean of its advantage, `highest_advantage` the maximum of that mean.
    """

    layers: TrainedWeights
    advantage: Any
    highest_advantage: Any


RatioState = tuple[TrainedWeights, tuple[AdversaryState, ...]]  # what one model carries


def train_ratio(
    rows: TrainingRows,
    adversaries: Sequence[AdversaryProblem],
    n_groups: int,
    penalties: Penalties,
    seeds: NDArray[np.int64],
    schedule: RatioSchedule,
    on_progress: Progress | None = None,
) -> TrainedLayers:
    """Return m ratios, one for each entry of `penalties` and of `seeds`.

    The fields of `rows` beside the terms are `margin` (z, clipped), `label` in [0, 1], `group`,
    `weight` and `ratio_weight`, and `offset`, the logit of the threshold: r·z + offset is the
    edited logit. There is one adversary per constraint.

    The ratios are concepts, as two linear layers, where `schedule.n_concepts` > 0. Layers ignore
    the penalties on concepts. See `loop.train` for `on_progress` and keyboard interrupts.
    """
    spec = RatioSpec(
        architecture=Architecture.of(
            rows.n_terms, schedule.n_concepts, schedule.hidden, schedule.init
        ),
        adversaries=tuple(
            AdversarySpec.of(adversary, schedule.adversary_hidden, n_groups)
            for adversary in adversaries
        ),
        single_step=schedule.adversary_steps == 1,
    )
    method = Method(
        start=_initial_state,
        step=_step,
        layers=_layers,
        spec=spec,
        figures=spec.figures,
        units=max(
            *(size for adversary in spec.adversaries for size in adversary.sizes),
            *spec.architecture.sizes[1:],
        ),
    )
    told, settings = with_adversaries(rows, adversaries), _settings(schedule)
    return train(method, penalties, seeds, told, settings, schedule, on_progress)


def with_adversaries(rows: TrainingRows, adversaries: Sequence[AdversaryProblem]) -> TrainingRows:
    """Return the rows with what the adversaries read: weight, surprise and stratum of each row.

    An adversary sees l in standard deviations of z, the `margin_scale`: its speed must not depend
    on how far the base model's scores are from the threshold.
    """
    margin, weight = rows.by_row["margin"], rows.by_row["weight"]
    centred = margin - np.average(margin, weights=weight)
    spread = float(np.sqrt(np.average(centred**2, weights=weight)))
    read = tuple(
        (adversary.weight, _surprise(rows, adversary), adversary.stratum)
        for adversary in adversaries
    )
    return rows.add({"adversaries": read}, margin_scale=spread if spread > 0 else 1.0)


def _surprise(rows: TrainingRows, adversary: AdversaryProblem) -> NDArray[np.float32]:
    """Return −log of the share of each row's group among the rows that are like it, shape (n,).

    These rows have the same label and stratum, as far as the adversary reads them. The mean is the
    loss of an adversary that does not look at the score.
    """
    group = rows.by_row["group"].astype(np.int64)
    alike = np.zeros_like(group)
    if adversary.stratum is not None:
        alike = adversary.stratum.astype(np.int64) + 1
    if adversary.sees_label:
        alike = 2 * alike + (rows.by_row["label"] > 0.5)
    cell = group * (alike.max() + 1) + alike
    weight = adversary.weight.astype(np.float64) + 1e-12
    share = np.bincount(cell, weight)[cell] / np.bincount(alike, weight)[alike]
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
    ratio = TrainedWeights.of(spec.architecture.start(rng, 1.0))
    zero = np.float32(0)
    networks = [initial_layers(rng, adversary.sizes) for adversary in spec.adversaries]
    states = (AdversaryState(TrainedWeights.of(layers), zero, zero) for layers in networks)
    return ratio, tuple(states)


def _layers(states: RatioState, spec: RatioSpec) -> list[Layer]:
    return spec.architecture.layers(states[0])


# ---------------------------------------------------------------------------------------------
# Losses


def _adversary_loss(layers: Array, edited: Array, batch: Any, i: int, spec: AdversarySpec) -> Array:
    """Return L_S of the i-th adversary: a weighted mean of the cross-entropy of the group.

    The group is predicted from l and, where the constraint needs them, from y and the stratum.
    """
    weight, _, stratum = batch.adversaries[i]
    inputs = [(edited / batch.margin_scale)[None]]
    if spec.reads_rightness:
        inputs = [inputs[0] * (2 * batch.label - 1)]
    if spec.sees_label:
        inputs.append(batch.label[None])
    if spec.n_strata:
        is_in = stratum == jnp.arange(spec.n_strata)[:, None]
        inputs.append(is_in.astype(edited.dtype))
    x = jnp.concatenate(inputs) if len(inputs) > 1 else inputs[0]
    logits = apply_across_rows(layers, spec.sizes, x)
    return weighted_mean(group_cross_entropy(logits, batch.group), weight)


def _ratio_loss(
    ratio: Array,
    adversaries: Sequence[Array],
    batch: Any,
    penalties: Penalties,
    spec: RatioSpec,
) -> tuple[Array, Array]:
    """Return the loss of the ratio and its parts.

    `penalties.fair` has one weight per adversary, and `adversaries` are their layers. The path norm
    has a gradient for v only; `Architecture.step` shrinks W.
    """
    r = spec.architecture.apply(ratio, batch)
    edited = r * batch.margin
    label = weighted_mean(label_cross_entropy(edited + batch.offset, batch.label), batch.weight)
    groups = [
        _adversary_loss(layers, edited, batch, i, adversary)
        for i, (layers, adversary) in enumerate(zip(adversaries, spec.adversaries, strict=True))
    ]
    distance = weighted_mean((r - 1) ** 2, batch.ratio_weight)
    loss = label
    for weight, group in zip(penalties.fair, groups, strict=True):
        loss = loss - weight * group
    loss = loss + penalties.ratio * distance
    changed = weighted_mean((r < 0).astype(r.dtype), batch.weight)
    if not spec.architecture.n_concepts:
        return loss, jnp.stack([label, *groups, distance, changed])
    path, cosine = spec.architecture.concept_penalties(ratio)
    loss = loss + penalties.sparsity * path + penalties.diversity * cosine
    return loss, jnp.stack([label, *groups, distance, path, cosine, changed])


# ---------------------------------------------------------------------------------------------
# The step


def _step(
    state: RatioState,
    penalties: Penalties,
    batch: Any,
    settings: RatioSettings,
    clock: Clock,
    spec: RatioSpec,
) -> tuple[RatioState, Array]:
    """Return the state after several steps of each adversary and one of the ratio."""
    ratio, adversaries = state
    trained = _train_adversaries(state, batch, settings, clock, spec)
    ramped = penalties.fair * jnp.clip((clock.age + 1) / settings.ramp, 0.0, 1.0)
    factors = [_fairness_factor(adversary, settings) for adversary in adversaries]
    weighted = penalties._replace(fair=tuple(ramped * factor for factor in factors))
    gradient, parts = jax.grad(_ratio_loss, has_aux=True)(
        ratio.values, [layers.values for layers in trained], batch, weighted, spec
    )
    rate = clock.decay * settings.rate
    moved = spec.architecture.step(ratio, gradient, rate, penalties.sparsity)
    # the warm-up keeps the ratio
    ratio = jax.tree.map(lambda new, old: jnp.where(clock.age >= 0, new, old), moved, ratio)
    states = []
    for i, layers in enumerate(trained):
        before, (weight, surprise, _) = adversaries[i], batch.adversaries[i]
        advantage = weighted_mean(surprise, weight) - parts[1 + i]
        advantage = ADVANTAGE_DECAY * before.advantage + (1 - ADVANTAGE_DECAY) * advantage
        highest = jnp.maximum(before.highest_advantage, advantage)
        states.append(AdversaryState(layers, advantage, highest))
    return (ratio, tuple(states)), parts


def _train_adversaries(
    state: RatioState,
    batch: Any,
    settings: RatioSettings,
    clock: Clock,
    spec: RatioSpec,
) -> list[TrainedWeights]:
    """Return the layers of each adversary after its steps on a batch."""
    ratio, adversaries = state
    edited = spec.architecture.apply(ratio.values, batch) * batch.margin
    rate = clock.decay * settings.adversary_rate
    trained = []
    for i, (before, adversary) in enumerate(zip(adversaries, spec.adversaries, strict=True)):
        gradient_of = partial(
            jax.grad(_adversary_loss), edited=edited, batch=batch, i=i, spec=adversary
        )
        if spec.single_step:
            trained.append(before.layers.step(gradient_of(before.layers.values), rate))
        else:
            trained.append(before.layers.steps(gradient_of, rate, settings.adversary_steps))
    return trained


def _fairness_factor(adversary: AdversaryState, settings: RatioSettings) -> Array:
    """Return the factor on λ_fair: 5 at the base model, 1 where the group is hidden.

    I is an adversary's advantage and I₀ the highest advantage so far; after the warm-up that is
    its advantage on the base model. The ratio descends along λ_fair (I + 2 I²/I₀). A constant
    weight does not hold the ratio anywhere between "no change" and "far too many changes".
    """
    remaining = adversary.advantage / jnp.maximum(adversary.highest_advantage, NO_ADVANTAGE)
    return 1 + jnp.where(settings.adaptive, EXTRA_WEIGHT * jnp.clip(remaining, 0.0, 1.0), 0.0)
