"""Hold everything that an audit measures; checks and sentences are made from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from commod import _record
from commod._data.arrays import Floats
from commod._record import Group, UnknownGroups
from commod._reporting.audit.counts import Coding, DecisionCounts, finite_or_none
from commod._reporting.audit.rates import changes_of, fairness_of_all, groups_of, limit_of
from commod._reporting.audit.roc import RankedGroups, roc_of
from commod._reporting.audit.scores import ScoreFigures, change_areas, quality_of
from commod._reporting.audit.stated import ConditionCounts, StatedCells, stated_constraints
from commod._reporting.audit.subgroups import Slice, find_subgroups
from commod._statistics.unknown_groups import UNDEFINED, worst_interval
from commod._text import label_text
from commod.metrics._constraint import Constraint, get_constraint
from commod.metrics._reference import mean_differences


@dataclass(frozen=True, eq=False)
class Evidence:
    """The figures of an audit.

    Every audit has the fields without a default: counts, names and settings. The properties follow
    from them and are computed on first use. Fields with a default need scores or single rows; the
    default says that they are not known.

    `ratio_areas` and `score_areas` say how well −r and the base score predict each compared group;
    it is the evidence instead of −r where the card has a rule. `area_differences` say how much
    better than the base score −r does, or the change itself where r is not known.
    `strongest_column` is the column that the update reads and that alone predicts the group best,
    with its area. `small_cell_areas` say how well the points of small categories
    predict each compared group, among the `n_in_small_cells` people who have such points.
    `n_hidden` (n_groups,) are people of hidden groups; `counts` leave them out (see
    `_data/disclosure.py`). `n_undecided` rows have no decision and are left out. `has_rows` is
    False where only counts and sums are known. `ranked` are the people of each group by score and
    true label, None where one of these is not known. `expected` is what the fit expects of the same
    request on new people. `edits` are those by hand. `conditions` counts people by the columns that
    constraints are within. `unknown` counts the people whose group is not known: they are in totals
    and in no group. Where they are too few to be described, `n_unknown_hidden` is their number, and
    no total counts them. `blind_limit` estimates the fewest changes of a rule that does not read
    the group.
    """

    coding: Coding
    counts: DecisionCounts
    request: _record.Request
    rows: str
    level: float
    min_group_size: int
    min_subgroup_size: int
    scores: ScoreFigures = field(default_factory=ScoreFigures)
    n_undecided: int = 0
    n_hidden: NDArray[np.int64] | None = None
    has_rows: bool = False
    ratio_areas: Sequence[_record.Estimate] | None = None
    score_areas: Sequence[_record.Estimate] | None = None
    area_differences: Sequence[_record.Estimate] | None = None
    small_cell_areas: Sequence[_record.Estimate] | None = None
    n_in_small_cells: int = 0
    card: _record.Card | None = None
    slices: Sequence[Slice] = ()
    segments: _record.Segments | None = None
    stability: _record.StabilitySummary | None = None
    outscoring: tuple[_record.Outscoring, ...] = ()
    ranked: RankedGroups | None = None
    unread_columns: tuple[str, ...] = ()
    reads_group: bool | None = None
    strongest_column: tuple[str, float] | None = None
    is_randomised: bool | None = None
    expected: _record.ExpectedOnNewPeople | None = None
    edits: tuple[_record.EditRecord, ...] = ()
    conditions: ConditionCounts | None = None
    unknown: DecisionCounts | None = None
    n_unknown_hidden: int = 0
    blind_limit: _record.Estimate | None = None

    @property
    def n(self) -> int:
        """Return the number of people, also of those whose group is not known."""
        return self.everybody.n

    @cached_property
    def everybody(self) -> DecisionCounts:
        """Return the counts by group, and those of people whose group is not known."""
        return self.counts.with_others(self.unknown)

    @cached_property
    def unknown_groups(self) -> _record.UnknownGroups | None:
        """Return how fair the decisions could be, whatever the unknown groups are."""
        if self.n_unknown_hidden:
            ends = (None, None, None, None)
            return _record.UnknownGroups(self.compared.n, self.n_unknown_hidden, *ends, False)
        if self.unknown is None:
            return None
        is_elsewhere = not self.is_compared.all()
        return unknown_groups_of(self.compared, self.unknown, self.constraint, is_elsewhere)

    @cached_property
    def constraint(self) -> Constraint:
        """Return the first constraint of the request."""
        return get_constraint(self.request.constraints)

    @cached_property
    def stated(self) -> StatedCells:
        """Return the cells of all constraints of the request."""
        lines = self.conditions or ConditionCounts.of_counts(self.counts)
        return StatedCells(stated_constraints(self.request), lines, self.is_compared)

    @property
    def stated_metrics(self) -> tuple[_record.Fairness, ...]:
        """Return the metrics that the request states, the first one first."""
        return self.fairness_metrics[: len(self.stated.stated)]

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Return the number of people in each group, hidden people included, shape (n_groups,)."""
        return self.counts.sizes if self.n_hidden is None else self.counts.sizes + self.n_hidden

    @cached_property
    def is_compared(self) -> NDArray[np.bool_]:
        """Return which groups are large enough to be compared, shape (n_groups,)."""
        return self.sizes >= self.min_group_size

    @cached_property
    def compared(self) -> DecisionCounts:
        """Return the counts of the compared groups."""
        return self.counts.of_groups(self.is_compared)

    @cached_property
    def compared_names(self) -> tuple[str, ...]:
        """Return the names of the compared groups."""
        return tuple(np.array(self.coding.group_names, dtype=object)[self.is_compared])

    @cached_property
    def small_groups(self) -> tuple[_record.SmallGroup, ...]:
        """Return the groups that are too small to be compared, with rates that may be shown."""
        return tuple(
            _record.SmallGroup(
                name=group.name,
                n=group.n,
                needed=self.min_group_size,
                rate_before=group.selected_before.value,
                rate_after=group.selected_after.value,
            )
            for group in self.groups
            if not group.compared
        )

    @cached_property
    def described(self) -> DecisionCounts:
        """Return the counts of groups, compared or not, whose rates may be shown and are defined.

        Defined are the rates that the constraint compares.
        """
        is_shown = [group.selected_after.value is not None for group in self.groups]
        sizes, _ = self.counts.table(self.constraint, after=True)
        return self.counts.of_groups(np.array(is_shown) & (sizes > 0).all(axis=0))

    @cached_property
    def fairness_metrics(self) -> tuple[_record.Fairness, ...]:
        """Return every fairness metric, the requested one first."""
        people = self.compared, self.stated, self.compared_names
        return fairness_of_all(*people, self.outcome, self.other_outcome, self.level)

    @property
    def outcome(self) -> str:
        """Return the label whose rates are compared, in words."""
        request = self.request
        return label_text(request.pos_name, request.pos_label) or "the counted outcome"

    @property
    def other_outcome(self) -> str:
        """Return the other label in words; empty where nobody has it."""
        return label_text(self.request.other_name, self.request.other_label)

    @property
    def fairness(self) -> _record.Fairness:
        """Return the requested fairness metric."""
        return self.fairness_metrics[0]

    @cached_property
    def changes(self) -> _record.ChangeSummary:
        """Return how many people change."""
        return changes_of(self.everybody, self.coding.favorable_is_positive, self.level)

    @cached_property
    def limit(self) -> _record.Limit:
        """Return the fewest changes that the compared groups need."""
        moves = self.request.direction, self.coding.favorable_is_positive
        return limit_of(self.compared, self.stated, *moves, self.blind_limit)

    @cached_property
    def groups(self) -> tuple[_record.Group, ...]:
        """Return every group before and after."""
        means = self.scores.mean_before, self.scores.mean_after
        groups = groups_of(
            self.counts, self.coding, means, self.sizes, self.is_compared, self.level
        )
        return with_reference(groups, self.scores, self.counts.sizes)

    @cached_property
    def quality(self) -> _record.Quality | None:
        """Return accuracy and areas under the curve; None without true labels."""
        return quality_of(self.everybody, self.scores, self.level)

    @cached_property
    def roc(self) -> _record.RocFigures | None:
        """Return the areas under and between the ROC curves of the compared groups."""
        return roc_of(self.ranked, self.groups, self.level)

    @cached_property
    def proxies(self) -> tuple[_record.Proxy, ...]:
        """Return how well the update predicts each compared group.

        The prediction is −r, the evidence, or the change itself where neither is known.
        """
        names, by_ratio = self.compared_names, self.ratio_areas is not None
        updates = self.ratio_areas or change_areas(self.counts, self.is_compared, self.level)
        bases: Sequence[_record.Estimate | None] = self.score_areas or [None] * len(names)
        more: Sequence[_record.Estimate | None] = self.area_differences or [None] * len(names)
        areas = zip(names, updates, bases, more, strict=True)
        return tuple(_record.Proxy(name, by_ratio, a, b, c) for name, a, b, c in areas)

    @cached_property
    def subgroups(self) -> _record.Subgroups:
        """Return the subgroups that fare worse than their peers, among everybody and in slices."""
        return find_subgroups(
            self.counts,
            self.coding,
            self.constraint,
            self.slices,
            self.is_compared,
            min_size=self.min_subgroup_size,
            level=self.level,
        )


