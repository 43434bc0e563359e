"""The update that a problem asks for: find it, count its cut, make its scorecard."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.arrays import Codes, Floats, Mask
from commod._data.base_model import BaseScores, training_signs
from commod._data.encoding import Encoding, NumericTerms, TermTable
from commod._evidence.cut import Path, Stop, path_of, stop_on
from commod._evidence.points import Points, dense_rows, design_of, significant
from commod._evidence.search import (
    INNER_DIGITS,
    EvidenceCard,
    FoundUpdate,
    Regression,
    Settings,
    changed_by,
    find_card,
    find_values,
    recounted,
    with_nearness,
)
from commod._evidence.task import N_FOLDS, Caps, EvidenceTask, with_bounds
from commod._record.costs import CountedUpdate
from commod._solvers.concepts import Concepts, by_column
from commod._solvers.threads import single_blas_thread
from commod._words.update import LEVEL
from commod.exceptions import SeenRowsWarning
from commod.metrics._constraint import Constraint
from commod.metrics._roc import score_cells
from commod.scorecard import (
    UNREACHED_CUT,
    AllowedChanges,
    EvidenceRule,
    Scorecard,
    distances,
    new_decisions,
)
from commod.updates._alternatives import counted_alternatives
from commod.updates._fit_rows import FitRows
from commod.updates._interface import tell
from commod.updates._problem import FitProblem, evidence_task

MAX_REFINEMENTS = 8  # of the counts around a cut
MOST_BESIDE_CAPS = 2.0  # times the changes of the update without caps
N_CONCEPTS = 2  # that a scorecard is split into, by whole raw columns
MIN_AREA = 0.97  # of scores that may be too good to be of new people
MOST_LEFT = 0.1  # of the wrongly ordered pairs of models that have not seen the row
MIN_EXCESS = 0.05  # of the accuracy over that of models that have not seen the row
N_ERRORS = 3.0  # standard errors of the excess
MAX_ROWS = 5000  # that models are compared on
MAX_TERMS = 200  # of these models
RIDGE = 10.0  # of these models, per standardised term
NOT_CORRECTED = (
    "its own optimism there is not corrected, so new people may fare worse than expected. Fit the "
    "update on rows that are new to the base model"
)


@dataclass(frozen=True)
class Expectation:
    """What is expected of an update on new samples of as many people; NaN where nothing is.

    It is counted on values of rows that their points have not seen.

    - `fairness`: the mean fairness of samples. `interval`: in which a sample has its fairness, 95
      times out of 100.
    - `change_rate`, `accuracy`: the share of changes, and the accuracy.
    - `values`: the metric of each stated constraint by its name.
    - `is_reached`: whether all bounds are expected to hold.
    - `base_values`: as `values`, of the base model on the same new people.
    """

    fairness: float
    interval: tuple[float, float]
    change_rate: float
    accuracy: float
    values: dict[str, float]
    is_reached: bool
    base_values: dict[str, float] = field(default_factory=dict)

    @classmethod
    def unknown(cls, constraints: Sequence[Constraint]) -> Expectation:
        """Return that nothing can be expected."""
        nan = float("nan")
        values = {one.name: nan for one in constraints}
        return cls(nan, (nan, nan), nan, nan, values, is_reached=False, base_values=values)

    @property
    def is_known(self) -> bool:
        """Return whether anything can be expected."""
        return not np.isnan(self.fairness)

    @property
    def base_fairness(self) -> float:
        """Return the fairness to expect of the base model; NaN where it is not known."""
        return next(iter(self.base_values.values()), float("nan"))

    @property
    def other_values(self) -> list[float]:
        """Return the metrics of all constraints but the first one."""
        return list(self.values.values())[1:]


@dataclass(frozen=True)
class UpdateSearch:
    """How an update was found.

    - `direction`: the direction of changes that was kept: "any", "gains_only" or "losses_only". It
      may be narrower than the one that was asked for.
    - `nearness`: how much a change costs more, the farther the score is from the threshold: t in
      [0, 1].
    - `possible_codes`: the columns of 3 to 20 different whole numbers that have points per unit. If
      these are codes of categories, convert the column first, with ``astype("category")``.
    - `alternatives`: the update as the fit counted it, and then others that keep the target with
      clearly fewer wrong decisions and at most 25% more changes, each with the parameter that gets
      it. None where they were not looked for: without true labels, without a target that is
      reached, with `confidence`, and after an edit.
    """

    direction: str
    nearness: float
    possible_codes: tuple[str, ...] = ()
    alternatives: tuple[CountedUpdate, ...] | None = None


@dataclass(frozen=True)
class UnknownGroupFigures:
    """What is known where the groups of some rows are not; NaN where nothing is.

    - `n_known`: the rows whose group is known: with probabilities, those of which one is 1.
    - `change_rate`, `limit`: `change_rate_` and `limit_` among these rows.
    - `worst_case`: the lowest and the highest fairness over all assignments of people to groups.
      `is_exact`: whether both can occur; otherwise they are proven bounds.
    - `calibrated`: the interval of the fairness in 95 % of draws, if each person's group is drawn
      with the stated probabilities.
    """

    n_known: int
    change_rate: float
    limit: float
    worst_case: tuple[float, float]
    is_exact: bool
    calibrated: tuple[float, float]


class FittedUpdate(NamedTuple):
    """The update that was found, and the problem that it solves, in the direction that it keeps.

    `problem` has the rows that points come from, and `task` those that the cut was counted on. If
    these are more, `counted` has them; else it is None. `expectation` is None where the target is
    one on the fit rows. `optimism` says in words that the base model has seen the fit rows; it is
    empty where nothing speaks for that. `alternatives` are those of `UpdateSearch`.
    """

    problem: FitProblem
    task: EvidenceTask
    found: FoundUpdate
    expectation: Expectation | None = None
    optimism: str = ""
    counted: CountedPeople | None = None
    alternatives: tuple[CountedUpdate, ...] | None = None

    @property
    def n_people(self) -> float:
        """Return how many people the cut was counted on."""
        return float(self.task.people.sum())

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Return the rows of the task that the update changes, shape (n,)."""
        return changed_by(self.task, self.found)

    @property
    def path(self) -> Path:
        """Return the order in which people change as the cut falls."""
        return path_of(self.task, self.found.score(self.task))

    def at_target(self, target: float, path: Path) -> FittedUpdate:
        """Return the update with the same points, and the cut for another target on its path."""
        task = with_target(self.task, target)
        stop = stop_on(task, path)
        return self._replace(task=task, found=replace(self.found, cut=stop.cut, stop=stop))


