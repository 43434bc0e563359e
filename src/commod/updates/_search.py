"""From checked rows to the direct solver's task and back: what ControlledDebiaser runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from commod._data.encoding import BinTerms, Encoding, TermTable
from commod._solvers.search.design import Design
from commod._solvers.search.direct import SLACK, TIE, Limits, Rows, best_cut, worth
from commod._solvers.search.path import REFERENCE, Found, Report, Task, solve, solve_path
from commod._solvers.search.quasi_newton import Bounds
from commod._solvers.search.rates import (
    Caps,
    Cells,
    change_rows,
    count_cells,
    fairness_limits,
)
from commod.bounds import fewest_changes
from commod.exceptions import InputError
from commod.metrics._constraint import Constraint
from commod.updates._sample import (
    Compared,
    carries_over,
    draw_sample,
    evenness_of,
    path_carries_over,
    sample_sizes,
)
from commod.updates.base import FitRows

__all__ = ["Search", "Update", "check_monotone", "eta_of"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]

N_HALVINGS = 6  # of the way to a target that was not reached


@dataclass(frozen=True)
class Update:
    """A direction on the fit rows: `weights` (d,) of η = −r per standard deviation of a term.

    `shift` is what η is where every term is at its mean; a row changes where η > 0. It was sought
    on `n_sought` rows; `violation` is that on all rows, and `verified` says whether what it does
    to the rows it was sought on was compared with what it does to all of them.
    """

    weights: Floats
    shift: float
    found: Found
    price: float
    violation: float
    n_sought: int
    verified: bool = False


@dataclass(frozen=True)
class Sought:
    """Rows on which a direction is sought, and the solver's task on them.

    `index` (m,) are the rows; `people` (m,) is how many each stands for, None where that is one,
    and `weight` (m,) what these weigh together.
    """

    index: NDArray[np.intp]
    people: Floats | None
    weight: Floats
    task: Task


class Attempt(NamedTuple):
    """What was found for a target on some rows.

    `reached` is the value that is met on these rows: the target, or the closest to it.
    """

    sought: Sought
    found: Found
    reached: float


@dataclass(frozen=True)
class Search:
    """Rows, terms and requirements of one fit.

    `may_raise` and `may_lower` say in which direction a decision may change; `monotone` maps a
    column to +1 or −1. `use_all` seeks directions on all rows, however many they are.
    """

    rows: FitRows
    encoding: Encoding
    terms: TermTable
    constraint: Constraint
    caps: Caps
    may_raise: bool
    may_lower: bool
    sparsity: float
    accuracy_weight: float
    monotone: Mapping[str, int]
    use_all: bool
    random_state: np.random.RandomState

    # -- counts ---------------------------------------------------------------------

    @cached_property
    def cells(self) -> Cells:
        """Return the cell of each row; groups that are too small are in none."""
        group, n_groups = self.rows.large_groups
        return Cells.of(self.constraint, group, n_groups, self.rows.label)

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
        word = "positive" if self.constraint.rate_rows[line].label else "negative"
        raise InputError(
            f"Group {label!r} has no row whose true label is {word}, so its error rate is not "
            f"defined and constraints={self.constraint.name!r} cannot be measured. Merge groups, "
            "add rows, or use demographic_parity."
        )

    def limit(self, target: float, decisions: Mask, *, gains: bool | None = None) -> int | None:
        """Return the fewest changes of `decisions` that reach a target; None where none do.

        `gains` restricts the direction: True to raising only, False to lowering only.
        """
        may_raise = self.may_raise if gains is None else gains
        may_lower = self.may_lower if gains is None else not gains
        sizes, positives = self.counts(decisions)
        best = fewest_changes(
            self.constraint, sizes, positives, target, may_raise=may_raise, may_lower=may_lower
        )
        return None if best is None else int(np.abs(best - positives).sum())

    # -- the solver's view ---------------------------------------------------------------------

    @cached_property
    def free(self) -> Mask:
        """Return the rows whose decision may change at all."""
        base = self.rows.base
        allowed = np.where(base.decisions, self.may_lower, self.may_raise)
        return np.asarray(allowed & (base.scores != base.threshold))

    def _change_rows(
        self, index: NDArray[np.intp] | slice, weight: Floats, people: Floats | None = None
    ) -> Rows:
        rows, label = self.rows, self.rows.label
        return change_rows(
            Cells(self.cells.index[index], self.cells.shape),
            rows.base.decisions[index],
            weight,
            free=self.free[index],
            people=people,
            label=None if label is None else label[index],
            accuracy_weight=self.accuracy_weight,
            with_extra=self.caps.any(),
        )

    def limits(self, target: float, sought: Sought | None = None) -> Limits:
        """Return the target and the caps as inequalities on the sums of all rows, or of some."""
        index = slice(None) if sought is None else sought.index
        return fairness_limits(
            self.constraint,
            target,
            Cells(self.cells.index[index], self.cells.shape),
            self.all_rows if sought is None else sought.task.rows,
            self.rows.weight if sought is None else sought.weight,
            self.caps,
        )

    @cached_property
    def all_rows(self) -> Rows:
        """Return what changing each of the rows does."""
        return self._change_rows(slice(None), self.rows.weight)

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the terms, both (d,)."""
        return self.terms.moments(self.rows.weight)

    def _sizes(self, target: float) -> list[int]:
        """Return on how many rows to seek, from the fewest that may be enough."""
        fewest = self.limit(target, self.rows.base.decisions)
        shares = [None if fewest is None else fewest / len(self.rows), self.caps.changes]
        known = [share for share in shares if share is not None]
        return sample_sizes(
            len(self.rows),
            min(known, default=None),
            use_all=self.use_all,
            evenness=evenness_of(self.cells.index, self.rows.weight),
        )

    def _sought(self, size: int) -> Sought:
        """Return the solver's task on about so many rows."""
        if size >= len(self.rows):
            return self._on(np.arange(len(self.rows)), None)
        decisions = self.rows.base.decisions
        return self._on(*draw_sample(self.cells.index, decisions, size, self.random_state))

    def _on(self, index: NDArray[np.intp], people: Floats | None) -> Sought:
        mean, scale = self.moments
        whole = len(index) == len(self.rows)
        design = Design.of(self.terms if whole else self.terms.take(index), mean, scale)
        names = np.array(self.encoding.term_columns, dtype=object)[design.terms]
        position = {name: i for i, name in enumerate(dict.fromkeys(names))}
        columns = np.array([position[name] for name in names], dtype=np.intp)
        weight = self.rows.weight[index] * (1.0 if people is None else people)
        rows = self._change_rows(index, weight, people)
        guessed = weight
        if self.accuracy_weight and self.rows.label is not None:  # first guesses mind errors, too
            errs = self.rows.base.decisions[index] == self.rows.label[index]
            guessed = weight * np.where(errs, max(1 - self.accuracy_weight, 0.02), 1.0)
        bounds = self._bounds(names)
        task = Task(design, columns, rows, [], guessed, bounds, self.sparsity)
        return Sought(index, people, weight, task)

    def _bounds(self, names: Iterable[Any]) -> Bounds | None:
        """Return the sign each weight of η = −r may have; None where all are free."""
        if not self.monotone:
            return None
        signs = {1: (None, 0.0), -1: (0.0, None), 0: (None, None)}
        return [signs[self.monotone.get(name, 0)] for name in names]

    def _worth_changing(self, target: float, index: NDArray[np.intp]) -> list[Mask]:
        """Return masks of rows in the cells that the exact limit changes, one per way to do it."""
        decisions = self.rows.base.decisions
        sizes, positives = self.counts(decisions)
        masks: list[Mask] = []
        for may_raise, may_lower in ((True, True), (True, False), (False, True)):
            if (may_raise and not self.may_raise) or (may_lower and not self.may_lower):
                continue
            best = fewest_changes(
                self.constraint,
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
        """Return the update for a target, or the one that comes closest within the caps.

        What was found on a sample is verified on all rows; where it changes more of them than
        chance explains, the search goes on, from where it is, on more rows.
        """
        with threadpool_limits(1, "blas"):  # products this small lose time to threads
            _, update = next(self._lasting(target, closest=True))
            return update

    def _lasting(self, target: float, *, closest: bool) -> Iterator[tuple[Attempt, Update]]:
        """Yield what is found on samples and carries over to all rows, and on all rows at last."""
        earlier: Attempt | None = None
        for size in self._sizes(target):
            sought = self._sought(size)
            earlier = self._seek(sought, target, earlier, closest=closest)
            if sought.people is not None and self.use_all:
                continue
            update = self._finish(sought, earlier.found, target)
            if sought.people is None:
                yield earlier, update
            elif carries_over(self._compared(sought, update, target)):
                yield earlier, replace(update, verified=True)

    def _seek(
        self, sought: Sought, target: float, earlier: Attempt | None, *, closest: bool
    ) -> Attempt:
        """Return the direction for a target or, if asked for, the closest to it."""
        found = self._solve(sought, target, earlier and earlier.found)
        if found.direction.violation > 0 and closest:
            return self._closest(sought, target, found, earlier)
        return Attempt(sought, found, target)

    def _compared(self, sought: Sought, update: Update, target: float) -> Compared:
        """Return what an update does to the rows it was sought on and to all."""
        task, w = sought.task, update.found.direction.w
        eta = task.design.times(w)
        cut = best_cut(task.rows, self.limits(target, sought), eta, w)
        changed = (eta + cut.offset > 0) & task.rows.free
        on_all = (self.eta(update) > 0) & self.free
        return Compared(
            share=float(np.average(changed, weights=sought.people)),
            share_of_all=float(on_all.mean()),
            n_changed=int(changed.sum()),
            further=update.violation - cut.violation,
            progress=abs(target - self.base_value) - cut.violation,
        )

    def _solve(
        self,
        sought: Sought,
        target: float,
        earlier: Found | None = None,
        sparsity: float | None = None,
    ) -> Found:
        task = replace(sought.task, wanted=self._worth_changing(target, sought.index))
        if sparsity is not None:
            task = replace(task, sparsity=sparsity)
        return solve(task, self.limits(target, sought), earlier)

    def _closest(
        self, sought: Sought, target: float, first: Found, earlier: Attempt | None
    ) -> Attempt:
        """Return the best update short of the target: how far it can be met is found by halving.

        After a search on fewer rows that begins near where it ended.
        """
        best: Found | None = None
        near, far = self.base_value, target
        step = (far - near) / (2 if earlier is None else 16)
        goal = near + step if earlier is None else earlier.reached
        goal = target - step if goal == target else goal
        for _ in range(N_HALVINGS):
            found = self._meet(sought, goal, best, earlier)
            if found.direction.violation > 0:
                far = goal
            else:
                near, best = goal, found
            half = (far - near) / 2
            if abs(half) < abs(target - self.base_value) / 2 ** (N_HALVINGS + 1):
                break
            goal = far - min(step, half, key=abs) if best is None else near + half
            if best is not None and far == target:
                goal = near + min(step, half, key=abs)
        if best is None:
            return Attempt(sought, first, self.base_value)
        if self.sparsity:
            best = self._shorter(sought, near, best, earlier)
        again = sought.task.cut(self.limits(target, sought), best.direction.w)
        # the search for the target itself may have come closer
        return Attempt(sought, first if first.direction.better_than(again) else best, near)

    def _meet(
        self, sought: Sought, goal: float, best: Found | None, earlier: Attempt | None
    ) -> Found:
        """Return the update of all columns for a goal, from what is known or from the beginning."""
        known = best or (earlier and earlier.found)
        if known is not None:
            found = self._solve(sought, goal, known, sparsity=0.0)
            if found.direction.violation <= 0 or earlier is not None:
                return found
        return self._solve(sought, goal, sparsity=0.0)

    def _shorter(self, sought: Sought, near: float, best: Found, earlier: Attempt | None) -> Found:
        """Return a shorter scorecard for what can be reached, or for a little less."""
        for part in (1.0, 0.97):
            goal = self.base_value + part * (near - self.base_value)
            found = self._solve(sought, goal, None if earlier is None else best)
            if found.direction.violation <= 0:
                return found
        return best

    @cached_property
    def base_value(self) -> float:
        """Return the fairness of the base model; the worst there is where it is undefined."""
        value = self.rows.fairness(self.constraint, self.rows.base.decisions)
        worst = self.constraint.least_fair
        return worst if np.isnan(value) else value

    def path(
        self,
        targets: Sequence[float],
        report: Report = None,
        leans: Sequence[float | None] = (None,),
    ) -> list[list[Update]]:
        """Return updates for each target, loosest first, one for each lean on the first guess.

        On many rows all are sought on one sample, as large as makes them carry over to all rows.
        """
        middle = targets[int(REFERENCE * len(targets))]
        with threadpool_limits(1, "blas"):
            for (sought, reference, _), _ in self._lasting(middle, closest=False):
                task = replace(sought.task, wanted=self._worth_changing(middle, sought.index))
                limits = [self.limits(target, sought) for target in targets]
                found = solve_path(task, limits, reference, report, leans)
                updates = [
                    [self._finish(sought, one, target) for one in several]
                    for several, target in zip(found, targets, strict=True)
                ]
                if sought.people is None:
                    return updates
                compared = [
                    self._compared(sought, several[0], target)
                    for several, target in zip(updates, targets, strict=True)
                ]
                if path_carries_over(compared):
                    break
            return [
                [replace(first, verified=carries_over(one)), *others]
                for (first, *others), one in zip(updates, compared, strict=True)
            ]

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
        limits, rows = self.limits(1.0), self.all_rows
        over = limits.matrix @ rows.sums(changed) - limits.bound
        return bool((over[limits.n_soft :] <= SLACK).all())

    def eta(self, update: Update) -> Floats:
        """Return η = −r of each row before r is scaled, shape (n,); rows with η > 0 change."""
        return eta_of(update, self.terms, self.moments)

    def _finish(self, sought: Sought, found: Found, target: float) -> Update:
        """Find the exact cut on all rows and write the direction in standardised terms."""
        mean, scale = self.moments
        seen = np.where(scale > 0, scale, 1.0)
        weights = np.zeros(self.terms.n_terms)
        weights[sought.task.design.terms] = found.direction.w
        eta = self.terms.total(weights / seen, 0.0)
        cut = best_cut(self.all_rows, self.limits(target), eta, weights)
        limits = self.limits(target, sought)
        _, price = worth(sought.task.design, sought.task.rows, limits, found.direction)
        shift = cut.offset + float((weights / seen) @ mean)
        n_sought = len(sought.index)
        return Update(weights, shift, found, price, cut.violation, n_sought)


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
