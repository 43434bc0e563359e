"""The functions that are trained: layers of units, and the paper's bottleneck of concepts.

Parameters are flat vectors, so that one call of Adam moves them all. A first layer reads the
standardised terms of a batch, any named tuple with the fields of `TermArrays`: categories stay
codes, and their one-hot columns are never written out.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

__all__ = [
    "Form",
    "bottleneck",
    "concept_penalties",
    "layer_lengths",
    "layers",
    "on_terms",
    "run_layers",
    "shrink",
    "split_bottleneck",
    "start_bottleneck",
    "start_layers",
]

START_SIZE = 0.01  # of the usual size of random weights: enough to tell the concepts apart

Sizes = tuple[int, ...]  # inputs, hidden units of each layer, outputs


def _glorot(key: Array, rows: int, columns: int) -> Array:
    """Return random weights whose size suits their number."""
    limit = float(np.sqrt(6 / (rows + columns)))
    return jax.random.uniform(key, (rows, columns), minval=-limit, maxval=limit)


def on_terms(weights: Array, start: Array, batch: Any) -> Array:
    """Return start + the weighted sum of a batch's terms: `weights` is (d,) or (d, units)."""
    p = batch.numeric.shape[1]
    total = start + batch.numeric @ weights[:p]
    if batch.codes.shape[1]:
        points = (weights[p:].T * batch.code_scale).T
        table = jnp.concatenate([points, jnp.zeros_like(points[:1])])  # a code of c is no term
        total += table[batch.codes].sum(axis=1) - batch.code_mean @ points
    return total


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


def start_layers(key: Array, sizes: Sizes, *, constant: float | None = None) -> Array:
    """Return the flat vector of layers that begin at random, or with a constant as their output."""
    keys = jax.random.split(key, len(sizes) - 1)
    parts = []
    for i, (rows, columns) in enumerate(pairwise(sizes)):
        if constant is not None and i == len(keys) - 1:
            parts += [jnp.zeros(rows * columns), jnp.full(columns, constant)]
        else:
            parts += [_glorot(keys[i], rows, columns).ravel(), jnp.zeros(columns)]
    return jnp.concatenate(parts)


def run_layers(flat: Array, sizes: Sizes, enter: Callable[[Array, Array], Array]) -> Array:
    """Return the output (batch, outputs); `enter(matrix, bias)` is what the first layer gives."""
    (matrix, bias), *rest = layers(flat, sizes)
    x = enter(matrix, bias)
    for matrix, bias in rest:
        x = jax.nn.relu(x) @ matrix + bias
    return x


# ---------------------------------------------------------------------------------------------
# The bottleneck b + Σ_j v_j (W_j · x)


def start_bottleneck(key: Array, k: int, n_terms: int, intercept: float) -> Array:
    """Start at the constant b with every direction open: equal v, concepts in pairs that cancel.

    With v = 0 and random W, only the k directions of W could move at first, and few concepts meant
    another update for each seed (docs/decisions/0002).
    """
    half = START_SIZE * _glorot(key, k // 2, n_terms)
    concepts = jnp.concatenate([half, -half, jnp.zeros((k % 2, n_terms))])
    return jnp.concatenate([concepts.ravel(), jnp.full(k, k**-0.5), jnp.full(1, intercept)])


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
    cosine = unit @ unit.T
    return ((cosine**2).sum() - (jnp.diagonal(cosine) ** 2).sum()) / (k * (k - 1))


def shrink(
    flat: Array, optimizer: optax.ScaleByAdamState, rate: Array, sparsity: Array, k: int
) -> Array:
    """Soft-threshold W for the L1 path norm, in the metric of Adam's step: exact zeros."""
    concepts, contributions, intercept = split_bottleneck(flat, k)
    curvature = optimizer.nu / (1 - 0.999**optimizer.count)  # optax's default decay of nu
    step, _, _ = split_bottleneck(rate / (jnp.sqrt(curvature) + 1e-8), k)
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

    def start(self, key: Array, constant: float) -> Array:
        """Return the flat vector of a function that begins as a constant."""
        if self.n_concepts:
            return start_bottleneck(key, self.n_concepts, self.sizes[0], constant)
        return start_layers(key, self.sizes, constant=constant)

    def run(self, flat: Array, batch: Any) -> Array:
        """Return the value of each row of a batch, shape (batch,)."""
        if self.n_concepts:
            return bottleneck(flat, batch, self.n_concepts)
        values = run_layers(flat, self.sizes, lambda matrix, bias: on_terms(matrix, bias, batch))
        return values[:, 0]
