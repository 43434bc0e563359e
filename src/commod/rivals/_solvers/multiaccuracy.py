"""Boosting until no ridge regression finds the errors of a score on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from commod._solvers.design import Design
from commod.rivals._solvers.softmax_regression import mean_products

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

N_SETS = 3  # rows with a negative base decision, with a positive one, and all rows
EVERYONE = 2
STEEPEST = 0.1  # within this distance of 0 and 1, the residual is a straight line


@dataclass(frozen=True)
class AuditedRows:
    """The n rows that are audited.

    - `margin`: logit of the score minus logit of the threshold, finite.
    - `log_odds`: logit of the threshold, so that expit(margin + log_odds) is the score.
    - `trains`, `is_held_out`: which rows the auditors learn from, and which rows they are tested
      on. Both may be the same rows.
    """

    design: Design
    margin: Floats
    log_odds: float
    positive: Mask
    label: Mask
    weight: Floats
    trains: Mask
    is_held_out: Mask

    @property
    def sets(self) -> tuple[Mask, Mask, Mask]:
        """Return the members of the three sets that are audited."""
        return ~self.positive, self.positive, np.ones(len(self.positive), dtype=bool)


class BoostRound(NamedTuple):
    """One round: the set that it corrects, and the auditor's weights (d,) and intercept."""

    audited: int
    weights: Floats
    intercept: float


class BoostingPath(NamedTuple):
    """Every round of boosting, and what was measured before each round and after the last.

    - `correlations`: the correlation of the three sets at each audit; −inf for a set without rows.
    - `accuracies`: the accuracy on held-out rows before each round, and after the last.
    """

    rounds: list[BoostRound]
    correlations: list[Floats]
    accuracies: list[float]

    def best_round(self, n_rounds: int) -> int:
        """Return how many of the first `n_rounds` give the best accuracy; the fewest of equals."""
        return int(np.argmax(self.accuracies[: n_rounds + 1]))

    def total(self, n_rounds: int, positive: bool, width: int) -> tuple[Floats, float]:
        """Return the sum of the auditors of the first rounds, for rows of one base decision."""
        weights, intercept = np.zeros(width), 0.0
        for audited, more_weights, more in self.rounds[:n_rounds]:
            if audited in (int(positive), EVERYONE):
                weights, intercept = weights + more_weights, intercept + more
        return weights, intercept


def signed_residuals(scores: Floats, label: Mask) -> Floats:
    """Return the derivative of the cross-entropy by the score, shape (n,).

    It is −1/score for a positive label and 1/(1 − score) for a negative one. Where the score is
    within 0.1 of the wrong end, it goes on as a straight line: no residual exceeds 20.

    Examples
    --------
    >>> signed_residuals(np.array([0.5, 0.05, 0.8]), np.array([True, True, False])).round(3)
    array([ -2., -15.,   5.])
    """
    right = np.where(label, scores, 1 - scores)  # the probability of the true label
    near = np.maximum(right, STEEPEST)
    size = 1 / near + (near - right) / STEEPEST**2
    return np.where(label, -size, size)


class FittedAuditor(NamedTuple):
    """A ridge regression: weights (d,) and intercept on the design, and h (n,) of every row."""

    weights: Floats
    intercept: float
    predicted: Floats


class RidgeAuditor:
    """Ridge regressions on the same weighted rows: the products of columns are computed once.

    The penalty counts rows, as in scikit-learn's `Ridge(alpha=ridge)`, and leaves the intercept
    free. A weight of 2 means two rows; weights below 1 on average do not make the rows fewer.
    """

    def __init__(self, design: Design, weight: Floats, ridge: float) -> None:
        self.design, self.share = design, unit_sum(weight)
        n_rows = max(float(weight.sum()), float(np.count_nonzero(weight)))
        penalty = np.append(np.full(design.width, ridge / n_rows), 0.0)
        self.factor = cho_factor(mean_products(design, self.share) + np.diag(penalty))

    def fit(self, residuals: Floats) -> FittedAuditor:
        """Return the regression of residuals (n,)."""
        weighted = self.share * residuals
        table = cho_solve(self.factor, np.append(self.design.gradient(weighted), weighted.sum()))
        predicted = self.design.times(table[:-1]) + table[-1]
        return FittedAuditor(table[:-1], float(table[-1]), predicted)


def unit_sum(weight: Floats) -> Floats:
    """Return weights that sum to 1; weights that sum to 0 stay as they are."""
    total = weight.sum()
    return weight / total if total > 0 else weight


def boost(
    rows: AuditedRows, *, n_rounds: int, ridge: float, learning_rate: float, alpha: float
) -> BoostingPath:
    """Return at most `n_rounds` rounds; fewer where no audited correlation exceeds `alpha`.

    A round fits one auditor h to the residuals of each set, by a ridge regression on the training
    rows. Its correlation is the mean of h · (score − label) over the held-out rows of the set. The
    auditor with the largest correlation, times the learning rate, is subtracted from the logits of
    its set.
    """
    path, margin = BoostingPath([], [], []), rows.margin.copy()
    tested = [unit_sum(rows.weight * (rows.is_held_out & members)) for members in rows.sets]
    auditors = {
        k: RidgeAuditor(rows.design, rows.weight * (rows.trains & members), ridge)
        for k, members in enumerate(rows.sets)
        if (rows.trains & members).any() and (rows.is_held_out & members).any()
    }
    while True:
        scores = expit(margin + rows.log_odds)
        path.accuracies.append(float(tested[EVERYONE] @ ((margin > 0) == rows.label)))
        residuals = signed_residuals(scores, rows.label)
        fitted = {k: auditor.fit(residuals) for k, auditor in auditors.items()}
        correlations = np.full(N_SETS, -np.inf)
        for k, auditor in fitted.items():
            correlations[k] = tested[k] @ (auditor.predicted * (scores - rows.label))
        path.correlations.append(correlations)
        worst = int(np.argmax(correlations))
        if not correlations[worst] > alpha or len(path.rounds) == n_rounds:
            return path
        path.rounds.append(BoostRound(worst, fitted[worst].weights, fitted[worst].intercept))
        margin -= learning_rate * np.where(rows.sets[worst], fitted[worst].predicted, 0.0)
