"""Thresholds per group under a relaxed constraint, equalized odds included, by linear programming.

Hardt, Price and Srebro (2016) ask for equality; between the base model and equality lies a whole
frontier, and a small linear programme over the corners of the groups' ROC curves finds it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression, linprog

from commod.exceptions import InputError
from commod.metrics._constraint import Constraint
from commod.rivals._curves import weight_above
from commod.rivals.base import AwareRival, DecisionRows, RivalFitRows
from commod.updates.base import Decisions, check_number

__all__ = ["RelaxedThresholdOptimizer"]

Floats = NDArray[np.float64]


class RelaxedThresholdOptimizer(AwareRival):
    """The most accurate mix of thresholds per group within a ceiling on the disparity.

    Each group draws one of its thresholds by lot. The mix maximises accuracy on the fit rows under
    a floor on the P-rule or a ceiling on the gaps: for equalized odds on their sum, the disparate
    mistreatment.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=1.0
        Share of the way from the base model's fairness to parity, in [0, 1]. 0 keeps the base
        model, whose threshold the search for accuracy would move otherwise.
    change_weight : float, default=1e-06
        Accuracy that one changed decision must be worth. The default only breaks ties: of equally
        accurate rules the quieter one is taken.
    constraints : str, default="demographic_parity"
        Or "equalized_odds", "true_positive_rate_parity", "false_positive_rate_parity".
    min_group_size : int, default=30
        Fit rows a group needs; smaller ones keep their base decisions.
    threshold : float, default=0.5
        The base decision is score > threshold.
    pos_label : label, default=None
        The label whose rates count; `classes_[1]` if None.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. Only names directions.
    random_state : int, RandomState or None, default=None
        Seed of the lots, which belong to rows: the same row always draws the same one.

    Attributes
    ----------
    target_ : float
        The fairness asked for on the fit rows: a floor on the P-rule or a ceiling on the disparity.
    thresholds_, probabilities_ : list of ndarray, one per group
        The thresholds a group draws from and how often it draws each.

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

    largest_strength = 1.0
    randomised = True

    def __init__(
        self,
        estimator: Any,
        *,
        strength: float = 1.0,
        change_weight: float = 1e-6,
        constraints: str = "demographic_parity",
        min_group_size: int = 30,
        threshold: float = 0.5,
        pos_label: Any = None,
        favorable_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.strength = strength
        self.change_weight = change_weight
        self.constraints = constraints
        self.min_group_size = min_group_size
        self.threshold = threshold
        self.pos_label = pos_label
        self.favorable_label = favorable_label
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "change_weight", low=0.0)

    def _learn(self, rows: RivalFitRows) -> None:
        if rows.label is None:
            raise InputError(
                "RelaxedThresholdOptimizer maximises accuracy, which needs y; it is None."
            )
        base = rows.fairness(self._constraint, rows.base.decisions)
        self.target_ = self._constraint.towards_ideal(base, float(self.strength))
        self.thresholds_ = [np.array([float(self.threshold)])] * rows.n_groups
        self.probabilities_ = [np.ones(1)] * rows.n_groups
        if self.strength == 0 or np.isnan(base):
            return
        corners = [_corners(rows, group) for group in range(rows.n_groups)]
        mixes = _best_mix(corners, self._constraint, self.target_, float(self.change_weight))
        used = [mix > 0 for mix in mixes]
        self.thresholds_ = [c.thresholds[u] for c, u in zip(corners, used, strict=True)]
        self.probabilities_ = [mix[u] for mix, u in zip(mixes, used, strict=True)]

    def _decide(self, rows: DecisionRows) -> Decisions:
        assert rows.group is not None
        chance = rows.base.decisions.astype(np.float64)
        for group, (cuts, chances) in enumerate(
            zip(self.thresholds_, self.probabilities_, strict=True)
        ):
            inside = rows.group == group
            chance[inside] = (rows.base.scores[inside, None] > cuts) @ chances
        return np.clip(chance, 0.0, 1.0)


