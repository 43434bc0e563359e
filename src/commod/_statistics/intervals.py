"""Bound a proportion, the ratio of two proportions, and their difference, by score tests.

A bound is the value at which a one-sided score test begins to pass. The test compares the observed
distance from a value with its standard deviation. The deviation is computed at the likeliest rates
under that value (Koopman 1984 for ratios, Mee 1984 for differences). Unlike Wald's test, it keeps
its error at rates near 0 and 1, and needs no special treatment of counts of 0.

In all functions, x1 of n1 people in one group are positive, and x2 of n2 people in the other. These
are arrays whose shapes broadcast. `alpha` in (0, 0.5) is the error of one side. The result is NaN
where a size is 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri

from commod._data.arrays import Floats, Mask
from commod._record.explanation import Estimate

CORRECTION = 0.5  # of one person: counts move in steps of one, and half a step is rounding
SMALLEST_CHECKED = 0.01  # the smallest alpha whose error was enumerated
TINY_RATE = 1e-300  # avoids 0 / 0


N_HALVINGS = 36  # bounds are exact to 10 digits
TINY = 1e-100  # avoids 0 / 0


# ---------------------------------------------------------------------------------------------
# One proportion


def share_interval(positives: ArrayLike, size: ArrayLike, alpha: float) -> tuple[Floats, Floats]:
    """Return Wilson's lower and upper bound of a proportion, each with error `alpha`.

    Returns
    -------
    low, high : ndarray
        Within [0, 1]; NaN if `size` is 0.

    Examples
    --------
    The first example of Newcombe (1998, one proportion), 95 % on both sides together:

    >>> low, high = share_interval(81, 263, alpha=0.025)
    >>> print(f"{low:.4f} to {high:.4f}")
    0.2553 to 0.3662
    """
    x, n = np.asarray(positives, np.float64), np.asarray(size, np.float64)
    square = ndtri(alpha) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        half = np.sqrt(square * (x * (n - x) / n + square / 4))
        low = np.where(x == 0, 0.0, (x + square / 2 - half) / (n + square))
        high = np.where(x == n, 1.0, (x + square / 2 + half) / (n + square))
        return np.where(n > 0, low, np.nan), np.where(n > 0, high, np.nan)


def share_estimate(count: float, size: float, level: float) -> Estimate:
    """Return a proportion with Wilson's two-sided interval; undefined where `size` is 0.

    Examples
    --------
    >>> share_estimate(0, 0, level=0.95)
    Estimate(value=None, low=None, high=None)
    >>> share_estimate(5, 5, level=0.95).value
    1.0
    """
    if not size:
        return Estimate(None, None, None)
    low, high = share_interval(count, size, (1 - level) / 2)
    return Estimate(float(count / size), float(low), float(high))


# ---------------------------------------------------------------------------------------------
# Ratio. Computations use share, with p1 / p2 = share / (1 - share): bounded and symmetric.


def ratio_lower_bound(
    x1: ArrayLike,
    n1: ArrayLike,
    x2: ArrayLike,
    n2: ArrayLike,
    alpha: float,
    correction: float = 0.0,
) -> Floats:
    """Return Koopman's lower bound of p1 / p2: the score test rejects every ratio below it.

    `correction` reduces the observed distance by so many people of the cell where one person
    counts most.

    Returns
    -------
    ndarray
        At least 0; exactly 0 if x1 is 0.

    Examples
    --------
    >>> f"{ratio_lower_bound(460, 1000, 500, 1000, alpha=0.05):.4f}"
    '0.8520'
    """
    counts = x1, n1, x2, n2 = as_floats(x1, n1, x2, n2)
    with np.errstate(invalid="ignore"):
        observed = x1 * n2 / (x1 * n2 + x2 * n1)
    observed = np.where((x1 + x2 == 0) & (n1 > 0) & (n2 > 0), 0, observed)

    def distance_at(share: Floats) -> tuple[Floats, Floats]:
        distance, variance = _ratio_distance(*counts, share)
        with np.errstate(divide="ignore"):
            one_person = np.maximum((1 - share) / n1, share / n2)
        return distance - correction * one_person, variance

    share = _first_significant(distance_at, observed, 0 * observed, alpha)
    return share / (1 - share)


def ratio_null_variance(
    x1: ArrayLike, n1: ArrayLike, x2: ArrayLike, n2: ArrayLike, ratio: ArrayLike
) -> Floats:
    """Return the variance of p̂1 - ratio · p̂2 at the likeliest rates with p1 = ratio · p2.

    Examples
    --------
    >>> f"{ratio_null_variance(460, 1000, 500, 1000, ratio=0.9):.6f}"
    '0.000450'
    """
    ratio = np.asarray(ratio, np.float64)
    _, variance = _ratio_distance(*as_floats(x1, n1, x2, n2), ratio / (1 + ratio))
    return variance * (1 + ratio) ** 2


def _ratio_distance(
    x1: Floats, n1: Floats, x2: Floats, n2: Floats, share: Floats
) -> tuple[Floats, Floats]:
    """Return (1 - share) p̂1 - share p̂2 and its variance at the likeliest p1 and p2."""
    other = 1 - share
    total = x1 + x2
    # With p1 = share · q and p2 = other · q, the likelihood equation is quadratic in q. Its smaller
    # root has rates in [0, 1]. This form of the root neither cancels nor divides by 0.
    b = share * (n1 + x2) + other * (n2 + x1)
    root = np.sqrt(np.maximum(b * b - 4 * share * other * (n1 + n2) * total, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        q = 2 * total / (b + root)
        p1, p2 = np.minimum(share * q, 1), np.minimum(other * q, 1)
        variance = other**2 * p1 * (1 - p1) / n1 + share**2 * p2 * (1 - p2) / n2
        return other * x1 / n1 - share * x2 / n2, variance


# ---------------------------------------------------------------------------------------------
# Difference


def difference_upper_bound(
    x1: ArrayLike,
    n1: ArrayLike,
    x2: ArrayLike,
    n2: ArrayLike,
    alpha: float,
    correction: float = 0.0,
) -> Floats:
    """Return Mee's upper bound of p1 - p2: the score test rejects every difference above it.

    `correction` reduces the observed distance by so many people of the smaller cell.

    Returns
    -------
    ndarray
        At most 1; exactly 1 if everybody in group 1 and nobody in group 2 is positive.

    Examples
    --------
    >>> f"{difference_upper_bound(500, 1000, 460, 1000, alpha=0.05):.4f}"
    '0.0766'
    """
    counts = x1, n1, x2, n2 = as_floats(x1, n1, x2, n2)
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = x1 / n1 - x2 / n2
        reduction = correction / np.minimum(n1, n2)
        # The variance is largest where both rates are one half.
        widest = reduction - ndtri(alpha) * np.sqrt(1 / n1 + 1 / n2) / 2
        far_end = np.minimum(observed + widest, 1)

    def distance_at(gap: Floats) -> tuple[Floats, Floats]:
        distance, variance = _difference_distance(*counts, gap)
        return distance - reduction, variance

    return _first_significant(distance_at, observed, far_end, alpha)


def difference_interval(
    x1: ArrayLike, n1: ArrayLike, x2: ArrayLike, n2: ArrayLike, alpha: float
) -> tuple[Floats, Floats]:
    """Return the lower and the upper bound of p1 - p2, each with error `alpha`.

    Returns
    -------
    low, high : ndarray
        In [-1, 1]. Swapping the groups swaps the ends and their signs.

    Examples
    --------
    The first example of Newcombe (1998), 95 % on both sides together:

    >>> low, high = difference_interval(56, 70, 48, 80, alpha=0.025)
    >>> print(f"{low:.4f} to {high:.4f}")
    0.0533 to 0.3377
    """
    low = -difference_upper_bound(x2, n2, x1, n1, alpha)
    return low, difference_upper_bound(x1, n1, x2, n2, alpha)


def difference_null_variance(
    x1: ArrayLike, n1: ArrayLike, x2: ArrayLike, n2: ArrayLike, difference: ArrayLike
) -> Floats:
    """Return the variance of p̂1 - p̂2 at the likeliest rates with p1 = p2 + difference.

    Examples
    --------
    >>> f"{difference_null_variance(500, 1000, 460, 1000, difference=0.1):.6f}"
    '0.000494'
    """
    counts = as_floats(x1, n1, x2, n2)
    return _difference_distance(*counts, np.asarray(difference, np.float64))[1]


def _difference_distance(
    x1: Floats, n1: Floats, x2: Floats, n2: Floats, difference: Floats
) -> tuple[Floats, Floats]:
    """Return difference - (p̂1 - p̂2) and its variance at the likeliest p1 and p2."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rate_1, rate_2 = x1 / n1, x2 / n2
        p1 = _likeliest_p1(rate_1, rate_2, n2 / n1, difference)
        p1 = np.clip(p1, np.maximum(difference, 0), np.minimum(1 + difference, 1))
        p2 = p1 - difference
        variance = p1 * (1 - p1) / n1 + p2 * (1 - p2) / n2
        return difference - (rate_1 - rate_2), variance


