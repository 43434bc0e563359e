"""Solve ridge regressions from sums of squares, shorten cards, and round points.

The solution is closed and unique. A short card is the exact solution under constraints "two levels
have the same points" and "a line has no points", chosen one at a time by the least rise of the
squared error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import lsq_linear

from commod._data.arrays import Codes, Floats, Mask
from commod._evidence.sums import TermDesign
from commod._evidence.task import EvidenceTask

DIGITS = 3  # significant digits of the points
LARGEST_WHOLE = 10  # of whole-number points
NEARLY_EQUAL = 1e-6  # share by which two rises may differ through rounding alone
MAX_SINGLE_STEPS = 150  # lines from which on they are taken out one at a time
BATCH_SHARE = 0.1  # of the lines that are taken out together before


class Points(NamedTuple):
    """Points of the d terms of a table in raw units, `values` (d,), and the `intercept`."""

    values: Floats
    intercept: float


def smallest_penalty(smallest_base: float) -> float:
    """Return the ridge penalty, which is larger where a compared rate has few people.

    Examples
    --------
    >>> smallest_penalty(1000.0), smallest_penalty(50.0)
    (30.0, 200.0)
    """
    return float(np.clip(1e4 / max(smallest_base, 1.0), 30.0, 300.0))


def solve(gram: Floats, cross: Floats, alpha: float) -> Floats:
    """Return the ridge solutions (d + 1, k) of standardised terms; the intercept has no penalty."""
    return cho_solve(_factor(gram, alpha), cross)


def _factor(gram: Floats, alpha: float) -> tuple[Floats, bool]:
    penalty = np.append(1e-9 * max(gram[0, 0], 1.0), np.full(len(gram) - 1, alpha))
    return cho_factor(gram + np.diag(penalty))


def beside_pinned(gram: Floats, cross: Floats, task: EvidenceTask, design: TermDesign) -> Floats:
    """Return the cross products (d + 1,) less those of pinned points: the rest is exact then."""
    return cross - gram[:, 1:] @ (np.nan_to_num(task.pinned[design.terms]) * design.scale)


class CardLines(NamedTuple):
    """Which terms share points: `line` (d,) numbers the line of each term; −1 has no points."""

    line: Codes

    @property
    def n_lines(self) -> int:
        """Return the number of lines."""
        return int(self.line.max(initial=-1)) + 1


def n_pinned_lines(task: EvidenceTask, design: TermDesign) -> int:
    """Return how many lines the pinned points have: terms of a column with equal points are one."""
    points, column = task.pinned[design.terms], task.column[design.terms]
    is_pinned = ~np.isnan(points)
    return len(set(zip(column[is_pinned].tolist(), points[is_pinned].tolist(), strict=True)))


def all_lines(is_free: Mask) -> CardLines:
    """Return one line for each free term (d,)."""
    return CardLines(np.where(is_free, np.cumsum(is_free) - 1, -1))


def shorten(
    gram: Floats,
    cross: Floats,
    alpha: float,
    task: EvidenceTask,
    design: TermDesign,
    is_free: Mask,
    max_lines: int,
) -> CardLines:
    """Return the lines of a card of at most `max_lines`, with a small rise of the squared error.

    Each step takes out the line, or merges the two levels of a column, with the least rise. With
    V = (G + αI)⁻¹, the rise of a constraint a'b = 0 is (a'b)² / (a'Va). b and V are then updated by
    rank one, so b stays the exact ridge solution. `cross` (d + 1,) has one target.
    """
    free = np.flatnonzero(np.append(True, is_free))
    factor = _factor(gram[np.ix_(free, free)], alpha)
    unit = np.append(1 / design.scale[is_free], 0.0)  # in raw units, in which levels share points
    V = np.pad(cho_solve(factor, np.eye(len(free)))[1:, 1:], (0, 1)) * np.outer(unit, unit)
    b = np.append(cho_solve(factor, cross[free])[1:], 0.0) * unit  # the last one is "no points"
    heir, gone = _joinable(task, design.terms[is_free])
    leader = np.arange(len(unit) - 1)
    n_lines = len(leader)
    while n_lines > max_lines:
        n_steps = 1
        if n_lines > MAX_SINGLE_STEPS:
            n_steps = min(int(BATCH_SHARE * n_lines), n_lines - max_lines)
        for j, k in _cheapest(b, V, heir, gone, n_steps):
            a = V[:, k] - V[:, j]
            size = a[k] - a[j]
            if size > 0:
                b -= a * ((b[k] - b[j]) / size)
                V -= np.outer(a, a / size)
            for lines in (leader, heir, gone):
                lines[lines == k] = j
            n_lines -= 1
        heir, gone = _distinct(np.minimum(heir, gone), np.maximum(heir, gone))
    kept = np.unique(leader[leader >= 0])
    line = np.full(len(is_free), -1)
    line[is_free] = np.where(leader >= 0, np.searchsorted(kept, leader), -1)
    return CardLines(line)


def _joinable(task: EvidenceTask, terms: Codes) -> tuple[Codes, Codes]:
    """Return pairs of places among `terms` (d,) that may get equal points: `heir`, `gone` (m,).

    Each term may lose its points: then it joins the place −1. Levels of a column may join each
    other, and bins their neighbours.
    """
    d, column, is_bin = len(terms), task.column[terms], task.is_bin[terms]
    same = column[:, None] == column[None]
    is_level = task.is_level[terms]
    pairs = np.triu(same & is_level[:, None] & is_level[None], 1)
    next_bin = same.diagonal(1) & is_bin[:-1] & is_bin[1:] & (np.diff(terms) == 1)
    pairs[np.arange(len(next_bin)), np.arange(1, d)] |= next_bin
    heir, gone = np.nonzero(pairs)
    return np.append(np.full(d, -1), heir), np.append(np.arange(d), gone)


def _distinct(heir: Codes, gone: Codes) -> tuple[Codes, Codes]:
    """Return the pairs of two different places, each once, in order."""
    size = int(gone.max(initial=0)) + 1
    keys = np.unique(((heir + 1) * size + gone)[heir != gone])
    return keys // size - 1, keys % size


def _cheapest(
    b: Floats, V: Floats, heir: Codes, gone: Codes, n_steps: int
) -> list[tuple[int, int]]:
    """Return the pairs with the least rise; no place but −1 occurs twice."""
    size = V.diagonal()
    spread = size[heir] + size[gone] - 2 * V[heir, gone]
    rises = np.where(spread > 1e-300, (b[heir] - b[gone]) ** 2 / np.maximum(spread, 1e-300), 0.0)
    if n_steps == 1:
        # Rises of equal columns differ by rounding alone: the first of them is taken.
        best = int(np.argmax(rises <= rises.min() * (1 + NEARLY_EQUAL)))
        return [(int(heir[best]), int(gone[best]))]
    steps: list[tuple[int, int]] = []
    touched: set[int] = set()
    for at in np.argsort(rises, kind="stable"):
        pair = int(heir[at]), int(gone[at])
        if touched.isdisjoint(pair) and len(steps) < n_steps:
            steps.append(pair)
            touched |= set(pair) - {-1}
    return steps


def solve_lines(
    gram: Floats,
    cross: Floats,
    alpha: float,
    task: EvidenceTask,
    design: TermDesign,
    lines: CardLines,
) -> Points:
    """Return the ridge solution with the given lines, pinned points and signs.

    `cross` (d + 1,) is that of `beside_pinned`.
    """
    scale, given = design.scale, np.nan_to_num(task.pinned[design.terms])
    basis, lower, upper = _basis(task, design, lines)
    full = np.zeros((len(gram), 1 + basis.shape[1]))
    full[0, 0] = 1.0
    full[1:, 1:] = basis * scale[:, None]
    penalty = np.append(1e-9 * max(gram[0, 0], 1.0), np.full(len(gram) - 1, alpha))
    H = full.T @ (gram + np.diag(penalty)) @ full
    size = np.sqrt(np.maximum(H.diagonal(), 1e-300))
    H, right = H / np.outer(size, size), (full.T @ cross) / size
    if np.isinf(lower).all() and np.isinf(upper).all():
        solution = cho_solve(cho_factor(H), right)
    else:
        root = np.linalg.cholesky(H)
        bounds = np.append(-np.inf, lower), np.append(np.inf, upper)
        target = np.linalg.solve(root, right)
        solution = lsq_linear(root.T, target, bounds, method="bvls").x
    solution = solution / size
    values = np.zeros(task.terms.n_terms)
    values[design.terms] = basis @ solution[1:] + given
    return Points(values, float(solution[0]))


def _basis(
    task: EvidenceTask, design: TermDesign, lines: CardLines
) -> tuple[Floats, Floats, Floats]:
    """Return the terms of each coefficient, (d, m), and the lower and upper ends of these, (m,).

    A line has one coefficient. Lines of ordered bins are sums of steps, which have one sign. A line
    between two bins without points has none either, or the bins would not be in order.
    """
    sign, ordered = task.sign[design.terms], task.is_bin[design.terms]
    basis = (lines.line[:, None] == np.arange(lines.n_lines)) * 1.0
    ends = np.zeros(lines.n_lines)  # the sign of each coefficient; 0 where it is free
    is_used = np.ones(lines.n_lines, dtype=bool)
    for line in range(lines.n_lines):
        first = int(basis[:, line].argmax())
        ends[line] = 0.0 if ordered[first] else sign[first]
    for name in np.unique(task.column[design.terms][ordered & (sign != 0)]):
        bins = np.flatnonzero((task.column[design.terms] == name) & ordered)
        dropped = bins[(lines.line[bins] < 0) & np.isnan(task.pinned[design.terms[bins]])]
        of_column = list(dict.fromkeys(lines.line[bins][lines.line[bins] >= 0].tolist()))
        for place, line in enumerate(of_column):
            own = np.flatnonzero(basis[:, line])
            is_below, is_above = (dropped > own[-1]).any(), (dropped < own[0]).any()
            is_used[line] = not (is_below and is_above)
            steps = bins <= own[-1] if is_below else bins >= own[0]
            basis[bins[steps & (lines.line[bins] >= 0)], line] = 1.0
            if is_below or is_above or place:
                ends[line] = -sign[bins[0]] if is_below else sign[bins[0]]
    lower = np.where(ends > 0, 0.0, -np.inf)[is_used]
    upper = np.where(ends < 0, 0.0, np.inf)[is_used]
    return basis[:, is_used], lower, upper


def rounded(points: Points, lines: CardLines, design: TermDesign, pinned: Floats) -> Points:
    """Return points of DIGITS significant digits; terms of a line stay equal, pinned ones as given.

    The same digits on every processor: the last bits of a sum depend on it.
    """
    values = significant(points.values, DIGITS)
    for line in range(lines.n_lines):
        of_line = design.terms[lines.line == line]
        values[of_line] = (
            values[of_line[0]] if _are_equal(points.values[of_line]) else values[of_line]
        )
    values = np.where(np.isnan(pinned), values, pinned)
    return Points(values, float(significant(np.array([points.intercept]), DIGITS)[0]))


def _are_equal(values: Floats) -> bool:
    return bool(np.ptp(values) <= 1e-9 * np.abs(values).max(initial=0.0))


def unit_of_pinned(
    gram: Floats, cross: Floats, alpha: float, task: EvidenceTask, design: TermDesign
) -> float:
    """Return the unit of pinned whole numbers: with it, the squared error is least.

    1 without such points. Where they contradict the evidence, their largest one is as large as that
    of the others.
    """
    pinned = task.pinned[design.terms]
    given, is_free = np.nan_to_num(pinned), np.isnan(pinned)
    if not given.any():
        return 1.0
    beside = np.column_stack([np.eye(len(given))[:, is_free], given]) * design.scale[:, None]
    full = np.zeros((len(gram), 1 + beside.shape[1]))
    full[0, 0], full[1:, 1:] = 1.0, beside
    penalty = np.append(1e-9 * max(gram[0, 0], 1.0), np.full(len(gram) - 1, alpha))
    solved = np.linalg.solve(full.T @ (gram + np.diag(penalty)) @ full, full.T @ cross)
    unit = float(solved[-1])
    if unit <= 0:
        unit = float(np.abs(solved[1:-1]).max(initial=0.0) / np.abs(given).max())
    return unit or 1.0


def unit_of_whole(points: Points) -> float:
    """Return the unit in which the largest points are LARGEST_WHOLE."""
    return float(np.abs(points.values).max(initial=0.0)) / LARGEST_WHOLE or 1.0


def whole(points: Points, pinned: Floats, unit: float) -> Points:
    """Return whole-number points in a `unit`."""
    values = np.where(np.isnan(pinned), np.rint(points.values / unit), pinned)
    return Points(values + 0.0, float(np.rint(points.intercept / unit)))


def significant(values: Floats, digits: int) -> Floats:
    """Return numbers rounded to significant digits, as their decimal text reads.

    Examples
    --------
    >>> significant(np.array([0.0123456, -98765.0, 0.0]), 3).tolist()
    [0.0123, -98800.0, 0.0]
    """
    return np.array([float(f"{value:.{digits - 1}e}") for value in values.tolist()])
