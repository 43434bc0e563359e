"""Measure how fair decisions could be, whatever the groups of unknown people are."""

from __future__ import annotations

from commod._record import UnknownGroups
from commod._reporting.audit.counts import DecisionCounts, finite_or_none
from commod._statistics.unknown_groups import UNDEFINED, worst_interval
from commod.metrics._constraint import Constraint


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
