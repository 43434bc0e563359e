"""The functions that are trained: layers of units, and the paper's bottleneck of concepts.

Parameters are flat vectors, so that one call of Adam moves them all. A first layer reads the
standardised terms of a batch, any named tuple with the fields of `TermArrays`: categories stay
codes; a GPU alone, whose sums into a table are not repeatable, multiplies one-hot columns.
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

from commod._solvers.training.loop import Adam, reach

__all__ = [
    "Form",
    "bottleneck",
    "concept_penalties",
    "group_error",
    "label_error",
    "layer_lengths",
    "layers",
    "on_terms",
    "run_across",
    "run_layers",
    "shrink",
    "split_bottleneck",
    "start_bottleneck",
    "start_layers",
]

START_SIZE = 0.01  # of the usual size of random weights: enough to tell the concepts apart

Sizes = tuple[int, ...]  # inputs, hidden units of each layer, outputs


def _glorot(rng: np.random.Generator, rows: int, columns: int) -> NDArray[np.float64]:
    """Return random weights whose size suits their number."""
    limit = np.sqrt(6 / (rows + columns))
    return rng.uniform(-limit, limit, (rows, columns))


def on_terms(weights: Array, start: Array, batch: Any) -> Array:
    """Return start + the weighted sum of a batch's terms: `weights` is (d,) or (d, units)."""
    p = batch.numeric.shape[1]
    total = start + batch.numeric @ weights[:p]
    if batch.codes.shape[1]:
        points = (weights[p:].T * batch.code_scale).T
        total += _points_of(batch.codes, points) - batch.code_mean @ points
    return total


def _points_of(codes: Array, points: Array) -> Array:
    """Return the sum of the points (c,) or (c, units) of each row's codes (batch, q).

    A code of c is no term. A GPU would add up the gradient of a table that is read in an order of
    its own each time, so the same seed would not give the same bits; its matrix product is as fast.
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


def layers(flat: Any, sizes: Sizes) -> list[tuple[Any, Any]]:
    """Return matrix (…, rows, columns) and bias (…, columns) of each layer, of one model or many.

    Examples
    --------
    >>> [(m.shape, b.shape) for m, b in layers(np.zeros((5, 11)), (2, 2, 1))]  # 2·2+2 and 2·1+1
    Traceback (most recent call last):
    ValueError: 11 parameters given, 9 needed for layers of (2, 2, 1).
    >>> [(m.shape, b.shape) for m, b in layers(np.zeros((5, 9)), (2, 2, 1))]
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


def start_layers(
    rng: np.random.Generator, sizes: Sizes, *, constant: float | None = None
) -> NDArray[np.float32]:
    """Return the flat vector of layers that begin at random, or with a constant as their output."""
    parts: list[NDArray[np.float64]] = []
    for i, (rows, columns) in enumerate(pairwise(sizes)):
        if constant is not None and i == len(sizes) - 2:
            parts += [np.zeros(rows * columns), np.full(columns, constant)]
        else:
            parts += [_glorot(rng, rows, columns).ravel(), np.zeros(columns)]
    return np.concatenate(parts).astype(np.float32)


def run_layers(flat: Array, sizes: Sizes, enter: Callable[[Array, Array], Array]) -> Array:
    """Return the output (batch, outputs); `enter(matrix, bias)` is what the first layer gives."""
    (matrix, bias), *rest = layers(flat, sizes)
    x = enter(matrix, bias)
    for matrix, bias in rest:
        x = jax.nn.relu(x) @ matrix + bias
    return x


def run_across(flat: Array, sizes: Sizes, inputs: Array) -> Array:
    """Return the output (outputs, batch) of layers that read few `inputs` (inputs, batch).

    Rows lie along the last axis, and `flat` holds each matrix as (columns, rows): the other way, a
    handful of outputs would leave most of a processor's vector units idle.
    """
    x = inputs
    for i, (matrix, bias) in enumerate(layers(flat, sizes)):
        x = matrix.reshape(sizes[i + 1], sizes[i]) @ (jax.nn.relu(x) if i else x) + bias[:, None]
    return x


# ---------------------------------------------------------------------------------------------
# Losses of one row


def group_error(guesses: Array, group: Array) -> Array:
    """Return −log of the chance that `guesses` (groups, batch) give each row's group, (batch,)."""
    top = jax.lax.stop_gradient(guesses.max(axis=0))
    own = jnp.where(group == jnp.arange(len(guesses))[:, None], guesses, 0.0).sum(axis=0)
    return jnp.log(jnp.exp(guesses - top).sum(axis=0)) + top - own


