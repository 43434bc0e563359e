"""FairScoreTransformer, FST (Wei, Ramamurthy, Calmon 2020)."""

from __future__ import annotations

from commod.rivals.fair_projection import (
    Divergence,
    Dual,
    MeanScores,
    ProjectionRival,
    difference_dual,
    difference_gap,
)


class FairScoreTransformer(ProjectionRival):
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

    @property
    def _divergence(self) -> Divergence:
        return "cross_entropy"

    def _gap(self, means: MeanScores) -> float:
        return difference_gap(means, means.scores)

    def _dual(self, means: MeanScores, tolerance: float) -> Dual:
        return difference_dual(means, tolerance, self._divergence)
