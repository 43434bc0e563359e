"""The rows that a rival learns from and decides on, and the check of its decisions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Codes, Floats, Mask
from commod._data.base_model import BaseScores
from commod._data.columns import Column
from commod._data.groups import read_groups, sensitive_names
from commod._data.labels import is_label_in
from commod._text import did_you_mean, plural, shown
from commod.exceptions import DataWarning, InputError
from commod.metrics._constraint import ConstraintLike, get_constraint
from commod.metrics._people import People
from commod.updates._fit_rows import FitRows
from commod.updates._interface import Decisions, ReadRows

ROUNDING = 1e-9  # sums of probabilities may leave [0, 1] by this much


@dataclass(frozen=True)
class DecisionRows(ReadRows):
    """The n rows that a rival decides on.

    Attributes
    ----------
    X : table
        The user's table, as it was passed.
    columns : list of Column
        The same table as checked columns, without the score column.
    base : BaseScores
        The scores, decisions and threshold of the base model. The scores are those of `pos_label`:
        a score of the other label is mirrored, and so is its threshold.
    group : ndarray of shape (n,), or None
        The number of each row's group in the constraint, from 0. It is −1 for a group that is not
        part of the constraint. None for a rival that decides without groups.

    Examples
    --------
    >>> import numpy as np
    >>> from commod._data.base_model import BaseScores
    >>> base = BaseScores(np.array([[0.8, 0.2], [0.4, 0.6]]), threshold=0.5)
    >>> rows = DecisionRows(X=None, columns=[], base=base, group=np.array([0, -1]))
    >>> rows.keep_unknown(np.array([True, False]))  # the second row keeps its base decision
    array([ True,  True])
    """

    X: Any
    columns: list[Column]
    base: BaseScores
    group: Codes | None

    def __len__(self) -> int:
        return len(self.base.scores)

    @cached_property
    def _remembered(self) -> dict[Hashable, Any]:
        return {}

    def remember(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return what `compute` gives, computed once for these rows and this key.

        Models that differ in strength share costly work in this way. The key must be an object that
        these models share: the key keeps it alive as long as the rows.
        """
        if key not in self._remembered:
            self._remembered[key] = compute()
        return self._remembered[key]

    @cached_property
    def scores_at_half(self) -> Floats:
        """Return the base scores, shape (n,), shifted on the logit scale to the threshold 0.5.

        A rule that compares probabilities with one half reads these instead of `base.scores`.
        """
        return at_half(self.base.scores, self.base.threshold)

    @property
    def group_index(self) -> Codes:
        """Return the group of each row, shape (n,), as an index: 0 if the group is unknown."""
        assert self.group is not None
        return np.maximum(self.group, 0)

    def keep_unknown(self, positive: Decisions) -> NDArray[Any]:
        """Return `positive` (n,) with the base decision for every row of an unknown group."""
        assert self.group is not None
        return np.where(self.group >= 0, positive, self.base.decisions)


