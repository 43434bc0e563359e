"""Cut numbers into bins at weighted quantiles, moved to round numbers nearby.

An update stores its edges, and must not store the value of a single person. So an edge is the
roundest number in an interval. It is a value of few people only if no other number separates two
values. The steps are:

1. Sort the values and merge those that are equal up to rounding (`_distinct_values`).
2. Find for each edge an interval in which it may lie (`_intervals`).
3. Choose the roundest number of each interval (`roundest_number`).
4. Drop edges until every bin is large enough (`_without_small_bins`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats

ROUNDING = 1e-12  # relative difference of values that count as equal, such as 0.3 and 0.1 + 0.2
SLACK = 0.25  # how far an edge may move to become round, as a share of a bin's weight
TINY = 1e-9  # shares that differ by less count as equal


def bin_edges(values: Floats, weight: Floats, *, n_bins: int, min_size: int) -> tuple[float, ...]:
    """Return increasing edges of bins of about the same weight; () for a single bin.

    A bin includes its lower edge, not its upper one, and holds at least `min_size` values. A value
    with the weight of a whole bin gets a bin of its own. If there are at most `n_bins` distinct
    values, each gets a bin of its own. The order of `values` (n,) does not matter.

    Examples
    --------
    >>> import numpy as np
    >>> age = np.array([18, 19, 22, 24, 29, 31, 38, 45, 52, 71.0])
    >>> bin_edges(age, np.ones(10), n_bins=3, min_size=1)
    (25.0, 40.0)
    >>> n_children = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2, 3.0])
    >>> bin_edges(n_children, np.ones(10), n_bins=5, min_size=2)
    (1.0, 2.0)
    """
    if not len(values):
        return ()
    distinct = _distinct_values(values, weight)
    intervals = _intervals(distinct, n_bins, min_size)
    edges = sorted({roundest_number(low, high) for low, high in intervals})
    return _without_small_bins(edges, distinct.values, min_size)


@dataclass(frozen=True)
class _DistinctValues:
    """The u distinct values in rising order, and all n values sorted.

    Values that are equal up to rounding count as one, which reaches from `lowest` to `highest`.
    `values` has shape (n,), all other arrays (u,).
    """

    values: Floats
    lowest: Floats
    highest: Floats
    n_rows: NDArray[np.intp]
    share: Floats
    is_whole: bool


def _distinct_values(values: Floats, weight: Floats) -> _DistinctValues:
    if (weight == weight[0]).all():
        values, weight = np.sort(values), np.ones(len(values))
    else:
        order = np.lexsort((weight, values))  # sums do not depend on the order of the rows
        values, weight = values[order], weight[order]
    size = np.abs(values)
    with np.errstate(over="ignore"):
        is_new = np.diff(values) > ROUNDING * np.maximum(size[1:], size[:-1])
    first = np.flatnonzero(np.append(True, is_new))
    stop = np.append(first[1:], len(values))
    return _DistinctValues(
        values=values,
        lowest=values[first],
        highest=values[stop - 1],
        n_rows=stop - first,
        share=np.add.reduceat(weight, first) / weight.sum(),
        is_whole=bool((values == np.rint(values)).all()),
    )


def _intervals(
    distinct: _DistinctValues, n_bins: int, min_size: int
) -> Iterator[tuple[float, float]]:
    """Yield an interval (low, high] for each edge, which may lie anywhere in it."""
    for first_cut, last_cut in _cuts(distinct.share, distinct.n_rows, n_bins, min_size):
        low, high = float(distinct.highest[first_cut]), float(distinct.lowest[last_cut + 1])
        if distinct.n_rows[last_cut + 1] < min_size:  # the edge must not be the value of few people
            below = high - 1 if distinct.is_whole else math.nextafter(high, low)
            high = below if below > low else high
        yield low, high


def _cuts(
    share: Floats, n_rows: NDArray[np.intp], n_bins: int, min_size: int
) -> Iterator[tuple[int, int]]:
    """Yield for each edge the first and the last distinct value that it may come after."""
    has_own_bin = (share >= 1 / n_bins - TINY) | (len(share) <= n_bins)
    is_start = np.append(True, has_own_bin[1:] | has_own_bin[:-1])
    starts = np.flatnonzero(is_start).tolist()
    cumulative = np.cumsum(share)
    for first, stop in zip(starts, [*starts[1:], len(share)], strict=True):
        if first:
            yield first - 1, first - 1
        if stop - first > 1:
            largest = max(2, int(n_rows[first:stop].sum()) // (2 * min_size))
            n_wanted = round(float(share[first:stop].sum()) * n_bins)
            yield from _cuts_of_range(cumulative, first, stop, min(n_wanted, largest))


def _cuts_of_range(
    cumulative: Floats, first: int, stop: int, n_bins: int
) -> Iterator[tuple[int, int]]:
    """Yield the cuts of the values from `first` to `stop` into bins of the same weight."""
    start = float(cumulative[first - 1]) if first else 0.0
    size = (float(cumulative[stop - 1]) - start) / max(n_bins, 1)
    inside = cumulative[first : stop - 1]  # a cut comes after each value but the last
    for level in (start + size * j for j in range(1, n_bins)):
        slack = SLACK * size + TINY
        low = int(np.searchsorted(inside, level - slack, side="left"))
        high = int(np.searchsorted(inside, level + slack, side="right")) - 1
        if low > high:  # a value with much weight covers this level: cut at its nearest end
            low = high = int(np.argmin(np.abs(inside - level)))
        yield first + low, first + high


def roundest_number(low: float, high: float) -> float:
    """Return the number in (low, high] with the fewest digits; of several, the middle one."""
    if low < 0 <= high:
        return 0.0
    bottom, top = Fraction(low), Fraction(high)
    power = Fraction(10) ** (math.floor(math.log10(max(abs(low), abs(high)))) + 1)
    for _ in range(20):  # more digits than a float has
        for step in (power, power / 2):
            first, last = math.floor(bottom / step) + 1, math.floor(top / step)
            if first <= last:
                middle = round((bottom + top) / 2 / step)
                edge = float(min(max(middle, first), last) * step)
                if edge > low:  # rounding to a float may fall back to low
                    return edge
        power /= 10
    return high


def _without_small_bins(edges: list[float], values: Floats, min_size: int) -> tuple[float, ...]:
    """Return the edges that remain after each small bin joined its smaller neighbour."""
    kept = list(edges)
    stops = np.searchsorted(values, kept, side="left")
    n_rows = np.diff(stops, prepend=0, append=len(values)).tolist()
    while kept and min(n_rows) < min_size:
        i = n_rows.index(min(n_rows))
        is_left = i == len(kept) or (i > 0 and n_rows[i - 1] <= n_rows[i + 1])
        j = i - 1 if is_left else i
        n_rows[j : j + 2] = [n_rows[j] + n_rows[j + 1]]
        del kept[j]
    return tuple(kept)
