"""Compute fairness, group rates, changes and the exact limit from counts of people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.disclosure import FEWEST_DESCRIBED
from commod._record import ChangeSummary, Estimate, Fairness, Group, Limit
from commod._reporting.audit.coding import Coding
from commod._reporting.audit.counts import UNDEFINED, DecisionCounts, finite_or_none
from commod._reporting.audit.stated import StatedCells
from commod._reporting.audit.stratum_tables import stratum_table
from commod._statistics.intervals import share_estimate
from commod._statistics.promises import fairness_interval
from commod.bounds._counts import fewest_number
from commod.metrics._constraint import CONSTRAINTS, Constraint


def fairness_of_all(
    counts: DecisionCounts,
    cells: StatedCells,
    group_names: tuple[str, ...],
    outcome: str,
    other: str,
    level: float,
) -> tuple[Fairness, ...]:
    """Return every fairness metric of the compared groups, the stated ones first.

    `cells` have the stated constraints; `counts` and `group_names` are of the compared groups.
    `outcome` names the counted decision, `other` the other one; it is empty where nobody has it.
    """
    metrics = [*fairness_of_stated(counts, cells, group_names, outcome, other, level)]
    stated = [one.constraint for one in cells.stated]
    for constraint in CONSTRAINTS.values():
        if constraint not in stated:
            before, after = (_fairness(counts, constraint, a, level) for a in (False, True))
            labels = outcome, other, level
            record = _fairness_record(counts, constraint, before, after, *labels, asked=False)
            metrics.append(record)
    return tuple(metrics)


def fairness_of_stated(
    counts: DecisionCounts,
    cells: StatedCells,
    group_names: tuple[str, ...],
    outcome: str,
    other: str,
    level: float,
) -> tuple[Fairness, ...]:
    """Return the fairness metrics that the request states; parameters as in `fairness_of_all`."""
    metrics = []
    for i, one in enumerate(cells.stated):
        constraint = one.constraint
        before, after = (
            _fairness(counts, constraint, after, level)
            if constraint.is_simple
            else cells.estimate(i, after, level)
            for after in (False, True)
        )
        metrics.append(
            _fairness_record(
                counts,
                constraint,
                before,
                after,
                outcome,
                other,
                level,
                asked=True,
                bound=one.bound,
                is_kept=one.is_kept(after.value),
                strata=stratum_table(cells, i, group_names),
                is_approximate=not constraint.is_simple,
            )
        )
    return tuple(metrics)


def _fairness_record(
    counts: DecisionCounts,
    constraint: Constraint,
    before: Estimate,
    after: Estimate,
    outcome: str,
    other: str,
    level: float,
    **more: Any,
) -> Fairness:
    return Fairness(
        n=counts.n,
        constraints=constraint.name,
        metric=constraint.metric,
        higher_is_fairer=constraint.higher_is_fairer,
        definition=constraint.definition(outcome, other),
        before=before,
        after=after,
        outcome=outcome,
        other_outcome=other,
        other_before=_other_ratio(counts, constraint, False, other, level),
        other_after=_other_ratio(counts, constraint, True, other, level),
        title=constraint.metric_of(outcome),
        **more,
    )


def _fairness(
    counts: DecisionCounts, constraint: Constraint, after: bool, level: float
) -> Estimate:
    if not counts.is_comparable(constraint):
        return UNDEFINED
    return _estimate(constraint, *counts.table(constraint, after), level)


def _other_ratio(
    counts: DecisionCounts, constraint: Constraint, after: bool, other: str, level: float
) -> Estimate | None:
    """Return the P-rule of the other label; None for other metrics, which have no such twin."""
    if not (constraint.is_simple and constraint.has_other_ratio) or not other:
        return None
    if not counts.is_comparable(constraint):
        return UNDEFINED
    sizes, positives = counts.table(constraint, after)
    return _estimate(constraint, sizes, sizes - positives, level)


def _estimate(
    constraint: Constraint, sizes: NDArray[np.int64], positives: NDArray[np.int64], level: float
) -> Estimate:
    value = constraint.value_from_counts(sizes, positives)
    low, high = fairness_interval(constraint, sizes, positives, level)
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


def allowed_moves(direction: str, favorable_is_positive: bool) -> dict[str, bool]:
    """Return whether decisions may become positive, and whether they may become negative."""
    is_raise = (direction == "gains_only") == favorable_is_positive
    return {
        "may_raise": direction == "any" or is_raise,
        "may_lower": direction == "any" or not is_raise,
    }


def limit_of(
    counts: DecisionCounts,
    cells: StatedCells,
    direction: str,
    favorable_is_positive: bool,
    blind: Estimate | None,
) -> Limit:
    """Return the fewest changes for the fairness that was reached, and for the target.

    `counts` are those of the compared groups, `cells` have the stated constraints.
    """
    moves = allowed_moves(direction, favorable_is_positive)
    gains = allowed_moves("gains_only", favorable_is_positive)
    find = _simple_limit(counts, cells) if cells.is_simple else _general_limit(cells)
    n_changes = sum(counts.gains_and_losses(favorable_is_positive))
    (n_fewest, is_fewest), (n_target, is_target) = (
        find(for_target, **moves) for for_target in (False, True)
    )
    return Limit(
        direction=direction,
        n_changes=n_changes,
        n_fewest=n_fewest,
        times=n_changes / n_fewest if n_fewest else None,
        n_gains_only=find(False, **gains)[0],
        n_target=n_target,
        n_target_gains_only=find(True, **gains)[0],
        is_exact=is_fewest and is_target,
        n_constraints=len(cells.stated),
        blind=blind,
    )


Fewest = Callable[..., tuple[int | None, bool]]  # the number, and whether it is exact


def _simple_limit(counts: DecisionCounts, cells: StatedCells) -> Fewest:
    """Return a function that finds the fewest changes of one simple constraint, exactly."""
    (stated,) = cells.stated
    constraint = stated.constraint
    is_comparable = counts.is_comparable(constraint)
    reached = None
    if is_comparable:
        reached = constraint.value_from_counts(*counts.table(constraint, after=True))

    def fewest(for_target: bool, **moves: bool) -> tuple[int | None, bool]:
        target = stated.bound if for_target else reached
        if target is None or not is_comparable:
            return None, True
        table = counts.table(constraint, after=False)
        return fewest_number(constraint, *table, target, **moves), True

    return fewest


def _general_limit(cells: StatedCells) -> Fewest:
    """Return a function that finds the fewest changes, or a proven lower bound."""
    reached = cells.reached_bounds()
    stated = [one.bound for one in cells.stated]
    # without its own target, the first constraint asks for nothing that could be missed
    is_stated = stated[0] is not None

    def fewest(for_target: bool, **moves: bool) -> tuple[int | None, bool]:
        if for_target and not is_stated:
            return None, True
        bounds = stated if for_target else reached
        found = cells.fewest(bounds, **moves)
        return (None, True) if found is None else (found.lower_bound, found.is_exact)

    return fewest
