"""RelaxedThresholdOptimizer: randomised thresholds per group under a relaxed constraint.

Hardt, Price and Srebro (2016) require equality. A small linear programme over the corners of the
groups' ROC curves gives every compromise between the base model and equality.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import isotonic_regression, linprog

from commod._data.arrays import Floats, Mask
from commod.metrics._constraint import Constraint
from commod.rivals._rows import DecisionRows, RivalFitRows, middle, weight_above
from commod.rivals.base import AwareRival, number
from commod.updates._interface import Decisions
from commod.updates.base import LARGEST_WEIGHT


@dataclass(eq=False, repr=False, kw_only=True)
class RelaxedThresholdOptimizer(AwareRival):
    """Find the most accurate random mix of thresholds per group that reaches a target.

    A random draw decides which of its group's thresholds applies to a row. The mix maximises
    accuracy on the fit rows under a floor on the P-rule or a ceiling on the gap. For equalized odds
    the ceiling is on the sum of both gaps, the disparate mistreatment.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=1.0
        Share of the way from the base model's fairness to parity, in [0, 1]. 0 keeps the base
        model, whose threshold the search for accuracy would move otherwise.
    change_weight : float, default=1e-06
        Accuracy that one changed decision must be worth. The default only breaks ties: of equally
        accurate mixes, the one with the fewest changes is taken.
    constraints : str, default="demographic_parity"
        Or "equalized_odds", "true_positive_rate_parity", "false_positive_rate_parity".
    min_group_size : int, default=30
        Fit rows that a group needs; smaller groups keep their base decisions.
    threshold : float, default=0.5
        The base decision is score > threshold.
        Only the order of the scores counts. Cuts lie between two scores, in the middle after the
        score and its threshold were shifted on the logit scale until the threshold was 0.5.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.
    random_state : int, RandomState or None, default=None
        Seed of the random draws. A draw belongs to its row: the same row always gets the same one.

    Attributes
    ----------
    target_ : float
        The fairness required on the fit rows: a floor on the P-rule or a ceiling on the gaps.
    thresholds_, probabilities_ : list of ndarray, one per group
        The thresholds of a group and the probability of each.

    Notes
    -----
    y is always needed: the mix maximises accuracy.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import RelaxedThresholdOptimizer
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = RelaxedThresholdOptimizer(model, constraints="equalized_odds", strength=0.5)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> bool(update.fairness_ <= update.base_fairness_ / 2 + 1e-9)
    True
    """

    change_weight: float = number(1e-6, low=0.0, high=LARGEST_WEIGHT)
    random_state: Any = None

    largest_strength = 1.0
    needs_labels = True
    randomised = True

    def _learn(self, rows: RivalFitRows) -> None:
        labels = rows.needed_labels("RelaxedThresholdOptimizer maximises accuracy")
        base = rows.fairness(self._constraint, rows.base.decisions)
        self.target_ = self._constraint.towards_ideal(base, float(self.strength))
        self.thresholds_ = [np.array([rows.base.threshold])] * rows.n_groups
        self.probabilities_ = [np.ones(1)] * rows.n_groups
        if self.strength == 0 or np.isnan(base):
            return
        corners = [_corners(rows, labels, group) for group in range(rows.n_groups)]
        mixes = _best_mix(corners, self._constraint, self.target_, float(self.change_weight))
        pairs = list(zip(corners, mixes, strict=True))
        self.thresholds_ = [corner.thresholds[mix > 0] for corner, mix in pairs]
        self.probabilities_ = [mix[mix > 0] for mix in mixes]

    def _decide(self, rows: DecisionRows) -> Decisions:
        positive = rows.base.decisions.astype(np.float64)
        mixes = zip(self.thresholds_, self.probabilities_, strict=True)
        for group, (thresholds, probabilities) in enumerate(mixes):
            inside = rows.group == group
            positive[inside] = (rows.base.scores[inside, None] > thresholds) @ probabilities
        return np.clip(positive, 0.0, 1.0)


class _Corners(NamedTuple):
    """The m rules "score > threshold" of one group that a mix may use.

    Attributes
    ----------
    thresholds : ndarray of shape (m,)
    rates : ndarray of shape (2, m)
        False and true positive rates.
    changes : ndarray of shape (m,)
        Decisions that differ from the base model's, as shares of all rows.
    weights : ndarray of shape (2,)
        The group's rows with true label 0 and 1, as shares of all rows.
    """

    thresholds: Floats
    rates: Floats
    changes: Floats
    weights: Floats

    def worth(self, change_weight: float) -> Floats:
        """Return the accuracy of each rule, up to a constant, minus the cost of its changes."""
        signs = np.array([-1.0, 1.0])
        return (signs * self.weights) @ self.rates - change_weight * self.changes

    def constrained_rates(self, constraint: Constraint) -> Floats:
        """Return the rates that the constraint compares, shape (n_rate_rows, m)."""
        selected = (self.weights @ self.rates) / self.weights.sum()
        rates = [
            selected if row.label is None else self.rates[int(row.label)]
            for row in constraint.rate_rows
        ]
        return np.stack(rates)


def _corners(rows: RivalFitRows, labels: Mask, group: int) -> _Corners:
    """Return the corners of the upper convex hull of a group's ROC curve, then the base rule."""
    inside = (rows.group == group) & (rows.weight > 0)
    scores, label = rows.base.scores[inside], labels[inside]
    weight = rows.weight[inside] / rows.weight[rows.in_constraint].sum()
    weights = np.array([weight[~label].sum(), weight[label].sum()])
    hull = _hull_thresholds(scores, label, weight, rows.base.threshold)
    thresholds = np.append(hull, rows.base.threshold)
    positives = [weight_above(scores[m], weight[m], thresholds) for m in (~label, label)]
    rates = np.stack(positives) / np.where(weights > 0, weights, 1.0)[:, None]
    selected = weights @ rates
    return _Corners(thresholds, rates, np.abs(selected - selected[-1]), weights)


