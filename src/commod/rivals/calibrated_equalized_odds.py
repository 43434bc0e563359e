"""Calibrated equalized odds by information withholding (Pleiss et al. 2017)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from commod._data.arrays import Codes, Floats, Mask
from commod._data.parameters import check_choice
from commod.exceptions import InputError, TargetWarning
from commod.metrics._constraint import FALSE_POSITIVES, ODDS, TRUE_POSITIVES
from commod.rivals._rows import DecisionRows, RivalFitRows
from commod.rivals.base import AwareRival, random_draws
from commod.updates._interface import Decisions

# ---------------------------------------------------------------------------------------------
# Generalised error costs of groups, and how often a score must be withheld to equalise them

COST_NAMES = {"fnr": "false negative", "fpr": "false positive", "weighted": "weighted error"}


@dataclass(eq=False, repr=False, kw_only=True)
class CalibratedEqualizedOdds(AwareRival):
    """Replace scores by the base rate of their group, at random, until one error cost is equal.

    The group with the highest cost keeps its scores. In every other group s, a share a_s of the
    rows gets the score μ_s, the group's share of positive labels. Its cost rises to the highest:
    a_s = (highest cost − cost_s) / (cost of μ_s − cost_s). Scores stay calibrated in every group.
    A row whose score is withheld is decided by μ_s > threshold.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted. Its scores must be calibrated in every group.
    strength : float, default=1.0
        The share of the mixing rates a_s that is used, in [0, 1]. 0 changes nothing; 1 is the
        authors' rule, which has no such parameter.
    cost : str, default=None
        Which cost is made equal. "fnr" is the mean of 1 − score over true positives, "fpr" the mean
        score over true negatives, and "weighted" the mean of both over all rows. None takes the
        cost that belongs to the constraint, see `constraints`.
    constraints : str, default="equalized_odds"
        The metric that measures the result. "true_positive_rate_parity" goes with the cost "fnr",
        "false_positive_rate_parity" with "fpr". "equalized_odds" takes any cost, and "weighted" by
        default: calibrated scores cannot have both costs equal, so the method makes one cost equal.
    min_group_size : int, default=30
        Fit rows that a group needs; smaller groups keep their base decisions.
    threshold : float, default=0.5
        The base decision is score > threshold. The score is read as it is, because a shifted score
        would not be calibrated.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.
    random_state : int, RandomState or None, default=None
        Seed of the random draws. A draw belongs to its row: the same row always gets the same one.

    Attributes
    ----------
    cost_ : str
        The cost that is made equal.
    costs_, trivial_costs_, base_rates_ : ndarray of shape (n_groups,)
        Each group's cost, the cost of the constant score μ_s, and μ_s. NaN where a group has no row
        to measure them on.
    required_rates_ : ndarray of shape (n_groups,)
        a_s. A rate above 1 is infeasible. It is infinite where withholding does not raise the cost.
    mixing_rates_ : ndarray of shape (n_groups,)
        The probability that a score is withheld: strength times a_s, where a_s is clipped to 1.
        It is 0 where withholding does not raise the cost.

    Notes
    -----
    A TargetWarning names the groups for which a_s is infeasible. This is common: on the authors'
    three data files, six of nine pairs of file and cost are infeasible.

    The costs are means of scores. The metric of the constraint counts decisions, so it may get
    worse where the cost becomes equal. With more than two groups, each group is mixed towards the
    highest cost; the authors have two groups.

    References
    ----------
    Pleiss, Raghavan, Wu, Kleinberg, Weinberger: "On Fairness and Calibration", NeurIPS 2017.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import CalibratedEqualizedOdds
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> groups = data.sensitive_features
    >>> update = CalibratedEqualizedOdds(model)
    >>> update = update.fit(data.data, data.target, sensitive_features=groups)
    >>> bool((update.required_rates_ <= 1).all())
    True
    >>> update.mixed_scores(data.data, sensitive_features=groups).shape
    (800,)
    """

    cost: str | None = None
    constraints: str = "equalized_odds"
    random_state: Any = None

    known_constraints = (ODDS, TRUE_POSITIVES, FALSE_POSITIVES)
    needs_labels = True
    randomised = True
    largest_strength = 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.cost is None:
            return
        check_choice(self.cost, "cost", tuple(COST_NAMES))
        measured = self._measured_cost()
        if measured not in ("weighted", self.cost):
            raise InputError(
                f"cost={self.cost!r} does not go with constraints={self._constraint.name!r}, which "
                f"measures the cost {measured!r}. Pass cost={measured!r}, or "
                "constraints='equalized_odds', which takes any cost.",
                parameter="cost",
            )

    def _measured_cost(self) -> str:
        """Return the cost that belongs to the constraint."""
        labels = [row.label for row in self._constraint.rate_rows]
        if len(labels) > 1:
            return "weighted"
        return "fnr" if labels[0] else "fpr"

    # -- learning -------------------------------------------------------------------------------

    def _learn_all(self, models: Sequence[Self], rows: RivalFitRows) -> None:
        """Measure the costs once; the models differ only in the share of the rates."""
        label = rows.needed_labels("CalibratedEqualizedOdds measures the costs of errors")
        kept = rows.in_constraint
        cost = self.cost or self._measured_cost()
        costs, trivial, base_rates = group_costs(
            rows.base.scores[kept],
            label[kept],
            rows.group[kept],
            rows.weight[kept],
            n_groups=rows.n_groups,
            cost=cost,
        )
        for model in models:
            model.cost_ = cost
            model.costs_, model.trivial_costs_, model.base_rates_ = costs, trivial, base_rates
            model.required_rates_ = required_rates(costs, trivial)
            feasible = feasible_rates(model.required_rates_)
            model.mixing_rates_ = float(model.strength) * feasible
        infeasible = self._infeasibility()
        if infeasible and any(model.strength > 0 for model in models):
            warnings.warn(infeasible, TargetWarning, stacklevel=4)

    def _infeasibility(self) -> str:
        """Return a sentence about the groups whose cost cannot rise to the highest, or ''."""
        rates = zip(self.group_labels_, self.required_rates_.tolist(), strict=True)
        infeasible = [(label, rate) for label, rate in rates if rate > 1]
        if not infeasible:
            return ""
        parts = [
            f"{label!r} (withholding does not raise its cost: rate 0)"
            if np.isinf(rate)
            else f"{label!r} (it needs the mixing rate {rate:.2f}: rate 1)"
            for label, rate in infeasible[:6]
        ]
        return (
            f"The {COST_NAMES[self.cost_]} cost cannot become equal by withholding scores. It "
            f"stays lower in {'the groups' if len(parts) > 1 else 'the group'} {', '.join(parts)}. "
            "Check that the scores are calibrated in every group, or choose another cost."
        )

    def _remarks(self) -> Iterator[str]:
        yield from super()._remarks()
        if infeasible := self._infeasibility():
            yield infeasible
        if np.isnan(self.costs_).any():
            yield (
                f"Nothing changes: a group has no row to measure the {COST_NAMES[self.cost_]} cost "
                "on."
            )

    # -- deciding -------------------------------------------------------------------------------

    def _decide(self, rows: DecisionRows) -> Decisions:
        rate = self.mixing_rates_[rows.group_index]
        trivial = self._trivial_decisions(rows)
        return rows.keep_unknown(rows.base.decisions * (1 - rate) + trivial * rate)

    def _trivial_decisions(self, rows: DecisionRows) -> Mask:
        """Return the decision of each row if its score is withheld, shape (n,)."""
        return np.asarray(self.base_rates_ > rows.base.threshold)[rows.group_index]

    def mixed_scores(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the scores of `pos_label` after withholding, shape (n,).

        Each is the base score, or the base rate of the group. The random draws are those of
        `predict`: a row is decided positively where its mixed score is above the threshold.
        """
        rows = self._read_rows(X, sensitive_features)
        assert rows.group is not None
        rate = self.mixing_rates_[rows.group_index]
        draws = random_draws(rows.columns, rows.base.scores, self._draw_seed)
        # `predict` decides positively below the probability: low draws get the positive decision
        withheld = np.where(self._trivial_decisions(rows), draws < rate, draws >= 1 - rate)
        base_rates = self.base_rates_[rows.group_index]
        return np.where(withheld & (rows.group >= 0), base_rates, rows.base.scores)


