"""Measure what an audit says from counts of people; checks and sentences are made from it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod import _record
from commod._data.arrays import Floats
from commod._data.disclosure import FEWEST_DESCRIBED
from commod._record import Estimate, Fairness, Group
from commod._reporting.audit.people import (
    UNDEFINED,
    Coding,
    DecisionCounts,
    ShownPeople,
    finite_or_none,
)
from commod._reporting.audit.request import stated_constraints
from commod._reporting.audit.scores import (
    RankedGroups,
    ScoreFigures,
    change_areas,
    quality_of,
    roc_of,
)
from commod._reporting.audit.stated import StatedCells, stratum_table
from commod._reporting.audit.subgroups import Slice, find_subgroups
from commod._statistics.intervals import share_estimate
from commod._statistics.promises import NO_INTERVAL, fairness_interval, worst_interval
from commod._text import label_text
from commod.metrics._constraint import CONSTRAINTS, Constraint
from commod.metrics._fairness import mean_differences
from commod.metrics._people import is_kept


@dataclass(frozen=True, eq=False)
class Evidence:
    """The figures of an audit.

    Every audit has the fields without a default: people and settings. The properties follow from
    them and are computed on first use. Fields with a default need scores, single rows or another
    count; the default says that they are not known.

    `method` and `settings` are those of the update. `ratio_areas` and `score_areas` say how well −r
    and the base score predict each compared group; it is the evidence instead of −r where the card
    has a rule. `area_differences` say how much better than the base score −r does, or the change
    itself where r is not known. `strongest_column` is the column that the update reads and that
    alone predicts the group best, with its area. `small_cell_areas` say how well the points of
    small categories predict each compared group, among the `n_in_small_cells` people who have such
    points. `n_undecided` rows have no decision and are left out. `has_rows` is False where only
    counts and sums are known. `ranked` are the people of each group by score and true label, None
    where one of these is not known. `expected` is what the fit expects of the same request on new
    people. `edits` are those by hand. `blind_limit` estimates the fewest changes of a rule that
    does not read the group.
    """

    shown: ShownPeople
    request: _record.Request
    rows: str
    level: float
    min_group_size: int
    min_subgroup_size: int
    method: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    scores: ScoreFigures = field(default_factory=ScoreFigures)
    n_undecided: int = 0
    has_rows: bool = False
    ratio_areas: Sequence[Estimate] | None = None
    score_areas: Sequence[Estimate] | None = None
    area_differences: Sequence[Estimate] | None = None
    small_cell_areas: Sequence[Estimate] | None = None
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
    blind_limit: Estimate | None = None

    # -- people -----------------------------------------------------------------------------------

    @property
    def coding(self) -> Coding:
        """Return the names of groups and labels."""
        return self.shown.people.coding

    @cached_property
    def counts(self) -> DecisionCounts:
        """Return the counts of the people of known groups."""
        return self.shown.people.count()

    @cached_property
    def unknown(self) -> DecisionCounts | None:
        """Return the counts of people whose group is not known: in totals, and in no group."""
        return self.shown.people.count_unknown()

    @cached_property
    def everybody(self) -> DecisionCounts:
        """Return the counts by group, and those of people whose group is not known."""
        return self.counts.with_others(self.unknown)

    @property
    def n(self) -> int:
        """Return the number of people, also of those whose group is not known."""
        return self.everybody.n

    @property
    def n_hidden(self) -> int:
        """Return the number of people of hidden groups, who are in no figure."""
        return int(self.shown.n_hidden.sum())

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Return the number of people in each group, hidden people included, shape (n_groups,)."""
        return self.counts.sizes + self.shown.n_hidden

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
    def described(self) -> DecisionCounts:
        """Return the counts of groups, compared or not, whose rates may be shown and are defined.

        Defined are the rates that the constraint compares.
        """
        is_shown = [group.selected_after.value is not None for group in self.groups]
        sizes, _ = self.counts.table(self.constraint, after=True)
        return self.counts.of_groups(np.array(is_shown) & (sizes > 0).all(axis=0))

    # -- fairness ---------------------------------------------------------------------------------

    @cached_property
    def stated(self) -> StatedCells:
        """Return the cells of all constraints of the request."""
        people = self.shown.people.merged()
        return StatedCells(stated_constraints(self.request), people, self.is_compared)

    @property
    def constraint(self) -> Constraint:
        """Return the first constraint of the request."""
        return self.stated.stated[0].constraint

    @property
    def outcome(self) -> str:
        """Return the label whose rates are compared, in words."""
        request = self.request
        return label_text(request.pos_name, request.pos_label) or "the counted outcome"

    @property
    def other_outcome(self) -> str:
        """Return the other label in words; empty where nobody has it."""
        return label_text(self.request.other_name, self.request.other_label)

    @cached_property
    def stated_metrics(self) -> tuple[Fairness, ...]:
        """Return the metrics that the request states, the first one first."""
        return tuple(self._stated_metric(i) for i in range(len(self.stated.stated)))

    @cached_property
    def fairness_metrics(self) -> tuple[Fairness, ...]:
        """Return every fairness metric of the compared groups, the stated ones first."""
        stated = [one.constraint for one in self.stated.stated]
        others = (c for c in CONSTRAINTS.values() if c not in stated)
        return (
            *self.stated_metrics,
            *(self._metric(c, *self._before_and_after(c), asked=False) for c in others),
        )

    @property
    def fairness(self) -> Fairness:
        """Return the requested fairness metric."""
        return self.stated_metrics[0]

    def _stated_metric(self, i: int) -> Fairness:
        one = self.stated.stated[i]
        if one.constraint.is_simple:
            before, after = self._before_and_after(one.constraint)
        else:
            before, after = (self.stated.estimate(i, a, self.level) for a in (False, True))
        return self._metric(
            one.constraint,
            before,
            after,
            asked=True,
            bound=one.bound,
            is_kept=None if one.bound is None else is_kept(one.constraint, one.bound, after.value),
            strata=stratum_table(self.stated, i, self.compared_names),
            is_approximate=not one.constraint.is_simple,
        )

    def _metric(
        self, constraint: Constraint, before: Estimate, after: Estimate, **more: Any
    ) -> Fairness:
        outcome, other = self.outcome, self.other_outcome
        other_before, other_after = None, None
        if constraint.is_simple and constraint.has_other_ratio and other:
            other_before, other_after = self._before_and_after(constraint, of_other=True)
        return Fairness(
            n=self.compared.n,
            constraints=constraint.name,
            metric=constraint.metric,
            higher_is_fairer=constraint.higher_is_fairer,
            definition=constraint.definition(outcome, other),
            before=before,
            after=after,
            outcome=outcome,
            other_outcome=other,
            other_before=other_before,
            other_after=other_after,
            title=constraint.metric_of(outcome),
            **more,
        )

    def _before_and_after(
        self, constraint: Constraint, *, of_other: bool = False
    ) -> tuple[Estimate, Estimate]:
        """Return a simple metric before and after, of the counted label or of the other one."""
        if not self.compared.is_comparable(constraint):
            return UNDEFINED, UNDEFINED
        estimates = []
        for after in (False, True):
            sizes, positives = self.compared.table(constraint, after)
            counted = sizes - positives if of_other else positives
            value = constraint.value_from_counts(sizes, counted)
            ends = fairness_interval(constraint, sizes, counted, self.level)
            known = None if value is None else float(value)
            estimates.append(Estimate(known, *map(finite_or_none, ends)))
        return estimates[0], estimates[1]

    @cached_property
    def unknown_groups(self) -> _record.UnknownGroups | None:
        """Return how fair the decisions could be, whatever the unknown groups are.

        The requested metric, before and after, lies in an interval.
        """
        compared, unknown = self.compared, self.unknown
        if n := self.shown.n_unknown_hidden:
            return _record.UnknownGroups(compared.n, n, None, None, None, None, False)
        if unknown is None:
            return None
        before, after = NO_INTERVAL, NO_INTERVAL
        if self.constraint.is_simple and compared.is_comparable(self.constraint):
            before, after = (
                worst_interval(
                    self.constraint,
                    *compared.table(self.constraint, when),
                    *(table[:, 0] for table in unknown.table(self.constraint, when)),
                    may_be_elsewhere=not self.is_compared.all(),
                )
                for when in (False, True)
            )
        return _record.UnknownGroups(
            n_known=compared.n,
            n_unknown=unknown.n,
            low_before=finite_or_none(before.low),
            high_before=finite_or_none(before.high),
            low_after=finite_or_none(after.low),
            high_after=finite_or_none(after.high),
            is_exact=after.is_exact,
        )

    # -- changes and their limit ------------------------------------------------------------------

    @cached_property
    def changes(self) -> _record.ChangeSummary:
        """Return how many people change, and how many of them gain and lose."""
        people = self.everybody
        n_gains, n_losses = people.gains_and_losses(self.coding.favorable_is_positive)
        rate = share_estimate(n_gains + n_losses, people.n, self.level)
        return _record.ChangeSummary(people.n, n_gains + n_losses, n_gains, n_losses, rate)

    @cached_property
    def limit(self) -> _record.Limit:
        """Return the fewest changes for the fairness that was reached, and for the target."""
        direction = self.request.direction
        n_changes = sum(self.compared.gains_and_losses(self.coding.favorable_is_positive))
        (n_fewest, is_fewest), (n_target, is_target) = (
            self._fewest(for_target, direction) for for_target in (False, True)
        )
        return _record.Limit(
            direction=direction,
            n_changes=n_changes,
            n_fewest=n_fewest,
            times=n_changes / n_fewest if n_fewest else None,
            n_gains_only=self._fewest(False, "gains_only")[0],
            n_target=n_target,
            n_target_gains_only=self._fewest(True, "gains_only")[0],
            is_exact=is_fewest and is_target,
            n_constraints=len(self.stated.stated),
            blind=self.blind_limit,
        )

    def allowed_moves(self, direction: str) -> dict[str, bool]:
        """Return whether decisions may become positive, and whether they may become negative."""
        is_raise = (direction == "gains_only") == self.coding.favorable_is_positive
        return {
            "may_raise": direction == "any" or is_raise,
            "may_lower": direction == "any" or not is_raise,
        }

    def _fewest(self, for_target: bool, direction: str) -> tuple[int | None, bool]:
        """Return the fewest changes of the compared groups, and whether the number is exact."""
        moves = self.allowed_moves(direction)
        return self.stated.fewest(for_target, **moves)

    # -- groups -----------------------------------------------------------------------------------

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """Return each group before and after, including groups too small to be compared."""
        groups = [self._group(i, name) for i, name in enumerate(self.coding.group_names)]
        return with_reference(groups, self.scores, self.counts.sizes)

    def _group(self, i: int, name: str) -> Group:
        counts, n, compared = self.counts.of_groups([i]), int(self.sizes[i]), self.is_compared[i]
        gains_raise = self.coding.favorable_is_positive
        is_described = bool(compared) or n >= FEWEST_DESCRIBED
        n_gains, n_losses = counts.gains_and_losses(gains_raise) if is_described else (None, None)
        before, after = (
            finite_or_none(means[i]) if means is not None and is_described else None
            for means in (self.scores.mean_before, self.scores.mean_after)
        )
        n_positive = int(counts.cells[0, 1].sum()) if counts.has_labels and is_described else None
        level = self.level if is_described else None
        return Group(
            name=name,
            n=n,
            n_positive_labels=n_positive,
            compared=bool(compared),
            n_gains=n_gains,
            n_losses=n_losses,
            **_rates(counts, "before", gains_raise, level),
            **_rates(counts, "after", gains_raise, level),
            mean_score_before=before,
            mean_score_after=after,
        )

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
        bases: Sequence[Estimate | None] = self.score_areas or [None] * len(names)
        more: Sequence[Estimate | None] = self.area_differences or [None] * len(names)
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


def _rates(
    counts: DecisionCounts, when: str, gains_raise: bool, level: float | None
) -> dict[str, Any]:
    """Return the rates of one group before or after, under the field names of `Group`.

    All are undefined where `level` is None; rates that need true labels are None without them.
    """

    def rate(count: Any, size: Any) -> Estimate:
        return UNDEFINED if level is None else share_estimate(count, size, level)

    n, by_decision = counts.n, counts.by_decision(when == "after")[0]  # true label, decision
    positive = int(by_decision[:, 1].sum())
    rates: dict[str, Estimate | None] = {
        "selected": rate(positive, n),
        "favorable": rate(positive if gains_raise else n - positive, n),
        "accuracy": None,
        "true_positive": None,
        "false_positive": None,
    }
    if counts.has_labels:
        rates["accuracy"] = rate(by_decision.trace(), n)
        rates["true_positive"] = rate(by_decision[1, 1], by_decision[1].sum())
        rates["false_positive"] = rate(by_decision[0, 1], by_decision[0].sum())
    return {f"{name}_{when}": estimate for name, estimate in rates.items()}


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
    means: Floats | None, squares: Floats | None, sizes: NDArray[np.int64], reference: int
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