@dataclass(frozen=True)
class RivalFitRows(DecisionRows):
    """The n rows that a rival learns from: `DecisionRows` with groups, true labels and weights.

    Attributes
    ----------
    group_labels : tuple
        The values of the groups in the constraint. A rival that decides without groups must not
        store them.
    label : ndarray of shape (n,), or None
        Whether the true label is the positive one; None if `fit` got no y.
    weight : ndarray of shape (n,)
        The sample weights; ones where `fit` got none.

    Examples
    --------
    >>> import numpy as np
    >>> from commod._data.base_model import BaseScores
    >>> base = BaseScores(np.array([[0.8, 0.2], [0.4, 0.6]]), threshold=0.5)
    >>> rows = RivalFitRows(
    ...     X=None, columns=[], base=base, group=np.array([0, 1]), group_labels=("a", "b"),
    ...     label=None, weight=np.ones(2),
    ... )
    >>> rows.n_groups, rows.in_constraint.tolist()
    (2, [True, True])
    """

    group: Codes
    group_labels: tuple[Hashable, ...]
    label: Mask | None
    weight: Floats

    @property
    def n_groups(self) -> int:
        """Return the number of groups in the constraint."""
        return len(self.group_labels)

    @property
    def in_constraint(self) -> Mask:
        """Return which rows belong to a group in the constraint, shape (n,)."""
        return self.group >= 0

    @property
    def is_counted(self) -> Mask:
        """Return which rows count in the constraint, shape (n,): those that have weight."""
        return self.in_constraint & (self.weight > 0)

    def needed_labels(self, purpose: str, alternative: str = "") -> Mask:
        """Return `label`; raise an error that states the purpose where `fit` got no y."""
        if self.label is None:
            raise InputError(f"{purpose}, which needs y, but y is None. Pass y{alternative}.")
        return self.label

    def cells(self, constraints: ConstraintLike) -> People:
        """Return the cell of each row: its group, and its true label where a rate needs it."""
        constraint = get_constraint(constraints)
        return People((constraint,), self.group, self.n_groups, self.label, self.weight)

    def rates(self, constraints: ConstraintLike, positive: Decisions) -> Floats:
        """Return the positive rate of each cell, shape (n_rate_rows, n_groups); NaN if empty."""
        cells = self.cells(constraints)
        with np.errstate(invalid="ignore"):
            return cells.totals(self.weight * positive) / cells.weights

    def fairness(self, constraints: ConstraintLike, positive: Decisions) -> float:
        """Return the metric of the constraint for decisions, or probabilities, of shape (n,)."""
        return self.cells(constraints).fairness(positive)


def rival_fit_rows(X: Any, rows: FitRows) -> RivalFitRows:
    """Return the fit rows with the groups of the constraint numbered from 0."""
    group, _ = rows.large_groups
    kept = np.unique(rows.groups.codes[rows.in_constraint])
    labels = tuple(rows.groups.labels[code] for code in kept)
    base = rows.base.for_positive
    return RivalFitRows(X, rows.columns, base, group, labels, rows.label, rows.weight)


def read_fitted_groups(
    sensitive_features: Any,
    n_rows: int,
    labels: Sequence[Hashable],
    names: Sequence[str],
    method: str,
) -> Codes:
    """Return the number of each row's group among `labels`, shape (n,); −1 if unknown.

    `labels` are the groups of the fit rows, and `names` the names of the sensitive features, which
    new rows must have, too. It is an error if no group is known, and a warning if some are not.
    """
    if sensitive_features is None:
        raise InputError(
            f"{method} decides by group: pass predict(X, sensitive_features=...) with the group "
            "of each row. If new rows come without the sensitive features, use a method that "
            "does not need it, such as ControlledDebiaser."
        )
    new_names = sensitive_names(sensitive_features)
    if new_names and names and new_names != names:
        raise InputError(
            f"sensitive_features has the columns {', '.join(new_names)}, but the update was fitted "
            f"with {', '.join(names)}, in this order. Pass the same columns in the same order."
        )
    groups = read_groups(sensitive_features, n_rows)
    number = {label: i for i, label in enumerate(labels)}
    unknown = [repr(label) for label in groups.labels if label not in number]
    if len(unknown) == len(groups.labels):
        raise InputError(
            f"sensitive_features holds none of the groups that the update was fitted with "
            f"({', '.join(map(repr, labels[:6]))}); got {', '.join(unknown[:6])}. Pass the same "
            "values, of the same type."
        )
    if unknown:
        warnings.warn(
            f"{method} learned nothing about the {plural(len(unknown), 'group')} "
            f"{', '.join(unknown[:6])}; rows of these groups keep their base decisions.",
            DataWarning,
            stacklevel=4,
        )
    return np.array([number.get(label, -1) for label in groups.labels], np.intp)[groups.codes]