def _likeliest_p1(rate_1: Floats, rate_2: Floats, t: Floats, d: Floats) -> Floats:
    """Return the p1 of greatest likelihood with p1 - p2 = d, where t = n2 / n1.

    The likelihood equation is the cubic p³ + 3 b p² + 3 c p + e = 0 with three real roots. The
    middle root has both rates in [0, 1] (Farrington and Manning 1990).
    """
    pooled = rate_1 + t * rate_2
    scale = 1 / (3 + 3 * t)
    b = -(1 + t + pooled + d * (t + 2)) * scale
    c = (d * d + d * (2 * rate_1 + t + 1) + pooled) * scale
    e = -3 * rate_1 * d * (1 + d) * scale
    square = np.maximum(b * b - c, TINY)  # 0 if all three roots are -b
    spread = np.sqrt(square)
    sine = (b * (b * b - 1.5 * c) + e / 2) / (spread * square)
    return 2 * spread * np.sin(np.arcsin(np.clip(sine, -1, 1)) / 3) - b


# ---------------------------------------------------------------------------------------------
# Test and bound from a distance and its variance


def _is_significant(distance: Floats, variance: Floats, alpha: float) -> Mask:
    """Return where the distance is positive and significant, also where the variance is 0."""
    return (distance > 0) & (distance * distance >= ndtri(alpha) ** 2 * variance)


