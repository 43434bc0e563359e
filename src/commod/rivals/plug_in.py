"""Rules on estimated probabilities: positive where gain − Σ ψ_j γ_j > 0. Three ways to choose ψ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from commod._data.arrays import Floats, Mask
from commod.exceptions import CommodError
from commod.metrics._constraint import TRUE_POSITIVES
from commod.metrics._people import People
from commod.rivals._group_model import GroupProbabilityRival
from commod.rivals._rows import HALF, DecisionRows, RivalFitRows
from commod.rivals.base import number
from commod.updates._fit_rows import FitRows
from commod.updates._interface import Decisions
from commod.updates.base import LARGEST_WEIGHT


class LPP(GroupProbabilityRival):
    """Take the most accurate decisions whose predicted rates differ little between groups.

    The base score f counts as P(Y = 1 | x). The groups' rates are predicted from P(S | x), or from
    P(S, Y | x) for constraints that compare errors. A linear programme gives a rule for new rows:
    positive where f − 0.5 − Σ ψ_j γ_j > 0, with one multiplier ψ_j for each group and rate row. At
    another threshold than 0.5, f is the shifted score (see `threshold`). Decisions are not
    randomised: where the authors break ties by noise, this class chooses multipliers without ties.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=1.0
        Share of the largest predicted gap between two groups that must go, in [0, 1]. 0 changes
        nothing; 1 requires predicted parity. The fairness on true groups also depends on how well
        the probabilities are calibrated.
    aware : bool, default=False
        If True, `predict` takes the group of each row instead of predicting it.
    group_model : classifier, default=None
        Predicts the group from X where `aware` is False; for constraints that compare errors, also
        the true label. Pass it unfitted: a clone is fitted on X as passed, locked features
        included. None means a logistic regression on numbers, their bins, and categories.
    constraints : str, default="demographic_parity"
        Which rates must be close: those of all rows ("demographic_parity"), of the rows with one
        true label ("true_positive_rate_parity", "false_positive_rate_parity"), or of both labels
        ("equalized_odds").
    locked_features : sequence of str, default=()
        Columns that the built-in group model must not read.
    min_category_size : int, default=20
        Fit rows that a category needs before the built-in group model reads it.
    min_group_size : int, default=30
        Fit rows that a group needs to be part of the constraint.
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
    multipliers_ : ndarray of shape (n_rate_rows, n_groups)
        ψ; zeros where nothing changes. Equalized odds has two rate rows, true label 1 first.
    tolerance_ : float
        The largest predicted gap allowed; NaN where a rate is undefined because a cell is empty.
    shares_ : ndarray of shape (n_rate_rows, n_groups)
        P(S = j), or P(S = j, Y = y), the denominators of γ.
    group_model_ : object
        The fitted group model; None where `aware` is True.

    Notes
    -----
    Sorting solves the case of two groups and one rate row exactly. HiGHS solves all other cases; on
    large tables it gets only the rows near the threshold of the rule. With `aware` and equalized
    odds, a group may have to lose on both rates, which no threshold does. Rows near the threshold
    then change first.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import LPP
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = LPP(model, strength=0.5)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> bool(update.fairness_ > update.base_fairness_)
    True
    >>> update.predict(data.data).shape
    (800,)
    """

    tolerance_: float
    lambda_ratio = 0.0

    def _choose_multipliers(
        self, models: Sequence[Self], rows: RivalFitRows, programme: LinearProgramme
    ) -> None:
        """Set `multipliers_` of each model. The programme has the rows of `rows.is_counted`.

        A model that this method leaves alone has multipliers of 0 and changes nothing.
        """
        gap = programme.gap(programme.gain > 0) if self._is_defined(rows) else np.nan
        for model in models:
            model.tolerance_ = (1 - float(model.strength)) * gap
            if model.tolerance_ < gap:
                model.multipliers_ = best_multipliers(programme, model.tolerance_)

    # -- learning -------------------------------------------------------------------------------

    def _learn_all(self, models: Sequence[Self], rows: RivalFitRows) -> None:
        """Fit the group model once; the models differ only in their multipliers."""
        counted, share, effects = self._learn_cells(models, rows)
        programme = LinearProgramme(self._gain(rows)[counted], effects, share)
        self._choose_multipliers(models, rows, programme)

    # -- deciding -------------------------------------------------------------------------------

    def _decide(self, rows: DecisionRows) -> Mask:
        if not self.multipliers_.any():
            return rows.base.decisions
        margins = fair_margins(self._gain(rows), self._effects(rows), self.multipliers_)
        return decide(margins, rows.base.decisions)

    def _gain(self, rows: DecisionRows) -> Floats:
        """Return what a positive decision is worth without fairness, shape (n,)."""
        lambda_ratio = float(self._fitted_param("lambda_ratio"))
        gain = rows.scores_at_half - HALF + lambda_ratio * (2.0 * rows.base.decisions - 1.0)
        is_curved = self._fitted_param("aware") and len(self._constraint.rate_rows) > 1
        return curved_gain(gain) if is_curved else gain


@dataclass(eq=False, repr=False, kw_only=True)
class CFBC(LPP):
    """Give two groups equal true positive rates, as predicted from the base scores.

    The base score f counts as P(Y = 1 | x), and P_s is P(Y = 1, S = s). Group 0 is the first group,
    group 1 the second, in sorted order.

    - With `aware`, a row of group 1 is positive where f · (2 − θ/P_1) > 1, a row of group 0 where
      f · (2 + θ/P_0) > 1.
    - Otherwise, a row is positive where 2f − 1 > θ · (P(Y = 1, S = 1 | x)/P_1 −
      P(Y = 1, S = 0 | x)/P_0).

    θ is the number of smallest size with which the predicted true positive rates are equal, or
    as close as `strength` requires.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted. Its scores should be calibrated probabilities: the
        method predicts true positive rates from them.
    strength : float, default=1.0
        Share of the predicted gap between the true positive rates that must go, in [0, 1]. 0
        changes nothing. The paper has no tolerance: it is strength 1.
    aware : bool, default=False
        If True, `predict` takes the group of each row instead of predicting it.
    group_model : classifier, default=None
        Predicts the group and the true label from X where `aware` is False. Pass it unfitted: a
        clone is fitted on X as passed, locked features included. None means a logistic regression
        on numbers, their bins, and categories.
    constraints : str, default="true_positive_rate_parity"
        The only constraint that this method knows, by ratio or difference.
    locked_features : sequence of str, default=()
        Columns that the built-in group model must not read.
    min_category_size : int, default=20
        Fit rows that a category needs before the built-in group model reads it.
    min_group_size : int, default=30
        Fit rows that a group needs to be part of the constraint.
    threshold : float, default=0.5
        The base decision is score > threshold.
        The rule compares with 0.5. So the score and its threshold are shifted on the
        logit scale until the threshold is 0.5.
    pos_label : label, default=None
        The label whose rates count. If None, `favorable_label`, or else `classes_[1]`.
    favorable_label : label, default=None
        The label that is good for the person; `pos_label` if None. It only names gains and losses.

    Attributes
    ----------
    theta_ : float
        θ; 0 where nothing changes.
    tolerance_ : float
        The largest predicted gap allowed; NaN where a rate is undefined because a cell is empty.
    multipliers_ : ndarray of shape (1, 2)
        −θ/2 and θ/2.
    shares_ : ndarray of shape (1, 2)
        P_0 and P_1, the means of the predicted probabilities.
    group_model_ : object
        The fitted group model; None where `aware` is True.

    Notes
    -----
    Sorting the breakpoints of θ solves the problem exactly; θ lies midway between two of them. For
    two groups, `LPP` with this constraint decides the same: both solve one linear programme. Use
    `LPP` for more than two groups. A tie keeps its base decision.

    The authors compute P_0 with the mean score of group 1, search a grid that leaves out
    ``|θ| < 0.01``, and their code without the group changes nothing. This class follows the paper.

    References
    ----------
    Chzhen, Denis, Hebiri, Oneto, Pontil: "Leveraging Labeled and Unlabeled Data for Consistent Fair
    Binary Classification", NeurIPS 2019.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import CFBC
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = CFBC(model)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> bool(update.fairness_ < update.base_fairness_)
    True
    """

    constraints: str = TRUE_POSITIVES

    known_constraints = (TRUE_POSITIVES,)
    several_groups = False

    @property
    def theta_(self) -> float:
        """Return θ; 0 where nothing changes."""
        return 2 * float(self.multipliers_[0, 1])


N_KNOTS = 16  # linear programmes from the base model to parity; the path is straight between
ROUNDING = 1e-9  # a target counts as reached if it is missed by no more


@dataclass(eq=False, repr=False, kw_only=True)
class BayesPlugIn(LPP):
    """Decide by the Bayes-optimal score, with the smallest multipliers that reach the target.

    The score has three parts: f − 0.5, a fairness margin, and `lambda_ratio` in favour of the base
    decision. So a decision changes where accuracy and fairness together speak against it by more
    than `lambda_ratio`. f counts as P(Y = 1 | x); at another threshold than 0.5,
    f is the shifted score (see `threshold`). A group model gives P(S | x) or P(S, Y | x). The
    multipliers are the first on their path that reach the target on the fit rows, measured with the
    true groups.

    Parameters
    ----------
    estimator : fitted classifier or ScoreColumn
        The base model. It is never refitted.
    strength : float, default=1.0
        Where the target lies between the base model's fairness (0) and parity (1); 0 changes
        nothing.
    aware : bool, default=False
        If True, `predict` takes the group of each row instead of predicting it.
    group_model : classifier, default=None
        Predicts the group from X where `aware` is False; for constraints that compare errors, also
        the true label. Pass it unfitted: a clone is fitted on X as passed, locked features
        included. None means a logistic regression on numbers, their bins, and categories.
        A model that overfits, such as a deep forest, reaches targets on the fit rows only.
    lambda_ratio : float, default=0.0
        The cost of one changed decision, in units of f: 0.1 equals a tenth of an error. Larger
        values need larger multipliers for the same target.
    constraints : str, default="demographic_parity"
        "demographic_parity" (P-rule), "equalized_odds" (DM = ΔTPR + ΔFPR),
        "true_positive_rate_parity" or "false_positive_rate_parity" (one gap).
    locked_features : sequence of str, default=()
        Columns that the built-in group model must not read.
    min_category_size : int, default=20
        Fit rows that a category needs before the built-in group model reads it.
    min_group_size : int, default=30
        Fit rows that a group needs to be part of the constraint.
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
    multipliers_ : ndarray of shape (n_rate_rows, n_groups)
        ψ of the margin −Σ ψ_j γ_j; zeros where nothing changes. Two groups under demographic
        parity have ψ = (−μ, target·μ), the lower group first. Equalized odds has two rate rows,
        true label 1 first.
    target_ : float
        The P-rule or sum of gaps required on the fit rows; `fairness_` is the value reached.
    reached_ : bool
        Whether the update reaches the target on the fit rows, up to rounding.
    shares_ : ndarray of shape (n_rate_rows, n_groups)
        P(S = j), or P(S = j, Y = y), the denominators of γ.
    group_model_ : object
        The fitted group model; None where `aware` is True.

    Notes
    -----
    Two groups and one rate row have a single multiplier, which rises from 0. Otherwise the path is
    straight from one knot to the next. The knots are the multipliers of `LPP` for smaller and
    smaller predicted gaps; past the last knot the path keeps its direction. Every stretch of the
    path is measured, and the first that reaches the target is taken. Where none does, the fairest
    is taken, and `status_` says so.

    Examples
    --------
    >>> from commod.datasets import make_biased
    >>> from commod.rivals import BayesPlugIn
    >>> from sklearn.linear_model import LogisticRegression
    >>> data = make_biased(800, random_state=0)
    >>> model = LogisticRegression().fit(data.data, data.target)
    >>> update = BayesPlugIn(model, strength=0.5)
    >>> update = update.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> update.reached_
    True
    """

    lambda_ratio: float = number(0.0, low=0.0, high=LARGEST_WEIGHT)

    def _choose_multipliers(
        self, models: Sequence[Self], rows: RivalFitRows, programme: LinearProgramme
    ) -> None:
        is_ratio = self._constraint.is_ratio
        base = rows.fairness(self._constraint, rows.base.decisions)
        path = None
        for model in models:
            strength = float(model.strength)
            model.target_ = self._constraint.towards_ideal(base, strength)
            if strength > 0 and not np.isnan(base) and self._is_defined(rows):
                # with a ratio of two groups, the target sets the direction of the path
                if path is None or (is_ratio and rows.n_groups == 2):
                    path = self._path(rows, programme, model.target_)
                model.multipliers_ = path.first(model.target_ if is_ratio else -model.target_)

    def _path(
        self, rows: RivalFitRows, programme: LinearProgramme, target: float
    ) -> MultiplierPath:
        """Return the path of multipliers with the fairness that is measured along it."""
        rates = rows.rates(self._constraint, rows.base.decisions)
        if rates.shape == (1, 2):
            level = target if self._constraint.is_ratio else 1.0
            knots = [np.zeros((1, 2)), np.where(rates == rates.min(), -1.0, level)]
        else:
            # smaller and smaller predicted gaps: none smaller, then to parity, and beyond
            gap = programme.gap(programme.gain > 0)
            tolerances = (gap * np.linspace(1, 0, N_KNOTS + 1)[1:]).tolist()
            knots = [best_multipliers(programme, tolerance) for tolerance in tolerances]
            knots = [np.zeros_like(knots[0]), *knots, 2 * knots[-1]]
        counted, cells = rows.is_counted, rows.cells(self._constraint)
        return trace_path(
            programme,
            knots,
            cells=cells.take(counted),
            weight=rows.weight[counted],
            as_ratio=self._constraint.is_ratio,
        )

    def _store_outcome(self, rows: FitRows, positive: Decisions) -> None:
        super()._store_outcome(rows, positive)
        # False for a NaN, where the fairness is undefined
        missing = self._constraint.shortfall(self.fairness_, self.target_)
        self.reached_ = bool(missing <= ROUNDING)

    def _remarks(self) -> Iterator[str]:
        yield from super()._remarks()
        if self._constraint.shortfall(self.fairness_, self.target_) > ROUNDING:
            yield (
                f"The target, {self._compared_text().metric} {self._constraint.sign} "
                f"{self.target_:.4g}, was not reached: {self.fairness_:.4g} is the fairest value "
                "on the path of multipliers."
            )


# ---------------------------------------------------------------------------------------------
# Multipliers of plug-in rules: who is decided positively when probabilities are known
#
# A positive decision of row i is worth the gain g_i and adds γ_lji to the predicted rate of each
# cell (rate row l, group j). The best decisions under linear limits on these rates follow a
# threshold rule: positive where g_i − Σ ψ_lj γ_lji > 0. This part computes the multipliers ψ in two
# ways:
#
# - `best_multipliers` limits predicted rates, by the linear programme of Xian and Zhao (2024).
# - `trace_path` follows a path of multipliers and counts the rates that are reached along it.

SLACK = 1e-10  # rates sum up to millions of shares: equal rates may differ by rounding
LEAST_GAP = 1e-7  # less than one person in a million: such rates count as equal
TIE = 1e-12  # relative: breakpoints closer than this count as one
EDGE = 1e-9  # the tolerance given to HiGHS: smaller margins count as 0
CURVATURE = 1e-3  # small compared to a gain that matters, large compared to EDGE
SOLVED, INFEASIBLE = 0, 2  # status of linprog
N_ROWS = 5_000  # a linear programme of at most so many rows is solved directly


@dataclass(frozen=True)
class LinearProgramme:
    """The gain of positive decisions, and their effect on predicted rates.

    Attributes
    ----------
    gain : ndarray of shape (n,)
        What a positive decision is worth; the base decision is positive where it is above 0.
    effects : ndarray of shape (n_rate_rows, n_groups, n)
        γ, what a positive decision adds to the rate of each cell; mean 1 over the rows.
    share : ndarray of shape (n,)
        The weights of the rows; they sum to 1.
    """

    gain: Floats
    effects: Floats
    share: Floats

    def gap(self, positive: Mask) -> float:
        """Return the largest difference between two groups' predicted rates in any rate row."""
        return float(np.ptp(self.effects @ (self.share * positive), axis=1).max())

    def decisions(self, multipliers: Floats) -> Mask:
        """Return the decisions at these multipliers, shape (n,)."""
        return decide(self.margins(multipliers), self.gain > 0)

    def margins(self, multipliers: Floats) -> Floats:
        """Return g − Σ ψ_lj γ_lj of each row, shape (n,)."""
        return fair_margins(self.gain, self.effects, multipliers)


