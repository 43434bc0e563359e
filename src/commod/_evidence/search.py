"""Find the update with the fewest changes: points, prices, nearness and the cut.

1. Regress the cells on the terms, with all rows alike.
2. Price the inequalities on values of rows that a regression has not seen, and count the cut.
3. Do both again, twice, where rows count the more, the nearer they are to the cut.
4. Take lines out of the card, in every fold alike, and round its points.
5. Spend the allowed extra changes on people near the threshold.
6. Count the cut of the rounded points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from commod._data.arrays import Floats, Mask
from commod._evidence.cut import (
    Stop,
    best_stop,
    evidence,
    is_kept_without_chance,
    is_within_caps,
    path_of,
    stop_at_cut,
)
from commod._evidence.points import (
    CardLines,
    Points,
    all_lines,
    beside_pinned,
    n_pinned_lines,
    rounded,
    shorten,
    significant,
    smallest_penalty,
    solve,
    solve_lines,
    unit_of_pinned,
    unit_of_whole,
    whole,
)
from commod._evidence.prices import Pricing, priced_rows
from commod._evidence.sums import Sums, TermDesign, dense_rows, design_of, sums_of
from commod._evidence.task import N_FOLDS, EvidenceTask

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
        return self.out_of_fold if task.is_new else self.in_sample


@dataclass(frozen=True)
class FoundUpdate:
    """An update: v = intercept + points, and a decision changes where side · v > cut · cost.

    `stop` is the count that its cut comes from; the cut is infinite where nobody changes.
    `fewest` is the number of changes without nearness.
    """

    card: EvidenceCard
    cut: float
    nearness: float
    mean_distance: float
    stop: Stop
    fewest: float
    n_lines: int

    @property
    def points(self) -> Points:
        """Return the points of v."""
        return self.card.points

    def counted_changes(self, task: EvidenceTask) -> Mask:
        """Return whose decision changes among the values that the cut was counted on, (n,)."""
        cost = costs_at(task, self.nearness, self.mean_distance)
        return np.asarray(evidence(task, self.card.counted(task), cost) > self.cut)


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
    folds = range(N_FOLDS) if task.is_new else [None] * N_FOLDS
    solutions = [solve(*sums.without(fold), found.alpha) for fold in folds]
    pricing = Pricing(task, found.priced, found.effects(solutions), cost)

    def valued(coef: Floats) -> Valued:
        coef = significant(coef, INNER_DIGITS)
        v = found.by_fold([_inner_points(found.design, s @ coef) for s in solutions])
        stop = best_stop(task, evidence(task, v, cost), is_budget=settings.is_budget)
        return Valued(coef, v, stop)

    tried = [valued(coef) for coef in pricing.rounds(rates)]
    if not any(one.stop.is_reached for one in tried):
        tried += [valued(coef) for coef in pricing.beside_caps(rates)]
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
    is_short = settings.max_lines is not None or settings.is_whole
    least = SHORT_NEARNESS if is_short else 0.0
    least = least if settings.nearness is None else settings.nearness
    mean = mean_distance(task)
    cost = costs_at(task, least, mean)
    sums, rates, passes = found.start, task.base_rates, []
    for _ in range(N_PASSES + 1):
        valued = price(found, sums, cost, settings, rates)
        passes.append((sums, valued))
        if not np.isfinite(valued.stop.cut):
            break
        rates = valued.stop.rates
        sums = sums_of(task, found.design, local_weights(task, valued, cost))
    sums, valued = passes[-1]
    for earlier in passes[-2::-1]:
        if earlier[1].is_clearly_better(valued):
            sums, valued = earlier
    return FoundValues(found, sums, valued, least, mean, cost)


class CountedCard(NamedTuple):
    """A card with the least nearness that it may have, and where its cut is counted then."""

    card: EvidenceCard
    n_lines: int
    nearness: float
    mean_distance: float
    stop: Stop


def find_card(values: FoundValues, settings: Settings) -> CountedCard:
    """Return the points of a card for these values, and the count of its changes."""
    task = values.found.task
    card, n_lines = card_of(values.found, values.sums, values.valued.coef, settings)
    score = evidence(task, card.counted(task), values.cost)
    stop = best_stop(task, score, is_budget=settings.is_budget)
    return CountedCard(card, n_lines, values.nearness, values.mean_distance, stop)


def local_weights(task: EvidenceTask, valued: Valued, cost: Floats) -> Floats:
    """Return how much each row counts in the next regression, (n,): more near the cut."""
    spread = float(significant(np.array([valued.v.std()]), INNER_DIGITS)[0])
    gap = (task.side * valued.v - valued.stop.cut * cost) / max(spread, 1e-12)
    return np.asarray(task.is_known * (np.exp(-0.5 * gap**2) + LEAST_WEIGHT))


def card_of(
    found: Regression, sums: Sums, coef: Floats, settings: Settings
) -> tuple[EvidenceCard, int]:
    """Return the card for what the sums are worth, in all rows and in every fold; and its lines.

    Whole numbers have one unit, that of all rows, because one cut is counted on all folds.
    """
    task = found.task
    parts = [sums.without(fold) for fold in ([None, *range(N_FOLDS)] if task.is_new else [None])]
    is_pinned = settings.is_whole and bool(np.nan_to_num(task.pinned).any())
    gram, cross = parts[0]
    unit = unit_of_pinned(gram, cross @ coef, found.alpha, task, found.design) if is_pinned else 1.0
    solved = [_solved(found, gram, cross @ coef, settings, unit) for gram, cross in parts]
    if settings.is_whole:
        unit = unit if is_pinned else unit_of_whole(solved[0][0])
        solved = [(whole(points, task.pinned, unit), lines) for points, lines in solved]
    points, lines = solved[0]
    in_sample = task.terms.total(points.values, points.intercept)
    out_of_fold = found.by_fold([p for p, _ in solved[1:]]) if task.is_new else in_sample
    return EvidenceCard(points, in_sample, out_of_fold), lines.n_lines


def _solved(
    found: Regression, gram: Floats, cross: Floats, settings: Settings, unit: float
) -> tuple[Points, CardLines]:
    """Return the points of one regression; pinned ones count in the `unit`."""
    design, alpha = found.design, found.alpha
    task = replace(found.task, pinned=unit * found.task.pinned)
    cross = beside_pinned(gram, cross, task, design)
    lines = all_lines(found.is_free)
    if settings.max_lines is not None:
        most = max(settings.max_lines - n_pinned_lines(task, design), 0)
        lines = shorten(gram, cross, alpha, task, design, found.is_free, most)
    points = solve_lines(gram, cross, alpha, task, design, lines)
    if settings.is_whole:
        return points, lines
    return rounded(points, lines, design, task.pinned), lines


def mean_distance(task: EvidenceTask) -> float:
    """Return the mean distance of scores from the threshold, rounded; 1 where all are at it."""
    mean = float(np.average(task.distance, weights=task.people))
    return float(significant(np.array([mean]), 4)[0]) or 1.0


def costs_at(task: EvidenceTask, nearness: float, mean: float) -> Floats:
    """Return what the change of each person costs, (n,)."""
    return np.asarray((1.0 - nearness) + (nearness / mean) * task.distance)


def with_nearness(task: EvidenceTask, counted: CountedCard, settings: Settings) -> FoundUpdate:
    """Return the update of a card with the nearness that the extra changes allow, and its cut.

    With true labels, the nearness is the one with the best accuracy among those allowed. Without
    them, it is the largest.
    """
    card, n_lines, least, mean, first = counted
    v = card.counted(task)
    stops = {least: first}
    is_given = settings.nearness is not None or settings.is_budget
    for nearness in () if is_given or not first.n_changed else NEARNESS:
        score = evidence(task, v, costs_at(task, nearness, mean))
        stops[nearness] = best_stop(task, score, is_budget=settings.is_budget)
    fewest = min(stops, key=lambda t: (stops[t].rank(task), t))
    most = (1 + settings.borderline) * stops[fewest].n_changed
    nearness = fewest
    if settings.borderline and stops[fewest].is_reached:
        allowed = [t for t, stop in stops.items() if stop.is_reached and stop.n_changed <= most]
        gained = [_gained(task, v, costs_at(task, t, mean), stops[t]) for t in allowed]
        nearness = allowed[max(range(len(allowed)), key=lambda i: (gained[i], allowed[i]))]
    stop = stops[nearness]
    cut = _within_caps(task, card, nearness, mean, stop.cut)
    if cut != stop.cut:
        stop = stop_at_cut(task, evidence(task, v, costs_at(task, nearness, mean)), cut)
    return FoundUpdate(card, cut, nearness, mean, stop, stops[fewest].n_changed, n_lines)


def recounted(
    task: EvidenceTask, card: EvidenceCard, found: FoundUpdate, settings: Settings
) -> FoundUpdate:
    """Return an update with the cut that the people of another task give; `card` has their values.

    Points and nearness stay as they are.
    """
    nearness, mean = found.nearness, found.mean_distance
    score = evidence(task, card.counted(task), costs_at(task, nearness, mean))
    stop = best_stop(task, score, is_budget=settings.is_budget)
    cut = _within_caps(task, card, nearness, mean, stop.cut)
    if cut != stop.cut:
        stop = stop_at_cut(task, score, cut)
    return replace(found, card=card, cut=cut, stop=stop)


def _gained(task: EvidenceTask, v: Floats, cost: Floats, stop: Stop) -> float:
    """Return the weight of the decisions that become right, less those that become wrong."""
    if task.label is None:
        return 0.0
    changed = evidence(task, v, cost) > stop.cut
    right = np.where(task.label == task.positive, -1.0, 1.0)
    return float((right * task.weight)[changed].sum())


def _within_caps(
    task: EvidenceTask, card: EvidenceCard, nearness: float, mean: float, cut: float
) -> float:
    """Return the cut, or the next higher one at which caps hold on the fit rows and out of fold."""
    if task.caps == type(task.caps)() or not np.isfinite(cut) or not task.is_new:
        return cut
    cost = costs_at(task, nearness, mean)
    scores = [evidence(task, v, cost) for v in (card.in_sample, card.out_of_fold)]

    def holds(cut: float) -> bool:
        stops = (stop_at_cut(task, score, cut) for score in scores)
        return all(
            is_within_caps(task, np.array([stop.n_changed]), stop.caps[:, None]).all()
            for stop in stops
        )

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