def with_target(task: EvidenceTask, target: float) -> EvidenceTask:
    """Return a question with another bound of the constraint that moves."""
    return replace(task, required=with_bounds(task.required, (target, *task.bounds[1:])))


def fit_update(problem: FitProblem, people: AllPeople | None = None) -> FittedUpdate:
    """Return the update that a problem asks for, and what is expected of it.

    Points come from the rows of `problem`. `people` are all people, where they are more. Gains only
    is kept where it needs no more changes than `borderline` allows.
    """
    with single_blas_thread:
        for_new = (problem if people is None else people.problem).for_new
        fitted = fit_within_caps(problem, for_new=for_new)
        optimism = optimism_text(problem, fitted.task) if for_new else ""
        if people is not None:
            fitted = counted_update(fitted, people)
        return with_expectation(fitted._replace(optimism=optimism))


def fit_within_caps(problem: FitProblem, *, for_new: bool) -> FittedUpdate:
    """Return the update that a problem asks for.

    Where its caps keep the target out of reach, it has at most MOST_BESIDE_CAPS times the changes
    of the update without caps: more would be a price without the target.
    """
    asked = problem.asked
    fitted = fit_direction(problem, asked.target, for_new=for_new)
    if fitted.found.stop.is_reached or asked.settings.is_budget or asked.caps == Caps():
        return fitted
    free = replace(problem, asked=replace(asked, caps=Caps()))
    default = fit_direction(free, asked.target, for_new=for_new)
    most = MOST_BESIDE_CAPS * min(_changes_of(default))
    if max(_changes_of(fitted)) <= most:
        return fitted
    caps = replace(asked.caps, changes=most / fitted.n_people)
    within = replace(problem, asked=replace(asked, caps=caps))
    smaller = fit_direction(within, asked.target, for_new=for_new)
    return smaller._replace(problem=replace(smaller.problem, asked=asked))


