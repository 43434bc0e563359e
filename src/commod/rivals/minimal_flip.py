"""MinimalFlip: the fewest changes that the exact limit allows, nearest the threshold first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from commod._data.arrays import Floats
from commod.bounds import minimal_expected_changes
from commod.bounds._counts import fewest_changes
from commod.exceptions import InputError
from commod.metrics._cells import count_cells
from commod.rivals._rows import DecisionRows, RivalFitRows, middle
from commod.rivals.base import AwareRival
from commod.updates._interface import Decisions


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
        if self._constraint.needs_labels:
            if self._constraint.is_ratio:
                raise InputError(
                    f"MinimalFlip compares error rates by their difference; got "
                    f"{self._constraint.name!r}, a ratio. Use ControlledDebiaser for ratios.",
                    parameter="constraints",
                )
            self._learn_probabilities(rows)
        else:
            self._learn_cuts(rows)

    def _learn_cuts(self, rows: RivalFitRows) -> None:
        sizes, positives = count_cells(rows.cells(self._constraint), rows.base.decisions)
        required = fewest_changes(self._constraint, sizes, positives, self.target_)
        assert required is not None  # the P-rule is 1 where everybody is positive
        for group in np.flatnonzero(required[0] != positives[0]):
            scores = rows.base.scores[rows.group == group]
            self.cuts_[group], self.probabilities_[group, 0] = _cut(
                scores, int(required[0, group]), rows.base.threshold
            )

    def _learn_probabilities(self, rows: RivalFitRows) -> None:
        kept = rows.in_constraint
        assert rows.label is not None
        limit = minimal_expected_changes(
            rows.label[kept],
            rows.base.decisions[kept],
            sensitive_features=rows.group[kept],
            target=self.target_,
            constraints=self._constraint,
            pos_label=True,
        )
        for (group, before, _), share in limit.shares.items():
            self.probabilities_[int(group), int(before)] = 1 - share if before else share  # type: ignore[call-overload]

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
