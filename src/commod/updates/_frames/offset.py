"""Hold an update with its counts by bins of η, and determine its exact offset on all people."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod.updates._cross_fit import Folds, with_target
from commod.updates._expectation import Expectation, expect_target, is_near_parity
from commod.updates._frames.cut import (
    EtaCounts,
    EtaQuery,
    check_rescan,
    gap_at,
    in_parts,
    problem_of_counts,
    refine,
)
from commod.updates._frames.lines import CountedProblem
from commod.updates._frames.sample import PulledRows
from commod.updates._gates import KeptUpdate
from commod.updates._new_rows import expect_as_it_is, moved_update
from commod.updates._outside_rows import OutsideRows
from commod.updates._sample import SampleComparison
from commod.updates._search import SearchOutcome, changed_rows
from commod.updates._soft_cells import draw_folds

Floats = NDArray[np.float64]

MAX_REFINEMENTS = 8


@dataclass(frozen=True)
class FrameFit:
    """An update with its offset on all people of a frame.

    - `kept`: the update and its problem on the sample; its offset is that of all people.
    - `everybody`: the problem of all people, with the rows that change.
    - `outcome`: the update in the unit of `everybody`.
    - `cut`: the counts by η; None where nothing changes.
    - `n_larger`: the rows of a larger sample that found nothing better; None without one.
    """

    kept: KeptUpdate
    everybody: CountedProblem
    outcome: SearchOutcome
    expectation: Expectation | None
    n_pulled: int
    cut: FrameCut | None
    n_larger: int | None = None


@dataclass(frozen=True)
class FrameCut:
    """Counts of all people by η, and the update with an offset on them.

    `kept` is the update on the sample. `on_all` is the same update where rows are counts.
    `held_out` are the counts of held-out people, who are in nothing else.
    """

    query: EtaQuery
    kept: KeptUpdate
    counted: CountedProblem
    counts: EtaCounts
    held_out: EtaCounts
    on_all: KeptUpdate
    factor: float

    @classmethod
    def of(
        cls,
        query: EtaQuery,
        kept: KeptUpdate,
        counted: CountedProblem,
        pulled: PulledRows,
        factor: float,
        target: float,
    ) -> FrameCut:
        """Return the counts by bins, narrow near the offset of the sample."""
        problem, outcome = kept.problem, kept.outcome
        eta = factor * problem.terms.total(outcome.points, 0.0)
        acts = problem.may_change
        cut = factor * (outcome.mean_total - outcome.offset)
        every = query.count(bin_edges(eta[acts], problem.rows.each[acts], cut))
        check_rescan(query.lines, every)
        is_held_out = query.lines.held_out[every.line]
        moves = problem.may_raise, problem.may_lower
        counts = every.take(~is_held_out)
        counts = in_parts(counts, problem_of_counts(counted, counts, moves).may_change, pulled, eta)
        everybody = problem_of_counts(counted, counts, moves)
        unit = replace(outcome, points=np.zeros(0), mean_total=0.0)
        on_all = with_target(kept._replace(problem=everybody, outcome=unit), target)
        return cls(query, kept, counted, counts, every.take(is_held_out), on_all, factor)

    @property
    def everybody(self) -> CountedProblem:
        """Return the problem of all people, without held-out ones."""
        assert isinstance(self.on_all.problem, CountedProblem)
        return self.on_all.problem

    def compare(self, target: float) -> SampleComparison:
        """Return what the update does to its sample and to all people, each with its own offset."""
        on_sample = with_target(self.kept, target)
        problem, everybody = on_sample.problem, self.on_all.problem
        changed = changed_rows(problem, on_sample.outcome)
        changed_of_all = changed_rows(everybody, self.on_all.outcome)
        violation = on_sample.outcome.violation
        return SampleComparison(
            share=problem.rows.count(changed) / problem.rows.n_people,
            share_of_all=everybody.rows.count(changed_of_all) / everybody.rows.n_people,
            n_changed=int(changed.sum()),
            distance=self.on_all.outcome.violation - violation,
            progress=abs(target - problem.base_fairness) - violation,
        )

    def violation_and_changes(self) -> tuple[float, float]:
        """Return how far all people stay from the target, and how many of them change."""
        problem, outcome = self.on_all.problem, self.on_all.outcome
        return outcome.violation, problem.rows.count(changed_rows(problem, outcome))

    def with_target(self, target: float) -> FrameCut:
        """Return the cut with the best offset between bins for a target."""
        return replace(self, on_all=with_target(self.on_all, target))

    def expect(self, update: Any, target: float, *, refine: bool = True) -> Expectation:
        """Return what is expected on new people, from the people outside the sample.

        With `refine`, the offset of an update that cannot be stricter is exact.
        """
        problem = self.on_all.problem
        is_last = update._is_budget or is_near_parity(problem.constraint, target)
        if is_last or self.on_all.outcome.violation > 0:
            cut = self.exact(target) if refine else self
            return cut._expect_as_it_is(update._target)
        outside = self._outside()
        if outside is None:
            folds = Folds(self.kept, draw_folds(self.kept.problem))
            return expect_target(folds.directions(target), problem.constraint, target)
        expectation = expect_target(outside, problem.constraint, target)
        return moved_update(self.on_all, outside, expectation, target).expectation

    def _expect_as_it_is(self, target: float) -> Expectation:
        constraint, outside = self.on_all.problem.constraint, self._outside()
        if outside is None:
            return expect_as_it_is(self.kept, target).expectation
        figures = outside.figures_of(self.on_all.outcome)
        is_reached = bool(constraint.is_met(figures.fairness, target))
        return Expectation(target, figures, is_reached, len(outside))

    def _outside(self) -> OutsideRows | None:
        """Return the people outside the sample; None where a stratum has too few of them."""
        return OutsideRows.in_parts(self.on_all, self.counts.part)

    def exact(self, target: float) -> FrameCut:
        """Return the cut with the exact offset for a target."""
        cut = self
        for _ in range(MAX_REFINEMENTS):
            on_all = with_target(cut.on_all, target)
            cut = replace(cut, on_all=on_all)
            problem = cut.everybody
            counts = refine(cut.query, problem, cut.counts, on_all.outcome.offset)
            if counts is None:
                break
            moves = problem.may_raise, problem.may_lower
            finer = problem_of_counts(self.counted, counts, moves)
            cut = replace(cut, counts=counts, on_all=on_all._replace(problem=finer))
        return replace(cut, on_all=with_target(cut.on_all, target))

    def middle_at(self, problem: CountedProblem, counts: EtaCounts, offset: float) -> float:
        """Return the η midway between who changes and who does not, with an offset of the bins."""
        below, above = gap_at(problem, counts, offset)
        above = below + 2.0 if np.isinf(above) else above
        below = above - 2.0 if np.isinf(below) else below
        return 0.5 * (below + above)

    def fitted(
        self, expectation: Expectation | None, n_pulled: int, *, is_verified: bool
    ) -> FrameFit:
        """Return the update with the offset midway between who changes and who does not."""
        problem, outcome = self.everybody, self.on_all.outcome
        middle = self.middle_at(problem, self.counts, outcome.offset)
        changed = (problem.terms.total(np.zeros(0), 0.0) > middle) & problem.may_change
        final = replace(
            self.kept.outcome,
            offset=self.kept.outcome.mean_total - middle / self.factor,
            violation=outcome.violation,
            verified=is_verified,
        )
        return FrameFit(
            self.kept._replace(outcome=final),
            replace(problem, changed=changed),
            replace(outcome, offset=-middle),
            expectation,
            n_pulled,
            self,
        )


def bin_edges(eta: Floats, people: Floats, cut: float) -> tuple[float, float, float, float]:
    """Return the outer and the inner edges of bins of η, from the rows of a sample.

    Inside are the people from half to twice as many changes as at `cut`.
    """
    order = np.argsort(-eta)
    share = np.cumsum(people[order]) / people.sum()
    at_cut = float(people[eta > cut].sum() / people.sum())
    low, high = (
        float(eta[order[min(int(np.searchsorted(share, part)), len(order) - 1)]])
        for part in (min(2 * at_cut + 0.01, 1.0), 0.5 * at_cut)
    )
    ends = float(eta.min()), float(eta.max())
    return ends[0], min(low, cut), max(high, cut), ends[1]
