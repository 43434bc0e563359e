"""Expect the fairness of a new sample from rates that were measured on rows new to an update.

The offset of an update adapts to the chance in the rates of the fit rows, and a new sample has
other chance. So the rates of a new sample differ from the measured ones by the chance of both.
A lowest rate or a gap then is, on average, less fair than the measured one: with chance, some group
is always the lowest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from commod.metrics._comparison import CellRows, GroupComparison, comparisons
from commod.metrics._constraint import Constraint, ConstraintLike, get_constraint

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
    constraint = get_constraint(constraints)
    sizes, rates = np.asarray(sizes, np.float64), np.asarray(rates, np.float64)
    if not sizes.all():
        return float("nan")
    rows = CellRows(np.zeros(len(sizes), np.intp), np.array(constraint.label_codes))
    everybody = np.ones((1, sizes.shape[1]), dtype=bool)
    compared = comparisons(constraint, rows, sizes, everybody)
    by_rates = [one.per_rate(sizes.ravel()) for one in compared]
    (value,) = expected_values([(constraint, by_rates)], sizes, rates)
    return value


def expected_values(
    compared: Sequence[tuple[Constraint, Sequence[GroupComparison]]],
    sizes: FloatArray,
    rates: FloatArray,
) -> list[float]:
    """Return the mean metric of new samples for each constraint, where `rates` were measured.

    The comparisons are functions of the rates. `sizes` and `rates` have the shape of the cells,
    (R, G). A sample in which a metric is not defined counts as the least fair. NaN where there is
    nothing to compare.
    """
    draws = drawn_rates(sizes, rates, n_samples=2)
    return [float(_worst_of(constraint, some, draws).mean()) for constraint, some in compared]


def sampled_interval(
    constraint: Constraint,
    compared: Sequence[GroupComparison],
    sizes: FloatArray,
    rates: FloatArray,
    level: float,
) -> tuple[float, float]:
    """Return the middle share `level` of the metric over samples of people with these rates.

    The interval is approximate: the lowest and the highest of several rates vary by more than one
    rate does, and in one direction.
    """
    worst = _worst_of(constraint, compared, drawn_rates(sizes, rates, n_samples=1))
    low, high = np.quantile(worst, ((1 - level) / 2, (1 + level) / 2)).tolist()
    return low, high


def drawn_rates(sizes: FloatArray, rates: FloatArray, n_samples: int) -> FloatArray:
    """Return rates with the chance of some samples, shape (A, N_DRAWS).

    `sizes` and `rates` have the shape of the cells, whose number is A.
    """
    sizes = np.maximum(sizes, 1.0)
    smoothed = (rates * sizes + 1) / (sizes + 2)  # a rate of 0 or 1 has chance, too
    deviation = np.sqrt(n_samples * smoothed * (1 - smoothed) / sizes)
    draws = np.clip(rates + deviation * _chance(rates.shape), 0.0, 1.0)
    return draws.reshape(N_DRAWS, -1).T


def _worst_of(
    constraint: Constraint, compared: Sequence[GroupComparison], draws: FloatArray
) -> FloatArray:
    """Return the least fair value of comparisons at each draw of rates, (N_DRAWS,)."""
    if not compared:
        return np.full(draws.shape[1], np.nan)
    values = np.stack([one.value(draws) for one in compared])
    worst = values.min(axis=0) if constraint.higher_is_fairer else values.max(axis=0)
    least = constraint.least_fair if np.isfinite(constraint.least_fair) else np.nanmax(worst)
    return np.asarray(np.where(np.isnan(worst), least, worst))


@cache
def _chance(shape: tuple[int, ...]) -> FloatArray:
    """Return standard normal draws, (N_DRAWS, *shape), always the same."""
    half = np.random.RandomState(0).standard_normal((N_DRAWS // 2, *shape))
    return np.concatenate([half, -half])
