"""Measure an update on the rows outside its search sample, which are new to its direction.

People change as those of their stratum outside the sample do. So all figures follow from counts of
few strata, however many rows there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.rates import Cells
from commod.updates._cross_fit import (
    ExpectedFigures,
    expected_on,
    measure,
    outcome_at,
    spread_over,
)
from commod.updates._fit_rows import FitRows
from commod.updates._gates import KeptUpdate
from commod.updates._held_out import take_fit_rows
from commod.updates._problem import FitProblem
from commod.updates._search import SearchOutcome, changed_rows
from commod.updates._soft_cells import N_FOLDS, FoldNumbers, draw_folds

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Codes = NDArray[np.intp]

MIN_OUTSIDE_ROWS = 30  # of each stratum outside the sample that may change


@dataclass(frozen=True)
class OutsideRows:
    """The rows outside the search sample of an update: new to its direction, not to its offset.

    A row belongs to a `stratum` (n,) of cell, decision and label. The sample holds more of some
    strata than of others, so each stratum changes as its outside rows do. Five `part`s (n,) of the
    outside rows show the spread; the rows of the sample have −1.
    """

    kept: KeptUpdate
    stratum: Codes
    part: FoldNumbers

    @classmethod
    def of(cls, kept: KeptUpdate) -> OutsideRows | None:
        """Return the outside rows; None where a stratum that may change has too few of them."""
        if kept.problem.rows.probabilities is not None:
            return None  # people of one stratum differ in their probabilities
        part = draw_folds(kept.problem)
        part[kept.found.sample.index] = -1
        return cls.in_parts(kept, part)

    @classmethod
    def in_parts(cls, kept: KeptUpdate, part: FoldNumbers) -> OutsideRows | None:
        """Return the outside rows in these parts (n,); None where a stratum has too few."""
        problem, rows, may_change = kept.problem, kept.problem.rows, kept.problem.may_change
        label = np.zeros(len(rows), dtype=bool) if rows.label is None else rows.label
        stratum = (4 * (problem.cells.index + 1) + 2 * rows.base.decisions + label).astype(np.intp)
        outside = may_change & (part >= 0)
        n_people = np.bincount(stratum[may_change], rows.each[may_change])
        n_outside = np.bincount(stratum[outside], rows.each[outside], minlength=len(n_people))
        is_enough = (n_people == 0) | (n_outside >= MIN_OUTSIDE_ROWS)
        return cls(kept, stratum, part) if is_enough.all() else None

    def __len__(self) -> int:
        return self.kept.problem.rows.count(self.part >= 0)

    def figures(self, target: float) -> ExpectedFigures:
        """Return the figures for an internal target: the same direction with another offset."""
        problem, eta = self.kept.problem, self._eta
        outcome = outcome_at(problem, self.kept.outcome, target, eta)
        changed = eta + (outcome.offset - outcome.mean_total) > 0
        return self._figures(changed & problem.may_change)

    @cached_property
    def _eta(self) -> Floats:
        return self.kept.problem.terms.total(self.kept.outcome.points, 0.0)

    def figures_of(self, outcome: SearchOutcome) -> ExpectedFigures:
        """Return the figures of an update of the same sample."""
        return self._figures(changed_rows(self.kept.problem, outcome))

    def _figures(self, changed: Mask) -> ExpectedFigures:
        lines, constraint = self._lines, self.kept.problem.constraint
        counted = np.flatnonzero(changed & (self.part >= 0))
        codes = self.part[counted].astype(np.intp) * lines.n_strata + self.stratum[counted]
        each = self.kept.problem.rows.each[counted]
        n_changed = np.bincount(codes, each, minlength=lines.n_outside.size)
        n_changed = n_changed.reshape(lines.n_outside.shape)
        parts = [
            lines.decisions(one, n_rows)
            for one, n_rows in zip(n_changed, lines.n_outside, strict=True)
        ]
        measured = [measure(constraint, lines.rows, decisions) for decisions in parts]
        whole = lines.decisions(n_changed.sum(axis=0), lines.n_outside.sum(axis=0))
        _, change_rate, accuracy = measure(constraint, lines.rows, whole)
        fairness, *standing = expected_on(
            self.kept.problem.compared, lines.cells, lines.rows, whole
        )
        spread = spread_over(np.array(measured))
        return ExpectedFigures(fairness, change_rate, accuracy, spread, tuple(standing))

    @cached_property
    def _lines(self) -> StratumLines:
        return StratumLines.of(self.kept.problem, self.stratum, self.part)


@dataclass(frozen=True)
class StratumLines:
    """The people of a problem, counted: one line for the people of a stratum that may change.

    The other people of the stratum, who may not change, have a line of their own. Figures of
    people who change as their stratum does need these few lines only.

    - `rows`, `cells`: one row of data for each of m lines, which stands for all people of the line.
    - `stratum`, `may_change` (m,): those of the lines.
    - `n_outside` (n_parts, n_strata): people of each part who may change.
    """

    rows: FitRows
    cells: Cells
    stratum: Codes
    may_change: Mask
    n_outside: Floats

    @classmethod
    def of(cls, problem: FitProblem, stratum: Codes, part: FoldNumbers) -> StratumLines:
        """Return the lines of a problem whose rows have a `stratum` (n,) and a `part` (n,)."""
        rows, may_change = problem.rows, problem.may_change
        line = 2 * stratum + may_change
        one_row = np.full(int(line.max()) + 1, -1)
        one_row[line] = np.arange(len(line))
        is_used = one_row >= 0
        index = one_row[is_used]

        def total(values: Floats) -> Floats:
            return np.asarray(np.bincount(line, values)[is_used], dtype=np.float64)

        of_lines = replace(
            take_fit_rows(rows, index),
            weight=total(rows.weight),
            people=total(rows.each),
            squares=total(rows.square_weight),
            kept_groups=rows.is_large_group,  # one row of people in no cell may hide a group
        )
        n_strata = int(stratum.max()) + 1
        outside = np.flatnonzero(may_change & (part >= 0))
        codes = part[outside].astype(np.intp) * n_strata + stratum[outside]
        n_outside = np.bincount(codes, rows.each[outside], minlength=N_FOLDS * n_strata)
        return cls(
            of_lines,
            problem.cells.take(index),
            stratum[index],
            may_change[index],
            np.asarray(n_outside, dtype=np.float64).reshape(N_FOLDS, n_strata),
        )

    @property
    def n_strata(self) -> int:
        """Return how many strata there may be; some of them may have no line."""
        return self.n_outside.shape[1]

    def decisions(self, n_changed: Floats, n_rows: Floats) -> Floats:
        """Return the mean decision of each line, (m,), if its people change as others do.

        `n_changed` of `n_rows` people of a stratum change, both (n_strata,).
        """
        share = (n_changed / np.maximum(n_rows, 1))[self.stratum] * self.may_change
        return np.asarray(np.where(self.rows.base.decisions, 1 - share, share))