def _first_significant(
    distance_at: Callable[[Floats], tuple[Floats, Floats]],
    observed: Floats,
    far_end: Floats,
    alpha: float,
) -> Floats:
    """Return the first value, from the observed one to the far end, that differs significantly."""
    near, far = observed, far_end
    for _ in range(N_HALVINGS):
        # Bisection, because methods that use the slope fail at counts of 0, where it is infinite.
        middle = (near + far) / 2
        is_beyond = _is_significant(*distance_at(middle), alpha)
        near, far = np.where(is_beyond, near, middle), np.where(is_beyond, middle, far)
    return far


def as_floats(*counts: ArrayLike) -> tuple[Floats, Floats, Floats, Floats]:
    """Return x1, n1, x2, n2 as arrays of floats."""
    x1, n1, x2, n2 = (np.asarray(count, np.float64) for count in counts)
    return x1, n1, x2, n2


# ---------------------------------------------------------------------------------------------
# Bounds that hold in cells of any size
#
# Score tests are asymptotic: with nominal error 0.05 they err in up to 0.2 of samples in cells of a
# few people, and in 0.1 of samples where a large cell has few positive decisions. A bound of this
# section is the worse one of two bounds, which fail in different places:
#
# 1. The score bound with a continuity correction: the observed distance is reduced by
#    `CORRECTION` times the effect of one person in the cell where one person counts most. It keeps
#    its error where both cells have similar sizes.
# 2. Clopper and Pearson's exact bounds of both rates, combined by square-and-add (MOVER: Zou and
#    Donner 2008). It keeps its error where one cell is much larger, because the exact bound of the
#    small cell then has all the weight.
#
# Every outcome was enumerated for many pairs of cells of 1 to 1,000 people, at rates from 0 to 1.
# For ratios and for differences up to 0.5, the error is at most 0.052 with alpha = 0.05, and 0.013
# with alpha = 0.01. For larger differences it is at most 0.061 and 0.021. The loss of power is
# small, as both bounds approach the score bound as cells grow. So they are used at every size.
#
# Below alpha = SMALLEST_CHECKED, the exact bounds of both rates share the error instead
# (Bonferroni), so that the error holds for certain.
#
# Arguments are those of `intervals`: x1 of n1 people are positive, and x2 of n2.


