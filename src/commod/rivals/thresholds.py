"""Rules by group on the base score: thresholds, cuts, mixes of thresholds, a critical region."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import isotonic_regression, linprog
from sklearn.base import BaseEstimator

from commod._data.arrays import Floats, Mask
from commod._data.parameters import check_choice
from commod.bounds import minimal_changes, minimal_expected_changes
from commod.exceptions import InputError
from commod.metrics._constraint import CONSTRAINTS, Constraint
from commod.rivals._rows import HALF, DecisionRows, RivalFitRows, from_half, middle, weight_above
from commod.rivals.base import AwareRival, number
from commod.updates._interface import Decisions
from commod.updates.base import LARGEST_WEIGHT

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
        by_rate_row = self._constraint.by_rate_row
        rates = by_rate_row(positives) / by_rate_row(sizes)
        gap = np.ptp(rates, axis=1).mean(axis=0)  # of each pair: the mean over rate rows
        totals = positives.sum(axis=1) / sizes.sum(axis=1)
        balanced = (totals[1] + 1 - totals[0]) / 2
        base_rates = rows.rates(self._constraint, rows.base.decisions)
        within = gap <= (1 - self.strength) * np.ptp(base_rates, axis=1).mean() + ROUNDING
        best = np.argmax(np.where(within, balanced, -1)) if within.any() else np.argmin(gap)
        return float(thresholds[best]), float(margins[best])


@dataclass(eq=False, repr=False, kw_only=True)
class MinimalFlip(AwareRival):
    """Change as few decisions as possible when the group of each row is known.

    - Demographic parity: the exact limit gives the number of people of each group who must change.
      Those nearest to the threshold change, so each group gets its own threshold.
    - Constraints that compare errors: the true label of a new row is unknown. So the limit in
      expectation gives the share of each group's positive or negative decisions that must change,
      and random draws choose the rows.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=0.5
        Share of the way from the base model's fairness to parity, in [0, 1]; 0 changes nothing.
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
    cuts_ : ndarray of shape (n_groups,)
        Demographic parity: scores of a group above its cut are positive.
    probabilities_ : ndarray of shape (n_groups, 2)
        Demographic parity: the first column is the probability of a positive decision where the
        score equals the cut. Other constraints: the probability of a positive decision after a
        negative and after a positive base decision.

    Notes
    -----
    The method counts people, so it refuses `sample_weight`. On the fit rows, the number of changes
    (expected number, where randomised) equals the limit.

    Examples
    --------
    >>> from commod.bounds import minimal_changes
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import MinimalFlip
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> groups = data.sensitive_features
    >>> update = MinimalFlip(model, strength=0.8).fit(data.data, sensitive_features=groups)
    >>> limit = minimal_changes(
    ...     model.predict(data.data), sensitive_features=groups, target=update.target_
    ... )
    >>> update.change_rate_ == limit.rate
    True
    """

    strength: float = 0.5
    random_state: Any = None

    largest_strength = 1.0
    sample_weights = False

    @property
    def default_strengths(self) -> tuple[float, ...]:
        """Return the way to parity, without its end.

        Exactly equal rates may need far more changes than nearly equal ones. So the sweep ends at
        0.99.
        """
        return (*super().default_strengths[:-1], 0.99)

    @property
    def randomised(self) -> bool:  # type: ignore[override]
        """Return whether random draws decide some rows: ties at a cut, or errors compared."""
        probabilities = getattr(self, "probabilities_", None)
        if probabilities is None:
            return self._constraint.needs_labels
        return bool(((probabilities > 0) & (probabilities < 1)).any())

    def _learn(self, rows: RivalFitRows) -> None:
        self.cuts_ = np.full(rows.n_groups, rows.base.threshold)
        self.probabilities_ = np.tile([0.0, 1.0], (rows.n_groups, 1))
        base = rows.fairness(self._constraint, rows.base.decisions)
        self.target_ = self._constraint.towards_ideal(base, float(self.strength))
        if self.strength == 0 or np.isnan(base):
            return
        if self._constraint.needs_labels and self._constraint.is_ratio:
            raise InputError(
                f"MinimalFlip compares error rates by their difference; got "
                f"{self._constraint.name!r}, a ratio. Use ControlledDebiaser for ratios.",
                parameter="constraints",
            )
        kept = rows.in_constraint
        decisions, scores, threshold = rows.base.decisions, rows.base.scores, rows.base.threshold
        asked: dict[str, Any] = {
            "sensitive_features": rows.group[kept],
            "target": self.target_,
            "constraints": self._constraint,
            "pos_label": True,
        }
        group: Any
        if self._constraint.needs_labels:
            assert rows.label is not None
            limit = minimal_expected_changes(rows.label[kept], decisions[kept], **asked)
            for (group, before, _), share in limit.shares.items():
                self.probabilities_[int(group), int(before)] = 1 - share if before else share
            return
        flips = minimal_changes(decisions[kept], **asked).flips
        for (group, before, _), n_changes in flips.items():
            is_own = rows.group == group
            n_positive = int(decisions[is_own].sum()) + (-1 if before else 1) * n_changes
            cut = _cut(scores[is_own], n_positive, threshold)
            self.cuts_[int(group)], self.probabilities_[int(group), 0] = cut

    def _decide(self, rows: DecisionRows) -> Decisions:
        group, before, scores = rows.group_index, rows.base.decisions, rows.base.scores
        if self._constraint.needs_labels:
            positive = self.probabilities_[group, before.astype(np.intp)]
        else:
            at_cut = (scores == self.cuts_[group]) * self.probabilities_[group, 0]
            positive = (scores > self.cuts_[group]) + at_cut
        positive = rows.keep_unknown(positive)
        return positive if self.randomised else positive.astype(np.bool_)


def _cut(scores: Floats, n_positive: int, threshold: float) -> tuple[float, float]:
    """Return the cut above which scores are positive, and the probability of a score equal to it.

    The `n_positive` highest scores are positive; in expectation, where several rows share the last
    of these scores.
    """
    ordered = np.sort(scores)[::-1]
    if n_positive == 0:
        return float(middle(ordered[0], np.asarray(1.0), threshold)), 0.0
    cut = float(ordered[n_positive - 1])
    above, equal = int((scores > cut).sum()), int((scores == cut).sum())
    if above + equal > n_positive:
        return cut, (n_positive - above) / equal
    # cut between two scores: the last bit of a score may depend on the batch
    if n_positive == len(ordered):
        return -0.5, 0.0  # below every score
    return float(middle(ordered[n_positive], ordered[n_positive - 1], threshold)), 0.0


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


@dataclass(eq=False, repr=False, kw_only=True)
class ThresholdOptimizer(AwareRival):
    """Mix two of Fairlearn's thresholds per group at random; needs `pip install fairlearn`.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=1.0
        Fairlearn's `tol` is (1 − strength) times the gap between the groups' rates on the fit rows;
        1 means no tolerance. 0 keeps the base model, whose threshold Fairlearn would move
        otherwise. Fairlearn does not relax equalized odds: only 0 and 1 are allowed there.
    constraints : str, default="demographic_parity"
        Or "equalized_odds", "true_positive_rate_parity", "false_positive_rate_parity".
    objective : str, default="accuracy_score"
        Fairlearn's objective, such as "balanced_accuracy_score".
    grid_size : int, default=1000
        The number of values of the constrained rate that Fairlearn tries.
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
    tolerance_ : float
        Fairlearn's `tol`.
    thresholds_, probabilities_ : ndarray of shape (n_groups, 2)
        The two thresholds of each group and the probability of each.
    ignored_, constants_ : ndarray of shape (n_groups,)
        The probability that a score is ignored, and that of a positive decision then.

    Notes
    -----
    y is always needed. Two inputs are refused: `sample_weight`, because Fairlearn takes no weights
    here, and a group with one true label only, for which Fairlearn has no threshold.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import ThresholdOptimizer
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> groups = data.sensitive_features
    >>> update = ThresholdOptimizer(model)
    >>> update = update.fit(data.data, data.target, sensitive_features=groups)
    >>> bool(update.fairness_ > 0.99)
    True
    """

    objective: str = "accuracy_score"
    grid_size: int = number(1000, low=2, whole=True)
    random_state: Any = None

    largest_strength = 1.0
    needs_labels = True
    sample_weights = False
    randomised = True

    @property
    def default_strengths(self) -> tuple[float, ...]:
        """Return strengths from 0 to 1; for equalized odds only 0 and 1."""
        return (0.0, 1.0) if len(self._constraint.rate_rows) > 1 else super().default_strengths

    def _check_parameters(self) -> None:
        super()._check_parameters()
        is_odds = len(self._constraint.rate_rows) > 1
        rates = () if is_odds else ("selection_rate", "true_positive_rate", "true_negative_rate")
        known = ("accuracy_score", "balanced_accuracy_score", *rates)
        check_choice(self.objective, "objective", known)
        if is_odds and self.strength not in (0, 1):
            raise InputError(
                f"strength={self.strength!r} must be 0 or 1: Fairlearn does not relax "
                "equalized_odds. RelaxedThresholdOptimizer takes anything between.",
                parameter="strength",
            )

    def _learn(self, rows: RivalFitRows) -> None:
        labels = rows.needed_labels("ThresholdOptimizer maximises accuracy")
        for group, name in enumerate(rows.group_labels):
            if len(np.unique(labels[rows.group == group])) < 2:
                raise InputError(
                    f"Group {name!r} has rows of one true label only, for which Fairlearn's "
                    "ThresholdOptimizer has no threshold. Merge it with another or leave it out."
                )
        gap = np.ptp(rows.rates(self._constraint, rows.base.decisions), axis=1).sum()
        self.tolerance_ = float((1 - self.strength) * gap)
        self.thresholds_ = np.full((rows.n_groups, 2), rows.base.threshold)
        self.probabilities_ = np.tile([1.0, 0.0], (rows.n_groups, 1))
        self.ignored_, self.constants_ = np.zeros(rows.n_groups), np.zeros(rows.n_groups)
        if self.strength > 0:
            self._store_rule(_fairlearn_rule(self, rows, labels), rows.base.threshold)

    def _store_rule(self, rule: dict[int, Any], threshold: float) -> None:
        """Store Fairlearn's rule as numbers, so that `predict` does not need Fairlearn."""
        for group, mix in rule.items():
            operations = mix.operation0, mix.operation1  # "score > threshold": flip=False
            cuts = np.array([float(operation.threshold) for operation in operations])
            inside = np.isfinite(cuts)  # infinite: all rows or none
            cuts[inside] = from_half(cuts[inside], threshold)
            self.thresholds_[group] = cuts
            self.probabilities_[group] = mix.p0, mix.p1
            self.ignored_[group] = mix.get("p_ignore", 0.0)
            self.constants_[group] = mix.get("prediction_constant", 0.0)

    def _decide(self, rows: DecisionRows) -> Decisions:
        group = rows.group_index
        above = rows.base.scores[:, None] > self.thresholds_[group]
        probabilities, ignored = self.probabilities_[group], self.ignored_[group]
        mixed = probabilities[:, 0] * above[:, 0] + probabilities[:, 1] * above[:, 1]
        mixed = ignored * self.constants_[group] + (1 - ignored) * mixed
        return rows.keep_unknown(mixed)


