"""What is known of the fairness on new people: from counts on people no model was fitted to.

A table is two arrays, `sizes` and `positives`, of shape (n_cells, n_groups): how many people a
group has in a cell, and how many of them get the positive decision. Demographic parity has one
cell, everybody; a gap in true or false positive rates one, the people with that label; equalized
odds has two, label 1 and label 0, whose gaps are added. `constraints` is one of those four names
as Fairlearn writes them; nothing here is checked.

Fairness compares the worst two groups, and which two they are is not known. A promise therefore
tests every ordered pair, each with the whole error: it is false only if the truly worst pair passes
its own test (intersection-union), so several groups need no correction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from commod._statistics.intervals import (
    difference_null_variance,
    difference_upper_bound,
    ratio_lower_bound,
    ratio_null_variance,
)
from commod.metrics._constraint import ConstraintLike, get_constraint

__all__ = [
    "fairness_interval",
    "promise_along",
    "promise_holds",
    "promised_fairness",
    "rows_factor",
]

FloatArray = NDArray[np.float64]

N_DRAWS = 4000  # of the noise in `rows_factor`, which then knows the factor to about 2 %
ROUNDING = 1e-12  # a slack that counts as none
TINY = 1e-100  # keeps a share of nothing from being 0 / 0


# ---------------------------------------------------------------------------------------------
# Promises


def promised_fairness(
    constraints: ConstraintLike, sizes: ArrayLike, positives: ArrayLike, confidence: float
) -> float:
    """Return the P-rule that new people have at least, or the disparity they have at most.

    Parameters
    ----------
    constraints : str
    sizes, positives : array-like of shape (n_cells, n_groups)
    confidence : float in (0.5, 1)
        The share of samples in which the value returned is true.

    Returns
    -------
    float
        P-rule in [0, 1], gap in [0, 1], disparate mistreatment in [0, 2]. NaN when a cell of a
        group is empty or there is one group only.

    Examples
    --------
    >>> value = promised_fairness("demographic_parity", [[1000, 1000]], [[460, 500]], 0.95)
    >>> f"{value:.3f}"
    '0.852'
    """
    return float(_promised(constraints, *_as_table(sizes, positives), 1 - confidence))


def promise_holds(
    constraints: ConstraintLike,
    sizes: ArrayLike,
    positives: ArrayLike,
    target: float,
    confidence: float,
) -> bool:
    """Return whether `promised_fairness` reaches the target; False where it is undefined.

    Parameters
    ----------
    constraints, sizes, positives, confidence
        As in `promised_fairness`.
    target : float
        A floor on the P-rule for demographic parity, a ceiling on the disparity otherwise.

    Examples
    --------
    >>> promise_holds("demographic_parity", [[1000, 1000]], [[460, 500]], 0.8, confidence=0.95)
    True
    >>> promise_holds("demographic_parity", [[100, 100]], [[46, 50]], 0.8, confidence=0.95)
    False
    """
    return promise_along(constraints, [(sizes, positives)], target, confidence) == 0


def promise_along(
    constraints: ConstraintLike,
    tables: Sequence[tuple[ArrayLike, ArrayLike]],
    target: float,
    confidence: float,
) -> int | None:
    """Return the last model before the first whose promise fails; None if the first one fails.

    Testing in an order that was fixed before these people were looked at, and stopping at the first
    failure, keeps the error of the answer at that of one test, however many models there are.

    Parameters
    ----------
    constraints, target, confidence
        As in `promise_holds`.
    tables : sequence of (sizes, positives)
        One table per model, all of one shape.

    Examples
    --------
    >>> sizes = [[1000, 1000]]
    >>> tables = [(sizes, [[accepted, 500]]) for accepted in (490, 450, 420, 480)]
    >>> promise_along("demographic_parity", tables, target=0.8, confidence=0.95)
    1
    """
    if len(tables) == 0:
        return None
    sizes, positives = (np.asarray(part, np.float64) for part in zip(*tables, strict=True))
    values = _promised(constraints, sizes, positives, 1 - confidence)
    passed = get_constraint(constraints).is_met(values, target)
    n_passed = int(np.logical_and.accumulate(passed).sum())
    return n_passed - 1 if n_passed else None


def _promised(
    constraints: ConstraintLike, sizes: FloatArray, positives: FloatArray, alpha: float
) -> FloatArray:
    """Return the promised value of each table, from arrays of shape (..., n_cells, n_groups)."""
    n_cells = sizes.shape[-2]
    if sizes.shape[-1] < 2:
        return np.full(sizes.shape[:-2], math.nan)
    pairs = _ordered_pairs(sizes, positives)
    if get_constraint(constraints).is_ratio:
        return ratio_lower_bound(*pairs, alpha).min(axis=(-2, -1))
    # The cells share the error, for their bounds must be true at once.
    return difference_upper_bound(*pairs, alpha / n_cells).max(axis=-1).sum(axis=-1)


def _ordered_pairs(
    sizes: FloatArray, positives: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return positives and size of the first, then of the second group, over a last axis of pairs.

    Both orders of two groups are there; no group is paired with itself.
    """
    first, second = np.nonzero(~np.eye(sizes.shape[-1], dtype=bool))
    return positives[..., first], sizes[..., first], positives[..., second], sizes[..., second]


