"""Fewest changes on two lines of rates, for equalized odds: how the lines share the ceiling.

Changes among the rows with one true label close the gap of true positive rates, changes among the
others that of false positive rates; the two gaps may add up to the ceiling. Each line alone is a
staircase, fewer changes for a wider gap, that `fewest_on_line` computes at any width. In real
numbers their sum is convex in the first line's width: only widths where that sum is below the best
pair found need a look, and there one line's staircase is walked down step by step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from commod.bounds._fewest import exact_gap, fewest_on_line, next_gap
from commod.bounds._levels import (
    MARGIN,
    FloatArray,
    IntArray,
    Line,
    gap_floor,
    relaxed_minimum,
)

__all__ = ["fewest_on_two_lines"]


def fewest_on_two_lines(
    lines: tuple[Line, Line],
    ceiling: Fraction,
    *,
    limit: float = math.inf,
    prefer_high: bool = True,
) -> tuple[IntArray, IntArray] | None:
    """Return the positives of both lines, each (G,), after the fewest changes to gaps <= ceiling.

    None where that takes more than `limit` changes. The same counts always give the same answer.
    """
    gaps = [exact_gap(line.sizes, line.positives) for line in lines]
    if sum(gaps) <= ceiling:
        return lines[0].positives, lines[1].positives
    search = _Search(lines, ceiling, prefer_high, best=limit + 1)
    # Outside these widths of the first line one of the two would be left wider than it is.
    start = max(0.0, float(ceiling - gaps[1]))
    end = min(float(ceiling), float(gaps[0]))
    width, least = relaxed_minimum(search.relaxed, np.linspace(start, end, 33), 8, True)
    search.start_near(width)
    if search.best >= least + 1 - MARGIN:  # some whole number of changes lies between
        bar = search.best - 1 + MARGIN
        low, high = _edge(search, width, start, bar), _edge(search, width, end, bar)
        search.walk(low, high, least)
    return search.found


class _Corner(NamedTuple):
    """A step of one line's staircase: its fewest changes, and the least gap they allow."""

    n_changes: int
    gap: Fraction
    positives: IntArray


@dataclass
class _Search:
    """What the search knows: pairs of corners that together cost `best` or more are of no use."""

    lines: tuple[Line, Line]
    ceiling: Fraction
    prefer_high: bool
    best: float
    found: tuple[IntArray, IntArray] | None = None

    def relaxed(self, widths: FloatArray) -> FloatArray:
        """Return the least real cost of both lines where the first has each width, (N,)."""
        rest = float(self.ceiling) - widths
        return _relaxed_costs(self.lines[0], widths) + _relaxed_costs(self.lines[1], rest)

    def start_near(self, width: float) -> None:
        """Try the width of least real cost, with one line as wide and the other what is left."""
        shares = Fraction(width), self.ceiling - Fraction(width)
        for n_steps in (1, 0):  # a width between two steps may ask for all too much
            for i, share in enumerate(shares):
                step = Fraction(n_steps, int(self.lines[i].sizes.min()))
                self.attempt(i, share + step, self.best - 1)

    def walk(self, low: float, high: float, least: float) -> None:
        """Try every corner of one line (the one with fewer steps) between two first widths."""
        widths = np.array([low, high])
        costs = [
            _relaxed_costs(line, w) for line, w in zip(self.lines, self._both(widths), strict=True)
        ]
        i = int(np.argmin([np.ptp(c) for c in costs]))
        width = Fraction(high) if i == 0 else self.ceiling - Fraction(low)
        stop = self._both(widths)[i].min()
        width, rest = width + Fraction(1, 10**12), math.ceil(costs[1 - i].min() - MARGIN)
        while width >= max(stop - 1e-12, 0) and self.best >= least + 1 - MARGIN:
            corner = self.attempt(i, width, self.best - 1 - rest)
            if corner is None:
                return
            width = next_gap(corner.gap, self.lines[i].sizes)

    def _both(self, widths: FloatArray) -> tuple[FloatArray, FloatArray]:
        return widths, float(self.ceiling) - widths

    def attempt(self, i: int, width: Fraction, limit: float) -> _Corner | None:
        """Return line i's corner at a width; where the other line can follow, note the pair."""
        one, other = self.lines[i], self.lines[1 - i]
        corner = self._corner(one, min(max(width, Fraction(0)), self.ceiling), limit)
        if corner is None:
            return None
        left = self.best - 1 - corner.n_changes
        rest = self.ceiling - corner.gap
        if _relaxed_costs(other, np.array([float(rest)]))[0] > left + MARGIN:
            return corner
        partner = self._corner(other, rest, left)
        if partner is not None:
            self.best = corner.n_changes + partner.n_changes
            pair = corner.positives, partner.positives
            self.found = pair if i == 0 else pair[::-1]
        return corner

    def _corner(self, line: Line, width: Fraction, limit: float) -> _Corner | None:
        floor = gap_floor(line.sizes, width)
        positives = fewest_on_line(line, floor, limit=limit, prefer_high=self.prefer_high)
        if positives is None:
            return None
        n_changes = int(np.abs(positives - line.positives).sum())
        return _Corner(n_changes, exact_gap(line.sizes, positives), positives)


def _relaxed_costs(line: Line, widths: FloatArray) -> FloatArray:
    """Return the fewest changes in real numbers that bring the gap to each width, (N,) to (N,)."""
    rates, w = line.rates, widths[:, None]
    levels = np.concatenate([np.broadcast_to(rates, (len(widths), len(rates))), rates + w], axis=1)
    end = np.minimum((line.highest / line.sizes).min() + w, 1)
    levels = np.clip(levels, (line.lowest / line.sizes).max(), end)[:, :, None]
    down = np.maximum(line.positives - levels * line.sizes, 0)
    up = np.maximum((levels - w[:, :, None]) * line.sizes - line.positives, 0)
    return np.asarray((down + up).sum(axis=2).min(axis=1))


def _edge(search: _Search, inside: float, outside: float, bar: float) -> float:
    """Return a width, towards `outside`, from which on the relaxed cost is above the bar."""
    for _ in range(6):
        grid = np.linspace(inside, outside, 33)
        above = np.flatnonzero(search.relaxed(grid) > bar)
        if not len(above):
            return outside
        inside, outside = grid[max(above[0] - 1, 0)], grid[above[0]]
    return outside