def fair_margins(gain: Floats, effects: Floats, multipliers: Floats) -> Floats:
    """Return g − Σ ψ_lj γ_lj of each row, shape (n,).

    The sum is taken cell by cell: a matrix product may round a row differently in another batch.
    """
    total = gain.copy()
    for row, weights in zip(effects, multipliers.tolist(), strict=True):
        for effect, weight in zip(row, weights, strict=True):
            if weight:
                total -= weight * effect
    return total


def decide(margins: Floats, base: Mask) -> Mask:
    """Return whether each margin is positive; where it is exactly 0, the base decision.

    Examples
    --------
    >>> decide(np.array([0.1, 0.0, 0.0]), np.array([False, True, False]))
    array([ True,  True, False])
    """
    return np.where(margins == 0, base, margins > 0).astype(np.bool_)


def curved_gain(gain: Floats) -> Floats:
    """Return the gain with a slight curvature and the same sign.

    Where the group is known, the gain and the effects of equalized odds are linear in the score. A
    group whose rates must both fall then gets a margin of 0 for every row, and the programme leaves
    open who changes. A randomised rule would draw. The curvature decides by the score instead: rows
    near the threshold change first.
    """
    return gain + CURVATURE * gain * np.abs(gain)


# ---------------------------------------------------------------------------------------------
# The linear programme


