"""Expect the fairness of a new sample from rates that were measured on rows new to an update.

The offset of an update adapts to the chance in the rates of the fit rows, and a new sample has
other chance. So the rates of a new sample differ from the measured ones by the chance of both.
A lowest rate or a gap then is, on average, less fair than the measured one: with chance, some group
is always the lowest.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commod.metrics._constraint import ConstraintLike, get_constraint

FloatArray = NDArray[np.float64]

N_DRAWS = 1000  # of new samples, in pairs of opposite chance


def expected_fairness(constraints: ConstraintLike, sizes: ArrayLike, rates: ArrayLike) -> float:
    """Return the mean fairness of new samples with these sizes, where `rates` were measured.

    Parameters
    ----------
    constraints : str
    sizes, rates : array-like of shape (n_rate_rows, n_groups)
        People of each cell, and the share of them with a positive decision.

    Returns
    -------
    float
        P-rule in [0, 1], gap in [0, 1], disparate mistreatment in [0, 2]. NaN where a cell is
        empty.

    Examples
    --------
    The measured P-rule is 0.8. With many people the expectation is near it; with few, it is less
    fair.

    >>> for n in (10_000, 100):
    ...     print(f"{expected_fairness('demographic_parity', [[n, n, n]], [[0.4, 0.4, 0.5]]):.3f}")
    0.792
    0.707
    """
    sizes, rates = np.asarray(sizes, np.float64), np.asarray(rates, np.float64)
    if not sizes.all():
        return float("nan")
    smoothed = (rates * sizes + 1) / (sizes + 2)  # a rate of 0 or 1 has chance, too
    deviation = np.sqrt(2 * smoothed * (1 - smoothed) / sizes)
    draws = np.clip(rates + deviation * _chance(rates.shape), 0.0, 1.0)
    highest, lowest = draws.max(axis=2), draws.min(axis=2)
    if get_constraint(constraints).is_ratio:
        ratios = np.divide(lowest, highest, out=np.zeros_like(lowest), where=highest > 0)
        return float(ratios.mean())
    return float((highest - lowest).sum(axis=1).mean())


@cache
def _chance(shape: tuple[int, int]) -> FloatArray:
    """Return standard normal draws, (N_DRAWS, n_rate_rows, n_groups), always the same."""
    half = np.random.RandomState(0).standard_normal((N_DRAWS // 2, *shape))
    return np.concatenate([half, -half])