def _as_table(sizes: ArrayLike, positives: ArrayLike) -> tuple[FloatArray, FloatArray]:
    return np.asarray(sizes, np.float64), np.asarray(positives, np.float64)


# ---------------------------------------------------------------------------------------------
# Interval


def fairness_interval(
    constraints: ConstraintLike, sizes: ArrayLike, positives: ArrayLike, confidence: float
) -> tuple[float, float]:
    """Return two values between which the fairness on new people lies.

    For two groups it is the score interval of the ratio (or difference) of their rates, folded at 1
    (or 0) where the groups change places; so the P-rule's upper end is 1 as long as their order is
    open. For more groups it is conservative. It is two-sided: at the same confidence its unfair end
    lies beyond `promised_fairness`, which spends all its error on that side.

    Parameters
    ----------
    constraints, sizes, positives
        As in `promised_fairness`.
    confidence : float in (0, 1)
        The share of samples in which the interval holds the true value, at least.

    Returns
    -------
    low, high : float
        Within [0, 1], or [0, 2] for equalized odds; the observed value lies between them. (0, 1)
        when nobody is selected: nothing is known then. NaN when a cell of a group is empty or there
        is one group only.

    Notes
    -----
    Half of the error goes to each end. The unfair end is as safe as a promise. The other is missed
    if any pair's bound is: for that, half of the error is divided among all ordered pairs but one,
    because the bound of the worst pair in the wrong order is missed only if the unfair end is too.
    The two cells of equalized odds each get half of the error, and their ends are added.

    Examples
    --------
    >>> low, high = fairness_interval("demographic_parity", [[1000, 1000]], [[460, 500]], 0.95)
    >>> f"{low:.3f} to {high:.3f}"
    '0.839 to 1.000'
    """
    table = _as_table(sizes, positives)
    n_cells, n_groups = table[0].shape
    if n_groups < 2:
        return math.nan, math.nan
    pairs = _ordered_pairs(*table)
    alpha = (1 - confidence) / n_cells / 2
    alpha_of_pair = alpha / (n_groups * (n_groups - 1) - 1)
    # A bound of one order of two groups is the opposite bound of the other order.
    if get_constraint(constraints).is_ratio:
        low = ratio_lower_bound(*pairs, alpha).min()
        high = 1 / np.maximum(ratio_lower_bound(*pairs, alpha_of_pair).max(), 1)
    else:
        low = np.maximum(-difference_upper_bound(*pairs, alpha_of_pair).min(axis=1), 0).sum()
        high = difference_upper_bound(*pairs, alpha).max(axis=1).sum()
    return float(low), float(high)


# ---------------------------------------------------------------------------------------------
# Rows


def rows_factor(
    constraints: ConstraintLike,
    sizes: ArrayLike,
    positives: ArrayLike,
    target: float,
    confidence: float,
    power: float = 0.9,
) -> float:
    """Return by which factor the rows must grow before the promise can be expected.

    With that many times the rows in every cell, and if the observed rates were the true ones,
    `promise_holds` would be true in a share `power` of samples.

    Parameters
    ----------
    constraints, sizes, positives, target, confidence
        As in `promise_holds`.
    power : float in (0.5, 1), default=0.9

    Returns
    -------
    float
        Above 1 where the promise fails; infinite where the observed value does not beat the target,
        so that no number of rows would do; NaN where it is undefined.

    Notes
    -----
    A comparison succeeds once its slack (how far the observed value beats the target) exceeds
    (z · null deviation + noise) / √factor, where the noise is normal. So each draw of the groups'
    noise has one smallest factor at which all comparisons succeed, and the answer is a quantile of
    it: the dependence of the pairs, and that two groups may fail in either order, are in it.

    Examples
    --------
    >>> rows = [[100, 100]], [[46, 50]]
    >>> factor = rows_factor("demographic_parity", *rows, target=0.8, confidence=0.95)
    >>> round(factor)
    10
    """
    table = _as_table(sizes, positives)
    n_cells, n_groups = table[0].shape
    if n_groups < 2 or not table[0].all():
        return math.nan
    z = -ndtri((1 - confidence) / n_cells)
    needed = _ratio_roots if get_constraint(constraints).is_ratio else _gap_roots
    return float(np.quantile(needed(*table, target, z), power, method="higher") ** 2)