def exact_share_interval(
    positives: ArrayLike, size: ArrayLike, alpha: float
) -> tuple[Floats, Floats]:
    """Return Clopper and Pearson's bounds of a proportion, each with error at most `alpha`.

    Returns
    -------
    low, high : ndarray
        Within [0, 1]; NaN if `size` is 0.

    Examples
    --------
    >>> low, high = exact_share_interval(81, 263, alpha=0.025)
    >>> print(f"{low:.4f} to {high:.4f}")
    0.2527 to 0.3676
    """
    x, n = np.asarray(positives, np.float64), np.asarray(size, np.float64)
    # Counts are kept away from the ends, where the function is undefined and the bound is known.
    low = np.where(x == 0, 0.0, betaincinv(np.maximum(x, 0.5), n - x + 1, alpha))
    high = np.where(x == n, 1.0, betaincinv(x + 1, np.maximum(n - x, 0.5), 1 - alpha))
    return np.where(n > 0, low, np.nan), np.where(n > 0, high, np.nan)


def ratio_safe_bound(
    x1: ArrayLike, n1: ArrayLike, x2: ArrayLike, n2: ArrayLike, alpha: float
) -> Floats:
    """Return a lower bound of p1 / p2 that is too high in a share of at most `alpha` of samples.

    Examples
    --------
    >>> f"{ratio_safe_bound(460, 1000, 500, 1000, alpha=0.05):.4f}"
    '0.8507'
    >>> f"{ratio_safe_bound(9, 10, 5, 10, alpha=0.05):.4f}"
    '0.9936'
    """
    counts = x1, n1, x2, n2 = as_floats(x1, n1, x2, n2)
    if alpha < SMALLEST_CHECKED:
        low = exact_share_interval(x1, n1, alpha / 2)[0]
        return low / np.maximum(exact_share_interval(x2, n2, alpha / 2)[1], TINY_RATE)
    by_score = ratio_lower_bound(*counts, alpha, correction=CORRECTION)
    low, high = exact_share_interval(x1, n1, alpha)[0], exact_share_interval(x2, n2, alpha)[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        rate_1, rate_2 = x1 / n1, x2 / n2
        # The bound θ solves (rate_1 - θ rate_2)² = (rate_1 - low)² + θ² (high - rate_2)². This
        # form of the smaller root neither cancels nor divides by 0.
        a, b, c = high * (2 * rate_2 - high), rate_1 * rate_2, low * (2 * rate_1 - low)
        by_cells = c / np.maximum(b + np.sqrt(np.maximum(b * b - a * c, 0)), TINY_RATE)
    return np.minimum(by_score, by_cells)


def difference_safe_bound(
    x1: ArrayLike, n1: ArrayLike, x2: ArrayLike, n2: ArrayLike, alpha: float
) -> Floats:
    """Return an upper bound of p1 - p2 that is too low in a share of at most `alpha` of samples.

    Examples
    --------
    >>> f"{difference_safe_bound(500, 1000, 460, 1000, alpha=0.05):.4f}"
    '0.0773'
    >>> f"{difference_safe_bound(5, 10, 4, 10, alpha=0.05):.4f}"
    '0.4735'
    """
    counts = x1, n1, x2, n2 = as_floats(x1, n1, x2, n2)
    if alpha < SMALLEST_CHECKED:
        high = exact_share_interval(x1, n1, alpha / 2)[1]
        return high - exact_share_interval(x2, n2, alpha / 2)[0]
    by_score = difference_upper_bound(*counts, alpha, correction=CORRECTION)
    high, low = exact_share_interval(x1, n1, alpha)[1], exact_share_interval(x2, n2, alpha)[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        rate_1, rate_2 = x1 / n1, x2 / n2
        by_cells = rate_1 - rate_2 + np.hypot(high - rate_1, rate_2 - low)
    return np.minimum(np.maximum(by_score, by_cells), 1)
