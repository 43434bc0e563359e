"""From checked rows to the direct solver's task and back: what ControlledDebiaser runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from commod._encoding import BinTerms, Encoding, TermTable
from commod._solvers.direct import SLACK, TIE, Bounds, Design, Limits, Rows, best_cut, worth
from commod._solvers.path import Found, Report, Task, solve, solve_path
from commod._solvers.rates import (
    Caps,
    Cells,
    change_rows,
    count_cells,
    fairness_limits,
)
from commod.bounds import fewest_changes
from commod.exceptions import InputError
from commod.updates.base import FitRows

__all__ = ["Search", "Update", "check_monotone", "eta_of"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]

SAMPLE_ROWS = 12_000  # rows on which a direction is sought; its cut is found on all of them
CELL_ROWS = 1_000  # of them at least from each cell, as far as it has so many
N_HALVINGS = 6  # of the way to a target that was not reached


@dataclass(frozen=True)
class Update:
    """A direction on the fit rows: `weights` (d,) of η = −r per standard deviation of a term.

    `shift` is what η is where every term is at its mean; a row changes where η > 0.
    """

    weights: Floats
    shift: float
    found: Found
    price: float
    violation: float


@dataclass(frozen=True)
class Search:
    """Rows, terms and requirements of one fit.

    `may_raise` and `may_lower` say in which direction a decision may change; `monotone` maps a
    column to +1 or −1.
    """

    rows: FitRows
    encoding: Encoding
    terms: TermTable
    constraints: str
    caps: Caps
    may_raise: bool
    may_lower: bool
    sparsity: float
    accuracy_weight: float
    monotone: Mapping[str, int]
    random_state: np.random.RandomState

    # -- counts ---------------------------------------------------------------------

    @cached_property
    def cells(self) -> Cells:
        """Return the cell of each row; groups that are too small are in none."""
        kept = self.rows.in_constraint & (self.rows.weight > 0)
        large, codes = np.unique(self.rows.groups.codes[kept], return_inverse=True)
        group = np.full(len(self.rows), -1, dtype=np.intp)
        group[kept] = codes
        return Cells.of(self.constraints, group, len(large), self.rows.label)

    def counts(self, decisions: Mask) -> tuple[Counts, Counts]:
        """Return sizes and positives of the cells, both of shape (lines, G)."""
        return count_cells(self.cells, decisions)

    def check_cells(self) -> None:
        """Refuse a constraint on a rate that has no rows."""
        sizes, _ = self.counts(self.rows.base.decisions)
        if sizes.all():
            return
        kept = np.unique(self.rows.groups.codes[self.rows.in_constraint])
        line, group = np.argwhere(sizes == 0)[0]
        label = self.rows.groups.labels[kept[group]]
        word = "positive" if self.constraints != "false_positive_rate_parity" else "negative"
        word = ("positive", "negative")[line] if len(sizes) == 2 else word
        raise InputError(
            f"Group {label!r} has no row whose true label is {word}, so its error rate is not "
            f"defined and constraints={self.constraints!r} cannot be measured. Merge groups, add "
            "rows, or use demographic_parity."
        )

    def limit(self, target: float, decisions: Mask, *, gains: bool | None = None) -> int | None:
        """Return the fewest changes of `decisions` that reach a target; None where none do.

        `gains` restricts the direction: True to raising only, False to lowering only.
        """
        may_raise = self.may_raise if gains is None else gains
        may_lower = self.may_lower if gains is None else not gains
        sizes, positives = self.counts(decisions)
        best = fewest_changes(
            self.constraints, sizes, positives, target, may_raise=may_raise, may_lower=may_lower
        )
        return None if best is None else int(np.abs(best - positives).sum())

    # -- the solver's view ---------------------------------------------------------------------

    @cached_property
    def free(self) -> Mask:
        """Return the rows whose decision may change at all."""
        base = self.rows.base
        allowed = np.where(base.decisions, self.may_lower, self.may_raise)
        return np.asarray(allowed & (base.scores != base.threshold) & (self.rows.weight > 0))

    def _change_rows(self, index: NDArray[np.intp] | slice, people: Floats | None = None) -> Rows:
        rows, label = self.rows, self.rows.label
        return change_rows(
            Cells(self.cells.index[index], self.cells.shape),
            rows.base.decisions[index],
            rows.weight[index],
            free=self.free[index],
            people=people,
            label=None if label is None else label[index],
            accuracy_weight=self.accuracy_weight,
            with_extra=self.caps.any(),
        )

    def limits(self, target: float, rows: Rows | None = None) -> Limits:
        """Return the target and the caps as inequalities on the sums of some rows."""
        index = self._sample if rows is None else slice(None)
        return fairness_limits(
            self.constraints,
            target,
            Cells(self.cells.index[index], self.cells.shape),
            self.task.rows if rows is None else rows,
            self.rows.weight[index],
            self.caps,
        )

    @cached_property
    def all_rows(self) -> Rows:
        """Return what changing each of the rows does."""
        return self._change_rows(slice(None))

    @property
    def _sample(self) -> NDArray[np.intp]:
        return self._drawn[0]

    @cached_property
    def _drawn(self) -> tuple[NDArray[np.intp], Floats | None]:
        """Return the rows a direction is sought on and how many people each stands for.

        All rows with weight, or of many a sample drawn within each cell and decision. Small cells
        are drawn more densely, so that their rates keep a meaning.
        """
        there = np.flatnonzero(self.rows.weight > 0)
        if len(there) <= SAMPLE_ROWS:
            return there, None
        cell, decisions = self.cells.index[there], self.rows.base.decisions[there]
        chosen, people = [], []
        for code in np.unique(cell):
            in_cell = np.flatnonzero(cell == code)
            rate = min(1.0, max(SAMPLE_ROWS / len(there), CELL_ROWS / len(in_cell)))
            for decision in (False, True):
                rows = in_cell[decisions[in_cell] == decision]
                n = int(np.ceil(rate * len(rows)))
                chosen.append(self.random_state.choice(rows, n, replace=False))
                people.append(np.full(n, 1 / rate))
        order = np.argsort(np.concatenate(chosen))
        return there[np.concatenate(chosen)[order]], np.concatenate(people)[order]

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the terms, both (d,)."""
        return self.terms.moments(self.rows.weight)

    @cached_property
    def task(self) -> Task:
        """Return the solver's task on the sample."""
        index = self._sample
        mean, scale = self.moments
        design = Design.of(self.terms.take(index), mean, scale)
        names = np.array(self.encoding.term_columns, dtype=object)[design.terms]
        position = {name: i for i, name in enumerate(dict.fromkeys(names))}
        columns = np.array([position[name] for name in names], dtype=np.intp)
        people = self._drawn[1]
        rows = self._change_rows(index, people)
        weight = self.rows.weight[index] * (1.0 if people is None else people)
        if self.accuracy_weight and self.rows.label is not None:  # first guesses mind errors, too
            errs = self.rows.base.decisions[index] == self.rows.label[index]
            weight = weight * np.where(errs, max(1 - self.accuracy_weight, 0.02), 1.0)
        bounds = self._bounds(names)
        return Task(design, columns, rows, [], weight, bounds, self.sparsity)

    def _bounds(self, names: Iterable[Any]) -> Bounds | None:
        """Return the sign each weight of η = −r may have; None where all are free."""
        if not self.monotone:
            return None
        signs = {1: (None, 0.0), -1: (0.0, None), 0: (None, None)}
        return [signs[self.monotone.get(name, 0)] for name in names]

    def _worth_changing(self, target: float) -> list[Mask]:
        """Return masks of rows in the cells that the exact limit changes, one per way to do it."""
        index = self._sample
        decisions = self.rows.base.decisions
        sizes, positives = self.counts(decisions)
        masks: list[Mask] = []
        for may_raise, may_lower in ((True, True), (True, False), (False, True)):
            if (may_raise and not self.may_raise) or (may_lower and not self.may_lower):
                continue
            best = fewest_changes(
                self.constraints,
                sizes,
                positives,
                target,
                may_raise=may_raise,
                may_lower=may_lower,
            )
            for steps in [] if best is None else _ways_to_begin(sizes, positives, best):
                wanted = self._moved(steps)[index]
                if 0 < wanted.sum() < len(wanted) and not any((wanted == m).all() for m in masks):
                    masks.append(wanted)
        return masks or [self.free[index]]

    def _moved(self, steps: Counts) -> Mask:
        """Return the rows whose cell is to gain positives and that are not, or the reverse."""
        step = np.append(steps.ravel(), 0)[self.cells.index]  # −1 points at the added zero
        decisions = self.rows.base.decisions
        return np.asarray(np.where(decisions, step < 0, step > 0) & self.free)

    # -- searching ---------------------------------------------------------------------

    def best(self, target: float) -> Update:
        """Return the update for a target, or the one that comes closest within the caps."""
        with threadpool_limits(1, "blas"):  # products this small lose time to threads
            found = self._solve(target)
            if found.direction.violation > 0:
                found = self._closest(target, found)
            return self._finish(found, target)

    def _solve(self, target: float, sparsity: float | None = None) -> Found:
        task = replace(self.task, wanted=self._worth_changing(target))
        if sparsity is not None:
            task = replace(task, sparsity=sparsity)
        return solve(task, self.limits(target))

    def _closest(self, target: float, first: Found) -> Found:
        """Return the best update short of the target, by halving the way to it."""
        near, far = self.base_value, target
        best: Found | None = None
        for _ in range(N_HALVINGS):
            middle = (near + far) / 2
            found = self._solve(middle, sparsity=0.0)
            if found.direction.violation > 0:
                far = middle
            else:
                near, best = middle, found
        if best is None:
            return first
        if self.sparsity:
            shorter = self._solve(near)
            best = shorter if shorter.direction.violation <= 0 else best
        aim = self.limits(target)
        again = best_cut(
            self.task.rows, aim, self.task.design.times(best.direction.w), best.direction.w
        )
        # the search for the target itself may have come closer
        return first if first.direction.better_than(again) else best

    @property
    def base_value(self) -> float:
        """Return the fairness of the base model; the worst there is where it is undefined."""
        value = self.rows.fairness(self.constraints, self.rows.base.decisions)
        worst = 0.0 if self.constraints == "demographic_parity" else 2.0
        return worst if np.isnan(value) else value

    def path(
        self,
        targets: Sequence[float],
        report: Report = None,
        leans: Sequence[float | None] = (None,),
    ) -> list[list[Update]]:
        """Return updates for each target, loosest first, one for each lean on the first guess."""
        middle = targets[len(targets) // 2]
        task = replace(self.task, wanted=self._worth_changing(middle))
        with threadpool_limits(1, "blas"):
            found = solve_path(task, [self.limits(t) for t in targets], report, leans)
            pairs = zip(found, targets, strict=True)
            return [[self._finish(f, target) for f in several] for several, target in pairs]

    def beyond(self, update: Update, extra: float) -> Update:
        """Return an update whose cut lies further on: that share more of the rows change.

        Past parity on the fit rows, for new rows that turn out to need more.
        """
        eta = self.eta(update)
        ordered = np.sort(eta[self.free])[::-1]
        k = int((ordered > 0).sum())
        gaps = ordered[:-1] - ordered[1:]
        cuts = 1 + np.flatnonzero(gaps > TIE * float(np.ptp(ordered))) if k else np.zeros(0)
        cuts = cuts[cuts >= np.ceil(k * (1 + extra))]
        if not len(cuts):
            return update
        last, first = ordered[cuts[0] - 1], ordered[cuts[0]]  # to change, and not to
        further = replace(update, shift=update.shift - 0.5 * float(last + first))
        return further if self._within_caps((self.eta(further) > 0) & self.free) else update

    def _within_caps(self, changed: Mask) -> bool:
        limits, rows = self.limits(1.0, self.all_rows), self.all_rows
        over = limits.matrix @ (rows.start + rows.effects @ changed) - limits.bound
        return bool((over[limits.n_soft :] <= SLACK).all())

    def eta(self, update: Update) -> Floats:
        """Return η = −r of each row before r is scaled, shape (n,); rows with η > 0 change."""
        return eta_of(update, self.terms, self.moments)

    def _finish(self, found: Found, target: float) -> Update:
        """Find the exact cut on all rows and write the direction in standardised terms."""
        mean, scale = self.moments
        seen = np.where(scale > 0, scale, 1.0)
        weights = np.zeros(self.terms.n_terms)
        weights[self.task.design.terms] = found.direction.w
        eta = self.terms.total(weights / seen, 0.0)
        limits = self.limits(target, self.all_rows)
        cut = best_cut(self.all_rows, limits, eta, weights)
        _, price = worth(self.task.design, self.task.rows, self.limits(target), found.direction)
        shift = cut.offset + float((weights / seen) @ mean)
        return Update(weights, shift, found, price, cut.violation)


def _ways_to_begin(sizes: Counts, positives: Counts, best: Counts) -> list[Counts]:
    """Return the steps to the best counts, and those of the cells that move furthest alone.

    One half-space cannot tell three groups apart: where one of several must change far more than
    the others, looking for it alone is often the better beginning.
    """
    steps = best - positives
    if steps.shape[1] == 2:
        return [steps]
    room = np.where(steps > 0, sizes - positives, positives)
    share = np.abs(steps) / np.maximum(room, 1)
    return [steps, np.where(share >= 0.5 * share.max(), steps, 0)]


def eta_of(update: Update, terms: TermTable, moments: tuple[Floats, Floats]) -> Floats:
    """Return η of any rows, from the moments of the terms on the fit rows, shape (n,)."""
    mean, scale = moments
    points = update.weights / np.where(scale > 0, scale, 1.0)
    return terms.total(points, 0.0) + (update.shift - float(points @ mean))


def check_monotone(monotone: Mapping[str, int], encoding: Encoding, names: Sequence[str]) -> None:
    """Refuse a demand on columns that X does not have, or that are cut into bins."""
    for name, sign in monotone.items():
        if name not in names:
            raise InputError(
                f"monotone names {name!r}, but X has no such column (columns: {', '.join(names)})."
            )
        if sign not in (-1, 0, 1):
            raise InputError(
                f"monotone={{{name!r}: {sign!r}}}: pass 1 where r may only rise with the column, "
                "-1 where it may only fall, 0 where it is free."
            )
        if sign and any(isinstance(c, BinTerms) and c.name == name for c in encoding.columns):
            raise InputError(
                f"monotone names {name!r}, which numeric='bins' cuts into bins. Use "
                "numeric='unit', where one sign says all, or leave the column out of monotone."
            )
