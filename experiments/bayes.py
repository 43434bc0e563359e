"""Score decisions as the paper's Bayes-optimal update does, and say what they do for fairness.

A score sums up what a positive decision is worth: for accuracy, for fairness (the margins below),
and for few changes. For a row x, `proba_target` (n,) is P(Y = 1 | x), and `proba_group` (n,) is
P(S = 1 | x): 0 or 1 where the update knows the group. `group_share` is P(S = 1), by default the
mean of `proba_group`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def bayes_optimal_scores(
    proba_target: Any,
    y_pred: Any,
    fairness_margin: Any = 0.0,
    *,
    cost: float = 0.5,
    lambda_ratio: float = 0.0,
) -> Floats:
    """Return scores (n,) that are positive where a Bayes-optimal update decides positively.

    The update minimises the cost-sensitive risk, minus the fairness that the margin expresses,
    plus `lambda_ratio` times the share of changed decisions. So it keeps a base decision unless
    accuracy and fairness together outweigh `lambda_ratio`. At a score of 0, both decisions are
    optimal.

    `y_pred` (n,) are the base decisions, 0 or 1, or P(base decision = 1 | x) where they are
    randomised. `fairness_margin` says what a positive decision is worth for fairness. False
    positives have the weight `cost`, false negatives 1 - `cost`.

    The paper's printed score has the two multipliers swapped and the sign of the change term
    reversed. Its lemma also needs c* = P(base decision = 0), not the share of new positives:
    P(change) = (1 - c*) P(new 0 | base 1) + c* P(new 1 | base 0).

    Examples
    --------
    >>> bayes_optimal_scores([0.7, 0.4], [1, 1], lambda_ratio=0.2)
    array([0.4, 0.1])
    """
    target, base, margin = (
        np.asarray(part, dtype=np.float64) for part in (proba_target, y_pred, fairness_margin)
    )
    return np.asarray(target - cost + margin + lambda_ratio * (2 * base - 1))


def p_rule_margin(
    proba_group: Any,
    *,
    multiplier: float,
    target: float,
    disadvantaged: int = 0,
    group_share: float | None = None,
) -> Floats:
    """Return what a positive decision is worth for a P-rule of at least `target`, shape (n,).

    The constraint is that the rate of the `disadvantaged` group, 0 or 1, is at least `target` times
    the rate of the other. `multiplier` is its weight mu, 0 or more.

    Examples
    --------
    >>> p_rule_margin([0, 0, 1, 1], multiplier=0.1, target=0.8).round(3)
    array([ 0.2 ,  0.2 , -0.16, -0.16])
    """
    one, zero = _per_share(proba_group, group_share)
    return multiplier * (zero - target * one if disadvantaged == 0 else one - target * zero)


def balanced_cost_margin(
    proba_group: Any,
    *,
    lambda_fair: float,
    cost_group: float = 0.5,
    group_share: float | None = None,
) -> Floats:
    """Return what a positive decision is worth for the balanced cost of predicting the group, (n,).

    The paper's Lagrangian regards the decision as a prediction of S. The term in the risk is
    -`lambda_fair` times the balanced cost-sensitive risk
    (1 - c) P(decision 0 | S = 1) + c P(decision 1 | S = 0), where c is `cost_group`. With
    c = 1 / (1 + tau), this risk is at least tau / (1 + tau) exactly where the rate of group 0 is at
    least tau times that of group 1. A positive `lambda_fair` favours group 0, a negative one
    group 1.

    Examples
    --------
    >>> balanced_cost_margin([0, 0, 1, 1], lambda_fair=0.1)
    array([ 0.1,  0.1, -0.1, -0.1])
    """
    one, zero = _per_share(proba_group, group_share)
    return -lambda_fair * ((1 - cost_group) * one - cost_group * zero)


def equalized_odds_margin(
    proba_joint: Any, *, multipliers: tuple[float, float], cell_shares: Any = None
) -> Floats:
    """Return what a positive decision is worth for equal rates among each true label, (n,).

    The term in the risk is the sum over y of multipliers[y] times
    P(decision 1 | Y = y, S = 1) - P(decision 1 | Y = y, S = 0). So positive multipliers favour
    group 0. `proba_joint` (n, 2, 2) is P(Y = y, S = s | x) at [:, y, s], and `cell_shares` (2, 2)
    is P(Y = y, S = s), by default the mean of `proba_joint`.

    Examples
    --------
    >>> joint = [[[0.5, 0.0], [0.5, 0.0]], [[0.0, 0.5], [0.0, 0.5]]]
    >>> equalized_odds_margin(joint, multipliers=(0.0, 0.1))
    array([ 0.2, -0.2])
    """
    joint = np.asarray(proba_joint, dtype=np.float64)
    per_cell = joint / (joint.mean(axis=0) if cell_shares is None else np.asarray(cell_shares))
    return np.asarray((per_cell[:, :, 0] - per_cell[:, :, 1]) @ np.asarray(multipliers))


def _per_share(proba_group: Any, group_share: float | None) -> tuple[Floats, Floats]:
    """Return P(S = 1 | x) / P(S = 1) and P(S = 0 | x) / P(S = 0), both (n,)."""
    group = np.asarray(proba_group, dtype=np.float64)
    share = float(group.mean()) if group_share is None else group_share
    return group / share, (1 - group) / (1 - share)
