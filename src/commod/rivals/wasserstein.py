"""The groups' scores get one distribution: by a map of each group, or by a new regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.utils import compute_sample_weight

from commod._data.arrays import Codes, Floats, Mask
from commod._data.encoding import Encoding
from commod.exceptions import InputError
from commod.metrics._constraint import PARITY
from commod.rivals._group_model import (
    curvature_root,
    moments_of_numbers,
    solve_root,
    term_matrix,
    times_root,
)
from commod.rivals._rows import DecisionRows, RivalFitRows
from commod.rivals._trained import NewModelRival, is_logistic_regression, last_step, model_inputs
from commod.rivals.base import AwareRival, ScoredRival, choice, number


@dataclass(eq=False, repr=False, kw_only=True)
class WassersteinPostProcessing(ScoredRival, AwareRival):
    """Move each group's scores towards one common distribution, in their order.

    A score goes to the quantile of the common distribution that it has in its own group. At
    strength 1, the groups have equal rates at every threshold, up to ties. The common distribution
    moves the scores as little as possible: it is the Wasserstein-1 barycentre of the groups.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=1.0
        The share of its way that each score moves, in [0, 1]: the partial repair a. 0 changes
        nothing.
    distribution : str, default="barycentre"
        The common distribution. "barycentre" is the weighted median of the groups' quantile
        functions. With two groups it is the distribution of the larger group: only the smaller
        group moves. "pooled" is the distribution of all scores.
    n_levels : int, default=1000
        Quantiles of each group that the map stores. A group with fewer distinct scores has an exact
        map.
    constraints : str, default="demographic_parity"
        The metric that measures the result; the method knows no other constraint.
    min_group_size : int, default=30
        Fit rows that a group needs; smaller groups keep their base scores.
    threshold : float, default=0.5
        A decision is score > threshold. The map is the same for every threshold.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.

    Attributes
    ----------
    distances_ : ndarray of shape (n_groups,)
        The Wasserstein-1 distance of each group's base scores from the common distribution. It is
        the share of the group's decisions that change at strength 1, as a mean over all thresholds.
        NaN for a group without weight.
    maps_ : list of GroupShift
        How far a score of each group moves at strength 1: `shifts` at `scores`, linear in between.

    Notes
    -----
    The barycentre is not unique where two halves of the weight have different quantiles, for
    example with two groups of equal weight. The middle between the two quantiles is taken: both
    groups move by the same distance. The pooled distribution is then a barycentre, too.

    The distance is smallest as a mean over all thresholds, and not at the threshold in use. Equal
    scores of a group stay equal: they get the quantile at their mid-rank. So a large tie can leave
    a gap between the groups. New scores between two fit scores move by linear interpolation.

    References
    ----------
    Jiang, Pacchiano, Stepleton, Jiang, Chiappa: "Wasserstein Fair Classification", UAI 2019,
    PMLR 115, 2020.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import WassersteinPostProcessing
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> groups = data.sensitive_features
    >>> update = WassersteinPostProcessing(model).fit(data.data, sensitive_features=groups)
    >>> bool(update.fairness_ > 0.98)
    True
    >>> update.distances_.shape
    (2,)
    """

    distribution: str = choice("barycentre", "pooled")
    n_levels: int = number(1000, low=2, whole=True)

    known_constraints = (PARITY,)
    largest_strength = 1.0

    def _learn_all(self, models: Sequence[Self], rows: RivalFitRows) -> None:
        """Learn the maps once; the models differ only in the share of the way."""
        groups = [rows.group == group for group in range(rows.n_groups)]
        scores = [rows.base.scores[group] for group in groups]
        weights = [rows.weight[group] for group in groups]
        maps = score_maps(
            scores, weights, distribution=self.distribution, n_levels=int(self.n_levels)
        )
        distances = distances_to_common(scores, weights, distribution=self.distribution)
        for model in models:
            model.maps_, model.distances_ = maps, distances

    def _new_scores(self, rows: DecisionRows) -> Floats:
        moved = rows.base.scores.copy()
        for group, score_map in enumerate(self.maps_):
            members = rows.group == group
            share = float(self._fitted_param("strength"))
            moved[members] = score_map.moved(rows.base.scores[members], share)
        return moved


ROUNDING = 1e-12  # a cumulative weight this near to one half is one half


class Distribution(NamedTuple):
    """Distinct values (k,) in rising order, and the share of weight up to each of them (k,)."""

    values: Floats
    upper: Floats

    @classmethod
    def of(cls, values: Floats, weight: Floats) -> Distribution:
        """Return the distribution of weighted values; values without weight are left out."""
        distinct, position = np.unique(values[weight > 0], return_inverse=True)
        parts = np.bincount(position, weight[weight > 0], minlength=len(distinct))
        total = np.cumsum(parts.astype(np.float64))
        return cls(distinct, total / total[-1] if len(total) else total)

    def quantiles(self, levels: Floats) -> Floats:
        """Return the smallest value whose share is at least the level: a step function."""
        at = np.searchsorted(self.upper, levels)
        return self.values[np.minimum(at, len(self.values) - 1)]

    def thinned(self, n_levels: int) -> tuple[Floats, Floats]:
        """Return about `n_levels` mid-ranks, or all if there are fewer, and the value at each.

        Every value with more than 1/n_levels of the weight stays, with its two neighbours: the
        quantile function is steep beside it. The first and last value stay, too.
        """
        last = len(self.values) - 1
        keep = np.arange(last + 1)
        if len(keep) > n_levels:
            levels = (np.arange(n_levels) + 0.5) / n_levels
            heavy = np.flatnonzero(np.diff(self.upper, prepend=0.0) > 1 / n_levels)
            chosen = np.searchsorted(self.upper, levels), heavy - 1, heavy + 1, [0, last]
            keep = np.unique(np.clip(np.concatenate(chosen), 0, last))
        mid_ranks = (self.upper + np.append(0.0, self.upper[:-1])) / 2  # of the levels of a value
        return mid_ranks[keep], self.values[keep]


class GroupShift(NamedTuple):
    """How far the scores of one group move: `shifts` (k,) at `scores` (k,), linear in between."""

    scores: Floats
    shifts: Floats

    def moved(self, scores: Floats, share: float) -> Floats:
        """Return the scores after the given share of the way, in [0, 1], shape (n,)."""
        if not self.shifts.any() or share == 0:
            return scores
        return np.clip(scores + share * np.interp(scores, self.scores, self.shifts), 0.0, 1.0)


def weighted_median(values: Floats, weight: Floats) -> Floats:
    """Return the weighted median of each column of values (g, n) with weights (g,), shape (n,).

    Where one half of the weight is below and one half above an interval, the median is its middle.

    Examples
    --------
    >>> values = np.array([[0.2, 0.6], [0.4, 0.8]])
    >>> weighted_median(values, np.array([2.0, 1.0])), weighted_median(values, np.ones(2))
    (array([0.2, 0.6]), array([0.3, 0.7]))
    """
    if weight.max() > (0.5 + ROUNDING) * weight.sum():
        return values[weight.argmax()]  # more than half of the weight: no sorting
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    below = np.cumsum((weight / weight.sum())[order], axis=0)
    first = np.argmax(below >= 0.5 - ROUNDING, axis=0)
    last = np.argmax(below > 0.5 + ROUNDING, axis=0)
    low, high = (np.take_along_axis(ordered, at[None], axis=0)[0] for at in (first, last))
    return low + (high - low) / 2


def score_maps(
    scores: Sequence[Floats], weights: Sequence[Floats], *, distribution: str, n_levels: int
) -> list[GroupShift]:
    """Return the map of each group's scores to the common distribution, for groups of any size.

    A score goes to the common quantile at its mid-rank. Equal scores stay equal. A group without
    weight does not move.

    Examples
    --------
    >>> first, second = np.array([0.2, 0.4, 0.6, 0.8]), np.array([0.1, 0.3])
    >>> maps = score_maps(
    ...     [first, second], [np.ones(4), np.ones(2)], distribution="barycentre", n_levels=100
    ... )
    >>> maps[0].moved(first, 1.0), maps[1].moved(second, 1.0)
    (array([0.2, 0.4, 0.6, 0.8]), array([0.3, 0.7]))
    """
    group_weights = np.array([weight.sum() for weight in weights])
    parts = map(Distribution.of, scores, weights)
    groups = [part.thinned(n_levels) for part in parts]
    everyone = Distribution.of(np.concatenate(scores), np.concatenate(weights)).thinned(n_levels)

    def common_at(levels: Floats) -> Floats:
        if distribution == "pooled":
            return np.interp(levels, *everyone)
        # linear between mid-ranks; beyond the first and last one it is constant
        quantiles = np.stack([np.interp(levels, *group) for group in groups if len(group[0])])
        return weighted_median(quantiles, group_weights[group_weights > 0])

    return [
        GroupShift(values, common_at(levels) - values)
        if len(values)
        else GroupShift(np.zeros(1), np.zeros(1))
        for levels, values in groups
    ]


def distances_to_common(
    scores: Sequence[Floats], weights: Sequence[Floats], *, distribution: str
) -> Floats:
    """Return the Wasserstein-1 distance of each group from the common distribution, (g,).

    It is exact: the integral of |Q_s(u) − Q(u)| over the levels u of the step functions. NaN for a
    group without weight.

    Examples
    --------
    >>> distances_to_common(
    ...     [np.array([0.2, 0.4, 0.6, 0.8]), np.array([0.1, 0.3])], [np.ones(4), np.ones(2)],
    ...     distribution="barycentre",
    ... ).round(3)
    array([0. , 0.3])
    """
    group_weights = np.array([weight.sum() for weight in weights])
    parts = list(map(Distribution.of, scores, weights))
    everyone = Distribution.of(np.concatenate(scores), np.concatenate(weights))
    ends = np.unique(np.concatenate([[0.0, 1.0], everyone.upper, *(p.upper for p in parts)]))
    middles, widths = (ends[1:] + ends[:-1]) / 2, np.diff(ends)
    quantiles = np.full((len(parts), len(widths)), np.nan)
    for i, part in enumerate(parts):
        if len(part.values):
            quantiles[i] = part.quantiles(middles)
    counted = group_weights > 0
    wanted = (
        everyone.quantiles(middles)
        if distribution == "pooled"
        else weighted_median(quantiles[counted], group_weights[counted])
    )
    return np.asarray(np.abs(quantiles - wanted) @ widths)


# ---------------------------------------------------------------------------------------------
# Logistic regression with a Wasserstein penalty: scores distributed alike in all groups


OWN_RIDGE = 1.0  # of a regression on standardised terms: scikit-learn's C = 1


@dataclass(eq=False, repr=False, kw_only=True)
class WassersteinLogisticRegression(NewModelRival):
    """Train a logistic regression whose scores are distributed alike in all groups.

    The loss is the mean log loss + strength · Σ_a p_a W1(a) + ridge. W1(a) is the Wasserstein-1
    distance between the scores of group a and a target distribution; p_a is the share of the group.
    For two score distributions, W1 is the difference of their selection rates, averaged over all
    thresholds. Only `fit` sees the sensitive features.

    Where the base model is a `LogisticRegression`, alone or as the last step of a `Pipeline`, the
    new model reads the same inputs, has the same ridge penalty and class weights, and starts from
    the coefficients of the base model. For any other base model, a plain logistic regression on the
    columns of X is fitted first, and the new model starts from that.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=2.0
        Weight of the penalty. 0 keeps the base model and trains nothing. A tiny strength may change
        decisions: the model is trained on the fit rows, the base model was not. The authors weight
        the log loss by α and the penalty by (1 − α)β: strength = (1 − α)β/α.
    compared_with : str, default="barycentre"
        The target of each group's distribution: the "barycentre", which is nearest to all groups,
        or the "pooled" scores of all groups. With two groups the two penalties differ by a factor.
    constraints : str, default="demographic_parity"
        The only constraint that the method knows.
    max_iter : int, default=50
        Iterations of L-BFGS for each strength. More iterations matter near parity only.
    locked_features : collection of str, default=()
        Columns the new model must not read. Not for a base model that is a logistic regression:
        the new model reads the same inputs.
    min_category_size : int, default=20
        Fit rows that a category needs to become a term; rarer categories count as unseen. Not used
        where the base model is a logistic regression.
    min_group_size : int, default=30
        Fit rows that a group needs to be part of the penalty; smaller groups are reported.
    threshold : float, default=0.5
        The decision is score > threshold, for the base model and the new one. The new model's score
        estimates P(Y = 1 | x) and is not shifted. So the threshold has the same meaning for both
        models only where the base score is calibrated.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.

    Attributes
    ----------
    regression_ : FittedRegression or None
        The coefficients of the new model; None where the base model is kept.
    distance_ : float
        Σ_a p_a W1(a) of the new scores of the fit rows.
    base_distance_ : float
        The same for the scores of the base model.
    n_iter_ : int
        Iterations of L-BFGS.

    Notes
    -----
    The penalty and its gradient are exact: W1 is the area between distribution functions, a sum
    over the sorted scores. The authors smooth distances by a pseudo-Huber loss (δ = 0.1). Their
    code cannot run with "wasserstein-1" as released: it calls a function that does not exist. It
    also pairs scores of two groups of the same size without sorting them, and it leaves out the
    weights p_a of the paper. SciPy's L-BFGS on all rows needs one sort per step; sorting compiled
    by JAX on a CPU would be slower.

    Scores that are distributed alike have the same selection rates at every threshold. That is more
    than demographic parity at one threshold, and costs more accuracy.

    References
    ----------
    Jiang, Pacchiano, Stepleton, Jiang, Chiappa: "Wasserstein Fair Classification", UAI 2019.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import WassersteinLogisticRegression
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = WassersteinLogisticRegression(model, strength=2)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> bool(update.fairness_ > update.base_fairness_), update.distance_ < update.base_distance_
    (True, True)
    """

    strength: float = 2.0
    compared_with: str = choice("barycentre", "pooled")
    max_iter: int = number(50, low=1, whole=True)

    known_constraints = (PARITY,)
    new_model = "regression_"

    # from a small effect to near parity
    default_strengths = (0.0, 0.125, 0.25, 0.5, *(2.0 ** (i / 4) for i in range(17)))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if len(self.locked_features) and is_logistic_regression(self.estimator):
            raise InputError(
                f"locked_features={list(self.locked_features)!r} cannot be kept: the base model is "
                "a logistic regression, and the new model reads the same inputs. Pass "
                "ScoreColumn with the scores of the base model, and the new model reads columns "
                "of X.",
                parameter="locked_features",
            )

    def _way_out_of_collapse(self) -> str:
        return "Lower the strength."

    # -- learning -------------------------------------------------------------------------------

    def _learn_all(self, models: Sequence[Self], rows: RivalFitRows) -> None:
        """Build the matrix and the starting point once for all strengths."""
        reader, matrix = self._inputs(rows)
        label = rows.needed_labels("The new model learns the labels")
        loss = self._loss(matrix, label, rows)
        start = self._start(loss)
        base_distance, _ = loss.distance(rows.base.scores)
        for model in models:
            model.regression_, model.n_iter_ = None, 0
            model.base_distance_ = model.distance_ = base_distance
            if model.strength > 0:
                coefficients, model.n_iter_ = minimise(
                    loss, start, float(model.strength), int(self.max_iter)
                )
                model.distance_, _ = loss.distance(
                    expit(matrix @ coefficients[:-1] + coefficients[-1])
                )
                model.regression_ = FittedRegression.of(coefficients, reader)

    def _inputs(self, rows: RivalFitRows) -> tuple[Any, Any]:
        """Return terms, mean and scale (None: the base model's inputs are read), and the matrix."""
        if is_logistic_regression(self.estimator):
            return None, model_inputs(self.estimator, rows.X)
        encoding, terms = self._learn_terms(rows.columns, rows.weight)
        mean, scale = moments_of_numbers(terms, rows.weight)
        return (encoding, mean, scale), term_matrix(terms, mean, scale)

    def _loss(self, matrix: Any, label: Mask, rows: RivalFitRows) -> WassersteinLoss:
        weight, penalty = rows.weight, OWN_RIDGE
        n_people = max(float(weight.sum()), float((weight > 0).sum()))
        if is_logistic_regression(self.estimator):
            model = last_step(self.estimator)
            penalty = _ridge(model)
            is_upper = label == (self._score_label() == self._pos_label)
            labels = np.where(is_upper, model.classes_[1], model.classes_[0])
            weight = weight * compute_sample_weight(model.class_weight, labels)
        ridge = penalty / n_people
        return WassersteinLoss(
            matrix, label, weight, rows.group, rows.weight, ridge, self.compared_with
        )

    def _start(self, loss: WassersteinLoss) -> Floats:
        """Return the coefficients of the base model, or of a plain regression; intercept last."""
        if is_logistic_regression(self.estimator):
            model = last_step(self.estimator)
            sign = 1.0 if self._score_label() == self._pos_label else -1.0
            return sign * np.append(model.coef_[0], model.intercept_[0])
        zeros = np.zeros(loss.matrix.shape[1] + 1)
        return minimise(loss, zeros, 0.0, int(self.max_iter))[0]

    # -- deciding -------------------------------------------------------------------------------

    def _model_scores(self, rows: DecisionRows) -> Floats:
        assert self.regression_ is not None
        return np.asarray(expit(self.regression_.logits(self._base_model, rows)))


@dataclass(frozen=True)
class FittedRegression:
    """The logit `intercept` + Σ `coefficients` · input of the positive label.

    Inputs are those of the base model's last step where `encoding` is None, otherwise its terms in
    raw units.
    """

    coefficients: Floats
    intercept: float
    encoding: Encoding | None

    @classmethod
    def of(
        cls, coefficients: Floats, reader: tuple[Encoding, Floats, Floats] | None
    ) -> FittedRegression:
        """Return the regression on raw terms from coefficients (d + 1,), the intercept last.

        `reader` has the terms, and the mean and scale that standardise them.
        """
        w, intercept = coefficients[:-1], float(coefficients[-1])
        if reader is None:
            return cls(w, intercept, None)
        encoding, mean, scale = reader
        points = w / scale
        return cls(points, intercept - float(points @ mean), encoding)

    def logits(self, estimator: Any, rows: DecisionRows) -> Floats:
        """Return the logit of each row, shape (n,)."""
        if self.encoding is not None:
            return self.encoding.encode(rows.columns).total(self.coefficients, self.intercept)
        return np.asarray(model_inputs(estimator, rows.X) @ self.coefficients) + self.intercept


def _ridge(model: Any) -> float:
    """Return the ridge penalty of a fitted logistic regression, 1/C; 0 where it has none."""
    if getattr(model, "penalty", "l2") in (None, "none"):
        return 0.0
    strength = np.ravel(getattr(model, "C_", model.C))[0]  # C_ is what cross-validation chose
    return float(1 / strength)


LEAST_CURVATURE = 1e-6  # of the largest: columns may be collinear


def group_distance(
    scores: Floats, group: Codes, weight: Floats, target: str = "barycentre"
) -> tuple[float, Floats]:
    """Return Σ_a p_a W1(scores of group a, target) and its derivative by the scores, shape (n,).

    The target is the "barycentre", which has the least such sum, or "pooled": the scores of all
    groups. At each score, the barycentre's distribution function is the weighted median of the
    groups' ones. Every group needs some weight.

    Examples
    --------
    >>> scores, group = np.array([0.2, 0.4, 0.6, 0.8, 0.1, 0.3]), np.array([0, 0, 0, 0, 1, 1])
    >>> distance, _ = group_distance(scores, group, np.ones(6))
    >>> round(distance, 9)  # W1 is 0.3, and a third of the people are in the group that moves
    0.1
    """
    totals = np.bincount(group, weight)
    order = np.argsort(scores)
    ordered_group = group[order]
    steps = np.zeros((len(totals), len(scores)))
    steps[ordered_group, np.arange(len(scores))] = weight[order] / totals[ordered_group]
    functions = np.minimum(np.cumsum(steps, axis=1, out=steps), 1.0)
    shares = totals / totals.sum()
    middle = shares @ functions if target == "pooled" else weighted_median(functions, shares)
    cost = (shares @ np.abs(functions - middle))[:-1]
    slope = np.empty(len(scores))
    slope[order] = np.append(0.0, cost) - np.append(cost, 0.0)
    return float(cost @ np.diff(scores[order])), slope


@dataclass(frozen=True)
class WassersteinLoss:
    """The loss of w and b on the rows of `matrix` (n, d), which is dense or sparse.

    All other arrays have shape (n,). `weight` weights the log loss. `group` is −1 for rows without
    a group; `group_weight` weights the rows in the distribution of their group's scores. `ridge` is
    the penalty of ‖w‖²/2.

    The optimiser moves coordinates v = U(w, b), with UᵀU near the second derivative of the log
    loss. They save most steps where columns have different units or are correlated.
    """

    matrix: Any
    label: Mask
    weight: Floats
    group: Codes
    group_weight: Floats
    ridge: float
    target: str

    @cached_property
    def share(self) -> Floats:
        """Return the weights of the log loss; they sum to 1."""
        return self.weight / self.weight.sum()

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """Return the rows that have a group and weight in it."""
        return np.flatnonzero((self.group >= 0) & (self.group_weight > 0))

    @cached_property
    def codes(self) -> Codes:
        """Return the group of each of `rows`, counted from 0 without gaps."""
        return np.unique(self.group[self.rows], return_inverse=True)[1]

    @cached_property
    def root(self) -> Floats:
        """Return U."""
        penalty = np.append(np.full(self.matrix.shape[1], self.ridge), 0.0)
        return curvature_root(self.matrix, self.share, penalty, 1 / 4, LEAST_CURVATURE)

    def __call__(self, v: Floats, strength: float) -> tuple[float, Floats]:
        """Return the loss at v and its gradient by v."""
        value, gradient = self.at(solve_root(self.root, v), strength)
        return value, solve_root(self.root, gradient, trans="T")

    def at(self, coefficients: Floats, strength: float) -> tuple[float, Floats]:
        """Return the loss at coefficients (d + 1,) and its gradient by them."""
        w = coefficients[:-1]
        logits = self.matrix @ w + coefficients[-1]
        scores = expit(logits)
        value = self.share @ (np.logaddexp(0.0, logits) - logits * self.label)
        slope = self.share * (scores - self.label)
        if strength and len(self.rows):
            distance, by_score = self.distance(scores)
            value += strength * distance
            slope[self.rows] += strength * by_score * (scores * (1 - scores))[self.rows]
        value += self.ridge / 2 * (w @ w)
        gradient = np.append(self.matrix.T @ slope + self.ridge * w, slope.sum())
        return float(value), gradient

    def distance(self, scores: Floats) -> tuple[float, Floats]:
        """Return the penalty of the scores (n,), and its slope at the rows that have a group."""
        weight = self.group_weight[self.rows]
        return group_distance(scores[self.rows], self.codes, weight, self.target)


def minimise(
    loss: WassersteinLoss, start: Floats, strength: float, max_iter: int
) -> tuple[Floats, int]:
    """Return coefficients (d + 1,) of a local minimum near `start`, and the iterations taken."""
    stop: Any = {"maxiter": max_iter, "maxfun": 3 * max_iter, "ftol": 1e-9, "gtol": 1e-6}
    optimum = minimize(
        loss,
        times_root(loss.root, start),
        args=(strength,),
        jac=True,
        method="L-BFGS-B",
        options=stop,
    )
    return solve_root(loss.root, np.asarray(optimum.x)), int(optimum.nit)
