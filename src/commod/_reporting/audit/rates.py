"""Fairness, groups, changes and the exact limit, from counts of people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._record import ChangeSummary, Estimate, Fairness, Group, Limit, Request
from commod._reporting.audit.coding import Coding
from commod._reporting.audit.counts import Counts, number, share
from commod._statistics.promises import fairness_interval
from commod._text import label_text
from commod.bounds import exact_fairness
from commod.bounds._counts import fewest_number
from commod.metrics._constraint import CONSTRAINTS, get_constraint

__all__ = ["changes_of", "fairness_of_all", "groups_of", "limit_of"]

NOTHING = Estimate(None, None, None)
SMALLEST_TOLD = 5  # people, in a group that is not compared anyway


def fairness_of_all(counts: Counts, request: Request, level: float) -> tuple[Fairness, ...]:
    """Return every fairness metric of the compared groups, the one that was asked for first."""
    asked = request.constraints
    others = [name for name in CONSTRAINTS if name != asked]
    outcome = label_text(request.pos_name, request.pos_label) or "the counted outcome"
    return tuple(
        Fairness(
            n=counts.n,
            constraints=name,
            metric=get_constraint(name).metric,
            higher_is_fairer=get_constraint(name).higher_is_fairer,
            asked=name == asked,
            before=_fairness(counts, name, False, level),
            after=_fairness(counts, name, True, level),
            definition=get_constraint(name).definition(outcome),
        )
        for name in (asked, *others)
    )


def _is_defined(counts: Counts, constraints: str) -> bool:
    """Return whether there are two groups, and people in every cell that is compared."""
    if get_constraint(constraints).needs_labels and not counts.has_labels:
        return False
    sizes, _ = counts.table(constraints, after=False)
    return sizes.shape[1] > 1 and bool(sizes.all())


def _fairness(counts: Counts, constraints: str, after: bool, level: float) -> Estimate:
    if not _is_defined(counts, constraints):
        return NOTHING
    table = counts.table(constraints, after)
    value = exact_fairness(constraints, *table)
    low, high = fairness_interval(constraints, *table, level)
    return Estimate(None if value is None else float(value), number(low), number(high))


def changes_of(counts: Counts, gains_raise: bool, level: float) -> ChangeSummary:
    """Return how many people change, and how many of them gain."""
    raised, lowered = (int(moves.sum()) for moves in counts.moves())
    n_gains, n_losses = (raised, lowered) if gains_raise else (lowered, raised)
    rate = share(raised + lowered, counts.n, level)
    return ChangeSummary(counts.n, raised + lowered, n_gains, n_losses, rate)


# ---------------------------------------------------------------------------------------------
# Groups


def groups_of(
    counts: Counts,
    coding: Coding,
    mean_scores: Sequence[NDArray[np.float64] | None],
    compared: NDArray[np.bool_],
    level: float,
) -> tuple[Group, ...]:
    """Return each group before and after, whether it is compared or too small to be.

    `mean_scores` (n_groups,) are before and after; None where scores are not given.
    """
    gains_raise = coding.favorable_is_positive
    groups: list[Group] = []
    for i, name in enumerate(coding.group_names):
        one = counts.of_groups([i])
        if not compared[i] and one.n < SMALLEST_TOLD:
            groups.append(_untold(name, one))
            continue
        scores = [None if mean is None else number(mean[i]) for mean in mean_scores]
        groups.append(
            Group(
                name=name,
                n=one.n,
                n_positive_labels=int(one.cells[0, 1].sum()) if one.has_labels else None,
                compared=bool(compared[i]),
                **_moves(one, gains_raise),
                **_rates(one, "before", gains_raise, level),
                **_rates(one, "after", gains_raise, level),
                mean_score_before=scores[0],
                mean_score_after=scores[1],
            )
        )
    return tuple(groups)


def _untold(name: str, one: Counts) -> Group:
    """Return a group of so few people that a rate would tell one person's decision."""
    rates = ("favorable", "selected", "accuracy", "true_positive", "false_positive")
    fields: dict[str, Any] = {
        f"{rate}_{when}": NOTHING if i < 2 or one.has_labels else None
        for i, rate in enumerate(rates)
        for when in ("before", "after")
    }
    return Group(
        name=name,
        n=one.n,
        n_positive_labels=None,
        compared=False,
        n_gains=None,
        n_losses=None,
        **fields,
        mean_score_before=None,
        mean_score_after=None,
    )


def _moves(one: Counts, gains_raise: bool) -> dict[str, Any]:
    raised, lowered = (int(moves[0]) for moves in one.moves())
    return {
        "n_gains": raised if gains_raise else lowered,
        "n_losses": lowered if gains_raise else raised,
    }


def _rates(one: Counts, when: str, gains_raise: bool, level: float) -> dict[str, Any]:
    """Return the rates of one group before or after, under the names of the record."""
    decided = one.decided(when == "after")[0]  # true label, decision
    positive = int(decided[:, 1].sum())
    found: dict[str, Estimate | None] = {
        "selected": share(positive, one.n, level),
        "favorable": share(positive if gains_raise else one.n - positive, one.n, level),
        "accuracy": None,
        "true_positive": None,
        "false_positive": None,
    }
    if one.has_labels:
        found["accuracy"] = share(decided[0, 0] + decided[1, 1], one.n, level)
        found["true_positive"] = share(decided[1, 1], decided[1].sum(), level)
        found["false_positive"] = share(decided[0, 1], decided[0].sum(), level)
    return {f"{name}_{when}": rate for name, rate in found.items()}


# ---------------------------------------------------------------------------------------------
# The limit


def limit_of(counts: Counts, request: Request, n_changes: int, gains_raise: bool) -> Limit:
    """Return the fewest changes for the fairness that was reached, and for the target."""
    reached = None
    if _is_defined(counts, request.constraints):
        reached = exact_fairness(request.constraints, *counts.table(request.constraints, True))
    fewest = _fewest(counts, request, reached, request.direction, gains_raise)
    return Limit(
        direction=request.direction,
        n_changes=n_changes,
        n_fewest=fewest,
        times=n_changes / fewest if fewest else None,
        n_gains_only=_fewest(counts, request, reached, "gains_only", gains_raise),
        n_target=_fewest(counts, request, request.target, request.direction, gains_raise),
        n_target_gains_only=_fewest(counts, request, request.target, "gains_only", gains_raise),
    )


def _fewest(
    counts: Counts, request: Request, target: Any, direction: str, gains_raise: bool
) -> int | None:
    if target is None or not _is_defined(counts, request.constraints):
        return None
    raises = direction == "any" or (direction == "gains_only") == gains_raise
    lowers = direction == "any" or not raises
    return fewest_number(
        request.constraints,
        *counts.table(request.constraints, after=False),
        target,
        may_raise=raises,
        may_lower=lowers,
    )
