"""The functions of the terms that are trained: layers of units, and a bottleneck of concepts.

Parameters are flat vectors, so that one step of Adam moves all of them. The first layer reads the
standardised terms of a batch: any object with the fields of `standardise`. Categories stay
codes on a CPU. A GPU multiplies one-hot columns, because its sums into a table do not repeat.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from commod._solvers.problem import INITS, Layer
from commod._solvers.training.loop import TrainedWeights

INITIAL_SCALE = 1.0  # of Glorot's scale, for "balanced": docs/decisions/0002 compares others

Sizes = tuple[int, ...]  # inputs, hidden units of each layer, outputs


def _glorot(rng: np.random.Generator, rows: int, columns: int) -> NDArray[np.float64]:
    """Return random weights, uniform, with Glorot's scale for this many inputs and outputs."""
    limit = np.sqrt(6 / (rows + columns))
    return rng.uniform(-limit, limit, (rows, columns))


def linear_in_terms(weights: Array, start: Array, batch: Any) -> Array:
    """Return start + the weighted sum of a batch's terms: `weights` is (d,) or (d, units)."""
    p = batch.numeric.shape[1]
    total = start + batch.numeric @ weights[:p]
    if batch.codes.shape[1]:
        points = (weights[p:].T * batch.code_scale).T
        total += _sum_of_points(batch.codes, points) - batch.code_mean @ points
    return total


def _sum_of_points(codes: Array, points: Array) -> Array:
    """Return the sum of the points (c,) or (c, units) of each row's codes (batch, q).

    A code of c is no term. A GPU would add up the gradient of a lookup table in another order each
    time, so the same seed would not give the same bits. Its matrix product is as fast and repeats.
    """
    if jax.default_backend() == "cpu":
        table = jnp.concatenate([points, jnp.zeros_like(points[:1])])
        return table.at[codes].get(mode="promise_in_bounds").sum(axis=1)
    present = (codes[:, :, None] == jnp.arange(len(points))).astype(points.dtype)
    return present.sum(axis=1) @ points


# ---------------------------------------------------------------------------------------------
# Layers


def layer_lengths(sizes: Sizes) -> tuple[int, ...]:
    """Return the lengths of the matrices and biases in the flat vector, in their order."""
    return tuple(n for rows, columns in pairwise(sizes) for n in (rows * columns, columns))


def split_layers(flat: Any, sizes: Sizes) -> list[tuple[Any, Any]]:
    """Return matrix (…, rows, columns) and bias (…, columns) of each layer, of one model or many.

    Examples
    --------
    >>> [(m.shape, b.shape) for m, b in split_layers(np.zeros((5, 11)), (2, 2, 1))]
    Traceback (most recent call last):
    ValueError: 11 parameters given, 9 needed for layers of (2, 2, 1).
    >>> [(m.shape, b.shape) for m, b in split_layers(np.zeros((5, 9)), (2, 2, 1))]
    [((5, 2, 2), (5, 2)), ((5, 2, 1), (5, 1))]
    """
    lengths = layer_lengths(sizes)
    if flat.shape[-1] != sum(lengths):
        raise ValueError(
            f"{flat.shape[-1]} parameters given, {sum(lengths)} needed for layers of {sizes}."
        )
    ends = np.cumsum(lengths).tolist()
    pieces = [flat[..., end - n : end] for n, end in zip(lengths, ends, strict=True)]
    shapes = list(pairwise(sizes))
    return [
        (matrix.reshape(*matrix.shape[:-1], *shape), bias)
        for matrix, bias, shape in zip(pieces[::2], pieces[1::2], shapes, strict=True)
    ]


def initial_layers(
    rng: np.random.Generator, sizes: Sizes, *, constant: float | None = None
) -> NDArray[np.float32]:
    """Return the flat vector of layers with random weights, or with `constant` as their output."""
    parts: list[NDArray[np.float64]] = []
    for i, (rows, columns) in enumerate(pairwise(sizes)):
        if constant is not None and i == len(sizes) - 2:
            parts += [np.zeros(rows * columns), np.full(columns, constant)]
        else:
            parts += [_glorot(rng, rows, columns).ravel(), np.zeros(columns)]
    return np.concatenate(parts).astype(np.float32)


