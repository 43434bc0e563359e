"""Compute fairness, group rates, changes and the exact limit from counts of people."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.disclosure import FEWEST_DESCRIBED
from commod._record import ChangeSummary, Estimate, Fairness, Group, Limit, Request
from commod._reporting.audit.coding import Coding
from commod._reporting.audit.counts import UNDEFINED, DecisionCounts, finite_or_none
from commod._statistics.intervals import share_estimate
from commod._statistics.promises import fairness_interval
from commod.bounds._counts import fewest_number
from commod.metrics._constraint import CONSTRAINTS, Constraint


def fairness_of_all(
    counts: DecisionCounts, requested: Constraint, outcome: str, other: str, level: float
) -> tuple[Fairness, ...]:
    """Return every fairness metric of the compared groups, the requested one first.

    `outcome` names the counted decision, `other` the other one; it is empty where nobody has it.
    """
    others = [constraint for constraint in CONSTRAINTS.values() if constraint != requested]
    return tuple(
        Fairness(
            n=counts.n,
            constraints=constraint.name,
            metric=constraint.metric,
            higher_is_fairer=constraint.higher_is_fairer,
            asked=constraint == requested,
            definition=constraint.definition(outcome, other),
            before=_fairness(counts, constraint, False, level),
            after=_fairness(counts, constraint, True, level),
            outcome=outcome,
            other_outcome=other,
            other_before=_other_ratio(counts, constraint, False, other, level),
            other_after=_other_ratio(counts, constraint, True, other, level),
        )
        for constraint in (requested, *others)
    )


def _fairness(
    counts: DecisionCounts, constraint: Constraint, after: bool, level: float
) -> Estimate:
    if not counts.is_comparable(constraint):
        return UNDEFINED
    table = counts.table(constraint, after)
    value = constraint.value_from_counts(*table)
    low, high = fairness_interval(constraint, *table, level)
    return Estimate(
        None if value is None else float(value), finite_or_none(low), finite_or_none(high)
    )


def _other_ratio(
    counts: DecisionCounts, constraint: Constraint, after: bool, other: str, level: float
) -> Estimate | None:
    """Return the ratio of the rates of the other label; None for a gap, which has no such twin."""
    if not constraint.is_ratio or not other:
        return None
    if not counts.is_comparable(constraint):
        return UNDEFINED
    sizes, positives = counts.table(constraint, after)
    table = sizes, sizes - positives
    value = constraint.value_from_counts(*table)
    low, high = fairness_interval(constraint, *table, level)
    return Estimate(
        None if value is None else float(value), finite_or_none(low), finite_or_none(high)
    )


def changes_of(counts: DecisionCounts, favorable_is_positive: bool, level: float) -> ChangeSummary:
    """Return how many people change, and how many of them gain and lose."""
    n_gains, n_losses = counts.gains_and_losses(favorable_is_positive)
    n_changes = n_gains + n_losses
    rate = share_estimate(n_changes, counts.n, level)
    return ChangeSummary(counts.n, n_changes, n_gains, n_losses, rate)


# ---------------------------------------------------------------------------------------------
# Groups


def groups_of(
    counts: DecisionCounts,
    coding: Coding,
    mean_scores: tuple[NDArray[np.float64] | None, NDArray[np.float64] | None],
    sizes: NDArray[np.int64],
    is_compared: NDArray[np.bool_],
    level: float,
) -> tuple[Group, ...]:
    """Return each group before and after, including groups too small to be compared.

    `mean_scores` are before and after, each (n_groups,) or None where scores are not given.
    `sizes` (n_groups,) count hidden people, too, whom `counts` leave out.
    """
    gains_raise = coding.favorable_is_positive
    groups = []
    for i, name in enumerate(coding.group_names):
        group, compared = counts.of_groups([i]), bool(is_compared[i])
        is_described = compared or int(sizes[i]) >= FEWEST_DESCRIBED
        n_gains, n_losses = group.gains_and_losses(gains_raise) if is_described else (None, None)
        before, after = (
            None if means is None or not is_described else finite_or_none(means[i])
            for means in mean_scores
        )
        n_positive = int(group.cells[0, 1].sum()) if group.has_labels and is_described else None
        group_level = level if is_described else None
        groups.append(
            Group(
                name=name,
                n=int(sizes[i]),
                n_positive_labels=n_positive,
                compared=compared,
                n_gains=n_gains,
                n_losses=n_losses,
                **_rates(group, "before", gains_raise, group_level),
                **_rates(group, "after", gains_raise, group_level),
                mean_score_before=before,
                mean_score_after=after,
            )
        )
    return tuple(groups)


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
# The limit


def limit_of(
    counts: DecisionCounts, constraint: Constraint, request: Request, favorable_is_positive: bool
) -> Limit:
    """Return the fewest changes for the fairness that was reached, and for the target.

    `counts` are those of the compared groups.
    """
    is_comparable = counts.is_comparable(constraint)

    def fewest(target: float | Fraction | None, direction: str) -> int | None:
        if target is None or not is_comparable:
            return None
        may_raise = direction == "any" or (direction == "gains_only") == favorable_is_positive
        return fewest_number(
            constraint,
            *counts.table(constraint, after=False),
            target,
            may_raise=may_raise,
            may_lower=direction == "any" or not may_raise,
        )

    reached = None
    if is_comparable:
        reached = constraint.value_from_counts(*counts.table(constraint, after=True))
    n_changes = sum(counts.gains_and_losses(favorable_is_positive))
    n_fewest = fewest(reached, request.direction)
    return Limit(
        direction=request.direction,
        n_changes=n_changes,
        n_fewest=n_fewest,
        times=n_changes / n_fewest if n_fewest else None,
        n_gains_only=fewest(reached, "gains_only"),
        n_target=fewest(request.target, request.direction),
        n_target_gains_only=fewest(request.target, "gains_only"),
    )
