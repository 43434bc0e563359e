"""Scores nearest to the base scores whose means agree between groups: two rivals, one dual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize, nnls
from scipy.special import expit, logit, xlogy

from commod._data.arrays import Floats, Mask
from commod.rivals._group_model import GroupProbabilityRival
from commod.rivals._rows import HALF, DecisionRows, RivalFitRows, from_half
from commod.rivals.base import ScoredRival, choice, number
from commod.rivals.plug_in import fair_margins
from commod.updates.base import LARGEST_WEIGHT

TIE = 1e-9  # new scores are more precise than this: a score so close to 0.5 is a tie
LEAST_GAP = 1e-12  # mean scores that differ by less are equal up to rounding


class FairScoreTransformer(ScoredRival, GroupProbabilityRival):
    """Move the scores as little as possible until the groups' mean scores are close.

    The new score q minimises the cross-entropy E[−f log q − (1 − f) log(1 − q)] with the base score
    f, which counts as P(Y = 1 | x). The mean score of each group must be within ε of the mean score
    of all groups. For constraints that compare errors, the means are those of the rows with one
    true label. The solution has a closed form: f pays a price μ = Σ m_j γ_j. The effect γ_j is
    P(S = j | x) / P(S = j), or P(S = j, Y = y | x) / P(S = j, Y = y). The decision is q > 0.5, as
    published.

    Equal mean scores are not equal rates of decisions: a group can have many scores just below 0.5.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted. Its scores should be calibrated probabilities.
    strength : float, default=1.0
        Share of the largest difference between a group's mean base score and the mean of all groups
        that must go, in [0, 1]. The authors' ε is (1 − strength) times this difference. 0 changes
        neither decisions nor scores; 1 requires equal mean scores.
    aware : bool, default=False
        If True, `predict` takes the group of each row instead of predicting it.
    group_model : classifier, default=None
        Predicts the group from X where `aware` is False; for constraints that compare errors, also
        the true label. Pass it unfitted: a clone is fitted on X as passed, locked features
        included. None means a logistic regression on numbers, their bins, and categories.
    constraints : str, default="demographic_parity"
        Which mean scores must be close: those of all rows ("demographic_parity", the authors' mean
        score parity), of the rows with either true label ("equalized_odds", their generalised
        equalized odds), or with one ("true_positive_rate_parity", "false_positive_rate_parity").
    locked_features : sequence of str, default=()
        Columns that the built-in group model must not read.
    min_category_size : int, default=20
        Fit rows that a category needs before the built-in group model reads it.
    min_group_size : int, default=30
        Fit rows that a group needs to be part of the constraint.
    threshold : float, default=0.5
        The base decision is score > threshold.
        The method compares new scores with 0.5. So the score and its threshold are shifted on the
        logit scale until the threshold is 0.5.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.

    Attributes
    ----------
    multipliers_ : ndarray of shape (n_rate_rows, n_groups)
        m; zeros where nothing changes. Equalized odds has two rate rows, true label 1 first.
    tolerance_ : float
        The authors' ε; NaN where a mean is undefined because a cell is empty.
    shares_ : ndarray of shape (n_rate_rows, n_groups)
        P(S = j), or P(S = j, Y = y), the denominators of γ.
    group_model_ : object
        The fitted group model; None where `aware` is True.

    Notes
    -----
    L-BFGS-B and Newton steps solve the dual, which has two multipliers for each group and rate row.
    The authors use ADMM. A new score that is 0.5 up to 1e-9 keeps its base decision.

    For constraints that compare errors, the aware form takes f as P(Y = 1 | x). The other form
    takes P(S, Y | x) from the group model.

    References
    ----------
    Wei, Ramamurthy, Calmon: "Optimized Score Transformation for Fair Classification", AISTATS 2020.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import FairScoreTransformer
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = FairScoreTransformer(model)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> bool(update.fairness_ > update.base_fairness_)
    True
    >>> update.predict_proba(data.data).shape
    (800, 2)
    """

    tolerance_: float
    divergence = "cross_entropy"  # the distance of scores that is minimised

    def _gap(self, means: MeanScores) -> float:
        """Return the gap of the base scores, in the unit of the tolerance."""
        return difference_gap(means, means.scores)

    def _dual(self, means: MeanScores, tolerance: float) -> Dual:
        """Return the dual of the constraints with this tolerance."""
        return difference_dual(means, tolerance, self.divergence)

    # -- learning -------------------------------------------------------------------------------

    def _learn_all(self, models: Sequence[Self], rows: RivalFitRows) -> None:
        """Fit the group model once; solve the weakest strength first, each start at the last."""
        counted, share, effects = self._learn_cells(models, rows)
        means = MeanScores(rows.scores_at_half[counted], share, effects, self.shares_)
        gap = self._gap(means) if self._is_defined(rows) else np.nan
        start = None
        for model in sorted(models, key=lambda model: float(model.strength)):
            model.tolerance_ = (1 - float(model.strength)) * gap
            if model.strength > 0 and gap > LEAST_GAP:
                start, prices = best_prices(self._dual(means, model.tolerance_), start)
                model.multipliers_ = prices.reshape(self.shares_.shape)

    def _remarks(self) -> Iterator[str]:
        yield from super()._remarks()
        if np.isnan(self.tolerance_) and (self.shares_ > 0).all():
            yield "Nothing changes: one of the groups has no rows with one of the true labels."

    # -- deciding -------------------------------------------------------------------------------

    def _scores_at_half(self, rows: DecisionRows) -> Floats:
        """Return the new scores, shape (n,), shifted so that their threshold is 0.5."""
        scores = rows.scores_at_half
        if not self.multipliers_.any():
            return scores
        price = -fair_margins(np.zeros(len(rows)), self._effects(rows), self.multipliers_)
        return projected_scores(scores, price, self._fitted_param("divergence"))

    def _new_scores(self, rows: DecisionRows) -> Floats:
        new = self._scores_at_half(rows)
        moved = from_half(new, rows.base.threshold)
        return np.where(new == rows.scores_at_half, rows.base.scores, moved)

    def _decide(self, rows: DecisionRows) -> Mask:
        new = self._scores_at_half(rows)
        keeps = (new == rows.scores_at_half) | (np.abs(new - HALF) <= TIE)
        return np.where(keeps, rows.base.decisions, new > HALF)


@dataclass(eq=False, repr=False, kw_only=True)
class FairProjection(FairScoreTransformer):
    """Project the base model onto the models whose groups have similar mean scores.

    Of all such models, the new one has the smallest divergence from the base model. The base score
    f counts as P(Y = 1 | x). In each group, the mean score divided by the mean score of all groups
    must be within 1 ± α; so must the mean of one minus the score. For constraints that compare
    errors, the mean scores of the true label are compared: q in the rows with label 1, 1 − q in
    those with label 0.

    The solution has a closed form: f pays a price μ = Σ m_j γ_j. The effect γ_j is
    P(S = j | x) / P(S = j), or P(S = j, Y = y | x) / P(S = j, Y = y). With "kl", the new logit is
    the old logit minus μ. The decision is q > 0.5, as published.

    Equal mean scores are not equal rates of decisions: a group can have many scores just below 0.5.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted. Its scores should be calibrated probabilities.
    strength : float, default=1.0
        Share of the largest deviation of these ratios from 1 that must go, in [0, 1]. The authors'
        tolerance α is (1 − strength) times the deviation of the base scores. 0 changes neither
        decisions nor scores; 1 requires equal mean scores.
    divergence : str, default="kl"
        "kl", the Kullback-Leibler divergence of the new scores from the base scores, or
        "cross_entropy", with which the method equals `FairScoreTransformer` at strength 1.
    regularisation : float, default=0.0
        The authors' ζ, a penalty on the multipliers that makes their solver converge. With it, a
        part of the gap remains even at strength 1. Their code has n^−½ for n rows.
    aware : bool, default=False
        If True, `predict` takes the group of each row instead of predicting it.
    group_model : classifier, default=None
        Predicts the group from X where `aware` is False; for constraints that compare errors, also
        the true label. Pass it unfitted: a clone is fitted on X as passed, locked features
        included. None means a logistic regression on numbers, their bins, and categories.
    constraints : str, default="demographic_parity"
        Which mean scores must be close: those of all rows ("demographic_parity"), of the rows with
        either true label ("equalized_odds", the authors' mean equalized odds), or with one
        ("true_positive_rate_parity", "false_positive_rate_parity").
    locked_features : sequence of str, default=()
        Columns that the built-in group model must not read.
    min_category_size : int, default=20
        Fit rows that a category needs before the built-in group model reads it.
    min_group_size : int, default=30
        Fit rows that a group needs to be part of the constraint.
    threshold : float, default=0.5
        The base decision is score > threshold.
        The method compares new scores with 0.5. So the score and its threshold are shifted on the
        logit scale until the threshold is 0.5.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.

    Attributes
    ----------
    multipliers_ : ndarray of shape (n_rate_rows, n_groups)
        m; zeros where nothing changes. Equalized odds has two rate rows, true label 1 first.
    tolerance_ : float
        The authors' α; NaN where a mean is undefined because a cell is empty.
    shares_ : ndarray of shape (n_rate_rows, n_groups)
        P(S = j), or P(S = j, Y = y), the denominators of γ.
    group_model_ : object
        The fitted group model; None where `aware` is True.

    Notes
    -----
    L-BFGS-B and Newton steps solve the dual. The authors use ADMM and add random noise to the
    constraints, in `fit` and in `predict`; this class adds none. With "kl", scores closer than 1e-6
    to 0 or 1 are moved to that distance before they pay a price other than 0. A new score that is
    0.5 up to 1e-9 keeps its base decision. The aware form of constraints that compare errors takes
    f as P(Y = 1 | x); the other form takes P(S, Y | x) from the group model.

    References
    ----------
    Alghamdi, Hsu, Jeong, Wang, Michalák, Asoodeh, Calmon: "Beyond Adult and COMPAS: Fair
    Multi-Class Prediction via Information Projection", NeurIPS 2022.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import FairProjection
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = FairProjection(model, divergence="kl")
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> bool(update.fairness_ > update.base_fairness_)
    True
    >>> update.predict_proba(data.data).shape
    (800, 2)
    """

    divergence: str = choice("kl", "cross_entropy")
    regularisation: float = number(0.0, low=0.0, high=LARGEST_WEIGHT)

    @property
    def _compared_labels(self) -> list[tuple[bool, ...]]:
        """Return the labels whose scores are compared in each rate row."""
        rows = self._constraint.rate_rows
        return [(True, False) if row.label is None else (row.label,) for row in rows]

    def _gap(self, means: MeanScores) -> float:
        return ratio_gap(means, means.scores, self._compared_labels)

    def _dual(self, means: MeanScores, tolerance: float) -> Dual:
        labels, penalty = self._compared_labels, float(self.regularisation)
        return ratio_dual(means, labels, tolerance, self.divergence, penalty)


# ---------------------------------------------------------------------------------------------
# Scores nearest to the base scores whose means agree between groups, by the dual
#
# Two methods share this problem: the fair score transformer (Wei, Ramamurthy, Calmon 2020) and
# model projection (Alghamdi et al. 2022). Row i has the base score f_i and the new score q_i.
#
# 1. The mean score of cell j is the mean of γ_ji · q_i: γ_j is the row's probability to be in the
#    cell over the cell's share, an effect.
# 2. A constraint limits a linear form of these means. Its multiplier is λ_k ≥ 0.
# 3. The multipliers give every row a price μ_i = Σ_j m_j γ_ji with m = λ · forms. The new score
#    minimises divergence(f_i, q) + μ_i q, which has a closed form.
# 4. The best multipliers minimise a smooth convex function of few variables, the dual.

# A score of 0 or 1 never moves under the Kullback-Leibler divergence, and parity could be out of
# reach. The authors move every score by 1e-4 instead.
LEAST_SCORE = 1e-6
N_ITERATIONS, N_NEWTON, N_HALVINGS = 500, 50, 30
RIDGE = 1e-10  # of the second derivatives, relative to their sum
ACCURACY = 1e-13  # of the means of the scores: far below what any decision can show


def projected_scores(scores: Floats, price: Floats, divergence: str) -> Floats:
    """Return the q in [0, 1] with the least divergence(f, q) + price·q, shape (n,).

    A price of 0 returns the scores as they are.

    - "cross_entropy": divergence −f log q − (1 − f) log(1 − q), the cross-entropy.
    - "kl": divergence q log(q/f) + (1 − q) log((1 − q)/(1 − f)).

    Examples
    --------
    >>> scores, price = np.array([0.8, 0.4]), np.array([5 / 6, -5 / 6])
    >>> projected_scores(scores, price, "cross_entropy").round(6)
    array([0.6, 0.6])
    """
    if divergence == "kl":
        moved = expit(logit(np.clip(scores, LEAST_SCORE, 1 - LEAST_SCORE)) - price)
    else:  # the root in [0, 1] of price·q² − (1 + price)·q + f = 0
        root, above = _discriminant_root(scores, price), 1 + price
        # of two equal forms the one without cancellation
        low = np.divide(2 * scores, above + root, out=np.zeros_like(root), where=above + root > 0)
        high = np.divide(above - root, 2 * price, out=np.zeros_like(root), where=above < 0)
        moved = np.clip(np.where(above < 0, high, low), 0.0, 1.0)
    return np.where(price == 0, scores, moved)


def _discriminant_root(scores: Floats, price: Floats) -> Floats:
    """Return √((1 + price)² − 4·price·f), as a sum of terms that are not negative."""
    rises = price <= 0
    square = np.where(rises, (1 + price) ** 2, (1 - price) ** 2)
    return np.sqrt(square + 4 * np.abs(price) * np.where(rises, scores, 1 - scores))


# ---------------------------------------------------------------------------------------------
# The dual


@dataclass(frozen=True)
class Dual:
    """The dual: Σ_i share_i ψ(μ_i) + cost·λ + ½ λ·ridge·λ, to be minimised over λ ≥ 0.

    ψ(μ) is minus the least divergence(f, q) + μ q, and μ = (λ · forms) · effects.

    Attributes
    ----------
    scores : ndarray of shape (n,)
        The base scores f.
    share : ndarray of shape (n,)
        The weights of the rows; they sum to 1.
    effects : ndarray of shape (n_cells, n)
        γ, what a score adds to the mean of each cell.
    forms : ndarray of shape (K, n_cells)
        The linear form of the cells' means that each constraint limits.
    cost : ndarray of shape (K,)
        The limit of each constraint: form · means ≤ cost.
    ridge : ndarray of shape (K, K)
        A quadratic penalty on the multipliers; zeros for the exact problem.
    divergence : str
        "kl" or "cross_entropy".
    """

    scores: Floats
    share: Floats
    effects: Floats
    forms: Floats
    cost: Floats
    ridge: Floats
    divergence: str

    def price(self, multipliers: Floats) -> Floats:
        """Return μ of each row, shape (n,)."""
        return np.asarray((multipliers @ self.forms) @ self.effects)

    def value_and_slope(self, multipliers: Floats) -> tuple[float, Floats]:
        """Return the value of the dual, and its gradient of shape (K,)."""
        price = self.price(multipliers)
        q = projected_scores(self.scores, price, self.divergence)
        bent = self.ridge @ multipliers
        value = self.share @ self._least(price, q) + (self.cost + bent / 2) @ multipliers
        slope = self.cost + bent - self.forms @ (self.effects @ (self.share * q))
        return float(value), np.asarray(slope)

    def curvature(self, multipliers: Floats) -> Floats:
        """Return the second derivatives, shape (K, K)."""
        price = self.price(multipliers)
        q = projected_scores(self.scores, price, self.divergence)
        change = q * (1 - q)
        if self.divergence == "cross_entropy":
            root = _discriminant_root(self.scores, price)
            change = np.divide(change, root, out=np.zeros_like(root), where=root > 0)
        cells = (self.effects * (self.share * change)) @ self.effects.T
        return np.asarray(self.forms @ cells @ self.forms.T + self.ridge)

    def _least(self, price: Floats, q: Floats) -> Floats:
        """Return ψ of each row, shape (n,)."""
        if self.divergence == "kl":
            p = np.clip(self.scores, LEAST_SCORE, 1 - LEAST_SCORE)
            return np.logaddexp(np.log1p(-p), np.log(p) - price)
        rest = projected_scores(1 - self.scores, -price, self.divergence)
        tiny = np.finfo(float).tiny
        entropy = xlogy(self.scores, np.maximum(q, tiny))
        return entropy + xlogy(1 - self.scores, np.maximum(rest, tiny)) - price * q


def best_prices(dual: Dual, start: Floats | None = None) -> tuple[Floats, Floats]:
    """Return the best multipliers λ (K,) and the cells' prices m = λ · forms (n_cells,).

    L-BFGS-B finds the region of the optimum. A few Newton steps reach the precision of the machine
    there, so that the result does not depend on `start`, the λ of a similar problem.

    Examples
    --------
    Two groups with the scores 0.8 and 0.4 whose means must be equal:

    >>> effects = np.array([[2.0, 0.0], [0.0, 2.0]])
    >>> forms = np.array([[0.5, -0.5], [-0.5, 0.5]])
    >>> dual = Dual(np.array([0.8, 0.4]), np.full(2, 0.5), effects, forms, np.zeros(2),
    ...             np.zeros((2, 2)), "cross_entropy")
    >>> _, prices = best_prices(dual)
    >>> (prices @ effects).round(6)
    array([ 0.833333, -0.833333])
    """
    n = len(dual.cost)
    settings: Any = {"maxiter": N_ITERATIONS, "maxfun": 4 * N_ITERATIONS, "ftol": 0.0}
    solution = minimize(
        dual.value_and_slope,
        np.zeros(n) if start is None else start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * n,
        options={**settings, "gtol": 1e-7},
    )
    multipliers = _newton(dual, np.maximum(solution.x, 0.0))
    return multipliers, np.asarray(multipliers @ dual.forms)


def _newton(dual: Dual, multipliers: Floats) -> Floats:
    """Return multipliers after Newton steps that keep them at 0 or above."""
    value, slope = dual.value_and_slope(multipliers)
    for _ in range(N_NEWTON):
        violation = _violation(multipliers, slope)
        if violation <= ACCURACY:
            break
        direction = _quadratic_minimum(dual.curvature(multipliers), slope, multipliers)
        direction -= multipliers
        for shorter in range(N_HALVINGS):
            candidate = multipliers + 0.5**shorter * direction
            new_value, new_slope = dual.value_and_slope(candidate)
            # close to the optimum, values are equal up to rounding and only slopes tell
            falls = new_value < value + 1e-4 * 0.5**shorter * (slope @ direction)
            if falls or _violation(candidate, new_slope) < violation / 2:
                break
        else:
            break
        multipliers, value, slope = candidate, new_value, new_slope
    return multipliers


def _quadratic_minimum(curvature: Floats, slope: Floats, at: Floats) -> Floats:
    """Return the x ≥ 0 with the least ½ (x − at)·curvature·(x − at) + slope·(x − at), shape (K,).

    Several multipliers may describe the same prices. A small ridge makes the minimum unique.
    """
    ridge = RIDGE * max(float(np.trace(curvature)), ACCURACY)
    factor = np.linalg.cholesky(curvature + ridge * np.eye(len(at))).T
    target = factor @ at - solve_triangular(factor, slope, trans="T")
    return np.asarray(nnls(factor, target, maxiter=100 * len(at))[0])


def _violation(multipliers: Floats, slope: Floats) -> float:
    """Return how far λ is from an optimum: the largest slope in a direction that is open."""
    return float(np.abs(multipliers - np.maximum(multipliers - slope, 0.0)).max(initial=0.0))


# ---------------------------------------------------------------------------------------------
# Constraints: the means of groups beside the mean of all groups


@dataclass(frozen=True)
class MeanScores:
    """The base scores of n rows, and the cells whose mean scores are compared.

    Attributes
    ----------
    scores, share : ndarrays of shape (n,)
        Base scores f, and weights that sum to 1.
    effects : ndarray of shape (n_rate_rows, n_groups, n)
        The probability of each cell over its share; mean 1 over the rows.
    shares : ndarray of shape (n_rate_rows, n_groups)
        The share of each cell; all are above 0.
    """

    scores: Floats
    share: Floats
    effects: Floats
    shares: Floats

    @property
    def cells(self) -> Floats:
        """Return the effects with one row for each cell, shape (n_cells, n)."""
        return self.effects.reshape(-1, len(self.scores))

    def averages(self) -> Floats:
        """Return the form of the mean of all groups, shape (n_rate_rows, n_groups, n_cells).

        The mean of all groups is the mean of the cells of one rate row, weighted by their shares.
        """
        n_rates, n_groups = self.shares.shape
        forms = np.zeros((n_rates, n_groups, n_rates, n_groups))
        for row, shares in enumerate(self.shares):
            forms[row, :, row] = shares / shares.sum()
        return forms.reshape(n_rates, n_groups, -1)

    def deviations(self) -> Floats:
        """Return the form "mean of a cell minus mean of all groups", shaped as `averages`."""
        identity = np.eye(self.shares.size).reshape(*self.shares.shape, -1)
        return identity - self.averages()

    def of(self, scores: Floats) -> Floats:
        """Return the mean score of each cell, shape (n_cells,)."""
        return np.asarray(self.cells @ (self.share * scores))

    def dual(self, forms: Floats, cost: Floats, ridge: Floats, divergence: str) -> Dual:
        """Return the dual of the constraints forms · means ≤ cost."""
        return Dual(self.scores, self.share, self.cells, forms, cost, ridge, divergence)


def difference_gap(means: MeanScores, scores: Floats) -> float:
    """Return the largest |mean of a cell − mean of all groups|.

    Examples
    --------
    >>> effects = np.array([[[2.0, 0.0], [0.0, 2.0]]])
    >>> means = MeanScores(np.array([0.8, 0.4]), np.full(2, 0.5), effects, np.full((1, 2), 0.5))
    >>> round(difference_gap(means, means.scores), 6)
    0.2
    """
    return float(np.abs(means.deviations() @ means.of(scores)).max())


def difference_dual(means: MeanScores, tolerance: float, divergence: str) -> Dual:
    """Return the dual of |mean of a cell − mean of all groups| ≤ tolerance for every cell."""
    forms = means.deviations().reshape(means.shares.size, -1)
    both, n = np.concatenate([forms, -forms]), 2 * len(forms)
    return means.dual(both, np.full(n, tolerance), np.zeros((n, n)), divergence)


def ratio_gap(means: MeanScores, scores: Floats, labels: list[tuple[bool, ...]]) -> float:
    """Return the largest |mean of a cell / mean of all groups − 1| of any label's score.

    The score of the positive label is q, that of the negative label 1 − q. `labels` has those that
    are compared in each rate row. A mean of 0 has no ratio and is left out.

    Examples
    --------
    >>> effects = np.array([[[2.0, 0.0], [0.0, 2.0]]])
    >>> means = MeanScores(np.array([0.8, 0.4]), np.full(2, 0.5), effects, np.full((1, 2), 0.5))
    >>> round(ratio_gap(means, means.scores, [(True, False)]), 6)
    0.5
    """
    largest = 0.0
    deviations, averages = means.deviations(), means.averages()
    by_label = {label: means.of(scores if label else 1 - scores) for label in (True, False)}
    for row, compared in enumerate(labels):
        for label in compared:
            whole = averages[row] @ by_label[label]
            ratio = np.divide(
                deviations[row] @ by_label[label], whole, out=np.zeros_like(whole), where=whole > 0
            )
            largest = max(largest, float(np.abs(ratio).max()))
    return largest


def ratio_dual(
    means: MeanScores,
    labels: list[tuple[bool, ...]],
    tolerance: float,
    divergence: str,
    regularisation: float = 0.0,
) -> Dual:
    """Return the dual of |mean of a cell / mean of all groups − 1| ≤ tolerance.

    `regularisation` is ζ of the authors: the penalty ζ/2 · (mean |v|² + |λ|²) with the price v of
    each label's score.
    """
    deviations, averages = means.deviations(), means.averages()
    forms, is_positive = [], []
    for row, compared in enumerate(labels):
        for label in compared:
            for sign in (1, -1):
                forms.append(sign * deviations[row] - tolerance * averages[row])
                is_positive.append(np.full(len(deviations[row]), label))
    by_label, positive = np.concatenate(forms), np.concatenate(is_positive)
    ridge = regularisation * (
        by_label @ (means.cells * means.share) @ means.cells.T @ by_label.T
        * (positive[:, None] == positive)
        + np.eye(len(by_label))
    )  # fmt: skip
    # 1 − q in the place of q: the form changes its sign, and the mean of 1 goes to the limit
    cost = np.where(positive, 0.0, -by_label @ means.of(np.ones_like(means.scores)))
    return means.dual(np.where(positive[:, None], by_label, -by_label), cost, ridge, divergence)