def apply_layers(flat: Array, sizes: Sizes, first_layer: Callable[[Array, Array], Array]) -> Array:
    """Return the output (batch, outputs); `first_layer(matrix, bias)` reads the inputs."""
    (matrix, bias), *later = split_layers(flat, sizes)
    x = first_layer(matrix, bias)
    for matrix, bias in later:
        x = jax.nn.relu(x) @ matrix + bias
    return x


def apply_across_rows(flat: Array, sizes: Sizes, inputs: Array) -> Array:
    """Return the output (outputs, batch) of layers that read few `inputs` (inputs, batch).

    Rows lie along the last axis, and `flat` holds each matrix as (columns, rows). With rows along
    the first axis, a few outputs would leave most of a processor's vector units idle.
    """
    x = inputs
    for i, (matrix, bias) in enumerate(split_layers(flat, sizes)):
        x = matrix.reshape(sizes[i + 1], sizes[i]) @ (jax.nn.relu(x) if i else x) + bias[:, None]
    return x


def read_terms(flat: Array, sizes: Sizes, batch: Any) -> Array:
    """Return the single output (batch,) of layers that read the terms of a batch."""
    return apply_layers(flat, sizes, lambda m, bias: linear_in_terms(m, bias, batch))[:, 0]


def layers_of(weights: TrainedWeights, sizes: Sizes) -> list[Layer]:
    """Return the layers of m models from their weights."""
    return split_layers(np.asarray(weights.values, dtype=np.float64), sizes)


# ---------------------------------------------------------------------------------------------
# Losses of one row


def group_cross_entropy(logits: Array, group: Array) -> Array:
    """Return −log of the predicted probability of each row's group, shape (batch,).

    `logits` has shape (groups, batch).
    """
    highest = jax.lax.stop_gradient(logits.max(axis=0))
    own = jnp.where(group == jnp.arange(len(logits))[:, None], logits, 0.0).sum(axis=0)
    return jnp.log(jnp.exp(logits - highest).sum(axis=0)) + highest - own


def label_cross_entropy(logit: Array, label: Array) -> Array:
    """Return the cross-entropy of labels in [0, 1] and sigmoid(logit), element by element."""
    return jax.nn.softplus(logit) - logit * label


# ---------------------------------------------------------------------------------------------
# The bottleneck b + Σ_j v_j (W_j · x)