def _changes_of(fitted: FittedUpdate) -> tuple[float, float]:
    """Return how many people change, on values of other folds and on the fit rows."""
    return fitted.found.stop.n_changed, float(fitted.task.people[fitted.changed].sum())


def fit_direction(
    problem: FitProblem, target: float, settings: Settings | None = None, *, for_new: bool
) -> FittedUpdate:
    """Return the update in the direction that the problem allows, or with gains only.

    It has the form that the problem asks for, or the given `settings`.

    Where neither reaches the target, losses only is kept if it does: one sum of points may serve
    one direction better than both. It is not tried where the chance of new samples alone keeps the
    target out of reach: there, losses would only make all decisions alike. Directions are compared
    before lines are chosen. Where the card of the one that is kept falls short of the target, the
    cards of all are compared.
    """
    settings = settings or problem.asked.settings
    tell("searching points")
    raising_is_a_gain = problem.asked.raising_is_a_gain
    regression = Regression(evidence_task(problem, target, for_new=for_new))
    tried = [(problem, find_values(regression, settings))]
    kept, is_any = tried[0], problem.may_raise and problem.may_lower
    for raises in (raising_is_a_gain, not raising_is_a_gain) if is_any else ():
        is_gain, stop = raises == raising_is_a_gain, kept[1].valued.stop
        if stop.is_reached and not (is_gain and stop.n_changed):
            break
        if not is_gain and any(one.is_kept_without_chance for _, one in tried):
            break
        single = problem.with_direction(raises, not raises)
        own = evidence_task(single, target, for_new=for_new)
        tried.append((single, find_values(Regression(own, regression), settings)))
        if _is_near(tried[-1][1].valued.stop, stop, own, settings, is_gain=is_gain):
            kept = tried[-1]
    card = find_card(kept[1], settings)
    if not card.stop.is_reached and not settings.is_budget:
        cards = [card if one is kept else find_card(one[1], settings) for one in tried]
        ranks = [card.stop.rank(regression.task) for card in cards]
        best = ranks.index(min(ranks))
        kept, card = tried[best], cards[best]
    task = kept[1].found.task
    tell("counting decisions")
    found = with_nearness(task, card, settings)
    others = [one for one in tried if one is not kept]
    alternatives = counted_alternatives(kept[0], task, found, others, settings)
    return FittedUpdate(kept[0], task, found, alternatives=alternatives)


def _is_near(
    one: Stop, both: Stop, task: EvidenceTask, settings: Settings, *, is_gain: bool
) -> bool:
    """Return whether one direction reaches as much, with no more changes than are allowed."""
    if not is_gain:
        return one.is_reached and not settings.is_budget
    if settings.is_budget or not both.is_reached:
        return one.rank(task) <= both.rank(task)
    return one.is_reached and one.n_changed <= (1 + settings.borderline) * both.n_changed


