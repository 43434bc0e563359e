"""Score bounds for a proportion, and the ratio and the difference of two: counts in, numbers out.

A bound is the value at which a one-sided score test begins to pass. The test compares the observed
distance from the value with its standard deviation at the two rates likeliest under that value
(Koopman 1984 for ratios, Mee 1984 for differences). Unlike Wald's, it stays honest at rates near
0 and 1 and needs no special treatment of counts of 0.

Everywhere `positives_1` out of `size_1` people of one group and `positives_2` out of `size_2` of
the other, as arrays whose shapes broadcast; `alpha` in (0, 0.5) is the error of one side. A size
of 0 gives NaN, and no test succeeds with it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

__all__ = [
    "difference_interval",
    "difference_is_below",
    "difference_null_variance",
    "difference_upper_bound",
    "ratio_interval",
    "ratio_is_above",
    "ratio_lower_bound",
    "ratio_null_variance",
    "share_interval",
]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

N_HALVINGS = 36  # a bound is exact to 10 digits
TINY = 1e-100


# ---------------------------------------------------------------------------------------------
# One proportion


def share_interval(
    positives: ArrayLike, size: ArrayLike, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's lower and upper bound of a proportion, each with error `alpha`.

    Returns
    -------
    low, high : ndarray
        Within [0, 1]; NaN where `size` is 0.

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


# ---------------------------------------------------------------------------------------------
# Ratio. Inside, p1 / p2 = share / (1 - share): bounded, and the groups play the same part.


def ratio_is_above(
    positives_1: ArrayLike,
    size_1: ArrayLike,
    positives_2: ArrayLike,
    size_2: ArrayLike,
    ratio: ArrayLike,
    alpha: float,
) -> BoolArray:
    """Return where the counts show, with error `alpha`, that p1 / p2 is above `ratio`.

    Examples
    --------
    >>> ratio_is_above(460, 1000, 500, 1000, ratio=[0.8, 0.9], alpha=0.05)
    array([ True, False])
    """
    ratio = np.asarray(ratio, np.float64)
    counts = _as_floats(positives_1, size_1, positives_2, size_2)
    return _is_far(*_ratio_distance(*counts, ratio / (1 + ratio)), alpha)


def ratio_lower_bound(
    positives_1: ArrayLike,
    size_1: ArrayLike,
    positives_2: ArrayLike,
    size_2: ArrayLike,
    alpha: float,
) -> FloatArray:
    """Return Koopman's lower bound of p1 / p2: `ratio_is_above` is true of every ratio below it.

    Returns
    -------
    ndarray
        At least 0, and 0 exactly where `positives_1` is 0.

    Examples
    --------
    >>> f"{ratio_lower_bound(460, 1000, 500, 1000, alpha=0.05):.4f}"
    '0.8520'
    """
    counts = x1, n1, x2, n2 = _as_floats(positives_1, size_1, positives_2, size_2)
    with np.errstate(invalid="ignore"):
        observed = x1 * n2 / (x1 * n2 + x2 * n1)
    observed = np.where((x1 + x2 == 0) & (n1 > 0) & (n2 > 0), 0, observed)
    share = _first_far(lambda share: _ratio_distance(*counts, share), observed, 0 * observed, alpha)
    return share / (1 - share)


def ratio_interval(
    positives_1: ArrayLike,
    size_1: ArrayLike,
    positives_2: ArrayLike,
    size_2: ArrayLike,
    alpha: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the lower and the upper bound of p1 / p2, each with error `alpha`.

    Returns
    -------
    low, high : ndarray
        `high` is infinite where `positives_2` is 0. Swapping the groups gives the reciprocals.

    Examples
    --------
    Koopman's own example, 95 % on both sides together:

    >>> low, high = ratio_interval(36, 40, 16, 80, alpha=0.025)
    >>> print(f"{low:.2f} to {high:.2f}")
    2.94 to 7.15
    """
    low = ratio_lower_bound(positives_1, size_1, positives_2, size_2, alpha)
    swapped = ratio_lower_bound(positives_2, size_2, positives_1, size_1, alpha)
    with np.errstate(divide="ignore"):
        return low, 1 / swapped


def ratio_null_variance(
    positives_1: ArrayLike,
    size_1: ArrayLike,
    positives_2: ArrayLike,
    size_2: ArrayLike,
    ratio: ArrayLike,
) -> FloatArray:
    """Return the variance of p̂1 - ratio · p̂2 at the likeliest rates with p1 = ratio · p2.

    Examples
    --------
    >>> f"{ratio_null_variance(460, 1000, 500, 1000, ratio=0.9):.6f}"
    '0.000450'
    """
    ratio = np.asarray(ratio, np.float64)
    counts = _as_floats(positives_1, size_1, positives_2, size_2)
    _, variance = _ratio_distance(*counts, ratio / (1 + ratio))
    return variance * (1 + ratio) ** 2