def initial_bottleneck(
    rng: np.random.Generator, k: int, n_terms: int, intercept: float, init: str = "balanced"
) -> NDArray[np.float32]:
    """Return a bottleneck that is the constant b exactly, whatever `init` is.

    - "balanced": equal v, and random concepts in pairs that cancel. Every direction can move at
      once. Each concept gets the same step, so only their start lets concepts differ: W_j keeps
      its own random part, which must not be small beside the steps.
    - "zero": v = 0 and random concepts. Only the k directions of W can move at first.
    """
    if init == "zero":
        concepts, contributions = _glorot(rng, k, n_terms), np.zeros(k)
    else:
        half = _rounded(INITIAL_SCALE * _glorot(rng, k // 2, n_terms))
        concepts = np.concatenate([half, -half, np.zeros((k % 2, n_terms))])
        contributions = _rounded(np.full(k, k**-0.5))
    parts = [concepts.ravel(), contributions, np.full(1, intercept)]
    return np.concatenate(parts).astype(np.float32)


def _rounded(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights with few digits: their products and sums are exact, so pairs cancel exactly.

    A processor that multiplies and adds in one step would otherwise leave a rounding error.
    """
    return np.round(weights * 2**10) / 2**10


def split_bottleneck(flat: Any, k: int) -> tuple[Any, Any, Any]:
    """Return W (…, k, d), v (…, k) and b (…) from the flat vector of one model or many."""
    concepts = flat[..., : -k - 1]
    return concepts.reshape(*flat.shape[:-1], k, -1), flat[..., -k - 1 : -1], flat[..., -1]


def apply_bottleneck(flat: Array, batch: Any, k: int) -> Array:
    """Return b + v'Wx of a batch, shape (batch,): only w = v'W is ever multiplied out."""
    concepts, contributions, intercept = split_bottleneck(flat, k)
    return linear_in_terms(contributions @ concepts, intercept, batch)


# ---------------------------------------------------------------------------------------------
# Layers or a bottleneck


class Architecture(NamedTuple):
    """What a trained function of the terms is; the compiled program depends on it.

    With `n_concepts` > 0: a bottleneck of so many concepts, which starts as `init` says. With 0:
    layers of `sizes`, which are the number of terms, the hidden units and one output.
    """

    n_concepts: int
    sizes: Sizes
    init: str = INITS[0]

    @classmethod
    def of(cls, n_terms: int, n_concepts: int, hidden: Sizes, init: str = INITS[0]) -> Architecture:
        """Return a bottleneck of `n_concepts`, or layers with `hidden` units where that is 0."""
        return cls(n_concepts, (n_terms,) if n_concepts else (n_terms, *hidden, 1), init)

    def start(self, rng: np.random.Generator, constant: float) -> NDArray[np.float32]:
        """Return the flat vector of a function that is constant."""
        if self.n_concepts:
            return initial_bottleneck(rng, self.n_concepts, self.sizes[0], constant, self.init)
        return initial_layers(rng, self.sizes, constant=constant)

    def apply(self, flat: Array, batch: Any) -> Array:
        """Return the value of each row of a batch, shape (batch,)."""
        if self.n_concepts:
            return apply_bottleneck(flat, batch, self.n_concepts)
        return read_terms(flat, self.sizes, batch)

    def concept_penalties(self, flat: Array) -> tuple[Array, Array]:
        """Return Σ_j |v_j| ‖W_j‖₁ and the mean squared cosine over pairs of concepts.

        The first has a gradient for v only: `step` shrinks W. The second is 0 for orthogonal
        concepts, and 1 for equal ones.
        """
        concepts, contributions, _ = split_bottleneck(flat, self.n_concepts)
        path = jnp.abs(contributions) @ jax.lax.stop_gradient(jnp.abs(concepts).sum(axis=1))
        k = self.n_concepts
        if k == 1:
            return path, jnp.zeros(())
        unit = concepts / jnp.sqrt((concepts**2).sum(axis=1, keepdims=True) + 1e-12)
        cosine = (unit[:, None] * unit).sum(axis=-1)  # faster than a product of so small matrices
        squares = (cosine * (1 - np.eye(k, dtype=np.float32))) ** 2
        return path, squares.sum() / (k * (k - 1))

    def step(
        self, weights: TrainedWeights, gradient: Array, rate: Array, sparsity: Array
    ) -> TrainedWeights:
        """Return the weights after a step of Adam; concepts are then shrunk to exact zeros."""
        moved = weights.step(gradient, rate)
        return self._shrink(moved, rate, sparsity) if self.n_concepts else moved

    def _shrink(self, weights: TrainedWeights, rate: Array, sparsity: Array) -> TrainedWeights:
        """Soft-threshold W for the L1 path norm, in the metric of Adam's step."""
        concepts, contributions, intercept = split_bottleneck(weights.values, self.n_concepts)
        step_sizes, _, _ = split_bottleneck(weights.step_sizes(rate), self.n_concepts)
        threshold = sparsity * step_sizes * jnp.abs(contributions)[:, None]
        concepts = jnp.sign(concepts) * jnp.maximum(jnp.abs(concepts) - threshold, 0.0)
        values = jnp.concatenate([concepts.ravel(), contributions, intercept[None]])
        return weights._replace(values=values)

    def layers(self, weights: TrainedWeights) -> list[Layer]:
        """Return the layers of m models from their weights; a bottleneck is two linear layers."""
        if not self.n_concepts:
            return layers_of(weights, self.sizes)
        flat = np.asarray(weights.values, dtype=np.float64)
        concepts, contributions, intercept = split_bottleneck(flat, self.n_concepts)
        has_moved = np.asarray(weights.n_steps)[:, None] > 0  # the start is a constant
        return [
            (np.swapaxes(concepts, 1, 2), np.zeros_like(contributions)),
            (np.where(has_moved, contributions, 0.0)[:, :, None], intercept[:, None]),
        ]