# ---------------------------------------------------------------------------------------------
# Measure how fair decisions could be, whatever the groups of unknown people are


def unknown_groups_of(
    compared: DecisionCounts, unknown: DecisionCounts, constraint: Constraint, is_elsewhere: bool
) -> UnknownGroups:
    """Return the interval of the requested metric, before and after.

    `compared` counts the people of the compared groups, `unknown` those without a known group.
    `is_elsewhere` says whether these may belong to groups that are not compared.
    """
    intervals = [UNDEFINED, UNDEFINED]
    if constraint.is_simple and compared.is_comparable(constraint):
        for i, after in enumerate((False, True)):
            sizes, positives = (table[:, 0] for table in unknown.table(constraint, after))
            known = compared.table(constraint, after)
            intervals[i] = worst_interval(
                constraint, *known, sizes, positives, may_be_elsewhere=is_elsewhere
            )
    before, after_update = intervals
    return UnknownGroups(
        n_known=compared.n,
        n_unknown=unknown.n,
        low_before=finite_or_none(before.low),
        high_before=finite_or_none(before.high),
        low_after=finite_or_none(after_update.low),
        high_after=finite_or_none(after_update.high),
        is_exact=after_update.is_exact,
    )


# ---------------------------------------------------------------------------------------------
# Compare every group with a reference group: adverse impact and standardised mean difference