def label_error(logit: Array, label: Array) -> Array:
    """Return the cross-entropy of labels in [0, 1] and sigmoid(logit), element by element."""
    return jax.nn.softplus(logit) - logit * label


# ---------------------------------------------------------------------------------------------
# The bottleneck b + Σ_j v_j (W_j · x)


def start_bottleneck(
    rng: np.random.Generator, k: int, n_terms: int, intercept: float
) -> NDArray[np.float32]:
    """Start at the constant b with every direction open: equal v, concepts in pairs that cancel.

    With v = 0 and random W, only the k directions of W could move at first, and few concepts meant
    another update for each seed (docs/decisions/0002).
    """
    half = START_SIZE * _glorot(rng, k // 2, n_terms)
    concepts = np.concatenate([half, -half, np.zeros((k % 2, n_terms))])
    parts = [concepts.ravel(), np.full(k, k**-0.5), np.full(1, intercept)]
    return np.concatenate(parts).astype(np.float32)


def split_bottleneck(flat: Any, k: int) -> tuple[Any, Any, Any]:
    """Return W (…, k, d), v (…, k) and b (…) from the flat vector of one model or many."""
    concepts = flat[..., : -k - 1]
    return concepts.reshape(*flat.shape[:-1], k, -1), flat[..., -k - 1 : -1], flat[..., -1]


def bottleneck(flat: Array, batch: Any, k: int) -> Array:
    """Return b + v'Wx of a batch, shape (batch,): only w = v'W is ever multiplied out."""
    concepts, contributions, intercept = split_bottleneck(flat, k)
    return on_terms(contributions @ concepts, intercept, batch)


def concept_penalties(flat: Array, k: int) -> tuple[Array, Array]:
    """Return Σ_j |v_j| ‖W_j‖₁ and the mean squared cosine over pairs of concepts.

    The gradient of the first is that for v alone: `shrink` takes the step of W.
    """
    concepts, contributions, _ = split_bottleneck(flat, k)
    path = jnp.abs(contributions) @ jax.lax.stop_gradient(jnp.abs(concepts).sum(axis=1))
    return path, _diversity(concepts)


def _diversity(concepts: Array) -> Array:
    """Return the mean squared cosine over pairs of concepts: 0 apart, 1 the same up to sign."""
    k = len(concepts)
    if k == 1:
        return jnp.zeros(())
    unit = concepts / jnp.sqrt((concepts**2).sum(axis=1, keepdims=True) + 1e-12)
    cosine = (unit[:, None] * unit).sum(axis=-1)  # faster than a product of so small matrices
    return ((cosine * (1 - np.eye(k, dtype=np.float32))) ** 2).sum() / (k * (k - 1))


def shrink(flat: Array, adam: Adam, rate: Array, sparsity: Array, k: int) -> Array:
    """Soft-threshold W for the L1 path norm, in the metric of Adam's step: exact zeros."""
    concepts, contributions, intercept = split_bottleneck(flat, k)
    step, _, _ = split_bottleneck(reach(adam, rate), k)
    threshold = sparsity * step * jnp.abs(contributions)[:, None]
    concepts = jnp.sign(concepts) * jnp.maximum(jnp.abs(concepts) - threshold, 0.0)
    return jnp.concatenate([concepts.ravel(), contributions, intercept[None]])


# ---------------------------------------------------------------------------------------------
# One or the other


class Form(NamedTuple):
    """What a trained function of the terms is; part of what a program is compiled for.

    A bottleneck of `n_concepts`, or, where that is 0, layers of `sizes`: terms first, one output.
    """

    n_concepts: int
    sizes: Sizes

    def start(self, rng: np.random.Generator, constant: float) -> NDArray[np.float32]:
        """Return the flat vector of a function that begins as a constant."""
        if self.n_concepts:
            return start_bottleneck(rng, self.n_concepts, self.sizes[0], constant)
        return start_layers(rng, self.sizes, constant=constant)

    def run(self, flat: Array, batch: Any) -> Array:
        """Return the value of each row of a batch, shape (batch,)."""
        if self.n_concepts:
            return bottleneck(flat, batch, self.n_concepts)
        values = run_layers(flat, self.sizes, lambda matrix, bias: on_terms(matrix, bias, batch))
        return values[:, 0]
