"""Where to cut a number into bins: weighted quantiles, moved to round numbers nearby.

Edges are kept in the update, which must hold nobody's own value: an edge is the roundest number in
an interval, and the exact value of few people only where nothing else lies between two values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROUNDING", "bin_edges"]

FloatArray = NDArray[np.float64]

ROUNDING = 1e-12  # relative: 0.3 and 0.1 + 0.2 are one value
SLACK = 0.25  # of a bin's weight: how far an edge may move to become round
TINY = 1e-9  # shares that should be equal may differ by rounding


def bin_edges(
    values: FloatArray, weight: FloatArray, *, n_bins: int, min_size: int
) -> tuple[float, ...]:
    """Return increasing edges of bins that hold about the same weight; none for a single bin.

    A bin holds its lower edge, not its upper one, and at least `min_size` values. A value with the
    weight of a whole bin has a bin of its own, and so has each of at most `n_bins` different
    values. The order of the values does not matter.

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
    steps = _steps(values, weight)
    intervals = _intervals(steps, n_bins, min_size)
    edges = sorted({_roundest(low, high) for low, high in intervals})
    return _without_small_bins(edges, steps.values, min_size)


@dataclass(frozen=True)
class _Steps:
    """The u different values in rising order; `values` (n,) are all of them, sorted."""

    values: FloatArray
    lowest: FloatArray  # values equal up to rounding are one, from `lowest` to `highest`
    highest: FloatArray
    n_rows: NDArray[np.intp]
    share: FloatArray
    is_whole: bool


def _steps(values: FloatArray, weight: FloatArray) -> _Steps:
    if (weight == weight[0]).all():
        values, weight = np.sort(values), np.ones(len(values))
    else:
        order = np.lexsort((weight, values))  # equal values too add up in one order
        values, weight = values[order], weight[order]
    size = np.abs(values)
    with np.errstate(over="ignore"):
        is_new = np.diff(values) > ROUNDING * np.maximum(size[1:], size[:-1])
    first = np.flatnonzero(np.append(True, is_new))
    stop = np.append(first[1:], len(values))
    return _Steps(
        values=values,
        lowest=values[first],
        highest=values[stop - 1],
        n_rows=stop - first,
        share=np.add.reduceat(weight, first) / weight.sum(),
        is_whole=bool((values == np.rint(values)).all()),
    )


def _intervals(steps: _Steps, n_bins: int, min_size: int) -> Iterator[tuple[float, float]]:
    """Yield an interval (low, high] for each edge: anywhere in it would do."""
    for first_cut, last_cut in _cuts(steps.share, steps.n_rows, n_bins, min_size):
        low, high = float(steps.highest[first_cut]), float(steps.lowest[last_cut + 1])
        if steps.n_rows[last_cut + 1] < min_size:  # few people's own value is no good edge
            below = high - 1 if steps.is_whole else math.nextafter(high, low)
            high = below if below > low else high
        yield low, high


def _cuts(
    share: FloatArray, n_rows: NDArray[np.intp], n_bins: int, min_size: int
) -> Iterator[tuple[int, int]]:
    """Yield for each edge the first and the last of the different values it may come after."""
    is_own = (share >= 1 / n_bins - TINY) | (len(share) <= n_bins)
    is_first = np.append(True, is_own[1:] | is_own[:-1])
    starts = np.flatnonzero(is_first).tolist()
    upto = np.cumsum(share)
    for first, stop in zip(starts, [*starts[1:], len(share)], strict=True):
        if first:
            yield first - 1, first - 1
        if stop - first > 1:
            most = max(2, int(n_rows[first:stop].sum()) // (2 * min_size))
            wanted = round(float(share[first:stop].sum()) * n_bins)
            yield from _cuts_of_stretch(upto, first, stop, min(wanted, most))


def _cuts_of_stretch(
    upto: FloatArray, first: int, stop: int, n_bins: int
) -> Iterator[tuple[int, int]]:
    """Yield the cuts of the values from `first` to `stop` into bins of the same weight."""
    start = float(upto[first - 1]) if first else 0.0
    size = (float(upto[stop - 1]) - start) / max(n_bins, 1)
    inside = upto[first : stop - 1]  # a cut comes after each value but the last
    for level in (start + size * j for j in range(1, n_bins)):
        slack = SLACK * size + TINY
        low = int(np.searchsorted(inside, level - slack, side="left"))
        high = int(np.searchsorted(inside, level + slack, side="right")) - 1
        if low > high:  # a large value in the way: the nearest end of it
            low = high = int(np.argmin(np.abs(inside - level)))
        yield first + low, first + high


def _roundest(low: float, high: float) -> float:
    """Return the number in (low, high] with the fewest digits, of several the middle one."""
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
                if edge > low:  # else rounding to a float has undone it
                    return edge
        power /= 10
    return high


def _without_small_bins(edges: list[float], values: FloatArray, min_size: int) -> tuple[float, ...]:
    """Return the edges that are left when small bins join the smaller of their neighbours."""
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
