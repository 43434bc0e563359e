"""Minimise a smooth function of few unknowns with a few quasi-Newton (L-BFGS) steps.

A search takes thousands of steps on functions that cost a tenth of a millisecond. The overhead of
a general optimiser around each step would cost as much as the step itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Floats = NDArray[np.float64]
Bounds = Sequence[tuple[float | None, float | None]]
Function = Callable[[Floats], tuple[float, Floats]]
Pair = tuple[Floats, Floats, float]  # a step, the change of the gradient along it, their product

MEMORY = 6  # past steps that estimate the curvature
MIN_DECREASE = 1e-4  # share of the decrease predicted by the slope (Armijo)
MAX_STEP_CUTS = 12
MAX_FLAT_GRADIENT = 1e-5  # a gradient with no larger entry counts as zero


def descend(
    function: Function,
    start: Floats,
    *,
    n_steps: int,
    tolerance: float,
    bounds: Bounds | None = None,
) -> Floats:
    """Return a point where a function is lower than at `start`, after at most `n_steps` steps.

    Parameters
    ----------
    function : callable
        Returns value and gradient (d,) at a point (d,).
    start : ndarray of shape (d,)
    n_steps : int
    tolerance : float
        Steps end where the value falls by less than this share of itself.
    bounds : sequence of (low, high) of length d, default=None
        None is free.

    Examples
    --------
    >>> bowl = lambda v: (float(v @ v), 2 * v)
    >>> descend(bowl, np.array([3.0, -4.0]), n_steps=20, tolerance=1e-9).round(6) + 0.0
    array([0., 0.])
    """
    if bounds is None:
        return _limited_memory(function, start, n_steps, tolerance)
    settings: Any = {"bounds": bounds, "options": {"maxiter": n_steps, "ftol": tolerance}}
    return np.asarray(minimize(function, start, jac=True, method="L-BFGS-B", **settings).x)


def _limited_memory(function: Function, v: Floats, n_steps: int, tolerance: float) -> Floats:
    value, gradient = function(v)
    memory: deque[Pair] = deque(maxlen=MEMORY)
    for _ in range(n_steps):
        if np.abs(gradient).max(initial=0.0) <= MAX_FLAT_GRADIENT:
            break
        direction = _descent_direction(gradient, memory)
        if direction @ gradient >= 0:  # rounding spoilt the memory: start again
            memory.clear()
            direction = _descent_direction(gradient, memory)
        slope = float(direction @ gradient)
        accepted = _line_search(function, v, value, direction, slope)
        if accepted is None:
            break
        step, new_value, new_gradient = accepted
        bend = new_gradient - gradient
        product = float(step @ bend)
        if product > 1e-10 * -slope:
            memory.append((step, bend, product))
        decrease = value - new_value
        v, value, gradient = v + step, new_value, new_gradient
        if decrease <= tolerance * max(abs(value), abs(value + decrease), 1.0):
            break
    return v


def _descent_direction(gradient: Floats, memory: deque[Pair]) -> Floats:
    """Return minus the gradient in the metric of the last steps (the two loops of L-BFGS).

    Vectors are short, so `dot` is used: `@` gives the same number and takes longer to call.
    """
    direction = -gradient
    if not memory:
        return direction / max(1.0, float(np.sqrt(gradient.dot(gradient))))
    shares = []
    for step, bend, product in reversed(memory):
        share = float(step.dot(direction)) / product
        direction -= share * bend
        shares.append(share)
    _, bend, product = memory[-1]
    direction *= product / float(bend.dot(bend))
    for (step, bend, product), share in zip(memory, reversed(shares), strict=True):
        direction += (share - float(bend.dot(direction)) / product) * step
    return direction


def _line_search(
    function: Function, v: Floats, value: float, direction: Floats, slope: float
) -> tuple[Floats, float, Floats] | None:
    """Return a step that lowers the value enough, with value and gradient after it, or None."""
    length = 1.0
    for _ in range(MAX_STEP_CUTS):
        step = length * direction
        new_value, gradient = function(v + step)
        if new_value <= value + MIN_DECREASE * length * slope:
            return step, new_value, gradient
        # try the lowest point of the parabola through the known values, not far from a half
        bend = new_value - value - slope * length
        lowest = -slope * length * length / (2 * bend) if bend > 0 else 0.5 * length
        length = min(max(lowest, 0.1 * length), 0.5 * length)
    return None
