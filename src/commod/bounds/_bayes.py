"""Compute the Bayes-optimal update: scores whose sign is the best decision at given multipliers.

For a row x, `proba_target` is P(Y = 1 | x) and `proba_group` is P(S = 1 | x). The latter is 0 or 1
where the update knows the group, and between 0 and 1 where it does not. A score sums up what a
positive decision is worth: for accuracy, for fairness (a margin below), and for few changes.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from commod._data.arrays import Floats
from commod._data.labels import check_length
from commod._data.parameters import check_number_parameter
from commod._data.tables import check_same_rows
from commod._text import n_of
from commod.exceptions import InputError


def bayes_optimal_scores(
    proba_target: Any,
    y_pred: Any,
    fairness_margin: Any = 0.0,
    *,
    cost: float = 0.5,
    lambda_ratio: float = 0.0,
) -> Floats:
    """Return scores that are positive where a Bayes-optimal update decides positively.

    The update minimises the cost-sensitive risk, minus the fairness that the margin expresses,
    plus `lambda_ratio` times the share of changed decisions. So it keeps a base decision unless
    accuracy and fairness together outweigh `lambda_ratio`.

    Parameters
    ----------
    proba_target : array-like of shape (n_samples,)
        P(Y = 1 | x), in [0, 1].
    y_pred : array-like of shape (n_samples,)
        Base decisions, 0 or 1; or P(base decision = 1 | x) where they are randomised.
    fairness_margin : array-like of shape (n_samples,) or float, default=0.0
        From `p_rule_margin`, `balanced_cost_margin` or `equalized_odds_margin`.
    cost : float, default=0.5
        Weight c of false positives, in [0, 1]; false negatives weigh 1 - c.
    lambda_ratio : float, default=0.0
        Cost of one changed decision, 0 or more.

    Returns
    -------
    ndarray of shape (n_samples,)
        Decide positively where the score is above 0; at 0 both decisions are optimal.

    Notes
    -----
    The paper's printed score has the two multipliers swapped and the sign of the change term
    reversed. Its lemma also needs c* = P(base decision = 0), not the share of new positives:
    P(change) = (1 - c*) P(new 0 | base 1) + c* P(new 1 | base 0).

    Examples
    --------
    >>> bayes_optimal_scores([0.7, 0.4], [1, 1], lambda_ratio=0.2)
    array([0.4, 0.1])
    """
    check_same_rows(
        {"proba_target": proba_target, "y_pred": y_pred, "fairness_margin": fairness_margin}
    )
    target = _probabilities(proba_target, "proba_target")
    base = _probabilities(y_pred, "y_pred", len(target))
    _check_number(cost, "cost", 0, 1)
    _check_number(lambda_ratio, "lambda_ratio", 0, math.inf)
    margin = np.asarray(fairness_margin, dtype=np.float64)
    if margin.ndim:
        check_length(margin, "fairness_margin", len(target))
    return target - cost + margin + lambda_ratio * (2 * base - 1)


def p_rule_margin(
    proba_group: Any,
    *,
    multiplier: float,
    target: float,
    disadvantaged: int = 0,
    group_share: float | None = None,
) -> Floats:
    """Return what a positive decision is worth for a P-rule of at least `target`, per row.

    The constraint is that the disadvantaged group's rate is at least `target` times the other's.

    Parameters
    ----------
    proba_group : array-like of shape (n_samples,)
        P(S = 1 | x), in [0, 1].
    multiplier : float
        Weight mu of the constraint, 0 or more; 0 gives no margin.
    target : float
        Floor tau on the P-rule, in (0, 1].
    disadvantaged : {0, 1}, default=0
        The group with the lower rate.
    group_share : float, default=None
        P(S = 1), in (0, 1); None means the mean of `proba_group`.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> p_rule_margin([0, 0, 1, 1], multiplier=0.1, target=0.8).round(3)
    array([ 0.2 ,  0.2 , -0.16, -0.16])
    """
    group = _probabilities(proba_group, "proba_group")
    share = _share(group, group_share)
    _check_number(multiplier, "multiplier", 0, math.inf)
    _check_number(target, "target", 0, 1)
    if disadvantaged not in (0, 1):
        raise InputError(
            f"disadvantaged={disadvantaged!r} must be 0 or 1, a value of S.",
            parameter="disadvantaged",
        )
    one, zero = group / share, (1 - group) / (1 - share)
    return multiplier * (zero - target * one if disadvantaged == 0 else one - target * zero)


def balanced_cost_margin(
    proba_group: Any,
    *,
    lambda_fair: float,
    cost_group: float = 0.5,
    group_share: float | None = None,
) -> Floats:
    """Return what a positive decision is worth for the balanced cost of predicting the group.

    The paper's Lagrangian regards the decision as a prediction of S. The term in the risk is
    -`lambda_fair` times the balanced cost-sensitive risk
    (1 - c) P(decision 0 | S = 1) + c P(decision 1 | S = 0). With c = 1 / (1 + tau), this risk is at
    least tau / (1 + tau) exactly where the rate of group 0 is at least tau times that of group 1.

    Parameters
    ----------
    proba_group : array-like of shape (n_samples,)
        P(S = 1 | x), in [0, 1].
    lambda_fair : float
        Any real number; a positive one favours group 0, a negative one group 1.
    cost_group : float, default=0.5
        The weight c, in [0, 1].
    group_share : float, default=None
        P(S = 1), in (0, 1); None means the mean of `proba_group`.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> balanced_cost_margin([0, 0, 1, 1], lambda_fair=0.1)
    array([ 0.1,  0.1, -0.1, -0.1])
    """
    group = _probabilities(proba_group, "proba_group")
    share = _share(group, group_share)
    _check_number(lambda_fair, "lambda_fair", -math.inf, math.inf)
    _check_number(cost_group, "cost_group", 0, 1)
    return -lambda_fair * (
        (1 - cost_group) * group / share - cost_group * (1 - group) / (1 - share)
    )


def equalized_odds_margin(
    proba_joint: Any, *, multipliers: tuple[float, float], cell_shares: Any = None
) -> Floats:
    """Return what a positive decision is worth for equal rates among each true label, per row.

    The term in the risk is the sum over y of multipliers[y] times
    P(decision 1 | Y = y, S = 1) - P(decision 1 | Y = y, S = 0).

    Parameters
    ----------
    proba_joint : array-like of shape (n_samples, 2, 2)
        P(Y = y, S = s | x) at [:, y, s]. It is the product of P(Y = y | x) and P(S = s | x) where
        the group is known, or where the label does not depend on the group given x.
    multipliers : tuple of two floats
        For y = 0 (false positive rates) and y = 1 (true positive rates). Any real numbers;
        positive ones favour group 0.
    cell_shares : array-like of shape (2, 2), default=None
        P(Y = y, S = s), all positive; None means the mean of `proba_joint`.

    Returns
    -------
    ndarray of shape (n_samples,)

    Examples
    --------
    >>> joint = [[[0.5, 0.0], [0.5, 0.0]], [[0.0, 0.5], [0.0, 0.5]]]
    >>> equalized_odds_margin(joint, multipliers=(0.0, 0.1))
    array([ 0.2, -0.2])
    """
    joint = np.asarray(proba_joint, dtype=np.float64)
    if joint.ndim != 3 or joint.shape[1:] != (2, 2):
        raise InputError(
            "proba_joint must have shape (n_samples, 2, 2), P(Y = y, S = s | x) at [:, y, s]; got "
            f"shape {joint.shape}.",
            parameter="proba_joint",
        )
    _probabilities(joint.ravel(), "proba_joint")
    shares = joint.mean(axis=0) if cell_shares is None else np.asarray(cell_shares, np.float64)
    if shares.shape != (2, 2) or not (shares > 0).all():
        raise InputError(
            f"cell_shares must be four positive shares P(Y = y, S = s); got {shares.tolist()}. A "
            "group without one of the labels has no rate to equalise.",
            parameter="cell_shares",
        )
    weights = np.asarray(multipliers, dtype=np.float64)
    if weights.shape != (2,) or not np.isfinite(weights).all():
        raise InputError(
            f"multipliers={multipliers!r} must be two finite numbers.", parameter="multipliers"
        )
    per_cell = joint / shares
    return np.asarray((per_cell[:, :, 0] - per_cell[:, :, 1]) @ weights)


def _probabilities(values: Any, name: str, n_rows: int | None = None) -> Floats:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "biuf" or len(array) == 0:
        raise InputError(
            f"{name} must be one number per row; got {array.dtype} of shape {array.shape}.",
            parameter=name,
        )
    if n_rows is not None:
        check_length(array, name, n_rows)
    n_wrong = int((~((array >= 0) & (array <= 1))).sum())  # NaN is wrong too
    if n_wrong:
        raise InputError(
            f"{name} has {n_of(n_wrong, 'value')} outside [0, 1] or NaN; probabilities are needed.",
            parameter=name,
        )
    return array.astype(np.float64)


def _share(group: Floats, group_share: float | None) -> float:
    share = float(group.mean()) if group_share is None else group_share
    if not 0 < share < 1:
        raise InputError(
            f"group_share={share!r} must lie between 0 and 1: it is the share of group 1. Pass "
            "rows of both groups, or the share.",
            parameter="group_share",
        )
    return share


def _check_number(value: float, name: str, least: float, most: float) -> None:
    check_number_parameter(value, name, Real)
    if not least <= value <= most:
        raise InputError(
            f"{name}={value!r} must be a finite number in [{least}, {most}].", parameter=name
        )
