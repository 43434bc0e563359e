"""Compare how well scores rank the people of each group: AUC by group, and ABROCA."""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from commod._data.groups import Groups, read_groups
from commod._data.labels import (
    binary_outcome,
    check_length,
    check_weights,
    read_labels,
    read_ranking_scores,
)
from commod._data.parameters import check_number_parameter, check_seed
from commod._data.tables import check_same_rows
from commod._text import list_names
from commod.exceptions import DataWarning, InputError
from commod.metrics._outscoring import PairShare, as_pair_share
from commod.metrics._reference import reference_index
from commod.metrics._roc import ScoreCells, area_between, score_cells
from commod.metrics._roc_resamples import CurveGap, ResampledCurves

N_RESAMPLES = 400
MOST_GROUPS = 100  # that can be compared by resampling; every pair is resampled


class RocGap(NamedTuple):
    """The area between the ROC curves of two groups (ABROCA), and what chance alone would give.

    `value` is never negative: chance alone makes it positive. If the true curves were equal, it
    would be `chance` on average, and at most `chance_high` with the probability (1 + level) / 2.
    `low` and `high` are the interval of the true area. NaN where undefined.

    Examples
    --------
    >>> RocGap("a", "b", 0.06, 0.0, 0.11, 0.05, 0.09).value
    0.06
    """

    first: Hashable
    second: Hashable
    value: float
    low: float
    high: float
    chance: float
    chance_high: float


@dataclass(frozen=True)
class RocComparison:
    """How well scores rank the people of each group; see `compare_roc_curves`.

    - `by_group`: the area under the curve (AUC) of each group, with its interval.
    - `reference`: the group that the others are compared with.
    - `against_reference`: the area between a group's curve and that of the reference.
    - `largest`: the largest area between two curves, over all pairs of groups.
    - `undefined`: the groups whose people all have the same label. They have no curve.

    Examples
    --------
    >>> y, group = [0, 1, 0, 1, 1, 1], ["a", "a", "a", "a", "b", "b"]
    >>> scores = [0.1, 0.9, 0.4, 0.6, 0.3, 0.8]
    >>> comparison = compare_roc_curves(y, scores, sensitive_features=group)
    >>> comparison.by_group["a"].value, comparison.undefined
    (1.0, ('b',))
    """

    by_group: Mapping[Hashable, PairShare]
    reference: Hashable
    against_reference: Mapping[Hashable, RocGap]
    largest: RocGap
    undefined: tuple[Hashable, ...]


def group_auc(
    y_true: Any,
    scores: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = 1,
    sample_weight: Any = None,
    level: float = 0.95,
) -> dict[Hashable, PairShare]:
    """Return the area under the ROC curve (AUC) of each group, with its interval.

    It is the probability that, within the group, a person with `pos_label` has a higher score than
    a person without it. Ties count half.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, at most two different ones.
    scores : array-like of shape (n_samples,)
        Scores of `pos_label`, any numbers: only their order counts. Infinity is allowed.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_sensitive)
        Group of each row.
    pos_label : label, default=1
        The label that a high score predicts.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row. The variance is then that of weighted means.
    level : float, default=0.95
        Level of the two-sided intervals, in (0.5, 1).

    Returns
    -------
    dict of group to PairShare
        NaN for a group whose people all have the same label; a `DataWarning` names it. The
        interval is DeLong's on the logit scale. It is NaN with fewer than two people of a label.

    Examples
    --------
    >>> areas = group_auc(
    ...     [0, 1, 0, 1, 0, 1, 0, 1],
    ...     [0.1, 0.9, 0.4, 0.6, 0.5, 0.4, 0.2, 0.8],
    ...     sensitive_features=["a"] * 4 + ["b"] * 4,
    ... )
    >>> areas["a"].value, areas["b"].value
    (1.0, 0.75)
    """
    _check_level(level)
    groups, cells = _read_cells(y_true, scores, sensitive_features, pos_label, sample_weight)
    _warn_of_one_label(groups, cells)
    areas = (as_pair_share(own.area(level)) for own in cells)
    return dict(zip(groups.labels, areas, strict=True))


def abroca(
    y_true: Any,
    scores: Any,
    *,
    sensitive_features: Any,
    pos_label: Any = 1,
    sample_weight: Any = None,
) -> float:
    """Return the area between the ROC curves of two groups (ABROCA), in [0, 1].

    It is the integral of the distance of the two curves over all false positive rates (Gardner,
    Brooks and Baker 2019). 0 means that the scores rank the people of both groups equally well, at
    every threshold. The areas under both curves may be equal where ABROCA is not 0: the curves then
    cross. With more than two groups it is the largest area over all pairs of groups.

    Parameters
    ----------
    y_true, scores, sensitive_features, pos_label, sample_weight
        As in `group_auc`.

    Returns
    -------
    float
        Exact up to rounding: the curves are piecewise linear. NaN where there is one group only,
        and where all people of a group have the same label; a `DataWarning` names that group.

    See Also
    --------
    compare_roc_curves : Every pair with the reference group, with intervals and what chance gives.

    Notes
    -----
    On few people, chance alone gives a large value. Compare it with `chance` of
    `compare_roc_curves` before you read it as a difference between groups.

    References
    ----------
    Gardner, Brooks and Baker (2019). Evaluating the fairness of predictive student models through
    slicing analysis. LAK19.

    Examples
    --------
    >>> abroca(
    ...     [0, 1, 0, 1, 0, 1, 0, 1],
    ...     [0.1, 0.9, 0.4, 0.6, 0.5, 0.4, 0.2, 0.8],
    ...     sensitive_features=["a"] * 4 + ["b"] * 4,
    ... )
    0.25
    """
    groups, cells = _read_cells(y_true, scores, sensitive_features, pos_label, sample_weight)
    if _warn_of_one_label(groups, cells) or len(cells) < 2:
        return math.nan
    curves = [own.curve() for own in cells]
    return max(area_between(first, second) for first, second in combinations(curves, 2))