ROUNDING = 1e-7  # a smaller standard deviation of scores is that of equal scores


def with_reference(
    groups: Sequence[Group], scores: ScoreFigures, sizes: NDArray[np.int64]
) -> tuple[Group, ...]:
    """Return the groups with their figures beside those of the reference group.

    The reference is the compared group with the highest share of the favourable outcome before the
    update; it stays the reference after it. `sizes` (n_groups,) count the people in the means.
    """
    shares = {i: g.favorable_before.value for i, g in enumerate(groups) if g.compared}
    known = {i: share for i, share in shares.items() if share is not None}
    if not known:
        return tuple(groups)
    reference = max(known, key=lambda i: known[i])
    compared = np.array([group.compared for group in groups])
    before, after = (
        _score_gaps(means, squares, sizes * compared, reference)
        for means, squares in (
            (scores.mean_before, scores.square_before),
            (scores.mean_after, scores.square_after),
        )
    )
    best = groups[reference]
    return tuple(
        group
        if group.n_gains is None  # fewer than five people: nothing about them is shown
        else replace(
            group,
            is_reference=i == reference,
            impact_before=_ratio(group.favorable_before.value, best.favorable_before.value),
            impact_after=_ratio(group.favorable_after.value, best.favorable_after.value),
            score_gap_before=None if before is None else finite_or_none(before[i]),
            score_gap_after=None if after is None else finite_or_none(after[i]),
        )
        for i, group in enumerate(groups)
    )


def _ratio(share: float | None, reference: float | None) -> float | None:
    return share / reference if share is not None and reference else None


def _score_gaps(
    means: Floats | None,
    squares: Floats | None,
    sizes: NDArray[np.int64],
    reference: int,
) -> Floats | None:
    """Return the standardised mean difference of each group; None where scores are not known."""
    if means is None or squares is None:
        return None
    is_counted = sizes > 0
    mean, square = (
        np.average(values[is_counted], weights=sizes[is_counted]) for values in (means, squares)
    )
    deviation = math.sqrt(max(float(square - mean**2), 0.0))
    return mean_differences(means, reference, deviation if deviation > ROUNDING else 0.0)