def _hull_thresholds(scores: Floats, label: Mask, weight: Floats, threshold: float) -> Floats:
    """Return the thresholds at the corners of the ROC curve's upper hull, the lowest first.

    The slopes of the hull are those of the isotonic regression of the label on the score. So its
    corners lie where that regression steps. The first threshold, −inf, selects everybody.
    """
    values, place = np.unique(scores, return_inverse=True)
    total = np.bincount(place, weight)
    shares = np.bincount(place, weight * label) / total
    blocks = isotonic_regression(shares, weights=total).blocks
    steps = np.append(values, 1.0)  # thresholds lie between scores
    between = middle(steps[blocks[1:] - 1], steps[blocks[1:]], threshold)
    return np.concatenate([[-np.inf], between])


def _best_mix(
    corners: list[_Corners], constraint: Constraint, target: float, change_weight: float
) -> list[Floats]:
    """Return the probability of each rule in its group's mix, by linear programming.

    The unknowns are these probabilities, then the highest and the lowest rate of each rate row.
    """
    rates = block_diag(*(corner.constrained_rates(constraint) for corner in corners))
    sizes = [len(corner.thresholds) for corner in corners]
    n_rate_rows, n_rules = len(constraint.rate_rows), sum(sizes)
    extremes = np.tile(np.eye(n_rate_rows), (len(corners), 1))
    zeros = np.zeros_like(extremes)
    fair = np.zeros((1, n_rules + 2 * n_rate_rows))
    if constraint.is_ratio:
        fair[0, -2:], ceiling = [target, -1.0], 0.0
    else:
        fair[0, n_rules:], ceiling = np.repeat([1.0, -1.0], n_rate_rows), target
    totals = block_diag(*(np.ones((1, size)) for size in sizes))
    solution = linprog(
        np.concatenate([*(-c.worth(change_weight) for c in corners), np.zeros(2 * n_rate_rows)]),
        A_ub=np.vstack(
            [np.hstack([rates, -extremes, zeros]), np.hstack([-rates, zeros, extremes]), fair]
        ),
        b_ub=np.append(np.zeros(2 * len(rates)), ceiling),
        A_eq=np.pad(totals, [(0, 0), (0, 2 * n_rate_rows)]),
        b_eq=np.ones(len(corners)),
        bounds=(0.0, 1.0),
        method="highs",
    )
    assert solution.x is not None  # a mix that selects everybody is fair
    mixes = np.split(np.clip(solution.x[:n_rules], 0.0, 1.0), np.cumsum(sizes[:-1]))
    return [mix / mix.sum() for mix in mixes]
