"""Bound ratios and differences of two proportions so that promises hold in cells of any size.

Score tests are asymptotic: with nominal error 0.05 they err in up to 0.2 of samples in cells of a
few people, and in 0.1 of samples where a large cell has few positive decisions. A bound of this
module is the worse one of two bounds, which fail in different places:

1. The score bound with a continuity correction: the observed distance is reduced by
   `CORRECTION` times the effect of one person in the cell where one person counts most. It keeps
   its error where both cells have similar sizes.
2. Clopper and Pearson's exact bounds of both rates, combined by square-and-add (MOVER: Zou and
   Donner 2008). It keeps its error where one cell is much larger, because the exact bound of the
   small cell then has all the weight.

Every outcome was enumerated for many pairs of cells of 1 to 1,000 people, at rates from 0 to 1. For
ratios and for differences up to 0.5, the error is at most 0.052 with alpha = 0.05, and 0.013 with
alpha = 0.01. For larger differences it is at most 0.061 and 0.021. The loss of power is small, as
both bounds approach the score bound as cells grow. So they are used at every size.

Below alpha = SMALLEST_CHECKED, the exact bounds of both rates share the error instead (Bonferroni),
so that the error holds for certain.

Arguments are those of `intervals`: x1 of n1 people are positive, and x2 of n2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from commod._statistics.intervals import as_floats, difference_upper_bound, ratio_lower_bound

FloatArray = NDArray[np.float64]

CORRECTION = 0.5  # of one person: counts move in steps of one, and half a step is rounding
SMALLEST_CHECKED = 0.01  # the smallest alpha whose error was enumerated
TINY = 1e-300  # avoids 0 / 0


def exact_share_interval(
    positives: ArrayLike, size: ArrayLike, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """Return Clopper and Pearson's bounds of a proportion, each with error at most `alpha`.

    Returns
    -------
    low, high : ndarray
        Within [0, 1]; NaN where `size` is 0.

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
) -> FloatArray:
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
        return low / np.maximum(exact_share_interval(x2, n2, alpha / 2)[1], TINY)
    by_score = ratio_lower_bound(*counts, alpha, correction=CORRECTION)
    low, high = exact_share_interval(x1, n1, alpha)[0], exact_share_interval(x2, n2, alpha)[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        rate_1, rate_2 = x1 / n1, x2 / n2
        # The bound θ solves (rate_1 - θ rate_2)² = (rate_1 - low)² + θ² (high - rate_2)². This
        # form of the smaller root neither cancels nor divides by 0.
        a, b, c = high * (2 * rate_2 - high), rate_1 * rate_2, low * (2 * rate_1 - low)
        by_cells = c / np.maximum(b + np.sqrt(np.maximum(b * b - a * c, 0)), TINY)
    return np.minimum(by_score, by_cells)


def difference_safe_bound(
    x1: ArrayLike, n1: ArrayLike, x2: ArrayLike, n2: ArrayLike, alpha: float
) -> FloatArray:
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
