"""Reduce comparisons on cells to small independent problems.

Three steps make the problems small; none of them changes the fewest changes:

1. A floor or a ceiling concerns each group alone, so it becomes one comparison per group.
2. Comparisons that share no cell are separate problems.
3. Cells that act alike in all comparisons of a problem are merged. A cell in which raising acts as
   lowering does elsewhere is mirrored first. So the accuracy of a group moves one merged cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats
from commod.metrics._cells import DIGITS
from commod.metrics._comparison import GroupComparison, Measures

IntArray = NDArray[np.int64]

# Metrics are rounded to DIGITS, so a value this close to a bound keeps it.
TOLERANCE = Fraction(1, 2 * 10**DIGITS)


@dataclass(frozen=True)
class Bounded:
    """A comparison of measures that are functions of moves, and the bound that it must keep.

    A move is how many more people of a merged cell are positive, or fewer, where it is negative.
    """

    comparison: GroupComparison
    bound: float | Fraction

    @property
    def tables(self) -> tuple[Measures, ...]:
        """Return the compared measures as functions of the moves."""
        return self.comparison.tables

    @property
    def is_linear(self) -> bool:
        """Return whether inequalities that are linear in the moves state the bound."""
        is_alone = self.comparison.kind in ("floor", "ceiling")
        return is_alone or all(table.denominator is None for table in self.tables)

    @property
    def target(self) -> Fraction:
        """Return the exact number that the exact value is compared with."""
        if isinstance(self.bound, Fraction):
            return self.bound
        exact = Fraction(repr(float(self.bound)))
        return exact - TOLERANCE if self._is_floor else exact + TOLERANCE

    @property
    def _is_floor(self) -> bool:
        return self.comparison.kind in ("ratio", "floor")

    def is_kept(self, moves: IntArray) -> bool:
        """Return whether the moves (B,) keep the bound, in exact fractions.

        A value that is not defined keeps no bound.
        """
        value = self.exact_value(moves)
        if value is None:
            return False
        return value >= self.target if self._is_floor else value <= self.target

    def exact_value(self, moves: IntArray) -> Fraction | None:
        """Return the value at the moves (B,); None where it is not defined."""
        ranges = []
        for table in self.tables:
            numbers = exact_numbers(table, moves)
            if None in numbers:
                return None
            known = [number for number in numbers if number is not None]
            ranges.append((min(known), max(known)))
        lowest, highest = ranges[0]
        match self.comparison.kind:
            case "floor":
                return lowest
            case "ceiling":
                return highest
            case "difference":
                return sum((high - low for low, high in ranges), Fraction(0))
        return lowest / highest if highest > 0 else None


def exact_numbers(table: Measures, moves: IntArray) -> list[Fraction | None]:
    """Return the exact number of each group; None for a division by zero."""
    tops = _exact_sums(table.numerator, table.constant, moves)
    if table.denominator is None:
        bottoms = [Fraction(size) for size in table.scale.tolist()]
    else:
        bottoms = _exact_sums(table.denominator, table.scale, moves)
    return [top / bottom if bottom > 0 else None for top, bottom in zip(tops, bottoms, strict=True)]


def _exact_sums(slopes: Floats, constant: Floats, moves: IntArray) -> list[Fraction]:
    """Return weighted numbers of people; 0 where only rounded weights keep them above it."""
    counts, sums = moves.tolist(), []
    for weights, start in zip(slopes.tolist(), constant.tolist(), strict=True):
        parts = (Fraction(a) * z for a, z in zip(weights, counts, strict=True) if a)
        sums.append(Fraction(start) + sum(parts))
    least = [Fraction(least_positive(weights)) / 2 for weights in slopes]
    return [value if value > at else Fraction(0) for value, at in zip(sums, least, strict=True)]


def least_positive(slopes: Floats) -> float:
    """Return the smallest number above zero that a sum of counts with these weights can be."""
    weights = np.abs(slopes[slopes != 0])
    return float(weights.min()) if len(weights) else 0.0


@dataclass(frozen=True)
class MergedProblem:
    """Comparisons that share cells, as functions of the moves of B merged cells.

    `n_up` and `n_down` (B,) are the most people that may be raised and lowered. `merged` (A,) is
    the merged cell of each original cell, −1 for cells of other problems. `sign` (A,) is −1 for a
    mirrored cell.
    """

    bounded: tuple[Bounded, ...]
    n_up: IntArray
    n_down: IntArray
    merged: IntArray
    sign: IntArray

    def is_kept(self, moves: IntArray) -> bool:
        """Return whether the moves (B,) keep every bound."""
        return all(one.is_kept(moves) for one in self.bounded)

    def cell_moves(self, moves: IntArray, n_up: IntArray, n_down: IntArray) -> IntArray:
        """Return the moves of the original cells (A,); at most `n_up` and `n_down` (A,)."""
        result = np.zeros(len(n_up), dtype=np.int64)
        for b, move in enumerate(moves.tolist()):
            for cell in np.flatnonzero(self.merged == b).tolist():
                step = move * int(self.sign[cell])
                step = min(step, int(n_up[cell])) if step > 0 else max(step, -int(n_down[cell]))
                result[cell] = step
                move -= step * int(self.sign[cell])
        return result


def merged_problems(
    compared: Sequence[tuple[GroupComparison, float | Fraction]],
    positives: IntArray,
    n_up: IntArray,
    n_down: IntArray,
) -> Iterator[MergedProblem]:
    """Yield independent problems; `positives`, `n_up` and `n_down` have shape (A,)."""
    bounded = [
        Bounded(replace(one, tables=tuple(_from_moves(t, positives) for t in one.tables)), bound)
        for comparison, bound in compared
        for one in _by_group(comparison)
        if comparison.kind != "ratio" or bound > 0  # every ratio is at least 0
    ]
    for members in _connected(bounded):
        yield _merge([bounded[i] for i in members], n_up, n_down)


def _by_group(comparison: GroupComparison) -> list[GroupComparison]:
    """Return one comparison per group for a floor or a ceiling; otherwise the same comparison."""
    if comparison.kind not in ("floor", "ceiling"):
        return [comparison]
    (table,) = comparison.tables
    return [
        replace(comparison, tables=(_rows(table, [i]),), groups=(group,))
        for i, group in enumerate(comparison.groups)
    ]


def _rows(table: Measures, index: Sequence[int]) -> Measures:
    denominator = None if table.denominator is None else table.denominator[index]
    return Measures(table.numerator[index], table.constant[index], table.scale[index], denominator)


def _from_moves(table: Measures, positives: IntArray) -> Measures:
    """Return measures as functions of moves; they are functions of positives (A,) before."""
    constant = table.constant + table.numerator @ positives
    if table.denominator is None:
        return replace(table, constant=constant)
    return replace(table, constant=constant, scale=table.scale + table.denominator @ positives)


def _slopes(bounded: Sequence[Bounded]) -> Floats:
    """Return all weights of the moves, one row per group, table and comparison."""
    parts = []
    for one in bounded:
        for table in one.tables:
            parts += [table.numerator] if table.denominator is None else [*_both(table)]
    return np.vstack(parts)


def _both(table: Measures) -> tuple[Floats, Floats]:
    assert table.denominator is not None
    return table.numerator, table.denominator


def _connected(bounded: Sequence[Bounded]) -> list[list[int]]:
    """Return the numbers of the comparisons of each problem: cells link them, directly or not."""
    if not bounded:
        return []
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    uses = np.stack([_slopes([one]).any(axis=0) for one in bounded]).astype(np.int64)
    n_problems, problem = connected_components(csr_array(uses @ uses.T), directed=False)
    return [np.flatnonzero(problem == i).tolist() for i in range(n_problems)]


def _merge(bounded: Sequence[Bounded], n_up: IntArray, n_down: IntArray) -> MergedProblem:
    """Return the problem of some comparisons, with cells that act alike merged."""
    slopes = _slopes(bounded)
    first = slopes[(slopes != 0).argmax(axis=0), np.arange(slopes.shape[1])]
    sign = np.where(first < 0, -1, 1)
    used = np.flatnonzero(first)
    columns, number = np.unique((slopes * sign)[:, used] + 0.0, axis=1, return_inverse=True)
    merged = np.full(slopes.shape[1], -1)
    number = number.ravel()  # NumPy 2.0.0 gives it the shape (1, n)
    merged[used] = number
    n_merged = columns.shape[1]
    up, down = np.where(sign > 0, n_up, n_down), np.where(sign > 0, n_down, n_up)
    representative = np.array([used[number == b][0] for b in range(n_merged)], dtype=np.intp)

    def reduced(table: Measures) -> Measures:
        parts = [
            None if part is None else (part * sign)[:, representative]
            for part in (table.numerator, table.denominator)
        ]
        assert parts[0] is not None
        return replace(table, numerator=parts[0], denominator=parts[1])

    small = [
        replace(
            one,
            comparison=replace(one.comparison, tables=tuple(map(reduced, one.tables))),
        )
        for one in bounded
    ]
    return MergedProblem(
        tuple(small),
        np.bincount(number, up[used], minlength=n_merged).astype(np.int64),
        np.bincount(number, down[used], minlength=n_merged).astype(np.int64),
        merged,
        sign,
    )
