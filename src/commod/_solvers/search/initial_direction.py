"""Determine where a search begins: a logistic regression of the rows worth changing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from commod._solvers.search.design import Design, unit_spread
from commod._solvers.search.quasi_newton import Bounds, descend

Floats = NDArray[np.float64]

N_STEPS, TOLERANCE = 100, 1e-9  # the search goes on from here: the last digits do not matter
RIDGE = 0.02  # per standard deviation of a term: weights of rare categories stay near zero


def initial_direction(
    design: Design,
    worth_changing: NDArray[np.bool_],
    weight: Floats,
    *,
    bounds: Bounds | None = None,
    start: Floats | None = None,
) -> Floats:
    """Return the direction (d,) of a logistic regression of `worth_changing` (n,) on the terms.

    The regression is convex and quick, and fits little noise. It orders people almost as well as
    any rule without the group can. The direction is scaled so that w·x has spread 1. `start` (d,)
    is where the regression begins; zeros if None.
    """
    share = weight / weight.sum()
    sign = np.where(worth_changing, 1.0, -1.0)

    def loss(v: Floats) -> tuple[float, Floats]:
        probability = expit(sign * (design.times(v[:-1]) + v[-1]))
        likelihood = share @ np.log(np.maximum(probability, 1e-300))
        value = RIDGE / 2 * (v[:-1] @ v[:-1]) - likelihood
        slope = -share * sign * (1 - probability)
        return float(value), np.append(design.gradient(slope) + RIDGE * v[:-1], slope.sum())

    rate = np.clip(share @ worth_changing, 1e-6, 1 - 1e-6)
    weights = np.zeros(design.width) if start is None else start
    v = np.append(weights, np.log(rate / (1 - rate)))
    all_bounds = None if bounds is None else [*bounds, (None, None)]
    v = descend(loss, v, n_steps=N_STEPS, tolerance=TOLERANCE, bounds=all_bounds)
    return unit_spread(design, v[:-1])
