"""A few quasi-Newton steps for a smooth function of few unknowns, without ceremony around each.

The searches here take thousands of steps on functions that cost a tenth of a millisecond, where
what a general optimiser does around a step costs as much as the step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

__all__ = ["Bounds", "descend"]

Floats = NDArray[np.float64]
Bounds = Sequence[tuple[float | None, float | None]]
Function = Callable[[Floats], tuple[float, Floats]]
Pair = tuple[Floats, Floats, float]  # a step, the change of the gradient along it, their product

MEMORY = 6  # steps from which the curvature is told
SUFFICIENT = 1e-4  # of the decrease that the slope promises
MOST_HALVINGS = 12
FLAT = 1e-5  # a gradient with no larger entry is zero


def descend(
    function: Function,
    start: Floats,
    *,
    n_steps: int,
    tolerance: float,
    bounds: Bounds | None = None,
) -> Floats:
    """Return where a function is lower than at `start`, after at most `n_steps` steps.

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
    found = minimize(function, start, jac=True, method="L-BFGS-B", **settings)
    return np.asarray(found.x)


def _limited_memory(function: Function, v: Floats, n_steps: int, tolerance: float) -> Floats:
    value, gradient = function(v)
    memory: deque[Pair] = deque(maxlen=MEMORY)
    for _ in range(n_steps):
        if np.abs(gradient).max(initial=0.0) <= FLAT:
            break
        step = _direction(gradient, memory)
        slope = float(step @ gradient)
        if slope >= 0:  # by rounding: begin again along the gradient
            memory.clear()
            step = _direction(gradient, memory)
            slope = float(step @ gradient)
        found = _line_search(function, v, value, step, slope)
        if found is None:
            break
        moved, new_value, new_gradient = found
        bent = new_gradient - gradient
        along = float(moved @ bent)
        if along > 1e-10 * -slope:
            memory.append((moved, bent, along))
        fell = value - new_value
        v, value, gradient = v + moved, new_value, new_gradient
        if fell <= tolerance * max(abs(value), abs(value + fell), 1.0):
            break
    return v


def _direction(gradient: Floats, memory: deque[Pair]) -> Floats:
    """Return minus the gradient in the metric of the last steps (L-BFGS, two loops)."""
    step = -gradient
    if not memory:
        return step / max(1.0, float(np.sqrt(gradient @ gradient)))
    shares = []
    for moved, bent, along in reversed(memory):
        share = float(moved @ step) / along
        step -= share * bent
        shares.append(share)
    _, bent, along = memory[-1]
    step *= along / float(bent @ bent)
    for (moved, bent, along), share in zip(memory, reversed(shares), strict=True):
        step += (share - float(bent @ step) / along) * moved
    return step


def _line_search(
    function: Function, v: Floats, value: float, step: Floats, slope: float
) -> tuple[Floats, float, Floats] | None:
    """Return a step that falls enough, with value and gradient after it; None if none does."""
    length = 1.0
    for _ in range(MOST_HALVINGS):
        moved = length * step
        new_value, gradient = function(v + moved)
        if new_value <= value + SUFFICIENT * length * slope:
            return moved, new_value, gradient
        # the lowest point of the parabola through what is known, not too far from a half
        bend = new_value - value - slope * length
        best = -slope * length * length / (2 * bend) if bend > 0 else 0.5 * length
        length = min(max(best, 0.1 * length), 0.5 * length)
    return None
