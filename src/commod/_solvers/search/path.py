"""From rows and limits to the update: the fewest changes, then the shortest and steadiest of those.

The densest scorecard with the fewest changes comes first. Of the extra changes that `sparsity`
allows, a quarter may go to dropping raw columns, as much again, and more if need be, to dropping
lines until a person can read the rest, and what is left to leaning on the first guess, which fits
less of what is chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from commod._solvers.search.design import Design, unit
from commod._solvers.search.direct import Direction, Limits, Rows, anneal, best_cut, worth
from commod._solvers.search.initial_direction import first_guess
from commod._solvers.search.quasi_newton import Bounds

__all__ = ["REFERENCE", "Found", "Task", "solve", "solve_path"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

DENSE = (0.5, 0.35, 0.25, 0.18, 0.12, 0.09, 0.06, 0.04)  # temperatures of the first search
SHORT = (0.25, 0.12, 0.06)  # those of a search that begins near its end
LINES_APART = 3  # a column with at most so many lines is kept or dropped whole
FEW_COLUMNS = 6  # more than these may spend twice as much on getting fewer
READABLE = 40  # lines that still are one page
LEAST_LEAN = 0.05  # on the first guess; less makes no difference
MOST_FOR_LEAN = 1.5  # times the changes: dearer, the first guess is no good at that target
REFERENCE = 0.6  # of a path: where its columns are chosen
CHECKED = (1.0, 0.3)  # of a path: where these have to be enough, too
ENOUGH = 1.6  # times the changes of all columns: what these may cost there

Report = Callable[[int, int], None] | None


@dataclass(frozen=True)
class Task:
    """What stays the same along a path of targets.

    `columns` (d,) is the raw column of each column of the design, `wanted` holds masks (n,) of
    rows worth changing, one for each way to begin, `bounds` has one pair for each column of the
    design or is None, and `sparsity` is the share of extra changes for a shorter scorecard.
    """

    design: Design
    columns: NDArray[np.intp]
    rows: Rows
    wanted: Sequence[Mask]
    weight: Floats
    bounds: Bounds | None
    sparsity: float

    def on(self, support: Mask) -> Task:
        """Return the task with the columns of the design where `support` (d,) is true."""
        bounds = None
        if self.bounds is not None:
            bounds = [pair for pair, kept in zip(self.bounds, support, strict=True) if kept]
        design, columns = self.design.columns(support), self.columns[support]
        return replace(self, design=design, columns=columns, bounds=bounds)

    def guess(self, which: int, begin: Floats | None = None) -> Floats:
        """Return the first guess for one way to begin, shape (d,), sought from `begin` (d,)."""
        return first_guess(
            self.design, self.wanted[which], self.weight, bounds=self.bounds, begin=begin
        )

    def best_guess(self, limits: Limits, begin: Floats | None = None) -> tuple[Floats, int]:
        """Return the first guess that comes closest by itself, shape (d,), and which it is."""
        cuts = [self.cut(limits, self.guess(i, begin)) for i in range(len(self.wanted))]
        which = min(range(len(cuts)), key=lambda i: (cuts[i].violation, cuts[i].cost))
        return cuts[which].w, which

    def cut(self, limits: Limits, w: Floats) -> Direction:
        """Return a direction with its cut."""
        return best_cut(self.rows, limits, self.design.times(w), w, exact=False)

    def search(
        self,
        limits: Limits,
        starts: Sequence[Floats],
        temperatures: Sequence[float],
        n_steps: int = 25,
    ) -> Direction:
        """Return the best direction found from the best of some starts, each of shape (d,)."""
        first = min((self.cut(limits, w) for w in starts), key=lambda c: (c.violation, c.cost))
        return anneal(
            self.design,
            self.rows,
            limits,
            first.w,
            temperatures=temperatures,
            bounds=self.bounds,
            n_steps=n_steps,
        )


@dataclass(frozen=True)
class Found:
    """An update and how it was found: `direction` has d weights, zero outside `support`.

    `lean` is the weight of the first guess in it, `steps` the name, the cost and the number of
    lines after each step. A search on more rows begins from `dense` (d,), the direction of all
    columns, from `guess` (d,), the first guess that was leant on, and tries the same `supports`.
    """

    direction: Direction
    support: Mask
    lean: float
    steps: tuple[tuple[str, float, int], ...]
    dense: Floats
    guess: Floats | None = None
    supports: tuple[Mask, ...] = ()


def solve(task: Task, limits: Limits, earlier: Found | None = None) -> Found:
    """Return the update for one set of limits; the target may be missed, see its violation.

    `earlier` is what was found on fewer rows, where to begin.
    """
    everything = np.ones(task.design.width, dtype=bool)
    if earlier is None:
        guesses = [task.guess(i) for i in range(len(task.wanted))]
        directions = [task.search(limits, [guess], DENSE, n_steps=50) for guess in guesses]
        best = min(directions, key=lambda found: (found.violation, found.cost))
    else:
        best = task.search(limits, [earlier.dense], SHORT)
    found = _step(Found(best, everything, 0.0, (), best.w), best, everything, "all columns")
    if not task.sparsity or best.violation > 0 or not best.cost:
        return found
    allowed = [best.cost * (1 + task.sparsity * share) for share in (0.25, 0.5, 1.0)]
    supports = earlier.supports if earlier else ()
    supports = supports or tuple(_shorter_supports(task, limits))
    found = replace(found, supports=supports, guess=earlier.guess if earlier else None)
    found = _drop_columns(task, limits, found, supports, allowed[0])
    if (n_over := len(np.unique(task.columns[found.support])) - FEW_COLUMNS) > 0:
        n_dropped = len(np.unique(task.columns)) - FEW_COLUMNS
        found = _drop_columns(
            task, limits, found, supports[n_dropped - n_over : n_dropped], allowed[1]
        )
    for most in allowed[1:]:
        found = _drop_lines(task, limits, found, most)
    return _lean(task, limits, found, allowed[-1])


def _step(before: Found, direction: Direction, support: Mask, name: str) -> Found:
    """Return what was found next; `direction` has one weight for each column in `support`."""
    w = np.zeros(len(support))
    w[support] = direction.w
    steps = (*before.steps, (name, direction.cost, int(support.sum())))
    return replace(before, direction=replace(direction, w=w), support=support, steps=steps)


def _try(task: Task, limits: Limits, found: Found, support: Mask, allowed: float) -> Found | None:
    """Return the update on fewer columns of the design, or None where it costs too much."""
    part = task.on(support)
    w = found.direction.w[support]
    direction = part.search(limits, [w if w.any() else part.best_guess(limits)[0]], SHORT)
    if direction.violation > 0 or direction.cost > allowed:
        return None
    return _step(found, direction, support, "fewer columns")


def _drop_columns(
    task: Task, limits: Limits, found: Found, supports: Sequence[Mask], allowed: float
) -> Found:
    """Return the update on the shortest of some supports that `allowed` changes pay for.

    Supports go from long to short; what one costs is taken to grow as they get shorter.
    """
    low, high = -1, len(supports) - 1
    while low < high:
        middle = (low + high + 1) // 2
        shorter = _try(task, limits, found, supports[middle], allowed)
        if shorter is None:
            high = middle - 1
        else:
            found, low = shorter, middle
    return found


def _shorter_supports(task: Task, limits: Limits) -> list[Mask]:
    """Return supports (d,) without one raw column, without two, …, those that tell least first.

    What a column tells is judged by the first guess: it asks the rows one clear question, while
    the direction found knows how to make use of chance.
    """
    w, which = task.best_guess(limits)
    support = np.ones(task.design.width, dtype=bool)
    supports = []
    while len(names := np.unique(task.columns[support])) > 1:
        parts = [support & (task.columns == name) for name in names]
        eta = task.design.times(w)
        rest = [eta - task.design.times(np.where(part, w, 0.0)) for part in parts]
        losses = [_misordered(task.wanted[which], values) for values in rest]
        support = support & ~parts[int(np.argmin(losses))]
        w = np.zeros(len(support))
        w[support] = task.on(support).guess(which)
        supports.append(support)
    return supports


def _misordered(wanted: Mask, eta: Floats) -> float:
    """Return the share of pairs of a wanted and another row that `eta` puts in the wrong order."""
    ranks = rankdata(eta, method="ordinal")
    n, m = float(wanted.sum()), float((~wanted).sum())
    return 1 - float(ranks[wanted].sum() - n * (n + 1) / 2) / max(n * m, 1.0)


def _drop_lines(task: Task, limits: Limits, found: Found, allowed: float) -> Found:
    """Drop lines of columns with many until a person can read the rest, several at once."""
    share = 0.4
    while (n_over := int(found.support.sum()) - READABLE) > 0:
        _, column, sizes = np.unique(
            task.columns[found.support], return_inverse=True, return_counts=True
        )
        lines = np.flatnonzero(found.support)[(sizes > LINES_APART)[column]]
        n_dropped = min(int(share * len(lines)), n_over)
        if not n_dropped:
            break
        weakest = np.argsort(_needs(task, limits, found)[lines], kind="stable")[:n_dropped]
        support = found.support.copy()
        support[lines[weakest]] = False
        shorter = _try(task, limits, found, support, allowed)
        if shorter is not None:
            found = replace(shorter, steps=(*found.steps, ("fewer lines", *shorter.steps[-1][1:])))
        else:
            share /= 2
    return found


def _needs(task: Task, limits: Limits, found: Found) -> Floats:
    """Return what is lost when the weight of each category is zero and the cut stays, (d,)."""
    direction = found.direction
    value, _ = worth(task.design, task.rows, limits, direction)
    eta = task.design.times(direction.w) + direction.offset
    return task.design.gain_without(direction.w, eta, value * task.rows.free)


def _lean(task: Task, limits: Limits, found: Found, allowed: float) -> Found:
    """Lean on the first guess as far as the changes stay within `allowed`."""
    part = task.on(found.support)
    begin = None if found.guess is None else found.guess[found.support]
    guess, _ = part.best_guess(limits, begin)
    whole = np.zeros(len(found.support))
    whole[found.support] = guess
    found = replace(found, guess=whole)
    for lean in np.linspace(1.0, LEAST_LEAN, 20):
        direction = _leaning(part, limits, found.direction.w[found.support], guess, float(lean))
        if direction.violation <= 0 and direction.cost <= allowed:
            return replace(_step(found, direction, found.support, "steadier"), lean=float(lean))
    return found


def _leaning(part: Task, limits: Limits, w: Floats, guess: Floats, lean: float) -> Direction:
    return part.cut(limits, (1 - lean) * unit(part.design, w) + lean * guess)


def solve_path(
    task: Task,
    limits: Sequence[Limits],
    reference: Found,
    report: Report = None,
    leans: Sequence[float | None] = (None,),
) -> list[list[Found]]:
    """Return updates for several limits, from the loosest to the tightest: one for each lean.

    `reference` is what `solve` found at the limits REFERENCE of the way. Its columns are shared, so
    that the updates can be compared line by line, with more where these are not enough; each
    begins from its neighbour. A lean of None is the reference's own, 1 the first guess itself, on
    all columns.
    """
    support, known = _shared_support(task, limits, reference)
    part = task.on(support)
    guess, which = part.best_guess(limits[int(REFERENCE * len(limits))])
    steadiest = task.guess(which)
    begins = [guess, *(w[support] for w in known)]
    directions = _follow(part, limits, begins, report)
    path: list[list[Found]] = []
    for limit, direction in zip(limits, directions, strict=True):
        free = _step(replace(reference, steps=()), direction, support, "on the path")
        steady = _guessed(task, limit, reference, steadiest)
        use_steady = steady.direction.violation <= direction.violation
        several = []
        for lean in leans:
            if lean is None:
                several.append(_steadier(part, limit, free, guess, reference.lean))
            elif lean == 1.0 and use_steady:
                several.append(steady)
            else:
                several.append(_leant(part, limit, free, guess, lean))
        path.append(several)
    return path


def _shared_support(
    task: Task, limits: Sequence[Limits], reference: Found
) -> tuple[Mask, list[Floats]]:
    """Return the columns (d,) for a path, and directions (d,) that are known to be good.

    The reference's; further ones where these cost far more than all columns would.
    """
    support, known = reference.support, [reference.direction.w]
    for position in CHECKED if task.sparsity else ():
        limit = limits[int(position * (len(limits) - 1))]
        dense = task.search(limit, [reference.dense], SHORT)
        if dense.violation > 0 or not dense.cost:
            continue
        starts = [w[support] for w in (dense.w, known[0])]
        few = task.on(support).search(limit, starts, SHORT)
        if few.violation > 0 or few.cost > ENOUGH * dense.cost:
            more = solve(task, limit, replace(reference, dense=dense.w))
            support = support | more.support
            known.append(more.direction.w)
    return support, known


def _follow(
    part: Task, limits: Sequence[Limits], begins: Sequence[Floats], report: Report
) -> list[Direction]:
    """Return a direction for each of several limits, each sought from its neighbour's.

    And from one of `begins`, where that is better to begin with than what the neighbour leads to.
    """
    found: list[Direction] = []
    w = begins[-1]
    for i, limit in enumerate(limits):
        direction = part.search(limit, [w], SHORT)
        others = [part.cut(limit, begin) for begin in begins]
        if (other := min(others, key=_rank)).better_than(direction):
            again = part.search(limit, [other.w], SHORT)
            direction = min(direction, again, key=_rank)
        found.append(direction)
        w = direction.w
        if report is not None:
            report(i + 1, len(limits))
    for i in reversed(range(len(limits) - 1)):  # what is enough for more is enough for less
        stricter = part.cut(limits[i], found[i + 1].w)
        if stricter.better_than(found[i]):
            found[i] = stricter
    return found


def _rank(direction: Direction) -> tuple[float, float]:
    return direction.violation, direction.cost


def _leant(part: Task, limits: Limits, free: Found, guess: Floats, lean: float) -> Found:
    """Return an update leaning on the first guess, or as it was where that misses the target."""
    leaning = _leaning(part, limits, free.direction.w[free.support], guess, lean)
    if leaning.violation > free.direction.violation:
        return replace(free, lean=0.0)
    return replace(_step(free, leaning, free.support, "steadier"), lean=lean)


def _steadier(part: Task, limits: Limits, free: Found, guess: Floats, lean: float) -> Found:
    """Return an update leaning on the first guess, less where that costs far more changes.

    That may be more than `sparsity` allows at the reference, for it pays on new rows.
    """
    most = free.direction.cost * max(MOST_FOR_LEAN, 1 + part.sparsity)
    while lean >= LEAST_LEAN:
        leant = _leant(part, limits, free, guess, lean)
        if leant.direction.cost <= most:
            return leant
        lean /= 2
    return replace(free, lean=0.0)


def _guessed(task: Task, limits: Limits, model: Found, guess: Floats) -> Found:
    """Return the first guess on all columns with its exact cut."""
    support = np.ones(task.design.width, dtype=bool)
    found = _step(replace(model, steps=()), task.cut(limits, guess), support, "first guess")
    return replace(found, lean=1.0)
