"""Reject option classification (Kamiran, Karim and Zhang 2012): doubtful cases go by group."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod.exceptions import InputError
from commod.metrics._constraint import Constraint
from commod.rivals._curves import weight_above
from commod.rivals.base import AwareRival, DecisionRows, RivalFitRows

__all__ = ["RejectOption"]

THRESHOLDS = np.linspace(0.01, 0.99, 100)  # the grid that AIF360 searches
N_MARGINS = 50
ROUNDING = 1e-12


class RejectOption(AwareRival):
    """Decide rows near the threshold by their group, all others as the base model does.

    Scores in (threshold − margin, threshold + margin] form the critical region. In it, groups that
    the base model decides positively less often than the average are decided positively, the
    others negatively.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=0.1
        The margin, in units of the score; 0 changes nothing.
    search : bool, default=False
        Search threshold and margin on the fit rows instead: of the pairs whose groups' rates differ
        by at most (1 − strength) times the base model's gap, the one with the best balanced
        accuracy (y is needed). Moving the threshold changes decisions everywhere; strength 0 keeps
        the base model.
    constraints : str, default="demographic_parity"
        Whose rates tell the groups apart: all rows ("demographic_parity"), those with one true
        label ("true_positive_rate_parity", "false_positive_rate_parity") or the mean of both
        ("equalized_odds").
    min_group_size : int, default=30
        Fit rows a group needs; smaller ones keep their base decisions.
    threshold : float, default=0.5
        The base decision is score > threshold.
    pos_label : label, default=None
        The label whose rates count; `classes_[1]` if None.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. Only names directions.

    Attributes
    ----------
    raised_ : ndarray of shape (n_groups,)
        Which groups the critical region decides positively.
    threshold_, margin_ : float
        The middle and the half-width of the critical region.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import RejectOption
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> groups = data.sensitive_features
    >>> update = RejectOption(model, strength=0.05)
    >>> update = update.fit(data.data, data.target, sensitive_features=groups)
    >>> bool(update.fairness_ > update.base_fairness_)
    True
    >>> update.predict(data.data, sensitive_features=groups).shape
    (800,)
    """

    largest_strength = 1.0

    def __init__(
        self,
        estimator: Any,
        *,
        strength: float = 0.1,
        search: bool = False,
        constraints: str = "demographic_parity",
        min_group_size: int = 30,
        threshold: float = 0.5,
        pos_label: Any = None,
        favorable_label: Any = None,
    ) -> None:
        self.estimator = estimator
        self.strength = strength
        self.search = search
        self.constraints = constraints
        self.min_group_size = min_group_size
        self.threshold = threshold
        self.pos_label = pos_label
        self.favorable_label = favorable_label

    @property
    def default_strengths(self) -> tuple[float, ...]:
        """Return margins from 0 to nearly half of the scores' range, denser where few change."""
        if self.search:
            return super().default_strengths
        return tuple(0.45 * (i / 30) ** 1.5 for i in range(31))

    def _learn(self, rows: RivalFitRows) -> None:
        rates = rows.rates(self._constraint, rows.base.decisions).mean(axis=0)
        weights = rows.cells(self._constraint).totals(rows.weight).sum(axis=0)
        self.raised_ = np.asarray(rates < np.average(rates, weights=weights))
        self.threshold_, self.margin_ = float(self.threshold), float(self.strength)
        if not np.ptp(rates) > 0:  # equal, or undefined: nobody is to be preferred
            self.margin_ = 0.0
        elif self.search and self.strength > 0:
            self.threshold_, self.margin_ = self._search(rows)

    def _decide(self, rows: DecisionRows) -> NDArray[np.bool_]:
        assert rows.group is not None
        scores = rows.base.scores
        low, high = self.threshold_ - self.margin_, self.threshold_ + self.margin_
        doubtful = (scores > low) & (scores <= high)
        known = rows.group >= 0
        decided = np.where(doubtful, self.raised_[rows.group], scores > self.threshold_)
        return np.where(known, decided, rows.base.decisions).astype(np.bool_)

    def _search(self, rows: RivalFitRows) -> tuple[float, float]:
        """Return the threshold and margin with the best balanced accuracy within the bound.

        A raised group is decided by score > threshold − margin, the others by score > threshold +
        margin: all pairs are looked up in the sorted scores of each cell at once.
        """
        if rows.label is None:
            raise InputError(
                "search=True chooses by balanced accuracy, which needs y, but y is None. Pass y, "
                "or leave the search out."
            )
        thresholds = np.repeat(THRESHOLDS, N_MARGINS)
        share = np.tile(np.linspace(0, 1, N_MARGINS), len(THRESHOLDS))
        margins = share * np.minimum(thresholds, 1 - thresholds)
        positives = np.empty((2, rows.n_groups, len(thresholds)))  # per label, group and pair
        sizes = np.empty((2, rows.n_groups, 1))
        for label in (0, 1):
            for group in range(rows.n_groups):
                inside = (rows.label == bool(label)) & (rows.group == group)
                cuts = thresholds + np.where(self.raised_[group], -margins, margins)
                weight = rows.weight[inside]
                positives[label, group] = weight_above(rows.base.scores[inside], weight, cuts)
                sizes[label, group] = weight.sum()
        gap = _gap(self._constraint, positives, sizes)
        totals = positives.sum(axis=1) / sizes.sum(axis=1)
        balanced = (totals[1] + 1 - totals[0]) / 2
        lines = rows.rates(self._constraint, rows.base.decisions)
        within = gap <= (1 - self.strength) * np.ptp(lines, axis=1).mean() + ROUNDING
        best = np.argmax(np.where(within, balanced, -1)) if within.any() else np.argmin(gap)
        return float(thresholds[best]), float(margins[best])


def _gap(
    constraint: Constraint, positives: NDArray[np.float64], sizes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the largest difference between groups' rates for each pair; the mean of two lines."""
    lines = constraint.by_rate_row(positives) / constraint.by_rate_row(sizes)
    return np.asarray(np.ptp(lines, axis=1).mean(axis=0))
