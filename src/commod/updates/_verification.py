"""Verify updates: compare what they do to the search sample with what they do to all rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["SampleComparison", "agrees_with_sample", "path_agrees_with_samples"]

# Shares of the changes, or of the progress, that an update may lose on all rows beside chance.
MAX_LOSS = 0.01
MAX_LOSS_AT_ONE_TARGET = 0.25  # for a single update of a path
MAX_DISTANCE = 0.01  # by which all rows may stay further from the target than the sample


class SampleComparison(NamedTuple):
    """What an update does to its search sample and to all rows.

    - `share`: the share of the people in the sample who change.
    - `share_of_all`: the share of all rows that change.
    - `n_changed`: the number of rows of the sample that change.
    - `distance`: how much further from the target all rows stay than the sample.
    - `progress`: how much closer to the target the sample comes than the base model.
    """

    share: float
    share_of_all: float
    n_changed: float
    distance: float
    progress: float


def agrees_with_sample(comparison: SampleComparison, max_loss: float = MAX_LOSS) -> bool:
    """Return whether an update does the same on all rows as on its sample, within sampling error.

    `max_loss` is the share of changes, or of progress, that may be lost beside sampling error.
    """
    tolerance = max_loss + 2 / np.sqrt(max(comparison.n_changed, 1))
    max_distance = min(MAX_DISTANCE, tolerance * comparison.progress)
    max_share = comparison.share * (1 + tolerance)
    return bool(comparison.distance <= max_distance and comparison.share_of_all <= max_share)


def path_agrees_with_samples(comparisons: Sequence[SampleComparison]) -> bool:
    """Return whether the updates of a path agree with the sample on average, and none fails badly.

    Along a path, the best direction may turn into another one. A target near such a turn may cost
    more on all rows than on the sample, although its neighbours do not.
    """
    mean = SampleComparison(*np.mean(comparisons, axis=0).tolist())
    return agrees_with_sample(mean) and all(
        agrees_with_sample(comparison, MAX_LOSS_AT_ONE_TARGET) for comparison in comparisons
    )
