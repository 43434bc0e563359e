"""Measure what an audit says of counted people: fairness, changes, their limit, and groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Floats
from commod._data.disclosure import FEWEST_DESCRIBED
from commod._record.audit import (
    Audit,
    ChangeSummary,
    Fairness,
    Group,
    Limit,
    Proxy,
    Request,
    SmallGroup,
    UnknownGroups,
)
from commod._record.costs import Losses
from commod._record.explanation import Estimate
from commod._reporting.audit.people import (
    UNDEFINED,
    DecisionCounts,
    ShownPeople,
    finite_or_none,
)
from commod._reporting.audit.scores import change_areas
from commod._reporting.audit.strata import stratum_table
from commod._statistics.intervals import share_estimate
from commod._statistics.promises import (
    NO_INTERVAL,
    fairness_interval,
    sampled_interval,
    worst_interval,
)
from commod._text import label_text
from commod.bounds._general import fewest_changes
from commod.metrics._cells import worst_value
from commod.metrics._constraint import CONSTRAINTS, Constraint
from commod.metrics._fairness import mean_differences
from commod.metrics._people import Bound, is_kept

TIME_LIMIT = 1.0  # seconds for each number of fewest changes


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MeasuredAudit(Audit):
    """An audit with what its checks and sentences read, too, and what nobody else must see.

    `counted` are its people. `strongest_column` is the column that the update reads and that alone
    predicts the group best, with its area. `small_cell_areas` say how well the points of small
    categories predict each compared group, among the `n_in_small_cells` people who have such
    points. `n_contradictions` new decisions differ from score > threshold. `n_undecided` rows have
    no decision and are left out. `unread_columns` are neither numbers nor categories. `has_rows` is
    False where only counts and sums are known. None where not known.
    """

    counted: ShownPeople
    strongest_column: tuple[str, float] | None = None
    small_cell_areas: Sequence[Estimate] | None = None
    n_in_small_cells: int = 0
    n_contradictions: int | None = None
    n_undecided: int = 0
    unread_columns: tuple[str, ...] = ()
    has_rows: bool = False

    @property
    def asked(self) -> tuple[Fairness, ...]:
        """Return the metrics that the request states, the first one first."""
        return tuple(metric for metric in self.fairness if metric.asked)


# ---------------------------------------------------------------------------------------------
# Fairness


def fairness_of(counted: ShownPeople, *, only_asked: bool = False) -> tuple[Fairness, ...]:
    """Return every fairness metric of the compared groups, those of the request first.

    Intervals of the other metrics take most of the time, so they can be left out.
    """
    asked = tuple(_asked_metric(counted, i) for i in range(len(counted.stated)))
    if only_asked:
        return asked
    stated = [one.constraint for one in counted.stated]
    others = (one for one in CONSTRAINTS.values() if one not in stated)
    return (*asked, *(_metric(counted, one, *_before_and_after(counted, one)) for one in others))


def _asked_metric(counted: ShownPeople, i: int) -> Fairness:
    one = counted.stated[i]
    constraint = one.constraint
    if constraint.is_simple:
        before, after = _before_and_after(counted, constraint)
    else:
        before, after = (_worst_estimate(counted, i, after) for after in (False, True))
    return replace(
        _metric(counted, constraint, before, after),
        asked=True,
        bound=one.bound,
        is_kept=None if one.bound is None else is_kept(constraint, one.bound, after.value),
        strata=None if constraint.within is None else stratum_table(counted, i),
        is_approximate=not constraint.is_simple,
    )


def _metric(
    counted: ShownPeople, constraint: Constraint, before: Estimate, after: Estimate
) -> Fairness:
    outcome, other = outcomes_of(counted.request)
    other_before, other_after = None, None
    if constraint.is_simple and constraint.has_other_ratio and other:
        other_before, other_after = _before_and_after(counted, constraint, of_other=True)
    return Fairness(
        n=counted.compared.n,
        constraints=constraint.name,
        metric=constraint.metric,
        higher_is_fairer=constraint.higher_is_fairer,
        asked=False,
        definition=constraint.definition(outcome, other),
        before=before,
        after=after,
        outcome=outcome,
        other_outcome=other,
        other_before=other_before,
        other_after=other_after,
        title=constraint.metric_of(outcome),
    )


def outcomes_of(request: Request) -> tuple[str, str]:
    """Return the label whose rates are compared and the other one, in words.

    The other one is empty where nobody has it.
    """
    outcome = label_text(request.pos_name, request.pos_label) or "the counted outcome"
    return outcome, label_text(request.other_name, request.other_label)


def _before_and_after(
    counted: ShownPeople, constraint: Constraint, *, of_other: bool = False
) -> tuple[Estimate, Estimate]:
    """Return a simple metric before and after, of the counted label or of the other one."""
    if not counted.compared.is_comparable(constraint):
        return UNDEFINED, UNDEFINED
    estimates = []
    for after in (False, True):
        sizes, positives = counted.compared.table(constraint, after)
        positives = sizes - positives if of_other else positives
        value = constraint.value_from_counts(sizes, positives)
        ends = fairness_interval(constraint, sizes, positives, counted.level)
        known = None if value is None else float(value)
        estimates.append(Estimate(known, *map(finite_or_none, ends)))
    return estimates[0], estimates[1]


def _worst_estimate(counted: ShownPeople, i: int, after: bool) -> Estimate:
    """Return the i-th metric with an approximate interval, from simulated samples."""
    constraint, people = counted.stated[i].constraint, counted.in_cells
    if not people.n_groups:
        return UNDEFINED
    decided = counted.merged.after if after else counted.merged.before
    positives = people.counts(decided)[1].astype(np.float64).ravel()
    value = finite_or_none(worst_value(constraint, people.by_counts[i], positives))
    if value is None:
        return UNDEFINED
    rates = people.rates(decided)
    low, high = sampled_interval(
        constraint, people.by_rates[i], people.weights, rates, counted.level
    )
    # Samples look less fair than the people they come from, so these may be fairer than the
    # fairest samples: as far from the value as the least fair samples are.
    if constraint.higher_is_fairer:
        high = min(max(high, 2 * value - low, value), constraint.largest)
        low = min(low, value)
    else:
        low = max(min(low, 2 * value - high, value), 0.0)
        high = max(high, value)
    return Estimate(value, finite_or_none(low), finite_or_none(high))


def unknown_groups_of(counted: ShownPeople) -> UnknownGroups | None:
    """Return how fair the decisions could be, whatever the unknown groups are.

    The requested metric, before and after, lies in an interval.
    """
    compared, unknown, constraint = counted.compared, counted.unknown, counted.constraint
    if n := counted.n_unknown_hidden:
        return UnknownGroups(compared.n, n, None, None, None, None, False)
    if unknown is None:
        return None
    before, after = NO_INTERVAL, NO_INTERVAL
    if constraint.is_simple and compared.is_comparable(constraint):
        before, after = (
            worst_interval(
                constraint,
                *compared.table(constraint, when),
                *(table[:, 0] for table in unknown.table(constraint, when)),
                may_be_elsewhere=not counted.is_compared.all(),
            )
            for when in (False, True)
        )
    return UnknownGroups(
        n_known=compared.n,
        n_unknown=unknown.n,
        low_before=finite_or_none(before.low),
        high_before=finite_or_none(before.high),
        low_after=finite_or_none(after.low),
        high_after=finite_or_none(after.high),
        is_exact=after.is_exact,
    )


# ---------------------------------------------------------------------------------------------
# Changes and their limit


def changes_of(counted: ShownPeople) -> ChangeSummary:
    """Return how many people change, gain and lose, and how many are decided `pos_label`."""
    n = counted.everybody.n
    selected = [
        share_estimate(int(counted.everybody.by_decision(after)[..., 1].sum()), n, counted.level)
        for after in (False, True)
    ]
    gains, losses = counted.everybody.gains_and_losses(counted.people.favorable_is_positive)
    rate = share_estimate(gains + losses, n, counted.level)
    return ChangeSummary(n, gains + losses, gains, losses, rate, *selected)


def losses_of(counted: ShownPeople, value: tuple[float, float] | None) -> Losses | None:
    """Return what wrong decisions cost; `value` is that of a right and of a wrong acceptance."""
    if value is None:
        return None
    worth, cost = value
    good = int(counted.people.favorable_is_positive)
    counts = [counted.everybody.by_decision(after).sum(axis=0) for after in (False, True)]
    missed = [int(of[good, 1 - good]) for of in counts]
    wrong = [int(of[1 - good, good]) for of in counts]
    sums = [worth * m + cost * w for m, w in zip(missed, wrong, strict=True)]
    return Losses(worth, cost, *missed, *wrong, *sums)


def limit_of(counted: ShownPeople) -> Limit:
    """Return the fewest changes for the fairness that was reached, and for the target.

    A number is None where it is undefined, and where no number of changes is enough.
    """
    direction, people = counted.request.direction, counted.in_cells
    # without its own target, the first constraint asks for nothing
    asked = [one.bound for one in counted.stated]
    reached = people.reached_bounds(counted.merged.after, asked)

    def fewest(bounds: Sequence[Bound], direction: str) -> tuple[int | None, bool]:
        question: dict[str, Any] = {"time_limit": TIME_LIMIT, **allowed_moves(counted, direction)}
        known = fewest_changes(people, counted.merged.before, bounds, **question)
        return (None, True) if known is None else (int(known.lower_bound), known.is_exact)

    n_changes = sum(counted.compared.gains_and_losses(counted.people.favorable_is_positive))
    n_fewest, is_fewest = fewest(reached, direction)
    n_target, is_target = fewest(asked, direction)
    return Limit(
        direction=direction,
        n_changes=n_changes,
        n_fewest=n_fewest,
        times=n_changes / n_fewest if n_fewest else None,
        n_gains_only=fewest(reached, "gains_only")[0],
        n_target=n_target,
        n_target_gains_only=fewest(asked, "gains_only")[0],
        is_exact=is_fewest and is_target,
        n_constraints=len(counted.stated),
    )


def allowed_moves(counted: ShownPeople, direction: str) -> dict[str, bool]:
    """Return whether decisions may become positive, and whether they may become negative."""
    is_raise = (direction == "gains_only") == counted.people.favorable_is_positive
    return {
        "may_raise": direction == "any" or is_raise,
        "may_lower": direction == "any" or not is_raise,
    }


# ---------------------------------------------------------------------------------------------
# Groups


def groups_of(counted: ShownPeople) -> tuple[Group, ...]:
    """Return each group before and after, including groups too small to be compared."""
    gains_raise, names = counted.people.favorable_is_positive, counted.people.group_names
    scores = [counted.people.mean_scores(name) for name in ("scores_before", "scores_after")]
    groups = []
    for i, name in enumerate(names):
        counts, n, compared = (
            counted.counts.of_groups([i]),
            int(counted.sizes[i]),
            counted.is_compared[i],
        )
        is_described = bool(compared) or n >= FEWEST_DESCRIBED
        level = counted.level if is_described else None
        n_gains, n_losses = counts.gains_and_losses(gains_raise) if is_described else (None, None)
        before, after = (
            finite_or_none(means[0][i]) if means is not None and is_described else None
            for means in scores
        )
        has_labels = counts.has_labels and is_described
        group = Group(
            name=name,
            n=n,
            n_positive_labels=int(counts.cells[0, 1].sum()) if has_labels else None,
            compared=bool(compared),
            n_gains=n_gains,
            n_losses=n_losses,
            **_rates(counts, "before", gains_raise, level),
            **_rates(counts, "after", gains_raise, level),
            mean_score_before=before,
            mean_score_after=after,
        )
        groups.append(group)
    return with_reference(groups, scores, counted.counts.sizes)


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
    groups: Sequence[Group],
    scores: Sequence[tuple[Floats, Floats] | None],
    sizes: NDArray[np.int64],
) -> tuple[Group, ...]:
    """Return the groups with their figures beside those of the reference group.

    The reference is the compared group with the highest share of the favourable outcome before the
    update; it stays the reference after it. `scores` are means and mean squares by group, before
    and after. `sizes` (n_groups,) count the people in the means.
    """
    shares = {i: g.favorable_before.value for i, g in enumerate(groups) if g.compared}
    known = {i: share for i, share in shares.items() if share is not None}
    if not known:
        return tuple(groups)
    reference = max(known, key=lambda i: known[i])
    best, sizes = groups[reference], sizes * [group.compared for group in groups]
    before, after = (
        None if means is None else _score_gaps(*means, sizes, reference) for means in scores
    )
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


def _score_gaps(means: Floats, squares: Floats, sizes: NDArray[np.int64], reference: int) -> Floats:
    """Return the standardised mean difference of each group."""
    is_counted = sizes > 0
    mean, square = (
        np.average(values[is_counted], weights=sizes[is_counted]) for values in (means, squares)
    )
    deviation = math.sqrt(max(float(square - mean**2), 0.0))
    return mean_differences(means, reference, deviation if deviation > ROUNDING else 0.0)


def small_groups_of(groups: Sequence[Group], needed: int) -> tuple[SmallGroup, ...]:
    """Return the groups that are too small to be compared, with rates that may be shown."""
    return tuple(
        SmallGroup(g.name, g.n, needed, g.selected_before.value, g.selected_after.value)
        for g in groups
        if not g.compared
    )


def proxies_of(
    counted: ShownPeople,
    ratio_areas: Sequence[Estimate] | None = None,
    score_areas: Sequence[Estimate] | None = None,
    differences: Sequence[Estimate] | None = None,
) -> tuple[Proxy, ...]:
    """Return how well the update predicts each compared group.

    `ratio_areas` are those of −r, or of the evidence. Without them, they are those of the change
    itself. `differences` say how much better that predicts the group than the base score does.
    """
    names, by_ratio = counted.compared_names, ratio_areas is not None
    updates = ratio_areas or change_areas(counted)
    nothing = [None] * len(names)
    areas = zip(names, updates, score_areas or nothing, differences or nothing, strict=True)
    return tuple(Proxy(name, by_ratio, a, b, c) for name, a, b, c in areas)