def best_multipliers(programme: LinearProgramme, tolerance: float) -> Floats:
    """Return the multipliers ψ (n_rate_rows, n_groups) of the best decisions within the tolerance.

    The decisions p in [0, 1] maximise Σ share·gain·p. In each rate row, the predicted rates of any
    two groups differ by at most `tolerance`. Each row of ψ sums to 0. All ψ are exactly 0 where the
    base decisions are within the tolerance.

    Examples
    --------
    >>> effects = np.array([[[2.0, 2.0, 0.0, 0.0], [0.0, 0.0, 2.0, 2.0]]])
    >>> two = LinearProgramme(np.array([0.4, -0.1, -0.1, -0.4]), effects, np.full(4, 0.25))
    >>> best_multipliers(two, 0.0).round(3)
    array([[ 0.125, -0.125]])
    >>> two.decisions(best_multipliers(two, 0.0))
    array([ True, False,  True, False])
    """
    shape = programme.effects.shape[:2]
    if programme.gap(programme.gain > 0) <= tolerance + LEAST_GAP:
        return np.zeros(shape)
    if shape == (1, 2):
        first, second = programme.effects[0]
        single = single_multiplier(programme.gain, second - first, programme.share, tolerance)
        return np.array([[-single, single]])
    return _avoid_ties(programme, _solve(programme, tolerance), tolerance)


