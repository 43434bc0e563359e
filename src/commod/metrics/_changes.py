"""Measure an update: how many decisions change, where, how far scores move, and who changes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from commod._data.arrays import Floats, Mask
from commod._data.columns import Column, read_columns
from commod._data.groups import read_groups
from commod._data.labels import (
    binary_outcomes,
    check_length,
    check_weights,
    distinct_labels,
    is_label_in,
    read_label_pair,
    read_scores,
)
from commod._data.parameters import check_choice, check_numbers
from commod._data.tables import check_same_rows
from commod._record.explanation import Estimate
from commod._text import did_you_mean, shown
from commod._words.shared import LEAST_LEFT, MAX_ALIKE, MAX_CHANGED, NEARLY_ALIKE
from commod.exceptions import InputError

TINY = 1e-9  # of a share: smaller differences are rounding
PAIR = ("y_before", "y_after")  # names of the two columns of decisions


def _changed_rows(y_before: Any, y_after: Any) -> Mask:
    before, after = read_label_pair(y_before, y_after, PAIR)
    is_text = [labels.dtype.kind in "US" for labels in (before, after)]
    if is_text[0] != is_text[1] and "O" not in (before.dtype.kind, after.dtype.kind):
        raise InputError(
            f"y_before holds {before.dtype} labels and y_after {after.dtype}: text never equals a "
            "number, so every row would count as changed. Give both one coding."
        )
    return np.asarray(before != after, dtype=bool)


def is_degenerate(changed: Any, before: Any, after: Any) -> Any:
    """Return whether new decisions are no correction of the old ones, whatever their fairness is.

    `changed` is the share of decisions that change, `before` and `after` are the shares of positive
    decisions; each is a number, or an array. Decisions that are all alike are fair whatever the
    base model is, and help nobody. An update has no part in that where the old ones were alike.

    Examples
    --------
    >>> is_degenerate(np.array([0.6, 0.3, 0.3, 0.1]), 0.7, np.array([0.7, 1.0, 0.96, 0.8]))
    array([ True,  True,  True, False])
    """
    old, new = (np.minimum(share, 1 - share) for share in (before, after))
    is_alike = (new <= 1 - MAX_ALIKE + TINY) & (old > 1 - MAX_ALIKE + TINY)
    is_nearly = (new <= 1 - NEARLY_ALIKE + TINY) & (new <= LEAST_LEFT * old + TINY)
    return (changed > MAX_CHANGED + TINY) | is_alike | (is_nearly & (old > 1 - MAX_ALIKE + TINY))


def change_rate(y_before: Any, y_after: Any, *, sample_weight: Any = None) -> float:
    """Return the weighted share of rows whose label differs, in [0, 1].

    Parameters
    ----------
    y_before, y_after : array-like of shape (n_samples,)
        Labels of any kind and number.
    sample_weight : array-like of shape (n_samples,), default=None

    Returns
    -------
    float
        Never NaN. No rows, or rows without any weight, are an error.

    Examples
    --------
    >>> change_rate(["no", "no", "yes", "no"], ["no", "yes", "yes", "no"])
    0.25
    """
    check_same_rows({"y_before": y_before, "y_after": y_after, "sample_weight": sample_weight})
    changed = _changed_rows(y_before, y_after)
    weight = check_weights(sample_weight, len(changed))
    return float(np.sum(weight * changed) / np.sum(weight))


@dataclass(frozen=True)
class ChangeCounts:
    """The changes among `n` people: in total, gains and losses, and per group.

    `by_group` maps a group's label to (n, n_gains, n_losses); empty when no groups were given.

    Examples
    --------
    >>> ChangeCounts(n=4, n_changes=1, n_gains=1, n_losses=0, by_group={}).rate
    0.25
    """

    n: int
    n_changes: int
    n_gains: int
    n_losses: int
    by_group: Mapping[Hashable, tuple[int, int, int]]

    @property
    def rate(self) -> float:
        """Return the share of people who changed, in [0, 1]."""
        return self.n_changes / self.n


def count_changes(
    y_before: Any, y_after: Any, *, favorable_label: Any = 1, sensitive_features: Any = None
) -> ChangeCounts:
    """Return how many people gained and lost the favourable label, as unweighted counts.

    Parameters
    ----------
    y_before, y_after : array-like of shape (n_samples,)
        Decisions with the same two labels.
    favorable_label : label, default=1
        The label that is good for the person. A change to it is a gain, a change away from it a
        loss.
    sensitive_features : array-like, default=None
        Group of each row, to count changes per group as well.

    Returns
    -------
    ChangeCounts
        `n_changes` is always `n_gains + n_losses`.

    Examples
    --------
    >>> count_changes([0, 0, 1], [1, 0, 0], sensitive_features=["a", "a", "b"])
    ChangeCounts(n=3, n_changes=2, n_gains=1, n_losses=1, by_group={'a': (2, 1, 0), 'b': (1, 0, 1)})
    """
    check_same_rows(
        {"y_before": y_before, "y_after": y_after, "sensitive_features": sensitive_features}
    )
    labels = read_label_pair(y_before, y_after, PAIR)
    before, after = binary_outcomes(labels, PAIR, favorable_label, "favorable_label")
    gains, losses = ~before & after, before & ~after
    by_group: dict[Hashable, tuple[int, int, int]] = {}
    if sensitive_features is not None:
        groups = read_groups(sensitive_features, len(before))
        counts = (groups.count(rows).tolist() for rows in (None, gains, losses))
        by_group = dict(zip(groups.labels, zip(*counts, strict=True), strict=True))
    n_gains, n_losses = int(gains.sum()), int(losses.sum())
    return ChangeCounts(len(before), n_gains + n_losses, n_gains, n_losses, by_group)


def change_locality(
    X: Any,
    y_before: Any,
    y_after: Any,
    *,
    max_depth: int | None = 3,
    sample_weight: Any = None,
    random_state: Any = 0,
) -> float:
    """Return the F1 score, in [0, 1], of a small decision tree that separates changed rows.

    1 means that a few conditions describe the changed rows exactly; scattered changes score low.
    The tree is scored on the rows that it was fitted on, because it only describes these rows.

    Parameters
    ----------
    X : array-like or data frame of shape (n_samples, n_features)
        Raw columns: numbers, text, categories, booleans, with missing values.
    y_before, y_after : array-like of shape (n_samples,)
        Labels of any kind.
    max_depth : int or None, default=3
    sample_weight : array-like of shape (n_samples,), default=None
    random_state : int, RandomState or None, default=0
        Breaks ties between equally good splits.

    Returns
    -------
    float
        NaN when no row with weight changed, or all of them did. 0 when no leaf of the tree has a
        majority of changed rows.

    Examples
    --------
    >>> change_locality([[20], [30], [40], [50]], [0, 0, 0, 0], [0, 0, 1, 1])
    1.0
    """
    from sklearn.metrics import f1_score
    from sklearn.tree import DecisionTreeClassifier

    check_same_rows(
        {"X": X, "y_before": y_before, "y_after": y_after, "sample_weight": sample_weight}
    )
    changed = _changed_rows(y_before, y_after)
    columns = read_columns(X)
    check_length(columns[0].values, "X", len(changed))
    weight = check_weights(sample_weight, len(changed))
    kept = weight > 0  # the values of a row without weight must not become splits of the tree
    changed, weight, table = changed[kept], weight[kept], _tree_table(columns)[kept]
    if changed.all() or not changed.any():
        return math.nan
    tree = DecisionTreeClassifier(max_depth=max_depth, random_state=random_state)
    predicted = tree.fit(table, changed, sample_weight=weight).predict(table)
    return float(f1_score(changed, predicted, sample_weight=weight))


def _tree_table(columns: list[Column]) -> Any:
    """Return a sparse matrix: one column per category, also for missing; ranks for numbers."""
    from scipy.sparse import hstack

    blocks = [
        _one_hot(column) if column.kind == "category" else _ranks_and_missing(column.values)
        for column in columns
    ]
    return hstack(blocks, format="csr", dtype=np.float32)


def _one_hot(column: Column) -> Any:
    from scipy.sparse import csc_matrix

    codes = np.where(column.is_missing(), len(column.categories), column.values)
    return csc_matrix((np.ones(len(codes)), (np.arange(len(codes)), codes)))


def _ranks_and_missing(values: Floats) -> Any:
    from scipy.sparse import csc_matrix

    # Trees work in float32. Ranks keep the order of values that are equal or infinite in float32.
    missing = np.isnan(values)
    ranks = np.zeros(len(values))
    ranks[~missing] = np.unique(values[~missing], return_inverse=True)[1] + 1
    if not missing.any():
        return csc_matrix(ranks[:, None])
    # One column ranks missing values below all others, one above: a split can go either way.
    return csc_matrix(np.column_stack([ranks, np.where(missing, ranks.max() + 1, ranks)]))


# ---------------------------------------------------------------------------------------------
# Measure how far edited scores are from the base scores


@dataclass(frozen=True)
class ScoreAgreement:
    """How close two columns of scores are; see `score_agreement`.

    Examples
    --------
    >>> score_agreement([0.5, 0.5], [0.5, 0.25]).correlation
    nan
    """

    mean_absolute_difference: float
    correlation: float
    rank_correlation: float
    share_identical: float


def score_agreement(
    scores_before: Any, scores_after: Any, *, sample_weight: Any = None
) -> ScoreAgreement:
    """Return how far scores moved and whether they kept their order.

    Parameters
    ----------
    scores_before, scores_after : array-like of shape (n_samples,)
        Scores in [0, 1].
    sample_weight : array-like of shape (n_samples,), default=None
        A row of weight 2 counts as two rows, also in the rank correlation.

    Returns
    -------
    ScoreAgreement
        `mean_absolute_difference` in [0, 1]; `correlation` (Pearson) and `rank_correlation`
        (Spearman, ties at their mean rank) in [-1, 1], NaN if either column is constant over the
        rows with weight; `share_identical` in [0, 1], the share of rows whose score is unchanged.

    Examples
    --------
    >>> agreement = score_agreement([0.0, 0.5, 1.0], [0.0, 0.75, 1.0])
    >>> agreement.rank_correlation
    1.0
    >>> round(agreement.mean_absolute_difference, 3), round(agreement.share_identical, 3)
    (0.083, 0.667)
    """
    check_same_rows(
        {
            "scores_before": scores_before,
            "scores_after": scores_after,
            "sample_weight": sample_weight,
        }
    )
    before = read_scores(scores_before, "scores_before")
    after = read_scores(scores_after, "scores_after")
    check_length(after, "scores_after", len(before))
    weight = check_weights(sample_weight, len(before))
    kept = weight > 0
    before, after, weight = before[kept], after[kept], weight[kept]
    return ScoreAgreement(
        mean_absolute_difference=float(np.sum(weight * np.abs(before - after)) / np.sum(weight)),
        correlation=_correlation(before, after, weight),
        rank_correlation=_correlation(
            _mean_ranks(before, weight), _mean_ranks(after, weight), weight
        ),
        share_identical=float(np.sum(weight * (before == after)) / np.sum(weight)),
    )


def _mean_ranks(values: Floats, weight: Floats) -> Floats:
    """Return the mean rank of each value, up to a constant; a row of weight w counts as w rows."""
    _, codes = np.unique(values, return_inverse=True)
    total = np.bincount(codes, weight)
    return np.asarray((np.cumsum(total) - total / 2)[codes])


def _correlation(a: Floats, b: Floats, weight: Floats) -> float:
    if a.min() == a.max() or b.min() == b.max():
        return math.nan
    a, b = _centred(a, weight), _centred(b, weight)
    return float(np.clip((a @ b) / math.sqrt((a @ a) * (b @ b)), -1, 1))


def _centred(values: Floats, weight: Floats) -> Floats:
    """Return the centred values times the root of their weight, the largest scaled to 1."""
    centred = np.sqrt(weight) * (values - np.average(values, weights=weight))
    return np.asarray(centred / np.abs(centred).max())


# ---------------------------------------------------------------------------------------------
# Whom an update changes: those near the threshold, or those far from it

Shares = Mask | Floats  # who changes, or the probability of a change
UNDEFINED = Estimate(None, None, None)

Change = Literal["gain", "loss"]


class PairShare(NamedTuple):
    """A share of pairs and the two ends of its interval; NaN if undefined.

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
        Its `value` is NaN if nobody changes, or everybody does. The interval is DeLong's; it is
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
    check_numbers("level", level=level)
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
        favorable_scores: Floats,
        favorable_before: Mask,
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

    def share(self, changed: Mask | Floats, change: Change) -> float:
        """Return the probability over pairs of the same group; NaN if undefined.

        `changed` (n,) says whose decision changes, or how probable a change is.
        """
        return self.side_of(change).count_pairs(changed, with_variance=False).share

    def outscoring(
        self,
        changed: Mask | Floats,
        change: Change,
        *,
        level: float = 0.95,
        is_truly_favorable: Mask | None = None,
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


def _mean(values: Mask, weight: Floats) -> float:
    total = float(weight.sum())
    return float(values @ weight) / total if total > 0 else math.nan


def as_pair_share(figure: Estimate) -> PairShare:
    """Return a figure and its interval with NaN if they are not known."""
    ends = (math.nan if end is None else end for end in (figure.value, figure.low, figure.high))
    return PairShare(*ends)


# ---------------------------------------------------------------------------------------------
# Pairs of people
#
# The share of pairs is an area under the curve (Mann-Whitney), ties counted half. Its interval is
# DeLong's on the logit scale. Pairs are made within groups: the areas of the groups are added with
# the number of pairs as weight, and their variances with the square of that weight.


def change_shares(before: Mask, after: Shares) -> Shares:
    """Return whose decision changes, or how probable a change is, shape (n,).

    Examples
    --------
    >>> change_shares(np.array([True, False]), np.array([0.75, 0.5]))
    array([0.25, 0.5 ])
    """
    if after.dtype == np.bool_:
        return np.asarray(before != after)
    return np.abs(after - before)


@dataclass(frozen=True)
class RankedPeople:
    """People ordered by group and score, so that many updates need one sort.

    `rows` (m,) are the positions of these people in the table. A cell holds people of one group
    with one score: `cells` (m,) numbers the cell of each person, lowest score of a group first.
    `group_of` and `values` (n_cells,) are the group and the score of each cell.
    """

    rows: NDArray[np.intp]
    cells: NDArray[np.intp]
    group_of: NDArray[np.intp]
    values: Floats
    n_groups: int

    @classmethod
    def of(
        cls, scores: Floats, is_member: Mask, groups: NDArray[np.intp], n_groups: int
    ) -> RankedPeople:
        """Rank the people where `is_member` (n,) is true and whose group (n,) is not −1."""
        rows = np.flatnonzero(is_member & (groups >= 0))
        values, codes = np.unique(scores[rows], return_inverse=True)
        used, cells = np.unique(groups[rows] * len(values) + codes, return_inverse=True)
        group_of, rank = np.divmod(used, max(len(values), 1))
        return cls(rows, cells, group_of, values[rank], n_groups)

    def without_groups(self) -> RankedPeople:
        """Return the same people as one group."""
        values, rank = np.unique(self.values, return_inverse=True)
        group = np.zeros(len(values), dtype=np.intp)
        return RankedPeople(self.rows, rank[self.cells], group, values, 1)

    def count_pairs(self, changed: Shares, *, with_variance: bool = True) -> GroupPairs:
        """Return the pairs of each group; `changed` (n,) says who of the whole table changes.

        Without the variance, which takes most of the time, there is no interval.
        """
        own = changed[self.rows]
        n_cells, n_groups, group = len(self.group_of), self.n_groups, self.group_of
        first = _sums(self.cells, own, n_cells)  # people who change
        second = np.bincount(self.cells, minlength=n_cells) - first
        n_first, n_second = (_sums(group, n, n_groups) for n in (first, second))
        below = _ranks(second, n_second, group)
        wins, pairs = _sums(group, below * first, n_groups), n_first * n_second
        if own.dtype != np.bool_:  # nobody makes a pair with himself
            proba = own.astype(np.float64)
            with_self = _sums(group[self.cells], proba * (1 - proba), n_groups)
            wins, pairs = wins - with_self / 2, pairs - with_self
        is_certain = own.dtype == np.bool_
        if not (with_variance and is_certain):
            return GroupPairs(n_first, n_second, pairs, wins, None, is_certain)
        above = n_first[group] - _ranks(first, n_first, group)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = _variance(below / n_second[group], first, n_first, group) + _variance(
                above / n_first[group], second, n_second, group
            )
        return GroupPairs(n_first, n_second, pairs, wins, variance, is_certain)


def _sums(codes: NDArray[np.intp], values: Shares, n: int) -> Floats:
    """Return the sum of the values of each code, shape (n,)."""
    return np.bincount(codes, values, n).astype(np.float64)


def _ranks(counts: Floats, totals: Floats, group: NDArray[np.intp]) -> Floats:
    """Return how many people of the same group are below each cell, those in it counted half."""
    before_group = np.cumsum(totals) - totals
    return np.cumsum(counts) - counts / 2 - before_group[group]


def _variance(values: Floats, counts: Floats, sizes: Floats, group: NDArray[np.intp]) -> Floats:
    """Return the variance of the mean of each group's values, which occur `counts` times."""
    n_groups = len(sizes)
    values = np.where(counts > 0, values, 0.0)
    mean = _sums(group, values * counts, n_groups) / sizes
    squares = _sums(group, (values - mean[group]) ** 2 * counts, n_groups)
    return np.asarray(squares / (sizes - 1) / sizes)


@dataclass(frozen=True)
class GroupPairs:
    """Pairs of a person who changes and one who does not, by group; all shapes (n_groups,).

    In `wins` of the `pairs` the person who changes has the higher score. `variance` is that of
    wins / pairs, or None if it was not computed; it means nothing for a group with fewer than two
    people on one side. Unless `is_certain`, the numbers are expected ones and have no interval.
    """

    n_changed: Floats
    n_others: Floats
    pairs: Floats
    wins: Floats
    variance: Floats | None
    is_certain: bool

    @property
    def share(self) -> float:
        """Return the share of the pairs, over all groups, that the changed person wins, or NaN."""
        return float(self.wins.sum() / self.pairs.sum()) if self.pairs.sum() > 0 else math.nan

    def estimate(self, level: float) -> Estimate:
        """Return the share with its interval; no interval without two people on each side."""
        share = self.share
        if math.isnan(share):
            return UNDEFINED
        smaller = np.minimum(self.n_changed, self.n_others)
        n_smaller = float(smaller.sum())
        if self.variance is None or n_smaller < 2:
            return Estimate(share, None, None)
        # The variance of an area is at most this (Birnbaum and Klose 1957). It stands in for the
        # sample variance of a group with a single person on one side, which is not defined.
        bound = share * (1 - share) / np.maximum(smaller, 1)
        variance = np.where(smaller < 2, bound, self.variance)
        weight = self.pairs / self.pairs.sum()
        used = self.pairs > 0
        total = float((weight[used] ** 2) @ variance[used])
        return Estimate(share, *pair_share_interval(share, total, n_smaller, (1 - level) / 2))

    def of_group(self, i: int) -> GroupPairs:
        """Return the pairs of one group."""
        own: dict[str, Any] = {
            name: None if values is None else values[i : i + 1]
            for name, values in vars(self).items()
            if name != "is_certain"
        }
        return replace(self, **own)


def pair_share_interval(
    share: float, variance: float, n: float, alpha: float
) -> tuple[float, float]:
    """Return the interval of a share of pairs on the logit scale, each end with error `alpha`.

    `n` is the number of people on the smaller side. It decides where no pair, or every pair, is
    won: the variance is 0 there.
    """
    z = float(scipy.special.ndtri(alpha))
    if not 1e-12 < share < 1 - 1e-12:
        widest = z * z / (n + z * z)  # Wilson's bound for 0 of n, and for n of n
        return (0.0, widest) if share < 0.5 else (1 - widest, 1.0)
    variance = variance or share * (1 - share) / n  # 0 if all scores of a side are equal
    half_width = -z * math.sqrt(variance) / (share * (1 - share))
    ends = scipy.special.logit(share) + np.array([-half_width, half_width])
    low, high = scipy.special.expit(ends).tolist()
    return low, high
