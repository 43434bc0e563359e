"""Generalised error costs of groups, and how often a score must be withheld to equalise them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

COSTS = ("fnr", "fpr", "weighted")
ROUNDING = 1e-12  # costs that differ by less are equal


class GroupCosts(NamedTuple):
    """The costs of g groups, each of shape (g,); NaN where a group has no row to measure them on.

    `trivial` is the cost of the constant score `base_rates`, the share of positive labels.
    """

    costs: Floats
    trivial: Floats
    base_rates: Floats


def group_costs(
    scores: Floats,
    label: NDArray[np.bool_],
    group: NDArray[np.intp],
    weight: Floats,
    *,
    n_groups: int,
    cost: str,
) -> GroupCosts:
    """Return the generalised cost of each group's scores and of its base rate.

    - "fnr": the mean of 1 − score over the rows with a positive label.
    - "fpr": the mean of the score over the rows with a negative label.
    - "weighted": the mean over all rows of 1 − score or score, by label.

    Examples
    --------
    >>> scores, label = np.array([0.8, 0.6, 0.1, 0.3]), np.array([True, True, False, False])
    >>> found = group_costs(
    ...     scores, label, np.zeros(4, int), np.ones(4), n_groups=1, cost="fnr"
    ... )
    >>> found.costs.round(3), found.trivial
    (array([0.3]), array([0.5]))
    """

    def total(values: Floats) -> Floats:
        return np.bincount(group, values, minlength=n_groups).astype(np.float64)

    with np.errstate(invalid="ignore"):
        base_rates = total(weight * label) / total(weight)
        if cost == "weighted":
            missed = np.where(label, 1 - scores, scores)
            trivial = 2 * base_rates * (1 - base_rates)
            return GroupCosts(total(weight * missed) / total(weight), trivial, base_rates)
        counted = weight * (label if cost == "fnr" else ~label)
        missed = 1 - scores if cost == "fnr" else scores
        costs = total(counted * missed) / total(counted)
    return GroupCosts(costs, 1 - base_rates if cost == "fnr" else base_rates, base_rates)


def required_rates(costs: Floats, trivial: Floats) -> Floats:
    """Return how often each group's score must be withheld to raise its cost to the highest.

    A rate above 1 is infeasible: even the trivial score costs too little. The rate is infinite
    where withholding does not raise the cost at all, and 0 everywhere where a cost is undefined.

    Examples
    --------
    >>> required_rates(np.array([0.2, 0.35, 0.1]), np.array([0.5, 0.5, 0.2]))
    array([0.5, 0. , 2.5])
    """
    if np.isnan(costs).any():
        return np.zeros(len(costs))
    missing, room = costs.max() - costs, trivial - costs
    rates = np.full(len(costs), np.inf)
    np.divide(missing, room, out=rates, where=room > ROUNDING)
    return np.where(missing > ROUNDING, rates, 0.0)


def feasible_rates(required: Floats) -> Floats:
    """Return the rates that can be used: at most 1, and 0 where withholding is of no help."""
    return np.where(np.isinf(required), 0.0, np.minimum(required, 1.0))