def single_multiplier(gain: Floats, difference: Floats, share: Floats, tolerance: float) -> float:
    """Return the λ of the rule gain − λ·difference > 0, for two groups and one rate row.

    λ minimises Σ share·(gain − λ·difference)₊ + tolerance·|λ|, the dual of the programme. Sorting
    finds it: as λ moves away from 0, each row changes at most once, at λ = gain/difference, and
    every change brings the rates closer. So the first λ within the tolerance is the best.
    """
    gap = float(share @ (difference * (gain > 0)))
    if abs(gap) <= tolerance + SLACK:
        return 0.0
    sign = np.sign(gap)
    breaks, steps = _breakpoints(gain, sign * difference, share)
    remaining = abs(gap) - np.cumsum(steps)
    is_last = np.append(np.diff(breaks) > TIE * np.abs(breaks[:-1]), True)  # rows of one value
    breaks, remaining = breaks[is_last], remaining[is_last]
    within = remaining <= tolerance + SLACK
    k = int(np.argmax(within)) if within.any() else len(breaks) - 1
    # Two cases. 1. The remaining gap equals the tolerance: every λ up to the next breakpoint is
    # optimal, and the middle is farthest from any row. 2. Otherwise the optimum is breakpoint k,
    # where a row is decided in part. Decisions are not randomised, so that row changes as a whole:
    # λ is past the breakpoint, again midway to the next. Should that overshoot (few rows, or many
    # alike) by more than stopping short would miss, λ stays before the breakpoint.
    overshoots = remaining[k] < -tolerance - SLACK
    before = remaining[k - 1] if k else abs(gap)
    if overshoots and before < -remaining[k]:
        k -= 1
    return float(sign * _midway(breaks, k)) if k >= 0 else 0.0


