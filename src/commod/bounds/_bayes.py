"""Compute the Bayes-optimal update: scores whose sign is the best decision at given multipliers.

For a row x, `proba_target` is P(Y = 1 | x). A score sums up what a positive decision is worth: for
accuracy, for fairness, and for few changes.
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
        What a positive decision is worth for fairness.
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


def _check_number(value: float, name: str, least: float, most: float) -> None:
    check_number_parameter(value, name, Real)
    if not least <= value <= most:
        raise InputError(
            f"{name}={value!r} must be a finite number in [{least}, {most}].", parameter=name
        )
