"""Store an update that was found as the scorecard of a `ControlledDebiaser`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from commod._data.encoding import Encoding
from commod._evidence.points import significant
from commod._evidence.search import INNER_DIGITS, FoundUpdate
from commod._solvers.concepts import Concepts
from commod.scorecard import UNREACHED_CUT, EvidenceRule, Scorecard
from commod.updates._problem import FitProblem
from commod.updates.base import by_column

Floats = NDArray[np.float64]

N_CONCEPTS = 2  # that a scorecard is split into, by whole raw columns


class GivenPoints(NamedTuple):
    """Points (d,) and intercept of the evidence, in raw units, for the favourable decision."""

    points: Floats
    intercept: float


def store_found(update: Any, problem: FitProblem, found: FoundUpdate) -> None:
    """Store an update that was found; r = 1 where nobody changes."""
    if not np.isfinite(found.cut):
        store_no_change(update, problem)
        return
    sign = 1.0 if problem.raising_is_a_gain else -1.0
    given = GivenPoints(sign * found.points.values + 0.0, sign * found.points.intercept + 0.0)
    rule = rule_of(update, problem, found)
    store_given(update, problem, given, rule, concepts_by_column(problem, given))


def store_no_change(update: Any, problem: FitProblem) -> None:
    """Store r = 1, so that no decision changes."""
    n_terms = problem.terms.n_terms
    rule = EvidenceRule(1.0, favorable_above=is_favorable_above(update))
    store_given(update, problem, GivenPoints(np.zeros(n_terms), 0.0), rule, np.zeros(n_terms, int))


def rule_of(update: Any, problem: FitProblem, found: FoundUpdate) -> EvidenceRule:
    """Return the rule by which the evidence of an update decides; its cut is never infinite."""
    moves = problem.may_raise, problem.may_lower
    may_gain, may_lose = moves if problem.raising_is_a_gain else moves[::-1]
    return EvidenceRule(
        cut=min(found.cut, UNREACHED_CUT),
        nearness=found.nearness,
        mean_distance=found.mean_distance,
        favorable_above=is_favorable_above(update),
        may_gain=may_gain,
        may_lose=may_lose,
    )


def is_favorable_above(update: Any) -> bool:
    """Return whether a score above the threshold is the favourable decision."""
    return bool(update._score_label() == update.favorable_label_)


def concepts_by_column(problem: FitProblem, given: GivenPoints) -> NDArray[np.intp]:
    """Return the concept of each term, (d,): columns that vary together share one."""
    weights = np.zeros((N_CONCEPTS, len(given.points)))
    weights[0] = given.points * problem.scale
    whole = Concepts(weights, np.eye(N_CONCEPTS)[0], 0.0)
    split = by_column(whole, problem.encoding, problem.terms, problem.scale, problem.rows.weight)
    return np.abs(split.weights * split.contributions[:, None]).argmax(axis=0)


def concept_of_terms(card: Scorecard) -> NDArray[np.intp]:
    """Return the concept of each term, (d,): that of its raw column; 0 for a column without one."""
    columns = np.array(card.encoding.term_columns, dtype=object)
    concept = np.zeros(len(columns), dtype=np.intp)
    for name in card.columns_used:
        of_column = columns == name
        concept[of_column] = np.abs(card.concept_points[:, of_column]).sum(axis=1).argmax()
    return concept


def store_given(
    update: Any,
    problem: FitProblem,
    given: GivenPoints,
    rule: EvidenceRule,
    concept: NDArray[np.intp],
) -> None:
    """Store points as the scorecard of an update, bit for bit; `concept` (d,) of each term."""
    card = scorecard_of(problem.encoding, given, concept, problem.moments[0])
    update.concept_weights_ = card.concept_points * problem.scale
    update.concept_contributions_ = card.contributions
    update.intercept_ = float(given.intercept - card.contributions @ card.concept_intercepts)
    update.term_names_ = problem.encoding.term_names
    update.scorecard_ = replace(card, rule=rule)


def scorecard_of(
    encoding: Encoding, given: GivenPoints, concept: NDArray[np.intp], mean: Floats
) -> Scorecard:
    """Return given points as a scorecard with exactly these points; each concept has weight 1.

    Concepts are centred on `mean` (d,), that of the fit rows, up to rounding.
    """
    points = np.zeros((N_CONCEPTS, len(given.points)))
    points[concept, np.arange(len(concept))] = given.points
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


def without_terms(encoding: Encoding, is_locked: NDArray[np.bool_]) -> Encoding:
    """Return the terms of all columns that have no locked term."""
    locked = {name for name, gone in zip(encoding.term_columns, is_locked, strict=True) if gone}
    return Encoding(tuple(column for column in encoding.columns if column.name not in locked))
