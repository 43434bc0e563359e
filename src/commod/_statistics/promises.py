"""Promise the fairness on new people, and bound it over what unknown groups could be.

A table of counts is two arrays, `sizes` and `positives`, of shape (n_rate_rows, n_groups): the
people of each cell, and how many of them have a positive decision. The rate rows are those of the
constraint: one for demographic parity (everybody) and for a gap of true or false positive rates
(people with that true label), two for equalized odds, whose gaps are added. Nothing is checked.

Fairness compares the two groups that differ most, and which two these are is not known. A promise
therefore tests every ordered pair of groups, each with the full error. A promise is wrong only if
the pair that truly differs most passes its own test. So several groups need no correction (this is
an intersection-union test).

With two rate rows, a test belongs to a choice: one ordered pair for each row. The two gaps are
independent, because nobody is counted in both rows. So their bounds are combined by square-and-add
(MOVER), each with the full error: the upper bound is gap1 + gap2 + √(excess1² + excess2²), where an
excess is how far the bound of one gap lies above the observed gap. All choices are tested.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from commod._data.arrays import Floats
from commod._statistics.intervals import (
    CORRECTION,
    TINY_RATE,
    difference_null_variance,
    difference_safe_bound,
    ratio_null_variance,
    ratio_safe_bound,
)
from commod.metrics._cells import GroupComparison
from commod.metrics._constraint import Constraint, ConstraintLike, get_constraint

N_SAMPLES = 1000  # draws of new samples, in pairs of opposite chance

N_DRAWS = 4000  # draws of noise in `rows_factor`; they give the factor to about 2 %
MAX_CHOICES = 400  # of pairs in `rows_factor`; easier ones do not decide
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
    '0.851'
    """
    return float(_promised(constraints, *_as_table(sizes, positives), 1 - confidence))


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
    constraints, confidence
        As in `promised_fairness`.
    target : float
        A floor on the P-rule for demographic parity, a ceiling on the gap otherwise.
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
    constraints: ConstraintLike, sizes: Floats, positives: Floats, alpha: float
) -> Floats:
    """Return the promised value of each table; arrays have shape (..., n_rate_rows, n_groups)."""
    if sizes.shape[-1] < 2:
        return np.full(sizes.shape[:-2], math.nan)
    pairs = _ordered_pairs(sizes, positives)
    if get_constraint(constraints).is_ratio:
        return ratio_safe_bound(*pairs, alpha).min(axis=(-2, -1))
    bounds = difference_safe_bound(*pairs, alpha)
    return _largest_sum(_gaps(pairs), bounds, is_upper=True)


def _largest_sum(gaps: Floats, bounds: Floats, *, is_upper: bool) -> Floats:
    """Return the largest bound of all choices of one pair per rate row, by square-and-add.

    `gaps` and their `bounds`, upper or lower ones, have shape (..., n_rate_rows, n_pairs).
    """
    if gaps.shape[-2] == 1:
        return np.asarray(bounds[..., 0, :].max(axis=-1))
    excess = np.abs(bounds - gaps)
    largest = np.full(gaps.shape[:-2], -np.inf)
    for i in range(gaps.shape[-1]):  # one pair of the first row with all pairs of the second
        spread = np.hypot(excess[..., 0, i, None], excess[..., 1, :])
        sums = gaps[..., 0, i, None] + gaps[..., 1, :] + (spread if is_upper else -spread)
        largest = np.maximum(largest, sums.max(axis=-1))
    return largest


def _gaps(pairs: tuple[Floats, Floats, Floats, Floats]) -> Floats:
    """Return the observed difference of the rates of each pair; NaN if a cell is empty."""
    x1, n1, x2, n2 = pairs
    with np.errstate(divide="ignore", invalid="ignore"):
        return x1 / n1 - x2 / n2


