"""Promise the fairness on new people, from counts of held-out rows.

A table of counts is two arrays, `sizes` and `positives`, of shape (n_rate_rows, n_groups): the
people of each cell, and how many of them have a positive decision. The rate rows are those of the
constraint: one for demographic parity (everybody) and for a gap of true or false positive rates
(people with that true label), two for equalized odds, whose gaps are added. Nothing is checked.

Fairness compares the two groups that differ most, and which two these are is not known. A promise
therefore tests every ordered pair of groups, each with the full error. A promise is wrong only if
the pair that truly differs most passes its own test. So several groups need no correction (this is
an intersection-union test).
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

FloatArray = NDArray[np.float64]

N_DRAWS = 4000  # draws of noise in `rows_factor`; they give the factor to about 2 %
ROUNDING = 1e-12  # a slack up to this counts as zero
TINY = 1e-100  # avoids 0 / 0


# ---------------------------------------------------------------------------------------------
# Promises


def promised_fairness(
    constraints: ConstraintLike, sizes: ArrayLike, positives: ArrayLike, confidence: float
) -> float:
    """Return a lower bound of the P-rule on new people, or an upper bound of the gap.

    Parameters
    ----------
    constraints : str
    sizes, positives : array-like of shape (n_rate_rows, n_groups)
    confidence : float in (0.5, 1)
        The share of samples in which the bound is right.

    Returns
    -------
    float
        P-rule in [0, 1], gap in [0, 1], disparate mistreatment in [0, 2]. NaN when a cell is empty
        or there is only one group.

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
        A floor on the P-rule for demographic parity, a ceiling on the gap otherwise.

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
    """Return the position of the last model before the first failed promise; None if there is none.

    The order must be fixed before the held-out rows are used. Stopping at the first failure then
    keeps the error of the answer at that of a single test, whatever the number of models.

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
    """Return the promised value of each table; arrays have shape (..., n_rate_rows, n_groups)."""
    n_rows = sizes.shape[-2]
    if sizes.shape[-1] < 2:
        return np.full(sizes.shape[:-2], math.nan)
    pairs = _ordered_pairs(sizes, positives)
    if get_constraint(constraints).is_ratio:
        return ratio_lower_bound(*pairs, alpha).min(axis=(-2, -1))
    # The rate rows share the error, because all their bounds must be right at once.
    return difference_upper_bound(*pairs, alpha / n_rows).max(axis=-1).sum(axis=-1)


def _ordered_pairs(
    sizes: FloatArray, positives: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return x1, n1, x2, n2 (positives and sizes) of all ordered pairs of two groups.

    The last axis of each array runs over the pairs.
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
    """Return an interval that holds the fairness on new people.

    For two groups, the interval is the score interval of the ratio (or difference) of their rates,
    folded at 1 (or 0), where the order of the groups changes. So the upper end of the P-rule is 1
    as long as the order is not known. For more groups the interval is conservative. It is
    two-sided: at the same confidence, its unfair end is less fair than `promised_fairness`, which
    has the whole error on that side.

    Parameters
    ----------
    constraints, sizes, positives
        As in `promised_fairness`.
    confidence : float in (0, 1)
        The least share of samples in which the interval holds the true value.

    Returns
    -------
    low, high : float
        In [0, 1], or [0, 2] for equalized odds; the observed value lies between them. (0, 1) when
        nobody is selected, because nothing is known then. NaN when a cell is empty or there is
        only one group.

    Notes
    -----
    Half of the error goes to each end. The unfair end is as safe as a promise. The other end is
    wrong if the bound of any pair is wrong. So half of the error is divided among all ordered pairs
    but one: the bound of the worst pair in reverse order is wrong only if the unfair end is, too.
    The two rate rows of equalized odds each get half of the error, and their ends are added.

    Examples
    --------
    >>> low, high = fairness_interval("demographic_parity", [[1000, 1000]], [[460, 500]], 0.95)
    >>> f"{low:.3f} to {high:.3f}"
    '0.839 to 1.000'
    """
    table = _as_table(sizes, positives)
    n_rows, n_groups = table[0].shape
    if n_groups < 2:
        return math.nan, math.nan
    pairs = _ordered_pairs(*table)
    alpha = (1 - confidence) / n_rows / 2
    alpha_of_pair = alpha / (n_groups * (n_groups - 1) - 1)
    # The lower bound of a pair is the upper bound of the pair in reverse order.
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
    """Return the factor by which the rows must grow until the promise can be expected.

    With so many times the rows in every cell, and if the observed rates were the true ones,
    `promise_holds` would be true in a share `power` of samples.

    Parameters
    ----------
    constraints, sizes, positives, target, confidence
        As in `promise_holds`.
    power : float in (0.5, 1), default=0.9

    Returns
    -------
    float
        Above 1 where the promise fails. Infinite where the observed value is not fairer than the
        target, so that no number of rows would be enough. NaN where a cell is empty or there is
        only one group.

    Notes
    -----
    The slack is how much fairer the observed value is than the target. A test succeeds once its
    slack exceeds (z · null deviation + noise) / √factor, with normal noise. So each draw of the
    groups' noise has a smallest factor at which all tests succeed, and the answer is a quantile of
    these factors. This accounts for the dependence of the pairs, and for both orders of a pair.

    Examples
    --------
    >>> rows = [[100, 100]], [[46, 50]]
    >>> factor = rows_factor("demographic_parity", *rows, target=0.8, confidence=0.95)
    >>> round(factor)
    10
    """
    table = _as_table(sizes, positives)
    n_rows, n_groups = table[0].shape
    if n_groups < 2 or not table[0].all():
        return math.nan
    z = -ndtri((1 - confidence) / n_rows)
    needed = _ratio_roots if get_constraint(constraints).is_ratio else _gap_roots
    return float(np.quantile(needed(*table, target, z), power, method="higher") ** 2)


def _ratio_roots(
    sizes: FloatArray, positives: FloatArray, target: float, z: float
) -> FloatArray | float:
    """Return √factor of each draw of noise, the largest over all pairs; inf without slack."""
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
    """Return √factor of each draw of noise where the gaps of one pair per rate row are added."""
    x1, n1, x2, n2 = _ordered_pairs(sizes, positives)
    gaps = x1 / n1 - x2 / n2
    if target - gaps.max(axis=1).sum() <= ROUNDING:
        return math.inf
    noise_1, noise_2 = _noise_of_pairs(sizes, positives)
    uncertainty = z * _gap_deviations(sizes, positives, target) + noise_1 - noise_2
    # A choice of pairs needs √factor = uncertainty / slack. Dinkelbach's method finds the largest
    # need without trying all choices: take the choice that exceeds the target most at the present
    # factor, raise the factor to its need, and repeat. No choice comes back, so it ends soon.
    roots = np.zeros(N_DRAWS)
    for _ in range(20):
        before = roots
        worst = (gaps * roots[:, None, None] + uncertainty).argmax(axis=-1)[..., None]
        chosen_gaps = np.take_along_axis(gaps[None], worst, axis=-1)
        chosen_uncertainty = np.take_along_axis(uncertainty, worst, axis=-1)
        roots = chosen_uncertainty.sum(axis=(1, 2)) / (target - chosen_gaps.sum(axis=(1, 2)))
        if (roots <= before).all():
            break
    return roots


def _gap_deviations(sizes: FloatArray, positives: FloatArray, target: float) -> FloatArray:
    """Return the null deviation of each pair, (n_rate_rows, n_pairs), where the promise just holds.

    There, the pair and the worst pair of the other rate row (if any) share the slack in proportion
    to their deviations. The deviations depend on these shares in turn, so a few rounds are needed.
    """
    x1, n1, x2, n2 = _ordered_pairs(sizes, positives)
    gaps = x1 / n1 - x2 / n2
    worst = gaps.argmax(axis=1)[:, None]
    slack = target - gaps - _of_other_rows(gaps, worst)
    deviations = np.ones_like(gaps)
    for _ in range(3):
        shares = deviations / (deviations + _of_other_rows(deviations, worst))
        at_margin = np.clip(gaps + slack * shares, -1, 1)
        deviations = np.sqrt(difference_null_variance(x1, n1, x2, n2, at_margin)) + TINY
    return deviations


def _of_other_rows(values: FloatArray, worst: NDArray[np.intp]) -> FloatArray:
    """Return for each rate row the sum of the values of the other rows' worst pairs."""
    of_worst = np.take_along_axis(values, worst, axis=1)
    return of_worst.sum() - of_worst


def _noise_of_pairs(sizes: FloatArray, positives: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return draws of the errors of both rates of each pair, (N_DRAWS, n_rate_rows, n_pairs)."""
    rates = positives / sizes
    # The seed is fixed, so that a table always has the same answer.
    draws = np.random.default_rng(0).standard_normal((N_DRAWS, *sizes.shape))
    noise = draws * np.sqrt(rates * (1 - rates) / sizes)
    of_first, _, of_second, _ = _ordered_pairs(noise, noise)
    return of_first, of_second
