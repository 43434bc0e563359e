"""FRAPPE's training of an additive term: stay near the base model, bring the groups' scores close.

With z the margin of the base model, f = sigmoid(z) its score, shifted so that its threshold is 0.5,
and q = sigmoid(z + T(x)) the new one, T minimises

    mean KL(f ‖ q) + strength Σ_rate rows mean_groups MMD²(q of the group, q of all others)

with the Gaussian kernel k(a, b) = exp(−(a − b)²/length²). Scores lie in [0, 1], where k is a short
Fourier series. MMD² is therefore a sum of squared differences between mean waves, exact to the
rounding of float32, and its cost grows with the number of rows, not of pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from commod._solvers.problem import (
    AdditivePenalties,
    AdditiveProblem,
    Schedule,
    TrainedConcepts,
    TrainedLayers,
)
from commod._solvers.training.loop import (
    AdamState,
    Clock,
    Method,
    Progress,
    initial_adam,
    rows_on_device,
    train,
    weighted_mean,
)
from commod._solvers.training.networks import Architecture, label_cross_entropy

HISTORY = ("divergence", "discrepancy", "change_rate")
CONCEPT_HISTORY = ("sparsity", "diversity")
ROW_FIELDS = ("numeric", "codes", "margin", "cell", "weight", "fairness_weight")
NEGLIGIBLE = 4.2  # exp(−4.2²) is 2e-8, below the rounding of float32
MIN_PAIRS = 0.25  # of all pairs of a side: with less, it has hardly two rows in this batch


class AdditiveSpec(NamedTuple):
    """What the compiled program depends on besides the sizes of its arrays.

    `architecture` is that of T.
    """

    architecture: Architecture
    n_rate_rows: int
    n_groups: int


class AdditiveRows(NamedTuple):
    """The fit rows on the device, padded; fields as in `AdditiveProblem`."""

    numeric: Array
    codes: Array
    code_mean: Array
    code_scale: Array
    margin: Array
    cell: Array
    weight: Array
    fairness_weight: Array


class Waves(NamedTuple):
    """k(a, b) = Σ size cos(frequency (a − b)) + a constant, which cancels in MMD²; shape (w,)."""

    frequency: Any
    size: Any


class AdditiveSettings(NamedTuple):
    """What every step needs; `_discrepancy` explains `own_share`, (2, n_rate_rows, n_groups)."""

    rate: Any
    waves: Waves
    own_share: Any


class AdditiveState(NamedTuple):
    """Everything that one model carries from step to step."""

    term: Any
    adam: AdamState


def train_additive_term(
    problem: AdditiveProblem,
    penalties: AdditivePenalties,
    seeds: NDArray[np.int64],
    schedule: Schedule,
    *,
    n_concepts: int = 0,
    hidden: tuple[int, ...] = (),
    on_progress: Progress | None = None,
) -> TrainedConcepts | TrainedLayers:
    """Return m additive terms T, one for each entry of `penalties` and of `seeds`.

    They are concepts where `n_concepts` > 0, otherwise ReLU layers with `hidden` units; without
    hidden layers T is linear.
    """
    architecture = Architecture.of(problem.n_terms, n_concepts, hidden)
    spec = AdditiveSpec(architecture, problem.n_rate_rows, problem.n_groups)
    rows = _rows(problem)
    settings = _settings(rows, spec, schedule.learning_rate, problem.kernel_length)
    method = Method(
        start=_initial_state,
        step=_step,
        spec=spec,
        figures=HISTORY + CONCEPT_HISTORY if n_concepts else HISTORY,
        row_fields=ROW_FIELDS,
        units=max(2 * len(settings.waves.size), *architecture.sizes[1:], 1),
    )
    models = train(
        method,
        penalties,
        seeds,
        rows,
        len(problem.margin),
        settings,
        schedule,
        on_progress,
    )
    return architecture.trained(models, models.states.term)


def _rows(problem: AdditiveProblem) -> AdditiveRows:
    return rows_on_device(AdditiveRows, problem, ROW_FIELDS)


def _settings(
    rows: AdditiveRows, spec: AdditiveSpec, rate: float, kernel_length: float
) -> AdditiveSettings:
    return AdditiveSettings(np.float32(rate), _waves(kernel_length), _own_share(rows, spec))


def _own_share(rows: AdditiveRows, spec: AdditiveSpec) -> NDArray[np.float32]:
    """Return Σ w² / (Σ w)² of each group and of all others, shape (2, n_rate_rows, n_groups)."""
    cell, weight = np.asarray(rows.cell), np.asarray(rows.fairness_weight, dtype=np.float64)
    n_cells = spec.n_rate_rows * spec.n_groups
    total, squares = (
        np.stack([of_group, of_group @ (1 - np.eye(spec.n_groups))])
        for of_group in (
            np.bincount(cell, w, n_cells).reshape(spec.n_rate_rows, spec.n_groups)
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


def _initial_state(seed: int, spec: AdditiveSpec) -> AdditiveState:
    """Return a state with T = 0 exactly."""
    term = spec.architecture.start(np.random.default_rng(seed), 0.0)
    return AdditiveState(term, initial_adam(term))


# ---------------------------------------------------------------------------------------------
# Losses


def _loss(
    term: Array,
    batch: AdditiveRows,
    weights: AdditivePenalties,
    settings: AdditiveSettings,
    spec: AdditiveSpec,
) -> tuple[Array, Array]:
    """Return the loss of T and its parts; the L1 on W is left to the proximal step."""
    edited = batch.margin + spec.architecture.apply(term, batch)
    divergence = weighted_mean(_divergence(batch.margin, edited), batch.weight)
    discrepancy = _discrepancy(jax.nn.sigmoid(edited), batch, settings, spec)
    is_changed = (edited > 0) != (batch.margin > 0)
    change_rate = weighted_mean(is_changed.astype(edited.dtype), batch.weight)
    loss = divergence + weights.fair * discrepancy
    if not spec.architecture.n_concepts:
        return loss, jnp.stack([divergence, discrepancy, change_rate])
    path, cosine = spec.architecture.concept_penalties(term)
    loss += weights.sparsity * path + weights.diversity * cosine
    return loss, jnp.stack([divergence, discrepancy, change_rate, path, cosine])


def _divergence(logit: Array, edited: Array) -> Array:
    """Return KL(f ‖ q) from the two logits: the cross-entropy of q less that of f."""
    score = jax.nn.sigmoid(logit)
    return label_cross_entropy(edited, score) - label_cross_entropy(logit, score)


def _discrepancy(
    scores: Array, batch: AdditiveRows, settings: AdditiveSettings, spec: AdditiveSpec
) -> Array:
    """Return the batch's estimate of MMD² over all rows, diagonal included.

    A row is at distance 0 from itself. With its own diagonal, a batch with few rows of a group
    would therefore mostly push all scores together. Instead:

    1. Pairs of a row with itself count by `own_share`, their share among all rows.
    2. A group that has hardly two rows in the batch is left out.

    On all rows at once this is the usual biased estimator.
    """
    waves = settings.waves
    angle = scores[:, None] * waves.frequency
    features = jnp.concatenate([jnp.cos(angle), jnp.sin(angle)], axis=1)
    features *= jnp.tile(jnp.sqrt(waves.size), 2)
    weight = _cell_weights(batch, spec)
    total, squares = _side_weights(weight, spec)
    mean = _sides(weight.T @ features, spec) / jnp.maximum(total, 1e-12)[..., None]
    gap = ((mean[0] - mean[1]) ** 2).sum(axis=-1)

    pairs = total**2 - squares
    has_pairs = pairs > MIN_PAIRS * total**2
    within = (mean**2).sum(axis=-1)  # mean kernel over pairs, a row with itself included
    with_itself = waves.size.sum()  # the kernel of a row with itself
    others = within - (with_itself - within) * squares / jnp.where(has_pairs, pairs, 1.0)
    gap += (others + (with_itself - others) * settings.own_share - within).sum(axis=0)
    is_counted = has_pairs.all(axis=0)
    by_rate_row = jnp.where(is_counted, gap, 0.0).sum(axis=1)
    return (by_rate_row / jnp.maximum(is_counted.sum(axis=1), 1)).sum()


def _cell_weights(batch: AdditiveRows, spec: AdditiveSpec) -> Array:
    """Return the weight of each row in its cell, zero in the others, shape (batch, cells)."""
    cells = jax.nn.one_hot(batch.cell, spec.n_rate_rows * spec.n_groups)
    return cells * batch.fairness_weight[:, None]


def _side_weights(weight: Array, spec: AdditiveSpec) -> tuple[Array, Array]:
    """Return Σ w and Σ w² of each group and of all others, both (2, n_rate_rows, n_groups)."""
    return _sides(weight.sum(axis=0), spec), _sides((weight**2).sum(axis=0), spec)


def _sides(values: Array, spec: AdditiveSpec) -> Array:
    """Return sums by cell (cells, …) as sums of each group and of all others in its rate row.

    Shape (2, n_rate_rows, n_groups, …).
    """
    of_group = values.reshape(spec.n_rate_rows, spec.n_groups, *values.shape[1:])
    # not the total minus the group's own sum: that would round small groups
    is_other = 1 - np.eye(spec.n_groups, dtype=np.float32)
    return jnp.stack([of_group, jnp.einsum("gh,lh...->lg...", is_other, of_group)])


# ---------------------------------------------------------------------------------------------
# The step


def _step(
    state: AdditiveState,
    weights: AdditivePenalties,
    batch: AdditiveRows,
    settings: AdditiveSettings,
    clock: Clock,
    spec: AdditiveSpec,
) -> tuple[AdditiveState, Array]:
    gradient, parts = jax.grad(_loss, has_aux=True)(state.term, batch, weights, settings, spec)
    rate = clock.decay * settings.rate
    term, adam = spec.architecture.step(state.term, gradient, state.adam, rate, weights.sparsity)
    return AdditiveState(term, adam), parts