def _ordered_pairs(sizes: Floats, positives: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return x1, n1, x2, n2 (positives and sizes) of all ordered pairs of two groups.

    The last axis of each array runs over the pairs.
    """
    first, second = np.nonzero(~np.eye(sizes.shape[-1], dtype=bool))
    return positives[..., first], sizes[..., first], positives[..., second], sizes[..., second]


def _as_table(sizes: ArrayLike, positives: ArrayLike) -> tuple[Floats, Floats]:
    return np.asarray(sizes, np.float64), np.asarray(positives, np.float64)


# ---------------------------------------------------------------------------------------------
# Interval


def fairness_interval(
    constraints: ConstraintLike, sizes: ArrayLike, positives: ArrayLike, confidence: float
) -> tuple[float, float]:
    """Return an interval that holds the fairness on new people.

    For two groups, the interval is that of the ratio (or difference) of their rates,
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
    wrong if the bound of any choice of pairs is wrong. So half of the error is divided among all
    choices but one: the bound of the worst choice in reverse order is wrong only if the unfair end
    is, too.

    Examples
    --------
    >>> low, high = fairness_interval("demographic_parity", [[1000, 1000]], [[460, 500]], 0.95)
    >>> f"{low:.3f} to {high:.3f}"
    '0.838 to 1.000'
    """
    table = (tuple(map(tuple, part.tolist())) for part in _as_table(sizes, positives))
    return _interval_of(get_constraint(constraints).is_ratio, *table, confidence)


@lru_cache(maxsize=256)  # a page that refits asks for the same people again and again
def _interval_of(
    is_ratio: bool,
    sizes: tuple[tuple[float, ...], ...],
    positives: tuple[tuple[float, ...], ...],
    confidence: float,
) -> tuple[float, float]:
    """Return the interval of a ratio, or of a difference, for counts of cells (R, G)."""
    table = _as_table(sizes, positives)
    n_rows, n_groups = table[0].shape
    if n_groups < 2:
        return math.nan, math.nan
    pairs = _ordered_pairs(*table)
    n_choices = (n_groups * (n_groups - 1)) ** n_rows
    alpha = (1 - confidence) / 2
    alpha_of_choice = alpha / (n_choices - 1)
    # The lower bound of a pair is the upper bound of the pair in reverse order.
    if is_ratio:
        low = ratio_safe_bound(*pairs, alpha).min()
        high = 1 / np.maximum(ratio_safe_bound(*pairs, alpha_of_choice).max(), 1)
    else:
        x1, n1, x2, n2 = pairs
        lower_bounds = -difference_safe_bound(x2, n2, x1, n1, alpha_of_choice)
        upper_bounds = difference_safe_bound(*pairs, alpha)
        low = np.maximum(_largest_sum(_gaps(pairs), lower_bounds, is_upper=False), 0)
        high = _largest_sum(_gaps(pairs), upper_bounds, is_upper=True)
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
    the promise would hold in a share `power` of samples.

    Parameters
    ----------
    constraints, sizes, positives, confidence
        As in `promised_fairness`.
    target : float
        As in `promise_along`.
    power : float in (0.5, 1), default=0.9

    Returns
    -------
    float
        Above 1 if the promise fails. Infinite where the observed value is not fairer than the
        target, so that no number of rows would be enough. NaN if a cell is empty or there is
        only one group.

    Notes
    -----
    The slack is how much fairer the observed value is than the target. A test succeeds once its
    slack exceeds (z · null deviation + noise) / √factor + correction / factor, with normal noise.
    The correction is that of the continuity of counts. So each draw of the groups' noise has a
    smallest factor at which all tests succeed, and the answer is a quantile of these factors. This
    accounts for the dependence of the pairs, and for both orders of a pair.

    Examples
    --------
    >>> rows = [[100, 100]], [[46, 50]]
    >>> factor = rows_factor("demographic_parity", *rows, target=0.8, confidence=0.95)
    >>> round(factor)
    10
    """
    table = _as_table(sizes, positives)
    if table[0].shape[1] < 2 or not table[0].all():
        return math.nan
    z = -ndtri(1 - confidence)
    needed = _ratio_roots if get_constraint(constraints).is_ratio else _gap_roots
    return float(np.quantile(needed(*table, target, z), power, method="higher") ** 2)


def _ratio_roots(sizes: Floats, positives: Floats, target: float, z: float) -> Floats | float:
    """Return √factor of each draw of noise, the largest over all pairs; inf without slack."""
    x1, n1, x2, n2 = (part[0] for part in _ordered_pairs(sizes, positives))
    slack = x1 / n1 - target * x2 / n2
    if slack.min() <= ROUNDING:
        return math.inf
    deviation = np.sqrt(ratio_null_variance(x1, n1, x2, n2, target))
    noise_1, noise_2 = (part[:, 0] for part in _noise_of_pairs(sizes, positives))
    correction = CORRECTION * np.maximum(1 / n1, target / n2)
    return _largest_root(slack, z * deviation + target * noise_2 - noise_1, correction)


def _gap_roots(sizes: Floats, positives: Floats, target: float, z: float) -> Floats | float:
    """Return √factor of each draw of noise, the largest over all choices of a pair per rate row."""
    pairs = _ordered_pairs(sizes, positives)
    if target - _gaps(pairs).max(axis=1).sum() <= ROUNDING:
        return math.inf
    choices = _hardest_choices(*pairs, target)
    rate_rows = np.arange(len(sizes))[:, None]
    x1, n1, x2, n2 = (part[rate_rows, choices] for part in pairs)
    slack = target - (x1 / n1 - x2 / n2).sum(axis=0)
    deviation = np.hypot.reduce(_gap_deviations(x1, n1, x2, n2, slack), axis=0)
    correction = CORRECTION * np.hypot.reduce(1 / np.minimum(n1, n2), axis=0)
    noise_1, noise_2 = _noise_of_pairs(sizes, positives)
    noise = (noise_1 - noise_2)[:, rate_rows, choices].sum(axis=1)
    return _largest_root(slack, z * deviation + noise, correction)


def _largest_root(slack: Floats, spread: Floats, correction: Floats) -> Floats:
    """Return the largest √factor with slack = spread / √factor + correction / factor.

    `slack` and `correction` have shape (n_tests,), `spread` and the draws (N_DRAWS, n_tests).
    """
    roots = (spread + np.sqrt(spread**2 + 4 * correction * slack)) / (2 * slack)
    return np.asarray(roots.max(axis=1))


def _hardest_choices(
    x1: Floats, n1: Floats, x2: Floats, n2: Floats, target: float
) -> NDArray[np.intp]:
    """Return the choices of a pair per rate row that need most rows, (n_rate_rows, n_choices).

    There are at most `MAX_CHOICES`: the square of the number of pairs is large for many groups.
    """
    n_rows, n_pairs = x1.shape
    choices = np.indices((n_pairs,) * n_rows).reshape(n_rows, -1)
    rate_rows = np.arange(n_rows)[:, None]
    x1, n1, x2, n2 = (part[rate_rows, choices] for part in (x1, n1, x2, n2))
    slack = target - (x1 / n1 - x2 / n2).sum(axis=0)
    need = np.sqrt((1 / n1 + 1 / n2).sum(axis=0)) / slack
    return choices[:, np.argsort(-need, kind="stable")[:MAX_CHOICES]]


def _gap_deviations(x1: Floats, n1: Floats, x2: Floats, n2: Floats, slack: Floats) -> Floats:
    """Return the null deviation of each gap, (n_rate_rows, n_choices), where the test just passes.

    There, the excess of each gap is in proportion to its deviation, and their squares add up to
    that of the slack. The deviations depend on these shares in turn, so a few rounds are needed.
    """
    gaps = x1 / n1 - x2 / n2
    deviations = np.ones_like(gaps)
    for _ in range(3):
        shares = deviations / np.hypot.reduce(deviations, axis=0)
        at_margin = np.clip(gaps + slack * shares, -1, 1)
        deviations = np.sqrt(difference_null_variance(x1, n1, x2, n2, at_margin)) + TINY
    return deviations


def _noise_of_pairs(sizes: Floats, positives: Floats) -> tuple[Floats, Floats]:
    """Return draws of the errors of both rates of each pair, (N_DRAWS, n_rate_rows, n_pairs)."""
    rates = positives / sizes
    # The seed is fixed, so that a table always has the same answer.
    draws = np.random.default_rng(0).standard_normal((N_DRAWS, *sizes.shape))
    noise = draws * np.sqrt(rates * (1 - rates) / sizes)
    of_first, _, of_second, _ = _ordered_pairs(noise, noise)
    return of_first, of_second


# ---------------------------------------------------------------------------------------------
# New samples
#
# The offset of an update adapts to the chance in the rates of the fit rows, and a new sample has
# other chance. So the rates of a new sample differ from the measured ones by the chance of both. A
# lowest rate or a gap then is, on average, less fair than the measured one: with chance, some group
# is always the lowest.


def sampled_interval(
    constraint: Constraint,
    compared: Sequence[GroupComparison],
    sizes: Floats,
    rates: Floats,
    level: float,
) -> tuple[float, float]:
    """Return the middle share `level` of the metric over samples of people with these rates.

    The interval is approximate: the lowest and the highest of several rates vary by more than one
    rate does, and in one direction.
    """
    if not compared:
        return math.nan, math.nan
    draws = drawn_rates(sizes, rates, n_samples=1)
    values = np.stack([one.value(draws) for one in compared])
    worst = values.min(axis=0) if constraint.higher_is_fairer else values.max(axis=0)
    least = constraint.least_fair if np.isfinite(constraint.least_fair) else np.nanmax(worst)
    worst = np.where(np.isnan(worst), least, worst)
    low, high = np.quantile(worst, ((1 - level) / 2, (1 + level) / 2)).tolist()
    return low, high


def drawn_rates(sizes: Floats, rates: Floats, n_samples: int) -> Floats:
    """Return rates with the chance of some samples, shape (A, N_SAMPLES).

    `sizes` and `rates` have the shape of the cells, whose number is A.
    """
    sizes = np.maximum(sizes, 1.0)
    smoothed = (rates * sizes + 1) / (sizes + 2)  # a rate of 0 or 1 has chance, too
    deviation = np.sqrt(n_samples * smoothed * (1 - smoothed) / sizes)
    draws = np.clip(rates + deviation * _chance(rates.shape), 0.0, 1.0)
    return draws.reshape(N_SAMPLES, -1).T


@cache
def _chance(shape: tuple[int, ...]) -> Floats:
    """Return standard normal draws, (N_SAMPLES, *shape), always the same."""
    half = np.random.RandomState(0).standard_normal((N_SAMPLES // 2, *shape))
    return np.concatenate([half, -half])


# ---------------------------------------------------------------------------------------------
# Unknown groups
#
# `worst_interval`: every assignment of the unknown people to groups is possible.
# `calibrated_interval`: each person is in a group with a stated probability, independently.


class UnknownInterval(NamedTuple):
    """The smallest and the largest value of a metric; `is_exact` where both can occur."""

    low: float
    high: float
    is_exact: bool


NO_INTERVAL = UnknownInterval(float("nan"), float("nan"), is_exact=False)


def worst_interval(
    constraints: ConstraintLike,
    sizes: ArrayLike,
    positives: ArrayLike,
    unknown_sizes: ArrayLike,
    unknown_positives: ArrayLike,
    *,
    may_be_elsewhere: bool = False,
) -> UnknownInterval:
    """Return between which values a metric lies, whatever the groups of unknown people are.

    The least fair value is exact. It gives all unknown positive decisions to one group and all
    negative ones to another. The fairest value is exact for two groups, if unknown people belong to
    these and weights count whole people. Otherwise it is a proven bound: each pair of groups is
    compared as if all unknown people could be theirs.

    Parameters
    ----------
    constraints : str or Constraint
        A constraint on ratios or differences of rates of all people.
    sizes, positives : array-like of shape (n_rate_rows, n_groups)
        How many people of each group count, and how many of them have a positive decision.
    unknown_sizes, unknown_positives : array-like of shape (n_rate_rows,)
        The same for the people whose group is not known.
    may_be_elsewhere : bool, default=False
        Whether unknown people may also belong to groups that are not compared.

    Returns
    -------
    UnknownInterval

    Examples
    --------
    >>> low, high, is_exact = worst_interval("demographic_parity", [[10, 10]], [[5, 2]], [2], [1])
    >>> round(low, 3), round(high, 3), is_exact
    (0.333, 0.6, True)
    """
    constraint = get_constraint(constraints)
    known = np.asarray(sizes, np.float64), np.asarray(positives, np.float64)
    others = np.asarray(unknown_sizes, np.float64), np.asarray(unknown_positives, np.float64)
    if known[0].shape[1] < 2:
        return NO_INTERVAL
    if not known[0].all():  # a group may be empty, or consist of one person
        low, high = sorted((constraint.least_fair, constraint.ideal))
        return UnknownInterval(low, high, is_exact=False)
    whole = not may_be_elsewhere
    tables = zip(*known, *others, strict=True)
    rows = [_CountedRate(n, k, float(m), float(m_pos), whole) for n, k, m, m_pos in tables]
    is_exact = all(row.is_exact for row in rows)
    if constraint.is_ratio:
        low, high = rows[0].lowest_ratio(), rows[0].highest_ratio()
        return UnknownInterval(low, high, is_exact) if np.isfinite(low) else NO_INTERVAL
    fairest, least_fair = (
        sum(row.smallest_gap() for row in rows),
        sum(row.largest_gap() for row in rows),
    )
    return UnknownInterval(float(fairest), float(least_fair), is_exact)


class _CountedRate(NamedTuple):
    """The counts of one rate: by group (n_groups,), and of unknown people."""

    sizes: Floats
    positives: Floats
    unknown_size: float
    unknown_positive: float
    is_whole: bool

    @property
    def is_exact(self) -> bool:
        """Return whether two groups share all unknown people, who are counted one by one."""
        if not self.is_whole or len(self.sizes) > 2:
            return False
        values = np.array([*self.sizes, *self.positives, self.unknown_size, self.unknown_positive])
        return bool((values == np.rint(values)).all())

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Return the lowest and the highest rate that each group could have."""
        negative = self.unknown_size - self.unknown_positive
        lowest = self.positives / (self.sizes + negative)
        highest = (self.positives + self.unknown_positive) / (self.sizes + self.unknown_positive)
        return lowest, highest

    def _pairs(self) -> tuple[Floats, Floats]:
        """Return the lowest rate of one group and the highest of another one, for every pair."""
        lowest, highest = self.ends
        i, j = np.nonzero(~np.eye(len(lowest), dtype=bool))
        return lowest[i], highest[j]

    def lowest_ratio(self) -> float:
        """Return the lowest ratio of two rates; NaN if nobody can have a positive decision."""
        low, high = self._pairs()
        return float((low / np.maximum(high, TINY_RATE)).min()) if high.any() else float("nan")

    def largest_gap(self) -> float:
        """Return the largest difference of two rates."""
        low, high = self._pairs()
        return float((high - low).max())

    def highest_ratio(self) -> float:
        """Return the highest ratio of the lowest rate to the highest one, or a bound on it."""
        if self.is_exact:
            low, high = self._closest_rates()
            return float((low / np.maximum(high, TINY_RATE)).max())
        low, high = self._pairs()
        return float(min((high / np.maximum(low, TINY_RATE)).min(), 1.0))

    def smallest_gap(self) -> float:
        """Return the smallest difference between the lowest and the highest rate, or a bound."""
        if self.is_exact:
            low, high = self._closest_rates()
            return float((high - low).min())
        low, high = self._pairs()
        return float(max((low - high).max(), 0.0))

    def _closest_rates(self) -> tuple[Floats, Floats]:
        """Return the lower and the higher rate of two groups, for assignments that may be fairest.

        Let the first group get x of the unknown positives and y of the unknown negatives. For each
        x, the difference of the rates falls with y. So only the two y next to its sign change
        count, and halving determines these.
        """
        n_negative = int(self.unknown_size - self.unknown_positive)
        x = np.arange(int(self.unknown_positive) + 1)

        def rates(y: NDArray[np.int64]) -> tuple[Floats, Floats]:
            first = (self.positives[0] + x) / (self.sizes[0] + x + y)
            others = self.unknown_positive - x, n_negative - y
            second = (self.positives[1] + others[0]) / (self.sizes[1] + others[0] + others[1])
            return first, second

        low, high = np.zeros_like(x), np.full_like(x, n_negative)  # the sign changes at or after
        for _ in range(n_negative.bit_length() + 1):
            middle = (low + high) // 2
            first, second = rates(middle)
            is_before = first > second
            low, high = np.where(is_before, middle, low), np.where(is_before, high, middle)
        tried = [np.stack(rates(y)) for y in (low, high, np.minimum(low + 1, n_negative))]
        both = np.concatenate(tried, axis=1)
        return both.min(axis=0), both.max(axis=0)


# ---------------------------------------------------------------------------------------------
# Probabilities


def calibrated_interval(
    constraints: ConstraintLike,
    row: NDArray[np.intp],
    decisions: NDArray[np.bool_],
    probabilities: Floats,
    weight: Floats,
    level: float = 0.95,
) -> tuple[float, float]:
    """Return the interval of a metric where everybody's group is drawn with stated probabilities.

    The numbers of positive and negative decisions of the groups are sums of independent draws. They
    are drawn from the normal distribution with the same means and covariances, with a fixed seed.

    Parameters
    ----------
    constraints : str or Constraint
        A constraint on ratios or differences of rates of all people.
    row : array of shape (n,)
        The rate that counts each person, −1 if none does.
    decisions : array of shape (n,)
    probabilities : array of shape (n, n_groups)
    weight : array of shape (n,)
    level : float
        The probability that the metric lies inside.

    Returns
    -------
    tuple of float
    """
    constraint = get_constraint(constraints)
    random_state = np.random.RandomState(0)
    rates = []
    for i in range(len(constraint.rate_rows)):
        positive, negative = (
            _drawn_numbers(probabilities[rows], weight[rows], random_state)
            for rows in ((row == i) & decisions, (row == i) & ~decisions)
        )
        rates.append(positive / np.maximum(positive + negative, TINY_RATE))
    if constraint.is_ratio:
        highest = rates[0].max(axis=1)
        values = rates[0].min(axis=1) / np.maximum(highest, TINY_RATE)
    else:
        values = np.sum([rate.max(axis=1) - rate.min(axis=1) for rate in rates], axis=0)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _drawn_numbers(
    probabilities: Floats, weight: Floats, random_state: np.random.RandomState
) -> Floats:
    """Return how many of some people each group could have, shape (N_DRAWS, n_groups)."""
    mean = weight @ probabilities
    squares = weight**2
    covariance = np.diag(squares @ probabilities) - (probabilities.T * squares) @ probabilities
    # a matrix of this kind is singular where probabilities sum to 1: take its symmetric root
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = random_state.standard_normal((N_DRAWS, len(mean))) @ root.T
    return np.asarray(np.maximum(mean + draws, 0.0))