def _ratio_distance(
    x1: FloatArray, n1: FloatArray, x2: FloatArray, n2: FloatArray, share: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return (1 - share) p̂1 - share p̂2 and its variance at the likeliest p1 and p2."""
    rest = 1 - share
    total = x1 + x2
    # p1 = share · q and p2 = rest · q, where the likelihood equation is a quadratic in q; this form
    # of its smaller root, the one with rates in [0, 1], neither cancels nor divides by 0.
    b = share * (n1 + x2) + rest * (n2 + x1)
    root = np.sqrt(np.maximum(b * b - 4 * share * rest * (n1 + n2) * total, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        q = 2 * total / (b + root)
        p1, p2 = np.minimum(share * q, 1), np.minimum(rest * q, 1)
        variance = rest**2 * p1 * (1 - p1) / n1 + share**2 * p2 * (1 - p2) / n2
        return rest * x1 / n1 - share * x2 / n2, variance


# ---------------------------------------------------------------------------------------------
# Difference


def difference_is_below(
    positives_1: ArrayLike,
    size_1: ArrayLike,
    positives_2: ArrayLike,
    size_2: ArrayLike,
    difference: ArrayLike,
    alpha: float,
) -> BoolArray:
    """Return where the counts show, with error `alpha`, that p1 - p2 is below `difference`.

    Examples
    --------
    >>> difference_is_below(500, 1000, 460, 1000, difference=[0.05, 0.1], alpha=0.05)
    array([False,  True])
    """
    counts = _as_floats(positives_1, size_1, positives_2, size_2)
    return _is_far(*_difference_distance(*counts, np.asarray(difference, np.float64)), alpha)


def difference_upper_bound(
    positives_1: ArrayLike,
    size_1: ArrayLike,
    positives_2: ArrayLike,
    size_2: ArrayLike,
    alpha: float,
) -> FloatArray:
    """Return Mee's upper bound of p1 - p2: `difference_is_below` is true of every value above it.

    Returns
    -------
    ndarray
        At most 1, and 1 exactly where all of group 1 and nobody of group 2 is positive.

    Examples
    --------
    >>> f"{difference_upper_bound(500, 1000, 460, 1000, alpha=0.05):.4f}"
    '0.0766'
    """
    counts = x1, n1, x2, n2 = _as_floats(positives_1, size_1, positives_2, size_2)
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = x1 / n1 - x2 / n2
        # No rates vary more than one half and one half do.
        far_end = np.minimum(observed - ndtri(alpha) * np.sqrt(1 / n1 + 1 / n2) / 2, 1)
    return _first_far(lambda gap: _difference_distance(*counts, gap), observed, far_end, alpha)


def difference_interval(
    positives_1: ArrayLike,
    size_1: ArrayLike,
    positives_2: ArrayLike,
    size_2: ArrayLike,
    alpha: float,
) -> tuple[FloatArray, FloatArray]:
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
    high = difference_upper_bound(positives_1, size_1, positives_2, size_2, alpha)
    return -difference_upper_bound(positives_2, size_2, positives_1, size_1, alpha), high


def difference_null_variance(
    positives_1: ArrayLike,
    size_1: ArrayLike,
    positives_2: ArrayLike,
    size_2: ArrayLike,
    difference: ArrayLike,
) -> FloatArray:
    """Return the variance of p̂1 - p̂2 at the likeliest rates with p1 = p2 + difference.

    Examples
    --------
    >>> f"{difference_null_variance(500, 1000, 460, 1000, difference=0.1):.6f}"
    '0.000494'
    """
    counts = _as_floats(positives_1, size_1, positives_2, size_2)
    return _difference_distance(*counts, np.asarray(difference, np.float64))[1]


def _difference_distance(
    x1: FloatArray, n1: FloatArray, x2: FloatArray, n2: FloatArray, difference: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return difference - (p̂1 - p̂2) and its variance at the likeliest p1 and p2."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rate_1, rate_2 = x1 / n1, x2 / n2
        p1 = _likeliest_p1(rate_1, rate_2, n2 / n1, difference)
        p1 = np.clip(p1, np.maximum(difference, 0), np.minimum(1 + difference, 1))
        p2 = p1 - difference
        variance = p1 * (1 - p1) / n1 + p2 * (1 - p2) / n2
        return difference - (rate_1 - rate_2), variance


def _likeliest_p1(
    rate_1: FloatArray, rate_2: FloatArray, t: FloatArray, d: FloatArray
) -> FloatArray:
    """Return the p1 of greatest likelihood with p1 - p2 = d, where t = size_2 / size_1.

    The likelihood equation is the cubic p³ + 3 b p² + 3 c p + e = 0 with three real roots, of
    which the middle one has both rates in [0, 1] (Farrington and Manning 1990).
    """
    pooled = rate_1 + t * rate_2
    scale = 1 / (3 + 3 * t)
    b = -(1 + t + pooled + d * (t + 2)) * scale
    c = (d * d + d * (2 * rate_1 + t + 1) + pooled) * scale
    e = -3 * rate_1 * d * (1 + d) * scale
    square = np.maximum(b * b - c, TINY)  # 0 where the three roots are one, namely -b
    spread = np.sqrt(square)
    sine = (b * (b * b - 1.5 * c) + e / 2) / (spread * square)
    return 2 * spread * np.sin(np.arcsin(np.clip(sine, -1, 1)) / 3) - b


# ---------------------------------------------------------------------------------------------
# Test and bound, from a distance and its variance


def _is_far(distance: FloatArray, variance: FloatArray, alpha: float) -> BoolArray:
    """Return where the distance is significant; none is never so, even where nothing varies."""
    return (distance > 0) & (distance * distance >= ndtri(alpha) ** 2 * variance)


def _first_far(
    distance_at: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    observed: FloatArray,
    far_end: FloatArray,
    alpha: float,
) -> FloatArray:
    """Return the value nearest the observed one, on the way to the far end, that is far from it."""
    near, far = observed, far_end
    for _ in range(N_HALVINGS):
        # Plain halving: steps that use the slope go astray at counts of 0, where it is infinite.
        middle = (near + far) / 2
        is_far = _is_far(*distance_at(middle), alpha)
        near, far = np.where(is_far, near, middle), np.where(is_far, middle, far)
    return far


def _as_floats(*counts: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    x1, n1, x2, n2 = (np.asarray(count, np.float64) for count in counts)
    return x1, n1, x2, n2
