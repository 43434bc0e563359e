"""Find the update with the fewest changes: points, prices, nearness and the cut.

1. Regress the cells on the terms, with all rows alike.
2. Price the inequalities on values of rows that a regression has not seen, and count the cut.
3. Do both again, twice, where rows count the more, the nearer they are to the cut.
4. Take lines out of the card, in every fold alike, and round its points.
5. Spend the allowed extra changes on people near the threshold.
6. Count the cut of the rounded points.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from commod._data.arrays import Codes, Floats, Mask
from commod._evidence.cut import (
    Stop,
    best_stop,
    evidence,
    is_kept_without_chance,
    path_of,
    stop_at_cut,
)
from commod._evidence.points import (
    Points,
    Sums,
    TermDesign,
    all_lines,
    beside_pinned,
    dense_rows,
    design_of,
    n_pinned_lines,
    rounded,
    shorten,
    significant,
    smallest_penalty,
    solve,
    solve_lines,
    sums_of,
    unit_of_pinned,
    unit_of_whole,
    whole,
)
from commod._evidence.task import N_FOLDS, Caps, EvidenceTask

N_PASSES = 2  # regressions in which rows near the cut count more
CLEARLY_FEWER = 0.95  # changes of an earlier pass, as a share of those of the last one
LEAST_WEIGHT = 0.05  # of a row far from the cut
INNER_DIGITS = 6  # of numbers between the steps: the last bits depend on the processor
SHORT_NEARNESS = 0.05  # ties of a short card are broken by the distance from the threshold
NEARNESS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # values of t that are tried


class Settings(NamedTuple):
    """What an update may look like: extra changes, the most lines, whole-number points.

    With `is_budget`, the fairest update within the caps is sought. `nearness` is given, or None.
    """

    borderline: float = 0.0
    max_lines: int | None = None
    is_whole: bool = False
    is_budget: bool = False
    nearness: float | None = None


@dataclass(frozen=True)
class EvidenceCard:
    """Points of all rows, and what they and those of each fold give each person, (n,) each."""

    points: Points
    in_sample: Floats
    out_of_fold: Floats

    def counted(self, task: EvidenceTask) -> Floats:
        """Return the values that the cut is counted on."""
        return self.out_of_fold if task.for_new else self.in_sample


@dataclass(frozen=True)
class FoundUpdate:
    """An update: v = intercept + points, and a decision changes where side · v > cut · cost.

    `stop` is the count that its cut comes from; the cut is infinite where nobody changes.
    `fewest` is the number of changes without nearness. `tried` are updates of the same card with
    other nearness that were counted.
    """

    card: EvidenceCard
    cut: float
    nearness: float
    mean_distance: float
    stop: Stop
    fewest: float
    tried: tuple[FoundUpdate, ...] = ()

    @property
    def points(self) -> Points:
        """Return the points of v."""
        return self.card.points

    def score(self, task: EvidenceTask) -> Floats:
        """Return side · v / cost of each person, (n,), by which the cut is counted."""
        cost = costs_at(task, self.nearness, self.mean_distance)
        return evidence(task, self.card.counted(task), cost)


class Regression:
    """The regressions of a task on one set of terms; rows may count differently in each pass.

    `other` is that of the same rows in another direction of changes, or with other bounds.
    """

    def __init__(self, task: EvidenceTask, other: Regression | None = None) -> None:
        self.task = task
        self.design: TermDesign = design_of(task) if other is None else other.design
        self.alpha = smallest_penalty(task.smallest_base)
        self.is_free = np.isnan(task.pinned[self.design.terms])
        self.rows_of = [np.flatnonzero(task.fold == f) for f in range(N_FOLDS)]
        self.priced = priced_rows(task)
        if other is None:
            self.start = sums_of(task, self.design, task.is_known.astype(np.float64))
        else:
            self.start = other.start

    @cached_property
    def priced_terms(self) -> Floats:
        """Return the standardised terms of the priced rows, (m, d + 1)."""
        return dense_rows(self.design, self.priced)

    def effects(self, solutions: list[Floats]) -> Floats:
        """Return what a positive decision of priced rows is expected to add to the sums, (m, K)."""
        fold = self.task.fold[self.priced]
        expected = np.zeros((len(self.priced), solutions[0].shape[1]))
        for f, solution in enumerate(solutions):
            expected[fold == f] = self.priced_terms[fold == f] @ solution
        return expected

    def by_fold(self, values: list[Points]) -> Floats:
        """Return v of each person by the points of their own fold, (n,)."""
        v = np.empty(len(self.task))
        for rows, points in zip(self.rows_of, values, strict=True):
            v[rows] = self.task.terms.take(rows).total(points.values, points.intercept)
        return v


# ---------------------------------------------------------------------------------------------
# Prices of the inequalities, and the value of a person


class Valued(NamedTuple):
    """What the sums are worth, `coef` (K,), the value of each person (n,), and where it is cut."""

    coef: Floats
    v: Floats
    stop: Stop

    def is_clearly_better(self, other: Valued) -> bool:
        """Return whether it alone keeps all bounds, or does so with far fewer changes."""
        if self.stop.is_reached and other.stop.is_reached:
            return self.stop.n_changed < CLEARLY_FEWER * other.stop.n_changed
        return self.stop.is_reached


def price(found: Regression, sums: Sums, cost: Floats, settings: Settings, rates: Floats) -> Valued:
    """Return the values with the fewest changes out of a few rounds of prices.

    `rates` (C,) are those at which inequalities are linear: of the last cut.
    """
    task = found.task
    folds = range(N_FOLDS) if task.for_new else [None] * N_FOLDS
    solutions = [solve(*sums.without(fold), found.alpha) for fold in folds]
    pricing = Pricing(task, found.priced, found.effects(solutions), cost)
    tried: list[Valued] = []
    for coefs in (pricing.rounds(rates), pricing.beside_caps(rates)):
        if any(one.stop.is_reached for one in tried):
            break
        for exact in coefs:
            coef = significant(exact, INNER_DIGITS)
            v = found.by_fold([_inner_points(found.design, s @ coef) for s in solutions])
            stop = best_stop(task, evidence(task, v, cost), is_budget=settings.is_budget)
            tried.append(Valued(coef, v, stop))
    return min(tried, key=lambda one: one.stop.rank(task))


def _inner_points(design: TermDesign, solution: Floats) -> Points:
    """Return a solution (d + 1,) as points in raw units, rounded to INNER_DIGITS."""
    values = np.zeros(design.n_all)
    values[design.terms] = significant(solution[1:] / design.scale, INNER_DIGITS)
    return Points(values, float(significant(solution[:1], INNER_DIGITS)[0]))


# ---------------------------------------------------------------------------------------------
# The update


def find_update(
    task: EvidenceTask, settings: Settings, other: Regression | None = None
) -> FoundUpdate:
    """Return the update with the fewest changes that keeps all bounds, or comes close to them.

    `other` is the regression of the same rows with other bounds, which shares its sums.
    """
    values = find_values(Regression(task, other), settings)
    return with_nearness(task, find_card(values, settings), settings)


class FoundValues(NamedTuple):
    """What people are worth before lines are chosen, and the sums of the regression behind it.

    `cost` (n,) has the least nearness that a card may have.
    """

    found: Regression
    sums: Sums
    valued: Valued
    nearness: float
    mean_distance: float
    cost: Floats

    @property
    def is_kept_without_chance(self) -> bool:
        """Return whether all bounds can be kept, if the chance of new samples is left out."""
        task = self.found.task
        return is_kept_without_chance(task, evidence(task, self.valued.v, self.cost))


def find_values(found: Regression, settings: Settings) -> FoundValues:
    """Return the values of people with the fewest changes; rows near the cut count more."""
    task = found.task
    if not task.terms.n_terms:
        return _distance_alone(found, settings)
    is_short = settings.max_lines is not None or settings.is_whole
    least = SHORT_NEARNESS if is_short else 0.0
    least = least if settings.nearness is None else settings.nearness
    mean = mean_distance(task)
    cost = costs_at(task, least, mean)
    sums, valued = found.start, price(found, found.start, cost, settings, task.base_rates)
    passes = [(sums, valued)]
    for _ in range(N_PASSES):
        if not np.isfinite(valued.stop.cut):
            break
        sums = sums_of(task, found.design, local_weights(task, valued, cost))
        valued = price(found, sums, cost, settings, valued.stop.rates)
        passes.append((sums, valued))
    for earlier in passes[-2::-1]:
        if earlier[1].is_clearly_better(valued):
            sums, valued = earlier
    return FoundValues(found, sums, valued, least, mean, cost)


def _distance_alone(found: Regression, settings: Settings) -> FoundValues:
    """Return values without terms: all people are worth the same, and the nearest change first.

    The value has the sign with which the fewest changes keep the bounds.
    """
    task = found.task
    mean = mean_distance(task)
    cost = costs_at(task, 1.0, mean)
    tried = []
    for sign in (1.0, -1.0):
        v = np.full(len(task), sign)
        stop = best_stop(task, evidence(task, v, cost), is_budget=settings.is_budget)
        tried.append(Valued(np.zeros(0), v, stop))
    valued = min(tried, key=lambda one: one.stop.rank(task))
    return FoundValues(found, found.start, valued, 1.0, mean, cost)


def find_card(values: FoundValues, settings: Settings) -> FoundUpdate:
    """Return the update of a card for these values, with the least nearness that it may have."""
    task = values.found.task
    if task.terms.n_terms:
        card = fold_card(values.found, values.sums, values.valued.coef, settings)
    else:
        v = values.valued.v
        card = EvidenceCard(Points(np.zeros(0), float(v[0])), v, v)
    score = evidence(task, card.counted(task), values.cost)
    stop = best_stop(task, score, is_budget=settings.is_budget)
    return FoundUpdate(card, stop.cut, values.nearness, values.mean_distance, stop, stop.n_changed)


def local_weights(task: EvidenceTask, valued: Valued, cost: Floats) -> Floats:
    """Return how much each row counts in the next regression, (n,): more near the cut."""
    spread = float(significant(np.array([valued.v.std()]), INNER_DIGITS)[0])
    gap = (task.side * valued.v - valued.stop.cut * cost) / max(spread, 1e-12)
    return np.asarray(task.is_known * (np.exp(-0.5 * gap**2) + LEAST_WEIGHT))


def fold_card(found: Regression, sums: Sums, coef: Floats, settings: Settings) -> EvidenceCard:
    """Return the card for what the sums are worth, in all rows and in every fold.

    Whole numbers have one unit, that of all rows, because one cut is counted on all folds.
    """
    task = found.task
    parts = [sums.without(fold) for fold in ([None, *range(N_FOLDS)] if task.for_new else [None])]
    is_pinned = settings.is_whole and bool(np.nan_to_num(task.pinned).any())
    gram, cross = parts[0]
    unit = unit_of_pinned(gram, cross @ coef, found.alpha, task, found.design) if is_pinned else 1.0
    solved = [_solved(found, gram, cross @ coef, settings, unit) for gram, cross in parts]
    if settings.is_whole:
        unit = unit if is_pinned else unit_of_whole(solved[0])
        solved = [whole(points, task.pinned, unit) for points in solved]
    points = solved[0]
    in_sample = task.terms.total(points.values, points.intercept)
    out_of_fold = found.by_fold(solved[1:]) if task.for_new else in_sample
    return EvidenceCard(points, in_sample, out_of_fold)


def _solved(
    found: Regression, gram: Floats, cross: Floats, settings: Settings, unit: float
) -> Points:
    """Return the points of one regression; pinned ones count in the `unit`."""
    design, alpha = found.design, found.alpha
    task = replace(found.task, pinned=unit * found.task.pinned)
    cross = beside_pinned(gram, cross, task, design)
    lines = all_lines(found.is_free)
    if settings.max_lines is not None:
        most = max(settings.max_lines - n_pinned_lines(task, design), 0)
        lines = shorten(gram, cross, alpha, task, design, found.is_free, most)
    points = solve_lines(gram, cross, alpha, task, design, lines)
    return points if settings.is_whole else rounded(points, lines, design, task.pinned)


def mean_distance(task: EvidenceTask) -> float:
    """Return the mean distance of scores from the threshold, rounded; 1 where all are at it."""
    mean = float(np.average(task.distance, weights=task.people))
    return float(significant(np.array([mean]), 4)[0]) or 1.0


def costs_at(task: EvidenceTask, nearness: float, mean: float) -> Floats:
    """Return what the change of each person costs, (n,)."""
    return np.asarray((1.0 - nearness) + (nearness / mean) * task.distance)


def with_nearness(task: EvidenceTask, found: FoundUpdate, settings: Settings) -> FoundUpdate:
    """Return an update with the nearness that the extra changes allow, and its cut.

    With true labels, the nearness is the one with the best accuracy among those allowed. Without
    them, it is the largest.
    """
    tried = {found.nearness: found}
    is_given = settings.nearness is not None or settings.is_budget or not task.terms.n_terms
    for nearness in () if is_given or not found.stop.n_changed else NEARNESS:
        other = replace(found, nearness=nearness)
        stop = best_stop(task, other.score(task), is_budget=settings.is_budget)
        tried[nearness] = replace(other, cut=stop.cut, stop=stop)
    fewest = min(tried, key=lambda t: (tried[t].stop.rank(task), t))
    most = (1 + settings.borderline) * tried[fewest].stop.n_changed
    nearness = fewest
    if settings.borderline and tried[fewest].stop.is_reached:
        allowed = [
            t for t, one in tried.items() if one.stop.is_reached and one.stop.n_changed <= most
        ]
        gained = [_gained(task, tried[t]) for t in allowed]
        nearness = allowed[max(range(len(allowed)), key=lambda i: (gained[i], allowed[i]))]
    fewest_changes = tried[fewest].stop.n_changed
    kept = replace(tried[nearness], fewest=fewest_changes, tried=tuple(tried.values()))
    return _capped(task, kept)


def recounted(
    task: EvidenceTask, card: EvidenceCard, found: FoundUpdate, settings: Settings
) -> FoundUpdate:
    """Return an update with the cut that the people of another task give; `card` has their values.

    Points and nearness stay as they are.
    """
    found = replace(found, card=card)
    stop = best_stop(task, found.score(task), is_budget=settings.is_budget)
    return _capped(task, replace(found, cut=stop.cut, stop=stop))


def _capped(task: EvidenceTask, found: FoundUpdate) -> FoundUpdate:
    """Return an update with its cut, or with the next higher one that is allowed."""
    cut, was = _allowed_cut(task, found), found.stop
    if cut == found.cut:
        return found
    score = found.score(task)
    stop, unchanged = (stop_at_cut(task, score, at) for at in (cut, np.inf))
    if unchanged.rank(task)[1] <= stop.rank(task)[1] and not stop.is_reached:
        stop = unchanged  # the base model is expected to be as fair
    is_lost = was.is_reached and not stop.is_reached and task.caps == Caps()
    stop = stop._replace(is_blocked=was.is_blocked or is_lost)
    return replace(found, cut=stop.cut, stop=stop)


def _gained(task: EvidenceTask, found: FoundUpdate) -> float:
    """Return the weight of the decisions that become right, less those that become wrong."""
    if task.label is None:
        return 0.0
    changed = found.score(task) > found.cut
    right = np.where(task.label == task.positive, -1.0, 1.0)
    return float((right * task.weight)[changed].sum())


def _allowed_cut(task: EvidenceTask, found: FoundUpdate) -> float:
    """Return the cut, or the next higher one that is allowed on the fit rows and out of fold.

    There, all caps hold, and decisions still tell people apart.
    """
    card, cut = found.card, found.cut
    if not np.isfinite(cut) or not task.for_new:
        return cut
    cost = costs_at(task, found.nearness, found.mean_distance)
    scores = [evidence(task, v, cost) for v in (card.in_sample, card.out_of_fold)]

    def holds(cut: float) -> bool:
        return all(stop_at_cut(task, score, cut).is_allowed for score in scores)

    if holds(cut):
        return cut
    paths = [path_of(task, score) for score in scores]
    higher = [(path, at) for path in paths for at in np.flatnonzero(path.next > cut).tolist()]
    middles = np.array([(path.lowest[at] + path.next[at]) / 2 for path, at in higher])
    is_kept = np.ones(len(middles), dtype=bool)
    for path in paths:
        count = np.searchsorted(-path.lowest, -middles)  # as many stops are above the cut
        is_kept &= path.is_allowed[np.maximum(count - 1, 0)]
    order = np.argsort(middles, kind="stable")
    cuts = (higher[i][0].cut(higher[i][1]) for i in order[is_kept[order]].tolist())
    return next((cut for cut in cuts if holds(cut)), np.inf)


def changed_by(task: EvidenceTask, found: FoundUpdate) -> Mask:
    """Return the rows of the task whose decision the update changes, (n,)."""
    cost = costs_at(task, found.nearness, found.mean_distance)
    score = evidence(task, found.card.in_sample, cost)
    return np.asarray(score > found.cut)


# ---------------------------------------------------------------------------------------------
# Price the inequalities: how many changes one unit of each of their slacks is worth


HEAT = 0.05  # h: the width of the soft step, in the unit of the cost
N_ROUNDS = 2  # of prices, each corrected by what the last ones change
MAX_PRICED_ROWS = 5_000  # on which prices are sought
CAP_WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # of a cap beside a bound that is out of reach
HIGHEST_PRICE = 1e3  # of an inequality that cannot be kept
N_NEWTON_STEPS, N_HALVINGS = 20, 30  # steps, and how often each may be halved
TOLERANCES = (1e-9, 1e-15)  # of the descent before Newton's method; the second where it is needed
LARGEST_GRADIENT = 1e-9  # of a price that is not at an end


def prices_of(U: Floats, cost: Floats, slack: Floats, start: Floats | None = None) -> Floats:
    """Return the prices (J,) that minimise the dual.

    Parameters
    ----------
    U : ndarray of shape (n, J)
        By how much the change of each person raises the slack of each inequality, times n.
    cost : ndarray of shape (n,)
        What the change of each person costs.
    slack : ndarray of shape (J,)
        The slacks before any change.
    start : ndarray of shape (J,), default=None

    Examples
    --------
    Nobody has to change where every slack is positive.

    >>> prices_of(np.ones((4, 1)), np.ones(4), np.array([0.5]))
    array([0.])
    """
    dual = PriceDual(U, cost, slack)
    mu = np.full(U.shape[1], 1e-3) if start is None else start
    for tolerance in TOLERANCES:
        solved = minimize(
            dual.value_and_gradient,
            mu,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, HIGHEST_PRICE)] * len(slack),
            options={"maxiter": 500, "ftol": tolerance, "gtol": LARGEST_GRADIENT},
        )
        mu = dual.polished(np.asarray(solved.x))
        if dual.is_minimum(mu):
            break
    return mu


class PriceDual(NamedTuple):
    """The convex function that prices minimise."""

    U: Floats
    cost: Floats
    slack: Floats

    def value_and_gradient(self, mu: Floats) -> tuple[float, Floats]:
        """Return the function at prices (J,), and its gradient (J,)."""
        heat = (self.U @ mu - self.cost) / HEAT
        value = HEAT * np.logaddexp(0, heat).mean() + mu @ self.slack
        return float(value), (expit(heat) @ self.U) / len(self.U) + self.slack

    def at_end(self, mu: Floats, gradient: Floats) -> Mask:
        """Return which prices (J,) are at an end, and would lie beyond it."""
        low, high = (mu <= 0) & (gradient >= 0), (mu >= HIGHEST_PRICE) & (gradient <= 0)
        return np.asarray(low | high)

    def is_minimum(self, mu: Floats) -> bool:
        """Return whether prices are those of the minimum, but for rounding."""
        _, gradient = self.value_and_gradient(mu)
        free = gradient[~self.at_end(mu, gradient)]
        return bool(np.abs(free).max(initial=0.0) <= LARGEST_GRADIENT)

    def polished(self, mu: Floats) -> Floats:
        """Return the minimum by Newton's method on the prices that are not at an end."""
        mu = np.where(mu > 1e-9, mu, 0.0)
        value, gradient = self.value_and_gradient(mu)
        for _ in range(N_NEWTON_STEPS):
            at = np.flatnonzero(~self.at_end(mu, gradient))
            if not len(at):
                break
            U, share = self.U[:, at], expit((self.U @ mu - self.cost) / HEAT)
            curvature = (U * (share * (1 - share))[:, None]).T @ U / (HEAT * len(U))
            ridge = 1e-12 * float(curvature.trace()) + 1e-300
            step = np.zeros(len(mu))
            step[at] = np.linalg.solve(curvature + ridge * np.eye(len(at)), gradient[at])
            for shorter in 0.5 ** np.arange(N_HALVINGS):
                moved = np.clip(mu - shorter * step, 0.0, HIGHEST_PRICE)
                most = value + 1e-4 * float(gradient @ (moved - mu))
                if self.value_and_gradient(moved)[0] <= most:
                    break
            else:
                break
            change = float(np.abs(moved - mu).max())
            mu = moved
            value, gradient = self.value_and_gradient(mu)
            if change <= 1e-14 * max(float(np.abs(mu).max()), 1.0):
                break
        return mu


