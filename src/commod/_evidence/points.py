"""Solve ridge regressions from sums of squares, shorten cards, and round points.

The solution is closed and unique. A short card is the exact solution under constraints "two levels
have the same points" and "a line has no points", chosen one at a time by the least rise of the
squared error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import lsq_linear

from commod._evidence.sums import TermDesign
from commod._evidence.task import EvidenceTask

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.intp]

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
    V = cho_solve(factor, np.eye(len(free)))[1:, 1:]
    b = cho_solve(factor, cross[free])[1:]
    unit = 1 / design.scale[is_free]
    V, b = V * np.outer(unit, unit), b * unit  # in raw units, in which levels share points
    terms = design.terms[is_free]
    column = task.column[terms]
    merged = _MergedLines(terms, task.is_level[terms], task.is_bin[terms], column)
    while merged.n_lines > max_lines:
        n_steps = 1
        if merged.n_lines > MAX_SINGLE_STEPS:
            n_steps = min(int(BATCH_SHARE * merged.n_lines), merged.n_lines - max_lines)
        for j, k in merged.cheapest(b, V, max(n_steps, 1)):
            a = V[:, j].copy() if k is None else V[:, j] - V[:, k]
            size = a[j] if k is None else a[j] - a[k]
            if size > 0:
                gap = b[j] if k is None else b[j] - b[k]
                b -= a * (gap / size)
                V -= np.outer(a, a / size)
            merged.apply(j, k)
    line = np.full(len(is_free), -1)
    line[is_free] = merged.numbers()
    return CardLines(line)


class _MergedLines:
    """The lines that are left: each has a term that represents it."""

    def __init__(self, terms: Codes, is_level: Mask, is_bin: Mask, column: Codes) -> None:
        self.leader = np.arange(len(column))  # of the line of each term; −1 has no points
        same = column[:, None] == column[None]
        self.may_merge = np.triu(same & is_level[:, None] & is_level[None], 1)
        next_bin = same.diagonal(1) & is_bin[:-1] & is_bin[1:] & (np.diff(terms) == 1)
        self.may_merge[np.arange(len(next_bin)), np.arange(1, len(column))] |= next_bin

    @property
    def n_lines(self) -> int:
        return int((self.leader == np.arange(len(self.leader))).sum())

    def numbers(self) -> Codes:
        """Return the line of each term, numbered from 0; −1 for none."""
        leaders = np.unique(self.leader[self.leader >= 0])
        number = np.full(len(self.leader) + 1, -1)
        number[leaders] = np.arange(len(leaders))
        return number[self.leader]

    def cheapest(self, b: Floats, V: Floats, n_steps: int) -> list[tuple[int, int | None]]:
        """Return the steps with the least rise: (term, None) to take out, (term, term) to merge."""
        leads = self.leader == np.arange(len(self.leader))
        size = np.maximum(V.diagonal(), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            drop = np.where(leads & (size > 0), b**2 / size, np.where(leads, 0.0, np.inf))
            j, k = np.nonzero(self.may_merge)
            spread = size[j] + size[k] - 2 * V[j, k]
            rise = np.where(spread > 1e-300, (b[j] - b[k]) ** 2 / spread, 0.0)
        rises = np.concatenate([drop, rise])
        first = np.concatenate([np.arange(len(b)), j])
        second = np.concatenate([np.full(len(b), -1), k])
        if n_steps == 1:
            # Rises of equal columns differ by rounding alone: the first of them is taken.
            limit = rises.min() * (1 + NEARLY_EQUAL)
            best = int(np.flatnonzero(rises <= limit)[0])
            return [(int(first[best]), None if second[best] < 0 else int(second[best]))]
        steps: list[tuple[int, int | None]] = []
        touched: set[int] = set()
        for at in np.argsort(rises, kind="stable"):
            pair = {int(first[at])} if second[at] < 0 else {int(first[at]), int(second[at])}
            if pair & touched or not np.isfinite(rises[at]):
                continue
            touched |= pair
            steps.append((int(first[at]), None if second[at] < 0 else int(second[at])))
            if len(steps) == n_steps:
                break
        return steps

    def apply(self, j: int, k: int | None) -> None:
        """Take out the line of term j, or merge it with the line of term k."""
        if k is None:
            self.leader[self.leader == j] = -1
            self._forget(j, None)
        else:
            self.leader[self.leader == k] = j
            self._forget(k, j)

    def _forget(self, gone: int, heir: int | None) -> None:
        """Let pairs of a line that is gone be those of its heir; bins keep their neighbours."""
        partners = np.flatnonzero(self.may_merge[gone] | self.may_merge[:, gone])
        self.may_merge[gone] = self.may_merge[:, gone] = False
        if heir is None:
            return
        for other in partners:
            if other != heir:
                self.may_merge[min(heir, other), max(heir, other)] = True


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
    sign, ordered = task.sign[design.terms], task.is_ordered[design.terms]
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


def whole(points: Points, pinned: Floats, unit: float | None = None) -> Points:
    """Return whole-number points in a `unit`; None: their largest is LARGEST_WHOLE."""
    if unit is None:
        unit = float(np.abs(points.values).max(initial=0.0)) / LARGEST_WHOLE or 1.0
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