def _ratio_roots(
    sizes: FloatArray, positives: FloatArray, target: float, z: float
) -> FloatArray | float:
    """Return √factor of each draw of noise, the largest need of any pair; inf for no slack."""
    x1, n1, x2, n2 = (part[0] for part in _ordered_pairs(sizes, positives))
    slack = x1 / n1 - target * x2 / n2
    if slack.min() <= ROUNDING:
        return math.inf
    deviation = np.sqrt(ratio_null_variance(x1, n1, x2, n2, target))
    noise_1, noise_2 = (part[:, 0] for part in _noise_of_pairs(sizes, positives))
    return ((z * deviation + target * noise_2 - noise_1) / slack).max(axis=1)


def _gap_roots(
    sizes: FloatArray, positives: FloatArray, target: float, z: float
) -> FloatArray | float:
    """Return the same where the need is that of one pair per cell, whose gaps are added."""
    x1, n1, x2, n2 = _ordered_pairs(sizes, positives)
    gaps = x1 / n1 - x2 / n2
    if target - gaps.max(axis=1).sum() <= ROUNDING:
        return math.inf
    noise_1, noise_2 = _noise_of_pairs(sizes, positives)
    doubt = z * _gap_deviations(sizes, positives, target) + noise_1 - noise_2
    # A choice needs √factor = its doubt / its slack. Rather than try all choices, take the one that
    # exceeds the target most at the present factor, raise the factor to its need, and repeat
    # (Dinkelbach); it ends within a few rounds, because no choice comes back.
    roots = np.zeros(N_DRAWS)
    for _ in range(20):
        before = roots
        worst = (gaps * roots[:, None, None] + doubt).argmax(axis=-1)[..., None]
        chosen_gaps = np.take_along_axis(gaps[None], worst, axis=-1)
        chosen_doubt = np.take_along_axis(doubt, worst, axis=-1)
        roots = chosen_doubt.sum(axis=(1, 2)) / (target - chosen_gaps.sum(axis=(1, 2)))
        if (roots <= before).all():
            break
    return roots


def _gap_deviations(sizes: FloatArray, positives: FloatArray, target: float) -> FloatArray:
    """Return the null deviation of each pair, (n_cells, n_pairs), at the margin of the promise.

    There, the pair and the worst pair of the other cell (if any) use up the slack between them, in
    proportion to their deviations as their bounds do: a few rounds settle these.
    """
    x1, n1, x2, n2 = _ordered_pairs(sizes, positives)
    gaps = x1 / n1 - x2 / n2
    worst = gaps.argmax(axis=1)[:, None]
    slack = target - gaps - _of_other_cells(gaps, worst)
    deviations = np.ones_like(gaps)
    for _ in range(3):
        shares = deviations / (deviations + _of_other_cells(deviations, worst))
        at_margin = np.clip(gaps + slack * shares, -1, 1)
        deviations = np.sqrt(difference_null_variance(x1, n1, x2, n2, at_margin)) + TINY
    return deviations


def _of_other_cells(values: FloatArray, worst: NDArray[np.intp]) -> FloatArray:
    """Return the sum of the values that the worst pairs of the other cells have, per cell."""
    of_worst = np.take_along_axis(values, worst, axis=1)
    return of_worst.sum() - of_worst


def _noise_of_pairs(sizes: FloatArray, positives: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return draws of the error of both rates of each pair, shape (N_DRAWS, n_cells, n_pairs)."""
    rates = positives / sizes
    # The same draws every time, so that a table has one answer.
    draws = np.random.default_rng(0).standard_normal((N_DRAWS, *sizes.shape))
    noise = draws * np.sqrt(rates * (1 - rates) / sizes)
    of_first, _, of_second, _ = _ordered_pairs(noise, noise)
    return of_first, of_second
