"""Measure whom an update changes: those near the threshold, or those far from it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.groups import read_groups
from commod._data.labels import (
    binary_outcomes,
    check_length,
    distinct_labels,
    is_label_in,
    read_label_pair,
    read_scores,
)
from commod._data.parameters import check_choice, check_number_parameter
from commod._data.tables import check_same_rows
from commod._record import Estimate
from commod._text import did_you_mean, shown
from commod.exceptions import InputError
from commod.metrics._changes import PAIR
from commod.metrics._pairs import BoolArray, FloatArray, RankedPeople

Change = Literal["gain", "loss"]


class PairShare(NamedTuple):
    """A share of pairs and the two ends of its interval; NaN where undefined.

    Examples
    --------
    >>> result = outscoring_probability([0.1, 0.2, 0.4, 0.9], [0, 0, 0, 1], [0, 0, 1, 1])
    >>> result.overall
    PairShare(value=1.0, low=nan, high=nan)
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class OutscoringProbability:
    """How people whose decision changes score beside people whose decision stays.

    For gains: the probability that a person who gains has a higher base score than a person who
    stays rejected. For losses: the probability that a person who loses has a lower base score than
    a person who keeps the favourable decision. In both cases a value below 0.5 says that the update
    passes over people who are nearer to the other decision.

    - `value`, `low`, `high`: the probability over pairs of the same group, and its interval.
      Without sensitive features all pairs count.
    - `overall`: the same over all pairs.
    - `by_group`: the same by group; empty without sensitive features.
    - `n_changed`, `n_others`: the people on the two sides of a pair.
    - `true_share_changed`, `true_share_others`: the share of each side whose true label is
      favourable; NaN without true labels.

    Examples
    --------
    >>> result = outscoring_probability([0.1, 0.2, 0.4, 0.9], [0, 0, 0, 1], [0, 0, 1, 1])
    >>> result.value, result.n_changed, result.n_others
    (1.0, 1, 2)
    """

    change: Change
    n_changed: float
    n_others: float
    value: float
    low: float
    high: float
    overall: PairShare
    by_group: Mapping[Hashable, PairShare]
    true_share_changed: float
    true_share_others: float


def outscoring_probability(
    scores: Any,
    y_before: Any,
    y_after: Any,
    *,
    favorable_label: Any = 1,
    pos_label: Any = None,
    sensitive_features: Any = None,
    change: Change = "gain",
    y_true: Any = None,
    level: float = 0.95,
) -> OutscoringProbability:
    """Return the probability that a changed person scores nearer to the other decision.

    A gainer should score higher than a person who stays rejected. A loser should score lower than
    a person who keeps the favourable decision. The value is the share of pairs for which this
    holds. Ties count half, so 0.5 is chance.

    Parameters
    ----------
    scores : array-like of shape (n_samples,)
        Scores of the base model in [0, 1], of `pos_label`.
    y_before, y_after : array-like of shape (n_samples,)
        Decisions of the base model and of the update, with the same two labels.
    favorable_label : label, default=1
        The label that is good for the person.
    pos_label : label, default=None
        The label that the scores are for; `favorable_label` if None. Scores of the other label
        (a probability of default) are turned.
    sensitive_features : array-like, default=None
        Group of each row. Pairs are then made within groups.
    change : {"gain", "loss"}, default="gain"
    y_true : array-like of shape (n_samples,), default=None
        True labels, for the shares of both sides whose true label is favourable.
    level : float, default=0.95
        Level of the two-sided intervals, in (0.5, 1).

    Returns
    -------
    OutscoringProbability
        Its `value` is NaN where nobody changes, or everybody does. The interval is DeLong's; it is
        NaN with fewer than two people on one side.

    Examples
    --------
    In group "b", the person who gains scores lower than the person who stays rejected:

    >>> result = outscoring_probability(
    ...     [0.1, 0.4, 0.2, 0.3],
    ...     [0, 0, 0, 0],
    ...     [0, 1, 1, 0],
    ...     sensitive_features=["a", "a", "b", "b"],
    ... )
    >>> result.value, result.by_group["a"].value, result.by_group["b"].value
    (0.5, 1.0, 0.0)
    """
    check_choice(change, "change", ("gain", "loss"))
    check_number_parameter(
        level, "level", (float, np.floating), min_val=0.5, max_val=1, include_boundaries="neither"
    )
    given = {"scores": scores, "y_before": y_before, "y_after": y_after, "y_true": y_true}
    check_same_rows({**given, "sensitive_features": sensitive_features})
    decisions = read_label_pair(y_before, y_after, PAIR)
    before, after = binary_outcomes(decisions, PAIR, favorable_label, "favorable_label")
    n = len(before)
    numbers = read_scores(scores, "scores")
    check_length(numbers, "scores", n)
    if pos_label is not None and not is_label_in(pos_label, [favorable_label]):
        _check_other_label(pos_label, decisions, favorable_label)
        numbers = -numbers
    is_truly_favorable = None
    if y_true is not None:
        names = "y_before", "y_true"
        pair = read_label_pair(y_before, y_true, names)
        _, is_truly_favorable = binary_outcomes(pair, names, favorable_label, "favorable_label")
    codes = np.zeros(n, dtype=np.intp)
    group_labels: tuple[Hashable, ...] = ()
    if sensitive_features is not None:
        groups = read_groups(sensitive_features, n)
        codes, group_labels = groups.codes, tuple(groups.labels)
    sides = Sides.of(numbers, before, codes, max(len(group_labels), 1))
    return sides.outscoring(
        before != after,
        change,
        level=level,
        is_truly_favorable=is_truly_favorable,
        group_labels=group_labels,
    )