class _ScoreModel(BaseEstimator):  # type: ignore[misc]
    """The base model as Fairlearn sees it: the only column of X is the score."""

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> Self:
        return self

    def predict_proba(self, X: Floats) -> Floats:
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def _fairlearn_rule(update: ThresholdOptimizer, rows: RivalFitRows, labels: Mask) -> dict[int, Any]:
    """Return Fairlearn's mix of thresholds for each group."""
    try:
        from fairlearn import postprocessing
    except ImportError as error:
        raise ImportError(
            "ThresholdOptimizer wraps Fairlearn, which is not installed: "
            "pip install 'commod-debiasing[fairlearn]'."
        ) from error
    compared = update._constraint.rate_rows
    relaxed = len(compared) == 1 and update.tolerance_ > 0
    optimizer = postprocessing.ThresholdOptimizer(
        estimator=_ScoreModel(),
        # Fairlearn always compares by difference
        constraints=next(c.name for c in CONSTRAINTS.values() if c.rate_rows == compared),
        objective=update.objective,
        grid_size=update.grid_size,
        prefit=True,
        predict_method="predict_proba",
        tol=update.tolerance_ if relaxed else None,
    )
    kept = rows.in_constraint
    optimizer.fit(
        rows.scores_at_half[kept][:, None],
        labels[kept].astype(np.int64),
        sensitive_features=rows.group[kept],
    )
    rule = optimizer.interpolated_thresholder_.interpolation_dict
    return {int(group): mix for group, mix in rule.items()}