def compare_roc_curves(
    y_true: Any,
    scores: Any,
    *,
    sensitive_features: Any,
    reference: Any = None,
    pos_label: Any = 1,
    sample_weight: Any = None,
    level: float = 0.95,
    n_resamples: int = N_RESAMPLES,
    random_state: Any = 0,
) -> RocComparison:
    """Return AUC by group and the areas between ROC curves, with intervals and what chance gives.

    Parameters
    ----------
    y_true, scores, sensitive_features, pos_label, sample_weight, level
        As in `group_auc`.
    reference : label of a group, default=None
        The group that the others are compared with. If None, the group with most people, by
        weight, among those with both labels.
    n_resamples : int, default=400
        Number of resamples, at least 100.
    random_state : int, RandomState or None, default=0
        Seed of the resamples.

    Returns
    -------
    RocComparison
        Groups whose people all have the same label are in `undefined` and in no pair. If the
        reference is one of them, `against_reference` is empty.

    Notes
    -----
    Resamples are drawn within each group and label. They bound the error of the measured area, so
    the interval holds where the true curves are equal, too; the percentile bootstrap does not. The
    interval and `chance_high` of `largest` hold for all pairs together: its `high` bounds the
    largest true area. With weights, a resample has the effective number of rows, (Σw)² / Σw².

    Examples
    --------
    Both groups are alike; what differs is chance:

    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> y, group = random.integers(0, 2, 300), random.choice(["a", "b"], 300)
    >>> scores = y + 2 * random.normal(size=300)
    >>> largest = compare_roc_curves(y, scores, sensitive_features=group).largest
    >>> largest.low == 0 < largest.value < largest.chance_high
    True
    """
    _check_level(level)
    check_number_parameter(n_resamples, "n_resamples", (int, np.integer), min_val=100)
    groups, cells = _read_cells(y_true, scores, sensitive_features, pos_label, sample_weight)
    labels = groups.labels
    known = [i for i, own in enumerate(cells) if own.has_both]
    if len(known) > MOST_GROUPS:
        raise InputError(
            f"sensitive_features make {len(known):,} groups with both labels; at most "
            f"{MOST_GROUPS} can be compared by resampling. Name fewer columns, or use abroca and "
            "group_auc, which do not resample.",
            parameter="sensitive_features",
        )
    weights = [float((own.positive + own.negative).sum()) * own.has_both for own in cells]
    base = reference_index(labels, reference, np.array(weights))
    random = check_seed(random_state)
    resampled = ResampledCurves.of([cells[i] for i in known], int(n_resamples), random)
    gaps = {
        labels[i]: _as_gap((labels[i], labels[base]), resampled.gap(j, known.index(base), level))
        for j, i in enumerate(known)
        if i != base and base in known
    }
    largest = RocGap(None, None, *[math.nan] * 5)
    if len(known) > 1:
        (first, second), gap = resampled.largest_gap(resampled.all_pairs(), level)
        largest = _as_gap((labels[known[first]], labels[known[second]]), gap)
    return RocComparison(
        by_group={
            label: as_pair_share(own.area(level)) for label, own in zip(labels, cells, strict=True)
        },
        reference=labels[base],
        against_reference=gaps,
        largest=largest,
        undefined=tuple(label for i, label in enumerate(labels) if i not in known),
    )


def _as_gap(pair: tuple[Hashable, Hashable], gap: CurveGap) -> RocGap:
    return RocGap(*pair, *as_pair_share(gap.area), gap.chance, gap.chance_high)


# ---------------------------------------------------------------------------------------------
# Reading and checking


def _check_level(level: Any) -> None:
    check_number_parameter(
        level, "level", (float, np.floating), min_val=0.5, max_val=1, include_boundaries="neither"
    )


def _read_cells(
    y_true: Any, scores: Any, sensitive_features: Any, pos_label: Any, sample_weight: Any
) -> tuple[Groups, list[ScoreCells]]:
    """Return the groups, and the people of each group by score and label."""
    if y_true is None:
        raise InputError(
            "y_true is None, but an ROC curve compares scores with true labels. Pass the labels.",
            parameter="y_true",
        )
    given = {"y_true": y_true, "scores": scores, "sensitive_features": sensitive_features}
    check_same_rows({**given, "sample_weight": sample_weight})
    labels = read_labels(y_true, "y_true", allow_empty=False)
    is_positive = binary_outcome(labels, "y_true", pos_label)
    n = len(labels)
    numbers = read_ranking_scores(scores, "scores")
    check_length(numbers, "scores", n)
    groups = read_groups(sensitive_features, n)
    weight = check_weights(sample_weight, n)
    return groups, score_cells(numbers, is_positive, groups.codes, len(groups.labels), weight)


def _warn_of_one_label(groups: Groups, cells: list[ScoreCells]) -> bool:
    """Warn of groups whose people all have the same label; return whether there are any."""
    pairs = zip(groups.labels, cells, strict=True)
    alike = [str(label) for label, own in pairs if not own.has_both]
    if alike:
        warnings.warn(
            f"All people of {list_names(alike, 3)} have the same true label, so there is no ROC "
            "curve. The result is NaN there. Leave such groups out, or use compare_roc_curves, "
            "which does so and names them.",
            DataWarning,
            stacklevel=3,
        )
    return bool(alike)