def _check_other_label(
    pos_label: Any, decisions: tuple[NDArray[Any], NDArray[Any]], favorable_label: Any
) -> None:
    """Refuse a label of the scores that is not the other label of the decisions."""
    known = [v for v in distinct_labels(np.concatenate(decisions)) if v != favorable_label]
    if known and not is_label_in(pos_label, known):
        labels = [favorable_label, *known]
        raise InputError(
            f"pos_label={shown(pos_label)} is not among the labels {labels}."
            f"{did_you_mean(pos_label, labels)} Pass the label that the scores are for.",
            parameter="pos_label",
        )


@dataclass(frozen=True)
class Sides:
    """People with the favourable base decision, and those without it, ranked within groups.

    `rejected` are ranked by their score of the favourable label, `accepted` by its negative. So the
    person nearest to the other decision ranks highest on both sides.
    """

    rejected: RankedPeople
    accepted: RankedPeople

    @classmethod
    def of(
        cls,
        favorable_scores: FloatArray,
        favorable_before: BoolArray,
        groups: NDArray[np.intp],
        n_groups: int,
    ) -> Sides:
        """Rank all people once; those of group −1 are left out. Arrays have shape (n,)."""
        return cls(
            RankedPeople.of(favorable_scores, ~favorable_before, groups, n_groups),
            RankedPeople.of(-favorable_scores, favorable_before, groups, n_groups),
        )

    def turned(self) -> Sides:
        """Return the same people where the other decision is the favourable one."""
        return Sides(self.accepted, self.rejected)

    def side_of(self, change: Change) -> RankedPeople:
        """Return the people whose decision a change in this direction starts from."""
        return self.rejected if change == "gain" else self.accepted

    def share(self, changed: BoolArray | FloatArray, change: Change) -> float:
        """Return the probability over pairs of the same group; NaN where undefined.

        `changed` (n,) says whose decision changes, or how probable a change is.
        """
        return self.side_of(change).count_pairs(changed, with_variance=False).share

    def outscoring(
        self,
        changed: BoolArray | FloatArray,
        change: Change,
        *,
        level: float = 0.95,
        is_truly_favorable: BoolArray | None = None,
        group_labels: tuple[Hashable, ...] = (),
    ) -> OutscoringProbability:
        """Return all figures of the changes in one direction; `changed` as for `share`."""
        side = self.side_of(change)
        pairs = side.count_pairs(changed)
        own = changed[side.rows].astype(np.float64)
        true_shares = (math.nan, math.nan)
        if is_truly_favorable is not None:
            is_true = is_truly_favorable[side.rows]
            true_shares = _mean(is_true, own), _mean(is_true, 1 - own)
        n_changed, n_others = (float(n.sum()) for n in (pairs.n_changed, pairs.n_others))
        return OutscoringProbability(
            change,
            int(n_changed) if pairs.is_certain else n_changed,
            int(n_others) if pairs.is_certain else n_others,
            *as_pair_share(pairs.estimate(level)),
            overall=as_pair_share(side.without_groups().count_pairs(changed).estimate(level)),
            by_group={
                label: as_pair_share(pairs.of_group(i).estimate(level))
                for i, label in enumerate(group_labels)
            },
            true_share_changed=true_shares[0],
            true_share_others=true_shares[1],
        )


def _mean(values: BoolArray, weight: FloatArray) -> float:
    total = float(weight.sum())
    return float(values @ weight) / total if total > 0 else math.nan


def as_pair_share(figure: Estimate) -> PairShare:
    """Return a figure and its interval with NaN where they are not known."""
    ends = (math.nan if end is None else end for end in (figure.value, figure.low, figure.high))
    return PairShare(*ends)