def priced_rows(task: EvidenceTask) -> Codes:
    """Return the rows that prices are sought on: those that may change, at most MAX_PRICED_ROWS."""
    rows = np.flatnonzero(task.may_change)
    return rows[:: -(-len(rows) // MAX_PRICED_ROWS)] if len(rows) else rows


class Pricing:
    """Seek what one unit of each sum is worth.

    Parameters
    ----------
    task : EvidenceTask
    rows : ndarray of shape (m,)
        The rows that prices are sought on.
    expected : ndarray of shape (m, K)
        What a positive decision of each of these rows is expected to add to the sums.
    cost : ndarray of shape (n,)
        What the change of each person costs.
    """

    def __init__(self, task: EvidenceTask, rows: Codes, expected: Floats, cost: Floats) -> None:
        self.task, self.cost = task, cost[rows]
        side = task.side[rows, None] * len(task)
        self.expected = side * expected
        self.counted = side * task.steps_of(rows)
        self.share = float(task.may_change.mean())
        self.base = np.concatenate([task.base_rates, np.zeros(task.caps_steps.shape[1])])

    def rounds(self, rates: Floats) -> Iterator[Floats]:
        """Yield values of the sums, (K,), each corrected by what the last ones change.

        Inequalities are tangents at `rates` (C,), and then at the rates that prices lead to.
        """
        task = self.task
        if not len(self.cost):  # nobody may change, so no sum is worth anything
            yield np.zeros(len(self.base))
            return
        made = task.inequalities(rates)
        slack = made.slopes @ self.base + made.constant
        if len(slack) == 2 and len(task.required) == 1:
            # Two groups and one rate: one of two inequalities is short, and its price is any.
            yield self._scaled(made.slopes[int(np.argmin(slack))])
            return
        mu, correction = None, np.zeros(len(slack))
        for _ in range(N_ROUNDS):
            U = self.expected @ made.slopes.T
            mu = prices_of(U, self.cost, (slack + correction) / self.share, mu)
            yield self._scaled(made.slopes.T @ mu)
            changed = expit((U @ mu - self.cost) / HEAT) * (self.share / len(U))
            moved = changed @ self.counted
            made = task.inequalities(np.clip((self.base + moved)[: task.n_cells], 0.0, 1.0))
            slack = made.slopes @ self.base + made.constant
            correction = made.slopes @ (moved - changed @ self.expected)

    def beside_caps(self, rates: Floats) -> Iterator[Floats]:
        """Yield values for the worst inequality and caps at several weights; none without caps."""
        made = self.task.inequalities(rates)
        is_cap = made.constraint < 0
        slack = made.slopes @ self.base + made.constant
        worst = made.slopes[int(np.argmin(np.where(is_cap, np.inf, slack)))]
        for weight in CAP_WEIGHTS:
            for caps in made.slopes[is_cap]:
                yield self._scaled(worst / np.abs(worst).max() + weight * caps)

    def _scaled(self, coef: Floats) -> Floats:
        """Return values of the sums so that the person who counts most is worth 1."""
        task, n_caps = self.task, self.task.caps_steps.shape[1]
        totals = np.concatenate([task.totals, np.full(n_caps, task.weight.sum())])
        largest = np.abs(coef / np.where(totals > 0, totals, np.inf)).max(initial=0.0)
        return coef / (largest * task.weight.mean()) if largest else coef