class _Corners(NamedTuple):
    """Rules "score > threshold" of one group, m of them.

    `weights` (2,) are the group's rows with true label 0 and 1, as shares of all rows; `rates`
    (2, m) its false and true positive rates; `changes` (m,) how many decisions differ from the base
    model's, as shares of all rows.
    """

    thresholds: Floats
    rates: Floats
    changes: Floats
    weights: Floats

    def worth(self, change_weight: float) -> Floats:
        """Return the accuracy of each rule up to a constant, less what its changes cost."""
        signs = np.array([-1.0, 1.0])
        return (signs * self.weights) @ self.rates - change_weight * self.changes

    def lines(self, constraint: Constraint) -> Floats:
        """Return the rates that the constraint compares, shape (n_rate_rows, m)."""
        selected = (self.weights @ self.rates) / self.weights.sum()
        return np.stack(
            [
                selected if row.label is None else self.rates[int(row.label)]
                for row in constraint.rate_rows
            ]
        )


def _corners(rows: RivalFitRows, group: int) -> _Corners:
    """Return the corners of the upper convex hull of a group's ROC curve, and the base rule."""
    assert rows.label is not None
    inside = (rows.group == group) & (rows.weight > 0)
    scores, label = rows.base.scores[inside], rows.label[inside]
    weight = rows.weight[inside] / rows.weight[rows.in_constraint].sum()
    weights = np.array([weight[~label].sum(), weight[label].sum()])
    cuts = np.append(_hull_cuts(scores, label, weight), rows.base.threshold)
    positives = [weight_above(scores[m], weight[m], cuts) for m in (~label, label)]
    rates = np.stack(positives) / np.where(weights > 0, weights, 1.0)[:, None]
    selected = weights @ rates
    return _Corners(cuts, rates, np.abs(selected - selected[-1]), weights)


def _hull_cuts(scores: Floats, label: NDArray[np.bool_], weight: Floats) -> Floats:
    """Return the thresholds at the corners of the ROC curve's upper hull, everybody's first.

    The hull's slopes are those of the isotonic regression of the label on the score, so its corners
    are where that regression steps.
    """
    values, place = np.unique(scores, return_inverse=True)
    total = np.bincount(place, weight)
    shares = np.bincount(place, weight * label) / total
    blocks = isotonic_regression(shares, weights=total).blocks
    steps = np.append(values, 1.0)  # thresholds lie between scores, not on them
    return np.concatenate([[-np.inf], (steps[blocks[1:] - 1] + steps[blocks[1:]]) / 2])


def _best_mix(
    corners: list[_Corners], constraint: Constraint, target: float, change_weight: float
) -> list[Floats]:
    """Return how often each group uses each of its rules, by linear programming.

    The other variables are the highest and the lowest rate of each line.
    """
    lines = [c.lines(constraint) for c in corners]
    n_lines, sizes = len(lines[0]), [len(c.thresholds) for c in corners]
    n_rules, starts = sum(sizes), np.cumsum([0, *sizes])
    rates = np.zeros((len(corners) * n_lines, n_rules))
    for group, line in enumerate(lines):
        rates[group * n_lines : (group + 1) * n_lines, starts[group] : starts[group + 1]] = line
    each = np.tile(np.eye(n_lines), (len(corners), 1))
    none = np.zeros_like(each)
    fair = np.zeros((1, n_rules + 2 * n_lines))
    if constraint.is_ratio:
        fair[0, -2:], ceiling = [target, -1.0], 0.0
    else:
        fair[0, -2 * n_lines :], ceiling = [1.0] * n_lines + [-1.0] * n_lines, target
    one_rule = np.zeros((len(corners), n_rules + 2 * n_lines))
    for group in range(len(corners)):
        one_rule[group, starts[group] : starts[group + 1]] = 1.0
    found = linprog(
        np.concatenate([*(-c.worth(change_weight) for c in corners), np.zeros(2 * n_lines)]),
        A_ub=np.vstack([np.hstack([rates, -each, none]), np.hstack([-rates, none, each]), fair]),
        b_ub=np.append(np.zeros(2 * len(rates)), ceiling),
        A_eq=one_rule,
        b_eq=np.ones(len(corners)),
        bounds=(0.0, 1.0),
        method="highs",
    )
    assert found.x is not None  # everybody positive is fair
    mixes = np.split(np.clip(found.x[:n_rules], 0.0, 1.0), starts[1:-1])
    return [mix / mix.sum() for mix in mixes]
