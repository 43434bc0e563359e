"""Reject option classification (Kamiran, Karim and Zhang 2012)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from commod._data.arrays import Floats, Mask
from commod.metrics._constraint import Constraint
from commod.rivals._rows import HALF, DecisionRows, RivalFitRows, weight_above
from commod.rivals.base import AwareRival

THRESHOLDS = np.linspace(0.01, 0.99, 100)  # the grid that AIF360 searches
N_MARGINS = 50
ROUNDING = 1e-12


@dataclass(eq=False, repr=False, kw_only=True)
class RejectOption(AwareRival):
    """Decide rows near the threshold by their group, all other rows as the base model does.

    Scores in (0.5 − margin, 0.5 + margin] form the critical region. At another threshold than 0.5,
    these are the shifted scores (see `threshold`), so the region lies evenly around it. A group
    whose positive rate under the base model is below the average is decided positively there, any
    other group negatively.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=0.1
        The margin, in units of the (shifted) score; 0 changes nothing.
    search : bool, default=False
        Search threshold and margin on the fit rows instead, for the best balanced accuracy (this
        needs y). The groups' rates may then differ by at most (1 − strength) times the base model's
        gap. A new threshold changes decisions everywhere; strength 0 keeps the base model.
    constraints : str, default="demographic_parity"
        Which rates are compared: those of all rows ("demographic_parity"), of the rows with one
        true label ("true_positive_rate_parity", "false_positive_rate_parity"), or the mean over
        both labels ("equalized_odds").
    min_group_size : int, default=30
        Fit rows that a group needs; smaller groups keep their base decisions.
    threshold : float, default=0.5
        The base decision is score > threshold.
        The rule compares with 0.5. So the score and its threshold are shifted on the logit scale
        until the threshold is 0.5: the rule decides alike if both are shifted together.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.

    Attributes
    ----------
    raised_ : ndarray of shape (n_groups,)
        Whether each group is decided positively in the critical region.
    threshold_, margin_ : float
        The middle and the half-width of the critical region, in units of the (shifted) score. The
        middle is 0.5 unless `search` finds another.

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

    strength: float = 0.1
    search: bool = False

    largest_strength = 1.0

    @property
    def default_strengths(self) -> tuple[float, ...]:
        """Return margins from 0 to 0.45, denser where few decisions change."""
        if self.search:
            return super().default_strengths
        return tuple(0.45 * (i / 30) ** 1.5 for i in range(31))

    def _learn(self, rows: RivalFitRows) -> None:
        rates = rows.rates(self._constraint, rows.base.decisions).mean(axis=0)
        weights = rows.cells(self._constraint).totals(rows.weight).sum(axis=0)
        self.raised_ = np.zeros(len(rates), dtype=np.bool_)
        self.threshold_, self.margin_ = HALF, float(self.strength)
        if not np.ptp(rates) > 0:  # equal or undefined rates: no group is to be preferred
            self.margin_ = 0.0
            return
        self.raised_ = np.asarray(rates < np.average(rates, weights=weights))
        if self.search and self.strength > 0:
            self.threshold_, self.margin_ = self._search(rows)

    def _decide(self, rows: DecisionRows) -> Mask:
        scores = rows.scores_at_half
        low, high = self.threshold_ - self.margin_, self.threshold_ + self.margin_
        is_critical = (scores > low) & (scores <= high)
        by_group = self.raised_[rows.group_index]
        return rows.keep_unknown(np.where(is_critical, by_group, scores > self.threshold_))

    def _search(self, rows: RivalFitRows) -> tuple[float, float]:
        """Return the threshold and margin with the best balanced accuracy within the bound.

        A raised group is decided by score > threshold − margin, any other group by score >
        threshold + margin. So all pairs are looked up at once in the sorted scores of each cell.
        """
        labels = rows.needed_labels(
            "search=True chooses by balanced accuracy", ", or leave the search out"
        )
        thresholds = np.repeat(THRESHOLDS, N_MARGINS)
        shares = np.tile(np.linspace(0, 1, N_MARGINS), len(THRESHOLDS))
        margins = shares * np.minimum(thresholds, 1 - thresholds)
        positives = np.empty((2, rows.n_groups, len(thresholds)))  # per label, group and pair
        sizes = np.empty((2, rows.n_groups, 1))
        for label in (0, 1):
            for group in range(rows.n_groups):
                inside = (labels == bool(label)) & (rows.group == group)
                cuts = thresholds + np.where(self.raised_[group], -margins, margins)
                weight = rows.weight[inside]
                positives[label, group] = weight_above(rows.scores_at_half[inside], weight, cuts)
                sizes[label, group] = weight.sum()
        gap = _gap(self._constraint, positives, sizes)
        totals = positives.sum(axis=1) / sizes.sum(axis=1)
        balanced = (totals[1] + 1 - totals[0]) / 2
        base_rates = rows.rates(self._constraint, rows.base.decisions)
        within = gap <= (1 - self.strength) * np.ptp(base_rates, axis=1).mean() + ROUNDING
        best = np.argmax(np.where(within, balanced, -1)) if within.any() else np.argmin(gap)
        return float(thresholds[best]), float(margins[best])


def _gap(constraint: Constraint, positives: Floats, sizes: Floats) -> Floats:
    """Return the gap between groups for each pair, shape (n_pairs,): the mean over rate rows."""
    rates = constraint.by_rate_row(positives) / constraint.by_rate_row(sizes)
    return np.asarray(np.ptp(rates, axis=1).mean(axis=0))
