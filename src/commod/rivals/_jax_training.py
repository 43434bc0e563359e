"""Train AdversarialDebiasing, FRAPPE and RNF with JAX; only the first `fit` loads this file."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from commod._solvers.problem import Layer, Penalties, Schedule, TrainedLayers, TrainingRows
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
    Sizes,
    apply_layers,
    group_cross_entropy,
    initial_layers,
    label_cross_entropy,
    layer_lengths,
    layers_of,
    read_terms,
    split_layers,
)

# ---------------------------------------------------------------------------------------------
# Adversarial debiasing: train a predictor of the label against an adversary that reads its score
#
# With L_P the log loss of the predictor and L_A that of the adversary, the predictor's weights move
# along
#
#     ∇L_P − proj(∇L_P onto ∇L_A) − strength ∇L_A
#
# and the adversary's along ∇L_A: the first two terms never help the adversary, the third hurts it.
# The adversary is linear (or has hidden layers) on t = sigmoid((1 + |c|) logit); it learns c too.

DEBIASING_FIGURES = ("label", "adversary", "change_rate")


class DebiasingSpec(NamedTuple):
    """What the compiled program depends on besides the sizes of its arrays.

    `sizes` are those of the predictor's layers. `pieces` are the lengths of the parts of its
    gradient that are projected separately: one for all of it, or one for each matrix and bias.
    """

    sizes: Sizes
    adversary_sizes: Sizes
    sees_label: bool
    pieces: tuple[int, ...]


# What one model carries: the predictor, and the adversary, whose first number is c.
DebiasingState = tuple[TrainedWeights, TrainedWeights]


def train_predictor(
    rows: TrainingRows,
    n_groups: int,
    strengths: NDArray[np.float32],
    seeds: NDArray[np.int64],
    schedule: Schedule,
    on_progress: Progress | None = None,
    *,
    hidden: Sizes,
    adversary_hidden: Sizes,
    adversary_rate: float,
    sees_label: bool,
    projects_whole: bool,
) -> TrainedLayers:
    """Return m predictors of ReLU layers whose output is the logit of the positive label.

    The fields of `rows` beside the terms are `label`, `group`, `weight`, `adversary_weight` (0 for
    a row in no cell of the constraint), the base model's `decision` and `offset`: a logit above it
    is a positive decision. The gradient is projected as one vector if `projects_whole`, otherwise
    matrix by matrix, bias by bias.
    """
    sizes = (rows.n_terms, *hidden, 1)
    lengths = layer_lengths(sizes)
    spec = DebiasingSpec(
        sizes=sizes,
        adversary_sizes=(3 if sees_label else 1, *adversary_hidden, n_groups),
        sees_label=sees_label,
        pieces=(sum(lengths),) if projects_whole else lengths,
    )
    method = Method(
        start=initial_debiasing,
        step=_debiasing_step,
        layers=_predictor_layers,
        spec=spec,
        figures=DEBIASING_FIGURES,
        units=max(*sizes[1:], *spec.adversary_sizes),
    )
    settings = np.float32(schedule.learning_rate), np.float32(adversary_rate)
    return train(method, strengths, seeds, rows, settings, schedule, on_progress)


def initial_debiasing(seed: int, spec: DebiasingSpec) -> DebiasingState:
    """Return the state of one model before training."""
    rng = np.random.default_rng(seed)
    predictor = initial_layers(rng, spec.sizes)
    adversary = np.append(np.float32(1), initial_layers(rng, spec.adversary_sizes))
    return TrainedWeights.of(predictor), TrainedWeights.of(adversary)


def _predictor_layers(states: DebiasingState, spec: DebiasingSpec) -> list[Layer]:
    return layers_of(states[0], spec.sizes)


def _label_loss(logit: Array, batch: Any) -> Array:
    """Return L_P, a weighted mean."""
    return weighted_mean(label_cross_entropy(logit, batch.label), batch.weight)


def adversary_loss(adversary: Array, logit: Array, batch: Any, spec: DebiasingSpec) -> Array:
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


def _debiasing_step(
    state: DebiasingState,
    strength: Array,
    batch: Any,
    settings: tuple[Array, Array],
    clock: Clock,
    spec: DebiasingSpec,
) -> tuple[DebiasingState, Array]:
    """Return the state after a step of the adversary and one of the predictor.

    `settings` are the learning rates of the predictor and of the adversary. In the warm-up the
    predictor follows ∇L_P alone.
    """
    predictor, adversary = state
    rate, adversary_rate = (clock.decay * rate for rate in settings)
    # one forward pass serves both gradients of the predictor
    logit, backward = jax.vjp(
        lambda layers: read_terms(layers, spec.sizes, batch), predictor.values
    )
    by_adversary = jax.grad(adversary_loss)(adversary.values, logit, batch, spec)
    adversary = adversary.step(by_adversary, adversary_rate)
    label_loss, by_label = jax.value_and_grad(_label_loss)(logit, batch)
    loss, by_score = jax.value_and_grad(adversary_loss, argnums=1)(
        adversary.values, logit, batch, spec
    )
    (of_label,), (of_adversary,) = backward(by_label), backward(by_score)
    debiased = combine_gradients(of_label, of_adversary, strength, spec.pieces)
    predictor = predictor.step(jnp.where(clock.age >= 0, debiased, of_label), rate)
    is_changed = ((logit > batch.offset) != batch.decision).astype(logit.dtype)
    figures = jnp.stack([label_loss, loss, weighted_mean(is_changed, batch.weight)])
    return (predictor, adversary), figures


# ---------------------------------------------------------------------------------------------
# FRAPPE's training of an additive term: stay near the base model, bring the groups' scores close
#
# With z the margin of the base model, f = sigmoid(z) its score, shifted so that its threshold is
# 0.5, and q = sigmoid(z + T(x)) the new one, T minimises
#
#     mean KL(f ‖ q) + strength Σ_rate rows mean_groups MMD²(q of the group, q of all others)
#
# with the Gaussian kernel k(a, b) = exp(−(a − b)²/length²). Scores lie in [0, 1], where k is a
# short Fourier series. MMD² is therefore a sum of squared differences between mean waves, exact to
# the rounding of float32, and its cost grows with the number of rows, not of pairs.

ADDITIVE_FIGURES = ("divergence", "discrepancy", "change_rate")
CONCEPT_FIGURES = ("sparsity", "diversity")
NEGLIGIBLE = 4.2  # exp(−4.2²) is 2e-8, below the rounding of float32
MIN_PAIRS = 0.25  # of all pairs of a side: with less, it has hardly two rows in this batch


class AdditiveSpec(NamedTuple):
    """What the compiled program depends on besides the sizes of its arrays.

    `architecture` is that of T.
    """

    architecture: Architecture
    n_rate_rows: int
    n_groups: int


class AdditiveSettings(NamedTuple):
    """What every step needs; `discrepancy` explains `own_share`, (2, n_rate_rows, n_groups).

    k(a, b) = Σ size cos(frequency (a − b)) + a constant, which cancels in MMD². Both have shape
    (w,).
    """

    rate: Any
    frequency: Any
    size: Any
    own_share: Any


def train_additive_term(
    rows: TrainingRows,
    shape: tuple[int, int],
    kernel_length: float,
    penalties: Penalties,
    seeds: NDArray[np.int64],
    schedule: Schedule,
    on_progress: Progress | None = None,
    *,
    n_concepts: int = 0,
    hidden: Sizes = (),
) -> TrainedLayers:
    """Return m additive terms T, one for each entry of `penalties` and of `seeds`.

    They are concepts where `n_concepts` > 0, otherwise ReLU layers with `hidden` units; without
    hidden layers T is linear.

    The fields of `rows` beside the terms are `margin` (z, clipped), `weight`, the row's `cell`
    (rate row · n_groups + group; `shape` has the numbers of both), and `fairness_weight`, which is
    0 for a row in no cell.
    """
    architecture = Architecture.of(rows.n_terms, n_concepts, hidden)
    spec = AdditiveSpec(architecture, *shape)
    settings = additive_settings(rows, spec, schedule.learning_rate, kernel_length)
    method = Method(
        start=_initial_term,
        step=_additive_step,
        layers=_term_layers,
        spec=spec,
        figures=ADDITIVE_FIGURES + CONCEPT_FIGURES if n_concepts else ADDITIVE_FIGURES,
        units=max(2 * len(settings.size), *architecture.sizes[1:], 1),
    )
    return train(method, penalties, seeds, rows, settings, schedule, on_progress)


def additive_settings(
    rows: TrainingRows, spec: AdditiveSpec, rate: float, length: float
) -> AdditiveSettings:
    """Return what every step needs, for a kernel of this length.

    The kernel on [0, 1] is a Fourier series, whose period is longer than the tails of the kernel.
    """
    period = 1 + NEGLIGIBLE * length
    n_waves = int(np.ceil(NEGLIGIBLE * period / (np.pi * length)))
    half = np.arange(1, n_waves + 1) * np.pi / period
    size = 2 * np.sqrt(np.pi) * length / period * np.exp(-((length * half) ** 2))
    # Σ w² / (Σ w)² of each group and of all others
    cell, weight = rows.by_row["cell"], rows.by_row["fairness_weight"].astype(np.float64)
    shape = spec.n_rate_rows, spec.n_groups
    total, squares = (
        np.stack([of_group, of_group @ (1 - np.eye(spec.n_groups))])
        for of_group in (
            np.bincount(cell, w, shape[0] * shape[1]).reshape(shape) for w in (weight, weight**2)
        )
    )
    own_share = squares / np.maximum(total**2, 1e-12)
    numbers = (rate, 2 * half, size, own_share)
    return AdditiveSettings(*(np.asarray(values, dtype=np.float32) for values in numbers))


def _initial_term(seed: int, spec: AdditiveSpec) -> TrainedWeights:
    """Return a state with T = 0 exactly."""
    return TrainedWeights.of(spec.architecture.start(np.random.default_rng(seed), 0.0))


def _term_layers(states: TrainedWeights, spec: AdditiveSpec) -> list[Layer]:
    return spec.architecture.layers(states)


def _additive_loss(
    term: Array,
    batch: Any,
    weights: Penalties,
    settings: AdditiveSettings,
    spec: AdditiveSpec,
) -> tuple[Array, Array]:
    """Return the loss of T and its parts; the L1 on W is left to the proximal step."""
    edited = batch.margin + spec.architecture.apply(term, batch)
    distance = weighted_mean(divergence(batch.margin, edited), batch.weight)
    gap = discrepancy(jax.nn.sigmoid(edited), batch, settings, spec)
    is_changed = (edited > 0) != (batch.margin > 0)
    change_rate = weighted_mean(is_changed.astype(edited.dtype), batch.weight)
    loss = distance + weights.fair * gap
    if not spec.architecture.n_concepts:
        return loss, jnp.stack([distance, gap, change_rate])
    path, cosine = spec.architecture.concept_penalties(term)
    loss += weights.sparsity * path + weights.diversity * cosine
    return loss, jnp.stack([distance, gap, change_rate, path, cosine])


def divergence(logit: Array, edited: Array) -> Array:
    """Return KL(f ‖ q) from the two logits: the cross-entropy of q less that of f."""
    score = jax.nn.sigmoid(logit)
    return label_cross_entropy(edited, score) - label_cross_entropy(logit, score)


def discrepancy(scores: Array, batch: Any, settings: AdditiveSettings, spec: AdditiveSpec) -> Array:
    """Return the batch's estimate of MMD² over all rows, diagonal included.

    A row is at distance 0 from itself. With its own diagonal, a batch with few rows of a group
    would therefore mostly push all scores together. Instead:

    1. Pairs of a row with itself count by `own_share`, their share among all rows.
    2. A group that has hardly two rows in the batch is left out.

    On all rows at once this is the usual biased estimator.
    """
    angle = scores[:, None] * settings.frequency
    features = jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], axis=1)
    features *= jnp.tile(jnp.sqrt(settings.size), 2)
    cells = jax.nn.one_hot(batch.cell, spec.n_rate_rows * spec.n_groups)
    weight = cells * batch.fairness_weight[:, None]  # of each row in its cell, zero in the others
    total, squares = _sides(weight.sum(axis=0), spec), _sides((weight**2).sum(axis=0), spec)
    mean = _sides(weight.T @ features, spec) / jnp.maximum(total, 1e-12)[..., None]
    gap = ((mean[0] - mean[1]) ** 2).sum(axis=-1)

    pairs = total**2 - squares
    has_pairs = pairs > MIN_PAIRS * total**2
    within = (mean**2).sum(axis=-1)  # mean kernel over pairs, a row with itself included
    with_itself = settings.size.sum()  # the kernel of a row with itself
    others = within - (with_itself - within) * squares / jnp.where(has_pairs, pairs, 1.0)
    gap += (others + (with_itself - others) * settings.own_share - within).sum(axis=0)
    is_counted = has_pairs.all(axis=0)
    by_rate_row = jnp.where(is_counted, gap, 0.0).sum(axis=1)
    return (by_rate_row / jnp.maximum(is_counted.sum(axis=1), 1)).sum()


def _sides(values: Array, spec: AdditiveSpec) -> Array:
    """Return sums by cell (cells, …) as sums of each group and of all others in its rate row.

    Shape (2, n_rate_rows, n_groups, …).
    """
    of_group = values.reshape(spec.n_rate_rows, spec.n_groups, *values.shape[1:])
    # not the total minus the group's own sum: that would round small groups
    is_other = 1 - np.eye(spec.n_groups, dtype=np.float32)
    return jnp.stack([of_group, jnp.einsum("gh,lh...->lg...", is_other, of_group)])


def _additive_step(
    state: TrainedWeights,
    weights: Penalties,
    batch: Any,
    settings: AdditiveSettings,
    clock: Clock,
    spec: AdditiveSpec,
) -> tuple[TrainedWeights, Array]:
    gradient, parts = jax.grad(_additive_loss, has_aux=True)(
        state.values, batch, weights, settings, spec
    )
    rate = clock.decay * settings.rate
    return spec.architecture.step(state, gradient, rate, weights.sparsity), parts


# ---------------------------------------------------------------------------------------------
# RNF: train the head of a network on representations that are neutral between two groups
#
# A row with the units z1 and the teacher's probability p1 meets a partner (z2, p2) of its batch,
# who has the same true label and is of another group. With c the new head's probability, the loss
# is
#
#     mean (c(z̄) − p̄)² + strength · Σ_λ mean |c(λ z1 + (1 − λ) z2) − c(z̄)|
#
# over all pairs, with z̄ = (z1 + z2)/2, p̄ = (p1 + p2)/2 and λ = 0.6, 0.7, 0.8, 0.9. The teacher's
# probability is sigmoid(margin / temperature).
#
# The networks of the labels, before, minimise the generalised cross-entropy (1 − p^q)/q of the
# probability p of the true label; it is the usual cross-entropy at q = 0.

DEGREES = (0.6, 0.7, 0.8, 0.9)  # λ: how near an augmented representation is to the row's own
HEAD_FIGURES = ("distillation", "smoothness", "paired", "change_rate")


Pairs = tuple[Array, Array]  # each row's partner in its batch, and the weight: 0 without a partner


def train_networks(
    rows: TrainingRows,
    powers: NDArray[np.float32],
    seeds: NDArray[np.int64],
    schedule: Schedule,
    hidden: Sizes,
) -> TrainedLayers:
    """Return networks of the labels with `hidden` ReLU layers, one for each power q.

    The fields of `rows` beside the terms are `label` and `weight`.
    """
    sizes = (rows.n_terms, *hidden, 1)
    method = Method(
        start=initial_network,
        step=_label_step,
        layers=layers_of,
        spec=sizes,
        figures=("label",),
        units=max(sizes[1:]),
    )
    return train(method, powers, seeds, rows, np.float32(schedule.learning_rate), schedule)


def train_heads(
    rows: TrainingRows,
    strengths: NDArray[np.float32],
    seeds: NDArray[np.int64],
    schedule: Schedule,
    hidden: Sizes,
    on_progress: Progress | None = None,
) -> TrainedLayers:
    """Return m heads of `hidden` ReLU layers; their output is the margin over the temperature.

    The fields of `rows` are `units` (n, h), what the encoder makes of a row; `margin`, that of the
    teacher, clipped; `label`, `group`, and `pair_weight`, which is 0 for a row that takes no part
    in pairs; the base model's `decision`; and `temperature`.
    """
    sizes = (rows.by_row["units"].shape[1], *hidden, 1)
    method = Method(
        start=initial_network,
        step=_head_step,
        layers=layers_of,
        spec=sizes,
        figures=HEAD_FIGURES,
        units=max(schedule.batch_size, 6 * max(sizes[1:])),
    )
    rate = np.float32(schedule.learning_rate)
    return train(method, strengths, seeds, rows, rate, schedule, on_progress)


def initial_network(seed: int, sizes: Sizes) -> TrainedWeights:
    """Return the state of one network or head before training."""
    return TrainedWeights.of(initial_layers(np.random.default_rng(seed), sizes))


def generalised_cross_entropy(logit: Array, label: Array, power: Array | float) -> Array:
    """Return (1 − p^q)/q, element by element; p is the probability of the label, 0 or 1.

    Examples
    --------
    >>> generalised_cross_entropy(jnp.zeros(2), jnp.array([0.0, 1.0]), 1.0)
    Array([0.5, 0.5], dtype=float32)
    """
    log_loss = label_cross_entropy(logit, label)
    safe = jnp.where(power > 0, power, 1.0)
    return jnp.where(power > 0, -jnp.expm1(-safe * log_loss) / safe, log_loss)


def _label_step(
    state: TrainedWeights, power: Array, batch: Any, settings: Any, clock: Clock, spec: Sizes
) -> tuple[TrainedWeights, Array]:
    def loss(layers: Array) -> Array:
        logit = read_terms(layers, spec, batch)
        return weighted_mean(generalised_cross_entropy(logit, batch.label, power), batch.weight)

    value, gradient = jax.value_and_grad(loss)(state.values)
    return state.step(gradient, clock.decay * settings), value[None]


def choose_partners(batch: Any) -> Pairs:
    """Return a partner for each row: the next one with the same label and another group.

    A batch begins again after its last row. Its order is random, so the partner is. The weight of a
    pair is the product of both weights, as if rows were repeated.
    """
    n = len(batch.label)
    place = jnp.arange(n, dtype=jnp.int32)
    steps = (place[:, None] - place) % n  # from the row (column) on to its candidate (row)
    is_allowed = (
        (batch.label[:, None] == batch.label)
        & (batch.group[:, None] != batch.group)
        & (batch.pair_weight > 0)[:, None]
    )
    step = jnp.where(is_allowed, steps, n).min(axis=0)
    partner = (place + step) % n  # the row itself where no candidate is allowed
    weight = batch.pair_weight * _rows_of(batch.pair_weight, partner)
    return partner, jnp.where(step < n, weight, 0.0)


def head_loss(
    layers: Array, strength: Array | float, batch: Any, pairs: Pairs, sizes: Sizes
) -> tuple[Array, Array]:
    """Return the loss of a head on the pairs of a batch, and the values of `HEAD_FIGURES`."""
    (matrix, bias), *later = split_layers(layers, sizes)
    partner, weight = pairs
    own = batch.units @ matrix + bias  # the first layer is linear, so it mixes as its inputs do
    other = _rows_of(own, partner)

    def margin(degree: float) -> Array:
        x = degree * own + (1 - degree) * other
        for matrix, bias in later:
            x = jax.nn.relu(x) @ matrix + bias
        return x[:, 0]

    teacher = jax.nn.sigmoid(batch.margin / batch.temperature)
    target = (teacher + _rows_of(teacher, partner)) / 2
    neutral = jax.nn.sigmoid(margin(0.5))
    distillation = weighted_mean((neutral - target) ** 2, weight)
    mixed = jnp.stack([jax.nn.sigmoid(margin(degree)) for degree in DEGREES])
    smoothness = weighted_mean(jnp.abs(mixed - neutral).sum(axis=0), weight)
    is_paired = (weight > 0).astype(own.dtype)
    is_changed = ((margin(1.0) > 0) != batch.decision).astype(own.dtype)
    shares = [weighted_mean(share, batch.pair_weight) for share in (is_paired, is_changed)]
    return distillation + strength * smoothness, jnp.stack([distillation, smoothness, *shares])


def _rows_of(values: Array, index: Array) -> Array:
    """Return the given rows of a table; on a GPU by a product, whose gradient repeats exactly."""
    if jax.default_backend() == "cpu":
        return values.at[index].get(mode="promise_in_bounds")
    return jax.nn.one_hot(index, len(values), dtype=values.dtype) @ values


def _head_step(
    state: TrainedWeights, strength: Array, batch: Any, settings: Any, clock: Clock, spec: Sizes
) -> tuple[TrainedWeights, Array]:
    pairs = choose_partners(batch)
    gradient, figures = jax.grad(head_loss, has_aux=True)(
        state.values, strength, batch, pairs, spec
    )
    return state.step(gradient, clock.decay * settings), figures
