"""Compare every group with a reference group: adverse impact and standardised mean difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from commod._record import Group
from commod._reporting.audit.counts import finite_or_none
from commod._reporting.audit.scores import ScoreFigures
from commod.metrics._reference import mean_differences

ROUNDING = 1e-7  # a smaller standard deviation of scores is that of equal scores
FloatArray = NDArray[np.float64]


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
    means: FloatArray | None,
    squares: FloatArray | None,
    sizes: NDArray[np.int64],
    reference: int,
) -> FloatArray | None:
    """Return the standardised mean difference of each group; None where scores are not known."""
    if means is None or squares is None:
        return None
    is_counted = sizes > 0
    mean, square = (
        np.average(values[is_counted], weights=sizes[is_counted]) for values in (means, squares)
    )
    deviation = math.sqrt(max(float(square - mean**2), 0.0))
    return mean_differences(means, reference, deviation if deviation > ROUNDING else 0.0)
