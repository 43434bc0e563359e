"""The fewest changes the exact limit allows, taken from the rows nearest to the threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from commod._solvers.search.rates import count_cells
from commod.bounds import fewest_changes, minimal_expected_changes
from commod.exceptions import InputError
from commod.rivals.base import AwareRival, DecisionRows, RivalFitRows
from commod.updates.base import Decisions

__all__ = ["MinimalFlip"]


class MinimalFlip(AwareRival):
    """Change as few decisions as the sensitive attribute allows, group by group.

    For demographic parity the exact limit says how many people of each group must change; those
    nearest to the threshold do, so that each group has a threshold of its own. For constraints on
    errors, where the true label is not known at predict time, it is the share of each group's
    positive or negative decisions that must change in expectation, drawn by lot.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=0.5
        Share of the way from the base model's fairness to parity, in [0, 1]; 0 changes nothing.
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
    cuts_ : ndarray of shape (n_groups,)
        Demographic parity: a group's scores above its cut are positive.
    probabilities_ : ndarray of shape (n_groups, 2)
        Demographic parity: in the first column, the chance of a positive decision where the score
        equals the cut. Else the chance of a positive decision after a negative and after a positive
        base decision.

    Notes
    -----
    People are counted, so `sample_weight` is refused. On the fit rows the (expected) number of
    changes equals the limit.

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

    largest_strength = 1.0

    def __init__(
        self,
        estimator: Any,
        *,
        strength: float = 0.5,
        constraints: str = "demographic_parity",
        min_group_size: int = 30,
        threshold: float = 0.5,
        pos_label: Any = None,
        favorable_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.strength = strength
        self.constraints = constraints
        self.min_group_size = min_group_size
        self.threshold = threshold
        self.pos_label = pos_label
        self.favorable_label = favorable_label
        self.random_state = random_state

    @property
    def default_strengths(self) -> tuple[float, ...]:
        """Return the way to parity.

        Rates that are equal to the last digit may take a far larger number of changes than rates
        that are nearly equal, so the sweep ends just before.
        """
        return (*super().default_strengths[:-1], 0.99)

    @property
    def randomised(self) -> bool:  # type: ignore[override]
        """Return whether some decisions are drawn by lot: ties at a cut, or errors compared."""
        chances = getattr(self, "probabilities_", None)
        if chances is None:
            return self._constraint.needs_labels
        return bool(((chances > 0) & (chances < 1)).any())

    def _learn(self, rows: RivalFitRows) -> None:
        if np.ptp(rows.weight) > 0:
            raise InputError(
                "MinimalFlip counts people, so sample_weight has no meaning here. Leave it out."
            )
        self.cuts_ = np.full(rows.n_groups, float(self.threshold))
        self.probabilities_ = np.tile([0.0, 1.0], (rows.n_groups, 1))
        base = rows.fairness(self._constraint, rows.base.decisions)
        self.target_ = self._constraint.towards_ideal(base, float(self.strength))
        if self.strength == 0 or np.isnan(base):
            return
        if not self._constraint.needs_labels:
            self._learn_cuts(rows)
        else:
            self._learn_chances(rows)

    def _learn_cuts(self, rows: RivalFitRows) -> None:
        sizes, positives = count_cells(rows.cells(self._constraint), rows.base.decisions)
        wanted = fewest_changes(self.constraints, sizes, positives, self.target_)
        assert wanted is not None  # everybody positive is a P-rule of 1
        for group in np.flatnonzero(wanted[0] != positives[0]):
            scores = rows.base.scores[rows.group == group]
            self.cuts_[group], self.probabilities_[group, 0] = _cut(scores, int(wanted[0, group]))

    def _learn_chances(self, rows: RivalFitRows) -> None:
        kept = rows.in_constraint
        assert rows.label is not None
        found = minimal_expected_changes(
            rows.label[kept],
            rows.base.decisions[kept],
            sensitive_features=rows.group[kept],
            target=self.target_,
            constraints=self.constraints,
            pos_label=True,
        )
        for (group, before, _), share in found.shares.items():
            self.probabilities_[int(group), int(before)] = 1 - share if before else share  # type: ignore[call-overload]

    def _decide(self, rows: DecisionRows) -> Decisions:
        assert rows.group is not None
        known, group = rows.group >= 0, np.maximum(rows.group, 0)
        before, scores = rows.base.decisions, rows.base.scores
        if not self._constraint.needs_labels:
            at_cut = (scores == self.cuts_[group]) * self.probabilities_[group, 0]
            chance = (scores > self.cuts_[group]) + at_cut
        else:
            chance = self.probabilities_[group, before.astype(np.intp)]
        chance = np.where(known, chance, before)
        return chance if self.randomised else chance.astype(np.bool_)


def _cut(scores: NDArray[np.float64], n_positive: int) -> tuple[float, float]:
    """Return the cut above which scores are positive, and the chance of a score equal to it.

    The `n_positive` highest scores are positive, in expectation where several share the last one.
    """
    ordered = np.sort(scores)[::-1]
    if n_positive == 0:
        return (float(ordered[0]) + 1) / 2, 0.0
    cut = float(ordered[n_positive - 1])
    above, equal = int((scores > cut).sum()), int((scores == cut).sum())
    if above + equal > n_positive:
        return cut, (n_positive - above) / equal
    # between two scores: a score's last bit may depend on the batch it comes in
    below = float(ordered[n_positive]) if n_positive < len(ordered) else -1.0
    return (cut + below) / 2, 0.0
