"""MultiaccuracyBoost (Kim, Ghorbani and Zou 2019): correct errors that an auditor can find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, logit

from commod._data.arrays import Floats, Mask
from commod._text import n_of
from commod.rivals._group_model import mean_products, moments_of_numbers, term_matrix
from commod.rivals._rows import DecisionRows, RivalFitRows
from commod.rivals.base import ScoredRival, TermsRival, choice, number
from commod.scorecard import margins
from commod.updates.base import LARGEST_WEIGHT

# ---------------------------------------------------------------------------------------------
# Boosting until no ridge regression finds the errors of a score on held-out rows


@dataclass(eq=False, repr=False, kw_only=True)
class MultiaccuracyBoost(ScoredRival, TermsRival):
    """Correct the scores until no auditor finds people for whom they are wrong on average.

    An auditor is a ridge regression of the score's errors on the columns. Three sets of rows are
    audited: those with a negative base decision, those with a positive one, and all. Each round
    subtracts the auditor h that finds most: logit q ← logit q − learning_rate · h(x), in its set.
    The new score is a sum of points per column, one table for each base decision.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=1.0
        The share of `max_iter` rounds that may be done, in [0, 1]: the authors' T is strength ·
        max_iter, rounded. 0 changes nothing.
    max_iter : int, default=100
        The largest number of rounds.
    alpha : float, default=1e-4
        Boosting stops where no auditor's correlation exceeds alpha. The correlation is the mean of
        h(x) · (score − label) over the held-out rows of a set.
    learning_rate : float, default=0.1
        The step of a round, η in the paper.
    ridge : float, default=1.0
        The penalty of the auditors, per row, as in scikit-learn's `Ridge(alpha=ridge)`.
    validation_fraction : float, default=0.3
        Share of the rows that are held out from the auditors, to measure their correlation and the
        accuracy of each round. 0 measures both on the rows that the auditors learn from.
    keep : str, default="best"
        "best" keeps the round with the best accuracy on held-out rows, the earliest of equals.
        "last" keeps the last round, the one that passes the audit if boosting stops by itself.
    constraints : str, default="demographic_parity"
        The metric that measures the result: any of the four names. The method does not aim at any
        of them, and none has to improve. It needs y for all of them.
    locked_features : sequence of str, default=()
        Columns that the auditors must not read; the base model still gets them.
    min_category_size : int, default=20
        Fit rows that a category needs to become a term; rarer categories count as unseen.
    min_group_size : int, default=30
        Fit rows that a group needs to be part of the metric. The method itself reads no group.
    threshold : float, default=0.5
        The base decision is score > threshold. The score is read as P(Y = 1 | x) and is not
        shifted.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.
    random_state : int, RandomState or None, default=None
        Seed of the held-out split.

    Attributes
    ----------
    n_iter_ : int
        The number of rounds that the new score has.
    correlations_ : ndarray of shape (3,)
        The last audit: the largest correlation found among rows with a negative base decision, with
        a positive one, and among all. −inf for a set without rows.
    audit_passed_ : bool
        Whether the last audit found no correlation above alpha. With `keep="best"`, the kept round
        can be an earlier one.
    accuracies_ : ndarray of shape (n_rounds + 1,)
        The accuracy on held-out rows before the first round and after each round.
    points_ : ndarray of shape (2, d)
        The points of each term, for rows with a negative (0) and a positive (1) base decision.
    intercepts_ : ndarray of shape (2,)
        What is added to the logit before any points.
    term_names_ : list of str
        Names of the d terms.

    Notes
    -----
    The residual is the derivative of the cross-entropy, −1/q or 1/(1 − q), as a straight line where
    q is within 0.1 of the wrong end. The authors' notebook loses the sign of positive labels, takes
    the first set above alpha, and ends after the first round on all rows. This class has the sign,
    takes the set with the largest correlation, as the paper does, and goes on.

    Sample weights count in the regressions, the correlations and the accuracy. To audit the
    sensitive feature itself, it must be a column of X.

    References
    ----------
    Kim, Ghorbani, Zou: "Multiaccuracy: Black-Box Post-Processing for Fairness in Classification",
    AIES 2019.

    Examples
    --------
    >>> from commod import ScoreColumn
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import MultiaccuracyBoost
    >>> data = make_biased(800, random_state=0)
    >>> table = data.data.assign(score=data.proba_target**3)  # scores that are too low
    >>> update = MultiaccuracyBoost(ScoreColumn("score"), random_state=0)
    >>> update = update.fit(table, data.target, sensitive_features=data.sensitive_features)
    >>> bool(update.accuracy_ > update.base_accuracy_)
    True
    >>> update.points_.shape == (2, len(update.term_names_))
    True
    """

    max_iter: int = number(100, low=0, whole=True)
    alpha: float = number(1e-4, low=0.0, high=LARGEST_WEIGHT)
    learning_rate: float = number(0.1, low=0.0, high=LARGEST_WEIGHT, include="right")
    ridge: float = number(1.0, low=0.0, high=LARGEST_WEIGHT, include="right")
    validation_fraction: float = number(0.3, low=0.0, high=0.9, is_share=True)
    keep: str = choice("best", "last")
    random_state: Any = None

    needs_labels = True
    largest_strength = 1.0

    @property
    def _most_rounds(self) -> int:
        """Return T, the number of rounds that the strength allows."""
        return round(float(self.strength) * int(self.max_iter))

    # -- learning -------------------------------------------------------------------------------

    def _learn_all(self, models: Sequence[Self], rows: RivalFitRows) -> None:
        """Boost once, as long as the strongest model needs; the others keep fewer rounds."""
        label = rows.needed_labels("MultiaccuracyBoost corrects errors")
        used = rows.weight > 0
        weight = rows.weight[used]
        columns = [column.take(used) for column in rows.columns]
        encoding, terms = self._learn_terms(columns, weight)
        mean, scale = moments_of_numbers(terms, weight)
        path = self._boost(
            term_matrix(terms, mean, scale),
            margins(rows.base.scores[used], rows.base.threshold),
            rows.base.decisions[used],
            label[used],
            weight,
            log_odds=float(logit(rows.base.threshold)),
            n_rounds=max(model._most_rounds for model in models),
        )
        for model in models:
            model._encoding, model.term_names_ = encoding, encoding.term_names
            model._store_rounds(path, mean, scale)

    def _boost(
        self,
        matrix: Any,
        margin: Floats,
        positive: Mask,
        label: Mask,
        weight: Floats,
        *,
        log_odds: float,
        n_rounds: int,
    ) -> BoostingPath:
        """Return at most `n_rounds` rounds; fewer where no audited correlation exceeds alpha.

        A round fits one auditor h to the residuals of each set, by a ridge regression on the
        training rows. `matrix` has the standardised terms; the score is expit(margin + log_odds).
        The correlation is the mean of h · (score − label) over the held-out rows of the set. The
        auditor with the largest correlation, times the learning rate, is subtracted from the logits
        of its set.
        """
        sets = ~positive, positive, np.ones(len(positive), dtype=bool)
        trains, is_held_out = _split(len(weight), float(self.validation_fraction), self._draw_seed)
        tested = [unit_sum(weight * (is_held_out & members)) for members in sets]
        auditors = {
            k: ridge_auditor(matrix, weight * (trains & members), float(self.ridge))
            for k, members in enumerate(sets)
            if (trains & members).any() and (is_held_out & members).any()
        }
        path: BoostingPath = [], [], []
        rounds, audits, accuracies = path
        while True:
            scores = expit(margin + log_odds)
            accuracies.append(float(tested[EVERYONE] @ ((margin > 0) == label)))
            residuals = signed_residuals(scores, label)
            fitted = {k: auditor(residuals) for k, auditor in auditors.items()}
            correlations = np.full(len(sets), -np.inf)
            for k, (_, predicted) in fitted.items():
                correlations[k] = tested[k] @ (predicted * (scores - label))
            audits.append(correlations)
            worst = int(np.argmax(correlations))
            if not correlations[worst] > float(self.alpha) or len(rounds) == n_rounds:
                return path
            table, predicted = fitted[worst]
            rounds.append((worst, table))
            margin -= float(self.learning_rate) * np.where(sets[worst], predicted, 0.0)

    def _store_rounds(self, path: BoostingPath, mean: Floats, scale: Floats) -> None:
        """Store the first rounds of the path as points on raw columns."""
        rounds, audits, accuracies = path
        n_rounds = min(self._most_rounds, len(rounds))
        self.accuracies_ = np.array(accuracies[: n_rounds + 1])
        self.correlations_ = audits[n_rounds]
        self.audit_passed_ = not bool((self.correlations_ > self.alpha).any())
        # the best accuracy, with the fewest rounds of equals
        self.n_iter_ = int(np.argmax(self.accuracies_)) if self.keep == "best" else n_rounds
        self.points_, self.intercepts_ = np.zeros((2, len(mean))), np.zeros(2)
        for positive in (0, 1):
            kept = [table for k, table in rounds[: self.n_iter_] if k in (positive, EVERYONE)]
            table = -float(self.learning_rate) * sum(kept, np.zeros(len(mean) + 1))
            self.points_[positive] = table[:-1] / scale
            self.intercepts_[positive] = table[-1] - self.points_[positive] @ mean

    def _remarks(self) -> Iterator[str]:
        yield from super()._remarks()
        n_tried = len(self.accuracies_) - 1
        audit = "passes" if self.audit_passed_ else "does not pass"
        yield f"The last of {n_of(n_tried, 'round')} {audit} the audit."
        if n_tried > self.n_iter_:
            yield f"The best held-out accuracy is that of {n_of(self.n_iter_, 'round')}."

    # -- deciding -------------------------------------------------------------------------------

    def _new_scores(self, rows: DecisionRows) -> Floats:
        """Return the new score of each row, shape (n,); bit for bit the base score if unmoved."""
        if not (self.points_.any() or self.intercepts_.any()):
            return rows.base.scores
        terms = self._encoding.encode(rows.columns)
        rejected, accepted = (
            terms.total(points, float(start))
            for points, start in zip(self.points_, self.intercepts_, strict=True)
        )
        added = np.where(rows.base.decisions, accepted, rejected)
        margin = margins(rows.base.scores, rows.base.threshold) + added
        edited = expit(margin + logit(rows.base.threshold))
        return np.where(added == 0, rows.base.scores, edited)


def _split(n_rows: int, held_out_share: float, seed: int) -> tuple[Mask, Mask]:
    """Return which rows train and which are held out; all rows are both if one part is empty."""
    n_held_out = round(held_out_share * n_rows)
    if not 0 < n_held_out < n_rows:
        return np.ones(n_rows, dtype=bool), np.ones(n_rows, dtype=bool)
    is_held_out = np.zeros(n_rows, dtype=bool)
    is_held_out[np.random.default_rng(seed).permutation(n_rows)[:n_held_out]] = True
    return ~is_held_out, is_held_out


EVERYONE = 2  # the sets: rows with a negative base decision, with a positive one, and all rows
STEEPEST = 0.1  # within this distance of 0 and 1, the residual is a straight line

# Every round of boosting: the set that it corrects, and its auditor (d + 1,), the intercept last.
# Then the correlations of the sets at each audit (−inf for a set without rows), and the accuracy on
# held-out rows before each round and after the last.
BoostingPath = tuple[list[tuple[int, Floats]], list[Floats], list[float]]


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


def ridge_auditor(
    matrix: Any, weight: Floats, ridge: float
) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Return ridge regressions on weighted rows: the products of columns are computed once.

    The result is a function of residuals (n,). It returns the weights, intercept last (d + 1,), and
    the prediction of every row (n,). The penalty counts rows, as in scikit-learn's
    `Ridge(alpha=ridge)`, and leaves the intercept free. A weight of 2 means two rows; weights below
    1 on average do not make the rows fewer.
    """
    share = unit_sum(weight)
    n_rows = max(float(weight.sum()), float(np.count_nonzero(weight)))
    penalty = np.append(np.full(matrix.shape[1], ridge / n_rows), 0.0)
    factor = cho_factor(mean_products(matrix, share) + np.diag(penalty))

    def fit(residuals: Floats) -> tuple[Floats, Floats]:
        weighted = share * residuals
        table = cho_solve(factor, np.append(matrix.T @ weighted, weighted.sum()))
        return table, matrix @ table[:-1] + table[-1]

    return fit


def unit_sum(weight: Floats) -> Floats:
    """Return weights that sum to 1; weights that sum to 0 stay as they are."""
    total = weight.sum()
    return weight / total if total > 0 else weight
