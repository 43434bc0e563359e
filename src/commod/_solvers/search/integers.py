"""Search for a scorecard of a few whole-number points with the fewest changes.

A row changes where the total of its points is above a whole number, the threshold. The search:

1. Round the weights of a free direction at several scales.
2. Drop lines until the scorecard is short enough.
3. Move the points of one column at a time, as long as the exact number of changes falls.
4. Add lines beyond the limit, drop the least useful ones, and move points again.

Totals are whole numbers, so a histogram of them holds all that the rates need. A move shifts a part
of the histogram. Many moves are therefore compared at once, each with its best threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.annealing import SearchTask
from commod._solvers.search.offset import DIGITS, ROUNDING, exceeded
from commod._solvers.search.rates import ChangeEffects, SumInequalities

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Index = NDArray[np.intp]

MAX_POINTS = 10  # of a line, up or down
SCALES = (1.0, 1.7, 3.0, 5.0)  # standard deviations of rounded totals
STEPS = (-3, -2, -1, 1, 2, 3)  # by which a move changes points
TUNING_STEPS = (-2, -1, 1, 2)  # by which tuning changes the points of a line
N_TUNING_MOVES = 4
EXTRA_LINES = 2  # beyond the limit, before the least useful lines are dropped
N_SINGLE_LINES = 2  # scorecards of one line that a search also begins from
MAX_SWEEPS = 30  # over all columns
MAX_ROUNDS = 5  # of adding and dropping lines
MAX_NUMBERS = 1 << 20  # of the histograms that are compared together


class Rank(NamedTuple):
    """What scorecards are compared by, best first."""

    violation: float
    cost: float
    n_lines: int


class PointForm(NamedTuple):
    """What a whole-number scorecard may look like, for d terms.

    - `max_lines`: the most lines; bins in a row with equal points are one line.
    - `follows` (d,): whether a term is the bin right above the term before it.
    - `signs` (d,): 1 where points may only rise with the bins, and no category may have less than
      0 points; −1 for the reverse; 0 where points are free.
    - `is_pinned` (d,): terms that keep their points; None for none.
    """

    max_lines: int
    follows: Mask
    signs: Ints
    is_pinned: Mask | None = None


@dataclass(frozen=True)
class PointColumn:
    """The terms of one raw column: `terms` (c,) are their positions among all d terms.

    `codes` (n,) say which of the c terms a row has; c for none. The others are as in `PointForm`.
    """

    terms: Index
    codes: Index
    follows: Mask
    sign: int
    is_pinned: Mask

    def n_lines(self, points: Ints) -> Ints:
        """Return the number of lines of several sets of points (m, c), shape (m,)."""
        is_same = np.zeros(points.shape, dtype=bool)
        is_same[:, 1:] = (points[:, 1:] == points[:, :-1]) & self.follows[1:]
        return np.asarray(((points != 0) & ~is_same).sum(axis=1), dtype=np.int64)

    def is_allowed(self, points: Ints) -> Mask:
        """Return which of several sets of points (m, c) are small enough and keep the sign."""
        allowed = (np.abs(points) <= MAX_POINTS).all(axis=1)
        if self.sign:
            allowed &= (self.fitted_to_sign(points) == points).all(axis=1)
        return np.asarray(allowed)

    def fitted_to_sign(self, points: Ints) -> Ints:
        """Return the points (m, c) after the least rises that make them keep the sign."""
        if not self.sign:
            return points
        signed = self.sign * points
        if not self.follows.any():
            return self.sign * np.maximum(signed, 0)
        for t in range(1, len(self.terms)):
            if self.follows[t]:
                signed[:, t] = np.maximum(signed[:, t], signed[:, t - 1])
        return np.asarray(self.sign * signed)

    @cached_property
    def blocks(self) -> Mask:
        """Return sets of terms that move together, (m, c): single ones, intervals of bins, all."""
        c = len(self.terms)
        blocks = [*np.eye(c, dtype=bool), np.ones(c, dtype=bool)]
        for first in range(c):
            for last in range(first + 1, c):
                if not self.follows[last]:
                    break
                blocks.append((np.arange(c) >= first) & (np.arange(c) <= last))
        return np.unique(np.array(blocks), axis=0)

    def lines(self, points: Ints) -> Iterator[Mask]:
        """Yield the terms (c,) of each line."""
        first = 0
        for t in range(1, len(points) + 1):
            if t == len(points) or not self.follows[t] or points[t] != points[first]:
                if points[first]:
                    yield (np.arange(len(points)) >= first) & (np.arange(len(points)) < t)
                first = t

    def moves(self, points: Ints) -> tuple[Mask, Ints]:
        """Return moves of points (c,): the terms that move, (m, c), and by how much, (m,)."""
        n = len(self.blocks)
        shorter, by = self.shorter(points)
        blocks = np.concatenate([np.repeat(self.blocks, len(STEPS), axis=0), shorter])
        return blocks, np.concatenate([np.tile(STEPS, n), by])

    def shorter(self, points: Ints) -> tuple[Mask, Ints]:
        """Return moves that drop a line, or give a line the points of a bin beside it."""
        blocks, by = [np.zeros((0, len(points)), dtype=bool)], []
        for line in self.lines(points):
            at = np.flatnonzero(line)
            value = points[at[0]]
            others = {0}
            if self.follows[at[0]]:
                others.add(int(points[at[0] - 1]))
            if at[-1] + 1 < len(points) and self.follows[at[-1] + 1]:
                others.add(int(points[at[-1] + 1]))
            for other in sorted(others):
                blocks.append(line[None])
                by.append(other - value)
        return np.concatenate(blocks), np.array(by, dtype=np.int64)


@dataclass(frozen=True)
class IntegerTask:
    """The rows, columns and requirements of one search.

    `steps` (K + 1, n) is what changing each row adds to the K sums and, in the last row, its cost.
    """

    columns: tuple[PointColumn, ...]
    n_terms: int
    max_lines: int
    steps: Floats
    base_sums: Floats
    inequalities: SumInequalities

    @classmethod
    def of(cls, task: SearchTask, form: PointForm) -> IntegerTask:
        """Return the whole-number task of a search; rows with the same terms become one."""
        effects, rows = task.effects, np.flatnonzero(task.effects.may_change)
        codes = np.array([codes[rows] for codes in column_codes(task)])
        steps = _steps(effects, rows)
        same = _same_rows(codes)
        if same is not None:
            first, entry = same
            codes = codes[:, first]
            steps = np.array([np.bincount(entry, step, len(first)) for step in steps])
        columns = []
        for name, column in zip(np.unique(task.columns), codes, strict=True):
            terms = np.flatnonzero(task.columns == name)
            follows = form.follows[terms].copy()
            follows[0] = False
            sign = int(form.signs[terms[0]])
            pinned = np.zeros(len(terms), bool) if form.is_pinned is None else form.is_pinned[terms]
            columns.append(PointColumn(terms, column, follows, sign, pinned))
        return cls(
            tuple(columns),
            task.design.width,
            form.max_lines,
            steps,
            effects.base_sums,
            task.inequalities,
        )

    @cached_property
    def is_pinned(self) -> Mask:
        """Return which terms keep their points, (d,)."""
        pinned = np.zeros(self.n_terms, dtype=bool)
        for column in self.columns:
            pinned[column.terms] = column.is_pinned
        return pinned

    def totals(self, points: Ints) -> Ints:
        """Return the total of each row, (n,)."""
        total = np.zeros(self.steps.shape[1], dtype=np.int64)
        for column in self.columns:
            total += np.append(points[column.terms], 0)[column.codes]
        return total

    def n_lines(self, points: Ints) -> int:
        """Return the number of lines of points (d,)."""
        return sum(int(one.n_lines(points[one.terms][None])[0]) for one in self.columns)

    def ranks(self, cumulated: Floats) -> tuple[Floats, Floats]:
        """Return violation and cost at the best threshold, both (m,).

        `cumulated` (m, K + 1, R) is what is added at each of R thresholds.
        """
        m, _, n_levels = cumulated.shape
        sums = cumulated.transpose(1, 0, 2).reshape(len(self.steps), -1)
        costs = sums[-1].reshape(m, n_levels)
        soft, hard = exceeded(self.inequalities, self.base_sums[:, None] + sums[:-1])
        violation = np.where(soft <= ROUNDING, 0.0, soft).round(DIGITS)
        violation = np.where(hard <= ROUNDING, violation, np.inf).reshape(m, n_levels)
        least = violation.min(axis=1)
        costs = np.where(violation <= least[:, None], costs, np.inf)
        return least, costs.min(axis=1).round(DIGITS)


def column_codes(task: SearchTask) -> list[Index]:
    """Return for each raw column which of its terms each row has, (n,); c for none of its c."""
    design = task.design
    n_numbers = design.numeric.shape[1]
    position = np.full(n_numbers + len(design.inverse) + 1, -1)
    position[design.kept] = np.arange(design.width)
    by_column: dict[int, Index] = {}
    for lookup in design.lookups:
        for levels in lookup.levels:
            kept = position[np.where(levels < 0, len(position) - 1, levels + n_numbers)]
            if (kept < 0).all():
                continue
            name = int(task.columns[kept[kept >= 0][0]])
            terms = np.flatnonzero(task.columns == name)
            local = np.where(kept < 0, len(terms), np.searchsorted(terms, kept))
            by_column[name] = local[lookup.entry]
    return [by_column[int(name)] for name in np.unique(task.columns)]


def _steps(effects: ChangeEffects, rows: Index) -> Floats:
    return np.vstack([effects.rate_steps(rows), effects.extra[:, rows], effects.cost[rows]])


def _same_rows(codes: Index) -> tuple[Index, Index] | None:
    """Return the first row of each combination of codes (q, n), and the combination of each row.

    None where combinations are too many for one whole number.
    """
    sizes = codes.max(axis=1, initial=0) + 1
    if float(np.prod(sizes.astype(float))) > 2.0**62:
        return None
    key = np.zeros(codes.shape[1], dtype=np.int64)
    for column, size in zip(codes, sizes.tolist(), strict=True):
        key = key * size + column
    _, first, entry = np.unique(key, return_index=True, return_inverse=True)
    return first, entry


# ---------------------------------------------------------------------------------------------
# One scorecard


class RankedPoints(NamedTuple):
    """Points (c,) of one column, and the rank of the scorecard that has them."""

    rank: Rank
    column: PointColumn
    points: Ints


def _rank(move: RankedPoints) -> Rank:
    return move.rank


@dataclass(frozen=True)
class PointCard:
    """Points (d,), the totals (n,) of the rows, and the rank."""

    points: Ints
    totals: Ints
    rank: Rank

    @classmethod
    def of(cls, task: IntegerTask, points: Ints) -> PointCard:
        """Return the scorecard of points (d,)."""
        totals = task.totals(points)
        card = cls(points, totals, Rank(np.inf, np.inf, task.n_lines(points)))
        if not points.any():
            violation, cost = task.ranks(np.zeros((1, len(task.steps), 1)))
        else:
            violation, cost = task.ranks(card.cumulated(task, 1)[None])
        return replace(card, rank=card.rank._replace(violation=violation[0], cost=cost[0]))

    def _levels(self, room: int) -> tuple[Index, int]:
        top = int(self.totals.max()) + room
        return top - self.totals, top - int(self.totals.min()) + room + 1

    def cumulated(self, task: IntegerTask, room: int) -> Floats:
        """Return what rows at or above each level add, (K + 1, R), from the highest level down.

        `room` is the number of empty levels at both ends.
        """
        level, n_levels = self._levels(room)
        sums = [np.bincount(level, step, n_levels) for step in task.steps]
        return np.cumsum(np.array(sums, dtype=np.float64), axis=1)

    def cumulated_by_term(self, task: IntegerTask, column: PointColumn, room: int) -> Floats:
        """Return the same for the rows of each of the c terms of a column, (c, K + 1, R)."""
        level, n_levels = self._levels(room)
        c = len(column.terms)
        index = column.codes * n_levels + level
        sums = [np.bincount(index, step, (c + 1) * n_levels) for step in task.steps]
        by_term = np.array(sums, dtype=np.float64).reshape(len(sums), c + 1, n_levels)[:, :c]
        return np.cumsum(by_term, axis=2).transpose(1, 0, 2)

    def best_move(
        self,
        task: IntegerTask,
        column: PointColumn,
        moves: tuple[Mask, Ints],
        max_lines: int,
    ) -> RankedPoints | None:
        """Return the best of several moves of one column; None where no move keeps the form."""
        blocks, by = moves
        own = self.points[column.terms]
        moved = own + blocks * by[:, None]
        others = self.rank.n_lines - int(column.n_lines(own[None])[0])
        n_lines = others + column.n_lines(moved)
        kept = column.is_allowed(moved) & (n_lines <= max_lines) & (n_lines > 0) & (by != 0)
        kept &= ~blocks[:, column.is_pinned].any(axis=1)
        if not kept.any():
            return None
        blocks, by, moved, n_lines = blocks[kept], by[kept], moved[kept], n_lines[kept]
        room = int(np.abs(by).max())
        total = self.cumulated(task, room)
        by_term = self.cumulated_by_term(task, column, room)
        n_levels = total.shape[1]
        size = max(1, MAX_NUMBERS // total.size)
        ranks = []
        for begin in range(0, len(by), size):
            part = slice(begin, begin + size)
            rows = np.tensordot(blocks[part].astype(float), by_term, axes=1)
            level = np.clip(np.arange(n_levels) + by[part, None], 0, n_levels - 1)
            shifted = np.take_along_axis(rows, level[:, None, :], axis=2)
            ranks.append(task.ranks(total + shifted - rows))
        violation, cost = np.concatenate(ranks, axis=1)
        best = int(np.lexsort([n_lines, cost, violation])[0])
        rank = Rank(float(violation[best]), float(cost[best]), int(n_lines[best]))
        return RankedPoints(rank, column, moved[best])

    def moved(self, task: IntegerTask, move: RankedPoints) -> PointCard:
        """Return the scorecard after a move."""
        points = self.points.copy()
        points[move.column.terms] = move.points
        return PointCard(points, task.totals(points), move.rank)


# ---------------------------------------------------------------------------------------------
# The search


def descend(task: IntegerTask, card: PointCard, max_lines: int) -> PointCard:
    """Return the scorecard after moves of single columns, until none is better."""
    n_unchanged = 0
    for i in range(MAX_SWEEPS * len(task.columns)):
        column = task.columns[i % len(task.columns)]
        moves = column.moves(card.points[column.terms])
        best = card.best_move(task, column, moves, max_lines)
        n_unchanged += 1
        if best is not None and best.rank < card.rank:
            card, n_unchanged = card.moved(task, best), 0
        if n_unchanged == len(task.columns):
            break
    return card


def tune(task: IntegerTask, card: PointCard) -> PointCard:
    """Return the scorecard after a few moves of its own lines, best first.

    A search on soft cells ends near the target. Few totals lie near the threshold, so the next
    threshold on true cells may be far beyond the target. A few moves bring it back.
    """
    for _ in range(N_TUNING_MOVES):
        candidates = []
        for column in task.columns:
            lines = np.array(list(column.lines(card.points[column.terms])))
            if len(lines):
                blocks = np.repeat(lines, len(TUNING_STEPS), axis=0)
                moves = blocks, np.tile(TUNING_STEPS, len(lines))
                best = card.best_move(task, column, moves, card.rank.n_lines)
                candidates += [] if best is None else [best]
        best = min(candidates, default=None, key=_rank)
        if best is None or not best.rank < card.rank:
            break
        card = card.moved(task, best)
    return card


def prune(task: IntegerTask, card: PointCard, max_lines: int) -> PointCard:
    """Return the scorecard without its least useful lines, at most `max_lines` of them.

    Far above the limit, one line of each of several columns is dropped at once.
    """
    while (n_too_many := card.rank.n_lines - max_lines) > 0:
        candidates = []
        for column in task.columns:
            moves = column.shorter(card.points[column.terms])
            best = card.best_move(task, column, moves, card.rank.n_lines - 1)
            candidates += [] if best is None else [best]
        if not candidates:
            break
        candidates.sort(key=_rank)
        n_dropped = max(1, min(n_too_many // 4, len(candidates) // 2))
        if n_dropped == 1:
            card = card.moved(task, candidates[0])
            continue
        points = card.points.copy()
        for move in candidates[:n_dropped]:
            points[move.column.terms] = move.points
        card = PointCard.of(task, points)
    return card


def single_lines(task: IntegerTask, fixed: Ints) -> list[PointCard]:
    """Return the best scorecards of one line beside `fixed` points (d,), from different columns."""
    empty = PointCard.of(task, fixed)
    candidates = []
    for column in task.columns:
        moves = column.moves(empty.points[column.terms])
        best = empty.best_move(task, column, moves, empty.rank.n_lines + 1)
        candidates += [] if best is None else [best]
    candidates.sort(key=_rank)
    return [empty.moved(task, best) for best in candidates[:N_SINGLE_LINES]]


def rounded(task: IntegerTask, weights: Floats, scale: float) -> Ints:
    """Return free points (d,) as whole numbers whose totals have about this spread."""
    total = np.zeros(task.steps.shape[1])
    people = task.steps[-1] if task.steps[-1].sum() > 0 else None  # changes may cost nothing
    for column in task.columns:
        total += np.append(weights[column.terms], 0.0)[column.codes]
    mean = np.average(total, weights=people)
    spread = float(np.sqrt(np.average((total - mean) ** 2, weights=people)))
    points = np.zeros(task.n_terms, dtype=np.int64)
    for column in task.columns:
        own = np.rint(weights[column.terms] * scale / (spread or 1.0))
        whole = np.clip(own, -MAX_POINTS, MAX_POINTS).astype(np.int64)
        points[column.terms] = _with_fewest_lines(column, whole)
    return points


def _with_fewest_lines(column: PointColumn, points: Ints) -> Ints:
    """Return points (c,) shifted by the number that leaves the fewest lines."""
    points = column.fitted_to_sign(points[None])[0]
    shifts = sorted({0, *points.tolist()}, key=abs)
    shifted = points - np.array(shifts)[:, None]
    allowed = column.is_allowed(shifted)
    n_lines = np.where(allowed, column.n_lines(shifted), len(points) + 1)
    return np.asarray(shifted[int(np.argmin(n_lines))])


def search_integers(
    task: IntegerTask,
    weights: Sequence[Floats],
    starts: Sequence[Ints] = (),
    scales: Sequence[float] = SCALES,
    n_rounds: int = MAX_ROUNDS,
) -> PointCard:
    """Return the best scorecard found from free `weights` (d,) and from whole-number `starts`.

    `weights` are points of free directions, in any unit. Pinned terms keep the points that they
    have in `starts`, and the limit of lines is never below their number.
    """
    fixed = np.zeros(task.n_terms, dtype=np.int64)
    if starts:
        fixed[task.is_pinned] = starts[0][task.is_pinned]
        task = replace(task, max_lines=max(task.max_lines, task.n_lines(fixed)))
    points = [*starts, *(rounded(task, w, scale) for w in weights for scale in scales)]
    cards = [PointCard.of(task, one) for one in points if one.any()]
    cards = [prune(task, card, task.max_lines) for card in cards]
    if n_rounds > 1 or not cards:
        cards += single_lines(task, fixed)
    cards = [descend(task, card, task.max_lines) for card in cards]
    if not cards:
        return PointCard.of(task, fixed)
    best = min(cards, key=lambda card: card.rank)
    for _ in range(n_rounds):
        longer = descend(task, best, task.max_lines + EXTRA_LINES)
        card = descend(task, prune(task, longer, task.max_lines), task.max_lines)
        if not card.rank < best.rank:
            break
        best = card
    return best