def find_group(privileged: Any, labels: Sequence[Hashable]) -> int:
    """Return the number of the privileged group; a value that is no group is refused."""
    if is_label_in(privileged, labels):
        return list(labels).index(privileged)
    raise InputError(
        f"privileged={shown(privileged)} is not one of the groups: "
        f"{', '.join(map(repr, labels[:6]))}.{did_you_mean(privileged, labels)} Pass one of them, "
        "or None.",
        parameter="privileged",
    )


def check_decisions(positive: Any, n_rows: int, name: str) -> Decisions:
    """Return decisions, or probabilities of positive ones, of shape (n_rows,).

    Anything else is an error; `name` says in its text which function returned it.
    """
    array = np.asarray(positive)
    if array.shape != (n_rows,):
        raise InputError(
            f"{name} must return shape ({n_rows},), one entry per row; got {array.shape}."
        )
    if array.dtype == np.bool_:
        return array
    is_number = array.dtype.kind in "fiu"
    if not is_number or not ((array >= -ROUNDING) & (array <= 1 + ROUNDING)).all():
        raise InputError(
            f"{name} must return booleans, or probabilities between 0 and 1; got {array.dtype} "
            f"with {array[:3].tolist()}..."
        )
    return np.clip(array.astype(np.float64), 0.0, 1.0)


HALF = 0.5


def at_half(scores: Floats, threshold: float) -> Floats:
    """Return the scores shifted so that their threshold is 0.5, in [0, 1], same shape.

    The order of scores and the side of the threshold stay the same. At threshold 0.5 the scores are
    returned as they are.

    Examples
    --------
    >>> at_half(np.array([0.0, 0.5, 0.9, 0.99, 1.0]), threshold=0.9).round(3)
    array([0.   , 0.1  , 0.5  , 0.917, 1.   ])
    """
    if threshold == HALF:
        return scores
    positive, negative = scores * (1 - threshold), (1 - scores) * threshold
    shifted = positive / (positive + negative)
    # Rounding must not move a score to the other side of the threshold.
    above = np.maximum(shifted, np.nextafter(HALF, 1.0))
    return np.where(scores > threshold, above, np.minimum(shifted, HALF))


def from_half(scores: Floats, threshold: float) -> Floats:
    """Return scores whose threshold is 0.5 in the unit of the score; the inverse of `at_half`.

    Examples
    --------
    >>> from_half(np.array([0.0, 0.1, 0.5, 1.0]), threshold=0.9).round(3)
    array([0. , 0.5, 0.9, 1. ])
    """
    if threshold == HALF:
        return scores
    positive, negative = scores * threshold, (1 - scores) * (1 - threshold)
    return np.asarray(positive / (positive + negative))


def middle(low: Floats, high: Floats, threshold: float) -> Floats:
    """Return a cut in [low, high), in the unit of the score; `low` where the two are equal.

    It is the mean of the two where the threshold is 0.5. At other thresholds it is the score that
    becomes that mean when the threshold is shifted to 0.5.

    Examples
    --------
    >>> middle(np.array([0.2]), np.array([0.4]), threshold=0.5).round(3)
    array([0.3])
    """
    mean = (at_half(low, threshold) + at_half(high, threshold)) / 2
    # Rounding must not move the cut beyond the scores that it separates.
    return np.maximum(low, np.minimum(from_half(mean, threshold), np.nextafter(high, -1.0)))


def weight_above(scores: Floats, weight: Floats, thresholds: Floats) -> Floats:
    """Return the weight of the rows whose score is above each threshold, shape (n_thresholds,).

    Examples
    --------
    >>> weight_above(np.array([0.2, 0.5, 0.9]), np.ones(3), np.array([-np.inf, 0.5, 0.9]))
    array([3., 1., 0.])
    """
    order = np.argsort(scores)
    below = np.concatenate([[0.0], np.cumsum(weight[order])])
    return np.asarray(below[-1] - below[np.searchsorted(scores[order], thresholds, side="right")])