def _breakpoints(gain: Floats, slope: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Return the λ > 0 where gain − λ·slope changes its sign, ascending, and the steps of the gap.

    A gain of 0 counts as negative, as in the base decision.
    """
    moves = np.where(gain > 0, slope > 0, slope < 0)
    with np.errstate(over="ignore"):  # a slope near 0 never matters
        at = np.abs(gain[moves] / slope[moves])
    steps = share[moves] * np.abs(slope[moves])
    finite = np.isfinite(at)
    at, steps = at[finite], steps[finite]
    order = np.argsort(at, kind="stable")
    return at[order], steps[order]


def _midway(breaks: Floats, k: int) -> float:
    """Return the middle of breakpoints k and k + 1; half a unit past the last breakpoint."""
    after = breaks[k + 1] if k + 1 < len(breaks) else breaks[k] + 1
    return float(breaks[k] + after) / 2


def _solve(programme: LinearProgramme, tolerance: float) -> Floats:
    """Return optimal multipliers; a large programme is reduced to the rows near a margin of 0.

    1. Solve the programme of a sample.
    2. With its multipliers, decide rows whose margin is far from 0 by the sign of the margin. Solve
       the programme of the other rows.
    3. If the new multipliers confirm these signs, they are optimal for all rows. Otherwise repeat
       step 2 with three times as many rows near 0, at last with all rows.
    """
    n = len(programme.gain)
    # multipliers from m rows are off by about 1/√m, so the sign is open for about n/√m rows: both
    # programmes are of one size
    size = max(N_ROWS, int(4 * n ** (2 / 3)))
    zeros = np.zeros(programme.effects.shape[:2])
    multipliers = None
    if size < n:
        multipliers = _solve_rows(_sample(programme, size), tolerance, np.arange(size), zeros)
    while size < n and multipliers is not None:
        margins = programme.margins(multipliers)
        is_near = _nearest(programme, margins, size)
        fixed = programme.effects @ (programme.share * (~is_near & (margins > 0)))
        solved = _solve_rows(programme, tolerance, np.flatnonzero(is_near), fixed)
        if solved is not None:
            if (is_near | (margins * programme.margins(solved) > 0)).all():
                return solved
            multipliers = solved
        size *= 3
    multipliers = _solve_rows(programme, tolerance, np.arange(n), zeros)
    if multipliers is None:  # equal rates are always possible, so the numbers are of absurd size
        raise CommodError(
            "The linear programme of this constraint could not be solved. Check the base scores "
            "and sample_weight for values that differ by many orders of magnitude."
        )
    return multipliers


def _sample(programme: LinearProgramme, size: int) -> LinearProgramme:
    """Return the programme of `size` rows, spread evenly over the gains of every group."""
    group = programme.effects.sum(axis=0).argmax(axis=0)
    order = np.lexsort((programme.gain, group))
    rows = order[np.linspace(0, len(order) - 1, size).astype(np.intp)]
    share = programme.share[rows] / programme.share[rows].sum()
    effects = programme.effects[:, :, rows]
    means = effects @ share
    return LinearProgramme(
        programme.gain[rows], effects / np.where(means > 0, means, 1.0)[:, :, None], share
    )


def _nearest(programme: LinearProgramme, margins: Floats, size: int) -> Mask:
    """Return the `size` rows that the smallest changes of the multipliers would change."""
    reach = np.maximum(programme.effects.sum(axis=(0, 1)), np.finfo(float).tiny)
    is_near = np.zeros(len(margins), dtype=np.bool_)
    is_near[np.argpartition(np.abs(margins) / reach, size)[:size]] = True
    return is_near


def _solve_rows(
    programme: LinearProgramme, tolerance: float, rows: NDArray[np.intp], fixed: Floats
) -> Floats | None:
    """Return the multipliers of the programme of `rows`; None where it has no solution.

    The unknowns are p of each row, the middle of each rate row, and each cell's difference from
    that middle, within ± tolerance/2. Each cell has one equation, whose marginal is its multiplier.
    `fixed` (n_rate_rows, n_groups) is what the other rows add to the rates.
    """
    shape = n_rates, n_groups = programme.effects.shape[:2]
    n, n_cells = len(rows), n_rates * n_groups
    # weights of 1 on average: HiGHS takes values below 1e-9 for 0
    size = programme.share[rows] * n
    equations = np.hstack(
        [
            size * programme.effects[:, :, rows].reshape(n_cells, n),
            np.repeat(-n * np.eye(n_rates), n_groups, axis=0),
            -n * np.eye(n_cells),
        ]
    )
    cost = np.concatenate([-size * programme.gain[rows], np.zeros(n_rates + n_cells)])
    half = max(tolerance, 0.0) / 2
    ranges = np.array([(0.0, 1.0), (-np.inf, np.inf), (-half, half)])
    settings: Any = {
        "bounds": np.repeat(ranges, [n, n_rates, n_cells], axis=0),
        "options": {"dual_feasibility_tolerance": EDGE, "primal_feasibility_tolerance": EDGE},
    }
    for method in ("highs", "highs-ipm"):
        solution = linprog(cost, A_eq=equations, b_eq=-n * fixed.ravel(), method=method, **settings)
        if solution.status in (SOLVED, INFEASIBLE):  # otherwise the second method may succeed
            break
    if solution.status != SOLVED:
        return None
    # a marginal is the change of the least cost per unit of the right-hand side, which is −ψ
    return -np.asarray(solution.eqlin.marginals, dtype=np.float64).reshape(shape)


def _avoid_ties(programme: LinearProgramme, multipliers: Floats, tolerance: float) -> Floats:
    """Return multipliers nearby at which no row has a margin of 0.

    At an optimum a few rows (one for each free multiplier) are decided in part. Along the ray
    through ψ all these rows change at ψ itself: a little before ψ they keep their base decisions, a
    little past ψ they change. The side within the tolerance is returned, otherwise the closer one.
    """
    margins = programme.margins(multipliers)
    clear = np.abs(margins) > EDGE
    pull = programme.gain - margins
    breaks, _ = _breakpoints(programme.gain[clear], pull[clear], programme.share[clear])
    before = breaks[breaks < 1].max(initial=0.0)
    after = breaks[breaks > 1].min(initial=2.0)
    sides = [(before + 1) / 2 * multipliers, (1 + after) / 2 * multipliers]
    gaps = [programme.gap(programme.decisions(side)) for side in sides]
    return sides[0] if gaps[0] <= max(tolerance + SLACK, gaps[1]) else sides[1]


# ---------------------------------------------------------------------------------------------
# A path of multipliers


@dataclass(frozen=True)
class MultiplierPath:
    """Multipliers on a path of straight legs, and the fairness along it.

    Decisions change at some positions of the path. Between two of them lies a stretch, on which
    decisions and fairness are constant.

    Attributes
    ----------
    knots : ndarray of shape (m + 1, n_rate_rows, n_groups)
        The ends of the legs, from 0. Position 2.5 is halfway from knot 2 to knot 3. The last leg
        has no end.
    starts : ndarray of shape (K,)
        The position where each stretch begins.
    fairness : ndarray of shape (K,)
        The P-rule of each stretch, or minus the sum of the gaps: higher is fairer.
    """

    knots: Floats
    starts: Floats
    fairness: Floats

    def first(self, target: float) -> Floats:
        """Return the multipliers of the first stretch this fair; if none is, of the fairest."""
        reached = self.fairness >= target - SLACK
        k = int(np.argmax(reached) if reached.any() else np.argmax(self.fairness))
        return self.at(_midway(self.starts, k)) if k else self.knots[0]

    def at(self, position: float) -> Floats:
        """Return the multipliers at a position, shape (n_rate_rows, n_groups)."""
        leg = min(int(position), len(self.knots) - 2)
        begin, end = self.knots[leg : leg + 2]
        return np.asarray(begin + (position - leg) * (end - begin))


def trace_path(
    programme: LinearProgramme,
    knots: Sequence[Floats],
    *,
    cells: People,
    weight: Floats,
    as_ratio: bool,
) -> MultiplierPath:
    """Return the path through `knots` with the fairness that is counted on each stretch.

    Parameters
    ----------
    programme : LinearProgramme of n rows
    knots : sequence of ndarrays of shape (n_rate_rows, n_groups)
        The ends of the legs; the first is 0, the base decisions.
    cells : People
        The true cell of each row, in which decisions are counted.
    weight : ndarray of shape (n,)
    as_ratio : bool
        Whether fairness is the lowest rate over the highest. Otherwise it is minus the sum over
        the rate rows of the gaps.
    """
    margins = programme.gain
    positive = margins > 0
    totals = cells.totals(weight)
    counts = cells.totals(weight * positive).ravel()
    starts, fairness = [np.zeros(1)], [_fairness(counts[:, None], totals, as_ratio)]
    for leg, end in enumerate(knots[1:]):
        is_last = leg == len(knots) - 2
        end_margins = programme.margins(end)
        at, order = _crossings(margins, end_margins, positive, np.inf if is_last else 1.0)
        steps = np.where(positive[order], -1.0, 1.0) * weight[order]
        changed = np.zeros((len(counts), len(order)))
        inside = np.flatnonzero(cells.index[order] >= 0)
        changed[cells.index[order][inside], inside] = steps[inside]
        running = counts[:, None] + np.cumsum(changed, axis=1)
        distinct = np.append(np.diff(at) > TIE * np.maximum(at[:-1], TIE), True)[: len(at)]
        starts.append(leg + at[distinct])
        fairness.append(_fairness(running[:, distinct], totals, as_ratio))
        counts = running[:, -1] if len(at) else counts
        positive = positive.copy()
        positive[order] ^= True
        margins = end_margins
    return MultiplierPath(np.stack(knots), np.concatenate(starts), np.concatenate(fairness))


def _crossings(
    begin: Floats, end: Floats, positive: Mask, most: float
) -> tuple[Floats, NDArray[np.intp]]:
    """Return the positions in (0, most) where rows change from `begin` to `end`, and the rows."""
    slope = end - begin
    least = TIE * np.abs(slope).max(initial=0.0)  # a smaller slope is rounding
    moves = np.where(positive, slope < -least, slope > least)
    index = np.flatnonzero(moves)
    at = np.maximum(-begin[index] / slope[index], 0.0)
    inside = at < most
    at, index = at[inside], index[inside]
    order = np.argsort(at, kind="stable")
    return at[order], index[order]


def _fairness(counts: Floats, totals: Floats, as_ratio: bool) -> Floats:
    """Return the fairness of each column of counts (cells, K), shape (K,); −inf if undefined."""
    rates = (counts / totals.reshape(-1, 1)).reshape(*totals.shape, -1)
    if not as_ratio:
        return -np.asarray(np.ptp(rates, axis=1).sum(axis=0))
    highest = rates[0].max(axis=0)
    ratio = np.full(len(highest), -np.inf)  # without a positive decision the ratio is undefined
    return np.divide(rates[0].min(axis=0), highest, out=ratio, where=highest > 0)