def with_expectation(fitted: FittedUpdate) -> FittedUpdate:
    """Return a fitted update with what is expected of it, if its target is one on new rows.

    Something can be expected if its cut was counted on rows new to its points.
    """
    task, stop = fitted.task, fitted.found.stop
    if not fitted.problem.asked.for_new:
        return fitted
    if not task.for_new:
        return fitted._replace(expectation=Expectation.unknown(task.constraints))
    low, high = np.quantile(task.draws(stop.rates)[0], ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    accuracy = float("nan")
    if task.label is not None:
        is_right = (task.positive ^ (fitted.found.score(task) > fitted.found.cut)) == task.label
        accuracy = float(np.average(is_right, weights=task.weight))
    names = [one.name for one in task.constraints]
    base = task.expected(task.base_rates[:, None])[:, 0].tolist()
    expectation = Expectation(
        fairness=float(stop.expected[0]),
        values=dict(zip(names, stop.expected.tolist(), strict=True)),
        interval=(float(low), float(high)),
        change_rate=stop.n_changed / fitted.n_people,
        accuracy=accuracy,
        is_reached=stop.is_reached,
        base_values=dict(zip(names, base, strict=True)),
    )
    return fitted._replace(expectation=expectation)


# ---------------------------------------------------------------------------------------------
# All people, where points come from some of them


@dataclass(frozen=True)
class CountedPeople:
    """All people as rows of a problem, those that points come from first.

    `v` and `distance` (m,) are the evidence of the m people after those, and the distance of their
    scores from the threshold.
    """

    problem: FitProblem
    v: Floats
    distance: Floats

    def measured(self, changed: Mask) -> tuple[FitProblem, Mask]:
        """Return the problem that figures are measured on, and the new decisions on its rows.

        `changed` (n,) are the rows that change.
        """
        return self.problem, self.problem.rows.base.decisions ^ changed


@dataclass(frozen=True)
class AllPeople:
    """All people of a fit in memory, in the order of their hashes; `problem` is theirs."""

    problem: FitProblem

    def count(
        self, part: FitProblem, task: EvidenceTask, found: FoundUpdate, *, is_swept: bool = False
    ) -> CountedPeople:
        """Return all people; an update was found on `part`, and `task` is its question.

        If `is_swept`, cuts of many targets will be counted.
        """
        base, n_point_rows = self.problem.rows.base, len(part.rows)
        others = np.arange(n_point_rows, len(self.problem.rows))
        return CountedPeople(
            self.problem.with_direction(part.may_raise, part.may_lower),
            self.problem.terms.take(others).total(found.points.values, found.points.intercept),
            distances(base.scores[n_point_rows:], base.threshold),
        )

    def refined(self, counted: CountedPeople, cut: float) -> CountedPeople | None:
        """Return the people one by one where a cut lies; None: they are known one by one."""
        return None


def counted_update(fitted: FittedUpdate, people: AllPeople) -> FittedUpdate:
    """Return an update that was found on some rows with the cut that all people give."""
    settings = fitted.problem.asked.settings
    counted = people.count(fitted.problem, fitted.task, fitted.found)
    result = recount_on(counted, fitted, settings)
    for _ in range(MAX_REFINEMENTS):
        finer = people.refined(counted, result.found.cut)
        if finer is None:
            break
        counted, result = finer, recount_on(finer, fitted, settings)
    return result


def recount_on(counted: CountedPeople, fitted: FittedUpdate, settings: Settings) -> FittedUpdate:
    """Return an update with the cut that counted people give; it was found on some of them."""
    task, found = fitted.task, fitted.found
    whole = evidence_task(counted.problem, float(task.bounds[0]), for_new=task.for_new)
    whole = replace(whole, distance=np.concatenate([task.distance, counted.distance]))
    card = EvidenceCard(
        found.points,
        np.concatenate([found.card.in_sample, counted.v]),
        np.concatenate([found.card.out_of_fold, counted.v]),
    )
    fewest = found.fewest * float(whole.people.sum() / task.people.sum())
    found = recounted(whole, card, replace(found, fewest=fewest), settings)
    return fitted._replace(task=whole, found=found, counted=counted)


# ---------------------------------------------------------------------------------------------
# The scorecard


def favorable_points(problem: FitProblem, points: Points) -> Points:
    """Return points for positive decisions as points for the favourable one, or the reverse."""
    sign = 1.0 if problem.asked.raising_is_a_gain else -1.0
    return Points(sign * points.values + 0.0, sign * points.intercept + 0.0)


def found_card(problem: FitProblem, found: FoundUpdate) -> Scorecard:
    """Return the scorecard of an update that was found; r = 1 where nobody changes."""
    if np.isfinite(found.cut):
        given = favorable_points(problem, found.points)
        return given_card(
            problem, given, found_rule(problem, found), concepts_by_column(problem, given)
        )
    n_terms = problem.terms.n_terms
    rule = EvidenceRule(1.0, favorable_above=problem.asked.is_favorable_above)
    return given_card(problem, Points(np.zeros(n_terms), 0.0), rule, np.zeros(n_terms, int))


def given_card(
    problem: FitProblem, given: Points, rule: EvidenceRule, concept: NDArray[np.intp]
) -> Scorecard:
    """Return points and their rule as a scorecard, bit for bit; `concept` (d,) of each term."""
    card = card_of_points(problem.encoding, given, concept, problem.moments[0])
    return replace(card, rule=rule)


def found_rule(problem: FitProblem, found: FoundUpdate) -> EvidenceRule:
    """Return the rule by which the evidence of an update decides; its cut is never infinite."""
    moves = problem.may_raise, problem.may_lower
    may_gain, may_lose = moves if problem.asked.raising_is_a_gain else moves[::-1]
    return EvidenceRule(
        cut=min(found.cut, UNREACHED_CUT),
        nearness=found.nearness,
        mean_distance=found.mean_distance,
        favorable_above=problem.asked.is_favorable_above,
        may_gain=may_gain,
        may_lose=may_lose,
    )


def ratio_on(
    card: Scorecard, terms: TermTable, base: BaseScores, allowed: AllowedChanges
) -> Floats:
    """Return the effective r of a scorecard on n rows, (n,): 1 where no change is allowed."""
    assert card.rule is not None
    ratio = card.rule.ratio(card.evaluate(terms), base.scores, base.threshold)
    return np.where(allowed.is_open(base), ratio, 1.0)


def card_decisions(problem: FitProblem, card: Scorecard) -> Mask:
    """Return the decisions of a scorecard on the rows of a problem, shape (n,)."""
    base = problem.rows.base
    return new_decisions(base, ratio_on(card, problem.terms, base, problem.allowed))


def concepts_by_column(problem: FitProblem, given: Points) -> NDArray[np.intp]:
    """Return the concept of each term, (d,): columns that vary together share one."""
    weights = np.zeros((N_CONCEPTS, len(given.values)))
    weights[0] = given.values * problem.scale
    whole = Concepts(weights, np.eye(N_CONCEPTS)[0], 0.0)
    split = by_column(whole, problem.encoding, problem.terms, problem.scale, problem.rows.weight)
    return np.abs(split.weights * split.contributions[:, None]).argmax(axis=0)


def columns_of_codes(card: Scorecard, code_columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns with points per unit that may hold codes of categories."""
    per_unit = {c.name for c in card.encoding.columns if isinstance(c, NumericTerms)}
    pairs = zip(card.encoding.term_columns, card.points, strict=True)
    has_points = {column for column, points in pairs if points and column in per_unit}
    return tuple(name for name in code_columns if name in has_points)


def concept_of_terms(card: Scorecard) -> NDArray[np.intp]:
    """Return the concept of each term, (d,): that of its raw column; 0 for a column without one."""
    columns = np.array(card.encoding.term_columns, dtype=object)
    concept = np.zeros(len(columns), dtype=np.intp)
    for name in card.columns_used:
        of_column = columns == name
        concept[of_column] = np.abs(card.concept_points[:, of_column]).sum(axis=1).argmax()
    return concept


def card_of_points(
    encoding: Encoding, given: Points, concept: NDArray[np.intp], mean: Floats
) -> Scorecard:
    """Return given points as a scorecard with exactly these points; each concept has weight 1.

    Concepts are centred on `mean` (d,), that of the fit rows, up to rounding.
    """
    points = np.zeros((N_CONCEPTS, len(given.values)))
    points[concept, np.arange(len(concept))] = given.values
    size = np.abs(points).sum(axis=1)
    if size[0] == 0 and size[1] > 0:  # the first concept is never the unused one
        points, size = points[::-1].copy(), size[::-1]
    return Scorecard(
        encoding=encoding,
        intercept=given.intercept,
        contributions=(size > 0) * 1.0,
        concept_points=points,
        concept_intercepts=significant(-(points @ mean), INNER_DIGITS) + 0.0,
    )


# ---------------------------------------------------------------------------------------------
# Base models that have seen the fit rows


def optimism_text(problem: FitProblem, task: EvidenceTask) -> str:
    """Return what is known about a base model that has seen the fit rows; empty if it has not.

    A finding is also a warning. The base model may have read other columns, with a `ScoreColumn`
    and with locked columns. Then only scores that are implausibly good tell.
    """
    rows = problem.rows
    if problem.asked.model_reads_others and not score_area(rows) >= MIN_AREA:
        return ""
    unseen = unseen_predictions(rows, task)
    if unseen is None:
        return ""
    if problem.asked.model_reads_others:
        name, figures = "area under the ROC curve", implausible_areas(rows, *unseen)
    else:
        name, figures = "accuracy", accuracy_excess(rows, *unseen)
    if figures is None:
        return ""
    base, others = figures
    text = (
        f"The base model has an {name} of {base:.3f} on the fit rows, and models that have not "
        f"seen a row have {others:.3f}. If the base model has seen the fit rows, {NOT_CORRECTED}."
    )
    if not training_signs(rows.base, rows.label):  # another warning names these
        way_out = "If these rows are new to it, silence this SeenRowsWarning."
        warnings.warn(f"{text} {way_out}", SeenRowsWarning, stacklevel=4)
    return text


def unseen_predictions(rows: FitRows, task: EvidenceTask) -> tuple[Codes, Floats] | None:
    """Return rows, and what models that have not seen them predict; of many rows, a part.

    The models are ridge regressions of the label on the terms. None where labels are unknown.
    """
    if rows.label is None or task.terms.n_terms > MAX_TERMS:
        return None
    compared = np.flatnonzero(rows.weight > 0)
    compared = compared[:: -(-len(compared) // MAX_ROWS)]
    label, fold = rows.label[compared], task.fold[compared]
    terms = dense_rows(design_of(task), compared)
    penalty = np.diag(np.append(1e-9, np.full(terms.shape[1] - 1, RIDGE)))
    predicted = np.zeros(len(compared))
    for f in range(N_FOLDS):
        seen, own = terms[fold != f], fold == f
        solution = np.linalg.solve(seen.T @ seen + penalty, seen.T @ label[fold != f])
        predicted[own] = terms[own] @ solution
    return compared, predicted


def accuracy_excess(
    rows: FitRows, compared: Codes, predicted: Floats
) -> tuple[float, float] | None:
    """Return the accuracy of the base model, and that of predictions for the `compared` rows.

    None where the base model is not better than chance explains.
    """
    assert rows.label is not None
    label = rows.label[compared]
    share = rows.weight[compared] / rows.weight[compared].sum()
    is_right = rows.base.decisions[compared] == label
    excess = is_right * 1.0 - ((predicted > 0.5) == label)
    mean = float(share @ excess)
    error = float(np.sqrt(share**2 @ (excess - mean) ** 2))
    if mean < MIN_EXCESS or mean < N_ERRORS * error:
        return None
    base = float(share @ is_right)
    return base, base - mean


def implausible_areas(
    rows: FitRows, compared: Codes, predicted: Floats
) -> tuple[float, float] | None:
    """Return the areas under the curve of the base score, and of predictions for its rows.

    None where the score orders the labels no better than more columns could explain.
    """
    assert rows.label is not None
    base, others = score_area(rows), area(predicted, rows.label[compared])
    return (base, others) if 1 - base <= MOST_LEFT * (1 - max(others, 0.5)) else None


def score_area(rows: FitRows) -> float:
    """Return the area under the ROC curve of the base score; NaN where it is not defined."""
    if rows.label is None:
        return float("nan")
    return area(rows.base.for_positive.scores, rows.label)


def area(scores: Floats, label: Mask) -> float:
    """Return the area under the ROC curve of scores; NaN where all labels are alike.

    Examples
    --------
    >>> area(np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, False, True, True]))
    0.875
    """
    (cells,) = score_cells(scores, label, np.zeros(len(scores), np.intp), 1)
    value = cells.area(LEVEL).value
    return float("nan") if value is None else value