ROUNDING = 1e-12  # costs that differ by less are equal


def group_costs(
    scores: Floats,
    label: Mask,
    group: Codes,
    weight: Floats,
    *,
    n_groups: int,
    cost: str,
) -> tuple[Floats, Floats, Floats]:
    """Return the generalised cost of each group's scores, that of its base rate, and this rate.

    Each has shape (g,), and NaN where a group has no row to measure it on. The base rate is the
    share of positive labels, which counts as a constant score.

    - "fnr": the mean of 1 − score over the rows with a positive label.
    - "fpr": the mean of the score over the rows with a negative label.
    - "weighted": the mean over all rows of 1 − score or score, by label.

    Examples
    --------
    >>> scores, label = np.array([0.8, 0.6, 0.1, 0.3]), np.array([True, True, False, False])
    >>> costs, trivial, _ = group_costs(
    ...     scores, label, np.zeros(4, int), np.ones(4), n_groups=1, cost="fnr"
    ... )
    >>> costs.round(3), trivial
    (array([0.3]), array([0.5]))
    """
    counted = {"fnr": label, "fpr": ~label, "weighted": np.ones_like(label)}[cost]

    def mean(values: Any, weight: Floats) -> Floats:
        totals, sizes = (np.bincount(group, w, n_groups) for w in (weight * values, weight))
        with np.errstate(invalid="ignore"):
            return np.asarray(totals / sizes)

    costs = mean(np.where(label, 1 - scores, scores), weight * counted)
    rates = mean(label, weight)
    trivial = {"fnr": 1 - rates, "fpr": rates, "weighted": 2 * rates * (1 - rates)}
    return costs, trivial[cost], rates


def required_rates(costs: Floats, trivial: Floats) -> Floats:
    """Return how often each group's score must be withheld to raise its cost to the highest.

    A rate above 1 is infeasible: even the trivial score costs too little. The rate is infinite
    where withholding does not raise the cost at all, and 0 everywhere where a cost is undefined.

    Examples
    --------
    >>> required_rates(np.array([0.2, 0.35, 0.1]), np.array([0.5, 0.5, 0.2]))
    array([0.5, 0. , 2.5])
    """
    if np.isnan(costs).any():
        return np.zeros(len(costs))
    missing, room = costs.max() - costs, trivial - costs
    rates = np.full(len(costs), np.inf)
    np.divide(missing, room, out=rates, where=room > ROUNDING)
    return np.where(missing > ROUNDING, rates, 0.0)


def feasible_rates(required: Floats) -> Floats:
    """Return the rates that can be used: at most 1, and 0 where withholding is of no help."""
    return np.where(np.isinf(required), 0.0, np.minimum(required, 1.0))
